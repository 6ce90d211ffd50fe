/* libraries: models */
/* safetensors, .npy, PNG, JPEG and model descriptions: good ones, bad ones, damaged ones. */
#include "check.h"

#include "hostile.h"
#include "models/models.h"

#include <jpeglib.h>
#include <math.h>
#include <png.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/ipu-models-XXXXXX";

static const char *file(const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    static const char *const names[] = {"t.safetensors", "t.npy", "t.png", "t.jpg", "t.json"};
    for (uint32_t i = 0; i < countof(names); i++)
        unlink(file(names[i]));
    return rmdir(folder);
}

/* ---- safetensors ---- */

static Status open_tensors(const char *header, uint64_t length, const void *data, size_t bytes,
                           Tensors *out)
{
    Text text = {0};
    array_append(&text, (const char *)&length, 8);
    array_append(&text, header, strlen(header));
    array_append(&text, (const char *)data, bytes);
    assert_ok(file_write(file("t.safetensors"), text.items, text.count));
    text_free(&text);
    return tensors_open(file("t.safetensors"), out);
}

static void tensors_refused(const char *header, const char *message)
{
    Tensors tensors;
    uint8_t data[64] = {0};
    Status status = open_tensors(header, strlen(header), data, sizeof data, &tensors);
    if (!strstr(status_message(status), message))
        fail_msg("\"%s\" gave \"%s\"", header, status_message(status));
    assert_non_null(strstr(status_message(status), "t.safetensors"));
    status_free(status);
}

static void safetensors(void **state)
{
    (void)state;
    Tensors tensors;
    float out[4];
    const uint16_t halves[] = {0x3c00, 0xc000, 0x3f80, 0x4040}; /* F16 1, -2; BF16 1, 3 */
    const char *good = "{\"__metadata__\":{\"a\":\"b\"},"
                       "\"h\":{\"dtype\":\"F16\",\"shape\":[1,2],\"data_offsets\":[0,4]},"
                       "\"b\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[4,8]},"
                       "\"e\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[8,8]}}";
    assert_ok(open_tensors(good, strlen(good), halves, sizeof halves, &tensors));
    assert_int_equal(tensors.count, 3);
    assert_null(tensors_find(&tensors, "__metadata__"));
    assert_ok(tensor_floats(tensors_find(&tensors, "h"), out));
    assert_true(out[0] == 1 && out[1] == -2);
    assert_ok(tensor_floats(tensors_find(&tensors, "b"), out));
    assert_true(out[0] == 1 && out[1] == 3);
    tensors_free(&tensors);
    assert_true(status_discard(open_tensors(good, 1ull << 60, halves, 8, &tensors)));
    assert_true(status_discard(open_tensors(good, strlen(good) + 100, halves, 8, &tensors)));
    assert_true(status_discard(open_tensors("", 0, halves, 0, &tensors)));

#define ONE(dtype, shape, offsets)                                                                 \
    "{\"t\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
    tensors_refused(ONE("F31", "[16]", "[0,64]"), "unknown dtype");
    tensors_refused(ONE("F32", "[16]", "[0,65]"), "outside");
    tensors_refused(ONE("F32", "[16]", "[64,0]"), "ends before");
    tensors_refused(ONE("F32", "[15]", "[0,64]"), "64 bytes");
    tensors_refused(ONE("F32", "[-1]", "[0,64]"), "extent");
    tensors_refused(ONE("F32", "[4294967295,4294967295,4294967295]", "[0,64]"), "64 bytes");
    tensors_refused(ONE("F32", "[4294967296]", "[0,64]"), "extent");
    tensors_refused(ONE("F32", "[1,1,1,1,1,1,1,1]", "[0,64]"), "rank 8");
    tensors_refused(ONE("F32", "[15]", "[4,64]"), "away from");
    tensors_refused(ONE("F32", "[15]", "[0,60]"), "follow the last");
    tensors_refused(ONE("F32", "[16]", "[0,64,64]"), "two items");
    tensors_refused(ONE("F32", "16", "[0,64]"), "array");
    tensors_refused("{\"t\":7}", "t");
    tensors_refused("[]", "object");
    tensors_refused("{\"t\"", "t.safetensors");
    tensors_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[8],\"data_offsets\":[0,32]},"
                    "\"b\":{\"dtype\":\"F32\",\"shape\":[9],\"data_offsets\":[28,64]}}",
                    "inside");
    tensors_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[8],\"data_offsets\":[0,32]},"
                    "\"a\":{\"dtype\":\"F32\",\"shape\":[8],\"data_offsets\":[32,64]}}",
                    "duplicate");
    assert_true(status_discard(tensors_open(file("none"), &tensors)));
}

