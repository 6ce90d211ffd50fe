/* libraries: as obj */
/* test_obj_link.c - the linker: vectors that need symbols, every relocation type with its limits,
 * reachability, placement, who wins among definitions, and the errors. */
#include "assembly.h"

#include "obj/obj.h"

enum { SOURCES = 4 };

typedef struct Linked {
    Arena arena;
    AsObject objects[SOURCES];
    LinkImage image;
    Status status;
} Linked;

typedef struct Request {
    const char *sources[SOURCES]; /* assembly, supervisor mode */
    const char *roots[SOURCES];
    LinkRange ranges[SOURCES]; /* none: 0x4c000..0xe8000 */
    LinkExternal externals[SOURCES];
} Request;

static void link_sources(const Request *request, Linked *out)
{
    static const char *const names[SOURCES] = {"a.o", "b.o", "c.o", "d.o"};
    static const LinkRange everywhere = {0x4c000, 0xe8000};
    const AsObject *objects[SOURCES];
    AsOptions options = {.supervisor = true};
    *out = (Linked){.status = STATUS_OK};
    LinkInput input = {.objects = objects,
                       .object_names = names,
                       .roots = request->roots,
                       .ranges = request->ranges,
                       .externals = request->externals};
    for (int i = 0; i < SOURCES && request->sources[i]; i++) {
        assert_ok(assemble(&out->arena, names[i], request->sources[i], strlen(request->sources[i]),
                           &options, &out->objects[i]));
        objects[input.object_count++] = &out->objects[i];
    }
    while (input.root_count < SOURCES && request->roots[input.root_count])
        input.root_count++;
    while (input.range_count < SOURCES && request->ranges[input.range_count].end)
        input.range_count++;
    while (input.external_count < SOURCES && request->externals[input.external_count].name)
        input.external_count++;
    if (input.range_count == 0) {
        input.ranges = &everywhere;
        input.range_count = 1;
    }
    out->status = obj_link(&out->arena, &input, &out->image);
}

static void linked_free(Linked *linked)
{
    status_free(linked->status);
    arena_free(&linked->arena);
}

static uint32_t address_of(const Linked *linked, const char *name)
{
    uint32_t address = 0;
    assert_ok(link_symbol(&linked->image, name, &address));
    return address;
}

static uint32_t word_at(const Linked *linked, uint32_t address)
{
    for (uint32_t i = 0; i < linked->image.segment_count; i++) {
        const LinkSegment *segment = &linked->image.segments[i];
        if (address >= segment->address && address + 4 <= segment->address + segment->bytes)
            return load_u32(segment->data + (address - segment->address));
    }
    fail_msg("no word at 0x%x", address);
    return 0;
}

static void expect_link_error(const Request *request, const char *part)
{
    Linked linked;
    link_sources(request, &linked);
    if (!strstr(status_message(linked.status), part))
        fail_msg("says: %s\nexpected: ...%s...", status_message(linked.status), part);
    linked_free(&linked);
}

/* ---- vectors ---- */

static void vector_links(char **columns, void *context)
{
    char *value = strchr(columns[3], '=');
    if (strcmp(columns[2], "assemble") || !value)
        return;
    bool is_run = !strncmp(columns[0], "run", 3); /* the vector's region begins at 0x40000 */
    Request request = {.sources = {columns[0]}};
    request.externals[0] =
        (LinkExternal){"foo", (uint32_t)strtoul(value + 1, NULL, 0) + (is_run ? 0xc000 : 0)};
    Linked linked;
    link_sources(&request, &linked);
    assert_ok(linked.status);
    if (word_at(&linked, 0x4c000) != strtoul(columns[1], NULL, 0))
        fail_msg("%s: %08x instead of %s", columns[0], word_at(&linked, 0x4c000), columns[1]);
    linked_free(&linked);
    ++*(int *)context;
}

