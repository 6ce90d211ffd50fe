/* amp.c - the matrix unit: AMP and SLIC instructions.
 *
 * A set has eight units. A unit has a live accumulator and an element of the shift chain, and owns
 * four columns of weights. One issue multiplies the 4 halves, 8 quarters or 1 single of x with one
 * column of every unit and adds the sum to the unit's accumulator:
 *
 *   A = F32(A + (((x0*w0 + x1*w1) + x2*w2) + x3*w3))
 *
 * and for quarters A + (s(0..3) + s(4..7)), s being such a sum of four,
 * with exact products, sums in double in this order and one rounding to F32 (choice 8; a single
 * product is exactly rounded). The code is written once, in amp_unit.h, and compiled for each kind
 * of host; as every operation is a correctly rounded one, and products are exact in double so that
 * fusing them changes nothing, all versions give the same bits. */
#include "sim/float_impl.h"

typedef enum Product { HALVES, QUARTERS, SINGLES } Product;

typedef struct Shape { /* of an instruction */
    Product product;
    unsigned sets;
    bool half_in, half_out; /* partials and results: halves or singles */
} Shape;

/* ---- Weights ---- */

enum { SPREAD_NONE, SPREAD_HALVES, SPREAD_F152, SPREAD_F143, SPREAD_SINGLES };

static void spread_weights(Weights *weights, uint32_t spread)
{
    for (unsigned entry = 0; entry < 64; entry++) {
        unsigned unit = entry / 4, column = entry % 4;
        uint64_t raw = weights->raw[entry];
        if (spread == SPREAD_SINGLES) {
            weights->single[2 * column][unit] = float_of((uint32_t)raw);
            weights->single[2 * column + 1][unit] = float_of((uint32_t)(raw >> 32));
        } else if (spread == SPREAD_HALVES) {
            Lanes lanes = widen_halves(raw);
            for (unsigned i = 0; i < 4; i++)
                weights->lane[column][i][unit] = (double)lanes[i];
        } else {
            const float *values = QUARTER_VALUES[spread == SPREAD_F143];
            for (unsigned i = 0; i < 8; i++)
                weights->lane[column][i][unit] = (double)values[raw >> 8 * i & 255];
        }
    }
    weights->spread = spread;
}

INLINE void want_weights(Weights *weights, const FloatState *state, Product product)
{
    uint32_t spread = product == HALVES                      ? SPREAD_HALVES
                      : product == SINGLES                   ? SPREAD_SINGLES
                      : state->formats & FORMAT_WEIGHTS_F143 ? SPREAD_F143
                                                             : SPREAD_F152;
    if (__builtin_expect(weights->spread != spread, 0))
        spread_weights(weights, spread);
}

/* ---- Operands ---- */

typedef double FourWide __attribute__((vector_size(32)));
typedef uint32_t Row __attribute__((vector_size(32))); /* accumulators of a set */

typedef struct Factors { /* x: of halves low, of quarters low and high, of singles single */
    FourWide low, high;
    float single;
} Factors;

/* Eight quarters as F32 bits. */
INLINE void widen_quarters(uint64_t codes, bool f143, Row *values)
{
    const float *table = QUARTER_VALUES[f143];
    for (unsigned i = 0; i < 8; i++)
        (*values)[i] = float_bits(table[codes >> 8 * i & 255]);
}

INLINE uint64_t low_word(Lanes lanes)
{
    uint64_t words[2];
    memcpy(words, &lanes, sizeof words);
    return words[0];
}

INLINE uint64_t high_word(Lanes lanes)
{
    uint64_t words[2];
    memcpy(words, &lanes, sizeof words);
    return words[1];
}

INLINE void store_results(FloatState *state, int32_t r, uint64_t results, Shape shape)
{
    if (shape.half_out && shape.sets == 1)
        store_register(state, r, (uint32_t)results);
    else
        store_pair(state, r, results);
}

/* ---- The chain ---- */

/* What leaves two sets. */
INLINE Lanes two_and_two(const Row *first, const Row *second)
{
    return (Lanes)__builtin_shufflevector(*first, *second, 0, 1, 8, 9);
}

/* Two values leave a row of `units` elements, two of `entering` (0, 1 or 2, 3) enter at the far
 * end. */
