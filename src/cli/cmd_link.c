/* cmd_link.c - ipu-stack link: objects (or sources) to a flat image of tile memory. */
#include "cli/tools.h"

#include "target/target.h"

#include <string.h>

typedef struct Request {
    const char *output, *entry, *map;
    uint64_t base;
    bool cpp;
    TextList keep, externals;
} Request;

static Status read_externals(Arena *arena, const TextList *list, LinkInput *input)
{
    LinkExternal *externals = arena_array(arena, LinkExternal, list->count + 1);
    for (size_t i = 0; i < list->count; i++) {
        const char *equal = strchr(list->items[i], '=');
        char *end = NULL;
        unsigned long long value = equal ? strtoull(equal + 1, &end, 0) : 0;
        if (!equal || equal == list->items[i] || end == equal + 1 || *end || value > UINT32_MAX)
            return status_error("--define takes NAME=VALUE: %s", list->items[i]);
        externals[i].name =
            arena_printf(arena, "%.*s", (int)(equal - list->items[i]), list->items[i]);
        externals[i].value = (uint32_t)value;
    }
    input->externals = externals;
    input->external_count = (uint32_t)list->count;
    return STATUS_OK;
}

/* The bytes from the base to the end, gaps zero. */
static Status write_image(const LinkImage *image, uint32_t base, const char *path)
{
    size_t bytes = image->segment_count ? image->end - base : 0;
    uint8_t *flat = xcalloc(bytes, 1);
    for (uint32_t i = 0; i < image->segment_count; i++)
        memcpy(flat + (image->segments[i].address - base), image->segments[i].data,
               image->segments[i].bytes);
    Status status = file_write(path, flat, bytes);
    array_release(flat);
    return status;
}

static Status write_map(const LinkImage *image, const char *path)
{
    Text text = {0};
    for (uint32_t i = 0; i < image->segment_count; i++)
        text_printf(&text, "segment 0x%05x 0x%05x%s\n", image->segments[i].address,
                    image->segments[i].address + image->segments[i].bytes,
                    image->segments[i].executable ? " code" : "");
    for (uint32_t i = 0; i < image->symbol_count; i++)
        text_printf(&text, "0x%05x %6u %c %s\n", image->symbols[i].address, image->symbols[i].size,
                    image->symbols[i].global ? 'g' : 'l', image->symbols[i].name);
    Status status = STATUS_OK;
    if (strcmp(path, "-") == 0)
        fputs(text_string(&text), stdout);
    else
        status = file_write(path, text_string(&text), text.count);
    text_free(&text);
    return status;
}

static Status run(Arena *arena, Request *request, const TextList *files)
{
    const AsObject **objects = arena_array(arena, const AsObject *, files->count);
    SourceOptions options = {.cpp = request->cpp};
    if (request->base % 4)
        return status_error(
            "--base: memory is addressed in words of 4 bytes: 0x%llx is no multiple",
            (unsigned long long)request->base);
    for (size_t i = 0; i < files->count; i++) {
        AsObject *object = arena_new(arena, AsObject);
        TRY(tool_object(arena, files->items[i], &options, object));
        objects[i] = object;
    }
    if (request->entry)
        array_push(&request->keep, request->entry);
    LinkRange range = {(uint32_t)request->base, SRAM_END};
    LinkInput input = {.objects = objects,
                       .object_names = files->items,
                       .object_count = (uint32_t)files->count,
                       .roots = request->keep.items,
                       .root_count = (uint32_t)request->keep.count,
                       .ranges = &range,
                       .range_count = 1};
    LinkImage image;
    TRY(read_externals(arena, &request->externals, &input));
    TRY(obj_link(arena, &input, &image));
    uint32_t entry;
    if (request->entry) {
        TRY(link_symbol(&image, request->entry, &entry));
        printf("entry=0x%x\n", entry);
    }
    printf("base=0x%x end=0x%x bytes=%u\n", range.start,
           image.segment_count ? image.end : range.start,
           image.segment_count ? image.end - range.start : 0);
    if (request->map)
        TRY(write_map(&image, request->map));
    return request->output ? write_image(&image, range.start, request->output) : STATUS_OK;
}

int cmd_link(int argc, char **argv)
{
    Arena arena = {0};
    TextList files = {0};
    Request request = {.base = LINK_FIRST};
    const Option options[] = {
        {"-o", OPTION_TEXT, &request.output, "FILE", "the image: memory from the base on", 0, 0},
        {"--base", OPTION_NUMBER, &request.base, "ADDR", "where it begins (default 0x4c018)",
         SRAM_BASE, SRAM_END},
        {"--entry", OPTION_TEXT, &request.entry, "SYMBOL", "keep it, print its address", 0, 0},
        {"--keep", OPTION_LIST, &request.keep, "SYMBOL",
         "keep what it reaches (default without --entry: everything)", 0, 0},
        {"--define", OPTION_LIST, &request.externals, "NAME=VALUE", "an absolute symbol; it wins",
         0, 0},
        {"--map", OPTION_TEXT, &request.map, "FILE", "write segments and symbols; - prints them", 0,
         0},
        CPP_OPTION(request.cpp),
        {0},
    };
    const Command command = {"ipu-stack link FILE.o... -o FILE [options]",
                             "Links objects (or assembly sources) into an image of tile memory.",
                             options, 1, 1000};
    int status = command_parse(&command, argc, argv, &files);
    if (status < 0) {
        Status result = run(&arena, &request, &files);
        status = status_ok(result) ? 0 : command_fail("link", result);
    }
    array_free(&request.keep);
    array_free(&request.externals);
    array_free(&files);
    arena_free(&arena);
    return status;
}
