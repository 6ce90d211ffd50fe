/* exchange.c - exchange phases as measured and as scheduled (memory-boot-package.md 5.3). */
#include "profile/profile.h"

#include <stdlib.h>
#include <string.h>

const char *const role_names[ROLES] = {"idle", "send", "receive", "send and receive",
                                       "partner busy"};

typedef struct Edge { /* a span begins or ends */
    uint32_t time;
    int8_t change;
    uint8_t kind;
} Edge;

static int compare_edges(const void *a, const void *b)
{
    const Edge *x = a, *y = b;
    return x->time < y->time ? -1 : x->time > y->time;
}

static Role role_of(const int active[SPAN_KINDS])
{
    if (active[SPAN_SEND] && active[SPAN_RECEIVE])
        return ROLE_BOTH;
    if (active[SPAN_SEND])
        return ROLE_SEND;
    if (active[SPAN_RECEIVE])
        return ROLE_RECEIVE;
    return active[SPAN_PARTNER] ? ROLE_PARTNER : ROLE_IDLE;
}

typedef void Stretch(void *context, Role role, uint32_t start, uint32_t end);

/* Calls for every stretch of [0, end) with one role. */
static void sweep(const ProfileActivity *activity, uint32_t end, Stretch *stretch, void *context)
{
    Edge *edges = xmalloc(array_bytes(2 * (size_t)activity->span_count, sizeof *edges));
    size_t count = 0;
    for (uint32_t s = 0; s < activity->span_count; s++) {
        const ProfileSpan *span = &activity->spans[s];
        uint32_t first = min_u32(span->start, end), last = min_u32(span->end, end);
        if (first >= last)
            continue;
        edges[count++] = (Edge){first, 1, span->kind};
        edges[count++] = (Edge){last, -1, span->kind};
    }
    qsort(edges, count, sizeof *edges, compare_edges);
    int active[SPAN_KINDS] = {0};
    uint32_t now = 0;
    for (size_t e = 0; e < count; e++) {
        if (edges[e].time > now)
            stretch(context, role_of(active), now, edges[e].time);
        now = edges[e].time;
        active[edges[e].kind] += edges[e].change;
    }
    if (now < end)
        stretch(context, ROLE_IDLE, now, end);
    free(edges);
}

static void add_role(void *context, Role role, uint32_t start, uint32_t end)
{
    ((uint64_t *)context)[role] += end - start;
}

void activity_roles(const ProfileActivity *activity, uint64_t roles[ROLES])
{
    sweep(activity, activity->event_cycles, add_role, roles);
}

typedef struct Bins {
    uint64_t (*cycles)[ROLES];
    uint32_t count, event_cycles;
} Bins;

static void add_bins(void *context, Role role, uint32_t start, uint32_t end)
{
    Bins *bins = context;
    while (start < end) {
        uint32_t bin = (uint32_t)((uint64_t)start * bins->count / bins->event_cycles);
        uint64_t next = ((uint64_t)(bin + 1) * bins->event_cycles + bins->count - 1) / bins->count;
        uint32_t until = next < end ? (uint32_t)next : end;
        bins->cycles[bin][role] += until - start;
        start = until;
    }
}

void activity_bins(const ProfileActivity *activity, uint32_t event_cycles, uint8_t *out,
                   uint32_t count)
{
    memset(out, ROLE_IDLE, count);
    if (!event_cycles)
        return;
    Bins bins = {xcalloc(count, sizeof *bins.cycles), count, event_cycles};
    sweep(activity, min_u32(activity->event_cycles, event_cycles), add_bins, &bins);
    for (uint32_t b = 0; b < count; b++)
        for (uint8_t role = 1; role < ROLES; role++)
            if (bins.cycles[b][role] > bins.cycles[b][out[b]])
                out[b] = role;
    free(bins.cycles);
}

/* Roles of one tile in a phase: the same in every iteration. */
static void add_roles(const View *view, const ViewSample *s, ExchangeSummary *e)
{
    const ProfileActivity *activity = profile_activity(&view->profile->tiles[s->tile], s->step);
    if (activity)
        activity_roles(activity, e->roles);
}

