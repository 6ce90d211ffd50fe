/* check.c - the rules every package keeps, written or read (memory-boot-package.md 4.3), and those
 * that our own additions need. Messages name the field. */
#include "package/wire.h"

#include "target/target.h"

#include <stdlib.h>
#include <string.h>

enum { SEGMENT_READ = 1, SEGMENT_WRITE = 2, SEGMENT_EXECUTE = 4 };
#define FILE_OFFSET_LIMIT ((uint64_t)1 << 40) /* of a binding without layout: keeps sums small */

static bool inside_memory(uint64_t address, uint64_t bytes)
{
    return address >= PACKAGE_MEMORY_BASE && bytes <= PACKAGE_MEMORY_BYTES &&
           address + bytes <= PACKAGE_MEMORY_BASE + PACKAGE_MEMORY_BYTES;
}

/* ---- tiles ---- */

static Status check_segment(const PackageSegment *segment)
{
    if (segment->data_bytes > segment->memory_bytes)
        return status_error("%u bytes of data in %u bytes of memory", segment->data_bytes,
                            segment->memory_bytes);
    if (!inside_memory(segment->address, segment->memory_bytes))
        return status_error("%#x, %u bytes, is outside the tile's memory", segment->address,
                            segment->memory_bytes);
    if (segment->flags > (SEGMENT_READ | SEGMENT_WRITE | SEGMENT_EXECUTE))
        return status_error("unknown flags %#x", segment->flags);
    return STATUS_OK;
}

static int compare_addresses(const void *left, const void *right)
{
    const PackageSegment *const *a = left, *const *b = right;
    return ((*a)->address > (*b)->address) - ((*a)->address < (*b)->address);
}

/* The usual file has its segments in order; others are looked at through sorted pointers. */
static Status check_overlap(const PackageTile *tile, const PackageSegment **sorted)
{
    uint32_t count = 0;
    bool ordered = true;
    for (uint32_t s = 0; s < tile->segment_count; s++) {
        if (!tile->segments[s].memory_bytes)
            continue;
        ordered &= count == 0 || sorted[count - 1]->address <= tile->segments[s].address;
        sorted[count++] = &tile->segments[s];
    }
    if (!ordered)
        qsort(sorted, count, sizeof *sorted, compare_addresses);
    for (uint32_t s = 1; s < count; s++)
        if (sorted[s - 1]->address + sorted[s - 1]->memory_bytes > sorted[s]->address)
            return status_error("segments[%u] at %#x overlaps segments[%u] at %#x",
                                (uint32_t)(sorted[s] - tile->segments), sorted[s]->address,
                                (uint32_t)(sorted[s - 1] - tile->segments), sorted[s - 1]->address);
    return STATUS_OK;
}

static Status check_tile(const PackageTile *tile)
{
    for (uint32_t s = 0; s < tile->segment_count; s++)
        TRY(status_context(check_segment(&tile->segments[s]), "segments[%u]", s));
    const PackageSegment **sorted = xmalloc(array_bytes(tile->segment_count, sizeof *sorted));
    Status status = check_overlap(tile, sorted);
    free(sorted);
    return status;
}

static Status check_tiles(const Package *package, bool *exists)
{
    if (!package->tile_count)
        return status_error("tiles: none");
    for (uint32_t t = 0; t < package->tile_count; t++) {
        const PackageTile *tile = &package->tiles[t];
        if (tile->physical >= TILES)
            return status_error("tiles[%u]: physical tile %u does not exist", t, tile->physical);
        if (exists[tile->physical])
            return status_error("tiles[%u]: physical tile %u stands twice", t, tile->physical);
        exists[tile->physical] = true;
        TRY(status_context(check_tile(tile), "tiles[%u]: physical tile %u", t, tile->physical));
    }
    if (package->tiles_used > TILES)
        return status_error("tilesUsed: %u", package->tiles_used);
    return STATUS_OK;
}

/* ---- bindings ---- */

static Status check_slices(const PackageBinding *binding, const bool *exists)
{
    for (uint32_t s = 0; s < binding->slice_count; s++) {
        const PackageSlice *slice = &binding->slices[s];
        if (slice->tile >= TILES || !exists[slice->tile])
            return status_error("slices[%u]: physical tile %u is not in the package", s,
                                slice->tile);
        if (!inside_memory(slice->address, slice->bytes))
            return status_error("slices[%u]: %#x, %llu bytes, is outside the tile's memory", s,
                                slice->address, (unsigned long long)slice->bytes);
        if (slice->file_offset > FILE_OFFSET_LIMIT)
            return status_error("slices[%u]: file offset %llu", s,
                                (unsigned long long)slice->file_offset);
    }
    return STATUS_OK;
}

