/* float_elementary.c - exp, exp2, ln, log2, tanh, sigm, 1/sqrt, 1/x, sqrt: the correctly rounded
 * value.
 *
 * A correctly rounded result is unique, so it is the same on every host, and libm is not used. The
 * work is done twice (Ziv's method): first in double with a relative error below 2^-46; if every
 * value that close to the result rounds to the same number, that is it. Else in double-double, with
 * a relative error near 2^-95: far less than the distance that the hardest arguments of F32
 * functions keep from a rounding boundary, except where the result lies on it exactly, and those
 * (powers of two and their logarithms) come out exact.
 *
 * Functions of halves are tables of all 65,536 results, made at their first use.
 *
 * This file must be compiled without contraction of products and sums (-ffp-contract=off). */
#include "sim/float_impl.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- Double-double: high + low, |low| at most half a unit in the last place of high ---- */

typedef struct Twice {
    double high, low;
} Twice;

static Twice quick_sum(double a, double b) /* |a| >= |b| or a = 0 */
{
    double sum = a + b;
    return (Twice){sum, b - (sum - a)};
}

static Twice exact_sum(double a, double b)
{
    double sum = a + b, of_b = sum - a;
    return (Twice){sum, (a - (sum - of_b)) + (b - of_b)};
}

static Twice split(double a) /* 26 + 27 bits; |a| < 2^990 */
{
    double scaled = a * 134217729.0, high = scaled - (scaled - a);
    return (Twice){high, a - high};
}

static Twice exact_product(double a, double b)
{
    double product = a * b;
    Twice x = split(a), y = split(b);
    double error = ((x.high * y.high - product) + x.high * y.low + x.low * y.high) + x.low * y.low;
    return (Twice){product, error};
}

static Twice add(Twice a, Twice b)
{
    Twice high = exact_sum(a.high, b.high), low = exact_sum(a.low, b.low);
    Twice sum = quick_sum(high.high, high.low + low.high);
    return quick_sum(sum.high, sum.low + low.low);
}

static Twice multiply(Twice a, Twice b)
{
    Twice product = exact_product(a.high, b.high);
    return quick_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

static Twice negate(Twice a)
{
    return (Twice){-a.high, -a.low};
}

static Twice divide(Twice a, Twice b)
{
    double first = a.high / b.high;
    Twice rest = add(a, negate(multiply(b, (Twice){first, 0})));
    double second = rest.high / b.high;
    rest = add(rest, negate(multiply(b, (Twice){second, 0})));
    return add(quick_sum(first, second), (Twice){rest.high / b.high, 0});
}

static Twice twice(double a)
{
    return (Twice){a, 0};
}

/* ln 2 to 160 bits, as three doubles. */
#define LN2_HIGH 0x1.62e42fefa39efp-1
#define LN2_LOW 0x1.abc9e3b39803fp-56
#define LN2_LOWEST 0x1.7b57a079a1934p-111
static const Twice LN2 = {LN2_HIGH, LN2_LOW};

static double power_of_two(int exponent) /* -1022..1023 */
{
    uint64_t bits = (uint64_t)(1023 + exponent) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static int nearest_integer(double a) /* |a| < 2^30; ties are unimportant */
{
    return (int)(a < 0 ? a - 0.5 : a + 0.5);
}

/* ---- e^x - 1 and its exponent: e^x = 2^k * (1 + rest), |rest| < 0.42 ---- */

typedef struct Exponential {
    int exponent;
    Twice rest;
} Exponential;

/* e^r - 1 for |r| < 0.36: Taylor for r/256, then eight times (1 + s)^2 - 1 = 2s + s^2. The relative
 * error grows by at most 2^8 over that of the series. */
static Twice exp_minus_1(Twice r)
{
    enum { TERMS = 11, HALVINGS = 8 };
    Twice small = {r.high / 256, r.low / 256}, sum = {0, 0};
    for (int n = TERMS; n >= 2; n--) /* x/2 (1 + x/3 (1 + ...)) */
        sum = divide(multiply(small, add(twice(1), sum)), twice(n));
    sum = multiply(small, add(twice(1), sum));
    for (int i = 0; i < HALVINGS; i++)
        sum = add(add(sum, sum), multiply(sum, sum));
    return sum;
}

static Exponential exponential(Twice x)
{
    int k = nearest_integer(x.high / LN2_HIGH);
    Twice r = add(x, negate(exact_product(k, LN2_HIGH)));
    r = add(r, negate(exact_product(k, LN2_LOW)));
    r = add(r, twice(-k * LN2_LOWEST));
    return (Exponential){k, exp_minus_1(r)};
}

static Twice scaled(Twice a, int exponent)
{
    double power = power_of_two(exponent);
    return (Twice){a.high * power, a.low * power};
}

static Twice exp_exact(double x)
{
    Exponential e = exponential(twice(x));
    return scaled(add(twice(1), e.rest), e.exponent);
}

static Twice exp2_exact(double x)
{
    int k = nearest_integer(x);
    Twice r = multiply(twice(x - k), LN2); /* exact difference; 0 for integers */
    return scaled(add(twice(1), exp_minus_1(r)), k);
}

static Twice sigm_exact(double x)
{
    return divide(twice(1), add(twice(1), exp_exact(-x)));
}

/* (e^2x - 1) / (e^2x + 1) */
static Twice tanh_exact(double x)
{
    Exponential e = exponential(twice(2 * x));
    Twice less =
        e.exponent == 0 ? e.rest : add(scaled(add(twice(1), e.rest), e.exponent), twice(-1));
    return divide(less, add(less, twice(2)));
}

/* ---- Logarithms: x = m * 2^k, m in [sqrt(1/2), sqrt(2)) ---- */

typedef struct Decomposed {
    int exponent;
    double mantissa;
} Decomposed;

static Decomposed decompose(double x) /* positive, normal */
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52) - 1023;
    bits = (bits & 0x000fffffffffffff) | (uint64_t)1023 << 52;
    double mantissa;
    memcpy(&mantissa, &bits, sizeof mantissa);
    if (mantissa > 1.4142135)
        return (Decomposed){exponent + 1, mantissa / 2};
    return (Decomposed){exponent, mantissa};
}

