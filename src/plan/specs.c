/* specs.c - the sizes of a kernel call, from the shards it works on.
 *
 * A plan knows which kernel runs; how large a call is depends on the shard. Operands come in the
 * order of the kernel's contract, results first. The planner prices shard 0 (no shard is larger);
 * the tile stage fills in every shard. */
#include "plan/internal.h"

typedef struct Extents {           /* of a shard */
    uint32_t outer, rows, columns; /* physical */
    uint32_t logical_rows, logical_columns;
    uint32_t elements;
} Extents;

static Extents extents_of(const ShardOf *operand)
{
    const TensorType *type = operand->type;
    Extents e = {0};
    type_shard_matrix(type, operand->shard, &e.outer, &e.rows, &e.columns);
    Region region;
    e.elements = (uint32_t)(type_shard_bytes(type, operand->shard) /
                            precision_bytes(type->format.precision));
    if (type->format.shares > 1) {
        e.logical_rows = e.rows;
        e.logical_columns = e.columns;
        return e;
    }
    type_shard_region(type, operand->shard, &region);
    uint32_t last = region.rank - 1;
    e.logical_columns = region.logical_end[last] - region.start[last];
    e.logical_rows = last ? region.logical_end[last - 1] - region.start[last - 1] : 1;
    return e;
}

static Status fill_gemm(KernelSpec *spec, const ShardOf *operands)
{
    const TensorType *out = operands[0].type, *left = operands[1].type, *weights = operands[2].type;
    Extents c = extents_of(&operands[0]), l = extents_of(&operands[1]);
    Extents w = extents_of(&operands[2]);
    bool transposed = out->format.order.kind == ORDER_TRANSPOSED_LEFT;
    uint32_t rows = transposed ? c.columns : c.outer * c.rows;
    uint32_t columns = transposed ? c.rows : c.columns;
    bool l_turned = left->format.order.kind == ORDER_TRANSPOSED_LEFT;
    uint32_t l_rows = l_turned ? l.columns : l.outer * l.rows;
    uint32_t inner = l_turned ? l.rows : l.columns;
    bool w_turned = weights->format.order.kind != ORDER_BLOCK_MAJOR; /* columns are its rows */
    uint32_t w_inner = w_turned ? w.columns : w.rows, w_columns = w_turned ? w.rows : w.columns;
    if (l_rows != rows || w_columns != columns || w_inner != inner || w.outer != 1)
        return status_error("shards of a product do not fit: [%u, %u] x [%u, %u] -> [%u, %u]",
                            l_rows, inner, w_inner, w_columns, rows, columns);
    spec->p[GEMM_PRECISION] = left->format.precision.kind;
    spec->p[GEMM_ROWS] = (int32_t)rows;
    spec->p[GEMM_INNER] = (int32_t)inner;
    spec->p[GEMM_COLUMNS] = (int32_t)columns;
    spec->p[GEMM_INTERLEAVED] = weights->format.memory_class == MEMORY_INTERLEAVED;
    return STATUS_OK;
}

/* out = a + b where b is a, or repeated over the rows in front of its own last axes. */
static Status fill_broadcast(KernelSpec *spec, const ShardOf *operands, uint32_t bias)
{
    Extents a = extents_of(&operands[0]), b = extents_of(&operands[bias]);
    uint8_t order = operands[0].type->format.order.kind;
    if (!b.elements || a.elements % b.elements)
        return status_error("%u elements can not be repeated to %u", b.elements, a.elements);
    bool equal = a.elements == b.elements;
    if (!equal && operands[0].type->format.shares > 1)
        return status_error("a broadcast to shares of a block");
    if (!equal && order != ORDER_ROW_MAJOR && order != ORDER_LEFT)
        return status_error("a broadcast needs row-major or left order");
    uint32_t panels = !equal && order == ORDER_LEFT
                          ? a.columns / precision_inner(operands[0].type->format.precision)
                          : 1;
    spec->p[ADD_PANELS] = (int32_t)panels; /* BIAS_GELU has the same three parameters */
    spec->p[ADD_ROWS] = (int32_t)(a.elements / b.elements);
    spec->p[ADD_COLUMNS] = (int32_t)(b.elements / panels);
    return STATUS_OK;
}

static Status fill_layer_norm(KernelSpec *spec, const ShardOf *operands)
{
    Extents x = extents_of(&operands[0]);
    uint32_t rows = x.outer * x.rows;
    if (x.columns != x.logical_columns && rows > 1)
        return status_error("layer norm needs rows without padding between them");
    spec->p[LAYER_NORM_ROWS] = (int32_t)rows;
    spec->p[LAYER_NORM_COLUMNS] = (int32_t)x.logical_columns;
    return STATUS_OK;
}

/* UNPACK of a transposed product into micro-panels: every 16 x 16 block is transposed where it
 * lies, as one matrix of 16 columns. */
static Status fill_panels(KernelSpec *spec, const ShardOf *packed, const ShardOf *panels)
{
    Extents e = extents_of(packed), p = extents_of(panels);
    if (packed->type->format.shares > 1) { /* whole blocks of 512 bytes, whichever they are */
        if (e.elements != p.elements || e.elements % 256)
            return status_error("%u elements can not become micro-panels", e.elements);
    } else if (packed->type->format.order.kind != ORDER_TRANSPOSED_LEFT || e.outer != 1 ||
               e.rows != p.rows || e.columns != p.columns || e.rows % 16 || e.columns % 16 ||
               (e.rows > 16 && panels->type->format.order.row_block != e.columns))
        return status_error("blocks of [%u, %u] can not become micro-panels", e.rows, e.columns);
    spec->p[PACK_ORDER] = ORDER_TRANSPOSED_LEFT;
    spec->p[PACK_MATRICES] = 1;
    spec->p[PACK_ROWS] = spec->p[PACK_PHYSICAL_ROWS] = (int32_t)(e.elements / 16);
    spec->p[PACK_COLUMNS] = spec->p[PACK_PHYSICAL_COLUMNS] = spec->p[PACK_PITCH] = 16;
    return STATUS_OK;
}

