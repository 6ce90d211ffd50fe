/* relocation.h - what every relocation type stores, as a table. */
#ifndef IPU_OBJ_RELOCATION_H
#define IPU_OBJ_RELOCATION_H

#include "obj/obj.h"

/* Bytes that a relocation of the type changes, 0 for none and for unknown types. */
uint32_t relocation_bytes(uint32_t type);

/* Stores symbol + addend. Errors: negative, misaligned, out of range. */
Status relocation_apply(uint32_t type, int64_t value, uint8_t *at);

#endif
