/* row.c - the instructions of one tile's row.
 *
 * Controls and the starts and ends of messages cut a row into pieces. A piece has a head, the
 * instruction that does what happens there, and filler: waits while idle, sendoff while sending.
 *
 *   idle, one control at event t      filler ... delaypic or delayxpic ending at t
 *   idle, both at t                   sendpicp without direction from t - 1 on, filler
 *   first item of a message           send, filler
 *   one control within a message      sendpic from t - 1 on, filler
 *   both within a message, or any     sendpicp from t - 1 on, filler
 *   at its first item
 *
 * sendpicp has two words and must begin at an even one. A piece of two events and more can have
 * either parity (its filler can be split), and any single control can be written as a sendpicp
 * whose other half writes what the register holds anyway. With that every set of controls with at
 * most one of each stream at an event can be encoded: from an even word on, take the two-word form
 * always. Which pieces to lengthen is a shortest path over (piece, parity). */
#include "exchange/internal.h"

#include <stdlib.h>

typedef enum PieceKind {
    PIECE_FILL,      /* idle, nothing happens */
    PIECE_WAIT,      /* idle, one control at the end */
    PIECE_IDLE_BOTH, /* idle, two controls at the start */
    PIECE_SEND,      /* first items of a message, no control */
    PIECE_SEND_ONE,  /* one control with the first item of the piece */
    PIECE_SEND_BOTH  /* two, or one with the first item of the message */
} PieceKind;

typedef struct Piece {
    int32_t start, length; /* events */
    uint32_t send;         /* number of the send */
    uint32_t control;      /* number of the first control */
    uint8_t controls, kind;
    /* chosen: */
    uint16_t fill; /* instructions of filler */
    bool both;     /* written as a sendpicp */
} Piece;

typedef struct Leave { /* best way to leave a piece with some parity */
    uint32_t cost;
    uint16_t fill;
    uint8_t both, from; /* from: parity before */
} Leave;

struct RowWriter {
    ARRAY(Piece) pieces;
    ARRAY(Leave) steps; /* [2 * piece + parity] */
};

RowWriter *row_open(void)
{
    return xcalloc(1, sizeof(RowWriter));
}

void row_close(RowWriter *writer)
{
    array_free(&writer->pieces);
    array_free(&writer->steps);
    free(writer);
}

/* ---- pieces ---- */

typedef struct Cut { /* where the cutting has got to */
    RowWriter *writer;
    const TileEvents *events;
    uint32_t control;
} Cut;

/* A control at event t belongs to slot t - 1: the last of a wait, the first of a merged send. */
static int32_t control_slot(const Cut *cut)
{
    return cut->control < cut->events->controls.count
               ? cut->events->controls.items[cut->control].event - 1
               : INT32_MAX;
}

static uint8_t take_controls(Cut *cut)
{
    int32_t slot = control_slot(cut);
    uint8_t count = 0;
    for (; control_slot(cut) == slot; cut->control++)
        count++;
    return count;
}

static Piece *add_piece(Cut *cut, PieceKind kind, int32_t start, int32_t end)
{
    array_push(&cut->writer->pieces,
               (Piece){.start = start, .length = end - start, .kind = (uint8_t)kind});
    return &cut->writer->pieces.items[cut->writer->pieces.count - 1];
}

static void cut_idle(Cut *cut, int32_t start, int32_t end)
{
    while (control_slot(cut) < end) {
        uint32_t first = cut->control;
        int32_t slot = control_slot(cut);
        uint8_t count = take_controls(cut);
        Piece *piece;
        if (count == 1) {
            piece = add_piece(cut, PIECE_WAIT, start, slot + 1);
            start = slot + 1;
        } else {
            if (slot > start)
                add_piece(cut, PIECE_FILL, start, slot);
            int32_t next = control_slot(cut), stop = next < end ? next : end;
            bool wait_follows =
                next < end && (cut->control + 1 == cut->events->controls.count ||
                               cut->events->controls.items[cut->control + 1].event != next + 1);
            if (wait_follows && stop > slot + SEND_MAX)
                stop = slot + SEND_MAX; /* the next wait takes the rest in one instruction */
            piece = add_piece(cut, PIECE_IDLE_BOTH, slot, stop);
            start = stop;
        }
        piece->control = first;
        piece->controls = count;
    }
    if (start < end)
        add_piece(cut, PIECE_FILL, start, end);
}

