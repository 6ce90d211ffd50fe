/* libraries: device */
/* Sessions: a small compiled model is opened, called, read and closed; errors and faults. */
#include "check.h"

#include "device/device.h"
#include "hostile.h"
#include "target/target.h"

#include <math.h>
#include <string.h>

enum { ROWS = 4, INNER = 32, COLUMNS = 48 };

static float weight_data[INNER * COLUMNS], bias_data[COLUMNS], input_data[ROWS * INNER];
static double weight_exact[INNER * COLUMNS], bias_exact[COLUMNS], input_exact[ROWS * INNER];

typedef struct Fixture {
    Arena arena;
    Graph graph;
    Pool *pool;
    Compilation compilation, single; /* for 8 tiles, for one */
    double *expected;
} Fixture;

/* Values that halves hold exactly, so that only the arithmetic rounds. */
static void fill(float *data, double *exact, uint32_t count, uint32_t seed)
{
    for (uint32_t i = 0; i < count; i++) {
        seed = seed * 1664525 + 1013904223;
        data[i] = (float)((int)(seed >> 24) - 128) / 256;
        exact[i] = (double)data[i];
    }
}

static const double *find(void *context, const char *name)
{
    (void)context;
    return name[0] == 'w' ? weight_exact : name[0] == 'b' ? bias_exact : input_exact;
}

static int set_up(void **state)
{
    Fixture *f = calloc(1, sizeof *f);
    *state = f;
    fill(weight_data, weight_exact, countof(weight_data), 1);
    fill(bias_data, bias_exact, countof(bias_data), 2);
    fill(input_data, input_exact, countof(input_data), 3);
    graph_init(&f->graph, &f->arena);
    ValueId x = graph_input(&f->graph, "x", (Shape){3, {1, ROWS, INNER}}), y, out;
    ValueId w = graph_parameter(&f->graph, "w", (Shape){2, {INNER, COLUMNS}});
    ValueId b = graph_parameter(&f->graph, "b", (Shape){3, {1, 1, COLUMNS}});
    assert_ok(graph_gemm(&f->graph, "product", x, w, false, &y));
    assert_ok(graph_add(&f->graph, "product/bias", y, b, &out));
    assert_ok(graph_output(&f->graph, "y", out));
    TensorEntry entries[] = {
        {"w", "F32", {2, {INNER, COLUMNS}}, (uint8_t *)weight_data, sizeof weight_data},
        {"b", "F32", {3, {1, 1, COLUMNS}}, (uint8_t *)bias_data, sizeof bias_data}};
    Tensors weights = {.entries = entries, .count = 2};
    CompileOptions options = {.plan = {.tiles = 8, .precision = {F16, 0}}, .weights = &weights};
    f->pool = pool_create(1);
    assert_ok(compile(&f->graph, &options, f->pool, STAGE_PACKAGE, &f->compilation));
    options.plan.tiles = 1;
    assert_ok(compile(&f->graph, &options, f->pool, STAGE_PACKAGE, &f->single));
    double *outputs[1];
    assert_ok(graph_evaluate(&f->graph, find, NULL, outputs));
    f->expected = outputs[0];
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    compilation_free(&f->compilation);
    compilation_free(&f->single);
    pool_destroy(f->pool);
    graph_free(&f->graph);
    arena_free(&f->arena);
    free(f->expected);
    free(f);
    return 0;
}

static Status call(Device *device, float *out)
{
    DeviceTensor input = {"x", input_data, countof(input_data)};
    DeviceTensor output = {"y", out, ROWS * COLUMNS};
    return device_call(device, &input, 1, &output, 1);
}

static void calls(void **state)
{
    Fixture *f = *state;
    uint64_t cycles = 0;
    float first[ROWS * COLUMNS], out[ROWS * COLUMNS], zeros[countof(input_data)] = {0};
    for (unsigned threads = 1; threads <= 2; threads++) {
        Device *device;
        DeviceOptions options = {.device = "sim", .threads = threads, .verify = threads == 1};
        assert_ok(device_open(&f->compilation.package, &options, &device));
        for (uint32_t i = 0; i < 3; i++) {
            assert_ok(call(device, out));
            for (uint32_t k = 0; k < countof(out); k++)
                assert_true(fabs((double)out[k] - f->expected[k]) < 4e-3);
            if (!cycles) {
                cycles = device_last_run(device)->cycles;
                memcpy(first, out, sizeof out);
                assert_in_range(cycles, 200, 50000);
            }
            assert_memory_equal(out, first, sizeof out);
            assert_int_equal(device_last_run(device)->cycles, cycles);
        }
        /* another input in between: results follow it, parameters survive */
        DeviceTensor input = {"x", zeros, countof(zeros)}, output = {"y", out, countof(out)};
        assert_ok(device_call(device, &input, 1, &output, 1));
        for (uint32_t k = 0; k < countof(out); k++)
            assert_true(out[k] == bias_data[k % COLUMNS]);
        assert_ok(call(device, out));
        assert_memory_equal(out, first, sizeof out);
        const DeviceRun *run = device_last_run(device);
        assert_int_equal(run->phases, f->compilation.package.phase_count);
        assert_true(run->boundary_cycles > 0 && run->boundary_cycles < run->cycles);
        assert_ok(device_close(device));
    }
    assert_ok(device_close(NULL));
}

