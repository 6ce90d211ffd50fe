/* libraries: as */
/* test_as_hostile.c - sources that mean harm, or come from a broken editor: no crash, no hang, no
 * endless memory, and an error that says what is wrong. Sanitizer builds give these tests teeth. */
#include "assembly.h"
#include "hostile.h"

/* Something of everything that the language has. */
static const char *const corpus[] = {
    ".macro load base, count=2, dst:req\n.rept \\count\nld32 $m\\dst, \\base, 0\n.endr\n.endm\n"
    ".macro outer a, rest:vararg\n.Lx\\@:\nload \\a, dst=3\n.ifnb \\rest\n.irp r, \\rest\n"
    "add \\r, \\r, 1\n.endr\n.endif\nbri .Lx\\@\n.endm\nouter $m2, $m4, $m5\n",
    ".section .text.f, \"ax\", @progbits\n.globl f\n.type f, @function\n.align 8\nf:\nget $m0, "
    "$WSR\nnop\n"
    "nop\nrpt $m3, ((2f - 1f)/8) - 1\n1:\n{ ld64step $a0:1, $mzero, $m0+=, 1\n f32v2add $a2:3, "
    "$a0:1, "
    "$a2:3 }\n{ nop ; fnop }\n2:\nbrnz $m0, 1b\nexitz $mzero\n.size f, .-f\n",
    ".data\nt: .word 1, -2, f+4, t - . ; .short 1.5h ; .half -infh ; .float 1.5, -2 ; .asciz "
    "\"h\\n\\x41\"\n"
    ".p2align 3, 7 ; .irpc c, 123\n.byte \\c\n.endr\n.long (f)@abs19@s2\n.fill 3, 2, 0x101\n.org "
    "64, 1\n",
    ".if x == 1\n.byte 1\n.elseif 2 > 1 && 3 << 2\n.set y, 1 + 2 * (3 | 4) - "
    "~5\n.else\n.err\n.endif\n"
    ".ifdef y\n.ifc a,b\n.endif\n.endif\n.equiv z, y\nw = z\n",
    ".supervisor\nldconst $m1, 0x12345678\nsendpicp 43, 0x14021, 1, 0, 0x15000, 0, 0x640\n"
    "put $INCOMING_MUX, $m1\nrunall $m0, $m1, 0\nrun $m0, $m1, f\nsync TEXCH_SYNCZONE_LOCAL\n"
    "call $lr, f\nbr $lr\nsub $m1, $m2, 5\n# 12 \"x.S\"\n/* c */ st32 $m1, $m2, 3 // d\n",
    ".include \"poplar/TileConstants.hpp\"\n.pushsection .bss\nb: .space 8\n.popsection\n.weak "
    "q\n.word q-4\n"
    ".allow_invalid_operands\nor64 $a1:2, $a0:1, $a3:4\nsetzi $m0, 0xffffffff\n",
};

static void survive(const char *text, size_t length)
{
    Arena arena = {0};
    AsObject object;
    Text listing = {0}, warnings = {0};
    AsOptions options = {.listing = &listing, .warnings = &warnings, .supervisor = length % 2};
    char *exact = xmalloc(length); /* exactly as long: reading behind it shows */
    memcpy(exact, text, length);
    Status status = assemble(&arena, "hostile", exact, length, &options, &object);
    if (!status_ok(status))
        assert_true(status_message(status)[0] != 0);
    status_free(status);
    array_release(exact);
    text_free(&listing);
    text_free(&warnings);
    arena_free(&arena);
}

static void damaged_sources(void **state)
{
    (void)state;
    Text text = {0};
    for (Hostile hostile = hostile_begin(4000); hostile_more(&hostile);) {
        text.count = 0;
        for (uint32_t n = 1 + hostile_random(&hostile, 3); n; n--) {
            const char *piece = corpus[hostile_random(&hostile, countof(corpus))];
            array_append(&text, piece, strlen(piece));
        }
        if (hostile.round > countof(corpus)) /* the first rounds are sound */
            hostile_damage(&hostile, &text);
        survive(text.items, text.count);
    }
    text_free(&text);
}

