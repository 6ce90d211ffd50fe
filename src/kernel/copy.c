/* copy.c - rows of bytes from one place of a tile to another. kernels/copy.S describes the ways of
 * dealing the work; the cheapest one for the shape is chosen here. */
#include "kernel/family.h"

#include <string.h>

typedef enum Mode { FLAT, DEALT, LONG } Mode; /* as in copy.S */

enum {
    WRITTEN_OUT = 16,  /* units: longest row of DEALT */
    PACED_BYTES = 2048 /* from here on the operands must be in different elements */
};

typedef struct Plan {
    Mode mode;
    bool paced;
    uint32_t rows, row_bytes, out_pitch, in_pitch, unit, units; /* units: of a row */
} Plan;

static uint32_t constant_slots(int64_t value)
{
    return (uint32_t)value & 0xfff00000 ? 2 : 1;
}

static int64_t jump(const Plan *plan, uint32_t pitch)
{
    return (6 * (int64_t)pitch - ((int64_t)plan->units - 1) * plan->unit) / plan->unit;
}

static bool fits_step(int64_t value)
{
    return value >= -512 && value <= 511;
}

/* What a worker takes; solo instructions before an aligned repeat are filled up to an even number.
 */
static uint64_t worker_slots(const Plan *plan, uint32_t w)
{
    bool flat = plan->mode == FLAT;
    uint32_t items = flat ? plan->units : plan->rows, mine = share_of_worker(items, w);
    bool share = items >= TILE_WORKERS, rest = items % TILE_WORKERS != 0;
    uint64_t solo = 3;
    if (flat && plan->paced) {
        solo += 1 + 1 + rest + 5;
        return solo + solo % 2 + 1 + (mine - 1) + 1 + 1;
    }
    if (flat && plan->rows > 1) {
        solo += 1 + 1 + rest + 2 + constant_slots(plan->in_pitch) + constant_slots(plan->out_pitch);
        return solo + solo % 2 + plan->rows * (2 + 1 + 2 * mine + 3) + 1;
    }
    if (flat) {
        solo += 1 + 1 + rest + 1;
        return solo + solo % 2 + 1 + 2 * mine + 1;
    }
    bool less = plan->paced || plan->mode == LONG;
    solo += constant_slots(plan->in_pitch) + constant_slots(plan->out_pitch) + 2 + 2;
    solo += rest ? 1 + (share || less) : 1;
    if (plan->paced) {
        int64_t steps = (jump(plan, plan->in_pitch) & 0x3ff) | (jump(plan, plan->out_pitch) & 0x3ff)
                                                                   << 10;
        solo += constant_slots(steps) + (plan->units == 1 ? 3 : 1) + 1;
        return solo + solo % 2 + 1 + (uint64_t)(mine - 1) * plan->units + plan->units + 1;
    }
    if (plan->mode == DEALT) {
        solo += constant_slots(jump(plan, plan->in_pitch)) +
                constant_slots(jump(plan, plan->out_pitch));
        return solo + solo % 2 + 1 + 2ull * mine * plan->units + 1;
    }
    if (!share) {
        solo += 1;
        if (mine == 0)
            return solo + 1;
    }
    solo += constant_slots(6 * (int64_t)plan->in_pitch - plan->row_bytes) +
            constant_slots(6 * (int64_t)plan->out_pitch - plan->row_bytes);
    return solo + solo % 2 + (uint64_t)mine * (1 + 2ull * plan->units + 3) + 1;
}

static uint64_t longest(const Plan *plan)
{
    return worker_slots(plan, 0); /* the first workers have the most to do */
}

static Plan plan_of(const KernelSpec *spec)
{
    Plan plan = {.rows = (uint32_t)spec->p[COPY_ROWS],
                 .row_bytes = (uint32_t)spec->p[COPY_ROW_BYTES],
                 .out_pitch = (uint32_t)spec->p[COPY_OUT_PITCH],
                 .in_pitch = (uint32_t)spec->p[COPY_IN_PITCH]};
    if (plan.rows == 1 || (plan.out_pitch == plan.row_bytes && plan.in_pitch == plan.row_bytes)) {
        plan.row_bytes *= plan.rows;
        plan.rows = 1;
        plan.out_pitch = plan.in_pitch = plan.row_bytes;
    }
    plan.unit = (plan.row_bytes | plan.out_pitch | plan.in_pitch) % 8 ? 4 : 8;
    plan.units = plan.row_bytes / plan.unit;
    bool big = plan.unit == 8 && (uint64_t)plan.rows * plan.row_bytes >= PACED_BYTES;
    if (plan.rows == 1) {
        plan.paced = big;
        return plan;
    }
    Plan dealt = plan;
    dealt.mode = plan.units <= WRITTEN_OUT ? DEALT : LONG;
    dealt.paced = big && dealt.mode == DEALT && plan.rows >= TILE_WORKERS &&
                  fits_step(jump(&plan, plan.in_pitch)) && fits_step(jump(&plan, plan.out_pitch));
    return longest(&dealt) <= longest(&plan) ? dealt : plan;
}

