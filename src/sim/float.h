/* float.h - the auxiliary lane of a worker: floating point, accumulators, AMP, random numbers.
 *
 * Semantics: docs/simulator-float.md, with the choices listed there. One function per encoding
 * form; the core looks it up once per decoded instruction. The core executes the main lane of a
 * bundle first and applies its loads to the ARF after the auxiliary lane: so a handler sees the
 * registers as they were before the bundle. */
#ifndef IPU_SIM_FLOAT_H
#define IPU_SIM_FLOAT_H

#include "isa/isa.h"

/* The 32 accumulators are kept as the matrix unit uses them: $AACC[2n] is live[n], the sums being
 * made; $AACC[2n + 1] is chain[n], results on their way out and partials on their way in. n = 0..7
 * are the units of set 0, 8..15 those of set 1. float_acc() translates. */
typedef struct FloatState { /* of one worker */
    uint32_t a[16];         /* $a0..$a7 hold values; $a8..$a15 always read zero and stay zero */
    uint32_t live[16], chain[16]; /* F32 bits */
    uint32_t status, control;     /* FP_STS, FP_CTL */
    uint32_t formats, scale;      /* FP_NFMT, FP_SCL */
    uint32_t tas;
    uint32_t prng[4];  /* PRNG_0_0, 0_1, 1_0, 1_1 */
    uint32_t latch[2]; /* results of set 1 between the two issues of f32sisov2slic */
} FloatState;

static inline uint32_t *float_acc(FloatState *state, uint32_t index) /* $AACC[index], 0..31 */
{
    return (index & 1 ? state->chain : state->live) + index / 2;
}

/* The common weights of a tile (CWEI): raw as loaded, and spread out for the matrix unit at the
 * first use after a change. Zeroed memory is a valid, cleared store. AMP is fastest when the struct
 * starts at a multiple of 64 bytes. */
typedef struct Weights {
    union {
        double lane[4][8][16]; /* F16 and F8: [column][lane of the entry][8 * set + unit] */
        float single[8][16];   /* F32: [2 * column + word][8 * set + unit] */
    };
    uint64_t raw[64]; /* entry 32 * set + 4 * unit + column */
    uint32_t spread;  /* which form `lane` or `single` holds; 0: none */
} Weights;
void weights_write(Weights *weights, uint32_t index, uint64_t value);
void weights_clear(Weights *weights);

/* Executes; returns 0, or the exception type to take (5: floating point, 9: invalid operand), in
 * which case nothing but the status flags changed. */
typedef uint32_t FloatExecute(FloatState *state, Weights *weights, const int32_t *operand);

/* The handler of an auxiliary form, or NULL when the form is not one of this lane's. */
FloatExecute *float_handler(Form form);

/* Stretches: bundles of one worker, one after the other, of paced loads and stores and AMP issues.
 * Whoever runs one has computed the addresses and knows that nothing in it can fault (no exception
 * is enabled), that conversions do not round stochastically, and that nobody else touches the
 * memory it uses. */
enum {
    FLOAT_LOAD = 1,
    FLOAT_LOAD_SECOND = 2,
    FLOAT_STORE = 4,
    FLOAT_ACCESSES = 7,
    FLOAT_AMP = 8,
    FLOAT_DROPPED = 8 /* as a pair: loads to it go nowhere */
};

typedef struct FloatOp FloatOp;

typedef struct FloatAccess { /* byte offsets */
    uint32_t load[2], store;
} FloatAccess;

typedef void FloatStretch(FloatState *state, Weights *weights, uint8_t *memory,
                          const FloatOp *const *ops, const FloatAccess *accesses, uint32_t count);

struct FloatOp {       /* a bundle without its addresses; registers as numbers of pairs */
    FloatStretch *run; /* that executes it; NULL: no AMP issue, all can */
    FloatExecute *aux; /* the handler of the AMP issue, and its operands */
    const int32_t *operand;
    uint8_t kind; /* FLOAT_LOAD ... */
    uint8_t load[2], store;
    uint8_t x, partials, result, phase;
    uint8_t stride, pace; /* for the caller */
};

/* NULL: issues of this form do not come in stretches. Of one stretch all have the same. */
FloatStretch *float_stretch(Form form);

/* uget / uput by index in the upper space (csr - 0x100). Unknown indices read 0 and ignore writes;
 * the instructions themselves take exception 9 for them. */
uint32_t float_get_csr(const FloatState *state, uint32_t index);
void float_put_csr(FloatState *state, uint32_t index, uint32_t value);

/* At launch: control from FP_ICTL, status cleared, formats and scale from the supervisor's. */
void float_launch(FloatState *state, uint32_t control, uint32_t formats, uint32_t scale);

#endif
