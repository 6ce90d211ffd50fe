/* cost.c - what conversions and kernels cost, each counted once.
 *
 * Storages (type + mapping) and conversions are interned by content, so the search works with small
 * numbers and asks for each pair once. A conversion is counted from the very runs that will move:
 * words per sender and receiver (a run that goes to several tiles leaves its sender once), sources
 * per receiver, and the runs that stay on their tile as local copies. */
#include "plan/internal.h"

static uint64_t hash_u32(uint64_t seed, const uint32_t *words, size_t count)
{
    return hash_bytes(words, count * sizeof *words, seed);
}

uint64_t hash_type(const TensorType *type, uint64_t seed)
{
    const Format *f = &type->format;
    uint32_t words[MAX_RANK + 13] = {
        type->shape.rank, f->precision.kind,  (uint8_t)f->precision.scale,
        f->order.kind,    f->order.row_block, f->order.column_block,
        f->memory_class,  f->first_tile,      f->tile_count,
        f->replicas,      f->shares,          f->share_grain,
        f->share_every};
    for (uint32_t a = 0; a < type->shape.rank; a++)
        words[13 + a] = type->shape.extent[a];
    seed = hash_u32(seed, words, countof(words));
    for (uint32_t i = 0; i < f->axis_count; i++) {
        const AxisTiling *t = &f->axes[i];
        uint32_t axis[] = {t->axis,       t->pad,          t->partitions,     t->groups,
                           t->block,      t->pad_multiple, t->shard_multiple, t->parts,
                           t->part_block, t->stride,       t->near,           t->near_stride};
        seed = hash_u32(seed, axis, countof(axis));
    }
    return seed;
}

static uint64_t hash_axes(const MappingAxis *axes, uint32_t rank, uint64_t seed)
{
    for (uint32_t a = 0; a < rank; a++) {
        uint32_t words[2 + MAX_ATOMS] = {axes[a].offset, axes[a].count};
        for (uint32_t i = 0; i < axes[a].count; i++)
            words[2 + i] = axes[a].atoms[i];
        seed = hash_u32(seed, words, countof(words));
    }
    return seed;
}

uint64_t hash_mapping(const Mapping *mapping, uint64_t seed)
{
    uint32_t ranks[] = {mapping->source_rank, mapping->destination_rank, mapping->atom_count};
    seed = hash_u32(seed, ranks, countof(ranks));
    seed = hash_u32(seed, mapping->extent, mapping->atom_count);
    seed = hash_axes(mapping->source, mapping->source_rank, seed);
    return hash_axes(mapping->destination, mapping->destination_rank, seed);
}

uint32_t costs_storage(Costs *costs, const TensorType *type, const Mapping *mapping)
{
    bool added;
    uint64_t hash = hash_mapping(mapping, hash_type(type, 1));
    uint64_t *slot = map_at(&costs->storage_ids, hash, &added);
    if (added) {
        *slot = costs->storages.count;
        array_push(&costs->storages, (Storage){*type, *mapping, hash});
    }
    return (uint32_t)*slot;
}

/* ---- counting the runs of a copy ---- */

typedef struct Load { /* of one tile */
    uint32_t sent, received, sources;
    uint32_t sent_items, received_items;
    uint64_t kept; /* bytes copied within the tile */
    bool moved;    /* some of them to another place in the shard */
    double local;
    double own_local; /* were shares in their place in the destination's shard */
} Load;

typedef struct Counter {
    Costs *costs;
    const TensorType *from, *to;
    Load *loads; /* by tile */
    uint32_t tiles;
    int32_t *holds;            /* source shard of each tile */
    int32_t *wants;            /* destination shard of each tile */
    uint32_t *homes, *senders; /* tiles of every destination and source shard (type_tiles) */
    const uint32_t *home;      /* tiles of the current destination shard */
    uint32_t shard;            /* current destination shard, or NO_SHARD */
    uint32_t source;           /* current source shard */
    uint32_t sender;           /* tile that sends it, NO_SHARD: nobody yet */
    uint64_t share;            /* where it starts in its block */
} Counter;
enum { NO_SHARD = 0xffffffffu };

