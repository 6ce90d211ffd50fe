/* lower.c - graph + recipe -> mid program.
 *
 * One walk over the operations in order. A graph value is stored as a mid value and a mapping, so
 * views and slices cost nothing: they compose mappings. Asking for an operand in the recipe's
 * format yields the stored value when it already is that, a view when no byte has to move, and a
 * copy (with a pack kernel behind it where the recipe stages) otherwise. */
#include "mid/internal.h"

MidId mid_root(const Mid *mid, MidId value)
{
    while (mid_value(mid, value)->storage != MID_NONE)
        value = mid_value(mid, value)->storage;
    return value;
}

uint64_t mid_offset(const Mid *mid, MidId value, uint32_t shard)
{
    uint64_t offset = 0;
    for (; mid_value(mid, value)->storage != MID_NONE; value = mid_value(mid, value)->storage) {
        const MidValue *v = mid_value(mid, value);
        uint32_t slot;
        if (mid_slot(v, shard, &slot) && slot)
            offset += slot * type_shard_bytes(&v->type, shard);
        if (v->share) {
            offset += type_share_offset(&v->type, shard);
            shard /= v->type.format.shares;
        }
    }
    return offset;
}

bool mid_slot(const MidValue *value, uint32_t shard, uint32_t *slot)
{
    uint32_t own = shard % format_shares(&value->type.format);
    *slot = value->slot;
    if (!value->others)
        return true;
    *slot -= value->slot > own;
    return value->slot != own;
}

MidId mid_owner(const Mid *mid, MidId value)
{
    while (mid_value(mid, value)->storage != MID_NONE && !mid_value(mid, value)->apart)
        value = mid_value(mid, value)->storage;
    return value;
}

uint8_t mid_role(const Mid *mid, MidId value)
{
    for (; mid_value(mid, value)->storage != MID_NONE; value = mid_value(mid, value)->storage)
        if (mid_value(mid, value)->role)
            return mid_value(mid, value)->role;
    return mid_value(mid, value)->role;
}

bool type_has_padding(const TensorType *type)
{
    uint32_t shards = type_shard_count(type);
    for (uint32_t s = 0; s < shards; s++) {
        Region region;
        type_shard_region(type, s, &region);
        for (uint32_t a = 0; a < region.rank; a++)
            if (region.physical_end[a] > region.logical_end[a])
                return true;
    }
    return false;
}

MidId lower_value(Lower *l, const char *what, const TensorType *type)
{
    MidValue value = {.type = *type, .origin = NO_VALUE, .storage = MID_NONE};
    value.name = *what ? arena_printf(l->arena, "%s:%s", l->key, what) : l->key;
    value.slots = value.members = 1;
    array_push(&l->mid->values, value);
    return (MidId)(l->mid->values.count - 1);
}

MidOp *lower_op(Lower *l, uint8_t kind, const MidId *results, uint32_t result_count,
                const MidId *operands, uint32_t operand_count)
{
    MidOp op = {.kind = kind, .operation = l->key, .phase = l->phase};
    op.result_count = result_count;
    op.operand_count = operand_count;
    for (uint32_t i = 0; i < result_count && i < MID_OPERANDS; i++)
        op.results[i] = results[i];
    for (uint32_t i = 0; i < operand_count && i < MID_OPERANDS; i++)
        op.operands[i] = operands[i];
    array_push(&l->mid->ops, op);
    return &l->mid->ops.items[l->mid->ops.count - 1];
}

MidId lower_compute(Lower *l, KernelSpec kernel, MidId result, const MidId *operands,
                    uint32_t operand_count)
{
    lower_op(l, MID_COMPUTE, &result, 1, operands, operand_count)->kernel = kernel;
    return result;
}

void lower_copy(Lower *l, MidId from, const Mapping *mapping, MidId to)
{
    lower_op(l, MID_COPY, &to, 1, &from, 1)->mapping = *mapping;
}

/* ---- operands ---- */

static MidId view_of(Lower *l, MidId source, const TensorType *type)
{
    MidId view = lower_value(l, "view", type);
    MidValue *v = &l->mid->values.items[view];
    v->storage = source;
    v->name = mid_value(l->mid, source)->name;
    return view;
}

/* The last operation, a clear, goes in front of the phase that is being made: its copies move at
 * once, where the first of them stands. */
