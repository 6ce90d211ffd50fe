/* mid.h - the whole-device program: values with formats, and six kinds of operation.
 *
 * mid_lower makes every conversion of the recipe explicit and sets phase boundaries; it decides
 * nothing. Rewrites (grouping exchanges, merging copies, eliminating clears) keep the meaning. */
#ifndef IPU_MID_MID_H
#define IPU_MID_MID_H

#include "plan/plan.h"

typedef uint32_t MidId;
enum { MID_NONE = 0xffffffffu, MID_OPERANDS = 8 };

typedef enum MidKind {
    MID_COPY,    /* one operand -> one result, mapping; moves between tiles and within them */
    MID_COMPUTE, /* pointwise, layer norm, softmax, merge, pack, fill ...: kernel on local shards */
    MID_CAST,    /* precision change, local */
    MID_PRODUCT, /* GEMM on local shards */
    MID_SUM,     /* K partials (leading axis) -> sum; partials are on the tile that sums */
    MID_REPEAT,
    MID_END_REPEAT
} MidKind;

typedef struct MidValue {
    const char *name;
    TensorType type;
    uint8_t role;     /* BufferRole of tile.h: 0 temporary, 1 parameter, 2 input, 3 output */
    uint8_t padding;  /* PaddingPolicy; matters when the type has padding */
    ValueId origin;   /* graph value or NO_VALUE */
    MidId storage;    /* shares the memory of that value (in place, repeat carry); else MID_NONE */
    uint32_t members; /* sequence members, 1 otherwise */
} MidValue;

typedef struct MidOp {
    uint8_t kind;
    const char *operation; /* key */
    MidId operands[MID_OPERANDS], results[MID_OPERANDS];
    uint32_t operand_count, result_count;
    Mapping mapping;      /* MID_COPY */
    KernelSpec kernel;    /* family and the parameters that do not depend on the shard; the tile
                             stage fills in the shard's sizes */
    uint32_t phase;       /* MID_COPY: copies with equal numbers move in one exchange phase */
    uint32_t count;       /* MID_REPEAT */
} MidOp;

typedef struct Mid { /* memory in the arena */
    uint32_t tiles;
    ARRAY(MidValue) values;
    ARRAY(MidOp) ops;
} Mid;

Status mid_lower(Arena *arena, const Graph *graph, const Recipe *recipe, Mid *out);
/* The rewrites, in order; each can be left out for tests. Return how many they changed. */
uint32_t mid_group_exchanges(Mid *mid);
uint32_t mid_merge_copies(Mid *mid);
uint32_t mid_eliminate(Mid *mid);
Status mid_check(const Mid *mid);
void mid_print(Text *text, const Mid *mid, const char *only_operation);
json_t *mid_to_json(const Mid *mid, const char *only_operation);
void mid_free(Mid *mid);

#endif
