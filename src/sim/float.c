/* float.c - the tables of handlers, the control registers, and what is rare: results that are not
 * simply rounded, constants. */
#include "sim/float_impl.h"

static FloatExecute *const HANDLERS[FORM_COUNT] = {
#define FLOAT_FORM(form) [FORM_##form] = exec_##form,
#include "sim/float_forms.def"
};

#if defined(__x86_64__)
static FloatExecute *const HANDLERS_F16C[FORM_COUNT] = {
#define HALF_FORM(form) [FORM_##form] = exec_##form##_f16c,
#include "sim/float_forms.def"
};
#endif

Host float_host(void)
{
#if defined(__x86_64__)
    /* Whoever has AVX2 has F16C; compilers do not all know a test for it. */
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return HOST_PORTABLE;
    bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
    return wide ? HOST_AVX512 : HOST_AVX2;
#else
    return HOST_PORTABLE;
#endif
}

FloatExecute *float_handler_for(Form form, Host host)
{
    if ((unsigned)form >= FORM_COUNT)
        return NULL;
#if defined(__x86_64__)
    if (host != HOST_PORTABLE && HANDLERS_F16C[form])
        return HANDLERS_F16C[form];
#endif
    return HANDLERS[form] ? HANDLERS[form] : amp_handler(form, host);
}

FloatExecute *float_handler(Form form)
{
    return float_handler_for(form, float_host());
}

FloatStretch *float_stretch(Form form)
{
    return float_stretch_for(form, float_host());
}

/* ---- Control registers, upper space of a worker ---- */

enum {
    CSR_STS,
    CSR_CLR,
    CSR_CTL,
    CSR_PRNG, /* 3..6: four words */
    CSR_SEED = 7,
    CSR_TAS,
    CSR_NFMT,
    CSR_SCL
};
enum {
    CLEAR_FLAGS = 7,
    CLEAR_ACCUMULATORS = 8,
    CONTROL_BITS = CONTROL_ENABLES | CONTROL_RND | CONTROL_ESR | CONTROL_NANOO,
    FORMAT_BITS = 3,
    SCALE_BITS = 63
};

uint32_t float_get_csr(const FloatState *state, uint32_t index)
{
    switch (index) {
    case CSR_STS:
        return state->status;
    case CSR_CTL:
        return state->control;
    case CSR_PRNG:
    case CSR_PRNG + 1:
    case CSR_PRNG + 2:
    case CSR_PRNG + 3:
        return state->prng[index - CSR_PRNG];
    case CSR_TAS:
        return state->tas;
    case CSR_NFMT:
        return state->formats;
    case CSR_SCL:
        return state->scale;
    default: /* FP_CLR and PRNG_SEED read 0 */
        return 0;
    }
}

static void seed(FloatState *state, uint32_t value)
{
    uint64_t first = (uint64_t)~value << 32 | value;
    uint64_t words[2] = {first, rotate_left(first, 13)};
    memcpy(state->prng, words, sizeof words);
}

static void clear(FloatState *state, uint32_t what)
{
    state->status &= ~(what & CLEAR_FLAGS);
    if (what & CLEAR_ACCUMULATORS) {
        memset(state->live, 0, sizeof state->live);
        memset(state->chain, 0, sizeof state->chain);
    }
}

void float_put_csr(FloatState *state, uint32_t index, uint32_t value)
{
    switch (index) {
    case CSR_CLR:
        clear(state, value);
        break;
    case CSR_CTL:
        state->control = value & CONTROL_BITS;
        if (value & CONTROL_RND)
            log_event(LOG_WARN, "FP_CTL.RND has no effect: nearest even", "value=0x%x", value);
        break;
    case CSR_PRNG:
    case CSR_PRNG + 1:
    case CSR_PRNG + 2:
    case CSR_PRNG + 3:
        state->prng[index - CSR_PRNG] = value;
        break;
    case CSR_SEED:
        seed(state, value);
        break;
    case CSR_TAS:
        state->tas = value;
        break;
    case CSR_NFMT:
        state->formats = value & FORMAT_BITS;
        break;
    case CSR_SCL:
        state->scale = value & SCALE_BITS;
        break;
    default: /* FP_STS is cleared through FP_CLR only */
        break;
    }
}

HANDLER(uget_aaan_zi)
{
    if ((uint32_t)operand[1] > CSR_SCL)
        return EXCEPTION_INVALID_OP;
    store_register(state, operand[0], float_get_csr(state, (uint32_t)operand[1]));
    return 0;
}

HANDLER(uput_aaan_zi)
{
    if ((uint32_t)operand[1] > CSR_SCL)
        return EXCEPTION_INVALID_OP;
    float_put_csr(state, (uint32_t)operand[1], load_register(state, operand[0]));
    return 0;
}

void float_launch(FloatState *state, uint32_t control, uint32_t formats, uint32_t scale)
{
    state->status = 0;
    state->control = control & CONTROL_BITS;
    state->formats = formats & FORMAT_BITS;
    state->scale = scale & SCALE_BITS;
}

/* ---- Results that are not simply rounded ---- */

