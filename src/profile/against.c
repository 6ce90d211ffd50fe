/* against.c - two compiled programs compared: cycles and rows by operation and kernel, memory by
 * class, kernels that only one of them has.
 *
 * A program is summed up into three lists of rows with named figures; comparing is then the same
 * for all three: rows of one name side by side, the largest change of the first figure first. */
#include "profile/profile.h"

#include <stdlib.h>
#include <string.h>

/* ---- one program ---- */

static SummaryRow *row_of(Arena *arena, SummaryList *list, Map *index, const char *name)
{
    uint64_t *known = map_at_text(index, name, NULL);
    if (!*known) {
        array_push(list, (SummaryRow){.name = arena_strdup(arena, name)});
        *known = list->count;
    }
    return &list->items[*known - 1];
}

static void add_steps(const Compilation *c, const Map *only, int32_t tile, ProgramSummary *out)
{
    Arena arena = {0};
    Map operations = {0}, kernels = {0};
    size_t count;
    const StepCost *costs = step_costs(c, &arena, tile, &count);
    for (size_t s = 0; s < count; s++) {
        const StepCost *cost = &costs[s];
        bool bracket = cost->kind == STEP_REPEAT || cost->kind == STEP_END_REPEAT;
        if (bracket || !cost->takes_part || !map_wants(only, cost->operation))
            continue;
        int64_t cycles = (int64_t)cost->cycles * cost->times;
        int64_t exchange = (int64_t)cost->exchange_cycles * cost->times;
        int64_t memory = (int64_t)cost->standard + cost->interleaved;
        SummaryRow *rows[] = {
            row_of(&out->arena, &out->lists[SUMMARY_OPERATIONS], &operations, cost->operation),
            row_of(&out->arena, &out->lists[SUMMARY_KERNELS], &kernels, cost->kernel)};
        for (int k = 0; k < 2; k++) {
            rows[k]->figure[0] += cycles;
            rows[k]->figure[1] += k ? cost->times : exchange;
            rows[k]->figure[2] += cost->row_bytes;
            rows[k]->figure[3] = memory > rows[k]->figure[3] ? memory : rows[k]->figure[3];
        }
        out->step_cycles += cycles;
        out->exchange_cycles += exchange;
    }
    map_free(&operations);
    map_free(&kernels);
    arena_free(&arena);
}

enum {
    CLASS_TEMPORARY, /* the first four as BufferRole */
    CLASS_PARAMETER,
    CLASS_INPUT,
    CLASS_OUTPUT,
    CLASS_STANDARD,
    CLASS_INTERLEAVED,
    CLASS_LINKED,
    CLASS_PROGRAM,
    CLASS_ROWS,
    CLASSES
};

static void tile_classes(const Compilation *c, const bool *wanted, uint32_t t, int64_t bytes[])
{
    memset(bytes, 0, CLASSES * sizeof *bytes);
    for (uint32_t b = 0; b < c->program.buffers.count; b++)
        if (wanted[b])
            bytes[c->program.buffers.items[b].role & 3] += compiled_buffer_bytes(c, b, t);
    bytes[CLASS_TEMPORARY] = compiled_peak(c, t, -1, BUFFER_TEMPORARY, wanted);
    bytes[CLASS_STANDARD] = compiled_peak(c, t, MEMORY_STANDARD, -1, wanted);
    bytes[CLASS_INTERLEAVED] = compiled_peak(c, t, MEMORY_INTERLEAVED, -1, wanted);
    for (uint32_t s = 0; s < c->linked.segment_count; s++)
        bytes[CLASS_LINKED] += c->linked.segments[s].bytes;
    bytes[CLASS_PROGRAM] = c->sizes.code_bytes[t];
    for (uint32_t p = 0; p < c->program.phases.count; p++)
        if (c->placement.row_address[(size_t)p * c->program.tiles + t])
            bytes[CLASS_ROWS] += 4 * (int64_t)c->schedule.phases[p].row_words[t];
}

static void add_memory(const Compilation *c, const Map *only, int32_t tile, ProgramSummary *out)
{
    static const char *const names[CLASSES] = {"temporaries, at once",
                                               "parameters",
                                               "inputs",
                                               "outputs",
                                               "peak standard memory",
                                               "peak interleaved memory",
                                               "code of kernels, runtime",
                                               "code of the tile's program",
                                               "code of exchange rows"};
    bool *wanted = tile_buffers_of(&c->program, only);
    SummaryList *list = &out->lists[SUMMARY_MEMORY];
    for (int k = 0; k < CLASSES; k++)
        array_push(list, (SummaryRow){.name = names[k]});
    for (uint32_t t = 0; t < c->program.tiles; t++) {
        int64_t bytes[CLASSES];
        if (tile >= 0 && t != (uint32_t)tile)
            continue;
        tile_classes(c, wanted, t, bytes);
        for (int k = 0; k < CLASSES; k++) {
            int64_t *figure = list->items[k].figure;
            figure[0] = bytes[k] > figure[0] ? bytes[k] : figure[0];
            figure[1] += bytes[k];
        }
    }
    free(wanted);
}

