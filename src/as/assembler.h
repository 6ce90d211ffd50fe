/* assembler.h - what the files of the assembler share.
 *
 * One pass. Every label's offset is known when it is met, because no instruction changes its size;
 * what refers to later labels is kept as an expression and settled at the end (finish.c), where it
 * becomes bits or a relocation. A statement that is wrong is reported and skipped.
 *
 *   source.c     frames (files, macro expansions, repetitions), errors, includes
 *   lex.c        tokens
 *   expression.c expressions, folded as far as they can be
 *   symbol.c     words, symbols, sections, bytes
 *   statement.c  labels, assignments, bundles; who handles a line
 *   directive.c  .section, .word ...       condition.c  .if family
 *   macro.c      .macro, .rept, .irp       instruction.c  operands, forms, pseudo-instructions
 *   rules.c      bundles and rpt           finish.c  fixups, relocations, the object
 *   listing.c    the listing               constants.c  the symbolic constants of the machine */
#ifndef IPU_AS_ASSEMBLER_H
#define IPU_AS_ASSEMBLER_H

#include "as/as.h"

enum {
    ERROR_LIMIT = 100,
    DEPTH_LIMIT = 200,          /* of frames */
    EXPANSION_LIMIT = 64 << 20, /* bytes of text that macros and repetitions may run through */
    OUTPUT_LIMIT = 16 << 20,    /* bytes of all sections */
    EVALUATION_LIMIT = 1 << 28, /* nodes of expressions */
    NESTING_LIMIT = 200,        /* parentheses, .if, expressions of symbols */
    NO_NODE = 0xffffffff
};

typedef struct Assembler Assembler;
typedef struct Symbol Symbol;
typedef struct Section Section;
typedef struct Macro Macro;

/* ---- source ---- */

typedef enum FrameKind { FRAME_FILE, FRAME_MACRO, FRAME_REPEAT } FrameKind;

typedef struct Frame { /* lives as long as the arena: positions point to it */
    FrameKind kind;
    bool builtin; /* text of this program, not of a file: not listed */
    struct Frame *parent;
    const char *what;                      /* macro name or directive, for messages */
    const char *name;                      /* file */
    const char *path;                      /* of an included file; NULL: the text is no file */
    const char *cursor, *end, *line_start; /* text; a slice ends behind a separator */
    uint32_t line;
    const char *call_name; /* where the parent stood */
    uint32_t call_line, call_column;
    uint32_t conditions; /* open .if when the frame began */
    const char *body;    /* FRAME_REPEAT */
    uint32_t body_line, remaining;
    uint32_t wrap; /* lines of the body, where it stands in the text several times */
} Frame;

typedef struct Position {
    const Frame *frame;
    const char *name;
    uint32_t line, column;
} Position;

PRINTF_LIKE(2, 3) void as_error(Assembler *as, const char *format, ...); /* at the token */
PRINTF_LIKE(3, 4)
void as_error_at(Assembler *as, const Position *at, const char *format, ...);
PRINTF_LIKE(2, 3) void as_warning(Assembler *as, const char *format, ...);
Position position_now(const Assembler *as);
bool push_text(Assembler *as, FrameKind kind, const char *what, const char *name, const char *text,
               size_t length, uint32_t line);
void push_repeat(Assembler *as, const char *what, const char *body, const char *end, uint32_t line,
                 uint32_t count);
void push_include(Assembler *as, const char *name, size_t length);
bool pop_frame(Assembler *as); /* false at the end of everything */

/* ---- tokens ---- */

typedef enum TokenKind {
    TOKEN_END, /* of the statement: newline, ';' or the end of the text */
    TOKEN_WORD,
    TOKEN_INTEGER,
    TOKEN_FLOAT,    /* 1.5 */
    TOKEN_HALF,     /* 1.5h: value holds the half's bits */
    TOKEN_LOCAL,    /* 1b 2f: value holds the number, text ends in b or f */
    TOKEN_STRING,   /* text within the quotes, escapes not resolved */
    TOKEN_REGISTER, /* $name, text without the $ */
    TOKEN_OPERATOR, /* op */
    TOKEN_BAD       /* error says why */
} TokenKind;

enum {
    OP_LEFT = 256,
    OP_RIGHT,
    OP_EQUAL,
    OP_UNEQUAL,
    OP_LESS_EQUAL,
    OP_GREATER_EQUAL,
    OP_AND,
    OP_OR,
    OP_INCREMENT,
    OP_ADD_ASSIGN
};

typedef struct Token {
    TokenKind kind;
    int op;            /* a character or OP_ */
    const char *start; /* in the source: at the $ or the quote */
    const char *text;
    uint32_t length;
    const char *error; /* of a bad one */
    uint32_t hash;     /* of words */
    uint64_t value;
    double number;
} Token;

