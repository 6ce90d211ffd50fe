/* print.c - tile programs as text and as JSON, whole or as one tile sees them. */
#include "tile/internal.h"

static const char *const role_names[] = {"temporary", "parameter", "input", "output"};

static bool class_has(const CallClass *class, int32_t tile)
{
    for (uint32_t r = 0; r < class->range_count; r++)
        if (tile < 0 || (class->ranges[r].first <= tile && tile <= class->ranges[r].last))
            return true;
    return false;
}

static void print_ref(Text *text, const TileProgram *p, BufferRef ref)
{
    text_printf(text, " b%u", ref.buffer);
    if (ref.offset)
        text_printf(text, "+%u", ref.offset);
    (void)p;
}

static void print_class(Text *text, const TileProgram *p, const CallClass *class)
{
    KernelContract contract;
    text_append(text, "      tiles");
    for (uint32_t r = 0; r < class->range_count; r++) {
        TileRange range = class->ranges[r];
        text_printf(text, range.first == range.last ? " %u" : " %u-%u", range.first, range.last);
    }
    text_append(text, ": ");
    kernel_spec_print(text, &class->spec);
    text_append(text, " on");
    uint32_t count =
        status_discard(kernel_contract(&class->spec, &contract)) ? 0 : contract.operand_count;
    for (uint32_t i = 0; i < count; i++)
        print_ref(text, p, class->operands[i]);
    text_printf(text, "; %llu cycles\n", (unsigned long long)kernel_cycles(&class->spec));
}

static bool transfer_has(const ExchangePhase *phase, const Transfer *t, int32_t tile)
{
    if (tile < 0 || t->source.tile == (uint32_t)tile)
        return true;
    for (uint32_t r = 0; r < t->receiver_count; r++)
        if (phase->receivers[t->first_receiver + r].tile == (uint32_t)tile)
            return true;
    return false;
}

static void print_phase(Text *text, const TileProgram *p, const ExchangePhase *phase, int32_t tile)
{
    for (uint32_t i = 0; i < phase->transfer_count; i++) {
        const Transfer *t = &phase->transfers[i];
        if (!transfer_has(phase, t, tile))
            continue;
        text_printf(text, "      %u words from %u", t->words, t->source.tile);
        print_ref(text, p, t->source.at);
        text_append(text, " to");
        for (uint32_t r = 0; r < t->receiver_count; r++) {
            const Endpoint *to = &phase->receivers[t->first_receiver + r];
            text_printf(text, "%s %u", r ? "," : "", to->tile);
            print_ref(text, p, to->at);
        }
        text_append(text, "\n");
    }
}

static void print_copies(Text *text, const TileProgram *p, const Step *step, int32_t tile)
{
    for (uint32_t i = 0; i < step->count; i++) {
        const LocalCopy *c = &p->copies.items[step->first + i];
        if (tile >= 0 && c->tile != (uint32_t)tile)
            continue;
        text_printf(text, "      tile %u: %u x %u bytes from", c->tile, c->rows, c->row_bytes);
        print_ref(text, p, c->in);
        text_printf(text, " (pitch %u) to", c->in_pitch);
        print_ref(text, p, c->out);
        text_printf(text, " (pitch %u)\n", c->out_pitch);
    }
}

static void print_buffers(Text *text, const TileProgram *p, const bool *wanted, int32_t tile)
{
    for (uint32_t b = 0; b < p->buffers.count; b++) {
        const Buffer *buffer = &p->buffers.items[b];
        uint32_t largest = 0, holders = 0;
        for (uint32_t t = 0; t < p->tiles; t++) {
            if (tile >= 0 && t != (uint32_t)tile)
                continue;
            largest = max_u32(largest, buffer->bytes[t]);
            holders += buffer->bytes[t] > 0;
        }
        if (!holders || !wanted[b])
            continue;
        text_printf(text, "  b%-4u %-9s %-11s %7u bytes", b, role_names[buffer->role & 3],
                    buffer->memory_class == MEMORY_INTERLEAVED ? "interleaved" : "standard",
                    largest);
        if (buffer->members > 1)
            text_printf(text, " x %u members", buffer->members);
        text_printf(text, " on %u tiles%s \"%s\"\n", holders, buffer->resident ? ", resident" : "",
                    buffer->name);
    }
}

bool tile_takes_part(const TileProgram *p, const Step *step, uint32_t tile)
{
    bool found = step->kind == STEP_REPEAT || step->kind == STEP_END_REPEAT;
    for (uint32_t i = 0; step->kind == STEP_CALL && i < step->count && !found; i++)
        found = class_has(&p->classes.items[step->first + i], (int32_t)tile);
    for (uint32_t i = 0; step->kind == STEP_COPY && i < step->count && !found; i++)
        found = p->copies.items[step->first + i].tile == tile;
    if (step->kind == STEP_EXCHANGE) {
        const ExchangePhase *phase = &p->phases.items[step->first];
        for (uint32_t i = 0; i < phase->transfer_count && !found; i++)
            found = transfer_has(phase, &phase->transfers[i], (int32_t)tile);
    }
    return found;
}

