/* solve.c - greedy placement of one layout.
 *
 * Requests are placed one by one, the hardest first: always-live before short-lived, interleaved
 * before standard, large before small. Each goes to the lowest address of its class where it meets
 * no conflicting request: one whose lifetime meets its own, or one it must keep apart from (then
 * whole elements count). A second order is tried when the first fails; then a third, in which
 * interleaved requests go to the highest addresses, so that a large standard one finds room across
 * the border of the two regions. */
#include "place/layout.h"

#include <stdlib.h>
#include <string.h>

typedef struct Item { /* of this layout */
    uint32_t root, bytes;
} Item;

typedef struct Blocked { /* addresses that the request at hand can not take */
    uint32_t start, end;
} Blocked;

void layout_init(Layout *layout, const Requests *requests, uint32_t tile)
{
    *layout = (Layout){.requests = requests, .tile = tile};
    layout->address = xcalloc(requests->count, sizeof *layout->address);
    layout->fixed = xcalloc(requests->count, sizeof *layout->fixed);
}

void layout_only_same_address(Layout *layout)
{
    layout->only_same_address = true;
}

void layout_fix(Layout *layout, const Layout *shared)
{
    for (uint32_t r = 0; r < layout->requests->count; r++) {
        layout->fixed[r] = shared->address[r] != 0;
        layout->address[r] = shared->address[r];
    }
}

void layout_free(Layout *layout)
{
    free(layout->address);
    free(layout->fixed);
}

static uint32_t bytes_of(const Layout *layout, uint32_t root)
{
    const Request *request = &layout->requests->items[root];
    return layout->tile == LAYOUT_ALL_TILES ? request->max_bytes : request->bytes[layout->tile];
}

static bool bits_meet(const TileBits *a, const TileBits *b)
{
    for (size_t w = 0; w < countof(a->word); w++)
        if (a->word[w] & b->word[w])
            return true;
    return false;
}

static bool lifetimes_meet(const Layout *layout, uint32_t a, uint32_t b)
{
    const Request *x = &layout->requests->items[a], *y = &layout->requests->items[b];
    if (x->last < y->first || y->last < x->first)
        return false;
    return layout->tile != LAYOUT_ALL_TILES || bits_meet(&x->tiles, &y->tiles);
}

static uint32_t round_down_to_element(uint32_t address)
{
    uint32_t size = address < INTERLEAVED_BASE ? ELEMENT_BYTES : INTERLEAVED_ELEMENT_BYTES;
    return address / size * size;
}

static uint32_t round_up_to_element(uint32_t address)
{
    uint32_t size = address < INTERLEAVED_BASE ? ELEMENT_BYTES : INTERLEAVED_ELEMENT_BYTES;
    return (address + size - 1) / size * size;
}

