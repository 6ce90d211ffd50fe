/* spread.c - one copy of a tensor, cut finely enough for all tiles to hold a little of it.
 *
 * The shards that the consumer wants are cut into parts in the direction in which its order keeps
 * bytes together: column groups of weights, K panels of a left operand, and only then across. So a
 * consumer's block still comes from few tiles in few long pieces, which 64-bit transfers need, and
 * no tile sends more than its small share. Parts of one shard lie on neighbouring tiles: a 64-bit
 * send keeps the sender's partner from sending, which costs nothing when both send to the same
 * tiles, one after the other anyway. */
#include "plan/internal.h"

#include <stdlib.h>

enum { SMALL_BYTES = 8 << 10 }; /* a shard of this size is small enough */

typedef struct Direction { /* an axis from the end, and what may not be cut within it */
    uint32_t from_end, unit;
} Direction;

/* First and second direction of an order; false: it is not spread. */
static bool directions(const Order *order, Direction out[2])
{
    switch (order->kind) {
    case ORDER_LEFT: /* panels of 16 columns, rows one after the other */
        out[0] = (Direction){1, 16};
        out[1] = (Direction){2, 1};
        return true;
    case ORDER_TRANSPOSED_LEFT:
        out[0] = (Direction){2, 16};
        out[1] = (Direction){1, 2};
        return true;
    case ORDER_BLOCK_MAJOR: /* groups of 16 columns, K panels one after the other */
        out[0] = (Direction){1, 16};
        out[1] = (Direction){2, 16};
        return true;
    case ORDER_TRANSPOSED_BLOCK_MAJOR:
        out[0] = (Direction){2, 16};
        out[1] = (Direction){1, 16};
        return true;
    default:
        return false;
    }
}

/* The widest piece of an axis: the first. */
static uint32_t piece_extent(const TensorType *type, uint32_t axis)
{
    Region region;
    type_shard_region(type, 0, &region);
    return region.physical_end[axis] - region.start[axis];
}

/* Cuts every piece of the axis into at most `most` parts of whole units. */
static void cut_axis(TensorType *type, const Direction *direction, uint32_t most)
{
    Format *format = &type->format;
    uint32_t axis = type->shape.rank - direction->from_end, index = 0;
    if (most < 2)
        return;
    uint32_t units = ceil_div_u32(piece_extent(type, axis), direction->unit);
    uint32_t grain = ceil_div_u32(units, min_u32(units, most)), parts = ceil_div_u32(units, grain);
    if (parts < 2)
        return;
    while (index < format->axis_count && format->axes[index].axis != axis)
        index++;
    if (index == format->axis_count) {
        if (index == MAX_TILED_AXES)
            return;
        format->axes[index] = (AxisTiling){.axis = (uint8_t)axis, .partitions = 1};
        format->axes[index].block = direction->unit;
        format->axis_count++;
    }
    AxisTiling *tiling = &format->axes[index];
    if (tiling->parts > 1)
        return;
    tiling->partitions *= parts;
    tiling->parts = parts;
    tiling->part_block = grain * direction->unit;
    tiling->pad = true;
    format->tile_count *= parts;
    AxisTiling cut = *tiling; /* becomes the fastest */
    memmove(format->axes + 1, format->axes, index * sizeof cut);
    format->axes[0] = cut;
    bool by_columns = format->order.kind == ORDER_TRANSPOSED_BLOCK_MAJOR;
    if (format->order.row_block && direction->from_end == (by_columns ? 1u : 2u))
        format->order.row_block = (uint16_t)cut.part_block;
}

Format spread_format(const TensorType *once, uint32_t tiles)
{
    TensorType type = *once;
    Direction ways[2];
    type.format.first_tile = 0;
    if (!directions(&type.format.order, ways) || type.shape.rank < 2 || type.format.shares > 1)
        return once->format;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t wanted =
            (uint32_t)ceil_div_u32((uint32_t)type_max_shard_bytes(&type), SMALL_BYTES);
        cut_axis(&type, &ways[i], min_u32(wanted, tiles / type.format.tile_count));
    }
    return status_discard(type_check(&type)) ? once->format : type.format;
}

bool type_in_pairs(const TensorType *type)
{
    enum { LARGE = 8 };
    uint32_t replicas = type->format.replicas, count = type->format.tile_count;
    if (replicas % 2 || replicas < LARGE || type->format.shares > 1)
        return false;
    uint32_t *tiles = xcalloc(count, sizeof *tiles);
    type_tiles(type, tiles);
    bool pairs = true;
    for (uint32_t i = 0; i < count; i += 2)
        pairs &= tiles[i] % 2 == 0 && tiles[i + 1] == tiles[i] + 1;
    free(tiles);
    return pairs;
}

/* Not every tile of a large group gets a share: every change of sender costs the group some events,
 * and a 64-bit send keeps the sender's partner from sending. */
static uint32_t share_every(const TensorType *operand)
{
    enum { WANTED = 9 };
    uint32_t every = max_u32(operand->format.replicas / WANTED, 1);
    return every + (type_in_pairs(operand) ? every % 2 : 0);
}

bool plan_own_type(const TensorType *operand, TensorType *out)
{
    enum { GRAIN = 64 };
    uint32_t replicas = operand->format.replicas;
    if (replicas < 2 || operand->format.shares > 1 || type_max_shard_bytes(operand) <= SMALL_BYTES)
        return false;
    *out = *operand;
    Format *format = &out->format;
    format->shares = replicas;
    format->share_every = share_every(operand);
    format->share_grain = GRAIN;
    format->replicas = 1;
    format->memory_class = MEMORY_STANDARD;
    return !status_discard(type_check(out));
}

TensorType plan_spread_type(const TensorType *operand, uint32_t tiles)
{
    TensorType type = {operand->shape, format_once(&operand->format, 0)};
    type.format = spread_format(&type, tiles);
    return type;
}
