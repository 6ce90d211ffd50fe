/* tensors.c - safetensors files: a JSON header with the place of every tensor, then the bytes.
 *
 *   u64 header length | header: {"name": {"dtype", "shape", "data_offsets": [begin, end]}, ...} |
 * data
 *
 * Everything is checked before anything is used: a hostile file gives a message. */
#include "models/models.h"

#include <math.h>
#include <string.h>

#define HEADER_LIMIT ((uint64_t)100 << 20) /* what the format's own reader allows */

static const struct {
    const char *name;
    uint32_t bytes;
} dtypes[] = {
    {"F64", 8}, {"F32", 4}, {"F16", 2},  {"BF16", 2},    {"I64", 8},
    {"U64", 8}, {"I32", 4}, {"U32", 4},  {"I16", 2},     {"U16", 2},
    {"I8", 1},  {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1},
};

static uint32_t dtype_index(const char *name)
{
    for (uint32_t i = 0; i < countof(dtypes); i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return i;
    return countof(dtypes);
}

static Status read_shape(const JsonPlace *place, Shape *out)
{
    JsonPlace shape, item;
    size_t rank;
    TRY(json_member(place, "shape", &shape));
    TRY(json_count(&shape, &rank));
    if (rank > MAX_RANK)
        return status_error("%s: rank %zu, at most %d is possible", shape.path, rank, MAX_RANK);
    *out = (Shape){.rank = rank ? (uint32_t)rank : 1, .extent = {1}}; /* a scalar is one element */
    for (size_t i = 0; i < rank; i++) {
        TRY(json_item(&shape, i, &item));
        json_int_t extent = json_is_integer(item.value) ? json_integer_value(item.value) : -1;
        if (extent < 0 || extent > UINT32_MAX)
            return status_error("%s: must be an extent", item.path);
        out->extent[i] = (uint32_t)extent;
    }
    return STATUS_OK;
}

static Status read_offsets(const JsonPlace *place, uint64_t limit, uint64_t *begin, uint64_t *end)
{
    JsonPlace offsets, item;
    size_t count;
    uint64_t value[2] = {0};
    TRY(json_member(place, "data_offsets", &offsets));
    TRY(json_count(&offsets, &count));
    if (count != 2)
        return status_error("%s: must have two items", offsets.path);
    for (size_t i = 0; i < 2; i++) {
        TRY(json_item(&offsets, i, &item));
        json_int_t v = json_is_integer(item.value) ? json_integer_value(item.value) : -1;
        if (v < 0 || (uint64_t)v > limit)
            return status_error("%s: lies outside the data's %llu bytes", item.path,
                                (unsigned long long)limit);
        value[i] = (uint64_t)v;
    }
    if (value[0] > value[1])
        return status_error("%s: ends before it begins", offsets.path);
    *begin = value[0];
    *end = value[1];
    return STATUS_OK;
}

static Status read_entry(Tensors *tensors, const JsonPlace *place, const char *name,
                         const uint8_t *data, uint64_t limit, TensorEntry *out)
{
    static const char *const keys[] = {"dtype", "shape", "data_offsets", NULL};
    const char *dtype;
    uint64_t begin, end;
    TRY(json_only(place, keys));
    TRY(json_text(place, "dtype", &dtype));
    uint32_t index = dtype_index(dtype);
    if (index == countof(dtypes))
        return status_error("%s: unknown dtype \"%s\"", place->path, dtype);
    TRY(read_shape(place, &out->shape));
    TRY(read_offsets(place, limit, &begin, &end));
    uint64_t bytes = dtypes[index].bytes;
    for (uint32_t a = 0; a < out->shape.rank; a++) {
        uint64_t extent = out->shape.extent[a];
        if (extent && bytes > limit / extent)
            bytes = limit + 1; /* larger than the file: cannot match, must not overflow */
        else
            bytes *= extent;
    }
    if (bytes != end - begin)
        return status_error("%s: the shape does not take %llu bytes", place->path,
                            (unsigned long long)(end - begin));
    out->name = arena_strdup(&tensors->arena, name);
    out->dtype = dtypes[index].name;
    out->data = data + begin;
    out->bytes = bytes;
    return STATUS_OK;
}

static int compare_places(const void *left, const void *right)
{
    const TensorEntry *const *a = left, *const *b = right;
    if ((*a)->data != (*b)->data)
        return (*a)->data < (*b)->data ? -1 : 1;
    return ((*a)->bytes > (*b)->bytes) - ((*a)->bytes < (*b)->bytes);
}

/* The format wants the tensors side by side, without overlap, gap or rest. */
static Status check_places(const Tensors *tensors, const uint8_t *data, uint64_t limit)
{
    const TensorEntry **sorted = xmalloc(array_bytes(tensors->count + 1, sizeof *sorted));
    for (uint32_t i = 0; i < tensors->count; i++)
        sorted[i] = &tensors->entries[i];
    qsort(sorted, tensors->count, sizeof *sorted, compare_places);
    Status status = STATUS_OK;
    uint64_t end = 0;
    for (uint32_t i = 0; i < tensors->count && status_ok(status); i++) {
        uint64_t begin = (uint64_t)(sorted[i]->data - data);
        if (begin != end)
            status = status_error("%s: begins at %llu, %s the tensor before it, which ends at %llu",
                                  sorted[i]->name, (unsigned long long)begin,
                                  begin < end ? "inside" : "away from", (unsigned long long)end);
        end = begin + sorted[i]->bytes;
    }
    if (status_ok(status) && end != limit)
        status = status_error("%llu bytes of data follow the last tensor",
                              (unsigned long long)(limit - end));
    free(sorted);
    return status;
}

static Status read_header(Tensors *tensors, const JsonPlace *header, const uint8_t *data,
                          uint64_t limit)
{
    if (!json_is_object(header->value))
        return status_error("the header must be an object");
    tensors->entries = arena_array(&tensors->arena, TensorEntry, json_object_size(header->value));
    const char *name;
    json_t *value;
    json_object_foreach(header->value, name, value)
    {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        JsonPlace place;
        TRY(json_member(header, name, &place));
        TRY(read_entry(tensors, &place, name, data, limit, &tensors->entries[tensors->count]));
        tensors->count++;
    }
    return check_places(tensors, data, limit);
}

static Status read_file(Tensors *tensors, const char *path)
{
    const Bytes *file = &tensors->file;
    if (file->count < 8)
        return status_error("too short for a safetensors file");
    uint64_t length = load_u64(file->data), rest = file->count - 8;
    if (length > rest || length > HEADER_LIMIT)
        return status_error("a header of %llu bytes in a file of %zu", (unsigned long long)length,
                            file->count);
    JsonPlace header;
    TRY(json_open(&tensors->arena, path, (const char *)file->data + 8, (size_t)length, &header));
    Status status = read_header(tensors, &header, file->data + 8 + length, rest - length);
    json_close(&header);
    return status;
}

Status tensors_open(const char *path, Tensors *out)
{
    Tensors tensors = {0};
    TRY(file_read(path, FILE_LIMIT_DATA, &tensors.file));
    Status status = read_file(&tensors, path);
    if (!status_ok(status)) {
        tensors_free(&tensors);
        return status_context(status, "%s", path);
    }
    *out = tensors;
    return STATUS_OK;
}

void tensors_free(Tensors *tensors)
{
    arena_free(&tensors->arena);
    bytes_free(&tensors->file);
    *tensors = (Tensors){0};
}

const TensorEntry *tensors_find(const Tensors *tensors, const char *name)
{
    for (uint32_t i = 0; i < tensors->count; i++)
        if (strcmp(tensors->entries[i].name, name) == 0)
            return &tensors->entries[i];
    return NULL;
}

/* ---- values ---- */

#define LOAD(type, data, i)                                                                        \
    ({                                                                                             \
        type value_;                                                                               \
        memcpy(&value_, (data) + (i) * sizeof value_, sizeof value_);                              \
        value_;                                                                                    \
    })

static float bfloat_to_float(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static bool load_value(const char *dtype, const uint8_t *data, uint64_t i, float *out)
{
    if (strcmp(dtype, "F32") == 0)
        *out = LOAD(float, data, i);
    else if (strcmp(dtype, "F16") == 0)
        *out = half_to_float(LOAD(uint16_t, data, i));
    else if (strcmp(dtype, "BF16") == 0)
        *out = bfloat_to_float(LOAD(uint16_t, data, i));
    else if (strcmp(dtype, "F64") == 0)
        *out = (float)LOAD(double, data, i);
    else if (strcmp(dtype, "U8") == 0)
        *out = data[i];
    else if (strcmp(dtype, "I32") == 0)
        *out = (float)LOAD(int32_t, data, i);
    else if (strcmp(dtype, "I64") == 0)
        *out = (float)LOAD(int64_t, data, i);
    else
        return false;
    return true;
}

Status tensor_floats(const TensorEntry *entry, float *out)
{
    uint64_t elements = shape_elements(&entry->shape);
    for (uint64_t i = 0; i < elements; i++) {
        if (!load_value(entry->dtype, entry->data, i, &out[i]))
            return status_error("%s: dtype %s is not supported", entry->name, entry->dtype);
        if (!isfinite(out[i]))
            return status_error("%s: element %llu is not finite", entry->name,
                                (unsigned long long)i);
    }
    return STATUS_OK;
}

static Status check_parameter(const Value *value, const TensorEntry *entry)
{
    if (!entry)
        return status_error("%s is missing", value->name);
    if (!shape_equal(&entry->shape, &value->shape)) {
        Text text = {0};
        shape_print(&text, &entry->shape);
        text_append(&text, ", needed is ");
        shape_print(&text, &value->shape);
        Status status = status_error("%s has shape %s", value->name, text_string(&text));
        text_free(&text);
        return status;
    }
    float *floats = xmalloc(array_bytes(shape_elements(&entry->shape), sizeof *floats));
    Status status = tensor_floats(entry, floats);
    free(floats);
    return status;
}

Status weights_check(const Graph *graph, const Tensors *tensors)
{
    Map known = {0};
    Status status = STATUS_OK;
    for (uint32_t i = 0; i < graph->values.count && status_ok(status); i++) {
        const Value *value = &graph->values.items[i];
        if (value->kind != VALUE_PARAMETER)
            continue;
        (void)map_at_text(&known, value->name, NULL);
        status = check_parameter(value, tensors_find(tensors, value->name));
    }
    for (uint32_t i = 0; i < tensors->count && status_ok(status); i++)
        if (!map_find_text(&known, tensors->entries[i].name))
            status = status_error("%s is no parameter of the model", tensors->entries[i].name);
    map_free(&known);
    return status_context(status, "weights");
}
