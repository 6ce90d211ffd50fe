/* recipe.c - recipes checked, printed, written as JSON and read back.
 *
 * The JSON names operations by key and values by name; formats have tensor's own form. Everything
 * a recipe holds is there, so reading gives back the same recipe. */
#include "plan/internal.h"

#include <stdlib.h>

static const char *const algorithm_names[] = {"none", "gemm-grid", "pointwise",
                                              "rows", "attention", "repeat"};
static const char *const staging_names[] = {"direct", "row-major", "panels"};
const char *const plan_scatter_names[PLAN_SCATTERS] = {"no", "rows", "columns", "shares"};
static const char *const padding_names[] = {"resident", "clear"};
static const char *const fusion_names[] = {"no", "into-consumer", "into-producer"};

/* ---- check ---- */

static Status check_format(const Recipe *recipe, const TensorType *type, const char *what)
{
    TRY(status_context(type_check(type), "%s", what));
    if (type->format.first_tile + type->format.tile_count > recipe->tiles)
        return status_error("%s: tiles %u .. %u of %u", what, type->format.first_tile,
                            type->format.first_tile + type->format.tile_count - 1, recipe->tiles);
    return STATUS_OK;
}

static Status check_gemm(const Graph *graph, uint32_t op, const OpPlan *plan)
{
    OpPlan derived = *plan;
    if (plan->operand_count < 2 || plan->operand_count > PLAN_OPERANDS)
        return status_error("%u operands", plan->operand_count);
    if (plan->inner == 1 && plan->operand_count > 3)
        return status_error("without a K-split a product takes one addend");
    for (uint32_t j = 2; j < plan->operand_count; j++)
        if (plan_input(graph, op, plan, j) == NO_VALUE)
            return status_error("addend %u: no add follows that could be fused", j - 2);
    ValueId stored = plan_fused_result(graph, op, plan);
    if (stored == NO_VALUE)
        return status_error("no GELU follows that could be fused");
    TRY(plan_gemm_formats(graph, op, plan->result.first_tile, &derived));
    bool same = format_equal(&derived.result, &plan->result) &&
                format_equal(&derived.partial, &plan->partial);
    for (uint32_t j = 0; j < plan->operand_count; j++)
        same = same && format_equal(&derived.operands[j].format, &plan->operands[j].format);
    return same ? STATUS_OK : status_error("the formats do not follow from the grid");
}

/* Shares that lie in an operand's buffer are that operand's, and nothing else is written there. */
static Status check_own(const Graph *graph, const Recipe *recipe, uint32_t op)
{
    const OpPlan *plan = &recipe->ops[op];
    for (uint32_t j = 0; plan->own >> j; j++) {
        TensorType type, shares;
        if (!(plan->own >> j & 1))
            continue;
        if (j > 1 || plan->slices > 1 || plan_operation(graph, op)->region != 0)
            return status_error("operand %u can not be stored in its own buffer", j);
        TRY(plan_operand_type(graph, op, plan, j, &type));
        ValueId value = plan_input(graph, op, plan, j);
        uint8_t kind = graph->values.items[value].kind;
        if (!plan_own_type(&type, &shares) || kind == VALUE_ARGUMENT ||
            (!(plan->spread >> j & 1) &&
             (kind == VALUE_RESULT || !format_equal(&shares.format, &recipe->parameters[value]))))
            return status_error("operand %u is not stored in shares", j);
    }
    return STATUS_OK;
}

static bool kind_fits(uint8_t kind, uint8_t algorithm)
{
    switch (algorithm) {
    case ALGORITHM_NONE:
        return kind == OP_VIEW || kind == OP_SLICE;
    case ALGORITHM_GEMM_GRID:
        return kind == OP_GEMM;
    case ALGORITHM_POINTWISE:
        return kind == OP_ADD || kind == OP_GELU;
    case ALGORITHM_ROWS:
        return kind == OP_LAYER_NORM;
    case ALGORITHM_ATTENTION:
        return kind == OP_ATTENTION;
    case ALGORITHM_REPEAT:
        return kind == OP_REPEAT;
    default:
        return false;
    }
}

