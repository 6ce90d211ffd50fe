/* fabric.c - who heard what: from recorded sends and controls to captured stretches and their
 * writes.
 *
 * The one idea: nothing is replayed word by word. A tile's source selects cut time into intervals;
 * an interval and the selected tile's stretches of sent items intersect in captured stretches; the
 * pointer writes cut those into pieces that are contiguous in time and in memory; a piece is one
 * memcpy. The rules are those of exchange.md 3.4 (32-bit) and 3.10 with timing.md 2 (64-bit):
 *
 *   item sent in slot t by s passes the mux of d in slot  x = t + T(s, d) + 1
 *   it is written in slot                                 y = x + 52 + 2 row   (64-bit: one later)
 *   a format is looked at in event                        x + 51 + 2 row
 *   select or pointer written at event e                  holds for slots >= e
 *
 * with T and x of the pair's early member for 64-bit items. Tiles are independent until the copy,
 * so every pass runs over the tiles in parallel. */
#include "sim/fabric_internal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { LAG = 52, LAG_PAIRED = 53, LAG_FORMAT = 51 };
#define BEFORE_ALL 0
#define AFTER_ALL UINT64_MAX

PRINTF_LIKE(5, 6)
static void fault_at(FabricWork *work, uint32_t type, uint64_t cycle, uint32_t pc,
                     const char *format, ...)
{
    SimFault *fault = &work->fault;
    if (fault->set && fault->cycle <= cycle)
        return;
    *fault = (SimFault){.set = true, .tile = work->tile, .pc = pc, .type = type, .cycle = cycle};
    va_list list;
    va_start(list, format);
    vsnprintf(fault->message, sizeof fault->message, format, list);
    va_end(list);
}

/* ---- pass 1: what a tile sends ---- */

static uint32_t item_bytes(const FabricSend *send)
{
    return send->sctl & 4 ? 8 : 4;
}

static bool continues(const FabricSend *last, const FabricSend *next)
{
    return last->sctl == next->sctl && last->cycle + last->items == next->cycle &&
           last->address + last->items * item_bytes(last) == next->address;
}

static bool in_sram(uint32_t address, uint64_t bytes)
{
    return address >= SRAM_BASE && address + bytes <= SRAM_END;
}

static void join_sends(FabricWork *work, const FabricTile *tile)
{
    work->sends.count = 0;
    work->words_sent = 0;
    for (size_t i = 0; i < tile->sends.count; i++) {
        const FabricSend *send = &tile->sends.items[i];
        if (send->items == 0 || (send->sctl & 3) == 0)
            continue;
        if (!in_sram(send->address, (uint64_t)send->items * item_bytes(send)) ||
            send->address % item_bytes(send)) {
            fault_at(work, EXCEPTION_INVALID_ADDR, send->cycle, tile->row_first,
                     "sends %u items of %u bytes from 0x%x", send->items, item_bytes(send),
                     send->address);
            continue;
        }
        work->words_sent += (uint64_t)send->items * item_bytes(send) / 4;
        FabricSend *last = work->sends.count ? &work->sends.items[work->sends.count - 1] : NULL;
        if (last && continues(last, send))
            last->items += send->items;
        else
            array_push(&work->sends, *send);
    }
}

/* ---- pass 2: is every control legal by itself ---- */

static bool is_pointer(const FabricControl *control)
{
    return control->stream == 0 && control->selector == 0;
}

static bool is_format(const FabricControl *control)
{
    return control->stream == 0 && control->selector == 1;
}

/* The last value that controls of one kind wrote at or before an event. */
static uint32_t value_at(const FabricTile *tile, uint8_t stream, uint8_t selector, uint32_t initial,
                         uint64_t event)
{
    uint32_t value = initial;
    for (size_t i = 0; i < tile->controls.count && tile->controls.items[i].cycle <= event; i++) {
        const FabricControl *control = &tile->controls.items[i];
        if (control->stream == stream && control->selector == selector)
            value = control->value;
    }
    return value;
}

