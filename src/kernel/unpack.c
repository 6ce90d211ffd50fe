/* unpack.c - an order of the matrix unit into row-major F16 matrices. kernels/unpack.S. */
#include "kernel/pack.h"

typedef enum Way { ROWS, PAIRS, STREAM, PANELS } Way; /* as in unpack.S */

static Way way_of(const Rearrangement *r)
{
    if (r->order != ORDER_TRANSPOSED_LEFT)
        return ROWS;
    bool words = r->columns % 4 == 0 && r->align == 8;
    if (words && r->matrices == 1 && r->columns == 16 && r->physical_columns == 16 &&
        r->pitch == 32 && r->rows % 16 == 0)
        return PANELS;
    return words && r->columns >= 8 && 3 * r->pitch / 8 <= 512 ? STREAM : PAIRS;
}

static uint32_t piece_step(const Rearrangement *r)
{
    return 32 * r->matrices * r->physical_rows;
}

/* Bytes from matrix to matrix of the ordered side. */
static uint32_t matrix_bytes(const Rearrangement *r)
{
    return r->order == ORDER_LEFT ? 32 * r->physical_rows
                                  : 2 * r->physical_rows * r->physical_columns;
}

static Status contract(const KernelSpec *spec, KernelContract *out)
{
    int32_t order = spec->p[PACK_ORDER];
    if (order != ORDER_LEFT && order != ORDER_TRANSPOSED_LEFT)
        return status_error("order %d is not supported", order);
    TRY(rearrangement_check(spec));
    Rearrangement r = rearrangement_of(spec);
    TRY(spec_range(spec, PACK_COLUMNS, 2, 16382, 2));
    TRY(spec_range(spec, PACK_PITCH, 2, 16382, 2));
    if (order == ORDER_TRANSPOSED_LEFT) {
        TRY(spec_range(spec, PACK_PHYSICAL_ROWS, 16, 32768, 16));
        TRY(spec_range(spec, PACK_PHYSICAL_COLUMNS, 16, 1008, 16));
    }
    Order from = {.kind = (uint8_t)order};
    contract_operand(out, "output", true, PRECISION_F16, ORDER_ROWS,
                     (uint32_t)rearrangement_row_major_bytes(&r), r.align);
    contract_operand(out, "input", false, PRECISION_F16, from, (uint32_t)rearrangement_bytes(&r),
                     8);
    out->operands[0].reads_old = r.pitch != 2 * r.columns; /* what lies between rows stays */
    if (way_of(&r) >= STREAM)
        contract_separate(out, 0, 1);
    contract_define(out, "UNPACK_WAY", (int32_t)way_of(&r));
    contract_define(out, "UNPACK_MATRICES", (int32_t)r.matrices);
    contract_define(out, "UNPACK_ROWS", (int32_t)r.rows);
    contract_define(out, "UNPACK_COLUMNS", (int32_t)r.columns);
    contract_define(out, "UNPACK_PITCH", (int32_t)r.pitch);
    contract_define(out, "UNPACK_PHYSICAL_COLUMNS", (int32_t)r.physical_columns);
    contract_define(out, "UNPACK_PIECE_STEP", (int32_t)piece_step(&r));
    contract_define(out, "UNPACK_MATRIX_BYTES", (int32_t)matrix_bytes(&r));
    contract_define(out, "UNPACK_ALIGN", (int32_t)r.align);
    out->stack_bytes = 8;
    return STATUS_OK;
}

/* Worker slots, in the order of unpack.S. */

static uint64_t rows_slots(const Rearrangement *r, uint32_t w)
{
    bool rest = r->rows % TILE_WORKERS != 0, share = r->rows >= TILE_WORKERS;
    uint32_t mine = share_of_worker(r->rows, w), word = r->align == 8 ? 2 : 3;
    uint32_t whole = r->columns / 16, words = r->columns % 16 / 4, half = r->columns % 4 ? 2 : 0;
    if (mine == 0)
        return 2;
    uint64_t row = 4 + (whole ? 1 + 4ull * word * whole : 0) + words * word + half + 1;
    return even_slots((!rest ? 1 : share ? 2 : 3) + 4) + mine * row;
}

