/* float_impl.h - inside the auxiliary lane: lanes, narrow formats, flags, random bits.
 *
 * The one idea: every lane is computed as F32 in a vector of four, whatever its format. Halves and
 * quarters are widened exactly, the operation is done in F32 (products of halves are exact there,
 * and 24 bits are enough that rounding a sum, product or quotient twice equals rounding it once),
 * and the result is narrowed with the rules of the chip. Unused lanes hold +0, which raises
 * nothing.
 *
 * Events are collected in `flags`; raise() records them and says whether to trap, and only after it
 * does a handler write registers: exceptions are precise. */
#ifndef IPU_SIM_FLOAT_IMPL_H
#define IPU_SIM_FLOAT_IMPL_H

#include "sim/float.h"

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { FLAG_INV = 1, FLAG_DIV0 = 2, FLAG_OFLO = 4 };
enum {
    CONTROL_ENABLES = 7,
    CONTROL_RND = 7 << 16,
    CONTROL_ESR = 1 << 19,  /* stochastic rounding of conversions */
    CONTROL_NANOO = 1 << 20 /* NaN on overflow of narrow formats, else the largest number */
};
enum { EXCEPTION_FP = 5, EXCEPTION_INVALID_OP = 9 };
enum { FORMAT_WEIGHTS_F143 = 1, FORMAT_VALUES_F143 = 2 }; /* FP_NFMT; a clear bit is F152 */
#define SINGLE_NAN 0x7fc00000u
#define SINGLE_INF 0x7f800000u
#define HALF_NAN 0x7e00u
#define HALF_INF 0x7c00u
#define QUARTER_NAN 0x80u

/* float_f16c.c compiles some files again, with FLOAT_F16C, for hosts that convert halves. */
#ifdef FLOAT_F16C
#define FLOAT_NAME(form) exec_##form##_f16c
#else
#define FLOAT_NAME(form) exec_##form
#endif
#define HANDLER(form)                                                                              \
    uint32_t FLOAT_NAME(form)(FloatState * state, __attribute__((unused)) Weights * weights,       \
                              __attribute__((unused)) const int32_t *operand)
#define FLOAT_FORM(form) FloatExecute exec_##form;
#define HALF_FORM(form) FloatExecute exec_##form, exec_##form##_f16c;
#include "sim/float_forms.def"

#define INLINE static inline __attribute__((always_inline))

typedef float Lanes __attribute__((vector_size(16)));
typedef uint32_t Bits __attribute__((vector_size(16)));
typedef int32_t Ints __attribute__((vector_size(16))); /* masks: all ones is true */
typedef uint16_t Halves __attribute__((vector_size(8)));

INLINE uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

INLINE float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

INLINE bool any(Ints mask)
{
#if defined(__SSE2__)
    return __builtin_ia32_movmskps((Lanes)mask) != 0;
#else
    uint64_t words[2];
    memcpy(words, &mask, sizeof words);
    return (words[0] | words[1]) != 0;
#endif
}

INLINE Bits select_bits(Ints mask, Bits yes, Bits no)
{
    return ((Bits)mask & yes) | (~(Bits)mask & no);
}

/* ---- Registers ---- */

INLINE uint32_t load_register(const FloatState *state, int32_t r)
{
    return state->a[r & 15];
}

INLINE uint64_t load_pair(const FloatState *state, int32_t r)
{
    return load_u64(&state->a[r & 14]);
}

INLINE void store_register(FloatState *state, int32_t r, uint32_t value)
{
    if ((r & 15) < 8) /* $a8..$a15 drop writes */
        state->a[r & 7] = value;
}

INLINE void store_pair(FloatState *state, int32_t r, uint64_t value)
{
    if ((r & 15) < 8)
        store_u64(&state->a[r & 6], value);
}

INLINE Lanes load_single(const FloatState *state, int32_t r)
{
    return (Lanes)(Bits){load_register(state, r), 0, 0, 0};
}

INLINE Lanes load_singles(const FloatState *state, int32_t r) /* a pair */
{
    return (Lanes)(Bits){state->a[r & 14], state->a[(r & 14) + 1], 0, 0};
}

INLINE Lanes load_quad(const FloatState *state, int32_t r)
{
    Lanes lanes;
    memcpy(&lanes, &state->a[r & 12], sizeof lanes);
    return lanes;
}

/* ---- Narrow formats ---- */

