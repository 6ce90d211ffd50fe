/* constants.c - the machine's symbolic constants: known by name without any include, and as the
 * text of the headers that sources include for them. What a source, -D or a file on the include
 * path defines itself comes first. */
#include "as/assembler.h"

#include <string.h>

static const char header_text[] =
#define CONSTANT(name, value) ".set " #name ", " #value "\n"
#include "as/constants.def"
#undef CONSTANT
    ;

static const struct Constant {
    const char *name;
    int64_t value;
} constants[] = {
#define CONSTANT(name, value) {#name, value},
#include "as/constants.def"
#undef CONSTANT
};

static const char *const header_names[] = {
    "ipu_constants.inc",
    "TileConstants.hpp",
    "tileimplconsts.h",
    "tilearch.h",
};

const char *builtin_source(const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *base = slash ? slash + 1 : name;
    for (size_t i = 0; i < countof(header_names); i++)
        if (!strcmp(base, header_names[i]))
            return header_text;
    return NULL;
}

bool as_knows_header(const char *name)
{
    return builtin_source(name) != NULL;
}

bool builtin_constant(const char *name, int64_t *value)
{
    if (name[0] != 'T' && name[0] != 'C') /* as all of them begin: labels pass quickly */
        return false;
    for (size_t i = 0; i < countof(constants); i++)
        if (!strcmp(constants[i].name, name)) {
            *value = constants[i].value;
            return true;
        }
    return false;
}
