/* compile.c - the stages in order, each under its span of the log; validators between them in
 * builds that ask for it (IPU_VALIDATE). */
#include "compile/lowered.h"

#include <stdlib.h>
#include <string.h>

#ifdef IPU_VALIDATE
#define VALIDATE(call) TRY(call)
#else
#define VALIDATE(call) ((void)0)
#endif

typedef ARRAY(KernelSpec) SpecArray;

static Status read_recipe(Compilation *c, const CompileOptions *options)
{
    JsonPlace place;
    TRY(json_open(&c->arena, options->recipe_name, options->recipe, strlen(options->recipe),
                  &place));
    c->recipe = arena_new(&c->arena, Recipe);
    Status status = recipe_from_json(&c->arena, &place, c->graph, c->recipe);
    c->search = json_incref(json_object_get(place.value, "search"));
    json_close(&place);
    TRY(status);
    return recipe_check(c->graph, c->recipe);
}

/* reserve: see PlanOptions; above 0 an earlier search did not end in a program that fits. */
static Status search_plan(Compilation *c, const CompileOptions *options, Pool *pool,
                          uint32_t reserve)
{
    Recipe *recipes;
    PlanOptions plan = options->plan;
    bool found = false;
    if (reserve == 0)
        TRY(state_load(c, options->plan_state, &plan, &found));
    if (found)
        return STATUS_OK;
    plan.reserve = reserve;
    plan.report = &c->report;
    TRY(plan_search(&c->arena, c->graph, &plan, pool, &recipes, &c->finalist_count));
    c->finalists = arena_array(&c->arena, Finalist, c->finalist_count);
    for (uint32_t i = 0; i < c->finalist_count; i++)
        c->finalists[i] =
            (Finalist){.rank = i, .recipe = &recipes[i], .planned = recipes[i].predicted_cycles};
    log_event(LOG_INFO, "searched plans", "finalists=%u predicted_cycles=%.0f", c->finalist_count,
              recipes[0].predicted_cycles);
    return state_save(c, options->plan_state, &options->plan);
}

/* ---- a recipe lowered as far as a price needs ---- */

static Status make_mid(const Graph *graph, const Recipe *recipe, Lowered *l)
{
    TRY(mid_lower(&l->arena, graph, recipe, &l->mid));
    VALIDATE(mid_check(&l->mid));
    LogSpan span = log_open("group_exchanges", "%s", "");
    uint32_t grouped = mid_group_exchanges(&l->mid);
    log_close(&span);
    span = log_open("merge_copies", "%s", "");
    uint32_t merged = mid_merge_copies(&l->mid);
    log_close(&span);
    span = log_open("eliminate", "%s", "");
    uint32_t eliminated = mid_eliminate(&l->mid);
    log_close(&span);
    log_event(LOG_DEBUG, "rewrote mid program", "grouped=%u merged=%u eliminated=%u", grouped,
              merged, eliminated);
    VALIDATE(mid_check(&l->mid));
    return STATUS_OK;
}

/* The program with the code that records what the options want. */
static Status make_tiles(const CompileOptions *options, Lowered *l)
{
    static const uint8_t sampling[] = {[PROFILE_OFF] = SAMPLE_NOTHING,
                                       [PROFILE_OVERALL] = SAMPLE_OVERALL,
                                       [PROFILE_FULL] = SAMPLE_STEPS};
    TRY(tile_expand(&l->arena, &l->mid, &l->program));
    TRY(emit_add_samples(&l->arena, sampling[options->profile], &l->program));
    VALIDATE(tile_check(&l->program));
    return STATUS_OK;
}

static void set_price(Lowered *l)
{
    PriceProgram priced;
    price_program(&l->arena, &l->program, &l->schedule, &priced);
    price_run(&priced, &l->price);
    price_free(&priced);
}

/* One stage: a span of the log around it. */
#define STAGE(name, call)                                                                          \
    do {                                                                                           \
        LogSpan span_ = log_open(name, "%s", "");                                                  \
        Status stage_status_ = (call);                                                             \
        stage_seconds = log_close(&span_);                                                         \
        TRY(stage_status_);                                                                        \
    } while (0)

Status lower_recipe(const Graph *graph, const Recipe *recipe, const CompileOptions *options,
                    Pool *pool, Stage until, Lowered *l)
{
    double stage_seconds;
    ScheduleOptions schedule = {.pairs = recipe->pairs};
    STAGE("construct_mid", make_mid(graph, recipe, l));
    if (until <= STAGE_MID)
        return STATUS_OK;
    STAGE("expand_tiles", make_tiles(options, l));
    if (until == STAGE_TILE)
        return STATUS_OK;
    STAGE("schedule_exchanges",
          exchange_schedule(&l->arena, &l->program, &schedule, pool, &l->schedule));
    l->schedule_seconds = stage_seconds;
    set_price(l);
    return STATUS_OK;
}

