/* libraries: sim */
/* test_sim_float_convert.c - rounding: conversions, half arithmetic, stochastic rounding,
 * accumulators.
 *
 * The reference works on exact doubles: a value is cut into whole steps of the target format and a
 * fraction, and the rule of the sheet is applied to the fraction. */
#include "check.h"

#include "float_case.h"

#include <math.h>

/* ---- Reference ---- */

typedef struct Format {
    int mantissa, least_exponent; /* of normal numbers */
    double largest;
    uint32_t largest_code, sign;
} Format;

static const Format HALF = {10, -14, 65504, 0x7bff, 0x8000};
static const Format F143 = {3, -7, 240, 0x7f, 0x80};
static const Format F152 = {2, -15, 57344, 0x7f, 0x80};

static double value_of(uint32_t code, const Format *format)
{
    uint32_t magnitude = code & (format->sign - 1);
    int exponent = (int)(magnitude >> format->mantissa);
    int mantissa = (int)(magnitude & ((1u << format->mantissa) - 1));
    double value = exponent == 0 ? mantissa : (1 << format->mantissa) + mantissa;
    value = ldexp(value, format->least_exponent - format->mantissa + (exponent ? exponent - 1 : 0));
    return code & format->sign ? -value : value;
}

/* Steps of the format below a magnitude, as a code, and what remains in units of a step. */
static uint32_t cut(double magnitude, const Format *format, double *rest)
{
    int exponent = format->least_exponent;
    if (magnitude >= ldexp(1, format->least_exponent)) {
        frexp(magnitude, &exponent);
        exponent--;
    }
    double steps = ldexp(magnitude, format->mantissa - exponent), whole = floor(steps);
    *rest = steps - whole;
    return ((uint32_t)(exponent - format->least_exponent) << format->mantissa) + (uint32_t)whole;
}

/* random < 0: nearest even. Sets *flags. */
static uint32_t reference(double value, const Format *format, int random, bool nanoo,
                          uint32_t *flags)
{
    bool half = format == &HALF;
    uint32_t nan = half ? 0x7e00 : 0x80, sign = signbit(value) ? format->sign : 0;
    if (value != value || (isinf(value) && !half)) {
        *flags |= 1;
        return nan;
    }
    if (isinf(value))
        return sign | 0x7c00;
    double rest;
    uint32_t code = cut(fabs(value), format, &rest);
    if (random >= 0)
        code += floor(rest * 65536) + random >= 65536;
    else
        code += rest > 0.5 || (rest == 0.5 && code & 1);
    if (code > format->largest_code) {
        *flags |= nanoo ? 5 : 4;
        return nanoo ? nan : sign | format->largest_code;
    }
    return half || code ? sign | code : 0;
}

static float single(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return value != value ? 0x7fc00000 : bits;
}

static double half(uint32_t code)
{
    if ((code & 0x7c00) != 0x7c00)
        return value_of(code, &HALF);
    return code & 0x3ff ? NAN : code & 0x8000 ? -INFINITY : INFINITY;
}

static void run(FloatState *state, Form form, int32_t a, int32_t b, int32_t c)
{
    int32_t operand[ISA_OPERANDS] = {a, b, c};
    assert_int_equal(float_handler(form)(state, NULL, operand), 0);
}

static uint64_t next_draw(FloatState *state)
{
    FloatState copy = *state;
    run(&copy, FORM_urand64_aaan, 0, 0, 0);
    uint64_t draw;
    memcpy(&draw, copy.a, sizeof draw);
    memcpy(state->prng, copy.prng, sizeof copy.prng);
    return draw;
}

/* ---- F32 to halves ---- */

/* Magnitudes of interest to halves, near ties and limits. */
static uint32_t random_near_half(Random *random)
{
    uint64_t draw = random_next(random);
    uint32_t bits = bits_of((float)half((uint32_t)draw & 0xffff));
    switch (draw >> 32 & 3) {
    case 0:
        return bits + (1u << 12); /* ties of normal numbers */
    case 1:
        return bits + (uint32_t)(draw >> 34 & 0x1fff);
    case 2:
        return bits + (1u << 12) + (uint32_t)(draw >> 34 & 2) - 1;
    default:
        return random_single(random);
    }
}