/* Every specialisation that the wanted operations call, once. */
static void add_variants(const Compilation *c, const Map *only, ProgramSummary *out)
{
    for (uint32_t s = 0; s < c->program.steps.count; s++) {
        const Step *step = &c->program.steps.items[s];
        if (!map_wants(only, step->operation))
            continue;
        for (uint32_t i = 0; i < step->count; i++) {
            Text text = {0};
            if (step->kind == STEP_CALL) {
                kernel_spec_print(&text, &c->program.classes.items[step->first + i].spec);
                map_at_text(&out->variants, text_string(&text), NULL);
            }
            text_free(&text);
        }
    }
}

void program_summary(const Compilation *c, const Map *only, int32_t tile, ProgramSummary *out)
{
    *out = (ProgramSummary){.tiles = c->program.tiles, .cycles = (int64_t)c->price.cycles};
    add_steps(c, only, tile, out);
    add_memory(c, only, tile, out);
    add_variants(c, only, out);
}

void program_summary_free(ProgramSummary *summary)
{
    for (int k = 0; k < SUMMARY_LISTS; k++)
        array_free(&summary->lists[k]);
    map_free(&summary->variants);
    arena_free(&summary->arena);
}

/* ---- two programs ---- */

typedef struct Pair {
    const char *name;
    const SummaryRow *side[2]; /* before, after; NULL: not there */
} Pair;
typedef ARRAY(Pair) PairList;

static int64_t change_of(const Pair *pair, int figure)
{
    return (pair->side[1] ? pair->side[1]->figure[figure] : 0) -
           (pair->side[0] ? pair->side[0]->figure[figure] : 0);
}

static int by_change(const void *a, const void *b)
{
    int64_t x = llabs(change_of(a, 0)), y = llabs(change_of(b, 0));
    if (x != y)
        return x > y ? -1 : 1;
    return strcmp(((const Pair *)a)->name, ((const Pair *)b)->name);
}

static void pair_up(const ProgramSummary *before, const ProgramSummary *after, int which,
                    PairList *out)
{
    const SummaryList *lists[] = {&before->lists[which], &after->lists[which]};
    Map index = {0};
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < lists[side]->count; i++) {
            const SummaryRow *row = &lists[side]->items[i];
            uint64_t *known = map_at_text(&index, row->name, NULL);
            if (!*known) {
                array_push(out, (Pair){.name = row->name});
                *known = out->count;
            }
            out->items[*known - 1].side[side] = row;
        }
    if (out->count && which != SUMMARY_MEMORY)
        qsort(out->items, out->count, sizeof *out->items, by_change);
    map_free(&index);
}

static const struct {
    const char *title, *key;
    const char *figures[SUMMARY_FIGURES]; /* NULL: not shown */
    const char *json[SUMMARY_FIGURES];
} layouts[SUMMARY_LISTS] = {
    [SUMMARY_OPERATIONS] = {"operation",
                            "operations",
                            {"cycles", "exchange", "row bytes", "memory"},
                            {"cycles", "exchangeCycles", "rowBytes", "memoryBytes"}},
    [SUMMARY_KERNELS] = {"kernel",
                         "kernels",
                         {"cycles", "executions", NULL, NULL},
                         {"cycles", "executions", NULL, NULL}},
    [SUMMARY_MEMORY] = {"memory, bytes",
                        "memory",
                        {"largest tile", "all tiles", NULL, NULL},
                        {"largestTile", "allTiles", NULL, NULL}}};

static void put_change(Text *text, int64_t before, int64_t after)
{
    char part[24] = "";
    if (before && before != after)
        snprintf(part, sizeof part, "%+.1f%%", 100.0 * (double)(after - before) / (double)before);
    text_printf(text, " %11lld %11lld %8s", (long long)before, (long long)after, part);
}

static bool same_figures(int which, const Pair *pair)
{
    bool same = pair->side[0] && pair->side[1];
    for (int f = 0; f < SUMMARY_FIGURES && layouts[which].figures[f]; f++)
        same = same && change_of(pair, f) == 0;
    return same;
}

