/* target.c - the chip's facts as functions: tile map, routes, names, times.
 *
 * A physical tile number is p = 64 row + 4 column + 2 lane + sub (exchange.md 1.2); everything
 * about routes follows from those four fields by the closed forms of exchange.md 3.2. */
#include "target/target.h"

#include <stdlib.h>

enum {
    BLOCK_PAIRS = 23, /* tile pairs of one column: also the number of rows */
    TILE_ROWS = 23
};

typedef struct Place { /* fields of a physical tile number */
    int row, column, half, folded, lane, sub;
} Place;

static Place place_of(uint32_t physical)
{
    Place place = {.row = (int)(physical >> 6),
                   .column = (int)(physical >> 2 & 15),
                   .lane = (int)(physical >> 1 & 1),
                   .sub = (int)(physical & 1)};
    place.half = place.column >> 3;
    place.folded = place.half ? 15 - place.column : place.column; /* the halves are mirror images */
    return place;
}

uint32_t target_physical(uint32_t logical)
{
    uint32_t pair = logical / 2, lane = logical % 2;
    uint32_t block = pair / BLOCK_PAIRS, k = pair % BLOCK_PAIRS;
    uint32_t row = block % 2 ? TILE_ROWS - 1 - k : k; /* blocks run down and up in turn */
    return 64 * row + 4 * (block / 2) + 2 * lane + block % 2;
}

uint32_t target_logical(uint32_t physical)
{
    Place place = place_of(physical);
    uint32_t block = (uint32_t)(2 * place.column + place.sub);
    uint32_t k = (uint32_t)(block % 2 ? TILE_ROWS - 1 - place.row : place.row);
    return 2 * (BLOCK_PAIRS * block + k) + (uint32_t)place.lane;
}

/* D: the signed horizontal displacement, never 0. */
static int displacement(const Place *s, const Place *d)
{
    static const int8_t lane_step[2][2] = {{1, 5}, {2, 4}}; /* [lane][half ^ sub] of the receiver */
    int crossing = s->half ^ s->sub;
    return 6 * (d->folded - s->folded - crossing) + lane_step[d->lane][d->half ^ d->sub];
}

uint32_t target_direction(uint32_t s, uint32_t d)
{
    Place from = place_of(s), to = place_of(d);
    return displacement(&from, &to) > 0 ? 1 : 2;
}

int target_route_time(uint32_t s, uint32_t d)
{
    Place from = place_of(s), to = place_of(d);
    int kappa = to.half ? 3 : 5;
    return kappa * (from.folded - to.folded) + 2 * (from.row - to.row) +
           abs(displacement(&from, &to)) - 30 + (from.half && !to.half ? 16 : 0);
}

uint32_t target_early_member(uint32_t s, uint32_t d)
{
    Place to = place_of(d);
    bool lane = (target_direction(s, d) == 2) != (to.half != to.sub);
    return (d & ~2u) | (lane ? 2u : 0);
}

uint32_t target_worker_slots(Form form)
{
    switch (form) {
    case FORM_f16v2sigm_aaan:
    case FORM_f16v2ln_aaan:
    case FORM_f16v2log2_aaan:
        return 2;
    case FORM_f32oorx_aaan:
        return 4;
    case FORM_f32sqrt_aaan:
    case FORM_f32div_aaan:
    case FORM_f32tanh_aaan:
    case FORM_f32sigm_aaan:
        return 5;
    case FORM_f32ln_aaan:
    case FORM_f32log2_aaan:
        return 6;
    default:
        return 1;
    }
}

const char *target_exception_name(uint32_t type)
{
    static const char *const names[] = {"NONE",          "RBRK",       "PBRK0",      "PBRK1",
                                        "BOS",           "FP",         "CONFLICT",   "EXCONF",
                                        "INVALID_ADDR",  "INVALID_OP", "INVALID_PC", "DBRK",
                                        "INVALID_INSTR", "EXERR",      "MEMERR",     "IBRK"};
    return type < countof(names) ? names[type] : "UNKNOWN";
}

const char *target_receive_error_name(uint32_t error)
{
    static const char *const names[] = {"NONE",    "CLASH_INSTR", "CLASH_IFETCH", "ADDR",
                                        "WORKERS", "DBRK",        "CONF",         "MODI"};
    return error < countof(names) ? names[error] : "UNKNOWN";
}

uint32_t target_boundary_cost(void)
{
    /* Constant 1, its put into INCOMING_DCOUNT, the sync, its release, the call into the row. */
    return 1 + TIMING_RESULT + 1 + TIMING_EXCHANGE_SYNC + 1 + TIMING_BRANCH;
}

uint32_t target_phase_cost(uint32_t words, uint32_t sources)
{
    if (words == 0)
        return 0;
    /* The busiest tile can not be done before its first select, its words, the way to memory in the
     * last row (52 + 2 * 22) and the guard: 102 events. Schedules end 102 to 240 above the words; a
     * change of source costs half an event when several receivers take the words together. */
    enum { LATENCY = 112 };
    return target_boundary_cost() + LATENCY + words + sources / 2;
}
