/* schedule.c - starts for all messages of all phases.
 *
 * A phase is placed in several orders and the best result is kept; whatever the order, the result
 * can be encoded with any addresses, up to the constraints that are given back. Phases, orders and
 * tiles are independent jobs for the pool, and nothing depends on which thread does what. */
#include "exchange/internal.h"

#include <stdlib.h>
#include <string.h>

enum { TILE_CHUNK = 64 };

typedef struct Separation { /* buffers of one tile, by their roots */
    uint32_t tile, a, b;
} Separation;
typedef ARRAY(Separation) SeparationArray;

typedef struct PhaseWork {
    Problem problem;
    Status status;
    int32_t *start[PLACE_ORDERS];
    uint32_t horizon[PLACE_ORDERS];
    int32_t *best;
    SeparationArray *separations; /* per chunk of tiles */
} PhaseWork;

typedef struct ScheduleWork {
    const TileProgram *program;
    const ScheduleOptions *options;
    PhaseWork *phases;
    PhaseSchedule *out;
    uint32_t chunks;
} ScheduleWork;

static void open_phase(void *context, size_t index, unsigned worker)
{
    (void)worker;
    ScheduleWork *work = context;
    PhaseWork *phase = &work->phases[index];
    phase->status = problem_open(work->program, (uint32_t)index, &phase->problem);
    phase->separations = xcalloc(work->chunks, sizeof *phase->separations);
}

static void place_phase(void *context, size_t index, unsigned worker)
{
    (void)worker;
    ScheduleWork *work = context;
    PhaseWork *phase = &work->phases[index / PLACE_ORDERS];
    const Problem *problem = &phase->problem;
    uint32_t kind = (uint32_t)(index % PLACE_ORDERS);
    if (problem->conflicts && kind != PLACE_LISTED)
        return; /* the order of the list has a meaning */
    uint32_t *order = xmalloc((problem->count + 1) * sizeof *order);
    phase->start[kind] = xcalloc(problem->count + 1, sizeof(int32_t));
    problem_order(problem, kind, order);
    Tracks *tracks = tracks_open(problem);
    phase->horizon[kind] = tracks_place(tracks, order, phase->start[kind]);
    tracks_close(tracks);
    free(order);
}

static void choose_best(PhaseWork *phase)
{
    uint32_t best = 0;
    for (uint32_t kind = 1; kind < PLACE_ORDERS; kind++)
        if (phase->start[kind] && phase->horizon[kind] < phase->horizon[best])
            best = kind;
    phase->best = phase->start[best];
}

/* ---- what it asks of addresses ---- */

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
        uint32_t to =
            buffer_root(program, problem_receiver(problem, window->end_number)->at.buffer);
        for (size_t k = first; k < events->sends.count; k++) {
            const TileSend *send = &events->sends.items[k];
            if (send->start >= window->end + GUARD_EVENTS)
                break;
            if (send->start + (int32_t)send->items <= window->start) {
                first = k + 1; /* over before this and all later windows */
                continue;
            }
            uint32_t from = problem->phase->transfers[send->message].source.at.buffer;
            from = buffer_root(program, from);
            if (from != to)
                add_separation(list, before, (Separation){events->tile, from, to});
        }
    }
}

static void size_rows(void *context, size_t index, unsigned worker)
{
    (void)worker;
    ScheduleWork *work = context;
    uint32_t number = (uint32_t)(index / work->chunks), chunk = (uint32_t)(index % work->chunks);
    PhaseWork *phase = &work->phases[number];
    PhaseSchedule *out = &work->out[number];
    RowWriter *writer = row_open();
    TileEvents events = {0};
    uint32_t last = min_u32((chunk + 1) * TILE_CHUNK, phase->problem.tiles), coincides;
    for (uint32_t t = chunk * TILE_CHUNK; t < last; t++) {
        if (out->tile_horizon[t] == 0)
            continue;
        events_collect(&phase->problem, phase->best, t, out->tile_horizon[t], &events, &coincides);
        out->row_words[t] = row_lay_out(writer, &events);
        separate(&phase->problem, &events, &phase->separations[chunk]);
    }
    events_free(&events);
    row_close(writer);
}

