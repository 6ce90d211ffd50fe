/* norm.c - kernels/norm.inc on the host. */
#include "kernel/norm.h"

enum { STACK_LIMIT = 224 /* of the supervisor's 256 bytes */ };
static const uint32_t all_parts[] = {1, 2, 3, 6};

static uint32_t statistics_bytes(const NormShape *s) /* of one row */
{
    return (s->parts + 1) / 2 * 16;
}

uint32_t norm_frame_bytes(const NormShape *s)
{
    return 4 * s->operands + (s->parts > 1 ? s->rows * statistics_bytes(s) : 0);
}

NormShape norm_cut(NormShape s, NormCycles *cycles)
{
    NormShape best = s;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < countof(all_parts); i++) {
        Clock clock = {0};
        s.parts = all_parts[i];
        s.quads = s.columns / 4 / s.parts;
        s.teams = TILE_WORKERS / s.parts;
        if (s.columns % (4 * s.parts) != 0 || s.quads < 2 || s.quads > REPEAT_LIMIT ||
            norm_frame_bytes(&s) > STACK_LIMIT)
            continue;
        cycles(&s, &clock);
        if (clock.now < least) {
            least = clock.now;
            best = s;
        }
    }
    return best;
}

float norm_reciprocal(const NormShape *s)
{
    return 1 / (float)(s->quads * 4);
}

uint64_t norm_rows_of_team(const NormShape *s, uint32_t team)
{
    return s->rows / s->teams + (team < s->rows % s->teams);
}

uint64_t norm_find_slice(const NormShape *s, uint32_t loads, uint32_t team, bool *leaves)
{
    static const uint8_t part_and_team[] = {[1] = 2, [2] = 2, [3] = 4, [6] = 1};
    bool rest = s->rows % s->teams != 0;
    uint64_t slots = 1u + loads + part_and_team[s->parts] + (rest ? 2 : 1);
    *leaves = norm_rows_of_team(s, team) == 0;
    return *leaves ? slots : slots + (s->parts > 1 ? 6 : 1);
}

uint64_t norm_slice_statistics(const NormShape *s)
{
    return s->adds ? 19 + 5 * (uint64_t)s->quads : 21 + 3 * (uint64_t)s->quads;
}

uint64_t norm_combine(const NormShape *s)
{
    return s->parts == 6 ? 21 : s->parts == 3 ? 17 : 13;
}

uint64_t norm_next_row(const NormShape *s)
{
    return s->rows > s->teams ? (s->parts > 1 ? 4 : 3) : 0;
}

Slice norm_slice(const NormShape *s, uint32_t part, const uint8_t *x, uint8_t *out)
{
    static const double ones[4] = {1, 1, 1, 1};
    float reciprocal = norm_reciprocal(s);
    HalfSums sums = {0}, squares = {0};
    for (uint32_t q = part; q < s->columns / 4; q += s->parts) {
        double quad[4];
        for (uint32_t i = 0; i < 4; i++)
            quad[i] = half_of(x, 4 * q + i);
        half_accumulate(&sums, quad, ones);
    }
    Slice slice = {.mean = (sums.low + sums.high) * reciprocal};
    slice.centre = (float)half_round((double)slice.mean);
    for (uint32_t q = part; q < s->columns / 4; q += s->parts) {
        double quad[4];
        for (uint32_t i = 0; i < 4; i++) {
            quad[i] = half_round((double)slice.centre - half_of(x, 4 * q + i));
            if (out)
                half_set(out, 4 * q + i, quad[i]);
        }
        half_accumulate(&squares, quad, quad);
    }
    float away = slice.mean - slice.centre;
    float mean_square = (squares.low + squares.high) * reciprocal;
    slice.variance = fmaxf(mean_square - away * away, 0);
    return slice;
}

/* COMBINE: its order of additions. */
Slice norm_row(const NormShape *s, const Slice *slices)
{
    if (s->parts == 1)
        return slices[0];
    float one_part = 1 / (float)s->parts, sum[2] = {0}, variance[2] = {0}, spread[2] = {0};
    for (uint32_t i = 0; i < s->parts; i++) {
        sum[i % 2] = i < 2 ? slices[i].mean : sum[i % 2] + slices[i].mean;
        variance[i % 2] = i < 2 ? slices[i].variance : variance[i % 2] + slices[i].variance;
    }
    if (s->parts == 3) { /* one lane: the first two, then the third */
        sum[0] = (slices[0].mean + slices[1].mean) + slices[2].mean;
        variance[0] = (slices[0].variance + slices[1].variance) + slices[2].variance;
        sum[1] = variance[1] = 0;
    }
    Slice row = {.mean = (sum[0] + sum[1]) * one_part};
    for (uint32_t i = 0; i < s->parts; i++) {
        float away = row.mean - slices[i].mean;
        spread[i % 2] = (float)((double)spread[i % 2] + (double)away * away);
    }
    if (s->parts == 3)
        row.variance = (variance[0] + (spread[0] + spread[1])) * one_part;
    else
        row.variance = ((variance[0] + spread[0]) + (variance[1] + spread[1])) * one_part;
    return row;
}
