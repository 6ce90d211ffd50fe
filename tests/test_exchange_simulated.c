/* libraries: exchange sim */
/* test_exchange_simulated.c - rows executed by the simulator's supervisors, not interpreted here.
 */
#include "check.h"

#include "exchange/exchange.h"
#include "sim/sim.h"

enum { M_ZERO = 15, M_LINK = 10, ROW = LINK_SECOND, SOURCE = 0x70000, TARGET = 0xa8000 };

static uint32_t same_address(const void *context, uint32_t tile, uint32_t buffer)
{
    (void)context;
    (void)tile;
    return buffer ? TARGET : SOURCE;
}

static uint32_t word_of(uint32_t tile, uint32_t offset)
{
    uint32_t x = tile * 0x9e3779b1u ^ (offset / 4) * 0x85ebca77u;
    return (x ^ x >> 15) * 0xc2b2ae3du | 1;
}

static uint32_t put_csr(const char *name, uint32_t reg)
{
    return isa_word(FORM_put_mmmn_zi, (int32_t)reg, isa_csr_number(name, MODE_SUPERVISOR));
}

/* Constant, base of the outgoing addresses, barrier, row: what emission does for a phase. */
static void load_tile(Sim *sim, uint32_t physical, const Row *row, uint32_t displacement)
{
    uint32_t words[] = {isa_word(FORM_setzi_mmmn_zi, 0, 1),
                        put_csr("INCOMING_DCOUNT", 0),
                        isa_word(FORM_setzi_mmmn_zi, 1, (int32_t)displacement),
                        put_csr("OUTGOING_BASE", 1),
                        put_csr("INCOMING_BASE", M_ZERO),
                        isa_word(FORM_sync, 3),
                        isa_word(FORM_call_mmmn_zi, M_LINK, ROW),
                        isa_word(FORM_sync, 7)};
    uint32_t idle[] = {isa_word(FORM_sans, 0), isa_word(FORM_sync, 1), isa_word(FORM_sync, 7)};
    if (row->count) {
        assert_ok(sim_write(sim, physical, ROW, row->words, 4 * row->count));
        assert_ok(sim_write(sim, physical, LINK_FIRST, words, sizeof words));
    } else {
        assert_ok(sim_write(sim, physical, LINK_FIRST, idle, sizeof idle));
    }
    sim_set_entry(sim, physical, LINK_FIRST);
}

static void fill(Sim *sim, const TileProgram *program, uint32_t displacement)
{
    for (uint32_t t = 0; t < program->tiles; t++) {
        uint8_t *memory = sim_memory(sim, target_physical(t)) + (SOURCE - SRAM_BASE);
        for (uint32_t at = 0; at < program->buffers.items[0].bytes[t]; at += 4)
            store_u32(memory + displacement + at, word_of(t, at));
    }
}

static uint64_t compare(Sim *sim, const TileProgram *program)
{
    const ExchangePhase *phase = &program->phases.items[0];
    uint64_t words = 0;
    for (uint32_t m = 0; m < phase->transfer_count; m++) {
        const Transfer *transfer = &phase->transfers[m];
        for (uint32_t r = 0; r < transfer->receiver_count; r++) {
            const Endpoint *end = &phase->receivers[transfer->first_receiver + r];
            const uint8_t *at =
                sim_memory(sim, target_physical(end->tile)) + (TARGET - SRAM_BASE) + end->at.offset;
            for (uint32_t i = 0; i < transfer->words; i++)
                if (load_u32(at + 4 * i) !=
                    word_of(transfer->source.tile, transfer->source.at.offset + 4 * i))
                    fail_msg("transfer %u, tile %u, word %u", m, end->tile, i);
            words += transfer->words;
        }
    }
    return words;
}

static void simulate(const Pattern *pattern, bool pairs, uint32_t displacement)
{
    Arena arena = {0};
    Pool *pool = pool_create(2);
    TileProgram program;
    Schedule schedule;
    assert_ok(exchange_pattern(&arena, pattern, &program));
    ScheduleOptions options = {.pairs = pairs};
    assert_ok(exchange_schedule(&arena, &program, &options, pool, &schedule));
    Row *rows = arena_array(&arena, Row, program.tiles);
    const PhaseSchedule *phase = &schedule.phases[0];
    assert_ok(exchange_encode_phase(&arena, &program, 0, phase, same_address, NULL, rows));
    assert_ok(exchange_check_phase(&program, 0, phase, same_address, NULL, rows));
    Sim *sim;
    SimOptions machine = {.tiles = TILES, .threads = 2, .verify = true};
    assert_ok(sim_create(&machine, &sim));
    for (uint32_t t = 0; t < TILES; t++)
        load_tile(sim, target_physical(t), t < program.tiles ? &rows[t] : &(Row){0}, displacement);
    fill(sim, &program, displacement);
    if (sim_run(sim) != SIM_RENDEZVOUS)
        fail_msg("tile %u: %s", sim_fault(sim)->tile, sim_fault(sim)->message);
    uint32_t count, paired = 0;
    const SimPhase *measured = sim_phases(sim, &count);
    assert_int_equal(count, 1);
    assert_true(measured[0].words_received == compare(sim, &program));
    assert_int_equal(measured[0].ended - measured[0].event0, phase->horizon);
    for (uint32_t m = 0; m < phase->phase->transfer_count; m++)
        paired += phase->slots[m].paired;
    assert_int_equal(paired > 0, pairs);
    sim_destroy(sim);
    schedule_free(&schedule);
    array_free(&program.buffers);
    array_free(&program.steps);
    array_free(&program.phases);
    pool_destroy(pool);
    arena_free(&arena);
}

static void test_patterns(void **state)
{
    (void)state;
    simulate(&(Pattern){"all-to-all", 200, 51, 8, 0, 1, 0, 1}, false, 0);
    simulate(&(Pattern){"mixed", 300, 120, 8, 0, 5, 900, 2}, false, 0);
    simulate(&(Pattern){"random", 1472, 64, 8, 0, 2, 4000, 3}, false, 0);
}

static void test_pairs(void **state)
{
    (void)state;
    simulate(&(Pattern){"paired", 1472, 1600, 16, 0, 1, 0, 1}, true, 0);
    simulate(&(Pattern){"pieces", 1472, 1600, 18, 0, 1, 0, 1}, true, 0);
}

/* A repeat moves what is sent with OUTGOING_BASE; the rows stay as they are. */
static void test_displaced_sources(void **state)
{
    (void)state;
    simulate(&(Pattern){"mixed", 64, 200, 8, 0, 3, 500, 4}, false, 0x4000);
    simulate(&(Pattern){"paired", 64, 1600, 16, 0, 1, 0, 5}, true, 0x2008);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_displaced_sources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
