/* cmd_run.c - ipu-stack run: tensors in from files, tensors out to files. */
#include "cli/session.h"

#include <stdlib.h>
#include <string.h>

typedef struct RunOptions {
    CommonOptions common;
    const char *device;
    TextList inputs, outputs;
    bool verify;
    uint64_t repeat;
    ProfileOptions profile;
} RunOptions;

/* "NAME=FILE" -> name in the arena, file. */
static Status split_pair(Arena *arena, const char *text, const char *option, const char **name,
                         const char **file)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return status_error("%s %s: must be NAME=FILE", option, text);
    *name = arena_printf(arena, "%.*s", (int)(equals - text), text);
    *file = equals + 1;
    return STATUS_OK;
}

/* Raw little-endian data: F32 or, when the file has half that size, F16. */
static Status read_raw(const char *path, Arena *arena, uint64_t elements, float **out)
{
    Bytes bytes;
    TRY(file_read(path, FILE_LIMIT_DATA, &bytes));
    Precision precision = {.kind = bytes.count == elements * 2 ? F16 : F32};
    Status status = STATUS_OK;
    if (bytes.count != elements * precision_bytes(precision)) {
        status =
            status_error("%s: has %zu bytes, needs %llu (F32) or %llu (F16)", path, bytes.count,
                         (unsigned long long)elements * 4, (unsigned long long)elements * 2);
    } else {
        *out = arena_array(arena, float, elements);
        convert_elements(bytes.data, precision, *out, (Precision){.kind = F32}, elements);
    }
    bytes_free(&bytes);
    return status;
}

static Status read_tensor(const Package *package, const char *name, const char *path, Arena *arena,
                          DeviceTensor *out)
{
    const PackageBinding *binding = device_binding(package->inputs, package->input_count, name, 0);
    if (!binding)
        return status_error("--input %s: the package has no such input", name);
    uint64_t elements = shape_elements(&binding->shape);
    size_t length = strlen(path);
    if (length > 4 && strcmp(path + length - 4, ".npy") == 0) {
        Shape shape;
        TRY(npy_read(path, arena, &shape, &out->data));
        if (!shape_equal(&shape, &binding->shape)) {
            Text text = {0};
            shape_print(&text, &shape);
            text_append(&text, ", the input's is ");
            shape_print(&text, &binding->shape);
            Status status = status_error("%s: the shape is %s", path, text_string(&text));
            text_free(&text);
            return status;
        }
    } else {
        TRY(read_raw(path, arena, elements, &out->data));
    }
    out->name = name;
    out->count = elements;
    return STATUS_OK;
}

static void print_output(const PackageBinding *binding, const float *data)
{
    Text text = {0};
    shape_print(&text, &binding->shape);
    uint64_t elements = shape_elements(&binding->shape);
    printf("%s [%s]", binding->name, text_string(&text));
    for (uint64_t i = 0; i < elements && i < 8; i++)
        printf(" %g", (double)data[i]);
    printf("%s\n", elements > 8 ? " ..." : "");
    text_free(&text);
}

static Status run(const RunOptions *o, const char *path, Arena *arena)
{
    Package package;
    TRY(package_read(arena, path, &package));
    TRY(device_check_weights(&package));
    DeviceTensor *inputs = arena_array(arena, DeviceTensor, o->inputs.count);
    for (size_t i = 0; i < o->inputs.count; i++) {
        const char *name, *file;
        TRY(split_pair(arena, o->inputs.items[i], "--input", &name, &file));
        TRY(read_tensor(&package, name, file, arena, &inputs[i]));
    }
    uint32_t output_count = package.output_count; /* of the model: samples come last */
    if (output_count && strcmp(package.outputs[output_count - 1].name, PROFILE_BINDING) == 0)
        output_count--;
    DeviceTensor *outputs = arena_array(arena, DeviceTensor, output_count);
    for (uint32_t i = 0; i < output_count; i++) {
        const PackageBinding *binding = &package.outputs[i];
        uint64_t elements = shape_elements(&binding->shape);
        outputs[i] = (DeviceTensor){binding->name, arena_array(arena, float, elements), elements};
    }
    for (size_t i = 0; i < o->outputs.count; i++) { /* before anything runs */
        const char *name, *file;
        TRY(split_pair(arena, o->outputs.items[i], "--output", &name, &file));
        if (!device_binding(package.outputs, output_count, name, 0))
            return status_error("--output %s: the package has no such output", name);
    }
    Device *device;
    DeviceOptions options = {
        .device = o->device, .threads = (unsigned)o->common.threads, .verify = o->verify};
    TRY(profile_source(&o->profile, &package, &options.profile));
    TRY(device_open(&package, &options, &device));
    Status status = STATUS_OK;
    DeviceRun last = {0};
    for (uint64_t i = 0; i < o->repeat && status_ok(status); i++) {
        status = device_call(device, inputs, o->inputs.count, outputs, output_count);
        last = *device_last_run(device);
    }
    if (status_ok(status))
        status = profile_save(&o->profile, device);
    Status closed = device_close(device);
    if (!status_ok(status)) {
        status_free(closed);
        return status;
    }
    TRY(closed);
    for (size_t i = 0; i < o->outputs.count; i++) {
        const char *name, *file;
        TRY(split_pair(arena, o->outputs.items[i], "--output", &name, &file));
        for (uint32_t k = 0; k < output_count; k++)
            if (strcmp(package.outputs[k].name, name) == 0)
                TRY(npy_write(file, &package.outputs[k].shape, outputs[k].data));
    }
    for (uint32_t i = 0; i < output_count; i++)
        print_output(&package.outputs[i], outputs[i].data);
    printf("device=%s cycles=%llu deviceMicroseconds=%.3f boundaryOverheadCycles=%llu phases=%u "
           "hostSeconds=%.4f\n",
           o->device, (unsigned long long)last.cycles, (double)last.cycles / CLOCK_HZ * 1e6,
           (unsigned long long)last.boundary_cycles, last.phases, last.host_seconds);
    return STATUS_OK;
}

int cmd_run(int argc, char **argv)
{
    RunOptions o = {.device = "sim", .repeat = 1};
    const Option options[] = {
        {"--device", OPTION_TEXT, &o.device, "sim|/dev/ipuN", "where to run (default sim)", 0, 0},
        {"--input", OPTION_LIST, &o.inputs, "NAME=FILE", ".npy, or raw F32/F16 of the shape", 0, 0},
        {"--output", OPTION_LIST, &o.outputs, "NAME=FILE", "write this output as .npy", 0, 0},
        {"--repeat", OPTION_NUMBER, &o.repeat, "N", "call so often (default 1)", 1, 1000000},
        {"--verify", OPTION_FLAG, &o.verify, "", "count the delivered words of every phase", 0, 0},
        PROFILE_OPTIONS(o.profile),
        COMMON_OPTIONS(o.common),
        {0}};
    const Command command = {"ipu-stack run FILE.ipuexe --input NAME=FILE ... [options]",
                             "Loads a package, calls it, writes its outputs.", options, 1, 1};
    TextList arguments = {0};
    int done = command_parse(&command, argc, argv, &arguments);
    if (done < 0 && !common_apply("run", &o.common))
        done = 2;
    if (done < 0) {
        Arena arena = {0};
        Status status = run(&o, arguments.items[0], &arena);
        arena_free(&arena);
        done = status_ok(status) ? 0 : command_fail("run", status);
    }
    array_free(&arguments);
    array_free(&o.inputs);
    array_free(&o.outputs);
    return done;
}
