/* bench_products.c - ipu-stack bench siglip-mlp | mlp | gemm: products of seeded random data,
 * planned, compiled, executed on the simulated chip, compared with an F64 evaluation of the same
 * rounded data.
 *
 * Input is standard normal, weights are normal with variance 1 / fan-in, both rounded to F16; an
 * MLP block is product, GELU, product. The last line is the summary; cycles are simulated. */
#include "cli/session.h"
#include "device/device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct ProductsOptions {
    CommonOptions common;
    const char *precision, *weights, *io, *package, *constraints, *state;
    uint64_t rows, inner, columns, hidden, blocks, tiles, batch, seed;
    ProfileOptions profile;
    bool no_cache, verify, no_run, no_pairs, show_plan;
} ProductsOptions;

typedef struct Data { /* every input and parameter by name, halves exactly */
    Map names;
    ARRAY(double *) arrays;
} Data;

/* ---- seeded normal numbers ---- */

static double uniform(uint64_t *state) /* 0 < u < 1, splitmix64 */
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / (double)(1ull << 53);
}

static double normal(uint64_t *state)
{
    double radius = sqrt(-2 * log(uniform(state)));
    return radius * cos(2 * M_PI * uniform(state));
}

static void make_data(const Graph *graph, uint64_t seed, Data *data)
{
    for (uint32_t v = 0; v < graph->values.count; v++) {
        const Value *value = &graph->values.items[v];
        if (value->kind != VALUE_INPUT && value->kind != VALUE_PARAMETER)
            continue;
        size_t n = (size_t)shape_elements(&value->shape);
        double *array = xcalloc(n, sizeof *array), deviation = 1;
        if (value->kind == VALUE_PARAMETER)
            deviation = sqrt(1.0 / value->shape.extent[0]);
        uint64_t state = seed + v;
        for (size_t i = 0; i < n; i++)
            array[i] = half_to_float(half_from_double(deviation * normal(&state)));
        *map_at_text(&data->names, value->name, NULL) = data->arrays.count;
        array_push(&data->arrays, array);
    }
}

static const double *find_data(void *context, const char *name)
{
    const Data *data = context;
    const uint64_t *index = map_find_text(&data->names, name);
    return index ? data->arrays.items[*index] : NULL;
}

static void free_data(Data *data)
{
    for (size_t i = 0; i < data->arrays.count; i++)
        free(data->arrays.items[i]);
    array_free(&data->arrays);
    map_free(&data->names);
}

/* ---- the model ---- */

/* The package keeps the description, so that `explain` can lower it again. */
static Status describe_model(const char *name, const ProductsOptions *o, Session *s)
{
    bool product = strcmp(name, "gemm") == 0;
    json_t *model =
        json_pack("{s:s,s:s,s:I,s:I,s:I}", "name", name, "kind", product ? "gemm" : "mlp", "batch",
                  (json_int_t)o->batch, "rows", (json_int_t)o->rows, "inner", (json_int_t)o->inner);
    if (product) {
        json_object_set_new(model, "columns", json_integer((json_int_t)o->columns));
    } else {
        json_object_set_new(model, "hidden", json_integer((json_int_t)o->hidden));
        json_object_set_new(model, "blocks", json_integer((json_int_t)o->blocks));
    }
    char *text = json_dumps(model, JSON_COMPACT | JSON_PRESERVE_ORDER);
    Status status = model_parse(&s->arena, name, text, strlen(text), &s->model);
    free(text);
    json_decref(model);
    TRY(status);
    s->options.model = &s->model;
    return model_graph(&s->model, &s->graph);
}

/* ---- running ---- */

typedef struct Measured {
    DeviceRun run;
    double relative_rms, maximum_absolute, simulate_seconds;
} Measured;

static float *as_floats(const double *data, size_t n)
{
    float *floats = xcalloc(n, sizeof *floats);
    for (size_t i = 0; i < n; i++)
        floats[i] = (float)data[i];
    return floats;
}

static Status call_with_data(Device *device, const Graph *graph, Data *data, float *out, size_t n)
{
    DeviceTensor input = {0}, output = {"output", out, n};
    Status status = STATUS_OK;
    for (uint32_t v = 0; v < graph->values.count && status_ok(status); v++) {
        const Value *value = &graph->values.items[v];
        const double *values = value->name ? find_data(data, value->name) : NULL;
        if (!values)
            continue;
        size_t elements = (size_t)shape_elements(&value->shape);
        float *floats = as_floats(values, elements);
        if (value->kind == VALUE_INPUT) {
            input = (DeviceTensor){value->name, floats, elements};
        } else {
            status = device_write_weight(device, value->name, floats, elements);
            free(floats);
        }
    }
    if (status_ok(status))
        status = device_call(device, &input, 1, &output, 1);
    free(input.data);
    return status;
}

