/* rules.c - where instructions may stand: bundles, the body of rpt, and placing words.
 *
 * The rules are the hardware's; the switches of the language (.allow_..., .warn_on_...) turn them
 * down one by one. */
#include "as/assembler.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { BUNDLE_BIT = 31 };

bool rule_broken(Assembler *as, uint8_t lenience, const Position *at, const char *format, ...)
{
    char message[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (lenience == 0)
        as_error_at(as, at, "%s", message);
    else if (lenience == 1)
        as_warning(as, "%s", message);
    return lenience != 0;
}

void bundle_begin(Assembler *as)
{
    if (as->in_bundle)
        as_error_at(as, &as->bundle_at, "start of instruction bundle without end");
    as->in_bundle = true;
    as->bundle_at = as->statement;
    as->bundle_count = 0;
}

/* ---- double writes ---- */

typedef struct Written {
    char file;
    int32_t base, span;
} Written;

static bool written_by(const FormInfo *form, const Insn *insn, int i, Written *out)
{
    static const struct {
        char file;
        int8_t span;
    } kinds[] = {[OPERAND_M] = {'m', 1},
                 [OPERAND_M2] = {'m', 2},
                 [OPERAND_A] = {'a', 1},
                 [OPERAND_A2] = {'a', 2},
                 [OPERAND_A4] = {'a', 4}};
    uint8_t kind = form->operands[i].kind;
    if (!form->operands[i].output || kind >= countof(kinds) || !kinds[kind].span)
        return false;
    *out = (Written){kinds[kind].file, insn->operand[i], kinds[kind].span};
    return true;
}

static bool write_same_register(const Insn *a, const Insn *b)
{
    const FormInfo *form_a = isa_form((Form)a->form), *form_b = isa_form((Form)b->form);
    Written x, y;
    for (int i = 0; i < form_a->operand_count; i++)
        for (int k = 0; k < form_b->operand_count; k++)
            if (written_by(form_a, a, i, &x) && written_by(form_b, b, k, &y) && x.file == y.file &&
                x.base < y.base + y.span && y.base < x.base + x.span)
                return true;
    return false;
}

/* ---- rpt ---- */

static bool is_rpt(const Insn *insn)
{
    return insn->form == FORM_rpt_mmmn_zi || insn->form == FORM_rpt_mmmn_zi_zi;
}

static bool is_fnop(const Insn *insn)
{
    return insn->form == FORM_setzi_aaan_zi && insn->operand[0] == 13 && insn->operand[1] == 0;
}

static void note_repeat(Assembler *as, const Pending *pending, uint32_t body)
{
    array_push(&as->repeats, (Repeat){.section = as->section,
                                      .body = body,
                                      .root = pending->waits ? pending->root[1] : NO_NODE,
                                      .length = pending->insn.operand[1],
                                      .at = pending->at});
}

/* The words of the body, at the end, when all are there. */
static void check_repeat(Assembler *as, const Repeat *repeat)
{
    const Section *section = repeat->section;
    int64_t length = repeat->length;
    Value value;
    if (repeat->root != NO_NODE) {
        if (!evaluate(as, repeat->root, &value) || value.plus || value.minus)
            return; /* the fixup reports it */
        length = value.constant & 0xff;
    }
    uint32_t first = repeat->body / 4, count = ((uint32_t)length + 1) * 2;
    if (section->align < 8)
        as_error_at(as, &repeat->at,
                    "rpt in section %s, which is aligned to %u bytes only: use "
                    ".align 8",
                    section->name, section->align);
    else if (first + count > section->kinds.count)
        as_error_at(as, &repeat->at, "the body of rpt, %u bundles, runs over the end of %s",
                    count / 2, section->name);
    else
        for (uint32_t i = 0; i < count; i++) {
            uint8_t kind = section->kinds.items[first + i];
            const char *what = (kind & WORD_KIND) != (i % 2 ? WORD_SECOND : WORD_FIRST)
                                   ? "holds something else than bundles"
                               : kind & WORD_BARRED ? "holds a control or system instruction"
                                                    : NULL;
            if (!what)
                continue;
            as_error_at(as, &repeat->at, "the body of rpt %s, %u bytes behind its start", what,
                        i * 4);
            return;
        }
}

void check_repeats(Assembler *as)
{
    for (size_t i = 0; i < as->repeats.count; i++)
        check_repeat(as, &as->repeats.items[i]);
}

/* ---- placing ---- */

static void note_fixups(Assembler *as, const Pending *pending, uint32_t offset)
{
    if (!pending->waits)
        return;
    const FormInfo *form = isa_form((Form)pending->insn.form);
    for (int i = 0; i < form->operand_count; i++)
        if (pending->root[i] != NO_NODE)
            array_push(&as->fixups, (Fixup){.section = as->section,
                                            .offset = offset,
                                            .root = pending->root[i],
                                            .form = pending->insn.form,
                                            .operand = (uint8_t)i,
                                            .lenient = as->lenience.operands == 2,
                                            .at = pending->at});
    as->node_mark = (uint32_t)as->nodes.count;
}

static uint8_t barred(const Pending *pending)
{
    const FormInfo *form = isa_form((Form)pending->insn.form);
    return form->flags & (FORM_CONTROL | FORM_SYSTEM) ? WORD_BARRED : 0;
}

static bool encode(Assembler *as, const Pending *pending, uint32_t words[2])
{
    Status status = isa_encode(&pending->insn, words);
    if (!status_ok(status))
        as_error_at(as, &pending->at, "%s", status_message(status));
    return !status_discard(status);
}

static bool ready_for_code(Assembler *as, const Position *at)
{
    const Section *section = as->section;
    if (!(section->flags & AS_EXECUTE) && section->flags)
        as_error_at(as, at, "instructions in section %s, which is not executable", section->name);
    else if (section->bytes & 3)
        as_error_at(as, at, "instruction at an offset that is no multiple of 4");
    else
        return true;
    return false;
}

static void place_lone(Assembler *as, const Pending *pending)
{
    uint32_t words[2], offset = (uint32_t)as->section->bytes;
    if (!ready_for_code(as, &pending->at) || !encode(as, pending, words))
        return;
    if (pending->insn.words == 2) { /* sendpicp starts at a multiple of 8 */
        if (offset % 8 && !rule_broken(as, as->lenience.operands, &pending->at,
                                       "sendpicp must start at a multiple of 8 bytes"))
            return;
        as->section->align = max_u32(as->section->align, 8);
    }
    if (is_rpt(&pending->insn) && as->lenience.repeat != 2) {
        if (offset % 8 != 4 && !rule_broken(as, as->lenience.repeat, &pending->at,
                                            "the body of rpt would not be aligned to 8 bytes"))
            return;
        if (as->lenience.repeat == 0)
            note_repeat(as, pending, offset + 4);
    }
    note_fixups(as, pending, offset);
    emit_words(as, words, pending->insn.words,
               (const uint8_t[]){(uint8_t)(WORD_LONE | barred(pending)), WORD_LONE | WORD_BARRED});
}

static bool bundle_is_legal(Assembler *as, Pending *first, Pending *second)
{
    const FormInfo *a = isa_form((Form)first->insn.form), *b = isa_form((Form)second->insn.form);
    uint8_t lenience = as->lenience.bundles;
    if (a->lane == LANE_AUX && b->lane == LANE_MAIN && as->lenience.optimizations) {
        Pending swap = *first;
        *first = *second;
        *second = swap;
    } else if ((a->lane != LANE_MAIN || b->lane != LANE_AUX) &&
               !rule_broken(as, lenience, &as->bundle_at,
                            "a bundle holds a main instruction and then an aux instruction: %s is "
                            "%s, %s is %s",
                            a->mnemonic, a->lane == LANE_MAIN ? "main" : "aux", b->mnemonic,
                            b->lane == LANE_MAIN ? "main" : "aux")) {
        return false;
    }
    if (!a->coissue || !b->coissue) { /* no bit could mark them */
        as_error_at(as, &as->bundle_at, "%s can not stand in a bundle",
                    a->coissue ? b->mnemonic : a->mnemonic);
        return false;
    }
    return !write_same_register(&first->insn, &second->insn) ||
           rule_broken(as, lenience, &as->bundle_at,
                       "both instructions of the bundle write the same register");
}

static void place_bundle(Assembler *as)
{
    Pending *first = &as->bundle[0], *second = &as->bundle[1];
    uint32_t words[2], pair[2], offset = (uint32_t)as->section->bytes;
    if (!ready_for_code(as, &as->bundle_at) || !bundle_is_legal(as, first, second))
        return;
    if (is_rpt(&first->insn) && offset % 8 == 4 && as->lenience.optimizations &&
        is_fnop(&second->insn)) {
        place_lone(as, first);
        return;
    }
    if (is_rpt(&first->insn) && as->lenience.repeat != 2) {
        if (offset % 8 && !rule_broken(as, as->lenience.repeat, &first->at,
                                       "the body of rpt would not be aligned to 8 bytes"))
            return;
        if (as->lenience.repeat == 0)
            note_repeat(as, first, offset + 8);
    }
    first->insn.bundled = second->insn.bundled = true;
    if (!encode(as, first, words) || !encode(as, second, pair))
        return;
    words[1] = pair[0];
    note_fixups(as, first, offset);
    note_fixups(as, second, offset + 4);
    emit_words(as, words, 2,
               (const uint8_t[]){(uint8_t)(WORD_FIRST | barred(first)),
                                 (uint8_t)(WORD_SECOND | barred(second))});
}

void bundle_end(Assembler *as)
{
    if (!as->in_bundle) {
        as_error_at(as, &as->statement, "end of instruction bundle without start");
        return;
    }
    as->in_bundle = false;
    if (as->bundle_count == 0)
        as_error_at(as, &as->bundle_at, "empty instruction bundle");
    else if (as->bundle_count == 1)
        as_error_at(as, &as->bundle_at, "too few instructions in bundle");
    else if (as->bundle_count == 2)
        place_bundle(as);
}

void place_instruction(Assembler *as, const Pending *pending)
{
    if (!as->in_bundle) {
        place_lone(as, pending);
        return;
    }
    if (as->bundle_count < 2)
        as->bundle[as->bundle_count] = *pending;
    else if (as->bundle_count == 2)
        as_error_at(as, &pending->at, "too many instructions in bundle");
    if (as->bundle_count < 3)
        as->bundle_count++;
    as->node_mark = (uint32_t)as->nodes.count; /* its expressions wait for the closing brace */
}
