/* sim.h - the simulator: 1,472 tiles (or one), executed instruction by instruction.
 *
 * Every tile has its memory, a supervisor and six workers, issued in exact barrel order; between
 * barriers tiles run independently on the host's threads; an exchange phase is resolved by the
 * fabric from what the rows really did. Cycle counts depend on nothing but the program. Faults stop
 * the machine and say tile, context, PC, disassembly, cycle. Rules: docs/simulator.md, timing.md.
 *
 * Tiles are physical here. */
#ifndef IPU_SIM_SIM_H
#define IPU_SIM_SIM_H

#include "isa/isa.h"
#include "target/target.h"

typedef struct Sim Sim;

/* Where sim_call's return address points: outside the memory, reachable by every branch. */
enum { SIM_RETURN_ADDRESS = 0x1ffffc };

typedef struct SimOptions {
    uint32_t tiles;      /* 1472; 1 for a single tile without fabric */
    unsigned threads;    /* 0: all cores */
    bool verify;         /* check uninitialised reads, stray words (slower) */
    bool no_sharing;     /* execute tiles that do the same one by one too: for tests */
    uint64_t max_cycles; /* per sim_run: a runaway ends in a fault; 0: 2^62 */
} SimOptions;

typedef struct SimFault {
    bool set;
    uint32_t tile, context; /* context 0: supervisor, 1..6: workers */
    uint32_t pc, type;      /* exception type of target.h; 0 for simulator limits */
    uint64_t cycle;
    char instruction[96];
    char message[256];
} SimFault;

typedef enum SimStop {
    SIM_RENDEZVOUS, /* all tiles wait at a host sync (7 / 15) */
    SIM_COMPLETE,   /* every tile has ended (branch to 0 after completion) */
    SIM_FAULT,
    SIM_RETURNED /* single tile entered by sim_call: it returned */
} SimStop;

Status sim_create(const SimOptions *options, Sim **out);
void sim_destroy(Sim *sim);

/* Memory of a tile: SRAM_BYTES at SRAM_BASE. In verify mode only what sim_write wrote counts as
 * defined. */
uint8_t *sim_memory(Sim *sim, uint32_t tile);
Status sim_write(Sim *sim, uint32_t tile, uint32_t address, const void *data, uint32_t bytes);
Status sim_read(Sim *sim, uint32_t tile, uint32_t address, void *data, uint32_t bytes);
void sim_set_entry(Sim *sim, uint32_t tile, uint32_t pc); /* supervisor starts there, cycle 0 */

/* Runs until all tiles wait for the host, or ended, or one faulted. After SIM_RENDEZVOUS the next
 * sim_run releases it (TIMING_HOST_SYNC after the last tile). */
SimStop sim_run(Sim *sim);
const SimFault *sim_fault(const Sim *sim);

/* Executes one instruction or bundle of one context at pc. SIM_RETURNED, or SIM_FAULT. */
SimStop sim_step(Sim *sim, uint32_t tile, uint32_t context, uint32_t pc);

/* Any context about to execute pc faults with type IBRK. 0 turns it off. */
void sim_break(Sim *sim, uint32_t pc);

/* Watch: the issue cycle of the supervisor's instruction at pc on a tile is kept (the last one). */
void sim_watch(Sim *sim, uint32_t tile, uint32_t pc);
bool sim_watched(const Sim *sim, uint32_t tile, uint64_t *cycle);

/* Recording: every issue of the supervisor at one of these addresses of a tile (ascending) is kept,
 * with its cycle, from the last host rendezvous on. Costs nothing on tiles without it. */
typedef struct SimSample {
    uint64_t cycle;
    uint32_t pc;
} SimSample;
void sim_record(Sim *sim, uint32_t tile, const uint32_t *addresses, uint32_t count);
const SimSample *sim_recorded(const Sim *sim, uint32_t tile, uint32_t *count);

/* Between two host rendezvous. */
typedef struct SimPhase {      /* of every exchange barrier passed since the last rendezvous */
    uint64_t entered;          /* last cycle in which a taking-part tile finished work before it */
    uint64_t released, event0; /* barrier release; event 0 of the rows */
    uint64_t ended;            /* last row's end, over tiles */
    uint64_t words_sent, words_received;
} SimPhase;
const SimPhase *sim_phases(const Sim *sim, uint32_t *count);
uint64_t sim_cycle(const Sim *sim, uint32_t tile);

/* Statistics since creation: bundles issued by workers, by the supervisor, over all tiles. */
typedef struct SimCounts {
    uint64_t worker_bundles, supervisor_instructions, exchange_words;
} SimCounts;
SimCounts sim_counts(const Sim *sim);

/* One context's registers, for the kernel author's bench and for tests. */
typedef struct SimContext {
    uint32_t pc, m[16], a[16]; /* of m, the first 12 can be set; $m12, $m13 follow their CSRs */
    uint32_t csr[512];         /* by number, upper space from 0x100 */
    uint32_t acc[32];          /* F32 bits */
    uint64_t bundles;          /* issued so far */
} SimContext;
void sim_get_context(const Sim *sim, uint32_t tile, uint32_t context, SimContext *out);
void sim_set_context(Sim *sim, uint32_t tile, uint32_t context, const SimContext *in);
/* One CSR by number, read-only ones too; PRNG_SEED and FP_CLR act. False: there is no such one. */
bool sim_set_csr(Sim *sim, uint32_t tile, uint32_t context, uint32_t number, uint32_t value);
/* The common weights, CWEI[0..63]. */
uint64_t sim_get_weight(const Sim *sim, uint32_t tile, uint32_t index);
void sim_set_weight(Sim *sim, uint32_t tile, uint32_t index, uint64_t value);

/* Enters code on a single tile as the runtime would: supervisor call (return address in $m10, stack
 * in $m11) or one worker (context 1..6), and runs until it returns / exits or faults. Cycles from
 * entry to return. */
SimStop sim_call(Sim *sim, uint32_t tile, uint32_t context, uint32_t pc, uint64_t *cycles);

/* Trace: called for every bundle issued. NULL turns it off. Single-threaded while on. */
typedef void SimTrace(void *context, uint32_t tile, uint32_t executing, uint64_t cycle, uint32_t pc,
                      const Insn *first, const Insn *second, const SimContext *after);
void sim_trace(Sim *sim, SimTrace *trace, void *context);

#endif
