/* finish.c - the end of the pass: what waited for labels becomes bits or relocations, and the
 * sections and symbols become the object. */
#include "as/assembler.h"

#include <string.h>

static uint8_t data_relocation(int bytes)
{
    return bytes == 1 ? RELOC_8 : bytes == 2 ? RELOC_16 : bytes == 4 ? RELOC_32 : RELOC_64;
}

/* The relocation that can fill an operand, RELOC_NONE if there is none. */
static uint8_t operand_relocation(const Fixup *fixup)
{
    const OperandInfo *operand = &isa_form((Form)fixup->form)->operands[fixup->operand];
    switch ((OperandKind)operand->kind) {
    case OPERAND_TARGET:
        return RELOC_19_S2;
    case OPERAND_RUN:
        return RELOC_RUN;
    case OPERAND_UNSIGNED: /* where the field is at the low end of the word */
        if (operand->bits == 20)
            return RELOC_20;
        if (operand->bits == 16 && fixup->form != FORM_runall_mmmn_zi)
            return RELOC_16;
        if (operand->bits == 8 &&
            (fixup->form == FORM_rpt_mmmn_zi || fixup->form == FORM_rpt_mmmn_zi_zi))
            return RELOC_8;
        return RELOC_NONE;
    default:
        return RELOC_NONE;
    }
}

/* A defined local symbol is named by its section: the object needs no names for labels. */
static void relocate(Assembler *as, const Fixup *fixup, uint8_t type, const Value *value)
{
    Symbol *symbol = value->plus;
    int64_t addend = value->constant;
    if (symbol->section && symbol->binding == AS_LOCAL && !symbol->is_section) {
        addend += symbol->value;
        symbol = symbol->section->symbol;
    }
    if (addend < INT32_MIN || addend > INT32_MAX) {
        as_error_at(as, &fixup->at, "offset %lld is too large", (long long)addend);
        return;
    }
    symbol->used = true;
    array_push(&fixup->section->relocations, (AsRelocation){.offset = fixup->offset,
                                                            .type = type,
                                                            .symbol = UINT32_MAX,
                                                            .addend = (int32_t)addend});
    array_push(&as->relocation_symbols, symbol);
    array_push(&as->relocation_sections, fixup->section);
}

static void settle_data(Assembler *as, const Fixup *fixup, const Value *value)
{
    if (value->plus) {
        uint8_t type = value->relocation ? value->relocation : data_relocation(fixup->bytes);
        relocate(as, fixup, type, value);
        return;
    }
    int64_t limit = fixup->bytes < 8 ? (int64_t)1 << (8 * fixup->bytes) : INT64_MAX;
    if (value->relocation)
        as_error_at(as, &fixup->at, "a relocation variant needs a symbol");
    else if (fixup->bytes < 8 && !fixup->lenient &&
             (value->constant < -limit / 2 || value->constant >= limit))
        as_error_at(as, &fixup->at, "%lld does not fit into %u bytes", (long long)value->constant,
                    fixup->bytes);
    else
        memcpy(fixup->section->data.items + fixup->offset, &value->constant, fixup->bytes);
}

static void settle_operand(Assembler *as, const Fixup *fixup, const Value *value)
{
    const FormInfo *form = isa_form((Form)fixup->form);
    const OperandInfo *operand = &form->operands[fixup->operand];
    if (value->relocation) {
        as_error_at(as, &fixup->at, "relocation variants are for data only");
        return;
    }
    if (value->plus) {
        uint8_t type = operand_relocation(fixup);
        if (type == RELOC_NONE)
            as_error_at(as, &fixup->at, "operand of %s must be a constant, not an address",
                        form->mnemonic);
        else
            relocate(as, fixup, type, value);
        return;
    }
    int64_t wanted = value->constant;
    if (!value_fits(operand, wanted)) {
        OperandRange range = isa_operand_range(operand);
        if (!fixup->lenient) {
            as_error_at(as, &fixup->at, "immediate %lld is out of range, expected %lld..%lld",
                        (long long)wanted, (long long)range.low, (long long)range.high);
            return;
        }
        wanted = forced_value(operand, wanted);
    }
    uint8_t *at = fixup->section->data.items + fixup->offset;
    Insn insn;
    uint32_t words[2];
    if (!isa_decode(load_u32(at), 0, MODE_BOTH, &insn))
        return; /* what was emitted decodes */
    insn.operand[fixup->operand] = (int32_t)wanted;
    Status status = isa_encode(&insn, words);
    if (!status_ok(status))
        as_error_at(as, &fixup->at, "%s", status_message(status));
    status_free(status);
    store_u32(at, words[0]);
}

