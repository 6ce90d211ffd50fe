/* type.c - tilings: validity, shards, regions, tiles, offsets (amp-kernels.md 4, seeds.md B.1).
 *
 * A shard number is the mixed radix of its coordinates, the first listed axis the fastest. Which
 * tile holds it is another mixed radix, of the same coordinates and the replica (TileMap). */
#include "tensor/internal.h"

enum {
    REPLICA = -1,
    MAX_GIVEN = 2 * MAX_TILED_AXES, /* digits with a stride */
    MAX_TILE_DIGITS = 2 * MAX_GIVEN + 1
};
#define MAX_SHARD_BYTES ((uint64_t)1 << 30) /* runs keep offsets in 32 bits, steps in 31 */
#define MAX_TENSOR_BYTES ((uint64_t)1 << 40)

typedef struct TileDigit {
    uint32_t stride, extent;
    int32_t axis;    /* index in format.axes, or REPLICA */
    uint32_t weight; /* in the axis' coordinate, or in the replica's number */
} TileDigit;

typedef struct TileMap {
    TileDigit digits[MAX_TILE_DIGITS];
    uint32_t digit_count;
    bool regular; /* the digits are a closed mixed radix: no holes, no overlap */
} TileMap;

static uint32_t tiling_groups(const AxisTiling *tiling)
{
    return tiling->groups ? tiling->groups : 1;
}

static uint32_t tiling_block(const AxisTiling *tiling)
{
    return tiling->block ? tiling->block : 1;
}

static uint32_t tiling_multiple(const AxisTiling *tiling)
{
    return tiling->pad_multiple ? tiling->pad_multiple : tiling_block(tiling);
}

const AxisTiling *format_axis(const Format *format, uint32_t axis)
{
    for (uint32_t i = 0; i < format->axis_count; i++)
        if (format->axes[i].axis == axis)
            return &format->axes[i];
    return NULL;
}

static uint32_t tiling_parts(const AxisTiling *tiling)
{
    return tiling->parts ? tiling->parts : 1;
}

/* Part j of a piece: whole part_blocks, the first parts one more; never behind the piece's end. */
static AxisPiece piece_part(AxisPiece whole, const AxisTiling *tiling, uint32_t j)
{
    uint32_t parts = tiling_parts(tiling), block = max_u32(tiling->part_block, 1);
    uint32_t blocks = ceil_div_u32(whole.physical_end - whole.start, block);
    uint32_t small = blocks / parts, larger = blocks % parts;
    uint32_t first = j * small + min_u32(j, larger), count = small + (j < larger);
    AxisPiece part = {.start = min_u32(whole.start + first * block, whole.physical_end)};
    part.physical_end = part.start + count * block;
    part.logical_end = max_u32(part.start, min_u32(part.physical_end, whole.logical_end));
    return part;
}

AxisPiece axis_piece(uint32_t extent, const AxisTiling *tiling, uint32_t coordinate)
{
    if (!tiling)
        return (AxisPiece){0, extent, extent};
    uint32_t parts = tiling_parts(tiling), part = coordinate % parts;
    uint32_t per_group = tiling->partitions / parts / tiling_groups(tiling);
    coordinate /= parts;
    uint32_t group = coordinate / per_group, i = coordinate % per_group;
    uint32_t logical = extent / tiling_groups(tiling);
    uint32_t blocks = round_up_u32(logical, tiling_multiple(tiling)) / tiling_block(tiling);
    uint32_t small = blocks / per_group, larger = blocks % per_group;
    uint32_t s = (i * small + min_u32(i, larger)) * tiling_block(tiling);
    uint32_t width = (small + (i < larger)) * tiling_block(tiling);
    AxisPiece piece = {.start = group * logical + s};
    piece.logical_end = group * logical + max_u32(s, min_u32(s + width, logical));
    uint32_t multiple = tiling->shard_multiple ? tiling->shard_multiple : 1;
    piece.physical_end = piece.start + round_up_u32(width, multiple);
    return parts > 1 ? piece_part(piece, tiling, part) : piece;
}

