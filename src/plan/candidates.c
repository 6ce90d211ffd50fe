/* candidates.c - the ways to carry out one operation, whatever the formats around it.
 *
 * GEMM: every grid rows x columns x inner that the tiles can hold is ranked by a closed estimate
 * (kernel, reduction, words in); the best are priced with the kernels' own formulas. Each comes at
 * both ends of the tile range, so that two operations in a row can lie on different tiles and no
 * byte needs a copy within a tile, and with the adds behind it fused or not. */
#include "plan/internal.h"

enum {
    GRIDS_KEPT = 28, /* the best, whatever they ask of memory */
    MOST_GRIDS = 80,
    GRIDS_LIGHT = 4 /* and this many of those with no heavier weights than it has */
};

typedef struct Grid {
    uint32_t rows, columns, inner, piece; /* piece: K per tile */
    bool swapped;
    uint64_t weights; /* bytes of the right operand per tile */
    double estimate;
} Grid;
typedef ARRAY(Grid) GridArray;

/* ---- what can be fused ---- */

static const Operation *single_user(const Planner *p, ValueId value, uint32_t *index)
{
    const Graph *g = p->graph;
    if (p->uses[value] != 1)
        return NULL;
    for (uint32_t i = 0; i < g->operations.count; i++)
        for (uint32_t j = 0; j < g->operations.items[i].input_count; j++)
            if (g->operations.items[i].inputs[j] == value) {
                *index = i;
                return &g->operations.items[i];
            }
    return NULL;
}

/* The value exists when operation `op` runs. */
static bool known_before(const Graph *g, ValueId value, uint32_t op)
{
    const Value *v = &g->values.items[value];
    return v->kind != VALUE_RESULT || v->operation < op;
}

uint32_t fusable_adds(const Planner *p, uint32_t op, uint32_t adds[2])
{
    const Operation *gemm = plan_operation(p->graph, op);
    ValueId value = gemm->results[0];
    uint32_t count = 0, index;
    while (count < 2) {
        const Operation *add = single_user(p, value, &index);
        if (!add || add->kind != OP_ADD || add->region != gemm->region || index < op)
            break;
        ValueId other = add->inputs[0] == value ? add->inputs[1] : add->inputs[0];
        if (!known_before(p->graph, other, op) || other == value ||
            !shape_equal(plan_shape(p->graph, add->results[0]), plan_shape(p->graph, value)))
            break;
        adds[count++] = index;
        value = add->results[0];
    }
    return count;
}

bool fusable_gelu(const Planner *p, uint32_t op, uint32_t addends)
{
    uint32_t adds[2], index = op, region = plan_operation(p->graph, op)->region;
    if (addends > fusable_adds(p, op, adds))
        return false;
    ValueId value = plan_operation(p->graph, addends ? adds[addends - 1] : op)->results[0];
    const Operation *user = single_user(p, value, &index);
    return user && user->kind == OP_GELU && user->region == region && index > op;
}

/* ---- GEMM grids ---- */

/* amp-kernels.md 5.1: a launch per 16 columns and 16 of K: 160 cycles and 4 per row. */
static double estimate_gemm(uint32_t rows, uint32_t inner_groups, uint32_t column_groups)
{
    return 294.0 + (double)inner_groups * column_groups * (4.0 * rows + 160.0);
}

static double estimate_grid(const Planner *p, const GemmShape *s, const Grid *g)
{
    uint32_t outer_rows = s->outer * s->rows;
    uint32_t rows = g->swapped ? round_up_u32(ceil_div_u32(outer_rows, g->rows), 16)
                               : ceil_div_u32(outer_rows, g->rows);
    uint32_t columns = g->swapped ? ceil_div_u32(s->columns, g->columns)
                                  : 16 * ceil_div_u32(ceil_div_u32(s->columns, 16), g->columns);
    uint32_t streamed = g->swapped ? columns : rows, stationary = g->swapped ? rows : columns;
    double cycles = estimate_gemm(streamed, g->piece / 16, stationary / 16);
    double words = rows * (double)g->piece / 2;
    if (p->options->weights_once)
        words += columns * (double)g->piece / 2;
    double elements = rows * (double)columns;
    if (g->inner > 1 && s->outer == 1) { /* amp-kernels.md 5.2, spread over the tiles */
        double part = elements / g->inner;
        cycles += target_phase_cost((uint32_t)(part / 2 * (g->inner - 1)), g->inner - 1);
        cycles += 282 + 6 * part / 24 * (g->inner + 1) + (g->swapped ? 300 + 1.3 * part : 0);
    } else if (g->inner > 1) {
        cycles += target_phase_cost((uint32_t)(elements / 2 * (g->inner - 1)), g->inner - 1);
        cycles += 282 + 6 * elements / 48 * (11 + 2 * (g->inner - 1));
    }
    if (g->swapped && (g->inner == 1 || s->outer > 1)) /* unpacking */
        cycles += 300 + 2.5 * elements;
    return cycles + words;
}

