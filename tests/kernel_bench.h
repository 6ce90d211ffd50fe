/* kernel_bench.h - runs one kernel spec as a package would and holds it to its contract.
 *
 * The object that the compiler would link is assembled, linked with the runtime, loaded on one
 * simulated tile and called by generated code. Operands lie where the contract only just allows:
 * aligned to what it asks for and no more, separated where it asks for that, in region 0 unless it
 * asks for interleaved memory, with canaries on both sides. Every call is made six times, from each
 * position against the workers' slots: results must equal the reference each time, nothing else may
 * be written, and the slowest call must take what kernel_cycles() says. */
#ifndef IPU_TESTS_KERNEL_BENCH_H
#define IPU_TESTS_KERNEL_BENCH_H

#include "kernel/family.h"
#include "sim/sim.h"

#include "check.h"

#include <math.h>
#include <string.h>

enum { BENCH_CANARY = 64, BENCH_OPERANDS_STANDARD = 0x64000, BENCH_CODE_END = 0x64000 };

/* Fills an operand before the call; outputs that are read (reads_old) too. */
typedef void BenchFill(void *context, const KernelSpec *spec, const KernelContract *contract,
                       uint32_t operand, uint8_t *data);

typedef struct Bench {
    KernelSpec spec;
    KernelContract contract;
    uint8_t *initial[KERNEL_OPERANDS], *expected[KERNEL_OPERANDS];
    uint32_t address[KERNEL_OPERANDS];
    bool in_place;
    Arena arena;
    Sim *sim;
    uint32_t callers[TILE_WORKERS], empty[TILE_WORKERS]; /* call the kernel; call just a return */
    LinkImage image;
    uint64_t cycles; /* the slowest of the six */
    double worst_error;
} Bench;

static uint64_t bench_random_state = 88172645463325252u;

static inline uint32_t bench_random(void)
{
    bench_random_state ^= bench_random_state << 13;
    bench_random_state ^= bench_random_state >> 7;
    bench_random_state ^= bench_random_state << 17;
    return (uint32_t)(bench_random_state >> 16);
}

static inline float bench_random_float(void) /* -1..1 */
{
    return (float)((int32_t)(bench_random() % 20001) - 10000) / 10000.0f;
}

/* The default: small random numbers of the operand's precision. */
static inline void bench_fill_random(void *context, const KernelSpec *spec,
                                     const KernelContract *contract, uint32_t operand,
                                     uint8_t *data)
{
    (void)context;
    (void)spec;
    const OperandContract *o = &contract->operands[operand];
    for (uint32_t i = 0; i < o->bytes / precision_bytes(o->precision); i++) {
        if (o->precision.kind == F16) {
            uint16_t half = half_from_float(2 * bench_random_float());
            memcpy(data + 2 * i, &half, 2);
        } else if (o->precision.kind == F32) {
            float value = 2 * bench_random_float();
            memcpy(data + 4 * i, &value, 4);
        } else if (o->precision.kind == F8F143) {
            data[i] = (uint8_t)bench_random();
            data[i] = data[i] == 0x80 ? 0 : data[i];
        } else {
            store_u32(data + 4 * i, bench_random());
        }
    }
}

static inline void bench_place(Bench *bench)
{
    uint32_t standard = BENCH_OPERANDS_STANDARD, interleaved = INTERLEAVED_BASE;
    for (uint32_t i = 0; i < bench->contract.operand_count; i++) {
        const OperandContract *o = &bench->contract.operands[i];
        if (bench->in_place && o->in_place >= 0)
            continue;
        uint32_t offset = BENCH_CANARY / o->align * o->align + o->align;
        uint32_t room = offset + o->bytes + o->tail + BENCH_CANARY;
        uint32_t standard_room = round_up_u32(room, ELEMENT_BYTES);
        if (o->memory_class == MEMORY_STANDARD && standard + standard_room <= EXECUTABLE_END) {
            bench->address[i] = standard + offset;
            standard += standard_room;
        } else {
            bench->address[i] = interleaved + offset;
            interleaved += round_up_u32(room, INTERLEAVED_ELEMENT_BYTES);
            assert_true(interleaved <= SRAM_END);
        }
    }
    for (uint32_t i = 0; i < bench->contract.operand_count; i++)
        if (bench->in_place && bench->contract.operands[i].in_place >= 0)
            bench->address[i] = bench->address[bench->contract.operands[i].in_place];
}

/* Callers as emitted code would be: arguments in order from $m2, call through $m10. k nops before
 * the call give the six positions. The same callers with a kernel that only returns give what the
 * caller itself takes. */
