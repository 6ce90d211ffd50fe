/* libraries: sim */
/* test_sim_machine.c - several tiles and several contexts: launches, races between workers,
 * barriers, exchange phases with rows, host rendezvous, completion, statistics, any number of
 * threads. */
#include "sim_program.h"

#include <string.h>

enum { ROW = 0x5c000, SOURCE = 0x60000, TARGET = 0x64000 };

/* --- contexts of one tile */

static void prepare_registers(Sim *sim, uint32_t context, uint32_t m0, uint32_t m1)
{
    SimContext registers;
    sim_get_context(sim, 0, context, &registers);
    registers.m[0] = m0;
    registers.m[1] = m1;
    sim_set_context(sim, 0, context, &registers);
}

static void call(Sim *sim, uint32_t pc)
{
    uint64_t cycles;
    if (sim_call(sim, 0, 0, pc, &cycles) != SIM_RETURNED)
        fail_msg("%s: %s", sim_fault(sim)->instruction, sim_fault(sim)->message);
}

static void launch_gives_base_and_formats(void **state)
{
    (void)state;
    Sim *sim = one_tile();
    Program code = {.address = CODE}, worker = {.address = WORKER_CODE};
    EMIT(&code, setzi_mmmn_zi, 2, 0x80005);
    EMIT(&code, put_mmmn_zi, 2, 0x20); /* FP_ICTL */
    EMIT(&code, setzi_mmmn_zi, 2, 3);
    EMIT(&code, put_mmmn_zi, 2, 0x31); /* FP_INFMT */
    EMIT(&code, setzi_mmmn_zi, 2, 0x3e);
    EMIT(&code, put_mmmn_zi, 2, 0x33); /* FP_ISCL */
    EMIT(&code, setzi_mmmn_zi, 2, 0x58204);
    EMIT(&code, put_mmmn_zi, 2, 0x22); /* WORKER1_BASE */
    EMIT(&code, runall_mmmn_zi, 0, 1, 3);
    EMIT(&code, sync, 2);
    EMIT(&code, br_mmmn, 10);
    EMIT(&worker, or_mmmn_zi, 3, 13, 0);
    EMIT(&worker, or_mmmn_zi, 4, 12, 0);
    EMIT(&worker, exitz_mmmn, MZERO);
    load_program(sim, 0, &code);
    load_program(sim, 0, &worker);
    prepare_registers(sim, 0, WORKER_CODE, DATA);
    for (uint32_t w = 0; w < 6; w++) { /* what is kept and what is not */
        SimContext registers;
        sim_get_context(sim, 0, 1 + w, &registers);
        registers.m[7] = 70 + w;
        registers.a[2] = 20 + w;
        registers.csr[0x100] = 7;
        registers.csr[0x102] = 1;
        sim_set_context(sim, 0, 1 + w, &registers);
    }
    call(sim, CODE);
    for (uint32_t w = 0; w < 6; w++) {
        SimContext registers;
        sim_get_context(sim, 0, 1 + w, &registers);
        assert_int_equal(registers.m[3], DATA + 12 * w);
        assert_int_equal(registers.m[4],
                         w == 1 ? 0x58204 : STATE_BASE + STATE_WORKER_BASE + 0x100 * w);
        assert_int_equal(registers.m[7], 70 + w);
        assert_int_equal(registers.a[2], 20 + w);
        assert_int_equal(registers.csr[0x100], 0);
        assert_int_equal(registers.csr[0x102], 0x80005);
        assert_int_equal(registers.csr[0x109], 3);
        assert_int_equal(registers.csr[0x10a], 0x3e);
        assert_int_equal(registers.csr[1] & 7, w);
    }
    sim_destroy(sim);
}

