/* condition.c - .if and its relatives. Lines of a branch not taken are read only for conditions. */
#include "as/assembler.h"

#include <string.h>

bool skipping(const Assembler *as)
{
    return as->conditions.count && !as->conditions.items[as->conditions.count - 1].active;
}

typedef struct Slice {
    const char *text;
    size_t length;
} Slice;

static Slice trimmed(const char *from, const char *to)
{
    while (from < to && (*from == ' ' || *from == '\t' || *from == '\r'))
        from++;
    while (to > from && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r'))
        to--;
    return (Slice){from, (size_t)(to - from)};
}

/* The raw text from the token to the end of the statement. */
static Slice rest_of_statement(Assembler *as)
{
    const char *from = as->token.start;
    skip_statement(as);
    return trimmed(from, as->token.text);
}

static bool compare_raw(Assembler *as)
{
    Slice rest = rest_of_statement(as);
    const char *comma = memchr(rest.text, ',', rest.length);
    if (!comma) {
        as_error(as, "expected two texts with a comma between them");
        return false;
    }
    Slice a = trimmed(rest.text, comma), b = trimmed(comma + 1, rest.text + rest.length);
    return a.length == b.length && !memcmp(a.text, b.text, a.length);
}

static bool compare_strings(Assembler *as)
{
    Token first = as->token;
    next_token(as);
    bool good = first.kind == TOKEN_STRING && accept(as, ',') && as->token.kind == TOKEN_STRING;
    Token second = as->token;
    if (!good) {
        as_error(as, "expected two strings with a comma between them");
        return false;
    }
    next_token(as);
    return first.length == second.length && !memcmp(first.text, second.text, first.length);
}

static bool name_is_defined(Assembler *as)
{
    if (as->token.kind != TOKEN_WORD && as->token.kind != TOKEN_STRING) {
        as_error(as, "expected a symbol");
        return false;
    }
    const Token *token = &as->token;
    Symbol *symbol = symbol_of(
        as, word_of(as, token->text, token->length, word_hash(token->text, token->length)));
    next_token(as);
    return symbol->defined;
}

static bool number_condition(Assembler *as, int kind)
{
    int64_t value = 0;
    if (!parse_constant(as, "the condition", &value))
        return false;
    switch (kind) {
    case IF_ZERO:
        return value == 0;
    case IF_LESS:
        return value < 0;
    case IF_GREATER:
        return value > 0;
    case IF_LESS_EQUAL:
        return value <= 0;
    case IF_GREATER_EQUAL:
        return value >= 0;
    default:
        return value != 0;
    }
}

static bool condition_holds(Assembler *as, int kind)
{
    switch (kind) {
    case IF_DEFINED:
        return name_is_defined(as);
    case IF_NOT_DEFINED:
        return !name_is_defined(as);
    case IF_SAME:
        return compare_raw(as);
    case IF_DIFFERENT:
        return !compare_raw(as);
    case IF_BLANK:
        return rest_of_statement(as).length == 0;
    case IF_NOT_BLANK:
        return rest_of_statement(as).length != 0;
    case IF_EQUAL_STRINGS:
        return compare_strings(as);
    case IF_UNEQUAL_STRINGS:
        return !compare_strings(as);
    default:
        return number_condition(as, kind);
    }
}

static void open_condition(Assembler *as, int kind, bool evaluate_it)
{
    if (as->conditions.count >= NESTING_LIMIT) {
        as_error(as, "more than %d .if within each other", NESTING_LIMIT);
        as->stop = true;
        return;
    }
    Condition open = {.parent_active = !skipping(as), .at = as->statement};
    open.active = open.taken = evaluate_it && condition_holds(as, kind);
    array_push(&as->conditions, open);
}

void condition_if(Assembler *as, int kind)
{
    open_condition(as, kind, true);
}

/* The innermost .if of this frame, or an error. */
static Condition *innermost(Assembler *as, const char *what)
{
    if (as->conditions.count <= as->frame->conditions) {
        as_error(as, "%s without .if", what);
        return NULL;
    }
    return &as->conditions.items[as->conditions.count - 1];
}

void condition_else_if(Assembler *as, int unused)
{
    (void)unused;
    Condition *open = innermost(as, ".elseif");
    if (!open)
        return;
    if (open->has_else)
        as_error(as, ".elseif after .else");
    if (!open->parent_active || open->taken || open->has_else) {
        open->active = false;
        skip_statement(as);
        return;
    }
    bool holds = condition_holds(as, IF_NOT_ZERO);
    open->active = open->taken = holds;
}

void condition_else(Assembler *as, int unused)
{
    (void)unused;
    Condition *open = innermost(as, ".else");
    if (!open)
        return;
    if (open->has_else)
        as_error(as, "second .else");
    open->has_else = true;
    open->active = open->parent_active && !open->taken;
    open->taken = true;
}

void condition_end(Assembler *as, int unused)
{
    (void)unused;
    if (innermost(as, ".endif"))
        as->conditions.count--;
}

void skip_inactive(Assembler *as)
{
    as->statement = position_now(as);
    const Directive *directive = as->token.kind == TOKEN_WORD && as->token.text[0] == '.'
                                     ? find_directive(as->token.text, as->token.length)
                                     : NULL;
    if (directive && directive->handle == condition_if) {
        open_condition(as, directive->argument, false);
    } else if (directive &&
               (directive->handle == condition_else_if || directive->handle == condition_else ||
                directive->handle == condition_end)) {
        next_token(as);
        directive->handle(as, 0);
    }
    skip_statement(as);
}
