/* sim.c - the machine: tiles run alone until a barrier, a row's end or their own end stops them.
 *
 * The one idea: a stop of every tile is a point in which nothing is left to race. There, and only
 * there, tiles affect each other: a barrier releases them, the fabric delivers a phase, or the host
 * takes over. So the order in which host threads run the tiles can not matter. */
#include "sim/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { NEUTRAL_EXIT = -1, LOOK_EVERY = 4 /* releases, for tiles that do the same */ };

/* --- creation */

static void init_tile(Sim *sim, uint32_t number)
{
    Tile *tile = &sim->tiles[number];
    FabricTile *fabric = &sim->fabric[number];
    tile->number = number;
    tile->fabric = fabric;
    tile->memory = fabric->memory = sim->memory + (size_t)number * SRAM_BYTES;
    fabric->defined = sim->defined ? sim->defined + (size_t)number * DEFINED_BYTES : NULL;
    fabric->mux = fabric->mux_pair = MUX_NEUTRAL;
    tile->last_exit = NEUTRAL_EXIT;
    tile->local_wait = NEVER;
    tile->state = TILE_RETURNED;
    tile->limit = NEVER;
    weights_clear(&tile->weights);
    for (uint32_t i = 0; i < TILE_CONTEXTS; i++) {
        Context *c = &tile->contexts[i];
        c->number = i;
        c->tile = tile;
        c->memory = tile->memory;
        c->defined = c->written = fabric->defined;
        c->next = NEVER;
        if (i)
            c->m[12] = STATE_BASE + STATE_WORKER_BASE + 0x100 * (i - 1);
    }
    tile->contexts[0].m[11] = STATE_BASE + STATE_STACK;
}

/* Memory that costs nothing until a tile touches it. */
static uint8_t *map_zeroes(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        fatal_out_of_memory();
    return memory;
}

Status sim_create(const SimOptions *options, Sim **out)
{
    *out = NULL;
    if (options->tiles < 1 || options->tiles > TILES)
        return status_error("a simulator of %u tiles: 1..%d are possible", options->tiles, TILES);
    Sim *sim = xcalloc(1, sizeof *sim);
    sim->count = options->tiles;
    sim->verify = options->verify;
    sim->max_cycles = options->max_cycles ? options->max_cycles : (uint64_t)1 << 62;
    sim->memory = map_zeroes((size_t)sim->count * SRAM_BYTES);
    if (sim->verify)
        sim->defined = map_zeroes((size_t)sim->count * DEFINED_BYTES);
    sim->tiles = xcalloc(sim->count, sizeof *sim->tiles);
    sim->fabric = xcalloc(sim->count, sizeof *sim->fabric);
    sim->sharing = sim->count > 1 && !options->no_sharing;
    sim->runnable = xcalloc(sim->count, sizeof *sim->runnable);
    sim->live = xcalloc(sim->count, sizeof *sim->live);
    for (uint32_t i = 0; i < sim->count; i++)
        sim->live[sim->live_count++] = i;
    sim->pool = pool_create(sim->count == 1 ? 1 : options->threads);
    sim->caches = xcalloc(pool_width(sim->pool), sizeof(Cache *));
    for (unsigned i = 0; i < pool_width(sim->pool); i++)
        sim->caches[i] = cache_create();
    for (uint32_t i = 0; i < sim->count; i++)
        init_tile(sim, i);
    *out = sim;
    return STATUS_OK;
}

static void free_recorder(Tile *tile)
{
    if (!tile->recorder)
        return;
    free(tile->recorder->marked);
    array_free(&tile->recorder->samples);
    free(tile->recorder);
    tile->recorder = NULL;
}

void sim_destroy(Sim *sim)
{
    if (!sim)
        return;
    share_destroy(sim);
    for (uint32_t i = 0; i < sim->count; i++) {
        array_free(&sim->fabric[i].sends);
        array_free(&sim->fabric[i].controls);
        free_recorder(&sim->tiles[i]);
    }
    for (unsigned i = 0; i < pool_width(sim->pool); i++)
        cache_destroy(sim->caches[i]);
    pool_destroy(sim->pool);
    munmap(sim->memory, (size_t)sim->count * SRAM_BYTES);
    if (sim->defined)
        munmap(sim->defined, (size_t)sim->count * DEFINED_BYTES);
    array_free(&sim->phases);
    free(sim->caches);
    free(sim->tiles);
    free(sim->fabric);
    free(sim->runnable);
    free(sim->live);
    free(sim);
}

