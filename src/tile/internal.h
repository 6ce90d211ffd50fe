/* internal.h - shared by the files of src/tile. */
#ifndef IPU_TILE_INTERNAL_H
#define IPU_TILE_INTERNAL_H

#include "tile/tile.h"

#include <stdlib.h>
#include <string.h>

typedef struct Expand {
    Arena *arena;
    const Mid *mid;
    TileProgram *program;
    uint32_t *buffer_of; /* per mid value that owns memory */
    bool in_repeat;
    bool loads, pairs; /* tile_expand_loads */
} Expand;

/* Where a mid value's shard lies; the shard must be the one the tile holds. */
BufferRef expand_ref(const Expand *e, MidId value, uint32_t shard);
Status expand_call(Expand *e, const MidOp *op); /* calls.c: one or more call steps */
/* copies.c: all copies of one phase -> a step of transfers and one of local copies. */
Status expand_copies(Expand *e, const MidOp *const *copies, uint32_t count);
/* split.c: one stride per sender in every phase of a repeat. */
Status split_phases(Arena *arena, TileProgram *program);
/* Bytes that the transfer's source moves per iteration. */
uint32_t transfer_stride(const TileProgram *program, const Transfer *transfer);
void expand_step(Expand *e, uint8_t kind, const char *operation, uint32_t first, uint32_t count);

#endif
