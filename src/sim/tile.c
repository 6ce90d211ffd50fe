/* tile.c - one tile in exact barrel order.
 *
 * Worker w issues in cycles equal to w modulo 6; the supervisor issues in a cycle whose slot no
 * running worker owns (timing.md 1). Workers are interleaved bundle by bundle, so programs whose
 * workers race with each other see what they would see on the machine. The loop over workers alone
 * is the fast one: it runs whenever the supervisor waits, is not ready, or has no slot. */
#include "sim/core.h"

#include <stdio.h>
#include <string.h>

#define inlined __attribute__((always_inline)) static inline

void tile_fault(Tile *tile, Context *c, uint32_t type, uint64_t cycle)
{
    tile->state = TILE_FAULTED;
    tile->fault = (SimFault){.set = true,
                             .tile = tile->number,
                             .context = c->number,
                             .pc = c->pc,
                             .type = type >= OUTCOME_EXIT ? 0 : type,
                             .cycle = cycle};
    bool debug = type == EXCEPTION_PBRK0 || type == EXCEPTION_PBRK1 || type == EXCEPTION_IBRK;
    if (type < OUTCOME_EXIT) {
        c->exception = (uint8_t)type;
        c->status = debug ? 2 : 3;
        c->loop_fault |= c->loop_end != 0;
    }
    char *text = tile->fault.message;
    size_t size = sizeof tile->fault.message;
    const char *name = type >= OUTCOME_EXIT ? "stopped" : target_exception_name(type);
    if (tile->detail)
        snprintf(text, size, "%s: %s (0x%x)", name, tile->detail, tile->detail_address);
    else
        snprintf(text, size, "%s", name);
    tile->detail = NULL;
}

/* An instruction did not go through. Choice: a bad branch is reported with its target as PC. */
static void fail(Tile *tile, Context *c, const Decoded *d, uint32_t outcome, uint64_t cycle)
{
    tile->fault_at = c->pc;
    if (outcome == EXCEPTION_INVALID_PC && d->main != raise_invalid_pc)
        c->pc = c->next_pc;
    tile_fault(tile, c, outcome, cycle);
}

/* --- launch and join */

void tile_launch(Tile *tile, uint32_t worker, uint32_t entry, uint32_t vertex_base, uint64_t cycle)
{
    Context *c = &tile->contexts[1 + worker];
    uint64_t first = cycle + TIMING_LAUNCH;
    c->next = first + (worker + TILE_WORKERS - first % TILE_WORKERS) % TILE_WORKERS;
    c->pc = entry;
    c->m[13] = vertex_base & 0x1fffff;
    c->loop_end = 0;
    c->status = 1;
    float_launch(&c->f, tile->fp_ictl, tile->fp_infmt, tile->fp_iscl);
    tile->active++;
    tile->launches++;
}

void tile_joined(Tile *tile, uint64_t cycle)
{
    uint64_t bundles = 0;
    for (int i = 1; i < TILE_CONTEXTS; i++)
        bundles += tile->contexts[i].bundles;
    bundles -= tile->launches; /* one exit each: a worker barrier is no work */
    if (bundles > tile->work_bundles)
        tile->work_end = cycle;
    tile->work_bundles = bundles;
}

/* --- one bundle of one worker */

enum { EXCEPTION_ENABLES = 7 }; /* FP_CTL: INV, DIV0, OFLO */

/* What the main lane of a bundle may have changed when the auxiliary lane faults. */
typedef struct Before {
    uint32_t m[12];
    uint32_t loop_end, repeat_count, repeat_first, repeat_end;
    uint32_t debug_data;
} Before;

inlined void remember(const Context *c, Before *before)
{
    memcpy(before->m, c->m, sizeof before->m);
    before->loop_end = c->loop_end;
    before->repeat_count = c->repeat_count;
    before->repeat_first = c->repeat_first;
    before->repeat_end = c->repeat_end;
    before->debug_data = c->tile->debug_data;
}

