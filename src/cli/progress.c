/* progress.c - what the program is doing: one line on a terminal, and a file for a trace viewer.
 *
 * Both watch the log's spans. The trace is the JSON array of the Chrome trace format; after every
 * event the closing bracket is written and the next event goes in its place, so the file is good
 * JSON whenever the process ends. */
#include "cli/cli.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_THREADS = 256 };

typedef struct Progress {
    pthread_mutex_t mutex;
    double start;
    bool show;
    FILE *trace; /* NULL: none */
    bool any;    /* event written */
    pthread_t threads[MAX_THREADS];
    int thread_count;
} Progress;

/* The stages of a build in order: how far it is. */
static const char *const stages[] = {
    "load_graph",   "construct_plan",  "construct_mid",     "expand_tiles",   "schedule_exchanges",
    "plan_kernels", "compile_kernels", "link_runtime",      "size_tile_code", "place_storage",
    "encode_rows",  "emit_tile_code",  "build_tile_images", "write_package"};

/* "build{tiles=64}:place_storage{}" -> where the last span's name is, and its length. */
static const char *last_name(const char *path, size_t *length)
{
    const char *name = path;
    int depth = 0;
    for (const char *c = path; *c; c++) {
        depth += (*c == '{') - (*c == '}');
        if (*c == ':' && depth == 0)
            name = c + 1;
    }
    *length = strcspn(name, "{");
    return name;
}

static void show(const Progress *p, const char *name, size_t length, bool outermost_closes)
{
    fputs("\r\033[K", stderr); /* the line's start, and empty */
    if (outermost_closes) {
        fflush(stderr);
        return;
    }
    fprintf(stderr, "%6.1f s  ", seconds_now() - p->start);
    for (size_t s = 0; s < countof(stages); s++)
        if (strlen(stages[s]) == length && memcmp(stages[s], name, length) == 0)
            fprintf(stderr, "%zu/%zu  ", s + 1, countof(stages));
    for (size_t i = 0; i < length; i++)
        fputc(name[i] == '_' ? ' ' : name[i], stderr);
    fflush(stderr);
}

static int thread_number(Progress *p)
{
    pthread_t self = pthread_self();
    int i = 0;
    while (i < p->thread_count && !pthread_equal(p->threads[i], self))
        i++;
    if (i == p->thread_count && i < MAX_THREADS)
        p->threads[p->thread_count++] = self;
    return i;
}

static void write_event(Progress *p, const char *path, double seconds)
{
    size_t length;
    const char *name = last_name(path, &length);
    double end = seconds_now() - p->start;
    json_t *event = json_pack("{s:s#, s:s, s:f, s:f, s:i, s:i, s:{s:s}}", "name", name, length,
                              "ph", "X", "ts", (end - seconds) * 1e6, "dur", seconds * 1e6, "pid",
                              1, "tid", thread_number(p), "args", "path", path);
    char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;
    if (text) {
        fseek(p->trace, -2, SEEK_CUR); /* over the bracket */
        fprintf(p->trace, "%s\n%s\n]", p->any ? "," : "", text);
        fflush(p->trace);
        p->any = true;
    }
    free(text);
    json_decref(event);
}

static void observe(void *context, const char *path, double close_seconds)
{
    Progress *p = context;
    size_t length;
    const char *name = last_name(path, &length);
    pthread_mutex_lock(&p->mutex);
    if (p->show)
        show(p, name, length, close_seconds >= 0 && name == path);
    if (p->trace && close_seconds >= 0)
        write_event(p, path, close_seconds);
    pthread_mutex_unlock(&p->mutex);
}

Status progress_start(bool wanted, const char *trace_path)
{
    bool terminal = wanted && isatty(STDERR_FILENO);
    if (!terminal && !trace_path)
        return STATUS_OK;
    Progress *p = xcalloc(1, sizeof *p); /* lives as long as the process */
    pthread_mutex_init(&p->mutex, NULL);
    p->start = seconds_now();
    p->show = terminal;
    if (trace_path) {
        p->trace = fopen(trace_path, "w");
        if (!p->trace) {
            Status status = status_error("%s: %s", trace_path, strerror(errno));
            free(p);
            return status;
        }
        fputs("[\n]", p->trace);
    }
    log_observe(observe, p);
    return STATUS_OK;
}
