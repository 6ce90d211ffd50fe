/* float_bits.c - logic and permutations of raw register bits in the auxiliary lane: no events. */
#include "sim/float_impl.h"

/* One register from two: X, Y are the sources in the order of the text. */
#define BITS2(form, expression)                                                                    \
    HANDLER(form)                                                                                  \
    {                                                                                              \
        uint32_t X = load_register(state, operand[1]), Y = load_register(state, operand[2]);       \
        store_register(state, operand[0], expression);                                             \
        return 0;                                                                                  \
    }
#define BITS_IMMEDIATE(form, expression)                                                           \
    HANDLER(form)                                                                                  \
    {                                                                                              \
        uint32_t X = load_register(state, operand[1]), Y = (uint32_t)operand[2];                   \
        store_register(state, operand[0], expression);                                             \
        return 0;                                                                                  \
    }
#define BITS1(form, expression)                                                                    \
    HANDLER(form)                                                                                  \
    {                                                                                              \
        uint32_t X = load_register(state, operand[1]);                                             \
        store_register(state, operand[0], expression);                                             \
        return 0;                                                                                  \
    }
#define PAIR2(form, expression)                                                                    \
    HANDLER(form)                                                                                  \
    {                                                                                              \
        uint64_t X = load_pair(state, operand[1]), Y = load_pair(state, operand[2]);               \
        store_pair(state, operand[0], expression);                                                 \
        return 0;                                                                                  \
    }

#define LOGIC(name, expression)                                                                    \
    BITS2(name##_aaan, expression)                                                                 \
    BITS_IMMEDIATE(name##_aaan_zi, expression)                                                     \
    BITS_IMMEDIATE(name##_aaan_iz, expression)                                                     \
    PAIR2(name##64_aaan, expression)
LOGIC(and, X &Y)
LOGIC(andc, X & ~Y)
LOGIC(or, X | Y)
BITS1(not_aaan, ~X)

HANDLER(not64_aaan)
{
    store_pair(state, operand[0], ~load_pair(state, operand[1]));
    return 0;
}

HANDLER(setzi_aaan_zi)
{
    store_register(state, operand[0], (uint32_t)operand[1]);
    return 0;
}

static uint32_t bytes(uint32_t b0, uint32_t b1, uint32_t b2, uint32_t b3)
{
    return (b0 & 255) | (b1 & 255) << 8 | (b2 & 255) << 16 | b3 << 24;
}

#define BYTE(word, n) ((word) >> (8 * (n)))

BITS2(roll8r_aaan, X >> 8 | Y << 24)
BITS2(roll16_aaan, X >> 16 | Y << 16)
BITS2(roll8l_aaan, X >> 24 | Y << 8)
BITS2(sort4x16lo_aaan, (X & 0xffff) | Y << 16)
BITS2(sort4x16lo_aaau, X >> 16 | Y << 16) /* X:BU */
BITS2(sort4x16hi_aaan, X >> 16 | (Y & 0xffff0000))
BITS2(sort4x16hi_aaal, (X & 0xffff) | (Y & 0xffff0000)) /* X:BL */
BITS2(sort8x8lo_aaan, bytes(X, BYTE(X, 2), Y, BYTE(Y, 2)))
BITS2(sort8x8hi_aaan, bytes(BYTE(X, 1), BYTE(X, 3), BYTE(Y, 1), BYTE(Y, 3)))
BITS2(shuf8x8lo_aaan, bytes(X, Y, BYTE(X, 1), BYTE(Y, 1)))
BITS2(shuf8x8hi_aaan, bytes(BYTE(X, 2), BYTE(Y, 2), BYTE(X, 3), BYTE(Y, 3)))
BITS1(sort8_aaan, bytes(X, BYTE(X, 2), BYTE(X, 1), BYTE(X, 3)))
BITS1(swap8_aaan, bytes(BYTE(X, 1), X, BYTE(X, 3), BYTE(X, 2)))
PAIR2(roll32_aaan, X >> 32 | Y << 32)
PAIR2(sort4x32lo_aaan, (X & 0xffffffff) | Y << 32)
PAIR2(sort4x32hi_aaan, X >> 32 | (Y & 0xffffffff00000000))