static void singles_to_halves(void **test)
{
    (void)test;
    Random random = {31};
    for (unsigned round = 0; round < 300000; round++) {
        FloatState state = random_float_state(&random);
        bool stochastic = state.control >> 19 & 1, nanoo = state.control >> 20 & 1;
        for (unsigned i = 4; i < 8; i++)
            state.a[i] = random_near_half(&random);
        FloatState copy = state;
        uint64_t draw = stochastic ? next_draw(&copy) : 0;
        uint32_t wanted[4], flags[4] = {0};
        for (unsigned i = 0; i < 4; i++)
            wanted[i] =
                reference((double)single(state.a[4 + i]), &HALF,
                          stochastic ? (int)(draw >> 16 * i & 0xffff) : -1, nanoo, &flags[i]);
        FloatState four = state, two = state, one = state;
        run(&four, FORM_f32v4tof16_aaan, 0, 4, 0);
        assert_int_equal(four.a[0], wanted[0] | wanted[1] << 16);
        assert_int_equal(four.a[1], wanted[2] | wanted[3] << 16);
        assert_int_equal(four.status, flags[0] | flags[1] | flags[2] | flags[3]);
        assert_memory_equal(four.prng, copy.prng, sizeof four.prng);
        run(&two, FORM_f32v2tof16_aaan, 0, 4, 0);
        assert_int_equal(two.a[0], wanted[0] | wanted[1] << 16);
        assert_int_equal(two.status, flags[0] | flags[1]);
        run(&one, FORM_f32tof16_aaan, 0, 4, 0);
        assert_int_equal(one.a[0], wanted[0] | wanted[0] << 16);
        assert_int_equal(one.status, flags[0]);

        /* The same rounding from accumulators. */
        FloatState gacc = state, gina = state;
        for (unsigned i = 0; i < 4; i++)
            gacc.live[i] = gina.live[i] = state.a[4 + i];
        run(&gacc, FORM_f16v4gacc_aaan, 0, 0, 0);
        assert_memory_equal(gacc.a, four.a, 8);
        assert_int_equal(gacc.status, four.status);
        gina.a[1] = 0;
        run(&gina, FORM_f16v2gina_aaan_zi, 0, 1, 0);
        assert_int_equal(gina.a[0], two.a[0]);
        assert_int_equal(gina.status, two.status);
    }
}

static void halves_to_singles(void **test)
{
    (void)test;
    for (uint32_t code = 0; code < 65536; code++) {
        FloatState state = {0};
        state.a[1] = code | 0x7e010000; /* the NaN in the high half must not count */
        run(&state, FORM_f16tof32_aaan, 0, 1, 0);
        assert_int_equal(state.a[0], bits_of((float)half(code)));
        assert_int_equal(state.status, half(code) != half(code));
        state.a[1] = code << 16;
        run(&state, FORM_f16v2tof32_aaan, 2, 1, 0);
        assert_int_equal(state.a[2], 0);
        assert_int_equal(state.a[3], state.a[0]);
    }
}

/* Expected value and exact values of stochastic rounding. */
static void stochastic_rounding_is_unbiased(void **test)
{
    (void)test;
    static const float VALUES[] = {1.0f + 0x1p-12f, 1.0f + 0x1.8p-11f, -3.14159265f,
                                   0x1.23456p-15f,  0x1.8p-26f,        65504.0f - 0x1.9p3f,
                                   1000.1f};
    FloatState state = {0};
    state.control = 1 << 19;
    state.a[1] = 99;
    run(&state, FORM_uput_aaan_zi, 1, 7, 0);
    for (size_t i = 0; i < countof(VALUES); i++) {
        const unsigned count = 40000;
        double rest;
        cut(fabs((double)VALUES[i]), &HALF, &rest);
        unsigned up = 0;
        for (unsigned n = 0; n < count; n++) {
            state.a[4] = bits_of(VALUES[i]);
            run(&state, FORM_f32tof16_aaan, 0, 4, 0);
            double got = half(state.a[0] & 0xffff);
            up += fabs(got) > fabs((double)VALUES[i]);
        }
        /* Five standard deviations of a binomial count. */
        double deviation = sqrt(count * rest * (1 - rest));
        assert_true(fabs(up - count * rest) <= 5 * deviation + 1);
        assert_true(up > 0 && up < count);
    }
    for (uint32_t code = 0; code < 0x7c00; code++) {
        state.a[4] = bits_of((float)half(code));
        run(&state, FORM_f32tof16_aaan, 0, 4, 0);
        assert_int_equal(state.a[0], code | code << 16);
    }
}

