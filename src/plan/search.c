/* search.c - beam search over the operations in order.
 *
 * A state is the formats in which the live values lie; a step chooses how one operation runs and
 * adds what that costs: the conversions of its operands (one exchange phase for all of them), its
 * own exchanges, its kernels. States that agree on everything still live are one: the cheaper
 * stays. A repeat's body is searched once for every format its carried values may come in with; it
 * must hand them back in that format. Ties break by order of generation: the result depends on
 * nothing but graph and options. */
#include "plan/internal.h"

enum {
    UNSET = 0xffffffffu,    /* not computed yet */
    FREE = 0xfffffffeu,     /* a parameter or input that nobody has placed */
    DEFERRED = 0xfffffffdu, /* a bias add that the GELU behind it carries out */
    DEFAULT_BEAM = 24,
    FUSED_ADD = 600,  /* about what an add of its own costs: ranks states that are ahead */
    BODY_ENDINGS = 3, /* finished bodies kept per entry format */
    MAX_UPDATES = 6
};

typedef struct Choice { /* the decisions of a state, last first */
    uint32_t op;
    OpPlan plan;
    const struct Choice *before;
    const struct Choice *body; /* repeats: the body's decisions */
} Choice;

typedef struct State {
    double cost;
    uint64_t resident; /* bytes that stay on a tile for good, as if on the same one */
    uint32_t *storage; /* per graph value */
    const Choice *choices;
} State;
typedef ARRAY(State) StateArray;

typedef struct Update {
    ValueId value;
    uint32_t storage;
} Update;

typedef struct Next { /* a step from a state, before anything is copied */
    double cost;
    double rank; /* cost, less what adds already carried out would have cost */
    uint64_t resident;
    uint32_t state, order;
    const OpPlan *plan;
    double cycles, exchange;
    bool in_place;
    uint8_t fused;
    uint32_t ahead; /* adds behind this operation that it carries out */
    uint32_t update_count;
    Update updates[MAX_UPDATES];
} Next;
typedef ARRAY(Next) NextArray;

typedef struct Walk {
    Planner *p;
    uint32_t iterations; /* members of a parameter argument */
    uint32_t op;         /* being expanded */
    NextArray nexts;
} Walk;

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
        once.axes[i].stride = 0;
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

/* Gives an unplaced parameter or input its format. Parameters lie where their first consumer wants
 * them; inputs, and parameters that are stored once, at the other end of the tiles. */
static uint32_t place_free(Walk *w, ValueId value, const TensorType *wanted, bool direct,
                           uint32_t busy_end)
{
    Planner *p = w->p;
    const Shape *shape = plan_shape(p->graph, value);
    bool once = is_input(p, value) || p->options->weights_once;
    TensorType type = {.shape = *shape};
    uint32_t busy_first = wanted->format.first_tile;
    busy_end = max_u32(busy_end, busy_first + wanted->format.tile_count);
    if (direct && shape_equal(shape, &wanted->shape))
        type.format = wanted->format;
    else if (shape->rank == wanted->shape.rank && !direct)
        type.format = broadcast_format(&wanted->format, &wanted->shape, shape), once = true;
    else
        type.format = rows_format(shape, p->options->tiles, 0);
    if (once)
        type.format = away_from(&type.format, busy_first, busy_end, p->options->tiles);
    Mapping identity = mapping_identity(shape);
    return costs_storage(&p->costs, &type, &identity);
}

typedef struct Bill { /* what the operands of one step cost */
    uint32_t words, sources;
    double local;
    uint64_t bytes;    /* of copies */
    uint64_t resident; /* of parameters placed and padded copies */
    uint32_t busy_end; /* tiles that take part in the operation end here, when known */
} Bill;

static double pack_cycles(Planner *p, const TensorType *type, const TensorType *staging)
{
    ShardOf shards[2] = {{type, 0}, {staging, 0}};
    double cycles = 0;
    if (status_discard(
            costs_pattern(&p->costs, (KernelSpec){.family = KERNEL_PACK}, shards, 2, &cycles)))
        return 1e12;
    return cycles;
}

