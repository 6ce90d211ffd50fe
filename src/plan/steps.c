/* steps.c - the ways on from a state: how one operation can run on values where they lie, and what
 * that adds. Operands share one exchange phase; parameters that nobody has placed yet lie where
 * their first reader wants them. */
#include "plan/walk.h"

/* ---- operands ---- */

static void update(Next *next, ValueId value, uint32_t storage)
{
    if (next->update_count < MAX_UPDATES)
        next->updates[next->update_count++] = (Update){value, storage};
}

static uint32_t storage_of(const State *state, const Next *next, ValueId value)
{
    for (uint32_t i = 0; i < next->update_count; i++)
        if (next->updates[i].value == value)
            return next->updates[i].storage;
    return state->storage[value];
}

static bool is_input(const Planner *p, ValueId value)
{
    return p->graph->values.items[value].kind == VALUE_INPUT;
}

Format format_once(const Format *format, uint32_t first_tile)
{
    Format once = *format;
    once.tile_count /= once.replicas;
    once.replicas = 1;
    once.first_tile = first_tile;
    once.memory_class = MEMORY_STANDARD;
    for (uint32_t i = 0; i < once.axis_count; i++)
        once.axes[i].stride = once.axes[i].near = once.axes[i].near_stride = 0;
    return once;
}

/* One copy of every shard, outside of the busy tiles when there is room: then no byte needs a copy
 * within a tile, and no tile sends what it holds together with what it computes. */
static Format away_from(const Format *format, uint32_t busy_first, uint32_t busy_end,
                        uint32_t tiles)
{
    enum { FEWER = 4 }; /* pieces on a quarter of the tiles are still sent in good time */
    uint32_t count = format->tile_count / format->replicas, behind = tiles - busy_end;
    uint32_t room = max_u32(behind, busy_first);
    Format once = format_once(format, 0);
    if (count > room && room * FEWER >= count && once.axis_count == 1 && room > 0)
        once.axes[0].partitions = once.tile_count = count = room;
    once.first_tile = count <= behind ? busy_end : count <= busy_first ? 0 : tiles - count;
    return once;
}

/* The pieces of all slices of K, of which `wanted` is the first. */
static Format whole_format(const TensorType *wanted, const Shape *shape, uint32_t tiles)
{
    Format whole = format_once(&wanted->format, 0);
    for (uint32_t i = 0; i < whole.axis_count; i++) {
        AxisTiling *tiling = &whole.axes[i];
        if (shape->extent[tiling->axis] == wanted->shape.extent[tiling->axis])
            continue;
        uint32_t extent = shape->extent[tiling->axis];
        uint32_t others = whole.tile_count / tiling->partitions;
        uint32_t pieces = min_u32(ceil_div_u32(extent, tiling->block), max_u32(tiles / others, 1));
        tiling->block = 16 * ceil_div_u32(ceil_div_u32(extent, 16), pieces);
        tiling->partitions = ceil_div_u32(extent, tiling->block);
        whole.tile_count = others * tiling->partitions;
        if (whole.order.kind == ORDER_BLOCK_MAJOR)
            whole.order.row_block = (uint16_t)tiling->block;
    }
    return whole;
}

enum { SPREAD_BYTES = 8 << 10 }; /* of a shard that is stored once, and should be smaller */

static uint32_t plain_storage(Planner *p, const TensorType *type)
{
    Mapping identity = mapping_identity(&type->shape);
    return costs_storage(&p->costs, type, &identity);
}

/* What it costs to bring a tensor from one type to the other. False: it is not possible. */
static bool bring_cost(Planner *p, const TensorType *from, const TensorType *to, bool own,
                       double *cycles)
{
    Conversion c;
    if (status_discard(costs_conversion(&p->costs, plain_storage(p, from), NULL, to, &c)))
        return false;
    *cycles = c.words + c.sources / 2.0 + (own ? c.own_local : c.local);
    return true;
}

