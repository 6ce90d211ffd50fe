/* tracks.c - every tile's free time, and messages put where they fit first.
 *
 * A tile has two tracks: items it sends, and words passing its mux. A track is the sorted list of
 * its free intervals; messages may abut, so a track that is filled without holes is one interval
 * long. A message goes to the earliest start at which its sender and all its receivers are free: an
 * answer of one track moves the start on, until all agree. Whatever the order of the messages the
 * result can be encoded (see row.c), so the order is all there is to optimise. */
#include "exchange/internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct Gap {
    int32_t start, end; /* free in [start, end) */
} Gap;

typedef struct Track {
    Gap *gaps;
    uint32_t count, capacity;
} Track;

typedef struct Busy { /* memory window of a message on a tile, for conflicts within a buffer */
    int32_t start, end;
    uint32_t root, first, last; /* bytes first..last - 1 */
} Busy;
typedef ARRAY(Busy) BusyList;
typedef ARRAY(int32_t) EventList;

struct Tracks {
    const Problem *problem;
    Track *send, *receive;    /* per tile */
    BusyList *reads, *writes; /* per tile, only when the problem has conflicts */
    /* Per tile, only when there are pairs: */
    EventList *sends, *controls; /* see avoid_controls */
    Track *arriving; /* from select to last write of all receives: they overlap each other */
    Track *reserved; /* the partner sends 64-bit items: neither selects nor writes */
    bool *pairs;     /* per tile: receives 64-bit items */
    bool mirrored;   /* time runs backwards: see route_time */
};

enum { FOREVER = INT32_MAX };

Tracks *tracks_open(const Problem *problem)
{
    Tracks *tracks = xcalloc(1, sizeof *tracks);
    tracks->problem = problem;
    tracks->send = xcalloc(problem->tiles, sizeof(Track));
    tracks->receive = xcalloc(problem->tiles, sizeof(Track));
    if (problem->conflicts) {
        tracks->reads = xcalloc(problem->tiles, sizeof(BusyList));
        tracks->writes = xcalloc(problem->tiles, sizeof(BusyList));
    }
    tracks->pairs = xcalloc(problem->tiles, sizeof(bool));
    bool pairs = false;
    for (uint32_t e = 0; e < problem->end_count; e++) {
        bool paired = problem->messages[problem->ends[e].message].paired;
        tracks->pairs[problem->ends[e].tile] |= paired;
        pairs |= paired;
    }
    if (pairs) {
        tracks->sends = xcalloc(problem->tiles, sizeof(EventList));
        tracks->controls = xcalloc(problem->tiles, sizeof(EventList));
        tracks->arriving = xcalloc(problem->tiles, sizeof(Track));
        tracks->reserved = xcalloc(problem->tiles, sizeof(Track));
    }
    return tracks;
}

void tracks_close(Tracks *tracks)
{
    for (uint32_t t = 0; t < tracks->problem->tiles; t++) {
        free(tracks->send[t].gaps);
        free(tracks->receive[t].gaps);
        if (tracks->reads) {
            array_free(&tracks->reads[t]);
            array_free(&tracks->writes[t]);
        }
        if (tracks->sends) {
            array_free(&tracks->sends[t]);
            array_free(&tracks->controls[t]);
            free(tracks->arriving[t].gaps);
            free(tracks->reserved[t].gaps);
        }
    }
    free(tracks->send);
    free(tracks->receive);
    free(tracks->reads);
    free(tracks->writes);
    free(tracks->sends);
    free(tracks->controls);
    free(tracks->arriving);
    free(tracks->reserved);
    free(tracks->pairs);
    free(tracks);
}

static void track_clear(Track *track, int32_t start)
{
    if (track->capacity == 0) {
        track->capacity = 4;
        track->gaps = xmalloc(track->capacity * sizeof(Gap));
    }
    track->gaps[0] = (Gap){start, FOREVER};
    track->count = 1;
}

