/* print.c - instructions as text, and listings of code.
 *
 * isa_print writes what the vendor's disassembler would: plain mnemonics, decimal immediates,
 * branch targets as byte addresses in hex. A listing goes further and assembles again to the same
 * words: branch targets become labels, and the few encodings that no text reaches become .word. */
#include "isa/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINE = 256 };

typedef struct Printer {
    char text[LINE];
    int length;
} Printer;

PRINTF_LIKE(2, 3) static void put(Printer *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int space = LINE - out->length;
    int length = vsnprintf(out->text + out->length, (size_t)space, format, arguments);
    va_end(arguments);
    out->length += length < space ? length : space - 1;
}

static bool plain_takes_other_form(const Insn *insn, const FormInfo *form)
{
    int32_t value = insn->operand[2]; /* all of them: destination, register, immediate */
    return form->operands[2].kind == OPERAND_UNSIGNED && value > 0 && value < 0x8000;
}

static bool alias_matches(const IsaSyntax *alias, const Insn *insn)
{
    const FormInfo *form = isa_form((Form)insn->form);
    if (alias->form != insn->form || alias->use == SYNTAX_PARSE)
        return false;
    if (alias->use == SYNTAX_EXACT && !plain_takes_other_form(insn, form))
        return false;
    for (int i = 0; i < form->operand_count; i++) {
        uint8_t source = alias->source[i];
        if (source == SYNTAX_FIXED ? insn->operand[i] != alias->fixed[i]
                                   : insn->operand[i] != insn->operand[alias->operand[source]])
            return false;
    }
    return true;
}

static const IsaSyntax *syntax_of(const Insn *insn)
{
    for (int i = FORM_COUNT; i < SYNTAX_COUNT; i++)
        if (alias_matches(&isa_syntaxes[i], insn))
            return &isa_syntaxes[i];
    return &isa_syntaxes[insn->form];
}

static void put_payload(Printer *out, uint32_t payload, int part)
{
    uint32_t parts[] = {payload & 0x3ffff, payload >> 31, payload >> 18 & 0x1fff};
    put(out, "%u", parts[part]);
}

static void put_operand(Printer *out, const OperandInfo *operand, int32_t value)
{
    switch ((OperandKind)operand->kind) {
    case OPERAND_NONE:
        break;
    case OPERAND_M:
        put(out, "$m%d", value);
        break;
    case OPERAND_M2:
        put(out, "$m%d:%d", value, value + 1);
        break;
    case OPERAND_A:
        put(out, "$a%d", value);
        break;
    case OPERAND_A_B:
        put(out, "$a%d:B", value);
        break;
    case OPERAND_A_BL:
        put(out, "$a%d:BL", value);
        break;
    case OPERAND_A_BU:
        put(out, "$a%d:BU", value);
        break;
    case OPERAND_A2:
        put(out, "$a%d:%d", value, value + 1);
        break;
    case OPERAND_A4:
        put(out, "$a%d:%d", value, value + 3);
        break;
    case OPERAND_HIGH:
        put(out, "%u", (uint32_t)value);
        break;
    case OPERAND_TARGET:
        put(out, "0x%x", (uint32_t)value);
        break;
    case OPERAND_RUN: /* a literal counts words from the region base */
        put(out, "%u", (uint32_t)(value - ISA_REGION_BASE) / 4);
        break;
    case OPERAND_UNSIGNED:
    case OPERAND_SIGNED:
    case OPERAND_COUNT_M1:
        put(out, "%d", value);
        break;
    }
}

/* label: stands for the branch target; NULL prints the address. */
static void put_insn(Printer *out, const Insn *insn, const char *label)
{
    const FormInfo *form = isa_form((Form)insn->form);
    if (insn->form == FORM_INVALID || insn->form >= FORM_COUNT) {
        put(out, "(invalid)");
        return;
    }
    const IsaSyntax *syntax = syntax_of(insn);
    put(out, "%s", syntax->mnemonic);
    for (int i = 0; i < syntax->count; i++) {
        put(out, "%s", i ? ", " : " ");
        uint8_t which = syntax->operand[i];
        if (which >= SYNTAX_PAYLOAD)
            put_payload(out, insn->payload, which - SYNTAX_PAYLOAD);
        else if (label && form->operands[which].kind == OPERAND_TARGET)
            put(out, "%s", label);
        else
            put_operand(out, &form->operands[which], insn->operand[which]);
        put(out, "%s", isa_suffix((Suffix)syntax->suffix[i]));
    }
}

int isa_print(const Insn *insn, IsaMode mode, char *text, size_t size)
{
    (void)mode; /* registers and immediates read the same in both */
    Printer out = {.length = 0};
    put_insn(&out, insn, NULL);
    return snprintf(text, size, "%s", out.text);
}

/* ---- listings ---- */

typedef struct Listing {
    Text *text;
    const uint32_t *words;
    size_t count;
    uint32_t address;
    IsaMode mode;
    Map labels; /* of branch targets: address -> 1 */
} Listing;

/* One line of a listing: an instruction, a bundle of two, or data. */
typedef struct Line {
    Insn insn[2];
    int insns; /* 0: data */
    uint32_t words;
} Line;

