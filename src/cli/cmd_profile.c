/* cmd_profile.c - ipu-stack profile query|render|diff|export: a profile as table, JSON, picture. */
#include "cli/cli.h"
#include "profile/profile.h"

#include <string.h>

typedef struct Asked { /* options of query and diff */
    Query query;
    const char *group_by, *sort_by;
    TextList metadata;
    uint64_t limit, samples, tile, phase, at;
    bool json, shared_clock, exchanges, plan;
} Asked;
#define UNSET UINT64_MAX
#define ASKED_DEFAULT(by)                                                                          \
    {                                                                                              \
        .query = QUERY_DEFAULT, .group_by = (by), .sort_by = "phase-cycles", .limit = 30,          \
        .tile = UNSET, .phase = UNSET, .at = UNSET                                                 \
    }
/* What both can be asked for; `by` is the default's name. */
#define ASKED_OPTIONS(a, by)                                                                       \
    {"--group-by",                                                                                 \
     OPTION_TEXT,                                                                                  \
     &(a).group_by,                                                                                \
     "kernel|operation|kind|phase|tile|metadata:NAME",                                             \
     "what a row is (default " by ")",                                                             \
     0,                                                                                            \
     0},                                                                                           \
        {"--kind",                                                                                 \
         OPTION_TEXT,                                                                              \
         &(a).query.kind,                                                                          \
         "compute|exchange|synchronization|idle",                                                  \
         "only this kind",                                                                         \
         0,                                                                                        \
         0},                                                                                       \
        {"--kernel", OPTION_TEXT, &(a).query.kernel, "NAME", "only this kernel", 0, 0},            \
        {"--operation",                                                                            \
         OPTION_TEXT,                                                                              \
         &(a).query.operation,                                                                     \
         "TEXT",                                                                                   \
         "only operations with this text",                                                         \
         0,                                                                                        \
         0},                                                                                       \
        {"--metadata", OPTION_LIST, &(a).metadata, "NAME[=VALUE]", "only steps with this", 0, 0},  \
        {"--tile", OPTION_NUMBER, &(a).tile, "N", "only this physical tile", 0, TILES - 1},        \
        {"--phase", OPTION_NUMBER, &(a).phase, "N", "only this phase number", 0, UINT32_MAX},      \
        {"--limit", OPTION_NUMBER, &(a).limit, "N", "groups (default 30, 0: all)", 0, UINT32_MAX}, \
        {"--shared-clock",                                                                         \
         OPTION_FLAG,                                                                              \
         &(a).shared_clock,                                                                        \
         "",                                                                                       \
         "time 0 is the first tile's entry",                                                       \
         0,                                                                                        \
         0},                                                                                       \
    {                                                                                              \
        "--json", OPTION_FLAG, &(a).json, "", "for programs", 0, 0                                 \
    }

static Status look_up(const char *option, const char *value, const char *const *names, size_t count,
                      uint8_t *out)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(value, names[i]) == 0) {
            *out = (uint8_t)i;
            return STATUS_OK;
        }
    return status_error("%s %s: unknown", option, value);
}

static Status finish_query(Asked *a)
{
    static const char *const groups[] = {"kind", "kernel", "operation", "phase", "tile"};
    static const char *const sorts[] = {"phase-cycles", "work-cycles", "maximum-cycles", "samples",
                                        "name"};
    static const char prefix[] = "metadata:";
    if (strncmp(a->group_by, prefix, sizeof prefix - 1) == 0 && a->group_by[sizeof prefix - 1]) {
        a->query.group_by = GROUP_METADATA;
        a->query.metadata_key = a->group_by + sizeof prefix - 1;
    } else {
        TRY(look_up("--group-by", a->group_by, groups, countof(groups), &a->query.group_by));
    }
    TRY(look_up("--sort-by", a->sort_by, sorts, countof(sorts), &a->query.sort_by));
    a->query.metadata = a->metadata.items;
    a->query.metadata_count = a->metadata.count;
    a->query.tile = a->tile == UNSET ? -1 : (int64_t)a->tile;
    a->query.phase = a->phase == UNSET ? -1 : (int64_t)a->phase;
    a->query.at = a->at == UNSET ? -1 : (int64_t)a->at;
    return STATUS_OK;
}

typedef struct Open { /* a file and its view */
    Arena arena;
    Profile profile;
    View view;
} Open;

static Status open_profile(Open *o, const char *path, bool shared_clock)
{
    *o = (Open){0};
    TRY(profile_read(&o->arena, path, &o->profile));
    return view_open(&o->profile, shared_clock, &o->view);
}

static void close_profile(Open *o)
{
    view_close(&o->view);
    arena_free(&o->arena);
}

