/* target.h - facts of the IPU21 chip (C600 card), and nothing else: no policy here.
 *
 * Sources: memory-boot-package.md (SRAM, runtime map), exchange.md (tile map, routes), timing.md
 * (pinned simulator constants). "Choice" marks what hardware documents leave open. */
#ifndef IPU_TARGET_TARGET_H
#define IPU_TARGET_TARGET_H

#include "isa/isa.h"

enum {
    TILES = 1472,
    TILE_WORKERS = 6,
    CLOCK_HZ = 1500000000,

    SRAM_BASE = 0x4c000,
    SRAM_END = 0xe8000,
    SRAM_BYTES = SRAM_END - SRAM_BASE, /* 624 KiB */
    SRAM_LOAD_BASE = 0x4c010,          /* application images start here: the entry stub */
    SRAM_LOAD_END = 0xe7bb0,           /* what the loader can fill: 643 frames of 992 bytes */
    INTERLEAVED_BASE = 0x80000,        /* region 1; code can not execute from here on */
    EXECUTABLE_END = 0x80000,
    ELEMENT_BYTES = 0x4000,             /* region 0 */
    INTERLEAVED_ELEMENT_BYTES = 0x8000, /* region 1: a pair of elements, words alternate */
    FETCH_GUARD_BYTES = 64,             /* supervisor fetch looks this far ahead */

    EXCHANGE_WINDOW = 0x50000, /* host packets and staging; nothing else may live here */
    EXCHANGE_WINDOW_END = 0x58000,
    STATE_BASE = 0x58000, /* runtime state, STATE_* are offsets into it */
    STATE_BYTES = 0x6e0,
    STATE_COMPLETION = 0,     /* word: 1 when the program has ended */
    STATE_START_CYCLE = 4,    /* word: cycle counter before the first step */
    STATE_END_CYCLE = 8,      /* word: after the last step, in programs that record it */
    STATE_COMMAND = 12,       /* word: the host's order at a rendezvous (docs/decisions) */
    STATE_PROGRAM = 16,       /* word: address of the generated program */
    STATE_LOGICAL = 20,       /* word: logical tile number, seeds the random generators */
    STATE_WORKER_BASE = 0xe0, /* worker w: + 0x100 * w */
    STATE_STACK = 0x6e0,      /* the supervisor's stack grows down from here */
    DATA_BASE = 0x586e0,
    LINK_FIRST =
        0x4c018, /* code ranges: [LINK_FIRST, EXCHANGE_WINDOW), [LINK_SECOND, EXECUTABLE_END) */
    LINK_SECOND = 0x5c000,

    MUX_NEUTRAL = 0x640, /* listens to nobody */
    MUX_HOST = 0x600,    /* + column */
    GUARD_EVENTS = 5,    /* after the last write of a row */
    GUARD_EVENTS_PAIRED = 7
};

/* Timing of the simulator (timing.md 1, 2); nobody tunes these. */
enum {
    TIMING_RESULT = 6,          /* supervisor: producer issue to consumer issue */
    TIMING_BRANCH = 8,          /* supervisor: taken branch, call, return */
    TIMING_LAUNCH = 12,         /* run, runall to the first worker slot, at least */
    TIMING_LOCAL_SYNC = 14,     /* after the issue of the last exit */
    TIMING_EXCHANGE_SYNC = 150, /* after the last tile's sync */
    TIMING_HOST_SYNC = 1000
};

/* Logical tile 0..1471 <-> physical tile (exchange.md 1.3). */
uint32_t target_physical(uint32_t logical);
uint32_t target_logical(uint32_t physical);

/* Route from physical s to physical d (s != d), exchange.md 3.2. */
int target_route_time(uint32_t s, uint32_t d);     /* T: mux select at S + T + 1 */
uint32_t target_direction(uint32_t s, uint32_t d); /* 1 or 2 */
static inline int target_row(uint32_t physical)    /* write event = mux event + 52 + 2 * row */
{
    return (int)(physical >> 6);
}

/* The two tiles of a hardware pair share the 64-bit exchange resource. */
static inline uint32_t target_partner(uint32_t physical)
{
    return physical ^ 2;
}
/* The member of d's pair that is reached one event earlier from s, and that therefore owns the
 * source select of a 64-bit receive (exchange.md 3.10). */
uint32_t target_early_member(uint32_t s, uint32_t d);

/* Memory element of an address; elements of region 1 are pairs (exchange.md 4). Two accesses can
 * only conflict when these are equal. */
static inline uint32_t target_element(uint32_t address)
{
    return address < INTERLEAVED_BASE
               ? address / ELEMENT_BYTES
               : 1024 + (address - INTERLEAVED_BASE) / INTERLEAVED_ELEMENT_BYTES;
}

/* Slots that one worker instruction takes (timing.md 1: 1 except some elementary functions). */
uint32_t target_worker_slots(Form form);

typedef enum ExceptionType { /* ETYPE of SSR and WSR (memory-boot-package.md 7.8) */
                             EXCEPTION_NONE,
                             EXCEPTION_RBRK,
                             EXCEPTION_PBRK0,
                             EXCEPTION_PBRK1,
                             EXCEPTION_BOS,
                             EXCEPTION_FP,
                             EXCEPTION_CONFLICT,
                             EXCEPTION_EXCONF,
                             EXCEPTION_INVALID_ADDR,
                             EXCEPTION_INVALID_OP,
                             EXCEPTION_INVALID_PC,
                             EXCEPTION_DBRK,
                             EXCEPTION_INVALID_INSTR,
                             EXCEPTION_EXERR,
                             EXCEPTION_MEMERR,
                             EXCEPTION_IBRK
} ExceptionType;

/* Exception types and exchange receive errors by number; "NONE" for 0 (memory-boot-package.md 7.8).
 */
const char *target_exception_name(uint32_t type);
const char *target_receive_error_name(uint32_t error);

/* What a planner may assume of an exchange phase before it is scheduled: cycles from the last
 * tile's entry to the end. words: the largest sum of words that one tile sends or receives;
 * sources: the most distinct sources of one receiver. Calibrated against the scheduler (tests). */
uint32_t target_phase_cost(uint32_t words, uint32_t sources);
/* Barrier, register setup, sync, call: part of the above, measured on the simulator. */
uint32_t target_boundary_cost(void);

#endif
