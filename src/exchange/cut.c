/* cut.c - other ways to cut a phase into messages.
 *
 * A transfer to several receivers need not be one message. Two multicasts that share a receiver can
 * not overlap, so an all-gather in a group of g tiles takes g turns although each tile receives
 * only g - 1 times; sent to one receiver after the other the same words need g - 1 turns, because
 * all tiles can send at once. And a 64-bit message needs complete pairs for receivers, which the
 * pair of the sender itself can never be: cutting it off lets the others have theirs. */
#include "exchange/internal.h"

#include <stdlib.h>
#include <string.h>

enum {
    PARTS_MAX = 24, /* of one multicast: more would cost rows more than they gain time */
    MESSAGES_MAX = 50000
};

typedef struct Cutter {
    const Problem *problem;
    ARRAY(Transfer) transfers;
    ARRAY(Endpoint) receivers;
    ARRAY(bool) paired;
} Cutter;

static void begin(Cutter *cutter, uint32_t m, bool paired)
{
    Transfer transfer = cutter->problem->phase->transfers[m];
    transfer.first_receiver = (uint32_t)cutter->receivers.count;
    transfer.receiver_count = 0;
    array_push(&cutter->transfers, transfer);
    array_push(&cutter->paired, paired);
}

static void add(Cutter *cutter, uint32_t end)
{
    array_push(&cutter->receivers, *problem_receiver(cutter->problem, end));
    cutter->transfers.items[cutter->transfers.count - 1].receiver_count++;
}

static void finish(Cutter *cutter, CutPhase *out)
{
    out->phase = *cutter->problem->phase;
    out->phase.transfers = cutter->transfers.items;
    out->phase.transfer_count = (uint32_t)cutter->transfers.count;
    out->phase.receivers = cutter->receivers.items;
    out->phase.receiver_count = (uint32_t)cutter->receivers.count;
    out->paired = cutter->paired.items;
}

static void release(Cutter *cutter)
{
    array_free(&cutter->transfers);
    array_free(&cutter->receivers);
    array_free(&cutter->paired);
}

void cut_free(CutPhase *cut)
{
    if (cut->changed) {
        array_release(cut->phase.transfers);
        array_release(cut->phase.receivers);
        array_release(cut->paired);
    }
    *cut = (CutPhase){0};
}

/* ---- parts with fewer receivers ---- */

static uint32_t parts_of(const Message *message, uint32_t size)
{
    uint32_t parts = ceil_div_u32(message->count, size);
    return parts <= PARTS_MAX ? parts : 1;
}

/* Items that a tile sends when its multicasts are cut into parts of `size` receivers. */
static uint64_t sent_when_cut(const Problem *problem, uint32_t tile, uint32_t size)
{
    uint64_t items = 0;
    for (uint32_t i = problem->outgoing_first[tile]; i < problem->outgoing_first[tile + 1]; i++) {
        const Message *message = &problem->messages[problem->outgoing[i]];
        items += (uint64_t)message->words * parts_of(message, size);
    }
    return items;
}

/* The smallest parts for which the tile still sends no longer than the phase must last anyway. */
static uint32_t part_size(const Problem *problem, uint32_t tile, uint32_t most)
{
    uint32_t size = most > PARTS_MAX ? most : 1;
    while (size < most && sent_when_cut(problem, tile, size) > problem->bound)
        size++;
    return size;
}

void cut_parts(const Problem *problem, CutPhase *out)
{
    *out = (CutPhase){0};
    Cutter cutter = {.problem = problem};
    uint32_t *most = xcalloc(problem->tiles, sizeof *most), *size = most;
    for (uint32_t m = 0; m < problem->count; m++) {
        const Message *message = &problem->messages[m];
        most[message->source] = max_u32(most[message->source], message->count);
    }
    for (uint32_t t = 0; t < problem->tiles; t++)
        size[t] = most[t] > 1 ? part_size(problem, t, most[t]) : 1;
    uint64_t all = 0;
    for (uint32_t m = 0; m < problem->count; m++)
        all += parts_of(&problem->messages[m], size[problem->messages[m].source]);
    out->changed = all > problem->count && all <= MESSAGES_MAX;
    for (uint32_t m = 0; m < problem->count && out->changed; m++) {
        const Message *message = &problem->messages[m];
        uint32_t parts = parts_of(message, size[message->source]);
        for (uint32_t part = 0; part < parts; part++) {
            begin(&cutter, m, false);
            uint32_t last = message->count * (part + 1) / parts;
            for (uint32_t i = message->count * part / parts; i < last; i++)
                add(&cutter, message->first + i);
        }
    }
    if (out->changed)
        finish(&cutter, out);
    else
        release(&cutter);
    free(most);
}

