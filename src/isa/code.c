/* code.c - words to instructions and back.
 *
 * Every operand kind has a range in the programmer's terms and a way to and from its field; the
 * pieces of the field come from the table. encode(decode(w)) gives w for every w that decodes. */
#include "isa/table.h"

#include <stdio.h>
#include <stdlib.h>

OperandRange isa_operand_range(const OperandInfo *operand)
{
    int64_t span = (int64_t)1 << operand->bits;
    switch ((OperandKind)operand->kind) {
    case OPERAND_NONE:
        return (OperandRange){0, 0, 1};
    case OPERAND_M:
    case OPERAND_A:
    case OPERAND_A_B:
    case OPERAND_A_BL:
    case OPERAND_A_BU:
        return (OperandRange){0, 15, 1};
    case OPERAND_M2:
        return (OperandRange){0, 10, 2}; /* $m12:13 and up are refused by the vendor's tools too */
    case OPERAND_A2:
        return (OperandRange){0, 14, 2};
    case OPERAND_A4:
        return (OperandRange){0, 12, 4};
    case OPERAND_UNSIGNED:
        return (OperandRange){0, span - 1, 1};
    case OPERAND_SIGNED:
        return (OperandRange){-span / 2, span / 2 - 1, 1};
    case OPERAND_HIGH: /* a word whose low bits are 0: written unsigned, kept as int32 */
        return (OperandRange){0, (span - 1) << (32 - operand->bits),
                              (int64_t)1 << (32 - operand->bits)};
    case OPERAND_TARGET:
        return (OperandRange){0, (span - 1) * 4, 4};
    case OPERAND_RUN:
        return (OperandRange){ISA_REGION_BASE, ISA_REGION_BASE + (span - 1) * 4, 4};
    case OPERAND_COUNT_M1:
        return (OperandRange){1, span, 1};
    }
    return (OperandRange){0, 0, 1};
}

static int64_t value_of_field(const OperandInfo *operand, uint32_t field)
{
    switch ((OperandKind)operand->kind) {
    case OPERAND_SIGNED:
        return (int32_t)(field << (32 - operand->bits)) >> (32 - operand->bits);
    case OPERAND_HIGH:
        return (int64_t)field << (32 - operand->bits);
    case OPERAND_TARGET:
        return (int64_t)field * 4;
    case OPERAND_RUN:
        return ISA_REGION_BASE + (int64_t)field * 4;
    case OPERAND_COUNT_M1:
        return (int64_t)field + 1;
    default:
        return field;
    }
}

static uint32_t field_of_value(const OperandInfo *operand, int64_t value)
{
    uint32_t mask = (uint32_t)(((uint64_t)1 << operand->bits) - 1);
    switch ((OperandKind)operand->kind) {
    case OPERAND_HIGH:
        return (uint32_t)value >> (32 - operand->bits);
    case OPERAND_TARGET:
        return (uint32_t)value >> 2;
    case OPERAND_RUN:
        return (uint32_t)(value - ISA_REGION_BASE) >> 2;
    case OPERAND_COUNT_M1:
        return (uint32_t)value - 1;
    default:
        return (uint32_t)value & mask;
    }
}

static bool in_range(const OperandInfo *operand, int64_t value)
{
    OperandRange range = isa_operand_range(operand);
    return value >= range.low && value <= range.high && (value - range.low) % range.step == 0;
}

static uint32_t gather(const FieldPiece *pieces, uint32_t word)
{
    uint32_t field = 0;
    for (int i = 0; i < FIELD_PIECES && pieces[i].width; i++)
        field |= (word >> pieces[i].word_bit & ((1u << pieces[i].width) - 1))
                 << pieces[i].value_bit;
    return field;
}

static uint32_t scatter(const FieldPiece *pieces, uint32_t field)
{
    uint32_t word = 0;
    for (int i = 0; i < FIELD_PIECES && pieces[i].width; i++)
        word |= (field >> pieces[i].value_bit & ((1u << pieces[i].width) - 1))
                << pieces[i].word_bit;
    return word;
}

static bool decode_form(Form which, uint32_t word, Insn *out)
{
    const FormInfo *form = isa_form(which);
    *out = (Insn){.form = (uint16_t)which, .words = 1};
    for (int i = 0; i < form->operand_count; i++) {
        const OperandInfo *operand = &form->operands[i];
        int64_t value = value_of_field(operand, gather(isa_fields[which].pieces[i], word));
        if (!in_range(operand, value))
            return false;
        out->operand[i] = (int32_t)value;
    }
    out->bundled = form->coissue && word >> 31;
    return true;
}

bool isa_decode(uint32_t word, uint32_t next, IsaMode mode, Insn *out)
{
    uint32_t count;
    const uint16_t *candidates = isa_candidates(word, &count);
    for (uint32_t i = 0; i < count; i++) {
        const FormInfo *form = isa_form((Form)candidates[i]);
        if ((word & form->mask) != form->match)
            continue;
        if (mode != MODE_BOTH && form->mode != MODE_BOTH && form->mode != mode)
            continue;
        if (!decode_form((Form)candidates[i], word, out))
            continue;
        if (form->flags & FORM_TWO_WORDS) {
            out->words = 2;
            out->payload = next;
        }
        return true;
    }
    *out = (Insn){.form = FORM_INVALID, .words = 1};
    return false;
}

static int64_t programmers_value(const OperandInfo *operand, int32_t value)
{
    return operand->kind == OPERAND_HIGH ? (int64_t)(uint32_t)value : value;
}

Status isa_encode(const Insn *insn, uint32_t words[2])
{
    if (insn->form == FORM_INVALID || insn->form >= FORM_COUNT)
        return status_error("no such instruction form: %u", insn->form);
    const FormInfo *form = isa_form((Form)insn->form);
    uint32_t word = form->match;
    for (int i = 0; i < form->operand_count; i++) {
        const OperandInfo *operand = &form->operands[i];
        int64_t value = programmers_value(operand, insn->operand[i]);
        if (!in_range(operand, value)) {
            OperandRange range = isa_operand_range(operand);
            return status_error("%s: operand %c is %lld, outside %lld..%lld in steps of %lld",
                                form->name, 'A' + i, (long long)value, (long long)range.low,
                                (long long)range.high, (long long)range.step);
        }
        word |= scatter(isa_fields[insn->form].pieces[i], field_of_value(operand, value));
    }
    if (insn->bundled) {
        if (!form->coissue)
            return status_error("%s can not stand in a bundle", form->name);
        word |= 1u << 31;
    }
    words[0] = word;
    words[1] = form->flags & FORM_TWO_WORDS ? insn->payload : 0;
    return STATUS_OK;
}

uint32_t isa_word_of(Form form, const int32_t operands[ISA_OPERANDS])
{
    Insn insn = {.form = (uint16_t)form, .words = 1};
    uint32_t words[2];
    for (int i = 0; i < ISA_OPERANDS; i++)
        insn.operand[i] = operands[i];
    Status status = isa_encode(&insn, words);
    if (!status_ok(status)) {
        fprintf(stderr, "generated code: %s\n", status_message(status));
        abort();
    }
    return words[0];
}
