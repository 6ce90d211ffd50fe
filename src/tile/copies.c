/* copies.c - the copies of one phase become transfers between tiles and copies within them.
 *
 * Every destination shard lists its strided runs by source shard. A tile that holds the source
 * shard itself copies locally; for the others one holder sends: the least loaded, and of equals the
 * nearest. Runs with the same source bytes to several tiles are one transfer with several
 * receivers. All runs are whole words (plan/words.c). */
#include "tile/internal.h"

typedef struct Piece { /* a contiguous run of words from one tile to another */
    Endpoint source;
    uint32_t words;
    Endpoint receiver;
    uint32_t order; /* of generation */
} Piece;
typedef ARRAY(Piece) PieceArray;
typedef ARRAY(CopyRun) RunArray;
typedef ARRAY(LocalCopy) LocalArray;

typedef struct Phase {
    Expand *e;
    PieceArray pieces;
    LocalArray locals;
    uint32_t *sent;                   /* words, by tile */
    uint32_t *sent_events, *received; /* events, by tile: tile_expand_loads only */
    const char *operation;
} Phase;

typedef struct OneCopy {
    Phase *phase;
    const TensorType *from, *to;
    MidId source, destination;
    RunArray runs;
    uint32_t *senders, *homes; /* tiles of the shards of both sides (type_tiles) */
    int32_t *holds, *wants;    /* source and destination shard of each tile */
    const char *name;
} OneCopy;

/* ---- runs ---- */

static void collect_run(void *context, const CopyRun *run)
{
    OneCopy *c = context;
    array_push(&c->runs, *run);
}

/* ---- one destination tile ---- */

static uint32_t run_words(const CopyRun *run)
{
    return run->bytes / 4 * run->count[0] * run->count[1] * run->count[2];
}

static BufferRef moved(BufferRef ref, uint32_t offset)
{
    ref.offset += offset;
    return ref;
}

static void keep_local(OneCopy *c, uint32_t tile, const CopyRun *run, BufferRef in, BufferRef out)
{
    for (uint32_t j = 0; j < run->count[2]; j++)
        for (uint32_t i = 0; i < run->count[1]; i++) {
            uint32_t from = run->source_offset + i * (uint32_t)run->source_step[1] +
                            j * (uint32_t)run->source_step[2];
            uint32_t to = run->destination_offset + i * (uint32_t)run->destination_step[1] +
                          j * (uint32_t)run->destination_step[2];
            LocalCopy copy = {.tile = tile, .rows = run->count[0], .row_bytes = run->bytes};
            copy.out = moved(out, to);
            copy.in = moved(in, from);
            copy.out_pitch = run->count[0] > 1 ? (uint32_t)run->destination_step[0] : run->bytes;
            copy.in_pitch = run->count[0] > 1 ? (uint32_t)run->source_step[0] : run->bytes;
            if (copy.out.buffer != copy.in.buffer || copy.out.offset != copy.in.offset ||
                copy.out_pitch != copy.in_pitch)
                array_push(&c->phase->locals, copy);
        }
}

static void send_run(OneCopy *c, uint32_t sender, uint32_t tile, const CopyRun *run, BufferRef in,
                     BufferRef out)
{
    uint32_t n = run->count[0] * run->count[1] * run->count[2];
    for (uint32_t at = 0; at < n; at++) {
        uint32_t index[3] = {at % run->count[0], at / run->count[0] % run->count[1],
                             at / run->count[0] / run->count[1]};
        uint32_t from = run->source_offset, to = run->destination_offset;
        for (uint32_t d = 0; d < 3; d++) {
            from += index[d] * (uint32_t)run->source_step[d];
            to += index[d] * (uint32_t)run->destination_step[d];
        }
        Piece piece = {.words = run->bytes / 4, .order = (uint32_t)c->phase->pieces.count};
        piece.source = (Endpoint){sender, moved(in, from)};
        piece.receiver = (Endpoint){tile, moved(out, to)};
        array_push(&c->phase->pieces, piece);
    }
}

static uint32_t distance(uint32_t a, uint32_t b)
{
    return a > b ? a - b : b - a;
}

