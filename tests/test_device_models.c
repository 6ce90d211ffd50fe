/* libraries: device */
/* test_device_models.c - from a graph to numbers out of the simulated machine: chains of products
 * with odd sizes, attention with one query, a repeat, the digits model. Results against
 * graph_evaluate, the package's bytes and the cycles against other thread counts and repeated
 * calls. */
#include "check.h"

#include "tile_interpreter.h"

#include "device/device.h"

typedef struct Machinery { /* one graph, compiled and booted */
    Compilation compilation;
    Device *device;
    TestData data;
} Machinery;

static void machinery_open(Machinery *m, const Graph *graph, const PlanOptions *plan,
                           const Tensors *weights, unsigned threads)
{
    memset(m, 0, sizeof *m);
    Pool *pool = pool_create(threads);
    CompileOptions options = {.plan = *plan, .weights = weights};
    assert_ok(compile(graph, &options, pool, STAGE_PACKAGE, &m->compilation));
    pool_destroy(pool);
    DeviceOptions device = {.device = "sim", .threads = threads};
    assert_ok(device_open(&m->compilation.package, &device, &m->device));
    test_data_make(&m->data, graph, 7);
}

static void machinery_close(Machinery *m)
{
    assert_ok(device_close(m->device));
    test_data_free(&m->data);
    compilation_free(&m->compilation);
}

static float *to_floats(const double *data, size_t count)
{
    float *floats = xcalloc(count, sizeof *floats);
    for (size_t i = 0; i < count; i++)
        floats[i] = (float)data[i];
    return floats;
}

/* Writes all parameters unless they are in the package, calls with all inputs; out has one array
 * per graph output. */
static void machinery_call(Machinery *m, const Graph *graph, bool baked, float **out)
{
    DeviceTensor inputs[8], outputs[8];
    size_t input_count = 0;
    for (uint32_t v = 0; v < graph->values.count; v++) {
        const Value *value = &graph->values.items[v];
        if (value->kind != VALUE_INPUT && value->kind != VALUE_PARAMETER)
            continue;
        size_t n = (size_t)shape_elements(&value->shape);
        float *floats = to_floats(test_data_find(&m->data, value->name), n);
        if (value->kind == VALUE_PARAMETER) {
            if (!baked)
                assert_ok(device_write_weight(m->device, value->name, floats, n));
            free(floats);
        } else {
            inputs[input_count++] = (DeviceTensor){value->name, floats, n};
        }
    }
    for (size_t o = 0; o < graph->outputs.count; o++) {
        size_t n =
            (size_t)shape_elements(&graph->values.items[graph->outputs.items[o].value].shape);
        out[o] = xcalloc(n, sizeof(float));
        outputs[o] = (DeviceTensor){graph->outputs.items[o].name, out[o], n};
    }
    assert_ok(device_call(m->device, inputs, input_count, outputs, graph->outputs.count));
    for (size_t i = 0; i < input_count; i++)
        free(inputs[i].data);
}

/* Root mean square of the difference over that of the reference, of every output. */
static void check_numbers(const Graph *graph, TestData *data, float **out, double limit)
{
    double *reference[8] = {0};
    assert_ok(graph_evaluate(graph, test_data_find, data, reference));
    for (size_t o = 0; o < graph->outputs.count; o++) {
        size_t n =
            (size_t)shape_elements(&graph->values.items[graph->outputs.items[o].value].shape);
        double error = 0, size = 0;
        for (size_t i = 0; i < n; i++) {
            error += ((double)out[o][i] - reference[o][i]) * ((double)out[o][i] - reference[o][i]);
            size += reference[o][i] * reference[o][i];
        }
        if (!(sqrt(error) <= limit * sqrt(size)))
            fail_msg("%s: relative error %g", graph->outputs.items[o].name, sqrt(error / size));
        free(reference[o]);
    }
}

/* What compile says before anything ran: within 1 %. */
static void check_price(double priced, uint64_t cycles)
{
    print_message("priced %.0f cycles, simulated %llu\n", priced, (unsigned long long)cycles);
    assert_true(fabs(priced - (double)cycles) <= 0.01 * (double)cycles);
}

