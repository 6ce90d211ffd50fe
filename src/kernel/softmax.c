/* softmax.c - exponentials of scores and their statistics: kernels/softmax.S. Exact to the bit
 * given correctly rounded exponentials. */
#include "kernel/launch.h"

typedef struct SoftmaxShape {
    uint32_t rows, keys, padded;
    float scale;
    uint32_t quads, lanes;      /* with keys; keys in the last one, 0: four */
    uint32_t full, last, empty; /* as in the source */
    uint32_t parts, teams;      /* parts of a row, rows at a time */
} SoftmaxShape;

enum { STACK_LIMIT = 224 /* of the supervisor's 256 bytes */ };
static const uint32_t all_parts[] = {1, 2, 3, 6};

static SoftmaxShape shape_with(const KernelSpec *spec, uint32_t parts)
{
    SoftmaxShape s = {.rows = (uint32_t)spec->p[SOFTMAX_ROWS],
                      .keys = (uint32_t)spec->p[SOFTMAX_KEYS],
                      .padded = (uint32_t)spec->p[SOFTMAX_PADDED_KEYS],
                      .scale = float_from_bits((uint32_t)spec->p[SOFTMAX_SCALE_BITS])};
    s.quads = ceil_div_u32(s.keys, 4);
    s.lanes = s.keys % 4;
    s.full = (s.quads - 1) / 4;
    s.last = s.quads - 4 * s.full;
    s.empty = s.padded / 16 - s.full - 1;
    s.parts = parts;
    s.teams = TILE_WORKERS / parts;
    return s;
}

static uint32_t frame_bytes(const SoftmaxShape *s)
{
    return 16 + (s->parts > 1 ? s->rows * ((s->parts + 1) / 2) * 16 : 0);
}

static bool possible(const SoftmaxShape *s)
{
    return s->full + 1 >= s->parts && frame_bytes(s) <= STACK_LIMIT;
}

/* Slots of the source's macros. A part of `panels` full panels; the last one also ends the keys. */
static const uint8_t cut_slots[] = {0, 2, 1, 1};

static uint64_t find_maximum(const SoftmaxShape *s, uint64_t panels, bool last)
{
    if (s->quads == 1)
        return 4 + cut_slots[s->lanes];
    uint64_t skip = s->parts > 1;
    return 4 + 1 + 4 * panels + skip + (last ? s->last + cut_slots[s->lanes] : 0) + 3;
}

static uint64_t make_exponentials(const SoftmaxShape *s, uint64_t panels, bool last)
{
    uint64_t zeros = 4 - s->last + (s->empty ? 1 + 4 * (uint64_t)s->empty : 0);
    uint64_t end = 5 * (uint64_t)s->last + cut_slots[s->lanes] + zeros, skip = s->parts > 1;
    return 9 + (skip || s->full ? 1 + 20 * panels : 0) + skip + (last ? end : 0) + 2;
}

/* The path of one quad a row. */
static void cycles_quad(const SoftmaxShape *s, Clock *clock)
{
    uint64_t cut = s->lanes ? 1 + 2 * (uint64_t)cut_slots[s->lanes] : 0;
    bool rest = s->rows % TILE_WORKERS != 0, loops = share_loops(s->rows);
    uint64_t bundles[TILE_WORKERS];
    for (uint32_t w = 0; w < TILE_WORKERS; w++) {
        uint64_t rows = share_of_worker(s->rows, w), entry = 6u + (rest ? 2 : loops);
        bundles[w] = rows ? entry + rows * (13 + cut + (loops ? 3 : 0)) + 1 : 4 + 2 + 1;
    }
    clock_launch_once(clock, 3, bundles);
}

static void cycles_whole(const SoftmaxShape *s, Clock *clock)
{
    bool rest = s->rows % TILE_WORKERS != 0, loops = share_loops(s->rows);
    bool counts = rest || s->rows > TILE_WORKERS, jumps = s->quads > 4 || s->empty;
    uint64_t entry = 4 + (rest ? 2 : counts ? 1 : 0) + 2 + jumps + (counts != jumps);
    uint64_t row =
        find_maximum(s, s->full, true) + make_exponentials(s, s->full, true) + 1 + (loops ? 3 : 0);
    uint64_t bundles[TILE_WORKERS];
    for (uint32_t w = 0; w < TILE_WORKERS; w++) {
        uint64_t rows = share_of_worker(s->rows, w);
        bundles[w] = rows ? entry + rows * row + 1 : 4 + 2 + 1;
    }
    clock_launch_once(clock, 3, bundles);
}

