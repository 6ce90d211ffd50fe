/* assembly.h - for tests that assemble text: the words of .text, or the error. */
#ifndef IPU_TESTS_ASSEMBLY_H
#define IPU_TESTS_ASSEMBLY_H

#include "check.h"

#include "as/as.h"

#include <string.h>

typedef struct Assembled {
    Arena arena;
    AsObject object;
    Status status;
} Assembled;

static inline Assembled assembled_with(const char *text, const AsOptions *options)
{
    Assembled out = {.status = STATUS_OK};
    out.status = assemble(&out.arena, "test.S", text, strlen(text), options, &out.object);
    return out;
}

static inline void assembled_free(Assembled *assembled)
{
    status_free(assembled->status);
    arena_free(&assembled->arena);
}

/* The text must assemble to these bytes of a section, before relocation. */
static inline void expect_bytes(const char *text, const char *section, const void *bytes,
                                uint32_t count)
{
    Assembled result = assembled_with(text, NULL);
    if (!status_ok(result.status))
        fail_msg("%s", status_message(result.status));
    for (uint32_t i = 0; i < result.object.section_count; i++) {
        const AsSection *found = &result.object.sections[i];
        if (strcmp(found->name, section))
            continue;
        if (found->bytes != count)
            fail_msg("%s\n%u bytes in %s, expected %u", text, found->bytes, section, count);
        for (uint32_t k = 0; k < count; k++)
            if (found->data[k] != ((const uint8_t *)bytes)[k])
                fail_msg("%s\nbyte %u of %s is %02x, expected %02x", text, k, section,
                         found->data[k], ((const uint8_t *)bytes)[k]);
        assembled_free(&result);
        return;
    }
    fail_msg("no section %s", section);
}

#define expect_words(text, ...)                                                                    \
    do {                                                                                           \
        const uint32_t expected_words_[] = {__VA_ARGS__};                                          \
        expect_bytes(text, ".text", expected_words_, sizeof expected_words_);                      \
    } while (0)

#define expect_data(text, ...)                                                                     \
    do {                                                                                           \
        const uint8_t expected_bytes_[] = {__VA_ARGS__};                                           \
        expect_bytes(".data\n" text, ".data", expected_bytes_, sizeof expected_bytes_);            \
    } while (0)

/* The whole message must be this. */
static inline void expect_error(const char *text, const char *message)
{
    Assembled result = assembled_with(text, NULL);
    if (strcmp(status_message(result.status), message))
        fail_msg("%s\nsays: %s\nexpected: %s", text, status_message(result.status), message);
    assembled_free(&result);
}

/* The message must hold this. */
static inline void expect_error_with(const char *text, const char *part)
{
    Assembled result = assembled_with(text, NULL);
    if (!strstr(status_message(result.status), part))
        fail_msg("%s\nsays: %s\nexpected: ...%s...", text, status_message(result.status), part);
    assembled_free(&result);
}

#endif
