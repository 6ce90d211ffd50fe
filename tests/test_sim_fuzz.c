/* libraries: sim */
/* test_sim_fuzz.c - random words as code, in every context, on one tile and on several that
 * exchange: whatever they do, the simulator ends in time, in a defined state, and does the same
 * again. IPU_FUZZ_ROUNDS runs it longer; IPU_FUZZ_SEED starts elsewhere (a failure prints its
 * seed). */
#include "sim_program.h"

#include <string.h>

enum { WORDS = 96, FUZZ_TILES = 6, DEFAULT_ROUNDS = 3000, CYCLES = 4000 };
enum { ROW = 0x5c000, ARRIVALS = 0x64000 };

typedef struct Random {
    uint64_t state;
} Random;

static uint32_t draw(Random *random)
{
    random->state = random->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random->state >> 32);
}

/* Mostly words of some form, some bundles, some noise. */
static uint32_t random_word(Random *random, IsaMode mode)
{
    uint32_t noise = draw(random);
    if (draw(random) % 16 == 0)
        return noise;
    for (;;) {
        const FormInfo *form = isa_form((Form)(1 + draw(random) % (FORM_COUNT - 1)));
        if (form->mode != MODE_BOTH && form->mode != mode && draw(random) % 64)
            continue;
        uint32_t word = form->match | (noise & ~form->mask);
        if (form->flags & FORM_CONTROL && !(form->flags & FORM_SYSTEM) && draw(random) % 2)
            continue; /* fewer jumps into nowhere */
        return draw(random) % 3 ? word & 0x7fffffff : word;
    }
}

/* Branch targets and addresses that are worth hitting. */
static uint32_t random_value(Random *random)
{
    uint32_t noise = draw(random);
    switch (draw(random) % 8) {
    case 0:
        return CODE + (noise % WORDS) * 4;
    case 1:
        return DATA + noise % 0x8000 / 8 * 8;
    case 2:
        return 0x80000 + noise % 0x8000 / 16 * 16;
    case 3:
        return noise % 16;
    case 4:
        return SRAM_END - noise % 64;
    case 5: /* a packed pair of addresses */
        return (DATA + noise % 64 * 8) | noise << 21;
    case 6:
        return 0x80000 + (noise % 64) * 8;
    default:
        return noise;
    }
}

static void random_code(Random *random, Program *code, IsaMode mode)
{
    code->count = 0;
    while (code->count < WORDS) {
        uint32_t choice = draw(random) % 8;
        if (mode == MODE_WORKER && choice < 3) {
            emit_bundle(code, random_word(random, mode), random_word(random, mode));
        } else if (choice == 3) { /* a branch within the code */
            EMIT(code, brnz_mmmn_zi, (int32_t)(draw(random) % 16),
                 (int32_t)(CODE + draw(random) % WORDS * 4));
        } else {
            emit(code, random_word(random, mode));
        }
    }
}

static void random_registers(Random *random, Sim *sim, uint32_t tile)
{
    for (uint32_t c = 0; c < 7; c++) {
        SimContext context;
        sim_get_context(sim, tile, c, &context);
        for (int i = 0; i < 12; i++)
            context.m[i] = random_value(random);
        for (int i = 0; i < 8; i++)
            context.a[i] = draw(random);
        for (int i = 0; i < 32; i++)
            context.acc[i] = draw(random);
        context.csr[c ? 0x102 : 0x20] = draw(random);
        if (c)
            context.csr[0x109] = draw(random), context.csr[0x10a] = draw(random);
        else
            context.csr[0x50] = random_value(random);
        sim_set_context(sim, tile, c, &context);
    }
}

static void check_state(Sim *sim, uint32_t tile)
{
    for (uint32_t c = 0; c < 7; c++) {
        SimContext context;
        sim_get_context(sim, tile, c, &context);
        assert_int_equal(context.m[14], 0);
        assert_int_equal(context.m[15], 0);
        for (int i = 8; i < 16; i++)
            assert_int_equal(context.a[i], 0);
    }
}