static AxisPiece linear_piece(const TensorType *type, uint32_t coordinate)
{
    const AxisTiling *tiling = &type->format.axes[0];
    uint32_t grain = tiling_block(tiling);
    uint32_t grains = (uint32_t)(shape_elements(&type->shape) / grain);
    uint32_t small = grains / tiling->partitions, larger = grains % tiling->partitions;
    uint32_t first = coordinate * small + min_u32(coordinate, larger);
    uint32_t end = first + small + (coordinate < larger);
    return (AxisPiece){first * grain, end * grain, end * grain};
}

/* What has a stride, the smallest first: an axis, or its groups of near pieces and the pieces in a
 * group. */
static uint32_t given_digits(const Format *format, TileDigit out[MAX_GIVEN])
{
    uint32_t count = 0;
    for (uint32_t n = 0; n < 2u * format->axis_count; n++) {
        const AxisTiling *axis = &format->axes[n / 2];
        uint32_t near = max_u32(axis->near, 1), at = count;
        TileDigit digit = {axis->stride, axis->partitions / near, (int)(n / 2), near};
        if (n % 2)
            digit = (TileDigit){axis->near_stride, near, (int)(n / 2), 1};
        if (!digit.stride || (n % 2 && near == 1))
            continue;
        for (; at > 0 && out[at - 1].stride > digit.stride; at--)
            out[at] = out[at - 1];
        out[at] = digit;
        count++;
    }
    return count;
}

static void add_digit(TileMap *map, TileDigit digit)
{
    map->digits[map->digit_count++] = digit;
}

/* Tile strides by seeds.md B.1 rule 6: replicas fill the gaps below explicit strides, then what is
 * left of them, then the axes without a stride in list order. Shares lie where replicas would. */
static TileMap tile_map(const Format *format)
{
    TileMap map = {.regular = true};
    TileDigit given[MAX_GIVEN];
    uint32_t count = given_digits(format, given), copies = 1;
    uint32_t product = 1, replicas = format->replicas * format_shares(format);
    for (uint32_t k = 0; k < count; k++) {
        TileDigit digit = given[k];
        uint32_t gap = digit.stride / product;
        if (digit.extent == 1)
            continue;
        add_digit(&map, digit);
        if (digit.stride % product || replicas % max_u32(gap, 1) || !gap) {
            map.regular = false;
            continue;
        }
        if (gap > 1)
            add_digit(&map, (TileDigit){product, gap, REPLICA, copies});
        copies *= gap;
        replicas /= gap;
        product = digit.stride * digit.extent;
    }
    if (replicas > 1)
        add_digit(&map, (TileDigit){product, replicas, REPLICA, copies});
    product *= replicas;
    if (!map.regular) /* amp-kernels.md 4.2 rule 6, whatever the strides before it */
        product = format->replicas * format_shares(format);
    for (uint32_t i = 0; i < format->axis_count; i++) {
        const AxisTiling *axis = &format->axes[i];
        if (axis->stride && !map.regular)
            product *= axis->partitions;
        if (axis->stride)
            continue;
        add_digit(&map, (TileDigit){product, axis->partitions, (int)i, 1});
        product *= axis->partitions;
    }
    return map;
}

/* Shard that the index-th tile of the format holds. */
static uint32_t map_shard(const Format *format, const TileMap *map, uint32_t index)
{
    uint32_t coordinates[MAX_TILED_AXES] = {0}, copy = 0, weight = format_shares(format);
    for (uint32_t d = 0; d < map->digit_count; d++) {
        const TileDigit *digit = &map->digits[d];
        uint32_t value = index / digit->stride % digit->extent * digit->weight;
        if (digit->axis == REPLICA)
            copy += value;
        else
            coordinates[digit->axis] += value;
    }
    uint32_t shard = copy % weight;
    for (uint32_t i = 0; i < format->axis_count; i++) {
        shard += coordinates[i] * weight;
        weight *= format->axes[i].partitions;
    }
    return shard;
}

uint32_t type_shard_count(const TensorType *type)
{
    uint32_t count = format_shares(&type->format);
    for (uint32_t i = 0; i < type->format.axis_count; i++)
        count *= type->format.axes[i].partitions;
    return count;
}