static void names(void **state)
{
    Fixture *f = *state;
    Device *device;
    DeviceOptions options = {.device = "sim", .threads = 1, .verify = false};
    float out[ROWS * COLUMNS];
    assert_ok(device_open(&f->compilation.package, &options, &device));
    DeviceTensor x = {"x", input_data, countof(input_data)}, y = {"y", out, countof(out)};
    DeviceTensor other = {"other", input_data, countof(input_data)};
    DeviceTensor both[] = {x, other};
    assert_true(status_discard(device_call(device, NULL, 0, &y, 1)));
    assert_true(status_discard(device_call(device, both, 2, &y, 1)));
    assert_true(status_discard(device_call(device, &x, 1, &other, 1)));
    x.count--;
    assert_true(status_discard(device_call(device, &x, 1, &y, 1)));
    x.count++;
    assert_ok(device_call(device, &x, 1, &y, 1)); /* none of this hurt the session */
    assert_ok(device_call(device, &x, 1, NULL, 0));
    uint32_t word;
    assert_ok(device_read_memory(device, 0, STATE_BASE + STATE_COMPLETION, &word, 4));
    assert_int_equal(word, 0); /* still running */
    assert_true(status_discard(device_read_memory(device, 1472, STATE_BASE, &word, 4)));
    assert_true(status_discard(device_read_memory(device, 0, SRAM_END - 2, &word, 4)));
    assert_ok(device_write_weight(device, "b", (float[COLUMNS]){0}, COLUMNS));
    assert_true(status_discard(device_write_weight(device, "c", bias_data, COLUMNS)));
    x.data = (float[countof(input_data)]){0};
    assert_ok(device_call(device, &x, 1, &y, 1));
    for (uint32_t k = 0; k < countof(out); k++)
        assert_true(out[k] == 0);
    assert_ok(device_close(device));
    options.device = "/dev/ipu0";
    assert_true(status_discard(device_open(&f->compilation.package, &options, &device)));
    options.device = "tpu";
    assert_true(status_discard(device_open(&f->compilation.package, &options, &device)));
}

/* A word that is no instruction, where the last tile's steps begin: the message says where. */
static void faults(void **state)
{
    Fixture *f = *state;
    Package package = f->compilation.package;
    PackageTile *tiles = malloc(package.tile_count * sizeof *tiles);
    memcpy(tiles, package.tiles, package.tile_count * sizeof *tiles);
    package.tiles = tiles;
    PackageTile *tile = NULL;
    for (uint32_t t = 0; t < package.tile_count; t++)
        if (tiles[t].physical == target_physical(3))
            tile = &tiles[t];
    PackageSegment *segments = malloc(tile->segment_count * sizeof *segments);
    memcpy(segments, tile->segments, tile->segment_count * sizeof *segments);
    tile->segments = segments;
    uint8_t *code = NULL;
    for (uint32_t s = 0; s < tile->segment_count && !code; s++) {
        uint32_t at = tile->steps_start - segments[s].address;
        if (at >= segments[s].data_bytes)
            continue;
        code = malloc(segments[s].data_bytes);
        memcpy(code, segments[s].data, segments[s].data_bytes);
        store_u32(code + at, 0);
        segments[s].data = code;
    }
    assert_non_null(code);
    Device *device;
    DeviceOptions options = {.device = "sim", .threads = 1, .verify = false};
    float out[ROWS * COLUMNS];
    assert_ok(device_open(&package, &options, &device));
    Status status = call(device, out);
    char pc[16];
    snprintf(pc, sizeof pc, "%#x", tile->steps_start);
    static const char *const parts[] = {"tile 3", "supervisor", "cycle", "INVALID_INSTR",
                                        "generated tile program"};
    for (uint32_t i = 0; i < countof(parts); i++)
        if (!strstr(status_message(status), parts[i]))
            fail_msg("no \"%s\" in: %s", parts[i], status_message(status));
    assert_non_null(strstr(status_message(status), pc));
    status_free(status);
    assert_true(status_discard(call(device, out))); /* broken for good, but closes */
    assert_ok(device_close(device));
    free(code);
    free(segments);
    free(tiles);
}

