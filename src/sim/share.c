/* share.c - tiles that do the same are executed once.
 *
 * A program for 64 tiles keeps the other 1,408 at its barriers: they all run the same few
 * supervisor instructions. The one idea: tiles whose supervisors are in one state at a barrier and
 * whose workers rest form a group; the lowest one, the leader, executes, the others only follow.
 * That can not be told from executing them all, because the leader touches nothing that could
 * differ: every word it fetches or loads is first compared on all tiles of the group and then
 * remembered as common, words it stores are common by themselves, and whatever reaches further
 * (launches, weights, sends, controls, TILE_ID) ends the group before it happens. A tile that the
 * caller looks at leaves its group first: it takes the leader's supervisor and every common word.
 */
#include "sim/machine.h"

#include <stdlib.h>
#include <string.h>

enum {
    LEAST_TILES = 4,                 /* smaller groups are not worth it */
    FEW_LAUNCHES = 2 * TILE_WORKERS, /* since the last look: tiles with more are at work */
    LARGE_BLOCK = 1024,              /* bytes compared at once */
    SMALL_BLOCK = 64,
    SHARED_BYTES = offsetof(Tile, number)
};

/* --- state of a supervisor */

static void copy_supervisor(Tile *to, const Tile *from)
{
    Context *c = &to->contexts[0], own = *c;
    memcpy(to, from, SHARED_BYTES);
    *c = from->contexts[0];
    c->memory = own.memory;
    c->defined = c->written = NULL;
    c->tile = to;
    c->bundles = own.bundles;
    to->fabric->mux = from->fabric->mux;
    to->fabric->mux_pair = from->fabric->mux_pair;
    to->fabric->format = from->fabric->format;
    to->fabric->incoming_base = from->fabric->incoming_base;
    to->fabric->pointer = from->fabric->pointer;
}

/* Values that can not matter any more become equal. */
static void forget_the_past(Tile *tile)
{
    Context *c = &tile->contexts[0];
    for (size_t i = 0; i < countof(tile->ready); i++)
        if (tile->ready[i] <= c->next)
            tile->ready[i] = 0;
    int64_t joined = (int64_t)c->next - TIMING_LOCAL_SYNC;
    if (tile->last_exit < joined)
        tile->last_exit = joined;
}

/* The state that must be the same, as bytes: the shared part of the tile, registers, and the code
 * that comes next, which tells programs apart that have nothing else in common. */
typedef struct Likeness {
    uint8_t shared[SHARED_BYTES];
    uint32_t m[18], pc, next_pc, control[5];
    uint64_t next;
    uint8_t code[SMALL_BLOCK];
} Likeness;

static void describe(const Tile *tile, Likeness *out)
{
    const Context *c = &tile->contexts[0];
    memset(out, 0, sizeof *out);
    memcpy(out->shared, tile, SHARED_BYTES);
    memcpy(out->m, c->m, sizeof out->m);
    out->pc = c->pc;
    out->next_pc = c->next_pc;
    out->next = c->next;
    out->control[0] = tile->fabric->incoming_base;
    out->control[1] = tile->fabric->pointer;
    out->control[2] = tile->fabric->mux;
    out->control[4] = tile->fabric->mux_pair;
    out->control[3] = (uint32_t)c->exception | (uint32_t)c->status << 8 | (uint32_t)c->taken << 16;
    uint32_t offset = c->pc - SRAM_BASE;
    if (offset <= CODE_BYTES - SMALL_BLOCK)
        memcpy(out->code, tile->memory + offset, SMALL_BLOCK);
}

static bool may_share(const Tile *tile)
{
    return tile->state == TILE_RUNNING && !tile->group && !tile->recorder && tile->active == 0 &&
           tile->local_wait == NEVER && tile->launches - tile->launches_before <= FEW_LAUNCHES &&
           tile->fabric->mux >= TILES && tile->fabric->mux_pair >= TILES &&
           tile->fabric->format == 0;
}

/* --- forming groups */

typedef struct Candidate {
    uint64_t hash;
    uint32_t tile;
} Candidate;

static int compare_candidates(const void *a, const void *b)
{
    const Candidate *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return x->tile < y->tile ? -1 : x->tile > y->tile;
}

