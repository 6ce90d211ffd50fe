/* tensor_random.h - random tensor types and mappings, and their element-by-element definitions,
 * written straight from amp-kernels.md 3 and 4 and sharing no code with src/tensor. */
#ifndef IPU_TESTS_TENSOR_RANDOM_H
#define IPU_TESTS_TENSOR_RANDOM_H

#include "tensor/tensor.h"

static uint64_t random_state = 1;

static inline uint32_t random_below(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 11) % n;
}

static inline uint32_t pick(const uint32_t *choices, uint32_t count)
{
    return choices[random_below(count)];
}

static inline Shape random_shape(uint32_t max_rank, uint32_t max_extent)
{
    Shape shape = {.rank = 1 + random_below(max_rank)};
    for (uint32_t a = 0; a < shape.rank; a++)
        shape.extent[a] = 1 + random_below(a + 2 >= shape.rank ? max_extent : 4);
    return shape;
}

/* Packed strides of axes, of pairs of pieces, and of the gap that replicas and shares fill, in a
 * random order. */
static inline void random_strides(Format *f)
{
    uint32_t digits[2 * MAX_TILED_AXES + 1], count = 0, stride = 1;
    for (uint32_t i = 0; i < f->axis_count; i++) {
        digits[count++] = 2 * i;
        f->axes[i].near = f->axes[i].partitions % 2 == 0 && random_below(2) ? 2 : 0;
        if (f->axes[i].near)
            digits[count++] = 2 * i + 1;
    }
    digits[count++] = 2 * MAX_TILED_AXES;
    for (uint32_t a = count; a-- > 1;) {
        uint32_t b = random_below(a + 1), swap = digits[a];
        digits[a] = digits[b];
        digits[b] = swap;
    }
    for (uint32_t d = 0; d < count; d++) {
        AxisTiling *axis = &f->axes[digits[d] / 2 % MAX_TILED_AXES];
        if (digits[d] == 2 * MAX_TILED_AXES) {
            stride *= f->replicas * (f->shares > 1 ? f->shares : 1);
        } else if (digits[d] % 2) {
            axis->near_stride = stride;
            stride *= 2;
        } else {
            axis->stride = stride;
            stride *= axis->near ? axis->partitions / 2 : axis->partitions;
        }
    }
}

/* A format for the shape that passes type_check, of any order and tiling. */
static inline TensorType random_type(Shape shape, uint8_t precision)
{
    for (uint32_t attempt = 0;; attempt++) {
        TensorType type = {.shape = shape};
        Format *f = &type.format;
        f->precision.kind = precision;
        uint32_t inner = precision_inner(f->precision);
        f->order.kind = (uint8_t)random_below(6);
        f->order.row_block = (uint16_t)(inner * (1 + random_below(2)));
        f->order.column_block = random_below(2) ? 16 : 8;
        f->first_tile = random_below(3);
        f->replicas = 1 + (random_below(3) == 0) * random_below(4);
        if (random_below(5) == 0) {
            uint64_t n = shape_elements(&shape);
            f->order.kind = ORDER_ROW_MAJOR;
            f->replicas = 1;
            f->axis_count = 1;
            f->axes[0] = (AxisTiling){.axis = AXIS_LINEAR, .partitions = 1 + random_below(9)};
            f->axes[0].block = n % 4 == 0 ? 4 : 1;
        } else {
            uint8_t axes[MAX_RANK];
            for (uint32_t a = 0; a < shape.rank; a++)
                axes[a] = (uint8_t)a;
            for (uint32_t a = shape.rank; a-- > 1;) {
                uint32_t b = random_below(a + 1);
                uint8_t swap = axes[a];
                axes[a] = axes[b];
                axes[b] = swap;
            }
            f->axis_count = (uint8_t)random_below(shape.rank < 4 ? shape.rank + 1 : 5);
            for (uint32_t i = 0; i < f->axis_count; i++) {
                AxisTiling *t = &f->axes[i];
                static const uint32_t blocks[] = {0, 1, 2, 8, 16, 32};
                *t = (AxisTiling){.axis = axes[i], .pad = random_below(4) != 0};
                t->groups = random_below(4) == 0 ? 2 : 0;
                t->partitions = (1 + random_below(5)) * (t->groups ? 2 : 1);
                t->block = pick(blocks, countof(blocks));
                if (random_below(4) == 0)
                    t->pad_multiple = (t->block ? t->block : 1) * (1 + random_below(3));
                if (random_below(4) == 0)
                    t->shard_multiple = inner;
                if (t->pad && random_below(4) == 0) {
                    t->parts = 2 + random_below(2);
                    t->part_block = pick(blocks, countof(blocks));
                    t->partitions *= t->parts;
                }
            }
        }
        f->tile_count = f->replicas;
        for (uint32_t i = 0; i < f->axis_count; i++)
            f->tile_count *= f->axes[i].partitions;
        if (random_below(3) == 0) {
            static const uint32_t grains[] = {0, 4, 8, 32, 64, 512};
            f->shares = 1 + random_below(7);
            f->share_grain = pick(grains, countof(grains));
            f->share_every = random_below(f->shares + 1);
            f->tile_count *= f->shares;
        }
        if (f->axis_count && f->axes[0].axis != AXIS_LINEAR && random_below(2) == 0)
            random_strides(f);
        if (!status_discard(type_check(&type)))
            return type;
    }
}