static void vectors_with_symbols(void **state)
{
    (void)state;
    Bytes file;
    int rows = 0;
    assert_ok(file_read(SOURCE_DIR "/tests/data/isa/vectors.tsv", FILE_LIMIT_TEXT, &file));
    char *line = strchr((char *)file.data, '\n') + 1, *end;
    for (; (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        char *columns[6] = {0};
        int count = 0;
        for (char *c = line; c && count < 6; count++) {
            columns[count] = c;
            if ((c = strchr(c, '\t')))
                *c++ = 0;
        }
        vector_links(columns, &rows);
    }
    bytes_free(&file);
    assert_int_equal(rows, 12);
    /* The thirteenth: cmpult with an unresolved symbol keeps a relocation in the object. */
    Assembled kept = assembled_with("cmpult $m0, $m0, foo", NULL);
    assert_ok(kept.status);
    assert_int_equal(load_u32(kept.object.sections[0].data), 0x2a000000);
    assert_int_equal(kept.object.sections[0].relocations[0].type, RELOC_16);
    assembled_free(&kept);
    expect_link_error(
        &(Request){.sources = {"run $m0, $m0, foo + 3"}, .externals = {{"foo", 0x4c000}}},
        "improper alignment for relocation RUN: 0x4c003 is not aligned to 4 bytes");
}

/* ---- relocations ---- */

static void relocation_stores(const char *text, uint32_t symbol, uint32_t word)
{
    Request request = {.sources = {text}, .externals = {{"x", symbol}}};
    Linked linked;
    link_sources(&request, &linked);
    assert_ok(linked.status);
    if (word_at(&linked, 0x4c000) != word)
        fail_msg("%s, x = 0x%x: %08x instead of %08x", text, symbol, word_at(&linked, 0x4c000),
                 word);
    linked_free(&linked);
}

static void relocation_fails(const char *text, uint32_t symbol, const char *part)
{
    expect_link_error(&(Request){.sources = {text}, .externals = {{"x", symbol}}}, part);
}

static void relocations_store_and_check(void **state)
{
    (void)state;
    relocation_stores(".byte x, 1, 2, 3", 0xff, 0x030201ff);
    relocation_fails(".byte x, 1, 2, 3", 0x100, "out of range for relocation 8");
    relocation_stores(".short x, 7", 0xffff, 0x7ffff);
    relocation_fails(".short x, 7", 0x10000, "out of range for relocation 16");
    relocation_stores("setzi $m3, x - 1", 0x100000, 0x193fffff);
    relocation_fails("setzi $m3, x", 0x100000, "out of range for relocation 20");
    relocation_stores(".word x + 4", 0xfffffff0, 0xfffffff4);
    relocation_fails(".word x + 4", 0xfffffffc, "out of range for relocation 32");
    relocation_fails(".word x - 4", 0, "is negative");
    relocation_stores(".quad x", 0x12345678, 0x12345678);
    relocation_stores(".word (x)@relative@16@s2", 0x4c010, 4);
    relocation_fails(".word (x)@relative@16@s2", 0x4bffc, "negative relative to the base");
    relocation_fails(".word (x)@relative@16@s2", 0x8c000, "out of range");
    relocation_fails(".word (x)@relative@16@s2", 0x4c002, "not aligned to 4 bytes");
    relocation_stores(".word x@abs18@s2", 0xffffc, 0x3ffff);
    relocation_fails(".word x@abs18@s2", 0x100000, "out of range for relocation 18_S2");
    relocation_stores("brz $m1, x", 0x50004, 0x13114001);
    relocation_stores("call $m10, x", 0x1ffffc, 0x18a7ffff);
    relocation_fails("bri x", 0x200000, "out of range for relocation 19_S2");
    relocation_fails("bri x", 2, "not aligned to 4 bytes");
    relocation_stores("run $m2, $m3, x", 0x4c000 + 4 * 0xabcd, 0x142a3bcd);
    relocation_fails("run $m2, $m3, x", 0x8c000, "out of range for relocation RUN");
    relocation_stores(".word x@abs@21", 0x1fffff, 0x1fffff);
    relocation_fails(".word x@abs@21", 0x200000, "out of range for relocation 21");
    relocation_stores(".word x@abs16@s3", 8 * 0xffff, 0xffff);
    relocation_stores(".word x@abs16@s4", 16 * 3, 3);
    relocation_stores(".word x@abs16@s5", 32 * 3, 3);
    relocation_fails(".word x@abs16@s5", 16, "not aligned to 32 bytes");
}

/* ---- what is kept, and where ---- */

static void reachable_sections_only(void **state)
{
    (void)state;
    const Request request = {
        .sources = {".section .text.a, \"ax\"\n.globl a\na: call $lr, b\n"
                    ".section .text.unused, \"ax\"\nunused: call $lr, nowhere\n",
                    ".section .text.b, \"ax\"\n.globl b\nb: setzi $m0, table\n"
                    ".section .rodata.t, \"a\"\n.space 4\ntable: .word b\n"
                    ".section .comment, \"\"\n.ascii \"not for memory\"\n"},
        .roots = {"a"}};
    Linked linked;
    link_sources(&request, &linked);
    assert_ok(linked.status);
    assert_int_equal(linked.image.segment_count, 1);
    assert_int_equal(linked.image.segments[0].bytes, 4 + 4 + 8);
    assert_true(linked.image.segments[0].executable);
    assert_int_equal(address_of(&linked, "a"), 0x4c000);
    assert_int_equal(address_of(&linked, "b"), 0x4c004);
    assert_int_equal(address_of(&linked, "table"), 0x4c00c);
    assert_int_equal(word_at(&linked, 0x4c000), isa_word(FORM_call_mmmn_zi, 10, 0x4c004));
    assert_int_equal(word_at(&linked, 0x4c00c), 0x4c004);
    uint32_t address;
    assert_true(status_discard(link_symbol(&linked.image, "unused", &address)));
    for (uint32_t i = 1; i < linked.image.symbol_count; i++)
        assert_true(linked.image.symbols[i - 1].address <= linked.image.symbols[i].address);
    linked_free(&linked);
    expect_link_error(&(Request){.sources = {request.sources[0], request.sources[1]}},
                      "undefined symbols: 'nowhere' (used in a.o, .text.unused)");
}

static void first_fit_moves_forward(void **state)
{
    (void)state;
    const Request request = {
        .sources = {".section .text.a, \"ax\"\n.globl a\na: .space 24\n"
                    ".section .text.b, \"ax\"\n.globl b\nb: .space 32\n"
                    ".section .text.c, \"ax\"\n.align 16\n.globl c\nc: .space 4\n"
                    ".bss\n.globl d\nd: .space 8\n"},
        .ranges = {{0x4c018, 0x4c040}, {0x5c004, 0x5c100}}};
    Linked linked;
    link_sources(&request, &linked);
    assert_ok(linked.status);
    assert_int_equal(address_of(&linked, "a"), 0x4c018);
    assert_int_equal(address_of(&linked, "b"), 0x5c004); /* 16 bytes were left in the first range */
    assert_int_equal(address_of(&linked, "c"), 0x5c030); /* never back, aligned absolutely */
    assert_int_equal(address_of(&linked, "d"), 0x5c034);
    assert_int_equal(linked.image.segment_count, 2);
    assert_int_equal(linked.image.segments[1].address, 0x5c004);
    assert_int_equal(linked.image.segments[1].bytes, 0x5c03c - 0x5c004);
    assert_int_equal(linked.image.end, 0x5c03c);
    linked_free(&linked);
    Request full = request;
    full.ranges[1].end = 0x5c030;
    expect_link_error(&full, "a.o, section .text.c of 4 bytes does not fit");
    full.ranges[1] = (LinkRange){0x4c020, 0x4c100};
    expect_link_error(&full, "ranges must ascend");
}

static void definitions(void **state)
{
    (void)state;
    const char *strong = ".globl f\nf: nop\n", *weak = ".weak f\nf: .word 7\n", *user = ".word f\n";
    expect_link_error(&(Request){.sources = {strong, strong}},
                      "symbol 'f' is defined in a.o and in b.o");
    Linked linked;
    for (int order = 0; order < 2; order++) {
        link_sources(&(Request){.sources = {user, order ? weak : strong, order ? strong : weak}},
                     &linked);
        assert_ok(linked.status);
        uint32_t f = word_at(&linked, 0x4c000);
        assert_int_equal(word_at(&linked, f), isa_word(FORM_setzi_mmmn_zi, 14, 0));
        linked_free(&linked);
    }
    link_sources(&(Request){.sources = {user, strong}, .externals = {{"f", 0x12345}}}, &linked);
    assert_ok(linked.status);
    assert_int_equal(word_at(&linked, 0x4c000), 0x12345); /* externals win */
    assert_int_equal(address_of(&linked, "f"), 0x12345);
    linked_free(&linked);
    link_sources(&(Request){.sources = {".weak maybe\n.word maybe\n"}}, &linked);
    assert_ok(linked.status);
    assert_int_equal(word_at(&linked, 0x4c000), 0); /* an undefined weak symbol is 0 */
    linked_free(&linked);
    link_sources(&(Request){.sources = {user, ".globl f\n.set f, 0x777\n"}}, &linked);
    assert_ok(linked.status);
    assert_int_equal(word_at(&linked, 0x4c000), 0x777);
    linked_free(&linked);
    expect_link_error(&(Request){.sources = {user}, .roots = {"g"}},
                      "root symbol 'g' is not defined");
    expect_link_error(&(Request){.sources = {user, "f: nop\n"}}, "undefined symbols: 'f'");
}

/* The same objects through ELF files give the same image. */
static void elf_keeps_everything(void **state)
{
    (void)state;
    static const char text[] =
        ".section .text.a, \"ax\"\n.align 8\n.globl a\n.type a, @function\na: call $lr, b\n.size "
        "a, . - a\n"
        "inner: setzi $m0, table\nrun $m0, $m1, inner\n.weak w\nw: br $lr\n.globl STACK\n.set "
        "STACK, 32\n"
        ".data\ntable: .word inner, b, STACK\n.byte 1\n.bss\n.globl buffer\nbuffer: .space 100\n";
    Assembled source = assembled_with(text, &(AsOptions){.supervisor = true});
    assert_ok(source.status);
    Bytes elf, again;
    AsObject read;
    assert_ok(obj_write(&source.object, &elf));
    assert_ok(obj_read(&source.arena, "elf", elf.data, elf.count, &read));
    const AsObject *wanted = &source.object;
    assert_int_equal(read.section_count, wanted->section_count);
    assert_int_equal(read.symbol_count, wanted->symbol_count);
    for (uint32_t i = 0; i < read.section_count; i++) {
        const AsSection *a = &wanted->sections[i], *b = &read.sections[i];
        assert_string_equal(a->name, b->name);
        assert_int_equal(a->flags, b->flags);
        assert_int_equal(a->align, b->align);
        assert_int_equal(a->bytes, b->bytes);
        assert_int_equal(a->relocation_count, b->relocation_count);
        if (!(a->flags & AS_NOBITS) && a->bytes)
            assert_memory_equal(a->data, b->data, a->bytes);
        for (uint32_t k = 0; k < a->relocation_count; k++) {
            assert_int_equal(a->relocations[k].offset, b->relocations[k].offset);
            assert_int_equal(a->relocations[k].type, b->relocations[k].type);
            assert_int_equal(a->relocations[k].addend, b->relocations[k].addend);
            assert_string_equal(wanted->symbols[a->relocations[k].symbol].name,
                                read.symbols[b->relocations[k].symbol].name);
        }
    }
    for (uint32_t i = 0; i < read.symbol_count; i++) {
        const AsSymbol *a = &wanted->symbols[i], *b = &read.symbols[i];
        assert_string_equal(a->name, b->name);
        assert_int_equal(a->section, b->section);
        assert_int_equal(a->value, b->value);
        assert_int_equal(a->size, b->size);
        assert_int_equal(a->binding, b->binding);
        assert_int_equal(a->function, b->function);
    }
    assert_ok(obj_write(&read, &again)); /* same content, same bytes */
    assert_int_equal(again.count, elf.count);
    assert_memory_equal(again.data, elf.data, elf.count);
    bytes_free(&again);
    bytes_free(&elf);
    assembled_free(&source);
}

/* Kernels are assembled on many threads at once: every run gives the same bytes. */
enum { PARALLEL = 64 };
static const char parallel_text[] =
    ".macro step r, n=1\n.Ls\\@: add \\r, \\r, \\n\nbri .Ls\\@\n.endm\n.globl f\n.align 8\nf: "
    ".rept 40\nstep $m1, n=3\n"
    ".endr\nsetzi $m0, TAMP_F16V4_E4_P1 + later\n.data\nlater: .word f, 1f\n1:\n";

static void assemble_one(void *context, size_t index, unsigned worker)
{
    Bytes *out = (Bytes *)context + index;
    (void)worker;
    Assembled source = assembled_with(parallel_text, NULL);
    AsObject read;
    if (status_ok(source.status) && !status_discard(obj_write(&source.object, out)) &&
        status_discard(obj_read(&source.arena, "again", out->data, out->count, &read)))
        out->count = 0;
    assembled_free(&source);
}

static void parallel_runs_agree(void **state)
{
    (void)state;
    Bytes objects[PARALLEL] = {{0}};
    Pool *pool = pool_create(4);
    parallel_for(pool, PARALLEL, assemble_one, objects);
    pool_destroy(pool);
    assert_true(objects[0].count > 300);
    for (int i = 0; i < PARALLEL; i++) {
        assert_int_equal(objects[i].count, objects[0].count);
        assert_memory_equal(objects[i].data, objects[0].data, objects[0].count);
    }
    for (int i = 0; i < PARALLEL; i++)
        bytes_free(&objects[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_with_symbols),
        cmocka_unit_test(relocations_store_and_check),
        cmocka_unit_test(reachable_sections_only),
        cmocka_unit_test(first_fit_moves_forward),
        cmocka_unit_test(definitions),
        cmocka_unit_test(elf_keeps_everything),
        cmocka_unit_test(parallel_runs_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
