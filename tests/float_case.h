/* float_case.h - shared by the tests of the auxiliary lane: cases in text, random states, running.
 */
#ifndef IPU_TESTS_FLOAT_CASE_H
#define IPU_TESTS_FLOAT_CASE_H

#include "sim/float.h"

#include <ctype.h>
#include <string.h>

/* ---- Random numbers of the tests ---- */

typedef struct Random {
    uint64_t state;
} Random;

static inline uint64_t random_next(Random *random) /* splitmix64 */
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* Halves and singles with many special values among them. */
static inline uint32_t random_half(Random *random)
{
    static const uint16_t SPECIAL[] = {0,      0x8000, 1,      0x8001, 0x03ff, 0x0400, 0x3c00,
                                       0xbc00, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x7c01};
    uint64_t draw = random_next(random);
    return draw >> 60 == 0 ? SPECIAL[draw % countof(SPECIAL)] : draw & 0xffff;
}

static inline uint32_t random_single(Random *random)
{
    static const uint32_t SPECIAL[] = {0,          0x80000000, 1,          0x807fffff, 0x00800000,
                                       0x3f800000, 0xbf800000, 0x7f7fffff, 0xff7fffff, 0x7f800000,
                                       0xff800000, 0x7fc00000, 0x7f800001, 0xffffffff};
    uint64_t draw = random_next(random);
    switch (draw >> 61) {
    case 0:
        return SPECIAL[draw % countof(SPECIAL)];
    case 1:
        return random_half(random) | random_half(random) << 16;
    case 2:
        return (uint32_t)draw; /* all exponents */
    default:                   /* magnitudes near 1 */
        return ((uint32_t)draw & 0x80ffffff) + 0x3f000000;
    }
}

static inline FloatState random_float_state(Random *random)
{
    FloatState state = {0};
    for (unsigned i = 0; i < 8; i++)
        state.a[i] = random_single(random);
    for (unsigned i = 0; i < 16; i++) {
        state.live[i] = random_single(random);
        state.chain[i] = random_single(random);
    }
    for (unsigned i = 0; i < 4; i++)
        state.prng[i] = (uint32_t)random_next(random);
    uint32_t draw = (uint32_t)random_next(random);
    state.control = (draw & 1 ? 1u << 19 : 0) | (draw & 2 ? 1u << 20 : 0);
    state.formats = draw >> 8 & 3;
    state.scale = draw >> 16 & 63;
    state.tas = random_single(random);
    state.latch[0] = random_single(random);
    state.latch[1] = random_single(random);
    return state;
}

static inline void random_operands(Random *random, Form form, int32_t operand[ISA_OPERANDS])
{
    const FormInfo *info = isa_form(form);
    for (unsigned i = 0; i < info->operand_count; i++) {
        uint64_t draw = random_next(random);
        const OperandInfo *kind = &info->operands[i];
        switch (kind->kind) {
        case OPERAND_A2:
            operand[i] = (int32_t)(draw & 14);
            break;
        case OPERAND_A4:
            operand[i] = (int32_t)(draw & 12);
            break;
        case OPERAND_UNSIGNED:
            operand[i] = (int32_t)(draw & ((1u << kind->bits) - 1));
            break;
        case OPERAND_HIGH:
            operand[i] = (int32_t)(uint32_t)(draw << (32 - kind->bits));
            break;
        default:
            operand[i] = (int32_t)(draw & 15);
            break;
        }
    }
}

/* ---- One instruction in text: enough of the language for the auxiliary lane ---- */

static const struct {
    const char *name;
    int32_t value;
} FLOAT_CONSTANTS[] = {{"TAMP_F16V4_E4_P0", 0},   {"TAMP_F16V4_E4_P1", 1},
                       {"TAMP_F16V4_E4_P2", 2},   {"TAMP_F16V4_E4_P3", 3},
                       {"TAMP_F16V4_E2_P0", 16},  {"TAMP_F16V4_E2_P1", 17},
                       {"TAMP_F16V4_E1_P0", 32},  {"TAMP_F32_E4_P0", 0},
                       {"TAMP_F32_E4_P1", 1},     {"TSLIC_F16V4_1x4_W0", 0},
                       {"TSLIC_F16V4_1x4_W1", 1}, {"TSLIC_F32_1x3_W0_P0", 4},
                       {"TISTACC_P0", 0},         {"TSLIC_F32_1x4_W0_P0", 0},
                       {"TISTACC_P1", 1},         {"TSTACC_P0", 0},
                       {"TSTACC_P1", 1}};

static inline bool parse_immediate(const char *text, const OperandInfo *info, int32_t *value)
{
    for (size_t i = 0; i < countof(FLOAT_CONSTANTS); i++) {
        if (!strcmp(text, FLOAT_CONSTANTS[i].name)) {
            *value = FLOAT_CONSTANTS[i].value;
            return true;
        }
    }
    char *end;
    unsigned long long number = strtoull(text, &end, 0);
    *value = (int32_t)(uint32_t)number;
    if (end == text || *end || number >> 32)
        return false;
    if (info->kind == OPERAND_HIGH)
        return (number & ((1ull << (32 - info->bits)) - 1)) == 0;
    return info->kind == OPERAND_UNSIGNED && number >> info->bits == 0;
}

