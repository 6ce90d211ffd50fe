/* kernel_tile.h - one kernel on one simulated tile, timed as published figures were taken. */
#ifndef IPU_CLI_KERNEL_TILE_H
#define IPU_CLI_KERNEL_TILE_H

#include "kernel/kernel.h"

/* Runs the object that a build would link for the spec. operands, in contract order, hold `bytes`
 * of the contract each: what is there before, then what is there after. *cycles: a worker reads the
 * cycle counter before and one after the call; the difference, the call and its arguments included.
 */
Status kernel_tile_run(const KernelSpec *spec, uint8_t *const *operands, uint64_t *cycles);

#endif
