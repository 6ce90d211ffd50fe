/* check.c - reads rows back and holds them against schedule, addresses and every rule.
 *
 * A row is decoded to what its tile would do: stretches of items sent and controls with their
 * events. From these alone the source selected at a mux slot and the pointer at a write slot
 * follow; they are compared with what the transfers of the phase need. Nothing here looks at how
 * the row was made (exchange.md 8). */
#include "exchange/internal.h"

#include <stdlib.h>

typedef struct Sent { /* items that one instruction sends */
    int32_t start;
    uint32_t items, address; /* address of the first item in units of items */
    uint8_t sctl;
} Sent;

typedef struct Control {
    int32_t event;
    uint8_t stream, selector;
    uint32_t value;
} Control;

typedef struct Arrival {   /* what must arrive */
    int32_t select, write; /* first mux slot, first write slot */
    uint32_t items, bytes, address, source, direction;
    bool paired, early;
    bool follows, followed; /* one message in pieces: these are not its first or not its last */
} Arrival;

typedef struct Outgoing { /* what must leave */
    int32_t start;
    uint32_t items, bytes, address, directions;
    bool paired;
} Outgoing;

typedef struct Interval { /* of mux slots, with a source (physical) */
    int32_t from, to;
    uint32_t source;
} Interval;
typedef ARRAY(Interval) IntervalArray;

typedef struct Checker {
    Problem problem;
    int32_t *start;
    AddressOf *address;
    const void *context;
    uint32_t tile;
    int32_t horizon;
    ARRAY(Sent) sent;
    ARRAY(Control) controls;
    ARRAY(Arrival) arrivals;
    ARRAY(Outgoing) outgoing;
    IntervalArray selected, passing;
} Checker;

/* ---- words to events ---- */

typedef struct Cursor {
    int32_t event;    /* start of the next instruction */
    uint32_t address; /* next item of the outgoing stream */
    uint8_t sctl;     /* of the outgoing stream, 0: none */
} Cursor;

static void add_control(Checker *checker, int32_t event, uint32_t stream, uint32_t selector,
                        uint32_t value)
{
    array_push(&checker->controls, (Control){.event = event,
                                             .stream = (uint8_t)stream,
                                             .selector = (uint8_t)selector,
                                             .value = value});
}

static void add_sent(Checker *checker, Cursor *cursor, int32_t items)
{
    array_push(&checker->sent, (Sent){.start = cursor->event,
                                      .items = (uint32_t)items,
                                      .address = cursor->address,
                                      .sctl = cursor->sctl});
    cursor->address += (uint32_t)items;
}

static Status decode_send(Checker *checker, Cursor *cursor, const Insn *insn)
{
    const int32_t *operand = insn->operand;
    switch (insn->form) {
    case FORM_send:
        cursor->address = (uint32_t)operand[1];
        cursor->sctl = (uint8_t)operand[2];
        break;
    case FORM_sendoff:
        if (operand[1] != 0)
            return status_error("sendoff with delta %d", operand[1]);
        if ((uint8_t)operand[2] != cursor->sctl)
            return status_error("sendoff with control %d in a message with %u", operand[2],
                                cursor->sctl);
        break;
    case FORM_sendpic:
        add_control(checker, cursor->event + 1, operand[1] < 2, operand[1] & 1,
                    (uint32_t)operand[2]);
        break;
    default: /* sendpicp */
        add_control(checker, cursor->event + 1, 0, (uint32_t)operand[3], insn->payload & 0x3ffff);
        add_control(checker, cursor->event + 1, 1, insn->payload >> 31,
                    insn->payload >> 18 & 0x1fff);
        cursor->address = (uint32_t)operand[1];
        cursor->sctl = (uint8_t)operand[2];
        if (cursor->sctl == 0)
            return STATUS_OK; /* a wait with two controls */
    }
    if (cursor->sctl == 0 || cursor->sctl == 4)
        return status_error("sends in no direction");
    add_sent(checker, cursor, operand[0]);
    return STATUS_OK;
}

static Status decode_word(Checker *checker, Cursor *cursor, const Insn *insn)
{
    int32_t count = insn->operand[0];
    switch (insn->form) {
    case FORM_delay:
        break;
    case FORM_delaypic:
        add_control(checker, cursor->event + count, 0, (uint32_t)insn->operand[1],
                    (uint32_t)insn->operand[2]);
        break;
    case FORM_delayxpic:
        add_control(checker, cursor->event + count, 1, (uint32_t)insn->operand[1],
                    (uint32_t)insn->operand[2]);
        break;
    case FORM_send:
    case FORM_sendoff:
    case FORM_sendpic:
    case FORM_sendpicp:
        TRY(decode_send(checker, cursor, insn));
        break;
    default:
        return status_error("%s in a row", isa_form((Form)insn->form)->name);
    }
    cursor->event += count;
    if (insn->form == FORM_delay || insn->form == FORM_delaypic || insn->form == FORM_delayxpic)
        cursor->sctl = 0; /* a wait ends the message */
    return STATUS_OK;
}

