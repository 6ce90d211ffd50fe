/* directive.c - the directives that place data, name sections and mark symbols. */
#include "as/assembler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DATA_FLOAT = 0x40 };
enum { LENIENT_OPERANDS, LENIENT_MODE, LENIENT_BUNDLES, LENIENT_REPEAT, LENIENT_OPTIMIZATIONS };

static Word *take_word(Assembler *as, const char *what)
{
    const Token *token = &as->token;
    if (token->kind != TOKEN_WORD && token->kind != TOKEN_STRING) {
        as_error(as, "expected %s", what);
        return NULL;
    }
    Word *word = word_of(as, token->text, token->length, word_hash(token->text, token->length));
    next_token(as);
    return word;
}

static void ignore(Assembler *as, int unused)
{
    (void)unused;
    skip_statement(as);
}

static bool outside_bundle(Assembler *as)
{
    if (!as->in_bundle)
        return true;
    as_error_at(as, &as->statement, "data in an instruction bundle");
    return false;
}

/* ---- sections ---- */

static void plain_section(Assembler *as, const char *name)
{
    use_section(as, section_of(as, name, strlen(name), UINT32_MAX));
    skip_statement(as); /* a subsection number */
}

static void text_section(Assembler *as, int unused)
{
    (void)unused;
    plain_section(as, ".text");
}

static void data_section(Assembler *as, int unused)
{
    (void)unused;
    plain_section(as, ".data");
}

static void rodata_section(Assembler *as, int unused)
{
    (void)unused;
    plain_section(as, ".rodata");
}

static void bss_section(Assembler *as, int unused)
{
    (void)unused;
    plain_section(as, ".bss");
}

static bool read_section_flags(Assembler *as, uint32_t *flags)
{
    *flags = 0;
    for (uint32_t i = 0; i < as->token.length; i++) {
        char letter = as->token.text[i];
        switch (letter) {
        case 'a':
            *flags |= AS_ALLOC;
            break;
        case 'w':
            *flags |= AS_WRITE;
            break;
        case 'x':
            *flags |= AS_EXECUTE;
            break;
        case 'M':
        case 'S':
        case 'R': /* merging and retention: sections stay whole here */
            break;
        default:
            as_error(as, "unknown section flag '%c'", letter);
            return false;
        }
    }
    next_token(as);
    return true;
}

/* .section name [, "flags" [, @type [, entry size]]] */
static void named_section(Assembler *as, int push)
{
    const char *text = as->token.text;
    size_t length = as->token.length;
    if (as->token.kind == TOKEN_WORD) { /* a name may hold what words do not: .text.a-b */
        const char *end = as->frame->end, *c = text;
        while (c < end && *c != ',' && *c != ' ' && *c != '\t' && *c != '\n' && *c != '\r' &&
               *c != ';' && *c != '#')
            c++;
        length = (size_t)(c - text);
        as->frame->cursor = c;
    } else if (as->token.kind != TOKEN_STRING) {
        as_error(as, "expected the name of a section");
        return;
    }
    next_token(as);
    uint32_t flags = UINT32_MAX;
    if (accept(as, ',')) {
        if (as->token.kind != TOKEN_STRING) {
            as_error(as, "expected the flags of the section as a string");
            return;
        }
        if (!read_section_flags(as, &flags))
            return;
        if (accept(as, ',') && (accept(as, '@') || accept(as, '%'))) {
            if (as->token.length == 6 && !memcmp(as->token.text, "nobits", 6))
                flags |= AS_NOBITS;
            skip_statement(as);
        }
    }
    Section *section = section_of(as, text, length, flags);
    if (flags != UINT32_MAX && flags != section->flags) {
        as_error(as, "section %s was begun with other flags", section->name);
        return;
    }
    if (push)
        array_push(&as->section_stack, as->section);
    use_section(as, section);
    skip_statement(as);
}

static void pop_section(Assembler *as, int unused)
{
    (void)unused;
    if (as->section_stack.count == 0)
        as_error(as, ".popsection without .pushsection");
    else
        use_section(as, as->section_stack.items[--as->section_stack.count]);
}

