/* build.c - building a graph, one operation at a time; shapes are inferred here and nowhere else.
 *
 * Shape inference is one function over an operation and its operands' shapes (infer): the builders
 * use it to make results, graph_check uses it again on the finished graph. */
#include "graph/internal.h"

#include <string.h>

void graph_init(Graph *graph, Arena *arena)
{
    *graph = (Graph){.arena = arena};
    array_push(&graph->regions, (GraphRegion){0});
}

void graph_free(Graph *graph)
{
    array_free(&graph->values);
    array_free(&graph->operations);
    array_free(&graph->regions);
    array_free(&graph->sequences);
    array_free(&graph->outputs);
}

static ValueId add_value(Graph *graph, ValueKind kind, const char *name, Shape shape,
                         uint32_t operation)
{
    const char *own = name ? arena_strdup(graph->arena, name) : NULL;
    array_push(&graph->values, (Value){(uint8_t)kind, own, shape, operation});
    return (ValueId)(graph->values.count - 1);
}

ValueId graph_input(Graph *graph, const char *name, Shape shape)
{
    return add_value(graph, VALUE_INPUT, name, shape, NO_OPERATION);
}

ValueId graph_parameter(Graph *graph, const char *name, Shape shape)
{
    return add_value(graph, VALUE_PARAMETER, name, shape, NO_OPERATION);
}

/* ---- shapes ---- */

static Status infer_gemm(const Operation *op, const Shape *left, const Shape *right, Shape *out)
{
    if (left->rank < 2 || right->rank != 2)
        return status_error("a product needs [.., m, k] and a matrix, not ranks %u and %u",
                            left->rank, right->rank);
    uint32_t k = right->extent[op->transpose_right ? 1 : 0];
    if (left->extent[left->rank - 1] != k)
        return status_error("inner extents %u and %u differ", left->extent[left->rank - 1], k);
    *out = *left;
    out->extent[left->rank - 1] = right->extent[op->transpose_right ? 0 : 1];
    return STATUS_OK;
}

static Status infer_add(const Shape *a, const Shape *b, Shape *out)
{
    const Shape *longer = a->rank >= b->rank ? a : b, *shorter = longer == a ? b : a;
    uint32_t lead = longer->rank - shorter->rank;
    *out = *longer;
    for (uint32_t i = 0; i < shorter->rank; i++) {
        uint32_t x = longer->extent[lead + i], y = shorter->extent[i];
        if (x != y && x != 1 && y != 1)
            return status_error("extents %u and %u do not broadcast", x, y);
        out->extent[lead + i] = max_u32(x, y);
    }
    return STATUS_OK;
}

static Status infer_norm(const Shape *x, const Shape *scale, const Shape *bias, Shape *out)
{
    uint64_t columns = x->extent[x->rank - 1];
    if (shape_elements(scale) != columns || shape_elements(bias) != columns ||
        scale->extent[scale->rank - 1] != columns || bias->extent[bias->rank - 1] != columns)
        return status_error("scale and bias must have the last axis' %llu elements",
                            (unsigned long long)columns);
    *out = *x;
    return STATUS_OK;
}

static Status infer_slice(const Operation *op, const Shape *x, Shape *out)
{
    if (op->axis >= x->rank || op->length == 0 ||
        (uint64_t)op->start + op->length > x->extent[op->axis])
        return status_error("slice %u..%u of axis %u is not inside", op->start,
                            op->start + op->length, op->axis);
    *out = *x;
    out->extent[op->axis] = op->length;
    return STATUS_OK;
}

static Status infer_attention(const Shape *q, const Shape *k, const Shape *v, Shape *out)
{
    if (q->rank != 3 || k->rank != 3 || v->rank != 3)
        return status_error("attention needs three tensors of rank 3");
    if (q->extent[0] != k->extent[0] || k->extent[0] != v->extent[0] ||
        q->extent[2] != k->extent[2] || k->extent[1] != v->extent[1])
        return status_error("heads, keys or widths of q, k and v do not match");
    *out = *q;
    out->extent[2] = v->extent[2];
    return STATUS_OK;
}

static const uint8_t operand_counts[] = {
    [OP_GEMM] = 2,  [OP_ADD] = 2,  [OP_LAYER_NORM] = 3, [OP_GELU] = 1,
    [OP_SLICE] = 1, [OP_VIEW] = 1, [OP_ATTENTION] = 3,
};