static void open_pair(Counter *c, const CopyRun *run)
{
    c->home = c->homes + run->destination_shard * c->to->format.replicas;
    c->shard = run->destination_shard;
    c->source = run->source_shard;
    c->sender = NO_SHARD;
    c->share = type_share_offset(c->from, c->source);
    bool remote = false;
    for (uint32_t r = 0; r < c->to->format.replicas; r++)
        remote |= c->holds[c->home[r]] != (int32_t)run->source_shard;
    if (!remote)
        return;
    for (uint32_t r = 0; r < c->from->format.replicas; r++) { /* the least loaded one sends */
        uint32_t tile = c->senders[run->source_shard * c->from->format.replicas + r];
        if (c->sender == NO_SHARD || c->loads[tile].sent < c->loads[c->sender].sent)
            c->sender = tile;
    }
    for (uint32_t r = 0; r < c->to->format.replicas; r++)
        if (c->holds[c->home[r]] != (int32_t)run->source_shard)
            c->loads[c->home[r]].sources++;
}

static double local_copy_cycles(Costs *costs, const CopyRun *run)
{
    KernelSpec spec = {.family = KERNEL_COPY, .p = {[COPY_APART] = 1}};
    spec.p[COPY_ROWS] = (int32_t)run->count[0];
    spec.p[COPY_ROW_BYTES] = (int32_t)run->bytes;
    spec.p[COPY_OUT_PITCH] = run->count[0] > 1 ? run->destination_step[0] : (int32_t)run->bytes;
    spec.p[COPY_IN_PITCH] = run->count[0] > 1 ? run->source_step[0] : (int32_t)run->bytes;
    return costs_kernel(costs, &spec) * run->count[1] * run->count[2];
}

/* The tiles of a group that is sent to wait for its slowest; a sender from another group makes that
 * one wait too, which costs about half as much again (measured: 21,074 events instead of 16,779,
 * counted 14,880, and 18,273, counted 11,960).
 *
 * What goes to both tiles of a pair takes half as many events, and some 97 to change the receivers'
 * format (exchange.md 3.10: 53 + 2 r) for all its pieces; the schedule uses it from about this
 * length on (cut.c). */
enum { PAIRED_WORDS = 260, PAIRED_EXTRA = 97 };

static bool comes_paired(const Counter *c, const CopyRun *run, uint32_t words, uint32_t tile)
{
    uint32_t twin = tile ^ 1u;
    return c->costs && c->costs->pairs && words >= PAIRED_WORDS && run->bytes % 8 == 0 &&
           twin < c->tiles && c->wants[twin] == (int32_t)run->destination_shard &&
           c->holds[twin] != (int32_t)run->source_shard && c->sender != tile && c->sender != twin;
}