/* --- memory and registers from outside */

static Status check_range(const Sim *sim, uint32_t tile, uint32_t address, uint32_t bytes)
{
    if (tile >= sim->count)
        return status_error("tile %u of %u", tile, sim->count);
    if (address < SRAM_BASE || address > SRAM_END || bytes > SRAM_END - address)
        return status_error("tile %u: 0x%x..+%u is not inside the memory 0x%x..0x%x", tile, address,
                            bytes, SRAM_BASE, SRAM_END);
    return STATUS_OK;
}

/* A tile that is looked at or changed from outside goes its own way; to the caller it always did.
 */
static Tile *own_tile(const Sim *sim, uint32_t tile)
{
    share_leave((Sim *)sim, tile);
    return &sim->tiles[tile];
}

uint8_t *sim_memory(Sim *sim, uint32_t tile)
{
    return tile < sim->count ? own_tile(sim, tile)->memory : NULL;
}

Status sim_write(Sim *sim, uint32_t tile, uint32_t address, const void *data, uint32_t bytes)
{
    TRY(check_range(sim, tile, address, bytes));
    if (!bytes)
        return STATUS_OK;
    memcpy(own_tile(sim, tile)->memory + (address - SRAM_BASE), data, bytes);
    if (sim->defined)
        words_define(sim->fabric[tile].defined, address - SRAM_BASE, bytes);
    return STATUS_OK;
}

Status sim_read(Sim *sim, uint32_t tile, uint32_t address, void *data, uint32_t bytes)
{
    TRY(check_range(sim, tile, address, bytes));
    if (bytes)
        memcpy(data, own_tile(sim, tile)->memory + (address - SRAM_BASE), bytes);
    return STATUS_OK;
}

static Context *context_of(const Sim *sim, uint32_t tile, uint32_t context)
{
    return &own_tile(sim, min_u32(tile, sim->count - 1))
                ->contexts[min_u32(context, TILE_CONTEXTS - 1)];
}

void sim_get_context(const Sim *sim, uint32_t tile, uint32_t context, SimContext *out)
{
    context_export(context_of(sim, tile, context), out);
}

void sim_set_context(Sim *sim, uint32_t tile, uint32_t context, const SimContext *in)
{
    context_import(context_of(sim, tile, context), in);
}

bool sim_set_csr(Sim *sim, uint32_t tile, uint32_t context, uint32_t number, uint32_t value)
{
    Context *c = context_of(sim, tile, context);
    bool known = csr_write(c, number, value, true) == OUTCOME_DONE;
    c->tile->detail = NULL;
    return known;
}

uint64_t sim_get_weight(const Sim *sim, uint32_t tile, uint32_t index)
{
    return tile < sim->count && index < 64 ? sim->tiles[tile].weights.raw[index] : 0;
}

void sim_set_weight(Sim *sim, uint32_t tile, uint32_t index, uint64_t value)
{
    if (tile < sim->count && index < 64)
        weights_write(&own_tile(sim, tile)->weights, index, value);
}

void sim_watch(Sim *sim, uint32_t tile, uint32_t pc)
{
    if (tile >= sim->count)
        return;
    own_tile(sim, tile)->watch_pc = pc;
    sim->tiles[tile].watched = false;
}

bool sim_watched(const Sim *sim, uint32_t tile, uint64_t *cycle)
{
    if (tile >= sim->count || !share_leader(sim, tile)->watched)
        return false;
    *cycle = share_leader(sim, tile)->watch_cycle;
    return true;
}

void sim_record(Sim *sim, uint32_t number, const uint32_t *addresses, uint32_t count)
{
    if (number >= sim->count)
        return;
    Tile *tile = &sim->tiles[number];
    free_recorder(tile);
    if (!count)
        return;
    Recorder *recorder = xcalloc(1, sizeof *recorder);
    recorder->first = addresses[0];
    recorder->words = (addresses[count - 1] - addresses[0]) / 4 + 1;
    recorder->marked = xcalloc(recorder->words / 8 + 1, 1);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t word = (addresses[i] - addresses[0]) / 4;
        if (word < recorder->words)
            recorder->marked[word / 8] |= (uint8_t)(1u << word % 8);
    }
    tile->recorder = recorder;
}

const SimSample *sim_recorded(const Sim *sim, uint32_t number, uint32_t *count)
{
    const Recorder *recorder = number < sim->count ? sim->tiles[number].recorder : NULL;
    *count = recorder ? (uint32_t)recorder->samples.count : 0;
    return recorder ? recorder->samples.items : NULL;
}