static uint64_t digest(Sim *sim, uint32_t tiles)
{
    uint64_t hash = 0;
    for (uint32_t tile = 0; tile < tiles; tile++) {
        hash = hash_bytes(sim_memory(sim, tile), SRAM_BYTES, hash);
        for (uint32_t c = 0; c < 7; c++) {
            SimContext context;
            sim_get_context(sim, tile, c, &context);
            hash = hash_bytes(&context, sizeof context, hash);
        }
    }
    const SimFault *fault = sim_fault(sim);
    return hash_bytes(fault->message, strlen(fault->message), hash);
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 0) : otherwise;
}

static Sim *fuzz_sim(uint32_t tiles, unsigned threads, bool verify)
{
    Sim *sim;
    assert_ok(sim_create(
        &(SimOptions){.tiles = tiles, .threads = threads, .verify = verify, .max_cycles = CYCLES},
        &sim));
    return sim;
}

static SimStop one_round(Sim *sim, uint64_t seed)
{
    Random random = {seed};
    draw(&random);
    uint32_t context = draw(&random) % 7;
    Program code = {.address = CODE}, worker = {.address = WORKER_CODE};
    random_code(&random, &code, context ? MODE_WORKER : MODE_SUPERVISOR);
    random_code(&random, &worker, MODE_WORKER);
    load_program(sim, 0, &code);
    load_program(sim, 0, &worker);
    random_registers(&random, sim, 0);
    uint64_t cycles;
    SimStop stop = sim_call(sim, 0, context, CODE, &cycles);
    check_state(sim, 0);
    if (stop == SIM_FAULT) {
        assert_true(sim_fault(sim)->set);
        assert_true(sim_fault(sim)->message[0] != 0);
        assert_true(sim_fault(sim)->cycle < 1u << 31);
    }
    assert_true(cycles <= CYCLES + 600000); /* one delay may be half a million */
    return stop;
}

static void random_code_on_one_tile(void **state)
{
    (void)state;
    uint64_t rounds = from_environment("IPU_FUZZ_ROUNDS", DEFAULT_ROUNDS);
    uint64_t seed = from_environment("IPU_FUZZ_SEED", 1);
    uint64_t types[16] = {0}, good = 0;
    Sim *sims[2] = {fuzz_sim(1, 1, false), fuzz_sim(1, 1, true)};
    for (uint64_t i = 0; i < rounds; i++) {
        SimStop stop = one_round(sims[i % 2], seed + i);
        if (stop == SIM_FAULT)
            types[sim_fault(sims[i % 2])->type & 15]++;
        else
            good++;
    }
    /* The generator reaches what it should: it can not be a test of undefined words only. */
    assert_true(types[EXCEPTION_INVALID_ADDR] > rounds / 100);
    assert_true(types[EXCEPTION_INVALID_PC] > rounds / 100);
    assert_true(types[EXCEPTION_INVALID_INSTR] > rounds / 100);
    assert_true(types[EXCEPTION_INVALID_OP] > rounds / 100);
    assert_true(good > 0);
    sim_destroy(sims[0]);
    sim_destroy(sims[1]);
}

static void the_same_code_does_the_same_again(void **state)
{
    (void)state;
    uint64_t seed = from_environment("IPU_FUZZ_SEED", 1);
    for (uint64_t i = 0; i < 30; i++) {
        uint64_t hashes[2];
        for (int k = 0; k < 2; k++) {
            Sim *sim = fuzz_sim(1, 1, false);
            one_round(sim, seed + i);
            hashes[k] = digest(sim, 1);
            sim_destroy(sim);
        }
        assert_int_equal(hashes[0], hashes[1]);
    }
}

static bool rarely(Random *random)
{
    return draw(random) % 64 == 0;
}

