/* internal.h - what the files of src/graph share. */
#ifndef IPU_GRAPH_INTERNAL_H
#define IPU_GRAPH_INTERNAL_H

#include "graph/graph.h"

enum { NO_OPERATION = 0xffffffffu };

Status graph_check_shape(const Shape *shape);
Status graph_infer(const Graph *graph, const Operation *operation, Shape *out);

#endif