void next_token(Assembler *as);
bool accept(Assembler *as, int op); /* takes the operator token if it is next */
bool expect(Assembler *as, int op, const char *what);
void skip_statement(Assembler *as); /* to its end, which stays the token */
bool at_end(const Assembler *as);
bool is_word_char(char c);
/* The string's bytes with escapes resolved, in the arena. */
const char *string_bytes(Assembler *as, const Token *token, size_t *length);

/* ---- words and symbols ---- */

typedef struct Directive {
    const char *name;
    void (*handle)(Assembler *as, int argument);
    int argument;
} Directive;

typedef struct Word { /* one for every different word of the source */
    const char *name;
    uint32_t length, hash;
    Symbol *symbol;
    Macro *macro;
    const Directive *directive;
    const IsaSyntax *syntax;
} Word;

struct Symbol {
    const char *name;
    Section *section; /* NULL: undefined or a value */
    int64_t value;    /* offset, or the value of a .set */
    uint32_t root;    /* of a .set that waits for later labels, or NO_NODE */
    uint32_t size_root;
    int64_t size;
    uint32_t index; /* in the object */
    uint8_t binding;
    bool defined, variable, fixed; /* fixed: .equiv */
    bool builtin;                  /* a constant of the machine that nobody defined otherwise */
    bool function, declared, used, is_section, busy;
    bool bound; /* .globl, .local or .weak was given */
};

typedef struct Fixup {
    Section *section;
    uint32_t offset;
    uint32_t root;
    uint16_t form; /* of an instruction; 0: data */
    uint8_t operand;
    uint8_t bytes; /* of data */
    bool lenient;
    Position at;
} Fixup;

enum WordKind { WORD_DATA, WORD_LONE, WORD_FIRST, WORD_SECOND, WORD_KIND = 3, WORD_BARRED = 4 };

struct Section {
    const char *name;
    uint32_t flags, align, index;
    uint64_t bytes;
    uint64_t row_end; /* listed up to here */
    size_t numbered;  /* relocations that know their symbol's number */
    ARRAY(uint8_t) data;
    ARRAY(uint8_t) kinds; /* WordKind of every word, for the rules of rpt */
    ARRAY(AsRelocation) relocations;
    Symbol *symbol;
    Section *next;
};

Word *word_of(Assembler *as, const char *text, uint32_t length, uint32_t hash);
Word *token_word(Assembler *as);
Symbol *symbol_of(Assembler *as, Word *word); /* makes it when new */
uint32_t word_hash(const char *text, uint32_t length);
bool define_label(Assembler *as, Symbol *symbol);
void define_local(Assembler *as, uint64_t number);
Symbol *local_symbol(Assembler *as, uint64_t number, bool forward);
Section *section_of(Assembler *as, const char *name, size_t length, uint32_t flags);
void use_section(Assembler *as, Section *section);
bool emit_bytes(Assembler *as, const void *data, size_t count); /* NULL: zeros */
void emit_words(Assembler *as, const uint32_t *words, int count, const uint8_t *kinds);
void align_section(Assembler *as, uint32_t align, int fill);

/* ---- expressions ---- */

typedef struct Expression {
    bool constant;
    bool symbolic; /* holds a symbol or the location: a byte address where that matters */
    bool half;     /* a half-precision literal */
    bool is_csr;   /* just the name of a CSR */
    int64_t value;
    uint32_t root; /* when not constant */
} Expression;

typedef struct Value { /* plus - minus + constant */
    int64_t constant;
    Symbol *plus, *minus;
    uint8_t relocation; /* of (symbol)@abs19@s2, else 0 */
} Value;

typedef struct Node {
    int op; /* NODE_ or an operator */
    uint32_t left, right;
    int64_t value;
    Symbol *symbol;
} Node;
enum {
    NODE_CONSTANT,
    NODE_SYMBOL,
    NODE_VARIANT,
    NODE_NEGATE = 'n',
    NODE_COMPLEMENT = '~',
    NODE_NOT = 'N'
};

bool parse_expression(Assembler *as, Expression *out); /* false: reported */
bool parse_constant(Assembler *as, const char *what, int64_t *out);
/* False when it needs symbols that are not defined (yet) in a way that is not plus - minus. */
bool evaluate(Assembler *as, uint32_t root, Value *out);
/* The first symbol in it that is not defined, for messages; NULL when all are. */
const char *undefined_symbol(const Assembler *as, uint32_t root);
uint32_t expression_root(Assembler *as, const Expression *expression);
uint16_t half_literal(double value);

/* ---- statements, rules ---- */

typedef struct Lenience { /* 0 error, 1 warning, 2 allowed */
    uint8_t operands, mode, bundles, repeat;
    bool optimizations;
} Lenience;