/* Every random number, around one value: up exactly as often as the fraction says. */
static void stochastic_rounding_uses_all_numbers(void **test)
{
    (void)test;
    /* Generator states whose draw has a given low half: s1 = 0 makes the draw s0. */
    static const uint32_t FRACTIONS[] = {0, 1, 0x0fff, 0x1000, 0x1001, 0x1fff};
    for (size_t i = 0; i < countof(FRACTIONS); i++) {
        unsigned up = 0;
        for (uint32_t r = 0; r < 65536; r++) {
            FloatState state = {0};
            state.control = 1 << 19;
            state.prng[0] = r;
            state.a[4] = 0x3f800000 + FRACTIONS[i];
            run(&state, FORM_f32tof16_aaan, 0, 4, 0);
            up += state.a[0] == 0x3c013c01;
        }
        assert_int_equal(up, FRACTIONS[i] * 8);
    }
}

/* ---- Quarters ---- */

static void halves_to_quarters(void **test)
{
    (void)test;
    Random random = {32};
    for (uint32_t code = 0; code < 65536; code += 1) {
        FloatState state = random_float_state(&random);
        const Format *format = state.formats & 2 ? &F143 : &F152;
        bool stochastic = state.control >> 19 & 1, nanoo = state.control >> 20 & 1;
        if (code % 3)
            state.scale = 0;
        int exponent = state.scale > 31 ? (int)state.scale - 64 : (int)state.scale;
        uint32_t halves[8], wanted[8], flags = 0, first_flags = 0;
        FloatState copy = state;
        uint64_t draw[2] = {0};
        if (stochastic) {
            draw[0] = next_draw(&copy);
            draw[1] = next_draw(&copy);
        }
        for (unsigned i = 0; i < 8; i++) {
            halves[i] = i ? random_half(&random) : code;
            double value = half(halves[i]) * ldexp(1, exponent);
            int bits = stochastic ? (int)(draw[i / 4] >> 16 * (i % 4) & 0xffff) : -1;
            wanted[i] = reference(value, format, bits, nanoo, i < 2 ? &first_flags : &flags);
        }
        for (unsigned i = 0; i < 4; i++)
            state.a[4 + i] = halves[2 * i] | halves[2 * i + 1] << 16;
        FloatState two = state;
        run(&state, FORM_f16v8tof8_aaan, 0, 4, 0);
        for (unsigned i = 0; i < 8; i++)
            assert_int_equal(state.a[i / 4] >> 8 * (i % 4) & 255, wanted[i]);
        assert_int_equal(state.status, flags | first_flags);
        run(&two, FORM_f16v2tof8_aaan, 0, 4, 0);
        assert_int_equal(two.a[0], wanted[0] | wanted[1] << 8);
        assert_int_equal(two.status, first_flags);
    }
}

static void quarters_to_halves(void **test)
{
    (void)test;
    for (uint32_t code = 0; code < 256; code++) {
        for (uint32_t scale = 0; scale < 64; scale++) {
            for (uint32_t mode = 0; mode < 8; mode++) {
                FloatState state = {0};
                state.formats = mode & 1 ? 2 : 1;
                state.scale = scale;
                state.control = (mode & 2 ? 1u << 20 : 0) | (mode & 4 ? 1u << 19 : 0);
                state.a[4] = code << 8;
                int exponent = scale > 31 ? (int)scale - 64 : (int)scale;
                double value = code == 0x80 ? NAN : value_of(code, mode & 1 ? &F143 : &F152);
                uint32_t flags = 0;
                uint32_t wanted =
                    reference(value * ldexp(1, exponent), &HALF, -1, mode & 2, &flags);
                run(&state, FORM_f8v4tof16_aaan, 0, 4, 0);
                assert_int_equal(state.a[0], wanted << 16);
                assert_int_equal(state.a[1], 0);
                assert_int_equal(state.status, flags);
                run(&state, FORM_f8v2tof16_aaan, 2, 4, 0);
                assert_int_equal(state.a[2], wanted << 16);
            }
        }
    }
}