static void follow(Sim *sim, Group *group, uint32_t number)
{
    FabricTile *fabric = &sim->fabric[number];
    fabric->sends.count = fabric->controls.count = 0;
    fabric->active = false;
    fabric->row_first = UINT32_MAX;
    fabric->row_last = 0;
    fabric->words_sent = fabric->words_received = 0;
    sim->tiles[number].state = TILE_FOLLOWING;
    sim->tiles[number].group = group;
    array_push(&group->followers, number);
}

static void form_group(Sim *sim, const Candidate *candidates, size_t count)
{
    Tile *leader = &sim->tiles[candidates[0].tile];
    Likeness wanted, found;
    describe(leader, &wanted);
    Group *group = xcalloc(1, sizeof *group);
    group->leader = leader->number;
    for (size_t i = 1; i < count; i++) {
        describe(&sim->tiles[candidates[i].tile], &found);
        /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): describe() clears the padding */
        if (memcmp(&wanted, &found, sizeof wanted) == 0)
            follow(sim, group, candidates[i].tile);
    }
    group->common = xcalloc(DEFINED_BYTES, 1);
    group->stored = xcalloc(DEFINED_BYTES, 1);
    group->bundles = leader->contexts[0].bundles;
    leader->group = group;
    leader->contexts[0].defined = group->common;
    leader->contexts[0].written = group->stored;
}

static void list_live(Sim *sim)
{
    sim->live_count = 0;
    for (uint32_t i = 0; i < sim->count; i++)
        if (sim->tiles[i].state != TILE_FOLLOWING)
            sim->live[sim->live_count++] = i;
}

void share_look(Sim *sim)
{
    if (!sim->sharing || sim->verify || sim->hooks.trace || sim->hooks.break_pc)
        return;
    Candidate *candidates = xmalloc(sim->live_count * sizeof *candidates);
    size_t count = 0;
    for (uint32_t i = 0; i < sim->live_count; i++) {
        Tile *tile = &sim->tiles[sim->live[i]];
        if (may_share(tile)) {
            Likeness likeness;
            forget_the_past(tile);
            describe(tile, &likeness);
            candidates[count++] =
                (Candidate){hash_bytes(&likeness, sizeof likeness, 0), tile->number};
        }
        tile->launches_before = tile->launches;
    }
    qsort(candidates, count, sizeof *candidates, compare_candidates);
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && candidates[end].hash == candidates[first].hash;)
            end++;
        if (end - first >= LEAST_TILES)
            form_group(sim, &candidates[first], end - first);
    }
    free(candidates);
    list_live(sim);
}

/* --- leaving */

/* Offsets of the words that the leader has stored: a follower's memory has the old ones. */
typedef ARRAY(uint32_t) Offsets;

static Offsets stored_words(const Group *group)
{
    Offsets offsets = {0};
    for (uint32_t i = 0; i < DEFINED_BYTES; i++)
        for (uint32_t bits = group->stored[i]; bits; bits &= bits - 1)
            array_push(&offsets, (8 * i + (uint32_t)__builtin_ctz(bits)) * 4);
    return offsets;
}

uint64_t share_bundles(const Tile *leader)
{
    return leader->contexts[0].bundles - leader->group->bundles;
}

static void separate(Sim *sim, const Tile *leader, uint32_t number, const Offsets *words)
{
    Tile *tile = &sim->tiles[number];
    tile->group = NULL;
    tile->contexts[0].bundles += share_bundles(leader);
    copy_supervisor(tile, leader);
    for (size_t i = 0; i < words->count; i++)
        store_u32(tile->memory + words->items[i], load_u32(leader->memory + words->items[i]));
    tile->fabric->row_start = leader->fabric->row_start;
    tile->fabric->row_end = leader->fabric->row_end;
    tile->fabric->row_first = leader->fabric->row_first;
    tile->fabric->row_last = leader->fabric->row_last;
}

static void free_group(Group *group)
{
    array_free(&group->followers);
    free(group->common);
    free(group->stored);
    free(group);
}

static void end_group(Sim *sim, Tile *leader)
{
    Group *group = leader->group;
    Offsets words = stored_words(group);
    for (size_t i = 0; i < group->followers.count; i++)
        separate(sim, leader, group->followers.items[i], &words);
    leader->group = NULL;
    leader->contexts[0].defined = leader->contexts[0].written = NULL;
    array_free(&words);
    free_group(group);
}