static void clear_before_phase(Lower *l)
{
    Mid *mid = l->mid;
    size_t at = mid->ops.count - 1;
    MidOp clear = mid->ops.items[at];
    for (size_t i = at; i-- > 0 && !is_boundary(&mid->ops.items[i]);)
        if (mid->ops.items[i].kind == MID_COPY && mid->ops.items[i].phase == l->phase)
            at = i;
    memmove(mid->ops.items + at + 1, mid->ops.items + at,
            (mid->ops.count - 1 - at) * sizeof *mid->ops.items);
    mid->ops.items[at] = clear;
}

/* The destination of a copy; its padding stays zero from the image on, or is cleared first. */
static MidId copy_target(Lower *l, const char *what, const TensorType *type, uint8_t padding)
{
    MidId to = lower_value(l, what, type);
    if (!type_has_padding(type))
        return to;
    if (padding == PADDING_RESIDENT) {
        l->mid->values.items[to].resident = true;
        return to;
    }
    lower_compute(l, (KernelSpec){.family = KERNEL_FILL_ZERO}, to, NULL, 0);
    clear_before_phase(l);
    MidId filled = lower_value(l, what, type);
    l->mid->values.items[filled].storage = to;
    return filled;
}

Status lower_operand(Lower *l, ValueId value, const TensorType *type, uint8_t staging,
                     uint8_t padding, const Mapping *extra, MidId into, MidId *out, bool *fresh)
{
    const Stored *stored = &l->stored[value];
    if (stored->value == MID_NONE)
        return status_error("%s: operand value %u has no storage yet", l->key, value);
    Mapping mapping = stored->mapping;
    if (extra)
        TRY(mapping_compose(&stored->mapping, extra, &mapping));
    const TensorType from = mid_value(l->mid, stored->value)->type;
    *fresh = false;
    if (into == MID_NONE && plan_copy_is_view(&from, type, &mapping)) {
        bool same = mapping_is_identity(&mapping) && shape_equal(&from.shape, &type->shape) &&
                    format_equal(&from.format, &type->format);
        *out = same ? stored->value : view_of(l, stored->value, type);
        return STATUS_OK;
    }
    *fresh = true;
    if (staging == STAGING_DIRECT) {
        *out = into != MID_NONE ? into : copy_target(l, "operand", type, padding);
        lower_copy(l, stored->value, &mapping, *out);
        return STATUS_OK;
    }
    TensorType rows = {.shape = type->shape, .format = plan_staging_format(&type->format)};
    MidId staged = lower_value(l, "staging", &rows);
    lower_copy(l, stored->value, &mapping, staged);
    *out = lower_value(l, "packed", type);
    lower_compute(l, (KernelSpec){.family = KERNEL_PACK}, *out, &staged, 1);
    return STATUS_OK;
}

/* An operand's memory that also keeps what is stored in shares of it. */
static MidId lower_home(Lower *l, const TensorType *type)
{
    MidId home = lower_value(l, "operand", type);
    l->mid->values.items[home].resident = true;
    return home;
}

static void live_in(Lower *l, MidId shares, MidId home)
{
    l->mid->values.items[shares].storage = home;
    l->mid->values.items[shares].share = l->mid->values.items[shares].apart = true;
}

/* By way of one copy in small parts over the tiles, or in shares of the operand itself. */
static Status lower_spread(Lower *l, ValueId value, const TensorType *type, bool own, MidId *out,
                           bool *fresh)
{
    TensorType spread = plan_spread_type(type, l->recipe->tiles);
    Mapping identity = mapping_identity(&type->shape);
    MidId middle = MID_NONE;
    *out = MID_NONE;
    if (own && !plan_own_type(type, &spread))
        return status_error("%s: an operand that is not cut into shares", l->key);
    if (own) {
        *out = lower_home(l, type);
        middle = lower_value(l, "shares", &spread);
        live_in(l, middle, *out);
    }
    TRY(lower_operand(l, value, &spread, STAGING_DIRECT, PADDING_RESIDENT, NULL, middle, &middle,
                      fresh));
    l->phase++;
    *fresh = true;
    if (!own)
        *out = copy_target(l, "operand", type, PADDING_RESIDENT);
    lower_copy(l, middle, &identity, *out);
    return STATUS_OK;
}

