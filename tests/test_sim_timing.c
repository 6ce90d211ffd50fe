/* libraries: sim */
/* test_sim_timing.c - when instructions issue: the supervisor's results, branches, launches and
 * joins, the workers' slots, rpt and instructions of several slots (timing.md 1). Every case is a
 * program of a few words whose issue cycles are written down from the rules. */
#include "sim_program.h"

#include <string.h>

typedef struct Issue {
    uint32_t context;
    uint64_t cycle;
    uint32_t pc;
} Issue;

typedef struct Issues {
    Issue items[512];
    uint32_t count;
} Issues;

static void record(void *context, uint32_t tile, uint32_t executing, uint64_t cycle, uint32_t pc,
                   const Insn *first, const Insn *second, const SimContext *after)
{
    Issues *issues = context;
    (void)tile, (void)first, (void)second, (void)after;
    if (issues->count < countof(issues->items))
        issues->items[issues->count++] = (Issue){executing, cycle, pc};
}

static const Issue *find(const Issues *issues, uint32_t context, uint32_t pc)
{
    for (uint32_t i = 0; i < issues->count; i++)
        if (issues->items[i].context == context && issues->items[i].pc == pc)
            return &issues->items[i];
    fail_msg("context %u never issued 0x%x", context, pc);
    return NULL;
}

static Issues call_and_record(const Program *supervisor, const Program *worker, uint64_t *cycles)
{
    Issues issues = {0};
    Sim *sim = one_tile();
    load_program(sim, 0, supervisor);
    if (worker)
        load_program(sim, 0, worker);
    sim_trace(sim, record, &issues);
    if (sim_call(sim, 0, 0, supervisor->address, cycles) != SIM_RETURNED)
        fail_msg("%s", sim_fault(sim)->message);
    sim_destroy(sim);
    return issues;
}

