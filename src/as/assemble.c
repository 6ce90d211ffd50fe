/* assemble.c - the assembler from the outside: sets a run up, runs it, cleans up. */
#include "as/assembler.h"

#include <string.h>

/* -D NAME=VALUE as a source in front of the source. */
static void push_defines(Assembler *as)
{
    Text text = {0};
    for (uint32_t i = 0; i < as->options->define_count; i++) {
        const AsDefine *define = &as->options->defines[i];
        text_printf(&text, ".set %s, %s\n", define->name,
                    define->value && define->value[0] ? define->value : "1");
    }
    if (text.count)
        push_text(as, FRAME_FILE, "command line", "<command line>",
                  arena_copy(as->arena, text.items, text.count + 1, 1), text.count, 1);
    text_free(&text);
}

static void release(Assembler *as)
{
    for (Section *section = as->sections; section; section = section->next) {
        array_free(&section->data);
        array_free(&section->kinds);
        array_free(&section->relocations);
    }
    array_release(as->words);
    array_free(&as->symbols);
    map_free(&as->locals);
    map_free(&as->section_names);
    array_free(&as->section_stack);
    array_free(&as->nodes);
    array_free(&as->fixups);
    array_free(&as->repeats);
    array_free(&as->conditions);
    array_free(&as->relocation_symbols);
    array_free(&as->relocation_sections);
    array_free(&as->listing);
    text_free(&as->errors);
}

Status assemble(Arena *arena, const char *name, const char *text, size_t length,
                const AsOptions *options, AsObject *out)
{
    static const AsOptions no_options = {0};
    Assembler as = {.arena = arena, .options = options ? options : &no_options};
    *out = (AsObject){0};
    if (length > FILE_LIMIT_TEXT)
        return status_error("%s: the source is longer than %d MiB", name, FILE_LIMIT_TEXT >> 20);
    as.mode = as.options->supervisor ? MODE_SUPERVISOR : MODE_WORKER;
    as.section = section_of(&as, ".text", 5, UINT32_MAX);
    char *copy = arena_alloc(arena, length + 1, 1);
    memcpy(copy, text, length);
    push_text(&as, FRAME_FILE, "file", arena_strdup(arena, name), copy, length, 1);
    push_defines(&as);
    assemble_statements(&as);
    AsObject object = {0};
    finish(&as, &object);
    if (as.options->listing)
        listing_write(&as);
    Status status = STATUS_OK;
    if (as.error_count)
        status = status_error("%s", text_string(&as.errors));
    else
        *out = object;
    release(&as);
    return status;
}
