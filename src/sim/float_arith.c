/* float_arith.c - arithmetic, extrema, compares, classes and lateral operations.
 *
 * One always-inlined function per shape of operands (half_binary, single_binary, ...), called with
 * constants: the compiler makes one straight handler of each. */
#include "sim/float_impl.h"

typedef enum Operation {
    ADD,
    SUB,
    MUL,
    ABSADD,
    MAX,
    MIN,
    ABSMAX,
    CMPEQ,
    CMPNE,
    CMPLT,
    CMPLE,
    CMPGT,
    CMPGE
} Operation;
typedef enum First {
    LANES,
    LOW,
    HIGH
} First; /* first source: as it is, or one element in all lanes */

INLINE Lanes magnitude(Lanes x)
{
    return (Lanes)((Bits)x & 0x7fffffff);
}

INLINE Ints is_nan(Lanes x)
{
    return (Ints)((Bits)x & 0x7fffffff) > (int32_t)SINGLE_INF;
}

/* The NaN of either operand, as a canonical one, over the result. */
INLINE Lanes with_nan(Lanes x, Lanes y, Bits result)
{
    return (Lanes)select_bits(is_nan(x) | is_nan(y), SINGLE_NAN - (Bits){0}, result);
}

/* -0 is less than +0: equal operands differ in the sign only when both are zero. */
INLINE Lanes larger(Lanes x, Lanes y)
{
    Bits equal = (Bits)x & (Bits)y;
    return with_nan(x, y, select_bits(x == y, equal, select_bits(x > y, (Bits)x, (Bits)y)));
}

INLINE Lanes smaller(Lanes x, Lanes y)
{
    Bits equal = (Bits)x | (Bits)y;
    return with_nan(x, y, select_bits(x == y, equal, select_bits(x < y, (Bits)x, (Bits)y)));
}

INLINE Lanes arithmetic(Operation operation, Lanes x, Lanes y)
{
    switch (operation) {
    case ADD:
        return x + y;
    case SUB:
        return x - y;
    case MUL:
        return x * y;
    case ABSADD:
        return magnitude(x) + magnitude(y);
    case MAX:
        return larger(x, y);
    case MIN:
        return smaller(x, y);
    default:
        return larger(magnitude(x), magnitude(y));
    }
}

INLINE Ints compare(Operation operation, Lanes x, Lanes y)
{
    switch (operation) {
    case CMPEQ:
        return x == y;
    case CMPNE:
        return x != y;
    case CMPLT:
        return x < y;
    case CMPLE:
        return x <= y;
    case CMPGT:
        return x > y;
    default:
        return x >= y;
    }
}

INLINE uint32_t nan_flag(Lanes x, Lanes y)
{
    return any(is_nan(x) | is_nan(y)) ? FLAG_INV : 0;
}

/* ---- Sources ---- */

INLINE uint64_t load_halves(const FloatState *state, int32_t r, unsigned lanes)
{
    return lanes == 4 ? load_pair(state, r) : load_register(state, r);
}

INLINE void store_halves(FloatState *state, int32_t r, unsigned lanes, uint64_t value)
{
    if (lanes == 4)
        store_pair(state, r, value);
    else
        store_register(state, r, (uint32_t)value);
}

INLINE Lanes first_halves(const FloatState *state, int32_t r, unsigned lanes, First first)
{
    if (first == LANES)
        return widen_halves(load_halves(state, r, lanes));
    uint64_t half = first == LOW ? load_register(state, r) & 0xffff : load_register(state, r) >> 16;
    uint64_t two = half | half << 16;
    return widen_halves(lanes == 4 ? two | two << 32 : two);
}

INLINE Lanes load_lanes(const FloatState *state, int32_t r, unsigned lanes)
{
    return lanes == 2 ? load_singles(state, r) : load_single(state, r);
}

