/* check.c - the rules of a finished graph: definitions before uses, shapes, names, keys, repeats.
 */
#include "graph/internal.h"

#include <string.h>

typedef struct Checker {
    const Graph *graph;
    uint8_t *defined; /* per value: 1 + region in which it can be used; 0: not yet */
    Map names, keys;
} Checker;

static Status check_values(Checker *c)
{
    const Graph *graph = c->graph;
    for (uint32_t i = 0; i < graph->values.count; i++) {
        const Value *value = &graph->values.items[i];
        TRY(status_context(graph_check_shape(&value->shape), "value %u", i));
        if (value->kind > VALUE_PARAMETER)
            continue;
        bool added;
        if (!value->name || !*value->name)
            return status_error("value %u: inputs and parameters need a name", i);
        (void)map_at_text(&c->names, value->name, &added);
        if (!added)
            return status_error("%s: two values have this name", value->name);
        c->defined[i] = 1;
    }
    for (uint32_t i = 0; i < graph->sequences.count; i++) {
        const Sequence *sequence = &graph->sequences.items[i];
        for (uint32_t k = 0; k < sequence->count; k++) {
            if (sequence->members[k] >= graph->values.count)
                return status_error("%s: member %u does not exist", sequence->name, k);
            const Value *member = &graph->values.items[sequence->members[k]];
            if (member->kind != VALUE_PARAMETER)
                return status_error("%s: member %u is no parameter", sequence->name, k);
            if (!shape_equal(&member->shape, &graph->values.items[sequence->members[0]].shape))
                return status_error("%s: member %u has another shape", sequence->name, k);
        }
    }
    return STATUS_OK;
}

static Status check_use(const Checker *c, ValueId value, uint32_t region)
{
    if (value >= c->graph->values.count)
        return status_error("value %u does not exist", value);
    if (c->defined[value] != region + 1)
        return status_error("value %u is not defined here", value);
    return STATUS_OK;
}

static Status check_region(Checker *c, uint32_t region);

static Status check_repeat(Checker *c, const Operation *op)
{
    const Graph *graph = c->graph;
    if (op->region != 0 || op->body == 0 || op->body >= graph->regions.count)
        return status_error("repeats do not nest");
    const GraphRegion *body = &graph->regions.items[op->body];
    if (op->count == 0 || op->carried_count != op->input_count ||
        op->result_count != op->carried_count || body->yield_count != op->carried_count ||
        body->argument_count != op->carried_count + op->sequence_count)
        return status_error("carried values, arguments, yields and results do not match");
    for (uint32_t i = 0; i < op->sequence_count; i++)
        if (op->sequences[i] >= graph->sequences.count ||
            graph->sequences.items[op->sequences[i]].count != op->count)
            return status_error("sequence %u does not have %u members", i, op->count);
    for (uint32_t i = 0; i < body->argument_count; i++)
        c->defined[body->arguments[i]] = (uint8_t)(op->body + 1);
    TRY(check_region(c, op->body));
    for (uint32_t i = 0; i < op->carried_count; i++) {
        TRY(status_context(check_use(c, body->yields[i], op->body), "yield %u", i));
        const Shape *first = &graph->values.items[op->inputs[i]].shape;
        if (!shape_equal(first, &graph->values.items[body->yields[i]].shape) ||
            !shape_equal(first, &graph->values.items[op->results[i]].shape))
            return status_error("carried value %u changes its shape", i);
    }
    return STATUS_OK;
}

static Status check_operation(Checker *c, uint32_t index, uint32_t region)
{
    const Operation *op = &c->graph->operations.items[index];
    bool added;
    if (!op->key || !*op->key)
        return status_error("an operation has no key");
    (void)map_at_text(&c->keys, op->key, &added);
    if (!added)
        return status_error("two operations have this key");
    if (op->region != region)
        return status_error("stands in region %u and says %u", region, op->region);
    for (uint32_t i = 0; i < op->input_count; i++)
        TRY(status_context(check_use(c, op->inputs[i], region), "operand %u", i));
    if (op->kind == OP_REPEAT) {
        TRY(check_repeat(c, op));
    } else {
        Shape shape;
        TRY(graph_infer(c->graph, op, &shape));
        if (op->result_count != 1 ||
            !shape_equal(&shape, &c->graph->values.items[op->results[0]].shape))
            return status_error("the result has another shape");
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (c->defined[op->results[i]])
            return status_error("value %u is defined twice", op->results[i]);
        c->defined[op->results[i]] = (uint8_t)(region + 1);
    }
    return STATUS_OK;
}

static Status check_region(Checker *c, uint32_t region)
{
    const GraphRegion *r = &c->graph->regions.items[region];
    for (uint32_t i = 0; i < r->operation_count; i++) {
        uint32_t index = r->operations[i];
        if (index >= c->graph->operations.count)
            return status_error("operation %u does not exist", index);
        const char *key = c->graph->operations.items[index].key;
        TRY(status_context(check_operation(c, index, region), "%s", key ? key : "?"));
    }
    return STATUS_OK;
}

static Status check_outputs(Checker *c)
{
    Map outputs = {0};
    Status status = STATUS_OK;
    if (c->graph->outputs.count == 0)
        status = status_error("a graph needs an output");
    for (uint32_t i = 0; i < c->graph->outputs.count && status_ok(status); i++) {
        const GraphOutput *output = &c->graph->outputs.items[i];
        bool added;
        (void)map_at_text(&outputs, output->name, &added);
        status = added ? check_use(c, output->value, 0) : status_error("named twice");
        status = status_context(status, "output %s", output->name);
    }
    map_free(&outputs);
    return status;
}

Status graph_check(const Graph *graph)
{
    if (graph->open_repeat)
        return status_error("%s: the repeat is not ended",
                            graph->operations.items[graph->open_repeat - 1].key);
    if (graph->regions.count > UINT8_MAX)
        return status_error("too many repeats");
    Checker c = {.graph = graph, .defined = xcalloc(graph->values.count + 1, 1)};
    Status status = check_values(&c);
    if (status_ok(status))
        status = check_region(&c, 0);
    if (status_ok(status))
        status = check_outputs(&c);
    free(c.defined);
    map_free(&c.names);
    map_free(&c.keys);
    return status_context(status, "graph");
}
