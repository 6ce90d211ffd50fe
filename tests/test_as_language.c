/* libraries: as */
/* test_as_language.c - the assembler's language: text and the words or bytes it must become. Words
 * are taken from the instruction table, whose encoding other tests check. */
#include "assembly.h"

#define NOP isa_word(FORM_setzi_mmmn_zi, 14, 0)
#define FNOP isa_word(FORM_setzi_aaan_zi, 13, 0)
#define ADD(d, s, n) isa_word(FORM_add_mmmn_si, d, s, n)
#define SETZI(d, n) isa_word(FORM_setzi_mmmn_zi, d, n)
#define B (1u << 31)

static void statements_and_comments(void **state)
{
    (void)state;
    expect_words("nop ; nop // comment ; nop\n # comment\nnop # comment\n", NOP, NOP, NOP);
    expect_words("/* a\n b */ nop /* c */ ; /**/ nop\r\n\tnop", NOP, NOP, NOP);
    expect_words("# 7 \"other.S\" 1\nnop\n#ordinary comment\n", NOP);
    expect_words("a: b: nop\nc :nop", NOP, NOP);
    expect_words(".set x, 3 ; add $m0, $m1, x ; x = 4 ; add $m0, $m1, x", ADD(0, 1, 3),
                 ADD(0, 1, 4));
    expect_words(".ascii \"a;b//\"\n.byte '#', ';', '\\n'", 'a' | ';' << 8 | 'b' << 16 | '/' << 24,
                 '/' | '#' << 8 | ';' << 16 | '\n' << 24);
}

static void registers(void **state)
{
    (void)state;
    expect_words("add $bp, $fp, $lr ; add $sp, $mworker_base, $mvertex_base ; zero $m0",
                 isa_word(FORM_add_mmmn, 8, 9, 10), isa_word(FORM_add_mmmn, 11, 12, 13),
                 isa_word(FORM_or_mmmn, 0, 15, 15));
    expect_words("or64 $a0:1, $ap2, $azeros ; or64 $ap7, $ap14, $ap15",
                 isa_word(FORM_or64_aaan, 0, 4, 14), isa_word(FORM_or64_aaan, 14, 14, 14));
    expect_words("f16v8acc $aq1 ; f16v8acc $a8:11 ; f16v8acc $aq15",
                 isa_word(FORM_f16v8acc_aaan, 4), isa_word(FORM_f16v8acc_aaan, 8),
                 isa_word(FORM_f16v8acc_aaan, 12));
    expect_words(
        "f16v2add $a0, $a1:BL, $azero ; f16v2add $a0, $a1:BU, $a2 ; f32v2mul $a0:1, $a3:B, "
        "$a4:5",
        isa_word(FORM_f16v2add_aaal, 0, 1, 15), isa_word(FORM_f16v2add_aaau, 0, 1, 2),
        isa_word(FORM_f32v2mul_aaat, 0, 3, 4));
    expect_error_with("or64 $a1:2, $a0:1, $a0:1", "must be aligned");
    expect_error_with("or64 $a0:2, $a0:1, $a0:1", "must be aligned");
    expect_words(".allow_invalid_operands\nor64 $a1:2, $a0:1, $a0:1",
                 isa_word(FORM_or64_aaan, 0, 0, 0));
    expect_error_with("add $m16, $m0, $m0", "unknown register $m16");
    expect_error_with("add $m01, $m0, $m0", "unknown register $m01");
    expect_error_with("f32v2mul $a0:1, $a3:BX, $a4:5", "expected the last register of a range");
}

static void addresses(void **state)
{
    (void)state;
    uint32_t full = isa_word(FORM_ld32_mmmn_zi, 1, 15, 7, 0);
    expect_words("ld32 $m0, $m1, $mzero, 7 ; ld32 $m0, $m1, 7", full, full);
    expect_words("ld32 $a0, $m1, $m2 ; ld32 $a0, $m1, $m3, $m2 ; st32 $m4, $m5, 4095",
                 isa_word(FORM_ld32_mman, 1, 15, 2, 0), isa_word(FORM_ld32_mman, 1, 3, 2, 0),
                 isa_word(FORM_st32_mmmn_zi, 5, 15, 4095, 4));
    expect_words("stm32 $m1, $m2, $m3", isa_word(FORM_stm32_mmmn, 2, 3, 1));
    expect_words("ld64step $a0:1, $mzero, $m3+=, -1",
                 isa_word(FORM_ld64step_mmbn_si, 15, 3, -1, 0));
    expect_words("tapack $m0:1, $m2, $m3, $m4", isa_word(FORM_tapack_mmmn, 2, 3, 4, 0));
    expect_error_with("ld32 $m0, $m1, 4096", "immediate 4096 is out of range, expected");
    expect_error_with("ld32 $m0, $m1, label\nlabel:", "must be a constant, not an address");
    expect_error_with("ld32step $m0, $m1, 4", "operands, expected ld32step $op3");
}