static uint32_t special_code(Issue *issue, uint32_t bits, uint32_t code, bool half,
                             uint32_t largest)
{
    uint32_t sign = half ? bits >> 16 & 0x8000 : bits >> 24 & 0x80;
    uint32_t nan = half ? HALF_NAN : QUARTER_NAN, magnitude = bits & 0x7fffffff;
    if (magnitude > SINGLE_INF || (magnitude == SINGLE_INF && !half)) {
        issue->flags |= FLAG_INV;
        return nan;
    }
    if (magnitude == SINGLE_INF)
        return sign | HALF_INF;
    if (code <= largest)
        return half || code != 0 ? sign | code : 0; /* quarters have one zero */
    issue->flags |= FLAG_OFLO;
    if (!(issue->control & CONTROL_NANOO))
        return sign | largest;
    issue->flags |= FLAG_INV;
    return nan;
}

Bits narrow_special(Issue *issue, Bits bits, Bits magnitudes, bool half, uint32_t largest)
{
    for (unsigned i = 0; i < 4; i++)
        magnitudes[i] = special_code(issue, bits[i], magnitudes[i], half, largest);
    return magnitudes;
}

static bool is_infinite(float value)
{
    return (float_bits(value) & 0x7fffffff) == SINGLE_INF;
}

Lanes single_special(uint32_t *flags, Lanes x, Lanes y, Lanes result)
{
    for (unsigned i = 0; i < 4; i++) {
        if (result[i] != result[i]) {
            *flags |= FLAG_INV;
            result[i] = float_of(SINGLE_NAN);
        } else if (is_infinite(result[i]) && !is_infinite(x[i]) && !is_infinite(y[i])) {
            *flags |= FLAG_OFLO;
        }
    }
    return result;
}

/* ---- Constants and sums that several files use ---- */

/* Code to number of spacings: the mantissa, with its implicit bit shifted by the exponent above 1.
 */
#define MANTISSA(code, bits) ((code) & ((1 << (bits)) - 1))
#define EXPONENT(code, bits) (((code)&0x7f) >> (bits))
#define SPACINGS(code, bits)                                                                       \
    (EXPONENT(code, bits) == 0 ? (uint64_t)MANTISSA(code, bits)                                    \
                               : (uint64_t)(MANTISSA(code, bits) + (1 << (bits)))                  \
                                     << (EXPONENT(code, bits) - (EXPONENT(code, bits) != 0)))
#define QUARTER(code, bits, spacing)                                                               \
    (float)(((code)&0x80 ? -(spacing) : (spacing)) * (double)SPACINGS(code, bits))
#define F143(code) ((code) == 0x80 ? __builtin_nanf("") : QUARTER((code), 3, 0x1p-10))
#define F152(code) ((code) == 0x80 ? __builtin_nanf("") : QUARTER((code), 2, 0x1p-17))
#define FOUR(of, c) of(c), of(c + 1), of(c + 2), of(c + 3)
#define SIXTEEN(of, c) FOUR(of, c), FOUR(of, c + 4), FOUR(of, c + 8), FOUR(of, c + 12)
#define ALL(of)                                                                                    \
    SIXTEEN(of, 0x00), SIXTEEN(of, 0x10), SIXTEEN(of, 0x20), SIXTEEN(of, 0x30), SIXTEEN(of, 0x40), \
        SIXTEEN(of, 0x50), SIXTEEN(of, 0x60), SIXTEEN(of, 0x70), SIXTEEN(of, 0x80),                \
        SIXTEEN(of, 0x90), SIXTEEN(of, 0xa0), SIXTEEN(of, 0xb0), SIXTEEN(of, 0xc0),                \
        SIXTEEN(of, 0xd0), SIXTEEN(of, 0xe0), SIXTEEN(of, 0xf0)

const float QUARTER_VALUES[2][256] = {{ALL(F152)}, {ALL(F143)}};

/* a + b = *sum + the result, exactly (finite values). */
static double sum_error(double a, double b, double *sum)
{
    *sum = a + b;
    double of_b = *sum - a;
    return (a - (*sum - of_b)) + (b - of_b);
}

float sum_of_three(double a, double b, double c)
{
    double plain = a + b + c;
    if (plain - plain != 0) /* infinity or NaN */
        return (float)plain;
    double ab, abc, errors, high;
    double error = sum_error(a, b, &ab);
    double rest = sum_error(ab, c, &abc);
    double lost = sum_error(rest, error, &errors);
    double low = sum_error(abc, errors, &high) + lost;
    if (high == 0)
        return (float)plain; /* exact; keeps the sign of zero */
    if (low != 0) {          /* to odd: then rounding to F32 cannot meet a false tie */
        uint64_t bits;
        memcpy(&bits, &high, sizeof bits);
        if (!(bits & 1))
            bits += (low > 0) == (high > 0) ? 1u : ~(uint64_t)0;
        memcpy(&high, &bits, sizeof bits);
    }
    return (float)high;
}

/* ---- Weights ---- */

void weights_write(Weights *weights, uint32_t index, uint64_t value)
{
    weights->raw[index % countof(weights->raw)] = value;
    weights->spread = 0;
}

void weights_clear(Weights *weights)
{
    memset(weights->raw, 0, sizeof weights->raw);
    weights->spread = 0;
}
