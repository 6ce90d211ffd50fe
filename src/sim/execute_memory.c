/* execute_memory.c - loads and stores of both register files, paced and delta forms.
 *
 * Semantics: semantics-integer.md E. A handler computes its addresses from the old registers,
 * checks them all, accesses memory and only then writes registers: a fault leaves nothing behind.
 * Words for the ARF go to Context.load; the issuing loop moves them there after the auxiliary lane
 * has read its operands. Two accesses of one instruction to one memory element are a fault
 * (timing.md 3), never a stall. */
#include "sim/core.h"

#define M(i) (c->m[d->op[i]])
#define IMMEDIATE(i) ((uint32_t)d->op[i])
#define SET(i, value) (c->m[d->out[i]] = (uint32_t)(value))

__attribute__((noinline, cold)) static uint32_t bad_address(Context *c, uint32_t address,
                                                            const char *why)
{
    c->tile->detail = why;
    c->tile->detail_address = address;
    return EXCEPTION_INVALID_ADDR;
}

__attribute__((noinline, cold)) static uint32_t explain_address(Context *c, uint32_t address,
                                                                uint32_t bytes)
{
    bool aligned = !(address & (bytes - 1));
    return bad_address(c, address, aligned ? "address outside the memory" : "misaligned address");
}

__attribute__((noinline, cold)) static uint32_t conflict(Context *c, uint32_t address)
{
    c->tile->detail = "two accesses to one memory element";
    c->tile->detail_address = address;
    return EXCEPTION_CONFLICT;
}

__attribute__((noinline, cold)) static uint32_t undefined_read(Context *c, uint32_t offset)
{
    c->tile->detail = "read of memory that nothing has written";
    c->tile->detail_address = SRAM_BASE + offset;
    return OUTCOME_UNDEFINED;
}

#define PLACE(offset, address, bytes)                                                              \
    uint32_t offset;                                                                               \
    if (!sram_place(address, bytes, &offset))                                                      \
    return explain_address(c, address, bytes)

#define MUST_BE_DEFINED(offset, bytes)                                                             \
    do {                                                                                           \
        if (unlikely(c->defined) && !words_defined(c->defined, offset, bytes))                     \
            return undefined_read(c, offset);                                                      \
    } while (0)

#define MUST_DIFFER(address0, address1)                                                            \
    do {                                                                                           \
        if (unlikely(share_element(address0, address1)))                                           \
            return conflict(c, address1);                                                          \
    } while (0)

/* --- plain loads. fetch_X reads at an offset; deliver_X puts the value where it belongs */

static inline uint32_t fetch_z8(const uint8_t *at)
{
    return *at;
}

static inline uint32_t fetch_s8(const uint8_t *at)
{
    return (uint32_t)(int8_t)*at;
}

static inline uint32_t fetch_z16(const uint8_t *at)
{
    uint16_t value;
    __builtin_memcpy(&value, at, 2);
    return value;
}

static inline uint32_t fetch_s16(const uint8_t *at)
{
    return (uint32_t)(int16_t)fetch_z16(at);
}

#define TO_MAIN(fetch) SET(3, fetch(c->memory + offset))
#define TO_AUX(fetch) c->load[0] = fetch(c->memory + offset)
#define COPY_BYTES(bytes) __builtin_memcpy(c->load, c->memory + offset, bytes)

#define LD32_M TO_MAIN(load_u32)
#define LDZ8_M TO_MAIN(fetch_z8)
#define LDS8_M TO_MAIN(fetch_s8)
#define LDZ16_M TO_MAIN(fetch_z16)
#define LDS16_M TO_MAIN(fetch_s16)
#define LD32_A COPY_BYTES(4)
#define LD64_A COPY_BYTES(8)
#define LD128_A COPY_BYTES(16)
#define LDB16_A (TO_AUX(fetch_z16), c->load[0] *= 0x10001u)
#define LDB8_A (TO_AUX(fetch_z8), c->load[0] *= 0x1010101u)

#define ANYWHERE(address)
#define INTERLEAVED_ONLY(address)                                                                  \
    if ((address) < INTERLEAVED_BASE && (address) >= SRAM_BASE)                                    \
    return bad_address(c, address, "128-bit access below the interleaved region")

