/* phase.c - a phase of the tile program in the scheduler's terms. */
#include "exchange/internal.h"

#include <stdlib.h>

static Status check_place(const TileProgram *program, const Endpoint *end, uint32_t words)
{
    if (end->tile >= program->tiles || end->tile >= TILES)
        return status_error("tile %u of %u", end->tile, program->tiles);
    if (end->at.buffer >= program->buffers.count)
        return status_error("buffer %u of %zu", end->at.buffer, program->buffers.count);
    const Buffer *buffer = &program->buffers.items[end->at.buffer];
    uint32_t bytes = buffer->bytes[end->tile];
    if (end->at.offset % 4)
        return status_error("offset %u in %s is no multiple of 4", end->at.offset, buffer->name);
    if (end->at.offset > bytes || words > (bytes - end->at.offset) / 4)
        return status_error("%u words at offset %u do not lie in %s, %u bytes on tile %u", words,
                            end->at.offset, buffer->name, bytes, end->tile);
    return STATUS_OK;
}

static Status check_transfer(const TileProgram *program, const ExchangePhase *phase,
                             const Transfer *transfer, uint32_t *stamp, uint32_t number)
{
    if (transfer->words == 0 || transfer->words >= SRAM_BYTES / 4)
        return status_error("%u words", transfer->words);
    if (transfer->receiver_count == 0 || transfer->first_receiver > phase->receiver_count ||
        transfer->receiver_count > phase->receiver_count - transfer->first_receiver)
        return status_error("no receivers");
    TRY(check_place(program, &transfer->source, transfer->words));
    for (uint32_t i = 0; i < transfer->receiver_count; i++) {
        const Endpoint *end = &phase->receivers[transfer->first_receiver + i];
        TRY(check_place(program, end, transfer->words));
        if (end->tile == transfer->source.tile)
            return status_error("tile %u sends to itself", end->tile);
        if (stamp[end->tile] == number + 1)
            return status_error("tile %u receives it twice", end->tile);
        stamp[end->tile] = number + 1;
    }
    return STATUS_OK;
}

static void fill_messages(Problem *problem)
{
    uint32_t next = 0;
    for (uint32_t m = 0; m < problem->count; m++) {
        const Transfer *transfer = &problem->phase->transfers[m];
        Message *message = &problem->messages[m];
        *message = (Message){.words = transfer->words,
                             .first = next,
                             .count = transfer->receiver_count,
                             .source = (uint16_t)transfer->source.tile};
        uint32_t from = target_physical(transfer->source.tile);
        for (uint32_t i = 0; i < message->count; i++) {
            const Endpoint *end = &problem->phase->receivers[transfer->first_receiver + i];
            problem->ends[next++] =
                (End){.message = m,
                      .tile = (uint16_t)end->tile,
                      .time = (int16_t)target_route_time(from, target_physical(end->tile))};
        }
    }
}

/* Counting sort of messages by source and of ends by tile. */
static void fill_tile_lists(Problem *problem)
{
    uint32_t *out = problem->outgoing_first, *in = problem->incoming_first;
    for (uint32_t m = 0; m < problem->count; m++)
        out[problem->messages[m].source + 1]++;
    for (uint32_t e = 0; e < problem->end_count; e++)
        in[problem->ends[e].tile + 1]++;
    for (uint32_t t = 0; t < problem->tiles; t++) {
        out[t + 1] += out[t];
        in[t + 1] += in[t];
    }
    uint32_t *cursor = xcalloc(2 * (size_t)problem->tiles + 1, sizeof *cursor);
    for (uint32_t m = 0; m < problem->count; m++) {
        uint32_t t = problem->messages[m].source;
        problem->outgoing[out[t] + cursor[t]++] = m;
    }
    cursor += problem->tiles;
    for (uint32_t e = 0; e < problem->end_count; e++) {
        uint32_t t = problem->ends[e].tile;
        problem->incoming[in[t] + cursor[t]++] = e;
    }
    free(cursor - problem->tiles);
}

/* Does a tile send bytes that it also receives? */
static bool same_bytes(const Problem *problem, uint32_t t)
{
    const TileProgram *program = problem->program;
    for (uint32_t i = problem->outgoing_first[t]; i < problem->outgoing_first[t + 1]; i++) {
        const Transfer *transfer = &problem->phase->transfers[problem->outgoing[i]];
        const BufferRef *from = &transfer->source.at;
        for (uint32_t k = problem->incoming_first[t]; k < problem->incoming_first[t + 1]; k++) {
            uint32_t end = problem->incoming[k];
            const BufferRef *to = &problem_receiver(problem, end)->at;
            uint32_t words = problem->messages[problem->ends[end].message].words;
            if (buffer_root(program, from->buffer) == buffer_root(program, to->buffer) &&
                from->offset < to->offset + 4 * words &&
                to->offset < from->offset + 4 * transfer->words)
                return true;
        }
    }
    return false;
}

static void find_conflicts(Problem *problem)
{
    const TileProgram *program = problem->program;
    uint32_t *stamp = xcalloc(program->buffers.count + 1, sizeof *stamp);
    for (uint32_t t = 0; t < problem->tiles && !problem->ordered; t++) {
        bool conflicts = false;
        for (uint32_t i = problem->outgoing_first[t]; i < problem->outgoing_first[t + 1]; i++) {
            const Transfer *transfer = &problem->phase->transfers[problem->outgoing[i]];
            stamp[buffer_root(program, transfer->source.at.buffer)] = t + 1;
        }
        for (uint32_t i = problem->incoming_first[t]; i < problem->incoming_first[t + 1]; i++) {
            const Endpoint *end = problem_receiver(problem, problem->incoming[i]);
            conflicts |= stamp[buffer_root(program, end->at.buffer)] == t + 1;
        }
        problem->conflicts |= conflicts;
        problem->ordered = conflicts && same_bytes(problem, t);
    }
    free(stamp);
}

