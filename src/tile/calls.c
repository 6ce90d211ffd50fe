/* calls.c - kernel calls: per tile a spec and operands, tiles with equal ones in one class. */
#include "tile/internal.h"

typedef struct CallSite { /* of one tile, before it joins a class */
    KernelSpec spec;
    BufferRef operands[KERNEL_OPERANDS];
    uint32_t count;
} CallSite;

/* A buffer takes the strictest alignment, tail and memory class of the kernels that use it. */
static Status meet_contract(Expand *e, const CallSite *site, uint32_t tile)
{
    KernelContract contract;
    TRY(kernel_contract(&site->spec, &contract));
    if (contract.operand_count != site->count)
        return status_error("kernel %s has %u operands, the call has %u",
                            kernel_family_name(site->spec.family), contract.operand_count,
                            site->count);
    for (uint32_t i = 0; i < site->count; i++) {
        const OperandContract *o = &contract.operands[i];
        Buffer *buffer = &e->program->buffers.items[site->operands[i].buffer];
        buffer->align = max_u32(buffer->align, o->align);
        if (o->memory_class == MEMORY_INTERLEAVED)
            buffer->memory_class = MEMORY_INTERLEAVED;
        uint32_t end = site->operands[i].offset + o->bytes;
        if (end > buffer->bytes[tile])
            return status_error(
                "kernel %s: operand %s takes %u bytes of %s, which has %u on tile %u",
                kernel_family_name(site->spec.family), o->name, end, buffer->name,
                buffer->bytes[tile], tile);
        if (site->operands[i].offset % max_u32(o->align, 1))
            return status_error(
                "kernel %s: operand %s starts at offset %u of %s, not at a multiple "
                "of %u",
                kernel_family_name(site->spec.family), o->name, site->operands[i].offset,
                buffer->name, o->align);
        if (end + o->tail > buffer->bytes[tile])
            buffer->tail = max_u32(buffer->tail, end + o->tail - buffer->bytes[tile]);
    }
    return STATUS_OK;
}

static bool same_site(const CallClass *class, const CallSite *site)
{
    if (!kernel_spec_equal(&class->spec, &site->spec))
        return false;
    for (uint32_t i = 0; i < site->count; i++)
        if (class->operands[i].buffer != site->operands[i].buffer ||
            class->operands[i].offset != site->operands[i].offset)
            return false;
    return true;
}

static void add_tile(Expand *e, CallClass *class, uint32_t tile)
{
    uint32_t n = class->range_count;
    if (n && class->ranges[n - 1].last + 1u == tile) {
        class->ranges[n - 1].last = (uint16_t)tile;
        return;
    }
    if ((n & (n - 1)) == 0) { /* the capacity is the power of two */
        TileRange *ranges = arena_array(e->arena, TileRange, n ? 2 * n : 1);
        for (uint32_t i = 0; i < n; i++)
            ranges[i] = class->ranges[i];
        class->ranges = ranges;
    }
    class->ranges[n] = (TileRange){(uint16_t)tile, (uint16_t)tile};
    class->range_count++;
}

/* Puts the tile's call into the step whose classes start at `first`. */
static Status join_class(Expand *e, uint32_t first, const CallSite *site, uint32_t tile)
{
    TileProgram *p = e->program;
    TRY(meet_contract(e, site, tile));
    for (uint32_t c = first; c < p->classes.count; c++)
        if (same_site(&p->classes.items[c], site)) {
            add_tile(e, &p->classes.items[c], tile);
            return STATUS_OK;
        }
    CallClass class = {.spec = site->spec};
    memcpy(class.operands, site->operands, sizeof class.operands);
    add_tile(e, &class, tile);
    array_push(&p->classes, class);
    return STATUS_OK;
}

static void close_step(Expand *e, const MidOp *op, uint32_t first)
{
    uint32_t count = (uint32_t)e->program->classes.count - first;
    if (count)
        expand_step(e, STEP_CALL, op->operation, first, count);
}

/* The shard of a value on a tile; false when the tile has none or nothing logical is in it. */
static bool shard_on(const Expand *e, MidId value, uint32_t tile, uint32_t *shard)
{
    const TensorType *type = &mid_value(e->mid, value)->type;
    int32_t held = type_shard_of_tile(type, tile);
    Region region;
    if (held < 0 || !type_shard_region(type, (uint32_t)held, &region))
        return false;
    *shard = (uint32_t)held;
    return true;
}

static Status compute_site(const Expand *e, const MidOp *op, uint32_t tile, CallSite *site)
{
    ShardOf shards[2 * MID_OPERANDS];
    *site = (CallSite){.spec = op->kernel};
    for (uint32_t i = 0; i < op->result_count + op->operand_count; i++) {
        MidId value = i < op->result_count ? op->results[i] : op->operands[i - op->result_count];
        uint32_t shard;
        if (!shard_on(e, value, tile, &shard))
            return status_error("%s is not on tile %u", mid_value(e->mid, value)->name, tile);
        shards[i] = (ShardOf){&mid_value(e->mid, value)->type, shard};
        site->operands[site->count++] = expand_ref(e, value, shard);
    }
    return plan_fill_spec(&site->spec, shards, site->count);
}