static void run_takes_the_lowest_idle_worker(void **state)
{
    (void)state;
    Sim *sim = one_tile();
    Program code = {.address = CODE}, worker = {.address = WORKER_CODE};
    for (int i = 0; i < 3; i++)
        EMIT(&code, run_mmmn_zi, 0, MZERO, ISA_REGION_BASE + 0x14000 + 4 * i);
    EMIT(&code, sync, 2);
    EMIT(&code, br_mmmn, 10);
    EMIT(&worker, or_mmmn_zi, 3, 13, 0);
    EMIT(&worker, exitz_mmmn, MZERO);
    load_program(sim, 0, &code);
    load_program(sim, 0, &worker);
    prepare_registers(sim, 0, WORKER_CODE, 0);
    call(sim, CODE);
    for (uint32_t w = 0; w < 6; w++) {
        SimContext registers;
        sim_get_context(sim, 0, 1 + w, &registers);
        assert_int_equal(registers.m[3], w < 3 ? 0x60000 + 4 * w : 0);
    }
    sim_destroy(sim);
}

static void exit_status_is_combined(void **state)
{
    (void)state;
    for (uint32_t odd_one = 0; odd_one < 7; odd_one++) { /* 6: all exit with status 1 */
        Sim *sim = one_tile();
        Program code = {.address = CODE}, worker = {.address = WORKER_CODE};
        EMIT(&code, setzi_mmmn_zi, 2, 2);
        EMIT(&code, put_mmmn_zi, 2, 2); /* CR.LC_SET */
        EMIT(&code, runall_mmmn_zi, 0, 1, 0);
        EMIT(&code, sync, 2);
        EMIT(&code, get_mmmn_zi, 3, 1);
        EMIT(&code, br_mmmn, 10);
        EMIT(&worker, get_mmmn_zi, 0, 1);
        EMIT(&worker, cmpeq_mmmn_si, 0, 0, (int32_t)odd_one);
        EMIT(&worker, exitz_mmmn, 0);
        load_program(sim, 0, &code);
        load_program(sim, 0, &worker);
        prepare_registers(sim, 0, WORKER_CODE, DATA);
        call(sim, CODE);
        SimContext registers;
        sim_get_context(sim, 0, 0, &registers);
        assert_int_equal(registers.m[3] & 1, odd_one == 6);
        sim_destroy(sim);
    }
}

/* Workers race on one counter without any locking: every worker loads, adds 1, stores. In barrel
 * order all six load before the first one stores, so each round counts one. */
static void races_resolve_in_barrel_order(void **state)
{
    (void)state;
    Sim *sim = one_tile();
    Program code = {.address = CODE}, worker = {.address = WORKER_CODE};
    EMIT(&code, runall_mmmn_zi, 0, 1, 0);
    EMIT(&code, sync, 2);
    EMIT(&code, br_mmmn, 10);
    EMIT(&worker, setzi_mmmn_zi, 2, 9);
    uint32_t loop = EMIT(&worker, ld32_mmmn_zi, 13, MZERO, 0, 0);
    EMIT(&worker, add_mmmn_si, 0, 0, 1);
    EMIT(&worker, st32_mmmn_zi, 13, MZERO, 0, 0);
    EMIT(&worker, brnzdec_mmmn_zi, 2, loop);
    /* The last store to a shared word is that of the worker whose slot comes last: runall issues in
     * cycle 0, the first slot at or after 12 is worker 0's. */
    EMIT(&worker, get_mmmn_zi, 3, 1);
    EMIT(&worker, st32_mmmn_zi, 13, MZERO, 1, 3);
    EMIT(&worker, exitz_mmmn, MZERO);
    load_program(sim, 0, &code);
    load_program(sim, 0, &worker);
    prepare_registers(sim, 0, WORKER_CODE, DATA);
    call(sim, CODE);
    assert_int_equal(peek(sim, 0, DATA), 10);
    assert_int_equal(peek(sim, 0, DATA + 4), 5);
    sim_destroy(sim);
}

