/* macro.c - .macro, .rept, .irp, .irpc: text that is written again.
 *
 * A body is the raw text between the lines; an expansion is a new frame over the body with the
 * arguments put in. Repetitions without arguments run over the body itself, without a copy. */
#include "as/assembler.h"

#include <ctype.h>
#include <string.h>

typedef struct Slice {
    const char *text;
    size_t length;
} Slice;

typedef ARRAY(Slice) Slices;

/* ---- raw text ---- */

static const char *raw_blanks(const char *c, const char *end)
{
    while (c < end) {
        if (*c == ' ' || *c == '\t' || *c == '\r') {
            c++;
        } else if (*c == '/' && c + 1 < end && c[1] == '*') {
            for (c += 2; c + 1 < end && !(c[0] == '*' && c[1] == '/');)
                c++;
            c = c + 1 < end ? c + 2 : end;
        } else {
            break;
        }
    }
    return c;
}

static const char *raw_string(const char *c, const char *end)
{
    for (c++; c < end && *c != '"' && *c != '\n';)
        c += *c == '\\' && c + 1 < end && c[1] != '\n' ? 2 : 1;
    return c < end && *c == '"' ? c + 1 : c;
}

/* The separator that ends the statement, or the end of the text. */
static const char *raw_statement_end(const char *c, const char *end)
{
    while (c < end && *c != '\n' && *c != ';') {
        if (*c == '"') {
            c = raw_string(c, end);
        } else if (*c == '#' || (*c == '/' && c + 1 < end && c[1] == '/')) {
            const char *newline = memchr(c, '\n', (size_t)(end - c));
            return newline ? newline : end;
        } else if (*c == '/' && c + 1 < end && c[1] == '*') {
            c = raw_blanks(c, end);
        } else {
            c++;
        }
    }
    return c;
}

/* The word that decides what a statement is: behind its labels. */
static Slice deciding_word(const char *c, const char *end)
{
    for (;;) {
        c = raw_blanks(c, end);
        const char *start = c;
        while (c < end && is_word_char(*c))
            c++;
        const char *colon = raw_blanks(c, end);
        if (c == start || colon >= end || *colon != ':')
            return (Slice){start, (size_t)(c - start)};
        c = colon + 1;
    }
}

static bool is_one_of(Slice word, const char *const *names)
{
    for (; *names; names++)
        if (strlen(*names) == word.length && !memcmp(*names, word.text, word.length))
            return true;
    return false;
}

static void move_cursor(Assembler *as, const char *to)
{
    Frame *frame = as->frame;
    /* `to` lies before the cursor when the token there is to be read again: a closing brace */
    for (const char *c = frame->cursor; c < to && (c = memchr(c, '\n', (size_t)(to - c)));) {
        frame->line++;
        frame->line_start = ++c;
    }
    frame->cursor = to;
    as->token = (Token){.kind = TOKEN_END, .text = to, .start = to};
}

typedef struct Body {
    const char *start, *end;
    uint32_t line;
} Body;

/* Takes the text from behind this statement to the closing directive and moves behind that. */
static bool take_body(Assembler *as, const char *const *openers, const char *const *closers,
                      Body *out)
{
    skip_statement(as);
    const Frame *frame = as->frame;
    const char *c = frame->cursor, *end = frame->end;
    out->line = frame->line + (c < end && *c == '\n');
    out->start = c = c < end ? c + 1 : end;
    for (int depth = 0; c < end;) {
        Slice word = deciding_word(c, end);
        if (is_one_of(word, openers)) {
            depth++;
        } else if (is_one_of(word, closers) && depth-- == 0) {
            out->end = c;
            move_cursor(as, word.text + word.length);
            next_token(as);
            return true;
        }
        c = raw_statement_end(c, end);
        c += c < end;
    }
    as_error_at(as, &as->statement, "no %s for this", closers[0]);
    move_cursor(as, end);
    return false;
}

static const char *const macro_openers[] = {".macro", NULL};
static const char *const macro_closers[] = {".endm", ".endmacro", NULL};
static const char *const repeat_openers[] = {".rept", ".rep", ".irp", ".irpc", NULL};
static const char *const repeat_closers[] = {".endr", NULL};

/* ---- arguments ---- */

