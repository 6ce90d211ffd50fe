/* formats.c - the formats that follow from a plan's grid.
 *
 * One idea: the tile of coordinates (column c, row r, inner i) of a GEMM grid is
 *     first + c + C * r + C * R * i,
 * so left operand, right operand, partials and result of one product meet on the same tiles, and
 * the results of a K-split lie on the first C * R of them. A sum that is spread over the tiles of
 * its partials counts differently, so that (row, inner) or (column, inner) is one number: c + C * i
 * + C * I * r when rows are cut, r + R * i + R * I * c when columns are. Attention counts (value
 * block, query block, head) the first way. */
#include "plan/internal.h"

static const Order order_row_major = {.kind = ORDER_ROW_MAJOR};

static uint32_t gcd_u32(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

const Operation *plan_operation(const Graph *graph, uint32_t op)
{
    return &graph->operations.items[op];
}

const Shape *plan_shape(const Graph *graph, ValueId value)
{
    return &graph->values.items[value].shape;
}

void format_add_axis(Format *format, uint32_t axis, uint32_t partitions, uint32_t block,
                     uint32_t stride)
{
    if (format->axis_count == MAX_TILED_AXES || (partitions == 1 && block == 1))
        return;
    AxisTiling *tiling = &format->axes[format->axis_count++];
    *tiling = (AxisTiling){.axis = (uint8_t)axis, .pad = block > 1, .partitions = partitions};
    tiling->block = block;
    tiling->stride = partitions > 1 ? stride : 0;
    format->tile_count *= partitions;
}

Format format_start(uint32_t first_tile, uint32_t replicas, Order order)
{
    Format format = {.precision = {.kind = F16}, .order = order, .first_tile = first_tile};
    format.tile_count = format.replicas = replicas;
    return format;
}

/* Cuts the leading axes 0 .. last into `parts` pieces in all: whole outer indices first, what is
 * left of the number cuts axis `last`. base: added to the axis numbers. */
void format_add_rows(Format *format, const Shape *shape, uint32_t last, uint32_t base,
                     uint32_t parts, uint32_t block, uint32_t stride)
{
    for (uint32_t axis = 0; axis < last; axis++) {
        uint32_t part = gcd_u32(parts, shape->extent[axis]);
        if (part == 1)
            continue;
        format_add_axis(format, axis + base, part, 1, stride);
        parts /= part;
        stride *= part;
    }
    format_add_axis(format, last + base, parts, block, stride);
}

bool rows_can_split(const Shape *shape, uint32_t last, uint32_t parts, uint32_t block)
{
    uint32_t axes = 2;
    for (uint32_t axis = 0; axis < last; axis++) {
        uint32_t part = gcd_u32(parts, shape->extent[axis]);
        axes += part > 1;
        parts /= part;
    }
    return axes < MAX_TILED_AXES && parts <= ceil_div_u32(shape->extent[last], block);
}

GemmShape gemm_shape(const Graph *graph, uint32_t op)
{
    const Operation *o = plan_operation(graph, op);
    const Shape *left = plan_shape(graph, o->inputs[0]);
    const Shape *right = plan_shape(graph, o->inputs[1]);
    GemmShape shape = {.outer = 1};
    for (uint32_t axis = 0; axis + 2 < left->rank; axis++)
        shape.outer *= left->extent[axis];
    shape.rows = left->rank > 1 ? left->extent[left->rank - 2] : 1;
    shape.inner = left->extent[left->rank - 1];
    shape.columns = right->extent[right->rank - (o->transpose_right ? 2u : 1u)];
    return shape;
}

typedef struct GridStride { /* tiles from one part to the next */
    uint32_t row, column, inner;
    bool column_pairs; /* `column` leads from one pair of columns to the next */
} GridStride;

static GridStride grid_stride(const OpPlan *plan)
{
    uint32_t R = plan->rows, C = plan->columns, I = plan->inner;
    bool shares = plan->scatter == SCATTER_SHARES, rows = plan->scatter == SCATTER_ROWS;
    if ((rows || shares) && plan->column_pairs)
        return (GridStride){.column = 2 * I, .inner = 2, .row = C * I, .column_pairs = true};
    if (rows || (shares && !plan->swapped))
        return (GridStride){.column = 1, .inner = C, .row = C * I};
    if (plan->scatter == SCATTER_COLUMNS || shares)
        return (GridStride){.row = 1, .inner = R, .column = R * I};
    return (GridStride){.column = 1, .row = C, .inner = C * R};
}

static void add_columns(Format *format, uint32_t axis, uint32_t partitions, uint32_t block,
                        const GridStride *at)
{
    uint32_t before = format->axis_count;
    format_add_axis(format, axis, partitions, block, at->column);
    if (at->column_pairs && format->axis_count > before)
        format->axes[before].near = 2, format->axes[before].near_stride = 1;
}

/* Sums in shares: what is next to each other in a partial stays so. */
static Format shared_result(const OpPlan *plan, const Format *whole)
{
    Format out = *whole;
    out.shares = plan->inner;
    out.tile_count *= plan->inner;
    out.share_grain = plan->result_staging == STAGING_PANELS ? 512 : 32;
    return out;
}

/* The result's format when every tile of a block's partials sums a part of the block. */
static Format scattered_result(const OpPlan *plan, const Format *whole, const Shape *shape,
                               uint32_t m, uint32_t n)
{
    GridStride at = grid_stride(plan);
    uint32_t cut = plan->scatter == SCATTER_ROWS ? m : n, other = cut == m ? n : m;
    uint32_t parts = cut == m ? plan->rows : plan->columns;
    uint32_t others = cut == m ? plan->columns : plan->rows;
    uint32_t row_block = plan->swapped ? 16 : 1, grain = plan->swapped ? 1 : 16;
    uint32_t column_block = plan->swapped && plan->result_staging != STAGING_PANELS ? 2 : 16;
    if (cut == m)
        grain = row_block;
    if (plan->result_staging == STAGING_PANELS) /* K panels of the next product, equally many */
        grain =
            16 * ceil_div_u32(ceil_div_u32(ceil_div_u32(shape->extent[n], 16), parts), plan->inner);
    Format out = format_start(whole->first_tile, 1, whole->order);
    if (other == n)
        add_columns(&out, n, others, column_block, &at);
    else
        format_add_axis(&out, other, others, row_block, at.row);
    format_add_axis(&out, cut, parts * plan->inner, cut == n ? column_block : row_block, at.inner);
    AxisTiling *tiling = &out.axes[out.axis_count - 1];
    tiling->parts = plan->inner;
    if (at.column_pairs && parts > 1) { /* the parts of a block, then the next block */
        tiling->near = plan->inner;
        tiling->near_stride = at.inner;
        tiling->stride = at.row;
    }
    tiling->part_block = grain;
    tiling->pad = true;
    return out;
}

/* Micro-panels of a swapped product: K of the next product is its columns. */
static Status panels_result(OpPlan *plan, const Shape *shape)
{
    TensorType type = {.shape = *shape, .format = format_blocks(&plan->result)};
    uint32_t outer, rows, columns;
    if (!plan->swapped)
        return status_error("%s: only a swapped product is transposed", plan->key);
    type_shard_matrix(&type, 0, &outer, &rows, &columns);
    plan->result.order = (Order){
        .kind = ORDER_TRANSPOSED_BLOCK_MAJOR, .row_block = (uint16_t)columns, .column_block = 16};
    plan->result.memory_class = MEMORY_STANDARD;
    return STATUS_OK;
}

Status plan_gemm_formats(const Graph *graph, uint32_t op, uint32_t first_tile, OpPlan *plan)
{
    const Operation *o = plan_operation(graph, op);
    const Shape *left_shape = plan_shape(graph, o->inputs[0]);
    const Shape *right_shape = plan_shape(graph, o->inputs[1]);
    const Shape *out_shape = plan_shape(graph, o->results[0]);
    if (left_shape->rank < 2 || right_shape->rank != 2 || out_shape->rank == MAX_RANK)
        return status_error("%s: a product of these ranks has no grid", plan->key);
    if (plan->result_staging != STAGING_DIRECT && plan->operand_count > 2)
        return status_error("%s: an unpacked product takes no addends", plan->key);
    GemmShape shape = gemm_shape(graph, op);
    if (plan->scatter && (plan->inner < 2 || plan->operand_count > 2 || shape.outer > 1))
        return status_error("%s: only sums of partials of one matrix are spread", plan->key);
    if (plan->gelu && plan->inner < 2)
        return status_error("%s: only a sum of partials ends in a GELU", plan->key);
    if (plan->slices > 1 &&
        (!plan->scatter || plan->swapped || o->transpose_right || shape.inner % 16))
        return status_error("%s: no slices of K this way", plan->key);
    bool by_rows =
        plan->scatter == SCATTER_ROWS || (plan->scatter == SCATTER_SHARES && !plan->swapped);
    if (plan->column_pairs && (!by_rows || plan->columns % 2))
        return status_error("%s: no pairs of columns this way", plan->key);
    uint32_t R = plan->rows, C = plan->columns, I = plan->inner;
    uint32_t k = left_shape->rank - 1, m = k - 1, n = out_shape->rank - 1;
    uint32_t piece = round_up_u32(ceil_div_u32(shape.inner, I), 16); /* of K, per tile */
    if (plan->slices > 1)
        piece = plan->inner_block = 16 * ceil_div_u32(piece / 16, plan->slices);
    else if (plan->inner_block && plan->inner_block < piece)
        piece = round_up_u32(piece, plan->inner_block);
    else
        plan->inner_block = piece;
    bool swapped = plan->swapped, panels = plan->result_staging == STAGING_PANELS;
    GridStride at = grid_stride(plan);
    uint32_t row_block = swapped ? 16 : 1, column_block = swapped && !panels ? 2 : 16;
    Order weights = {
        .kind = ORDER_BLOCK_MAJOR, .row_block = (uint16_t)plan->inner_block, .column_block = 16};
    Order left_order = {.kind = ORDER_LEFT}, right_order = weights;
    Order out_order = {.kind = swapped ? ORDER_TRANSPOSED_LEFT : ORDER_LEFT};
    if (swapped) {
        left_order = weights;
        left_order.kind = ORDER_TRANSPOSED_BLOCK_MAJOR;
        right_order = (Order){.kind = o->transpose_right ? ORDER_LEFT : ORDER_TRANSPOSED_LEFT};
    } else if (o->transpose_right) {
        right_order = (Order){.kind = ORDER_TRANSPOSED_RIGHT};
    }

    Format left = format_start(first_tile, C, left_order);
    format_add_rows(&left, left_shape, m, 0, R, row_block, at.row);
    format_add_axis(&left, k, I, piece, at.inner);

    Format right = format_start(first_tile, R, right_order);
    add_columns(&right, o->transpose_right ? 0 : 1, C, column_block, &at);
    format_add_axis(&right, o->transpose_right ? 1 : 0, I, piece, at.inner);

    Format result = format_start(first_tile, 1, out_order);
    add_columns(&result, n, C, column_block, &at);
    format_add_rows(&result, out_shape, m, 0, R, row_block, at.row);

    Format partial = format_start(first_tile, 1, out_order);
    add_columns(&partial, n + 1, C, column_block, &at);
    format_add_rows(&partial, out_shape, m, 1, R, row_block, at.row);
    format_add_axis(&partial, 0, I, 1, at.inner);
    if (plan->scatter == SCATTER_SHARES)
        result = shared_result(plan, &result);
    else if (plan->scatter)
        result = scattered_result(plan, &result, out_shape, m, n);

    /* The kernel reads C back for every inner group but the first. */
    bool reads_c = piece > 16 || (I == 1 && plan->operand_count > 2);
    Format *product = I > 1 ? &partial : &result;
    product->memory_class = reads_c ? MEMORY_INTERLEAVED : MEMORY_STANDARD;
    bool interleaved = plan->operands[swapped ? 0 : 1].format.memory_class == MEMORY_INTERLEAVED;
    *(swapped ? &left.memory_class : &right.memory_class) =
        interleaved ? MEMORY_INTERLEAVED : MEMORY_STANDARD;
    plan->operands[0].format = left;
    plan->operands[1].format = right;
    for (uint32_t j = 2; j < plan->operand_count; j++)
        plan->operands[j].format = result;
    plan->partial = I > 1 ? partial : result;
    plan->result = result;
    if (plan->result_staging == STAGING_ROW_MAJOR)
        plan->result = plan_staging_format(&result);
    if (panels)
        TRY(panels_result(plan, out_shape));
    return STATUS_OK;
}

Format plan_staging_format(const Format *format)
{
    Format staging = *format;
    staging.order = order_row_major;
    staging.memory_class = MEMORY_STANDARD;
    return staging;
}

/* Attention of one round: `rows` heads, keys in blocks of key_block. */
void attention_formats(const Graph *graph, uint32_t op, uint32_t first_tile, OpPlan *plan)
{
    const Operation *o = plan_operation(graph, op);
    const Shape *q = plan_shape(graph, o->inputs[0]), *v = plan_shape(graph, o->inputs[2]);
    uint32_t H = plan->rows, Q = plan->columns, V = plan->inner;
    uint32_t keys = round_up_u32(plan->key_block, 16);
    plan->operand_count = 3;

    Format query = format_start(first_tile, V, (Order){.kind = ORDER_LEFT});
    format_add_axis(&query, 1, Q, 1, V);
    format_add_axis(&query, 0, H, 1, V * Q);
    format_add_axis(&query, 2, 1, 16, 0);

    Format key = format_start(first_tile, V * Q, (Order){.kind = ORDER_TRANSPOSED_RIGHT});
    format_add_axis(&key, 0, H, 1, V * Q);
    format_add_axis(&key, 1, 1, 16, 0);
    format_add_axis(&key, 2, 1, 16, 0);

    Order stream = {.kind = ORDER_BLOCK_MAJOR, .row_block = (uint16_t)keys, .column_block = 16};
    uint32_t piece = 16 * ceil_div_u32(ceil_div_u32(v->extent[2], 16), V); /* of value columns */
    Format value = format_start(first_tile, Q, stream);
    format_add_axis(&value, 2, V, piece, 1);
    format_add_axis(&value, 0, H, 1, V * Q);
    format_add_axis(&value, 1, 1, keys, 0);

    /* Rounds are the leading axis of the stored result. */
    uint32_t shift = q->extent[0] / H > 1;
    Format result = format_start(first_tile, 1, order_row_major);
    bool fours = v->extent[2] % 4 == 0; /* what the merge kernel writes */
    if (V > 1 || !fours)
        format_add_axis(&result, 2 + shift, V, V > 1 ? piece : 4, 1);
    format_add_axis(&result, 1 + shift, Q, 1, V);
    format_add_axis(&result, 0 + shift, H, 1, V * Q);
    plan->operands[0] = (OperandPlan){.format = query};
    plan->operands[1] = (OperandPlan){.format = key};
    plan->operands[2] = (OperandPlan){.format = value, .staging = STAGING_ROW_MAJOR};
    plan->result = result;
}

/* The add that follows value and has it as an input; its other input goes to *other. */
static bool following_add(const Graph *graph, ValueId value, uint32_t after, ValueId *other,
                          ValueId *result)
{
    for (uint32_t i = after + 1; i < graph->operations.count; i++) {
        const Operation *o = plan_operation(graph, i);
        for (uint32_t j = 0; j < 2 && o->kind == OP_ADD; j++)
            if (o->inputs[j] == value) {
                *other = o->inputs[1 - j];
                *result = o->results[0];
                return true;
            }
    }
    return false;
}

/* Operand 0 of an add is the input of the result's shape. */
static ValueId add_input(const Graph *graph, const Operation *o, uint32_t j)
{
    const Shape *result = plan_shape(graph, o->results[0]);
    bool turned = !shape_equal(plan_shape(graph, o->inputs[0]), result) &&
                  shape_equal(plan_shape(graph, o->inputs[1]), result);
    return o->inputs[turned ? 1 - j : j];
}

ValueId plan_input(const Graph *graph, uint32_t op, const OpPlan *plan, uint32_t operand)
{
    const Operation *o = plan_operation(graph, op);
    if (plan->algorithm == ALGORITHM_GEMM_GRID && operand >= 2) {
        ValueId value = o->results[0], other = NO_VALUE;
        for (uint32_t j = 2; j <= operand; j++)
            if (!following_add(graph, value, op, &other, &value))
                return NO_VALUE;
        return other;
    }
    if (o->kind == OP_GELU && plan->operand_count == 2) {
        const Value *z = &graph->values.items[o->inputs[0]];
        if (z->kind != VALUE_RESULT || plan_operation(graph, z->operation)->kind != OP_ADD)
            return NO_VALUE;
        o = plan_operation(graph, z->operation);
    }
    if (o->kind == OP_ADD && operand < 2)
        return add_input(graph, o, operand);
    return operand < o->input_count ? o->inputs[operand] : NO_VALUE;
}

ValueId plan_fused_result(const Graph *graph, uint32_t op, const OpPlan *plan)
{
    ValueId value = plan_operation(graph, op)->results[0], other;
    for (uint32_t j = 2; plan->algorithm == ALGORITHM_GEMM_GRID && j < plan->operand_count; j++)
        following_add(graph, value, op, &other, &value);
    if (plan->algorithm != ALGORITHM_GEMM_GRID || !plan->gelu)
        return value;
    for (uint32_t i = op + 1; i < graph->operations.count; i++) {
        const Operation *o = plan_operation(graph, i);
        if (o->kind == OP_GELU && o->inputs[0] == value)
            return o->results[0];
    }
    return NO_VALUE;
}

Status plan_slice(const Graph *graph, uint32_t op, const OpPlan *plan, uint32_t slice,
                  uint32_t operand, TensorType *type, Mapping *mapping)
{
    const Shape *shape = plan_shape(graph, plan_operation(graph, op)->inputs[operand]);
    uint32_t axis = operand ? 0 : shape->rank - 1, inner = shape->extent[axis];
    uint32_t step = plan->inner_block * plan->inner, start = slice * step;
    if (start >= inner)
        return status_error("%s: no slice %u", plan->key, slice);
    uint32_t length = min_u32(step, inner - start);
    uint32_t block = 16 * ceil_div_u32(ceil_div_u32(length, 16), plan->inner);
    if (length % block) /* no padding: it would hold what an earlier slice left there */
        block = 16;
    *type = (TensorType){.shape = *shape, .format = plan->operands[operand].format};
    type->shape.extent[axis] = length;
    for (uint32_t i = 0; i < type->format.axis_count; i++)
        if (type->format.axes[i].axis == axis)
            type->format.axes[i].block = block;
    if (type->format.order.kind == ORDER_BLOCK_MAJOR)
        type->format.order.row_block = (uint16_t)block;
    *mapping = mapping_slice(shape, axis, start, length);
    return STATUS_OK;
}

Status plan_operand_type(const Graph *graph, uint32_t op, const OpPlan *plan, uint32_t operand,
                         TensorType *out)
{
    ValueId value = operand < plan->operand_count ? plan_input(graph, op, plan, operand) : NO_VALUE;
    if (value == NO_VALUE)
        return status_error("%s: no operand %u", plan->key ? plan->key : "plan", operand);
    *out =
        (TensorType){.shape = *plan_shape(graph, value), .format = plan->operands[operand].format};
    if (plan->algorithm == ALGORITHM_GEMM_GRID && plan->slices > 1 && operand < 2) {
        Mapping first;
        return plan_slice(graph, op, plan, 0, operand, out, &first);
    }
    if (plan->algorithm == ALGORITHM_GEMM_GRID && operand >= 2)
        out->shape = *plan_shape(graph, plan_operation(graph, op)->results[0]);
    if (plan->algorithm == ALGORITHM_ATTENTION) {
        out->shape.extent[0] = plan->rows;
        if (operand > 0)
            out->shape.extent[1] = min_u32(plan->key_block, out->shape.extent[1]);
    }
    return STATUS_OK;
}

Status plan_result_type(const Graph *graph, uint32_t op, const OpPlan *plan, TensorType *out,
                        Mapping *mapping)
{
    const Operation *o = plan_operation(graph, op);
    *out = (TensorType){.shape = *plan_shape(graph, o->results[0]), .format = plan->result};
    *mapping = mapping_identity(&out->shape);
    if (plan->algorithm != ALGORITHM_ATTENTION || plan->rows == out->shape.extent[0])
        return STATUS_OK;
    Shape stored = {.rank = out->shape.rank + 1};
    stored.extent[0] = out->shape.extent[0] / plan->rows;
    stored.extent[1] = plan->rows;
    for (uint32_t a = 1; a < out->shape.rank; a++)
        stored.extent[a + 1] = out->shape.extent[a];
    Mapping merge = {.source_rank = stored.rank, .destination_rank = out->shape.rank};
    for (uint32_t a = 0; a < stored.rank; a++) { /* one atom per stored axis */
        merge.extent[a] = stored.extent[a];
        merge.source[a] = (MappingAxis){.count = 1, .atoms = {(uint8_t)a}};
        if (a > 1)
            merge.destination[a - 1] = merge.source[a];
    }
    merge.atom_count = stored.rank;
    merge.destination[0] = (MappingAxis){.count = 2, .atoms = {0, 1}};
    out->shape = stored;
    *mapping = merge;
    return STATUS_OK;
}

/* Partials of a swapped product hold 16 rows side by side. They and their spread sums count padding
 * rows as rows: what moves then are whole panels, not the few rows of the last one. Sums in shares
 * count all padding in: a stack of them needs no zeros. */
static Shape product_shape(const Graph *graph, uint32_t op, const OpPlan *plan)
{
    Shape shape = *plan_shape(graph, plan_operation(graph, op)->results[0]);
    uint32_t *rows = &shape.extent[shape.rank - 2], *columns = rows + 1;
    if (plan->swapped && plan->scatter)
        *rows = round_up_u32(*rows, 16);
    if (plan->scatter == SCATTER_SHARES)
        *columns = round_up_u32(*columns,
                                plan->swapped && plan->result_staging != STAGING_PANELS ? 2 : 16);
    return shape;
}

Status plan_product_type(const Graph *graph, uint32_t op, const OpPlan *plan, TensorType *out)
{
    *out = (TensorType){.shape = product_shape(graph, op, plan), .format = plan->result};
    if (plan->inner < 2)
        out->format = plan->partial;
    else if (plan->result_staging != STAGING_DIRECT)
        out->format.order = plan->partial.order;
    return STATUS_OK;
}

Status plan_partial_type(const Graph *graph, uint32_t op, const OpPlan *plan, TensorType *out)
{
    Shape result = product_shape(graph, op, plan);
    if (plan->inner < 2 || result.rank == MAX_RANK)
        return status_error("%s: no partials", plan->key);
    *out = (TensorType){.format = plan->partial, .shape = {.rank = result.rank + 1}};
    out->shape.extent[0] = plan->inner;
    for (uint32_t a = 0; a < result.rank; a++)
        out->shape.extent[a + 1] = result.extent[a];
    return STATUS_OK;
}
