/* bounds.c - steps in order of what they cost at least, so that most are never counted.
 *
 * The cost of a candidate from a state is known but for the conversion of its operands, and to
 * count a conversion run by run is what takes the search its time. What a tile must receive is
 * known from the two regions it has before and after: that bounds the conversion from below, for
 * a hundredth of the work. Pairs of state and candidate are taken in the order of that bound, some
 * at a time, until the steps that are kept are known to be better than all the rest; and of two
 * pairs that end alike, the second is dropped when its bound is above the cost of the first. What
 * the next ones need is counted together, on all cores. */
#include "plan/walk.h"

#include <stdlib.h>

/* ---- what every tile holds of a tensor ---- */

typedef struct Table {
    TensorType type;
    Region *regions;   /* by shard; rank 0: nothing logical in it */
    int32_t *shard_of; /* by tile, -1: none */
    uint32_t tiles;
} Table;

typedef struct Tables {
    uint32_t tiles;
    Map ids; /* hash of the type -> index */
    ARRAY(Table) items;
} Tables;

static uint32_t table_of(Tables *tables, const TensorType *type)
{
    bool added;
    uint64_t *slot = map_at(&tables->ids, hash_type(type, 3), &added);
    if (!added)
        return (uint32_t)*slot;
    uint32_t shards = type_shard_count(type), replicas = type->format.replicas;
    Table table = {.type = *type, .tiles = tables->tiles};
    table.regions = xcalloc(shards + 1, sizeof *table.regions);
    table.shard_of = xmalloc(tables->tiles * sizeof *table.shard_of);
    for (uint32_t t = 0; t < tables->tiles; t++)
        table.shard_of[t] = -1;
    uint32_t *homes = xcalloc(type->format.tile_count + 1, sizeof *homes);
    type_tiles(type, homes);
    for (uint32_t s = 0; s < shards; s++) {
        if (!type_shard_region(type, s, &table.regions[s]))
            table.regions[s].rank = 0;
        for (uint32_t r = 0; r < replicas; r++)
            if (homes[s * replicas + r] < tables->tiles)
                table.shard_of[homes[s * replicas + r]] = (int32_t)s;
    }
    free(homes);
    *slot = tables->items.count;
    array_push(&tables->items, table);
    return (uint32_t)*slot;
}

static void tables_free(Tables *tables)
{
    for (size_t i = 0; i < tables->items.count; i++) {
        free(tables->items.items[i].regions);
        free(tables->items.items[i].shard_of);
    }
    array_free(&tables->items);
    map_free(&tables->ids);
}

static uint64_t volume(const Region *region, const Region *within)
{
    uint64_t elements = region->rank > 0;
    for (uint32_t a = 0; a < region->rank; a++) {
        uint32_t start = region->start[a], end = region->logical_end[a];
        if (within) {
            start = max_u32(start, within->start[a]);
            end = min_u32(end, within->logical_end[a]);
        }
        elements *= end > start ? end - start : 0;
    }
    return elements;
}

/* Events that some tile receives at least, counted as conversions are (cost.c): the mean of words
 * and of items, two words where both tiles of a pair take them. */
static uint32_t received_words(const Table *from, const Table *to, bool pairs)
{
    uint64_t most = 0, most_items = 0;
    if (to->type.format.shares > 1) /* the regions are those of whole blocks */
        return 0;
    for (uint32_t t = 0; t < to->tiles; t++) {
        int32_t shard = to->shard_of[t], held = from->shard_of[t];
        if (shard < 0)
            continue;
        const Region *wanted = &to->regions[shard];
        uint64_t missing = volume(wanted, NULL);
        if (held >= 0 && from->regions[held].rank == wanted->rank)
            missing -= volume(wanted, &from->regions[held]);
        uint32_t twin = t ^ 1u;
        bool wide = pairs && twin < to->tiles && to->shard_of[twin] == shard;
        uint64_t items = wide ? missing / 2 : missing;
        most = missing > most ? missing : most;
        most_items = items > most_items ? items : most_items;
    }
    return (uint32_t)((most + most_items) / 2 * precision_bytes(to->type.format.precision) / 4);
}

