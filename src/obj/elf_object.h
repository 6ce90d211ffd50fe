/* elf_object.h - what reading and writing of ELF objects share.
 *
 * 32 bits, little-endian, machine 0xf8, relocations with addends. What we write, section by
 * section:
 *
 *   null | the object's ... | .rela of those that have relocations | .symtab | .strtab | .shstrtab
 */
#ifndef IPU_OBJ_ELF_OBJECT_H
#define IPU_OBJ_ELF_OBJECT_H

#include "obj/relocation.h"

#include <elf.h>
#include <libelf.h>

enum { ELF_MACHINE_IPU = 0xf8 };

Status elf_failed(const char *what); /* with libelf's message */

#endif
