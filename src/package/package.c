/* package.c - reading and writing .ipuexe files, host data in and out of a binding's raw form. */
#include "package/wire.h"

#include <string.h>

Status package_encode(const Package *package, Bytes *out)
{
    TRY(package_check(package));
    TRY(wire_encode(package, out));
    Status status = wire_seal(out);
    if (!status_ok(status))
        bytes_free(out);
    return status;
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
    if ((uintptr_t)data % 8)
        data = arena_copy(arena, data, count, 8);
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

bool binding_has_layout(const PackageBinding *binding)
{
    return binding->format.tile_count != 0;
}

uint64_t binding_raw_bytes(const PackageBinding *binding)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < binding->slice_count; i++) {
        uint64_t last = binding->slices[i].file_offset + binding->slices[i].bytes;
        end = last > end ? last : end;
    }
    return end;
}

static Status need_layout(const PackageBinding *binding)
{
    if (!binding_has_layout(binding))
        return status_error("%s: the package does not say how it is laid out", binding->name);
    return STATUS_OK;
}

Status binding_pack(const PackageBinding *binding, const void *logical, uint8_t *raw)
{
    TRY(need_layout(binding));
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
    TRY(need_layout(binding));
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