INLINE void shift(Row *row, Lanes entering, bool high, unsigned units)
{
    Row wide = __builtin_shufflevector((Bits)entering, (Bits)entering, 0, 1, 2, 3, 4, 5, 6, 7);
    if (units == 8) {
        *row = high ? __builtin_shufflevector(*row, wide, 2, 3, 4, 5, 6, 7, 10, 11)
                    : __builtin_shufflevector(*row, wide, 2, 3, 4, 5, 6, 7, 8, 9);
        return;
    }
    uint32_t raw[8];
    memcpy(raw, row, sizeof raw);
    memmove(raw, raw + 2, (units - 2) * sizeof *raw);
    store_u64(raw + units - 2, high ? high_word(entering) : low_word(entering));
    memcpy(row, raw, sizeof raw);
}

/* Live accumulators and chain with the first `units` units of both sets exchanged. */
static void exchange_units(const FloatState *state, unsigned units, uint32_t *live, uint32_t *chain)
{
    for (unsigned i = 0; i < 16; i++) {
        live[i] = i % 8 < units ? state->chain[i] : state->live[i];
        chain[i] = i % 8 < units ? state->live[i] : state->chain[i];
    }
}

/* ---- Sums that are not finite: the only ones with events ---- */

static bool is_finite(double value)
{
    return value - value == 0;
}

/* One lane of x (scaling does not change whether it is finite). */
static double raw_factor(const FloatState *state, int32_t r, Product product, unsigned lane)
{
    uint64_t raw = load_pair(state, r);
    if (product == HALVES)
        return (double)widen_halves(raw)[lane & 3];
    return (
        double)QUARTER_VALUES[(state->formats & FORMAT_VALUES_F143) != 0][raw >> 8 * lane & 255];
}

/* An infinite sum of unit i: is it an overflow, or is an operand infinite? */
static bool operands_finite(const FloatState *state, int32_t r, const Weights *weights,
                            unsigned column, Product product, unsigned i)
{
    if (product == SINGLES)
        return is_finite((double)float_of(load_register(state, r))) &&
               is_finite((double)weights->single[column][i]);
    for (unsigned lane = 0; lane < (product == HALVES ? 4 : 8); lane++)
        if (!is_finite(raw_factor(state, r, product, lane)) ||
            !is_finite(weights->lane[column][lane][i]))
            return false;
    return true;
}

/* `sums` are the accumulators before, `next` after. Only units below `units` of each set count; the
 * others stay as they were. Returns the flags. */
static __attribute__((noinline)) uint32_t special_sums(const FloatState *state, int32_t r,
                                                       const Weights *weights, unsigned column,
                                                       Shape shape, unsigned units,
                                                       const uint32_t *sums, uint32_t *next)
{
    uint32_t flags = 0;
    for (unsigned i = 0; i < 8 * shape.sets; i++) {
        uint32_t magnitude = next[i] & 0x7fffffff;
        if (i % 8 >= units) {
            next[i] = sums[i];
        } else if (magnitude > SINGLE_INF) {
            flags |= FLAG_INV;
            next[i] = SINGLE_NAN;
        } else if (magnitude == SINGLE_INF && is_finite((double)float_of(sums[i])) &&
                   operands_finite(state, r, weights, column, shape.product, i)) {
            flags |= FLAG_OFLO;
        }
    }
    return flags;
}

/* f32sisov2slic, second issue: the entry of set 1 takes its partials together with the products. */
static void enter_partials(uint32_t *flags, float x, const float *column, Lanes partials,
                           const uint32_t *sums, uint32_t *next)
{
    for (unsigned i = 0; i < 2; i++) {
        float sum = float_of(sums[i]), partial = partials[i];
        double product = (double)x * (double)column[i];
        float result = sum_of_three(product, (double)partial, (double)sum);
        bool finite_operands =
            is_finite(product) && is_finite((double)partial) && is_finite((double)sum);
        next[i] = result == result ? float_bits(result) : SINGLE_NAN;
        if (result != result)
            *flags |= FLAG_INV;
        else if (!is_finite((double)result) && finite_operands)
            *flags |= FLAG_OFLO;
    }
}

/* ---- One version for each kind of host ---- */

#define AMP_JOIN(name, host) name##_##host
#define AMP_EXPAND(name, host) AMP_JOIN(name, host)
#define AMP_NAME(name) AMP_EXPAND(name, AMP_HOST)

/* AMP_WIDEN: sums to double. AMP_FOUR: four lanes to double. AMP_SIGNS: not 0 when a sign bit is
 * set. AMP_FUSED: x * weight + sum, rounded once. AMP_NOT_FINITE: whether a sum
 * of two sets is not. */
