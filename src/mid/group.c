/* group.c - as few exchange phases as possible, and their words spread over them.
 *
 * Every operation gets a level: the number of phases that must come before it. A copy of level n
 * moves in phase n, the kernels of level n run behind it, in their old order. Taking the smallest
 * level possible, chains that do not depend on each other share phases, and the number of phases
 * is the longest chain of copies. A copy that could as well go later (parameters, mostly) then goes
 * to the phase where it makes the busiest tile least busier, and where its sender does not have to
 * move by two strides (see tile.h: that would cut the phase in two). */
#include "mid/internal.h"

typedef struct Levels {
    const Mid *mid;
    uint32_t *written; /* level of the last write, per owner (a stack's slots count as one) */
    uint32_t *read;    /* highest level of a kernel that read it */
    uint32_t *copied;  /* highest level of a copy that read it */
    uint32_t *level;   /* per op: the smallest possible, then the chosen one */
    uint32_t *latest;  /* per op: copies can go this late */
    uint32_t start, end, highest; /* the region */
} Levels;

static uint32_t region_end(const Mid *mid, uint32_t start)
{
    while (start < mid->ops.count && !is_boundary(&mid->ops.items[start]))
        start++;
    return start;
}

/* Writes into memory that held something else before. */
static bool writes_over(const Mid *mid, const MidOp *op, uint32_t result)
{
    MidId storage = mid_value(mid, op->results[result])->storage;
    return storage != MID_NONE && !mid_value(mid, storage)->parts;
}

static uint32_t smallest_level(const Levels *l, const MidOp *op)
{
    const Mid *mid = l->mid;
    bool copy = op->kind == MID_COPY;
    uint32_t level = copy ? 1 : 0;
    for (uint32_t j = 0; j < op->operand_count; j++) {
        MidId root = mid_owner(mid, op->operands[j]);
        level = max_u32(level, l->written[root] + copy);
    }
    for (uint32_t j = 0; j < op->result_count; j++) {
        MidId root = mid_owner(mid, op->results[j]);
        if (!writes_over(mid, op, j))
            continue; /* new memory, or a slot that nobody read before */
        level = max_u32(level, l->written[root] + copy);
        level = max_u32(level, l->read[root] + copy);
        level = max_u32(level, l->copied[root] + copy);
    }
    return level;
}

static void note_level(Levels *l, const MidOp *op, uint32_t level)
{
    for (uint32_t j = 0; j < op->operand_count; j++) {
        uint32_t root = mid_owner(l->mid, op->operands[j]);
        uint32_t *last = op->kind == MID_COPY ? &l->copied[root] : &l->read[root];
        *last = max_u32(*last, level);
    }
    for (uint32_t j = 0; j < op->result_count; j++) {
        uint32_t root = mid_owner(l->mid, op->results[j]);
        l->written[root] = max_u32(l->written[root], level);
    }
}

/* A clear belongs right before the phase that fills its memory. */
static void delay_clears(Levels *l)
{
    const Mid *mid = l->mid;
    for (uint32_t i = l->start; i < l->end; i++) {
        const MidOp *clear = &mid->ops.items[i];
        if (clear->kind != MID_COMPUTE || clear->kernel.family != KERNEL_FILL_ZERO)
            continue;
        for (uint32_t k = i + 1; k < l->end; k++) {
            const MidOp *copy = &mid->ops.items[k];
            if (copy->kind == MID_COPY &&
                mid_root(mid, copy->results[0]) == mid_root(mid, clear->results[0])) {
                l->level[i] = max_u32(l->level[i], l->level[k] ? l->level[k] - 1 : 0);
                break;
            }
        }
    }
}

/* ---- spreading the words ---- */

/* Latest phase of copy i: before every later operation that reads what it brings, or overwrites
 * what it reads or brings. */
static uint32_t latest_level(const Levels *l, uint32_t i)
{
    const Mid *mid = l->mid;
    const MidOp *copy = &mid->ops.items[i];
    MidId from = mid_owner(mid, copy->operands[0]), to = mid_owner(mid, copy->results[0]);
    uint32_t latest = l->highest;
    for (uint32_t k = i + 1; k < l->end; k++) {
        const MidOp *op = &mid->ops.items[k];
        uint32_t before = op->kind == MID_COPY && l->level[k] ? l->level[k] - 1 : l->level[k];
        for (uint32_t j = 0; j < op->operand_count; j++)
            if (mid_owner(mid, op->operands[j]) == to)
                latest = before < latest ? before : latest;
        for (uint32_t j = 0; j < op->result_count; j++) {
            MidId root = mid_owner(mid, op->results[j]);
            if ((root == from || root == to) && writes_over(mid, op, j))
                latest = before < latest ? before : latest;
        }
    }
    return latest;
}

