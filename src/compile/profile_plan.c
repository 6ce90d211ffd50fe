/* profile_plan.c - what the package says about every step of every tile, for profiles: operation,
 * kernel, work, and what an exchange sends and receives.
 *
 * The generator marks where the code of a step begins (CodeMark). Here each mark gets a
 * description; tiles that do the same share one. Cycles of useful work are
 * memory-boot-package.md 5.6: the issue cycles that the arithmetic itself needs at least, on
 * logical elements; physical work counts padding too. Times of an exchange are the schedule's,
 * which the rows were checked against. */
#include "compile/compile.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef ARRAY(ProfileStep) StepList;
typedef ARRAY(PackageText) MetadataList;
typedef ARRAY(ProfileSpan) SpanList;

typedef struct PlanBuilder {
    Compilation *c;
    StepList steps;
    Map known;         /* (step, variant, useful cycles) -> index + 1 */
    uint32_t *variant; /* [tile], of the current step: class + 1, copy + 1, 1 with a row; 0: none */
    uint32_t *cursor;  /* [tile]: next mark */
    SpanList *spans;   /* [tile], of the current phase */
} PlanBuilder;

/* ---- work ---- */

/* Tile cycles that the arithmetic of a call takes at least; -1: no estimate. */
static double issue_cycles(const KernelSpec *spec)
{
    double useful = (double)kernel_useful_cycles(spec);
    switch (spec->family) {
    case KERNEL_GEMM: /* FLOPs */
        return useful / (spec->p[GEMM_PRECISION] == F8F143 ? 256 : 128);
    case KERNEL_GELU: /* 7 issues for 4 values */
        return useful * 7 / 4;
    case KERNEL_BIAS_GELU:
        return useful * 8 / 4;
    case KERNEL_ADD: /* 4 lanes */
        return useful / 4;
    case KERNEL_REDUCE_SUM: /* 8 lanes or 4 */
        return useful / (spec->p[REDUCE_INTERLEAVED] ? 8 : 4) +
               (spec->p[REDUCE_GELU] ? spec->p[REDUCE_ELEMENTS] * 7.0 / 4 : 0);
    case KERNEL_CAST:
    case KERNEL_PACK: /* elements of 2 bytes, 4 bytes a cycle */
    case KERNEL_UNPACK:
        return useful / 2;
    case KERNEL_SOFTMAX: /* 8 for a pair of keys, 5 for a row */
        return useful * 4 + 5.0 * spec->p[SOFTMAX_ROWS];
    case KERNEL_FILL_ZERO:
        return 0;
    default:
        return -1;
    }
}

static const char *work_basis(uint16_t family)
{
    static const char *const basis[KERNEL_FAMILIES] = {
        [KERNEL_GEMM] = "FLOP / 128 (F16) or 256 (F8)",
        [KERNEL_GELU] = "7 issues per 4 values",
        [KERNEL_BIAS_GELU] = "8 issues per 4 values",
        [KERNEL_ADD] = "adds / 4",
        [KERNEL_REDUCE_SUM] = "adds / 4, / 8 of octets; 7 issues per 4 values of a GELU",
        [KERNEL_CAST] = "elements / 2",
        [KERNEL_PACK] = "bytes / 4",
        [KERNEL_UNPACK] = "bytes / 4",
        [KERNEL_SOFTMAX] = "8 per key pair + 5 per row",
        [KERNEL_FILL_ZERO] = "none: only padding"};
    return basis[family];
}

/* The logical part of a shard's elements, or of its last axis. */
static double logical_part(const PlanBuilder *b, uint32_t buffer, uint32_t tile, bool last_only)
{
    uint32_t id = b->c->program.buffers.items[buffer].value;
    if (id == 0xffffffff)
        return 1;
    const TensorType *type = &mid_value(&b->c->mid, id)->type;
    int32_t shard = type_shard_of_tile(type, tile);
    Region region;
    if (shard < 0)
        return 1;
    if (!type_shard_region(type, (uint32_t)shard, &region))
        return 0;
    double part = 1;
    for (uint32_t a = last_only ? region.rank - 1 : 0; a < region.rank; a++)
        part *= (double)(region.logical_end[a] - region.start[a]) /
                (double)(region.physical_end[a] - region.start[a]);
    return part;
}

/* A product's work is useful where result and inner axis are logical; other work where the result
 * is. Calls on a block of a shard count with the shard's share. */
