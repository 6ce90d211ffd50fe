/* instruction.c - from text operands to an instruction form.
 *
 * The operands are read once, then tried against every way to write the mnemonic (isa.h, IsaSyntax)
 * in the table's order. The first that fits is taken; when none does, the message names the operand
 * that went furthest and what could have stood there. */
#include "as/assembler.h"

#include <stdio.h>
#include <string.h>

typedef enum Broadcast { BROADCAST_NONE, BROADCAST_B, BROADCAST_BL, BROADCAST_BU } Broadcast;

typedef struct Operand {
    bool is_register;
    char file; /* 'm' or 'a' */
    uint8_t base, span, broadcast, suffix;
    Expression expression; /* when it is no register */
    Position at;
} Operand;

typedef struct Operands {
    Operand items[ISA_TEXT_OPERANDS];
    int count;
} Operands;

/* ---- reading operands ---- */

static bool read_number(const char *text, uint32_t length, unsigned limit, unsigned *out)
{
    if (length < 1 || length > 2 || (length == 2 && text[0] == '0'))
        return false;
    *out = 0;
    for (uint32_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        *out = *out * 10 + (unsigned)(text[i] - '0');
    }
    return *out < limit;
}

/* The register names without '$'; false when it is none (then it may be a CSR). */
static bool register_name(const char *text, uint32_t length, Operand *out)
{
    static const struct {
        const char *name;
        char file;
        uint8_t base, span;
    } names[] = {
        {"bp", 'm', 8, 1},
        {"fp", 'm', 9, 1},
        {"lr", 'm', 10, 1},
        {"sp", 'm', 11, 1},
        {"mworker_base", 'm', 12, 1},
        {"mvertex_base", 'm', 13, 1},
        {"mzero", 'm', 15, 1},
        {"azero", 'a', 15, 1},
        {"azeros", 'a', 14, 2},
    };
    unsigned n;
    out->span = 1;
    if ((text[0] == 'm' || text[0] == 'a') && read_number(text + 1, length - 1, 16, &n)) {
        out->file = text[0];
        out->base = (uint8_t)n;
        return true;
    }
    if (length > 2 && text[0] == 'a' && read_number(text + 2, length - 2, 16, &n)) {
        out->file = 'a';
        if (text[1] == 'p') { /* $ap7..$ap15: pairs without halves of their own */
            out->base = (uint8_t)(n < 7 ? 2 * n : 14);
            out->span = 2;
            return true;
        }
        if (text[1] == 'q') {
            out->base = (uint8_t)(n < 3 ? 4 * n : 12);
            out->span = 4;
            return true;
        }
        if (text[1] == 'o' && n < 2) {
            out->base = (uint8_t)(8 * n);
            out->span = 8;
            return true;
        }
    }
    for (size_t i = 0; i < countof(names); i++)
        if (strlen(names[i].name) == length && !memcmp(names[i].name, text, length)) {
            out->file = names[i].file;
            out->base = names[i].base;
            out->span = names[i].span;
            return true;
        }
    return false;
}

/* ":1" makes a range, ":B" ":BL" ":BU" a broadcast. */
static bool read_colon(Assembler *as, Operand *out)
{
    const Token *token = &as->token;
    if (token->kind == TOKEN_WORD && token->text[0] == 'B' && token->length <= 2) {
        bool low = token->length == 2 && token->text[1] == 'L';
        bool high = token->length == 2 && token->text[1] == 'U';
        if (token->length == 1 || low || high) {
            out->broadcast = low ? BROADCAST_BL : high ? BROADCAST_BU : BROADCAST_B;
            next_token(as);
            return true;
        }
    }
    if (token->kind != TOKEN_INTEGER || token->value > 15 || token->value < out->base) {
        as_error(as, "expected the last register of a range, or B, BL, BU");
        return false;
    }
    uint8_t span = (uint8_t)(token->value - out->base + 1);
    bool aligned = (span == 2 || span == 4 || span == 8) && out->base % span == 0;
    if (!aligned && (as->lenience.operands != 2 || (span != 2 && span != 4 && span != 8))) {
        as_error_at(as, &out->at, "a register range must be aligned to its 2, 4 or 8 registers");
        return false;
    }
    out->span = span;
    out->base = (uint8_t)(out->base / span * span);
    next_token(as);
    return true;
}

static uint8_t read_suffix(Assembler *as)
{
    static const struct {
        int op;
        uint8_t suffix;
    } suffixes[] = {{OP_INCREMENT, SUFFIX_INCREMENT},
                    {OP_ADD_ASSIGN, SUFFIX_ADD},
                    {OP_RIGHT, SUFFIX_SHIFT},
                    {'@', SUFFIX_AT}};
    for (size_t i = 0; i < countof(suffixes); i++)
        if (accept(as, suffixes[i].op))
            return suffixes[i].suffix;
    return SUFFIX_NONE;
}