typedef struct TileLoad { /* of one tile in one phase */
    uint32_t sent, received;
    uint32_t stride; /* 1 + that of its sources, 0: sends nothing */
    bool torn;       /* two strides */
} TileLoad;

typedef struct CopyLoad { /* what one copy asks of the tiles */
    const Mid *mid;
    const MidOp *op;
    TileLoad *tiles;
    uint32_t *senders, *homes;
    int32_t *holds;
    bool in_repeat;
} CopyLoad;

static void load_run(void *context, const CopyRun *run)
{
    CopyLoad *c = context;
    const MidValue *source = mid_value(c->mid, c->op->operands[0]);
    uint32_t copies = mid_value(c->mid, c->op->results[0])->type.format.replicas;
    uint32_t replicas = source->type.format.replicas;
    uint32_t words = run->bytes / 4 * run->count[0] * run->count[1] * run->count[2];
    bool remote = false;
    for (uint32_t r = 0; r < copies; r++) {
        uint32_t tile = c->homes[run->destination_shard * copies + r];
        if (c->holds[tile] == (int32_t)run->source_shard)
            continue;
        c->tiles[tile].received += words;
        remote = true;
    }
    if (!remote)
        return;
    TileLoad *sender = &c->tiles[c->senders[run->source_shard * replicas]];
    bool moves =
        c->in_repeat && mid_value(c->mid, mid_root(c->mid, c->op->operands[0]))->members > 1;
    sender->sent += words;
    sender->stride = 1 + (moves ? (uint32_t)type_shard_bytes(&source->type, run->source_shard) : 0);
}

static void measure_copy(const Mid *mid, const MidOp *op, bool in_repeat, TileLoad *tiles)
{
    const TensorType *from = &mid_value(mid, op->operands[0])->type;
    const TensorType *to = &mid_value(mid, op->results[0])->type;
    CopyLoad c = {.mid = mid, .op = op, .tiles = tiles, .in_repeat = in_repeat};
    memset(tiles, 0, mid->tiles * sizeof *tiles);
    c.senders = xcalloc(from->format.tile_count, sizeof *c.senders);
    c.homes = xcalloc(to->format.tile_count, sizeof *c.homes);
    c.holds = xcalloc(mid->tiles, sizeof *c.holds);
    type_tiles(from, c.senders);
    type_tiles(to, c.homes);
    for (uint32_t t = 0; t < mid->tiles; t++)
        c.holds[t] = -1;
    for (uint32_t i = 0; i < from->format.tile_count; i++)
        c.holds[c.senders[i]] = (int32_t)(i / from->format.replicas);
    (void)status_discard(plan_copy_words(from, to, &op->mapping, load_run, &c));
    free(c.senders);
    free(c.homes);
    free(c.holds);
}

/* Words of the busiest tile, were `more` added; a torn sender costs a phase of its own. */
static uint32_t busiest(const TileLoad *phase, const TileLoad *more, uint32_t tiles)
{
    uint32_t words = 0;
    bool torn = false;
    for (uint32_t t = 0; t < tiles; t++) {
        uint32_t sent = phase[t].sent + (more ? more[t].sent : 0);
        uint32_t received = phase[t].received + (more ? more[t].received : 0);
        words = max_u32(words, max_u32(sent, received));
        torn |= phase[t].torn ||
                (more && more[t].stride && phase[t].stride && more[t].stride != phase[t].stride);
    }
    return words + (torn ? target_phase_cost(1, 1) : 0);
}

static void add_load(TileLoad *phase, const TileLoad *more, uint32_t tiles)
{
    for (uint32_t t = 0; t < tiles; t++) {
        phase[t].sent += more[t].sent;
        phase[t].received += more[t].received;
        phase[t].torn |= more[t].stride && phase[t].stride && more[t].stride != phase[t].stride;
        if (more[t].stride)
            phase[t].stride = more[t].stride;
    }
}

/* Copies that must go where they are first, then the others, each where it costs least; of equal
 * phases the latest: its memory is needed the shortest. */
