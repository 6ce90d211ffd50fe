/* pack.c - row-major F16 matrices into an order of the matrix unit. kernels/pack.S. */
#include "kernel/pack.h"

Rearrangement rearrangement_of(const KernelSpec *spec)
{
    Rearrangement r = {.order = (uint32_t)spec->p[PACK_ORDER],
                       .matrices = (uint32_t)spec->p[PACK_MATRICES],
                       .rows = (uint32_t)spec->p[PACK_ROWS],
                       .columns = (uint32_t)spec->p[PACK_COLUMNS],
                       .physical_rows = (uint32_t)spec->p[PACK_PHYSICAL_ROWS],
                       .physical_columns = (uint32_t)spec->p[PACK_PHYSICAL_COLUMNS],
                       .row_block = (uint32_t)spec->p[PACK_ROW_BLOCK],
                       .pitch = 2 * (uint32_t)spec->p[PACK_PITCH]};
    bool by_rows = r.order == ORDER_LEFT || r.order == ORDER_TRANSPOSED_RIGHT;
    if (by_rows && r.rows == r.physical_rows) {
        r.rows = r.physical_rows = r.rows * r.matrices;
        r.matrices = 1;
    }
    r.align = r.pitch % 8 == 0 ? 8 : r.pitch % 4 == 0 ? 4 : 2;
    return r;
}

Status rearrangement_check(const KernelSpec *spec)
{
    TRY(spec_range(spec, PACK_MATRICES, 1, 4096, 1));
    TRY(spec_range(spec, PACK_ROWS, 1, 32768, 1));
    TRY(spec_range(spec, PACK_COLUMNS, 1, 16383, 1));
    TRY(spec_range(spec, PACK_PHYSICAL_ROWS, spec->p[PACK_ROWS], 32768, 1));
    TRY(spec_range(spec, PACK_PHYSICAL_COLUMNS, spec->p[PACK_COLUMNS], 16384, 16));
    TRY(spec_range(spec, PACK_PITCH, spec->p[PACK_COLUMNS], 16383, 1));
    Rearrangement r = rearrangement_of(spec);
    uint64_t bytes = 2ull * r.matrices * r.physical_rows * r.physical_columns;
    uint64_t rows = (uint64_t)r.matrices * r.rows;
    if (bytes > SRAM_BYTES || rows * r.pitch > SRAM_BYTES)
        return status_error("matrices do not fit into a tile");
    if (6 * r.pitch > 32767 && rows > 6)
        return status_error("pitch = %u is too large", spec->p[PACK_PITCH]);
    return STATUS_OK;
}

size_t rearrangement_bytes(const Rearrangement *r)
{
    return (size_t)2 * r->matrices * r->physical_rows * r->physical_columns;
}

size_t rearrangement_row_major_bytes(const Rearrangement *r)
{
    return ((size_t)r->matrices * r->rows - 1) * r->pitch + 2 * (size_t)r->columns;
}

size_t rearrangement_offset(const Rearrangement *r, uint32_t matrix, uint32_t row, uint32_t column)
{
    size_t all_rows = (size_t)r->matrices * r->physical_rows;
    size_t before = (size_t)2 * matrix * r->physical_rows * r->physical_columns;
    uint32_t blocks = r->physical_columns / 16, panels;
    size_t micro;
    switch (r->order) {
    case ORDER_LEFT:
        return 32 * (column / 16 * all_rows + (size_t)matrix * r->physical_rows + row) +
               2 * (column % 16);
    case ORDER_TRANSPOSED_LEFT:
        return before + 32 * ((size_t)row / 16 * r->physical_columns + column) + 2 * (row % 16);
    case ORDER_TRANSPOSED_RIGHT:
        return before + 512 * ((size_t)row / 16 * blocks + column / 16) + 32 * (row % 16) +
               2 * (column % 16);
    default:
        panels = r->row_block / 16;
        micro = (size_t)row / r->row_block * blocks * panels + column / 16 * panels +
                row % r->row_block / 16;
        return before + 512 * micro + 32 * (column % 16) + 2 * (row % 16);
    }
}