/* ln(m) = 2 artanh(f), f = (m - 1) / (m + 1), |f| < 0.172. */
static double log_mantissa(double m)
{
    double f = (m - 1) / (m + 1), square = f * f, sum = 0;
    for (int n = 21; n >= 3; n -= 2)
        sum = (sum + 1.0 / n) * square;
    return 2 * f + 2 * f * sum;
}

/* One step of Halley's method for e^y = m, from y good to 2^-50, with differences from 1. */
static Twice log_mantissa_exact(double m)
{
    double y = log_mantissa(m);
    Twice less = exp_minus_1(twice(y)); /* m is exact, and so is m - 1 */
    Twice difference = add(twice(m - 1), negate(less));
    Twice sum = add(add(twice(m), twice(1)), less);
    return add(twice(y), divide(add(difference, difference), sum));
}

static Twice ln_exact(double x)
{
    Decomposed d = decompose(x);
    Twice whole = add(exact_product(d.exponent, LN2_HIGH), exact_product(d.exponent, LN2_LOW));
    return add(whole, log_mantissa_exact(d.mantissa));
}

static Twice log2_exact(double x)
{
    Decomposed d = decompose(x);
    return add(twice(d.exponent), divide(log_mantissa_exact(d.mantissa), LN2));
}

/* 1/sqrt(x): one Newton step in double-double. */
static Twice oorx_exact(double x)
{
    double y = 1 / __builtin_sqrt(x);
    Twice error = add(twice(1), negate(multiply(multiply(twice(y), twice(y)), twice(x))));
    return add(twice(y), multiply(twice(y / 2), error));
}

/* ---- The same in double, error below 2^-46 ---- */

/* e^r for |r| < 0.36, less 1: the Taylor series to r^14 / 14!. */
static double exp_minus_1_quick(double r)
{
    double sum = 1;
    for (int n = 14; n >= 2; n--)
        sum = 1 + sum * (r * (1.0 / n));
    return sum * r;
}

static double exp_quick(double x)
{
    int k = nearest_integer(x * (1 / LN2_HIGH));
    /* The high part of ln 2 to 40 bits: its product with k is exact. */
    const double high = 0x1.62e42fefa3p-1, low = 0x1.3de6af278ece6p-42;
    double r = (x - k * high) - k * low;
    return (1 + exp_minus_1_quick(r)) * power_of_two(k);
}

static double exp2_quick(double x)
{
    int k = nearest_integer(x);
    return (1 + exp_minus_1_quick((x - k) * LN2_HIGH)) * power_of_two(k);
}

static double sigm_quick(double x)
{
    return 1 / (1 + exp_quick(-x));
}

static double tanh_quick(double x)
{
    if (x > 0.17 || x < -0.17) {
        double e = exp_quick(2 * x);
        return (e - 1) / (e + 1);
    }
    double less = exp_minus_1_quick(2 * x);
    return less / (less + 2);
}

static double ln_quick(double x)
{
    Decomposed d = decompose(x);
    return d.exponent * LN2_HIGH + log_mantissa(d.mantissa);
}

static double log2_quick(double x)
{
    Decomposed d = decompose(x);
    return d.exponent + log_mantissa(d.mantissa) * (1 / LN2_HIGH);
}

static double oorx_quick(double x)
{
    return 1 / __builtin_sqrt(x);
}

/* ---- Rounding ---- */

