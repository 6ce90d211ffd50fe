/* attention_merge.c - gathers attention results of key blocks: kernels/attention_merge.S. Exact to
 * the bit given correctly rounded exponentials and reciprocals. */
#include "kernel/launch.h"

typedef struct MergeShape {
    uint32_t rows, columns, padded;
    bool initial, final;
    uint32_t quads, stride; /* of a row: of values, floats of the state */
} MergeShape;

static MergeShape shape_of(const KernelSpec *spec)
{
    MergeShape s = {.rows = (uint32_t)spec->p[MERGE_ROWS],
                    .columns = (uint32_t)spec->p[MERGE_COLUMNS],
                    .padded = (uint32_t)spec->p[MERGE_PADDED_COLUMNS],
                    .initial = spec->p[MERGE_INITIAL],
                    .final = spec->p[MERGE_FINAL]};
    s.quads = s.columns / 4;
    s.stride = round_up_u32(s.columns + 2, 16);
    return s;
}

static Status contract(const KernelSpec *spec, KernelContract *out)
{
    TRY(spec_range(spec, MERGE_ROWS, 1, 4095, 1));
    TRY(spec_range(spec, MERGE_COLUMNS, 8, 2048, 4)); /* steps and offsets are immediates */
    TRY(spec_range(spec, MERGE_PADDED_COLUMNS, spec->p[MERGE_COLUMNS], 65520, 16));
    TRY(spec_range(spec, MERGE_INITIAL, 0, 1, 1));
    TRY(spec_range(spec, MERGE_FINAL, 0, 1, 1));
    MergeShape s = shape_of(spec);
    uint64_t values = 2 * (uint64_t)s.rows * s.padded, state = 4 * (uint64_t)s.rows * s.stride;
    if (values + state > SRAM_BYTES)
        return status_error("%llu bytes", (unsigned long long)(values + state));
    if (s.final)
        contract_operand(out, "result", true, PRECISION_F16, ORDER_ROWS, 2 * s.rows * s.columns, 8);
    if (!s.final || !s.initial)
        contract_operand(out, "state", !s.final, PRECISION_F32, ORDER_ROWS, (uint32_t)state, 8);
    out->operands[0].reads_old = !s.final && !s.initial;
    contract_operand(out, "values", false, PRECISION_F16, ORDER_PANELS, (uint32_t)values, 8);
    contract_operand(out, "statistics", false, PRECISION_F32, ORDER_ROWS, 8 * s.rows, 4);
    out->stack_bytes = 16;
    contract_define(out, "MERGE_ROWS", spec->p[MERGE_ROWS]);
    contract_define(out, "MERGE_COLUMNS", spec->p[MERGE_COLUMNS]);
    contract_define(out, "MERGE_INITIAL", spec->p[MERGE_INITIAL]);
    contract_define(out, "MERGE_FINAL", spec->p[MERGE_FINAL]);
    return STATUS_OK;
}

/* Slots of the macros: a row's quads. */
static uint64_t quads_of_row(const MergeShape *s)
{
    uint64_t first = s->initial ? (s->final ? 1 : 3) : (s->final ? 7 : 6);
    uint64_t quad = s->initial ? (s->final ? 2 : 3) : (s->final ? 8 : 6);
    uint64_t last = s->initial ? 3 : (s->final ? 11 : 8);
    return first + (s->quads >= 6) + (s->quads - 2) * quad + last;
}

static uint64_t worker_bundles(const MergeShape *s, uint32_t w)
{
    uint64_t rows = share_of_worker(s->rows, w);
    bool rest = s->rows % TILE_WORKERS != 0, loops = share_loops(s->rows);
    if (s->initial && s->final)
        return rows ? 2u + (rest ? 2 : loops) + 8 + rows * (1 + quads_of_row(s)) +
                          (loops ? 10 * (rows - 1) + 1 : 0) + 1
                    : 2 + 2 + 1;
    uint64_t base = s->initial ? 4 : 5, entry = base + (rest ? 2 : 1) + 3 + 2;
    uint64_t setup = s->initial ? 6 : s->final ? 14 : 13;
    return rows ? entry + rows * (setup + quads_of_row(s) + (loops ? (s->initial ? 4 : 5) : 0)) + 1
                : base + 2 + 1;
}

