/* layer_norm.c - layer norm of rows, F16 with F32 statistics: kernels/layer_norm.S. Exact to the
 * bit given correctly rounded roots. */
#include "kernel/norm.h"

static uint64_t normalise(const NormShape *s)
{
    return 17 + (s->quads > 2 ? 1 + 3 * (uint64_t)(s->quads - 2) : 0);
}

static void cycles_with(const NormShape *s, Clock *clock)
{
    uint64_t first[TILE_WORKERS], second[TILE_WORKERS];
    bool cut = s->parts > 1, many = s->rows > s->teams;
    for (uint32_t w = 0; w < TILE_WORKERS; w++) {
        uint64_t rows = norm_rows_of_team(s, w / s->parts);
        bool leaves;
        uint64_t entry = norm_find_slice(s, w / s->parts, &leaves);
        uint64_t row = norm_slice_statistics(s) + (cut ? 1 : normalise(s)) + norm_next_row(s, !cut);
        first[w] = entry + rows * row + 1;
        if (!many) /* the registers are still there */
            entry = s->rows < s->teams;
        row = many + norm_combine(s) + 3 + normalise(s) + norm_next_row(s, true);
        second[w] = entry + rows * row + 1;
    }
    norm_launches(s, clock, first, second);
}

static NormShape shape_of(const KernelSpec *spec)
{
    NormShape s = {.rows = (uint32_t)spec->p[LAYER_NORM_ROWS],
                   .columns = (uint32_t)spec->p[LAYER_NORM_COLUMNS],
                   .adds = spec->p[LAYER_NORM_ADD],
                   .operands = spec->p[LAYER_NORM_ADD] ? 6 : 4};
    return norm_cut(s, cycles_with);
}

static Status contract(const KernelSpec *spec, KernelContract *out)
{
    TRY(spec_range(spec, LAYER_NORM_ROWS, 1, 4095, 1));
    TRY(spec_range(spec, LAYER_NORM_ADD, 0, 1, 1));
    TRY(spec_range(spec, LAYER_NORM_COLUMNS, 8, 16380, 4)); /* a row's bytes are an immediate */
    float epsilon = float_from_bits((uint32_t)spec->p[LAYER_NORM_EPSILON_BITS]);
    if (!(epsilon >= 1e-30f && epsilon < INFINITY))
        return status_error("epsilon is %g", (double)epsilon);
    uint32_t row = 2 * (uint32_t)spec->p[LAYER_NORM_COLUMNS];
    uint64_t bytes = (uint64_t)row * (uint32_t)spec->p[LAYER_NORM_ROWS];
    if (bytes > SRAM_BYTES)
        return status_error("%llu bytes", (unsigned long long)bytes);
    NormShape s = shape_of(spec);
    contract_operand(out, "result", true, PRECISION_F16, ORDER_ROWS, (uint32_t)bytes, 8);
    if (s.adds)
        contract_operand(out, "sum", true, PRECISION_F16, ORDER_ROWS, (uint32_t)bytes, 8);
    contract_operand(out, s.adds ? "a" : "x", false, PRECISION_F16, ORDER_ROWS, (uint32_t)bytes, 8);
    if (s.adds)
        contract_operand(out, "b", false, PRECISION_F16, ORDER_ROWS, (uint32_t)bytes, 8);
    contract_operand(out, "scale", false, PRECISION_F16, ORDER_ROWS, row, 8);
    contract_operand(out, "bias", false, PRECISION_F16, ORDER_ROWS, row, 8);
    if (s.adds)
        out->operands[1].in_place = 2; /* the sum in a; the result could not be there as well */
    else
        out->operands[0].in_place = 1;
    contract_separate(out, 0, s.adds ? 4 : 2); /* result (for d) and scale are loaded together */
    if (s.adds)
        contract_separate(out, 2, 3);
    out->stack_bytes = norm_frame_bytes(&s);
    contract_define(out, "LAYER_NORM_ROWS", spec->p[LAYER_NORM_ROWS]);
    contract_define(out, "LAYER_NORM_COLUMNS", spec->p[LAYER_NORM_COLUMNS]);
    contract_define(out, "LAYER_NORM_EPSILON", spec->p[LAYER_NORM_EPSILON_BITS]);
    contract_define(out, "LAYER_NORM_ADD", s.adds);
    contract_define(out, "LAYER_NORM_PARTS", (int32_t)s.parts);
    contract_define(out, "LAYER_NORM_RECIPROCAL", (int32_t)float_bits(norm_reciprocal(&s)));
    return STATUS_OK;
}

static void cycles(const KernelSpec *spec, Clock *clock)
{
    NormShape s = shape_of(spec);
    cycles_with(&s, clock);
}

static uint64_t useful(const KernelSpec *spec)
{
    return (uint64_t)spec->p[LAYER_NORM_ROWS] * (uint32_t)spec->p[LAYER_NORM_COLUMNS];
}

static void normalise_row(const NormShape *s, const Slice *slices, float epsilon, uint8_t *out,
                          const void *scale, const void *bias)
{
    Slice row = norm_row(s, slices);
    double factor = half_round((float)(1 / sqrt((double)(epsilon - row.minus_variance))));
    for (uint32_t c = 0; c < s->columns; c++) {
        float centre = slices[c / 4 % s->parts].minus_centre;
        double away = half_round((double)(row.minus_mean - centre)), d = half_of(out, c);
        double n = half_round((float)((long double)factor * d + (long double)factor * away));
        half_set(out, c, half_round(n * half_of(scale, c)) + half_of(bias, c));
    }
}

static void reference(const KernelSpec *spec, void *const *operands)
{
    NormShape s = shape_of(spec);
    float epsilon = float_from_bits((uint32_t)spec->p[LAYER_NORM_EPSILON_BITS]);
    const void *scale = operands[s.adds ? 4 : 2], *bias = operands[s.adds ? 5 : 3];
    if (s.adds)
        norm_add(&s, operands[1], operands[2], operands[3]);
    for (size_t r = 0; r < s.rows; r++) {
        Slice slices[TILE_WORKERS];
        const uint8_t *x = (const uint8_t *)operands[1] + 2 * r * s.columns;
        uint8_t *out = (uint8_t *)operands[0] + 2 * r * s.columns;
        for (uint32_t part = 0; part < s.parts; part++)
            slices[part] = norm_slice(&s, part, x, out);
        normalise_row(&s, slices, epsilon, out, scale, bias);
    }
}

const KernelFamilyInfo kernel_family_layer_norm = {
    .name = "layer_norm",
    .source = "layer_norm.S",
    .parameters = {[LAYER_NORM_ROWS] = "rows",
                   [LAYER_NORM_COLUMNS] = "columns",
                   [LAYER_NORM_EPSILON_BITS] = "epsilon_bits",
                   [LAYER_NORM_ADD] = "add"},
    .contract = contract,
    .cycles = cycles,
    .useful = useful,
    .reference = reference,
};
