/* libraries: tile */
/* Recipes that the search does not choose by itself must work as well: blocks per kernel call,
 * padding that is cleared, either orientation of a product, parameters that are stored once. */
#include "tile_interpreter.h"

static Shape shape2(uint32_t a, uint32_t b)
{
    return (Shape){.rank = 2, .extent = {a, b}};
}

static Shape shape3(uint32_t a, uint32_t b, uint32_t c)
{
    return (Shape){.rank = 3, .extent = {a, b, c}};
}

static OpPlan *plan_of(const Graph *graph, Recipe *recipe, uint8_t kind)
{
    for (uint32_t i = 0; i < graph->operations.count; i++)
        if (graph->operations.items[i].kind == kind)
            return &recipe->ops[i];
    return NULL;
}

/* One product x [m, k] by w [k, n] and nothing else: the input and the parameter go where the
 * changed plan wants them. */
static void follow(const Graph *graph, Recipe *recipe, OpPlan *plan)
{
    uint32_t op = (uint32_t)(plan - recipe->ops);
    const Operation *o = &graph->operations.items[op];
    assert_ok(plan_gemm_formats(graph, op, 0, plan));
    recipe->parameters[o->inputs[1]] = plan->operands[1].format;
    recipe->outputs[0] = plan->result;
}

static void small_blocks(const Graph *graph, Recipe *recipe)
{
    OpPlan *plan = plan_of(graph, recipe, OP_GEMM);
    plan->swapped = false;
    plan->result_staging = STAGING_DIRECT;
    plan->rows = 2;
    plan->columns = 2;
    plan->inner = 1;
    plan->inner_block = 32;
    plan->column_block = 16;
    follow(graph, recipe, plan);
}

static void swapped_split(const Graph *graph, Recipe *recipe)
{
    OpPlan *plan = plan_of(graph, recipe, OP_GEMM);
    plan->swapped = true;
    plan->result_staging = STAGING_ROW_MAJOR;
    plan->rows = 2;
    plan->columns = 3;
    plan->inner = 2;
    plan->inner_block = 48;
    follow(graph, recipe, plan);
}

static void swapped_raw(const Graph *graph, Recipe *recipe)
{
    swapped_split(graph, recipe);
    OpPlan *plan = plan_of(graph, recipe, OP_GEMM);
    plan->result_staging = STAGING_DIRECT;
    plan->inner = 1;
    plan->inner_block = 0;
    follow(graph, recipe, plan);
}

/* Sums of shares; 35 rows and 90 columns leave padding in every block. */
static void shared_sums(const Graph *graph, Recipe *recipe)
{
    OpPlan *plan = plan_of(graph, recipe, OP_GEMM);
    plan->swapped = false;
    plan->result_staging = STAGING_DIRECT;
    plan->rows = 2;
    plan->columns = 3;
    plan->inner = 3;
    plan->inner_block = 0;
    plan->scatter = SCATTER_SHARES;
    follow(graph, recipe, plan);
}

static void shared_pairs(const Graph *graph, Recipe *recipe)
{
    shared_sums(graph, recipe);
    OpPlan *plan = plan_of(graph, recipe, OP_GEMM);
    plan->columns = 4;
    plan->inner = 2;
    plan->inner_block = 0;
    plan->column_pairs = true;
    follow(graph, recipe, plan);
    assert_int_equal(plan->result.axes[0].near, 2);
}

static void shared_swapped(const Graph *graph, Recipe *recipe)
{
    shared_sums(graph, recipe);
    OpPlan *plan = plan_of(graph, recipe, OP_GEMM);
    plan->swapped = true;
    follow(graph, recipe, plan);
}

static void standard_weights(const Graph *graph, Recipe *recipe)
{
    OpPlan *plan = plan_of(graph, recipe, OP_GEMM);
    plan->operands[plan->swapped ? 0 : 1].format.memory_class = MEMORY_STANDARD;
    plan->inner_block = 0;
    follow(graph, recipe, plan);
}

