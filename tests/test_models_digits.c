/* libraries: models */
/* The digits model: its graph, and its host evaluation against the FP32 reference of 256 digits. */
#include "check.h"

#include "models/models.h"

#include <math.h>
#include <string.h>

#define MODELS SOURCE_DIR "/models/"

typedef struct Fixture {
    Arena arena;
    Model model;
    Graph graph;
    Tensors weights, reference;
    double *data[64]; /* weights as doubles, by entry */
    const double *patches;
} Fixture;

static int set_up(void **state)
{
    Fixture *f = calloc(1, sizeof *f);
    *state = f;
    assert_ok(model_open(&f->arena, MODELS "digits-vit.json", &f->model));
    graph_init(&f->graph, &f->arena);
    assert_ok(model_graph(&f->model, &f->graph));
    assert_ok(tensors_open(MODELS "digits-vit/digits-vit.safetensors", &f->weights));
    assert_ok(tensors_open(MODELS "digits-vit/digits-reference.safetensors", &f->reference));
    assert_true(f->weights.count < 64);
    for (uint32_t i = 0; i < f->weights.count; i++) {
        uint64_t n = shape_elements(&f->weights.entries[i].shape);
        float *floats = malloc(n * sizeof *floats);
        assert_ok(tensor_floats(&f->weights.entries[i], floats));
        f->data[i] = malloc(n * sizeof(double));
        for (uint64_t k = 0; k < n; k++)
            f->data[i][k] = (double)floats[k];
        free(floats);
    }
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    for (uint32_t i = 0; i < 64; i++)
        free(f->data[i]);
    tensors_free(&f->weights);
    tensors_free(&f->reference);
    graph_free(&f->graph);
    arena_free(&f->arena);
    free(f);
    return 0;
}

static const double *find(void *context, const char *name)
{
    Fixture *f = context;
    if (strcmp(name, "vit.image.patches") == 0)
        return f->patches;
    const TensorEntry *entry = tensors_find(&f->weights, name);
    return entry ? f->data[entry - f->weights.entries] : NULL;
}

static float *reference(const Fixture *f, const char *name, uint64_t count)
{
    const TensorEntry *entry = tensors_find(&f->reference, name);
    assert_non_null(entry);
    assert_int_equal(shape_elements(&entry->shape), count);
    float *floats = malloc(count * sizeof *floats);
    assert_ok(tensor_floats(entry, floats));
    return floats;
}

static double difference(const double *got, const float *expected, uint32_t count)
{
    double largest = 0;
    for (uint32_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(got[i] - (double)expected[i]));
    return largest;
}

/* The answers were computed from pixels as the data set's package stores them, x/255 rounded to
 * three decimals; `patches` holds x/255 itself. That difference alone is 2e-3 in the embedding. */
static double as_answered(float patch_value)
{
    double pixel = rint(((double)patch_value * 0.5 + 0.5) * 255) / 255;
    return (rint(pixel * 1000) / 1000 - 0.5) / 0.5;
}

static void evaluate(Fixture *f, const float *patches, bool rounded, double *outputs[2])
{
    double input[4 * 588];
    for (uint32_t k = 0; k < countof(input); k++)
        input[k] = rounded ? as_answered(patches[k]) : (double)patches[k];
    f->patches = input;
    assert_ok(graph_evaluate(&f->graph, find, f, outputs));
}

static void all_reference_images(void **state)
{
    Fixture *f = *state;
    assert_ok(weights_check(&f->graph, &f->weights));
    assert_int_equal(f->graph.outputs.count, 2);
    assert_string_equal(f->graph.outputs.items[0].name, "embedding");
    assert_string_equal(f->graph.outputs.items[1].name, "logits");
    float *patches = reference(f, "patches", 256 * 4 * 588), *labels = reference(f, "label", 256);
    float *embeddings = reference(f, "embedding", 256 * 144);
    float *logits = reference(f, "logits", 256 * 10);
    double worst_embedding = 0, worst_logits = 0, worst_unrounded = 0;
    uint32_t correct = 0;
    for (uint32_t i = 0; i < 256; i++) {
        double *outputs[2];
        evaluate(f, patches + i * 4 * 588, true, outputs);
        worst_embedding = fmax(worst_embedding, difference(outputs[0], embeddings + i * 144, 144));
        worst_logits = fmax(worst_logits, difference(outputs[1], logits + i * 10, 10));
        free(outputs[0]);
        free(outputs[1]);
        evaluate(f, patches + i * 4 * 588, false, outputs);
        worst_unrounded = fmax(worst_unrounded, difference(outputs[0], embeddings + i * 144, 144));
        uint32_t best = 0;
        for (uint32_t c = 1; c < 10; c++)
            if (outputs[1][c] > outputs[1][best])
                best = c;
        correct += best == (uint32_t)labels[i];
        free(outputs[0]);
        free(outputs[1]);
    }
    print_message("largest errors: embedding %.2e, logits %.2e, from `patches` %.2e; %u correct\n",
                  worst_embedding, worst_logits, worst_unrounded, correct);
    assert_true(worst_embedding < 1e-5 && worst_logits < 1e-5); /* FP32 noise */
    assert_true(worst_unrounded < 1e-2);
    assert_int_equal(correct, 252);
    free(patches);
    free(labels);
    free(embeddings);
    free(logits);
}

