/* patterns.c - synthetic exchange phases.
 *
 * Every transfer reads words of its own (as long as they fit) and writes words of its own, so that
 * a test can tell them all apart. Same pattern and seed, same phase. */
#include "exchange/exchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SOURCE_LIMIT = 160 << 10, TARGET_LIMIT = 400 << 10 }; /* bytes on one tile */

typedef struct Builder {
    Arena *arena;
    uint32_t tiles;
    ARRAY(Transfer) transfers;
    ARRAY(Endpoint) receivers;
    uint32_t *sent, *received; /* bytes used on each tile */
    uint64_t random;
} Builder;

static uint32_t random_below(Builder *builder, uint32_t limit)
{
    builder->random += 0x9e3779b97f4a7c15ull; /* splitmix64 */
    uint64_t z = builder->random;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return (uint32_t)((z ^ z >> 31) >> 32) % limit;
}

static void begin_transfer(Builder *builder, uint32_t source, uint32_t words)
{
    uint32_t offset = builder->sent[source];
    if (offset + 4 * words > SOURCE_LIMIT)
        offset = builder->sent[source] = 0; /* the same words again */
    builder->sent[source] += round_up_u32(4 * words, 8);
    array_push(&builder->transfers,
               (Transfer){.source = {source, {0, offset}},
                          .words = words,
                          .first_receiver = (uint32_t)builder->receivers.count});
}

static void add_receiver(Builder *builder, uint32_t tile)
{
    Transfer *transfer = &builder->transfers.items[builder->transfers.count - 1];
    array_push(&builder->receivers, (Endpoint){tile, {1, builder->received[tile]}});
    builder->received[tile] += round_up_u32(4 * transfer->words, 8);
    transfer->receiver_count++;
}

static void send_one(Builder *builder, uint32_t source, uint32_t words, uint32_t tile)
{
    begin_transfer(builder, source, words);
    add_receiver(builder, tile);
}

/* ---- the patterns ---- */

static void build_groups(Builder *builder, const Pattern *pattern)
{
    bool gather = !strcmp(pattern->name, "gather"), scatter = !strcmp(pattern->name, "scatter");
    bool each = !strcmp(pattern->name, "all-to-all");
    for (uint32_t first = 0; first < builder->tiles; first += pattern->group) {
        uint32_t end = min_u32(first + pattern->group, builder->tiles);
        for (uint32_t a = first; a < end; a++) {
            if ((gather && a == first) || (scatter && a != first) || end - first < 2)
                continue;
            if (!gather && !scatter && !each)
                begin_transfer(builder, a, pattern->words);
            for (uint32_t b = first; b < end; b++) {
                if (b == a || (gather && b != first))
                    continue;
                if (gather || scatter || each)
                    send_one(builder, a, pattern->words, b);
                else
                    add_receiver(builder, b);
            }
        }
    }
}

static void build_shift(Builder *builder, const Pattern *pattern)
{
    for (uint32_t t = 0; t < builder->tiles; t++)
        if (pattern->shift % builder->tiles)
            send_one(builder, t, pattern->words, (t + pattern->shift) % builder->tiles);
}

static void build_random(Builder *builder, const Pattern *pattern)
{
    bool mixed = !strcmp(pattern->name, "mixed");
    uint32_t *seen = xcalloc(builder->tiles, sizeof *seen);
    for (uint32_t m = 0; m < pattern->messages; m++) {
        uint32_t source = random_below(builder, builder->tiles);
        uint32_t words = mixed ? 1 + random_below(builder, pattern->words) : pattern->words;
        uint32_t fanout = 1 + random_below(builder, pattern->fanout);
        begin_transfer(builder, source, words);
        seen[source] = m + 1;
        for (uint32_t i = 0; i < fanout || i == 0; i++) {
            uint32_t tile = random_below(builder, builder->tiles);
            while (i == 0 && tile == source)
                tile = random_below(builder, builder->tiles);
            if (seen[tile] != m + 1)
                add_receiver(builder, tile);
            seen[tile] = m + 1;
        }
    }
    free(seen);
}

