/* add.c - sum of two operands, the second repeated over rows, F16: kernels/add.S. Exact to the bit.
 */
#include "kernel/broadcast.h"

typedef struct AddShape {
    uint32_t panels, rows, columns;
    bool second;    /* a third operand */
    bool panel;     /* Left order: 16 columns */
    uint32_t quads; /* dealt to the workers at a time */
    bool apart;     /* operands in different memory elements */
} AddShape;

static AddShape shape_of(const KernelSpec *spec)
{
    Broadcast b = broadcast_of(spec);
    AddShape s = {.panels = b.panels,
                  .rows = b.rows,
                  .columns = b.columns,
                  .second = spec->p[ADD_SECOND],
                  .panel = b.panel,
                  .quads = b.quads};
    s.apart = spec->p[ADD_APART] && !s.panel && !s.second && s.quads >= 4 * TILE_WORKERS;
    return s;
}

static Status contract(const KernelSpec *spec, KernelContract *out)
{
    TRY(spec_range(spec, ADD_SECOND, 0, 1, 1));
    TRY(spec_range(spec, ADD_APART, 0, 1, 1));
    uint32_t bytes;
    TRY(broadcast_check(spec, &bytes));
    AddShape s = shape_of(spec);
    contract_operand(out, "sum", true, PRECISION_F16, ORDER_ROWS, bytes * s.rows, 8);
    contract_operand(out, "a", false, PRECISION_F16, ORDER_ROWS, bytes * s.rows, 8);
    contract_operand(out, "b", false, PRECISION_F16, ORDER_ROWS, bytes, 8);
    if (s.second)
        contract_operand(out, "c", false, PRECISION_F16, ORDER_ROWS, bytes * s.rows, 8);
    for (uint32_t i = 0; s.apart && i < 3; i++)
        contract_separate(out, i, (i + 1) % 3);
    if (!s.apart)
        out->operands[0].in_place = 1;
    out->stack_bytes = 16;
    contract_define(out, "ADD_PANELS", spec->p[ADD_PANELS]);
    contract_define(out, "ADD_ROWS", spec->p[ADD_ROWS]);
    contract_define(out, "ADD_COLUMNS", spec->p[ADD_COLUMNS]);
    contract_define(out, "ADD_SECOND", s.second);
    contract_define(out, "ADD_APART", s.apart);
    return STATUS_OK;
}

static uint64_t worker_bundles(const AddShape *s, uint32_t w)
{
    uint64_t n = share_of_worker(s->quads, w), second = s->second;
    bool rest = s->quads % TILE_WORKERS != 0, many = s->panels > 1;
    uint64_t entry = 4 + second + (rest ? 2 : 0), exit = 1;
    if (n == 0)
        return entry + exit;
    entry += 1;
    if (s->panel) {
        uint64_t pairs = (n - 1) / 2, even = (n - 1) % 2;
        uint64_t panel =
            second ? 3 + 1 + 6 * pairs + 2 + 4 * even + 1 : 3 + 1 + 4 * pairs + 1 + 2 * even + 1;
        entry += 4 + (rest ? 2 : 0) + (many ? 2 : 0);
        return entry + s->panels * (panel + (many ? 6 + second : 0)) + exit;
    }
    uint64_t row = s->apart ? n + 8 : second ? 4 * n + 2 : 3 * n + 1;
    uint64_t place = !s->apart; /* of the next store */
    if (s->rows > 1)
        return entry + (many ? 3 : 2) +
               s->panels * (s->rows * (row + 4 + place + second) + (many ? 3 : 0)) + exit;
    return entry + place + row + exit;
}

static void cycles(const KernelSpec *spec, Clock *clock)
{
    AddShape s = shape_of(spec);
    uint64_t bundles[TILE_WORKERS];
    for (uint32_t w = 0; w < TILE_WORKERS; w++)
        bundles[w] = worker_bundles(&s, w);
    clock_launch_once(clock, s.second ? 4 : 3, bundles);
}

static uint64_t useful(const KernelSpec *spec)
{
    AddShape s = shape_of(spec);
    return (uint64_t)s.panels * s.rows * s.columns * (s.second ? 2 : 1);
}

static void reference(const KernelSpec *spec, void *const *operands)
{
    AddShape s = shape_of(spec);
    for (size_t row = 0; row < (size_t)s.panels * s.rows; row++)
        for (size_t c = 0; c < s.columns; c++) {
            size_t i = row * s.columns + c, bias = row / s.rows * s.columns + c;
            double sum = half_of(operands[1], i) + half_of(operands[2], bias);
            half_set(operands[0], i, s.second ? half_round(sum) + half_of(operands[3], i) : sum);
        }
}

const KernelFamilyInfo kernel_family_add = {
    .name = "add",
    .source = "add.S",
    .parameters = {[ADD_PANELS] = "panels",
                   [ADD_ROWS] = "rows",
                   [ADD_COLUMNS] = "columns",
                   [ADD_SECOND] = "second",
                   [ADD_APART] = "apart"},
    .contract = contract,
    .cycles = cycles,
    .useful = useful,
    .reference = reference,
};