static Status check_op(const Graph *graph, const Recipe *recipe, uint32_t op)
{
    const OpPlan *plan = &recipe->ops[op];
    const Operation *o = plan_operation(graph, op);
    TensorType type;
    Mapping mapping;
    if (!kind_fits(o->kind, plan->algorithm))
        return status_error("the algorithm does not fit the operation");
    if (plan->algorithm == ALGORITHM_NONE || plan->fused != FUSED_NO)
        return STATUS_OK;
    if (plan->operand_count > PLAN_OPERANDS)
        return status_error("%u operands", plan->operand_count);
    if (plan->algorithm == ALGORITHM_ATTENTION &&
        (!plan->rows || !plan->key_block || !plan->columns || !plan->inner ||
         plan_shape(graph, o->inputs[0])->extent[0] % plan->rows))
        return status_error("heads, blocks and rounds do not work out");
    if (plan->algorithm == ALGORITHM_GEMM_GRID) {
        if (!plan->rows || !plan->columns || !plan->inner)
            return status_error("an empty grid");
        TRY(check_gemm(graph, op, plan));
        TRY(check_own(graph, recipe, op));
    }
    for (uint32_t j = 0; j < plan->operand_count; j++) {
        TRY(plan_operand_type(graph, op, plan, j, &type));
        TRY(check_format(recipe, &type, "operand"));
    }
    if (plan->algorithm == ALGORITHM_REPEAT)
        return STATUS_OK;
    TRY(plan_result_type(graph, op, plan, &type, &mapping));
    return check_format(recipe, &type, "result");
}

Status recipe_check(const Graph *graph, const Recipe *recipe)
{
    if (recipe->tiles < 1 || recipe->tiles > TILES)
        return status_error("recipe for %u tiles", recipe->tiles);
    if (recipe->op_count != graph->operations.count)
        return status_error("recipe for %u operations, the graph has %zu", recipe->op_count,
                            graph->operations.count);
    for (uint32_t op = 0; op < recipe->op_count; op++)
        TRY(status_context(check_op(graph, recipe, op), "%s", plan_operation(graph, op)->key));
    for (uint32_t v = 0; v < graph->values.count; v++) {
        const Value *value = &graph->values.items[v];
        TensorType type = {.shape = value->shape, .format = recipe->parameters[v]};
        if (value->kind == VALUE_INPUT || value->kind == VALUE_PARAMETER)
            TRY(check_format(recipe, &type, value->name ? value->name : "parameter"));
    }
    for (uint32_t i = 0; i < graph->outputs.count; i++) {
        const GraphOutput *output = &graph->outputs.items[i];
        TensorType type = {*plan_shape(graph, output->value), recipe->outputs[i]};
        TRY(check_format(recipe, &type, output->name));
    }
    return STATUS_OK;
}

/* ---- text ---- */

static void print_formats(Text *text, const OpPlan *plan)
{
    static const char *const names[] = {"left", "right", "addend", "addend"};
    for (uint32_t j = 0; j < plan->operand_count; j++) {
        bool gemm = plan->algorithm == ALGORITHM_GEMM_GRID;
        text_printf(text, "        %-8s", gemm ? names[j] : "operand");
        format_print(text, &plan->operands[j].format);
        if (plan->spread >> j & 1)
            text_append(text, " spread first");
        if (plan->own >> j & 1)
            text_append(text, ", shares in place");
        if (plan->operands[j].staging == STAGING_ROW_MAJOR)
            text_append(text, " staged");
        text_append(text, "\n");
    }
    if (plan->algorithm == ALGORITHM_GEMM_GRID && plan->inner > 1) {
        text_append(text, "        partial ");
        format_print(text, &plan->partial);
        text_append(text, "\n");
    }
    if (plan->algorithm != ALGORITHM_REPEAT) {
        text_append(text, "        result  ");
        format_print(text, &plan->result);
        text_append(text, "\n");
    }
}