static Status compare(const Graph *graph, Data *data, const float *out, size_t n, Measured *m)
{
    double *reference = NULL, error = 0, size = 0;
    TRY(graph_evaluate(graph, find_data, data, &reference));
    for (size_t i = 0; i < n; i++) {
        double difference = fabs((double)out[i] - reference[i]);
        error += difference * difference;
        size += reference[i] * reference[i];
        m->maximum_absolute = fmax(m->maximum_absolute, difference);
    }
    m->relative_rms = sqrt(error / size);
    free(reference);
    return STATUS_OK;
}

static Status run_and_compare(const ProductsOptions *o, const Graph *graph, const Package *package,
                              Measured *m)
{
    size_t n = (size_t)shape_elements(&graph->values.items[graph->outputs.items[0].value].shape);
    float *out = xcalloc(n, sizeof *out);
    Data data = {0};
    make_data(graph, o->seed, &data);
    DeviceOptions options = {
        .device = "sim", .threads = (unsigned)o->common.threads, .verify = o->verify};
    Device *device = NULL;
    Status status = profile_source(&o->profile, package, &options.profile);
    if (status_ok(status))
        status = device_open(package, &options, &device);
    if (status_ok(status))
        status = call_with_data(device, graph, &data, out, n);
    if (status_ok(status)) {
        m->run = *device_last_run(device);
        m->simulate_seconds = m->run.host_seconds;
        status = profile_save(&o->profile, device);
    }
    if (status_ok(status)) {
        status = compare(graph, &data, out, n, m);
    }
    Status closed = device_close(device);
    if (status_ok(status))
        status = closed;
    else
        status_free(closed);
    free_data(&data);
    free(out);
    return status;
}

static void sum_phases(const Compilation *c, uint64_t *horizon, uint64_t *bound)
{
    for (size_t p = 0; p < c->program.phases.count; p++) {
        *horizon += c->schedule.phases[p].horizon;
        *bound += c->schedule.phases[p].bound;
    }
}

static Status run_workload(const char *name, const ProductsOptions *o, Session *s, Measured *m)
{
    s->pool = pool_create((unsigned)o->common.threads);
    s->cache = o->no_cache ? NULL : cache_folder();
    s->options.kernel_cache = s->cache;
    s->options.plan_state = o->state;
    s->options.plan = (PlanOptions){.tiles = (uint32_t)o->tiles,
                                    .precision = {.kind = F16},
                                    .constraints = o->constraints,
                                    .weights_once = strcmp(o->weights, "once") == 0,
                                    .io_row_major = strcmp(o->io, "row-major") == 0,
                                    .pairs = !o->no_pairs};
    TRY(sampling_mode("--profile-source", profile_sampling(&o->profile), &s->options.profile));
    graph_init(&s->graph, &s->arena);
    TRY(describe_model(name, o, s));
    double start = seconds_now();
    TRY(compile(&s->graph, &s->options, s->pool, STAGE_PACKAGE, &s->compilation));
    s->build_seconds = seconds_now() - start;
    double build_memory = peak_memory_mib();
    if (o->show_plan) {
        Text text = {0};
        json_t *search = search_report_json(&s->compilation);
        recipe_print(&text, &s->graph, s->compilation.recipe, NULL);
        search_report_print(&text, search, NULL);
        json_decref(search);
        fputs(text_string(&text), stdout);
        text_free(&text);
    }
    if (o->package)
        TRY(package_write(&s->compilation.package, o->package));
    if (!o->no_run)
        TRY(run_and_compare(o, &s->graph, &s->compilation.package, m));
    uint64_t horizon = 0, bound = 0;
    sum_phases(&s->compilation, &horizon, &bound);
    const Compilation *c = &s->compilation;
    bool passed = o->no_run || m->relative_rms <= 0.002;
    const char *test = o->no_run ? "NOT_RUN" : passed ? "PASSED" : "FAILED";
    printf("workload=%s tiles=%u precision=f16 batch=%llu weights=%s io=%s cycles=%llu "
           "deviceMicroseconds=%.3f boundaryOverheadCycles=%llu cyclesAt600=%llu buildSeconds=%.3f "
           "simulateSeconds=%.3f peakRssMiB=%.0f numericalTest=%s planSeconds=%.3f "
           "scheduleSeconds=%.3f buildPeakRssMiB=%.0f exchangeHorizonCycles=%llu "
           "exchangeBoundCycles=%llu predictedCycles=%.0f relativeRmsError=%.6f "
           "maximumAbsoluteError=%.6f\n",
           name, c->program.tiles, (unsigned long long)o->batch, o->weights, o->io,
           (unsigned long long)m->run.cycles, (double)m->run.cycles / CLOCK_HZ * 1e6,
           (unsigned long long)m->run.boundary_cycles,
           (unsigned long long)(m->run.cycles - m->run.boundary_cycles + 600ull * m->run.phases),
           s->build_seconds, m->simulate_seconds, peak_memory_mib(), test, c->plan_seconds,
           c->schedule_seconds, build_memory, (unsigned long long)horizon,
           (unsigned long long)bound, c->recipe->predicted_cycles, m->relative_rms,
           m->maximum_absolute);
    return passed ? STATUS_OK : status_error("the relative error is above 0.002");
}

