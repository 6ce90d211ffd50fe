/* mapping.c - which element of a source each element of a destination is.
 *
 * Kept in one canonical form: atoms of extent 1 never appear, atoms are numbered in the order in
 * which the destination's axes name them. */
#include "tensor/tensor.h"

static uint8_t new_atom(Mapping *mapping, uint32_t extent)
{
    mapping->extent[mapping->atom_count] = extent;
    return (uint8_t)mapping->atom_count++;
}

static void axis_append(MappingAxis *axis, uint8_t atom)
{
    axis->atoms[axis->count++] = atom;
}

/* An atom of `extent` at the end of both axes; source may be NULL (broadcast). */
static void link_atom(Mapping *mapping, uint32_t extent, MappingAxis *source,
                      MappingAxis *destination)
{
    if (extent == 1)
        return;
    uint8_t atom = new_atom(mapping, extent);
    axis_append(destination, atom);
    if (source)
        axis_append(source, atom);
}

Mapping mapping_identity(const Shape *shape)
{
    Mapping mapping = {.source_rank = shape->rank, .destination_rank = shape->rank};
    for (uint32_t a = 0; a < shape->rank; a++)
        link_atom(&mapping, shape->extent[a], &mapping.source[a], &mapping.destination[a]);
    return mapping;
}

Mapping mapping_slice(const Shape *source, uint32_t axis, uint32_t start, uint32_t length)
{
    Shape result = *source;
    result.extent[axis] = length;
    Mapping mapping = mapping_identity(&result);
    mapping.source[axis].offset = start;
    return mapping;
}

Status mapping_broadcast(const Shape *source, const Shape *destination, Mapping *out)
{
    Mapping mapping = {.source_rank = source->rank, .destination_rank = destination->rank};
    if (source->rank > destination->rank)
        return status_error("cannot broadcast rank %u to rank %u", source->rank, destination->rank);
    uint32_t lead = destination->rank - source->rank;
    for (uint32_t a = 0; a < destination->rank; a++) {
        uint32_t extent = destination->extent[a];
        uint32_t own = a < lead ? 1 : source->extent[a - lead];
        if (own != 1 && own != extent)
            return status_error("cannot broadcast extent %u to %u on axis %u", own, extent, a);
        link_atom(&mapping, extent, own == 1 ? NULL : &mapping.source[a - lead],
                  &mapping.destination[a]);
    }
    *out = mapping;
    return STATUS_OK;
}

Status mapping_view(const Shape *source, uint32_t split, uint32_t merge, uint32_t factor,
                    bool reversed, Shape *out_shape, Mapping *out)
{
    uint32_t grown = reversed ? split : merge, cut = reversed ? merge : split;
    if (split >= source->rank || merge >= source->rank || split == merge || factor == 0)
        return status_error("view of axes %u and %u by %u of a tensor of rank %u", split, merge,
                            factor, source->rank);
    if (source->extent[cut] % factor)
        return status_error("view: %u does not divide extent %u of axis %u", factor,
                            source->extent[cut], cut);
    if ((uint64_t)source->extent[grown] * factor > INT32_MAX)
        return status_error("view: axis %u grows too long", grown);
    Shape shape = *source;
    shape.extent[cut] /= factor;
    shape.extent[grown] *= factor;

    Mapping mapping = {.source_rank = source->rank, .destination_rank = source->rank};
    for (uint32_t a = 0; a < source->rank; a++) {
        if (a == grown) /* the factor leads the grown axis and the cut axis of the source */
            link_atom(&mapping, factor, &mapping.source[cut], &mapping.destination[a]);
        uint32_t rest = a == grown ? source->extent[a] : shape.extent[a];
        if (rest > 1) {
            uint8_t atom = new_atom(&mapping, rest);
            axis_append(&mapping.destination[a], atom);
            if (a != cut)
                axis_append(&mapping.source[a], atom);
        }
    }
    if (shape.extent[cut] > 1) /* after the factor, whichever axis came first */
        axis_append(&mapping.source[cut], mapping.destination[cut].atoms[0]);
    *out = mapping;
    *out_shape = shape;
    return STATUS_OK;
}

/* ---- composition ---- */

/* How an old atom is written in new ones, most significant first; a fixed digit has no atoms. */
typedef struct Pieces {
    uint32_t offset;
    uint32_t count;
    uint8_t atoms[MAX_ATOMS];
    bool sliced; /* covers less than the old atom: more significant atoms would lose their weight */
} Pieces;

typedef struct Composition {
    Mapping result;
    Pieces first[MAX_ATOMS], second[MAX_ATOMS];
} Composition;

/* Matching goes from the least significant end, so a new atom stands in front of the others. */
static void pieces_prepend(Pieces *pieces, uint8_t atom)
{
    for (uint32_t i = pieces->count++; i > 0; i--)
        pieces->atoms[i] = pieces->atoms[i - 1];
    pieces->atoms[0] = atom;
}

/* Matches the atoms of one middle axis from the least significant end: `a` as the first mapping's
 * destination has them, `b` as the second's source has them, shifted by `offset`. */
