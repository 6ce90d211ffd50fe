/* libraries: tile */
/* Mid programs: what the checker refuses, what the rewrites do; tile programs: what theirs refuses;
 * recipes with a damaged byte end in an error or in a good program, never elsewhere. */
#include "check.h"
#include "tile/tile.h"

#include <string.h>

static Shape shape2(uint32_t a, uint32_t b)
{
    return (Shape){.rank = 2, .extent = {a, b}};
}

static Shape shape3(uint32_t a, uint32_t b, uint32_t c)
{
    return (Shape){.rank = 3, .extent = {a, b, c}};
}

typedef struct Built {
    Arena arena;
    Graph graph;
    Recipe *recipe;
    Mid mid;
} Built;

/* Three products of one left operand, two independent chains, a repeat with a carried value. */
static void make(Built *b, uint32_t tiles)
{
    memset(b, 0, sizeof *b);
    Graph *g = &b->graph;
    graph_init(g, &b->arena);
    ValueId x = graph_input(g, "x", shape3(1, 5, 64)), z = graph_input(g, "z", shape3(1, 5, 64));
    ValueId y[3], members[2];
    static const char *const keys[3] = {"a", "b", "c"}, *const names[3] = {"wa", "wb", "wc"};
    ValueId scale = graph_parameter(g, "scale", shape3(1, 1, 64));
    ValueId bias = graph_parameter(g, "bias", shape3(1, 1, 64));
    for (uint32_t i = 0; i < 3; i++)
        assert_ok(
            graph_gemm(g, keys[i], x, graph_parameter(g, names[i], shape2(64, 64)), false, &y[i]));
    assert_ok(graph_add(g, "sum", y[0], y[1], &y[0]));
    assert_ok(graph_layer_norm(g, "norm1", y[0], scale, bias, 1e-6f, &y[0]));
    assert_ok(graph_layer_norm(g, "norm2", z, scale, bias, 1e-6f, &y[1]));
    assert_ok(graph_gemm(g, "d", y[1], graph_parameter(g, "wd", shape2(64, 64)), false, &y[1]));
    assert_ok(graph_add(g, "sum2", y[0], y[1], &y[0]));
    assert_ok(graph_add(g, "sum3", y[0], y[2], &y[0]));
    members[0] = graph_parameter(g, "m0", shape2(64, 64));
    members[1] = graph_parameter(g, "m1", shape2(64, 64));
    uint32_t sequence = graph_sequence(g, "m", members, 2);
    const ValueId *arguments, *results;
    assert_ok(graph_begin_repeat(g, "repeat", 2, y, 1, &sequence, 1, &arguments));
    assert_ok(graph_gemm(g, "e", arguments[0], arguments[1], false, &y[1]));
    assert_ok(graph_add(g, "f", arguments[0], y[1], &y[1]));
    assert_ok(graph_end_repeat(g, &y[1], &results));
    assert_ok(graph_output(g, "out", results[0]));
    PlanOptions options = {.tiles = tiles, .precision = {.kind = F16}};
    uint32_t count;
    assert_ok(plan_search(&b->arena, g, &options, NULL, &b->recipe, &count));
    assert_ok(mid_lower(&b->arena, g, b->recipe, &b->mid));
    assert_ok(mid_check(&b->mid));
}

static void drop(Built *b)
{
    mid_free(&b->mid);
    graph_free(&b->graph);
    arena_free(&b->arena);
}

static uint32_t phases_of(const Mid *mid)
{
    uint32_t count = 0, last = 0xffffffffu;
    for (size_t i = 0; i < mid->ops.count; i++) {
        const MidOp *op = &mid->ops.items[i];
        count += op->kind == MID_COPY && op->phase != last;
        if (op->kind == MID_COPY)
            last = op->phase;
    }
    return count;
}

static void rewrites(void **state)
{
    (void)state;
    for (uint32_t tiles = 4; tiles <= 64; tiles *= 2) {
        Built b;
        make(&b, tiles);
        uint32_t before = phases_of(&b.mid), copies = 0;
        uint32_t grouped = mid_group_exchanges(&b.mid), after = phases_of(&b.mid);
        assert_ok(mid_check(&b.mid));
        assert_int_equal(mid_group_exchanges(&b.mid), 0); /* nothing is left to group */
        assert_ok(mid_check(&b.mid));
        uint32_t merged = mid_merge_copies(&b.mid), removed = mid_eliminate(&b.mid);
        assert_ok(mid_check(&b.mid));
        for (size_t i = 0; i < b.mid.ops.count; i++)
            copies += b.mid.ops.items[i].kind == MID_COPY;
        print_message(
            "%u tiles: %u phases, %u grouped; %u copies merged, %u left, %u ops removed\n", tiles,
            before, grouped, merged, copies, removed);
        assert_true(after <= before && grouped == before - after);
        if (tiles == 64)
            assert_true(grouped > 0); /* norm2 and d wait for nothing */
        drop(&b);
    }
}

