/* requests.c - what needs memory: sizes, alignment and class of every buffer group, its lifetime in
 * steps, and which groups must keep apart.
 *
 * Lifetimes count program steps. What is alive when a repeat begins and touched inside it lives to
 * the repeat's end, because the next iteration touches it again. */
#include "place/layout.h"

static void add_tile(TileBits *bits, uint32_t tile)
{
    bits->word[tile / 64] |= 1ull << (tile % 64);
}

static bool has_tile(const TileBits *bits, uint32_t tile)
{
    return bits->word[tile / 64] >> (tile % 64) & 1;
}

static void touch(Requests *requests, uint32_t buffer, uint32_t step)
{
    Request *request = &requests->items[requests->root[buffer]];
    request->first = min_u32(request->first, step);
    if (request->last != LIFETIME_ALWAYS)
        request->last = max_u32(request->last, step);
}

static Status collect_sizes(Arena *arena, const TileProgram *program, Requests *out)
{
    for (uint32_t b = 0; b < program->buffers.count; b++) {
        out->root[b] = buffer_root(program, b);
        if (out->root[b] == b) {
            out->items[b].bytes = arena_array(arena, uint32_t, program->tiles);
            out->items[b].first = UINT32_MAX;
            out->items[b].align = 4;
        }
    }
    for (uint32_t b = 0; b < program->buffers.count; b++) {
        const Buffer *buffer = &program->buffers.items[b];
        Request *request = &out->items[out->root[b]];
        request->align = max_u32(request->align, buffer->align);
        request->interleaved |= buffer->memory_class == MEMORY_INTERLEAVED;
        if (buffer->resident || buffer->role == BUFFER_PARAMETER) {
            request->resident = true;
            request->first = 0;
            request->last = LIFETIME_ALWAYS;
        }
        for (uint32_t tile = 0; tile < program->tiles; tile++) {
            if (!buffer->bytes[tile])
                continue;
            uint64_t bytes = buffer->members > 1
                                 ? (uint64_t)buffer->members * buffer_stride(buffer, tile)
                                 : (uint64_t)buffer->bytes[tile] + buffer->tail;
            if (bytes > SRAM_BYTES)
                return status_error("place: %s: tile %u needs %llu bytes, a tile has %u",
                                    buffer->name, tile, (unsigned long long)bytes, SRAM_BYTES);
            request->bytes[tile] = max_u32(request->bytes[tile], round_up_u32((uint32_t)bytes, 4));
            request->max_bytes = max_u32(request->max_bytes, request->bytes[tile]);
            add_tile(&request->tiles, tile);
        }
    }
    return STATUS_OK;
}

static Status touch_step(const TileProgram *program, Requests *out, uint32_t index)
{
    const Step *step = &program->steps.items[index];
    uint32_t time = index + 1; /* 0 is the input rendezvous */
    if (step->kind == STEP_CALL) {
        for (uint32_t c = step->first; c < step->first + step->count; c++) {
            const CallClass *class = &program->classes.items[c];
            KernelContract contract;
            TRY(kernel_contract(&class->spec, &contract));
            for (uint32_t i = 0; i < contract.operand_count; i++)
                touch(out, class->operands[i].buffer, time);
        }
    } else if (step->kind == STEP_COPY) {
        for (uint32_t c = step->first; c < step->first + step->count; c++) {
            touch(out, program->copies.items[c].out.buffer, time);
            touch(out, program->copies.items[c].in.buffer, time);
        }
    } else if (step->kind == STEP_EXCHANGE) {
        const ExchangePhase *phase = &program->phases.items[step->first];
        for (uint32_t t = 0; t < phase->transfer_count; t++)
            touch(out, phase->transfers[t].source.at.buffer, time);
        for (uint32_t r = 0; r < phase->receiver_count; r++)
            touch(out, phase->receivers[r].at.buffer, time);
    }
    return STATUS_OK;
}

/* A group alive at the repeat's begin and touched inside lives to its end. */
static void extend_over_repeat(const TileProgram *program, Requests *out, uint32_t begin,
                               uint32_t end)
{
    for (uint32_t b = 0; b < program->buffers.count; b++) {
        Request *request = &out->items[b];
        if (out->root[b] == b && request->first <= begin + 1 && request->last > begin + 1 &&
            request->last < end + 1)
            request->last = end + 1;
    }
}

static Status collect_lifetimes(const TileProgram *program, Requests *out)
{
    uint32_t closing = (uint32_t)program->steps.count + 1;
    for (uint32_t b = 0; b < program->buffers.count; b++) {
        const Buffer *buffer = &program->buffers.items[b];
        if (buffer->role == BUFFER_INPUT)
            touch(out, b, 0);
        if (buffer->role == BUFFER_OUTPUT)
            touch(out, b, closing);
    }
    uint32_t begin = 0;
    for (uint32_t i = 0; i < program->steps.count; i++)
        TRY(touch_step(program, out, i));
    for (uint32_t i = 0; i < program->steps.count; i++) {
        if (program->steps.items[i].kind == STEP_REPEAT)
            begin = i;
        if (program->steps.items[i].kind == STEP_END_REPEAT)
            extend_over_repeat(program, out, begin, i);
    }
    return STATUS_OK;
}