void sim_trace(Sim *sim, SimTrace *trace, void *context)
{
    sim->hooks.trace = trace;
    sim->hooks.trace_context = context;
}

void sim_break(Sim *sim, uint32_t pc)
{
    sim->hooks.break_pc = pc;
}

const SimFault *sim_fault(const Sim *sim)
{
    return &sim->fault;
}

const SimPhase *sim_phases(const Sim *sim, uint32_t *count)
{
    *count = (uint32_t)sim->phases.count;
    return sim->phases.items;
}

uint64_t sim_cycle(const Sim *sim, uint32_t tile)
{
    return tile < sim->count ? share_leader(sim, tile)->cycle : 0;
}

SimCounts sim_counts(const Sim *sim)
{
    SimCounts counts = {.exchange_words = sim->exchange_words};
    for (uint32_t i = 0; i < sim->count; i++) {
        const Tile *tile = &sim->tiles[i];
        counts.supervisor_instructions += tile->contexts[0].bundles;
        for (int w = 1; w < TILE_CONTEXTS; w++)
            counts.worker_bundles += tile->contexts[w].bundles;
        if (tile->state == TILE_FOLLOWING)
            counts.supervisor_instructions += share_bundles(share_leader(sim, i));
    }
    return counts;
}

/* --- faults */

static void describe_instruction(const Sim *sim, SimFault *fault, uint32_t address)
{
    if (address < SRAM_BASE || address > EXECUTABLE_END - 4 || fault->instruction[0])
        return;
    const uint8_t *code = sim->tiles[fault->tile].memory + (address - SRAM_BASE);
    uint32_t first = load_u32(code), second = load_u32(code + 4);
    IsaMode mode = fault->context ? MODE_WORKER : MODE_SUPERVISOR;
    char *text = fault->instruction;
    size_t size = sizeof fault->instruction;
    Insn a, b;
    if (!isa_decode(first, second, mode, &a)) {
        snprintf(text, size, ".word 0x%08x", first);
    } else if (!a.bundled) {
        isa_print(&a, mode, text, size);
    } else if (isa_decode(second, 0, mode, &b)) {
        char one[96], two[96];
        isa_print(&a, mode, one, sizeof one);
        isa_print(&b, mode, two, sizeof two);
        snprintf(text, size, "{ %s; %s }", one, two);
    } else {
        snprintf(text, size, ".word 0x%08x, 0x%08x", first, second);
    }
}

/* The earliest fault of all tiles: the same one for any number of threads. */
static bool take_tile_fault(Sim *sim)
{
    const Tile *first = NULL;
    for (uint32_t i = 0; i < sim->live_count; i++) {
        const Tile *tile = &sim->tiles[sim->live[i]];
        if (tile->state == TILE_FAULTED && (!first || tile->fault.cycle < first->fault.cycle))
            first = tile;
    }
    if (!first)
        return false;
    sim->fault = first->fault;
    describe_instruction(sim, &sim->fault, first->fault_at);
    return true;
}

/* --- barriers */

typedef enum Barrier {
    BARRIER_NONE, /* does not wait for other tiles */
    BARRIER_INTERNAL,
    BARRIER_HOST,
    BARRIER_CHIPS /* between chips, without the host */
} Barrier;

static Barrier barrier_of(const Tile *tile)
{
    if (tile->state != TILE_WAITING)
        return BARRIER_NONE;
    if (tile->zone == 1)
        return tile->sans_zone ? BARRIER_HOST : BARRIER_INTERNAL;
    if (tile->zone == 3)
        return BARRIER_INTERNAL;
    return tile->zone & 1 ? BARRIER_HOST : BARRIER_CHIPS;
}

static const char *whereabouts(const Tile *tile, char *text, size_t size)
{
    if (tile->state == TILE_ENDED)
        snprintf(text, size, "has ended");
    else if (tile->state != TILE_WAITING)
        snprintf(text, size, "does not run");
    else if (tile->zone == 1)
        snprintf(text, size, "waits at sync 1 after sans %u", tile->sans_zone);
    else
        snprintf(text, size, "waits at sync %u", tile->zone);
    return text;
}