/* The sixteen pictures: read, cut, and equal to the patches of the same digit in the reference. */
static void pictures(void **state)
{
    Fixture *f = *state;
    static const char *const names[] = {"00-8", "01-0", "02-2", "03-0", "04-8", "05-6",
                                        "06-9", "07-2", "08-5", "09-1", "10-4", "11-4",
                                        "12-0", "13-0", "14-3", "15-7"};
    static const uint32_t index[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 18, 23};
    float *patches = reference(f, "patches", 256 * 4 * 588), *labels = reference(f, "label", 256);
    float got[4 * 588];
    for (uint32_t i = 0; i < countof(names); i++) {
        char path[300];
        Picture picture;
        snprintf(path, sizeof path, MODELS "digits-vit/images/%s.png", names[i]);
        assert_ok(picture_read(path, &picture));
        assert_int_equal(picture.width, 28);
        assert_int_equal(picture.channels, 1);
        assert_ok(picture_patches(&picture, &f->model.preprocess, got));
        for (uint32_t k = 0; k < countof(got); k++)
            assert_true(fabsf(got[k] - patches[index[i] * countof(got) + k]) < 1e-6f);
        assert_int_equal(names[i][3] - '0', (int)labels[index[i]]);
        picture_free(&picture);
    }
    free(patches);
    free(labels);
}

/* Names and shapes of the original's graph, by a few that pin the structure. */
static void structure(void **state)
{
    Fixture *f = *state;
    const Graph *g = &f->graph;
    uint32_t parameters = 0, kinds[OP_REPEAT + 1] = {0};
    for (uint32_t i = 0; i < g->values.count; i++)
        parameters += g->values.items[i].kind == VALUE_PARAMETER;
    assert_int_equal(parameters, 54 + 2); /* the search state's, and the classifier's two */
    assert_int_equal(g->sequences.count, 12);
    assert_string_equal(g->sequences.items[2].name, "vit.encoder.attention.qkv.weight");
    for (uint32_t i = 0; i < g->operations.count; i++)
        kinds[g->operations.items[i].kind]++;
    assert_int_equal(g->operations.count, 46 + 2);
    assert_int_equal(kinds[OP_GEMM], 11);
    assert_int_equal(kinds[OP_VIEW], 8);
    assert_int_equal(kinds[OP_SLICE], 5);
    assert_int_equal(kinds[OP_ATTENTION], 2);
    assert_int_equal(kinds[OP_LAYER_NORM], 4);
    assert_int_equal(kinds[OP_GELU], 2);
    assert_int_equal(kinds[OP_REPEAT], 1);
    Text text = {0};
    graph_print(&text, g, NULL);
    assert_non_null(strstr(text_string(&text), "encoder/layer[*]/attention/qkv"));
    assert_non_null(strstr(text_string(&text), "map/mlp/up"));
    text_free(&text);
    json_t *json = graph_to_json(g, NULL);
    assert_int_equal(json_array_size(json_object_get(json, "values")), g->values.count);
    json_decref(json);
}

static void weights_refused(void **state)
{
    Fixture *f = *state;
    Tensors copy = f->weights;
    TensorEntry entries[64];
    memcpy(entries, copy.entries, copy.count * sizeof *entries);
    copy.entries = entries;
    copy.count--; /* head.bias is missing */
    Status status = weights_check(&f->graph, &copy);
    assert_non_null(strstr(status_message(status), "head.bias"));
    status_free(status);
    copy.count++;
    entries[0].name = "other";
    assert_true(status_discard(weights_check(&f->graph, &copy)));
    entries[0] = f->weights.entries[0];
    entries[1].shape.extent[2] = 143;
    assert_true(status_discard(weights_check(&f->graph, &copy)));
    entries[1] = f->weights.entries[1];
    uint8_t bad[144 * 4] = {0};
    memcpy(bad + 40, "\x00\x00\x80\x7f", 4); /* infinity */
    entries[1].data = bad;
    status = weights_check(&f->graph, &copy);
    assert_non_null(strstr(status_message(status), "element 10"));
    status_free(status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structure),
        cmocka_unit_test(all_reference_images),
        cmocka_unit_test(pictures),
        cmocka_unit_test(weights_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
