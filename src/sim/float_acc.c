/* float_acc.c - the accumulators outside the matrix unit: sums, products, mix and axpy, the chain
 * read out by gina, and the transposing pair istacc / stacc.
 *
 * Every accumulation is one rounding to F32 of the exact terms: a product of halves is exact in
 * F32, a product of singles is fused, and the two products of a cmac are added with their error
 * kept. */
#include "sim/float_impl.h"

INLINE Lanes load_live(const FloatState *state, unsigned at)
{
    Lanes lanes;
    memcpy(&lanes, &state->live[at], sizeof lanes);
    return lanes;
}

INLINE void store_live(FloatState *state, unsigned at, Lanes lanes)
{
    memcpy(&state->live[at], &lanes, sizeof lanes);
}

INLINE Lanes fused(Lanes x, Lanes y, Lanes sum)
{
    return (Lanes){__builtin_fmaf(x[0], y[0], sum[0]), __builtin_fmaf(x[1], y[1], sum[1]),
                   __builtin_fmaf(x[2], y[2], sum[2]), __builtin_fmaf(x[3], y[3], sum[3])};
}

/* single_finish for results of three operands. */
INLINE Lanes fused_finish(uint32_t *flags, Lanes x, Lanes y, Lanes sum, Lanes result)
{
    Ints x_infinite = ((Bits)x & 0x7fffffff) == SINGLE_INF;
    return single_finish(flags, sum, (Lanes)select_bits(x_infinite, (Bits)x, (Bits)y), result);
}

/* ---- acc, absacc, sqacc ---- */

typedef enum Term { VALUE, MAGNITUDE, SQUARE } Term;

INLINE Lanes accumulate(uint32_t *flags, Lanes sum, Lanes x, Term term, bool half)
{
    if (term == MAGNITUDE)
        x = (Lanes)((Bits)x & 0x7fffffff);
    Lanes result = term != SQUARE ? sum + x : half ? sum + x * x : fused(x, x, sum);
    return single_finish(flags, sum, x, result);
}

INLINE uint32_t four(FloatState *state, Lanes x, Term term, bool half)
{
    uint32_t flags = 0;
    Lanes sums = accumulate(&flags, load_live(state, 0), x, term, half);
    if (raise(state, flags))
        return EXCEPTION_FP;
    store_live(state, 0, sums);
    return 0;
}

INLINE uint32_t eight(FloatState *state, const int32_t *operand, Term term)
{
    const uint32_t *source = &state->a[operand[0] & 12];
    uint32_t flags = 0;
    Lanes x = widen_halves(load_u64(source)), y = widen_halves(load_u64(source + 2));
    Lanes low = accumulate(&flags, load_live(state, 0), x, term, true);
    Lanes high = accumulate(&flags, load_live(state, 4), y, term, true);
    if (raise(state, flags))
        return EXCEPTION_FP;
    store_live(state, 0, low);
    store_live(state, 4, high);
    return 0;
}

#define ACCUMULATE(form, call)                                                                     \
    HANDLER(form)                                                                                  \
    {                                                                                              \
        return call;                                                                               \
    }
ACCUMULATE(f32v4acc_aaan, four(state, load_quad(state, operand[0]), VALUE, false))
ACCUMULATE(f32v4absacc_aaan, four(state, load_quad(state, operand[0]), MAGNITUDE, false))
ACCUMULATE(f32v4sqacc_aaan, four(state, load_quad(state, operand[0]), SQUARE, false))
ACCUMULATE(f16v4acc_aaan, four(state, widen_halves(load_pair(state, operand[0])), VALUE, true))
ACCUMULATE(f16v4absacc_aaan,
           four(state, widen_halves(load_pair(state, operand[0])), MAGNITUDE, true))
ACCUMULATE(f16v8acc_aaan, eight(state, operand, VALUE))
ACCUMULATE(f16v8absacc_aaan, eight(state, operand, MAGNITUDE))
ACCUMULATE(f16v8sqacc_aaan, eight(state, operand, SQUARE))

