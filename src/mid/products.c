/* products.c - lowering of what multiplies matrices: GEMM grids and attention. */
#include "mid/internal.h"

static MidId slot_of(Lower *l, MidId stack, uint32_t slot, const TensorType *type)
{
    MidId value = lower_value(l, "slot", type);
    l->mid->values.items[value].storage = stack;
    l->mid->values.items[value].slot = slot;
    l->mid->values.items[stack].parts = true;
    return value;
}

/* The kernel multiplies L by W; a swapped product exchanges the operands' roles. */
static void product(Lower *l, const OpPlan *plan, MidId left, MidId right, MidId result,
                    bool accumulate)
{
    MidId operands[2] = {plan->swapped ? right : left, plan->swapped ? left : right};
    MidOp *op = lower_op(l, MID_PRODUCT, &result, 1, operands, 2);
    op->kernel = (KernelSpec){.family = KERNEL_GEMM};
    op->kernel.p[GEMM_ACCUMULATE] = accumulate;
    op->inner_block = plan->inner_block;
    op->column_block = plan->column_block;
}

/* Member i of the partials [inner, ...] as one value of the result's shape. */
static Mapping take_partial(const Shape *partials, uint32_t i)
{
    Mapping mapping = {.source_rank = partials->rank, .destination_rank = partials->rank - 1};
    mapping.atom_count = partials->rank - 1;
    mapping.source[0].offset = i;
    for (uint32_t a = 1; a < partials->rank; a++) {
        mapping.extent[a - 1] = partials->extent[a];
        mapping.source[a] = (MappingAxis){.count = 1, .atoms = {(uint8_t)(a - 1)}};
        mapping.destination[a - 1] = mapping.source[a];
    }
    return mapping;
}

static MidId addend_target(Lower *l, const TensorType *type)
{
    MidId to = lower_value(l, "addend", type);
    l->mid->values.items[to].resident = type_has_padding(type);
    return to;
}

/* The partials of tiles with inner index 0 lie where the sum is made: they are the seed. The others
 * and the addends of fused adds come into one dense stack. */
static Status sum_partials(Lower *l, uint32_t op, MidId partials, const TensorType *type,
                           MidId result)
{
    const OpPlan *plan = &l->recipe->ops[op];
    uint32_t addends = plan->operand_count - 2, others = plan->inner - 1 + addends;
    MidId stack = lower_value(l, "stack", type);
    l->mid->values.items[stack].slots = others;
    l->mid->values.items[stack].resident = addends && type_has_padding(type);
    l->phase++;
    for (uint32_t i = 1; i < plan->inner; i++) {
        Mapping take = take_partial(&mid_value(l->mid, partials)->type.shape, i);
        lower_copy(l, partials, &take, slot_of(l, stack, i - 1, type));
    }
    for (uint32_t j = 0; j < addends; j++) {
        MidId slot = slot_of(l, stack, plan->inner - 1 + j, type), value;
        bool fresh;
        TRY(lower_broadcast(l, plan_input(l->graph, op, plan, 2 + j), type, slot, &value, &fresh));
    }
    MidId operands[2] = {partials, stack};
    MidOp *sum = lower_op(l, MID_SUM, &result, 1, operands, 2);
    sum->kernel = (KernelSpec){.family = KERNEL_REDUCE_SUM};
    sum->kernel.p[REDUCE_GELU] = plan->gelu;
    sum->kernel.p[REDUCE_PARTIALS] = (int32_t)(1 + others);
    return STATUS_OK;
}

/* A sum that is spread: the tile's part of every partial comes into one stack, its own by a copy
 * within the tile; the first slot is the seed. */
