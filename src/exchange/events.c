/* events.c - what one tile does in a phase: its sends, its arrivals, its timed controls.
 *
 * The starts of all messages are given; everything else follows. Controls that change nothing are
 * left out: the neutral select between messages that abut at the mux, the select of a source that
 * is selected already, the pointer of words that continue the last ones in the same buffer. */
#include "exchange/internal.h"

#include <stdlib.h>

void events_free(TileEvents *events)
{
    array_free(&events->sends);
    array_free(&events->windows);
    array_free(&events->controls);
    array_free(&events->pointers);
}

static int by_start(const void *a, const void *b)
{
    const TileSend *p = a, *q = b;
    return p->start < q->start ? -1 : p->start > q->start;
}

static int by_window_start(const void *a, const void *b)
{
    const TileWindow *p = a, *q = b;
    return p->start < q->start ? -1 : p->start > q->start;
}

/* One direction when there is one receiver (or one pair), both otherwise (exchange.md 3.5). */
static uint8_t send_control(const Problem *problem, const Message *message)
{
    uint32_t lone = message->paired ? 2 : 1;
    const End *end = &problem->ends[message->first];
    uint32_t direction = message->count == lone ? target_direction(target_physical(message->source),
                                                                   target_physical(end->tile))
                                                : 3;
    return (uint8_t)(direction | (message->paired ? 4 : 0));
}

static void collect_sends(const Problem *problem, const int32_t *start, uint32_t tile,
                          TileEvents *out)
{
    out->sends.count = 0;
    for (uint32_t i = problem->outgoing_first[tile]; i < problem->outgoing_first[tile + 1]; i++) {
        uint32_t m = problem->outgoing[i];
        const Message *message = &problem->messages[m];
        array_push(&out->sends, (TileSend){.start = start[m],
                                           .items = message->items,
                                           .message = m,
                                           .sctl = send_control(problem, message)});
    }
    if (out->sends.count > 1)
        qsort(out->sends.items, out->sends.count, sizeof(TileSend), by_start);
}

static void collect_windows(const Problem *problem, const int32_t *start, uint32_t tile,
                            TileEvents *out)
{
    out->windows.count = 0;
    for (uint32_t i = problem->incoming_first[tile]; i < problem->incoming_first[tile + 1]; i++) {
        const End *end = &problem->ends[problem->incoming[i]];
        const Message *message = &problem->messages[end->message];
        int32_t lag = (message->paired ? PAIRED_WRITE_LAG : WRITE_LAG) + problem->row_lag[tile];
        int32_t first = start[end->message] + end->time + 1 + lag;
        array_push(&out->windows, (TileWindow){.start = first,
                                               .end = first + (int32_t)message->items,
                                               .end_number = problem->incoming[i],
                                               .lag = lag,
                                               .paired = message->paired});
    }
    if (out->windows.count > 1)
        qsort(out->windows.items, out->windows.count, sizeof(TileWindow), by_window_start);
}

static uint32_t window_source(const Problem *problem, const TileWindow *window)
{
    return target_physical(problem->messages[problem->ends[window->end_number].message].source);
}

/* The second is the next piece of the first one's 64-bit message. */
static bool same_chain(const Problem *problem, const TileWindow *last, const TileWindow *window)
{
    return last->paired && window->paired && last->end == window->start &&
           window_source(problem, last) == window_source(problem, window);
}

/* ---- source selects ---- */

static void select_source(TileEvents *out, int32_t event, uint8_t selector, uint32_t source)
{
    array_push(&out->controls,
               (TileControl){.event = event, .stream = 1, .selector = selector, .value = source});
}

static void collect_selects(const Problem *problem, uint32_t tile, TileEvents *out)
{
    uint32_t own = target_physical(tile);
    for (size_t i = 0; i < out->windows.count; i++) {
        const TileWindow *window = &out->windows.items[i];
        const TileWindow *last = i ? window - 1 : NULL;
        const TileWindow *next = i + 1 < out->windows.count ? window + 1 : NULL;
        uint32_t source = window_source(problem, window);
        int32_t from = window->start - window->lag, to = window->end - window->lag;
        if (window->paired) {
            bool early = target_early_member(source, own) == own;
            if (early && !(last && same_chain(problem, last, window)))
                select_source(out, from, 1, source ^ (own & 2));
            if (early && !(next && same_chain(problem, window, next)))
                select_source(out, to, 1, MUX_NEUTRAL);
            continue;
        }
        bool abuts = last && !last->paired && last->end == window->start;
        if (!abuts || window_source(problem, last) != source)
            select_source(out, from, 0, source);
        if (!next || next->paired || next->start != window->end)
            select_source(out, to, 0, MUX_NEUTRAL);
    }
}