/* Makes *type the shares on the tiles that want them if that is better; *own: which stay in place.
 * A tile can not write in a memory element from which it sends. Where 64-bit multicasts go round in
 * a group, a sender gets nothing meanwhile anyway, and shares in place cost nothing; nor do senders
 * outside of the group stop what is sent to theirs, which is more than conversions know. In small
 * groups one sends while it receives from another: there the share is copied. */
static void prefer_own(Planner *p, const TensorType *wanted, uint8_t may_own, TensorType *type,
                       bool *own)
{
    TensorType shares;
    double here, there;
    *own = false;
    if (may_own == OWN_NO || !plan_own_type(wanted, &shares))
        return;
    bool wide = may_own == OWN_IN_PLACE && p->costs.pairs && type_in_pairs(wanted);
    if (!bring_cost(p, &shares, wanted, wide, &here) ||
        (!wide && bring_cost(p, type, wanted, false, &there) && there < here))
        return;
    *own = wide;
    *type = shares;
}

/* Gives an unplaced parameter or input its format. Parameters lie where their first consumer wants
 * them; inputs, and parameters that are stored once, at the other end of the tiles. */
static uint32_t place_free(Walk *w, ValueId value, const TensorType *wanted, bool direct,
                           uint32_t busy_end, uint8_t may_own, bool *own)
{
    Planner *p = w->p;
    const Shape *shape = plan_shape(p->graph, value);
    bool once = is_input(p, value) || p->options->weights_once;
    TensorType type = {.shape = *shape};
    uint32_t busy_first = wanted->format.first_tile;
    busy_end = max_u32(busy_end, busy_first + wanted->format.tile_count);
    if (!shape_equal(shape, &wanted->shape) && shape->rank == wanted->shape.rank && w->slices > 1)
        type.format = whole_format(wanted, shape, p->options->tiles);
    else if (direct && shape_equal(shape, &wanted->shape))
        type.format = wanted->format;
    else if (shape->rank == wanted->shape.rank && !direct && wanted->format.shares < 2)
        type.format = broadcast_format(&wanted->format, &wanted->shape, shape), once = true;
    else
        type.format = rows_format(shape, p->options->tiles, 0);
    TensorType single = {*shape, format_once(&type.format, 0)};
    if (p->options->weights_once && type_max_shard_bytes(&single) > SPREAD_BYTES)
        type.format = spread_format(&single, p->options->tiles);
    else if (once)
        type.format = away_from(&type.format, busy_first, busy_end, p->options->tiles);
    if (once && direct && shape_equal(shape, &wanted->shape))
        prefer_own(p, wanted, may_own, &type, own);
    return plain_storage(p, &type);
}

static double pack_cycles(Planner *p, const TensorType *type, const TensorType *staging)
{
    ShardOf shards[2] = {{type, 0}, {staging, 0}};
    double cycles = 0;
    if (status_discard(
            costs_pattern(&p->costs, (KernelSpec){.family = KERNEL_PACK}, shards, 2, &cycles)))
        return 1e12;
    return cycles;
}

static bool is_linear(const TensorType *type)
{
    return type->format.axis_count == 1 && type->format.axes[0].axis == AXIS_LINEAR;
}

/* Row-major rows come in pieces of 32 bytes: they go once to where the operand's long pieces start,
 * in little time as every tile has little of them, and from there to all its copies. */
static uint32_t spread_first(Planner *p, uint32_t storage, const TensorType *type, Bill *bill)
{
    TensorType spread = plan_spread_type(type, p->options->tiles);
    Conversion c;
    prefer_own(p, type, bill->may_own, &spread, &bill->own);
    if ((!bill->own && type_max_shard_bytes(&spread) > 2 * SPREAD_BYTES) ||
        status_discard(costs_conversion(&p->costs, storage, NULL, &spread, &c))) {
        bill->own = false;
        return storage;
    }
    bill->before += target_phase_cost(c.words, c.sources) + c.local;
    bill->spread = true;
    bill->resident += bill->own ? 0 : type_max_shard_bytes(&spread);
    return plain_storage(p, &spread);
}