static Status sum_spread(Lower *l, uint32_t op, MidId partials, const TensorType *type,
                         MidId result)
{
    const OpPlan *plan = &l->recipe->ops[op];
    MidId stack = lower_value(l, "stack", type), seed = MID_NONE;
    l->mid->values.items[stack].slots = plan->inner;
    l->mid->values.items[stack].resident = type_has_padding(type);
    l->phase++;
    for (uint32_t i = 0; i < plan->inner; i++) {
        Mapping take = take_partial(&mid_value(l->mid, partials)->type.shape, i);
        MidId slot = slot_of(l, stack, i, type);
        seed = i ? seed : slot;
        lower_copy(l, partials, &take, slot);
    }
    MidId others = slot_of(l, stack, 1, type);
    MidId operands[2] = {seed, others};
    MidOp *sum = lower_op(l, MID_SUM, &result, 1, operands, 2);
    sum->kernel = (KernelSpec){.family = KERNEL_REDUCE_SUM};
    sum->kernel.p[REDUCE_GELU] = plan->gelu;
    sum->kernel.p[REDUCE_PARTIALS] = (int32_t)plan->inner;
    return STATUS_OK;
}

/* A sum that is spread by shares: a tile's own part of its partial is the seed, where it lies;
 * those of the others come into the stack. */
static Status sum_shares(Lower *l, uint32_t op, MidId partials, const TensorType *type,
                         MidId result)
{
    const OpPlan *plan = &l->recipe->ops[op];
    MidId stack = lower_value(l, "stack", type), seed = lower_value(l, "seed", type);
    l->mid->values.items[stack].slots = plan->inner - 1;
    l->mid->values.items[seed].storage = partials;
    l->mid->values.items[seed].share = true;
    l->phase++;
    for (uint32_t i = 0; i < plan->inner; i++) {
        Mapping take = take_partial(&mid_value(l->mid, partials)->type.shape, i);
        MidId slot = slot_of(l, stack, i, type);
        l->mid->values.items[slot].others = true;
        lower_copy(l, partials, &take, slot);
    }
    MidId operands[2] = {seed, stack};
    MidOp *sum = lower_op(l, MID_SUM, &result, 1, operands, 2);
    sum->kernel = (KernelSpec){.family = KERNEL_REDUCE_SUM};
    sum->kernel.p[REDUCE_GELU] = plan->gelu;
    sum->kernel.p[REDUCE_PARTIALS] = (int32_t)plan->inner;
    return STATUS_OK;
}

/* Operands in slices of K, each over the one before; every product but the first accumulates. */
static Status sliced_product(Lower *l, uint32_t op, const TensorType *partial, MidId *partials)
{
    const OpPlan *plan = &l->recipe->ops[op];
    uint32_t inner =
        l->graph->values.items[l->graph->operations.items[op].inputs[1]].shape.extent[0];
    MidId operands[2] = {MID_NONE, MID_NONE};
    for (uint32_t slice = 0; slice * plan->inner_block * plan->inner < inner; slice++) {
        uint32_t block = 0; /* of K, in the right operand */
        l->phase++;
        for (uint32_t j = 0; j < 2; j++) {
            TensorType type;
            Mapping mapping;
            bool fresh;
            TRY(plan_slice(l->graph, op, plan, slice, j, &type, &mapping));
            block = type.format.order.row_block;
            MidId into = lower_value(l, j ? "right" : "left", &type);
            l->mid->values.items[into].storage = operands[j];
            TRY(lower_operand(l, plan_input(l->graph, op, plan, j), &type, STAGING_DIRECT,
                              PADDING_RESIDENT, &mapping, into, &operands[j], &fresh));
        }
        MidId sum = lower_value(l, "partials", partial);
        l->mid->values.items[sum].storage = slice ? *partials : MID_NONE;
        product(l, plan, operands[0], operands[1], sum, slice > 0);
        l->mid->ops.items[l->mid->ops.count - 1].inner_block = block;
        *partials = sum;
    }
    return STATUS_OK;
}

/* Both operands whole. */
static Status lower_operands(Lower *l, uint32_t op, MidId *left, MidId *right)
{
    bool fresh;
    TRY(lower_input(l, op, 0, left, &fresh));
    return lower_input(l, op, 1, right, &fresh);
}

