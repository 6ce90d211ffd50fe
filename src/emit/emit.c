/* emit.c - sizes of the generated programs, then the memory image of every tile.
 *
 * The image of a tile: entry stub, linked kernels and runtime (the same everywhere), generated
 * program, exchange rows, the runtime state with the tile's own words, and zeroed buffers that must
 * start as zero. Parameters are added when the package is written. */
#include "emit/program.h"

#include <string.h>

enum { SEGMENT_READ = 1, SEGMENT_WRITE = 2, SEGMENT_EXECUTE = 4, STATE_WORDS = 6 };

typedef struct SizeJob {
    const ProgramTables *tables;
    uint32_t *bytes;
} SizeJob;

static uint32_t program_bytes(const ProgramTables *tables, uint32_t tile)
{
    TileProgramCode code;
    program_generate(tables, NULL, tile, &code);
    uint32_t bytes = 4 * (uint32_t)code.words.count;
    program_code_free(&code);
    return bytes;
}

Status emit_size(Arena *arena, const TileProgram *program, EmitSizes *out)
{
    ProgramTables tables;
    TRY(tables_build(arena, program, NULL, &tables));
    out->code_bytes = arena_array(arena, uint32_t, program->tiles);
    for (uint32_t tile = 0; tile < program->tiles; tile++)
        out->code_bytes[tile] = program_bytes(&tables, tile);
    out->idle_code_bytes = program_bytes(&tables, IDLE_TILE);
    return STATUS_OK;
}

Status emit_add_samples(Arena *arena, uint8_t sampling, TileProgram *program)
{
    program->sampling = sampling;
    if (sampling != SAMPLE_STEPS)
        return STATUS_OK;
    ProgramTables tables;
    TRY(tables_build(arena, program, NULL, &tables));
    Buffer buffer = {.name = "profile.cycles",
                     .memory_class = MEMORY_STANDARD,
                     .resident = true,
                     .align = 8,
                     .members = 1,
                     .bytes = arena_array(arena, uint32_t, program->tiles),
                     .alias = BUFFER_NONE,
                     .value = 0xffffffff};
    for (uint32_t tile = 0; tile < program->tiles; tile++) {
        TileProgramCode code;
        program_generate(&tables, NULL, tile, &code);
        buffer.bytes[tile] = 4 * code.samples;
        program_code_free(&code);
    }
    program->sample_buffer = (uint32_t)program->buffers.count;
    array_push(&program->buffers, buffer);
    return STATUS_OK;
}

typedef struct ImageJob {
    Arena *arenas; /* one per worker */
    const ProgramTables *tables;
    const Placement *placement;
    Row *const *rows; /* [phase][tile] */
    const LinkImage *linked;
    uint32_t start; /* address of the runtime's start */
    TileCode *tiles;
    TileProgramCode idle;
} ImageJob;

typedef ARRAY(ImageSegment) SegmentArray;

static void add_segment(SegmentArray *segments, Arena *arena, uint32_t address, uint32_t bytes,
                        const void *data, uint32_t data_bytes, uint32_t flags, const char *name)
{
    ImageSegment segment = {address, bytes, NULL, data_bytes, flags, name};
    if (data)
        segment.data = arena ? arena_copy(arena, data, data_bytes, 4) : data;
    array_push(segments, segment);
}

static void add_stub(SegmentArray *segments, Arena *arena, uint32_t start)
{
    uint32_t stub[] = {isa_word(FORM_setzi_mmmn_zi, 0, (int32_t)start), isa_word(FORM_br_mmmn, 0)};
    add_segment(segments, arena, SRAM_LOAD_BASE, sizeof stub, stub, sizeof stub,
                SEGMENT_READ | SEGMENT_EXECUTE, "entry stub");
}

static void add_state(SegmentArray *segments, Arena *arena, uint32_t program, uint32_t logical)
{
    uint32_t state[STATE_WORDS] = {[STATE_PROGRAM / 4] = program, [STATE_LOGICAL / 4] = logical};
    add_segment(segments, arena, STATE_BASE, STATE_BYTES, state, sizeof state,
                SEGMENT_READ | SEGMENT_WRITE, "runtime state");
}

