/* sim_backend.c - the simulator as a device: an always-ready host. */
#include "device/backend.h"

#include "sim/sim.h"

#include <stdlib.h>
#include <string.h>

/* Far above any inference; a damaged program that loops ends with a message within seconds. */
#define RUNAWAY_CYCLES ((uint64_t)1 << 30)

typedef struct SimBackend {
    Sim *sim;
    const Package *package;
    bool verify;
} SimBackend;

static const char *symbol_at(const Package *package, uint32_t tile, uint32_t pc, uint32_t *offset)
{
    const PackageRegion *found = NULL;
    for (uint32_t i = 0; i < package->region_count && !found; i++) {
        const PackageRegion *r = &package->regions[i];
        if ((r->physical == PACKAGE_ALL_TILES || r->physical == tile) && pc >= r->address &&
            pc - r->address < r->bytes)
            found = r;
    }
    if (!found)
        return NULL;
    *offset = pc - found->address;
    const char *name = found->name;
    if (found->physical == PACKAGE_ALL_TILES)
        for (uint32_t i = 0; i < package->symbol_count; i++) {
            uint32_t address = package->symbols[i].address;
            if (address <= pc && pc - address <= *offset) {
                *offset = pc - address;
                name = package->symbols[i].name;
            }
        }
    return name;
}

static Status fault_status(const SimBackend *b)
{
    const SimFault *fault = sim_fault(b->sim);
    uint32_t offset = 0;
    const char *symbol = symbol_at(b->package, fault->tile, fault->pc, &offset);
    char context[16] = "supervisor", place[160] = "";
    if (fault->context)
        snprintf(context, sizeof context, "worker %u", fault->context - 1);
    if (symbol)
        snprintf(place, sizeof place, " (%s+%#x)", symbol, offset);
    return status_error("fault %s on tile %u (physical %u), %s, at %#x%s, cycle %llu: %s: %s",
                        target_exception_name(fault->type), target_logical(fault->tile),
                        fault->tile, context, fault->pc, place, (unsigned long long)fault->cycle,
                        fault->instruction, fault->message);
}

static Status sim_backend_write(void *state, uint32_t tile, uint32_t address, const void *data,
                                uint32_t bytes)
{
    return sim_write(((SimBackend *)state)->sim, tile, address, data, bytes);
}

static Status sim_backend_read(void *state, uint32_t tile, uint32_t address, void *data,
                               uint32_t bytes)
{
    return sim_read(((SimBackend *)state)->sim, tile, address, data, bytes);
}

static Status sim_backend_resume(void *state, BackendStop *stop)
{
    SimBackend *b = state;
    SimStop reason = sim_run(b->sim);
    if (reason == SIM_FAULT)
        return fault_status(b);
    *stop = reason == SIM_COMPLETE ? BACKEND_COMPLETE : BACKEND_RENDEZVOUS;
    return STATUS_OK;
}

/* A program without an exchange has no first barrier: it counts from the start sample that every
 * tile takes before its first step (the low word of the cycle counter), the earliest of them. */
static uint64_t earliest_start(const SimBackend *b, uint64_t last)
{
    uint64_t longest = 0;
    for (uint32_t t = 0; t < b->package->tiles_used; t++) {
        uint32_t start = 0;
        if (status_discard(sim_read(b->sim, target_physical(t), STATE_BASE + STATE_START_CYCLE,
                                    &start, sizeof start)))
            continue;
        uint32_t span = (uint32_t)last - start;
        longest = span > longest ? span : longest;
    }
    return last - longest;
}

static void sim_backend_measure(void *state, DeviceRun *run)
{
    SimBackend *b = state;
    uint32_t count;
    const SimPhase *phases = sim_phases(b->sim, &count);
    uint64_t last = 0, cycle;
    for (uint32_t t = 0; t < b->package->tile_count; t++)
        if (sim_watched(b->sim, b->package->tiles[t].physical, &cycle) && cycle > last)
            last = cycle;
    *run = (DeviceRun){.phases = count};
    uint64_t start = count ? phases[0].released : earliest_start(b, last);
    if (last > start)
        run->cycles = last - start;
    for (uint32_t p = 0; p < count; p++) {
        run->boundary_cycles += phases[p].event0 - phases[p].entered;
        run->exchange_cycles += phases[p].ended - phases[p].event0;
        run->exchange_words += phases[p].words_received;
    }
}