/* The supervisor polls a word that a worker writes: they run side by side. */
static void supervisor_sees_a_running_workers_stores(void **state)
{
    (void)state;
    Sim *sim = one_tile();
    Program code = {.address = CODE}, worker = {.address = WORKER_CODE};
    EMIT(&code, run_mmmn_zi, 0, MZERO, ISA_REGION_BASE + 0x14000);
    uint32_t poll = EMIT(&code, ld32_mmmn_zi, 1, MZERO, 0, 2);
    EMIT(&code, brz_mmmn_zi, 2, poll);
    EMIT(&code, st32_mmmn_zi, 1, MZERO, 1, 1); /* lets the worker go */
    EMIT(&code, sync, 2);
    EMIT(&code, br_mmmn, 10);
    EMIT(&worker, setzi_mmmn_zi, 0, 77);
    EMIT(&worker, st32_mmmn_zi, 13, MZERO, 0, 0);
    uint32_t wait = EMIT(&worker, ld32_mmmn_zi, 13, MZERO, 1, 1);
    EMIT(&worker, brz_mmmn_zi, 1, wait);
    EMIT(&worker, exitz_mmmn, MZERO);
    load_program(sim, 0, &code);
    load_program(sim, 0, &worker);
    prepare_registers(sim, 0, WORKER_CODE, DATA);
    call(sim, CODE);
    SimContext registers;
    sim_get_context(sim, 0, 0, &registers);
    assert_int_equal(registers.m[2], 77);
    sim_destroy(sim);
}

/* Code is data: a patched word is executed as patched, also when it ran before. */
static void patched_code_runs_as_patched(void **state)
{
    (void)state;
    for (uint32_t context = 0; context < 2; context++) {
        Sim *sim = one_tile();
        Program code = {.address = CODE};
        EMIT(&code, setzi_mmmn_zi, 4, 0);
        uint32_t loop = EMIT(&code, setzi_mmmn_zi, 3, 1); /* patched to set 2 */
        EMIT(&code, add_mmmn, 4, 4, 3);
        EMIT(&code, st32_mmmn_zi, 0, MZERO, 0, 1);
        EMIT(&code, brnzdec_mmmn_zi, 2, loop);
        EMIT(&code, br_mmmn, 10);
        load_program(sim, 0, &code);
        SimContext registers;
        sim_get_context(sim, 0, context, &registers);
        registers.m[0] = loop;
        registers.m[1] = isa_word(FORM_setzi_mmmn_zi, 3, 2);
        registers.m[2] = 2;
        sim_set_context(sim, 0, context, &registers);
        uint64_t cycles;
        assert_int_equal(sim_call(sim, 0, context, CODE, &cycles), SIM_RETURNED);
        sim_get_context(sim, 0, context, &registers);
        assert_int_equal(registers.m[4], 1 + 2 + 2);
        sim_destroy(sim);
    }
}

/* --- many tiles */

/* Tile `from` sends `words` words at SOURCE to tile `to`, which has them at TARGET. Others look on.
 * Every tile works first (a supervisor delay of its own length), then the phase, then ends. */
typedef struct Phase {
    uint32_t from, to, words;
} Phase;

static void emit_phase(Program *code, bool active)
{
    EMIT(code, setzi_mmmn_zi, 8, TARGET);
    EMIT(code, put_mmmn_zi, 8, 0xa4); /* INCOMING_BASE */
    EMIT(code, put_mmmn_zi, MZERO, 0xa7);
    if (active) {
        EMIT(code, sync, 3);
    } else {
        EMIT(code, sans, 0);
        EMIT(code, sync, 1);
    }
    EMIT(code, call_mmmn_zi, 10, ROW);
}

