/* libraries: sim */
/* test_sim_faults.c - every kind of fault: its type, context, PC and cycle, and that the faulting
 * instruction has left nothing behind. */
#include "sim_program.h"

#include <string.h>

enum { SECOND = CODE + 4, REGION1 = 0x80000 };

/* Runs `code` and expects the fault at `pc`. The answer is to be destroyed by the caller. */
static Sim *expect_fault(uint32_t context, const Program *code, const SimContext *start,
                         uint32_t type, uint32_t pc, uint64_t cycle)
{
    Sim *sim = one_tile();
    load_program(sim, 0, code);
    SimContext registers;
    sim_get_context(sim, 0, context, &registers);
    if (start)
        memcpy(registers.m, start->m, 12 * sizeof start->m[0]);
    sim_set_context(sim, 0, context, &registers);
    uint64_t cycles;
    assert_int_equal(sim_call(sim, 0, context, code->address, &cycles), SIM_FAULT);
    const SimFault *fault = sim_fault(sim);
    if (fault->type != type || fault->pc != pc || fault->cycle != cycle)
        fail_msg("type %u pc 0x%x cycle %llu: %s: %s", fault->type, fault->pc,
                 (unsigned long long)fault->cycle, fault->instruction, fault->message);
    assert_true(fault->set);
    assert_int_equal(fault->context, context);
    assert_true(fault->message[0] != 0);
    SimContext after;
    sim_get_context(sim, 0, context, &after);
    assert_int_equal(after.pc, pc);
    if (type)
        assert_int_equal(after.csr[1] >> 4 & 15, type); /* SSR or WSR */
    return sim;
}

/* One faulting word after a nop, in worker 0 (cycle 6) and, if it may, in the supervisor (cycle 1).
 */
static void expect_word_fault(uint32_t word, bool supervisor, const SimContext *start,
                              uint32_t type)
{
    Program code = {.address = CODE};
    emit(&code, NOP);
    emit(&code, word);
    sim_destroy(expect_fault(1, &code, start, type, SECOND, 6));
    if (supervisor)
        sim_destroy(expect_fault(0, &code, start, type, SECOND, 1));
}

static void undefined_words(void **state)
{
    (void)state;
    Insn insn;
    uint32_t found = 0;
    for (uint32_t word = 0x12345; found < 50; word = word * 1664525 + 1013904223) {
        if (isa_decode(word, 0, MODE_BOTH, &insn) || word >> 31)
            continue;
        expect_word_fault(word, true, NULL, EXCEPTION_INVALID_INSTR);
        found++;
    }
}

static void instructions_of_the_other_mode(void **state)
{
    (void)state;
    Program code = {.address = CODE};
    EMIT(&code, sync, 3); /* in a worker */
    sim_destroy(expect_fault(1, &code, NULL, EXCEPTION_INVALID_INSTR, CODE, 0));
    Program worker = {.address = CODE};
    EMIT(&worker, exitz_mmmn, MZERO); /* in the supervisor */
    sim_destroy(expect_fault(0, &worker, NULL, EXCEPTION_INVALID_INSTR, CODE, 0));
    Program aux = {.address = CODE};
    EMIT(&aux, f32add_aaan, 0, 1, 2);
    sim_destroy(expect_fault(0, &aux, NULL, EXCEPTION_INVALID_INSTR, CODE, 0));
    Program bundle = {.address = CODE};
    emit_bundle(&bundle, NOP, FNOP);
    sim_destroy(expect_fault(0, &bundle, NULL, EXCEPTION_INVALID_INSTR, CODE, 0));
}

static void bundles_that_are_none(void **state)
{
    (void)state;
    const uint32_t pairs[][2] = {
        {NOP, NOP},                            /* two of the main lane */
        {FNOP, FNOP},                          /* two of the other */
        {FNOP, NOP},                           /* exchanged */
        {isa_word(FORM_exitz_mmmn, 15), FNOP}, /* can not be in a bundle */
    };
    for (size_t i = 0; i < countof(pairs); i++) {
        Program code = {.address = CODE};
        emit_bundle(&code, pairs[i][0], pairs[i][1]);
        sim_destroy(expect_fault(1, &code, NULL, EXCEPTION_INVALID_INSTR, CODE, 0));
    }
    Program twice = {.address = CODE}; /* both lanes write $a1 */
    emit_bundle(&twice, isa_word(FORM_ld64_mman_zi, 0, MZERO, 0, 0),
                isa_word(FORM_setzi_aaan_zi, 1, 5));
    sim_destroy(expect_fault(1, &twice, NULL, EXCEPTION_INVALID_OP, CODE, 0));
}

