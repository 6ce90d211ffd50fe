/* expand.c - mid program -> tile program: buffers, and the walk over the operations.
 *
 * A mid value that owns memory becomes a buffer; values that share storage are references into it.
 * Copies of one phase are done where the first of them stands. */
#include "tile/internal.h"

uint32_t buffer_stride(const Buffer *buffer, uint32_t tile)
{
    uint32_t align = buffer->align ? buffer->align : 4;
    return buffer->bytes[tile] ? round_up_u32(buffer->bytes[tile] + buffer->tail, align) : 0;
}

BufferRef expand_ref(const Expand *e, MidId value, uint32_t shard)
{
    return (BufferRef){e->buffer_of[mid_root(e->mid, value)],
                       (uint32_t)mid_offset(e->mid, value, shard)};
}

void expand_step(Expand *e, uint8_t kind, const char *operation, uint32_t first, uint32_t count)
{
    array_push(&e->program->steps,
               (Step){.kind = kind, .operation = operation, .first = first, .count = count});
}

static Status make_buffer(Expand *e, MidId id)
{
    const MidValue *v = mid_value(e->mid, id);
    Buffer buffer = {.name = v->name, .role = v->role, .alias = BUFFER_NONE, .value = id};
    buffer.memory_class = v->type.format.memory_class;
    buffer.resident = v->resident || v->role == BUFFER_PARAMETER || v->role == BUFFER_INPUT;
    buffer.align = 8;
    buffer.members = v->members;
    buffer.bytes = arena_array(e->arena, uint32_t, e->mid->tiles);
    for (uint32_t t = 0; t < e->mid->tiles; t++) {
        int32_t shard = type_shard_of_tile(&v->type, t);
        uint64_t bytes = shard < 0 ? 0 : type_shard_bytes(&v->type, (uint32_t)shard) * v->slots;
        if (bytes > SRAM_BYTES)
            return status_error("%s: %llu bytes on tile %u do not fit into its %u", v->name,
                                (unsigned long long)bytes, t, SRAM_BYTES);
        buffer.bytes[t] = round_up_u32((uint32_t)bytes, 4);
    }
    e->buffer_of[id] = (uint32_t)e->program->buffers.count;
    array_push(&e->program->buffers, buffer);
    return STATUS_OK;
}

/* Only values that an operation touches become buffers, and what the host must find. */
static Status make_buffers(Expand *e)
{
    const Mid *mid = e->mid;
    bool *used = arena_array(e->arena, bool, mid->values.count);
    for (uint32_t i = 0; i < mid->ops.count; i++) {
        const MidOp *op = &mid->ops.items[i];
        for (uint32_t j = 0; j < op->operand_count; j++)
            used[mid_root(mid, op->operands[j])] = true;
        for (uint32_t j = 0; j < op->result_count; j++)
            used[mid_root(mid, op->results[j])] = true;
    }
    for (uint32_t v = 0; v < mid->values.count; v++) {
        const MidValue *value = mid_value(mid, v);
        e->buffer_of[v] = BUFFER_NONE;
        bool host = value->role == BUFFER_INPUT || value->role == BUFFER_OUTPUT;
        if (value->storage == MID_NONE && (used[v] || host))
            TRY(make_buffer(e, v));
    }
    return STATUS_OK;
}

/* Collects the copies of the phase that starts at op i, up to the end of the region. */
static uint32_t phase_copies(const Mid *mid, uint32_t i, bool *done, const MidOp **out)
{
    uint32_t count = 0, phase = mid->ops.items[i].phase;
    for (; i < mid->ops.count; i++) {
        const MidOp *op = &mid->ops.items[i];
        if (op->kind == MID_REPEAT || op->kind == MID_END_REPEAT)
            break;
        if (op->kind != MID_COPY || op->phase != phase)
            continue;
        done[i] = true;
        out[count++] = op;
    }
    return count;
}

static Status expand_ops(Expand *e)
{
    const Mid *mid = e->mid;
    bool *done = arena_array(e->arena, bool, mid->ops.count);
    const MidOp **copies = arena_array(e->arena, const MidOp *, mid->ops.count);
    for (uint32_t i = 0; i < mid->ops.count; i++) {
        const MidOp *op = &mid->ops.items[i];
        Status status = STATUS_OK;
        if (done[i])
            continue;
        if (op->kind == MID_COPY) {
            status = expand_copies(e, copies, phase_copies(mid, i, done, copies));
        } else if (op->kind == MID_REPEAT) {
            e->in_repeat = true;
            expand_step(e, STEP_REPEAT, op->operation, 0, op->count);
        } else if (op->kind == MID_END_REPEAT) {
            e->in_repeat = false;
            expand_step(e, STEP_END_REPEAT, op->operation, 0, 0);
        } else {
            status = expand_call(e, op);
        }
        if (!status_ok(status))
            return status_context(status, "%s", op->operation);
    }
    return STATUS_OK;
}

static Status expand(Expand *e)
{
    *e->program = (TileProgram){.tiles = e->mid->tiles};
    e->buffer_of = arena_array(e->arena, uint32_t, e->mid->values.count);
    Status status = make_buffers(e);
    if (status_ok(status))
        status = expand_ops(e);
    if (status_ok(status) && !e->loads)
        status = split_phases(e->arena, e->program);
    if (!status_ok(status))
        tile_free(e->program);
    return status;
}

Status tile_expand(Arena *arena, const Mid *mid, TileProgram *out)
{
    return expand(&(Expand){.arena = arena, .mid = mid, .program = out});
}

Status tile_expand_loads(Arena *arena, const Mid *mid, bool pairs, TileProgram *out)
{
    return expand(
        &(Expand){.arena = arena, .mid = mid, .program = out, .loads = true, .pairs = pairs});
}

void tile_free(TileProgram *program)
{
    array_free(&program->buffers);
    array_free(&program->steps);
    array_free(&program->classes);
    array_free(&program->copies);
    array_free(&program->phases);
}
