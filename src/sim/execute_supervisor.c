/* execute_supervisor.c - what only the supervisor does: launches, barriers, exchange events.
 *
 * Launch: semantics-integer.md G.1; barriers: timing.md 2; exchange: exchange.md 2. Between the
 * release of an exchange barrier and the delivery of its words the exchange instructions only leave
 * notes for the fabric, each with the cycle in which it acts. A handler of an instruction that
 * takes more than a cycle sets Context.next. */
#include "sim/core.h"

#define M(i) (c->m[d->op[i]])
#define IMMEDIATE(i) ((uint32_t)d->op[i])

static uint32_t refuse(Context *c, const char *why, uint32_t value, uint32_t outcome)
{
    c->tile->detail = why;
    c->tile->detail_address = value;
    return outcome;
}

/* --- launch */

static uint32_t check_launch(Context *c, uint32_t entry, uint32_t base)
{
    if (entry & 3 || entry - SRAM_BASE >= CODE_BYTES)
        return refuse(c, "the worker's entry is not executable", entry, EXCEPTION_INVALID_OP);
    if (base & 3)
        return refuse(c, "the vertex base is not a multiple of 4", base, EXCEPTION_INVALID_OP);
    return OUTCOME_DONE;
}

/* Choice: the lowest-numbered inactive worker. There is one: with six running ones the supervisor
 * has no slot. The operand includes the region base. */
static uint32_t run(Context *c, const Decoded *d)
{
    Tile *tile = c->tile;
    uint32_t outcome = check_launch(c, M(0), M(1)), worker = 0;
    if (outcome)
        return outcome;
    while (tile->contexts[1 + worker].next != NEVER)
        worker++;
    tile_launch(tile, worker, M(0), M(1) + IMMEDIATE(2), tile->cycle);
    return OUTCOME_DONE;
}

static uint32_t runall(Context *c, const Decoded *d)
{
    Tile *tile = c->tile;
    if (tile->active) {
        tile->launch_error = true;
        for (int i = 1; i < TILE_CONTEXTS; i++)
            if (tile->contexts[i].next != NEVER) {
                tile->contexts[i].exception = EXCEPTION_INVALID_OP;
                tile->contexts[i].status = 3;
            }
        return refuse(c, "runall while workers are running", tile->active, EXCEPTION_INVALID_OP);
    }
    uint32_t outcome = check_launch(c, M(0), M(1));
    if (outcome)
        return outcome;
    for (uint32_t worker = 0; worker < TILE_WORKERS; worker++)
        tile_launch(tile, worker, M(0), M(1) + 4 * IMMEDIATE(2) * worker, tile->cycle);
    return OUTCOME_DONE;
}

/* --- barriers */

enum { ZONE_RECEIVE = 0, ZONE_ANS = 1, ZONE_LOCAL = 2, ZONE_INTERNAL = 3 };

static uint32_t wait_for_workers(Context *c)
{
    Tile *tile = c->tile;
    if (tile->active) {
        tile->local_wait = tile->cycle;
        c->next = NEVER;
        return OUTCOME_BLOCK;
    }
    int64_t done = tile->last_exit + TIMING_LOCAL_SYNC;
    if (done > (int64_t)c->next)
        c->next = (uint64_t)done;
    tile_joined(tile, c->next);
    return OUTCOME_DONE;
}

/* The host is always ready, and all words of a phase are in memory when this is reached. */
static uint32_t wait_for_words(Context *c)
{
    Tile *tile = c->tile;
    if (tile->window == WINDOW_HOST || tile->dcount <= 1 || tile->received >= tile->dcount)
        return OUTCOME_DONE;
    return refuse(c, "sync 0 waits for words that nobody has sent", tile->dcount - tile->received,
                  OUTCOME_LIMIT);
}

static uint32_t wait_for_tiles(Context *c, uint32_t zone)
{
    Tile *tile = c->tile;
    tile->state = TILE_WAITING;
    tile->zone = zone;
    tile->wait_cycle = tile->cycle;
    c->next = NEVER;
    return OUTCOME_BLOCK;
}

