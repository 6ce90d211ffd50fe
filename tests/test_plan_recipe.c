/* libraries: plan */
/* Recipes: the same for the same question, whole in JSON, checked, and errors that say what is
 * missing. */
#include "check.h"
#include "plan/plan.h"

#include <string.h>

static Shape shape2(uint32_t a, uint32_t b)
{
    return (Shape){.rank = 2, .extent = {a, b}};
}

static Shape shape3(uint32_t a, uint32_t b, uint32_t c)
{
    return (Shape){.rank = 3, .extent = {a, b, c}};
}

/* Everything a recipe can hold: products with fused adds, a repeat, layer norm, attention, views.
 */
static void make_graph(Graph *graph, Arena *arena, uint32_t width, uint32_t members)
{
    graph_init(graph, arena);
    ValueId x = graph_input(graph, "x", shape3(1, 6, width)), y, q, k, v;
    ValueId scale = graph_parameter(graph, "scale", shape3(1, 1, width));
    ValueId bias = graph_parameter(graph, "bias", shape3(1, 1, width));
    ValueId weights[8];
    static const char *const names[8] = {"w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7"};
    for (uint32_t i = 0; i < members; i++)
        weights[i] = graph_parameter(graph, names[i], shape2(width, width));
    uint32_t sequence = graph_sequence(graph, "weights", weights, members);
    const ValueId *arguments, *results;
    assert_ok(graph_begin_repeat(graph, "repeat", members, &x, 1, &sequence, 1, &arguments));
    assert_ok(graph_gemm(graph, "repeat/gemm", arguments[0], arguments[1], false, &y));
    assert_ok(graph_add(graph, "repeat/add", arguments[0], y, &y));
    assert_ok(graph_end_repeat(graph, &y, &results));
    assert_ok(graph_layer_norm(graph, "norm", results[0], scale, bias, 1e-6f, &y));
    assert_ok(graph_view(graph, "heads", y, 2, 0, 2, false, &q));
    assert_ok(graph_slice(graph, "keys", q, 1, 1, 5, &k));
    assert_ok(graph_slice(graph, "values", q, 1, 0, 5, &v));
    assert_ok(graph_attention(graph, "attention", q, k, v, 0.25f, &y));
    assert_ok(graph_view(graph, "join", y, 2, 0, 2, true, &y));
    assert_ok(graph_add(graph, "bias_add", y, bias, &y));
    assert_ok(graph_gelu(graph, "gelu", y, &y));
    assert_ok(graph_output(graph, "y", y));
    assert_ok(graph_check(graph));
}

static Status search(Arena *arena, const Graph *graph, uint32_t tiles, Recipe **out)
{
    uint32_t count;
    PlanOptions options = {.tiles = tiles, .precision = {.kind = F16}};
    return plan_search(arena, graph, &options, NULL, out, &count);
}

static char *json_of(const Graph *graph, const Recipe *recipe)
{
    json_t *json = recipe_to_json(graph, recipe);
    char *text = json_dumps(json, JSON_INDENT(1) | JSON_SORT_KEYS);
    json_decref(json);
    return text;
}

static void round_trip(void **state)
{
    (void)state;
    for (uint32_t tiles = 1; tiles <= 64; tiles = tiles * 3 + 1) {
        Arena arena = {0};
        Graph graph;
        Recipe *recipe, *again, read;
        JsonPlace place;
        make_graph(&graph, &arena, 64, 3);
        assert_ok(search(&arena, &graph, tiles, &recipe));
        assert_ok(recipe_check(&graph, recipe));
        assert_ok(search(&arena, &graph, tiles, &again));
        char *text = json_of(&graph, recipe), *second = json_of(&graph, again);
        assert_string_equal(text, second); /* deterministic */
        assert_ok(json_open(&arena, "recipe", text, strlen(text), &place));
        assert_ok(recipe_from_json(&arena, &place, &graph, &read));
        char *third = json_of(&graph, &read);
        assert_string_equal(text, third);
        json_close(&place);
        free(text);
        free(second);
        free(third);
        graph_free(&graph);
        arena_free(&arena);
    }
}

static void damaged(void **state)
{
    (void)state;
    Arena arena = {0};
    Graph graph;
    Recipe *recipe;
    make_graph(&graph, &arena, 64, 3);
    assert_ok(search(&arena, &graph, 16, &recipe));
    char *text = json_of(&graph, recipe);
    size_t length = strlen(text), errors = 0, tries = 0;
    for (size_t at = 0; at < length; at += 37) { /* a digit or letter becomes another one */
        char old = text[at];
        if (old == '\n' || old == ' ')
            continue;
        text[at] = old >= '0' && old <= '9' ? (char)('0' + (old - '0' + 3) % 10) : 'q';
        JsonPlace place;
        Recipe read;
        if (!status_discard(json_open(&arena, "recipe", text, length, &place))) {
            errors += status_discard(recipe_from_json(&arena, &place, &graph, &read));
            tries++;
            json_close(&place);
        }
        text[at] = old;
    }
    print_message("%zu damaged recipes, %zu refused\n", tries, errors);
    assert_true(tries > 100 && errors > tries / 2); /* some numbers are free: cycles, names */
    free(text);
    graph_free(&graph);
    arena_free(&arena);
}

static void expect_error(Status status, const char *a, const char *b)
{
    assert_false(status_ok(status));
    if (!strstr(status_message(status), a) || !strstr(status_message(status), b))
        fail_msg("the message \"%s\" lacks \"%s\" or \"%s\"", status_message(status), a, b);
    status_free(status);
}