INLINE void store_lanes(FloatState *state, int32_t r, unsigned lanes, Bits value)
{
    uint64_t words[2];
    memcpy(words, &value, sizeof words);
    store_halves(state, r, lanes == 2 ? 4 : 2, words[0]);
}

INLINE Lanes first_singles(const FloatState *state, int32_t r, unsigned lanes, First first)
{
    if (first == LANES)
        return load_lanes(state, r, lanes);
    return (Lanes)(Bits){load_register(state, r), load_register(state, r), 0, 0};
}

/* ---- Shapes ---- */

INLINE uint32_t half_binary(FloatState *state, const int32_t *operand, unsigned lanes, First first,
                            Operation operation)
{
    Lanes x = first_halves(state, operand[1], lanes, first);
    Lanes y = widen_halves(load_halves(state, operand[2], lanes));
    Issue issue = issue_begin(state);
    uint64_t result = halves_nearest(&issue, arithmetic(operation, x, y));
    if (raise(state, issue.flags))
        return EXCEPTION_FP;
    store_halves(state, operand[0], lanes, result);
    return 0;
}

INLINE uint32_t half_compare(FloatState *state, const int32_t *operand, unsigned lanes, First first,
                             Operation operation)
{
    Lanes x = first_halves(state, operand[1], lanes, first);
    Lanes y = widen_halves(load_halves(state, operand[2], lanes));
    if (raise(state, nan_flag(x, y)))
        return EXCEPTION_FP;
    store_halves(state, operand[0], lanes, pack_halves((Bits)compare(operation, x, y)));
    return 0;
}

INLINE uint32_t single_binary(FloatState *state, const int32_t *operand, unsigned lanes,
                              First first, Operation operation)
{
    Lanes x = first_singles(state, operand[1], lanes, first);
    Lanes y = load_lanes(state, operand[2], lanes);
    uint32_t flags = 0;
    Lanes result = single_finish(&flags, x, y, arithmetic(operation, x, y));
    if (raise(state, flags))
        return EXCEPTION_FP;
    store_lanes(state, operand[0], lanes, (Bits)result);
    return 0;
}

INLINE uint32_t single_compare(FloatState *state, const int32_t *operand, unsigned lanes,
                               First first, Operation operation)
{
    Lanes x = first_singles(state, operand[1], lanes, first);
    Lanes y = load_lanes(state, operand[2], lanes);
    if (raise(state, nan_flag(x, y)))
        return EXCEPTION_FP;
    store_lanes(state, operand[0], lanes, (Bits)compare(operation, x, y));
    return 0;
}

#define SHAPE(form, shape, lanes, first, operation)                                                \
    HANDLER(form)                                                                                  \
    {                                                                                              \
        return shape(state, operand, lanes, first, operation);                                     \
    }
