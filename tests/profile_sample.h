/* profile_sample.h - a small profile with known numbers, for tests of files and of queries.
 *
 * Three tiles, two exchange phases around a product, one repeat of two iterations:
 *
 *   cycle     1000   1010      1110        1210   1300
 *   tile 0         | exchange 0 | gemm      | gemm |
 *   tile 2           | exchange 0    | sync        |
 *   tile 64    | exchange 0     | gemm      | gemm |
 */
#ifndef IPU_TESTS_PROFILE_SAMPLE_H
#define IPU_TESTS_PROFILE_SAMPLE_H

#include "package/package.h"

typedef struct ProfileFixture {
    Profile profile;
    ProfileStep steps[3];
    ProfileTile tiles[3];
    ProfileSample samples[3][3];
    ProfileActivity activities[3];
    ProfileSpan spans[2];
    PackageText work[3], phase[1];
    ProfilePrediction prediction;
} ProfileFixture;

static inline void make_profile(ProfileFixture *f)
{
    *f = (ProfileFixture){0};
    f->work[0] = (PackageText){"kernelSpec", "gemm rows=4"};
    f->work[1] = (PackageText){"usefulCycles", "40"};
    f->work[2] = (PackageText){"physicalWorkCycles", "50"};
    f->phase[0] = (PackageText){"bound", "70"};
    f->steps[0] = (ProfileStep){
        PROFILE_EXCHANGE_PHASE, PROFILE_EXCHANGE, "a/up", "exchange", f->phase, 1, 80};
    f->steps[1] = (ProfileStep){1, PROFILE_COMPUTE, "a/up", "gemm", f->work, 3, 0};
    f->steps[2] =
        (ProfileStep){PROFILE_EXCHANGE_PHASE + 1, PROFILE_SYNC, "a/down", "sync", NULL, 0, 0};
    static const uint32_t physical[] = {0, 2, 64}, count[] = {3, 2, 3};
    static const ProfileSample samples[3][3] = {
        {{0, 0, 1000, 1110}, {1, 1, 1110, 1210}, {1, 2, 1210, 1300}},
        {{0, 0, 1010, 1150}, {2, 0, 1150, 1300}},
        {{0, 0, 990, 1100}, {1, 1, 1100, 1200}, {1, 2, 1200, 1290}}};
    for (int t = 0; t < 3; t++) {
        for (int i = 0; i < 3; i++)
            f->samples[t][i] = samples[t][i];
        f->spans[0] = (ProfileSpan){0, 40, SPAN_SEND, false, 2};
        f->spans[1] = (ProfileSpan){30, 60, SPAN_RECEIVE, true, 1};
        f->activities[t] = (ProfileActivity){0, t == 1 ? 60 : 80, f->spans, 2};
        f->tiles[t] = (ProfileTile){physical[t], f->samples[t], count[t], &f->activities[t], 1};
    }
    f->prediction = (ProfilePrediction){"a/up", 200, 50};
    f->profile = (Profile){.clock_hz = 1500000000,
                           .source = "simulator",
                           .program = "test",
                           .tiles_used = 3,
                           .steps = f->steps,
                           .step_count = 3,
                           .tiles = f->tiles,
                           .tile_count = 3,
                           .predictions = &f->prediction,
                           .prediction_count = 1};
}

#endif