static int products(const char *name, ProductsOptions o, int argc, char **argv)
{
    const Option options[] = {
        {"--precision", OPTION_TEXT, &o.precision, "f16", "storage precision", 0, 0},
        {"--batch", OPTION_NUMBER, &o.batch, "N", "batch (default 1)", 1, 64},
        {"--rows", OPTION_NUMBER, &o.rows, "N", "rows of the input", 1, 1 << 20},
        {"--inner", OPTION_NUMBER, &o.inner, "N", "columns of the input", 1, 1 << 20},
        {"--columns", OPTION_NUMBER, &o.columns, "N", "gemm: columns of the result", 1, 1 << 20},
        {"--hidden", OPTION_NUMBER, &o.hidden, "N", "mlp: hidden columns", 1, 1 << 20},
        {"--blocks", OPTION_NUMBER, &o.blocks, "N", "mlp: blocks in a row (default 1)", 1, 64},
        {"--weights", OPTION_TEXT, &o.weights, "once|replicated", "parameter storage", 0, 0},
        {"--io", OPTION_TEXT, &o.io, "row-major|free", "layout of input and output", 0, 0},
        {"--tiles", OPTION_NUMBER, &o.tiles, "N", "logical tiles (default 1472)", 1, TILES},
        {"--seed", OPTION_NUMBER, &o.seed, "N", "of the random data (default 1)", 0, 0},
        {"--package", OPTION_TEXT, &o.package, "FILE", "write the package too", 0, 0},
        {"--plan-constraint", OPTION_TEXT, &o.constraints, "LIST",
         "pins and excludes: OPERATION:KEY=VALUE,OPERATION:KEY!=VALUE...", 0, 0},
        {"--plan-state", OPTION_TEXT, &o.state, "FILE",
         "take the search's finalists from this file, or keep them in it", 0, 0},
        {"--show-plan", OPTION_FLAG, &o.show_plan, "", "print the recipe first", 0, 0},
        {"--no-run", OPTION_FLAG, &o.no_run, "", "build only", 0, 0},
        {"--no-pairs", OPTION_FLAG, &o.no_pairs, "", "no 64-bit exchange", 0, 0},
        {"--no-kernel-cache", OPTION_FLAG, &o.no_cache, "", "assemble every kernel anew", 0, 0},
        {"--verify", OPTION_FLAG, &o.verify, "", "count the delivered words of every phase", 0, 0},
        PROFILE_OPTIONS(o.profile),
        COMMON_OPTIONS(o.common),
        {0}};
    const Command command = {"ipu-stack bench siglip-mlp|mlp|gemm [options]",
                             "Plans, compiles, runs and checks products of random data; the last "
                             "line is the summary. Cycles are simulated.",
                             options, 0, 0};
    TextList arguments = {0};
    char verb[32];
    snprintf(verb, sizeof verb, "bench %s", name);
    int done = command_parse(&command, argc, argv, &arguments);
    array_free(&arguments);
    if (done < 0 && !common_apply(verb, &o.common))
        done = 2;
    if (done < 0 && (strcmp(o.precision, "f16") != 0 ||
                     (strcmp(o.weights, "once") != 0 && strcmp(o.weights, "replicated") != 0) ||
                     (strcmp(o.io, "row-major") != 0 && strcmp(o.io, "free") != 0))) {
        fprintf(stderr, "ipu-stack bench %s: bad --precision, --weights or --io\n", name);
        done = 2;
    }
    if (done >= 0)
        return done;
    Session session = {0};
    Measured measured = {0};
    Status status = run_workload(name, &o, &session, &measured);
    session_close(&session);
    return status_ok(status) ? 0 : command_fail(verb, status);
}

int bench_siglip_mlp(int argc, char **argv)
{
    ProductsOptions o = {.precision = "f16",
                         .weights = "once",
                         .io = "row-major",
                         .rows = 729,
                         .inner = 1152,
                         .columns = 1152,
                         .hidden = 4304,
                         .blocks = 1,
                         .tiles = TILES,
                         .batch = 1,
                         .seed = 1};
    return products("siglip-mlp", o, argc, argv);
}

int bench_mlp(int argc, char **argv)
{
    ProductsOptions o = {.precision = "f16",
                         .weights = "once",
                         .io = "free",
                         .rows = 512,
                         .inner = 2048,
                         .columns = 2048,
                         .hidden = 2048,
                         .blocks = 4,
                         .tiles = TILES,
                         .batch = 1,
                         .seed = 1};
    return products("mlp", o, argc, argv);
}

int bench_gemm(int argc, char **argv)
{
    ProductsOptions o = {.precision = "f16",
                         .weights = "once",
                         .io = "free",
                         .rows = 4096,
                         .inner = 4096,
                         .columns = 4096,
                         .hidden = 4096,
                         .blocks = 1,
                         .tiles = TILES,
                         .batch = 1,
                         .seed = 1};
    return products("gemm", o, argc, argv);
}
