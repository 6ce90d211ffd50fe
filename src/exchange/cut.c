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
    ARRAY(uint8_t) width;
} Cutter;

static void begin(Cutter *cutter, uint32_t m, Width width)
{
    Transfer transfer = cutter->problem->phase->transfers[m];
    transfer.first_receiver = (uint32_t)cutter->receivers.count;
    transfer.receiver_count = 0;
    array_push(&cutter->transfers, transfer);
    array_push(&cutter->width, (uint8_t)width);
}

static void add(Cutter *cutter, uint32_t end)
{
    array_push(&cutter->receivers, *problem_receiver(cutter->problem, end));
    cutter->transfers.items[cutter->transfers.count - 1].receiver_count++;
}

static void finish(Cutter *cutter, CutPhase *out)
{
    if (!out->changed) {
        array_free(&cutter->transfers);
        array_free(&cutter->receivers);
        array_free(&cutter->width);
        return;
    }
    out->phase = *cutter->problem->phase;
    out->phase.transfers = cutter->transfers.items;
    out->phase.transfer_count = (uint32_t)cutter->transfers.count;
    out->phase.receivers = cutter->receivers.items;
    out->phase.receiver_count = (uint32_t)cutter->receivers.count;
    out->width = cutter->width.items;
}

void cut_free(CutPhase *cut)
{
    if (cut->changed) {
        array_release(cut->phase.transfers);
        array_release(cut->phase.receivers);
        array_release(cut->width);
    }
    *cut = (CutPhase){0};
}

Status cut_open(const TileProgram *program, const CutPhase *cut, Problem *out)
{
    TRY(problem_open(program, &cut->phase, out));
    for (uint32_t m = 0; m < out->count; m++) {
        out->messages[m].follows = cut->width[m] == WIDTH_64_FOLLOWS;
        if (cut->width[m] != WIDTH_32)
            problem_pair(out, m, true);
    }
    problem_measure(out);
    return STATUS_OK;
}

/* ---- parts with fewer receivers ---- */

static uint32_t parts_of(const Message *message, uint32_t size)
{
    uint32_t parts = ceil_div_u32(message->count, size);
    return parts <= PARTS_MAX && !message->paired ? parts : 1;
}

/* Items that a tile sends when its multicasts are cut into parts of `size` receivers. */
static uint64_t sent_when_cut(const Problem *problem, uint32_t tile, uint32_t size)
{
    uint64_t items = 0;
    for (uint32_t i = problem->outgoing_first[tile]; i < problem->outgoing_first[tile + 1]; i++) {
        const Message *message = &problem->messages[problem->outgoing[i]];
        items += (uint64_t)message->items * parts_of(message, size);
    }
    return items;
}

/* The smallest parts for which the tile still sends hardly longer than the phase must last anyway.
 * Hardly: shares of a block are not quite equal, and a turn more would cost far more than that. */
static uint32_t part_size(const Problem *problem, uint32_t tile, uint32_t most)
{
    uint32_t size = most > PARTS_MAX ? most : 1;
    uint64_t enough = problem->bound + problem->bound / 16;
    while (size < most && sent_when_cut(problem, tile, size) > enough)
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
        if (!message->paired)
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
            begin(&cutter, m,
                  message->follows  ? WIDTH_64_FOLLOWS
                  : message->paired ? WIDTH_64
                                    : WIDTH_32);
            uint32_t last = message->count * (part + 1) / parts;
            for (uint32_t i = message->count * part / parts; i < last; i++)
                add(&cutter, message->first + i);
        }
    }
    finish(&cutter, out);
    free(most);
}

/* ---- pairs ---- */

static bool doubleword(const Problem *problem, const Endpoint *end)
{
    const Buffer *buffer = &problem->program->buffers.items[end->at.buffer];
    bool moves = problem->phase->in_repeat && buffer->members > 1;
    return end->at.offset % 8 == 0 && (!moves || buffer_stride(buffer, end->tile) % 8 == 0);
}

/* Messages first..first + count - 1 go from one tile to the same receivers. */
typedef struct Chain {
    uint32_t first, count;
    int32_t items; /* 64-bit */
} Chain;

/* Can it be (a piece of) a 64-bit message? Too short a piece leaves no event for its pointer. */
static bool even(const Problem *problem, uint32_t m)
{
    return problem->messages[m].words % 2 == 0 && problem->messages[m].words >= 8 &&
           doubleword(problem, &problem->phase->transfers[m].source);
}