static bool read_operand(Assembler *as, Operand *out)
{
    *out = (Operand){.at = position_now(as)};
    if (as->token.kind != TOKEN_REGISTER || !register_name(as->token.text, as->token.length, out))
        return parse_expression(as, &out->expression);
    out->is_register = true;
    next_token(as);
    if (as->token.kind == TOKEN_OPERATOR && as->token.op == ':') {
        next_token(as);
        if (!read_colon(as, out))
            return false;
    }
    out->suffix = read_suffix(as);
    return true;
}

static bool read_operands(Assembler *as, Operands *out)
{
    out->count = 0;
    if (at_end(as) || (as->token.kind == TOKEN_OPERATOR && as->token.op == '}'))
        return true;
    do {
        if (out->count == ISA_TEXT_OPERANDS) {
            as_error(as, "no instruction takes more than %d operands", ISA_TEXT_OPERANDS);
            return false;
        }
        if (!read_operand(as, &out->items[out->count++]))
            return false;
    } while (accept(as, ','));
    bool closes = as->token.kind == TOKEN_OPERATOR && as->token.op == '}';
    if (at_end(as) || closes)
        return true;
    as_error(as, "unexpected '%.*s', expected ',' or the end of the instruction",
             (int)(as->frame->cursor - as->token.start), as->token.start);
    return false;
}

/* ---- fitting operands to forms ---- */

typedef enum Misfit { FITS, WRONG_KIND, NO_SUFFIX, WRONG_SUFFIX, OUT_OF_RANGE } Misfit;

static const struct RegisterKind {
    char file;
    uint8_t span, broadcast;
    const char *what;
} register_kinds[] = {
    [OPERAND_M] = {'m', 1, 0, "$m0..$m15"},
    [OPERAND_M2] = {'m', 2, 0, "a pair $m0:1..$m10:11"},
    [OPERAND_A] = {'a', 1, 0, "$a0..$a15"},
    [OPERAND_A_B] = {'a', 1, BROADCAST_B, "$aN:B"},
    [OPERAND_A_BL] = {'a', 1, BROADCAST_BL, "$aN:BL"},
    [OPERAND_A_BU] = {'a', 1, BROADCAST_BU, "$aN:BU"},
    [OPERAND_A2] = {'a', 2, 0, "a pair $a0:1..$a14:15"},
    [OPERAND_A4] = {'a', 4, 0, "a quad $a0:3..$a12:15"},
};

static bool is_register_kind(const OperandInfo *operand)
{
    return operand->kind >= OPERAND_M && operand->kind <= OPERAND_A4;
}

bool value_fits(const OperandInfo *operand, int64_t value)
{
    OperandRange range = isa_operand_range(operand);
    return value >= range.low && value <= range.high && (value - range.low) % range.step == 0;
}

int64_t forced_value(const OperandInfo *operand, int64_t value)
{
    OperandRange range = isa_operand_range(operand);
    uint64_t span = (uint64_t)(range.high - range.low) / (uint64_t)range.step + 1; /* 2^bits */
    uint64_t steps = ((uint64_t)value - (uint64_t)range.low) / (uint64_t)range.step;
    return range.low + (int64_t)((steps & (span - 1)) * (uint64_t)range.step);
}

/* What a programmer's expression means for this operand: literals count words where the field does,
 * symbols are byte addresses. */
int64_t field_value(const OperandInfo *operand, const Expression *expression)
{
    if (expression->symbolic)
        return expression->value;
    if (operand->kind == OPERAND_TARGET)
        return (int64_t)((uint64_t)expression->value * 4);
    if (operand->kind == OPERAND_RUN)
        return (int64_t)((uint64_t)expression->value * 4 + ISA_REGION_BASE);
    return expression->value;
}

/* A worker CSR of the upper space counts from 0 in uget and uput, and is unreachable elsewhere. */
static bool csr_value(const FormInfo *form, const Expression *expression, int64_t *value)
{
    if (!expression->is_csr)
        return true;
    bool upper_form = form->lane == LANE_AUX;
    if (upper_form != (*value >= 0x100))
        return false;
    *value &= 0xff;
    return true;
}