Status lower_gemm(Lower *l, uint32_t op)
{
    const Operation *o = &l->graph->operations.items[op];
    const OpPlan *plan = &l->recipe->ops[op];
    TensorType type, stored_type;
    Mapping mapping;
    MidId left = MID_NONE, right = MID_NONE, result, initial = MID_NONE;
    bool fresh;
    if (o->kind != OP_GEMM || plan->operand_count < 2)
        return status_error("%s: not a product", l->key);
    bool sliced = plan->slices > 1;
    if (!sliced)
        TRY(lower_operands(l, op, &left, &right));
    TRY(plan_result_type(l->graph, op, plan, &stored_type, &mapping));
    TRY(plan_product_type(l->graph, op, plan, &type));
    if (plan->inner > 1) {
        TensorType partial_type;
        TRY(plan_partial_type(l->graph, op, plan, &partial_type));
        MidId partials;
        if (sliced) {
            TRY(sliced_product(l, op, &partial_type, &partials));
        } else {
            partials = lower_value(l, "partials", &partial_type);
            product(l, plan, left, right, partials, false);
        }
        result = lower_value(l, "", &type);
        TRY(plan->scatter == SCATTER_SHARES ? sum_shares(l, op, partials, &type, result)
            : plan->scatter                 ? sum_spread(l, op, partials, &type, result)
                                            : sum_partials(l, op, partials, &type, result));
    } else {
        if (plan->operand_count > 3)
            return status_error("%s: one addend at most without a K-split", l->key);
        if (plan->operand_count == 3) {
            ValueId addend = plan_input(l->graph, op, plan, 2);
            initial = plan->in_place ? MID_NONE : addend_target(l, &type);
            TRY(lower_broadcast(l, addend, &type, initial, &initial, &fresh));
        }
        result = lower_value(l, "", &type);
        l->mid->values.items[result].storage = initial;
        product(l, plan, left, right, result, initial != MID_NONE);
    }
    if (plan->result_staging != STAGING_DIRECT) {
        MidId rows = lower_value(l, "rows", &stored_type);
        l->mid->values.items[rows].resident = type_has_padding(&stored_type); /* is not written */
        result = lower_compute(l, (KernelSpec){.family = KERNEL_UNPACK}, rows, &result, 1);
    }
    if (!shape_equal(&mid_value(l->mid, result)->type.shape, &stored_type.shape)) {
        MidId whole = lower_value(l, "", &stored_type); /* without the padding rows */
        l->mid->values.items[whole].storage = result;
        result = whole;
    }
    ValueId stored = plan_fused_result(l->graph, op, plan);
    if (stored == NO_VALUE)
        return status_error("%s: no GELU follows", l->key);
    l->stored[stored] = (Stored){result, mapping_identity(&stored_type.shape)};
    l->mid->values.items[result].origin = stored;
    return STATUS_OK;
}

/* ---- attention ---- */

typedef struct AttentionTypes { /* of one round */
    TensorType query, key, value, scores, weights, statistics, values, state, result;
    uint32_t merged_columns; /* per tile */
} AttentionTypes;

/* A product reads its result back when there is more than one group of K. */
static uint8_t product_memory(uint32_t inner)
{
    return inner > 16 ? MEMORY_INTERLEAVED : MEMORY_STANDARD;
}

