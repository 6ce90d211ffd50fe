/* libraries: kernel sim */
#include "kernel_bench.h"

static void run(int32_t panels, int32_t rows, int32_t columns)
{
    KernelSpec spec = {.family = KERNEL_ADD,
                       .p = {[ADD_PANELS] = panels, [ADD_ROWS] = rows, [ADD_COLUMNS] = columns}};
    bench_kernel(&spec, NULL, NULL);
    spec.p[ADD_APART] = 1;
    bench_kernel(&spec, NULL, NULL);
    spec.p[ADD_SECOND] = 1;
    bench_kernel(&spec, NULL, NULL);
}

static void dense(void **state)
{
    (void)state;
    for (int32_t quads = 1; quads <= 40; quads++)
        run(1, 1, 4 * quads);
    run(1, 1, 600);
    run(3, 1, 100);
    run(1, 1, 3456);
}

static void left_order(void **state)
{
    (void)state;
    for (int32_t rows = 2; rows <= 13; rows++)
        for (int32_t panels = 1; panels <= 3; panels++)
            run(panels, rows, 16);
    run(2, 100, 16);
}

static void row_major(void **state)
{
    (void)state;
    static const int32_t columns[] = {4, 8, 20, 24, 28, 48, 72, 96, 100, 144};
    for (size_t i = 0; i < countof(columns); i++)
        for (int32_t rows = 2; rows <= 4; rows++)
            for (int32_t panels = 1; panels <= 2; panels++)
                run(panels, rows, columns[i]);
    run(1, 3, 1152);
}

/* Sums beyond half's range saturate, infinities and NaN pass. */
static void fill_extremes(void *context, const KernelSpec *spec, const KernelContract *contract,
                          uint32_t operand, uint8_t *data)
{
    (void)context;
    (void)spec;
    static const uint16_t a[] = {0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x0001, 0x8001, 0x7bff, 0x8000},
                          b[] = {0x7bff, 0xfbff, 0x3c00, 0x3c00, 0x0001, 0x0001, 0x0c00, 0x8000};
    for (uint32_t i = 0; i < contract->operands[operand].bytes / 2; i++)
        memcpy(data + 2 * i, &(operand == 1 ? a : b)[i % 8], 2);
}

static void extremes(void **state)
{
    (void)state;
    KernelSpec spec = {.family = KERNEL_ADD,
                       .p = {[ADD_PANELS] = 1, [ADD_ROWS] = 1, [ADD_COLUMNS] = 8}};
    bench_kernel(&spec, fill_extremes, NULL);
}

static void refused(void **state)
{
    (void)state;
    static const int32_t shapes[][3] = {{0, 1, 4},     {1, 0, 4},         {1, 1, 0},
                                        {1, 1, 6},     {1, 2048, 16},     {4097, 1, 4},
                                        {1, 2, 32768}, {1, 1, 98304 + 4}, {100, 2047, 16}};
    for (size_t i = 0; i < countof(shapes); i++) {
        KernelSpec spec = {.family = KERNEL_ADD, .p = {shapes[i][0], shapes[i][1], shapes[i][2]}};
        KernelContract contract;
        assert_true(status_discard(kernel_contract(&spec, &contract)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense),    cmocka_unit_test(left_order), cmocka_unit_test(row_major),
        cmocka_unit_test(extremes), cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