static int by_estimate(const void *left, const void *right)
{
    const Grid *a = left, *b = right;
    if (a->estimate != b->estimate)
        return a->estimate < b->estimate ? -1 : 1;
    if (a->swapped != b->swapped)
        return a->swapped ? 1 : -1;
    if (a->inner != b->inner)
        return a->inner < b->inner ? -1 : 1;
    return a->columns < b->columns ? -1 : a->columns > b->columns;
}

/* The numbers of parts that differ in the size of a part, ascending: 1 .. units. */
static uint32_t next_parts(uint32_t units, uint32_t parts)
{
    uint32_t size = ceil_div_u32(units, parts);
    return size > 1 ? max_u32(parts + 1, ceil_div_u32(units, size - 1)) : units + 1;
}

static bool grid_possible(const Planner *p, uint32_t op, const Grid *g)
{
    const Operation *o = plan_operation(p->graph, op);
    const Shape *left = plan_shape(p->graph, o->inputs[0]);
    GemmShape s = gemm_shape(p->graph, op);
    if (g->swapped && s.outer > 1)
        return false;
    if (g->piece > UINT16_MAX)
        return false;
    return rows_can_split(left, left->rank - 2, g->rows, g->swapped ? 16 : 1);
}

static void list_grids(const Planner *p, uint32_t op, bool swapped, GridArray *out)
{
    GemmShape s = gemm_shape(p->graph, op);
    uint32_t tiles = p->options->tiles, k_groups = ceil_div_u32(s.inner, 16);
    uint32_t row_units = swapped ? ceil_div_u32(s.rows, 16) : s.outer * s.rows;
    uint32_t column_units = ceil_div_u32(s.columns, swapped ? 2 : 16);
    for (uint32_t i = 1; i <= k_groups && i <= tiles; i = next_parts(k_groups, i))
        for (uint32_t c = 1; c <= column_units && c * i <= tiles; c = next_parts(column_units, c))
            for (uint32_t r = 1; r <= row_units && r * c * i <= tiles;
                 r = next_parts(row_units, r)) {
                Grid g = {.rows = r, .columns = c, .swapped = swapped};
                g.piece = 16 * ceil_div_u32(k_groups, i);
                g.inner = ceil_div_u32(s.inner, g.piece);
                if (g.inner != i || !grid_possible(p, op, &g))
                    continue;
                g.weights = 2ull * ceil_div_u32(s.columns, c) * g.piece;
                g.estimate = estimate_grid(p, &s, &g);
                array_push(out, g);
            }
}

/* A tile's part of its own partial goes into the stack by a copy: a row of bytes per panel. */
static double own_part_cycles(Costs *costs, const TensorType *partial, const TensorType *part)
{
    uint32_t outer, rows, columns, part_rows, part_columns;
    type_shard_matrix(partial, 0, &outer, &rows, &columns);
    type_shard_matrix(part, 0, &outer, &part_rows, &part_columns);
    bool turned = part->format.order.kind == ORDER_TRANSPOSED_LEFT;
    KernelSpec copy = {.family = KERNEL_COPY, .p = {[COPY_APART] = 1}};
    copy.p[COPY_ROWS] = (int32_t)((turned ? part_rows : part_columns) / 16);
    copy.p[COPY_ROW_BYTES] = (int32_t)(32 * (turned ? part_columns : part_rows));
    copy.p[COPY_OUT_PITCH] = copy.p[COPY_ROW_BYTES];
    copy.p[COPY_IN_PITCH] = (int32_t)(32 * (turned ? columns : rows));
    return costs_kernel(costs, &copy);
}

/* Every slice but the first accumulates; the last may be thinner. */
static Status price_slices(Planner *p, uint32_t op, Candidate *c)
{
    const OpPlan *plan = &c->plan;
    uint32_t inner = gemm_shape(p->graph, op).inner, step = plan->inner_block * plan->inner;
    TensorType product, left, right;
    Mapping mapping;
    TRY(plan_partial_type(p->graph, op, plan, &product));
    for (uint32_t slice = 1; slice * step < inner; slice++) {
        TRY(plan_slice(p->graph, op, plan, slice, 0, &left, &mapping));
        TRY(plan_slice(p->graph, op, plan, slice, 1, &right, &mapping));
        KernelSpec gemm = {.family = KERNEL_GEMM, .p = {[GEMM_ACCUMULATE] = 1}};
        ShardOf shards[3] = {{&product, 0}, {&left, 0}, {&right, 0}};
        TRY(plan_fill_spec(&gemm, shards, 3));
        int32_t block = right.format.order.row_block, calls = gemm.p[GEMM_INNER] / block;
        gemm.p[GEMM_INNER] = block;
        c->kernel += calls * costs_kernel(&p->costs, &gemm);
    }
    return STATUS_OK;
}

