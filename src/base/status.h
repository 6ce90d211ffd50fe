/* status.h - what a library function answers: success, or a message with its context.
 *
 * A Status is one pointer; NULL is success. Errors are built where they happen and gain context on
 * the way up ("gemm vit.mlp.up: no grid of 64 tiles fits: ..."). The caller that ends an error's
 * way frees it. TRY passes errors on. Functions that return Status leave their outputs untouched
 * or valid-but-empty when they fail. */
#ifndef IPU_BASE_STATUS_H
#define IPU_BASE_STATUS_H

#include <stdbool.h>

typedef struct StatusDetail StatusDetail;

typedef struct Status {
    StatusDetail *detail;
} Status;

#define STATUS_OK ((Status){0})
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

PRINTF_LIKE(1, 2) __attribute__((warn_unused_result)) Status status_error(const char *format, ...);

/* Prefixes the message with "context: ". Success stays success. */
PRINTF_LIKE(2, 3)
__attribute__((warn_unused_result)) Status status_context(Status status, const char *format, ...);

static inline bool status_ok(Status status)
{
    return status.detail == 0;
}

/* The message, "" for success. Valid until status_free. */
const char *status_message(Status status);
void status_free(Status status);

/* True when the status was an error, which is then freed: for tests and for ignoring on purpose. */
bool status_discard(Status status);

#if defined(__clang_analyzer__) && !defined(STATUS_DEFINED_HERE)
/* For the static analyser, which does not see the functions: an error is not success. */
#define status_error(...) ((void)(status_error)(__VA_ARGS__), (Status){(StatusDetail *)1})
#define status_context(status, ...) (status)
#define status_discard(status) (!status_ok(status))
#endif

#define TRY(expression)                                                                            \
    do {                                                                                           \
        Status try_status_ = (expression);                                                         \
        if (!status_ok(try_status_))                                                               \
            return try_status_;                                                                    \
    } while (0)

#endif
