/* libraries: exchange sim */
/* test_exchange_stress.c - random phases of messages to complete pairs and to single tiles, short
 * and long: 64-bit and 32-bit receives meet on one tile in every way. */
#include "check.h"

#include "exchange_device.h"

enum { SEEDS = 200, TARGET_BYTES = 200000, SOURCE_BYTES = 150000 };

typedef struct Maker {
    Arena arena;
    TileProgram program;
    ARRAY(Transfer) transfers;
    ARRAY(Endpoint) receivers;
    uint32_t *next_source, *source_bytes, *target_bytes;
    uint64_t random;
} Maker;

static uint32_t below(Maker *maker, uint32_t limit)
{
    maker->random = maker->random * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(maker->random >> 33) % limit;
}

static void receive(Maker *maker, uint32_t tile, uint32_t words)
{
    array_push(&maker->receivers, (Endpoint){tile, {1, maker->target_bytes[tile]}});
    maker->target_bytes[tile] += round_up_u32(4 * words, 8);
}

/* Single tiles, or pairs whose members take the words at equal offsets. */
static uint32_t pick_receivers(Maker *maker, uint32_t source, uint32_t words, bool pairs)
{
    uint32_t tiles = maker->program.tiles, wanted = 1 + below(maker, pairs ? 6 : 4), found = 0;
    bool used[TILES + 1] = {0};
    used[source] = true;
    for (uint32_t i = 0; i < wanted; i++) {
        uint32_t tile = below(maker, tiles), last = pairs ? tile | 1 : tile;
        tile = pairs ? tile & ~1u : tile;
        if (last >= tiles || used[tile] || used[last])
            continue;
        uint32_t offset = max_u32(maker->target_bytes[tile], maker->target_bytes[last]);
        if (offset + 4 * words > TARGET_BYTES)
            continue;
        for (uint32_t t = tile; t <= last; t++) {
            maker->target_bytes[t] = pairs ? offset : maker->target_bytes[t];
            receive(maker, t, words);
            used[t] = true;
            found++;
        }
    }
    return found;
}

static void make_phase(Maker *maker, uint32_t seed)
{
    *maker = (Maker){.random = seed * 977};
    uint32_t tiles = maker->program.tiles = 4 + below(maker, 60), count = 1 + below(maker, 60);
    uint32_t longest = below(maker, 3) == 0 ? 2000 : below(maker, 2) ? 400 : 150;
    uint32_t share = below(maker, 4);
    maker->next_source = arena_array(&maker->arena, uint32_t, tiles);
    maker->source_bytes = arena_array(&maker->arena, uint32_t, tiles);
    maker->target_bytes = arena_array(&maker->arena, uint32_t, tiles);
    for (uint32_t m = 0; m < count; m++) {
        uint32_t source = below(maker, tiles), words = 1 + below(maker, longest);
        bool pairs = below(maker, 4) <= share;
        words = pairs ? (words + 129) & ~1u : words;
        uint32_t first = (uint32_t)maker->receivers.count;
        uint32_t found = pick_receivers(maker, source, words, pairs);
        uint32_t *next = &maker->next_source[source];
        if (found == 0)
            continue;
        *next = *next + 4 * words > SOURCE_BYTES ? 0 : *next;
        array_push(&maker->transfers, (Transfer){{source, {0, *next}}, words, first, found});
        maker->source_bytes[source] = max_u32(maker->source_bytes[source], *next + 4 * words);
        *next += round_up_u32(4 * words, 8);
    }
    for (int b = 0; b < 2; b++) {
        Buffer buffer = {.name = b ? "target" : "source",
                         .align = 8,
                         .members = 1,
                         .bytes = b ? maker->target_bytes : maker->source_bytes,
                         .alias = BUFFER_NONE};
        array_push(&maker->program.buffers, buffer);
    }
    ExchangePhase phase = {.operation = "stress",
                           .transfers = maker->transfers.items,
                           .transfer_count = (uint32_t)maker->transfers.count,
                           .receivers = maker->receivers.items,
                           .receiver_count = (uint32_t)maker->receivers.count};
    array_push(&maker->program.phases, phase);
}

static uint32_t run_phase(Maker *maker, uint32_t seed, Pool *pool)
{
    const TileProgram *program = &maker->program;
    Schedule schedule;
    ScheduleOptions options = {.pairs = true};
    assert_ok(exchange_schedule(&maker->arena, program, &options, pool, &schedule));
    const PhaseSchedule *phase = &schedule.phases[0];
    assert_true(phase->horizon >= phase->floor);
    Device *device = malloc(sizeof *device);
    device_open(device, program, seed);
    device_place(device, true);
    Row *rows = arena_array(&maker->arena, Row, program->tiles);
    assert_ok(
        exchange_encode_phase(&maker->arena, program, 0, phase, device_address, device, rows));
    assert_ok(exchange_check_phase(program, 0, phase, device_address, device, rows));
    for (uint32_t t = 0; t < program->tiles; t++)
        assert_int_equal(rows[t].count, phase->row_words[t]);
    device_fill(device, 0);
    SimFault fault = {0};
    if (!device_run(device, rows, pool, &fault))
        fail_msg("seed %u: tile %u: %s", seed, fault.tile, fault.message);
    device_check(device, 0);
    uint32_t paired = 0;
    for (uint32_t m = 0; m < phase->phase->transfer_count; m++)
        paired += phase->slots[m].paired;
    device_close(device);
    free(device);
    schedule_free(&schedule);
    return paired;
}

static void test_random_pairs(void **state)
{
    (void)state;
    Pool *pool = pool_create(2);
    uint32_t paired = 0;
    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        Maker maker;
        make_phase(&maker, seed);
        paired += run_phase(&maker, seed, pool);
        program_release(&maker.program);
        array_free(&maker.transfers);
        array_free(&maker.receivers);
        arena_free(&maker.arena);
    }
    assert_true(paired > 4 * SEEDS);
    pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_pairs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
