/* view.c - samples on one clock. */
#include "profile/profile.h"

#include <stdlib.h>
#include <string.h>

/* Signed differences of 32-bit counters: profile_check keeps all tiles within 2^30 of each other.
 */
static void find_entries(const Profile *profile, uint32_t *origin, uint32_t *latest)
{
    bool any = false;
    for (uint32_t t = 0; t < profile->tile_count; t++) {
        const ProfileTile *tile = &profile->tiles[t];
        if (!tile->sample_count)
            continue;
        uint32_t start = tile->samples[0].start;
        if (!any || (int32_t)(start - *origin) < 0)
            *origin = start;
        if (!any || (int32_t)(start - *latest) > 0)
            *latest = start;
        any = true;
    }
}

/* Samples are in order within a tile; most come out sorted when merged by a stable radix sort. */
static void sort_by_offset(ViewSample *samples, size_t count)
{
    ViewSample *other = xmalloc(array_bytes(count, sizeof *other)), *from = samples, *to = other;
    enum { BITS = 11, BUCKETS = 1 << BITS, PASSES = 3 };
    size_t *ends = xmalloc(BUCKETS * sizeof *ends);
    for (int pass = 0; pass < PASSES; pass++) {
        memset(ends, 0, BUCKETS * sizeof *ends);
        for (size_t i = 0; i < count; i++)
            ends[from[i].offset >> (BITS * pass) & (BUCKETS - 1)]++;
        size_t at = 0;
        for (size_t b = 0; b < BUCKETS; b++) {
            size_t n = ends[b];
            ends[b] = at;
            at += n;
        }
        for (size_t i = 0; i < count; i++)
            to[ends[from[i].offset >> (BITS * pass) & (BUCKETS - 1)]++] = from[i];
        ViewSample *swap = from;
        from = to;
        to = swap;
    }
    if (from != samples)
        memcpy(samples, from, count * sizeof *samples);
    free(ends);
    free(other);
}

static double number_of(const ProfileStep *step, const char *name)
{
    const char *text = profile_metadata(step, name);
    if (!text)
        return -1;
    char *end;
    double value = strtod(text, &end);
    return end != text && value >= 0 && value < 1e15 ? value : -1;
}

static void read_steps(View *view)
{
    const Profile *profile = view->profile;
    view->useful = arena_array(&view->arena, double, profile->step_count);
    view->physical = arena_array(&view->arena, double, profile->step_count);
    for (uint32_t s = 0; s < profile->step_count; s++) {
        view->useful[s] = number_of(&profile->steps[s], "usefulCycles");
        view->physical[s] = number_of(&profile->steps[s], "physicalWorkCycles");
    }
}

Status view_open(const Profile *profile, bool shared_clock, View *out)
{
    *out = (View){.profile = profile};
    TRY(profile_check(profile));
    uint32_t origin = 0, latest = 0;
    find_entries(profile, &origin, &latest);
    out->cropped = shared_clock ? 0 : latest - origin;
    size_t total = 0;
    for (uint32_t t = 0; t < profile->tile_count; t++)
        total += profile->tiles[t].sample_count;
    out->samples = xmalloc(array_bytes(total, sizeof *out->samples));
    for (uint32_t t = 0; t < profile->tile_count; t++)
        for (uint32_t i = 0; i < profile->tiles[t].sample_count; i++) {
            const ProfileSample *s = &profile->tiles[t].samples[i];
            uint32_t start = s->start - origin, end = s->end - origin;
            bool cut = start < out->cropped;
            start = cut ? 0 : start - out->cropped;
            end = end < out->cropped ? 0 : end - out->cropped;
            if (cut && end == start)
                continue;
            out->samples[out->count++] =
                (ViewSample){t, s->step, s->epoch, start, end - start, cut};
            out->span = max_u32(out->span, end);
        }
    sort_by_offset(out->samples, out->count);
    read_steps(out);
    return STATUS_OK;
}

void view_close(View *view)
{
    free(view->samples);
    arena_free(&view->arena);
    *view = (View){0};
}

uint32_t view_wait(const View *view, const ViewSample *sample)
{
    uint8_t kind = view->profile->steps[sample->step].kind;
    if (kind == PROFILE_SYNC || kind == PROFILE_IDLE)
        return sample->duration;
    if (kind != PROFILE_EXCHANGE)
        return 0;
    const ProfileActivity *activity =
        profile_activity(&view->profile->tiles[sample->tile], sample->step);
    uint32_t events = activity && activity->event_cycles
                          ? activity->event_cycles
                          : view->profile->steps[sample->step].event_cycles;
    return sample->duration > events ? sample->duration - events : 0;
}
