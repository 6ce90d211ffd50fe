/* check.c - what every tile program must keep: all references in bounds, calls as their contracts
 * want them, one class per tile and step, transfers and copies in words that do not clash. */
#include "tile/internal.h"

static Status check_ref(const TileProgram *p, uint32_t tile, BufferRef ref, uint64_t bytes)
{
    if (ref.buffer >= p->buffers.count)
        return status_error("buffer %u does not exist", ref.buffer);
    if (tile >= p->tiles)
        return status_error("tile %u of %u", tile, p->tiles);
    const Buffer *buffer = &p->buffers.items[ref.buffer];
    if (ref.offset + bytes > buffer->bytes[tile])
        return status_error("bytes %u .. %llu of %s, which has %u on tile %u", ref.offset,
                            (unsigned long long)(ref.offset + bytes), buffer->name,
                            buffer->bytes[tile], tile);
    return STATUS_OK;
}

static Status check_buffer(const TileProgram *p, const Buffer *buffer)
{
    if (buffer->align < 4 || (buffer->align & (buffer->align - 1)))
        return status_error("%s: alignment %u", buffer->name, buffer->align);
    if (buffer->members < 1 || buffer->role > BUFFER_OUTPUT)
        return status_error("%s: members or role", buffer->name);
    if (buffer->alias != BUFFER_NONE && buffer->alias >= p->buffers.count)
        return status_error("%s: alias of nothing", buffer->name);
    for (uint32_t t = 0; t < p->tiles; t++)
        if (buffer->bytes[t] % 4)
            return status_error("%s: %u bytes on tile %u", buffer->name, buffer->bytes[t], t);
    return STATUS_OK;
}

static bool overlap(BufferRef a, uint64_t a_bytes, BufferRef b, uint64_t b_bytes)
{
    return a.buffer == b.buffer && a.offset < b.offset + b_bytes && b.offset < a.offset + a_bytes;
}

static Status check_class(const TileProgram *p, const CallClass *class, uint32_t *taken,
                          uint32_t step)
{
    KernelContract contract;
    TRY(kernel_contract(&class->spec, &contract));
    for (uint32_t r = 0; r < class->range_count; r++) {
        if (class->ranges[r].first > class->ranges[r].last || class->ranges[r].last >= p->tiles)
            return status_error("tiles %u .. %u", class->ranges[r].first, class->ranges[r].last);
        for (uint32_t t = class->ranges[r].first; t <= class->ranges[r].last; t++) {
            if (taken[t] == step)
                return status_error("tile %u is in two classes", t);
            taken[t] = step;
            for (uint32_t i = 0; i < contract.operand_count; i++)
                TRY(check_ref(p, t, class->operands[i], contract.operands[i].bytes));
        }
    }
    for (uint32_t i = 0; i < contract.operand_count; i++) {
        const OperandContract *out = &contract.operands[i];
        const Buffer *buffer = &p->buffers.items[class->operands[i].buffer];
        if (out->memory_class == MEMORY_INTERLEAVED && buffer->memory_class != MEMORY_INTERLEAVED)
            return status_error("operand %s must be in interleaved memory", out->name);
        if (class->operands[i].offset % max_u32(out->align, 1) || buffer->align < out->align)
            return status_error("operand %s must be aligned to %u", out->name, out->align);
        for (uint32_t j = 0; j < contract.operand_count && out->output; j++) {
            if (j == i || out->in_place == (int8_t)j ||
                (contract.operands[j].output && contract.operands[j].in_place == (int8_t)i))
                continue;
            if (overlap(class->operands[i], out->bytes, class->operands[j],
                        contract.operands[j].bytes))
                return status_error("operand %s overlaps %s", out->name, contract.operands[j].name);
        }
    }
    return STATUS_OK;
}

static Status check_copy(const TileProgram *p, const LocalCopy *c)
{
    if (!c->rows || !c->row_bytes || (c->row_bytes | c->out_pitch | c->in_pitch) % 4 ||
        (c->out.offset | c->in.offset) % 4)
        return status_error("a local copy of %u x %u bytes is not in words", c->rows, c->row_bytes);
    uint64_t out = (uint64_t)(c->rows - 1) * c->out_pitch + c->row_bytes;
    uint64_t in = (uint64_t)(c->rows - 1) * c->in_pitch + c->row_bytes;
    TRY(check_ref(p, c->tile, c->out, out));
    TRY(check_ref(p, c->tile, c->in, in));
    if (overlap(c->out, out, c->in, in))
        return status_error("a local copy within %s overlaps itself",
                            p->buffers.items[c->out.buffer].name);
    return STATUS_OK;
}

typedef struct Span { /* bytes that a phase writes or reads on a tile */
    uint32_t tile, buffer, start, end;
    bool write;
} Span;

static int by_place(const void *left, const void *right)
{
    const Span *a = left, *b = right;
    if (a->tile != b->tile)
        return a->tile < b->tile ? -1 : 1;
    if (a->buffer != b->buffer)
        return a->buffer < b->buffer ? -1 : 1;
    return a->start < b->start ? -1 : a->start > b->start;
}

