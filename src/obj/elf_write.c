/* elf_write.c - an object as an ELF file (the layout is drawn in elf_object.h). */
#include "obj/elf_object.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SECTION_LIMIT = 0xff00 / 2 - 4 /* below the reserved indices, with a .rela for each */ };

/* A string table begins with the empty string; every string ends with a zero that counts. */
static Elf32_Word add_string(Text *strings, const char *prefix, const char *name)
{
    if (strings->count == 0)
        array_push(strings, 0);
    if (!name[0] && !prefix[0])
        return 0;
    Elf32_Word at = (Elf32_Word)strings->count;
    text_printf(strings, "%s%s", prefix, name);
    array_push(strings, 0);
    return at;
}

typedef struct Writer {
    Elf *elf;
    const AsObject *object;
    Text names, section_names; /* string tables */
    Elf32_Word *symbol_index;  /* of the object's symbols in .symtab */
    Elf32_Word first_global;
    ARRAY(Elf32_Sym) symbols;
    ARRAY(Elf32_Rela) relocations; /* of all sections, one after the other */
} Writer;

Status elf_failed(const char *what)
{
    return status_error("%s: %s", what, elf_errmsg(-1));
}

static Status add_section(Writer *w, const char *prefix, const char *name, Elf32_Shdr header,
                          void *data, size_t bytes, Elf_Type type)
{
    Elf_Scn *section = elf_newscn(w->elf);
    Elf_Data *content = section ? elf_newdata(section) : NULL;
    Elf32_Shdr *out = section ? elf32_getshdr(section) : NULL;
    if (!content || !out)
        return elf_failed("new section");
    *content = (Elf_Data){.d_buf = bytes && header.sh_type != SHT_NOBITS ? data : NULL,
                          .d_type = type,
                          .d_size = bytes,
                          .d_align = header.sh_addralign,
                          .d_version = EV_CURRENT};
    header.sh_name = add_string(&w->section_names, prefix, name);
    header.sh_size = (Elf32_Word)bytes;
    *out = header;
    return STATUS_OK;
}

static Elf32_Sym elf_symbol(Writer *w, const AsSymbol *symbol)
{
    static const uint8_t bindings[] = {
        [AS_LOCAL] = STB_LOCAL, [AS_GLOBAL] = STB_GLOBAL, [AS_WEAK] = STB_WEAK};
    bool defined = symbol->section != AS_UNDEFINED;
    uint8_t type = symbol->is_section ? STT_SECTION : symbol->function ? STT_FUNC : STT_NOTYPE;
    return (Elf32_Sym){.st_name = symbol->is_section ? 0 : add_string(&w->names, "", symbol->name),
                       .st_value = defined ? symbol->value : 0,
                       .st_size = symbol->size,
                       .st_info = (uint8_t)ELF32_ST_INFO(bindings[symbol->binding], type),
                       .st_shndx = symbol->section == AS_UNDEFINED ? SHN_UNDEF
                                   : symbol->section == AS_ABSOLUTE
                                       ? SHN_ABS
                                       : (Elf32_Section)(symbol->section + 1)};
}

/* ELF wants the local symbols first. */
static void collect_symbols(Writer *w)
{
    const AsObject *object = w->object;
    w->symbol_index = xcalloc(object->symbol_count + 1, sizeof *w->symbol_index);
    array_push(&w->symbols, (Elf32_Sym){0});
    for (int global = 0; global < 2; global++) {
        if (global)
            w->first_global = (Elf32_Word)w->symbols.count;
        for (uint32_t i = 0; i < object->symbol_count; i++) {
            if ((object->symbols[i].binding != AS_LOCAL) != global)
                continue;
            w->symbol_index[i] = (Elf32_Word)w->symbols.count;
            array_push(&w->symbols, elf_symbol(w, &object->symbols[i]));
        }
    }
}

static void collect_relocations(Writer *w)
{
    for (uint32_t s = 0; s < w->object->section_count; s++) {
        const AsSection *section = &w->object->sections[s];
        for (uint32_t i = 0; i < section->relocation_count; i++) {
            const AsRelocation *from = &section->relocations[i];
            array_push(&w->relocations, (Elf32_Rela){.r_offset = from->offset,
                                                     .r_info = ELF32_R_INFO(
                                                         w->symbol_index[from->symbol], from->type),
                                                     .r_addend = from->addend});
        }
    }
}

static Elf32_Word elf_flags(uint32_t flags)
{
    return (flags & AS_WRITE ? SHF_WRITE : 0) | (flags & AS_ALLOC ? SHF_ALLOC : 0) |
           (flags & AS_EXECUTE ? SHF_EXECINSTR : 0);
}

