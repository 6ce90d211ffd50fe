/* order.c - in which order messages are placed. */
#include "exchange/internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct Ranked {
    uint64_t key; /* ascending */
    uint32_t message;
} Ranked;

/* By key; equal keys keep their order. Lists come in the order of messages, so ties go by message.
 */
static void sort_ranked(Ranked *list, uint32_t count)
{
    Ranked *other = xmalloc((count + 1) * sizeof *other), *from = list, *to = other;
    for (uint32_t shift = 0; shift < 64; shift += 8) {
        uint32_t place[257] = {0};
        for (uint32_t i = 0; i < count; i++)
            place[(from[i].key >> shift & 255) + 1]++;
        if (count == 0 || place[(from[0].key >> shift & 255) + 1] == count)
            continue; /* the same in all keys */
        for (uint32_t digit = 0; digit < 256; digit++)
            place[digit + 1] += place[digit];
        for (uint32_t i = 0; i < count; i++)
            to[place[from[i].key >> shift & 255]++] = from[i];
        Ranked *swap = from;
        from = to;
        to = swap;
    }
    if (from != list)
        memcpy(list, from, count * sizeof *list);
    free(other);
}

/* The receiver whose sequence a message goes by: the one with most to receive, then the first. */
static uint32_t leading_end(const Problem *problem, const Message *message)
{
    uint32_t best = message->first;
    for (uint32_t e = best + 1; e < message->first + message->count; e++) {
        uint32_t load = problem->receive_items[problem->ends[e].tile];
        uint32_t best_load = problem->receive_items[problem->ends[best].tile];
        if (load > best_load ||
            (load == best_load && problem->ends[e].tile < problem->ends[best].tile))
            best = e;
    }
    return best;
}

/* Every receiver takes its sources in the order of logical tiles: neighbours in that order are
 * neighbours on the chip, so routes change little from one to the next. Where a receiver begins
 * keeps receivers out of each other's way: `spread` false: behind itself, so that the receivers of
 * a group go round in step; true: at a place of the golden sequence, which spreads any run of
 * receivers evenly over the sources that they share. Where there are 64-bit messages the partners
 * of their senders get the same words one by one, all at the same time: first. A message's key is
 * the time at which it would pass if the receiver's sequence had no holes. */
static void rotated_times(const Problem *problem, bool spread, uint32_t *time)
{
    Ranked *list = xmalloc((problem->count + 1) * sizeof *list);
    bool pairs = false;
    for (uint32_t m = 0; m < problem->count; m++)
        pairs |= problem->messages[m].paired;
    for (uint32_t m = 0; m < problem->count; m++) {
        const Message *message = &problem->messages[m];
        uint32_t leader = problem->ends[leading_end(problem, message)].tile;
        uint32_t behind =
            spread ? message->source : (message->source + problem->tiles - leader) % problem->tiles;
        if (pairs && (message->source ^ 1u) == leader)
            behind = 0;
        list[m] = (Ranked){(uint64_t)leader << 32 | behind, m};
    }
    sort_ranked(list, problem->count);
    uint32_t leaders = 0;
    for (uint32_t first = 0, last; first < problem->count; first = last) {
        uint64_t items = 0, passed = 0;
        for (last = first; last < problem->count && list[last].key >> 32 == list[first].key >> 32;
             last++)
            items += problem->messages[list[last].message].items;
        uint64_t begin = spread ? items * (leaders++ * 2654435769u) >> 32 : 0; /* golden ratio */
        for (uint32_t i = first; i < last; i++) {
            uint32_t m = list[i].message;
            time[m] = (uint32_t)(passed >= begin ? passed - begin : passed + items - begin);
            passed += problem->messages[m].items;
        }
    }
    free(list);
}

/* How much is asked of the busiest tile that a message touches, latency included. */
static uint32_t pressure(const Problem *problem, const Message *message)
{
    uint32_t most = problem->send_items[message->source];
    for (uint32_t e = message->first; e < message->first + message->count; e++) {
        uint32_t tile = problem->ends[e].tile;
        uint32_t load = problem->receive_items[tile] + WRITE_LAG + GUARD_EVENTS +
                        (uint32_t)problem->row_lag[tile];
        most = max_u32(most, load);
    }
    return most;
}

/* By width, then by the receivers that they share: two families of multicasts that cross (rows of a
 * grid and its columns) go one family after the other, neither holds up the other. */
