/* place.h - addresses for everything a tile touches.
 *
 * Input: a tile program, the exchange schedule's constraints, the sizes of code and rows. Output:
 * one address per buffer and tile, per row and per tile's code. Two buffers may share bytes when
 * their lifetimes (in program steps; a value that enters a repeat lives over the whole repeat) do
 * not meet. Fails with the tile, class, bytes, lifetime and holes; nothing is placed then. */
#ifndef IPU_PLACE_PLACE_H
#define IPU_PLACE_PLACE_H

#include "exchange/exchange.h"

typedef struct Sizes {          /* what is not a buffer */
    uint32_t linked_end;        /* the linked image's end (it starts at LINK_FIRST / LINK_SECOND) */
    const uint32_t *code_bytes; /* per logical tile: generated program */
    uint32_t idle_code_bytes;   /* program of tiles beyond the program's */
} Sizes;

typedef struct Placement { /* memory in the arena */
    uint32_t tiles, buffers;
    uint32_t *address;      /* [buffer * tiles + tile], member 0; 0: not there */
    uint32_t *row_address;  /* [phase * tiles + tile]; 0: takes no part */
    uint32_t *code_address; /* per tile */
    uint32_t idle_code_address;
    struct Lifetime {
        uint32_t first, last;
    } * lifetime;                               /* per buffer, program steps, inclusive */
    uint32_t *used_standard, *used_interleaved; /* per tile: peak bytes, for reports */
} Placement;

static inline uint32_t placement_address(const Placement *placement, uint32_t tile, uint32_t buffer)
{
    return placement->address[(size_t)buffer * placement->tiles + tile];
}

typedef struct PlaceDemand {               /* bytes on the fullest tile */
    uint64_t standard, interleaved, total; /* alive at the same time */
    uint64_t largest;                      /* allocation */
    uint64_t rows;                         /* of exchange rows */
} PlaceDemand;
/* What any placement of the program needs at least (demand.c). */
Status place_demand(const TileProgram *program, const Schedule *schedule, PlaceDemand *out);

Status place(Arena *arena, const TileProgram *program, const Schedule *schedule, const Sizes *sizes,
             Pool *pool, Placement *out);
/* Every byte in one live allocation of the right class; separation, alignment, fetch guards. */
Status place_check(const TileProgram *program, const Schedule *schedule, const Sizes *sizes,
                   const Placement *placement);
/* wanted: [buffer]. */
void place_print(Text *text, const TileProgram *program, const Placement *placement,
                 const bool *wanted, uint32_t tile);

#endif
