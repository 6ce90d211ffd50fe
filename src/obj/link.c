/* link.c - objects to an image: choose sections, place them, fill in addresses.
 *
 * Sections are reached from the roots over relocations; they are placed in the order of objects and
 * sections, first fit moving forward through the ranges and never back, so that equal inputs give
 * equal bytes and a section's place depends only on what comes before it. */
#include "obj/obj.h"

#include "obj/relocation.h"

#include <stdlib.h>
#include <string.h>

enum { UNDEFINED_SHOWN = 10 };

typedef struct Chunk { /* a section of an object */
    const AsSection *section;
    uint32_t object, index;
    bool kept;
    uint32_t address, range;
    uint8_t *data; /* relocated copy; NULL for NOBITS */
} Chunk;

typedef struct Definition { /* of a symbol: where its address comes from */
    bool found, external;
    uint32_t value;
    Chunk *chunk; /* NULL: absolute */
} Definition;

typedef struct Linker {
    Arena *arena;
    const LinkInput *input;
    Chunk **chunks; /* of each object, by section */
    uint32_t chunk_total;
    Map globals;   /* name -> object << 32 | symbol, + 1 */
    Map externals; /* name -> index + 1 */
    ARRAY(Chunk *) queue;
    Text undefined;
    uint32_t undefined_count;
    LinkImage *out;
} Linker;

static const char *object_name(const Linker *linker, uint32_t object)
{
    const char *const *names = linker->input->object_names;
    return names && names[object] ? names[object]
                                  : arena_printf(linker->arena, "object %u", object);
}

/* ---- symbols ---- */

static Status add_global(Linker *linker, uint32_t object, uint32_t index)
{
    const AsSymbol *symbol = &linker->input->objects[object]->symbols[index];
    if (symbol->section == AS_UNDEFINED || symbol->binding == AS_LOCAL)
        return STATUS_OK;
    uint64_t *place = map_at_text(&linker->globals, symbol->name, NULL);
    if (*place) {
        uint32_t other = (uint32_t)((*place - 1) >> 32), known = (uint32_t)(*place - 1);
        uint8_t binding = linker->input->objects[other]->symbols[known].binding;
        if (binding != AS_WEAK && symbol->binding != AS_WEAK)
            return status_error("symbol '%s' is defined in %s and in %s", symbol->name,
                                object_name(linker, other), object_name(linker, object));
        if (symbol->binding == AS_WEAK) /* the first or the strong one stays */
            return STATUS_OK;
    }
    *place = ((uint64_t)object << 32 | index) + 1;
    return STATUS_OK;
}

static Status collect(Linker *linker)
{
    const LinkInput *input = linker->input;
    linker->chunks = arena_array(linker->arena, Chunk *, input->object_count + 1);
    for (uint32_t o = 0; o < input->object_count; o++) {
        const AsObject *object = input->objects[o];
        linker->chunks[o] = arena_array(linker->arena, Chunk, object->section_count + 1);
        for (uint32_t s = 0; s < object->section_count; s++)
            linker->chunks[o][s] =
                (Chunk){.section = &object->sections[s], .object = o, .index = s};
        linker->chunk_total += object->section_count;
        for (uint32_t i = 0; i < object->symbol_count; i++)
            TRY(add_global(linker, o, i));
    }
    for (uint32_t i = 0; i < input->external_count; i++)
        *map_at_text(&linker->externals, input->externals[i].name, NULL) = i + 1;
    return STATUS_OK;
}

static Definition definition_in(const Linker *linker, uint32_t object, const AsSymbol *symbol)
{
    Definition out = {.found = true, .value = symbol->value};
    if (symbol->section == AS_UNDEFINED)
        out.found = false;
    else if (symbol->section != AS_ABSOLUTE)
        out.chunk = &linker->chunks[object][symbol->section];
    return out;
}

static Definition find_global(const Linker *linker, const char *name)
{
    const uint64_t *external = map_find_text(&linker->externals, name);
    if (external)
        return (Definition){.found = true,
                            .external = true,
                            .value = linker->input->externals[*external - 1].value};
    const uint64_t *global = map_find_text(&linker->globals, name);
    if (!global)
        return (Definition){.found = false};
    uint32_t object = (uint32_t)((*global - 1) >> 32), index = (uint32_t)(*global - 1);
    return definition_in(linker, object, &linker->input->objects[object]->symbols[index]);
}

/* A root may also be a local symbol, when just one has the name: an entry for the simulator. */
static Definition find_root(const Linker *linker, const char *name)
{
    Definition out = find_global(linker, name);
    const LinkInput *input = linker->input;
    if (out.found)
        return out;
    for (uint32_t o = 0; o < input->object_count; o++)
        for (uint32_t i = 0; i < input->objects[o]->symbol_count; i++) {
            const AsSymbol *symbol = &input->objects[o]->symbols[i];
            if (symbol->binding != AS_LOCAL || symbol->is_section ||
                strcmp(symbol->name, name) != 0)
                continue;
            if (out.found)
                return (Definition){.found = false};
            out = definition_in(linker, o, symbol);
        }
    return out;
}

