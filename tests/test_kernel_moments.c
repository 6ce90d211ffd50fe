/* libraries: kernel sim */
#include "kernel_bench.h"

enum { EPSILON = 0x358637bd /* 1e-6 */ };

static void run_moments(int32_t rows, int32_t columns)
{
    KernelSpec spec = {.family = KERNEL_MOMENTS,
                       .p = {[MOMENTS_ROWS] = rows, [MOMENTS_COLUMNS] = columns}};
    bench_kernel(&spec, NULL, NULL);
    spec.p[MOMENTS_ADD] = 1;
    bench_kernel(&spec, NULL, NULL);
}

static void moments(void **state)
{
    (void)state;
    static const int32_t columns[] = {8, 12, 24, 48, 72, 100, 144, 576};
    for (size_t c = 0; c < countof(columns); c++)
        for (int32_t rows = 1; rows <= 9; rows++)
            run_moments(rows, columns[c]);
    run_moments(13, 72);
    run_moments(3, 1152);
}

/* Means of -2..2, variances of 0..1. */
static void fill_apply(void *context, const KernelSpec *spec, const KernelContract *contract,
                       uint32_t operand, uint8_t *data)
{
    bench_fill_random(context, spec, contract, operand, data);
    if (operand != 2)
        return;
    for (uint32_t i = 1; i < contract->operands[2].bytes / 4; i += 2) {
        float variance = fabsf(bench_random_float());
        memcpy(data + 4 * i, &variance, 4);
    }
}

static void run_apply(int32_t rows, int32_t columns, int32_t parts)
{
    KernelSpec spec = {.family = KERNEL_APPLY_NORM,
                       .p = {[APPLY_NORM_ROWS] = rows,
                             [APPLY_NORM_COLUMNS] = columns,
                             [APPLY_NORM_PARTS] = parts,
                             [APPLY_NORM_EPSILON_BITS] = EPSILON}};
    bench_kernel(&spec, fill_apply, NULL);
}

static void apply(void **state)
{
    (void)state;
    static const int32_t columns[] = {8, 12, 16, 24, 36, 52, 72, 100, 144};
    static const int32_t parts[] = {1, 2, 3, 8};
    for (size_t c = 0; c < countof(columns); c++)
        for (size_t p = 0; p < countof(parts); p++)
            for (int32_t rows = 1; rows <= 8; rows++)
                run_apply(rows, columns[c], parts[p]);
    run_apply(13, 72, 24);
    run_apply(3, 1152, 1);
}

/* Moments of four slices, applied to each, are the layer norm of whole rows. */
static void whole(void **state)
{
    (void)state;
    enum { ROWS = 2, PARTS = 4, SLICE = 36, COLUMNS = PARTS * SLICE };
    static uint16_t x[PARTS][ROWS][SLICE], out[ROWS][SLICE], scale[SLICE], bias[SLICE];
    static float gathered[PARTS][ROWS][2];
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
        ((uint16_t *)x)[i] = half_from_float(3 + 2 * bench_random_float());
    for (uint32_t i = 0; i < SLICE; i++)
        scale[i] = half_from_float(1);
    KernelSpec spec = {.family = KERNEL_MOMENTS, .p = {ROWS, SLICE}};
    for (uint32_t part = 0; part < PARTS; part++)
        assert_ok(kernel_reference(&spec, (void *[]){gathered[part], x[part]}));
    KernelSpec apply_spec = {.family = KERNEL_APPLY_NORM, .p = {ROWS, SLICE, PARTS, EPSILON}};
    for (uint32_t part = 0; part < PARTS; part++) {
        assert_ok(kernel_reference(&apply_spec, (void *[]){out, x[part], gathered, scale, bias}));
        for (uint32_t r = 0; r < ROWS; r++) {
            double sum = 0, squares = 0;
            for (uint32_t i = 0; i < COLUMNS; i++)
                sum += (double)half_to_float(x[i / SLICE][r][i % SLICE]);
            for (uint32_t i = 0; i < COLUMNS; i++)
                squares +=
                    pow((double)half_to_float(x[i / SLICE][r][i % SLICE]) - sum / COLUMNS, 2);
            for (uint32_t c = 0; c < SLICE; c++) {
                double n = ((double)half_to_float(x[part][r][c]) - sum / COLUMNS) /
                           sqrt(squares / COLUMNS + 1e-6);
                double error = fabs((double)half_to_float(out[r][c]) - n);
                assert_true(error <= 0x1p-11 * 6 * fabs(n) + 1e-6); /* test_kernel_layer_norm.c */
            }
        }
    }
}

static void refused(void **state)
{
    (void)state;
    KernelContract contract;
    static const int32_t bad_moments[][3] = {
        {0, 72, 0}, {1, 4, 0}, {1, 74, 0}, {1, 16384, 0}, {1, 72, 2}};
    for (size_t i = 0; i < countof(bad_moments); i++) {
        KernelSpec spec = {.family = KERNEL_MOMENTS};
        memcpy(spec.p, bad_moments[i], sizeof bad_moments[i]);
        assert_true(status_discard(kernel_contract(&spec, &contract)));
    }
    static const int32_t bad_apply[][4] = {
        {0, 72, 1, EPSILON}, {1, 4, 1, EPSILON}, {1, 72, 0, EPSILON}, {1, 72, 1, 0}};
    for (size_t i = 0; i < countof(bad_apply); i++) {
        KernelSpec spec = {.family = KERNEL_APPLY_NORM};
        memcpy(spec.p, bad_apply[i], sizeof bad_apply[i]);
        assert_true(status_discard(kernel_contract(&spec, &contract)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(moments), cmocka_unit_test(apply),
                                       cmocka_unit_test(whole), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
