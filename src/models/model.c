/* model.c - model descriptions: the numbers of a vision transformer or of a workload of products,
 * checked one by one. */
#include "models/internal.h"

#include <math.h>
#include <string.h>

static Status read_preprocess(const JsonPlace *model, Preprocess *out)
{
    static const char *const keys[] = {"mean", "deviation", "invert", NULL};
    JsonPlace place;
    double mean, deviation;
    TRY(json_member(model, "preprocess", &place));
    TRY(json_only(&place, keys));
    TRY(json_number(&place, "mean", &mean));
    TRY(json_number(&place, "deviation", &deviation));
    TRY(json_bool(&place, "invert", &out->invert));
    if (!(fabs(mean) <= 1e6) || !(deviation > 1e-6 && deviation < 1e6))
        return status_error("%s: the deviation must be positive and both moderate", place.path);
    out->mean = (float)mean;
    out->deviation = (float)deviation;
    return STATUS_OK;
}

static Status read_labels(Arena *arena, const JsonPlace *model, uint32_t classes, const char ***out)
{
    JsonPlace labels, item;
    size_t count;
    TRY(json_member(model, "labels", &labels));
    TRY(json_count(&labels, &count));
    if (count != classes)
        return status_error("%s: %zu labels for %u classes", labels.path, count, classes);
    *out = arena_array(arena, const char *, classes);
    for (size_t i = 0; i < count; i++) {
        TRY(json_item(&labels, i, &item));
        if (!json_is_string(item.value))
            return status_error("%s: must be a text", item.path);
        (*out)[i] = arena_strdup(arena, json_string_value(item.value));
    }
    return STATUS_OK;
}

static Status check_numbers(const JsonPlace *place, const Model *model)
{
    if (model->image % model->patch)
        return status_error("%s: patch %u does not divide image %u", place->path, model->patch,
                            model->image);
    if (model->width % model->heads)
        return status_error("%s: %u heads do not divide width %u", place->path, model->heads,
                            model->width);
    if (model->channels != 1 && model->channels != 3)
        return status_error("%s: channels must be 1 or 3", place->path);
    if (model->classes && !model->map_head)
        return status_error("%s: a classifier needs the map head", place->path);
    if (model->map_head && model->batch != 1)
        return status_error("%s: the map head has one probe: batch %u is not possible yet",
                            place->path, model->batch);
    return STATUS_OK;
}

static Status read_vit(Arena *arena, const JsonPlace *place, Model *model)
{
    static const char *const keys[] = {
        "name",   "kind",    "image",   "patch", "channels", "width",      "heads",  "mlp",
        "layers", "mapHead", "classes", "batch", "epsilon",  "preprocess", "labels", NULL};
    double epsilon;
    TRY(json_only(place, keys));
    TRY(json_u32(place, "image", 1, 4096, &model->image));
    TRY(json_u32(place, "patch", 1, 1024, &model->patch));
    TRY(json_u32(place, "channels", 1, 3, &model->channels));
    TRY(json_u32(place, "width", 1, 65536, &model->width));
    TRY(json_u32(place, "heads", 1, 1024, &model->heads));
    TRY(json_u32(place, "mlp", 1, 1u << 18, &model->mlp));
    TRY(json_u32(place, "layers", 1, 200, &model->layers));
    TRY(json_u32(place, "classes", 0, 1u << 18, &model->classes));
    TRY(json_u32(place, "batch", 1, 1024, &model->batch));
    TRY(json_bool(place, "mapHead", &model->map_head));
    TRY(json_number(place, "epsilon", &epsilon));
    if (!(epsilon > 1e-20 && epsilon < 1))
        return status_error("%s: epsilon must lie between 0 and 1", place->path);
    model->epsilon = (float)epsilon;
    TRY(check_numbers(place, model));
    TRY(read_preprocess(place, &model->preprocess));
    model->preprocess.image = model->image;
    model->preprocess.patch = model->patch;
    model->preprocess.channels = model->channels;
    uint32_t edge = model->image / model->patch;
    model->tokens = edge * edge;
    if (model->classes)
        TRY(read_labels(arena, place, model->classes, &model->labels));
    return STATUS_OK;
}

enum { EXTENT_MAX = 1 << 20 };

static Status read_products(const JsonPlace *place, Model *model)
{
    static const char *const gemm[] = {"name", "kind", "batch", "rows", "inner", "columns", NULL};
    static const char *const mlp[] = {"name",  "kind",   "batch",  "rows",
                                      "inner", "hidden", "blocks", NULL};
    bool product = model->kind == MODEL_GEMM;
    TRY(json_only(place, product ? gemm : mlp));
    TRY(json_u32(place, "batch", 1, 1024, &model->batch));
    TRY(json_u32(place, "rows", 1, EXTENT_MAX, &model->rows));
    TRY(json_u32(place, "inner", 1, EXTENT_MAX, &model->inner));
    if (product)
        return json_u32(place, "columns", 1, EXTENT_MAX, &model->columns);
    TRY(json_u32(place, "hidden", 1, EXTENT_MAX, &model->hidden));
    return json_u32(place, "blocks", 1, 200, &model->blocks);
}

static Status read_model(Arena *arena, const JsonPlace *place, Model *model)
{
    static const char *const kinds[] = {"vit", "mlp", "gemm"}; /* ModelKind */
    const char *name, *kind;
    TRY(json_text(place, "kind", &kind));
    while (model->kind < countof(kinds) && strcmp(kind, kinds[model->kind]) != 0)
        model->kind++;
    if (model->kind == countof(kinds))
        return status_error("%s: unknown kind \"%s\": vit, mlp or gemm is expected", place->path,
                            kind);
    TRY(json_text(place, "name", &name));
    model->name = arena_strdup(arena, name);
    return model->kind == MODEL_VIT ? read_vit(arena, place, model) : read_products(place, model);
}

Status model_graph(const Model *model, Graph *out)
{
    return model->kind == MODEL_VIT ? vit_graph(model, out) : products_graph(model, out);
}

Status model_parse(Arena *arena, const char *name, const char *text, size_t length, Model *out)
{
    JsonPlace place;
    Model model = {0};
    TRY(json_open(arena, name, text, length, &place));
    Status status = read_model(arena, &place, &model);
    json_close(&place);
    if (!status_ok(status))
        return status;
    model.text = arena_printf(arena, "%.*s", (int)length, text);
    *out = model;
    return STATUS_OK;
}

Status model_open(Arena *arena, const char *path, Model *out)
{
    Bytes text;
    TRY(file_read(path, FILE_LIMIT_TEXT, &text));
    Status status = model_parse(arena, path, (const char *)text.data, text.count, out);
    bytes_free(&text);
    return status;
}
