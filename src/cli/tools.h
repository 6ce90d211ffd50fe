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
    bool cpp; /* through the C preprocessor first; it takes the defines */
    Text *listing;
} SourceOptions;
Status tool_object(Arena *arena, const char *path, const SourceOptions *options, AsObject *out);
/* The same for a text that was read; it may be replaced by what the preprocessor makes of it. */
Status tool_assemble(Arena *arena, const char *path, Bytes *text, const SourceOptions *options,
                     AsObject *out);
/* preprocess.c. The text is empty after an error. Defines and folders are given. */
Status tool_preprocess(Arena *arena, const char *path, const SourceOptions *options, Bytes *text);
#define CPP_OPTION(target)                                                                         \
    {                                                                                              \
        "--cpp", OPTION_FLAG, &(target), "", "run the C preprocessor first; it takes -D and -I",   \
            0, 0                                                                                   \
    }
bool is_elf(const Bytes *bytes);

#endif