static void emit_row(Program *row, const Phase *phase, uint32_t tile)
{
    int route = target_route_time(phase->from, phase->to);
    int start = route < 0 ? -route : 0, select = start + route + 1;
    int write = select + 52 + 2 * target_row(phase->to), end = write + (int)phase->words + 5;
    if (tile == phase->from) {
        if (start)
            EMIT(row, delay, start);
        EMIT(row, send, (int)phase->words, SOURCE / 4,
             (int)target_direction(phase->from, phase->to));
        if (end > start + (int)phase->words)
            EMIT(row, delay, end - start - (int)phase->words);
    } else if (tile == phase->to) {
        EMIT(row, delayxpic, select, 0, (int)phase->from);
        EMIT(row, delayxpic, (int)phase->words, 0, MUX_NEUTRAL);
        EMIT(row, delaypic, write - select - (int)phase->words, 0, 0);
        EMIT(row, delay, end - write);
    }
    EMIT(row, br_mmmn, 10);
}

static void load_phase(Sim *sim, const Phase *phase, uint32_t tile)
{
    bool active = tile == phase->from || tile == phase->to;
    Program code = {.address = CODE}, row = {.address = ROW};
    EMIT(&code, setzi_mmmn_zi, 3, DATA + 0x20000);
    EMIT(&code, st32_mmmn_zi, 3, MZERO, 0, 3);
    EMIT(&code, delay, 1 + (int)tile * 7 % 300);
    emit_phase(&code, active);
    if (tile == phase->to) /* what has arrived is there at once */
        EMIT(&code, ld32_mmmn_zi, 8, MZERO, 0, 5);
    emit_completion(&code);
    emit_row(&row, phase, tile);
    load_program(sim, tile, &code);
    load_program(sim, tile, &row);
    sim_set_entry(sim, tile, CODE);
}

static Sim *machine(unsigned threads, bool verify)
{
    Sim *sim;
    assert_ok(sim_create(
        &(SimOptions){.tiles = TILES, .threads = threads, .verify = verify, .max_cycles = 1000000},
        &sim));
    return sim;
}

static SimStop run_phase(Sim *sim, const Phase *phase)
{
    for (uint32_t tile = 0; tile < TILES; tile++)
        load_phase(sim, phase, tile);
    for (uint32_t i = 0; i < phase->words; i++)
        poke(sim, phase->from, SOURCE + 4 * i, 0xbead0000 + i);
    return sim_run(sim);
}

static void a_phase_delivers_its_words(void **state)
{
    (void)state;
    const Phase phases[] = {{0, 53, 7}, {1440, 0, 50}, {1, 1412, 30}, {1024, 1025, 12}};
    for (size_t k = 0; k < countof(phases); k++) {
        const Phase *phase = &phases[k];
        Sim *sim = machine(1, true);
        if (run_phase(sim, phase) != SIM_COMPLETE)
            fail_msg("tile %u cycle %llu: %s", sim_fault(sim)->tile,
                     (unsigned long long)sim_fault(sim)->cycle, sim_fault(sim)->message);
        for (uint32_t i = 0; i < phase->words; i++)
            assert_int_equal(peek(sim, phase->to, TARGET + 4 * i), 0xbead0000 + i);
        assert_int_equal(peek(sim, phase->to, TARGET + 4 * phase->words), 0);
        SimContext supervisor;
        sim_get_context(sim, phase->to, 0, &supervisor);
        assert_int_equal(supervisor.m[5], 0xbead0000);
        uint32_t count;
        const SimPhase *measured = sim_phases(sim, &count);
        assert_int_equal(count, 1);
        assert_int_equal(measured->words_sent, phase->words);
        assert_int_equal(measured->words_received, phase->words);
        assert_int_equal(sim_counts(sim).exchange_words, phase->words);
        sim_destroy(sim);
    }
}

/* The release is 150 cycles after the last announcement of all tiles, event 0 a call later, and the
 * row's end is its events after that. */
