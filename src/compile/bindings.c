/* bindings.c - the package of a compilation: images, what the host reads and writes, and the texts
 * and numbers that the other verbs need.
 *
 * A binding is one tensor of the model in one format; its slices are the shards' bytes, shard by
 * shard and replica by replica. With weights given, each parameter's shards become data segments of
 * the tiles that hold them. */
#include "compile/compile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HALF_LIMIT 65519.0f /* larger magnitudes round to infinity */

typedef ARRAY(PackageBinding) BindingArray;
typedef ARRAY(PackageSegment) SegmentArray;

typedef struct Builder {
    Compilation *c;
    const CompileOptions *options;
    Map buffer_of;                /* mid value -> buffer + 1 */
    Map names;                    /* of bindings, for uniqueness */
    SegmentArray segments[TILES]; /* parameters, by physical tile */
    BindingArray inputs, outputs, weights;
} Builder;

static const char *dtype_name(Precision precision)
{
    static const char *const names[] = {
        [F16] = "f16", [F32] = "f32", [F8F143] = "f8f143", [U32] = "u32"};
    return names[precision.kind];
}

/* Where a shard of a mid value lies on a tile: address of its buffer plus the view's offset. */
static Status shard_address(const Builder *b, MidId value, uint32_t shard, uint32_t tile,
                            uint32_t member, uint32_t *address)
{
    MidId root = mid_root(&b->c->mid, value);
    const uint64_t *entry = map_find(&b->buffer_of, value);
    uint64_t offset = 0;
    if (!entry) {
        entry = map_find(&b->buffer_of, root);
        offset = mid_offset(&b->c->mid, value, shard);
    }
    if (!entry)
        return status_error("%s has no buffer", mid_value(&b->c->mid, value)->name);
    uint32_t buffer = (uint32_t)*entry - 1;
    uint32_t start = placement_address(&b->c->placement, tile, buffer);
    if (!start)
        return status_error("%s has no memory on tile %u", mid_value(&b->c->mid, value)->name,
                            tile);
    *address = start + (uint32_t)offset +
               member * buffer_stride(&b->c->program.buffers.items[buffer], tile);
    return STATUS_OK;
}

/* A second format of the same tensor gets a name of its own: "name#2". */
static const char *unique_name(Builder *b, const char *name)
{
    uint64_t uses = ++*map_at_text(&b->names, name, NULL);
    return uses == 1 ? name : arena_printf(&b->c->arena, "%s#%llu", name, (unsigned long long)uses);
}

static Status make_binding(Builder *b, MidId id, const char *name, uint32_t member,
                           PackageBinding *out)
{
    const TensorType *type = &mid_value(&b->c->mid, id)->type;
    ARRAY(PackageSlice) slices = {0};
    uint64_t offset = 0;
    Status status = STATUS_OK;
    uint32_t shards = type_shard_count(type);
    for (uint32_t s = 0; s < shards && status_ok(status); s++) {
        uint64_t bytes = type_shard_bytes(type, s);
        for (uint32_t r = 0; bytes && r < type->format.replicas && status_ok(status); r++) {
            uint32_t tile = type_tile_of_shard(type, s, r);
            PackageSlice slice = {target_physical(tile), 0, offset, bytes};
            status = shard_address(b, id, s, tile, member, &slice.address);
            array_push(&slices, slice);
            offset += bytes;
        }
    }
    *out = (PackageBinding){
        .name = unique_name(b, name),
        .dtype = dtype_name(type->format.precision),
        .shape = type->shape,
        .slices = arena_copy(&b->c->arena, slices.items, slices.count * sizeof(PackageSlice), 8),
        .slice_count = (uint32_t)slices.count,
        .format = type->format};
    array_free(&slices);
    return status_context(status, "binding %s", name);
}