static Misfit fit_register(const OperandInfo *operand, const Operand *text, Suffix suffix,
                           int32_t *out)
{
    const struct RegisterKind *kind = &register_kinds[operand->kind];
    if (!text->is_register || text->file != kind->file || text->span != kind->span ||
        text->broadcast != kind->broadcast)
        return WRONG_KIND;
    if (text->suffix != suffix)
        return text->suffix == SUFFIX_NONE ? NO_SUFFIX : WRONG_SUFFIX;
    *out = text->base;
    return value_fits(operand, text->base) ? FITS : OUT_OF_RANGE;
}

static Misfit fit_immediate(const FormInfo *form, int which, const Operand *text, bool force,
                            Pending *out)
{
    const OperandInfo *operand = &form->operands[which];
    if (text->is_register)
        return WRONG_KIND;
    const Expression *expression = &text->expression;
    if (!expression->constant) {
        if (operand->kind == OPERAND_HIGH)
            return WRONG_KIND;
        out->root[which] = expression->root;
        out->insn.operand[which] = (int32_t)isa_operand_range(operand).low;
        out->waits = true;
        return FITS;
    }
    int64_t value = field_value(operand, expression);
    if (!csr_value(form, expression, &value))
        return WRONG_KIND;
    if (!value_fits(operand, value)) {
        if (!force)
            return OUT_OF_RANGE;
        value = forced_value(operand, value);
    }
    out->insn.operand[which] = (int32_t)value;
    return FITS;
}

static Misfit fit_payload(const Operand *text, int part, Pending *out)
{
    static const struct {
        uint8_t shift, bits;
    } parts[] = {{0, 18}, {31, 1}, {18, 13}}; /* pointer value, source selector, source */
    if (!text || text->is_register || !text->expression.constant)
        return WRONG_KIND;
    int64_t value = text->expression.value;
    if (value < 0 || value >> parts[part].bits)
        return OUT_OF_RANGE;
    out->insn.payload |= (uint32_t)value << parts[part].shift;
    return FITS;
}

/* Which text operand stands at position i of the syntax: -1 for the $mzero of a short address. */
static int text_index(int i, bool short_address)
{
    return !short_address || i < 2 ? i : i == 2 ? -1 : i - 1;
}

/* "ld32 $m0, $m1, 4" is short for "ld32 $m0, $m1, $mzero, 4". */
static bool may_be_short(const IsaSyntax *syntax)
{
    const FormInfo *form = isa_form((Form)syntax->form);
    return syntax->count == 4 && syntax->operand[0] == 3 && syntax->operand[1] == 0 &&
           syntax->operand[2] == 1 && syntax->operand[3] == 2 &&
           form->operands[1].kind == OPERAND_M && !form->operands[1].output;
}

static Misfit fit_position(const IsaSyntax *syntax, int i, const Operand *text, bool force,
                           Pending *out)
{
    static const Operand zero = {.is_register = true, .file = 'm', .base = 15, .span = 1};
    const FormInfo *form = isa_form((Form)syntax->form);
    if (syntax->operand[i] >= SYNTAX_PAYLOAD)
        return fit_payload(text, syntax->operand[i] - SYNTAX_PAYLOAD, out);
    for (int which = 0; which < form->operand_count; which++) {
        if (syntax->source[which] != i)
            continue;
        const OperandInfo *operand = &form->operands[which];
        Misfit misfit = is_register_kind(operand)
                            ? fit_register(operand, text ? text : &zero, (Suffix)syntax->suffix[i],
                                           &out->insn.operand[which])
                            : fit_immediate(form, which, text ? text : &zero, force, out);
        if (misfit != FITS)
            return misfit;
    }
    return FITS;
}

/* How far a syntax got, for the message when none fits. */
typedef struct Failure {
    Misfit misfit;
    int position; /* text operand; -1: wrong number of operands */
} Failure;

/* force: immediates out of range lose bits instead (.allow_invalid_operands). */
static bool fit(const IsaSyntax *syntax, const Operands *operands, bool force, Pending *out,
                Failure *failure)
{
    const FormInfo *form = isa_form((Form)syntax->form);
    bool short_address = operands->count == 3 && may_be_short(syntax);
    out->insn = (Insn){.form = syntax->form, .words = form->flags & FORM_TWO_WORDS ? 2 : 1};
    out->waits = false;
    *failure = (Failure){WRONG_KIND, -1};
    if (operands->count != syntax->count - short_address)
        return false;
    for (int i = 0; i < form->operand_count; i++) {
        out->root[i] = NO_NODE;
        if (syntax->source[i] == SYNTAX_FIXED)
            out->insn.operand[i] = syntax->fixed[i];
    }
    for (int i = 0; i < syntax->count; i++) {
        int index = text_index(i, short_address);
        failure->position = index < 0 ? i : index;
        failure->misfit =
            fit_position(syntax, i, index < 0 ? NULL : &operands->items[index], force, out);
        if (failure->misfit != FITS)
            return false;
    }
    return true;
}

