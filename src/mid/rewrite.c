/* rewrite.c - rewrites that keep the meaning: fewer phases, fewer copies, nothing unused.
 *
 * Grouping: every operation gets a level, the number of exchange phases that must come before it.
 * Copies move to the first phase in which their source is there, so chains that do not depend on
 * each other share phases; the number of phases left is the longest chain of copies. Within a level
 * the phase comes first, then the kernels in their old order. */
#include "mid/internal.h"

static bool is_boundary(const MidOp *op)
{
    return op->kind == MID_REPEAT || op->kind == MID_END_REPEAT;
}

static uint32_t region_end(const Mid *mid, uint32_t start)
{
    while (start < mid->ops.count && !is_boundary(&mid->ops.items[start]))
        start++;
    return start;
}

/* ---- grouping ---- */

typedef struct Levels {
    const Mid *mid;
    uint32_t *written; /* level of the last write, per root (a stack's slots count as one) */
    uint32_t *read;    /* highest level of a kernel that read it */
    uint32_t *copied;  /* highest level of a copy that read it */
    uint32_t *level;   /* per op */
} Levels;

static uint32_t level_of(const Levels *l, const MidOp *op)
{
    const Mid *mid = l->mid;
    bool copy = op->kind == MID_COPY;
    uint32_t level = copy ? 1 : 0;
    for (uint32_t j = 0; j < op->operand_count; j++) {
        MidId root = mid_root(mid, op->operands[j]);
        level = max_u32(level, l->written[root] + copy);
    }
    for (uint32_t j = 0; j < op->result_count; j++) {
        MidId root = mid_root(mid, op->results[j]);
        const MidValue *v = mid_value(mid, op->results[j]);
        bool over = v->storage != MID_NONE && !mid_value(mid, v->storage)->parts;
        if (!over)
            continue; /* new memory, or a slot that nobody read before */
        level = max_u32(level, l->written[root] + copy);
        level = max_u32(level, l->read[root] + copy);
        level = max_u32(level, l->copied[root] + copy);
    }
    return level;
}

static void note_level(Levels *l, const MidOp *op, uint32_t level)
{
    for (uint32_t j = 0; j < op->operand_count; j++) {
        uint32_t root = mid_root(l->mid, op->operands[j]);
        uint32_t *last = op->kind == MID_COPY ? &l->copied[root] : &l->read[root];
        *last = max_u32(*last, level);
    }
    for (uint32_t j = 0; j < op->result_count; j++) {
        uint32_t root = mid_root(l->mid, op->results[j]);
        l->written[root] = max_u32(l->written[root], level);
    }
}

/* A clear belongs right before the phase that fills its memory. */
static void delay_clears(Levels *l, uint32_t start, uint32_t end)
{
    const Mid *mid = l->mid;
    for (uint32_t i = start; i < end; i++) {
        const MidOp *clear = &mid->ops.items[i];
        if (clear->kind != MID_COMPUTE || clear->kernel.family != KERNEL_FILL_ZERO)
            continue;
        for (uint32_t k = i + 1; k < end; k++) {
            const MidOp *copy = &mid->ops.items[k];
            if (copy->kind == MID_COPY &&
                mid_root(mid, copy->results[0]) == mid_root(mid, clear->results[0])) {
                l->level[i] = max_u32(l->level[i], l->level[k] ? l->level[k] - 1 : 0);
                break;
            }
        }
    }
}

static uint32_t count_phases(const Mid *mid, uint32_t start, uint32_t end)
{
    uint32_t count = 0;
    for (uint32_t i = start; i < end; i++) {
        bool first = mid->ops.items[i].kind == MID_COPY;
        for (uint32_t k = start; k < i && first; k++)
            first = mid->ops.items[k].kind != MID_COPY ||
                    mid->ops.items[k].phase != mid->ops.items[i].phase;
        count += first;
    }
    return count;
}

static void group_region(Levels *l, Mid *mid, uint32_t start, uint32_t end, uint32_t base)
{
    uint32_t highest = 0, at = 0;
    memset(l->written, 0, mid->values.count * sizeof *l->written);
    memset(l->read, 0, mid->values.count * sizeof *l->read);
    memset(l->copied, 0, mid->values.count * sizeof *l->copied);
    for (uint32_t i = start; i < end; i++) {
        l->level[i] = level_of(l, &mid->ops.items[i]);
        note_level(l, &mid->ops.items[i], l->level[i]);
        highest = max_u32(highest, l->level[i]);
    }
    delay_clears(l, start, end);
    MidOp *sorted = xcalloc(end - start + 1, sizeof *sorted);
    for (uint32_t level = 0; level <= highest; level++)
        for (uint32_t copies = 1; copies <= 1; copies--) /* copies, then kernels */
            for (uint32_t i = start; i < end; i++) {
                MidOp op = mid->ops.items[i];
                if (l->level[i] != level || (op.kind == MID_COPY) != (copies == 1))
                    continue;
                if (op.kind == MID_COPY)
                    op.phase = base + level;
                sorted[at++] = op;
            }
    memcpy(mid->ops.items + start, sorted, (end - start) * sizeof *sorted);
    free(sorted);
}

uint32_t mid_group_exchanges(Mid *mid)
{
    uint32_t values = (uint32_t)mid->values.count, saved = 0, base = 0;
    Levels l = {.mid = mid};
    l.written = xcalloc(3 * values + mid->ops.count + 1, sizeof *l.written);
    l.read = l.written + values;
    l.copied = l.read + values;
    l.level = l.copied + values;
    for (uint32_t start = 0; start < mid->ops.count;) {
        uint32_t end = region_end(mid, start), before = count_phases(mid, start, end);
        group_region(&l, mid, start, end, base);
        saved += before - count_phases(mid, start, end);
        base += end - start + 1; /* phase numbers differ between regions */
        start = end + 1;
    }
    free(l.written);
    return saved;
}

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