static Status expand_compute(Expand *e, const MidOp *op)
{
    uint32_t first = (uint32_t)e->program->classes.count, shard;
    for (uint32_t t = 0; t < e->mid->tiles; t++) {
        CallSite site;
        if (!shard_on(e, op->results[0], t, &shard))
            continue;
        TRY(compute_site(e, op, t, &site));
        TRY(join_class(e, first, &site, t));
    }
    close_step(e, op, first);
    return STATUS_OK;
}

/* seed and stack: the sum of dense shards. */
static Status expand_sum(Expand *e, const MidOp *op)
{
    uint32_t first = (uint32_t)e->program->classes.count, shard, held;
    const TensorType *type = &mid_value(e->mid, op->results[0])->type;
    for (uint32_t t = 0; t < e->mid->tiles; t++) {
        if (!shard_on(e, op->results[0], t, &shard))
            continue;
        CallSite site = {.spec = op->kernel, .count = 3};
        site.operands[0] = expand_ref(e, op->results[0], shard);
        for (uint32_t i = 0; i < 2; i++) {
            const MidValue *value = mid_value(e->mid, op->operands[i]);
            if (!shard_on(e, op->operands[i], t, &held) ||
                type_shard_bytes(&value->type, held) != type_shard_bytes(type, shard))
                return status_error("%s: the shard of tile %u is not that of the sum", value->name,
                                    t);
            site.operands[1 + i] = expand_ref(e, op->operands[i], held);
        }
        ShardOf result = {type, shard};
        TRY(plan_fill_spec(&site.spec, &result, 1));
        TRY(join_class(e, first, &site, t));
    }
    close_step(e, op, first);
    return STATUS_OK;
}

/* One product on a tile is a call per block of K and per block of columns; K blocks but the first
 * accumulate. The weights lie as [K block][column group][panel of K], so a call reads one stretch.
 */
static Status product_site(const Expand *e, const MidOp *op, uint32_t tile, uint32_t call,
                           CallSite *site, bool *any)
{
    TRY(compute_site(e, op, tile, site));
    int32_t *p = site->spec.p;
    uint32_t rows = (uint32_t)p[GEMM_ROWS], inner = (uint32_t)p[GEMM_INNER];
    uint32_t columns = (uint32_t)p[GEMM_COLUMNS];
    uint32_t inner_block = op->inner_block && op->inner_block < inner ? op->inner_block : inner;
    uint32_t column_block =
        op->column_block && op->column_block < columns ? op->column_block : columns;
    uint32_t column_calls = ceil_div_u32(columns, column_block);
    uint32_t k = call / column_calls * inner_block, c = call % column_calls * column_block;
    *any = k < inner;
    if (!*any)
        return STATUS_OK;
    uint32_t depth = min_u32(inner_block, inner - k), width = min_u32(column_block, columns - c);
    p[GEMM_INNER] = (int32_t)depth;
    p[GEMM_COLUMNS] = (int32_t)width;
    p[GEMM_ACCUMULATE] = p[GEMM_ACCUMULATE] || k > 0;
    site->operands[0].offset += c * rows * 2;
    site->operands[1].offset += k * rows * 2;
    site->operands[2].offset += (k * columns + c * depth) * 2;
    return STATUS_OK;
}

/* Of a slice of K, a tile may have nothing. */
static bool has_inner(const Expand *e, const MidOp *op, uint32_t tile)
{
    uint32_t shard;
    return shard_on(e, op->operands[0], tile, &shard) || !op->kernel.p[GEMM_ACCUMULATE];
}

static Status expand_product(Expand *e, const MidOp *op)
{
    uint32_t shard;
    bool more = true;
    for (uint32_t call = 0; more; call++) {
        uint32_t first = (uint32_t)e->program->classes.count;
        more = false;
        for (uint32_t t = 0; t < e->mid->tiles; t++) {
            CallSite site;
            bool any;
            if (!shard_on(e, op->results[0], t, &shard) || !has_inner(e, op, t))
                continue;
            TRY(product_site(e, op, t, call, &site, &any));
            if (!any)
                continue;
            TRY(join_class(e, first, &site, t));
            more = true;
        }
        close_step(e, op, first);
    }
    return STATUS_OK;
}

Status expand_call(Expand *e, const MidOp *op)
{
    if (op->kind == MID_PRODUCT)
        return expand_product(e, op);
    if (op->kind == MID_SUM)
        return expand_sum(e, op);
    return expand_compute(e, op);
}