static void immediates(void **state)
{
    (void)state;
    expect_words("or $m0, $m1, 0xfff ; or $m0, $m1, 0xfff00000 ; or $m0, $m1, 0",
                 isa_word(FORM_or_mmmn_zi, 0, 1, 0xfff),
                 isa_word(FORM_or_mmmn_iz, 0, 1, (int32_t)0xfff00000),
                 isa_word(FORM_or_mmmn_zi, 0, 1, 0));
    expect_words("add $m0, $m1, 32767 ; add $m0, $m1, 32768 ; addz $m0, $m1, 1",
                 isa_word(FORM_add_mmmn_si, 0, 1, 32767), isa_word(FORM_add_mmmn_zi, 0, 1, 32768),
                 isa_word(FORM_add_mmmn_zi, 0, 1, 1));
    expect_words("setzi $a0, 1.0h ; setzi $a1, -2.0h ; setzi $a2, -infh ; setzi $a3, 65504.0h",
                 isa_word(FORM_setzi_aaan_zi, 0, 0x3c00), isa_word(FORM_setzi_aaan_zi, 1, 0xc000),
                 isa_word(FORM_setzi_aaan_zi, 2, 0xfc00), isa_word(FORM_setzi_aaan_zi, 3, 0x7bff));
    expect_words("sub $m0, $m1, 5 ; sub $m0, $m1, -7 ; sub $m0, 5, $m1 ; sub $m0, $m1, $m2",
                 ADD(0, 1, -5), ADD(0, 1, 7), isa_word(FORM_sub_mmmn_si, 0, 1, 5),
                 isa_word(FORM_sub_mmmn, 0, 2, 1));
    expect_error_with("sub $m0, $m1, 32768", "immediate is out of range");
    expect_words("ldconst $m3, 0x12345 ; ldconst $m3, 0xabcdef01 ; ldconst $a1, -1",
                 SETZI(3, 0x12345), SETZI(3, 0xdef01),
                 isa_word(FORM_or_mmmn_iz, 3, 3, (int32_t)0xabc00000),
                 isa_word(FORM_setzi_aaan_zi, 1, 0xfffff),
                 isa_word(FORM_or_aaan_iz, 1, 1, (int32_t)0xfff00000));
    expect_error_with("ldconst $m3, 0x100000000", "immediate is too large");
    expect_error_with("{ ldconst $m3, 1 ; fnop }", "macro instruction in bundle");
    expect_words(".allow_invalid_operands\nadd $m0, $m1, 65536+5", ADD(0, 1, 5));
    expect_words("bri 3 ; call $m10, 1 << 18", isa_word(FORM_bri_mmmn_zi, 12),
                 isa_word(FORM_call_mmmn_zi, 10, 1 << 20));
    expect_words(".supervisor\nrun $m0, $m1, 61680", 0x140f10f0);
    expect_words(".set there, 0x50000\nbri there ; bri there + 4",
                 isa_word(FORM_bri_mmmn_zi, 0x50000), isa_word(FORM_bri_mmmn_zi, 0x50004));
}

