/* amp_unit.h - one issue of the matrix unit. A template without guard: amp.c includes it once for
 * each kind of host, with AMP_HOST (name), AMP_TARGET (attribute) and AMP_BYTES (vector width)
 * defined. */

#define AMP_INLINE AMP_TARGET static inline __attribute__((always_inline))

/* next = sums + x . column, for `units` units. False: some result is not finite. */
AMP_INLINE bool AMP_NAME(add_products)(const double (*column)[16], const double *x, unsigned lanes,
                                       const uint32_t *sums, uint32_t *next, unsigned units)
{
    typedef double Wide __attribute__((vector_size(AMP_BYTES)));
    typedef float Sums __attribute__((vector_size(AMP_BYTES / 2)));
    typedef uint32_t SumBits __attribute__((vector_size(AMP_BYTES / 2)));
    const unsigned step = AMP_BYTES / 8;
    SumBits exponents = {0};
    for (unsigned unit = 0; unit < units; unit += step) {
        Wide weight, total;
        memcpy(&weight, &column[0][unit], sizeof weight);
        total = x[0] * weight;
        for (unsigned lane = 1; lane < lanes; lane++) {
            memcpy(&weight, &column[lane][unit], sizeof weight);
            total += x[lane] * weight;
        }
        Sums sum;
        memcpy(&sum, &sums[unit], sizeof sum);
        sum = __builtin_convertvector(__builtin_convertvector(sum, Wide) + total, Sums);
        memcpy(&next[unit], &sum, sizeof sum);
        /* The sign bit becomes 1 when the exponent is 255. */
        exponents |= ((SumBits)sum & 0x7fffffff) + 0x00800000;
    }
    uint64_t words[sizeof exponents / 8], reduced = 0;
    memcpy(words, &exponents, sizeof words);
    for (unsigned i = 0; i < countof(words); i++)
        reduced |= words[i];
    return (reduced & 0x8000000080000000) == 0;
}

/* The same for one product of singles, exactly rounded. */
AMP_INLINE bool AMP_NAME(add_single)(const float *column, float x, const uint32_t *sums,
                                     uint32_t *next, unsigned units)
{
    bool finite_sums = true;
    for (unsigned unit = 0; unit < units; unit++) {
        float sum = __builtin_fmaf(x, column[unit], float_of(sums[unit]));
        next[unit] = float_bits(sum);
        finite_sums &= (next[unit] & SINGLE_INF) != SINGLE_INF;
    }
    return finite_sums;
}

/* Accumulates column `column` (of singles: word) into the first `units` units of each set. */
AMP_INLINE void AMP_NAME(accumulate)(Issue *issue, const Factors *x, const Weights *weights,
                                     unsigned column, Shape shape, unsigned units,
                                     const uint32_t *sums, uint32_t *next)
{
    bool finite_sums =
        shape.product == SINGLES
            ? AMP_NAME(add_single)(weights->single[column], x->single, sums, next, 8 * shape.sets)
            : AMP_NAME(add_products)(weights->lane[column], x->lane, lanes_of(shape.product), sums,
                                     next, 8 * shape.sets);
    if (__builtin_expect(!finite_sums, 0))
        special_sums(&issue->flags, x, weights, column, shape, units, sums, next);
    if (units < 8)
        for (unsigned set = 0; set < shape.sets; set++)
            memcpy(&next[8 * set + units], &sums[8 * set + units], (8 - units) * sizeof *next);
}

/* Two values leave a row of `units` elements, two enter at the far end. */
AMP_INLINE void AMP_NAME(shift)(uint32_t *to, const uint32_t *from, unsigned units,
                                uint64_t entering)
{
    for (unsigned i = 0; i + 2 < units; i += 2)
        store_u64(to + i, load_u64(from + i + 2));
    store_u64(to + units - 2, entering);
    for (unsigned i = units; i < 8; i += 2)
        store_u64(to + i, load_u64(from + i));
}

/* AMP, phase 0: live accumulators and chain change places. Then every unit accumulates its column
 * of this phase, two results leave the chain of each served set and two partials enter. `engines` =
 * 4, 2 or 1 pairs of units take part. */