static bool step_wanted(const TileProgram *p, const Step *step, const Map *only, int32_t tile)
{
    return map_wants(only, step->operation) &&
           (tile < 0 || tile_takes_part(p, step, (uint32_t)tile));
}

static void mark_step(const TileProgram *p, const Step *step, bool *used)
{
    for (uint32_t i = 0; step->kind == STEP_CALL && i < step->count; i++) {
        const CallClass *class = &p->classes.items[step->first + i];
        KernelContract contract;
        uint32_t count =
            status_discard(kernel_contract(&class->spec, &contract)) ? 0 : contract.operand_count;
        for (uint32_t k = 0; k < count; k++)
            used[class->operands[k].buffer] = true;
    }
    for (uint32_t i = 0; step->kind == STEP_COPY && i < step->count; i++) {
        used[p->copies.items[step->first + i].in.buffer] = true;
        used[p->copies.items[step->first + i].out.buffer] = true;
    }
    if (step->kind != STEP_EXCHANGE)
        return;
    const ExchangePhase *phase = &p->phases.items[step->first];
    for (uint32_t i = 0; i < phase->transfer_count; i++)
        used[phase->transfers[i].source.at.buffer] = true;
    for (uint32_t i = 0; i < phase->receiver_count; i++)
        used[phase->receivers[i].at.buffer] = true;
}

bool *tile_buffers_of(const TileProgram *p, const Map *only)
{
    bool *used = xcalloc(p->buffers.count + 1, sizeof *used);
    if (!only)
        memset(used, true, p->buffers.count);
    for (uint32_t s = 0; only && s < p->steps.count; s++)
        if (map_wants(only, p->steps.items[s].operation))
            mark_step(p, &p->steps.items[s], used);
    for (uint32_t b = 0; b < p->buffers.count; b++) /* and whose memory they are */
        for (uint32_t a = b; used[b] && p->buffers.items[a].alias != BUFFER_NONE;
             a = p->buffers.items[a].alias)
            used[p->buffers.items[a].alias] = true;
    return used;
}

void tile_print(Text *text, const TileProgram *p, const Map *only, int32_t only_tile)
{
    bool *used = tile_buffers_of(p, only);
    text_printf(text, "tile program: %u tiles, %zu buffers, %zu steps\n", p->tiles,
                p->buffers.count, p->steps.count);
    print_buffers(text, p, used, only_tile);
    free(used);
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const Step *s = &p->steps.items[i];
        if (!step_wanted(p, s, only, only_tile))
            continue;
        text_printf(text, "%4u  %s: ", i, s->operation);
        if (s->kind == STEP_CALL) {
            text_append(text, "call\n");
            for (uint32_t c = 0; c < s->count; c++)
                if (class_has(&p->classes.items[s->first + c], only_tile))
                    print_class(text, p, &p->classes.items[s->first + c]);
        } else if (s->kind == STEP_COPY) {
            text_append(text, "copy\n");
            print_copies(text, p, s, only_tile);
        } else if (s->kind == STEP_EXCHANGE) {
            text_printf(text, "exchange phase %u, %u transfers\n", s->first,
                        p->phases.items[s->first].transfer_count);
            print_phase(text, p, &p->phases.items[s->first], only_tile);
        } else if (s->kind == STEP_REPEAT) {
            text_printf(text, "repeat %u times\n", s->count);
        } else {
            text_append(text, "end of repeat\n");
        }
    }
}

/* ---- JSON ---- */

static json_t *ref_to_json(BufferRef ref)
{
    json_t *out = json_array();
    json_array_append_new(out, json_integer(ref.buffer));
    json_array_append_new(out, json_integer(ref.offset));
    return out;
}

static json_t *endpoint_to_json(const Endpoint *endpoint)
{
    json_t *out = json_object();
    json_object_set_new(out, "tile", json_integer(endpoint->tile));
    json_object_set_new(out, "at", ref_to_json(endpoint->at));
    return out;
}

static json_t *class_to_json(const CallClass *class)
{
    json_t *out = json_object(), *ranges = json_array(), *operands = json_array();
    Text spec = {0};
    KernelContract contract;
    kernel_spec_print(&spec, &class->spec);
    json_object_set_new(out, "kernel", json_string(text_string(&spec)));
    text_free(&spec);
    for (uint32_t r = 0; r < class->range_count; r++) {
        json_t *range = json_array();
        json_array_append_new(range, json_integer(class->ranges[r].first));
        json_array_append_new(range, json_integer(class->ranges[r].last));
        json_array_append_new(ranges, range);
    }
    uint32_t count =
        status_discard(kernel_contract(&class->spec, &contract)) ? 0 : contract.operand_count;
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(operands, ref_to_json(class->operands[i]));
    json_object_set_new(out, "tiles", ranges);
    json_object_set_new(out, "operands", operands);
    json_object_set_new(out, "cycles", json_integer((json_int_t)kernel_cycles(&class->spec)));
    return out;
}

