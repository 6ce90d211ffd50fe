/* reduce_sum.c - sum of a seed and a stack of partials, or its GELU, F16: kernels/reduce_sum.S.
 * Exact to the bit given correctly rounded sigmoids. In interleaved memory the sum is made in F32
 * and rounded once, else every addition rounds. */
#include "kernel/gelu.h"

enum { UNROLLED_STACK = 63, REACH = 4096 /* units, of a load's immediate */ };

static bool interleaved(const KernelSpec *spec)
{
    return spec->p[REDUCE_INTERLEAVED] != 0;
}

/* What one load takes: a quad of halves, or an octet. */
static uint32_t units_of(const KernelSpec *spec)
{
    return (uint32_t)spec->p[REDUCE_ELEMENTS] / (interleaved(spec) ? 8 : 4);
}

/* Whether the stack is walked by a pointer: too many members, or too far apart for an immediate. */
static bool walks(const KernelSpec *spec)
{
    uint64_t stack = (uint64_t)spec->p[REDUCE_PARTIALS] - 1;
    uint64_t most_bases = interleaved(spec) ? 7 : 6;
    return stack > UNROLLED_STACK || (stack - 1) * units_of(spec) >= most_bases * REACH;
}

static Status contract(const KernelSpec *spec, KernelContract *out)
{
    TRY(spec_range(spec, REDUCE_INTERLEAVED, 0, 1, 1));
    TRY(spec_range(spec, REDUCE_ELEMENTS, 4, 4 * QUADS_LIMIT, interleaved(spec) ? 8 : 4));
    TRY(spec_range(spec, REDUCE_PARTIALS, 2, 4096, 1));
    TRY(spec_range(spec, REDUCE_GELU, 0, 1, 1));
    uint32_t bytes = 2 * (uint32_t)spec->p[REDUCE_ELEMENTS];
    uint64_t stack = (uint64_t)bytes * ((uint64_t)spec->p[REDUCE_PARTIALS] - 1);
    if (stack > SRAM_BYTES)
        return status_error("%llu bytes of partials", (unsigned long long)stack);
    if (spec->p[REDUCE_GELU] && (walks(spec) || interleaved(spec)))
        return status_error("gelu of a sum of %d partials of %d elements", spec->p[REDUCE_PARTIALS],
                            spec->p[REDUCE_ELEMENTS]);
    uint32_t align = interleaved(spec) ? 16 : 8;
    contract_operand(out, "sum", true, PRECISION_F16, ORDER_ROWS, bytes, 8);
    contract_operand(out, "seed", false, PRECISION_F16, ORDER_ROWS, bytes, align);
    contract_operand(out, "partials", false, PRECISION_F16, ORDER_ROWS, (uint32_t)stack, align);
    if (interleaved(spec))
        out->operands[1].memory_class = out->operands[2].memory_class = MEMORY_INTERLEAVED;
    out->operands[0].in_place = 1;
    out->stack_bytes = 16;
    contract_define(out, "REDUCE_ELEMENTS", spec->p[REDUCE_ELEMENTS]);
    contract_define(out, "REDUCE_PARTIALS", spec->p[REDUCE_PARTIALS]);
    contract_define(out, "REDUCE_GELU", spec->p[REDUCE_GELU]);
    contract_define(out, "REDUCE_INTERLEAVED", spec->p[REDUCE_INTERLEAVED]);
    contract_define(out, "REDUCE_WALK", walks(spec));
    return STATUS_OK;
}

static uint64_t octets_bundles(const KernelSpec *spec, uint32_t w)
{
    uint64_t octets = units_of(spec), stack = (uint64_t)spec->p[REDUCE_PARTIALS] - 1;
    uint64_t n = share_of_worker((uint32_t)octets, w), share = octets / TILE_WORKERS;
    bool rest = octets % TILE_WORKERS != 0;
    uint64_t entry = 5 + rest + (share == 0);
    if (n == 0)
        return entry + 1;
    if (walks(spec))
        return entry + 3 + n * (stack + 10) + 1;
    uint64_t bases = (stack - 1) * octets / REACH;
    entry += bases + (bases > 0);
    bool alone = share == 1 && rest, loop = share > 2 || (share == 2 && rest);
    return entry + alone + n * (stack + 3) + loop + 6;
}

static uint64_t quads_bundles(const KernelSpec *spec, uint32_t w)
{
    uint64_t quads = units_of(spec), stack = (uint64_t)spec->p[REDUCE_PARTIALS] - 1;
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
        bundles[w] = interleaved(spec) ? octets_bundles(spec, w) : quads_bundles(spec, w);
    if (interleaved(spec) && !walks(spec))
        clock_issue(clock, 2);
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
        for (size_t j = 0; j + 1 < (size_t)spec->p[REDUCE_PARTIALS]; j++) {
            sum += half_of(operands[2], j * elements + i);
            sum = interleaved(spec) ? (double)(float)sum : half_round(sum);
        }
        sum = half_round(sum);
        half_set(operands[0], i, spec->p[REDUCE_GELU] ? gelu_of(sum) : sum);
    }
}

const KernelFamilyInfo kernel_family_reduce_sum = {
    .name = "reduce_sum",
    .source = "reduce_sum.S",
    .parameters = {[REDUCE_ELEMENTS] = "elements",
                   [REDUCE_PARTIALS] = "partials",
                   [REDUCE_GELU] = "gelu",
                   [REDUCE_INTERLEAVED] = "interleaved"},
    .contract = contract,
    .cycles = cycles,
    .useful = useful,
    .reference = reference,
};
