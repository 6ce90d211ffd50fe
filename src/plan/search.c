/* search.c - beam search over the operations in order.
 *
 * A state is the formats in which the live values lie; a step chooses how one operation runs and
 * adds what that costs: the conversions of its operands, its own exchanges, its kernels. States
 * that agree on everything still live are one: the cheaper stays. Ties break by order of
 * generation: the result depends on nothing but graph and options. */
#include "plan/walk.h"

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
    choice->plan.spread = next->spread;
    choice->plan.own = next->own;
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
uint64_t live_hash(const Planner *p, const State *state, uint32_t op)
{
    uint64_t hash = 0;
    for (uint32_t v = 0; v < p->graph->values.count; v++)
        if (p->last_use[v] > op && state->storage[v] != UNSET) {
            uint32_t pair[2] = {v, state->storage[v]};
            hash = hash_bytes(pair, sizeof pair, hash);
        }
    return hash;
}

/* The best, and behind them those that leave more memory free than any better one, as a plan that
 * is quick now may ask for what a later operation needs, and some of each class. */
static void keep_best(Walk *w, const StateArray *states, StateArray *out)
{
    Map seen = {0};
    uint32_t beam = w->beam;
    uint64_t lightest = UINT64_MAX;
    if (w->nexts.count)
        qsort(w->nexts.items, w->nexts.count, sizeof *w->nexts.items, by_rank);
    out->count = 0;
    uint32_t of_class[STEP_CLASSES] = {0};
    for (size_t i = 0; i < w->nexts.count && out->count < 2 * beam; i++) {
        const Next *next = &w->nexts.items[i];
        uint32_t class = step_class(next->plan);
        if (out->count >= beam && of_class[class] >= PER_CLASS &&
            (w->last || next->resident >= lightest))
            continue;
        State state = next_state(w, states, next);
        bool added;
        map_at(&seen, live_hash(w->p, &state, w->op), &added);
        if (!added)
            continue;
        array_push(out, state);
        of_class[class]++;
        lightest = state.resident < lightest ? state.resident : lightest;
    }
    map_free(&seen);
}

static Status no_plan(const Planner *p, const Operation *o, Status why)
{
    if (!status_ok(why))
        return status_context(why, "%s: no plan", o->key);
    if (p->missing != UINT64_MAX)
        return status_context(
            status_error("%s: no plan fits into a tile's memory: the best needs %llu bytes more "
                         "than the %llu there are",
                         o->key, (unsigned long long)p->missing, (unsigned long long)p->budget),
            p->options->tiles < TILES  ? "more than %u tiles are needed"
            : p->options->weights_once ? "%u tiles are all there are: make the operands smaller"
                                       : "%u tiles are all there are: store parameters once",
            p->options->tiles);
    return status_error("%s: no plan", o->key);
}