typedef struct Narrow { /* a format narrower than F32 */
    uint32_t mantissa;  /* explicit bits */
    uint32_t bias;      /* of the exponent */
    float spacing;      /* of subnormals: the value of code 1 */
    uint32_t largest;   /* code of the largest finite number; greater codes are overflow */
} Narrow;
static const Narrow FORMAT_F16 = {10, 15, 0x1p-24f, 0x7bff};
static const Narrow FORMAT_F143 = {3, 8, 0x1p-10f, 0x7f};
static const Narrow FORMAT_F152 = {2, 16, 0x1p-17f, 0x7f};

INLINE Lanes widen_halves(uint64_t halves)
{
#ifdef FLOAT_F16C /* makes signalling NaNs quiet; no handler tells them apart */
    return (Lanes)_mm_cvtph_ps(_mm_cvtsi64_si128((long long)halves));
#else
    Halves packed;
    memcpy(&packed, &halves, sizeof packed);
    Bits bits = __builtin_convertvector(packed, Bits);
    Bits magnitude = bits & 0x7fff;
    Bits normal = (magnitude << 13) + ((127 - 15) << 23);
    normal +=
        (Bits)(magnitude >= HALF_INF) & ((127 - 15) << 23); /* infinity and NaN: exponent 255 */
    Lanes subnormal = __builtin_convertvector((Ints)magnitude, Lanes) * 0x1p-24f;
    Bits value = select_bits(magnitude < 0x0400, (Bits)subnormal, normal);
    return (Lanes)(value | (bits & 0x8000) << 16);
#endif
}

INLINE uint64_t pack_halves(Bits halves)
{
    Halves packed = __builtin_convertvector(halves, Halves);
    uint64_t word;
    memcpy(&word, &packed, sizeof word);
    return word;
}

/* Codes of magnitudes (sign bit clear), to nearest even. Beyond the largest number, for infinity
 * and NaN the result is some code above format->largest. */
INLINE Bits narrow_nearest(Bits magnitude, Narrow format)
{
    uint32_t shift = 23 - format.mantissa;
    Bits round = ((1u << (shift - 1)) - 1) + ((magnitude >> shift) & 1);
    Bits normal = ((magnitude + round) >> shift) - ((127 - format.bias) << format.mantissa);
    /* Adding 2^23 spacings leaves a float whose last place is one spacing: the adder rounds. */
    float aligned = format.spacing * 0x1p23f;
    Bits subnormal = (Bits)((Lanes)magnitude + aligned) - float_bits(aligned);
    return select_bits(magnitude < (128 - format.bias) << 23, subnormal, normal);
}

/* The same with 16 random bits a lane: up when the first 16 bits of what is cut off plus the random
 * number carry. */
INLINE Bits narrow_stochastic(Bits magnitude, Bits random, Narrow format)
{
    uint32_t shift = 23 - format.mantissa;
    Bits carry = shift < 16 ? random >> (16 - shift) % 16 : random << (shift - 16) % 16;
    Bits normal = ((magnitude + carry) >> shift) - ((127 - format.bias) << format.mantissa);
    Ints small = magnitude < (128 - format.bias) << 23;
    Lanes scaled = (Lanes)((Bits)small & magnitude) * (0x1p16f / format.spacing);
    Bits fixed = (Bits) __builtin_convertvector(scaled, Ints);
    return select_bits(small, (fixed + random) >> 16, normal);
}

/* ---- Random numbers: xoroshiro128aox ---- */

INLINE uint64_t rotate_left(uint64_t value, unsigned count)
{
    return value << count | value >> (64 - count);
}

INLINE uint64_t prng_draw(uint64_t state[2])
{
    uint64_t sum = state[0] ^ state[1], both = state[0] & state[1];
    state[0] = rotate_left(state[0], 55) ^ sum ^ sum << 14;
    state[1] = rotate_left(sum, 36);
    return sum ^ (rotate_left(both, 1) | rotate_left(both, 2));
}

/* ---- Events and conversions of one issue ---- */

typedef struct Issue {
    uint32_t flags, control;
    uint64_t prng[2];
} Issue;

INLINE Issue issue_begin(const FloatState *state)
{
    Issue issue = {0, state->control, {0, 0}};
    memcpy(issue.prng, state->prng, sizeof issue.prng);
    return issue;
}

/* True: take exception 5 and write nothing more. */
INLINE bool raise(FloatState *state, uint32_t flags)
{
    state->status |= flags;
    return (flags & state->control & CONTROL_ENABLES) != 0;
}