/* The four address forms of one load: offset in a register or immediate, step likewise. */
#define LOAD(name, bytes, where, deliver)                                                          \
    static uint32_t name##_m(Context *c, const Decoded *d)                                         \
    {                                                                                              \
        uint32_t address = M(0) + M(1) + M(2) * bytes;                                             \
        where(address);                                                                            \
        PLACE(offset, address, bytes);                                                             \
        MUST_BE_DEFINED(offset, bytes);                                                            \
        deliver;                                                                                   \
        return OUTCOME_DONE;                                                                       \
    }                                                                                              \
    static uint32_t name##_i(Context *c, const Decoded *d)                                         \
    {                                                                                              \
        uint32_t address = M(0) + M(1) + IMMEDIATE(2) * bytes;                                     \
        where(address);                                                                            \
        PLACE(offset, address, bytes);                                                             \
        MUST_BE_DEFINED(offset, bytes);                                                            \
        deliver;                                                                                   \
        return OUTCOME_DONE;                                                                       \
    }                                                                                              \
    static uint32_t name##_step_m(Context *c, const Decoded *d)                                    \
    {                                                                                              \
        uint32_t address = M(0) + M(1), stepped = M(1) + M(2) * bytes;                             \
        where(address);                                                                            \
        PLACE(offset, address, bytes);                                                             \
        MUST_BE_DEFINED(offset, bytes);                                                            \
        SET(1, stepped);                                                                           \
        deliver;                                                                                   \
        return OUTCOME_DONE;                                                                       \
    }                                                                                              \
    static uint32_t name##_step_i(Context *c, const Decoded *d)                                    \
    {                                                                                              \
        uint32_t address = M(0) + M(1), stepped = M(1) + IMMEDIATE(2) * bytes;                     \
        where(address);                                                                            \
        PLACE(offset, address, bytes);                                                             \
        MUST_BE_DEFINED(offset, bytes);                                                            \
        SET(1, stepped);                                                                           \
        deliver;                                                                                   \
        return OUTCOME_DONE;                                                                       \
    }

LOAD(ld32m, 4, ANYWHERE, LD32_M)
LOAD(ldz8, 1, ANYWHERE, LDZ8_M)
LOAD(lds8, 1, ANYWHERE, LDS8_M)
LOAD(ldz16, 2, ANYWHERE, LDZ16_M)
LOAD(lds16, 2, ANYWHERE, LDS16_M)
LOAD(ld32a, 4, ANYWHERE, LD32_A)
LOAD(ldb16, 2, ANYWHERE, LDB16_A)
LOAD(ldb8, 1, ANYWHERE, LDB8_A)
LOAD(ld64, 8, ANYWHERE, LD64_A)
LOAD(ld128, 16, INTERLEAVED_ONLY, LD128_A)

/* --- plain stores */

/* While the bundle's other lane can still fault, a store must be revocable. */
static void keep_old(Context *c, uint32_t offset, uint32_t bytes)
{
    c->undo_bytes = (uint8_t)bytes;
    c->undo_offset = offset;
    __builtin_memcpy(&c->undo_value, c->memory + offset, bytes);
    c->undo_defined = c->written
                          ? words_defined(c->written, offset, 4) |
                                (uint64_t)words_defined(c->written, offset + bytes - 4, 4) << 1
                          : 0;
}

static inline void store(Context *c, uint32_t offset, const void *from, uint32_t bytes)
{
    if (unlikely(c->undo_armed))
        keep_old(c, offset, bytes);
    __builtin_memcpy(c->memory + offset, from, bytes);
    if (unlikely(c->written))
        words_define(c->written, offset, bytes);
}

#define STORE(name, bytes, source, base, delta, step)                                              \
    static uint32_t name(Context *c, const Decoded *d)                                             \
    {                                                                                              \
        uint32_t address = (base) + (delta) + (step)*bytes;                                        \
        PLACE(offset, address, bytes);                                                             \
        store(c, offset, source, bytes);                                                           \
        return OUTCOME_DONE;                                                                       \
    }

