/* libraries: tile */
/* A vision transformer with the shapes of digits-vit, and what it is made of: layer norm, attention
 * with any number of queries, keys and heads, a repeat. */
#include "tile_interpreter.h"

static Shape shape2(uint32_t a, uint32_t b)
{
    return (Shape){.rank = 2, .extent = {a, b}};
}

static Shape shape3(uint32_t a, uint32_t b, uint32_t c)
{
    return (Shape){.rank = 3, .extent = {a, b, c}};
}

static TileRun measure(const Graph *graph, const char *name, uint32_t tiles, bool rewrite)
{
    PlanOptions options = {.tiles = tiles, .precision = {.kind = F16}};
    TileRun run = check_graph(graph, &options, rewrite, 0.02);
    print_message("%s on %u tiles: predicted %.0f, run %.0f, %u phases, error %.5f, plan %.3f s, "
                  "lower %.3f s, grouped %u merged %u removed %u\n",
                  name, tiles, run.predicted, run.cycles, run.phases, run.error, run.plan_seconds,
                  run.lower_seconds, run.grouped, run.merged, run.removed);
    return run;
}

static void attention(uint32_t heads, uint32_t queries, uint32_t keys, uint32_t d, uint32_t e,
                      uint32_t tiles)
{
    Arena arena = {0};
    Graph graph;
    ValueId y;
    graph_init(&graph, &arena);
    ValueId q = graph_input(&graph, "q", shape3(heads, queries, d));
    ValueId k = graph_input(&graph, "k", shape3(heads, keys, d));
    ValueId v = graph_input(&graph, "v", shape3(heads, keys, e));
    assert_ok(graph_attention(&graph, "attention", q, k, v, 1.0f / sqrtf((float)d), &y));
    assert_ok(graph_output(&graph, "y", y));
    char name[80];
    snprintf(name, sizeof name, "attention %u x %u x %u, %u -> %u", heads, queries, keys, d, e);
    measure(&graph, name, tiles, true);
    graph_free(&graph);
    arena_free(&arena);
}

static void attentions(void **state)
{
    (void)state;
    attention(2, 4, 4, 72, 72, 64);
    attention(2, 1, 4, 72, 72, 64);
    attention(16, 1, 729, 72, 72, 64);
    attention(4, 33, 50, 24, 40, 1);
    attention(6, 5, 17, 16, 12, 4);
    attention(3, 7, 100, 64, 8, 200);
}

static void layer_norms(void **state)
{
    (void)state;
    static const uint32_t cases[][3] = {{4, 144, 64}, {7, 48, 3}, {1, 576, 1}, {200, 64, 17}};
    for (size_t i = 0; i < countof(cases); i++) {
        Arena arena = {0};
        Graph graph;
        ValueId y;
        graph_init(&graph, &arena);
        ValueId x = graph_input(&graph, "x", shape3(1, cases[i][0], cases[i][1]));
        ValueId scale = graph_parameter(&graph, "scale", shape3(1, 1, cases[i][1]));
        ValueId bias = graph_parameter(&graph, "bias", shape3(1, 1, cases[i][1]));
        assert_ok(graph_layer_norm(&graph, "norm", x, scale, bias, 1e-6f, &y));
        assert_ok(graph_output(&graph, "y", y));
        measure(&graph, "layer norm", cases[i][2], true);
        graph_free(&graph);
        arena_free(&arena);
    }
}

/* ---- the transformer ---- */

typedef struct Vit {
    Graph graph;
    uint32_t tokens, patch, width, heads, mlp, layers, classes;
    const char *prefix; /* of the keys */
} Vit;

static const char *key_of(Vit *v, const char *key)
{
    return arena_printf(v->graph.arena, "%s/%s", v->prefix, key);
}

static ValueId parameter(Vit *v, const char *name, Shape shape)
{
    return graph_parameter(&v->graph, arena_strdup(v->graph.arena, name), shape);
}

static ValueId gemm(Vit *v, const char *key, ValueId x, ValueId w)
{
    ValueId y;
    assert_ok(graph_gemm(&v->graph, key_of(v, key), x, w, false, &y));
    return y;
}

