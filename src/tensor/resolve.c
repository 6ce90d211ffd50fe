/* resolve.c - cuts meetings into loops that are affine on both sides, and fuses loops to bytes. */
#include "tensor/algebra.h"

#include <string.h>

/* ---- step 3: cutting at digits ---- */

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

void add_stages(Walk *walk, uint32_t which, const Side *side, const AxisPiece *pieces)
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

void resolve_box(Walk *walk, const Algebra *algebra, const AtomBox *box,
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

/* ---- step 4: loops to bytes and counts ---- */

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

void piece_strided(const Piece *piece, uint64_t element, Strided *out)
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

void walk_block(Finder *finder, uint32_t block, PieceSink *sink, void *context,
                uint32_t *source_block)
{
    const Algebra *algebra = finder->algebra;
    AxisPiece pieces[MAX_RANK];
    block_pieces(algebra->sides[DESTINATION].type, block, pieces);
    find_meetings(finder, pieces);
    Walk walk = {.sink = sink, .context = context};
    for (size_t i = 0; i < finder->meetings.count; i++) {
        const Meeting *meeting = &finder->meetings.items[i];
        const AxisPiece *const both[SIDES] = {meeting->pieces, pieces};
        *source_block = meeting->source_shard;
        walk.stage_count = 0;
        add_stages(&walk, DESTINATION, &algebra->sides[DESTINATION], pieces);
        add_stages(&walk, SOURCE, &algebra->sides[SOURCE], meeting->pieces);
        resolve_box(&walk, algebra, &meeting->box, both);
    }
}
