/* lowered.h - a recipe made into a scheduled program (private to src/compile). */
#ifndef IPU_COMPILE_LOWERED_H
#define IPU_COMPILE_LOWERED_H

#include "compile/compile.h"

typedef struct Lowered {
    Arena arena; /* owns the rest */
    Mid mid;
    TileProgram program;
    Schedule schedule;
    Price price;
    double schedule_seconds;
} Lowered;

/* compile.c: mid, rewrites, tiles, exchange schedule, price. To be freed in any case. */
Status lower_recipe(const Graph *graph, const Recipe *recipe, const CompileOptions *options,
                    Pool *pool, Stage until, Lowered *out);
void lowered_free(Lowered *lowered);

/* finalists.c: the best of c->finalists, lowered. */
Status choose_finalist(Compilation *c, const CompileOptions *options, Pool *pool, Lowered *best);
Status lower_finalist(Compilation *c, const CompileOptions *options, Pool *pool, uint32_t index,
                      Lowered *out);
/* The chosen one failed: `why`, which this frees. Chooses and lowers the next best one; false:
 * there is none. */
bool next_finalist(Compilation *c, const CompileOptions *options, Pool *pool, Status why,
                   Lowered *out);

/* state.c: the finalists of an earlier search, and those of this one. path may be NULL. */
Status state_load(Compilation *c, const char *path, const PlanOptions *plan, bool *found);
Status state_save(const Compilation *c, const char *path, const PlanOptions *plan);

#endif
