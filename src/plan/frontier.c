/* frontier.c - of the ways to run a product, those that no other one beats in everything.
 *
 * Figures of a candidate by itself: cycles with all operands still to be brought, cycles of
 * exchange in them, peak bytes of a tile in standard and in interleaved memory, its largest
 * allocation, bytes of its exchange rows. Candidates are compared within a boundary: where the
 * streamed operand and the result lie in the same kind of format. What is around a product can
 * save it all of the words that bring its operands, and no more; so one whose cycles without those
 * words are above the cycles of several others with theirs, and which needs no less memory, can not
 * become the better one, and the search never sees it. */
#include "plan/internal.h"

#include <stdlib.h>

enum {
    BEATEN_BY = 3,        /* others: formats that suit a neighbour are not in the figures */
    MESSAGE_BYTES = 24,   /* of row code, about */
    PIECE_BYTES = 8 << 10 /* what is stored once comes in pieces of some such size */
};

typedef struct Peaks { /* bytes by memory class */
    uint64_t now[2], most[2], largest;
} Peaks;

static uint64_t peaks_take(Peaks *peaks, uint64_t bytes, uint8_t class)
{
    peaks->now[class] += bytes;
    if (peaks->now[class] > peaks->most[class])
        peaks->most[class] = peaks->now[class];
    peaks->largest = bytes > peaks->largest ? bytes : peaks->largest;
    return bytes;
}

typedef struct Judged {
    PlanFigures figures;
    double least; /* cycles when nothing has to be brought */
    uint32_t boundary;
} Judged;

/* Orientation, whether the sum is spread, and in which order the result lies. */
static uint32_t boundary_of(const OpPlan *plan)
{
    return plan->swapped | (uint32_t)plan->scatter << 1 | (uint32_t)plan->result_staging << 3 |
           (uint32_t)plan->result.order.kind << 5 | (plan->operand_count - 2) << 9 |
           (uint32_t)plan->gelu << 11;
}

static const char *boundary_name(Arena *arena, const OpPlan *plan)
{
    static const char *const orders[] = {"row-major",   "left",        "trans-left",
                                         "trans-right", "block-major", "trans-block-major"};
    static const char *const spreads[] = {"", ", spread by rows", ", spread by columns",
                                          ", spread by shares"};
    static const char *const fused[] = {"", ", 1 add fused", ", 2 adds fused"};
    const OperandPlan *streamed = &plan->operands[plan->swapped ? 1 : 0];
    return arena_printf(arena, "%s -> %s%s%s%s", orders[streamed->format.order.kind],
                        orders[plan->result.order.kind], spreads[plan->scatter],
                        fused[plan->operand_count - 2], plan->gelu ? ", GELU" : "");
}

static Status judge(const Planner *p, uint32_t op, const Candidate *c, Judged *out)
{
    const OpPlan *plan = &c->plan;
    TensorType operands[2], product, result;
    Mapping mapping;
    Peaks peaks = {0};
    uint64_t words = 0, messages = 0;
    *out = (Judged){.boundary = boundary_of(plan)};
    for (uint32_t j = 0; j < 2; j++) {
        TRY(plan_operand_type(p->graph, op, plan, j, &operands[j]));
        const Format *format = &operands[j].format;
        uint64_t bytes = type_max_shard_bytes(&operands[j]);
        peaks_take(&peaks, bytes, format->memory_class);
        ValueId value = plan_input(p->graph, op, plan, j);
        uint8_t kind = p->graph->values.items[value].kind;
        bool parameter = kind == VALUE_PARAMETER || kind == VALUE_ARGUMENT;
        if (parameter && !p->options->weights_once)
            continue; /* lies where it is wanted */
        words += bytes / 4;
        messages += 1 + bytes / PIECE_BYTES;
    }
    TRY(plan_result_type(p->graph, op, plan, &result, &mapping));
    if (plan->inner > 1) {
        TRY(plan_partial_type(p->graph, op, plan, &product));
        peaks_take(&peaks, type_max_shard_bytes(&product), product.format.memory_class);
        for (uint32_t j = 0; j < 2; j++) /* gone when the sums are made */
            peaks.now[operands[j].format.memory_class] -= type_max_shard_bytes(&operands[j]);
        uint64_t part = type_max_shard_bytes(&result), stack = part * (plan->inner - 1);
        peaks_take(&peaks, stack, MEMORY_STANDARD);
        messages += 2 * (plan->inner - 1);
    }
    peaks_take(&peaks, type_max_shard_bytes(&result), result.format.memory_class);
    uint32_t slices = max_u32(plan->slices, 1);
    double inside = c->words ? target_phase_cost(c->words, c->sources) : 0;
    double outside = (double)slices * target_phase_cost((uint32_t)words, 0);
    out->least = c->kernel + inside;
    out->figures = (PlanFigures){.cycles = out->least + outside,
                                 .exchange_cycles = inside + outside,
                                 .standard = peaks.most[MEMORY_STANDARD],
                                 .interleaved = peaks.most[MEMORY_INTERLEAVED],
                                 .largest = peaks.largest,
                                 .row_bytes = MESSAGE_BYTES * slices * messages};
    return STATUS_OK;
}

