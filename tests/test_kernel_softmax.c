/* libraries: kernel sim */
#include "kernel_bench.h"

static KernelSpec softmax(int32_t rows, int32_t keys, int32_t padded, float scale)
{
    KernelSpec spec = {
        .family = KERNEL_SOFTMAX,
        .p = {[SOFTMAX_ROWS] = rows, [SOFTMAX_KEYS] = keys, [SOFTMAX_PADDED_KEYS] = padded}};
    memcpy(&spec.p[SOFTMAX_SCALE_BITS], &scale, 4);
    return spec;
}

/* Scores of -40..40; the padding holds NaN, infinity and large values. */
static void fill_scores(void *context, const KernelSpec *spec, const KernelContract *contract,
                        uint32_t operand, uint8_t *data)
{
    (void)context;
    static const uint16_t junk[] = {0x7e00, 0x7c00, 0x7bff, 0xfbff, 0xfc00, 0x7d55};
    uint32_t rows = (uint32_t)spec->p[SOFTMAX_ROWS], keys = (uint32_t)spec->p[SOFTMAX_KEYS];
    for (uint32_t i = 0; i < contract->operands[operand].bytes / 2; i++) {
        uint32_t key = i / (rows * 16) * 16 + i % 16;
        uint16_t half =
            key < keys ? half_from_float(40 * bench_random_float()) : junk[bench_random() % 6];
        memcpy(data + 2 * i, &half, 2);
    }
}

static void run(int32_t rows, int32_t keys, int32_t padded)
{
    KernelSpec spec = softmax(rows, keys, padded, 0.11785113f);
    bench_kernel(&spec, fill_scores, NULL);
}

static void key_counts(void **state)
{
    (void)state;
    for (int32_t keys = 1; keys <= 50; keys++)
        run(3, keys, (keys + 15) / 16 * 16 + keys % 3 * 16);
}

static void row_counts(void **state)
{
    (void)state;
    for (int32_t rows = 1; rows <= 14; rows++) {
        run(rows, 4, 16);
        run(rows, 16, 16);
        run(rows, 25, 64);
    }
    run(8, 64, 64);
    run(1, 768, 768);
    run(2, 729, 768);
}

/* Few rows and many keys: rows are cut over workers. */
static void cut_rows(void **state)
{
    (void)state;
    for (int32_t rows = 1; rows <= 9; rows++) {
        run(rows, 96, 96);
        run(rows, 213, 256);
        run(rows, 320, 320);
        run(rows, 305, 352);
    }
    run(1, 100, 112);
    run(7, 729, 768);
    run(13, 209, 224);
}

static void accuracy(void **state)
{
    (void)state;
    enum { ROWS = 16, KEYS = 96 };
    static uint16_t scores[KEYS / 16][ROWS][16], e[KEYS / 16][ROWS][16];
    static float statistics[2][ROWS];
    KernelSpec spec = softmax(ROWS, KEYS, KEYS, 0.11785113f);
    KernelContract contract;
    assert_ok(kernel_contract(&spec, &contract));
    fill_scores(NULL, &spec, &contract, 2, (uint8_t *)scores);
    void *operands[] = {e, statistics, scores};
    assert_ok(kernel_reference(&spec, operands));
    double worst = 0;
    for (uint32_t r = 0; r < ROWS; r++) {
        double maximum = -INFINITY, sum = 0;
        for (uint32_t k = 0; k < KEYS; k++)
            maximum = fmax(maximum, (double)half_to_float(scores[k / 16][r][k % 16]));
        for (uint32_t k = 0; k < KEYS; k++)
            sum += exp(0.11785113 * ((double)half_to_float(scores[k / 16][r][k % 16]) - maximum));
        for (uint32_t k = 0; k < KEYS; k++) {
            double s = (double)half_to_float(scores[k / 16][r][k % 16]);
            double p = (double)half_to_float(e[k / 16][r][k % 16]) / (double)statistics[1][r];
            worst = fmax(worst, fabs(p - exp(0.11785113 * (s - maximum)) / sum));
        }
    }
    printf("softmax: worst error of a probability %.2e\n", worst);
    assert_true(worst < 5e-4);
}

static void refused(void **state)
{
    (void)state;
    KernelContract contract;
    static const int32_t shapes[][3] = {
        {0, 4, 16}, {1, 0, 16}, {1, 17, 16}, {1, 4, 20}, {4000, 96, 96}};
    for (size_t i = 0; i < countof(shapes); i++) {
        KernelSpec spec = softmax(shapes[i][0], shapes[i][1], shapes[i][2], 0.125f);
        assert_true(status_discard(kernel_contract(&spec, &contract)));
    }
    static const float scales[] = {0, -1, 1e-6f, 70000, INFINITY, NAN};
    for (size_t i = 0; i < countof(scales); i++) {
        KernelSpec spec = softmax(1, 4, 16, scales[i]);
        assert_true(status_discard(kernel_contract(&spec, &contract)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(key_counts), cmocka_unit_test(row_counts),
                                       cmocka_unit_test(cut_rows), cmocka_unit_test(accuracy),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
