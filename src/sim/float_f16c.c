/* float_f16c.c - the handlers that work on halves once more, for hosts with AVX2, FMA and F16C: the
 * same sources with the host's conversions. Results are the same bits (a test compares them):
 * products and sums that the compiler may fuse here are exact ones. */
#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#include "isa/isa.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif

#define FLOAT_F16C
#include "sim/float_acc.c"     /* NOLINT(bugprone-suspicious-include): that is the idea */
#include "sim/float_arith.c"   /* NOLINT(bugprone-suspicious-include): that is the idea */
#include "sim/float_convert.c" /* NOLINT(bugprone-suspicious-include): that is the idea */

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif
