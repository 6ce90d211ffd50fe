/* print.c - a graph as text and as JSON.
 *
 *   input     %0 vit.image.patches: 1x4x588
 *   %3: 1x4x144 = gemm %0, %1                      embedding/project
 *   %77 = repeat 3 (%43 = %6; %44 in vit.encoder.attention_norm.scale, ...)   encoder
 */
#include "graph/internal.h"

#include <stdlib.h>

static const char *const kind_names[] = {
    [OP_GEMM] = "gemm",           [OP_ADD] = "add",       [OP_LAYER_NORM] = "layer_norm",
    [OP_GELU] = "gelu",           [OP_SLICE] = "slice",   [OP_VIEW] = "view",
    [OP_ATTENTION] = "attention", [OP_REPEAT] = "repeat",
};

static void print_value(Text *text, const Graph *graph, ValueId value)
{
    const Value *v = &graph->values.items[value];
    text_printf(text, "%%%u: ", value);
    shape_print(text, &v->shape);
}

static void print_attributes(Text *text, const Operation *op)
{
    switch (op->kind) {
    case OP_GEMM:
        if (op->transpose_right)
            text_append(text, " transposed");
        break;
    case OP_LAYER_NORM:
        text_printf(text, " epsilon %g", (double)op->epsilon);
        break;
    case OP_SLICE:
        text_printf(text, " axis %u [%u, %u)", op->axis, op->start, op->start + op->length);
        break;
    case OP_VIEW:
        text_printf(text, " split %u merge %u factor %u%s", op->split, op->merge, op->factor,
                    op->reversed ? " reversed" : "");
        break;
    case OP_ATTENTION:
        text_printf(text, " scale %.9g", (double)op->scale);
        break;
    default:
        break;
    }
}

/* A repeat is shown with what is wanted of its body. */
static bool region_has(const Graph *graph, uint32_t region, const Map *only)
{
    const GraphRegion *r = &graph->regions.items[region];
    for (uint32_t i = 0; i < r->operation_count; i++)
        if (map_wants(only, graph->operations.items[r->operations[i]].key))
            return true;
    return false;
}

static bool wanted(const Graph *graph, const Operation *op, const Map *only)
{
    return map_wants(only, op->key) || (op->kind == OP_REPEAT && region_has(graph, op->body, only));
}

/* Values that the wanted operations read or make: [value], to be freed; NULL: all. */
static bool *values_of(const Graph *graph, const Map *only)
{
    if (!only)
        return NULL;
    bool *used = xcalloc(graph->values.count + 1, sizeof *used);
    for (uint32_t o = 0; o < graph->operations.count; o++) {
        const Operation *op = &graph->operations.items[o];
        if (!map_wants(only, op->key))
            continue;
        for (uint32_t i = 0; i < op->input_count; i++)
            used[op->inputs[i]] = true;
        for (uint32_t i = 0; i < op->result_count; i++)
            used[op->results[i]] = true;
    }
    return used;
}

static void print_region(Text *text, const Graph *graph, uint32_t region, int indent,
                         const Map *only);

static void print_repeat(Text *text, const Graph *graph, const Operation *op, int indent,
                         const Map *only)
{
    const GraphRegion *body = &graph->regions.items[op->body];
    text_printf(text, " %u {\n", op->count);
    for (uint32_t i = 0; i < body->argument_count; i++) {
        text_printf(text, "%*s", indent + 4, "");
        print_value(text, graph, body->arguments[i]);
        if (i < op->carried_count)
            text_printf(text, " carried from %%%u\n", op->inputs[i]);
        else
            text_printf(text, " in %s\n",
                        graph->sequences.items[op->sequences[i - op->carried_count]].name);
    }
    print_region(text, graph, op->body, indent + 4, map_wants(only, op->key) ? NULL : only);
    text_printf(text, "%*syield", indent + 4, "");
    for (uint32_t i = 0; i < body->yield_count; i++)
        text_printf(text, "%s%%%u", i ? ", " : " ", body->yields[i]);
    text_printf(text, "\n%*s}\n", indent, "");
}

static void print_region(Text *text, const Graph *graph, uint32_t region, int indent,
                         const Map *only)
{
    const GraphRegion *r = &graph->regions.items[region];
    for (uint32_t i = 0; i < r->operation_count; i++) {
        const Operation *op = &graph->operations.items[r->operations[i]];
        if (!wanted(graph, op, only))
            continue;
        text_printf(text, "%*s", indent, "");
        for (uint32_t k = 0; k < op->result_count; k++) {
            text_append(text, k ? ", " : "");
            print_value(text, graph, op->results[k]);
        }
        text_printf(text, " = %s", kind_names[op->kind]);
        for (uint32_t k = 0; k < op->input_count; k++)
            text_printf(text, "%s%%%u", k ? ", " : " ", op->inputs[k]);
        print_attributes(text, op);
        text_printf(text, "  // %s", op->key);
        if (op->kind == OP_REPEAT)
            print_repeat(text, graph, op, indent, only);
        else
            text_append(text, "\n");
    }
}