static void expect_cycles(const Program *program, const uint64_t *expected, size_t count,
                          uint64_t total)
{
    uint64_t cycles;
    Issues issues = call_and_record(program, NULL, &cycles);
    assert_int_equal(issues.count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(issues.items[i].cycle, expected[i]);
    assert_int_equal(cycles, total);
}

static void independent_instructions_issue_every_cycle(void **state)
{
    (void)state;
    Program code = {.address = CODE};
    EMIT(&code, setzi_mmmn_zi, 0, 1);
    EMIT(&code, setzi_mmmn_zi, 1, 2);
    EMIT(&code, setzi_mmmn_zi, 2, 3);
    EMIT(&code, br_mmmn, 10);
    expect_cycles(&code, (uint64_t[]){0, 1, 2, 3}, 4, 3 + 8);
}

static void results_are_ready_after_six_cycles(void **state)
{
    (void)state;
    Program code = {.address = CODE};
    EMIT(&code, setzi_mmmn_zi, 0, DATA);        /* 0 */
    EMIT(&code, ld32_mmmn_zi, 0, MZERO, 0, 1);  /* 6: needs m0 */
    EMIT(&code, setzi_mmmn_zi, 2, 3);           /* 7 */
    EMIT(&code, add_mmmn, 3, 1, 2);             /* 13: m2 is the later one */
    EMIT(&code, setzi_mmmn_zi, 3, 0);           /* 14: a write waits for nobody */
    EMIT(&code, st32_mmmn_zi, 0, MZERO, 0, 15); /* 15: $mzero is always ready */
    EMIT(&code, br_mmmn, 10);                   /* 16 */
    expect_cycles(&code, (uint64_t[]){0, 6, 7, 13, 14, 15, 16}, 7, 24);
}

static void stepped_pointers_are_results_too(void **state)
{
    (void)state;
    Program code = {.address = CODE};
    EMIT(&code, setzi_mmmn_zi, 0, DATA);           /* 0 */
    EMIT(&code, ld32step_mmmn_si, MZERO, 0, 1, 1); /* 6 */
    EMIT(&code, ld32step_mmmn_si, MZERO, 0, 1, 2); /* 12 */
    EMIT(&code, put_mmmn_zi, 1, 0x70);             /* 13: m1 of cycle 6 is there */
    EMIT(&code, br_mmmn, 10);                      /* 14 */
    expect_cycles(&code, (uint64_t[]){0, 6, 12, 13, 14}, 5, 22);
}

static void taken_branches_take_eight_cycles(void **state)
{
    (void)state;
    Program code = {.address = CODE};
    EMIT(&code, brz_mmmn_zi, MZERO, CODE + 8);  /* 0, taken */
    EMIT(&code, trap, 0);                       /* not reached */
    EMIT(&code, brnz_mmmn_zi, MZERO, CODE + 4); /* 8, not taken */
    EMIT(&code, call_mmmn_zi, 9, CODE + 24);    /* 9 */
    EMIT(&code, bri_mmmn_zi, CODE + 32);        /* 25: back from the call */
    EMIT(&code, trap, 0);
    EMIT(&code, br_mmmn, 9); /* 17: m9 of cycle 9 is ready */
    EMIT(&code, trap, 0);
    EMIT(&code, br_mmmn, 10); /* 33 */
    expect_cycles(&code, (uint64_t[]){0, 8, 9, 17, 25, 33}, 6, 41);
}

/* The published copy loop of six instructions takes 23 cycles an iteration (amp-kernels.md 7.2). */
static void copy_loop_takes_23_cycles(void **state)
{
    (void)state;
    uint64_t cycles[2];
    for (uint32_t n = 0; n < 2; n++) {
        Program code = {.address = CODE};
        EMIT(&code, setzi_mmmn_zi, 2, DATA + 0x400);
        EMIT(&code, setzi_mmmn_zi, 3, DATA);
        EMIT(&code, setzi_mmmn_zi, 4, 1 + (int32_t)n);
        uint32_t loop = EMIT(&code, ld32_mmmn_zi, 3, MZERO, 0, 5);
        EMIT(&code, st32_mmmn_zi, 2, MZERO, 0, 5);
        EMIT(&code, add_mmmn_si, 2, 2, 4);
        EMIT(&code, add_mmmn_si, 3, 3, 4);
        EMIT(&code, add_mmmn_si, 4, 4, -1);
        EMIT(&code, brnz_mmmn_zi, 4, loop);
        EMIT(&code, br_mmmn, 10);
        call_and_record(&code, NULL, &cycles[n]);
    }
    assert_int_equal(cycles[1] - cycles[0], 23);
}

static void weights_load_one_a_cycle(void **state)
{
    (void)state;
    Program code = {.address = CODE};
    EMIT(&code, setzi_mmmn_zi, 0, 0x80000);
    EMIT(&code, put_mmmn_zi, 0, 0x50);
    EMIT(&code, ld64putcs_mmmn_zi, 0);
    EMIT(&code, ld64putcs_mmmn_zi, 1);
    EMIT(&code, ld128putcs_mmmn_zi, 2);
    EMIT(&code, br_mmmn, 10);
    expect_cycles(&code, (uint64_t[]){0, 6, 7, 8, 9, 10}, 6, 18);
}

static void delay_takes_its_count(void **state)
{
    (void)state;
    Program code = {.address = CODE};
    EMIT(&code, delay, 100);
    EMIT(&code, br_mmmn, 10);
    expect_cycles(&code, (uint64_t[]){0, 100}, 2, 108);
}

static Program launch_program(uint32_t launch)
{
    Program code = {.address = CODE};
    EMIT(&code, setzi_mmmn_zi, 0, WORKER_CODE); /* 0 */
    EMIT(&code, setzi_mmmn_zi, 1, DATA);        /* 1 */
    emit(&code, launch);                        /* 7 */
    EMIT(&code, sync, 2);                       /* 8 */
    EMIT(&code, br_mmmn, 10);
    return code;
}

static void runall_starts_each_worker_in_its_slot(void **state)
{
    (void)state;
    Program code = launch_program(isa_word(FORM_runall_mmmn_zi, 0, 1, 0));
    Program worker = {.address = WORKER_CODE};
    emit(&worker, NOP);
    EMIT(&worker, exitz_mmmn, MZERO);
    uint64_t cycles;
    Issues issues = call_and_record(&code, &worker, &cycles);
    for (uint32_t w = 0; w < 6; w++) {
        uint64_t first = find(&issues, 1 + w, WORKER_CODE)->cycle;
        assert_int_equal(first % 6, w);
        assert_in_range(first, 7 + 12, 7 + 12 + 5);
        assert_int_equal(find(&issues, 1 + w, WORKER_CODE + 4)->cycle, first + 6);
    }
    /* All slots are owned from the launch on: the sync issues after the first exit. Exits: worker 1
     * in 25 (19 + 6) .. worker 0 in 30. */
    assert_int_equal(find(&issues, 0, CODE + 12)->cycle, 31);
    assert_int_equal(find(&issues, 0, CODE + 16)->cycle, 30 + 14);
    assert_int_equal(cycles, 44 + 8);
}

static void supervisor_issues_in_slots_of_idle_workers(void **state)
{
    (void)state;
    Program code = launch_program(isa_word(FORM_run_mmmn_zi, 0, 2, ISA_REGION_BASE));
    Program worker = {.address = WORKER_CODE};
    for (int i = 0; i < 3; i++)
        emit(&worker, NOP);
    EMIT(&worker, exitz_mmmn, MZERO);
    uint64_t cycles;
    Issues issues = call_and_record(&code, &worker, &cycles);
    /* run in 6 (m0 of cycle 0; m2 is old); worker 0 from 18 on, exit in 36; only multiples of 6 are
     * the worker's. */
    assert_int_equal(find(&issues, 0, CODE + 8)->cycle, 6);
    assert_int_equal(find(&issues, 0, CODE + 12)->cycle, 7);
    assert_int_equal(find(&issues, 1, WORKER_CODE)->cycle, 18);
    assert_int_equal(find(&issues, 1, WORKER_CODE + 12)->cycle, 36);
    assert_int_equal(find(&issues, 0, CODE + 16)->cycle, 50);
}

static void join_of_workers_that_are_long_gone_takes_one_cycle(void **state)
{
    (void)state;
    Program code = {.address = CODE};
    EMIT(&code, sync, 2);
    EMIT(&code, br_mmmn, 10);
    expect_cycles(&code, (uint64_t[]){0, 1}, 2, 9);
}

static void run_worker(const Program *worker, Issues *issues, uint64_t *cycles)
{
    Sim *sim = one_tile();
    load_program(sim, 0, worker);
    sim_trace(sim, record, issues);
    if (sim_call(sim, 0, 3, worker->address, cycles) != SIM_RETURNED)
        fail_msg("%s", sim_fault(sim)->message);
    sim_destroy(sim);
}

static void every_worker_bundle_takes_one_slot(void **state)
{
    (void)state;
    Program code = {.address = WORKER_CODE};
    EMIT(&code, setzi_mmmn_zi, 0, 2);
    uint32_t loop = EMIT(&code, ld32_mmmn_zi, 13, MZERO, 0, 1);
    EMIT(&code, brnzdec_mmmn_zi, 0, loop);
    EMIT(&code, exitz_mmmn, MZERO);
    SimContext context;
    Sim *sim = one_tile();
    sim_get_context(sim, 0, 3, &context);
    context.m[13] = DATA;
    sim_set_context(sim, 0, 3, &context);
    load_program(sim, 0, &code);
    Issues issues = {0};
    uint64_t cycles;
    sim_trace(sim, record, &issues);
    assert_int_equal(sim_call(sim, 0, 3, code.address, &cycles), SIM_RETURNED);
    sim_destroy(sim);
    assert_int_equal(issues.count, 1 + 3 * 2 + 1);
    for (uint32_t i = 0; i < issues.count; i++)
        assert_int_equal(issues.items[i].cycle, 2 + 6 * i);
    assert_int_equal(cycles, 6 * 8);
}

static void rpt_has_no_overhead(void **state)
{
    (void)state;
    Program code = {.address = WORKER_CODE};
    emit_bundle(&code, isa_word(FORM_rpt_mmmn_zi_zi, 5, 1), FNOP);
    emit_bundle(&code, NOP, FNOP);
    emit_bundle(&code, isa_word(FORM_add_mmmn_si, 0, 0, 1), FNOP);
    EMIT(&code, exitz_mmmn, MZERO);
    Issues issues = {0};
    uint64_t cycles;
    run_worker(&code, &issues, &cycles);
    assert_int_equal(issues.count, 1 + 5 * 2 + 1);
    assert_int_equal(cycles, 6 * 12);
}

static void elementary_functions_take_their_slots(void **state)
{
    (void)state;
    static const struct {
        uint32_t form, slots;
    } FUNCTIONS[] = {
        {FORM_f16v2exp_aaan, 1},  {FORM_f16v2exp2_aaan, 1}, {FORM_f16v2tanh_aaan, 1},
        {FORM_f16v2sigm_aaan, 2}, {FORM_f16v2ln_aaan, 2},   {FORM_f16v2log2_aaan, 2},
        {FORM_f32exp_aaan, 1},    {FORM_f32exp2_aaan, 1},   {FORM_f32oox_aaan, 1},
        {FORM_f32oorx_aaan, 4},   {FORM_f32sqrt_aaan, 5},   {FORM_f32tanh_aaan, 5},
        {FORM_f32sigm_aaan, 5},   {FORM_f32ln_aaan, 6},     {FORM_f32log2_aaan, 6},
    };
    for (size_t i = 0; i < countof(FUNCTIONS); i++) {
        Program code = {.address = WORKER_CODE};
        emit(&code, isa_word(FUNCTIONS[i].form, 0, 1));
        emit_bundle(&code, NOP, isa_word(FUNCTIONS[i].form, 0, 1));
        EMIT(&code, exitz_mmmn, MZERO);
        Issues issues = {0};
        uint64_t cycles;
        run_worker(&code, &issues, &cycles);
        assert_int_equal(cycles, 6 * (2 * FUNCTIONS[i].slots + 1));
    }
    Program code = {.address = WORKER_CODE};
    EMIT(&code, f32div_aaan, 0, 1, 2);
    EMIT(&code, exitz_mmmn, MZERO);
    Issues issues = {0};
    uint64_t cycles;
    run_worker(&code, &issues, &cycles);
    assert_int_equal(cycles, 6 * 6);
}

/* Worker w's own counter reads its cycles; the supervisor's reads the same clock. */
static void counters_read_the_issue_cycle(void **state)
{
    (void)state;
    Program code = {.address = CODE};
    EMIT(&code, setzi_mmmn_zi, 0, WORKER_CODE);
    EMIT(&code, setzi_mmmn_zi, 1, DATA);
    uint32_t read = EMIT(&code, get_mmmn_zi, 4, 0x60);
    EMIT(&code, runall_mmmn_zi, 0, 1, 1);
    EMIT(&code, sync, 2);
    EMIT(&code, br_mmmn, 10);
    Program worker = {.address = WORKER_CODE};
    EMIT(&worker, get_mmmn_zi, 0, 0x60);
    EMIT(&worker, st32_mmmn_zi, 13, MZERO, 0, 0);
    EMIT(&worker, exitz_mmmn, MZERO);
    Issues issues = {0};
    Sim *sim = one_tile();
    load_program(sim, 0, &code);
    load_program(sim, 0, &worker);
    sim_trace(sim, record, &issues);
    uint64_t cycles;
    assert_int_equal(sim_call(sim, 0, 0, CODE, &cycles), SIM_RETURNED);
    SimContext supervisor;
    sim_get_context(sim, 0, 0, &supervisor);
    assert_int_equal(supervisor.m[4], find(&issues, 0, read)->cycle);
    for (uint32_t w = 0; w < 6; w++)
        assert_int_equal(peek(sim, 0, DATA + 4 * w), find(&issues, 1 + w, WORKER_CODE)->cycle);
    sim_destroy(sim);
}

static void calls_repeat_exactly(void **state)
{
    (void)state;
    Program code = launch_program(isa_word(FORM_runall_mmmn_zi, 0, 1, 0));
    Program worker = {.address = WORKER_CODE};
    EMIT(&worker, exitz_mmmn, MZERO);
    Sim *sim = one_tile();
    load_program(sim, 0, &code);
    load_program(sim, 0, &worker);
    uint64_t first, next;
    assert_int_equal(sim_call(sim, 0, 0, CODE, &first), SIM_RETURNED);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(sim_call(sim, 0, 0, CODE, &next), SIM_RETURNED);
        assert_int_equal(next, first);
    }
    sim_destroy(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(independent_instructions_issue_every_cycle),
        cmocka_unit_test(results_are_ready_after_six_cycles),
        cmocka_unit_test(stepped_pointers_are_results_too),
        cmocka_unit_test(taken_branches_take_eight_cycles),
        cmocka_unit_test(copy_loop_takes_23_cycles),
        cmocka_unit_test(weights_load_one_a_cycle),
        cmocka_unit_test(delay_takes_its_count),
        cmocka_unit_test(runall_starts_each_worker_in_its_slot),
        cmocka_unit_test(supervisor_issues_in_slots_of_idle_workers),
        cmocka_unit_test(join_of_workers_that_are_long_gone_takes_one_cycle),
        cmocka_unit_test(every_worker_bundle_takes_one_slot),
        cmocka_unit_test(rpt_has_no_overhead),
        cmocka_unit_test(elementary_functions_take_their_slots),
        cmocka_unit_test(counters_read_the_issue_cycle),
        cmocka_unit_test(calls_repeat_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