static Chain find_chain(const Problem *problem, uint32_t first)
{
    const Message *head = &problem->messages[first];
    Chain chain = {first, 1, (int32_t)head->words / 2};
    if (!even(problem, first))
        return chain;
    for (uint32_t m = first + 1; m < problem->count && even(problem, m); m++) {
        const Message *message = &problem->messages[m];
        if (!problem_same_way(problem, head, message) ||
            chain.items + (int32_t)message->words / 2 > SENDOFF_MAX)
            break;
        chain.count++;
        chain.items += (int32_t)message->words / 2;
    }
    return chain;
}

/* Number of the end: receiver `which` of the chain's piece. */
static uint32_t chain_end(const Problem *problem, const Chain *chain, uint32_t piece,
                          uint32_t which)
{
    return problem->messages[chain->first + piece].first + which;
}

/* May this receiver's pair take the chain as 64-bit items? A pointer or format must not come to be
 * written in the event in which the source is deselected. */
static bool pair_possible(const Problem *problem, const Chain *chain, uint32_t end, uint32_t twin)
{
    int32_t lag = problem->row_lag[problem->ends[chain_end(problem, chain, 0, end)].tile];
    int32_t passed = 0;
    if (chain->items == FORMAT_LAG + lag)
        return false;
    for (uint32_t i = 0; i < chain->count; i++) {
        const Endpoint *a = problem_receiver(problem, chain_end(problem, chain, i, end));
        const Endpoint *b = problem_receiver(problem, chain_end(problem, chain, i, twin));
        if (a->at.buffer != b->at.buffer || a->at.offset != b->at.offset ||
            !doubleword(problem, a) || chain->items == PAIRED_WRITE_LAG + lag + passed)
            return false;
        passed += (int32_t)problem->messages[chain->first + i].words / 2;
    }
    return true;
}

/* Marks the receivers in complete pairs; returns how many, 0 when 64-bit items gain nothing: a
 * receive takes 53 + 2 row events longer, and the slowest receiver of a message holds up the
 * others. seen: per tile, receiver + 1, zero outside. */
static uint32_t find_pairs(const Problem *problem, const Chain *chain, uint32_t *seen,
                           bool *in_pair)
{
    const Message *head = &problem->messages[chain->first];
    const End *ends = &problem->ends[head->first];
    uint32_t count = 0;
    int32_t slowest = 0;
    if (!even(problem, chain->first) || chain->items < PAIRED_ITEMS_MIN || head->count < 2)
        return 0;
    for (uint32_t i = 0; i < head->count; i++)
        seen[ends[i].tile] = i + 1;
    for (uint32_t i = 0; i < head->count; i++) {
        uint32_t tile = ends[i].tile, other = seen[tile ^ 1u];
        bool found = other && (tile ^ 1u) != head->source &&
                     pair_possible(problem, chain, i, other - 1) &&
                     pair_possible(problem, chain, other - 1, i);
        in_pair[i] = found;
        count += found;
        if (found && problem->row_lag[tile] > slowest)
            slowest = problem->row_lag[tile];
    }
    for (uint32_t i = 0; i < head->count; i++)
        seen[ends[i].tile] = 0;
    return chain->items - chain->items / 4 > FORMAT_LAG + slowest + 2 ? count : 0;
}

/* The chain to the receivers in pairs (wide) or to the others. */
static void cut_chain(Cutter *cutter, const Chain *chain, const bool *in_pair, bool wide)
{
    for (uint32_t i = 0; i < chain->count; i++) {
        const Message *message = &cutter->problem->messages[chain->first + i];
        begin(cutter, chain->first + i, !wide ? WIDTH_32 : i ? WIDTH_64_FOLLOWS : WIDTH_64);
        for (uint32_t r = 0; r < message->count; r++)
            if (in_pair[r] == wide)
                add(cutter, message->first + r);
    }
}

void cut_pairs(const Problem *problem, CutPhase *out)
{
    *out = (CutPhase){0};
    uint32_t *seen = xcalloc(problem->tiles + 2, sizeof *seen);
    bool *in_pair = xcalloc(problem->tiles + 1, sizeof *in_pair);
    Cutter cutter = {.problem = problem};
    Chain chain;
    for (uint32_t m = 0; m < problem->count; m += chain.count) {
        chain = find_chain(problem, m);
        uint32_t count = problem->messages[m].count;
        uint32_t paired = find_pairs(problem, &chain, seen, in_pair);
        if (paired == 0)
            memset(in_pair, 0, count * sizeof *in_pair);
        else
            cut_chain(&cutter, &chain, in_pair, true);
        if (paired < count)
            cut_chain(&cutter, &chain, in_pair, false);
        out->changed |= paired > 0;
    }
    finish(&cutter, out);
    free(seen);
    free(in_pair);
}
