/* words.c - the runs of a copy as whole words, which is all that exchange and copy kernels move.
 *
 * A run that ends within a word may take the bytes up to the word's end along when they are padding
 * on both sides: the padding of a stored value is zero, and stays so. */
#include "plan/internal.h"

typedef struct Pads { /* padding runs of the last shard asked for */
    const TensorType *type;
    uint32_t shard;
    ByteRunArray runs;
} Pads;

typedef struct Fitter {
    const TensorType *from, *to;
    Pads source, destination;
    CopyRunSink *sink;
    void *context;
    Status status;
} Fitter;

static bool in_padding(Pads *pads, const TensorType *type, uint32_t shard, uint64_t offset,
                       uint64_t bytes)
{
    if (pads->type != type || pads->shard != shard) {
        pads->runs.count = 0;
        type_padding_runs(type, shard, &pads->runs);
        pads->type = type;
        pads->shard = shard;
    }
    size_t low = 0, high = pads->runs.count;
    while (low < high) { /* first run that ends behind offset */
        size_t middle = (low + high) / 2;
        const ByteRun *run = &pads->runs.items[middle];
        if (run->offset + run->bytes > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low < pads->runs.count && pads->runs.items[low].offset <= offset &&
           pads->runs.items[low].offset + pads->runs.items[low].bytes >= offset + bytes;
}

static bool whole_words(const CopyRun *run)
{
    uint32_t bits = run->source_offset | run->destination_offset | run->bytes;
    for (uint32_t d = 0; d < 3; d++)
        if (run->count[d] > 1)
            bits |= (uint32_t)run->source_step[d] | (uint32_t)run->destination_step[d];
    return bits % 4 == 0;
}

/* Splits the outermost used count off until the run is one row, then rounds it up into padding. */
static Status fit(Fitter *f, CopyRun run)
{
    if (whole_words(&run)) {
        f->sink(f->context, &run);
        return STATUS_OK;
    }
    for (uint32_t d = 3; d-- > 0;) {
        uint32_t n = run.count[d];
        if (n <= 1)
            continue;
        run.count[d] = 1;
        for (uint32_t i = 0; i < n; i++) {
            TRY(fit(f, run));
            run.source_offset += (uint32_t)run.source_step[d];
            run.destination_offset += (uint32_t)run.destination_step[d];
        }
        return STATUS_OK;
    }
    uint32_t more = (4 - run.bytes % 4) % 4;
    bool aligned = run.source_offset % 4 == 0 && run.destination_offset % 4 == 0;
    if (!aligned ||
        !in_padding(&f->source, f->from, run.source_shard, run.source_offset + run.bytes, more) ||
        !in_padding(&f->destination, f->to, run.destination_shard,
                    run.destination_offset + run.bytes, more))
        return status_error("%u bytes from offset %u to %u are no whole words", run.bytes,
                            run.source_offset, run.destination_offset);
    run.bytes += more;
    f->sink(f->context, &run);
    return STATUS_OK;
}

static void fit_run(void *context, const CopyRun *run)
{
    Fitter *f = context;
    if (status_ok(f->status))
        f->status = fit(f, *run);
}

Status plan_copy_words(const TensorType *from, const TensorType *to, const Mapping *mapping,
                       CopyRunSink *sink, void *context)
{
    Fitter f = {.from = from, .to = to, .sink = sink, .context = context};
    Status status = type_copy_runs(from, to, mapping, fit_run, &f);
    array_free(&f.source.runs);
    array_free(&f.destination.runs);
    if (!status_ok(f.status)) {
        status_free(status);
        return f.status;
    }
    return status;
}
