/* tensor.h - shapes, precisions, element orders, and how a tensor is cut over tiles.
 *
 * A format is precision + element order + axis tiling + memory class. From shape and format this
 * folder answers, in closed form: the padded shape, which tile owns which region, the byte offset
 * of an element in its shard, and the bytes that move when a tensor goes from one format to
 * another, as strided runs computed from the mixed-radix structure of the orders (never by listing
 * elements). Host packing, copies, exchange traffic, kernels' operand checks and costs all use it.
 *
 * Sources: amp-kernels.md 3 (orders) and 4 (tiling), seeds.md B (rules checked on real plans). */
#ifndef IPU_TENSOR_TENSOR_H
#define IPU_TENSOR_TENSOR_H

#include "base/base.h"

enum { MAX_RANK = 6, MAX_TILED_AXES = 4, MAX_ATOMS = 12 };

typedef struct Shape {
    uint32_t rank;
    uint32_t extent[MAX_RANK];
} Shape;

typedef enum PrecisionKind { F16, F32, F8F143, U32 } PrecisionKind;
typedef struct Precision {
    uint8_t kind;
    int8_t scale; /* F8: value = decode(code) * 2^scale */
} Precision;

/* Element orders of a shard's matrices (the last two axes; outer axes as amp-kernels.md 3 says).
 * inner = elements per 32 bytes: 32 (F8), 16 (F16), 8 (F32). */
typedef enum OrderKind {
    ORDER_ROW_MAJOR,
    ORDER_LEFT,             /* panels `inner` columns wide, 32 bytes per row; outer axes are rows */
    ORDER_TRANSPOSED_LEFT,  /* the same with rows and columns exchanged, per matrix */
    ORDER_TRANSPOSED_RIGHT, /* 16-row groups of 16 x inner micro-panels, per matrix */
    ORDER_BLOCK_MAJOR,      /* GEMM weights: K blocks of row_block, 16-column groups, column-major
                               micro-panels, per matrix */
    ORDER_TRANSPOSED_BLOCK_MAJOR
} OrderKind;
typedef struct Order {
    uint8_t kind;
    uint16_t row_block, column_block; /* block-major orders only */
} Order;

typedef enum MemoryClass { MEMORY_STANDARD, MEMORY_INTERLEAVED } MemoryClass;

enum { AXIS_LINEAR = 255 }; /* the whole tensor as one row-major sequence */

/* How one axis is cut (amp-kernels.md 4). Zero in `groups`, `block`, `pad_multiple`,
 * `shard_multiple` means the default given there (1, 1, block, 1). */
typedef struct AxisTiling {
    uint8_t axis; /* from the start, or AXIS_LINEAR */
    bool pad;     /* rounding up is allowed; else it is an error */
    uint32_t partitions;
    uint32_t groups, block, pad_multiple, shard_multiple;
    uint32_t parts, part_block; /* parts > 1: the axis is cut into partitions / parts pieces, and
                                   each of those into `parts` pieces of whole part_blocks (a sum
                                   that is spread over the tiles that made its partials) */
    uint32_t stride; /* in tiles; 0: implicit. Replicas fill the gaps below the explicit strides,
                        then what is left of them follows, then the implicit axes in list order */
    uint32_t near, near_stride; /* near > 1: this many consecutive pieces lie near_stride tiles
                                   apart, and `stride` leads from one such run to the next */
} AxisTiling;

typedef struct Format {
    Precision precision;
    Order order;
    uint8_t memory_class; /* MemoryClass */
    uint32_t first_tile;  /* logical tile of index 0 */
    uint32_t tile_count;  /* = replicas * shares * product of partitions */
    uint32_t replicas;    /* copies of every shard */
    uint8_t axis_count;
    AxisTiling axes[MAX_TILED_AXES];
    uint32_t shares; /* above 1: what the axes make is a block, and its shards are this many runs
                        of its bytes, in its own order, equal up to share_grain bytes; they lie
                        on the tiles on which as many replicas of the block would */
    uint32_t share_grain; /* a multiple of 4; 0: 4 */
    uint32_t
        share_every; /* n > 1: only shares 0, n, 2 n .. have bytes, the tiles between have none */
} Format;

typedef struct TensorType {
    Shape shape;
    Format format;
} TensorType;

/* The part of a tensor in one shard. Half-open. physical_end >= logical_end counts padding. */
typedef struct Region {
    uint32_t rank;
    uint32_t start[MAX_RANK], logical_end[MAX_RANK], physical_end[MAX_RANK];
} Region;

uint64_t shape_elements(const Shape *shape);
bool shape_equal(const Shape *a, const Shape *b);
uint32_t precision_bytes(Precision precision);
uint32_t precision_inner(Precision precision); /* elements per 32 bytes */
bool format_equal(const Format *a, const Format *b);
Format format_on_one_tile(Precision precision, uint32_t tile); /* row-major, untiled */

/* Checks all rules of amp-kernels.md 4.2 and the order's divisibility. The message tells. */
Status type_check(const TensorType *type);

/* Shards are numbered by their coordinates, replicas left out, first the share, then the axes as
 * they are listed, each slower than the one before: 0 .. shard_count-1. All functions below expect
 * a type that passes type_check. */