static Status price_gemm(Planner *p, uint32_t op, Candidate *c)
{
    TensorType left, right, result, product, stored;
    Mapping mapping;
    const OpPlan *plan = &c->plan;
    TRY(plan_operand_type(p->graph, op, plan, 0, &left));
    TRY(plan_operand_type(p->graph, op, plan, 1, &right));
    TRY(plan_result_type(p->graph, op, plan, &stored, &mapping));
    TRY(plan_product_type(p->graph, op, plan, &result));
    product = result;
    if (plan->inner > 1)
        TRY(plan_partial_type(p->graph, op, plan, &product));
    TRY(type_check(&left));
    TRY(type_check(&right));
    TRY(type_check(&product));
    KernelSpec gemm = {.family = KERNEL_GEMM};
    uint32_t addends = plan->operand_count - 2;
    gemm.p[GEMM_ACCUMULATE] = plan->inner == 1 && addends > 0;
    ShardOf shards[3] = {
        {&product, 0}, {plan->swapped ? &right : &left, 0}, {plan->swapped ? &left : &right, 0}};
    TRY(costs_pattern(&p->costs, gemm, shards, 3, &c->kernel));
    if (plan->slices > 1)
        TRY(price_slices(p, op, c));
    uint64_t shard = type_max_shard_bytes(&result);
    c->bytes = shard;
    if (plan->result_staging != STAGING_DIRECT) {
        ShardOf unpack[2] = {{&stored, 0}, {&result, 0}};
        double cycles;
        TRY(costs_pattern(&p->costs, (KernelSpec){.family = KERNEL_UNPACK}, unpack, 2, &cycles));
        c->kernel += cycles;
        c->bytes += type_max_shard_bytes(&stored);
    }
    if (plan->inner == 1)
        return STATUS_OK;
    uint32_t others = plan->inner - 1;
    c->bytes += type_max_shard_bytes(&product) + shard * (others + addends);
    c->words = (uint32_t)(shard / 4) * others;
    c->sources = others;
    if (plan->scatter && plan->scatter != SCATTER_SHARES) {
        c->bytes += shard;
        c->kernel += own_part_cycles(&p->costs, &product, &result);
    }
    KernelSpec sum = {.family = KERNEL_REDUCE_SUM};
    sum.p[REDUCE_PARTIALS] = (int32_t)(1 + others + addends);
    sum.p[REDUCE_GELU] = plan->gelu;
    ShardOf out = {&result, 0};
    double cycles;
    TRY(costs_pattern(&p->costs, sum, &out, 1, &cycles));
    c->kernel += cycles;
    return STATUS_OK;
}

/* The same with the GELU behind it, when that is quicker than a GELU where the sums lie. True:
 * where all tiles take part in the sums, there is no better place for it, so *c is not needed. */
static bool end_in_gelu(Planner *p, uint32_t op, const Candidate *c, CandidateArray *out)
{
    Candidate fused = *c;
    TensorType stored;
    Mapping mapping;
    ShardOf shards[2] = {{&stored, 0}, {&stored, 0}};
    fused.plan.gelu = true;
    fused.kernel = 0;
    if (status_discard(price_gemm(p, op, &fused)) ||
        status_discard(plan_result_type(p->graph, op, &c->plan, &stored, &mapping)) ||
        status_discard(costs_pattern(&p->costs, (KernelSpec){.family = KERNEL_GELU}, shards, 2,
                                     &fused.gelu)) ||
        fused.kernel >= c->kernel + fused.gelu)
        return false;
    array_push(out, fused);
    return c->plan.scatter != SCATTER_NO;
}

typedef struct Variant { /* of a grid */
    uint32_t addends, first, slices;
    uint8_t scatter, staging;
    bool column_pairs;
} Variant;

static Status push_gemm(Planner *p, uint32_t op, const Grid *g, const Variant *v,
                        CandidateArray *out)
{
    Candidate c = {.plan = {.key = plan_operation(p->graph, op)->key,
                            .algorithm = ALGORITHM_GEMM_GRID,
                            .swapped = g->swapped,
                            .rows = g->rows,
                            .columns = g->columns,
                            .inner = g->inner}};
    c.plan.operand_count = 2 + v->addends;
    c.plan.scatter = v->scatter;
    c.plan.column_pairs = v->column_pairs;
    c.plan.slices = v->slices;
    c.plan.result_staging = v->staging;
    c.plan.inner_block = g->piece;
    c.plan.operands[g->swapped ? 0 : 1].format.memory_class = MEMORY_INTERLEAVED;
    if (!constraints_allow(p, &c.plan, false))
        return STATUS_OK;
    TRY(plan_gemm_formats(p->graph, op, v->first, &c.plan));
    TRY(price_gemm(p, op, &c));
    if (g->inner == 1 || !fusable_gelu(p, op, v->addends) || !end_in_gelu(p, op, &c, out))
        array_push(out, c);
    return STATUS_OK;
}

