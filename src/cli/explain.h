/* explain.h - the parts of `explain` that are more than a call of a stage's own printer. */
#ifndef IPU_CLI_EXPLAIN_H
#define IPU_CLI_EXPLAIN_H

#include "cli/session.h"

/* What is shown: operations (NULL: all) and a logical tile (-1: all). */
typedef struct Narrow {
    const Map *only;
    int32_t tile;
} Narrow;

/* The tile of views that show one: the one asked for, else the first with work of the operations.
 */
uint32_t narrow_tile(const Narrow *narrow, const TileProgram *program);

/* For Graphviz. */
void graph_dot(Text *text, const Graph *graph, const Map *only);
void mid_dot(Text *text, const Mid *mid, const Map *only);

/* The machine code of one tile, instruction by instruction with the step
 * that each belongs to. */
void code_print(Text *text, const Compilation *compilation, const Narrow *narrow);
json_t *code_to_json(const Compilation *compilation, const Narrow *narrow);

#endif