static Status decode_row(Checker *checker, const Row *row)
{
    Cursor cursor = {0};
    checker->sent.count = checker->controls.count = 0;
    for (uint32_t i = 0; i < row->count;) {
        Insn insn;
        uint32_t next = i + 1 < row->count ? row->words[i + 1] : 0;
        if (!isa_decode(row->words[i], next, MODE_SUPERVISOR, &insn))
            return status_error("word %u: 0x%08x is no instruction", i, row->words[i]);
        if (insn.form == FORM_br_mmmn) {
            if (i + 1 != row->count || insn.operand[0] != 10)
                return status_error("word %u: a branch that is not the return", i);
            if (cursor.event != checker->horizon)
                return status_error("the row lasts %d events instead of %d", cursor.event,
                                    checker->horizon);
            return STATUS_OK;
        }
        if (insn.words == 2 && (i % 2 || i + 1 >= row->count))
            return status_error("word %u: sendpicp at an odd word or cut off", i);
        TRY(status_context(decode_word(checker, &cursor, &insn), "word %u", i));
        i += insn.words;
    }
    return status_error("no return");
}

/* ---- what the transfers ask of this tile ---- */

static uint32_t place_of(const Checker *checker, const Endpoint *end)
{
    return checker->address(checker->context, end->tile, end->at.buffer) + end->at.offset;
}

static int by_write(const void *a, const void *b)
{
    const Arrival *p = a, *q = b;
    return p->write < q->write ? -1 : p->write > q->write;
}

static int by_start(const void *a, const void *b)
{
    const Outgoing *p = a, *q = b;
    return p->start < q->start ? -1 : p->start > q->start;
}

static void expect_arrivals(Checker *checker)
{
    const Problem *problem = &checker->problem;
    uint32_t own = target_physical(checker->tile);
    checker->arrivals.count = 0;
    for (uint32_t i = problem->incoming_first[checker->tile];
         i < problem->incoming_first[checker->tile + 1]; i++) {
        const End *end = &problem->ends[problem->incoming[i]];
        const Message *message = &problem->messages[end->message];
        uint32_t source = target_physical(message->source);
        uint32_t early = message->paired ? target_early_member(source, own) : own;
        Arrival arrival = {.items = message->items,
                           .bytes = 4 * message->words,
                           .source = source,
                           .direction = target_direction(source, own),
                           .paired = message->paired,
                           .early = early == own,
                           .address =
                               place_of(checker, problem_receiver(problem, problem->incoming[i]))};
        arrival.select = checker->start[end->message] + target_route_time(source, early) + 1;
        arrival.write = arrival.select + (message->paired ? 53 : 52) + 2 * target_row(own);
        array_push(&checker->arrivals, arrival);
    }
    if (checker->arrivals.count > 1)
        qsort(checker->arrivals.items, checker->arrivals.count, sizeof(Arrival), by_write);
    for (size_t i = 1; i < checker->arrivals.count; i++) {
        Arrival *b = &checker->arrivals.items[i], *a = b - 1;
        a->followed = b->follows = a->paired && b->paired && a->source == b->source &&
                                   a->write + (int32_t)a->items == b->write;
    }
}

static void expect_outgoing(Checker *checker)
{
    const Problem *problem = &checker->problem;
    uint32_t own = target_physical(checker->tile);
    checker->outgoing.count = 0;
    for (uint32_t i = problem->outgoing_first[checker->tile];
         i < problem->outgoing_first[checker->tile + 1]; i++) {
        uint32_t m = problem->outgoing[i];
        const Message *message = &problem->messages[m];
        Outgoing outgoing = {.start = checker->start[m],
                             .items = message->items,
                             .bytes = 4 * message->words,
                             .address = place_of(checker, &problem->phase->transfers[m].source),
                             .paired = message->paired};
        for (uint32_t e = message->first; e < message->first + message->count; e++)
            outgoing.directions |= target_direction(own, target_physical(problem->ends[e].tile));
        array_push(&checker->outgoing, outgoing);
    }
    if (checker->outgoing.count > 1)
        qsort(checker->outgoing.items, checker->outgoing.count, sizeof(Outgoing), by_start);
}

