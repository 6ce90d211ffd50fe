/* shares.c - blocks whose bytes are held in shares, one after the other on several tiles.
 *
 * A share is a run of its block's bytes whatever the element order is: it lies where the block
 * would have it, at an offset, so a tile that holds the whole block as well finds its share in
 * there. All else about such a type is that of its blocks; only here bytes are cut. */
#include "tensor/internal.h"

typedef struct Cut {       /* of a block of some grains */
    uint64_t grain, small; /* bytes; grains of a share, the first `larger` ones have one more */
    uint32_t larger;
} Cut;

static uint32_t share_every(const Format *format)
{
    return max_u32(format->share_every, 1);
}

static Cut cut_of(const Format *format, uint64_t bytes)
{
    Cut cut = {.grain = max_u32(format->share_grain, 4)};
    uint64_t grains = (bytes + cut.grain - 1) / cut.grain;
    uint32_t filled = ceil_div_u32(format_shares(format), share_every(format));
    cut.small = grains / filled;
    cut.larger = (uint32_t)(grains % filled);
    return cut;
}

ByteSpan share_span(const TensorType *type, uint32_t shard)
{
    const Format *format = &type->format;
    uint32_t shares = format_shares(format), every = share_every(format);
    uint64_t bytes = block_bytes(type, shard / shares);
    if (shares == 1)
        return (ByteSpan){0, bytes};
    uint32_t at = shard % shares, j = at / every;
    Cut cut = cut_of(format, bytes);
    uint64_t first = cut.small * j + min_u32(j, cut.larger), count = cut.small + (j < cut.larger);
    ByteSpan span = {first * cut.grain, (first + count) * cut.grain};
    span.start = span.start < bytes ? span.start : bytes;
    span.end = at % every ? span.start : span.end < bytes ? span.end : bytes;
    return span;
}

uint64_t type_share_offset(const TensorType *type, uint32_t shard)
{
    return type->format.shares > 1 ? share_span(type, shard).start : 0;
}

uint32_t share_at(const TensorType *type, uint64_t bytes_of_block, uint64_t offset)
{
    Cut cut = cut_of(&type->format, bytes_of_block);
    uint64_t grain = offset / cut.grain, first = cut.larger * (cut.small + 1);
    uint64_t j = grain < first ? grain / (cut.small + 1) : cut.larger + (grain - first) / cut.small;
    return (uint32_t)j * share_every(&type->format);
}

Format format_blocks(const Format *format)
{
    Format blocks = *format;
    uint32_t shares = format_shares(format);
    blocks.shares = blocks.share_grain = blocks.share_every = 0;
    blocks.replicas *= shares;
    return blocks;
}