static void control_registers(void **state)
{
    (void)state;
    expect_words("get $m0, $WSR ; put $PC, $m1", isa_word(FORM_get_mmmn_zi, 0, 1),
                 isa_word(FORM_put_mmmn_zi, 1, 0));
    expect_words(
        "uput $FP_CTL, $a1 ; put $FP_CLR, $a2 ; get $a3, $FP_STS ; uget $a0, 0x102 - 0x100",
        isa_word(FORM_uput_aaan_zi, 1, 2), isa_word(FORM_uput_aaan_zi, 2, 1),
        isa_word(FORM_uget_aaan_zi, 3, 0), isa_word(FORM_uget_aaan_zi, 0, 2));
    expect_words("uput CSR_W_FP_CTL__INDEX & CSR_UPPER_MASK, $a1",
                 isa_word(FORM_uput_aaan_zi, 1, 2));
    expect_words(".supervisor\nput $WORKER3_BASE, $m2 ; get $m1, $SSR ; ld64putcs $CWEI_3_2",
                 isa_word(FORM_put_mmmn_zi, 2, 0x24), isa_word(FORM_get_mmmn_zi, 1, 1),
                 isa_word(FORM_ld64putcs_mmmn_zi, 14));
    expect_error_with("put $FP_CTL, $m0", "invalid operand");
    expect_error_with("uput $WSR, $a0", "invalid operand");
    expect_error_with("get $m0, $NO_SUCH", "unknown register $NO_SUCH");
}

static void exchange_instructions(void **state)
{
    (void)state;
    expect_words(".supervisor\ndelay 135 ; delaypic 49, 0, 0 ; delayxpic 3, 0, 0x640\n"
                 "send 2, 82041, 3 ; sendoff 4084, 0, 1 ; sendpic 1, 2, 0x15000\n"
                 "sync TEXCH_SYNCZONE_LOCAL ; sans 1\n"
                 "sendpicp 43, 0x14021, 1, 0, 0x15000, 0, 0x640\ntrap 1",
                 0x40a00086, 0x61800000, 0x64008640, 0x782a03cb, 0x766fc001,
                 isa_word(FORM_sendpic, 1, 2, 0x15000), 0x41800002, 0x40c00001, 0xf54a0109,
                 0x19015000, 0x41801001);
    expect_error_with(".supervisor\nsend 65, 0, 1", "immediate 65 is out of range, expected an "
                                                    "immediate 1..64");
    expect_error_with("sync 1", "instruction requires: Supervisor mode");
    expect_error_with(".supervisor\nnop\nsendpicp 1, 0, 0, 0, 0, 0, 0", "multiple of 8 bytes");
}

static void bundles(void **state)
{
    (void)state;
    uint32_t main = ADD(0, 1, 2) | B, aux = isa_word(FORM_f32add_aaan, 0, 1, 2) | B;
    expect_words("{ add $m0, $m1, 2 ; f32add $a0, $a1, $a2 }", main, aux);
    expect_words("{ add $m0, $m1, 2\n f32add $a0, $a1, $a2 }", main, aux);
    expect_words("{\n\n add $m0, $m1, 2 // x\n\n f32add $a0, $a1, $a2\n}\nnop", main, aux, NOP);
    expect_words(".macro work\nadd $m0, $m1, 2\nf32add $a0, $a1, $a2\n.endm\n{ work }", main, aux);
    expect_words(".macro one n\nadd $m0, $m1, \\n\n.endm\n{ one 2 ; f32add $a0, $a1, $a2 }", main,
                 aux);
    expect_words("x: { add $m0, $m1, 2 ; f32add $a0, $a1, $a2 }", main, aux);
    expect_words("{ sub $m0, $m1, -2 ; fnop } ; { nop ; mov $a0, $a1 }", main, FNOP | B, NOP | B,
                 isa_word(FORM_or_aaan_zi, 0, 1, 0) | B);
    expect_error_with("{ ld32 $a0, $m0, 0 ; f32add $a0, $a1, $a2 }", "write the same register");
    expect_error_with("{ ld64 $a0:1, $m0, 0 ; f32add $a1, $a1, $a2 }", "write the same register");
    expect_error_with("{ ld32 $a15, $m0, 0 ; f32add $azero, $a1, $a2 }", "write the same register");
    expect_words(".allow_invalid_bundles\n{ ld32 $a0, $m0, 0 ; zero $a0 }",
                 isa_word(FORM_ld32_mman_zi, 0, 15, 0, 0) | B,
                 isa_word(FORM_or_aaan, 0, 15, 15) | B);
    expect_error_with("{ f32add $a0, $a1, $a2 ; nop }", "a bundle holds a main instruction");
    expect_words(".allow_optimizations\n{ f32add $a0, $a1, $a2 ; add $m0, $m1, 2 }", main, aux);
    expect_error_with("{ exitz $m0 ; fnop }", "exitz can not stand in a bundle");
    expect_error_with("{ add $m0, $m1, 2 ; x: fnop }", "label 'x' in the middle of a bundle");
    expect_error_with("{ add $m0, $m1, 2 ; .word 1 }", "data in an instruction bundle");
}

