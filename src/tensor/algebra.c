/* algebra.c - which shards meet: the mapping's atoms on both sides, ranges as boxes, options. */
#include "tensor/algebra.h"

#include <string.h>

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
            block_pieces(type, c, &out->pieces[c]);
        else
            out->pieces[c] = axis_piece(type->shape.extent[axis], tiling, c);
    }
}

/* Tables of all pieces are needed of the source only. */
void side_init(Side *side, const TensorType *type, bool with_pieces)
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

Status algebra_link(Algebra *algebra, const Mapping *mapping)
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

void algebra_free(Algebra *algebra)
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

static void axis_table(const Algebra *algebra, uint32_t which, const SideAxis *axis, AxisTable *out)
{
    *out = (AxisTable){.first = xmalloc(array_bytes(axis->piece_count + 1, sizeof(uint32_t)))};
    for (uint32_t c = 0; c < axis->piece_count; c++) {
        out->first[c] = (uint32_t)out->boxes.count;
        piece_boxes(algebra, which, axis, &axis->pieces[c], &out->boxes);
    }
    out->first[axis->piece_count] = (uint32_t)out->boxes.count;
}

/* ---- step 2: who meets whom ---- */

void finder_init(Finder *finder, const Algebra *algebra)
{
    *finder = (Finder){.algebra = algebra};
    const Side *source = &algebra->sides[SOURCE];
    for (uint32_t a = 0; a < source->axis_count; a++)
        axis_table(algebra, SOURCE, &source->axes[a], &finder->tables[a]);
}

void finder_free(Finder *finder)
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
void find_meetings(Finder *finder, const AxisPiece *destination)
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
