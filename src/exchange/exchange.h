/* exchange.h - when every word of every phase leaves, and the rows that make it so.
 *
 * Three steps. Schedule: transfers without addresses -> start and width of every message, per tile
 * horizons, row sizes, and constraints on addresses. Encode: schedule + addresses -> one row of
 * supervisor code per tile and phase. Decode and check: the row's own events against the schedule,
 * and every rule of exchange.md. Event numbers count from the phase's event 0 (exchange.md 3.1). */
#ifndef IPU_EXCHANGE_EXCHANGE_H
#define IPU_EXCHANGE_EXCHANGE_H

#include "target/target.h"
#include "tile/tile.h"

typedef enum ConstraintKind {
    CONSTRAINT_ALIGNED,      /* a at a multiple of `value` bytes */
    CONSTRAINT_SAME_ADDRESS, /* a on tile_a and b on tile_b at equal addresses */
    CONSTRAINT_SEPARATE      /* a and b (same tile) share no memory element */
} ConstraintKind;
typedef struct Constraint {
    uint8_t kind;
    uint32_t tile_a, buffer_a, tile_b, buffer_b, value;
} Constraint;
typedef ARRAY(Constraint) ConstraintArray;

typedef struct MessageSlot { /* of one transfer */
    uint32_t start;          /* S: event in which the first item is sent */
    uint8_t paired;          /* 1: 64-bit items to complete pairs */
} MessageSlot;

typedef struct PhaseSchedule {
    const ExchangePhase *phase; /* what is scheduled: the program's phase, or the same with some
                                   multicasts cut into several with fewer receivers each */
    MessageSlot *slots;         /* per transfer of `phase` */
    uint32_t horizon;           /* largest tile horizon */
    uint32_t bound;       /* largest sum of items one tile sends or receives; multicasts count once,
                             64-bit items block the sender's partner (exchange.md 7.6) */
    uint32_t words_bound; /* the same if every item had 32 bits; 64-bit ones may do better */
    uint32_t floor;       /* no schedule of `phase` ends before: latencies included */
    uint32_t *tile_horizon; /* per logical tile of the program, 0: takes no part */
    uint32_t *row_words;    /* per tile, the return included; the same for any addresses */
} PhaseSchedule;

typedef struct Schedule {
    PhaseSchedule *phases; /* per phase of the program */
    uint32_t phase_count;
    ConstraintArray constraints;
} Schedule;

typedef struct ScheduleOptions {
    bool pairs; /* 64-bit transfers allowed */
} ScheduleOptions;

Status exchange_schedule(Arena *arena, const TileProgram *program, const ScheduleOptions *options,
                         Pool *pool, Schedule *out);

/* Address of a buffer (member 0) on a logical tile: the placement's table. */
typedef uint32_t AddressOf(const void *context, uint32_t tile, uint32_t buffer);

typedef struct Row { /* of one tile in one phase; words is NULL for tiles that take no part */
    uint32_t *words;
    uint32_t count;
} Row;

/* All rows of one phase. Fails when an address breaks a constraint, naming buffer and tile. */
Status exchange_encode_phase(Arena *arena, const TileProgram *program, uint32_t phase,
                             const PhaseSchedule *schedule, AddressOf *address, const void *context,
                             Row *rows);
/* Decodes the rows and checks them against schedule and addresses: every event, every rule. */
Status exchange_check_phase(const TileProgram *program, uint32_t phase,
                            const PhaseSchedule *schedule, AddressOf *address, const void *context,
                            const Row *rows);
/* only: keys of operations, NULL: all; only_tile -1: all, else its messages too. */
void exchange_print(Text *text, const TileProgram *program, const Schedule *schedule,
                    const Map *only, int32_t only_tile);
/* In JSON the ends of messages are [tile, buffer, offset], buffers by number in "buffers". */
json_t *exchange_to_json(const TileProgram *program, const Schedule *schedule, const Map *only,
                         int32_t only_tile);
/* Synthetic phases for tests and the bench: one phase between a source and a target buffer.
 *   gather      in groups: the first tile receives `words` from each of the others
 *   scatter     in groups: the first tile sends other `words` to each of the others
 *   shift       every tile sends to the tile `shift` further on
 *   all-to-all  in groups: every tile sends other `words` to each of the others
 *   all-gather  in groups: every tile sends the same `words` to all others
 *   random      `messages` from random tiles to 1..`fanout` random tiles
 *   mixed       the same with 1..`words` words
 *   multicast   `messages` tiles, evenly spread, send to the `fanout` tiles that follow
 *   paired      in groups: one tile of every pair sends to all other pairs of the group
 *   pieces      in groups: every tile sends to all others, four pieces that lie apart there */
typedef struct Pattern {
    const char *name;
    uint32_t tiles, words, group, shift, fanout, messages, seed;
} Pattern;
extern const char *const exchange_pattern_names[]; /* NULL at the end */
/* The arrays of *out are the caller's to free (array_free); the rest is the arena's. */
Status exchange_pattern(Arena *arena, const Pattern *pattern, TileProgram *out);
/* The same from text: lines "source<TAB>words<TAB>receiver,receiver..."; empty lines and lines that
 * begin with # are skipped. name stands for the text in messages. */
Status exchange_pattern_read(Arena *arena, const char *name, const char *text, TileProgram *out);

void schedule_free(Schedule *schedule); /* its heap arrays; the rest is the arena's */

#endif
