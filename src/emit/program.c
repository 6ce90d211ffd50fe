/* program.c - the generated supervisor program of one tile.
 *
 *   loop:   sync 7                       input rendezvous: the host moves data now
 *           command word != 0 -> done    the host's order to end
 *           call ipu_sample_cycle        the start cycle, and the same worker slot for every call
 *   steps   calls, local copies, exchange phases, repeats
 *           sync 7                       output rendezvous
 *           bri loop
 *   done:   bri ipu_complete
 *
 * Six worker slots rotate, so the cycles of a call depend on the slot in which it starts. The
 * sample is taken by worker 0, which ends last: what follows starts the same distance from its slot
 * in every call.
 *
 * Every instruction has the same length whatever the addresses are, so one generator serves both
 * for sizes and for words.
 *
 * An exchange phase (exchange.md 3.14): kernels join their workers before they return, so no worker
 * barrier is needed; INCOMING_BASE and OUTGOING_BASE are 0 from the start (rows hold absolute
 * addresses), except that a sender inside a repeat gets its iteration's displacement as
 * OUTGOING_BASE. A tile without a role declares so (sans 0) as soon as the phase before it is over,
 * goes on with its own work, and waits (sync 1) where the phase stands.
 *
 * A repeat keeps a frame on the stack:
 *   word 0       iterations left
 *   word 1 + k   byte displacement of the current iteration, for the tile's k-th distinct stride
 *   last word    byte displacement of the current iteration's samples, when steps are sampled
 *
 * A sample is the supervisor's cycle counter as of the step's first instruction; storing it takes 8
 * cycles, 9 in a repeat. */
#include "emit/program.h"

enum {
    M_TEMPORARY = 0,
    M_ARGUMENT = 2, /* first argument register of kernels */
    M_ROW_LINK = 10,
    M_STACK = 11,
    M_ZERO = 15,
    MAX_STRIDES = 32,
    SIZING_ADDRESS = 0x80000, /* stand-in of the same code length as any address */
    SYNC_ANS = 1,
    SYNC_EXCHANGE = 3,
    SYNC_HOST = 7
};

typedef struct Generator {
    const ProgramTables *tables;
    const TileProgram *program;
    const Placement *placement;
    uint32_t tile, base;
    TileProgramCode *out;
    uint32_t strides[MAX_STRIDES], stride_count;    /* of the open repeat's frame */
    uint32_t body, frame_bytes;                     /* word index of its first instruction */
    uint32_t iterations, sample_slot, body_samples; /* sample_slot 0: not in a repeat */
    uint32_t declared; /* step + 1 of the phase that sans 0 was issued for */
} Generator;

#define put(g, ...) array_push(&(g)->out->words, isa_word(__VA_ARGS__))

static uint32_t here(const Generator *g)
{
    return g->base + 4 * (uint32_t)g->out->words.count;
}

static void put_constant(Generator *g, uint32_t reg, uint32_t value)
{
    put(g, FORM_setzi_mmmn_zi, (int32_t)reg, (int32_t)(value & 0xfffff));
    if (value >> 20)
        put(g, FORM_or_mmmn_iz, (int32_t)reg, (int32_t)reg, (int32_t)(value & 0xfff00000));
}

static void put_csr(Generator *g, const char *name, uint32_t reg)
{
    put(g, FORM_put_mmmn_zi, (int32_t)reg, isa_csr_number(name, MODE_SUPERVISOR));
}

static uint32_t stride_slot(const Generator *g, uint32_t stride)
{
    for (uint32_t k = 0; k < g->stride_count; k++)
        if (g->strides[k] == stride)
            return 1 + k;
    return 0; /* not in a repeat: member 0 */
}

/* Adds the iteration's displacement for sequence buffers. */
static void put_address(Generator *g, uint32_t reg, BufferRef ref)
{
    uint32_t address = SIZING_ADDRESS;
    if (g->placement)
        address = placement_address(g->placement, g->tile, ref.buffer) + ref.offset;
    put_constant(g, reg, address);
}