int32_t type_shard_of_tile(const TensorType *type, uint32_t tile)
{
    const Format *format = &type->format;
    if (tile < format->first_tile || tile - format->first_tile >= format->tile_count)
        return -1;
    TileMap map = tile_map(format);
    return (int32_t)map_shard(format, &map, tile - format->first_tile);
}

uint32_t type_tile_of_shard(const TensorType *type, uint32_t shard, uint32_t replica)
{
    const Format *format = &type->format;
    TileMap map = tile_map(format);
    if (!map.regular) {
        for (uint32_t t = 0; t < format->tile_count; t++)
            if (map_shard(format, &map, t) == shard && replica-- == 0)
                return format->first_tile + t;
        return format->first_tile;
    }
    uint32_t coordinates[MAX_TILED_AXES], tile = format->first_tile;
    uint32_t copy = shard % format_shares(format) + replica * format_shares(format);
    shard /= format_shares(format);
    for (uint32_t i = 0; i < format->axis_count; i++) {
        coordinates[i] = shard % format->axes[i].partitions;
        shard /= format->axes[i].partitions;
    }
    for (uint32_t d = 0; d < map.digit_count; d++) {
        const TileDigit *digit = &map.digits[d];
        uint32_t number = digit->axis == REPLICA ? copy : coordinates[digit->axis];
        tile += number / digit->weight % digit->extent * digit->stride;
    }
    return tile;
}

void type_tiles(const TensorType *type, uint32_t *tiles)
{
    const Format *format = &type->format;
    TileMap map = tile_map(format);
    uint32_t shards = type_shard_count(type), *next = xcalloc(shards, sizeof *next);
    for (uint32_t t = 0; t < format->tile_count; t++) { /* replicas ascend with the tile */
        uint32_t shard = map_shard(format, &map, t);
        if (next[shard] < format->replicas)
            tiles[shard * format->replicas + next[shard]++] = format->first_tile + t;
    }
    free(next);
}

uint32_t block_pieces(const TensorType *type, uint32_t block, AxisPiece *out)
{
    if (type_is_linear(type)) {
        out[0] = linear_piece(type, block);
        return 1;
    }
    for (uint32_t a = 0; a < type->shape.rank; a++)
        out[a] = (AxisPiece){0, type->shape.extent[a], type->shape.extent[a]};
    for (uint32_t i = 0; i < type->format.axis_count; i++) {
        const AxisTiling *tiling = &type->format.axes[i];
        out[tiling->axis] =
            axis_piece(type->shape.extent[tiling->axis], tiling, block % tiling->partitions);
        block /= tiling->partitions;
    }
    return type->shape.rank;
}

bool type_shard_region(const TensorType *type, uint32_t shard, Region *out)
{
    AxisPiece pieces[MAX_RANK];
    bool any = type->format.shares < 2 || type_shard_bytes(type, shard) > 0;
    *out = (Region){.rank = block_pieces(type, shard / format_shares(&type->format), pieces)};
    for (uint32_t a = 0; a < out->rank; a++) {
        out->start[a] = pieces[a].start;
        out->logical_end[a] = pieces[a].logical_end;
        out->physical_end[a] = pieces[a].physical_end;
        any &= pieces[a].logical_end > pieces[a].start;
    }
    return any;
}

uint64_t block_bytes(const TensorType *type, uint32_t block)
{
    AxisPiece pieces[MAX_RANK];
    uint64_t bytes = precision_bytes(type->format.precision);
    uint32_t axes = block_pieces(type, block, pieces);
    for (uint32_t a = 0; a < axes; a++)
        bytes *= pieces[a].physical_end - pieces[a].start;
    return bytes;
}

uint64_t type_shard_bytes(const TensorType *type, uint32_t shard)
{
    ByteSpan span = share_span(type, shard);
    return span.end - span.start;
}

/* The first piece of an axis is never smaller than another, and all axes have one; nor is the first
 * share. */
uint64_t type_max_shard_bytes(const TensorType *type)
{
    return type_shard_bytes(type, 0);
}

