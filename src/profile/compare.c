/* compare.c - a profile against the plan's prediction, and against another profile. */
#include "profile/profile.h"

#include <stdlib.h>
#include <string.h>

static int by_cycles(const void *a, const void *b)
{
    const OperationCost *x = a, *y = b;
    if (x->cycles != y->cycles)
        return x->cycles > y->cycles ? -1 : 1;
    return strcmp(x->operation, y->operation);
}

/* Union of the intervals of all steps but compute, per operation: as query.c does it. */
static void add_exchange(const View *view, Map *index, OperationCost *costs)
{
    uint32_t *last = xcalloc(index->entries.count, sizeof *last);
    for (size_t i = 0; i < view->count; i++) {
        const ViewSample *s = &view->samples[i];
        const ProfileStep *step = &view->profile->steps[s->step];
        const uint64_t *found = map_find_text(index, step->operation);
        if (step->kind == PROFILE_COMPUTE || !found)
            continue;
        OperationCost *cost = &costs[*found];
        uint32_t end = s->offset + s->duration, *covered = &last[*found];
        if (end > *covered) {
            cost->exchange_cycles += end - max_u32(*covered, s->offset);
            *covered = end;
        }
    }
    free(last);
}

Status operation_costs(const View *view, Arena *arena, OperationCost **out, size_t *count)
{
    Query query = QUERY_DEFAULT;
    query.group_by = GROUP_OPERATION;
    QueryResult result;
    TRY(query_run(view, &query, &result));
    const Profile *profile = view->profile;
    *count = 0;
    *out = arena_array(arena, OperationCost, result.group_count + profile->prediction_count);
    Map index = {0};
    for (size_t g = 0; g < result.group_count; g++) {
        const Group *group = &result.groups[g];
        *map_at_text(&index, group->name, NULL) = *count;
        (*out)[(*count)++] = (OperationCost){.operation = arena_strdup(arena, group->name),
                                             .predicted = -1,
                                             .predicted_exchange = -1,
                                             .cycles = group->phase_cycles,
                                             .work_cycles = group->work_cycles};
    }
    for (uint32_t p = 0; p < profile->prediction_count; p++) {
        const ProfilePrediction *prediction = &profile->predictions[p];
        bool added;
        uint64_t *at = map_at_text(&index, prediction->operation, &added);
        if (added) {
            *at = *count;
            (*out)[(*count)++] = (OperationCost){.operation = prediction->operation};
        }
        (*out)[*at].predicted = prediction->cycles;
        (*out)[*at].predicted_exchange = prediction->exchange_cycles;
    }
    add_exchange(view, &index, *out);
    qsort(*out, *count, sizeof **out, by_cycles);
    map_free(&index);
    query_free(&result);
    return STATUS_OK;
}

/* ---- two profiles ---- */

static int64_t change_of(const Difference *d)
{
    return (d->after ? (int64_t)d->after->phase_cycles : 0) -
           (d->before ? (int64_t)d->before->phase_cycles : 0);
}

static int by_change(const void *a, const void *b)
{
    int64_t x = llabs(change_of(a)), y = llabs(change_of(b));
    if (x != y)
        return x > y ? -1 : 1;
    return strcmp(((const Difference *)a)->name, ((const Difference *)b)->name);
}

Status profile_difference(const QueryResult *before, const QueryResult *after, Arena *arena,
                          Difference **out, size_t *count)
{
    Map index = {0};
    *count = 0;
    *out = arena_array(arena, Difference, before->group_count + after->group_count);
    for (size_t g = 0; g < before->group_count; g++) {
        *map_at_text(&index, before->groups[g].name, NULL) = *count;
        (*out)[(*count)++] = (Difference){before->groups[g].name, &before->groups[g], NULL};
    }
    for (size_t g = 0; g < after->group_count; g++) {
        bool added;
        uint64_t *at = map_at_text(&index, after->groups[g].name, &added);
        if (added) {
            *at = *count;
            (*out)[(*count)++] = (Difference){after->groups[g].name, NULL, NULL};
        }
        (*out)[*at].after = &after->groups[g];
    }
    qsort(*out, *count, sizeof **out, by_change);
    map_free(&index);
    return STATUS_OK;
}

void difference_print(Text *text, const Difference *differences, size_t count, size_t limit)
{
    text_printf(text, "%-42s %10s %10s %10s %8s %13s %13s\n", "group", "before", "after", "change",
                "", "work before", "work after");
    for (size_t i = 0; i < count && (!limit || i < limit); i++) {
        const Difference *d = &differences[i];
        text_printf(text, "%-42.42s %10u %10u %+10lld", d->name,
                    d->before ? d->before->phase_cycles : 0, d->after ? d->after->phase_cycles : 0,
                    (long long)change_of(d));
        if (d->before && d->before->phase_cycles)
            text_printf(text, " %+7.1f%%", 100.0 * (double)change_of(d) / d->before->phase_cycles);
        else
            text_append(text, "      new");
        text_printf(text, " %13llu %13llu%s\n",
                    (unsigned long long)(d->before ? d->before->work_cycles : 0),
                    (unsigned long long)(d->after ? d->after->work_cycles : 0),
                    d->after ? "" : "  gone");
    }
    if (limit && limit < count)
        text_printf(text, "... %zu more groups\n", count - limit);
}

json_t *difference_json(const Difference *differences, size_t count, size_t limit)
{
    json_t *out = json_array();
    for (size_t i = 0; i < count && (!limit || i < limit); i++) {
        const Difference *d = &differences[i];
        json_t *item =
            json_pack("{s:s, s:I}", "name", d->name, "changeCycles", (json_int_t)change_of(d));
        const Group *sides[] = {d->before, d->after};
        static const char *const names[] = {"before", "after"};
        for (int s = 0; s < 2; s++)
            if (sides[s])
                json_object_set_new(item, names[s],
                                    json_pack("{s:I, s:I, s:I}", "phaseCycles",
                                              (json_int_t)sides[s]->phase_cycles, "workCycles",
                                              (json_int_t)sides[s]->work_cycles, "sampleCount",
                                              (json_int_t)sides[s]->samples));
        json_array_append_new(out, item);
    }
    return out;
}