#define STORE_STEP(name, bytes, source, base, delta, step, out)                                    \
    static uint32_t name(Context *c, const Decoded *d)                                             \
    {                                                                                              \
        uint32_t address = (base) + (delta), stepped = (delta) + (step)*bytes;                     \
        PLACE(offset, address, bytes);                                                             \
        store(c, offset, source, bytes);                                                           \
        SET(out, stepped);                                                                         \
        return OUTCOME_DONE;                                                                       \
    }

STORE(st32m_i, 4, &M(3), M(0), M(1), IMMEDIATE(2))
STORE(st32a_m, 4, &c->f.a[d->op[3]], M(0), M(1), M(2))
STORE(st32a_i, 4, &c->f.a[d->op[3]], M(0), M(1), IMMEDIATE(2))
STORE(st64_m, 8, &c->f.a[d->op[3]], M(0), M(1), M(2))
STORE(st64_i, 8, &c->f.a[d->op[3]], M(0), M(1), IMMEDIATE(2))
STORE(stm32, 4, &M(2), M(0), 0, M(1))
STORE_STEP(st32m_step_i, 4, &M(3), M(0), M(1), IMMEDIATE(2), 1)
STORE_STEP(st32a_step_m, 4, &c->f.a[d->op[3]], M(0), M(1), M(2), 1)
STORE_STEP(st32a_step_i, 4, &c->f.a[d->op[3]], M(0), M(1), IMMEDIATE(2), 1)
STORE_STEP(st64_step_m, 8, &c->f.a[d->op[3]], M(0), M(1), M(2), 1)
STORE_STEP(st64_step_i, 8, &c->f.a[d->op[3]], M(0), M(1), IMMEDIATE(2), 1)
STORE_STEP(stm32step, 4, &M(2), 0, M(1), M(0), 1)

/* --- delta loads: an address stream at P beside the data (E.4). Operands: A base, B P, C Q. */

#define DELTA_LOAD(name, index_bytes, fetch_index, delta, bytes, deliver)                          \
    static uint32_t name(Context *c, const Decoded *d)                                             \
    {                                                                                              \
        uint32_t pointer = M(1), address = M(0) + (delta);                                         \
        PLACE(index_at, pointer, index_bytes);                                                     \
        PLACE(offset, address, bytes);                                                             \
        MUST_DIFFER(pointer, address);                                                             \
        MUST_BE_DEFINED(index_at, index_bytes);                                                    \
        MUST_BE_DEFINED(offset, bytes);                                                            \
        SET(1, pointer + index_bytes);                                                             \
        SET(2, fetch_index(c->memory + index_at));                                                 \
        deliver;                                                                                   \
        return OUTCOME_DONE;                                                                       \
    }

DELTA_LOAD(ldd16a32, 2, fetch_z16, M(2) & 0xffff, 4, LD32_A)
DELTA_LOAD(ldd16a64, 2, fetch_z16, M(2) & 0xffff, 8, LD64_A)
DELTA_LOAD(ldd16b16, 2, fetch_z16, M(2) & 0xffff, 2, LDB16_A)
DELTA_LOAD(ldd16v2a32, 4, load_u32, M(2) >> 16, 4, LD32_A)

static uint32_t ld64a32(Context *c, const Decoded *d)
{
    uint32_t pointer = M(1), address = M(0) + (M(2) & 0xffff);
    PLACE(long_at, pointer, 8);
    PLACE(short_at, address, 4);
    MUST_DIFFER(pointer, address);
    MUST_BE_DEFINED(long_at, 8);
    MUST_BE_DEFINED(short_at, 4);
    SET(1, pointer + 8);
    c->load[0] = load_u32(c->memory + short_at);
    __builtin_memcpy(c->load + 1, c->memory + long_at, 8);
    return OUTCOME_DONE;
}

/* Choice: Q[15:0] is the dense offset, Q[31:16] the one that moves by 2 * R[3:0]; no carry between
 * them. Operands: A base, B R, C Q. */
static uint32_t ldb16b16(Context *c, const Decoded *d)
{
    uint32_t offsets = M(2), mini = M(1);
    uint32_t first = M(0) + (offsets & 0xffff), second = M(0) + (offsets >> 16);
    PLACE(first_at, first, 2);
    PLACE(second_at, second, 2);
    MUST_DIFFER(first, second);
    MUST_BE_DEFINED(first_at, 2);
    MUST_BE_DEFINED(second_at, 2);
    SET(1, mini >> 4);
    SET(2, ((offsets + 2) & 0xffff) | ((offsets >> 16) + 2 * (mini & 15)) << 16);
    c->load[0] = fetch_z16(c->memory + first_at) * 0x10001u;
    c->load[1] = fetch_z16(c->memory + second_at) * 0x10001u;
    return OUTCOME_DONE;
}

