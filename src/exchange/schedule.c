/* schedule.c - starts for all messages of all phases.
 *
 * A phase is cut into messages in up to three ways, each is placed in several orders, and the best
 * result is kept; whatever the order, the result can be encoded with any addresses, up to the
 * constraints that are given back. Phases, cuts, orders and tiles are independent jobs for the
 * pool, and nothing depends on which thread does what. */
#include "exchange/internal.h"

#include "ipu/log.h"

#include <stdlib.h>
#include <string.h>

enum {
    TILE_CHUNK = 64,
    REPAIRS = 10,
    DISTANCE_MAX = 15, /* events between two receives of a tile before it does without pairs */
    IMPROVE_BUDGET = 1500000 /* placed messages and ends: some 0.3 s */
};

typedef enum CutKind { CUT_NONE, CUT_PARTS, CUT_PAIRS, CUT_PAIRS_PARTS, CUT_KINDS } CutKind;
enum { RUNS = CUT_KINDS * PLACE_ORDERS };

typedef struct Candidate { /* one way to cut the phase */
    CutPhase cut;
    Problem problem;
    bool open;
    int32_t *start[PLACE_ORDERS];
    uint32_t horizon[PLACE_ORDERS];
    uint32_t best;  /* order */
    uint32_t floor; /* of its horizon */
} Candidate;

typedef struct Separation { /* buffers of one tile, by their roots */
    uint32_t tile, a, b;
} Separation;
typedef ARRAY(Separation) SeparationArray;

typedef struct ChunkWork { /* some tiles of one phase */
    SeparationArray separations;
    ARRAY(uint32_t) crowded; /* tiles whose controls meet */
} ChunkWork;

typedef struct PhaseWork {
    Candidate candidates[CUT_KINDS];
    Candidate *chosen;
    Status status;
    ChunkWork *chunks;
    bool again; /* to be placed again: some messages lost their pairs */
} PhaseWork;

typedef struct ScheduleWork {
    const TileProgram *program;
    const ScheduleOptions *options;
    PhaseWork *phases;
    PhaseSchedule *out;
    uint32_t count, chunks;
} ScheduleWork;

/* ---- candidates ---- */

static void open_phase(void *context, size_t index, unsigned worker)
{
    (void)worker;
    ScheduleWork *work = context;
    PhaseWork *phase = &work->phases[index];
    Candidate *plain = &phase->candidates[CUT_NONE];
    phase->chunks = xcalloc(work->chunks, sizeof *phase->chunks);
    phase->status =
        problem_open(work->program, &work->program->phases.items[index], &plain->problem);
    plain->open = status_ok(phase->status);
    phase->status = status_context(phase->status, "exchange phase %zu", index);
}

static void place_candidate(Candidate *candidate, PlaceOrder kind)
{
    const Problem *problem = &candidate->problem;
    uint32_t *order = xmalloc((problem->count + 1) * sizeof *order);
    if (!candidate->start[kind])
        candidate->start[kind] = xcalloc(problem->count + 1, sizeof(int32_t));
    problem_order(problem, kind, order);
    Tracks *tracks = tracks_open(problem);
    candidate->horizon[kind] = tracks_place(tracks, order, candidate->start[kind]);
    tracks_close(tracks);
    free(order);
}

/* After a small change: in the order in which the messages start now, or in the first one. */
static void place_again(Candidate *candidate)
{
    const Problem *problem = &candidate->problem;
    int32_t *start = candidate->start[candidate->best];
    int32_t *first = xcalloc(problem->count + 1, sizeof *first);
    uint32_t *order = xmalloc((problem->count + 1) * sizeof *order);
    Tracks *tracks = tracks_open(problem);
    problem_order(problem, (PlaceOrder)candidate->best, order);
    uint32_t horizon = tracks_place(tracks, order, first);
    order_by_start(problem, start, order);
    uint32_t *best = &candidate->horizon[candidate->best];
    *best = tracks_place(tracks, order, start);
    if (horizon < *best) {
        *best = horizon;
        memcpy(start, first, problem->count * sizeof *start);
    }
    tracks_close(tracks);
    free(order);
    free(first);
}

static void pick_order(Candidate *candidate)
{
    bool found = false;
    for (uint32_t order = 0; order < PLACE_ORDERS; order++) {
        if (candidate->start[order] &&
            (!found || candidate->horizon[order] < candidate->horizon[candidate->best])) {
            candidate->best = order;
            found = true;
        }
    }
}