static ValueId add(Vit *v, const char *key, ValueId a, ValueId b)
{
    ValueId y;
    assert_ok(graph_add(&v->graph, key_of(v, key), a, b, &y));
    return y;
}

static ValueId norm(Vit *v, const char *key, ValueId x, ValueId scale, ValueId bias)
{
    ValueId y;
    assert_ok(graph_layer_norm(&v->graph, key_of(v, key), x, scale, bias, 1e-6f, &y));
    return y;
}

static ValueId heads_of(Vit *v, const char *key, ValueId x)
{
    ValueId y;
    assert_ok(graph_view(&v->graph, key_of(v, key), x, 2, 0, v->heads, false, &y));
    return y;
}

static ValueId part(Vit *v, const char *key, ValueId x, uint32_t index)
{
    ValueId y;
    assert_ok(graph_slice(&v->graph, key_of(v, key), x, 2, index * v->width, v->width, &y));
    return y;
}

static ValueId mlp(Vit *v, ValueId x, const ValueId *p)
{
    ValueId y = add(v, "mlp/up_bias", gemm(v, "mlp/up", x, p[0]), p[1]);
    assert_ok(graph_gelu(&v->graph, key_of(v, "mlp/gelu"), y, &y));
    return add(v, "mlp/down_bias", gemm(v, "mlp/down", y, p[2]), p[3]);
}

static ValueId attend(Vit *v, ValueId q, ValueId k, ValueId v_)
{
    ValueId y;
    float scale = 1.0f / sqrtf((float)v->width / (float)v->heads);
    q = heads_of(v, "attention/q", q);
    k = heads_of(v, "attention/k", k);
    v_ = heads_of(v, "attention/v", v_);
    assert_ok(graph_attention(&v->graph, key_of(v, "attention"), q, k, v_, scale, &y));
    assert_ok(graph_view(&v->graph, key_of(v, "attention/join"), y, 2, 0, v->heads, true, &y));
    return y;
}

/* p: norm scale and bias, qkv, output, norm, up, down: weight and bias each. */
static ValueId layer(Vit *v, ValueId x, const ValueId *p)
{
    ValueId y = norm(v, "attention_norm", x, p[0], p[1]);
    y = add(v, "qkv_bias", gemm(v, "qkv", y, p[2]), p[3]);
    y = attend(v, part(v, "q", y, 0), part(v, "k", y, 1), part(v, "v", y, 2));
    x = add(v, "attention/residual", x,
            add(v, "attention/output_bias", gemm(v, "attention/output", y, p[4]), p[5]));
    y = norm(v, "mlp_norm", x, p[6], p[7]);
    return add(v, "mlp/residual", x, mlp(v, y, p + 8));
}

static void layer_shapes(const Vit *v, Shape shapes[12])
{
    uint32_t w = v->width;
    Shape row = shape3(1, 1, w);
    Shape all[12] = {row, row, shape2(w, 3 * w),  shape3(1, 1, 3 * w),  shape2(w, w),      row,
                     row, row, shape2(w, v->mlp), shape3(1, 1, v->mlp), shape2(v->mlp, w), row};
    memcpy(shapes, all, sizeof all);
}

static ValueId layers(Vit *v, ValueId x)
{
    static const char *const names[12] = {"n1.scale", "n1.bias",  "qkv",      "qkv.bias",
                                          "out",      "out.bias", "n2.scale", "n2.bias",
                                          "up",       "up.bias",  "down",     "down.bias"};
    Shape shapes[12];
    uint32_t sequences[12];
    layer_shapes(v, shapes);
    for (uint32_t s = 0; s < 12; s++) {
        ValueId members[32];
        char name[60];
        for (uint32_t i = 0; i < v->layers; i++) {
            snprintf(name, sizeof name, "layer%u.%s", i, names[s]);
            members[i] = parameter(v, name, shapes[s]);
        }
        sequences[s] = graph_sequence(&v->graph, names[s], members, v->layers);
    }
    const ValueId *arguments, *results;
    assert_ok(
        graph_begin_repeat(&v->graph, "encoder", v->layers, &x, 1, sequences, 12, &arguments));
    ValueId y = layer(v, arguments[0], arguments + 1);
    assert_ok(graph_end_repeat(&v->graph, &y, &results));
    return results[0];
}