/* ---- Half arithmetic: exact in double, rounded once ---- */

static void half_arithmetic(void **test)
{
    (void)test;
    Random random = {33};
    static const Form FORMS[] = {FORM_f16v4add_aaan, FORM_f16v4sub_aaan, FORM_f16v4mul_aaan,
                                 FORM_f16v4absadd_aaan};
    for (unsigned round = 0; round < 200000; round++) {
        FloatState start = {0};
        start.control = round & 1 ? 1u << 20 : 1u << 19;
        for (unsigned r = 2; r < 6; r++)
            start.a[r] = random_half(&random) | random_half(&random) << 16;
        for (unsigned f = 0; f < countof(FORMS); f++) {
            FloatState state = start;
            uint32_t flags = 0;
            run(&state, FORMS[f], 0, 2, 4);
            for (unsigned i = 0; i < 4; i++) {
                double x = half(start.a[2 + i / 2] >> 16 * (i & 1) & 0xffff);
                double y = half(start.a[4 + i / 2] >> 16 * (i & 1) & 0xffff);
                double exact = f == 0 ? x + y : f == 1 ? x - y : f == 2 ? x * y : fabs(x) + fabs(y);
                uint32_t wanted = reference(exact, &HALF, -1, round & 1, &flags);
                assert_int_equal(state.a[i / 2] >> 16 * (i & 1) & 0xffff, wanted);
            }
            assert_int_equal(state.status, flags);
        }
    }
}

/* ---- Integers ---- */

static void integral_values(void **test)
{
    (void)test;
    Random random = {34};
    for (unsigned round = 0; round < 300000; round++) {
        FloatState state = {0};
        uint32_t bits = random_single(&random);
        if (round & 1) /* halves and quarters of integers */
            bits = bits_of((float)((int)random_next(&random) % 4096) / 4);
        if (round % 8 == 2)
            bits = bits_of((float)(int64_t)(random_next(&random) >> 30) - 0x1p33f);
        float x = single(bits);
        float wanted[] = {rintf(x), ceilf(x), floorf(x), truncf(x), roundf(x), rintf(x)};
        for (int32_t mode = 0; mode < 6; mode++) {
            state.a[1] = bits;
            state.status = 0;
            run(&state, FORM_f32int_aaan_ef, 0, 1, mode);
            assert_int_equal(state.a[0], bits_of(wanted[mode]));
            assert_int_equal(state.status, x != x);
        }
        double integral = rint((double)x);
        state.status = 0;
        run(&state, FORM_f32toi32_aaan, 0, 1, 0);
        bool outside = !(integral >= -0x1p31 && integral <= 0x1p31 - 1);
        int64_t limit = x != x ? 0 : integral < 0 ? INT32_MIN : INT32_MAX;
        assert_int_equal((int32_t)state.a[0], outside ? limit : (int64_t)integral);
        assert_int_equal(state.status, outside);
        state.status = 0;
        run(&state, FORM_f32toui32_aaan, 0, 1, 0);
        outside = !(integral >= 0 && integral <= 0x1p32 - 1);
        limit = x != x || integral < 0 ? 0 : UINT32_MAX;
        assert_int_equal(state.a[0], outside ? limit : (int64_t)integral);
        assert_int_equal(state.status, outside);
        run(&state, FORM_f32fromi32_aaan, 0, 1, 0);
        assert_int_equal(state.a[0], bits_of((float)(int32_t)bits));
        run(&state, FORM_f32fromui32_aaan, 0, 1, 0);
        assert_int_equal(state.a[0], bits_of((float)bits));
    }
}

/* ---- Accumulators: one rounding of the exact sum ---- */

