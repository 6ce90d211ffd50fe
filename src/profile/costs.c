/* costs.c - what every step of a compiled program is expected to cost: cycles, memory, row bytes.
 *
 * Cycles are those of the compiler's own price (the slowest tile's), exchanges with the barrier
 * before them; nothing is measured. Steps side by side on different tiles overlap, so their sum is
 * above the price of the whole, which follows every tile's clock. Memory of a step is what its
 * fullest tile holds of buffers that are alive in it; rows are the code of an exchange on the tile
 * that has most of it.
 */
#include "profile/profile.h"

#include <stdlib.h>
#include <string.h>

/* ---- cycles ---- */

static const char *kernel_of(const TileProgram *program, const Step *step)
{
    if (step->kind == STEP_CALL && step->count)
        return kernel_family_name(program->classes.items[step->first].spec.family);
    if (step->kind == STEP_COPY)
        return kernel_family_name(KERNEL_COPY);
    return step->kind == STEP_EXCHANGE ? "exchange" : "";
}

/* The slowest tile, or the one that is asked for. */
static void add_cycles(const PriceStep *price, uint32_t tiles, int32_t only_tile, StepCost *out)
{
    for (uint32_t t = 0; t < tiles; t++) {
        out->tiles += price->cycles[t] != 0;
        if (only_tile < 0 || t == (uint32_t)only_tile)
            out->cycles = max_u32(out->cycles, price->cycles[t]);
    }
}

/* The barrier before a phase holds everybody. */
static void add_exchange(const Compilation *c, const Step *step, int32_t tile, StepCost *out)
{
    const PhaseSchedule *schedule = &c->schedule.phases[step->first];
    for (uint32_t t = 0; t < c->program.tiles; t++)
        if (tile < 0 || t == (uint32_t)tile)
            out->row_bytes = max_u32(out->row_bytes, 4 * schedule->row_words[t]);
    if (out->cycles)
        out->cycles += target_boundary_cost();
    out->exchange_cycles = out->cycles;
    out->phase = step->first;
    out->bound = schedule->bound;
}

/* ---- memory ---- */

typedef struct LiveSpan { /* of a buffer's memory, program steps */
    uint32_t first, last;
} LiveSpan;

static LiveSpan live_span(const Compilation *c, uint32_t buffer)
{
    uint32_t last_step = (uint32_t)c->program.steps.count - 1;
    LiveSpan span = {c->placement.lifetime[buffer].first, c->placement.lifetime[buffer].last};
    if (c->program.buffers.items[buffer].resident || span.last > last_step)
        span = (LiveSpan){0, last_step};
    return span;
}

uint32_t compiled_buffer_bytes(const Compilation *c, uint32_t buffer, uint32_t tile)
{
    const Buffer *b = &c->program.buffers.items[buffer];
    if (b->alias != BUFFER_NONE || !b->bytes[tile] ||
        !placement_address(&c->placement, tile, buffer))
        return 0;
    return b->members > 1 ? b->members * buffer_stride(b, tile) : b->bytes[tile];
}

/* live[class][step] of one tile. */
static void tile_memory(const Compilation *c, uint32_t tile, int64_t *live[2])
{
    size_t steps = c->program.steps.count;
    memset(live[0], 0, (steps + 1) * sizeof **live);
    memset(live[1], 0, (steps + 1) * sizeof **live);
    for (uint32_t b = 0; b < c->program.buffers.count; b++) {
        uint32_t bytes = compiled_buffer_bytes(c, b, tile);
        if (!bytes)
            continue;
        LiveSpan span = live_span(c, b);
        int64_t *of = live[c->program.buffers.items[b].memory_class == MEMORY_INTERLEAVED];
        of[span.first] += bytes;
        of[span.last + 1] -= bytes;
    }
    for (size_t s = 1; s <= steps; s++) {
        live[0][s] += live[0][s - 1];
        live[1][s] += live[1][s - 1];
    }
}

uint32_t compiled_peak(const Compilation *c, uint32_t tile, int memory_class, int role,
                       const bool *wanted)
{
    size_t steps = c->program.steps.count;
    int64_t *change = xcalloc(steps + 1, sizeof *change), alive = 0, most = 0;
    for (uint32_t b = 0; b < c->program.buffers.count; b++) {
        const Buffer *buffer = &c->program.buffers.items[b];
        uint32_t bytes = compiled_buffer_bytes(c, b, tile);
        if (!bytes || (memory_class >= 0 && buffer->memory_class != memory_class) ||
            (role >= 0 && buffer->role != role) || (wanted && !wanted[b]))
            continue;
        LiveSpan span = live_span(c, b);
        change[span.first] += bytes;
        change[span.last + 1] -= bytes;
    }
    for (size_t s = 0; s < steps; s++) {
        alive += change[s];
        most = alive > most ? alive : most;
    }
    free(change);
    return (uint32_t)most;
}

/* The fullest tile of a step: most bytes in all, of which both classes are told. */
static void add_memory(const Compilation *c, int32_t only_tile, StepCost *costs)
{
    size_t steps = c->program.steps.count;
    int64_t *live[2] = {xcalloc(steps + 1, sizeof(int64_t)), xcalloc(steps + 1, sizeof(int64_t))};
    for (uint32_t t = 0; t < c->program.tiles; t++) {
        if (only_tile >= 0 && t != (uint32_t)only_tile)
            continue;
        tile_memory(c, t, live);
        for (size_t s = 0; s < steps; s++) {
            StepCost *cost = &costs[s];
            if (live[0][s] + live[1][s] <= (int64_t)cost->standard + cost->interleaved)
                continue;
            cost->standard = (uint32_t)live[0][s];
            cost->interleaved = (uint32_t)live[1][s];
        }
    }
    free(live[0]);
    free(live[1]);
}