typedef struct Pending { /* an assembled instruction, before it is placed */
    Insn insn;
    uint32_t root[ISA_OPERANDS]; /* expressions that wait, NO_NODE otherwise */
    bool waits;
    Position at;
} Pending;

typedef struct Repeat { /* an rpt, checked at the end */
    Section *section;
    uint32_t body; /* offset */
    uint32_t root; /* length field; NO_NODE: value */
    int64_t length;
    Position at;
} Repeat;

typedef struct Condition {
    bool active, taken, parent_active, has_else;
    Position at;
} Condition;

typedef struct Parameter {
    const char *name;
    uint32_t length;
    const char *standard; /* default text, NULL none */
    uint32_t standard_length;
    bool required, rest;
} Parameter;

struct Macro {
    const char *name;
    Parameter *parameters;
    uint32_t parameter_count;
    const char *body, *body_name;
    size_t body_length;
    uint32_t body_line;
};

typedef struct ListingRow {
    const Frame *frame;
    Section *section;
    uint32_t offset, bytes, line;
    const char *text;
    uint32_t length;
} ListingRow;

struct Assembler {
    Arena *arena;
    const AsOptions *options;
    Frame *frame;
    uint32_t depth;
    uint64_t expanded, output;
    Token token;
    Position statement;         /* start of the one being read */
    const char *statement_line; /* its line */
    Text errors;
    uint32_t error_count;
    bool stop; /* too many errors or a limit */

    Word **words;
    uint32_t word_count, word_slots;
    ARRAY(Symbol *) symbols; /* in order of appearance */
    Map locals;              /* number << 32 | count -> Symbol; number -> count */
    Map section_names;
    Section *sections, *last_section, *section, *previous;
    uint32_t section_count;
    ARRAY(Section *) section_stack;
    ARRAY(Node) nodes;
    uint32_t node_mark; /* nodes up to here are kept */
    uint32_t nesting;
    uint64_t evaluations;
    ARRAY(Fixup) fixups;
    ARRAY(Repeat) repeats;
    ARRAY(Symbol *) relocation_symbols; /* of all relocations, in the order they were made */
    ARRAY(Section *) relocation_sections;
    ARRAY(Condition) conditions;
    uint64_t macro_calls;

    IsaMode mode;
    Lenience lenience;
    bool in_bundle;
    Position bundle_at;
    Pending bundle[2];
    int bundle_count;

    ARRAY(ListingRow) listing;
    Section *row_section;
    uint64_t row_offset;
};

void assemble_statements(Assembler *as);
void assign_symbol(Assembler *as, Symbol *symbol, bool once); /* = .set .equiv */
const Directive *find_directive(const char *name, size_t length);

/* condition.c: what a line that is not assembled may still do. */
enum ConditionKind {
    IF_NOT_ZERO,
    IF_ZERO,
    IF_LESS,
    IF_GREATER,
    IF_LESS_EQUAL,
    IF_GREATER_EQUAL,
    IF_DEFINED,
    IF_NOT_DEFINED,
    IF_SAME,
    IF_DIFFERENT,
    IF_BLANK,
    IF_NOT_BLANK,
    IF_EQUAL_STRINGS,
    IF_UNEQUAL_STRINGS
};
bool skipping(const Assembler *as);
void skip_inactive(Assembler *as);
void condition_if(Assembler *as, int kind);
void condition_else_if(Assembler *as, int unused);
void condition_else(Assembler *as, int unused);
void condition_end(Assembler *as, int unused);

/* macro.c */
void macro_define(Assembler *as, int unused);
void macro_stray_end(Assembler *as, int unused);
void macro_exit(Assembler *as, int unused);
void macro_purge(Assembler *as, int unused);
void macro_repeat(Assembler *as, int unused);
void macro_for_each(Assembler *as, int characters);
void macro_call(Assembler *as, Macro *macro);

/* instruction.c */
void assemble_instruction(Assembler *as, const Word *mnemonic);
int64_t field_value(const OperandInfo *operand, const Expression *expression);
/* The value brought into the operand's range by dropping bits (.allow_invalid_operands). */
int64_t forced_value(const OperandInfo *operand, int64_t value);
bool value_fits(const OperandInfo *operand, int64_t value);

/* rules.c: placing instructions. */
void bundle_begin(Assembler *as);
void bundle_end(Assembler *as);
void place_instruction(Assembler *as, const Pending *pending);
void check_repeats(Assembler *as);
/* Reports a broken rule as the switches say; true when assembly may go on as if it were kept. */
PRINTF_LIKE(4, 5)
bool rule_broken(Assembler *as, uint8_t lenience, const Position *at, const char *format, ...);

/* finish.c */
void finish(Assembler *as, AsObject *out);

/* listing.c */
void listing_note(Assembler *as);
void listing_write(Assembler *as);

/* constants.c */
const char *builtin_source(const char *name);
bool builtin_constant(const char *name, int64_t *value);

#endif
