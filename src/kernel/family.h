/* family.h - what a kernel family tells the rest of the folder, and the clock its formulas use.
 *
 * A family is one src/kernel/NAME.c that defines one KernelFamilyInfo, one kernels/NAME.S, and one
 * line in families.def. Nothing outside src/kernel includes this header.
 *
 * Cycle formulas: a kernel is supervisor code with launches in it, so its formula is written as the
 * supervisor's code is, with the Clock below: one call per stretch of instructions. The clock keeps
 * the rules of timing.md 1 (results after 6 cycles, branches 8, first bundle 12 after the launch,
 * local sync 14 after the last exit). A worker's slot is its number modulo 6, so a launch can end
 * up to five cycles earlier or later for the same work; kernel_cycles() is the worst of the six
 * positions of the call against the slots. */
#ifndef IPU_KERNEL_FAMILY_H
#define IPU_KERNEL_FAMILY_H

#include "kernel/kernel.h"

typedef struct Clock {  /* of a supervisor, from the issue of the kernel's first instruction */
    uint64_t now;       /* earliest issue of the next instruction */
    uint64_t last_exit; /* issue of the last bundle of the last worker */
    uint64_t free_at[TILE_WORKERS]; /* slot s is the supervisor's from this cycle on */
    bool uneven;                    /* workers of a launch took different times */
} Clock;

typedef struct KernelFamilyInfo {
    const char *name;                          /* "gemm", as in symbols and on the command line */
    const char *source;                        /* "gemm.S" */
    const char *parameters[KERNEL_PARAMETERS]; /* names for printing, "" or NULL: not used */
    /* Agreement of device and reference: |device - reference| <= absolute + relative * |reference|
     * for every element; both 0: the same bits. */
    double relative, absolute;
    /* Checks the parameters; fills the contract, which comes zeroed but for in_place = -1 and
     * symbol = "ipu_NAME", the entry in the source; the values of the defines are added to it. */
    Status (*contract)(const KernelSpec *spec, KernelContract *out);
    /* Advances the clock from the kernel's first instruction to the issue of the caller's next
     * instruction (return branch included). Only called for specs whose contract is good. */
    void (*cycles)(const KernelSpec *spec, Clock *clock);
    uint64_t (*useful)(const KernelSpec *spec); /* operations that count, see kernel.h */
    void (*reference)(const KernelSpec *spec, void *const *operands);
} KernelFamilyInfo;

#define FAMILY(upper, lower) extern const KernelFamilyInfo kernel_family_##lower;
#include "kernel/families.def"
#undef FAMILY

const KernelFamilyInfo *kernel_family(KernelFamily family); /* NULL: not there */

/* Clock: a stretch of `count` instructions that do not wait for each other. */
void clock_issue(Clock *clock, uint32_t count);
/* The next instruction uses the result of one issued `back` instructions ago (1: the last one). The
 * instructions between are taken as issued back to back. */
void clock_depend(Clock *clock, uint32_t back);
void clock_at_least(Clock *clock, uint64_t cycle); /* waits for a result */
void clock_branch(Clock *clock);                   /* taken branch, call, return */
/* runall; worker w executes bundles[w] slots, exit included. */
void clock_launch(Clock *clock, const uint64_t bundles[TILE_WORKERS]);
void clock_sync(Clock *clock); /* sync 2 */
/* launch + sync of workers that all take the same number of slots. */
void clock_run_all(Clock *clock, uint64_t bundles);

/* n dealt to six workers as evenly as possible: worker w gets n / 6, and one more when w < n % 6.
 */
static inline uint32_t share_of_worker(uint32_t n, uint32_t worker)
{
    return n / TILE_WORKERS + (worker < n % TILE_WORKERS ? 1 : 0);
}

/* Contract helpers. */
void contract_operand(KernelContract *contract, const char *name, bool output, Precision precision,
                      Order order, uint32_t bytes, uint32_t align);
void contract_scalar(KernelContract *contract, int32_t value);
void contract_define(KernelContract *contract, const char *name, int32_t value);
void contract_separate(KernelContract *contract, uint32_t a, uint32_t b);
/* Error naming family and parameter unless low <= p[index] <= high and a multiple of step. */
Status spec_range(const KernelSpec *spec, uint32_t index, int64_t low, int64_t high, int64_t step);

static const Precision PRECISION_F16 = {.kind = F16}, PRECISION_F32 = {.kind = F32},
                       PRECISION_F8 = {.kind = F8F143};
static const Order ORDER_ROWS = {.kind = ORDER_ROW_MAJOR}, ORDER_PANELS = {.kind = ORDER_LEFT};

#endif
