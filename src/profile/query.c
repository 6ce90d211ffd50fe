/* query.c - samples in groups: filters, sums, unions, percentiles.
 *
 * The samples come in time, so one pass suffices for the union of a group's intervals: each sample
 * adds what reaches beyond the group's last end. */
#include "profile/profile.h"

#include <stdlib.h>
#include <string.h>

#define NO_GROUP 0xffffffffu

typedef struct Builder {
    const View *view;
    const Query *query;
    bool *wanted;      /* per step */
    uint32_t *of_step; /* group of a step, or NO_GROUP: not decided by the step */
    Map names;         /* name -> index + 1 */
    ARRAY(Group) groups;
    Arena *arena;
    uint32_t *group_of;                         /* per matched sample */
    uint32_t last_step, last_epoch, last_group; /* GROUP_PHASE: neighbours are mostly alike */
    uint32_t *of_tile;
} Builder;

static bool metadata_holds(const ProfileStep *step, const char *wanted)
{
    const char *equals = strchr(wanted, '=');
    size_t length = equals ? (size_t)(equals - wanted) : strlen(wanted);
    for (uint32_t i = 0; i < step->metadata_count; i++) {
        const PackageText *m = &step->metadata[i];
        if (strlen(m->name) == length && memcmp(m->name, wanted, length) == 0 &&
            (!equals || strcmp(m->text, equals + 1) == 0))
            return true;
    }
    return false;
}

static bool step_matches(const Query *q, const ProfileStep *step)
{
    if (q->kind && strcmp(q->kind, profile_kind_names[step->kind]) != 0)
        return false;
    if (q->kernel && strcmp(q->kernel, step->kernel) != 0)
        return false;
    if (q->operation && !strstr(step->operation, q->operation))
        return false;
    if (q->phase >= 0 && step->phase != (uint32_t)q->phase)
        return false;
    for (size_t i = 0; i < q->metadata_count; i++)
        if (!metadata_holds(step, q->metadata[i]))
            return false;
    return true;
}

static bool sample_matches(const Builder *b, const ViewSample *s)
{
    const Query *q = b->query;
    if (!b->wanted[s->step])
        return false;
    if (q->tile >= 0 && b->view->profile->tiles[s->tile].physical != (uint32_t)q->tile)
        return false;
    return q->at < 0 ||
           (s->offset <= (uint64_t)q->at && (uint64_t)q->at < (uint64_t)s->offset + s->duration);
}

static uint32_t group_named(Builder *b, const char *name)
{
    uint64_t *known = map_at_text(&b->names, name, NULL);
    if (!*known) {
        *known = b->groups.count + 1;
        array_push(&b->groups, (Group){.name = arena_strdup(b->arena, name), .first = UINT32_MAX});
    }
    return (uint32_t)*known - 1;
}

static uint32_t group_of_step(Builder *b, const ProfileStep *step)
{
    const char *value;
    switch (b->query->group_by) {
    case GROUP_KIND:
        return group_named(b, profile_kind_names[step->kind]);
    case GROUP_KERNEL:
        return group_named(b, *step->kernel ? step->kernel : "(no kernel)");
    case GROUP_OPERATION:
        return group_named(b, *step->operation ? step->operation : "(no operation)");
    case GROUP_METADATA:
        value = profile_metadata(step, b->query->metadata_key);
        return group_named(b, value ? value : "(missing)");
    default:
        return NO_GROUP;
    }
}

static const char *phase_name(uint32_t phase, uint32_t epoch, char *text, size_t size)
{
    bool exchange = phase >= PROFILE_EXCHANGE_PHASE;
    snprintf(text, size, "%s %u/%u", exchange ? "exchange" : "step",
             exchange ? phase - PROFILE_EXCHANGE_PHASE : phase, epoch);
    return text;
}

