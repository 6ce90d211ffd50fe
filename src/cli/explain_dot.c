/* explain_dot.c - graphs and mid programs for Graphviz. Operations are boxes, values the edges
 * between them; inputs, parameters and outputs have nodes of their own; a repeat's body is a
 * cluster. Of a part of a program, what feeds it from outside is dashed. */
#include "cli/explain.h"

static void put_escaped(Text *text, const char *name)
{
    for (; name && *name; name++) {
        if (*name == '"' || *name == '\\')
            text_append(text, "\\");
        array_push(text, *name == '\n' ? ' ' : *name);
    }
    text_append(text, "");
}

static void put_quoted(Text *text, const char *name)
{
    text_append(text, "\"");
    put_escaped(text, name);
    text_append(text, "\"");
}

static void put_shape(Text *text, const Shape *shape)
{
    text_append(text, " [label=\"");
    shape_print(text, shape);
    text_append(text, "\"];\n");
}

/* ---- graph ---- */

typedef struct GraphDot {
    Text *text;
    const Graph *graph;
    const Map *only;
    bool *node; /* [value]: it or what defines it has a node */
} GraphDot;

/* A value's node: what defines it. Arguments of a body are nodes by themselves. */
static void put_source(Text *text, const Graph *graph, ValueId id)
{
    const Value *value = &graph->values.items[id];
    if (value->kind == VALUE_RESULT)
        text_printf(text, "o%u", value->operation);
    else
        text_printf(text, "v%u", id);
}

static bool shown(const GraphDot *d, uint32_t o)
{
    return map_wants(d->only, d->graph->operations.items[o].key);
}

/* The node of a value that a shown operation reads, when nothing else puts it. */
static void need_source(GraphDot *d, ValueId id)
{
    const Value *value = &d->graph->values.items[id];
    bool result = value->kind == VALUE_RESULT;
    if (d->node[id] || (result && shown(d, value->operation)))
        return;
    d->node[id] = true;
    text_append(d->text, "  ");
    put_source(d->text, d->graph, id);
    if (result) {
        text_append(d->text, " [shape=box, style=dashed, label=");
        put_quoted(d->text, d->graph->operations.items[value->operation].key);
    } else {
        text_printf(d->text,
                    " [shape=%s, label=", value->kind == VALUE_PARAMETER ? "note" : "ellipse");
        put_quoted(d->text, value->name ? value->name : "argument of the body");
    }
    text_append(d->text, "];\n");
}

static void put_operation(GraphDot *d, uint32_t o)
{
    const Operation *op = &d->graph->operations.items[o];
    for (uint32_t i = 0; i < op->input_count; i++)
        need_source(d, op->inputs[i]);
    text_printf(d->text, "  o%u [shape=box, label=", o);
    put_quoted(d->text, op->key);
    text_append(d->text, "];\n");
    for (uint32_t i = 0; i < op->input_count; i++) {
        text_append(d->text, "  ");
        put_source(d->text, d->graph, op->inputs[i]);
        text_printf(d->text, " -> o%u", o);
        put_shape(d->text, &d->graph->values.items[op->inputs[i]].shape);
    }
}

static void put_region(GraphDot *d, uint32_t r);

/* A value that is carried enters from the repeat's node; members come from their sequence. */
static void put_argument(GraphDot *d, uint32_t o, uint32_t i)
{
    const Operation *op = &d->graph->operations.items[o];
    const GraphRegion *body = &d->graph->regions.items[op->body];
    bool carried = i < op->carried_count;
    d->node[body->arguments[i]] = true;
    text_printf(d->text, "  v%u [shape=%s, label=", body->arguments[i],
                carried ? "ellipse" : "note");
    put_quoted(d->text, carried
                            ? "carried"
                            : d->graph->sequences.items[op->sequences[i - op->carried_count]].name);
    text_append(d->text, "];\n");
    if (carried)
        text_printf(d->text, "  o%u -> v%u [style=dashed];\n", o, body->arguments[i]);
}

static void put_body(GraphDot *d, uint32_t o)
{
    const Operation *op = &d->graph->operations.items[o];
    const GraphRegion *body = &d->graph->regions.items[op->body];
    bool any = false;
    for (uint32_t i = 0; i < body->operation_count; i++)
        any = any || shown(d, body->operations[i]);
    if (!any)
        return;
    text_printf(d->text, "  subgraph cluster%u {\n  label=\"%u times\";\n", op->body, op->count);
    for (uint32_t i = 0; i < body->argument_count && !d->only; i++)
        put_argument(d, o, i);
    put_region(d, op->body);
    text_append(d->text, "  }\n");
    for (uint32_t y = 0; y < body->yield_count && !d->only; y++) {
        text_append(d->text, "  ");
        put_source(d->text, d->graph, body->yields[y]);
        text_printf(d->text, " -> o%u [style=dashed, constraint=false];\n", o);
    }
}