/* ---- the comparison ---- */

/* The items sent are the messages, item for item, and nothing else. */
static Status check_sent(const Checker *checker)
{
    size_t m = 0;
    uint32_t done = 0;
    for (size_t i = 0; i < checker->sent.count; i++) {
        const Sent *sent = &checker->sent.items[i];
        if (m == checker->outgoing.count)
            return status_error("event %d: sends %u items that nobody asked for", sent->start,
                                sent->items);
        const Outgoing *wanted = &checker->outgoing.items[m];
        uint32_t address = wanted->address / (wanted->paired ? 8 : 4) + done;
        if (sent->start != wanted->start + (int32_t)done || sent->items > wanted->items - done)
            return status_error("event %d: sends %u items, due are %u at event %d", sent->start,
                                sent->items, wanted->items - done, wanted->start + (int32_t)done);
        if (sent->address != address)
            return status_error("event %d: sends from item 0x%x instead of 0x%x", sent->start,
                                sent->address, address);
        if ((wanted->directions & ~sent->sctl) || wanted->paired != (sent->sctl >> 2))
            return status_error("event %d: sends with control %u", sent->start, sent->sctl);
        done += sent->items;
        if (done == wanted->items) {
            m++;
            done = 0;
        }
    }
    if (m != checker->outgoing.count)
        return status_error("%zu of %zu messages are sent", m, checker->outgoing.count);
    return STATUS_OK;
}

/* One control of a stream at an event; 64-bit ones alone. */
static Status check_coincidence(const Checker *checker)
{
    uint32_t format = 0;
    for (size_t i = 0; i < checker->controls.count; i++) {
        const Control *a = &checker->controls.items[i];
        if (a->stream == 0 && a->selector == 1)
            format = a->value;
        if (format > 2)
            return status_error("event %d: item format %u", a->event, format);
        if (i + 1 == checker->controls.count)
            break;
        const Control *b = a + 1;
        if (b->event < a->event)
            return status_error("event %d: controls out of order", b->event);
        if (b->event == a->event && a->stream == b->stream)
            return status_error("event %d: two controls of one stream", a->event);
        if (b->event == a->event && (a->selector || b->selector || format))
            return status_error("event %d: a 64-bit control coincides with another", a->event);
    }
    return STATUS_OK;
}

static void add_interval(IntervalArray *list, int32_t from, int32_t to, uint32_t source)
{
    Interval *last = list->count ? &list->items[list->count - 1] : NULL;
    if (last && last->source == source && last->to == from)
        last->to = to;
    else
        array_push(list, (Interval){from, to, source});
}

/* The intervals in which a source is selected, and those in which its words pass the mux. */
static Status collect_intervals(Checker *checker, uint8_t selector)
{
    uint32_t now = MUX_NEUTRAL, flip = selector ? target_physical(checker->tile) & 2 : 0;
    int32_t since = 0;
    checker->selected.count = checker->passing.count = 0;
    for (size_t i = 0; i < checker->controls.count; i++) {
        const Control *control = &checker->controls.items[i];
        if (control->stream != 1 || control->selector != selector || control->value == now)
            continue;
        if (now != MUX_NEUTRAL)
            add_interval(&checker->selected, since, control->event, now ^ flip);
        now = control->value;
        since = control->event;
    }
    for (size_t i = 0; i < checker->arrivals.count; i++) {
        const Arrival *arrival = &checker->arrivals.items[i];
        if (arrival->paired == selector && arrival->early)
            add_interval(&checker->passing, arrival->select,
                         arrival->select + (int32_t)arrival->items, arrival->source);
    }
    return now == MUX_NEUTRAL ? STATUS_OK
                              : status_error("the row ends with source %u selected", now);
}

/* A source is selected exactly while its words pass. */
static Status check_selects(Checker *checker, uint8_t selector)
{
    TRY(collect_intervals(checker, selector));
    size_t count = checker->selected.count, wanted = checker->passing.count;
    for (size_t i = 0; i < count && i < wanted; i++) {
        const Interval *a = &checker->selected.items[i], *b = &checker->passing.items[i];
        if (a->from != b->from || a->to != b->to || a->source != b->source)
            return status_error("selects source %u in [%d, %d); words pass of %u in [%d, %d)",
                                a->source, a->from, a->to, b->source, b->from, b->to);
    }
    if (count != wanted)
        return status_error("%zu selects, %zu needed", count, wanted);
    return STATUS_OK;
}

