/* runs.c - the bytes that move between two types, and the host's packing, as strided runs.
 *
 * The one idea: a set of elements is a box of loops, and an offset is affine in a loop as long as
 * no digit of the order is crossed on the way. Four steps, none of which looks at elements:
 *   1. A shard's range of every axis becomes boxes over the mapping's atoms (axis_boxes): one box,
 *      unless the axis is made of several atoms.
 *   2. For a destination shard, every source axis gives the pieces that meet the box
 * (find_options); their product are the source shards it reads.
 *   3. Each meeting is cut at the digit boundaries of both orders (resolve): head, whole periods as
 *      an additional loop, tail.
 *   4. What is left are loops with two strides each; they are fused into bytes and counts (emit).
 */
#include "tensor/internal.h"

#include <string.h>

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

static void side_add_axis(Side *side, const TensorType *type, uint32_t axis, bool with_pieces)
{
    SideAxis *out = &side->axes[side->axis_count++];
    bool linear = type_is_linear(type);
    const AxisTiling *tiling = linear ? &type->format.axes[0] : format_axis(&type->format, axis);
    for (uint32_t i = 0; i < type->format.axis_count && &type->format.axes[i] != tiling; i++)
        out->shard_weight *= type->format.axes[i].partitions;
    if (!with_pieces)
        return;
    out->piece_count = tiling ? tiling->partitions : 1;
    out->pieces = xmalloc(array_bytes(out->piece_count, sizeof *out->pieces));
    for (uint32_t c = 0; c < out->piece_count; c++) {
        if (linear)
            shard_pieces(type, c, &out->pieces[c]);
        else
            out->pieces[c] = axis_piece(type->shape.extent[axis], tiling, c);
    }
}

/* Tables of all pieces are needed of the source only. */
static void side_init(Side *side, const TensorType *type, bool with_pieces)
{
    *side = (Side){.type = type};
    for (uint32_t a = 0; a < MAX_RANK; a++)
        side->axes[a].shard_weight = 1;
    uint32_t axes = type_is_linear(type) ? 1 : type->shape.rank;
    for (uint32_t a = 0; a < axes; a++)
        side_add_axis(side, type, a, with_pieces);
}

/* Hangs the mapping's atoms on the axes of one side; linear sides scale by row-major strides. */
static Status side_link(Algebra *algebra, uint32_t which, const MappingAxis *axes, uint32_t rank,
                        const Mapping *mapping)
{
    Side *side = &algebra->sides[which];
    const Shape *shape = &side->type->shape;
    if (rank != shape->rank)
        return status_error("the mapping has rank %u, the tensor %u", rank, shape->rank);
    bool linear = type_is_linear(side->type);
    uint64_t scale = shape_elements(shape);
    for (uint32_t a = 0; a < rank; a++) {
        scale /= shape->extent[a];
        SideAxis *target = &side->axes[linear ? 0 : a];
        uint64_t weight = linear ? scale : 1, extent = 1;
        for (uint32_t i = axes[a].count; i-- > 0;) {
            Atom *atom = &algebra->atoms[axes[a].atoms[i]];
            if (atom->axis[which] >= 0)
                return status_error("atom %u stands in two axes", axes[a].atoms[i]);
            atom->axis[which] = (int8_t)(linear ? 0 : a);
            atom->weight[which] = weight * extent;
            extent *= mapping->extent[axes[a].atoms[i]];
            if (extent > shape->extent[a])
                break;
        }
        if (axes[a].offset + extent > shape->extent[a])
            return status_error("axis %u: the mapping reaches %llu of %u", a,
                                (unsigned long long)(axes[a].offset + extent), shape->extent[a]);
        target->base += axes[a].offset * weight;
        for (uint32_t i = 0; i < axes[a].count; i++)
            target->atoms[target->atom_count++] = axes[a].atoms[i];
    }
    return STATUS_OK;
}

