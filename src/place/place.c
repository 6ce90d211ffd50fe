/* place.c - the order of placement: executable part, then data, uniform over the tiles if it fits.
 *
 * A buffer that has the same address on every tile makes pairs of the exchange equal by
 * construction, rows alike and this stage quick, so one uniform layout is tried first. When a tile
 * has more than fits that way, every tile is laid out for itself; only the buffers that the
 * schedule wants at equal addresses stay uniform. */
#include "place/layout.h"

static uint32_t row_bytes(const Schedule *schedule, uint32_t phase, uint32_t tile)
{
    return round_up_u32(schedule->phases[phase].row_words[tile] * 4, 8);
}

/* Code and rows of one tile, upwards from base. Returns the first address after them. */
static uint32_t place_code(const Schedule *schedule, uint32_t tile, uint32_t base,
                           uint32_t code_bytes, Placement *out)
{
    out->code_address[tile] = base;
    uint32_t next = round_up_u32(base + code_bytes, 8);
    for (uint32_t phase = 0; phase < schedule->phase_count; phase++) {
        uint32_t bytes = row_bytes(schedule, phase, tile);
        out->row_address[(size_t)phase * out->tiles + tile] = bytes ? next : 0;
        next += bytes;
    }
    return next;
}

static Status place_executable(const Schedule *schedule, const Sizes *sizes, Placement *out,
                               uint32_t *data_start)
{
    uint32_t base = round_up_u32(max_u32(sizes->linked_end, LINK_SECOND), 8);
    uint32_t idle_end = base + sizes->idle_code_bytes;
    out->idle_code_address = base;
    if (idle_end + FETCH_GUARD_BYTES > EXECUTABLE_END)
        return status_error("place: the idle program of %u bytes does not fit: code ends at %#x",
                            sizes->idle_code_bytes, sizes->linked_end);
    for (uint32_t tile = 0; tile < out->tiles; tile++) {
        uint32_t end = place_code(schedule, tile, base, sizes->code_bytes[tile], out);
        if (end + FETCH_GUARD_BYTES > EXECUTABLE_END)
            return status_error("place: tile %u: %u bytes of code and %u bytes of exchange rows "
                                "exceed the executable memory by %u bytes",
                                tile, sizes->code_bytes[tile], end - base - sizes->code_bytes[tile],
                                end + FETCH_GUARD_BYTES - EXECUTABLE_END);
        data_start[tile] = round_up_u32(end + FETCH_GUARD_BYTES, ELEMENT_BYTES);
    }
    return STATUS_OK;
}

/* The ranges that data may take, given where the executable part ends. */
static void set_ranges(Layout *layout, uint32_t data_start)
{
    layout->range_count = 0;
    layout->ranges[layout->range_count++] = (AddressRange){DATA_BASE, LINK_SECOND};
    if (data_start < EXECUTABLE_END)
        layout->ranges[layout->range_count++] = (AddressRange){data_start, EXECUTABLE_END};
    layout->ranges[layout->range_count++] = (AddressRange){INTERLEAVED_BASE, SRAM_LOAD_END};
}

static void store_addresses(const TileProgram *program, const Requests *requests,
                            const uint32_t *root_address, uint32_t tile, Placement *out)
{
    for (uint32_t b = 0; b < program->buffers.count; b++)
        if (program->buffers.items[b].bytes[tile])
            out->address[(size_t)b * out->tiles + tile] = root_address[requests->root[b]];
}

static Status place_uniform(const TileProgram *program, const Requests *requests,
                            const uint32_t *data_start, Placement *out)
{
    uint32_t start = 0;
    for (uint32_t tile = 0; tile < out->tiles; tile++)
        start = max_u32(start, data_start[tile]);
    Layout layout;
    layout_init(&layout, requests, LAYOUT_ALL_TILES);
    set_ranges(&layout, start);
    Status status = layout_solve(&layout, program);
    if (status_ok(status))
        for (uint32_t tile = 0; tile < out->tiles; tile++)
            store_addresses(program, requests, layout.address, tile, out);
    layout_free(&layout);
    return status;
}