static void count_run(void *context, const CopyRun *run)
{
    Counter *c = context;
    if (run->destination_shard != c->shard || run->source_shard != c->source)
        open_pair(c, run);
    uint32_t bytes = run->bytes * run->count[0] * run->count[1] * run->count[2];
    uint32_t words = ceil_div_u32(run->bytes, 4) * run->count[0] * run->count[1] * run->count[2];
    bool narrow = false, wide = false;
    uint32_t half = words / 2 + PAIRED_EXTRA;
    if (c->sender != NO_SHARD && c->wants[c->sender] != (int32_t)run->destination_shard)
        half += half / 2; /* see below */
    for (uint32_t r = 0; r < c->to->format.replicas; r++) {
        Load *load = &c->loads[c->home[r]];
        if (c->holds[c->home[r]] != (int32_t)run->source_shard) {
            bool paired = comes_paired(c, run, words, c->home[r]);
            load->received += words;
            load->received_items += paired ? half : words;
            *(paired ? &wide : &narrow) = true;
            continue;
        }
        load->kept += bytes;
        bool steps = false;
        for (uint32_t d = 0; d < 3; d++)
            steps |= run->count[d] > 1 && run->source_step[d] != run->destination_step[d];
        load->moved |= steps || run->source_offset != run->destination_offset;
        if (!c->costs)
            continue;
        double cycles = local_copy_cycles(c->costs, run);
        load->local += cycles;
        if (steps || run->source_offset + c->share != run->destination_offset)
            load->own_local += cycles;
    }
    if (c->sender == NO_SHARD)
        return;
    c->loads[c->sender].sent += words;
    c->loads[c->sender].sent_items += (narrow ? words : 0) + (wide ? words / 2 : 0);
    if (wide && (c->sender ^ 1u) < c->tiles) { /* its partner does nothing meanwhile */
        c->loads[c->sender ^ 1u].sent_items += words / 2;
        c->loads[c->sender ^ 1u].received_items += words / 2;
    }
}

static uint32_t tiles_of(const Format *format)
{
    return format->first_tile + format->tile_count;
}

static Status count_copy(Costs *costs, const TensorType *from, const TensorType *to,
                         const Mapping *mapping, Counter *counter)
{
    uint32_t tiles = max_u32(tiles_of(&from->format), tiles_of(&to->format));
    *counter = (Counter){.costs = costs, .from = from, .to = to, .tiles = tiles, .shard = NO_SHARD};
    counter->loads = xcalloc(tiles, sizeof *counter->loads);
    counter->holds = xcalloc(tiles, sizeof *counter->holds);
    counter->wants = xcalloc(tiles, sizeof *counter->wants);
    counter->homes = xcalloc(to->format.tile_count, sizeof *counter->homes);
    counter->senders = xcalloc(from->format.tile_count, sizeof *counter->senders);
    type_tiles(to, counter->homes);
    type_tiles(from, counter->senders);
    for (uint32_t t = 0; t < tiles; t++)
        counter->holds[t] = counter->wants[t] = -1;
    for (uint32_t i = 0; i < to->format.tile_count; i++)
        counter->wants[counter->homes[i]] = (int32_t)(i / to->format.replicas);
    for (uint32_t i = 0; i < from->format.tile_count; i++)
        counter->holds[counter->senders[i]] = (int32_t)(i / from->format.replicas);
    return costs ? plan_copy_words(from, to, mapping, count_run, counter)
                 : type_copy_runs(from, to, mapping, count_run, counter);
}

static void counter_free(Counter *counter)
{
    free(counter->loads);
    free(counter->holds);
    free(counter->wants);
    free(counter->homes);
    free(counter->senders);
}

static uint64_t logical_bytes(const TensorType *type, uint32_t shard)
{
    Region region;
    if (!type_shard_region(type, shard, &region))
        return 0;
    if (type->format.shares > 1) {
        ByteRunArray padding = {0};
        uint64_t all = type_shard_bytes(type, shard);
        type_padding_runs(type, shard, &padding);
        for (size_t i = 0; i < padding.count; i++)
            all -= padding.items[i].bytes;
        array_free(&padding);
        return all;
    }
    uint64_t bytes = precision_bytes(type->format.precision);
    for (uint32_t a = 0; a < region.rank; a++)
        bytes *= region.logical_end[a] - region.start[a];
    return bytes;
}

/* Nothing moves when every tile of the destination finds all bytes of its shard in its own source
 * shard, at the same offsets, in a shard of the same size with no more logical content. */
static bool counted_as_view(const Counter *c)
{
    const Format *to = &c->to->format;
    for (uint32_t i = 0; i < to->tile_count; i++) {
        uint32_t t = c->homes[i], shard = i / to->replicas;
        uint64_t bytes = logical_bytes(c->to, shard);
        if (bytes == 0)
            continue;
        if (c->holds[t] < 0 || c->loads[t].moved || c->loads[t].kept != bytes ||
            type_shard_bytes(c->from, (uint32_t)c->holds[t]) != type_shard_bytes(c->to, shard) ||
            logical_bytes(c->from, (uint32_t)c->holds[t]) != bytes)
            return false;
    }
    return true;
}

