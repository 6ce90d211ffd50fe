/* libraries: kernel sim */
/* Published cycles of pointwise, reduction, normalisation and attention kernels against ours, taken
 * as they were taken on the card: the cycle counter read by a worker before and after the call, the
 * argument setup and the call's own launches included. No row may be slower. */
#include "kernel_bench.h"

enum { SAMPLES = 0x5b000, EPSILON = 0x358637bd /* 1e-6 */, SCALE = 0x3df15bee /* 1 / sqrt(72) */ };

typedef struct Row {
    const char *name;
    uint32_t published;
    KernelSpec spec;
} Row;

#define SPEC(family_, ...)                                                                         \
    {                                                                                              \
        .family = KERNEL_##family_, .p = { __VA_ARGS__ }                                           \
    }

/* Rows of 94, 2152 x 3 ... columns that are no multiple of 4 run padded: a plan pads them. */
static const Row rows[] = {
    {"add 576", 1068, SPEC(ADD, 1, 1, 576)},
    {"add 1152", 1368, SPEC(ADD, 1, 1, 1152)},
    {"add 1728", 1800, SPEC(ADD, 1, 1, 1728)},
    {"add 2152", 2124, SPEC(ADD, 1, 1, 2152)},
    {"add 3456, 1152 repeated", 3564, SPEC(ADD, 1, 3, 1152)},
    {"layer_norm 1x144", 2196, SPEC(LAYER_NORM, 1, 144, EPSILON)},
    {"layer_norm 1x576", 4140, SPEC(LAYER_NORM, 1, 576, EPSILON)},
    {"layer_norm 1x1152", 6732, SPEC(LAYER_NORM, 1, 1152, EPSILON)},
    {"layer_norm 3x1152", 19938, SPEC(LAYER_NORM, 3, 1152, EPSILON)},
    {"add_layer_norm 1x144", 2454, SPEC(LAYER_NORM, 1, 144, EPSILON, 1)},
    {"add_layer_norm 1x576", 4992, SPEC(LAYER_NORM, 1, 576, EPSILON, 1)},
    {"add_layer_norm 1x1152", 8376, SPEC(LAYER_NORM, 1, 1152, EPSILON, 1)},
    {"add_layer_norm 3x1152", 24864, SPEC(LAYER_NORM, 3, 1152, EPSILON, 1)},
    {"moments 1x144", 1464, SPEC(MOMENTS, 1, 144)},
    {"moments 1x576", 2112, SPEC(MOMENTS, 1, 576)},
    {"moments 1x1152", 2976, SPEC(MOMENTS, 1, 1152)},
    {"moments 3x1152", 8676, SPEC(MOMENTS, 3, 1152)},
    {"apply_norm 1x144, 1 part", 1620, SPEC(APPLY_NORM, 1, 144, 1, EPSILON)},
    {"apply_norm 1x576, 1 part", 2916, SPEC(APPLY_NORM, 1, 576, 1, EPSILON)},
    {"apply_norm 1x1152, 1 part", 4644, SPEC(APPLY_NORM, 1, 1152, 1, EPSILON)},
    {"apply_norm 3x1152, 1 part", 12468, SPEC(APPLY_NORM, 3, 1152, 1, EPSILON)},
    {"gelu 16", 792, SPEC(GELU, 16)},
    {"gelu 96", 792, SPEC(GELU, 96)},
    {"gelu 1408", 7260, SPEC(GELU, 1408)},
    {"gelu 2208", 10956, SPEC(GELU, 2208)},
    {"bias_gelu 1x16", 540, SPEC(BIAS_GELU, 1, 1, 16)},
    {"bias_gelu 1x94 (96)", 1458, SPEC(BIAS_GELU, 1, 1, 96)},
    {"bias_gelu 1x98 (100)", 1170, SPEC(BIAS_GELU, 1, 1, 100)},
    {"bias_gelu 1x1408", 5760, SPEC(BIAS_GELU, 1, 1, 1408)},
    {"bias_gelu 1x2152", 8550, SPEC(BIAS_GELU, 1, 1, 2152)},
    {"bias_gelu 1x2208", 8730, SPEC(BIAS_GELU, 1, 1, 2208)},
    {"bias_gelu 3x2152", 25206, SPEC(BIAS_GELU, 1, 3, 2152)},
    {"reduce_sum 8, 2 partials", 360, SPEC(REDUCE_SUM, 8, 2)},
    {"reduce_sum 56, 2 partials", 438, SPEC(REDUCE_SUM, 56, 2)},
    {"reduce_sum 1472, 2 partials", 2700, SPEC(REDUCE_SUM, 1472, 2)},
    {"reduce_sum 1472, 4 partials", 3444, SPEC(REDUCE_SUM, 1472, 4)},
    {"reduce_sum 576, 15 partials", 3090, SPEC(REDUCE_SUM, 576, 15)},
    {"reduce_sum 2208, 4 partials", 4974, SPEC(REDUCE_SUM, 2208, 4)},
    {"reduce_sum 2208, 28 partials", 18222, SPEC(REDUCE_SUM, 2208, 28)},
    {"softmax 8 rows, 729 of 768", 20244, SPEC(SOFTMAX, 8, 729, 768, SCALE)},
    {"softmax 1 row, 768", 12258, SPEC(SOFTMAX, 1, 768, 768, SCALE)},
    {"softmax 1 row, 729 of 768", 5232, SPEC(SOFTMAX, 1, 729, 768, SCALE)},
    {"softmax 8 rows, 64", 2664, SPEC(SOFTMAX, 8, 64, 64, SCALE)},
    {"softmax 8 rows, 25 of 64", 2634, SPEC(SOFTMAX, 8, 25, 64, SCALE)},
    {"attention_merge 8x72, initial", 2430, SPEC(ATTENTION_MERGE, 8, 72, 80, 1, 0)},
    {"attention_merge 8x72, update", 3378, SPEC(ATTENTION_MERGE, 8, 72, 80, 0, 0)},
    {"attention_merge 8x72, final", 3438, SPEC(ATTENTION_MERGE, 8, 72, 80, 0, 1)},
    /* What the first model needs most; nothing published. */
    {"add 576, apart", 0, SPEC(ADD, 1, 1, 576, 0, 1)},
    {"add 1728, apart", 0, SPEC(ADD, 1, 1, 1728, 0, 1)},
    {"add 64", 0, SPEC(ADD, 1, 1, 64)},
    {"add 4x16 panel, bias", 0, SPEC(ADD, 1, 4, 16)},
    {"reduce_sum 64, 4 partials", 0, SPEC(REDUCE_SUM, 64, 4)},
    {"its gelu", 0, SPEC(REDUCE_SUM, 64, 4, 1)},
    {"reduce_sum 2152, 9, interleaved", 0, SPEC(REDUCE_SUM, 2152, 9, 0, 1)},
    {"reduce_sum 576, 27, interleaved", 0, SPEC(REDUCE_SUM, 576, 27, 0, 1)},
    {"gelu of 2152, 9, interleaved", 0, SPEC(REDUCE_SUM, 2152, 9, 1, 1)},
    {"gelu 2152", 0, SPEC(GELU, 2152)},
    {"gelu 64", 0, SPEC(GELU, 64)},
    {"layer_norm 4x144", 0, SPEC(LAYER_NORM, 4, 144, EPSILON)},
    {"add_layer_norm 4x144", 0, SPEC(LAYER_NORM, 4, 144, EPSILON, 1)},
    {"bias_gelu 4x16 panel", 0, SPEC(BIAS_GELU, 1, 4, 16)},
    {"bias_gelu 4x32, two panels", 0, SPEC(BIAS_GELU, 2, 4, 16)},
    {"softmax 4 rows, 4 of 16", 0, SPEC(SOFTMAX, 4, 4, 16, SCALE)},
    {"attention_merge 4x72, alone", 0, SPEC(ATTENTION_MERGE, 4, 72, 80, 1, 1)},
};

