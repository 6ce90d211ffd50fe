/* check.c - what every mid program must keep.
 *
 * Besides ids, types and ranks: a value is read only after it is written, and only while its memory
 * still holds it. A result with `storage` overwrites that value; slots of a stack do not. Copies of
 * one phase happen at once: none may need what another of them writes. In a repeat only its own
 * values and the carried memory may be written, or the second iteration would see it. */
#include "mid/internal.h"

typedef struct Checker {
    const Mid *mid;
    bool *written; /* by an operation, or from the host */
    bool *dead;    /* overwritten since */
    MidId *holder; /* per root: the value that was written to all of it last */
    bool *outside; /* written before the repeat that is open */
    bool *carried; /* roots of its carried values */
    bool in_repeat;
} Checker;

static const char *name_of(const Mid *mid, MidId value)
{
    const char *name = mid_value(mid, value)->name;
    return name ? name : "?";
}

/* A share that keeps its own bytes in a block: it must be this very block's. */
static Status check_apart(const Mid *mid, const MidValue *v, const MidValue *storage)
{
    Format blocks = format_blocks(&v->type.format);
    blocks.memory_class = storage->type.format.memory_class;
    if (v->type.format.shares < 2 || !shape_equal(&v->type.shape, &storage->type.shape) ||
        !format_equal(&blocks, &storage->type.format) || v->slot || v->members != 1 ||
        storage->members != 1 || !storage->resident)
        return status_error("these are no shares of %s", name_of(mid, v->storage));
    for (uint32_t t = 0; t < mid->tiles; t++) {
        int32_t mine = type_shard_of_tile(&v->type, t);
        int32_t theirs = type_shard_of_tile(&storage->type, t);
        if ((mine < 0 ? mine : mine / (int32_t)v->type.format.shares) != theirs)
            return status_error("tile %u has another block of %s", t, name_of(mid, v->storage));
    }
    return STATUS_OK;
}

static Status check_value(const Mid *mid, MidId id)
{
    const MidValue *v = mid_value(mid, id);
    TRY(type_check(&v->type));
    if (v->type.format.first_tile + v->type.format.tile_count > mid->tiles)
        return status_error("tiles %u .. %u of %u", v->type.format.first_tile,
                            v->type.format.first_tile + v->type.format.tile_count - 1, mid->tiles);
    if (v->slots < 1 || v->members < 1)
        return status_error("no slots or members");
    if (v->storage == MID_NONE)
        return v->slot || v->share ? status_error("a slot of nothing") : STATUS_OK;
    if (v->storage >= id)
        return status_error("shares the memory of the later value %u", v->storage);
    const MidValue *s = mid_value(mid, v->storage);
    if (v->apart)
        TRY(check_apart(mid, v, s));
    for (uint32_t t = 0; t < mid->tiles; t++) {
        int32_t mine = type_shard_of_tile(&v->type, t), theirs = type_shard_of_tile(&s->type, t);
        uint64_t bytes = mine < 0 ? 0 : type_shard_bytes(&v->type, (uint32_t)mine);
        uint64_t room = theirs < 0 ? 0 : type_shard_bytes(&s->type, (uint32_t)theirs) * s->slots;
        uint32_t slot = v->slot;
        if (bytes && !mid_slot(v, (uint32_t)mine, &slot))
            continue;
        uint64_t end = bytes * (slot + 1);
        if (bytes && v->share)
            end += type_share_offset(&v->type, (uint32_t)mine);
        if (end > room)
            return status_error("does not fit into the memory of %s on tile %u: %llu of %llu bytes",
                                name_of(mid, v->storage), t, (unsigned long long)end,
                                (unsigned long long)room);
    }
    return STATUS_OK;
}

/* The value or, for a view or a stack's parts, what stands for it. */
static bool is_written(const Checker *c, MidId value)
{
    while (!c->written[value] && mid_value(c->mid, value)->storage != MID_NONE)
        value = mid_value(c->mid, value)->storage;
    return c->written[value];
}