__attribute__((noinline, cold)) static void revoke(Context *c, const Before *before)
{
    memcpy(c->m, before->m, sizeof before->m);
    c->loop_end = before->loop_end;
    c->repeat_count = before->repeat_count;
    c->repeat_first = before->repeat_first;
    c->repeat_end = before->repeat_end;
    c->tile->debug_data = before->debug_data;
    if (!c->undo_bytes)
        return;
    memcpy(c->memory + c->undo_offset, &c->undo_value, c->undo_bytes);
    for (uint32_t i = 0; c->written && i < c->undo_bytes / 4u; i++) {
        uint32_t word = c->undo_offset / 4 + i;
        if (!(c->undo_defined >> i & 1))
            c->written[word / 8] &= (uint8_t) ~(1u << (word % 8));
    }
    c->undo_bytes = 0;
}

inlined void load_part(Context *c, LoadPart part)
{
    const uint32_t *from = c->load + part.from;
    uint32_t *to = c->f.a + part.to;
    if (part.count == 2)
        memcpy(to, from, 8);
    else if (part.count == 1)
        *to = *from;
    else
        memcpy(to, from, 16);
}

/* A bundle whose auxiliary lane may fault after the main lane has written. */
__attribute__((noinline)) static uint32_t execute_guarded(Tile *tile, Context *c, const Decoded *d)
{
    Before before;
    remember(c, &before);
    c->undo_armed = true;
    uint32_t outcome = d->main(c, d);
    if (!outcome) {
        outcome = d->aux(&c->f, &tile->weights, d->aux_op);
        if (outcome)
            revoke(c, &before);
    }
    c->undo_armed = false;
    c->undo_bytes = 0;
    return outcome;
}

inlined uint32_t execute(Tile *tile, Context *c, const Decoded *d)
{
    uint32_t outcome;
    if (d->guard && c->f.control & EXCEPTION_ENABLES) {
        outcome = execute_guarded(tile, c, d);
    } else {
        outcome = d->main(c, d);
        if (d->aux && !outcome)
            outcome = d->aux(&c->f, &tile->weights, d->aux_op);
    }
    if (unlikely(outcome))
        return outcome;
    if (d->parts) {
        load_part(c, d->part[0]);
        if (d->parts == 2)
            load_part(c, d->part[1]);
    }
    return OUTCOME_DONE;
}

inlined const Decoded *fetch(const Tile *tile, Cache *cache, uint32_t pc)
{
    uint32_t offset = pc - SRAM_BASE;
    if (unlikely(offset >= CODE_BYTES))
        return cache_worker(cache, tile, pc);
    const Decoded *d = &cache->worker[offset / 4];
    uint64_t words = load_u64(tile->memory + offset);
    return likely(d->size && !((words ^ d->words) & d->care)) ? d : cache_worker(cache, tile, pc);
}

/* The worker ends; the last one wakes a supervisor that waits for it. */
static void retire(Tile *tile, Context *c, uint64_t cycle)
{
    c->next = NEVER;
    c->status = 0;
    tile->active--;
    tile->last_exit = (int64_t)cycle;
    if (tile->active == 0 && tile->local_wait != NEVER) {
        uint64_t done = cycle + TIMING_LOCAL_SYNC;
        tile->contexts[0].next = done > tile->local_wait + 1 ? done : tile->local_wait + 1;
        tile->local_wait = NEVER;
        tile_joined(tile, tile->contexts[0].next);
    }
    if (tile->calling && c->number == tile->call_context)
        tile->state = TILE_RETURNED;
}

__attribute__((noinline)) static void act(Tile *tile, Context *c, const Decoded *d,
                                          uint32_t outcome, uint64_t cycle)
{
    if (outcome == OUTCOME_EXIT) {
        c->bundles++;
        c->pc += d->size;
        retire(tile, c, cycle);
    } else if (outcome == OUTCOME_RETURN) { /* br to the host's return address */
        c->bundles++;
        retire(tile, c, cycle);
        tile->state = TILE_RETURNED;
    } else {
        fail(tile, c, d, outcome, cycle);
    }
}

