/* log.h - what the library says while it works: spans and events.
 *
 * A span is a named stretch of work with fields; spans nest; when one ends its time is logged. An
 * event is one message with key=value fields. A line has time, level, span path, message, fields:
 *
 *   2026-11-30T10:14:49.981051Z  INFO build{tiles=64}:schedule_exchanges: close seconds=0.012
 *
 * or, as JSON lines, one object with the same parts. Off by default (level LOG_OFF). The log is the
 * only global of the library. Spans belong to the thread that opened them; threads of the pool log
 * under the path of the thread that started the job only if they are given a span of their own. */
#ifndef IPU_LOG_H
#define IPU_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum LogLevel { LOG_OFF, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG } LogLevel;
typedef enum LogFormat { LOG_TEXT, LOG_JSON } LogFormat;

void log_configure(FILE *stream, LogLevel level, LogFormat format);
bool log_enabled(LogLevel level);

/* log_event(LOG_INFO, "scheduled phase", "phase=%u horizon=%u", phase, horizon).
 * The field text is key=value pairs separated by single spaces; values hold no spaces. */
__attribute__((format(printf, 3, 4))) void log_event(LogLevel level, const char *message,
                                                     const char *fields, ...);

/* Spans: LogSpan span = log_open("build", "tiles=%u", tiles); ... log_close(&span);
 * log_close returns the span's seconds. */
typedef struct LogSpan {
    double start;
    size_t parent_length;
    bool open;
} LogSpan;
__attribute__((format(printf, 2, 3))) LogSpan log_open(const char *name, const char *fields, ...);
double log_close(LogSpan *span);

/* Called at the opening and closing of every span, also when the log is off: for progress displays
 * and traces. close_seconds is negative at the opening. */
typedef void LogObserver(void *context, const char *path, double close_seconds);
void log_observe(LogObserver *observer, void *context);

/* How far the span that was opened last is, for progress displays: cheap, at any rate, by any
 * thread. total 0: as it was said before. Opening or closing a span forgets it. */
void log_progress(uint64_t done, uint64_t total);
bool log_progress_read(uint64_t *done, uint64_t *total); /* false: nothing was said */

#endif
