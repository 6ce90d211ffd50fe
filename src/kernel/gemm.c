/* gemm.c - matrix product on the matrix unit: kernels/gemm.S, where the method is described.
 *
 * The formula follows the supervisor's code; what a launch costs is 4 bundles a row and little
 * else. The reference is exact to the bit: sums of an issue in double in the unit's order, rounded
 * to F32 once an issue and to half once a panel. */
#include "kernel/launch.h"

#include <math.h>
#include <string.h>

enum { UNROLL = 6 /* gemm.S */, FIELD_LOW = -512, FIELD_HIGH = 511 };

typedef struct Product {
    uint32_t rows, groups, column_groups; /* groups: panels of the inner dimension */
    bool f8, accumulate, interleaved, packed;
    uint32_t n, long_workers; /* rows of the longest workers, how many of them; the others n - 1 */
    uint32_t
        per_block;  /* packed: workers that share a block of 16 rows; 0: rows are dealt freely */
    bool spread;    /* workers share rows */
    uint32_t pitch; /* of L in bytes; 0: panels */
    bool forth_fits, x_forth_fits, home_fits; /* into a step of the packed addresses */
} Product;

static void deal_packed(Product *s)
{
    uint32_t blocks = s->rows / 16;
    s->long_workers = blocks == 2 ? 1 : 6;
    s->per_block = blocks == 1 ? 0 : blocks == 2 ? 3 : blocks == 3 ? 2 : 1;
    s->n = blocks == 1 ? 3 : blocks == 2 ? 6 : blocks == 3 ? 8 : 16;
    s->spread = blocks == 1;
}

static Product product_of(const KernelSpec *spec)
{
    Product s = {.rows = (uint32_t)spec->p[GEMM_ROWS],
                 .f8 = spec->p[GEMM_PRECISION] == F8F143,
                 .column_groups = (uint32_t)spec->p[GEMM_COLUMNS] / 16,
                 .accumulate = spec->p[GEMM_ACCUMULATE],
                 .interleaved = spec->p[GEMM_INTERLEAVED],
                 .packed = spec->p[GEMM_PACKED]};
    s.groups = (uint32_t)spec->p[GEMM_INNER] / (s.f8 ? 32 : 16);
    s.pitch = (uint32_t)spec->p[GEMM_LEFT_PITCH] * (s.f8 ? 1 : 2);
    if (s.packed) {
        deal_packed(&s);
    } else {
        s.spread = s.rows <= 18;
        s.n = s.rows <= 6 ? 1 : s.rows <= 18 ? 3 : ceil_div_u32(s.rows, TILE_WORKERS);
        s.long_workers = s.spread || s.rows % 6 == 0 ? 6 : s.rows % 6;
    }
    int64_t forth = 4 * ((int64_t)s.rows - s.n) + 1 + (s.long_workers < 6 ? 4 : 0);
    int64_t home = -(4 * (int64_t)s.rows * (s.groups - 1) + 4 * (int64_t)s.n - 1);
    s.forth_fits = s.packed || forth <= FIELD_HIGH;
    s.x_forth_fits = !s.pitch && forth <= FIELD_HIGH;
    s.home_fits = !s.pitch && (s.groups == 1 || (!s.packed && home >= FIELD_LOW));
    return s;
}