/* Records flags and the advanced random numbers. True: take exception 5 and write nothing more. */
INLINE bool issue_traps(FloatState *state, const Issue *issue)
{
    if (raise(state, issue->flags))
        return true;
    if (issue->control & CONTROL_ESR)
        memcpy(state->prng, issue->prng, sizeof state->prng);
    return false;
}

/* For lanes some of which are no finite code of the format: overflow, infinity, NaN. */
Bits narrow_special(Issue *issue, Bits bits, Bits magnitudes, bool half, uint32_t largest);

/* From codes of magnitudes to codes. */
INLINE Bits narrow_finish(Issue *issue, Bits bits, Bits magnitudes, Narrow format, bool half)
{
    if (__builtin_expect(any((Ints)magnitudes > (int32_t)format.largest), 0))
        return narrow_special(issue, bits, magnitudes, half, format.largest);
    if (half)
        return magnitudes | (bits >> 16 & 0x8000);
    return magnitudes | ((Bits)(magnitudes != 0) & bits >> 24 & 0x80); /* quarters have one zero */
}

/* Four F32 lanes to halves or quarters, always to nearest. */
INLINE Bits narrow_to_nearest(Issue *issue, Lanes lanes, Narrow format, bool half)
{
    Bits bits = (Bits)lanes;
    return narrow_finish(issue, bits, narrow_nearest(bits & 0x7fffffff, format), format, half);
}

/* Four F32 lanes by a conversion, which FP_CTL.ESR makes stochastic at the cost of one draw. */
INLINE Bits narrow_convert(Issue *issue, Lanes lanes, Narrow format, bool half)
{
    if (!(issue->control & CONTROL_ESR))
        return narrow_to_nearest(issue, lanes, format, half);
    uint64_t draw = prng_draw(issue->prng);
    Halves split;
    memcpy(&split, &draw, sizeof split);
    Bits bits = (Bits)lanes;
    Bits codes = narrow_stochastic(bits & 0x7fffffff, __builtin_convertvector(split, Bits), format);
    return narrow_finish(issue, bits, codes, format, half);
}

INLINE uint64_t halves_nearest(Issue *issue, Lanes lanes)
{
#ifdef FLOAT_F16C
    uint64_t halves = (uint64_t)_mm_cvtsi128_si64(_mm_cvtps_ph((__m128)lanes, 0));
    /* Bit 15 of a half becomes 1 when its exponent is 31: infinity, overflow, NaN. */
    uint64_t exponents = (halves & 0x7fff7fff7fff7fff) + 0x0400040004000400;
    if (__builtin_expect((exponents & 0x8000800080008000) == 0, 1))
        return halves;
#endif
    return pack_halves(narrow_to_nearest(issue, lanes, FORMAT_F16, true));
}

INLINE uint64_t halves_converted(Issue *issue, Lanes lanes)
{
    if (!(issue->control & CONTROL_ESR))
        return halves_nearest(issue, lanes);
    return pack_halves(narrow_convert(issue, lanes, FORMAT_F16, true));
}

/* F32 results of an operation on x and y: canonical NaNs; an infinity from finite operands is an
 * overflow. */
Lanes single_special(uint32_t *flags, Lanes x, Lanes y, Lanes result);

INLINE Lanes single_finish(uint32_t *flags, Lanes x, Lanes y, Lanes result)
{
    if (__builtin_expect(any(((Bits)result & SINGLE_INF) == SINGLE_INF), 0))
        return single_special(flags, x, y, result);
    return result;
}

/* FP_SCL as a power of two. */
INLINE float scale_factor(const FloatState *state)
{
    int32_t exponent = (int32_t)(state->scale << 26) >> 26;
    return float_of((uint32_t)(127 + exponent) << 23);
}

INLINE Narrow values_format(const FloatState *state)
{
    return state->formats & FORMAT_VALUES_F143 ? FORMAT_F143 : FORMAT_F152;
}

/* a + b + c, rounded once to F32. The sums of any two need not be representable. */
float sum_of_three(double a, double b, double c);

/* Handlers for kinds of hosts: all give the same bits. NULL: no form of this lane, or of the matrix
 * unit. */
typedef enum Host { HOST_PORTABLE, HOST_AVX2, HOST_AVX512 } Host;
Host float_host(void); /* the best that this host runs */
FloatExecute *float_handler_for(Form form, Host host);
FloatExecute *amp_handler(Form form, Host host);
FloatStretch *float_stretch_for(Form form, Host host);

/* Values of the 256 codes; [0] F152, [1] F143. */
extern const float QUARTER_VALUES[2][256];

#endif