static void print_op(Text *text, const OpPlan *plan, bool inside)
{
    text_printf(text, "%s%-40s %9.0f %9.0f  ", inside ? "  " : "", plan->key, plan->cycles,
                plan->exchange_cycles);
    if (plan->fused != FUSED_NO) {
        text_printf(text, "fused %s\n", fusion_names[plan->fused]);
        return;
    }
    text_append(text, algorithm_names[plan->algorithm]);
    if (plan->algorithm == ALGORITHM_GEMM_GRID)
        text_printf(text, "%s %u x %u x %u, K block %u", plan->swapped ? " swapped" : "",
                    plan->rows, plan->columns, plan->inner, plan->inner_block);
    if (plan->algorithm == ALGORITHM_GEMM_GRID && plan->scatter)
        text_printf(text, ", sums spread by %s%s", plan_scatter_names[plan->scatter],
                    plan->column_pairs ? ", columns in pairs" : "");
    if (plan->algorithm == ALGORITHM_GEMM_GRID && plan->operand_count > 2)
        text_printf(text, ", %u adds fused", plan->operand_count - 2);
    if (plan->gelu)
        text_append(text, ", GELU of the sum");
    if (plan->algorithm == ALGORITHM_ATTENTION)
        text_printf(text, " %u heads x %u query blocks x %u value blocks, %u keys", plan->rows,
                    plan->columns, plan->inner, plan->key_block);
    if (plan->algorithm == ALGORITHM_ROWS)
        text_printf(text, " %u parts, %u copies", plan->rows, plan->columns);
    if (plan->slices > 1)
        text_printf(text, ", %u slices of K", plan->slices);
    if (plan->in_place)
        text_append(text, ", in place");
    text_append(text, "\n");
    if (plan->algorithm != ALGORITHM_NONE)
        print_formats(text, plan);
}

/* The values that wanted operations read, and the members of sequences that a body reads:
 * [value], to be freed; NULL: all. */
static bool *storage_of(const Graph *graph, const Recipe *recipe, const Map *only)
{
    if (!only)
        return NULL;
    bool *used = xcalloc(graph->values.count + 1, sizeof *used);
    for (uint32_t op = 0; op < graph->operations.count; op++) {
        const Operation *o = plan_operation(graph, op);
        const OpPlan *plan = &recipe->ops[op];
        if (!map_wants(only, o->key))
            continue;
        for (uint32_t i = 0; i < o->input_count; i++)
            used[o->inputs[i]] = true;
        for (uint32_t j = 0; plan->fused == FUSED_NO && j < plan->operand_count; j++)
            if (plan_input(graph, op, plan, j) != NO_VALUE)
                used[plan_input(graph, op, plan, j)] = true;
    }
    for (uint32_t op = 0; op < graph->operations.count; op++) {
        const Operation *o = plan_operation(graph, op);
        for (uint32_t s = 0; o->kind == OP_REPEAT && s < o->sequence_count; s++) {
            const Sequence *sequence = &graph->sequences.items[o->sequences[s]];
            ValueId argument = graph->regions.items[o->body].arguments[o->carried_count + s];
            for (uint32_t m = 0; used[argument] && m < sequence->count; m++)
                used[sequence->members[m]] = true;
        }
    }
    return used;
}