static void put_displacement(Generator *g, uint32_t reg, BufferRef ref)
{
    const Buffer *buffer = &g->program->buffers.items[ref.buffer];
    uint32_t slot = buffer->members > 1 ? stride_slot(g, buffer_stride(buffer, g->tile)) : 0;
    if (!slot)
        return;
    put(g, FORM_ld32_mmmn_zi, M_STACK, M_ZERO, (int32_t)slot, M_TEMPORARY);
    put(g, FORM_add_mmmn, (int32_t)reg, (int32_t)reg, M_TEMPORARY);
}

static void put_call(Generator *g, const CallInfo *call, const BufferRef *operands)
{
    uint32_t count = call->contract.operand_count, reg = M_ARGUMENT;
    for (uint32_t i = 0; i < count; i++)
        put_address(g, M_ARGUMENT + i, operands[i]);
    for (uint32_t i = 0; i < count; i++)
        put_displacement(g, M_ARGUMENT + i, operands[i]);
    reg += count;
    for (uint32_t i = 0; i < call->contract.scalar_count; i++)
        put_constant(g, reg++, (uint32_t)call->contract.scalars[i]);
    put(g, FORM_call_mmmn_zi, M_ROW_LINK, (int32_t)call->symbol);
}

static bool samples_steps(const Generator *g)
{
    return g->program->sampling == SAMPLE_STEPS && g->tile != IDLE_TILE;
}

/* Word number g->out->samples of the tile's buffer, plus the iteration's displacement. */
static void put_sample(Generator *g)
{
    enum { M_COUNT = 1, M_DISPLACEMENT = 2 };
    uint32_t address = SIZING_ADDRESS;
    if (g->placement)
        address = placement_address(g->placement, g->tile, g->program->sample_buffer) +
                  4 * g->out->samples;
    put(g, FORM_get_mmmn_zi, M_COUNT, isa_csr_number("SCOUNT_L", MODE_SUPERVISOR));
    put_constant(g, M_TEMPORARY, address);
    if (g->sample_slot)
        put(g, FORM_ld32_mmmn_zi, M_STACK, M_ZERO, (int32_t)g->sample_slot, M_DISPLACEMENT);
    put(g, FORM_st32_mmmn_zi, M_TEMPORARY, g->sample_slot ? M_DISPLACEMENT : M_ZERO, 0, M_COUNT);
    g->out->samples++;
}

static void put_overall_end(Generator *g)
{
    put(g, FORM_get_mmmn_zi, 1, isa_csr_number("SCOUNT_L", MODE_SUPERVISOR));
    put_constant(g, M_TEMPORARY, STATE_BASE);
    put(g, FORM_st32_mmmn_zi, M_TEMPORARY, M_ZERO, STATE_END_CYCLE / 4, 1);
}

static bool takes_part(const Generator *g, size_t step)
{
    return g->tile != IDLE_TILE && g->tables->class_of[step * g->program->tiles + g->tile];
}

/* sans 0 for the next phase, when no repeat begins or ends before it and this tile has no role. */
static void declare_next(Generator *g, size_t step)
{
    for (size_t s = step; s < g->program->steps.count; s++) {
        uint8_t kind = g->program->steps.items[s].kind;
        if (kind == STEP_REPEAT || kind == STEP_END_REPEAT)
            return;
        if (kind == STEP_EXCHANGE) {
            if (!takes_part(g, s)) {
                put(g, FORM_sans, 0);
                g->declared = (uint32_t)s + 1;
            }
            return;
        }
    }
}

static void put_exchange(Generator *g, size_t step)
{
    uint32_t phase = g->program->steps.items[step].first;
    if (!takes_part(g, step)) {
        if (g->declared != step + 1)
            put(g, FORM_sans, 0);
        put(g, FORM_sync, SYNC_ANS);
        return;
    }
    size_t entry = (size_t)phase * g->program->tiles + g->tile;
    uint32_t stride = g->tables->send_stride[entry];
    put_constant(g, M_TEMPORARY, 1);
    if (stride)
        put(g, FORM_ld32_mmmn_zi, M_STACK, M_ZERO, (int32_t)stride_slot(g, stride),
            M_TEMPORARY + 1);
    put_csr(g, "INCOMING_DCOUNT", M_TEMPORARY);
    if (stride)
        put_csr(g, "OUTGOING_BASE", M_TEMPORARY + 1);
    put(g, FORM_sync, SYNC_EXCHANGE);
    uint32_t row = g->placement ? g->placement->row_address[entry] : SIZING_ADDRESS;
    put(g, FORM_call_mmmn_zi, M_ROW_LINK, (int32_t)row);
    if (stride)
        put_csr(g, "OUTGOING_BASE", M_ZERO);
}