static Status attention_types(Lower *l, uint32_t op, uint32_t keys, AttentionTypes *out)
{
    const OpPlan *plan = &l->recipe->ops[op];
    TensorType *three[] = {&out->query, &out->key, &out->value};
    for (uint32_t j = 0; j < 3; j++)
        TRY(plan_operand_type(l->graph, op, plan, j, three[j]));
    out->key.shape.extent[1] = out->value.shape.extent[1] = keys;
    uint32_t padded = round_up_u32(keys, 16); /* the last block of keys may be shorter */
    out->value.format.order.row_block = (uint16_t)padded;
    for (uint32_t i = 0; i < out->value.format.axis_count; i++)
        if (out->value.format.axes[i].axis == 1)
            out->value.format.axes[i].block = padded;
    Shape scores = out->query.shape, values = out->query.shape, statistics = out->query.shape;
    scores.extent[2] = keys;
    values.extent[2] = out->value.shape.extent[2];
    statistics.extent[1] = 2;
    statistics.extent[2] = out->query.shape.extent[1];

    const Format *query = &plan->operands[0].format, *value = &plan->operands[2].format;
    Format f = *query; /* [heads, queries, keys]: every value block of the grid has all of it */
    for (uint32_t i = 0; i < f.axis_count; i++)
        if (f.axes[i].axis == 2)
            f.axes[i].block = 16;
    out->weights = (TensorType){.shape = scores, .format = f};
    out->scores = out->weights;
    out->scores.format.memory_class = product_memory(out->query.shape.extent[2]);
    f.order = (Order){.kind = ORDER_ROW_MAJOR};
    f.precision = (Precision){.kind = F32};
    for (uint32_t i = 0; i < f.axis_count; i++)
        if (f.axes[i].axis == 2) /* [heads, 2, queries] */
            f.axes[i] = (AxisTiling){.axis = 1, .partitions = 1};
        else if (f.axes[i].axis == 1)
            f.axes[i].axis = 2;
    out->statistics = (TensorType){.shape = statistics, .format = f};

    f = *query; /* [heads, queries, value columns] */
    f.tile_count /= f.replicas;
    f.replicas = 1;
    for (uint32_t i = 0; i < f.axis_count; i++)
        for (uint32_t j = 0; j < value->axis_count; j++)
            if (f.axes[i].axis == 2 && value->axes[j].axis == 2)
                f.axes[i] = value->axes[j];
    f.tile_count *= plan->inner;
    out->values = (TensorType){.shape = values, .format = f};
    out->values.format.memory_class = product_memory(keys);
    out->result = (TensorType){.shape = values, .format = plan->result};
    for (uint32_t i = 0; i < out->result.format.axis_count; i++)
        if (l->graph->values.items[l->graph->operations.items[op].inputs[0]].shape.extent[0] !=
            plan->rows)
            out->result.format.axes[i].axis--;
    uint32_t outer, rows, columns; /* the state has two more columns, in whole sixteens */
    type_shard_matrix(&out->result, 0, &outer, &rows, &columns);
    out->merged_columns = columns;
    columns = round_up_u32(columns + 2, 16);
    out->state = out->result;
    out->state.format.precision = (Precision){.kind = F32};
    out->state.shape.extent[2] = columns * plan->inner;
    for (uint32_t i = 0; i < out->state.format.axis_count; i++)
        if (out->state.format.axes[i].axis == 2)
            out->state.format.axes[i].block = columns;
    return STATUS_OK;
}

/* Heads first .. first + heads - 1, and of axis 1 `length` from `start`. */
static Status part_of(Lower *l, ValueId value, uint32_t first, uint32_t heads, uint32_t start,
                      uint32_t length, Mapping *out)
{
    Shape shape = l->graph->values.items[value].shape;
    Mapping head = mapping_slice(&shape, 0, first, heads);
    shape.extent[0] = heads;
    Mapping rows = mapping_slice(&shape, 1, start, length);
    return mapping_compose(&head, &rows, out);
}

static Status attention_operand(Lower *l, uint32_t op, uint32_t j, const TensorType *type,
                                uint32_t head, uint32_t start, MidId *out)
{
    const OpPlan *plan = &l->recipe->ops[op];
    ValueId value = plan_input(l->graph, op, plan, j);
    Mapping part;
    bool fresh;
    TRY(part_of(l, value, head, plan->rows, start, type->shape.extent[1], &part));
    return lower_operand(l, value, type, plan->operands[j].staging, plan->operands[j].padding,
                         &part, MID_NONE, out, &fresh);
}