/* A barrier that can not complete: tiles that wait for different things, or do not wait. */
static void barrier_fault(Sim *sim)
{
    const Tile *waiting = NULL, *other = NULL;
    for (uint32_t i = 0; i < sim->live_count && !waiting; i++)
        if (sim->tiles[sim->live[i]].state == TILE_WAITING)
            waiting = &sim->tiles[sim->live[i]];
    if (!waiting)
        waiting = &sim->tiles[0];
    for (uint32_t i = 0; i < sim->live_count && !other; i++)
        if (barrier_of(&sim->tiles[sim->live[i]]) != barrier_of(waiting))
            other = &sim->tiles[sim->live[i]];
    char here[48], there[48];
    sim->fault = (SimFault){.set = true,
                            .tile = waiting->number,
                            .pc = waiting->contexts[0].pc - 4,
                            .cycle = waiting->wait_cycle};
    snprintf(sim->fault.message, sizeof sim->fault.message,
             "a barrier that not all tiles reach: tile %u %s, tile %u %s", waiting->number,
             whereabouts(waiting, here, sizeof here), other ? other->number : 0,
             other ? whereabouts(other, there, sizeof there) : "");
    describe_instruction(sim, &sim->fault, sim->fault.pc);
}

static bool all_wait_for(const Sim *sim, Barrier barrier)
{
    for (uint32_t i = 0; i < sim->live_count; i++)
        if (barrier_of(&sim->tiles[sim->live[i]]) != barrier)
            return false;
    return true;
}

static uint64_t arrival(const Tile *tile)
{
    return tile->zone == 1 ? tile->sans_cycle : tile->wait_cycle;
}

static void open_window(Tile *tile, uint64_t released)
{
    FabricTile *fabric = tile->fabric;
    fabric->sends.count = fabric->controls.count = 0;
    fabric->row_start = fabric->row_end = released;
    fabric->row_first = UINT32_MAX;
    fabric->row_last = 0;
    fabric->words_sent = fabric->words_received = 0;
    fabric->active = false;
    tile->took_part = tile->zone == 3;
    tile->row_begun = false;
    tile->window = WINDOW_OPEN;
}

static void release_tile(Tile *tile, Barrier barrier, uint64_t released)
{
    Context *c = &tile->contexts[0];
    c->next = released > tile->wait_cycle ? released : tile->wait_cycle + 1;
    if (barrier == BARRIER_INTERNAL)
        open_window(tile, released);
    else
        tile->window = barrier == BARRIER_HOST ? WINDOW_HOST : WINDOW_NONE;
    if (tile->zone == 1)
        tile->sans_pending = false;
    tile->state = TILE_RUNNING;
}

static void release(Sim *sim, Barrier barrier)
{
    uint64_t last = 0;
    SimPhase phase = {0};
    for (uint32_t i = 0; i < sim->live_count; i++) {
        const Tile *tile = &sim->tiles[sim->live[i]];
        uint64_t cycle = arrival(tile);
        last = cycle > last ? cycle : last;
        if (tile->zone == 3 && tile->work_end > phase.entered)
            phase.entered = tile->work_end;
    }
    uint64_t released = last + (barrier == BARRIER_HOST ? TIMING_HOST_SYNC : TIMING_EXCHANGE_SYNC);
    for (uint32_t i = 0; i < sim->live_count; i++)
        release_tile(&sim->tiles[sim->live[i]], barrier, released);
    if (barrier == BARRIER_HOST || ++sim->releases % LOOK_EVERY == 0)
        share_look(sim);
    if (barrier != BARRIER_INTERNAL)
        return;
    sim->window_open = true;
    phase.released = phase.event0 = phase.ended = released;
    array_push(&sim->phases, phase);
}

/* --- the fabric */

static void close_window(Tile *tile)
{
    tile->window = WINDOW_DELIVERED;
    tile->received += (uint32_t)tile->fabric->words_received;
    if (tile->row_begun && tile->fabric->row_end > tile->work_end)
        tile->work_end = tile->fabric->row_end;
    if (tile->state == TILE_PAUSED)
        tile->state = TILE_RUNNING;
}

static void measure_phase(Sim *sim, SimPhase *phase)
{
    bool any = false;
    for (uint32_t i = 0; i < sim->live_count; i++) {
        const FabricTile *fabric = &sim->fabric[sim->live[i]];
        phase->words_sent += fabric->words_sent;
        phase->words_received += fabric->words_received;
        if (!fabric->active)
            continue;
        if (!any || fabric->row_start < phase->event0)
            phase->event0 = fabric->row_start;
        if (!any || fabric->row_end > phase->ended)
            phase->ended = fabric->row_end;
        any = true;
    }
    sim->exchange_words += phase->words_received;
}