static uint32_t sync(Context *c, const Decoded *d)
{
    uint32_t zone = IMMEDIATE(0);
    switch (zone) {
    case ZONE_RECEIVE:
        return wait_for_words(c);
    case ZONE_LOCAL:
        return wait_for_workers(c);
    case ZONE_ANS:
        if (!c->tile->sans_pending)
            return refuse(c, "sync 1 without sans waits for ever", zone, OUTCOME_LIMIT);
        return wait_for_tiles(c, zone);
    case ZONE_INTERNAL:
    case 4: /* choice: with one chip, zones 4..7 and 12..15 are barriers of all its tiles */
    case 5:
    case 6:
    case 7:
    case 12:
    case 13:
    case 14:
    case 15:
        if (c->tile->sans_pending)
            return refuse(c, "a barrier between sans and sync 1", zone, OUTCOME_LIMIT);
        return wait_for_tiles(c, zone);
    default:
        return refuse(c, "no such sync zone", zone, EXCEPTION_INVALID_OP);
    }
}

static uint32_t sans(Context *c, const Decoded *d)
{
    Tile *tile = c->tile;
    if (IMMEDIATE(0) > 1)
        return refuse(c, "no such sans zone", IMMEDIATE(0), EXCEPTION_INVALID_OP);
    if (tile->sans_pending)
        return refuse(c, "a second sans before sync 1", IMMEDIATE(0), OUTCOME_LIMIT);
    tile->sans_pending = true;
    tile->sans_zone = IMMEDIATE(0);
    tile->sans_cycle = tile->cycle;
    return OUTCOME_DONE;
}

/* --- exchange */

/* Accounts for `count` events that start now. acts: it sends or writes a control. */
static uint32_t begin_events(Context *c, uint32_t count, bool acts)
{
    Tile *tile = c->tile;
    FabricTile *fabric = tile->fabric;
    c->next = tile->cycle + count;
    if (tile->window == WINDOW_DELIVERED && acts)
        return refuse(c, "exchange instruction after the phase has ended on this tile", c->pc,
                      EXCEPTION_EXCONF);
    if (tile->window != WINDOW_OPEN)
        return OUTCOME_DONE;
    if (acts && tile->active) {
        tile->receive_error = 4; /* WORKERS */
        return refuse(c, "workers are running during an exchange", tile->active, EXCEPTION_EXERR);
    }
    if (!tile->row_begun) {
        tile->row_begun = true;
        fabric->row_start = tile->cycle;
        fabric->row_first = c->pc;
        fabric->row_last = c->pc;
    }
    fabric->row_first = min_u32(fabric->row_first, c->pc);
    fabric->row_last = max_u32(fabric->row_last, c->next_pc); /* what follows is fetched too */
    fabric->row_end = c->next;
    return OUTCOME_DONE;
}

static void write_control(Context *c, uint32_t stream, uint32_t selector, uint32_t value,
                          uint64_t cycle)
{
    FabricTile *fabric = c->tile->fabric;
    if (c->tile->window == WINDOW_OPEN) {
        array_push(&fabric->controls, (FabricControl){.cycle = cycle,
                                                      .value = value,
                                                      .stream = (uint8_t)stream,
                                                      .selector = (uint8_t)selector,
                                                      .pc = c->pc});
    } else if (stream) {
        *(selector ? &fabric->mux_pair : &fabric->mux) = value;
    } else if (selector) {
        fabric->format = value & 3;
    } else {
        fabric->pointer = fabric->incoming_base + 4 * value;
    }
}

/* Whether items from `address` on in `cycle` go on with this message. */
static bool continues(const FabricSend *send, uint64_t cycle, uint32_t address, uint8_t sctl)
{
    uint32_t bytes = sctl & 4 ? 8 : 4;
    return send->sctl == sctl && send->cycle + send->items == cycle &&
           send->address + send->items * bytes == address;
}

/* Sends `count` items of the stream. A stretch that goes on is one record. */
static uint32_t send_items(Context *c, uint32_t count)
{
    Tile *tile = c->tile;
    Stream *stream = &tile->stream;
    uint32_t bytes = stream->sctl & 4 ? 8 : 4, address = stream->address;
    stream->address += count * bytes;
    if (!(stream->sctl & 3) || tile->window != WINDOW_OPEN)
        return OUTCOME_DONE; /* nothing is transmitted; host packets are not modelled */
    uint32_t offset = address - SRAM_BASE;
    if (address & (bytes - 1) || offset >= SRAM_BYTES || SRAM_BYTES - offset < count * bytes)
        return refuse(c, "sends from outside the memory, or misaligned", address,
                      EXCEPTION_INVALID_ADDR);
    FabricTile *fabric = tile->fabric;
    size_t sends = fabric->sends.count;
    if (sends && continues(&fabric->sends.items[sends - 1], tile->cycle, address, stream->sctl))
        fabric->sends.items[sends - 1].items += count;
    else
        array_push(&fabric->sends, (FabricSend){.cycle = tile->cycle,
                                                .address = address,
                                                .items = count,
                                                .sctl = stream->sctl});
    return OUTCOME_DONE;
}

