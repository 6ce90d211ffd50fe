/* softmax.c - exponentials of scores and their statistics: kernels/softmax.S. Exact to the bit
 * given correctly rounded exponentials. */
#include "kernel/launch.h"

typedef struct SoftmaxShape {
    uint32_t rows, keys, padded;
    float scale;
    uint32_t quads, lanes;      /* with keys; keys in the last one, 0: four */
    uint32_t full, last, empty; /* as in the source */
} SoftmaxShape;

static SoftmaxShape shape_of(const KernelSpec *spec)
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
    return s;
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
    out->stack_bytes = 16;
    contract_define(out, "SOFTMAX_ROWS", spec->p[SOFTMAX_ROWS]);
    contract_define(out, "SOFTMAX_KEYS", spec->p[SOFTMAX_KEYS]);
    contract_define(out, "SOFTMAX_PADDED_KEYS", spec->p[SOFTMAX_PADDED_KEYS]);
    contract_define(out, "SOFTMAX_SCALE", spec->p[SOFTMAX_SCALE_BITS]);
    contract_define(out, "SOFTMAX_MINUS_SCALE", half_from_float(-s.scale));
    return STATUS_OK;
}

static uint64_t row_slots(const SoftmaxShape *s)
{
    static const uint8_t cut[] = {0, 2, 1, 1};
    uint64_t maximum = s->quads == 1 ? 3 : 4 + 1 + 4 * (uint64_t)s->full + s->last + 2;
    uint64_t between = 10;
    uint64_t exponentials = (s->full ? 1 + 20 * (uint64_t)s->full : 0) + 5 * (s->last - 1) + 5;
    uint64_t zeros = 4 - s->last + (s->empty ? 1 + 4 * (uint64_t)s->empty : 0);
    return maximum + between + exponentials + zeros + 2 * cut[s->lanes] + 3 +
           (share_loops(s->rows) ? 2 : 0);
}

static void cycles(const KernelSpec *spec, Clock *clock)
{
    SoftmaxShape s = shape_of(spec);
    bool rest = s.rows % TILE_WORKERS != 0, counts = rest || s.rows > TILE_WORKERS;
    bool jumps = s.quads > 4 || s.empty;
    uint64_t entry = 4 + (rest ? 2 : counts ? 1 : 0) + 2 + jumps + (counts != jumps);
    uint64_t bundles[TILE_WORKERS];
    for (uint32_t w = 0; w < TILE_WORKERS; w++) {
        uint64_t rows = share_of_worker(s.rows, w);
        bundles[w] = rows ? entry + rows * row_slots(&s) + 1 : 4 + 2 + 1;
    }
    clock_launch_once(clock, 3, bundles);
}

static uint64_t useful(const KernelSpec *spec)
{
    return (uint64_t)spec->p[SOFTMAX_ROWS] * (uint32_t)spec->p[SOFTMAX_KEYS];
}

static void reference(const KernelSpec *spec, void *const *operands)
{
    static const double ones[4] = {1, 1, 1, 1};
    SoftmaxShape s = shape_of(spec);
    float *statistics = operands[1];
    double scale = half_round((double)-s.scale);
    for (size_t r = 0; r < s.rows; r++) {
        double maximum = -65504;
        for (size_t k = 0; k < s.keys; k++)
            maximum = fmax(maximum, half_of(operands[2], k / 16 * s.rows * 16 + r * 16 + k % 16));
        HalfSums sums = {0};
        for (size_t q = 0; q < s.padded / 4; q++) {
            double e[4] = {0};
            for (size_t i = 0; i < 4; i++) {
                size_t k = 4 * q + i, at = k / 16 * s.rows * 16 + r * 16 + k % 16;
                if (k < s.keys)
                    e[i] = half_round(
                        exp(half_round(scale * half_round(maximum - half_of(operands[2], at)))));
                half_set(operands[0], at, e[i]);
            }
            half_accumulate(&sums, e, ones);
        }
        statistics[r] = (float)maximum * s.scale;
        statistics[s.rows + r] = sums.low + sums.high;
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
