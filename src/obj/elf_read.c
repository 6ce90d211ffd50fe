/* elf_read.c - an object from an ELF file.
 *
 * The file may come from anywhere: every index, offset and name is checked before use. */
#include "obj/elf_object.h"

#include <string.h>

enum { ALIGN_LIMIT = 1 << 20, BYTES_LIMIT = 256 << 20 };

typedef struct Reader {
    Arena *arena;
    Elf *elf;
    const uint8_t *data;
    size_t count;
    size_t sections; /* ELF's number of them */
    size_t name_section;
    uint32_t *section_index; /* of ELF sections in the object, AS_UNDEFINED when dropped */
    uint32_t *symbol_index;  /* of ELF symbols, likewise */
    size_t symbol_total;
    size_t symbol_section;
    AsObject *out;
} Reader;

static Elf32_Shdr *header_of(const Reader *r, size_t index)
{
    Elf_Scn *section = elf_getscn(r->elf, index);
    return section ? elf32_getshdr(section) : NULL;
}

/* The bytes of a section in the file, checked against the file's size. */
static Status section_bytes(const Reader *r, const Elf32_Shdr *header, const uint8_t **out)
{
    if (header->sh_offset > r->count || header->sh_size > r->count - header->sh_offset)
        return status_error("a section lies outside of the file");
    *out = r->data + header->sh_offset;
    return STATUS_OK;
}

static Status read_name(const Reader *r, size_t table, size_t at, const char **out)
{
    const char *name = elf_strptr(r->elf, table, at);
    if (!name)
        return status_error("a name lies outside of its table");
    *out = arena_strdup(r->arena, name);
    return STATUS_OK;
}

static Status read_section(Reader *r, size_t index, const Elf32_Shdr *header)
{
    AsSection *out = &r->out->sections[r->out->section_count];
    TRY(read_name(r, r->name_section, header->sh_name, &out->name));
    out->align = header->sh_addralign ? header->sh_addralign : 1;
    out->bytes = header->sh_size;
    out->flags = (header->sh_flags & SHF_WRITE ? AS_WRITE : 0) |
                 (header->sh_flags & SHF_ALLOC ? AS_ALLOC : 0) |
                 (header->sh_flags & SHF_EXECINSTR ? AS_EXECUTE : 0) |
                 (header->sh_type == SHT_NOBITS ? AS_NOBITS : 0);
    if (out->align > ALIGN_LIMIT || (out->align & (out->align - 1)))
        return status_error("section %s: bad alignment %u", out->name, out->align);
    if (out->bytes > BYTES_LIMIT)
        return status_error("section %s: %u bytes are too many", out->name, out->bytes);
    if (header->sh_type != SHT_NOBITS) {
        const uint8_t *bytes = NULL;
        TRY(status_context(section_bytes(r, header, &bytes), "section %s", out->name));
        out->data = arena_copy(r->arena, bytes, out->bytes, 4);
    }
    r->section_index[index] = r->out->section_count++;
    return STATUS_OK;
}

static Status read_sections(Reader *r)
{
    r->out->sections = arena_array(r->arena, AsSection, r->sections + 1);
    r->section_index = arena_array(r->arena, uint32_t, r->sections + 1);
    for (size_t i = 0; i < r->sections; i++) {
        r->section_index[i] = AS_UNDEFINED;
        const Elf32_Shdr *header = header_of(r, i);
        if (!header)
            return elf_failed("section header");
        if (header->sh_type == SHT_SYMTAB) {
            if (r->symbol_section)
                return status_error("two symbol tables");
            r->symbol_section = i;
        }
        if (header->sh_type == SHT_PROGBITS || header->sh_type == SHT_NOBITS)
            TRY(read_section(r, i, header));
    }
    return STATUS_OK;
}

