/* amp_unit.h - one issue of the matrix unit. A template without guard: amp.c includes it once for
 * each kind of host, with AMP_HOST (name), AMP_TARGET (attribute) and AMP_BYTES (vector width)
 * defined, and AMP_F16C where the host converts halves.
 *
 * Accumulators stay in vectors from load to store: the fast path goes through no array. */

#define AMP_INLINE AMP_TARGET static inline __attribute__((always_inline))
#define Wide AMP_NAME(Wide)
#define Sums AMP_NAME(Sums)
#define SumBits AMP_NAME(SumBits)

typedef double Wide __attribute__((vector_size(AMP_BYTES)));
typedef float Sums __attribute__((vector_size(AMP_BYTES / 2)));
typedef uint32_t SumBits __attribute__((vector_size(AMP_BYTES / 2)));

enum {
    AMP_NAME(STEP) = AMP_BYTES / 8, /* units in a vector */
    AMP_NAME(VECTORS) = 16 / AMP_NAME(STEP)
};

/* ---- Conversions: the same bits with and without the host's instructions ---- */

AMP_INLINE Lanes AMP_NAME(widen)(uint64_t halves)
{
#ifdef AMP_F16C /* makes signalling NaNs quiet: no NaN leaves this file as it came */
    return (Lanes)_mm_cvtph_ps(_mm_cvtsi64_si128((long long)halves));
#else
    return widen_halves(halves);
#endif
}

AMP_INLINE uint64_t AMP_NAME(narrow)(Issue *issue, Lanes lanes)
{
#ifdef AMP_F16C
    if (!(issue->control & CONTROL_ESR)) {
        uint64_t halves = (uint64_t)_mm_cvtsi128_si64(_mm_cvtps_ph((__m128)lanes, 0));
        /* Bit 15 of a half becomes 1 when its exponent is 31: infinity, overflow, NaN. */
        uint64_t exponents = (halves & 0x7fff7fff7fff7fff) + 0x0400040004000400;
        if (__builtin_expect((exponents & 0x8000800080008000) == 0, 1))
            return halves;
    }
#endif
    return halves_converted(issue, lanes);
}

AMP_INLINE Factors AMP_NAME(factors_of)(const FloatState *state, uint64_t raw, Product product)
{
    Factors x = {.single = 0};
    if (product == SINGLES) {
        x.single = float_of((uint32_t)raw);
    } else if (product == HALVES) {
        x.low = AMP_FOUR(AMP_NAME(widen)(raw));
    } else { /* the product scale goes to x: a power of two, exact */
        double scale = (double)scale_factor(state);
        Row eight = {0};
        if (state->formats & FORMAT_VALUES_F143) {
#ifdef AMP_F16C /* the bits of F143, as a half, are the value / 2^7; -0 there is the NaN */
            __m128i codes = _mm_cvtepi8_epi16(_mm_cvtsi64_si128((long long)raw));
            __m128i halves = _mm_and_si128(_mm_slli_epi16(codes, 7), _mm_set1_epi16((short)0xbfff));
            __m128i nan = _mm_cmpeq_epi16(codes, _mm_set1_epi16(-128));
            halves = _mm_or_si128(halves, _mm_and_si128(nan, _mm_set1_epi16(HALF_NAN)));
            eight = (Row)_mm256_cvtph_ps(halves);
            scale *= 0x1p7;
#else
            widen_quarters(raw, true, &eight);
#endif
        } else {
            widen_quarters(raw, false, &eight);
        }
        x.low = AMP_FOUR(__builtin_shufflevector(eight, eight, 0, 1, 2, 3)) * scale;
        x.high = AMP_FOUR(__builtin_shufflevector(eight, eight, 4, 5, 6, 7)) * scale;
    }
    return x;
}

/* Two partials a set, those of set 0 first. */
AMP_INLINE Lanes AMP_NAME(load_partials)(Issue *issue, const FloatState *state, int32_t r,
                                         Shape shape)
{
    if (!shape.half_in)
        return load_singles(state, r);
    Lanes lanes = AMP_NAME(widen)(shape.sets == 2 ? load_pair(state, r) : load_register(state, r));
    return single_finish(&issue->flags, lanes, lanes, lanes);
}

/* Results of set 0 and set 1 in the destination's format. */
AMP_INLINE uint64_t AMP_NAME(results_of)(Issue *issue, Lanes results, Shape shape)
{
    return shape.half_out ? AMP_NAME(narrow)(issue, results) : low_word(results);
}

/* ---- Sums ---- */

AMP_INLINE Wide AMP_NAME(load_wide)(const double *from)
{
    Wide wide;
    memcpy(&wide, from, sizeof wide);
    return wide;
}