/* ---- pairs of state and candidate ---- */

typedef struct Pair {
    double least;
    uint64_t target; /* what its successor can be told by */
    uint32_t state, order;
    const Candidate *candidate;
} Pair;
typedef ARRAY(Pair) PairArray;

typedef struct Steps {
    Walk *w;
    const StateArray *states;
    Tables tables;
    Map words; /* (storage, table) -> words at least */
    PairArray pairs;
} Steps;

/* Of a value that nobody has placed yet: a parameter lies where it is wanted, or in small parts. */
static uint32_t free_words(const Planner *p, ValueId value, const Table *to)
{
    enum { PART_BYTES = 16 << 10 };
    bool once = p->graph->values.items[value].kind == VALUE_INPUT || p->options->weights_once;
    if (!once || to->type.format.replicas < 2)
        return 0;
    uint64_t bytes = volume(&to->regions[0], NULL) * precision_bytes(to->type.format.precision);
    uint64_t share = bytes / to->type.format.replicas; /* that lies where it is wanted */
    uint64_t held = share > PART_BYTES ? share : PART_BYTES;
    uint64_t words = bytes > held ? (bytes - held) / 4 : 0;
    return (uint32_t)(p->costs.pairs ? words / 4 * 3 : words);
}

/* Of a slice of K or a view: what it needs is somewhere in the stored tensor, each element of it
 * once, if it is a product's. */
static uint32_t part_words(const Planner *p, const TensorType *from, const Table *to)
{
    uint64_t bytes = volume(&to->regions[0], NULL) * precision_bytes(to->type.format.precision);
    uint64_t held = type_max_shard_bytes(from), words = bytes > held ? (bytes - held) / 4 : 0;
    return (uint32_t)(p->costs.pairs && to->type.format.replicas > 1 ? words / 4 * 3 : words);
}

static uint32_t operand_words(Steps *x, const State *state, ValueId value, uint32_t table)
{
    const Planner *p = x->w->p;
    uint32_t storage = state->storage[value];
    if (storage >= DEFERRED)
        return free_words(p, value, &x->tables.items.items[table]);
    bool added;
    uint64_t *slot = map_at(&x->words, (uint64_t)storage << 32 | table, &added);
    if (!added)
        return (uint32_t)*slot;
    const Storage *s = &p->costs.storages.items[storage];
    TensorType type = s->type;
    if (!mapping_is_identity(&s->mapping) ||
        !shape_equal(&type.shape, &x->tables.items.items[table].type.shape))
        return (uint32_t)(*slot = part_words(p, &type, &x->tables.items.items[table]));
    uint32_t from = table_of(&x->tables, &type);
    uint32_t words =
        received_words(&x->tables.items.items[from], &x->tables.items.items[table], p->costs.pairs);
    return (uint32_t)(*slot = words);
}

/* The live values after the step: what is live before and the result. 0: not known, as an operand
 * is yet to be placed and lives on. */
static Status find_target(Steps *x, const State *state, uint64_t live, const Candidate *c,
                          uint64_t *out)
{
    Planner *p = x->w->p;
    uint32_t op = x->w->op;
    TensorType stored;
    Mapping mapping;
    *out = 0;
    TRY(plan_result_type(p->graph, op, &c->plan, &stored, &mapping));
    for (uint32_t j = 0; j < c->plan.operand_count; j++) {
        ValueId value = plan_input(p->graph, op, &c->plan, j);
        if (value == NO_VALUE || (state->storage[value] == FREE && p->last_use[value] > op))
            return STATUS_OK;
    }
    uint32_t end[2] = {plan_fused_result(p->graph, op, &c->plan),
                       costs_storage(&p->costs, &stored, &mapping)};
    *out = hash_bytes(end, sizeof end, live);
    return STATUS_OK;
}

