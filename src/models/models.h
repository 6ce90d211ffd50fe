/* models.h - model descriptions (JSON), the builders of the known models, weights and pictures.
 *
 * models/digits-vit.json describes a vision transformer by its numbers, models/siglip-mlp.json a
 * workload of plain products; the builder makes the graph. Weights come from safetensors; every
 * problem names the tensor. */
#ifndef IPU_MODELS_MODELS_H
#define IPU_MODELS_MODELS_H

#include "graph/graph.h"

typedef struct Preprocess {          /* picture -> patches, part of the package */
    uint32_t image, patch, channels; /* square image, edge lengths */
    float mean, deviation;           /* (x/255 - mean) / deviation */
    bool invert;                     /* dark on light pictures are inverted when told to */
} Preprocess;

typedef enum ModelKind {
    MODEL_VIT,
    MODEL_MLP, /* blocks of product, GELU, product on [batch, rows, inner] */
    MODEL_GEMM /* [batch, rows, inner] times [inner, columns] */
} ModelKind;

typedef struct Model { /* memory in the arena */
    const char *name;
    const char *text; /* the JSON it came from, kept in the package */
    uint8_t kind;     /* ModelKind */
    uint32_t batch;
    uint32_t rows, inner, columns, hidden, blocks; /* MODEL_MLP, MODEL_GEMM */
    /* MODEL_VIT: */
    uint32_t image, patch, channels, width, heads, mlp, layers, tokens, classes;
    bool map_head;
    float epsilon;
    Preprocess preprocess;
    const char **labels; /* classes of them */
} Model;

Status model_open(Arena *arena, const char *path, Model *out);
Status model_parse(Arena *arena, const char *name, const char *text, size_t length, Model *out);
Status model_graph(const Model *model, Graph *out); /* out was graph_init'ed */

/* Tensors by name. Data stays in the file's memory until tensors_free. */
typedef struct TensorEntry {
    const char *name;
    const char *dtype; /* "F32" "F16" "BF16" "F64" "U8" "I32" "I64" */
    Shape shape;
    const uint8_t *data;
    uint64_t bytes;
} TensorEntry;
typedef struct Tensors {
    Arena arena;
    Bytes file;
    TensorEntry *entries;
    uint32_t count;
} Tensors;
Status tensors_open(const char *path, Tensors *out); /* safetensors */
const TensorEntry *tensors_find(const Tensors *tensors, const char *name);
/* Converts to F32; non-finite values are an error that names tensor and index. */
Status tensor_floats(const TensorEntry *entry, float *out);
void tensors_free(Tensors *tensors);

/* The parameters of a graph from a file: missing, extra, misshapen or non-finite is an error. */
Status weights_check(const Graph *graph, const Tensors *tensors);

/* .npy files: F32, F16, F64, I32, U8, C order. */
Status npy_read(const char *path, Arena *arena, Shape *shape, float **out);
Status npy_write(const char *path, const Shape *shape, const float *data);

/* PNG and JPEG -> 8-bit grey or RGB. */
typedef struct Picture {
    uint32_t width, height, channels;
    uint8_t *pixels; /* heap */
} Picture;
Status picture_read(const char *path, Picture *out);
void picture_free(Picture *picture);
/* Resizes (area average down, bilinear up) and cuts into patches [tokens][patch*patch*channels],
 * order (patch_y, patch_x) and within a patch (y, x, channel). */
Status picture_patches(const Picture *picture, const Preprocess *preprocess, float *out);

#endif