static void check_plan_on_device(const Graph *graph, const PlanOptions *plan, double limit)
{
    Machinery one, two;
    float *first[8], *second[8], *again[8];
    machinery_open(&one, graph, plan, NULL, 1);
    machinery_call(&one, graph, false, first);
    uint64_t cycles = device_last_run(one.device)->cycles;
    check_numbers(graph, &one.data, first, limit);
    check_price(one.compilation.price.cycles, cycles);
    machinery_call(&one, graph, false, again);
    assert_int_equal(device_last_run(one.device)->cycles, cycles);

    machinery_open(&two, graph, plan, NULL, 2);
    machinery_call(&two, graph, false, second);
    assert_int_equal(device_last_run(two.device)->cycles, cycles);
    Bytes a, b;
    assert_ok(package_encode(&one.compilation.package, &a));
    assert_ok(package_encode(&two.compilation.package, &b));
    assert_int_equal(a.count, b.count);
    assert_memory_equal(a.data, b.data, a.count);
    bytes_free(&a);
    bytes_free(&b);
    for (size_t o = 0; o < graph->outputs.count; o++) {
        size_t n =
            (size_t)shape_elements(&graph->values.items[graph->outputs.items[o].value].shape);
        assert_memory_equal(first[o], again[o], n * sizeof(float));
        assert_memory_equal(first[o], second[o], n * sizeof(float));
        free(first[o]);
        free(second[o]);
        free(again[o]);
    }
    machinery_close(&one);
    machinery_close(&two);
}

static void check_graph_on_device(const Graph *graph, uint32_t tiles, double limit)
{
    PlanOptions plan = {.tiles = tiles, .precision = {.kind = F16}, .pairs = true};
    check_plan_on_device(graph, &plan, limit);
}

static Shape matrix(uint32_t rows, uint32_t columns)
{
    return (Shape){.rank = 2, .extent = {rows, columns}};
}

static Shape cube(uint32_t outer, uint32_t rows, uint32_t columns)
{
    return (Shape){.rank = 3, .extent = {outer, rows, columns}};
}

static void products_with_odd_sizes(void **state)
{
    (void)state;
    static const uint32_t cases[][5] = {
        {5, 37, 71, 13, 1}, {5, 37, 71, 13, 7}, {33, 100, 54, 22, 29}, {1, 18, 258, 6, 64}};
    for (size_t i = 0; i < countof(cases); i++) {
        const uint32_t *c = cases[i];
        Arena arena = {0};
        Graph graph;
        graph_init(&graph, &arena);
        ValueId x = graph_input(&graph, "x", cube(1, c[0], c[1] * 2));
        ValueId w = graph_parameter(&graph, "w", matrix(c[1] * 2, c[2] * 2));
        ValueId v = graph_parameter(&graph, "v", matrix(c[2] * 2, c[3] * 2));
        ValueId bias = graph_parameter(&graph, "v.bias", cube(1, 1, c[3] * 2));
        assert_ok(graph_gemm(&graph, "first", x, w, false, &x));
        assert_ok(graph_gelu(&graph, "gelu", x, &x));
        assert_ok(graph_gemm(&graph, "second", x, v, false, &x));
        assert_ok(graph_add(&graph, "bias", x, bias, &x));
        assert_ok(graph_output(&graph, "y", x));
        check_graph_on_device(&graph, c[4], 0.004);
        graph_free(&graph);
        arena_free(&arena);
    }
}

static void attention_with_one_query(void **state)
{
    (void)state;
    Arena arena = {0};
    Graph graph;
    graph_init(&graph, &arena);
    ValueId q = graph_input(&graph, "q", cube(3, 1, 40));
    ValueId k = graph_input(&graph, "k", cube(3, 50, 40));
    ValueId v = graph_input(&graph, "v", cube(3, 50, 24));
    ValueId y;
    assert_ok(graph_attention(&graph, "attention", q, k, v, 0.158f, &y));
    assert_ok(graph_output(&graph, "y", y));
    check_graph_on_device(&graph, 11, 0.004);
    graph_free(&graph);
    arena_free(&arena);
}

