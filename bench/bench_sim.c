/* libraries: sim */
/* bench_sim.c - processor time per bundle of the simulator, on one core, with six workers running.
 *
 * integer: a plain loop of main-lane instructions. copy: loads and stores in a rpt body. gemm_f16,
 * gemm_f8: the accumulating inner loop of a GEMM (three memory accesses and an AMP step a bundle).
 * supervisor: a loop of single instructions with their dependencies. Prints key=value lines.
 * The argument, if any, chooses one of them. */
#include "sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SUPERVISOR = 0x4c100, WORKER = 0x5c000, LEFT = 0x60000, RESULT = 0x80000, ROUNDS = 400 };
enum { MZERO = 15, REPEATS = 5 };

static uint32_t code[1024], words;

static uint32_t emit(uint32_t word)
{
    code[words] = word;
    return WORKER + 4 * words++;
}

static void bundle(uint32_t main, uint32_t aux)
{
    emit(main | 1u << 31);
    emit(aux | 1u << 31);
}

#define EMIT(form, ...) emit(isa_word(FORM_##form, __VA_ARGS__))

static void make_integer(void)
{
    EMIT(setzi_mmmn_zi, 0, 4000);
    uint32_t loop = EMIT(add_mmmn_si, 1, 1, 3);
    EMIT(xor_mmmn, 2, 2, 1);
    EMIT(shl_mmmn_zi, 3, 1, 2);
    EMIT(and_mmmn_zi, 3, 3, 0xfc);
    EMIT(ld32_mmmn, 13, MZERO, 3, 4); /* an unsigned offset in words from the vertex base */
    EMIT(max_mmmn, 5, 4, 2);
    EMIT(sub_mmmn, 6, 5, 1);
    EMIT(brnzdec_mmmn_zi, 0, loop);
    EMIT(exitz_mmmn, MZERO);
}

static void make_copy(void)
{
    EMIT(or_mmmn_zi, 0, 13, 0);
    EMIT(setzi_mmmn_zi, 1, RESULT);
    EMIT(setzi_mmmn_zi, 2, 900);
    emit(isa_word(FORM_setzi_mmmn_zi, 14, 0));
    bundle(isa_word(FORM_rpt_mmmn_zi, 2, 1), isa_word(FORM_setzi_aaan_zi, 13, 0));
    bundle(isa_word(FORM_ld64step_mmbn_si, MZERO, 0, 1, 0), isa_word(FORM_setzi_aaan_zi, 13, 0));
    bundle(isa_word(FORM_st64step_mbmn_si, MZERO, 1, 1, 0), isa_word(FORM_or64_aaan, 2, 0, 0));
    EMIT(exitz_mmmn, MZERO);
}

/* m4:5 packs the left operand, C to read and C to write (eleven words apart: odd). As in kernels
 * every worker has its own rows of C, one after the other; `common`: all have the same, so that
 * their stores meet. */
static void make_gemm(bool f8, bool common)
{
    Form amp = f8 ? FORM_f8v8hihov4amp_aaan_ef : FORM_f16v4hihov4amp_aaan_ef;
    EMIT(get_mmmn_zi, 7, isa_csr_number("WSR", MODE_WORKER));
    EMIT(and_mmmn_zi, 7, 7, 7); /* the worker's number */
    EMIT(mul_mmmn_si, 7, 7, common ? 0 : 16000);
    EMIT(setzi_mmmn_zi, 4, LEFT);
    EMIT(setzi_mmmn_zi, 5, RESULT + 88);
    EMIT(setzi_mmmn_zi, 6, RESULT);
    EMIT(add_mmmn, 5, 5, 7);
    EMIT(add_mmmn, 6, 6, 7);
    EMIT(setzi_mmmn_zi, 0, 500);
    EMIT(tapack_mmmn, 4, 5, 6, 2);
    if (words & 1) /* the body of rpt begins at a multiple of 8 */
        emit(isa_word(FORM_setzi_mmmn_zi, 14, 0));
    bundle(isa_word(FORM_rpt_mmmn_zi, 0, 3), isa_word(FORM_setzi_aaan_zi, 13, 0));
    for (int phase = 0; phase < 4; phase++)
        bundle(isa_word(FORM_ld2xst64pace_mbbn_ef, MZERO, 2, 0, 4, 0),
               isa_word(amp, 4, 0, 2, phase));
    EMIT(exitz_mmmn, MZERO);
}

/* Of this process: the machine may be busy with other things. */
static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void require(Status status)
{
    if (status_ok(status))
        return;
    fprintf(stderr, "%s\n", status_message(status));
    exit(1);
}

