/* fabric_internal.h - the working state of one phase's delivery: fabric.c and fabric_order.c. */
#ifndef IPU_SIM_FABRIC_INTERNAL_H
#define IPU_SIM_FABRIC_INTERNAL_H

#include "sim/fabric.h"

typedef struct FabricPiece { /* captured words, contiguous in time and at both ends in memory */
    uint64_t write_slot, read_slot; /* of the first item */
    uint32_t source;                /* physical tile */
    uint32_t from, to;              /* byte addresses */
    uint32_t items;
    bool wide; /* items of 8 bytes */
} FabricPiece;

typedef struct FabricWork { /* per tile */
    uint32_t tile, pc;
    ARRAY(FabricSend) sends;     /* joined where time and address go on */
    ARRAY(FabricPiece) arrivals; /* captured stretches, before pointers cut them */
    ARRAY(FabricPiece) pieces;
    uint64_t words_sent, words_received;
    uint32_t pointer;
    bool uses_format;
    bool shares_element; /* some element is both sent from and written */
    bool forwards;       /* some word is both sent and written in this phase */
    SimFault fault;      /* the earliest of this tile */
} FabricWork;

typedef struct FabricRun {
    FabricTile *tiles;
    FabricWork *work;
    uint32_t count;
    bool verify;
} FabricRun;

/* fabric_order.c: words that are sent in the phase in which they arrive, in exact order of time. */
void fabric_find_forwarding(const FabricRun *run, FabricWork *work);
bool fabric_is_ordered(const FabricRun *run, const FabricWork *work, const FabricPiece *piece);
void fabric_deliver_ordered(FabricRun *run);
/* A word is as defined as the word it came from. */
void fabric_copy_defined(FabricTile *to, const FabricTile *from, const FabricPiece *piece);

#endif
