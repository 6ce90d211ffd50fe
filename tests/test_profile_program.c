/* libraries: profile */
/* Costs of a compiled program and the comparison of two: figures that must add up whichever way
 * they are summed, and that agree with what the parts say by themselves. */
#include "check.h"

#include "profile/profile.h"

#include <stdlib.h>
#include <string.h>

typedef struct Built {
    Arena arena;
    Model model;
    Graph graph;
    Pool *pool;
    Compilation compilation;
} Built;

static void build(Built *b, uint32_t tiles)
{
    *b = (Built){.pool = pool_create(2)};
    assert_ok(model_open(&b->arena, SOURCE_DIR "/models/digits-vit.json", &b->model));
    graph_init(&b->graph, &b->arena);
    assert_ok(model_graph(&b->model, &b->graph));
    CompileOptions options = {.model = &b->model,
                              .plan = {.tiles = tiles, .precision = {.kind = F16}, .pairs = true}};
    assert_ok(compile(&b->graph, &options, b->pool, STAGE_MEMORY, &b->compilation));
}

static void drop(Built *b)
{
    compilation_free(&b->compilation);
    graph_free(&b->graph);
    pool_destroy(b->pool);
    arena_free(&b->arena);
}

static void costs_of_steps(void **state)
{
    (void)state;
    Built b;
    build(&b, 32);
    const Compilation *c = &b.compilation;
    size_t count;
    const StepCost *costs = step_costs(c, &b.arena, -1, &count);
    assert_int_equal(count, c->program.steps.count);
    uint32_t exchanges = 0, repeated = 0;
    for (size_t s = 0; s < count; s++) {
        const StepCost *cost = &costs[s];
        if (cost->kind == STEP_EXCHANGE) {
            const PhaseSchedule *schedule = &c->schedule.phases[cost->phase];
            uint32_t row = 0;
            for (uint32_t t = 0; t < c->program.tiles; t++)
                row = max_u32(row, 4 * schedule->row_words[t]);
            assert_int_equal(cost->row_bytes, row);
            assert_int_equal(cost->cycles, schedule->horizon + target_boundary_cost());
            exchanges++;
        } else {
            assert_int_equal(cost->exchange_cycles, 0);
            assert_int_equal(cost->row_bytes, 0);
        }
        assert_true(cost->standard + cost->interleaved <= SRAM_BYTES);
        repeated += cost->times == 3;
    }
    assert_int_equal(exchanges, c->program.phases.count);
    assert_true(repeated > 10); /* the encoder's layers */
    /* no tile is slower or fuller than the whole says */
    for (uint32_t t = 0; t < c->program.tiles; t++) {
        const StepCost *own = step_costs(c, &b.arena, (int32_t)t, &count);
        uint32_t peak = compiled_peak(c, t, -1, -1, NULL), most = 0;
        for (size_t s = 0; s < count; s++) {
            assert_true(own[s].cycles <= costs[s].cycles);
            assert_true(own[s].standard + own[s].interleaved <=
                        costs[s].standard + costs[s].interleaved);
            most = max_u32(most, own[s].standard + own[s].interleaved);
        }
        assert_int_equal(most, peak);
    }
    drop(&b);
}

static int64_t sum(const SummaryList *list, int figure)
{
    int64_t total = 0;
    for (size_t i = 0; i < list->count; i++)
        total += list->items[i].figure[figure];
    return total;
}

static void comparison(void **state)
{
    (void)state;
    Built a, b;
    build(&a, 32);
    build(&b, 16);
    ProgramSummary before, after;
    program_summary(&a.compilation, NULL, -1, &before);
    program_summary(&b.compilation, NULL, -1, &after);
    assert_int_equal(before.step_cycles, sum(&before.lists[SUMMARY_OPERATIONS], 0));
    assert_int_equal(before.step_cycles, sum(&before.lists[SUMMARY_KERNELS], 0));
    assert_true(before.step_cycles >= before.cycles - 1000); /* loops and start-up are no steps */
    assert_int_equal(before.exchange_cycles, sum(&before.lists[SUMMARY_OPERATIONS], 1));
    assert_int_equal(sum(&before.lists[SUMMARY_OPERATIONS], 2),
                     sum(&before.lists[SUMMARY_KERNELS], 2));

    json_t *json = program_difference_json(&before, &after), *item;
    json_int_t change = 0;
    size_t i;
    json_array_foreach(json_object_get(json, "operations"), i, item) change +=
        json_integer_value(json_object_get(item, "change"));
    assert_int_equal(change, after.step_cycles - before.step_cycles);
    json_decref(json);
    /* the other way round: the same changes with the other sign */
    json = program_difference_json(&after, &before);
    change = 0;
    json_array_foreach(json_object_get(json, "kernels"), i, item) change +=
        json_integer_value(json_object_get(item, "change"));
    assert_int_equal(change, before.step_cycles - after.step_cycles);
    json_decref(json);

    Text text = {0};
    program_difference_print(&text, &before, &before);
    assert_non_null(strstr(text_string(&text), "the same"));
    assert_null(strstr(text_string(&text), "%"));
    text_free(&text);
    program_summary_free(&before);
    program_summary_free(&after);
    drop(&a);
    drop(&b);
}

static void narrowed(void **state)
{
    (void)state;
    Built b;
    build(&b, 32);
    Map only = {0};
    map_at_text(&only, "map/mlp/down", NULL);
    ProgramSummary part;
    program_summary(&b.compilation, &only, -1, &part);
    assert_int_equal(part.lists[SUMMARY_OPERATIONS].count, 1);
    assert_string_equal(part.lists[SUMMARY_OPERATIONS].items[0].name, "map/mlp/down");
    program_summary_free(&part);
    json_t *memory = memory_report_json(&b.compilation, &only, 0), *item;
    size_t i;
    json_t *tiles = json_object_get(memory, "tiles");
    assert_int_equal(json_array_size(tiles), 1);
    json_t *names = json_object_get(memory, "names");
    json_array_foreach(json_object_get(json_array_get(tiles, 0), "items"), i, item)
    {
        size_t name = (size_t)json_integer_value(json_array_get(item, 0));
        assert_null(strstr(json_string_value(json_array_get(names, name)), "head"));
    }
    json_decref(memory);
    map_free(&only);
    drop(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(costs_of_steps),
                                       cmocka_unit_test(comparison), cmocka_unit_test(narrowed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
