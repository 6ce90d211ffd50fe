/* bench_exchange.c - ipu-stack bench exchange: one synthetic exchange phase, scheduled, encoded,
 * and executed on the simulated device; every word at every receiver is compared. */
#include "cli/cli.h"
#include "exchange/exchange.h"
#include "sim/sim.h"

#include <stdlib.h>
#include <string.h>

typedef struct ExchangeOptions {
    CommonOptions common;
    const char *pattern, *transfers;
    uint64_t tiles, words, group, shift, fanout, messages, seed;
    bool no_pairs;
} ExchangeOptions;

typedef struct ExchangeBench {
    const ExchangeOptions *options;
    Arena arena;
    Pool *pool;
    TileProgram program;
    Schedule schedule;
    Row *rows;
    Sim *sim;
    uint32_t row_address, source_address, target_address; /* the same on all tiles */
    uint32_t row_words;                                   /* the longest row */
    double schedule_seconds;
    uint64_t words;    /* received, over all receivers */
    uint64_t boundary; /* cycles from the start of the programs to event 0 */
    bool delivered;
} ExchangeBench;

/* ---- the phase ---- */

static Status make_phase(ExchangeBench *bench)
{
    const ExchangeOptions *o = bench->options;
    if (o->transfers) {
        Bytes text;
        TRY(file_read(o->transfers, FILE_LIMIT_TEXT, &text));
        Status status = exchange_pattern_read(&bench->arena, o->transfers, (const char *)text.data,
                                              &bench->program);
        bytes_free(&text);
        return status;
    }
    Pattern pattern = {.name = o->pattern,
                       .tiles = (uint32_t)o->tiles,
                       .words = (uint32_t)o->words,
                       .group = (uint32_t)o->group,
                       .shift = (uint32_t)o->shift,
                       .fanout = (uint32_t)o->fanout,
                       .messages = o->messages ? (uint32_t)o->messages : 4 * (uint32_t)o->tiles,
                       .seed = (uint32_t)o->seed};
    return exchange_pattern(&bench->arena, &pattern, &bench->program);
}

static uint32_t buffer_bytes(const ExchangeBench *bench, uint32_t buffer)
{
    uint32_t most = 0;
    for (uint32_t t = 0; t < bench->program.tiles; t++)
        most = max_u32(most, bench->program.buffers.items[buffer].bytes[t]);
    return most;
}

static uint32_t next_element(uint32_t address)
{
    uint32_t next = round_up_u32(address, ELEMENT_BYTES);
    return next < INTERLEAVED_BASE ? next : round_up_u32(next, INTERLEAVED_ELEMENT_BYTES);
}

/* Row, source and target in elements of their own, at the same addresses everywhere. */
static Status place_buffers(ExchangeBench *bench)
{
    for (uint32_t t = 0; t < bench->program.tiles; t++)
        bench->row_words = max_u32(bench->row_words, bench->schedule.phases[0].row_words[t]);
    bench->row_address = LINK_SECOND;
    uint32_t row_end = bench->row_address + 4 * bench->row_words;
    bench->source_address = next_element(row_end + FETCH_GUARD_BYTES);
    bench->target_address = next_element(bench->source_address + buffer_bytes(bench, 0));
    if (row_end > EXECUTABLE_END)
        return status_error("the longest row has %u words: more than executable memory holds",
                            bench->row_words);
    if (bench->target_address + buffer_bytes(bench, 1) > SRAM_END)
        return status_error("sources, targets and rows do not fit into a tile's memory");
    return STATUS_OK;
}

static uint32_t address_of(const void *context, uint32_t tile, uint32_t buffer)
{
    const ExchangeBench *bench = context;
    (void)tile;
    return buffer == 0 ? bench->source_address : bench->target_address;
}

static Status schedule_phase(ExchangeBench *bench)
{
    ScheduleOptions options = {.pairs = !bench->options->no_pairs};
    double begin = seconds_now();
    TRY(exchange_schedule(&bench->arena, &bench->program, &options, bench->pool, &bench->schedule));
    bench->schedule_seconds = seconds_now() - begin;
    TRY(place_buffers(bench));
    const PhaseSchedule *phase = &bench->schedule.phases[0];
    bench->rows = arena_array(&bench->arena, Row, bench->program.tiles);
    TRY(exchange_encode_phase(&bench->arena, &bench->program, 0, phase, address_of, bench,
                              bench->rows));
    return exchange_check_phase(&bench->program, 0, phase, address_of, bench, bench->rows);
}

/* ---- the device ---- */