/* The parameter's shards as data segments. */
static Status bake(Builder *b, const PackageBinding *binding, const char *parameter)
{
    const TensorEntry *entry = tensors_find(b->options->weights, parameter);
    if (!entry)
        return status_error("weights: %s is missing", parameter);
    size_t elements = shape_elements(&binding->shape);
    float *floats = xmalloc(array_bytes(elements, sizeof *floats));
    Status status = tensor_floats(entry, floats);
    if (!status_ok(status)) {
        free(floats);
        return status;
    }
    Precision precision = binding->format.precision;
    for (size_t i = 0; i < elements; i++)
        if (precision.kind == F16 && fabsf(floats[i]) > HALF_LIMIT) {
            status = status_error("weights: %s[%zu] = %g is beyond the range of F16", parameter, i,
                                  (double)floats[i]);
            free(floats);
            return status;
        }
    uint8_t *logical = xmalloc(array_bytes(elements, precision_bytes(precision)));
    convert_elements(floats, (Precision){.kind = F32}, logical, precision, elements);
    uint8_t *raw = arena_alloc(&b->c->arena, binding_raw_bytes(binding), 8);
    status = binding_pack(binding, logical, raw);
    for (uint32_t i = 0; i < binding->slice_count && status_ok(status); i++) {
        const PackageSlice *slice = &binding->slices[i];
        PackageSegment segment = {slice->address, (uint32_t)slice->bytes, 1 | 2,
                                  raw + slice->file_offset, (uint32_t)slice->bytes};
        array_push(&b->segments[slice->tile], segment);
    }
    free(logical);
    free(floats);
    return status;
}

static Status add_parameter(Builder *b, MidId id)
{
    const MidValue *value = mid_value(&b->c->mid, id);
    for (uint32_t m = 0; m < value->members; m++) {
        const char *name = b->c->graph->values.items[value->member_values[m]].name;
        PackageBinding binding;
        TRY(make_binding(b, id, name, m, &binding));
        if (b->options->weights)
            TRY(bake(b, &binding, name));
        array_push(&b->weights, binding);
    }
    return STATUS_OK;
}

static Status add_bindings(Builder *b)
{
    const Graph *graph = b->c->graph;
    for (MidId id = 0; id < b->c->mid.values.count; id++) {
        const MidValue *value = mid_value(&b->c->mid, id);
        MidId root = mid_root(&b->c->mid, id);
        if ((value->storage != MID_NONE && !value->apart) || !map_find(&b->buffer_of, root))
            continue;
        if (value->role == BUFFER_PARAMETER)
            TRY(add_parameter(b, id));
        if (value->role == BUFFER_INPUT) {
            PackageBinding binding;
            TRY(make_binding(b, id, graph->values.items[value->origin].name, 0, &binding));
            array_push(&b->inputs, binding);
        }
    }
    for (size_t o = 0; o < graph->outputs.count; o++) {
        const GraphOutput *output = &graph->outputs.items[o];
        for (MidId id = 0; id < b->c->mid.values.count; id++) {
            const MidValue *value = mid_value(&b->c->mid, id);
            if (value->role != BUFFER_OUTPUT || value->origin != output->value ||
                strcmp(value->name, output->name) != 0)
                continue;
            PackageBinding binding;
            TRY(make_binding(b, id, output->name, 0, &binding));
            array_push(&b->outputs, binding);
            break;
        }
    }
    return STATUS_OK;
}

