/* libraries: profile */
/* Samples of a small model with a repeat: code in the package and the simulator agree to the cycle;
 * sums, iterations and the plan of the package are what the model says. */
#include "check.h"

#include "profile/profile.h"

#include <string.h>

enum { TILES_USED = 8, ROWS = 40, WIDTH = 96, LAYERS = 3 };

typedef struct Fixture {
    Arena arena;
    Graph graph;
    Pool *pool;
    Compilation compilations[3]; /* by ProfileMode */
} Fixture;

static void build_graph(Graph *graph)
{
    static ValueId weights[LAYERS];
    static const char *const names[LAYERS] = {"w0", "w1", "w2"};
    ValueId x = graph_input(graph, "x", (Shape){3, {1, ROWS, WIDTH}}), y;
    for (int i = 0; i < LAYERS; i++)
        weights[i] = graph_parameter(graph, names[i], (Shape){2, {WIDTH, WIDTH}});
    uint32_t sequence = graph_sequence(graph, "w", weights, LAYERS);
    const ValueId *arguments, *results;
    assert_ok(graph_begin_repeat(graph, "layers", LAYERS, &x, 1, &sequence, 1, &arguments));
    assert_ok(graph_gemm(graph, "layers/product", arguments[0], arguments[1], false, &y));
    assert_ok(graph_gelu(graph, "layers/gelu", y, &y));
    assert_ok(graph_end_repeat(graph, &y, &results));
    assert_ok(graph_output(graph, "y", results[0]));
}

static int set_up(void **state)
{
    Fixture *f = calloc(1, sizeof *f);
    *state = f;
    graph_init(&f->graph, &f->arena);
    build_graph(&f->graph);
    f->pool = pool_create(1);
    for (uint8_t mode = 0; mode < 3; mode++) {
        CompileOptions options = {.plan = {.tiles = TILES_USED, .precision = {F16, 0}},
                                  .profile = mode};
        assert_ok(compile(&f->graph, &options, f->pool, STAGE_PACKAGE, &f->compilations[mode]));
    }
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    for (int mode = 0; mode < 3; mode++)
        compilation_free(&f->compilations[mode]);
    pool_destroy(f->pool);
    graph_free(&f->graph);
    arena_free(&f->arena);
    free(f);
    return 0;
}

/* Runs twice; the bytes of the profile of the second call. */
static Bytes capture(const Package *package, uint8_t source, uint64_t *cycles)
{
    float input[ROWS * WIDTH] = {0}, output[ROWS * WIDTH];
    DeviceTensor in = {"x", input, ROWS * WIDTH}, out = {"y", output, ROWS * WIDTH};
    DeviceOptions options = {.device = "sim", .threads = 1, .profile = source};
    Device *device;
    Bytes bytes;
    const Profile *profile;
    assert_ok(device_open(package, &options, &device));
    assert_true(status_discard(device_profile(device, &profile)));
    for (int call = 0; call < 2; call++)
        assert_ok(device_call(device, &in, 1, &out, 1));
    *cycles = device_last_run(device)->cycles;
    assert_ok(device_profile(device, &profile));
    assert_ok(profile_encode(profile, true, &bytes));
    assert_ok(device_close(device));
    return bytes;
}

static void sources_agree(void **state)
{
    Fixture *f = *state;
    uint64_t cycles, same;
    const Package *package = &f->compilations[PROFILE_FULL].package;
    Bytes a = capture(package, DEVICE_PROFILE_SIMULATOR, &same);
    Bytes b = capture(package, DEVICE_PROFILE_PACKAGE, &cycles);
    assert_int_equal(cycles, same);
    Arena arena = {0};
    Profile x, y;
    assert_ok(profile_decode(&arena, "simulator", a.data, a.count, &x));
    assert_ok(profile_decode(&arena, "package", b.data, b.count, &y));
    assert_string_equal(x.source, "simulator");
    assert_string_equal(y.source, "package");
    assert_int_equal(x.tile_count, TILES_USED);
    for (uint32_t t = 0; t < x.tile_count; t++) {
        assert_int_equal(x.tiles[t].sample_count, y.tiles[t].sample_count);
        assert_memory_equal(x.tiles[t].samples, y.tiles[t].samples,
                            x.tiles[t].sample_count * sizeof(ProfileSample));
    }
    View view;
    assert_ok(view_open(&y, false, &view));
    /* cycles count from the release of the first exchange barrier: after the last entry into it */
    assert_true(package->phase_count > 0);
    uint32_t entry = 0;
    for (size_t i = 0; i < view.count; i++)
        if (y.steps[view.samples[i].step].phase == PROFILE_EXCHANGE_PHASE &&
            view.samples[i].epoch <= 1)
            entry = max_u32(entry, view.samples[i].offset);
    uint64_t barrier = view.span - cycles - entry;
    assert_in_range(barrier, TIMING_EXCHANGE_SYNC, TIMING_EXCHANGE_SYNC + 50);
    view_close(&view);
    bytes_free(&a);
    bytes_free(&b);
    arena_free(&arena);
}

static void iterations(void **state)
{
    Fixture *f = *state;
    uint64_t cycles;
    Bytes bytes = capture(&f->compilations[PROFILE_OFF].package, DEVICE_PROFILE_SIMULATOR, &cycles);
    Arena arena = {0};
    Profile profile;
    assert_ok(profile_decode(&arena, "profile", bytes.data, bytes.count, &profile));
    uint32_t products[LAYERS + 1] = {0};
    double useful = 0;
    for (uint32_t t = 0; t < profile.tile_count; t++)
        for (uint32_t i = 0; i < profile.tiles[t].sample_count; i++) {
            const ProfileSample *s = &profile.tiles[t].samples[i];
            const ProfileStep *step = &profile.steps[s->step];
            if (strcmp(step->kernel, "gemm") != 0)
                continue;
            assert_string_equal(step->operation, "layers/product");
            assert_in_range(s->epoch, 1, LAYERS);
            products[s->epoch]++;
            useful += atof(profile_metadata(step, "usefulCycles"));
        }
    for (int layer = 1; layer <= LAYERS; layer++)
        assert_int_equal(products[layer], products[1]);
    assert_true(products[1] > 0);
    /* every product of the model once, in FLOP / 128 */
    double expected = LAYERS * 2.0 * ROWS * WIDTH * WIDTH / 128;
    assert_true(useful > 0.98 * expected && useful < 1.02 * expected);
    bytes_free(&bytes);
    arena_free(&arena);
}

static void modes(void **state)
{
    Fixture *f = *state;
    uint64_t cycles[3];
    Device *device;
    DeviceOptions options = {.device = "sim", .threads = 1, .profile = DEVICE_PROFILE_PACKAGE};
    assert_true(
        status_discard(device_open(&f->compilations[PROFILE_OFF].package, &options, &device)));
    for (int mode = 0; mode < 3; mode++) {
        Bytes bytes =
            capture(&f->compilations[mode].package,
                    mode == PROFILE_OVERALL ? DEVICE_PROFILE_PACKAGE : DEVICE_PROFILE_SIMULATOR,
                    &cycles[mode]);
        bytes_free(&bytes);
    }
    assert_int_equal(cycles[PROFILE_OFF], cycles[PROFILE_OVERALL]);
    assert_true(cycles[PROFILE_FULL] > cycles[PROFILE_OFF]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sources_agree),
                                       cmocka_unit_test(iterations), cmocka_unit_test(modes)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
