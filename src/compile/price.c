/* price.c - how long a lowered program takes, without running it.
 *
 * Every tile has a clock. A step moves the clocks of the tiles that take part: by the kernel's own
 * formula and the few supervisor instructions around the call, or by the events of the tile's row.
 * A barrier sets all clocks to the latest arrival. So a tile that is late holds up everybody, but
 * two tiles that are late in different steps between two barriers do not add up: that is what a sum
 * of the steps' maxima gets wrong. Repeats are unrolled.
 *
 * What is left open is where a worker slot stands when a call begins, some 3 cycles a call. */
#include "compile/price.h"

#include <stdlib.h>
#include <string.h>

enum {
    SETUP = TIMING_RESULT + 1,        /* constant 1 to the sync behind its put */
    DISPLACEMENT = TIMING_RESULT + 1, /* load, add */
    REPEAT_BEGIN = 12,                /* the frame on the stack */
    REPEAT_TURN = 2 * TIMING_RESULT + 2 + TIMING_BRANCH,
    REPEAT_STRIDE = 2 * TIMING_RESULT + 1, /* a displacement moves on: load, add, store */
    STRIDES = 32,
    FROM_SAMPLE = 38 /* the sampling worker's read to the first step */
};

typedef struct Clocks {
    uint64_t *at;       /* per tile: its next instruction */
    uint64_t *declared; /* per tile: when it declared that it takes no part in the next phase */
    uint64_t start;     /* release of the first barrier */
    bool started;
    uint64_t exchange, boundary;
} Clocks;

/* A tile declares right behind a phase or the edge of a repeat, if a phase comes before the next
 * edge. */
static void declare(const PriceProgram *p, Clocks *c)
{
    for (uint32_t t = 0; t < p->tiles; t++)
        c->declared[t] = c->at[t];
}

static void run_phase(const PriceProgram *p, const PriceStep *step, Clocks *c)
{
    uint64_t release = 0, worked = 0, longest = 0;
    for (uint32_t t = 0; t < p->tiles; t++) {
        uint64_t arrival = c->declared[t];
        if (step->cycles[t]) {
            worked = c->at[t] > worked ? c->at[t] : worked;
            arrival = c->at[t] + SETUP;
        }
        release = arrival > release ? arrival : release;
    }
    release += TIMING_EXCHANGE_SYNC;
    if (!c->started)
        c->start = release;
    c->started = true;
    for (uint32_t t = 0; t < p->tiles; t++) {
        uint64_t after = release + 1;
        if (step->cycles[t]) {
            after = release + TIMING_BRANCH + step->cycles[t] + TIMING_BRANCH;
            longest = step->cycles[t] > longest ? step->cycles[t] : longest;
        }
        /* One without a part may still be at work before its sync 1. */
        c->at[t] = after > c->at[t] ? after : c->at[t] + 1;
    }
    c->exchange += longest;
    c->boundary += release + TIMING_BRANCH - worked;
    declare(p, c);
}

/* Steps [from, to), in which no repeat is open at the ends. */
static void run_steps(const PriceProgram *p, size_t from, size_t to, Clocks *c)
{
    for (size_t s = from; s < to; s++) {
        const PriceStep *step = &p->steps.items[s];
        if (step->kind == STEP_EXCHANGE) {
            run_phase(p, step, c);
        } else if (step->kind == STEP_REPEAT) {
            size_t end = s + 1;
            while (p->steps.items[end].kind != STEP_END_REPEAT)
                end++;
            for (uint32_t t = 0; t < p->tiles; t++)
                c->at[t] += REPEAT_BEGIN;
            for (uint32_t i = 0; i < step->count; i++) {
                declare(p, c);
                run_steps(p, s + 1, end, c);
                for (uint32_t t = 0; t < p->tiles; t++)
                    c->at[t] += REPEAT_TURN + p->steps.items[end].cycles[t];
            }
            declare(p, c);
            s = end;
        } else {
            for (uint32_t t = 0; t < p->tiles; t++)
                c->at[t] += step->cycles[t];
        }
    }
}

void price_run(const PriceProgram *program, Price *out)
{
    Clocks c = {.at = xcalloc(program->tiles, sizeof *c.at),
                .declared = xcalloc(program->tiles, sizeof *c.declared)};
    run_steps(program, 0, program->steps.count, &c);
    uint64_t last = 0;
    for (uint32_t t = 0; t < program->tiles; t++)
        last = c.at[t] > last ? c.at[t] : last;
    if (!c.started) /* counted from the start sample */
        last += FROM_SAMPLE;
    *out = (Price){.cycles = (double)(last - c.start),
                   .exchange = (double)c.exchange,
                   .boundary = (double)c.boundary};
    free(c.at);
    free(c.declared);
}

/* ---- from the tile program ---- */

/* Operands and scalars into registers, the call, the kernel, whose formula ends with its return. In
 * a repeat, operands in sequences take the iteration's displacement. */
static uint32_t call_cycles(const TileProgram *program, const KernelSpec *spec,
                            const BufferRef *operands, bool in_repeat)
{
    KernelContract contract;
    if (status_discard(kernel_contract(spec, &contract)))
        return 0;
    uint32_t cycles = contract.operand_count + contract.scalar_count + TIMING_BRANCH;
    for (uint32_t i = 0; in_repeat && i < contract.operand_count; i++)
        if (program->buffers.items[operands[i].buffer].members > 1)
            cycles += DISPLACEMENT;
    return cycles + (uint32_t)kernel_cycles(spec);
}