static Status bound_pair(Steps *x, const State *state, uint64_t live, Pair *pair)
{
    Planner *p = x->w->p;
    const Candidate *c = pair->candidate;
    uint32_t words = 0;
    double own = c->kernel - ahead_of(c);
    if (c->words)
        own += target_phase_cost(c->words, c->sources);
    bool product = c->plan.algorithm == ALGORITHM_GEMM_GRID;
    for (uint32_t j = 0; j < (product ? 2 : 1); j++) {
        TensorType type;
        TRY(plan_operand_type(p->graph, x->w->op, &c->plan, j, &type));
        ValueId value = plan_input(p->graph, x->w->op, &c->plan, j);
        words += operand_words(x, state, value, table_of(&x->tables, &type));
    }
    double slices = 1;
    if (c->plan.slices > 1) /* the last may be thinner than the first */
        slices =
            gemm_shape(p->graph, x->w->op).inner / ((double)c->plan.inner_block * c->plan.inner);
    pair->least = state->cost + own + slices * target_phase_cost(words, 0);
    return find_target(x, state, live, c, &pair->target);
}

static int by_least(const void *left, const void *right)
{
    const Pair *a = left, *b = right;
    if (a->least != b->least)
        return a->least < b->least ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static Status list_pairs(Steps *x)
{
    Walk *w = x->w;
    CandidateRefs refs = {0};
    Status why = STATUS_OK;
    for (uint32_t s = 0; s < x->states->count; s++) {
        const State *state = &x->states->items[s];
        uint64_t live = live_hash(w->p, state, w->op);
        refs.count = 0;
        status_free(why);
        why = list_steps(w, state, (Next){.state = s}, &refs);
        for (size_t i = 0; i < refs.count; i++) {
            Pair pair = {.state = s, .order = (uint32_t)x->pairs.count};
            pair.candidate = refs.items[i];
            if (!status_discard(bound_pair(x, state, live, &pair)))
                array_push(&x->pairs, pair);
        }
    }
    array_free(&refs);
    if (x->pairs.count)
        qsort(x->pairs.items, x->pairs.count, sizeof *x->pairs.items, by_least);
    return why;
}

static bool worth_counting(const Steps *x, const Pair *pair)
{
    uint64_t resident = x->states->items[pair->state].resident;
    return !walk_hopeless(x->w, &pair->candidate->plan, pair->least, resident) &&
           !walk_dominated(x->w, pair->target, pair->least, resident);
}

/* The next pairs that may be worth it; false: none is left. */
static bool take_pairs(const Steps *x, size_t *next, PairArray *out)
{
    enum { TOGETHER = 32 };
    out->count = 0;
    for (; *next < x->pairs.count && out->count < TOGETHER; ++*next)
        if (worth_counting(x, &x->pairs.items[*next]))
            array_push(out, x->pairs.items[*next]);
    return out->count > 0;
}

static Status count_pairs(Steps *x, Status why)
{
    Planner *p = x->w->p;
    PairArray batch = {0};
    for (size_t next = 0; take_pairs(x, &next, &batch);)
        for (uint32_t pass = 0; pass < 2; pass++) {
            p->costs.collecting = pass == 0;
            for (size_t i = 0; i < batch.count; i++) {
                const Pair *pair = &batch.items[i];
                if (pass && !worth_counting(x, pair))
                    continue;
                status_free(why);
                why = step_candidate(x->w, &x->states->items[pair->state], pair->candidate,
                                     (Next){.state = pair->state, .target = pair->target});
            }
            if (pass == 0)
                costs_count_wanted(&p->costs, p->pool);
        }
    array_free(&batch);
    return why;
}

Status walk_operation(Walk *w, const StateArray *states)
{
    Steps x = {.w = w, .states = states, .tables = {.tiles = w->p->options->tiles}};
    w->targets.count = 0;
    memset(w->of_class, 0, sizeof w->of_class);
    map_free(&w->target_ids);
    Status why = count_pairs(&x, list_pairs(&x));
    array_free(&x.pairs);
    map_free(&x.words);
    tables_free(&x.tables);
    return why;
}