static void collect_constraints(ScheduleWork *work, Schedule *out)
{
    Map seen = {0};
    for (uint32_t p = 0; p < out->phase_count; p++) {
        for (uint32_t c = 0; c < work->chunks; c++) {
            const SeparationArray *list = &work->phases[p].separations[c];
            for (size_t i = 0; i < list->count; i++) {
                const Separation *s = &list->items[i];
                uint32_t low = min_u32(s->a, s->b), high = max_u32(s->a, s->b);
                bool added;
                map_at(&seen, (uint64_t)s->tile << 52 | (uint64_t)low << 26 | high, &added);
                if (added)
                    array_push(&out->constraints, (Constraint){.kind = CONSTRAINT_SEPARATE,
                                                               .tile_a = s->tile,
                                                               .buffer_a = s->a,
                                                               .tile_b = s->tile,
                                                               .buffer_b = s->b});
            }
        }
    }
    map_free(&seen);
}

/* ---- all phases ---- */

static void close_work(ScheduleWork *work, uint32_t count)
{
    for (uint32_t p = 0; p < count; p++) {
        PhaseWork *phase = &work->phases[p];
        for (uint32_t k = 0; k < PLACE_ORDERS; k++)
            free(phase->start[k]);
        for (uint32_t c = 0; phase->separations && c < work->chunks; c++)
            array_free(&phase->separations[c]);
        free(phase->separations);
        problem_close(&phase->problem);
    }
    free(work->phases);
}

static Status first_error(ScheduleWork *work, uint32_t count)
{
    Status first = STATUS_OK;
    for (uint32_t p = 0; p < count; p++) {
        if (status_ok(first))
            first = work->phases[p].status;
        else
            status_discard(work->phases[p].status);
        work->phases[p].status = STATUS_OK;
    }
    return first;
}

static void fill_schedule(Arena *arena, const PhaseWork *phase, PhaseSchedule *out)
{
    const Problem *problem = &phase->problem;
    out->slots = arena_array(arena, MessageSlot, problem->count);
    out->tile_horizon = arena_array(arena, uint32_t, problem->tiles);
    out->row_words = arena_array(arena, uint32_t, problem->tiles);
    for (uint32_t m = 0; m < problem->count; m++)
        out->slots[m] =
            (MessageSlot){.start = (uint32_t)phase->best[m], .paired = problem->messages[m].paired};
    out->horizon = problem_horizon(problem, phase->best, out->tile_horizon);
    out->bound = problem->bound;
}

Status exchange_schedule(Arena *arena, const TileProgram *program, const ScheduleOptions *options,
                         Pool *pool, Schedule *out)
{
    *out = (Schedule){0};
    if (program->tiles == 0 || program->tiles > TILES)
        return status_error("exchange: %u tiles", program->tiles);
    if (program->buffers.count >= 1u << 26)
        return status_error("exchange: %zu buffers", program->buffers.count);
    uint32_t count = (uint32_t)program->phases.count;
    ScheduleWork work = {.program = program,
                         .options = options,
                         .phases = xcalloc(count + 1, sizeof(PhaseWork)),
                         .chunks = ceil_div_u32(program->tiles, TILE_CHUNK)};
    parallel_for(pool, count, open_phase, &work);
    Status status = first_error(&work, count);
    if (!status_ok(status)) {
        close_work(&work, count);
        return status;
    }
    out->phases = arena_array(arena, PhaseSchedule, count);
    out->phase_count = count;
    work.out = out->phases;
    parallel_for(pool, (size_t)count * PLACE_ORDERS, place_phase, &work);
    for (uint32_t p = 0; p < count; p++) {
        choose_best(&work.phases[p]);
        fill_schedule(arena, &work.phases[p], &out->phases[p]);
    }
    parallel_for(pool, (size_t)count * work.chunks, size_rows, &work);
    collect_constraints(&work, out);
    close_work(&work, count);
    return STATUS_OK;
}

void schedule_free(Schedule *schedule)
{
    array_free(&schedule->constraints);
}