/* Keeps buffers a and b apart on `tiles`; pairs on the same group can not be kept apart and must be
 * caught by the caller. */
static void separate(Requests *out, uint32_t a, uint32_t b, const TileBits *tiles)
{
    uint32_t low = min_u32(out->root[a], out->root[b]), high = max_u32(out->root[a], out->root[b]);
    if (low == high)
        return;
    uint64_t *slot = map_at(&out->separation_index, (uint64_t)low << 32 | high, NULL);
    if (!*slot) {
        array_push(&out->separations, (Separation){.a = low, .b = high});
        *slot = out->separations.count;
    }
    Separation *separation = &out->separations.items[*slot - 1];
    for (size_t w = 0; w < countof(tiles->word); w++)
        separation->tiles.word[w] |= tiles->word[w];
}

static Status separate_operands(const TileProgram *program, Requests *out)
{
    for (uint32_t c = 0; c < program->classes.count; c++) {
        const CallClass *class = &program->classes.items[c];
        KernelContract contract;
        TRY(kernel_contract(&class->spec, &contract));
        TileBits tiles = {0};
        for (uint32_t r = 0; r < class->range_count; r++)
            for (uint32_t t = class->ranges[r].first; t <= class->ranges[r].last; t++)
                add_tile(&tiles, t);
        for (uint32_t i = 0; i < contract.operand_count; i++) {
            Request *request = &out->items[out->root[class->operands[i].buffer]];
            request->align = max_u32(request->align, contract.operands[i].align);
            for (uint32_t j = 0; j < i; j++)
                if (contract.separate[i] >> j & 1 || contract.separate[j] >> i & 1)
                    separate(out, class->operands[i].buffer, class->operands[j].buffer, &tiles);
        }
    }
    return STATUS_OK;
}

static Status separate_copies(const TileProgram *program, Requests *out)
{
    for (uint32_t c = 0; c < program->copies.count; c++) {
        const LocalCopy *copy = &program->copies.items[c];
        KernelSpec spec = local_copy_spec(copy);
        KernelContract contract;
        TileBits tiles = {0};
        TRY(kernel_contract(&spec, &contract));
        add_tile(&tiles, copy->tile);
        if (contract.separate[0])
            separate(out, copy->out.buffer, copy->in.buffer, &tiles);
    }
    return STATUS_OK;
}

static Status apply_constraints(const ConstraintArray *constraints, Requests *out)
{
    for (size_t i = 0; i < constraints->count; i++) {
        const Constraint *constraint = &constraints->items[i];
        Request *a = &out->items[out->root[constraint->buffer_a]];
        if (constraint->kind == CONSTRAINT_ALIGNED) {
            a->align = max_u32(a->align, constraint->value);
        } else if (constraint->kind == CONSTRAINT_SAME_ADDRESS) {
            if (out->root[constraint->buffer_a] != out->root[constraint->buffer_b])
                return status_error("place: buffers %u and %u are asked to be at one address",
                                    constraint->buffer_a, constraint->buffer_b);
            a->same_address = true;
        } else {
            TileBits tiles = {0};
            add_tile(&tiles, constraint->tile_a);
            separate(out, constraint->buffer_a, constraint->buffer_b, &tiles);
        }
    }
    return STATUS_OK;
}

Status requests_collect(Arena *arena, const TileProgram *program,
                        const ConstraintArray *constraints, Requests *out)
{
    uint32_t count = (uint32_t)program->buffers.count;
    *out = (Requests){.items = arena_array(arena, Request, count),
                      .root = arena_array(arena, uint32_t, count),
                      .count = count};
    TRY(collect_sizes(arena, program, out));
    TRY(collect_lifetimes(program, out));
    TRY(separate_operands(program, out));
    TRY(separate_copies(program, out));
    TRY(apply_constraints(constraints, out));
    for (size_t i = 0; i < out->separations.count; i++) /* only tiles where both are */
        for (uint32_t tile = 0; tile < program->tiles; tile++)
            if (has_tile(&out->separations.items[i].tiles, tile) &&
                (!out->items[out->separations.items[i].a].bytes[tile] ||
                 !out->items[out->separations.items[i].b].bytes[tile]))
                out->separations.items[i].tiles.word[tile / 64] &= ~(1ull << (tile % 64));
    return STATUS_OK;
}

void requests_free(Requests *requests)
{
    array_free(&requests->separations);
    map_free(&requests->separation_index);
}