/* Most of many tiles: it hardly matters which. */
static bool most_tiles(const Planner *p, uint32_t used)
{
    enum { MANY = 256 };
    return p->options->tiles > MANY && used > p->options->tiles / 2;
}

/* Rotations: the first tiles and the last. When most of many tiles are in use that matters only to
 * what is stored once: a tile that holds part of its own operands copies it. */
static uint32_t first_tiles(const Planner *p, uint32_t used, uint32_t first[2])
{
    first[0] = 0;
    if (!p->options->weights_once && most_tiles(p, used))
        return 1;
    first[1] = p->options->tiles - used;
    return first[1] ? 2 : 1;
}

/* Behind elementwise operations, a product reads the value as its left operand. */
static bool feeds_product(const Planner *p, ValueId value)
{
    uint32_t index;
    for (const Operation *o; (o = single_user(p, value, &index)) != NULL; value = o->results[0]) {
        if (o->kind == OP_GEMM)
            return o->inputs[0] == value;
        if (o->kind != OP_GELU && o->kind != OP_ADD)
            return false;
    }
    return false;
}

/* Its left operand may be made of sums that are spread over pairs of tiles. */
static bool follows_product(const Planner *p, uint32_t op)
{
    ValueId left = plan_operation(p->graph, op)->inputs[0];
    return p->options->pairs && p->options->weights_once &&
           p->graph->values.items[left].kind == VALUE_RESULT;
}

/* Slices of K that make the operands of a tile small beside the product: where whole ones do not
 * fit, or memory is short. Every slice has a phase and accumulates: it never is the quickest. */
static uint32_t wanted_slices(const Planner *p, uint32_t op, const Grid *g)
{
    enum { SLICE_BYTES = 80 << 10 };
    GemmShape s = gemm_shape(p->graph, op);
    uint32_t rows = ceil_div_u32(s.outer * s.rows, g->rows), whole = g->piece / 16;
    uint32_t columns = ceil_div_u32(s.columns, g->columns);
    uint64_t bytes = 2ull * (rows + columns) * g->piece, sums = 4ull * rows * columns;
    if (!p->frugal && bytes + sums < p->budget)
        return 1;
    uint32_t slices = (uint32_t)((bytes + SLICE_BYTES - 1) / SLICE_BYTES);
    return slices < 2 ? 1 : ceil_div_u32(whole, ceil_div_u32(whole, min_u32(slices, whole)));
}

/* Nobody but the host reads it, who takes it in any order. */
static bool is_output(const Planner *p, ValueId value)
{
    for (size_t i = 0; i < p->graph->outputs.count; i++)
        if (p->graph->outputs.items[i].value == value)
            return p->uses[value] == 1;
    return false;
}

/* Of what a product's sums are spread by, what can go on from there. whole: not only in slices. */
static Status push_spread(Planner *p, uint32_t op, const Grid *g, uint32_t first, bool whole,
                          CandidateArray *out)
{
    static const uint8_t ways[] = {SCATTER_SHARES, SCATTER_ROWS};
    ValueId value = plan_operation(p->graph, op)->results[0];
    bool feeds = feeds_product(p, value), raw = !p->options->io_row_major && is_output(p, value);
    uint32_t slices = wanted_slices(p, op, g);
    Status why = STATUS_OK;
    for (uint32_t w = 0; w < countof(ways); w++) {
        Variant v = {.first = first, .scatter = ways[w]};
        if (g->swapped && v.scatter == SCATTER_ROWS)
            v.scatter = SCATTER_COLUMNS;
        if (g->swapped)
            v.staging = feeds ? STAGING_PANELS : raw ? STAGING_DIRECT : STAGING_ROW_MAJOR;
        if (v.scatter == SCATTER_SHARES && v.staging == STAGING_ROW_MAJOR)
            continue;
        bool pairs = v.scatter == SCATTER_SHARES && !g->swapped && g->columns % 2 == 0 &&
                     follows_product(p, op);
        for (uint32_t n = 0; n < (pairs ? 2 : 1); n++) {
            v.column_pairs = n == 1;
            v.slices = 0;
            if (whole) {
                status_free(why);
                why = push_gemm(p, op, g, &v, out);
            }
            v.slices = slices;
            if (slices < 2 || g->swapped || n == 1)
                continue;
            status_free(why);
            why = push_gemm(p, op, g, &v, out);
        }
    }
    return why;
}