static void cut_send(Cut *cut, uint32_t number)
{
    const TileSend *send = &cut->events->sends.items[number];
    int32_t end = send->start + (int32_t)send->items;
    for (int32_t at = send->start; at < end;) {
        uint32_t first = cut->control;
        uint8_t count = control_slot(cut) == at ? take_controls(cut) : 0;
        int32_t next = control_slot(cut), stop = next < end ? next : end;
        PieceKind kind = count == 0                       ? PIECE_SEND
                         : count == 1 && at > send->start ? PIECE_SEND_ONE
                                                          : PIECE_SEND_BOTH;
        Piece *piece = add_piece(cut, kind, at, stop);
        piece->send = number;
        piece->control = first;
        piece->controls = count;
        at = stop;
    }
}

static void cut_row(RowWriter *writer, const TileEvents *events)
{
    Cut cut = {.writer = writer, .events = events};
    int32_t at = 0;
    writer->pieces.count = 0;
    for (uint32_t i = 0; i < events->sends.count; i++) {
        const TileSend *send = &events->sends.items[i];
        cut_idle(&cut, at, send->start);
        cut_send(&cut, i);
        at = send->start + (int32_t)send->items;
    }
    cut_idle(&cut, at, events->horizon);
}

/* ---- the choice ---- */

static int32_t wait_max(const TileEvents *events, const Piece *piece)
{
    return events->controls.items[piece->control].stream ? WAIT_XPIC_MAX : WAIT_PIC_MAX;
}

static int32_t least_fill(int32_t length, int32_t head, int32_t each)
{
    return length > head ? (length - head + each - 1) / each : 0;
}

/* The least filler of a piece whose head covers at most `head` events. */
static int32_t least_fill_of(const TileEvents *events, const Piece *piece, bool both)
{
    switch ((PieceKind)piece->kind) {
    case PIECE_FILL:
        return least_fill(piece->length, both ? SEND_MAX : 0, DELAY_MAX);
    case PIECE_WAIT:
        return least_fill(piece->length, both ? 1 : wait_max(events, piece), DELAY_MAX);
    case PIECE_IDLE_BOTH:
        return least_fill(piece->length, SEND_MAX, DELAY_MAX);
    default:
        return least_fill(piece->length, SEND_MAX, SENDOFF_MAX);
    }
}

static bool must_be_both(const Piece *piece)
{
    return piece->kind == PIECE_IDLE_BOTH || piece->kind == PIECE_SEND_BOTH;
}

/* A control may be doubled by one that changes nothing, away from 64-bit receives: there two
 * controls at one event are a fault. */
static bool may_be_both(const TileEvents *events, const Piece *piece)
{
    if (events->windows.count == 0)
        return false;
    int32_t event = piece->kind == PIECE_WAIT ? piece->start + piece->length : piece->start + 1;
    if (!events->has_pairs)
        return true;
    for (size_t i = 0; i < events->windows.count; i++) {
        const TileWindow *window = &events->windows.items[i];
        if (window->paired && event >= window->start - window->lag && event <= window->end)
            return false;
    }
    return true;
}

static void offer(Leave *to, const Leave *before, uint32_t parity, uint32_t words, int32_t fill,
                  bool both, bool doubled)
{
    Leave *step = &to[(parity + words) & 1];
    uint32_t cost = before[parity].cost + 16 * words + doubled;
    if (cost < step->cost)
        *step = (Leave){cost, (uint16_t)fill, both, (uint8_t)parity};
}

enum { NO_WAY = 1u << 30 };

static uint32_t head_words(const Piece *piece, bool both)
{
    return both ? 2 : piece->kind == PIECE_FILL ? 0 : 1;
}