static void previous_section(Assembler *as, int unused)
{
    (void)unused;
    if (as->previous)
        use_section(as, as->previous);
}

/* ---- symbols ---- */

static void bind(Assembler *as, int binding)
{
    do {
        Word *word = take_word(as, "a symbol");
        if (!word)
            return;
        Symbol *symbol = symbol_of(as, word);
        symbol->binding = (uint8_t)binding;
        symbol->bound = true;
    } while (accept(as, ','));
}

static void type(Assembler *as, int unused)
{
    (void)unused;
    Word *word = take_word(as, "a symbol");
    if (!word)
        return;
    accept(as, ',');
    if (!accept(as, '@') && !accept(as, '%'))
        accept(as, '#');
    const char *text = as->token.text;
    size_t length = as->token.length;
    bool function = (length == 8 && !memcmp(text, "function", 8)) ||
                    (length == 8 && !memcmp(text, "STT_FUNC", 8));
    if (as->token.kind != TOKEN_WORD && as->token.kind != TOKEN_STRING) {
        as_error(as, "expected a type, like @function");
        return;
    }
    symbol_of(as, word)->function = function;
    next_token(as);
}

static void size(Assembler *as, int unused)
{
    (void)unused;
    Word *word = take_word(as, "a symbol");
    Expression expression;
    if (!word || !expect(as, ',', "','") || !parse_expression(as, &expression))
        return;
    Symbol *symbol = symbol_of(as, word);
    symbol->size = expression.value;
    symbol->size_root = NO_NODE;
    if (!expression.constant) {
        symbol->size_root = expression.root;
        as->node_mark = (uint32_t)as->nodes.count;
    }
}

static void set(Assembler *as, int once)
{
    Word *word = take_word(as, "a symbol");
    if (word && expect(as, ',', "','"))
        assign_symbol(as, symbol_of(as, word), once);
}

/* ---- data ---- */

static void data_fixup(Assembler *as, const Expression *expression, int bytes, const Position *at)
{
    as->node_mark = (uint32_t)as->nodes.count;
    array_push(&as->fixups, (Fixup){.section = as->section,
                                    .offset = (uint32_t)as->section->bytes,
                                    .root = expression->root,
                                    .bytes = (uint8_t)bytes,
                                    .lenient = as->lenience.operands == 2,
                                    .at = *at});
}

static bool data_value(Assembler *as, int bytes)
{
    Position at = position_now(as);
    Expression expression;
    if (!parse_expression(as, &expression))
        return false;
    if (!expression.constant) {
        data_fixup(as, &expression, bytes, &at);
        return emit_bytes(as, NULL, (size_t)bytes);
    }
    int64_t limit = bytes < 8 ? (int64_t)1 << (8 * bytes) : INT64_MAX;
    if (bytes < 8 && (expression.value < -limit / 2 || expression.value >= limit) &&
        as->lenience.operands != 2) {
        as_error_at(as, &at, "%lld does not fit into %d byte%s", (long long)expression.value, bytes,
                    bytes == 1 ? "" : "s");
        return false;
    }
    return emit_bytes(as, &expression.value, (size_t)bytes);
}

static void data(Assembler *as, int bytes)
{
    if (!outside_bundle(as) || at_end(as))
        return;
    while (data_value(as, bytes) && accept(as, ','))
        ;
}

static bool read_real(Assembler *as, double *out)
{
    double sign = 1;
    while (as->token.kind == TOKEN_OPERATOR && (as->token.op == '-' || as->token.op == '+')) {
        sign = as->token.op == '-' ? -sign : sign;
        next_token(as);
    }
    const Token *token = &as->token;
    if (token->kind == TOKEN_FLOAT)
        *out = sign * token->number;
    else if (token->kind == TOKEN_INTEGER)
        *out = sign * (double)token->value;
    else if (token->kind == TOKEN_WORD && token->length >= 3 && !memcmp(token->text, "inf", 3))
        *out = sign * __builtin_inf();
    else if (token->kind == TOKEN_WORD && token->length == 3 && !memcmp(token->text, "nan", 3))
        *out = __builtin_nan("");
    else {
        as_error(as, "expected a number");
        return false;
    }
    next_token(as);
    return true;
}