/* Result shape of every kind but the repeat. */
Status graph_infer(const Graph *graph, const Operation *op, Shape *out)
{
    if (op->kind >= OP_REPEAT || op->input_count != operand_counts[op->kind])
        return status_error("unknown operation or wrong number of operands");
    const Shape *s[3] = {NULL};
    for (uint32_t i = 0; i < op->input_count; i++) {
        if (op->inputs[i] >= graph->values.count)
            return status_error("operand %u does not exist", i);
        s[i] = &graph->values.items[op->inputs[i]].shape;
        TRY(graph_check_shape(s[i]));
    }
    Mapping mapping;
    switch (op->kind) {
    case OP_GEMM:
        return infer_gemm(op, s[0], s[1], out);
    case OP_ADD:
        return infer_add(s[0], s[1], out);
    case OP_LAYER_NORM:
        if (!(op->epsilon > 0))
            return status_error("epsilon must be positive");
        return infer_norm(s[0], s[1], s[2], out);
    case OP_SLICE:
        return infer_slice(op, s[0], out);
    case OP_VIEW:
        return mapping_view(s[0], op->split, op->merge, op->factor, op->reversed, out, &mapping);
    case OP_ATTENTION:
        return infer_attention(s[0], s[1], s[2], out);
    default:
        *out = *s[0];
        return STATUS_OK;
    }
}

Status graph_check_shape(const Shape *shape)
{
    uint64_t elements = 1;
    if (shape->rank == 0 || shape->rank > MAX_RANK)
        return status_error("rank %u", shape->rank);
    for (uint32_t a = 0; a < shape->rank; a++) {
        if (shape->extent[a] == 0 || shape->extent[a] > UINT32_MAX / elements)
            return status_error("a shape is empty or too large");
        elements *= shape->extent[a];
    }
    return STATUS_OK;
}

/* ---- operations ---- */

static uint32_t current_region(const Graph *graph)
{
    return graph->open_repeat ? graph->operations.items[graph->open_repeat - 1].body : 0;
}

static ValueId *copy_ids(Graph *graph, const ValueId *ids, uint32_t count)
{
    if (count == 0)
        return NULL;
    return arena_copy(graph->arena, ids, array_bytes(count, sizeof *ids), _Alignof(ValueId));
}

/* Region lists live in the arena and grow by doubling. */
static void region_push(Graph *graph, uint32_t region, uint32_t operation)
{
    GraphRegion *r = &graph->regions.items[region];
    uint32_t count = r->operation_count;
    if (count == 0 || (count >= 8 && (count & (count - 1)) == 0)) {
        uint32_t *grown = arena_array(graph->arena, uint32_t, count ? 2 * count : 8);
        if (count)
            memcpy(grown, r->operations, count * sizeof *grown);
        r->operations = grown;
    }
    r->operations[r->operation_count++] = operation;
}

static uint32_t push_operation(Graph *graph, Operation op, const char *key)
{
    uint32_t index = (uint32_t)graph->operations.count;
    op.key = arena_strdup(graph->arena, key);
    op.region = current_region(graph);
    op.inputs = copy_ids(graph, op.inputs, op.input_count);
    array_push(&graph->operations, op);
    region_push(graph, op.region, index);
    return index;
}

static Status add_operation(Graph *graph, Operation op, const char *key, ValueId *out)
{
    Shape shape;
    TRY(status_context(graph_infer(graph, &op, &shape), "%s", key));
    uint32_t index = push_operation(graph, op, key);
    Operation *added = &graph->operations.items[index];
    added->results = arena_array(graph->arena, ValueId, 1);
    added->result_count = 1;
    added->results[0] = *out = add_value(graph, VALUE_RESULT, NULL, shape, index);
    return STATUS_OK;
}

Status graph_gemm(Graph *graph, const char *key, ValueId left, ValueId right, bool transpose_right,
                  ValueId *out)
{
    ValueId inputs[] = {left, right};
    Operation op = {
        .kind = OP_GEMM, .inputs = inputs, .input_count = 2, .transpose_right = transpose_right};
    return add_operation(graph, op, key, out);
}

Status graph_add(Graph *graph, const char *key, ValueId a, ValueId b, ValueId *out)
{
    ValueId inputs[] = {a, b};
    return add_operation(graph, (Operation){.kind = OP_ADD, .inputs = inputs, .input_count = 2},
                         key, out);
}

Status graph_layer_norm(Graph *graph, const char *key, ValueId x, ValueId scale, ValueId bias,
                        float epsilon, ValueId *out)
{
    ValueId inputs[] = {x, scale, bias};
    Operation op = {.kind = OP_LAYER_NORM, .inputs = inputs, .input_count = 3, .epsilon = epsilon};
    return add_operation(graph, op, key, out);
}

Status graph_gelu(Graph *graph, const char *key, ValueId x, ValueId *out)
{
    return add_operation(graph, (Operation){.kind = OP_GELU, .inputs = &x, .input_count = 1}, key,
                         out);
}

Status graph_slice(Graph *graph, const char *key, ValueId x, uint32_t axis, uint32_t start,
                   uint32_t length, ValueId *out)
{
    Operation op = {.kind = OP_SLICE,
                    .inputs = &x,
                    .input_count = 1,
                    .axis = axis,
                    .start = start,
                    .length = length};
    return add_operation(graph, op, key, out);
}

