/* tile.h - the program of every tile: buffers, kernel calls, local copies, exchange phases.
 *
 * One flat list of steps for the whole device; a step says which tiles take part and with what.
 * Tiles with the same work share one class of a call. A repeat is a pair of bracketing steps;
 * inside it, a reference to a buffer with members means the current iteration's member. Addresses
 * do not exist yet: everything is (buffer, byte offset). Tiles are logical. */
#ifndef IPU_TILE_TILE_H
#define IPU_TILE_TILE_H

#include "kernel/kernel.h"
#include "mid/mid.h"

typedef enum BufferRole {
    BUFFER_TEMPORARY,
    BUFFER_PARAMETER,
    BUFFER_INPUT,
    BUFFER_OUTPUT
} BufferRole;

typedef struct Buffer {
    const char *name; /* of the value it holds, or of the staging */
    uint8_t role;
    uint8_t memory_class;
    bool resident; /* keeps its bytes for the life of the program (parameters; buffers whose
                      padding is zero from the image): shares memory with nobody */
    uint32_t align, tail;
    uint32_t members; /* iterations of a sequence, else 1; member i at base + i * stride */
    uint32_t *bytes;  /* per tile, of one member; 0: none on that tile */
    uint32_t alias;   /* buffer whose memory this one is (same size class), or BUFFER_NONE */
    uint32_t value;   /* mid value, or 0xffffffff */
} Buffer;
enum { BUFFER_NONE = 0xffffffffu };

uint32_t buffer_stride(const Buffer *buffer, uint32_t tile); /* bytes + tail, rounded to align */

typedef struct BufferRef {
    uint32_t buffer, offset;
} BufferRef;

typedef struct TileRange { /* logical tiles first..last, inclusive */
    uint16_t first, last;
} TileRange;

typedef struct CallClass { /* tiles that run the same kernel with the same operands */
    KernelSpec spec;
    BufferRef operands[KERNEL_OPERANDS];
    TileRange *ranges;
    uint32_t range_count;
} CallClass;

typedef struct LocalCopy { /* rows of bytes within a tile; a KERNEL_COPY spec */
    uint32_t tile;
    BufferRef out, in;
    uint32_t rows, row_bytes, out_pitch, in_pitch;
    bool apart; /* between memories that may be kept in different elements */
} LocalCopy;

static inline KernelSpec local_copy_spec(const LocalCopy *copy)
{
    return (KernelSpec){.family = KERNEL_COPY,
                        .p = {[COPY_ROWS] = (int32_t)copy->rows,
                              [COPY_ROW_BYTES] = (int32_t)copy->row_bytes,
                              [COPY_OUT_PITCH] = (int32_t)copy->out_pitch,
                              [COPY_IN_PITCH] = (int32_t)copy->in_pitch,
                              [COPY_APART] = copy->apart}};
}

typedef struct Endpoint {
    uint32_t tile;
    BufferRef at;
} Endpoint;

typedef struct Transfer { /* one contiguous run of words, to one or more receivers */
    Endpoint source;
    uint32_t words;
    uint32_t first_receiver, receiver_count; /* in ExchangePhase.receivers */
} Transfer;

typedef struct ExchangePhase {
    const char *operation; /* key of the operation it feeds */
    Transfer *transfers;
    uint32_t transfer_count;
    Endpoint *receivers;
    uint32_t receiver_count;
    bool in_repeat;   /* sources in sequence buffers move with the iteration. All transfers of one
                         sender in such a phase move by the same stride (its OUTGOING_BASE does it) */
    uint32_t *events; /* tile_expand_loads: instead of transfers, what every tile is expected to
                         send or receive, the larger of the two; 0: takes no part */
} ExchangePhase;

typedef enum StepKind {
    STEP_CALL,
    STEP_COPY,
    STEP_EXCHANGE,
    STEP_REPEAT,
    STEP_END_REPEAT
} StepKind;

typedef struct Step {
    uint8_t kind;
    const char *operation; /* key */
    uint32_t first, count; /* STEP_CALL: classes; STEP_COPY: copies, sorted by tile;
                              STEP_EXCHANGE: first = the phase; STEP_REPEAT: count = iterations */
} Step;

typedef enum Sampling { /* what the generated code records for profiles */
                        SAMPLE_NOTHING,
                        SAMPLE_OVERALL, /* begin and end, in the runtime state */
                        SAMPLE_STEPS    /* a cycle count at every step, in sample_buffer */
} Sampling;

typedef struct TileProgram { /* memory in the arena given to tile_expand */
    uint32_t tiles;          /* logical tiles in use, 1..1472 */
    ARRAY(Buffer) buffers;
    ARRAY(Step) steps;
    ARRAY(CallClass) classes;
    ARRAY(LocalCopy) copies;
    ARRAY(ExchangePhase) phases;
    uint8_t sampling;       /* Sampling */
    uint32_t sample_buffer; /* SAMPLE_STEPS: added by emit_add_samples */
} TileProgram;

/* The buffer whose memory this one is. */
static inline uint32_t buffer_root(const TileProgram *program, uint32_t buffer)
{
    while (program->buffers.items[buffer].alias != BUFFER_NONE)
        buffer = program->buffers.items[buffer].alias;
    return buffer;
}

Status tile_expand(Arena *arena, const Mid *mid, TileProgram *out);
/* The same without transfers, for a price: phases hold what every tile has to send or receive.
 * pairs: two words an event where both tiles of a pair take them. Phases in repeats are not split.
 */
Status tile_expand_loads(Arena *arena, const Mid *mid, bool pairs, TileProgram *out);
Status
tile_check(const TileProgram *program); /* bounds, roles, overlap of copies, one class a tile */
/* only: keys of operations, NULL: all; only_tile -1: all. */
void tile_print(Text *text, const TileProgram *program, const Map *only, int32_t only_tile);
json_t *tile_to_json(const TileProgram *program, const Map *only, int32_t only_tile);
/* Buffers that the wanted operations' steps name, and whose memory they are (NULL: all buffers):
 * [buffer], the caller's to free. */
bool *tile_buffers_of(const TileProgram *program, const Map *only);
/* Whether the tile has work in that step. */
bool tile_takes_part(const TileProgram *program, const Step *step, uint32_t tile);
void tile_free(TileProgram *program);

#endif
