/* package.c - reading and writing .ipuexe files, the rules every package keeps, host data in and
 * out of a binding's raw form. */
#include "package/wire.h"

#include <string.h>

enum { SEGMENT_READ = 1, SEGMENT_WRITE = 2, SEGMENT_EXECUTE = 4, TILE_LIMIT = 1472 };

static Status check_segments(const PackageTile *tile)
{
    uint64_t end = PACKAGE_MEMORY_BASE;
    for (uint32_t s = 0; s < tile->segment_count; s++) {
        const PackageSegment *segment = &tile->segments[s];
        uint64_t last = (uint64_t)segment->address + segment->memory_bytes;
        if (segment->data_bytes > segment->memory_bytes)
            return status_error("tile %u: segments[%u]: %u bytes of data in %u bytes of memory",
                                tile->physical, s, segment->data_bytes, segment->memory_bytes);
        if (segment->address < PACKAGE_MEMORY_BASE ||
            last > PACKAGE_MEMORY_BASE + PACKAGE_MEMORY_BYTES)
            return status_error("tile %u: segments[%u]: %#x..%#llx is outside the tile's memory",
                                tile->physical, s, segment->address, (unsigned long long)last);
        if (segment->flags > (SEGMENT_READ | SEGMENT_WRITE | SEGMENT_EXECUTE))
            return status_error("tile %u: segments[%u]: unknown flags %#x", tile->physical, s,
                                segment->flags);
        if (!segment->memory_bytes)
            continue;
        if (segment->address < end)
            return status_error("tile %u: segments[%u] at %#x overlaps the one before or is out of "
                                "order",
                                tile->physical, s, segment->address);
        end = last;
    }
    return STATUS_OK;
}

static Status check_tiles(const Package *package, bool *exists)
{
    if (!package->tile_count)
        return status_error("tiles: none");
    for (uint32_t t = 0; t < package->tile_count; t++) {
        const PackageTile *tile = &package->tiles[t];
        if (tile->physical >= TILE_LIMIT)
            return status_error("tiles[%u]: physical tile %u does not exist", t, tile->physical);
        if (exists[tile->physical])
            return status_error("tiles[%u]: physical tile %u stands twice", t, tile->physical);
        exists[tile->physical] = true;
        TRY(status_context(check_segments(tile), "tiles[%u]", t));
    }
    if (package->tiles_used > TILE_LIMIT)
        return status_error("tilesUsed: %u", package->tiles_used);
    return STATUS_OK;
}

static Status check_binding(const PackageBinding *binding, const bool *exists, Map *names)
{
    if (!*binding->name)
        return status_error("a binding has no name");
    bool added;
    map_at_text(names, binding->name, &added);
    if (!added)
        return status_error("the name stands twice");
    for (uint32_t s = 0; s < binding->slice_count; s++) {
        const PackageSlice *slice = &binding->slices[s];
        if (slice->tile >= TILE_LIMIT || !exists[slice->tile])
            return status_error("slices[%u]: physical tile %u is not in the package", s,
                                slice->tile);
        if (slice->bytes > PACKAGE_MEMORY_BYTES || slice->address < PACKAGE_MEMORY_BASE ||
            slice->address + slice->bytes > PACKAGE_MEMORY_BASE + PACKAGE_MEMORY_BYTES)
            return status_error("slices[%u]: %#x, %llu bytes is outside the tile's memory", s,
                                slice->address, (unsigned long long)slice->bytes);
    }
    TensorType type = {binding->shape, binding->format};
    TRY(type_check(&type));
    uint64_t offset = 0; /* the slices must be the shards of the layout, one by one */
    uint32_t next = 0, shards = type_shard_count(&type);
    for (uint32_t s = 0; s < shards; s++) {
        uint64_t bytes = type_shard_bytes(&type, s);
        for (uint32_t r = 0; bytes && r < type.format.replicas; r++, next++, offset += bytes)
            if (next >= binding->slice_count || binding->slices[next].bytes != bytes ||
                binding->slices[next].file_offset != offset)
                return status_error("slices[%u] is not shard %u of the layout", next, s);
    }
    if (next != binding->slice_count)
        return status_error("%u slices, the layout has %u", binding->slice_count, next);
    return STATUS_OK;
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
            status = status_context(check_binding(&groups[g].list[i], exists, &names), "%s: %s",
                                    groups[g].kind, groups[g].list[i].name);
    map_free(&names);
    return status;
}

