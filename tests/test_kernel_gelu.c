/* libraries: kernel sim */
#include "kernel_bench.h"

/* All finite halves in turn, from a start that the operand chooses: saturated cubes too. */
static void fill_sweep(void *context, const KernelSpec *spec, const KernelContract *contract,
                       uint32_t operand, uint8_t *data)
{
    (void)spec;
    uint32_t *next = context;
    for (uint32_t i = 0; i < contract->operands[operand].bytes / 2; i++) {
        uint16_t bits = (uint16_t)*next;
        if ((bits & 0x7c00) == 0x7c00)
            bits &= 0xbfff;
        memcpy(data + 2 * i, &bits, 2);
        *next += operand == 2 ? 977 : 1;
    }
}

static void gelu_sizes(void **state)
{
    (void)state;
    for (int32_t quads = 1; quads <= 20; quads++) {
        KernelSpec spec = {.family = KERNEL_GELU, .p = {4 * quads}};
        bench_kernel(&spec, NULL, NULL);
    }
    for (int32_t quads = 71; quads <= 79; quads++) { /* from 72 on by the matrix unit */
        KernelSpec spec = {.family = KERNEL_GELU, .p = {4 * quads}};
        bench_kernel(&spec, NULL, NULL);
    }
}

static void gelu_all_values(void **state)
{
    (void)state;
    uint32_t next = 0;
    KernelSpec spec = {.family = KERNEL_GELU, .p = {16384}};
    for (int i = 0; i < 4; i++)
        bench_kernel(&spec, fill_sweep, &next);
}

/* Against the real function: what the kernel promises for moderate values, for as many elements as
 * choose one way to compute it or the other. */
static double gelu_worst(int32_t elements)
{
    double worst = 0;
    KernelSpec spec = {.family = KERNEL_GELU, .p = {elements}};
    uint16_t *in = calloc((size_t)elements, sizeof *in), *out = calloc((size_t)elements, 2);
    assert_non_null(in);
    assert_non_null(out);
    for (uint32_t bits = 0; bits < 0x10000; bits += (uint32_t)elements) {
        for (uint32_t i = 0; i < (uint32_t)elements; i++)
            in[i] = (uint16_t)(bits + i);
        void *operands[] = {out, in};
        kernel_family(KERNEL_GELU)->reference(&spec, operands);
        for (uint32_t i = 0; i < (uint32_t)elements; i++) {
            double v = (double)half_to_float(in[i]);
            if (!(fabs(v) <= 8))
                continue;
            double u = 0.7978845608028654 * (v + 0.044715 * v * v * v);
            double exact = v / 2 * (1 + tanh(u)), error = (double)half_to_float(out[i]) - exact;
            worst = fmax(worst, fabs(error) / (0.001 + 0.001 * fabs(v)));
        }
    }
    free(in);
    free(out);
    return worst;
}

static void gelu_accuracy(void **state)
{
    (void)state;
    static const int32_t elements[] = {4, 4096};
    for (size_t i = 0; i < countof(elements); i++) {
        double worst = gelu_worst(elements[i]);
        printf("gelu of %d: worst error %.3f of 0.001 + 0.001 |x|\n", elements[i], worst);
        assert_true(worst <= 1);
    }
}

static void bias_gelu(int32_t panels, int32_t rows, int32_t columns)
{
    KernelSpec spec = {
        .family = KERNEL_BIAS_GELU,
        .p = {[BIAS_GELU_PANELS] = panels, [BIAS_GELU_ROWS] = rows, [BIAS_GELU_COLUMNS] = columns}};
    bench_kernel(&spec, NULL, NULL);
}

static void bias_gelu_dense(void **state)
{
    (void)state;
    for (int32_t quads = 1; quads <= 20; quads++)
        bias_gelu(1, 1, 4 * quads);
    bias_gelu(2, 1, 48);
}

static void bias_gelu_left_order(void **state)
{
    (void)state;
    for (int32_t rows = 2; rows <= 10; rows++)
        for (int32_t panels = 1; panels <= 3; panels++)
            bias_gelu(panels, rows, 16);
    bias_gelu(1, 50, 16);
}

static void bias_gelu_row_major(void **state)
{
    (void)state;
    static const int32_t columns[] = {4, 8, 20, 24, 28, 72, 144};
    for (size_t i = 0; i < countof(columns); i++)
        for (int32_t rows = 2; rows <= 4; rows++)
            for (int32_t panels = 1; panels <= 2; panels++)
                bias_gelu(panels, rows, columns[i]);
}

static void bias_gelu_values(void **state)
{
    (void)state;
    uint32_t next = 0x3000;
    KernelSpec spec = {.family = KERNEL_BIAS_GELU, .p = {1, 1, 16384}};
    bench_kernel(&spec, fill_sweep, &next);
}

static void refused(void **state)
{
    (void)state;
    KernelContract contract;
    static const int32_t elements[] = {0, 2, 6, -4, 98308};
    for (size_t i = 0; i < countof(elements); i++) {
        KernelSpec spec = {.family = KERNEL_GELU, .p = {elements[i]}};
        assert_true(status_discard(kernel_contract(&spec, &contract)));
        KernelSpec bias = {.family = KERNEL_BIAS_GELU, .p = {1, 1, elements[i]}};
        assert_true(status_discard(kernel_contract(&bias, &contract)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gelu_sizes),           cmocka_unit_test(gelu_all_values),
        cmocka_unit_test(gelu_accuracy),        cmocka_unit_test(bias_gelu_dense),
        cmocka_unit_test(bias_gelu_left_order), cmocka_unit_test(bias_gelu_row_major),
        cmocka_unit_test(bias_gelu_values),     cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