/* --- paced forms: three 21-bit addresses packed in a pair. Operands: A stride, B pair. */

enum { ADDRESS_MASK = 0x1fffff };

static inline uint32_t address2(uint32_t low, uint32_t high)
{
    return low >> 21 | (high >> 21 & 0x3ff) << 11;
}

static inline uint32_t advance(uint32_t address, uint32_t selector, uint32_t stride, int32_t size)
{
    selector &= 3;
    int32_t step = selector ? (int32_t)(stride << (32 - 10 * selector)) >> 22 : 1;
    return (address + (uint32_t)(step * size)) & ADDRESS_MASK;
}

static inline void pack0(Context *c, const Decoded *d, uint32_t low, uint32_t a0)
{
    SET(1, (low & ~(uint32_t)ADDRESS_MASK) | a0);
}

static inline void pack1(Context *c, const Decoded *d, uint32_t high, uint32_t a1)
{
    c->m[d->out[1] + 1] = (high & ~(uint32_t)ADDRESS_MASK) | a1;
}

#define PAIR                                                                                       \
    uint32_t low = M(1), high = c->m[d->op[1] + 1], stride = M(0);                                 \
    (void)low, (void)high, (void)stride

/* A 64-bit load at address 0 and another one at address 1. */
#define DUAL_LOAD(name, bytes, deliver)                                                            \
    static uint32_t name(Context *c, const Decoded *d)                                             \
    {                                                                                              \
        PAIR;                                                                                      \
        uint32_t a0 = low & ADDRESS_MASK, a1 = high & ADDRESS_MASK, pace = IMMEDIATE(4);           \
        PLACE(first, a0, 8);                                                                       \
        PLACE(offset, a1, bytes);                                                                  \
        MUST_DIFFER(a0, a1);                                                                       \
        MUST_BE_DEFINED(first, 8);                                                                 \
        MUST_BE_DEFINED(offset, bytes);                                                            \
        __builtin_memcpy(c->load, c->memory + first, 8);                                           \
        deliver;                                                                                   \
        pack0(c, d, low, advance(a0, pace, stride, 8));                                            \
        pack1(c, d, high, advance(a1, pace >> 2, stride, bytes));                                  \
        return OUTCOME_DONE;                                                                       \
    }

DUAL_LOAD(ld2x64pace, 8, __builtin_memcpy(c->load + 2, c->memory + offset, 8))
DUAL_LOAD(ld64a32pace, 4, c->load[2] = load_u32(c->memory + offset))
DUAL_LOAD(ld64b16pace, 2, c->load[2] = fetch_z16(c->memory + offset) * 0x10001u)

static inline void pack_all(Context *c, const Decoded *d, uint32_t high, uint32_t a0, uint32_t a1,
                            uint32_t a2)
{
    SET(1, a0 | a2 << 21);
    c->m[d->out[1] + 1] = (high & 0x80000000u) | (a2 >> 11) << 21 | a1;
}

/* The checks of three long accesses, two loads and a store, one by one. */
__attribute__((noinline, cold)) static uint32_t check_three(Context *c, uint32_t a0, uint32_t a1,
                                                            uint32_t a2)
{
    PLACE(first, a0, 8);
    PLACE(second, a1, 8);
    PLACE(third, a2, 8);
    MUST_DIFFER(a0, a1);
    MUST_DIFFER(a0, a2);
    MUST_DIFFER(a1, a2);
    MUST_BE_DEFINED(first, 8);
    MUST_BE_DEFINED(second, 8);
    return OUTCOME_DONE;
}

/* 1 or 0, not bool: to be joined without branches. */
static inline uint32_t outside_or_misaligned(uint32_t address)
{
    return (address - SRAM_BASE > SRAM_BYTES - 8) | (address & 7);
}

