/* host.c - the host's side of a shard: its padding, packing and unpacking. */
#include "tensor/algebra.h"

#include <string.h>

/* ---- padding ---- */

typedef struct PaddingBuilder {
    ByteRunArray *runs;
    uint64_t element;
} PaddingBuilder;

static void push_byte_runs(PaddingBuilder *builder, const Strided *strided, uint32_t dimensions,
                           uint64_t offset)
{
    if (dimensions == 0) {
        array_push(builder->runs, (ByteRun){offset, strided->bytes});
        return;
    }
    uint32_t d = dimensions - 1;
    for (uint32_t i = 0; i < strided->dimensions[d].count; i++)
        push_byte_runs(builder, strided, d,
                       offset + (uint64_t)strided->dimensions[d].step[DESTINATION] * i);
}

static void build_padding(void *context, const Piece *piece)
{
    PaddingBuilder *builder = context;
    Strided strided;
    piece_strided(piece, builder->element, &strided);
    push_byte_runs(builder, &strided, strided.dimension_count, strided.offset[DESTINATION]);
}

static int compare_byte_runs(const void *left, const void *right)
{
    const ByteRun *a = left, *b = right;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

/* The padding as disjoint boxes: before axis k logical, on axis k beyond the end, after it all. One
 * side is enough, so both sides of the walk are the shard itself. */
static void block_padding(const TensorType *type, uint32_t block, ByteRunArray *out)
{
    AxisPiece pieces[MAX_RANK];
    uint32_t axes = block_pieces(type, block, pieces);
    if (type_is_linear(type) || block_bytes(type, block) == 0)
        return;
    Algebra algebra = {.atom_count = axes};
    PaddingBuilder builder = {out, precision_bytes(type->format.precision)};
    Walk walk = {.sink = build_padding, .context = &builder};
    for (uint32_t s = 0; s < SIDES; s++) {
        algebra.sides[s] = (Side){.type = type, .axis_count = axes};
        for (uint32_t a = 0; a < axes; a++) {
            algebra.sides[s].axes[a].base = pieces[a].start;
            algebra.atoms[a].axis[s] = (int8_t)a;
            algebra.atoms[a].weight[s] = 1;
        }
        add_stages(&walk, s, &algebra.sides[s], pieces);
    }
    const AxisPiece *const both[SIDES] = {pieces, pieces};
    for (uint32_t k = 0; k < axes; k++) {
        AtomBox box = {0};
        bool empty = false;
        for (uint32_t a = 0; a < axes; a++) {
            uint32_t logical = pieces[a].logical_end - pieces[a].start;
            box.low[a] = a == k ? logical : 0;
            box.high[a] = a < k ? logical : pieces[a].physical_end - pieces[a].start;
            empty |= box.low[a] >= box.high[a];
        }
        if (!empty)
            resolve_box(&walk, &algebra, &box, both);
    }
    if (out->count)
        qsort(out->items, out->count, sizeof *out->items, compare_byte_runs);
    size_t kept = 0;
    for (size_t i = 0; i < out->count; i++) {
        ByteRun *last = kept ? &out->items[kept - 1] : NULL;
        if (last && last->offset + last->bytes == out->items[i].offset)
            last->bytes += out->items[i].bytes;
        else
            out->items[kept++] = out->items[i];
    }
    out->count = kept;
}

void type_padding_runs(const TensorType *type, uint32_t shard, ByteRunArray *out)
{
    out->count = 0;
    block_padding(type, shard / format_shares(&type->format), out);
    if (type->format.shares < 2)
        return;
    ByteSpan span = share_span(type, shard);
    size_t kept = 0;
    for (size_t i = 0; i < out->count; i++) {
        uint64_t start = out->items[i].offset, end = start + out->items[i].bytes;
        start = start > span.start ? start : span.start;
        end = end < span.end ? end : span.end;
        if (start < end)
            out->items[kept++] = (ByteRun){start - span.start, end - start};
    }
    out->count = kept;
}

/* ---- the host's side: a copy from or to a row-major tensor on one tile ---- */

typedef struct HostCopy {
    uint64_t element;
    const uint8_t *from; /* pack: logical to shard */
    uint8_t *to;
    uint32_t from_side;
    ByteSpan span; /* of its block, that the shard holds */
    bool whole;    /* all of it */
} HostCopy;

/* Of bytes that stand in the block, those that the shard holds. */
static void move_shared(const HostCopy *copy, uint64_t bytes, uint64_t from, uint64_t to)
{
    bool packs = copy->from_side == SOURCE; /* the shard is the destination of the walk */
    uint64_t at = packs ? to : from, end = at + bytes;
    uint64_t first = at > copy->span.start ? at : copy->span.start;
    uint64_t last = end < copy->span.end ? end : copy->span.end;
    if (first >= last)
        return;
    from += first - at - (packs ? 0 : copy->span.start);
    to += first - at - (packs ? copy->span.start : 0);
    memcpy(copy->to + to, copy->from + from, last - first);
}

static void move_bytes(const HostCopy *copy, const Strided *strided, uint32_t dimensions,
                       uint64_t from, uint64_t to)
{
    if (dimensions == 0) {
        move_shared(copy, strided->bytes, from, to);
        return;
    }
    uint32_t d = dimensions - 1, f = copy->from_side;
    int64_t step_from = strided->dimensions[d].step[f], step_to = strided->dimensions[d].step[!f];
    uint32_t count = strided->dimensions[d].count;
    if (d == 0 && strided->bytes == 2 &&
        copy->whole) { /* transposing orders: the common slow case */
        for (uint32_t i = 0; i < count; i++, from += (uint64_t)step_from, to += (uint64_t)step_to)
            memcpy(copy->to + to, copy->from + from, 2);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        move_bytes(copy, strided, d, from + (uint64_t)step_from * i, to + (uint64_t)step_to * i);
}

static void move_piece(void *context, const Piece *piece)
{
    const HostCopy *copy = context;
    Strided strided;
    piece_strided(piece, copy->element, &strided);
    move_bytes(copy, &strided, strided.dimension_count, strided.offset[copy->from_side],
               strided.offset[!copy->from_side]);
}

static void host_copy(const TensorType *type, uint32_t shard, HostCopy *copy)
{
    TensorType host = {type->shape, format_on_one_tile(type->format.precision, 0)};
    Mapping mapping = mapping_identity(&type->shape);
    Algebra algebra = {0};
    copy->span = share_span(type, shard);
    copy->whole = type->format.shares < 2;
    side_init(&algebra.sides[SOURCE], &host, true);
    side_init(&algebra.sides[DESTINATION], type, false);
    Finder finder = {.algebra = &algebra};
    if (!status_discard(algebra_link(&algebra, &mapping))) { /* cannot fail: identity */
        uint32_t source_block;
        finder_init(&finder, &algebra);
        walk_block(&finder, shard / format_shares(&type->format), move_piece, copy, &source_block);
    }
    finder_free(&finder);
    algebra_free(&algebra);
}

void type_pack_shard(const TensorType *type, uint32_t shard, const void *logical, uint8_t *bytes)
{
    HostCopy copy = {.element = precision_bytes(type->format.precision),
                     .from = logical,
                     .to = bytes,
                     .from_side = SOURCE};
    memset(bytes, 0, type_shard_bytes(type, shard));
    host_copy(type, shard, &copy);
}

void type_unpack_shard(const TensorType *type, uint32_t shard, const uint8_t *bytes, void *logical)
{
    HostCopy copy = {.element = precision_bytes(type->format.precision),
                     .from = bytes,
                     .to = logical,
                     .from_side = DESTINATION};
    host_copy(type, shard, &copy);
}