static void errors(void **state)
{
    (void)state;
    Arena arena = {0};
    Graph graph;
    Recipe *recipe;
    make_graph(&graph, &arena, 64, 3);
    expect_error(search(&arena, &graph, 0, &recipe), "0 tiles", "1472");
    expect_error(search(&arena, &graph, 1473, &recipe), "1473 tiles", "1472");
    assert_ok(search(&arena, &graph, 16, &recipe));
    recipe->ops[1].inner_block += 16;
    recipe->ops[1].columns++;
    assert_true(status_discard(recipe_check(&graph, recipe)));
    graph_free(&graph);

    /* 8 x 1024 x 1024 halves are 16 MiB: too much for 8 tiles, enough room on 64. */
    make_graph(&graph, &arena, 1024, 8);
    expect_error(search(&arena, &graph, 8, &recipe), "bytes more", "8 tiles");
    assert_ok(search(&arena, &graph, 64, &recipe));
    graph_free(&graph);
    arena_free(&arena);
}

/* What is stored once lies in shares where it is wanted; a recipe that says so of anything else is
 * refused. */
static void shares(void **state)
{
    (void)state;
    Arena arena = {0};
    Graph graph;
    Recipe *recipe, read;
    JsonPlace place;
    ValueId y;
    uint32_t count;
    graph_init(&graph, &arena);
    ValueId x = graph_input(&graph, "x", shape2(250, 256));
    ValueId w = graph_parameter(&graph, "w", shape2(256, 1008));
    assert_ok(graph_gemm(&graph, "gemm", x, w, false, &y));
    assert_ok(graph_output(&graph, "y", y));
    PlanOptions options = {
        .tiles = 64, .precision = {.kind = F16}, .pairs = true, .weights_once = true};
    assert_ok(plan_search(&arena, &graph, &options, NULL, &recipe, &count));
    assert_int_equal(recipe->ops[0].own, 1);
    assert_true(recipe->parameters[x].shares > 1 && recipe->parameters[x].replicas == 1);
    char *text = json_of(&graph, recipe);
    assert_ok(json_open(&arena, "recipe", text, strlen(text), &place));
    assert_ok(recipe_from_json(&arena, &place, &graph, &read));
    json_close(&place);
    assert_int_equal(read.ops[0].own, 1);
    assert_true(format_equal(&read.parameters[x], &recipe->parameters[x]));
    free(text);
    recipe->parameters[x].share_every++;
    expect_error(recipe_check(&graph, recipe), "gemm", "operand 0 is not stored in shares");
    recipe->parameters[x].share_every--;
    assert_ok(recipe_check(&graph, recipe));
    recipe->ops[0].own = 4;
    expect_error(recipe_check(&graph, recipe), "gemm", "own buffer");
    graph_free(&graph);
    arena_free(&arena);
}

/* A GELU behind a sum is carried out by it; a recipe that says so where there is none is refused.
 */
static void gelu_of_a_sum(void **state)
{
    (void)state;
    Arena arena = {0};
    Graph graph;
    Recipe *recipe, read;
    JsonPlace place;
    ValueId y;
    uint32_t count;
    graph_init(&graph, &arena);
    ValueId x = graph_input(&graph, "x", shape2(64, 2048));
    ValueId w = graph_parameter(&graph, "w", shape2(2048, 256));
    assert_ok(graph_gemm(&graph, "gemm", x, w, false, &y));
    assert_ok(graph_gelu(&graph, "gelu", y, &y));
    assert_ok(graph_output(&graph, "y", y));
    PlanOptions options = {
        .tiles = 128, .precision = {.kind = F16}, .pairs = true, .weights_once = true};
    assert_ok(plan_search(&arena, &graph, &options, NULL, &recipe, &count));
    assert_true(recipe->ops[0].inner > 1 && recipe->ops[0].gelu);
    assert_int_equal(recipe->ops[1].fused, FUSED_INTO_PRODUCER);
    char *text = json_of(&graph, recipe);
    assert_ok(json_open(&arena, "recipe", text, strlen(text), &place));
    assert_ok(recipe_from_json(&arena, &place, &graph, &read));
    json_close(&place);
    assert_true(read.ops[0].gelu);
    free(text);
    graph_free(&graph);

    make_graph(&graph, &arena, 64, 3);
    assert_ok(search(&arena, &graph, 16, &recipe));
    for (uint32_t i = 0; i < graph.operations.count; i++)
        if (graph.operations.items[i].kind == OP_GEMM)
            recipe->ops[i].gelu = true;
    expect_error(recipe_check(&graph, recipe), "gemm", "no GELU");
    graph_free(&graph);
    arena_free(&arena);
}

static void printing(void **state)
{
    (void)state;
    Arena arena = {0};
    Graph graph;
    Recipe *recipe;
    Text text = {0};
    make_graph(&graph, &arena, 64, 3);
    assert_ok(search(&arena, &graph, 16, &recipe));
    recipe_print(&text, &graph, recipe, NULL);
    for (uint32_t i = 0; i < graph.operations.count; i++)
        assert_non_null(strstr(text_string(&text), graph.operations.items[i].key));
    text_free(&text);
    graph_free(&graph);
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip), cmocka_unit_test(damaged), cmocka_unit_test(errors),
        cmocka_unit_test(printing),   cmocka_unit_test(shares),  cmocka_unit_test(gelu_of_a_sum)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
