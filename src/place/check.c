/* check.c - proves a placement: every byte in one live allocation of the right class, alignment,
 * separation, code and rows in executable memory of their own; and prints the memory map. */
#include "place/layout.h"

#include <stdlib.h>

typedef struct Span { /* an allocation on one tile */
    uint32_t start, end, first, last, buffer;
} Span;
typedef ARRAY(Span) SpanArray;

enum { NO_BUFFER = 0xffffffffu };

static int by_start(const void *a, const void *b)
{
    const Span *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->buffer < y->buffer ? -1 : x->buffer > y->buffer;
}

static void add_executable(const Schedule *schedule, const Sizes *sizes, const Placement *placement,
                           uint32_t tile, SpanArray *spans)
{
    uint32_t code = placement->code_address[tile];
    array_push(spans, (Span){LINK_FIRST, EXCHANGE_WINDOW, 0, LIFETIME_ALWAYS, NO_BUFFER});
    array_push(spans, (Span){LINK_SECOND, code, 0, LIFETIME_ALWAYS, NO_BUFFER});
    array_push(spans, (Span){code, code + sizes->code_bytes[tile], 0, LIFETIME_ALWAYS, NO_BUFFER});
    for (uint32_t p = 0; p < schedule->phase_count; p++) {
        uint32_t row = placement->row_address[(size_t)p * placement->tiles + tile];
        if (row)
            array_push(spans, (Span){row, row + 4 * schedule->phases[p].row_words[tile], 0,
                                     LIFETIME_ALWAYS, NO_BUFFER});
    }
}

static void add_buffers(const Requests *requests, const Placement *placement, uint32_t tile,
                        SpanArray *spans)
{
    for (uint32_t b = 0; b < requests->count; b++) {
        const Request *request = &requests->items[b];
        if (requests->root[b] != b || !request->bytes[tile])
            continue;
        uint32_t start = placement_address(placement, tile, b);
        array_push(spans,
                   (Span){start, start + request->bytes[tile], request->first, request->last, b});
    }
}

static const char *span_name(const TileProgram *program, const Span *span)
{
    return span->buffer == NO_BUFFER ? "code or rows" : program->buffers.items[span->buffer].name;
}

static Status check_span(const TileProgram *program, const Requests *requests, uint32_t tile,
                         const Span *span)
{
    if (span->buffer == NO_BUFFER) {
        if (span->end > EXECUTABLE_END)
            return status_error("place: tile %u: code or rows end at %#x", tile, span->end);
        return STATUS_OK;
    }
    const Request *request = &requests->items[span->buffer];
    const char *name = program->buffers.items[span->buffer].name;
    if (span->start % request->align)
        return status_error("place: tile %u: %s at %#x is not aligned to %u", tile, name,
                            span->start, request->align);
    if (request->interleaved && span->start < INTERLEAVED_BASE)
        return status_error("place: tile %u: %s at %#x is not in interleaved memory", tile, name,
                            span->start);
    if (span->start < DATA_BASE || span->end > SRAM_LOAD_END)
        return status_error("place: tile %u: %s at %#x..%#x leaves its memory region", tile, name,
                            span->start, span->end);
    return STATUS_OK;
}

static bool share_element(uint32_t start, uint32_t end, uint32_t other_start, uint32_t other_end)
{
    return target_element(start) <= target_element(other_end - 1) &&
           target_element(other_start) <= target_element(end - 1);
}

static Status check_overlaps(const TileProgram *program, uint32_t tile, const SpanArray *spans)
{
    for (size_t i = 0; i < spans->count; i++) {
        const Span *a = &spans->items[i];
        for (size_t j = i + 1; j < spans->count && spans->items[j].start < a->end; j++) {
            const Span *b = &spans->items[j];
            if (a->first <= b->last && b->first <= a->last)
                return status_error("place: tile %u: %s and %s share %#x", tile,
                                    span_name(program, a), span_name(program, b), b->start);
        }
    }
    for (size_t i = 0; i < spans->count; i++) { /* data keeps off the elements of code */
        const Span *code = &spans->items[i];
        if (code->buffer != NO_BUFFER || code->start == code->end)
            continue;
        for (size_t j = 0; j < spans->count; j++) {
            const Span *data = &spans->items[j];
            if (data->buffer != NO_BUFFER &&
                share_element(code->start, code->end, data->start, data->end))
                return status_error("place: tile %u: %s shares an element with code at %#x", tile,
                                    span_name(program, data), code->start);
        }
    }
    return STATUS_OK;
}

