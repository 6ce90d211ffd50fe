/* memory.c - see memory.h. */
#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fatal_out_of_memory(void)
{
    fputs("ipu-stack: out of memory\n", stderr);
    exit(1);
}

void *xmalloc(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory)
        fatal_out_of_memory();
    return memory;
}

void *xcalloc(size_t count, size_t bytes)
{
    void *memory = calloc(count ? count : 1, bytes ? bytes : 1);
    if (!memory)
        fatal_out_of_memory();
    return memory;
}

void *xrealloc(void *old, size_t bytes)
{
    void *memory = realloc(old, bytes ? bytes : 1);
    if (!memory)
        fatal_out_of_memory();
    return memory;
}

char *xstrdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    return memcpy(xmalloc(bytes), text, bytes);
}

size_t array_bytes(size_t count, size_t bytes)
{
    size_t product;
    if (__builtin_mul_overflow(count, bytes, &product))
        fatal_out_of_memory();
    return product;
}

struct ArenaBlock {
    ArenaBlock *next;
    size_t used, capacity;
    _Alignas(16) unsigned char data[];
};

enum { ARENA_BLOCK_BYTES = 256 * 1024, ARENA_BLOCK_ALIGN = 16 };

void *arena_alloc(Arena *arena, size_t bytes, size_t align)
{
    ArenaBlock *block = arena->blocks;
    size_t start = block ? (block->used + align - 1) & ~(align - 1) : 0;
    if (!block || align > ARENA_BLOCK_ALIGN || start > block->capacity ||
        bytes > block->capacity - start) {
        size_t capacity = bytes > ARENA_BLOCK_BYTES ? bytes : ARENA_BLOCK_BYTES;
        if (align > ARENA_BLOCK_ALIGN || capacity > SIZE_MAX - sizeof *block)
            fatal_out_of_memory();
        block = xcalloc(1, sizeof *block + capacity);
        block->capacity = capacity;
        if (bytes > ARENA_BLOCK_BYTES && arena->blocks) { /* keep filling the current block */
            block->next = arena->blocks->next;
            arena->blocks->next = block;
        } else {
            block->next = arena->blocks;
            arena->blocks = block;
        }
        start = 0;
    }
    block->used = start + bytes;
    arena->bytes += bytes;
    return block->data + start;
}

void *arena_copy(Arena *arena, const void *source, size_t bytes, size_t align)
{
    void *copy = arena_alloc(arena, bytes, align);
    if (bytes)
        memcpy(copy, source, bytes);
    return copy;
}

char *arena_strdup(Arena *arena, const char *text)
{
    return arena_copy(arena, text, strlen(text) + 1, 1);
}

char *arena_printf(Arena *arena, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0)
        fatal_out_of_memory();
    char *text = arena_alloc(arena, (size_t)length + 1, 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

void arena_free(Arena *arena)
{
    for (ArenaBlock *block = arena->blocks; block;) {
        ArenaBlock *next = block->next;
        free(block);
        block = next;
    }
    *arena = (Arena){0};
}

void *array_grow(void *items, size_t *capacity, size_t wanted, size_t bytes)
{
    size_t grown = *capacity ? *capacity * 2 : 8;
    if (grown < wanted)
        grown = wanted;
    *capacity = grown;
    return xrealloc(items, array_bytes(grown, bytes));
}

void array_append_bytes(void *items, size_t bytes, size_t *count, const void *source, size_t n)
{
    if (n)
        memcpy((char *)items + *count * bytes, source, array_bytes(n, bytes));
    *count += n;
}

void array_release(void *items)
{
    free(items);
}

void text_append(Text *text, const char *source)
{
    size_t length = strlen(source);
    array_reserve(text, text->count + length + 1);
    memcpy(text->items + text->count, source, length + 1);
    text->count += length;
}

void text_printf(Text *text, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0)
        fatal_out_of_memory();
    array_reserve(text, text->count + (size_t)length + 1);
    vsnprintf(text->items + text->count, (size_t)length + 1, format, again);
    va_end(again);
    text->count += (size_t)length;
}

const char *text_string(Text *text)
{
    if (!text->items)
        text_append(text, "");
    return text->items;
}