static Status contract(const KernelSpec *spec, KernelContract *out)
{
    TRY(spec_range(spec, COPY_ROWS, 1, 65535, 1));
    TRY(spec_range(spec, COPY_ROW_BYTES, 4, SRAM_BYTES, 4));
    if (spec->p[COPY_ROWS] > 1) {
        TRY(spec_range(spec, COPY_OUT_PITCH, spec->p[COPY_ROW_BYTES], SRAM_BYTES, 4));
        TRY(spec_range(spec, COPY_IN_PITCH, 0, SRAM_BYTES, 4));
    }
    Plan plan = plan_of(spec);
    uint64_t out_bytes = (uint64_t)(plan.rows - 1) * plan.out_pitch + plan.row_bytes;
    uint64_t in_bytes = (uint64_t)(plan.rows - 1) * plan.in_pitch + plan.row_bytes;
    if (out_bytes > SRAM_BYTES || in_bytes > SRAM_BYTES)
        return status_error("rows do not fit into a tile");
    Precision word = {.kind = U32};
    contract_operand(out, "output", true, word, ORDER_ROWS, (uint32_t)out_bytes, plan.unit);
    contract_operand(out, "input", false, word, ORDER_ROWS, (uint32_t)in_bytes, plan.unit);
    if (plan.paced)
        contract_separate(out, 0, 1);
    out->operands[0].reads_old =
        plan.out_pitch != plan.row_bytes; /* what lies between rows stays */
    contract_define(out, "COPY_ROWS", (int32_t)plan.rows);
    contract_define(out, "COPY_ROW_BYTES", (int32_t)plan.row_bytes);
    contract_define(out, "COPY_OUT_PITCH", (int32_t)plan.out_pitch);
    contract_define(out, "COPY_IN_PITCH", (int32_t)plan.in_pitch);
    contract_define(out, "COPY_MODE", (int32_t)plan.mode);
    contract_define(out, "COPY_PACED", plan.paced);
    contract_define(out, "COPY_LESS", plan.mode != FLAT && (plan.paced || plan.mode == LONG));
    out->stack_bytes = 8;
    return STATUS_OK;
}

static void cycles(const KernelSpec *spec, Clock *clock)
{
    Plan plan = plan_of(spec);
    uint64_t bundles[TILE_WORKERS];
    for (uint32_t w = 0; w < TILE_WORKERS; w++)
        bundles[w] = worker_slots(&plan, w);
    clock_issue(clock, 2);
    clock_depend(clock, 2);
    clock_issue(clock, 2);
    clock_launch(clock, bundles);
    clock_sync(clock);
    clock_branch(clock);
}

static uint64_t useful(const KernelSpec *spec)
{
    return (uint64_t)spec->p[COPY_ROWS] * (uint64_t)spec->p[COPY_ROW_BYTES] / 4;
}

static void reference(const KernelSpec *spec, void *const *operands)
{
    Plan plan = plan_of(spec);
    for (uint32_t row = 0; row < plan.rows; row++)
        memcpy((uint8_t *)operands[0] + (size_t)row * plan.out_pitch,
               (const uint8_t *)operands[1] + (size_t)row * plan.in_pitch, plan.row_bytes);
}

const KernelFamilyInfo kernel_family_copy = {
    .name = "copy",
    .source = "copy.S",
    .parameters = {[COPY_ROWS] = "rows",
                   [COPY_ROW_BYTES] = "rowBytes",
                   [COPY_OUT_PITCH] = "outPitch",
                   [COPY_IN_PITCH] = "inPitch"},
    .contract = contract,
    .cycles = cycles,
    .useful = useful,
    .reference = reference,
};