static void bad_addresses(void **state)
{
    (void)state;
    SimContext start = {0};
    const struct {
        uint32_t address;
        uint32_t word;
        bool supervisor;
    } cases[] = {
        {SRAM_BASE - 4, isa_word(FORM_ld32_mmmn_zi, 0, MZERO, 0, 1), true},
        {SRAM_END, isa_word(FORM_ld32_mmmn_zi, 0, MZERO, 0, 1), true},
        {SRAM_END - 4, isa_word(FORM_ld64_mman_zi, 0, MZERO, 0, 0), false},
        {0xfffffffc, isa_word(FORM_st32_mmmn_zi, 0, MZERO, 0, 1), true},
        {DATA + 1, isa_word(FORM_ldz16_mmmn_zi, 0, MZERO, 0, 1), true},
        {DATA + 2, isa_word(FORM_ld32_mmmn_zi, 0, MZERO, 0, 1), true},
        {DATA + 4, isa_word(FORM_ld64step_mmbn_si, MZERO, 0, 1, 0), false},
        {DATA + 4, isa_word(FORM_st64step_mbmn_si, MZERO, 0, 1, 0), false},
        {DATA, isa_word(FORM_ld128_mman_zi, 0, MZERO, 0, 0), false}, /* region 0 */
        {REGION1 + 8, isa_word(FORM_ld128_mman_zi, 0, MZERO, 0, 0), false},
    };
    for (size_t i = 0; i < countof(cases); i++) {
        start.m[0] = cases[i].address;
        expect_word_fault(cases[i].word, cases[i].supervisor, &start, EXCEPTION_INVALID_ADDR);
    }
}

/* m0:1 packs addresses 0 and 1, and 2 by tapack's rule; all in the first element that is named. */
static void set_triple(SimContext *start, uint32_t a0, uint32_t a1, uint32_t a2)
{
    start->m[0] = a0 | a2 << 21;
    start->m[1] = a1 | (a2 >> 11) << 21;
}

static void run_triple(uint32_t word, uint32_t a0, uint32_t a1, uint32_t a2, bool conflict)
{
    SimContext start = {0};
    set_triple(&start, a0, a1, a2);
    Program code = {.address = CODE};
    emit(&code, word);
    EMIT(&code, exitz_mmmn, MZERO);
    if (conflict) {
        Sim *sim = expect_fault(1, &code, &start, EXCEPTION_CONFLICT, CODE, 0);
        SimContext after;
        sim_get_context(sim, 0, 1, &after);
        assert_int_equal(after.m[0], start.m[0]); /* the pointers have not moved */
        assert_int_equal(after.m[1], start.m[1]);
        sim_destroy(sim);
        return;
    }
    Sim *sim = one_tile();
    load_program(sim, 0, &code);
    SimContext registers;
    sim_get_context(sim, 0, 1, &registers);
    memcpy(registers.m, start.m, 12 * sizeof start.m[0]);
    sim_set_context(sim, 0, 1, &registers);
    uint64_t cycles;
    if (sim_call(sim, 0, 1, CODE, &cycles) != SIM_RETURNED)
        fail_msg("0x%x 0x%x 0x%x: %s", a0, a1, a2, sim_fault(sim)->message);
    sim_destroy(sim);
}

