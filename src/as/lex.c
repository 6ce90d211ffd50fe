/* lex.c - tokens of the current frame. A newline is not consumed here: it ends the statement, and
 * the statement loop steps over it. Comments are //, # to the end of the line, and C's. */
#include "as/assembler.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t word_chars[256] = {
    ['0'] = 2, ['1'] = 2, ['2'] = 2, ['3'] = 2, ['4'] = 2, ['5'] = 2, ['6'] = 2, ['7'] = 2,
    ['8'] = 2, ['9'] = 2, ['a'] = 1, ['b'] = 1, ['c'] = 1, ['d'] = 1, ['e'] = 1, ['f'] = 1,
    ['g'] = 1, ['h'] = 1, ['i'] = 1, ['j'] = 1, ['k'] = 1, ['l'] = 1, ['m'] = 1, ['n'] = 1,
    ['o'] = 1, ['p'] = 1, ['q'] = 1, ['r'] = 1, ['s'] = 1, ['t'] = 1, ['u'] = 1, ['v'] = 1,
    ['w'] = 1, ['x'] = 1, ['y'] = 1, ['z'] = 1, ['A'] = 1, ['B'] = 1, ['C'] = 1, ['D'] = 1,
    ['E'] = 1, ['F'] = 1, ['G'] = 1, ['H'] = 1, ['I'] = 1, ['J'] = 1, ['K'] = 1, ['L'] = 1,
    ['M'] = 1, ['N'] = 1, ['O'] = 1, ['P'] = 1, ['Q'] = 1, ['R'] = 1, ['S'] = 1, ['T'] = 1,
    ['U'] = 1, ['V'] = 1, ['W'] = 1, ['X'] = 1, ['Y'] = 1, ['Z'] = 1, ['_'] = 1, ['.'] = 1,
    ['$'] = 4, /* within a word */
};

bool is_word_char(char c)
{
    return word_chars[(uint8_t)c] != 0;
}

static bool starts_word(char c)
{
    return word_chars[(uint8_t)c] == 1;
}

/* Blanks and comments; newlines only within C comments. */
static const char *skip_blanks(Assembler *as, const char *c, const char *end)
{
    Frame *frame = as->frame;
    while (c < end) {
        if (*c == ' ' || *c == '\t' || *c == '\r' || *c == '\f' || *c == '\v') {
            c++;
        } else if (*c == '#' || (*c == '/' && c + 1 < end && c[1] == '/')) {
            const char *newline = memchr(c, '\n', (size_t)(end - c));
            return newline ? newline : end;
        } else if (*c == '/' && c + 1 < end && c[1] == '*') {
            for (c += 2; c + 1 < end && !(c[0] == '*' && c[1] == '/'); c++)
                if (*c == '\n') {
                    frame->line++;
                    frame->line_start = c + 1;
                }
            if (c + 1 >= end)
                as_error(as, "a comment is not closed");
            c = c + 1 < end ? c + 2 : end;
        } else {
            break;
        }
    }
    return c;
}

static const char *lex_word(Token *token, const char *c, const char *end)
{
    uint32_t hash = 2166136261u;
    while (c < end && is_word_char(*c))
        hash = (hash ^ (uint8_t)*c++) * 16777619u;
    token->kind = TOKEN_WORD;
    token->hash = hash;
    return c;
}

uint32_t word_hash(const char *text, uint32_t length)
{
    uint32_t hash = 2166136261u;
    for (uint32_t i = 0; i < length; i++)
        hash = (hash ^ (uint8_t)text[i]) * 16777619u;
    return hash;
}

/* The error shows only where the token matters: text for macros may be anything. */
static void spoil(Token *token, const char *error)
{
    token->kind = TOKEN_BAD;
    token->error = error;
}

static bool is_h(const char *c, const char *end)
{
    return c < end && *c == 'h' && (c + 1 == end || !is_word_char(c[1]));
}

/* Digits, a fraction or an exponent, then perhaps h. The frame's text is followed by a zero or more
 * text, but a number never runs over its end: the character there is a separator or a zero. */
