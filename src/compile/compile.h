/* compile.h - the pipeline: from a graph to a package. The only part that knows the order of
 * stages.
 *
 * A Compilation keeps every representation, so that each can be printed, checked and compared; it
 * is filled up to the stage that was asked for. Same graph and options: same bytes, for any number
 * of threads. */
#ifndef IPU_COMPILE_COMPILE_H
#define IPU_COMPILE_COMPILE_H

#include "compile/price.h"
#include "emit/emit.h"
#include "models/models.h"
#include "package/package.h"

typedef enum Stage {
    STAGE_GRAPH, /* nothing is done */
    STAGE_PLAN,
    STAGE_MID,
    STAGE_TILE,
    STAGE_EXCHANGE, /* scheduled, no addresses */
    STAGE_MEMORY,   /* kernels built, everything placed */
    STAGE_PACKAGE
} Stage;

typedef struct CompileOptions {
    PlanOptions plan;
    const char *recipe;       /* JSON text of a recipe to follow instead of searching; or NULL */
    const char *recipe_name;  /* for messages */
    const char *plan_state;   /* file that keeps what the search finds; NULL: none */
    const char *kernel_cache; /* folder; NULL: no cache on disk */
    const Tensors *weights;   /* baked into the package; NULL: bindings only */
    uint8_t profile;          /* ProfileMode: what the code records */
    const Model *model;       /* for the package's text, preprocessing, labels; may be NULL */
} CompileOptions;

typedef struct Finalist { /* one of the best recipes of the search */
    uint32_t rank;        /* in the search, from 0 */
    Recipe *recipe;
    double planned;      /* cycles: the search's sum */
    double expected;     /* priced tile by tile, exchanges as their loads let expect; 0: not done */
    double priced;       /* exactly; 0: not scheduled, as it was not expected to win */
    PlanFigures figures; /* of the priced program: memory that its buffers need at least */
    const char *failure; /* why it can not be had, else NULL */
} Finalist;

typedef struct Compilation {
    Arena arena, lowered; /* lowered: of mid, program and schedule */
    Arena *worker_arenas; /* one per thread of the pool */
    unsigned worker_count;
    const Graph *graph;
    Recipe *recipe;
    Finalist *finalists; /* in the order in which they could win; none when a recipe was given */
    uint32_t finalist_count, chosen;
    PlanReport report; /* of the search */
    json_t *search;    /* the search's report that came with the recipe, or NULL */
    Mid mid;
    TileProgram program;
    Schedule schedule;
    Price price; /* of the scheduled program */
    KernelObjects objects;
    LinkImage linked;
    EmitSizes sizes;
    Placement placement;
    Row **rows; /* [phase][tile] */
    Images images;
    Package package;
    double plan_seconds; /* search and finalists, but for the chosen one's schedule */
    double schedule_seconds;
} Compilation;

Status compile(const Graph *graph, const CompileOptions *options, Pool *pool, Stage until,
               Compilation *out);
void compilation_free(Compilation *compilation);

/* How the plan was found (search_report.c); NULL when nobody knows. */
json_t *search_report_json(const Compilation *compilation);
/* The same for reading; only: keys of operations, NULL: all. */
void search_report_print(Text *text, const json_t *search, const Map *only);

/* Fills the package from the images, bindings, schedule and placement (bindings.c). */
Status compile_package(Compilation *compilation, const CompileOptions *options);
/* The package's profile plan (profile_plan.c); needs images and the package's phases. */
void compile_profile_plan(Compilation *compilation);
void compile_sample_binding(Compilation *compilation, PackageBinding *out);

#endif