static void choose(const TileEvents *events, const Piece *piece, const Leave *before, Leave *to)
{
    to[0].cost = to[1].cost = NO_WAY;
    bool forced = must_be_both(piece);
    bool allowed = !forced || piece->controls == 2 || may_be_both(events, piece);
    for (uint32_t parity = 0; parity < 2; parity++) {
        if (before[parity].cost >= NO_WAY)
            continue;
        for (int both = forced; both <= 1; both++) {
            if (both && (forced ? !allowed : !may_be_both(events, piece)))
                continue;
            uint32_t head = head_words(piece, both);
            int32_t least = least_fill_of(events, piece, both);
            int32_t most = piece->length - (head != 0); /* every instruction lasts */
            for (int32_t fill = least; fill <= least + 1 && fill <= most; fill++) {
                uint32_t lead = piece->kind == PIECE_WAIT ? (uint32_t)fill : 0;
                if (both && (parity + lead) % 2)
                    continue;
                offer(to, before, parity, head + (uint32_t)fill, fill, both,
                      both && piece->controls < 2);
            }
        }
    }
}

uint32_t row_lay_out(RowWriter *writer, const TileEvents *events)
{
    cut_row(writer, events);
    size_t count = writer->pieces.count;
    array_resize(&writer->steps, 2 * (count + 1));
    Leave *steps = writer->steps.items;
    steps[0] = (Leave){0};
    steps[1] = (Leave){.cost = NO_WAY};
    for (size_t i = 0; i < count; i++)
        choose(events, &writer->pieces.items[i], &steps[2 * i], &steps[2 * i + 2]);
    const Leave *last = &steps[2 * count];
    uint32_t parity = last[1].cost < last[0].cost;
    if (last[parity].cost >= NO_WAY)
        return 0;
    uint32_t words = 0;
    for (size_t i = count; i-- > 0;) {
        const Leave *step = &steps[2 * i + 2 + parity];
        Piece *piece = &writer->pieces.items[i];
        piece->fill = step->fill;
        piece->both = step->both;
        words += step->fill + head_words(piece, piece->both);
        parity = step->from;
    }
    return words + 1;
}

/* ---- words ---- */

typedef struct Emit {
    const TileEvents *events;
    const uint32_t *source_item, *pointer;
    uint32_t *words;
    uint32_t source; /* selected now */
    size_t window;   /* first that has not begun */
    size_t pointed;  /* 1 + window of the last pointer control */
} Emit;

static void put(Emit *emit, uint32_t word)
{
    *emit->words++ = word;
}

/* `count` waits that last `length` events together. */
static void put_delays(Emit *emit, int32_t length, int32_t count)
{
    for (; count > 0; count--) {
        int32_t most = length - (count - 1), lasts = most < DELAY_MAX ? most : DELAY_MAX;
        put(emit, isa_word(FORM_delay, lasts));
        length -= lasts;
    }
}

static void put_sendoffs(Emit *emit, int32_t length, int32_t count, int32_t sctl)
{
    for (; count > 0; count--) {
        int32_t most = length - (count - 1), lasts = most < SENDOFF_MAX ? most : SENDOFF_MAX;
        put(emit, isa_word(FORM_sendoff, lasts, 0, sctl));
        length -= lasts;
    }
}

/* What the pointer register holds when slot `event` writes: words past the current window's begin.
 */
static uint32_t pointer_now(Emit *emit, int32_t event)
{
    const TileEvents *events = emit->events;
    while (emit->window < events->windows.count &&
           events->windows.items[emit->window].start <= event)
        emit->window++;
    if (emit->pointed > emit->window)
        return emit->pointer[emit->pointed - 1]; /* written early for what comes next */
    if (emit->window == 0)
        return emit->pointer[0]; /* nothing has come yet */
    const TileWindow *window = &events->windows.items[emit->window - 1];
    int32_t at = event < window->end ? event : window->end;
    return emit->pointer[emit->window - 1] +
           (uint32_t)(at - window->start) * (window->paired ? 2 : 1);
}

