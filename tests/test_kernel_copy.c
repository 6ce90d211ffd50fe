/* libraries: kernel sim */
#include "kernel_bench.h"

static KernelSpec copy(int32_t rows, int32_t bytes, int32_t out_pitch, int32_t in_pitch)
{
    return (KernelSpec){.family = KERNEL_COPY,
                        .p = {[COPY_ROWS] = rows,
                              [COPY_ROW_BYTES] = bytes,
                              [COPY_OUT_PITCH] = out_pitch,
                              [COPY_IN_PITCH] = in_pitch,
                              [COPY_APART] = 1}};
}

static void contiguous(void **state)
{
    (void)state;
    static const int32_t bytes[] = {4,  8,  12,  20,  24,   40,   44,   48,   52,
                                    56, 96, 100, 576, 2040, 2048, 2056, 2092, 8192};
    for (size_t i = 0; i < countof(bytes); i++) {
        KernelSpec spec = copy(1, bytes[i], bytes[i], bytes[i]);
        bench_kernel(&spec, NULL, NULL);
        spec.p[COPY_APART] = 0;
        bench_kernel(&spec, NULL, NULL);
    }
    KernelSpec merged = copy(7, 96, 96, 96);
    bench_kernel(&merged, NULL, NULL);
}

static void pitched(void **state)
{
    (void)state;
    static const int32_t rows[] = {2, 3, 5, 6, 7, 12, 13, 64};
    static const int32_t bytes[] = {4, 8, 12, 32, 60, 64, 128, 132, 136, 264};
    for (size_t i = 0; i < countof(rows); i++)
        for (size_t k = 0; k < countof(bytes); k++) {
            int32_t gap = (int32_t)(i + k) % 3 * 8;
            KernelSpec spec = copy(rows[i], bytes[k], bytes[k] + gap, bytes[k] + 16 - gap);
            bench_kernel(&spec, NULL, NULL);
        }
}

/* Rows and distances as tiles keep them of their own parts: streams of pieces and of whole rows,
 * with and without distances that steps do not reach. */
static void strided(void **state)
{
    (void)state;
    static const int32_t shapes[][4] = {
        {5, 864, 864, 7776},   {5, 864, 7776, 864},   {4, 288, 288, 7776},  {4, 288, 7776, 7776},
        {2, 1048, 1048, 8184}, {3, 2304, 2304, 9000}, {40, 48, 48, 7776},   {41, 32, 4096, 32},
        {18, 176, 176, 2048},  {40, 24, 32, 8192},    {9, 256, 30000, 256}, {9, 256, 256, 32760},
        {200, 8, 16, 40},      {70, 8, 8, 4000},      {2, 520, 528, 1040},  {64, 264, 264, 16},
    };
    for (size_t i = 0; i < countof(shapes); i++) {
        KernelSpec spec = copy(shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3]);
        bench_kernel(&spec, NULL, NULL);
    }
}

static void repeated_row(void **state)
{
    (void)state;
    KernelSpec spec = copy(20, 32, 64, 0);
    bench_kernel(&spec, NULL, NULL);
    spec = copy(100, 32, 32, 0);
    bench_kernel(&spec, NULL, NULL);
}

static void refused(void **state)
{
    (void)state;
    KernelContract contract;
    KernelSpec spec = copy(1, 6, 6, 6);
    assert_true(status_discard(kernel_contract(&spec, &contract)));
    spec = copy(2, 8, 4, 8);
    assert_true(status_discard(kernel_contract(&spec, &contract)));
    spec = copy(1000, 2048, 2048, 2048);
    assert_true(status_discard(kernel_contract(&spec, &contract)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(contiguous), cmocka_unit_test(pitched),
                                       cmocka_unit_test(strided), cmocka_unit_test(repeated_row),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