/* The ways to run a grid: adds fused or not, sums on the first tiles or spread, at both ends. */
static Status push_variants(Planner *p, uint32_t op, const Grid *g, CandidateArray *out)
{
    uint32_t adds[2], first[2], fusable = fusable_adds(p, op, adds);
    uint32_t ends = first_tiles(p, g->rows * g->columns * g->inner, first);
    uint32_t most = g->swapped ? 0 : g->inner > 1 ? 2 : 1;
    Status why = STATUS_OK;
    bool one_end = most_tiles(p, g->rows * g->columns * g->inner); /* but for slices */
    for (uint32_t f = 0; f < ends; f++) {
        Variant v = {.first = first[f]};
        bool whole = f == 0 || !one_end;
        v.staging = g->swapped ? STAGING_ROW_MAJOR : STAGING_DIRECT;
        for (; whole && v.addends <= fusable && v.addends <= most; v.addends++) {
            status_free(why);
            why = push_gemm(p, op, g, &v, out);
        }
        if (g->inner == 1 || gemm_shape(p->graph, op).outer > 1)
            continue;
        status_free(why);
        why = push_spread(p, op, g, first[f], whole, out);
    }
    return why;
}

/* Of the grids, best first: is this one worth a price? Light weights leave room for others. */
static bool worth_pricing(const GridArray *grids, size_t at)
{
    uint32_t better = 0;
    for (size_t i = 0; i < at; i++)
        better += grids->items[i].weights <= grids->items[at].weights;
    return better < GRIDS_LIGHT;
}

/* Leaves the grids that the user's constraints allow; fails when none is left. */
static Status constrain_grids(const Planner *p, uint32_t op, GridArray *grids)
{
    const char *key = plan_operation(p->graph, op)->key;
    ARRAY(OpPlan) plans = {0};
    size_t kept = 0;
    for (size_t i = 0; i < grids->count && p->constraint_count; i++) {
        const Grid *g = &grids->items[i];
        OpPlan plan = {.key = key,
                       .swapped = g->swapped,
                       .rows = g->rows,
                       .columns = g->columns,
                       .inner = g->inner};
        array_push(&plans, plan);
        if (constraints_allow(p, &plan, true))
            grids->items[kept++] = *g;
    }
    Status status = STATUS_OK;
    if (plans.count && kept == 0)
        status = constraints_refuse(p, plans.items, plans.count);
    if (p->constraint_count)
        grids->count = kept;
    array_free(&plans);
    return status;
}

static Status gemm_candidates(Planner *p, uint32_t op, CandidateArray *out)
{
    GridArray grids = {0};
    list_grids(p, op, false, &grids);
    list_grids(p, op, true, &grids);
    Status allowed = constrain_grids(p, op, &grids);
    if (!status_ok(allowed)) {
        array_free(&grids);
        return allowed;
    }
    qsort(grids.items, grids.count, sizeof *grids.items, by_estimate);
    Status why = STATUS_OK;
    uint32_t kept = 0;
    for (size_t i = 0; i < grids.count && kept < MOST_GRIDS; i++) {
        size_t before = out->count;
        if (kept >= GRIDS_KEPT && !worth_pricing(&grids, i))
            continue;
        status_free(why);
        why = push_variants(p, op, &grids.items[i], out);
        kept += out->count > before;
    }
    p->listed[op] = (Listed){(uint32_t)grids.count, (uint32_t)out->count};
    frontier_prune(p, op, out);
    array_free(&grids);
    if (out->count == 0 && status_ok(why) && p->constraint_count)
        return status_error("no way to run the grids that the plan constraints allow keeps to what "
                            "they say of scatter and slices");
    if (out->count == 0)
        return status_ok(why) ? status_error("no grid") : why;
    status_free(why);
    return STATUS_OK;
}

/* ---- rows ---- */

/* The whole tensor as one row-major sequence, in pieces of four over as many tiles as there are. */
Format linear_format(const Shape *shape, uint32_t tiles)
{
    uint64_t elements = shape_elements(shape);
    uint32_t grain = elements % 4 == 0 ? 4 : 1;
    uint64_t grains = elements / grain;
    Format format = format_start(0, 1, (Order){.kind = ORDER_ROW_MAJOR});
    format.tile_count = (uint32_t)(grains < tiles ? grains : tiles);
    format.axis_count = 1;
    format.axes[0] =
        (AxisTiling){.axis = AXIS_LINEAR, .partitions = format.tile_count, .block = grain};
    return format;
}

Format rows_format(const Shape *shape, uint32_t tiles, uint32_t first_tile)
{
    Format format = format_start(first_tile, 1, (Order){.kind = ORDER_ROW_MAJOR});
    uint32_t last = shape->rank > 1 ? shape->rank - 2 : 0;
    for (uint32_t parts = min_u32(tiles, shape->extent[last]); shape->rank > 1; parts--)
        if (rows_can_split(shape, last, parts, 1)) {
            format_add_rows(&format, shape, last, 0, parts, 1, 1);
            break;
        }
    return format;
}

