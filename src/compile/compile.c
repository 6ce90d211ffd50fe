/* compile.c - the stages in order, each under its span of the log; validators between them in
 * builds that ask for it (IPU_VALIDATE). */
#include "compile/compile.h"

#include <stdlib.h>
#include <string.h>

#ifdef IPU_VALIDATE
#define VALIDATE(call) TRY(call)
#else
#define VALIDATE(call) ((void)0)
#endif

typedef ARRAY(KernelSpec) SpecArray;

static Status make_plan(Compilation *c, const CompileOptions *options, Pool *pool)
{
    if (options->recipe) {
        JsonPlace place;
        TRY(json_open(&c->arena, options->recipe_name, options->recipe, strlen(options->recipe),
                      &place));
        c->recipe = arena_new(&c->arena, Recipe);
        Status status = recipe_from_json(&c->arena, &place, c->graph, c->recipe);
        json_close(&place);
        TRY(status);
    } else {
        uint32_t count;
        TRY(plan_search(&c->arena, c->graph, &options->plan, pool, &c->recipe, &count));
        log_event(LOG_INFO, "chosen plan", "finalists=%u predicted_cycles=%.0f", count,
                  c->recipe->predicted_cycles);
    }
    return recipe_check(c->graph, c->recipe);
}

static Status make_mid(Compilation *c)
{
    TRY(mid_lower(&c->arena, c->graph, c->recipe, &c->mid));
    VALIDATE(mid_check(&c->mid));
    LogSpan span = log_open("group_exchanges", "%s", "");
    uint32_t grouped = mid_group_exchanges(&c->mid);
    log_close(&span);
    span = log_open("merge_copies", "%s", "");
    uint32_t merged = mid_merge_copies(&c->mid);
    log_close(&span);
    span = log_open("eliminate", "%s", "");
    uint32_t eliminated = mid_eliminate(&c->mid);
    log_close(&span);
    log_event(LOG_DEBUG, "rewrote mid program", "grouped=%u merged=%u eliminated=%u", grouped,
              merged, eliminated);
    VALIDATE(mid_check(&c->mid));
    return STATUS_OK;
}

static void add_spec(SpecArray *specs, Map *seen, const KernelSpec *spec)
{
    uint64_t hash = hash_bytes(spec, sizeof *spec, 0);
    bool added;
    map_at(seen, hash, &added);
    if (added)
        array_push(specs, *spec);
}

/* Every kernel variant that the program calls, in order of first use. */
static Status plan_kernels(Compilation *c, SpecArray *specs)
{
    Map seen = {0};
    for (size_t i = 0; i < c->program.classes.count; i++)
        add_spec(specs, &seen, &c->program.classes.items[i].spec);
    for (size_t i = 0; i < c->program.copies.count; i++) {
        KernelSpec spec = local_copy_spec(&c->program.copies.items[i]);
        add_spec(specs, &seen, &spec);
    }
    map_free(&seen);
    log_event(LOG_INFO, "planned kernels", "variants=%zu", specs->count);
    return STATUS_OK;
}

static Status link_kernels(Compilation *c, const SpecArray *specs)
{
    ARRAY(const char *) roots = {0};
    array_push(&roots, "ipu_start");
    array_push(&roots, "ipu_complete");
    array_push(&roots, "ipu_sample_cycle");
    Map seen = {0};
    Status status = STATUS_OK;
    for (size_t i = 0; i < specs->count && status_ok(status); i++) {
        KernelContract contract;
        status = kernel_contract(&specs->items[i], &contract);
        bool added = false;
        if (status_ok(status))
            map_at_text(&seen, contract.symbol, &added);
        if (added)
            array_push(&roots, arena_strdup(&c->arena, contract.symbol));
    }
    static const LinkRange ranges[] = {{LINK_FIRST, EXCHANGE_WINDOW},
                                       {LINK_SECOND, EXECUTABLE_END}};
    LinkInput input = {.objects = (const AsObject *const *)c->objects.objects,
                       .object_names = c->objects.names,
                       .object_count = c->objects.count,
                       .roots = roots.items,
                       .root_count = (uint32_t)roots.count,
                       .ranges = ranges,
                       .range_count = countof(ranges)};
    if (status_ok(status))
        status = obj_link(&c->arena, &input, &c->linked);
    if (status_ok(status))
        log_event(LOG_INFO, "linked kernels", "objects=%u linked_end=%u", c->objects.count,
                  c->linked.end);
    map_free(&seen);
    array_free(&roots);
    return status;
}

static Status build_kernels(Compilation *c, const CompileOptions *options, Pool *pool)
{
    SpecArray specs = {0};
    LogSpan span = log_open("plan_kernels", "%s", "");
    Status status = plan_kernels(c, &specs);
    log_close(&span);
    if (status_ok(status)) {
        span = log_open("compile_kernels", "%s", "");
        status = kernels_build(&c->arena, specs.items, specs.count, options->kernel_cache, pool,
                               &c->objects);
        log_event(LOG_INFO, "compiled kernels", "objects=%u cached=%u", c->objects.count,
                  c->objects.cache_hits);
        log_close(&span);
    }
    if (status_ok(status)) {
        span = log_open("link_runtime", "%s", "");
        status = link_kernels(c, &specs);
        log_close(&span);
    }
    array_free(&specs);
    return status;
}