static uint32_t format_at(const Checker *checker, int32_t event)
{
    uint32_t format = 0;
    for (size_t i = 0; i < checker->controls.count; i++) {
        const Control *control = &checker->controls.items[i];
        if (control->event > event)
            break;
        if (control->stream == 0 && control->selector == 1)
            format = control->value;
    }
    return format;
}

static Status check_format(const Checker *checker, const Arrival *arrival)
{
    int32_t on = arrival->write - (arrival->paired ? 2 : 1), end = on + (int32_t)arrival->items;
    uint32_t wanted = arrival->paired ? arrival->direction : 0;
    bool right = format_at(checker, on) == wanted && format_at(checker, end - 1) == wanted;
    if (arrival->paired && !arrival->follows)
        right = right && format_at(checker, on - 1) == 0;
    if (arrival->paired && !arrival->followed)
        right = right && format_at(checker, end) == 0;
    return right ? STATUS_OK
                 : status_error("event %d: wrong item format for words of tile %u", on,
                                arrival->source);
}

/* Walks the writes with the pointer that the controls give. */
static Status check_pointers(const Checker *checker)
{
    uint64_t pointer = UINT64_MAX;
    bool formats = false;
    size_t next = 0;
    for (size_t i = 0; i < checker->controls.count; i++)
        formats |= checker->controls.items[i].stream == 0 && checker->controls.items[i].selector;
    for (size_t i = 0; i < checker->arrivals.count; i++) {
        const Arrival *arrival = &checker->arrivals.items[i];
        int32_t end = arrival->write + (int32_t)arrival->items;
        uint32_t width = arrival->paired ? 8 : 4;
        if (i && arrival->write < checker->arrivals.items[i - 1].write +
                                      (int32_t)checker->arrivals.items[i - 1].items)
            return status_error("event %d: two messages are written at once", arrival->write);
        for (; next < checker->controls.count; next++) {
            const Control *control = &checker->controls.items[next];
            if (control->stream != 0 || control->selector != 0)
                continue;
            if (control->event >= end)
                break;
            uint64_t now = arrival->address;
            if (control->event > arrival->write)
                now += (uint64_t)width * (uint32_t)(control->event - arrival->write);
            if (control->event > arrival->write && 4ull * control->value != now)
                return status_error("event %d: the pointer moves within words of tile %u",
                                    control->event, arrival->source);
            if (control->event <= arrival->write)
                pointer = 4ull * control->value;
        }
        if (pointer != arrival->address)
            return status_error("event %d: words of tile %u go to 0x%llx instead of 0x%x",
                                arrival->write, arrival->source, (unsigned long long)pointer,
                                arrival->address);
        pointer += arrival->bytes;
        if (formats || arrival->paired)
            TRY(check_format(checker, arrival));
        if (end + 5 > checker->horizon)
            return status_error("the row ends at %d, less than 5 events after the last write",
                                checker->horizon);
    }
    return STATUS_OK;
}

/* ---- addresses ---- */

static Status check_range(const Checker *checker, uint32_t address, uint32_t bytes, bool paired)
{
    if (address < SRAM_BASE || address > SRAM_END || bytes > SRAM_END - address ||
        address % (paired ? 8 : 4))
        return status_error("%u bytes at 0x%x on tile %u", bytes, address, checker->tile);
    return STATUS_OK;
}

static bool share_element(uint32_t a, uint32_t a_bytes, uint32_t b, uint32_t b_bytes)
{
    uint32_t a_first = target_element(a), a_last = target_element(a + a_bytes - 1);
    uint32_t b_first = target_element(b), b_last = target_element(b + b_bytes - 1);
    return a_first <= b_last && b_first <= a_last;
}

static Status check_elements(const Checker *checker)
{
    for (size_t i = 0; i < checker->outgoing.count; i++)
        TRY(check_range(checker, checker->outgoing.items[i].address,
                        checker->outgoing.items[i].bytes, checker->outgoing.items[i].paired));
    size_t first = 0;
    for (size_t i = 0; i < checker->arrivals.count; i++) {
        const Arrival *arrival = &checker->arrivals.items[i];
        int32_t end = arrival->write + (int32_t)arrival->items + GUARD_EVENTS;
        TRY(check_range(checker, arrival->address, arrival->bytes, arrival->paired));
        for (size_t k = first; k < checker->outgoing.count; k++) {
            const Outgoing *outgoing = &checker->outgoing.items[k];
            if (outgoing->start >= end)
                break;
            if (outgoing->start + (int32_t)outgoing->items <= arrival->write) {
                first = k + 1;
                continue;
            }
            if (share_element(outgoing->address, outgoing->bytes, arrival->address, arrival->bytes))
                return status_error("sends from 0x%x while words of tile %u are written at 0x%x",
                                    outgoing->address, arrival->source, arrival->address);
        }
    }
    return STATUS_OK;
}

