/* profile.c - samples of a call made into a profile.
 *
 * The plan of a tile with its loops unrolled is the sequence of steps that it ran; a source of
 * samples gives one time for the beginning of each and one for the end of the last. Both sources go
 * through here, so that the files they give are alike. */
#include "device/profile.h"

#include <stdlib.h>
#include <string.h>

enum { SEQUENCE_LIMIT = 1 << 22 }; /* steps of one tile in one call */

typedef struct Unrolled { /* indices in the tile's plan, and iterations (0 outside loops) */
    ARRAY(uint32_t) entries;
    ARRAY(uint32_t) epochs;
} Unrolled;

static uint32_t iterations_of(const ProfileStep *step)
{
    const char *text = profile_metadata(step, "iterations");
    return text ? (uint32_t)strtoul(text, NULL, 10) : 1;
}

/* Loops do not nest. */
static Status unroll(const Package *package, const ProfileTilePlan *plan, Unrolled *out)
{
    uint32_t epoch = 0, iterations = 0, body = 0;
    out->entries.count = out->epochs.count = 0;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const ProfileStep *step = &package->profile_steps[plan->steps[i]];
        if (out->entries.count == SEQUENCE_LIMIT)
            return status_error("the plan of physical tile %u has more than %d steps",
                                plan->physical, SEQUENCE_LIMIT);
        array_push(&out->entries, i);
        array_push(&out->epochs, epoch);
        if (strcmp(step->kernel, PROFILE_REPEAT) == 0) {
            epoch = 1;
            iterations = iterations_of(step);
            body = i;
        } else if (strcmp(step->kernel, PROFILE_REPEAT_END) == 0 && epoch) {
            if (epoch < iterations) {
                epoch++;
                i = body;
            } else {
                epoch = 0;
            }
        }
    }
    return STATUS_OK;
}

static Status simulator_times(const Backend *backend, const ProfileTilePlan *plan,
                              const Unrolled *sequence, uint32_t *times)
{
    uint32_t count;
    const SimSample *samples = backend->samples(backend->state, plan->physical, &count);
    if (count != sequence->entries.count + 1)
        return status_error("physical tile %u: %u samples, %zu are planned", plan->physical, count,
                            sequence->entries.count + 1);
    for (uint32_t i = 0; i < count; i++) {
        if (i + 1 < count && samples[i].pc != plan->addresses[sequence->entries.items[i]])
            return status_error("physical tile %u: sample %u is of %#x, step %u begins at %#x",
                                plan->physical, i, samples[i].pc, sequence->entries.items[i],
                                plan->addresses[sequence->entries.items[i]]);
        times[i] = (uint32_t)samples[i].cycle;
    }
    return STATUS_OK;
}

static Status package_times(const Backend *backend, const Package *package,
                            const ProfileTilePlan *plan, const Unrolled *sequence, uint32_t *times)
{
    const PackageBinding *binding =
        device_binding(package->outputs, package->output_count, PROFILE_BINDING, 0);
    uint64_t bytes = 4 * (uint64_t)(sequence->entries.count + 1);
    for (uint32_t s = 0; binding && s < binding->slice_count; s++) {
        const PackageSlice *slice = &binding->slices[s];
        if (slice->tile != plan->physical)
            continue;
        if (slice->bytes != bytes)
            return status_error("physical tile %u: %llu bytes of samples, %llu are planned",
                                plan->physical, (unsigned long long)slice->bytes,
                                (unsigned long long)bytes);
        return backend->read(backend->state, plan->physical, slice->address, times,
                             (uint32_t)bytes);
    }
    return status_error("physical tile %u: the package has no samples of it", plan->physical);
}

static Status profile_tile(const Backend *backend, const Package *package, uint8_t source,
                           const ProfileTilePlan *plan, Unrolled *sequence, Arena *arena,
                           ProfileTile *out)
{
    TRY(unroll(package, plan, sequence));
    uint32_t count = (uint32_t)sequence->entries.count;
    uint32_t *times = xcalloc(count + 1, sizeof *times);
    Status status = source == DEVICE_PROFILE_SIMULATOR
                        ? simulator_times(backend, plan, sequence, times)
                        : package_times(backend, package, plan, sequence, times);
    *out = (ProfileTile){.physical = plan->physical,
                         .samples = arena_array(arena, ProfileSample, count),
                         .sample_count = count,
                         .activities = plan->activities,
                         .activity_count = plan->activity_count};
    for (uint32_t i = 0; i < count; i++)
        out->samples[i] = (ProfileSample){plan->steps[sequence->entries.items[i]],
                                          sequence->epochs.items[i], times[i], times[i + 1]};
    free(times);
    return status;
}

Status device_check_profile(const Package *package, uint8_t profile)
{
    if (profile == DEVICE_PROFILE_NONE)
        return STATUS_OK;
    if (!package->profile_tile_count)
        return status_error("the package has no profile plan: build it with this version");
    if (profile == DEVICE_PROFILE_PACKAGE && package->profile_mode == PROFILE_OFF)
        return status_error("the package takes no samples of its steps: build it with --profile "
                            "full, or profile with --profile-source simulator");
    return STATUS_OK;
}

/* One sample a tile: from the beginning to the end of its steps. */
static Status collect_overall(const Backend *backend, const Package *package, Arena *arena,
                              Profile *out)
{
    out->steps = arena_new(arena, ProfileStep);
    out->steps[0] = (ProfileStep){.kind = PROFILE_COMPUTE, .operation = "run", .kernel = ""};
    out->step_count = 1;
    out->prediction_count = 0;
    for (uint32_t t = 0; t < package->profile_tile_count; t++) {
        uint32_t times[2], physical = package->profile_tiles[t].physical;
        TRY(backend->read(backend->state, physical, STATE_BASE + STATE_START_CYCLE, times,
                          sizeof times));
        ProfileSample *sample = arena_new(arena, ProfileSample);
        *sample = (ProfileSample){.start = times[0], .end = times[1]};
        out->tiles[out->tile_count++] =
            (ProfileTile){.physical = physical, .samples = sample, .sample_count = 1};
    }
    return STATUS_OK;
}

Status profile_collect(const Backend *backend, const Package *package, uint8_t source, Arena *arena,
                       Profile *out)
{
    const char *program = package_text(package, "name");
    *out = (Profile){.clock_hz = CLOCK_HZ,
                     .source = source == DEVICE_PROFILE_SIMULATOR ? "simulator" : "package",
                     .program = program ? program : "",
                     .tiles_used = package->tiles_used,
                     .steps = package->profile_steps,
                     .step_count = package->profile_step_count,
                     .predictions = package->predictions,
                     .prediction_count = package->prediction_count,
                     .tiles = arena_array(arena, ProfileTile, package->profile_tile_count)};
    if (source == DEVICE_PROFILE_PACKAGE && package->profile_mode == PROFILE_OVERALL)
        return collect_overall(backend, package, arena, out);
    Unrolled sequence = {0};
    Status status = STATUS_OK;
    for (uint32_t t = 0; t < package->profile_tile_count && status_ok(status); t++)
        status = profile_tile(backend, package, source, &package->profile_tiles[t], &sequence,
                              arena, &out->tiles[out->tile_count++]);
    array_free(&sequence.entries);
    array_free(&sequence.epochs);
    return status;
}