/* Takes the lowered program over; the recipe's prediction becomes its exact price. */
static void adopt(Compilation *c, Recipe *recipe, Lowered *l)
{
    Lowered old = {c->lowered, c->mid, c->program, c->schedule, c->price, 0};
    lowered_free(&old);
    c->recipe = recipe;
    c->lowered = l->arena;
    c->mid = l->mid;
    c->program = l->program;
    c->schedule = l->schedule;
    c->price = l->price;
    c->schedule_seconds = l->schedule_seconds;
    if (l->price.cycles > 0)
        recipe->predicted_cycles = l->price.cycles;
    *l = (Lowered){0};
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

static Status fit_program(Compilation *c, const CompileOptions *options, Pool *pool)
{
    double stage_seconds;
    TRY(build_kernels(c, options, pool));
    STAGE("size_tile_code", emit_size(&c->arena, &c->program, &c->sizes));
    STAGE("place_storage", place_storage(c, pool));
    (void)stage_seconds;
    return STATUS_OK;
}

/* Follows the given recipe as far as it is asked for. */
static Status follow_recipe(Compilation *c, const CompileOptions *options, Pool *pool, Stage until)
{
    Lowered lowered = {0};
    TRY(read_recipe(c, options));
    if (until == STAGE_PLAN)
        return STATUS_OK;
    Status status = lower_recipe(c->graph, c->recipe, options, pool, until, &lowered);
    if (!status_ok(status)) {
        lowered_free(&lowered);
        return status;
    }
    adopt(c, c->recipe, &lowered);
    return until <= STAGE_EXCHANGE ? STATUS_OK : fit_program(c, options, pool);
}

/* The chosen finalist, or the next best one that fits. When none does, the chosen one's error. */
static Status fit_finalist(Compilation *c, const CompileOptions *options, Pool *pool)
{
    uint32_t best = c->chosen;
    for (;;) {
        Lowered lowered = {0};
        Status status = fit_program(c, options, pool);
        if (status_ok(status))
            return STATUS_OK;
        if (!next_finalist(c, options, pool, status, &lowered))
            return status_error("%s", c->finalists[best].failure);
        adopt(c, c->finalists[c->chosen].recipe, &lowered);
    }
}

static Status search_best(Compilation *c, const CompileOptions *options, Pool *pool,
                          uint32_t reserve)
{
    double stage_seconds;
    Lowered lowered = {0};
    STAGE("construct_plan", search_plan(c, options, pool, reserve));
    c->plan_seconds += stage_seconds;
    STAGE("cost_finalists", choose_finalist(c, options, pool, &lowered));
    c->plan_seconds += stage_seconds - lowered.schedule_seconds;
    adopt(c, c->finalists[c->chosen].recipe, &lowered);
    return STATUS_OK;
}

/* The search counts bytes, a placement has to find holes for them: when no finalist fits, plans
 * that leave more memory free are looked for. Returns the first search's error when none fits. */
static Status search_smaller(Compilation *c, const CompileOptions *options, Pool *pool, Status why)
{
    enum { STEP = 40 << 10, MOST = 160 << 10 };
    for (uint32_t reserve = STEP; reserve <= MOST; reserve += STEP) {
        log_event(LOG_INFO, "no finalist fits", "reserve=%u", reserve);
        if (status_discard(search_best(c, options, pool, reserve)))
            break;
        if (!status_discard(fit_finalist(c, options, pool))) {
            status_free(why);
            return STATUS_OK;
        }
    }
    uint32_t tiles = options->plan.tiles;
    return tiles == TILES ? why : status_context(why, "more than %u tiles are needed", tiles);
}

/* Searches, and takes the shortest of the finalists that fit. What is chosen is the same whatever
 * stage is asked for; when nothing fits, stages before the addresses show the best one. */
static Status find_recipe(Compilation *c, const CompileOptions *options, Pool *pool, Stage until)
{
    TRY(search_best(c, options, pool, 0));
    Status status = fit_finalist(c, options, pool);
    if (!status_ok(status))
        status = search_smaller(c, options, pool, status);
    if (!status_ok(status)) {
        if (until > STAGE_EXCHANGE)
            return status;
        status_free(status);
        TRY(search_best(c, options, pool, 0));
    }
    log_event(LOG_INFO, "chosen plan", "finalists=%u rank=%u predicted_cycles=%.0f",
              c->finalist_count, c->finalists[c->chosen].rank, c->recipe->predicted_cycles);
    return STATUS_OK;
}

static Status run_stages(Compilation *c, const CompileOptions *options, Pool *pool, Stage until)
{
    double stage_seconds;
    if (until == STAGE_GRAPH)
        return STATUS_OK;
    TRY(options->recipe ? follow_recipe(c, options, pool, until)
                        : find_recipe(c, options, pool, until));
    if (until <= STAGE_EXCHANGE)
        return STATUS_OK;
    STAGE("encode_rows", encode_rows(c, pool));
    log_event(LOG_INFO, "costed final placed program", "final_cycles=%.0f final_exchange=%.0f",
              c->price.cycles, c->price.exchange);
    if (until == STAGE_MEMORY)
        return STATUS_OK;
    STAGE("emit_tile_code", emit_images(c->worker_arenas, &c->program, &c->placement, c->rows,
                                        &c->linked, pool, &c->images));
    STAGE("build_tile_images", compile_package(c, options));
    (void)stage_seconds;
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
    json_decref(c->search);
    arena_free(&c->lowered);
    arena_free(&c->arena);
    *c = (Compilation){0};
}
