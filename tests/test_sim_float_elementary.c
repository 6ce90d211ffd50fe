/* libraries: sim */
/* test_sim_float_elementary.c - elementary functions are correctly rounded.
 *
 * F32: rows computed with 400 bits (tests/data/sim/float-elementary.tsv), among them arguments
 * whose results lie within 2^-46 of a rounding boundary. Halves: all 65,536 through every function,
 * against the host's long double functions. */
#include "check.h"

#include "float_case.h"

#include <float.h>
#include <math.h>

typedef struct FunctionName {
    const char *name;
    Form single, half;
    long double (*reference)(long double);
} FunctionName;

static long double sigmoid(long double x)
{
    return 1 / (1 + expl(-x));
}

static const FunctionName FUNCTIONS[] = {
    {"exp", FORM_f32exp_aaan, FORM_f16v2exp_aaan, expl},
    {"exp2", FORM_f32exp2_aaan, FORM_f16v2exp2_aaan, exp2l},
    {"ln", FORM_f32ln_aaan, FORM_f16v2ln_aaan, logl},
    {"log2", FORM_f32log2_aaan, FORM_f16v2log2_aaan, log2l},
    {"tanh", FORM_f32tanh_aaan, FORM_f16v2tanh_aaan, tanhl},
    {"sigm", FORM_f32sigm_aaan, FORM_f16v2sigm_aaan, sigmoid},
    {"oorx", FORM_f32oorx_aaan, FORM_INVALID, NULL},
};

static uint32_t apply(Form form, uint32_t x, uint32_t control, uint32_t *flags)
{
    FloatState state = {0};
    state.a[1] = x;
    state.control = control;
    int32_t operand[ISA_OPERANDS] = {0, 1};
    assert_int_equal(float_handler(form)(&state, NULL, operand), 0);
    *flags = state.status;
    return state.a[0];
}

static void rows_are_correctly_rounded(void **test)
{
    (void)test;
    FILE *file = fopen(SOURCE_DIR "/tests/data/sim/float-elementary.tsv", "r");
    assert_non_null(file);
    char line[128], name[16];
    unsigned rows = 0, failures = 0, input, result;
    assert_non_null(fgets(line, sizeof line, file));
    while (fgets(line, sizeof line, file)) {
        assert_int_equal(sscanf(line, "%15s %x %x", name, &input, &result), 3);
        for (size_t i = 0; i < countof(FUNCTIONS); i++) {
            if (strcmp(FUNCTIONS[i].name, name))
                continue;
            rows++;
            uint32_t flags, got = apply(FUNCTIONS[i].single, input, 0, &flags);
            bool overflow = (result & 0x7fffffff) == 0x7f800000;
            if (got != result || flags != (overflow ? 4 : 0)) {
                print_error("%s(%08x) = %08x, not %08x; flags %u\n", name, input, got, result,
                            flags);
                failures++;
            }
        }
    }
    fclose(file);
    assert_int_equal(failures, 0);
    assert_true(rows > 2000);
}

static long double half_value(uint32_t half)
{
    int exponent = half >> 10 & 31, mantissa = half & 0x3ff;
    long double value =
        exponent == 0 ? ldexpl(mantissa, -24) : ldexpl(1024 + mantissa, exponent - 25);
    return half & 0x8000 ? -value : value;
}

/* What a finite argument must give; false when the reference is too close to a boundary to tell. */
static bool expected_half(long double value, uint32_t *half, uint32_t *flags)
{
    uint32_t sign = signbit(value) ? 0x8000 : 0;
    long double magnitude = fabsl(value);
    *flags = 0;
    if (magnitude >= 65520) {
        *half = sign | 0x7bff;
        *flags = 4;
        return true;
    }
    int exponent = -14;
    if (magnitude >= 0x1p-14L)
        (void)frexpl(magnitude, &exponent), exponent--;
    long double steps = ldexpl(magnitude, 10 - exponent), whole = floorl(steps);
    long double rest = steps - whole, distance = fabsl(rest - 0.5L);
    bool exact_tie = rest == 0.5L && log2l(magnitude) == floorl(log2l(magnitude));
    if (distance < 0x1p-50L * steps && !exact_tie)
        return false;
    if (rest > 0.5L || (exact_tie && fmodl(whole, 2) == 1))
        whole++;
    /* A carry into the exponent is right by itself. */
    uint32_t base = exponent == -14 && magnitude < 0x1p-14L ? 0 : (uint32_t)(exponent + 14) << 10;
    *half = sign | (base + (uint32_t)whole);
    return true;
}

static void all_halves_are_correctly_rounded(void **test)
{
    (void)test;
    assert_true(LDBL_MANT_DIG >= 64); /* needs a host with such a long double */
    for (size_t f = 0; f < countof(FUNCTIONS) && FUNCTIONS[f].reference; f++) {
        bool logarithm = FUNCTIONS[f].reference == logl || FUNCTIONS[f].reference == log2l;
        unsigned failures = 0, undecided = 0;
        for (uint32_t half = 0; half < 65536; half++) {
            if ((half & 0x7c00) == 0x7c00 || (logarithm && (half & 0x8000 || half == 0)))
                continue; /* the next test */
            uint32_t wanted, wanted_flags, flags;
            if (!expected_half(FUNCTIONS[f].reference(half_value(half)), &wanted, &wanted_flags)) {
                undecided++;
                continue;
            }
            uint32_t got = apply(FUNCTIONS[f].half, half | half << 16, 0, &flags);
            if (got != (wanted | wanted << 16) || flags != wanted_flags) {
                print_error("%s(%04x) = %08x, not %04x; flags %u, not %u\n", FUNCTIONS[f].name,
                            half, got, wanted, flags, wanted_flags);
                failures++;
            }
            got = apply(FUNCTIONS[f].half, half, 1 << 20, &flags) & 0xffff; /* NANOO */
            failures += got != (wanted_flags ? 0x7e00 : wanted);
        }
        assert_int_equal(failures, 0);
        assert_true(undecided < 4);
    }
}