/* Not worth another try. */
static bool is_good(const Candidate *candidate)
{
    uint32_t floor = candidate->floor;
    return candidate->horizon[candidate->best] <= floor + 4 + floor / 200;
}

/* First the order that most often is the best, then the best one for uneven loads. Where sends and
 * receives meet in a buffer the order of the list has a meaning, and there is no other. */
static void place_first(void *context, size_t index, unsigned worker)
{
    (void)worker;
    ScheduleWork *work = context;
    Candidate *plain = &work->phases[index].candidates[CUT_NONE];
    plain->floor = problem_floor(&plain->problem);
    place_candidate(plain, plain->problem.ordered ? PLACE_LISTED : PLACE_ROTATED);
    pick_order(plain);
    if (plain->problem.ordered || is_good(plain))
        return;
    place_candidate(plain, PLACE_LOADED);
    pick_order(plain);
}

static void open_others(void *context, size_t index, unsigned worker)
{
    (void)worker;
    ScheduleWork *work = context;
    PhaseWork *phase = &work->phases[index];
    const Candidate *plain = &phase->candidates[CUT_NONE];
    for (uint32_t kind = CUT_PARTS; kind < CUT_KINDS && !plain->problem.ordered; kind++) {
        Candidate *other = &phase->candidates[kind];
        const Candidate *pairs = &phase->candidates[CUT_PAIRS];
        if (kind == CUT_PARTS && !is_good(plain))
            cut_parts(&plain->problem, &other->cut);
        if (kind == CUT_PAIRS && work->options->pairs)
            cut_pairs(&plain->problem, &other->cut);
        if (kind == CUT_PAIRS_PARTS && pairs->open)
            cut_parts(&pairs->problem, &other->cut);
        if (!other->cut.changed)
            continue;
        /* The parts of good transfers are good: this can not fail. */
        other->open = !status_discard(cut_open(work->program, &other->cut, &other->problem));
        if (other->open)
            other->floor = problem_floor(&other->problem);
    }
}

static void place_others(void *context, size_t index, unsigned worker)
{
    (void)worker;
    ScheduleWork *work = context;
    uint32_t run = (uint32_t)(index % RUNS), kind = run / PLACE_ORDERS, order = run % PLACE_ORDERS;
    Candidate *candidate = &work->phases[index / RUNS].candidates[kind];
    if (!candidate->open || candidate->start[order] || candidate->problem.ordered ||
        (kind == CUT_NONE && is_good(candidate)))
        return;
    place_candidate(candidate, (PlaceOrder)order);
}

static void improve_candidate(void *context, size_t index, unsigned worker)
{
    (void)worker;
    ScheduleWork *work = context;
    Candidate *candidate = &work->phases[index / CUT_KINDS].candidates[index % CUT_KINDS];
    if (!candidate->open)
        return;
    pick_order(candidate);
    uint32_t *horizon = &candidate->horizon[candidate->best];
    if (!candidate->problem.conflicts && !is_good(candidate))
        *horizon = improve(&candidate->problem, candidate->start[candidate->best], *horizon,
                           candidate->floor, IMPROVE_BUDGET);
}

/* More messages mean longer rows, and pairs constrain addresses: they must be worth it. */
static void choose_candidate(PhaseWork *phase)
{
    static const uint32_t percent[CUT_KINDS] = {100, 102, 103, 104};
    uint64_t least = UINT64_MAX;
    for (uint32_t kind = 0; kind < CUT_KINDS; kind++) {
        Candidate *candidate = &phase->candidates[kind];
        uint64_t cost = (uint64_t)candidate->horizon[candidate->best] * percent[kind];
        if (candidate->open && cost < least) {
            least = cost;
            phase->chosen = candidate;
        }
    }
}

/* ---- what the chosen one means for every tile ---- */

static void add_separation(SeparationArray *list, size_t first, Separation wanted)
{
    for (size_t i = first; i < list->count; i++)
        if (list->items[i].a == wanted.a && list->items[i].b == wanted.b)
            return;
    array_push(list, wanted);
}

/* A tile must not read for a send in the element in which it writes what arrives, guard included.
 */