/* (a + b + c) rounded once to F32, by 128-bit integers in units of 2^-60 (the values are
 * multiples). */
static float exact_sum(double a, double b, double c)
{
    __int128 sum = (__int128)(a * 0x1p60) + (__int128)(b * 0x1p60) + (__int128)(c * 0x1p60);
    bool negative = sum < 0;
    unsigned __int128 magnitude = (unsigned __int128)(negative ? -sum : sum);
    int shift = 0;
    bool sticky = false;
    while (magnitude >> 53) { /* to 53 bits and a sticky one: then to F32 without harm */
        sticky |= magnitude & 1;
        magnitude >>= 1;
        shift++;
    }
    uint64_t odd = (uint64_t)magnitude | sticky;
    float rounded = (float)ldexp((double)odd, shift - 60);
    return negative ? -rounded : rounded;
}

static void cmac_rounds_once(void **test)
{
    (void)test;
    Random random = {35};
    unsigned differs = 0;
    for (unsigned round = 0; round < 200000; round++) {
        FloatState state = {0};
        uint32_t x[4], y[4];
        for (unsigned i = 0; i < 4; i++) {
            x[i] = (uint32_t)random_next(&random) & 0xffff;
            y[i] = (uint32_t)random_next(&random) & 0xffff;
            x[i] ^= (x[i] & 0x7c00) == 0x7c00 ? 0x4000 : 0; /* finite */
            y[i] ^= (y[i] & 0x7c00) == 0x7c00 ? 0x4000 : 0;
        }
        for (unsigned i = 0; i < 2; i++) {
            state.a[2 + i] = x[2 * i] | x[2 * i + 1] << 16;
            state.a[4 + i] = y[2 * i] | y[2 * i + 1] << 16;
            float sum = ldexpf((float)(int32_t)random_next(&random), (int)(round % 40) - 36);
            state.live[i] = bits_of(sum);
        }
        FloatState start = state;
        run(&state, FORM_f16v4cmac_aaan, 2, 4, 0);
        for (unsigned i = 0; i < 2; i++) {
            double p = half(x[2 * i]) * half(y[2 * i]), q = half(x[2 * i + 1]) * half(y[2 * i + 1]);
            double sum = (double)single(start.live[i]);
            assert_int_equal(state.live[i], bits_of(exact_sum(p, q, sum)));
            differs += bits_of((float)(p + q + sum)) != state.live[i];
        }
        FloatState two = start;
        run(&two, FORM_f16v2cmac_aaan, 2, 4, 0);
        assert_int_equal(two.live[0], state.live[0]);
        assert_int_equal(two.live[1], start.live[1]);
    }
    assert_true(differs > 0); /* the data tell the rule from a sum in double */
}

static void mix_and_axpy(void **test)
{
    (void)test;
    Random random = {36};
    for (unsigned round = 0; round < 100000; round++) {
        FloatState state = {0};
        uint32_t a = (uint32_t)random_next(&random) & 0xbfff, b = random_half(&random) & 0xbfff;
        state.tas = a | b << 16;
        for (unsigned r = 2; r < 6; r++)
            state.a[r] = (uint32_t)random_next(&random) & 0xbfffbfff;
        FloatState start = state;
        run(&state, FORM_f16v4mix_aaan, 0, 2, 4);
        assert_int_equal(state.a[0] | state.a[1], 0);
        for (unsigned i = 0; i < 4; i++) {
            double x = half(start.a[2 + i / 2] >> 16 * (i & 1) & 0xffff);
            double y = half(start.a[4 + i / 2] >> 16 * (i & 1) & 0xffff);
            float wanted = exact_sum(half(a) * x, half(b) * y, 0);
            assert_true(single(state.live[i]) == wanted); /* zeros by sign are in the rows */
        }
        FloatState axpy = start;
        axpy.tas = random_single(&random);
        axpy.live[1] = 77;
        int32_t operand[] = {0, 4, 2}; /* letters: d, y, x */
        assert_int_equal(float_handler(FORM_f32v2axpy_aaan)(&axpy, NULL, operand), 0);
        assert_int_equal(axpy.a[1], 77);
        for (unsigned i = 0; i < 2; i++)
            assert_int_equal(axpy.live[i], bits_of(fmaf(single(axpy.tas), single(start.a[2 + i]),
                                                        single(start.a[4 + i]))));
    }
}