static Definition resolve(const Linker *linker, uint32_t object, const AsSymbol *symbol)
{
    if (symbol->binding == AS_LOCAL)
        return definition_in(linker, object, symbol);
    return find_global(linker, symbol->name);
}

/* ---- reachability ---- */

static void keep(Linker *linker, Chunk *chunk)
{
    if (!chunk || chunk->kept)
        return;
    chunk->kept = true;
    array_push(&linker->queue, chunk);
}

static void note_undefined(Linker *linker, const Chunk *chunk, const char *name)
{
    if (linker->undefined_count++ < UNDEFINED_SHOWN)
        text_printf(&linker->undefined, "%s'%s' (used in %s, %s)",
                    linker->undefined.count ? ", " : "", name, object_name(linker, chunk->object),
                    chunk->section->name);
}

static void follow(Linker *linker, const Chunk *chunk)
{
    const AsObject *object = linker->input->objects[chunk->object];
    for (uint32_t i = 0; i < chunk->section->relocation_count; i++) {
        const AsSymbol *symbol = &object->symbols[chunk->section->relocations[i].symbol];
        Definition definition = resolve(linker, chunk->object, symbol);
        if (definition.found)
            keep(linker, definition.chunk);
        else if (symbol->binding != AS_WEAK)
            note_undefined(linker, chunk, symbol->name);
    }
}

static Status reach(Linker *linker)
{
    const LinkInput *input = linker->input;
    for (uint32_t i = 0; i < input->root_count; i++) {
        Definition root = find_root(linker, input->roots[i]);
        if (!root.found)
            return status_error("root symbol '%s' is not defined", input->roots[i]);
        keep(linker, root.chunk);
    }
    for (uint32_t o = 0; o < input->object_count && input->root_count == 0; o++)
        for (uint32_t s = 0; s < input->objects[o]->section_count; s++)
            if (input->objects[o]->sections[s].flags & AS_ALLOC)
                keep(linker, &linker->chunks[o][s]);
    for (size_t i = 0; i < linker->queue.count; i++)
        follow(linker, linker->queue.items[i]);
    if (linker->undefined_count)
        return status_error("undefined symbols: %s%s", text_string(&linker->undefined),
                            linker->undefined_count > UNDEFINED_SHOWN ? ", ..." : "");
    return STATUS_OK;
}

/* ---- placement ---- */

typedef struct Cursor {
    uint32_t range;
    uint64_t address;
} Cursor;

static Status place(const Linker *linker, Cursor *cursor, Chunk *chunk)
{
    const LinkInput *input = linker->input;
    const AsSection *section = chunk->section;
    if (!(section->flags & AS_ALLOC))
        return status_error("%s, section %s is referred to but not for memory",
                            object_name(linker, chunk->object), section->name);
    for (; cursor->range < input->range_count; cursor->range++) {
        const LinkRange *range = &input->ranges[cursor->range];
        if (cursor->address < range->start)
            cursor->address = range->start;
        uint64_t align = section->align ? section->align : 1;
        uint64_t address = (cursor->address + align - 1) & ~(align - 1);
        if (address + section->bytes <= range->end) {
            chunk->address = (uint32_t)address;
            chunk->range = cursor->range;
            cursor->address = address + section->bytes;
            return STATUS_OK;
        }
        cursor->address = 0;
    }
    uint64_t room = 0;
    for (uint32_t i = 0; i < input->range_count; i++)
        room += input->ranges[i].end - input->ranges[i].start;
    return status_error("%s, section %s of %u bytes does not fit: the %u ranges hold %llu bytes in "
                        "all",
                        object_name(linker, chunk->object), section->name, section->bytes,
                        input->range_count, (unsigned long long)room);
}

static Status place_all(Linker *linker)
{
    const LinkInput *input = linker->input;
    for (uint32_t i = 0; i < input->range_count; i++)
        if (input->ranges[i].start > input->ranges[i].end ||
            (i && input->ranges[i].start < input->ranges[i - 1].end))
            return status_error("the address ranges must ascend");
    Cursor cursor = {0};
    for (uint32_t o = 0; o < input->object_count; o++)
        for (uint32_t s = 0; s < input->objects[o]->section_count; s++)
            if (linker->chunks[o][s].kept)
                TRY(place(linker, &cursor, &linker->chunks[o][s]));
    return STATUS_OK;
}

/* ---- relocation ---- */

static Status relocate(Linker *linker, Chunk *chunk)
{
    const AsSection *section = chunk->section;
    const AsObject *object = linker->input->objects[chunk->object];
    if (section->flags & AS_NOBITS)
        return STATUS_OK;
    chunk->data = arena_copy(linker->arena, section->data, section->bytes, 8);
    for (uint32_t i = 0; i < section->relocation_count; i++) {
        const AsRelocation *relocation = &section->relocations[i];
        const AsSymbol *symbol = &object->symbols[relocation->symbol];
        Definition definition = resolve(linker, chunk->object, symbol);
        int64_t value = definition.found ? definition.value : 0; /* an undefined weak is 0 */
        if (definition.chunk)
            value += definition.chunk->address;
        Status status = relocation_apply(relocation->type, value + relocation->addend,
                                         chunk->data + relocation->offset);
        TRY(status_context(status, "%s, section %s, offset 0x%x, symbol '%s'",
                           object_name(linker, chunk->object), section->name, relocation->offset,
                           symbol->name));
    }
    return STATUS_OK;
}

