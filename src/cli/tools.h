/* tools.h - what the verbs of the low-level toolchain share: as, dis, link, obj, and sim. */
#ifndef IPU_CLI_TOOLS_H
#define IPU_CLI_TOOLS_H

#include "cli/cli.h"
#include "obj/obj.h"

/* Assembles a source file (its folder is searched for includes, then the folders given; warnings go
 * to standard error) or reads an object file, told by the first bytes. */
typedef struct SourceOptions {
    const TextList *defines; /* NAME or NAME=VALUE */
    const TextList *folders;
    bool supervisor;
    Text *listing;
} SourceOptions;
Status tool_object(Arena *arena, const char *path, const SourceOptions *options, AsObject *out);
Status tool_assemble(Arena *arena, const char *path, const Bytes *text,
                     const SourceOptions *options, AsObject *out);
bool is_elf(const Bytes *bytes);

#endif
