/* relocation.c - the relocation types of the vendor's objects (as.h names them).
 *
 * A relocation takes symbol + addend, subtracts a base (of region 0, for two of them), drops
 * `shift` low bits that must be zero, and stores `bits` bits; the other bits of the place stay. */
#include "obj/relocation.h"

#include <string.h>

static const struct RelocationKind {
    const char *name;
    uint8_t bytes, bits, shift;
    bool relative; /* to the base of region 0, wherever sections are placed */
} kinds[] = {
    [RELOC_NONE] = {"NONE", 0, 0, 0, false},
    [RELOC_8] = {"8", 1, 8, 0, false},
    [RELOC_16] = {"16", 2, 16, 0, false},
    [RELOC_20] = {"20", 4, 20, 0, false},
    [RELOC_32] = {"32", 4, 32, 0, false},
    [RELOC_64] = {"64", 8, 63, 0, false}, /* the addend is 32 bits: no address is longer */
    [RELOC_RELATIVE_16_S2] = {"RELATIVE_16_S2", 2, 16, 2, true},
    [RELOC_18_S2] = {"18_S2", 4, 18, 2, false},
    [RELOC_19_S2] = {"19_S2", 4, 19, 2, false},
    [RELOC_RUN] = {"RUN", 4, 16, 2, true},
    [RELOC_16_S3] = {"16_S3", 2, 16, 3, false},
    [RELOC_16_S4] = {"16_S4", 2, 16, 4, false},
    [RELOC_16_S5] = {"16_S5", 2, 16, 5, false},
    [RELOC_21] = {"21", 4, 21, 0, false},
};

uint32_t relocation_bytes(uint32_t type)
{
    return type < countof(kinds) ? kinds[type].bytes : 0;
}

const char *relocation_name(uint32_t type)
{
    return type < countof(kinds) && kinds[type].name ? kinds[type].name : "unknown";
}

Status relocation_apply(uint32_t type, int64_t value, uint8_t *at)
{
    if (!relocation_bytes(type))
        return type == RELOC_NONE ? STATUS_OK : status_error("unknown relocation type %u", type);
    const struct RelocationKind *kind = &kinds[type];
    int64_t stored = value - (kind->relative ? ISA_REGION_BASE : 0);
    if (stored < 0)
        return status_error("0x%llx is negative%s for relocation %s", (unsigned long long)value,
                            kind->relative ? " relative to the base" : "", kind->name);
    if (stored & ((1 << kind->shift) - 1))
        return status_error("improper alignment for relocation %s: 0x%llx is not aligned to %d "
                            "bytes",
                            kind->name, (unsigned long long)value, 1 << kind->shift);
    uint64_t field = (uint64_t)stored >> kind->shift, mask = ((uint64_t)1 << kind->bits) - 1;
    if (field > mask)
        return status_error("0x%llx is out of range for relocation %s", (unsigned long long)value,
                            kind->name);
    if (type == RELOC_RUN) { /* low 12 bits at 11..0, high 4 bits at 19..16 */
        field = (field & 0xfff) | (field >> 12) << 16;
        mask = 0xf0fff;
    }
    uint64_t old = 0;
    memcpy(&old, at, kind->bytes);
    old = (old & ~mask) | field;
    memcpy(at, &old, kind->bytes);
    return STATUS_OK;
}
