/* libraries: models exchange */
/* fuzz_inputs.c - libFuzzer on the readers of a user's files. The first byte says as what the rest
 * is read: a model description (compiled as far as a graph), safetensors, .npy, a picture,
 * transfers, JSON. */
#include "exchange/exchange.h"
#include "models/models.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use_file(uint8_t kind, const char *path, Arena *arena)
{
    Tensors tensors;
    Picture picture;
    Shape shape;
    float *values;
    if (kind == 0) {
        Status status = tensors_open(path, &tensors);
        if (status_ok(status))
            tensors_free(&tensors);
        status_free(status);
    } else if (kind == 1) {
        status_free(npy_read(path, arena, &shape, &values));
    } else {
        Status status = picture_read(path, &picture);
        if (status_ok(status))
            picture_free(&picture);
        status_free(status);
    }
}

static void use_model(const char *text, size_t length, Arena *arena)
{
    Model model;
    Status status = model_parse(arena, "fuzz", text, length, &model);
    if (status_ok(status)) {
        Graph graph;
        graph_init(&graph, arena);
        status = model_graph(&model, &graph);
        graph_free(&graph);
    }
    status_free(status);
}

static void use_text(uint8_t kind, const char *text, size_t length, Arena *arena)
{
    if (kind == 3) {
        use_model(text, length, arena);
    } else if (kind == 4) {
        TileProgram program;
        Status status = exchange_pattern_read(arena, "fuzz", text, &program);
        if (status_ok(status))
            tile_free(&program);
        status_free(status);
    } else {
        JsonPlace place;
        Status status = json_open(arena, "fuzz", text, length, &place);
        Format format;
        if (status_ok(status)) {
            status = format_from_json(&place, &format);
            json_close(&place);
        }
        status_free(status);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    uint8_t kind = data[0] % 6;
    Arena arena = {0};
    if (kind < 3) { /* readers of files: one that lies in memory */
        char path[64];
        int fd = memfd_create("fuzz", 0);
        if (fd < 0 || write(fd, data + 1, size - 1) != (ssize_t)(size - 1))
            return 0;
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        use_file(kind, path, &arena);
        close(fd);
    } else {
        char *text = arena_alloc(&arena, size, 1);
        memcpy(text, data + 1, size - 1);
        use_text(kind, text, size - 1, &arena);
    }
    arena_free(&arena);
    return 0;
}
