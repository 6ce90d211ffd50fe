/* fabric_order.c - tiles that forward within a phase: exact order of time.
 *
 * Almost every phase only moves words that were in place before it, so pieces can be copied in any
 * order. When a tile sends words that it also receives in the phase, what it sends depends on when:
 * then every item of the pieces that touch such a tile is read in its send slot and written in its
 * write slot, in the order of slots, through a buffer that stands for the words under way. */
#include "sim/fabric_internal.h"

#include <stdlib.h>
#include <string.h>

enum { SRAM_WORDS = SRAM_BYTES / 4 };

static void mark_words(uint64_t *bits, uint32_t address, uint32_t words)
{
    uint32_t first = (address - SRAM_BASE) / 4;
    for (uint32_t i = first; i < first + words; i++)
        bits[i / 64] |= 1ull << (i % 64);
}

static bool any_word(const uint64_t *bits, uint32_t address, uint32_t words)
{
    uint32_t first = (address - SRAM_BASE) / 4;
    for (uint32_t i = first; i < first + words; i++)
        if (bits[i / 64] >> (i % 64) & 1)
            return true;
    return false;
}

void fabric_find_forwarding(const FabricRun *run, FabricWork *work)
{
    (void)run;
    work->forwards = false;
    if (!work->shares_element)
        return;
    uint64_t *written = xcalloc(SRAM_WORDS / 64 + 1, sizeof *written);
    for (size_t i = 0; i < work->pieces.count; i++) {
        const FabricPiece *piece = &work->pieces.items[i];
        mark_words(written, piece->to, piece->items * (piece->wide ? 2 : 1));
    }
    for (size_t i = 0; i < work->sends.count && !work->forwards; i++) {
        const FabricSend *send = &work->sends.items[i];
        work->forwards = any_word(written, send->address, send->items * (send->sctl & 4 ? 2 : 1));
    }
    free(written);
}

bool fabric_is_ordered(const FabricRun *run, const FabricWork *work, const FabricPiece *piece)
{
    return work->forwards || run->work[piece->source].forwards;
}

void fabric_copy_defined(FabricTile *to, const FabricTile *from, const FabricPiece *piece)
{
    if (!to->defined || !from->defined)
        return;
    uint32_t words = piece->items * (piece->wide ? 2 : 1);
    uint32_t source = (piece->from - SRAM_BASE) / 4, target = (piece->to - SRAM_BASE) / 4;
    for (uint32_t i = 0; i < words; i++) {
        uint32_t s = source + i, t = target + i;
        uint8_t bit = (uint8_t)(1u << (t % 8));
        if (from->defined[s / 8] >> (s % 8) & 1)
            to->defined[t / 8] |= bit;
        else
            to->defined[t / 8] &= (uint8_t)~bit;
    }
}

/* One end of a piece: the read or the write of its next item. */
typedef struct Cursor {
    const FabricPiece *piece;
    FabricTile *tile;   /* whose memory it reads or writes */
    uint8_t *under_way; /* piece's items, then one byte per item: defined */
    uint64_t slot;
    uint32_t next;
    bool writes;
} Cursor;

typedef ARRAY(Cursor *) CursorHeap;

/* Reads come before writes of the same slot; equal ones in the order of their memory is irrelevant:
 * a word is written by one piece at a time. */
static bool earlier(const Cursor *a, const Cursor *b)
{
    return a->slot != b->slot ? a->slot < b->slot : a->writes < b->writes;
}

static void sift_down(CursorHeap *heap, size_t i)
{
    for (;;) {
        size_t least = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < heap->count; child++)
            if (earlier(heap->items[child], heap->items[least]))
                least = child;
        if (least == i)
            return;
        Cursor *moved = heap->items[i];
        heap->items[i] = heap->items[least];
        heap->items[least] = moved;
        i = least;
    }
}

static void step(const FabricRun *run, Cursor *cursor)
{
    const FabricPiece *piece = cursor->piece;
    uint32_t width = piece->wide ? 8 : 4, i = cursor->next++;
    uint8_t *item = cursor->under_way + (size_t)i * width;
    uint8_t *defined = cursor->under_way + (size_t)piece->items * width + i;
    uint32_t offset = (cursor->writes ? piece->to : piece->from) + i * width - SRAM_BASE;
    uint8_t *bitmap = run->verify ? cursor->tile->defined : NULL;
    uint32_t shift = offset / 4 % 8; /* both words of a wide item stand in one byte */
    uint8_t mask = (uint8_t)((piece->wide ? 3u : 1u) << shift);
    if (cursor->writes) {
        memcpy(cursor->tile->memory + offset, item, width);
        if (bitmap)
            bitmap[offset / 32] = (uint8_t)((bitmap[offset / 32] & ~mask) | *defined << shift);
    } else {
        memcpy(item, cursor->tile->memory + offset, width);
        if (bitmap)
            *defined = (uint8_t)((bitmap[offset / 32] & mask) >> shift);
    }
    cursor->slot++;
}

static void add_cursors(FabricRun *run, FabricWork *work, CursorHeap *heap)
{
    for (size_t i = 0; i < work->pieces.count; i++) {
        const FabricPiece *piece = &work->pieces.items[i];
        if (!fabric_is_ordered(run, work, piece))
            continue;
        uint8_t *under_way = xcalloc(piece->items, (piece->wide ? 8 : 4) + 1);
        Cursor cursor = {.piece = piece,
                         .tile = &run->tiles[piece->source],
                         .under_way = under_way,
                         .slot = piece->read_slot};
        Cursor *reader = xmalloc(sizeof cursor), *writer = xmalloc(sizeof cursor);
        *reader = cursor;
        cursor.tile = &run->tiles[work->tile];
        cursor.slot = piece->write_slot;
        cursor.writes = true;
        *writer = cursor;
        array_push(heap, reader);
        array_push(heap, writer);
    }
}

void fabric_deliver_ordered(FabricRun *run)
{
    CursorHeap heap = {0};
    for (uint32_t i = 0; i < run->count; i++)
        add_cursors(run, &run->work[i], &heap);
    for (size_t i = heap.count; i-- > 0;)
        sift_down(&heap, i);
    while (heap.count) {
        Cursor *cursor = heap.items[0];
        step(run, cursor);
        if (cursor->next == cursor->piece->items) {
            if (cursor->writes)
                free(cursor->under_way);
            free(cursor);
            heap.items[0] = heap.items[--heap.count];
        }
        sift_down(&heap, 0);
    }
    array_free(&heap);
}