#define AMP_HOST portable
#define AMP_TARGET
#define AMP_BYTES 16
#define AMP_WIDEN(sums) __builtin_convertvector(sums, Wide)
#define AMP_FOUR(lanes) __builtin_convertvector((Lanes)(lanes), FourWide)
#define AMP_SIGNS(bits) ((bits)[0] | (bits)[1]) >> 31
#define AMP_FUSED(x, weight, sum)                                                                  \
    (Sums)                                                                                         \
    {                                                                                              \
        __builtin_fmaf(x, (weight)[0], (sum)[0]), __builtin_fmaf(x, (weight)[1], (sum)[1])         \
    }
#include "sim/amp_unit.h"

#if defined(__x86_64__)
#define AMP_HOST avx2
#define AMP_TARGET __attribute__((target("avx2,fma,f16c")))
#define AMP_BYTES 32
#define AMP_WIDEN(sums) (Wide) _mm256_cvtps_pd((__m128)(sums))
#define AMP_FOUR(lanes) (FourWide) _mm256_cvtps_pd((__m128)(lanes))
#define AMP_SIGNS(bits) _mm_movemask_ps((__m128)(bits))
#define AMP_FUSED(x, weight, sum)                                                                  \
    (Sums) _mm_fmadd_ps(_mm_set1_ps(x), (__m128)(weight), (__m128)(sum))
#define AMP_NOT_FINITE(first, second)                                                              \
    (_mm256_movemask_ps((__m256)((((first)&0x7fffffff) + 0x00800000) |                             \
                                 (((second)&0x7fffffff) + 0x00800000))) != 0)
#define AMP_F16C
#include "sim/amp_unit.h"

#define AMP_HOST avx512
#define AMP_TARGET __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,f16c")))
#define AMP_BYTES 64
#define AMP_WIDEN(sums) (Wide) _mm512_cvtps_pd((__m256)(sums))
#define AMP_FOUR(lanes) (FourWide) _mm256_cvtps_pd((__m128)(lanes))
#define AMP_SIGNS(bits) _mm256_movemask_ps((__m256)(bits))
#define AMP_FUSED(x, weight, sum)                                                                  \
    (Sums) _mm256_fmadd_ps(_mm256_set1_ps(x), (__m256)(weight), (__m256)(sum))
#define AMP_NOT_FINITE(first, second) /* NaNs and infinities */                                    \
    ((_mm256_fpclass_ps_mask((__m256)(first), 0x99) |                                              \
      _mm256_fpclass_ps_mask((__m256)(second), 0x99)) != 0)
#define AMP_F16C
#include "sim/amp_unit.h"
#endif

FloatExecute *amp_handler(Form form, Host host)
{
    switch (host) {
#if defined(__x86_64__)
    case HOST_AVX512:
        return amp_handler_avx512(form);
    case HOST_AVX2:
        return amp_handler_avx2(form);
#endif
    default:
        return amp_handler_portable(form);
    }
}

/* ---- Stretches ---- */

/* For hosts that do not convert halves: by the handlers. */
static void stretch_by_handlers(FloatState *state, Weights *weights, uint8_t *memory,
                                const FloatOp *const *ops, const FloatAccess *accesses,
                                uint32_t count)
{
    uint64_t sink = 0; /* of loads that are dropped */
    for (uint32_t i = 0; i < count; i++) {
        const FloatOp *op = ops[i];
        uint64_t loaded[2] = {0, 0};
        if (op->kind & FLOAT_LOAD)
            loaded[0] = load_u64(memory + accesses[i].load[0]);
        if (op->kind & FLOAT_LOAD_SECOND)
            loaded[1] = load_u64(memory + accesses[i].load[1]);
        if (op->kind & FLOAT_STORE)
            store_u64(memory + accesses[i].store, load_u64(&state->a[2 * op->store]));
        if (op->kind & FLOAT_AMP)
            op->aux(state, weights, op->operand);
        for (uint32_t n = 0; n < 2; n++)
            if (op->kind & (n ? FLOAT_LOAD_SECOND : FLOAT_LOAD))
                store_u64(op->load[n] < 4 ? (void *)&state->a[2 * op->load[n]] : &sink, loaded[n]);
    }
}

FloatStretch *float_stretch_for(Form form, Host host)
{
    if (form != FORM_f16v4hihov4amp_aaan_ef && form != FORM_f8v8hihov4amp_aaan_ef)
        return NULL;
    switch (host) {
#if defined(__x86_64__)
    case HOST_AVX512:
        return amp_stretch_avx512(form);
    case HOST_AVX2:
        return amp_stretch_avx2(form);
#endif
    default:
        return stretch_by_handlers;
    }
}