static void products(void **state)
{
    (void)state;
    ChangeRecipe *const changes[] = {small_blocks, swapped_split,  swapped_raw,     shared_sums,
                                     shared_pairs, shared_swapped, standard_weights};
    for (size_t i = 0; i < countof(changes); i++)
        for (int transposed = 0; transposed < 2; transposed++) {
            Arena arena = {0};
            Graph graph;
            ValueId y;
            if (transposed && changes[i] == small_blocks)
                continue; /* a [n, k] operand is read by one call over all of K */
            graph_init(&graph, &arena);
            ValueId x = graph_input(&graph, "x", shape2(35, 90));
            ValueId w = graph_parameter(&graph, "w", transposed ? shape2(96, 90) : shape2(90, 96));
            assert_ok(graph_gemm(&graph, "gemm", x, w, transposed, &y));
            assert_ok(graph_output(&graph, "y", y));
            PlanOptions options = {.tiles = 24, .precision = {.kind = F16}};
            TileRun run = check_changed(&graph, &options, true, 0.004, changes[i]);
            print_message("change %zu%s: run %.0f cycles, error %.5f\n", i,
                          transposed ? " transposed" : "", run.cycles, run.error);
            graph_free(&graph);
            arena_free(&arena);
        }
}

/* A sum that ends in a GELU, wherever it is made; with a bias in its stack where there is one. */
static void gelu_of_sum(const Graph *graph, Recipe *recipe, uint8_t scatter)
{
    shared_sums(graph, recipe);
    OpPlan *plan = plan_of(graph, recipe, OP_GEMM), *add = plan_of(graph, recipe, OP_ADD);
    plan->scatter = scatter;
    plan->gelu = true;
    plan->operand_count = add ? 3 : 2;
    plan_of(graph, recipe, OP_GELU)->fused = FUSED_INTO_PRODUCER;
    if (add)
        add->fused = FUSED_INTO_PRODUCER;
    follow(graph, recipe, plan);
}

static void gelu_on_first(const Graph *graph, Recipe *recipe)
{
    gelu_of_sum(graph, recipe, SCATTER_NO);
}

static void gelu_by_rows(const Graph *graph, Recipe *recipe)
{
    gelu_of_sum(graph, recipe, SCATTER_ROWS);
}

static void gelu_by_shares(const Graph *graph, Recipe *recipe)
{
    gelu_of_sum(graph, recipe, SCATTER_SHARES);
}

static void gelu_sums(void **state)
{
    (void)state;
    ChangeRecipe *const changes[] = {gelu_on_first, gelu_on_first, gelu_by_rows, gelu_by_shares};
    for (size_t i = 0; i < countof(changes); i++) {
        Arena arena = {0};
        Graph graph;
        ValueId y;
        graph_init(&graph, &arena);
        ValueId x = graph_input(&graph, "x", shape2(35, 90));
        ValueId w = graph_parameter(&graph, "w", shape2(90, 95));
        assert_ok(graph_gemm(&graph, "gemm", x, w, false, &y));
        if (i == 1) /* only sums on the first tiles take addends */
            assert_ok(
                graph_add(&graph, "bias", y, graph_parameter(&graph, "b", shape2(1, 95)), &y));
        assert_ok(graph_gelu(&graph, "gelu", y, &y));
        assert_ok(graph_output(&graph, "y", y));
        PlanOptions options = {.tiles = 24, .precision = {.kind = F16}};
        TileRun run = check_changed(&graph, &options, true, 0.004, changes[i]);
        print_message("gelu %zu: run %.0f cycles, error %.5f\n", i, run.cycles, run.error);
        graph_free(&graph);
        arena_free(&arena);
    }
}

static void clear_padding(const Graph *graph, Recipe *recipe)
{
    for (uint32_t i = 0; i < graph->operations.count; i++)
        for (uint32_t j = 0; j < recipe->ops[i].operand_count; j++)
            recipe->ops[i].operands[j].padding = PADDING_CLEAR;
}