/* Issues one bundle. False: something happened that the caller must look at. */
inlined bool issue_worker(Tile *tile, Context *c, const Decoded *d, uint64_t cycle)
{
    uint32_t pc = c->pc;
    c->next_pc = pc + d->size;
    uint32_t outcome;
    if (unlikely(c->loop_end && !d->body)) {
        tile->detail = "not allowed in the body of rpt";
        tile->detail_address = pc;
        outcome = EXCEPTION_INVALID_INSTR;
    } else {
        tile->cycle = cycle;
        outcome = execute(tile, c, d);
    }
    if (unlikely(outcome)) {
        act(tile, c, d, outcome, cycle);
        return false;
    }
    c->bundles++;
    c->next = cycle + d->period;
    pc = c->next_pc;
    if (pc == c->loop_end) {
        if (--c->repeat_count)
            pc = c->repeat_first;
        else
            c->loop_end = 0;
    }
    c->pc = pc;
    return true;
}

/* --- hooks: trace, breakpoint, single step */

static bool stop_before(Tile *tile, const Hooks *hooks, Context *c, uint64_t cycle)
{
    if (hooks->break_pc && c->pc == hooks->break_pc && !tile->step_context) {
        tile->detail = "breakpoint";
        tile->detail_address = tile->fault_at = c->pc;
        tile_fault(tile, c, EXCEPTION_IBRK, cycle);
        return true;
    }
    return false;
}

typedef struct Traced {
    uint32_t pc, words[2];
    uint64_t bundles;
} Traced;

static void before_issue(const Context *c, Traced *traced)
{
    traced->pc = c->pc;
    traced->bundles = c->bundles;
    traced->words[0] = traced->words[1] = 0;
    if (c->pc - SRAM_BASE <= SRAM_BYTES - 8)
        memcpy(traced->words, c->memory + (c->pc - SRAM_BASE), 8);
}

static void after_issue(Tile *tile, const Hooks *hooks, Context *c, const Traced *traced,
                        uint64_t cycle)
{
    if (c->bundles == traced->bundles)
        return; /* nothing was issued */
    if (tile->step_context == c->number + 1 && tile->state == TILE_RUNNING)
        tile->state = TILE_STEPPED;
    if (!hooks->trace)
        return;
    Insn first = {0}, second = {0};
    IsaMode mode = c->number ? MODE_WORKER : MODE_SUPERVISOR;
    isa_decode(traced->words[0], traced->words[1], mode, &first);
    bool bundle = first.bundled && isa_decode(traced->words[1], 0, mode, &second);
    SimContext after;
    context_export(c, &after);
    hooks->trace(hooks->trace_context, tile->number, c->number, cycle, traced->pc, &first,
                 bundle ? &second : NULL, &after);
}

static bool issue_worker_watched(Tile *tile, Cache *cache, const Hooks *hooks, Context *c,
                                 uint64_t cycle)
{
    if (stop_before(tile, hooks, c, cycle))
        return false;
    Traced traced;
    before_issue(c, &traced);
    bool on = issue_worker(tile, c, fetch(tile, cache, c->pc), cycle);
    after_issue(tile, hooks, c, &traced, cycle);
    return on && tile->state == TILE_RUNNING;
}

/* --- loops */

enum { PATIENCE = 8 * TILE_WORKERS }; /* cycles after a stretch that did not begin */

/* Workers alone, until `until` or until something happens. Returns the next cycle. */
static uint64_t run_workers(Tile *tile, Cache *cache, uint64_t cycle, uint64_t until)
{
    uint32_t slot = (uint32_t)(cycle % TILE_WORKERS);
    uint64_t try_again = cycle;
    while (cycle < until) {
        Context *c = &tile->contexts[1 + slot];
        if (c->next == cycle) {
            const Decoded *d = fetch(tile, cache, c->pc);
            if (d->stretch.run && cycle >= try_again) {
                uint32_t bundles = stretch_run(cache->stretch, tile, cache, cycle, until);
                cycle += (uint64_t)TILE_WORKERS * bundles;
                try_again = bundles ? cycle : cycle + PATIENCE;
                continue;
            }
            if (unlikely(!issue_worker(tile, c, d, cycle)))
                return cycle + 1;
        }
        cycle++;
        slot = slot == TILE_WORKERS - 1 ? 0 : slot + 1;
    }
    return cycle;
}

