/* layer_norm.c - layer norm of rows, F16 with F32 statistics: kernels/layer_norm.S, where the
 * method and the ways to cut rows are described. Here the cheapest way is chosen by the formula
 * itself. */
#include "kernel/launch.h"

enum { STACK_LIMIT = 224 /* of the supervisor's 256 bytes */ };
static const uint32_t all_parts[] = {1, 2, 3, 6};

typedef struct NormShape {
    uint32_t rows, columns;
    uint32_t parts; /* slices of a row */
    uint32_t quads; /* of a slice */
    uint32_t teams; /* of `parts` workers; each takes a row at a time */
    bool adds;      /* x is a + b */
} NormShape;

static NormShape shape_with(const KernelSpec *spec, uint32_t parts)
{
    NormShape s = {.rows = (uint32_t)spec->p[LAYER_NORM_ROWS],
                   .columns = (uint32_t)spec->p[LAYER_NORM_COLUMNS],
                   .parts = parts,
                   .teams = TILE_WORKERS / parts,
                   .adds = spec->p[LAYER_NORM_ADD]};
    s.quads = s.columns / 4 / parts;
    return s;
}

static uint32_t statistics_bytes(const NormShape *s) /* of one row */
{
    return (s->parts + 1) / 2 * 16;
}

static uint32_t frame_bytes(const NormShape *s)
{
    return (s->adds ? 24 : 16) + (s->parts > 1 ? s->rows * statistics_bytes(s) : 0);
}

static bool possible(const NormShape *s)
{
    return s->columns % (4 * s->parts) == 0 && s->quads >= 2 && s->quads <= REPEAT_LIMIT &&
           frame_bytes(s) <= STACK_LIMIT;
}

/* Slots of the parts of the source, by its names. */
static uint64_t find_slice(const NormShape *s, bool *leaves, uint32_t team)
{
    static const uint8_t part_and_team[] = {[1] = 2, [2] = 2, [3] = 4, [6] = 1};
    bool rest = s->rows % s->teams != 0, share = s->rows >= s->teams;
    uint64_t slots = 5u + part_and_team[s->parts] + (rest ? 2 : 1);
    *leaves = !share && team >= s->rows;
    if (*leaves)
        return slots;
    slots += s->parts > 1 ? 6 : 1;
    return (slots + 1) / 2 * 2; /* .align 8 */
}

static uint64_t slice_statistics(const NormShape *s)
{
    return s->adds ? 19 + 5 * (uint64_t)s->quads : 21 + 3 * (uint64_t)s->quads;
}

static uint64_t normalise(const NormShape *s)
{
    return 21 + (s->quads > 2 ? 1 + 4 * (uint64_t)(s->quads - 2) : 0);
}

static uint64_t combine(const NormShape *s)
{
    return s->parts == 6 ? 24 : s->parts == 3 ? 20 : 16; /* with K and its distance from the mean */
}

static uint64_t next_row(const NormShape *s)
{
    return s->rows > s->teams ? (s->parts > 1 ? 4 : 3) : 0;
}

static void cycles_with(const NormShape *s, Clock *clock)
{
    uint64_t first[TILE_WORKERS], second[TILE_WORKERS];
    for (uint32_t w = 0; w < TILE_WORKERS; w++) {
        uint32_t team = w / s->parts;
        uint64_t rows = s->rows / s->teams + (team < s->rows % s->teams);
        bool leaves;
        uint64_t entry = find_slice(s, &leaves, team);
        uint64_t row = slice_statistics(s) + next_row(s);
        first[w] = entry + rows * (row + (s->parts > 1 ? 1 : normalise(s))) + 1;
        if (s->rows <= s->teams)
            entry = s->rows < s->teams ? (leaves ? 1 : 2) : 0;
        second[w] = entry + rows * (combine(s) + normalise(s) + next_row(s)) + 1;
    }
    clock_open_frame(clock, s->adds ? 6 : 4);
    clock_launch(clock, first);
    if (s->parts > 1) {
        clock_issue(clock, 1);
        clock_sync(clock);
        clock_launch(clock, second);
    }
    clock_sync(clock);
    clock_branch(clock);
}

