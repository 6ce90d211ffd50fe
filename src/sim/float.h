/* float.h - the auxiliary lane of a worker: floating point, accumulators, AMP, random numbers.
 *
 * Semantics: docs/simulator.md and the choices listed there. One function per encoding form; the
 * core looks it up once per decoded instruction. The core executes the main lane of a bundle first
 * and applies its loads to the ARF after the auxiliary lane: so a handler sees the registers as they
 * were before the bundle. */
#ifndef IPU_SIM_FLOAT_H
#define IPU_SIM_FLOAT_H

#include "isa/isa.h"

typedef struct FloatState { /* of one worker */
    uint32_t a[16];   /* $a0..$a7 hold values; $a8..$a15 always read zero and stay zero */
    uint32_t acc[32]; /* $AACC, F32 bits */
    uint32_t status, control;    /* FP_STS, FP_CTL */
    uint32_t formats, scale;     /* FP_NFMT, FP_SCL */
    uint32_t tas;
    uint32_t prng[4];            /* PRNG_0_0, 0_1, 1_0, 1_1 */
} FloatState;

/* The common weights of a tile: raw as loaded, and expanded for the matrix unit. */
typedef struct Weights {
    uint64_t raw[64];
    _Alignas(64) float half[64][4]; /* the four halves of an entry as F32 */
    uint64_t half_valid;            /* bit i: half[i] matches raw[i] */
} Weights;
void weights_write(Weights *weights, uint32_t index, uint64_t value);
void weights_clear(Weights *weights);

/* Executes; returns 0, or the exception type to take (5: floating point, 9: invalid operand), in
 * which case nothing but the status flags changed. */
typedef uint32_t FloatExecute(FloatState *state, const Weights *weights, const int32_t *operand);

/* The handler of an auxiliary form, or NULL when the form is not one of this lane's. */
FloatExecute *float_handler(Form form);

/* uget / uput by index in the upper space (csr - 0x100). */
uint32_t float_get_csr(const FloatState *state, uint32_t index);
void float_put_csr(FloatState *state, uint32_t index, uint32_t value);

/* At launch: control from FP_ICTL, status cleared, formats and scale from the supervisor's. */
void float_launch(FloatState *state, uint32_t control, uint32_t formats, uint32_t scale);

#endif