static uint64_t run_workers_watched(Tile *tile, Cache *cache, const Hooks *hooks, uint64_t cycle,
                                    uint64_t until)
{
    for (; cycle < until; cycle++) {
        Context *c = &tile->contexts[1 + cycle % TILE_WORKERS];
        if (c->next == cycle && !issue_worker_watched(tile, cache, hooks, c, cycle))
            return cycle + 1;
    }
    return cycle;
}

static void issue_supervisor(Tile *tile, Cache *cache, uint64_t cycle);

static void issue_supervisor_watched(Tile *tile, Cache *cache, const Hooks *hooks, uint64_t cycle)
{
    Context *c = &tile->contexts[0];
    if (stop_before(tile, hooks, c, cycle))
        return;
    Traced traced;
    before_issue(c, &traced);
    issue_supervisor(tile, cache, cycle);
    after_issue(tile, hooks, c, &traced, cycle);
}

/* First cycle >= now in which this operand set is ready. */
static uint64_t operands_ready(const Tile *tile, uint32_t reads, uint64_t now)
{
    for (; reads; reads &= reads - 1) {
        uint64_t ready = tile->ready[__builtin_ctz(reads)];
        if (ready > now)
            now = ready;
    }
    return now;
}

/* Before the fabric has delivered a phase, a tile that is past its row may not look at memory,
 * launch, meet a barrier or move its mux. */
static bool must_pause(const Tile *tile, const Decoded *d)
{
    if (tile->window != WINDOW_OPEN)
        return false;
    bool past = tile->row_begun || !tile->took_part;
    return d->kind & (KIND_LAUNCH | KIND_SYNC) ||
           (past && d->kind & (KIND_MEMORY | KIND_EXCHANGE_CSR));
}

/* Listening to a tile, or to 64-bit items: the fabric must know that of every single tile. */
static bool begins_to_listen(const Context *c, const Decoded *d)
{
    if (d->form != FORM_put_mmmn_zi || !(d->kind & KIND_EXCHANGE_CSR))
        return false;
    uint32_t number = (uint32_t)d->op[1], value = c->m[d->op[0]];
    return number <= 0xa1 ? (value & 0x1fff) < TILES : number == 0xa3 && value;
}

/* A tile that stands for others executes only what is the same on all of them. */
static bool must_ask(Tile *tile, const Context *c, const Decoded *d)
{
    tile->asked = c->pc;
    tile->asked_bytes = d->kind & KIND_PRIVATE || begins_to_listen(c, d) ? 0 : 8;
    uint32_t offset = c->pc - SRAM_BASE;
    if (tile->asked_bytes && offset < CODE_BYTES && words_defined(c->defined, offset, 8))
        return false;
    tile->state = TILE_ASKING;
    return true;
}

static void supervisor_outcome(Tile *tile, Context *c, const Decoded *d, uint32_t outcome,
                               uint64_t cycle)
{
    switch (outcome) {
    case OUTCOME_BLOCK:
        c->bundles++;
        c->pc = c->next_pc;
        break;
    case OUTCOME_RETURN:
        c->bundles++;
        c->next = cycle + TIMING_BRANCH;
        c->pc = SIM_RETURN_ADDRESS;
        tile->state = TILE_RETURNED;
        break;
    case OUTCOME_COMPLETE:
        c->bundles++;
        c->next = NEVER;
        c->status = 0;
        tile->state = TILE_ENDED;
        break;
    case OUTCOME_UNDEFINED:
        if (tile->group) { /* not known yet to be the same on all tiles of the group */
            tile->asked = tile->detail_address;
            tile->asked_bytes = 4;
            tile->detail = NULL;
            tile->state = TILE_ASKING;
            c->next = cycle;
            break;
        }
        fail(tile, c, d, outcome, cycle);
        break;
    default:
        fail(tile, c, d, outcome, cycle);
    }
}

