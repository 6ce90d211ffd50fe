/* libraries: as */
/* test_as_vectors.c - every encoding vector: its text assembles to its words, what the words print
 * as assembles to them again; and texts that must be refused are. Vectors that need symbols are in
 * test_obj_link.c. */
#include "check.h"

#include "as/as.h"

#include <string.h>

#define DATA SOURCE_DIR "/tests/data/isa/"

typedef void RowBody(char **columns, int count, void *context);
static void for_rows(const char *path, RowBody *row, void *context)
{
    Bytes file;
    assert_ok(file_read(path, FILE_LIMIT_TEXT, &file));
    char *line = strchr((char *)file.data, '\n') + 1, *end;
    for (; (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        char *columns[12] = {0};
        int count = 0;
        for (char *c = line; c && count < 12; count++) {
            columns[count] = c;
            if ((c = strchr(c, '\t')))
                *c++ = 0;
        }
        row(columns, count, context);
    }
    bytes_free(&file);
}

/* Assembles text in a mode; true when it gives just words of .text, without relocations. */
static bool words_in_mode(const char *text, bool supervisor, uint32_t *words, uint32_t *count)
{
    Arena arena = {0};
    AsObject object;
    AsOptions options = {.supervisor = supervisor};
    bool good = !status_discard(assemble(&arena, "vector", text, strlen(text), &options, &object));
    if (good) {
        *count = object.sections[0].bytes / 4;
        good = *count <= 4 && object.sections[0].relocation_count == 0;
        if (good)
            memcpy(words, object.sections[0].data, *count * 4);
    }
    arena_free(&arena);
    return good;
}

static bool words_of(const char *instruction, uint32_t *words, uint32_t *count)
{
    char text[300]; /* a lone rpt has no body here */
    snprintf(text, sizeof text, ".allow_invalid_repeat\n%s", instruction);
    return words_in_mode(text, false, words, count) || words_in_mode(text, true, words, count);
}

typedef struct Counts {
    int rows, exact, twins, skipped;
} Counts;

static void print_word(uint32_t word, char *text, size_t size)
{
    Insn insn;
    assert_true(isa_decode(word, 0, MODE_BOTH, &insn));
    isa_print(&insn, MODE_BOTH, text, size);
}

/* Two encodings of one meaning that print as one text: "max $m0, $m1, 0" is the signed and the
 * zero-extended form, "and $a0, $a1, 0" the low and the high one. The vectors have both; the text
 * assembles to the first. */
static bool is_twin(uint32_t a, uint32_t b)
{
    Insn x, y;
    char one[100], two[100];
    if (!isa_decode(a, 0, MODE_BOTH, &x) || !isa_decode(b, 0, MODE_BOTH, &y))
        return false;
    print_word(a, one, sizeof one);
    print_word(b, two, sizeof two);
    const FormInfo *form = isa_form((Form)x.form), *other = isa_form((Form)y.form);
    return x.form != y.form && !strcmp(form->mnemonic, other->mnemonic) &&
           !memcmp(x.operand, y.operand, sizeof x.operand) && !strcmp(one, two);
}

static void vector_assembles(char **columns, int count, void *context)
{
    Counts *counts = context;
    assert_true(count >= 3);
    if (strcmp(columns[2], "both"))
        return;
    if (strstr(columns[4], "disabled upstream")) { /* not in the instruction table */
        counts->skipped++;
        return;
    }
    uint32_t wanted = (uint32_t)strtoul(columns[1], NULL, 0), words[4], n = 0;
    counts->rows++;
    if (!words_of(columns[0], words, &n) || n != 1)
        fail_msg("%s does not assemble", columns[0]);
    if (words[0] == wanted)
        counts->exact++;
    else if (is_twin(words[0], wanted))
        counts->twins++;
    else
        fail_msg("%s: %08x instead of %08x", columns[0], words[0], wanted);
    char text[100]; /* the printed text assembles to the same word, branch targets aside */
    print_word(words[0], text, sizeof text);
    if (!strstr(text, "0x") && (!words_of(text, words + 1, &n) || words[1] != words[0]))
        fail_msg("%s is printed as %s, which assembles differently", columns[0], text);
}

static void vectors_assemble(void **state)
{
    (void)state;
    Counts counts = {0};
    for_rows(DATA "vectors.tsv", vector_assembles, &counts);
    print_message("vectors: %d rows, %d exact, %d twins\n", counts.rows, counts.exact,
                  counts.twins);
    assert_int_equal(counts.rows, 1775 - 16);
    assert_int_equal(counts.skipped, 16);
    assert_int_equal(counts.exact + counts.twins, counts.rows);
    assert_true(counts.twins < 40);
}

/* The file writes several lines in one: "newline" and notes in brackets stand for themselves. */
static void expand_negative(const char *text, char *out)
{
    if (!strncmp(text, ".supervisor ; rpt ...", 21)) {
        strcpy(out, ".supervisor ; rpt 0, 0");
        return;
    }
    while (*text) {
        if (!strncmp(text, "newline", 7)) {
            *out++ = '\n';
            text += 7;
        } else if (!strncmp(text, "end-of-file", 11)) {
            text += 11;
        } else if (!strncmp(text, "  (", 3)) {
            break;
        } else {
            *out++ = *text++;
        }
    }
    *out = 0;
}

static bool needs_message(const char *wanted, const char *got)
{
    static const char *const exact[] = {
        "cannot be used in Worker mode",           "cannot be used in Supervisor mode",
        "instruction requires: Worker mode",       "instruction requires: Supervisor mode",
        "too many instructions in bundle",         "too few instructions in bundle",
        "end of instruction bundle without start", "empty instruction bundle",
        "start of instruction bundle without end", "instruction bundle without end",
        "missing h suffix from float16 operand",
    };
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
        if (strstr(wanted, exact[i]))
            return strstr(got, exact[i]) != NULL;
    return true;
}

static void negative_is_refused(char **columns, int count, void *context)
{
    char text[300];
    (void)count;
    if (!strncmp(columns[0], ".word", 5) || strstr(columns[1], "lld:"))
        return; /* of the disassembler and the linker: test_isa_table.c, test_obj_link.c */
    expand_negative(columns[0], text);
    Arena arena = {0};
    AsObject object;
    Status status = assemble(&arena, "negative", text, strlen(text), NULL, &object);
    if (status_ok(status))
        fail_msg("%s is not refused", columns[0]);
    if (!needs_message(columns[1], status_message(status)))
        fail_msg("%s: %s instead of %s", columns[0], status_message(status), columns[1]);
    status_free(status);
    arena_free(&arena);
    ++*(int *)context;
}

static void negatives_are_refused(void **state)
{
    (void)state;
    int rows = 0;
    for_rows(DATA "vectors-negative.tsv", negative_is_refused, &rows);
    print_message("refused: %d\n", rows);
    assert_int_equal(rows, 105 - 24 - 1);
}

static void constant_is_known(char **columns, int count, void *context)
{
    uint32_t words[4], n = 0;
    char text[200];
    assert_true(count >= 2);
    snprintf(text, sizeof text, ".word %s", columns[0]);
    if (!words_of(text, words, &n) || n != 1)
        fail_msg("%s is not known", columns[0]);
    if (words[0] != strtoul(columns[1], NULL, 0))
        fail_msg("%s is 0x%x instead of %s", columns[0], words[0], columns[1]);
    ++*(int *)context;
}

static void constants_are_known(void **state)
{
    (void)state;
    int rows = 0;
    for_rows(DATA "constants.tsv", constant_is_known, &rows);
    assert_int_equal(rows, 101);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_assemble),
        cmocka_unit_test(negatives_are_refused),
        cmocka_unit_test(constants_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