void problem_pair(Problem *problem, uint32_t m, bool paired)
{
    Message *message = &problem->messages[m];
    uint32_t from = target_physical(message->source);
    message->paired = paired;
    for (uint32_t e = message->first; e < message->first + message->count; e++) {
        uint32_t to = target_physical(problem->ends[e].tile);
        uint32_t member = paired ? target_early_member(from, to) : to;
        problem->ends[e].time = (int16_t)target_route_time(from, member);
    }
}

bool problem_same_way(const Problem *problem, const Message *a, const Message *b)
{
    bool same = a->source == b->source && a->count == b->count;
    for (uint32_t i = 0; same && i < a->count; i++)
        same = problem->ends[a->first + i].tile == problem->ends[b->first + i].tile;
    return same;
}

Status problem_from_schedule(const TileProgram *program, const PhaseSchedule *schedule,
                             Problem *problem, int32_t **start)
{
    TRY(problem_open(program, schedule->phase, problem));
    *start = xcalloc(problem->count + 1, sizeof **start);
    for (uint32_t m = 0; m < problem->count; m++) {
        (*start)[m] = (int32_t)schedule->slots[m].start;
        if (schedule->slots[m].paired)
            problem_pair(problem, m, true);
    }
    problem_measure(problem);
    for (uint32_t m = 1; m < problem->count; m++) {
        Message *message = &problem->messages[m], *before = message - 1;
        message->follows = before->paired && message->paired &&
                           (*start)[m] == (*start)[m - 1] + (int32_t)before->items &&
                           problem_same_way(problem, before, message);
    }
    problem_measure(problem);
    return STATUS_OK;
}

void problem_measure(Problem *problem)
{
    for (uint32_t t = 0; t < problem->tiles; t++)
        problem->send_items[t] = problem->receive_items[t] = 0;
    for (uint32_t m = 0; m < problem->count; m++) {
        Message *message = &problem->messages[m];
        message->items = message->paired ? message->words / 2 : message->words;
        problem->send_items[message->source] += message->items;
        if (message->paired && (message->source ^ 1u) < problem->tiles) {
            problem->send_items[message->source ^ 1] += message->items;
            problem->receive_items[message->source ^ 1] += message->items;
        }
        for (uint32_t i = 0; i < message->count; i++)
            problem->receive_items[problem->ends[message->first + i].tile] += message->items;
    }
    for (uint32_t m = problem->count; m-- > 0;) {
        Message *message = &problem->messages[m];
        bool followed = m + 1 < problem->count && message[1].follows;
        message->chain_items = message->items + (followed ? message[1].chain_items : 0);
    }
    problem->bound = 0;
    for (uint32_t t = 0; t < problem->tiles; t++) {
        problem->bound = max_u32(problem->bound, problem->send_items[t]);
        problem->bound = max_u32(problem->bound, problem->receive_items[t]);
    }
}

Status problem_open(const TileProgram *program, const ExchangePhase *phase, Problem *out)
{
    *out = (Problem){0};
    uint32_t ends = 0;
    uint32_t *stamp = xcalloc(TILES, sizeof *stamp);
    for (uint32_t m = 0; m < phase->transfer_count; m++) {
        Status status = check_transfer(program, phase, &phase->transfers[m], stamp, m);
        if (!status_ok(status)) {
            free(stamp);
            return status_context(status, "%s, transfer %u",
                                  phase->operation ? phase->operation : "exchange", m);
        }
        ends += phase->transfers[m].receiver_count;
    }
    free(stamp);
    uint32_t count = phase->transfer_count, tiles = program->tiles;
    *out = (Problem){.program = program,
                     .phase = phase,
                     .tiles = tiles,
                     .count = count,
                     .end_count = ends,
                     .messages = xcalloc(count + 1, sizeof(Message)),
                     .ends = xcalloc(ends + 1, sizeof(End)),
                     .outgoing_first = xcalloc(tiles + 1, sizeof(uint32_t)),
                     .outgoing = xcalloc(count + 1, sizeof(uint32_t)),
                     .incoming_first = xcalloc(tiles + 1, sizeof(uint32_t)),
                     .incoming = xcalloc(ends + 1, sizeof(uint32_t)),
                     .send_items = xcalloc(tiles + 1, sizeof(uint32_t)),
                     .receive_items = xcalloc(tiles + 1, sizeof(uint32_t)),
                     .row_lag = xcalloc(tiles + 1, sizeof(int32_t)),
                     .distance = xcalloc(tiles + 1, sizeof(int32_t))};
    for (uint32_t t = 0; t < tiles; t++)
        out->row_lag[t] = 2 * target_row(target_physical(t));
    fill_messages(out);
    fill_tile_lists(out);
    find_conflicts(out);
    problem_measure(out);
    uint64_t all = 0;
    for (uint32_t m = 0; m < count; m++)
        all += out->messages[m].words;
    if (all >= TIME_LIMIT) { /* even one after the other they would stay below */
        problem_close(out);
        return status_error("%s: %llu words are more than a phase can hold",
                            phase->operation ? phase->operation : "exchange",
                            (unsigned long long)all);
    }
    return STATUS_OK;
}

void problem_close(Problem *problem)
{
    free(problem->messages);
    free(problem->ends);
    free(problem->outgoing_first);
    free(problem->outgoing);
    free(problem->incoming_first);
    free(problem->incoming);
    free(problem->send_items);
    free(problem->receive_items);
    free(problem->row_lag);
    free(problem->distance);
    *problem = (Problem){0};
}