/* ---- steps ---- */

StepCost *step_costs(const Compilation *c, Arena *arena, int32_t only_tile, size_t *count)
{
    const TileProgram *program = &c->program;
    StepCost *costs = arena_array(arena, StepCost, program->steps.count);
    PriceProgram prices;
    uint32_t times = 1;
    price_program(arena, program, &c->schedule, &prices);
    for (uint32_t s = 0; s < program->steps.count; s++) {
        const Step *step = &program->steps.items[s];
        StepCost *cost = &costs[s];
        times = step->kind == STEP_END_REPEAT ? 1 : times;
        *cost = (StepCost){.step = s,
                           .kind = step->kind,
                           .phase = NO_PHASE,
                           .operation = step->operation ? step->operation : "",
                           .kernel = kernel_of(program, step),
                           .times = times};
        cost->takes_part = only_tile < 0 || tile_takes_part(program, step, (uint32_t)only_tile);
        if (step->kind == STEP_REPEAT)
            times = step->count;
        if (step->kind == STEP_REPEAT || step->kind == STEP_END_REPEAT)
            continue;
        add_cycles(&prices.steps.items[s], program->tiles, only_tile, cost);
        if (step->kind == STEP_EXCHANGE)
            add_exchange(c, step, only_tile, cost);
    }
    price_free(&prices);
    add_memory(c, only_tile, costs);
    *count = program->steps.count;
    return costs;
}

static bool bracket(const StepCost *cost)
{
    return cost->kind == STEP_REPEAT || cost->kind == STEP_END_REPEAT;
}

static bool wanted(const StepCost *cost, const Map *only)
{
    return map_wants(only, cost->operation) && cost->takes_part;
}

static void put_what(Text *text, const StepCost *cost, uint32_t iterations)
{
    if (cost->kind == STEP_REPEAT)
        text_printf(text, "repeat %u times", iterations);
    else if (cost->kind == STEP_END_REPEAT)
        text_append(text, "end of repeat");
    else if (cost->kind == STEP_EXCHANGE)
        text_printf(text, "exchange %u, bound %u", cost->phase, cost->bound);
    else
        text_append(text, cost->kernel);
}

void step_costs_print(Text *text, const Compilation *c, const StepCost *costs, size_t count,
                      const Map *only)
{
    uint64_t cycles = 0, exchange = 0, rows = 0;
    text_append(text, "steps of the program: predicted cycles of one execution, bytes alive on the "
                      "fullest tile, largest row\n");
    text_printf(text, "%5s  %-36s %-24s %5s %5s %9s %9s %9s %11s %6s\n", "step", "operation",
                "does", "tiles", "times", "cycles", "exchange", "standard", "interleaved", "row");
    for (size_t s = 0; s < count; s++) {
        const StepCost *cost = &costs[s];
        if (!wanted(cost, only))
            continue;
        Text what = {0};
        put_what(&what, cost, c->program.steps.items[s].count);
        text_printf(text, "%5u  %-36.36s %-24s", cost->step, cost->operation, text_string(&what));
        text_free(&what);
        if (bracket(cost)) {
            text_append(text, "\n");
            continue;
        }
        text_printf(text, " %5u %5u %9u %9u %9u %11u %6u\n", cost->tiles, cost->times, cost->cycles,
                    cost->exchange_cycles, cost->standard, cost->interleaved, cost->row_bytes);
        cycles += (uint64_t)cost->cycles * cost->times;
        exchange += (uint64_t)cost->exchange_cycles * cost->times;
        rows += cost->row_bytes;
    }
    text_printf(text, "%5s  %-36s %-24s %5s %5s %9llu %9llu %9s %11s %6llu\n", "",
                "sum, all executions", "", "", "", (unsigned long long)cycles,
                (unsigned long long)exchange, "", "", (unsigned long long)rows);
}

json_t *step_costs_json(const Compilation *c, const StepCost *costs, size_t count, const Map *only)
{
    static const char *const kinds[] = {"call", "copy", "exchange", "repeat", "end-repeat"};
    json_t *out = json_array();
    for (size_t s = 0; s < count; s++) {
        const StepCost *cost = &costs[s];
        if (!wanted(cost, only))
            continue;
        json_t *step = json_pack("{s:I, s:s, s:s}", "step", (json_int_t)cost->step, "operation",
                                 cost->operation, "kind", kinds[cost->kind]);
        json_array_append_new(out, step);
        if (cost->kind == STEP_REPEAT)
            json_object_set_new(step, "count", json_integer(c->program.steps.items[s].count));
        if (bracket(cost))
            continue;
        json_object_update_new(
            step,
            json_pack("{s:s, s:I, s:I, s:{s:I, s:I}, s:{s:I, s:I}, s:I}", "kernel", cost->kernel,
                      "tiles", (json_int_t)cost->tiles, "times", (json_int_t)cost->times, "cycles",
                      "total", (json_int_t)cost->cycles, "exchange",
                      (json_int_t)cost->exchange_cycles, "memory", "standard",
                      (json_int_t)cost->standard, "interleaved", (json_int_t)cost->interleaved,
                      "rowBytes", (json_int_t)cost->row_bytes));
        if (cost->phase != NO_PHASE) {
            json_object_set_new(step, "phase", json_integer(cost->phase));
            json_object_set_new(step, "bound", json_integer(cost->bound));
        }
    }
    return out;
}