typedef struct TileJob {
    const TileProgram *program;
    const Requests *requests;
    const uint32_t *data_start;
    const Layout *shared; /* buffers that must be at equal addresses, already placed */
    Placement *out;
    Status *status;
} TileJob;

static void place_one_tile(void *context, size_t tile, unsigned worker)
{
    (void)worker;
    TileJob *job = context;
    Layout layout;
    layout_init(&layout, job->requests, (uint32_t)tile);
    set_ranges(&layout, job->data_start[tile]);
    layout_fix(&layout, job->shared);
    job->status[tile] = layout_solve(&layout, job->program);
    if (status_ok(job->status[tile]))
        store_addresses(job->program, job->requests, layout.address, (uint32_t)tile, job->out);
    layout_free(&layout);
}

static Status place_per_tile(const TileProgram *program, const Requests *requests,
                             const uint32_t *data_start, Pool *pool, Placement *out)
{
    uint32_t start = 0;
    for (uint32_t tile = 0; tile < out->tiles; tile++)
        start = max_u32(start, data_start[tile]);
    Layout shared;
    layout_init(&shared, requests, LAYOUT_ALL_TILES);
    set_ranges(&shared, start);
    layout_only_same_address(&shared);
    Status status = layout_solve(&shared, program);
    if (status_ok(status)) {
        TileJob job = {program, requests, data_start,
                       &shared, out,      xcalloc(out->tiles, sizeof(Status))};
        parallel_for(pool, out->tiles, place_one_tile, &job);
        for (uint32_t tile = 0; tile < out->tiles;
             tile++) { /* the first tile's error is the answer */
            if (status_ok(status))
                status = job.status[tile];
            else
                status_free(job.status[tile]);
        }
        array_release(job.status);
    }
    layout_free(&shared);
    return status;
}

static void sum_usage(const TileProgram *program, const Requests *requests, Placement *out)
{
    for (uint32_t b = 0; b < program->buffers.count; b++) {
        const Request *request = &requests->items[requests->root[b]];
        if (requests->root[b] != b)
            continue;
        for (uint32_t tile = 0; tile < out->tiles; tile++) {
            uint32_t *used = request->interleaved ? out->used_interleaved : out->used_standard;
            used[tile] += request->bytes[tile];
        }
    }
}

Status place(Arena *arena, const TileProgram *program, const Schedule *schedule, const Sizes *sizes,
             Pool *pool, Placement *out)
{
    uint32_t tiles = program->tiles, buffers = (uint32_t)program->buffers.count;
    *out = (Placement){
        .tiles = tiles,
        .buffers = buffers,
        .address = arena_array(arena, uint32_t, (size_t)buffers * tiles),
        .row_address = arena_array(arena, uint32_t, (size_t)schedule->phase_count * tiles),
        .code_address = arena_array(arena, uint32_t, tiles),
        .lifetime = arena_alloc(arena, array_bytes(buffers, sizeof *out->lifetime), 8),
        .used_standard = arena_array(arena, uint32_t, tiles),
        .used_interleaved = arena_array(arena, uint32_t, tiles),
    };
    uint32_t *data_start = arena_array(arena, uint32_t, tiles);
    TRY(place_executable(schedule, sizes, out, data_start));

    Requests requests;
    TRY(requests_collect(arena, program, &schedule->constraints, &requests));
    for (uint32_t b = 0; b < buffers; b++) {
        const Request *request = &requests.items[requests.root[b]];
        out->lifetime[b].first = request->first;
        out->lifetime[b].last = request->last;
    }
    Status status = place_uniform(program, &requests, data_start, out);
    if (!status_ok(status)) {
        log_event(LOG_DEBUG, "no uniform layout", "reason=%.40s", "memory");
        status_free(status);
        status = place_per_tile(program, &requests, data_start, pool, out);
    }
    if (status_ok(status))
        sum_usage(program, &requests, out);
    requests_free(&requests);
    return status;
}