static uint64_t find_part(const SoftmaxShape *s, bool *leaves, uint32_t team)
{
    bool rest = s->rows % s->teams != 0;
    uint64_t slots = 4 + (s->parts == 3 ? 4 : 2) + (rest ? 2 : 1);
    *leaves = s->rows < s->teams && team >= s->rows;
    return *leaves ? slots : (slots + 17 + 1) / 2 * 2; /* .align 8 */
}

static uint64_t add_sums(const SoftmaxShape *s, uint32_t w)
{
    static const uint8_t sum[] = {[2] = 3, [3] = 5, [6] = 7};
    uint64_t rows = share_of_worker(s->rows, w);
    uint64_t count = s->rows % TILE_WORKERS ? 2 : s->rows > TILE_WORKERS;
    if (rows == 0)
        return 2 + count + 1;
    return 2 + count + 3 + rows * (sum[s->parts] + (share_loops(s->rows) ? 3 : 0)) + 1;
}

static void cycles_parts(const SoftmaxShape *s, Clock *clock)
{
    uint64_t maxima[TILE_WORKERS], exponentials[TILE_WORKERS], sums[TILE_WORKERS];
    uint64_t next = s->rows > s->teams ? 4 : 0, combine = s->parts == 6 ? 6 : s->parts == 3 ? 5 : 4;
    for (uint32_t w = 0; w < TILE_WORKERS; w++) {
        uint32_t part = w % s->parts, team = w / s->parts;
        bool last = part == s->parts - 1, leaves;
        uint64_t rows = s->rows / s->teams + (team < s->rows % s->teams);
        uint64_t panels = (s->full + 1) / s->parts + (part < (s->full + 1) % s->parts) - last;
        uint64_t entry = find_part(s, &leaves, team);
        maxima[w] = entry + rows * (find_maximum(s, panels, last) + 1 + next) + 1;
        exponentials[w] = entry + (leaves ? 0 : 2) +
                          rows * (combine + make_exponentials(s, panels, last) + 1 + next) + 1;
        sums[w] = add_sums(s, w);
    }
    clock_open_frame(clock, 3);
    clock_launch(clock, maxima);
    clock_issue(clock, 1);
    clock_sync(clock);
    clock_launch(clock, exponentials);
    clock_issue(clock, 1);
    clock_sync(clock);
    clock_launch(clock, sums);
    clock_sync(clock);
    clock_branch(clock);
}

static void cycles_with(const SoftmaxShape *s, Clock *clock)
{
    if (s->parts == 1 && s->quads == 1 && s->empty == 0)
        cycles_quad(s, clock);
    else if (s->parts == 1)
        cycles_whole(s, clock);
    else
        cycles_parts(s, clock);
}

/* The cheapest way to cut the rows. */
static SoftmaxShape shape_of(const KernelSpec *spec)
{
    SoftmaxShape best = {0};
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < countof(all_parts); i++) {
        SoftmaxShape s = shape_with(spec, all_parts[i]);
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
    TRY(spec_range(spec, SOFTMAX_ROWS, 1, 4095, 1));
    TRY(spec_range(spec, SOFTMAX_PADDED_KEYS, 16, 65520, 16));
    TRY(spec_range(spec, SOFTMAX_KEYS, 1, spec->p[SOFTMAX_PADDED_KEYS], 1));
    SoftmaxShape s = shape_of(spec);
    if (!(s.scale >= 0x1p-14f && s.scale <= 60000))
        return status_error("scale %g is not a normal half", (double)s.scale);
    uint64_t bytes = 2 * (uint64_t)s.rows * s.padded;
    if (bytes > SRAM_BYTES)
        return status_error("%llu bytes", (unsigned long long)bytes);
    contract_operand(out, "exponentials", true, PRECISION_F16, ORDER_PANELS, (uint32_t)bytes, 8);
    contract_operand(out, "statistics", true, PRECISION_F32, ORDER_ROWS, 8 * s.rows, 4);
    contract_operand(out, "scores", false, PRECISION_F16, ORDER_PANELS, (uint32_t)bytes, 8);
    out->operands[0].in_place = 2;
    out->operands[0].held = PADDING_ZERO;
    out->operands[2].need = PADDING_ANYTHING;
    out->stack_bytes = frame_bytes(&s);
    contract_define(out, "SOFTMAX_ROWS", spec->p[SOFTMAX_ROWS]);
    contract_define(out, "SOFTMAX_KEYS", spec->p[SOFTMAX_KEYS]);
    contract_define(out, "SOFTMAX_PADDED_KEYS", spec->p[SOFTMAX_PADDED_KEYS]);
    contract_define(out, "SOFTMAX_SCALE", spec->p[SOFTMAX_SCALE_BITS]);
    contract_define(out, "SOFTMAX_PARTS", (int32_t)s.parts);
    contract_define(out, "SOFTMAX_MINUS_SCALE", half_from_float(-s.scale));
    return STATUS_OK;
}