/* PACK: packed <- rows; UNPACK: rows <- packed. */
static Status fill_pack(KernelSpec *spec, const ShardOf *packed, const ShardOf *rows)
{
    Extents to = extents_of(packed), from = extents_of(rows);
    const Order *order = &packed->type->format.order;
    spec->p[PACK_ORDER] = order->kind;
    spec->p[PACK_MATRICES] = (int32_t)to.outer;
    spec->p[PACK_ROWS] = (int32_t)to.logical_rows;
    spec->p[PACK_COLUMNS] = (int32_t)to.logical_columns;
    spec->p[PACK_PHYSICAL_ROWS] = (int32_t)to.rows;
    spec->p[PACK_PHYSICAL_COLUMNS] = (int32_t)to.columns;
    spec->p[PACK_ROW_BLOCK] = order->row_block;
    spec->p[PACK_PITCH] = (int32_t)from.columns;
    if (from.outer != to.outer || (from.rows != to.logical_rows && to.outer > 1))
        return status_error("staging and packed operand do not fit");
    return STATUS_OK;
}

/* Octets of halves in interleaved memory where that is faster: not for the smallest sums. */
static void prefer_octets(KernelSpec *spec)
{
    KernelSpec quads = *spec;
    spec->p[REDUCE_INTERLEAVED] = spec->p[REDUCE_ELEMENTS] % 8 == 0;
    quads.p[REDUCE_INTERLEAVED] = 0;
    if (kernel_cycles(&quads) <= kernel_cycles(spec))
        *spec = quads;
}

/* Shares are just bytes: what works on elements can have them. */
static Status check_shares(const KernelSpec *spec, const ShardOf *operands, uint32_t count)
{
    bool elements = spec->family == KERNEL_REDUCE_SUM || spec->family == KERNEL_ADD ||
                    spec->family == KERNEL_GELU || spec->family == KERNEL_BIAS_GELU ||
                    spec->family == KERNEL_CAST || spec->family == KERNEL_FILL_ZERO ||
                    (spec->family == KERNEL_UNPACK &&
                     operands[0].type->format.order.kind == ORDER_TRANSPOSED_BLOCK_MAJOR);
    for (uint32_t i = 0; i < count && !elements; i++)
        if (operands[i].type->format.shares > 1)
            return status_error("kernel %s can not work on shares of a block",
                                kernel_family_name(spec->family));
    return STATUS_OK;
}

Status plan_fill_spec(KernelSpec *spec, const ShardOf *operands, uint32_t count)
{
    TRY(check_shares(spec, operands, count));
    Extents e = extents_of(&operands[0]);
    switch (spec->family) {
    case KERNEL_GEMM:
        return fill_gemm(spec, operands);
    case KERNEL_REDUCE_SUM: /* partials come with the pattern */
        spec->p[REDUCE_ELEMENTS] = (int32_t)e.elements;
        prefer_octets(spec);
        return STATUS_OK;
    case KERNEL_ADD:
    case KERNEL_BIAS_GELU:
        return fill_broadcast(spec, operands, 2);
    case KERNEL_GELU:
        spec->p[GELU_ELEMENTS] = (int32_t)e.elements;
        return STATUS_OK;
    case KERNEL_LAYER_NORM:
        return fill_layer_norm(spec, operands);
    case KERNEL_SOFTMAX: /* keys come with the pattern: padding has none */
        spec->p[SOFTMAX_ROWS] = (int32_t)(e.outer * e.rows);
        spec->p[SOFTMAX_PADDED_KEYS] = (int32_t)e.columns;
        return STATUS_OK;
    case KERNEL_ATTENTION_MERGE: { /* columns come with the pattern: a state is wider */
        bool takes_state = spec->p[MERGE_FINAL] && !spec->p[MERGE_INITIAL];
        Extents values = extents_of(&operands[takes_state ? 2 : 1]);
        spec->p[MERGE_ROWS] = (int32_t)(values.outer * values.rows);
        spec->p[MERGE_PADDED_COLUMNS] = (int32_t)values.columns;
        return STATUS_OK;
    }
    case KERNEL_CAST:
        spec->p[CAST_ELEMENTS] = (int32_t)e.elements;
        return STATUS_OK;
    case KERNEL_PACK:
        return fill_pack(spec, &operands[0], &operands[1]);
    case KERNEL_UNPACK:
        if (operands[0].type->format.order.kind == ORDER_TRANSPOSED_BLOCK_MAJOR)
            return fill_panels(spec, &operands[1], &operands[0]);
        return fill_pack(spec, &operands[1], &operands[0]);
    case KERNEL_FILL_ZERO:
        spec->p[FILL_BYTES] = (int32_t)type_shard_bytes(operands[0].type, operands[0].shard);
        return STATUS_OK;
    default:
        return status_error("no sizes for kernel %s with %u operands",
                            kernel_family_name(spec->family), count);
    }
}