static uint64_t width_key(const Problem *problem, uint32_t m, bool narrow_first, uint32_t time)
{
    const Message *message = &problem->messages[m];
    uint64_t width = min_u32(message->count, 0x7ff);
    uint64_t leader = problem->ends[leading_end(problem, message)].tile;
    return (narrow_first ? width : 0x7ff - width) << 48 | leader << 32 | time;
}

/* 64-bit messages are the ones hard to place: they go first. Narrow ones before them is for tiles
 * that can not send what they have while they get the rest of it: those who receive first can send
 * while wide messages arrive. */
static uint64_t order_key(const Problem *problem, PlaceOrder kind, uint32_t m, uint32_t time)
{
    uint64_t load = 2u * TIME_LIMIT - pressure(problem, &problem->messages[m]); /* most first */
    uint64_t last = 1ull << 63;
    bool paired = problem->messages[m].paired;
    switch (kind) {
    case PLACE_ROTATED:
        return (uint64_t)time << 32 | load | (paired ? 0 : last);
    case PLACE_WIDE:
        return width_key(problem, m, false, time) | (paired ? 0 : last);
    case PLACE_NARROW:
        return width_key(problem, m, true, time) | (paired ? last : 0);
    default:
        return load << 32 | time | (paired ? 0 : last);
    }
}

void problem_order(const Problem *problem, PlaceOrder kind, uint32_t *order)
{
    for (uint32_t m = 0; m < problem->count; m++)
        order[m] = m;
    if (kind == PLACE_LISTED)
        return;
    uint32_t *time = xmalloc((problem->count + 1) * sizeof *time);
    Ranked *list = xmalloc((problem->count + 1) * sizeof *list);
    rotated_times(problem, kind == PLACE_SPREAD, time);
    for (uint32_t m = 0; m < problem->count; m++)
        list[m] = (Ranked){order_key(problem, kind, m, time[m]), m};
    sort_ranked(list, problem->count);
    for (uint32_t m = 0; m < problem->count; m++)
        order[m] = list[m].message;
    free(list);
    free(time);
}

void order_by_start(const Problem *problem, const int32_t *start, uint32_t *order)
{
    Ranked *list = xmalloc((problem->count + 1) * sizeof *list);
    for (uint32_t m = 0; m < problem->count; m++)
        list[m] = (Ranked){(uint64_t)start[m], m};
    sort_ranked(list, problem->count);
    for (uint32_t m = 0; m < problem->count; m++)
        order[m] = list[m].message;
    free(list);
}

/* ---- improvement ---- */

/* By the time at which messages end, the last first; in mirrored time that is by start. */
static void order_by_end(const Problem *problem, const int32_t *start, uint32_t *order)
{
    Ranked *list = xmalloc((problem->count + 1) * sizeof *list);
    for (uint32_t m = 0; m < problem->count; m++) {
        int64_t end = (int64_t)start[m] + problem->messages[m].chain_items;
        list[m] = (Ranked){(uint64_t)(4ll * TIME_LIMIT - end), m};
    }
    sort_ranked(list, problem->count);
    for (uint32_t m = 0; m < problem->count; m++)
        order[m] = list[m].message;
    free(list);
}

uint32_t improve(const Problem *problem, int32_t *start, uint32_t horizon, uint32_t floor,
                 uint64_t budget)
{
    uint32_t *order = xmalloc((problem->count + 1) * sizeof *order);
    int32_t *late = xmalloc((problem->count + 1) * sizeof *late);
    int32_t *early = xmalloc((problem->count + 1) * sizeof *early);
    Tracks *tracks = tracks_open(problem);
    uint64_t round = 2ull * (problem->end_count + problem->count);
    memcpy(early, start, problem->count * sizeof *early);
    for (uint32_t misses = 0; misses < 2 && horizon > floor && budget >= round; budget -= round) {
        order_by_end(problem, early, order);
        tracks_place_mirrored(tracks, order, late);
        order_by_end(problem, late, order);
        uint32_t found = tracks_place(tracks, order, early);
        misses = found < horizon ? 0 : misses + 1;
        if (found < horizon) {
            horizon = found;
            memcpy(start, early, problem->count * sizeof *early);
        }
    }
    tracks_close(tracks);
    free(order);
    free(late);
    free(early);
    return horizon;
}