static Status contract(const KernelSpec *spec, KernelContract *out)
{
    bool f8 = spec->p[GEMM_PRECISION] == F8F143;
    if (!f8 && spec->p[GEMM_PRECISION] != F16)
        return status_error("precision must be F16 or F8");
    TRY(spec_range(spec, GEMM_ROWS, 1, 768, 1));
    TRY(spec_range(spec, GEMM_INNER, 16, 65536, f8 ? 32 : 16));
    TRY(spec_range(spec, GEMM_COLUMNS, 16, 65536, 16));
    TRY(spec_range(spec, GEMM_ACCUMULATE, 0, 1, 1));
    TRY(spec_range(spec, GEMM_INTERLEAVED, 0, 1, 1));
    TRY(spec_range(spec, GEMM_PACKED, 0, 1, 1));
    TRY(spec_range(spec, GEMM_SCALE, f8 ? -32 : 0, f8 ? 31 : 0, 1));
    if (spec->p[GEMM_PACKED])
        TRY(spec_range(spec, GEMM_ROWS, 16, 96, 16)); /* one block of 16 rows a worker at most */

    int32_t pitch = spec->p[GEMM_LEFT_PITCH], unit = f8 ? 8 : 4;
    if (pitch) /* a row's step is a field of ten bits in words of 8 bytes */
        TRY(spec_range(spec, GEMM_LEFT_PITCH, spec->p[GEMM_INNER], (FIELD_HIGH + 3) * unit, unit));

    Product s = product_of(spec);
    uint32_t inner = (uint32_t)spec->p[GEMM_INNER], columns = (uint32_t)spec->p[GEMM_COLUMNS];
    Precision precision = f8 ? PRECISION_F8 : PRECISION_F16;
    Order packed = {.kind = ORDER_TRANSPOSED_RIGHT};
    Order stream = {.kind = ORDER_BLOCK_MAJOR, .row_block = (uint16_t)inner, .column_block = 16};
    contract_operand(out, "product", true, PRECISION_F16, s.packed ? packed : ORDER_PANELS,
                     s.rows * columns * 2, 32);
    uint32_t width = inner * precision_bytes(precision);
    if (pitch)
        contract_operand(out, "left", false, precision, ORDER_ROWS, (s.rows - 1) * s.pitch + width,
                         8);
    else
        contract_operand(out, "left", false, precision, ORDER_PANELS, s.rows * width, 32);
    contract_operand(out, "weights", false, precision, stream,
                     inner * columns * precision_bytes(precision), 32);
    contract_separate(out, 0, 1);
    out->operands[0].reads_old = s.accumulate;
    if (s.accumulate ||
        s.groups > 1) /* loads and stores of one instruction, an odd distance apart */
        out->operands[0].memory_class = MEMORY_INTERLEAVED;
    if (s.interleaved)
        out->operands[2].memory_class = MEMORY_INTERLEAVED;
    out->operands[0].held = PADDING_FINITE;
    out->operands[1].need = PADDING_FINITE; /* times zero weights */
    out->operands[2].need = PADDING_ZERO;

    contract_define(out, "GEMM_F8", f8);
    contract_define(out, "GEMM_ROWS", (int32_t)s.rows);
    contract_define(out, "GEMM_GROUPS", (int32_t)s.groups);
    contract_define(out, "GEMM_COLUMN_GROUPS", (int32_t)s.column_groups);
    contract_define(out, "GEMM_ACCUMULATE", s.accumulate);
    contract_define(out, "GEMM_INTERLEAVED", s.interleaved);
    contract_define(out, "GEMM_PACKED", s.packed);
    contract_define(out, "GEMM_SCALE", spec->p[GEMM_SCALE]);
    contract_define(out, "GEMM_LEFT_PITCH", (int32_t)s.pitch);
    out->stack_bytes = 8;
    return STATUS_OK;
}

/* Cycles. Worker bundles first, in the order of gemm.S. */

/* The stride register of a worker with `short_by` rows less than n. */
static int64_t strides(const Product *s, uint32_t short_by)
{
    int64_t rows = s->rows, n = (int64_t)s->n - short_by;
    int64_t back = -(4 * n - 1), forth = 4 * (rows - n) + 1;
    int64_t c_forth = s->packed ? 64 - (4 * n - 1) : forth;
    int64_t home = s->home_fits ? -(4 * rows * (s->groups - 1) + 4 * n - 1) : 0;
    int64_t second = s->pitch ? (s->forth_fits ? c_forth : 0) : s->x_forth_fits ? forth : 0;
    int64_t third = s->pitch ? (s->pitch - 24) / 8 : s->packed ? c_forth : home;
    return (back & 0x3ff) | (second & 0x3ff) << 10 | (third & 0x3ff) << 20;
}