/* The instruction of the accumulating GEMM: everything that could be wrong is one branch. */
static uint32_t ld2xst64pace(Context *c, const Decoded *d)
{
    PAIR;
    uint32_t a0 = low & ADDRESS_MASK, a1 = high & ADDRESS_MASK, a2 = address2(low, high);
    uint32_t pace = IMMEDIATE(4);
    uint32_t shared = (uint32_t)share_element(a0, a1) | (uint32_t)share_element(a0, a2) |
                      (uint32_t)share_element(a1, a2);
    uint32_t doubt = outside_or_misaligned(a0) | outside_or_misaligned(a1) |
                     outside_or_misaligned(a2) | shared | (c->defined != NULL);
    if (unlikely(doubt)) {
        uint32_t outcome = check_three(c, a0, a1, a2);
        if (outcome)
            return outcome;
    }
    const uint8_t *memory = c->memory;
    const uint64_t loaded[2] = {load_u64(memory + (a0 - SRAM_BASE)),
                                load_u64(memory + (a1 - SRAM_BASE))};
    __builtin_memcpy(c->load, loaded, sizeof loaded); /* in one piece, as it is read */
    store(c, a2 - SRAM_BASE, &c->f.a[d->op[3]], 8);
    pack_all(c, d, high, advance(a0, pace, stride, 8), advance(a1, pace >> 2, stride, 8),
             advance(a2, pace >> 4, stride, 8));
    return OUTCOME_DONE;
}

static uint32_t ldst64pace(Context *c, const Decoded *d)
{
    PAIR;
    uint32_t a0 = low & ADDRESS_MASK, a2 = address2(low, high), pace = IMMEDIATE(4);
    PLACE(first, a0, 8);
    PLACE(third, a2, 8);
    MUST_DIFFER(a0, a2);
    MUST_BE_DEFINED(first, 8);
    __builtin_memcpy(c->load, c->memory + first, 8);
    store(c, third, &c->f.a[d->op[3]], 8);
    pack_all(c, d, high, advance(a0, pace, stride, 8), high & ADDRESS_MASK,
             advance(a2, pace >> 2, stride, 8));
    return OUTCOME_DONE;
}

static uint32_t st64pace(Context *c, const Decoded *d)
{
    PAIR;
    uint32_t a2 = address2(low, high);
    PLACE(third, a2, 8);
    store(c, third, &c->f.a[d->op[3]], 8);
    pack_all(c, d, high, low & ADDRESS_MASK, high & ADDRESS_MASK,
             advance(a2, IMMEDIATE(2), stride, 8));
    return OUTCOME_DONE;
}

/* --- weights: the supervisor's loads through CCCSLOAD (E.7) */

static uint32_t bad_weight(Context *c, uint32_t index)
{
    c->tile->detail = "no such weight entry";
    c->tile->detail_address = index;
    return EXCEPTION_INVALID_OP;
}

static uint32_t ld64putcs(Context *c, const Decoded *d)
{
    Tile *tile = c->tile;
    uint32_t index = IMMEDIATE(0), address = tile->weight_pointer;
    if (index >= 64)
        return bad_weight(c, index);
    PLACE(offset, address, 8);
    MUST_BE_DEFINED(offset, 8);
    weights_write(&tile->weights, index, load_u64(c->memory + offset));
    tile->weight_pointer = (address + 8) & ADDRESS_MASK;
    return OUTCOME_DONE;
}

static uint32_t ld128putcs(Context *c, const Decoded *d)
{
    Tile *tile = c->tile;
    uint32_t index = IMMEDIATE(0), address = tile->weight_pointer;
    if (index >= 63)
        return bad_weight(c, index);
    INTERLEAVED_ONLY(address);
    PLACE(offset, address, 16);
    MUST_BE_DEFINED(offset, 16);
    weights_write(&tile->weights, index, load_u64(c->memory + offset));
    weights_write(&tile->weights, index + 1, load_u64(c->memory + offset + 8));
    tile->weight_pointer = (address + 16) & ADDRESS_MASK;
    return OUTCOME_DONE;
}

