/* libraries: isa */
/* test_isa_table.c - the instruction table: against an independent transcription, against vectors,
 * and against itself over the 32-bit space. */
#include "check.h"

#include "isa/isa.h"

#include <ctype.h>
#include <string.h>

#define DATA SOURCE_DIR "/tests/data/isa/"

/* A tab-separated file with one heading line: calls row() for every other line. */
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

/* Text without the spaces, numbers in decimal. */
static void normalize(const char *text, char *out)
{
    while (*text) {
        bool word = out[-1] == '$' || isalnum((unsigned char)out[-1]);
        if (isdigit((unsigned char)*text) && !word) {
            char *end;
            out += sprintf(out, "%llu", strtoull(text, &end, 0));
            text = end;
        } else if (*text == ' ' && word && isdigit((unsigned char)text[1])) {
            *out++ = *text++; /* "setzi 1" */
        } else if (*text == ' ') {
            text++;
        } else {
            *out++ = *text++;
        }
    }
    *out = 0;
}

static bool same_text(const char *a, const char *b)
{
    char x[300] = " ", y[300] = " ";
    normalize(a, x + 1);
    normalize(b, y + 1);
    return !strcmp(x, y);
}

/* "adds" and "addz" are other names of "add"; the words tell which is meant. */
static bool same_but_for_sign_suffix(const char *a, const char *b)
{
    size_t n = strcspn(a, " "), m = strcspn(b, " ");
    bool longer = n == m + 1 && strchr("sz", a[n - 1]),
         shorter = m == n + 1 && strchr("sz", b[m - 1]);
    size_t stem = n < m ? n : m;
    return (longer || shorter) && !strncmp(a, b, stem) && same_text(a + n, b + m);
}

static void print_words(const uint32_t *words, int count, char *text, size_t size)
{
    Insn first, second;
    assert_true(isa_decode(words[0], words[1], MODE_BOTH, &first));
    if (count == 1 || !first.bundled) {
        isa_print(&first, MODE_BOTH, text, size);
        return;
    }
    assert_true(isa_decode(words[1], 0, MODE_BOTH, &second));
    char one[100], two[100];
    isa_print(&first, MODE_BOTH, one, sizeof one);
    isa_print(&second, MODE_BOTH, two, sizeof two);
    snprintf(text, size, "{ %s ; %s }", one, two);
}

typedef struct Counts {
    int rows, exact, suffix, expression, shorthand, skipped;
} Counts;

static void vector_prints(char **columns, int count, void *context)
{
    Counts *counts = context;
    assert_true(count >= 3);
    if (!strcmp(columns[2], "assemble"))
        return;
    if (strstr(columns[4], "disabled upstream")) { /* f32v2getacc, f32v2putacc: not in the table */
        counts->skipped++;
        return;
    }
    char *rest;
    uint32_t words[2] = {(uint32_t)strtoul(columns[1], &rest, 0), 0};
    int n = *rest == ' ' ? (words[1] = (uint32_t)strtoul(rest, NULL, 0), 2) : 1;
    char text[256];
    print_words(words, n, text, sizeof text);
    counts->rows++;
    if (same_text(text, columns[0]))
        counts->exact++;
    else if (same_but_for_sign_suffix(text, columns[0]))
        counts->suffix++;
    else if (strchr(columns[0], '+') && strstr(columns[0], " + "))
        counts->expression++; /* text with an expression: only its value can be printed */
    else if (!strncmp(columns[0], "st64 $a", 7) && strstr(columns[0], ", $m2, 0") &&
             strstr(text, ", $m2, $m15, 0"))
        counts->shorthand++; /* two-part address; $apN: input forms, printed in full */
    else
        fail_msg("%s: printed as %s", columns[0], text);
}