/* Reads everything that opens, so that the sanitizers see what is reachable. */
static void use_tensors(const char *path)
{
    Tensors tensors;
    if (status_discard(tensors_open(path, &tensors)))
        return;
    for (uint32_t i = 0; i < tensors.count; i++) {
        float *out = malloc((shape_elements(&tensors.entries[i].shape) + 1) * sizeof *out);
        (void)status_discard(tensor_floats(&tensors.entries[i], out));
        free(out);
    }
    tensors_free(&tensors);
}

/* ---- npy ---- */

static void use_npy(const char *path)
{
    Arena arena = {0};
    Shape shape;
    float *out, sum = 0;
    if (!status_discard(npy_read(path, &arena, &shape, &out)))
        for (uint64_t i = 0; i < shape_elements(&shape); i++)
            sum += out[i];
    assert_false(isnan(sum) && sum == 0);
    arena_free(&arena);
}

static Status read_npy(const char *header, size_t header_length, const void *data, size_t bytes)
{
    Text text = {0};
    uint16_t length = (uint16_t)header_length;
    array_append(&text, "\x93NUMPY\x01\x00", 8);
    array_append(&text, (const char *)&length, 2);
    array_append(&text, header, strlen(header));
    array_append(&text, (const char *)data, bytes);
    assert_ok(file_write(file("t.npy"), text.items, text.count));
    text_free(&text);
    Arena arena = {0};
    Shape shape;
    float *out;
    Status status = npy_read(file("t.npy"), &arena, &shape, &out);
    arena_free(&arena);
    return status;
}

static void npy(void **state)
{
    (void)state;
    Arena arena = {0};
    Shape shapes[] = {{1, {5}}, {2, {2, 3}}, {6, {1, 2, 1, 3, 1, 1}}}, back;
    float data[6] = {1, -2.5f, 3e-20f, 4, 5e30f, 6}, *out;
    for (uint32_t i = 0; i < countof(shapes); i++) {
        assert_ok(npy_write(file("t.npy"), &shapes[i], data));
        assert_ok(npy_read(file("t.npy"), &arena, &back, &out));
        assert_true(shape_equal(&back, &shapes[i]));
        assert_memory_equal(out, data, shape_elements(&back) * sizeof *out);
    }
    arena_free(&arena);
#define DICT(descr, order, shape)                                                                  \
    "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }\n"
#define READ(text, bytes) read_npy(text, strlen(text), data, bytes)
    assert_ok(READ(DICT("<f4", "False", "(6,)"), 24));
    assert_ok(READ(DICT("<f2", "False", "(2, 2)"), 8));
    assert_ok(READ(DICT("|u1", "False", "(3,)"), 3));
    assert_ok(READ(DICT("<i4", "False", "()"), 4));
    assert_true(status_discard(READ(DICT("<f4", "True", "(6,)"), 24)));
    assert_true(status_discard(READ(DICT(">f4", "False", "(6,)"), 24)));
    assert_true(status_discard(READ(DICT("<f4", "False", "(6,)"), 20)));
    assert_true(status_discard(READ(DICT("<f4", "False", "(5,)"), 24)));
    assert_true(status_discard(READ(DICT("<f4", "False", "(6"), 24)));
    assert_true(status_discard(READ(DICT("<f4", "False", "(4294967295, 4294967295, 9)"), 24)));
    assert_true(status_discard(READ(DICT("<f4", "False", "(99999999999999999999)"), 24)));
    assert_true(status_discard(READ("{'descr': '", 24)));
    assert_true(status_discard(READ("", 0)));
    assert_true(status_discard(read_npy("{}", 60000, data, 4)));
}

/* ---- pictures ---- */