static bool by_rows(const Rearrangement *r)
{
    return r->order != ORDER_BLOCK_MAJOR;
}

/* Bytes from one piece of a row to the next, and the jump at every 16 rows beyond 32 a row. */
static uint32_t piece_step(const Rearrangement *r)
{
    return r->order == ORDER_LEFT ? 32 * r->matrices * r->physical_rows : 512;
}

/* From matrix to matrix of the ordered side: Left panels run through the rows of all matrices. */
static uint32_t matrix_bytes(const Rearrangement *r)
{
    return r->order == ORDER_LEFT ? 32 * r->physical_rows
                                  : 2 * r->physical_rows * r->physical_columns;
}

static uint32_t block_jump(const Rearrangement *r)
{
    return r->order == ORDER_LEFT ? 0 : 32 * r->physical_columns - 512;
}

/* From panel to panel of 16 rows. */
static uint32_t panel_bytes(const Rearrangement *r)
{
    return r->row_block == 16 ? 32 * r->physical_columns : 512;
}

/* Block Major in quads of columns, with streams of blocks: QUADS_WAY of pack.S. */
static bool by_quads(const Rearrangement *r)
{
    bool simple = r->row_block == 16 || r->row_block == r->physical_rows;
    return r->order == ORDER_BLOCK_MAJOR && simple && r->align == 8 && r->columns % 4 == 0 &&
           r->pitch <= 8 * 272 && r->physical_rows <= 256 && panel_bytes(r) / 8 - 15 <= 511;
}

static Status contract(const KernelSpec *spec, KernelContract *out)
{
    int32_t order = spec->p[PACK_ORDER];
    if (order != ORDER_LEFT && order != ORDER_TRANSPOSED_RIGHT && order != ORDER_BLOCK_MAJOR)
        return status_error("order %d is not supported", order);
    TRY(rearrangement_check(spec));
    Rearrangement r = rearrangement_of(spec);
    if (order != ORDER_LEFT)
        TRY(spec_range(spec, PACK_PHYSICAL_ROWS, 16, 32768, 16));
    if (order == ORDER_BLOCK_MAJOR) {
        TRY(spec_range(spec, PACK_ROW_BLOCK, 16, 1008, 16));
        if (r.physical_rows % r.row_block)
            return status_error("physicalRows is not a multiple of rowBlock");
    }
    if (block_jump(&r) > 32767)
        return status_error("physicalColumns = %u is too large", r.physical_columns);
    Order to = {.kind = (uint8_t)order, .row_block = (uint16_t)r.row_block, .column_block = 16};
    contract_operand(out, "output", true, PRECISION_F16, to, (uint32_t)rearrangement_bytes(&r), 8);
    contract_operand(out, "input", false, PRECISION_F16, ORDER_ROWS,
                     (uint32_t)rearrangement_row_major_bytes(&r), r.align == 8 ? 8 : 4);
    out->operands[0].held = PADDING_ZERO;
    if (by_quads(&r) && r.rows >= 16)
        contract_separate(out, 0, 1);
    contract_define(out, "PACK_WAY", by_rows(&r) ? 0 : by_quads(&r) ? 1 : 2);
    contract_define(out, "PACK_MATRICES", (int32_t)r.matrices);
    contract_define(out, "PACK_ROWS", (int32_t)r.rows);
    contract_define(out, "PACK_COLUMNS", (int32_t)r.columns);
    contract_define(out, "PACK_PITCH", (int32_t)r.pitch);
    contract_define(out, "PACK_PHYSICAL_ROWS", (int32_t)r.physical_rows);
    contract_define(out, "PACK_PHYSICAL_COLUMNS", (int32_t)r.physical_columns);
    contract_define(out, "PACK_PIECE_STEP", (int32_t)piece_step(&r));
    contract_define(out, "PACK_BLOCK_JUMP", (int32_t)block_jump(&r));
    contract_define(out, "PACK_MATRIX_BYTES", (int32_t)matrix_bytes(&r));
    contract_define(out, "PACK_ALIGN", (int32_t)r.align);
    contract_define(out, "PACK_ROW_BLOCK", by_rows(&r) ? 0 : (int32_t)r.row_block);
    out->stack_bytes = 8;
    return STATUS_OK;
}