Status bill_operand(Walk *w, const State *state, Next *next, ValueId value, const TensorType *type,
                    const OperandPlan *operand, const Mapping *extra, bool in_place, Bill *bill)
{
    Planner *p = w->p;
    uint32_t storage = storage_of(state, next, value);
    if (storage == UNSET || storage == DEFERRED)
        return status_error("value %u is not there", value);
    bool staged = operand->staging == STAGING_ROW_MAJOR;
    TensorType rows = {.shape = type->shape, .format = plan_staging_format(&type->format)};
    if (storage == FREE) {
        bool once = is_input(p, value) || p->options->weights_once;
        storage = place_free(w, value, staged && once ? &rows : type, extra == NULL, bill->busy_end,
                             bill->may_own, &bill->own);
        update(next, value, storage);
        uint64_t members = p->graph->values.items[value].kind == VALUE_ARGUMENT ? w->iterations : 1;
        if (!bill->own)
            bill->resident +=
                members * type_max_shard_bytes(&p->costs.storages.items[storage].type);
    }
    Conversion c;
    if (bill->may_spread && is_linear(&p->costs.storages.items[storage].type))
        storage = spread_first(p, storage, type, bill);
    Status direct = costs_conversion(&p->costs, storage, extra, type, &c);
    bool there = status_ok(direct) && c.view;
    if (!staged)
        TRY(direct);
    status_free(direct);
    if (there || in_place)
        return STATUS_OK;
    if (staged)
        TRY(costs_conversion(&p->costs, storage, extra, &rows, &c));
    bill->words += c.words;
    bill->sources = max_u32(bill->sources, c.sources);
    bill->local += bill->own ? c.own_local : c.local;
    uint64_t bytes = type_max_shard_bytes(type);
    if (staged) {
        bill->local += pack_cycles(p, type, &rows);
        bill->bytes += 2 * bytes;
    } else if (c.padded && w->slices < 2) {
        bill->resident += bytes; /* a buffer of its own, whose padding stays zero */
    } else {
        bill->bytes += bytes;
    }
    return STATUS_OK;
}

/* Of steps that end alike, the best so far. */
static void note_target(Walk *w, const Next *next)
{
    bool added;
    if (!next->target)
        return;
    uint64_t *slot = map_at(&w->target_ids, next->target, &added);
    if (added) {
        *slot = w->targets.count;
        array_push(&w->targets, (Target){next->rank, next->resident});
    } else if (next->rank < w->targets.items[*slot].rank) {
        w->targets.items[*slot] = (Target){next->rank, next->resident};
    }
}

bool walk_dominated(const Walk *w, uint64_t target, double rank, uint64_t resident)
{
    const uint64_t *slot = target ? map_find(&w->target_ids, target) : NULL;
    return slot && w->targets.items[*slot].rank <= rank &&
           (w->last || w->targets.items[*slot].resident <= resident);
}

/* Keeps the best ranks so far, one of those that end alike. */
static void note_rank(Walk *w, const Next *next)
{
    note_target(w, next);
    for (uint32_t i = 0; next->target && i < w->ranked; i++)
        if (w->best[i].target == next->target) {
            if (w->best[i].rank <= next->rank)
                return;
            memmove(w->best + i, w->best + i + 1, (--w->ranked - i) * sizeof *w->best);
            break;
        }
    uint32_t at = w->ranked;
    w->lightest = next->resident < w->lightest ? next->resident : w->lightest;
    if (w->ranked < w->beam)
        w->ranked++;
    else if (next->rank >= w->best[--at].rank)
        return;
    for (; at > 0 && w->best[at - 1].rank > next->rank; at--)
        w->best[at] = w->best[at - 1];
    w->best[at] = (Best){next->rank, next->target};
}

