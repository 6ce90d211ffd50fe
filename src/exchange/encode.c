/* encode.c - rows of one phase: schedule and addresses in, words out. */
#include "exchange/internal.h"

#include <stdlib.h>

typedef struct Encoder {
    Problem problem;
    int32_t *start;
    AddressOf *address;
    const void *context;
    TileEvents events;
    RowWriter *writer;
    ARRAY(uint32_t) source_items, pointers;
} Encoder;

/* Bit set of the memory elements of a range: 32 of region 0, then those of region 1. */
static uint64_t elements(uint32_t address, uint32_t bytes)
{
    uint64_t set = 0;
    for (uint64_t at = address; at < (uint64_t)address + bytes;
         at = (at / ELEMENT_BYTES + 1) * ELEMENT_BYTES) {
        uint32_t element = target_element((uint32_t)at);
        set |= 1ull << (element < 32 ? element : (element - 1024 + 32) % 64);
    }
    return set;
}

static const char *buffer_name(const Problem *problem, uint32_t buffer)
{
    const char *name = problem->program->buffers.items[buffer].name;
    return name ? name : "?";
}

/* Address of an endpoint, member 0. */
static Status locate(const Encoder *encoder, const Endpoint *end, const Message *message,
                     uint32_t *out)
{
    uint32_t base = encoder->address(encoder->context, end->tile, end->at.buffer);
    uint64_t address = (uint64_t)base + end->at.offset, bytes = 4ull * message->words;
    const char *name = buffer_name(&encoder->problem, end->at.buffer);
    if (address < SRAM_BASE || address + bytes > SRAM_END)
        return status_error("%s on tile %u: %llu bytes at 0x%llx are not in memory", name,
                            end->tile, (unsigned long long)bytes, (unsigned long long)address);
    if (address % (message->paired ? 8 : 4))
        return status_error("%s on tile %u: 0x%llx is not a multiple of %d", name, end->tile,
                            (unsigned long long)address, message->paired ? 8 : 4);
    *out = (uint32_t)address;
    return STATUS_OK;
}

/* The elements of all members that a source in a sequence goes through. */
static uint64_t all_elements(const Problem *problem, const Endpoint *end, uint32_t address,
                             uint32_t words)
{
    const Buffer *buffer = &problem->program->buffers.items[end->at.buffer];
    uint32_t members = problem->phase->in_repeat ? max_u32(buffer->members, 1) : 1;
    uint32_t stride = members > 1 ? buffer_stride(buffer, end->tile) : 0;
    uint64_t set = 0;
    for (uint32_t i = 0; i < members; i++)
        set |= elements(address + i * stride, 4 * words);
    return set;
}

/* Sends and arrivals at the same time must not meet in an element. */
static Status check_separation(const Encoder *encoder)
{
    const Problem *problem = &encoder->problem;
    const TileEvents *events = &encoder->events;
    size_t first = 0;
    for (size_t i = 0; i < events->windows.count; i++) {
        const TileWindow *window = &events->windows.items[i];
        const Endpoint *to = problem_receiver(problem, window->end_number);
        uint32_t words = problem->messages[problem->ends[window->end_number].message].words;
        uint64_t written = all_elements(problem, to, 4 * encoder->pointers.items[i], words);
        for (size_t k = first; k < events->sends.count; k++) {
            const TileSend *send = &events->sends.items[k];
            if (send->start >= window->end + GUARD_EVENTS)
                break;
            if (send->start + (int32_t)send->items <= window->start) {
                first = k + 1;
                continue;
            }
            const Transfer *transfer = &problem->phase->transfers[send->message];
            uint32_t width = problem->messages[send->message].paired ? 8 : 4;
            if (written & all_elements(problem, &transfer->source,
                                       width * encoder->source_items.items[k], transfer->words))
                return status_error("%s and %s on tile %u share a memory element while one is "
                                    "sent and the other written",
                                    buffer_name(problem, transfer->source.at.buffer),
                                    buffer_name(problem, to->at.buffer), events->tile);
        }
    }
    return STATUS_OK;
}

static Status locate_all(Encoder *encoder)
{
    const Problem *problem = &encoder->problem;
    const TileEvents *events = &encoder->events;
    encoder->source_items.count = encoder->pointers.count = 0;
    for (size_t i = 0; i < events->sends.count; i++) {
        uint32_t m = events->sends.items[i].message, address;
        const Message *message = &problem->messages[m];
        TRY(locate(encoder, &problem->phase->transfers[m].source, message, &address));
        array_push(&encoder->source_items, address / (message->paired ? 8 : 4));
    }
    for (size_t i = 0; i < events->windows.count; i++) {
        uint32_t end = events->windows.items[i].end_number, address;
        const Message *message = &problem->messages[problem->ends[end].message];
        TRY(locate(encoder, problem_receiver(problem, end), message, &address));
        array_push(&encoder->pointers, address / 4);
    }
    return check_separation(encoder);
}

static Status encode_tile(Encoder *encoder, Arena *arena, uint32_t tile, uint32_t horizon, Row *row)
{
    uint32_t coincides = 0;
    if (!events_collect(&encoder->problem, encoder->start, tile, horizon, &encoder->events,
                        &coincides))
        return status_error("tile %u: controls of transfer %u coincide", tile, coincides);
    TRY(locate_all(encoder));
    row->count = row_lay_out(encoder->writer, &encoder->events);
    if (row->count == 0)
        return status_error("tile %u: a two-word instruction can not be aligned", tile);
    row->words = arena_array(arena, uint32_t, row->count);
    row_emit(encoder->writer, &encoder->events, encoder->source_items.items,
             encoder->pointers.items, row->words);
    return STATUS_OK;
}

static Status encode_rows(Encoder *encoder, Arena *arena, const PhaseSchedule *schedule, Row *rows)
{
    for (uint32_t t = 0; t < encoder->problem.tiles; t++) {
        rows[t] = (Row){0};
        if (schedule->tile_horizon[t])
            TRY(encode_tile(encoder, arena, t, schedule->tile_horizon[t], &rows[t]));
    }
    return STATUS_OK;
}

Status exchange_encode_phase(Arena *arena, const TileProgram *program, uint32_t phase,
                             const PhaseSchedule *schedule, AddressOf *address, const void *context,
                             Row *rows)
{
    Encoder encoder = {.address = address, .context = context};
    TRY(problem_from_schedule(program, schedule, &encoder.problem, &encoder.start));
    encoder.writer = row_open();
    Status status = encode_rows(&encoder, arena, schedule, rows);
    row_close(encoder.writer);
    events_free(&encoder.events);
    array_free(&encoder.source_items);
    array_free(&encoder.pointers);
    free(encoder.start);
    problem_close(&encoder.problem);
    return status_context(status, "exchange phase %u", phase);
}