Execute *memory_handler(Form form)
{
    static Execute *const handlers[FORM_COUNT] = {
        [FORM_ld32_mmmn] = ld32m_m,
        [FORM_ld32_mmmn_zi] = ld32m_i,
        [FORM_ld32step_mmmn] = ld32m_step_m,
        [FORM_ld32step_mmmn_si] = ld32m_step_i,
        [FORM_ldz8_mmmn] = ldz8_m,
        [FORM_ldz8_mmmn_zi] = ldz8_i,
        [FORM_ldz8step_mmmn] = ldz8_step_m,
        [FORM_ldz8step_mmmn_si] = ldz8_step_i,
        [FORM_lds8_mmmn] = lds8_m,
        [FORM_lds8_mmmn_zi] = lds8_i,
        [FORM_lds8step_mmmn] = lds8_step_m,
        [FORM_lds8step_mmmn_si] = lds8_step_i,
        [FORM_ldz16_mmmn] = ldz16_m,
        [FORM_ldz16_mmmn_zi] = ldz16_i,
        [FORM_ldz16step_mmmn] = ldz16_step_m,
        [FORM_ldz16step_mmmn_si] = ldz16_step_i,
        [FORM_lds16_mmmn] = lds16_m,
        [FORM_lds16_mmmn_zi] = lds16_i,
        [FORM_lds16step_mmmn] = lds16_step_m,
        [FORM_lds16step_mmmn_si] = lds16_step_i,
        [FORM_ld32_mman] = ld32a_m,
        [FORM_ld32_mman_zi] = ld32a_i,
        [FORM_ld32step_mmbn] = ld32a_step_m,
        [FORM_ld32step_mmbn_si] = ld32a_step_i,
        [FORM_ldb16_mman] = ldb16_m,
        [FORM_ldb16_mman_zi] = ldb16_i,
        [FORM_ldb16step_mmbn] = ldb16_step_m,
        [FORM_ldb16step_mmbn_si] = ldb16_step_i,
        [FORM_ldb8_mman] = ldb8_m,
        [FORM_ldb8_mman_zi] = ldb8_i,
        [FORM_ldb8step_mmbn] = ldb8_step_m,
        [FORM_ldb8step_mmbn_si] = ldb8_step_i,
        [FORM_ld64_mman] = ld64_m,
        [FORM_ld64_mman_zi] = ld64_i,
        [FORM_ld64step_mmbn] = ld64_step_m,
        [FORM_ld64step_mmbn_si] = ld64_step_i,
        [FORM_ld128_mman] = ld128_m,
        [FORM_ld128_mman_zi] = ld128_i,
        [FORM_ld128step_mmbn] = ld128_step_m,
        [FORM_ld128step_mmbn_si] = ld128_step_i,
        [FORM_st32_mmmn_zi] = st32m_i,
        [FORM_st32step_mmmn_si] = st32m_step_i,
        [FORM_st32_mbmn] = st32a_m,
        [FORM_st32_mbmn_zi] = st32a_i,
        [FORM_st32step_mbmn] = st32a_step_m,
        [FORM_st32step_mbmn_si] = st32a_step_i,
        [FORM_st64_mbmn] = st64_m,
        [FORM_st64_mbmn_zi] = st64_i,
        [FORM_st64step_mbmn] = st64_step_m,
        [FORM_st64step_mbmn_si] = st64_step_i,
        [FORM_stm32_mmmn] = stm32,
        [FORM_stm32step_mmmn] = stm32step,
        [FORM_ldd16a32_mmbn] = ldd16a32,
        [FORM_ldd16a64_mmbn] = ldd16a64,
        [FORM_ldd16b16_mmbn] = ldd16b16,
        [FORM_ldd16v2a32_mmbn] = ldd16v2a32,
        [FORM_ld64a32_mmbn] = ld64a32,
        [FORM_ldb16b16_mmbn] = ldb16b16,
        [FORM_ld2x64pace_mmbn_ef] = ld2x64pace,
        [FORM_ld64a32pace_mmbn_ef] = ld64a32pace,
        [FORM_ld64b16pace_mmbn_ef] = ld64b16pace,
        [FORM_ld2xst64pace_mbbn_ef] = ld2xst64pace,
        [FORM_ldst64pace_mbbn_ef] = ldst64pace,
        [FORM_st64pace_mbmn_ef] = st64pace,
        [FORM_ld64putcs_mmmn_zi] = ld64putcs,
        [FORM_ld128putcs_mmmn_zi] = ld128putcs,
    };
    return handlers[form];
}
