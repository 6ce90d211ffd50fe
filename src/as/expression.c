/* expression.c - expressions: folded while they are read, kept as nodes where later labels matter.
 *
 * A value is plus - minus + constant. Differences of labels in one section are constants as soon as
 * both are known; a symbol plus a constant becomes a relocation. Operators bind as in GNU as: * / %
 * << >> first, then | ^ &, then + -, comparisons (true is -1), && and ||. */
#include "as/assembler.h"

#include <math.h>
#include <string.h>

static bool parse_binary(Assembler *as, int level, Expression *out);

/* Round to nearest even, with subnormals; too large becomes infinity. */
uint16_t half_literal(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    value = fabs(value);
    if (isnan(value))
        return 0x7e00;
    if (value >= 65520)
        return sign | 0x7c00;
    int exponent = -14;
    if (value >= 0x1p-14)
        exponent = ilogb(value);
    double steps = nearbyint(ldexp(value, 10 - exponent)); /* exact scaling, one rounding */
    if (value < 0x1p-14)
        return (uint16_t)(sign | (uint16_t)steps);
    return (uint16_t)(sign + (((uint32_t)exponent + 15) << 10) + (uint32_t)steps - 1024);
}

static uint32_t new_node(Assembler *as, Node node)
{
    array_push(&as->nodes, node);
    return (uint32_t)as->nodes.count - 1;
}

uint32_t expression_root(Assembler *as, const Expression *expression)
{
    if (!expression->constant)
        return expression->root;
    return new_node(as, (Node){.op = NODE_CONSTANT, .value = expression->value});
}

static Expression constant_of(int64_t value)
{
    return (Expression){.constant = true, .value = value, .root = NO_NODE};
}

static Expression symbol_expression(Assembler *as, Symbol *symbol, int64_t offset)
{
    return (Expression){
        .symbolic = true,
        .root = new_node(as, (Node){.op = NODE_SYMBOL, .symbol = symbol, .value = offset})};
}

/* A variable stands for what it is now: it may be set again later. */
static Expression name_expression(Assembler *as, Symbol *symbol)
{
    symbol->used = true;
    if (!symbol->variable)
        return symbol_expression(as, symbol, 0);
    if (symbol->root != NO_NODE)
        return (Expression){.symbolic = true, .root = symbol->root};
    Expression value = constant_of(symbol->value);
    if (symbol->section)
        value = symbol_expression(as, symbol->section->symbol, symbol->value);
    value.symbolic = true;
    return value;
}

static bool csr_expression(Assembler *as, Expression *out)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)as->token.length, as->token.text);
    int number = isa_csr_number(name, as->mode);
    if (number < 0) {
        if (isa_csr_number(name, MODE_BOTH) >= 0)
            as_error(as, "The CSR $%s cannot be used in %s mode.", name,
                     as->mode == MODE_WORKER ? "Worker" : "Supervisor");
        else
            as_error(as, "unknown register $%s", name);
        return false;
    }
    *out = constant_of(number);
    out->is_csr = true;
    next_token(as);
    return true;
}

static bool parse_word(Assembler *as, Expression *out)
{
    static const struct {
        char name[6];
        uint16_t bits;
    } halves[] = {{"infh", 0x7c00}, {"nanh", 0x7e00}};
    const Token *token = &as->token;
    if (token->length == 1 && token->text[0] == '.') {
        *out = symbol_expression(as, as->section->symbol, (int64_t)as->section->bytes);
        next_token(as);
        return true;
    }
    for (size_t i = 0; i < countof(halves); i++)
        if (token->length == strlen(halves[i].name) &&
            memcmp(token->text, halves[i].name, token->length) == 0) {
            *out = constant_of(halves[i].bits);
            out->half = true;
            next_token(as);
            return true;
        }
    *out = name_expression(as, symbol_of(as, token_word(as)));
    next_token(as);
    return true;
}