/* ---- the image ---- */

static int by_address(const void *a, const void *b)
{
    const LinkSymbol *x = a, *y = b;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Ranges ascend and sections are placed forward, so chunks come in the order of addresses. A gap
 * that alignment left within a range is filled with zeros and does not end a segment. */
static void build_segments(Linker *linker)
{
    LinkImage *out = linker->out;
    Chunk **order = arena_array(linker->arena, Chunk *, linker->chunk_total + 1);
    uint32_t count = 0;
    for (uint32_t o = 0; o < linker->input->object_count; o++)
        for (uint32_t s = 0; s < linker->input->objects[o]->section_count; s++)
            if (linker->chunks[o][s].kept && linker->chunks[o][s].section->bytes)
                order[count++] = &linker->chunks[o][s];
    out->segments = arena_array(linker->arena, LinkSegment, count + 1);
    for (uint32_t i = 0; i < count;) {
        LinkSegment *segment = &out->segments[out->segment_count++];
        uint32_t end = order[i]->address, next = i;
        segment->address = end;
        while (next < count) {
            const AsSection *section = order[next]->section;
            if (order[next]->address != end && order[next]->range != order[i]->range)
                break;
            end = order[next]->address + section->bytes;
            segment->executable |= (section->flags & AS_EXECUTE) != 0;
            next++;
        }
        segment->bytes = end - segment->address;
        segment->data = arena_alloc(linker->arena, segment->bytes, 8);
        for (; i < next; i++)
            if (order[i]->data)
                memcpy(segment->data + (order[i]->address - segment->address), order[i]->data,
                       order[i]->section->bytes);
        out->end = segment->address + segment->bytes;
    }
}

static void build_symbols(Linker *linker)
{
    const LinkInput *input = linker->input;
    LinkImage *out = linker->out;
    size_t total = input->external_count;
    for (uint32_t o = 0; o < input->object_count; o++)
        total += input->objects[o]->symbol_count;
    out->symbols = arena_array(linker->arena, LinkSymbol, total + 1);
    for (uint32_t o = 0; o < input->object_count; o++)
        for (uint32_t i = 0; i < input->objects[o]->symbol_count; i++) {
            const AsSymbol *symbol = &input->objects[o]->symbols[i];
            Definition definition = definition_in(linker, o, symbol);
            bool lives = definition.found && !symbol->is_section &&
                         (!definition.chunk || definition.chunk->kept);
            bool replaced =
                symbol->binding != AS_LOCAL && map_find_text(&linker->externals, symbol->name);
            if (lives && !replaced)
                out->symbols[out->symbol_count++] =
                    (LinkSymbol){.name = arena_strdup(linker->arena, symbol->name),
                                 .address = definition.value +
                                            (definition.chunk ? definition.chunk->address : 0),
                                 .size = symbol->size,
                                 .global = symbol->binding != AS_LOCAL};
        }
    for (uint32_t i = 0; i < input->external_count; i++)
        out->symbols[out->symbol_count++] =
            (LinkSymbol){.name = arena_strdup(linker->arena, input->externals[i].name),
                         .address = input->externals[i].value,
                         .global = true};
    qsort(out->symbols, out->symbol_count, sizeof *out->symbols, by_address);
}

static Status link_all(Linker *linker)
{
    TRY(collect(linker));
    TRY(reach(linker));
    TRY(place_all(linker));
    for (size_t i = 0; i < linker->queue.count; i++)
        TRY(relocate(linker, linker->queue.items[i]));
    build_segments(linker);
    build_symbols(linker);
    return STATUS_OK;
}

Status obj_link(Arena *arena, const LinkInput *input, LinkImage *out)
{
    *out = (LinkImage){0};
    LinkImage image = {0};
    Linker linker = {.arena = arena, .input = input, .out = &image};
    Status status = link_all(&linker);
    map_free(&linker.globals);
    map_free(&linker.externals);
    array_free(&linker.queue);
    text_free(&linker.undefined);
    if (status_ok(status))
        *out = image;
    return status;
}

Status link_symbol(const LinkImage *image, const char *name, uint32_t *address)
{
    const LinkSymbol *local = NULL;
    for (uint32_t i = 0; i < image->symbol_count; i++) {
        const LinkSymbol *symbol = &image->symbols[i];
        if (strcmp(symbol->name, name) != 0)
            continue;
        if (symbol->global) {
            *address = symbol->address;
            return STATUS_OK;
        }
        if (local && local->address != symbol->address)
            return status_error("several local symbols are named '%s'", name);
        local = symbol;
    }
    if (!local)
        return status_error("no symbol '%s' in the image", name);
    *address = local->address;
    return STATUS_OK;
}