uint32_t type_shard_count(const TensorType *type);
static inline uint32_t format_shares(const Format *format)
{
    return format->shares > 1 ? format->shares : 1;
}
/* Where a share starts in its block; 0 without shares. */
uint64_t type_share_offset(const TensorType *type, uint32_t shard);
/* The format of which this one's shards are shares: one block on every tile that holds a share. */
Format format_blocks(const Format *format);
/* The shard that a logical tile holds, or -1. */
int32_t type_shard_of_tile(const TensorType *type, uint32_t tile);
/* The replica-th tile that holds the shard. */
uint32_t type_tile_of_shard(const TensorType *type, uint32_t shard, uint32_t replica);
/* All of them at once: tiles[shard * replicas + replica], tile_count entries. */
void type_tiles(const TensorType *type, uint32_t *tiles);
/* False when the shard is empty (nothing logical in it). AXIS_LINEAR tensors give rank 1: a range
 * of the flattened tensor. A share gives the region of its block. */
bool type_shard_region(const TensorType *type, uint32_t shard, Region *out);
/* Physical bytes; 0 without blocks. A shard that lies wholly in the padding has bytes and is empty.
 */
uint64_t type_shard_bytes(const TensorType *type, uint32_t shard);
uint64_t type_max_shard_bytes(const TensorType *type);
/* Physical extents of a shard as kernels see them: outer (product of leading axes), rows, columns.
 * A share is one row. */
void type_shard_matrix(const TensorType *type, uint32_t shard, uint32_t *outer, uint32_t *rows,
                       uint32_t *columns);
/* Byte offset of the element in the shard; index is global and logical. */
uint64_t type_offset(const TensorType *type, uint32_t shard, const uint32_t *index);
/* Byte offsets of the padding of a shard that lies beyond the logical end, as runs, ascending. */
typedef struct ByteRun {
    uint64_t offset, bytes;
} ByteRun;
typedef ARRAY(ByteRun) ByteRunArray;
void type_padding_runs(const TensorType *type, uint32_t shard, ByteRunArray *out);

/* Mapping: where each element of a destination is found in a source. Both index spaces are built
 * from common atoms: an axis' index = offset + mixed radix of its atoms, the first the most
 * significant. Every atom stands in the destination once; one that the source lacks broadcasts.
 * Slices are offsets; splitting heads off is an axis of two atoms. */
typedef struct MappingAxis {
    uint32_t offset;
    uint8_t count;
    uint8_t atoms[MAX_ATOMS];
} MappingAxis;
typedef struct Mapping {
    uint32_t atom_count;
    uint32_t extent[MAX_ATOMS];
    uint32_t source_rank, destination_rank;
    MappingAxis source[MAX_RANK], destination[MAX_RANK];
} Mapping;

Mapping mapping_identity(const Shape *shape);
Mapping mapping_slice(const Shape *source, uint32_t axis, uint32_t start, uint32_t length);
/* NumPy broadcasting of source to destination. */
Status mapping_broadcast(const Shape *source, const Shape *destination, Mapping *out);
/* Axis-factor view: `split` is cut into factor x rest, the factor is merged in front of `merge`
 * (reversed: the inverse). The shape of the result goes to *out_shape. */
Status mapping_view(const Shape *source, uint32_t split, uint32_t merge, uint32_t factor,
                    bool reversed, Shape *out_shape, Mapping *out);
/* source -> middle, then middle -> destination. */
Status mapping_compose(const Mapping *first, const Mapping *second, Mapping *out);
bool mapping_is_identity(const Mapping *mapping);

/* The bytes that move, per (source shard, destination shard): `bytes` contiguous on both sides,
 * repeated over up to three nested counts with byte steps. Runs are maximal. */
typedef struct CopyRun {
    uint32_t source_shard, destination_shard;
    uint32_t source_offset, destination_offset; /* bytes in the shards */
    uint32_t bytes;
    uint32_t count[3]; /* innermost first, each >= 1 */
    int32_t source_step[3], destination_step[3];
} CopyRun;
typedef void CopyRunSink(void *context, const CopyRun *run);
/* Precisions must be equal. Runs come ordered by destination shard, then source shard; counts that
 * are not used are 1, used ones come first. Costs are per meeting of shards, not per element. */
Status type_copy_runs(const TensorType *source, const TensorType *destination,
                      const Mapping *mapping, CopyRunSink *sink, void *context);

/* Host side: a row-major logical tensor <-> the bytes of one shard. Padding is written as zero. */
void type_pack_shard(const TensorType *type, uint32_t shard, const void *logical, uint8_t *bytes);
void type_unpack_shard(const TensorType *type, uint32_t shard, const uint8_t *bytes, void *logical);

/* "f16 left [S0/4 b2; S1/9 b16 pad] x2 interleaved @0", the form used in dumps (S: axis from the
 * start / partitions, g groups, b block, pm pad multiple, sm shard multiple, p parts x their block,
 * ts tile stride, n pieces near x tiles apart, x replicas, @ first tile; "/9 by 64 every 6" behind
 * the axes: shares); and JSON. */
void format_print(Text *text, const Format *format);
void shape_print(Text *text, const Shape *shape); /* "1x4x144" */
json_t *format_to_json(const Format *format);
Status format_from_json(const JsonPlace *place, Format *out);

/* Codecs. F16 is IEEE binary16, nearest even; F8 is F143 (amp-kernels.md 6.1). */
uint16_t half_from_float(float value);
uint16_t half_from_double(double value);
float half_to_float(uint16_t bits);
float f143_to_float(uint8_t code);
uint8_t f143_from_float(float value); /* saturates at +-240, NaN to 0x80 */
void convert_elements(const void *source, Precision from, void *destination, Precision to,
                      size_t count);

#endif