/* Worker slots, in the order of pack.S. */

/* Deciding how many of `count` rows are mine, with `more` solo instructions after it. */
static uint64_t dealt_start_slots(uint32_t count, uint32_t w, uint32_t more)
{
    bool rest = count % TILE_WORKERS != 0, share = count >= TILE_WORKERS;
    if (share_of_worker(count, w) == 0)
        return 3;
    return even_slots(1 + (!rest ? 1 : share ? 2 : 3) + more);
}

static uint64_t row_values_slots(const Rearrangement *r)
{
    uint32_t whole = r->columns / 16, words = r->columns % 16 / 4, halves = r->columns % 4;
    uint32_t pieces = r->physical_columns / 16, word = r->align == 8 ? 2 : r->align == 4 ? 3 : 6;
    uint32_t empty = pieces - ceil_div_u32(r->columns, 16);
    uint64_t slots = whole ? 1 + 4ull * word * whole : 0;
    if (r->columns % 16) {
        slots += words * word;
        slots += halves == 0 ? 0 : halves == 1 ? 3 : halves == 2 ? 4 : 5;
        slots += 4 - words - (halves != 0);
    }
    return slots + (empty ? 1 + 4ull * empty : 0);
}

static uint64_t rows_slots(const Rearrangement *r, uint32_t w)
{
    uint32_t padded = r->physical_rows - r->rows, pieces = r->physical_columns / 16;
    uint32_t jump = block_jump(r) != 0 ? 3 : 0;
    uint64_t slots = dealt_start_slots(r->rows, w, 2);
    slots += share_of_worker(r->rows, w) * (even_slots(5 + jump) + row_values_slots(r) + 1);
    if (padded)
        slots += dealt_start_slots(padded, w, 0) +
                 share_of_worker(padded, w) * (even_slots(3 + jump) + 2 + 4ull * pieces);
    return slots;
}

/* Four rows of a block-major matrix: `have` of them there. */
static uint64_t four_rows_slots(const Rearrangement *r, uint32_t have)
{
    uint32_t whole = r->columns / 16, some = r->columns % 16, end = r->row_block > 16;
    uint32_t empty = r->physical_columns / 16 - ceil_div_u32(r->columns, 16);
    bool paired = have == 4 && r->align >= 4;
    uint64_t slots = have == 0 ? 0 : 6 + paired;
    if (have == 0)
        return 1 + (uint64_t)(r->physical_columns / 16) * (18 + end) + 2;
    slots += whole ? 1 + (uint64_t)whole * (1 + (paired ? 48 : 96) + end + 1) : 0;
    if (some)
        slots += 1 + 6 * (paired ? some / 2 + some % 2 : some) + 1 + (16 - some) + end;
    return slots + (empty ? 1 + (uint64_t)empty * (18 + end) : 0) + 2;
}

static uint64_t columns_slots(const Rearrangement *r, uint32_t w)
{
    uint32_t full = r->rows / 4, some = r->rows % 4;
    uint64_t head = 8 + (r->row_block == r->physical_rows
                             ? 1
                             : 7 + constant_slots((int64_t)r->row_block * r->physical_columns * 2));
    uint64_t past = head + (full ? 2 : 0) + (some ? 2 : 0), slots = 2;
    for (uint32_t q = w; q < r->physical_rows / 4; q += TILE_WORKERS) {
        if (q < full)
            slots += head + 2 + four_rows_slots(r, 4);
        else if (q == full && some)
            slots += past + four_rows_slots(r, some);
        else
            slots += even_slots(past) + four_rows_slots(r, 0);
    }
    return slots + 2; /* the row after the last */
}

static uint64_t no_rows_slots(uint32_t panels)
{
    return panels > 1 ? 1 + 19ull * panels : 17;
}

/* Loops over the quads: whole panels, one with some rows, empty ones. */
static uint32_t quads_parts(const Rearrangement *r)
{
    return (r->rows >= 16) + (r->rows % 16 > 0) +
           (r->physical_rows / 16 > ceil_div_u32(r->rows, 16));
}