/* The variants a data word may ask for: (symbol)@abs19@s2. */
static bool parse_variant(Assembler *as, Expression *out)
{
    static const struct {
        const char *text;
        uint8_t relocation;
    } variants[] = {
        {"relative@16@s2", RELOC_RELATIVE_16_S2},
        {"abs18@s2", RELOC_18_S2},
        {"abs19@s2", RELOC_19_S2},
        {"abs@21", RELOC_21},
        {"abs16@s3", RELOC_16_S3},
        {"abs16@s4", RELOC_16_S4},
        {"abs16@s5", RELOC_16_S5},
    };
    const char *c = as->frame->cursor;
    size_t rest = (size_t)(as->frame->end - c);
    for (size_t i = 0; i < countof(variants); i++) {
        size_t length = strlen(variants[i].text);
        if (rest < length || memcmp(c, variants[i].text, length) != 0)
            continue;
        as->frame->cursor += length;
        next_token(as);
        uint32_t root = expression_root(as, out);
        *out = (Expression){
            .symbolic = true,
            .root = new_node(
                as, (Node){.op = NODE_VARIANT, .left = root, .value = variants[i].relocation})};
        return true;
    }
    as_error(as, "unknown relocation variant after @");
    return false;
}

static bool parse_unary(Assembler *as, Expression *out);

static bool apply_unary(Assembler *as, int op, Expression *out)
{
    if (op == '-' && out->half) {
        out->value ^= 0x8000;
        return true;
    }
    out->half = out->is_csr = false;
    if (out->constant) {
        out->value = op == '-'   ? (int64_t)(0 - (uint64_t)out->value)
                     : op == '~' ? ~out->value
                     : op == '!' ? !out->value
                                 : out->value;
        return true;
    }
    if (op != '+')
        out->root = new_node(as, (Node){.op = op == '-'   ? NODE_NEGATE
                                              : op == '~' ? NODE_COMPLEMENT
                                                          : NODE_NOT,
                                        .left = out->root});
    return true;
}

static bool parse_primary(Assembler *as, Expression *out)
{
    const Token *token = &as->token;
    switch (token->kind) {
    case TOKEN_INTEGER:
        *out = constant_of((int64_t)token->value);
        next_token(as);
        return true;
    case TOKEN_HALF:
        *out = constant_of((int64_t)token->value);
        out->half = true;
        next_token(as);
        return true;
    case TOKEN_FLOAT:
        as_error(as, "missing h suffix from float16 operand");
        return false;
    case TOKEN_LOCAL: {
        bool forward = token->text[token->length - 1] == 'f';
        Symbol *symbol = token->value > 0xffffff ? NULL : local_symbol(as, token->value, forward);
        if (!symbol) {
            as_error(as, "no local label %llu before this", (unsigned long long)token->value);
            return false;
        }
        *out = symbol_expression(as, symbol, 0);
        next_token(as);
        return true;
    }
    case TOKEN_WORD:
        return parse_word(as, out);
    case TOKEN_STRING: { /* a quoted symbol name */
        *out = name_expression(as, symbol_of(as, word_of(as, token->text, token->length,
                                                         word_hash(token->text, token->length))));
        next_token(as);
        return true;
    }
    case TOKEN_REGISTER:
        return csr_expression(as, out);
    default:
        as_error(as, "expected an expression");
        return false;
    }
}

static bool parse_unary(Assembler *as, Expression *out)
{
    if (++as->nesting > NESTING_LIMIT) {
        as_error(as, "expression is nested too deeply");
        as->nesting--;
        return false;
    }
    bool good;
    int op = as->token.kind == TOKEN_OPERATOR ? as->token.op : 0;
    if (op == '-' || op == '~' || op == '!' || op == '+') {
        next_token(as);
        good = parse_unary(as, out) && apply_unary(as, op, out);
    } else if (op == '(') {
        next_token(as);
        good = parse_binary(as, 0, out) && expect(as, ')', "')'");
        out->is_csr = false;
    } else {
        good = parse_primary(as, out);
    }
    as->nesting--;
    while (good && as->token.kind == TOKEN_OPERATOR && as->token.op == '@' &&
           as->frame->cursor < as->frame->end && is_word_char(*as->frame->cursor))
        good = parse_variant(as, out);
    return good;
}

static int level_of(int op)
{
    switch (op) {
    case OP_OR:
        return 1;
    case OP_AND:
        return 2;
    case OP_EQUAL:
    case OP_UNEQUAL:
    case OP_LESS_EQUAL:
    case OP_GREATER_EQUAL:
    case '<':
    case '>':
        return 3;
    case '+':
    case '-':
        return 4;
    case '|':
    case '^':
    case '&':
    case '!': /* a ! b is a | ~b */
        return 5;
    case '*':
    case '/':
    case '%':
    case OP_LEFT:
    case OP_RIGHT:
        return 6;
    default:
        return 0;
    }
}

