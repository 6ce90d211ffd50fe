/* framing.c - what can be said of a message's bytes without the Cap'n Proto library: where it ends,
 * and whether it is still what was written.
 *
 * The file begins with (segments - 1) and the words of each segment, 32 bits each. Nothing but the
 * segments follows. The library would tell the same in its own words; these are the user's. */
#include "package/wire.h"

#include <string.h>

enum { SEGMENTS_LIMIT = 512 };

Status framing_check(const char *kind, const char *name, const uint8_t *data, size_t count)
{
    uint32_t segments;
    if (count < 8)
        return status_error("%s: truncated: %zu bytes are no %s", name, count, kind);
    memcpy(&segments, data, 4);
    if (++segments == 0 || segments > SEGMENTS_LIMIT)
        return status_error("%s: not a %s: it does not begin like one", name, kind);
    size_t header = (4 + 4 * (size_t)segments + 7) / 8 * 8;
    if (count < header)
        return status_error("%s: truncated: %zu bytes, the header alone has %zu", name, count,
                            header);
    uint64_t needed = header;
    for (uint32_t s = 0; s < segments; s++) {
        uint32_t words;
        memcpy(&words, data + 4 + 4 * (size_t)s, 4);
        needed += (uint64_t)words * 8;
    }
    if (needed > count)
        return status_error("%s: not a %s, or truncated: %zu bytes of %llu", name, kind, count,
                            (unsigned long long)needed);
    if (needed < count)
        return status_error("%s: not a %s: %llu bytes stand behind its end", name, kind,
                            (unsigned long long)(count - needed));
    return STATUS_OK;
}

uint64_t framing_checksum(const uint8_t *data, size_t count, size_t place)
{
    uint64_t hash = hash_bytes(data, place, 0);
    hash = hash_bytes(data + place + 8, count - place - 8, hash);
    return hash ? hash : 1; /* 0: none */
}
