/* execute_integer.c - arithmetic, comparison, shifts, logic and permutations of the main lane.
 *
 * Semantics: semantics-integer.md A to D. None of these raises an exception. x is the first source
 * in text order and y the second, whatever letters the encoding gives them. */
#include "sim/core.h"

#define M(i) (c->m[d->op[i]])
#define IMMEDIATE(i) ((uint32_t)d->op[i])
#define SET(i, value) (c->m[d->out[i]] = (uint32_t)(value))

#define BINARY(name, expression)                                                                   \
    static uint32_t name##_mm(Context *c, const Decoded *d)                                        \
    {                                                                                              \
        uint32_t x = M(1), y = M(2);                                                               \
        SET(0, expression);                                                                        \
        return OUTCOME_DONE;                                                                       \
    }

#define BINARY_IMMEDIATE(name, expression)                                                         \
    BINARY(name, expression)                                                                       \
    static uint32_t name##_mi(Context *c, const Decoded *d)                                        \
    {                                                                                              \
        uint32_t x = M(1), y = IMMEDIATE(2);                                                       \
        SET(0, expression);                                                                        \
        return OUTCOME_DONE;                                                                       \
    }

#define UNARY(name, expression)                                                                    \
    static uint32_t name##_m(Context *c, const Decoded *d)                                         \
    {                                                                                              \
        uint32_t x = M(1);                                                                         \
        SET(0, expression);                                                                        \
        return OUTCOME_DONE;                                                                       \
    }

static inline uint32_t leading_zeros(uint32_t x)
{
    return x ? (uint32_t)__builtin_clz(x) : 32;
}

static inline uint32_t reverse_bits_in_bytes(uint32_t x)
{
    x = (x & 0x55555555) << 1 | (x >> 1 & 0x55555555);
    x = (x & 0x33333333) << 2 | (x >> 2 & 0x33333333);
    return (x & 0x0f0f0f0f) << 4 | (x >> 4 & 0x0f0f0f0f);
}

/* Picks bytes of the 64-bit y:x, lowest first. */
#define BYTES(a, b, e, f)                                                                          \
    ((uint32_t)((BYTE(a)) | (BYTE(b)) << 8 | (BYTE(e)) << 16 | (BYTE(f)) << 24))
#define BYTE(k) ((k) < 4 ? x >> (8 * ((k)&3)) & 0xff : y >> (8 * ((k)&3)) & 0xff)

BINARY_IMMEDIATE(add, x + y)
BINARY_IMMEDIATE(sub, y - x) /* text order is op2 - op1 */
BINARY_IMMEDIATE(mul, x *y)
BINARY_IMMEDIATE(min, (int32_t)x < (int32_t)y ? x : y)
BINARY_IMMEDIATE(max, (int32_t)x > (int32_t)y ? x : y)
BINARY_IMMEDIATE(cmpeq, x == y)
BINARY(cmpne, x != y)
BINARY_IMMEDIATE(cmpslt, (int32_t)x < (int32_t)y)
BINARY_IMMEDIATE(cmpult, x < y)
BINARY_IMMEDIATE(shl, x << (y & 31)) /* choice: amounts count modulo 32 */
BINARY_IMMEDIATE(shr, x >> (y & 31))
BINARY_IMMEDIATE(shrs, (int32_t)x >> (y & 31))
BINARY_IMMEDIATE(and, x &y)
BINARY_IMMEDIATE(andc, x & ~y)
BINARY_IMMEDIATE(or, x | y)
BINARY(xor, x ^ y)
BINARY(xnor, ~(x ^ y))

BINARY(roll8r, BYTES(1, 2, 3, 4))
BINARY(roll16, BYTES(2, 3, 4, 5))
BINARY(roll8l, BYTES(3, 4, 5, 6))
BINARY(sort4x16lo, BYTES(0, 1, 4, 5))
BINARY(sort4x16hi, BYTES(2, 3, 6, 7))
BINARY(sort8x8lo, BYTES(0, 2, 4, 6))
BINARY(sort8x8hi, BYTES(1, 3, 5, 7))
BINARY(shuf8x8lo, BYTES(0, 4, 1, 5))
BINARY(shuf8x8hi, BYTES(2, 6, 3, 7))

UNARY(abs, x == 0x80000000 ? 0 : (int32_t)x < 0 ? 0 - x : x)
UNARY(clz, leading_zeros(x))
UNARY(cms, leading_zeros(x >> 31 ? ~x : x) - 1)
UNARY(popc, __builtin_popcount(x))
UNARY(bitrev8, reverse_bits_in_bytes(x))
#define y x /* one source: any half of the pair will do */
UNARY(sort8, BYTES(0, 2, 1, 3))
UNARY(swap8, BYTES(1, 0, 3, 2))
#undef y

