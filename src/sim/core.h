/* core.h - what the files of the simulator share: contexts, tiles, decoded instructions.
 *
 * The one idea: an instruction is decoded once into a Decoded with a function for each lane and its
 * operands as bytes; executing it is one call per lane. A handler changes its context and answers
 * with an Outcome: 0 for "done", an exception type, or something the issuing loop must act on. */
#ifndef IPU_SIM_CORE_H
#define IPU_SIM_CORE_H

#include "sim/fabric.h"
#include "sim/float.h"
#include "sim/sim.h"

enum { TILE_CONTEXTS = 1 + TILE_WORKERS, CODE_BYTES = EXECUTABLE_END - SRAM_BASE };
#define NEVER UINT64_MAX

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* What a handler answers: 0, an exception type, or one of these. */
typedef enum Outcome {
    OUTCOME_DONE = 0,
    OUTCOME_EXIT = 16, /* the worker ends */
    OUTCOME_RETURN,    /* branch to SIM_RETURN_ADDRESS: the end of a sim_call */
    OUTCOME_COMPLETE,  /* branch to 0 after the completion word */
    OUTCOME_BLOCK,     /* the supervisor waits */
    OUTCOME_UNDEFINED, /* a read of words that Context.defined does not have */
    OUTCOME_LIMIT      /* a fault of the simulator's own: detail says which */
} Outcome;

typedef struct Context Context;
typedef struct Tile Tile;
typedef struct Group Group;
typedef struct Decoded Decoded;
typedef uint32_t Execute(Context *c, const Decoded *d);

/* Part of a load that goes to the ARF: words of Context.load -> registers. */
typedef struct LoadPart {
    uint8_t from, to, count;
} LoadPart;

enum { /* Decoded.kind */
       KIND_MEMORY = 1 << 0,
       KIND_LAUNCH = 1 << 1,
       KIND_SYNC = 1 << 2,
       KIND_EXCHANGE_CSR = 1 << 3,
       KIND_EXCHANGE = 1 << 4,
       KIND_PRIVATE = 1 << 5 /* touches what tiles of one group do not share */
};

struct Decoded {
    uint64_t words; /* the code in memory that this came from */
    uint64_t care;  /* which of its bits count: one word or two */
    Execute *main;
    FloatExecute *aux;        /* NULL: none */
    int32_t op[ISA_OPERANDS]; /* of the main lane, as in Insn */
    int32_t aux_op[ISA_OPERANDS];
    uint8_t out[ISA_OPERANDS]; /* MRF index to write: 16, 17 for registers that drop writes */
    uint8_t size;              /* bytes; 0: not decoded yet */
    uint8_t period;            /* cycles until the worker's next bundle */
    uint8_t parts;             /* how many of part[] are used */
    LoadPart part[2];
    bool body;     /* may stand in the body of rpt */
    bool foreseen; /* stretch describes all it does, or it is an rpt beside nothing */
    bool guard;    /* the auxiliary lane may fault after the main lane has written */
    uint8_t kind;
    uint16_t reads, writes; /* MRF masks, for the supervisor's scoreboard */
    uint16_t form;          /* of the main lane */
    uint32_t payload;
    FloatOp stretch;
};

struct Context {
    uint32_t m[18]; /* 12..15 hold what they read as; 16, 17 swallow dropped writes */
    uint32_t load[4];
    uint32_t pc, next_pc;
    uint32_t loop_end; /* end of the body of a running rpt, else 0 */
    uint32_t number;   /* 0: supervisor, 1..6: workers */
    uint8_t *memory;   /* of the tile */
    uint8_t *defined;  /* bitmap of words that may be read, or NULL: all */
    uint8_t *written;  /* bitmap in which stores leave marks, or NULL */
    Tile *tile;
    uint64_t next; /* earliest issue cycle; NEVER: inactive or waiting */
    uint64_t bundles;
    FloatState f;
    uint32_t repeat_count, repeat_first, repeat_end;
    uint32_t break_id;
    bool taken; /* the supervisor's branch was taken */
    bool loop_fault;
    uint8_t exception; /* ETYPE of the last one */
    uint8_t status;    /* CTXT_STS: 0 inactive, 1 active, 2 debug exception, 3 exception */
    /* Old contents of a store, kept while the bundle's other lane can still fault. */
    bool undo_armed;
    uint8_t undo_bytes;
    uint32_t undo_offset;
    uint64_t undo_value, undo_defined;
};

