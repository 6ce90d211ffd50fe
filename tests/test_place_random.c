/* libraries: place */
/* test_place_random.c - random programs of copies are placed and proven, uniform and per tile; what
 * can not fit says tile, class and bytes. */
#include "check.h"

#include "place/place.h"

#include <string.h>

typedef struct Case { /* a program, made by hand */
    Arena arena;
    TileProgram program;
    Schedule schedule;
    Sizes sizes;
    uint32_t code_bytes[TILES];
} Case;

static uint32_t random_below(uint64_t *state, uint32_t limit)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((*state >> 33) % limit);
}

static uint32_t add_buffer(Case *c, const char *name, uint32_t bytes, MemoryClass class)
{
    Buffer buffer = {.name = name,
                     .memory_class = (uint8_t) class,
                     .align = 8,
                     .members = 1,
                     .alias = BUFFER_NONE,
                     .value = 0xffffffff,
                     .bytes = arena_array(&c->arena, uint32_t, c->program.tiles)};
    for (uint32_t t = 0; t < c->program.tiles; t++)
        buffer.bytes[t] = bytes;
    array_push(&c->program.buffers, buffer);
    return (uint32_t)c->program.buffers.count - 1;
}

static void add_copy_step(Case *c, uint32_t tile, uint32_t out, uint32_t in)
{
    Step step = {.kind = STEP_COPY,
                 .operation = "copy",
                 .first = (uint32_t)c->program.copies.count,
                 .count = 1};
    LocalCopy copy = {.tile = tile,
                      .out = {out, 0},
                      .in = {in, 0},
                      .rows = 1,
                      .row_bytes = 8,
                      .out_pitch = 8,
                      .in_pitch = 8};
    array_push(&c->program.copies, copy);
    array_push(&c->program.steps, step);
}

static void case_begin(Case *c, uint32_t tiles)
{
    memset(c, 0, sizeof *c);
    c->program.tiles = tiles;
    c->sizes = (Sizes){.linked_end = 0x4e000, .code_bytes = c->code_bytes, .idle_code_bytes = 100};
    for (uint32_t t = 0; t < tiles; t++)
        c->code_bytes[t] = 1000 + t;
}

static void case_end(Case *c)
{
    array_free(&c->program.buffers);
    array_free(&c->program.steps);
    array_free(&c->program.copies);
    array_free(&c->schedule.constraints);
    arena_free(&c->arena);
}

static void random_programs_are_placed(void **state)
{
    (void)state;
    Pool *pool = pool_create(2);
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint64_t random = seed;
        Case c;
        case_begin(&c, 1 + random_below(&random, 5));
        uint32_t buffers = 5 + random_below(&random, 40);
        for (uint32_t b = 0; b < buffers; b++) {
            uint32_t id =
                add_buffer(&c, "b", 8 + 8 * random_below(&random, 1500),
                           random_below(&random, 3) ? MEMORY_STANDARD : MEMORY_INTERLEAVED);
            for (uint32_t t = 0; t < c.program.tiles; t++)
                if (random_below(&random, 4) == 0)
                    c.program.buffers.items[id].bytes[t] = 0;
            c.program.buffers.items[id].resident = random_below(&random, 8) == 0;
        }
        for (uint32_t s = 0; s < 60; s++) {
            uint32_t tile = random_below(&random, c.program.tiles);
            uint32_t a = random_below(&random, buffers), b = random_below(&random, buffers);
            if (c.program.buffers.items[a].bytes[tile] && c.program.buffers.items[b].bytes[tile])
                add_copy_step(&c, tile, a, b);
        }
        for (uint32_t s = 0; s < 6; s++) {
            uint32_t tile = random_below(&random, c.program.tiles);
            uint32_t a = random_below(&random, buffers), b = random_below(&random, buffers);
            Constraint constraint = {CONSTRAINT_SEPARATE, tile, a, tile, b, 0};
            array_push(&c.schedule.constraints, constraint);
        }
        Placement placement;
        assert_ok(place(&c.arena, &c.program, &c.schedule, &c.sizes, pool, &placement));
        assert_ok(place_check(&c.program, &c.schedule, &c.sizes, &placement));
        case_end(&c);
    }
    pool_destroy(pool);
}

/* Tiles of very different needs: no uniform layout exists, each tile alone fits. */
static void uneven_tiles_fall_back(void **state)
{
    (void)state;
    Pool *pool = pool_create(1);
    Case c;
    case_begin(&c, 3);
    uint32_t ids[6];
    for (uint32_t i = 0; i < 6; i++)
        ids[i] = add_buffer(&c, "uneven", 1000, MEMORY_STANDARD);
    for (uint32_t i = 0; i < 6; i++)
        c.program.buffers.items[ids[i]].bytes[i % 3] = 150000;
    for (uint32_t t = 0; t < 3; t++)
        for (uint32_t i = 0; i < 6; i++)
            for (uint32_t j = 0; j < i; j++)
                add_copy_step(&c, t, ids[i], ids[j]);
    Placement placement;
    assert_ok(place(&c.arena, &c.program, &c.schedule, &c.sizes, pool, &placement));
    assert_ok(place_check(&c.program, &c.schedule, &c.sizes, &placement));
    case_end(&c);
    pool_destroy(pool);
}

/* A standard buffer larger than what is left of either region lies across their border. */
static void large_buffer_crosses_the_border(void **state)
{
    (void)state;
    Pool *pool = pool_create(1);
    Case c;
    case_begin(&c, 2);
    uint32_t large = add_buffer(&c, "large", 313344, MEMORY_STANDARD);
    uint32_t others[] = {add_buffer(&c, "first", 100000, MEMORY_INTERLEAVED),
                         add_buffer(&c, "second", 60000, MEMORY_INTERLEAVED)};
    for (uint32_t t = 0; t < 2; t++) {
        add_copy_step(&c, t, large, others[0]);
        add_copy_step(&c, t, large, others[1]);
        add_copy_step(&c, t, others[1], others[0]);
    }
    Placement placement;
    assert_ok(place(&c.arena, &c.program, &c.schedule, &c.sizes, pool, &placement));
    assert_ok(place_check(&c.program, &c.schedule, &c.sizes, &placement));
    uint32_t at = placement_address(&placement, 0, large);
    assert_true(at < INTERLEAVED_BASE && at + 313344 > INTERLEAVED_BASE);
    case_end(&c);
    pool_destroy(pool);
}

static void what_does_not_fit_is_named(void **state)
{
    (void)state;
    Pool *pool = pool_create(1);
    Case c;
    case_begin(&c, 2);
    uint32_t a = add_buffer(&c, "first", 300000, MEMORY_INTERLEAVED);
    uint32_t b = add_buffer(&c, "second", 200000, MEMORY_INTERLEAVED);
    add_copy_step(&c, 0, a, b);
    Placement placement;
    Status status = place(&c.arena, &c.program, &c.schedule, &c.sizes, pool, &placement);
    assert_false(status_ok(status));
    assert_non_null(strstr(status_message(status), "tile 0: no room for second: 200000 bytes of "
                                                   "interleaved"));
    status_free(status);
    case_end(&c);
    pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs_are_placed),
        cmocka_unit_test(uneven_tiles_fall_back),
        cmocka_unit_test(large_buffer_crosses_the_border),
        cmocka_unit_test(what_does_not_fit_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
