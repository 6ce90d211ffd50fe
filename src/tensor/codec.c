/* codec.c - F16 and F8 F143 to and from wider floats (amp-kernels.md 6.1, 6.3). */
#include "tensor/tensor.h"

#include <math.h>
#include <string.h>

/* Rounds a finite, positive or zero value to a binary format by scaling it so that the last kept
 * bit has weight 1: rint is nearest even, and doubles are exact for every source we have.
 * Returns magnitude bits: exponent and mantissa fields run on into each other. */
static uint32_t round_magnitude(double value, int mantissa_bits, int bias)
{
    int exponent;
    (void)frexp(value, &exponent); /* value = f * 2^exponent, f in [0.5, 1) */
    int field = exponent - 1 + bias;
    if (value == 0 || field < 1)
        return (uint32_t)rint(ldexp(value, bias - 1 + mantissa_bits));
    uint32_t units = (uint32_t)rint(ldexp(value, mantissa_bits - (exponent - 1)));
    return ((uint32_t)(field - 1) << mantissa_bits) + units;
}

uint16_t half_from_double(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value))
        return sign | 0x7e00;
    double magnitude = fabs(value);
    if (magnitude >= 65520.0) /* midpoint of the largest half and the missing next one */
        return sign | 0x7c00;
    return (uint16_t)(sign | round_magnitude(magnitude, 10, 15));
}

/* The common case by integers: normal result, round to nearest even in the bits. */
uint16_t half_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude < 0x38800000 || magnitude >= 0x477fe000)
        return half_from_double(value);
    magnitude += 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | (magnitude - 0x38000000) >> 13);
}

float half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31;
    uint32_t mantissa = half & 0x3ff, bits;
    float value;
    if (exponent == 0) {
        value = (float)mantissa * 0x1p-24f;
        return sign ? -value : value;
    }
    if (exponent == 31)
        bits = sign | 0x7f800000 | mantissa << 13;
    else
        bits = sign | (exponent + 112) << 23 | mantissa << 13;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float f143_to_float(uint8_t code)
{
    uint32_t exponent = code >> 3 & 15, mantissa = code & 7;
    if (code == 0x80)
        return NAN;
    float value = exponent == 0 ? (float)mantissa * 0x1p-10f
                                : ldexpf((float)(8 + mantissa), (int)exponent - 8 - 3);
    return code & 0x80 ? -value : value;
}

uint8_t f143_from_float(float value)
{
    if (isnan(value))
        return 0x80;
    uint8_t sign = signbit(value) ? 0x80 : 0;
    double magnitude = fabs((double)value);
    if (magnitude >= 240)
        return sign | 0x7f;
    uint32_t code = round_magnitude(magnitude, 3, 8);
    return (uint8_t)(code ? sign | code : 0); /* there is one zero: 0x80 is the NaN */
}

static double load_element(const void *source, Precision precision, size_t i)
{
    switch (precision.kind) {
    case F16:
        return half_to_float(((const uint16_t *)source)[i]);
    case F8F143:
        return ldexp(f143_to_float(((const uint8_t *)source)[i]), precision.scale);
    case U32:
        return ((const uint32_t *)source)[i];
    default:
        return ((const float *)source)[i];
    }
}

static void store_element(void *destination, Precision precision, size_t i, double value)
{
    switch (precision.kind) {
    case F16:
        ((uint16_t *)destination)[i] = half_from_double(value);
        break;
    case F8F143: /* to float first is exact enough: a sticky error would need > 24 bits */
        ((uint8_t *)destination)[i] = f143_from_float((float)ldexp(value, -precision.scale));
        break;
    case U32:
        ((uint32_t *)destination)[i] =
            value >= 0 ? (value < 0x1p32 ? (uint32_t)value : UINT32_MAX) : 0;
        break;
    default:
        ((float *)destination)[i] = (float)value;
    }
}

void convert_elements(const void *source, Precision from, void *destination, Precision to,
                      size_t count)
{
    if (from.kind == to.kind && (from.kind != F8F143 || from.scale == to.scale)) {
        memcpy(destination, source, count * precision_bytes(from));
        return;
    }
    if (from.kind == F32 && to.kind == F16) {
        for (size_t i = 0; i < count; i++)
            ((uint16_t *)destination)[i] = half_from_float(((const float *)source)[i]);
        return;
    }
    if (from.kind == F16 && to.kind == F32) {
        for (size_t i = 0; i < count; i++)
            ((float *)destination)[i] = half_to_float(((const uint16_t *)source)[i]);
        return;
    }
    for (size_t i = 0; i < count; i++)
        store_element(destination, to, i, load_element(source, from, i));
}