/* A residual chain in a repeat: sequences, carried value, more than one stride per tile. */
static void repeat_with_sequences(void **state)
{
    (void)state;
    Arena arena = {0};
    Graph graph;
    graph_init(&graph, &arena);
    enum { COUNT = 5 };
    ValueId x = graph_input(&graph, "x", cube(1, 6, 48)), w[COUNT], b[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        w[i] = graph_parameter(&graph, arena_printf(&arena, "layer%u.w", i), matrix(48, 48));
        b[i] = graph_parameter(&graph, arena_printf(&arena, "layer%u.bias", i), cube(1, 1, 48));
    }
    uint32_t sequences[] = {graph_sequence(&graph, "w", w, COUNT),
                            graph_sequence(&graph, "bias", b, COUNT)};
    const ValueId *arguments, *results;
    assert_ok(graph_begin_repeat(&graph, "layers", COUNT, &x, 1, sequences, 2, &arguments));
    ValueId carried = arguments[0], bias = arguments[2], y;
    assert_ok(graph_gemm(&graph, "layers/w", carried, arguments[1], false, &y));
    assert_ok(graph_add(&graph, "layers/bias", y, bias, &y));
    assert_ok(graph_gelu(&graph, "layers/gelu", y, &y));
    assert_ok(graph_add(&graph, "layers/residual", carried, y, &y));
    assert_ok(graph_end_repeat(&graph, &y, &results));
    assert_ok(graph_output(&graph, "y", results[0]));
    check_graph_on_device(&graph, 1, 0.004);
    check_graph_on_device(&graph, 10, 0.004);
    graph_free(&graph);
    arena_free(&arena);
}

/* The parameters of the test data as a file has them. */
static Tensors weights_of(const Graph *graph, TestData *data)
{
    Tensors weights = {0};
    weights.entries = xcalloc(graph->values.count, sizeof *weights.entries);
    for (uint32_t v = 0; v < graph->values.count; v++) {
        const Value *value = &graph->values.items[v];
        if (value->kind != VALUE_PARAMETER)
            continue;
        size_t n = (size_t)shape_elements(&value->shape);
        float *floats = to_floats(test_data_find(data, value->name), n);
        uint64_t bytes = n * sizeof *floats;
        weights.entries[weights.count++] =
            (TensorEntry){.name = value->name,
                          .dtype = "F32",
                          .shape = value->shape,
                          .data = arena_copy(&weights.arena, floats, bytes, 8),
                          .bytes = bytes};
        free(floats);
    }
    return weights;
}

/* Parameters and input held once, in shares on the tiles that want them: the left operand's stay in
 * its buffer, which lives on from call to call. The same with the parameters in the package. */
static void stored_in_shares(void **state)
{
    (void)state;
    Arena arena = {0};
    Graph graph;
    graph_init(&graph, &arena);
    ValueId x = graph_input(&graph, "x", matrix(250, 256));
    ValueId w = graph_parameter(&graph, "w", matrix(256, 1008));
    ValueId v = graph_parameter(&graph, "v", matrix(1008, 256));
    assert_ok(graph_gemm(&graph, "first", x, w, false, &x));
    assert_ok(graph_gelu(&graph, "gelu", x, &x));
    assert_ok(graph_gemm(&graph, "second", x, v, false, &x));
    assert_ok(graph_output(&graph, "y", x));
    for (uint32_t rows = 0; rows < 2; rows++) {
        PlanOptions plan = {.tiles = 64,
                            .precision = {.kind = F16},
                            .pairs = true,
                            .weights_once = true,
                            .io_row_major = rows};
        Machinery written, baked;
        float *expected, *out;
        check_plan_on_device(&graph, &plan, 0.004);
        machinery_open(&written, &graph, &plan, NULL, 2);
        const Recipe *recipe = written.compilation.recipe;
        assert_int_equal(recipe->ops[0].own & 1, 1);
        assert_int_equal(recipe->ops[0].spread & 1, rows);
        assert_true(recipe->parameters[1].shares > 1);
        machinery_call(&written, &graph, false, &expected);
        Tensors weights = weights_of(&graph, &written.data);
        machinery_open(&baked, &graph, &plan, &weights, 2);
        for (uint32_t call = 0; call < 2; call++) {
            machinery_call(&baked, &graph, true, &out);
            assert_memory_equal(out, expected, 250 * 256 * sizeof *out);
            free(out);
        }
        free(expected);
        machinery_close(&written);
        machinery_close(&baked);
        free(weights.entries);
        arena_free(&weights.arena);
    }
    graph_free(&graph);
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_with_odd_sizes),
        cmocka_unit_test(attention_with_one_query),
        cmocka_unit_test(repeat_with_sequences),
        cmocka_unit_test(stored_in_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