static Status place_of_symbol(const Reader *r, const Elf32_Sym *from, AsSymbol *out)
{
    out->section = AS_UNDEFINED;
    if (from->st_shndx == SHN_UNDEF)
        return STATUS_OK;
    if (from->st_shndx == SHN_ABS) {
        out->section = AS_ABSOLUTE;
        return STATUS_OK;
    }
    if (from->st_shndx >= r->sections || from->st_shndx >= SHN_LORESERVE)
        return status_error("symbol '%s' is in section %u, which does not exist", out->name,
                            from->st_shndx);
    out->section = r->section_index[from->st_shndx];
    if (out->section != AS_UNDEFINED && from->st_value > r->out->sections[out->section].bytes)
        return status_error("symbol '%s' lies behind the end of its section", out->name);
    return STATUS_OK;
}

static Status read_symbol(Reader *r, size_t index, const Elf32_Sym *from, size_t names)
{
    static const uint8_t bindings[] = {
        [STB_LOCAL] = AS_LOCAL, [STB_GLOBAL] = AS_GLOBAL, [STB_WEAK] = AS_WEAK};
    uint8_t type = ELF32_ST_TYPE(from->st_info), binding = ELF32_ST_BIND(from->st_info);
    AsSymbol *out = &r->out->symbols[r->out->symbol_count];
    r->symbol_index[index] = AS_UNDEFINED;
    if (index == 0 || type == STT_FILE)
        return STATUS_OK;
    *out = (AsSymbol){.value = from->st_value,
                      .size = from->st_size,
                      .function = type == STT_FUNC,
                      .is_section = type == STT_SECTION};
    TRY(read_name(r, names, from->st_name, &out->name));
    if (binding >= countof(bindings))
        return status_error("symbol '%s': unknown binding %u", out->name, binding);
    out->binding = bindings[binding];
    TRY(place_of_symbol(r, from, out));
    bool dropped = out->section == AS_UNDEFINED && from->st_shndx != SHN_UNDEF;
    if (dropped || (out->section == AS_UNDEFINED && out->binding == AS_LOCAL))
        return STATUS_OK;
    if (out->is_section && out->section < r->out->section_count)
        out->name = r->out->sections[out->section].name;
    r->symbol_index[index] = r->out->symbol_count++;
    return STATUS_OK;
}

static Status read_symbols(Reader *r)
{
    if (!r->symbol_section)
        return STATUS_OK;
    const Elf32_Shdr *header = header_of(r, r->symbol_section);
    const uint8_t *bytes = NULL;
    TRY(status_context(section_bytes(r, header, &bytes), "symbol table"));
    r->symbol_total = header->sh_size / sizeof(Elf32_Sym);
    r->out->symbols = arena_array(r->arena, AsSymbol, r->symbol_total + 1);
    r->symbol_index = arena_array(r->arena, uint32_t, r->symbol_total + 1);
    for (size_t i = 0; i < r->symbol_total; i++) {
        Elf32_Sym symbol;
        memcpy(&symbol, bytes + i * sizeof symbol, sizeof symbol);
        TRY(read_symbol(r, i, &symbol, header->sh_link));
    }
    return STATUS_OK;
}

static Status read_relocation(const Reader *r, const AsSection *section, const Elf32_Rela *from,
                              AsRelocation *out)
{
    uint32_t symbol = ELF32_R_SYM(from->r_info);
    *out = (AsRelocation){
        .offset = from->r_offset, .type = ELF32_R_TYPE(from->r_info), .addend = from->r_addend};
    uint32_t width = relocation_bytes(out->type);
    if (!width && out->type != RELOC_NONE)
        return status_error("unknown relocation type %u", out->type);
    if (out->offset > section->bytes || width > section->bytes - out->offset)
        return status_error("relocation at 0x%x lies outside of the section", out->offset);
    if (symbol >= r->symbol_total || r->symbol_index[symbol] == AS_UNDEFINED)
        return status_error("relocation at 0x%x has no symbol", out->offset);
    out->symbol = r->symbol_index[symbol];
    return STATUS_OK;
}