/* The tile that sends a source shard to the tiles of a destination shard that have it not. */
static uint32_t choose_sender(const OneCopy *c, uint32_t shard, uint32_t to)
{
    uint32_t best = 0; /* set by the first */
    for (uint32_t r = 0; r < c->from->format.replicas; r++) {
        uint32_t tile = c->senders[shard * c->from->format.replicas + r];
        uint32_t load = c->phase->sent[tile], least = c->phase->sent[best];
        if (r == 0 || load < least || (load == least && distance(tile, to) < distance(best, to)))
            best = tile;
    }
    return best;
}

/* Events of one pair of shards. Where both tiles of a pair take two words at a time, an eighth is
 * saved in the end: the sender's partner and messages to single tiles hold them up. A message that
 * goes to some tiles as words and to others two words at a time is sent in both ways. */
static void load_pair(OneCopy *c, uint32_t source, uint32_t sender, const uint32_t *homes,
                      uint32_t words)
{
    uint32_t replicas = c->to->format.replicas, tiles = c->phase->e->mid->tiles;
    bool narrow = false;
    for (uint32_t r = 0; r < replicas; r++) {
        uint32_t tile = homes[r], twin = tile ^ 1u;
        if (c->holds[tile] == (int32_t)source)
            continue;
        bool wide = c->phase->e->pairs && twin < tiles && c->wants[twin] == c->wants[tile] &&
                    c->holds[twin] != (int32_t)source;
        narrow |= !wide;
        c->phase->received[tile] += wide ? words / 8 * 7 : words;
    }
    c->phase->sent_events[sender] += narrow ? words : words / 8 * 7;
}

/* All runs of one (source shard, destination shard) pair: to every tile of the destination. */
static void expand_pair(OneCopy *c, const CopyRun *runs, size_t count)
{
    uint32_t source = runs[0].source_shard, shard = runs[0].destination_shard, words = 0;
    const uint32_t *homes = c->homes + shard * c->to->format.replicas;
    uint32_t sender = choose_sender(c, source, homes[0]);
    BufferRef in = expand_ref(c->phase->e, c->source, source);
    BufferRef out = expand_ref(c->phase->e, c->destination, shard);
    bool remote = false;
    uint32_t slot;
    if (!mid_slot(mid_value(c->phase->e->mid, c->destination), shard, &slot))
        return;
    for (uint32_t r = 0; r < c->to->format.replicas; r++) {
        uint32_t tile = homes[r];
        bool here = c->holds[tile] == (int32_t)source;
        remote |= !here;
        for (size_t i = 0; i < count; i++) {
            if (here)
                keep_local(c, tile, &runs[i], in, out);
            else if (!c->phase->e->loads)
                send_run(c, sender, tile, &runs[i], in, out);
        }
    }
    for (size_t i = 0; i < count; i++)
        words += run_words(&runs[i]);
    if (remote)
        c->phase->sent[sender] += words;
    if (remote && c->phase->e->loads)
        load_pair(c, source, sender, homes, words);
}

static Status check_tiles(const OneCopy *c)
{
    uint32_t tiles = c->phase->e->mid->tiles;
    if (c->from->format.first_tile + c->from->format.tile_count > tiles ||
        c->to->format.first_tile + c->to->format.tile_count > tiles)
        return status_error("copy of %s needs more than %u tiles", c->name, tiles);
    return STATUS_OK;
}

static void make_tables(OneCopy *c)
{
    uint32_t tiles = c->phase->e->mid->tiles;
    c->senders = xcalloc(c->from->format.tile_count, sizeof *c->senders);
    c->homes = xcalloc(c->to->format.tile_count, sizeof *c->homes);
    c->holds = xcalloc(2 * (size_t)tiles, sizeof *c->holds);
    c->wants = c->holds + tiles;
    type_tiles(c->from, c->senders);
    type_tiles(c->to, c->homes);
    for (uint32_t t = 0; t < 2 * tiles; t++)
        c->holds[t] = -1;
    for (uint32_t i = 0; i < c->from->format.tile_count; i++)
        c->holds[c->senders[i]] = (int32_t)(i / c->from->format.replicas);
    for (uint32_t i = 0; i < c->to->format.tile_count; i++)
        c->wants[c->homes[i]] = (int32_t)(i / c->to->format.replicas);
}

