/* order.c - in which order messages are placed. */
#include "exchange/internal.h"

#include <stdlib.h>

typedef struct Ranked {
    uint64_t key; /* ascending */
    uint32_t message;
} Ranked;

static int by_key(const void *a, const void *b)
{
    const Ranked *p = a, *q = b;
    if (p->key != q->key)
        return p->key < q->key ? -1 : 1;
    return p->message < q->message ? -1 : p->message > q->message;
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

/* Every receiver takes its sources in the order of logical tiles, beginning behind itself: the
 * receivers of a group go round in step, and neighbours in that order are neighbours on the chip,
 * so routes change little from one to the next. A message's key is the time at which it would pass
 * if the receiver's sequence had no holes. */
static void rotated_times(const Problem *problem, uint32_t *time)
{
    Ranked *list = xmalloc((problem->count + 1) * sizeof *list);
    uint32_t *leader = xmalloc((problem->count + 1) * sizeof *leader);
    for (uint32_t m = 0; m < problem->count; m++) {
        const Message *message = &problem->messages[m];
        uint32_t tile = problem->ends[leading_end(problem, message)].tile;
        uint32_t behind = (message->source + problem->tiles - tile) % problem->tiles;
        leader[m] = tile;
        list[m] = (Ranked){(uint64_t)tile << 32 | behind, m};
    }
    qsort(list, problem->count, sizeof *list, by_key);
    uint32_t passed = 0;
    for (uint32_t i = 0; i < problem->count; i++) {
        uint32_t m = list[i].message;
        if (i == 0 || leader[m] != leader[list[i - 1].message])
            passed = 0;
        time[m] = passed;
        passed += problem->messages[m].items;
    }
    free(leader);
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

void problem_order(const Problem *problem, PlaceOrder kind, uint32_t *order)
{
    for (uint32_t m = 0; m < problem->count; m++)
        order[m] = m;
    if (kind == PLACE_LISTED)
        return;
    uint32_t *time = xmalloc((problem->count + 1) * sizeof *time);
    Ranked *list = xmalloc((problem->count + 1) * sizeof *list);
    rotated_times(problem, time);
    for (uint32_t m = 0; m < problem->count; m++) {
        uint32_t load = pressure(problem, &problem->messages[m]);
        load = 2 * TIME_LIMIT - load; /* most first */
        uint64_t key =
            kind == PLACE_ROTATED ? (uint64_t)time[m] << 32 | load : (uint64_t)load << 32 | time[m];
        if (!problem->messages[m].paired)
            key |= 1ull << 63; /* 64-bit messages are the ones hard to place */
        list[m] = (Ranked){key, m};
    }
    qsort(list, problem->count, sizeof *list, by_key);
    for (uint32_t m = 0; m < problem->count; m++)
        order[m] = list[m].message;
    free(list);
    free(time);
}