static Status algebra_link(Algebra *algebra, const Mapping *mapping)
{
    if (mapping->atom_count > MAX_ATOMS)
        return status_error("the mapping has %u atoms", mapping->atom_count);
    algebra->atom_count = mapping->atom_count;
    for (uint32_t i = 0; i < mapping->atom_count; i++)
        algebra->atoms[i] = (Atom){.extent = mapping->extent[i], .axis = {-1, -1}};
    TRY(side_link(algebra, SOURCE, mapping->source, mapping->source_rank, mapping));
    TRY(side_link(algebra, DESTINATION, mapping->destination, mapping->destination_rank, mapping));
    for (uint32_t i = 0; i < mapping->atom_count; i++)
        if (algebra->atoms[i].axis[DESTINATION] < 0)
            return status_error("atom %u does not stand in the destination", i);
    return STATUS_OK;
}

static void algebra_free(Algebra *algebra)
{
    for (uint32_t s = 0; s < SIDES; s++)
        for (uint32_t a = 0; a < algebra->sides[s].axis_count; a++)
            free(algebra->sides[s].axes[a].pieces);
}

/* ---- step 1: ranges as boxes ---- */

/* Boxes over the atoms [at..] of an axis whose weighted sum lies in [low, high). Atoms nest: the
 * sum of the later ones never reaches the weight of an earlier one. */
static void axis_boxes(const Algebra *algebra, uint32_t which, const SideAxis *axis, uint32_t at,
                       int64_t low, int64_t high, AtomBox *box, AtomBoxArray *out)
{
    if (at == axis->atom_count) {
        if (low <= 0 && high > 0)
            array_push(out, *box);
        return;
    }
    uint32_t index = axis->atoms[at];
    const Atom *atom = &algebra->atoms[index];
    int64_t weight = (int64_t)atom->weight[which], span = 0;
    for (uint32_t i = at + 1; i < axis->atom_count; i++) {
        const Atom *later = &algebra->atoms[axis->atoms[i]];
        span += (int64_t)later->weight[which] * (later->extent - 1);
    }
    int64_t last = atom->extent - 1;
    int64_t first_any = low <= span ? 0 : (low - span + weight - 1) / weight;
    int64_t last_any = high <= 0 ? -1 : (high - 1) / weight;
    int64_t first_whole = low <= 0 ? 0 : (low + weight - 1) / weight;
    int64_t last_whole = high - 1 < span ? -1 : (high - 1 - span) / weight;
    last_any = last_any < last ? last_any : last;
    last_whole = last_whole < last ? last_whole : last;
    for (int64_t x = first_any; x <= last_any;) {
        bool whole = x >= first_whole && x <= last_whole;
        int64_t end = whole ? last_whole + 1 : x + 1;
        box->low[index] = (uint32_t)x;
        box->high[index] = (uint32_t)end;
        if (whole)
            axis_boxes(algebra, which, axis, at + 1, 0, span + 1, box, out);
        else
            axis_boxes(algebra, which, axis, at + 1, low - x * weight, high - x * weight, box, out);
        x = end;
    }
}

static void piece_boxes(const Algebra *algebra, uint32_t which, const SideAxis *axis,
                        const AxisPiece *piece, AtomBoxArray *out)
{
    AtomBox box = {0};
    axis_boxes(algebra, which, axis, 0, (int64_t)piece->start - (int64_t)axis->base,
               (int64_t)piece->logical_end - (int64_t)axis->base, &box, out);
}

/* Boxes of every coordinate of an axis. */
typedef struct AxisTable {
    AtomBoxArray boxes;
    uint32_t *first; /* by coordinate, one more than there are pieces */
} AxisTable;

static void axis_table(const Algebra *algebra, uint32_t which, const SideAxis *axis, AxisTable *out)
{
    *out = (AxisTable){.first = xmalloc(array_bytes(axis->piece_count + 1, sizeof(uint32_t)))};
    for (uint32_t c = 0; c < axis->piece_count; c++) {
        out->first[c] = (uint32_t)out->boxes.count;
        piece_boxes(algebra, which, axis, &axis->pieces[c], &out->boxes);
    }
    out->first[axis->piece_count] = (uint32_t)out->boxes.count;
}