static void real_data(Assembler *as, int bytes)
{
    if (!outside_bundle(as))
        return;
    do {
        double number;
        Position at = position_now(as);
        if (!read_real(as, &number))
            return;
        float single = (float)number;
        if (bytes == 4 && isinf(single) && !isinf(number)) {
            as_error_at(as, &at, "%g is too large for 4 bytes (infinity is inf)", number);
            return;
        }
        if (!emit_bytes(as, bytes == 4 ? (void *)&single : (void *)&number, (size_t)bytes))
            return;
    } while (accept(as, ','));
}

static void string_data(Assembler *as, int terminated)
{
    if (!outside_bundle(as))
        return;
    do {
        size_t length;
        if (as->token.kind != TOKEN_STRING) {
            as_error(as, "expected a string");
            return;
        }
        const char *bytes = string_bytes(as, &as->token, &length);
        next_token(as);
        if (!emit_bytes(as, bytes, length + (terminated ? 1 : 0)))
            return;
    } while (accept(as, ','));
}

/* count bytes that repeat the low `size` bytes of value. */
static void emit_pattern(Assembler *as, int64_t count, int64_t size, uint64_t value)
{
    if (count < 0) {
        as_error_at(as, &as->statement, "a negative count");
    } else if (count > OUTPUT_LIMIT || count * size > OUTPUT_LIMIT) {
        as_error_at(as, &as->statement, "more than %d MiB", OUTPUT_LIMIT >> 20);
    } else if (value == 0) {
        emit_bytes(as, NULL, (size_t)(count * size));
    } else {
        for (int64_t i = 0; i < count && !as->stop; i++)
            if (!emit_bytes(as, &value, (size_t)size))
                return;
    }
}

/* .space count [, byte] */
static void space(Assembler *as, int unused)
{
    (void)unused;
    int64_t count, value = 0;
    if (!outside_bundle(as) || !parse_constant(as, "the count", &count))
        return;
    if (accept(as, ',') && !parse_constant(as, "the value", &value))
        return;
    emit_pattern(as, count, 1, (uint8_t)value);
}

/* .fill count [, size [, value]] */
static void fill(Assembler *as, int unused)
{
    (void)unused;
    int64_t count, bytes = 1, value = 0;
    if (!outside_bundle(as) || !parse_constant(as, "the count", &count))
        return;
    if (accept(as, ',') && !parse_constant(as, "the size", &bytes))
        return;
    if (accept(as, ',') && !parse_constant(as, "the value", &value))
        return;
    if (bytes < 0 || bytes > 8)
        as_error_at(as, &as->statement, ".fill repeats values of 0 to 8 bytes");
    else
        emit_pattern(as, count, bytes,
                     bytes == 8 ? (uint64_t)value
                                : (uint64_t)value & (((uint64_t)1 << 8 * bytes) - 1));
}

static void origin(Assembler *as, int unused)
{
    (void)unused;
    Expression expression;
    int64_t byte = 0;
    if (!outside_bundle(as) || !parse_expression(as, &expression))
        return;
    if (accept(as, ',') && !parse_constant(as, "the value", &byte))
        return;
    Value value = {.constant = expression.value};
    if (!expression.constant &&
        (!evaluate(as, expression.root, &value) || value.minus || !value.plus ||
         !value.plus->defined || value.plus->section != as->section)) {
        as_error_at(as, &as->statement, ".org needs an offset in this section");
        return;
    }
    int64_t target = value.constant + (value.plus ? value.plus->value : 0);
    if (target < (int64_t)as->section->bytes)
        as_error_at(as, &as->statement, ".org can not move back, from 0x%llx to 0x%llx",
                    (unsigned long long)as->section->bytes, (unsigned long long)target);
    else
        emit_pattern(as, target - (int64_t)as->section->bytes, 1, (uint8_t)byte);
}