Status walk_region(Planner *p, uint32_t region, uint32_t iterations, const State *start,
                   StateArray *out)
{
    const GraphRegion *r = &p->graph->regions.items[region];
    StateArray now = {0}, after = {0};
    Walk w = {.p = p, .iterations = iterations, .best = xcalloc(p->beam, sizeof *w.best)};
    Status status = STATUS_OK;
    array_push(&now, *start);
    for (uint32_t i = 0; i < r->operation_count && status_ok(status); i++) {
        Status why = STATUS_OK;
        log_progress(i, region == 0 ? r->operation_count : 0);
        w.op = r->operations[i];
        w.nexts.count = 0;
        w.last = region == 0 && i + 1 == r->operation_count;
        w.beam = w.last ? min_u32(p->beam, LAST_BEAM) : p->beam;
        w.ranked = 0;
        w.lightest = UINT64_MAX;
        p->missing = UINT64_MAX;
        if (plan_operation(p->graph, w.op)->kind == OP_REPEAT) {
            status = walk_repeat(&w, &now, &after);
        } else {
            why = walk_operation(&w, &now);
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
    array_free(&w.targets);
    map_free(&w.target_ids);
    free(w.best);
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

static uint32_t linear_storage(Planner *p, ValueId value)
{
    const Shape *shape = plan_shape(p->graph, value);
    TensorType type = {*shape, linear_format(shape, p->options->tiles)};
    Mapping identity = mapping_identity(shape);
    return costs_storage(&p->costs, &type, &identity);
}

/* Brings every output to row-major order; the best state comes first, others that can not go. */
static Status finish_outputs(Planner *p, StateArray *ends)
{
    const Graph *g = p->graph;
    Status why = STATUS_OK;
    size_t kept = 0;
    for (size_t i = 0; i < ends->count; i++) {
        State state = ends->items[i];
        Status status = STATUS_OK;
        for (uint32_t j = 0; j < g->outputs.count && status_ok(status); j++) {
            ValueId value = g->outputs.items[j].value;
            uint32_t wanted = linear_storage(p, value);
            TensorType type = p->costs.storages.items[wanted].type;
            Conversion c;
            status = costs_conversion(&p->costs, state.storage[value], NULL, &type, &c);
            if (!status_ok(status) || c.view)
                continue;
            state.cost += target_phase_cost(c.words, c.sources) + c.local;
            state.storage[value] = wanted;
        }
        if (!status_ok(status)) {
            status_free(why);
            why = status;
            continue;
        }
        size_t at = kept++;
        for (; at > 0 && ends->items[at - 1].cost > state.cost; at--)
            ends->items[at] = ends->items[at - 1];
        ends->items[at] = state;
    }
    ends->count = kept;
    if (kept)
        status_free(why), why = STATUS_OK;
    return status_context(why, "no plan ends in row-major order");
}

static Status search(Planner *p, Recipe **out, uint32_t *count)
{
    const Graph *g = p->graph;
    State start = {.storage = arena_array(p->arena, uint32_t, g->values.count)};
    for (uint32_t v = 0; v < g->values.count; v++) {
        uint8_t kind = g->values.items[v].kind;
        start.storage[v] = kind == VALUE_INPUT || kind == VALUE_PARAMETER ? FREE : UNSET;
        if (kind == VALUE_INPUT && p->options->io_row_major)
            start.storage[v] = linear_storage(p, v);
    }
    StateArray ends = {0};
    TRY(walk_region(p, 0, 1, &start, &ends));
    if (p->options->io_row_major)
        TRY(finish_outputs(p, &ends));
    *count = (uint32_t)ends.count;
    *out = arena_array(p->arena, Recipe, ends.count);
    for (size_t i = 0; i < ends.count; i++)
        make_recipe(p, &ends.items[i], *out + i);
    array_free(&ends);
    return STATUS_OK;
}

static void forget_candidates(Planner *p)
{
    for (size_t i = 0; i < p->graph->operations.count; i++)
        array_free(&p->candidates[i]);
}

Status plan_search(Arena *arena, const Graph *graph, const PlanOptions *options, Pool *pool,
                   Recipe **out, uint32_t *count)
{
    enum { CODE_AND_ROWS = 100 << 10, PLANNED_DATA = 586960 };
    *count = 0;
    if (options->tiles < 1 || options->tiles > TILES)
        return status_error("%u tiles: 1 to %u are possible", options->tiles, TILES);
    if (options->precision.kind != F16)
        return status_error("only F16 can be planned");
    Pool *own = pool ? NULL : pool_create(1);
    Planner p = {.arena = arena, .graph = graph, .options = options, .pool = pool ? pool : own};
    p.beam = options->beam ? min_u32(options->beam, MOST_BEAM) : DEFAULT_BEAM;
    p.budget = PLANNED_DATA - CODE_AND_ROWS;
    p.budget -= min_u32(options->reserve, (uint32_t)p.budget);
    p.missing = UINT64_MAX;
    p.costs.pairs = options->pairs;
    p.uses = arena_array(arena, uint32_t, graph->values.count);
    p.last_use = arena_array(arena, uint32_t, graph->values.count);
    p.candidates = xcalloc(graph->operations.count + 1, sizeof *p.candidates);
    p.listed = arena_array(arena, Listed, graph->operations.count);
    find_uses(&p);
    Status status =
        constraints_read(arena, graph, options->constraints, &p.constraints, &p.constraint_count);
    if (status_ok(status))
        status = search(&p, out, count);
    if (!status_ok(status) && p.memory_short) {
        forget_candidates(&p);
        status_free(status);
        p.frugal = true;
        log_event(LOG_DEBUG, "planning again with less memory", "%s", "");
        status = search(&p, out, count);
    }
    if (status_ok(status) && options->report)
        frontier_report(&p, options->report);
    forget_candidates(&p);
    free(p.candidates);
    costs_free(&p.costs);
    pool_destroy(own);
    return status;
}
