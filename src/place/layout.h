/* layout.h - the parts of placement: requests (what needs memory, when) and layouts (where it
 * goes). */
#ifndef IPU_PLACE_LAYOUT_H
#define IPU_PLACE_LAYOUT_H

#include "place/place.h"

enum { LAYOUT_ALL_TILES = 0xffffffffu, LIFETIME_ALWAYS = 0xffffffffu, MAX_ADDRESS_RANGES = 4 };

typedef struct TileBits { /* set of logical tiles */
    uint64_t word[(TILES + 63) / 64];
} TileBits;

typedef struct Request { /* of one root buffer: the alias group's memory */
    uint32_t *bytes;     /* per tile: all members, tails included; 0: not there */
    uint32_t max_bytes;  /* over the tiles */
    uint32_t align;
    bool interleaved, resident, same_address;
    uint32_t first, last; /* steps, inclusive; last LIFETIME_ALWAYS for residents */
    TileBits tiles;
} Request;

typedef struct Separation { /* roots a and b share no element on the tiles where both are */
    uint32_t a, b;
    TileBits tiles;
} Separation;

typedef struct Requests {
    Request *items; /* by buffer; only roots are filled */
    uint32_t *root; /* buffer -> root buffer */
    uint32_t count;
    ARRAY(Separation) separations;
    Map separation_index; /* (a << 32 | b) -> index + 1 */
} Requests;

/* Sizes, lifetimes and rules from the program, the kernels' contracts and the constraints. */
Status requests_collect(Arena *arena, const TileProgram *program,
                        const ConstraintArray *constraints, Requests *out);
void requests_free(Requests *requests);

typedef struct AddressRange {
    uint32_t start, end;
} AddressRange;

typedef struct Layout { /* of one tile, or of all at once */
    const Requests *requests;
    uint32_t tile; /* or LAYOUT_ALL_TILES: sizes are maxima, conflicts count on common tiles */
    bool only_same_address, joined; /* joined: the last range but one runs through the last */
    AddressRange ranges[MAX_ADDRESS_RANGES]; /* ascending, disjoint until joined */
    uint32_t range_count;
    uint32_t *address; /* by root; 0: not placed */
    bool *fixed;       /* placed beforehand */
} Layout;

void layout_init(Layout *layout, const Requests *requests, uint32_t tile);
void layout_only_same_address(Layout *layout);
void layout_fix(Layout *layout, const Layout *shared); /* takes over what shared has placed */
Status layout_solve(Layout *layout, const TileProgram *program);
void layout_free(Layout *layout);

#endif