/* First gap that ends after `time`. The last gap never ends. */
static uint32_t track_find(const Track *track, int32_t time)
{
    uint32_t low = 0, high = track->count - 1;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (track->gaps[middle].end <= time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Earliest start >= from at which `length` is free. */
static int32_t track_fit(const Track *track, int32_t from, int32_t length)
{
    for (const Gap *gap = &track->gaps[track_find(track, from)];; gap++) {
        int32_t start = gap->start > from ? gap->start : from;
        if (gap->end - start >= length)
            return start;
    }
}

static void track_take(Track *track, int32_t start, int32_t length)
{
    uint32_t i = track_find(track, start);
    int32_t end = start + length;
    if (track->gaps[i].start > start)
        start = track->gaps[i].start; /* blocks may reach into busy time */
    for (; i < track->count && track->gaps[i].start < end;) {
        Gap gap = track->gaps[i];
        Gap left = {gap.start, start}, right = {end, gap.end};
        bool keep_left = left.end > left.start, keep_right = right.end > right.start;
        if (keep_left && keep_right) {
            if (track->count == track->capacity) {
                track->capacity *= 2;
                track->gaps = xrealloc(track->gaps, track->capacity * sizeof(Gap));
            }
            memmove(&track->gaps[i + 2], &track->gaps[i + 1], (track->count - i - 1) * sizeof(Gap));
            track->gaps[i] = left;
            track->gaps[i + 1] = right;
            track->count++;
            return;
        }
        if (keep_left) {
            track->gaps[i++] = left;
        } else if (keep_right) {
            track->gaps[i] = right;
            return;
        } else {
            memmove(&track->gaps[i], &track->gaps[i + 1], (track->count - i - 1) * sizeof(Gap));
            track->count--;
        }
    }
}

/* ---- what a message occupies ---- */

typedef struct Span { /* of a receiver's mux track, relative to the select at E_x */
    int32_t before, length;
} Span;

/* A 64-bit receive keeps its format until 51 + 2 row after the last item has passed the mux; one
 * event more on both sides keeps its controls away from the neighbours' (exchange.md 3.10). */
static Span receive_span(const Problem *problem, const Message *message, uint32_t tile)
{
    int32_t distance = problem->distance[tile];
    int32_t items = (int32_t)message->chain_items + (distance > SENDS_ONLY ? distance : 0);
    if (!message->paired)
        return (Span){0, items};
    return (Span){1, 1 + items + FORMAT_LAG + problem->row_lag[tile] + 1};
}

static int32_t write_lag(const Message *message)
{
    return message->paired ? PAIRED_WRITE_LAG : WRITE_LAG;
}

/* From the select to the end of the guard behind the last write. Mirrored time only gives an
 * order: the mux will do. */
static int32_t arrival_length(const Tracks *tracks, const Message *message, uint32_t tile)
{
    int32_t items = (int32_t)message->chain_items;
    if (tracks->mirrored)
        return items;
    int32_t guard = message->paired ? GUARD_EVENTS_PAIRED : GUARD_EVENTS;
    return items + write_lag(message) + tracks->problem->row_lag[tile] + guard;
}

/* ---- conflicts: a buffer of one tile that is both sent from and received into ---- */

/* Windows that can not be told apart by elements must not overlap in time, and where they share
 * bytes the order of the list holds. Messages come in that order then. Bytes 32 KiB apart lie in
 * different elements wherever the buffer is. */
static int32_t after_busy(const BusyList *list, const Busy *want, int32_t from)
{
    int32_t length = want->end - want->start, start = from;
    bool moved = true;
    while (moved) {
        moved = false;
        for (size_t i = 0; i < list->count; i++) {
            const Busy *busy = &list->items[i];
            if (busy->root != want->root || want->first >= busy->last + INTERLEAVED_ELEMENT_BYTES ||
                busy->first >= want->last + INTERLEAVED_ELEMENT_BYTES)
                continue;
            bool same_bytes = want->first < busy->last && busy->first < want->last;
            if (start < busy->end && (same_bytes || start + length > busy->start)) {
                start = busy->end;
                moved = true;
            }
        }
    }
    return start;
}

static Busy busy_of(const Problem *problem, const Endpoint *end, const Message *message,
                    int32_t start)
{
    return (Busy){.start = start,
                  .end = start + (int32_t)message->items + GUARD_EVENTS,
                  .root = buffer_root(problem->program, end->at.buffer),
                  .first = end->at.offset,
                  .last = end->at.offset + 4 * message->words};
}

static Busy read_window(const Tracks *tracks, uint32_t m, int32_t start)
{
    const Problem *problem = tracks->problem;
    return busy_of(problem, &problem->phase->transfers[m].source, &problem->messages[m], start);
}

static Busy write_window(const Tracks *tracks, uint32_t end, int32_t start)
{
    const Problem *problem = tracks->problem;
    const End *to = &problem->ends[end];
    const Message *message = &problem->messages[to->message];
    return busy_of(problem, problem_receiver(problem, end), message,
                   start + to->time + 1 + write_lag(message) + tracks->problem->row_lag[to->tile]);
}

static bool in_chain(const Problem *problem, uint32_t head, uint32_t m)
{
    return m == head || (m < problem->count && problem->messages[m].follows);
}

/* Of a message and all that follow it. */
static int32_t avoid_conflicts(const Tracks *tracks, uint32_t head, int32_t start)
{
    const Problem *problem = tracks->problem;
    for (uint32_t m = head, passed = 0; in_chain(problem, head, m); m++) {
        const Message *message = &problem->messages[m];
        Busy want = read_window(tracks, m, start + (int32_t)passed);
        start += after_busy(&tracks->writes[message->source], &want, want.start) - want.start;
        for (uint32_t e = message->first; e < message->first + message->count; e++) {
            uint32_t tile = problem->ends[e].tile;
            want = write_window(tracks, e, start + (int32_t)passed);
            start += after_busy(&tracks->reads[tile], &want, want.start) - want.start;
        }
        passed += message->items;
    }
    return start;
}

static void note_conflicts(Tracks *tracks, uint32_t head, int32_t start)
{
    const Problem *problem = tracks->problem;
    for (uint32_t m = head; in_chain(problem, head, m); m++) {
        const Message *message = &problem->messages[m];
        array_push(&tracks->reads[message->source], read_window(tracks, m, start));
        for (uint32_t e = message->first; e < message->first + message->count; e++)
            array_push(&tracks->writes[problem->ends[e].tile], write_window(tracks, e, start));
        start += (int32_t)message->items;
    }
}

/* ---- controls of tiles that receive 64-bit items ---- */

/* Such a tile can not write a lone control in the event of a message's first item: only the
 * two-word instruction can start a message, and its two controls would coincide. */

enum { CONTROLS_MAX = 4 };

/* Events of what the tile writes for a message; chains move the pointer for every piece. */
static uint32_t control_events(const Tracks *tracks, uint32_t m, const End *end, int32_t start,
                               int32_t events[CONTROLS_MAX])
{
    const Message *message = &tracks->problem->messages[m];
    int32_t lag = tracks->problem->row_lag[end->tile], items = (int32_t)message->chain_items;
    int32_t mux = start + end->time + 1;
    uint32_t count = 0;
    events[count++] = mux + write_lag(message) + lag;
    if (message->follows)
        return count;
    if (message->paired) {
        events[count++] = mux + FORMAT_LAG + lag;
        events[count++] = mux + FORMAT_LAG + lag + items;
    } else {
        events[count++] = mux;
    }
    return count;
}

static bool in_list(const EventList *list, int32_t event)
{
    for (size_t i = list->count; i-- > 0;) /* the latest are the nearest */
        if (list->items[i] == event)
            return true;
    return false;
}

static bool meets_control(const Tracks *tracks, uint32_t m, int32_t start)
{
    const Problem *problem = tracks->problem;
    const Message *message = &problem->messages[m];
    int32_t events[CONTROLS_MAX];
    if (tracks->pairs[message->source] && in_list(&tracks->controls[message->source], start + 1))
        return true;
    for (uint32_t e = message->first; e < message->first + message->count; e++) {
        const End *end = &problem->ends[e];
        if (!tracks->pairs[end->tile] || tracks->sends[end->tile].count == 0)
            continue;
        uint32_t count = control_events(tracks, m, end, start, events);
        for (uint32_t i = 0; i < count; i++)
            if (in_list(&tracks->sends[end->tile], events[i] - 1))
                return true;
    }
    return false;
}

static int32_t avoid_controls(const Tracks *tracks, uint32_t head, int32_t start)
{
    const Problem *problem = tracks->problem;
    int32_t passed = 0;
    for (uint32_t m = head; in_chain(problem, head, m); m++) {
        if (meets_control(tracks, m, start + passed))
            return start + 1;
        passed += (int32_t)problem->messages[m].items;
    }
    return start;
}

static void note_controls(Tracks *tracks, uint32_t head, int32_t start)
{
    const Problem *problem = tracks->problem;
    int32_t events[CONTROLS_MAX];
    for (uint32_t m = head; in_chain(problem, head, m); m++) {
        const Message *message = &problem->messages[m];
        array_push(&tracks->sends[message->source], start);
        for (uint32_t e = message->first; e < message->first + message->count; e++) {
            const End *end = &problem->ends[e];
            uint32_t count =
                tracks->pairs[end->tile] ? control_events(tracks, m, end, start, events) : 0;
            for (uint32_t i = 0; i < count; i++)
                array_push(&tracks->controls[end->tile], events[i]);
        }
        start += (int32_t)message->items;
    }
}

/* ---- one message ---- */

static bool has_partner(const Problem *problem, const Message *message)
{
    return message->paired && (message->source ^ 1u) < problem->tiles;
}

/* A message that is sent in [S, S + n) and passes the mux in [S + T + 1, S + T + 1 + n) does so,
 * with time counted backwards, in [S', S' + n) and [S' - T - 1, S' - T - 1 + n). */
static int32_t route_time(const Tracks *tracks, const End *end)
{
    return tracks->mirrored ? -end->time - 2 : end->time;
}

static int32_t find_start(const Tracks *tracks, uint32_t m)
{
    const Problem *problem = tracks->problem;
    const Message *message = &problem->messages[m];
    const End *ends = &problem->ends[message->first];
    int32_t items = (int32_t)message->chain_items, start = 0, before;
    int32_t later = problem->distance[message->source];
    do {
        before = start = track_fit(&tracks->send[message->source], start, items);
        for (uint32_t i = 0; i < message->count; i++) {
            Span span = receive_span(problem, message, ends[i].tile);
            int32_t wanted = start + route_time(tracks, &ends[i]) + 1 - span.before;
            start += track_fit(&tracks->receive[ends[i].tile], wanted, span.length) - wanted;
            if (!tracks->reserved)
                continue;
            wanted = start + route_time(tracks, &ends[i]) + 1;
            start += track_fit(&tracks->reserved[ends[i].tile], wanted,
                               arrival_length(tracks, message, ends[i].tile)) -
                     wanted;
        }
        if (has_partner(problem, message)) {
            uint32_t partner = message->source ^ 1u;
            start = track_fit(&tracks->send[partner], start, items);
            start = track_fit(&tracks->arriving[partner], start, items);
        }
        if (tracks->reads)
            start = avoid_conflicts(tracks, m, start);
        if (tracks->sends && !tracks->mirrored)
            start = avoid_controls(tracks, m, start);
        if (start == before) { /* a little later, to be away from the sender's own controls */
            start += later;
            later = 0;
        }
    } while (start != before);
    return start;
}

static void take(Tracks *tracks, uint32_t m, int32_t start)
{
    const Problem *problem = tracks->problem;
    const Message *message = &problem->messages[m];
    const End *ends = &problem->ends[message->first];
    int32_t items = (int32_t)message->chain_items;
    track_take(&tracks->send[message->source], start, items);
    for (uint32_t i = 0; i < message->count; i++) {
        Span span = receive_span(problem, message, ends[i].tile);
        int32_t select = start + route_time(tracks, &ends[i]) + 1;
        track_take(&tracks->receive[ends[i].tile], select - span.before, span.length);
        if (tracks->arriving)
            track_take(&tracks->arriving[ends[i].tile], select,
                       arrival_length(tracks, message, ends[i].tile));
    }
    if (has_partner(problem, message)) {
        uint32_t partner = message->source ^ 1u;
        track_take(&tracks->send[partner], start, items);
        track_take(&tracks->reserved[partner], start, items);
    }
    if (tracks->reads)
        note_conflicts(tracks, m, start);
    if (tracks->sends && !tracks->mirrored)
        note_controls(tracks, m, start);
}

static void place_all(Tracks *tracks, const uint32_t *order, int32_t *start)
{
    const Problem *problem = tracks->problem;
    for (uint32_t t = 0; t < problem->tiles; t++) {
        /* The earliest select; backwards the time from the last word at the mux to the row's end.
         */
        int32_t first = tracks->mirrored ? WRITE_LAG + problem->row_lag[t] + GUARD_EVENTS : 1;
        track_clear(&tracks->send[t], 0);
        track_clear(&tracks->receive[t], first);
        if (tracks->reads)
            tracks->reads[t].count = tracks->writes[t].count = 0;
        if (tracks->sends) {
            tracks->sends[t].count = tracks->controls[t].count = 0;
            track_clear(&tracks->arriving[t], INT32_MIN / 2);
            track_clear(&tracks->reserved[t], INT32_MIN / 2);
        }
    }
    for (uint32_t i = 0; i < problem->count; i++) {
        uint32_t m = order[i];
        if (problem->messages[m].follows)
            continue; /* comes with the head of its chain */
        start[m] = find_start(tracks, m);
        take(tracks, m, start[m]);
        for (uint32_t n = m + 1; n < problem->count && problem->messages[n].follows; n++)
            start[n] = start[n - 1] + (int32_t)problem->messages[n - 1].items;
    }
}

uint32_t tracks_place(Tracks *tracks, const uint32_t *order, int32_t *start)
{
    tracks->mirrored = false;
    place_all(tracks, order, start);
    return problem_horizon(tracks->problem, start, NULL);
}

void tracks_place_mirrored(Tracks *tracks, const uint32_t *order, int32_t *start)
{
    tracks->mirrored = true;
    place_all(tracks, order, start);
}

/* ---- horizons ---- */

static bool has_role(const Problem *problem, uint32_t tile)
{
    return problem->outgoing_first[tile] != problem->outgoing_first[tile + 1] ||
           problem->incoming_first[tile] != problem->incoming_first[tile + 1];
}

/* A reserved partner without messages of its own has nothing to do and no row. */
uint32_t problem_horizon(const Problem *problem, const int32_t *start, uint32_t *tile_horizon)
{
    int32_t horizon = 0;
    if (tile_horizon)
        memset(tile_horizon, 0, problem->tiles * sizeof *tile_horizon);
    for (uint32_t m = 0; m < problem->count; m++) {
        const Message *message = &problem->messages[m];
        int32_t sent = start[m] + (int32_t)message->items;
        horizon = sent > horizon ? sent : horizon;
        if (tile_horizon) {
            uint32_t *own = &tile_horizon[message->source];
            *own = max_u32(*own, (uint32_t)sent);
            if (has_partner(problem, message) && has_role(problem, message->source ^ 1u)) {
                own = &tile_horizon[message->source ^ 1];
                *own = max_u32(*own, (uint32_t)sent);
            }
        }
        for (uint32_t i = message->first; i < message->first + message->count; i++) {
            const End *end = &problem->ends[i];
            int32_t written =
                sent + end->time + 1 + write_lag(message) + problem->row_lag[end->tile];
            int32_t done = written + GUARD_EVENTS;
            horizon = done > horizon ? done : horizon;
            if (tile_horizon)
                tile_horizon[end->tile] = max_u32(tile_horizon[end->tile], (uint32_t)done);
        }
    }
    return (uint32_t)horizon;
}

/* A tile's last message ends at best with its receivers' shortest way to memory, its first word
 * comes at best with its nearest source's select. */
uint32_t problem_floor(const Problem *problem)
{
    int32_t floor = 0;
    for (uint32_t t = 0; t < problem->tiles; t++) {
        int32_t first = INT32_MAX, last = INT32_MAX;
        for (uint32_t i = problem->outgoing_first[t]; i < problem->outgoing_first[t + 1]; i++) {
            const Message *message = &problem->messages[problem->outgoing[i]];
            int32_t way = 0;
            for (uint32_t e = message->first; e < message->first + message->count; e++) {
                const End *end = &problem->ends[e];
                int32_t lag = end->time + 1 + write_lag(message) + problem->row_lag[end->tile];
                way = lag > way ? lag : way;
            }
            last = way < last ? way : last;
        }
        for (uint32_t i = problem->incoming_first[t]; i < problem->incoming_first[t + 1]; i++) {
            int32_t select = problem->ends[problem->incoming[i]].time + 1;
            select = select > 1 ? select : 1;
            first = select < first ? select : first;
        }
        int32_t sent =
            last == INT32_MAX ? 0 : (int32_t)problem->send_items[t] + last + GUARD_EVENTS;
        int32_t received = first == INT32_MAX ? 0
                                              : (int32_t)problem->receive_items[t] + first +
                                                    WRITE_LAG + problem->row_lag[t] + GUARD_EVENTS;
        floor = sent > floor ? sent : floor;
        floor = received > floor ? received : floor;
    }
    return (uint32_t)floor;
}