static Status push_rows(Planner *p, uint32_t op, uint32_t parts, uint32_t copies, uint32_t first,
                        CandidateArray *out)
{
    const Operation *o = plan_operation(p->graph, op);
    const Shape *shape = plan_shape(p->graph, o->results[0]);
    Candidate c = {.plan = {.key = o->key,
                            .algorithm = ALGORITHM_ROWS,
                            .operand_count = 3,
                            .rows = parts,
                            .columns = copies,
                            .inner = 1}};
    Format format = format_start(first, copies, (Order){.kind = ORDER_ROW_MAJOR});
    format_add_rows(&format, shape, shape->rank - 2, 0, parts, 1, copies);
    c.plan.result = c.plan.operands[0].format = format;
    for (uint32_t j = 1; j < 3; j++)
        c.plan.operands[j].format =
            broadcast_format(&format, shape, plan_shape(p->graph, o->inputs[j]));
    TensorType type = {.shape = *shape, .format = format};
    TRY(type_check(&type));
    ShardOf shards[] = {{&type, 0}, {&type, 0}};
    KernelSpec norm = {.family = KERNEL_LAYER_NORM};
    memcpy(&norm.p[LAYER_NORM_EPSILON_BITS], &o->epsilon, sizeof o->epsilon);
    TRY(costs_pattern(&p->costs, norm, shards, 2, &c.kernel));
    c.bytes = type_max_shard_bytes(&type);
    array_push(out, c);
    return STATUS_OK;
}

/* Copies of the rows that a product behind this operation would like: its column partitions. */
static uint32_t wanted_copies(Planner *p, uint32_t op, uint32_t parts, uint32_t wanted[8])
{
    const Operation *o = plan_operation(p->graph, op);
    uint32_t count = 0;
    wanted[count++] = 1;
    for (uint32_t u = op + 1; u < p->graph->operations.count; u++) {
        const Operation *user = plan_operation(p->graph, u);
        const CandidateArray *grids;
        if (user->kind != OP_GEMM || user->inputs[0] != o->results[0])
            continue;
        if (status_discard(make_candidates(p, u, &grids)))
            continue;
        for (size_t i = 0; i < grids->count && count < 8; i++) {
            const OpPlan *plan = &grids->items[i].plan;
            bool known = plan->inner > 1 || plan->swapped || plan->rows != parts;
            for (uint32_t k = 0; k < count; k++)
                known |= wanted[k] == plan->columns;
            if (!known)
                wanted[count++] = plan->columns;
        }
    }
    return count;
}

static Status rows_candidates(Planner *p, uint32_t op, CandidateArray *out)
{
    const Operation *o = plan_operation(p->graph, op);
    const Shape *shape = plan_shape(p->graph, o->results[0]);
    if (shape->rank < 2)
        return status_error("layer norm of rank %u", shape->rank);
    uint64_t rows = shape_elements(shape) / shape->extent[shape->rank - 1];
    Status why = STATUS_OK;
    uint32_t tried = 0;
    for (uint32_t parts = (uint32_t)(rows < p->options->tiles ? rows : p->options->tiles);
         parts >= 1 && tried<4; parts = parts> 1 ? parts / 2 : 0) {
        uint32_t wanted[8], first[2];
        if (!rows_can_split(shape, shape->rank - 2, parts, 1))
            continue;
        tried++;
        uint32_t count = wanted_copies(p, op, parts, wanted);
        for (uint32_t w = 0; w < count; w++) {
            if (wanted[w] * parts > p->options->tiles)
                continue;
            uint32_t ends = first_tiles(p, wanted[w] * parts, first);
            for (uint32_t f = 0; f < ends; f++) {
                status_free(why);
                why = push_rows(p, op, parts, wanted[w], first[f], out);
            }
        }
    }
    if (out->count == 0)
        return status_ok(why) ? status_error("no split of %llu rows", (unsigned long long)rows)
                              : why;
    status_free(why);
    return STATUS_OK;
}

/* ---- pointwise ---- */

/* The format of an operand that is repeated along axes where it has extent 1 (or lacks them): the
 * result's tiling without those axes, their tiles being replicas. */
Format broadcast_format(const Format *format, const Shape *full, const Shape *part)
{
    Format out = *format;
    uint32_t stride = format->replicas, missing = full->rank - part->rank;
    out.axis_count = 0;
    for (uint32_t i = 0; i < format->axis_count; i++) {
        AxisTiling axis = format->axes[i];
        if (!axis.stride)
            axis.stride = stride;
        stride = axis.stride * axis.partitions / max_u32(axis.near, 1);
        if (axis.axis < missing || part->extent[axis.axis - missing] != full->extent[axis.axis]) {
            out.replicas *= axis.partitions;
            continue;
        }
        axis.axis = (uint8_t)(axis.axis - missing);
        if (axis.partitions == 1)
            axis.stride = axis.near = axis.near_stride = 0;
        out.axes[out.axis_count++] = axis;
    }
    out.memory_class = MEMORY_STANDARD;
    return out;
}