/* Words received in the phases that ran, against what the package says each must deliver. Phases
 * run in the package's order; those of a repeat come again in the same order. */
static Status sim_backend_verify(void *state)
{
    SimBackend *b = state;
    if (!b->verify)
        return STATUS_OK;
    uint32_t count, planned = b->package->phase_count, first = 0, p = 0;
    const SimPhase *phases = sim_phases(b->sim, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (p == planned)
            return status_error("phase %u ran, the package has %u", i, planned);
        const PackagePhase *phase = &b->package->phases[p];
        if (phase->in_repeat && (p == 0 || !b->package->phases[p - 1].in_repeat))
            first = p;
        if (phases[i].words_received != phase->words_received)
            return status_error("phase %u of %s received %llu words, %llu were meant", p,
                                phase->operation, (unsigned long long)phases[i].words_received,
                                (unsigned long long)phase->words_received);
        p++;
        /* at the end of a repeat's phases: again, when more phases follow than the plan has left */
        if (phase->in_repeat && (p == planned || !b->package->phases[p].in_repeat) &&
            count - i - 1 > planned - p)
            p = first;
    }
    return STATUS_OK;
}

static const SimSample *sim_backend_samples(void *state, uint32_t tile, uint32_t *count)
{
    return sim_recorded(((SimBackend *)state)->sim, tile, count);
}

static void sim_backend_destroy(void *state)
{
    SimBackend *b = state;
    sim_destroy(b->sim);
    free(b);
}

static Status load(SimBackend *b)
{
    for (uint32_t t = 0; t < b->package->tile_count; t++) {
        const PackageTile *tile = &b->package->tiles[t];
        for (uint32_t s = 0; s < tile->segment_count; s++) {
            const PackageSegment *segment = &tile->segments[s];
            TRY(sim_write(b->sim, tile->physical, segment->address, segment->data,
                          segment->data_bytes));
            static const uint8_t zeros[4096];
            for (uint32_t at = segment->data_bytes; at < segment->memory_bytes;) {
                uint32_t bytes = min_u32(sizeof zeros, segment->memory_bytes - at);
                TRY(sim_write(b->sim, tile->physical, segment->address + at, zeros, bytes));
                at += bytes;
            }
        }
        sim_set_entry(b->sim, tile->physical, tile->entry);
        sim_watch(b->sim, tile->physical, tile->steps_end);
    }
    return STATUS_OK;
}

static uint32_t steps_end(const Package *package, uint32_t physical)
{
    for (uint32_t t = 0; t < package->tile_count; t++)
        if (package->tiles[t].physical == physical)
            return package->tiles[t].steps_end;
    return 0;
}

static void record_steps(SimBackend *b)
{
    ARRAY(uint32_t) addresses = {0};
    for (uint32_t t = 0; t < b->package->profile_tile_count; t++) {
        const ProfileTilePlan *plan = &b->package->profile_tiles[t];
        addresses.count = 0;
        array_append(&addresses, plan->addresses, plan->step_count);
        array_push(&addresses, steps_end(b->package, plan->physical));
        sim_record(b->sim, plan->physical, addresses.items, (uint32_t)addresses.count);
    }
    array_free(&addresses);
}

Status sim_backend_create(const Package *package, const DeviceOptions *options, Backend *out)
{
    if (package->tile_count != TILES)
        return status_error("the package has %u tiles, the chip %d", package->tile_count, TILES);
    SimBackend *b = xcalloc(1, sizeof *b);
    *b = (SimBackend){.package = package, .verify = options->verify};
    /* the simulator's own verify mode is not used: kernels may read memory whose values they drop
     */
    SimOptions sim = {.tiles = TILES,
                      .threads = options->threads,
                      .max_cycles = options->max_cycles ? options->max_cycles : RUNAWAY_CYCLES};
    Status status = sim_create(&sim, &b->sim);
    if (status_ok(status))
        status = load(b);
    if (status_ok(status) && options->profile == DEVICE_PROFILE_SIMULATOR)
        record_steps(b);
    if (!status_ok(status)) {
        if (b->sim)
            sim_destroy(b->sim);
        free(b);
        return status;
    }
    *out = (Backend){b,
                     sim_backend_write,
                     sim_backend_read,
                     sim_backend_resume,
                     sim_backend_measure,
                     sim_backend_verify,
                     sim_backend_samples,
                     sim_backend_destroy};
    return STATUS_OK;
}