/* ---- pointers and formats ---- */

static bool continues(const Problem *problem, const TileWindow *last, const TileWindow *window)
{
    const Endpoint *a = problem_receiver(problem, last->end_number);
    const Endpoint *b = problem_receiver(problem, window->end_number);
    uint32_t words = problem->messages[problem->ends[last->end_number].message].words;
    bool alike = last->paired == window->paired;
    if (alike && window->paired)
        alike = same_chain(problem, last, window);
    return alike && a->at.buffer == b->at.buffer && a->at.offset + 4 * words == b->at.offset;
}

static bool select_at(const TileEvents *events, size_t selects, int32_t event)
{
    size_t low = 0, high = selects;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (events->controls.items[middle].event < event)
            low = middle + 1;
        else
            high = middle;
    }
    return low < selects && events->controls.items[low].event == event;
}

static void write_format(TileEvents *out, int32_t event, uint32_t format)
{
    array_push(&out->pointers,
               (TileControl){.event = event, .stream = 0, .selector = 1, .value = format});
}

static void move_pointer(TileEvents *out, int32_t event, size_t window)
{
    array_push(&out->pointers,
               (TileControl){.event = event, .stream = 0, .value = (uint32_t)window});
}

/* A tile that receives 64-bit items keeps every control for itself: a pointer may come early. */
static bool collect_pointers(const Problem *problem, uint32_t tile, TileEvents *out,
                             uint32_t *coincides)
{
    size_t selects = out->controls.count;
    int32_t lower = 1;
    for (size_t i = 0; i < out->windows.count; lower = out->windows.items[i++].end) {
        const TileWindow *window = &out->windows.items[i];
        bool moves = i == 0 || !continues(problem, window - 1, window);
        int32_t event = window->start;
        *coincides = problem->ends[window->end_number].message;
        if (window->paired) {
            int32_t on = event - (PAIRED_WRITE_LAG - FORMAT_LAG);
            int32_t off = window->end - (PAIRED_WRITE_LAG - FORMAT_LAG);
            bool first = i == 0 || !same_chain(problem, window - 1, window);
            bool last = i + 1 == out->windows.count || !same_chain(problem, window, window + 1);
            if ((first && select_at(out, selects, on)) ||
                (moves && select_at(out, selects, event)) || (last && select_at(out, selects, off)))
                return false;
            if (first)
                write_format(
                    out, on,
                    target_direction(window_source(problem, window), target_physical(tile)));
            if (moves)
                move_pointer(out, event, i);
            if (last)
                write_format(out, off, 0);
            continue;
        }
        if (!moves)
            continue;
        if (out->has_pairs) {
            while (event > lower && select_at(out, selects, event))
                event--;
            if (select_at(out, selects, event))
                return false;
        }
        move_pointer(out, event, i);
    }
    return true;
}

/* Pointers and selects are ascending each: merge, pointers first where events are equal. */
static void merge_controls(TileEvents *out)
{
    size_t selects = out->controls.count, pointers = out->pointers.count;
    size_t to = selects + pointers;
    array_resize(&out->controls, to);
    TileControl *all = out->controls.items;
    while (pointers) {
        const TileControl *pointer = &out->pointers.items[pointers - 1];
        if (selects && all[selects - 1].event >= pointer->event) {
            all[--to] = all[selects - 1];
            selects--;
        } else {
            all[--to] = *pointer;
            pointers--;
        }
    }
}

bool events_collect(const Problem *problem, const int32_t *start, uint32_t tile,
                    uint32_t tile_horizon, TileEvents *out, uint32_t *coincides)
{
    out->tile = tile;
    out->horizon = (int32_t)tile_horizon;
    out->controls.count = out->pointers.count = 0;
    collect_sends(problem, start, tile, out);
    collect_windows(problem, start, tile, out);
    out->has_pairs = false;
    for (size_t i = 0; i < out->windows.count; i++)
        out->has_pairs |= out->windows.items[i].paired;
    collect_selects(problem, tile, out);
    if (!collect_pointers(problem, tile, out, coincides))
        return false;
    merge_controls(out);
    return true;
}
