/* demand.c - what a program asks of memory before anything has an address: the bytes that are alive
 * at the same time on the fullest tile, by class. A placement can not do with less. */
#include "place/layout.h"

#include <stdlib.h>
#include <string.h>

typedef struct Sums { /* of one tile at one time */
    uint64_t standard, interleaved;
} Sums;

static bool is_alive(const Request *request, uint32_t time)
{
    return request->first <= time && (request->last == LIFETIME_ALWAYS || request->last >= time);
}

static void add_request(const Request *request, uint32_t tiles, Sums *sums)
{
    for (uint32_t t = 0; t < tiles; t++)
        *(request->interleaved ? &sums[t].interleaved : &sums[t].standard) += request->bytes[t];
}

static void note_time(const Sums *sums, uint32_t tiles, PlaceDemand *out)
{
    for (uint32_t t = 0; t < tiles; t++) {
        uint64_t total = sums[t].standard + sums[t].interleaved;
        out->standard = sums[t].standard > out->standard ? sums[t].standard : out->standard;
        out->interleaved =
            sums[t].interleaved > out->interleaved ? sums[t].interleaved : out->interleaved;
        out->total = total > out->total ? total : out->total;
    }
}

static uint64_t most_row_bytes(const Schedule *schedule, uint32_t tiles)
{
    uint64_t most = 0;
    for (uint32_t t = 0; t < tiles; t++) {
        uint64_t bytes = 0;
        for (uint32_t p = 0; p < schedule->phase_count; p++)
            bytes += 4ull * schedule->phases[p].row_words[t];
        most = bytes > most ? bytes : most;
    }
    return most;
}

Status place_demand(const TileProgram *program, const Schedule *schedule, PlaceDemand *out)
{
    Arena arena = {0};
    Requests requests;
    const ConstraintArray none = {0};
    *out = (PlaceDemand){.rows = most_row_bytes(schedule, program->tiles)};
    Status status = requests_collect(&arena, program, &none, &requests);
    Sums *sums = xcalloc(program->tiles, sizeof *sums);
    for (uint32_t time = 0; status_ok(status) && time <= program->steps.count + 1; time++) {
        memset(sums, 0, program->tiles * sizeof *sums);
        for (uint32_t r = 0; r < requests.count; r++)
            if (requests.root[r] == r && is_alive(&requests.items[r], time))
                add_request(&requests.items[r], program->tiles, sums);
        note_time(sums, program->tiles, out);
    }
    for (uint32_t r = 0; status_ok(status) && r < requests.count; r++)
        if (requests.root[r] == r && requests.items[r].max_bytes > out->largest)
            out->largest = requests.items[r].max_bytes;
    free(sums);
    requests_free(&requests);
    arena_free(&arena);
    return status;
}