static void element_conflicts(void **state)
{
    (void)state;
    uint32_t dual = isa_word(FORM_ld2x64pace_mmbn_ef, MZERO, 0, 0, 2, 0);
    uint32_t triple = isa_word(FORM_ld2xst64pace_mbbn_ef, MZERO, 0, 0, 4, 0);
    uint32_t load_store = isa_word(FORM_ldst64pace_mbbn_ef, MZERO, 0, 0, 2, 0);
    /* Region 0: the 16 KiB element decides. */
    run_triple(dual, DATA, DATA + 8, 0, true);
    run_triple(dual, DATA, DATA + 0x3ff8, 0, true);
    run_triple(dual, DATA, DATA + 0x4000, 0, false);
    run_triple(dual, DATA, REGION1, 0, false);
    /* Region 1: even and odd long words of a 32 KiB group lie in different elements. */
    run_triple(dual, REGION1, REGION1 + 16, 0, true);
    run_triple(dual, REGION1, REGION1 + 8, 0, false);
    run_triple(dual, REGION1 + 8, REGION1 + 0x7ff8, 0, true);
    run_triple(dual, REGION1, REGION1 + 0x7ff8, 0, false);
    run_triple(dual, REGION1, REGION1 + 0x8000, 0, false); /* another group */
    /* Three accesses: left, C read and C written, as the accumulating GEMM has them. */
    run_triple(triple, DATA, REGION1 + 88, REGION1, false);
    run_triple(triple, DATA, REGION1 + 96, REGION1, true);
    run_triple(triple, REGION1 + 0x10, REGION1 + 88, REGION1, true);
    run_triple(triple, REGION1 + 0x18, REGION1 + 88, REGION1, true);
    run_triple(load_store, DATA, 0, DATA + 64, true);
    run_triple(load_store, DATA, 0, DATA + 0x8000, false);
}

static void operand_rules(void **state)
{
    (void)state;
    SimContext start = {0};
    set_triple(&start, DATA, REGION1, DATA + 0x8000);
    expect_word_fault(isa_word(FORM_ld2x64pace_mmbn_ef, MZERO, 0, 2, 2, 0), false, &start,
                      EXCEPTION_INVALID_OP); /* equal destinations */
    expect_word_fault(isa_word(FORM_ld2x64pace_mmbn_ef, MZERO, 0, 14, 14, 0), false, &start,
                      EXCEPTION_INVALID_OP);
    expect_word_fault(isa_word(FORM_ld64a32pace_mmbn_ef, MZERO, 0, 2, 3, 0), false, &start,
                      EXCEPTION_INVALID_OP);
    expect_word_fault(isa_word(FORM_get_mmmn_zi, 0, 0xee), true, NULL, EXCEPTION_INVALID_OP);
    expect_word_fault(isa_word(FORM_put_mmmn_zi, 0, 0xff), true, NULL, EXCEPTION_INVALID_OP);
    expect_word_fault(isa_word(FORM_put_mmmn_zi, 0, 0x60), true, NULL, EXCEPTION_INVALID_OP);
    expect_word_fault(isa_word(FORM_uput_aaan_zi, 0, 0x40), false, NULL, EXCEPTION_INVALID_OP);
}

static void traps(void **state)
{
    (void)state;
    for (int n = 0; n < 16; n++)
        expect_word_fault(isa_word(FORM_trap, n), true, NULL,
                          n & 1 ? EXCEPTION_PBRK1 : EXCEPTION_PBRK0);
}

static void branches_to_nowhere(void **state)
{
    (void)state;
    const uint32_t targets[] = {0, SRAM_BASE - 4, EXECUTABLE_END, SRAM_END, CODE + 2, 0xfffffffc};
    for (size_t i = 0; i < countof(targets); i++)
        for (uint32_t context = 0; context < 2; context++) {
            SimContext start = {.m = {targets[i]}};
            Program code = {.address = CODE};
            EMIT(&code, br_mmmn, 0);
            Sim *sim = expect_fault(context, &code, &start, EXCEPTION_INVALID_PC, targets[i], 0);
            assert_string_equal(sim_fault(sim)->instruction, "br $m0");
            sim_destroy(sim);
        }
}