/* EACH_QUAD: `first` is the worker's first quad, and moves on to the next panels'; a quad with
 * values takes `body`. */
static uint64_t each_quad(const Rearrangement *r, uint32_t *first, uint32_t panels, uint64_t body)
{
    uint32_t quads = r->physical_columns / 4, real = r->columns / 4, c = *first;
    uint32_t parts =
        (r->rows >= 16) + (r->rows % 16 > 0) + (r->physical_rows / 16 > ceil_div_u32(r->rows, 16));
    bool more = quads > 6 || parts > 1, padded = real < quads;
    uint64_t head = 2 + (r->row_block == 16 ? 1 : 5) + 1 + (padded ? 2 : 0), slots = 0;
    for (; c < quads; c += TILE_WORKERS) {
        slots += head + (c < real ? 2 + body : no_rows_slots(panels));
        slots += more ? 2 : padded && c < real;
        if (!more)
            return slots;
    }
    *first = c - quads;
    return slots + 2 + (parts > 1 ? 5 : 0);
}

static uint64_t some_rows_slots(uint32_t rows)
{
    static const uint32_t part[] = {0, 8, 9, 9};
    return 10ull * (rows / 4) + part[rows % 4] + 4ull * (4 - (rows + 3) / 4);
}

static uint64_t quads_slots(const Rearrangement *r, uint32_t w)
{
    uint32_t full = r->rows / 16, some = r->rows % 16, first = w;
    uint32_t empty = r->physical_rows / 16 - ceil_div_u32(r->rows, 16);
    uint64_t slots = 1;
    if (full) /* a group is 16 more */
        slots += 5 + each_quad(r, &first, full, 16ull * full + 7 + 2 * (full > 1));
    slots += some ? each_quad(r, &first, 1, some_rows_slots(some)) : 0;
    slots += empty ? each_quad(r, &first, empty, no_rows_slots(empty)) : 0;
    return slots;
}

static void cycles(const KernelSpec *spec, Clock *clock)
{
    Rearrangement r = rearrangement_of(spec);
    uint64_t bundles[TILE_WORKERS];
    uint32_t more = r.matrices > 1;
    int64_t in = (int64_t)r.rows * r.pitch, out = matrix_bytes(&r);
    if (by_quads(&r) && quads_parts(&r) > 1) { /* the addresses have been moved on */
        in -= (int64_t)r.physical_rows * r.pitch;
        out -= (int64_t)(r.physical_rows / 16) * panel_bytes(&r);
    }
    for (uint32_t w = 0; w < TILE_WORKERS; w++) {
        uint64_t matrix = by_rows(&r)    ? rows_slots(&r, w)
                          : by_quads(&r) ? quads_slots(&r, w)
                                         : columns_slots(&r, w);
        uint64_t next = more ? 3 + constant_slots(in) + constant_slots(out) : 0;
        uint32_t once = by_rows(&r) ? constant_slots((piece_step(&r) - 24) / 8) : 0;
        bundles[w] = even_slots(3 + more + once) + r.matrices * (matrix + next) + 1;
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
    memset(to, 0, rearrangement_bytes(&r));
    for (uint32_t m = 0; m < r.matrices; m++)
        for (uint32_t row = 0; row < r.rows; row++)
            for (uint32_t column = 0; column < r.columns; column++)
                memcpy(to + rearrangement_offset(&r, m, row, column),
                       from + ((size_t)m * r.rows + row) * r.pitch + 2 * (size_t)column, 2);
}

const KernelFamilyInfo kernel_family_pack = {
    .name = "pack",
    .source = "pack.S",
    .parameters = {[PACK_ORDER] = "order",
                   [PACK_MATRICES] = "matrices",
                   [PACK_ROWS] = "rows",
                   [PACK_COLUMNS] = "columns",
                   [PACK_PHYSICAL_ROWS] = "physicalRows",
                   [PACK_PHYSICAL_COLUMNS] = "physicalColumns",
                   [PACK_ROW_BLOCK] = "rowBlock",
                   [PACK_PITCH] = "pitch"},
    .contract = contract,
    .cycles = cycles,
    .useful = useful,
    .reference = reference,
};
