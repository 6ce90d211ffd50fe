/* fill_zero.c - zeros: padding, and sums that start at nothing. kernels/fill_zero.S. */
#include "kernel/family.h"

#include <string.h>

static Status contract(const KernelSpec *spec, KernelContract *out)
{
    TRY(spec_range(spec, FILL_BYTES, 4, SRAM_BYTES, 4));
    contract_operand(out, "output", true, (Precision){.kind = U32}, ORDER_ROWS,
                     (uint32_t)spec->p[FILL_BYTES], 8);
    out->operands[0].held = PADDING_ZERO;
    contract_define(out, "FILL_BYTES", spec->p[FILL_BYTES]);
    return STATUS_OK;
}

static void cycles(const KernelSpec *spec, Clock *clock)
{
    uint32_t words = (uint32_t)spec->p[FILL_BYTES] / 8;
    bool half = spec->p[FILL_BYTES] % 8 != 0, rest = words % TILE_WORKERS != 0 || half;
    uint64_t bundles[TILE_WORKERS];
    for (uint32_t w = 0; w < TILE_WORKERS; w++) {
        bundles[w] = 3 + share_of_worker(words, w); /* mov, rpt, exit */
        bundles[w] += rest ? 2 + (words >= TILE_WORKERS) : 0;
        bundles[w] += half ? 2 + (w == words % TILE_WORKERS) : 0;
    }
    clock_issue(clock, 1);
    clock_depend(clock, 1);
    clock_launch(clock, bundles);
    clock_sync(clock);
    clock_branch(clock);
}

static uint64_t useful(const KernelSpec *spec)
{
    return (uint64_t)spec->p[FILL_BYTES] / 4;
}

static void reference(const KernelSpec *spec, void *const *operands)
{
    memset(operands[0], 0, (size_t)spec->p[FILL_BYTES]);
}

const KernelFamilyInfo kernel_family_fill_zero = {
    .name = "fill_zero",
    .source = "fill_zero.S",
    .parameters = {[FILL_BYTES] = "bytes"},
    .contract = contract,
    .cycles = cycles,
    .useful = useful,
    .reference = reference,
};
