/* cast.c - elements of one precision to another. kernels/cast.S.
 *
 * F16 <-> F32 and F16 <-> F8 (F143 with a scale exponent). Linear, or from panels of 16 halves to
 * panels of 32 codes, which is what a Left operand needs between an F16 and an F8 product. */
#include "kernel/family.h"

#include <math.h>
#include <string.h>

typedef enum Kind { F16_TO_F32, F32_TO_F16, F16_TO_F8, F8_TO_F16, NO_KIND } Kind; /* cast.S */

enum {
    PACED_BYTES = 2048 /* of the wider side: from here on operands are in different elements */
};

typedef struct Plan {
    Kind kind;
    uint32_t elements, unit_elements, units, panel_rows, panels;
    bool paced, narrow;
} Plan;

static Kind kind_of(int32_t from, int32_t to)
{
    if (from == F16)
        return to == F32 ? F16_TO_F32 : to == F8F143 ? F16_TO_F8 : NO_KIND;
    return to != F16 ? NO_KIND : from == F32 ? F32_TO_F16 : from == F8F143 ? F8_TO_F16 : NO_KIND;
}

static Plan plan_of(const KernelSpec *spec)
{
    Plan plan = {.kind = kind_of(spec->p[CAST_FROM], spec->p[CAST_TO]),
                 .elements = (uint32_t)spec->p[CAST_ELEMENTS],
                 .panel_rows = (uint32_t)spec->p[CAST_PANEL_ROWS]};
    plan.narrow = plan.kind == F32_TO_F16 || plan.kind == F16_TO_F8;
    plan.unit_elements = plan.kind >= F16_TO_F8 ? 8 : 4;
    plan.units = plan.elements / plan.unit_elements;
    plan.paced = plan.units * 16 >= PACED_BYTES || plan.panel_rows > 0;
    if (plan.panel_rows)
        plan.panels = plan.elements / (16 * plan.panel_rows);
    return plan;
}

static Precision precision_of(int32_t kind, int32_t scale)
{
    return (Precision){.kind = (uint8_t)kind, .scale = (int8_t)(kind == F8F143 ? scale : 0)};
}

static Status contract(const KernelSpec *spec, KernelContract *out)
{
    Plan plan = plan_of(spec);
    int32_t scale = spec->p[CAST_SCALE];
    if (plan.kind == NO_KIND)
        return status_error("no cast from precision %d to %d", spec->p[CAST_FROM],
                            spec->p[CAST_TO]);
    bool f8 = plan.kind >= F16_TO_F8;
    TRY(spec_range(spec, CAST_SCALE, f8 ? -31 : 0, f8 ? 31 : 0, 1));
    TRY(spec_range(spec, CAST_ELEMENTS, plan.unit_elements, SRAM_BYTES / 2, plan.unit_elements));
    TRY(spec_range(spec, CAST_PANEL_ROWS, 0, plan.kind == F16_TO_F8 ? 1024 : 0, 1));
    if (plan.panel_rows)
        TRY(spec_range(spec, CAST_ELEMENTS, 16, SRAM_BYTES / 2, 16 * (int64_t)plan.panel_rows));

    Precision from = precision_of(spec->p[CAST_FROM], scale);
    Precision to = precision_of(spec->p[CAST_TO], scale);
    uint32_t written = plan.panel_rows ? plan.panel_rows * 32 * ceil_div_u32(plan.panels, 2)
                                       : plan.elements * precision_bytes(to);
    Order order = plan.panel_rows ? ORDER_PANELS : ORDER_ROWS;
    contract_operand(out, "output", true, to, order, written, 8);
    contract_operand(out, "input", false, from, order, plan.elements * precision_bytes(from), 8);
    if (plan.paced)
        contract_separate(out, 0, 1);
    out->operands[0].held = PADDING_FINITE;
    out->operands[1].need = PADDING_FINITE;
    contract_define(out, "CAST_KIND", (int32_t)plan.kind);
    contract_define(out, "CAST_UNITS", plan.panel_rows ? 0 : (int32_t)plan.units);
    contract_define(out, "CAST_PACED", plan.paced);
    contract_define(out, "CAST_SCALE", plan.kind == F16_TO_F8 ? -scale : scale);
    contract_define(out, "CAST_PANEL_ROWS", (int32_t)plan.panel_rows);
    contract_define(out, "CAST_PANELS", (int32_t)plan.panels);
    out->stack_bytes = 8;
    return STATUS_OK;
}

/* Solo instructions before aligned code are filled up to an even number. */
static uint64_t even(uint64_t solo)
{
    return solo + solo % 2;
}

