/* tools.c - see tools.h. */
#include "cli/tools.h"

#include "as/as.h"

#include <string.h>

bool is_elf(const Bytes *bytes)
{
    return bytes->count >= 4 && memcmp(bytes->data, "\177ELF", 4) == 0;
}

static const AsDefine *read_defines(Arena *arena, const TextList *list)
{
    AsDefine *defines = arena_array(arena, AsDefine, list->count + 1);
    for (size_t i = 0; i < list->count; i++) {
        const char *equal = strchr(list->items[i], '=');
        int length = equal ? (int)(equal - list->items[i]) : (int)strlen(list->items[i]);
        defines[i].name = arena_printf(arena, "%.*s", length, list->items[i]);
        defines[i].value = equal ? equal + 1 : "1";
    }
    return defines;
}

Status tool_assemble(Arena *arena, const char *path, const Bytes *text,
                     const SourceOptions *options, AsObject *out)
{
    static const TextList none = {0};
    const TextList *folders = options->folders ? options->folders : &none;
    const TextList *defines = options->defines ? options->defines : &none;
    const char **search = arena_array(arena, const char *, folders->count + 1);
    const char *slash = strrchr(path, '/');
    search[0] = slash ? arena_printf(arena, "%.*s", (int)(slash - path), path) : ".";
    for (size_t i = 0; i < folders->count; i++)
        search[i + 1] = folders->items[i];
    Text warnings = {0};
    AsOptions assembly = {.defines = read_defines(arena, defines),
                          .define_count = (uint32_t)defines->count,
                          .include_folders = search,
                          .include_folder_count = (uint32_t)folders->count + 1,
                          .supervisor = options->supervisor,
                          .listing = options->listing,
                          .warnings = &warnings};
    Status status = assemble(arena, path, (const char *)text->data, text->count, &assembly, out);
    if (warnings.count)
        fprintf(stderr, "%s\n", text_string(&warnings));
    text_free(&warnings);
    return status;
}

Status tool_object(Arena *arena, const char *path, const SourceOptions *options, AsObject *out)
{
    Bytes bytes;
    TRY(file_read(path, FILE_LIMIT_TEXT, &bytes));
    Status status = is_elf(&bytes) ? obj_read(arena, path, bytes.data, bytes.count, out)
                                   : tool_assemble(arena, path, &bytes, options, out);
    bytes_free(&bytes);
    return status;
}