static void random_bytes(void **state)
{
    (void)state;
    char bytes[300];
    for (Hostile hostile = hostile_begin(2000); hostile_more(&hostile);) {
        uint32_t length = 1 + hostile_random(&hostile, sizeof bytes - 1);
        for (uint32_t i = 0; i < length; i++)
            bytes[i] = (char)(hostile_random(&hostile, 3) ? 32 + hostile_random(&hostile, 95)
                                                          : hostile_random(&hostile, 256));
        survive(bytes, length);
    }
}

/* Every beginning of every source. */
static void truncated_sources(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(corpus); i++)
        for (size_t length = 1; length < strlen(corpus[i]); length++)
            survive(corpus[i], length);
}

static void refused_soon(const char *text, const char *part)
{
    double start = seconds_now();
    expect_error_with(text, part);
    assert_true(seconds_now() - start < 20); /* sanitizers included */
}

static void bombs(void **state)
{
    (void)state;
    refused_soon(".macro m\nm\n.endm\nm", "more than 200 macros, repetitions and includes");
    refused_soon(".macro m a\nm \\a\\a\\a\\a\n.endm\nm xxxxxxxxxxxx", "MiB of text");
    refused_soon(".macro m\nm\nm\n.endm\nm", "within each other");
    refused_soon(".rept 1000000000\nnop\n.endr", "repetitions are not possible");
    refused_soon(".rept 10000\n.rept 10000\n.set x, 1\n.endr\n.endr", "MiB of text");
    refused_soon(".rept 4000000\n.quad 0,0,0,0,0,0,0,0,0,0\n.endr", "MiB");
    refused_soon(".space 0x7fffffffffffffff", "more than 16 MiB");
    refused_soon(".fill 0x100000000, 8, 1", "more than 16 MiB");
    refused_soon(".bss\n.space 10000000\n.space 10000000", "more than 16 MiB");
    refused_soon(".org 0x7fffffff", "more than 16 MiB");
    refused_soon(".align 0x40000000", "power of two up to 2^20");
    refused_soon(".space -1", "negative count");
    refused_soon(".set x, x\n.byte x", "");
}

/* Nested deeper than any person would, and longer than any line. */
static void deep_and_long(void **state)
{
    (void)state;
    Text text = {0};
    text_append(&text, ".word ");
    for (int i = 0; i < 100000; i++)
        text_append(&text, "(");
    refused_soon(text_string(&text), "nested too deeply");
    text.count = 0;
    text_append(&text, ".word -");
    for (int i = 0; i < 100000; i++)
        text_append(&text, "~-");
    refused_soon(text_string(&text), "nested too deeply");
    text.count = 0;
    text_append(&text, ".word 0");
    for (int i = 0; i < 200000; i++)
        text_append(&text, "+1");
    expect_bytes(text_string(&text), ".text", (const uint32_t[]){200000}, 4);
    text.count = 0;
    text_append(&text, ".word later");
    for (int i = 0; i < 20000; i++)
        text_append(&text, "+later-later");
    survive(text.items, text.count);
    text.count = 0;
    for (int i = 0; i < 100000; i++)
        text_append(&text, ".if 0\n");
    refused_soon(text_string(&text), "within each other");
    text.count = 0; /* every line doubles the work of evaluating the last */
    text_append(&text, ".set x0, later - other\n");
    for (int i = 0; i < 64; i++)
        text_printf(&text, ".set x%d, x%d - x%d + (x%d - x%d)\n", i + 1, i, i, i, i);
    text_append(&text, ".word x64 * 2\n");
    survive(text.items, text.count);
    text.count = 0;
    for (int i = 0; i < 60000; i++)
        text_printf(&text, ".section .s%d, \"ax\"\nl%d: nop\n", i, i);
    survive(text.items, text.count);
    text_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_sources),   cmocka_unit_test(random_bytes),
        cmocka_unit_test(truncated_sources), cmocka_unit_test(bombs),
        cmocka_unit_test(deep_and_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