/* Text that the assembler would encode otherwise: 0 in the high or zero-extended twin of a form. */
static bool text_is_ambiguous(const Insn *insn)
{
    const FormInfo *form = isa_form((Form)insn->form);
    const IsaSyntax *syntax = syntax_of(insn);
    if (syntax->use == SYNTAX_PRINT)
        return true;
    for (int i = 0; i < form->operand_count; i++) {
        uint8_t kind = form->operands[i].kind;
        bool twin = isa_form((Form)(insn->form - 1))->operand_count == form->operand_count &&
                    !strcmp(isa_form((Form)(insn->form - 1))->mnemonic, form->mnemonic);
        if (insn->operand[i] == 0 && syntax->source[i] != SYNTAX_FIXED &&
            (kind == OPERAND_HIGH ||
             (kind == OPERAND_UNSIGNED && twin &&
              isa_form((Form)(insn->form - 1))->operands[i].kind == OPERAND_SIGNED)))
            return true;
    }
    return false;
}

static Line read_line(const Listing *listing, size_t at)
{
    Line line = {.words = 1};
    uint32_t next = at + 1 < listing->count ? listing->words[at + 1] : 0;
    Insn *first = &line.insn[0], *second = &line.insn[1];
    if (!isa_decode(listing->words[at], next, listing->mode, first))
        return line;
    if (first->words == 2 && at + 1 == listing->count)
        return line; /* the payload is missing */
    if (first->words == 2 && (listing->address + at * 4) % 8)
        return line; /* the hardware wants such a pair at a multiple of 8 */
    line.words = first->words;
    line.insns = text_is_ambiguous(first) ? 0 : 1;
    if (!first->bundled)
        return line;
    line.insns = 0;
    bool whole = at + 1 < listing->count && isa_decode(next, 0, listing->mode, second) &&
                 second->bundled && isa_form((Form)first->form)->lane == LANE_MAIN &&
                 isa_form((Form)second->form)->lane == LANE_AUX;
    if (whole) {
        line.words = 2;
        line.insns = text_is_ambiguous(first) || text_is_ambiguous(second) ? 0 : 2;
    }
    return line;
}

static bool branch_target(const Insn *insn, uint32_t *target)
{
    const FormInfo *form = isa_form((Form)insn->form);
    for (int i = 0; i < form->operand_count; i++)
        if (form->operands[i].kind == OPERAND_TARGET) {
            *target = (uint32_t)insn->operand[i];
            return true;
        }
    return false;
}

static void collect_labels(Listing *listing)
{
    for (size_t at = 0; at < listing->count;) {
        Line line = read_line(listing, at);
        uint32_t target;
        for (int i = 0; i < line.insns; i++)
            if (branch_target(&line.insn[i], &target))
                *map_at(&listing->labels, target, NULL) = 1;
        at += line.words;
    }
}

static bool starts_line(const Listing *listing, uint32_t target)
{
    uint32_t end = listing->address + (uint32_t)(listing->count * 4);
    return target >= listing->address && target < end;
}

/* Targets outside the code, and inside of a line, are absolute symbols. */
static void print_outside_labels(Listing *listing, const Map *starts)
{
    for (size_t i = 0; i < listing->labels.entries.count; i++) {
        uint32_t target = (uint32_t)listing->labels.entries.items[i].key;
        if (!starts_line(listing, target) || !map_find(starts, target))
            text_printf(listing->text, ".set L_%x, 0x%x\n", target, target);
    }
}

static void print_line(Listing *listing, size_t at, const Line *line)
{
    uint32_t address = listing->address + (uint32_t)at * 4;
    Printer out = {.length = 0};
    if (map_find(&listing->labels, address))
        text_printf(listing->text, "L_%x:\n", address);
    if (line->insns == 2)
        put(&out, "{ ");
    for (int i = 0; i < line->insns; i++) {
        uint32_t target;
        char label[16] = "";
        if (branch_target(&line->insn[i], &target))
            snprintf(label, sizeof label, "L_%x", target);
        put(&out, "%s", i ? " ; " : "");
        put_insn(&out, &line->insn[i], label[0] ? label : NULL);
    }
    if (line->insns == 2)
        put(&out, " }");
    for (uint32_t i = 0; !line->insns && i < line->words; i++)
        put(&out, "%s0x%08x", i ? ", " : ".word ", listing->words[at + i]);
    text_printf(listing->text, "    %-60s // %06x:", out.text, address);
    for (uint32_t i = 0; i < line->words; i++)
        text_printf(listing->text, " %08x", listing->words[at + i]);
    for (int i = 0; !line->insns && i < 2 && line->insn[i].form; i++) {
        Printer comment = {.length = 0};
        put_insn(&comment, &line->insn[i], NULL);
        text_printf(listing->text, "%s %s", i ? " ;" : "", comment.text);
    }
    text_append(listing->text, "\n");
}

void isa_listing(Text *text, const uint32_t *words, size_t count, uint32_t address, IsaMode mode)
{
    Listing listing = {
        .text = text, .words = words, .count = count, .address = address, .mode = mode};
    Map starts = {.slots = NULL};
    collect_labels(&listing);
    for (size_t at = 0; at < count; at += read_line(&listing, at).words)
        *map_at(&starts, address + at * 4, NULL) = 1;
    print_outside_labels(&listing, &starts);
    for (size_t at = 0; at < count;) {
        Line line = read_line(&listing, at);
        print_line(&listing, at, &line);
        at += line.words;
    }
    map_free(&listing.labels);
    map_free(&starts);
}