/* ---- step 3: cutting at digits ---- */

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

static void piece_copy(Piece *to, const Piece *from)
{
    memcpy(to, from, offsetof(Piece, loops) + from->loop_count * sizeof(Loop));
}

/* The part [first, first + count) of one loop. */
static void piece_slice(Piece *to, const Piece *from, uint32_t loop, uint32_t first, uint32_t count)
{
    piece_copy(to, from);
    Loop *l = &to->loops[loop];
    for (uint32_t s = 0; s < SIDES; s++) {
        to->offset[s] += (uint64_t)l->stride[s] * first;
        if (l->axis[s] >= 0)
            to->base[s][l->axis[s]] += l->weight[s] * first;
    }
    l->count = count;
    if (count == 1)
        *l = to->loops[--to->loop_count];
}

static void resolve(const Walk *walk, Piece *piece, uint32_t stage);

static void resolve_part(const Walk *walk, const Piece *piece, uint32_t stage, uint32_t loop,
                         uint32_t first, uint32_t count)
{
    Piece part;
    if (count == 0)
        return;
    piece_slice(&part, piece, loop, first, count);
    resolve(walk, &part, stage);
}

/* Whole periods: the loop becomes periods x period. */
static void resolve_periods(const Walk *walk, const Piece *piece, uint32_t stage, uint32_t loop,
                            uint32_t first, uint32_t periods, uint32_t period)
{
    Piece part;
    piece_slice(&part, piece, loop, first, periods * period);
    Loop outer = part.loops[loop];
    part.loops[loop].count = period;
    outer.count = periods;
    for (uint32_t s = 0; s < SIDES; s++) {
        outer.weight[s] *= period;
        outer.stride[s] *= period;
    }
    if (periods > 1)
        part.loops[part.loop_count++] = outer;
    resolve(walk, &part, stage);
}

/* The digit changes inside the piece, and not evenly: cut a loop and go on with the parts. */
static void cut(const Walk *walk, const Piece *piece, uint32_t at)
{
    const Stage *stage = &walk->stages[at];
    uint64_t base = piece->base[stage->side][stage->axis], rest = 0, block = stage->block;
    uint32_t widest = MAX_LOOPS;
    for (uint32_t i = 0; i < piece->loop_count; i++) {
        const Loop *l = &piece->loops[i];
        if (l->axis[stage->side] != stage->axis || !l->weight[stage->side])
            continue;
        rest += l->weight[stage->side] * (l->count - 1);
        if (widest == MAX_LOOPS ||
            l->weight[stage->side] > piece->loops[widest].weight[stage->side])
            widest = i;
    }
    const Loop *loop = &piece->loops[widest];
    uint64_t weight = loop->weight[stage->side];
    rest -= weight * (loop->count - 1);

    bool periodic = weight < block && block % weight == 0 && base % weight + rest < weight;
    if (periodic && piece->loop_count < MAX_LOOPS) {
        uint64_t period = block / weight, phase = base / weight % period;
        uint64_t head = phase ? period - phase : 0;
        uint32_t periods = (loop->count - (uint32_t)head) / (uint32_t)period;
        uint32_t end = (uint32_t)head + periods * (uint32_t)period;
        resolve_part(walk, piece, at, widest, 0, (uint32_t)head);
        if (periods)
            resolve_periods(walk, piece, at, widest, (uint32_t)head, periods, (uint32_t)period);
        resolve_part(walk, piece, at, widest, end, loop->count - end);
        return;
    }
    if (rest == 0 && weight < block) { /* one loop: cut where it crosses */
        uint64_t first = (block - base % block + weight - 1) / weight;
        resolve_part(walk, piece, at, widest, 0, (uint32_t)first);
        resolve_part(walk, piece, at, widest, (uint32_t)first, loop->count - (uint32_t)first);
        return;
    }
    for (uint32_t i = 0; i < loop->count; i++)
        resolve_part(walk, piece, at, widest, i, 1);
}

