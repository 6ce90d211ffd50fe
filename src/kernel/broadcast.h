/* broadcast.h - kernels/broadcast.inc on the host: shapes of add and bias_gelu, whose first three
 * parameters are alike. */
#ifndef IPU_KERNEL_BROADCAST_H
#define IPU_KERNEL_BROADCAST_H

#include "kernel/launch.h"

typedef struct Broadcast {
    uint32_t panels, rows, columns;
    bool panel;     /* Left order: 16 columns */
    uint32_t quads; /* dealt to the workers at a time */
} Broadcast;

static inline Broadcast broadcast_of(const KernelSpec *spec)
{
    Broadcast b = {.panels = (uint32_t)spec->p[ADD_PANELS],
                   .rows = (uint32_t)spec->p[ADD_ROWS],
                   .columns = (uint32_t)spec->p[ADD_COLUMNS]};
    b.panel = b.rows > 1 && b.columns == 16;
    b.quads = b.panel ? 4 * b.rows : b.rows > 1 ? b.columns / 4 : b.panels * b.columns / 4;
    return b;
}

/* Checks the shape; bytes of the second operand, which x has for every row. */
static inline Status broadcast_check(const KernelSpec *spec, uint32_t *bytes)
{
    TRY(spec_range(spec, ADD_PANELS, 1, 4096, 1));
    TRY(spec_range(spec, ADD_ROWS, 1, 2047, 1));
    TRY(spec_range(spec, ADD_COLUMNS, 4, spec->p[ADD_ROWS] > 1 ? 32764 : 4 * QUADS_LIMIT, 4));
    Broadcast b = broadcast_of(spec);
    uint64_t repeated = 2 * (uint64_t)b.panels * b.columns;
    if (repeated * b.rows > SRAM_BYTES || b.quads > QUADS_LIMIT)
        return status_error("%llu bytes", (unsigned long long)(repeated * b.rows));
    *bytes = (uint32_t)repeated;
    return STATUS_OK;
}

_Static_assert((int)ADD_PANELS == (int)BIAS_GELU_PANELS && (int)ADD_ROWS == (int)BIAS_GELU_ROWS &&
                   (int)ADD_COLUMNS == (int)BIAS_GELU_COLUMNS,
               "shapes of add and bias_gelu");

#endif
