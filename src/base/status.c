/* status.c - error messages with context, see status.h. */
#define STATUS_DEFINED_HERE
#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct StatusDetail {
    char *message;
};

static char *format_message(const char *format, va_list arguments)
{
    char *text = NULL;
    if (vasprintf(&text, format, arguments) < 0)
        fatal_out_of_memory();
    return text;
}

Status status_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    StatusDetail *detail = xmalloc(sizeof *detail);
    detail->message = format_message(format, arguments);
    va_end(arguments);
    return (Status){detail};
}

Status status_context(Status status, const char *format, ...)
{
    if (status_ok(status))
        return status;
    va_list arguments;
    va_start(arguments, format);
    char *prefix = format_message(format, arguments);
    va_end(arguments);
    char *joined = NULL;
    if (asprintf(&joined, "%s: %s", prefix, status.detail->message) < 0)
        fatal_out_of_memory();
    free(prefix);
    free(status.detail->message);
    status.detail->message = joined;
    return status;
}

const char *status_message(Status status)
{
    return status.detail ? status.detail->message : "";
}

void status_free(Status status)
{
    if (status.detail) {
        free(status.detail->message);
        free(status.detail);
    }
}

bool status_discard(Status status)
{
    bool failed = !status_ok(status);
    status_free(status);
    return failed;
}