static void resolve(const Walk *walk, Piece *piece, uint32_t stage)
{
    for (; stage < walk->stage_count; stage++) {
        const Stage *s = &walk->stages[stage];
        uint64_t *base = &piece->base[s->side][s->axis];
        piece->offset[s->side] += *base / s->block * s->stride;
        *base %= s->block;
        uint64_t reach = *base;
        for (uint32_t i = 0; i < piece->loop_count; i++) {
            Loop *l = &piece->loops[i];
            if (l->axis[s->side] != s->axis || !l->weight[s->side])
                continue;
            uint64_t *weight = &l->weight[s->side];
            if (*weight % s->block == 0) {
                l->stride[s->side] += (int64_t)(*weight / s->block * s->stride);
                *weight = 0;
            } else {
                reach += *weight * (l->count - 1);
            }
        }
        if (reach >= s->block) {
            cut(walk, piece, stage);
            return;
        }
    }
    walk->sink(walk->context, piece);
}

static void add_stages(Walk *walk, uint32_t which, const Side *side, const AxisPiece *pieces)
{
    AxisDigits digits[MAX_RANK] = {{1, {1}, {1}}};
    uint32_t physical[MAX_RANK];
    for (uint32_t a = 0; a < side->axis_count; a++)
        physical[a] = pieces[a].physical_end - pieces[a].start;
    if (!type_is_linear(side->type))
        order_digits(&side->type->format, side->axis_count, physical, digits);
    for (uint32_t a = 0; a < side->axis_count; a++)
        for (uint32_t d = digits[a].count; d-- > 0;)
            walk->stages[walk->stage_count++] =
                (Stage){(uint8_t)which, (int8_t)a, digits[a].block[d], digits[a].stride[d]};
}

static void resolve_box(Walk *walk, const Algebra *algebra, const AtomBox *box,
                        const AxisPiece *const pieces[SIDES])
{
    Piece piece;
    piece.loop_count = 0;
    for (uint32_t s = 0; s < SIDES; s++) {
        piece.offset[s] = 0;
        for (uint32_t a = 0; a < algebra->sides[s].axis_count; a++)
            piece.base[s][a] = algebra->sides[s].axes[a].base - pieces[s][a].start;
    }
    for (uint32_t i = 0; i < algebra->atom_count; i++) {
        const Atom *atom = &algebra->atoms[i];
        for (uint32_t s = 0; s < SIDES; s++)
            if (atom->axis[s] >= 0)
                piece.base[s][atom->axis[s]] += atom->weight[s] * box->low[i];
        if (box->high[i] - box->low[i] > 1)
            piece.loops[piece.loop_count++] =
                (Loop){.count = box->high[i] - box->low[i],
                       .axis = {atom->axis[SOURCE], atom->axis[DESTINATION]},
                       .weight = {atom->weight[SOURCE], atom->weight[DESTINATION]}};
    }
    resolve(walk, &piece, 0);
}

/* ---- step 2: who meets whom ---- */

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

static void finder_init(Finder *finder, const Algebra *algebra)
{
    *finder = (Finder){.algebra = algebra};
    const Side *source = &algebra->sides[SOURCE];
    for (uint32_t a = 0; a < source->axis_count; a++)
        axis_table(algebra, SOURCE, &source->axes[a], &finder->tables[a]);
}

static void finder_free(Finder *finder)
{
    for (uint32_t a = 0; a < MAX_RANK; a++) {
        array_free(&finder->tables[a].boxes);
        free(finder->tables[a].first);
        array_free(&finder->options[a]);
        array_free(&finder->boxes[a]);
    }
    array_free(&finder->meetings);
}

/* First coordinate whose piece ends after `index`. Pieces ascend; empty ones may lie in the padding
 * behind their group's end, so ends are compared by what they cover of the whole axis. */
