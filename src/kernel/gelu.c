/* gelu.c - GELU, elementwise, F16: kernels/gelu.S. Exact to the bit given correctly rounded
 * sigmoids; against the real function: absolute error below 0.001 + 0.001 |x| on [-8, 8]. */
#include "kernel/gelu.h"

static Status contract(const KernelSpec *spec, KernelContract *out)
{
    TRY(spec_range(spec, GELU_ELEMENTS, 4, 4 * QUADS_LIMIT, 4));
    uint32_t bytes = 2 * (uint32_t)spec->p[GELU_ELEMENTS];
    contract_operand(out, "result", true, PRECISION_F16, ORDER_ROWS, bytes, 8);
    contract_operand(out, "x", false, PRECISION_F16, ORDER_ROWS, bytes, 8);
    out->operands[0].in_place = 1;
    out->stack_bytes = 8;
    contract_define(out, "GELU_ELEMENTS", spec->p[GELU_ELEMENTS]);
    return STATUS_OK;
}

static void cycles(const KernelSpec *spec, Clock *clock)
{
    uint32_t quads = (uint32_t)spec->p[GELU_ELEMENTS] / 4;
    bool rest = quads % TILE_WORKERS != 0;
    uint64_t bundles[TILE_WORKERS];
    for (uint32_t w = 0; w < TILE_WORKERS; w++) {
        uint64_t n = share_of_worker(quads, w);
        bundles[w] = n == 0 ? 3 + 2 + 1
                            : 3 + (rest ? 2 : 0) + 2 + 2 +
                                  (share_loops(quads) ? 1 + (n - 1) * (GELU_LAST_SLOTS + 1) : 0) +
                                  GELU_LAST_SLOTS + 1 + 1;
    }
    clock_launch_once(clock, 2, bundles);
}

static uint64_t useful(const KernelSpec *spec)
{
    return (uint64_t)spec->p[GELU_ELEMENTS];
}

static void reference(const KernelSpec *spec, void *const *operands)
{
    for (size_t i = 0; i < (size_t)spec->p[GELU_ELEMENTS]; i++)
        half_set(operands[0], i, gelu_of(half_of(operands[1], i)));
}

const KernelFamilyInfo kernel_family_gelu = {
    .name = "gelu",
    .source = "gelu.S",
    .parameters = {[GELU_ELEMENTS] = "elements"},
    .contract = contract,
    .cycles = cycles,
    .useful = useful,
    .reference = reference,
};