static void special_arguments(void **test)
{
    (void)test;
    static const struct {
        const char *name;
        uint32_t plus_zero, minus_zero, plus_infinity, minus_infinity, negative;
        uint32_t zero_flags, minus_infinity_flags, negative_flags;
    } SPECIAL[] = {
        {"exp", 0x3f800000, 0x3f800000, 0x7f800000, 0, 1, 0, 0, 0},
        {"exp2", 0x3f800000, 0x3f800000, 0x7f800000, 0, 1, 0, 0, 0},
        {"ln", 0xff800000, 0xff800000, 0x7f800000, 0x7fc00000, 0x7fc00000, 2, 1, 1},
        {"log2", 0xff800000, 0xff800000, 0x7f800000, 0x7fc00000, 0x7fc00000, 2, 1, 1},
        {"tanh", 0, 0x80000000, 0x3f800000, 0xbf800000, 1, 0, 0, 0},
        {"sigm", 0x3f000000, 0x3f000000, 0x3f800000, 0, 1, 0, 0, 0},
        {"oorx", 0x7f800000, 0xff800000, 0, 0x7fc00000, 0x7fc00000, 2, 1, 1},
    };
    static const struct {
        uint32_t single, half;
    } PAIRS[] = {
        {0x3f800000, 0x3c00}, {0xbf800000, 0xbc00}, {0x7f800000, 0x7c00}, {0xff800000, 0xfc00},
        {0x7fc00000, 0x7e00}, {0x3f000000, 0x3800}, {0x80000000, 0x8000}, {0, 0}};
    for (size_t i = 0; i < countof(SPECIAL); i++) {
        Form single = FUNCTIONS[i].single, half = FUNCTIONS[i].half;
        uint32_t inputs[] = {0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xff800001};
        uint32_t results[] = {SPECIAL[i].plus_zero,
                              SPECIAL[i].minus_zero,
                              SPECIAL[i].plus_infinity,
                              SPECIAL[i].minus_infinity,
                              0x7fc00000,
                              0x7fc00000};
        uint32_t events[] = {
            SPECIAL[i].zero_flags, SPECIAL[i].zero_flags, 0, SPECIAL[i].minus_infinity_flags, 1, 1};
        for (size_t n = 0; n < countof(inputs); n++) {
            uint32_t flags, got = apply(single, inputs[n], 0, &flags);
            assert_int_equal(got, results[n]);
            assert_int_equal(flags, events[n]);
            for (size_t p = 0; p < countof(PAIRS) && half != FORM_INVALID; p++) {
                if (PAIRS[p].single != results[n])
                    continue;
                uint32_t in = n == 5 ? 0xfc01 : inputs[n] >> 16 & 0x8000;
                in |= n == 4 ? 0x7e00 : n == 2 || n == 3 ? 0x7c00 : 0;
                got = apply(half, in | in << 16, 0, &flags);
                assert_int_equal(got, PAIRS[p].half | PAIRS[p].half << 16);
                assert_int_equal(flags, events[n]);
            }
        }
        if (SPECIAL[i].negative != 1) {
            uint32_t flags, got = apply(single, 0x80000001, 0, &flags);
            assert_int_equal(got, SPECIAL[i].negative);
            assert_int_equal(flags, SPECIAL[i].negative_flags);
        }
    }
}

/* Roots and reciprocals of F32 against the host's IEEE operations. */
static void roots_and_reciprocals(void **test)
{
    (void)test;
    Random random = {5};
    for (unsigned i = 0; i < 200000; i++) {
        uint32_t bits = random_single(&random), flags;
        float x, root, reciprocal;
        memcpy(&x, &bits, sizeof x);
        root = sqrtf(x);
        reciprocal = 1 / x;
        uint32_t root_bits, reciprocal_bits;
        memcpy(&root_bits, &root, sizeof root);
        memcpy(&reciprocal_bits, &reciprocal, sizeof reciprocal);
        uint32_t got = apply(FORM_f32sqrt_aaan, bits, 0, &flags);
        assert_int_equal(got, root == root ? root_bits : 0x7fc00000);
        assert_int_equal(flags, root == root ? 0 : 1);
        got = apply(FORM_f32oox_aaan, bits, 0, &flags);
        assert_int_equal(got, x == x ? reciprocal_bits : 0x7fc00000);
        assert_int_equal(flags, x != x ? 1 : x == 0 ? 2 : isinf(reciprocal) ? 4 : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_correctly_rounded),
        cmocka_unit_test(all_halves_are_correctly_rounded),
        cmocka_unit_test(special_arguments),
        cmocka_unit_test(roots_and_reciprocals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