static void vectors_print(void **state)
{
    (void)state;
    Counts counts = {0};
    for_rows(DATA "vectors.tsv", vector_prints, &counts);
    print_message("vectors: %d rows, %d exact, %d by sign suffix, %d expressions, "
                  "%d shorthands\n",
                  counts.rows, counts.exact, counts.suffix, counts.expression, counts.shorthand);
    assert_int_equal(counts.rows + counts.skipped, 1902);
    assert_int_equal(counts.skipped, 16);
}

/* instructions.tsv is the transcription that instructions.def was made from; bits, mode and lane of
 * every row must still be the same. */
static void row_is_in_table(char **columns, int count, void *context)
{
    const char *name = strcmp(columns[0], "trap_mmmn_zi") ? columns[0] : "trap";
    uint32_t mask = 0, match = 0;
    assert_true(count >= 6);
    for (int i = 0; i < 32; i++)
        if (columns[5][i] == '0' || columns[5][i] == '1') {
            mask |= 1u << (31 - i);
            match |= (uint32_t)(columns[5][i] - '0') << (31 - i);
        }
    for (int i = 1; i < FORM_COUNT; i++) {
        const FormInfo *form = isa_form((Form)i);
        if (strcmp(form->name, name))
            continue;
        assert_int_equal(form->mask, mask);
        assert_int_equal(form->match, match);
        assert_int_equal(form->mode, columns[2][0] == 'C'   ? MODE_BOTH
                                     : columns[2][0] == 'W' ? MODE_WORKER
                                                            : MODE_SUPERVISOR);
        assert_int_equal(form->lane, columns[3][0] == 'M' ? LANE_MAIN : LANE_AUX);
        assert_int_equal(form->coissue, columns[4][0] == '1');
        assert_int_equal(!!(form->flags & FORM_LOAD), !!strstr(columns[7], "load"));
        assert_int_equal(!!(form->flags & FORM_STORE), !!strstr(columns[7], "store"));
        assert_int_equal(!!(form->flags & FORM_CONTROL), !!strstr(columns[7], "control"));
        assert_int_equal(!!(form->flags & FORM_SYSTEM), !!strstr(columns[7], "system"));
        ++*(int *)context;
        return;
    }
    fail_msg("%s is not in the table", columns[0]);
}

static void table_is_the_transcription(void **state)
{
    (void)state;
    int rows = 0;
    for_rows(DATA "instructions.tsv", row_is_in_table, &rows);
    assert_int_equal(rows, 359);
    assert_int_equal(FORM_COUNT - 1, 359 + 9); /* and the exchange and synchronisation forms */
}

static void forms_are_disjoint(void **state)
{
    (void)state;
    for (int i = 1; i < FORM_COUNT; i++)
        for (int k = 1; k < i; k++) {
            const FormInfo *a = isa_form((Form)i), *b = isa_form((Form)k);
            if (((a->match ^ b->match) & a->mask & b->mask) == 0)
                fail_msg("%s and %s share words", a->name, b->name);
        }
}

static uint32_t random_u32(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = *seed ^ *seed >> 29;
    return (uint32_t)(x * 0xbf58476d1ce4e5b9u >> 32);
}

static bool round_trip(uint32_t word)
{
    Insn insn;
    uint32_t words[2];
    if (!isa_decode(word, ~word, MODE_BOTH, &insn))
        return false;
    assert_ok(isa_encode(&insn, words));
    if (words[0] != word || words[1] != (insn.words == 2 ? ~word : 0))
        fail_msg("%08x decodes as %s, which encodes to %08x", word, isa_form((Form)insn.form)->name,
                 words[0]);
    return true;
}

/* Steps over the whole space, and random operands for every form. */
static void encode_is_inverse_of_decode(void **state)
{
    (void)state;
    uint64_t decoded = 0, seed = 3;
    for (uint64_t word = 0; word < (uint64_t)1 << 32; word += 487)
        decoded += round_trip((uint32_t)word);
    for (int i = 1; i < FORM_COUNT; i++) {
        const FormInfo *form = isa_form((Form)i);
        unsigned own = 0;
        for (int n = 0; n < 4096; n++) {
            uint32_t word = form->match | (random_u32(&seed) & ~form->mask);
            Insn insn;
            own += round_trip(word);
            if (isa_decode(word, 0, MODE_BOTH, &insn))
                assert_int_equal(insn.form, i);
        }
        assert_true(own > 100); /* some fields allow only even registers or quads */
    }
    print_message("%llu sampled words decode\n", (unsigned long long)decoded);
    assert_true(decoded > 1000000);
}

