/* hostile.h - corrupted copies of good input: what fuzz-like tests of readers share.
 *
 * IPU_FUZZ_SECONDS in the environment lets them run for that long with fresh seeds; without it they
 * do a fixed number of rounds, the same every time. */
#ifndef IPU_TESTS_HOSTILE_H
#define IPU_TESTS_HOSTILE_H

#include "check.h"

#include "base/base.h"

#include <string.h>

typedef struct Hostile {
    uint64_t seed;
    uint64_t round, rounds;
    double end; /* 0: by rounds */
} Hostile;

static inline Hostile hostile_begin(uint64_t rounds)
{
    const char *seconds = getenv("IPU_FUZZ_SECONDS");
    Hostile out = {.seed = 1, .rounds = rounds};
    if (seconds) {
        out.end = seconds_now() + atof(seconds);
        out.seed = (uint64_t)(seconds_now() * 1e9);
        print_message("seed %llu\n", (unsigned long long)out.seed);
    }
    return out;
}

static inline bool hostile_more(Hostile *hostile)
{
    hostile->round++;
    return hostile->end > 0 ? seconds_now() < hostile->end : hostile->round <= hostile->rounds;
}

static inline uint32_t hostile_random(Hostile *hostile, uint32_t below)
{
    hostile->seed = hostile->seed * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = hostile->seed ^ hostile->seed >> 29;
    return below ? (uint32_t)(x * 0xbf58476d1ce4e5b9u >> 32) % below : 0;
}

/* A damaged copy: bits turned, bytes replaced, pieces moved, repeated, dropped, the end cut off. */
static inline void hostile_damage(Hostile *hostile, Text *bytes)
{
    static const uint8_t nasty[] = {0,    1,   0x7f, 0x80, 0xff, '\n', '"',
                                    '\\', '{', '(',  ':',  '$',  ',',  '.'};
    for (uint32_t n = 1 + hostile_random(hostile, 4); n && bytes->count; n--) {
        uint32_t count = (uint32_t)bytes->count, at = hostile_random(hostile, count);
        uint32_t length = 1 + hostile_random(hostile, min_u32(64, count - at));
        uint32_t to = hostile_random(hostile, count - length + 1);
        switch (hostile_random(hostile, 7)) {
        case 0:
            bytes->items[at] = (char)(bytes->items[at] ^ (1 << hostile_random(hostile, 8)));
            break;
        case 1:
            bytes->items[at] = (char)nasty[hostile_random(hostile, countof(nasty))];
            break;
        case 2:
            bytes->items[at] = (char)hostile_random(hostile, 256);
            break;
        case 3:
            memmove(bytes->items + to, bytes->items + at, length);
            break;
        case 4:
            bytes->count = hostile_random(hostile, 4) ? count : at;
            break;
        case 5: /* drop */
            memmove(bytes->items + at, bytes->items + at + length, count - at - length);
            bytes->count -= length;
            break;
        default: /* repeat */
            array_reserve(bytes, (size_t)count + length);
            memmove(bytes->items + at + length, bytes->items + at, count - at);
            bytes->count += length;
        }
    }
}

#endif
