/* copy.c - rows of bytes from one place of a tile to another. kernels/copy.S describes the ways of
 * dealing the work; the cheapest one for the shape is chosen here. */
#include "kernel/launch.h"

typedef enum Mode { FLAT, DEALT, LONG, PACED, STREAM } Mode; /* as in copy.S */

enum {
    WRITTEN_OUT = 16,   /* units: longest row of DEALT, */
    STREAMED_OUT = 48,  /* of STREAM */
    PACED_BYTES = 1024, /* from here on the operands must be in different elements */
    PITCH_LIMIT = 32767,
    UPPER_BYTES = 2048 /* what the upper bits of a packed address 2 count */
};

typedef struct Plan {
    Mode mode;
    uint32_t rows, row_bytes, out_pitch, in_pitch, unit, units; /* units: of a row */
    struct {                                                    /* STREAM */
        bool dealt;                                             /* whole rows, else pieces */
        uint32_t words, in_add, out_add, adds;
        int32_t in_step, out_step;
    } stream;
} Plan;

static int64_t jump(const Plan *plan, uint32_t pitch)
{
    return (6 * (int64_t)pitch - ((int64_t)plan->units - 1) * plan->unit) / plan->unit;
}

static bool fits_step(int64_t value)
{
    return value >= -512 && value <= 511;
}

/* Slots of a stream of `mine` rows or pieces. */
static uint64_t stream_slots(const Plan *plan, uint32_t mine)
{
    uint64_t setup = 2;
    if (plan->stream.dealt)
        setup += plan->rows % TILE_WORKERS ? 4 : 3;
    else
        setup += 1 + (TILE_WORKERS * plan->stream.words != plan->units);
    setup += (plan->stream.in_add ? 1 : 0) + (plan->stream.out_add ? 2 : 0) + 4;
    uint64_t words = plan->stream.words;
    return setup + 1 + (uint64_t)(mine - 1) * (words + plan->stream.adds) + words;
}

/* What a worker takes; solo instructions before an aligned repeat are filled up to an even number.
 */