/* A tile whose partner sends 64-bit items neither sends nor receives meanwhile. */
static Status check_partner(const Checker *checker)
{
    const Problem *problem = &checker->problem;
    uint32_t partner = checker->tile ^ 1;
    if (partner >= problem->tiles)
        return STATUS_OK;
    for (uint32_t i = problem->outgoing_first[partner]; i < problem->outgoing_first[partner + 1];
         i++) {
        uint32_t m = problem->outgoing[i];
        int32_t start = checker->start[m], end = start + (int32_t)problem->messages[m].items;
        if (!problem->messages[m].paired)
            continue;
        for (size_t k = 0; k < checker->outgoing.count; k++)
            if (checker->outgoing.items[k].start < end &&
                checker->outgoing.items[k].start + (int32_t)checker->outgoing.items[k].items >
                    start)
                return status_error("sends while its partner sends 64-bit items");
        for (size_t k = 0; k < checker->arrivals.count; k++)
            if (checker->arrivals.items[k].select < end &&
                checker->arrivals.items[k].write + (int32_t)checker->arrivals.items[k].items >
                    start)
                return status_error("receives while its partner sends 64-bit items");
    }
    return STATUS_OK;
}

static Status check_tile(Checker *checker, const PhaseSchedule *schedule, const Row *row)
{
    expect_arrivals(checker);
    expect_outgoing(checker);
    bool has_work = checker->arrivals.count || checker->outgoing.count;
    if (has_work && !checker->horizon)
        return status_error("takes part but has no horizon");
    if (!checker->horizon)
        return row->words || row->count ? status_error("has a row but takes no part") : STATUS_OK;
    if (!row->words || row->count == 0)
        return status_error("has no row");
    if (row->count > schedule->row_words[checker->tile])
        return status_error("%u words of row, scheduled were %u", row->count,
                            schedule->row_words[checker->tile]);
    if ((uint32_t)checker->horizon > schedule->horizon)
        return status_error("horizon %d beyond the phase's %u", checker->horizon,
                            schedule->horizon);
    TRY(decode_row(checker, row));
    TRY(check_sent(checker));
    TRY(check_coincidence(checker));
    TRY(check_selects(checker, 0));
    TRY(check_selects(checker, 1));
    TRY(check_pointers(checker));
    TRY(check_elements(checker));
    return check_partner(checker);
}

static Status check_complete_pairs(const Problem *problem)
{
    uint32_t seen[TILES + 1] = {0};
    for (uint32_t m = 0; m < problem->count; m++) {
        const Message *message = &problem->messages[m];
        uint32_t end = message->first + message->count;
        if (!message->paired)
            continue;
        bool short_chain = !message->follows && message->chain_items < PAIRED_ITEMS_MIN;
        if (message->words % 2 || short_chain)
            return status_error("transfer %u can not be a 64-bit one", m);
        for (uint32_t e = message->first; e < end; e++)
            seen[problem->ends[e].tile] = m + 1;
        for (uint32_t e = message->first; e < end; e++)
            if (seen[problem->ends[e].tile ^ 1] != m + 1 ||
                (problem->ends[e].tile ^ 1) == message->source)
                return status_error("transfer %u: tile %u is not in a complete pair", m,
                                    problem->ends[e].tile);
    }
    return STATUS_OK;
}

static Status check_phase(Checker *checker, const PhaseSchedule *schedule, const Row *rows)
{
    TRY(check_complete_pairs(&checker->problem));
    for (uint32_t t = 0; t < checker->problem.tiles; t++) {
        checker->tile = t;
        checker->horizon = (int32_t)schedule->tile_horizon[t];
        TRY(status_context(check_tile(checker, schedule, &rows[t]), "tile %u", t));
    }
    return STATUS_OK;
}

Status exchange_check_phase(const TileProgram *program, uint32_t phase,
                            const PhaseSchedule *schedule, AddressOf *address, const void *context,
                            const Row *rows)
{
    Checker checker = {.address = address, .context = context};
    TRY(problem_from_schedule(program, schedule, &checker.problem, &checker.start));
    Status status = check_phase(&checker, schedule, rows);
    array_free(&checker.sent);
    array_free(&checker.controls);
    array_free(&checker.arrivals);
    array_free(&checker.outgoing);
    array_free(&checker.selected);
    array_free(&checker.passing);
    free(checker.start);
    problem_close(&checker.problem);
    return status_context(status, "exchange phase %u", phase);
}