void exchange_summaries(const View *view, ExchangeList *out)
{
    *out = (ExchangeList){0};
    Map known = {0};
    ARRAY(ExchangeSummary) list = {0};
    ARRAY(uint32_t) last_start = {0};
    for (size_t i = 0; i < view->count; i++) {
        const ViewSample *s = &view->samples[i];
        const ProfileStep *step = &view->profile->steps[s->step];
        if (step->kind != PROFILE_EXCHANGE)
            continue;
        uint64_t *index = map_at(&known, (uint64_t)s->epoch << 32 | step->phase, NULL);
        if (!*index) {
            const char *bound = profile_metadata(step, "bound");
            ExchangeSummary e = {.phase = step->phase & ~PROFILE_EXCHANGE_PHASE,
                                 .epoch = s->epoch,
                                 .step = s->step,
                                 .operation = step->operation,
                                 .first = s->offset,
                                 .bound = bound ? (uint32_t)strtoul(bound, NULL, 10) : 0};
            array_push(&list, e);
            array_push(&last_start, 0);
            *index = list.count;
        }
        ExchangeSummary *e = &list.items[*index - 1];
        e->tiles++;
        e->scheduled = max_u32(e->scheduled, step->event_cycles);
        e->first = min_u32(e->first, s->offset);
        e->last = max_u32(e->last, s->offset + s->duration);
        last_start.items[*index - 1] = max_u32(last_start.items[*index - 1], s->offset);
        add_roles(view, s, e);
    }
    for (size_t i = 0; i < list.count; i++) {
        ExchangeSummary *e = &list.items[i];
        e->measured = e->last - e->first;
        e->arrival_wait = last_start.items[i] - e->first;
        e->boundary = e->measured > e->scheduled ? e->measured - e->scheduled : 0;
    }
    out->count = list.count;
    out->items = arena_copy(&out->arena, list.items, list.count * sizeof *list.items, 8);
    array_free(&list);
    array_free(&last_start);
    map_free(&known);
}

void exchange_summaries_print(Text *text, const ExchangeList *list, size_t limit)
{
    text_printf(text, "%-8s %-40s %5s %9s %9s %9s %9s %9s %7s %7s %7s\n", "exchange", "operation",
                "tiles", "at", "measured", "arrival", "scheduled", "boundary", "bound", "sending",
                "receiv.");
    for (size_t i = 0; i < list->count && (!limit || i < limit); i++) {
        const ExchangeSummary *e = &list->items[i];
        char name[32];
        snprintf(name, sizeof name, "%u/%u", e->phase, e->epoch);
        double whole = 0;
        for (int r = 0; r < ROLES; r++)
            whole += (double)e->roles[r];
        whole = whole > 0 ? whole : 1;
        text_printf(text, "%-8s %-40.40s %5u %9u %9u %9u %9u %9u %7u %6.1f%% %6.1f%%\n", name,
                    e->operation, e->tiles, e->first, e->measured, e->arrival_wait, e->scheduled,
                    e->boundary, e->bound,
                    100 * (double)(e->roles[ROLE_SEND] + e->roles[ROLE_BOTH]) / whole,
                    100 * (double)(e->roles[ROLE_RECEIVE] + e->roles[ROLE_BOTH]) / whole);
    }
    if (limit && limit < list->count)
        text_printf(text, "... %zu more exchanges\n", list->count - limit);
}

json_t *exchange_summaries_json(const ExchangeList *list)
{
    json_t *out = json_array();
    for (size_t i = 0; i < list->count; i++) {
        const ExchangeSummary *e = &list->items[i];
        json_t *item = json_pack("{s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "phase",
                                 (json_int_t)e->phase, "epoch", (json_int_t)e->epoch, "operation",
                                 e->operation, "tileCount", (json_int_t)e->tiles, "firstOffset",
                                 (json_int_t)e->first, "measuredCycles", (json_int_t)e->measured,
                                 "arrivalWaitCycles", (json_int_t)e->arrival_wait,
                                 "scheduledCycles", (json_int_t)e->scheduled, "boundaryCycles",
                                 (json_int_t)e->boundary, "boundCycles", (json_int_t)e->bound);
        json_t *roles = json_object();
        static const char *const keys[ROLES] = {"idle", "send", "receive", "sendAndReceive",
                                                "partnerBusy"};
        for (int r = 0; r < ROLES; r++)
            json_object_set_new(roles, keys[r], json_integer((json_int_t)e->roles[r]));
        json_object_set_new(item, "roleCycles", roles);
        json_array_append_new(out, item);
    }
    return out;
}