static void separate(const Problem *problem, const TileEvents *events, SeparationArray *list)
{
    const TileProgram *program = problem->program;
    size_t before = list->count, first = 0;
    for (size_t i = 0; i < events->windows.count; i++) {
        const TileWindow *window = &events->windows.items[i];
        uint32_t to = problem_receiver(problem, window->end_number)->at.buffer;
        for (size_t k = first; k < events->sends.count; k++) {
            const TileSend *send = &events->sends.items[k];
            if (send->start >= window->end + GUARD_EVENTS)
                break;
            if (send->start + (int32_t)send->items <= window->start) {
                first = k + 1; /* over before this and all later windows */
                continue;
            }
            uint32_t from = problem->phase->transfers[send->message].source.at.buffer;
            uint32_t a = buffer_root(program, from), b = buffer_root(program, to);
            if (a != b)
                add_separation(list, before, (Separation){events->tile, a, b});
        }
    }
}

static void size_rows(void *context, size_t index, unsigned worker)
{
    (void)worker;
    ScheduleWork *work = context;
    uint32_t number = (uint32_t)(index / work->chunks), part = (uint32_t)(index % work->chunks);
    PhaseWork *phase = &work->phases[number];
    PhaseSchedule *out = &work->out[number];
    const Problem *problem = &phase->chosen->problem;
    const int32_t *start = phase->chosen->start[phase->chosen->best];
    ChunkWork *chunk = &phase->chunks[part];
    if (!phase->again)
        return;
    RowWriter *writer = row_open();
    TileEvents events = {0};
    chunk->separations.count = chunk->crowded.count = 0;
    uint32_t last = min_u32((part + 1) * TILE_CHUNK, problem->tiles), coincides;
    for (uint32_t t = part * TILE_CHUNK; t < last; t++) {
        out->row_words[t] = 0;
        if (out->tile_horizon[t] == 0)
            continue;
        if (!events_collect(problem, start, t, out->tile_horizon[t], &events, &coincides)) {
            array_push(&chunk->crowded, t);
            continue;
        }
        out->row_words[t] = row_lay_out(writer, &events);
        if (out->row_words[t] == 0)
            array_push(&chunk->crowded, t);
        separate(problem, &events, &chunk->separations);
    }
    events_free(&events);
    row_close(writer);
}

/* ---- 64-bit messages whose controls would meet others ---- */

/* First the receives of such a tile get some events of distance, then it does without. */

static void unpair_tile(Problem *problem, uint32_t tile)
{
    for (uint32_t i = problem->incoming_first[tile]; i < problem->incoming_first[tile + 1]; i++) {
        uint32_t m = problem->ends[problem->incoming[i]].message;
        if (!problem->messages[m].paired)
            continue;
        while (problem->messages[m].follows)
            m--;
        do {
            problem->messages[m].follows = false;
            problem_pair(problem, m++, false);
        } while (m < problem->count && problem->messages[m].follows);
    }
}

static void repair_phase(void *context, size_t index, unsigned worker)
{
    (void)worker;
    ScheduleWork *work = context;
    PhaseWork *phase = &work->phases[index];
    if (!phase->again)
        return;
    Problem *problem = &phase->chosen->problem;
    phase->again = false;
    for (uint32_t c = 0; c < work->chunks; c++) {
        for (size_t i = 0; i < phase->chunks[c].crowded.count; i++) {
            uint32_t tile = phase->chunks[c].crowded.items[i];
            if (problem->distance[tile] < DISTANCE_MAX)
                problem->distance[tile] = 2 * problem->distance[tile] + 1;
            else
                unpair_tile(problem, tile);
            phase->again = true;
        }
    }
    if (!phase->again)
        return;
    problem_measure(problem);
    phase->chosen->floor = problem_floor(problem);
    place_again(phase->chosen);
}

static void fill_starts(const PhaseWork *phase, PhaseSchedule *out)
{
    const Problem *problem = &phase->chosen->problem;
    const int32_t *start = phase->chosen->start[phase->chosen->best];
    for (uint32_t m = 0; m < problem->count; m++)
        out->slots[m] =
            (MessageSlot){.start = (uint32_t)start[m], .paired = problem->messages[m].paired};
    out->floor = phase->chosen->floor;
    out->horizon = problem_horizon(problem, start, out->tile_horizon);
}