bool plan_copy_is_view(const TensorType *source, const TensorType *destination,
                       const Mapping *mapping)
{
    if (mapping_is_identity(mapping) && shape_equal(&source->shape, &destination->shape) &&
        format_equal(&source->format, &destination->format))
        return true;
    const Format *from = &source->format, *to = &destination->format;
    if (from->precision.kind != to->precision.kind || to->first_tile < from->first_tile ||
        tiles_of(to) > tiles_of(from) ||
        type_max_shard_bytes(source) != type_max_shard_bytes(destination) ||
        (to->memory_class == MEMORY_INTERLEAVED && from->memory_class != MEMORY_INTERLEAVED))
        return false; /* for most pairs there is no need to count */
    Counter counter;
    bool good = !status_discard(count_copy(NULL, source, destination, mapping, &counter)) &&
                counted_as_view(&counter);
    counter_free(&counter);
    return good;
}

/* Some shard has bytes that nothing logical lies in: what is copied into it does not clear them. */
static bool has_padding(const TensorType *type)
{
    uint32_t shards = type_shard_count(type);
    for (uint32_t s = 0; s < shards; s++)
        if (type_shard_bytes(type, s) != logical_bytes(type, s))
            return true;
    return false;
}

static Status convert(Costs *costs, const Storage *from, const Mapping *extra, const TensorType *to,
                      Conversion *out)
{
    Mapping mapping = from->mapping;
    if (extra)
        TRY(mapping_compose(&from->mapping, extra, &mapping));
    *out = (Conversion){0};
    if (mapping_is_identity(&mapping) && shape_equal(&from->type.shape, &to->shape) &&
        format_equal(&from->type.format, &to->format)) {
        out->view = true;
        return STATUS_OK;
    }
    out->view = plan_copy_is_view(&from->type, to, &mapping);
    if (out->view)
        return STATUS_OK;
    out->padded = has_padding(to);
    Counter counter;
    uint32_t items = 0;
    Status status = count_copy(costs, &from->type, to, &mapping, &counter);
    if (status_ok(status)) {
        for (uint32_t t = 0; t < counter.tiles; t++) {
            const Load *load = &counter.loads[t];
            out->words = max_u32(out->words, max_u32(load->sent, load->received));
            items = max_u32(items, max_u32(load->sent_items, load->received_items));
            out->sources = max_u32(out->sources, load->sources);
            out->local = load->local > out->local ? load->local : out->local;
            out->own_local = load->own_local > out->own_local ? load->own_local : out->own_local;
        }
        /* Of what pairs could save about half comes true: their senders' partners, and messages
         * to single tiles between them, hold the schedule up. */
        out->words = (out->words + min_u32(out->words, items)) / 2;
    }
    counter_free(&counter);
    return status;
}

/* What a conversion is counted from: the key depends on nothing but the two types and mappings. */
static uint64_t conversion_key(const Costs *costs, uint32_t storage, const Mapping *extra,
                               const TensorType *to)
{
    uint64_t key = hash_type(to, costs->storages.items[storage].hash);
    return extra ? hash_mapping(extra, key) : key;
}

static void keep_conversion(Costs *costs, uint64_t key, const Conversion *made, Status status)
{
    bool added;
    uint64_t *slot = map_at(&costs->conversion_ids, key, &added);
    Conversion kept = *made;
    if (!status_ok(status))
        kept = (Conversion){.error = xstrdup(status_message(status))};
    status_free(status);
    *slot = costs->conversions.count;
    array_push(&costs->conversions, kept);
}

