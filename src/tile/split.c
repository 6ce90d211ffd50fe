/* split.c - phases inside a repeat, cut so that all transfers of a sender move by one stride.
 *
 * A sender inside a repeat has one displacement per phase (its OUTGOING_BASE). Where a tile sends
 * from sequences of different strides, or from a sequence and from a plain buffer, the phase
 * becomes several: the k-th holds every sender's k-th distinct stride. Plans avoid this by where
 * they store sequences; here it is made correct. */
#include "tile/internal.h"

enum { STRIDES = 8 };

typedef struct SenderStrides { /* distinct strides of one tile in a phase, in order of appearance */
    uint32_t count, stride[STRIDES];
} SenderStrides;

uint32_t transfer_stride(const TileProgram *program, const Transfer *transfer)
{
    const Buffer *buffer = &program->buffers.items[transfer->source.at.buffer];
    return buffer->members > 1 ? buffer_stride(buffer, transfer->source.tile) : 0;
}

/* rank[t]: which of the new phases transfer t goes to. Returns how many there are; 0: too many. */
static uint32_t rank_transfers(const TileProgram *program, const ExchangePhase *phase,
                               SenderStrides *senders, uint32_t *rank)
{
    uint32_t phases = 1;
    memset(senders, 0, program->tiles * sizeof *senders);
    for (uint32_t t = 0; t < phase->transfer_count; t++) {
        SenderStrides *sender = &senders[phase->transfers[t].source.tile];
        uint32_t stride = transfer_stride(program, &phase->transfers[t]), k = 0;
        while (k < sender->count && sender->stride[k] != stride)
            k++;
        if (k == STRIDES)
            return 0;
        if (k == sender->count)
            sender->stride[sender->count++] = stride;
        rank[t] = k;
        phases = max_u32(phases, k + 1);
    }
    return phases;
}

static ExchangePhase take_rank(Arena *arena, const ExchangePhase *phase, const uint32_t *rank,
                               uint32_t wanted)
{
    ExchangePhase part = {.operation = phase->operation, .in_repeat = true};
    part.transfers = arena_array(arena, Transfer, phase->transfer_count);
    part.receivers = arena_array(arena, Endpoint, phase->receiver_count);
    for (uint32_t t = 0; t < phase->transfer_count; t++) {
        if (rank[t] != wanted)
            continue;
        Transfer transfer = phase->transfers[t];
        memcpy(part.receivers + part.receiver_count, phase->receivers + transfer.first_receiver,
               transfer.receiver_count * sizeof *part.receivers);
        transfer.first_receiver = part.receiver_count;
        part.receiver_count += transfer.receiver_count;
        part.transfers[part.transfer_count++] = transfer;
    }
    return part;
}

/* Cuts the phase of step i; the new phases' steps follow it. */
static Status split_step(Arena *arena, TileProgram *program, size_t i, SenderStrides *senders)
{
    uint32_t index = program->steps.items[i].first;
    ExchangePhase phase = program->phases.items[index];
    uint32_t *rank = arena_array(arena, uint32_t, phase.transfer_count);
    uint32_t phases = rank_transfers(program, &phase, senders, rank);
    if (!phases)
        return status_error("%s: a tile sends from sequences of more than %d strides in one phase",
                            phase.operation, STRIDES);
    for (uint32_t k = 0; phases > 1 && k < phases; k++) {
        ExchangePhase part = take_rank(arena, &phase, rank, k);
        if (!k) {
            program->phases.items[index] = part;
            continue;
        }
        Step step = program->steps.items[i];
        step.first = (uint32_t)program->phases.count;
        array_push(&program->phases, part);
        array_push(&program->steps, step); /* makes room; then moved behind the others */
        Step *at = program->steps.items + i + k;
        memmove(at + 1, at, (program->steps.count - 1 - (i + k)) * sizeof *at);
        *at = step;
    }
    return STATUS_OK;
}

/* Phases are numbered in the order of their steps: reports and checks count on it. */
static void renumber_phases(Arena *arena, TileProgram *program)
{
    size_t count = program->phases.count, next = 0;
    ExchangePhase *old = arena_copy(arena, program->phases.items, count * sizeof *old, 8);
    for (size_t i = 0; i < program->steps.count; i++) {
        Step *step = &program->steps.items[i];
        if (step->kind != STEP_EXCHANGE)
            continue;
        program->phases.items[next] = old[step->first];
        step->first = (uint32_t)next++;
    }
}

Status split_phases(Arena *arena, TileProgram *program)
{
    SenderStrides *senders = xcalloc(program->tiles, sizeof *senders);
    Status status = STATUS_OK;
    size_t phases = program->phases.count;
    for (size_t i = 0; i < program->steps.count && status_ok(status); i++) {
        const Step *step = &program->steps.items[i];
        if (step->kind == STEP_EXCHANGE && step->first < phases &&
            program->phases.items[step->first].in_repeat)
            status = split_step(arena, program, i, senders);
    }
    free(senders);
    if (status_ok(status) && program->phases.count != phases)
        renumber_phases(arena, program);
    return status;
}
