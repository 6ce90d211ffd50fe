/* bias_gelu.c - GELU of a sum, the second operand repeated over rows, F16: kernels/bias_gelu.S.
 * Exact to the bit given correctly rounded sigmoids. */
#include "kernel/broadcast.h"
#include "kernel/gelu.h"

static Status contract(const KernelSpec *spec, KernelContract *out)
{
    uint32_t bytes, rows = (uint32_t)spec->p[BIAS_GELU_ROWS];
    TRY(broadcast_check(spec, &bytes));
    contract_operand(out, "result", true, PRECISION_F16, ORDER_ROWS, bytes * rows, 8);
    contract_operand(out, "x", false, PRECISION_F16, ORDER_ROWS, bytes * rows, 8);
    contract_operand(out, "bias", false, PRECISION_F16, ORDER_ROWS, bytes, 8);
    out->operands[0].in_place = 1;
    out->stack_bytes = 16;
    contract_define(out, "BIAS_GELU_PANELS", spec->p[BIAS_GELU_PANELS]);
    contract_define(out, "BIAS_GELU_ROWS", spec->p[BIAS_GELU_ROWS]);
    contract_define(out, "BIAS_GELU_COLUMNS", spec->p[BIAS_GELU_COLUMNS]);
    return STATUS_OK;
}

/* BIAS_GELU_QUADS for a worker with n quads. */
static uint64_t quads_slots(const Broadcast *s, uint64_t n)
{
    uint32_t share = s->quads / TILE_WORKERS;
    bool rest = s->quads % TILE_WORKERS != 0;
    if (n == 1)
        return 13;
    return 9 * n + 6 + (share > 2 || (share == 2 && rest)) + (share <= 1);
}

static uint64_t worker_bundles(const Broadcast *s, uint32_t w)
{
    uint64_t n = share_of_worker(s->quads, w);
    bool rest = s->quads % TILE_WORKERS != 0, many = s->panels > 1;
    uint64_t entry = 4 + rest + (rest && s->quads / TILE_WORKERS != 1) + 1, exit = 1;
    if (n == 0)
        return entry - 1 + exit;
    uint64_t quads = quads_slots(s, n);
    if (s->panel)
        return entry + 3 + (many ? 2 : 0) + s->panels * (1 + quads + (many ? 6 : 0)) + exit;
    if (s->rows > 1)
        return entry + (many ? 3 : 2) + s->panels * (s->rows * (3 + quads + 3) + (many ? 3 : 0)) +
               exit;
    return entry + 2 + quads + exit;
}

static void cycles(const KernelSpec *spec, Clock *clock)
{
    Broadcast s = broadcast_of(spec);
    uint64_t bundles[TILE_WORKERS];
    for (uint32_t w = 0; w < TILE_WORKERS; w++)
        bundles[w] = worker_bundles(&s, w);
    clock_launch_once(clock, 3, bundles);
}

static uint64_t useful(const KernelSpec *spec)
{
    Broadcast s = broadcast_of(spec);
    return (uint64_t)s.panels * s.rows * s.columns;
}

static void reference(const KernelSpec *spec, void *const *operands)
{
    Broadcast s = broadcast_of(spec);
    for (size_t row = 0; row < (size_t)s.panels * s.rows; row++)
        for (size_t c = 0; c < s.columns; c++) {
            size_t i = row * s.columns + c, bias = row / s.rows * s.columns + c;
            double z = half_round(half_of(operands[1], i) + half_of(operands[2], bias));
            half_set(operands[0], i, gelu_by_sigmoid(z));
        }
}

const KernelFamilyInfo kernel_family_bias_gelu = {
    .name = "bias_gelu",
    .source = "bias_gelu.S",
    .parameters =
        {[BIAS_GELU_PANELS] = "panels", [BIAS_GELU_ROWS] = "rows", [BIAS_GELU_COLUMNS] = "columns"},
    .contract = contract,
    .cycles = cycles,
    .useful = useful,
    .reference = reference,
};