/* Without broadcasts. */
#define PLAIN(name, operation, kind)                                                               \
    SHAPE(f16v2##name##_aaan, half_##kind, 2, LANES, operation)                                    \
    SHAPE(f16v4##name##_aaan, half_##kind, 4, LANES, operation)                                    \
    SHAPE(f32##name##_aaan, single_##kind, 1, LANES, operation)                                    \
    SHAPE(f32v2##name##_aaan, single_##kind, 2, LANES, operation)
#define BROADCASTING(name, operation, kind)                                                        \
    PLAIN(name, operation, kind)                                                                   \
    SHAPE(f16v2##name##_aaal, half_##kind, 2, LOW, operation)                                      \
    SHAPE(f16v4##name##_aaal, half_##kind, 4, LOW, operation)                                      \
    SHAPE(f16v2##name##_aaau, half_##kind, 2, HIGH, operation)                                     \
    SHAPE(f16v4##name##_aaau, half_##kind, 4, HIGH, operation)                                     \
    SHAPE(f32v2##name##_aaat, single_##kind, 2, LOW, operation)

BROADCASTING(add, ADD, binary)
BROADCASTING(sub, SUB, binary)
BROADCASTING(mul, MUL, binary)
PLAIN(absadd, ABSADD, binary)
PLAIN(max, MAX, binary)
PLAIN(min, MIN, binary)
PLAIN(absmax, ABSMAX,
      binary) /* commutative: the swapped fields of its vector forms do not matter */
BROADCASTING(cmpeq, CMPEQ, compare)
BROADCASTING(cmpne, CMPNE, compare)
BROADCASTING(cmplt, CMPLT, compare)
BROADCASTING(cmple, CMPLE, compare)
BROADCASTING(cmpgt, CMPGT, compare)
BROADCASTING(cmpge, CMPGE, compare)

HANDLER(f32div_aaan)
{
    float x = float_of(load_register(state, operand[1]));
    float y = float_of(load_register(state, operand[2]));
    uint32_t flags = 0;
    float quotient = x / y;
    if (y == 0 && quotient == quotient) /* a pole; infinity / 0 is exact */
        flags = (float_bits(x) & 0x7fffffff) == SINGLE_INF ? 0 : FLAG_DIV0;
    else
        quotient = single_finish(&flags, (Lanes){x}, (Lanes){y}, (Lanes){quotient})[0];
    if (raise(state, flags))
        return EXCEPTION_FP;
    store_register(state, operand[0], float_bits(quotient));
    return 0;
}

/* ---- Clamps: smaller(larger(x, low), high) ---- */

INLINE uint32_t half_clamp(FloatState *state, const int32_t *operand, unsigned lanes)
{
    Lanes x = widen_halves(load_halves(state, operand[1], lanes));
    Lanes low = first_halves(state, operand[2], lanes, LOW);
    Lanes high = first_halves(state, operand[2], lanes, HIGH);
    Issue issue = issue_begin(state);
    uint64_t result = halves_nearest(&issue, smaller(larger(x, low), high));
    if (raise(state, issue.flags))
        return EXCEPTION_FP;
    store_halves(state, operand[0], lanes, result);
    return 0;
}

INLINE uint32_t single_clamp(FloatState *state, const int32_t *operand, unsigned lanes)
{
    Lanes x = load_lanes(state, operand[1], lanes), bounds = load_singles(state, operand[2]);
    Lanes low = {bounds[0], bounds[0], 0, 0}, high = {bounds[1], bounds[1], 0, 0};
    Lanes result = smaller(larger(x, low), high);
    uint32_t flags = 0;
    /* An infinite result stands in an operand, so the only event is a NaN. */
    result = single_finish(&flags, result, result, result);
    if (raise(state, flags))
        return EXCEPTION_FP;
    store_lanes(state, operand[0], lanes, (Bits)result);
    return 0;
}

#define CLAMP(form, shape, lanes)                                                                  \
    HANDLER(form)                                                                                  \
    {                                                                                              \
        return shape(state, operand, lanes);                                                       \
    }
CLAMP(f16v2clamp_aaan, half_clamp, 2)
CLAMP(f16v4clamp_aaan, half_clamp, 4)
CLAMP(f32clamp_aaan, single_clamp, 1)
CLAMP(f32v2clamp_aaan, single_clamp, 2)

/* ---- Classes: a code in byte i for lane i, without events ---- */

enum {
    CLASS_SIGNALLING = 1,
    CLASS_QUIET,
    CLASS_INFINITY,
    CLASS_ZERO = 5,
    CLASS_SUBNORMAL = 7,
    CLASS_NORMAL = 9
}; /* from infinity on: the negative one, then the positive one */

/* Of a format with `mantissa` explicit bits, and infinities. */
static uint32_t class_of(uint32_t bits, unsigned width, unsigned mantissa)
{
    uint32_t sign = bits >> (width - 1) & 1, rest = bits & ((1u << (width - 1)) - 1);
    uint32_t infinity = ((1u << (width - 1 - mantissa)) - 1) << mantissa;
    if (rest > infinity)
        return rest & 1u << (mantissa - 1) ? CLASS_QUIET : CLASS_SIGNALLING;
    uint32_t class = rest == infinity          ? CLASS_INFINITY
                     : rest == 0               ? CLASS_ZERO
                     : rest < (1u << mantissa) ? CLASS_SUBNORMAL
                                               : CLASS_NORMAL;
    return class + 1 - sign;
}

static uint32_t half_classes(uint64_t halves, unsigned lanes)
{
    uint32_t codes = 0;
    for (unsigned i = 0; i < lanes; i++)
        codes |= class_of((uint32_t)(halves >> 16 * i) & 0xffff, 16, 10) << 8 * i;
    return codes;
}

HANDLER(f16v2class_aaan)
{
    store_register(state, operand[0], half_classes(load_register(state, operand[1]), 2));
    return 0;
}

HANDLER(f16v4class_aaan)
{
    store_register(state, operand[0], half_classes(load_pair(state, operand[1]), 4));
    return 0;
}

HANDLER(f32class_aaan)
{
    store_register(state, operand[0], class_of(load_register(state, operand[1]), 32, 23));
    return 0;
}

HANDLER(f32v2class_aaan)
{
    uint64_t pair = load_pair(state, operand[1]);
    uint32_t low = class_of((uint32_t)pair, 32, 23),
             high = class_of((uint32_t)(pair >> 32), 32, 23);
    store_register(state, operand[0], low | high << 8);
    return 0;
}

static uint32_t quarter_class(uint32_t code, uint32_t mantissa)
{
    if (code == QUARTER_NAN)
        return CLASS_QUIET;
    uint32_t rest = code & 0x7f;
    uint32_t class = rest == 0                 ? CLASS_ZERO
                     : rest < (1u << mantissa) ? CLASS_SUBNORMAL
                                               : CLASS_NORMAL;
    return class + 1 - (code >> 7);
}

HANDLER(f8v4class_aaan)
{
    uint32_t codes = load_register(state, operand[1]), classes = 0;
    for (unsigned i = 0; i < 4; i++)
        classes |= quarter_class(codes >> 8 * i & 255, values_format(state).mantissa) << 8 * i;
    store_register(state, operand[0], classes);
    return 0;
}

/* ---- Lateral operations: neighbours (0, 1) and (2, 3) ---- */

INLINE uint32_t lateral_sum(FloatState *state, const int32_t *operand, uint64_t halves, bool both)
{
    Lanes lanes = widen_halves(halves);
    Lanes x = {lanes[0], lanes[2], 0, 0}, y = {lanes[1], lanes[3], 0, 0};
    uint32_t flags = 0;
    Lanes result = single_finish(&flags, x, y, x + y);
    if (raise(state, flags))
        return EXCEPTION_FP;
    store_lanes(state, operand[0], both ? 2 : 1, (Bits)result);
    return 0;
}

HANDLER(f16v2sum_aaan)
{
    return lateral_sum(state, operand, load_register(state, operand[1]), false);
}

HANDLER(f16v4sum_aaan)
{
    return lateral_sum(state, operand, load_pair(state, operand[1]), true);
}

/* f16v2maxc gives its only maximum in both halves. */
INLINE uint32_t lateral_max(FloatState *state, const int32_t *operand, uint64_t halves)
{
    Lanes lanes = widen_halves(halves);
    Lanes x = {lanes[0], lanes[2], 0, 0}, y = {lanes[1], lanes[3], 0, 0};
    Issue issue = issue_begin(state);
    uint64_t result = halves_nearest(&issue, larger(x, y));
    if (raise(state, issue.flags))
        return EXCEPTION_FP;
    store_register(state, operand[0], (uint32_t)result);
    return 0;
}

HANDLER(f16v2maxc_aaan)
{
    uint64_t halves = load_register(state, operand[1]);
    return lateral_max(state, operand, halves | halves << 32);
}

HANDLER(f16v4maxc_aaan)
{
    return lateral_max(state, operand, load_pair(state, operand[1]));
}