void recipe_print(Text *text, const Graph *graph, const Recipe *recipe, const Map *only)
{
    bool *used = storage_of(graph, recipe, only);
    text_printf(text, "recipe for %u tiles, %.0f cycles predicted%s%s\n", recipe->tiles,
                recipe->predicted_cycles, recipe->weights_once ? ", weights once" : "",
                recipe->pairs ? ", pairs" : "");
    text_printf(text, "%-40s %9s %9s\n", "operation", "cycles", "exchange");
    for (uint32_t r = 0; r < graph->regions.count; r++) {
        const GraphRegion *region = &graph->regions.items[r];
        if (r && !only)
            text_printf(text, "body of region %u, cycles of one iteration:\n", r);
        for (uint32_t i = 0; i < region->operation_count; i++)
            if (map_wants(only, plan_operation(graph, region->operations[i])->key))
                print_op(text, &recipe->ops[region->operations[i]], r > 0);
    }
    text_append(text, "inputs and parameters\n");
    for (uint32_t v = 0; v < graph->values.count; v++) {
        const Value *value = &graph->values.items[v];
        if ((value->kind != VALUE_INPUT && value->kind != VALUE_PARAMETER) || (used && !used[v]))
            continue;
        text_printf(text, "  %-46s ", value->name ? value->name : "-");
        format_print(text, &recipe->parameters[v]);
        text_append(text, "\n");
    }
    free(used);
}

/* ---- JSON ---- */

static json_t *op_to_json(const OpPlan *plan)
{
    json_t *out = json_object();
    json_object_set_new(out, "key", json_string(plan->key ? plan->key : ""));
    json_object_set_new(out, "algorithm", json_string(algorithm_names[plan->algorithm]));
    json_object_set_new(out, "fused", json_string(fusion_names[plan->fused]));
    json_object_set_new(out, "swapped", json_boolean(plan->swapped));
    json_object_set_new(out, "inPlace", json_boolean(plan->in_place));
    json_object_set_new(out, "rows", json_integer(plan->rows));
    json_object_set_new(out, "columns", json_integer(plan->columns));
    json_object_set_new(out, "inner", json_integer(plan->inner));
    json_object_set_new(out, "resultStaging", json_string(staging_names[plan->result_staging]));
    json_object_set_new(out, "slices", json_integer(plan->slices));
    json_object_set_new(out, "spread", json_integer(plan->spread));
    json_object_set_new(out, "own", json_integer(plan->own));
    json_object_set_new(out, "scatter", json_string(plan_scatter_names[plan->scatter]));
    json_object_set_new(out, "columnPairs", json_boolean(plan->column_pairs));
    json_object_set_new(out, "gelu", json_boolean(plan->gelu));
    json_object_set_new(out, "innerBlock", json_integer(plan->inner_block));
    json_object_set_new(out, "columnBlock", json_integer(plan->column_block));
    json_object_set_new(out, "keyBlock", json_integer(plan->key_block));
    json_object_set_new(out, "cycles", json_real(plan->cycles));
    json_object_set_new(out, "exchangeCycles", json_real(plan->exchange_cycles));
    json_t *operands = json_array();
    for (uint32_t j = 0; j < plan->operand_count; j++) {
        const OperandPlan *o = &plan->operands[j];
        json_t *operand = json_object();
        json_object_set_new(operand, "format", format_to_json(&o->format));
        json_object_set_new(operand, "staging", json_string(staging_names[o->staging]));
        json_object_set_new(operand, "padding", json_string(padding_names[o->padding]));
        json_array_append_new(operands, operand);
    }
    json_object_set_new(out, "operands", operands);
    if (plan->algorithm == ALGORITHM_GEMM_GRID)
        json_object_set_new(out, "partial", format_to_json(&plan->partial));
    if (plan->algorithm != ALGORITHM_REPEAT && plan->fused == FUSED_NO)
        json_object_set_new(out, "result", format_to_json(&plan->result));
    return out;
}

static bool has_storage(const Graph *graph, ValueId value)
{
    return graph->values.items[value].kind != VALUE_RESULT;
}