/* b needs at least as much as a in everything but cycles. */
static bool needs_no_less(const PlanFigures *a, const PlanFigures *b)
{
    return a->standard <= b->standard && a->interleaved <= b->interleaved &&
           a->largest <= b->largest && a->row_bytes <= b->row_bytes;
}

static bool dominates(const Judged *a, const Judged *b)
{
    return a->boundary == b->boundary && a->figures.cycles <= b->figures.cycles &&
           needs_no_less(&a->figures, &b->figures);
}

static Judged *judge_all(const Planner *p, uint32_t op, const CandidateArray *candidates)
{
    Judged *judged = xcalloc(candidates->count + 1, sizeof *judged);
    for (size_t i = 0; i < candidates->count; i++)
        if (status_discard(judge(p, op, &candidates->items[i], &judged[i])))
            judged[i] = (Judged){.boundary = UINT32_MAX}; /* nothing is known: it stays */
    return judged;
}

void frontier_prune(const Planner *p, uint32_t op, CandidateArray *candidates)
{
    Judged *judged = judge_all(p, op, candidates);
    size_t kept = 0;
    for (size_t i = 0; i < candidates->count; i++) {
        uint32_t better = 0;
        for (size_t k = 0; k < candidates->count && judged[i].boundary != UINT32_MAX; k++)
            better += k != i && judged[k].boundary == judged[i].boundary &&
                      judged[k].figures.cycles < judged[i].least &&
                      needs_no_less(&judged[k].figures, &judged[i].figures);
        if (better < BEATEN_BY) /* the order is kept: nothing that is still to be compared moves */
            candidates->items[kept++] = candidates->items[i];
    }
    candidates->count = kept;
    free(judged);
}

/* ---- for the reader ---- */

typedef ARRAY(FrontierPoint) PointArray;

static int by_cycles(const void *left, const void *right)
{
    const FrontierPoint *a = left, *b = right;
    int boundary = strcmp(a->boundary, b->boundary);
    if (boundary)
        return boundary;
    if (a->figures.cycles != b->figures.cycles)
        return a->figures.cycles < b->figures.cycles ? -1 : 1;
    if (a->plan.rows != b->plan.rows)
        return a->plan.rows < b->plan.rows ? -1 : 1;
    return a->plan.columns < b->plan.columns ? -1 : a->plan.columns > b->plan.columns;
}

static void add_points(Planner *p, uint32_t op, const CandidateArray *candidates, PointArray *out)
{
    Judged *judged = judge_all(p, op, candidates);
    size_t first = out->count;
    for (size_t i = 0; i < candidates->count; i++) {
        bool beaten = judged[i].boundary == UINT32_MAX;
        for (size_t k = 0; k < candidates->count && !beaten; k++) /* of equals, the first */
            beaten = k != i && dominates(&judged[k], &judged[i]) &&
                     (k < i || !dominates(&judged[i], &judged[k]));
        if (!beaten)
            array_push(out, (FrontierPoint){.op = op,
                                            .boundary =
                                                boundary_name(p->arena, &candidates->items[i].plan),
                                            .plan = candidates->items[i].plan,
                                            .figures = judged[i].figures});
    }
    if (out->count > first)
        qsort(out->items + first, out->count - first, sizeof *out->items, by_cycles);
    free(judged);
}

void frontier_report(Planner *p, PlanReport *out)
{
    size_t count = p->graph->operations.count;
    PointArray points = {0};
    out->ops = arena_array(p->arena, FrontierOp, count);
    for (uint32_t op = 0; op < count; op++) {
        if (plan_operation(p->graph, op)->kind != OP_GEMM || !p->candidates[op].count)
            continue;
        FrontierOp *entry = &out->ops[out->op_count++];
        *entry = (FrontierOp){.op = op,
                              .grids = p->listed[op].grids,
                              .priced = p->listed[op].priced,
                              .retained = (uint32_t)p->candidates[op].count,
                              .first = (uint32_t)points.count};
        add_points(p, op, &p->candidates[op], &points);
        entry->count = (uint32_t)points.count - entry->first;
        log_event(LOG_DEBUG, "GEMM model frontier",
                  "operation=%s assignments=%u priced=%u candidates=%u retained=%u",
                  plan_operation(p->graph, op)->key, entry->grids, entry->priced, entry->retained,
                  entry->count);
    }
    out->point_count = (uint32_t)points.count;
    out->points = arena_copy(p->arena, points.items, points.count * sizeof *points.items, 8);
    array_free(&points);
}
