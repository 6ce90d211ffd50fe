/* wire.h - the border between C and the C++ files: checked packages and profiles to bytes, bytes to
 * packages and profiles. */
#ifndef IPU_PACKAGE_WIRE_H
#define IPU_PACKAGE_WIRE_H

#include "package/package.h"

Status wire_encode(const Package *package, Bytes *out);
/* Reads everything into the arena except segment data, which points into `data` (8-byte aligned).
 */
Status wire_decode(Arena *arena, const char *name, const uint8_t *data, size_t count, Package *out);

/* Spans of activities are spans, of steps that exist (profile.c). */
Status profile_check_activities(const ProfileActivity *activities, uint32_t count, uint32_t steps);

Status wire_encode_profile(const Profile *profile, bool inline_steps, Bytes *out);
Status wire_decode_profile(Arena *arena, const char *name, const uint8_t *data, size_t count,
                           Profile *out);

#endif