static void phase_times_follow_the_rules(void **state)
{
    (void)state;
    const Phase phase = {0, 53, 7};
    Sim *sim = machine(2, false);
    assert_int_equal(run_phase(sim, &phase), SIM_COMPLETE);
    uint32_t count;
    const SimPhase *measured = sim_phases(sim, &count);
    /* Program: setzi 0, st32 6, delay 7 .. 7 + d, setzi, put 6 later, put, sync or sans. */
    uint64_t last = 0;
    for (uint32_t tile = 0; tile < TILES; tile++) {
        uint64_t sync = 7 + (1 + tile * 7 % 300) + 6 + 2;
        last = sync > last ? sync : last;
    }
    assert_int_equal(measured->released, last + 150);
    assert_int_equal(measured->event0, last + 150 + 8);
    assert_int_equal(measured->entered, 6); /* the store is the last work of the active tiles */
    int start = 23, select = 1, write = select + 52, end = write + 7 + 5;
    (void)start;
    assert_int_equal(measured->ended - measured->event0, end);
    sim_destroy(sim);
}

static uint64_t digest(Sim *sim)
{
    uint64_t hash = 0;
    for (uint32_t tile = 0; tile < TILES; tile++) {
        hash = hash_bytes(sim_memory(sim, tile), SRAM_BYTES / 2, hash);
        for (uint32_t context = 0; context < 7; context++) {
            SimContext registers;
            sim_get_context(sim, tile, context, &registers);
            hash = hash_bytes(&registers, sizeof registers, hash);
        }
    }
    return hash;
}

static void threads_make_no_difference(void **state)
{
    (void)state;
    const Phase phase = {700, 3, 21};
    uint64_t hashes[3], cycles[3];
    for (unsigned i = 0; i < 3; i++) {
        Sim *sim = machine(1 + 2 * i, false);
        assert_int_equal(run_phase(sim, &phase), SIM_COMPLETE);
        hashes[i] = digest(sim);
        cycles[i] = sim_cycle(sim, 3);
        sim_destroy(sim);
    }
    assert_int_equal(hashes[0], hashes[1]);
    assert_int_equal(hashes[0], hashes[2]);
    assert_int_equal(cycles[0], cycles[2]);
}

static void the_earliest_fault_is_reported_for_any_threads(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 4; threads += 3) {
        Sim *sim = machine(threads, false);
        for (uint32_t tile = 0; tile < TILES; tile++) {
            Program code = {.address = CODE};
            EMIT(&code, delay, 1000 - (tile == 900 ? 10 : 0));
            EMIT(&code, trap, tile == 900);
            load_program(sim, tile, &code);
            sim_set_entry(sim, tile, CODE);
        }
        assert_int_equal(sim_run(sim), SIM_FAULT);
        assert_int_equal(sim_fault(sim)->tile, 900);
        assert_int_equal(sim_fault(sim)->cycle, 990);
        assert_int_equal(sim_fault(sim)->type, EXCEPTION_PBRK1);
        sim_destroy(sim);
    }
}

static void the_host_is_met_and_releases(void **state)
{
    (void)state;
    Sim *sim = machine(2, false);
    for (uint32_t tile = 0; tile < TILES; tile++) {
        Program code = {.address = CODE};
        EMIT(&code, delay, 10 + (int)tile % 5);
        if (tile % 3 == 0) {
            EMIT(&code, sans, 1);
            EMIT(&code, sync, 1);
        } else {
            EMIT(&code, sync, tile == 7 ? 15 : 7);
        }
        uint32_t on = EMIT(&code, setzi_mmmn_zi, 4, (int)tile);
        emit_completion(&code);
        load_program(sim, tile, &code);
        sim_set_entry(sim, tile, CODE);
        sim_watch(sim, tile, on);
    }
    assert_int_equal(sim_run(sim), SIM_RENDEZVOUS);
    poke(sim, 5, DATA, 5); /* here the host moves its data */
    assert_int_equal(sim_run(sim), SIM_COMPLETE);
    for (uint32_t tile = 0; tile < TILES; tile++) {
        uint64_t cycle;
        assert_true(sim_watched(sim, tile, &cycle));
        assert_int_equal(cycle, 14 + 1000); /* the last one came in 14 */
    }
    sim_destroy(sim);
}

