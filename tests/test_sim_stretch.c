/* libraries: sim */
/* test_sim_stretch.c - bundles of matrix products executed ahead, many at a time (stretch.c),
 * against the same programs one bundle at a time: a trace is on then, and forbids stretches.
 * Everything that can be seen must be the same: memory, registers, cycles, counts, faults. */
#include "sim_program.h"

#include "sim/machine.h"

#include <string.h>

enum { ROUNDS = 600, CYCLES = 6000, COUNTER = 3, STRIDES = 2, PAIR = 0 };

typedef struct Random {
    uint64_t state;
    bool wild;    /* of this round: things that fault */
    bool tangled; /* strides and counts are in registers that the accesses step */
    bool apart;   /* C is read and written in different places; else as kernels do */
} Random;

static uint32_t draw(Random *random, uint32_t below)
{
    random->state = random->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random->state >> 33) % below;
}

static bool rarely(Random *random)
{
    return random->wild && draw(random, 24) == 0;
}

/* --- programs */

static int32_t some_pair(Random *random)
{
    return rarely(random) ? 8 + 2 * (int32_t)draw(random, 4) : 2 * (int32_t)draw(random, 4);
}

static uint32_t random_main(Random *random, int32_t stride)
{
    if (rarely(random))
        return isa_word(FORM_rpt_mmmn_zi_zi, 2 + (int32_t)draw(random, 4),
                        (int32_t)draw(random, 4));
    int32_t pace = draw(random, 8) || !random->apart ? 0 : (int32_t)draw(random, 64);
    if (random->tangled && draw(random, 4) == 0) {
        stride = PAIR + (int32_t)draw(random, 2);
        pace = 1 + (int32_t)draw(random, 3);
    }
    switch (draw(random, 12) + 12 * !random->apart) {
    case 0:
        return isa_word(FORM_setzi_mmmn_zi, 14, 0);
    case 1:
        return isa_word(FORM_st64pace_mbmn_ef, stride, PAIR, pace & 3,
                        2 * (int32_t)draw(random, 8));
    case 2:
    case 3:
        return isa_word(FORM_ldst64pace_mbbn_ef, stride, PAIR, 0, 2 * (int32_t)draw(random, 8),
                        pace & 15);
    case 4:
        return isa_word(FORM_ld2x64pace_mmbn_ef, stride, PAIR, 0, 2, pace & 15);
    default:
        return isa_word(FORM_ld2xst64pace_mbbn_ef, stride, PAIR, 0,
                        4 + 2 * (int32_t)draw(random, 2), pace);
    }
}

static uint32_t random_aux(Random *random, Form form, uint32_t turn)
{
    int32_t phase = (int32_t)(turn & 3);
    if (rarely(random))
        phase = (int32_t)draw(random, 64); /* short chains, and what is refused */
    if (rarely(random))
        return FNOP;
    int32_t result = rarely(random) ? 8 : 4 + 2 * (int32_t)draw(random, 2);
    return isa_word(form, result, some_pair(random), some_pair(random), phase);
}

static void emit_body(Random *random, Program *code, Form form, uint32_t bundles, int32_t stride)
{
    for (uint32_t i = 0; i < bundles; i++)
        emit_bundle(code, random_main(random, stride), random_aux(random, form, i));
}

/* Bundles, a loop, bundles; sometimes all of it again. */
static void random_worker(Random *random, Program *code)
{
    Form form = draw(random, 4) ? FORM_f16v4hihov4amp_aaan_ef : FORM_f8v8hihov4amp_aaan_ef;
    int32_t stride = draw(random, 3) ? STRIDES : MZERO;
    uint32_t parts = 1 + draw(random, 3);
    for (uint32_t part = 0; part < parts; part++) {
        emit_body(random, code, form, draw(random, 12), stride);
        uint32_t body = 1 + draw(random, 8);
        if (rarely(random))
            EMIT(code, add_mmmn_si, 4, 4, 1), EMIT(code, add_mmmn_si, 4, 4, 1);
        uint32_t rpt =
            draw(random, 3)
                ? isa_word(FORM_rpt_mmmn_zi_zi, (int32_t)draw(random, 40), (int32_t)body - 1)
                : isa_word(FORM_rpt_mmmn_zi, random->tangled ? PAIR : COUNTER, (int32_t)body - 1);
        emit_bundle(code, rpt, FNOP);
        emit_body(random, code, form, body, stride);
        if (rarely(random))
            form = FORM_f16v4hihov4amp_aaan_ef;
    }
    emit_body(random, code, form, draw(random, 6), stride);
    EMIT(code, exitz_mmmn, MZERO);
}