static uint64_t worker_slots(const Plan *plan, uint32_t w)
{
    bool by_units = plan->mode == FLAT || plan->mode == PACED;
    uint32_t items = by_units ? plan->units : plan->rows, mine = share_of_worker(items, w);
    bool share = items >= TILE_WORKERS, rest = items % TILE_WORKERS != 0;
    uint64_t solo = 3;
    if (plan->mode == STREAM)
        return solo + stream_slots(plan, plan->stream.dealt ? mine : plan->rows) + 1;
    if (plan->mode == PACED) {
        solo += 1 + 1 + rest + 5;
        return solo + solo % 2 + 1 + (mine - 1) + 1 + 1;
    }
    if (plan->mode == FLAT && plan->rows > 1) {
        solo += 1 + 1 + rest + 2 + constant_slots(plan->in_pitch) + constant_slots(plan->out_pitch);
        return solo + solo % 2 + plan->rows * (2 + 1 + 2 * mine + 3) + 1;
    }
    if (plan->mode == FLAT) {
        solo += 1 + 1 + rest + 1;
        return solo + solo % 2 + 1 + 2 * mine + 1;
    }
    solo += constant_slots(plan->in_pitch) + constant_slots(plan->out_pitch) + 2 + 2;
    solo += rest ? 1 + (share || plan->mode == LONG) : 1;
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

/* Whole rows or pieces of rows as a stream; false when that is not possible. */
static bool plan_stream(Plan *plan, bool dealt)
{
    uint32_t apart = dealt ? TILE_WORKERS : 1; /* rows from one of a worker's to its next */
    uint32_t words = dealt ? plan->units : ceil_div_u32(plan->units, TILE_WORKERS);
    int64_t in = (int64_t)apart * plan->in_pitch / 8 - words + 1;
    int64_t out = (int64_t)apart * plan->out_pitch / 8 - words + 1;
    if (words > STREAMED_OUT || plan->units > 65535 / 8 || plan->in_pitch > PITCH_LIMIT ||
        plan->out_pitch > PITCH_LIMIT || (dealt && plan->rows < TILE_WORKERS) || out < -512 ||
        in < -512 || (words == 1 && !fits_step(in)))
        return false;
    plan->mode = STREAM;
    plan->stream.dealt = dealt;
    plan->stream.words = words;
    plan->stream.in_step = (int32_t)in;
    plan->stream.out_step = (int32_t)out;
    if (!fits_step(in)) { /* one word by the load */
        plan->stream.in_step = 1;
        plan->stream.in_add = (uint32_t)(in - 1) * 8;
    }
    if (!fits_step(out)) {
        plan->stream.out_add = ((uint32_t)out * 8 + UPPER_BYTES / 2) / UPPER_BYTES;
        plan->stream.out_step = (int32_t)(out - (int64_t)plan->stream.out_add * UPPER_BYTES / 8);
    }
    plan->stream.adds = (plan->stream.in_add > 0) + (plan->stream.out_add > 0);
    return true;
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
    bool big = plan.unit == 8 && spec->p[COPY_APART] &&
               (uint64_t)plan.rows * plan.row_bytes >= PACED_BYTES;
    if (plan.rows == 1) {
        plan.mode = big ? PACED : FLAT;
        return plan;
    }
    Plan best = plan, other = plan;
    other.mode = plan.units <= WRITTEN_OUT ? DEALT : LONG;
    if (longest(&other) <= longest(&best))
        best = other;
    for (int dealt = 0; dealt < 2 && big; dealt++) {
        other = plan;
        if (plan_stream(&other, dealt) && longest(&other) < longest(&best))
            best = other;
    }
    return best;
}

static void define_stream(const Plan *plan, KernelContract *out)
{
    contract_define(out, "COPY_DEALT", plan->stream.dealt);
    contract_define(out, "COPY_WORDS", (int32_t)plan->stream.words);
    contract_define(out, "COPY_IN_STEP", plan->stream.in_step);
    contract_define(out, "COPY_OUT_STEP", plan->stream.out_step);
    contract_define(out, "COPY_IN_ADD", (int32_t)plan->stream.in_add);
    contract_define(out, "COPY_OUT_ADD", (int32_t)plan->stream.out_add);
}

static Status contract(const KernelSpec *spec, KernelContract *out)
{
    TRY(spec_range(spec, COPY_ROWS, 1, 65535, 1));
    TRY(spec_range(spec, COPY_ROW_BYTES, 4, SRAM_BYTES, 4));
    TRY(spec_range(spec, COPY_APART, 0, 1, 1));
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
    if (plan.mode == PACED || plan.mode == STREAM)
        contract_separate(out, 0, 1);
    out->operands[0].reads_old =
        plan.out_pitch != plan.row_bytes; /* what lies between rows stays */
    contract_define(out, "COPY_ROWS", (int32_t)plan.rows);
    contract_define(out, "COPY_ROW_BYTES", (int32_t)plan.row_bytes);
    contract_define(out, "COPY_OUT_PITCH", (int32_t)plan.out_pitch);
    contract_define(out, "COPY_IN_PITCH", (int32_t)plan.in_pitch);
    contract_define(out, "COPY_MODE", (int32_t)plan.mode);
    contract_define(out, "COPY_LESS", plan.mode == LONG);
    if (plan.mode == STREAM)
        define_stream(&plan, out);
    out->stack_bytes = 8;
    return STATUS_OK;
}

static void cycles(const KernelSpec *spec, Clock *clock)
{
    Plan plan = plan_of(spec);
    uint64_t bundles[TILE_WORKERS];
    for (uint32_t w = 0; w < TILE_WORKERS; w++)
        bundles[w] = worker_slots(&plan, w);
    clock_launch_once(clock, 2, bundles);
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
                   [COPY_IN_PITCH] = "inPitch",
                   [COPY_APART] = "apart"},
    .contract = contract,
    .cycles = cycles,
    .useful = useful,
    .reference = reference,
};
