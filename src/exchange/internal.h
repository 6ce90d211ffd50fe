/* internal.h - what the files of this folder share.
 *
 * A Problem is one phase in the scheduler's terms: messages with words, ends with route times.
 * "Mux time" of a receiver is the event numbering of its source selects: a message sent from event
 * S passes the mux in [S + T + 1, S + T + 1 + n) and is written 52 + 2 row events later, so one
 * timeline per receiver covers both (exchange.md 3.3). */
#ifndef IPU_EXCHANGE_INTERNAL_H
#define IPU_EXCHANGE_INTERNAL_H

#include "exchange/exchange.h"

enum {
    WRITE_LAG = 52,        /* mux to memory, + 2 * row */
    FORMAT_LAG = 51,       /* 64-bit: select to format on, + 2 * row */
    PAIRED_WRITE_LAG = 53, /* 64-bit: select to pointer, + 2 * row */
    SEND_MAX = 64,         /* items of send, sendpic, sendpicp */
    SENDOFF_MAX = 4096,
    WAIT_PIC_MAX = 128,
    WAIT_XPIC_MAX = 4096,
    DELAY_MAX = 524288,
    PAIRED_ITEMS_MIN = 64,
    SENDS_ONLY = 3,
    TIME_LIMIT = 1 << 29 /* of any event number: sums of two stay in an int32_t */
};

/* 64-bit messages of one sender to the same receivers, one right behind the other, are a chain: the
 * receivers change their format and select the sender once, and move the pointer in between. */
typedef struct Message {
    uint32_t words, items; /* items: words, or words / 2 when paired */
    uint32_t chain_items;  /* of this one and those that follow it in its chain */
    uint32_t first, count; /* ends */
    uint16_t source;       /* logical tile */
    bool paired;
    bool follows; /* the message before it: starts when that one ends */
} Message;

typedef struct End { /* one receiver of a message */
    uint32_t message;
    uint16_t tile; /* logical */
    int16_t time;  /* T from the source; of the pair's early member when paired */
} End;

typedef struct Problem {
    const TileProgram *program;
    const ExchangePhase *phase;
    uint32_t tiles, count, end_count;
    Message *messages; /* [count] */
    End *ends;         /* [end_count], in the order of messages */
    /* Per tile: what leaves and what arrives, in the order of messages. */
    uint32_t *outgoing_first, *outgoing; /* [tiles + 1] into message numbers */
    uint32_t *incoming_first, *incoming; /* [tiles + 1] into end numbers */
    uint32_t *send_items, *receive_items;
    int32_t *row_lag;  /* per tile: 2 * row */
    int32_t *distance; /* per tile: events to leave before its sends and, above SENDS_ONLY,
                          between its receives */
    uint32_t bound;
    bool conflicts; /* some tile sends from a buffer in which it also receives */
    bool ordered;   /* and some of these are the same bytes: the order of the list has a meaning */
} Problem;

Status problem_open(const TileProgram *program, const ExchangePhase *phase, Problem *out);
void problem_close(Problem *problem);
/* Makes message m a 64-bit one (its receivers must be complete pairs), or takes that back. */
void problem_pair(Problem *problem, uint32_t m, bool paired);
/* Problem and starts of a finished schedule. */
Status problem_from_schedule(const TileProgram *program, const PhaseSchedule *schedule,
                             Problem *problem, int32_t **start);
/* From one tile to the same receivers, in the same order. */
bool problem_same_way(const Problem *problem, const Message *a, const Message *b);
/* Items, loads and bound after flags changed. */
void problem_measure(Problem *problem);

static inline const Endpoint *problem_receiver(const Problem *problem, uint32_t end)
{
    uint32_t m = problem->ends[end].message;
    return &problem->phase->receivers[problem->phase->transfers[m].first_receiver + end -
                                      problem->messages[m].first];
}

/* ---- cut.c: other ways to cut a phase into messages ---- */

typedef struct CutPhase { /* arrays on the heap */
    ExchangePhase phase;
    uint8_t *width; /* per transfer: Width */
    bool changed;   /* something is cut or paired */
} CutPhase;
typedef enum Width { WIDTH_32, WIDTH_64, WIDTH_64_FOLLOWS } Width;

