/* cmd_dis.c - ipu-stack dis: code as assembly.
 *
 * Raw words become a listing that assembles again. Sections of an object are shown with their
 * symbols and relocations: their addresses are not known yet. */
#include "cli/tools.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static void print_symbols_at(const AsObject *object, uint32_t section, uint32_t offset)
{
    for (uint32_t i = 0; i < object->symbol_count; i++) {
        const AsSymbol *symbol = &object->symbols[i];
        if (symbol->section == section && symbol->value == offset && !symbol->is_section)
            printf("%s:\n", symbol->name);
    }
}

static void print_relocations(const AsObject *object, const AsSection *section, uint32_t offset,
                              uint32_t bytes)
{
    for (uint32_t i = 0; i < section->relocation_count; i++) {
        const AsRelocation *relocation = &section->relocations[i];
        if (relocation->offset < offset || relocation->offset >= offset + bytes)
            continue;
        printf("  %s %s", relocation_name(relocation->type),
               object->symbols[relocation->symbol].name);
        if (relocation->addend)
            printf("%+d", relocation->addend);
    }
}

static uint32_t decode_at(const AsSection *section, uint32_t offset, IsaMode mode, Insn *out)
{
    uint32_t next = offset + 8 <= section->bytes ? load_u32(section->data + offset + 4) : 0;
    isa_decode(load_u32(section->data + offset), next, mode, out);
    return out->words == 2 && offset + 8 <= section->bytes ? 8 : 4;
}

/* One instruction, or a bundle of two. Returns its bytes. */
static uint32_t print_code(const AsObject *object, uint32_t index, uint32_t offset, IsaMode mode)
{
    const AsSection *section = &object->sections[index];
    Insn insn[2];
    char text[2][128];
    uint32_t bytes = decode_at(section, offset, mode, &insn[0]);
    isa_print(&insn[0], mode, text[0], sizeof text[0]);
    bool pair = insn[0].bundled && offset + 8 <= section->bytes;
    if (pair) {
        bytes += decode_at(section, offset + 4, mode, &insn[1]);
        isa_print(&insn[1], mode, text[1], sizeof text[1]);
    }
    printf("  %06x: ", offset);
    printf("%08x ", load_u32(section->data + offset));
    if (bytes == 8)
        printf("%08x ", load_u32(section->data + offset + 4));
    else
        printf("%9s", "");
    if (pair)
        printf(" { %s ; %s }", text[0], text[1]);
    else
        printf(" %s", text[0]);
    print_relocations(object, section, offset, bytes);
    printf("\n");
    return bytes;
}

static void print_object(const AsObject *object, IsaMode mode)
{
    for (uint32_t i = 0; i < object->section_count; i++) {
        const AsSection *section = &object->sections[i];
        if (!(section->flags & AS_EXECUTE) || section->flags & AS_NOBITS)
            continue;
        printf("section %s, %u bytes\n", section->name, section->bytes);
        uint32_t offset = 0;
        while (offset + 4 <= section->bytes) {
            print_symbols_at(object, i, offset);
            offset += print_code(object, i, offset, mode);
        }
        print_symbols_at(object, i, offset);
    }
}

/* Whatever is not an ELF file is taken as raw words: says so when it hardly is code. */
static void doubt_raw(const char *path, const Bytes *bytes, IsaMode mode)
{
    size_t words = bytes->count / 4, unknown = 0, readable = 0;
    for (size_t i = 0; i < words; i++) {
        Insn insn;
        uint32_t next = i + 1 < words ? load_u32(bytes->data + 4 * i + 4) : 0;
        unknown += !isa_decode(load_u32(bytes->data + 4 * i), next, mode, &insn);
    }
    for (size_t i = 0; i < bytes->count; i++)
        readable += isprint(bytes->data[i]) || isspace(bytes->data[i]);
    if (bytes->count == 0)
        fprintf(stderr, "warning: %s is empty\n", path);
    else if (readable == bytes->count)
        fprintf(stderr, "warning: %s is text, not an object: its bytes are shown as raw words\n",
                path);
    else if (2 * unknown > words)
        fprintf(stderr,
                "warning: %s is no ELF file and hardly raw code: %zu of its %zu words are no "
                "instructions\n",
                path, unknown, words);
}

static Status print_raw(const Bytes *bytes, uint32_t base, IsaMode mode)
{
    if (base % 4)
        return status_error("code begins at a multiple of 4, not at 0x%x", base);
    static const char *const modes[] = {[MODE_BOTH] = ".allow_invalid_execution_mode",
                                        [MODE_WORKER] = ".worker",
                                        [MODE_SUPERVISOR] = ".supervisor"};
    Text text = {0};
    uint32_t *words = xmalloc(bytes->count);
    /* Data may look like code that breaks rules; the text has to assemble all the same. */
    text_printf(&text, "%s\n.allow_invalid_bundles\n.allow_invalid_repeat\n", modes[mode]);
    text_append(&text, base % 8 ? ".allow_invalid_operands\n" : "");
    memcpy(words, bytes->data, bytes->count);
    isa_listing(&text, words, bytes->count / 4, base, mode);
    for (size_t i = bytes->count & ~(size_t)3; i < bytes->count; i++)
        text_printf(&text, "    .byte 0x%02x\n", bytes->data[i]);
    fputs(text_string(&text), stdout);
    array_release(words);
    text_free(&text);
    return STATUS_OK;
}

static Status run(Arena *arena, const char *path, uint32_t base, IsaMode mode)
{
    Bytes bytes;
    AsObject object;
    TRY(file_read(path, FILE_LIMIT_TEXT, &bytes));
    Status status;
    if (!is_elf(&bytes)) {
        doubt_raw(path, &bytes, mode);
        status = print_raw(&bytes, base, mode);
    } else {
        status = obj_read(arena, path, bytes.data, bytes.count, &object);
        if (status_ok(status))
            print_object(&object, mode);
    }
    bytes_free(&bytes);
    return status;
}

int cmd_dis(int argc, char **argv)
{
    Arena arena = {0};
    TextList files = {0};
    uint64_t base = 0;
    const char *mode = "both";
    const Option options[] = {
        {"--base", OPTION_NUMBER, &base, "ADDR", "address of the first word of raw code", 0,
         0x3ffffffc},
        {"--mode", OPTION_TEXT, &mode, "worker|supervisor|both",
         "whose instructions (default both)", 0, 0},
        {0},
    };
    const Command command = {"ipu-stack dis FILE.o|FILE.bin [options]",
                             "Disassembles the code of an object, or raw words.", options, 1, 1};
    int status = command_parse(&command, argc, argv, &files);
    if (status < 0) {
        IsaMode which = !strcmp(mode, "worker")       ? MODE_WORKER
                        : !strcmp(mode, "supervisor") ? MODE_SUPERVISOR
                                                      : MODE_BOTH;
        if (which == MODE_BOTH && strcmp(mode, "both") != 0) {
            fprintf(stderr, "ipu-stack dis: --mode is worker, supervisor or both\n");
            status = 2;
        } else {
            Status result = run(&arena, files.items[0], (uint32_t)base, which);
            status = status_ok(result) ? 0 : command_fail("dis", result);
        }
    }
    array_free(&files);
    arena_free(&arena);
    return status;
}