static bool is_operator_char(char c)
{
    return c && strchr("+-*/%&|^<>=!~", c);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* One argument from c on: to a comma, a blank that no operator bridges, or the end. */
static const char *raw_argument(const char *c, const char *end, Slice *out)
{
    const char *start = c, *last = c; /* behind the last character that belongs to it */
    for (int depth = 0; c < end;) {
        if (*c == '"') {
            last = c = raw_string(c, end);
            continue;
        }
        if (depth == 0 && *c == ',')
            break;
        if (is_blank(*c)) {
            const char *next = raw_blanks(c, end);
            bool bridged = next < end && last > start &&
                           (is_operator_char(*next) || is_operator_char(last[-1]));
            if (depth == 0 && last > start && !bridged)
                break;
            c = next;
            continue;
        }
        depth += (*c == '(') - (*c == ')' && depth > 0);
        last = ++c;
    }
    *out = (Slice){start, (size_t)(last - start)};
    return c;
}

static const char *behind_comma(const char *c, const char *end, bool *comma)
{
    c = raw_blanks(c, end);
    *comma = c < end && *c == ',';
    return *comma ? raw_blanks(c + 1, end) : c;
}

static Slice without_quotes(Slice slice)
{
    if (slice.length >= 2 && slice.text[0] == '"' &&
        raw_string(slice.text, slice.text + slice.length) == slice.text + slice.length &&
        slice.text[slice.length - 1] == '"')
        return (Slice){slice.text + 1, slice.length - 2};
    return slice;
}

/* Where the arguments of this statement end: a closing brace ends them too, within a bundle. */
static const char *arguments_end(const Assembler *as, const char *c)
{
    const char *end = as->frame->end, *stop = raw_statement_end(c, end);
    for (const char *d = c; d < stop; d++) {
        if (*d == '"')
            d = raw_string(d, stop) - 1;
        else if (*d == '#' || (*d == '/' && d + 1 < stop && d[1] == '/'))
            return d;
        else if (*d == '}' && as->in_bundle)
            return d;
    }
    return stop;
}

static int find_parameter(const Macro *macro, const char *text, size_t length)
{
    for (uint32_t i = 0; i < macro->parameter_count; i++)
        if (macro->parameters[i].length == length &&
            !memcmp(macro->parameters[i].name, text, length))
            return (int)i;
    return -1;
}

/* "name=value": which parameter is it, and where does the value begin? */
static int keyword(const Macro *macro, const char *c, const char *end, const char **value)
{
    const char *word = c;
    while (c < end && is_word_char(*c))
        c++;
    const char *equal = raw_blanks(c, end);
    if (c == word || equal >= end || *equal != '=' || (equal + 1 < end && equal[1] == '='))
        return -1;
    *value = raw_blanks(equal + 1, end);
    return find_parameter(macro, word, (size_t)(c - word));
}

static bool bind_arguments(Assembler *as, const Macro *macro, const char *c, const char *end,
                           Slice *values)
{
    uint32_t position = 0;
    bool comma = false;
    for (c = raw_blanks(c, end); c < end || comma;) {
        const char *value;
        int which = keyword(macro, c, end, &value);
        if (which >= 0) {
            c = value;
        } else if (position < macro->parameter_count) {
            which = (int)position++;
        } else {
            as_error(as, "macro '%s' takes %u argument%s", macro->name, macro->parameter_count,
                     macro->parameter_count == 1 ? "" : "s");
            return false;
        }
        if (macro->parameters[which].rest) {
            while (end > c && is_blank(end[-1]))
                end--;
            values[which] = (Slice){c, (size_t)(end - c)};
            return true;
        }
        c = raw_argument(c, end, &values[which]);
        values[which] = without_quotes(values[which]);
        c = behind_comma(c, end, &comma);
    }
    return true;
}

/* ---- expansion ---- */

/* The longest parameter name at c that is not just the start of a longer word. */
static int parameter_at(const Parameter *parameters, uint32_t count, const char *c, const char *end,
                        size_t *length)
{
    int found = -1;
    *length = 0;
    for (uint32_t i = 0; i < count; i++) {
        size_t n = parameters[i].length;
        if (n <= *length || (size_t)(end - c) < n || memcmp(parameters[i].name, c, n) != 0)
            continue;
        if (c + n < end && (isalnum((unsigned char)c[n]) || c[n] == '_'))
            continue;
        found = (int)i;
        *length = n;
    }
    return found;
}

/* False when the text becomes too long. */
static bool substitute(Assembler *as, Text *out, const char *body, size_t body_length,
                       const Parameter *parameters, uint32_t count, const Slice *values)
{
    for (const char *c = body, *end = body + body_length; c < end;) {
        const char *backslash = memchr(c, '\\', (size_t)(end - c));
        const char *stop = backslash ? backslash : end;
        array_append(out, c, (size_t)(stop - c));
        if (out->count > EXPANSION_LIMIT)
            return false;
        if (!backslash)
            break;
        c = backslash + 1;
        size_t length;
        int which = parameter_at(parameters, count, c, end, &length);
        if (which >= 0) {
            array_append(out, values[which].text, values[which].length);
            c += length;
        } else if (c < end && *c == '@') {
            text_printf(out, "%llu", (unsigned long long)as->macro_calls);
            c++;
        } else if (c + 1 < end && c[0] == '(' && c[1] == ')') {
            c += 2;
        } else {
            array_push(out, '\\');
        }
    }
    return true;
}

static bool push_expansion(Assembler *as, FrameKind kind, const char *what, const char *name,
                           uint32_t line, Text *text, bool complete)
{
    bool pushed = false;
    if (!complete)
        as_error(as, "%s expands to more than %d MiB of text", what, EXPANSION_LIMIT >> 20);
    else if (text->count)
        pushed = push_text(as, kind, what, name, arena_copy(as->arena, text->items, text->count, 1),
                           text->count, line);
    text_free(text);
    return pushed;
}

void macro_call(Assembler *as, Macro *macro)
{
    const char *start = as->token.start, *end = arguments_end(as, start);
    Slice *values = arena_array(as->arena, Slice, macro->parameter_count + 1);
    bool good = bind_arguments(as, macro, start, end, values);
    move_cursor(as, end);
    if (!good)
        return;
    for (uint32_t i = 0; i < macro->parameter_count; i++) {
        const Parameter *parameter = &macro->parameters[i];
        if (values[i].length)
            continue;
        if (parameter->required) {
            as_error_at(as, &as->statement, "macro '%s' needs a value for '%s'", macro->name,
                        parameter->name);
            return;
        }
        values[i] = (Slice){parameter->standard, parameter->standard_length};
    }
    Text text = {0};
    bool complete = substitute(as, &text, macro->body, macro->body_length, macro->parameters,
                               macro->parameter_count, values);
    as->macro_calls++;
    push_expansion(as, FRAME_MACRO, macro->name, macro->body_name, macro->body_line, &text,
                   complete);
}

/* ---- directives ---- */

static bool read_parameter(Assembler *as, Parameter *out)
{
    if (as->token.kind != TOKEN_WORD) {
        as_error(as, "expected the name of a parameter");
        return false;
    }
    *out = (Parameter){.name = token_word(as)->name, .length = as->token.length};
    next_token(as);
    if (accept(as, ':')) {
        out->required = as->token.length == 3 && !memcmp(as->token.text, "req", 3);
        out->rest = as->token.length == 6 && !memcmp(as->token.text, "vararg", 6);
        if (!out->required && !out->rest) {
            as_error(as, "expected req or vararg");
            return false;
        }
        next_token(as);
    }
    if (as->token.kind == TOKEN_OPERATOR && as->token.op == '=') {
        const Frame *frame = as->frame;
        const char *c = raw_blanks(frame->cursor, frame->end);
        Slice value;
        c = raw_argument(c, arguments_end(as, c), &value);
        value = without_quotes(value);
        out->standard = value.text;
        out->standard_length = (uint32_t)value.length;
        move_cursor(as, c);
        next_token(as);
    }
    return true;
}

void macro_define(Assembler *as, int unused)
{
    (void)unused;
    if (as->token.kind != TOKEN_WORD) {
        as_error(as, "expected the name of the macro");
        return;
    }
    Word *word = token_word(as);
    ARRAY(Parameter) parameters = {0};
    next_token(as);
    accept(as, ',');
    bool good = true;
    while (good && !at_end(as)) {
        Parameter parameter;
        if (parameters.count && parameters.items[parameters.count - 1].rest) {
            as_error(as, "a vararg parameter must be the last one");
            good = false;
        } else if ((good = read_parameter(as, &parameter))) {
            array_push(&parameters, parameter);
            accept(as, ',');
        }
    }
    Macro *macro = arena_new(as->arena, Macro);
    Body body;
    if (take_body(as, macro_openers, macro_closers, &body) && good) {
        macro->name = word->name;
        macro->parameters = arena_array(as->arena, Parameter, parameters.count + 1);
        for (size_t i = 0; i < parameters.count; i++)
            macro->parameters[i] = parameters.items[i];
        macro->parameter_count = (uint32_t)parameters.count;
        macro->body = body.start;
        macro->body_length = (size_t)(body.end - body.start);
        macro->body_name = as->frame->name;
        macro->body_line = body.line;
        if (word->macro)
            as_error_at(as, &as->statement, "macro '%s' is already defined", word->name);
        else
            word->macro = macro;
    }
    array_free(&parameters);
}

void macro_stray_end(Assembler *as, int unused)
{
    (void)unused;
    as_error_at(as, &as->statement, "this closes nothing");
}

/* Leaves the innermost macro at once. */
void macro_exit(Assembler *as, int unused)
{
    (void)unused;
    const Frame *frame = as->frame;
    while (frame && frame->kind == FRAME_REPEAT)
        frame = frame->parent;
    if (!frame || frame->kind != FRAME_MACRO) {
        as_error(as, ".exitm outside of a macro");
        return;
    }
    for (bool last = false; !last;) {
        last = as->frame == frame;
        as->conditions.count = as->frame->conditions;
        as->frame->remaining = 0;
        as->frame->cursor = as->frame->end;
        if (!last)
            pop_frame(as);
    }
    as->token = (Token){.kind = TOKEN_END, .text = as->frame->cursor, .start = as->frame->cursor};
}

void macro_purge(Assembler *as, int unused)
{
    (void)unused;
    Word *word = as->token.kind == TOKEN_WORD ? token_word(as) : NULL;
    if (!word || !word->macro) {
        as_error(as, "no macro of this name");
        return;
    }
    word->macro = NULL;
    next_token(as);
}

void macro_repeat(Assembler *as, int unused)
{
    (void)unused;
    int64_t count = 0;
    bool good = parse_constant(as, "the number of repetitions", &count);
    if (good && (count < 0 || count > EXPANSION_LIMIT / 16)) {
        as_error(as, "%lld repetitions are not possible", (long long)count);
        good = false;
    }
    Body body;
    if (take_body(as, repeat_openers, repeat_closers, &body) && good)
        push_repeat(as, ".rept", body.start, body.end, body.line, (uint32_t)count);
}

static uint32_t lines_in(const char *c, const char *end)
{
    uint32_t lines = 0;
    while (c < end && (c = memchr(c, '\n', (size_t)(end - c)))) {
        lines++;
        c++;
    }
    return lines;
}

static void read_values(Assembler *as, bool characters, Slices *values)
{
    const char *c = as->token.start, *end = arguments_end(as, c);
    bool comma = true;
    c = raw_blanks(c, end);
    while (characters && c < end && !is_blank(*c)) {
        array_push(values, (Slice){c, 1});
        c++;
    }
    while (!characters && (c < end || (comma && values->count))) {
        Slice value;
        c = raw_argument(c, end, &value);
        value = without_quotes(value);
        array_push(values, value);
        c = behind_comma(c, end, &comma);
    }
    if (values->count == 0) /* as in GNU as: once, with nothing */
        array_push(values, (Slice){c, 0});
}

void macro_for_each(Assembler *as, int characters)
{
    const char *what = characters ? ".irpc" : ".irp";
    Parameter parameter = {0};
    Slices values = {0};
    bool good = as->token.kind == TOKEN_WORD;
    if (good) {
        parameter = (Parameter){.name = token_word(as)->name, .length = as->token.length};
        next_token(as);
        accept(as, ',');
        read_values(as, characters, &values);
    } else {
        as_error(as, "expected the name of a parameter");
    }
    const char *name = as->frame->name;
    Body body;
    if (take_body(as, repeat_openers, repeat_closers, &body) && good) {
        Text text = {0};
        bool complete = true;
        for (size_t i = 0; i < values.count && complete; i++)
            complete = substitute(as, &text, body.start, (size_t)(body.end - body.start),
                                  &parameter, 1, &values.items[i]);
        if (push_expansion(as, FRAME_REPEAT, what, name, body.line, &text, complete)) {
            as->frame->body_line = body.line;
            as->frame->wrap = lines_in(body.start, body.end);
        }
    }
    array_free(&values);
}
