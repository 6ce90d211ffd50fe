/* internal.h - what the files of src/tensor share: orders as digits, tilings as pieces. */
#ifndef IPU_TENSOR_INTERNAL_H
#define IPU_TENSOR_INTERNAL_H

#include "tensor/tensor.h"

/* An element order is a mixed radix: the local index l of an axis is cut into digits at the block
 * boundaries, and every digit has a stride. With blocks b0 = 1 < b1 < b2:
 *
 *     offset(l) = (l % b1 / b0) * s0  +  (l % b2 / b1) * s1  +  (l / b2) * s2
 *
 * and the element's offset is the sum over the axes. Digits that continue the one below are merged,
 * so every remaining boundary is a real jump. */
enum { MAX_DIGITS = 3 };
typedef struct AxisDigits {
    uint32_t count;
    uint64_t block[MAX_DIGITS], stride[MAX_DIGITS]; /* ascending; in elements */
} AxisDigits;

/* Digits of every axis of a shard with these physical extents. */
void order_digits(const Format *format, uint32_t rank, const uint32_t *physical, AxisDigits *out);
static inline uint64_t digits_offset(const AxisDigits *digits, uint64_t index)
{
    uint64_t offset = 0;
    for (uint32_t d = digits->count; d-- > 0; index %= digits->block[d])
        offset += index / digits->block[d] * digits->stride[d];
    return offset;
}

/* One piece of a tiled axis. logical_end == start: nothing logical in it. */
typedef struct AxisPiece {
    uint32_t start, logical_end, physical_end;
} AxisPiece;
AxisPiece axis_piece(uint32_t extent, const AxisTiling *tiling, uint32_t coordinate);

static inline bool type_is_linear(const TensorType *type)
{
    return type->format.axis_count == 1 && type->format.axes[0].axis == AXIS_LINEAR;
}

/* The tiling of tensor axis `axis`, NULL when it is held whole. */
const AxisTiling *format_axis(const Format *format, uint32_t axis);

/* Physical extents and starts of a block; linear types give one axis. Returns the axis count.
 * Without shares a block is a shard. */
uint32_t block_pieces(const TensorType *type, uint32_t block, AxisPiece *out);
uint64_t block_bytes(const TensorType *type, uint32_t block);

/* ---- shares (shares.c) ---- */
typedef struct ByteSpan {
    uint64_t start, end;
} ByteSpan;
/* The bytes of its block that a shard has. */
ByteSpan share_span(const TensorType *type, uint32_t shard);
/* The share in which a byte of the block lies. */
uint32_t share_at(const TensorType *type, uint64_t bytes_of_block, uint64_t offset);

#endif
