/* libraries: exchange sim */
/* test_exchange_rows.c - broken rows, shared buffers, sequences, bad input, determinism. */
#include "check.h"

#include "exchange_device.h"

typedef struct Case {
    Arena arena;
    Pool *pool;
    TileProgram program;
    Schedule schedule;
    Device *device;
    Row *rows;
} Case;

static void case_schedule(Case *c, bool pairs)
{
    ScheduleOptions options = {.pairs = pairs};
    c->pool = pool_create(2);
    assert_ok(exchange_schedule(&c->arena, &c->program, &options, c->pool, &c->schedule));
    c->device = malloc(sizeof *c->device);
    device_open(c->device, &c->program, 7);
    c->rows = arena_array(&c->arena, Row, c->program.tiles);
}

static void case_encode(Case *c)
{
    assert_ok(exchange_encode_phase(&c->arena, &c->program, 0, &c->schedule.phases[0],
                                    device_address, c->device, c->rows));
}

static Status case_check(Case *c)
{
    return exchange_check_phase(&c->program, 0, &c->schedule.phases[0], device_address, c->device,
                                c->rows);
}

static bool case_deliver(Case *c, char *where, size_t size)
{
    SimFault fault = {0};
    for (uint32_t t = 0; t < TILES; t++)
        c->device->tiles[t].mux = c->device->tiles[t].mux_pair = MUX_NEUTRAL;
    for (uint32_t t = 0; t < TILES; t++)
        c->device->tiles[t].format = 0;
    const ExchangePhase *phase = &c->program.phases.items[0];
    for (uint32_t i = 0; i < phase->receiver_count; i++)
        *device_at(c->device, &phase->receivers[i]) = 0;
    device_fill(c->device, 0);
    bool ran = device_run(c->device, c->rows, c->pool, &fault);
    snprintf(where, size, "tile %u: %s", fault.tile, fault.message);
    return ran && device_right(c->device, 0, where, size);
}

static void case_close(Case *c)
{
    device_close(c->device);
    free(c->device);
    schedule_free(&c->schedule);
    program_release(&c->program);
    pool_destroy(c->pool);
    arena_free(&c->arena);
}

static void case_pattern(Case *c, const Pattern *pattern, bool pairs)
{
    *c = (Case){0};
    assert_ok(exchange_pattern(&c->arena, pattern, &c->program));
    case_schedule(c, pairs);
    device_place(c->device, pairs);
    case_encode(c);
    assert_ok(case_check(c));
}

/* A row with one bit wrong is rejected, or it does the same. What the fabric lets through must be
 * right only if the checker accepted it: the two models do not share a line. */
static void test_broken_rows(void **state)
{
    (void)state;
    static const Pattern patterns[] = {
        {"mixed", 24, 40, 16, 0, 3, 60, 1},   {"mixed", 16, 130, 16, 0, 4, 40, 2},
        {"all-to-all", 16, 9, 8, 0, 1, 0, 3}, {"paired", 24, 1000, 12, 0, 1, 0, 4},
        {"pieces", 24, 1000, 12, 0, 1, 0, 4},
    };
    for (size_t p = 0; p < countof(patterns); p++) {
        Case c;
        case_pattern(&c, &patterns[p], p >= 3);
        char where[300];
        assert_true(case_deliver(&c, where, sizeof where));
        uint32_t accepted = 0, rejected = 0, seen = 0;
        for (uint32_t i = 0; i < 500; i++) {
            Row *row = &c.rows[device_random(c.device) % c.program.tiles];
            if (row->count == 0)
                continue;
            uint32_t *word = &row->words[device_random(c.device) % row->count];
            uint32_t flip = 1u << (device_random(c.device) % 32);
            *word ^= flip;
            bool good = !status_discard(case_check(&c));
            bool right = case_deliver(&c, where, sizeof where);
            if (good && !right)
                fail_msg("%s: accepted, but %s", patterns[p].name, where);
            *(good ? &accepted : &rejected) += 1;
            seen += !good && !right;
            *word ^= flip;
        }
        printf("%s: %u rejected, %u of them seen by the fabric, %u harmless\n", patterns[p].name,
               rejected, seen, accepted);
        assert_true(accepted * 20 < rejected);
        assert_true(seen * 4 > rejected * 3);
        case_close(&c);
    }
}

