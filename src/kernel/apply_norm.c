/* apply_norm.c - layer norm from moments that were gathered: kernels/apply_norm.S. Exact to the bit
 * given correctly rounded roots. */
#include "kernel/launch.h"

typedef struct ApplyShape {
    uint32_t rows, columns, parts;
    uint32_t lanes; /* workers that share a row */
    uint32_t teams; /* rows at a time */
} ApplyShape;

static const uint32_t all_lanes[] = {1, 2, 3, 6};

static void cycles_with(const ApplyShape *s, Clock *clock)
{
    static const uint8_t lane_and_team[] = {[1] = 2, [2] = 2, [3] = 4, [6] = 1};
    uint32_t quads = s->columns / 4;
    uint64_t bundles[TILE_WORKERS];
    for (uint32_t w = 0; w < TILE_WORKERS; w++) {
        uint32_t team = w / s->lanes, lane = w % s->lanes;
        uint64_t rows = s->rows / s->teams + (team < s->rows % s->teams);
        uint64_t n = quads / s->lanes + (lane < quads % s->lanes);
        uint64_t entry = 6u + lane_and_team[s->lanes] + (s->rows % s->teams ? 2 : 1);
        uint64_t combine = s->parts == 1 ? 2 : 13 + 3 * (uint64_t)s->parts;
        if (rows)
            entry =
                round_up_u32((uint32_t)entry + (quads % s->lanes ? 2 : 1) + 5, 2); /* .align 8 */
        bundles[w] = entry + rows * (combine + 27 + 5 * (n - 2) + (s->rows > s->teams ? 4 : 0)) + 1;
    }
    clock_launch_once(clock, 5, bundles);
}

/* The cheapest way to deal rows. */
static ApplyShape shape_of(const KernelSpec *spec)
{
    ApplyShape s = {.rows = (uint32_t)spec->p[APPLY_NORM_ROWS],
                    .columns = (uint32_t)spec->p[APPLY_NORM_COLUMNS],
                    .parts = (uint32_t)spec->p[APPLY_NORM_PARTS]};
    ApplyShape best = s;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < countof(all_lanes); i++) {
        Clock clock = {0};
        s.lanes = all_lanes[i];
        s.teams = TILE_WORKERS / s.lanes;
        if (s.columns / 4 / s.lanes < 2)
            continue;
        cycles_with(&s, &clock);
        if (clock.now < least) {
            least = clock.now;
            best = s;
        }
    }
    return best;
}

static Status contract(const KernelSpec *spec, KernelContract *out)
{
    TRY(spec_range(spec, APPLY_NORM_ROWS, 1, 4095, 1));
    TRY(spec_range(spec, APPLY_NORM_COLUMNS, 8, 16380, 4)); /* a row's bytes are an immediate */
    TRY(spec_range(spec, APPLY_NORM_PARTS, 1, 1472, 1));
    float epsilon = float_from_bits((uint32_t)spec->p[APPLY_NORM_EPSILON_BITS]);
    if (!(epsilon >= 1e-30f && epsilon < INFINITY))
        return status_error("epsilon is %g", (double)epsilon);
    uint32_t rows = (uint32_t)spec->p[APPLY_NORM_ROWS];
    uint32_t row = 2 * (uint32_t)spec->p[APPLY_NORM_COLUMNS];
    uint64_t bytes = (uint64_t)row * rows;
    uint64_t moments = 8 * (uint64_t)rows * (uint32_t)spec->p[APPLY_NORM_PARTS];
    if (bytes + moments > SRAM_BYTES)
        return status_error("%llu bytes", (unsigned long long)(bytes + moments));
    ApplyShape s = shape_of(spec);
    contract_operand(out, "result", true, PRECISION_F16, ORDER_ROWS, (uint32_t)bytes, 8);
    contract_operand(out, "x", false, PRECISION_F16, ORDER_ROWS, (uint32_t)bytes, 8);
    contract_operand(out, "moments", false, PRECISION_F32, ORDER_ROWS, (uint32_t)moments, 8);
    contract_operand(out, "scale", false, PRECISION_F16, ORDER_ROWS, row, 8);
    contract_operand(out, "bias", false, PRECISION_F16, ORDER_ROWS, row, 8);
    out->operands[0].in_place = 1;
    out->stack_bytes = 24;
    contract_define(out, "APPLY_NORM_ROWS", spec->p[APPLY_NORM_ROWS]);
    contract_define(out, "APPLY_NORM_COLUMNS", spec->p[APPLY_NORM_COLUMNS]);
    contract_define(out, "APPLY_NORM_PARTS", spec->p[APPLY_NORM_PARTS]);
    contract_define(out, "APPLY_NORM_EPSILON", spec->p[APPLY_NORM_EPSILON_BITS]);
    contract_define(out, "APPLY_NORM_LANES", (int32_t)s.lanes);
    contract_define(out, "APPLY_NORM_ONE_PART", (int32_t)float_bits(1 / (float)s.parts));
    return STATUS_OK;
}

static void cycles(const KernelSpec *spec, Clock *clock)
{
    ApplyShape s = shape_of(spec);
    cycles_with(&s, clock);
}

static uint64_t useful(const KernelSpec *spec)
{
    return (uint64_t)spec->p[APPLY_NORM_ROWS] * (uint32_t)spec->p[APPLY_NORM_COLUMNS];
}

typedef struct Moments {
    float mean, variance;
} Moments;

static Moments combine(const ApplyShape *s, const float *all, size_t row)
{
    const float *one = all + 2 * row;
    if (s->parts == 1)
        return (Moments){one[0], one[1]};
    float part = 1 / (float)s->parts, spread = 0;
    Moments sum = {0};
    for (size_t i = 0; i < s->parts; i++) {
        sum.mean += one[2 * s->rows * i];
        sum.variance += one[2 * s->rows * i + 1];
    }
    Moments m = {.mean = sum.mean * part};
    for (size_t i = 0; i < s->parts; i++) {
        float away = m.mean - one[2 * s->rows * i];
        spread = (float)((double)spread + (double)away * away);
    }
    m.variance = (sum.variance + spread) * part;
    return m;
}

static void reference(const KernelSpec *spec, void *const *operands)
{
    ApplyShape s = shape_of(spec);
    float epsilon = float_from_bits((uint32_t)spec->p[APPLY_NORM_EPSILON_BITS]);
    for (size_t r = 0; r < s.rows; r++) {
        Moments m = combine(&s, operands[2], r);
        float root = (float)(1 / sqrt((double)(m.variance + epsilon)));
        double factor = half_round(-(double)root), centre = half_round((double)m.mean);
        double away = half_round((double)(m.mean - (float)centre));
        for (size_t c = 0; c < s.columns; c++) {
            double d = half_round(centre - half_of(operands[1], r * s.columns + c));
            double n = half_round((float)((long double)factor * d + (long double)factor * away));
            half_set(operands[0], r * s.columns + c,
                     half_round(n * half_of(operands[3], c)) + half_of(operands[4], c));
        }
    }
}

const KernelFamilyInfo kernel_family_apply_norm = {
    .name = "apply_norm",
    .source = "apply_norm.S",
    .parameters = {[APPLY_NORM_ROWS] = "rows",
                   [APPLY_NORM_COLUMNS] = "columns",
                   [APPLY_NORM_PARTS] = "parts",
                   [APPLY_NORM_EPSILON_BITS] = "epsilon_bits"},
    .contract = contract,
    .cycles = cycles,
    .useful = useful,
    .reference = reference,
};