/* Four lanes of x times the columns from `column` on, for the units of one vector. */
AMP_INLINE Wide AMP_NAME(four_products)(const double (*column)[16], const FourWide *x)
{
    Wide total = (*x)[0] * AMP_NAME(load_wide)(column[0]);
    total = total + (*x)[1] * AMP_NAME(load_wide)(column[1]);
    total = total + (*x)[2] * AMP_NAME(load_wide)(column[2]);
    return total + (*x)[3] * AMP_NAME(load_wide)(column[3]);
}

/* next = sums + x . column. False: some result is not finite. */
AMP_INLINE bool AMP_NAME(add_products)(const double (*column)[16], const Factors *x,
                                       Product product, const uint32_t *sums, Sums *next,
                                       unsigned vectors)
{
    SumBits exponents = {0};
#pragma GCC unroll 8
    for (unsigned i = 0; i < vectors; i++) {
        const double(*weights)[16] = (const double(*)[16]) & column[0][i * AMP_NAME(STEP)];
        Wide total = AMP_NAME(four_products)(weights, &x->low);
        if (product == QUARTERS)
            total = total + AMP_NAME(four_products)(weights + 4, &x->high);
        Sums sum;
        memcpy(&sum, &sums[i * AMP_NAME(STEP)], sizeof sum);
        next[i] = __builtin_convertvector(AMP_WIDEN(sum) + total, Sums);
        /* The sign bit becomes 1 when the exponent is 255. */
        exponents |= ((SumBits)next[i] & 0x7fffffff) + 0x00800000;
    }
    return AMP_SIGNS(exponents) == 0;
}

/* The same for one product of singles, exactly rounded. */
AMP_INLINE bool AMP_NAME(add_single)(const float *column, float x, const uint32_t *sums, Sums *next,
                                     unsigned vectors)
{
    SumBits exponents = {0};
#pragma GCC unroll 8
    for (unsigned i = 0; i < vectors; i++) {
        Sums weight, sum;
        memcpy(&weight, &column[i * AMP_NAME(STEP)], sizeof weight);
        memcpy(&sum, &sums[i * AMP_NAME(STEP)], sizeof sum);
        next[i] = AMP_FUSED(x, weight, sum);
        exponents |= ((SumBits)next[i] & 0x7fffffff) + 0x00800000;
    }
    return AMP_SIGNS(exponents) == 0;
}

/* Accumulates column `column` (of singles: word) into the first `units` units of each set. */
AMP_INLINE void AMP_NAME(accumulate)(Issue *issue, const FloatState *state, int32_t r,
                                     Weights *weights, unsigned column, Shape shape, unsigned units,
                                     const uint32_t *sums, Sums *next)
{
    uint64_t raw = shape.product == SINGLES ? load_register(state, r) : load_pair(state, r);
    Factors x = AMP_NAME(factors_of)(state, raw, shape.product);
    want_weights(weights, state, shape.product);
    unsigned vectors = AMP_NAME(VECTORS) / 2 * shape.sets;
    bool finite_sums =
        shape.product == SINGLES
            ? AMP_NAME(add_single)(weights->single[column], x.single, sums, next, vectors)
            : AMP_NAME(add_products)(weights->lane[column], &x, shape.product, sums, next, vectors);
    if (__builtin_expect(finite_sums && units == 8, 1))
        return;
    uint32_t bits[16];
    memcpy(bits, next, vectors * sizeof *next);
    issue->flags |= special_sums(state, r, weights, column, shape, units, sums, bits);
    memcpy(next, bits, vectors * sizeof *next);
}

AMP_INLINE void AMP_NAME(store_live)(FloatState *state, const Sums *next, Shape shape)
{
#pragma GCC unroll 8
    for (unsigned i = 0; i < AMP_NAME(VECTORS) / 2 * shape.sets; i++)
        memcpy(&state->live[i * AMP_NAME(STEP)], &next[i], sizeof next[i]);
}

/* ---- Instructions ---- */

/* AMP, phase 0: live accumulators and chain change places. Then every unit accumulates its column
 * of this phase, two results leave the chain of each served set and two partials enter. `engines` =
 * 4, 2 or 1 pairs of units take part. */
