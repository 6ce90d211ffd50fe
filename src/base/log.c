/* log.c - see ipu/log.h. */
#include "base/base.h"

#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static struct {
    FILE *stream;
    LogLevel level;
    LogFormat format;
    LogObserver *observer;
    void *observer_context;
    _Atomic uint64_t done, total; /* of the last span opened */
    pthread_mutex_t mutex;
} the_log = {.mutex = PTHREAD_MUTEX_INITIALIZER};

enum { PATH_BYTES = 1024, FIELD_BYTES = 2048 };
static _Thread_local char span_path[PATH_BYTES];

void log_configure(FILE *stream, LogLevel level, LogFormat format)
{
    the_log.stream = stream;
    the_log.level = level;
    the_log.format = format;
}

bool log_enabled(LogLevel level)
{
    return the_log.stream && level <= the_log.level;
}

void log_observe(LogObserver *observer, void *context)
{
    the_log.observer = observer;
    the_log.observer_context = context;
}

void log_progress(uint64_t done, uint64_t total)
{
    if (!the_log.observer)
        return;
    the_log.done = done;
    if (total)
        the_log.total = total;
}

bool log_progress_read(uint64_t *done, uint64_t *total)
{
    *done = the_log.done;
    *total = the_log.total;
    return *done || *total;
}

static void tell_observer(double close_seconds)
{
    the_log.done = the_log.total = 0;
    if (the_log.observer)
        the_log.observer(the_log.observer_context, span_path, close_seconds);
}

static void put_json_text(FILE *stream, const char *text, size_t length)
{
    fputc('"', stream);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            fprintf(stream, "\\%c", c);
        else if (c < 0x20)
            fprintf(stream, "\\u%04x", c);
        else
            fputc(c, stream);
    }
    fputc('"', stream);
}

static void put_json_fields(FILE *stream, const char *fields)
{
    while (*fields) {
        size_t pair = strcspn(fields, " ");
        const char *equals = memchr(fields, '=', pair);
        size_t key = equals ? (size_t)(equals - fields) : pair;
        fputc(',', stream);
        put_json_text(stream, fields, key);
        fputc(':', stream);
        put_json_text(stream, equals ? equals + 1 : "", equals ? pair - key - 1 : 0);
        fields += pair;
        while (*fields == ' ')
            fields++;
    }
}

static void write_line(LogLevel level, const char *message, const char *fields)
{
    static const char *const names[] = {"OFF", "ERROR", "WARN", "INFO", "DEBUG"};
    struct timeval now;
    gettimeofday(&now, NULL);
    struct tm utc;
    gmtime_r(&now.tv_sec, &utc);
    char date[32];
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
    FILE *stream = the_log.stream;
    pthread_mutex_lock(&the_log.mutex);
    if (the_log.format == LOG_JSON) {
        fprintf(stream, "{\"time\":\"%s.%06ldZ\",\"level\":\"%s\",\"span\":", date, now.tv_usec,
                names[level]);
        put_json_text(stream, span_path, strlen(span_path));
        fputs(",\"message\":", stream);
        put_json_text(stream, message, strlen(message));
        put_json_fields(stream, fields);
        fputs("}\n", stream);
    } else {
        fprintf(stream, "%s.%06ldZ %5s %s%s%s%s%s\n", date, now.tv_usec, names[level], span_path,
                *span_path ? ": " : "", message, *fields ? " " : "", fields);
    }
    fflush(stream);
    pthread_mutex_unlock(&the_log.mutex);
}

void log_event(LogLevel level, const char *message, const char *fields, ...)
{
    if (!log_enabled(level))
        return;
    char text[FIELD_BYTES];
    va_list arguments;
    va_start(arguments, fields);
    vsnprintf(text, sizeof text, fields, arguments);
    va_end(arguments);
    write_line(level, message, text);
}

LogSpan log_open(const char *name, const char *fields, ...)
{
    char text[FIELD_BYTES];
    va_list arguments;
    va_start(arguments, fields);
    vsnprintf(text, sizeof text, fields, arguments);
    va_end(arguments);
    LogSpan span = {.start = seconds_now(), .parent_length = strlen(span_path), .open = true};
    size_t room = PATH_BYTES - span.parent_length;
    snprintf(span_path + span.parent_length, room, "%s%s%s%s%s", span.parent_length ? ":" : "",
             name, *text ? "{" : "", text, *text ? "}" : "");
    tell_observer(-1.0);
    return span;
}

double log_close(LogSpan *span)
{
    if (!span->open)
        return 0;
    double seconds = seconds_now() - span->start;
    if (log_enabled(LOG_INFO)) {
        char text[64];
        snprintf(text, sizeof text, "seconds=%.6f", seconds);
        write_line(LOG_INFO, "close", text);
    }
    tell_observer(seconds);
    span_path[span->parent_length] = 0;
    span->open = false;
    return seconds;
}