static void cycles(const KernelSpec *spec, Clock *clock)
{
    MergeShape s = shape_of(spec);
    uint64_t bundles[TILE_WORKERS];
    for (uint32_t w = 0; w < TILE_WORKERS; w++)
        bundles[w] = worker_bundles(&s, w);
    clock_launch_once(clock, s.final && !s.initial ? 4 : 3, bundles);
}

static uint64_t useful(const KernelSpec *spec)
{
    return (uint64_t)spec->p[MERGE_ROWS] * (uint32_t)spec->p[MERGE_COLUMNS];
}

static double value_of(const MergeShape *s, const void *values, size_t row, size_t column)
{
    return half_of(values, (column / 16 * s->rows + row) * 16 + column % 16);
}

/* One block that is all: the quotient is one rounding of (high + low) * value. */
static void divide(const MergeShape *s, void *out, const void *values, const float *statistics)
{
    for (size_t r = 0; r < s->rows; r++) {
        float factor = (float)(1 / (double)statistics[s->rows + r]);
        double high = half_round((double)factor);
        double low = half_round((double)(factor - (float)high));
        for (size_t c = 0; c < s->columns; c++) {
            long double v = value_of(s, values, r, c);
            half_set(out, r * s->columns + c, (double)(float)(high * v + low * v));
        }
    }
}

static void merge_row(const MergeShape *s, size_t r, float *state, const void *values,
                      const float *statistics, void *out)
{
    float *maximum = state + s->columns, *sum = maximum + 1;
    float larger = fmaxf(*maximum, statistics[r]);
    float a = (float)exp((double)(*maximum - larger));
    float b = (float)exp((double)(statistics[r] - larger));
    float new_sum = *sum * a + statistics[s->rows + r] * b;
    if (s->final) {
        float factor = (float)(1 / (double)new_sum);
        a *= factor;
        b *= factor;
    }
    for (size_t c = 0; c < s->columns; c++) {
        float block = b * (float)value_of(s, values, r, c);
        float value = (float)((long double)a * state[c] + (long double)block);
        if (s->final)
            half_set(out, r * s->columns + c, (double)value);
        else
            state[c] = value;
    }
    if (!s->final) {
        *maximum = larger;
        *sum = new_sum;
    }
}

static void reference(const KernelSpec *spec, void *const *operands)
{
    MergeShape s = shape_of(spec);
    if (s.initial && s.final) {
        divide(&s, operands[0], operands[1], operands[2]);
        return;
    }
    const void *values = operands[s.final ? 2 : 1];
    const float *statistics = operands[s.final ? 3 : 2];
    float *states = operands[s.final ? 1 : 0];
    for (size_t r = 0; r < s.rows; r++) {
        float *state = states + r * s.stride;
        if (!s.initial) {
            merge_row(&s, r, state, values, statistics, operands[0]);
            continue;
        }
        for (size_t c = 0; c < s.columns; c++)
            state[c] = (float)value_of(&s, values, r, c);
        state[s.columns] = statistics[r];
        state[s.columns + 1] = statistics[s.rows + r];
    }
}

const KernelFamilyInfo kernel_family_attention_merge = {
    .name = "attention_merge",
    .source = "attention_merge.S",
    .parameters = {[MERGE_ROWS] = "rows",
                   [MERGE_COLUMNS] = "columns",
                   [MERGE_PADDED_COLUMNS] = "padded_columns",
                   [MERGE_INITIAL] = "initial",
                   [MERGE_FINAL] = "final"},
    .contract = contract,
    .cycles = cycles,
    .useful = useful,
    .reference = reference,
};
