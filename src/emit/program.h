/* program.h - tables that both emission passes read, and the generator of one tile's program. */
#ifndef IPU_EMIT_PROGRAM_H
#define IPU_EMIT_PROGRAM_H

#include "emit/emit.h"

/* What a call needs beside operands: found once per class. */
typedef struct CallInfo {
    uint32_t symbol; /* address; 0 while sizing */
    KernelContract contract;
} CallInfo;

typedef struct ProgramTables { /* memory in the arena */
    const TileProgram *program;
    CallInfo *calls;      /* per class */
    CallInfo *copies;     /* per local copy */
    uint32_t *class_of;   /* [step * tiles + tile]: class + 1; 0: the tile does not take part */
    uint32_t *copy_first; /* [step * tiles + tile]: first local copy of the tile in the step */
    uint32_t
        *send_stride; /* [phase * tiles + tile]: bytes the sender's sources move per iteration */
    uint32_t complete, sample_cycle; /* addresses of runtime services; 0 while sizing */
} ProgramTables;

/* linked NULL: sizing. */
Status tables_build(Arena *arena, const TileProgram *program, const LinkImage *linked,
                    ProgramTables *out);

typedef ARRAY(uint32_t) WordArray;
typedef ARRAY(CodeMark) MarkArray;

typedef struct TileProgramCode {
    WordArray words;
    MarkArray marks;
    uint32_t steps_start, steps_end; /* byte offsets from the program's start */
    uint32_t samples;                /* words that the tile records */
} TileProgramCode;

enum { IDLE_TILE = 0xffffffffu };

/* placement NULL: sizing (addresses are stand-ins of the same length). takes_part[phase * tiles +
 * tile] tells whether the tile has a row. */
void program_generate(const ProgramTables *tables, const Placement *placement, uint32_t tile,
                      TileProgramCode *out);
void program_code_free(TileProgramCode *code);

#endif