static uint32_t first_piece_after(const SideAxis *axis, uint64_t index)
{
    uint32_t low = 0, high = axis->piece_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2, probe = middle;
        while (probe > low && axis->pieces[probe].logical_end == axis->pieces[probe].start)
            probe--; /* an empty piece says nothing: ask the one before it */
        bool empty = axis->pieces[probe].logical_end == axis->pieces[probe].start;
        if (empty || axis->pieces[probe].logical_end <= index)
            low = middle + 1;
        else
            high = probe;
    }
    return low;
}

static bool intersect(const SideAxis *axis, const AtomBox *a, const AtomBox *b, AtomBox *out)
{
    for (uint32_t i = 0; i < axis->atom_count; i++) {
        uint32_t atom = axis->atoms[i];
        out->low[atom] = max_u32(a->low[atom], b->low[atom]);
        out->high[atom] = min_u32(a->high[atom], b->high[atom]);
        if (out->low[atom] >= out->high[atom])
            return false;
    }
    return true;
}

static void find_options(Finder *finder, uint32_t a, const AtomBox *box)
{
    const SideAxis *axis = &finder->algebra->sides[SOURCE].axes[a];
    uint64_t low = axis->base, high = axis->base;
    for (uint32_t i = 0; i < axis->atom_count; i++) {
        uint32_t atom = axis->atoms[i];
        low += finder->algebra->atoms[atom].weight[SOURCE] * box->low[atom];
        high += finder->algebra->atoms[atom].weight[SOURCE] * (box->high[atom] - 1);
    }
    OptionArray *options = &finder->options[a];
    options->count = 0;
    for (uint32_t c = first_piece_after(axis, low); c < axis->piece_count; c++) {
        const AxisPiece *piece = &axis->pieces[c];
        if (piece->logical_end == piece->start)
            continue;
        if (piece->start > high)
            break;
        for (uint32_t k = finder->tables[a].first[c]; k < finder->tables[a].first[c + 1]; k++) {
            Option option = {.coordinate = c};
            if (intersect(axis, box, &finder->tables[a].boxes.items[k], &option.box))
                array_push(options, option);
        }
    }
}

/* The product of the axes' options, the fastest shard digit innermost. */
static void add_meetings(Finder *finder, const AtomBox *box)
{
    const Side *source = &finder->algebra->sides[SOURCE];
    uint32_t at[MAX_RANK] = {0};
    for (uint32_t a = 0; a < source->axis_count; a++) {
        find_options(finder, a, box);
        if (finder->options[a].count == 0)
            return;
    }
    for (;;) {
        Meeting meeting = {.box = *box};
        for (uint32_t a = 0; a < source->axis_count; a++) {
            const SideAxis *axis = &source->axes[a];
            const Option *option = &finder->options[a].items[at[a]];
            meeting.source_shard += option->coordinate * axis->shard_weight;
            meeting.pieces[a] = axis->pieces[option->coordinate];
            for (uint32_t i = 0; i < axis->atom_count; i++) {
                meeting.box.low[axis->atoms[i]] = option->box.low[axis->atoms[i]];
                meeting.box.high[axis->atoms[i]] = option->box.high[axis->atoms[i]];
            }
        }
        array_push(&finder->meetings, meeting);
        uint32_t a = 0;
        while (a < source->axis_count && ++at[a] == finder->options[a].count)
            at[a++] = 0;
        if (a == source->axis_count)
            return;
    }
}

/* Stable order by source shard: nearly sorted already. */
static void sort_meetings(MeetingArray *meetings)
{
    for (size_t i = 1; i < meetings->count; i++) {
        size_t j = i;
        if (meetings->items[j - 1].source_shard <= meetings->items[j].source_shard)
            continue;
        Meeting moved = meetings->items[i];
        size_t low = 0, high = i; /* first with a greater shard */
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (meetings->items[middle].source_shard <= moved.source_shard)
                low = middle + 1;
            else
                high = middle;
        }
        memmove(&meetings->items[low + 1], &meetings->items[low], (i - low) * sizeof moved);
        meetings->items[low] = moved;
    }
}