/* One operand: finds or places its storage and adds the conversion to the bill. */
static Status bill_operand(Walk *w, const State *state, Next *next, ValueId value,
                           const TensorType *type, const OperandPlan *operand, const Mapping *extra,
                           bool in_place, Bill *bill)
{
    Planner *p = w->p;
    uint32_t storage = storage_of(state, next, value);
    if (storage == UNSET || storage == DEFERRED)
        return status_error("value %u is not there", value);
    bool staged = operand->staging == STAGING_ROW_MAJOR;
    TensorType rows = {.shape = type->shape, .format = plan_staging_format(&type->format)};
    if (storage == FREE) {
        bool once = is_input(p, value) || p->options->weights_once;
        storage =
            place_free(w, value, staged && once ? &rows : type, extra == NULL, bill->busy_end);
        update(next, value, storage);
        uint64_t members = p->graph->values.items[value].kind == VALUE_ARGUMENT ? w->iterations : 1;
        bill->resident += members * type_max_shard_bytes(&p->costs.storages.items[storage].type);
    }
    Conversion c;
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
    bill->local += c.local;
    uint64_t bytes = type_max_shard_bytes(type);
    if (staged) {
        bill->local += pack_cycles(p, type, &rows);
        bill->bytes += 2 * bytes;
    } else if (type->format.order.kind != ORDER_ROW_MAJOR) {
        bill->resident += bytes; /* padded: a buffer of its own */
    } else {
        bill->bytes += bytes;
    }
    return STATUS_OK;
}

