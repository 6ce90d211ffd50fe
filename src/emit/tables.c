/* tables.c - lookups for the generator: who calls what in a step, resolved symbols, send strides.
 */
#include "emit/program.h"

static Status call_info(const KernelSpec *spec, const LinkImage *linked, CallInfo *out)
{
    TRY(kernel_contract(spec, &out->contract));
    if (linked)
        TRY(link_symbol(linked, out->contract.symbol, &out->symbol));
    return STATUS_OK;
}

static Status resolve_calls(Arena *arena, const LinkImage *linked, ProgramTables *out)
{
    const TileProgram *program = out->program;
    out->calls = arena_array(arena, CallInfo, program->classes.count);
    for (size_t c = 0; c < program->classes.count; c++)
        TRY(call_info(&program->classes.items[c].spec, linked, &out->calls[c]));
    out->copies = arena_array(arena, CallInfo, program->copies.count);
    for (size_t c = 0; c < program->copies.count; c++) {
        KernelSpec spec = local_copy_spec(&program->copies.items[c]);
        TRY(call_info(&spec, linked, &out->copies[c]));
    }
    return STATUS_OK;
}

static void index_steps(Arena *arena, ProgramTables *out)
{
    const TileProgram *program = out->program;
    size_t tiles = program->tiles;
    out->class_of = arena_array(arena, uint32_t, program->steps.count * tiles);
    out->copy_first = arena_array(arena, uint32_t, program->steps.count * tiles);
    for (size_t s = 0; s < program->steps.count; s++) {
        const Step *step = &program->steps.items[s];
        uint32_t *class_of = &out->class_of[s * tiles];
        if (step->kind == STEP_CALL)
            for (uint32_t c = step->first; c < step->first + step->count; c++) {
                const CallClass *class = &program->classes.items[c];
                for (uint32_t r = 0; r < class->range_count; r++)
                    for (uint32_t t = class->ranges[r].first; t <= class->ranges[r].last; t++)
                        class_of[t] = c + 1;
            }
        if (step->kind == STEP_COPY)
            for (uint32_t c = step->first + step->count; c-- > step->first;) {
                uint32_t tile = program->copies.items[c].tile;
                out->copy_first[s * tiles + tile] = c;
                class_of[tile] = 1;
            }
        if (step->kind == STEP_EXCHANGE) {
            const ExchangePhase *phase = &program->phases.items[step->first];
            for (uint32_t t = 0; t < phase->transfer_count; t++)
                class_of[phase->transfers[t].source.tile] = 1;
            for (uint32_t r = 0; r < phase->receiver_count; r++)
                class_of[phase->receivers[r].tile] = 1;
        }
    }
}

static void find_send_strides(Arena *arena, ProgramTables *out)
{
    const TileProgram *program = out->program;
    out->send_stride = arena_array(arena, uint32_t, program->phases.count * program->tiles);
    for (size_t p = 0; p < program->phases.count; p++) {
        const ExchangePhase *phase = &program->phases.items[p];
        if (!phase->in_repeat)
            continue;
        for (uint32_t t = 0; t < phase->transfer_count; t++) {
            const Endpoint *source = &phase->transfers[t].source;
            const Buffer *buffer = &program->buffers.items[source->at.buffer];
            if (buffer->members > 1)
                out->send_stride[p * program->tiles + source->tile] =
                    buffer_stride(buffer, source->tile);
        }
    }
}

Status tables_build(Arena *arena, const TileProgram *program, const LinkImage *linked,
                    ProgramTables *out)
{
    *out = (ProgramTables){.program = program};
    TRY(resolve_calls(arena, linked, out));
    if (linked) {
        TRY(link_symbol(linked, "ipu_complete", &out->complete));
        TRY(link_symbol(linked, "ipu_sample_cycle", &out->sample_cycle));
    }
    index_steps(arena, out);
    find_send_strides(arena, out);
    return STATUS_OK;
}