json_t *recipe_to_json(const Graph *graph, const Recipe *recipe)
{
    json_t *out = json_object(), *ops = json_array(), *values = json_array();
    json_t *outputs = json_array();
    json_object_set_new(out, "tiles", json_integer(recipe->tiles));
    json_object_set_new(out, "weightsOnce", json_boolean(recipe->weights_once));
    json_object_set_new(out, "pairs", json_boolean(recipe->pairs));
    json_object_set_new(out, "predictedCycles", json_real(recipe->predicted_cycles));
    for (uint32_t op = 0; op < recipe->op_count; op++)
        json_array_append_new(ops, op_to_json(&recipe->ops[op]));
    json_object_set_new(out, "operations", ops);
    for (uint32_t v = 0; v < graph->values.count; v++) {
        if (!has_storage(graph, v))
            continue;
        const Value *value = &graph->values.items[v];
        json_t *stored = json_object();
        json_object_set_new(stored, "value", json_integer(v));
        if (value->name)
            json_object_set_new(stored, "name", json_string(value->name));
        json_object_set_new(stored, "format", format_to_json(&recipe->parameters[v]));
        json_array_append_new(values, stored);
    }
    json_object_set_new(out, "storage", values);
    for (uint32_t i = 0; i < graph->outputs.count; i++) {
        json_t *output = json_object();
        json_object_set_new(output, "name", json_string(graph->outputs.items[i].name));
        json_object_set_new(output, "format", format_to_json(&recipe->outputs[i]));
        json_array_append_new(outputs, output);
    }
    json_object_set_new(out, "outputs", outputs);
    return out;
}

static Status read_name(const JsonPlace *place, const char *key, const char *const *names,
                        uint32_t count, uint8_t *out)
{
    const char *text;
    TRY(json_text(place, key, &text));
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(text, names[i]) == 0) {
            *out = (uint8_t)i;
            return STATUS_OK;
        }
    return status_error("%s: %s: unknown word \"%s\"", place->path, key, text);
}

static Status read_format(const JsonPlace *place, const char *key, Format *out)
{
    JsonPlace format;
    TRY(json_member(place, key, &format));
    return format_from_json(&format, out);
}

static Status read_operand(const JsonPlace *place, OperandPlan *out)
{
    static const char *const keys[] = {"format", "staging", "padding", NULL};
    TRY(json_only(place, keys));
    TRY(read_format(place, "format", &out->format));
    TRY(read_name(place, "staging", staging_names, countof(staging_names), &out->staging));
    return read_name(place, "padding", padding_names, countof(padding_names), &out->padding);
}

static Status read_op(Arena *arena, const JsonPlace *place, const Operation *operation, OpPlan *out)
{
    static const char *const keys[] = {
        "key",           "algorithm",      "fused",      "swapped",     "inPlace",  "rows",
        "columns",       "inner",          "innerBlock", "columnBlock", "keyBlock", "slices",
        "resultStaging", "columnPairs",    "gelu",       "scatter",     "spread",   "own",
        "cycles",        "exchangeCycles", "operands",   "partial",     "result",   NULL};
    enum { LARGEST = 1 << 24 };
    const char *key;
    TRY(json_only(place, keys));
    TRY(json_text(place, "key", &key));
    if (strcmp(key, operation->key) != 0)
        return status_error("%s: operation \"%s\" where the graph has \"%s\"", place->path, key,
                            operation->key);
    out->key = arena_strdup(arena, key);
    TRY(read_name(place, "algorithm", algorithm_names, countof(algorithm_names), &out->algorithm));
    TRY(read_name(place, "fused", fusion_names, countof(fusion_names), &out->fused));
    TRY(json_bool(place, "swapped", &out->swapped));
    TRY(read_name(place, "resultStaging", staging_names, countof(staging_names),
                  &out->result_staging));
    TRY(read_name(place, "scatter", plan_scatter_names, countof(plan_scatter_names),
                  &out->scatter));
    TRY(json_bool(place, "columnPairs", &out->column_pairs));
    TRY(json_bool(place, "gelu", &out->gelu));
    uint32_t spread, own;
    TRY(json_u32(place, "spread", 0, 3, &spread));
    TRY(json_u32(place, "own", 0, 3, &own));
    out->spread = (uint8_t)spread;
    out->own = (uint8_t)own;
    TRY(json_bool(place, "inPlace", &out->in_place));
    TRY(json_u32(place, "rows", 0, TILES, &out->rows));
    TRY(json_u32(place, "columns", 0, TILES, &out->columns));
    TRY(json_u32(place, "inner", 0, TILES, &out->inner));
    TRY(json_u32(place, "innerBlock", 0, UINT16_MAX, &out->inner_block));
    TRY(json_u32(place, "columnBlock", 0, LARGEST, &out->column_block));
    TRY(json_u32(place, "slices", 0, TILES, &out->slices));
    TRY(json_u32(place, "keyBlock", 0, LARGEST, &out->key_block));
    TRY(json_number(place, "cycles", &out->cycles));
    TRY(json_number(place, "exchangeCycles", &out->exchange_cycles));
    JsonPlace operands, operand;
    size_t count;
    TRY(json_member(place, "operands", &operands));
    TRY(json_count(&operands, &count));
    if (count > PLAN_OPERANDS)
        return status_error("%s: %zu operands, %u are possible", operands.path, count,
                            PLAN_OPERANDS);
    out->operand_count = (uint32_t)count;
    for (uint32_t j = 0; j < count; j++) {
        TRY(json_item(&operands, j, &operand));
        TRY(read_operand(&operand, &out->operands[j]));
    }
    if (json_has(place, "partial"))
        TRY(read_format(place, "partial", &out->partial));
    if (json_has(place, "result"))
        TRY(read_format(place, "result", &out->result));
    return STATUS_OK;
}

