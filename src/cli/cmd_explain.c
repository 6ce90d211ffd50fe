/* cmd_explain.c - ipu-stack explain: every stage of the compiler as text or JSON.
 *
 * A package keeps its model and its recipe; lowering is deterministic, so the stages between are
 * made again from these two, while exchange rows and code are read from the package's own bytes. */
#include "cli/explain_dot.h"
#include "cli/session.h"
#include "profile/profile.h"

#include <string.h>

typedef struct Explain {
    BuildOptions build;
    const char *stage, *op;
    uint64_t tile;
    bool json, html, dot;
} Explain;

enum { NO_TILE = 0xffffffff };

static int32_t only_tile(const Explain *e)
{
    return e->tile == NO_TILE ? -1 : (int32_t)e->tile;
}

static void print_json(json_t *value)
{
    json_dumpf(value, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
    putchar('\n');
    json_decref(value);
}

static void print_code(Text *text, const Compilation *c, uint32_t logical)
{
    const TileCode *tile = &c->images.tiles[target_physical(logical)];
    text_printf(text, "tile %u (physical %u)\n", logical, tile->physical);
    for (uint32_t s = 0; s < tile->segment_count; s++) {
        const ImageSegment *segment = &tile->segments[s];
        if (!(segment->flags & 4))
            continue;
        text_printf(text, "%s at %#x, %u bytes\n", segment->name, segment->address, segment->bytes);
        if (strcmp(segment->name, "linked executable") == 0) {
            for (uint32_t i = 0; i < c->linked.symbol_count; i++)
                text_printf(text, "  %#x %s\n", c->linked.symbols[i].address,
                            c->linked.symbols[i].name);
            continue;
        }
        ARRAY(uint32_t) words = {0};
        array_resize(&words, segment->data_bytes / 4);
        memcpy(words.items, segment->data, words.count * 4);
        isa_listing(text, words.items, words.count, segment->address, MODE_SUPERVISOR);
        array_free(&words);
    }
}

typedef struct StageName {
    const char *name;
    Stage until;
} StageName;

static const StageName stages[] = {
    {"graph", STAGE_PLAN},   {"plan", STAGE_EXCHANGE}, {"mid", STAGE_MID},
    {"tile", STAGE_TILE},    {"memory", STAGE_MEMORY}, {"exchange", STAGE_EXCHANGE},
    {"code", STAGE_PACKAGE},
};

static bool print_stage_json(const Explain *e, const Session *s)
{
    const Compilation *c = &s->compilation;
    if (strcmp(e->stage, "graph") == 0)
        print_json(graph_to_json(&s->graph));
    else if (strcmp(e->stage, "plan") == 0)
        print_json(recipe_to_json(&s->graph, c->recipe));
    else if (strcmp(e->stage, "mid") == 0)
        print_json(mid_to_json(&c->mid, e->op));
    else if (strcmp(e->stage, "tile") == 0)
        print_json(tile_to_json(&c->program, only_tile(e)));
    else if (strcmp(e->stage, "memory") == 0)
        print_json(memory_report_json(c, only_tile(e)));
    else
        return false;
    return true;
}

static void print_stage(const Explain *e, const Session *s)
{
    const Compilation *c = &s->compilation;
    Text text = {0};
    uint32_t tile = e->tile == NO_TILE ? 0 : (uint32_t)e->tile;
    if (strcmp(e->stage, "graph") == 0)
        graph_print(&text, &s->graph);
    else if (strcmp(e->stage, "plan") == 0)
        recipe_print(&text, &s->graph, c->recipe);
    else if (strcmp(e->stage, "mid") == 0)
        mid_print(&text, &c->mid, e->op);
    else if (strcmp(e->stage, "tile") == 0)
        tile_print(&text, &c->program, only_tile(e));
    else if (strcmp(e->stage, "exchange") == 0)
        exchange_print(&text, &c->program, &c->schedule, only_tile(e));
    else if (strcmp(e->stage, "memory") == 0)
        place_print(&text, &c->program, &c->placement, tile);
    else
        print_code(&text, c, tile);
    fputs(text_string(&text), stdout);
    text_free(&text);
}

static Status print_picture(const Explain *e, const char *path, const Session *s)
{
    Text text = {0};
    const char *slash = strrchr(path, '/');
    if (e->html && strcmp(e->stage, "memory") == 0)
        memory_report_render(&s->compilation, slash ? slash + 1 : path, &text);
    else if (e->dot && strcmp(e->stage, "graph") == 0)
        graph_dot(&text, &s->graph);
    else if (e->dot && strcmp(e->stage, "mid") == 0)
        mid_dot(&text, &s->compilation.mid);
    else
        return status_error("%s: stage %s has no such form", e->html ? "--html" : "--dot",
                            e->stage);
    fputs(text_string(&text), stdout);
    text_free(&text);
    return STATUS_OK;
}

static Status explain(const Explain *e, const char *path, Session *session, Arena *arena)
{
    const StageName *stage = NULL;
    for (size_t i = 0; i < countof(stages); i++)
        if (e->stage && strcmp(e->stage, stages[i].name) == 0)
            stage = &stages[i];
    if (!stage)
        return status_error("--stage must be graph, plan, mid, tile, memory, exchange or code");
    if (path_is_package(path)) {
        Package package;
        TRY(package_read(arena, path, &package));
        TRY(session_from_package(session, &package, stage->until));
    } else {
        TRY(session_open(session, path, &e->build, stage->until));
    }
    if (stage->until >= STAGE_TILE && e->tile != NO_TILE &&
        e->tile >= session->compilation.program.tiles)
        return status_error("--tile %llu: the program has %u tiles", (unsigned long long)e->tile,
                            session->compilation.program.tiles);
    if (e->html || e->dot)
        return print_picture(e, path, session);
    if (!e->json)
        print_stage(e, session);
    else if (!print_stage_json(e, session))
        return status_error("--json: stage %s has no JSON form", e->stage);
    return STATUS_OK;
}

int cmd_explain(int argc, char **argv)
{
    Explain e = {.build = BUILD_OPTIONS_DEFAULT, .tile = NO_TILE};
    const Option options[] = {
        {"--stage", OPTION_TEXT, &e.stage, "NAME", "graph|plan|mid|tile|memory|exchange|code", 0,
         0},
        {"--op", OPTION_TEXT, &e.op, "KEY", "only this operation", 0, 0},
        {"--tile", OPTION_NUMBER, &e.tile, "N", "only this logical tile", 0, TILES - 1},
        {"--json", OPTION_FLAG, &e.json, "", "for programs", 0, 0},
        {"--html", OPTION_FLAG, &e.html, "", "memory: a page that draws it", 0, 0},
        {"--dot", OPTION_FLAG, &e.dot, "", "graph, mid: for Graphviz", 0, 0},
        BUILD_OPTIONS(e.build),
        {0}};
    const Command command = {"ipu-stack explain MODEL.json|FILE.ipuexe --stage NAME [options]",
                             "Shows what a stage of the compiler made.", options, 1, 1};
    TextList arguments = {0};
    int done = command_parse(&command, argc, argv, &arguments);
    if (done >= 0 || !common_apply("explain", &e.build.common)) {
        array_free(&arguments);
        return done >= 0 ? done : 2;
    }
    Arena arena = {0};
    Session session = {0};
    Status status = explain(&e, arguments.items[0], &session, &arena);
    session_close(&session);
    arena_free(&arena);
    array_free(&arguments);
    return status_ok(status) ? 0 : command_fail("explain", status);
}
