/* gelu.h - the arithmetic of kernels/gelu.inc on the host. */
#ifndef IPU_KERNEL_GELU_H
#define IPU_KERNEL_GELU_H

#include "kernel/launch.h"

enum { GELU_LAST_SLOTS = 8 /* of GELU_OF_SQUARE */ };

static inline double gelu_of(double z)
{
    double cubic = half_to_float(0x2c91), linear = half_to_float(0x3e62); /* TAS_GELU */
    double cube = half_round(half_round(z * z) * z);
    double u = half_round((float)((long double)cubic * cube + (long double)linear * z));
    return half_round(half_round(1 / (1 + exp(-u))) * z);
}

#endif