/* Rows that are shifted, cut off or swapped. */
static void test_wrong_rows(void **state)
{
    (void)state;
    Case c;
    case_pattern(&c, &(Pattern){"mixed", 24, 40, 16, 0, 3, 60, 1}, false);
    for (uint32_t t = 0; t < c.program.tiles; t++) {
        Row right = c.rows[t], other = c.rows[(t + 1) % c.program.tiles];
        if (right.count == 0)
            continue;
        c.rows[t] = other;
        assert_true(status_discard(case_check(&c)));
        c.rows[t] = (Row){right.words, right.count - 1};
        assert_true(status_discard(case_check(&c)));
        c.rows[t] = (Row){right.words + 1, right.count - 1};
        assert_true(status_discard(case_check(&c)));
        c.rows[t] = (Row){0};
        assert_true(status_discard(case_check(&c)));
        c.rows[t] = right;
    }
    c.schedule.phases[0].slots[5].start++;
    assert_true(status_discard(case_check(&c)));
    c.schedule.phases[0].slots[5].start--;
    assert_ok(case_check(&c));
    c.device->address[0] += 4;
    assert_true(status_discard(case_check(&c)));
    case_close(&c);
}

static void add_buffer(Case *c, const char *name, uint32_t bytes, uint32_t members)
{
    uint32_t *sizes = arena_array(&c->arena, uint32_t, c->program.tiles);
    for (uint32_t t = 0; t < c->program.tiles; t++)
        sizes[t] = bytes;
    array_push(
        &c->program.buffers,
        (Buffer){
            .name = name, .align = 8, .members = members, .bytes = sizes, .alias = BUFFER_NONE});
}

static void add_phase(Case *c, const Transfer *transfers, uint32_t count, const Endpoint *receivers,
                      uint32_t receiver_count, bool in_repeat)
{
    ExchangePhase phase = {.operation = "test",
                           .transfer_count = count,
                           .receiver_count = receiver_count,
                           .in_repeat = in_repeat};
    phase.transfers = arena_copy(&c->arena, transfers, count * sizeof *transfers, 8);
    phase.receivers = arena_copy(&c->arena, receivers, receiver_count * sizeof *receivers, 8);
    array_push(&c->program.phases, phase);
}

/* Every tile sends the first half of a buffer into the second half of its neighbour's: reads and
 * writes of one element must not meet. */
static void test_one_buffer(void **state)
{
    (void)state;
    for (uint32_t tiles = 2; tiles <= 40; tiles += 19) {
        Case c = {.program.tiles = tiles};
        add_buffer(&c, "both", 800, 1);
        Transfer transfers[40];
        Endpoint receivers[40];
        for (uint32_t t = 0; t < tiles; t++) {
            transfers[t] = (Transfer){{t, {0, 0}}, 100, t, 1};
            receivers[t] = (Endpoint){(t + 1) % tiles, {0, 400}};
        }
        add_phase(&c, transfers, tiles, receivers, tiles, false);
        case_schedule(&c, false);
        device_place(c.device, false);
        case_encode(&c);
        assert_ok(case_check(&c));
        char where[300];
        if (!case_deliver(&c, where, sizeof where))
            fail_msg("%s", where);
        assert_int_equal(c.schedule.constraints.count, 0);
        case_close(&c);
    }
}