static void decoding_respects_mode(void **state)
{
    (void)state;
    Insn insn;
    uint32_t run = isa_word(FORM_run_mmmn_zi, 1, 2, 0x50000);
    assert_false(isa_decode(run, 0, MODE_WORKER, &insn));
    assert_true(isa_decode(run, 0, MODE_SUPERVISOR, &insn));
    assert_int_equal(insn.operand[2], 0x50000);
    assert_false(isa_decode(run | 1u << 31, 0, MODE_BOTH, &insn));
    uint32_t exit = isa_word(FORM_exitz_mmmn, 15);
    assert_false(isa_decode(exit, 0, MODE_SUPERVISOR, &insn));
    assert_true(isa_decode(exit, 0, MODE_WORKER, &insn));
}

/* Words from vendor-made rows. */
static void exchange_words(void **state)
{
    (void)state;
    assert_int_equal(isa_word(FORM_send, 2, 82041 % (1 << 18), 3), 0x782a03cb);
    assert_int_equal(isa_word(FORM_send, 2, 82043, 3), 0x782a03db);
    assert_int_equal(isa_word(FORM_send, 3, 0, 1), 0x78400001);
    assert_int_equal(isa_word(FORM_send, 64, 0, 2), 0x7fe00002);
    assert_int_equal(isa_word(FORM_sendoff, 1, 0, 2), 0x70000002);
    assert_int_equal(isa_word(FORM_sendoff, 4084, 0, 1), 0x766fc001);
    assert_int_equal(isa_word(FORM_delay, 135), 0x40a00086);
    assert_int_equal(isa_word(FORM_delaypic, 49, 0, 0), 0x61800000);
    assert_int_equal(isa_word(FORM_delayxpic, 113, 0, 0), 0x641c0000);
    assert_int_equal(isa_word(FORM_delayxpic, 3, 0, 0x640), 0x64008640);
    assert_int_equal(isa_word(FORM_sync, 15), 0x4180000f);
    assert_int_equal(isa_word(FORM_sans, 1), 0x40c00001);
    assert_int_equal(isa_word(FORM_trap, 1), 0x41801001);
    Insn insn = {
        .form = FORM_sendpicp, .words = 2, .operand = {43, 0x14021, 1, 0}, .payload = 0x19015000};
    uint32_t words[2];
    assert_ok(isa_encode(&insn, words));
    assert_int_equal(words[0], 0xf54a0109);
    char text[100];
    isa_print(&insn, MODE_SUPERVISOR, text, sizeof text);
    assert_string_equal(text, "sendpicp 43, 81953, 1, 0, 86016, 0, 1600");
    insn = (Insn){.form = FORM_send, .operand = {65, 0, 1}};
    assert_true(status_discard(isa_encode(&insn, words)));
    insn = (Insn){.form = FORM_send, .operand = {0, 0, 1}};
    assert_true(status_discard(isa_encode(&insn, words)));
}