static inline void bench_caller_text(Bench *bench, Text *text, const char *name, const char *callee)
{
    for (uint32_t k = 0; k < TILE_WORKERS; k++) {
        uint32_t m = 2;
        text_printf(text, ".globl bench_%s_%u\nbench_%s_%u:\n", name, k, name, k);
        text_append(text, "add $m11, $m11, -8\nst32 $m10, $m11, $mzero, 0\n");
        for (uint32_t i = 0; i < bench->contract.operand_count; i++)
            text_printf(text, "setzi $m%u, %u\n", m++, bench->address[i]);
        for (uint32_t i = 0; i < bench->contract.scalar_count; i++)
            text_printf(text, "ldconst $m%u, 0x%x\n", m++, (uint32_t)bench->contract.scalars[i]);
        assert_true(m <= 10);
        for (uint32_t i = 0; i < TILE_WORKERS; i++) /* so that the arguments are settled */
            text_append(text, "nop\n");
        for (uint32_t i = 0; i < k; i++)
            text_append(text, "nop\n");
        text_printf(text, "call $m10, %s\nld32 $m10, $m11, $mzero, 0\nadd $m11, $m11, 8\nbr $m10\n",
                    callee);
    }
}

static inline void bench_link(Bench *bench)
{
    Arena *arena = &bench->arena;
    KernelObjects objects;
    assert_ok(kernels_build(arena, &bench->spec, 1, NULL, NULL, &objects));
    Text text = {0};
    text_append(&text, ".supervisor\n.section .text.caller,\"ax\"\nbench_return:\nbr $m10\n");
    bench_caller_text(bench, &text, "caller", bench->contract.symbol);
    bench_caller_text(bench, &text, "empty", "bench_return");
    AsObject caller;
    AsOptions options = {.supervisor = true, .find_source = kernel_source};
    assert_ok(assemble(arena, "caller", text_string(&text), text.count, &options, &caller));
    text_free(&text);

    const AsObject *all[8] = {&caller};
    for (uint32_t i = 0; i < objects.count; i++)
        all[i + 1] = objects.objects[i];
    const char *root = "bench_caller_0";
    LinkRange range = {LINK_SECOND, BENCH_CODE_END};
    LinkExternal externals[] = {{"ipu_program", 0}};
    LinkInput input = {.objects = all,
                       .object_count = objects.count + 1,
                       .roots = &root,
                       .root_count = 1,
                       .ranges = &range,
                       .range_count = 1,
                       .externals = externals,
                       .external_count = 1};
    assert_ok(obj_link(arena, &input, &bench->image));
    for (uint32_t k = 0; k < TILE_WORKERS; k++) {
        char name[32];
        snprintf(name, sizeof name, "bench_caller_%u", k);
        assert_ok(link_symbol(&bench->image, name, &bench->callers[k]));
        snprintf(name, sizeof name, "bench_empty_%u", k);
        assert_ok(link_symbol(&bench->image, name, &bench->empty[k]));
    }
}

static inline void bench_fill(Bench *bench, BenchFill *fill, void *context)
{
    for (uint32_t i = 0; i < bench->contract.operand_count; i++) {
        const OperandContract *o = &bench->contract.operands[i];
        bench->initial[i] = arena_alloc(&bench->arena, o->bytes + 8, 16);
        bench->expected[i] = arena_alloc(&bench->arena, o->bytes + 8, 16);
        if (!o->output || o->reads_old)
            fill(context, &bench->spec, &bench->contract, i, bench->initial[i]);
        else
            memset(bench->initial[i], 0x5a, o->bytes);
    }
}

static inline void bench_expect(Bench *bench)
{
    void *operands[KERNEL_OPERANDS];
    for (uint32_t i = 0; i < bench->contract.operand_count; i++) {
        memcpy(bench->expected[i], bench->initial[i], bench->contract.operands[i].bytes);
        operands[i] = bench->expected[i];
    }
    assert_ok(kernel_reference(&bench->spec, operands));
}

static inline void bench_new_machine(Bench *bench)
{
    SimOptions options = {.tiles = 1, .threads = 1, .max_cycles = 50000000};
    assert_ok(sim_create(&options, &bench->sim));
    for (uint32_t i = 0; i < bench->image.segment_count; i++) {
        const LinkSegment *segment = &bench->image.segments[i];
        assert_ok(sim_write(bench->sim, 0, segment->address, segment->data, segment->bytes));
    }
    uint8_t canary[BENCH_CANARY];
    memset(canary, 0x2c, sizeof canary); /* finite in every precision */
    for (uint32_t i = 0; i < bench->contract.operand_count; i++) {
        const OperandContract *o = &bench->contract.operands[i];
        if (bench->in_place && o->in_place >= 0)
            continue;
        uint32_t a = bench->address[i];
        assert_ok(sim_write(bench->sim, 0, a - BENCH_CANARY, canary, BENCH_CANARY));
        assert_ok(sim_write(bench->sim, 0, a, bench->initial[i], o->bytes));
        assert_ok(sim_write(bench->sim, 0, a + o->bytes, canary, BENCH_CANARY));
    }
}

static inline double bench_element(Precision precision, const uint8_t *data, uint32_t index)
{
    uint16_t half;
    float value;
    switch (precision.kind) {
    case F16:
        memcpy(&half, data + 2 * index, 2);
        return (double)half_to_float(half);
    case F32:
        memcpy(&value, data + 4 * index, 4);
        return (double)value;
    case F8F143:
        return (double)f143_to_float(data[index]);
    default:
        return load_u32(data + 4 * index);
    }
}