static void write_jpeg(const char *path, uint32_t width, uint32_t height, uint32_t channels)
{
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr errors;
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    jpeg_stdio_dest(&info, stream);
    info.image_width = width;
    info.image_height = height;
    info.input_components = (int)channels;
    info.in_color_space = channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, 95, TRUE);
    jpeg_start_compress(&info, TRUE);
    uint8_t *row = malloc((size_t)width * channels);
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t i = 0; i < width * channels; i++)
            row[i] = (uint8_t)(channels == 3 ? (i % 3 == 0 ? 200 : 50) : 16 * y % 256);
        jpeg_write_scanlines(&info, &row, 1);
    }
    free(row);
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    fclose(stream);
}

static void use_picture(const char *path)
{
    Picture picture;
    Preprocess p = {.image = 8, .patch = 4, .channels = 3, .deviation = 1};
    float patches[4 * 48];
    if (status_discard(picture_read(path, &picture)))
        return;
    assert_ok(picture_patches(&picture, &p, patches));
    picture_free(&picture);
}

static void jpeg(void **state)
{
    (void)state;
    Picture picture;
    write_jpeg(file("t.jpg"), 20, 12, 3);
    assert_ok(picture_read(file("t.jpg"), &picture));
    assert_true(picture.width == 20 && picture.height == 12 && picture.channels == 3);
    assert_in_range(picture.pixels[0], 195, 205);
    assert_in_range(picture.pixels[1], 45, 55);
    picture_free(&picture);
    write_jpeg(file("t.jpg"), 16, 16, 1);
    assert_ok(picture_read(file("t.jpg"), &picture));
    assert_int_equal(picture.channels, 1);
    picture_free(&picture);
    Bytes bytes;
    assert_ok(file_read(file("t.jpg"), 1 << 20, &bytes));
    assert_ok(file_write(file("t.jpg"), bytes.data, bytes.count / 2));
    Status status = picture_read(file("t.jpg"), &picture); /* libjpeg only warns: we refuse */
    assert_non_null(strstr(status_message(status), "t.jpg"));
    status_free(status);
    bytes_free(&bytes);
    assert_ok(file_write(file("t.jpg"), "GIF89a", 6));
    assert_true(status_discard(picture_read(file("t.jpg"), &picture)));
}

static void read_png(uint32_t format, const uint8_t *pixels, Picture *out)
{
    png_image image = {.version = PNG_IMAGE_VERSION, .width = 3, .height = 1, .format = format};
    assert_true(png_image_write_to_file(&image, file("t.png"), 0, pixels, 0, NULL));
    assert_ok(picture_read(file("t.png"), out));
    assert_true(out->width == 3 && out->height == 1);
}

/* What is transparent shows white paper; what is opaque stays as it is. */
static void transparency(void **state)
{
    (void)state;
    static const uint8_t rgba[] = {10, 20, 30, 0, 10, 20, 30, 255, 0, 0, 0, 128};
    static const uint8_t grey[] = {10, 0, 10, 255, 0, 128};
    static const uint8_t rgb[] = {10, 20, 30, 1, 2, 3, 255, 0, 255};
    Picture p;
    read_png(PNG_FORMAT_RGBA, rgba, &p);
    assert_int_equal(p.channels, 3);
    for (int c = 0; c < 3; c++) {
        assert_int_equal(p.pixels[c], 255);
        assert_int_equal(p.pixels[3 + c], rgba[4 + c]);
        assert_in_range(p.pixels[6 + c], 120, 200); /* between, in linear light */
    }
    picture_free(&p);
    read_png(PNG_FORMAT_GA, grey, &p);
    assert_int_equal(p.channels, 1);
    assert_true(p.pixels[0] == 255 && p.pixels[1] == 10 && p.pixels[2] > 120 && p.pixels[2] < 200);
    picture_free(&p);
    read_png(PNG_FORMAT_RGB, rgb, &p);
    assert_memory_equal(p.pixels, rgb, sizeof rgb);
    picture_free(&p);
}