static void operands_are_checked(void **state)
{
    (void)state;
    const Insn wrong[] = {
        {.form = FORM_add_mmmn, .operand = {16, 0, 0}},
        {.form = FORM_add_mmmn_si, .operand = {0, 0, 32768}},
        {.form = FORM_add_mmmn_zi, .operand = {0, 0, -1}},
        {.form = FORM_or_mmmn_iz, .operand = {0, 0, 1 << 19}},
        {.form = FORM_bri_mmmn_zi, .operand = {2}},
        {.form = FORM_bri_mmmn_zi, .operand = {1 << 21}},
        {.form = FORM_or64_aaan, .operand = {1, 0, 0}},
        {.form = FORM_f16v8acc_aaan, .operand = {2}},
        {.form = FORM_run_mmmn_zi, .operand = {0, 0, 0x4bffc}},
        {.form = FORM_run_mmmn_zi, .operand = {0, 0, 0x4c000}, .bundled = true},
        {.form = FORM_INVALID},
        {.form = FORM_COUNT},
    };
    uint32_t words[2];
    for (size_t i = 0; i < countof(wrong); i++)
        assert_true(status_discard(isa_encode(&wrong[i], words)));
    const Insn right = {.form = FORM_or_mmmn_iz, .operand = {4, 4, (int32_t)0xe0000000}};
    assert_ok(isa_encode(&right, words));
    assert_int_equal(words[0], 0x4244ce00);
}

static void csr_names_depend_on_mode(void **state)
{
    (void)state;
    assert_int_equal(isa_csr_number("WSR", MODE_WORKER), 1);
    assert_int_equal(isa_csr_number("WSR", MODE_SUPERVISOR), -1);
    assert_int_equal(isa_csr_number("SSR", MODE_SUPERVISOR), 1);
    assert_int_equal(isa_csr_number("FP_CTL", MODE_WORKER), 0x102);
    assert_int_equal(isa_csr_number("WORKER5_BASE", MODE_SUPERVISOR), 0x26);
    assert_int_equal(isa_csr_number("CWEI_3_2", MODE_SUPERVISOR), 14);
    assert_int_equal(isa_csr_number("CWEI_3_4", MODE_SUPERVISOR), -1);
    assert_string_equal(isa_csr_name(2, MODE_WORKER), "VERTEX_BASE");
    assert_string_equal(isa_csr_name(2, MODE_SUPERVISOR), "CR");
    assert_null(isa_csr_name(0xff, MODE_BOTH));
}

static void csr_is_known(char **columns, int count, void *context)
{
    assert_true(count >= 3);
    if (!strncmp(columns[0], "CWEI", 4))
        return;
    int number = (int)strtol(columns[2], NULL, 0);
    bool supervisor = columns[1][0] == 's', both = columns[1][0] == 'b';
    IsaMode mode = supervisor ? MODE_SUPERVISOR : MODE_WORKER;
    assert_int_equal(isa_csr_number(columns[0], mode), number);
    assert_string_equal(isa_csr_name((uint32_t)number, mode), columns[0]);
    IsaMode other = supervisor ? MODE_WORKER : MODE_SUPERVISOR;
    assert_int_equal(isa_csr_number(columns[0], other), both ? number : -1);
    ++*(int *)context;
}

static void csr_table(void **state)
{
    (void)state;
    int rows = 0;
    for_rows(DATA "csr.tsv", csr_is_known, &rows);
    assert_int_equal(rows, 43);
}

static void odd_words_are_refused(char **columns, int count, void *context)
{
    Insn insn;
    (void)count;
    if (strncmp(columns[0], ".word ", 6))
        return;
    uint32_t word = (uint32_t)strtoul(columns[0] + 6, NULL, 0);
    assert_false(isa_decode(word, 0, MODE_BOTH, &insn));
    ++*(int *)context;
}

static void negative_words(void **state)
{
    (void)state;
    int rows = 0;
    for_rows(DATA "vectors-negative.tsv", odd_words_are_refused, &rows);
    assert_int_equal(rows, 24);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_print),
        cmocka_unit_test(table_is_the_transcription),
        cmocka_unit_test(forms_are_disjoint),
        cmocka_unit_test(encode_is_inverse_of_decode),
        cmocka_unit_test(decoding_respects_mode),
        cmocka_unit_test(exchange_words),
        cmocka_unit_test(operands_are_checked),
        cmocka_unit_test(csr_names_depend_on_mode),
        cmocka_unit_test(csr_table),
        cmocka_unit_test(negative_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