/* Rows of random exchange instructions; few of them are wrong by themselves. */
static void emit_event(Random *random, Program *row)
{
    int32_t items = 1 + (int32_t)(draw(random) % 20), tile = (int32_t)(draw(random) % 8);
    int32_t source = tile < FUZZ_TILES ? tile : MUX_NEUTRAL;
    int32_t sctl = rarely(random) ? (int32_t)(draw(random) % 8) : (int32_t)(draw(random) % 4);
    int32_t address = (DATA >> 2) + (int32_t)(draw(random) % 64); /* of what is sent */
    int32_t pointer = (ARRIVALS >> 2) + (int32_t)(draw(random) % 64);
    if (rarely(random))
        address = pointer = (int32_t)(draw(random) & 0x3ffff);
    switch (draw(random) % 9) {
    case 0:
        EMIT(row, delay, items);
        break;
    case 1:
        EMIT(row, delaypic, items, rarely(random), pointer);
        break;
    case 2:
    case 3:
        EMIT(row, delayxpic, items, rarely(random), source);
        break;
    case 4:
    case 5:
        EMIT(row, send, items, address, sctl);
        break;
    case 6:
        EMIT(row, sendoff, items, 0, sctl);
        break;
    case 7:
        if (draw(random) % 2)
            EMIT(row, sendpic, items, rarely(random), source);
        else
            EMIT(row, sendpic, items, 2 + rarely(random), pointer);
        break;
    default:
        if (row->count % 2)
            EMIT(row, delay, 1);
        emit(row, isa_word(FORM_sendpicp, items, address, sctl, rarely(random)));
        emit(row, (uint32_t)pointer | (uint32_t)source << 18 | (uint32_t)rarely(random) << 31);
    }
}

/* A row of its own making: few of these phases are without a fault. */
static void random_row(Random *random, Program *row)
{
    EMIT(row, delaypic, 1, 0, ARRIVALS >> 2);
    EMIT(row, send, 40, DATA >> 2, 3); /* what follows may continue it, or may hear it */
    uint32_t count = draw(random) % 12;
    for (uint32_t i = 0; i < count; i++)
        emit_event(random, row);
    EMIT(row, delayxpic, 1, 0, MUX_NEUTRAL);
    EMIT(row, delay, 300 + (int32_t)(draw(random) % 300));
    EMIT(row, br_mmmn, 10);
}

/* One side of a good message of `words` words between tiles 0 and 5, or nothing. */
static void good_row(Program *row, uint32_t tile, int32_t words)
{
    int32_t route = target_route_time(0, 5), start = route < 0 ? -route : 0;
    int32_t select = start + route + 1;
    if (tile == 0) {
        if (start)
            EMIT(row, delay, start);
        EMIT(row, send, words, DATA >> 2, (int32_t)target_direction(0, 5));
        EMIT(row, delay, 200);
    } else if (tile == 5) {
        EMIT(row, delayxpic, select, 0, 0);
        EMIT(row, delayxpic, words, 0, MUX_NEUTRAL);
        EMIT(row, delaypic, 1, 0, ARRIVALS >> 2);
        EMIT(row, delay, 200);
    } else {
        EMIT(row, send, words, DATA >> 2, 3); /* nobody listens */
    }
    EMIT(row, br_mmmn, 10);
}

static void fuzzed_row(Random *random, Program *row, uint32_t tile, int32_t words)
{
    row->count = 0;
    if (draw(random) % 32 == 0) {
        random_row(random, row);
        return;
    }
    good_row(row, tile, words);
    if (draw(random) % 8 == 0) /* one bit of it is wrong */
        row->words[draw(random) % row->count] ^= 1u << draw(random) % 32;
}