static Status check_tile(const TileProgram *program, const Requests *requests,
                         const Schedule *schedule, const Sizes *sizes, const Placement *placement,
                         uint32_t tile)
{
    SpanArray spans = {0};
    add_executable(schedule, sizes, placement, tile, &spans);
    add_buffers(requests, placement, tile, &spans);
    qsort(spans.items, spans.count, sizeof *spans.items, by_start);
    Status status = STATUS_OK;
    for (size_t i = 0; i < spans.count && status_ok(status); i++)
        status = check_span(program, requests, tile, &spans.items[i]);
    if (status_ok(status))
        status = check_overlaps(program, tile, &spans);
    array_free(&spans);
    return status;
}

static Status check_separations(const TileProgram *program, const Requests *requests,
                                const Placement *placement)
{
    for (size_t i = 0; i < requests->separations.count; i++) {
        const Separation *s = &requests->separations.items[i];
        for (uint32_t tile = 0; tile < placement->tiles; tile++) {
            if (!(s->tiles.word[tile / 64] >> (tile % 64) & 1))
                continue;
            uint32_t a = placement_address(placement, tile, s->a);
            uint32_t b = placement_address(placement, tile, s->b);
            if (share_element(a, a + requests->items[s->a].bytes[tile], b,
                              b + requests->items[s->b].bytes[tile]))
                return status_error("place: tile %u: %s and %s share a memory element", tile,
                                    program->buffers.items[s->a].name,
                                    program->buffers.items[s->b].name);
        }
    }
    return STATUS_OK;
}

Status place_check(const TileProgram *program, const Schedule *schedule, const Sizes *sizes,
                   const Placement *placement)
{
    Arena arena = {0};
    Requests requests = {0};
    Status status = requests_collect(&arena, program, &schedule->constraints, &requests);
    for (uint32_t tile = 0; tile < placement->tiles && status_ok(status); tile++)
        status = check_tile(program, &requests, schedule, sizes, placement, tile);
    if (status_ok(status))
        status = check_separations(program, &requests, placement);
    requests_free(&requests);
    arena_free(&arena);
    return status;
}

void place_print(Text *text, const TileProgram *program, const Placement *placement,
                 const bool *wanted, uint32_t tile)
{
    SpanArray spans = {0};
    for (uint32_t b = 0; b < program->buffers.count; b++) {
        const Buffer *buffer = &program->buffers.items[b];
        uint32_t start = placement_address(placement, tile, b);
        if (!start || buffer->alias != BUFFER_NONE || !wanted[b])
            continue;
        uint32_t bytes = buffer->members > 1 ? buffer->members * buffer_stride(buffer, tile)
                                             : buffer->bytes[tile];
        array_push(&spans, (Span){start, start + bytes, placement->lifetime[b].first,
                                  placement->lifetime[b].last, b});
    }
    qsort(spans.items, spans.count, sizeof *spans.items, by_start);
    text_printf(text, "tile %u (physical %u): code at %#x\n", tile, target_physical(tile),
                placement->code_address[tile]);
    text_printf(text, "%-10s %-10s %9s %-13s %s\n", "start", "end", "bytes", "live", "buffer");
    for (size_t i = 0; i < spans.count; i++) {
        const Span *span = &spans.items[i];
        char live[32];
        if (span->last == LIFETIME_ALWAYS)
            snprintf(live, sizeof live, "always");
        else
            snprintf(live, sizeof live, "%u..%u", span->first, span->last);
        text_printf(text, "%#-10x %#-10x %9u %-13s %s\n", span->start, span->end,
                    span->end - span->start, live, span_name(program, span));
    }
    array_free(&spans);
}