static void note_stride(Generator *g, BufferRef ref)
{
    const Buffer *buffer = &g->program->buffers.items[ref.buffer];
    if (buffer->members < 2)
        return;
    uint32_t stride = buffer_stride(buffer, g->tile);
    if (!stride_slot(g, stride) && g->stride_count < MAX_STRIDES)
        g->strides[g->stride_count++] = stride;
}

/* The distinct strides of sequence buffers that this tile uses in the repeat that begins at step.
 */
static void collect_strides(Generator *g, size_t step)
{
    const TileProgram *program = g->program;
    g->stride_count = 0;
    for (size_t s = step + 1; program->steps.items[s].kind != STEP_END_REPEAT; s++) {
        if (!takes_part(g, s))
            continue;
        const Step *inner = &program->steps.items[s];
        if (inner->kind == STEP_CALL) {
            uint32_t class = g->tables->class_of[s * program->tiles + g->tile] - 1;
            for (uint32_t i = 0; i < g->tables->calls[class].contract.operand_count; i++)
                note_stride(g, program->classes.items[class].operands[i]);
        } else if (inner->kind == STEP_COPY) {
            for (uint32_t c = g->tables->copy_first[s * program->tiles + g->tile];
                 c < inner->first + inner->count && program->copies.items[c].tile == g->tile; c++) {
                note_stride(g, program->copies.items[c].out);
                note_stride(g, program->copies.items[c].in);
            }
        } else {
            uint32_t stride =
                g->tables->send_stride[(size_t)inner->first * program->tiles + g->tile];
            if (stride && !stride_slot(g, stride) && g->stride_count < MAX_STRIDES)
                g->strides[g->stride_count++] = stride;
        }
    }
}

static void put_repeat(Generator *g, size_t step)
{
    if (g->tile != IDLE_TILE)
        collect_strides(g, step);
    uint32_t slots = 1 + g->stride_count;
    g->sample_slot = samples_steps(g) ? slots++ : 0;
    g->frame_bytes = round_up_u32(4 * slots, 8);
    g->iterations = g->program->steps.items[step].count;
    g->body_samples = g->out->samples;
    put(g, FORM_add_mmmn_si, M_STACK, M_STACK, -(int32_t)g->frame_bytes);
    put_constant(g, M_TEMPORARY, g->program->steps.items[step].count);
    put(g, FORM_st32_mmmn_zi, M_STACK, M_ZERO, 0, M_TEMPORARY);
    for (uint32_t k = 1; k < slots; k++)
        put(g, FORM_st32_mmmn_zi, M_STACK, M_ZERO, (int32_t)k, M_ZERO);
    g->body = here(g);
}

static void put_advance(Generator *g, uint32_t slot, uint32_t bytes)
{
    enum { M_STRIDE = 1 };
    put(g, FORM_ld32_mmmn_zi, M_STACK, M_ZERO, (int32_t)slot, M_TEMPORARY);
    put_constant(g, M_STRIDE, bytes);
    put(g, FORM_add_mmmn, M_TEMPORARY, M_TEMPORARY, M_STRIDE);
    put(g, FORM_st32_mmmn_zi, M_STACK, M_ZERO, (int32_t)slot, M_TEMPORARY);
}

