/* reduce_sum.c - sum of a seed and a stack of partials, or its GELU, F16: kernels/reduce_sum.S.
 * Exact to the bit given correctly rounded sigmoids. */
#include "kernel/gelu.h"

enum { UNROLLED_STACK = 63, REACH = 4096 /* words, of a load's immediate */, MOST_BASES = 6 };

static uint32_t quads_of(const KernelSpec *spec)
{
    return (uint32_t)spec->p[REDUCE_ELEMENTS] / 4;
}

/* Whether the stack is walked by a pointer: too many members, or too far apart for an immediate. */
static bool walks(const KernelSpec *spec)
{
    uint64_t stack = (uint64_t)spec->p[REDUCE_PARTIALS] - 1;
    return stack > UNROLLED_STACK || (stack - 1) * quads_of(spec) >= MOST_BASES * REACH;
}

static Status contract(const KernelSpec *spec, KernelContract *out)
{
    TRY(spec_range(spec, REDUCE_ELEMENTS, 4, 4 * QUADS_LIMIT, 4));
    TRY(spec_range(spec, REDUCE_PARTIALS, 2, 4096, 1));
    TRY(spec_range(spec, REDUCE_GELU, 0, 1, 1));
    uint32_t bytes = 2 * (uint32_t)spec->p[REDUCE_ELEMENTS];
    uint64_t stack = (uint64_t)bytes * ((uint64_t)spec->p[REDUCE_PARTIALS] - 1);
    if (stack > SRAM_BYTES)
        return status_error("%llu bytes of partials", (unsigned long long)stack);
    if (spec->p[REDUCE_GELU] && walks(spec))
        return status_error("gelu of a sum of %d partials of %d elements", spec->p[REDUCE_PARTIALS],
                            spec->p[REDUCE_ELEMENTS]);
    contract_operand(out, "sum", true, PRECISION_F16, ORDER_ROWS, bytes, 8);
    contract_operand(out, "seed", false, PRECISION_F16, ORDER_ROWS, bytes, 8);
    contract_operand(out, "partials", false, PRECISION_F16, ORDER_ROWS, (uint32_t)stack, 8);
    out->operands[0].in_place = 1;
    out->stack_bytes = 16;
    contract_define(out, "REDUCE_ELEMENTS", spec->p[REDUCE_ELEMENTS]);
    contract_define(out, "REDUCE_PARTIALS", spec->p[REDUCE_PARTIALS]);
    contract_define(out, "REDUCE_GELU", spec->p[REDUCE_GELU]);
    contract_define(out, "REDUCE_WALK", walks(spec));
    return STATUS_OK;
}

static uint64_t worker_bundles(const KernelSpec *spec, uint32_t w)
{
    uint64_t quads = quads_of(spec), stack = (uint64_t)spec->p[REDUCE_PARTIALS] - 1;
    uint64_t n = share_of_worker((uint32_t)quads, w);
    bool rest = quads % TILE_WORKERS != 0;
    if (n == 0)
        return 4 + 2 + 1;
    uint64_t entry = 4 + (rest ? 2 : 0) + 2;
    if (walks(spec))
        return entry + (!rest || quads < TILE_WORKERS) + 1 + n * (stack + 6) + 1;
    uint64_t bases = (stack - 1) * quads / REACH + 1;
    entry += bases / 2 * 2; /* one instruction each after the first, in even number */
    bool loop = share_loops((uint32_t)quads);
    if (spec->p[REDUCE_GELU])
        return entry + 3 + loop + n * (stack + 2 + GELU_LAST_SLOTS + 1) + 1;
    return entry + 1 + stack + (loop ? 1 + (n - 1) * (stack + 2) : 0) + 2 + 1;
}

static void cycles(const KernelSpec *spec, Clock *clock)
{
    uint64_t bundles[TILE_WORKERS];
    for (uint32_t w = 0; w < TILE_WORKERS; w++)
        bundles[w] = worker_bundles(spec, w);
    clock_launch_once(clock, 3, bundles);
}

static uint64_t useful(const KernelSpec *spec)
{
    return (uint64_t)spec->p[REDUCE_ELEMENTS] * ((uint64_t)spec->p[REDUCE_PARTIALS] - 1);
}

static void reference(const KernelSpec *spec, void *const *operands)
{
    size_t elements = (size_t)spec->p[REDUCE_ELEMENTS];
    for (size_t i = 0; i < elements; i++) {
        double sum = half_of(operands[1], i);
        for (size_t j = 0; j + 1 < (size_t)spec->p[REDUCE_PARTIALS]; j++)
            sum = half_round(sum + half_of(operands[2], j * elements + i));
        half_set(operands[0], i, spec->p[REDUCE_GELU] ? gelu_of(sum) : sum);
    }
}

const KernelFamilyInfo kernel_family_reduce_sum = {
    .name = "reduce_sum",
    .source = "reduce_sum.S",
    .parameters =
        {[REDUCE_ELEMENTS] = "elements", [REDUCE_PARTIALS] = "partials", [REDUCE_GELU] = "gelu"},
    .contract = contract,
    .cycles = cycles,
    .useful = useful,
    .reference = reference,
};
