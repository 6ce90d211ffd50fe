/* base.h - what every other folder stands on: status, memory, maps, files, JSON, threads, logs.
 * This umbrella is the folder's public header. */
#ifndef IPU_BASE_BASE_H
#define IPU_BASE_BASE_H

#include "base/file.h"
#include "base/json.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/status.h"
#include "ipu/log.h"

#define countof(array) (sizeof(array) / sizeof((array)[0]))

static inline uint32_t round_up_u32(uint32_t value, uint32_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

static inline uint32_t ceil_div_u32(uint32_t value, uint32_t divisor)
{
    return (value + divisor - 1) / divisor;
}

static inline uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static inline uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Little-endian access to bytes of any alignment: every file format and tile memory is
 * little-endian. */
static inline uint32_t load_u32(const void *from)
{
    uint32_t value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
}

static inline void store_u32(void *to, uint32_t value)
{
    __builtin_memcpy(to, &value, sizeof value);
}

static inline uint64_t load_u64(const void *from)
{
    uint64_t value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
}

static inline void store_u64(void *to, uint64_t value)
{
    __builtin_memcpy(to, &value, sizeof value);
}

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the host must be little-endian"
#endif

#endif