typedef enum TileState {
    TILE_RUNNING,
    TILE_WAITING,  /* at a barrier of several tiles: zone, wait_cycle */
    TILE_PAUSED,   /* past its row, for the fabric to deliver */
    TILE_ENDED,    /* completed */
    TILE_RETURNED, /* sim_call is over */
    TILE_STEPPED,
    TILE_FAULTED,
    TILE_ASKING,   /* stands for a group: see asked; asked_bytes 0: does what it must do alone */
    TILE_FOLLOWING /* another tile stands for this one */
} TileState;

typedef enum Window {
    WINDOW_NONE,
    WINDOW_OPEN,      /* released from an exchange barrier: events are recorded */
    WINDOW_DELIVERED, /* the fabric has replayed the phase */
    WINDOW_HOST       /* after a host barrier */
} Window;

typedef struct Stream { /* the outgoing one */
    uint32_t address;   /* byte address of the next item */
    uint8_t sctl;
} Stream;

typedef struct Recorder {  /* sim_record */
    uint32_t first, words; /* the range of the addresses */
    uint8_t *marked;       /* bit by word from `first` on */
    ARRAY(SimSample) samples;
} Recorder;

struct Tile {
    /* What the supervisor's execution decides: tiles that do the same share all of this (share.c).
     * Up to `number`. */
    uint64_t ready[18];  /* supervisor registers: first cycle in which a consumer may issue */
    uint64_t cycle;      /* the one being executed, or the next one */
    int64_t last_exit;   /* issue cycle of the last worker's exit */
    uint64_t local_wait; /* issue cycle of a sync 2 that waits, or NEVER */
    uint32_t active;     /* running workers */
    TileState state;
    uint32_t zone; /* of the barrier that is waited for */
    uint64_t wait_cycle;
    bool sans_pending; /* announced and not yet taken by sync 1 */
    uint32_t sans_zone;
    uint64_t sans_cycle;
    Window window;
    bool took_part, row_begun;
    Stream stream;
    uint32_t received; /* words since INCOMING_DCOUNT was written */
    /* supervisor CSRs */
    bool consensus, launch_error;
    uint32_t receive_error;
    uint32_t fp_ictl, fp_infmt, fp_iscl, weight_pointer;
    uint32_t debug_data, dcount, outgoing_base, exchange_ctl;
    uint64_t work_end; /* last cycle of work before a barrier (docs/simulator.md) */
    uint64_t limit;    /* of cycles */
    uint32_t watch_pc;
    bool watched;
    uint64_t watch_cycle;

    uint32_t number; /* physical */
    uint8_t *memory;
    FabricTile *fabric;
    Group *group; /* that this tile stands for, or NULL */
    Context contexts[TILE_CONTEXTS];
    uint64_t launches, work_bundles; /* worker bundles seen that were more than an exit */
    uint64_t launches_before;        /* as of the last look for tiles that do the same */
    Weights weights;
    Recorder *recorder; /* NULL: none */
    /* how the current run ends */
    bool calling;
    uint32_t call_context;
    uint32_t step_context; /* 1 + context that is stepped, 0: none */
    SimFault fault;
    const char *detail; /* of a fault, while it is being raised */
    uint32_t detail_address;
    uint32_t fault_at;           /* the instruction to show for a fault */
    uint32_t asked, asked_bytes; /* TILE_ASKING: what must be the same on all tiles of the group */
};

/* --- decode.c: one cache per host thread */
typedef struct Cache Cache;
typedef struct Stretch Stretch;
Cache *cache_create(void);
void cache_destroy(Cache *cache);
/* The worker's entry for pc (in the executable range). Decodes when the memory holds other words.
 */
const Decoded *cache_worker(Cache *cache, const Tile *tile, uint32_t pc);
const Decoded *cache_supervisor(Cache *cache, const Tile *tile, uint32_t pc);
struct Cache {
    Decoded *worker;     /* by address */
    Decoded *supervisor; /* by hash of the word: supervisor code differs from tile to tile */
    Decoded *halves;     /* single worker words by hash */
    Decoded outside;     /* pc out of the executable range */
    Stretch *stretch;
    uint64_t alone, in_turns; /* bundles in stretches, workers one by one and in turns */
    FloatState scratch;       /* for trying what an instruction thinks of its operands */
    Weights scratch_weights;
};

/* --- handlers by form, NULL where a file has none */
Execute *integer_handler(Form form);    /* execute_integer.c */
Execute *memory_handler(Form form);     /* execute_memory.c */
Execute *control_handler(Form form);    /* execute_control.c */
Execute *supervisor_handler(Form form); /* execute_supervisor.c */

uint32_t raise_invalid_instruction(Context *c, const Decoded *d);
uint32_t raise_invalid_operand(Context *c, const Decoded *d);
uint32_t raise_invalid_pc(Context *c, const Decoded *d);

/* --- csr.c; the answer is an Outcome. force writes read-only registers too. */
uint32_t csr_read(Context *c, uint32_t number, uint32_t *value);
uint32_t csr_write(Context *c, uint32_t number, uint32_t value, bool force);

/* --- stretch.c: room for its work, one for each host thread */
Stretch *stretch_create(void);
void stretch_destroy(Stretch *stretch);
/* All running workers, the first of which issues in `cycle`, go on by the same number of bundles,
 * as if one by one, and before `until`. Returns that number, 0 when it is not worth it. */
uint32_t stretch_run(Stretch *stretch, Tile *tile, Cache *cache, uint64_t cycle, uint64_t until);

/* --- tile.c */
typedef struct Hooks {
    SimTrace *trace;
    void *trace_context;
    uint32_t break_pc; /* 0: none */
} Hooks;
/* Runs until the state is not TILE_RUNNING. */
void tile_run(Tile *tile, Cache *cache, const Hooks *hooks);
void tile_launch(Tile *tile, uint32_t worker, uint32_t entry, uint32_t vertex_base, uint64_t cycle);
/* A sync 2 ends: whether the workers before it did anything. */
void tile_joined(Tile *tile, uint64_t cycle);
void tile_fault(Tile *tile, Context *c, uint32_t type, uint64_t cycle);
void context_export(Context *c, SimContext *out);
void context_import(Context *c, const SimContext *in);

/* --- memory access, used by handlers */
static inline bool sram_place(uint32_t address, uint32_t bytes, uint32_t *offset)
{
    *offset = address - SRAM_BASE;
    return likely(*offset <= SRAM_BYTES - bytes && !(address & (bytes - 1)));
}

/* Whether accesses of up to 8 bytes share a memory element. In region 0 that is 16 KiB; in region
 * 1, 32 KiB share a pair of elements, even 8-byte words in one and odd ones in the other. */
static inline bool share_element(uint32_t a, uint32_t b)
{
    uint32_t within = a < INTERLEAVED_BASE ? ELEMENT_BYTES : 8;
    return !((a ^ b) & (~(INTERLEAVED_ELEMENT_BYTES - 1u) | within));
}

static inline bool words_defined(const uint8_t *defined, uint32_t offset, uint32_t bytes)
{
    for (uint32_t word = offset / 4; word <= (offset + bytes - 1) / 4; word++)
        if (!(defined[word / 8] >> (word % 8) & 1))
            return false;
    return true;
}

static inline void words_define(uint8_t *defined, uint32_t offset, uint32_t bytes)
{
    for (uint32_t word = offset / 4; word <= (offset + bytes - 1) / 4; word++)
        defined[word / 8] |= (uint8_t)(1u << (word % 8));
}

#endif
