/* norm.h - kernels/norm.inc on the host: how rows are cut into slices, what that takes, and the
 * statistics in the device's order of operations. For layer_norm.c and moments.c. */
#ifndef IPU_KERNEL_NORM_H
#define IPU_KERNEL_NORM_H

#include "kernel/launch.h"

typedef struct NormShape {
    uint32_t rows, columns;
    bool adds;         /* x is a + b */
    uint32_t operands; /* in the frame, before the statistics */
    uint32_t parts;    /* slices of a row: 1, 2, 3 or 6 */
    uint32_t quads;    /* of a slice */
    uint32_t teams;    /* of `parts` workers; each takes a row at a time */
} NormShape;

typedef void NormCycles(const NormShape *shape, Clock *clock);

/* The cheapest way to cut rows of s->columns that the macros can do; parts = 0 when there is none.
 */
NormShape norm_cut(NormShape s, NormCycles *cycles);
uint32_t norm_frame_bytes(const NormShape *s);
float norm_reciprocal(const NormShape *s); /* of a slice's elements */
uint64_t norm_rows_of_team(const NormShape *s, uint32_t team);

/* The macros: the supervisor's clock, slots of the workers. find_slice: up to the first row;
 * `leaves`: the team has no row and goes. */
/* From the first instruction to the return; `second` counts when rows are cut. */
void norm_launches(const NormShape *s, Clock *clock, const uint64_t first[TILE_WORKERS],
                   const uint64_t second[TILE_WORKERS]);
uint64_t norm_find_slice(const NormShape *s, uint32_t team, bool *leaves);
uint64_t norm_slice_statistics(const NormShape *s);
uint64_t norm_combine(const NormShape *s);
uint64_t norm_next_row(const NormShape *s, bool used);

/* sum = a + b, when x is a sum. */
void norm_add(const NormShape *s, void *sum, const void *a, const void *b);

typedef struct Slice { /* in the device's signs; centre: K */
    float minus_mean, minus_variance, minus_centre;
} Slice;

/* Quads part, part + parts, ... of a row; d goes to out when there is one. */
Slice norm_slice(const NormShape *s, uint32_t part, const uint8_t *x, uint8_t *out);
/* A row's mean and variance, from its slices. */
Slice norm_row(const NormShape *s, const Slice *slices);

#endif