/* Odd sizes everywhere: every operand has padding. */
static void make_chain(Graph *graph, Arena *arena, uint32_t repeats)
{
    graph_init(graph, arena);
    ValueId x = graph_input(graph, "x", shape3(1, 5, 75)), y = x, members[4];
    static const char *const names[4] = {"m0", "m1", "m2", "m3"};
    ValueId w1 = graph_parameter(graph, "w1", shape2(75, 43));
    ValueId b1 = graph_parameter(graph, "bias1", shape3(1, 1, 43));
    ValueId w2 = graph_parameter(graph, "w2", shape2(43, 75));
    for (uint32_t i = 0; i < repeats; i++)
        members[i] = graph_parameter(graph, names[i], shape2(75, 75));
    uint32_t sequence = graph_sequence(graph, "m", members, repeats);
    const ValueId *arguments, *results;
    assert_ok(graph_gemm(graph, "up", y, w1, false, &y));
    assert_ok(graph_add(graph, "bias", b1, y, &y));
    assert_ok(graph_gelu(graph, "gelu", y, &y));
    assert_ok(graph_gemm(graph, "down", y, w2, false, &y));
    assert_ok(graph_begin_repeat(graph, "repeat", repeats, &y, 1, &sequence, 1, &arguments));
    assert_ok(graph_gemm(graph, "body", arguments[0], arguments[1], false, &y));
    assert_ok(graph_end_repeat(graph, &y, &results));
    assert_ok(graph_add(graph, "residual", x, results[0], &y));
    assert_ok(graph_output(graph, "y", y));
    assert_ok(graph_output(graph, "carried", results[0]));
}

static void chains(void **state)
{
    (void)state;
    static const uint32_t tiles[] = {1, 2, 7, 16, 40, 64, 300};
    for (size_t i = 0; i < countof(tiles); i++)
        for (int variant = 0; variant < 4; variant++) {
            Arena arena = {0};
            Graph graph;
            make_chain(&graph, &arena, 3);
            PlanOptions options = {
                .tiles = tiles[i], .precision = {.kind = F16}, .weights_once = variant & 1};
            TileRun run = check_changed(&graph, &options, variant != 3, 0.01,
                                        variant & 2 ? clear_padding : NULL);
            print_message("%u tiles%s%s: predicted %.0f, run %.0f cycles, %u phases, error %.5f\n",
                          tiles[i], variant & 1 ? ", once" : "", variant & 2 ? ", clear" : "",
                          run.predicted, run.cycles, run.phases, run.error);
            graph_free(&graph);
            arena_free(&arena);
        }
}

/* Two carried values that change places in every iteration. */
static void exchanged(void **state)
{
    (void)state;
    static const uint32_t tiles[] = {1, 5, 64};
    for (size_t i = 0; i < countof(tiles); i++) {
        Arena arena = {0};
        Graph graph;
        graph_init(&graph, &arena);
        ValueId carried[2] = {graph_input(&graph, "a", shape3(1, 4, 48)),
                              graph_input(&graph, "b", shape3(1, 4, 48))};
        ValueId members[3], yields[2], y;
        static const char *const names[3] = {"m0", "m1", "m2"};
        for (uint32_t m = 0; m < 3; m++)
            members[m] = graph_parameter(&graph, names[m], shape2(48, 48));
        uint32_t sequence = graph_sequence(&graph, "m", members, 3);
        const ValueId *arguments, *results;
        assert_ok(graph_begin_repeat(&graph, "repeat", 3, carried, 2, &sequence, 1, &arguments));
        assert_ok(graph_gemm(&graph, "gemm", arguments[0], arguments[2], false, &y));
        assert_ok(graph_add(&graph, "add", y, arguments[1], &yields[1]));
        yields[0] = arguments[1];
        assert_ok(graph_end_repeat(&graph, yields, &results));
        assert_ok(graph_output(&graph, "first", results[0]));
        assert_ok(graph_output(&graph, "second", results[1]));
        for (int rewrite = 0; rewrite < 2; rewrite++) {
            PlanOptions options = {.tiles = tiles[i], .precision = {.kind = F16}};
            check_graph(&graph, &options, rewrite, 0.01);
        }
        graph_free(&graph);
        arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(products), cmocka_unit_test(chains),
                                       cmocka_unit_test(exchanged), cmocka_unit_test(gelu_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