/* Copies of one source to one format are made once. */
static void merging(void **state)
{
    (void)state;
    Built b;
    make(&b, 16);
    size_t first = 0;
    while (b.mid.ops.items[first].kind != MID_COPY)
        first++;
    MidOp twin = b.mid.ops.items[first];
    MidValue value = b.mid.values.items[twin.results[0]];
    array_push(&b.mid.values, value);
    twin.results[0] = (MidId)(b.mid.values.count - 1);
    MidOp last = b.mid.ops.items[b.mid.ops.count - 1];
    array_push(&b.mid.ops, last);
    for (size_t i = b.mid.ops.count - 1; i > first + 1; i--)
        b.mid.ops.items[i] = b.mid.ops.items[i - 1];
    b.mid.ops.items[first + 1] = twin;
    assert_ok(mid_check(&b.mid));
    size_t ops = b.mid.ops.count;
    Mid copy = b.mid;
    uint32_t merged = mid_merge_copies(&copy);
    assert_true(merged >= 1);
    assert_true(copy.ops.count == ops - merged);
    b.mid = copy;
    assert_ok(mid_check(&b.mid));
    drop(&b);
}

static void unused(void **state)
{
    (void)state;
    Built b;
    make(&b, 16);
    mid_eliminate(&b.mid);
    size_t ops = b.mid.ops.count;
    size_t first = 0;
    while (b.mid.ops.items[first].kind != MID_COPY)
        first++;
    MidOp copy = b.mid.ops.items[first];
    MidValue value = b.mid.values.items[copy.results[0]];
    value.storage = MID_NONE;
    value.slot = 0;
    array_push(&b.mid.values, value);
    copy.results[0] = (MidId)(b.mid.values.count - 1);
    copy.phase = 100000;
    array_push(&b.mid.ops, copy);
    assert_int_equal(mid_eliminate(&b.mid), 1);
    assert_int_equal(b.mid.ops.count, ops);
    drop(&b);
}

static void refused(const Mid *mid, const char *what)
{
    Status status = mid_check(mid);
    if (status_ok(status))
        fail_msg("accepted: %s", what);
    status_free(status);
}

static void mid_errors(void **state)
{
    (void)state;
    Built b;
    make(&b, 16);
    size_t repeat = 0, copy = 0, n = b.mid.ops.count;
    while (b.mid.ops.items[repeat].kind != MID_REPEAT)
        repeat++;
    while (b.mid.ops.items[copy].kind != MID_COPY)
        copy++;
    MidOp saved = b.mid.ops.items[copy];
    b.mid.ops.items[copy].operands[0] = (MidId)b.mid.values.count;
    refused(&b.mid, "an operand that does not exist");
    b.mid.ops.items[copy] = saved;
    b.mid.ops.items[copy].operands[0] = b.mid.ops.items[n - 1].results[0];
    refused(&b.mid, "a read before the write");
    b.mid.ops.items[copy] = saved;
    b.mid.ops.items[copy].mapping.source_rank++;
    refused(&b.mid, "a mapping of another rank");
    b.mid.ops.items[copy] = saved;
    b.mid.ops.count = n - 1;
    refused(&b.mid, "a repeat without end");
    b.mid.ops.count = n;
    for (size_t i = 0; i < b.mid.values.count; i++) {
        MidValue *v = &b.mid.values.items[i];
        MidValue old = *v;
        v->storage = (MidId)i;
        refused(&b.mid, "a value that is its own storage");
        *v = old;
        v->type.format.first_tile = 16;
        refused(&b.mid, "tiles beyond the last");
        *v = old;
    }
    assert_ok(mid_check(&b.mid));

    /* The carried memory is overwritten and then read again. */
    MidOp *end = &b.mid.ops.items[n - 1];
    MidId carried = b.mid.ops.items[repeat].results[0], last = end->operands[0];
    assert_int_equal(end->kind, MID_END_REPEAT);
    end->operands[0] = carried;
    if (last != carried)
        refused(&b.mid, "an overwritten value handed on");
    drop(&b);
}

/* ---- tile programs ---- */

static void tile_refused(const TileProgram *program, const char *what)
{
    Status status = tile_check(program);
    if (status_ok(status))
        fail_msg("accepted: %s", what);
    status_free(status);
}