static void print_list(Text *text, int which, const PairList *pairs)
{
    size_t same = 0;
    text_printf(text, "\n%-40s", layouts[which].title);
    for (int f = 0; f < SUMMARY_FIGURES && layouts[which].figures[f]; f++)
        text_printf(text, " %23s %8s", layouts[which].figures[f], "");
    text_append(text, "\n");
    for (size_t i = 0; i < pairs->count; i++) {
        const Pair *pair = &pairs->items[i];
        if (same_figures(which, pair)) {
            same++;
            continue;
        }
        text_printf(text, "%-40.40s", pair->name);
        for (int f = 0; f < SUMMARY_FIGURES && layouts[which].figures[f]; f++)
            put_change(text, pair->side[0] ? pair->side[0]->figure[f] : 0,
                       pair->side[1] ? pair->side[1]->figure[f] : 0);
        text_printf(text, "%s\n", !pair->side[0] ? "  new" : !pair->side[1] ? "  gone" : "");
    }
    if (same)
        text_printf(text, "%zu the same\n", same);
}

/* Names in `a` that `b` does not have. */
static void print_missing(Text *text, const char *title, const Map *a, const Map *b)
{
    bool any = false;
    for (size_t i = 0; i < a->entries.count; i++) {
        if (map_find_text(b, a->entries.items[i].text))
            continue;
        if (!any)
            text_printf(text, "\n%s\n", title);
        any = true;
        text_printf(text, "    %s\n", a->entries.items[i].text);
    }
}

void program_difference_print(Text *text, const ProgramSummary *before, const ProgramSummary *after)
{
    text_printf(text, "%-40s %23s %8s %23s\n%-40s", "predicted", "cycles", "", "exchange", "run");
    put_change(text, before->cycles, after->cycles);
    text_printf(text, "\n%-40s", "sum of the steps below");
    put_change(text, before->step_cycles, after->step_cycles);
    put_change(text, before->exchange_cycles, after->exchange_cycles);
    text_append(text, "\n");
    if (before->tiles != after->tiles)
        text_printf(text, "%-40s %11u %11u\n", "tiles", before->tiles, after->tiles);
    for (int which = 0; which < SUMMARY_LISTS; which++) {
        PairList pairs = {0};
        pair_up(before, after, which, &pairs);
        print_list(text, which, &pairs);
        array_free(&pairs);
    }
    print_missing(text, "kernel variants that are gone", &before->variants, &after->variants);
    print_missing(text, "kernel variants that are new", &after->variants, &before->variants);
}

static json_t *row_json(int which, const SummaryRow *row)
{
    json_t *out = json_object();
    for (int f = 0; f < SUMMARY_FIGURES && layouts[which].json[f]; f++)
        json_object_set_new(out, layouts[which].json[f], json_integer(row->figure[f]));
    return out;
}

static json_t *missing_json(const Map *a, const Map *b)
{
    json_t *out = json_array();
    for (size_t i = 0; i < a->entries.count; i++)
        if (!map_find_text(b, a->entries.items[i].text))
            json_array_append_new(out, json_string(a->entries.items[i].text));
    return out;
}

static json_t *program_json(const ProgramSummary *s)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "tiles", (json_int_t)s->tiles, "cycles",
                     (json_int_t)s->cycles, "stepCycles", (json_int_t)s->step_cycles,
                     "exchangeCycles", (json_int_t)s->exchange_cycles);
}

json_t *program_difference_json(const ProgramSummary *before, const ProgramSummary *after)
{
    json_t *out =
        json_pack("{s:o, s:o}", "before", program_json(before), "after", program_json(after));
    for (int which = 0; which < SUMMARY_LISTS; which++) {
        PairList pairs = {0};
        json_t *list = json_array();
        pair_up(before, after, which, &pairs);
        for (size_t i = 0; i < pairs.count; i++) {
            const Pair *pair = &pairs.items[i];
            json_t *item = json_pack("{s:s, s:I}", "name", pair->name, "change",
                                     (json_int_t)change_of(pair, 0));
            if (pair->side[0])
                json_object_set_new(item, "before", row_json(which, pair->side[0]));
            if (pair->side[1])
                json_object_set_new(item, "after", row_json(which, pair->side[1]));
            json_array_append_new(list, item);
        }
        json_object_set_new(out, layouts[which].key, list);
        array_free(&pairs);
    }
    json_object_set_new(out, "variantsGone", missing_json(&before->variants, &after->variants));
    json_object_set_new(out, "variantsNew", missing_json(&after->variants, &before->variants));
    return out;
}
