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
    MID_SUM,     /* seed (on the tile that sums: its own shard) + a stack's slots -> sum */
    MID_REPEAT,
    MID_END_REPEAT
} MidKind;

typedef struct MidValue {
    const char *name;
    TensorType type;
    uint8_t role;   /* BufferRole of tile.h: 0 temporary, 1 parameter, 2 input, 3 output */
    bool resident;  /* a buffer of its own whose padding is zero from the image on: only logical
                       elements are written (PADDING_RESIDENT) */
    ValueId origin; /* graph value or NO_VALUE */
    MidId storage;  /* shares the memory of that value (in place, view, repeat carry) or MID_NONE */
    bool share;     /* with storage: lies where the storage, a block, has this share of itself */
    uint32_t slot;  /* with storage: starts `slot` times its own shard bytes into the shard */
    uint32_t slots; /* a stack: memory for that many values of the type, 1 otherwise */
    bool parts;     /* written part by part, by values that name it as their storage */
    bool others;    /* a slot for a share from tile `slot` of its block's tiles, where the stack has
                       none for the tile's own: there it is nowhere, and not written */
    bool apart;     /* a share that is written, or stored from the start, by itself: what writes the
                       rest of its block leaves it alone */
    uint32_t members;             /* sequence members, 1 otherwise */
    const ValueId *member_values; /* parameters: the graph parameters they are, members of them */
} MidValue;

typedef struct MidOp {
    uint8_t kind;
    const char *operation; /* key */
    MidId operands[MID_OPERANDS], results[MID_OPERANDS];
    uint32_t operand_count, result_count;
    Mapping mapping;      /* MID_COPY */
    uint32_t inner_block; /* MID_PRODUCT: K and columns per kernel call; 0: the whole shard */
    uint32_t column_block;
    KernelSpec kernel; /* family and the parameters that do not depend on the shard; the tile
                          stage fills in the shard's sizes */
    uint32_t phase;    /* MID_COPY: copies with equal numbers move in one exchange phase */
    uint32_t count;    /* MID_REPEAT */
} MidOp;

typedef struct Mid { /* memory in the arena */
    uint32_t tiles;
    ARRAY(MidValue) values;
    ARRAY(MidOp) ops;
} Mid;

/* The value that owns the memory, and where this one starts in its shard (tile by tile). */
MidId mid_root(const Mid *mid, MidId value);
uint64_t mid_offset(const Mid *mid, MidId value, uint32_t shard);
/* The slot from which the shard's place counts; false: it has no place (MidValue.others). */
bool mid_slot(const MidValue *value, uint32_t shard, uint32_t *slot);
/* The value whose bytes these are: the root, or a share that is made or stored by itself. */
MidId mid_owner(const Mid *mid, MidId value);
/* What the host is to find in that memory: the role of the value or of what it is a view of. */
uint8_t mid_role(const Mid *mid, MidId value);
static inline const MidValue *mid_value(const Mid *mid, MidId value)
{
    return &mid->values.items[value];
}
const char *mid_kind_name(uint8_t kind);
bool type_has_padding(const TensorType *type);

Status mid_lower(Arena *arena, const Graph *graph, const Recipe *recipe, Mid *out);
/* The rewrites, in order; each can be left out for tests. Return how many they changed. */
uint32_t mid_group_exchanges(Mid *mid);
uint32_t mid_merge_copies(Mid *mid);
uint32_t mid_eliminate(Mid *mid);
Status mid_check(const Mid *mid);
/* only: keys of operations, NULL: all. */
void mid_print(Text *text, const Mid *mid, const Map *only);
json_t *mid_to_json(const Mid *mid, const Map *only);
void mid_free(Mid *mid);

#endif
