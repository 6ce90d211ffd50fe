/* runs.c - the bytes that move between two types, as strided runs: loops to counts, runs joined. */
#include "tensor/algebra.h"

#include <stdlib.h>

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
    CopyRunArray runs; /* of one destination block, by blocks */
    CopyRunArray cut;  /* the same by shards */
    uint64_t element;
    uint32_t source_block, destination_block;
} RunBuilder;

static void push_run(CopyRunArray *runs, const CopyRun *run)
{
    if (runs->count == 0 || !continues(&runs->items[runs->count - 1], run))
        array_push(runs, *run);
}

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
    CopyRun run = {.source_shard = builder->source_block,
                   .destination_shard = builder->destination_block,
                   .source_offset = (uint32_t)source,
                   .destination_offset = (uint32_t)destination,
                   .bytes = (uint32_t)strided->bytes,
                   .count = {1, 1, 1}};
    for (uint32_t d = 0; d < dimensions; d++) {
        run.count[d] = strided->dimensions[d].count;
        run.source_step[d] = (int32_t)strided->dimensions[d].step[SOURCE];
        run.destination_step[d] = (int32_t)strided->dimensions[d].step[DESTINATION];
    }
    push_run(&builder->runs, &run);
}

static void build_runs(void *context, const Piece *piece)
{
    RunBuilder *builder = context;
    Strided strided;
    piece_strided(piece, builder->element, &strided);
    push_runs(builder, &strided, strided.dimension_count, strided.offset[SOURCE],
              strided.offset[DESTINATION]);
}

/* ---- shares ---- */

typedef struct ShareSide {
    const TensorType *type;
    uint64_t bytes; /* of the block at hand */
    uint32_t first; /* its first shard */
} ShareSide;

static ShareSide share_side(const TensorType *type, uint32_t block)
{
    uint32_t shares = format_shares(&type->format);
    return (ShareSide){type, shares > 1 ? block_bytes(type, block) : 0, block * shares};
}

/* The shard that has byte `offset` of the block, and how many bytes on it has. */
static uint32_t find_share(const ShareSide *side, uint64_t offset, ByteSpan *span)
{
    *span = (ByteSpan){0, UINT64_MAX};
    if (side->type->format.shares < 2)
        return side->first;
    uint32_t shard = side->first + share_at(side->type, side->bytes, offset);
    *span = share_span(side->type, shard);
    return shard;
}

/* Halves the run until it lies in one share on both sides. */
static void cut_run(const ShareSide sides[SIDES], CopyRun run, CopyRunArray *out)
{
    ByteSpan source, destination;
    uint32_t from = find_share(&sides[SOURCE], run.source_offset, &source);
    uint32_t to = find_share(&sides[DESTINATION], run.destination_offset, &destination);
    uint64_t source_end = run.source_offset + run.bytes, outer = 3;
    uint64_t destination_end = run.destination_offset + run.bytes;
    for (uint32_t d = 0; d < 3; d++) {
        source_end += (uint64_t)run.source_step[d] * (run.count[d] - 1);
        destination_end += (uint64_t)run.destination_step[d] * (run.count[d] - 1);
    }
    if (source_end <= source.end && destination_end <= destination.end) {
        run.source_shard = from;
        run.destination_shard = to;
        run.source_offset -= (uint32_t)source.start;
        run.destination_offset -= (uint32_t)destination.start;
        array_push(out, run);
        return;
    }
    while (outer > 0 && run.count[outer - 1] == 1)
        outer--;
    CopyRun rest = run;
    if (outer > 0) {
        uint32_t d = (uint32_t)outer - 1, half = run.count[d] / 2;
        run.count[d] = half;
        rest.count[d] -= half;
        rest.source_offset += half * (uint32_t)run.source_step[d];
        rest.destination_offset += half * (uint32_t)run.destination_step[d];
    } else {
        uint64_t a = source.end - run.source_offset, b = destination.end - run.destination_offset;
        run.bytes = (uint32_t)(a < b ? a : b);
        rest.bytes -= run.bytes;
        rest.source_offset += run.bytes;
        rest.destination_offset += run.bytes;
    }
    cut_run(sides, run, out);
    cut_run(sides, rest, out);
}

static int by_shards(const void *left, const void *right)
{
    const CopyRun *a = left, *b = right;
    if (a->destination_shard != b->destination_shard)
        return a->destination_shard < b->destination_shard ? -1 : 1;
    if (a->source_shard != b->source_shard)
        return a->source_shard < b->source_shard ? -1 : 1;
    return a->destination_offset < b->destination_offset ? -1 : 1; /* written once: never equal */
}

/* From blocks to shards: cut, ordered, and joined again. */
static void share_runs(RunBuilder *builder, const TensorType *source, const TensorType *destination)
{
    if (source->format.shares < 2 && destination->format.shares < 2)
        return;
    builder->cut.count = 0;
    for (size_t i = 0; i < builder->runs.count; i++) {
        const CopyRun *run = &builder->runs.items[i];
        ShareSide sides[SIDES] = {share_side(source, run->source_shard),
                                  share_side(destination, run->destination_shard)};
        cut_run(sides, *run, &builder->cut);
    }
    if (builder->cut.count)
        qsort(builder->cut.items, builder->cut.count, sizeof *builder->cut.items, by_shards);
    builder->runs.count = 0;
    for (size_t i = 0; i < builder->cut.count; i++)
        push_run(&builder->runs, &builder->cut.items[i]);
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
    uint32_t blocks = type_shard_count(destination) / format_shares(&destination->format);
    for (uint32_t block = 0; block < blocks; block++) {
        builder.destination_block = block;
        builder.runs.count = 0;
        walk_block(&finder, block, build_runs, &builder, &builder.source_block);
        share_runs(&builder, source, destination);
        for (size_t i = 0; i < builder.runs.count; i++)
            sink(context, &builder.runs.items[i]);
    }
    array_free(&builder.runs);
    array_free(&builder.cut);
    finder_free(&finder);
    algebra_free(&algebra);
    return STATUS_OK;
}