static Status read_storage(const JsonPlace *place, const Graph *graph, Recipe *out)
{
    JsonPlace list, item;
    size_t count;
    TRY(json_member(place, "storage", &list));
    TRY(json_count(&list, &count));
    for (size_t i = 0; i < count; i++) {
        uint32_t value;
        TRY(json_item(&list, i, &item));
        TRY(json_u32(&item, "value", 0, (uint32_t)graph->values.count - 1, &value));
        if (!has_storage(graph, value))
            return status_error("%s: value %u is neither input nor parameter", item.path, value);
        TRY(read_format(&item, "format", &out->parameters[value]));
    }
    TRY(json_member(place, "outputs", &list));
    TRY(json_count(&list, &count));
    if (count != graph->outputs.count)
        return status_error("%s: %zu outputs, the graph has %zu", list.path, count,
                            graph->outputs.count);
    for (size_t i = 0; i < count; i++) {
        TRY(json_item(&list, i, &item));
        TRY(read_format(&item, "format", &out->outputs[i]));
    }
    return STATUS_OK;
}

Status recipe_from_json(Arena *arena, const JsonPlace *place, const Graph *graph, Recipe *out)
{
    static const char *const keys[] = {"tiles",      "weightsOnce", "pairs",   "predictedCycles",
                                       "operations", "storage",     "outputs", "search",
                                       "program", /* how it was found, what explain adds: not read
                                                   */
                                       NULL};
    JsonPlace ops, item;
    size_t count;
    *out = (Recipe){0};
    TRY(json_only(place, keys));
    TRY(json_u32(place, "tiles", 1, TILES, &out->tiles));
    TRY(json_bool(place, "weightsOnce", &out->weights_once));
    TRY(json_bool(place, "pairs", &out->pairs));
    TRY(json_number(place, "predictedCycles", &out->predicted_cycles));
    TRY(json_member(place, "operations", &ops));
    TRY(json_count(&ops, &count));
    if (count != graph->operations.count)
        return status_error("%s: %zu operations, the graph has %zu", ops.path, count,
                            graph->operations.count);
    out->op_count = (uint32_t)count;
    out->ops = arena_array(arena, OpPlan, count);
    out->parameters = arena_array(arena, Format, graph->values.count);
    out->outputs = arena_array(arena, Format, graph->outputs.count);
    for (uint32_t i = 0; i < count; i++) {
        TRY(json_item(&ops, i, &item));
        TRY(read_op(arena, &item, plan_operation(graph, i), &out->ops[i]));
    }
    TRY(read_storage(place, graph, out));
    return recipe_check(graph, out);
}