uint32_t step_class(const OpPlan *plan)
{
    if (plan->algorithm != ALGORITHM_GEMM_GRID)
        return 0;
    uint32_t class = plan->swapped | (uint32_t)(plan->scatter > 0) << 1;
    class |= (uint32_t)plan->gelu << 6;
    return class | (uint32_t)plan->result_staging << 2 | (plan->operand_count - 2) << 4;
}

bool walk_hopeless(const Walk *w, const OpPlan *plan, double rank, uint64_t resident)
{
    return w->ranked == w->beam && rank >= w->best[w->ranked - 1].rank &&
           w->of_class[step_class(plan)] >= PER_CLASS && (w->last || resident >= w->lightest);
}

static void finish(Walk *w, const State *state, Next *next, const Bill *bill, double kernel,
                   double inside, uint64_t bytes)
{
    Planner *p = w->p;
    if (p->costs.collecting)
        return;
    double outside = target_phase_cost(bill->words, bill->sources);
    next->exchange = bill->before + outside + inside;
    next->cycles = next->exchange + bill->local + kernel;
    next->cost = state->cost + next->cycles;
    next->rank = next->cost - next->ahead;
    next->resident = state->resident + bill->resident;
    next->order = (uint32_t)w->nexts.count;
    uint64_t needed = next->resident + bill->bytes + bytes;
    if (needed > p->budget) {
        p->missing = needed - p->budget < p->missing ? needed - p->budget : p->missing;
        p->memory_short = true;
        return;
    }
    array_push(&w->nexts, *next);
    w->of_class[step_class(next->plan)]++;
    note_rank(w, next);
}

static void store(Walk *w, Next *next, ValueId value, const TensorType *type,
                  const Mapping *mapping)
{
    update(next, value, costs_storage(&w->p->costs, type, mapping));
}

/* The value's memory may be overwritten by operation `op`: it is a result or carried value that
 * nothing reads later. */
static bool dies_at(const Planner *p, ValueId value, uint32_t op)
{
    const Value *v = &p->graph->values.items[value];
    if (p->last_use[value] != op)
        return false;
    if (v->kind == VALUE_ARGUMENT) {
        const Operation *repeat = plan_operation(p->graph, v->operation);
        const GraphRegion *body = &p->graph->regions.items[repeat->body];
        for (uint32_t j = 0; j < repeat->carried_count; j++)
            if (body->arguments[j] == value)
                return true;
        return false;
    }
    uint8_t kind = v->kind == VALUE_RESULT ? plan_operation(p->graph, v->operation)->kind : OP_VIEW;
    return kind != OP_VIEW && kind != OP_SLICE;
}

/* ---- steps by kind ---- */

static Status step_view(Walk *w, const State *state, Next next)
{
    Planner *p = w->p;
    const Operation *o = plan_operation(p->graph, w->op);
    const Shape *shape = plan_shape(p->graph, o->inputs[0]);
    Shape viewed;
    Mapping mapping, whole;
    uint32_t from = state->storage[o->inputs[0]];
    if (from == FREE) {
        TensorType rows = {*shape, rows_format(shape, p->options->tiles, 0)};
        bool own = false;
        from = place_free(w, o->inputs[0], &rows, true, 0, OWN_NO, &own);
        update(&next, o->inputs[0], from);
    }
    if (from == UNSET || from == DEFERRED)
        return status_error("no storage");
    if (o->kind == OP_SLICE)
        mapping = mapping_slice(shape, o->axis, o->start, o->length);
    else
        TRY(mapping_view(shape, o->split, o->merge, o->factor, o->reversed, &viewed, &mapping));
    Storage source = p->costs.storages.items[from];
    TRY(mapping_compose(&source.mapping, &mapping, &whole));
    store(w, &next, o->results[0], &source.type, &whole);
    OpPlan *plan = arena_new(p->arena, OpPlan);
    *plan = (OpPlan){.key = o->key, .algorithm = ALGORITHM_NONE, .result = source.type.format};
    plan->rows = plan->columns = plan->inner = 1;
    next.plan = plan;
    Bill bill = {0};
    finish(w, state, &next, &bill, 0, 0, 0);
    return STATUS_OK;
}