/* Workers of one row (ROW in gemm.S): what a launch takes without setup. */
static uint32_t row_slots(const Product *s, bool begins, bool ends)
{
    uint32_t loads_old = begins && s->accumulate ? 5 : 0;
    if (s->groups == 1)
        return loads_old + 10;
    return loads_old + (ends ? 14 + (s->column_groups > 1) : begins ? 5 : 6);
}

static uint32_t row_setup_slots(const Product *s)
{
    int64_t home =
        s->pitch ? -(4 * (int64_t)s->groups - 1) : -(4 * (int64_t)s->rows * (s->groups - 1) + 3);
    bool far = s->column_groups > 1 && home < -128;
    bool late = s->groups > 2 && s->column_groups == 1 && !s->accumulate;
    return 5 + !late + (s->pitch != 0) + (far ? constant_slots(home) : 0);
}

/* Of the launch that finds the worker's rows, up to its first row; `brief`: of a worker with n - 1.
 */
static uint32_t stream_setup_slots(const Product *s, bool brief)
{
    bool shorts = s->long_workers < 6;
    uint32_t single = 1, bundles = 2; /* get; the two that clear the accumulators */
    if (s->per_block == 0)
        single += shorts ? 3 : 0;
    else
        single += s->per_block == 1 ? 1 : s->per_block == 2 ? 4 : 11;
    single += 2 + constant_slots(strides(s, 0)) + 2; /* loads, strides, two adds */
    uint32_t skipped = shorts ? constant_slots(strides(s, 1)) : 0;
    single += skipped + (shorts ? 2 : 0);
    single += s->pitch ? 2 : 0;
    single += s->forth_fits || s->column_groups == 1 ? 0 : shorts ? 2 : 1;
    bool back = !s->x_forth_fits && s->groups > 1, home = !s->home_fits && s->column_groups > 1;
    int64_t back_bytes = s->pitch ? (int64_t)(s->n - 1 - shorts) * s->pitch
                                  : -32 * ((int64_t)s->rows - s->n + shorts);
    int64_t home_bytes = s->pitch ? back_bytes + 32 * s->groups
                                  : 32 * ((int64_t)s->rows * (s->groups - 1) + s->n - shorts);
    single += shorts && (back || home);
    single += back ? constant_slots(back_bytes) + shorts : 0;
    single += home ? constant_slots(home_bytes) + shorts : 0;
    single += s->accumulate ? 5 : 3;
    bundles += s->accumulate ? 4 : 0;
    return single + single % 2 + bundles - (brief ? 0 : skipped);
}

typedef struct Body { /* the arguments of BODY in gemm.S */
    bool zero;
    uint8_t pend, c_next, next, x_next;
    bool first;
} Body;

static uint32_t body_slots(const Product *s, const Body *body, bool brief)
{
    if (s->n == 1) {
        bool begins = s->groups == 1 || body->pend != 1, ends = s->groups > 1 && body->x_next != 1;
        return (body->first ? row_setup_slots(s) : 0) + row_slots(s, begins, ends);
    }
    uint32_t setup = body->first ? stream_setup_slots(s, brief) : 0;
    uint32_t rows = s->n - brief, slots = 4 * rows + 1;
    slots += s->long_workers < 6 || s->n > UNROLL;
    slots += body->pend == 2 && !s->forth_fits ? 6 : 0;
    slots += !body->zero && body->c_next == 2 && !s->forth_fits;
    slots += body->x_next == 1 ? !s->x_forth_fits : body->x_next == 2 ? !s->home_fits : 6;
    return setup + slots;
}

typedef struct Bodies {
    Body first, again, middle, last, final;
} Bodies;

static Bodies bodies_of(const Product *s)
{
    bool fresh = !s->accumulate;
    uint8_t keep = s->accumulate;
    if (s->groups > 1)
        return (Bodies){.first = {fresh, 0, 1, 1, 1, true},
                        .again = {fresh, 2, 1, 1, 1, false},
                        .middle = {false, 1, 1, 1, 1, false},
                        .last = {false, 1, 2, keep, 2, false},
                        .final = {false, 1, 0, 0, 0, false}};
    if (s->column_groups == 1)
        return (Bodies){.first = {fresh, 0, 0, 0, 0, true}};
    return (Bodies){.first = {fresh, 0, 2, keep, 2, true},
                    .middle = {fresh, 2, 2, keep, 2, false},
                    .final = {fresh, 2, 0, 0, 0, false}};
}