/* The sheet's table, literally: index of (outer, r, c) in a shard of `outer` matrices R x C. */
static inline uint64_t sheet_matrix(uint8_t kind, uint64_t rb, uint64_t cb, uint64_t inner,
                                    uint64_t r, uint64_t c, uint64_t R, uint64_t C)
{
    switch (kind) {
    case ORDER_TRANSPOSED_RIGHT:
        return ((r / 16) * (C / inner) + c / inner) * (16 * inner) + (r % 16) * inner + c % inner;
    case ORDER_BLOCK_MAJOR: {
        uint64_t g = rb / inner;
        uint64_t panel = (r / rb) * (C / cb) * g + (c / cb) * g + (r % rb) / inner;
        return panel * inner * cb + (c % cb) * inner + r % inner;
    }
    case ORDER_LEFT:
        return (c / inner) * R * inner + r * inner + c % inner;
    default:
        return r * C + c;
    }
}

static inline uint64_t sheet_offset(const TensorType *type, const Region *region,
                                    const uint32_t *index)
{
    const Order *o = &type->format.order;
    uint64_t inner = precision_inner(type->format.precision);
    uint64_t bytes = precision_bytes(type->format.precision), outer = 0, outers = 1;
    uint64_t local[MAX_RANK], width[MAX_RANK];
    uint32_t rank = type->shape.rank;
    for (uint32_t a = 0; a < rank; a++) {
        local[a] = index[a] - region->start[a];
        width[a] = region->physical_end[a] - region->start[a];
    }
    for (uint32_t a = 0; a + 2 < rank; a++) {
        outer = outer * width[a] + local[a];
        outers *= width[a];
    }
    uint64_t c = local[rank - 1], C = width[rank - 1];
    uint64_t r = rank > 1 ? local[rank - 2] : 0, R = rank > 1 ? width[rank - 2] : 1;
    if (o->kind == ORDER_LEFT)
        return bytes * sheet_matrix(ORDER_LEFT, 0, 0, inner, outer * R + r, c, outers * R, C);
    if (o->kind == ORDER_TRANSPOSED_LEFT)
        return bytes * (outer * R * C + sheet_matrix(ORDER_LEFT, 0, 0, inner, c, r, C, R));
    if (o->kind == ORDER_TRANSPOSED_BLOCK_MAJOR)
        return bytes * (outer * R * C + sheet_matrix(ORDER_BLOCK_MAJOR, o->row_block,
                                                     o->column_block, inner, c, r, C, R));
    return bytes * (outer * R * C +
                    sheet_matrix(o->kind, o->row_block, o->column_block, inner, r, c, R, C));
}

/* Advances a row-major index; false after the last. */
static inline bool next_index(const Shape *shape, uint32_t *index)
{
    for (uint32_t a = shape->rank; a-- > 0;) {
        if (++index[a] < shape->extent[a])
            return true;
        index[a] = 0;
    }
    return false;
}

static inline uint64_t flat_index(const Shape *shape, const uint32_t *index)
{
    uint64_t flat = 0;
    for (uint32_t a = 0; a < shape->rank; a++)
        flat = flat * shape->extent[a] + index[a];
    return flat;
}

/* The bytes of its block that a share has: filled shares take whole grains in turn, one more each
 * as long as there are more of them. */
static inline void sheet_share(const Format *f, uint64_t block_bytes, uint32_t share,
                               uint64_t *start, uint64_t *end)
{
    uint64_t grain = f->share_grain ? f->share_grain : 4, at = 0;
    uint32_t every = f->share_every ? f->share_every : 1;
    uint64_t grains = (block_bytes + grain - 1) / grain, filled = 0;
    for (uint32_t i = 0; i < f->shares; i += every)
        filled++;
    *start = *end = 0;
    for (uint32_t i = 0, j = 0; i < f->shares; i += every, j++) {
        uint64_t take = (grains / filled + (j < grains % filled)) * grain;
        if (i == share) {
            *start = at;
            *end = at + take < block_bytes ? at + take : block_bytes;
        }
        at += take;
    }
}

/* The shard that holds an element, and its byte offset, by search. Checks that it is the only one.
 */
static inline uint64_t find_element(const TensorType *type, const uint32_t *index, uint32_t *shard)
{
    uint32_t found = 0;
    uint64_t offset = 0;
    bool linear = type->format.axis_count && type->format.axes[0].axis == AXIS_LINEAR;
    for (uint32_t s = 0; s < type_shard_count(type); s++) {
        Region region;
        bool inside = type_shard_region(type, s, &region);
        uint64_t flat = flat_index(&type->shape, index);
        if (linear)
            inside = inside && flat >= region.start[0] && flat < region.logical_end[0];
        for (uint32_t a = 0; a < type->shape.rank && !linear; a++)
            inside = inside && index[a] >= region.start[a] && index[a] < region.logical_end[a];
        if (!inside)
            continue;
        uint64_t in_block = linear
                                ? (flat - region.start[0]) * precision_bytes(type->format.precision)
                                : sheet_offset(type, &region, index);
        if (type->format.shares > 1) {
            uint64_t bytes = precision_bytes(type->format.precision), start, end;
            for (uint32_t a = 0; a < region.rank; a++)
                bytes *= region.physical_end[a] - region.start[a];
            sheet_share(&type->format, bytes, s % type->format.shares, &start, &end);
            if (in_block < start || in_block >= end)
                continue;
            in_block -= start;
        }
        found++;
        *shard = s;
        offset = in_block;
    }
    assert_int_equal(found, 1);
    return offset;
}

#endif