static void check_controls(FabricWork *work, const FabricTile *tile)
{
    uint32_t format = tile->format;
    for (size_t i = 0; i < tile->controls.count; i++) {
        const FabricControl *a = &tile->controls.items[i];
        if (is_format(a))
            format = a->value;
        if (is_format(a) && a->value > 2)
            fault_at(work, EXCEPTION_EXCONF, a->cycle, a->pc, "item format %u", a->value);
        if (i + 1 == tile->controls.count)
            break;
        const FabricControl *b = &tile->controls.items[i + 1];
        if (b->cycle < a->cycle)
            fault_at(work, 0, a->cycle, b->pc, "recorded controls are out of order");
        if (b->cycle != a->cycle)
            continue;
        if (a->stream == b->stream)
            fault_at(work, EXCEPTION_EXCONF, a->cycle, b->pc, "two %s controls at one event",
                     a->stream ? "source" : "pointer");
        else if (a->selector || b->selector || format)
            fault_at(work, EXCEPTION_EXCONF, a->cycle, b->pc,
                     "a control of a 64-bit receive coincides with another control");
    }
    uint32_t last_pc =
        tile->controls.count ? tile->controls.items[tile->controls.count - 1].pc : tile->row_first;
    uint32_t mux = value_at(tile, 1, 0, tile->mux, AFTER_ALL);
    uint32_t mux_pair = value_at(tile, 1, 1, tile->mux_pair, AFTER_ALL);
    if (mux < TILES || mux_pair < TILES)
        fault_at(work, 0, tile->row_end, last_pc, "the row ends with source %u still selected",
                 mux < TILES ? mux : mux_pair);
    if (format)
        fault_at(work, 0, tile->row_end, last_pc, "the row ends with item format %u", format);
}

/* ---- pass 3: captures ---- */

typedef struct Listener {      /* the mux that decides what a tile takes */
    uint32_t receiver, member; /* member: the tile whose selects govern (64-bit: the early one) */
    uint32_t source;
    uint64_t from, to; /* the select holds in slots [from, to) */
    uint32_t pc;
    bool wide, selected; /* selected: by a control of this phase */
} Listener;