static double useful_cycles(const PlanBuilder *b, const CallClass *class, uint32_t tile,
                            double physical)
{
    double part = logical_part(b, class->operands[0].buffer, tile, false);
    if (class->spec.family == KERNEL_GEMM)
        part *= logical_part(b, class->operands[1].buffer, tile, true);
    return physical * part;
}

/* ---- descriptions ---- */

__attribute__((format(printf, 4, 5))) static void add(PlanBuilder *b, MetadataList *list,
                                                      const char *name, const char *format, ...)
{
    char value[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    array_push(list, (PackageText){name, arena_strdup(&b->c->arena, value)});
}

static void add_kernel(PlanBuilder *b, MetadataList *list, const KernelSpec *spec)
{
    Text text = {0};
    kernel_spec_print(&text, spec);
    add(b, list, "kernelSpec", "%s", text_string(&text));
    text_free(&text);
    KernelContract contract;
    Status status = kernel_contract(spec, &contract);
    if (status_discard(status)) /* emission has asked before: it can not fail here */
        return;
    uint32_t inputs = 0;
    for (uint32_t i = 0; i < contract.operand_count; i++) {
        const OperandContract *operand = &contract.operands[i];
        uint32_t elements = operand->bytes / precision_bytes(operand->precision);
        char name[32];
        if (operand->output)
            snprintf(name, sizeof name, i ? "output%uElements" : "outputElements", i);
        else
            snprintf(name, sizeof name, "input%uElements", inputs++);
        add(b, list, arena_strdup(&b->c->arena, name), "%u", elements);
    }
    add(b, list, "predictedCycles", "%llu", (unsigned long long)kernel_cycles(spec));
}

static uint32_t finish_step(PlanBuilder *b, ProfileStep step, MetadataList *list)
{
    step.metadata = arena_copy(&b->c->arena, list->items, list->count * sizeof(PackageText), 8);
    step.metadata_count = (uint32_t)list->count;
    array_free(list);
    if (!step.operation)
        step.operation = "";
    array_push(&b->steps, step);
    return (uint32_t)b->steps.count - 1;
}

static uint32_t call_step(PlanBuilder *b, uint32_t s, uint32_t class_index, double useful,
                          double physical)
{
    const Step *step = &b->c->program.steps.items[s];
    const CallClass *class = &b->c->program.classes.items[class_index];
    MetadataList list = {0};
    add(b, &list, "reason", "KernelCall");
    add(b, &list, "value", "%s", b->c->program.buffers.items[class->operands[0].buffer].name);
    add_kernel(b, &list, &class->spec);
    if (physical >= 0) {
        add(b, &list, "usefulCycles", "%.1f", useful);
        add(b, &list, "physicalWorkCycles", "%.1f", physical);
        add(b, &list, "workEstimateBasis", "%s", work_basis(class->spec.family));
    }
    ProfileStep out = {.phase = s,
                       .kind = PROFILE_COMPUTE,
                       .operation = step->operation,
                       .kernel = kernel_family_name(class->spec.family)};
    return finish_step(b, out, &list);
}

/* All copies of a tile in a step run one after the other. */
static uint32_t copy_step(PlanBuilder *b, uint32_t s, uint32_t first, uint32_t count)
{
    const Step *step = &b->c->program.steps.items[s];
    const LocalCopy *copies = &b->c->program.copies.items[first];
    MetadataList list = {0};
    uint64_t bytes = 0, predicted = 0;
    for (uint32_t i = 0; i < count; i++) {
        KernelSpec spec = local_copy_spec(&copies[i]);
        bytes += (uint64_t)copies[i].rows * copies[i].row_bytes;
        predicted += kernel_cycles(&spec);
    }
    add(b, &list, "reason", "LocalCopy");
    add(b, &list, "value", "%s", b->c->program.buffers.items[copies[0].out.buffer].name);
    add(b, &list, "bytes", "%llu", (unsigned long long)bytes);
    add(b, &list, "pattern", "%u x %u, pitches %u, %u", copies[0].rows, copies[0].row_bytes,
        copies[0].out_pitch, copies[0].in_pitch);
    add(b, &list, "invocations", "%u", count);
    add(b, &list, "predictedCycles", "%llu", (unsigned long long)predicted);
    ProfileStep out = {
        .phase = s, .kind = PROFILE_COMPUTE, .operation = step->operation, .kernel = "copy"};
    return finish_step(b, out, &list);
}

static uint32_t exchange_step(PlanBuilder *b, uint32_t s, bool takes_part)
{
    const Step *step = &b->c->program.steps.items[s];
    const PackagePhase *phase = &b->c->package.phases[step->first];
    MetadataList list = {0};
    add(b, &list, "reason", takes_part ? "Exchange" : "ExchangeBarrier");
    if (takes_part) {
        add(b, &list, "transfers", "%u", phase->transfers);
        add(b, &list, "bound", "%u", phase->bound);
        add(b, &list, "wordsReceived", "%llu", (unsigned long long)phase->words_received);
    }
    ProfileStep out = {.phase = PROFILE_EXCHANGE_PHASE + step->first,
                       .kind = takes_part ? PROFILE_EXCHANGE : PROFILE_SYNC,
                       .operation = step->operation,
                       .kernel = takes_part ? "exchange" : "sync",
                       .event_cycles = takes_part ? phase->horizon : 0};
    return finish_step(b, out, &list);
}

static uint32_t repeat_step(PlanBuilder *b, uint32_t s)
{
    const Step *step = &b->c->program.steps.items[s];
    MetadataList list = {0};
    bool begins = step->kind == STEP_REPEAT;
    add(b, &list, "reason", "Repeat");
    if (begins)
        add(b, &list, "iterations", "%u", step->count);
    ProfileStep out = {.phase = s,
                       .kind = PROFILE_COMPUTE,
                       .operation = step->operation,
                       .kernel = begins ? PROFILE_REPEAT : PROFILE_REPEAT_END};
    return finish_step(b, out, &list);
}

/* ---- steps of the program, one after the other ---- */

static void find_variants(PlanBuilder *b, uint32_t s)
{
    const TileProgram *program = &b->c->program;
    const Step *step = &program->steps.items[s];
    memset(b->variant, 0, program->tiles * sizeof *b->variant);
    if (step->kind == STEP_CALL)
        for (uint32_t c = step->first; c < step->first + step->count; c++)
            for (uint32_t r = 0; r < program->classes.items[c].range_count; r++) {
                TileRange range = program->classes.items[c].ranges[r];
                for (uint32_t t = range.first; t <= range.last; t++)
                    b->variant[t] = c + 1;
            }
    if (step->kind == STEP_COPY)
        for (uint32_t c = step->first + step->count; c-- > step->first;)
            b->variant[program->copies.items[c].tile] = c + 1;
    if (step->kind == STEP_EXCHANGE)
        for (uint32_t t = 0; t < program->tiles; t++)
            b->variant[t] =
                b->c->placement.row_address[(size_t)step->first * program->tiles + t] != 0;
}

static uint64_t copies_key(const LocalCopy *copies, uint32_t count)
{
    uint64_t key = count;
    for (uint32_t i = 0; i < count; i++) {
        const LocalCopy *c = &copies[i];
        uint32_t shape[] = {c->rows, c->row_bytes, c->out_pitch, c->in_pitch, c->out.buffer};
        key = hash_bytes(shape, sizeof shape, key);
    }
    return key;
}

static uint32_t describe(PlanBuilder *b, uint32_t s, uint32_t tile)
{
    const TileProgram *program = &b->c->program;
    const Step *step = &program->steps.items[s];
    uint32_t variant = b->variant[tile], count = 0;
    double physical = -1, useful = -1;
    uint64_t key = variant;
    if (step->kind == STEP_CALL) {
        const CallClass *class = &program->classes.items[variant - 1];
        physical = issue_cycles(&class->spec);
        if (physical >= 0)
            useful = useful_cycles(b, class, tile, physical);
    } else if (step->kind == STEP_COPY) {
        uint32_t first = variant - 1;
        while (first + count < step->first + step->count &&
               program->copies.items[first + count].tile == tile)
            count++;
        key = copies_key(&program->copies.items[first], count);
    }
    struct {
        uint64_t step, key;
        double useful;
    } all = {s, key, useful};
    uint64_t *known = map_at(&b->known, hash_bytes(&all, sizeof all, 0), NULL);
    if (*known)
        return (uint32_t)*known - 1;
    uint32_t index;
    if (step->kind == STEP_CALL)
        index = call_step(b, s, variant - 1, useful, physical);
    else if (step->kind == STEP_COPY)
        index = copy_step(b, s, variant - 1, count);
    else if (step->kind == STEP_EXCHANGE)
        index = exchange_step(b, s, variant != 0);
    else
        index = repeat_step(b, s);
    *known = index + 1;
    return index;
}

/* ---- spans of a phase ---- */

static void add_span(PlanBuilder *b, uint32_t tile, ProfileSpan span)
{
    if (tile < b->c->program.tiles && span.end <= SPAN_TIME_LIMIT)
        array_push(&b->spans[tile], span);
}

/* An item goes out at S + i, is at the receiver's mux T + 1 events later and in
 * memory 52 + 2 row events after that (exchange.md 3.3); 64-bit items one event later. */
static void add_transfer(PlanBuilder *b, const ExchangePhase *phase, const Transfer *transfer,
                         const MessageSlot *slot)
{
    uint32_t items = slot->paired ? transfer->words / 2 : transfer->words;
    uint32_t source = target_physical(transfer->source.tile);
    uint16_t fanout = (uint16_t)min_u32(transfer->receiver_count, SPAN_FANOUT_LIMIT);
    ProfileSpan send = {slot->start, slot->start + items, SPAN_SEND, slot->paired, fanout};
    add_span(b, transfer->source.tile, send);
    if (slot->paired) {
        send.kind = SPAN_PARTNER;
        add_span(b, target_logical(target_partner(source)), send);
    }
    for (uint32_t r = 0; r < transfer->receiver_count; r++) {
        uint32_t tile = phase->receivers[transfer->first_receiver + r].tile;
        uint32_t physical = target_physical(tile);
        int32_t lag = 53 + 2 * target_row(physical) + slot->paired;
        uint32_t route_end = slot->paired ? target_early_member(source, physical) : physical;
        int32_t start = (int32_t)slot->start + lag;
        if (route_end != source)
            start += target_route_time(source, route_end);
        start = start < 0 ? 0 : start;
        add_span(b, tile,
                 (ProfileSpan){(uint32_t)start, (uint32_t)start + items, SPAN_RECEIVE, slot->paired,
                               fanout});
    }
}

static int by_span(const void *a, const void *b)
{
    const ProfileSpan *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* Spans of one kind that touch become one. */
static void merge_spans(SpanList *spans)
{
    if (!spans->count)
        return;
    qsort(spans->items, spans->count, sizeof *spans->items, by_span);
    size_t kept = 0;
    for (size_t i = 1; i < spans->count; i++) {
        ProfileSpan *last = &spans->items[kept], *next = &spans->items[i];
        bool same = last->kind == next->kind && last->paired == next->paired &&
                    last->fanout == next->fanout;
        if (same && next->start <= last->end)
            last->end = max_u32(last->end, next->end);
        else
            spans->items[++kept] = *next;
    }
    spans->count = kept + 1;
}

static void collect_spans(PlanBuilder *b, uint32_t p)
{
    const PhaseSchedule *schedule = &b->c->schedule.phases[p];
    for (uint32_t t = 0; t < b->c->program.tiles; t++)
        b->spans[t].count = 0;
    for (uint32_t t = 0; t < schedule->phase->transfer_count; t++)
        add_transfer(b, schedule->phase, &schedule->phase->transfers[t], &schedule->slots[t]);
    for (uint32_t t = 0; t < b->c->program.tiles; t++)
        merge_spans(&b->spans[t]);
}

static void add_activity(PlanBuilder *b, uint32_t step, uint32_t phase, uint32_t tile,
                         ProfileTilePlan *plan)
{
    const SpanList *spans = &b->spans[tile];
    plan->activities[plan->activity_count++] = (ProfileActivity){
        .step = step,
        .event_cycles = b->c->schedule.phases[phase].tile_horizon[tile],
        .spans = arena_copy(&b->c->arena, spans->items, spans->count * sizeof(ProfileSpan), 8),
        .span_count = (uint32_t)spans->count};
}

static void plan_step(PlanBuilder *b, uint32_t s)
{
    const TileProgram *program = &b->c->program;
    const Step *step = &program->steps.items[s];
    find_variants(b, s);
    if (step->kind == STEP_EXCHANGE)
        collect_spans(b, step->first);
    for (uint32_t t = 0; t < program->tiles; t++) {
        const TileCode *code = &b->c->images.tiles[target_physical(t)];
        if (b->cursor[t] == code->mark_count || code->marks[b->cursor[t]].step != s)
            continue;
        ProfileTilePlan *plan = &b->c->package.profile_tiles[t];
        uint32_t index = describe(b, s, t);
        uint32_t mark = b->cursor[t]++;
        plan->steps[mark] = index;
        plan->addresses[mark] = code->marks[mark].address;
        if (step->kind == STEP_EXCHANGE && b->variant[t])
            add_activity(b, index, step->first, t, plan);
    }
}

static void open_plans(PlanBuilder *b)
{
    Compilation *c = b->c;
    c->package.profile_tile_count = c->program.tiles;
    c->package.profile_tiles = arena_array(&c->arena, ProfileTilePlan, c->program.tiles);
    for (uint32_t t = 0; t < c->program.tiles; t++) {
        uint32_t physical = target_physical(t), count = c->images.tiles[physical].mark_count;
        c->package.profile_tiles[t] = (ProfileTilePlan){
            .physical = physical,
            .step_count = count,
            .steps = arena_array(&c->arena, uint32_t, count),
            .addresses = arena_array(&c->arena, uint32_t, count),
            .activities = arena_array(&c->arena, ProfileActivity, c->program.phases.count)};
    }
}

static void add_predictions(Compilation *c)
{
    const Graph *graph = c->graph;
    uint32_t *iterations = arena_array(&c->arena, uint32_t, graph->regions.count);
    for (uint32_t r = 0; r < graph->regions.count; r++)
        iterations[r] = 1;
    for (uint32_t o = 0; o < graph->operations.count; o++)
        if (graph->operations.items[o].kind == OP_REPEAT)
            iterations[graph->operations.items[o].body] = graph->operations.items[o].count;
    c->package.predictions = arena_array(&c->arena, ProfilePrediction, c->recipe->op_count);
    for (uint32_t o = 0; o < c->recipe->op_count; o++) {
        const OpPlan *plan = &c->recipe->ops[o];
        if (!plan->key || plan->cycles <= 0 || graph->operations.items[o].kind == OP_REPEAT)
            continue;
        double times = iterations[graph->operations.items[o].region];
        c->package.predictions[c->package.prediction_count++] =
            (ProfilePrediction){plan->key, plan->cycles * times, plan->exchange_cycles * times};
    }
}

/* The sample buffers as an output of raw words, tile after tile. */
void compile_sample_binding(Compilation *c, PackageBinding *out)
{
    const Buffer *buffer = &c->program.buffers.items[c->program.sample_buffer];
    bool any[TILES] = {0};
    *out = (PackageBinding){.name = PROFILE_BINDING,
                            .dtype = "u32",
                            .slices = arena_array(&c->arena, PackageSlice, c->program.tiles)};
    for (uint32_t t = 0; t < c->program.tiles; t++)
        any[target_physical(t)] = buffer->bytes[t] != 0;
    uint64_t offset = 0;
    for (uint32_t p = 0; p < TILES; p++) {
        uint32_t t = target_logical(p);
        if (!any[p])
            continue;
        out->slices[out->slice_count++] =
            (PackageSlice){p, placement_address(&c->placement, t, c->program.sample_buffer), offset,
                           buffer->bytes[t]};
        offset += buffer->bytes[t];
    }
    out->shape = (Shape){1, {(uint32_t)(offset / 4)}};
}

void compile_profile_plan(Compilation *c)
{
    PlanBuilder b = {.c = c};
    b.variant = xcalloc(c->program.tiles, sizeof *b.variant);
    b.cursor = xcalloc(c->program.tiles, sizeof *b.cursor);
    b.spans = xcalloc(c->program.tiles, sizeof *b.spans);
    open_plans(&b);
    for (uint32_t s = 0; s < c->program.steps.count; s++)
        plan_step(&b, s);
    add_predictions(c);
    c->package.profile_step_count = (uint32_t)b.steps.count;
    c->package.profile_steps =
        arena_copy(&c->arena, b.steps.items, b.steps.count * sizeof(ProfileStep), 8);
    for (uint32_t t = 0; t < c->program.tiles; t++)
        array_free(&b.spans[t]);
    free(b.spans);
    free(b.cursor);
    free(b.variant);
    array_free(&b.steps);
    map_free(&b.known);
}