static uint32_t setzi(Context *c, const Decoded *d)
{
    SET(0, IMMEDIATE(1));
    return OUTCOME_DONE;
}

/* movz D, C, S: in spite of its name it moves when C is not zero. */
static uint32_t movz(Context *c, const Decoded *d)
{
    if (M(0))
        SET(1, M(2));
    return OUTCOME_DONE;
}

static uint32_t atom(Context *c, const Decoded *d)
{
    SET(0, c->f.a[d->op[1]]);
    return OUTCOME_DONE;
}

/* Three 21-bit addresses in a register pair (semantics-integer.md E.5). */
static uint32_t tapack(Context *c, const Decoded *d)
{
    uint32_t a0 = M(0) & 0x1fffff, a1 = M(1) & 0x1fffff, a2 = M(2) & 0x1fffff;
    SET(3, a0 | a2 << 21);
    c->m[d->out[3] + 1] = a1 | (a2 >> 11) << 21;
    return OUTCOME_DONE;
}

Execute *integer_handler(Form form)
{
    static Execute *const handlers[FORM_COUNT] = {
        [FORM_abs_mmmn] = abs_m,
        [FORM_add_mmmn] = add_mm,
        [FORM_add_mmmn_si] = add_mi,
        [FORM_add_mmmn_zi] = add_mi,
        [FORM_and_mmmn] = and_mm,
        [FORM_and_mmmn_zi] = and_mi,
        [FORM_andc_mmmn] = andc_mm,
        [FORM_andc_mmmn_zi] = andc_mi,
        [FORM_atom_mamn] = atom,
        [FORM_bitrev8_mmmn] = bitrev8_m,
        [FORM_clz_mmmn] = clz_m,
        [FORM_cmpeq_mmmn] = cmpeq_mm,
        [FORM_cmpeq_mmmn_si] = cmpeq_mi,
        [FORM_cmpeq_mmmn_zi] = cmpeq_mi,
        [FORM_cmpne_mmmn] = cmpne_mm,
        [FORM_cmpslt_mmmn] = cmpslt_mm,
        [FORM_cmpslt_mmmn_si] = cmpslt_mi,
        [FORM_cmpult_mmmn] = cmpult_mm,
        [FORM_cmpult_mmmn_zi] = cmpult_mi,
        [FORM_cms_mmmn] = cms_m,
        [FORM_max_mmmn] = max_mm,
        [FORM_max_mmmn_si] = max_mi,
        [FORM_max_mmmn_zi] = max_mi,
        [FORM_min_mmmn] = min_mm,
        [FORM_min_mmmn_si] = min_mi,
        [FORM_min_mmmn_zi] = min_mi,
        [FORM_movz_mmmn] = movz,
        [FORM_mul_mmmn] = mul_mm,
        [FORM_mul_mmmn_si] = mul_mi,
        [FORM_or_mmmn] = or_mm,
        [FORM_or_mmmn_iz] = or_mi,
        [FORM_or_mmmn_zi] = or_mi,
        [FORM_popc_mmmn] = popc_m,
        [FORM_roll16_mmmn] = roll16_mm,
        [FORM_roll8l_mmmn] = roll8l_mm,
        [FORM_roll8r_mmmn] = roll8r_mm,
        [FORM_setzi_mmmn_zi] = setzi,
        [FORM_shl_mmmn] = shl_mm,
        [FORM_shl_mmmn_zi] = shl_mi,
        [FORM_shr_mmmn] = shr_mm,
        [FORM_shr_mmmn_zi] = shr_mi,
        [FORM_shrs_mmmn] = shrs_mm,
        [FORM_shrs_mmmn_zi] = shrs_mi,
        [FORM_shuf8x8hi_mmmn] = shuf8x8hi_mm,
        [FORM_shuf8x8lo_mmmn] = shuf8x8lo_mm,
        [FORM_sort4x16hi_mmmn] = sort4x16hi_mm,
        [FORM_sort4x16lo_mmmn] = sort4x16lo_mm,
        [FORM_sort8_mmmn] = sort8_m,
        [FORM_sort8x8hi_mmmn] = sort8x8hi_mm,
        [FORM_sort8x8lo_mmmn] = sort8x8lo_mm,
        [FORM_sub_mmmn] = sub_mm,
        [FORM_sub_mmmn_si] = sub_mi,
        [FORM_sub_mmmn_zi] = sub_mi,
        [FORM_swap8_mmmn] = swap8_m,
        [FORM_tapack_mmmn] = tapack,
        [FORM_xnor_mmmn] = xnor_mm,
        [FORM_xor_mmmn] = xor_mm,
    };
    return handlers[form];
}
