/* gelu.h - kernels/gelu.inc on the host: which way, how long, the arithmetic. */
#ifndef IPU_KERNEL_GELU_H
#define IPU_KERNEL_GELU_H

#include "kernel/launch.h"

enum {
    GELU_MATRIX_FROM = 12, /* quads of a worker that pay for setting the weights */
    GELU_FRAME_WORDS = 22
};

/* What the quads of a launch are dealt as: every worker with any has `least` or, when mixed, more.
 */
typedef struct GeluShare {
    uint32_t least;
    bool mixed, matrix;
} GeluShare;

/* Units of `quads` quads dealt to six workers. */
static inline GeluShare gelu_share(uint32_t units, uint32_t quads)
{
    uint32_t least = units < TILE_WORKERS ? 1 : units / TILE_WORKERS;
    return (GeluShare){.least = least * quads,
                       .mixed = units > TILE_WORKERS && units % TILE_WORKERS != 0,
                       .matrix = least * quads >= GELU_MATRIX_FROM};
}

static inline uint32_t gelu_stack_bytes(GeluShare share)
{
    return share.matrix ? 4 * GELU_FRAME_WORDS : 16;
}

/* LAUNCH_GELU up to the launch. */
static inline void clock_gelu_frame(Clock *clock, uint32_t operands, GeluShare share)
{
    clock_open_frame(clock, operands);
    if (share.matrix)
        clock_issue(clock, 5 + 8 + 2 + 11 + 1 + 8);
}

/* Slots of GELU_QUADS for a worker with n quads. */
static inline uint64_t gelu_slots(GeluShare share, uint64_t n)
{
    if (share.matrix)
        return 7 * n + 8;
    if (n == 1)
        return 11;
    bool loop = share.least > 2 || (share.least == 2 && share.mixed);
    return 8 * n + 3 + loop + 2 * (share.least == 1);
}

static inline double gelu_by_sigmoid(double z)
{
    double cubic = half_to_float(0x2c91), linear = half_to_float(0x3e62); /* TAS_GELU */
    double cube = half_round(half_round(z * z) * z);
    double u = half_round((float)((long double)cubic * cube + (long double)linear * z));
    return half_round(half_round(1 / (1 + exp(-u))) * z);
}

static inline double gelu_by_matrix(double z)
{
    double cubic = half_to_float(0x2890), linear = half_to_float(0x3a62); /* GELU_CUBIC, _LINEAR */
    double factor = half_round((float)(linear + cubic * half_round(z * z)));
    double half_tanh = half_round(tanh(half_round(factor * z))) / 2;
    return half_round(half_round((float)(0.5 + half_tanh)) * z);
}

static inline double gelu_of(GeluShare share, double z)
{
    return share.matrix ? gelu_by_matrix(z) : gelu_by_sigmoid(z);
}

#endif