/* 32-bit multicasts in parts with fewer receivers, as far as the senders have time for it. */
void cut_parts(const Problem *problem, CutPhase *out);
/* Long multicasts as a 64-bit message to the complete pairs and a 32-bit one to the others; what
 * one sender has for the same receivers becomes a chain. */
void cut_pairs(const Problem *problem, CutPhase *out);
void cut_free(CutPhase *cut);
/* Opens the problem of a cut phase. */
Status cut_open(const TileProgram *program, const CutPhase *cut, Problem *out);

/* ---- order.c, tracks.c: one pass gives every message its start ---- */

typedef struct Tracks Tracks; /* free intervals of all tiles, for one pass at a time */
Tracks *tracks_open(const Problem *problem);
void tracks_close(Tracks *tracks);
/* Places the messages in the given order, each as early as it fits. Returns the horizon. */
uint32_t tracks_place(Tracks *tracks, const uint32_t *order, int32_t *start);
/* The same with time running backwards: start counts from the end. Only good for an order: it does
 * not care where event 0 comes to lie. */
void tracks_place_mirrored(Tracks *tracks, const uint32_t *order, int32_t *start);

/* Forward-backward improvement: everything is pushed as late as it can be, which shows what matters
 * for the end, and back to the start in that order; again as long as that shortens the phase and
 * stays above the floor. budget: messages and ends that may be placed. Returns the horizon. */
uint32_t improve(const Problem *problem, int32_t *start, uint32_t horizon, uint32_t floor,
                 uint64_t budget);

/* Largest tile horizon of a set of starts; tile_horizon may be NULL. */
uint32_t problem_horizon(const Problem *problem, const int32_t *start, uint32_t *tile_horizon);
/* No schedule can end before. */
uint32_t problem_floor(const Problem *problem);

typedef enum PlaceOrder {
    PLACE_LISTED,
    PLACE_ROTATED,
    PLACE_SPREAD,
    PLACE_LOADED,
    PLACE_WIDE,
    PLACE_NARROW,
    PLACE_ORDERS
} PlaceOrder;
void problem_order(const Problem *problem, PlaceOrder kind, uint32_t *order);
void order_by_start(const Problem *problem, const int32_t *start, uint32_t *order);

/* ---- events.c: what one tile does in a phase ---- */

typedef struct TileSend {
    int32_t start;
    uint32_t items, message;
    uint8_t sctl;
} TileSend;

typedef struct TileWindow {  /* words of one message arriving in memory: write slots [start, end) */
    int32_t start, end, lag; /* lag: from the mux, so the select is at start - lag */
    uint32_t end_number;     /* of the problem */
    bool paired;
} TileWindow;

typedef struct TileControl {
    int32_t event;
    uint8_t stream, selector; /* as in the fabric: 0 PIC, 1 XPIC */
    uint32_t value; /* source, format; of a pointer the window, whose address comes later */
} TileControl;

typedef struct TileEvents { /* arrays are reused from tile to tile */
    uint32_t tile;
    ARRAY(TileSend) sends;       /* ascending */
    ARRAY(TileWindow) windows;   /* ascending */
    ARRAY(TileControl) controls; /* ascending, PIC before XPIC of the same event */
    ARRAY(TileControl) pointers; /* scratch */
    int32_t horizon;             /* 0: takes no part */
    bool has_pairs;              /* receives 64-bit items */
} TileEvents;

/* False when controls of a 64-bit receive would coincide with others; *coincides is the message. */
bool events_collect(const Problem *problem, const int32_t *start, uint32_t tile,
                    uint32_t tile_horizon, TileEvents *out, uint32_t *coincides);
void events_free(TileEvents *events);

/* ---- row.c: events -> words ---- */

typedef struct RowWriter RowWriter; /* scratch, reused from tile to tile */
RowWriter *row_open(void);
void row_close(RowWriter *writer);
/* Chooses the instructions. Returns the number of words with the return, 0 when two-word
 * instructions can not be aligned (only with 64-bit receives). */
uint32_t row_lay_out(RowWriter *writer, const TileEvents *events);
/* Words of the row laid out last. source_item: item address of each send's first item; pointer:
 * word address of each window. */
void row_emit(const RowWriter *writer, const TileEvents *events, const uint32_t *source_item,
              const uint32_t *pointer, uint32_t *words);

#endif