/* ---- messages ---- */

static void describe(Text *out, const OperandInfo *operand)
{
    if (is_register_kind(operand)) {
        text_append(out, register_kinds[operand->kind].what);
        return;
    }
    OperandRange range = isa_operand_range(operand);
    if (operand->kind == OPERAND_TARGET)
        text_printf(out, "a label or a word address up to %lld", (long long)range.high / 4);
    else if (operand->kind == OPERAND_RUN)
        text_append(out, "a label or a word offset up to 65535");
    else if (range.step > 1)
        text_printf(out, "a multiple of 0x%llx up to 0x%llx", (long long)range.step,
                    (long long)range.high);
    else
        text_printf(out, "an immediate %lld..%lld", (long long)range.low, (long long)range.high);
}

/* What could stand at the position, over all ways that got there. */
static void list_expected(const Word *mnemonic, const Operands *operands, int position, Text *out)
{
    Pending pending;
    Failure failure;
    Text one = {0};
    for (const IsaSyntax *s = mnemonic->syntax; s; s = isa_syntax_next(s)) {
        if (s->use == SYNTAX_PRINT || fit(s, operands, false, &pending, &failure) ||
            failure.position != position)
            continue;
        bool short_address = operands->count == 3 && may_be_short(s);
        int i = short_address && position >= 2 ? position + 1 : position;
        one.count = 0;
        if (s->operand[i] < SYNTAX_PAYLOAD)
            describe(&one, &isa_form((Form)s->form)->operands[s->operand[i]]);
        else
            text_printf(&one, "a constant of the payload");
        if (!strstr(text_string(out), text_string(&one)))
            text_printf(out, "%s%s", out->count ? " or " : "", text_string(&one));
    }
    text_free(&one);
}

static void list_syntaxes(const Word *mnemonic, Text *out)
{
    for (const IsaSyntax *s = mnemonic->syntax; s; s = isa_syntax_next(s)) {
        Text one = {0};
        const char *syntax = isa_form((Form)s->form)->syntax;
        text_printf(&one, "%s", s->mnemonic);
        if (!strncmp(syntax, s->mnemonic, strlen(s->mnemonic)))
            text_append(&one, syntax + strcspn(syntax, " "));
        if (s->use != SYNTAX_PRINT && !strstr(text_string(out), text_string(&one)))
            text_printf(out, "%s%s", out->count ? " or " : "", text_string(&one));
        text_free(&one);
    }
}

static void report_misfit(Assembler *as, const Word *mnemonic, const Operands *operands,
                          const Failure *failure)
{
    Text expected = {0};
    if (failure->position < 0) {
        list_syntaxes(mnemonic, &expected);
        as_error_at(as, &as->statement, "%d operand%s, expected %s", operands->count,
                    operands->count == 1 ? "" : "s", text_string(&expected));
        text_free(&expected);
        return;
    }
    const Operand *operand =
        &operands
             ->items[failure->position < operands->count ? failure->position : operands->count - 1];
    list_expected(mnemonic, operands, failure->position, &expected);
    if (failure->misfit == NO_SUFFIX)
        as_error_at(as, &operand->at, "missing operand post-inc suffix");
    else if (failure->misfit == WRONG_SUFFIX)
        as_error_at(as, &operand->at, "invalid operand post-inc suffix");
    else if (failure->misfit == OUT_OF_RANGE && !operand->is_register)
        as_error_at(as, &operand->at, "immediate %lld is out of range, expected %s",
                    (long long)operand->expression.value, text_string(&expected));
    else
        as_error_at(as, &operand->at, "invalid operand for instruction %s, expected %s",
                    mnemonic->name, text_string(&expected));
    text_free(&expected);
}

/* ---- pseudo-instructions ---- */

/* ldconst $d, value: setzi, and an or for the high bits when there are any. */
static void load_constant(Assembler *as, const Operands *operands)
{
    const Operand *to = &operands->items[0], *what = &operands->items[1];
    if (operands->count != 2 || !to->is_register || to->span != 1 || to->broadcast || to->suffix ||
        what->is_register || !what->expression.constant) {
        as_error_at(as, &as->statement, "ldconst takes a register and a constant");
        return;
    }
    if (as->in_bundle) {
        as_error_at(as, &as->statement, "macro instruction in bundle");
        return;
    }
    int64_t value = what->expression.value;
    if (value > UINT32_MAX || value < INT32_MIN) {
        as_error_at(as, &what->at, "immediate is too large, expected 32 bits");
        return;
    }
    bool main = to->file == 'm';
    uint32_t high = (uint32_t)value & 0xfff00000;
    Pending pending = {.at = as->statement};
    pending.insn = (Insn){.form = main ? FORM_setzi_mmmn_zi : FORM_setzi_aaan_zi,
                          .words = 1,
                          .operand = {to->base, (int32_t)((uint32_t)value & 0xfffff)}};
    place_instruction(as, &pending);
    if (!high)
        return;
    pending.insn = (Insn){.form = main ? FORM_or_mmmn_iz : FORM_or_aaan_iz,
                          .words = 1,
                          .operand = {to->base, to->base, (int32_t)high}};
    place_instruction(as, &pending);
}