/* Values that are stored in the memory of an operand: that comes first. */
static Status lower_homes(Lower *l)
{
    for (uint32_t op = 0; op < l->recipe->op_count; op++) {
        const OpPlan *plan = &l->recipe->ops[op];
        for (uint32_t j = 0; j < plan->operand_count; j++) {
            TensorType type;
            if (!((plan->own & ~plan->spread) >> j & 1))
                continue;
            ValueId value = plan_input(l->graph, op, plan, j);
            TRY(plan_operand_type(l->graph, op, plan, j, &type));
            l->key = l->graph->operations.items[op].key;
            if (l->home[value] != MID_NONE)
                return status_error("%s: operand %u is stored in another one", l->key, j);
            l->home[value] = lower_home(l, &type);
        }
    }
    return STATUS_OK;
}

Status lower_input(Lower *l, uint32_t op, uint32_t operand, MidId *out, bool *fresh)
{
    const OpPlan *plan = &l->recipe->ops[op];
    TensorType type;
    TRY(plan_operand_type(l->graph, op, plan, operand, &type));
    const OperandPlan *o = &plan->operands[operand];
    ValueId value = plan_input(l->graph, op, plan, operand);
    bool own = plan->own >> operand & 1;
    if (plan->spread >> operand & 1)
        return lower_spread(l, value, &type, own, out, fresh);
    if (own && (value == NO_VALUE || l->home[value] == MID_NONE))
        return status_error("%s: operand %u has no memory", l->key, operand);
    if (own) {
        *fresh = true;
        *out = l->home[value];
        lower_copy(l, l->stored[value].value, &l->stored[value].mapping, *out);
        return STATUS_OK;
    }
    return lower_operand(l, value, &type, o->staging, o->padding, NULL, MID_NONE, out, fresh);
}

Status lower_broadcast(Lower *l, ValueId value, const TensorType *type, MidId into, MidId *out,
                       bool *fresh)
{
    Mapping broadcast;
    TRY(mapping_broadcast(&l->graph->values.items[value].shape, &type->shape, &broadcast));
    return lower_operand(l, value, type, STAGING_DIRECT, PADDING_RESIDENT, &broadcast, into, out,
                         fresh);
}

/* ---- operations without products ---- */

static const uint8_t no_family = KERNEL_FAMILIES;

static void store_result(Lower *l, uint32_t op, MidId value)
{
    ValueId result = l->graph->operations.items[op].results[0];
    const Shape *shape = &l->graph->values.items[result].shape;
    l->stored[result] = (Stored){value, mapping_identity(shape)};
    l->mid->values.items[value].origin = result;
}

static Status lower_pointwise(Lower *l, uint32_t op)
{
    const Operation *o = &l->graph->operations.items[op];
    const OpPlan *plan = &l->recipe->ops[op];
    uint8_t family = o->kind == OP_ADD         ? KERNEL_ADD
                     : plan->operand_count > 1 ? KERNEL_BIAS_GELU
                     : o->kind == OP_GELU      ? KERNEL_GELU
                                               : no_family;
    MidId operands[2];
    bool fresh[2] = {false, false};
    if (family == no_family || plan->operand_count > 2)
        return status_error("%s: not a pointwise operation", l->key);
    for (uint32_t j = 0; j < plan->operand_count; j++)
        TRY(lower_input(l, op, j, &operands[j], &fresh[j]));
    TensorType type;
    Mapping mapping;
    TRY(plan_result_type(l->graph, op, plan, &type, &mapping));
    MidId result = lower_value(l, "", &type);
    if (plan->in_place || fresh[0])
        l->mid->values.items[result].storage = operands[0];
    lower_compute(l, (KernelSpec){.family = family}, result, operands, plan->operand_count);
    store_result(l, op, result);
    return STATUS_OK;
}

static Status lower_rows(Lower *l, uint32_t op)
{
    const Operation *o = &l->graph->operations.items[op];
    const OpPlan *plan = &l->recipe->ops[op];
    MidId operands[3];
    bool fresh;
    if (o->kind != OP_LAYER_NORM || plan->operand_count != 3)
        return status_error("%s: not a layer norm", l->key);
    for (uint32_t j = 0; j < 3; j++)
        TRY(lower_input(l, op, j, &operands[j], &fresh));
    TensorType type;
    Mapping mapping;
    TRY(plan_result_type(l->graph, op, plan, &type, &mapping));
    KernelSpec kernel = {.family = KERNEL_LAYER_NORM};
    memcpy(&kernel.p[LAYER_NORM_EPSILON_BITS], &o->epsilon, sizeof o->epsilon);
    MidId result = lower_value(l, "", &type);
    l->mid->values.items[result].resident = type_has_padding(&type); /* written by nobody */
    store_result(l, op, lower_compute(l, kernel, result, operands, 3));
    return STATUS_OK;
}