static uint32_t group_of_sample(Builder *b, const ViewSample *s)
{
    char name[64];
    if (b->query->group_by == GROUP_TILE) {
        if (b->of_tile[s->tile] == NO_GROUP) {
            snprintf(name, sizeof name, "%u", b->view->profile->tiles[s->tile].physical);
            b->of_tile[s->tile] = group_named(b, name);
        }
        return b->of_tile[s->tile];
    }
    if (b->query->group_by != GROUP_PHASE) {
        if (b->of_step[s->step] == NO_GROUP)
            b->of_step[s->step] = group_of_step(b, &b->view->profile->steps[s->step]);
        return b->of_step[s->step];
    }
    if (b->last_group == NO_GROUP || b->last_step != s->step || b->last_epoch != s->epoch) {
        uint32_t phase = b->view->profile->steps[s->step].phase;
        b->last_group = group_named(b, phase_name(phase, s->epoch, name, sizeof name));
        b->last_step = s->step;
        b->last_epoch = s->epoch;
    }
    return b->last_group;
}

static void add_sample(Builder *b, uint32_t index, const ViewSample *s)
{
    Group *g = &b->groups.items[index];
    uint32_t end = s->offset + s->duration;
    if (g->samples++ == 0) {
        g->first = s->offset;
        g->phase_cycles = s->duration;
    } else if (end > g->last) {
        g->phase_cycles += end - max_u32(g->last, s->offset);
    }
    g->last = max_u32(g->last, end);
    g->maximum = max_u32(g->maximum, s->duration);
    g->work_cycles += s->duration;
    g->wait_cycles += view_wait(b->view, s);
    if (b->view->useful[s->step] >= 0 && !s->cut) {
        g->useful += b->view->useful[s->step];
        g->physical += b->view->physical[s->step];
        g->measured += s->duration;
    }
}

