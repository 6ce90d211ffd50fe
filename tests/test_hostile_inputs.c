/* libraries: exchange */
/* Damaged recipes and transfer lists: an error or something sound, never a crash. The other readers
 * have their own: packages, profiles, models, pictures, tensors, assembly, objects. */
#include "check.h"

#include "exchange/exchange.h"
#include "hostile.h"

#include <stdlib.h>
#include <string.h>

static void damage(Hostile *hostile, Text *damaged, const char *good)
{
    damaged->count = 0;
    text_append(damaged, good);
    hostile_damage(hostile, damaged);
    text_append(damaged, ""); /* a zero behind the end */
}

/* A number becomes another one: what still reads, and must be refused by what it means. */
static void replace_number(Hostile *hostile, Text *out, const char *good)
{
    static const char *const nasty[] = {"0",     "1",          "2",   "-1",  "7",  "16",
                                        "65535", "4294967295", "1e9", "1.5", "31", "1472"};
    size_t length = strlen(good), at = hostile_random(hostile, (uint32_t)length);
    while (at < length && (good[at] < '0' || good[at] > '9'))
        at++;
    while (at > 0 && good[at - 1] >= '0' && good[at - 1] <= '9')
        at--;
    out->count = 0;
    array_append(out, good, at);
    text_append(out, nasty[hostile_random(hostile, countof(nasty))]);
    text_append(out, good + at + strspn(good + at, "0123456789"));
}

static char *make_recipe(Arena *arena, Graph *graph)
{
    ValueId y, norm, z;
    graph_init(graph, arena);
    ValueId x = graph_input(graph, "x", (Shape){3, {1, 8, 32}});
    ValueId w = graph_parameter(graph, "w", (Shape){2, {32, 48}});
    ValueId bias = graph_parameter(graph, "b", (Shape){3, {1, 1, 48}});
    ValueId scale = graph_parameter(graph, "s", (Shape){3, {1, 1, 48}});
    ValueId shift = graph_parameter(graph, "t", (Shape){3, {1, 1, 48}});
    assert_ok(graph_gemm(graph, "up", x, w, false, &y));
    assert_ok(graph_add(graph, "up/bias", y, bias, &y));
    assert_ok(graph_layer_norm(graph, "norm", y, scale, shift, 1e-6f, &norm));
    assert_ok(graph_gelu(graph, "gelu", norm, &z));
    assert_ok(graph_output(graph, "z", z));
    Pool *pool = pool_create(1);
    Recipe *recipe;
    uint32_t count;
    PlanOptions options = {.tiles = 8, .precision = {.kind = F16}, .pairs = true};
    assert_ok(plan_search(arena, graph, &options, pool, &recipe, &count));
    pool_destroy(pool);
    json_t *json = recipe_to_json(graph, recipe);
    char *text = json_dumps(json, JSON_COMPACT | JSON_PRESERVE_ORDER);
    json_decref(json);
    assert_non_null(text);
    return text;
}

static void recipes(void **state)
{
    (void)state;
    Arena arena = {0};
    Graph graph;
    char *good = make_recipe(&arena, &graph);
    Text text = {0};
    uint32_t parsed = 0, sound = 0;
    for (Hostile hostile = hostile_begin(4000); hostile_more(&hostile);) {
        Arena own = {0};
        JsonPlace place;
        Recipe recipe;
        if (hostile_random(&hostile, 2))
            damage(&hostile, &text, good);
        else
            replace_number(&hostile, &text, good);
        if (!status_discard(json_open(&own, "damaged", text.items, text.count, &place))) {
            parsed++;
            if (!status_discard(recipe_from_json(&own, &place, &graph, &recipe))) {
                Mid mid;
                sound++;
                if (!status_discard(mid_lower(&own, &graph, &recipe, &mid)))
                    mid_free(&mid);
            }
            json_close(&place);
        }
        arena_free(&own);
    }
    print_message("recipes: %u still JSON, %u still recipes\n", parsed, sound);
    assert_true(parsed > sound && sound > 0);
    text_free(&text);
    free(good);
    graph_free(&graph);
    arena_free(&arena);
}

static void transfers(void **state)
{
    (void)state;
    static const char good[] = "# source, words, receivers\n0\t10\t1,2\n\n5\t3\t1471\n"
                               "17\t64\t18,19,20\r\n20\t1\t17\n64\t4\t0,1,2,3\n";
    Text text = {0};
    Pool *pool = pool_create(1);
    uint32_t read = 0, refused = 0;
    for (Hostile hostile = hostile_begin(3000); hostile_more(&hostile);) {
        Arena own = {0};
        TileProgram program;
        damage(&hostile, &text, good);
        if (status_discard(exchange_pattern_read(&own, "damaged", text.items, &program))) {
            refused++;
            arena_free(&own);
            continue;
        }
        read++;
        assert_ok(tile_check(&program));
        Schedule schedule;
        if (read % 16 == 0) { /* what is read can be scheduled */
            assert_ok(exchange_schedule(&own, &program, &(ScheduleOptions){.pairs = true}, pool,
                                        &schedule));
            schedule_free(&schedule);
        }
        tile_free(&program);
        arena_free(&own);
    }
    print_message("transfers: %u read, %u refused\n", read, refused);
    assert_true(read > 0 && refused > 0);
    pool_destroy(pool);
    text_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(recipes), cmocka_unit_test(transfers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
