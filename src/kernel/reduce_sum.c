/* reduce_sum.c - sum of a seed and a stack of partials, or its GELU, F16: kernels/reduce_sum.S.
 * Exact to the bit given correctly rounded sigmoids and tangents. In interleaved memory the sum is
 * made in F32 and rounded once, else every addition rounds. */
#include "kernel/gelu.h"

enum { UNROLLED_STACK = 63, REACH = 4096 /* units, of a load's immediate */, MOST_BASES = 6 };

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
    return stack > UNROLLED_STACK || (stack - 1) * units_of(spec) >= MOST_BASES * REACH;
}

static GeluShare share_of(const KernelSpec *spec)
{
    return gelu_share(units_of(spec), interleaved(spec) ? 2 : 1);
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
    uint32_t align = interleaved(spec) ? 16 : 8;
    contract_operand(out, "sum", true, PRECISION_F16, ORDER_ROWS, bytes, 8);
    contract_operand(out, "seed", false, PRECISION_F16, ORDER_ROWS, bytes, align);
    contract_operand(out, "partials", false, PRECISION_F16, ORDER_ROWS, (uint32_t)stack, align);
    if (interleaved(spec))
        out->operands[1].memory_class = out->operands[2].memory_class = MEMORY_INTERLEAVED;
    out->operands[0].in_place = 1;
    out->stack_bytes = spec->p[REDUCE_GELU] ? gelu_stack_bytes(share_of(spec)) : 16;
    contract_define(out, "REDUCE_ELEMENTS", spec->p[REDUCE_ELEMENTS]);
    contract_define(out, "REDUCE_PARTIALS", spec->p[REDUCE_PARTIALS]);
    contract_define(out, "REDUCE_GELU", spec->p[REDUCE_GELU]);
    contract_define(out, "REDUCE_INTERLEAVED", spec->p[REDUCE_INTERLEAVED]);
    contract_define(out, "REDUCE_WALK", walks(spec));
    contract_define(out, "GELU_MATRIX", spec->p[REDUCE_GELU] && share_of(spec).matrix);
    return STATUS_OK;
}

/* sum_octets.inc for a worker with n octets. */
static uint64_t octets_slots(const KernelSpec *spec, uint64_t n)
{
    uint64_t octets = units_of(spec), stack = (uint64_t)spec->p[REDUCE_PARTIALS] - 1;
    uint64_t share = octets / TILE_WORKERS;
    bool rest = octets % TILE_WORKERS != 0;
    if (walks(spec))
        return 3 + n * (stack + 10);
    uint64_t bases = (stack - 1) * octets / REACH;
    bool fork = share == 1 && rest, loop = share > 2 || (share == 2 && rest);
    uint64_t way = fork ? 1 + (n == 2 && spec->p[REDUCE_GELU]) : 0;
    return bases + (bases > 0) + n * (stack + 3) + way + loop + 5;
}

/* sum_quads.inc for a worker with n quads. */
static uint64_t quads_slots(const KernelSpec *spec, uint64_t n)
{
    uint64_t quads = units_of(spec), stack = (uint64_t)spec->p[REDUCE_PARTIALS] - 1;
    bool rest = quads % TILE_WORKERS != 0;
    if (walks(spec))
        return 3 + n * (stack + 6);
    uint64_t bases = (stack - 1) * quads / REACH;
    return 1 + (rest && quads > TILE_WORKERS) + bases + 1 + stack +
           (share_loops((uint32_t)quads) ? 1 + (n - 1) * (stack + 2) : 0) + 2;
}

static uint64_t worker_bundles(const KernelSpec *spec, uint32_t w)
{
    uint32_t units = units_of(spec), share = units / TILE_WORKERS;
    uint64_t n = share_of_worker(units, w), entry = 5;
    bool rest = units % TILE_WORKERS != 0, gelu = spec->p[REDUCE_GELU] != 0;
    if (gelu && interleaved(spec) && share > 0 && rest)
        entry += 3;
    entry += rest ? 1 + (share == 0) : 0;
    if (n == 0)
        return entry + 1;
    uint64_t sum = interleaved(spec) ? octets_slots(spec, n) : quads_slots(spec, n);
    if (!gelu)
        return entry + sum + 1;
    GeluShare dealt = share_of(spec);
    uint64_t quads = interleaved(spec) ? 2 * n : n;
    return entry + 1 + sum + 4 + (dealt.mixed && interleaved(spec)) + gelu_slots(dealt, quads) + 1;
}

static void cycles(const KernelSpec *spec, Clock *clock)
{
    uint64_t bundles[TILE_WORKERS];
    for (uint32_t w = 0; w < TILE_WORKERS; w++)
        bundles[w] = worker_bundles(spec, w);
    if (interleaved(spec) && !walks(spec))
        clock_issue(clock, 2);
    if (spec->p[REDUCE_GELU])
        clock_gelu_frame(clock, 3, share_of(spec));
    else
        clock_open_frame(clock, 3);
    clock_launch(clock, bundles);
    clock_sync(clock);
    clock_branch(clock);
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
        half_set(operands[0], i, spec->p[REDUCE_GELU] ? gelu_of(share_of(spec), sum) : sum);
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