static void repeats(void **state)
{
    (void)state;
    uint32_t rpt = isa_word(FORM_rpt_mmmn_zi, 1, 0), body[2] = {NOP | B, FNOP | B};
    expect_words(".align 8\nnop\nrpt $m1, 0\n{ nop ; fnop }", NOP, rpt, body[0], body[1]);
    expect_words(".align 8\n{ rpt $m1, 0 ; fnop }\n{ nop ; fnop }", rpt | B, FNOP | B, body[0],
                 body[1]);
    expect_words(
        ".align 8\nnop\nrpt 100, ((2f - 1f) / 8) - 1\n1:\n{ nop ; fnop }\n{ nop ; fnop }\n2:", NOP,
        isa_word(FORM_rpt_mmmn_zi_zi, 100, 1), body[0], body[1], body[0], body[1]);
    expect_error_with(".align 8\nrpt $m1, 0\n{ nop ; fnop }", "body of rpt would not be aligned");
    expect_error_with("nop\nrpt $m1, 0\n{ nop ; fnop }", "aligned to 4 bytes only");
    expect_error_with(".align 8\nnop\nrpt $m1, 1\n{ nop ; fnop }", "runs over the end");
    expect_error_with(".align 8\nnop\nrpt $m1, 0\nnop\nnop", "holds something else than bundles");
    expect_error_with(".align 8\nnop\nrpt $m1, 0\n{ br $lr ; fnop }",
                      "control or system instruction");
    expect_error_with(".align 8\nnop\nrpt $m1, 0\n{ get $m0, 1 ; fnop }", "control or system");
    expect_words(".allow_invalid_repeat\nrpt $m1, 0\nnop", rpt, NOP);
    expect_words(".allow_optimizations\n.align 8\nnop\n{ rpt $m1, 0 ; fnop }\n{ nop ; fnop }", NOP,
                 rpt, body[0], body[1]);
    expect_error_with(".supervisor\nrpt $m1, 0", "instruction requires: Worker mode");
}

static void modes(void **state)
{
    (void)state;
    expect_words(".supervisor\nrunall $m0, $m1, 0\n.worker\nexitz $m0",
                 isa_word(FORM_runall_mmmn_zi, 0, 1, 0), isa_word(FORM_exitz_mmmn, 0));
    expect_words(".allow_invalid_execution_mode\nsync 2", isa_word(FORM_sync, 2));
    expect_error_with(".supervisor\nmov $a0, $a1", "instruction requires: Worker mode");
    Text warnings = {0};
    AsOptions options = {.warnings = &warnings};
    Assembled result = assembled_with(".warn_on_invalid_execution_mode\n  sync 2\n", &options);
    assert_ok(result.status);
    assert_string_equal(text_string(&warnings),
                        "test.S:2:3: warning: instruction requires: Supervisor mode");
    assembled_free(&result);
    text_free(&warnings);
}

