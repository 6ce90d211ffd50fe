/* runs.c - the bytes that move between two types, as strided runs: loops to counts, runs joined. */
#include "tensor/algebra.h"

typedef ARRAY(CopyRun) CopyRunArray;

static bool same_dimensions(const CopyRun *a, const CopyRun *b, uint32_t dimensions)
{
    for (uint32_t d = 0; d < dimensions; d++)
        if (a->count[d] != b->count[d] || a->source_step[d] != b->source_step[d] ||
            a->destination_step[d] != b->destination_step[d])
            return false;
    return true;
}

/* The next run continues the last one: on both sides the bytes go on, or the outer count does. */
static bool continues(CopyRun *last, const CopyRun *next)
{
    if (last->source_shard != next->source_shard ||
        last->destination_shard != next->destination_shard)
        return false;
    uint32_t source = next->source_offset - last->source_offset;
    uint32_t destination = next->destination_offset - last->destination_offset;
    bool plain = last->count[0] == 1 && next->count[0] == 1;
    if (plain && source == last->bytes && destination == last->bytes) {
        last->bytes += next->bytes;
        return true;
    }
    if (last->bytes != next->bytes)
        return false;
    if (same_dimensions(last, next, 3)) {
        uint32_t free = 0; /* two of a kind start a new dimension */
        while (free < 3 && last->count[free] > 1)
            free++;
        if (free == 3 || next->source_offset < last->source_offset ||
            next->destination_offset < last->destination_offset)
            return false;
        last->count[free] = 2;
        last->source_step[free] = (int32_t)source;
        last->destination_step[free] = (int32_t)destination;
        return true;
    }
    uint32_t outer = 3; /* outermost dimension of last in use */
    while (outer > 0 && last->count[outer - 1] == 1)
        outer--;
    if (outer == 0 || !same_dimensions(last, next, outer - 1))
        return false;
    if (next->count[outer - 1] != 1)
        return false;
    uint32_t count = last->count[outer - 1];
    if (source != (uint32_t)last->source_step[outer - 1] * count ||
        destination != (uint32_t)last->destination_step[outer - 1] * count)
        return false;
    last->count[outer - 1]++;
    return true;
}

typedef struct RunBuilder {
    CopyRunArray runs; /* of one destination shard */
    uint64_t element;
    uint32_t source_shard, destination_shard;
} RunBuilder;

/* Dimensions beyond three are written out, outermost first. */
static void push_runs(RunBuilder *builder, const Strided *strided, uint32_t dimensions,
                      uint64_t source, uint64_t destination)
{
    if (dimensions > 3) {
        uint32_t d = dimensions - 1;
        for (uint32_t i = 0; i < strided->dimensions[d].count; i++)
            push_runs(builder, strided, d,
                      source + (uint64_t)strided->dimensions[d].step[SOURCE] * i,
                      destination + (uint64_t)strided->dimensions[d].step[DESTINATION] * i);
        return;
    }
    CopyRun run = {.source_shard = builder->source_shard,
                   .destination_shard = builder->destination_shard,
                   .source_offset = (uint32_t)source,
                   .destination_offset = (uint32_t)destination,
                   .bytes = (uint32_t)strided->bytes,
                   .count = {1, 1, 1}};
    for (uint32_t d = 0; d < dimensions; d++) {
        run.count[d] = strided->dimensions[d].count;
        run.source_step[d] = (int32_t)strided->dimensions[d].step[SOURCE];
        run.destination_step[d] = (int32_t)strided->dimensions[d].step[DESTINATION];
    }
    CopyRunArray *runs = &builder->runs;
    if (runs->count == 0 || !continues(&runs->items[runs->count - 1], &run))
        array_push(runs, run);
}

static void build_runs(void *context, const Piece *piece)
{
    RunBuilder *builder = context;
    Strided strided;
    piece_strided(piece, builder->element, &strided);
    push_runs(builder, &strided, strided.dimension_count, strided.offset[SOURCE],
              strided.offset[DESTINATION]);
}

Status type_copy_runs(const TensorType *source, const TensorType *destination,
                      const Mapping *mapping, CopyRunSink *sink, void *context)
{
    if (source->format.precision.kind != destination->format.precision.kind)
        return status_error("a copy cannot change the precision");
    TRY(status_context(type_check(source), "copy source"));
    TRY(status_context(type_check(destination), "copy destination"));
    Algebra algebra = {0};
    side_init(&algebra.sides[SOURCE], source, true);
    side_init(&algebra.sides[DESTINATION], destination, false);
    Status status = algebra_link(&algebra, mapping);
    if (!status_ok(status)) {
        algebra_free(&algebra);
        return status;
    }
    Finder finder;
    finder_init(&finder, &algebra);
    RunBuilder builder = {.element = precision_bytes(source->format.precision)};
    uint32_t shards = type_shard_count(destination);
    for (uint32_t shard = 0; shard < shards; shard++) {
        builder.destination_shard = shard;
        builder.runs.count = 0;
        walk_shard(&finder, shard, build_runs, &builder, &builder.source_shard);
        for (size_t i = 0; i < builder.runs.count; i++)
            sink(context, &builder.runs.items[i]);
    }
    array_free(&builder.runs);
    finder_free(&finder);
    algebra_free(&algebra);
    return STATUS_OK;
}