/* .align bytes / .p2align power [, fill [, most]] */
static void align(Assembler *as, int power)
{
    int64_t wanted, byte = -1, most = INT64_MAX;
    if (!outside_bundle(as) || !parse_constant(as, "the alignment", &wanted))
        return;
    if (accept(as, ',') && !(as->token.kind == TOKEN_OPERATOR && as->token.op == ',') &&
        !at_end(as) && !parse_constant(as, "the fill value", &byte))
        return;
    if (accept(as, ',') && !parse_constant(as, "the most bytes", &most))
        return;
    if (power && wanted >= 0 && wanted < 63)
        wanted = (int64_t)1 << wanted;
    if (wanted <= 0 || wanted > 1 << 20 || (wanted & (wanted - 1)) != 0) {
        as_error_at(as, &as->statement, "alignment must be a power of two up to 2^20");
        return;
    }
    if ((int64_t)(-as->section->bytes & (uint64_t)(wanted - 1)) <= most)
        align_section(as, (uint32_t)wanted, byte < 0 ? -1 : (int)(byte & 0xff));
}

/* ---- modes, messages, text ---- */

static void mode(Assembler *as, int wanted)
{
    as->mode = (IsaMode)wanted;
}

/* argument: which switch << 4 | what becomes of it. */
static void lenience(Assembler *as, int argument)
{
    uint8_t how = (uint8_t)(argument & 15);
    switch (argument >> 4) {
    case LENIENT_OPERANDS:
        as->lenience.operands = how;
        break;
    case LENIENT_MODE:
        as->lenience.mode = how;
        break;
    case LENIENT_BUNDLES:
        as->lenience.bundles = how;
        break;
    case LENIENT_REPEAT:
        as->lenience.repeat = how;
        break;
    default:
        as->lenience.optimizations = how == 2;
    }
}

static void include(Assembler *as, int unused)
{
    (void)unused;
    size_t length;
    if (as->token.kind != TOKEN_STRING) {
        as_error(as, "expected the name of a file as a string");
        return;
    }
    const char *name = string_bytes(as, &as->token, &length);
    next_token(as);
    push_include(as, name, length);
}

static void message(Assembler *as, int error)
{
    const char *text = as->token.kind == TOKEN_STRING ? as->token.text : ".err met";
    uint32_t length = as->token.kind == TOKEN_STRING ? as->token.length : 8;
    if (error)
        as_error_at(as, &as->statement, "%.*s", (int)length, text);
    else
        as_warning(as, "%.*s", (int)length, text);
    skip_statement(as);
}

static void end(Assembler *as, int unused)
{
    (void)unused;
    Frame *frame = as->frame;
    do {
        frame->cursor = frame->end;
        frame->remaining = 0;
    } while ((frame = frame->parent));
    as->token = (Token){.kind = TOKEN_END, .text = as->frame->cursor, .start = as->frame->cursor};
}