/* --- data */

static uint32_t random_halves(Random *random, bool tame)
{
    uint32_t low = draw(random, 1 << 16), high = draw(random, 1 << 16);
    return tame ? (low & 0xb7ff) | (high & 0xb7ff) << 16 : low | high << 16;
}

/* Rows of a worker for x and C: like a kernel's, or anything. */
static void random_addresses(Random *random, uint32_t worker, uint32_t base, uint32_t pitch,
                             SimContext *context)
{
    uint32_t x = DATA + worker * 0x200, c = base + worker * pitch;
    uint32_t read = c + 8 * 11, write = c;
    switch (draw(random, random->wild ? 8 : 80)) {
    case 0:
        read = c + 8 * draw(random, 64);
        break;
    case 1: /* near the end of the memory */
        read = SRAM_END - 8 * (11 + draw(random, 100)), write = read - 88;
        break;
    case 2: /* into code */
        x = 0x90000, write = WORKER_CODE - 8 * draw(random, 200), read = 0xa0000;
        break;
    case 3:
        x += draw(random, 8);
        break;
    case 4: /* where region 1 begins */
        write = 0x80000 - 8 * draw(random, 100), read = write + 88;
        break;
    default:
        if (random->apart)
            read += 0x20000;
        break;
    }
    context->m[PAIR] = x | write << 21;
    context->m[PAIR + 1] = write >> 11 << 21 | read;
}

static void random_state(Random *random, Sim *sim)
{
    static const uint32_t BASES[] = {0x81000, 0x91000, 0x6a000, 0x7f000};
    static const uint32_t PITCHES[] = {0, 32, 96, 512, 0x1000};
    uint32_t base = BASES[draw(random, countof(BASES))];
    uint32_t pitch = PITCHES[draw(random, countof(PITCHES))];
    uint32_t strides = rarely(random) ? draw(random, 1u << 31) : 13 | 999u << 10 | 17u << 20;
    bool tame = draw(random, 4) != 0, uneven = draw(random, 3) == 0;
    for (uint32_t worker = 0; worker < TILE_WORKERS; worker++) {
        SimContext context;
        sim_get_context(sim, 0, 1 + worker, &context);
        random_addresses(random, worker, base, pitch, &context);
        context.m[STRIDES] = strides;
        context.m[COUNTER] = uneven ? draw(random, 30) : 9;
        for (uint32_t i = 0; i < 8; i++)
            context.a[i] = random_halves(random, tame);
        for (uint32_t i = 0; i < 32; i++)
            context.acc[i] = tame ? 0x3f000000 + draw(random, 1 << 24) : draw(random, 1u << 31) * 2;
        sim_set_context(sim, 0, 1 + worker, &context);
    }
    for (uint32_t i = 0; i < 64; i++)
        sim_set_weight(sim, 0, i,
                       random_halves(random, tame) | (uint64_t)random_halves(random, tame) << 32);
    uint32_t data[1024];
    for (uint32_t i = 0; i < countof(data); i++)
        data[i] = random_halves(random, tame);
    assert_ok(sim_write(sim, 0, DATA, data, sizeof data));
    assert_ok(sim_write(sim, 0, base, data, sizeof data));
    SimContext context;
    sim_get_context(sim, 0, 0, &context);
    context.m[0] = WORKER_CODE;
    context.m[1] = DATA;
    context.csr[0x20] = draw(random, 8) ? 0 : draw(random, 0x200000);
    context.csr[0x31] = draw(random, 4);
    context.csr[0x33] = draw(random, 5);
    sim_set_context(sim, 0, 0, &context);
}

/* --- running and comparing */

static void ignore(void *context, uint32_t tile, uint32_t executing, uint64_t cycle, uint32_t pc,
                   const Insn *first, const Insn *second, const SimContext *after)
{
    (void)context, (void)tile, (void)executing, (void)cycle, (void)pc, (void)first, (void)second;
    (void)after;
}