AMP_INLINE uint32_t AMP_NAME(amp)(FloatState *state, Weights *weights, const int32_t *operand,
                                  Shape shape, unsigned phase, unsigned engines)
{
    unsigned units = 2 * engines, count = 8 * shape.sets;
    const uint32_t *live = state->live, *chain = state->chain;
    uint32_t part_live[16], part_chain[16]; /* exchanged in the units that take part */
    if (phase == 0 && engines == 4) {
        live = state->chain;
        chain = state->live;
    } else if (phase == 0) {
        for (unsigned i = 0; i < count; i++) {
            part_live[i] = i % 8 < units ? state->chain[i] : state->live[i];
            part_chain[i] = i % 8 < units ? state->live[i] : state->chain[i];
        }
        live = part_live;
        chain = part_chain;
    }

    Issue issue = issue_begin(state);
    Factors x = load_factors(state, operand[1], shape.product);
    Lanes partials = load_partials(&issue, state, operand[2], shape);
    uint32_t next[16], moved[16];
    want_weights(weights, state, shape.product);
    AMP_NAME(accumulate)(&issue, &x, weights, phase, shape, units, live, next);

    Lanes results = {float_of(chain[0]), float_of(chain[1])};
    if (shape.product != SINGLES) {
        if (shape.sets == 2)
            results = (Lanes)(Bits){chain[0], chain[1], chain[8], chain[9]};
        AMP_NAME(shift)(moved, chain, units, low_word(partials));
        if (shape.sets == 2)
            AMP_NAME(shift)(moved + 8, chain + 8, units, high_word(partials));
    } else { /* even phases serve set 0, odd ones set 1 */
        memcpy(moved, chain, count * sizeof *moved);
        unsigned set = phase & 1;
        if (set < shape.sets) {
            results = (Lanes)(Bits){chain[8 * set], chain[8 * set + 1], 0, 0};
            AMP_NAME(shift)(moved + 8 * set, chain + 8 * set, units, low_word(partials));
        } else {
            results = (Lanes){0};
        }
    }
    uint64_t leaving = results_of(&issue, results, shape);
    if (issue_traps(state, &issue))
        return EXCEPTION_FP;
    memcpy(state->live, next, count * sizeof *next);
    memcpy(state->chain, moved, count * sizeof *moved);
    store_results(state, operand[0], leaving, shape);
    return 0;
}

/* Immediate: bits 2:0 phase, 5:4 engines (0: 4, 1: 2, 2: 1). */
AMP_INLINE uint32_t AMP_NAME(amp_issue)(FloatState *state, Weights *weights, const int32_t *operand,
                                        Shape shape)
{
    unsigned phase = operand[3] & 7, engines = operand[3] >> 4 & 3;
    if (__builtin_expect(engines == 3 || (shape.product != SINGLES && phase > 3), 0))
        return EXCEPTION_INVALID_OP;
    if (__builtin_expect(engines == 0, 1))
        return AMP_NAME(amp)(state, weights, operand, shape, phase, 4);
    return AMP_NAME(amp)(state, weights, operand, shape, phase, 4 >> engines);
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
    unsigned window = operand[3] >> 2 & 3, units = window == 0 ? 8 : 6, count = 8 * shape.sets;
    if (window > 1)
        return EXCEPTION_INVALID_OP;

    Issue issue = issue_begin(state);
    Factors x = load_factors(state, operand[1], shape.product);
    Lanes partials = load_partials(&issue, state, operand[2], shape);
    uint32_t sums[16], next[16], latch[2] = {state->latch[0], state->latch[1]};
    memcpy(sums, state->live, sizeof sums);
    Lanes results = {0};
    if (!second) {
        unsigned other = shape.sets == 2 ? 8 : 0;
        results = (Lanes)(Bits){sums[0], sums[1], sums[other], sums[other + 1]};
        AMP_NAME(shift)(sums, state->live, units, low_word(partials));
        if (shape.sets == 2) {
            latch[0] = sums[8];
            latch[1] = sums[9];
            AMP_NAME(shift)(sums + 8, state->live + 8, units, single ? 0 : high_word(partials));
        }
    } else if (shape.sets == 2) {
        results = (Lanes)(Bits){latch[0], latch[1], 0, 0};
    }
    unsigned column = operand[3] & 1;
    column = single ? 2 * column + second : column;
    want_weights(weights, state, shape.product);
    AMP_NAME(accumulate)(&issue, &x, weights, column, shape, units, sums, next);
    if (second && shape.sets == 2)
        enter_partials(&issue.flags, &x, weights->single[column] + 8 + units - 2, partials,
                       sums + 8 + units - 2, next + 8 + units - 2);

    uint64_t leaving = results_of(&issue, results, shape);
    if (issue_traps(state, &issue))
        return EXCEPTION_FP;
    memcpy(state->live, next, count * sizeof *next);
    memcpy(state->latch, latch, sizeof latch);
    store_results(state, operand[0], leaving, shape);
    return 0;
}

#define AMP_INSTRUCTION(form, kind, ...)                                                           \
    AMP_TARGET static uint32_t AMP_NAME(exec_##form)(FloatState * state, Weights * weights,        \
                                                     const int32_t *operand)                       \
    {                                                                                              \
        return AMP_NAME(kind)(state, weights, operand, (Shape){__VA_ARGS__});                      \
    }
AMP_INSTRUCTION(f16v4hihoamp_aaan_ef, amp_issue, HALVES, 1, true, true)
AMP_INSTRUCTION(f16v4sihoamp_aaan_ef, amp_issue, HALVES, 1, false, true)
AMP_INSTRUCTION(f16v4sisoamp_aaan_ef, amp_issue, HALVES, 1, false, false)
AMP_INSTRUCTION(f16v4hihov4amp_aaan_ef, amp_issue, HALVES, 2, true, true)
AMP_INSTRUCTION(f8v8hihov4amp_aaan_ef, amp_issue, QUARTERS, 2, true, true)
AMP_INSTRUCTION(f32sisoamp_aaan_ef, amp_issue, SINGLES, 1, false, false)
AMP_INSTRUCTION(f32sisov2amp_aaan_ef, amp_issue, SINGLES, 2, false, false)
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
#undef AMP_INLINE
#undef AMP_HOST
#undef AMP_TARGET
#undef AMP_BYTES