static void record(Recorder *recorder, uint32_t pc, uint64_t cycle)
{
    uint32_t word = (pc - recorder->first) / 4;
    if (word < recorder->words && recorder->marked[word / 8] >> (word % 8) & 1)
        array_push(&recorder->samples, (SimSample){cycle, pc});
}

/* One instruction of the supervisor in a free slot, if its operands are ready. */
static void issue_supervisor(Tile *tile, Cache *cache, uint64_t cycle)
{
    Context *c = &tile->contexts[0];
    const Decoded *d = cache_supervisor(cache, tile, c->pc);
    uint64_t ready = operands_ready(tile, d->reads, cycle);
    if (ready > cycle) {
        c->next = ready;
        return;
    }
    if (must_pause(tile, d)) {
        tile->state = TILE_PAUSED;
        return;
    }
    if (unlikely(tile->group) && must_ask(tile, c, d))
        return;
    if (unlikely(tile->recorder != NULL))
        record(tile->recorder, c->pc, cycle);
    if (c->pc == tile->watch_pc) {
        tile->watch_cycle = cycle;
        tile->watched = true;
    }
    tile->cycle = cycle;
    c->next_pc = c->pc + d->size;
    c->taken = false;
    c->next = cycle + 1; /* handlers of longer instructions set it */
    uint32_t outcome = d->main(c, d);
    if (unlikely(outcome)) {
        supervisor_outcome(tile, c, d, outcome, cycle);
        return;
    }
    for (uint32_t writes = d->writes; writes; writes &= writes - 1)
        tile->ready[__builtin_ctz(writes)] = cycle + TIMING_RESULT;
    if (c->taken)
        c->next = cycle + TIMING_BRANCH;
    if (d->kind & KIND_MEMORY)
        tile->work_end = cycle;
    c->bundles++;
    c->pc = c->next_pc;
}

static void runaway(Tile *tile, uint64_t cycle)
{
    Context *c = tile->contexts;
    while (c->next == NEVER && c < &tile->contexts[TILE_CONTEXTS - 1])
        c++;
    tile->detail = "the limit of cycles is reached";
    tile->detail_address = tile->fault_at = c->pc;
    tile_fault(tile, c, OUTCOME_LIMIT, cycle);
}

/* One cycle in which the supervisor could issue. */
static void run_cycle(Tile *tile, Cache *cache, const Hooks *hooks, uint64_t cycle)
{
    Context *worker = &tile->contexts[1 + cycle % TILE_WORKERS];
    if (worker->next == NEVER) {
        if (hooks)
            issue_supervisor_watched(tile, cache, hooks, cycle);
        else
            issue_supervisor(tile, cache, cycle);
    } else if (worker->next == cycle) {
        if (hooks)
            issue_worker_watched(tile, cache, hooks, worker, cycle);
        else
            issue_worker(tile, worker, fetch(tile, cache, worker->pc), cycle);
    }
}

void tile_run(Tile *tile, Cache *cache, const Hooks *hooks)
{
    Context *supervisor = &tile->contexts[0];
    uint64_t cycle = tile->cycle;
    while (tile->state == TILE_RUNNING) {
        if (cycle >= tile->limit) {
            runaway(tile, cycle);
            break;
        }
        if (tile->active == 0) {
            if (supervisor->next > cycle)
                cycle = supervisor->next < tile->limit ? supervisor->next : tile->limit;
            if (cycle < tile->limit)
                run_cycle(tile, cache, hooks, cycle++);
        } else if (supervisor->next > cycle || tile->active == TILE_WORKERS) {
            uint64_t until = supervisor->next > cycle ? supervisor->next : tile->limit;
            if (until > tile->limit)
                until = tile->limit;
            cycle = hooks ? run_workers_watched(tile, cache, hooks, cycle, until)
                          : run_workers(tile, cache, cycle, until);
        } else {
            run_cycle(tile, cache, hooks, cycle++);
        }
        if (tile->state == TILE_PAUSED || tile->state == TILE_ASKING)
            cycle--; /* nothing was issued in it */
    }
    tile->cycle = cycle;
}