/* A stream of 4x4 blocks through istacc and stacc comes out transposed. */
static void blocks_are_transposed(void **test)
{
    (void)test;
    Random random = {37};
    FloatState state = {0};
    uint16_t before[4][4] = {{0}}, block[4][4];
    for (unsigned round = 0; round < 50; round++) {
        for (unsigned r = 0; r < 4; r++)
            for (unsigned c = 0; c < 4; c++)
                block[r][c] = (uint16_t)random_next(&random);
        uint64_t columns[4];
        int32_t in0[] = {0, 2, 4, 0}, in1[] = {0, 2, 4, 1}, out0[] = {0, 0}, out1[] = {0, 1};
        memcpy(&state.a[2], block[0], 16); /* rows 0 and 1 */
        float_handler(FORM_f16v4istacc_aaan_ef)(&state, NULL, in0);
        memcpy(&columns[2], state.a, 8);
        memcpy(&state.a[2], block[2], 16);
        float_handler(FORM_f16v4istacc_aaan_ef)(&state, NULL, in1);
        memcpy(&columns[3], state.a, 8);
        for (unsigned c = 2; c < 4 && round; c++)
            for (unsigned r = 0; r < 4; r++)
                assert_int_equal(columns[c] >> 16 * r & 0xffff, before[r][c]);
        float_handler(FORM_f16v4stacc_aaan_ef)(&state, NULL, out0);
        memcpy(&columns[0], state.a, 8);
        float_handler(FORM_f16v4stacc_aaan_ef)(&state, NULL, out1);
        memcpy(&columns[1], state.a, 8);
        for (unsigned c = 0; c < 2; c++)
            for (unsigned r = 0; r < 4; r++)
                assert_int_equal(columns[c] >> 16 * r & 0xffff, block[r][c]);
        memcpy(before, block, sizeof before);
    }
    assert_int_equal(state.status, 0);
}

/* ---- Random numbers ---- */

static void random_numbers_are_distributed(void **test)
{
    (void)test;
    FloatState state = {0};
    state.a[4] = 2026;
    run(&state, FORM_uput_aaan_zi, 4, 7, 0);
    for (unsigned i = 0; i < 15; i++)
        run(&state, FORM_urand64_aaan, 14, 0, 0);
    const unsigned count = 100000;
    double sum = 0, squares = 0, kept = 0;
    for (unsigned i = 0; i < count; i++) {
        run(&state, FORM_f32v2grand_aaan, 0, 0, 0);
        sum += (double)single(state.a[0]) + (double)single(state.a[1]);
        squares += pow((double)single(state.a[0]), 2) + pow((double)single(state.a[1]), 2);
        state.a[2] = state.a[3] = 0x3c003c00;
        state.a[4] = 0xabce4000; /* bits above 16 are ignored: one quarter is kept */
        run(&state, FORM_f16v4rmask_aaan, 6, 2, 4);
        kept += __builtin_popcount(state.a[6] & 0x04000400) +
                __builtin_popcount(state.a[7] & 0x04000400);
    }
    assert_true(fabs(sum / (2 * count)) < 0.015);
    assert_true(fabs(squares / (2 * count) - 0.9990) < 0.02); /* 12 * (32^2 - 1) / 12 / 32^2 */
    assert_true(fabs(kept / (4 * count) - 0.25) < 0.005);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(singles_to_halves),
        cmocka_unit_test(halves_to_singles),
        cmocka_unit_test(stochastic_rounding_is_unbiased),
        cmocka_unit_test(stochastic_rounding_uses_all_numbers),
        cmocka_unit_test(halves_to_quarters),
        cmocka_unit_test(quarters_to_halves),
        cmocka_unit_test(half_arithmetic),
        cmocka_unit_test(integral_values),
        cmocka_unit_test(cmac_rounds_once),
        cmocka_unit_test(mix_and_axpy),
        cmocka_unit_test(blocks_are_transposed),
        cmocka_unit_test(random_numbers_are_distributed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
