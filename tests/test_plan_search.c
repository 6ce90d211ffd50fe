/* libraries: compile */
/* The search as a whole: the same answer for any number of threads, a frontier that is one, and
 * finalists of which the shortest is taken. */
#include "check.h"
#include "compile/compile.h"

#include <string.h>

static Shape matrix(uint32_t rows, uint32_t columns)
{
    return (Shape){.rank = 2, .extent = {rows, columns}};
}

static void mlp(Graph *graph, Arena *arena, uint32_t rows, uint32_t inner, uint32_t hidden)
{
    graph_init(graph, arena);
    ValueId x = graph_input(graph, "x", matrix(rows, inner));
    ValueId up = graph_parameter(graph, "up.w", matrix(inner, hidden));
    ValueId down = graph_parameter(graph, "down.w", matrix(hidden, inner));
    assert_ok(graph_gemm(graph, "up", x, up, false, &x));
    assert_ok(graph_gelu(graph, "gelu", x, &x));
    assert_ok(graph_gemm(graph, "down", x, down, false, &x));
    assert_ok(graph_output(graph, "y", x));
}

static char *recipes_text(const Graph *graph, const Recipe *recipes, uint32_t count)
{
    json_t *all = json_array();
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(all, recipe_to_json(graph, &recipes[i]));
    char *text = json_dumps(all, JSON_SORT_KEYS);
    json_decref(all);
    return text;
}

static void same_for_any_number_of_threads(void **state)
{
    (void)state;
    for (uint32_t once = 0; once < 2; once++) {
        Arena arena = {0};
        Graph graph;
        char *first = NULL;
        mlp(&graph, &arena, 60, 256, 512);
        for (unsigned threads = 1; threads <= 3; threads++) {
            Pool *pool = pool_create(threads);
            PlanOptions options = {.tiles = 96,
                                   .precision = {.kind = F16},
                                   .pairs = true,
                                   .weights_once = once,
                                   .io_row_major = once};
            Recipe *recipes;
            uint32_t count;
            assert_ok(plan_search(&arena, &graph, &options, pool, &recipes, &count));
            char *text = recipes_text(&graph, recipes, count);
            if (first)
                assert_string_equal(first, text);
            else
                first = text;
            if (text != first)
                free(text);
            pool_destroy(pool);
        }
        free(first);
        graph_free(&graph);
        arena_free(&arena);
    }
}

static bool no_more(const PlanFigures *a, const PlanFigures *b)
{
    return a->cycles <= b->cycles && a->standard <= b->standard &&
           a->interleaved <= b->interleaved && a->largest <= b->largest &&
           a->row_bytes <= b->row_bytes;
}

static void frontier(void **state)
{
    (void)state;
    Arena arena = {0};
    Graph graph;
    PlanReport report = {0};
    PlanOptions options = {
        .tiles = 96, .precision = {.kind = F16}, .weights_once = true, .report = &report};
    Recipe *recipes;
    uint32_t count;
    mlp(&graph, &arena, 60, 256, 512);
    assert_ok(plan_search(&arena, &graph, &options, NULL, &recipes, &count));
    assert_int_equal(report.op_count, 2);
    for (uint32_t o = 0; o < report.op_count; o++) {
        const FrontierOp *op = &report.ops[o];
        assert_true(op->count > 3 && op->count <= op->retained);
        assert_true(op->retained <= op->priced && op->grids > 20);
        assert_true(op->first + op->count <= report.point_count);
        for (uint32_t i = op->first; i < op->first + op->count; i++)
            for (uint32_t k = op->first; k < op->first + op->count; k++) {
                const FrontierPoint *a = &report.points[i], *b = &report.points[k];
                assert_int_equal(a->op, op->op);
                if (i != k && strcmp(a->boundary, b->boundary) == 0)
                    assert_false(no_more(&a->figures, &b->figures));
            }
    }
    graph_free(&graph);
    arena_free(&arena);
}

/* A wider search may only find something better. */
static void wider_is_not_worse(void **state)
{
    (void)state;
    Arena arena = {0};
    Graph graph;
    Recipe *narrow, *wide;
    uint32_t count;
    PlanOptions options = {.tiles = 96, .precision = {.kind = F16}, .weights_once = true};
    mlp(&graph, &arena, 60, 256, 512);
    options.beam = 2;
    assert_ok(plan_search(&arena, &graph, &options, NULL, &narrow, &count));
    options.beam = 100;
    assert_ok(plan_search(&arena, &graph, &options, NULL, &wide, &count));
    assert_true(wide->predicted_cycles <= narrow->predicted_cycles);
    graph_free(&graph);
    arena_free(&arena);
}

static void finalists(void **state)
{
    (void)state;
    Arena arena = {0};
    Graph graph;
    Pool *pool = pool_create(2);
    CompileOptions options = {.plan = {.tiles = 96, .precision = {.kind = F16}, .pairs = true}};
    Compilation c;
    mlp(&graph, &arena, 60, 256, 512);
    assert_ok(compile(&graph, &options, pool, STAGE_EXCHANGE, &c));
    const Finalist *winner = &c.finalists[c.chosen];
    assert_true(c.finalist_count > 1 && winner->priced > 0);
    assert_true(winner->priced == c.price.cycles && winner->recipe == c.recipe);
    assert_true(c.recipe->predicted_cycles == c.price.cycles);
    assert_true(winner->figures.standard > 0 && winner->figures.row_bytes > 0);
    for (uint32_t i = 0; i < c.finalist_count; i++)
        assert_true(c.finalists[i].priced <= 0 || c.finalists[i].priced >= winner->priced);

    json_t *report = search_report_json(&c);
    Text text = {0};
    search_report_print(&text, report, NULL);
    assert_non_null(strstr(text_string(&text), "frontier of the products"));
    assert_non_null(strstr(text_string(&text), "chosen: "));
    text_free(&text);
    json_decref(report);

    /* followed again, the recipe gives the same program */
    json_t *json = recipe_to_json(&graph, c.recipe);
    char *recipe = json_dumps(json, 0);
    Compilation again;
    options.recipe = recipe;
    options.recipe_name = "recipe";
    assert_ok(compile(&graph, &options, pool, STAGE_EXCHANGE, &again));
    assert_true(again.price.cycles == c.price.cycles);
    compilation_free(&again);
    free(recipe);
    json_decref(json);
    compilation_free(&c);
    pool_destroy(pool);
    graph_free(&graph);
    arena_free(&arena);
}

/* What a damaged recipe file carries along as its search must not hurt the printer. */
static void odd_reports(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "null",
        "3",
        "[]",
        "{}",
        "{\"products\": 1, \"finalists\": \"x\", \"why\": 2}",
        "{\"products\": [1, {}, {\"operation\": 5, \"frontier\": [[], {}, {\"grid\": 7}]}]}",
        "{\"finalists\": [{}, 3, {\"products\": {\"a\": 1, \"b\": [], \"c\": null, \"d\": \"e\"}},"
        " {\"failure\": \"f\", \"rank\": \"g\", \"pricedCycles\": -1e300}]}"};
    for (size_t i = 0; i < countof(texts); i++) {
        json_t *report = json_loads(texts[i], JSON_DECODE_ANY, NULL);
        Text text = {0};
        assert_non_null(report);
        search_report_print(&text, report, NULL);
        text_free(&text);
        json_decref(report);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_for_any_number_of_threads),
                                       cmocka_unit_test(frontier),
                                       cmocka_unit_test(wider_is_not_worse),
                                       cmocka_unit_test(finalists), cmocka_unit_test(odd_reports)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
