/* statement.c - one statement after the other: labels, assignments, braces, and who does the rest.
 */
#include "as/assembler.h"

#include <ctype.h>
#include <string.h>

static void define_by_label(Assembler *as, Word *word)
{
    if (as->in_bundle && as->bundle_count)
        as_error(as, "label '%s' in the middle of a bundle", word->name);
    else
        define_label(as, symbol_of(as, word));
}

void assign_symbol(Assembler *as, Symbol *symbol, bool once)
{
    Position at = position_now(as);
    Expression expression;
    if (!parse_expression(as, &expression))
        return;
    if (symbol->defined && !symbol->builtin && (once || symbol->fixed || !symbol->variable)) {
        as_error_at(as, &at, "symbol '%s' is already defined", symbol->name);
        return;
    }
    symbol->builtin = false;
    symbol->defined = symbol->variable = true;
    symbol->fixed = once;
    symbol->section = NULL;
    symbol->root = NO_NODE;
    symbol->value = expression.value;
    if (expression.constant)
        return;
    Value value;
    if (evaluate(as, expression.root, &value) && !value.minus && !value.relocation && value.plus &&
        value.plus->defined && value.plus->section) {
        symbol->section = value.plus->section;
        symbol->value = value.plus->value + value.constant;
        return;
    }
    symbol->root = expression.root;
    as->node_mark = (uint32_t)as->nodes.count;
}

static void run_directive(Assembler *as, const Word *word)
{
    if (word->directive)
        word->directive->handle(as, word->directive->argument);
    else
        as_error_at(as, &as->statement, "unknown directive %s", word->name);
}

/* True when the next part may follow without a separator. */
static bool statement_of_word(Assembler *as)
{
    Word *word = token_word(as);
    next_token(as);
    if (accept(as, ':')) {
        define_by_label(as, word);
        return true;
    }
    if (accept(as, '='))
        assign_symbol(as, symbol_of(as, word), false);
    else if (word->macro)
        macro_call(as, word->macro);
    else if (word->name[0] == '.')
        run_directive(as, word);
    else
        assemble_instruction(as, word);
    return false;
}

static bool statement_part(Assembler *as)
{
    as->statement = position_now(as);
    as->statement_line = as->frame->line_start;
    if (as->token.kind == TOKEN_WORD)
        return statement_of_word(as);
    if (as->token.kind == TOKEN_INTEGER) {
        uint64_t number = as->token.value;
        next_token(as);
        if (accept(as, ':')) {
            define_local(as, number);
            return true;
        }
    } else if (accept(as, '{')) {
        bundle_begin(as);
        return true;
    } else if (accept(as, '}')) {
        bundle_end(as);
        return false;
    }
    as_error(as, "expected a label, a directive or an instruction");
    return false;
}

static void statement(Assembler *as)
{
    as->nodes.count = as->node_mark;
    while (!at_end(as) && !as->stop) {
        const Frame *frame = as->frame;
        uint32_t errors = as->error_count;
        bool more = statement_part(as);
        if (as->frame != frame) /* a macro, a repetition or an include was entered */
            return;
        bool closes = as->token.kind == TOKEN_OPERATOR && as->token.op == '}';
        if (as->error_count == errors && !at_end(as) && !more && !closes)
            as_error(as, "unexpected '%.*s', expected the end of the statement",
                     (int)(as->frame->cursor - as->token.start), as->token.start);
        if (as->error_count != errors) {
            skip_statement(as);
            return;
        }
    }
}

/* "# 12 "file.S" 1" of the C preprocessor: the next line is line 12 of file.S. */
static void line_marker(Assembler *as, const char *c, const char *end)
{
    Frame *frame = as->frame;
    uint32_t line = 0;
    for (; c < end && isdigit((unsigned char)*c); c++)
        line = line * 10 + (uint32_t)(*c - '0');
    frame->line = line - 1;
    const char *open = memchr(c, '"', (size_t)(end - c));
    const char *close = open ? memchr(open + 1, '"', (size_t)(end - open - 1)) : NULL;
    if (close)
        frame->name = arena_printf(as->arena, "%.*s", (int)(close - open - 1), open + 1);
}

/* A line that starts with #: a comment, unless the C preprocessor would have had a use for it. */
static void hash_line(Assembler *as, const char *c)
{
    static const char *const preprocessor[] = {"define", "undef", "if",    "ifdef", "ifndef",
                                               "elif",   "else",  "endif", "error"};
    const char *end = memchr(c, '\n', (size_t)(as->frame->end - c));
    if (!end)
        end = as->frame->end;
    const char *word = c + 1;
    while (word < end && (*word == ' ' || *word == '\t'))
        word++;
    size_t length = 0;
    while (word + length < end && isalpha((unsigned char)word[length]))
        length++;
    if (word < end && isdigit((unsigned char)*word)) {
        line_marker(as, word, end);
    } else if (length == 7 && !memcmp(word, "include", 7) && !skipping(as)) {
        const char *open = word + 7;
        while (open < end && *open != '"' && *open != '<')
            open++;
        const char *close = open + 1;
        while (close < end && *close != '"' && *close != '>')
            close++;
        as->frame->cursor = end;
        as->statement = position_now(as);
        if (close < end)
            push_include(as, open + 1, (size_t)(close - open - 1));
        else
            as_error(as, "#include needs a name");
        return;
    }
    for (size_t i = 0; word == c + 1 && i < countof(preprocessor); i++)
        if (length == strlen(preprocessor[i]) && !memcmp(word, preprocessor[i], length)) {
            as->token.start = c;
            as_error(as, "#%s: run the C preprocessor first (--cpp), or use .set, .macro and .if",
                     preprocessor[i]);
        }
    as->frame->cursor = end;
}

/* Steps over the separator; true when a line begins. */
static bool next_line(Assembler *as)
{
    Frame *frame = as->frame;
    bool newline = *frame->cursor++ == '\n';
    if (newline) {
        frame->line++;
        if (frame->wrap && frame->line == frame->body_line + frame->wrap)
            frame->line = frame->body_line;
        frame->line_start = frame->cursor;
    }
    return newline;
}

void assemble_statements(Assembler *as)
{
    for (bool line_begins = true; !as->stop;) {
        Frame *frame = as->frame;
        if (frame->cursor >= frame->end) {
            if (!pop_frame(as))
                break;
            line_begins = false;
            continue;
        }
        if (*frame->cursor == '\n' || *frame->cursor == ';') {
            line_begins = next_line(as);
            continue;
        }
        if (line_begins || frame->cursor == frame->line_start) {
            const char *c = frame->cursor;
            while (c < frame->end && (*c == ' ' || *c == '\t'))
                c++;
            line_begins = false;
            if (c < frame->end && *c == '#') {
                as->token = (Token){.text = c, .start = c};
                hash_line(as, c);
                continue;
            }
        }
        next_token(as);
        if (at_end(as))
            continue;
        if (skipping(as)) {
            skip_inactive(as);
            continue;
        }
        statement(as);
        if (as->options->listing)
            listing_note(as);
    }
    if (as->in_bundle)
        as_error_at(as, &as->bundle_at, "instruction bundle without end");
}
