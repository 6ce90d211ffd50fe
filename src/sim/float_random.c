/* float_random.c - the instructions that draw random numbers: every issue draws, whatever its data.
 */
#include "sim/float_impl.h"

INLINE uint64_t draw(FloatState *state)
{
    uint64_t words[2];
    memcpy(words, state->prng, sizeof words);
    uint64_t result = prng_draw(words);
    memcpy(state->prng, words, sizeof words);
    return result;
}

HANDLER(urand32_aaan)
{
    store_register(state, operand[0], (uint32_t)draw(state));
    return 0;
}

HANDLER(urand64_aaan)
{
    store_pair(state, operand[0], draw(state));
    return 0;
}

/* Keeps a lane with probability p[15:0] / 65536; p[16] keeps all. Bits are copied. */
INLINE bool keep(uint32_t probability, uint64_t random16)
{
    return (probability & 0x10000) || (random16 & 0xffff) < (probability & 0xffff);
}

INLINE uint32_t random_mask(FloatState *state, const int32_t *operand, unsigned width)
{
    uint64_t source = load_pair(state, operand[1]), random = draw(state), result = 0;
    uint32_t probability = load_register(state, operand[2]);
    uint64_t lane = width == 16 ? 0xffff : 0xffffffff;
    for (unsigned at = 0; at < 64; at += width)
        result |= keep(probability, random >> at) ? source & lane << at : 0;
    store_pair(state, operand[0], result);
    return 0;
}

HANDLER(f16v4rmask_aaan)
{
    return random_mask(state, operand, 16);
}

HANDLER(f32v2rmask_aaan)
{
    return random_mask(state, operand, 32);
}

/* Nearly normal: the sum of twelve 5-bit fields, centred, in units of 1/32; exact in a half. */
static float gaussian(uint64_t random)
{
    int sum = -186;
    for (unsigned i = 0; i < 12; i++)
        sum += (int)(random >> 5 * i & 31);
    return (float)sum / 32;
}

HANDLER(f16v2grand_aaan)
{
    float first = gaussian(draw(state)), second = gaussian(draw(state));
    Issue issue = issue_begin(state);
    uint64_t halves = halves_nearest(&issue, (Lanes){first, second, 0, 0});
    store_register(state, operand[0], (uint32_t)halves);
    return 0;
}

HANDLER(f32v2grand_aaan)
{
    uint64_t first = float_bits(gaussian(draw(state))), second = float_bits(gaussian(draw(state)));
    store_pair(state, operand[0], second << 32 | first);
    return 0;
}
