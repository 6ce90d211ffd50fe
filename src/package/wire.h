/* wire.h - the border between C and the one C++ file: a checked package to bytes, bytes to a
 * package. */
#ifndef IPU_PACKAGE_WIRE_H
#define IPU_PACKAGE_WIRE_H

#include "package/package.h"

Status wire_encode(const Package *package, Bytes *out);
/* Reads everything into the arena except segment data, which points into `data` (8-byte aligned).
 */
Status wire_decode(Arena *arena, const char *name, const uint8_t *data, size_t count, Package *out);

#endif