static SimStop exchange_round(uint64_t seed, unsigned threads, bool verify, uint64_t *hash,
                              uint64_t *received)
{
    Sim *sim = fuzz_sim(FUZZ_TILES, threads, verify);
    Random random = {seed};
    int32_t words = 1 + (int32_t)(draw(&random) % 40);
    for (uint32_t tile = 0; tile < FUZZ_TILES; tile++) {
        Program code = {.address = CODE}, row = {.address = ROW};
        EMIT(&code, setzi_mmmn_zi, 8, DATA);
        if (tile % 5 && draw(&random) % 2) {
            EMIT(&code, sans, 0);
            EMIT(&code, sync, 1);
            EMIT(&row, br_mmmn, 10);
        } else {
            EMIT(&code, sync, rarely(&random) ? 7 : 3);
            fuzzed_row(&random, &row, tile, words);
        }
        EMIT(&code, call_mmmn_zi, 10, ROW);
        EMIT(&code, ld32_mmmn_zi, 8, MZERO, 0, 4);
        emit_completion(&code);
        load_program(sim, tile, &code);
        load_program(sim, tile, &row);
        for (uint32_t i = 0; i < 128; i++)
            poke(sim, tile, DATA + 4 * i, draw(&random));
        sim_set_entry(sim, tile, CODE);
    }
    SimStop stop = sim_run(sim);
    for (uint32_t tile = 0; tile < FUZZ_TILES; tile++)
        check_state(sim, tile);
    *hash = digest(sim, FUZZ_TILES);
    *received += sim_counts(sim).exchange_words;
    sim_destroy(sim);
    return stop;
}

static void random_rows_on_several_tiles(void **state)
{
    (void)state;
    uint64_t rounds = from_environment("IPU_FUZZ_ROUNDS", DEFAULT_ROUNDS) / 30;
    uint64_t seed = from_environment("IPU_FUZZ_SEED", 1), words = 0, completed = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t hashes[2];
        SimStop stops[2];
        for (unsigned k = 0; k < 2; k++)
            stops[k] = exchange_round(seed + i, 1 + 2 * k, i % 2, &hashes[k], &words);
        assert_int_equal(stops[0], stops[1]);
        assert_int_equal(hashes[0], hashes[1]);
        completed += stops[0] == SIM_COMPLETE;
    }
    assert_true(completed > rounds / 5 && completed < rounds &&
                words > rounds); /* it is no test of faults only */
}

/* Many tiles with one program and memory that differs in a few words, through many barriers: the
 * simulator may execute them once for all (share.c), and nobody must be able to tell. */
enum { ALIKE = 24, ROUNDS_ALIKE = 40 };

static void emit_alike(Random *random, Program *code)
{
    int32_t to = (int32_t)(draw(random) % 6), from = (int32_t)(draw(random) % 6);
    int32_t word = (int32_t)(draw(random) % 32);
    switch (draw(random) % 12) {
    case 0:
    case 1:
        EMIT(code, ld32_mmmn_zi, 8, MZERO, word, to);
        break;
    case 2:
    case 3:
        EMIT(code, st32_mmmn_zi, 8, MZERO, word, from);
        break;
    case 4:
        EMIT(code, ldz8_mmmn_zi, 8, MZERO, 4 * word + 1, to);
        break;
    case 5:
        EMIT(code, add_mmmn_si, to, from, word);
        break;
    case 6:
        EMIT(code, xor_mmmn, to, to, from);
        break;
    case 7:
        EMIT(code, delay, 1 + word);
        break;
    case 8:
        EMIT(code, get_mmmn_zi, to, 0x60);
        break;
    case 9: /* over a few instructions, or not */
        EMIT(code, brz_mmmn_zi, from, (int32_t)(code->address + 4 * code->count + 8));
        EMIT(code, add_mmmn_si, to, to, 1);
        break;
    case 10: /* what ends a group */
        if (draw(random) % 16 == 0)
            EMIT(code, get_mmmn_zi, to, 3);
        else if (draw(random) % 16 == 0)
            EMIT(code, runall_mmmn_zi, 9, 8, 0);
        else if (draw(random) % 16 == 0)
            EMIT(code, put_mmmn_zi, from, 0x20 + (int32_t)(draw(random) % 20));
        break;
    default:
        EMIT(code, sync, 2);
    }
}

