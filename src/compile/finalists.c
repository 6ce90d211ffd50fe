/* finalists.c - of the best recipes, the one whose program is the shortest.
 *
 * The search adds up maxima over the tiles. Here finalists become programs: those near the best
 * first with their copies only as loads, which says what to expect (side by side on the pool);
 * then, in the order of that, with transfers and a schedule. A schedule can be better or worse than
 * expected by some thousandths, so those that are expected that close to the best are tried, as
 * far as messages are few enough for it to be quick. Which one wins depends on the recipes alone,
 * never on threads or time. */
#include "compile/lowered.h"

#include <stdlib.h>

enum {
    SCHEDULED = 8,        /* at most so many are scheduled */
    MESSAGES = 450 * 1000 /* of all of them, but the first can have as many as it wants */
};
static const double NEAR = 1.02;     /* planned: worth to be lowered */
static const double SURPRISE = 1.01; /* score: may yet turn out to be the best */

void lowered_free(Lowered *lowered)
{
    schedule_free(&lowered->schedule);
    tile_free(&lowered->program);
    mid_free(&lowered->mid);
    arena_free(&lowered->arena);
    *lowered = (Lowered){0};
}

/* ---- expected prices, side by side ---- */

typedef struct ExpectJob {
    const Graph *graph;
    Finalist *finalists;
    Status *status;
} ExpectJob;

static Status expected_price(Arena *arena, const Graph *graph, const Recipe *recipe, double *out)
{
    Mid mid = {0};
    TileProgram program = {0};
    PriceProgram priced = {0};
    Price price = {0};
    Status status = recipe_check(graph, recipe);
    if (status_ok(status))
        status = mid_lower(arena, graph, recipe, &mid);
    if (status_ok(status)) {
        mid_group_exchanges(&mid);
        mid_merge_copies(&mid);
        mid_eliminate(&mid);
        status = tile_expand_loads(arena, &mid, recipe->pairs, &program);
    }
    if (status_ok(status)) {
        price_program(arena, &program, NULL, &priced);
        price_run(&priced, &price);
    }
    price_free(&priced);
    tile_free(&program);
    mid_free(&mid);
    *out = price.cycles;
    return status;
}

static void expect_finalist(void *context, size_t index, unsigned worker)
{
    (void)worker;
    ExpectJob *job = context;
    Arena arena = {0};
    Finalist *finalist = &job->finalists[index];
    if (finalist->planned > NEAR * job->finalists[0].planned)
        return;
    job->status[index] = expected_price(&arena, job->graph, finalist->recipe, &finalist->expected);
    arena_free(&arena);
}

/* Both know something: the search counts copies that share a phase one after the other, the loads
 * count on a schedule that mixes them without any loss. */
static double score(const Finalist *finalist)
{
    return (finalist->planned + finalist->expected) / 2;
}

static int by_score(const void *left, const void *right)
{
    const Finalist *a = left, *b = right;
    if ((a->failure != NULL) != (b->failure != NULL))
        return a->failure ? 1 : -1;
    if ((a->expected > 0) != (b->expected > 0))
        return a->expected > 0 ? -1 : 1;
    if (score(a) != score(b))
        return score(a) < score(b) ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static void expect_all(Compilation *c, Pool *pool)
{
    ExpectJob job = {c->graph, c->finalists, xcalloc(c->finalist_count + 1, sizeof(Status))};
    parallel_for(pool, c->finalist_count, expect_finalist, &job);
    for (uint32_t i = 0; i < c->finalist_count; i++) {
        if (!status_ok(job.status[i]))
            c->finalists[i].failure = arena_strdup(&c->arena, status_message(job.status[i]));
        status_free(job.status[i]);
    }
    free(job.status);
    qsort(c->finalists, c->finalist_count, sizeof *c->finalists, by_score);
}

/* ---- exact prices, one by one ---- */

Status lower_finalist(Compilation *c, const CompileOptions *options, Pool *pool, uint32_t index,
                      Lowered *out)
{
    Finalist *finalist = &c->finalists[index];
    double start = seconds_now();
    Status status = lower_recipe(c->graph, finalist->recipe, options, pool, STAGE_EXCHANGE, out);
    if (!status_ok(status)) {
        finalist->failure = arena_strdup(&c->arena, status_message(status));
        lowered_free(out);
        return status;
    }
    finalist->priced = out->price.cycles;
    PlaceDemand demand;
    (void)status_discard(place_demand(&out->program, &out->schedule, &demand));
    finalist->figures = (PlanFigures){.cycles = out->price.cycles,
                                      .exchange_cycles = out->price.exchange,
                                      .standard = demand.standard,
                                      .interleaved = demand.interleaved,
                                      .largest = demand.largest,
                                      .row_bytes = demand.rows};
    log_event(LOG_INFO, "costed planning finalist",
              "rank=%u mid_cycles=%.0f expected_cycles=%.0f low_cycles=%.0f elapsed_ms=%.0f",
              finalist->rank, finalist->planned, finalist->expected, finalist->priced,
              (seconds_now() - start) * 1e3);
    return STATUS_OK;
}

static size_t count_messages(const TileProgram *program)
{
    size_t count = 0;
    for (size_t p = 0; p < program->phases.count; p++)
        count += program->phases.items[p].transfer_count;
    return count;
}

Status choose_finalist(Compilation *c, const CompileOptions *options, Pool *pool, Lowered *best)
{
    Status why = STATUS_OK;
    uint32_t scheduled = 0;
    size_t messages = 0, most = 0;
    double least = 0; /* score of the first that could be lowered */
    expect_all(c, pool);
    for (uint32_t i = 0; i < c->finalist_count; i++) {
        Finalist *finalist = &c->finalists[i];
        Lowered lowered = {0};
        if (finalist->failure ||
            (scheduled && (score(finalist) > SURPRISE * least || finalist->expected == 0)))
            continue;
        if (scheduled && (scheduled == SCHEDULED || messages + most > MESSAGES))
            break;
        status_free(why);
        why = lower_finalist(c, options, pool, i, &lowered);
        if (!status_ok(why))
            continue;
        size_t count = count_messages(&lowered.program);
        messages += count;
        most = count > most ? count : most;
        if (scheduled++ == 0)
            least = score(finalist);
        if (scheduled > 1 && lowered.price.cycles >= best->price.cycles) {
            lowered_free(&lowered);
            continue;
        }
        lowered_free(best);
        *best = lowered;
        c->chosen = i;
    }
    if (!scheduled)
        return status_ok(why) ? status_error("%s", c->finalists[0].failure) : why;
    status_free(why);
    return STATUS_OK;
}

static double known_price(const Finalist *finalist)
{
    return finalist->priced > 0     ? finalist->priced
           : finalist->expected > 0 ? finalist->expected
                                    : finalist->planned;
}

bool next_finalist(Compilation *c, const CompileOptions *options, Pool *pool, Status why,
                   Lowered *out)
{
    Finalist *failed = &c->finalists[c->chosen];
    failed->failure = arena_strdup(&c->arena, status_message(why));
    status_free(why);
    log_event(LOG_INFO, "planning finalist does not fit", "rank=%u", failed->rank);
    for (;;) {
        const Finalist *next = NULL;
        for (uint32_t i = 0; i < c->finalist_count; i++) {
            const Finalist *f = &c->finalists[i];
            if (!f->failure && (!next || known_price(f) < known_price(next)))
                next = f;
        }
        if (!next)
            return false;
        c->chosen = (uint32_t)(next - c->finalists);
        if (!status_discard(lower_finalist(c, options, pool, c->chosen, out)))
            return true;
    }
}