static const Directive directives[] = {
    /* sorted by name */
    {".2byte", data, 2},
    {".4byte", data, 4},
    {".8byte", data, 8},
    {".addrsig", ignore, 0},
    {".addrsig_sym", ignore, 0},
    {".align", align, 0},
    {".allow_invalid_bundles", lenience, LENIENT_BUNDLES << 4 | 2},
    {".allow_invalid_execution_mode", lenience, LENIENT_MODE << 4 | 2},
    {".allow_invalid_operands", lenience, LENIENT_OPERANDS << 4 | 2},
    {".allow_invalid_repeat", lenience, LENIENT_REPEAT << 4 | 2},
    {".allow_optimizations", lenience, LENIENT_OPTIMIZATIONS << 4 | 2},
    {".ascii", string_data, 0},
    {".asciz", string_data, 1},
    {".balign", align, 0},
    {".bss", bss_section, 0},
    {".byte", data, 1},
    {".cfi_adjust_cfa_offset", ignore, 0},
    {".cfi_def_cfa", ignore, 0},
    {".cfi_def_cfa_offset", ignore, 0},
    {".cfi_def_cfa_register", ignore, 0},
    {".cfi_endproc", ignore, 0},
    {".cfi_offset", ignore, 0},
    {".cfi_restore", ignore, 0},
    {".cfi_sections", ignore, 0},
    {".cfi_startproc", ignore, 0},
    {".data", data_section, 0},
    {".disallow_optimizations", lenience, LENIENT_OPTIMIZATIONS << 4 | 0},
    {".double", real_data, 8},
    {".else", condition_else, 0},
    {".elseif", condition_else_if, 0},
    {".end", end, 0},
    {".endif", condition_end, 0},
    {".endm", macro_stray_end, 0},
    {".endmacro", macro_stray_end, 0},
    {".endr", macro_stray_end, 0},
    {".equ", set, 0},
    {".equiv", set, 1},
    {".err", message, 1},
    {".error", message, 1},
    {".error_on_invalid_bundles", lenience, LENIENT_BUNDLES << 4 | 0},
    {".error_on_invalid_execution_mode", lenience, LENIENT_MODE << 4 | 0},
    {".error_on_invalid_operands", lenience, LENIENT_OPERANDS << 4 | 0},
    {".error_on_invalid_repeat", lenience, LENIENT_REPEAT << 4 | 0},
    {".exitm", macro_exit, 0},
    {".file", ignore, 0},
    {".fill", fill, 0},
    {".float", real_data, 4},
    {".global", bind, AS_GLOBAL},
    {".globl", bind, AS_GLOBAL},
    {".half", data, 2},
    {".hidden", ignore, 0},
    {".hword", data, 2},
    {".ident", ignore, 0},
    {".if", condition_if, IF_NOT_ZERO},
    {".ifb", condition_if, IF_BLANK},
    {".ifc", condition_if, IF_SAME},
    {".ifdef", condition_if, IF_DEFINED},
    {".ifeq", condition_if, IF_ZERO},
    {".ifeqs", condition_if, IF_EQUAL_STRINGS},
    {".ifge", condition_if, IF_GREATER_EQUAL},
    {".ifgt", condition_if, IF_GREATER},
    {".ifle", condition_if, IF_LESS_EQUAL},
    {".iflt", condition_if, IF_LESS},
    {".ifnb", condition_if, IF_NOT_BLANK},
    {".ifnc", condition_if, IF_DIFFERENT},
    {".ifndef", condition_if, IF_NOT_DEFINED},
    {".ifne", condition_if, IF_NOT_ZERO},
    {".ifnes", condition_if, IF_UNEQUAL_STRINGS},
    {".ifnotdef", condition_if, IF_NOT_DEFINED},
    {".include", include, 0},
    {".int", data, 4},
    {".internal", ignore, 0},
    {".irp", macro_for_each, 0},
    {".irpc", macro_for_each, 1},
    {".loc", ignore, 0},
    {".local", bind, AS_LOCAL},
    {".long", data, 4},
    {".macro", macro_define, 0},
    {".org", origin, 0},
    {".p2align", align, 1},
    {".popsection", pop_section, 0},
    {".previous", previous_section, 0},
    {".print", ignore, 0},
    {".protected", ignore, 0},
    {".purgem", macro_purge, 0},
    {".pushsection", named_section, 1},
    {".quad", data, 8},
    {".rep", macro_repeat, 0},
    {".rept", macro_repeat, 0},
    {".rodata", rodata_section, 0},
    {".section", named_section, 0},
    {".set", set, 0},
    {".short", data, 2},
    {".single", real_data, 4},
    {".size", size, 0},
    {".skip", space, 0},
    {".space", space, 0},
    {".string", string_data, 1},
    {".supervisor", mode, MODE_SUPERVISOR},
    {".text", text_section, 0},
    {".type", type, 0},
    {".warn_on_invalid_bundles", lenience, LENIENT_BUNDLES << 4 | 1},
    {".warn_on_invalid_execution_mode", lenience, LENIENT_MODE << 4 | 1},
    {".warn_on_invalid_operands", lenience, LENIENT_OPERANDS << 4 | 1},
    {".warn_on_invalid_repeat", lenience, LENIENT_REPEAT << 4 | 1},
    {".warning", message, 0},
    {".weak", bind, AS_WEAK},
    {".word", data, 4},
    {".worker", mode, MODE_WORKER},
    {".zero", space, 0},
};

const Directive *find_directive(const char *name, size_t length)
{
    size_t low = 0, high = countof(directives);
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strncmp(directives[middle].name, name, length);
        if (order == 0 && directives[middle].name[length])
            order = 1;
        if (order == 0)
            return &directives[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
