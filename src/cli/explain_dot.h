/* explain_dot.h - graph and mid program for Graphviz. */
#ifndef IPU_CLI_EXPLAIN_DOT_H
#define IPU_CLI_EXPLAIN_DOT_H

#include "mid/mid.h"

void graph_dot(Text *text, const Graph *graph);
void mid_dot(Text *text, const Mid *mid);

#endif