/* All tiles are past their rows. False: a fault. */
static bool deliver(Sim *sim)
{
    sim->window_open = false;
    bool any = false;
    for (uint32_t i = 0; i < sim->live_count; i++) {
        sim->fabric[sim->live[i]].active = sim->tiles[sim->live[i]].row_begun;
        any |= sim->fabric[sim->live[i]].active;
    }
    if (any && sim->count > 1 &&
        !fabric_deliver(sim->fabric, sim->count, sim->verify, sim->pool, &sim->fault)) {
        sim->tiles[sim->fault.tile].state = TILE_FAULTED;
        describe_instruction(sim, &sim->fault, sim->fault.pc);
        return false;
    }
    if (sim->phases.count)
        measure_phase(sim, &sim->phases.items[sim->phases.count - 1]);
    log_progress(sim->phases.count, 0);
    for (uint32_t i = 0; i < sim->live_count; i++)
        close_window(&sim->tiles[sim->live[i]]);
    return true;
}

/* --- running */

static void run_one(void *context, size_t index, unsigned worker)
{
    Sim *sim = context;
    bool watched = sim->hooks.trace || sim->hooks.break_pc;
    tile_run(&sim->tiles[sim->runnable[index]], sim->caches[worker], watched ? &sim->hooks : NULL);
}

static void run_tiles(Sim *sim)
{
    sim->runnable_count = 0;
    for (uint32_t i = 0; i < sim->live_count; i++)
        if (sim->tiles[sim->live[i]].state == TILE_RUNNING)
            sim->runnable[sim->runnable_count++] = sim->live[i];
    if (sim->hooks.trace || sim->runnable_count == 1)
        for (uint32_t i = 0; i < sim->runnable_count; i++)
            run_one(sim, i, 0);
    else
        parallel_for(sim->pool, sim->runnable_count, run_one, sim);
}

/* Groups of tiles that do the same: their leaders may have questions. */
static bool answer_leaders(Sim *sim)
{
    bool any = false;
    for (uint32_t i = 0; i < sim->live_count; i++) {
        Tile *tile = &sim->tiles[sim->live[i]];
        if (tile->state != TILE_ASKING)
            continue;
        share_answer(sim, tile);
        any = true;
    }
    return any;
}

static bool all_ended(const Sim *sim)
{
    for (uint32_t i = 0; i < sim->live_count; i++)
        if (sim->tiles[sim->live[i]].state != TILE_ENDED)
            return false;
    return true;
}

static void set_limits(Sim *sim)
{
    uint64_t now = 0;
    for (uint32_t i = 0; i < sim->live_count; i++)
        if (sim->tiles[sim->live[i]].cycle > now)
            now = sim->tiles[sim->live[i]].cycle;
    for (uint32_t i = 0; i < sim->live_count; i++)
        sim->tiles[sim->live[i]].limit = now + sim->max_cycles;
}

void sim_set_entry(Sim *sim, uint32_t number, uint32_t pc)
{
    if (number >= sim->count)
        return;
    Tile *tile = own_tile(sim, number);
    Context *c = &tile->contexts[0];
    c->pc = pc;
    c->next = tile->cycle;
    c->status = 1;
    tile->state = TILE_RUNNING;
}

SimStop sim_run(Sim *sim)
{
    sim->fault = (SimFault){0};
    set_limits(sim);
    if (sim->at_rendezvous) {
        sim->at_rendezvous = false;
        sim->phases.count = 0;
        for (uint32_t i = 0; i < sim->count; i++)
            if (sim->tiles[i].recorder)
                sim->tiles[i].recorder->samples.count = 0;
        release(sim, BARRIER_HOST);
    }
    for (;;) {
        run_tiles(sim);
        if (answer_leaders(sim))
            continue;
        if (take_tile_fault(sim) || (sim->window_open && !deliver(sim))) {
            share_leave_all(sim);
            return SIM_FAULT;
        }
        if (all_ended(sim))
            return SIM_COMPLETE;
        if (all_wait_for(sim, BARRIER_HOST)) {
            sim->at_rendezvous = true;
            return SIM_RENDEZVOUS;
        }
        bool running = false;
        for (uint32_t i = 0; i < sim->live_count && !running; i++)
            running = sim->tiles[sim->live[i]].state == TILE_RUNNING;
        if (running)
            continue;
        if (all_wait_for(sim, BARRIER_INTERNAL)) {
            release(sim, BARRIER_INTERNAL);
        } else if (all_wait_for(sim, BARRIER_CHIPS)) {
            release(sim, BARRIER_CHIPS);
        } else {
            barrier_fault(sim);
            share_leave_all(sim);
            return SIM_FAULT;
        }
    }
}

