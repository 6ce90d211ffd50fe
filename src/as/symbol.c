/* symbol.c - words, symbols, sections and the bytes in them. */
#include "as/assembler.h"

#include <string.h>

static void grow_words(Assembler *as)
{
    uint32_t slots = as->word_slots ? as->word_slots * 2 : 1024;
    Word **grown = xcalloc(slots, sizeof(Word *));
    for (uint32_t i = 0; i < as->word_slots; i++) {
        Word *word = as->words[i];
        if (!word)
            continue;
        uint32_t slot = word->hash & (slots - 1);
        while (grown[slot])
            slot = (slot + 1) & (slots - 1);
        grown[slot] = word;
    }
    array_release(as->words);
    as->words = grown;
    as->word_slots = slots;
}

Word *word_of(Assembler *as, const char *text, uint32_t length, uint32_t hash)
{
    if (as->word_count * 2 >= as->word_slots)
        grow_words(as);
    uint32_t slot = hash & (as->word_slots - 1);
    for (Word *word; (word = as->words[slot]); slot = (slot + 1) & (as->word_slots - 1))
        if (word->hash == hash && word->length == length && !memcmp(word->name, text, length))
            return word;
    Word *word = arena_new(as->arena, Word);
    char *name = arena_alloc(as->arena, length + 1, 1);
    memcpy(name, text, length);
    word->name = name;
    word->length = length;
    word->hash = hash;
    if (length && text[0] == '.')
        word->directive = find_directive(text, length);
    else
        word->syntax = isa_syntax(text, length);
    as->words[slot] = word;
    as->word_count++;
    return word;
}

Word *token_word(Assembler *as)
{
    return word_of(as, as->token.text, as->token.length, as->token.hash);
}

static Symbol *new_symbol(Assembler *as, const char *name)
{
    Symbol *symbol = arena_new(as->arena, Symbol);
    symbol->name = name;
    symbol->root = symbol->size_root = NO_NODE;
    array_push(&as->symbols, symbol);
    return symbol;
}

Symbol *symbol_of(Assembler *as, Word *word)
{
    if (word->symbol)
        return word->symbol;
    Symbol *symbol = new_symbol(as, word->name);
    word->symbol = symbol;
    if (builtin_constant(word->name, &symbol->value))
        symbol->builtin = symbol->defined = symbol->variable = true;
    return symbol;
}

bool define_label(Assembler *as, Symbol *symbol)
{
    if (symbol->defined && !symbol->builtin) {
        as_error(as, "symbol '%s' is already defined", symbol->name);
        return false;
    }
    symbol->builtin = symbol->variable = false;
    symbol->defined = true;
    symbol->section = as->section;
    symbol->value = (int64_t)as->section->bytes;
    return true;
}

/* Numeric labels: the n-th "5:" is found under 5 and n; 5 << 32 without n holds the count. */
static uint64_t *local_count(Assembler *as, uint64_t number)
{
    return map_at(&as->locals, number << 32, NULL);
}

Symbol *local_symbol(Assembler *as, uint64_t number, bool forward)
{
    uint64_t which = *local_count(as, number) + forward;
    if (which == 0)
        return NULL;
    uint64_t *place = map_at(&as->locals, number << 32 | which, NULL);
    if (!*place)
        *place = (uint64_t)(uintptr_t)new_symbol(as, arena_printf(as->arena, ".Llocal_%llu_%llu",
                                                                  (unsigned long long)number,
                                                                  (unsigned long long)which));
    return (Symbol *)(uintptr_t)*map_find(&as->locals, number << 32 | which);
}

void define_local(Assembler *as, uint64_t number)
{
    if (number > 0xffffff) {
        as_error(as, "number of a local label is too large");
        return;
    }
    define_label(as, local_symbol(as, number, true));
    ++*local_count(as, number);
}

/* ---- sections ---- */

static uint32_t standard_flags(const char *name)
{
    static const struct {
        const char *prefix;
        uint32_t flags;
    } kinds[] = {
        {".text", AS_ALLOC | AS_EXECUTE},
        {".data", AS_ALLOC | AS_WRITE},
        {".rodata", AS_ALLOC},
        {".bss", AS_ALLOC | AS_WRITE | AS_NOBITS},
    };
    for (size_t i = 0; i < countof(kinds); i++) {
        size_t length = strlen(kinds[i].prefix);
        if (!strncmp(name, kinds[i].prefix, length) && (name[length] == 0 || name[length] == '.'))
            return kinds[i].flags;
    }
    return 0;
}