static void tile_errors(void **state)
{
    (void)state;
    Built b;
    TileProgram p;
    make(&b, 16);
    assert_ok(tile_expand(&b.arena, &b.mid, &p));
    assert_ok(tile_check(&p));
    assert_true(p.phases.count > 0 && p.classes.count > 0);
    ExchangePhase *phase = &p.phases.items[0];
    Transfer saved = phase->transfers[0];
    phase->transfers[0].words += 1u << 20;
    tile_refused(&p, "a transfer beyond its buffer");
    phase->transfers[0] = saved;
    phase->transfers[0].source.at.offset += 2;
    tile_refused(&p, "a transfer within a word");
    phase->transfers[0] = saved;
    phase->transfers[0].words = 0;
    tile_refused(&p, "an empty transfer");
    phase->transfers[0] = saved;
    Endpoint to = phase->receivers[saved.first_receiver];
    phase->receivers[saved.first_receiver] = saved.source;
    tile_refused(&p, "a tile that sends to itself");
    phase->receivers[saved.first_receiver] = to;
    CallClass class = p.classes.items[0];
    p.classes.items[0].operands[1].offset += 1u << 24;
    tile_refused(&p, "an operand beyond its buffer");
    p.classes.items[0] = class;
    p.classes.items[0].operands[0].buffer = (uint32_t)p.buffers.count;
    tile_refused(&p, "a buffer that does not exist");
    p.classes.items[0] = class;
    TileRange range = class.ranges[0];
    class.ranges[0].last = 16;
    tile_refused(&p, "a tile beyond the last");
    class.ranges[0] = range;
    for (size_t i = 0; i < p.steps.count; i++)
        if (p.steps.items[i].kind == STEP_END_REPEAT) {
            p.steps.items[i].kind = STEP_REPEAT;
            tile_refused(&p, "nested repeats");
            p.steps.items[i].kind = STEP_END_REPEAT;
        }
    assert_ok(tile_check(&p));
    tile_free(&p);
    drop(&b);
}

static void printers(void **state)
{
    (void)state;
    Built b;
    TileProgram p;
    Text text = {0}, part = {0};
    make(&b, 16);
    mid_print(&text, &b.mid, NULL);
    Map only = {0};
    map_at_text(&only, "norm2", NULL);
    mid_print(&part, &b.mid, &only);
    assert_true(part.count > 0 && part.count < text.count);
    assert_non_null(strstr(text_string(&text), "repeat: repeat 2 times"));
    assert_null(strstr(text_string(&part), "norm1"));
    assert_ok(tile_expand(&b.arena, &b.mid, &p));
    text.count = part.count = 0;
    tile_print(&text, &p, NULL, -1);
    tile_print(&part, &p, NULL, 3);
    assert_true(part.count > 0 && part.count < text.count);
    part.count = 0;
    tile_print(&part, &p, &only, -1);
    assert_non_null(strstr(text_string(&part), "norm2"));
    assert_null(strstr(text_string(&part), "norm1"));
    json_t *jsons[] = {mid_to_json(&b.mid, NULL), mid_to_json(&b.mid, &only),
                       tile_to_json(&p, NULL, -1), tile_to_json(&p, NULL, 3),
                       tile_to_json(&p, &only, -1)};
    json_t *step, *steps = json_object_get(jsons[4], "steps");
    size_t k;
    assert_true(json_array_size(steps) > 0);
    json_array_foreach(steps, k, step)
        assert_string_equal(json_string_value(json_object_get(step, "operation")), "norm2");
    map_free(&only);
    for (size_t i = 0; i < countof(jsons); i++) {
        assert_non_null(jsons[i]);
        json_decref(jsons[i]);
    }
    text_free(&text);
    text_free(&part);
    tile_free(&p);
    drop(&b);
}

/* ---- damaged recipes ---- */

static void lower_damaged(Built *b, const Recipe *recipe, size_t ends[3])
{
    Mid mid;
    TileProgram program;
    if (status_discard(mid_lower(&b->arena, &b->graph, recipe, &mid))) {
        ends[0]++;
        return;
    }
    if (status_discard(mid_check(&mid)) || status_discard(tile_expand(&b->arena, &mid, &program))) {
        ends[1]++;
    } else {
        ends[2]++;
        assert_ok(tile_check(&program));
        tile_free(&program);
    }
    mid_free(&mid);
}

static void damaged_recipes(void **state)
{
    (void)state;
    Built b;
    make(&b, 16);
    json_t *json = recipe_to_json(&b.graph, b.recipe);
    char *text = json_dumps(json, JSON_COMPACT);
    size_t length = strlen(text), ends[3] = {0};
    json_decref(json);
    for (size_t at = 0; at < length; at++) { /* every number, changed twice */
        char old = text[at];
        for (int step = 1; step < 6 && old >= '0' && old <= '9'; step += 4) {
            text[at] = (char)('0' + (old - '0' + step) % 10);
            JsonPlace place;
            Recipe recipe;
            if (status_discard(json_open(&b.arena, "recipe", text, length, &place)))
                continue;
            if (!status_discard(recipe_from_json(&b.arena, &place, &b.graph, &recipe)))
                lower_damaged(&b, &recipe, ends);
            json_close(&place);
        }
        text[at] = old;
    }
    print_message("accepted recipes: %zu do not lower, %zu are refused later, %zu are programs\n",
                  ends[0], ends[1], ends[2]);
    assert_true(ends[2] > 0);
    free(text);
    drop(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rewrites),       cmocka_unit_test(merging),     cmocka_unit_test(unused),
        cmocka_unit_test(mid_errors),     cmocka_unit_test(tile_errors), cmocka_unit_test(printers),
        cmocka_unit_test(damaged_recipes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
