/* moments.c - mean and variance of rows: kernels/moments.S. Exact to the bit. */
#include "kernel/norm.h"

static void cycles_with(const NormShape *s, Clock *clock)
{
    uint64_t first[TILE_WORKERS], second[TILE_WORKERS];
    bool many = s->rows > TILE_WORKERS;
    for (uint32_t w = 0; w < TILE_WORKERS; w++) {
        bool leaves;
        uint64_t entry = norm_find_slice(s, w / s->parts, &leaves);
        uint64_t store = s->parts > 1 ? 1 : 4 + (s->rows > s->teams);
        first[w] = entry +
                   norm_rows_of_team(s, w / s->parts) *
                       (norm_slice_statistics(s) + store + norm_next_row(s, false)) +
                   1;
        uint64_t rows = share_of_worker(s->rows, w);
        second[w] = 6 + (s->rows % TILE_WORKERS ? 2 : many) +
                    rows * (norm_combine(s) + 3 + (many ? 3 : 0)) + 1;
    }
    norm_launches(s, clock, first, second);
}

static NormShape shape_of(const KernelSpec *spec)
{
    NormShape s = {.rows = (uint32_t)spec->p[MOMENTS_ROWS],
                   .columns = (uint32_t)spec->p[MOMENTS_COLUMNS],
                   .adds = spec->p[MOMENTS_ADD],
                   .operands = spec->p[MOMENTS_ADD] ? 4 : 2};
    return norm_cut(s, cycles_with);
}

static Status contract(const KernelSpec *spec, KernelContract *out)
{
    TRY(spec_range(spec, MOMENTS_ROWS, 1, 4095, 1));
    TRY(spec_range(spec, MOMENTS_COLUMNS, 8, 16380, 4)); /* a row's bytes are an immediate */
    TRY(spec_range(spec, MOMENTS_ADD, 0, 1, 1));
    uint32_t rows = (uint32_t)spec->p[MOMENTS_ROWS];
    uint64_t bytes = 2 * (uint64_t)(uint32_t)spec->p[MOMENTS_COLUMNS] * rows;
    if (bytes > SRAM_BYTES)
        return status_error("%llu bytes", (unsigned long long)bytes);
    NormShape s = shape_of(spec);
    contract_operand(out, "moments", true, PRECISION_F32, ORDER_ROWS, 8 * rows, 8);
    if (s.adds)
        contract_operand(out, "sum", true, PRECISION_F16, ORDER_ROWS, (uint32_t)bytes, 8);
    contract_operand(out, s.adds ? "a" : "x", false, PRECISION_F16, ORDER_ROWS, (uint32_t)bytes, 8);
    if (s.adds) {
        contract_operand(out, "b", false, PRECISION_F16, ORDER_ROWS, (uint32_t)bytes, 8);
        out->operands[1].in_place = 2;
        contract_separate(out, 2, 3); /* loaded together */
    }
    out->stack_bytes = norm_frame_bytes(&s);
    contract_define(out, "MOMENTS_ROWS", spec->p[MOMENTS_ROWS]);
    contract_define(out, "MOMENTS_COLUMNS", spec->p[MOMENTS_COLUMNS]);
    contract_define(out, "MOMENTS_ADD", s.adds);
    contract_define(out, "MOMENTS_PARTS", (int32_t)s.parts);
    contract_define(out, "MOMENTS_RECIPROCAL", (int32_t)float_bits(norm_reciprocal(&s)));
    return STATUS_OK;
}

static void cycles(const KernelSpec *spec, Clock *clock)
{
    NormShape s = shape_of(spec);
    cycles_with(&s, clock);
}

static uint64_t useful(const KernelSpec *spec)
{
    return (uint64_t)spec->p[MOMENTS_ROWS] * (uint32_t)spec->p[MOMENTS_COLUMNS];
}

static void reference(const KernelSpec *spec, void *const *operands)
{
    NormShape s = shape_of(spec);
    float *moments = operands[0];
    if (s.adds)
        norm_add(&s, operands[1], operands[2], operands[3]);
    for (size_t r = 0; r < s.rows; r++) {
        Slice slices[TILE_WORKERS];
        const uint8_t *x = (const uint8_t *)operands[1] + 2 * r * s.columns;
        for (uint32_t part = 0; part < s.parts; part++)
            slices[part] = norm_slice(&s, part, x, NULL);
        Slice row = norm_row(&s, slices);
        moments[2 * r] = 0 - row.minus_mean;
        moments[2 * r + 1] = 0 - row.minus_variance;
    }
}

const KernelFamilyInfo kernel_family_moments = {
    .name = "moments",
    .source = "moments.S",
    .parameters = {[MOMENTS_ROWS] = "rows", [MOMENTS_COLUMNS] = "columns", [MOMENTS_ADD] = "add"},
    .contract = contract,
    .cycles = cycles,
    .useful = useful,
    .reference = reference,
};