static void block_matrix(const TensorType *type, uint32_t block, uint32_t *outer, uint32_t *rows,
                         uint32_t *columns)
{
    AxisPiece pieces[MAX_RANK];
    uint32_t axes = block_pieces(type, block, pieces);
    *outer = *rows = 1;
    *columns = pieces[axes - 1].physical_end - pieces[axes - 1].start;
    if (axes > 1)
        *rows = pieces[axes - 2].physical_end - pieces[axes - 2].start;
    for (uint32_t a = 0; a + 2 < axes; a++)
        *outer *= pieces[a].physical_end - pieces[a].start;
}

void type_shard_matrix(const TensorType *type, uint32_t shard, uint32_t *outer, uint32_t *rows,
                       uint32_t *columns)
{
    if (type->format.shares < 2) {
        block_matrix(type, shard, outer, rows, columns);
        return;
    }
    *outer = *rows = 1;
    *columns = (uint32_t)type_shard_bytes(type, shard) / precision_bytes(type->format.precision);
}

uint64_t type_offset(const TensorType *type, uint32_t shard, const uint32_t *index)
{
    AxisPiece pieces[MAX_RANK];
    uint64_t bytes = precision_bytes(type->format.precision);
    uint32_t block = shard / format_shares(&type->format), physical[MAX_RANK];
    uint32_t axes = block_pieces(type, block, pieces);
    if (type_is_linear(type)) {
        uint64_t flat = 0;
        for (uint32_t a = 0; a < type->shape.rank; a++)
            flat = flat * type->shape.extent[a] + index[a];
        return (flat - pieces[0].start) * bytes;
    }
    for (uint32_t a = 0; a < axes; a++)
        physical[a] = pieces[a].physical_end - pieces[a].start;
    AxisDigits digits[MAX_RANK];
    order_digits(&type->format, axes, physical, digits);
    uint64_t offset = 0;
    for (uint32_t a = 0; a < axes; a++)
        offset += digits_offset(&digits[a], index[a] - pieces[a].start);
    return offset * bytes - type_share_offset(type, shard);
}

/* ---- checks ---- */

static Status check_linear(const TensorType *type)
{
    const Format *format = &type->format;
    const AxisTiling *axis = &format->axes[0];
    uint32_t grain = tiling_block(axis);
    uint64_t elements = shape_elements(&type->shape);
    if (format->axis_count != 1 || format->replicas != 1)
        return status_error("a linear axis stands alone and without replicas");
    if (format->order.kind != ORDER_ROW_MAJOR)
        return status_error("a linear axis needs row-major order");
    if (elements > UINT32_MAX)
        return status_error("a linear axis of %llu elements is too long",
                            (unsigned long long)elements);
    if (elements % grain)
        return status_error("%llu elements are no multiple of the grain %u",
                            (unsigned long long)elements, grain);
    if (elements / grain < axis->partitions)
        return status_error("%llu grains for %u tiles: every tile needs one",
                            (unsigned long long)(elements / grain), axis->partitions);
    return STATUS_OK;
}

static Status check_axis(const TensorType *type, const AxisTiling *tiling)
{
    if (tiling->axis >= type->shape.rank)
        return status_error("axis %u of a tensor of rank %u", tiling->axis, type->shape.rank);
    uint32_t extent = type->shape.extent[tiling->axis], groups = tiling_groups(tiling);
    uint32_t block = tiling_block(tiling), multiple = tiling_multiple(tiling);
    if (tiling->partitions % groups || extent % groups)
        return status_error("axis %u: %u groups divide neither %u partitions nor extent %u",
                            tiling->axis, groups, tiling->partitions, extent);
    uint64_t logical = extent / groups;
    uint64_t padded = (logical + multiple - 1) / multiple * multiple;
    if (padded > UINT32_MAX / 2 / groups)
        return status_error("axis %u: the padded extent is too long", tiling->axis);
    if (padded != logical && !tiling->pad)
        return status_error("axis %u: extent %llu is no multiple of %u and padding is not allowed",
                            tiling->axis, (unsigned long long)logical, multiple);
    if (padded % block)
        return status_error("axis %u: padded extent %llu is no multiple of the block %u",
                            tiling->axis, (unsigned long long)padded, block);
    if (tiling->partitions % tiling_parts(tiling) ||
        tiling->partitions / tiling_parts(tiling) % groups || tiling->part_block > 1u << 20)
        return status_error("axis %u: %u parts do not divide %u partitions", tiling->axis,
                            tiling_parts(tiling), tiling->partitions);
    if (tiling->parts > 1 && !tiling->pad)
        return status_error("axis %u: parts need padding to be allowed", tiling->axis);
    if (tiling->shard_multiple > 1u << 20)
        return status_error("axis %u: shard multiple %u", tiling->axis, tiling->shard_multiple);
    for (uint32_t c = 0; c < tiling->partitions && !tiling->pad; c++) {
        AxisPiece piece = axis_piece(extent, tiling, c);
        if (tiling->shard_multiple && (piece.logical_end - piece.start) % tiling->shard_multiple)
            return status_error("axis %u: piece %u of %u elements is no multiple of %u and padding "
                                "is not allowed",
                                tiling->axis, c, piece.logical_end - piece.start,
                                tiling->shard_multiple);
    }
    return STATUS_OK;
}

