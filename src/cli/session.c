/* session.c - see session.h. */
#include "cli/session.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

double peak_memory_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024.0;
}

const char *profile_sampling(const ProfileOptions *options)
{
    bool package = options->file && options->source && strcmp(options->source, "package") == 0;
    return package ? "full" : "off";
}

Status profile_source(const ProfileOptions *options, const Package *package, uint8_t *out)
{
    *out = DEVICE_PROFILE_NONE;
    const char *source = options->source;
    if (source && strcmp(source, "simulator") != 0 && strcmp(source, "package") != 0)
        return status_error("--profile-source must be simulator or package");
    if (!options->file)
        return STATUS_OK;
    bool package_samples = package->profile_mode != PROFILE_OFF;
    if (source)
        package_samples = strcmp(source, "package") == 0;
    *out = package_samples ? DEVICE_PROFILE_PACKAGE : DEVICE_PROFILE_SIMULATOR;
    return STATUS_OK;
}

Status profile_save(const ProfileOptions *options, const Device *device)
{
    if (!options->file)
        return STATUS_OK;
    const Profile *profile;
    TRY(device_profile(device, &profile));
    return profile_write(profile, options->file);
}

bool path_is_package(const char *path)
{
    size_t length = strlen(path);
    return length > 7 && strcmp(path + length - 7, ".ipuexe") == 0;
}

static Status compile_session(Session *s, Stage until)
{
    double start = seconds_now();
    graph_init(&s->graph, &s->arena);
    LogSpan span = log_open("load_graph", "model=%s", s->model.name);
    Status status = model_graph(&s->model, &s->graph);
    if (status_ok(status))
        status = graph_check(&s->graph);
    if (status_ok(status) && s->has_weights)
        status = weights_check(&s->graph, &s->weights);
    log_close(&span);
    TRY(status);
    s->options.model = &s->model;
    s->options.weights = s->has_weights ? &s->weights : NULL;
    status = compile(&s->graph, &s->options, s->pool, until, &s->compilation);
    s->build_seconds = seconds_now() - start;
    return status;
}

Status sampling_mode(const char *option, const char *text, uint8_t *out)
{
    static const char *const names[] = {"off", "overall", "full"};
    for (uint8_t mode = 0; mode < countof(names); mode++)
        if (!text || strcmp(text, names[mode]) == 0) {
            *out = mode;
            return STATUS_OK;
        }
    return status_error("%s %s: must be off, overall or full", option, text);
}

Status session_open(Session *s, const char *model_path, const BuildOptions *options, Stage until)
{
    *s = (Session){0};
    if (strcmp(options->precision, "f16") != 0)
        return status_error("--precision %s: only f16 is supported", options->precision);
    s->pool = pool_create((unsigned)options->common.threads);
    TRY(model_open(&s->arena, model_path, &s->model));
    if (options->weights) {
        TRY(tensors_open(options->weights, &s->weights));
        s->has_weights = true;
    }
    if (options->recipe) {
        TRY(file_read(options->recipe, FILE_LIMIT_TEXT, &s->recipe));
        s->options.recipe = (const char *)s->recipe.data;
        s->options.recipe_name = options->recipe;
    }
    TRY(sampling_mode("--profile", options->sampling, &s->options.profile));
    s->cache = options->no_cache ? NULL : cache_folder();
    s->options.kernel_cache = s->cache;
    s->options.plan_state = options->state;
    s->options.plan =
        (PlanOptions){.tiles = options->tiles ? (uint32_t)options->tiles : DEFAULT_TILES,
                      .precision = {.kind = F16},
                      .weights_once = options->weights_once,
                      .constraints = options->constraints,
                      .pairs = !options->no_pairs};
    TRY(compile_session(s, until));
    if (options->tiles && options->tiles != s->compilation.recipe->tiles)
        return status_error("--tiles %llu: the recipe is for %u tiles",
                            (unsigned long long)options->tiles, s->compilation.recipe->tiles);
    return STATUS_OK;
}

Status session_from_package(Session *s, const Package *package, Stage until)
{
    *s = (Session){0};
    const char *model = package_text(package, "model"), *recipe = package_text(package, "recipe");
    if (!model || !recipe)
        return status_error("the package holds no model or recipe text");
    s->pool = pool_create(0);
    TRY(model_parse(&s->arena, "the package's model", model, strlen(model), &s->model));
    s->options.recipe = recipe;
    s->options.recipe_name = "the package's recipe";
    s->options.profile = (uint8_t)package->profile_mode;
    s->options.plan = (PlanOptions){.tiles = package->tiles_used, .precision = {.kind = F16}};
    s->cache = cache_folder();
    s->options.kernel_cache = s->cache;
    return compile_session(s, until);
}

void session_close(Session *s)
{
    compilation_free(&s->compilation);
    graph_free(&s->graph);
    if (s->has_weights)
        tensors_free(&s->weights);
    bytes_free(&s->recipe);
    free(s->cache);
    pool_destroy(s->pool);
    arena_free(&s->arena);
}