static Sim *create(void)
{
    Sim *sim;
    require(sim_create(&(SimOptions){.tiles = 1, .threads = 1}, &sim));
    require(sim_write(sim, 0, WORKER, code, 4 * words));
    /* m2 rounds: { runall; sync 2 } */
    uint32_t loop = SUPERVISOR;
    uint32_t supervisor[] = {
        isa_word(FORM_runall_mmmn_zi, 0, 1, 0),
        isa_word(FORM_sync, 2),
        isa_word(FORM_brnzdec_mmmn_zi, 2, loop),
        isa_word(FORM_br_mmmn, 10),
    };
    require(sim_write(sim, 0, SUPERVISOR, supervisor, sizeof supervisor));
    SimContext context;
    sim_get_context(sim, 0, 0, &context);
    context.m[0] = WORKER;
    context.m[1] = LEFT;
    context.m[2] = ROUNDS - 1;
    sim_set_context(sim, 0, 0, &context);
    sim_set_csr(sim, 0, 0, (uint32_t)isa_csr_number("FP_INFMT", MODE_SUPERVISOR), 3); /* F143 */
    for (uint32_t i = 0; i < 64; i++)
        sim_set_weight(sim, 0, i, 0x3c00380034003000 + i);
    for (uint32_t at = 0; at < 0x8000;
         at += 4) /* halves from 2^-9 on: sums stay far from the limit */
        require(sim_write(sim, 0, LEFT + at, &(uint32_t){0x18001800 + (at & 0x1f)}, 4));
    return sim;
}

static void run(Sim *sim, uint32_t pc)
{
    uint64_t cycles;
    if (sim_call(sim, 0, 0, pc, &cycles) != SIM_RETURNED) {
        fprintf(stderr, "%s: %s\n", sim_fault(sim)->instruction, sim_fault(sim)->message);
        exit(1);
    }
}

static const char *only; /* the program's argument */

static void measure(const char *name)
{
    if (only && strcmp(only, name) != 0) {
        words = 0;
        return;
    }
    double best = 0;
    uint64_t bundles = 0;
    for (int i = 0; i < REPEATS; i++) {
        Sim *sim = create();
        double start = processor_seconds();
        run(sim, SUPERVISOR);
        double seconds = processor_seconds() - start;
        bundles = sim_counts(sim).worker_bundles;
        best = (double)bundles / seconds > best ? (double)bundles / seconds : best;
        sim_destroy(sim);
    }
    printf("%s_bundles=%llu %s_bundlesPerSecond=%.0f\n", name, (unsigned long long)bundles, name,
           best);
    words = 0;
}

static void measure_supervisor(void)
{
    EMIT(setzi_mmmn_zi, 0, 200000);
    uint32_t loop = EMIT(add_mmmn_si, 1, 1, 1);
    EMIT(ld32_mmmn_zi, 11, MZERO, 0, 2);
    EMIT(xor_mmmn, 3, 3, 1);
    EMIT(brnzdec_mmmn_zi, 0, loop);
    EMIT(br_mmmn, 10);
    Sim *sim = create();
    double start = processor_seconds();
    run(sim, WORKER);
    double seconds = processor_seconds() - start;
    printf("supervisor_instructionsPerSecond=%.0f\n",
           (double)sim_counts(sim).supervisor_instructions / seconds);
    sim_destroy(sim);
    words = 0;
}

/* All tiles through `PHASES` exchange barriers: 64 of them with a row, the others declare
 * themselves out. What a phase costs the host beside the work in it. */
enum { PHASES = 200, ACTIVE = 64, ROW = 0x60000 };

static void load_phases(Sim *sim, uint32_t tile)
{
    bool active = tile < ACTIVE;
    uint32_t loop = SUPERVISOR + 4;
    uint32_t program[] = {
        isa_word(FORM_setzi_mmmn_zi, 2, PHASES - 1),
        active ? isa_word(FORM_setzi_mmmn_zi, 14, 0) : isa_word(FORM_sans, 0),
        isa_word(FORM_sync, active ? 3 : 1),
        isa_word(FORM_call_mmmn_zi, 10, ROW),
        isa_word(FORM_brnzdec_mmmn_zi, 2, loop),
        isa_word(FORM_setzi_mmmn_zi, 0, 1),
        isa_word(FORM_setzi_mmmn_zi, 1, STATE_BASE + STATE_COMPLETION),
        isa_word(FORM_st32_mmmn_zi, 1, MZERO, 0, 0),
        isa_word(FORM_br_mmmn, MZERO),
    };
    uint32_t row[] = {isa_word(FORM_delay, 300), isa_word(FORM_br_mmmn, 10)};
    require(sim_write(sim, tile, SUPERVISOR, program, sizeof program));
    require(sim_write(sim, tile, ROW, active ? row : row + 1, sizeof row));
    sim_set_entry(sim, tile, SUPERVISOR);
}

static void measure_phases(void)
{
    Sim *sim;
    require(sim_create(&(SimOptions){.tiles = TILES, .threads = 1}, &sim));
    for (uint32_t tile = 0; tile < TILES; tile++)
        load_phases(sim, tile);
    double start = processor_seconds();
    if (sim_run(sim) != SIM_COMPLETE) {
        fprintf(stderr, "%s\n", sim_fault(sim)->message);
        exit(1);
    }
    printf("phases=%d phase_microseconds=%.1f\n", PHASES,
           (processor_seconds() - start) * 1e6 / PHASES);
    sim_destroy(sim);
}

int main(int argument_count, char **arguments)
{
    only = argument_count > 1 ? arguments[1] : NULL;
    make_integer();
    measure("integer");
    make_copy();
    measure("copy");
    make_gemm(false, false);
    measure("gemm_f16");
    make_gemm(false, true);
    measure("gemm_f16_common");
    make_gemm(true, false);
    measure("gemm_f8");
    if (!only || strcmp(only, "supervisor") == 0)
        measure_supervisor();
    if (!only || strcmp(only, "phases") == 0)
        measure_phases();
    return 0;
}
