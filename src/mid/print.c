/* print.c - mid programs as text and as JSON; values stand under the operation that makes them. */
#include "mid/internal.h"

static const char *const kind_names[] = {"copy", "compute", "cast",      "product",
                                         "sum",  "repeat",  "end-repeat"};
static const char *const role_names[] = {"temporary", "parameter", "input", "output"};

const char *mid_kind_name(uint8_t kind)
{
    return kind < countof(kind_names) ? kind_names[kind] : "?";
}

static void print_value(Text *text, const Mid *mid, MidId id, const char *what)
{
    const MidValue *v = mid_value(mid, id);
    text_printf(text, "    %-8s v%u ", what, id);
    shape_print(text, &v->type.shape);
    text_append(text, " ");
    format_print(text, &v->type.format);
    if (v->role)
        text_printf(text, " %s", role_names[v->role]);
    if (v->storage != MID_NONE)
        text_printf(text, v->share ? " shares of v%u" : " in v%u", v->storage);
    if (v->slot)
        text_printf(text, " slot %u", v->slot);
    if (v->others)
        text_append(text, " of the others");
    if (v->slots > 1)
        text_printf(text, " %u slots", v->slots);
    if (v->members > 1)
        text_printf(text, " %u members", v->members);
    if (v->resident)
        text_append(text, " resident");
    text_printf(text, " \"%s\"\n", v->name ? v->name : "");
}

static void print_mapping(Text *text, const Mapping *mapping)
{
    const MappingAxis *sides[2] = {mapping->source, mapping->destination};
    uint32_t ranks[2] = {mapping->source_rank, mapping->destination_rank};
    for (uint32_t side = 0; side < 2; side++) {
        text_append(text, side ? " -> [" : "[");
        for (uint32_t a = 0; a < ranks[side]; a++) {
            const MappingAxis *axis = &sides[side][a];
            text_append(text, a ? ", " : "");
            if (axis->offset || axis->count == 0)
                text_printf(text, "%u%s", axis->offset, axis->count ? "+" : "");
            for (uint32_t i = 0; i < axis->count; i++)
                text_printf(text, "%s%c:%u", i ? "*" : "", 'a' + axis->atoms[i],
                            mapping->extent[axis->atoms[i]]);
        }
        text_append(text, "]");
    }
}

void mid_print(Text *text, const Mid *mid, const Map *only)
{
    text_printf(text, "mid program: %u tiles, %zu values, %zu operations\n", mid->tiles,
                mid->values.count, mid->ops.count);
    for (uint32_t i = 0; i < mid->ops.count; i++) {
        const MidOp *op = &mid->ops.items[i];
        if (!map_wants(only, op->operation))
            continue;
        text_printf(text, "%4u  %s: %s", i, op->operation, mid_kind_name(op->kind));
        if (op->kind == MID_COPY) {
            text_printf(text, " in phase %u ", op->phase);
            if (!mapping_is_identity(&op->mapping))
                print_mapping(text, &op->mapping);
        } else if (op->kind == MID_REPEAT) {
            text_printf(text, " %u times", op->count);
        } else if (op->kind != MID_END_REPEAT) {
            text_printf(text, " %s", kernel_family_name(op->kernel.family));
        }
        text_append(text, "\n");
        for (uint32_t j = 0; j < op->operand_count; j++)
            print_value(text, mid, op->operands[j], "from");
        for (uint32_t j = 0; j < op->result_count; j++)
            print_value(text, mid, op->results[j], "to");
    }
}

static json_t *ids_to_json(const MidId *ids, uint32_t count)
{
    json_t *out = json_array();
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(out, json_integer(ids[i]));
    return out;
}

static json_t *value_to_json(const Mid *mid, MidId id)
{
    const MidValue *v = mid_value(mid, id);
    json_t *out = json_object(), *shape = json_array();
    for (uint32_t a = 0; a < v->type.shape.rank; a++)
        json_array_append_new(shape, json_integer(v->type.shape.extent[a]));
    json_object_set_new(out, "id", json_integer(id));
    json_object_set_new(out, "name", json_string(v->name ? v->name : ""));
    json_object_set_new(out, "shape", shape);
    json_object_set_new(out, "format", format_to_json(&v->type.format));
    json_object_set_new(out, "role", json_string(role_names[v->role & 3]));
    json_object_set_new(out, "resident", json_boolean(v->resident));
    if (v->origin != NO_VALUE)
        json_object_set_new(out, "origin", json_integer(v->origin));
    if (v->storage != MID_NONE)
        json_object_set_new(out, "storage", json_integer(v->storage));
    json_object_set_new(out, "share", json_boolean(v->share));
    json_object_set_new(out, "others", json_boolean(v->others));
    json_object_set_new(out, "slot", json_integer(v->slot));
    json_object_set_new(out, "slots", json_integer(v->slots));
    json_object_set_new(out, "members", json_integer(v->members));
    return out;
}

static json_t *op_to_json(const MidOp *op)
{
    json_t *out = json_object();
    json_object_set_new(out, "operation", json_string(op->operation));
    json_object_set_new(out, "kind", json_string(mid_kind_name(op->kind)));
    json_object_set_new(out, "operands", ids_to_json(op->operands, op->operand_count));
    json_object_set_new(out, "results", ids_to_json(op->results, op->result_count));
    if (op->kind == MID_COPY) {
        Text mapping = {0};
        print_mapping(&mapping, &op->mapping);
        json_object_set_new(out, "phase", json_integer(op->phase));
        json_object_set_new(out, "mapping", json_string(text_string(&mapping)));
        text_free(&mapping);
    } else if (op->kind == MID_REPEAT) {
        json_object_set_new(out, "count", json_integer(op->count));
    } else if (op->kind != MID_END_REPEAT) {
        json_object_set_new(out, "kernel", json_string(kernel_family_name(op->kernel.family)));
    }
    return out;
}

json_t *mid_to_json(const Mid *mid, const Map *only)
{
    json_t *out = json_object(), *ops = json_array(), *values = json_array();
    bool *used = xcalloc(mid->values.count + 1, sizeof *used);
    json_object_set_new(out, "tiles", json_integer(mid->tiles));
    for (uint32_t i = 0; i < mid->ops.count; i++) {
        const MidOp *op = &mid->ops.items[i];
        if (!map_wants(only, op->operation))
            continue;
        json_array_append_new(ops, op_to_json(op));
        for (uint32_t j = 0; j < op->operand_count; j++)
            used[op->operands[j]] = true;
        for (uint32_t j = 0; j < op->result_count; j++)
            used[op->results[j]] = true;
    }
    for (uint32_t v = 0; v < mid->values.count; v++)
        if (used[v] || !only)
            json_array_append_new(values, value_to_json(mid, v));
    free(used);
    json_object_set_new(out, "operations", ops);
    json_object_set_new(out, "values", values);
    return out;
}
