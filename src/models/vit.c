/* vit.c - the graph of a vision transformer: patch projection, encoder layers in a repeat, MAP
 * pooling head, classifier. Names of parameters and the order of everything are those of the
 * original system's search state for this model, so that recipes and figures can be compared. */
#include "models/internal.h"

#include <math.h>
#include <string.h>

typedef struct Builder {
    Graph *graph;
    const Model *model;
    Status status; /* the first error; later calls do nothing */
    char key[128]; /* of the part being built */
} Builder;

/* One parameter per layer, iterated by the encoder. */
typedef enum LayerParameter {
    ATTENTION_NORM_SCALE,
    ATTENTION_NORM_BIAS,
    QKV_WEIGHT,
    QKV_BIAS,
    OUTPUT_WEIGHT,
    OUTPUT_BIAS,
    MLP_NORM_SCALE,
    MLP_NORM_BIAS,
    UP_WEIGHT,
    UP_BIAS,
    DOWN_WEIGHT,
    DOWN_BIAS,
    LAYER_PARAMETERS
} LayerParameter;

static Shape matrix(uint32_t rows, uint32_t columns)
{
    return (Shape){2, {rows, columns}};
}

static Shape row(uint32_t columns)
{
    return (Shape){3, {1, 1, columns}};
}

static bool failed(Builder *b, Status status)
{
    if (!status_ok(status))
        b->status = status;
    return !status_ok(b->status);
}

static const char *key_of(Builder *b, char *buffer, size_t bytes, const char *name)
{
    snprintf(buffer, bytes, "%s/%s", b->key, name);
    return buffer;
}

static ValueId parameter(Builder *b, const char *prefix, const char *name, Shape shape)
{
    char full[160];
    snprintf(full, sizeof full, "%s.%s", prefix, name);
    return graph_parameter(b->graph, full, shape);
}

/* x weight + bias, keys NAME and NAME/bias. */
static ValueId linear(Builder *b, const char *name, ValueId x, ValueId weight, ValueId bias)
{
    ValueId product = NO_VALUE, sum = NO_VALUE;
    char key[192];
    if (!status_ok(b->status) || failed(b, graph_gemm(b->graph, key_of(b, key, sizeof key, name), x,
                                                      weight, false, &product)))
        return NO_VALUE;
    size_t length = strlen(key);
    snprintf(key + length, sizeof key - length, "/bias");
    (void)failed(b, graph_add(b->graph, key, product, bias, &sum));
    return sum;
}

static ValueId add(Builder *b, const char *name, ValueId x, ValueId y)
{
    ValueId sum = NO_VALUE;
    char key[192];
    if (status_ok(b->status))
        (void)failed(b, graph_add(b->graph, key_of(b, key, sizeof key, name), x, y, &sum));
    return sum;
}

static ValueId norm(Builder *b, const char *name, ValueId x, ValueId scale, ValueId bias)
{
    ValueId out = NO_VALUE;
    char key[192];
    if (status_ok(b->status))
        (void)failed(b, graph_layer_norm(b->graph, key_of(b, key, sizeof key, name), x, scale, bias,
                                         b->model->epsilon, &out));
    return out;
}

/* GELU(x up) down */
static ValueId mlp(Builder *b, ValueId x, ValueId up, ValueId up_bias, ValueId down,
                   ValueId down_bias)
{
    char key[192];
    ValueId hidden = linear(b, "up", x, up, up_bias), active = NO_VALUE;
    if (status_ok(b->status))
        (void)failed(b, graph_gelu(b->graph, key_of(b, key, sizeof key, "gelu"), hidden, &active));
    return linear(b, "down", active, down, down_bias);
}

/* Columns [part * width, ...) of a fused product. */
static ValueId slice(Builder *b, const char *name, ValueId x, uint32_t part)
{
    ValueId out = NO_VALUE;
    char key[192];
    uint32_t width = b->model->width;
    if (status_ok(b->status))
        (void)failed(b, graph_slice(b->graph, key_of(b, key, sizeof key, name), x, 2, part * width,
                                    width, &out));
    return out;
}

/* [1, t, width] <-> [heads, t, width / heads] */
static ValueId heads(Builder *b, const char *name, ValueId x, bool join)
{
    ValueId out = NO_VALUE;
    char key[192];
    if (status_ok(b->status))
        (void)failed(b, graph_view(b->graph, key_of(b, key, sizeof key, name), x, 2, 0,
                                   b->model->heads, join, &out));
    return out;
}

