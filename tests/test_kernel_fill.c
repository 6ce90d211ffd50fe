/* libraries: kernel sim */
#include "kernel_bench.h"

static void sizes(void **state)
{
    (void)state;
    static const int32_t bytes[] = {4,  8,  12,  36,  44,   48,   52,  56,
                                    92, 96, 100, 480, 1000, 1004, 4096};
    for (size_t i = 0; i < countof(bytes); i++) {
        KernelSpec spec = {.family = KERNEL_FILL_ZERO, .p = {[FILL_BYTES] = bytes[i]}};
        bench_kernel(&spec, NULL, NULL);
    }
}

static void refused(void **state)
{
    (void)state;
    KernelContract contract;
    static const int32_t bytes[] = {-4, 0, 2, 638980};
    for (size_t i = 0; i < countof(bytes); i++) {
        KernelSpec spec = {.family = KERNEL_FILL_ZERO, .p = {[FILL_BYTES] = bytes[i]}};
        assert_true(status_discard(kernel_contract(&spec, &contract)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sizes), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