static void labels_and_expressions(void **state)
{
    (void)state;
    expect_data("a: .word b - a, a - b ; b: .word (b - a) * 2 + 1, . - a", 8, 0, 0, 0, 0xf8, 0xff,
                0xff, 0xff, 17, 0, 0, 0, 12, 0, 0, 0);
    expect_data("1: .byte 1f - 1b\n1: .byte 1b - 1f\n.byte 5\n1:", 1, 0xfe, 5);
    expect_data(".byte 1 + 2 * 3, (1 + 2) * 3, 7 / 2, -7 / 2, 7 % 4, 1 << 3, 0x80 >> 4", 7, 9, 3,
                0xfd, 3, 8, 8);
    expect_data(".byte 6 | 1, 6 & 3, 6 ^ 3, ~0, !5, !0, 6 ! ~1, -(-3)", 7, 2, 5, 0xff, 0, 1, 7, 3);
    expect_data(".byte 1 + 2 | 4, 3 == 3, 3 != 3, 3 <> 4, 2 < 3, 2 >= 3, 1 && 0, 1 || 0", 7, 0xff,
                0, 0xff, 0xff, 0, 0, 1);
    expect_data(".byte 'a', '\\n', 0b101, 017, 0x1F, -128, 255", 'a', 10, 5, 15, 31, 0x80, 0xff);
    expect_data(".set x, 1\n.byte x\n.set x, x + 1\n.byte x\ny = x\n.set x, 9\n.byte y", 1, 2, 2);
    expect_data(".byte late\n.set late, 7", 7);
    expect_data(".set size, end - start\nstart: .byte size\nend:", 1);
    expect_error_with(".data\n.byte 256", "256 does not fit into 1 byte");
    expect_error_with(".data\n.byte -129", "does not fit");
    expect_error_with(".data\n.byte 1 / 0", "division by zero");
    expect_error_with("x: nop\nx: nop", "symbol 'x' is already defined");
    expect_error_with(".equiv x, 1\n.equiv x, 2", "symbol 'x' is already defined");
    expect_error_with("x: nop\n.set x, 2", "symbol 'x' is already defined");
    expect_error_with(".word 1b", "no local label 1 before this");
    expect_error_with(".data\n.byte a * 2", "symbol 'a' is not defined");
    expect_error_with(".set x, x + 1\n.globl x", "can not be settled");
}

static void data_directives(void **state)
{
    (void)state;
    expect_data(".byte 1, 2 ; .short 0x304 ; .half 0x506 ; .word 0x708 ; .quad -2", 1, 2, 4, 3, 6,
                5, 8, 7, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff);
    expect_data(".half 1.0h, -0.5h, 6.1035e-5h, 5.96e-8h, 1e9h, 2049.0h, 2051.0h", 0, 0x3c, 0, 0xb8,
                0, 4, 1, 0, 0, 0x7c, 0, 0x68, 2, 0x68);
    expect_data(".float 1.5, -2, inf ; .double 1.0", 0, 0, 0xc0, 0x3f, 0, 0, 0, 0xc0, 0, 0, 0x80,
                0x7f, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f);
    expect_data(".ascii \"a\\tb\\\"\\x41\\101\", \"c\" ; .asciz \"d\"", 'a', 9, 'b', '"', 'A', 'A',
                'c', 'd', 0);
    expect_data(".space 2 ; .space 2, 7 ; .skip 1 ; .zero 1 ; .fill 2, 2, 0x102 ; .fill 2", 0, 0, 7,
                7, 0, 0, 2, 1, 2, 1, 0, 0);
    expect_data(".byte 1\n.align 4\n.byte 2\n.p2align 3, 9\n.byte 3\n.balign 2", 1, 0, 0, 0, 2, 9,
                9, 9, 3, 0);
    expect_data(".byte 1\n.p2align 3, , 2\n.byte 2", 1, 2);
    expect_data(".byte 1\n.org 4, 5\n.byte 2\nx: .org x + 2", 1, 5, 5, 5, 2, 0, 0);
    expect_words("nop\n.align 16", NOP, NOP, NOP, NOP);
    expect_error_with(".data\n.word 1\n.org 2", ".org can not move back");
    expect_error_with(".bss\n.word 1", "section .bss holds no bytes");
    expect_error_with(".data\n.align 3", "must be a power of two");
    expect_error_with(".data\nnop", "not executable");
}