typedef struct Function {
    double (*quick)(double);
    Twice (*exact)(double);
    double low,
        high; /* arguments beyond give the results at these (rounded: a limit, 0 or overflow) */
    uint32_t at_plus_zero, at_plus_infinity, at_minus_infinity; /* F32 */
    bool logarithm; /* of positive numbers only; a pole at 0 */
    bool odd;
} Function;

#define ONE 0x3f800000u
#define MINUS_INF 0xff800000u
static const Function EXP = {exp_quick, exp_exact, -200, 200, ONE, SINGLE_INF, 0, false, false};
static const Function EXP2 = {exp2_quick, exp2_exact, -300, 300, ONE, SINGLE_INF, 0, false, false};
static const Function LN = {ln_quick,   ln_exact,   0,    1e39, MINUS_INF,
                            SINGLE_INF, SINGLE_NAN, true, false};
static const Function LOG2 = {log2_quick, log2_exact, 0,    1e39, MINUS_INF,
                              SINGLE_INF, SINGLE_NAN, true, false};
static const Function TANH = {tanh_quick, tanh_exact,       -40,   40,  0,
                              ONE,        ONE | 0x80000000, false, true};
static const Function SIGM = {sigm_quick, sigm_exact, -200, 200, 0x3f000000, ONE, 0, false, false};
static const Function OORX = {oorx_quick, oorx_exact, 0,    1e39, SINGLE_INF,
                              0,          SINGLE_NAN, true, true};

/* To F32, rounding to odd: what is cut off is remembered in the last bit, so that a later rounding
 * to a shorter format is right. Results of the functions are normal or far below every half. */
static float to_odd(double value)
{
    float nearest = (float)value;
    if ((double)nearest == value)
        return nearest;
    uint32_t bits = float_bits(nearest), magnitude = bits & 0x7fffffff;
    double distance = (double)nearest - value;
    if ((distance > 0) == (value > 0)) /* rounded away: back to the number below */
        magnitude--;
    return float_of((bits & 0x80000000) | magnitude | 1);
}

