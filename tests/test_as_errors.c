/* libraries: as */
/* test_as_errors.c - what the assembler says: places, the macro stack, several errors in one run;
 * and what it prints: the listing, and disassembly that assembles to the same words again. */
#include "assembly.h"

static void places_and_several_errors(void **state)
{
    (void)state;
    expect_error(
        "nop\n  add $m0, $m1, $a2\nnop ; bogus $m1\n\tsetzi $m0, 1 << 20\n.word )\n.strange\n",
        "test.S:2:17: invalid operand for instruction add, expected $m0..$m15 or an immediate "
        "-32768..32767 or an immediate 0..65535\n"
        "test.S:3:7: unknown instruction or macro 'bogus'\n"
        "test.S:4:13: immediate 1048576 is out of range, expected an immediate 0..1048575\n"
        "test.S:5:7: expected an expression\n"
        "test.S:6:1: unknown directive .strange");
    expect_error("add $m0, $m1", "test.S:1:1: 2 operands, expected add $op0, $op1, $op2");
    expect_error("ld32step $a0, $mzero, $m0++, 1", "test.S:1:23: invalid operand post-inc suffix");
    expect_error(".worker nop", "test.S:1:9: unexpected 'nop', expected the end of the statement");
    expect_error("/* two\nlines */ bogus", "test.S:2:10: unknown instruction or macro 'bogus'");
    expect_error("# 1 \"a.S\"\n# 1 \"<built-in>\"\n# 1 \"a.S\"\n\n# 1 \"b.h\" 1\nnop\n  odd\n# 3 "
                 "\"a.S\" 2\n bogus",
                 "b.h:2:3: unknown instruction or macro 'odd'\n"
                 "a.S:3:2: unknown instruction or macro 'bogus'");
    expect_error("# 40 \"k.S\"\nbogus", "k.S:40:1: unknown instruction or macro 'bogus'");
    expect_error(".ascii \"abc", "test.S:1:8: string without closing quote");
    expect_error(".word 12ab", "test.S:1:7: malformed number");
    expect_error("$m0", "test.S:1:1: expected a label, a directive or an instruction");
    expect_error(".error \"stop here\"", "test.S:1:1: stop here");
}

static void numbers_that_do_not_fit(void **state)
{
    (void)state;
    expect_error(".float 1.5, 1e999", "test.S:1:13: number is too large (infinity is inf)");
    expect_error(".double 1e999", "test.S:1:9: number is too large (infinity is inf)");
    expect_error(".float 1, -1e39",
                 "test.S:1:11: -1e+39 is too large for 4 bytes (infinity is inf)");
    Text warnings = {0};
    Assembled result =
        assembled_with(".float inf, -inf, 3.4e38\n.double 1e39\n.word 1 << 200, 8 >> -1\n"
                       ".word 1 << 63 >> 60",
                       &(AsOptions){.warnings = &warnings});
    assert_ok(result.status);
    assert_int_equal(load_u32(result.object.sections[0].data + 20), 0);
    assert_string_equal(
        text_string(&warnings),
        "test.S:3:1: warning: shift count 200 is not between 0 and 63: the result is 0\n"
        "test.S:3:1: warning: shift count -1 is not between 0 and 63: the result is 0");
    text_free(&warnings);
    assembled_free(&result);
}

static void defines_are_checked(void **state)
{
    (void)state;
    AsDefine define = {"X", ")"};
    Assembled result = assembled_with("nop", &(AsOptions){.defines = &define, .define_count = 1});
    assert_string_equal(status_message(result.status),
                        "<command line>:1:9: expected an expression");
    assembled_free(&result);
}

static void errors_found_at_the_end(void **state)
{
    (void)state;
    expect_error("nop\n  and $m0, $m1, b - a\na: .space 5000\nb:\n",
                 "test.S:2:3: immediate 5000 is out of range, expected 0..4095");
    expect_error(
        ".data\nx: .byte 0\n.text\ny: .word y - x, 1",
        "test.S:4:10: this must be a constant, or one symbol plus a constant: its symbols are "
        "undefined or in different sections");
    expect_error(".data\n.byte big\n.set big, 300", "test.S:2:7: 300 does not fit into 1 bytes");
}

static void macro_stack(void **state)
{
    (void)state;
    expect_error(
        ".macro inner r\n  add \\r, $a0, 1\n.endm\n.macro outer\n.rept 2\n inner $m1\n.endr\n"
        ".endm\nnop\n outer\n",
        "test.S:2:12: invalid operand for instruction add, expected $m0..$m15\n"
        "    in macro inner from test.S:6:2\n"
        "    in .rept from test.S:5:1\n"
        "    in macro outer from test.S:10:2\n"
        "test.S:2:12: invalid operand for instruction add, expected $m0..$m15\n"
        "    in macro inner from test.S:6:2\n"
        "    in .rept from test.S:5:1\n"
        "    in macro outer from test.S:10:2");
    expect_error(".irp x, 1, 2\nnop\n.if \\x - 1\n bogus\n.endif\n.endr",
                 "test.S:4:2: unknown instruction or macro 'bogus'\n    in .irp from test.S:1:1");
    expect_error(".macro late\n.word end * 2\n.endm\nlate",
                 "test.S:2:7: symbol 'end' is not defined, and this is more than a symbol plus a "
                 "constant\n    in macro late from test.S:4:1");
}

