/* json.c - see json.h. */
#include "base/base.h"

#include <math.h>
#include <string.h>

Status json_open(Arena *arena, const char *name, const char *text, size_t length, JsonPlace *out)
{
    json_error_t error;
    json_t *value = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!value)
        return status_error("%s:%d:%d: %s", name, error.line, error.column, error.text);
    *out = (JsonPlace){arena_strdup(arena, name), value, arena};
    return STATUS_OK;
}

Status json_open_file(Arena *arena, const char *path, JsonPlace *out)
{
    Bytes text;
    TRY(file_read(path, FILE_LIMIT_TEXT, &text));
    Status status = json_open(arena, path, (const char *)text.data, text.count, out);
    bytes_free(&text);
    return status;
}

void json_close(JsonPlace *document)
{
    json_decref(document->value);
    document->value = NULL;
}

bool json_has(const JsonPlace *object, const char *key)
{
    return json_object_get(object->value, key) != NULL;
}

Status json_member(const JsonPlace *object, const char *key, JsonPlace *out)
{
    if (!json_is_object(object->value))
        return status_error("%s: must be an object", object->path);
    json_t *value = json_object_get(object->value, key);
    if (!value)
        return status_error("%s: \"%s\" is missing", object->path, key);
    *out =
        (JsonPlace){arena_printf(object->arena, "%s: %s", object->path, key), value, object->arena};
    return STATUS_OK;
}

Status json_count(const JsonPlace *array, size_t *out)
{
    if (!json_is_array(array->value))
        return status_error("%s: must be an array", array->path);
    *out = json_array_size(array->value);
    return STATUS_OK;
}

Status json_item(const JsonPlace *array, size_t index, JsonPlace *out)
{
    size_t count;
    TRY(json_count(array, &count));
    if (index >= count)
        return status_error("%s: has %zu items, needs %zu", array->path, count, index + 1);
    *out = (JsonPlace){arena_printf(array->arena, "%s[%zu]", array->path, index),
                       json_array_get(array->value, index), array->arena};
    return STATUS_OK;
}

Status json_integer_in(const JsonPlace *object, const char *key, int64_t low, int64_t high,
                       int64_t *out)
{
    JsonPlace place;
    TRY(json_member(object, key, &place));
    if (!json_is_integer(place.value))
        return status_error("%s: must be an integer", place.path);
    int64_t value = json_integer_value(place.value);
    if (value < low || value > high)
        return status_error("%s: %lld is not in %lld..%lld", place.path, (long long)value,
                            (long long)low, (long long)high);
    *out = value;
    return STATUS_OK;
}

Status json_u32(const JsonPlace *object, const char *key, uint32_t low, uint32_t high,
                uint32_t *out)
{
    int64_t value;
    TRY(json_integer_in(object, key, low, high, &value));
    *out = (uint32_t)value;
    return STATUS_OK;
}

Status json_number(const JsonPlace *object, const char *key, double *out)
{
    JsonPlace place;
    TRY(json_member(object, key, &place));
    if (!json_is_number(place.value) || !isfinite(json_number_value(place.value)))
        return status_error("%s: must be a number", place.path);
    *out = json_number_value(place.value);
    return STATUS_OK;
}

Status json_text(const JsonPlace *object, const char *key, const char **out)
{
    JsonPlace place;
    TRY(json_member(object, key, &place));
    if (!json_is_string(place.value) ||
        strlen(json_string_value(place.value)) != json_string_length(place.value))
        return status_error("%s: must be text", place.path);
    *out = json_string_value(place.value);
    return STATUS_OK;
}

Status json_bool(const JsonPlace *object, const char *key, bool *out)
{
    JsonPlace place;
    TRY(json_member(object, key, &place));
    if (!json_is_boolean(place.value))
        return status_error("%s: must be true or false", place.path);
    *out = json_is_true(place.value);
    return STATUS_OK;
}

Status json_only(const JsonPlace *object, const char *const *keys)
{
    if (!json_is_object(object->value))
        return status_error("%s: must be an object", object->path);
    const char *key;
    json_t *value;
    json_object_foreach(object->value, key, value)
    {
        bool known = false;
        for (const char *const *k = keys; *k && !known; k++)
            known = strcmp(*k, key) == 0;
        if (!known)
            return status_error("%s: unknown key \"%s\"", object->path, key);
    }
    return STATUS_OK;
}