/* An addend that lies in C already needs no copy: the product accumulates onto it. */
static bool accumulates_in_place(const Planner *p, const State *state, uint32_t op, ValueId addend,
                                 const TensorType *type, uint32_t add)
{
    const Value *v = &p->graph->values.items[addend];
    uint32_t storage = state->storage[addend];
    if (storage >= DEFERRED || v->kind == VALUE_PARAMETER || v->kind == VALUE_INPUT ||
        !dies_at(p, addend, add))
        return false;
    const Storage *s = &p->costs.storages.items[storage];
    if (!mapping_is_identity(&s->mapping) || !shape_equal(&s->type.shape, &type->shape) ||
        !format_equal(&s->type.format, &type->format))
        return false;
    for (uint32_t i = op; i < p->graph->operations.count; i++) { /* no reader in between */
        const Operation *o = plan_operation(p->graph, i);
        for (uint32_t j = 0; j < o->input_count; j++)
            if (o->inputs[j] == addend && i != add)
                return false;
    }
    return true;
}

/* What it costs to bring the operands of all slices of K but the first. */
static Status later_slices(Walk *w, const State *state, const Next *next, const OpPlan *plan,
                           double *cycles)
{
    Planner *p = w->p;
    uint32_t inner = gemm_shape(p->graph, w->op).inner, step = plan->inner_block * plan->inner;
    for (uint32_t slice = 1; slice * step < inner; slice++) {
        uint32_t words = 0, sources = 0;
        for (uint32_t j = 0; j < 2; j++) {
            TensorType type;
            Mapping mapping;
            Conversion c;
            uint32_t storage = storage_of(state, next, plan_input(p->graph, w->op, plan, j));
            TRY(plan_slice(p->graph, w->op, plan, slice, j, &type, &mapping));
            TRY(costs_conversion(&p->costs, storage, &mapping, &type, &c));
            words += c.words;
            sources = max_u32(sources, c.sources);
            *cycles += c.local;
        }
        *cycles += target_phase_cost(words, sources);
    }
    return STATUS_OK;
}

/* A buffer that keeps what is stored in it is written by nobody else: not in a repeat, and not with
 * slices of K, which lie one over the other. */
static uint8_t may_own(const Planner *p, uint32_t op, const OpPlan *plan, uint32_t operand)
{
    ValueId value = plan_input(p->graph, op, plan, operand);
    const Value *v = &p->graph->values.items[value];
    if (plan->slices > 1 || plan->operands[operand].staging != STAGING_DIRECT)
        return OWN_NO;
    bool fixed = v->kind == VALUE_INPUT || v->kind == VALUE_PARAMETER;
    return fixed && plan_operation(p->graph, op)->region == 0 ? OWN_IN_PLACE : OWN_COPIED;
}