static void remove_follower(Sim *sim, Tile *leader, uint32_t number)
{
    Group *group = leader->group;
    Offsets words = stored_words(group);
    size_t kept = 0;
    for (size_t i = 0; i < group->followers.count; i++)
        if (group->followers.items[i] != number)
            group->followers.items[kept++] = group->followers.items[i];
    group->followers.count = kept;
    separate(sim, leader, number, &words);
    array_free(&words);
    if (!kept)
        end_group(sim, leader);
}

void share_leave(Sim *sim, uint32_t number)
{
    Tile *tile = &sim->tiles[number];
    if (!tile->group)
        return;
    if (tile->state == TILE_FOLLOWING)
        remove_follower(sim, &sim->tiles[tile->group->leader], number);
    else
        end_group(sim, tile);
    list_live(sim);
}

void share_leave_all(Sim *sim)
{
    for (uint32_t i = 0; i < sim->count; i++)
        if (sim->tiles[i].group && sim->tiles[i].state != TILE_FOLLOWING)
            end_group(sim, &sim->tiles[i]);
    list_live(sim);
}

const Tile *share_leader(const Sim *sim, uint32_t number)
{
    const Tile *tile = &sim->tiles[number];
    return tile->state == TILE_FOLLOWING ? &sim->tiles[tile->group->leader] : tile;
}

void share_destroy(Sim *sim)
{
    for (uint32_t i = 0; i < sim->count; i++) {
        Tile *tile = &sim->tiles[i];
        if (!tile->group || tile->state == TILE_FOLLOWING)
            continue;
        free_group(tile->group);
    }
}

/* --- what the leader asks */

/* Whether all tiles of the group hold the same bytes there. */
static bool same_on_all(const Sim *sim, const Tile *leader, uint32_t offset, uint32_t bytes)
{
    const Group *group = leader->group;
    for (size_t i = 0; i < group->followers.count; i++)
        if (memcmp(sim->tiles[group->followers.items[i]].memory + offset, leader->memory + offset,
                   bytes) != 0)
            return false;
    return true;
}

/* Words of the stretch that are not common yet are compared; words that the leader has stored are
 * common by themselves, and the followers' memory does not have them. */
static bool become_common(const Sim *sim, const Tile *leader, uint32_t offset, uint32_t bytes)
{
    Group *group = leader->group;
    for (uint32_t at = offset & ~3u; at < offset + bytes; at += 4) {
        if (words_defined(group->common, at, 4))
            continue;
        if (!words_defined(group->stored, at, 4) && !same_on_all(sim, leader, at, 4))
            return false;
        words_define(group->common, at, 4);
    }
    return true;
}

static bool any_word(const uint8_t *bitmap, uint32_t offset, uint32_t bytes)
{
    for (uint32_t i = offset / 32; i < (offset + bytes) / 32; i++)
        if (bitmap[i])
            return true;
    return false;
}

/* One walk over the tiles for many words: what surrounds the words asked for is soon asked too. */
static bool block_is_common(const Sim *sim, const Tile *leader, uint32_t offset, uint32_t bytes,
                            uint32_t block)
{
    Group *group = leader->group;
    uint32_t start = offset / block * block;
    if (offset + bytes > start + block || start + block > SRAM_BYTES ||
        any_word(group->stored, start, block) || !same_on_all(sim, leader, start, block))
        return false;
    words_define(group->common, start, block);
    return true;
}

void share_answer(Sim *sim, Tile *tile)
{
    uint32_t offset = tile->asked - SRAM_BASE, bytes = tile->asked_bytes;
    bool good = bytes && offset < SRAM_BYTES && bytes <= SRAM_BYTES - offset;
    tile->state = TILE_RUNNING;
    good = good && (block_is_common(sim, tile, offset, bytes, LARGE_BLOCK) ||
                    block_is_common(sim, tile, offset, bytes, SMALL_BLOCK) ||
                    become_common(sim, tile, offset, bytes));
    if (good)
        return;
    end_group(sim, tile);
    list_live(sim);
}