static void put_end_repeat(Generator *g)
{
    uint32_t body_samples = g->out->samples - g->body_samples;
    for (uint32_t k = 0; k < g->stride_count; k++)
        put_advance(g, 1 + k, g->strides[k]);
    if (g->sample_slot)
        put_advance(g, g->sample_slot, 4 * body_samples);
    put(g, FORM_ld32_mmmn_zi, M_STACK, M_ZERO, 0, M_TEMPORARY);
    put(g, FORM_add_mmmn_si, M_TEMPORARY, M_TEMPORARY, -1);
    put(g, FORM_st32_mmmn_zi, M_STACK, M_ZERO, 0, M_TEMPORARY);
    put(g, FORM_brnz_mmmn_zi, M_TEMPORARY, (int32_t)g->body);
    put(g, FORM_add_mmmn_si, M_STACK, M_STACK, (int32_t)g->frame_bytes);
    g->stride_count = 0;
    g->sample_slot = 0;
    g->out->samples = g->body_samples + g->iterations * body_samples;
}

static void put_step(Generator *g, size_t step)
{
    const TileProgram *program = g->program;
    const Step *s = &program->steps.items[step];
    if (s->kind != STEP_EXCHANGE && s->kind != STEP_REPEAT && s->kind != STEP_END_REPEAT &&
        !takes_part(g, step))
        return;
    CodeMark mark = {.address = here(g), .step = (uint32_t)step};
    array_push(&g->out->marks, mark);
    if (samples_steps(g))
        put_sample(g);
    if (s->kind == STEP_CALL) {
        uint32_t class = g->tables->class_of[step * program->tiles + g->tile] - 1;
        put_call(g, &g->tables->calls[class], program->classes.items[class].operands);
    } else if (s->kind == STEP_COPY) {
        for (uint32_t c = g->tables->copy_first[step * program->tiles + g->tile];
             c < s->first + s->count && program->copies.items[c].tile == g->tile; c++) {
            const LocalCopy *copy = &program->copies.items[c];
            const BufferRef operands[] = {copy->out, copy->in};
            put_call(g, &g->tables->copies[c], operands);
        }
    } else if (s->kind == STEP_EXCHANGE) {
        put_exchange(g, step);
    } else if (s->kind == STEP_REPEAT) {
        put_repeat(g, step);
    } else {
        put_end_repeat(g);
    }
    if (s->kind == STEP_EXCHANGE || s->kind == STEP_REPEAT || s->kind == STEP_END_REPEAT)
        declare_next(g, step + 1);
}

void program_generate(const ProgramTables *tables, const Placement *placement, uint32_t tile,
                      TileProgramCode *out)
{
    *out = (TileProgramCode){0};
    Generator generator = {.tables = tables,
                           .program = tables->program,
                           .placement = placement,
                           .tile = tile,
                           .base = LINK_SECOND,
                           .out = out};
    Generator *g = &generator;
    if (placement)
        g->base = tile == IDLE_TILE ? placement->idle_code_address : placement->code_address[tile];
    put_csr(g, "INCOMING_BASE", M_ZERO);
    uint32_t loop = here(g);
    put(g, FORM_sync, SYNC_HOST);
    put_constant(g, M_TEMPORARY, STATE_BASE);
    put(g, FORM_ld32_mmmn_zi, M_TEMPORARY, M_ZERO, STATE_COMMAND / 4, M_TEMPORARY);
    size_t branch = out->words.count;
    put(g, FORM_brnz_mmmn_zi, M_TEMPORARY, (int32_t)loop); /* patched below */

    if (tile != IDLE_TILE) {
        put_constant(g, M_ARGUMENT, STATE_BASE + STATE_START_CYCLE);
        put(g, FORM_call_mmmn_zi, M_ROW_LINK, (int32_t)tables->sample_cycle);
    }

    out->steps_start = here(g) - g->base;
    declare_next(g, 0);
    for (size_t step = 0; step < tables->program->steps.count; step++)
        put_step(g, step);
    out->steps_end = here(g) - g->base;
    if (samples_steps(g))
        put_sample(g);
    else if (g->program->sampling == SAMPLE_OVERALL && tile != IDLE_TILE)
        put_overall_end(g);
    put(g, FORM_sync, SYNC_HOST);
    put(g, FORM_bri_mmmn_zi, (int32_t)loop);
    out->words.items[branch] = isa_word(FORM_brnz_mmmn_zi, M_TEMPORARY, (int32_t)here(g));
    put(g, FORM_bri_mmmn_zi, (int32_t)tables->complete);
}

void program_code_free(TileProgramCode *code)
{
    array_free(&code->words);
    array_free(&code->marks);
}