static int compare_blocked(const void *a, const void *b)
{
    const Blocked *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* Marks what already stands in the way of `root`. `apart` lists the roots to keep apart from. */
static size_t collect_blocked(const Layout *layout, uint32_t root, const uint32_t *placed,
                              size_t placed_count, const bool *apart, Blocked *blocked)
{
    size_t count = 0;
    for (size_t i = 0; i < placed_count; i++) {
        uint32_t other = placed[i];
        uint32_t start = layout->address[other], end = start + bytes_of(layout, other);
        if (apart[other])
            blocked[count++] = (Blocked){round_down_to_element(start), round_up_to_element(end)};
        else if (lifetimes_meet(layout, root, other))
            blocked[count++] = (Blocked){start, end};
    }
    qsort(blocked, count, sizeof *blocked, compare_blocked);
    return count;
}

/* The lowest fitting address, or 0. Not apart-rounded: the request's own elements are checked by
 * the rounded spans of the others, which is the same test. */
static uint32_t find_address(const Layout *layout, const Request *request, uint32_t bytes,
                             const Blocked *blocked, size_t count)
{
    for (uint32_t r = 0; r < layout->range_count; r++) {
        AddressRange range = layout->ranges[r];
        if (request->interleaved && range.start < INTERLEAVED_BASE)
            continue;
        uint64_t at = round_up_u32(range.start, request->align);
        for (size_t i = 0; i < count && at + bytes <= range.end; i++)
            if (blocked[i].end > at && blocked[i].start < at + bytes)
                at = round_up_u32(blocked[i].end, request->align);
        if (at + bytes <= range.end)
            return (uint32_t)at;
    }
    return 0;
}

/* The highest fitting address of an interleaved request, or 0. */
static uint32_t find_highest(const Layout *layout, const Request *request, uint32_t bytes,
                             const Blocked *blocked, size_t count)
{
    AddressRange range = layout->ranges[layout->range_count - 1];
    uint32_t mask = ~(request->align - 1), most = range.end - range.start;
    uint32_t at = bytes <= most ? (range.end - bytes) & mask : 0;
    for (size_t i = 0; i < count && at >= range.start; i++)
        if (blocked[i].start < at + bytes && blocked[i].end > at) {
            if (blocked[i].start < bytes)
                return 0;
            at = (blocked[i].start - bytes) & mask;
            i = (size_t)-1; /* blocks lie in the order of their starts and may overlap */
        }
    return at >= range.start ? at : 0;
}

static void mark_apart(const Layout *layout, uint32_t root, bool *apart)
{
    memset(apart, 0, layout->requests->count * sizeof *apart);
    for (size_t i = 0; i < layout->requests->separations.count; i++) {
        const Separation *separation = &layout->requests->separations.items[i];
        if (separation->a != root && separation->b != root)
            continue;
        bool here = layout->tile == LAYOUT_ALL_TILES
                        ? bits_meet(&separation->tiles, &separation->tiles)
                        : (separation->tiles.word[layout->tile / 64] >> (layout->tile % 64) & 1);
        if (here)
            apart[separation->a == root ? separation->b : separation->a] = true;
    }
}

/* Says what was live and which holes there were. */
static Status describe_failure(const Layout *layout, const TileProgram *program, uint32_t root,
                               uint32_t bytes, const Blocked *blocked, size_t count)
{
    const Request *request = &layout->requests->items[root];
    uint64_t holes = 0, largest = 0, room = 0;
    for (uint32_t r = 0; r < layout->range_count; r++) {
        AddressRange range = layout->ranges[r];
        bool last = r + 1 == layout->range_count;
        if (request->interleaved ? range.start < INTERLEAVED_BASE : layout->joined && last)
            continue; /* joined: the last is part of the one before */
        room += range.end - range.start;
        uint64_t at = range.start;
        for (size_t i = 0; i < count; i++) {
            if (blocked[i].end <= at || blocked[i].start >= range.end)
                continue;
            if (blocked[i].start > at) {
                uint64_t hole = blocked[i].start - at;
                largest = hole > largest ? hole : largest;
                holes += hole;
            }
            at = blocked[i].end;
        }
        uint64_t hole = at < range.end ? range.end - at : 0;
        largest = hole > largest ? hole : largest;
        holes += hole;
    }
    uint32_t tile = layout->tile;
    if (tile == LAYOUT_ALL_TILES)
        for (tile = 0; tile + 1 < program->tiles && request->bytes[tile] != request->max_bytes;)
            tile++;
    char lifetime[64];
    if (request->last == LIFETIME_ALWAYS)
        snprintf(lifetime, sizeof lifetime, "the whole program");
    else
        snprintf(lifetime, sizeof lifetime, "steps %u to %u", request->first, request->last);
    return status_error(
        "place: tile %u: no room for %s: %u bytes of %s memory (aligned to %u, live %s); "
        "%llu of %llu bytes are taken then, the largest hole has %llu: at least %llu "
        "bytes are missing",
        tile, program->buffers.items[root].name, bytes,
        request->interleaved ? "interleaved" : "standard", request->align, lifetime,
        (unsigned long long)(room - holes), (unsigned long long)room, (unsigned long long)largest,
        (unsigned long long)(bytes > largest ? bytes - largest : 0));
}

static int by_hardness(const Layout *layout, const Item *a, const Item *b, bool by_size)
{
    const Request *x = &layout->requests->items[a->root], *y = &layout->requests->items[b->root];
    if (x->interleaved != y->interleaved)
        return x->interleaved ? -1 : 1;
    if (!by_size && x->resident != y->resident)
        return x->resident ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return a->root < b->root ? -1 : a->root > b->root;
}

static void sort_items(const Layout *layout, Item *items, size_t count, bool by_size)
{
    for (size_t i = 1; i < count; i++) { /* insertion: some hundred items, stable, no globals */
        Item item = items[i];
        size_t at = i;
        while (at && by_hardness(layout, &item, &items[at - 1], by_size) < 0) {
            items[at] = items[at - 1];
            at--;
        }
        items[at] = item;
    }
}

static Status place_items(Layout *layout, const TileProgram *program, const Item *items,
                          size_t count, uint32_t *placed, size_t placed_count)
{
    bool *apart = xcalloc(layout->requests->count, sizeof *apart);
    Blocked *blocked = xmalloc(array_bytes(layout->requests->count, sizeof *blocked));
    Status status = STATUS_OK;
    for (size_t i = 0; i < count && status_ok(status); i++) {
        uint32_t root = items[i].root;
        mark_apart(layout, root, apart);
        size_t n = collect_blocked(layout, root, placed, placed_count, apart, blocked);
        const Request *request = &layout->requests->items[root];
        layout->address[root] = layout->joined && request->interleaved
                                    ? find_highest(layout, request, items[i].bytes, blocked, n)
                                    : find_address(layout, request, items[i].bytes, blocked, n);
        if (!layout->address[root])
            status = describe_failure(layout, program, root, items[i].bytes, blocked, n);
        placed[placed_count++] = root;
    }
    free(apart);
    free(blocked);
    return status;
}

/* The two regions as one range for standard requests; false when something parts them. */
static bool join_regions(Layout *layout)
{
    AddressRange *last = &layout->ranges[layout->range_count - 1];
    layout->joined = layout->range_count > 1 && last[-1].end == last->start;
    if (layout->joined)
        last[-1].end = last->end;
    return layout->joined;
}

Status layout_solve(Layout *layout, const TileProgram *program)
{
    uint32_t count = layout->requests->count;
    Item *items = xmalloc(array_bytes(count, sizeof *items));
    uint32_t *placed = xmalloc(array_bytes(count, sizeof *placed));
    size_t item_count = 0, fixed_count = 0;
    for (uint32_t r = 0; r < count; r++) {
        if (layout->requests->root[r] != r || !bytes_of(layout, r))
            continue;
        if (layout->fixed[r])
            placed[fixed_count++] = r;
        else if (!layout->only_same_address || layout->requests->items[r].same_address)
            items[item_count++] = (Item){r, bytes_of(layout, r)};
    }
    Status status = STATUS_OK;
    for (int attempt = 0; attempt < 3; attempt++) {
        if (attempt == 2 && !join_regions(layout))
            break;
        status_free(status);
        sort_items(layout, items, item_count, attempt == 1);
        status = place_items(layout, program, items, item_count, placed, fixed_count);
        if (status_ok(status))
            break;
    }
    free(items);
    free(placed);
    return status;
}