bool pointwise_candidate(Planner *p, uint32_t op, bool fused_bias, const Format *result,
                         Candidate *out)
{
    const Operation *o = plan_operation(p->graph, op);
    const Shape *full = plan_shape(p->graph, o->results[0]);
    *out = (Candidate){.plan = {.key = o->key,
                                .algorithm = ALGORITHM_POINTWISE,
                                .rows = 1,
                                .columns = 1,
                                .inner = 1,
                                .result = *result}};
    out->plan.operand_count = o->kind == OP_ADD || fused_bias ? 2 : 1;
    TensorType types[3] = {{.shape = *full, .format = *result}};
    ShardOf shards[3] = {{&types[0], 0}, {&types[1], 0}, {&types[2], 0}};
    for (uint32_t j = 0; j < out->plan.operand_count; j++) {
        ValueId value = plan_input(p->graph, op, &out->plan, j);
        const Shape *shape = plan_shape(p->graph, value);
        bool same = shape_equal(shape, full);
        if (!same && (j == 0 || result->shares > 1))
            return false;
        out->plan.operands[j].format = same ? *result : broadcast_format(result, full, shape);
        types[1 + j] = (TensorType){.shape = *shape, .format = out->plan.operands[j].format};
        if (status_discard(type_check(&types[1 + j])))
            return false;
    }
    KernelSpec kernel = {.family = (uint16_t)(o->kind == OP_ADD ? KERNEL_ADD
                                              : fused_bias      ? KERNEL_BIAS_GELU
                                                                : KERNEL_GELU)};
    out->bytes = type_max_shard_bytes(&types[0]);
    return !status_discard(
        costs_pattern(&p->costs, kernel, shards, 1 + out->plan.operand_count, &out->kernel));
}

static Status pointwise_candidates(Planner *p, uint32_t op, CandidateArray *out)
{
    const Operation *o = plan_operation(p->graph, op);
    const Shape *shape = plan_shape(p->graph, o->results[0]);
    uint32_t tiles = p->options->tiles, last = shape->rank - 1, ends[2];
    Format grids[2] = {rows_format(shape, tiles, 0)};
    uint32_t groups = ceil_div_u32(shape->extent[last], 16), columns = min_u32(groups, tiles);
    if (p->options->weights_once && p->options->pairs && columns < tiles)
        columns += columns % 2; /* partners hold neighbouring columns of the same rows */
    grids[1] = format_start(0, 1, (Order){.kind = ORDER_LEFT});
    format_add_axis(&grids[1], last, columns, 16, 1);
    for (uint32_t rows = last ? min_u32(tiles / columns, shape->extent[last - 1]) : 0; rows; rows--)
        if (rows_can_split(shape, last - 1, rows, 1)) {
            format_add_rows(&grids[1], shape, last - 1, 0, rows, 1, columns);
            break;
        }
    for (uint32_t g = 0; g < 2; g++) {
        uint32_t count = first_tiles(p, grids[g].tile_count, ends);
        for (uint32_t f = 0; f < count; f++) {
            Candidate c;
            Format format = grids[g];
            format.first_tile = ends[f];
            if (pointwise_candidate(p, op, false, &format, &c))
                array_push(out, c);
        }
    }
    return STATUS_OK;
}

/* ---- attention ---- */