AMP_INLINE uint32_t AMP_NAME(amp)(FloatState *state, Weights *weights, const int32_t *operand,
                                  Shape shape, unsigned phase, unsigned engines)
{
    unsigned units = 2 * engines;
    const uint32_t *live = state->live, *chain = state->chain;
    uint32_t part_live[16], part_chain[16]; /* exchanged in the units that take part */
    if (phase == 0 && engines == 4) {
        live = state->chain;
        chain = state->live;
    } else if (phase == 0) {
        exchange_units(state, units, part_live, part_chain);
        live = part_live;
        chain = part_chain;
    }

    Issue issue = issue_begin(state);
    Lanes partials = AMP_NAME(load_partials)(&issue, state, operand[2], shape);
    Row rows[2] = {{0}, {0}};
    for (unsigned set = 0; set < shape.sets; set++) /* each as it was stored: loads can forward */
        memcpy(&rows[set], chain + 8 * set, sizeof rows[set]);
    Sums next[AMP_NAME(VECTORS)];
    AMP_NAME(accumulate)(&issue, state, operand[1], weights, phase, shape, units, live, next);

    Lanes results = {0};
    if (shape.product != SINGLES) {
        results = two_and_two(&rows[0], &rows[1]);
        shift(&rows[0], partials, false, units);
        if (shape.sets == 2)
            shift(&rows[1], partials, true, units);
    } else if ((phase & 1) < shape.sets) { /* even phases serve set 0, odd ones set 1 */
        Row *row = &rows[phase & 1];
        results = two_and_two(row, row);
        shift(row, partials, false, units);
    }
    uint64_t leaving = AMP_NAME(results_of)(&issue, results, shape);
    if (issue_traps(state, &issue))
        return EXCEPTION_FP;
    AMP_NAME(store_live)(state, next, shape);
    for (unsigned set = 0; set < shape.sets; set++)
        memcpy(&state->chain[8 * set], &rows[set], sizeof rows[set]);
    store_results(state, operand[0], leaving, shape);
    return 0;
}

/* SLIC: two results leave the live accumulators, two partials enter at the far end, and all units
 * of the window accumulate column W. Singles take two issues, for the two words of the column; the
 * second one moves nothing. f32sisov2slic serves set 1 in the second: its results were latched in
 * the first, its partials are added to the entry. Immediate: bit 0 W, bit 1 second issue, 3:2
 * window (0: 4, 1: 3 pairs of units). */
AMP_INLINE uint32_t AMP_NAME(slic)(FloatState *state, Weights *weights, const int32_t *operand,
                                   Shape shape)
{
    bool single = shape.product == SINGLES, second = single && (operand[3] & 2);
    unsigned window = operand[3] >> 2 & 3, units = window == 0 ? 8 : 6;
    if (window > 1)
        return EXCEPTION_INVALID_OP;

    Issue issue = issue_begin(state);
    Lanes partials = AMP_NAME(load_partials)(&issue, state, operand[2], shape), results = {0};
    Row rows[2] = {{0}, {0}};
    for (unsigned set = 0; set < shape.sets; set++)
        memcpy(&rows[set], &state->live[8 * set], sizeof rows[set]);
    uint64_t latch = load_u64(state->latch);
    if (!second) {
        results = two_and_two(&rows[0], &rows[1]);
        latch = single && shape.sets == 2 ? high_word(results) : latch;
        shift(&rows[0], partials, false, units);
        if (shape.sets == 2)
            shift(&rows[1], partials, true, units);
    } else if (shape.sets == 2) {
        results = (Lanes)(Bits){(uint32_t)latch, (uint32_t)(latch >> 32), 0, 0};
    }
    uint32_t sums[16];
    for (unsigned set = 0; set < shape.sets; set++)
        memcpy(&sums[8 * set], &rows[set], sizeof rows[set]);
    unsigned column = operand[3] & 1;
    column = single ? 2 * column + second : column;
    Sums next[AMP_NAME(VECTORS)];
    AMP_NAME(accumulate)(&issue, state, operand[1], weights, column, shape, units, sums, next);
    if (second && shape.sets == 2) {
        uint32_t raw[16];
        memcpy(raw, next, sizeof next);
        unsigned entry = 8 + units - 2;
        enter_partials(&issue.flags, float_of(load_register(state, operand[1])),
                       weights->single[column] + entry, partials, sums + entry, raw + entry);
        memcpy(next, raw, sizeof next);
    }

    uint64_t leaving = AMP_NAME(results_of)(&issue, results, shape);
    if (issue_traps(state, &issue))
        return EXCEPTION_FP;
    AMP_NAME(store_live)(state, next, shape);
    store_u64(state->latch, latch);
    store_results(state, operand[0], leaving, shape);
    return 0;
}

/* Immediate: bits 2:0 phase, 5:4 engines (0: 4, 1: 2, 2: 1). Short chains are rare and stay apart.
 */