static uint64_t panel_slots(const Plan *plan, uint32_t w)
{
    uint32_t rows = share_of_worker(plan->panel_rows, w);
    bool rest = plan->panel_rows % TILE_WORKERS != 0, share = plan->panel_rows >= TILE_WORKERS;
    uint64_t before = 4 + (rest && share ? 2 : rest ? 3 : 1) + 3 + 1 + 2 + 1;
    if (rows == 0)
        return 4 + 2 + 1;
    uint64_t panel = 6 + 2 + 1 + 4 * (uint64_t)(rows - 1) + 2 + 3;
    /* a panel has ten solo instructions: every second one begins on an odd word, no filling needed
     */
    uint64_t after = plan->panels % 2 ? even(2) + 1 + 2 * (uint64_t)rows : 0;
    return even(before) + plan->panels * panel + after + 1;
}

static uint64_t linear_slots(const Plan *plan, uint32_t w)
{
    uint32_t units = share_of_worker(plan->units, w);
    bool rest = plan->units % TILE_WORKERS != 0, share = plan->units >= TILE_WORKERS;
    uint64_t before = 4 + (rest && share ? 2 : rest ? 3 : 1) + 3;
    if (units == 0)
        return 4 + 2 + 1;
    if (plan->narrow && plan->paced)
        return even(before + 6) + 2 + 1 + 2 * (uint64_t)(units - 2) + 2 + 1;
    if (plan->narrow)
        return even(before + 2) + 1 + 3 * (uint64_t)(units - 1) + 2 + 1;
    if (plan->paced)
        return even(before + 4) + 1 + 2 * (uint64_t)(units - 1) + 2 + 1;
    return even(before + 1) + 1 + 3 * (uint64_t)(units - 1) + 2 + 1;
}

static void cycles(const KernelSpec *spec, Clock *clock)
{
    Plan plan = plan_of(spec);
    uint64_t bundles[TILE_WORKERS];
    for (uint32_t w = 0; w < TILE_WORKERS; w++)
        bundles[w] = plan.panel_rows ? panel_slots(&plan, w) : linear_slots(&plan, w);
    clock_issue(clock, 2);
    if (plan.kind >= F16_TO_F8) {
        clock_issue(clock, 2);
        clock_depend(clock, 4); /* frame */
        clock_issue(clock, 2);
        clock_issue(clock, 2);
    } else {
        clock_depend(clock, 2);
        clock_issue(clock, 2);
    }
    clock_launch(clock, bundles);
    clock_sync(clock);
    clock_branch(clock);
}

static uint64_t useful(const KernelSpec *spec)
{
    return (uint64_t)spec->p[CAST_ELEMENTS];
}

static uint16_t half_saturated(float value)
{
    uint16_t half = half_from_float(value);
    return isfinite(value) && (half & 0x7fff) == 0x7c00 ? (uint16_t)(half - 1) : half;
}

static uint8_t code_of(const uint8_t *half_bytes, int32_t scale)
{
    uint16_t half;
    memcpy(&half, half_bytes, sizeof half);
    return f143_from_float(ldexpf(half_to_float(half), -scale));
}

static void cast_panels(const Plan *plan, int32_t scale, uint8_t *out, const uint8_t *in)
{
    memset(out, 0, (size_t)plan->panel_rows * 32 * ceil_div_u32(plan->panels, 2));
    for (uint32_t panel = 0; panel < plan->panels; panel++)
        for (uint32_t row = 0; row < plan->panel_rows; row++)
            for (uint32_t i = 0; i < 16; i++)
                out[((size_t)(panel / 2) * plan->panel_rows + row) * 32 + panel % 2 * 16 + i] =
                    code_of(in + ((size_t)panel * plan->panel_rows + row) * 32 + 2 * i, scale);
}

static void reference(const KernelSpec *spec, void *const *operands)
{
    Plan plan = plan_of(spec);
    int32_t scale = spec->p[CAST_SCALE];
    uint8_t *out = operands[0];
    const uint8_t *in = operands[1];
    if (plan.panel_rows) {
        cast_panels(&plan, scale, out, in);
        return;
    }
    for (size_t i = 0; i < plan.elements; i++) {
        uint16_t half;
        float value;
        switch (plan.kind) {
        case F16_TO_F32:
            memcpy(&half, in + 2 * i, 2);
            value = half_to_float(half);
            memcpy(out + 4 * i, &value, 4);
            break;
        case F32_TO_F16:
            memcpy(&value, in + 4 * i, 4);
            half = half_saturated(value);
            memcpy(out + 2 * i, &half, 2);
            break;
        case F16_TO_F8:
            out[i] = code_of(in + 2 * i, scale);
            break;
        default:
            half = half_saturated(ldexpf(f143_to_float(in[i]), scale));
            memcpy(out + 2 * i, &half, 2);
        }
    }
}

const KernelFamilyInfo kernel_family_cast = {
    .name = "cast",
    .source = "cast.S",
    .parameters = {[CAST_FROM] = "from",
                   [CAST_TO] = "to",
                   [CAST_ELEMENTS] = "elements",
                   [CAST_SCALE] = "scale",
                   [CAST_PANEL_ROWS] = "panelRows"},
    .contract = contract,
    .cycles = cycles,
    .useful = useful,
    .reference = reference,
};