/* Index of the first stretch that ends after `slot`. */
static size_t first_stretch(const FabricWork *source, int64_t slot)
{
    size_t low = 0, high = source->sends.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const FabricSend *send = &source->sends.items[middle];
        if ((int64_t)(send->cycle + send->items) <= slot)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void capture(FabricRun *run, FabricWork *work, const Listener *listener)
{
    uint32_t s = listener->source, d = listener->receiver;
    if (s >= run->count || s == listener->member) {
        if (listener->selected)
            fault_at(work, EXCEPTION_EXCONF, listener->from, listener->pc,
                     "selects source %u, from which nothing can come", s);
        return;
    }
    uint32_t direction = target_direction(s, listener->member);
    if (listener->wide && (target_early_member(s, d) != listener->member || (s | 2) == (d | 2))) {
        fault_at(work, EXCEPTION_EXCONF, listener->from, listener->pc,
                 "selects source %u for 64-bit items on the wrong member of the pair", s);
        return;
    }
    int64_t delay = target_route_time(s, listener->member) + 1; /* sent slot to mux slot */
    int64_t lag = (listener->wide ? LAG_PAIRED : LAG) + 2 * target_row(d);
    int64_t from = (int64_t)listener->from - delay;
    int64_t to = listener->to == AFTER_ALL ? INT64_MAX : (int64_t)listener->to - delay;
    const FabricWork *source = &run->work[s];
    bool caught = false;
    for (size_t i = first_stretch(source, from); i < source->sends.count; i++) {
        const FabricSend *send = &source->sends.items[i];
        int64_t begin = (int64_t)send->cycle, end = begin + send->items;
        if (begin >= to)
            break;
        if (!(send->sctl & direction))
            continue;
        bool wide = (send->sctl & 4) != 0;
        if (wide != listener->wide) {
            fault_at(work, EXCEPTION_EXCONF, listener->from, listener->pc,
                     "a %u-bit select meets %u-bit items of tile %u", listener->wide ? 64 : 32,
                     wide ? 64 : 32, s);
            return;
        }
        int64_t first = begin > from ? begin : from, last = end < to ? end : to;
        caught = true;
        array_push(
            &work->arrivals,
            (FabricPiece){.write_slot = (uint64_t)(first + delay + lag),
                          .read_slot = (uint64_t)first,
                          .source = s,
                          .from = send->address + (uint32_t)(first - begin) * item_bytes(send),
                          .items = (uint32_t)(last - first),
                          .wide = wide});
    }
    if (!caught && listener->selected)
        fault_at(work, 0, listener->from, listener->pc, "selects source %u and catches no word", s);
}

/* Walks the selects of one mux of `member` and captures for `work->tile`. */
static void listen(FabricRun *run, FabricWork *work, uint32_t member, bool wide)
{
    const FabricTile *tile = &run->tiles[member];
    uint32_t flip = wide ? member & 2 : 0; /* paired selects hold sender XOR 2 * own lane */
    uint32_t value = wide ? tile->mux_pair : tile->mux;
    Listener listener = {.receiver = work->tile,
                         .member = member,
                         .wide = wide,
                         .from = BEFORE_ALL,
                         .pc = tile->row_first};
    for (size_t i = 0; i <= tile->controls.count; i++) {
        const FabricControl *control = i < tile->controls.count ? &tile->controls.items[i] : NULL;
        if (control && (control->stream != 1 || control->selector != wide))
            continue;
        listener.to = control ? control->cycle : AFTER_ALL;
        bool repeated = control && control->value == value; /* same source again: one interval */
        if (repeated)
            continue;
        bool neutral = value == MUX_NEUTRAL || (!listener.selected && value >= TILES);
        if (!neutral && listener.to > listener.from) {
            listener.source = value < TILES ? value ^ flip : value;
            capture(run, work, &listener);
        }
        if (control) {
            value = control->value;
            listener.from = control->cycle;
            listener.pc = control->pc;
            listener.selected = true;
        }
    }
}

static int by_write_slot(const void *a, const void *b)
{
    const FabricPiece *p = a, *q = b;
    return p->write_slot < q->write_slot ? -1 : p->write_slot > q->write_slot;
}

/* Formats hold from their event on; a stretch must find the wanted one for all its items. */
static void check_format(FabricWork *work, const FabricTile *tile, const FabricPiece *piece,
                         uint32_t wanted)
{
    uint64_t first = piece->write_slot - (piece->wide ? LAG_PAIRED - LAG_FORMAT : LAG - LAG_FORMAT);
    uint32_t format = tile->format;
    for (size_t i = 0; i < tile->controls.count; i++) {
        const FabricControl *control = &tile->controls.items[i];
        if (!is_format(control))
            continue;
        if (control->cycle >= first + piece->items)
            break;
        if (control->cycle > first && format != wanted)
            break;
        format = control->value;
        if (control->cycle > first && format != wanted)
            break;
    }
    if (format != wanted)
        fault_at(work, EXCEPTION_EXCONF, piece->write_slot, tile->row_first,
                 "items of tile %u arrive in format %u instead of %u", piece->source, format,
                 wanted);
}

/* ---- pass 4: pointer timeline: arrivals become pieces with addresses ---- */

static void put_piece(FabricWork *work, const FabricTile *tile, FabricPiece piece,
                      uint32_t *pointer, bool pointed)
{
    uint32_t bytes = piece.items * (piece.wide ? 8 : 4);
    if (!pointed) {
        fault_at(work, EXCEPTION_EXERR, piece.write_slot, tile->row_first,
                 "a word of tile %u arrives before any pointer was written (MODI)", piece.source);
        return;
    }
    if (!in_sram(*pointer, bytes) || (piece.wide && *pointer % 8)) {
        fault_at(work, EXCEPTION_EXERR, piece.write_slot, tile->row_first,
                 "%u items of tile %u would be written at 0x%x (ADDR)", piece.items, piece.source,
                 *pointer);
        return;
    }
    if (piece.write_slot + piece.items > tile->row_end)
        fault_at(work, EXCEPTION_EXERR, tile->row_end, tile->row_last,
                 "words of tile %u are written after the end of the row (CLASH_INSTR)",
                 piece.source);
    piece.to = *pointer;
    *pointer += bytes;
    work->words_received += bytes / 4;
    array_push(&work->pieces, piece);
}

static FabricPiece split_piece(FabricPiece *piece, uint32_t items)
{
    FabricPiece head = *piece;
    head.items = items;
    piece->from += items * (piece->wide ? 8 : 4);
    piece->items -= items;
    piece->write_slot += items;
    piece->read_slot += items;
    return head;
}

static void apply_pointers(FabricWork *work, const FabricTile *tile)
{
    uint32_t pointer = tile->pointer;
    bool pointed = false;
    size_t next = 0;
    for (size_t i = 0; i < work->arrivals.count; i++) {
        FabricPiece piece = work->arrivals.items[i];
        if (i && piece.write_slot <
                     work->arrivals.items[i - 1].write_slot + work->arrivals.items[i - 1].items)
            fault_at(work, EXCEPTION_EXCONF, piece.write_slot, tile->row_first,
                     "words of tiles %u and %u arrive at once", piece.source,
                     work->arrivals.items[i - 1].source);
        for (; next < tile->controls.count; next++) {
            const FabricControl *control = &tile->controls.items[next];
            if (!is_pointer(control))
                continue;
            if (control->cycle >= piece.write_slot + piece.items)
                break;
            if (control->cycle > piece.write_slot)
                put_piece(work, tile,
                          split_piece(&piece, (uint32_t)(control->cycle - piece.write_slot)),
                          &pointer, pointed);
            pointer = tile->incoming_base + 4 * control->value;
            pointed = true;
        }
        put_piece(work, tile, piece, &pointer, pointed);
    }
    for (; next < tile->controls.count; next++)
        if (is_pointer(&tile->controls.items[next]))
            pointer = tile->incoming_base + 4 * tile->controls.items[next].value;
    work->pointer = pointer;
}

static void receive(FabricRun *run, FabricWork *work)
{
    const FabricTile *tile = &run->tiles[work->tile];
    uint32_t partner = target_partner(work->tile);
    work->arrivals.count = work->pieces.count = 0;
    work->words_received = 0;
    listen(run, work, work->tile, false);
    size_t narrow = work->arrivals.count;
    listen(run, work, work->tile, true);
    if (partner < run->count && run->tiles[partner].controls.count)
        listen(run, work, partner, true);
    if (work->arrivals.count > narrow)
        qsort(work->arrivals.items, work->arrivals.count, sizeof *work->arrivals.items,
              by_write_slot);
    for (size_t i = 0; i < work->arrivals.count; i++) {
        const FabricPiece *piece = &work->arrivals.items[i];
        if (piece->wide || work->uses_format)
            check_format(work, tile, piece,
                         piece->wide ? target_direction(piece->source, work->tile) : 0);
    }
    apply_pointers(work, tile);
}

/* ---- pass 5: memory elements, partners ---- */

/* Bit set of the elements that a range touches: 32 of region 0, then those of region 1. */
static uint64_t elements(uint32_t address, uint32_t bytes)
{
    uint32_t first = target_element(address), last = target_element(address + bytes - 1);
    first = first < 1024 ? first : first - 1024 + 32;
    last = last < 1024 ? last : last - 1024 + 32;
    return (~0ull >> (63 - (last - first))) << first;
}

static void check_overlap(FabricWork *work, const FabricSend *send, const FabricPiece *piece)
{
    uint64_t from = send->cycle > piece->write_slot ? send->cycle : piece->write_slot;
    uint64_t send_end = send->cycle + send->items, write_end = piece->write_slot + piece->items;
    uint64_t to = send_end < write_end ? send_end : write_end;
    if (from >= to)
        return;
    uint32_t items = (uint32_t)(to - from), width = piece->wide ? 8 : 4;
    uint32_t read = send->address + (uint32_t)(from - send->cycle) * item_bytes(send);
    uint32_t write = piece->to + (uint32_t)(from - piece->write_slot) * width;
    if (elements(read, items * item_bytes(send)) & elements(write, items * width))
        fault_at(work, EXCEPTION_EXERR, from, work->pc,
                 "sends from 0x%x while words of tile %u are written at 0x%x: same memory element "
                 "(CLASH_INSTR)",
                 read, piece->source, write);
}

static void check_elements(FabricRun *run, FabricWork *work)
{
    const FabricTile *tile = &run->tiles[work->tile];
    uint64_t fetched = 0, sent = 0, written = 0;
    if (tile->row_last >= tile->row_first && tile->row_first >= SRAM_BASE)
        fetched = elements(tile->row_first, tile->row_last - tile->row_first + FETCH_GUARD_BYTES);
    for (size_t i = 0; i < work->sends.count; i++) {
        const FabricSend *send = &work->sends.items[i];
        uint64_t touched = elements(send->address, send->items * item_bytes(send));
        sent |= touched;
        if (touched & fetched)
            fault_at(work, EXCEPTION_CONFLICT, send->cycle, tile->row_first,
                     "sends from 0x%x, in a memory element from which the row is fetched",
                     send->address);
    }
    size_t first = 0;
    for (size_t i = 0; i < work->pieces.count; i++) {
        const FabricPiece *piece = &work->pieces.items[i];
        uint64_t touched = elements(piece->to, piece->items * (piece->wide ? 8 : 4));
        written |= touched;
        if (touched & fetched)
            fault_at(work, EXCEPTION_EXERR, piece->write_slot, tile->row_first,
                     "words of tile %u are written at 0x%x, in a memory element from which the row "
                     "is fetched (CLASH_IFETCH)",
                     piece->source, piece->to);
        while (first < work->sends.count &&
               work->sends.items[first].cycle + work->sends.items[first].items <= piece->write_slot)
            first++;
        for (size_t k = first; k < work->sends.count; k++) {
            if (work->sends.items[k].cycle >= piece->write_slot + piece->items)
                break;
            check_overlap(work, &work->sends.items[k], piece);
        }
    }
    work->shares_element = (sent & written) != 0;
}

/* A 64-bit send uses the partner's half of the exchange too: the partner is out of it. */
static void check_partner(FabricRun *run, FabricWork *work)
{
    uint32_t partner = target_partner(work->tile);
    if (partner >= run->count)
        return;
    const FabricWork *other = &run->work[partner];
    for (size_t i = 0; i < work->sends.count; i++) {
        const FabricSend *send = &work->sends.items[i];
        if (!(send->sctl & 4))
            continue;
        uint64_t end = send->cycle + send->items;
        size_t k = first_stretch(other, (int64_t)send->cycle);
        if (k < other->sends.count && other->sends.items[k].cycle < end)
            fault_at(work, EXCEPTION_EXCONF, send->cycle, run->tiles[work->tile].row_first,
                     "sends 64-bit items while its partner, tile %u, sends", partner);
        for (size_t j = 0; j < other->pieces.count; j++) {
            const FabricPiece *piece = &other->pieces.items[j];
            if (piece->write_slot < end && piece->write_slot + piece->items > send->cycle)
                fault_at(work, EXCEPTION_EXCONF, send->cycle, run->tiles[work->tile].row_first,
                         "sends 64-bit items while its partner, tile %u, receives", partner);
        }
    }
}

/* ---- the passes over all tiles ---- */

static void prepare_tile(void *context, size_t index, unsigned worker)
{
    (void)worker;
    FabricRun *run = context;
    FabricWork *work = &run->work[index];
    const FabricTile *tile = &run->tiles[index];
    work->tile = (uint32_t)index;
    work->pc = tile->row_first;
    work->uses_format = tile->format != 0;
    for (size_t i = 0; i < tile->controls.count && !work->uses_format; i++)
        work->uses_format = is_format(&tile->controls.items[i]);
    join_sends(work, tile);
    if (tile->active || tile->controls.count)
        check_controls(work, tile);
}

static void receive_tile(void *context, size_t index, unsigned worker)
{
    (void)worker;
    FabricRun *run = context;
    receive(run, &run->work[index]);
    check_elements(run, &run->work[index]);
    fabric_find_forwarding(run, &run->work[index]);
}

static void check_partner_tile(void *context, size_t index, unsigned worker)
{
    (void)worker;
    FabricRun *run = context;
    check_partner(run, &run->work[index]);
}

static void deliver_tile(void *context, size_t index, unsigned worker)
{
    (void)worker;
    FabricRun *run = context;
    FabricWork *work = &run->work[index];
    FabricTile *tile = &run->tiles[index];
    for (size_t i = 0; i < work->pieces.count; i++) {
        const FabricPiece *piece = &work->pieces.items[i];
        if (fabric_is_ordered(run, work, piece))
            continue;
        memcpy(tile->memory + (piece->to - SRAM_BASE),
               run->tiles[piece->source].memory + (piece->from - SRAM_BASE),
               (size_t)piece->items * (piece->wide ? 8 : 4));
        if (run->verify)
            fabric_copy_defined(tile, &run->tiles[piece->source], piece);
    }
}

/* Control registers keep what the row left in them. */
static void keep_registers(FabricRun *run)
{
    for (uint32_t i = 0; i < run->count; i++) {
        FabricTile *tile = &run->tiles[i];
        FabricWork *work = &run->work[i];
        tile->words_sent = work->words_sent;
        tile->words_received = work->words_received;
        for (size_t c = 0; c < tile->controls.count; c++) {
            const FabricControl *control = &tile->controls.items[c];
            if (control->stream)
                *(control->selector ? &tile->mux_pair : &tile->mux) = control->value;
            else if (control->selector)
                tile->format = control->value;
        }
        tile->pointer = work->pointer;
    }
}

static bool first_fault(const FabricRun *run, SimFault *fault)
{
    const FabricWork *found = NULL;
    for (uint32_t i = 0; i < run->count; i++) {
        const FabricWork *work = &run->work[i];
        if (work->fault.set && (!found || work->fault.cycle < found->fault.cycle))
            found = work;
    }
    if (found)
        *fault = found->fault;
    return found != NULL;
}

static void release_work(FabricRun *run)
{
    for (uint32_t i = 0; i < run->count; i++) {
        array_free(&run->work[i].sends);
        array_free(&run->work[i].arrivals);
        array_free(&run->work[i].pieces);
    }
    free(run->work);
}

bool fabric_deliver(FabricTile *tiles, uint32_t count, bool verify, Pool *pool, SimFault *fault)
{
    FabricRun run = {
        .tiles = tiles, .count = count, .verify = verify, .work = xcalloc(count, sizeof *run.work)};
    parallel_for(pool, count, prepare_tile, &run);
    bool good = !first_fault(&run, fault); /* what a tile does wrong alone, not what follows */
    if (good) {
        parallel_for(pool, count, receive_tile, &run);
        parallel_for(pool, count, check_partner_tile, &run);
        good = !first_fault(&run, fault);
    }
    if (good) {
        parallel_for(pool, count, deliver_tile, &run);
        fabric_deliver_ordered(&run);
        keep_registers(&run);
    }
    release_work(&run);
    return good;
}
