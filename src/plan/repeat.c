/* repeat.c - a repeat in the search: its body is searched once for every format that its carried
 * values may come in with, and must hand them back in that format. */
#include "plan/walk.h"

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

Status walk_repeat(Walk *w, const StateArray *states, StateArray *out)
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