static void put_region(GraphDot *d, uint32_t r)
{
    const GraphRegion *region = &d->graph->regions.items[r];
    for (uint32_t i = 0; i < region->operation_count; i++) {
        uint32_t o = region->operations[i];
        if (shown(d, o))
            put_operation(d, o);
        if (d->graph->operations.items[o].kind == OP_REPEAT)
            put_body(d, o);
    }
}

void graph_dot(Text *text, const Graph *graph, const Map *only)
{
    GraphDot d = {text, graph, only, xcalloc(graph->values.count + 1, sizeof(bool))};
    text_append(text, "digraph graph_ {\n  node [fontname=\"sans-serif\"];\n");
    if (graph->regions.count)
        put_region(&d, 0);
    for (uint32_t i = 0; i < graph->outputs.count; i++) {
        ValueId value = graph->outputs.items[i].value;
        const Value *v = &graph->values.items[value];
        if (v->kind == VALUE_RESULT && !shown(&d, v->operation))
            continue;
        need_source(&d, value);
        text_printf(text, "  out%u [shape=ellipse, label=", i);
        put_quoted(text, graph->outputs.items[i].name);
        text_append(text, "];\n  ");
        put_source(text, graph, value);
        text_printf(text, " -> out%u;\n", i);
    }
    text_append(text, "}\n");
    array_release(d.node);
}

/* ---- mid ---- */

typedef struct MidDot {
    Text *text;
    const Mid *mid;
    uint32_t *writer; /* [value]: operation + 1 that wrote its memory last */
    bool *node;       /* [value]: has one, no operation wrote it */
    bool *outside;    /* [operation]: dashed node put */
    const Map *only;
} MidDot;

static void put_mid_label(Text *text, const MidOp *op)
{
    text_printf(text, "label=\"%s", mid_kind_name(op->kind));
    if (op->kind != MID_COPY && op->kind != MID_REPEAT && op->kind != MID_END_REPEAT)
        text_printf(text, " %s", kernel_family_name(op->kernel.family));
    if (op->kind == MID_REPEAT)
        text_printf(text, " %u times", op->count);
    text_append(text, "\\n");
    put_escaped(text, op->operation);
    text_append(text, "\"");
}

static void put_mid_source(MidDot *d, MidId root)
{
    uint32_t writer = d->writer[root];
    if (writer && !map_wants(d->only, d->mid->ops.items[writer - 1].operation) &&
        !d->outside[writer - 1]) {
        d->outside[writer - 1] = true;
        text_printf(d->text, "  o%u [shape=box, style=dashed, ", writer - 1);
        put_mid_label(d->text, &d->mid->ops.items[writer - 1]);
        text_append(d->text, "];\n");
    }
    if (writer || d->node[root])
        return;
    d->node[root] = true;
    text_printf(d->text, "  v%u [shape=note, label=", root);
    put_quoted(d->text, mid_value(d->mid, root)->name);
    text_append(d->text, "];\n");
}

static void put_mid_op(MidDot *d, uint32_t i)
{
    const MidOp *op = &d->mid->ops.items[i];
    text_printf(d->text, "  o%u [shape=%s, ", i, op->kind == MID_COPY ? "parallelogram" : "box");
    put_mid_label(d->text, op);
    text_append(d->text, "];\n");
    for (uint32_t k = 0; k < op->operand_count; k++) {
        MidId root = mid_root(d->mid, op->operands[k]);
        put_mid_source(d, root);
        if (d->writer[root])
            text_printf(d->text, "  o%u -> o%u [label=", d->writer[root] - 1, i);
        else
            text_printf(d->text, "  v%u -> o%u [label=", root, i);
        put_quoted(d->text, mid_value(d->mid, op->operands[k])->name);
        text_append(d->text, "];\n");
    }
}

void mid_dot(Text *text, const Mid *mid, const Map *only)
{
    size_t values = mid->values.count + 1;
    MidDot d = {text,
                mid,
                xcalloc(values, sizeof(uint32_t)),
                xcalloc(values, sizeof(bool)),
                xcalloc(mid->ops.count + 1, sizeof(bool)),
                only};
    text_append(text, "digraph mid {\n  node [fontname=\"sans-serif\"];\n");
    for (uint32_t i = 0; i < mid->ops.count; i++) {
        const MidOp *op = &mid->ops.items[i];
        if (map_wants(only, op->operation))
            put_mid_op(&d, i);
        for (uint32_t k = 0; k < op->result_count; k++)
            d.writer[mid_root(mid, op->results[k])] = i + 1;
    }
    text_append(text, "}\n");
    array_release(d.writer);
    array_release(d.node);
    array_release(d.outside);
}