static Status price_attention(Planner *p, uint32_t op, Candidate *c)
{
    const Operation *o = plan_operation(p->graph, op);
    const OpPlan *plan = &c->plan;
    const Shape *q = plan_shape(p->graph, o->inputs[0]), *v = plan_shape(p->graph, o->inputs[2]);
    uint32_t keys = v->extent[1], blocks = ceil_div_u32(keys, plan->key_block);
    uint32_t rounds = q->extent[0] / plan->rows, rows = ceil_div_u32(q->extent[1], plan->columns);
    uint32_t padded = round_up_u32(plan->key_block, 16), depth = round_up_u32(q->extent[2], 16);
    uint32_t width = 16 * ceil_div_u32(ceil_div_u32(v->extent[2], 16), plan->inner);
    KernelSpec specs[5] = {
        {.family = KERNEL_GEMM,
         .p = {[GEMM_ROWS] = (int32_t)rows,
               [GEMM_INNER] = (int32_t)depth,
               [GEMM_COLUMNS] = (int32_t)padded}},
        {.family = KERNEL_SOFTMAX,
         .p = {[SOFTMAX_ROWS] = (int32_t)rows,
               [SOFTMAX_KEYS] = (int32_t)min_u32(keys, plan->key_block),
               [SOFTMAX_PADDED_KEYS] = (int32_t)padded,
               [SOFTMAX_SCALE_BITS] = 0x3f800000}},
        {.family = KERNEL_GEMM,
         .p = {[GEMM_ROWS] = (int32_t)rows,
               [GEMM_INNER] = (int32_t)padded,
               [GEMM_COLUMNS] = (int32_t)width}},
        {.family = KERNEL_ATTENTION_MERGE,
         .p = {[MERGE_ROWS] = (int32_t)rows,
               [MERGE_COLUMNS] = (int32_t)(plan->inner > 1 ? width : round_up_u32(v->extent[2], 4)),
               [MERGE_PADDED_COLUMNS] = (int32_t)width,
               [MERGE_INITIAL] = 1,
               [MERGE_FINAL] = 1}},
        {.family = KERNEL_PACK}};
    TensorType value, staging;
    TRY(plan_operand_type(p->graph, op, plan, 2, &value));
    staging = (TensorType){value.shape, plan_staging_format(&value.format)};
    ShardOf pack[2] = {{&value, 0}, {&staging, 0}};
    TRY(plan_fill_spec(&specs[4], pack, 2));
    for (uint32_t i = 0; i < countof(specs); i++) {
        KernelContract contract;
        TRY(kernel_contract(&specs[i], &contract));
        if (specs[i].family == KERNEL_PACK)
            continue; /* priced with the operand's conversion */
        c->kernel += costs_kernel(&p->costs, &specs[i]) * blocks * rounds;
    }
    c->bytes = (uint64_t)rows * (padded * 4u + width * 8u) + type_max_shard_bytes(&staging);
    return STATUS_OK;
}

static Status push_attention(Planner *p, uint32_t op, uint32_t heads, uint32_t queries,
                             uint32_t values, uint32_t block, CandidateArray *out)
{
    const Operation *o = plan_operation(p->graph, op);
    uint32_t first[2], ends = first_tiles(p, heads * queries * values, first);
    for (uint32_t f = 0; f < ends; f++) {
        Candidate c = {.plan = {.key = o->key,
                                .algorithm = ALGORITHM_ATTENTION,
                                .rows = heads,
                                .columns = queries,
                                .inner = values,
                                .key_block = block}};
        attention_formats(p->graph, op, first[f], &c.plan);
        for (uint32_t j = 0; j < 3; j++) {
            TensorType type;
            TRY(plan_operand_type(p->graph, op, &c.plan, j, &type));
            TRY(type_check(&type));
        }
        TRY(price_attention(p, op, &c));
        array_push(out, c);
    }
    return STATUS_OK;
}

static Status attention_candidates(Planner *p, uint32_t op, CandidateArray *out)
{
    const Operation *o = plan_operation(p->graph, op);
    const Shape *q = plan_shape(p->graph, o->inputs[0]), *v = plan_shape(p->graph, o->inputs[2]);
    uint32_t tiles = p->options->tiles, groups = ceil_div_u32(v->extent[2], 16);
    uint32_t heads = min_u32(q->extent[0], tiles), keys = v->extent[1];
    while (q->extent[0] % heads)
        heads--;
    Status why = STATUS_OK;
    /* Keys, values, staging and scores of a block must fit; halve the block until they may. */
    for (uint32_t block = keys; block; block = block > 16 ? round_up_u32(block / 2, 16) : 0) {
        for (uint32_t values = 1; values <= groups && values * heads <= tiles;
             values = next_parts(groups, values)) {
            uint32_t most = min_u32(q->extent[1], tiles / (heads * values)), tried = 0;
            for (uint32_t queries = most; queries && tried < 3; queries /= 2, tried++) {
                status_free(why);
                why = push_attention(p, op, heads, queries, values, block, out);
            }
        }
        uint64_t bytes = (uint64_t)block * (q->extent[2] + 2u * v->extent[2]) * 2u;
        if (bytes < p->budget / 4)
            break;
    }
    if (out->count == 0)
        return status_ok(why) ? status_error("no grid") : why;
    status_free(why);
    return STATUS_OK;
}

Status make_candidates(Planner *p, uint32_t op, const CandidateArray **out)
{
    CandidateArray *made = &p->candidates[op];
    const Operation *o = plan_operation(p->graph, op);
    Status status = STATUS_OK;
    if (made->count == 0 && o->kind == OP_GEMM)
        status = gemm_candidates(p, op, made);
    else if (made->count == 0 && o->kind == OP_LAYER_NORM)
        status = rows_candidates(p, op, made);
    else if (made->count == 0 && o->kind == OP_ATTENTION)
        status = attention_candidates(p, op, made);
    else if (made->count == 0 && (o->kind == OP_ADD || o->kind == OP_GELU))
        status = pointwise_candidates(p, op, made);
    *out = made;
    return status_context(status, "%s", o->key);
}