static Status check_tiles(const TensorType *type)
{
    const Format *format = &type->format;
    uint64_t product = (uint64_t)format->replicas * format_shares(format);
    for (uint32_t i = 0; i < format->axis_count; i++) {
        if (!format->axes[i].partitions)
            return status_error("an axis has no partitions");
        product *= format->axes[i].partitions;
        if (product > 1u << 20)
            return status_error("%llu tiles are too many", (unsigned long long)product);
        uint32_t near = max_u32(format->axes[i].near, 1);
        if (format->axes[i].partitions % near ||
            (near > 1 && (!format->axes[i].near_stride || !format->axes[i].stride)))
            return status_error("%u of %u pieces near each other", near,
                                format->axes[i].partitions);
        for (uint32_t j = 0; j < i; j++)
            if (format->axes[i].axis == format->axes[j].axis)
                return status_error("axis %u is named twice", format->axes[i].axis);
    }
    if (!format->replicas || !format->tile_count || product != format->tile_count)
        return status_error("replicas, shares and partitions make %llu, the tile count is %u",
                            (unsigned long long)product, format->tile_count);
    if (format->first_tile > 1u << 20)
        return status_error("first tile %u", format->first_tile);
    if (format->shares > 1u << 20 || format->share_grain % 4 || format->share_grain > 1u << 20 ||
        format->share_every > format_shares(format))
        return status_error("%u shares of %u bytes, every %u", format->shares, format->share_grain,
                            format->share_every);
    if (format->shares > 1 && type_is_linear(type))
        return status_error("a linear axis has no shares");

    TileMap map = tile_map(format);
    if (map.regular)
        return STATUS_OK;
    if (format->shares > 1)
        return status_error("the tile strides leave no room for shares");
    uint32_t shards = type_shard_count(type), *hits = xcalloc(shards, sizeof *hits);
    for (uint32_t t = 0; t < format->tile_count; t++)
        hits[map_shard(format, &map, t)]++;
    bool even = true;
    for (uint32_t s = 0; s < shards; s++)
        even &= hits[s] == format->replicas;
    free(hits);
    if (!even)
        return status_error("the tile strides do not reach every shard %u times", format->replicas);
    return STATUS_OK;
}

static Status check_multiple(const char *what, uint32_t extent, uint32_t multiple)
{
    if (multiple && extent % multiple == 0)
        return STATUS_OK;
    return status_error("%s %u are no multiple of %u", what, extent, multiple);
}