/* The exact sum to odd in double: then rounding to F32 is right, and so is to_odd. */
static double sum_to_odd(Twice a)
{
    uint64_t bits;
    memcpy(&bits, &a.high, sizeof bits);
    if (a.low != 0 && !(bits & 1))
        bits += (a.low > 0) == (a.high > 0) ? 1u : ~(uint64_t)0;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The half next to a value in F32 rounded to odd; infinity beyond the largest. */
static uint32_t nearest_half(float value)
{
    Bits bits = {float_bits(value)};
    uint32_t code = narrow_nearest(bits & 0x7fffffff, FORMAT_F16)[0];
    return min_u32(code, HALF_INF) | (bits[0] >> 16 & 0x8000);
}

static uint32_t rounded(double value, bool half)
{
    return half ? nearest_half(to_odd(value)) : float_bits((float)value);
}

/* The result for a finite argument with x != 0 (and > 0 for logarithms), as F32 bits or a half. */
static uint32_t evaluate(const Function *function, double x, bool half)
{
    x = x < function->low ? function->low : x > function->high ? function->high : x;
    double value = function->quick(x);
    uint32_t above = rounded(value * (1 + 0x1p-46), half);
    uint32_t below = rounded(value * (1 - 0x1p-46), half);
    if (above == below)
        return above;
    return rounded(sum_to_odd(function->exact(x)), half);
}

/* ---- F32 instructions ---- */

static uint32_t special_argument(const Function *function, uint32_t bits, uint32_t *flags)
{
    uint32_t magnitude = bits & 0x7fffffff, sign = bits & 0x80000000;
    if (magnitude > SINGLE_INF || (function->logarithm && sign && magnitude != 0)) {
        *flags |= FLAG_INV;
        return SINGLE_NAN;
    }
    if (magnitude == SINGLE_INF)
        return sign ? function->at_minus_infinity : function->at_plus_infinity;
    *flags |= function->logarithm ? FLAG_DIV0 : 0; /* zero: a pole of these */
    return function->at_plus_zero | (function->odd ? sign : 0);
}

static bool is_special(const Function *function, uint32_t bits)
{
    uint32_t magnitude = bits & 0x7fffffff;
    return magnitude == 0 || magnitude >= SINGLE_INF || (function->logarithm && bits >> 31);
}

static uint32_t elementary(FloatState *state, const int32_t *operand, const Function *function)
{
    uint32_t bits = load_register(state, operand[1]), flags = 0, result;
    if (is_special(function, bits)) {
        result = special_argument(function, bits, &flags);
    } else {
        result = evaluate(function, (double)float_of(bits), false);
        flags = (result & 0x7fffffff) == SINGLE_INF ? FLAG_OFLO : 0;
    }
    if (raise(state, flags))
        return EXCEPTION_FP;
    store_register(state, operand[0], result);
    return 0;
}

#define SINGLE_FUNCTION(form, function)                                                            \
    HANDLER(form)                                                                                  \
    {                                                                                              \
        return elementary(state, operand, &function);                                              \
    }
SINGLE_FUNCTION(f32exp_aaan, EXP)
SINGLE_FUNCTION(f32exp2_aaan, EXP2)
SINGLE_FUNCTION(f32ln_aaan, LN)
SINGLE_FUNCTION(f32log2_aaan, LOG2)
SINGLE_FUNCTION(f32tanh_aaan, TANH)
SINGLE_FUNCTION(f32sigm_aaan, SIGM)
SINGLE_FUNCTION(f32oorx_aaan, OORX)

/* The host's square root and division are correctly rounded. */
HANDLER(f32sqrt_aaan)
{
    float x = float_of(load_register(state, operand[1]));
    uint32_t flags = x >= 0 ? 0 : FLAG_INV;
    uint32_t result = x >= 0 ? float_bits(__builtin_sqrtf(x)) : SINGLE_NAN;
    if (raise(state, flags))
        return EXCEPTION_FP;
    store_register(state, operand[0], result);
    return 0;
}

HANDLER(f32oox_aaan)
{
    float x = float_of(load_register(state, operand[1])), result = 1 / x;
    uint32_t flags = x == 0 ? FLAG_DIV0 : 0;
    if (x != x) {
        flags = FLAG_INV;
        result = float_of(SINGLE_NAN);
    } else if (x != 0 && result - result != 0) { /* of a subnormal */
        flags = FLAG_OFLO;
    }
    if (raise(state, flags))
        return EXCEPTION_FP;
    store_register(state, operand[0], float_bits(result));
    return 0;
}

/* ---- Functions of halves ----
 *
 * An entry holds the saturated result and the flags. The tables are constants that are costly to
 * write down: 256 KiB each, made once, never changed. */

typedef struct HalfTable {
    const Function *function;
    pthread_once_t once;
    uint32_t *entries;
} HalfTable;

enum { ENTRY_FLAGS = 16 }; /* position of the flags in an entry */

static uint32_t half_entry(const Function *function, uint32_t half)
{
    uint32_t bits = float_bits(widen_halves(half)[0]), flags = 0, result;
    if (is_special(function, bits)) {
        Lanes value = {float_of(special_argument(function, bits, &flags))};
        Issue issue = {0};
        result = (uint32_t)halves_nearest(&issue, value) & 0xffff; /* its NaN is flagged already */
    } else {
        result = evaluate(function, (double)float_of(bits), true);
        if ((result & 0x7fff) > FORMAT_F16.largest) {
            flags = FLAG_OFLO;
            result = (result & 0x8000) | FORMAT_F16.largest;
        }
    }
    return result | flags << ENTRY_FLAGS;
}

static void fill(HalfTable *table)
{
    table->entries = xmalloc(65536 * sizeof *table->entries);
    for (uint32_t half = 0; half < 65536; half++)
        table->entries[half] = half_entry(table->function, half);
}

INLINE uint32_t table_lookup(uint32_t entry, uint32_t control, uint32_t *flags)
{
    uint32_t events = entry >> ENTRY_FLAGS;
    if (__builtin_expect(events & FLAG_OFLO && control & CONTROL_NANOO, 0)) {
        *flags |= FLAG_OFLO | FLAG_INV;
        return HALF_NAN;
    }
    *flags |= events;
    return entry & 0xffff;
}

INLINE uint32_t half_function(FloatState *state, const int32_t *operand, const uint32_t *entries)
{
    uint32_t x = load_register(state, operand[1]), flags = 0;
    uint32_t low = table_lookup(entries[x & 0xffff], state->control, &flags);
    uint32_t high = table_lookup(entries[x >> 16], state->control, &flags);
    if (raise(state, flags))
        return EXCEPTION_FP;
    store_register(state, operand[0], low | high << 16);
    return 0;
}

#define HALF_FUNCTION(form, of)                                                                    \
    static HalfTable table_##form = {&of, PTHREAD_ONCE_INIT, NULL};                                \
    static void fill_##form(void)                                                                  \
    {                                                                                              \
        fill(&table_##form);                                                                       \
    }                                                                                              \
    HANDLER(form)                                                                                  \
    {                                                                                              \
        pthread_once(&table_##form.once, fill_##form);                                             \
        return half_function(state, operand, table_##form.entries);                                \
    }
HALF_FUNCTION(f16v2exp_aaan, EXP)
HALF_FUNCTION(f16v2exp2_aaan, EXP2)
HALF_FUNCTION(f16v2ln_aaan, LN)
HALF_FUNCTION(f16v2log2_aaan, LOG2)
HALF_FUNCTION(f16v2tanh_aaan, TANH)
HALF_FUNCTION(f16v2sigm_aaan, SIGM)