/* False on a division by zero. */
static bool fold(int op, int64_t a, int64_t b, int64_t *out)
{
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch (op) {
    case '+':
        return *out = (int64_t)(x + y), true;
    case '-':
        return *out = (int64_t)(x - y), true;
    case '*':
        return *out = (int64_t)(x * y), true;
    case '/':
    case '%':
        if (b == 0)
            return false;
        if (b == -1)
            return *out = op == '/' ? (int64_t)(0 - x) : 0, true;
        return *out = op == '/' ? a / b : a % b, true;
    case '|':
        return *out = a | b, true;
    case '&':
        return *out = a & b, true;
    case '^':
        return *out = a ^ b, true;
    case '!':
        return *out = a | ~b, true;
    case OP_LEFT:
        return *out = y > 63 ? 0 : (int64_t)(x << y), true;
    case OP_RIGHT: /* logical, as the vendor's */
        return *out = y > 63 ? 0 : (int64_t)(x >> y), true;
    case OP_EQUAL:
        return *out = -(a == b), true;
    case OP_UNEQUAL:
        return *out = -(a != b), true;
    case '<':
        return *out = -(a < b), true;
    case '>':
        return *out = -(a > b), true;
    case OP_LESS_EQUAL:
        return *out = -(a <= b), true;
    case OP_GREATER_EQUAL:
        return *out = -(a >= b), true;
    case OP_AND:
        return *out = a && b, true;
    case OP_OR:
        return *out = a || b, true;
    default:
        return false;
    }
}

static bool join(Assembler *as, int op, Expression *left, const Expression *right)
{
    left->half = left->is_csr = false;
    left->symbolic |= right->symbolic;
    if ((op == OP_LEFT || op == OP_RIGHT) && right->constant &&
        (right->value < 0 || right->value > 63))
        as_warning(as, "shift count %lld is not between 0 and 63: the result is 0",
                   (long long)right->value);
    if (left->constant && right->constant) {
        if (fold(op, left->value, right->value, &left->value))
            return true;
        as_error(as, "division by zero");
        return false;
    }
    uint32_t a = expression_root(as, left), b = expression_root(as, right);
    left->constant = false;
    left->root = new_node(as, (Node){.op = op, .left = a, .right = b});
    Value value;
    if (evaluate(as, left->root, &value) && !value.plus && !value.minus && !value.relocation) {
        left->constant = true;
        left->value = value.constant;
    }
    return true;
}

static bool parse_binary(Assembler *as, int level, Expression *out)
{
    if (!parse_unary(as, out))
        return false;
    for (;;) {
        int op = as->token.kind == TOKEN_OPERATOR ? as->token.op : 0;
        int binds = level_of(op);
        if (binds == 0 || binds <= level)
            return true;
        next_token(as);
        Expression right;
        if (!parse_binary(as, binds, &right) || !join(as, op, out, &right))
            return false;
    }
}

bool parse_expression(Assembler *as, Expression *out)
{
    *out = constant_of(0);
    return parse_binary(as, 0, out);
}

const char *undefined_symbol(const Assembler *as, uint32_t root)
{
    uint32_t stack[64], depth = 0;
    stack[depth++] = root;
    for (int steps = 0; depth && steps < 1000; steps++) {
        const Node *node = &as->nodes.items[stack[--depth]];
        if (node->op == NODE_CONSTANT)
            continue;
        if (node->op == NODE_SYMBOL) {
            const Symbol *symbol = node->symbol;
            if (!symbol->defined)
                return symbol->name;
            if (symbol->root != NO_NODE && depth < countof(stack))
                stack[depth++] = symbol->root;
            continue;
        }
        bool unary = node->op == NODE_VARIANT || node->op == NODE_NEGATE ||
                     node->op == NODE_COMPLEMENT || node->op == NODE_NOT;
        if (!unary && depth < countof(stack))
            stack[depth++] = node->right;
        if (depth < countof(stack))
            stack[depth++] = node->left;
    }
    return NULL;
}

bool parse_constant(Assembler *as, const char *what, int64_t *out)
{
    Expression expression;
    Position at = position_now(as);
    if (!parse_expression(as, &expression))
        return false;
    if (!expression.constant) {
        const char *unknown = undefined_symbol(as, expression.root);
        if (unknown)
            as_error_at(as, &at, "%s must be known here, but '%s' is not defined yet", what,
                        unknown);
        else
            as_error_at(as, &at, "%s must be a constant, not an address", what);
        return false;
    }
    *out = expression.value;
    return true;
}

