/* kernel_parameters.c - see kernel_parameters.h. */
#include "cli/kernel_parameters.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum Kind { KIND_NUMBER, KIND_FLOAT, KIND_PRECISION, KIND_ORDER } Kind;

static const char *const precisions[] = {[F16] = "f16", [F32] = "f32", [F8F143] = "f8"};
static const char *const orders[] = {
    [ORDER_ROW_MAJOR] = "row-major",        [ORDER_LEFT] = "left",
    [ORDER_TRANSPOSED_LEFT] = "trans-left", [ORDER_TRANSPOSED_RIGHT] = "trans-right",
    [ORDER_BLOCK_MAJOR] = "block-major",    [ORDER_TRANSPOSED_BLOCK_MAJOR] = "trans-block-major",
};

static const char suffix[] = "_bits";

/* Of the spec's name; its length without the suffix. */
static Kind kind_of(const char *name, size_t *length)
{
    size_t full = strlen(name), tail = sizeof suffix - 1;
    bool bits = full > tail && strcmp(name + full - tail, suffix) == 0;
    *length = bits ? full - tail : full;
    return bits                                           ? KIND_FLOAT
           : !strcmp(name, "from") || !strcmp(name, "to") ? KIND_PRECISION
           : !strcmp(name, "precision")                   ? KIND_PRECISION
           : !strcmp(name, "order")                       ? KIND_ORDER
                                                          : KIND_NUMBER;
}

static const char *const *words_of(Kind kind, size_t *count)
{
    *count = kind == KIND_PRECISION ? countof(precisions)
             : kind == KIND_ORDER   ? countof(orders)
                                    : 0;
    return kind == KIND_PRECISION ? precisions : orders;
}

static bool parse_whole(const char *text, int32_t *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 0);
    *out = (int32_t)(uint32_t)value;
    return !errno && end != text && !*end && value >= INT32_MIN && value <= UINT32_MAX;
}

static bool parse_value(Kind kind, const char *text, int32_t *out)
{
    if (kind == KIND_FLOAT) {
        char *end;
        float value = strtof(text, &end);
        memcpy(out, &value, sizeof value);
        return end != text && !*end && isfinite(value);
    }
    size_t count;
    const char *const *words = words_of(kind, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, words[i]) == 0) {
            *out = (int32_t)i;
            return true;
        }
    return parse_whole(text, out);
}

Status kernel_parameter_set(KernelSpec *spec, const char *text)
{
    size_t length = strcspn(text, "=");
    const char *value = text[length] ? text + length + 1 : "";
    for (uint32_t i = 0; i < KERNEL_PARAMETERS; i++) {
        const char *name = kernel_parameter_name(spec->family, i);
        size_t shown;
        if (!name)
            continue;
        Kind kind = kind_of(name, &shown);
        if (shown != length || strncmp(name, text, length) != 0) {
            if (strlen(name) != length || strncmp(name, text, length) != 0)
                continue;
            kind = KIND_NUMBER; /* epsilon_bits itself */
        }
        if (parse_value(kind, value, &spec->p[i]))
            return STATUS_OK;
        char wanted[128];
        kernel_parameter_syntax(spec->family, i, wanted, sizeof wanted);
        return status_error("--set %s: %s is wanted", text,
                            kind == KIND_NUMBER ? "NAME=NUMBER" : wanted);
    }
    return status_error("%s has no parameter %.*s (ipu-stack kernel list shows them)",
                        kernel_family_name(spec->family), (int)length, text);
}

void kernel_parameter_label(KernelFamily family, uint32_t index, char *text, size_t size)
{
    const char *name = kernel_parameter_name(family, index);
    size_t length = 0;
    if (name)
        kind_of(name, &length);
    snprintf(text, size, "%.*s", (int)length, name ? name : "");
}

void kernel_parameter_value(const KernelSpec *spec, uint32_t index, char *text, size_t size)
{
    const char *name = kernel_parameter_name(spec->family, index);
    size_t length, count;
    Kind kind = name ? kind_of(name, &length) : KIND_NUMBER;
    const char *const *words = words_of(kind, &count);
    int32_t value = spec->p[index];
    float number;
    memcpy(&number, &value, sizeof number);
    if (kind == KIND_FLOAT)
        snprintf(text, size, "%.7g", (double)number);
    else if (value >= 0 && (size_t)value < count)
        snprintf(text, size, "%s", words[value]);
    else
        snprintf(text, size, "%d", value);
}

void kernel_parameter_syntax(KernelFamily family, uint32_t index, char *text, size_t size)
{
    const char *name = kernel_parameter_name(family, index);
    size_t length = 0, count;
    Kind kind = name ? kind_of(name, &length) : KIND_NUMBER;
    const char *const *words = words_of(kind, &count);
    Text out = {0};
    text_printf(&out, "%.*s%s", (int)length, name ? name : "",
                kind == KIND_FLOAT ? "=DECIMAL" : "");
    for (size_t i = 0; i < count; i++)
        text_printf(&out, "%c%s", i ? '|' : '=', words[i]);
    snprintf(text, size, "%s", text_string(&out));
    text_free(&out);
}