static void macros(void **state)
{
    (void)state;
    expect_data(".macro m a, b=2, c\n.byte \\a, \\b\n.ifnb \\c\n.byte \\c\n.endif\n.endm\n"
                "m 1\nm 3, 4\nm 5, , 6\nm c=7, a=8",
                1, 2, 3, 4, 5, 2, 6, 8, 2, 7);
    expect_data(
        ".macro m a:req, rest:vararg\n.byte \\a\n.ifnb \\rest\nm \\rest\n.endif\n.endm\nm 1, 2, 3",
        1, 2, 3);
    expect_data(".macro m x\n.macro n\\x y\n.byte \\x\\y\n.endm\n.endm\nm 1\nm 2\nn1 5\nn2 6", 15,
                26);
    expect_data(".macro m x\n.Lx\\@: .byte . - .Lx\\@, \\@\n.endm\nm\nm", 0, 0, 0, 1);
    expect_data(".macro m a, ab\n.byte \\a\\(), \\ab, \\a\n.ascii \"\\a\\ab\"\n.endm\nm 1, 2", 1, 2,
                1, '1', '2');
    expect_data(".macro m a, b\n.byte \\a, \\b\n.endm\nm 1 + 2 (3 * 4)\nm 5 6", 3, 12, 5, 6);
    expect_data(".macro m s\n.ascii \"\\s\"\n.endm\nm \"a b\"\nm x", 'a', ' ', 'b', 'x');
    expect_data(".macro m n\n.if \\n\n.byte \\n\nm \\n - 1\n.endif\n.endm\nm 3", 3, 2, 1);
    expect_data(".macro m n\n.byte 1\n.if \\n\n.exitm\n.endif\n.byte 2\n.endm\nm 1\nm 0", 1, 1, 2);
    expect_words(".macro nop2\nnop\nnop\n.endm\nnop2 ; nop2", NOP, NOP, NOP, NOP);
    expect_words(".macro ld a, b\nadd \\a, \\b, 1\n.endm\nld $m1, $m2", ADD(1, 2, 1));
    expect_words(".macro m\nnop\n.endm\n.purgem m\n.macro m\nnop;nop\n.endm\nm", NOP, NOP);
    expect_error(".macro m a:req\n.endm\n\n m", "test.S:4:2: macro 'm' needs a value for 'a'");
    expect_error_with(".macro m a\n.endm\nm 1, 2", "macro 'm' takes 1 argument");
    expect_error_with(".macro m a\nnop", "no .endm for this");
    expect_error_with(".endm", "closes nothing");
    expect_error_with(".exitm", ".exitm outside of a macro");
    expect_error_with(".macro m\n.endm\n.macro m\n.endm", "macro 'm' is already defined");
    expect_error_with(".macro m a:vararg, b\n.endm", "must be the last one");
}

static void repetitions(void **state)
{
    (void)state;
    expect_data(".rept 3\n.byte 1\n.endr", 1, 1, 1);
    expect_data(".set i, 0\n.rept 2\n.rept 2\n.byte i\n.set i, i + 1\n.endr\n.endr", 0, 1, 2, 3);
    expect_data(".rept 0\n.byte 1\n.endr\n.byte 2", 2);
    expect_data(".rept 2 ; .byte 1 ; .endr ; .byte 3", 1, 1, 3);
    expect_data(".irp x, 1, 2 + 1, 4\n.byte \\x\n.endr", 1, 3, 4);
    expect_data(".irp x, 1, 2\n.irp y, 3, 4\n.byte \\x\\y\n.endr\n.endr", 13, 14, 23, 24);
    expect_data(".irpc c, 0a\n.byte 0x\\c\n.endr", 0, 10);
    expect_data(".irp x\n.byte 7\\x\n.endr", 7);
    expect_words(".irp r, $m1, $m2\nadd \\r, \\r, 1\n.endr", ADD(1, 1, 1), ADD(2, 2, 1));
    expect_error_with(".rept -1\n.endr", "repetitions are not possible");
    expect_error_with(".rept 2\nnop", "no .endr for this");
    expect_error_with(".rept x\n.endr", "'x' is not defined yet");
}

