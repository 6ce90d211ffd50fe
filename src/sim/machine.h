/* machine.h - all tiles: shared by sim.c, which runs them, and share.c, which runs some of them
 * once for many. */
#ifndef IPU_SIM_MACHINE_H
#define IPU_SIM_MACHINE_H

#include "sim/core.h"

struct Group { /* tiles that do the same; the lowest one stands for all */
    uint32_t leader;
    ARRAY(uint32_t) followers; /* ascending */
    uint64_t bundles;          /* of the leader's supervisor when it began */
    uint8_t *common;           /* bitmap: words known to be the same on all of them */
    uint8_t *stored;           /* bitmap: words that the leader has stored for all */
};

struct Sim {
    uint32_t count;
    Tile *tiles;
    FabricTile *fabric;
    uint8_t *memory, *defined; /* of all tiles, one after the other; zero until touched */
    Pool *pool;
    Cache **caches; /* one for every thread */
    Hooks hooks;
    bool verify, sharing;
    uint64_t max_cycles;
    bool window_open;   /* released, not delivered yet */
    bool at_rendezvous; /* the next sim_run releases it */
    SimFault fault;
    uint32_t *live; /* tiles that are executed, ascending: all but followers */
    uint32_t live_count;
    uint32_t *runnable;
    uint32_t runnable_count;
    uint32_t releases; /* exchange barriers so far */
    uint64_t exchange_words;
    ARRAY(SimPhase) phases;
};

enum { DEFINED_BYTES = SRAM_BYTES / 4 / 8 };

/* Looks for tiles that stand at one barrier in one state and lets one execute for all. */
void share_look(Sim *sim);
/* A leader stopped with TILE_ASKING: makes sure of what it asked, or ends the group. */
void share_answer(Sim *sim, Tile *tile);
/* From now on the tile is executed by itself; its state is as if it always had been. */
void share_leave(Sim *sim, uint32_t tile);
void share_leave_all(Sim *sim);
/* Bundles that the leader issued for each of its followers. */
uint64_t share_bundles(const Tile *leader);
const Tile *share_leader(const Sim *sim, uint32_t tile); /* the tile itself when it is alone */
void share_destroy(Sim *sim);

#endif