static bool match_axis(Composition *c, const Mapping *first, const MappingAxis *a,
                       const Mapping *second, const MappingAxis *b)
{
    if (b->offset < a->offset)
        return false;
    uint32_t offset = b->offset - a->offset;
    uint32_t ia = a->count, ib = b->count, rest_a = 1, rest_b = 1, weight_a = 1;
    while (ia > 0 || rest_a > 1) {
        if (rest_a == 1) {
            rest_a = first->extent[a->atoms[--ia]];
            weight_a = 1;
        }
        if (rest_b == 1 && ib > 0)
            rest_b = second->extent[b->atoms[--ib]];
        Pieces *from = &c->first[a->atoms[ia]];
        uint32_t digit = offset % rest_a;
        if (rest_b == 1) { /* nothing varies from here up: a fixed digit */
            from->offset += digit * weight_a;
            from->sliced = true;
            offset /= rest_a;
            rest_a = 1;
            continue;
        }
        Pieces *to = &c->second[b->atoms[ib]];
        uint32_t common = rest_a < rest_b ? rest_a : rest_b;
        bool last = ib == 0 && rest_b <= rest_a;
        if (rest_a % common || rest_b % common || offset % common) {
            if (!last || digit + rest_b > rest_a)
                return false;
            common = rest_b;
        }
        if (c->result.atom_count == MAX_ATOMS)
            return false;
        uint8_t atom = new_atom(&c->result, common);
        pieces_prepend(from, atom);
        pieces_prepend(to, atom);
        if (last && (rest_a % common || digit % common)) { /* a slice of this atom */
            from->offset += digit * weight_a;
            from->sliced = true;
            offset /= rest_a;
            rest_a = rest_b = 1;
            continue;
        }
        weight_a *= common;
        offset /= common;
        rest_a /= common;
        rest_b /= common;
    }
    return rest_b == 1 && ib == 0 && offset == 0;
}

/* Rewrites an axis in new atoms. A source axis may only be sliced where nothing varies above. */
static bool rewrite_axis(const Mapping *old, const MappingAxis *axis, const Pieces *pieces,
                         MappingAxis *out)
{
    uint32_t weight = 1;
    bool closed = false;
    MappingAxis result = {.offset = axis->offset};
    for (uint32_t i = axis->count; i-- > 0;) {
        const Pieces *p = &pieces[axis->atoms[i]];
        if (closed && p->count)
            return false;
        if ((uint32_t)result.count + p->count > MAX_ATOMS)
            return false;
        for (uint32_t k = result.count; k-- > 0;)
            result.atoms[k + p->count] = result.atoms[k];
        for (uint32_t k = 0; k < p->count; k++)
            result.atoms[k] = p->atoms[k];
        result.count = (uint8_t)(result.count + p->count);
        result.offset += p->offset * weight;
        weight *= old->extent[axis->atoms[i]];
        closed |= p->sliced;
    }
    *out = result;
    return true;
}

/* Renumbers atoms in the order of the destination, dropping none. */
static void renumber(Mapping *mapping)
{
    uint8_t to[MAX_ATOMS];
    uint32_t extent[MAX_ATOMS], next = 0;
    for (uint32_t a = 0; a < mapping->destination_rank; a++)
        for (uint32_t i = 0; i < mapping->destination[a].count; i++) {
            uint8_t *atom = &mapping->destination[a].atoms[i];
            extent[next] = mapping->extent[*atom];
            to[*atom] = (uint8_t)next;
            *atom = (uint8_t)next++;
        }
    for (uint32_t a = 0; a < mapping->source_rank; a++)
        for (uint32_t i = 0; i < mapping->source[a].count; i++)
            mapping->source[a].atoms[i] = to[mapping->source[a].atoms[i]];
    for (uint32_t i = 0; i < next; i++)
        mapping->extent[i] = extent[i];
    mapping->atom_count = next;
}

Status mapping_compose(const Mapping *first, const Mapping *second, Mapping *out)
{
    if (first->destination_rank != second->source_rank)
        return status_error("cannot compose mappings of ranks %u and %u", first->destination_rank,
                            second->source_rank);
    Composition c = {0};
    Mapping *result = &c.result;
    result->source_rank = first->source_rank;
    result->destination_rank = second->destination_rank;
    bool seen[MAX_ATOMS] = {false}, good = true;
    for (uint32_t a = 0; a < second->source_rank; a++) {
        good = good && match_axis(&c, first, &first->destination[a], second, &second->source[a]);
        for (uint32_t i = 0; i < second->source[a].count; i++)
            seen[second->source[a].atoms[i]] = true;
    }
    for (uint32_t i = 0; i < second->atom_count && good; i++) { /* broadcasts of the second */
        if (seen[i])
            continue;
        good = result->atom_count < MAX_ATOMS;
        if (good)
            pieces_prepend(&c.second[i], new_atom(result, second->extent[i]));
    }
    for (uint32_t a = 0; a < second->destination_rank; a++)
        good = good &&
               rewrite_axis(second, &second->destination[a], c.second, &result->destination[a]);
    for (uint32_t a = 0; a < first->source_rank; a++)
        good = good && rewrite_axis(first, &first->source[a], c.first, &result->source[a]);
    if (!good)
        return status_error("the two mappings do not compose to one");
    renumber(result);
    *out = *result;
    return STATUS_OK;
}

bool mapping_is_identity(const Mapping *mapping)
{
    if (mapping->source_rank != mapping->destination_rank)
        return false;
    for (uint32_t a = 0; a < mapping->source_rank; a++) {
        const MappingAxis *s = &mapping->source[a], *d = &mapping->destination[a];
        if (s->offset || d->offset || s->count != d->count)
            return false;
        for (uint32_t i = 0; i < s->count; i++)
            if (s->atoms[i] != d->atoms[i])
                return false;
    }
    return true;
}
