/* cmd_obj.c - ipu-stack obj: sections, symbols and relocations of an object. */
#include "cli/tools.h"

#include <string.h>

static const char *section_name(const AsObject *object, uint32_t section)
{
    return section == AS_UNDEFINED  ? "undefined"
           : section == AS_ABSOLUTE ? "absolute"
                                    : object->sections[section].name;
}

static const char *flag_text(uint32_t flags, char out[8])
{
    int length = 0;
    if (flags & AS_ALLOC)
        out[length++] = 'a';
    if (flags & AS_WRITE)
        out[length++] = 'w';
    if (flags & AS_EXECUTE)
        out[length++] = 'x';
    if (flags & AS_NOBITS)
        out[length++] = 'n';
    out[length] = 0;
    return out;
}

static const char *const bindings[] = {
    [AS_LOCAL] = "local", [AS_GLOBAL] = "global", [AS_WEAK] = "weak"};

static void print_text(const AsObject *object)
{
    char flags[8];
    printf("sections:\n");
    for (uint32_t i = 0; i < object->section_count; i++) {
        const AsSection *section = &object->sections[i];
        printf("  %2u %-28s %8u bytes  align %-3u %s\n", i, section->name, section->bytes,
               section->align, flag_text(section->flags, flags));
    }
    printf("symbols:\n");
    for (uint32_t i = 0; i < object->symbol_count; i++) {
        const AsSymbol *symbol = &object->symbols[i];
        if (!symbol->is_section)
            printf("  %08x %6u %-6s %-8s %-20s %s\n", symbol->value, symbol->size,
                   bindings[symbol->binding], symbol->function ? "function" : "",
                   section_name(object, symbol->section), symbol->name);
    }
    printf("relocations:\n");
    for (uint32_t s = 0; s < object->section_count; s++)
        for (uint32_t i = 0; i < object->sections[s].relocation_count; i++) {
            const AsRelocation *relocation = &object->sections[s].relocations[i];
            printf("  %-20s %08x %-14s %s%+d\n", object->sections[s].name, relocation->offset,
                   relocation_name(relocation->type), object->symbols[relocation->symbol].name,
                   relocation->addend);
        }
}

static json_t *sections_json(const AsObject *object)
{
    json_t *list = json_array();
    char flags[8];
    for (uint32_t i = 0; i < object->section_count; i++) {
        const AsSection *section = &object->sections[i];
        json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:s}", "name", section->name,
                                              "bytes", (json_int_t)section->bytes, "align",
                                              (json_int_t)section->align, "flags",
                                              flag_text(section->flags, flags)));
    }
    return list;
}

static json_t *symbols_json(const AsObject *object)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < object->symbol_count; i++) {
        const AsSymbol *symbol = &object->symbols[i];
        if (symbol->is_section)
            continue;
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:I, s:I, s:s, s:b}", "name", symbol->name, "section",
                            section_name(object, symbol->section), "value",
                            (json_int_t)symbol->value, "size", (json_int_t)symbol->size, "binding",
                            bindings[symbol->binding], "function", (int)symbol->function));
    }
    return list;
}

static json_t *relocations_json(const AsObject *object)
{
    json_t *list = json_array();
    for (uint32_t s = 0; s < object->section_count; s++)
        for (uint32_t i = 0; i < object->sections[s].relocation_count; i++) {
            const AsRelocation *relocation = &object->sections[s].relocations[i];
            json_array_append_new(list, json_pack("{s:s, s:I, s:s, s:s, s:I}", "section",
                                                  object->sections[s].name, "offset",
                                                  (json_int_t)relocation->offset, "type",
                                                  relocation_name(relocation->type), "symbol",
                                                  object->symbols[relocation->symbol].name,
                                                  "addend", (json_int_t)relocation->addend));
        }
    return list;
}

static Status run(Arena *arena, const char *path, bool json)
{
    Bytes bytes;
    AsObject object;
    TRY(file_read(path, FILE_LIMIT_TEXT, &bytes));
    Status status = obj_read(arena, path, bytes.data, bytes.count, &object);
    bytes_free(&bytes);
    TRY(status);
    if (!json) {
        print_text(&object);
        return STATUS_OK;
    }
    json_t *out = json_pack("{s:o, s:o, s:o}", "sections", sections_json(&object), "symbols",
                            symbols_json(&object), "relocations", relocations_json(&object));
    char *text = out ? json_dumps(out, JSON_INDENT(2)) : NULL;
    json_decref(out);
    if (!text)
        return status_error("%s: a name is not valid UTF-8", path);
    puts(text);
    array_release(text);
    return STATUS_OK;
}

int cmd_obj(int argc, char **argv)
{
    Arena arena = {0};
    TextList files = {0};
    bool json = false;
    const Option options[] = {
        {"--json", OPTION_FLAG, &json, "", "print one JSON object", 0, 0},
        {0},
    };
    const Command command = {"ipu-stack obj FILE.o [--json]",
                             "Shows the sections, symbols and relocations of an object.", options,
                             1, 1};
    int status = command_parse(&command, argc, argv, &files);
    if (status < 0) {
        Status result = run(&arena, files.items[0], json);
        status = status_ok(result) ? 0 : command_fail("obj", result);
    }
    array_free(&files);
    arena_free(&arena);
    return status;
}