static void spread_copies(Levels *l, bool in_repeat)
{
    const Mid *mid = l->mid;
    uint32_t tiles = mid->tiles;
    TileLoad *phases = xcalloc((size_t)(l->highest + 2) * tiles, sizeof *phases);
    TileLoad *own = phases + (size_t)(l->highest + 1) * tiles;
    for (uint32_t i = l->start; i < l->end; i++)
        if (mid->ops.items[i].kind == MID_COPY)
            l->latest[i] = max_u32(l->level[i], latest_level(l, i));
    for (uint32_t free_ones = 0; free_ones < 2; free_ones++)
        for (uint32_t i = l->start; i < l->end; i++) {
            const MidOp *op = &mid->ops.items[i];
            if (op->kind != MID_COPY || (l->latest[i] > l->level[i]) != (free_ones == 1))
                continue;
            measure_copy(mid, op, in_repeat, own);
            uint32_t best = l->level[i], least = UINT32_MAX;
            for (uint32_t level = l->level[i]; level <= l->latest[i]; level++) {
                const TileLoad *phase = phases + (size_t)level * tiles;
                uint32_t more = busiest(phase, own, tiles) - busiest(phase, NULL, tiles);
                if (more <= least) {
                    least = more;
                    best = level;
                }
            }
            l->level[i] = best;
            add_load(phases + (size_t)best * tiles, own, tiles);
        }
    free(phases);
}

/* ---- the new order ---- */

static uint32_t count_phases(const Mid *mid, uint32_t start, uint32_t end)
{
    uint32_t count = 0;
    for (uint32_t i = start; i < end; i++) {
        bool first = mid->ops.items[i].kind == MID_COPY;
        for (uint32_t k = start; k < i && first; k++)
            first = mid->ops.items[k].kind != MID_COPY ||
                    mid->ops.items[k].phase != mid->ops.items[i].phase;
        count += first;
    }
    return count;
}

static void reorder(const Levels *l, Mid *mid, uint32_t base)
{
    uint32_t at = 0, count = l->end - l->start;
    MidOp *sorted = xcalloc(count + 1, sizeof *sorted);
    for (uint32_t level = 0; level <= l->highest; level++)
        for (uint32_t kernels = 0; kernels < 2; kernels++) /* copies, then kernels */
            for (uint32_t i = l->start; i < l->end; i++) {
                MidOp op = mid->ops.items[i];
                if (l->level[i] != level || (op.kind != MID_COPY) != (kernels == 1))
                    continue;
                if (op.kind == MID_COPY)
                    op.phase = base + level;
                sorted[at++] = op;
            }
    memcpy(mid->ops.items + l->start, sorted, count * sizeof *sorted);
    free(sorted);
}

static void group_region(Levels *l, Mid *mid, uint32_t base, bool in_repeat)
{
    memset(l->written, 0, mid->values.count * sizeof *l->written);
    memset(l->read, 0, mid->values.count * sizeof *l->read);
    memset(l->copied, 0, mid->values.count * sizeof *l->copied);
    l->highest = 0;
    for (uint32_t i = l->start; i < l->end; i++) {
        l->level[i] = smallest_level(l, &mid->ops.items[i]);
        note_level(l, &mid->ops.items[i], l->level[i]);
        l->highest = max_u32(l->highest, l->level[i]);
    }
    spread_copies(l, in_repeat);
    delay_clears(l);
    reorder(l, mid, base);
}

uint32_t mid_group_exchanges(Mid *mid)
{
    uint32_t values = (uint32_t)mid->values.count, ops = (uint32_t)mid->ops.count;
    uint32_t saved = 0, base = 0;
    bool in_repeat = false;
    Levels l = {.mid = mid};
    l.written = xcalloc(3 * values + 2 * ops + 1, sizeof *l.written);
    l.read = l.written + values;
    l.copied = l.read + values;
    l.level = l.copied + values;
    l.latest = l.level + ops;
    for (uint32_t start = 0; start < ops;) {
        l.start = start;
        l.end = region_end(mid, start);
        uint32_t before = count_phases(mid, l.start, l.end);
        group_region(&l, mid, base, in_repeat);
        saved += before - count_phases(mid, l.start, l.end);
        base += l.end - start + 1; /* phase numbers differ between regions */
        start = l.end + 1;
        if (l.end < ops)
            in_repeat = mid->ops.items[l.end].kind == MID_REPEAT;
    }
    free(l.written);
    return saved;
}
