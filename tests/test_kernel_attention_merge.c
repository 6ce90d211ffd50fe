/* libraries: kernel sim */
#include "kernel_bench.h"

static KernelSpec merge(int32_t rows, int32_t columns, int32_t padded, bool initial, bool final)
{
    return (KernelSpec){.family = KERNEL_ATTENTION_MERGE,
                        .p = {[MERGE_ROWS] = rows,
                              [MERGE_COLUMNS] = columns,
                              [MERGE_PADDED_COLUMNS] = padded,
                              [MERGE_INITIAL] = initial,
                              [MERGE_FINAL] = final}};
}

/* Maxima of -5..5, sums of 1..40. */
static void fill_merge(void *context, const KernelSpec *spec, const KernelContract *contract,
                       uint32_t operand, uint8_t *data)
{
    bench_fill_random(context, spec, contract, operand, data);
    const char *name = contract->operands[operand].name;
    uint32_t rows = (uint32_t)spec->p[MERGE_ROWS], columns = (uint32_t)spec->p[MERGE_COLUMNS];
    uint32_t stride = round_up_u32(columns + 2, 16);
    bool state = strcmp(name, "state") == 0;
    if (!state && strcmp(name, "statistics") != 0)
        return;
    for (uint32_t r = 0; r < rows; r++) {
        float maximum = 5 * bench_random_float(), sum = 20.5f + 19.5f * bench_random_float();
        memcpy(data + 4 * (state ? r * stride + columns : r), &maximum, 4);
        memcpy(data + 4 * (state ? r * stride + columns + 1 : rows + r), &sum, 4);
    }
}

static void all_kinds(int32_t rows, int32_t columns, int32_t padded)
{
    for (int kind = 0; kind < 4; kind++) {
        KernelSpec spec = merge(rows, columns, padded, kind & 1, kind & 2);
        bench_kernel(&spec, fill_merge, NULL);
    }
}

static void column_counts(void **state)
{
    (void)state;
    for (int32_t columns = 8; columns <= 100; columns += 4)
        all_kinds(2, columns, (columns + 15) / 16 * 16 + columns % 3 * 16);
}

static void row_counts(void **state)
{
    (void)state;
    for (int32_t rows = 1; rows <= 13; rows++) {
        all_kinds(rows, 72, 80);
        all_kinds(rows, 16, 16);
    }
}

/* Three blocks in turn give what one block of all keys would: sum of e^m values over sum of e^m s.
 */
static void three_blocks(void **state)
{
    (void)state;
    enum { ROWS = 3, COLUMNS = 16, STRIDE = 32, BLOCKS = 3 };
    float running[ROWS * STRIDE];
    uint16_t values[BLOCKS][ROWS * COLUMNS], out[ROWS * COLUMNS];
    float statistics[BLOCKS][2 * ROWS];
    for (uint32_t b = 0; b < BLOCKS; b++) {
        for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
            values[b][i] = half_from_float(bench_random_float());
        for (uint32_t r = 0; r < ROWS; r++) {
            statistics[b][r] = 4 * bench_random_float();
            statistics[b][ROWS + r] = 2 + bench_random_float();
        }
        KernelSpec spec = merge(ROWS, COLUMNS, COLUMNS, b == 0, b == BLOCKS - 1);
        void *update[] = {running, values[b], statistics[b]};
        void *finish[] = {out, running, values[b], statistics[b]};
        assert_ok(kernel_reference(&spec, b == BLOCKS - 1 ? finish : update));
    }
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t c = 0; c < COLUMNS; c++) {
            double sum = 0, weight = 0;
            for (uint32_t b = 0; b < BLOCKS; b++) {
                double e = exp((double)statistics[b][r]);
                sum += e * (double)half_to_float(values[b][r * COLUMNS + c]);
                weight += e * (double)statistics[b][ROWS + r];
            }
            double got = (double)half_to_float(out[r * COLUMNS + c]);
            assert_true(fabs(got - sum / weight) <= 0x1p-11 * fabs(sum / weight) + 1e-6);
        }
}

static void refused(void **state)
{
    (void)state;
    KernelContract contract;
    static const int32_t shapes[][5] = {
        {0, 72, 80, 1, 1}, {1, 4, 16, 1, 1},  {1, 74, 80, 1, 1},     {1, 72, 64, 1, 1},
        {1, 72, 72, 1, 1}, {1, 72, 80, 2, 1}, {1, 2052, 2064, 1, 1}, {4000, 72, 80, 1, 0}};
    for (size_t i = 0; i < countof(shapes); i++) {
        KernelSpec spec = {.family = KERNEL_ATTENTION_MERGE};
        memcpy(spec.p, shapes[i], sizeof shapes[i]);
        assert_true(status_discard(kernel_contract(&spec, &contract)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(column_counts),
                                       cmocka_unit_test(row_counts), cmocka_unit_test(three_blocks),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