static Status lower_mapping(Lower *l, uint32_t op)
{
    const Operation *o = &l->graph->operations.items[op];
    const Shape *shape = &l->graph->values.items[o->inputs[0]].shape;
    Mapping mapping;
    Shape viewed;
    if (o->kind == OP_SLICE)
        mapping = mapping_slice(shape, o->axis, o->start, o->length);
    else
        TRY(mapping_view(shape, o->split, o->merge, o->factor, o->reversed, &viewed, &mapping));
    const Stored *from = &l->stored[o->inputs[0]];
    Stored *to = &l->stored[o->results[0]];
    to->value = from->value;
    return mapping_compose(&from->mapping, &mapping, &to->mapping);
}

/* ---- repeat ---- */

static Status lower_region(Lower *l, uint32_t region);

static MidId parameter_value(Lower *l, ValueId value, uint8_t role, const ValueId *members,
                             uint32_t count)
{
    const Value *v = &l->graph->values.items[value];
    TensorType type = {.shape = v->shape, .format = l->recipe->parameters[value]};
    MidId id = lower_value(l, "parameter", &type);
    MidValue *m = &l->mid->values.items[id];
    m->name = v->name ? v->name : arena_printf(l->arena, "v%u", value);
    m->role = role;
    m->origin = value;
    m->members = count;
    m->member_values = members;
    if (l->home[value] != MID_NONE)
        live_in(l, id, l->home[value]);
    l->stored[value] = (Stored){id, mapping_identity(&v->shape)};
    return id;
}

/* The carried value as the body sees it. Its buffer is the initial value's own when that is in the
 * right format and nobody else reads it, else a new one. */
static Status lower_carried(Lower *l, uint32_t op, uint32_t j, MidId *out)
{
    const Operation *o = &l->graph->operations.items[op];
    const OpPlan *plan = &l->recipe->ops[op];
    const GraphRegion *body = &l->graph->regions.items[o->body];
    ValueId initial = o->inputs[j];
    TensorType type;
    MidId value;
    bool fresh;
    TRY(plan_operand_type(l->graph, op, plan, j, &type));
    TRY(lower_operand(l, initial, &type, STAGING_DIRECT, PADDING_RESIDENT, NULL, MID_NONE, &value,
                      &fresh));
    uint8_t role = mid_role(l->mid, value);
    bool constant = role == 1 || role == 2;
    if (!fresh && (constant || l->uses[initial] > 1)) {
        MidId own = lower_value(l, "carried", &type);
        l->mid->values.items[own].resident = type_has_padding(&type);
        Mapping identity = mapping_identity(&type.shape);
        lower_copy(l, value, &identity, own);
        value = own;
    }
    *out = lower_value(l, "carried", &type); /* the iteration's value, in the same memory */
    l->mid->values.items[*out].storage = value;
    l->mid->values.items[*out].origin = body->arguments[j];
    l->stored[body->arguments[j]] = (Stored){*out, mapping_identity(&type.shape)};
    return STATUS_OK;
}

/* Brings a yield into the carried buffer. A yield that is another carried value, or a view of one,
 * goes through a temporary: all of them move at once. */
static Status lower_yield(Lower *l, ValueId yield, MidId carried, const MidId *all, uint32_t count,
                          MidId *staged)
{
    const Stored *stored = &l->stored[yield];
    const TensorType type = mid_value(l->mid, carried)->type;
    MidId root = mid_root(l->mid, stored->value);
    *staged = MID_NONE;
    if (root == mid_root(l->mid, carried) && mapping_is_identity(&stored->mapping) &&
        plan_copy_is_view(&mid_value(l->mid, stored->value)->type, &type, &stored->mapping))
        return STATUS_OK;
    *staged = stored->value;
    for (uint32_t i = 0; i < count; i++) {
        if (mid_root(l->mid, all[i]) != root)
            continue;
        *staged = lower_value(l, "yield", &type);
        l->mid->values.items[*staged].resident = type_has_padding(&type);
        lower_copy(l, stored->value, &stored->mapping, *staged);
        break;
    }
    return STATUS_OK;
}