typedef struct Outcomes {
    uint64_t alone, in_turns, faults, limits;
} Outcomes;

static uint64_t run_round(uint64_t seed, bool one_by_one, Outcomes *outcomes)
{
    Random random = {.state = seed};
    random.wild = draw(&random, 4) == 0;
    random.tangled = draw(&random, 12) == 0;
    random.apart = draw(&random, 3) != 0;
    uint64_t limit = draw(&random, 5) ? CYCLES : 100 + draw(&random, 2000);
    Sim *sim;
    assert_ok(sim_create(&(SimOptions){.tiles = 1, .max_cycles = limit}, &sim));
    Program supervisor = {.address = CODE}, worker = {.address = WORKER_CODE};
    random_worker(&random, &worker);
    if (draw(&random, 4)) {
        EMIT(&supervisor, runall_mmmn_zi, 0, 1, 0);
    } else { /* some workers, and a supervisor with slots of its own */
        for (uint32_t i = draw(&random, 5); i-- > 0;)
            EMIT(&supervisor, run_mmmn_zi, 0, 1, 0x4c000);
        EMIT(&supervisor, setzi_mmmn_zi, 5, (int32_t)draw(&random, 60));
        EMIT(&supervisor, brnzdec_mmmn_zi, 5, (int32_t)(CODE + 4 * supervisor.count));
    }
    EMIT(&supervisor, sync, 2);
    EMIT(&supervisor, br_mmmn, 10);
    load_program(sim, 0, &supervisor);
    load_program(sim, 0, &worker);
    random_state(&random, sim);
    if (one_by_one)
        sim_trace(sim, ignore, NULL);
    uint64_t cycles;
    SimStop stop = sim_call(sim, 0, 0, CODE, &cycles);
    outcomes->alone += sim->caches[0]->alone;
    outcomes->in_turns += sim->caches[0]->in_turns;
    outcomes->faults += stop == SIM_FAULT && sim_fault(sim)->type;
    outcomes->limits += stop == SIM_FAULT && !sim_fault(sim)->type;

    const SimFault *fault = sim_fault(sim);
    SimCounts counts = sim_counts(sim);
    uint64_t numbers[] = {
        stop,        cycles,       counts.worker_bundles, counts.supervisor_instructions,
        fault->type, fault->cycle, fault->context,        fault->pc};
    uint64_t hash = hash_bytes(numbers, sizeof numbers, 0);
    hash = hash_bytes(fault->message, strlen(fault->message), hash);
    hash = hash_bytes(sim_memory(sim, 0), SRAM_BYTES, hash);
    for (uint32_t c = 0; c < 7; c++) {
        SimContext context;
        sim_get_context(sim, 0, c, &context);
        hash = hash_bytes(&context, sizeof context, hash);
    }
    sim_destroy(sim);
    return hash;
}

static void nobody_can_tell(void **state)
{
    (void)state;
    const char *seed_text = getenv("IPU_FUZZ_SEED"), *rounds_text = getenv("IPU_FUZZ_ROUNDS");
    uint64_t seed = seed_text ? strtoull(seed_text, NULL, 0) : 1;
    uint64_t rounds = rounds_text ? strtoull(rounds_text, NULL, 0) : ROUNDS;
    Outcomes ahead = {0}, single = {0};
    for (uint64_t i = 0; i < rounds; i++)
        if (run_round(seed + i, false, &ahead) != run_round(seed + i, true, &single))
            fail_msg("seed %llu: not the same", (unsigned long long)(seed + i));
    print_message("bundles ahead %llu, in turns %llu; faults %llu, limits %llu\n",
                  (unsigned long long)ahead.alone, (unsigned long long)ahead.in_turns,
                  (unsigned long long)ahead.faults, (unsigned long long)ahead.limits);
    /* The programs reach what they should, both ways of stretches above all. */
    assert_true(ahead.alone > 20 * rounds);
    assert_true(ahead.in_turns > 20 * rounds);
    assert_true(ahead.faults > rounds / 50);
    assert_true(ahead.limits > rounds / 50);
    assert_true(ahead.faults < rounds * 3 / 4);
    assert_int_equal(single.alone + single.in_turns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nobody_can_tell)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
