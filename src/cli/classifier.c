/* classifier.c - see classifier.h. */
#include "cli/classifier.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static float *output_memory(Classifier *c, const Package *package, const char *name, size_t *count)
{
    const PackageBinding *binding =
        device_binding(package->outputs, package->output_count, name, 0);
    *count = binding ? shape_elements(&binding->shape) : 0;
    return arena_array(&c->arena, float, *count);
}

Status classifier_open(const Package *package, const DeviceOptions *options, Classifier *out)
{
    Classifier *c = out;
    *c = (Classifier){0};
    TRY(device_check_weights(package));
    const char *text = package_text(package, "model");
    if (!text)
        return status_error("the package holds no model text");
    Status status = model_parse(&c->arena, "the package's model", text, strlen(text), &c->model);
    if (status_ok(status) && (package->input_count < 1 || !c->model.classes))
        status = status_error("the package is no classifier of pictures");
    if (status_ok(status)) {
        const PackageBinding *input = &package->inputs[0];
        c->input = input->name;
        c->patch_count = shape_elements(&input->shape);
        c->patches = arena_array(&c->arena, float, c->patch_count);
        c->embedding = output_memory(c, package, "embedding", &c->embedding_count);
        c->logits = output_memory(c, package, "logits", &c->logit_count);
        const Preprocess *p = &c->model.preprocess;
        uint64_t needed = (uint64_t)p->image * p->image * p->channels;
        if (c->logit_count != c->model.classes || c->patch_count != needed)
            status = status_error("inputs and outputs of the package do not match its model");
    }
    if (status_ok(status))
        status = device_open(package, options, &c->device);
    if (!status_ok(status))
        arena_free(&c->arena);
    return status;
}

Status classifier_run(Classifier *c)
{
    DeviceTensor input = {c->input, c->patches, c->patch_count};
    DeviceTensor outputs[] = {{"logits", c->logits, c->logit_count},
                              {"embedding", c->embedding, c->embedding_count}};
    TRY(device_call(c->device, &input, 1, outputs, c->embedding_count ? 2 : 1));
    for (size_t i = 0; i < c->logit_count; i++)
        if (!isfinite(c->logits[i]))
            return status_error("logits[%zu] is not a number: the model overflows in F16", i);
    return STATUS_OK;
}

void classifier_probabilities(const Classifier *c, double *out)
{
    double largest = -INFINITY, sum = 0;
    for (size_t i = 0; i < c->logit_count; i++)
        largest = fmax(largest, (double)c->logits[i]);
    for (size_t i = 0; i < c->logit_count; i++)
        sum += out[i] = exp((double)c->logits[i] - largest);
    for (size_t i = 0; i < c->logit_count; i++)
        out[i] /= sum;
}

uint32_t classifier_best(const Classifier *c)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < c->logit_count; i++)
        if (c->logits[i] > c->logits[best])
            best = i;
    return best;
}

Status classifier_close(Classifier *c)
{
    Status status = device_close(c->device);
    arena_free(&c->arena);
    return status;
}

static uint32_t brightness(const Picture *picture, uint32_t x, uint32_t y)
{
    if (x >= picture->width || y >= picture->height)
        return 0;
    const uint8_t *pixel = picture->pixels + ((size_t)y * picture->width + x) * picture->channels;
    uint32_t sum = 0;
    for (uint32_t channel = 0; channel < picture->channels; channel++)
        sum += pixel[channel];
    return sum / picture->channels;
}

void picture_draw(Text *text, const Picture *picture, uint32_t columns, const char *const *beside,
                  uint32_t beside_count)
{
    static const char shades[] = " .:-=+*#%@";
    columns = min_u32(columns, picture->width);
    uint32_t rows = max_u32(1, picture->height * columns / picture->width / 2);
    for (uint32_t r = 0; r < rows; r++) {
        for (uint32_t c = 0; c < columns; c++) {
            uint32_t x = c * picture->width / columns;
            uint32_t y = r * picture->height / rows;
            uint32_t below = y + max_u32(1, picture->height / rows / 2);
            uint32_t light = (brightness(picture, x, y) +
                              brightness(picture, x, min_u32(below, picture->height - 1))) /
                             2;
            text_printf(text, "%c", shades[light * (sizeof shades - 2) / 255]);
        }
        text_printf(text, "  %s\n", r < beside_count ? beside[r] : "");
    }
}