Status graph_view(Graph *graph, const char *key, ValueId x, uint32_t split, uint32_t merge,
                  uint32_t factor, bool reversed, ValueId *out)
{
    Operation op = {.kind = OP_VIEW,
                    .inputs = &x,
                    .input_count = 1,
                    .split = split,
                    .merge = merge,
                    .factor = factor,
                    .reversed = reversed};
    return add_operation(graph, op, key, out);
}

Status graph_attention(Graph *graph, const char *key, ValueId q, ValueId k, ValueId v, float scale,
                       ValueId *out)
{
    ValueId inputs[] = {q, k, v};
    Operation op = {.kind = OP_ATTENTION, .inputs = inputs, .input_count = 3, .scale = scale};
    return add_operation(graph, op, key, out);
}

/* ---- repeats ---- */

uint32_t graph_sequence(Graph *graph, const char *name, const ValueId *members, uint32_t count)
{
    Sequence sequence = {arena_strdup(graph->arena, name), copy_ids(graph, members, count), count};
    array_push(&graph->sequences, sequence);
    return (uint32_t)(graph->sequences.count - 1);
}

static Status check_repeat(const Graph *graph, uint32_t count, const ValueId *carried,
                           uint32_t carried_count, const uint32_t *sequences,
                           uint32_t sequence_count)
{
    if (graph->open_repeat)
        return status_error("repeats do not nest");
    if (count == 0)
        return status_error("a repeat runs at least once");
    for (uint32_t i = 0; i < carried_count; i++)
        if (carried[i] >= graph->values.count)
            return status_error("carried value %u does not exist", i);
    for (uint32_t i = 0; i < sequence_count; i++) {
        if (sequences[i] >= graph->sequences.count)
            return status_error("sequence %u does not exist", i);
        if (graph->sequences.items[sequences[i]].count != count)
            return status_error("sequence %s has %u members for %u iterations",
                                graph->sequences.items[sequences[i]].name,
                                graph->sequences.items[sequences[i]].count, count);
    }
    return STATUS_OK;
}

Status graph_begin_repeat(Graph *graph, const char *key, uint32_t count, const ValueId *carried,
                          uint32_t carried_count, const uint32_t *sequences,
                          uint32_t sequence_count, const ValueId **arguments)
{
    TRY(status_context(
        check_repeat(graph, count, carried, carried_count, sequences, sequence_count), "%s", key));
    Operation op = {.kind = OP_REPEAT,
                    .inputs = (ValueId *)carried,
                    .input_count = carried_count,
                    .body = (uint32_t)graph->regions.count,
                    .count = count,
                    .carried_count = carried_count,
                    .sequence_count = sequence_count};
    op.sequences = copy_ids(graph, sequences, sequence_count);
    uint32_t index = push_operation(graph, op, key);
    GraphRegion body = {.argument_count = carried_count + sequence_count};
    body.arguments = arena_array(graph->arena, ValueId, body.argument_count);
    for (uint32_t i = 0; i < body.argument_count; i++) {
        ValueId like = i < carried_count
                           ? carried[i]
                           : graph->sequences.items[sequences[i - carried_count]].members[0];
        Shape shape = graph->values.items[like].shape;
        body.arguments[i] = add_value(graph, VALUE_ARGUMENT, NULL, shape, index);
    }
    array_push(&graph->regions, body);
    graph->open_repeat = index + 1;
    *arguments = body.arguments;
    return STATUS_OK;
}

Status graph_end_repeat(Graph *graph, const ValueId *yields, const ValueId **results)
{
    if (!graph->open_repeat)
        return status_error("no repeat is open");
    uint32_t index = graph->open_repeat - 1;
    Operation *op = &graph->operations.items[index];
    GraphRegion *body = &graph->regions.items[op->body];
    for (uint32_t i = 0; i < op->carried_count; i++)
        if (yields[i] >= graph->values.count)
            return status_error("%s: yield %u does not exist", op->key, i);
    body->yields = copy_ids(graph, yields, op->carried_count);
    body->yield_count = op->carried_count;
    op->results = arena_array(graph->arena, ValueId, op->carried_count);
    op->result_count = op->carried_count;
    for (uint32_t i = 0; i < op->carried_count; i++)
        op->results[i] =
            add_value(graph, VALUE_RESULT, NULL, graph->values.items[op->inputs[i]].shape, index);
    graph->open_repeat = 0;
    *results = op->results;
    return STATUS_OK;
}

Status graph_output(Graph *graph, const char *name, ValueId value)
{
    if (value >= graph->values.count)
        return status_error("output %s does not exist", name);
    GraphOutput output = {arena_strdup(graph->arena, name), value};
    array_push(&graph->outputs, output);
    if (!graph->values.items[value].name)
        graph->values.items[value].name = output.name;
    return STATUS_OK;
}