static uint32_t *new_step(Arena *arena, PriceProgram *out, const Step *step)
{
    PriceStep made = {.kind = step->kind, .operation = step->operation, .count = step->count};
    made.cycles = arena_array(arena, uint32_t, out->tiles);
    array_push(&out->steps, made);
    return made.cycles;
}

static void price_calls(const TileProgram *program, const Step *step, bool in_repeat,
                        uint32_t *cycles)
{
    for (uint32_t c = step->first; c < step->first + step->count; c++) {
        const CallClass *class = &program->classes.items[c];
        uint32_t each = call_cycles(program, &class->spec, class->operands, in_repeat);
        for (uint32_t r = 0; r < class->range_count; r++)
            for (uint32_t t = class->ranges[r].first; t <= class->ranges[r].last; t++)
                cycles[t] += each;
    }
}

static void price_copies(const TileProgram *program, const Step *step, bool in_repeat,
                         uint32_t *cycles)
{
    for (uint32_t c = step->first; c < step->first + step->count; c++) {
        const LocalCopy *copy = &program->copies.items[c];
        const BufferRef operands[] = {copy->out, copy->in};
        KernelSpec spec = local_copy_spec(copy);
        cycles[copy->tile] += call_cycles(program, &spec, operands, in_repeat);
    }
}

/* Of a phase without transfers: the events, the way of the last word into memory, the guard. */
static void expected_horizons(const ExchangePhase *phase, uint32_t tiles, uint32_t *cycles)
{
    enum { WRITE_LAG = 52 };
    for (uint32_t t = 0; t < tiles; t++)
        if (phase->events[t])
            cycles[t] = phase->events[t] + WRITE_LAG +
                        2 * (uint32_t)target_row(target_physical(t)) + GUARD_EVENTS;
}

/* ---- the strides of a repeat: each is a displacement that moves on at its end ---- */

static void note_buffer(const TileProgram *program, bool *used, uint32_t buffer)
{
    used[buffer] |= program->buffers.items[buffer].members > 1;
}

/* Sequence buffers that the steps from `begin` to the end of the repeat use. */
static void note_sequences(const TileProgram *program, size_t begin, bool *used)
{
    for (size_t s = begin + 1; program->steps.items[s].kind != STEP_END_REPEAT; s++) {
        const Step *step = &program->steps.items[s];
        for (uint32_t i = step->first; i < step->first + step->count; i++) {
            KernelContract contract;
            if (step->kind == STEP_CALL &&
                !status_discard(kernel_contract(&program->classes.items[i].spec, &contract)))
                for (uint32_t o = 0; o < contract.operand_count; o++)
                    note_buffer(program, used, program->classes.items[i].operands[o].buffer);
            if (step->kind == STEP_COPY) {
                note_buffer(program, used, program->copies.items[i].out.buffer);
                note_buffer(program, used, program->copies.items[i].in.buffer);
            }
        }
        if (step->kind != STEP_EXCHANGE)
            continue;
        const ExchangePhase *phase = &program->phases.items[step->first];
        for (uint32_t t = 0; t < phase->transfer_count; t++) /* none in a program of loads */
            note_buffer(program, used, phase->transfers[t].source.at.buffer);
    }
}

static uint32_t distinct_strides(const TileProgram *program, const bool *used, uint32_t tile)
{
    uint32_t strides[STRIDES], count = 0;
    for (uint32_t b = 0; b < program->buffers.count && count < STRIDES; b++) {
        uint32_t stride = used[b] ? buffer_stride(&program->buffers.items[b], tile) : 0, k = 0;
        while (k < count && strides[k] != stride)
            k++;
        if (stride && k == count)
            strides[count++] = stride;
    }
    return count;
}

static void price_turn(const TileProgram *program, size_t begin, uint32_t *cycles)
{
    bool *used = xcalloc(program->buffers.count + 1, sizeof *used);
    note_sequences(program, begin, used);
    for (uint32_t t = 0; t < program->tiles; t++)
        cycles[t] = REPEAT_STRIDE * distinct_strides(program, used, t);
    free(used);
}

void price_program(Arena *arena, const TileProgram *program, const Schedule *schedule,
                   PriceProgram *out)
{
    bool in_repeat = false;
    size_t begin = 0;
    *out = (PriceProgram){.tiles = program->tiles};
    for (size_t s = 0; s < program->steps.count; s++) {
        const Step *step = &program->steps.items[s];
        uint32_t *cycles = new_step(arena, out, step);
        if (step->kind == STEP_REPEAT)
            begin = s;
        if (step->kind == STEP_REPEAT || step->kind == STEP_END_REPEAT)
            in_repeat = step->kind == STEP_REPEAT;
        if (step->kind == STEP_END_REPEAT)
            price_turn(program, begin, cycles);
        if (step->kind == STEP_CALL)
            price_calls(program, step, in_repeat, cycles);
        else if (step->kind == STEP_COPY)
            price_copies(program, step, in_repeat, cycles);
        else if (step->kind == STEP_EXCHANGE && schedule)
            memcpy(cycles, schedule->phases[step->first].tile_horizon,
                   program->tiles * sizeof *cycles);
        else if (step->kind == STEP_EXCHANGE)
            expected_horizons(&program->phases.items[step->first], program->tiles, cycles);
    }
}

void price_free(PriceProgram *program)
{
    array_free(&program->steps);
}