/* Split views are made q, k, v after the slices, as the original orders them. */
static ValueId attend(Builder *b, ValueId q, ValueId k, ValueId v)
{
    ValueId out = NO_VALUE;
    char key[192];
    q = heads(b, "query/heads", q, false);
    k = heads(b, "key/heads", k, false);
    v = heads(b, "value/heads", v, false);
    float scale = (float)(1 / sqrt((double)(b->model->width / b->model->heads)));
    if (status_ok(b->status))
        (void)failed(b, graph_attention(b->graph, key_of(b, key, sizeof key, "softmax"), q, k, v,
                                        scale, &out));
    return heads(b, "join", out, true);
}

static void layer_sequences(Builder *b, uint32_t *sequences)
{
    const uint32_t width = b->model->width, hidden = b->model->mlp;
    const struct {
        const char *name;
        Shape shape;
    } parameters[LAYER_PARAMETERS] = {
        [ATTENTION_NORM_SCALE] = {"attention_norm.scale", row(width)},
        [ATTENTION_NORM_BIAS] = {"attention_norm.bias", row(width)},
        [QKV_WEIGHT] = {"attention.qkv.weight", matrix(width, 3 * width)},
        [QKV_BIAS] = {"attention.qkv.bias", row(3 * width)},
        [OUTPUT_WEIGHT] = {"attention.output.weight", matrix(width, width)},
        [OUTPUT_BIAS] = {"attention.output.bias", row(width)},
        [MLP_NORM_SCALE] = {"mlp_norm.scale", row(width)},
        [MLP_NORM_BIAS] = {"mlp_norm.bias", row(width)},
        [UP_WEIGHT] = {"mlp.up.weight", matrix(width, hidden)},
        [UP_BIAS] = {"mlp.up.bias", row(hidden)},
        [DOWN_WEIGHT] = {"mlp.down.weight", matrix(hidden, width)},
        [DOWN_BIAS] = {"mlp.down.bias", row(width)},
    };
    ValueId *members = arena_array(b->graph->arena, ValueId, b->model->layers);
    for (uint32_t p = 0; p < LAYER_PARAMETERS; p++) {
        char prefix[64], name[96];
        for (uint32_t l = 0; l < b->model->layers; l++) {
            snprintf(prefix, sizeof prefix, "vit.encoder.layer%u", l);
            members[l] = parameter(b, prefix, parameters[p].name, parameters[p].shape);
        }
        snprintf(name, sizeof name, "vit.encoder.%s", parameters[p].name);
        sequences[p] = graph_sequence(b->graph, name, members, b->model->layers);
    }
}

static ValueId encoder(Builder *b, ValueId x)
{
    uint32_t sequences[LAYER_PARAMETERS];
    layer_sequences(b, sequences);
    const ValueId *arguments, *results;
    if (!status_ok(b->status) ||
        failed(b, graph_begin_repeat(b->graph, "encoder", b->model->layers, &x, 1, sequences,
                                     LAYER_PARAMETERS, &arguments)))
        return NO_VALUE;
    const ValueId *p = arguments + 1;
    ValueId in = arguments[0];
    snprintf(b->key, sizeof b->key, "encoder/layer[*]/attention");
    ValueId normed = norm(b, "norm", in, p[ATTENTION_NORM_SCALE], p[ATTENTION_NORM_BIAS]);
    ValueId qkv = linear(b, "qkv", normed, p[QKV_WEIGHT], p[QKV_BIAS]);
    ValueId q = slice(b, "query", qkv, 0), k = slice(b, "key", qkv, 1);
    ValueId v = slice(b, "value", qkv, 2);
    ValueId attended = attend(b, q, k, v);
    ValueId out = linear(b, "output", attended, p[OUTPUT_WEIGHT], p[OUTPUT_BIAS]);
    ValueId middle = add(b, "residual", in, out);
    snprintf(b->key, sizeof b->key, "encoder/layer[*]/mlp");
    normed = norm(b, "norm", middle, p[MLP_NORM_SCALE], p[MLP_NORM_BIAS]);
    out = mlp(b, normed, p[UP_WEIGHT], p[UP_BIAS], p[DOWN_WEIGHT], p[DOWN_BIAS]);
    ValueId last = add(b, "residual", middle, out);
    if (!status_ok(b->status) || failed(b, graph_end_repeat(b->graph, &last, &results)))
        return NO_VALUE;
    return results[0];
}

