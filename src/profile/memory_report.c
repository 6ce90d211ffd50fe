/* memory_report.c - what lies where in every tile's memory, and when: JSON, and a page that draws
 * it.
 *
 * Time is the step of the program. An item is [name, class, address, bytes, first step, last step];
 * what lives as long as the program has the program's first and last step. Items that share an
 * address at different times are the point of the picture; holes are what no item covers. */
#include "profile/profile.h"

#include <stdlib.h>
#include <string.h>

typedef struct Names {
    json_t *list;
    Map index;
} Names;

static json_int_t name_number(Names *names, const char *text)
{
    uint64_t *known = map_at_text(&names->index, text, NULL);
    if (!*known) {
        json_t *string = json_string(text);
        json_array_append_new(names->list, string ? string : json_string("?"));
        *known = json_array_size(names->list);
    }
    return (json_int_t)*known - 1;
}

typedef enum ItemClass {
    ITEM_TEMPORARY,
    ITEM_PARAMETER,
    ITEM_INPUT,
    ITEM_OUTPUT,
    ITEM_CODE,
    ITEM_ROWS,
    ITEM_STATE
} ItemClass;
static const char *const class_names[] = {"temporary", "parameter",     "input",        "output",
                                          "code",      "exchange rows", "runtime state"};

static void put_item(json_t *items, Names *names, const char *name, ItemClass class,
                     uint32_t address, uint32_t bytes, uint32_t first, uint32_t last)
{
    json_array_append_new(items, json_pack("[I, i, I, I, I, I]", name_number(names, name), class,
                                           (json_int_t)address, (json_int_t)bytes,
                                           (json_int_t)first, (json_int_t)last));
}

static void put_buffers(const Compilation *c, uint32_t tile, const bool *wanted, json_t *items,
                        Names *names)
{
    uint32_t last_step = (uint32_t)c->program.steps.count - 1;
    for (uint32_t b = 0; b < c->program.buffers.count; b++) {
        const Buffer *buffer = &c->program.buffers.items[b];
        uint32_t address = placement_address(&c->placement, tile, b);
        uint32_t bytes = compiled_buffer_bytes(c, b, tile);
        if (!bytes || !wanted[b])
            continue;
        uint32_t first = c->placement.lifetime[b].first, last = c->placement.lifetime[b].last;
        if (buffer->resident || last > last_step) {
            first = 0;
            last = last_step;
        }
        put_item(items, names, buffer->name, (ItemClass)buffer->role, address, bytes, first, last);
    }
}

/* Linked kernels, generated program, rows, runtime state: there for good. */
static void put_fixed(const Compilation *c, uint32_t tile, json_t *items, Names *names)
{
    uint32_t last = (uint32_t)c->program.steps.count - 1;
    for (uint32_t s = 0; s < c->linked.segment_count; s++)
        put_item(items, names, "linked executable", ITEM_CODE, c->linked.segments[s].address,
                 c->linked.segments[s].bytes, 0, last);
    put_item(items, names, "generated tile program", ITEM_CODE, c->placement.code_address[tile],
             c->sizes.code_bytes[tile], 0, last);
    put_item(items, names, "runtime state", ITEM_STATE, STATE_BASE, STATE_BYTES, 0, last);
    for (uint32_t p = 0; p < c->program.phases.count; p++) {
        uint32_t address = c->placement.row_address[(size_t)p * c->program.tiles + tile];
        if (address)
            put_item(items, names, "exchange row", ITEM_ROWS, address,
                     4 * c->schedule.phases[p].row_words[tile], 0, last);
    }
}

static json_t *steps_json(const TileProgram *program, Names *names)
{
    static const char *const kinds[] = {"call", "copy", "exchange", "repeat", "end of repeat"};
    json_t *steps = json_array();
    for (uint32_t s = 0; s < program->steps.count; s++) {
        const Step *step = &program->steps.items[s];
        json_array_append_new(
            steps, json_pack("[s, I]", kinds[step->kind],
                             name_number(names, step->operation ? step->operation : "")));
    }
    return steps;
}

json_t *memory_report_json(const Compilation *c, const Map *only, int32_t only_tile)
{
    bool *wanted = tile_buffers_of(&c->program, only);
    Names names = {.list = json_array()};
    json_t *tiles = json_array(), *classes = json_array();
    for (size_t i = 0; i < countof(class_names); i++)
        json_array_append_new(classes, json_string(class_names[i]));
    for (uint32_t t = 0; t < c->program.tiles; t++) {
        if (only_tile >= 0 && t != (uint32_t)only_tile)
            continue;
        json_t *items = json_array();
        uint32_t standard = compiled_peak(c, t, MEMORY_STANDARD, -1, NULL);
        uint32_t interleaved = compiled_peak(c, t, MEMORY_INTERLEAVED, -1, NULL);
        if (!only)
            put_fixed(c, t, items, &names);
        put_buffers(c, t, wanted, items, &names);
        json_array_append_new(
            tiles, json_pack("{s:I, s:I, s:I, s:I, s:o}", "tile", (json_int_t)t, "physicalTile",
                             (json_int_t)target_physical(t), "peakStandard", (json_int_t)standard,
                             "peakInterleaved", (json_int_t)interleaved, "items", items));
    }
    free(wanted);
    json_t *steps = steps_json(&c->program, &names);
    json_t *out = json_pack("{s:i, s:I, s:I, s:I, s:O, s:o, s:o, s:o}", "schemaVersion", 1,
                            "memoryBase", (json_int_t)SRAM_BASE, "memoryEnd", (json_int_t)SRAM_END,
                            "interleavedBase", (json_int_t)INTERLEAVED_BASE, "names", names.list,
                            "classes", classes, "steps", steps, "tiles", tiles);
    json_decref(names.list);
    map_free(&names.index);
    return out;
}

void memory_report_render(const Compilation *c, const char *title, const Map *only,
                          int32_t only_tile, Text *out)
{
    json_t *json = memory_report_json(c, only, only_tile);
    char *data = json_dumps(json, JSON_COMPACT | JSON_PRESERVE_ORDER);
    const ReportPart parts[] = {{"@TITLE@", title, PART_TEXT},
                                {"@CSS@", report_source("report.css"), PART_RAW},
                                {"@DATA@", data ? data : "{}", PART_JSON},
                                {"@JS_MEMORY@", report_source("memory.js"), PART_RAW}};
    report_fill(out, "memory.html", parts, countof(parts));
    free(data);
    json_decref(json);
}
