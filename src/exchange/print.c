/* print.c - a schedule as text and as JSON: phases, and the messages of one tile or operation. */
#include "exchange/internal.h"

#include <stdlib.h>

static bool touches(const ExchangePhase *phase, const Transfer *transfer, int32_t tile)
{
    bool found = tile < 0 || transfer->source.tile == (uint32_t)tile;
    for (uint32_t i = 0; i < transfer->receiver_count && !found; i++)
        found = phase->receivers[transfer->first_receiver + i].tile == (uint32_t)tile;
    return found;
}

static void print_end(Text *text, const TileProgram *program, const Endpoint *end)
{
    const char *name = program->buffers.items[end->at.buffer].name;
    text_printf(text, "%u:%s+%u", end->tile, name ? name : "?", end->at.offset);
}

static int by_start(const void *a, const void *b)
{
    const uint64_t *p = a, *q = b;
    return *p < *q ? -1 : *p > *q;
}

static void print_phase(Text *text, const TileProgram *program, uint32_t number,
                        const PhaseSchedule *schedule, int32_t only_tile)
{
    const ExchangePhase *phase = schedule->phase;
    uint64_t words = 0, received = 0;
    uint32_t active = 0, row_words = 0, listed = 0;
    uint64_t *order = xmalloc((phase->transfer_count + 1) * sizeof *order);
    for (uint32_t m = 0; m < phase->transfer_count; m++) {
        const Transfer *transfer = &phase->transfers[m];
        words += transfer->words;
        received += (uint64_t)transfer->words * transfer->receiver_count;
        if (only_tile >= 0 && touches(phase, transfer, only_tile))
            order[listed++] = (uint64_t)schedule->slots[m].start << 32 | m;
    }
    for (uint32_t t = 0; t < program->tiles; t++) {
        active += schedule->tile_horizon[t] != 0;
        row_words = max_u32(row_words, schedule->row_words[t]);
    }
    text_printf(text,
                "phase %u %s: transfers=%u messages=%u words=%llu received=%llu tiles=%u bound=%u "
                "floor=%u horizon=%u "
                "rowWordsMax=%u%s\n",
                number, phase->operation ? phase->operation : "-",
                program->phases.items[number].transfer_count, phase->transfer_count,
                (unsigned long long)words, (unsigned long long)received, active, schedule->bound,
                schedule->floor, schedule->horizon, row_words,
                phase->in_repeat ? " in-repeat" : "");
    qsort(order, listed, sizeof *order, by_start);
    for (uint32_t i = 0; i < listed; i++) {
        const Transfer *transfer = &phase->transfers[(uint32_t)order[i]];
        const MessageSlot *slot = &schedule->slots[(uint32_t)order[i]];
        text_printf(text, "  %6u %5u words%s ", slot->start, transfer->words,
                    slot->paired ? " 64-bit" : "");
        print_end(text, program, &transfer->source);
        text_append(text, " ->");
        for (uint32_t r = 0; r < transfer->receiver_count; r++) {
            text_append(text, " ");
            print_end(text, program, &phase->receivers[transfer->first_receiver + r]);
        }
        text_append(text, "\n");
    }
    if (only_tile >= 0 && (uint32_t)only_tile < program->tiles)
        text_printf(text, "  tile %d: horizon=%u rowWords=%u\n", only_tile,
                    schedule->tile_horizon[only_tile], schedule->row_words[only_tile]);
    free(order);
}

/* A tile without a row has no part in a phase. */
static bool phase_wanted(const PhaseSchedule *schedule, const Map *only, int32_t tile)
{
    return map_wants(only, schedule->phase->operation) &&
           (tile < 0 || schedule->tile_horizon[tile] || schedule->row_words[tile]);
}

void exchange_print(Text *text, const TileProgram *program, const Schedule *schedule,
                    const Map *only, int32_t only_tile)
{
    uint64_t horizon = 0, floor = 0, bound = 0;
    uint32_t phases = 0;
    for (uint32_t p = 0; p < schedule->phase_count; p++) {
        if (!phase_wanted(&schedule->phases[p], only, only_tile))
            continue;
        phases++;
        print_phase(text, program, p, &schedule->phases[p], only_tile);
        horizon += schedule->phases[p].horizon;
        bound += schedule->phases[p].bound;
        floor += schedule->phases[p].floor;
    }
    text_printf(text, "phases=%u horizon=%llu floor=%llu bound=%llu constraints=%zu\n", phases,
                (unsigned long long)horizon, (unsigned long long)floor, (unsigned long long)bound,
                schedule->constraints.count);
}

