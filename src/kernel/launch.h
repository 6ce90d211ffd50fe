/* launch.h - what the families of kernels/launch.inc share: their supervisor's clock, and the
 * device's arithmetic on the host.
 *
 * Host arithmetic is the device's (isa semantics): a half operation rounds once to nearest even and
 * saturates; multiply-accumulate forms add exact products to an F32 and round once. Halves are held
 * as doubles, in which sums and products of two halves are exact. */
#ifndef IPU_KERNEL_LAUNCH_H
#define IPU_KERNEL_LAUNCH_H

#include "kernel/family.h"

#include <math.h>
#include <string.h>

/* Up to the launch: OPEN_FRAME. */
static inline void clock_open_frame(Clock *clock, uint32_t operands)
{
    clock_issue(clock, 2);
    clock_depend(clock, 2);
    clock_issue(clock, operands);
}

/* LAUNCH_ONCE. */
static inline void clock_launch_once(Clock *clock, uint32_t operands,
                                     const uint64_t bundles[TILE_WORKERS])
{
    clock_open_frame(clock, operands);
    clock_launch(clock, bundles);
    clock_sync(clock);
    clock_branch(clock);
}

static inline uint32_t constant_slots(int64_t value) /* CONSTANT */
{
    return (uint32_t)value & 0xfff00000 ? 2 : 1;
}

/* Something is done by worker w in turn: how many times, given the total. `loops`: some worker does
 * it more than once (the sources leave the loop out where nobody does). */
static inline bool share_loops(uint32_t total)
{
    return total > TILE_WORKERS;
}

/* Repeat counts are 12-bit immediates or 16-bit registers. */
enum { REPEAT_LIMIT = 4095, QUADS_LIMIT = REPEAT_LIMIT * TILE_WORKERS };

static inline double half_of(const void *values, size_t index)
{
    uint16_t bits;
    memcpy(&bits, (const uint8_t *)values + 2 * index, 2);
    return (double)half_to_float(bits);
}

static inline double half_round(double value)
{
    double rounded = (double)half_to_float(half_from_double(value));
    return isinf(rounded) && !isinf(value) ? copysign(65504, value) : rounded;
}

static inline void half_set(void *values, size_t index, double value)
{
    uint16_t bits = half_from_double(half_round(value));
    memcpy((uint8_t *)values + 2 * index, &bits, 2);
}

/* One bundle of f16v4cmac: lanes 0, 1 and 2, 3 go to two sums. */
typedef struct HalfSums {
    float low, high;
} HalfSums;

static inline void half_accumulate(HalfSums *sums, const double x[4], const double y[4])
{
    sums->low =
        (float)((long double)sums->low + (long double)x[0] * y[0] + (long double)x[1] * y[1]);
    sums->high =
        (float)((long double)sums->high + (long double)x[2] * y[2] + (long double)x[3] * y[3]);
}

static inline uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

static inline float float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

#endif