/* Damaged programs end in an error or a result, never in a crash or a hang: one word, field or bit
 * of a tile in use is changed, or of an idle one. */
static void damaged(void **state)
{
    Fixture *f = *state;
    Package package = f->compilation.package;
    size_t bytes = package.tile_count * sizeof *package.tiles;
    PackageTile *tiles = malloc(bytes);
    DeviceOptions options = {.device = "sim", .threads = 1, .max_cycles = 100000};
    DeviceTensor input = {"x", input_data, countof(input_data)};
    uint32_t errors = 0, rounds = 0;
    for (Hostile h = hostile_begin(60); hostile_more(&h); rounds++) {
        memcpy(tiles, f->compilation.package.tiles, bytes);
        package.tiles = tiles;
        uint32_t logical = hostile_random(&h, 10);
        PackageTile *tile = tiles;
        while (tile->physical != target_physical(logical))
            tile++;
        PackageSegment *segments =
            arena_copy(&f->arena, tile->segments, tile->segment_count * sizeof *segments, 8);
        PackageSegment *segment = &segments[hostile_random(&h, tile->segment_count)];
        tile->segments = segments;
        uint8_t *data = arena_copy(&f->arena, segment->data, segment->data_bytes, 8);
        segment->data = data;
        uint32_t at = hostile_random(&h, segment->data_bytes);
        switch (hostile_random(&h, 6)) {
        case 0:
            tile->entry = hostile_random(&h, 0xffffffff);
            break;
        case 1:
            tile->command_address = hostile_random(&h, SRAM_END + 8);
            break;
        case 2:
            for (uint32_t i = 0; i < 8 && segment->data_bytes; i++)
                data[hostile_random(&h, segment->data_bytes)] = (uint8_t)hostile_random(&h, 256);
            break;
        case 3:
            if (segment->data_bytes >= at / 4 * 4 + 4)
                store_u32(data + at / 4 * 4, hostile_random(&h, 0xffffffff));
            break;
        default:
            if (segment->data_bytes)
                data[at] = (uint8_t)(data[at] ^ 1 << hostile_random(&h, 8));
        }
        if (status_discard(package_check(&package)))
            continue;
        Device *device;
        float out[ROWS * COLUMNS];
        DeviceTensor output = {"y", out, countof(out)};
        Status status = device_open(&package, &options, &device);
        if (status_ok(status)) {
            status = device_call(device, &input, 1, &output, 1);
            Status closing = device_close(device);
            if (status_ok(status))
                status = closing;
            else
                status_free(closing);
        }
        errors += status_discard(status);
    }
    print_message("%u of %u damaged programs gave an error\n", errors, rounds);
    assert_true(errors > 0);
    free(tiles);
}

/* One tile, no exchange: cycles count from the rendezvous. */
static void one_tile(void **state)
{
    Fixture *f = *state;
    Device *device;
    DeviceOptions options = {.device = "sim", .threads = 1, .verify = true};
    float out[ROWS * COLUMNS];
    assert_ok(device_open(&f->single.package, &options, &device));
    assert_ok(call(device, out));
    for (uint32_t k = 0; k < countof(out); k++)
        assert_true(fabs((double)out[k] - f->expected[k]) < 4e-3);
    assert_int_equal(device_last_run(device)->phases, 0);
    assert_in_range(device_last_run(device)->cycles, 200, 50000);
    assert_ok(device_close(device));
}

/* The file is enough: encode, decode, run. */
static void from_file(void **state)
{
    Fixture *f = *state;
    Arena arena = {0};
    Bytes bytes;
    Package package;
    Device *device;
    DeviceOptions options = {.device = "sim", .threads = 0, .verify = false};
    float out[ROWS * COLUMNS];
    assert_ok(package_encode(&f->compilation.package, &bytes));
    assert_ok(package_decode(&arena, "small.ipuexe", bytes.data, bytes.count, &package));
    assert_ok(device_open(&package, &options, &device));
    assert_ok(call(device, out));
    for (uint32_t k = 0; k < countof(out); k++)
        assert_true(fabs((double)out[k] - f->expected[k]) < 4e-3);
    assert_ok(device_close(device));
    package.tile_count--;
    assert_true(status_discard(device_open(&package, &options, &device)));
    bytes_free(&bytes);
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls),   cmocka_unit_test(names),    cmocka_unit_test(faults),
        cmocka_unit_test(damaged), cmocka_unit_test(one_tile), cmocka_unit_test(from_file),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