/* What is sent on in the same phase is what has arrived, in the order of the list. */
static void test_forwarding(void **state)
{
    (void)state;
    Case c = {.program.tiles = 3};
    add_buffer(&c, "x", 400, 1);
    Transfer transfers[] = {{{0, {0, 0}}, 100, 0, 1}, {{1, {0, 0}}, 100, 1, 1}};
    Endpoint receivers[] = {{1, {0, 0}}, {2, {0, 0}}};
    add_phase(&c, transfers, 2, receivers, 2, false);
    case_schedule(&c, false);
    device_place(c.device, false);
    case_encode(&c);
    assert_ok(case_check(&c));
    device_fill(c.device, 0);
    SimFault fault;
    assert_true(device_run(c.device, c.rows, c.pool, &fault));
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(load_u32(device_at(c.device, &receivers[1]) + 4 * i),
                         device_word(0, 4 * i));
    case_close(&c);
}

/* The source of a repeat's phase moves: all members keep away from what arrives. */
static void test_sequences(void **state)
{
    (void)state;
    Case c = {.program.tiles = 4};
    add_buffer(&c, "sequence", 400, 200);
    add_buffer(&c, "here", 400, 1);
    Transfer transfers[4];
    Endpoint receivers[4];
    for (uint32_t t = 0; t < 4; t++) {
        transfers[t] = (Transfer){{t, {0, 0}}, 100, t, 1};
        receivers[t] = (Endpoint){t ^ 1, {1, 0}};
    }
    add_phase(&c, transfers, 4, receivers, 4, true);
    case_schedule(&c, false);
    assert_int_equal(c.schedule.constraints.count, 4);
    assert_int_equal(c.schedule.constraints.items[0].kind, CONSTRAINT_SEPARATE);
    for (uint32_t t = 0; t < 4; t++) {
        c.device->address[t] = 0x60000;
        c.device->address[4 + t] = 0x78000; /* not in the first member's element */
    }
    case_encode(&c);
    c.device->address[4 + 2] = 0x60000 + 150 * 400;
    Status status = exchange_encode_phase(&c.arena, &c.program, 0, &c.schedule.phases[0],
                                          device_address, c.device, c.rows);
    assert_false(status_ok(status));
    assert_non_null(strstr(status_message(status), "sequence and here on tile 2"));
    status_free(status);
    case_close(&c);
}

static void test_bad_input(void **state)
{
    (void)state;
    static const struct {
        Transfer transfer;
        Endpoint receivers[2];
        const char *part;
    } bad[] = {
        {{{0, {0, 0}}, 0, 0, 1}, {{1, {0, 0}}}, "0 words"},
        {{{0, {0, 0}}, 10, 0, 0}, {{1, {0, 0}}}, "no receivers"},
        {{{0, {0, 0}}, 10, 0, 3}, {{1, {0, 0}}}, "no receivers"},
        {{{9, {0, 0}}, 10, 0, 1}, {{1, {0, 0}}}, "tile 9"},
        {{{0, {7, 0}}, 10, 0, 1}, {{1, {0, 0}}}, "buffer 7"},
        {{{0, {0, 2}}, 10, 0, 1}, {{1, {0, 0}}}, "multiple of 4"},
        {{{0, {0, 392}}, 10, 0, 1}, {{1, {0, 0}}}, "do not lie"},
        {{{0, {0, 0}}, 10, 0, 1}, {{0, {0, 100}}}, "to itself"},
        {{{0, {0, 0}}, 10, 0, 2}, {{1, {0, 0}}, {1, {0, 100}}}, "twice"},
    };
    for (size_t i = 0; i < countof(bad); i++) {
        Case c = {.program.tiles = 4};
        add_buffer(&c, "b", 400, 1);
        add_phase(&c, &bad[i].transfer, 1, bad[i].receivers, 2, false);
        Pool *pool = pool_create(1);
        Status status =
            exchange_schedule(&c.arena, &c.program, &(ScheduleOptions){0}, pool, &c.schedule);
        assert_false(status_ok(status));
        if (!strstr(status_message(status), bad[i].part))
            fail_msg("\"%s\" is not in \"%s\"", bad[i].part, status_message(status));
        status_free(status);
        pool_destroy(pool);
        program_release(&c.program);
        arena_free(&c.arena);
    }
}

