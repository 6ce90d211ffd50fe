/* cmd_as.c - ipu-stack as: assembly to an ELF object. */
#include "cli/tools.h"

#include <string.h>

typedef struct Request {
    const char *output, *listing;
    TextList defines, folders;
    bool supervisor, cpp;
} Request;

/* FILE.S -> FILE.o in the current folder. */
static const char *default_output(Arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    int length = dot && dot != name ? (int)(dot - name) : (int)strlen(name);
    return arena_printf(arena, "%.*s.o", length, name);
}

static Status run(Arena *arena, const Request *request, const char *path)
{
    Bytes text;
    Text listing = {0};
    SourceOptions options = {.defines = &request->defines,
                             .folders = &request->folders,
                             .supervisor = request->supervisor,
                             .cpp = request->cpp,
                             .listing = request->listing ? &listing : NULL};
    AsObject object;
    TRY(file_read(path, FILE_LIMIT_TEXT, &text));
    Status status = tool_assemble(arena, path, &text, &options, &object);
    bytes_free(&text);
    if (request->listing && strcmp(request->listing, "-") == 0)
        fputs(text_string(&listing), stdout);
    else if (request->listing && status_ok(status))
        status = file_write(request->listing, text_string(&listing), listing.count);
    text_free(&listing);
    TRY(status);
    return obj_write_file(&object, request->output ? request->output : default_output(arena, path));
}

int cmd_as(int argc, char **argv)
{
    Arena arena = {0};
    Request request = {0};
    TextList files = {0};
    const Option options[] = {
        {"-o", OPTION_TEXT, &request.output, "FILE.o", "the object (default: the source's name)", 0,
         0},
        {"-D", OPTION_LIST, &request.defines, "NAME[=VALUE]", "define a symbol (value 1)", 0, 0},
        {"-I", OPTION_LIST, &request.folders, "DIR", "search includes there too", 0, 0},
        {"--listing", OPTION_TEXT, &request.listing, "FILE", "write a listing; - prints it", 0, 0},
        CPP_OPTION(request.cpp),
        {"--supervisor", OPTION_FLAG, &request.supervisor, "", "begin in supervisor mode", 0, 0},
        {0},
    };
    const Command command = {"ipu-stack as FILE.S -o FILE.o [options]",
                             "Assembles one source into an ELF object (docs/assembly.md).", options,
                             1, 1};
    int status = command_parse(&command, argc, argv, &files);
    if (status < 0) {
        Status result = run(&arena, &request, files.items[0]);
        status = status_ok(result) ? 0 : 1;
        if (status) /* as they are: editors read FILE:LINE:COLUMN */
            fprintf(stderr, "%s\n", status_message(result));
        status_free(result);
    }
    array_free(&request.defines);
    array_free(&request.folders);
    array_free(&files);
    arena_free(&arena);
    return status;
}