/* --- one tile alone */

/* Entries are at multiples of six cycles, so that the same code always takes the same time. */
static uint64_t enter(Tile *tile, uint32_t context, uint32_t pc)
{
    uint64_t cycle = (tile->cycle + TILE_WORKERS - 1) / TILE_WORKERS * TILE_WORKERS;
    for (int i = 0; i < TILE_CONTEXTS; i++) {
        tile->contexts[i].next = NEVER;
        tile->contexts[i].status = 0;
    }
    memset(tile->ready, 0, sizeof tile->ready);
    tile->active = 0;
    tile->local_wait = NEVER;
    tile->window = WINDOW_NONE;
    tile->sans_pending = false;
    tile->last_exit = (int64_t)cycle - TIMING_LOCAL_SYNC; /* no join is under way */
    Context *c = &tile->contexts[context];
    if (context) {
        cycle += context - 1;
        tile->active = 1;
        tile->launches++;
        c->loop_end = 0;
    }
    c->next = cycle;
    c->pc = pc;
    c->status = 1;
    tile->cycle = cycle;
    tile->state = TILE_RUNNING;
    tile->calling = true;
    tile->call_context = context ? context : TILE_CONTEXTS;
    return cycle;
}

/* Barriers and rows of a tile that runs alone: nobody else is there. */
static void go_on_alone(Sim *sim, Tile *tile)
{
    Barrier barrier = barrier_of(tile);
    if (barrier != BARRIER_NONE)
        release_tile(tile, barrier,
                     arrival(tile) +
                         (barrier == BARRIER_HOST ? TIMING_HOST_SYNC : TIMING_EXCHANGE_SYNC));
    else if (tile->state == TILE_PAUSED)
        close_window(tile);
    (void)sim;
}

static SimStop finish_alone(Sim *sim, Tile *tile)
{
    tile->calling = false;
    tile->step_context = 0;
    tile->limit = NEVER;
    if (tile->state == TILE_FAULTED) {
        sim->fault = tile->fault;
        describe_instruction(sim, &sim->fault, tile->fault_at);
        return SIM_FAULT;
    }
    SimStop stop = tile->state == TILE_ENDED ? SIM_COMPLETE : SIM_RETURNED;
    tile->state = TILE_RETURNED;
    return stop;
}

SimStop sim_call(Sim *sim, uint32_t number, uint32_t context, uint32_t pc, uint64_t *cycles)
{
    *cycles = 0;
    sim->fault = (SimFault){0};
    if (number >= sim->count || context >= TILE_CONTEXTS) {
        sim->fault = (SimFault){.set = true, .tile = number, .context = context, .pc = pc};
        snprintf(sim->fault.message, sizeof sim->fault.message, "no such tile or context");
        return SIM_FAULT;
    }
    Tile *tile = own_tile(sim, number);
    tile->contexts[context].m[10] = SIM_RETURN_ADDRESS;
    uint64_t entry = enter(tile, context, pc);
    tile->limit = entry + sim->max_cycles;
    bool watched = sim->hooks.trace || sim->hooks.break_pc;
    while (tile->state == TILE_RUNNING) {
        tile_run(tile, sim->caches[0], watched ? &sim->hooks : NULL);
        go_on_alone(sim, tile);
    }
    if (context)
        *cycles = (uint64_t)tile->last_exit + TILE_WORKERS - entry;
    else
        *cycles = tile->contexts[0].next - entry;
    if (tile->state == TILE_FAULTED || tile->state == TILE_ENDED)
        *cycles = tile->cycle - entry;
    else
        tile->cycle = entry + *cycles > tile->cycle ? entry + *cycles : tile->cycle;
    return finish_alone(sim, tile);
}

SimStop sim_step(Sim *sim, uint32_t number, uint32_t context, uint32_t pc)
{
    sim->fault = (SimFault){0};
    if (number >= sim->count || context >= TILE_CONTEXTS)
        return SIM_FAULT;
    Tile *tile = own_tile(sim, number);
    enter(tile, context, pc);
    tile->step_context = 1 + context;
    Hooks hooks = sim->hooks;
    tile_run(tile, sim->caches[0], &hooks);
    return finish_alone(sim, tile);
}