static void resizing(void **state)
{
    (void)state;
    uint8_t grey[4 * 4], colour[2 * 2 * 3] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255};
    for (uint32_t i = 0; i < 16; i++)
        grey[i] = (uint8_t)(i * 10);
    Picture small = {4, 4, 1, grey}, rgb = {2, 2, 3, colour};
    float out[4 * 4 * 3];
    Preprocess half = {.image = 2, .patch = 1, .channels = 1, .mean = 0, .deviation = 1.0f / 255};
    assert_ok(picture_patches(&small, &half, out)); /* 2 x 2 areas */
    for (uint32_t i = 0; i < 4; i++)
        assert_true(fabsf(out[i] - (float)(25 + i % 2 * 20 + i / 2 * 80)) < 1e-3f);
    half.invert = true;
    assert_ok(picture_patches(&small, &half, out));
    assert_true(fabsf(out[0] - 230) < 1e-3f);
    Preprocess same = {.image = 4, .patch = 2, .channels = 3, .mean = 0, .deviation = 1.0f / 255};
    assert_ok(picture_patches(&small, &same, out)); /* order: patch_y, patch_x, y, x, channel */
    assert_true(fabsf(out[0] - 0) < 1e-3f && fabsf(out[1] - 0) < 1e-3f);
    assert_true(fabsf(out[3] - 10) < 1e-3f && fabsf(out[6] - 40) < 1e-3f);
    assert_true(fabsf(out[12] - 20) < 1e-3f && fabsf(out[24] - 80) < 1e-3f);
    Preprocess up = {.image = 4, .patch = 4, .channels = 3, .mean = 0, .deviation = 1.0f / 255};
    assert_ok(picture_patches(&rgb, &up, out)); /* bilinear: corners stay, between are mixtures */
    assert_true(fabsf(out[0] - 255) < 1e-3f && fabsf(out[3 * 3 + 1] - 255) < 1e-3f);
    assert_true(fabsf(out[3] - 255 * 0.75f) < 1e-3f && fabsf(out[4] - 255 * 0.25f) < 1e-3f);
    Preprocess mono = {.image = 2, .patch = 2, .channels = 1, .mean = 0, .deviation = 1.0f / 255};
    assert_ok(picture_patches(&rgb, &mono, out)); /* luma */
    assert_true(fabsf(out[0] - 255 * 0.299f) < 1e-2f && fabsf(out[3] - 255) < 1e-2f);
    mono.patch = 0;
    assert_true(status_discard(picture_patches(&rgb, &mono, out)));
}

/* ---- model descriptions ---- */

static void use_model(const char *path)
{
    Arena arena = {0};
    Model model;
    if (!status_discard(model_open(&arena, path, &model)) && model.layers < 50) {
        Graph graph;
        graph_init(&graph, &arena);
        (void)status_discard(model_graph(&model, &graph));
        graph_free(&graph);
    }
    arena_free(&arena);
}

static void changed(const char *path, const char *from, const char *to, const char *message)
{
    Bytes bytes;
    assert_ok(file_read(path, 1 << 20, &bytes));
    char *at = strstr((char *)bytes.data, from);
    assert_non_null(at);
    Text text = {0};
    text_printf(&text, "%.*s%s%s", (int)(at - (char *)bytes.data), (char *)bytes.data, to,
                at + strlen(from));
    Arena arena = {0};
    Model model;
    Status status = model_parse(&arena, "m.json", text_string(&text), text.count, &model);
    if (!strstr(status_message(status), message) || !strstr(status_message(status), "m.json"))
        fail_msg("%s -> %s gave \"%s\"", from, to, status_message(status));
    status_free(status);
    arena_free(&arena);
    text_free(&text);
    bytes_free(&bytes);
}

static void model_with(const char *from, const char *to, const char *message)
{
    changed(SOURCE_DIR "/models/digits-vit.json", from, to, message);
}

static void products_with(const char *from, const char *to, const char *message)
{
    changed(SOURCE_DIR "/models/siglip-mlp.json", from, to, message);
}

