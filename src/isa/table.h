/* table.h - what table.c derives from instructions.def for encode, decode and print. */
#ifndef IPU_ISA_TABLE_H
#define IPU_ISA_TABLE_H

#include "isa/isa.h"

enum { FIELD_PIECES = 3 };

/* `width` bits of the value from bit `value_bit` on stand in the word from bit `word_bit` on. */
typedef struct FieldPiece {
    uint8_t word_bit, value_bit, width;
} FieldPiece;

typedef struct FormFields {
    FieldPiece pieces[ISA_OPERANDS][FIELD_PIECES]; /* ends at width 0 */
} FormFields;

extern FormFields isa_fields[FORM_COUNT];

/* The forms that a word may have, by its bits 30..24, 11..8 and 3..0: a short list. */
const uint16_t *isa_candidates(uint32_t word, uint32_t *count);

/* All ways to write instructions: first one per form (the index is the form), then the aliases. */
enum {
    ALIAS_COUNT = 0
#define ALIAS(...) +1
#include "isa/aliases.def"
#undef ALIAS
    ,
    SYNTAX_COUNT = FORM_COUNT + ALIAS_COUNT
};
extern IsaSyntax isa_syntaxes[SYNTAX_COUNT];

#endif