/* A yield whose maker and everything behind it leave the carried memory alone may be made there. */
static void make_in_carried(Lower *l, ValueId yield, MidId carried)
{
    Mid *mid = l->mid;
    const Stored *stored = &l->stored[yield];
    if (stored->value == MID_NONE || stored->value < carried)
        return;
    MidValue *value = &mid->values.items[stored->value];
    const TensorType *type = &mid_value(mid, carried)->type;
    if (value->storage != MID_NONE || value->role || value->resident || value->slots != 1 ||
        value->parts || !mapping_is_identity(&stored->mapping) ||
        !shape_equal(&value->type.shape, &type->shape) ||
        !format_equal(&value->type.format, &type->format))
        return;
    for (size_t i = mid->ops.count; i-- > 0;) {
        const MidOp *op = &mid->ops.items[i];
        for (uint32_t j = 0; j < op->operand_count; j++)
            if (mid_root(mid, op->operands[j]) == mid_root(mid, carried))
                return;
        for (uint32_t j = 0; j < op->result_count; j++)
            if (op->results[j] == stored->value) {
                value->storage = carried;
                return;
            }
    }
}

static Status lower_repeat(Lower *l, uint32_t op)
{
    const Operation *o = &l->graph->operations.items[op];
    const GraphRegion *body = &l->graph->regions.items[o->body];
    if (o->carried_count > PLAN_OPERANDS || o->carried_count > MID_OPERANDS)
        return status_error("%s: %u carried values are too many", l->key, o->carried_count);
    for (uint32_t s = 0; s < o->sequence_count; s++) {
        const Sequence *sequence = &l->graph->sequences.items[o->sequences[s]];
        MidId id = parameter_value(l, body->arguments[o->carried_count + s], 1, sequence->members,
                                   sequence->count);
        l->mid->values.items[id].name = sequence->name;
    }
    MidId carried[MID_OPERANDS], staged[MID_OPERANDS];
    for (uint32_t j = 0; j < o->carried_count; j++)
        TRY(lower_carried(l, op, j, &carried[j]));
    lower_op(l, MID_REPEAT, carried, o->carried_count, NULL, 0)->count = o->count;
    TRY(lower_region(l, o->body));
    l->key = o->key;
    l->phase++;
    for (uint32_t j = 0; j < o->carried_count; j++)
        make_in_carried(l, body->yields[j], carried[j]);
    for (uint32_t j = 0; j < o->carried_count; j++)
        TRY(lower_yield(l, body->yields[j], carried[j], carried, o->carried_count, &staged[j]));
    l->phase++;
    MidId last[MID_OPERANDS];
    for (uint32_t j = 0; j < o->carried_count; j++) {
        const Stored *yield = &l->stored[body->yields[j]];
        TensorType type = mid_value(l->mid, carried[j])->type;
        last[j] = yield->value;
        if (staged[j] == MID_NONE)
            continue;
        Mapping identity = mapping_identity(&type.shape);
        last[j] = lower_value(l, "carry", &type);
        l->mid->values.items[last[j]].storage = carried[j];
        lower_copy(l, staged[j], staged[j] == yield->value ? &yield->mapping : &identity, last[j]);
    }
    MidId result[MID_OPERANDS];
    for (uint32_t j = 0; j < o->carried_count; j++) {
        const TensorType type = mid_value(l->mid, carried[j])->type;
        result[j] = lower_value(l, "", &type);
        l->mid->values.items[result[j]].storage = carried[j];
        l->mid->values.items[result[j]].origin = o->results[j];
        l->stored[o->results[j]] = (Stored){result[j], mapping_identity(&type.shape)};
    }
    lower_op(l, MID_END_REPEAT, result, o->carried_count, last, o->carried_count);
    return STATUS_OK;
}

/* ---- the walk ---- */

static Status lower_operation(Lower *l, uint32_t op)
{
    const Operation *o = &l->graph->operations.items[op];
    const OpPlan *plan = &l->recipe->ops[op];
    l->key = o->key;
    l->phase++;
    if (plan->fused != FUSED_NO && o->kind != OP_REPEAT)
        return STATUS_OK; /* its consumer or producer stores the result */
    switch (plan->algorithm) {
    case ALGORITHM_NONE:
        return lower_mapping(l, op);
    case ALGORITHM_GEMM_GRID:
        return lower_gemm(l, op);
    case ALGORITHM_POINTWISE:
        return lower_pointwise(l, op);
    case ALGORITHM_ROWS:
        return lower_rows(l, op);
    case ALGORITHM_ATTENTION:
        return lower_attention(l, op);
    case ALGORITHM_REPEAT:
        return lower_repeat(l, op);
    default:
        return status_error("%s: unknown algorithm %u", l->key, plan->algorithm);
    }
}