static void settle(Assembler *as, const Fixup *fixup)
{
    Value value;
    bool good = evaluate(as, fixup->root, &value);
    const char *unknown = good && !value.minus ? NULL : undefined_symbol(as, fixup->root);
    if (unknown)
        as_error_at(as, &fixup->at,
                    "symbol '%s' is not defined, and this is more than a symbol plus "
                    "a constant",
                    unknown);
    else if (!good || value.minus)
        as_error_at(as, &fixup->at,
                    "this must be a constant, or one symbol plus a constant: its symbols "
                    "are undefined or in different sections");
    else if (fixup->form)
        settle_operand(as, fixup, &value);
    else
        settle_data(as, fixup, &value);
}

/* ---- the object ---- */

/* .set aliases of later labels, and sizes. */
static void settle_symbol(Assembler *as, Symbol *symbol)
{
    Value value;
    if (symbol->root != NO_NODE && symbol->binding != AS_LOCAL) {
        bool good = evaluate(as, symbol->root, &value) && !value.minus && !value.relocation &&
                    (!value.plus || value.plus->defined);
        if (!good) {
            as_error_at(as, &as->statement, "the value of '%s' can not be settled", symbol->name);
            return;
        }
        symbol->section = value.plus ? value.plus->section : NULL;
        symbol->value = value.constant + (value.plus ? value.plus->value : 0);
    }
    if (symbol->size_root != NO_NODE && evaluate(as, symbol->size_root, &value) && !value.plus &&
        !value.minus)
        symbol->size = value.constant;
}

typedef enum SymbolClass { CLASS_NONE, CLASS_SECTION, CLASS_LOCAL, CLASS_GLOBAL } SymbolClass;

static SymbolClass class_of(const Symbol *symbol)
{
    if (symbol->is_section)
        return CLASS_SECTION;
    if (!symbol->defined)
        return symbol->used && !(symbol->bound && symbol->binding == AS_LOCAL) ? CLASS_GLOBAL
                                                                               : CLASS_NONE;
    if (symbol->builtin)
        return CLASS_NONE;
    if (symbol->binding != AS_LOCAL)
        return CLASS_GLOBAL;
    bool hidden = symbol->variable || !strncmp(symbol->name, ".L", 2);
    return hidden ? CLASS_NONE : CLASS_LOCAL;
}

static AsSymbol object_symbol(const Symbol *symbol)
{
    AsSymbol out = {.name = symbol->name,
                    .section = symbol->section   ? symbol->section->index
                               : symbol->defined ? AS_ABSOLUTE
                                                 : AS_UNDEFINED,
                    .value = (uint32_t)symbol->value,
                    .size = (uint32_t)symbol->size,
                    .binding = symbol->binding,
                    .function = symbol->function,
                    .is_section = symbol->is_section};
    if (!symbol->defined && symbol->binding == AS_LOCAL)
        out.binding = AS_GLOBAL;
    return out;
}

static void build_symbols(Assembler *as, AsObject *out)
{
    out->symbols = arena_array(as->arena, AsSymbol, as->symbols.count + 1);
    for (SymbolClass class = CLASS_SECTION; class <= CLASS_GLOBAL; class ++)
        for (size_t i = 0; i < as->symbols.count; i++) {
            Symbol *symbol = as->symbols.items[i];
            if (class_of(symbol) != class)
                continue;
            symbol->index = out->symbol_count;
            out->symbols[out->symbol_count++] = object_symbol(symbol);
        }
}

static void build_sections(Assembler *as, AsObject *out)
{
    out->sections = arena_array(as->arena, AsSection, as->section_count + 1);
    for (Section *section = as->sections; section; section = section->next) {
        AsSection *built = &out->sections[out->section_count++];
        *built = (AsSection){.name = section->name,
                             .flags = section->flags,
                             .align = section->align,
                             .bytes = (uint32_t)section->bytes,
                             .relocation_count = (uint32_t)section->relocations.count};
        if (!(section->flags & AS_NOBITS))
            built->data = arena_copy(as->arena, section->data.items, section->data.count, 4);
        built->relocations =
            arena_copy(as->arena, section->relocations.items,
                       section->relocations.count * sizeof(AsRelocation), _Alignof(AsRelocation));
    }
}

/* Fixups are settled in the order of the source; the n-th relocation is of the n-th symbol. */
static void number_relocations(Assembler *as)
{
    for (size_t i = 0; i < as->relocation_symbols.count; i++) {
        Section *section = as->relocation_sections.items[i];
        AsRelocation *relocation = &section->relocations.items[section->numbered++];
        relocation->symbol = as->relocation_symbols.items[i]->index;
    }
}

void finish(Assembler *as, AsObject *out)
{
    for (size_t i = 0; i < as->fixups.count && !as->stop; i++)
        settle(as, &as->fixups.items[i]);
    for (size_t i = 0; i < as->symbols.count; i++)
        settle_symbol(as, as->symbols.items[i]);
    check_repeats(as);
    build_symbols(as, out);
    number_relocations(as);
    build_sections(as, out);
}