static void print_json(json_t *value)
{
    json_dumpf(value, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
    putchar('\n');
    json_decref(value);
}

static void print_text(Text *text)
{
    fputs(text_string(text), stdout);
    text_free(text);
}

static Status print_plan(const View *view, size_t limit)
{
    Arena arena = {0};
    OperationCost *costs;
    size_t count;
    TRY(operation_costs(view, &arena, &costs, &count));
    printf("%-42s %10s %10s %8s %10s %10s\n", "operation", "cycles", "predicted", "", "exchange",
           "predicted");
    for (size_t i = 0; i < count && (!limit || i < limit); i++) {
        const OperationCost *c = &costs[i];
        printf("%-42.42s %10u", c->operation, c->cycles);
        if (c->predicted >= 0)
            printf(" %10.0f %+7.1f%% %10u %10.0f\n", c->predicted,
                   c->predicted > 0 ? 100 * ((double)c->cycles / c->predicted - 1) : 0,
                   c->exchange_cycles, c->predicted_exchange);
        else
            printf(" %10s %8s %10u %10s\n", "-", "", c->exchange_cycles, "-");
    }
    arena_free(&arena);
    return STATUS_OK;
}

static Status answer(const Asked *a, const View *view)
{
    if (a->plan && !a->json)
        return print_plan(view, a->limit);
    ExchangeList exchanges = {0};
    if (a->exchanges)
        exchange_summaries(view, &exchanges);
    QueryResult result;
    Status status = query_run(view, &a->query, &result);
    if (status_ok(status) && a->json) {
        json_t *json = query_json(view, &a->query, &result, a->limit, a->samples);
        if (a->exchanges)
            json_object_set_new(json, "exchanges", exchange_summaries_json(&exchanges));
        print_json(json);
    } else if (status_ok(status)) {
        Text text = {0};
        if (a->exchanges)
            exchange_summaries_print(&text, &exchanges, a->limit);
        else
            query_print(&text, view, &result, a->limit, a->samples);
        print_text(&text);
    }
    query_free(&result);
    arena_free(&exchanges.arena);
    return status;
}

static int run_query(int argc, char **argv)
{
    Asked a = ASKED_DEFAULT("kernel");
    const Option options[] = {
        ASKED_OPTIONS(a, "kernel"),
        {"--sort-by", OPTION_TEXT, &a.sort_by,
         "phase-cycles|work-cycles|maximum-cycles|samples|name",
         "order of the rows (default phase-cycles)", 0, 0},
        {"--at", OPTION_NUMBER, &a.at, "CYCLE", "only what runs at this cycle", 0, UINT32_MAX},
        {"--samples", OPTION_NUMBER, &a.samples, "N", "list the N longest samples too", 1,
         UINT32_MAX},
        {"--exchanges", OPTION_FLAG, &a.exchanges, "", "exchange phases: measured, scheduled", 0,
         0},
        {"--plan", OPTION_FLAG, &a.plan, "", "operations: measured, predicted by the plan", 0, 0},
        {0}};
    const Command command = {"ipu-stack profile query FILE [options]",
                             "Sums a profile up by group. \"cycles\" is the time in which any tile "
                             "was at it, \"work\" the sum over tiles.",
                             options, 1, 1};
    TextList arguments = {0};
    int done = command_parse(&command, argc, argv, &arguments);
    if (done < 0) {
        Open open = {0};
        Status status = finish_query(&a);
        if (status_ok(status))
            status = open_profile(&open, arguments.items[0], a.shared_clock);
        if (status_ok(status))
            status = query_check_names(&open.view, &a.query);
        if (status_ok(status))
            status = answer(&a, &open.view);
        close_profile(&open);
        done = status_ok(status) ? 0 : command_fail("profile query", status);
    }
    array_free(&arguments);
    array_free(&a.metadata);
    return done;
}

/* ---- diff ---- */

static Status print_difference(const Asked *a, Open *before, Open *after)
{
    QueryResult left = {0}, right = {0};
    Arena arena = {0};
    Difference *differences = NULL;
    size_t count = 0;
    Status status = query_run(&before->view, &a->query, &left);
    if (status_ok(status))
        status = query_run(&after->view, &a->query, &right);
    if (status_ok(status))
        status = profile_difference(&left, &right, &arena, &differences, &count);
    if (status_ok(status) && a->json) {
        print_json(json_pack("{s:I, s:I, s:o}", "beforeSpanCycles", (json_int_t)before->view.span,
                             "afterSpanCycles", (json_int_t)after->view.span, "groups",
                             difference_json(differences, count, a->limit)));
    } else if (status_ok(status)) {
        Text text = {0};
        int64_t change = (int64_t)after->view.span - before->view.span;
        text_printf(&text, "run: %u -> %u cycles, %+lld (%+.2f%%)\n", before->view.span,
                    after->view.span, (long long)change,
                    before->view.span ? 100.0 * (double)change / before->view.span : 0);
        difference_print(&text, differences, count, a->limit);
        print_text(&text);
    }
    query_free(&left);
    query_free(&right);
    arena_free(&arena);
    return status;
}

static int run_diff(int argc, char **argv)
{
    Asked a = ASKED_DEFAULT("operation");
    const Option options[] = {ASKED_OPTIONS(a, "operation"), {0}};
    const Command command = {"ipu-stack profile diff BEFORE AFTER [options]",
                             "What became slower or faster, the largest change first.", options, 2,
                             2};
    TextList arguments = {0};
    int done = command_parse(&command, argc, argv, &arguments);
    if (done < 0) {
        Open before = {0}, after = {0};
        Status status = finish_query(&a);
        if (status_ok(status))
            status = open_profile(&before, arguments.items[0], a.shared_clock);
        if (status_ok(status))
            status = open_profile(&after, arguments.items[1], a.shared_clock);
        if (status_ok(status))
            status = print_difference(&a, &before, &after);
        close_profile(&before);
        close_profile(&after);
        done = status_ok(status) ? 0 : command_fail("profile diff", status);
    }
    array_free(&arguments);
    array_free(&a.metadata);
    return done;
}

/* ---- render, export ---- */

static Status render(const char *path, const char *output, const char *title, bool shared_clock)
{
    Open open;
    Status status = open_profile(&open, path, shared_clock);
    Text html = {0};
    const char *slash = strrchr(path, '/');
    if (!title)
        title = slash ? slash + 1 : path;
    if (status_ok(status))
        status = report_render(&open.view, title, &html);
    if (status_ok(status))
        status = file_write(output, html.items, html.count);
    text_free(&html);
    close_profile(&open);
    return status;
}

static int run_render(int argc, char **argv)
{
    const char *output = "report.html", *title = NULL;
    bool shared_clock = false;
    const Option options[] = {
        {"-o", OPTION_TEXT, &output, "FILE.html", "the report (default: report.html)", 0, 0},
        {"--title", OPTION_TEXT, &title, "TEXT", "heading (default: the file's name)", 0, 0},
        {"--shared-clock", OPTION_FLAG, &shared_clock, "", "time 0 is the first tile's entry", 0,
         0},
        {0}};
    const Command command = {"ipu-stack profile render FILE [-o report.html]",
                             "Draws a profile: one HTML file that needs nothing else.", options, 1,
                             1};
    TextList arguments = {0};
    int done = command_parse(&command, argc, argv, &arguments);
    if (done < 0) {
        Status status = render(arguments.items[0], output, title, shared_clock);
        done = status_ok(status) ? 0 : command_fail("profile render", status);
    }
    array_free(&arguments);
    return done;
}

static Status export_inline(const char *path, const char *output)
{
    Arena arena = {0};
    Profile profile;
    Bytes bytes = {0};
    Status status = profile_read(&arena, path, &profile);
    if (status_ok(status))
        status = profile_encode(&profile, true, &bytes);
    if (status_ok(status))
        status = file_write(output, bytes.data, bytes.count);
    bytes_free(&bytes);
    arena_free(&arena);
    return status;
}

static int run_export(int argc, char **argv)
{
    const char *output = NULL;
    const Option options[] = {{"-o", OPTION_TEXT, &output, "FILE", "the copy", 0, 0}, {0}};
    const Command command = {"ipu-stack profile export FILE -o FILE",
                             "Copies a profile with every sample's step written out, as other "
                             "readers of the format want it.",
                             options, 1, 1};
    TextList arguments = {0};
    int done = command_parse(&command, argc, argv, &arguments);
    if (done < 0) {
        Status status =
            output ? export_inline(arguments.items[0], output) : status_error("-o FILE is missing");
        done = status_ok(status) ? 0 : command_fail("profile export", status);
    }
    array_free(&arguments);
    return done;
}

int cmd_profile(int argc, char **argv)
{
    static const VerbEntry actions[] = {
        {"query", "sums by kernel, operation, phase, tile ...; tables or JSON", run_query, false},
        {"render", "one self-contained HTML report", run_render, false},
        {"diff", "two profiles compared", run_diff, false},
        {"export", "a copy in the original's form", run_export, false},
    };
    return verb_group("profile", "ACTION", actions, countof(actions), argc, argv);
}