static void link_sampled(Bench *bench)
{
    Arena *arena = &bench->arena;
    KernelObjects objects;
    assert_ok(kernels_build(arena, &bench->spec, 1, NULL, NULL, &objects));
    Text text = {0};
    text_printf(&text,
                ".supervisor\n.section .text.caller,\"ax\"\n.globl sampled\nsampled:\n"
                "add $m11, $m11, -8\nst32 $m10, $m11, $mzero, 0\n"
                "setzi $m2, %u\ncall $m10, ipu_sample_cycle\n",
                SAMPLES);
    for (uint32_t i = 0; i < bench->contract.operand_count; i++)
        text_printf(&text, "setzi $m%u, %u\n", 2 + i, bench->address[i]);
    text_printf(&text, "call $m10, %s\nsetzi $m2, %u\ncall $m10, ipu_sample_cycle\n",
                bench->contract.symbol, SAMPLES + 4);
    text_append(&text, "ld32 $m10, $m11, $mzero, 0\nadd $m11, $m11, 8\nbr $m10\n");
    AsObject caller;
    AsOptions options = {.supervisor = true, .find_source = kernel_source};
    assert_ok(assemble(arena, "caller", text_string(&text), text.count, &options, &caller));
    text_free(&text);
    const AsObject *all[4] = {&caller};
    for (uint32_t i = 0; i < objects.count; i++)
        all[i + 1] = objects.objects[i];
    const char *root = "sampled";
    LinkRange range = {LINK_SECOND, BENCH_CODE_END};
    LinkInput input = {.objects = all,
                       .object_count = objects.count + 1,
                       .roots = &root,
                       .root_count = 1,
                       .ranges = &range,
                       .range_count = 1};
    assert_ok(obj_link(arena, &input, &bench->image));
    assert_ok(link_symbol(&bench->image, root, &bench->callers[0]));
}

static uint32_t sampled_cycles(const Row *row)
{
    Bench bench = {.spec = row->spec};
    assert_ok(kernel_contract(&row->spec, &bench.contract));
    bench_place(&bench);
    link_sampled(&bench);
    bench_fill(&bench, bench_fill_random, NULL);
    bench_expect(&bench);
    SimContext registers;
    bench_enter(&bench, bench.callers[0], &registers);
    bench_check_memory(&bench);
    uint32_t samples[2];
    assert_ok(sim_read(bench.sim, 0, SAMPLES, samples, sizeof samples));
    sim_destroy(bench.sim);
    arena_free(&bench.arena);
    return samples[1] - samples[0];
}

static void not_slower(void **state)
{
    (void)state;
    double logarithm = 0;
    uint32_t compared = 0, slower = 0;
    printf("%-32s %9s %6s %8s %6s\n", "kernel", "published", "ours", "formula", "ratio");
    for (size_t i = 0; i < countof(rows); i++) {
        uint32_t ours = sampled_cycles(&rows[i]);
        printf("%-32s %9u %6u %8llu", rows[i].name, rows[i].published, ours,
               (unsigned long long)kernel_cycles(&rows[i].spec));
        if (rows[i].published) {
            double ratio = (double)ours / rows[i].published;
            printf(" %6.3f%s", ratio, ratio > 1 ? "  slower" : "");
            logarithm += log(ratio);
            compared++;
            slower += ours > rows[i].published;
        }
        printf("\n");
    }
    printf("geometric mean of %u: %.3f\n", compared, exp(logarithm / compared));
    assert_int_equal(slower, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(not_slower)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