static Status expand_copy(Phase *phase, const MidOp *op)
{
    const Mid *mid = phase->e->mid;
    OneCopy c = {.phase = phase, .source = op->operands[0], .destination = op->results[0]};
    c.from = &mid_value(mid, c.source)->type;
    c.to = &mid_value(mid, c.destination)->type;
    c.name = mid_value(mid, c.source)->name;
    TRY(check_tiles(&c));
    make_tables(&c);
    Status status = status_context(plan_copy_words(c.from, c.to, &op->mapping, collect_run, &c),
                                   "copy of %s", c.name);
    for (size_t i = 0, n; status_ok(status) && i < c.runs.count; i += n) {
        const CopyRun *runs = &c.runs.items[i];
        for (n = 1; i + n < c.runs.count; n++)
            if (runs[n].source_shard != runs[0].source_shard ||
                runs[n].destination_shard != runs[0].destination_shard)
                break;
        expand_pair(&c, runs, n);
    }
    array_free(&c.runs);
    free(c.senders);
    free(c.homes);
    free(c.holds);
    return status;
}

/* ---- the phase ---- */

#define COMPARE(a, b)                                                                              \
    if ((a) != (b))                                                                                \
    return (a) < (b) ? -1 : 1

/* By source tile and bytes, then receiver. */
static int by_source(const void *left, const void *right)
{
    const Piece *a = left, *b = right;
    COMPARE(a->source.tile, b->source.tile);
    COMPARE(a->source.at.buffer, b->source.at.buffer);
    COMPARE(a->source.at.offset, b->source.at.offset);
    COMPARE(a->words, b->words);
    COMPARE(a->receiver.tile, b->receiver.tile);
    COMPARE(a->receiver.at.buffer, b->receiver.at.buffer);
    COMPARE(a->receiver.at.offset, b->receiver.at.offset);
    COMPARE(a->order, b->order);
    return 0;
}

/* By the two tiles, then in order of source bytes: neighbours that continue each other meet. */
static int by_link(const void *left, const void *right)
{
    const Piece *a = left, *b = right;
    COMPARE(a->source.tile, b->source.tile);
    COMPARE(a->receiver.tile, b->receiver.tile);
    COMPARE(a->source.at.buffer, b->source.at.buffer);
    COMPARE(a->receiver.at.buffer, b->receiver.at.buffer);
    COMPARE(a->source.at.offset, b->source.at.offset);
    COMPARE(a->receiver.at.offset, b->receiver.at.offset);
    COMPARE(a->order, b->order);
    return 0;
}

static bool continues(const Piece *a, const Piece *b)
{
    uint32_t bytes = a->words * 4;
    return a->source.tile == b->source.tile && a->receiver.tile == b->receiver.tile &&
           a->source.at.buffer == b->source.at.buffer &&
           a->receiver.at.buffer == b->receiver.at.buffer &&
           a->source.at.offset + bytes == b->source.at.offset &&
           a->receiver.at.offset + bytes == b->receiver.at.offset;
}

static void merge_neighbours(PieceArray *pieces)
{
    size_t kept = 0;
    if (pieces->count == 0)
        return;
    qsort(pieces->items, pieces->count, sizeof *pieces->items, by_link);
    for (size_t i = 1; i < pieces->count; i++) {
        Piece *last = &pieces->items[kept];
        if (continues(last, &pieces->items[i]))
            last->words += pieces->items[i].words;
        else
            pieces->items[++kept] = pieces->items[i];
    }
    pieces->count = kept + 1;
}

static bool same_bytes(const Piece *a, const Piece *b)
{
    return a->source.tile == b->source.tile && a->source.at.buffer == b->source.at.buffer &&
           a->source.at.offset == b->source.at.offset && a->words == b->words;
}