static void many_errors_stop(void **state)
{
    (void)state;
    Assembled result = assembled_with(".rept 100000\nbogus\n.endr", NULL);
    const char *message = status_message(result.status);
    assert_true(strlen(message) < 20000);
    assert_non_null(strstr(message, "too many errors"));
    assembled_free(&result);
}

static void listing(void **state)
{
    (void)state;
    Text text = {0};
    AsOptions options = {.listing = &text};
    Assembled result =
        assembled_with(".macro two n\n add $m0, $m0, \\n\n nop\n.endm\nstart: two 7\n"
                       " bri start // back\n.data\n.word start, 1\n.byte 2\n",
                       &options);
    assert_ok(result.status);
    assert_string_equal(text_string(&text), "section .text\n"
                                            "    1                          .macro two n\n"
                                            "    5                          start: two 7\n"
                                            "    2 000000 22000007             add $m0, $m0, 7\n"
                                            "    3 000004 19e00000             nop\n"
                                            "    6 000008 40800000           bri start // back\n"
                                            "section .data\n"
                                            "    7                          .data\n"
                                            "    8 000000 00 00 00 00 01 00 00 00 .word start, 1\n"
                                            "    9 000008 02                .byte 2\n");
    text_free(&text);
    assembled_free(&result);
}

static uint32_t random_u32(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = *seed ^ *seed >> 29;
    return (uint32_t)(x * 0xbf58476d1ce4e5b9u >> 32);
}

/* Puts the addresses of labels, which are offsets from `base`, where the linker would. */
static void settle_targets(const AsObject *object, uint32_t *words, uint32_t base)
{
    const AsSection *section = &object->sections[0];
    for (uint32_t i = 0; i < section->relocation_count; i++) {
        const AsRelocation *relocation = &section->relocations[i];
        assert_int_equal(relocation->type, RELOC_19_S2);
        words[relocation->offset / 4] |= (base + (uint32_t)relocation->addend) >> 2 & 0x7ffff;
    }
}

/* Any words, listed and assembled again in lenient mode, give the same words. */
static void listings_assemble_again(void **state)
{
    (void)state;
    enum { COUNT = 400, ROUNDS = 60 };
    const uint32_t base = 0x4c018;
    uint64_t seed = 11;
    for (int round = 0; round < ROUNDS; round++) {
        IsaMode mode = round % 2 ? MODE_SUPERVISOR : MODE_WORKER;
        uint32_t words[COUNT];
        for (int i = 0; i < COUNT; i++) {
            const FormInfo *form = isa_form((Form)(1 + random_u32(&seed) % (FORM_COUNT - 1)));
            words[i] = random_u32(&seed) % 8 ? form->match | (random_u32(&seed) & ~form->mask)
                                             : random_u32(&seed);
            if (form->operands[0].kind == OPERAND_TARGET && random_u32(&seed) % 2)
                words[i] =
                    isa_word(FORM_bri_mmmn_zi, (int32_t)(base + random_u32(&seed) % COUNT * 4));
            if (form->coissue && form->lane == LANE_MAIN && i + 1 < COUNT &&
                random_u32(&seed) % 2) {
                words[i] |= 1u << 31;
                words[++i] = isa_word(FORM_f32add_aaan, 1, 2, 3) | 1u << 31;
            }
        }
        Text text = {0};
        text_printf(&text,
                    ".allow_invalid_repeat\n.allow_invalid_bundles\n.allow_invalid_operands\n%s\n",
                    mode == MODE_SUPERVISOR ? ".supervisor" : ".worker");
        isa_listing(&text, words, COUNT, base, mode);
        Assembled result = assembled_with(text_string(&text), NULL);
        if (!status_ok(result.status))
            fail_msg("%s", status_message(result.status));
        assert_int_equal(result.object.sections[0].bytes, sizeof words);
        uint32_t again[COUNT];
        memcpy(again, result.object.sections[0].data, sizeof again);
        settle_targets(&result.object, again, base);
        for (int i = 0; i < COUNT; i++)
            if (again[i] != words[i])
                fail_msg("word %d: %08x came back as %08x\n%s", i, words[i], again[i],
                         text_string(&text));
        assembled_free(&result);
        text_free(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_and_several_errors),
        cmocka_unit_test(numbers_that_do_not_fit),
        cmocka_unit_test(defines_are_checked),
        cmocka_unit_test(errors_found_at_the_end),
        cmocka_unit_test(macro_stack),
        cmocka_unit_test(many_errors_stop),
        cmocka_unit_test(listing),
        cmocka_unit_test(listings_assemble_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
