/* isa.h - the one instruction table of the IPU21, and what derives from it.
 *
 * instructions.def lists every encoding form once (name, text syntax, mode, lane, bits, operands,
 * flags); the exchange and synchronisation instructions stand in it like all others. Encoder,
 * decoder and printer work from the table; assembler, linker, code emission, row encoding and the
 * simulator's decoder work from them. Nobody writes an opcode constant elsewhere.
 *
 * A form is named as in the table: FORM_add_mmmn_si. An Insn is one decoded instruction: its form
 * and its operand values, in the order of the table's letters A, B, C... Register operands hold the
 * register number (pairs and quads: the lowest register). Immediates hold the value a programmer
 * writes (sign-extended where signed; "hi" forms the shifted value; targets the byte address). */
#ifndef IPU_ISA_ISA_H
#define IPU_ISA_ISA_H

#include "base/base.h"

enum {
    ISA_OPERANDS = 6,
    ISA_TEXT_OPERANDS = 7,    /* sendpicp: four operands and three parts of the payload */
    ISA_REGION_BASE = 0x4c000 /* run counts words from the start of SRAM, as its relocation does */
};

typedef enum Form {
    FORM_INVALID,
#define FORM(name, ...) FORM_##name,
#include "isa/instructions.def"
#undef FORM
    FORM_COUNT
} Form;

typedef enum IsaMode { MODE_BOTH, MODE_WORKER, MODE_SUPERVISOR } IsaMode;
typedef enum IsaLane { LANE_MAIN, LANE_AUX } IsaLane;

typedef enum OperandKind {
    OPERAND_NONE,
    OPERAND_M,        /* $m0..$m15 */
    OPERAND_M2,       /* $m pair, value = even register */
    OPERAND_A,        /* $a0..$a15 */
    OPERAND_A_B,      /* $aN:B, f32 broadcast */
    OPERAND_A_BL,     /* $aN:BL */
    OPERAND_A_BU,     /* $aN:BU */
    OPERAND_A2,       /* $a pair; 14 = $azeros */
    OPERAND_A4,       /* $a quad */
    OPERAND_UNSIGNED, /* zero-extended immediate of .bits */
    OPERAND_SIGNED,   /* sign-extended immediate of .bits */
    OPERAND_HIGH,     /* immediate << (32 - bits) */
    OPERAND_TARGET,   /* branch target: byte address, field = address >> 2 */
    OPERAND_RUN,      /* run's base: field = (address - region base) >> 2 */
    OPERAND_COUNT_M1  /* exchange counts: value = field + 1 */
} OperandKind;

typedef struct OperandInfo {
    uint8_t kind; /* OperandKind */
    uint8_t bits;
    bool output; /* written */
    bool input;  /* read (a tied operand is both) */
} OperandInfo;

enum { /* flags of a form */
       FORM_LOAD = 1 << 0,
       FORM_STORE = 1 << 1,
       FORM_CONTROL = 1 << 2,
       FORM_SYSTEM = 1 << 3,
       FORM_EXCHANGE = 1 << 4, /* delay, send... : lasts its count of events */
       FORM_TWO_WORDS = 1 << 5 /* sendpicp: a payload word follows */
};

typedef struct FormInfo {
    const char *name;     /* "add_mmmn_si" */
    const char *mnemonic; /* "add" */
    const char *syntax;   /* "add $op0, $op1, $op2" */
    uint32_t mask, match; /* a word w has this form when (w & mask) == match */
    uint8_t mode, lane;   /* IsaMode, IsaLane */
    bool coissue;         /* may stand in a bundle */
    uint16_t flags;
    uint8_t operand_count;
    OperandInfo operands[ISA_OPERANDS]; /* A, B, C ... */
} FormInfo;

typedef struct Insn {
    uint16_t form; /* Form */
    uint8_t words; /* 1, or 2 with a payload */
    bool bundled;  /* bit 31 of bundle members */
    int32_t operand[ISA_OPERANDS];
    uint32_t payload; /* second word of FORM_TWO_WORDS */
} Insn;