/* From one sync to the next: weights, launch, join. What the supervisor does between launch and
 * sync is hidden in the join, so only the position against the slots matters; it is worked out when
 * it is met first. */
typedef struct Step {
    Body body;
    uint64_t cycles[TILE_WORKERS]; /* by the first cycle modulo 6; 0: not known yet */
} Step;

static void take_step(const Product *s, Clock *clock, Step *step)
{
    uint64_t begin = clock->now, *known = &step->cycles[begin % TILE_WORKERS];
    if (!*known) {
        uint64_t bundles[TILE_WORKERS];
        for (uint32_t w = 0; w < TILE_WORKERS; w++) {
            uint32_t place = s->per_block == 3 ? w % 3 : w;
            bundles[w] = body_slots(s, &step->body, place >= s->long_workers);
        }
        clock_issue(clock, s->interleaved ? 32 : 64);
        clock_launch(clock, bundles);
        clock_sync(clock);
        *known = clock->now - begin;
    }
    clock->now = begin + *known;
    clock->last_exit = clock->now - TIMING_LOCAL_SYNC; /* and no worker is left */
}

/* The same `count` times: positions repeat within six, and with them whole periods. */
static void take_steps(const Product *s, Clock *clock, Step *step, uint32_t count)
{
    uint64_t begin[TILE_WORKERS] = {0};
    uint32_t index[TILE_WORKERS] = {0};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t phase = (uint32_t)(clock->now % TILE_WORKERS);
        if (begin[phase]) {
            uint32_t period = i - index[phase], times = (count - i) / period;
            clock->now += times * (clock->now - begin[phase]);
            i += times * period;
            if (i == count)
                break;
            begin[phase] = 0;
        } else {
            begin[phase] = clock->now;
            index[phase] = i;
        }
        take_step(s, clock, step);
    }
}

/* From entry to the first sync. */
static void clock_entry(const Product *s, Clock *clock)
{
    uint32_t turns = s->groups == 1 ? s->column_groups - 1 : s->groups - 1;
    bool both = s->groups > 1 && s->column_groups > 1;
    clock_issue(clock, 2);
    uint64_t frame = clock->now - 1 + TIMING_RESULT;
    uint64_t formats = 0, scale = 0;
    if (s->f8) {
        clock_issue(clock, 2);
        formats = clock->now - 2 + TIMING_RESULT;
        scale = clock->now - 1 + TIMING_RESULT;
    }
    clock_issue(clock, 1 + (turns > 1 ? 2 : 0) + (both ? 2 : 0));
    if (s->f8) {
        clock_at_least(clock, formats);
        clock_issue(clock, 1);
        clock_at_least(clock, scale);
        clock_issue(clock, 1);
    }
    clock_at_least(clock, frame);
    clock_issue(clock, 2 + (turns > 0 ? 1 + both : 0));
}

static void cycles(const KernelSpec *spec, Clock *clock)
{
    Product s = product_of(spec);
    Bodies bodies = bodies_of(&s);
    Step first = {.body = bodies.first}, again = {.body = bodies.again};
    Step middle = {.body = bodies.middle}, last = {.body = bodies.last};
    Step final = {.body = bodies.final};
    uint32_t turns = s.groups == 1 ? s.column_groups - 1 : s.groups - 1;
    clock_entry(&s, clock);
    if (turns > 0)
        clock_sync(clock); /* nobody runs yet */
    take_step(&s, clock, &first);
    if (turns > 0) {
        take_steps(&s, clock, &middle, turns - 1);
        for (uint32_t group = 1; s.groups > 1 && group < s.column_groups; group++) {
            take_step(&s, clock, &last);
            take_step(&s, clock, &again);
            take_steps(&s, clock, &middle, turns - 1);
        }
        take_step(&s, clock, &final);
    }
    clock_branch(clock);
}