static void code_that_runs_out_of_region_0(void **state)
{
    (void)state;
    Program code = {.address = EXECUTABLE_END - 8};
    emit(&code, NOP);
    emit(&code, NOP);
    sim_destroy(expect_fault(1, &code, NULL, EXCEPTION_INVALID_PC, EXECUTABLE_END, 12));
    sim_destroy(expect_fault(0, &code, NULL, EXCEPTION_INVALID_PC, EXECUTABLE_END, 2));
    Program cut = {.address = EXECUTABLE_END - 4};
    emit(&cut, NOP | 1u << 31); /* the second half would be data */
    sim_destroy(expect_fault(1, &cut, NULL, EXCEPTION_INVALID_PC, EXECUTABLE_END - 4, 0));
}

static void bodies_of_rpt(void **state)
{
    (void)state;
    const uint32_t bodies[][2] = {
        {NOP, 0}, /* a single instruction */
        {isa_word(FORM_brz_mmmn_zi, 15, CODE) | 1u << 31, FNOP | 1u << 31},
        {isa_word(FORM_get_mmmn_zi, 0, 1) | 1u << 31, FNOP | 1u << 31},
        {NOP | 1u << 31, isa_word(FORM_uget_aaan_zi, 0, 0) | 1u << 31},
    };
    for (size_t i = 0; i < countof(bodies); i++) {
        Program code = {.address = CODE};
        emit_bundle(&code, isa_word(FORM_rpt_mmmn_zi_zi, 3, 0), FNOP);
        emit(&code, bodies[i][0]);
        emit(&code, bodies[i][1]);
        Sim *sim = expect_fault(1, &code, NULL, EXCEPTION_INVALID_INSTR, CODE + 8, 6);
        SimContext after;
        sim_get_context(sim, 0, 1, &after);
        assert_int_equal(after.csr[1] >> 9 & 1, 1); /* WSR.ERPT */
        assert_int_equal(after.csr[4], 3);          /* the count is not touched */
        sim_destroy(sim);
    }
    Program misaligned = {.address = CODE};
    EMIT(&misaligned, rpt_mmmn_zi_zi, 3, 0);
    sim_destroy(expect_fault(1, &misaligned, NULL, EXCEPTION_INVALID_INSTR, CODE, 0));
}

/* A floating-point exception in the auxiliary lane takes the main lane's work back. */
static void a_fault_in_one_lane_stops_both(void **state)
{
    (void)state;
    enum { OVERFLOW_ENABLED = 1 << 2 };
    Sim *sim = one_tile();
    Program code = {.address = CODE};
    emit_bundle(&code, isa_word(FORM_st64step_mbmn_si, MZERO, 0, 1, 0),
                isa_word(FORM_f16v2add_aaan, 4, 2, 2));
    load_program(sim, 0, &code);
    poke(sim, 0, DATA, 0x11111111);
    SimContext context, after;
    sim_get_context(sim, 0, 1, &context);
    context.m[0] = DATA;
    context.a[2] = 0x7bff7bff; /* the largest half: the sum overflows */
    context.csr[0x102] = OVERFLOW_ENABLED;
    sim_set_context(sim, 0, 1, &context);
    uint64_t cycles;
    assert_int_equal(sim_call(sim, 0, 1, CODE, &cycles), SIM_FAULT);
    assert_int_equal(sim_fault(sim)->type, EXCEPTION_FP);
    sim_get_context(sim, 0, 1, &after);
    assert_int_equal(after.m[0], DATA);
    assert_int_equal(after.a[4], 0);
    assert_int_equal(peek(sim, 0, DATA), 0x11111111);
    assert_int_equal(after.csr[0x100] & OVERFLOW_ENABLED, OVERFLOW_ENABLED); /* FP_STS tells why */
    sim_destroy(sim);
}

static void bad_launches(void **state)
{
    (void)state;
    SimContext start = {.m = {WORKER_CODE, DATA, WORKER_CODE + 2, DATA + 1, EXECUTABLE_END}};
    const uint32_t words[] = {
        isa_word(FORM_runall_mmmn_zi, 2, 1, 0),
        isa_word(FORM_runall_mmmn_zi, 0, 3, 0),
        isa_word(FORM_runall_mmmn_zi, 4, 1, 0),
        isa_word(FORM_run_mmmn_zi, 2, 1, ISA_REGION_BASE),
        isa_word(FORM_run_mmmn_zi, 0, 3, ISA_REGION_BASE),
    };
    for (size_t i = 0; i < countof(words); i++) {
        Program code = {.address = CODE};
        emit(&code, words[i]);
        sim_destroy(expect_fault(0, &code, &start, EXCEPTION_INVALID_OP, CODE, 0));
    }
}