static Status write_sections(Writer *w)
{
    const AsObject *object = w->object;
    Elf32_Word rela_count = 0;
    for (uint32_t i = 0; i < object->section_count; i++) {
        const AsSection *section = &object->sections[i];
        Elf32_Shdr header = {.sh_type = section->flags & AS_NOBITS ? SHT_NOBITS : SHT_PROGBITS,
                             .sh_flags = elf_flags(section->flags),
                             .sh_addralign = section->align};
        TRY(add_section(w, "", section->name, header, section->data, section->bytes, ELF_T_BYTE));
        rela_count += section->relocation_count != 0;
    }
    Elf32_Word symbols = 1 + object->section_count + rela_count;
    size_t done = 0;
    for (uint32_t i = 0; i < object->section_count; i++) {
        const AsSection *section = &object->sections[i];
        Elf32_Shdr header = {.sh_type = SHT_RELA,
                             .sh_flags = SHF_INFO_LINK,
                             .sh_link = symbols,
                             .sh_info = i + 1,
                             .sh_addralign = 4,
                             .sh_entsize = sizeof(Elf32_Rela)};
        if (section->relocation_count)
            TRY(add_section(w, ".rela", section->name, header, w->relocations.items + done,
                            section->relocation_count * sizeof(Elf32_Rela), ELF_T_RELA));
        done += section->relocation_count;
    }
    Elf32_Shdr header = {.sh_type = SHT_SYMTAB,
                         .sh_link = symbols + 1,
                         .sh_info = w->first_global,
                         .sh_addralign = 4,
                         .sh_entsize = sizeof(Elf32_Sym)};
    TRY(add_section(w, "", ".symtab", header, w->symbols.items,
                    w->symbols.count * sizeof(Elf32_Sym), ELF_T_SYM));
    header = (Elf32_Shdr){.sh_type = SHT_STRTAB, .sh_addralign = 1};
    TRY(add_section(w, "", ".strtab", header, w->names.items, w->names.count, ELF_T_BYTE));
    /* The names of the sections hold their own name: it must be in before the bytes are taken. */
    Elf32_Word at = add_string(&w->section_names, "", ".shstrtab");
    TRY(add_section(w, "", "", header, w->section_names.items, w->section_names.count, ELF_T_BYTE));
    Elf32_Shdr *last = elf32_getshdr(elf_getscn(w->elf, symbols + 2));
    if (!last)
        return elf_failed("section names");
    last->sh_name = at;
    elf32_getehdr(w->elf)->e_shstrndx = (Elf32_Half)(symbols + 2);
    return STATUS_OK;
}

static Status write_elf(Writer *w)
{
    Elf32_Ehdr *header = elf32_newehdr(w->elf);
    if (!header)
        return elf_failed("header");
    header->e_ident[EI_DATA] = ELFDATA2LSB;
    header->e_ident[EI_OSABI] = ELFOSABI_STANDALONE;
    header->e_type = ET_REL;
    header->e_machine = ELF_MACHINE_IPU;
    header->e_version = EV_CURRENT;
    add_string(&w->names, "", "");
    add_string(&w->section_names, "", "");
    collect_symbols(w);
    collect_relocations(w);
    TRY(write_sections(w));
    if (elf_update(w->elf, ELF_C_WRITE) < 0)
        return elf_failed("writing");
    return STATUS_OK;
}

static Status read_back(int file, Bytes *out)
{
    off_t count = lseek(file, 0, SEEK_END);
    if (count < 0)
        return status_error("can not read the object back");
    out->data = xmalloc((size_t)count + 1);
    out->count = (size_t)count;
    out->data[count] = 0;
    for (off_t at = 0; at < count;) {
        ssize_t got = pread(file, out->data + at, (size_t)(count - at), at);
        if (got <= 0) {
            bytes_free(out);
            return status_error("can not read the object back");
        }
        at += got;
    }
    return STATUS_OK;
}

Status obj_write(const AsObject *object, Bytes *out)
{
    *out = (Bytes){0};
    if (object->section_count > SECTION_LIMIT)
        return status_error("%u sections are more than an object can hold", object->section_count);
    if (elf_version(EV_CURRENT) == EV_NONE)
        return elf_failed("libelf");
    int file = memfd_create("object", MFD_CLOEXEC); /* libelf writes to files only */
    if (file < 0)
        return status_error("no memory file for the object");
    Writer writer = {.object = object, .elf = elf_begin(file, ELF_C_WRITE, NULL)};
    Status status = writer.elf ? write_elf(&writer) : elf_failed("begin");
    if (writer.elf)
        elf_end(writer.elf);
    if (status_ok(status))
        status = read_back(file, out);
    close(file);
    array_release(writer.symbol_index);
    array_free(&writer.symbols);
    array_free(&writer.relocations);
    text_free(&writer.names);
    text_free(&writer.section_names);
    return status;
}

Status obj_write_file(const AsObject *object, const char *path)
{
    Bytes bytes;
    TRY(obj_write(object, &bytes));
    Status status = file_write(path, bytes.data, bytes.count);
    bytes_free(&bytes);
    return status;
}