static uint64_t pairs_slots(const Rearrangement *r, uint32_t w)
{
    uint32_t full = r->rows / 4, some = r->rows % 4;
    /* solo instructions from next_rows to a body, and to the other one behind it */
    uint64_t head = 13 + (some && full ? 2 : 0), slots = 2;
    for (uint32_t q = w; q < ceil_div_u32(r->rows, 4); q += TILE_WORKERS) {
        uint32_t have = q < full ? 4 : some;
        uint32_t pair = have == 4 ? 7 : 4 + have;
        uint64_t fill = !some || q >= full ? even_slots(head + 1) - head : 2;
        slots += head + fill + 1 + (uint64_t)pair * (r->columns / 2) + 2;
    }
    return slots + 2;
}

static uint64_t stream_slots(const Rearrangement *r, uint32_t w)
{
    uint32_t full = r->rows / 4, some = r->rows % 4, fork = full && some ? 2 : 0;
    uint64_t slots = 5;
    for (uint32_t q = w; q < full; q += TILE_WORKERS)
        slots += 10 + fork + 1 + r->columns + 7 + (r->columns > 8) + 1;
    bool last = some && full % TILE_WORKERS == w;
    return slots + (last ? 10 + fork + 6 + (4ull + some) * (r->columns / 2) : 2);
}

/* From the constant of the steps to the end. */
static uint64_t panels_slots(const Rearrangement *r, uint32_t w)
{
    uint32_t blocks = r->rows / 16, low = (2 * blocks + 2) / 3, high = blocks - low;
    uint64_t streams = w < 4 ? 1 : 2, mine = w < 4 ? low : high;
    if (mine == 0)
        return 4;
    uint64_t start = 4 + 6 + (w < 4 ? 1 : 2);
    return start + streams * (2 + 8 + 1 + 16 * (mine - 1) + 8 + 7 + 3);
}

static void cycles(const KernelSpec *spec, Clock *clock)
{
    Rearrangement r = rearrangement_of(spec);
    uint64_t bundles[TILE_WORKERS];
    Way way = way_of(&r);
    uint32_t more = r.matrices > 1,
             once = way == ROWS ? constant_slots((piece_step(&r) - 24) / 8) : 0;
    uint64_t next =
        !more ? 0
              : 3 + constant_slots((int64_t)r.rows * r.pitch) + constant_slots(matrix_bytes(&r));
    for (uint32_t w = 0; w < TILE_WORKERS; w++) {
        uint64_t matrix = way == ROWS     ? rows_slots(&r, w)
                          : way == PAIRS  ? pairs_slots(&r, w)
                          : way == STREAM ? stream_slots(&r, w)
                                          : panels_slots(&r, w);
        uint64_t entry = way == PANELS ? 3 : even_slots(3 + more + once);
        bundles[w] = entry + r.matrices * (matrix + next) + 1;
    }
    clock_launch_once(clock, 2, bundles);
}

static uint64_t useful(const KernelSpec *spec)
{
    Rearrangement r = rearrangement_of(spec);
    return (uint64_t)r.matrices * r.rows * r.columns;
}

static void reference(const KernelSpec *spec, void *const *operands)
{
    Rearrangement r = rearrangement_of(spec);
    uint8_t *to = operands[0];
    const uint8_t *from = operands[1];
    for (uint32_t m = 0; m < r.matrices; m++)
        for (uint32_t row = 0; row < r.rows; row++)
            for (uint32_t column = 0; column < r.columns; column++)
                memcpy(to + ((size_t)m * r.rows + row) * r.pitch + 2 * (size_t)column,
                       from + rearrangement_offset(&r, m, row, column), 2);
}

const KernelFamilyInfo kernel_family_unpack = {
    .name = "unpack",
    .source = "unpack.S",
    .parameters = {[PACK_ORDER] = "order",
                   [PACK_MATRICES] = "matrices",
                   [PACK_ROWS] = "rows",
                   [PACK_COLUMNS] = "columns",
                   [PACK_PHYSICAL_ROWS] = "physicalRows",
                   [PACK_PHYSICAL_COLUMNS] = "physicalColumns",
                   [PACK_PITCH] = "pitch"},
    .contract = contract,
    .cycles = cycles,
    .useful = useful,
    .reference = reference,
};
