/* gelu.c - GELU, elementwise, F16: kernels/gelu.S. Exact to the bit given correctly rounded
 * sigmoids and hyperbolic tangents; against the real function: absolute error below 0.001 + 0.001
 * |x| on
 * [-8, 8]. */
#include "kernel/gelu.h"

static GeluShare share_of(const KernelSpec *spec)
{
    return gelu_share((uint32_t)spec->p[GELU_ELEMENTS] / 4, 1);
}

static Status contract(const KernelSpec *spec, KernelContract *out)
{
    TRY(spec_range(spec, GELU_ELEMENTS, 4, 4 * QUADS_LIMIT, 4));
    uint32_t bytes = 2 * (uint32_t)spec->p[GELU_ELEMENTS];
    contract_operand(out, "result", true, PRECISION_F16, ORDER_ROWS, bytes, 8);
    contract_operand(out, "x", false, PRECISION_F16, ORDER_ROWS, bytes, 8);
    out->operands[0].in_place = 1;
    out->stack_bytes = gelu_stack_bytes(share_of(spec));
    contract_define(out, "GELU_ELEMENTS", spec->p[GELU_ELEMENTS]);
    contract_define(out, "GELU_MATRIX", share_of(spec).matrix);
    return STATUS_OK;
}

static void cycles(const KernelSpec *spec, Clock *clock)
{
    uint32_t quads = (uint32_t)spec->p[GELU_ELEMENTS] / 4;
    GeluShare share = share_of(spec);
    uint64_t bundles[TILE_WORKERS];
    for (uint32_t w = 0; w < TILE_WORKERS; w++) {
        uint64_t n = share_of_worker(quads, w);
        bundles[w] = 3 + (quads % TILE_WORKERS != 0) + (quads < TILE_WORKERS) + 1;
        if (n > 0)
            bundles[w] += 1 + gelu_slots(share, n);
    }
    clock_gelu_frame(clock, 2, share);
    clock_launch(clock, bundles);
    clock_sync(clock);
    clock_branch(clock);
}

static uint64_t useful(const KernelSpec *spec)
{
    return (uint64_t)spec->p[GELU_ELEMENTS];
}

static void reference(const KernelSpec *spec, void *const *operands)
{
    for (size_t i = 0; i < (size_t)spec->p[GELU_ELEMENTS]; i++)
        half_set(operands[0], i, gelu_of(share_of(spec), half_of(operands[1], i)));
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