/* sub $d, $s, immediate: add of the negative. True when it was this. */
static bool subtract_immediate(Assembler *as, const Operands *operands)
{
    const Operand *o = operands->items;
    if (operands->count != 3 || !o[0].is_register || !o[1].is_register || o[2].is_register ||
        o[0].file != 'm' || o[1].file != 'm' || o[0].span != 1 || o[1].span != 1 || o[0].suffix ||
        o[1].suffix || !o[2].expression.constant)
        return false;
    int64_t value = o[2].expression.value;
    if (value < -32767 || value > 32767) {
        as_error_at(as, &o[2].at, "immediate is out of range, expected -32767..32767");
        return true;
    }
    Pending pending = {.at = as->statement,
                       .insn = {.form = FORM_add_mmmn_si,
                                .words = 1,
                                .operand = {o[0].base, o[1].base, (int32_t)-value}}};
    place_instruction(as, &pending);
    return true;
}

/* ---- the statement ---- */

static const char *mode_name(uint8_t mode)
{
    return mode == MODE_WORKER ? "Worker" : "Supervisor";
}

static bool mode_allows(Assembler *as, const FormInfo *form)
{
    if (form->mode == MODE_BOTH || form->mode == as->mode || as->lenience.mode == 2)
        return true;
    return rule_broken(as, as->lenience.mode, &as->statement, "instruction requires: %s mode",
                       mode_name(form->mode));
}

static bool usable_mode(const Assembler *as, const FormInfo *form)
{
    return form->mode == MODE_BOTH || form->mode == as->mode || as->lenience.mode != 0;
}

static bool is_word(const Word *word, const char *text)
{
    return !strcmp(word->name, text);
}

static bool failure_is_better(const Failure *a, const Failure *b)
{
    return a->position > b->position || (a->position == b->position && a->misfit > b->misfit);
}

typedef enum Choice { CHOICE_NONE, CHOICE_PLACED, CHOICE_WRONG_MODE } Choice;

/* Places the first form that fits; without one, *best tells how far the forms got. */
static Choice choose(Assembler *as, const Word *mnemonic, const Operands *operands, bool force,
                     Failure *best)
{
    Pending pending;
    Failure failure;
    const FormInfo *wrong_mode = NULL;
    *best = (Failure){WRONG_KIND, -1};
    for (const IsaSyntax *s = mnemonic->syntax; s; s = isa_syntax_next(s)) {
        const FormInfo *form = isa_form((Form)s->form);
        if (s->use == SYNTAX_PRINT)
            continue;
        if (!fit(s, operands, force, &pending, &failure)) {
            if (failure_is_better(&failure, best))
                *best = failure;
        } else if (usable_mode(as, form)) {
            pending.at = as->statement;
            if (mode_allows(as, form))
                place_instruction(as, &pending);
            return CHOICE_PLACED;
        } else {
            wrong_mode = form;
        }
    }
    if (!wrong_mode)
        return CHOICE_NONE;
    mode_allows(as, wrong_mode);
    return CHOICE_WRONG_MODE;
}

void assemble_instruction(Assembler *as, const Word *mnemonic)
{
    bool is_ldconst = is_word(mnemonic, "ldconst");
    if (!mnemonic->syntax && !is_ldconst) {
        as_error_at(as, &as->statement, "unknown instruction or macro '%s'", mnemonic->name);
        return;
    }
    Operands operands;
    Failure failure, ignored;
    if (!read_operands(as, &operands))
        return;
    if (is_ldconst) {
        load_constant(as, &operands);
        return;
    }
    if (choose(as, mnemonic, &operands, false, &failure) != CHOICE_NONE)
        return;
    if (is_word(mnemonic, "sub") && subtract_immediate(as, &operands))
        return;
    if (as->lenience.operands == 2 &&
        choose(as, mnemonic, &operands, true, &ignored) != CHOICE_NONE)
        return;
    report_misfit(as, mnemonic, &operands, &failure);
}
