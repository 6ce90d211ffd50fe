/* map.c - see map.h. Hashes are xxHash's. */
#include "base/base.h"

#define XXH_STATIC_LINKING_ONLY
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

uint64_t hash_bytes(const void *data, size_t bytes, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, bytes, seed);
}

ContentKey content_key(const void *data, size_t bytes)
{
    XXH128_hash_t hash = XXH3_128bits(data, bytes);
    ContentKey key;
    snprintf(key.hex, sizeof key.hex, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
    return key;
}

static uint64_t spread(uint64_t key)
{
    return XXH3_64bits(&key, sizeof key);
}

static bool entry_is(const MapEntry *entry, uint64_t key, const char *text)
{
    if (entry->key != key || !entry->text != !text)
        return false;
    return !text || strcmp(entry->text, text) == 0;
}

/* The slot of the key, or the free slot where it belongs. Needs at least one free slot. */
static size_t find_slot(const Map *map, uint64_t key, const char *text)
{
    size_t mask = map->slot_count - 1;
    size_t slot = (size_t)(text ? key : spread(key)) & mask;
    while (map->slots[slot] && !entry_is(&map->entries.items[map->slots[slot] - 1], key, text))
        slot = (slot + 1) & mask;
    return slot;
}

static void grow_slots(Map *map)
{
    free(map->slots);
    map->slot_count = map->slot_count ? map->slot_count * 2 : 16;
    map->slots = xcalloc(map->slot_count, sizeof *map->slots);
    for (size_t i = 0; i < map->entries.count; i++) {
        const MapEntry *entry = &map->entries.items[i];
        map->slots[find_slot(map, entry->key, entry->text)] = (uint32_t)i + 1;
    }
}

static uint64_t *insert(Map *map, uint64_t key, const char *text, bool *added)
{
    if (map->entries.count * 2 >= map->slot_count)
        grow_slots(map);
    size_t slot = find_slot(map, key, text);
    bool is_new = !map->slots[slot];
    if (is_new) {
        MapEntry entry = {.text = text ? arena_strdup(&map->texts, text) : NULL, .key = key};
        array_push(&map->entries, entry);
        map->slots[slot] = (uint32_t)map->entries.count;
    }
    if (added)
        *added = is_new;
    return &map->entries.items[map->slots[slot] - 1].value;
}

static const uint64_t *find(const Map *map, uint64_t key, const char *text)
{
    if (!map->slot_count)
        return NULL;
    size_t slot = find_slot(map, key, text);
    return map->slots[slot] ? &map->entries.items[map->slots[slot] - 1].value : NULL;
}

uint64_t *map_at(Map *map, uint64_t key, bool *added)
{
    return insert(map, key, NULL, added);
}

uint64_t *map_at_text(Map *map, const char *key, bool *added)
{
    return insert(map, hash_bytes(key, strlen(key), 0), key, added);
}

const uint64_t *map_find(const Map *map, uint64_t key)
{
    return find(map, key, NULL);
}

const uint64_t *map_find_text(const Map *map, const char *key)
{
    return find(map, hash_bytes(key, strlen(key), 0), key);
}

void map_free(Map *map)
{
    array_free(&map->entries);
    free(map->slots);
    arena_free(&map->texts);
    *map = (Map){0};
}