static int compare_u32(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* Percentiles and distinct tiles and phases need a group's samples together. */
static void finish_groups(Builder *b, const ViewSample *const *matched, size_t count)
{
    size_t groups = b->groups.count;
    size_t *end = xcalloc(groups + 1, sizeof *end);
    uint32_t *durations = xmalloc(array_bytes(count, sizeof *durations));
    const ViewSample **sorted = xmalloc(array_bytes(count, sizeof *sorted));
    for (size_t g = 0, at = 0; g < groups; g++) {
        end[g] = at;
        at += b->groups.items[g].samples;
    }
    for (size_t i = 0; i < count; i++) {
        size_t at = end[b->group_of[i]]++;
        sorted[at] = matched[i];
        durations[at] = matched[i]->duration;
    }
    uint32_t tiles = b->view->profile->tile_count;
    uint32_t *seen = xcalloc(tiles, sizeof *seen);
    for (uint32_t g = 0; g < groups; g++) {
        Group *group = &b->groups.items[g];
        size_t first = end[g] - group->samples;
        Map phases = {0};
        uint32_t last_step = NO_GROUP, last_epoch = 0;
        for (size_t i = first; i < end[g]; i++) {
            const ViewSample *s = sorted[i];
            group->tiles += seen[s->tile] != g + 1;
            seen[s->tile] = g + 1;
            if (s->step == last_step && s->epoch == last_epoch)
                continue;
            last_step = s->step;
            last_epoch = s->epoch;
            map_at(&phases, (uint64_t)s->epoch << 32 | b->view->profile->steps[s->step].phase,
                   NULL);
        }
        group->phases = (uint32_t)phases.entries.count;
        map_free(&phases);
        qsort(durations + first, group->samples, sizeof *durations, compare_u32);
        group->p50 = durations[first + (group->samples - 1) * 50 / 100];
        group->p95 = durations[first + (group->samples - 1) * 95 / 100];
    }
    free(seen);
    free(sorted);
    free(durations);
    free(end);
}

static uint64_t sort_value(const Group *g, uint8_t by)
{
    switch (by) {
    case SORT_WORK_CYCLES:
        return g->work_cycles;
    case SORT_MAXIMUM_CYCLES:
        return g->maximum;
    case SORT_SAMPLES:
        return g->samples;
    default:
        return g->phase_cycles;
    }
}

static int compare_groups(const void *a, const void *b, void *by)
{
    const Group *x = a, *y = b;
    uint8_t key = *(uint8_t *)by;
    uint64_t p = sort_value(x, key), q = sort_value(y, key);
    if (key != SORT_NAME && p != q)
        return p > q ? -1 : 1;
    if (key != SORT_NAME && x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int compare_lengths(const void *a, const void *b)
{
    const ViewSample *const *x = a, *const *y = b;
    if ((*x)->duration != (*y)->duration)
        return (*x)->duration > (*y)->duration ? -1 : 1;
    if ((*x)->tile != (*y)->tile)
        return (*x)->tile < (*y)->tile ? -1 : 1;
    return (*x)->offset < (*y)->offset ? -1 : (*x)->offset > (*y)->offset;
}

static Status check_query(const View *view, const Query *q)
{
    bool kind = q->kind == NULL, tile = q->tile < 0;
    for (int k = 0; k < PROFILE_KINDS; k++)
        kind |= q->kind && strcmp(q->kind, profile_kind_names[k]) == 0;
    if (!kind)
        return status_error("no kind \"%s\": compute, exchange, synchronization or idle", q->kind);
    for (uint32_t t = 0; t < view->profile->tile_count; t++)
        tile |= view->profile->tiles[t].physical == (uint64_t)q->tile;
    if (!tile)
        return status_error("physical tile %lld is not in the profile", (long long)q->tile);
    return STATUS_OK;
}

Status query_check_names(const View *view, const Query *q)
{
    bool kernel = !q->kernel, operation = !q->operation, phase = q->phase < 0;
    for (uint32_t s = 0; s < view->profile->step_count; s++) {
        const ProfileStep *step = &view->profile->steps[s];
        kernel |= q->kernel && strcmp(step->kernel, q->kernel) == 0;
        operation |= q->operation && strstr(step->operation, q->operation);
        phase |= step->phase == (uint64_t)q->phase;
    }
    if (!kernel)
        return status_error("no step of the profile has kernel \"%s\"", q->kernel);
    if (!operation)
        return status_error("no operation of the profile has \"%s\" in it", q->operation);
    if (!phase)
        return status_error("the profile has no phase %lld", (long long)q->phase);
    if (q->at >= 0 && q->at >= view->span)
        return status_error("cycle %lld: the profile ends at %u", (long long)q->at, view->span);
    return STATUS_OK;
}

Status query_run(const View *view, const Query *query, QueryResult *out)
{
    *out = (QueryResult){0};
    TRY(check_query(view, query));
    const Profile *profile = view->profile;
    Builder b = {.view = view, .query = query, .arena = &out->arena, .last_group = NO_GROUP};
    b.wanted = xcalloc(profile->step_count, sizeof *b.wanted);
    b.of_step = xmalloc(array_bytes(profile->step_count, sizeof *b.of_step));
    b.of_tile = xmalloc(array_bytes(profile->tile_count, sizeof *b.of_tile));
    b.group_of = xmalloc(array_bytes(view->count, sizeof *b.group_of));
    memset(b.of_step, 0xff, profile->step_count * sizeof *b.of_step);
    memset(b.of_tile, 0xff, profile->tile_count * sizeof *b.of_tile);
    for (uint32_t s = 0; s < profile->step_count; s++)
        b.wanted[s] = step_matches(query, &profile->steps[s]);
    out->matched = arena_array(&out->arena, const ViewSample *, view->count);
    for (size_t i = 0; i < view->count; i++) {
        const ViewSample *s = &view->samples[i];
        if (!sample_matches(&b, s))
            continue;
        uint32_t group = group_of_sample(&b, s);
        b.group_of[out->matched_count] = group;
        out->matched[out->matched_count++] = s;
        add_sample(&b, group, s);
    }
    finish_groups(&b, out->matched, out->matched_count);
    uint8_t by = query->sort_by;
    if (b.groups.count)
        qsort_r(b.groups.items, b.groups.count, sizeof(Group), compare_groups, &by);
    out->group_count = b.groups.count;
    out->groups = arena_copy(&out->arena, b.groups.items, b.groups.count * sizeof(Group), 8);
    qsort(out->matched, out->matched_count, sizeof *out->matched, compare_lengths);
    free(b.wanted);
    free(b.of_step);
    free(b.of_tile);
    free(b.group_of);
    array_free(&b.groups);
    map_free(&b.names);
    return STATUS_OK;
}

void query_free(QueryResult *result)
{
    arena_free(&result->arena);
    *result = (QueryResult){0};
}