/* The slices are the shards of the layout, replica by replica, side by side, on their tiles. */
static Status check_layout(const PackageBinding *binding)
{
    static const char *const dtypes[] = {
        [F16] = "f16", [F32] = "f32", [F8F143] = "f8f143", [U32] = "u32"};
    TensorType type = {binding->shape, binding->format};
    TRY(type_check(&type));
    if (strcmp(binding->dtype, dtypes[type.format.precision.kind]) != 0)
        return status_error("dtype \"%s\" is not the layout's precision", binding->dtype);
    if ((uint64_t)type.format.first_tile + type.format.tile_count > TILES)
        return status_error("the layout needs more than %d tiles", TILES);
    uint64_t offset = 0;
    uint32_t next = 0, shards = type_shard_count(&type);
    for (uint32_t s = 0; s < shards; s++) {
        uint64_t bytes = type_shard_bytes(&type, s);
        for (uint32_t r = 0; bytes && r < type.format.replicas; r++, next++, offset += bytes) {
            const PackageSlice *slice = &binding->slices[next];
            if (next >= binding->slice_count || slice->bytes != bytes ||
                slice->file_offset != offset ||
                slice->tile != target_physical(type_tile_of_shard(&type, s, r)))
                return status_error("slices[%u] is not replica %u of shard %u of the layout", next,
                                    r, s);
        }
    }
    if (next != binding->slice_count)
        return status_error("%u slices, the layout has %u", binding->slice_count, next);
    return STATUS_OK;
}

static Status check_binding(const PackageBinding *binding, const bool *exists, Map *names)
{
    bool added;
    if (!*binding->name)
        return status_error("a binding has no name");
    map_at_text(names, binding->name, &added);
    if (!added)
        return status_error("the name stands twice");
    TRY(check_slices(binding, exists));
    return binding_has_layout(binding) ? check_layout(binding) : STATUS_OK;
}

static Status check_bindings(const Package *package, const bool *exists)
{
    const struct {
        const char *kind;
        const PackageBinding *list;
        uint32_t count;
    } groups[] = {{"inputs", package->inputs, package->input_count},
                  {"outputs", package->outputs, package->output_count},
                  {"weights", package->weights, package->weight_count}};
    Map names = {0};
    Status status = STATUS_OK;
    for (size_t g = 0; g < countof(groups); g++)
        for (uint32_t i = 0; i < groups[g].count && status_ok(status); i++)
            status = status_context(check_binding(&groups[g].list[i], exists, &names), "%s[%u] %s",
                                    groups[g].kind, i, groups[g].list[i].name);
    map_free(&names);
    return status;
}

/* ---- the rest ---- */

static Status check_debug_map(const Package *package, const bool *exists)
{
    for (uint32_t i = 0; i < package->symbol_count; i++)
        if (!*package->symbols[i].name)
            return status_error("debugSymbols[%u]: no name", i);
    for (uint32_t i = 0; i < package->region_count; i++) {
        const PackageRegion *region = &package->regions[i];
        if (!*region->name || !region->bytes || region->address + region->bytes < region->address)
            return status_error("debugRegions[%u]: no name, no size, or past the address space", i);
        if (region->physical != PACKAGE_ALL_TILES &&
            (region->physical >= TILES || !exists[region->physical]))
            return status_error("debugRegions[%u]: physical tile %u is not in the package", i,
                                region->physical);
    }
    return STATUS_OK;
}

static Status check_calls(const Package *package)
{
    for (uint32_t i = 0; i < package->call_count; i++) {
        if (!*package->calls[i].name)
            return status_error("calls[%u]: no name", i);
        if (!package->calls[i].invocations)
            return status_error("calls[%u]: invocations is zero", i);
    }
    for (uint32_t i = 0; i < package->text_count; i++)
        if (!*package->texts[i].name)
            return status_error("texts[%u]: no name", i);
    return STATUS_OK;
}

static Status check_profile_tile(const Package *package, const ProfileTilePlan *plan,
                                 const bool *exists, bool *planned)
{
    if (plan->physical >= TILES || !exists[plan->physical] || planned[plan->physical])
        return status_error("it is missing or stands twice");
    planned[plan->physical] = true;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        if (plan->steps[i] >= package->profile_step_count)
            return status_error("step %u of %u", plan->steps[i], package->profile_step_count);
        if (plan->addresses[i] % 4 || (i && plan->addresses[i] <= plan->addresses[i - 1]))
            return status_error("the address %#x of step %u is not behind the one before",
                                plan->addresses[i], i);
    }
    return profile_check_activities(plan->activities, plan->activity_count,
                                    package->profile_step_count);
}

static Status check_profile_plan(const Package *package, const bool *exists)
{
    bool planned[TILES] = {0};
    if (package->profile_mode > PROFILE_FULL)
        return status_error("profileMode: %u", package->profile_mode);
    for (uint32_t t = 0; t < package->profile_tile_count; t++)
        TRY(status_context(check_profile_tile(package, &package->profile_tiles[t], exists, planned),
                           "profileTiles[%u]: physical tile %u", t,
                           package->profile_tiles[t].physical));
    return STATUS_OK;
}

Status package_check(const Package *package)
{
    bool exists[TILES] = {0};
    TRY(check_tiles(package, exists));
    TRY(check_profile_plan(package, exists));
    TRY(check_bindings(package, exists));
    TRY(check_debug_map(package, exists));
    return check_calls(package);
}
