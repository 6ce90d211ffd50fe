/* libraries: kernel sim */
#include "kernel_bench.h"

/* All sizes of numbers that the target can hold after scaling, some of them beyond (saturation). */
static void fill(void *context, const KernelSpec *spec, const KernelContract *contract,
                 uint32_t operand, uint8_t *data)
{
    (void)context;
    const OperandContract *o = &contract->operands[operand];
    for (uint32_t i = 0; i < o->bytes / precision_bytes(o->precision); i++) {
        if (o->precision.kind == F16) {
            uint16_t half = (uint16_t)bench_random();
            half = (half & 0x7c00) == 0x7c00 ? half & 0xbfff : half;
            memcpy(data + 2 * i, &half, 2);
        } else if (o->precision.kind == F32) {
            float value = ldexpf(bench_random_float(), (int)(bench_random() % 40) - 22);
            memcpy(data + 4 * i, &value, 4);
        } else {
            data[i] = (uint8_t)bench_random();
            data[i] = data[i] == 0x80 ? 0x7f : data[i];
        }
    }
    (void)spec;
}

static KernelSpec cast(int32_t from, int32_t to, int32_t elements, int32_t scale, int32_t rows)
{
    return (KernelSpec){.family = KERNEL_CAST,
                        .p = {[CAST_FROM] = from,
                              [CAST_TO] = to,
                              [CAST_ELEMENTS] = elements,
                              [CAST_SCALE] = scale,
                              [CAST_PANEL_ROWS] = rows}};
}

static void linear(void **state)
{
    (void)state;
    static const int32_t units[] = {1, 2, 5, 6, 7, 11, 12, 13, 64, 127, 128, 129, 132, 200, 1040};
    for (size_t i = 0; i < countof(units); i++) {
        KernelSpec specs[] = {cast(F16, F32, units[i] * 4, 0, 0),
                              cast(F32, F16, units[i] * 4, 0, 0),
                              cast(F16, F8F143, units[i] * 8, (int32_t)i - 7, 0),
                              cast(F8F143, F16, units[i] * 8, 7 - (int32_t)i, 0)};
        for (size_t k = 0; k < countof(specs); k++)
            bench_kernel(&specs[k], fill, NULL);
    }
}

static void panels(void **state)
{
    (void)state;
    static const int32_t rows[] = {1, 4, 6, 7, 12, 65, 184};
    for (size_t i = 0; i < countof(rows); i++)
        for (int32_t count = 1; count <= 6; count += i % 2 + 1) {
            KernelSpec spec = cast(F16, F8F143, rows[i] * count * 16, -4, rows[i]);
            bench_kernel(&spec, fill, NULL);
        }
}

static void refused(void **state)
{
    (void)state;
    KernelContract contract;
    KernelSpec specs[] = {cast(F16, F16, 8, 0, 0),     cast(F32, F8F143, 8, 0, 0),
                          cast(F16, F32, 6, 0, 0),     cast(F16, F8F143, 12, 0, 0),
                          cast(F16, F8F143, 8, 32, 0), cast(F16, F32, 8, 1, 0),
                          cast(F16, F8F143, 40, 0, 1)};
    for (size_t i = 0; i < countof(specs); i++)
        assert_true(status_discard(kernel_contract(&specs[i], &contract)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(linear), cmocka_unit_test(panels),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