static const char *lex_float(Token *token, const char *c, const char *end)
{
    char digits[64];
    size_t length = 0;
    for (const char *d = c; d < end && length + 1 < sizeof digits; d++) {
        bool exponent_sign = (*d == '-' || *d == '+') && d > c && (d[-1] == 'e' || d[-1] == 'E');
        if (!isdigit((unsigned char)*d) && *d != '.' && *d != 'e' && *d != 'E' && !exponent_sign)
            break;
        digits[length++] = *d;
    }
    digits[length] = 0;
    char *stop;
    token->number = strtod(digits, &stop);
    token->kind = TOKEN_FLOAT;
    c += stop - digits;
    if (is_h(c, end)) {
        token->kind = TOKEN_HALF;
        token->value = half_literal(token->number);
        c++;
    } else if (c < end && *c == 'f' && (c + 1 == end || !is_word_char(c[1]))) {
        c++; /* 1.0f: a float all the same */
    }
    if (token->kind == TOKEN_FLOAT && isinf(token->number))
        spoil(token, "number is too large (infinity is inf)");
    return c;
}

static const char *lex_number(Token *token, const char *c, const char *end)
{
    const char *start = c;
    unsigned base = 10;
    if (*c == '0' && c + 2 < end && (c[1] == 'x' || c[1] == 'X') && isxdigit((unsigned char)c[2])) {
        base = 16;
        c += 2;
    } else if (*c == '0' && c + 2 < end && (c[1] == 'b' || c[1] == 'B') && (c[2] | 1) == '1') {
        base = 2;
        c += 2;
    }
    uint64_t value = 0;
    bool overflow = false;
    token->kind = TOKEN_INTEGER;
    for (; c < end; c++) {
        unsigned digit = isdigit((unsigned char)*c) ? (unsigned)(*c - '0')
                         : isxdigit((unsigned char)*c) && base == 16
                             ? (unsigned)(tolower((unsigned char)*c) - 'a') + 10
                             : 99;
        if (digit >= base)
            break;
        overflow |= __builtin_mul_overflow(value, base, &value) ||
                    __builtin_add_overflow(value, digit, &value);
    }
    char next = c < end ? *c : 0;
    if (base == 10 && (next == '.' || next == 'e' || next == 'E' || is_h(c, end)))
        return lex_float(token, start, end);
    if (base == 10 && (next == 'b' || next == 'f') && (c + 1 == end || !is_word_char(c[1]))) {
        token->kind = TOKEN_LOCAL;
        c++;
    } else if (base == 10 && *start == '0' && c > start + 1) {
        value = 0;
        for (const char *d = start; d < c; d++) {
            overflow |= *d > '7' || value >> 61;
            value = value << 3 | (unsigned)(*d - '0');
        }
    }
    if (c < end && is_word_char(*c)) {
        spoil(token, "malformed number");
        while (c < end && is_word_char(*c))
            c++;
    } else if (overflow) {
        spoil(token, "number is too large");
    }
    token->value = value;
    return c;
}

static const char *lex_string(Token *token, const char *c, const char *end)
{
    token->kind = TOKEN_STRING;
    token->text = ++c;
    while (c < end && *c != '"' && *c != '\n')
        c += *c == '\\' && c + 1 < end && c[1] != '\n' ? 2 : 1;
    token->length = (uint32_t)(c - token->text);
    if (c < end && *c == '"')
        return c + 1;
    spoil(token, "string without closing quote");
    return c;
}

static int escape(const char **at, const char *end)
{
    static const char names[] = "abfnrtv\"'\\", values[] = "\a\b\f\n\r\t\v\"'\\";
    const char *c = *at, *found;
    int value;
    if (*c == 'x' && c + 1 < end && isxdigit((unsigned char)c[1])) {
        for (value = 0, c++; c < end && isxdigit((unsigned char)*c); c++)
            value =
                (value << 4 | (isdigit((unsigned char)*c) ? *c - '0' : (tolower(*c) - 'a') + 10)) &
                0xff;
    } else if (*c >= '0' && *c <= '7') {
        value = 0;
        for (int i = 0; i < 3 && c < end && *c >= '0' && *c <= '7'; i++)
            value = value << 3 | (*c++ - '0');
    } else {
        found = *c ? strchr(names, *c) : NULL;
        value = found ? values[found - names] : *c;
        c++;
    }
    *at = c;
    return value & 0xff;
}

