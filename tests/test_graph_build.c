/* libraries: graph */
/* Building and checking graphs, and host evaluation against values worked out by hand. */
#include "check.h"

#include "graph/graph.h"

#include <math.h>
#include <string.h>

typedef struct Data {
    const char *name;
    const double *values;
} Data;

static const double *find(void *context, const char *name)
{
    for (const Data *d = context; d->name; d++)
        if (strcmp(d->name, name) == 0)
            return d->values;
    return NULL;
}

static Arena arena;

static Graph start(void)
{
    Graph graph;
    graph_init(&graph, &arena);
    return graph;
}

static int tear_down(void **state)
{
    (void)state;
    arena_free(&arena);
    return 0;
}

/* The message must name the operation and say what is wrong. */
static void fails(Status status, const char *key, const char *what)
{
    assert_non_null(strstr(status_message(status), key));
    assert_non_null(strstr(status_message(status), what));
    status_free(status);
}

static void shapes(void **state)
{
    (void)state;
    Graph g = start();
    ValueId x = graph_input(&g, "x", (Shape){3, {1, 4, 6}}), out;
    ValueId w = graph_parameter(&g, "w", (Shape){2, {6, 8}});
    ValueId t = graph_parameter(&g, "t", (Shape){2, {8, 6}});
    ValueId row = graph_parameter(&g, "row", (Shape){3, {1, 1, 6}});
    ValueId wide = graph_parameter(&g, "wide", (Shape){3, {1, 1, 7}});
    assert_ok(graph_gemm(&g, "a", x, w, false, &out));
    assert_true(shape_equal(&g.values.items[out].shape, &(Shape){3, {1, 4, 8}}));
    assert_ok(graph_gemm(&g, "b", x, t, true, &out));
    assert_true(shape_equal(&g.values.items[out].shape, &(Shape){3, {1, 4, 8}}));
    fails(graph_gemm(&g, "c/gemm", x, t, false, &out), "c/gemm", "inner extents 6 and 8");
    fails(graph_gemm(&g, "c/gemm", w, x, false, &out), "c/gemm", "matrix");
    assert_ok(graph_add(&g, "d", row, x, &out));
    assert_true(shape_equal(&g.values.items[out].shape, &(Shape){3, {1, 4, 6}}));
    fails(graph_add(&g, "e", x, wide, &out), "e", "6 and 7");
    assert_ok(graph_layer_norm(&g, "f", x, row, row, 1e-6f, &out));
    fails(graph_layer_norm(&g, "g", x, row, wide, 1e-6f, &out), "g", "scale and bias");
    fails(graph_layer_norm(&g, "g", x, row, row, 0, &out), "g", "epsilon");
    assert_ok(graph_slice(&g, "h", x, 2, 2, 4, &out));
    fails(graph_slice(&g, "i", x, 2, 3, 4, &out), "i", "not inside");
    fails(graph_slice(&g, "i", x, 2, 0xffffffff, 2, &out), "i", "not inside");
    assert_ok(graph_view(&g, "j", x, 2, 0, 3, false, &out));
    assert_true(shape_equal(&g.values.items[out].shape, &(Shape){3, {3, 4, 2}}));
    fails(graph_view(&g, "k", x, 2, 0, 4, false, &out), "k", "does not divide");
    fails(graph_attention(&g, "l", x, x, wide, 1, &out), "l", "do not match");
    fails(graph_gelu(&g, "m", 1000, &out), "m", "does not exist");
    graph_free(&g);
}

static void close_to(const double *got, const double *expected, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        assert_true(fabs(got[i] - expected[i]) < 1e-12);
}

/* One operation, one output, checked. */
static void expect(Graph *g, ValueId out, Data *data, const double *expected, uint32_t count)
{
    double *outputs[1];
    assert_ok(graph_output(g, "out", out));
    assert_ok(graph_evaluate(g, find, data, outputs));
    close_to(outputs[0], expected, count);
    free(outputs[0]);
    graph_free(g);
}

