/* progress.c - what the program is doing: one line on a terminal, and a file for a trace viewer.
 *
 * Both watch the log's spans. The line has the time since the start, the stage with how far it is,
 * and its own time; a thread of its own keeps the clocks going when nothing else is heard. The
 * trace is the JSON array of the Chrome trace format; after every event the closing bracket is
 * written and the next event goes in its place, so the file is good JSON whenever the process ends.
 */
#include "cli/cli.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THREADS = 256, MAX_DEPTH = 8, TICK_MILLISECONDS = 100 };

typedef struct Doing { /* an open span */
    char name[48];
    double since;
} Doing;

typedef struct Progress {
    pthread_mutex_t mutex;
    double start;
    bool show;
    Doing doing[MAX_DEPTH]; /* outermost first */
    uint32_t depth;
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

/* "   3.4 s  5/14  schedule exchanges  1.2 s  40 %" */
static void show(const Progress *p)
{
    double now = seconds_now();
    fputs("\r\033[K", stderr); /* the line's start, and empty */
    if (p->depth) {
        const Doing *doing = &p->doing[min_u32(p->depth, MAX_DEPTH) - 1];
        uint64_t done, total;
        fprintf(stderr, "%6.1f s  ", now - p->start);
        for (size_t s = 0; s < countof(stages); s++)
            if (strcmp(stages[s], doing->name) == 0)
                fprintf(stderr, "%zu/%zu  ", s + 1, countof(stages));
        for (const char *c = doing->name; *c; c++)
            fputc(*c == '_' ? ' ' : *c, stderr);
        fprintf(stderr, "  %.1f s", now - doing->since);
        if (log_progress_read(&done, &total) && total)
            fprintf(stderr, "  %.0f %%",
                    100 * (double)done / (double)(done > total ? done : total));
        else if (done)
            fprintf(stderr, "  %llu", (unsigned long long)done);
    }
    fflush(stderr);
}

static void open_or_close(Progress *p, const char *name, size_t length, bool closes)
{
    if (closes) {
        p->depth -= p->depth > 0;
        return;
    }
    if (p->depth < MAX_DEPTH) {
        Doing *doing = &p->doing[p->depth];
        doing->since = seconds_now();
        snprintf(doing->name, sizeof doing->name, "%.*s", (int)length, name);
    }
    p->depth++;
}

static void *tick(void *context)
{
    Progress *p = context;
    for (;;) {
        nanosleep(&(struct timespec){.tv_nsec = TICK_MILLISECONDS * 1000000L}, NULL);
        pthread_mutex_lock(&p->mutex);
        if (p->depth)
            show(p);
        pthread_mutex_unlock(&p->mutex);
    }
    return NULL;
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
    open_or_close(p, name, length, close_seconds >= 0);
    if (p->show)
        show(p);
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
    pthread_t ticker;
    if (terminal && pthread_create(&ticker, NULL, tick, p) == 0)
        pthread_detach(ticker); /* the line is as good without it, but for the clock */
    return STATUS_OK;
}