static uint64_t useful(const KernelSpec *spec)
{
    return 2ull * (uint64_t)spec->p[GEMM_ROWS] * (uint64_t)spec->p[GEMM_INNER] *
           (uint64_t)spec->p[GEMM_COLUMNS];
}

/* Reference. */

static double element(bool f8, const uint8_t *data, uint32_t index)
{
    if (f8)
        return (double)f143_to_float(data[index]);
    uint16_t half;
    memcpy(&half, data + 2 * (size_t)index, 2);
    return (double)half_to_float(half);
}

/* One panel of one element: four issues, each rounded to F32. x: 32 bytes of L, w: of W. */
static float accumulate_panel(const Product *s, float sum, const uint8_t *x, const uint8_t *w,
                              double scale)
{
    uint32_t lanes = s->f8 ? 8 : 4;
    for (uint32_t issue = 0; issue < 4; issue++) {
        double total = 0;
        for (uint32_t i = 0; i < lanes; i++) {
            uint32_t k = issue * lanes + i;
            double product = element(s->f8, x, k) * scale * element(s->f8, w, k);
            total = i == 0 ? product : total + product;
        }
        sum = (float)((double)sum + total);
    }
    return sum;
}

static uint16_t half_saturated(float value) /* FP_CTL.NANOO = 0 */
{
    uint16_t half = half_from_float(value);
    return isfinite(value) && (half & 0x7fff) == 0x7c00 ? (uint16_t)(half - 1) : half;
}

static size_t product_offset(const Product *s, uint32_t row, uint32_t column)
{
    uint32_t group = column / 16;
    size_t in_row = 2 * (column % 16);
    if (s->packed)
        return (size_t)512 * ((row / 16) * s->column_groups + group) + 32 * (row % 16) + in_row;
    return (size_t)32 * ((size_t)group * s->rows + row) + in_row;
}

static void reference(const KernelSpec *spec, void *const *operands)
{
    Product s = product_of(spec);
    uint8_t *product = operands[0];
    const uint8_t *left = operands[1], *weights = operands[2];
    double scale = ldexp(1.0, spec->p[GEMM_SCALE]);
    for (uint32_t row = 0; row < s.rows; row++)
        for (uint32_t column = 0; column < 16 * s.column_groups; column++) {
            uint8_t *at = product + product_offset(&s, row, column);
            uint16_t sums[2] = {0, 0}; /* of the even and the odd panels */
            if (s.accumulate)
                memcpy(sums, at, sizeof sums[0]);
            for (uint32_t g = 0; g < s.groups; g++) {
                const uint8_t *x = left + (s.pitch ? (size_t)row * s.pitch + (size_t)32 * g
                                                   : 32 * ((size_t)g * s.rows + row));
                const uint8_t *w =
                    weights + (size_t)512 * ((column / 16) * s.groups + g) + 32 * (column % 16);
                uint16_t *sum = &sums[s.n == 1 ? g % 2 : 0];
                *sum = half_saturated(accumulate_panel(&s, half_to_float(*sum), x, w, scale));
            }
            if (s.n == 1 && s.groups > 1)
                sums[0] = half_saturated(half_to_float(sums[0]) + half_to_float(sums[1]));
            memcpy(at, sums, sizeof sums[0]);
        }
}

const KernelFamilyInfo kernel_family_gemm = {
    .name = "gemm",
    .source = "gemm.S",
    .parameters = {[GEMM_PRECISION] = "precision",
                   [GEMM_ROWS] = "rows",
                   [GEMM_INNER] = "inner",
                   [GEMM_COLUMNS] = "columns",
                   [GEMM_ACCUMULATE] = "accumulate",
                   [GEMM_INTERLEAVED] = "interleaved",
                   [GEMM_PACKED] = "packed",
                   [GEMM_SCALE] = "scale",
                   [GEMM_LEFT_PITCH] = "leftPitch"},
    .contract = contract,
    .cycles = cycles,
    .useful = useful,
    .reference = reference,
};