static json_t *copy_to_json(const LocalCopy *c)
{
    json_t *out = json_object();
    json_object_set_new(out, "tile", json_integer(c->tile));
    json_object_set_new(out, "out", ref_to_json(c->out));
    json_object_set_new(out, "in", ref_to_json(c->in));
    json_object_set_new(out, "rows", json_integer(c->rows));
    json_object_set_new(out, "rowBytes", json_integer(c->row_bytes));
    json_object_set_new(out, "outPitch", json_integer(c->out_pitch));
    json_object_set_new(out, "inPitch", json_integer(c->in_pitch));
    return out;
}

static json_t *transfer_to_json(const ExchangePhase *phase, const Transfer *t)
{
    json_t *out = json_object(), *receivers = json_array();
    json_object_set_new(out, "source", endpoint_to_json(&t->source));
    json_object_set_new(out, "words", json_integer(t->words));
    for (uint32_t r = 0; r < t->receiver_count; r++)
        json_array_append_new(receivers,
                              endpoint_to_json(&phase->receivers[t->first_receiver + r]));
    json_object_set_new(out, "receivers", receivers);
    return out;
}

static json_t *step_to_json(const TileProgram *p, uint32_t number, int32_t tile)
{
    const Step *s = &p->steps.items[number];
    static const char *const kinds[] = {"call", "copy", "exchange", "repeat", "end-repeat"};
    json_t *out = json_object(), *items = json_array();
    json_object_set_new(out, "step", json_integer(number));
    json_object_set_new(out, "kind", json_string(kinds[s->kind]));
    json_object_set_new(out, "operation", json_string(s->operation));
    for (uint32_t i = 0; i < s->count && s->kind == STEP_CALL; i++)
        if (class_has(&p->classes.items[s->first + i], tile))
            json_array_append_new(items, class_to_json(&p->classes.items[s->first + i]));
    for (uint32_t i = 0; i < s->count && s->kind == STEP_COPY; i++)
        if (tile < 0 || p->copies.items[s->first + i].tile == (uint32_t)tile)
            json_array_append_new(items, copy_to_json(&p->copies.items[s->first + i]));
    if (s->kind == STEP_EXCHANGE) {
        const ExchangePhase *phase = &p->phases.items[s->first];
        json_object_set_new(out, "phase", json_integer(s->first));
        for (uint32_t i = 0; i < phase->transfer_count; i++)
            if (transfer_has(phase, &phase->transfers[i], tile))
                json_array_append_new(items, transfer_to_json(phase, &phase->transfers[i]));
    }
    if (s->kind == STEP_REPEAT)
        json_object_set_new(out, "count", json_integer(s->count));
    json_object_set_new(out, "items", items);
    return out;
}

static json_t *buffer_to_json(const TileProgram *p, uint32_t number, int32_t tile)
{
    const Buffer *buffer = &p->buffers.items[number];
    json_t *out = json_object(), *bytes = json_array();
    json_object_set_new(out, "id", json_integer(number));
    json_object_set_new(out, "name", json_string(buffer->name));
    json_object_set_new(out, "role", json_string(role_names[buffer->role & 3]));
    json_object_set_new(out, "interleaved",
                        json_boolean(buffer->memory_class == MEMORY_INTERLEAVED));
    json_object_set_new(out, "resident", json_boolean(buffer->resident));
    json_object_set_new(out, "align", json_integer(buffer->align));
    json_object_set_new(out, "tail", json_integer(buffer->tail));
    json_object_set_new(out, "members", json_integer(buffer->members));
    for (uint32_t t = 0; t < p->tiles; t++)
        if (tile < 0 || t == (uint32_t)tile)
            json_array_append_new(bytes, json_integer(buffer->bytes[t]));
    json_object_set_new(out, "bytes", bytes);
    return out;
}

json_t *tile_to_json(const TileProgram *program, const Map *only, int32_t only_tile)
{
    bool *used = tile_buffers_of(program, only);
    json_t *out = json_object(), *buffers = json_array(), *steps = json_array();
    json_object_set_new(out, "tiles", json_integer(program->tiles));
    for (uint32_t b = 0; b < program->buffers.count; b++)
        if (used[b])
            json_array_append_new(buffers, buffer_to_json(program, b, only_tile));
    for (uint32_t i = 0; i < program->steps.count; i++)
        if (step_wanted(program, &program->steps.items[i], only, only_tile))
            json_array_append_new(steps, step_to_json(program, i, only_tile));
    free(used);
    json_object_set_new(out, "buffers", buffers);
    json_object_set_new(out, "steps", steps);
    return out;
}