static Status step_product(Walk *w, const State *state, const Candidate *c, Next next)
{
    Planner *p = w->p;
    const OpPlan *plan = &c->plan;
    const Graph *g = p->graph;
    TensorType type, result;
    Mapping mapping;
    Bill bill = {0}, sum = {.words = c->words, .sources = c->sources};
    double least = plan->inner > 1 ? target_phase_cost(c->words, c->sources) : 0;
    least += state->cost + c->kernel - ahead_of(c);
    if (walk_hopeless(w, plan, least, state->resident))
        return STATUS_OK;
    sum.busy_end = plan->partial.first_tile + plan->partial.tile_count;
    for (uint32_t j = 0; j < 2; j++) {
        TRY(plan_operand_type(g, w->op, plan, j, &type));
        bill.spread = false;
        bill.may_spread = true;
        bill.may_own = may_own(p, w->op, plan, j);
        bill.own = false;
        w->slices = plan->slices;
        ValueId value = plan_input(g, w->op, plan, j);
        Mapping first, *slice = plan->slices > 1 ? &first : NULL;
        if (slice)
            TRY(plan_slice(g, w->op, plan, 0, j, &type, slice));
        TRY(bill_operand(w, state, &next, value, &type, &plan->operands[j], slice, false, &bill));
        w->slices = 1;
        next.spread |= (uint8_t)(bill.spread << j);
        next.own |= (uint8_t)(bill.own << j);
        bill.may_spread = bill.own = false;
        bill.may_own = OWN_NO;
    }
    double later = 0;
    if (plan->slices > 1)
        TRY(later_slices(w, state, &next, plan, &later));
    TRY(plan_result_type(g, w->op, plan, &result, &mapping));
    uint32_t adds[2];
    fusable_adds(p, w->op, adds);
    for (uint32_t j = 2; j < plan->operand_count; j++) {
        ValueId addend = plan_input(g, w->op, plan, j);
        Mapping broadcast;
        TRY(mapping_broadcast(plan_shape(g, addend), &result.shape, &broadcast));
        bool here =
            plan->inner == 1 && accumulates_in_place(p, state, w->op, addend, &result, adds[j - 2]);
        next.in_place = here;
        TRY(bill_operand(w, state, &next, addend, &result, &plan->operands[j], &broadcast, here,
                         plan->inner == 1 ? &bill : &sum));
    }
    ValueId stored = plan_fused_result(g, w->op, plan);
    if (stored == NO_VALUE)
        return status_error("no GELU follows");
    store(w, &next, stored, &result, &mapping);
    bill.local += sum.local;
    bill.resident += sum.resident;
    next.ahead = ahead_of(c);
    double inside = later + (plan->inner > 1 ? target_phase_cost(sum.words, sum.sources) : 0);
    next.plan = plan;
    uint64_t bytes = c->bytes + sum.bytes;
    if (plan->slices > 1) { /* slices are gone when the partials are summed */
        TensorType partial;
        TRY(plan_partial_type(g, w->op, plan, &partial));
        uint64_t rest = bytes - type_max_shard_bytes(&partial);
        bytes -= rest < bill.bytes ? rest : bill.bytes;
    }
    finish(w, state, &next, &bill, c->kernel, inside, bytes);
    return STATUS_OK;
}

static Status step_simple(Walk *w, const State *state, const Candidate *c, Next next)
{
    Planner *p = w->p;
    const OpPlan *plan = &c->plan;
    TensorType type, result;
    Mapping mapping;
    Bill bill = {0};
    for (uint32_t j = 0; j < plan->operand_count; j++) {
        TRY(plan_operand_type(p->graph, w->op, plan, j, &type));
        TRY(bill_operand(w, state, &next, plan_input(p->graph, w->op, plan, j), &type,
                         &plan->operands[j], NULL, false, &bill));
    }
    TRY(plan_result_type(p->graph, w->op, plan, &result, &mapping));
    if (plan->algorithm == ALGORITHM_POINTWISE)
        next.in_place = dies_at(p, plan_input(p->graph, w->op, plan, 0), w->op);
    store(w, &next, plan_operation(p->graph, w->op)->results[0], &result, &mapping);
    next.plan = plan;
    finish(w, state, &next, &bill, c->kernel, 0, c->bytes);
    return STATUS_OK;
}