static void build_multicast(Builder *builder, const Pattern *pattern)
{
    uint32_t fanout = min_u32(pattern->fanout, builder->tiles - 1);
    for (uint32_t m = 0; m < pattern->messages; m++) {
        uint32_t source = (uint32_t)((uint64_t)m * builder->tiles / pattern->messages);
        begin_transfer(builder, source, pattern->words);
        for (uint32_t i = 1; i <= fanout; i++)
            add_receiver(builder, (source + i) % builder->tiles);
    }
}

static void build_paired(Builder *builder, const Pattern *pattern)
{
    uint32_t group = round_up_u32(pattern->group, 2);
    for (uint32_t first = 0; first + 3 < builder->tiles; first += group) {
        uint32_t end = min_u32(first + group, builder->tiles & ~1u);
        for (uint32_t a = first; a < end && end - first >= 4; a += 2) {
            begin_transfer(builder, a, pattern->words);
            for (uint32_t b = first; b < end; b++)
                if (b / 2 != a / 2)
                    add_receiver(builder, b);
        }
    }
}

/* Every tile's words come in four pieces that lie apart at the receivers: the slabs of four panels
 * of a matrix whose rows are spread over the group. */
static void build_pieces(Builder *builder, const Pattern *pattern)
{
    enum { PIECES = 4 };
    uint32_t group = round_up_u32(pattern->group, 2), words = ceil_div_u32(pattern->words, PIECES);
    for (uint32_t first = 0; first + 3 < builder->tiles; first += group) {
        uint32_t end = min_u32(first + group, builder->tiles & ~1u), pitch = (end - first) * words;
        for (uint32_t a = first; a < end && end - first >= 4; a++) {
            for (uint32_t piece = 0; piece < PIECES; piece++) {
                begin_transfer(builder, a, words);
                for (uint32_t b = first; b < end; b++) {
                    builder->received[b] = 4 * (piece * pitch + (a - first) * words);
                    if (b != a)
                        add_receiver(builder, b);
                    builder->received[b] = 4 * PIECES * pitch;
                }
            }
        }
    }
}

typedef void Build(Builder *builder, const Pattern *pattern);

const char *const exchange_pattern_names[] = {"gather",     "scatter", "shift", "all-to-all",
                                              "all-gather", "random",  "mixed", "multicast",
                                              "paired",     "pieces",  NULL};
static Build *const builds[] = {build_groups, build_groups, build_shift,  build_groups,
                                build_groups, build_random, build_random, build_multicast,
                                build_paired, build_pieces};

/* ---- from transfers to a program ---- */

static void open_builder(Builder *builder, Arena *arena, uint32_t tiles, uint32_t seed)
{
    *builder = (Builder){.arena = arena,
                         .tiles = tiles,
                         .random = seed,
                         .sent = arena_array(arena, uint32_t, tiles),
                         .received = arena_array(arena, uint32_t, tiles)};
}

static Status finish(Builder *builder, TileProgram *out)
{
    Arena *arena = builder->arena;
    *out = (TileProgram){.tiles = builder->tiles};
    for (uint32_t i = 0; i < builder->transfers.count; i++) {
        const Transfer *transfer = &builder->transfers.items[i];
        uint32_t *sent = &builder->sent[transfer->source.tile]; /* wrapped: the most ever used */
        *sent = max_u32(*sent, transfer->source.at.offset + 4 * transfer->words);
        if (*sent > SOURCE_LIMIT)
            return status_error("tile %u would send %u words at once", transfer->source.tile,
                                transfer->words);
    }
    for (uint32_t t = 0; t < builder->tiles; t++)
        if (builder->received[t] > TARGET_LIMIT)
            return status_error("tile %u would receive %u bytes", t, builder->received[t]);
    array_push(&out->buffers, (Buffer){.name = "source",
                                       .align = 8,
                                       .members = 1,
                                       .bytes = builder->sent,
                                       .alias = BUFFER_NONE,
                                       .value = 0xffffffffu});
    array_push(&out->buffers, (Buffer){.name = "target",
                                       .align = 8,
                                       .members = 1,
                                       .bytes = builder->received,
                                       .alias = BUFFER_NONE,
                                       .value = 0xffffffffu});
    ExchangePhase phase = {.operation = "pattern",
                           .transfer_count = (uint32_t)builder->transfers.count,
                           .receiver_count = (uint32_t)builder->receivers.count};
    phase.transfers = arena_copy(arena, builder->transfers.items,
                                 builder->transfers.count * sizeof(Transfer), _Alignof(Transfer));
    phase.receivers = arena_copy(arena, builder->receivers.items,
                                 builder->receivers.count * sizeof(Endpoint), _Alignof(Endpoint));
    array_push(&out->phases, phase);
    array_push(&out->steps, (Step){.kind = STEP_EXCHANGE, .operation = "pattern", .count = 1});
    return STATUS_OK;
}