static void runall_over_running_workers(void **state)
{
    (void)state;
    SimContext start = {.m = {CODE + 12}};
    Program code = {.address = CODE};
    EMIT(&code, run_mmmn_zi, 0, MZERO, ISA_REGION_BASE); /* worker 0 loops for ever */
    EMIT(&code, delay, 30);
    EMIT(&code, runall_mmmn_zi, 0, MZERO, 0);
    EMIT(&code, bri_mmmn_zi, CODE + 12);
    Sim *sim = expect_fault(0, &code, &start, EXCEPTION_INVALID_OP, CODE + 8, 31);
    SimContext supervisor, worker;
    sim_get_context(sim, 0, 0, &supervisor);
    sim_get_context(sim, 0, 1, &worker);
    assert_int_equal(supervisor.csr[1] >> 3 & 1, 1);                 /* SSR.RAERR */
    assert_int_equal(worker.csr[1] >> 4 & 15, EXCEPTION_INVALID_OP); /* WSR.ETYPE */
    assert_int_equal(supervisor.csr[0x72], 3 | 3 << 2);              /* CTXT_STS */
    sim_destroy(sim);
}

static void base_of_a_running_worker(void **state)
{
    (void)state;
    SimContext start = {.m = {CODE + 12}};
    Program code = {.address = CODE};
    EMIT(&code, run_mmmn_zi, 0, MZERO, ISA_REGION_BASE);
    EMIT(&code, put_mmmn_zi, 1, 0x22); /* worker 1 is idle */
    EMIT(&code, put_mmmn_zi, 1, 0x21);
    EMIT(&code, bri_mmmn_zi, CODE + 12);
    sim_destroy(expect_fault(0, &code, &start, EXCEPTION_INVALID_OP, CODE + 8, 2));
}

static void worker_faults_name_the_worker(void **state)
{
    (void)state;
    Program code = {.address = CODE}, worker = {.address = WORKER_CODE};
    EMIT(&code, runall_mmmn_zi, 0, MZERO, 0);
    EMIT(&code, sync, 2);
    EMIT(&worker, get_mmmn_zi, 0, 1);
    EMIT(&worker, cmpeq_mmmn_si, 0, 0, 4);
    EMIT(&worker, brz_mmmn_zi, 0, WORKER_CODE + 16);
    EMIT(&worker, trap, 0);
    EMIT(&worker, exitz_mmmn, MZERO);
    Sim *sim = one_tile();
    load_program(sim, 0, &code);
    load_program(sim, 0, &worker);
    SimContext context;
    sim_get_context(sim, 0, 0, &context);
    context.m[0] = WORKER_CODE;
    sim_set_context(sim, 0, 0, &context);
    uint64_t cycles;
    assert_int_equal(sim_call(sim, 0, 0, CODE, &cycles), SIM_FAULT);
    const SimFault *fault = sim_fault(sim);
    assert_int_equal(fault->context, 5);
    assert_int_equal(fault->type, EXCEPTION_PBRK0);
    assert_int_equal(fault->pc, WORKER_CODE + 12);
    assert_int_equal(fault->cycle, 12 + 4 + 3 * 6); /* its fourth bundle */
    assert_string_equal(fault->instruction, "trap 0");
    sim_get_context(sim, 0, 0, &context);
    assert_int_equal(context.csr[0x72] >> 10 & 3, 2); /* CTXT_STS: a debug exception in worker 4 */
    sim_destroy(sim);
}

