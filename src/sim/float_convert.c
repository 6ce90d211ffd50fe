/* float_convert.c - conversions between F32, halves, quarters and integers, and rounding to
 * integral values. */
#include "sim/float_impl.h"

/* ---- Halves to F32: exact; infinities pass ---- */

HANDLER(f16tof32_aaan)
{
    Lanes x = widen_halves(load_register(state, operand[1]) & 0xffff);
    uint32_t flags = 0;
    x = single_finish(&flags, x, x, x);
    if (raise(state, flags))
        return EXCEPTION_FP;
    store_register(state, operand[0], ((Bits)x)[0]);
    return 0;
}

INLINE uint64_t low_lanes(Lanes lanes)
{
    uint64_t words[2];
    memcpy(words, &lanes, sizeof words);
    return words[0];
}

HANDLER(f16v2tof32_aaan)
{
    Lanes x = widen_halves(load_register(state, operand[1]));
    uint32_t flags = 0;
    x = single_finish(&flags, x, x, x);
    if (raise(state, flags))
        return EXCEPTION_FP;
    store_pair(state, operand[0], low_lanes(x));
    return 0;
}

/* ---- F32 to halves ---- */

HANDLER(f32tof16_aaan)
{
    Issue issue = issue_begin(state);
    uint64_t half = halves_converted(&issue, load_single(state, operand[1])) & 0xffff;
    if (issue_traps(state, &issue))
        return EXCEPTION_FP;
    store_register(state, operand[0], (uint32_t)(half | half << 16));
    return 0;
}

HANDLER(f32v2tof16_aaan)
{
    Issue issue = issue_begin(state);
    uint64_t halves = halves_converted(&issue, load_singles(state, operand[1]));
    if (issue_traps(state, &issue))
        return EXCEPTION_FP;
    store_register(state, operand[0], (uint32_t)halves);
    return 0;
}

HANDLER(f32v4tof16_aaan)
{
    Issue issue = issue_begin(state);
    uint64_t halves = halves_converted(&issue, load_quad(state, operand[1]));
    if (issue_traps(state, &issue))
        return EXCEPTION_FP;
    store_pair(state, operand[0], halves);
    return 0;
}

/* ---- F32 and integers ---- */

typedef enum Rounding { NEAREST_EVEN, UP, DOWN, TO_ZERO, NEAREST_AWAY } Rounding;

/* The integral value next to a finite x, without libm: the bits below the point are cut off, then
 * one is added to the magnitude where the mode asks for it. Zero keeps its sign. */
static float round_integral(float x, Rounding mode)
{
    uint32_t bits = float_bits(x), sign = bits & 0x80000000, exponent = bits >> 23 & 255;
    if (exponent >= 127 + 23)
        return x;
    uint32_t fraction_bits = exponent < 127 ? 0 : 127 + 23 - exponent;
    float below = exponent < 127 ? 0.0f : float_of(bits & 0x7fffffff & ~0u << fraction_bits);
    float rest = float_of(bits & 0x7fffffff) - below; /* exact, in [0, 1) */
    /* The units bit; in [1, 2) the implicit one. */
    bool odd = exponent >= 127 && ((bits | 0x00800000) >> fraction_bits & 1);
    bool away = false;
    switch (mode) {
    case UP:
        away = rest > 0 && !sign;
        break;
    case DOWN:
        away = rest > 0 && sign;
        break;
    case TO_ZERO:
        break;
    case NEAREST_AWAY:
        away = rest >= 0.5f;
        break;
    default:
        away = rest > 0.5f || (rest == 0.5f && odd);
    }
    return float_of(float_bits(below + (away ? 1.0f : 0.0f)) | sign);
}

HANDLER(f32int_aaan_ef)
{
    uint32_t bits = load_register(state, operand[1]), magnitude = bits & 0x7fffffff;
    if (magnitude > SINGLE_INF) {
        if (raise(state, FLAG_INV))
            return EXCEPTION_FP;
        bits = SINGLE_NAN;
    } else if (magnitude < SINGLE_INF) {
        bits = float_bits(round_integral(float_of(bits), (Rounding)operand[2]));
    }
    store_register(state, operand[0], bits);
    return 0;
}

/* Saturates to low..high, NaN gives 0; all three raise INV. The bounds are exact in double. */
INLINE uint32_t to_integer(FloatState *state, const int32_t *operand, double low, double high)
{
    float x = float_of(load_register(state, operand[1]));
    int64_t result = 0;
    uint32_t flags = FLAG_INV;
    if (x != x) {
        result = 0;
    } else if (x > 0x1p40f) {
        result = (int64_t)high;
    } else if (x < -0x1p40f) {
        result = (int64_t)low;
    } else {
        double integral = (double)round_integral(x, NEAREST_EVEN);
        flags = integral < low || integral > high ? FLAG_INV : 0;
        result = (int64_t)(integral < low ? low : integral > high ? high : integral);
    }
    if (raise(state, flags))
        return EXCEPTION_FP;
    store_register(state, operand[0], (uint32_t)result);
    return 0;
}