Section *section_of(Assembler *as, const char *name, size_t length, uint32_t flags)
{
    char *copy = arena_alloc(as->arena, length + 1, 1);
    memcpy(copy, name, length);
    uint64_t *place = map_at_text(&as->section_names, copy, NULL);
    if (*place)
        return (Section *)(uintptr_t)*place;
    Section *section = arena_new(as->arena, Section);
    *place = (uint64_t)(uintptr_t)section;
    section->name = copy;
    section->flags = flags == UINT32_MAX ? standard_flags(copy) : flags;
    section->align = section->flags & AS_EXECUTE ? 4 : 1;
    section->index = as->section_count++;
    section->symbol = new_symbol(as, copy);
    section->symbol->defined = section->symbol->is_section = true;
    section->symbol->section = section;
    if (as->last_section)
        as->last_section->next = section;
    else
        as->sections = section;
    as->last_section = section;
    return section;
}

void use_section(Assembler *as, Section *section)
{
    if (section == as->section)
        return;
    as->previous = as->section;
    as->section = section;
}

/* ---- bytes ---- */

static bool room_for(Assembler *as, size_t count)
{
    as->output += count;
    if (count <= OUTPUT_LIMIT && as->output <= OUTPUT_LIMIT)
        return true;
    as_error(as, "the sections take more than %d MiB", OUTPUT_LIMIT >> 20);
    as->stop = true;
    return false;
}

/* Every word that is begun gets a kind; words of data stay 0. */
static void note_kinds(Section *section)
{
    size_t words = (size_t)(section->bytes + 3) / 4, old = section->kinds.count;
    if (words <= old)
        return;
    array_resize(&section->kinds, words);
    memset(section->kinds.items + old, WORD_DATA, words - old);
}

bool emit_bytes(Assembler *as, const void *data, size_t count)
{
    Section *section = as->section;
    if (section->flags & AS_NOBITS) {
        for (size_t i = 0; data && i < count; i++)
            if (((const uint8_t *)data)[i]) {
                as_error(as, "section %s holds no bytes: only space is possible there",
                         section->name);
                return false;
            }
        if (count > OUTPUT_LIMIT || section->bytes + count > OUTPUT_LIMIT)
            return room_for(as, OUTPUT_LIMIT + 1);
        section->bytes += count;
        return true;
    }
    if (count == 0)
        return true;
    if (!room_for(as, count))
        return false;
    size_t old = section->data.count;
    array_resize(&section->data, old + count);
    if (data)
        memcpy(section->data.items + old, data, count);
    else
        memset(section->data.items + old, 0, count);
    section->bytes += count;
    if (section->flags & AS_EXECUTE)
        note_kinds(section);
    return true;
}

void emit_words(Assembler *as, const uint32_t *words, int count, const uint8_t *kinds)
{
    Section *section = as->section;
    size_t first = (size_t)section->bytes / 4;
    if (!emit_bytes(as, words, (size_t)count * 4) || !(section->flags & AS_EXECUTE))
        return;
    for (int i = 0; i < count; i++)
        section->kinds.items[first + i] = kinds[i];
}

/* fill < 0: nop words in code, zeros elsewhere. */
void align_section(Assembler *as, uint32_t align, int fill)
{
    Section *section = as->section;
    section->align = max_u32(section->align, align);
    uint32_t gap = (uint32_t)(-section->bytes & (align - 1));
    bool code = fill < 0 && section->flags & AS_EXECUTE;
    uint8_t byte = (uint8_t)(fill < 0 ? 0 : fill), zeros[4] = {0};
    if (code) { /* bytes up to the next word, then nops */
        uint32_t odd = min_u32(gap, (uint32_t)(-section->bytes & 3));
        emit_bytes(as, zeros, odd);
        gap -= odd;
        uint32_t nop = isa_word(FORM_setzi_mmmn_zi, 14, 0);
        for (; gap >= 4; gap -= 4)
            emit_words(as, &nop, 1, (const uint8_t[]){WORD_LONE});
    } else if (byte == 0) {
        emit_bytes(as, NULL, gap);
        return;
    }
    for (; gap && !as->stop; gap--)
        emit_bytes(as, &byte, 1);
}