static void operations(void **state)
{
    (void)state;
    const double x[] = {1, 2, 3, 4, 5, 6}, w[] = {1, 0, 2, -1, 0, 3}, row[] = {10, 20, 30};
    Data data[] = {{"x", x}, {"w", w}, {"row", row}, {NULL, NULL}};
    ValueId out;
    const Shape two_three = {2, {2, 3}}, three_two = {2, {3, 2}}, three = {1, {3}};

    Graph g = start();
    ValueId a = graph_input(&g, "x", two_three), b = graph_parameter(&g, "w", three_two);
    assert_ok(graph_gemm(&g, "op", a, b, false, &out));
    expect(&g, out, data, (double[]){5, 7, 14, 13}, 4);

    g = start();
    a = graph_input(&g, "x", two_three), b = graph_parameter(&g, "w", two_three);
    assert_ok(graph_gemm(&g, "op", a, b, true, &out));
    expect(&g, out, data, (double[]){7, 8, 16, 14}, 4);

    g = start();
    a = graph_input(&g, "x", two_three), b = graph_parameter(&g, "row", three);
    assert_ok(graph_add(&g, "op", b, a, &out));
    expect(&g, out, data, (double[]){11, 22, 33, 14, 25, 36}, 6);

    g = start();
    a = graph_input(&g, "x", two_three), b = graph_parameter(&g, "row", three);
    assert_ok(graph_layer_norm(&g, "op", a, b, b, 1e-6f, &out));
    double n = 1 / sqrt(2.0 / 3 + (double)1e-6f);
    expect(&g, out, data, (double[]){10 - 10 * n, 20, 30 + 30 * n, 10 - 10 * n, 20, 30 + 30 * n},
           6);

    g = start();
    a = graph_input(&g, "x", (Shape){1, {2}});
    assert_ok(graph_gelu(&g, "op", a, &out));
    expect(&g, out, data, (double[]){0.84119199060827676, 1.9545976940877752}, 2);

    g = start();
    a = graph_input(&g, "x", two_three);
    assert_ok(graph_slice(&g, "op", a, 1, 1, 2, &out));
    expect(&g, out, data, (double[]){2, 3, 5, 6}, 4);

    g = start(); /* [1, 3, 2] -> two heads [2, 3, 1] */
    a = graph_input(&g, "x", (Shape){3, {1, 3, 2}});
    assert_ok(graph_view(&g, "op", a, 2, 0, 2, false, &out));
    expect(&g, out, data, (double[]){1, 3, 5, 2, 4, 6}, 6);

    g = start(); /* and back: [2, 3, 1] -> [1, 3, 2] */
    a = graph_input(&g, "x", (Shape){3, {2, 3, 1}});
    assert_ok(graph_view(&g, "op", a, 2, 0, 2, true, &out));
    expect(&g, out, data, (double[]){1, 4, 2, 5, 3, 6}, 6);

    g = start(); /* one query, two keys: scores 1 and 2 (halved by the scale) */
    a = graph_input(&g, "x", (Shape){3, {1, 1, 1}});
    ValueId k = graph_parameter(&g, "w", (Shape){3, {1, 2, 1}});
    ValueId v = graph_parameter(&g, "row", (Shape){3, {1, 2, 1}});
    assert_ok(graph_attention(&g, "op", a, k, v, 0.5f, &out));
    double p = exp(0.5) / (exp(0.5) + 1);
    expect(&g, out, data, (double[]){10 * p + 20 * (1 - p)}, 1);
}