static KernelSpec softmax_spec(float scale, uint32_t keys)
{
    KernelSpec spec = {.family = KERNEL_SOFTMAX};
    spec.p[SOFTMAX_KEYS] = (int32_t)keys;
    memcpy(&spec.p[SOFTMAX_SCALE_BITS], &scale, sizeof scale);
    return spec;
}

/* One key block of one round: scores, softmax, values, merged into the state. */
static Status attention_block(Lower *l, uint32_t op, const AttentionTypes *t, MidId query,
                              MidId key, MidId value, bool initial, bool final, MidId *state,
                              MidId result)
{
    MidId scores = lower_value(l, "scores", &t->scores);
    MidId weights = lower_value(l, "exponentials", &t->weights);
    MidId statistics = lower_value(l, "statistics", &t->statistics);
    MidId values = lower_value(l, "values", &t->values);
    const OpPlan whole = {0};
    product(l, &whole, query, key, scores, false);
    uint32_t keys = t->scores.shape.extent[2];
    MidId softmax[2] = {weights, statistics};
    lower_op(l, MID_COMPUTE, softmax, 2, &scores, 1)->kernel =
        softmax_spec(l->graph->operations.items[op].scale, keys);
    product(l, &whole, weights, value, values, false);

    KernelSpec merge = {.family = KERNEL_ATTENTION_MERGE};
    merge.p[MERGE_COLUMNS] = (int32_t)t->merged_columns;
    merge.p[MERGE_INITIAL] = initial;
    merge.p[MERGE_FINAL] = final;
    if (final) {
        MidId operands[3] = {*state, values, statistics};
        lower_compute(l, merge, result, initial ? operands + 1 : operands, initial ? 2 : 3);
        return STATUS_OK;
    }
    MidId next = lower_value(l, "state", &t->state), operands[2] = {values, statistics};
    l->mid->values.items[next].storage = *state; /* MID_NONE for the first block */
    *state = lower_compute(l, merge, next, operands, 2);
    return STATUS_OK;
}

Status lower_attention(Lower *l, uint32_t op)
{
    const Operation *o = &l->graph->operations.items[op];
    const OpPlan *plan = &l->recipe->ops[op];
    if (o->kind != OP_ATTENTION || plan->operand_count != 3 || !plan->rows || !plan->key_block)
        return status_error("%s: not an attention plan", l->key);
    TensorType stored;
    Mapping mapping;
    TRY(plan_result_type(l->graph, op, plan, &stored, &mapping));
    MidId result = lower_value(l, "", &stored);
    uint32_t heads = l->graph->values.items[o->inputs[0]].shape.extent[0];
    uint32_t keys = l->graph->values.items[o->inputs[1]].shape.extent[1];
    uint32_t queries = l->graph->values.items[o->inputs[0]].shape.extent[1];
    uint32_t rounds = heads / plan->rows;
    for (uint32_t round = 0; round < rounds; round++) {
        MidId query = MID_NONE, state = MID_NONE, out = result;
        for (uint32_t start = 0; start < keys; start += plan->key_block) {
            AttentionTypes types;
            MidId key, value;
            uint32_t length = min_u32(plan->key_block, keys - start), head = round * plan->rows;
            TRY(attention_types(l, op, length, &types));
            if (rounds > 1 && start == 0)
                out = slot_of(l, result, round, &types.result);
            l->phase += start > 0 || round > 0;
            if (query == MID_NONE) {
                types.query.shape.extent[1] = queries;
                TRY(attention_operand(l, op, 0, &types.query, head, 0, &query));
            }
            TRY(attention_operand(l, op, 1, &types.key, head, start, &key));
            TRY(attention_operand(l, op, 2, &types.value, head, start, &value));
            TRY(attention_block(l, op, &types, query, key, value, start == 0,
                                start + length == keys, &state, out));
        }
    }
    l->stored[o->results[0]] = (Stored){result, mapping};
    l->mid->values.items[result].origin = o->results[0];
    return STATUS_OK;
}
