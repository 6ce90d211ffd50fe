/* obj.h - ELF objects and the linker.
 *
 * Objects are ELF32 little-endian, machine 0xf8, RELA, written and read through libelf. Linking
 * collects the sections that the roots reach, places them first-fit into the given address ranges,
 * resolves relocations and returns segments and symbols. Same inputs, same bytes. */
#ifndef IPU_OBJ_OBJ_H
#define IPU_OBJ_OBJ_H

#include "as/as.h"

Status obj_write_file(const AsObject *object, const char *path);
Status obj_write(const AsObject *object, Bytes *out);
/* Reads and checks everything (a hostile file gives an error); name is for messages. */
Status obj_read(Arena *arena, const char *name, const uint8_t *data, size_t count, AsObject *out);

typedef struct LinkRange { /* addresses [start, end) that sections may take */
    uint32_t start, end;
} LinkRange;

typedef struct LinkExternal { /* absolute symbols given from outside; they win */
    const char *name;
    uint32_t value;
} LinkExternal;

typedef struct LinkInput {
    const AsObject *const *objects;
    const char *const *object_names; /* for messages; may be NULL */
    uint32_t object_count;
    const char *const *roots; /* symbols that must be kept; NULL with root_count 0 keeps all */
    uint32_t root_count;
    const LinkRange *ranges;
    uint32_t range_count;
    const LinkExternal *externals;
    uint32_t external_count;
} LinkInput;

typedef struct LinkSegment {
    uint32_t address, bytes; /* bytes in memory */
    uint8_t *data;           /* `bytes` of them, NOBITS parts zero */
    bool executable;
} LinkSegment;

typedef struct LinkSymbol {
    const char *name;
    uint32_t address, size;
    bool global; /* also weak ones and externals */
} LinkSymbol;

typedef struct LinkImage { /* memory in the arena */
    LinkSegment *segments; /* ascending, merged where contiguous */
    uint32_t segment_count;
    LinkSymbol *symbols; /* ascending by address */
    uint32_t symbol_count;
    uint32_t end; /* first address after the last segment */
} LinkImage;

/* Names and bytes of the relocation types, for printers. */
const char *relocation_name(uint32_t type);

Status obj_link(Arena *arena, const LinkInput *input, LinkImage *out);
/* The address of a global symbol, or of a local one when just one has the name. */
Status link_symbol(const LinkImage *image, const char *name, uint32_t *address);

#endif