/* ---- pairs ---- */

static bool doubleword(const Problem *problem, const Endpoint *end)
{
    const Buffer *buffer = &problem->program->buffers.items[end->at.buffer];
    bool moves = problem->phase->in_repeat && buffer->members > 1;
    return end->at.offset % 8 == 0 && (!moves || buffer_stride(buffer, end->tile) % 8 == 0);
}

/* May this receiver's pair take the message as 64-bit items? */
static bool pair_possible(const Problem *problem, const Message *message, uint32_t end,
                          uint32_t twin)
{
    const Endpoint *a = problem_receiver(problem, end), *b = problem_receiver(problem, twin);
    int32_t items = (int32_t)message->words / 2;
    int32_t format = FORMAT_LAG + problem->row_lag[problem->ends[end].tile];
    bool coincides = items == format || items == format + PAIRED_WRITE_LAG - FORMAT_LAG;
    return a->at.buffer == b->at.buffer && a->at.offset == b->at.offset && doubleword(problem, a) &&
           !coincides;
}

/* Marks the ends in complete pairs; returns how many, 0 when 64-bit items gain nothing: a receive
 * takes 53 + 2 row events longer, and the slowest receiver of a message holds up the others. seen:
 * per tile, end number + 1, zero outside. */
static uint32_t find_pairs(const Problem *problem, uint32_t m, uint32_t *seen, bool *in_pair)
{
    const Message *message = &problem->messages[m];
    uint32_t first = message->first, last = first + message->count, count = 0;
    int32_t items = (int32_t)message->words / 2, slowest = 0;
    if (message->words % 2 || items < PAIRED_ITEMS_MIN || message->count < 2 ||
        !doubleword(problem, &problem->phase->transfers[m].source))
        return 0;
    for (uint32_t e = first; e < last; e++)
        seen[problem->ends[e].tile] = e + 1;
    for (uint32_t e = first; e < last; e++) {
        uint32_t tile = problem->ends[e].tile, other = seen[tile ^ 1u];
        bool found = other && (tile ^ 1u) != message->source &&
                     pair_possible(problem, message, e, other - 1);
        in_pair[e - first] = found;
        count += found;
        if (found && problem->row_lag[tile] > slowest)
            slowest = problem->row_lag[tile];
    }
    for (uint32_t e = first; e < last; e++)
        seen[problem->ends[e].tile] = 0;
    return items - items / 4 > FORMAT_LAG + slowest + 2 ? count : 0;
}

void cut_pairs(const Problem *problem, CutPhase *out)
{
    *out = (CutPhase){0};
    if (problem->conflicts)
        return;
    uint32_t *seen = xcalloc(problem->tiles + 2, sizeof *seen);
    bool *in_pair = xcalloc(problem->tiles + 1, sizeof *in_pair);
    Cutter cutter = {.problem = problem};
    for (uint32_t m = 0; m < problem->count; m++) {
        const Message *message = &problem->messages[m];
        uint32_t paired = find_pairs(problem, m, seen, in_pair);
        out->changed |= paired > 0;
        for (int part = 1; part >= 0; part--) {
            if (paired == (part ? 0 : message->count))
                continue;
            begin(&cutter, m, part);
            for (uint32_t i = 0; i < message->count; i++)
                if ((paired && in_pair[i]) == part)
                    add(&cutter, message->first + i);
        }
    }
    if (out->changed)
        finish(&cutter, out);
    else
        release(&cutter);
    free(seen);
    free(in_pair);
}