static Status step_attention(Walk *w, const State *state, const Candidate *c, Next next)
{
    Planner *p = w->p;
    const OpPlan *plan = &c->plan;
    const Operation *o = plan_operation(p->graph, w->op);
    const Shape *q = plan_shape(p->graph, o->inputs[0]), *k = plan_shape(p->graph, o->inputs[1]);
    uint32_t rounds = q->extent[0] / plan->rows,
             blocks = ceil_div_u32(k->extent[1], plan->key_block);
    TensorType type, result;
    Mapping mapping;
    Bill bill = {0};
    for (uint32_t j = 0; j < 3; j++) {
        Shape shape = *plan_shape(p->graph, o->inputs[j]);
        TRY(plan_operand_type(p->graph, w->op, plan, j, &type));
        Mapping heads = mapping_slice(&shape, 0, 0, plan->rows), part;
        shape.extent[0] = plan->rows;
        Mapping rows = mapping_slice(&shape, 1, 0, type.shape.extent[1]);
        TRY(mapping_compose(&heads, &rows, &part));
        TRY(bill_operand(w, state, &next, o->inputs[j], &type, &plan->operands[j], &part, false,
                         &bill));
    }
    TRY(plan_result_type(p->graph, w->op, plan, &result, &mapping));
    store(w, &next, o->results[0], &result, &mapping);
    next.plan = plan;
    uint32_t times = rounds * blocks;
    double more = (times - 1) * (target_phase_cost(bill.words, bill.sources) + bill.local);
    finish(w, state, &next, &bill, c->kernel, more, c->bytes * (rounds > 1 ? 2 : 1));
    return STATUS_OK;
}

/* A bias add whose only reader is a GELU may wait for it. */
static bool can_defer(const Planner *p, uint32_t op)
{
    const Operation *o = plan_operation(p->graph, op);
    const Shape *full = plan_shape(p->graph, o->results[0]);
    if (o->kind != OP_ADD || p->uses[o->results[0]] != 1)
        return false;
    if (shape_equal(plan_shape(p->graph, o->inputs[0]), plan_shape(p->graph, o->inputs[1])))
        return false;
    if (!shape_equal(plan_shape(p->graph, o->inputs[0]), full) &&
        !shape_equal(plan_shape(p->graph, o->inputs[1]), full))
        return false;
    for (uint32_t i = op + 1; i < p->graph->operations.count; i++) {
        const Operation *user = plan_operation(p->graph, i);
        if (user->kind == OP_GELU && user->inputs[0] == o->results[0])
            return user->region == o->region;
    }
    return false;
}

static void step_deferred(Walk *w, const State *state, Next next)
{
    const Operation *o = plan_operation(w->p->graph, w->op);
    OpPlan *plan = arena_new(w->p->arena, OpPlan);
    *plan = (OpPlan){.key = o->key, .algorithm = ALGORITHM_POINTWISE};
    plan->rows = plan->columns = plan->inner = 1;
    next.plan = plan;
    next.fused = FUSED_INTO_CONSUMER;
    update(&next, o->results[0], DEFERRED);
    Bill bill = {0};
    finish(w, state, &next, &bill, 0, 0, 0);
}

/* Formats that come with the state: those in which a full-size operand lies already. */
static void list_pointwise(Walk *w, const State *state, const CandidateArray *fixed, Next next,
                           CandidateRefs *out)
{
    Planner *p = w->p;
    const Operation *o = plan_operation(p->graph, w->op);
    bool fused = o->kind == OP_GELU && state->storage[o->inputs[0]] == DEFERRED;
    OpPlan shape_only = {.algorithm = ALGORITHM_POINTWISE, .operand_count = fused ? 2 : 1};
    uint32_t operands = o->kind == OP_ADD || fused ? 2 : 1;
    for (uint32_t j = 0; j < operands; j++) {
        ValueId value = plan_input(p->graph, w->op, &shape_only, j);
        uint32_t storage = state->storage[value];
        if (storage >= DEFERRED ||
            !shape_equal(plan_shape(p->graph, value), plan_shape(p->graph, o->results[0])))
            continue;
        const Storage *s = &p->costs.storages.items[storage];
        Candidate *c = arena_new(p->arena, Candidate);
        Format format = s->type.format;
        if (mapping_is_identity(&s->mapping) && pointwise_candidate(p, w->op, fused, &format, c))
            array_push(out, c);
    }
    for (size_t i = 0; i < fixed->count; i++) {
        Candidate *c = arena_new(p->arena, Candidate);
        const Candidate *use = &fixed->items[i];
        if (fused) {
            if (!pointwise_candidate(p, w->op, true, &use->plan.result, c))
                continue;
            use = c;
        }
        array_push(out, use);
    }
    if (can_defer(p, w->op))
        step_deferred(w, state, next);
}