static void cycles(const KernelSpec *spec, Clock *clock)
{
    SoftmaxShape s = shape_of(spec);
    cycles_with(&s, clock);
}

static uint64_t useful(const KernelSpec *spec)
{
    return (uint64_t)spec->p[SOFTMAX_ROWS] * (uint32_t)spec->p[SOFTMAX_KEYS];
}

static size_t place_of(const SoftmaxShape *s, size_t row, size_t key)
{
    return key / 16 * s->rows * 16 + row * 16 + key % 16;
}

/* add_sums: its order of additions. */
static float add_parts(const SoftmaxShape *s, const float *sums)
{
    switch (s->parts) {
    case 6:
        return ((sums[0] + sums[2]) + sums[4]) + ((sums[1] + sums[3]) + sums[5]);
    case 3:
        return (sums[0] + sums[1]) + sums[2];
    case 2:
        return sums[0] + sums[1];
    default:
        return sums[0];
    }
}

static void reference(const KernelSpec *spec, void *const *operands)
{
    static const double ones[4] = {1, 1, 1, 1};
    SoftmaxShape s = shape_of(spec);
    float *statistics = operands[1];
    double scale = half_round((double)-s.scale);
    uint32_t share = (s.full + 1) / s.parts, rest = (s.full + 1) % s.parts;
    for (size_t r = 0; r < s.rows; r++) {
        double maximum = -65504;
        for (size_t k = 0; k < s.keys; k++)
            maximum = fmax(maximum, half_of(operands[2], place_of(&s, r, k)));
        HalfSums sums[TILE_WORKERS] = {0};
        float of_parts[TILE_WORKERS];
        for (uint32_t q = 0; q < s.padded / 4; q++) {
            uint32_t panel = q / 4, long_end = rest * (share + 1);
            uint32_t part =
                panel < long_end ? panel / (share + 1) : rest + (panel - long_end) / share;
            double e[4] = {0};
            for (size_t i = 0; i < 4; i++) {
                size_t at = place_of(&s, r, 4 * q + i);
                if (4 * q + i < s.keys)
                    e[i] = half_round(
                        exp(half_round(scale * half_round(maximum - half_of(operands[2], at)))));
                half_set(operands[0], at, e[i]);
            }
            half_accumulate(&sums[min_u32(part, s.parts - 1)], e,
                            ones); /* f16v4sum does the same */
        }
        for (uint32_t part = 0; part < s.parts; part++)
            of_parts[part] = sums[part].low + sums[part].high;
        statistics[r] = (float)maximum * s.scale;
        statistics[s.rows + r] = add_parts(&s, of_parts);
    }
}

const KernelFamilyInfo kernel_family_softmax = {
    .name = "softmax",
    .source = "softmax.S",
    .parameters = {[SOFTMAX_ROWS] = "rows",
                   [SOFTMAX_KEYS] = "keys",
                   [SOFTMAX_PADDED_KEYS] = "padded_keys",
                   [SOFTMAX_SCALE_BITS] = "scale_bits"},
    .contract = contract,
    .cycles = cycles,
    .useful = useful,
    .reference = reference,
};