static void settle(ScheduleWork *work, Pool *pool)
{
    for (uint32_t p = 0; p < work->count; p++)
        work->phases[p].again = true;
    bool again = true;
    for (uint32_t round = 0; again; round++) {
        again = false;
        parallel_for(pool, (size_t)work->count * work->chunks, size_rows, work);
        parallel_for(pool, work->count, repair_phase, work);
        for (uint32_t p = 0; p < work->count; p++) {
            PhaseWork *phase = &work->phases[p];
            if (!phase->again)
                continue;
            again = true;
            if (round >= REPAIRS) { /* it keeps happening: do without */
                Problem *problem = &phase->chosen->problem;
                for (uint32_t t = 0; t < problem->tiles; t++)
                    unpair_tile(problem, t);
                problem_measure(problem);
                place_again(phase->chosen);
            }
            fill_starts(phase, &work->out[p]);
        }
    }
}

static void log_phase(uint32_t number, const PhaseWork *phase, const PhaseSchedule *out)
{
    static const char *const cuts[CUT_KINDS] = {"none", "parts", "pairs", "pairs-and-parts"};
    const Problem *problem = &phase->chosen->problem;
    uint32_t paired = 0;
    for (uint32_t m = 0; m < problem->count; m++)
        paired += problem->messages[m].paired;
    log_event(LOG_INFO, "scheduled phase",
              "phase=%u operation=%s messages=%u paired=%u cut=%s bound=%u floor=%u horizon=%u",
              number, out->phase->operation ? out->phase->operation : "-", problem->count, paired,
              cuts[phase->chosen - phase->candidates], out->bound, out->floor, out->horizon);
}

/* ---- constraints ---- */

typedef struct ConstraintSet {
    Map seen;
    ConstraintArray *out;
} ConstraintSet;

static void add_constraint(ConstraintSet *set, Constraint constraint)
{
    uint64_t key = hash_bytes(&constraint, sizeof constraint, 0);
    bool added;
    uint64_t *first = map_at(&set->seen, key, &added);
    if (!added) { /* equal hashes: equal but for a chance of 1 in 2^64, and then it only repeats */
        const Constraint *old = &set->out->items[*first];
        if (memcmp(old, &constraint, sizeof constraint) == 0)
            return;
    } else {
        *first = set->out->count;
    }
    array_push(set->out, constraint);
}

static void align(ConstraintSet *set, const TileProgram *program, const Endpoint *end)
{
    Constraint constraint = {0}; /* padding is compared too */
    constraint.kind = CONSTRAINT_ALIGNED;
    constraint.tile_a = constraint.tile_b = end->tile;
    constraint.buffer_a = constraint.buffer_b = buffer_root(program, end->at.buffer);
    constraint.value = 8;
    add_constraint(set, constraint);
}

static void constrain_pairs(ConstraintSet *set, const Problem *problem)
{
    for (uint32_t m = 0; m < problem->count; m++) {
        const Message *message = &problem->messages[m];
        if (!message->paired)
            continue;
        align(set, problem->program, &problem->phase->transfers[m].source);
        for (uint32_t e = message->first; e < message->first + message->count; e++) {
            const Endpoint *end = problem_receiver(problem, e);
            align(set, problem->program, end);
            if (end->tile % 2)
                continue;
            Constraint constraint = {0};
            constraint.kind = CONSTRAINT_SAME_ADDRESS;
            constraint.tile_a = end->tile;
            constraint.tile_b = end->tile + 1;
            constraint.buffer_a = constraint.buffer_b =
                buffer_root(problem->program, end->at.buffer);
            add_constraint(set, constraint);
        }
    }
}

static void collect_constraints(const ScheduleWork *work, Schedule *out)
{
    ConstraintSet set = {.out = &out->constraints};
    for (uint32_t p = 0; p < work->count; p++) {
        constrain_pairs(&set, &work->phases[p].chosen->problem);
        for (uint32_t c = 0; c < work->chunks; c++) {
            const SeparationArray *list = &work->phases[p].chunks[c].separations;
            for (size_t i = 0; i < list->count; i++) {
                Constraint constraint = {0};
                constraint.kind = CONSTRAINT_SEPARATE;
                constraint.tile_a = constraint.tile_b = list->items[i].tile;
                constraint.buffer_a = min_u32(list->items[i].a, list->items[i].b);
                constraint.buffer_b = max_u32(list->items[i].a, list->items[i].b);
                add_constraint(&set, constraint);
            }
        }
    }
    map_free(&set.seen);
}

