/* libraries: exchange sim */
/* test_exchange_delivery.c - patterns scheduled, placed at random, encoded, checked and delivered.
 */
#include "check.h"

#include "exchange_device.h"

typedef struct Result {
    uint32_t bound, horizon;
} Result;

static Result deliver(const Pattern *pattern, bool pairs, uint64_t seed)
{
    Arena arena = {0};
    Pool *pool = pool_create(2);
    TileProgram program;
    assert_ok(exchange_pattern(&arena, pattern, &program));
    ScheduleOptions options = {.pairs = pairs};
    Schedule schedule;
    double begin = seconds_now();
    assert_ok(exchange_schedule(&arena, &program, &options, pool, &schedule));
    double scheduled = seconds_now();
    Device *device = malloc(sizeof *device);
    device_open(device, &program, seed);
    device_place(device, pairs);
    Row *rows = arena_array(&arena, Row, program.tiles);
    PhaseSchedule *phase = &schedule.phases[0];
    assert_ok(exchange_encode_phase(&arena, &program, 0, phase, device_address, device, rows));
    double encoded = seconds_now();
    assert_ok(exchange_check_phase(&program, 0, phase, device_address, device, rows));
    double checked = seconds_now();
    device_fill(device, 0);
    SimFault fault = {0};
    double filled = seconds_now();
    if (!device_run(device, rows, pool, &fault))
        fail_msg("%s: tile %u cycle %llu: %s", pattern->name, fault.tile,
                 (unsigned long long)fault.cycle - EVENT0, fault.message);
    double delivered = seconds_now();
    device_check(device, 0);
    Result result = {phase->bound, phase->horizon};
    printf(
        "%-10s tiles=%-4u words=%-4u transfers=%-6u bound=%-5u horizon=%-5u (+%d) schedule=%.0fms "
        "encode=%.0fms check=%.0fms fabric=%.0fms\n",
        pattern->name, pattern->tiles, pattern->words, program.phases.items[0].transfer_count,
        phase->bound, phase->horizon, (int)(phase->horizon - phase->bound),
        1e3 * (scheduled - begin), 1e3 * (encoded - scheduled), 1e3 * (checked - encoded),
        1e3 * (delivered - filled));
    device_close(device);
    free(device);
    schedule_free(&schedule);
    program_release(&program);
    pool_destroy(pool);
    arena_free(&arena);
    return result;
}

static Pattern pattern_of(const char *name, uint32_t tiles, uint32_t words)
{
    return (Pattern){.name = name,
                     .tiles = tiles,
                     .words = words,
                     .group = 16,
                     .shift = 37,
                     .fanout = 1,
                     .messages = 4 * tiles,
                     .seed = 1};
}

static void test_regular_patterns(void **state)
{
    (void)state;
    static const char *const names[] = {"gather", "scatter", "shift", "all-to-all", "all-gather"};
    static const uint32_t sizes[] = {64, 256, 1024};
    for (size_t n = 0; n < countof(names); n++) {
        for (size_t s = 0; s < countof(sizes); s++) {
            Pattern pattern = pattern_of(names[n], TILES, sizes[s]);
            Result result = deliver(&pattern, false, n + s);
            uint32_t bound = n == 4 ? result.bound * 16 / 15 : result.bound;
            assert_true(result.horizon <= bound + 170);
            /* What planners assume is near what comes out. */
            int expected =
                (int)(target_phase_cost(result.bound, n == 2 ? 1 : 15) - target_boundary_cost());
            assert_in_range(result.horizon, expected - 30, expected + 60);
        }
    }
}

static void test_sizes(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 3, 51, 52, 53, 63, 64, 65, 96, 97, 128, 129, 4148, 5000};
    for (size_t s = 0; s < countof(sizes); s++) {
        for (uint32_t n = 0; n < 6; n++) {
            Pattern pattern = pattern_of(exchange_pattern_names[n], 64, sizes[s]);
            pattern.messages = 100;
            pattern.fanout = 4;
            pattern.group = sizes[s] > 4000 ? 8 : 16;
            deliver(&pattern, false, s);
        }
    }
}

static void test_random_patterns(void **state)
{
    (void)state;
    Pattern pattern = pattern_of("random", TILES, 64);
    deliver(&pattern, false, 1);
    for (uint32_t seed = 1; seed <= 40; seed++) {
        static const uint32_t tiles[] = {2, 3, 16, 64, 137};
        static const uint32_t words[] = {1, 2, 9, 40, 55, 300};
        pattern = pattern_of("mixed", tiles[seed % 5], words[seed % 6]);
        pattern.messages = 50 + 37 * seed;
        pattern.fanout = 1 + seed % 4;
        if (pattern.tiles < 16)
            pattern.messages /= 4;
        pattern.seed = seed;
        deliver(&pattern, false, seed);
    }
    static const struct {
        const char *name;
        uint32_t tiles, words, messages, fanout;
    } table[] = {
        {"mixed", 64, 300, 400, 4}, {"random", 16, 64, 200, 4}, {"mixed", 1472, 300, 3000, 4}};
    for (size_t i = 0; i < countof(table); i++) {
        pattern = pattern_of(table[i].name, table[i].tiles, table[i].words);
        pattern.messages = table[i].messages;
        pattern.fanout = table[i].fanout;
        deliver(&pattern, false, i);
    }
}

static void test_multicast(void **state)
{
    (void)state;
    Pattern pattern = pattern_of("multicast", TILES, 1024);
    pattern.messages = 1;
    pattern.fanout = TILES;
    Result result = deliver(&pattern, false, 1);
    assert_int_equal(result.horizon, 1151);
    pattern = pattern_of("multicast", TILES, 8); /* the digits model is made of these */
    pattern.messages = 27;
    pattern.fanout = TILES;
    deliver(&pattern, false, 1);
    pattern = pattern_of("all-gather", 27, 8);
    pattern.group = 27;
    deliver(&pattern, false, 1);
    pattern = pattern_of("gather", 64, 8);
    pattern.group = 32;
    deliver(&pattern, false, 1);
}

static void test_pairs(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {128, 130, 256, 1000, 2048};
    for (size_t s = 0; s < countof(sizes); s++) {
        for (uint32_t group = 6; group <= 20; group += 7) {
            Pattern pattern = pattern_of("paired", 200, sizes[s]);
            pattern.group = group;
            Result narrow = deliver(&pattern, false, s), wide = deliver(&pattern, true, s);
            assert_true(wide.horizon <= narrow.horizon);
            if (sizes[s] > 2000)
                assert_true(wide.horizon < narrow.horizon * 9 / 10);
        }
        Pattern pattern = pattern_of("all-gather", 180, sizes[s]); /* partners get their own */
        pattern.group = 36;
        deliver(&pattern, true, s);
        pattern = pattern_of("multicast", 300, sizes[s]);
        pattern.messages = 40;
        pattern.fanout = 17;
        deliver(&pattern, true, s);
    }
}

static void test_many_transfers(void **state)
{
    (void)state;
    Pattern pattern = pattern_of("mixed", TILES, 270);
    pattern.messages = 165000;
    deliver(&pattern, false, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),     cmocka_unit_test(test_random_patterns),
        cmocka_unit_test(test_multicast), cmocka_unit_test(test_regular_patterns),
        cmocka_unit_test(test_pairs),     cmocka_unit_test(test_many_transfers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
