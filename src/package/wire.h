/* wire.h - the border between C and the C++ files: checked packages and profiles to bytes, bytes to
 * packages and profiles. */
#ifndef IPU_PACKAGE_WIRE_H
#define IPU_PACKAGE_WIRE_H

#include "package/package.h"

Status wire_encode(const Package *package, Bytes *out); /* without a checksum */
/* Writes the checksum of an encoded package into it. */
Status wire_seal(Bytes *package);
/* Reads everything into the arena except segment data, which points into `data` (8-byte aligned).
 * A checksum that is there must hold. */
Status wire_decode(Arena *arena, const char *name, const uint8_t *data, size_t count, Package *out);

/* Spans of activities are spans, of steps that exist (profile.c). */
Status profile_check_activities(const ProfileActivity *activities, uint32_t count, uint32_t steps);

/* Errors in words for files that are something else or end early; kind: "package". */
Status framing_check(const char *kind, const char *name, const uint8_t *data, size_t count);
/* Of all bytes but the 8 at `place`, where it is stored; never 0. */
uint64_t framing_checksum(const uint8_t *data, size_t count, size_t place);

Status wire_encode_profile(const Profile *profile, bool inline_steps, Bytes *out);
Status wire_decode_profile(Arena *arena, const char *name, const uint8_t *data, size_t count,
                           Profile *out);

#endif