/* ---- evaluation ---- */

static void cancel(Value *value)
{
    Symbol *plus = value->plus, *minus = value->minus;
    if (!plus || !minus)
        return;
    bool same = plus == minus;
    if (!same && (!plus->defined || !minus->defined || plus->section != minus->section))
        return;
    if (!same)
        value->constant =
            (int64_t)((uint64_t)value->constant + (uint64_t)plus->value - (uint64_t)minus->value);
    value->plus = value->minus = NULL;
}

static bool evaluate_symbol(Assembler *as, const Node *node, Value *out)
{
    Symbol *symbol = node->symbol;
    *out = (Value){.constant = node->value};
    if (!symbol->variable) {
        out->plus = symbol;
        return true;
    }
    if (symbol->root != NO_NODE) {
        if (symbol->busy)
            return false; /* it is defined by itself */
        symbol->busy = true;
        bool good = evaluate(as, symbol->root, out);
        symbol->busy = false;
        out->constant = (int64_t)((uint64_t)out->constant + (uint64_t)node->value);
        return good;
    }
    out->constant = (int64_t)((uint64_t)out->constant + (uint64_t)symbol->value);
    out->plus = symbol->section ? symbol->section->symbol : NULL;
    return true;
}

static bool evaluate_sum(int op, const Value *a, const Value *b, Value *out)
{
    Symbol *b_plus = op == '+' ? b->plus : b->minus, *b_minus = op == '+' ? b->minus : b->plus;
    Value parts[2] = {*a, {.plus = b_plus, .minus = b_minus}};
    out->relocation = 0;
    fold(op, a->constant, b->constant, &out->constant);
    /* a.plus - b.minus and b.plus - a.minus may cancel; two of one sign can not stay. */
    Value first = {.plus = parts[0].plus, .minus = parts[1].minus};
    Value second = {.plus = parts[1].plus, .minus = parts[0].minus};
    cancel(&first);
    cancel(&second);
    if ((first.plus && second.plus) || (first.minus && second.minus))
        return false;
    out->plus = first.plus ? first.plus : second.plus;
    out->minus = first.minus ? first.minus : second.minus;
    out->constant =
        (int64_t)((uint64_t)out->constant + (uint64_t)first.constant + (uint64_t)second.constant);
    cancel(out);
    return true;
}

static bool evaluate_node(Assembler *as, const Node *node, Value *out)
{
    Value a, b;
    *out = (Value){0};
    switch (node->op) {
    case NODE_CONSTANT:
        out->constant = node->value;
        return true;
    case NODE_SYMBOL:
        return evaluate_symbol(as, node, out);
    case NODE_VARIANT:
        if (!evaluate(as, node->left, out) || out->minus || out->relocation)
            return false;
        out->relocation = (uint8_t)node->value;
        return true;
    case NODE_NEGATE:
        if (!evaluate(as, node->left, &a) || a.relocation)
            return false;
        *out = (Value){
            .constant = (int64_t)(0 - (uint64_t)a.constant), .plus = a.minus, .minus = a.plus};
        return true;
    case NODE_COMPLEMENT:
    case NODE_NOT:
        if (!evaluate(as, node->left, &a) || a.plus || a.minus || a.relocation)
            return false;
        out->constant = node->op == NODE_NOT ? !a.constant : ~a.constant;
        return true;
    default:
        if (!evaluate(as, node->left, &a) || !evaluate(as, node->right, &b) || a.relocation ||
            b.relocation)
            return false;
        if (node->op == '+' || node->op == '-')
            return evaluate_sum(node->op, &a, &b, out);
        if (a.plus || a.minus || b.plus || b.minus)
            return false;
        return fold(node->op, a.constant, b.constant, &out->constant);
    }
}

bool evaluate(Assembler *as, uint32_t root, Value *out)
{
    *out = (Value){0};
    if (++as->evaluations > EVALUATION_LIMIT) { /* .set x, x+x doubles the work with every line */
        as_error_at(as, &as->statement, "the expressions of this source are too complex");
        as->stop = true;
        return false;
    }
    if (++as->nesting > 4 * NESTING_LIMIT) {
        as->nesting--;
        return false;
    }
    Node node = as->nodes.items[root];
    bool good = evaluate_node(as, &node, out);
    if (good)
        cancel(out);
    as->nesting--;
    return good;
}
