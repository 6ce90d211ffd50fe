/* algebra.h - how two tensor types meet, as boxes of loops; inside src/tensor only.
 *
 * The one idea: a set of elements is a box of loops, and an offset is affine in a loop as long as
 * no digit of the order is crossed on the way. Four steps, none of which looks at elements:
 *   1. A shard's range of every axis becomes boxes over the mapping's atoms: one box, unless the
 *      axis is made of several atoms.                                                   (algebra.c)
 *   2. For a destination shard, every source axis gives the pieces that meet the box; their product
 *      are the source shards it reads.                                                  (algebra.c)
 *   3. Each meeting is cut at the digit boundaries of both orders: head, whole periods as an
 *      additional loop, tail.                                                           (resolve.c)
 *   4. What is left are loops with two strides each; they are fused into bytes and counts.
 *                                                                               (resolve.c, runs.c)
 */
#ifndef IPU_TENSOR_ALGEBRA_H
#define IPU_TENSOR_ALGEBRA_H

#include "tensor/internal.h"

enum { SOURCE, DESTINATION, SIDES };
enum { MAX_LOOPS = 40, MAX_STAGES = SIDES * MAX_RANK * MAX_DIGITS };

/* ---- the two sides and their common atoms ---- */

typedef struct AtomBox { /* ranges of all atoms; a table of one axis uses its own atoms only */
    uint32_t low[MAX_ATOMS], high[MAX_ATOMS];
} AtomBox;
typedef ARRAY(AtomBox) AtomBoxArray;

typedef struct SideAxis {
    AxisPiece *pieces; /* by coordinate; NULL in the destination */
    uint32_t piece_count, shard_weight;
    uint64_t base; /* index of atoms all zero */
    uint32_t atom_count;
    uint8_t atoms[MAX_ATOMS]; /* most significant first */
} SideAxis;

typedef struct Side {
    const TensorType *type;
    uint32_t axis_count; /* 1 for linear types: the flattened index */
    SideAxis axes[MAX_RANK];
} Side;

typedef struct Atom {
    uint32_t extent;
    int8_t axis[SIDES]; /* -1: broadcast */
    uint64_t weight[SIDES];
} Atom;

typedef struct Algebra {
    Side sides[SIDES];
    Atom atoms[MAX_ATOMS];
    uint32_t atom_count;
} Algebra;

/* Tables of all pieces are needed of the source only. */
void side_init(Side *side, const TensorType *type, bool with_pieces);
/* Hangs the mapping's atoms on both sides, which side_init made. */
Status algebra_link(Algebra *algebra, const Mapping *mapping);
void algebra_free(Algebra *algebra);

/* ---- who meets whom ---- */

/* Boxes of every coordinate of an axis. */
typedef struct AxisTable {
    AtomBoxArray boxes;
    uint32_t *first; /* by coordinate, one more than there are pieces */
} AxisTable;

typedef struct Option { /* of one source axis: a piece, and the atoms' ranges in it */
    uint32_t coordinate;
    AtomBox box;
} Option;
typedef ARRAY(Option) OptionArray;

/* Is called for every (source shard, box) that a destination shard reads, not in order. */
typedef struct Meeting {
    uint32_t source_shard;
    AtomBox box;
    AxisPiece pieces[MAX_RANK]; /* of the source shard */
} Meeting;
typedef ARRAY(Meeting) MeetingArray;

typedef struct Finder {
    const Algebra *algebra;
    AxisTable tables[MAX_RANK]; /* of the source */
    OptionArray options[MAX_RANK];
    AtomBoxArray boxes[MAX_RANK]; /* of the destination shard's axes */
    MeetingArray meetings;
} Finder;

void finder_init(Finder *finder, const Algebra *algebra);
void finder_free(Finder *finder);
/* Everything that a destination shard reads, ordered by source shard. */
void find_meetings(Finder *finder, const AxisPiece *destination);

/* ---- loops ---- */

typedef struct Loop {
    uint32_t count;
    int8_t axis[SIDES];
    uint64_t weight[SIDES]; /* what is not yet turned into stride, at the current level */
    int64_t stride[SIDES];  /* elements */
} Loop;

typedef struct Piece { /* loops last: only those in use are copied */
    uint64_t offset[SIDES];
    uint64_t base[SIDES][MAX_RANK];
    uint32_t loop_count;
    Loop loops[MAX_LOOPS];
} Piece;

typedef void PieceSink(void *context, const Piece *piece);

typedef struct Stage { /* one digit of one axis of one side */
    uint8_t side;
    int8_t axis;
    uint64_t block, stride;
} Stage;

typedef struct Walk {
    Stage stages[MAX_STAGES];
    uint32_t stage_count;
    PieceSink *sink;
    void *context;
} Walk;

/* The digits of a shard of one side, to be cut at. */
void add_stages(Walk *walk, uint32_t which, const Side *side, const AxisPiece *pieces);
/* Cuts a box into pieces that are affine on both sides and hands them to the sink. */
void resolve_box(Walk *walk, const Algebra *algebra, const AtomBox *box,
                 const AxisPiece *const pieces[SIDES]);
/* Resolves everything that one destination block reads; *source_block says whose turn it is. The
 * algebra knows blocks only: runs.c cuts them into shares. */
void walk_block(Finder *finder, uint32_t block, PieceSink *sink, void *context,
                uint32_t *source_block);

typedef struct Strided { /* a piece as bytes and counts, dimensions ascending in the destination */
    uint64_t bytes;
    uint64_t offset[SIDES];
    uint32_t dimension_count;
    struct {
        uint32_t count;
        int64_t step[SIDES];
    } dimensions[MAX_LOOPS];
} Strided;
void piece_strided(const Piece *piece, uint64_t element, Strided *out);

#endif
