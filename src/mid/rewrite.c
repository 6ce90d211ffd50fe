/* rewrite.c - rewrites that keep the meaning: fewer copies, nothing unused. */
#include "mid/internal.h"

/* ---- merging ---- */

static bool same_mapping(const Mapping *a, const Mapping *b)
{
    if (a->source_rank != b->source_rank || a->destination_rank != b->destination_rank ||
        a->atom_count != b->atom_count ||
        memcmp(a->extent, b->extent, a->atom_count * sizeof *a->extent) != 0)
        return false;
    for (uint32_t side = 0; side < 2; side++) {
        const MappingAxis *x = side ? a->destination : a->source;
        const MappingAxis *y = side ? b->destination : b->source;
        uint32_t rank = side ? a->destination_rank : a->source_rank;
        for (uint32_t i = 0; i < rank; i++)
            if (x[i].offset != y[i].offset || x[i].count != y[i].count ||
                memcmp(x[i].atoms, y[i].atoms, x[i].count) != 0)
                return false;
    }
    return true;
}

/* Some operation writes into memory that this value gave. */
static bool is_overwritten(const Mid *mid, MidId value)
{
    MidId root = mid_root(mid, value);
    for (uint32_t i = 0; i < mid->ops.count; i++)
        for (uint32_t j = 0; j < mid->ops.items[i].result_count; j++)
            if (mid->ops.items[i].results[j] != value &&
                mid_root(mid, mid->ops.items[i].results[j]) == root)
                return true;
    return false;
}

static void replace_value(Mid *mid, MidId from, MidId to)
{
    for (uint32_t i = 0; i < mid->ops.count; i++)
        for (uint32_t j = 0; j < mid->ops.items[i].operand_count; j++)
            if (mid->ops.items[i].operands[j] == from)
                mid->ops.items[i].operands[j] = to;
    for (uint32_t v = 0; v < mid->values.count; v++)
        if (mid->values.items[v].storage == from)
            mid->values.items[v].storage = to;
}

static bool copies_equal(const Mid *mid, const MidOp *a, const MidOp *b)
{
    const MidValue *x = mid_value(mid, a->results[0]), *y = mid_value(mid, b->results[0]);
    return a->operands[0] == b->operands[0] && x->storage == MID_NONE && y->storage == MID_NONE &&
           !x->role && !y->role && shape_equal(&x->type.shape, &y->type.shape) &&
           format_equal(&x->type.format, &y->type.format) && same_mapping(&a->mapping, &b->mapping);
}

static void remove_ops(Mid *mid, const bool *gone)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < mid->ops.count; i++)
        if (!gone[i])
            mid->ops.items[kept++] = mid->ops.items[i];
    mid->ops.count = kept;
}

uint32_t mid_merge_copies(Mid *mid)
{
    bool *gone = xcalloc(mid->ops.count + 1, sizeof *gone);
    uint32_t merged = 0;
    for (uint32_t i = 0; i < mid->ops.count; i++) {
        const MidOp *first = &mid->ops.items[i];
        if (first->kind != MID_COPY || gone[i] || is_overwritten(mid, first->results[0]) ||
            is_overwritten(mid, first->operands[0]))
            continue;
        for (uint32_t k = i + 1; k < mid->ops.count && !is_boundary(&mid->ops.items[k]); k++) {
            const MidOp *second = &mid->ops.items[k];
            if (second->kind != MID_COPY || gone[k] || !copies_equal(mid, first, second) ||
                is_overwritten(mid, second->results[0]) || second->results[0] < first->results[0])
                continue;
            replace_value(mid, second->results[0], first->results[0]);
            gone[k] = true;
            merged++;
        }
    }
    remove_ops(mid, gone);
    free(gone);
    return merged;
}

/* ---- eliminating ---- */

/* The result's memory is read by an operation other than `self`, or by the host. */
static bool is_needed(const Mid *mid, MidId value, uint32_t self)
{
    MidId root = mid_root(mid, value);
    if (mid_value(mid, root)->role)
        return true;
    for (uint32_t i = 0; i < mid->ops.count; i++) {
        if (i == self)
            continue;
        for (uint32_t j = 0; j < mid->ops.items[i].operand_count; j++)
            if (mid_root(mid, mid->ops.items[i].operands[j]) == root)
                return true;
        for (uint32_t j = 0; j < mid->ops.items[i].result_count; j++)
            if (is_boundary(&mid->ops.items[i]) &&
                mid_root(mid, mid->ops.items[i].results[j]) == root)
                return true;
    }
    return false;
}

static bool is_unused(const Mid *mid, uint32_t i)
{
    const MidOp *op = &mid->ops.items[i];
    bool needed = is_boundary(op);
    for (uint32_t j = 0; j < op->result_count; j++)
        needed |= is_needed(mid, op->results[j], i);
    return !needed;
}

/* A kernel that reads this memory asks for zero padding. */
static bool wants_zero(const Mid *mid, MidId root)
{
    for (uint32_t i = 0; i < mid->ops.count; i++) {
        const MidOp *op = &mid->ops.items[i];
        ShardOf shards[2 * MID_OPERANDS];
        KernelSpec spec = op->kernel;
        KernelContract contract;
        uint32_t count = 0;
        bool reads = false;
        for (uint32_t j = 0; j < op->operand_count; j++)
            reads |= mid_root(mid, op->operands[j]) == root;
        if (!reads || is_boundary(op))
            continue;
        if (op->kind == MID_COPY || op->kind == MID_SUM)
            return true; /* the padding may go on to where it matters */
        for (uint32_t j = 0; j < op->result_count; j++)
            shards[count++] = (ShardOf){&mid_value(mid, op->results[j])->type, 0};
        for (uint32_t j = 0; j < op->operand_count; j++)
            shards[count++] = (ShardOf){&mid_value(mid, op->operands[j])->type, 0};
        if (status_discard(plan_fill_spec(&spec, shards, count)) ||
            status_discard(kernel_contract(&spec, &contract)))
            return true;
        for (uint32_t j = 0; j < op->operand_count; j++)
            if (mid_root(mid, op->operands[j]) == root &&
                contract.operands[op->result_count + j].need != PADDING_ANYTHING)
                return true;
    }
    return false;
}

static bool is_idle_clear(const Mid *mid, uint32_t i)
{
    const MidOp *op = &mid->ops.items[i];
    return op->kind == MID_COMPUTE && op->kernel.family == KERNEL_FILL_ZERO &&
           !wants_zero(mid, mid_root(mid, op->results[0]));
}

uint32_t mid_eliminate(Mid *mid)
{
    bool *gone = xcalloc(mid->ops.count + 1, sizeof *gone);
    uint32_t removed = 0;
    for (bool again = true; again;) {
        again = false;
        memset(gone, 0, mid->ops.count + 1);
        for (uint32_t i = 0; i < mid->ops.count; i++) {
            gone[i] = is_unused(mid, i) || is_idle_clear(mid, i);
            again |= gone[i];
            removed += gone[i];
        }
        remove_ops(mid, gone);
    }
    free(gone);
    return removed;
}
