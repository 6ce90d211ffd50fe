/* libraries: tile */
/* A single product, and chains of them, through plan, mid and tile to numbers. */
#include "tile_interpreter.h"

static Shape shape2(uint32_t a, uint32_t b)
{
    return (Shape){.rank = 2, .extent = {a, b}};
}

static Shape shape3(uint32_t a, uint32_t b, uint32_t c)
{
    return (Shape){.rank = 3, .extent = {a, b, c}};
}

static void one_gemm(uint32_t m, uint32_t k, uint32_t n, uint32_t tiles, bool transposed)
{
    Arena arena = {0};
    Graph graph;
    ValueId x, w, y;
    graph_init(&graph, &arena);
    x = graph_input(&graph, "x", shape2(m, k));
    w = graph_parameter(&graph, "w", transposed ? shape2(n, k) : shape2(k, n));
    assert_ok(graph_gemm(&graph, "gemm", x, w, transposed, &y));
    assert_ok(graph_output(&graph, "y", y));
    PlanOptions options = {.tiles = tiles, .precision = {.kind = F16}};
    TileRun run = check_graph(&graph, &options, true, 0.004);
    print_message(
        "gemm %u x %u x %u%s on %u tiles: predicted %.0f, run %.0f, error %.5f, plan %.3f s\n", m,
        k, n, transposed ? " transposed" : "", tiles, run.predicted, run.cycles, run.error,
        run.plan_seconds);
    graph_free(&graph);
    arena_free(&arena);
}

static void single(void **state)
{
    (void)state;
    one_gemm(4, 144, 432, 64, false);
    one_gemm(4, 588, 144, 64, false);
    one_gemm(4, 144, 144, 1, false);
    one_gemm(100, 70, 90, 7, false);
    one_gemm(4, 144, 432, 64, true);
    one_gemm(33, 50, 21, 16, true);
    one_gemm(1, 1, 1, 1, false);
    one_gemm(1, 16, 17, 3, false);
    one_gemm(729, 128, 96, 1472, false);
}

/* x -> gemm + bias -> gelu -> gemm + bias -> + x, odd sizes everywhere. */
static void chain(uint32_t m, uint32_t a, uint32_t b, uint32_t tiles)
{
    Arena arena = {0};
    Graph graph;
    ValueId x, y;
    graph_init(&graph, &arena);
    x = graph_input(&graph, "x", shape3(1, m, a));
    ValueId w1 = graph_parameter(&graph, "w1", shape2(a, b));
    ValueId b1 = graph_parameter(&graph, "bias1", shape3(1, 1, b));
    ValueId w2 = graph_parameter(&graph, "w2", shape2(b, a));
    ValueId b2 = graph_parameter(&graph, "bias2", shape3(1, 1, a));
    assert_ok(graph_gemm(&graph, "up", x, w1, false, &y));
    assert_ok(graph_add(&graph, "up_bias", y, b1, &y));
    assert_ok(graph_gelu(&graph, "gelu", y, &y));
    assert_ok(graph_gemm(&graph, "down", y, w2, false, &y));
    assert_ok(graph_add(&graph, "down_bias", y, b2, &y));
    assert_ok(graph_add(&graph, "residual", x, y, &y));
    assert_ok(graph_output(&graph, "y", y));
    for (int rewrite = 0; rewrite < 2; rewrite++) {
        PlanOptions options = {.tiles = tiles, .precision = {.kind = F16}};
        TileRun run = check_graph(&graph, &options, rewrite, 0.01);
        print_message("chain %u x %u x %u on %u tiles: predicted %.0f, run %.0f, error %.5f\n", m,
                      a, b, tiles, run.predicted, run.cycles, run.error);
    }
    graph_free(&graph);
    arena_free(&arena);
}

static void chains(void **state)
{
    (void)state;
    uint64_t seed = 5;
    chain(4, 144, 288, 64);
    chain(5, 37, 51, 9);
    chain(1, 33, 129, 64);
    chain(29, 67, 45, 1);
    for (uint32_t i = 0; i < 12; i++) {
        uint32_t m = 1 + (uint32_t)(fabs(test_random(&seed)) * 60);
        uint32_t a = 1 + (uint32_t)(fabs(test_random(&seed)) * 200);
        uint32_t b = 1 + (uint32_t)(fabs(test_random(&seed)) * 200);
        uint32_t tiles = 1 + (uint32_t)(fabs(test_random(&seed)) * 200);
        chain(m, a, b, tiles);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(single), cmocka_unit_test(chains)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
