/* source.c - where text comes from and where errors go.
 *
 * Frames form a stack: a file, what it includes, the expansion of a macro, the body of a
 * repetition. Frames are never freed before the end, because positions of unsettled expressions
 * point to them. */
#include "as/assembler.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

Position position_now(const Assembler *as)
{
    const Frame *frame = as->frame;
    const char *at = as->token.start ? as->token.start : frame->cursor;
    uint32_t column = at >= frame->line_start ? (uint32_t)(at - frame->line_start) + 1 : 1;
    return (Position){frame, frame->name, frame->line, column};
}

static void put_stack(Text *out, const Frame *frame)
{
    for (int depth = 0; frame->parent && frame->call_name; frame = frame->parent) {
        if (depth++ == 10) {
            text_append(out, "\n    ...");
            return;
        }
        text_printf(out, "\n    in %s%s from %s:%u:%u", frame->kind == FRAME_MACRO ? "macro " : "",
                    frame->what, frame->call_name, frame->call_line, frame->call_column);
    }
}

static void put_message(Text *out, const Position *at, const char *kind, const char *format,
                        va_list arguments)
{
    if (out->count)
        text_append(out, "\n");
    char message[1024];
    vsnprintf(message, sizeof message, format, arguments);
    text_printf(out, "%s:%u:%u: %s%s", at->name, at->line, at->column, kind, message);
    put_stack(out, at->frame);
}

static void count_error(Assembler *as)
{
    if (++as->error_count >= ERROR_LIMIT && !as->stop) {
        text_append(&as->errors, "\ntoo many errors, the rest is not assembled");
        as->stop = true;
    }
}

void as_error_at(Assembler *as, const Position *at, const char *format, ...)
{
    if (as->stop)
        return;
    va_list arguments;
    va_start(arguments, format);
    put_message(&as->errors, at, "", format, arguments);
    va_end(arguments);
    count_error(as);
}

void as_error(Assembler *as, const char *format, ...)
{
    if (as->stop)
        return;
    Position at = position_now(as);
    if (as->token.kind == TOKEN_BAD) { /* what the token is says more than what was expected */
        as_error_at(as, &at, "%s", as->token.error);
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    put_message(&as->errors, &at, "", format, arguments);
    va_end(arguments);
    count_error(as);
}

void as_warning(Assembler *as, const char *format, ...)
{
    if (!as->options->warnings)
        return;
    Position at = as->statement;
    va_list arguments;
    va_start(arguments, format);
    put_message(as->options->warnings, &at, "warning: ", format, arguments);
    va_end(arguments);
}

static bool charge_expansion(Assembler *as, size_t bytes)
{
    as->expanded += bytes + 16;
    if (as->expanded <= EXPANSION_LIMIT)
        return true;
    as_error(as, "macros and repetitions expand to more than %d MiB of text",
             EXPANSION_LIMIT >> 20);
    as->stop = true;
    return false;
}

static Frame *new_frame(Assembler *as, FrameKind kind, const char *what)
{
    if (as->depth >= DEPTH_LIMIT) {
        as_error(as, "more than %d macros, repetitions and includes within each other",
                 DEPTH_LIMIT);
        as->stop = true;
        return NULL;
    }
    Frame *frame = arena_new(as->arena, Frame);
    frame->kind = kind;
    frame->what = what;
    frame->parent = as->frame;
    frame->conditions = (uint32_t)as->conditions.count;
    if (as->frame) {
        frame->call_name = as->statement.name;
        frame->call_line = as->statement.line;
        frame->call_column = as->statement.column;
    }
    as->depth++;
    return frame;
}

static void enter(Assembler *as, Frame *frame)
{
    as->frame = frame;
    as->token = (Token){.kind = TOKEN_END};
}

bool push_text(Assembler *as, FrameKind kind, const char *what, const char *name, const char *text,
               size_t length, uint32_t line)
{
    if (kind != FRAME_FILE && !charge_expansion(as, length))
        return false;
    Frame *frame = new_frame(as, kind, what);
    if (!frame)
        return false;
    frame->name = name;
    frame->cursor = frame->line_start = text;
    frame->end = text + length;
    frame->line = line;
    enter(as, frame);
    return true;
}

void push_repeat(Assembler *as, const char *what, const char *body, const char *end, uint32_t line,
                 uint32_t count)
{
    if (count == 0 || !charge_expansion(as, (size_t)(end - body)))
        return;
    Frame *frame = new_frame(as, FRAME_REPEAT, what);
    if (!frame)
        return;
    frame->name = as->frame->name;
    frame->cursor = frame->line_start = frame->body = body;
    frame->end = end;
    frame->line = frame->body_line = line;
    frame->remaining = count - 1;
    enter(as, frame);
}

typedef struct Include {
    const char *text, *path; /* path: where it was found; NULL for text that is no file */
    size_t length;
} Include;

static bool read_file(Assembler *as, const char *path, Include *out)
{
    Bytes bytes;
    if (!file_exists(path) || status_discard(file_read(path, FILE_LIMIT_TEXT, &bytes)))
        return false;
    out->text = arena_copy(as->arena, bytes.data, bytes.count + 1, 1);
    out->length = bytes.count;
    out->path = path;
    bytes_free(&bytes);
    return true;
}

/* Next to the file that includes, if that was found as a file; then in the folders. */
static bool find_file(Assembler *as, const char *name, Include *out)
{
    const AsOptions *options = as->options;
    if (options->include_folder_count == 0)
        return false; /* nobody asked for files */
    if (name[0] == '/')
        return read_file(as, name, out);
    const Frame *from = as->frame;
    while (from->kind != FRAME_FILE)
        from = from->parent;
    const char *slash = from->path ? strrchr(from->path, '/') : NULL;
    if (slash &&
        read_file(as,
                  arena_printf(as->arena, "%.*s/%s", (int)(slash - from->path), from->path, name),
                  out))
        return true;
    for (uint32_t i = 0; i < options->include_folder_count; i++)
        if (read_file(as, arena_printf(as->arena, "%s/%s", options->include_folders[i], name), out))
            return true;
    return false;
}

void push_include(Assembler *as, const char *name, size_t length)
{
    const AsOptions *options = as->options;
    char *copy = arena_alloc(as->arena, length + 1, 1);
    memcpy(copy, name, length);
    Include found = {0};
    bool builtin = false;
    if (!find_file(as, copy, &found)) {
        found.text = options->find_source ? options->find_source(copy) : NULL;
        builtin = !found.text;
        if (builtin)
            found.text = builtin_source(copy);
        if (!found.text) {
            as_error(as, "can not find include file '%s'", copy);
            return;
        }
        found.length = strlen(found.text);
    }
    if (!charge_expansion(as, found.length) ||
        !push_text(as, FRAME_FILE, "include", found.path ? found.path : copy, found.text,
                   found.length, 1))
        return;
    as->frame->path = found.path;
    as->frame->builtin = builtin;
}

bool pop_frame(Assembler *as)
{
    Frame *frame = as->frame;
    if (frame->kind == FRAME_REPEAT && frame->remaining && !as->stop &&
        charge_expansion(as, (size_t)(frame->end - frame->body))) {
        frame->remaining--;
        frame->cursor = frame->line_start = frame->body;
        frame->line = frame->body_line;
        return true;
    }
    while (as->conditions.count > frame->conditions) {
        Condition *open = &as->conditions.items[--as->conditions.count];
        as_error_at(as, &open->at, ".if without .endif");
    }
    as->depth--;
    if (!frame->parent)
        return false;
    enter(as, frame->parent);
    return true;
}