static void close_builder(Builder *builder)
{
    array_free(&builder->transfers);
    array_free(&builder->receivers);
}

Status exchange_pattern(Arena *arena, const Pattern *pattern, TileProgram *out)
{
    uint32_t kind = 0;
    while (exchange_pattern_names[kind] && strcmp(pattern->name, exchange_pattern_names[kind]))
        kind++;
    if (!exchange_pattern_names[kind])
        return status_error("no pattern is called %s", pattern->name);
    if (pattern->tiles < 2 || pattern->tiles > TILES)
        return status_error("%u tiles", pattern->tiles);
    if (pattern->words == 0 || pattern->words > SOURCE_LIMIT / 4 || pattern->group == 0 ||
        pattern->fanout == 0 || pattern->messages > 1u << 24)
        return status_error("words, group, fanout or messages out of range");
    Builder builder;
    open_builder(&builder, arena, pattern->tiles, pattern->seed);
    builds[kind](&builder, pattern);
    Status status = finish(&builder, out);
    close_builder(&builder);
    return status_context(status, "pattern %s", pattern->name);
}

static Status read_number(const char **at, uint32_t limit, uint32_t *out)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(*at, &end, 10);
    if (end == *at || **at == '-' || errno || value > limit)
        return status_error("a number up to %u is expected at \"%.20s\"", limit, *at);
    *at = end;
    *out = (uint32_t)value;
    return STATUS_OK;
}

static Status read_line(Builder *builder, const char *at, uint32_t *seen)
{
    uint32_t source, words, tile;
    TRY(read_number(&at, builder->tiles - 1, &source));
    if (*at++ != '\t')
        return status_error("a tab is expected after the source");
    TRY(read_number(&at, SOURCE_LIMIT / 4, &words));
    if (*at++ != '\t' || words == 0)
        return status_error("words and a tab are expected");
    begin_transfer(builder, source, words);
    uint32_t stamp = (uint32_t)builder->transfers.count;
    do {
        TRY(read_number(&at, builder->tiles - 1, &tile));
        if (tile == source || seen[tile] == stamp)
            return status_error("tile %u can not be a receiver (again)", tile);
        seen[tile] = stamp;
        add_receiver(builder, tile);
    } while (*at++ == ',');
    at--;
    return *at == 0 || *at == '\n' || *at == '\r' ? STATUS_OK
                                                  : status_error("unexpected text \"%.20s\"", at);
}

Status exchange_pattern_read(Arena *arena, const char *name, const char *text, TileProgram *out)
{
    Builder builder;
    open_builder(&builder, arena, TILES, 0);
    uint32_t *seen = arena_array(arena, uint32_t, TILES);
    Status status = STATUS_OK;
    uint32_t line = 1;
    for (const char *at = text; *at && status_ok(status); line++) {
        if (*at != '#' && *at != '\n' && *at != '\r')
            status = status_context(read_line(&builder, at, seen), "%s:%u", name, line);
        at += strcspn(at, "\n");
        at += *at != 0;
    }
    if (status_ok(status))
        status = status_context(finish(&builder, out), "%s", name);
    close_builder(&builder);
    return status;
}
