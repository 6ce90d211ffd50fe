/* profile.c - the rules of profiles, and profile files in and out. */
#include "package/wire.h"

#include "target/target.h"

#include <math.h>
#include <string.h>

const char *const profile_kind_names[PROFILE_KINDS] = {"exchange", "compute", "synchronization",
                                                       "idle"};

const char *profile_metadata(const ProfileStep *step, const char *name)
{
    for (uint32_t i = 0; i < step->metadata_count; i++)
        if (strcmp(step->metadata[i].name, name) == 0)
            return step->metadata[i].text;
    return NULL;
}

const ProfileActivity *profile_activity(const ProfileTile *tile, uint32_t step)
{
    uint32_t low = 0, high = tile->activity_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (tile->activities[middle].step < step)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < tile->activity_count && tile->activities[low].step == step;
    return found ? &tile->activities[low] : NULL;
}

/* Reports are JSON inside: every text must be UTF-8. */
static Status check_text(const char *text, const char *what, uint32_t number)
{
    json_t *string = json_string(text);
    bool good = string != NULL;
    json_decref(string);
    return good ? STATUS_OK : status_error("%s %u: a text is not UTF-8", what, number);
}

static Status check_texts(const Profile *profile)
{
    TRY(check_text(profile->source, "source", 0));
    TRY(check_text(profile->program, "program", 0));
    for (uint32_t s = 0; s < profile->step_count; s++) {
        const ProfileStep *step = &profile->steps[s];
        TRY(check_text(step->operation, "step", s));
        TRY(check_text(step->kernel, "step", s));
        for (uint32_t m = 0; m < step->metadata_count; m++) {
            TRY(check_text(step->metadata[m].name, "step", s));
            TRY(check_text(step->metadata[m].text, "step", s));
        }
    }
    for (uint32_t i = 0; i < profile->prediction_count; i++)
        TRY(check_text(profile->predictions[i].operation, "prediction", i));
    return STATUS_OK;
}

Status profile_check_activities(const ProfileActivity *activities, uint32_t count, uint32_t steps)
{
    for (uint32_t i = 0; i < count; i++) {
        const ProfileActivity *a = &activities[i];
        if (a->step >= steps)
            return status_error("activities[%u]: step %u of %u", i, a->step, steps);
        if (i && a->step <= activities[i - 1].step)
            return status_error("activities[%u]: step %u is not behind the one before", i, a->step);
        for (uint32_t s = 0; s < a->span_count; s++)
            if (a->spans[s].kind >= SPAN_KINDS || a->spans[s].end < a->spans[s].start)
                return status_error("activities[%u]: span %u is no span", i, s);
    }
    return STATUS_OK;
}

/* Samples follow each other: each begins where or after the one before ended, none is longer than
 * the counter's half range, which is where a difference changes its sign. */
static Status check_samples(const Profile *profile, const ProfileTile *tile)
{
    for (uint32_t i = 0; i < tile->sample_count; i++) {
        const ProfileSample *s = &tile->samples[i];
        if (s->step >= profile->step_count)
            return status_error("sample %u: step %u is unknown, there are %u", i, s->step,
                                profile->step_count);
        if ((int32_t)(s->end - s->start) < 0)
            return status_error("sample %u ends before it begins (%u, %u)", i, s->start, s->end);
        if (i && (int32_t)(s->start - tile->samples[i - 1].end) < 0)
            return status_error("sample %u begins at %u, before the end of the one before (%u)", i,
                                s->start, tile->samples[i - 1].end);
        if ((int32_t)(s->end - tile->samples[0].start) < 0)
            return status_error("sample %u is more than 2^31 cycles after the first", i);
    }
    return STATUS_OK;
}

Status profile_check(const Profile *profile)
{
    bool seen[TILES] = {0};
    if (!profile->clock_hz)
        return status_error("clockHz: 0");
    if (!profile->tile_count)
        return status_error("tiles: none");
    for (uint32_t s = 0; s < profile->step_count; s++)
        if (profile->steps[s].kind >= PROFILE_KINDS)
            return status_error("steps[%u]: unknown kind %u", s, profile->steps[s].kind);
    for (uint32_t i = 0; i < profile->prediction_count; i++)
        if (!isfinite(profile->predictions[i].cycles) ||
            !isfinite(profile->predictions[i].exchange_cycles))
            return status_error("predictions[%u]: no number", i);
    TRY(check_texts(profile));
    uint32_t origin = 0;
    bool any = false;
    for (uint32_t t = 0; t < profile->tile_count; t++) {
        const ProfileTile *tile = &profile->tiles[t];
        if (tile->physical >= TILES || seen[tile->physical])
            return status_error("tiles[%u]: physical tile %u does not exist or stands twice", t,
                                tile->physical);
        seen[tile->physical] = true;
        TRY(status_context(check_samples(profile, tile), "physical tile %u", tile->physical));
        TRY(status_context(
            profile_check_activities(tile->activities, tile->activity_count, profile->step_count),
            "physical tile %u", tile->physical));
        if (!tile->sample_count)
            continue;
        /* all tiles within a quarter of the counter's range: differences of any two are exact */
        int32_t distance = (int32_t)(tile->samples[0].start - origin);
        if (any && (distance > 1 << 30 || distance < -(1 << 30)))
            return status_error("physical tile %u: its clock is %d cycles away from that of "
                                "physical tile %u",
                                tile->physical, distance, profile->tiles[0].physical);
        origin = any ? origin : tile->samples[0].start;
        any = true;
        if (tile->samples[tile->sample_count - 1].end - origin > 1u << 30 &&
            (int32_t)(tile->samples[tile->sample_count - 1].end - origin) > 1 << 30)
            return status_error("physical tile %u: more than 2^30 cycles long", tile->physical);
    }
    return STATUS_OK;
}

Status profile_encode(const Profile *profile, bool inline_steps, Bytes *out)
{
    TRY(profile_check(profile));
    return wire_encode_profile(profile, inline_steps, out);
}

Status profile_write(const Profile *profile, const char *path)
{
    Bytes bytes;
    TRY(profile_encode(profile, false, &bytes));
    Status status = file_write(path, bytes.data, bytes.count);
    bytes_free(&bytes);
    return status;
}

Status profile_decode(Arena *arena, const char *name, const uint8_t *data, size_t count,
                      Profile *out)
{
    if ((uintptr_t)data % 8)
        data = arena_copy(arena, data, count, 8);
    TRY(wire_decode_profile(arena, name, data, count, out));
    return status_context(profile_check(out), "%s", name);
}

Status profile_read(Arena *arena, const char *path, Profile *out)
{
    Bytes bytes;
    TRY(file_read(path, FILE_LIMIT_DATA, &bytes));
    Status status = profile_decode(arena, path, bytes.data, bytes.count, out);
    bytes_free(&bytes);
    return status;
}