static inline bool parse_float_operand(const char *text, const OperandInfo *info, int32_t *value)
{
    if (text[0] != '$')
        return parse_immediate(text, info, value);
    if (!strcmp(text, "$azero"))
        text = "$a15";
    if (!strcmp(text, "$azeros"))
        text = "$a14:15";
    char *end;
    *value = (int32_t)strtol(text + 2, &end, 10);
    if (text[1] != 'a' || end == text + 2)
        return false;
    char pair[16], quad[16];
    snprintf(pair, sizeof pair, ":%d", *value + 1);
    snprintf(quad, sizeof quad, ":%d", *value + 3);
    const char *wanted = info->kind == OPERAND_A      ? ""
                         : info->kind == OPERAND_A_B  ? ":B"
                         : info->kind == OPERAND_A_BL ? ":BL"
                         : info->kind == OPERAND_A_BU ? ":BU"
                         : info->kind == OPERAND_A2   ? pair
                         : info->kind == OPERAND_A4   ? quad
                                                      : "?";
    return !strcmp(end, wanted);
}

/* Splits "name x, y" into words; returns their number. */
static inline unsigned split_words(char *text, char *words[8])
{
    unsigned count = 0;
    for (char *word = strtok(text, " ,"); word && count < 8; word = strtok(NULL, " ,"))
        words[count++] = word;
    return count;
}

static inline bool parse_float_insn(const char *text, Form *form, int32_t operand[ISA_OPERANDS])
{
    char copy[256], *words[8];
    snprintf(copy, sizeof copy, "%s", text);
    unsigned count = split_words(copy, words);
    for (int f = 1; f < FORM_COUNT; f++) {
        const FormInfo *info = isa_form((Form)f);
        if (info->lane != LANE_AUX || strcmp(info->mnemonic, words[0]))
            continue;
        char syntax[256], *places[8];
        snprintf(syntax, sizeof syntax, "%s", info->syntax);
        unsigned place_count = split_words(syntax, places);
        bool fits = place_count == count;
        for (unsigned i = 1; i < count && fits; i++) {
            int index = atoi(places[i] + 3); /* $opN */
            fits = parse_float_operand(words[i], &info->operands[index], &operand[index]);
        }
        *form = (Form)f;
        if (fits)
            return true;
    }
    return false;
}

/* ---- Named parts of a state ---- */

/* The place of "$a3", "AACC7", "FP_CTL", ... ; NULL when there is none (CWEI is not in the state).
 */
static inline uint32_t *float_state_part(FloatState *state, const char *name)
{
    if (!strncmp(name, "$a", 2))
        return &state->a[atoi(name + 2) & 15];
    if (!strncmp(name, "AACC", 4))
        return float_acc(state, (uint32_t)atoi(name + 4) & 31);
    if (!strncmp(name, "PRNG_", 5))
        return &state->prng[2 * (name[5] - '0') + (name[7] - '0')];
    return !strcmp(name, "FP_STS")    ? &state->status
           : !strcmp(name, "FP_CTL")  ? &state->control
           : !strcmp(name, "FP_NFMT") ? &state->formats
           : !strcmp(name, "FP_SCL")  ? &state->scale
           : !strcmp(name, "TAS")     ? &state->tas
                                      : NULL;
}

/* Applies "NAME=0x...; NAME=0x..." to a state and weights. */
static inline bool apply_assignments(const char *text, FloatState *state, Weights *weights)
{
    while (*text) {
        char name[32];
        unsigned long long value;
        int used = 0;
        if (sscanf(text, " %31[^=;]=%llx%n", name, &value, &used) != 2)
            return false;
        unsigned m, n;
        uint32_t *part = float_state_part(state, name);
        if (part)
            *part = (uint32_t)value;
        else if (weights && sscanf(name, "CWEI_%u_%u", &m, &n) == 2)
            weights_write(weights, 4 * m + n, value);
        else
            return false;
        text += used;
        text += *text == ';';
    }
    return true;
}

/* True when two states agree in everything a program can see; else tells where. */
static inline bool same_state(const FloatState *a, const FloatState *b, char *where, size_t size)
{
    FloatState x = *a, y = *b;
    for (unsigned i = 0; i < 32; i++) {
        if (x.a[i % 16] != y.a[i % 16]) {
            snprintf(where, size, "$a%u: %08x, %08x", i % 16, x.a[i % 16], y.a[i % 16]);
            return false;
        }
        if (*float_acc(&x, i) != *float_acc(&y, i)) {
            snprintf(where, size, "AACC%u: %08x, %08x", i, *float_acc(&x, i), *float_acc(&y, i));
            return false;
        }
    }
    if (x.status != y.status) {
        snprintf(where, size, "FP_STS: %x, %x", x.status, y.status);
        return false;
    }
    snprintf(where, size, "control registers");
    return !memcmp(x.prng, y.prng, sizeof x.prng) && x.control == y.control && x.tas == y.tas &&
           x.formats == y.formats && x.scale == y.scale;
}

#endif