static bool is_dead(const Checker *c, MidId value)
{
    while (!c->written[value] && mid_value(c->mid, value)->storage != MID_NONE)
        value = mid_value(c->mid, value)->storage;
    return c->dead[value];
}

static Status read_value(const Checker *c, MidId value)
{
    if (value >= c->mid->values.count)
        return status_error("operand %u does not exist", value);
    if (!is_written(c, value))
        return status_error("%s (%u) is read before it is written", name_of(c->mid, value), value);
    if (is_dead(c, value))
        return status_error("%s (%u) is read after it was overwritten", name_of(c->mid, value),
                            value);
    return STATUS_OK;
}

static Status write_value(Checker *c, MidId value)
{
    const Mid *mid = c->mid;
    if (value >= mid->values.count)
        return status_error("result %u does not exist", value);
    if (c->written[value])
        return status_error("%s (%u) is written twice", name_of(mid, value), value);
    MidId root = mid_owner(mid, value);
    MidId over = mid_value(mid, value)->apart ? MID_NONE : mid_value(mid, value)->storage;
    if (c->in_repeat && c->outside[root] && !c->carried[root])
        return status_error("%s (%u) overwrites %s, which was made before the repeat",
                            name_of(mid, value), value, name_of(mid, root));
    if (over != MID_NONE && mid_value(mid, root)->role == 1)
        return status_error("%s (%u) overwrites a parameter", name_of(mid, value), value);
    if (over == MID_NONE || !mid_value(mid, over)->parts) { /* the whole memory */
        if (c->holder[root] != MID_NONE)
            c->dead[c->holder[root]] = true;
        c->holder[root] = value;
    }
    c->written[value] = true;
    for (MidId s = value; !mid_value(mid, s)->apart && mid_value(mid, s)->storage != MID_NONE;) {
        s = mid_value(mid, s)->storage; /* a stack is there once one slot is */
        c->written[s] = true;
    }
    return STATUS_OK;
}

static Status check_copy(const Mid *mid, const MidOp *op)
{
    if (op->operand_count != 1 || op->result_count != 1)
        return status_error("a copy has one operand and one result");
    const TensorType *from = &mid_value(mid, op->operands[0])->type;
    const TensorType *to = &mid_value(mid, op->results[0])->type;
    if (op->mapping.source_rank != from->shape.rank ||
        op->mapping.destination_rank != to->shape.rank)
        return status_error("the mapping is of other ranks");
    if (from->format.precision.kind != to->format.precision.kind)
        return status_error("a copy can not change the precision");
    return STATUS_OK;
}

/* All copies of the phase that op `first` opens, up to the end of the region. */
static Status check_phase(Checker *c, uint32_t first, bool *done)
{
    const Mid *mid = c->mid;
    uint32_t phase = mid->ops.items[first].phase, end = first;
    while (end < mid->ops.count && mid->ops.items[end].kind != MID_REPEAT &&
           mid->ops.items[end].kind != MID_END_REPEAT)
        end++;
    for (uint32_t i = first; i < end; i++) {
        const MidOp *op = &mid->ops.items[i];
        if (op->kind != MID_COPY || op->phase != phase)
            continue;
        done[i] = true;
        TRY(status_context(check_copy(mid, op), "%s", op->operation));
        TRY(status_context(read_value(c, op->operands[0]), "%s: copy", op->operation));
    }
    for (uint32_t i = first; i < end; i++) {
        const MidOp *op = &mid->ops.items[i];
        if (op->kind != MID_COPY || op->phase != phase)
            continue;
        for (uint32_t j = first; j < end; j++) {
            const MidOp *other = &mid->ops.items[j];
            if (other->kind == MID_COPY && other->phase == phase &&
                mid_owner(mid, other->operands[0]) == mid_owner(mid, op->results[0]))
                return status_error("%s: %s is written and read in one phase", op->operation,
                                    name_of(mid, op->results[0]));
        }
        TRY(status_context(write_value(c, op->results[0]), "%s: copy", op->operation));
    }
    return STATUS_OK;
}

