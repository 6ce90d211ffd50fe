/* internal.h - shared by the files of src/plan. */
#ifndef IPU_PLAN_INTERNAL_H
#define IPU_PLAN_INTERNAL_H

#include "plan/plan.h"

#include <string.h>

/* ---- graph access, formats (formats.c) ---- */
const Operation *plan_operation(const Graph *graph, uint32_t op);
const Shape *plan_shape(const Graph *graph, ValueId value);

/* Building formats: start with replicas, add axes; tile_count follows. A block above 1 pads. */
Format format_start(uint32_t first_tile, uint32_t replicas, Order order);
void format_add_axis(Format *format, uint32_t axis, uint32_t partitions, uint32_t block,
                     uint32_t stride);
void format_add_rows(Format *format, const Shape *shape, uint32_t last, uint32_t base,
                     uint32_t parts, uint32_t block, uint32_t stride);
bool rows_can_split(const Shape *shape, uint32_t last, uint32_t parts, uint32_t block);
void attention_formats(const Graph *graph, uint32_t op, uint32_t first_tile, OpPlan *plan);
Format format_once(const Format *format, uint32_t first_tile); /* without replicas */
/* One copy (`once` has no replicas) in small parts over all tiles (spread.c). */
Format spread_format(const TensorType *once, uint32_t tiles);
/* Every block is on complete pairs of tiles, enough of them for 64-bit multicasts among them. */
bool type_in_pairs(const TensorType *type);

typedef struct GemmShape {
    uint32_t outer, rows, inner, columns;
} GemmShape;
GemmShape gemm_shape(const Graph *graph, uint32_t op);

/* ---- interned types and what it costs to go from one to another (cost.c) ---- */
typedef struct Storage { /* how a graph value is stored; mapping: stored tensor -> value */
    TensorType type;
    Mapping mapping;
    uint64_t hash; /* of both */
} Storage;

typedef struct Conversion { /* of a stored value to an operand's type */
    bool view;              /* nothing moves */
    bool padded;            /* the operand has padding */
    uint32_t words;         /* largest sum that one tile sends or receives: events, with what goes
                               to pairs of tiles in 64-bit items where that is quicker */
    uint32_t sources;       /* most sources of one tile */
    double local;           /* cycles of the slowest tile's local copies */
    double own_local;       /* the same when stored shares lie in their place in the operand */
    char *error;            /* it is not possible, and why; else NULL */
} Conversion;

typedef struct WantedConversion {
    uint64_t key;
    uint32_t storage;
    bool mapped; /* extra is one */
    Mapping extra;
    TensorType to;
} WantedConversion;

typedef struct Costs {
    bool pairs; /* long pieces to complete pairs of tiles go in 64-bit items */
    ARRAY(Storage) storages;
    Map storage_ids, conversion_ids, kernel_ids;
    ARRAY(Conversion) conversions;
    /* While collecting, unknown conversions cost nothing and are noted; costs_count_wanted then
     * counts them on all cores. What is known is the same in whatever order. */
    bool collecting;
    ARRAY(WantedConversion) wanted;
    Map wanted_ids;
} Costs;

uint32_t costs_storage(Costs *costs, const TensorType *type, const Mapping *mapping);
/* extra: applied after the storage's mapping (a broadcast, a slice); NULL: none. */
Status costs_conversion(Costs *costs, uint32_t storage, const Mapping *extra, const TensorType *to,
                        Conversion *out);
void costs_count_wanted(Costs *costs, Pool *pool);
double costs_kernel(Costs *costs, const KernelSpec *spec);
/* A kernel on the largest shards; the contract must accept the sizes. */
Status costs_pattern(Costs *costs, KernelSpec pattern, const ShardOf *operands, uint32_t count,
                     double *cycles);
void costs_free(Costs *costs);
uint64_t hash_type(const TensorType *type, uint64_t seed);
uint64_t hash_mapping(const Mapping *mapping, uint64_t seed);

/* ---- candidates (candidates.c) ---- */
typedef struct Candidate {
    OpPlan plan;
    double kernel;           /* cycles of its kernels, operands in place */
    double inside;           /* cycles of its own exchanges without the addends' words (partials) */
    double gelu;             /* cycles that the GELU would take which it carries out */
    uint32_t words, sources; /* of that exchange: addends join it */
    uint64_t bytes;          /* of partials, stack and results on the fullest tile */
} Candidate;
typedef ARRAY(Candidate) CandidateArray;

typedef struct PlanConstraint PlanConstraint;
typedef struct Listed { /* how many grids a product has, and how many candidates got a price */
    uint32_t grids, priced;
} Listed;

typedef struct Planner {
    Arena *arena;
    const Graph *graph;
    const PlanOptions *options;
    Pool *pool;
    uint32_t beam;
    Costs costs;
    uint32_t *uses;              /* per value: readers */
    uint32_t *last_use;          /* per value: index of the last operation that reads its memory */
    CandidateArray *candidates;  /* per operation, made on demand */
    Listed *listed;              /* per operation */
    bool memory_short;           /* some step did not fit */
    bool frugal;                 /* ways that need less memory are listed too */
    PlanConstraint *constraints; /* the user's */
    uint32_t constraint_count;
    uint64_t budget;  /* bytes of a tile for data */
    uint64_t missing; /* the least that was missing when a candidate did not fit */
} Planner;

/* ---- the user's constraints (constraint.c) ---- */
enum { PLAN_SCATTERS = SCATTER_SHARES + 1 };
extern const char *const plan_scatter_names[PLAN_SCATTERS];
Status constraints_read(Arena *arena, const Graph *graph, const char *text, PlanConstraint **out,
                        uint32_t *count);
/* grid_only: only what is said about grids is looked at. */
bool constraints_allow(const Planner *planner, const OpPlan *plan, bool grid_only);
/* The error when none of the plans (their grids) is allowed: what would help. */
Status constraints_refuse(const Planner *planner, const OpPlan *plans, size_t count);

/* The adds behind a product that its kernel can carry out; at most two. */
uint32_t fusable_adds(const Planner *planner, uint32_t op, uint32_t adds[2]);
/* The GELU behind a product's last add of these. False: another operation reads that value. */
bool fusable_gelu(const Planner *planner, uint32_t op, uint32_t addends);
Status make_candidates(Planner *planner, uint32_t op, const CandidateArray **out);
/* frontier.c: drops what can not become the best; tells the frontier. */
void frontier_prune(const Planner *planner, uint32_t op, CandidateArray *candidates);
void frontier_report(Planner *planner, PlanReport *out);
/* A pointwise operation on the shards of `result`. False: the order can not do it. */
bool pointwise_candidate(Planner *planner, uint32_t op, bool fused_bias, const Format *result,
                         Candidate *out);
Format broadcast_format(const Format *format, const Shape *full, const Shape *part);
Format linear_format(const Shape *shape, uint32_t tiles);
Format rows_format(const Shape *shape, uint32_t tiles, uint32_t first_tile);

#endif