const FormInfo *isa_form(Form form);

/* How one form, or an alias of it, is written: for the assembler and the printer. Position i of the
 * text holds operand[i]; an operand that is in no position is fixed. One text operand may stand for
 * two operands (swap16): `source` tells for each operand where it comes from. */
typedef enum Suffix { SUFFIX_NONE, SUFFIX_INCREMENT, SUFFIX_ADD, SUFFIX_SHIFT, SUFFIX_AT } Suffix;
typedef enum SyntaxUse { SYNTAX_BOTH, SYNTAX_PARSE, SYNTAX_PRINT, SYNTAX_EXACT } SyntaxUse;
enum {
    SYNTAX_FIXED = 0xff,
    SYNTAX_PAYLOAD = 0x80
}; /* PAYLOAD + 0 pointer value, 1 selector, 2 source */

typedef struct IsaSyntax {
    const char *mnemonic;
    uint16_t form;
    uint16_t next;                      /* next of the same mnemonic, 0 ends */
    uint8_t use;                        /* SyntaxUse */
    uint8_t count;                      /* operands in the text */
    uint8_t operand[ISA_TEXT_OPERANDS]; /* of text position: form operand, or SYNTAX_PAYLOAD + n */
    uint8_t suffix[ISA_TEXT_OPERANDS];  /* of text position: Suffix that must follow the register */
    uint8_t source[ISA_OPERANDS];       /* of operand: text position, or SYNTAX_FIXED */
    uint8_t fixed[ISA_OPERANDS];        /* its value then */
} IsaSyntax;

/* The first way to write a mnemonic, in the assembler's order of preference; NULL when unknown. */
const IsaSyntax *isa_syntax(const char *mnemonic, size_t length);
const IsaSyntax *isa_syntax_next(const IsaSyntax *syntax);
const char *isa_suffix(Suffix suffix); /* "", "++", "+=", ">>", "@" */

/* Smallest and largest value a programmer may give an operand, and the step between values. */
typedef struct OperandRange {
    int64_t low, high, step;
} OperandRange;
OperandRange isa_operand_range(const OperandInfo *operand);

/* Decodes the word (and, for two-word forms, `next`). Bit 31 marks bundle members; it is taken off
 * and recorded except in forms that fix it. Returns false for words that are no instruction in
 * `mode` (MODE_BOTH accepts worker and supervisor forms; where a word means different things in
 * the two, the caller must say the mode). */
bool isa_decode(uint32_t word, uint32_t next, IsaMode mode, Insn *out);

/* Encodes. The operand values must fit (checked: an error names operand, value and range). */
Status isa_encode(const Insn *insn, uint32_t words[2]);

/* For generated code, whose operands are right by construction: one word, ends the program on a
 * value that does not fit. isa_word(FORM_setzi_mmmn_zi_or_whatever, 8, 0x604). Give all operands
 * of the form in table order. */
#define isa_word(form, ...) isa_word_of((form), (const int32_t[ISA_OPERANDS]){__VA_ARGS__})
uint32_t isa_word_of(Form form, const int32_t operands[ISA_OPERANDS]);

/* Prints one instruction in the assembler's language ("add $m0, $m1, 4"). Returns the length like
 * snprintf. */
int isa_print(const Insn *insn, IsaMode mode, char *text, size_t size);

/* Disassembles code of `count` words at `address` into text, one line a bundle or instruction. */
void isa_listing(Text *text, const uint32_t *words, size_t count, uint32_t address, IsaMode mode);

/* Control and status registers: names per mode <-> numbers (csr.def). Worker upper-space registers
 * have numbers 0x100 and up. Returns -1 / NULL when unknown. */
int isa_csr_number(const char *name, IsaMode mode);
const char *isa_csr_name(uint32_t number, IsaMode mode);

#endif