/* ---- Products ---- */

/* The first `lanes` accumulators += x * y; the others stay, whatever they hold. */
INLINE uint32_t multiply_accumulate(FloatState *state, Lanes x, Lanes y, unsigned lanes)
{
    uint32_t flags = 0;
    Lanes old = load_live(state, 0);
    const Ints numbers = {0, 1, 2, 3};
    Ints used = numbers < (int32_t)lanes;
    Lanes sum = (Lanes)((Bits)used & (Bits)old);
    Lanes result = fused_finish(&flags, x, y, sum, fused(x, y, sum));
    if (raise(state, flags))
        return EXCEPTION_FP;
    store_live(state, 0, (Lanes)select_bits(used, (Bits)result, (Bits)old));
    return 0;
}

HANDLER(f32mac_aaan)
{
    return multiply_accumulate(state, load_single(state, operand[0]),
                               load_single(state, operand[1]), 1);
}

HANDLER(f32v2mac_aaan)
{
    return multiply_accumulate(state, load_singles(state, operand[0]),
                               load_singles(state, operand[1]), 2);
}

HANDLER(f32v2aop_aaan_ef) /* outer product; the immediate means nothing */
{
    Lanes x = load_singles(state, operand[0]), y = load_singles(state, operand[1]);
    return multiply_accumulate(state, (Lanes){x[0], x[1], x[0], x[1]},
                               (Lanes){y[0], y[0], y[1], y[1]}, 4);
}

INLINE uint32_t complex_accumulate(FloatState *state, uint64_t x_halves, uint64_t y_halves,
                                   unsigned lanes)
{
    Lanes x = widen_halves(x_halves), y = widen_halves(y_halves), products = x * y;
    Lanes sum = {0}, result = {0};
    for (unsigned i = 0; i < lanes; i++) {
        sum[i] = float_of(state->live[i]);
        result[i] =
            sum_of_three((double)products[2 * i], (double)products[2 * i + 1], (double)sum[i]);
    }
    /* An infinite product has an infinite factor: products of halves stay below 2^32. */
    Lanes even = {products[0], products[2], 0, 0}, odd = {products[1], products[3], 0, 0};
    uint32_t flags = 0;
    result = fused_finish(&flags, even, odd, sum, result);
    if (raise(state, flags))
        return EXCEPTION_FP;
    for (unsigned i = 0; i < lanes; i++)
        state->live[i] = float_bits(result[i]);
    return 0;
}

HANDLER(f16v2cmac_aaan)
{
    return complex_accumulate(state, load_register(state, operand[0]),
                              load_register(state, operand[1]), 1);
}

HANDLER(f16v4cmac_aaan)
{
    return complex_accumulate(state, load_pair(state, operand[0]), load_pair(state, operand[1]), 2);
}

/* ---- axpy, mix, gacc: scaled sums that leave one issue later ---- */

HANDLER(f32v2axpy_aaan) /* text order d, x, y: x is operand C */
{
    Lanes x = load_singles(state, operand[2]), y = load_singles(state, operand[1]);
    float scale = float_of(state->tas);
    Lanes scales = {scale, scale, 0, 0};
    uint32_t flags = 0;
    Lanes sums = fused_finish(&flags, scales, x, y, fused(scales, x, y));
    if (raise(state, flags))
        return EXCEPTION_FP;
    store_pair(state, operand[0], load_u64(state->live));
    state->live[0] = float_bits(sums[0]);
    state->live[1] = float_bits(sums[1]);
    return 0;
}

HANDLER(f16v4mix_aaan)
{
    Lanes x = widen_halves(load_pair(state, operand[1]));
    Lanes y = widen_halves(load_pair(state, operand[2]));
    Lanes scales = widen_halves(state->tas);
    Issue issue = issue_begin(state);
    uint64_t halves = halves_converted(&issue, load_live(state, 0));
    Lanes sums = scales[0] * x + scales[1] * y; /* exact products, far from F32's limits */
    sums = single_finish(&issue.flags, sums, sums, sums);
    if (issue_traps(state, &issue))
        return EXCEPTION_FP;
    store_pair(state, operand[0], halves);
    store_live(state, 0, sums);
    return 0;
}