/* Everything that a destination shard reads. */
static void find_meetings(Finder *finder, const AxisPiece *destination)
{
    const Side *side = &finder->algebra->sides[DESTINATION];
    uint32_t at[MAX_RANK] = {0};
    finder->meetings.count = 0;
    for (uint32_t a = 0; a < side->axis_count; a++) {
        finder->boxes[a].count = 0;
        piece_boxes(finder->algebra, DESTINATION, &side->axes[a], &destination[a],
                    &finder->boxes[a]);
        if (finder->boxes[a].count == 0)
            return;
    }
    for (;;) {
        AtomBox box = {0};
        for (uint32_t a = 0; a < side->axis_count; a++)
            for (uint32_t i = 0; i < side->axes[a].atom_count; i++) {
                uint32_t atom = side->axes[a].atoms[i];
                box.low[atom] = finder->boxes[a].items[at[a]].low[atom];
                box.high[atom] = finder->boxes[a].items[at[a]].high[atom];
            }
        add_meetings(finder, &box);
        uint32_t a = side->axis_count;
        while (a > 0 && ++at[a - 1] == finder->boxes[a - 1].count)
            at[--a] = 0;
        if (a == 0)
            break;
    }
    sort_meetings(&finder->meetings);
}

/* ---- step 4: loops to runs ---- */

typedef struct Strided { /* a piece as bytes and counts, dimensions ascending in the destination */
    uint64_t bytes;
    uint64_t offset[SIDES];
    uint32_t dimension_count;
    struct {
        uint32_t count;
        int64_t step[SIDES];
    } dimensions[MAX_LOOPS];
} Strided;

/* Fuses every dimension that continues another one (or the contiguous bytes) into it. */
static void fuse(Strided *run)
{
    uint32_t n = run->dimension_count;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < n; i++) {
            int64_t source = run->dimensions[i].step[SOURCE];
            int64_t destination = run->dimensions[i].step[DESTINATION];
            bool contiguous = source == (int64_t)run->bytes && destination == (int64_t)run->bytes;
            uint32_t j = 0;
            if (contiguous)
                run->bytes *= run->dimensions[i].count;
            for (; j < n && !contiguous; j++) {
                int64_t count = run->dimensions[j].count;
                if (j != i && source == run->dimensions[j].step[SOURCE] * count &&
                    destination == run->dimensions[j].step[DESTINATION] * count)
                    break;
            }
            if (!contiguous && j == n)
                continue;
            if (!contiguous)
                run->dimensions[j].count *= run->dimensions[i].count;
            run->dimensions[i] = run->dimensions[--n];
            changed = true;
            break;
        }
    }
    for (uint32_t i = 1; i < n; i++) /* by destination step, then source step */
        for (uint32_t j = i; j > 0; j--) {
            int64_t *low = run->dimensions[j - 1].step, *high = run->dimensions[j].step;
            if (low[DESTINATION] < high[DESTINATION] ||
                (low[DESTINATION] == high[DESTINATION] && low[SOURCE] <= high[SOURCE]))
                break;
            __typeof__(run->dimensions[0]) other = run->dimensions[j - 1];
            run->dimensions[j - 1] = run->dimensions[j];
            run->dimensions[j] = other;
        }
    run->dimension_count = n;
}

static void piece_strided(const Piece *piece, uint64_t element, Strided *out)
{
    out->bytes = element;
    out->dimension_count = piece->loop_count;
    for (uint32_t s = 0; s < SIDES; s++)
        out->offset[s] = piece->offset[s] * element;
    for (uint32_t i = 0; i < piece->loop_count; i++) {
        out->dimensions[i].count = piece->loops[i].count;
        for (uint32_t s = 0; s < SIDES; s++)
            out->dimensions[i].step[s] = piece->loops[i].stride[s] * (int64_t)element;
    }
    fuse(out);
}

typedef ARRAY(CopyRun) CopyRunArray;

static bool same_dimensions(const CopyRun *a, const CopyRun *b, uint32_t dimensions)
{
    for (uint32_t d = 0; d < dimensions; d++)
        if (a->count[d] != b->count[d] || a->source_step[d] != b->source_step[d] ||
            a->destination_step[d] != b->destination_step[d])
            return false;
    return true;
}