static void barriers_that_not_all_reach_are_faults(void **state)
{
    (void)state;
    static const int ends[][2] = {{3, 7}, {3, -1}, {7, -1}, {3, 4}};
    for (size_t k = 0; k < countof(ends); k++) {
        Sim *sim = machine(1, false);
        for (uint32_t tile = 0; tile < TILES; tile++) {
            Program code = {.address = CODE};
            int zone = ends[k][tile == 1000];
            if (zone >= 0)
                EMIT(&code, sync, zone);
            emit_completion(&code);
            load_program(sim, tile, &code);
            sim_set_entry(sim, tile, CODE);
        }
        assert_int_equal(sim_run(sim), SIM_FAULT);
        assert_int_equal(sim_fault(sim)->type, 0);
        assert_int_equal(sim_fault(sim)->pc, CODE);
        assert_non_null(strstr(sim_fault(sim)->message, "tile 1000"));
        sim_destroy(sim);
    }
}

static void completion_needs_its_word(void **state)
{
    (void)state;
    Sim *sim = one_tile();
    Program code = {.address = CODE};
    EMIT(&code, br_mmmn, MZERO);
    load_program(sim, 0, &code);
    sim_set_entry(sim, 0, CODE);
    assert_int_equal(sim_run(sim), SIM_FAULT);
    assert_int_equal(sim_fault(sim)->type, EXCEPTION_INVALID_PC);
    assert_int_equal(sim_fault(sim)->pc, 0);
    poke(sim, 0, STATE_BASE + STATE_COMPLETION, 1);
    sim_set_entry(sim, 0, CODE);
    assert_int_equal(sim_run(sim), SIM_COMPLETE);
    sim_destroy(sim);
}

/* A tile that works while others exchange is not held up by their words, and does not hold them. */
static void workers_that_run_across_a_barrier_keep_their_order(void **state)
{
    (void)state;
    Sim *sim = one_tile();
    Program code = {.address = CODE}, worker = {.address = WORKER_CODE};
    EMIT(&code, run_mmmn_zi, 0, MZERO, ISA_REGION_BASE + 0x14000);
    EMIT(&code, sync, 3); /* released 150 later, the worker goes on */
    EMIT(&code, st32_mmmn_zi, 1, MZERO, 0, 1);
    EMIT(&code, sync, 2);
    EMIT(&code, br_mmmn, 10);
    /* Counts until the supervisor's word is there. */
    uint32_t loop = EMIT(&worker, ld32_mmmn_zi, 13, MZERO, 0, 1);
    EMIT(&worker, add_mmmn_si, 2, 2, 1);
    EMIT(&worker, brz_mmmn_zi, 1, loop);
    EMIT(&worker, exitz_mmmn, MZERO);
    load_program(sim, 0, &code);
    load_program(sim, 0, &worker);
    prepare_registers(sim, 0, WORKER_CODE, DATA);
    call(sim, CODE);
    SimContext registers;
    sim_get_context(sim, 0, 1, &registers);
    /* run in 0, the worker loads in 12, 30, 48 ...; the store is in 151: nine loads see nothing. */
    assert_int_equal(registers.m[2], 9);
    sim_destroy(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launch_gives_base_and_formats),
        cmocka_unit_test(run_takes_the_lowest_idle_worker),
        cmocka_unit_test(exit_status_is_combined),
        cmocka_unit_test(races_resolve_in_barrel_order),
        cmocka_unit_test(supervisor_sees_a_running_workers_stores),
        cmocka_unit_test(patched_code_runs_as_patched),
        cmocka_unit_test(a_phase_delivers_its_words),
        cmocka_unit_test(phase_times_follow_the_rules),
        cmocka_unit_test(threads_make_no_difference),
        cmocka_unit_test(the_earliest_fault_is_reported_for_any_threads),
        cmocka_unit_test(the_host_is_met_and_releases),
        cmocka_unit_test(barriers_that_not_all_reach_are_faults),
        cmocka_unit_test(completion_needs_its_word),
        cmocka_unit_test(workers_that_run_across_a_barrier_keep_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