/* No byte is written twice, or written and read. */
static Status check_spans(const TileProgram *p, Span *spans, size_t count)
{
    if (count)
        qsort(spans, count, sizeof *spans, by_place);
    uint32_t written = 0, read = 0; /* ends of what was written and read so far in the buffer */
    for (size_t i = 0; i < count; i++) {
        const Span *s = &spans[i];
        if (i == 0 || spans[i - 1].tile != s->tile || spans[i - 1].buffer != s->buffer)
            written = read = 0;
        if (s->start < written || (s->write && s->start < read))
            return status_error("bytes from %u of %s on tile %u are written and used in one phase",
                                s->start, p->buffers.items[s->buffer].name, s->tile);
        if (s->write)
            written = max_u32(written, s->end);
        else
            read = max_u32(read, s->end);
    }
    return STATUS_OK;
}

static Status check_phase(const TileProgram *p, const ExchangePhase *phase)
{
    ARRAY(Span) spans = {0};
    Status status = STATUS_OK;
    for (uint32_t i = 0; i < phase->transfer_count && status_ok(status); i++) {
        const Transfer *t = &phase->transfers[i];
        uint32_t bytes = t->words * 4;
        if (!t->words || !t->receiver_count ||
            t->first_receiver + t->receiver_count > phase->receiver_count)
            status = status_error("transfer %u is empty", i);
        else if (t->source.at.offset % 4)
            status = status_error("transfer %u starts within a word", i);
        else
            status = check_ref(p, t->source.tile, t->source.at, bytes);
        array_push(&spans, (Span){t->source.tile, t->source.at.buffer, t->source.at.offset,
                                  t->source.at.offset + bytes, false});
        for (uint32_t r = 0; r < t->receiver_count && status_ok(status); r++) {
            const Endpoint *to = &phase->receivers[t->first_receiver + r];
            if (to->tile == t->source.tile || to->at.offset % 4)
                status = status_error("transfer %u: receiver %u", i, r);
            else
                status = check_ref(p, to->tile, to->at, bytes);
            array_push(&spans,
                       (Span){to->tile, to->at.buffer, to->at.offset, to->at.offset + bytes, true});
        }
    }
    if (status_ok(status))
        status = check_spans(p, spans.items, spans.count);
    array_free(&spans);
    return status;
}

/* In a repeat all transfers of a sender move by one stride: OUTGOING_BASE is one per tile. */
static Status check_strides(const TileProgram *p, const ExchangePhase *phase)
{
    uint32_t *stride = xcalloc(p->tiles, sizeof *stride); /* + 1; 0: none seen */
    Status status = STATUS_OK;
    for (uint32_t i = 0; i < phase->transfer_count && status_ok(status); i++) {
        uint32_t *seen = &stride[phase->transfers[i].source.tile];
        uint32_t own = transfer_stride(p, &phase->transfers[i]) + 1;
        if (*seen && *seen != own)
            status = status_error("tile %u sends with strides of %u and %u bytes in one phase",
                                  phase->transfers[i].source.tile, *seen - 1, own - 1);
        *seen = own;
    }
    free(stride);
    return status;
}

static Status check_step(const TileProgram *p, uint32_t index, uint32_t *taken)
{
    const Step *s = &p->steps.items[index];
    switch (s->kind) {
    case STEP_CALL:
        if (s->first + s->count > p->classes.count)
            return status_error("classes beyond the end");
        for (uint32_t c = 0; c < s->count; c++)
            TRY(check_class(p, &p->classes.items[s->first + c], taken, index + 1));
        return STATUS_OK;
    case STEP_COPY:
        if (s->first + s->count > p->copies.count)
            return status_error("copies beyond the end");
        for (uint32_t c = 0; c < s->count; c++) {
            TRY(check_copy(p, &p->copies.items[s->first + c]));
            if (c && p->copies.items[s->first + c - 1].tile > p->copies.items[s->first + c].tile)
                return status_error("copies are not sorted by tile");
        }
        return STATUS_OK;
    case STEP_EXCHANGE:
        if (s->first >= p->phases.count)
            return status_error("phase %u does not exist", s->first);
        if (p->phases.items[s->first].in_repeat)
            TRY(check_strides(p, &p->phases.items[s->first]));
        return check_phase(p, &p->phases.items[s->first]);
    default:
        return STATUS_OK;
    }
}

static Status check_program(const TileProgram *p, uint32_t *taken)
{
    bool open = false;
    for (uint32_t b = 0; b < p->buffers.count; b++)
        TRY(check_buffer(p, &p->buffers.items[b]));
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const Step *s = &p->steps.items[i];
        if (s->kind == STEP_REPEAT || s->kind == STEP_END_REPEAT) {
            if (open == (s->kind == STEP_REPEAT))
                return status_error("step %u: repeats do not nest", i);
            open = s->kind == STEP_REPEAT;
        }
        TRY(status_context(check_step(p, i, taken), "step %u, %s", i, s->operation));
    }
    return open ? status_error("a repeat without end") : STATUS_OK;
}

Status tile_check(const TileProgram *program)
{
    if (program->tiles < 1 || program->tiles > TILES)
        return status_error("a program for %u tiles", program->tiles);
    uint32_t *taken = xcalloc(program->tiles, sizeof *taken);
    Status status = check_program(program, taken);
    free(taken);
    return status;
}
