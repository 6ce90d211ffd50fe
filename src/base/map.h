/* map.h - hash maps from text or from a 64-bit key to a 64-bit value.
 *
 * Open addressing, insertion only. Iteration is in insertion order, so nothing that is printed or
 * written depends on hashes. Text keys are copied into the map. */
#ifndef IPU_BASE_MAP_H
#define IPU_BASE_MAP_H

#include "base/memory.h"

typedef struct MapEntry {
    const char *text; /* NULL for numeric keys */
    uint64_t key;     /* the number, or the text's hash */
    uint64_t value;
} MapEntry;

typedef struct Map {
    ARRAY(MapEntry) entries; /* in order of insertion */
    uint32_t *slots;         /* entry index + 1, 0 = free; a power of two of them */
    size_t slot_count;
    Arena texts;
} Map;

/* The value's place: an existing one, or a new one with value 0 (*added tells, may be NULL).
 * The pointer is valid until the next insertion. */
uint64_t *map_at(Map *map, uint64_t key, bool *added);
uint64_t *map_at_text(Map *map, const char *key, bool *added);

/* The value's place or NULL. */
const uint64_t *map_find(const Map *map, uint64_t key);
const uint64_t *map_find_text(const Map *map, const char *key);
/* A map as a set of names that something is narrowed to; no map: everything is wanted. */
static inline bool map_wants(const Map *only, const char *key)
{
    return !only || (key && map_find_text(only, key));
}
void map_free(Map *map);

uint64_t hash_bytes(const void *data, size_t bytes, uint64_t seed);

/* 128-bit content hash as 32 hex digits and a terminator, for cache keys. */
typedef struct ContentKey {
    char hex[33];
} ContentKey;
ContentKey content_key(const void *data, size_t bytes);

#endif
