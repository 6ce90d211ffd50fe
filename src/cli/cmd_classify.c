/* cmd_classify.c - ipu-stack classify: pictures in, labels and probabilities out. */
#include "cli/classifier.h"
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

typedef struct ClassifyOptions {
    CommonOptions common;
    const char *device;
    bool draw, truth_in_name, json;
    uint64_t top;
} ClassifyOptions;

enum { DRAW_COLUMNS = 28, TOP_LIMIT = 5 };

/* "images/03-7.png" -> "7" */
static const char *truth_of(Arena *arena, const char *path)
{
    const char *dash = strrchr(path, '-'), *dot = strrchr(path, '.');
    if (!dash || !dot || dot < dash)
        return "?";
    return arena_printf(arena, "%.*s", (int)(dot - dash - 1), dash + 1);
}

static void sort_classes(const double *probabilities, uint32_t count, uint32_t *order)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;
        while (at && probabilities[order[at - 1]] < probabilities[i]) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
}

static void print_answer(const ClassifyOptions *o, Classifier *c, const char *path,
                         const Picture *picture)
{
    uint32_t classes = (uint32_t)c->logit_count;
    double *probabilities = arena_array(&c->arena, double, classes);
    uint32_t *order = arena_array(&c->arena, uint32_t, classes);
    classifier_probabilities(c, probabilities);
    sort_classes(probabilities, classes, order);
    uint32_t top = min_u32((uint32_t)o->top, classes);
    if (o->json) {
        json_t *list = json_array();
        for (uint32_t i = 0; i < top; i++)
            json_array_append_new(list, json_pack("{s:s,s:f}", "label", c->model.labels[order[i]],
                                                  "probability", probabilities[order[i]]));
        json_t *answer = json_pack("{s:s,s:o,s:I}", "image", path, "classes", list, "cycles",
                                   (json_int_t)device_last_run(c->device)->cycles);
        json_dumpf(answer, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
        putchar('\n');
        json_decref(answer);
        return;
    }
    if (o->draw) {
        const char *beside[TOP_LIMIT + 3];
        uint32_t count = 0;
        const char *truth = o->truth_in_name ? truth_of(&c->arena, path) : NULL;
        const char *label = c->model.labels[order[0]];
        beside[count++] = path;
        if (truth)
            beside[count++] = arena_printf(&c->arena, "prediction %s, truth %s: %s", label, truth,
                                           strcmp(label, truth) == 0 ? "right" : "WRONG");
        else
            beside[count++] = arena_printf(&c->arena, "prediction %s", label);
        for (uint32_t i = 0; i < top && i < TOP_LIMIT; i++)
            beside[count++] = arena_printf(&c->arena, "  %s %.4f", c->model.labels[order[i]],
                                           probabilities[order[i]]);
        Text text = {0};
        picture_draw(&text, picture, DRAW_COLUMNS, beside, count);
        puts(text_string(&text));
        text_free(&text);
        return;
    }
    printf("%s", path);
    for (uint32_t i = 0; i < top; i++)
        printf(" %s %.4f", c->model.labels[order[i]], probabilities[order[i]]);
    putchar('\n');
}

static Status classify_one(const ClassifyOptions *o, Classifier *c, const char *path)
{
    Picture picture;
    TRY(picture_read(path, &picture));
    Status status = picture_patches(&picture, &c->model.preprocess, c->patches);
    if (status_ok(status))
        status = classifier_run(c);
    if (status_ok(status))
        print_answer(o, c, path, &picture);
    picture_free(&picture);
    return status;
}

static Status classify(const ClassifyOptions *o, const TextList *arguments, Arena *arena)
{
    Package package;
    TRY(package_read(arena, arguments->items[0], &package));
    Classifier classifier;
    DeviceOptions options = {.device = o->device, .threads = (unsigned)o->common.threads};
    TRY(classifier_open(&package, &options, &classifier));
    Status status = STATUS_OK;
    uint32_t failed = 0;
    for (size_t i = 1; i < arguments->count; i++) { /* a bad picture does not stop the others */
        Status one = classify_one(o, &classifier, arguments->items[i]);
        if (!status_ok(one)) {
            command_fail("classify", one);
            failed++;
        }
    }
    status = classifier_close(&classifier);
    if (status_ok(status) && failed)
        status = status_error("%u of %zu pictures failed", failed, arguments->count - 1);
    return status;
}

int cmd_classify(int argc, char **argv)
{
    ClassifyOptions o = {.device = "sim", .top = 3};
    const Option options[] = {
        {"--device", OPTION_TEXT, &o.device, "sim|/dev/ipuN", "where to run (default sim)", 0, 0},
        {"--top", OPTION_NUMBER, &o.top, "N", "so many labels (default 3)", 1, 1000},
        {"--draw", OPTION_FLAG, &o.draw, "", "draw each picture in characters", 0, 0},
        {"--truth-in-name", OPTION_FLAG, &o.truth_in_name, "",
         "with --draw: the true label stands in the name, \"03-7.png\"", 0, 0},
        {"--json", OPTION_FLAG, &o.json, "", "one object a picture", 0, 0},
        COMMON_OPTIONS(o.common),
        {0}};
    const Command command = {"ipu-stack classify FILE.ipuexe IMAGE... [options]",
                             "Classifies PNG or JPEG pictures.", options, 2, 1 << 20};
    TextList arguments = {0};
    int done = command_parse(&command, argc, argv, &arguments);
    if (done < 0 && !common_apply("classify", &o.common))
        done = 2;
    if (done < 0) {
        Arena arena = {0};
        Status status = classify(&o, &arguments, &arena);
        arena_free(&arena);
        done = status_ok(status) ? 0 : command_fail("classify", status);
    }
    array_free(&arguments);
    return done;
}