/* The rows of a tile follow each other: one segment. */
static void add_rows(SegmentArray *segments, Arena *arena, const ImageJob *job, uint32_t tile)
{
    const Placement *placement = job->placement;
    WordArray words = {0};
    uint32_t first = 0;
    for (size_t phase = 0; phase < job->tables->program->phases.count; phase++) {
        uint32_t address = placement->row_address[phase * placement->tiles + tile];
        if (!address)
            continue;
        if (!first)
            first = address;
        while (first + 4 * words.count < address)
            array_push(&words, 0);
        const Row *row = &job->rows[phase][tile];
        array_append(&words, row->words, row->count);
    }
    if (first) {
        uint32_t bytes = 4 * (uint32_t)words.count;
        add_segment(segments, arena, first, bytes, words.items, bytes,
                    SEGMENT_READ | SEGMENT_EXECUTE, "exchange rows");
    }
    array_free(&words);
}

static void add_zeroed(SegmentArray *segments, const ImageJob *job, uint32_t tile)
{
    const TileProgram *program = job->tables->program;
    for (uint32_t b = 0; b < program->buffers.count; b++) {
        const Buffer *buffer = &program->buffers.items[b];
        if (buffer->resident && buffer->role != BUFFER_PARAMETER && buffer->bytes[tile] &&
            buffer->alias == BUFFER_NONE)
            add_segment(segments, NULL, placement_address(job->placement, tile, b),
                        round_up_u32(buffer->bytes[tile], 4), NULL, 0, SEGMENT_READ | SEGMENT_WRITE,
                        buffer->name);
    }
}

static void build_tile(void *context, size_t physical, unsigned worker)
{
    ImageJob *job = context;
    Arena *arena = &job->arenas[worker];
    TileCode *out = &job->tiles[physical];
    uint32_t logical = target_logical((uint32_t)physical);
    bool idle = logical >= job->tables->program->tiles;
    uint32_t address =
        idle ? job->placement->idle_code_address : job->placement->code_address[logical];

    TileProgramCode code = job->idle;
    if (!idle)
        program_generate(job->tables, job->placement, logical, &code);
    SegmentArray segments = {0};
    add_stub(&segments, arena, job->start);
    for (uint32_t s = 0; s < job->linked->segment_count; s++) {
        const LinkSegment *linked = &job->linked->segments[s];
        add_segment(&segments, NULL, linked->address, linked->bytes, linked->data, linked->bytes,
                    SEGMENT_READ | SEGMENT_EXECUTE, "linked executable");
    }
    uint32_t bytes = 4 * (uint32_t)code.words.count;
    add_segment(&segments, idle ? NULL : arena, address, bytes, code.words.items, bytes,
                SEGMENT_READ | SEGMENT_EXECUTE, "generated tile program");
    if (!idle)
        add_rows(&segments, arena, job, logical);
    add_state(&segments, arena, address, logical);
    if (!idle)
        add_zeroed(&segments, job, logical);

    *out = (TileCode){
        .physical = (uint32_t)physical,
        .entry = SRAM_LOAD_BASE,
        .segments = arena_copy(arena, segments.items, segments.count * sizeof(ImageSegment), 8),
        .segment_count = (uint32_t)segments.count,
        .program_start = address,
        .steps_start = address + code.steps_start,
        .steps_end = address + code.steps_end,
        .marks = arena_copy(arena, code.marks.items, code.marks.count * sizeof(CodeMark), 8),
        .mark_count = (uint32_t)code.marks.count,
    };
    array_free(&segments);
    if (!idle)
        program_code_free(&code);
}

Status emit_images(Arena *arenas, const TileProgram *program, const Placement *placement,
                   Row *const *rows, const LinkImage *linked, Pool *pool, Images *out)
{
    ProgramTables tables;
    TRY(tables_build(&arenas[0], program, linked, &tables));
    ImageJob job = {.arenas = arenas,
                    .tables = &tables,
                    .placement = placement,
                    .rows = rows,
                    .linked = linked};
    TRY(link_symbol(linked, "ipu_start", &job.start));
    out->count = TILES;
    out->tiles = job.tiles = arena_array(&arenas[0], TileCode, TILES);
    program_generate(&tables, placement, IDLE_TILE, &job.idle);
    size_t words = job.idle.words.count;
    uint32_t *kept = arena_copy(&arenas[0], job.idle.words.items, words * sizeof *kept, 4);
    array_release(job.idle.words.items);
    job.idle.words.items = kept; /* shared by the images of all idle tiles */
    parallel_for(pool, TILES, build_tile, &job);
    array_free(&job.idle.marks);
    return STATUS_OK;
}