static void want_conversion(Costs *costs, uint64_t key, uint32_t storage, const Mapping *extra,
                            const TensorType *to)
{
    bool added;
    map_at(&costs->wanted_ids, key, &added);
    if (!added)
        return;
    WantedConversion wanted = {.key = key, .storage = storage, .to = *to, .mapped = extra};
    if (extra)
        wanted.extra = *extra;
    array_push(&costs->wanted, wanted);
}

Status costs_conversion(Costs *costs, uint32_t storage, const Mapping *extra, const TensorType *to,
                        Conversion *out)
{
    uint64_t key = conversion_key(costs, storage, extra, to);
    const uint64_t *found = map_find(&costs->conversion_ids, key);
    *out = (Conversion){0};
    if (!found && costs->collecting) {
        want_conversion(costs, key, storage, extra, to);
        return STATUS_OK;
    }
    if (!found) {
        Conversion made = {0};
        Storage from = costs->storages.items[storage];
        Status status = convert(costs, &from, extra, to, &made);
        keep_conversion(costs, key, &made, status);
        found = map_find(&costs->conversion_ids, key);
    }
    const Conversion *kept = &costs->conversions.items[*found];
    if (kept->error)
        return status_error("%s", kept->error);
    *out = *kept;
    return STATUS_OK;
}

typedef struct CountJob {
    const Costs *costs;
    Costs *workers; /* their kernel prices, for local copies */
    Conversion *made;
    Status *status;
} CountJob;

static void count_wanted(void *context, size_t index, unsigned worker)
{
    CountJob *job = context;
    const WantedConversion *wanted = &job->costs->wanted.items[index];
    job->status[index] =
        convert(&job->workers[worker], &job->costs->storages.items[wanted->storage],
                wanted->mapped ? &wanted->extra : NULL, &wanted->to, &job->made[index]);
}

void costs_count_wanted(Costs *costs, Pool *pool)
{
    size_t count = costs->wanted.count;
    unsigned width = pool_width(pool);
    CountJob job = {.costs = costs,
                    .workers = xcalloc(width, sizeof *job.workers),
                    .made = xcalloc(count + 1, sizeof *job.made),
                    .status = xcalloc(count + 1, sizeof *job.status)};
    for (unsigned i = 0; i < width; i++)
        job.workers[i].pairs = costs->pairs;
    parallel_for(pool, count, count_wanted, &job);
    for (size_t i = 0; i < count; i++)
        keep_conversion(costs, costs->wanted.items[i].key, &job.made[i], job.status[i]);
    for (unsigned i = 0; i < width; i++)
        costs_free(&job.workers[i]);
    free(job.workers);
    free(job.made);
    free(job.status);
    costs->wanted.count = 0;
}

double costs_kernel(Costs *costs, const KernelSpec *spec)
{
    uint32_t words[KERNEL_PARAMETERS + 1] = {spec->family};
    for (uint32_t i = 0; i < KERNEL_PARAMETERS; i++)
        words[i + 1] = (uint32_t)spec->p[i];
    bool added;
    uint64_t *slot = map_at(&costs->kernel_ids, hash_u32(7, words, countof(words)), &added);
    if (added)
        *slot = kernel_cycles(spec);
    return (double)*slot;
}

Status costs_pattern(Costs *costs, KernelSpec pattern, const ShardOf *operands, uint32_t count,
                     double *cycles)
{
    KernelContract contract;
    TRY(plan_fill_spec(&pattern, operands, count));
    TRY(kernel_contract(&pattern, &contract));
    *cycles = costs_kernel(costs, &pattern);
    return STATUS_OK;
}

void costs_free(Costs *costs)
{
    array_free(&costs->storages);
    for (size_t i = 0; i < costs->conversions.count; i++)
        free(costs->conversions.items[i].error);
    array_free(&costs->conversions);
    array_free(&costs->wanted);
    map_free(&costs->wanted_ids);
    map_free(&costs->storage_ids);
    map_free(&costs->conversion_ids);
    map_free(&costs->kernel_ids);
}