static Status check_repeat(Checker *c, const MidOp *op)
{
    size_t values = c->mid->values.count;
    if (c->in_repeat)
        return status_error("%s: repeats do not nest", op->operation);
    for (uint32_t j = 0; j < op->result_count; j++)
        TRY(write_value(c, op->results[j]));
    memset(c->carried, 0, values);
    for (uint32_t v = 0; v < values; v++)
        c->outside[v] = c->written[v];
    for (uint32_t j = 0; j < op->result_count; j++)
        c->carried[mid_root(c->mid, op->results[j])] = true;
    for (uint32_t v = 0; v < values; v++)
        if (c->written[v]) /* roots that are only known through what shares them */
            c->outside[mid_owner(c->mid, v)] = true;
    c->in_repeat = true;
    return STATUS_OK;
}

static Status check_end(Checker *c, const MidOp *op)
{
    if (!c->in_repeat || op->result_count != op->operand_count)
        return status_error("%s: an end without its repeat", op->operation);
    for (uint32_t j = 0; j < op->operand_count; j++) {
        TRY(read_value(c, op->operands[j]));
        if (mid_root(c->mid, op->operands[j]) != mid_root(c->mid, op->results[j]))
            return status_error("%s: yield %u is not in the carried memory", op->operation, j);
    }
    c->in_repeat = false;
    for (uint32_t j = 0; j < op->result_count; j++) {
        c->written[op->results[j]] = true;
        c->holder[mid_root(c->mid, op->results[j])] = op->results[j];
        for (uint32_t i = 0; i < op->operand_count; i++)
            if (mid_root(c->mid, op->operands[i]) == mid_root(c->mid, op->results[j]))
                c->dead[op->operands[i]] = true;
    }
    return STATUS_OK;
}

static Status check_op(Checker *c, uint32_t i, bool *done)
{
    const MidOp *op = &c->mid->ops.items[i];
    if (op->operand_count > MID_OPERANDS || op->result_count > MID_OPERANDS)
        return status_error("%s: too many operands", op->operation);
    if (op->kind == MID_COPY)
        return done[i] ? STATUS_OK : check_phase(c, i, done);
    if (op->kind == MID_REPEAT)
        return check_repeat(c, op);
    if (op->kind == MID_END_REPEAT)
        return check_end(c, op);
    for (uint32_t j = 0; j < op->operand_count; j++)
        TRY(status_context(read_value(c, op->operands[j]), "%s", op->operation));
    for (uint32_t j = 0; j < op->result_count; j++)
        TRY(status_context(write_value(c, op->results[j]), "%s", op->operation));
    return STATUS_OK;
}

static Status check_all(Checker *c, bool *done)
{
    const Mid *mid = c->mid;
    for (uint32_t v = 0; v < mid->values.count; v++) {
        TRY(status_context(check_value(mid, v), "value %u (%s)", v, name_of(mid, v)));
        uint8_t role = mid_value(mid, v)->role;
        c->written[v] = role == 1 || role == 2;
        c->holder[v] = c->written[v] ? v : MID_NONE;
    }
    for (uint32_t i = 0; i < mid->ops.count; i++)
        TRY(check_op(c, i, done));
    if (c->in_repeat)
        return status_error("a repeat without end");
    for (uint32_t v = 0; v < mid->values.count; v++)
        if (mid_value(mid, v)->role == 3 && !is_written(c, v))
            return status_error("output %s is never written", name_of(mid, v));
    return STATUS_OK;
}

Status mid_check(const Mid *mid)
{
    size_t values = mid->values.count + 1;
    bool *flags = xcalloc(4 * values + mid->ops.count, sizeof *flags);
    MidId *holder = xcalloc(values, sizeof *holder);
    Checker c = {.mid = mid,
                 .holder = holder,
                 .written = flags,
                 .dead = flags + values,
                 .outside = flags + 2 * values,
                 .carried = flags + 3 * values};
    Status status = check_all(&c, flags + 4 * values);
    free(flags);
    free(holder);
    return status;
}