static void conditions(void **state)
{
    (void)state;
    expect_data(".if 1\n.byte 1\n.else\n.byte 2\n.endif", 1);
    expect_data(".if 0\n.byte 1\n.elseif 1\n.byte 2\n.elseif 1\n.byte 3\n.else\n.byte 4\n.endif",
                2);
    expect_data(".if 0\n.if 1\n.byte 1\n.else\n.byte 2\n.endif\n.else\n.byte 3\n.endif", 3);
    expect_data(".set a, 1\n.ifdef a\n.byte 1\n.endif\n.ifndef b\n.byte 2\n.endif", 1, 2);
    expect_data(".ifc a b , a b\n.byte 1\n.endif\n.ifnc a, b\n.byte 2\n.endif", 1, 2);
    expect_data(
        ".ifeqs \"x\", \"x\"\n.byte 1\n.endif\n.ifb\n.byte 2\n.endif\n.ifnb x\n.byte 3\n.endif", 1,
        2, 3);
    expect_data(".ifeq 0\n.byte 1\n.endif\n.ifne 2\n.byte 2\n.endif\n.iflt -1\n.byte 3\n.endif\n"
                ".ifge 0\n.byte 4\n.endif\n.ifgt 1\n.byte 5\n.endif\n.ifle 0\n.byte 6\n.endif",
                1, 2, 3, 4, 5, 6);
    expect_data(".if 0\nnot an instruction $ \" ( } \n.endif\n.byte 1", 1);
    expect_data("a: .byte 1\nb:\n.if b - a == 1\n.byte 2\n.endif", 1, 2);
    expect_data(".ifdef TAMP_F16V4_E4_P2\n.byte TAMP_F16V4_E4_P2\n.endif", 2);
    expect_error_with(".if 1\nnop", "test.S:1:1: .if without .endif");
    expect_error_with(".else", ".else without .if");
    expect_error_with(".endif", ".endif without .if");
    expect_error_with(".if 1\n.else\n.else\n.endif", "second .else");
    expect_error_with(".macro m\n.if 1\n.endm\nm\n.endif", ".if without .endif");
}

static const char *find_source(const char *name)
{
    return !strcmp(name, "one.inc")    ? ".byte 1\n.include \"two.inc\"\n"
           : !strcmp(name, "two.inc")  ? ".byte 2\n"
           : !strcmp(name, "loop.inc") ? ".include \"loop.inc\"\n"
                                       : NULL;
}

static void includes_and_defines(void **state)
{
    (void)state;
    const AsDefine defines[] = {{"ROWS", "3"}, {"FLAG", NULL}, {"TAMP_F16V4_E4_P1", "9"}};
    AsOptions options = {.defines = defines, .define_count = 3, .find_source = find_source};
    Assembled result =
        assembled_with(".data\n.include \"one.inc\"\n#include \"two.inc\"\n.byte ROWS, "
                       "FLAG, TAMP_F16V4_E4_P1",
                       &options);
    assert_ok(result.status);
    assert_int_equal(result.object.section_count, 2);
    assert_int_equal(result.object.sections[1].bytes, 6);
    assert_memory_equal(result.object.sections[1].data, "\1\2\2\3\1\11", 6);
    assembled_free(&result);
    result = assembled_with(".include \"loop.inc\"", &options);
    assert_non_null(strstr(status_message(result.status), "within each other"));
    assembled_free(&result);
    expect_error("\n  .include \"none.inc\"", "test.S:2:22: can not find include file 'none.inc'");
    expect_data(".include \"poplar/TileConstants.hpp\"\n.byte TSLIC_F32_1x3_W1_P1", 7);
    expect_error_with("#define X 1", "run the C preprocessor first (--cpp)");
}

static const AsSymbol *find(const AsObject *object, const char *name)
{
    for (uint32_t i = 0; i < object->symbol_count; i++)
        if (!strcmp(object->symbols[i].name, name) && !object->symbols[i].is_section)
            return &object->symbols[i];
    return NULL;
}

static void symbols_of_the_object(void **state)
{
    (void)state;
    Assembled result = assembled_with(
        ".section .text.f, \"ax\", @progbits\n.globl f\n.type f, @function\nf: nop\n.Lhidden: nop\n"
        ".size f, . - f\nlocal: call $lr, g\n.weak w\nw: .word .Lhidden\n.globl STACK\n"
        ".set STACK, 32\n.set local_number, 5\n.globl alias\n.set alias, f + 4\n.weak maybe\n"
        ".word maybe\n.globl unused\n",
        NULL);
    assert_ok(result.status);
    const AsObject *object = &result.object;
    const AsSymbol *f = find(object, "f"), *alias = find(object, "alias");
    assert_int_equal(f->binding, AS_GLOBAL);
    assert_true(f->function);
    assert_int_equal(f->size, 8);
    assert_int_equal(find(object, "local")->binding, AS_LOCAL);
    assert_int_equal(find(object, "local")->value, 8);
    assert_int_equal(find(object, "g")->section, AS_UNDEFINED);
    assert_int_equal(find(object, "w")->binding, AS_WEAK);
    assert_int_equal(find(object, "maybe")->binding, AS_WEAK);
    assert_int_equal(find(object, "maybe")->section, AS_UNDEFINED);
    assert_int_equal(find(object, "STACK")->section, AS_ABSOLUTE);
    assert_int_equal(find(object, "STACK")->value, 32);
    assert_int_equal(alias->value, 4);
    assert_int_equal(alias->section, f->section);
    assert_null(find(object, ".Lhidden"));
    assert_null(find(object, "local_number"));
    assert_null(find(object, "unused"));
    const AsSection *section = &object->sections[f->section];
    assert_int_equal(section->relocation_count, 3);
    const AsRelocation *hidden = &section->relocations[1];
    assert_true(object->symbols[hidden->symbol].is_section);
    assert_int_equal(hidden->addend, 4);
    assert_int_equal(hidden->type, RELOC_32);
    assembled_free(&result);
}

