/* libraries: kernel sim */
#include "kernel_bench.h"

static void run(int32_t elements, int32_t partials)
{
    KernelSpec spec = {.family = KERNEL_REDUCE_SUM,
                       .p = {[REDUCE_ELEMENTS] = elements, [REDUCE_PARTIALS] = partials}};
    bench_kernel(&spec, NULL, NULL);
}

static void run_interleaved(int32_t elements, int32_t partials)
{
    KernelSpec spec = {
        .family = KERNEL_REDUCE_SUM,
        .p = {
            [REDUCE_ELEMENTS] = elements, [REDUCE_PARTIALS] = partials, [REDUCE_INTERLEAVED] = 1}};
    bench_kernel(&spec, NULL, NULL);
}

static void interleaved(void **state)
{
    (void)state;
    static const int32_t octets[] = {1, 2, 5, 6, 7, 11, 12, 13, 17, 18, 19, 24, 25, 100};
    for (size_t i = 0; i < countof(octets); i++)
        for (int32_t partials = 2; partials <= 6; partials++)
            run_interleaved(8 * octets[i], partials);
    run_interleaved(2152, 9);
    run_interleaved(576, 27);
    run_interleaved(512, 64);
}

static void interleaved_walked(void **state)
{
    (void)state;
    static const int32_t octets[] = {1, 5, 6, 7, 12, 19};
    for (size_t i = 0; i < countof(octets); i++) {
        run_interleaved(8 * octets[i], 65);
        run_interleaved(8 * octets[i], 80);
    }
}

/* Members farther apart than a load's immediate reaches. */
static void interleaved_bases(void **state)
{
    (void)state;
    for (int32_t partials = 3; partials <= 7; partials++)
        run_interleaved(24576, partials);
    run_interleaved(2208, 40);
}

/* Sums that round differently in F16, saturate, and keep the sign of zero. */
static void fill_wild(void *context, const KernelSpec *spec, const KernelContract *contract,
                      uint32_t operand, uint8_t *data)
{
    (void)context, (void)spec;
    for (uint32_t i = 0; i < contract->operands[operand].bytes / 2; i++) {
        uint16_t bits = (uint16_t)bench_random();
        if ((bits & 0x7c00) == 0x7c00)
            bits &= 0xbfff;
        if (i % 5 == 0)
            bits = 0x8000;
        memcpy(data + 2 * i, &bits, 2);
    }
}

static void interleaved_values(void **state)
{
    (void)state;
    for (int32_t partials = 2; partials <= 9; partials += 7) {
        KernelSpec spec = {.family = KERNEL_REDUCE_SUM, .p = {4000, partials, 0, 1}};
        bench_kernel(&spec, fill_wild, NULL);
    }
}

static void few_partials(void **state)
{
    (void)state;
    static const int32_t quads[] = {1, 2, 5, 6, 7, 12, 13, 36, 100};
    for (size_t i = 0; i < countof(quads); i++)
        for (int32_t partials = 2; partials <= 7; partials++)
            run(4 * quads[i], partials);
    run(576, 15);
    run(2208, 28);
}

static void walked_stack(void **state)
{
    (void)state;
    static const int32_t quads[] = {1, 5, 6, 7, 12, 19};
    for (size_t i = 0; i < countof(quads); i++) {
        run(4 * quads[i], 65);
        run(4 * quads[i], 80);
    }
    run(24580, 6);
    run(24580, 7); /* members too far apart for immediates */
}

static void run_gelu(int32_t elements, int32_t partials, int32_t interleaved)
{
    KernelSpec spec = {.family = KERNEL_REDUCE_SUM, .p = {elements, partials, 1, interleaved}};
    bench_kernel(&spec, NULL, NULL);
}

static void gelu_of_quads(void **state)
{
    (void)state;
    static const int32_t quads[] = {1, 5, 6, 7, 12, 13, 16, 18, 19, 71, 72, 73, 77, 78};
    for (size_t i = 0; i < countof(quads); i++)
        for (int32_t partials = 2; partials <= 5; partials++)
            run_gelu(4 * quads[i], partials, 0);
    run_gelu(16392, 4, 0);
    run_gelu(40, 80, 0);
}

static void gelu_of_octets(void **state)
{
    (void)state;
    static const int32_t octets[] = {1, 5, 6, 7, 12, 13, 16, 18, 35, 36, 37, 41, 42, 269};
    for (size_t i = 0; i < countof(octets); i++)
        for (int32_t partials = 2; partials <= 5; partials++)
            run_gelu(8 * octets[i], partials, 1);
    run_gelu(24576, 5, 1);
    run_gelu(80, 80, 1);
    run_gelu(800, 80, 1);
}

/* Members farther apart than a load's immediate reaches. */
static void many_bases(void **state)
{
    (void)state;
    for (int32_t partials = 3; partials <= 7; partials++)
        run(16392, partials);
    run(2208, 40);
}

static void refused(void **state)
{
    (void)state;
    KernelContract contract;
    static const int32_t shapes[][2] = {{0, 2}, {6, 2}, {8, 1}, {8, 4097}, {98308, 2}, {98304, 8}};
    for (size_t i = 0; i < countof(shapes); i++) {
        KernelSpec spec = {.family = KERNEL_REDUCE_SUM, .p = {shapes[i][0], shapes[i][1]}};
        assert_true(status_discard(kernel_contract(&spec, &contract)));
    }
    KernelSpec quad = {.family = KERNEL_REDUCE_SUM, .p = {12, 2, 0, 1}}; /* no whole octets */
    assert_true(status_discard(kernel_contract(&quad, &contract)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_partials),       cmocka_unit_test(walked_stack),
        cmocka_unit_test(gelu_of_quads),      cmocka_unit_test(gelu_of_octets),
        cmocka_unit_test(many_bases),         cmocka_unit_test(interleaved),
        cmocka_unit_test(interleaved_walked), cmocka_unit_test(interleaved_bases),
        cmocka_unit_test(interleaved_values), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