static Status place_storage(Compilation *c, Pool *pool)
{
    Sizes sizes = {.linked_end = c->linked.end,
                   .code_bytes = c->sizes.code_bytes,
                   .idle_code_bytes = c->sizes.idle_code_bytes};
    TRY(place(&c->arena, &c->program, &c->schedule, &sizes, pool, &c->placement));
    VALIDATE(place_check(&c->program, &c->schedule, &sizes, &c->placement));
    return STATUS_OK;
}

static uint32_t address_of(const void *context, uint32_t tile, uint32_t buffer)
{
    return placement_address(context, tile, buffer);
}

typedef struct EncodeJob {
    Compilation *compilation;
    Status *status;
} EncodeJob;

static void encode_phase(void *context, size_t phase, unsigned worker)
{
    EncodeJob *job = context;
    Compilation *c = job->compilation;
    Arena *arena = &c->worker_arenas[worker];
    const PhaseSchedule *schedule = &c->schedule.phases[phase];
    c->rows[phase] = arena_array(arena, Row, c->program.tiles);
    Status status = exchange_encode_phase(arena, &c->program, (uint32_t)phase, schedule, address_of,
                                          &c->placement, c->rows[phase]);
    if (status_ok(status))
        status = exchange_check_phase(&c->program, (uint32_t)phase, schedule, address_of,
                                      &c->placement, c->rows[phase]);
    job->status[phase] = status;
}

static Status encode_rows(Compilation *c, Pool *pool)
{
    size_t count = c->program.phases.count;
    c->rows = arena_array(&c->arena, Row *, count);
    EncodeJob job = {c, xcalloc(count, sizeof(Status))};
    parallel_for(pool, count, encode_phase, &job);
    Status status = STATUS_OK;
    for (size_t p = 0; p < count; p++) {
        if (status_ok(status))
            status = status_context(job.status[p], "phase %zu of %s", p,
                                    c->program.phases.items[p].operation);
        else
            status_free(job.status[p]);
    }
    free(job.status);
    return status;
}

/* The recipe's prediction becomes the exact price of what was made of it. */
static void set_price(Compilation *c)
{
    PriceProgram priced;
    price_program(&c->arena, &c->program, &c->schedule, &priced);
    price_run(&priced, &c->price);
    price_free(&priced);
    c->recipe->predicted_cycles = c->price.cycles;
    log_event(LOG_INFO, "costed final placed program", "final_cycles=%.0f final_exchange=%.0f",
              c->price.cycles, c->price.exchange);
}

/* One stage: a span of the log around it. */
#define STAGE(name, call)                                                                          \
    do {                                                                                           \
        LogSpan span_ = log_open(name, "%s", "");                                                  \
        Status stage_status_ = (call);                                                             \
        stage_seconds = log_close(&span_);                                                         \
        TRY(stage_status_);                                                                        \
    } while (0)

static Status run_stages(Compilation *c, const CompileOptions *options, Pool *pool, Stage until)
{
    double stage_seconds;
    STAGE("construct_plan", make_plan(c, options, pool));
    c->plan_seconds = stage_seconds;
    if (until == STAGE_PLAN)
        return STATUS_OK;
    STAGE("construct_mid", make_mid(c));
    if (until == STAGE_MID)
        return STATUS_OK;
    STAGE("expand_tiles", tile_expand(&c->arena, &c->mid, &c->program));
    static const uint8_t sampling[] = {[PROFILE_OFF] = SAMPLE_NOTHING,
                                       [PROFILE_OVERALL] = SAMPLE_OVERALL,
                                       [PROFILE_FULL] = SAMPLE_STEPS};
    TRY(emit_add_samples(&c->arena, sampling[options->profile], &c->program));
    VALIDATE(tile_check(&c->program));
    if (until == STAGE_TILE)
        return STATUS_OK;
    ScheduleOptions schedule = {.pairs = c->recipe->pairs};
    STAGE("schedule_exchanges",
          exchange_schedule(&c->arena, &c->program, &schedule, pool, &c->schedule));
    c->schedule_seconds = stage_seconds;
    set_price(c);
    if (until == STAGE_EXCHANGE)
        return STATUS_OK;
    TRY(build_kernels(c, options, pool));
    STAGE("size_tile_code", emit_size(&c->arena, &c->program, &c->sizes));
    STAGE("place_storage", place_storage(c, pool));
    STAGE("encode_rows", encode_rows(c, pool));
    if (until == STAGE_MEMORY)
        return STATUS_OK;
    STAGE("emit_tile_code", emit_images(c->worker_arenas, &c->program, &c->placement, c->rows,
                                        &c->linked, pool, &c->images));
    STAGE("build_tile_images", compile_package(c, options));
    return STATUS_OK;
}

Status compile(const Graph *graph, const CompileOptions *options, Pool *pool, Stage until,
               Compilation *out)
{
    *out = (Compilation){.graph = graph, .worker_count = pool_width(pool)};
    out->worker_arenas = xcalloc(out->worker_count, sizeof(Arena));
    LogSpan span = log_open("build", "tile_count=%u operations=%zu", options->plan.tiles,
                            graph->operations.count);
    Status status = run_stages(out, options, pool, until);
    log_close(&span);
    if (!status_ok(status))
        compilation_free(out);
    return status;
}

void compilation_free(Compilation *c)
{
    schedule_free(&c->schedule);
    tile_free(&c->program);
    mid_free(&c->mid);
    for (unsigned i = 0; i < c->worker_count; i++)
        arena_free(&c->worker_arenas[i]);
    free(c->worker_arenas);
    arena_free(&c->arena);
    *c = (Compilation){0};
}
