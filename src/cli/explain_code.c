/* explain_code.c - the machine code of a tile: every instruction with the step it belongs to.
 *
 * The generator marks where a step's code begins and the placement says where each row lies; from
 * both follows an owner for every address. What has none is start-up, loop and completion code. */
#include "cli/explain.h"

#include <stdlib.h>
#include <string.h>

enum { NO_STEP = 0xffffffff, EXECUTABLE = 4 };

typedef struct Owner {
    uint32_t start, end, step;
} Owner;

typedef struct Code {
    const Compilation *c;
    const TileCode *tile;
    const Map *only;
    ARRAY(Owner) owners; /* by address */
} Code;

static int by_start(const void *a, const void *b)
{
    const Owner *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

static void code_open(Code *code, const Compilation *c, const Narrow *narrow)
{
    uint32_t logical = narrow_tile(narrow, &c->program);
    const TileCode *tile = &c->images.tiles[target_physical(logical)];
    *code = (Code){.c = c, .tile = tile, .only = narrow->only};
    for (uint32_t m = 0; m < tile->mark_count; m++) {
        uint32_t end = m + 1 < tile->mark_count ? tile->marks[m + 1].address : tile->steps_end;
        array_push(&code->owners, (Owner){tile->marks[m].address, end, tile->marks[m].step});
    }
    for (uint32_t s = 0; s < c->program.steps.count; s++) {
        const Step *step = &c->program.steps.items[s];
        if (step->kind != STEP_EXCHANGE || logical >= c->program.tiles)
            continue;
        uint32_t row = c->placement.row_address[(size_t)step->first * c->program.tiles + logical];
        uint32_t words = c->schedule.phases[step->first].row_words[logical];
        if (row)
            array_push(&code->owners, (Owner){row, row + 4 * words, s});
    }
    if (code->owners.count)
        qsort(code->owners.items, code->owners.count, sizeof(Owner), by_start);
}

static uint32_t owner_of(const Code *code, uint32_t address)
{
    size_t low = 0, high = code->owners.count;
    while (low < high) { /* the first that starts behind the address */
        size_t middle = (low + high) / 2;
        if (code->owners.items[middle].start > address)
            high = middle;
        else
            low = middle + 1;
    }
    const Owner *owner = low ? &code->owners.items[low - 1] : NULL;
    return owner && address < owner->end ? owner->step : NO_STEP;
}

static bool wanted(const Code *code, uint32_t step)
{
    return !code->only ||
           (step != NO_STEP && map_wants(code->only, code->c->program.steps.items[step].operation));
}

static bool segment_wanted(const Code *code, const ImageSegment *segment)
{
    bool found = !code->only;
    for (size_t i = 0; i < code->owners.count && !found; i++) {
        const Owner *owner = &code->owners.items[i];
        found = owner->start >= segment->address &&
                owner->start < segment->address + segment->bytes && wanted(code, owner->step);
    }
    return found && segment->flags & EXECUTABLE;
}

static bool is_linked(const ImageSegment *segment)
{
    return strcmp(segment->name, "linked executable") == 0;
}

static uint32_t word_at(const ImageSegment *segment, uint32_t index)
{
    uint32_t word = 0;
    if (4 * (uint64_t)index + 4 <= segment->data_bytes)
        memcpy(&word, segment->data + 4 * (size_t)index, 4);
    return word;
}

/* ---- text ---- */

/* "    add $m0, $m1, 4      // 05c010: 1904c018": the address that a line of a listing ends with.
 */
static bool line_address(const char *line, size_t length, uint32_t *out)
{
    for (size_t i = 0; i + 3 < length; i++)
        if (memcmp(line + i, "// ", 3) == 0) {
            *out = (uint32_t)strtoul(line + i + 3, NULL, 16);
            return true;
        }
    return false;
}

static void put_step(Text *text, const Code *code, uint32_t step)
{
    static const char *const kinds[] = {"call", "copy", "exchange", "repeat", "end of repeat"};
    if (step == NO_STEP) {
        text_append(text, "// no step\n");
        return;
    }
    const Step *s = &code->c->program.steps.items[step];
    text_printf(text, "// step %u, %s: %s\n", step, s->operation ? s->operation : "",
                kinds[s->kind]);
}

static void put_listing(Text *text, const Code *code, const char *listing, uint32_t *step)
{
    while (*listing) {
        const char *line = listing, *pending = listing; /* labels go with the line behind them */
        uint32_t address = 0;
        bool found = false;
        while (*listing && !found) {
            line = listing;
            size_t length = strcspn(listing, "\n");
            found = line_address(line, length, &address);
            listing += length + (listing[length] == '\n');
        }
        uint32_t owner = found ? owner_of(code, address) : *step;
        if (!wanted(code, owner))
            continue;
        if (owner != *step)
            put_step(text, code, owner);
        *step = owner;
        array_append(text, pending, (size_t)(listing - pending));
    }
}

static void put_segment(Text *text, const Code *code, const ImageSegment *segment)
{
    uint32_t step = NO_STEP;
    text_printf(text, "%s at %#x, %u bytes\n", segment->name, segment->address, segment->bytes);
    if (is_linked(segment)) {
        for (uint32_t i = 0; i < code->c->linked.symbol_count; i++)
            text_printf(text, "  %#x %s\n", code->c->linked.symbols[i].address,
                        code->c->linked.symbols[i].name);
        return;
    }
    ARRAY(uint32_t) words = {0};
    Text listing = {0};
    array_resize(&words, segment->data_bytes / 4);
    memcpy(words.items, segment->data, words.count * 4);
    isa_listing(&listing, words.items, words.count, segment->address, MODE_SUPERVISOR);
    put_listing(text, code, text_string(&listing), &step);
    text_free(&listing);
    array_free(&words);
}

void code_print(Text *text, const Compilation *c, const Narrow *narrow)
{
    Code code;
    code_open(&code, c, narrow);
    text_printf(text, "tile %u (physical %u)\n", target_logical(code.tile->physical),
                code.tile->physical);
    for (uint32_t s = 0; s < code.tile->segment_count; s++)
        if (segment_wanted(&code, &code.tile->segments[s]))
            put_segment(text, &code, &code.tile->segments[s]);
    text_append(text, ""); /* which ends it with its zero */
    array_free(&code.owners);
}

/* ---- JSON ---- */

static json_t *symbols_json(const Compilation *c)
{
    json_t *out = json_array();
    for (uint32_t i = 0; i < c->linked.symbol_count; i++)
        json_array_append_new(out, json_pack("{s:s, s:I}", "name", c->linked.symbols[i].name,
                                             "address", (json_int_t)c->linked.symbols[i].address));
    return out;
}

static json_t *instructions_json(const Code *code, const ImageSegment *segment)
{
    json_t *out = json_array();
    for (uint32_t i = 0; i < segment->data_bytes / 4; i++) {
        uint32_t address = segment->address + 4 * i, word = word_at(segment, i);
        uint32_t step = owner_of(code, address);
        if (!wanted(code, step))
            continue;
        Insn insn;
        char text[128], hex[16];
        if (isa_decode(word, word_at(segment, i + 1), MODE_SUPERVISOR, &insn))
            isa_print(&insn, MODE_SUPERVISOR, text, sizeof text);
        else
            snprintf(text, sizeof text, ".word 0x%08x", word);
        snprintf(hex, sizeof hex, "%08x", word);
        json_t *item =
            json_pack("{s:I, s:s, s:s}", "address", (json_int_t)address, "word", hex, "text", text);
        if (step != NO_STEP)
            json_object_set_new(item, "step", json_integer(step));
        json_array_append_new(out, item);
    }
    return out;
}

static json_t *steps_json(const Code *code)
{
    static const char *const kinds[] = {"call", "copy", "exchange", "repeat", "end-repeat"};
    json_t *out = json_array();
    bool *listed = xcalloc(code->c->program.steps.count + 1, sizeof *listed);
    for (size_t i = 0; i < code->owners.count; i++)
        listed[code->owners.items[i].step] = true;
    for (uint32_t s = 0; s < code->c->program.steps.count; s++) {
        const Step *step = &code->c->program.steps.items[s];
        if (listed[s] && wanted(code, s))
            json_array_append_new(
                out, json_pack("{s:I, s:s, s:s}", "step", (json_int_t)s, "operation",
                               step->operation ? step->operation : "", "kind", kinds[step->kind]));
    }
    free(listed);
    return out;
}

json_t *code_to_json(const Compilation *c, const Narrow *narrow)
{
    Code code;
    code_open(&code, c, narrow);
    json_t *segments = json_array();
    for (uint32_t s = 0; s < code.tile->segment_count; s++) {
        const ImageSegment *segment = &code.tile->segments[s];
        if (!segment_wanted(&code, segment))
            continue;
        json_t *item = json_pack("{s:s, s:I, s:I}", "name", segment->name, "address",
                                 (json_int_t)segment->address, "bytes", (json_int_t)segment->bytes);
        if (is_linked(segment))
            json_object_set_new(item, "symbols", symbols_json(c));
        else
            json_object_set_new(item, "instructions", instructions_json(&code, segment));
        json_array_append_new(segments, item);
    }
    json_t *out = json_pack("{s:I, s:I, s:I, s:o, s:o}", "tile",
                            (json_int_t)target_logical(code.tile->physical), "physicalTile",
                            (json_int_t)code.tile->physical, "entry", (json_int_t)code.tile->entry,
                            "steps", steps_json(&code), "segments", segments);
    array_free(&code.owners);
    return out;
}
