/* plan.h - the recipe: every decision about how a graph runs, and the search that makes it.
 *
 * A recipe is complete and serialisable. Per operation it holds algorithm, grid, blocks,
 * orientation, operand and result formats, staging and fusions; what follows (mid, tile, ...) is
 * mechanical. The search enumerates candidates per operation from the kernels' contracts, prices
 * them and the conversions between them with the contracts' formulas and target_phase_cost, and
 * keeps the best chains; finalists can be priced exactly by `compile`. */
#ifndef IPU_PLAN_PLAN_H
#define IPU_PLAN_PLAN_H

#include "graph/graph.h"
#include "kernel/kernel.h"

typedef enum Algorithm {
    ALGORITHM_NONE,      /* views and slices: no data moves, consumers compose the mapping */
    ALGORITHM_GEMM_GRID, /* rows x columns x inner; partials summed when inner > 1 */
    ALGORITHM_POINTWISE, /* on the shards of the result format */
    ALGORITHM_ROWS,      /* layer norm: whole rows per tile, any number of copies */
    ALGORITHM_ATTENTION, /* heads x query blocks over tiles, key blocks in sequence */
    ALGORITHM_REPEAT
} Algorithm;

typedef enum Staging {
    STAGING_DIRECT,    /* runs go straight into the operand's order */
    STAGING_ROW_MAJOR, /* row-major copy first, then a local pack kernel */
    STAGING_PANELS     /* results of swapped products: 16 x 16 blocks are transposed in place of
                          their order, which makes them the next swapped product's operand */
} Staging;

/* Where partials are summed: on the tiles of the first part of K, or each of the tiles that hold a
 * block's partials sums its part of the block: of its rows or columns, or a share of its bytes,
 * which it then reads where its own partial has it. */
typedef enum Scatter { SCATTER_NO, SCATTER_ROWS, SCATTER_COLUMNS, SCATTER_SHARES } Scatter;

typedef enum Fusion {
    FUSED_NO,
    FUSED_INTO_CONSUMER, /* bias add carried out by the GELU behind it */
    FUSED_INTO_PRODUCER  /* carried out by the GEMM before it: an add (initial C, or one more
                            partial)  or the GELU of its sum */
} Fusion;

typedef enum PaddingPolicy {
    PADDING_RESIDENT, /* the operand's buffer is its own for the life of the program, zero in the
                         image; only logical elements are ever written */
    PADDING_CLEAR     /* zero-filled before every use */
} PaddingPolicy;

typedef struct OperandPlan {
    Format format;
    uint8_t staging;
    uint8_t padding;
} OperandPlan;

enum { PLAN_OPERANDS = 4 };

/* Operands by algorithm (their formats are for the shapes that plan_operand_type gives):
 *   GEMM_GRID  left, right, then up to two addends of fused adds, in the result's format. One
 *              addend with inner = 1 is copied into C, which the kernel accumulates onto; with
 *              inner > 1 addends are further members of the stack of partials.
 *   POINTWISE  the operation's inputs; a GELU with a fused bias has x, bias.
 *   ROWS       x, scale, bias.
 *   ATTENTION  q, k, v for one round: `rows` heads (heads / rows rounds), `columns` query blocks,
 *              `inner` blocks of value columns; every tile holds all keys of one key block.
 *   REPEAT     the carried values as they enter the body. */

typedef struct OpPlan {
    const char *key;
    uint8_t algorithm;
    bool swapped;                  /* GEMM: computes the transpose */
    uint32_t rows, columns, inner; /* GEMM grid; attention: heads, query blocks, value blocks */
    uint32_t inner_block, column_block; /* per kernel call */
    uint32_t key_block;                 /* attention: keys per softmax block */
    uint32_t operand_count;
    OperandPlan operands[PLAN_OPERANDS];
    Format partial;    /* GEMM: what the product is computed in: partials when inner > 1 */
    uint32_t slices;   /* GEMM: above 1, operands come in that many slices of K, one after the other
                          into the same memory; their formats are those of the first. 0 is 1 */
    uint8_t scatter;   /* GEMM with inner > 1: Scatter */
    bool column_pairs; /* GEMM, SCATTER_ROWS and SHARES: two columns of the grid lie side by side,
                          then come the parts of K: the sums of two column blocks then lie on
                          complete pairs of tiles, or the consumers of one K block where such sums
                          are */
    bool gelu; /* GEMM with inner > 1: the sum ends in the GELU that follows: that is the result */
    uint8_t result_staging; /* GEMM: ROW_MAJOR brings the sum from its order to row-major rows,
                               PANELS to micro-panels */
    Format result;
    uint8_t
        spread; /* GEMM: bit j: operand j first goes to plan_spread_type, where long pieces start */
    uint8_t own; /* GEMM: bit j: the one copy of operand j that is stored (or spread) lies in shares
                    where it is wanted (plan_own_type), each in its place in the operand's buffer */
    uint8_t fused;                  /* Fusion; a fused operation has no kernel of its own */
    bool in_place;                  /* result overwrites operand 0 */
    double cycles, exchange_cycles; /* predicted, conversions of its operands included */
} OpPlan;