static void make_vit(Vit *v, Arena *arena)
{
    uint32_t w = v->width;
    Shape row = shape3(1, 1, w);
    ValueId p[4];
    graph_init(&v->graph, arena);
    v->prefix = "vit";
    ValueId x = graph_input(&v->graph, "patches", shape3(1, v->tokens, v->patch));
    x = gemm(v, "embedding", x, parameter(v, "embedding", shape2(v->patch, w)));
    x = add(v, "embedding_bias", x, parameter(v, "embedding.bias", row));
    x = add(v, "position", x, parameter(v, "position", shape3(1, v->tokens, w)));
    v->prefix = "layer[*]";
    x = layers(v, x);
    v->prefix = "head";
    x = norm(v, "post_norm", x, parameter(v, "post.scale", row), parameter(v, "post.bias", row));
    ValueId probe = parameter(v, "probe", row);
    ValueId q = add(v, "q_bias", gemm(v, "q", probe, parameter(v, "hq", shape2(w, w))),
                    parameter(v, "hq.bias", row));
    ValueId kv = add(v, "kv_bias", gemm(v, "kv", x, parameter(v, "hkv", shape2(w, 2 * w))),
                     parameter(v, "hkv.bias", shape3(1, 1, 2 * w)));
    ValueId y = attend(v, q, part(v, "k", kv, 0), part(v, "v", kv, 1));
    y = add(v, "output_bias", gemm(v, "output", y, parameter(v, "ho", shape2(w, w))),
            parameter(v, "ho.bias", row));
    p[0] = parameter(v, "head.up", shape2(w, v->mlp));
    p[1] = parameter(v, "head.up.bias", shape3(1, 1, v->mlp));
    p[2] = parameter(v, "head.down", shape2(v->mlp, w));
    p[3] = parameter(v, "head.down.bias", row);
    ValueId z = norm(v, "norm", y, parameter(v, "hn.scale", row), parameter(v, "hn.bias", row));
    y = add(v, "residual", y, mlp(v, z, p));
    assert_ok(graph_output(&v->graph, "embedding", y));
    y = add(v, "classifier_bias",
            gemm(v, "classifier", y, parameter(v, "classifier", shape2(w, v->classes))),
            parameter(v, "classifier.bias", shape3(1, 1, v->classes)));
    assert_ok(graph_output(&v->graph, "logits", y));
    assert_ok(graph_check(&v->graph));
}

static void print_recipe(const Graph *graph, uint32_t tiles)
{
    Arena arena = {0};
    Recipe *recipes;
    uint32_t count;
    Text text = {0};
    PlanOptions options = {.tiles = tiles, .precision = {.kind = F16}};
    assert_ok(plan_search(&arena, graph, &options, NULL, &recipes, &count));
    recipe_print(&text, graph, &recipes[0], NULL);
    fputs(text_string(&text), stdout);
    text_free(&text);
    arena_free(&arena);
}

static void digits(void **state)
{
    (void)state;
    static const uint32_t tiles[] = {64, 16, 5, 128, 1472};
    Arena arena = {0};
    Vit v = {.tokens = 4,
             .patch = 588,
             .width = 144,
             .heads = 2,
             .mlp = 288,
             .layers = 3,
             .classes = 10};
    make_vit(&v, &arena);
    if (getenv("PRINT_RECIPE"))
        print_recipe(&v.graph, 64);
    measure(&v.graph, "digits", 64, false);
    for (size_t i = 0; i < countof(tiles); i++)
        measure(&v.graph, "digits", tiles[i], true);
    graph_free(&v.graph);
    arena_free(&arena);
}

static void other_vit(void **state)
{
    (void)state;
    Arena arena = {0};
    Vit v = {.tokens = 37,
             .patch = 100,
             .width = 96,
             .heads = 4,
             .mlp = 200,
             .layers = 2,
             .classes = 17};
    make_vit(&v, &arena);
    measure(&v.graph, "37 tokens", 3, true);
    measure(&v.graph, "37 tokens", 100, true);
    measure(&v.graph, "37 tokens", 1000, true);
    graph_free(&v.graph);
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(layer_norms), cmocka_unit_test(attentions),
                                       cmocka_unit_test(digits), cmocka_unit_test(other_vit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