/* The next run continues the last one: on both sides the bytes go on, or the outer count does. */
static bool continues(CopyRun *last, const CopyRun *next)
{
    if (last->source_shard != next->source_shard ||
        last->destination_shard != next->destination_shard)
        return false;
    uint32_t source = next->source_offset - last->source_offset;
    uint32_t destination = next->destination_offset - last->destination_offset;
    bool plain = last->count[0] == 1 && next->count[0] == 1;
    if (plain && source == last->bytes && destination == last->bytes) {
        last->bytes += next->bytes;
        return true;
    }
    if (last->bytes != next->bytes)
        return false;
    if (same_dimensions(last, next, 3)) {
        uint32_t free = 0; /* two of a kind start a new dimension */
        while (free < 3 && last->count[free] > 1)
            free++;
        if (free == 3 || next->source_offset < last->source_offset ||
            next->destination_offset < last->destination_offset)
            return false;
        last->count[free] = 2;
        last->source_step[free] = (int32_t)source;
        last->destination_step[free] = (int32_t)destination;
        return true;
    }
    uint32_t outer = 3; /* outermost dimension of last in use */
    while (outer > 0 && last->count[outer - 1] == 1)
        outer--;
    if (outer == 0 || !same_dimensions(last, next, outer - 1))
        return false;
    if (next->count[outer - 1] != 1)
        return false;
    uint32_t count = last->count[outer - 1];
    if (source != (uint32_t)last->source_step[outer - 1] * count ||
        destination != (uint32_t)last->destination_step[outer - 1] * count)
        return false;
    last->count[outer - 1]++;
    return true;
}

typedef struct RunBuilder {
    CopyRunArray runs; /* of one destination shard */
    uint64_t element;
    uint32_t source_shard, destination_shard;
} RunBuilder;

/* Dimensions beyond three are written out, outermost first. */
static void push_runs(RunBuilder *builder, const Strided *strided, uint32_t dimensions,
                      uint64_t source, uint64_t destination)
{
    if (dimensions > 3) {
        uint32_t d = dimensions - 1;
        for (uint32_t i = 0; i < strided->dimensions[d].count; i++)
            push_runs(builder, strided, d,
                      source + (uint64_t)strided->dimensions[d].step[SOURCE] * i,
                      destination + (uint64_t)strided->dimensions[d].step[DESTINATION] * i);
        return;
    }
    CopyRun run = {.source_shard = builder->source_shard,
                   .destination_shard = builder->destination_shard,
                   .source_offset = (uint32_t)source,
                   .destination_offset = (uint32_t)destination,
                   .bytes = (uint32_t)strided->bytes,
                   .count = {1, 1, 1}};
    for (uint32_t d = 0; d < dimensions; d++) {
        run.count[d] = strided->dimensions[d].count;
        run.source_step[d] = (int32_t)strided->dimensions[d].step[SOURCE];
        run.destination_step[d] = (int32_t)strided->dimensions[d].step[DESTINATION];
    }
    CopyRunArray *runs = &builder->runs;
    if (runs->count == 0 || !continues(&runs->items[runs->count - 1], &run))
        array_push(runs, run);
}

static void build_runs(void *context, const Piece *piece)
{
    RunBuilder *builder = context;
    Strided strided;
    piece_strided(piece, builder->element, &strided);
    push_runs(builder, &strided, strided.dimension_count, strided.offset[SOURCE],
              strided.offset[DESTINATION]);
}

/* Resolves everything that one destination shard reads; *source_shard says whose turn it is. */
static void walk_shard(Finder *finder, uint32_t shard, PieceSink *sink, void *context,
                       uint32_t *source_shard)
{
    const Algebra *algebra = finder->algebra;
    AxisPiece pieces[MAX_RANK];
    shard_pieces(algebra->sides[DESTINATION].type, shard, pieces);
    find_meetings(finder, pieces);
    Walk walk = {.sink = sink, .context = context};
    for (size_t i = 0; i < finder->meetings.count; i++) {
        const Meeting *meeting = &finder->meetings.items[i];
        const AxisPiece *const both[SIDES] = {meeting->pieces, pieces};
        *source_shard = meeting->source_shard;
        walk.stage_count = 0;
        add_stages(&walk, DESTINATION, &algebra->sides[DESTINATION], pieces);
        add_stages(&walk, SOURCE, &algebra->sides[SOURCE], meeting->pieces);
        resolve_box(&walk, algebra, &meeting->box, both);
    }
}