static void finish(Walk *w, const State *state, Next *next, const Bill *bill, double kernel,
                   double inside, uint64_t bytes)
{
    Planner *p = w->p;
    double outside = target_phase_cost(bill->words, bill->sources);
    next->exchange = outside + inside;
    next->cycles = next->exchange + bill->local + kernel;
    next->cost = state->cost + next->cycles;
    next->rank = next->cost - FUSED_ADD * next->ahead;
    next->resident = state->resident + bill->resident;
    next->order = (uint32_t)w->nexts.count;
    uint64_t needed = next->resident + bill->bytes + bytes;
    if (needed > p->budget) {
        p->missing = needed - p->budget < p->missing ? needed - p->budget : p->missing;
        return;
    }
    array_push(&w->nexts, *next);
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
        from = place_free(w, o->inputs[0], &rows, true, 0);
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

static Status step_gemm(Walk *w, const State *state, const Candidate *c, Next next)
{
    Planner *p = w->p;
    const OpPlan *plan = &c->plan;
    const Graph *g = p->graph;
    TensorType type, result;
    Mapping mapping;
    Bill bill = {0}, sum = {.words = c->words, .sources = c->sources};
    sum.busy_end = plan->partial.first_tile + plan->partial.tile_count;
    for (uint32_t j = 0; j < 2; j++) {
        TRY(plan_operand_type(g, w->op, plan, j, &type));
        TRY(bill_operand(w, state, &next, plan_input(g, w->op, plan, j), &type, &plan->operands[j],
                         NULL, false, &bill));
    }
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
    store(w, &next, stored, &result, &mapping);
    bill.local += sum.local;
    bill.resident += sum.resident;
    next.ahead = plan->operand_count - 2;
    double inside = plan->inner > 1 ? target_phase_cost(sum.words, sum.sources) : 0;
    next.plan = plan;
    finish(w, state, &next, &bill, c->kernel, inside, c->bytes + sum.bytes);
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
static Status step_pointwise(Walk *w, const State *state, const CandidateArray *fixed, Next next)
{
    Planner *p = w->p;
    const Operation *o = plan_operation(p->graph, w->op);
    bool fused = o->kind == OP_GELU && state->storage[o->inputs[0]] == DEFERRED;
    OpPlan shape_only = {.algorithm = ALGORITHM_POINTWISE, .operand_count = fused ? 2 : 1};
    uint32_t operands = o->kind == OP_ADD || fused ? 2 : 1;
    Status why = STATUS_OK;
    for (uint32_t j = 0; j < operands; j++) {
        ValueId value = plan_input(p->graph, w->op, &shape_only, j);
        uint32_t storage = state->storage[value];
        if (storage >= DEFERRED ||
            !shape_equal(plan_shape(p->graph, value), plan_shape(p->graph, o->results[0])))
            continue;
        const Storage *s = &p->costs.storages.items[storage];
        Candidate *c = arena_new(p->arena, Candidate);
        Format format = s->type.format;
        if (!mapping_is_identity(&s->mapping) || !pointwise_candidate(p, w->op, fused, &format, c))
            continue;
        status_free(why);
        why = step_simple(w, state, c, next);
    }
    for (size_t i = 0; i < fixed->count; i++) {
        Candidate *c = arena_new(p->arena, Candidate);
        const Candidate *use = &fixed->items[i];
        if (fused) {
            if (!pointwise_candidate(p, w->op, true, &use->plan.result, c))
                continue;
            use = c;
        }
        status_free(why);
        why = step_simple(w, state, use, next);
    }
    if (can_defer(p, w->op))
        step_deferred(w, state, next);
    return why;
}

static Status step_fused(Walk *w, const State *state, Next next)
{
    const Operation *o = plan_operation(w->p->graph, w->op);
    OpPlan *plan = arena_new(w->p->arena, OpPlan);
    *plan = (OpPlan){.key = o->key, .algorithm = ALGORITHM_POINTWISE};
    plan->rows = plan->columns = plan->inner = 1;
    next.plan = plan;
    next.fused = FUSED_INTO_PRODUCER;
    next.ahead = state->storage[o->results[0]] == UNSET; /* one more add is done */
    Bill bill = {0};
    finish(w, state, &next, &bill, 0, 0, 0);
    return STATUS_OK;
}

/* An add that a product before it took over: its result is stored, or an input never will be. */
static bool done_by_producer(const State *state, const Operation *o)
{
    return o->kind == OP_ADD &&
           (state->storage[o->results[0]] != UNSET || state->storage[o->inputs[0]] == UNSET ||
            state->storage[o->inputs[1]] == UNSET);
}

/* ---- the walk ---- */

static State next_state(Walk *w, const StateArray *states, const Next *next)
{
    Planner *p = w->p;
    const State *from = &states->items[next->state];
    uint32_t values = (uint32_t)p->graph->values.count;
    State state = {.cost = next->cost, .resident = next->resident};
    state.storage = arena_array(p->arena, uint32_t, values);
    memcpy(state.storage, from->storage, values * sizeof *state.storage);
    for (uint32_t i = 0; i < next->update_count; i++)
        state.storage[next->updates[i].value] = next->updates[i].storage;
    Choice *choice = arena_new(p->arena, Choice);
    *choice = (Choice){.op = w->op, .plan = *next->plan, .before = from->choices};
    choice->plan.in_place = next->in_place;
    choice->plan.fused = next->fused;
    choice->plan.cycles = next->cycles;
    choice->plan.exchange_cycles = next->exchange;
    state.choices = choice;
    return state;
}

static int by_rank(const void *left, const void *right)
{
    const Next *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

/* What later operations can tell two states apart by. */
static uint64_t live_hash(const Planner *p, const State *state, uint32_t op)
{
    uint64_t hash = 0;
    for (uint32_t v = 0; v < p->graph->values.count; v++)
        if (p->last_use[v] > op && state->storage[v] != UNSET) {
            uint32_t pair[2] = {v, state->storage[v]};
            hash = hash_bytes(pair, sizeof pair, hash);
        }
    return hash;
}

static void keep_best(Walk *w, const StateArray *states, StateArray *out)
{
    Map seen = {0};
    if (w->nexts.count)
        qsort(w->nexts.items, w->nexts.count, sizeof *w->nexts.items, by_rank);
    out->count = 0;
    for (size_t i = 0; i < w->nexts.count && out->count < w->p->beam; i++) {
        State state = next_state(w, states, &w->nexts.items[i]);
        bool added;
        map_at(&seen, live_hash(w->p, &state, w->op), &added);
        if (added)
            array_push(out, state);
    }
    map_free(&seen);
}

static Status step_any(Walk *w, const State *state, Next next)
{
    Planner *p = w->p;
    const Operation *o = plan_operation(p->graph, w->op);
    const CandidateArray *fixed;
    Status why = STATUS_OK;
    if (o->kind == OP_SLICE || o->kind == OP_VIEW)
        return step_view(w, state, next);
    if (done_by_producer(state, o))
        return step_fused(w, state, next);
    TRY(make_candidates(p, w->op, &fixed));
    if (o->kind == OP_ADD || o->kind == OP_GELU)
        return step_pointwise(w, state, fixed, next);
    for (size_t i = 0; i < fixed->count; i++) {
        status_free(why);
        const Candidate *c = &fixed->items[i];
        why = o->kind == OP_GEMM        ? step_gemm(w, state, c, next)
              : o->kind == OP_ATTENTION ? step_attention(w, state, c, next)
                                        : step_simple(w, state, c, next);
    }
    return why;
}

static Status walk_region(Planner *p, uint32_t region, uint32_t iterations, const State *start,
                          StateArray *out);

/* ---- repeat ---- */

typedef struct Ending { /* a body from one set of entry formats to the end of an iteration */
    State state;
    double cost; /* of an iteration, bringing the yields back included */
    uint32_t entry[PLAN_OPERANDS];
} Ending;
typedef ARRAY(Ending) EndingArray;

static bool same_entry(const Operation *o, const uint32_t *a, const uint32_t *b)
{
    return memcmp(a, b, o->carried_count * sizeof *a) == 0;
}

/* Searches the body for carried values that come in with these storages. */
static Status search_body(Planner *p, const Operation *o, const State *outer, const uint32_t *entry,
                          EndingArray *endings, uint32_t *yields)
{
    const GraphRegion *body = &p->graph->regions.items[o->body];
    State start = *outer;
    StateArray ends = {0};
    start.cost = 0;
    start.choices = NULL;
    start.storage = arena_array(p->arena, uint32_t, p->graph->values.count);
    memcpy(start.storage, outer->storage, p->graph->values.count * sizeof *start.storage);
    for (uint32_t j = 0; j < o->carried_count; j++)
        start.storage[body->arguments[j]] = entry[j];
    for (uint32_t s = 0; s < o->sequence_count; s++)
        start.storage[body->arguments[o->carried_count + s]] = FREE;
    TRY(walk_region(p, o->body, o->count, &start, &ends));
    uint32_t kept = 0;
    for (size_t i = 0; i < ends.count; i++) {
        Ending ending = {.state = ends.items[i], .cost = ends.items[i].cost};
        uint32_t words = 0, sources = 0;
        bool good = true;
        for (uint32_t j = 0; j < o->carried_count; j++) {
            uint32_t yield = ends.items[i].storage[body->yields[j]];
            TensorType type = p->costs.storages.items[entry[j]].type;
            Conversion c;
            ending.entry[j] = entry[j];
            if (yields && i == 0)
                yields[j] = yield;
            good = good && yield < DEFERRED &&
                   !status_discard(costs_conversion(&p->costs, yield, NULL, &type, &c));
            if (!good || c.view)
                continue;
            words += c.words;
            sources = max_u32(sources, c.sources);
            ending.cost += c.local;
        }
        ending.cost += target_phase_cost(words, sources);
        if (good && kept++ < BODY_ENDINGS)
            array_push(endings, ending);
    }
    array_free(&ends);
    return STATUS_OK;
}

/* A carried value needs a format of its own: a stored tensor of its shape, mapped one to one. */
static bool entry_of(Planner *p, const Operation *o, const State *state, uint32_t *entry)
{
    for (uint32_t j = 0; j < o->carried_count; j++) {
        uint32_t storage = state->storage[o->inputs[j]];
        const Shape *shape = plan_shape(p->graph, o->inputs[j]);
        bool plain =
            storage < DEFERRED && mapping_is_identity(&p->costs.storages.items[storage].mapping);
        TensorType type = {*shape, rows_format(shape, p->options->tiles, 0)};
        if (plain)
            type = p->costs.storages.items[storage].type;
        type.format.memory_class = MEMORY_STANDARD;
        Mapping identity = mapping_identity(shape);
        entry[j] = costs_storage(&p->costs, &type, &identity);
    }
    return true;
}

/* Entry formats to try: those of the states, then what the best bodies hand back. */
static Status body_endings(Planner *p, const Operation *o, const StateArray *states,
                           EndingArray *endings)
{
    ARRAY(uint32_t) tried = {0};
    uint32_t n = o->carried_count, limit = 6;
    Status why = STATUS_OK;
    for (size_t i = 0; i < states->count && tried.count < limit * n; i++) {
        uint32_t entry[PLAN_OPERANDS], yields[PLAN_OPERANDS];
        entry_of(p, o, &states->items[i], entry);
        for (uint32_t again = 0; again < 3; again++) {
            bool known = false;
            for (size_t t = 0; t + n <= tried.count; t += n)
                known |= same_entry(o, tried.items + t, entry);
            if (known)
                break;
            array_append(&tried, entry, n);
            status_free(why);
            why = search_body(p, o, &states->items[i], entry, endings, yields);
            if (!status_ok(why))
                break;
            State handed = states->items[i];
            uint32_t *storage = arena_array(p->arena, uint32_t, p->graph->values.count);
            memcpy(storage, handed.storage, p->graph->values.count * sizeof *storage);
            for (uint32_t j = 0; j < n; j++)
                storage[o->inputs[j]] = yields[j];
            handed.storage = storage;
            entry_of(p, o, &handed, entry);
        }
    }
    array_free(&tried);
    if (endings->count == 0)
        return status_ok(why) ? status_error("no body") : why;
    status_free(why);
    return STATUS_OK;
}

static State enter(Walk *w, const State *from, const Operation *o, const Ending *ending,
                   double conversion, double exchange)
{
    Planner *p = w->p;
    const GraphRegion *body = &p->graph->regions.items[o->body];
    State state = {.resident = from->resident + ending->state.resident};
    state.cost = from->cost + conversion + o->count * ending->cost;
    state.storage = arena_array(p->arena, uint32_t, p->graph->values.count);
    for (uint32_t v = 0; v < p->graph->values.count; v++)
        state.storage[v] = from->storage[v] == UNSET || from->storage[v] == FREE
                               ? ending->state.storage[v]
                               : from->storage[v];
    Choice *choice = arena_new(p->arena, Choice);
    *choice = (Choice){.op = w->op, .before = from->choices, .body = ending->state.choices};
    choice->plan = (OpPlan){.key = o->key,
                            .algorithm = ALGORITHM_REPEAT,
                            .rows = 1,
                            .columns = 1,
                            .inner = 1,
                            .operand_count = o->carried_count};
    for (uint32_t j = 0; j < o->carried_count; j++) {
        choice->plan.operands[j].format = p->costs.storages.items[ending->entry[j]].type.format;
        state.storage[o->results[j]] = state.storage[body->arguments[j]] = ending->entry[j];
    }
    choice->plan.cycles = conversion + o->count * ending->cost;
    choice->plan.exchange_cycles = exchange;
    state.choices = choice;
    return state;
}

static int state_by_cost(const void *left, const void *right)
{
    const State *a = left, *b = right;
    return a->cost < b->cost ? -1 : a->cost > b->cost;
}

static Status walk_repeat(Walk *w, const StateArray *states, StateArray *out)
{
    Planner *p = w->p;
    const Operation *o = plan_operation(p->graph, w->op);
    EndingArray endings = {0};
    StateArray all = {0};
    if (o->carried_count > PLAN_OPERANDS)
        return status_error("%s: %u carried values, %u are possible", o->key, o->carried_count,
                            PLAN_OPERANDS);
    Status status = body_endings(p, o, states, &endings);
    for (size_t i = 0; status_ok(status) && i < states->count; i++)
        for (size_t e = 0; e < endings.count; e++) {
            Walk outside = *w;
            Next next = {0};
            Bill bill = {0};
            bool good = true;
            for (uint32_t j = 0; j < o->carried_count; j++) {
                const OperandPlan plain = {0};
                TensorType type = p->costs.storages.items[endings.items[e].entry[j]].type;
                good = good && !status_discard(bill_operand(&outside, &states->items[i], &next,
                                                            o->inputs[j], &type, &plain, NULL,
                                                            false, &bill));
            }
            double exchange = target_phase_cost(bill.words, bill.sources);
            State state =
                enter(w, &states->items[i], o, &endings.items[e], exchange + bill.local, exchange);
            for (uint32_t u = 0; u < next.update_count; u++)
                state.storage[next.updates[u].value] = next.updates[u].storage;
            state.resident += bill.resident;
            if (good && state.resident <= p->budget)
                array_push(&all, state);
        }
    /* Stable: insertion order decides ties. */
    for (size_t i = 1; i < all.count; i++)
        for (size_t j = i; j > 0 && state_by_cost(&all.items[j], &all.items[j - 1]) < 0; j--) {
            State swap = all.items[j];
            all.items[j] = all.items[j - 1];
            all.items[j - 1] = swap;
        }
    Map seen = {0};
    out->count = 0;
    for (size_t i = 0; i < all.count && out->count < p->beam; i++) {
        bool added;
        map_at(&seen, live_hash(p, &all.items[i], w->op), &added);
        if (added)
            array_push(out, all.items[i]);
    }
    map_free(&seen);
    array_free(&all);
    array_free(&endings);
    if (status_ok(status) && out->count == 0)
        status = status_error("the body's parameters do not fit");
    return status;
}

static Status no_plan(const Planner *p, const Operation *o, Status why)
{
    if (!status_ok(why))
        return status_context(why, "%s: no plan", o->key);
    if (p->missing != UINT64_MAX)
        return status_error("%s: no plan fits into a tile's memory: the best needs %llu bytes more "
                            "than the %llu there are; use more than %u tiles",
                            o->key, (unsigned long long)p->missing, (unsigned long long)p->budget,
                            p->options->tiles);
    return status_error("%s: no plan", o->key);
}

static Status walk_region(Planner *p, uint32_t region, uint32_t iterations, const State *start,
                          StateArray *out)
{
    const GraphRegion *r = &p->graph->regions.items[region];
    StateArray now = {0}, after = {0};
    Walk w = {.p = p, .iterations = iterations};
    Status status = STATUS_OK;
    array_push(&now, *start);
    for (uint32_t i = 0; i < r->operation_count && status_ok(status); i++) {
        Status why = STATUS_OK;
        w.op = r->operations[i];
        w.nexts.count = 0;
        p->missing = UINT64_MAX;
        if (plan_operation(p->graph, w.op)->kind == OP_REPEAT) {
            status = walk_repeat(&w, &now, &after);
        } else {
            for (uint32_t s = 0; s < now.count; s++) {
                status_free(why);
                why = step_any(&w, &now.items[s], (Next){.state = s});
            }
            if (w.nexts.count)
                status_free(why), why = STATUS_OK;
            keep_best(&w, &now, &after);
            if (after.count == 0)
                status = no_plan(p, plan_operation(p->graph, w.op), why);
        }
        StateArray swap = now;
        now = after;
        after = swap;
    }
    array_free(&after);
    array_free(&w.nexts);
    if (status_ok(status))
        *out = now;
    else
        array_free(&now);
    return status;
}

/* ---- from the best states to recipes ---- */

static void write_choices(const Choice *choices, Recipe *recipe)
{
    for (const Choice *c = choices; c; c = c->before) {
        recipe->ops[c->op] = c->plan;
        write_choices(c->body, recipe);
    }
}

static void make_recipe(Planner *p, const State *state, Recipe *recipe)
{
    const Graph *g = p->graph;
    *recipe = (Recipe){.tiles = p->options->tiles,
                       .weights_once = p->options->weights_once,
                       .pairs = p->options->pairs,
                       .op_count = (uint32_t)g->operations.count,
                       .predicted_cycles = state->cost};
    recipe->ops = arena_array(p->arena, OpPlan, g->operations.count);
    recipe->parameters = arena_array(p->arena, Format, g->values.count);
    recipe->outputs = arena_array(p->arena, Format, g->outputs.count);
    write_choices(state->choices, recipe);
    for (uint32_t v = 0; v < g->values.count; v++) {
        uint8_t kind = g->values.items[v].kind;
        uint32_t storage = state->storage[v];
        if (kind == VALUE_RESULT)
            continue;
        recipe->parameters[v] = storage < DEFERRED
                                    ? p->costs.storages.items[storage].type.format
                                    : rows_format(plan_shape(g, v), p->options->tiles, 0);
    }
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        ValueId value = g->outputs.items[i].value;
        uint32_t storage = state->storage[value];
        bool plain =
            storage < DEFERRED && mapping_is_identity(&p->costs.storages.items[storage].mapping);
        recipe->outputs[i] = plain ? p->costs.storages.items[storage].type.format
                                   : rows_format(plan_shape(g, value), p->options->tiles, 0);
    }
}

/* Readers of a value; a view's readers read the memory of what it views. */
static void find_uses(Planner *p)
{
    const Graph *g = p->graph;
    for (uint32_t i = 0; i < g->operations.count; i++) {
        const Operation *o = plan_operation(g, i);
        for (uint32_t j = 0; j < o->input_count; j++) {
            p->uses[o->inputs[j]]++;
            p->last_use[o->inputs[j]] = max_u32(p->last_use[o->inputs[j]], i);
        }
    }
    for (uint32_t r = 0; r < g->regions.count; r++)
        for (uint32_t j = 0; j < g->regions.items[r].yield_count; j++) {
            p->uses[g->regions.items[r].yields[j]]++;
            p->last_use[g->regions.items[r].yields[j]] = (uint32_t)g->operations.count;
        }
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        p->uses[g->outputs.items[i].value]++;
        p->last_use[g->outputs.items[i].value] = (uint32_t)g->operations.count;
    }
    for (uint32_t i = (uint32_t)g->operations.count; i-- > 0;) {
        const Operation *o = plan_operation(g, i);
        if (o->kind == OP_SLICE || o->kind == OP_VIEW)
            p->last_use[o->inputs[0]] =
                max_u32(p->last_use[o->inputs[0]], p->last_use[o->results[0]]);
    }
}

static Status search(Planner *p, Recipe **out, uint32_t *count)
{
    const Graph *g = p->graph;
    State start = {.storage = arena_array(p->arena, uint32_t, g->values.count)};
    for (uint32_t v = 0; v < g->values.count; v++) {
        uint8_t kind = g->values.items[v].kind;
        start.storage[v] = kind == VALUE_INPUT || kind == VALUE_PARAMETER ? FREE : UNSET;
    }
    StateArray ends = {0};
    TRY(walk_region(p, 0, 1, &start, &ends));
    *count = (uint32_t)ends.count;
    *out = arena_array(p->arena, Recipe, ends.count);
    for (size_t i = 0; i < ends.count; i++)
        make_recipe(p, &ends.items[i], *out + i);
    array_free(&ends);
    return STATUS_OK;
}

Status plan_search(Arena *arena, const Graph *graph, const PlanOptions *options, Pool *pool,
                   Recipe **out, uint32_t *count)
{
    enum { CODE_AND_ROWS = 100 << 10, PLANNED_DATA = 586960 };
    (void)pool; /* one thread is fast enough; results never depend on it */
    *count = 0;
    if (options->tiles < 1 || options->tiles > TILES)
        return status_error("%u tiles: 1 to %u are possible", options->tiles, TILES);
    if (options->precision.kind != F16)
        return status_error("only F16 can be planned");
    Planner p = {.arena = arena, .graph = graph, .options = options};
    p.beam = options->beam ? options->beam : DEFAULT_BEAM;
    p.budget = PLANNED_DATA - CODE_AND_ROWS;
    p.missing = UINT64_MAX;
    p.uses = arena_array(arena, uint32_t, graph->values.count);
    p.last_use = arena_array(arena, uint32_t, graph->values.count);
    p.candidates = xcalloc(graph->operations.count + 1, sizeof *p.candidates);
    find_uses(&p);
    Status status = search(&p, out, count);
    for (size_t i = 0; i < graph->operations.count; i++)
        array_free(&p.candidates[i]);
    free(p.candidates);
    costs_free(&p.costs);
    return status;
}
