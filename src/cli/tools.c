/* tools.c - see tools.h. */
#include "cli/tools.h"

#include "as/as.h"

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>

bool is_elf(const Bytes *bytes)
{
    return bytes->count >= 4 && memcmp(bytes->data, "\177ELF", 4) == 0;
}

static bool is_name(const char *text, size_t length)
{
    if (!length || isdigit((unsigned char)*text))
        return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("_.$", text[i]))
            return false;
    return true;
}

static Status read_defines(Arena *arena, const TextList *list, AsOptions *options)
{
    AsDefine *defines = arena_array(arena, AsDefine, list->count + 1);
    for (size_t i = 0; i < list->count; i++) {
        size_t length = strcspn(list->items[i], "=");
        if (!is_name(list->items[i], length))
            return status_error("-D takes NAME or NAME=VALUE, not %s", list->items[i]);
        defines[i].name = arena_printf(arena, "%.*s", (int)length, list->items[i]);
        defines[i].value = list->items[i][length] ? list->items[i] + length + 1 : "1";
    }
    options->defines = defines;
    options->define_count = (uint32_t)list->count;
    return STATUS_OK;
}

/* The folder of the source, then those of -I. */
static void read_folders(Arena *arena, const char *path, const TextList *list, AsOptions *options)
{
    const char **folders = arena_array(arena, const char *, list->count + 1);
    const char *slash = strrchr(path, '/');
    folders[0] = slash ? arena_printf(arena, "%.*s", (int)(slash - path), path) : ".";
    for (size_t i = 0; i < list->count; i++) {
        struct stat information;
        if (stat(list->items[i], &information) || !S_ISDIR(information.st_mode))
            fprintf(stderr, "warning: -I %s: there is no such folder\n", list->items[i]);
        folders[i + 1] = list->items[i];
    }
    options->include_folders = folders;
    options->include_folder_count = (uint32_t)list->count + 1;
}

Status tool_assemble(Arena *arena, const char *path, Bytes *text, const SourceOptions *options,
                     AsObject *out)
{
    static const TextList none = {0};
    const TextList *folders = options->folders ? options->folders : &none;
    const TextList *defines = options->defines ? options->defines : &none;
    Text warnings = {0};
    AsOptions assembly = {
        .supervisor = options->supervisor, .listing = options->listing, .warnings = &warnings};
    TRY(read_defines(arena, defines, &assembly));
    read_folders(arena, path, folders, &assembly);
    if (options->cpp) {
        const SourceOptions given = {.defines = defines, .folders = folders};
        TRY(tool_preprocess(arena, path, &given, text));
        assembly.define_count = 0;
    }
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