static int by_address(const void *a, const void *b)
{
    const PackageSegment *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

/* Zeroed memory around the parameters that lie in it: what of it is in front of them, and behind.
 */
static void add_zeroed(SegmentArray *segments, size_t parameters, PackageSegment zeroed)
{
    uint32_t end = zeroed.address + zeroed.memory_bytes;
    for (size_t i = 0; i < parameters && zeroed.memory_bytes; i++) { /* ascending */
        uint32_t start = segments->items[i].address, last = start + segments->items[i].memory_bytes;
        if (last <= zeroed.address || start >= end)
            continue;
        PackageSegment before = zeroed;
        before.memory_bytes = start > zeroed.address ? start - zeroed.address : 0;
        if (before.memory_bytes)
            array_push(segments, before);
        zeroed.address = last;
        zeroed.memory_bytes = end > last ? end - last : 0;
    }
    if (zeroed.memory_bytes)
        array_push(segments, zeroed);
}

static void add_tiles(Builder *b, Package *package)
{
    const Images *images = &b->c->images;
    package->tile_count = images->count;
    package->tiles = arena_array(&b->c->arena, PackageTile, images->count);
    for (uint32_t t = 0; t < images->count; t++) {
        const TileCode *code = &images->tiles[t];
        SegmentArray *segments = &b->segments[code->physical];
        size_t parameters = segments->count;
        if (parameters)
            qsort(segments->items, parameters, sizeof *segments->items, by_address);
        for (uint32_t s = 0; s < code->segment_count; s++) {
            const ImageSegment *i = &code->segments[s];
            PackageSegment segment = {i->address, i->bytes, i->flags, i->data, i->data_bytes};
            if (i->data_bytes)
                array_push(segments, segment);
            else
                add_zeroed(segments, parameters, segment);
        }
        qsort(segments->items, segments->count, sizeof *segments->items, by_address);
        package->tiles[t] = (PackageTile){
            .physical = code->physical,
            .entry = code->entry,
            .command_address = STATE_BASE + STATE_COMMAND,
            .diagnostic_address = STATE_BASE + STATE_COMPLETION,
            .segments = arena_copy(&b->c->arena, segments->items,
                                   segments->count * sizeof(PackageSegment), 8),
            .segment_count = (uint32_t)segments->count,
            .steps_start = code->steps_start,
            .steps_end = code->steps_end,
        };
        array_free(segments);
    }
}

static void add_phases(Compilation *c, Package *package)
{
    package->phase_count = (uint32_t)c->program.phases.count;
    package->phases = arena_array(&c->arena, PackagePhase, package->phase_count);
    for (uint32_t p = 0; p < package->phase_count; p++) {
        const ExchangePhase *phase = &c->program.phases.items[p];
        uint64_t words = 0;
        for (uint32_t t = 0; t < phase->transfer_count; t++)
            words += (uint64_t)phase->transfers[t].words * phase->transfers[t].receiver_count;
        package->phases[p] = (PackagePhase){phase->operation,
                                            phase->transfer_count,
                                            c->schedule.phases[p].bound,
                                            c->schedule.phases[p].horizon,
                                            phase->in_repeat,
                                            words};
    }
}

static void add_debug_map(Compilation *c, Package *package)
{
    package->symbol_count = c->linked.symbol_count;
    package->symbols = arena_array(&c->arena, PackageSymbol, package->symbol_count);
    for (uint32_t i = 0; i < package->symbol_count; i++)
        package->symbols[i] =
            (PackageSymbol){c->linked.symbols[i].name, c->linked.symbols[i].address};
    ARRAY(PackageRegion) regions = {0};
    for (uint32_t s = 0; s < c->linked.segment_count; s++)
        array_push(&regions, (PackageRegion){0xffffffff, c->linked.segments[s].address,
                                             c->linked.segments[s].bytes, "linked executable"});
    for (uint32_t t = 0; t < c->images.count; t++) {
        const TileCode *tile = &c->images.tiles[t];
        for (uint32_t s = 0; s < tile->segment_count; s++) {
            const ImageSegment *segment = &tile->segments[s];
            bool generated = strcmp(segment->name, "generated tile program") == 0;
            if (generated || strcmp(segment->name, "exchange rows") == 0)
                array_push(&regions, (PackageRegion){tile->physical, segment->address,
                                                     segment->bytes, segment->name});
        }
    }
    package->regions =
        arena_copy(&c->arena, regions.items, regions.count * sizeof(PackageRegion), 8);
    package->region_count = (uint32_t)regions.count;
    array_free(&regions);
}

/* Tile by tile the program's buffers: the memory map with lifetimes. */
static void add_allocations(Compilation *c, Package *package)
{
    ARRAY(PackageAllocation) all = {0};
    for (uint32_t t = 0; t < c->program.tiles; t++)
        for (uint32_t b = 0; b < c->program.buffers.count; b++) {
            const Buffer *buffer = &c->program.buffers.items[b];
            uint32_t address = placement_address(&c->placement, t, b);
            if (!address || buffer->alias != BUFFER_NONE)
                continue;
            uint32_t bytes =
                buffer->members > 1 ? buffer->members * buffer_stride(buffer, t) : buffer->bytes[t];
            array_push(&all, (PackageAllocation){t, address, bytes, c->placement.lifetime[b].first,
                                                 c->placement.lifetime[b].last, buffer->name});
        }
    package->allocations =
        arena_copy(&c->arena, all.items, all.count * sizeof(PackageAllocation), 8);
    package->allocation_count = (uint32_t)all.count;
    array_free(&all);
}

static void add_texts(Compilation *c, const CompileOptions *options, Package *package)
{
    package->texts = arena_array(&c->arena, PackageText, 3);
    json_t *recipe = recipe_to_json(c->graph, c->recipe), *search = search_report_json(c);
    if (search)
        json_object_set_new(recipe, "search", search);
    char *text = json_dumps(recipe, JSON_COMPACT | JSON_PRESERVE_ORDER);
    package->texts[package->text_count++] = (PackageText){"recipe", arena_strdup(&c->arena, text)};
    free(text);
    json_decref(recipe);
    if (options->weights)
        package->texts[package->text_count++] = (PackageText){"weights", "baked"};
    if (options->model)
        package->texts[package->text_count++] = (PackageText){"model", options->model->text};
}

Status compile_package(Compilation *c, const CompileOptions *options)
{
    Builder *b = xcalloc(1, sizeof *b);
    b->c = c;
    b->options = options;
    for (size_t i = 0; i < c->program.buffers.count; i++)
        if (c->program.buffers.items[i].value != 0xffffffff)
            *map_at(&b->buffer_of, c->program.buffers.items[i].value, NULL) = i + 1;
    Package *package = &c->package;
    *package = (Package){.compiler_version = "ipu-stack " IPU_VERSION,
                         .tiles_used = c->program.tiles,
                         .startup_mark = TILES / 64};
    Status status = add_bindings(b);
    if (status_ok(status)) {
        add_tiles(b, package);
        add_phases(c, package);
        compile_profile_plan(c);
        package->profile_mode = options->profile;
        if (options->profile == PROFILE_FULL) {
            PackageBinding samples;
            compile_sample_binding(c, &samples);
            array_push(&b->outputs, samples);
        }
        add_debug_map(c, package);
        add_allocations(c, package);
        add_texts(c, options, package);
        package->calls = arena_array(&c->arena, PackageCall, 1);
        package->calls[0] = (PackageCall){"run", 0, 2, 1};
        package->call_count = 1;
    }
    package->inputs =
        arena_copy(&c->arena, b->inputs.items, b->inputs.count * sizeof(PackageBinding), 8);
    package->input_count = (uint32_t)b->inputs.count;
    package->outputs =
        arena_copy(&c->arena, b->outputs.items, b->outputs.count * sizeof(PackageBinding), 8);
    package->output_count = (uint32_t)b->outputs.count;
    package->weights =
        arena_copy(&c->arena, b->weights.items, b->weights.count * sizeof(PackageBinding), 8);
    package->weight_count = (uint32_t)b->weights.count;
    for (size_t t = 0; t < TILES; t++)
        array_free(&b->segments[t]);
    array_free(&b->inputs);
    array_free(&b->outputs);
    array_free(&b->weights);
    map_free(&b->buffer_of);
    map_free(&b->names);
    free(b);
    return status;
}