static void misuse_of_barriers(void **state)
{
    (void)state;
    expect_word_fault(isa_word(FORM_sync, 9), false, NULL, EXCEPTION_INVALID_INSTR);
    const struct {
        uint32_t words[2];
        uint32_t type, at;
        uint64_t cycle;
    } cases[] = {
        {{isa_word(FORM_sync, 9)}, EXCEPTION_INVALID_OP, 0, 0},
        {{isa_word(FORM_sans, 2)}, EXCEPTION_INVALID_OP, 0, 0},
        {{isa_word(FORM_sync, 1)}, 0, 0, 0},
        {{isa_word(FORM_sans, 0), isa_word(FORM_sans, 0)}, 0, 4, 1},
        {{isa_word(FORM_sans, 0), isa_word(FORM_sync, 3)}, 0, 4, 1},
    };
    for (size_t i = 0; i < countof(cases); i++) {
        Program code = {.address = CODE};
        emit(&code, cases[i].words[0]);
        emit(&code, cases[i].words[1]);
        sim_destroy(
            expect_fault(0, &code, NULL, cases[i].type, CODE + cases[i].at, cases[i].cycle));
    }
}

static void misuse_of_the_exchange(void **state)
{
    (void)state;
    Program outside = {.address = CODE};
    EMIT(&outside, sync, 3);
    EMIT(&outside, send, 2, 0x3ffff, 1); /* the last word address of 20 bits */
    sim_destroy(expect_fault(0, &outside, NULL, EXCEPTION_INVALID_ADDR, CODE + 4, 150));
    Program odd = {.address = CODE + 4};
    EMIT(&odd, sync, 3);
    EMIT(&odd, delay, 1);
    emit(&odd, isa_word(FORM_sendpicp, 1, 0, 0, 0));
    emit(&odd, 0);
    Sim *sim = one_tile(); /* sendpicp at CODE + 12 */
    sim_destroy(sim);
    sim_destroy(expect_fault(0, &odd, NULL, EXCEPTION_INVALID_INSTR, CODE + 12, 151));
    Program late = {.address = CODE};
    EMIT(&late, sync, 3);
    EMIT(&late, send, 2, DATA / 4, 1);
    EMIT(&late, ld32_mmmn_zi, 11, MZERO, 0, 1); /* ends the phase */
    EMIT(&late, send, 2, DATA / 4, 1);
    sim_destroy(expect_fault(0, &late, &(SimContext){.m = {[11] = DATA}}, EXCEPTION_EXCONF,
                             CODE + 12, 153));
    Program busy = {.address = CODE};
    EMIT(&busy, run_mmmn_zi, 0, MZERO, ISA_REGION_BASE);
    EMIT(&busy, sync, 3);
    EMIT(&busy, delayxpic, 1, 0, 5);
    EMIT(&busy, bri_mmmn_zi, CODE + 12);
    sim = expect_fault(0, &busy, &(SimContext){.m = {CODE + 12}}, EXCEPTION_EXERR, CODE + 8, 151);
    SimContext supervisor;
    sim_get_context(sim, 0, 0, &supervisor);
    assert_int_equal(supervisor.csr[0x72] >> 27, 4); /* WORKERS */
    sim_destroy(sim);
}

static void a_runaway_ends_at_the_limit(void **state)
{
    (void)state;
    Sim *sim;
    assert_ok(sim_create(&(SimOptions){.tiles = 1, .max_cycles = 1000}, &sim));
    Program code = {.address = CODE};
    EMIT(&code, bri_mmmn_zi, CODE);
    load_program(sim, 0, &code);
    for (uint32_t context = 0; context < 7; context++) {
        uint64_t cycles;
        assert_int_equal(sim_call(sim, 0, context, CODE, &cycles), SIM_FAULT);
        const SimFault *fault = sim_fault(sim);
        assert_int_equal(fault->type, 0);
        assert_int_equal(fault->context, context);
        assert_int_equal(fault->pc, CODE);
        assert_string_equal(fault->instruction, "bri 0x4c100");
        assert_non_null(strstr(fault->message, "limit"));
    }
    sim_destroy(sim);
}

static void breakpoints_stop_before_the_instruction(void **state)
{
    (void)state;
    Program code = {.address = CODE};
    EMIT(&code, setzi_mmmn_zi, 0, 7);
    EMIT(&code, setzi_mmmn_zi, 0, 8);
    Sim *sim = one_tile();
    load_program(sim, 0, &code);
    sim_break(sim, CODE + 4);
    uint64_t cycles;
    SimContext context;
    assert_int_equal(sim_call(sim, 0, 0, CODE, &cycles), SIM_FAULT);
    assert_int_equal(sim_fault(sim)->type, EXCEPTION_IBRK);
    assert_int_equal(sim_fault(sim)->pc, CODE + 4);
    sim_get_context(sim, 0, 0, &context);
    assert_int_equal(context.m[0], 7);
    sim_destroy(sim);
}

