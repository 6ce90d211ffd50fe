/* preprocess.c - a source through the system's C preprocessor, for sources that use #define and
 * #if.
 *
 * cpp reads and writes memory files, so nothing has to be pumped and nothing is left behind. It
 * sees no macros but the source's and -D's, and no folders but the source's and -I's. Its line
 * markers keep the assembler's messages at the lines of the source. */
#include "cli/tools.h"

#include "as/as.h"

#include <ctype.h>
#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The name in a line like #include <name>, or NULL. */
static const char *included(Arena *arena, const char *line, const char *end)
{
    while (line < end && isblank((unsigned char)*line))
        line++;
    if (line == end || *line++ != '#')
        return NULL;
    while (line < end && isblank((unsigned char)*line))
        line++;
    if (end - line < 7 || memcmp(line, "include", 7) != 0)
        return NULL;
    for (line += 7; line < end && *line != '<' && *line != '"';)
        line++;
    const char *close = line < end ? line + 1 : end;
    while (close < end && *close != '>' && *close != '"')
        close++;
    return close < end ? arena_printf(arena, "%.*s", (int)(close - line - 1), line + 1) : NULL;
}

static bool in_folders(Arena *arena, const TextList *folders, const char *name)
{
    for (size_t i = 0; i < folders->count; i++)
        if (file_exists(arena_printf(arena, "%s/%s", folders->items[i], name)))
            return true;
    return false;
}

/* Headers of constants that the assembler knows by itself are taken out, unless there are files. */
static void take_out_known_headers(Arena *arena, const TextList *folders, Bytes *text)
{
    char *line = (char *)text->data, *end = line + text->count;
    while (line < end) {
        char *newline = memchr(line, '\n', (size_t)(end - line));
        char *line_end = newline ? newline : end;
        const char *name = included(arena, line, line_end);
        if (name && as_knows_header(name) && !in_folders(arena, folders, name))
            memset(line, ' ', (size_t)(line_end - line));
        line = newline ? newline + 1 : end;
    }
}

static Status run_cpp(char *const *arguments, int input, int output)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    pid_t child;
    int error = posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ), state = 0;
    posix_spawn_file_actions_destroy(&actions);
    if (error)
        return status_error("--cpp: can not run cpp: %s", strerror(error));
    while (waitpid(child, &state, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0)
        return STATUS_OK;
    return status_error("cpp does not accept it"); /* it has said why */
}

static Status through_files(Arena *arena, const char *path, const SourceOptions *options,
                            Bytes *text, int input, int output)
{
    const TextList *defines = options->defines, *folders = options->folders;
    const char *slash = strrchr(path, '/');
    ARRAY(const char *) arguments = {0};
    array_push(&arguments, "cpp");
    array_push(&arguments, "-xassembler-with-cpp");
    array_push(&arguments, "-undef");
    array_push(&arguments, "-nostdinc");
    array_push(&arguments, "-iquote");
    array_push(&arguments, slash ? arena_printf(arena, "%.*s/", (int)(slash - path), path) : ".");
    for (size_t i = 0; i < folders->count; i++)
        array_push(&arguments, arena_printf(arena, "-I%s", folders->items[i]));
    for (size_t i = 0; i < defines->count; i++)
        array_push(&arguments, arena_printf(arena, "-D%s", defines->items[i]));
    array_push(&arguments, "-");
    array_push(&arguments, NULL);
    take_out_known_headers(arena, folders, text);
    const char *marker = arena_printf(arena, "#line 1 \"%s\"\n", path);
    bool written = write(input, marker, strlen(marker)) == (ssize_t)strlen(marker) &&
                   write(input, text->data, text->count) == (ssize_t)text->count &&
                   lseek(input, 0, SEEK_SET) == 0;
    bytes_free(text);
    Status status = written ? run_cpp((char *const *)arguments.items, input, output)
                            : status_error("--cpp: %s", strerror(errno));
    array_free(&arguments);
    TRY(status_context(status, "%s", path));
    char name[32];
    snprintf(name, sizeof name, "/proc/self/fd/%d", output);
    return file_read(name, FILE_LIMIT_TEXT, text);
}

Status tool_preprocess(Arena *arena, const char *path, const SourceOptions *options, Bytes *text)
{
    int input = memfd_create("source", MFD_CLOEXEC), output = memfd_create("cpp", MFD_CLOEXEC);
    Status status = input < 0 || output < 0
                        ? status_error("--cpp: %s", strerror(errno))
                        : through_files(arena, path, options, text, input, output);
    if (!status_ok(status))
        bytes_free(text);
    if (input >= 0)
        close(input);
    if (output >= 0)
        close(output);
    return status;
}