/* ---- JSON ---- */

/* [tile, buffer, offset] */
static json_t *end_json(const Endpoint *end)
{
    return json_pack("[I, I, I]", (json_int_t)end->tile, (json_int_t)end->at.buffer,
                     (json_int_t)end->at.offset);
}

static json_t *messages_json(const PhaseSchedule *schedule, int32_t only_tile)
{
    const ExchangePhase *phase = schedule->phase;
    json_t *out = json_array();
    for (uint32_t m = 0; m < phase->transfer_count; m++) {
        const Transfer *transfer = &phase->transfers[m];
        json_t *receivers = json_array();
        if (touches(phase, transfer, only_tile))
            for (uint32_t r = 0; r < transfer->receiver_count; r++)
                json_array_append_new(receivers,
                                      end_json(&phase->receivers[transfer->first_receiver + r]));
        if (json_array_size(receivers))
            json_array_append_new(
                out, json_pack("{s:I, s:I, s:b, s:o, s:O}", "start",
                               (json_int_t)schedule->slots[m].start, "words",
                               (json_int_t)transfer->words, "paired", schedule->slots[m].paired,
                               "source", end_json(&transfer->source), "receivers", receivers));
        json_decref(receivers);
    }
    return out;
}

static json_t *tiles_json(const TileProgram *program, const PhaseSchedule *schedule,
                          int32_t only_tile)
{
    json_t *out = json_array();
    for (uint32_t t = 0; t < program->tiles; t++)
        if ((only_tile < 0 || t == (uint32_t)only_tile) && schedule->tile_horizon[t])
            json_array_append_new(out, json_pack("[I, I, I]", (json_int_t)t,
                                                 (json_int_t)schedule->tile_horizon[t],
                                                 (json_int_t)schedule->row_words[t]));
    return out;
}

static json_t *phase_json(const TileProgram *program, uint32_t number,
                          const PhaseSchedule *schedule, int32_t only_tile)
{
    const ExchangePhase *phase = schedule->phase;
    uint64_t words = 0, received = 0;
    for (uint32_t m = 0; m < phase->transfer_count; m++) {
        words += phase->transfers[m].words;
        received += (uint64_t)phase->transfers[m].words * phase->transfers[m].receiver_count;
    }
    return json_pack(
        "{s:I, s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "phase", (json_int_t)number,
        "operation", phase->operation ? phase->operation : "", "inRepeat", phase->in_repeat,
        "transfers", (json_int_t)program->phases.items[number].transfer_count, "words",
        (json_int_t)words, "wordsReceived", (json_int_t)received, "bound",
        (json_int_t)schedule->bound, "floor", (json_int_t)schedule->floor, "horizon",
        (json_int_t)schedule->horizon, "tiles", tiles_json(program, schedule, only_tile),
        "messages", messages_json(schedule, only_tile));
}

json_t *exchange_to_json(const TileProgram *program, const Schedule *schedule, const Map *only,
                         int32_t only_tile)
{
    json_t *phases = json_array(), *buffers = json_array();
    for (uint32_t p = 0; p < schedule->phase_count; p++)
        if (phase_wanted(&schedule->phases[p], only, only_tile))
            json_array_append_new(phases, phase_json(program, p, &schedule->phases[p], only_tile));
    for (uint32_t b = 0; b < program->buffers.count; b++)
        json_array_append_new(buffers, json_string(program->buffers.items[b].name));
    return json_pack("{s:I, s:[s, s, s], s:[s, s, s], s:I, s:o, s:o}", "programTiles",
                     (json_int_t)program->tiles, "tileColumns", "tile", "horizon", "rowWords",
                     "endColumns", "tile", "buffer", "offset", "constraints",
                     (json_int_t)schedule->constraints.count, "buffers", buffers, "phases", phases);
}