Status type_copy_runs(const TensorType *source, const TensorType *destination,
                      const Mapping *mapping, CopyRunSink *sink, void *context)
{
    if (source->format.precision.kind != destination->format.precision.kind)
        return status_error("a copy cannot change the precision");
    TRY(status_context(type_check(source), "copy source"));
    TRY(status_context(type_check(destination), "copy destination"));
    Algebra algebra = {0};
    side_init(&algebra.sides[SOURCE], source, true);
    side_init(&algebra.sides[DESTINATION], destination, false);
    Status status = algebra_link(&algebra, mapping);
    if (!status_ok(status)) {
        algebra_free(&algebra);
        return status;
    }
    Finder finder;
    finder_init(&finder, &algebra);
    RunBuilder builder = {.element = precision_bytes(source->format.precision)};
    uint32_t shards = type_shard_count(destination);
    for (uint32_t shard = 0; shard < shards; shard++) {
        builder.destination_shard = shard;
        builder.runs.count = 0;
        walk_shard(&finder, shard, build_runs, &builder, &builder.source_shard);
        for (size_t i = 0; i < builder.runs.count; i++)
            sink(context, &builder.runs.items[i]);
    }
    array_free(&builder.runs);
    finder_free(&finder);
    algebra_free(&algebra);
    return STATUS_OK;
}

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
void type_padding_runs(const TensorType *type, uint32_t shard, ByteRunArray *out)
{
    out->count = 0;
    AxisPiece pieces[MAX_RANK];
    uint32_t axes = shard_pieces(type, shard, pieces);
    if (type_is_linear(type) || type_shard_bytes(type, shard) == 0)
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

/* ---- the host's side: a copy from or to a row-major tensor on one tile ---- */

typedef struct HostCopy {
    uint64_t element;
    const uint8_t *from; /* pack: logical to shard */
    uint8_t *to;
    uint32_t from_side;
} HostCopy;

static void move_bytes(const HostCopy *copy, const Strided *strided, uint32_t dimensions,
                       uint64_t from, uint64_t to)
{
    if (dimensions == 0) {
        memcpy(copy->to + to, copy->from + from, strided->bytes);
        return;
    }
    uint32_t d = dimensions - 1, f = copy->from_side;
    int64_t step_from = strided->dimensions[d].step[f], step_to = strided->dimensions[d].step[!f];
    uint32_t count = strided->dimensions[d].count;
    if (d == 0 && strided->bytes == 2) { /* transposing orders: the common slow case */
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
    side_init(&algebra.sides[SOURCE], &host, true);
    side_init(&algebra.sides[DESTINATION], type, false);
    Finder finder = {.algebra = &algebra};
    if (!status_discard(algebra_link(&algebra, &mapping))) { /* cannot fail: identity */
        uint32_t source_shard;
        finder_init(&finder, &algebra);
        walk_shard(&finder, shard, move_piece, copy, &source_shard);
    }
    finder_free(&finder);
    algebra_free(&algebra);
}

void type_pack_shard(const TensorType *type, uint32_t shard, const void *logical, uint8_t *bytes)
{
    HostCopy copy = {precision_bytes(type->format.precision), logical, bytes, SOURCE};
    memset(bytes, 0, type_shard_bytes(type, shard));
    host_copy(type, shard, &copy);
}

void type_unpack_shard(const TensorType *type, uint32_t shard, const uint8_t *bytes, void *logical)
{
    HostCopy copy = {precision_bytes(type->format.precision), bytes, logical, DESTINATION};
    host_copy(type, shard, &copy);
}