HANDLER(f16v4gacc_aaan)
{
    Issue issue = issue_begin(state);
    uint64_t halves = halves_converted(&issue, load_live(state, 0));
    if (issue_traps(state, &issue))
        return EXCEPTION_FP;
    store_pair(state, operand[0], halves);
    return 0;
}

/* ---- gina: two accumulators out, the chain moves down, two in ---- */

/* Immediate: bit 0 the odd accumulators, bit 1 set 1. */
static uint32_t *gina_chain(FloatState *state, int32_t immediate)
{
    return (immediate & 1 ? state->chain : state->live) + (immediate & 2 ? 8 : 0);
}

static void gina_move(uint32_t *chain, uint64_t entering)
{
    memmove(chain, chain + 2, 6 * sizeof *chain);
    store_u64(chain + 6, entering);
}

HANDLER(f32v2gina_aaan_zi)
{
    uint32_t *chain = gina_chain(state, operand[2]);
    uint64_t entering = load_pair(state, operand[1]), leaving = load_u64(chain);
    gina_move(chain, entering);
    store_pair(state, operand[0], leaving);
    return 0;
}

HANDLER(f16v2gina_aaan_zi)
{
    uint32_t *chain = gina_chain(state, operand[2]);
    Issue issue = issue_begin(state);
    Lanes old = (Lanes)(Bits){chain[0], chain[1], 0, 0};
    uint64_t leaving = halves_converted(&issue, old);
    Lanes entering = widen_halves(load_register(state, operand[1]));
    entering = single_finish(&issue.flags, entering, entering, entering);
    if (issue_traps(state, &issue))
        return EXCEPTION_FP;
    gina_move(chain, (uint64_t)float_bits(entering[1]) << 32 | float_bits(entering[0]));
    store_register(state, operand[0], (uint32_t)leaving);
    return 0;
}

/* ---- The transposing pair: raw halves through the accumulators ----
 *
 * istacc P0 takes rows 0 and 1 of a 4x4 block, P1 rows 2 and 3; column j then lies in A[4j],
 * A[4j+2]. stacc P0, P1 return columns 0, 1, and the next istacc P0, P1 columns 2, 3. */

static uint64_t two_accumulators(FloatState *state, uint32_t first, uint32_t second)
{
    return (uint64_t)*float_acc(state, second) << 32 | *float_acc(state, first);
}

HANDLER(f16v4istacc_aaan_ef)
{
    uint64_t x = load_pair(state, operand[1]), y = load_pair(state, operand[2]), leaving;
    bool second = operand[3] & 1;
    if (second) {
        leaving = two_accumulators(state, 5, 7);
    } else {
        leaving = two_accumulators(state, 8, 10);
        *float_acc(state, 5) = *float_acc(state, 12);
        *float_acc(state, 7) = *float_acc(state, 14);
    }
    for (unsigned i = 0; i < 4; i++) {
        uint64_t column = (x >> 16 * i & 0xffff) | (y >> 16 * i & 0xffff) << 16;
        *float_acc(state, 4 * i + (second ? 2 : 0)) = (uint32_t)column;
    }
    store_pair(state, operand[0], leaving);
    return 0;
}

HANDLER(f16v4stacc_aaan_ef)
{
    bool second = operand[1] & 1;
    uint64_t leaving = second ? two_accumulators(state, 1, 3) : two_accumulators(state, 0, 2);
    if (!second) {
        *float_acc(state, 1) = *float_acc(state, 4);
        *float_acc(state, 3) = *float_acc(state, 6);
    }
    store_pair(state, operand[0], leaving);
    return 0;
}
