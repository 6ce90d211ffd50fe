/* price.h - the timeline of a lowered program (private to src/compile). */
#ifndef IPU_COMPILE_PRICE_H
#define IPU_COMPILE_PRICE_H

#include "exchange/exchange.h"

typedef struct PriceStep {
    uint8_t kind; /* StepKind */
    const char *operation;
    uint32_t count;   /* STEP_REPEAT: iterations */
    uint32_t *cycles; /* per tile: of its calls, or events of its row; 0: takes no part */
} PriceStep;

typedef struct PriceProgram {
    uint32_t tiles;
    ARRAY(PriceStep) steps;
} PriceProgram;

typedef struct Price {
    double cycles;   /* as the simulator counts them (timing.md 2) */
    double exchange; /* events of the longest rows */
    double boundary; /* the last tile's end of work to event 0, over all phases */
} Price;

/* schedule NULL: of a program of loads (tile_expand_loads), with phases as long as their loads let
 * expect. */
void price_program(Arena *arena, const TileProgram *program, const Schedule *schedule,
                   PriceProgram *out);
void price_run(const PriceProgram *program, Price *out);
void price_free(PriceProgram *program);

#endif
