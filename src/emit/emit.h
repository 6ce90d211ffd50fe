/* emit.h - supervisor code of every tile, and the bytes of every tile's memory.
 *
 * The generated program of a tile: start-up rendezvous, invocation loop, steps, completion. Kernels
 * and runtime services are called by symbol; rows by address. Sizes first (they do not depend on
 * addresses), words after placement. */
#ifndef IPU_EMIT_EMIT_H
#define IPU_EMIT_EMIT_H

#include "place/place.h"

typedef struct EmitSizes {
    uint32_t *code_bytes; /* per logical tile */
    uint32_t idle_code_bytes;
} EmitSizes;

/* Makes the code record what `sampling` says; for SAMPLE_STEPS a buffer "profile.cycles" is added
 * to the program, one word for every step that a tile runs, loops unrolled, and one for the end. */
Status emit_add_samples(Arena *arena, uint8_t sampling, TileProgram *program);

/* Code size per tile; exact. */
Status emit_size(Arena *arena, const TileProgram *program, EmitSizes *out);

typedef struct ImageSegment {
    uint32_t address, bytes; /* bytes in memory, >= data_bytes */
    const uint8_t *data;
    uint32_t data_bytes; /* the rest is zero */
    uint32_t flags;      /* 1 read, 2 write, 4 execute */
    const char *name;    /* for the debug map */
} ImageSegment;

typedef struct CodeMark { /* where the code of a step begins, for profiles and `explain --stage
                             code` */
    uint32_t address, step;
} CodeMark;

typedef struct TileCode {
    uint32_t physical;
    uint32_t entry;
    ImageSegment *segments;
    uint32_t segment_count;
    uint32_t program_start, steps_start, steps_end; /* addresses in the generated code */
    CodeMark *marks;
    uint32_t mark_count;
} TileCode;

typedef struct Images { /* all 1,472, in physical order; equal segments share their data */
    TileCode *tiles;
    uint32_t count;
} Images;

/* Parameter data is added by the package writer from the bindings' layouts. arenas: one per worker
 * of the pool; they own the result. rows: [phase][tile]. */
Status emit_images(Arena *arenas, const TileProgram *program, const Placement *placement,
                   Row *const *rows, const LinkImage *linked, Pool *pool, Images *out);

#endif