static void verify_mode_finds_uninitialised_reads(void **state)
{
    (void)state;
    Sim *sim;
    assert_ok(sim_create(&(SimOptions){.tiles = 1, .verify = true, .max_cycles = 10000}, &sim));
    Program code = {.address = CODE};
    EMIT(&code, st32_mmmn_zi, 0, MZERO, 0, 0); /* defines DATA */
    EMIT(&code, ld32_mmmn_zi, 0, MZERO, 0, 1);
    EMIT(&code, ldz8_mmmn_zi, 0, MZERO, 5, 1);  /* DATA + 5 was loaded from outside */
    EMIT(&code, ldz16_mmmn_zi, 0, MZERO, 4, 1); /* DATA + 8 was not */
    load_program(sim, 0, &code);
    poke(sim, 0, DATA + 4, 1);
    SimContext context;
    sim_get_context(sim, 0, 1, &context);
    context.m[0] = DATA;
    sim_set_context(sim, 0, 1, &context);
    uint64_t cycles;
    assert_int_equal(sim_call(sim, 0, 1, CODE, &cycles), SIM_FAULT);
    assert_int_equal(sim_fault(sim)->pc, CODE + 12);
    assert_int_equal(sim_fault(sim)->type, 0);
    assert_non_null(strstr(sim_fault(sim)->message, "0x60008"));
    sim_destroy(sim);
}

static void options_and_ranges_are_checked(void **state)
{
    (void)state;
    Sim *sim;
    assert_true(status_discard(sim_create(&(SimOptions){.tiles = 0}, &sim)));
    assert_true(status_discard(sim_create(&(SimOptions){.tiles = TILES + 1}, &sim)));
    sim = one_tile();
    uint32_t word = 0;
    assert_true(status_discard(sim_write(sim, 1, DATA, &word, 4)));
    assert_true(status_discard(sim_write(sim, 0, SRAM_BASE - 4, &word, 4)));
    assert_true(status_discard(sim_write(sim, 0, SRAM_END - 2, &word, 4)));
    assert_true(status_discard(sim_read(sim, 0, SRAM_END, &word, 4)));
    assert_true(status_discard(sim_read(sim, 0, 0xfffffffe, &word, 4)));
    assert_ok(sim_write(sim, 0, SRAM_END - 4, &word, 4));
    uint64_t cycles;
    assert_int_equal(sim_call(sim, 0, 7, CODE, &cycles), SIM_FAULT);
    assert_int_equal(sim_call(sim, 1, 0, CODE, &cycles), SIM_FAULT);
    sim_destroy(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(undefined_words),
        cmocka_unit_test(instructions_of_the_other_mode),
        cmocka_unit_test(bundles_that_are_none),
        cmocka_unit_test(bad_addresses),
        cmocka_unit_test(element_conflicts),
        cmocka_unit_test(operand_rules),
        cmocka_unit_test(traps),
        cmocka_unit_test(branches_to_nowhere),
        cmocka_unit_test(code_that_runs_out_of_region_0),
        cmocka_unit_test(bodies_of_rpt),
        cmocka_unit_test(a_fault_in_one_lane_stops_both),
        cmocka_unit_test(bad_launches),
        cmocka_unit_test(runall_over_running_workers),
        cmocka_unit_test(base_of_a_running_worker),
        cmocka_unit_test(worker_faults_name_the_worker),
        cmocka_unit_test(misuse_of_barriers),
        cmocka_unit_test(misuse_of_the_exchange),
        cmocka_unit_test(a_runaway_ends_at_the_limit),
        cmocka_unit_test(breakpoints_stop_before_the_instruction),
        cmocka_unit_test(verify_mode_finds_uninitialised_reads),
        cmocka_unit_test(options_and_ranges_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