static Program alike_program(uint64_t seed)
{
    Random random = {seed};
    Program code = {.address = CODE};
    EMIT(&code, setzi_mmmn_zi, 7, ROUNDS_ALIKE);
    EMIT(&code, setzi_mmmn_zi, 8, DATA);
    EMIT(&code, setzi_mmmn_zi, 9, WORKER_CODE);
    uint32_t loop = EMIT(&code, sans, 0);
    EMIT(&code, sync, 1);
    for (uint32_t count = draw(&random) % 30; count > 0; count--)
        emit_alike(&random, &code);
    EMIT(&code, sync, 2);
    EMIT(&code, brnzdec_mmmn_zi, 7, (int32_t)loop);
    EMIT(&code, sync, 7);
    for (uint32_t count = draw(&random) % 10; count > 0; count--)
        emit_alike(&random, &code);
    EMIT(&code, sync, 2);
    emit_completion(&code);
    return code;
}

static Sim *run_alike(uint64_t seed, bool no_sharing)
{
    Sim *sim;
    SimOptions options = {
        .tiles = ALIKE, .threads = 1 + seed % 2, .no_sharing = no_sharing, .max_cycles = 1000000};
    assert_ok(sim_create(&options, &sim));
    Program code = alike_program(seed), worker = {.address = WORKER_CODE};
    EMIT(&worker, st32step_mmmn_si, MZERO, 13, 1, 0);
    EMIT(&worker, exitz_mmmn, MZERO);
    Random random = {seed + 1};
    uint32_t differing = draw(&random) % 4;
    for (uint32_t tile = 0; tile < ALIKE; tile++) {
        load_program(sim, tile, &code);
        load_program(sim, tile, &worker);
        for (uint32_t i = 0; i < 32; i++)
            poke(sim, tile, DATA + 4 * i, i < differing && tile % 5 == 0 ? tile + i : i * i);
        poke(sim, tile, DATA + 0x100, tile);
        sim_set_entry(sim, tile, CODE);
        sim_watch(sim, tile, CODE + 12);
    }
    if (sim_run(sim) == SIM_RENDEZVOUS) {
        if (seed % 3 == 0)
            poke(sim, (uint32_t)(seed % ALIKE), DATA, 77);
        sim_run(sim);
    }
    return sim;
}

static void sharing_can_not_be_seen(void **state)
{
    (void)state;
    uint64_t rounds = from_environment("IPU_FUZZ_ROUNDS", DEFAULT_ROUNDS) / 60;
    uint64_t seed = from_environment("IPU_FUZZ_SEED", 1);
    for (uint64_t i = 0; i < rounds; i++) {
        Sim *sims[2] = {run_alike(seed + i, false), run_alike(seed + i, true)};
        uint32_t counts[2];
        const SimPhase *phases[2];
        for (int k = 0; k < 2; k++)
            phases[k] = sim_phases(sims[k], &counts[k]);
        assert_int_equal(counts[0], counts[1]);
        assert_memory_equal(phases[0], phases[1], counts[0] * sizeof *phases[0]);
        SimCounts totals[2] = {sim_counts(sims[0]), sim_counts(sims[1])};
        assert_memory_equal(&totals[0], &totals[1], sizeof totals[0]);
        for (uint32_t tile = 0; tile < ALIKE; tile++) {
            uint64_t cycles[2] = {0};
            assert_int_equal(sim_watched(sims[0], tile, &cycles[0]),
                             sim_watched(sims[1], tile, &cycles[1]));
            assert_int_equal(cycles[0], cycles[1]);
            assert_int_equal(sim_cycle(sims[0], tile), sim_cycle(sims[1], tile));
        }
        assert_string_equal(sim_fault(sims[0])->message, sim_fault(sims[1])->message);
        assert_int_equal(sim_fault(sims[0])->tile, sim_fault(sims[1])->tile);
        if (digest(sims[0], ALIKE) != digest(sims[1], ALIKE))
            fail_msg("seed %llu", (unsigned long long)(seed + i));
        sim_destroy(sims[0]);
        sim_destroy(sims[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_code_on_one_tile),
        cmocka_unit_test(the_same_code_does_the_same_again),
        cmocka_unit_test(random_rows_on_several_tiles),
        cmocka_unit_test(sharing_can_not_be_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
