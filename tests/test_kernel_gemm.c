/* libraries: kernel sim */
#include "kernel_bench.h"

typedef struct Case {
    int32_t rows, inner, columns;
} Case;

/* Small numbers, and large enough sums that half rounding and saturation both occur somewhere. */
static void fill(void *context, const KernelSpec *spec, const KernelContract *contract,
                 uint32_t operand, uint8_t *data)
{
    bench_fill_random(context, spec, contract, operand, data);
}

static KernelSpec gemm(const Case *c, int32_t precision, int32_t accumulate, int32_t interleaved,
                       int32_t packed)
{
    return (KernelSpec){.family = KERNEL_GEMM,
                        .p = {[GEMM_PRECISION] = precision,
                              [GEMM_ROWS] = c->rows,
                              [GEMM_INNER] = c->inner,
                              [GEMM_COLUMNS] = c->columns,
                              [GEMM_ACCUMULATE] = accumulate,
                              [GEMM_INTERLEAVED] = interleaved,
                              [GEMM_PACKED] = packed,
                              [GEMM_SCALE] = precision == F8F143 ? -6 : 0}};
}

static void grid(void **state)
{
    (void)state;
    static const int32_t rows[] = {1,  2,  4,  6,  7,  8,  12, 13, 14, 15, 16, 17,
                                   18, 19, 20, 23, 24, 25, 31, 36, 42, 43, 64, 81};
    static const int32_t panels[] = {1, 2, 3, 5}, groups[] = {1, 2, 3};
    uint32_t turn = 0;
    for (size_t r = 0; r < countof(rows); r++)
        for (size_t k = 0; k < countof(panels); k++)
            for (size_t n = 0; n < countof(groups); n++)
                for (int32_t accumulate = 0; accumulate < 2; accumulate++, turn++) {
                    int32_t precision = turn % 3 == 0 ? F8F143 : F16;
                    Case c = {rows[r], panels[k] * (precision == F16 ? 16 : 32), groups[n] * 16};
                    KernelSpec spec = gemm(&c, precision, accumulate, turn / 2 % 2, 0);
                    bench_kernel(&spec, fill, NULL);
                }
}

/* Where steps do not fit into the stride fields any more. */
static void many_rows(void **state)
{
    (void)state;
    static const int32_t rows[] = {150, 152, 153, 154, 158, 184, 244};
    for (size_t r = 0; r < countof(rows); r++)
        for (int32_t i = 0; i < 8; i++) {
            Case c = {rows[r], i % 4 == 0 ? 16 : i % 4 == 1 ? 32 : 48, i < 4 ? 32 : 48};
            KernelSpec spec = gemm(&c, F16, i / 2 % 2, 1, 0);
            bench_kernel(&spec, fill, NULL);
        }
    Case most = {768, 32, 32};
    KernelSpec spec = gemm(&most, F16, 0, 0, 0);
    bench_kernel(&spec, fill, NULL);
}

/* L row-major with a pitch. */
static void pitched(void **state)
{
    (void)state;
    static const int32_t rows[] = {1, 4, 6, 7, 12, 18, 19, 24, 40, 42, 61, 160};
    uint32_t turn = 0;
    for (size_t r = 0; r < countof(rows); r++)
        for (int32_t panels = 1; panels < 5; panels++)
            for (int32_t groups = 1; groups < 4; groups++, turn++) {
                int32_t precision = turn % 3 == 0 ? F8F143 : F16;
                Case c = {rows[r], panels * (precision == F16 ? 16 : 32), groups * 16};
                KernelSpec spec = gemm(&c, precision, turn / 2 % 2, turn % 2, 0);
                spec.p[GEMM_LEFT_PITCH] = c.inner + (int32_t)(turn % 5) * 24;
                bench_kernel(&spec, fill, NULL);
            }
    Case widest = {30, 2048, 16};
    KernelSpec spec = gemm(&widest, F16, 0, 1, 0);
    spec.p[GEMM_LEFT_PITCH] = 2056;
    bench_kernel(&spec, fill, NULL);
    Case both = {64, 64, 32};
    spec = gemm(&both, F16, 0, 1, 1);
    spec.p[GEMM_LEFT_PITCH] = 80;
    bench_kernel(&spec, fill, NULL);
}

static void packed(void **state)
{
    (void)state;
    for (int32_t rows = 16; rows <= 96; rows += 16)
        for (int32_t i = 0; i < 8; i++) {
            Case c = {rows,
                      i % 3 == 0   ? 32
                      : i % 3 == 1 ? 64
                                   : 96,
                      i % 4 == 0   ? 16
                      : i % 4 == 1 ? 32
                                   : 64};
            KernelSpec spec = gemm(&c, i % 2 ? F8F143 : F16, i / 4, i / 2 % 2, 1);
            bench_kernel(&spec, fill, NULL);
        }
}

static void refused(void **state)
{
    (void)state;
    KernelContract contract;
    static const Case cases[] = {{0, 16, 16}, {4, 24, 16}, {4, 16, 20}, {769, 16, 16}};
    for (size_t i = 0; i < countof(cases); i++) {
        KernelSpec spec = gemm(&cases[i], F16, 0, 0, 0);
        assert_true(status_discard(kernel_contract(&spec, &contract)));
    }
    Case c = {20, 32, 16};
    KernelSpec spec = gemm(&c, F16, 0, 0, 1);
    assert_true(status_discard(kernel_contract(&spec, &contract)));
    spec = gemm(&c, F16, 0, 0, 0);
    spec.p[GEMM_LEFT_PITCH] = 34;
    assert_true(status_discard(kernel_contract(&spec, &contract)));
    spec.p[GEMM_LEFT_PITCH] = 2060;
    assert_true(status_discard(kernel_contract(&spec, &contract)));
    spec = gemm(&c, F32, 0, 0, 0);
    assert_true(status_discard(kernel_contract(&spec, &contract)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(grid), cmocka_unit_test(many_rows),
                                       cmocka_unit_test(pitched), cmocka_unit_test(packed),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
