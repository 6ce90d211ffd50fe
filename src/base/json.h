/* json.h - typed reading of JSON through jansson, with errors that name file, place and key.
 *
 * A JsonPlace is a value and the path to it ("models/a.json: encoder.layers"). The getters check
 * kind and range. Text that is read stays owned by the document. */
#ifndef IPU_BASE_JSON_H
#define IPU_BASE_JSON_H

#include "base/memory.h"

#include <jansson.h>

typedef struct JsonPlace {
    const char *path; /* lives in the arena given to json_open or json_member */
    json_t *value;
    Arena *arena;
} JsonPlace;

/* Parses text; name stands for it in messages. The document lives until json_close. */
Status json_open(Arena *arena, const char *name, const char *text, size_t length, JsonPlace *out);
Status json_open_file(Arena *arena, const char *path, JsonPlace *out);
void json_close(JsonPlace *document);

Status json_member(const JsonPlace *object, const char *key, JsonPlace *out); /* must be there */
bool json_has(const JsonPlace *object, const char *key);
Status json_item(const JsonPlace *array, size_t index, JsonPlace *out);
Status json_count(const JsonPlace *array, size_t *out);

Status json_integer_in(const JsonPlace *object, const char *key, int64_t low, int64_t high,
                       int64_t *out);
Status json_u32(const JsonPlace *object, const char *key, uint32_t low, uint32_t high,
                uint32_t *out);
Status json_number(const JsonPlace *object, const char *key, double *out);
Status json_text(const JsonPlace *object, const char *key, const char **out);
Status json_bool(const JsonPlace *object, const char *key, bool *out);

/* Errors on a key that is not in the NULL-terminated list: misspelt keys must not pass silently. */
Status json_only(const JsonPlace *object, const char *const *keys);

#endif