static void restart_stream(Tile *tile, uint32_t item, uint32_t sctl)
{
    tile->stream.sctl = (uint8_t)sctl;
    tile->stream.address = tile->outgoing_base + item * (sctl & 4 ? 8 : 4);
}

static uint32_t delay(Context *c, const Decoded *d)
{
    return begin_events(c, IMMEDIATE(0), false);
}

static uint32_t delay_control(Context *c, const Decoded *d, uint32_t stream)
{
    uint32_t count = IMMEDIATE(0), outcome = begin_events(c, count, true);
    if (!outcome)
        write_control(c, stream, IMMEDIATE(1), IMMEDIATE(2), c->tile->cycle + count);
    return outcome;
}

static uint32_t delaypic(Context *c, const Decoded *d)
{
    return delay_control(c, d, 0);
}

static uint32_t delayxpic(Context *c, const Decoded *d)
{
    return delay_control(c, d, 1);
}

static uint32_t send(Context *c, const Decoded *d)
{
    uint32_t outcome = begin_events(c, IMMEDIATE(0), true);
    if (outcome)
        return outcome;
    restart_stream(c->tile, IMMEDIATE(1), IMMEDIATE(2));
    return send_items(c, IMMEDIATE(0));
}

/* Choice: the delta, whose unit no source states and nobody uses, must be 0. */
static uint32_t sendoff(Context *c, const Decoded *d)
{
    if (IMMEDIATE(1))
        return refuse(c, "sendoff with a source delta is not modelled", IMMEDIATE(1),
                      OUTCOME_LIMIT);
    uint32_t outcome = begin_events(c, IMMEDIATE(0), true);
    if (outcome)
        return outcome;
    c->tile->stream.sctl = (uint8_t)IMMEDIATE(2);
    return send_items(c, IMMEDIATE(0));
}

static uint32_t sendpic(Context *c, const Decoded *d)
{
    uint32_t outcome = begin_events(c, IMMEDIATE(0), true), control = IMMEDIATE(1);
    if (outcome)
        return outcome;
    bool source = control < 2;
    uint32_t value = source ? IMMEDIATE(2) & 0x1fff : IMMEDIATE(2);
    write_control(c, source, control & 1, value, c->tile->cycle + 1);
    return send_items(c, IMMEDIATE(0));
}

static uint32_t sendpicp(Context *c, const Decoded *d)
{
    if (c->pc & 7)
        return refuse(c, "sendpicp is not 8-byte aligned", c->pc, EXCEPTION_INVALID_INSTR);
    uint32_t outcome = begin_events(c, IMMEDIATE(0), true);
    if (outcome)
        return outcome;
    uint64_t cycle = c->tile->cycle + 1;
    write_control(c, 0, IMMEDIATE(3), d->payload & 0x3ffff, cycle);
    write_control(c, 1, d->payload >> 31, d->payload >> 18 & 0x1fff, cycle);
    if (IMMEDIATE(2) & 3)
        restart_stream(c->tile, IMMEDIATE(1), IMMEDIATE(2));
    else
        c->tile->stream.sctl = (uint8_t)IMMEDIATE(2);
    return send_items(c, IMMEDIATE(0));
}

Execute *supervisor_handler(Form form)
{
    static Execute *const handlers[FORM_COUNT] = {
        [FORM_run_mmmn_zi] = run,     [FORM_runall_mmmn_zi] = runall,
        [FORM_sync] = sync,           [FORM_sans] = sans,
        [FORM_delay] = delay,         [FORM_delaypic] = delaypic,
        [FORM_delayxpic] = delayxpic, [FORM_send] = send,
        [FORM_sendoff] = sendoff,     [FORM_sendpic] = sendpic,
        [FORM_sendpicp] = sendpicp,
    };
    return handlers[form];
}