void graph_print(Text *text, const Graph *graph, const Map *only)
{
    bool *used = values_of(graph, only);
    for (uint32_t i = 0; i < graph->values.count; i++) {
        const Value *value = &graph->values.items[i];
        if (value->kind > VALUE_PARAMETER || (used && !used[i]))
            continue;
        print_value(text, graph, i);
        text_printf(text, " = %s %s\n", value->kind == VALUE_INPUT ? "input" : "parameter",
                    value->name);
    }
    print_region(text, graph, 0, 0, only);
    for (uint32_t i = 0; i < graph->outputs.count; i++)
        if (!used || used[graph->outputs.items[i].value])
            text_printf(text, "output %s %%%u\n", graph->outputs.items[i].name,
                        graph->outputs.items[i].value);
    free(used);
}

/* ---- JSON ---- */

static json_t *shape_json(const Shape *shape)
{
    json_t *array = json_array();
    for (uint32_t a = 0; a < shape->rank; a++)
        json_array_append_new(array, json_integer(shape->extent[a]));
    return array;
}

static json_t *ids_json(const ValueId *ids, uint32_t count)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(array, json_integer(ids[i]));
    return array;
}

static void set_integer(json_t *object, const char *key, uint32_t value)
{
    json_object_set_new(object, key, json_integer(value));
}

static json_t *region_json(const Graph *graph, uint32_t region, const Map *only);

static json_t *repeat_json(const Graph *graph, const Operation *op, const Map *only)
{
    const GraphRegion *body = &graph->regions.items[op->body];
    json_t *object = json_object(), *sequences = json_array();
    for (uint32_t i = 0; i < op->sequence_count; i++)
        json_array_append_new(sequences,
                              json_string(graph->sequences.items[op->sequences[i]].name));
    set_integer(object, "count", op->count);
    json_object_set_new(object, "sequences", sequences);
    json_object_set_new(object, "arguments", ids_json(body->arguments, body->argument_count));
    json_object_set_new(object, "yields", ids_json(body->yields, body->yield_count));
    json_object_set_new(object, "operations",
                        region_json(graph, op->body, map_wants(only, op->key) ? NULL : only));
    return object;
}

static void set_attributes(json_t *object, const Graph *graph, const Operation *op, const Map *only)
{
    switch (op->kind) {
    case OP_GEMM:
        json_object_set_new(object, "transposeRight", json_boolean(op->transpose_right));
        break;
    case OP_LAYER_NORM:
        json_object_set_new(object, "epsilon", json_real((double)op->epsilon));
        break;
    case OP_SLICE:
        set_integer(object, "axis", op->axis);
        set_integer(object, "start", op->start);
        set_integer(object, "length", op->length);
        break;
    case OP_VIEW:
        set_integer(object, "split", op->split);
        set_integer(object, "merge", op->merge);
        set_integer(object, "factor", op->factor);
        json_object_set_new(object, "reversed", json_boolean(op->reversed));
        break;
    case OP_ATTENTION:
        json_object_set_new(object, "scale", json_real((double)op->scale));
        break;
    case OP_REPEAT:
        json_object_set_new(object, "repeat", repeat_json(graph, op, only));
        break;
    default:
        break;
    }
}

static json_t *region_json(const Graph *graph, uint32_t region, const Map *only)
{
    const GraphRegion *r = &graph->regions.items[region];
    json_t *array = json_array();
    for (uint32_t i = 0; i < r->operation_count; i++) {
        const Operation *op = &graph->operations.items[r->operations[i]];
        if (!wanted(graph, op, only))
            continue;
        json_t *object = json_object();
        json_object_set_new(object, "key", json_string(op->key));
        json_object_set_new(object, "kind", json_string(kind_names[op->kind]));
        json_object_set_new(object, "inputs", ids_json(op->inputs, op->input_count));
        json_object_set_new(object, "results", ids_json(op->results, op->result_count));
        set_attributes(object, graph, op, only);
        json_array_append_new(array, object);
    }
    return array;
}

json_t *graph_to_json(const Graph *graph, const Map *only)
{
    static const char *const value_kinds[] = {"input", "parameter", "result", "argument"};
    json_t *object = json_object(), *values = json_array(), *sequences = json_array();
    json_t *outputs = json_array();
    bool *used = values_of(graph, only);
    for (uint32_t i = 0; i < graph->values.count; i++) {
        const Value *value = &graph->values.items[i];
        if (used && !used[i])
            continue;
        json_t *v = json_object();
        set_integer(v, "id", i);
        json_object_set_new(v, "kind", json_string(value_kinds[value->kind]));
        if (value->name)
            json_object_set_new(v, "name", json_string(value->name));
        json_object_set_new(v, "shape", shape_json(&value->shape));
        json_array_append_new(values, v);
    }
    for (uint32_t i = 0; i < graph->sequences.count; i++) {
        const Sequence *sequence = &graph->sequences.items[i];
        json_t *s = json_object();
        json_object_set_new(s, "name", json_string(sequence->name));
        json_object_set_new(s, "members", ids_json(sequence->members, sequence->count));
        json_array_append_new(sequences, s);
    }
    for (uint32_t i = 0; i < graph->outputs.count; i++) {
        if (used && !used[graph->outputs.items[i].value])
            continue;
        json_t *o = json_object();
        json_object_set_new(o, "name", json_string(graph->outputs.items[i].name));
        set_integer(o, "value", graph->outputs.items[i].value);
        json_array_append_new(outputs, o);
    }
    json_object_set_new(object, "values", values);
    json_object_set_new(object, "sequences", sequences);
    json_object_set_new(object, "operations", region_json(graph, 0, only));
    json_object_set_new(object, "outputs", outputs);
    free(used);
    return object;
}