/* Pieces sorted by source: equal bytes to different tiles are one transfer. */
static void make_phase(Phase *phase)
{
    Expand *e = phase->e;
    PieceArray *pieces = &phase->pieces;
    merge_neighbours(pieces);
    if (pieces->count == 0)
        return;
    qsort(pieces->items, pieces->count, sizeof *pieces->items, by_source);
    ExchangePhase out = {.operation = phase->operation, .in_repeat = e->in_repeat};
    out.transfers = arena_array(e->arena, Transfer, pieces->count);
    out.receivers = arena_array(e->arena, Endpoint, pieces->count);
    for (size_t i = 0; i < pieces->count; i++) {
        const Piece *piece = &pieces->items[i];
        bool joins = i && same_bytes(&pieces->items[i - 1], piece) &&
                     pieces->items[i - 1].receiver.tile != piece->receiver.tile;
        if (!joins) {
            Transfer transfer = {.source = piece->source, .words = piece->words};
            transfer.first_receiver = out.receiver_count;
            out.transfers[out.transfer_count++] = transfer;
        }
        out.transfers[out.transfer_count - 1].receiver_count++;
        out.receivers[out.receiver_count++] = piece->receiver;
    }
    expand_step(e, STEP_EXCHANGE, phase->operation, (uint32_t)e->program->phases.count, 1);
    array_push(&e->program->phases, out);
}

static void make_load(Phase *phase)
{
    Expand *e = phase->e;
    ExchangePhase out = {.operation = phase->operation, .in_repeat = e->in_repeat};
    uint32_t most = 0;
    out.events = arena_array(e->arena, uint32_t, e->mid->tiles);
    for (uint32_t t = 0; t < e->mid->tiles; t++) {
        out.events[t] = max_u32(phase->sent_events[t], phase->received[t]);
        most = max_u32(most, out.events[t]);
    }
    if (!most)
        return;
    expand_step(e, STEP_EXCHANGE, phase->operation, (uint32_t)e->program->phases.count, 1);
    array_push(&e->program->phases, out);
}

static int by_tile(const void *left, const void *right)
{
    const LocalCopy *a = left, *b = right;
    COMPARE(a->tile, b->tile);
    COMPARE(a->out.buffer, b->out.buffer);
    COMPARE(a->out.offset, b->out.offset);
    return 0;
}

static bool local_continues(const LocalCopy *a, const LocalCopy *b)
{
    return a->tile == b->tile && a->rows == 1 && b->rows == 1 && a->out.buffer == b->out.buffer &&
           a->in.buffer == b->in.buffer && a->out.offset + a->row_bytes == b->out.offset &&
           a->in.offset + a->row_bytes == b->in.offset;
}

/* Local copies run behind the exchange: a tile that still computes holds up only itself. */
static void make_locals(Phase *phase)
{
    LocalArray *locals = &phase->locals;
    TileProgram *p = phase->e->program;
    uint32_t first = (uint32_t)p->copies.count;
    if (locals->count == 0)
        return;
    qsort(locals->items, locals->count, sizeof *locals->items, by_tile);
    for (size_t i = 0; i < locals->count; i++) {
        LocalCopy *last = p->copies.count > first ? &p->copies.items[p->copies.count - 1] : NULL;
        const LocalCopy *copy = &locals->items[i];
        if (last && local_continues(last, copy)) {
            last->row_bytes += copy->row_bytes;
            last->out_pitch = last->in_pitch = last->row_bytes;
        } else {
            array_push(&p->copies, *copy);
            p->copies.items[p->copies.count - 1].apart =
                buffer_root(p, copy->out.buffer) != buffer_root(p, copy->in.buffer);
        }
    }
    expand_step(phase->e, STEP_COPY, phase->operation, first, (uint32_t)p->copies.count - first);
}

Status expand_copies(Expand *e, const MidOp *const *copies, uint32_t count)
{
    Phase phase = {.e = e, .operation = copies[0]->operation};
    phase.sent = xcalloc(3 * (size_t)e->mid->tiles, sizeof *phase.sent);
    phase.sent_events = phase.sent + e->mid->tiles;
    phase.received = phase.sent_events + e->mid->tiles;
    Status status = STATUS_OK;
    for (uint32_t i = 0; i < count && status_ok(status); i++)
        status = expand_copy(&phase, copies[i]);
    if (status_ok(status)) {
        if (e->loads)
            make_load(&phase);
        else
            make_phase(&phase);
        make_locals(&phase);
    }
    free(phase.sent);
    array_free(&phase.pieces);
    array_free(&phase.locals);
    return status;
}