static uint32_t pic_value(Emit *emit, const TileControl *control)
{
    if (control->selector)
        return control->value;
    emit->pointed = control->value + 1;
    return emit->pointer[control->value];
}

/* sendpicp: both controls, those of the piece and for the other stream what it holds. */
static void put_both(Emit *emit, const Piece *piece, int32_t event, int32_t items, uint32_t address,
                     int32_t sctl)
{
    uint32_t pic_selector = 0, source_selector = 0;
    uint32_t pic = pointer_now(emit, event), source = emit->source;
    for (uint32_t i = 0; i < piece->controls; i++) {
        const TileControl *control = &emit->events->controls.items[piece->control + i];
        if (control->stream) {
            source = control->value;
            source_selector = control->selector;
        } else {
            pic = pic_value(emit, control);
            pic_selector = control->selector;
        }
    }
    put(emit, isa_word(FORM_sendpicp, items, (int32_t)address, sctl, (int32_t)pic_selector));
    put(emit, source_selector << 31 | source << 18 | pic);
    if (source_selector == 0)
        emit->source = source;
}

static void put_wait(Emit *emit, const Piece *piece)
{
    int32_t event = piece->start + piece->length;
    if (piece->both) {
        put_delays(emit, piece->length - 1, piece->fill);
        put_both(emit, piece, event, 1, 0, 0);
        return;
    }
    const TileControl *control = &emit->events->controls.items[piece->control];
    int32_t most = piece->length - piece->fill, limit = wait_max(emit->events, piece);
    int32_t lasts = most < limit ? most : limit;
    put_delays(emit, piece->length - lasts, piece->fill);
    if (control->stream) {
        put(emit, isa_word(FORM_delayxpic, lasts, control->selector, (int32_t)control->value));
        if (control->selector == 0)
            emit->source = control->value;
    } else {
        put(emit,
            isa_word(FORM_delaypic, lasts, control->selector, (int32_t)pic_value(emit, control)));
    }
}

static void put_send(Emit *emit, const Piece *piece)
{
    const TileSend *send = &emit->events->sends.items[piece->send];
    int32_t most = piece->length - piece->fill, items = most < SEND_MAX ? most : SEND_MAX;
    uint32_t address = emit->source_item[piece->send] + (uint32_t)(piece->start - send->start);
    if (piece->both) {
        put_both(emit, piece, piece->start + 1, items, address, send->sctl);
    } else if (piece->kind == PIECE_SEND) {
        put(emit, isa_word(FORM_send, items, (int32_t)address, send->sctl));
    } else {
        const TileControl *control = &emit->events->controls.items[piece->control];
        bool pic = control->stream == 0;
        uint32_t value = pic ? pic_value(emit, control) : control->value;
        if (!pic && control->selector == 0)
            emit->source = control->value;
        put(emit, isa_word(FORM_sendpic, items, (pic ? 2 : 0) + control->selector, (int32_t)value));
    }
    put_sendoffs(emit, piece->length - items, piece->fill, send->sctl);
}

void row_emit(const RowWriter *writer, const TileEvents *events, const uint32_t *source_item,
              const uint32_t *pointer, uint32_t *words)
{
    Emit emit = {.events = events,
                 .source_item = source_item,
                 .pointer = pointer,
                 .words = words,
                 .source = MUX_NEUTRAL};
    for (size_t i = 0; i < writer->pieces.count; i++) {
        const Piece *piece = &writer->pieces.items[i];
        if (piece->kind == PIECE_FILL && !piece->both) {
            put_delays(&emit, piece->length, piece->fill);
        } else if (piece->kind == PIECE_WAIT) {
            put_wait(&emit, piece);
        } else if (piece->kind == PIECE_IDLE_BOTH || piece->kind == PIECE_FILL) {
            int32_t most = piece->length - piece->fill, lasts = most < SEND_MAX ? most : SEND_MAX;
            put_both(&emit, piece, piece->start + 1, lasts, 0, 0);
            put_delays(&emit, piece->length - lasts, piece->fill);
        } else {
            put_send(&emit, piece);
        }
    }
    put(&emit, isa_word(FORM_br_mmmn, 10));
}