/* Divisibility of a shard's matrix by its order. */
static Status check_order(const Format *format, uint32_t rows, uint32_t columns)
{
    const Order *order = &format->order;
    uint32_t inner = precision_inner(format->precision);
    switch (order->kind) {
    case ORDER_ROW_MAJOR:
        return STATUS_OK;
    case ORDER_LEFT:
        return check_multiple("columns", columns, inner);
    case ORDER_TRANSPOSED_LEFT:
        return check_multiple("rows", rows, inner);
    case ORDER_TRANSPOSED_RIGHT:
        TRY(check_multiple("rows", rows, 16));
        return check_multiple("columns", columns, inner);
    case ORDER_BLOCK_MAJOR:
        TRY(check_multiple("elements of a row block", order->row_block, inner));
        TRY(check_multiple("rows", rows, order->row_block));
        return check_multiple("columns", columns, order->column_block);
    case ORDER_TRANSPOSED_BLOCK_MAJOR:
        TRY(check_multiple("elements of a row block", order->row_block, inner));
        TRY(check_multiple("columns", columns, order->row_block));
        return check_multiple("rows", rows, order->column_block);
    default:
        return status_error("unknown element order %u", order->kind);
    }
}

/* Distinct physical widths of an axis: at most the first and the last pieces differ in width, and
 * of parts the first and the last of those two, so four coordinates of every axis stand for all. */
static uint32_t corner_coordinate(const AxisTiling *tiling, uint32_t corner)
{
    uint32_t parts = tiling_parts(tiling), piece = corner & 1, part = corner >> 1;
    return (piece ? tiling->partitions - parts : 0) + (part ? parts - 1 : 0);
}

static Status check_shards(const TensorType *type)
{
    const Format *format = &type->format;
    uint32_t corners = 1u << 2 * format->axis_count;
    for (uint32_t corner = 0; corner < corners; corner++) {
        uint32_t shard = 0, weight = 1, outer, rows, columns;
        bool again = false; /* an axis without parts has two corners */
        for (uint32_t i = 0; i < format->axis_count; i++) {
            again |= (corner >> 2 * i & 2) && tiling_parts(&format->axes[i]) == 1;
            shard += corner_coordinate(&format->axes[i], corner >> 2 * i & 3) * weight;
            weight *= format->axes[i].partitions;
        }
        if (again)
            continue;
        block_matrix(type, shard, &outer, &rows, &columns);
        TRY(check_order(format, rows, columns));
    }
    AxisPiece pieces[MAX_RANK];
    uint32_t axes = block_pieces(type, 0, pieces);
    uint64_t bytes = precision_bytes(format->precision);
    for (uint32_t a = 0; a < axes; a++) {
        bytes *= pieces[a].physical_end - pieces[a].start;
        if (bytes > MAX_SHARD_BYTES)
            return status_error("a shard of more than %llu bytes",
                                (unsigned long long)MAX_SHARD_BYTES);
    }
    return STATUS_OK;
}

static Status check_shape(const TensorType *type)
{
    uint64_t bytes = precision_bytes(type->format.precision);
    if (type->shape.rank == 0 || type->shape.rank > MAX_RANK)
        return status_error("rank %u", type->shape.rank);
    for (uint32_t a = 0; a < type->shape.rank; a++) {
        uint32_t extent = type->shape.extent[a];
        if (extent == 0 || extent > INT32_MAX)
            return status_error("axis %u has extent %u", a, extent);
        if (bytes > MAX_TENSOR_BYTES / extent)
            return status_error("the tensor is too large");
        bytes *= extent;
    }
    return STATUS_OK;
}

static Status check_all(const TensorType *type)
{
    const Format *format = &type->format;
    if (format->precision.kind > U32 || format->memory_class > MEMORY_INTERLEAVED)
        return status_error("unknown precision or memory class");
    if (format->axis_count > MAX_TILED_AXES)
        return status_error("%u tiled axes", format->axis_count);
    TRY(check_shape(type));
    TRY(check_tiles(type));
    for (uint32_t i = 0; i < format->axis_count; i++) {
        if (format->axes[i].axis == AXIS_LINEAR)
            return check_linear(type);
        TRY(check_axis(type, &format->axes[i]));
    }
    return check_shards(type);
}

Status type_check(const TensorType *type)
{
    Status status = check_all(type);
    if (status_ok(status))
        return status;
    Text text = {0};
    if (type->shape.rank <= MAX_RANK)
        shape_print(&text, &type->shape);
    if (type->format.axis_count <= MAX_TILED_AXES) {
        text_append(&text, " ");
        format_print(&text, &type->format);
    }
    status = status_context(status, "%s", text_string(&text));
    text_free(&text);
    return status;
}
