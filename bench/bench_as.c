/* libraries: as obj */
/* bench_as.c - lines per second of the assembler, on one core, and of the steps around it.
 *
 * plain: what kernels are made of (labels, instructions of both lanes, bundles, branches to labels
 * before and after, comments, data), no macros. macro: the same work through a macro call a line.
 * Prints key=value lines; the best of five
 * runs, processor time. */
#include "obj/obj.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { BLOCKS = 25000, REPEATS = 5 };

/* 20 lines; %1$d is the number of the block. */
static const char plain_block[] =
    "// block %1$d: a loop over pairs of values\n"
    "block_%1$d:\n"
    "    ld32 $m2, $mvertex_base, $mzero, 3\n"
    "    add $m3, $m2, -16\n"
    "    setzi $m4, 0x1234\n"
    "    brz $m3, done_%1$d\n"
    "\n"
    "loop_%1$d:\n"
    "    {\n"
    "        ld64step $a0:1, $mzero, $m4+=, 1\n"
    "        f32v2add $a2:3, $a0:1, $a2:3\n"
    "    }\n"
    "    { st64step $a2:3, $mzero, $m5+=, 2 ; f16v4mul $a4:5, $a6:BL, $a8:9 }\n"
    "    and $m6, $m3, 15   /* the rest */\n"
    "    or $m7, $m6, $m4\n"
    "    brnzdec $m3, loop_%1$d\n"
    "done_%1$d:\n"
    "    mov $m8, $m7\n"
    "    cmpult $m9, $m8, 1000\n"
    "    br $lr\n";

static const char macro_head[] = ".macro STEP to, from, n=1\n"
                                 "    add $m\\to, $m\\from, \\n\n"
                                 ".endm\n";

static uint64_t count_lines(const Text *text)
{
    uint64_t lines = 0;
    for (size_t i = 0; i < text->count; i++)
        lines += text->items[i] == '\n';
    return lines;
}

static double processor_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static double best_seconds(const Text *text, uint64_t *words)
{
    double best = 1e9;
    for (int i = 0; i < REPEATS; i++) {
        Arena arena = {0};
        AsObject object;
        double start = processor_seconds();
        Status status = assemble(&arena, "bench", text->items, text->count, NULL, &object);
        double taken = processor_seconds() - start;
        if (!status_ok(status)) {
            fprintf(stderr, "%s\n", status_message(status));
            status_free(status);
            return 0;
        }
        best = taken < best ? taken : best;
        *words = object.sections[0].bytes / 4;
        arena_free(&arena);
    }
    return best;
}

static void report(const char *name, const Text *text)
{
    uint64_t words = 0, lines = count_lines(text);
    double seconds = best_seconds(text, &words);
    printf("bench=as source=%s lines=%llu words=%llu seconds=%.4f linesPerSecond=%.0f\n", name,
           (unsigned long long)lines, (unsigned long long)words, seconds,
           seconds > 0 ? (double)lines / seconds : 0);
}

int main(void)
{
    Text plain = {0}, macro = {0};
    for (int i = 0; i < BLOCKS; i++)
        text_printf(&plain, plain_block, i);
    text_append(&macro, macro_head);
    for (int i = 0; i < BLOCKS * 10; i++)
        text_printf(&macro, "    STEP %d, %d, n=%d\n", i % 15, i % 13, i % 1000);
    report("plain", &plain);
    report("macro", &macro);
    text_free(&plain);
    text_free(&macro);
    return 0;
}