enum {
    M_TEMPORARY = 0,
    M_ROW_LINK = 10,
    M_ZERO = 15,
    SYNC_ANS = 1,
    SYNC_EXCHANGE = 3,
    SYNC_HOST = 7
};

static Status put_program(ExchangeBench *bench, uint32_t logical)
{
    uint32_t physical = target_physical(logical), words[8], count = 0;
    const Row *row = logical < bench->program.tiles ? &bench->rows[logical] : &(Row){0};
    if (row->count) {
        words[count++] = isa_word(FORM_setzi_mmmn_zi, M_TEMPORARY, 1);
        words[count++] = isa_word(FORM_put_mmmn_zi, M_TEMPORARY,
                                  isa_csr_number("INCOMING_DCOUNT", MODE_SUPERVISOR));
        words[count++] =
            isa_word(FORM_put_mmmn_zi, M_ZERO, isa_csr_number("INCOMING_BASE", MODE_SUPERVISOR));
        words[count++] =
            isa_word(FORM_put_mmmn_zi, M_ZERO, isa_csr_number("OUTGOING_BASE", MODE_SUPERVISOR));
        words[count++] = isa_word(FORM_sync, SYNC_EXCHANGE);
        words[count++] = isa_word(FORM_call_mmmn_zi, M_ROW_LINK, (int32_t)bench->row_address);
        TRY(sim_write(bench->sim, physical, bench->row_address, row->words, 4 * row->count));
    } else {
        words[count++] = isa_word(FORM_sans, 0);
        words[count++] = isa_word(FORM_sync, SYNC_ANS);
    }
    words[count++] = isa_word(FORM_sync, SYNC_HOST);
    TRY(sim_write(bench->sim, physical, LINK_FIRST, words, 4 * count));
    sim_set_entry(bench->sim, physical, LINK_FIRST);
    return STATUS_OK;
}

/* A word that tells its tile and place; never zero, which is what targets hold before. */
static uint32_t source_word(uint32_t tile, uint32_t offset)
{
    uint32_t x = tile * 0x9e3779b1u ^ (offset / 4) * 0x85ebca77u;
    return (x ^ x >> 15) * 0xc2b2ae3du | 1;
}

static void fill_sources(ExchangeBench *bench)
{
    const Buffer *source = &bench->program.buffers.items[0];
    for (uint32_t t = 0; t < bench->program.tiles; t++) {
        uint8_t *memory = sim_memory(bench->sim, target_physical(t));
        for (uint32_t at = 0; at < source->bytes[t]; at += 4)
            store_u32(memory + (bench->source_address - SRAM_BASE) + at, source_word(t, at));
    }
}

static Status compare_words(ExchangeBench *bench)
{
    const ExchangePhase *phase = &bench->program.phases.items[0];
    for (uint32_t m = 0; m < phase->transfer_count; m++) {
        const Transfer *transfer = &phase->transfers[m];
        for (uint32_t r = 0; r < transfer->receiver_count; r++) {
            const Endpoint *end = &phase->receivers[transfer->first_receiver + r];
            const uint8_t *at = sim_memory(bench->sim, target_physical(end->tile)) +
                                (bench->target_address - SRAM_BASE) + end->at.offset;
            for (uint32_t i = 0; i < transfer->words; i++) {
                uint32_t wanted =
                    source_word(transfer->source.tile, transfer->source.at.offset + 4 * i);
                if (load_u32(at + 4 * i) != wanted)
                    return status_error("word %u of %u from tile %u is wrong on tile %u", i,
                                        transfer->words, transfer->source.tile, end->tile);
            }
            bench->words += transfer->words;
        }
    }
    return STATUS_OK;
}

static Status run_device(ExchangeBench *bench)
{
    SimOptions options = {.tiles = TILES, .threads = (unsigned)bench->options->common.threads};
    TRY(sim_create(&options, &bench->sim));
    for (uint32_t t = 0; t < TILES; t++)
        TRY(put_program(bench, t));
    fill_sources(bench);
    SimStop stop = sim_run(bench->sim);
    const SimFault *fault = sim_fault(bench->sim);
    if (stop != SIM_RENDEZVOUS)
        return status_error("the device stopped: tile %u, cycle %llu: %s", fault->tile,
                            (unsigned long long)fault->cycle, fault->message);
    uint32_t count;
    const SimPhase *phases = sim_phases(bench->sim, &count);
    if (count != 1)
        return status_error("the device passed %u exchange phases", count);
    bench->boundary = phases[0].event0;
    TRY(compare_words(bench));
    if (phases[0].words_received != bench->words)
        return status_error("%llu words arrived, %llu were asked for",
                            (unsigned long long)phases[0].words_received,
                            (unsigned long long)bench->words);
    if (phases[0].ended - phases[0].event0 != bench->schedule.phases[0].horizon)
        return status_error("the phase took %llu events, not %u",
                            (unsigned long long)(phases[0].ended - phases[0].event0),
                            bench->schedule.phases[0].horizon);
    bench->delivered = true;
    return STATUS_OK;
}