#define AMP_PART(form, ...)                                                                        \
    AMP_TARGET static __attribute__((noinline)) uint32_t AMP_NAME(part_##form)(                    \
        FloatState * state, Weights * weights, const int32_t *operand)                             \
    {                                                                                              \
        unsigned phase = operand[3] & 7, engines = 4 >> (operand[3] >> 4 & 3);                     \
        Shape shape = {__VA_ARGS__};                                                               \
        if (engines == 0 || (shape.product != SINGLES && phase > 3))                               \
            return EXCEPTION_INVALID_OP;                                                           \
        return AMP_NAME(amp)(state, weights, operand, shape, phase, engines);                      \
    }
#define AMP_WHOLE(form, ...)                                                                       \
    AMP_PART(form, __VA_ARGS__)                                                                    \
    AMP_TARGET static uint32_t AMP_NAME(exec_##form)(FloatState * state, Weights * weights,        \
                                                     const int32_t *operand)                       \
    {                                                                                              \
        Shape shape = {__VA_ARGS__};                                                               \
        unsigned phases = shape.product == SINGLES ? 7 : 3;                                        \
        if (__builtin_expect(((uint32_t)operand[3] & ~8u) <= phases, 1))                           \
            return AMP_NAME(amp)(state, weights, operand, shape, operand[3] & phases, 4);          \
        return AMP_NAME(part_##form)(state, weights, operand);                                     \
    }
#ifdef AMP_F16C
#include "sim/amp_plain.h"
#define AMP_WIDE(form, product)                                                                    \
    AMP_PART(form, product, 2, true, true)                                                         \
    AMP_TARGET static uint32_t AMP_NAME(exec_##form)(FloatState * state, Weights * weights,        \
                                                     const int32_t *operand)                       \
    {                                                                                              \
        if (__builtin_expect(((uint32_t)operand[3] & ~8u) <= 3, 1) &&                              \
            AMP_NAME(amp_plainly)(state, weights, operand, operand[3] & 3, product))               \
            return 0;                                                                              \
        return AMP_NAME(part_##form)(state, weights, operand);                                     \
    }
#else
#define AMP_WIDE(form, product) AMP_WHOLE(form, product, 2, true, true)
#endif
#define AMP_INSTRUCTION(form, kind, ...)                                                           \
    AMP_TARGET static uint32_t AMP_NAME(exec_##form)(FloatState * state, Weights * weights,        \
                                                     const int32_t *operand)                       \
    {                                                                                              \
        return AMP_NAME(kind)(state, weights, operand, (Shape){__VA_ARGS__});                      \
    }
AMP_WHOLE(f16v4hihoamp_aaan_ef, HALVES, 1, true, true)
AMP_WHOLE(f16v4sihoamp_aaan_ef, HALVES, 1, false, true)
AMP_WHOLE(f16v4sisoamp_aaan_ef, HALVES, 1, false, false)
AMP_WIDE(f16v4hihov4amp_aaan_ef, HALVES)
AMP_WIDE(f8v8hihov4amp_aaan_ef, QUARTERS)
AMP_WHOLE(f32sisoamp_aaan_ef, SINGLES, 1, false, false)
AMP_WHOLE(f32sisov2amp_aaan_ef, SINGLES, 2, false, false)
AMP_INSTRUCTION(f16v4hihoslic_aaan_ef, slic, HALVES, 1, true, true)
AMP_INSTRUCTION(f16v4sihoslic_aaan_ef, slic, HALVES, 1, false, true)
AMP_INSTRUCTION(f16v4sisoslic_aaan_ef, slic, HALVES, 1, false, false)
AMP_INSTRUCTION(f16v4hihov4slic_aaan_ef, slic, HALVES, 2, true, true)
AMP_INSTRUCTION(f8v8hihov4slic_aaan_ef, slic, QUARTERS, 2, true, true)
AMP_INSTRUCTION(f32sisoslic_aaan_ef, slic, SINGLES, 1, false, false)
AMP_INSTRUCTION(f32sisov2slic_aaan_ef, slic, SINGLES, 2, false, false)

static FloatExecute *AMP_NAME(amp_handler)(Form form)
{
    switch (form) {
#define AMP_FORM(form)                                                                             \
    case FORM_##form:                                                                              \
        return AMP_EXPAND(exec_##form, AMP_HOST);
#include "sim/float_forms.def"
    default:
        return NULL;
    }
}

#undef AMP_INSTRUCTION
#undef AMP_WHOLE
#undef AMP_WIDE
#undef AMP_PART
#undef AMP_INLINE
#undef Wide
#undef Sums
#undef SumBits
#undef AMP_HOST
#undef AMP_TARGET
#undef AMP_BYTES
#undef AMP_WIDEN
#undef AMP_FOUR
#undef AMP_SIGNS
#undef AMP_FUSED
#undef AMP_NOT_FINITE
#undef AMP_F16C