const char *string_bytes(Assembler *as, const Token *token, size_t *length)
{
    char *out = arena_alloc(as->arena, token->length + 1, 1);
    const char *c = token->text, *end = c + token->length;
    size_t count = 0;
    while (c < end) {
        if (*c == '\\' && c + 1 < end) {
            c++;
            out[count++] = (char)escape(&c, end);
        } else {
            out[count++] = *c++;
        }
    }
    out[count] = 0;
    *length = count;
    return out;
}

static const char *lex_character(Token *token, const char *c, const char *end)
{
    token->kind = TOKEN_INTEGER;
    c++;
    if (c < end && *c == '\\' && c + 1 < end && c[1] != '\n') {
        c++;
        token->value = (uint64_t)escape(&c, end);
    } else if (c < end && *c != '\n') {
        token->value = (uint8_t)*c++;
    }
    if (c < end && *c == '\'')
        return c + 1;
    spoil(token, "character without closing quote");
    return c;
}

static const char *lex_operator(Token *token, const char *c, const char *end)
{
    static const struct {
        char text[3];
        int op;
    } pairs[] = {
        {"<<", OP_LEFT},    {">>", OP_RIGHT},      {"==", OP_EQUAL},         {"!=", OP_UNEQUAL},
        {"<>", OP_UNEQUAL}, {"<=", OP_LESS_EQUAL}, {">=", OP_GREATER_EQUAL}, {"&&", OP_AND},
        {"||", OP_OR},      {"++", OP_INCREMENT},  {"+=", OP_ADD_ASSIGN},
    };
    token->kind = TOKEN_OPERATOR;
    token->op = (uint8_t)*c;
    if (c + 1 < end)
        for (size_t i = 0; i < countof(pairs); i++)
            if (c[0] == pairs[i].text[0] && c[1] == pairs[i].text[1]) {
                token->op = pairs[i].op;
                return c + 2;
            }
    return c + 1;
}

void next_token(Assembler *as)
{
    Frame *frame = as->frame;
    Token *token = &as->token;
    const char *end = frame->end, *c = skip_blanks(as, frame->cursor, end);
    token->text = token->start = c;
    token->length = 0;
    if (c >= end || *c == '\n' || *c == ';') {
        token->kind = TOKEN_END;
        frame->cursor = c;
        return;
    }
    const char *start = c;
    if (starts_word(*c)) {
        c = lex_word(token, c, end);
    } else if (isdigit((unsigned char)*c)) {
        c = lex_number(token, c, end);
    } else if (*c == '$' && c + 1 < end && starts_word(c[1])) {
        c = lex_word(token, c + 1, end);
        token->kind = TOKEN_REGISTER;
        token->text = ++start;
    } else if (*c == '"') {
        c = lex_string(token, c, end);
        frame->cursor = c;
        return;
    } else if (*c == '\'') {
        c = lex_character(token, c, end);
    } else {
        c = lex_operator(token, c, end);
    }
    token->length = (uint32_t)(c - start);
    frame->cursor = c;
}

bool accept(Assembler *as, int op)
{
    if (as->token.kind != TOKEN_OPERATOR || as->token.op != op)
        return false;
    next_token(as);
    return true;
}

bool expect(Assembler *as, int op, const char *what)
{
    if (accept(as, op))
        return true;
    as_error(as, "expected %s", what);
    return false;
}

bool at_end(const Assembler *as)
{
    return as->token.kind == TOKEN_END;
}

void skip_statement(Assembler *as)
{
    Frame *frame = as->frame;
    const char *c = frame->cursor, *end = frame->end;
    while (c < end && as->token.kind != TOKEN_END) {
        c = skip_blanks(as, c, end);
        if (c >= end || *c == '\n' || *c == ';')
            break;
        if (*c == '"') {
            for (c++; c < end && *c != '"' && *c != '\n';)
                c += *c == '\\' && c + 1 < end && c[1] != '\n' ? 2 : 1;
            c += c < end && *c == '"';
        } else {
            c++;
        }
    }
    frame->cursor = c;
    as->token = (Token){.kind = TOKEN_END, .text = c, .start = c};
}