/* Of a value that a product did not stop at: what is done beyond it. */
static double still_ahead(Planner *p, const State *state, ValueId value)
{
    double ahead = 0;
    for (uint32_t i = 0; state->storage[value] == UNSET && i < p->graph->operations.count; i++) {
        const Operation *o = plan_operation(p->graph, i);
        bool reads = o->inputs[0] == value || (o->kind == OP_ADD && o->inputs[1] == value);
        if (!reads || (o->kind != OP_ADD && o->kind != OP_GELU))
            continue;
        value = o->results[0];
        double cycles = FUSED_ADD;
        if (o->kind == OP_GELU && state->storage[value] < DEFERRED) {
            const TensorType *type = &p->costs.storages.items[state->storage[value]].type;
            ShardOf shards[2] = {{type, 0}, {type, 0}};
            KernelSpec gelu = {.family = KERNEL_GELU};
            (void)status_discard(costs_pattern(&p->costs, gelu, shards, 2, &cycles));
        }
        ahead += cycles;
    }
    return ahead;
}

static Status step_fused(Walk *w, const State *state, Next next)
{
    const Operation *o = plan_operation(w->p->graph, w->op);
    OpPlan *plan = arena_new(w->p->arena, OpPlan);
    *plan = (OpPlan){.key = o->key, .algorithm = ALGORITHM_POINTWISE};
    plan->rows = plan->columns = plan->inner = 1;
    next.plan = plan;
    next.fused = FUSED_INTO_PRODUCER;
    next.ahead = still_ahead(w->p, state, o->results[0]);
    Bill bill = {0};
    finish(w, state, &next, &bill, 0, 0, 0);
    return STATUS_OK;
}

/* What a product before it took over: its result is stored, or an input never will be. */
static bool done_by_producer(const State *state, const Operation *o)
{
    if (o->kind == OP_GELU)
        return state->storage[o->results[0]] != UNSET;
    return o->kind == OP_ADD &&
           (state->storage[o->results[0]] != UNSET || state->storage[o->inputs[0]] == UNSET ||
            state->storage[o->inputs[1]] == UNSET);
}

/* ---- all of them ---- */

Status list_steps(Walk *w, const State *state, Next next, CandidateRefs *out)
{
    Planner *p = w->p;
    const Operation *o = plan_operation(p->graph, w->op);
    const CandidateArray *fixed;
    if (o->kind == OP_SLICE || o->kind == OP_VIEW)
        return step_view(w, state, next);
    if (done_by_producer(state, o))
        return step_fused(w, state, next);
    TRY(make_candidates(p, w->op, &fixed));
    if (o->kind == OP_ADD || o->kind == OP_GELU)
        list_pointwise(w, state, fixed, next, out);
    for (size_t i = 0; i < fixed->count && o->kind != OP_ADD && o->kind != OP_GELU; i++)
        array_push(out, &fixed->items[i]);
    return STATUS_OK;
}

Status step_candidate(Walk *w, const State *state, const Candidate *c, Next next)
{
    switch (c->plan.algorithm) {
    case ALGORITHM_GEMM_GRID:
        return step_product(w, state, c, next);
    case ALGORITHM_ATTENTION:
        return step_attention(w, state, c, next);
    default:
        return step_simple(w, state, c, next);
    }
}
