/* fabric.h - the exchange fabric: delivers what the tiles' rows sent, event by event.
 *
 * While a tile runs its row, the core only records: stretches of sent items and control writes,
 * with the absolute cycles at which they act. When all tiles are past their rows (each stops before
 * its first memory access or launch after the row) the fabric replays the phase by the model of
 * exchange.md 3.4 and 3.10, writes the words, and reports violations. */
#ifndef IPU_SIM_FABRIC_H
#define IPU_SIM_FABRIC_H

#include "sim/sim.h"

typedef struct FabricSend {
    uint64_t cycle;   /* of the first item */
    uint32_t address; /* byte address, OUTGOING_BASE included */
    uint32_t items;
    uint8_t sctl; /* direction bits, +4: 64-bit items; 0 is not recorded */
} FabricSend;

typedef struct FabricControl {
    uint64_t cycle; /* the event number t of exchange.md, as an absolute cycle (event 0 = event0) */
    uint32_t value;
    uint8_t stream;   /* 0 PIC, 1 XPIC */
    uint8_t selector; /* 0 or 1 */
    uint32_t pc;      /* for messages */
} FabricControl;

typedef struct FabricTile {        /* one phase of one tile; arrays are reused */
    ARRAY(FabricSend) sends;       /* ascending */
    ARRAY(FabricControl) controls; /* ascending */
    uint64_t row_start, row_end;   /* cycle of event 0 and of the row's return */
    uint32_t row_first, row_last;  /* lowest and highest code address fetched in the row */
    bool active;                   /* took part (sync 3), ran a row with events */
    uint32_t incoming_base;
    /* kept from phase to phase: */
    uint32_t mux, mux_pair, format, pointer; /* CSR values; pointer: byte address */
    uint8_t *memory;                         /* SRAM_BYTES */
    uint8_t *defined;                        /* bitmap of initialised words, or NULL */
    uint64_t words_sent, words_received;     /* of this phase, filled by the fabric */
} FabricTile;

/* Replays one phase over `count` physical tiles. False: *fault is set. */
bool fabric_deliver(FabricTile *tiles, uint32_t count, bool verify, Pool *pool, SimFault *fault);

#endif