/* One learned probe attends to the tokens; layer norm and MLP with residual. */
static ValueId map_head(Builder *b, ValueId tokens)
{
    const uint32_t width = b->model->width, hidden = b->model->mlp;
    ValueId probe = parameter(b, "vit.map", "probe", row(width));
    ValueId kv_weight = parameter(b, "vit.map", "attention.kv.weight", matrix(width, 2 * width));
    ValueId kv_bias = parameter(b, "vit.map", "attention.kv.bias", row(2 * width));
    snprintf(b->key, sizeof b->key, "map/attention");
    ValueId kv = linear(b, "kv", tokens, kv_weight, kv_bias);
    ValueId q_weight = parameter(b, "vit.map", "attention.query.weight", matrix(width, width));
    ValueId q_bias = parameter(b, "vit.map", "attention.query.bias", row(width));
    ValueId query = linear(b, "query", probe, q_weight, q_bias);
    ValueId k = slice(b, "key", kv, 0), v = slice(b, "value", kv, 1);
    ValueId attended = attend(b, query, k, v);
    ValueId out_weight = parameter(b, "vit.map", "attention.output.weight", matrix(width, width));
    ValueId out_bias = parameter(b, "vit.map", "attention.output.bias", row(width));
    ValueId pooled = linear(b, "output", attended, out_weight, out_bias);
    ValueId scale = parameter(b, "vit.map", "norm.scale", row(width));
    ValueId bias = parameter(b, "vit.map", "norm.bias", row(width));
    snprintf(b->key, sizeof b->key, "map");
    ValueId normed = norm(b, "norm", pooled, scale, bias);
    ValueId up = parameter(b, "vit.map", "mlp.up.weight", matrix(width, hidden));
    ValueId up_bias = parameter(b, "vit.map", "mlp.up.bias", row(hidden));
    ValueId down = parameter(b, "vit.map", "mlp.down.weight", matrix(hidden, width));
    ValueId down_bias = parameter(b, "vit.map", "mlp.down.bias", row(width));
    snprintf(b->key, sizeof b->key, "map/mlp");
    ValueId out = mlp(b, normed, up, up_bias, down, down_bias);
    return add(b, "residual", pooled, out);
}

static void classifier(Builder *b, ValueId embedding)
{
    ValueId weight = parameter(b, "head", "weight", matrix(b->model->width, b->model->classes));
    ValueId bias = parameter(b, "head", "bias", row(b->model->classes));
    snprintf(b->key, sizeof b->key, "head");
    ValueId logits = linear(b, "logits", embedding, weight, bias);
    if (status_ok(b->status))
        (void)failed(b, graph_output(b->graph, "logits", logits));
}

Status vit_graph(const Model *model, Graph *out)
{
    Builder b = {.graph = out, .model = model};
    const uint32_t width = model->width;
    const uint32_t values = model->patch * model->patch * model->channels;
    Shape patches = {3, {model->batch, model->tokens, values}};
    ValueId x = graph_input(out, "vit.image.patches", patches);
    ValueId weight = parameter(&b, "vit.embedding", "weight", matrix(values, width));
    ValueId bias = parameter(&b, "vit.embedding", "bias", row(width));
    ValueId position = parameter(&b, "vit", "position", (Shape){3, {1, model->tokens, width}});
    snprintf(b.key, sizeof b.key, "embedding");
    x = linear(&b, "project", x, weight, bias);
    x = add(&b, "position", x, position);
    x = encoder(&b, x);
    ValueId scale = parameter(&b, "vit.encoder", "final_norm.scale", row(width));
    ValueId shift = parameter(&b, "vit.encoder", "final_norm.bias", row(width));
    snprintf(b.key, sizeof b.key, "encoder");
    x = norm(&b, "norm", x, scale, shift);
    if (model->map_head)
        x = map_head(&b, x);
    if (status_ok(b.status))
        (void)failed(&b, graph_output(out, model->map_head ? "embedding" : "tokens", x));
    if (model->classes)
        classifier(&b, x);
    TRY(b.status);
    return graph_check(out);
}