static Status read_relocations(const Reader *r, const Elf32_Shdr *header)
{
    if (header->sh_info >= r->sections || header->sh_link != r->symbol_section)
        return status_error("relocations of an unknown section or symbol table");
    uint32_t index = r->section_index[header->sh_info];
    if (index == AS_UNDEFINED)
        return STATUS_OK;
    AsSection *section = &r->out->sections[index];
    if (section->flags & AS_NOBITS || section->relocation_count)
        return status_error("section %s: unexpected relocations", section->name);
    const uint8_t *bytes = NULL;
    TRY(section_bytes(r, header, &bytes));
    uint32_t count = header->sh_size / (uint32_t)sizeof(Elf32_Rela);
    section->relocations = arena_array(r->arena, AsRelocation, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        Elf32_Rela relocation;
        memcpy(&relocation, bytes + i * sizeof relocation, sizeof relocation);
        TRY(status_context(read_relocation(r, section, &relocation, &section->relocations[i]),
                           "section %s", section->name));
    }
    section->relocation_count = count;
    return STATUS_OK;
}

/* libelf would read a table that lies outside of the file as one of 0 sections. */
static Status check_section_table(const Reader *r, const Elf32_Ehdr *header, size_t sections)
{
    if (header->e_shoff % _Alignof(Elf32_Shdr)) /* libelf gives pointers into the file */
        return status_error("the section headers are misaligned");
    if (header->e_shoff < sizeof *header || header->e_shoff > r->count ||
        sections > (r->count - header->e_shoff) / sizeof(Elf32_Shdr))
        return status_error("the table of sections lies outside of the file: is it cut off?");
    return STATUS_OK;
}

static Status read_elf(Reader *r)
{
    const Elf32_Ehdr *header = elf_kind(r->elf) == ELF_K_ELF ? elf32_getehdr(r->elf) : NULL;
    if (!header)
        return status_error("not a 32-bit ELF file");
    if (header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_machine != ELF_MACHINE_IPU)
        return status_error("not for the IPU: machine 0x%x, expected 0x%x", header->e_machine,
                            ELF_MACHINE_IPU);
    if (header->e_type != ET_REL)
        return status_error("not an object: ELF type %u", header->e_type);
    TRY(check_section_table(r, header, header->e_shnum ? header->e_shnum : 1));
    if (elf_getshdrnum(r->elf, &r->sections) || elf_getshdrstrndx(r->elf, &r->name_section))
        return elf_failed("section headers");
    if (!r->sections || r->sections > SHN_LORESERVE)
        return status_error("%zu sections: 1 to %u are possible", r->sections, SHN_LORESERVE);
    TRY(check_section_table(r, header, r->sections)); /* the number may stand in the table */
    TRY(read_sections(r));
    TRY(read_symbols(r));
    for (size_t i = 0; i < r->sections; i++) {
        const Elf32_Shdr *section = header_of(r, i);
        if (section->sh_type == SHT_REL)
            return status_error("relocations without addends are not supported");
        if (section->sh_type == SHT_RELA)
            TRY(read_relocations(r, section));
    }
    return STATUS_OK;
}

Status obj_read(Arena *arena, const char *name, const uint8_t *data, size_t count, AsObject *out)
{
    *out = (AsObject){0};
    if (elf_version(EV_CURRENT) == EV_NONE)
        return status_context(elf_failed("libelf"), "%s", name);
    if (count < sizeof(Elf32_Ehdr))
        return status_error("%s: not an ELF file: only %zu bytes", name, count);
    AsObject object = {0};
    char *copy = arena_copy(arena, data, count, 16); /* libelf wants aligned, writable memory */
    Reader reader = {.arena = arena,
                     .data = (const uint8_t *)copy,
                     .count = count,
                     .out = &object,
                     .elf = elf_memory(copy, count)};
    Status status = reader.elf ? read_elf(&reader) : elf_failed("elf");
    if (reader.elf)
        elf_end(reader.elf);
    if (status_ok(status))
        *out = object;
    return status_context(status, "%s", name);
}