typedef struct Recipe {
    uint32_t tiles;
    bool weights_once; /* parameters stored once; else they lie where their consumers want them */
    bool pairs;        /* 64-bit exchange allowed */
    OpPlan *ops;       /* by graph operation index */
    uint32_t op_count;
    Format *parameters; /* storage format per graph value that is input or parameter */
    Format *outputs;    /* per graph output */
    double predicted_cycles;
} Recipe;

typedef struct PlanFigures { /* of a way to run a product, or of a whole plan */
    double cycles, exchange_cycles;
    uint64_t standard, interleaved; /* peak bytes of a tile by memory class */
    uint64_t largest;               /* allocation */
    uint64_t row_bytes;             /* of exchange rows */
} PlanFigures;

typedef struct FrontierPoint { /* no other way at the same boundary is better in everything */
    uint32_t op;
    const char *boundary; /* kinds of format of the streamed operand and of the result */
    OpPlan plan;
    PlanFigures figures; /* by itself, operands still to be brought */
} FrontierPoint;

typedef struct FrontierOp { /* of a product */
    uint32_t op;
    uint32_t grids, priced, retained; /* listed, candidates with a price, of those searched with */
    uint32_t first, count;            /* in points */
} FrontierOp;

typedef struct PlanReport { /* memory in the search's arena */
    FrontierOp *ops;
    FrontierPoint *points;
    uint32_t op_count, point_count;
} PlanReport;

typedef struct PlanOptions {
    uint32_t tiles;      /* 1..1472 */
    Precision precision; /* F16 (F8 later) */
    bool weights_once, pairs;
    bool io_row_major; /* inputs and outputs row-major, linear over the tiles; else as liked */
    uint32_t beam;     /* 0: default */
    uint32_t reserve;  /* bytes of a tile to leave free beyond what code and rows need */
    const char *constraints; /* pins and excludes, see docs/planner.md; NULL: none */
    PlanReport *report;      /* filled when not NULL */
} PlanOptions;

/* What a recipe does not repeat because it follows from the graph and the plan. */

/* Shape and format of the op's operand j (for attention: of one round and key block). */
Status plan_operand_type(const Graph *graph, uint32_t op, const OpPlan *plan, uint32_t operand,
                         TensorType *out);
/* GEMM in slices: left or right operand of one slice, and where it lies in the whole. */
Status plan_slice(const Graph *graph, uint32_t op, const OpPlan *plan, uint32_t slice,
                  uint32_t operand, TensorType *type, Mapping *mapping);
/* Where a spread operand stops on its way: one copy in small parts over the tiles. */
TensorType plan_spread_type(const TensorType *operand, uint32_t tiles);
/* One copy of every block of an operand, in shares on the tiles that want the block: each then
 * receives only what others have. False: it is not worth it. */
bool plan_own_type(const TensorType *operand, TensorType *out);
/* The graph value behind operand j: an input of the operation or of an add fused into it. */
ValueId plan_input(const Graph *graph, uint32_t op, const OpPlan *plan, uint32_t operand);
/* The graph value that the plan stores: the operation's result or that of the last fused add, or of
 * the GELU behind it. NO_VALUE: there is no such GELU. */
ValueId plan_fused_result(const Graph *graph, uint32_t op, const OpPlan *plan);
/* The stored result: its type, and where each element of the graph value is found in it. */
Status plan_result_type(const Graph *graph, uint32_t op, const OpPlan *plan, TensorType *out,
                        Mapping *mapping);
/* GEMM with inner > 1: all partials as one tensor, the inner part first. */
Status plan_partial_type(const Graph *graph, uint32_t op, const OpPlan *plan, TensorType *out);
/* GEMM: the whole product or sum, before it is unpacked to the result's rows. */
Status plan_product_type(const Graph *graph, uint32_t op, const OpPlan *plan, TensorType *out);
/* Fills operand, partial and result formats of a plan from its grid. */
Status plan_gemm_formats(const Graph *graph, uint32_t op, uint32_t first_tile, OpPlan *plan);
/* Row-major staging of an operand that a PACK kernel brings into its order. */
Format plan_staging_format(const Format *format);

/* Fills the sizes of a kernel call from the shards of its operands (results first). */
typedef struct ShardOf {
    const TensorType *type;
    uint32_t shard;
} ShardOf;
Status plan_fill_spec(KernelSpec *spec, const ShardOf *operands, uint32_t count);

/* type_copy_runs in whole words: a run may take padding along; an error when it can not. */
Status plan_copy_words(const TensorType *from, const TensorType *to, const Mapping *mapping,
                       CopyRunSink *sink, void *context);

/* True when a copy would move nothing: every tile already has the destination's bytes, in place.
 * The destination then is another view of the source. */
bool plan_copy_is_view(const TensorType *source, const TensorType *destination,
                       const Mapping *mapping);

/* The best recipes, best first. */
Status plan_search(Arena *arena, const Graph *graph, const PlanOptions *options, Pool *pool,
                   Recipe **out, uint32_t *count);
Status recipe_check(const Graph *graph, const Recipe *recipe);
void recipe_print(Text *text, const Graph *graph, const Recipe *recipe,
                  const Map *only); /* keys of operations, NULL: all */
json_t *recipe_to_json(const Graph *graph, const Recipe *recipe);
Status recipe_from_json(Arena *arena, const JsonPlace *place, const Graph *graph, Recipe *out);

#endif