/* Two carried values that change places, one of them growing by a sequence. */
static void repeats(void **state)
{
    (void)state;
    Graph g = start();
    Shape row = {2, {1, 2}};
    ValueId x = graph_input(&g, "x", row), y = graph_input(&g, "y", row), sum;
    ValueId members[] = {graph_parameter(&g, "s0", row), graph_parameter(&g, "s1", row),
                         graph_parameter(&g, "s2", row)};
    uint32_t sequence = graph_sequence(&g, "s", members, 3);
    ValueId carried[] = {x, y};
    const ValueId *arguments, *results;
    assert_ok(graph_begin_repeat(&g, "loop", 3, carried, 2, &sequence, 1, &arguments));
    assert_true(
        status_discard(graph_begin_repeat(&g, "inner", 3, carried, 2, &sequence, 1, &arguments)));
    assert_ok(graph_add(&g, "loop/add", arguments[0], arguments[2], &sum));
    fails(graph_check(&g), "loop", "not ended");
    ValueId yields[] = {arguments[1], sum};
    assert_ok(graph_end_repeat(&g, yields, &results));
    assert_ok(graph_output(&g, "first", results[0]));
    assert_ok(graph_output(&g, "second", results[1]));
    assert_ok(graph_check(&g));
    const double a[] = {1, 2}, b[] = {100, 200}, s[] = {10, 10, 20, 20, 30, 30};
    Data data[] = {{"x", a}, {"y", b}, {"s0", s}, {"s1", s + 2}, {"s2", s + 4}, {NULL, NULL}};
    double *outputs[2];
    /* (x, y) -> (y, x + 10) -> (x + 10, y + 20) -> (y + 20, x + 40) */
    assert_ok(graph_evaluate(&g, find, data, outputs));
    close_to(outputs[0], (double[]){120, 220}, 2);
    close_to(outputs[1], (double[]){41, 42}, 2);
    free(outputs[0]);
    free(outputs[1]);
    data[3].name = "other";
    fails(graph_evaluate(&g, find, data, outputs), "s1", "no data");
    Text text = {0};
    graph_print(&text, &g, NULL);
    assert_non_null(strstr(text_string(&text), "repeat"));
    assert_non_null(strstr(text_string(&text), "carried from"));
    text_free(&text);
    json_t *json = graph_to_json(&g, NULL), *ops = json_object_get(json, "operations");
    json_t *body = json_object_get(json_array_get(ops, 0), "repeat");
    assert_int_equal(json_integer_value(json_object_get(body, "count")), 3);
    json_decref(json);
    graph_free(&g);
}

static void rules(void **state)
{
    (void)state;
    Shape row = {2, {1, 2}};
    Graph g = start();
    ValueId x = graph_input(&g, "x", row), y, z;
    fails(graph_check(&g), "graph", "output");
    assert_ok(graph_gelu(&g, "a", x, &y));
    assert_ok(graph_output(&g, "y", y));
    assert_ok(graph_check(&g));
    (void)graph_parameter(&g, "x", row);
    fails(graph_check(&g), "x", "two values");
    graph_free(&g);

    g = start();
    x = graph_input(&g, "x", row);
    assert_ok(graph_gelu(&g, "a", x, &y));
    assert_ok(graph_gelu(&g, "a", x, &z));
    assert_ok(graph_output(&g, "y", y));
    fails(graph_check(&g), "a", "key");
    graph_free(&g);

    g = start(); /* a body may not look outside */
    x = graph_input(&g, "x", row);
    const ValueId *arguments, *results;
    assert_ok(graph_begin_repeat(&g, "loop", 2, &x, 1, NULL, 0, &arguments));
    assert_ok(graph_add(&g, "loop/add", arguments[0], x, &y));
    assert_ok(graph_end_repeat(&g, &y, &results));
    assert_ok(graph_output(&g, "y", results[0]));
    fails(graph_check(&g), "loop/add", "not defined here");
    graph_free(&g);

    g = start(); /* carried values keep their shape */
    x = graph_input(&g, "x", row);
    ValueId w = graph_parameter(&g, "w", (Shape){2, {2, 3}});
    uint32_t sequence = graph_sequence(&g, "ws", (ValueId[]){w, w}, 2);
    assert_ok(graph_begin_repeat(&g, "loop", 2, &x, 1, &sequence, 1, &arguments));
    assert_ok(graph_gemm(&g, "loop/gemm", arguments[0], arguments[1], false, &y));
    assert_ok(graph_end_repeat(&g, &y, &results));
    assert_ok(graph_output(&g, "y", results[0]));
    fails(graph_check(&g), "loop", "changes its shape");
    graph_free(&g);

    g = start();
    x = graph_input(&g, "x", row);
    fails(graph_begin_repeat(&g, "loop", 0, &x, 1, NULL, 0, &arguments), "loop", "at least once");
    sequence = graph_sequence(&g, "xs", &x, 1);
    fails(graph_begin_repeat(&g, "loop", 2, &x, 1, &sequence, 1, &arguments), "loop", "1 members");
    graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),
        cmocka_unit_test(operations),
        cmocka_unit_test(repeats),
        cmocka_unit_test(rules),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