static Status lower_region(Lower *l, uint32_t region)
{
    const GraphRegion *r = &l->graph->regions.items[region];
    for (uint32_t i = 0; i < r->operation_count; i++)
        TRY(lower_operation(l, r->operations[i]));
    return STATUS_OK;
}

static void count_uses(Lower *l)
{
    const Graph *g = l->graph;
    for (uint32_t i = 0; i < g->operations.count; i++)
        for (uint32_t j = 0; j < g->operations.items[i].input_count; j++)
            l->uses[g->operations.items[i].inputs[j]]++;
    for (uint32_t r = 0; r < g->regions.count; r++)
        for (uint32_t j = 0; j < g->regions.items[r].yield_count; j++)
            l->uses[g->regions.items[r].yields[j]]++;
    for (uint32_t i = 0; i < g->outputs.count; i++)
        l->uses[g->outputs.items[i].value]++;
    for (uint32_t i = 0; i < g->operations.count; i++) { /* a view reads through */
        const Operation *o = &g->operations.items[i];
        if ((o->kind == OP_SLICE || o->kind == OP_VIEW) && l->uses[o->results[0]] > 1)
            l->uses[o->inputs[0]] += l->uses[o->results[0]] - 1;
    }
}

static Status lower_outputs(Lower *l)
{
    l->phase++;
    for (uint32_t i = 0; i < l->graph->outputs.count; i++) {
        const GraphOutput *output = &l->graph->outputs.items[i];
        const Value *value = &l->graph->values.items[output->value];
        TensorType type = {.shape = value->shape, .format = l->recipe->outputs[i]};
        MidId id;
        bool fresh;
        l->key = output->name;
        TRY(lower_operand(l, output->value, &type, STAGING_DIRECT, PADDING_RESIDENT, NULL, MID_NONE,
                          &id, &fresh));
        if (!fresh &&
            mid_role(l->mid, id)) { /* an input, a parameter or another output: a copy of its own */
            MidId own = lower_value(l, "", &type);
            Mapping identity = mapping_identity(&type.shape);
            lower_copy(l, id, &identity, own);
            id = own;
        }
        MidId named = lower_value(l, "", &type);
        MidValue *v = &l->mid->values.items[named];
        v->storage = id;
        v->origin = output->value;
        v->role = 3;
        v->name = output->name;
        l->mid->values.items[mid_root(l->mid, id)].role = 3;
    }
    return STATUS_OK;
}

Status mid_lower(Arena *arena, const Graph *graph, const Recipe *recipe, Mid *out)
{
    *out = (Mid){.tiles = recipe->tiles};
    Lower l = {.arena = arena, .graph = graph, .recipe = recipe, .mid = out, .key = ""};
    l.stored = arena_array(arena, Stored, graph->values.count);
    l.uses = arena_array(arena, uint32_t, graph->values.count);
    bool *member = arena_array(arena, bool, graph->values.count);
    l.home = arena_array(arena, MidId, graph->values.count);
    for (uint32_t v = 0; v < graph->values.count; v++)
        l.home[v] = MID_NONE;
    count_uses(&l);
    for (uint32_t s = 0; s < graph->sequences.count; s++)
        for (uint32_t i = 0; i < graph->sequences.items[s].count; i++)
            member[graph->sequences.items[s].members[i]] = true;
    Status status = lower_homes(&l);
    for (uint32_t v = 0; v < graph->values.count; v++) {
        const Value *value = &graph->values.items[v];
        l.stored[v].value = MID_NONE;
        if ((value->kind == VALUE_INPUT || value->kind == VALUE_PARAMETER) && l.uses[v] &&
            !member[v]) {
            ValueId *self = arena_array(arena, ValueId, 1);
            *self = v;
            parameter_value(&l, v, value->kind == VALUE_INPUT ? 2 : 1, self, 1);
        }
    }
    if (status_ok(status))
        status = lower_region(&l, 0);
    if (status_ok(status))
        status = lower_outputs(&l);
    if (!status_ok(status))
        mid_free(out);
    return status;
}

void mid_free(Mid *mid)
{
    array_free(&mid->values);
    array_free(&mid->ops);
}
