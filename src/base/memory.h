/* memory.h - allocation that does not fail quietly, arenas, growable arrays.
 *
 * The one idea: a stage owns an arena; everything a stage makes lives in it and goes with it.
 * Growable arrays own heap memory and are freed by hand. Running out of memory ends the process
 * with a message: no caller could do better. */
#ifndef IPU_BASE_MEMORY_H
#define IPU_BASE_MEMORY_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

__attribute__((noreturn)) void fatal_out_of_memory(void);
#define NEVER_NULL __attribute__((returns_nonnull))
NEVER_NULL void *xmalloc(size_t bytes);               /* bytes 0 gives a unique pointer */
NEVER_NULL void *xcalloc(size_t count, size_t bytes); /* zeroed; overflow of the product is fatal */
void *xrealloc(void *old, size_t bytes);
char *xstrdup(const char *text);

/* Arena: bump allocation in blocks. Not thread-safe; one arena per thread or per stage. */
typedef struct ArenaBlock ArenaBlock;
typedef struct Arena {
    ArenaBlock *blocks;
    size_t bytes; /* handed out so far */
} Arena;

NEVER_NULL void *arena_alloc(Arena *arena, size_t bytes,
                             size_t align); /* zeroed; align: power of two */
char *arena_strdup(Arena *arena, const char *text);
PRINTF_LIKE(2, 3) char *arena_printf(Arena *arena, const char *format, ...);
void *arena_copy(Arena *arena, const void *source, size_t bytes, size_t align);
void arena_free(Arena *arena); /* frees all; the arena can be used again */

#define arena_new(arena, type) ((type *)arena_alloc(arena, sizeof(type), _Alignof(type)))
#define arena_array(arena, type, count)                                                            \
    ((type *)arena_alloc(arena, array_bytes(count, sizeof(type)), _Alignof(type)))

size_t array_bytes(size_t count, size_t bytes); /* product, fatal on overflow */

/* Growable array: ARRAY(int) numbers = {0}; array_push(&numbers, 7); array_free(&numbers);
 * A type needs one name to be passed around: typedef ARRAY(Transfer) TransferArray; */
#define ARRAY(type)                                                                                \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t count, capacity;                                                                    \
    }

#define array_push(array, ...)                                                                     \
    (array_reserve(array, (array)->count + 1), (array)->items[(array)->count++] = (__VA_ARGS__))
#define array_reserve(array, wanted)                                                               \
    ((wanted) > (array)->capacity                                                                  \
         ? (void)((array)->items = array_grow((array)->items, &(array)->capacity, (wanted),        \
                                              sizeof(__typeof__(*(array)->items))))                \
         : (void)0)
#define array_append(array, source, n)                                                             \
    (array_reserve(array, (array)->count + (n)),                                                   \
     array_append_bytes((array)->items, sizeof(__typeof__(*(array)->items)), &(array)->count,      \
                        source, n))
#define array_resize(array, n) /* new elements are not initialised */                              \
    (array_reserve(array, n), (void)((array)->count = (n)))
#define array_free(array)                                                                          \
    (array_release((array)->items), (array)->items = NULL, (array)->count = (array)->capacity = 0)

NEVER_NULL void *array_grow(void *items, size_t *capacity, size_t wanted, size_t bytes);
void array_append_bytes(void *items, size_t bytes, size_t *count, const void *source, size_t n);
void array_release(void *items);

/* Text that grows: used by every printer and by code generation of text. Always terminated. */
typedef ARRAY(char) Text;
PRINTF_LIKE(2, 3) void text_printf(Text *text, const char *format, ...);
void text_append(Text *text, const char *source);
const char *text_string(Text *text); /* "" when empty */
#define text_free(text) array_free(text)

#endif