static void print_summary(const ExchangeBench *bench)
{
    const ExchangeOptions *o = bench->options;
    const PhaseSchedule *phase = &bench->schedule.phases[0];
    uint32_t paired = 0;
    for (uint32_t m = 0; m < phase->phase->transfer_count; m++)
        paired += phase->slots[m].paired;
    printf("messages=%u paired=%u constraints=%zu boundaryCycles=%llu\n",
           phase->phase->transfer_count, paired, bench->schedule.constraints.count,
           (unsigned long long)bench->boundary);
    printf("pattern=%s tiles=%u transfers=%u words=%llu bound=%u itemBound=%u horizon=%u "
           "rowWordsMax=%u "
           "scheduleMilliseconds=%.1f delivered=%s\n",
           o->transfers ? "file" : o->pattern, bench->program.tiles,
           bench->program.phases.items[0].transfer_count, (unsigned long long)bench->words,
           phase->words_bound, phase->bound, phase->horizon, bench->row_words,
           1e3 * bench->schedule_seconds, bench->delivered ? "OK" : "WRONG");
}

static Status run_bench(ExchangeBench *bench)
{
    TRY(make_phase(bench));
    TRY(schedule_phase(bench));
    Status status = run_device(bench);
    print_summary(bench);
    return status;
}

int bench_exchange(int argc, char **argv)
{
    ExchangeOptions o = {
        .tiles = TILES, .words = 64, .group = 16, .shift = 37, .fanout = 1, .seed = 1};
    const Option table[] = {
        {"--pattern", OPTION_TEXT, &o.pattern, "NAME",
         "gather, scatter, shift, all-to-all, all-gather, random, mixed, multicast, paired, pieces",
         0, 0},
        {"--transfers", OPTION_TEXT, &o.transfers, "FILE",
         "instead: lines of source, words, receivers (tabs; receivers separated by commas)", 0, 0},
        {"--tiles", OPTION_NUMBER, &o.tiles, "N", "logical tiles, 2..1472 (default 1472)", 2,
         TILES},
        {"--words", OPTION_NUMBER, &o.words, "N", "words of a message (default 64)", 1, 40960},
        {"--group", OPTION_NUMBER, &o.group, "N", "tiles of a group (default 16)", 1, TILES},
        {"--shift", OPTION_NUMBER, &o.shift, "N", "distance of shift (default 37)", 0, TILES},
        {"--fanout", OPTION_NUMBER, &o.fanout, "N", "receivers, at most (default 1)", 1, TILES},
        {"--messages", OPTION_NUMBER, &o.messages, "N", "random messages (default 4 a tile)", 0,
         1 << 20},
        {"--seed", OPTION_NUMBER, &o.seed, "N", "of the random patterns (default 1)", 0,
         UINT32_MAX},
        {"--no-pairs", OPTION_FLAG, &o.no_pairs, "", "no 64-bit exchange", 0, 0},
        COMMON_OPTIONS(o.common),
        {0}};
    const Command command = {"ipu-stack bench exchange --pattern NAME [options]",
                             "Schedules one exchange phase and executes it on the simulator.",
                             table, 0, 0};
    int parsed = command_parse(&command, argc, argv, &(TextList){0});
    if (parsed >= 0)
        return parsed;
    if (!common_apply("bench exchange", &o.common))
        return 2;
    if (!o.pattern == !o.transfers) {
        fprintf(stderr, "ipu-stack bench exchange: give --pattern or --transfers\n");
        return 2;
    }
    ExchangeBench bench = {.options = &o, .pool = pool_create((unsigned)o.common.threads)};
    Status status = run_bench(&bench);
    sim_destroy(bench.sim);
    schedule_free(&bench.schedule);
    array_free(&bench.program.buffers);
    array_free(&bench.program.steps);
    array_free(&bench.program.phases);
    pool_destroy(bench.pool);
    arena_free(&bench.arena);
    return status_ok(status) ? 0 : command_fail("bench exchange", status);
}
