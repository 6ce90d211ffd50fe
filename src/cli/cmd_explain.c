/* cmd_explain.c - ipu-stack explain: every stage of the compiler as text or JSON, and what differs
 * between two programs.
 *
 * A package keeps its model and its recipe; lowering is deterministic, so the stages are made again
 * from these two. Code and rows that come out other than those in the package (which another
 * version has built) are told. */
#include "cli/explain.h"
#include "profile/profile.h"

#include <string.h>

typedef struct Explain {
    BuildOptions build;
    const char *stage, *op, *against;
    uint64_t tile;
    bool json, html, dot;
    Narrow narrow;
    Map wanted;
} Explain;

enum { NO_TILE = 0xffffffff };

typedef struct StageName {
    const char *name;
    Stage until;
} StageName;

static const StageName stages[] = {
    {"graph", STAGE_GRAPH},  {"plan", STAGE_MEMORY},   {"mid", STAGE_MID},
    {"tile", STAGE_TILE},    {"memory", STAGE_MEMORY}, {"exchange", STAGE_EXCHANGE},
    {"code", STAGE_PACKAGE},
};

static void print_json(json_t *value)
{
    json_dumpf(value, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
    putchar('\n');
    json_decref(value);
}

/* Long lists of numbers, of which a line each would be most of the output. */
static void print_compact(json_t *value)
{
    json_dumpf(value, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
    putchar('\n');
    json_decref(value);
}

static void print_text(Text *text)
{
    fputs(text_string(text), stdout);
    text_free(text);
}

/* ---- what is asked for ---- */

/* Keys close to the one that does not exist: those that hold it, or the longest part of its path
 * that any holds. */
static Status unknown_operation(const Graph *graph, const char *key)
{
    enum { MOST = 12 };
    Text text = {0};
    size_t length = strlen(key);
    uint32_t listed = 0;
    while (!listed && graph->operations.count) {
        for (uint32_t o = 0; o < graph->operations.count; o++) {
            const char *name = graph->operations.items[o].key;
            if (!memmem(name, strlen(name), key, length))
                continue;
            if (listed++ < MOST)
                text_printf(&text, "\n    %s", name);
        }
        while (length && key[length - 1] != '/')
            length--;
        length -= length > 0;
    }
    if (listed > MOST)
        text_printf(&text, "\n    and %u more", listed - MOST);
    Status status =
        status_error("--op %s: the model has no such operation; it has%s", key, text_string(&text));
    text_free(&text);
    return status;
}

/* Operations with work on the tile; a product's fused adds are done where it is. */
static void wanted_of_tile(Explain *e, const Session *s)
{
    const TileProgram *program = &s->compilation.program;
    Map here = {0};
    for (uint32_t i = 0; i < program->steps.count; i++) {
        const Step *step = &program->steps.items[i];
        bool bracket = step->kind == STEP_REPEAT || step->kind == STEP_END_REPEAT;
        if (!bracket && tile_takes_part(program, step, (uint32_t)e->tile) &&
            (!e->op || strcmp(e->op, step->operation) == 0))
            map_at_text(&here, step->operation, NULL);
    }
    map_free(&e->wanted);
    e->wanted = here;
    e->narrow.only = &e->wanted;
}

static Status narrow_down(Explain *e, const Session *s, bool has_tiles)
{
    e->narrow = (Narrow){NULL, e->tile == NO_TILE ? -1 : (int32_t)e->tile};
    if (e->op) {
        const Graph *graph = &s->graph;
        bool found = false;
        map_at_text(&e->wanted, e->op, NULL);
        e->narrow.only = &e->wanted;
        for (uint32_t o = 0; o < graph->operations.count && !found; o++)
            found = strcmp(graph->operations.items[o].key, e->op) == 0;
        if (!found)
            return unknown_operation(graph, e->op);
    }
    if (e->tile == NO_TILE)
        return STATUS_OK;
    uint32_t tiles = s->compilation.recipe->tiles;
    if (e->tile >= tiles)
        return status_error("--tile %llu: the program has %u tiles", (unsigned long long)e->tile,
                            tiles);
    if (!has_tiles)
        wanted_of_tile(e, s);
    return STATUS_OK;
}

uint32_t narrow_tile(const Narrow *narrow, const TileProgram *program)
{
    if (narrow->tile >= 0)
        return (uint32_t)narrow->tile;
    uint32_t first = program->tiles;
    for (uint32_t s = 0; narrow->only && s < program->steps.count; s++)
        for (uint32_t t = 0;
             map_wants(narrow->only, program->steps.items[s].operation) && t < first; t++)
            if (tile_takes_part(program, &program->steps.items[s], t))
                first = t;
    return first < program->tiles ? first : 0;
}

/* What has no part of its own in later stages says where it went. */
static void tell_where(const Explain *e, const Session *s)
{
    const Recipe *recipe = s->compilation.recipe;
    for (uint32_t o = 0; e->op && o < recipe->op_count; o++) {
        const OpPlan *plan = &recipe->ops[o];
        if (strcmp(s->graph.operations.items[o].key, e->op) != 0)
            continue;
        if (plan->fused != FUSED_NO)
            fprintf(
                stderr, "ipu-stack explain: %s has no steps of its own: the %s does it\n", e->op,
                plan->fused == FUSED_INTO_PRODUCER ? "operation before it" : "operation behind it");
        else if (plan->algorithm == ALGORITHM_NONE)
            fprintf(stderr, "ipu-stack explain: %s moves nothing: a view\n", e->op);
    }
}

/* ---- stages ---- */

/* Only the wanted of a list of objects with a "key". */
static void keep_wanted(json_t *list, const Map *only)
{
    for (size_t i = json_array_size(list); i-- > 0;)
        if (!map_wants(only, json_string_value(json_object_get(json_array_get(list, i), "key"))))
            json_array_remove(list, i);
}

/* What was searched, of the wanted operations; finalists are plans of all of them. */
static json_t *wanted_search(const json_t *search, const Map *only)
{
    json_t *out = json_deep_copy(search), *products = json_object_get(out, "products");
    for (size_t i = json_array_size(products); only && i-- > 0;)
        if (!map_wants(
                only, json_string_value(json_object_get(json_array_get(products, i), "operation"))))
            json_array_remove(products, i);
    if (only && json_is_object(out))
        json_object_del(out, "finalists");
    return out;
}

/* The recipe, and what its program will do; a program that does not fit still has a plan. */
static void print_plan(const Explain *e, const Session *s, bool placed)
{
    const Compilation *c = &s->compilation;
    Arena arena = {0};
    size_t count = 0;
    json_t *search = search_report_json(c);
    const StepCost *costs = placed ? step_costs(c, &arena, e->narrow.tile, &count) : NULL;
    if (e->json) {
        json_t *out = recipe_to_json(&s->graph, c->recipe);
        keep_wanted(json_object_get(out, "operations"), e->narrow.only);
        if (search)
            json_object_set_new(out, "search", wanted_search(search, e->narrow.only));
        if (costs)
            json_object_set_new(
                out, "program",
                json_pack("{s:o}", "steps", step_costs_json(c, costs, count, e->narrow.only)));
        print_json(out);
    } else {
        Text text = {0};
        recipe_print(&text, &s->graph, c->recipe, e->narrow.only);
        search_report_print(&text, search, e->narrow.only);
        if (costs)
            step_costs_print(&text, c, costs, count, e->narrow.only);
        print_text(&text);
    }
    json_decref(search);
    arena_free(&arena);
}

static void print_stage_json(const Explain *e, const Session *s)
{
    const Compilation *c = &s->compilation;
    const Narrow *n = &e->narrow;
    if (strcmp(e->stage, "graph") == 0)
        print_json(graph_to_json(&s->graph, n->only));
    else if (strcmp(e->stage, "mid") == 0)
        print_json(mid_to_json(&c->mid, n->only));
    else if (strcmp(e->stage, "tile") == 0)
        print_json(tile_to_json(&c->program, n->only, n->tile));
    else if (strcmp(e->stage, "memory") == 0)
        print_json(memory_report_json(c, n->only, n->tile));
    else if (strcmp(e->stage, "exchange") == 0)
        print_compact(exchange_to_json(&c->program, &c->schedule, n->only, n->tile));
    else
        print_json(code_to_json(c, n));
}

static void print_stage(const Explain *e, const Session *s)
{
    const Compilation *c = &s->compilation;
    const Narrow *n = &e->narrow;
    Text text = {0};
    if (strcmp(e->stage, "graph") == 0) {
        graph_print(&text, &s->graph, n->only);
    } else if (strcmp(e->stage, "mid") == 0) {
        mid_print(&text, &c->mid, n->only);
    } else if (strcmp(e->stage, "tile") == 0) {
        tile_print(&text, &c->program, n->only, n->tile);
    } else if (strcmp(e->stage, "exchange") == 0) {
        exchange_print(&text, &c->program, &c->schedule, n->only, n->tile);
    } else if (strcmp(e->stage, "memory") == 0) {
        bool *wanted = tile_buffers_of(&c->program, n->only);
        place_print(&text, &c->program, &c->placement, wanted, narrow_tile(n, &c->program));
        array_release(wanted);
    } else {
        code_print(&text, c, n);
    }
    print_text(&text);
}

static Status print_picture(const Explain *e, const char *path, const Session *s)
{
    Text text = {0};
    const char *slash = strrchr(path, '/');
    if (e->html && strcmp(e->stage, "memory") == 0)
        memory_report_render(&s->compilation, slash ? slash + 1 : path, e->narrow.only,
                             e->narrow.tile, &text);
    else if (e->dot && strcmp(e->stage, "graph") == 0)
        graph_dot(&text, &s->graph, e->narrow.only);
    else if (e->dot && strcmp(e->stage, "mid") == 0)
        mid_dot(&text, &s->compilation.mid, e->narrow.only);
    else
        return status_error("%s: stage %s has no such form", e->html ? "--html" : "--dot",
                            e->stage);
    print_text(&text);
    return STATUS_OK;
}

/* ---- models and packages ---- */

static bool same_code(const Package *a, const Package *b)
{
    bool same = a->tile_count == b->tile_count;
    for (uint32_t t = 0; t < a->tile_count && same; t++) {
        const PackageTile *x = &a->tiles[t], *y = &b->tiles[t];
        uint32_t k = 0;
        for (uint32_t s = 0; s < x->segment_count && same; s++) {
            if (!(x->segments[s].flags & 4))
                continue;
            while (k < y->segment_count && !(y->segments[k].flags & 4))
                k++;
            same = k < y->segment_count && x->segments[s].address == y->segments[k].address &&
                   x->segments[s].data_bytes == y->segments[k].data_bytes &&
                   memcmp(x->segments[s].data, y->segments[k].data, x->segments[s].data_bytes) == 0;
            k++;
        }
    }
    return same;
}

static Status open_input(const Explain *e, const char *path, Stage until, Arena *arena,
                         Session *session)
{
    if (!path_is_package(path))
        return session_open(session, path, &e->build, until);
    Package package;
    TRY(package_read(arena, path, &package));
    TRY(status_context(session_from_package(session, &package, until), "%s", path));
    if (until == STAGE_PACKAGE && !same_code(&package, &session->compilation.package))
        fprintf(stderr,
                "ipu-stack explain: %s was built by another version: what is shown is not its code "
                "but what this version makes of its recipe\n",
                path);
    return STATUS_OK;
}

static Status explain_difference(Explain *e, const char *path, Arena *arena, Session *sessions)
{
    if (e->stage || e->html || e->dot)
        return status_error("--against compares whole programs: without --stage, --html, --dot");
    ProgramSummary summaries[2] = {{.tiles = 0}, {.tiles = 0}};
    const char *paths[] = {e->against, path};
    Status status = STATUS_OK, narrowed[2] = {STATUS_OK, STATUS_OK};
    for (int i = 0; i < 2 && status_ok(status); i++) {
        status = open_input(e, paths[i], STAGE_MEMORY, arena, &sessions[i]);
        map_free(&e->wanted);
        if (!status_ok(status))
            break;
        narrowed[i] = status_context(narrow_down(e, &sessions[i], true), "%s", paths[i]);
        program_summary(&sessions[i].compilation, e->narrow.only, e->narrow.tile, &summaries[i]);
    }
    /* what only one of the two has is a difference, what none has is a mistake */
    if (status_ok(status) && !status_ok(narrowed[0]) && !status_ok(narrowed[1])) {
        status = narrowed[1];
        narrowed[1] = STATUS_OK;
    }
    status_free(narrowed[0]);
    status_free(narrowed[1]);
    if (status_ok(status) && e->json) {
        print_json(program_difference_json(&summaries[0], &summaries[1]));
    } else if (status_ok(status)) {
        Text text = {0};
        program_difference_print(&text, &summaries[0], &summaries[1]);
        print_text(&text);
    }
    program_summary_free(&summaries[0]);
    program_summary_free(&summaries[1]);
    return status;
}

static Status explain(Explain *e, const char *path, Arena *arena, Session *session)
{
    if (e->against)
        return explain_difference(e, path, arena, session);
    const StageName *stage = NULL;
    for (size_t i = 0; i < countof(stages); i++)
        if (e->stage && strcmp(e->stage, stages[i].name) == 0)
            stage = &stages[i];
    if (!stage)
        return status_error("--stage must be graph, plan, mid, tile, memory, exchange or code");
    bool plan = strcmp(e->stage, "plan") == 0, has_tiles = stage->until >= STAGE_TILE && !plan;
    Stage until = stage->until < STAGE_TILE && e->tile != NO_TILE ? STAGE_TILE : stage->until;
    Status status = open_input(e, path, until, arena, session);
    bool placed = status_ok(status);
    if (plan && !placed) {
        Status reason = status;
        session_close(session);
        status = open_input(e, path, STAGE_PLAN, arena, session);
        if (status_ok(status))
            fprintf(stderr, "ipu-stack explain: no costs of steps: %s\n", status_message(reason));
        status_free(reason);
    }
    TRY(status);
    TRY(narrow_down(e, session, has_tiles));
    if (e->html || e->dot)
        return print_picture(e, path, session);
    if (plan)
        print_plan(e, session, placed);
    else if (e->json)
        print_stage_json(e, session);
    else
        print_stage(e, session);
    if (stage->until >= STAGE_MID && !plan)
        tell_where(e, session);
    return STATUS_OK;
}

int cmd_explain(int argc, char **argv)
{
    Explain e = {.build = BUILD_OPTIONS_DEFAULT, .tile = NO_TILE};
    const Option options[] = {
        {"--stage", OPTION_TEXT, &e.stage, "graph|plan|mid|tile|memory|exchange|code",
         "what to show", 0, 0},
        {"--against", OPTION_TEXT, &e.against, "FILE",
         "instead: what changed from that program (package or model) to this one", 0, 0},
        {"--op", OPTION_TEXT, &e.op, "KEY", "only this operation", 0, 0},
        {"--tile", OPTION_NUMBER, &e.tile, "N",
         "only this logical tile; graph, plan, mid: operations on it", 0, TILES - 1},
        {"--json", OPTION_FLAG, &e.json, "", "for programs", 0, 0},
        {"--html", OPTION_FLAG, &e.html, "", "memory: a page that draws it", 0, 0},
        {"--dot", OPTION_FLAG, &e.dot, "", "graph, mid: for Graphviz", 0, 0},
        BUILD_OPTIONS(e.build),
        {0}};
    const Command command = {
        "ipu-stack explain MODEL.json|FILE.ipuexe --stage NAME|--against FILE [options]",
        "Shows what a stage of the compiler made, or what differs between two programs.", options,
        1, 1};
    TextList arguments = {0};
    int done = command_parse(&command, argc, argv, &arguments);
    if (done >= 0 || !common_apply("explain", &e.build.common)) {
        array_free(&arguments);
        return done >= 0 ? done : 2;
    }
    Arena arena = {0};
    Session sessions[2] = {{.pool = NULL}, {.pool = NULL}};
    Status status = explain(&e, arguments.items[0], &arena, sessions);
    session_close(&sessions[0]);
    session_close(&sessions[1]);
    map_free(&e.wanted);
    arena_free(&arena);
    array_free(&arguments);
    return status_ok(status) ? 0 : command_fail("explain", status);
}
