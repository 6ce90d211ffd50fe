/* libraries: kernel sim */
#include "kernel_bench.h"

static const float epsilon = 1e-6f;

static KernelSpec layer_norm(int32_t rows, int32_t columns)
{
    KernelSpec spec = {.family = KERNEL_LAYER_NORM,
                       .p = {[LAYER_NORM_ROWS] = rows, [LAYER_NORM_COLUMNS] = columns}};
    memcpy(&spec.p[LAYER_NORM_EPSILON_BITS], &epsilon, 4);
    return spec;
}

static void sizes(void **state)
{
    (void)state;
    static const int32_t columns[] = {8, 12, 16, 24, 36, 48, 72, 96, 100, 144, 192};
    static const int32_t rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 13};
    for (size_t c = 0; c < countof(columns); c++)
        for (size_t r = 0; r < countof(rows); r++) {
            KernelSpec spec = layer_norm(rows[r], columns[c]);
            bench_kernel(&spec, NULL, NULL);
        }
}

static void wide(void **state)
{
    (void)state;
    static const int32_t columns[] = {576, 768, 1024, 1152, 1156};
    for (size_t c = 0; c < countof(columns); c++)
        for (int32_t rows = 1; rows <= 7; rows++) {
            KernelSpec spec = layer_norm(rows, columns[c]);
            bench_kernel(&spec, NULL, NULL);
        }
}

static void sums(void **state)
{
    (void)state;
    static const int32_t columns[] = {8, 12, 24, 72, 100, 144, 192, 576};
    for (size_t c = 0; c < countof(columns); c++)
        for (int32_t rows = 1; rows <= 9; rows++) {
            KernelSpec spec = layer_norm(rows, columns[c]);
            spec.p[LAYER_NORM_ADD] = 1;
            bench_kernel(&spec, NULL, NULL);
        }
}

/* Rows that a careless formula gets wrong: far from zero, constant, with one huge value, tiny,
 * huge. */
enum { KINDS = 8 };
static double hard_value(uint32_t row, uint32_t column)
{
    double noise = (double)bench_random_float();
    switch (row % KINDS) {
    case 0:
        return 100 + noise;
    case 1:
        return 66; /* beyond half's integers times 1 / sqrt(epsilon) */
    case 2:
        return column == 5 ? 30000 : noise;
    case 3:
        return 1e-4 * noise;
    case 4:
        return 20000 * noise;
    case 5:
        return -1000 + (column < 4) * 3;
    case 6:
        return 0;
    default:
        return column % 2 ? 60000 : 59000;
    }
}

static void fill_hard(void *context, const KernelSpec *spec, const KernelContract *contract,
                      uint32_t operand, uint8_t *data)
{
    uint32_t columns = (uint32_t)spec->p[LAYER_NORM_COLUMNS];
    if (operand != 1) {
        bench_fill_random(context, spec, contract, operand, data);
        return;
    }
    for (uint32_t i = 0; i < contract->operands[operand].bytes / 2; i++) {
        uint16_t half = half_from_double(hard_value(i / columns, i % columns));
        memcpy(data + 2 * i, &half, 2);
    }
}

static void hard_rows(void **state)
{
    (void)state;
    for (int32_t rows = 1; rows <= 8; rows += 7) {
        KernelSpec spec = layer_norm(rows, 144);
        bench_kernel(&spec, fill_hard, NULL);
    }
}

/* The method against double arithmetic. In units of half's rounding (2^-11)
 * of n * s: r as a half, d, n, the
 * product, the final sum, and the variance through d's rounding; of the bias: the final sum. Where
 * a row is cut, d and the distance of the slice's mean from the row's are rounded relative to that
 * distance, which is at most sqrt(parts - 1) standard deviations. And the distance from K is
 * rounded to a multiple of half's smallest step. */
static void accuracy(void **state)
{
    (void)state;
    enum { ROWS = 4 * KINDS, COLUMNS = 144 };
    static uint16_t x[ROWS][COLUMNS], out[ROWS][COLUMNS], scale[COLUMNS], bias[COLUMNS];
    for (uint32_t c = 0; c < COLUMNS; c++) {
        scale[c] = half_from_float(1 + bench_random_float() / 2);
        bias[c] = half_from_float(bench_random_float());
    }
    double worst = 0;
    for (int32_t rows = 1; rows <= ROWS; rows += ROWS - 1) { /* both ways to cut */
        for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
            x[i / COLUMNS][i % COLUMNS] = half_from_double(hard_value(i / COLUMNS, i % COLUMNS));
        KernelSpec spec = layer_norm(rows, COLUMNS);
        void *operands[] = {out, x, scale, bias};
        assert_ok(kernel_reference(&spec, operands));
        for (uint32_t r = 0; r < (uint32_t)rows; r++) {
            double sum = 0, squares = 0;
            for (uint32_t c = 0; c < COLUMNS; c++)
                sum += (double)half_to_float(x[r][c]);
            double mean = sum / COLUMNS;
            for (uint32_t c = 0; c < COLUMNS; c++)
                squares += pow((double)half_to_float(x[r][c]) - mean, 2);
            double root = 1 / sqrt(squares / COLUMNS + (double)epsilon);
            for (uint32_t c = 0; c < COLUMNS; c++) {
                double n = ((double)half_to_float(x[r][c]) - mean) * root;
                double s = (double)half_to_float(scale[c]), b = (double)half_to_float(bias[c]);
                double away = rows == 1 ? sqrt(5) : 0;
                double allowed = 0x1p-11 * (6 * fabs(n * s) + fabs(b) + 2 * away * fabs(s)) +
                                 0x1p-25 * root * fabs(s);
                double error = fabs((double)half_to_float(out[r][c]) - (n * s + b));
                worst = fmax(worst, error / allowed);
            }
        }
    }
    printf("layer norm: worst error %.3f of the allowed\n", worst);
    assert_true(worst <= 1);
}

static void refused(void **state)
{
    (void)state;
    KernelSpec adds = layer_norm(1, 144);
    adds.p[LAYER_NORM_ADD] = 2;
    KernelContract contract;
    assert_true(status_discard(kernel_contract(&adds, &contract)));
    static const int32_t shapes[][2] = {{0, 144},   {1, 4},    {1, 10},
                                        {1, 16384}, {4096, 8}, {40, 16380}};
    for (size_t i = 0; i < countof(shapes); i++) {
        KernelSpec spec = layer_norm(shapes[i][0], shapes[i][1]);
        assert_true(status_discard(kernel_contract(&spec, &contract)));
    }
    KernelSpec no_epsilon = layer_norm(1, 144);
    no_epsilon.p[LAYER_NORM_EPSILON_BITS] = 0;
    assert_true(status_discard(kernel_contract(&no_epsilon, &contract)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),     cmocka_unit_test(sums),     cmocka_unit_test(wide),
        cmocka_unit_test(hard_rows), cmocka_unit_test(accuracy), cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
