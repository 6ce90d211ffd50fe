/* as.h - the assembler: text in, one relocatable object out (and the errors, all of them).
 *
 * Re-entrant: kernels are assembled on many threads at once. The language is the vendor's
 * (docs/assembly.md); the machine's symbolic constants are known without any include. Several
 * errors are collected in one run; the Status that comes back holds them all, one a line, each
 * "file:line:column: message" with the macro stack below it. */
#ifndef IPU_AS_AS_H
#define IPU_AS_AS_H

#include "isa/isa.h"

typedef enum AsSectionFlags {
    AS_WRITE = 1,
    AS_ALLOC = 2,
    AS_EXECUTE = 4,
    AS_NOBITS = 8
} AsSectionFlags;

/* Relocation types are those of the vendor's ELF objects (facts: memory-boot-package.md 8.3). */
typedef enum AsRelocationType {
    RELOC_NONE = 0,
    RELOC_8 = 1,
    RELOC_16 = 2,
    RELOC_20 = 3,
    RELOC_32 = 4,
    RELOC_64 = 5,
    RELOC_RELATIVE_16_S2 = 6,
    RELOC_18_S2 = 7,
    RELOC_19_S2 = 8,
    RELOC_RUN = 9,
    RELOC_16_S3 = 14,
    RELOC_16_S4 = 15,
    RELOC_16_S5 = 16,
    RELOC_21 = 17
} AsRelocationType;

typedef struct AsRelocation {
    uint32_t offset; /* in the section */
    uint32_t type;   /* AsRelocationType */
    uint32_t symbol; /* index into AsObject.symbols */
    int32_t addend;
} AsRelocation;

typedef struct AsSection {
    const char *name; /* ".text.gemm" */
    uint32_t flags;
    uint32_t align;
    uint32_t bytes; /* size; data is NULL for NOBITS */
    uint8_t *data;
    AsRelocation *relocations;
    uint32_t relocation_count;
} AsSection;

typedef enum AsBinding { AS_LOCAL, AS_GLOBAL, AS_WEAK } AsBinding;
enum { AS_UNDEFINED = 0xffffffffu, AS_ABSOLUTE = 0xfffffffeu };

typedef struct AsSymbol {
    const char *name;
    uint32_t section; /* index, AS_UNDEFINED or AS_ABSOLUTE */
    uint32_t value;   /* offset in the section, or the absolute value */
    uint32_t size;
    uint8_t binding; /* AsBinding */
    bool function;
    bool is_section; /* stands for the start of its section; relocations of local labels name it */
} AsSymbol;

typedef struct AsObject { /* all memory in the arena given to assemble() */
    AsSection *sections;
    uint32_t section_count;
    AsSymbol *symbols;
    uint32_t symbol_count;
} AsObject;

typedef struct AsDefine { /* -D NAME=VALUE */
    const char *name, *value;
} AsDefine;

/* Finds included text that is not a file (the embedded kernel sources); NULL when unknown. */
typedef const char *AsFindSource(const char *name);

typedef struct AsOptions {
    const AsDefine *defines;
    uint32_t define_count;
    const char *const *include_folders; /* may be NULL: then no file is read */
    uint32_t include_folder_count;
    AsFindSource *find_source; /* may be NULL */
    bool supervisor;           /* start in supervisor mode */
    Text *listing;             /* NULL: none */
    Text *warnings;            /* NULL: not wanted; one a line */
} AsOptions;

/* Whether an include of this name, which is not found as a file, is a header of machine constants
 * that are known anyway. */
bool as_knows_header(const char *name);

Status assemble(Arena *arena, const char *name, const char *text, size_t length,
                const AsOptions *options, AsObject *out);

#endif