/* ---- all phases ---- */

static void close_work(ScheduleWork *work)
{
    for (uint32_t p = 0; p < work->count; p++) {
        PhaseWork *phase = &work->phases[p];
        for (uint32_t kind = 0; kind < CUT_KINDS; kind++) {
            Candidate *candidate = &phase->candidates[kind];
            for (uint32_t order = 0; order < PLACE_ORDERS; order++)
                free(candidate->start[order]);
            problem_close(&candidate->problem);
            cut_free(&candidate->cut);
        }
        for (uint32_t c = 0; phase->chunks && c < work->chunks; c++) {
            array_free(&phase->chunks[c].separations);
            array_free(&phase->chunks[c].crowded);
        }
        free(phase->chunks);
    }
    free(work->phases);
}

static Status first_error(ScheduleWork *work)
{
    Status first = STATUS_OK;
    for (uint32_t p = 0; p < work->count; p++) {
        if (status_ok(first))
            first = work->phases[p].status;
        else
            status_discard(work->phases[p].status);
        work->phases[p].status = STATUS_OK;
    }
    return first;
}

/* The transfers that were scheduled, in memory that outlives the work. */
static const ExchangePhase *keep_phase(Arena *arena, const ExchangePhase *program_phase,
                                       const Candidate *chosen)
{
    if (!chosen->cut.changed)
        return program_phase;
    ExchangePhase *kept = arena_new(arena, ExchangePhase);
    *kept = chosen->cut.phase;
    kept->transfers = arena_copy(arena, kept->transfers, kept->transfer_count * sizeof(Transfer),
                                 _Alignof(Transfer));
    kept->receivers = arena_copy(arena, kept->receivers, kept->receiver_count * sizeof(Endpoint),
                                 _Alignof(Endpoint));
    return kept;
}

static void schedule_phases(ScheduleWork *work, Arena *arena, Pool *pool)
{
    parallel_for(pool, work->count, place_first, work);
    parallel_for(pool, work->count, open_others, work);
    parallel_for(pool, (size_t)work->count * RUNS, place_others, work);
    parallel_for(pool, (size_t)work->count * CUT_KINDS, improve_candidate, work);
    for (uint32_t p = 0; p < work->count; p++) {
        PhaseWork *phase = &work->phases[p];
        choose_candidate(phase);
        PhaseSchedule *out = &work->out[p];
        out->phase = keep_phase(arena, &work->program->phases.items[p], phase->chosen);
        /* Parts send the same words more than once: that is no excuse. Pairs halve the items. */
        const Candidate *bounding = &phase->candidates[CUT_NONE];
        if (phase->chosen >= &phase->candidates[CUT_PAIRS])
            bounding = &phase->candidates[CUT_PAIRS];
        out->bound = bounding->problem.bound;
        out->words_bound = phase->candidates[CUT_NONE].problem.bound;
        out->slots = arena_array(arena, MessageSlot, phase->chosen->problem.count);
        out->tile_horizon = arena_array(arena, uint32_t, work->program->tiles);
        out->row_words = arena_array(arena, uint32_t, work->program->tiles);
        fill_starts(phase, out);
    }
    settle(work, pool);
    for (uint32_t p = 0; p < work->count; p++)
        log_phase(p, &work->phases[p], &work->out[p]);
}

Status exchange_schedule(Arena *arena, const TileProgram *program, const ScheduleOptions *options,
                         Pool *pool, Schedule *out)
{
    *out = (Schedule){0};
    if (program->tiles == 0 || program->tiles > TILES)
        return status_error("exchange: %u tiles", program->tiles);
    ScheduleWork work = {.program = program,
                         .options = options,
                         .count = (uint32_t)program->phases.count,
                         .phases = xcalloc(program->phases.count + 1, sizeof(PhaseWork)),
                         .chunks = ceil_div_u32(program->tiles, TILE_CHUNK)};
    parallel_for(pool, work.count, open_phase, &work);
    Status status = first_error(&work);
    if (status_ok(status)) {
        out->phases = arena_array(arena, PhaseSchedule, work.count);
        out->phase_count = work.count;
        work.out = out->phases;
        schedule_phases(&work, arena, pool);
        collect_constraints(&work, out);
    }
    close_work(&work);
    return status;
}

void schedule_free(Schedule *schedule)
{
    array_free(&schedule->constraints);
}