/* An MLP of two blocks; a GEMM. */
static void products(void **state)
{
    (void)state;
    products_with("\"hidden\": 4304,", "", "hidden");
    products_with("\"rows\": 729", "\"rows\": 0", "rows");
    products_with("\"blocks\": 1", "\"blocks\": 1, \"columns\": 3", "columns");
    products_with("\"mlp\"", "\"gemm\"", "hidden");
    Arena arena = {0};
    Model model;
    Graph graph;
    const char *mlp = "{\"name\":\"m\",\"kind\":\"mlp\",\"batch\":2,\"rows\":3,\"inner\":16,"
                      "\"hidden\":32,\"blocks\":2}";
    const char *gemm = "{\"name\":\"g\",\"kind\":\"gemm\",\"batch\":1,\"rows\":3,\"inner\":16,"
                       "\"columns\":5}";
    assert_ok(model_parse(&arena, "m.json", mlp, strlen(mlp), &model));
    graph_init(&graph, &arena);
    assert_ok(model_graph(&model, &graph));
    assert_int_equal(graph.operations.count, 6);
    const Shape *out = &graph.values.items[graph.outputs.items[0].value].shape;
    assert_true(out->rank == 3 && out->extent[0] == 2 && out->extent[1] == 3 &&
                out->extent[2] == 16);
    graph_free(&graph);
    assert_ok(model_parse(&arena, "g.json", gemm, strlen(gemm), &model));
    graph_init(&graph, &arena);
    assert_ok(model_graph(&model, &graph));
    assert_int_equal(graph.operations.count, 1);
    graph_free(&graph);
    arena_free(&arena);
}

static void descriptions(void **state)
{
    (void)state;
    model_with("\"patch\": 14", "\"patch\": 13", "divide");
    model_with("\"heads\": 2", "\"heads\": 5", "divide");
    model_with("\"heads\": 2", "\"heads\": 0", "heads");
    model_with("\"heads\": 2", "\"heads\": 2.5", "integer");
    model_with("\"heads\": 2", "\"haeds\": 2", "haeds");
    model_with("\"kind\": \"vit\"", "\"kind\": \"cnn\"", "cnn");
    model_with("\"epsilon\": 1e-6", "\"epsilon\": 0.0", "epsilon");
    model_with("\"deviation\": 0.5", "\"deviation\": 0", "deviation");
    model_with("\"8\", \"9\"", "\"8\"", "labels");
    model_with("\"8\", \"9\"", "8, 9", "text");
    model_with("\"mapHead\": true", "\"mapHead\": false", "map head");
    model_with("\"channels\": 3", "\"channels\": 2", "channels");
    model_with("\"name\": \"digits-vit\",", "", "name");
}

/* ---- damaged copies of everything ---- */

static void damage(const char *source, const char *name, void (*use)(const char *), uint64_t rounds)
{
    Bytes bytes;
    assert_ok(file_read(source, 1 << 24, &bytes));
    Text damaged = {0};
    for (Hostile hostile = hostile_begin(rounds); hostile_more(&hostile);) {
        damaged.count = 0;
        array_append(&damaged, (const char *)bytes.data, bytes.count);
        hostile_damage(&hostile, &damaged);
        assert_ok(file_write(file(name), damaged.items ? damaged.items : "", damaged.count));
        use(file(name));
    }
    text_free(&damaged);
    bytes_free(&bytes);
}

static void damaged(void **state)
{
    (void)state;
    const float values[24] = {1, 2, 3};
    const char *header =
        "{\"a.weight\":{\"dtype\":\"F32\",\"shape\":[2,4],\"data_offsets\":[0,32]},"
        "\"b\":{\"dtype\":\"F16\",\"shape\":[4,8],\"data_offsets\":[32,96]}}";
    Tensors tensors;
    assert_ok(open_tensors(header, strlen(header), values, 96, &tensors));
    tensors_free(&tensors);
    damage(file("t.safetensors"), "t.safetensors", use_tensors, 2000);
    assert_ok(npy_write(file("t.npy"), &(Shape){2, {4, 6}}, values));
    damage(file("t.npy"), "t.npy", use_npy, 2000);
    damage(SOURCE_DIR "/models/digits-vit.json", "t.json", use_model, 1000);
    damage(SOURCE_DIR "/models/siglip-mlp.json", "t.json", use_model, 500);
    damage(SOURCE_DIR "/models/digits-vit/images/03-0.png", "t.png", use_picture, 2000);
    write_jpeg(file("t.jpg"), 40, 30, 3);
    damage(file("t.jpg"), "t.jpg", use_picture, 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(safetensors),  cmocka_unit_test(npy),      cmocka_unit_test(jpeg),
        cmocka_unit_test(transparency), cmocka_unit_test(resizing), cmocka_unit_test(descriptions),
        cmocka_unit_test(products),     cmocka_unit_test(damaged),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