static void relocation_types(void **state)
{
    (void)state;
    static const uint8_t types[] = {
        RELOC_8,     RELOC_16, RELOC_32, RELOC_64, RELOC_RELATIVE_16_S2, RELOC_18_S2,
        RELOC_19_S2, RELOC_21, RELOC_20, RELOC_16, RELOC_19_S2,          RELOC_RUN};
    Assembled result =
        assembled_with(".byte x ; .short x ; .byte 0 ; .word x ; .quad x\n"
                       ".word (x)@relative@16@s2, (x + 4)@abs18@s2, x@abs19@s2, x@abs@21\n"
                       ".supervisor\nsetzi $m0, x ; cmpult $m0, $m0, x ; bri x ; "
                       "run $m0, $m1, x",
                       NULL);
    assert_ok(result.status);
    const AsSection *section = &result.object.sections[0];
    assert_int_equal(section->relocation_count, countof(types));
    for (size_t i = 0; i < countof(types); i++)
        assert_int_equal(section->relocations[i].type, types[i]);
    assembled_free(&result);
}

static void sections(void **state)
{
    (void)state;
    Assembled result = assembled_with(
        ".section .text.a-b, \"ax\"\nnop\n.data\n.byte 1\n.previous\nnop\n.pushsection "
        ".rodata\n.byte 2\n"
        ".popsection\nnop\n.section \".my data\", \"aw\", @nobits\n.space 9\n.bss\n.space 4\n",
        NULL);
    assert_ok(result.status);
    static const struct {
        const char *name;
        uint32_t bytes, flags;
    } wanted[] = {{".text", 0, AS_ALLOC | AS_EXECUTE},
                  {".text.a-b", 12, AS_ALLOC | AS_EXECUTE},
                  {".data", 1, AS_ALLOC | AS_WRITE},
                  {".rodata", 1, AS_ALLOC},
                  {".my data", 9, AS_ALLOC | AS_WRITE | AS_NOBITS},
                  {".bss", 4, AS_ALLOC | AS_WRITE | AS_NOBITS}};
    assert_int_equal(result.object.section_count, countof(wanted));
    for (size_t i = 0; i < countof(wanted); i++) {
        assert_string_equal(result.object.sections[i].name, wanted[i].name);
        assert_int_equal(result.object.sections[i].bytes, wanted[i].bytes);
        assert_int_equal(result.object.sections[i].flags, wanted[i].flags);
    }
    assembled_free(&result);
    expect_error_with(".section .text, \"aw\"", "begun with other flags");
    expect_error_with(".popsection", ".popsection without .pushsection");
    expect_error_with(".section .x, \"q\"", "unknown section flag 'q'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements_and_comments),
        cmocka_unit_test(registers),
        cmocka_unit_test(addresses),
        cmocka_unit_test(immediates),
        cmocka_unit_test(control_registers),
        cmocka_unit_test(exchange_instructions),
        cmocka_unit_test(bundles),
        cmocka_unit_test(repeats),
        cmocka_unit_test(modes),
        cmocka_unit_test(labels_and_expressions),
        cmocka_unit_test(data_directives),
        cmocka_unit_test(macros),
        cmocka_unit_test(repetitions),
        cmocka_unit_test(conditions),
        cmocka_unit_test(includes_and_defines),
        cmocka_unit_test(symbols_of_the_object),
        cmocka_unit_test(relocation_types),
        cmocka_unit_test(sections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
