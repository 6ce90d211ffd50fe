/* table.c - instructions.def and aliases.def, turned into tables that are quick to use.
 *
 * The .def files hold bit patterns and operand lists as text, for people. This file reads them
 * once, before main, into masks, field pieces, a candidate index for the decoder and a mnemonic
 * index for the assembler; afterwards nothing here changes, so all threads may use it. A row that
 * makes no sense ends the program at once: the table is part of the source. */
#include "isa/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct FormText {
    const char *name, *syntax, *bits, *operands, *fields;
    uint8_t mode, lane;
    bool coissue;
    uint16_t flags;
} FormText;

static const FormText form_texts[FORM_COUNT] = {
#define FORM(name, syntax, mode, lane, coissue, bits, operands, fields, flags)                     \
    [FORM_##                                                                                       \
        name] = {#name, syntax, bits, operands, fields, MODE_##mode, LANE_##lane, coissue, flags},
#include "isa/instructions.def"
#undef FORM
};

enum { TEXT_SOURCE = 0x100 };
typedef struct AliasText {
    const char *mnemonic;
    uint16_t form;
    uint8_t use, count;
    uint16_t source[ISA_OPERANDS]; /* TEXT_SOURCE + position, or a fixed value */
} AliasText;

static const AliasText alias_texts[ALIAS_COUNT] = {
#define TEXT(i) (TEXT_SOURCE + (i))
#define FIXED(n) (n)
#define ALIAS(mnemonic, form, use, count, ...)                                                     \
    {#mnemonic, FORM_##form, SYNTAX_##use, count, {__VA_ARGS__}},
#include "isa/aliases.def"
#undef ALIAS
};

static const struct KindText {
    const char *text;
    uint8_t kind, bits; /* bits 0: a number follows */
} kind_texts[] = {
    {"m", OPERAND_M, 4},       {"m2", OPERAND_M2, 4},          {"a", OPERAND_A, 4},
    {"a2", OPERAND_A2, 4},     {"a4", OPERAND_A4, 4},          {"a:B", OPERAND_A_B, 4},
    {"a:BL", OPERAND_A_BL, 4}, {"a:BU", OPERAND_A_BU, 4},      {"u", OPERAND_UNSIGNED, 0},
    {"s", OPERAND_SIGNED, 0},  {"hi", OPERAND_HIGH, 0},        {"target", OPERAND_TARGET, 0},
    {"run", OPERAND_RUN, 0},   {"count", OPERAND_COUNT_M1, 0},
};

enum {
    KEY_COUNT = 1 << 15, /* bits 30..24, 11..8, 3..0 of a word */
    NAME_SLOTS = 2048
};

FormFields isa_fields[FORM_COUNT];
IsaSyntax isa_syntaxes[SYNTAX_COUNT];
static FormInfo forms[FORM_COUNT];
static char mnemonics[FORM_COUNT][24];
static uint16_t name_slots[NAME_SLOTS]; /* first syntax of a mnemonic, 0 free */
static uint32_t candidate_start[KEY_COUNT + 1];
static uint16_t *candidates;

_Noreturn static void bad_row(const char *name, const char *what)
{
    fprintf(stderr, "instructions.def: %s: %s\n", name, what);
    abort();
}

static void read_bits(FormInfo *form, FormFields *fields, const FormText *text)
{
    int bit = 31;
    uint8_t width[ISA_OPERANDS] = {0};
    for (const char *c = text->bits; *c; c++) {
        if (*c == ' ')
            continue;
        if (bit < 0)
            bad_row(text->name, "more than 32 bits");
        if (*c == '0' || *c == '1') {
            form->mask |= 1u << bit;
            form->match |= (uint32_t)(*c - '0') << bit;
        } else if (*c >= 'A' && *c < 'A' + ISA_OPERANDS) {
            FieldPiece *piece = &fields->pieces[*c - 'A'][0];
            piece->word_bit = (uint8_t)bit; /* right for fields in one piece; see read_fields */
            piece->width = ++width[*c - 'A'];
        } else if (*c != 'c' || bit != 31) {
            bad_row(text->name, "unknown bit letter");
        }
        bit--;
    }
    if (bit >= 0 || text->coissue != (text->bits[0] == 'c'))
        bad_row(text->name, "bits");
}

/* "C=11-8@11-8,7-4@19-16;D=...": pieces of scattered operands. */
static void read_fields(FormFields *fields, const FormText *text)
{
    const char *c = text->fields;
    while (*c) {
        unsigned operand = (unsigned)(*c - 'A'), total = 0;
        unsigned expected = operand < ISA_OPERANDS ? fields->pieces[operand][0].width : 0;
        c++;
        for (int i = 0; *c == '=' || *c == ','; i++) {
            unsigned high, low, word_high, word_low;
            int used = 0;
            if (i == FIELD_PIECES || operand >= ISA_OPERANDS ||
                sscanf(c + 1, "%u-%u@%u-%u%n", &high, &low, &word_high, &word_low, &used) != 4)
                bad_row(text->name, "fields");
            fields->pieces[operand][i] =
                (FieldPiece){(uint8_t)word_low, (uint8_t)low, (uint8_t)(high - low + 1)};
            total += high - low + 1;
            c += 1 + used;
        }
        if (total != expected)
            bad_row(text->name, "scattered field is incomplete");
        c += *c == ';';
    }
}

static void read_kind(OperandInfo *operand, const char *kind, size_t length, const char *name)
{
    size_t letters = 0;
    while (letters < length && !(kind[letters] >= '0' && kind[letters] <= '9'))
        letters++;
    for (size_t i = 0; i < countof(kind_texts); i++) {
        size_t compared = kind_texts[i].bits ? length : letters;
        if (strlen(kind_texts[i].text) != compared ||
            memcmp(kind_texts[i].text, kind, compared) != 0)
            continue;
        operand->kind = kind_texts[i].kind;
        operand->bits = kind_texts[i].bits ? kind_texts[i].bits : (uint8_t)atoi(kind + letters);
        return;
    }
    bad_row(name, "unknown operand kind");
}

/* "A:out:m B:in:s16": letter, direction, kind. */
static void read_operands(FormInfo *form, const FormText *text)
{
    for (const char *c = text->operands; *c; c += *c == ' ') {
        OperandInfo *operand = &form->operands[form->operand_count];
        if (*c != 'A' + form->operand_count || c[1] != ':')
            bad_row(text->name, "operands out of order");
        c += 2;
        operand->input = c[0] == 'i';
        operand->output = c[0] == 'o' || (c[0] == 'i' && c[1] == 'o');
        c = strchr(c, ':') + 1;
        size_t length = strcspn(c, " ");
        read_kind(operand, c, length, text->name);
        unsigned width = isa_fields[form - forms].pieces[form->operand_count][0].width;
        if (!text->fields[0] && width != operand->bits)
            bad_row(text->name, "operand width differs from its bits");
        c += length;
        form->operand_count++;
    }
}

static Suffix read_suffix(const char **c)
{
    for (int suffix = SUFFIX_INCREMENT; suffix <= SUFFIX_AT; suffix++) {
        size_t length = strlen(isa_suffix((Suffix)suffix));
        if (!strncmp(*c, isa_suffix((Suffix)suffix), length)) {
            *c += length;
            return (Suffix)suffix;
        }
    }
    return SUFFIX_NONE;
}

/* "ld32step $op3, $op0, $op1+=, $op2" */
static void read_syntax(IsaSyntax *syntax, const FormText *text)
{
    memset(syntax->source, SYNTAX_FIXED, sizeof syntax->source);
    for (const char *c = strchr(text->syntax, '$'); c; c = strchr(c, '$')) {
        uint8_t operand = SYNTAX_PAYLOAD;
        if (!strncmp(c, "$op", 3)) {
            operand = (uint8_t)(c[3] - '0');
            syntax->source[operand] = syntax->count;
            c += 4;
        } else {
            syntax->operand[syntax->count++] = SYNTAX_PAYLOAD;
            syntax->operand[syntax->count++] = SYNTAX_PAYLOAD + 1;
            operand = SYNTAX_PAYLOAD + 2;
            c++;
        }
        syntax->operand[syntax->count] = operand;
        syntax->suffix[syntax->count++] = (uint8_t)read_suffix(&c);
    }
}

static void read_form(Form which)
{
    const FormText *text = &form_texts[which];
    FormInfo *form = &forms[which];
    size_t length = strcspn(text->syntax, " ");
    if (length >= sizeof mnemonics[0])
        bad_row(text->name, "long mnemonic");
    memcpy(mnemonics[which], text->syntax, length);
    form->name = text->name;
    form->mnemonic = mnemonics[which];
    form->syntax = text->syntax;
    form->mode = text->mode;
    form->lane = text->lane;
    form->coissue = text->coissue;
    form->flags = text->flags;
    read_bits(form, &isa_fields[which], text);
    read_fields(&isa_fields[which], text);
    read_operands(form, text);
    isa_syntaxes[which].form = (uint16_t)which;
    isa_syntaxes[which].mnemonic = form->mnemonic;
    read_syntax(&isa_syntaxes[which], text);
}

static void read_alias(IsaSyntax *syntax, const AliasText *alias)
{
    const FormInfo *form = &forms[alias->form];
    syntax->mnemonic = alias->mnemonic;
    syntax->form = alias->form;
    syntax->use = alias->use;
    syntax->count = alias->count;
    memset(syntax->source, SYNTAX_FIXED, sizeof syntax->source);
    for (uint8_t i = 0; i < form->operand_count; i++) {
        if (alias->source[i] < TEXT_SOURCE) {
            syntax->fixed[i] = (uint8_t)alias->source[i];
        } else {
            syntax->source[i] = (uint8_t)(alias->source[i] - TEXT_SOURCE);
            syntax->operand[syntax->source[i]] = i;
        }
    }
}

static uint32_t name_slot(const char *mnemonic, size_t length)
{
    uint32_t slot = (uint32_t)hash_bytes(mnemonic, length, 0) % NAME_SLOTS;
    while (name_slots[slot]) {
        const char *found = isa_syntaxes[name_slots[slot]].mnemonic;
        if (strlen(found) == length && !memcmp(found, mnemonic, length))
            break;
        slot = (slot + 1) % NAME_SLOTS;
    }
    return slot;
}

static void index_names(void)
{
    for (int i = 1; i < SYNTAX_COUNT; i++) {
        const char *mnemonic = isa_syntaxes[i].mnemonic;
        uint32_t slot = name_slot(mnemonic, strlen(mnemonic));
        if (!name_slots[slot]) {
            name_slots[slot] = (uint16_t)i;
            continue;
        }
        IsaSyntax *last = &isa_syntaxes[name_slots[slot]];
        while (last->next)
            last = &isa_syntaxes[last->next];
        last->next = (uint16_t)i;
    }
}

static uint32_t word_key(uint32_t word)
{
    return (word >> 24 & 0x7f) << 8 | (word >> 8 & 0xf) << 4 | (word & 0xf);
}

static void index_words(void)
{
    const uint32_t key_bits = 0x7f000f0f;
    uint32_t count = 0, capacity = 1 << 17;
    candidates = xmalloc(capacity * sizeof *candidates);
    for (uint32_t key = 0; key < KEY_COUNT; key++) {
        uint32_t word = (key >> 8) << 24 | (key >> 4 & 0xf) << 8 | (key & 0xf);
        candidate_start[key] = count;
        for (int form = 1; form < FORM_COUNT; form++)
            if ((word & forms[form].mask & key_bits) == (forms[form].match & key_bits)) {
                if (count == capacity)
                    bad_row(forms[form].name, "candidate index is too small");
                candidates[count++] = (uint16_t)form;
            }
    }
    candidate_start[KEY_COUNT] = count;
}

__attribute__((constructor)) static void derive_tables(void)
{
    for (int form = 1; form < FORM_COUNT; form++)
        read_form((Form)form);
    for (int i = 0; i < ALIAS_COUNT; i++)
        read_alias(&isa_syntaxes[FORM_COUNT + i], &alias_texts[i]);
    index_names();
    index_words();
}

const FormInfo *isa_form(Form form)
{
    return &forms[(unsigned)form < FORM_COUNT ? form : FORM_INVALID];
}

const uint16_t *isa_candidates(uint32_t word, uint32_t *count)
{
    uint32_t key = word_key(word);
    *count = candidate_start[key + 1] - candidate_start[key];
    return candidates + candidate_start[key];
}

const IsaSyntax *isa_syntax(const char *mnemonic, size_t length)
{
    uint16_t first = name_slots[name_slot(mnemonic, length)];
    return first ? &isa_syntaxes[first] : NULL;
}

const IsaSyntax *isa_syntax_next(const IsaSyntax *syntax)
{
    return syntax->next ? &isa_syntaxes[syntax->next] : NULL;
}

const char *isa_suffix(Suffix suffix)
{
    static const char *const texts[] = {"", "++", "+=", ">>", "@"};
    return texts[suffix];
}
