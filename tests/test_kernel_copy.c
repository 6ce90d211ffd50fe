/* libraries: kernel sim */
#include "kernel_bench.h"

static KernelSpec copy(int32_t rows, int32_t bytes, int32_t out_pitch, int32_t in_pitch)
{
    return (KernelSpec){.family = KERNEL_COPY,
                        .p = {[COPY_ROWS] = rows,
                              [COPY_ROW_BYTES] = bytes,
                              [COPY_OUT_PITCH] = out_pitch,
                              [COPY_IN_PITCH] = in_pitch}};
}

static void contiguous(void **state)
{
    (void)state;
    static const int32_t bytes[] = {4,  8,  12,  20,  24,   40,   44,   48,   52,
                                    56, 96, 100, 576, 2040, 2048, 2056, 2092, 8192};
    for (size_t i = 0; i < countof(bytes); i++) {
        KernelSpec spec = copy(1, bytes[i], bytes[i], bytes[i]);
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
                                       cmocka_unit_test(repeated_row), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
