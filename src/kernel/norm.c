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
    return 4 * s->operands + 8 + (s->parts > 1 ? s->rows * statistics_bytes(s) : 0);
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

static void open_frame(const NormShape *s, Clock *clock)
{
    clock_issue(clock, 4);
    clock_depend(clock, 4);
    clock_issue(clock, s->operands + 2);
    clock_depend(clock, s->operands); /* epsilon's second half */
    clock_issue(clock, 2);
}

void norm_launches(const NormShape *s, Clock *clock, const uint64_t first[TILE_WORKERS],
                   const uint64_t second[TILE_WORKERS])
{
    open_frame(s, clock);
    clock_launch(clock, first);
    if (s->parts > 1) {
        clock_issue(clock, 1);
        clock_sync(clock);
        clock_launch(clock, second);
    }
    clock_sync(clock);
    clock_branch(clock);
}

void norm_add(const NormShape *s, void *sum, const void *a, const void *b)
{
    for (size_t i = 0; i < (size_t)s->rows * s->columns; i++)
        half_set(sum, i, half_of(a, i) + half_of(b, i));
}

uint64_t norm_find_slice(const NormShape *s, uint32_t team, bool *leaves)
{
    static const uint8_t part_and_team[] = {[1] = 0, [2] = 2, [3] = 4, [6] = 0};
    static const uint8_t place[] = {[1] = 2, [2] = 6, [3] = 6, [6] = 4};
    bool rest = s->rows % s->teams != 0, loops = s->rows > s->teams;
    uint64_t slots = 5u + part_and_team[s->parts] + (rest ? 2 : loops);
    *leaves = norm_rows_of_team(s, team) == 0;
    return *leaves ? slots : slots + place[s->parts];
}

uint64_t norm_slice_statistics(const NormShape *s)
{
    uint64_t sum =
        s->adds ? 2 * (uint64_t)s->quads + 9 + (s->parts > 1 ? 1 : 0) : (uint64_t)s->quads + 4;
    return sum + 5 + 2 * (uint64_t)s->quads + 6;
}

uint64_t norm_combine(const NormShape *s)
{
    return s->parts == 6 ? 18 : s->parts == 3 ? 14 : 10;
}

uint64_t norm_next_row(const NormShape *s, bool used)
{
    return s->rows > s->teams ? (used ? 7 : 5) : 0;
}

/* In the device's signs: means and variances are negative until the end. */
Slice norm_slice(const NormShape *s, uint32_t part, const uint8_t *x, uint8_t *out)
{
    static const double ones[4] = {1, 1, 1, 1};
    float minus_reciprocal = -norm_reciprocal(s);
    HalfSums sums = {0}, squares = {0};
    for (uint32_t q = part; q < s->columns / 4; q += s->parts) {
        double quad[4];
        for (uint32_t i = 0; i < 4; i++)
            quad[i] = half_of(x, 4 * q + i);
        half_accumulate(&sums, quad, ones);
    }
    Slice slice = {.minus_mean = (sums.low + sums.high) * minus_reciprocal};
    slice.minus_centre = (float)half_round((double)slice.minus_mean);
    for (uint32_t q = part; q < s->columns / 4; q += s->parts) {
        double quad[4];
        for (uint32_t i = 0; i < 4; i++) {
            quad[i] = half_round((double)slice.minus_centre + half_of(x, 4 * q + i));
            if (out)
                half_set(out, 4 * q + i, quad[i]);
        }
        half_accumulate(&squares, quad, quad);
    }
    float away = slice.minus_mean - slice.minus_centre;
    slice.minus_variance = fminf((squares.low + squares.high) * minus_reciprocal + away * away, 0);
    return slice;
}

/* COMBINE: its order of additions. */
Slice norm_row(const NormShape *s, const Slice *slices)
{
    if (s->parts == 1)
        return slices[0];
    float one_part = 1 / (float)s->parts, sum[2] = {0}, variance[2] = {0}, spread[2] = {0};
    for (uint32_t i = 0; i < s->parts; i++) {
        sum[i % 2] = i < 2 ? slices[i].minus_mean : sum[i % 2] + slices[i].minus_mean;
        variance[i % 2] =
            i < 2 ? slices[i].minus_variance : variance[i % 2] + slices[i].minus_variance;
    }
    if (s->parts == 3) { /* one lane: the first two, then the third */
        sum[0] = (slices[0].minus_mean + slices[1].minus_mean) + slices[2].minus_mean;
        variance[0] =
            (slices[0].minus_variance + slices[1].minus_variance) + slices[2].minus_variance;
        sum[1] = variance[1] = 0;
    }
    Slice row = {.minus_mean = (sum[0] + sum[1]) * one_part};
    for (uint32_t i = 0; i < s->parts; i++) {
        float away = row.minus_mean - slices[i].minus_mean;
        spread[i % 2] = (float)((double)spread[i % 2] + (double)away * away);
    }
    if (s->parts == 3)
        row.minus_variance = (variance[0] - (spread[0] + spread[1])) * one_part;
    else
        row.minus_variance = ((variance[0] - spread[0]) + (variance[1] - spread[1])) * one_part;
    return row;
}
