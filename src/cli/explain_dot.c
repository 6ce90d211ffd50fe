/* explain_dot.c - see explain_dot.h. Operations are boxes, values the edges between them; inputs,
 * parameters and outputs have nodes of their own; a repeat's body is a cluster. */
#include "cli/explain_dot.h"

static void put_quoted(Text *text, const char *name)
{
    text_append(text, "\"");
    for (; name && *name; name++) {
        if (*name == '"' || *name == '\\')
            text_append(text, "\\");
        array_push(text, *name);
    }
    text_append(text, "\"");
}

static void put_shape(Text *text, const Shape *shape)
{
    text_append(text, " [label=\"");
    shape_print(text, shape);
    text_append(text, "\"];\n");
}

/* ---- graph ---- */

/* A value's node: what defines it. Arguments of a body are nodes by themselves. */
static void put_source(Text *text, const Graph *graph, ValueId id)
{
    const Value *value = &graph->values.items[id];
    if (value->kind == VALUE_RESULT)
        text_printf(text, "o%u", value->operation);
    else
        text_printf(text, "v%u", id);
}

static void put_operation(Text *text, const Graph *graph, uint32_t o)
{
    const Operation *op = &graph->operations.items[o];
    text_printf(text, "  o%u [shape=box, label=", o);
    put_quoted(text, op->key);
    text_append(text, "];\n");
    for (uint32_t i = 0; i < op->input_count; i++) {
        text_append(text, "  ");
        put_source(text, graph, op->inputs[i]);
        text_printf(text, " -> o%u", o);
        put_shape(text, &graph->values.items[op->inputs[i]].shape);
    }
}

static void put_region(Text *text, const Graph *graph, uint32_t r)
{
    const GraphRegion *region = &graph->regions.items[r];
    for (uint32_t i = 0; i < region->argument_count; i++)
        text_printf(text, "  v%u [shape=ellipse, label=\"%s %u\"];\n", region->arguments[i],
                    i < region->yield_count ? "carried" : "member of sequence", i);
    for (uint32_t i = 0; i < region->operation_count; i++) {
        uint32_t o = region->operations[i];
        const Operation *op = &graph->operations.items[o];
        put_operation(text, graph, o);
        if (op->kind != OP_REPEAT)
            continue;
        text_printf(text, "  subgraph cluster%u {\n  label=\"%u times\";\n", op->body, op->count);
        put_region(text, graph, op->body);
        text_append(text, "  }\n");
        const GraphRegion *body = &graph->regions.items[op->body];
        for (uint32_t y = 0; y < body->yield_count; y++) {
            text_append(text, "  ");
            put_source(text, graph, body->yields[y]);
            text_printf(text, " -> o%u [style=dashed];\n", o);
        }
    }
}

void graph_dot(Text *text, const Graph *graph)
{
    text_append(text, "digraph graph_ {\n  node [fontname=\"sans-serif\"];\n");
    for (uint32_t v = 0; v < graph->values.count; v++) {
        const Value *value = &graph->values.items[v];
        if (value->kind != VALUE_INPUT && value->kind != VALUE_PARAMETER)
            continue;
        text_printf(text, "  v%u [shape=%s, label=", v,
                    value->kind == VALUE_INPUT ? "ellipse" : "note");
        put_quoted(text, value->name);
        text_append(text, "];\n");
    }
    if (graph->regions.count)
        put_region(text, graph, 0);
    for (uint32_t i = 0; i < graph->outputs.count; i++) {
        text_printf(text, "  out%u [shape=ellipse, label=", i);
        put_quoted(text, graph->outputs.items[i].name);
        text_append(text, "];\n  ");
        put_source(text, graph, graph->outputs.items[i].value);
        text_printf(text, " -> out%u;\n", i);
    }
    text_append(text, "}\n");
}

/* ---- mid ---- */

static void put_mid_op(Text *text, const Mid *mid, uint32_t i, uint32_t *writer)
{
    const MidOp *op = &mid->ops.items[i];
    text_printf(text, "  o%u [shape=%s, label=\"%s", i,
                op->kind == MID_COPY ? "parallelogram" : "box", mid_kind_name(op->kind));
    if (op->kind == MID_COMPUTE)
        text_printf(text, " %s", kernel_family_name(op->kernel.family));
    text_printf(text, "\\n%s\"];\n", op->operation ? op->operation : "");
    for (uint32_t k = 0; k < op->operand_count; k++) {
        MidId root = mid_root(mid, op->operands[k]);
        const MidValue *value = mid_value(mid, op->operands[k]);
        if (writer[root])
            text_printf(text, "  o%u -> o%u [label=", writer[root] - 1, i);
        else
            text_printf(text, "  v%u -> o%u [label=", root, i);
        put_quoted(text, value->name);
        text_append(text, "];\n");
        if (!writer[root]) {
            text_printf(text, "  v%u [shape=note, label=", root);
            put_quoted(text, mid_value(mid, root)->name);
            text_append(text, "];\n");
        }
    }
    for (uint32_t k = 0; k < op->result_count; k++)
        writer[mid_root(mid, op->results[k])] = i + 1;
}

void mid_dot(Text *text, const Mid *mid)
{
    uint32_t *writer = xcalloc(mid->values.count, sizeof *writer);
    text_append(text, "digraph mid {\n  node [fontname=\"sans-serif\"];\n");
    for (uint32_t i = 0; i < mid->ops.count; i++)
        put_mid_op(text, mid, i, writer);
    text_append(text, "}\n");
    array_release(writer);
}