static NormShape shape_of(const KernelSpec *spec)
{
    NormShape best = {0};
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < countof(all_parts); i++) {
        NormShape s = shape_with(spec, all_parts[i]);
        Clock clock = {0};
        if (!possible(&s))
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
    out->stack_bytes = frame_bytes(&s);
    float slice = (float)(s.quads * 4);
    contract_define(out, "LAYER_NORM_ROWS", spec->p[LAYER_NORM_ROWS]);
    contract_define(out, "LAYER_NORM_COLUMNS", spec->p[LAYER_NORM_COLUMNS]);
    contract_define(out, "LAYER_NORM_EPSILON", spec->p[LAYER_NORM_EPSILON_BITS]);
    contract_define(out, "LAYER_NORM_ADD", s.adds);
    contract_define(out, "LAYER_NORM_PARTS", (int32_t)s.parts);
    contract_define(out, "LAYER_NORM_RECIPROCAL", (int32_t)float_bits(1 / slice));
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

typedef struct Slice {
    float mean, variance, centre; /* centre: K */
} Slice;

/* Quads part, part + parts, ... of a row; d goes to out. */
static Slice slice_statistics_of(const NormShape *s, uint32_t part, const uint8_t *x, uint8_t *out)
{
    static const double ones[4] = {1, 1, 1, 1};
    float reciprocal = 1 / (float)(s->quads * 4);
    HalfSums sums = {0}, squares = {0};
    for (uint32_t q = part; q < s->columns / 4; q += s->parts) {
        double quad[4];
        for (uint32_t i = 0; i < 4; i++)
            quad[i] = half_of(x, 4 * q + i);
        half_accumulate(&sums, quad, ones);
    }
    Slice slice = {.mean = (sums.low + sums.high) * reciprocal};
    slice.centre = (float)half_round((double)slice.mean);
    for (uint32_t q = part; q < s->columns / 4; q += s->parts) {
        double quad[4];
        for (uint32_t i = 0; i < 4; i++) {
            quad[i] = half_round((double)slice.centre - half_of(x, 4 * q + i));
            half_set(out, 4 * q + i, quad[i]);
        }
        half_accumulate(&squares, quad, quad);
    }
    float away = slice.mean - slice.centre;
    float mean_square = (squares.low + squares.high) * reciprocal;
    slice.variance = fmaxf(mean_square - away * away, 0);
    return slice;
}

/* COMBINE: its order of additions. */
static Slice combine_slices(const NormShape *s, const Slice *slices)
{
    if (s->parts == 1)
        return slices[0];
    float one_part = 1 / (float)s->parts, sum[2] = {0}, variance[2] = {0}, spread[2] = {0};
    for (uint32_t i = 0; i < s->parts; i++) {
        sum[i % 2] = i < 2 ? slices[i].mean : sum[i % 2] + slices[i].mean;
        variance[i % 2] = i < 2 ? slices[i].variance : variance[i % 2] + slices[i].variance;
    }
    if (s->parts == 3) { /* one lane: the first two, then the third */
        sum[0] = (slices[0].mean + slices[1].mean) + slices[2].mean;
        variance[0] = (slices[0].variance + slices[1].variance) + slices[2].variance;
        sum[1] = variance[1] = 0;
    }
    Slice row = {.mean = (sum[0] + sum[1]) * one_part};
    for (uint32_t i = 0; i < s->parts; i++) {
        float away = row.mean - slices[i].mean;
        spread[i % 2] = (float)((double)spread[i % 2] + (double)away * away);
    }
    if (s->parts == 3)
        row.variance = (variance[0] + (spread[0] + spread[1])) * one_part;
    else
        row.variance = ((variance[0] + spread[0]) + (variance[1] + spread[1])) * one_part;
    return row;
}

static void normalise_row(const NormShape *s, const Slice *slices, float epsilon, uint8_t *out,
                          const void *scale, const void *bias)
{
    Slice row = combine_slices(s, slices);
    float root = (float)(1 / sqrt((double)(row.variance + epsilon)));
    double factor = half_round(-(double)root);
    for (uint32_t c = 0; c < s->columns; c++) {
        double away = half_round((double)(row.mean - slices[c / 4 % s->parts].centre));
        double d = half_of(out, c);
        double n = half_round((float)((long double)factor * d + (long double)factor * away));
        half_set(out, c, half_round(n * half_of(scale, c)) + half_of(bias, c));
    }
}

static void reference(const KernelSpec *spec, void *const *operands)
{
    NormShape s = shape_of(spec);
    float epsilon = float_from_bits((uint32_t)spec->p[LAYER_NORM_EPSILON_BITS]);
    const void *scale = operands[s.adds ? 4 : 2], *bias = operands[s.adds ? 5 : 3];
    for (size_t i = 0; s.adds && i < (size_t)s.rows * s.columns; i++)
        half_set(operands[1], i, half_of(operands[2], i) + half_of(operands[3], i));
    for (size_t r = 0; r < s.rows; r++) {
        Slice slices[TILE_WORKERS];
        const uint8_t *x = (const uint8_t *)operands[1] + 2 * r * s.columns;
        uint8_t *out = (uint8_t *)operands[0] + 2 * r * s.columns;
        for (uint32_t part = 0; part < s.parts; part++)
            slices[part] = slice_statistics_of(&s, part, x, out);
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