HANDLER(f32toi32_aaan)
{
    return to_integer(state, operand, -0x1p31, 0x1p31 - 1);
}

HANDLER(f32toui32_aaan)
{
    return to_integer(state, operand, 0, 0x1p32 - 1);
}

HANDLER(f32fromi32_aaan)
{
    float result = (float)(int32_t)load_register(state, operand[1]);
    store_register(state, operand[0], float_bits(result));
    return 0;
}

HANDLER(f32fromui32_aaan)
{
    float result = (float)load_register(state, operand[1]);
    store_register(state, operand[0], float_bits(result));
    return 0;
}

/* ---- Random bits to numbers in -0.5..0.5: (2r + 1 - 2^n) / 2^(n + 1), never 0 ---- */

INLINE Lanes half_fractions(uint64_t raw)
{
    Halves packed;
    memcpy(&packed, &raw, sizeof packed);
    Ints r = (Ints) __builtin_convertvector(packed, Bits);
    return __builtin_convertvector(2 * r + 1 - 0x10000, Lanes) * 0x1p-17f;
}

HANDLER(f16v2sufromui_aaan)
{
    Issue issue = issue_begin(state); /* in range: no events */
    uint64_t halves = halves_nearest(&issue, half_fractions(load_register(state, operand[1])));
    store_register(state, operand[0], (uint32_t)halves);
    return 0;
}

HANDLER(f16v4sufromui_aaan)
{
    Issue issue = issue_begin(state);
    store_pair(state, operand[0],
               halves_nearest(&issue, half_fractions(load_pair(state, operand[1]))));
    return 0;
}

static uint32_t single_fraction(uint32_t r)
{
    int64_t numerator = 2 * (int64_t)r + 1 - ((int64_t)1 << 32);
    return float_bits((float)numerator * 0x1p-33f);
}

HANDLER(f32sufromui_aaan)
{
    store_register(state, operand[0], single_fraction(load_register(state, operand[1])));
    return 0;
}

HANDLER(f32v2sufromui_aaan)
{
    uint64_t pair = load_pair(state, operand[1]);
    uint64_t high = single_fraction((uint32_t)(pair >> 32));
    store_pair(state, operand[0], high << 32 | single_fraction((uint32_t)pair));
    return 0;
}

/* ---- Quarters: both directions multiply by 2^FP_SCL ---- */

/* Four halves as codes in the low bytes of the lanes. Scaling a half is exact in F32. */
INLINE uint32_t four_to_quarters(Issue *issue, const FloatState *state, uint64_t halves)
{
    Lanes scaled = widen_halves(halves) * scale_factor(state);
    Bits codes = state->formats & FORMAT_VALUES_F143
                     ? narrow_convert(issue, scaled, FORMAT_F143, false)
                     : narrow_convert(issue, scaled, FORMAT_F152, false);
    return codes[0] | codes[1] << 8 | codes[2] << 16 | codes[3] << 24;
}

HANDLER(f16v2tof8_aaan)
{
    Issue issue = issue_begin(state);
    uint32_t codes = four_to_quarters(&issue, state, load_register(state, operand[1]));
    if (issue_traps(state, &issue))
        return EXCEPTION_FP;
    store_register(state, operand[0], codes);
    return 0;
}

HANDLER(f16v8tof8_aaan)
{
    const uint32_t *source = &state->a[operand[1] & 12];
    Issue issue = issue_begin(state);
    uint64_t low = four_to_quarters(&issue, state, load_u64(source));
    uint64_t high = four_to_quarters(&issue, state, load_u64(source + 2));
    if (issue_traps(state, &issue))
        return EXCEPTION_FP;
    store_pair(state, operand[0], high << 32 | low);
    return 0;
}

INLINE uint64_t quarters_to_halves(Issue *issue, const FloatState *state, uint32_t codes)
{
    const float *values = QUARTER_VALUES[(state->formats & FORMAT_VALUES_F143) != 0];
    Lanes lanes = {values[codes & 255], values[codes >> 8 & 255], values[codes >> 16 & 255],
                   values[codes >> 24]};
    return halves_nearest(issue, lanes * scale_factor(state));
}

HANDLER(f8v2tof16_aaan)
{
    Issue issue = issue_begin(state);
    uint64_t halves = quarters_to_halves(&issue, state, load_register(state, operand[1]) & 0xffff);
    if (raise(state, issue.flags))
        return EXCEPTION_FP;
    store_register(state, operand[0], (uint32_t)halves);
    return 0;
}

HANDLER(f8v4tof16_aaan)
{
    Issue issue = issue_begin(state);
    uint64_t halves = quarters_to_halves(&issue, state, load_register(state, operand[1]));
    if (raise(state, issue.flags))
        return EXCEPTION_FP;
    store_pair(state, operand[0], halves);
    return 0;
}
