/* pack.h - what pack and unpack share: the shape of the rearrangement and its host reference. */
#ifndef IPU_KERNEL_PACK_H
#define IPU_KERNEL_PACK_H

#include "kernel/launch.h"

typedef struct Rearrangement {
    uint32_t order, matrices, rows, columns, physical_rows, physical_columns, row_block;
    uint32_t pitch; /* bytes from row to row of the row-major side */
    uint32_t align; /* of its rows: 8, 4 or 2 */
} Rearrangement;

/* Matrices without padding rows follow each other like one matrix of all their rows. */
Rearrangement rearrangement_of(const KernelSpec *spec);
/* Parameters that both directions need in range. */
Status rearrangement_check(const KernelSpec *spec);
/* Byte offset of an element on the ordered side. */
size_t rearrangement_offset(const Rearrangement *r, uint32_t matrix, uint32_t row, uint32_t column);
size_t rearrangement_bytes(const Rearrangement *r); /* of the ordered side */
size_t rearrangement_row_major_bytes(const Rearrangement *r);

static inline uint64_t even_slots(uint64_t solo)
{
    return solo + solo % 2;
}

#endif
