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
    ALGORITHM_NONE,       /* views and slices: no data moves, consumers compose the mapping */
    ALGORITHM_GEMM_GRID,  /* rows x columns x inner; partials summed when inner > 1 */
    ALGORITHM_POINTWISE,  /* on the shards of the result format */
    ALGORITHM_ROWS,       /* layer norm: whole rows per tile, any number of copies */
    ALGORITHM_ATTENTION,  /* heads x query blocks over tiles, key blocks in sequence */
    ALGORITHM_REPEAT
} Algorithm;

typedef enum Staging {
    STAGING_DIRECT,   /* runs go straight into the operand's order */
    STAGING_ROW_MAJOR /* row-major copy first, then a local pack kernel */
} Staging;

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

typedef struct OpPlan {
    const char *key;
    uint8_t algorithm;
    bool swapped;                     /* GEMM: computes the transpose */
    uint32_t rows, columns, inner;    /* GEMM grid; attention: heads x query blocks in rows, columns */
    uint32_t inner_block, column_block; /* per kernel call */
    uint32_t key_block;               /* attention: keys per softmax block */
    uint32_t operand_count;
    OperandPlan operands[PLAN_OPERANDS];
    Format partial;  /* GEMM with inner > 1: the format of a partial */
    Format result;
    bool fused;      /* carried out by the kernel of its consumer or producer (bias into GELU, ...) */
    bool in_place;   /* result overwrites operand 0 */
    double cycles, exchange_cycles; /* predicted, conversions of its operands included */
} OpPlan;

typedef struct Recipe {
    uint32_t tiles;
    bool weights_once;  /* parameters stored once; else they lie where their consumers want them */
    bool pairs;         /* 64-bit exchange allowed */
    OpPlan *ops;        /* by graph operation index */
    uint32_t op_count;
    Format *parameters; /* storage format per graph value that is input or parameter */
    Format *outputs;    /* per graph output */
    double predicted_cycles;
} Recipe;

typedef struct PlanOptions {
    uint32_t tiles;   /* 1..1472 */
    Precision precision; /* F16 (F8 later) */
    bool weights_once, pairs;
    uint32_t beam;    /* 0: default */
} PlanOptions;

/* The best recipes, best first. */
Status plan_search(Arena *arena, const Graph *graph, const PlanOptions *options, Pool *pool,
                   Recipe **out, uint32_t *count);
Status recipe_check(const Graph *graph, const Recipe *recipe);
void recipe_print(Text *text, const Graph *graph, const Recipe *recipe);
json_t *recipe_to_json(const Graph *graph, const Recipe *recipe);
Status recipe_from_json(Arena *arena, const JsonPlace *place, const Graph *graph, Recipe *out);

#endif