static Status check_debug_map(const Package *package, const bool *exists)
{
    for (uint32_t i = 0; i < package->symbol_count; i++)
        if (!*package->symbols[i].name)
            return status_error("debugSymbols[%u] has no name", i);
    for (uint32_t i = 0; i < package->region_count; i++) {
        const PackageRegion *region = &package->regions[i];
        if (!*region->name || !region->bytes || region->address + region->bytes < region->address)
            return status_error("debugRegions[%u]: no name, no size, or past the address space", i);
        if (region->physical != PACKAGE_ALL_TILES &&
            (region->physical >= TILE_LIMIT || !exists[region->physical]))
            return status_error("debugRegions[%u]: tile %u is not in the package", i,
                                region->physical);
    }
    for (uint32_t i = 0; i < package->call_count; i++)
        if (!*package->calls[i].name || !package->calls[i].invocations)
            return status_error("calls[%u]: no name or no invocation", i);
    return STATUS_OK;
}

Status package_check(const Package *package)
{
    bool exists[TILE_LIMIT] = {0};
    TRY(check_tiles(package, exists));
    TRY(check_bindings(package, exists));
    return check_debug_map(package, exists);
}

Status package_encode(const Package *package, Bytes *out)
{
    TRY(package_check(package));
    return wire_encode(package, out);
}

Status package_write(const Package *package, const char *path)
{
    Bytes bytes;
    TRY(package_encode(package, &bytes));
    Status status = file_write(path, bytes.data, bytes.count);
    bytes_free(&bytes);
    return status;
}

Status package_decode(Arena *arena, const char *name, const uint8_t *data, size_t count,
                      Package *out)
{
    TRY(wire_decode(arena, name, data, count, out));
    return status_context(package_check(out), "%s", name);
}

Status package_read(Arena *arena, const char *path, Package *out)
{
    Bytes bytes;
    TRY(file_read(path, FILE_LIMIT_DATA, &bytes));
    const uint8_t *data = arena_copy(arena, bytes.data, bytes.count, 8);
    size_t count = bytes.count;
    bytes_free(&bytes);
    return package_decode(arena, path, data, count, out);
}

const char *package_text(const Package *package, const char *name)
{
    for (uint32_t i = 0; i < package->text_count; i++)
        if (strcmp(package->texts[i].name, name) == 0)
            return package->texts[i].text;
    return NULL;
}

/* ---- host data ---- */

uint64_t binding_raw_bytes(const PackageBinding *binding)
{
    if (!binding->slice_count)
        return 0;
    const PackageSlice *last = &binding->slices[binding->slice_count - 1];
    return last->file_offset + last->bytes;
}

Status binding_pack(const PackageBinding *binding, const void *logical, uint8_t *raw)
{
    TensorType type = {binding->shape, binding->format};
    uint32_t shards = type_shard_count(&type);
    for (uint32_t s = 0; s < shards; s++) {
        uint64_t bytes = type_shard_bytes(&type, s);
        if (!bytes)
            continue;
        type_pack_shard(&type, s, logical, raw);
        for (uint32_t r = 1; r < type.format.replicas; r++)
            memcpy(raw + r * bytes, raw, bytes);
        raw += bytes * type.format.replicas;
    }
    return STATUS_OK;
}

Status binding_unpack(const PackageBinding *binding, const uint8_t *raw, void *logical)
{
    TensorType type = {binding->shape, binding->format};
    uint32_t shards = type_shard_count(&type);
    for (uint32_t s = 0; s < shards; s++) {
        uint64_t bytes = type_shard_bytes(&type, s);
        if (!bytes)
            continue;
        type_unpack_shard(&type, s, raw, logical);
        raw += bytes * type.format.replicas;
    }
    return STATUS_OK;
}