static void test_bad_addresses(void **state)
{
    (void)state;
    Case c;
    case_pattern(&c, &(Pattern){"shift", 8, 10, 1, 1, 1, 0, 1}, false);
    static const uint32_t addresses[] = {0, SRAM_END - 8, SRAM_BASE + 2};
    for (size_t i = 0; i < countof(addresses); i++) {
        uint32_t right = c.device->address[3];
        c.device->address[3] = addresses[i];
        Status status = exchange_encode_phase(&c.arena, &c.program, 0, &c.schedule.phases[0],
                                              device_address, c.device, c.rows);
        assert_false(status_ok(status));
        assert_non_null(strstr(status_message(status), "source on tile 3"));
        status_free(status);
        c.device->address[3] = right;
    }
    case_close(&c);
}

static void test_same_for_any_threads(void **state)
{
    (void)state;
    Pattern pattern = {"mixed", 300, 200, 16, 0, 5, 1500, 9};
    Arena arena = {0};
    TileProgram program;
    assert_ok(exchange_pattern(&arena, &pattern, &program));
    array_push(&program.phases, program.phases.items[0]);
    Schedule schedules[2];
    for (unsigned threads = 1; threads <= 2; threads++) {
        Pool *pool = pool_create(threads);
        ScheduleOptions options = {.pairs = true};
        assert_ok(exchange_schedule(&arena, &program, &options, pool, &schedules[threads - 1]));
        pool_destroy(pool);
    }
    for (uint32_t p = 0; p < 2; p++) {
        const PhaseSchedule *a = &schedules[0].phases[p], *b = &schedules[1].phases[p];
        assert_int_equal(a->horizon, b->horizon);
        assert_int_equal(a->phase->transfer_count, b->phase->transfer_count);
        assert_memory_equal(a->slots, b->slots, a->phase->transfer_count * sizeof *a->slots);
        assert_memory_equal(a->row_words, b->row_words, program.tiles * sizeof(uint32_t));
    }
    assert_int_equal(schedules[0].constraints.count, schedules[1].constraints.count);
    assert_memory_equal(schedules[0].constraints.items, schedules[1].constraints.items,
                        schedules[0].constraints.count * sizeof(Constraint));
    Text text = {0};
    exchange_print(&text, &program, &schedules[0], NULL, 5);
    assert_non_null(strstr(text_string(&text), "phase 1 pattern: transfers=1500"));
    assert_non_null(strstr(text_string(&text), "5:source+"));
    text_free(&text);
    schedule_free(&schedules[0]);
    schedule_free(&schedules[1]);
    program_release(&program);
    arena_free(&arena);
}

static void test_pattern_files(void **state)
{
    (void)state;
    Arena arena = {0};
    TileProgram program;
    assert_ok(
        exchange_pattern_read(&arena, "f", "# comment\n0\t10\t1,2\n\n5\t3\t1471\r\n", &program));
    assert_int_equal(program.phases.items[0].transfer_count, 2);
    assert_int_equal(program.phases.items[0].receiver_count, 3);
    assert_int_equal(program.phases.items[0].transfers[1].source.tile, 5);
    program_release(&program);
    static const char *const bad[] = {"0\t10\t0\n",    "0\t10\n",     "0\t0\t1\n", "1472\t1\t0\n",
                                      "0\t10\t1,1\n",  "0 10 1\n",    "x\n",       "0\t10\t1x\n",
                                      "0\t99999\t1\n", "0\t10\t-1\n", "0\t10\t\n"};
    for (size_t i = 0; i < countof(bad); i++) {
        Status status = exchange_pattern_read(&arena, "f", bad[i], &program);
        assert_false(status_ok(status));
        assert_non_null(strstr(status_message(status), "f:1"));
        status_free(status);
    }
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broken_rows),   cmocka_unit_test(test_wrong_rows),
        cmocka_unit_test(test_one_buffer),    cmocka_unit_test(test_forwarding),
        cmocka_unit_test(test_sequences),     cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_bad_addresses), cmocka_unit_test(test_same_for_any_threads),
        cmocka_unit_test(test_pattern_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