static inline void bench_compare(Bench *bench, uint32_t index, const uint8_t *got)
{
    const OperandContract *o = &bench->contract.operands[index];
    const KernelFamilyInfo *info = kernel_family(bench->spec.family);
    const uint8_t *want = bench->expected[index];
    if (memcmp(got, want, o->bytes) == 0)
        return;
    for (uint32_t i = 0; i < o->bytes / precision_bytes(o->precision); i++) {
        double a = bench_element(o->precision, got, i), b = bench_element(o->precision, want, i);
        double error = fabs(a - b), allowed = info->absolute + info->relative * fabs(b);
        bool same =
            memcmp(got + i * precision_bytes(o->precision),
                   want + i * precision_bytes(o->precision), precision_bytes(o->precision)) == 0;
        if (!same && !(allowed > 0 && error <= allowed)) {
            Text text = {0};
            kernel_spec_print(&text, &bench->spec);
            fail_msg("%s: operand %s element %u is %.9g, not %.9g", text_string(&text), o->name, i,
                     a, b);
        }
        bench->worst_error = error > bench->worst_error ? error : bench->worst_error;
    }
}

static inline void bench_check_memory(Bench *bench)
{
    const uint8_t *memory = sim_memory(bench->sim, 0);
    for (uint32_t i = 0; i < bench->contract.operand_count; i++) {
        const OperandContract *o = &bench->contract.operands[i];
        if (bench->in_place && !o->output)
            continue; /* overwritten, or checked through its output */
        const uint8_t *at = memory + (bench->address[i] - SRAM_BASE);
        for (uint32_t k = 1; k <= BENCH_CANARY; k++)
            if (at[-(int)k] != 0x2c || at[o->bytes + k - 1] != 0x2c)
                fail_msg("%s wrote %u bytes outside of operand %s",
                         kernel_family_name(bench->spec.family), k, o->name);
        bench_compare(bench, i, at);
    }
}

static inline uint64_t bench_enter(Bench *bench, uint32_t pc, SimContext *registers)
{
    uint64_t cycles;
    bench_new_machine(bench);
    SimStop stop = sim_call(bench->sim, 0, 0, pc, &cycles);
    if (stop != SIM_RETURNED) {
        Text text = {0};
        kernel_spec_print(&text, &bench->spec);
        const SimFault *fault = sim_fault(bench->sim);
        fail_msg("%s: stop %d, context %u at 0x%x: %s: %s", text_string(&text), (int)stop,
                 fault->context, fault->pc, fault->instruction, fault->message);
    }
    sim_get_context(bench->sim, 0, 0, registers);
    return cycles;
}

/* One call from position k; the kernel's cycles as kernel_cycles() counts them. */
static inline uint64_t bench_call(Bench *bench, uint32_t k)
{
    SimContext before, after;
    uint64_t alone = bench_enter(bench, bench->empty[k], &before);
    sim_destroy(bench->sim);
    uint64_t cycles = bench_enter(bench, bench->callers[k], &after);
    assert_int_equal(before.m[11], after.m[11]);
    bench_check_memory(bench);
    sim_destroy(bench->sim);
    bench->sim = NULL;
    return cycles - alone + TIMING_BRANCH;
}

static inline void bench_check_cycles(Bench *bench)
{
    uint64_t formula = kernel_cycles(&bench->spec);
    double error = fabs((double)formula - (double)bench->cycles);
    if (error > 0.01 * (double)bench->cycles) {
        Text text = {0};
        kernel_spec_print(&text, &bench->spec);
        fail_msg("%s: %llu cycles, formula %llu", text_string(&text),
                 (unsigned long long)bench->cycles, (unsigned long long)formula);
    }
}

static inline void bench_run_placed(Bench *bench, BenchFill *fill, void *context,
                                    uint32_t positions)
{
    bench_place(bench);
    bench_link(bench);
    bench_fill(bench, fill, context);
    bench_expect(bench);
    for (uint32_t k = 0; k < positions; k++) {
        uint64_t cycles = bench_call(bench, k);
        bench->cycles = cycles > bench->cycles ? cycles : bench->cycles;
    }
    if (positions == TILE_WORKERS)
        bench_check_cycles(bench);
    arena_free(&bench->arena);
}

/* Everything there is to check of one spec; NULL fill: random numbers. Returns the cycles. */
static inline uint64_t bench_kernel(const KernelSpec *spec, BenchFill *fill, void *context)
{
    Bench bench = {.spec = *spec};
    assert_ok(kernel_contract(spec, &bench.contract));
    bench_run_placed(&bench, fill ? fill : bench_fill_random, context, TILE_WORKERS);

    bool can_alias = false;
    for (uint32_t i = 0; i < bench.contract.operand_count; i++)
        can_alias |= bench.contract.operands[i].in_place >= 0;
    if (can_alias) {
        Bench again = {.spec = *spec, .contract = bench.contract, .in_place = true};
        bench_run_placed(&again, fill ? fill : bench_fill_random, context, 1);
    }
    return bench.cycles;
}

#endif
