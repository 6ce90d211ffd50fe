/* csr.c - names of control and status registers, from csr.def. */
#include "isa/isa.h"

#include <stdio.h>
#include <string.h>

static const struct Csr {
    const char *name;
    uint8_t mode;
    uint16_t number;
} csrs[] = {
#define CSR(name, mode, number, note) {#name, MODE_##mode, number},
#include "isa/csr.def"
#undef CSR
};

static bool mode_allows(IsaMode wanted, IsaMode has)
{
    return wanted == MODE_BOTH || has == MODE_BOTH || wanted == has;
}

int isa_csr_number(const char *name, IsaMode mode)
{
    for (size_t i = 0; i < countof(csrs); i++)
        if (!strcmp(csrs[i].name, name) && mode_allows(mode, (IsaMode)csrs[i].mode))
            return csrs[i].number;
    unsigned m, n;
    int used = 0;
    if (mode != MODE_WORKER && sscanf(name, "CWEI_%2u_%1u%n", &m, &n, &used) == 2 && !name[used] &&
        m < 16 && n < 4)
        return (int)(4 * m + n);
    return -1;
}

const char *isa_csr_name(uint32_t number, IsaMode mode)
{
    for (size_t i = 0; i < countof(csrs); i++)
        if (csrs[i].number == number && mode_allows(mode, (IsaMode)csrs[i].mode))
            return csrs[i].name;
    return NULL;
}
