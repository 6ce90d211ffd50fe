/* device.c - sessions over a backend: boot, call, complete. See device.h. */
#include "device/profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct Device {
    const Package *package;
    Backend backend;
    DeviceRun run;
    uint8_t profile;
    Arena profile_arena; /* of the last call */
    Profile last_profile;
    bool called; /* there is a last call */
    bool broken; /* after a fault nothing but closing is possible */
};

const PackageBinding *device_binding(const PackageBinding *bindings, uint32_t count,
                                     const char *name, uint32_t index)
{
    char numbered[512];
    snprintf(numbered, sizeof numbered, "%s#%u", name, index + 1);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(bindings[i].name, index ? numbered : name) == 0)
            return &bindings[i];
    return NULL;
}

Status device_open(const Package *package, const DeviceOptions *options, Device **out)
{
    if (strncmp(options->device, "/dev/", 5) == 0)
        return status_error("%s: running on a card is not supported yet, use --device sim",
                            options->device);
    if (strcmp(options->device, "sim") != 0)
        return status_error("unknown device \"%s\": sim or /dev/ipuN", options->device);
    TRY(device_check_profile(package, options->profile));
    Device *device = xcalloc(1, sizeof *device);
    device->package = package;
    device->profile = options->profile;
    LogSpan span = log_open("load", "tiles=%u", package->tile_count);
    Status status = sim_backend_create(package, options, &device->backend);
    log_close(&span);
    if (!status_ok(status)) {
        free(device);
        return status;
    }
    /* start-up: the runtime's own rendezvous, then the program's input rendezvous */
    BackendStop stop = BACKEND_RENDEZVOUS;
    for (int i = 0; i < 2 && status_ok(status) && stop == BACKEND_RENDEZVOUS; i++)
        status = device->backend.resume(device->backend.state, &stop);
    if (status_ok(status) && stop == BACKEND_COMPLETE)
        status = status_error("the program ended before its first rendezvous");
    if (!status_ok(status)) {
        device->backend.destroy(device->backend.state);
        free(device);
        return status_context(status, "start");
    }
    *out = device;
    return STATUS_OK;
}

/* Before any memory is asked for: without a layout nothing bounds shape and file offsets. */
static Status check_transfer(const PackageBinding *binding, size_t count)
{
    if (!binding_has_layout(binding))
        return status_error("%s: the package does not say how it is laid out", binding->name);
    uint64_t elements = shape_elements(&binding->shape);
    if (count != elements)
        return status_error("%s has %llu elements, not %zu", binding->name,
                            (unsigned long long)elements, count);
    return STATUS_OK;
}

/* A value that halves can not hold would become infinite and turn results into NaN. */
static Status check_range(const char *name, const float *data, size_t count, Precision precision)
{
    static const double limits[] = {
        [F16] = 65519, [F32] = INFINITY, [F8F143] = INFINITY, [U32] = INFINITY};
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)data[i]) <= limits[precision.kind]))
            return status_error("%s[%zu]: %g can not be stored in the package's precision", name, i,
                                (double)data[i]);
    return STATUS_OK;
}

static Status write_binding(Device *device, const PackageBinding *binding, const float *data,
                            size_t count)
{
    TRY(check_transfer(binding, count));
    uint64_t elements = count;
    Precision precision = binding->format.precision;
    TRY(check_range(binding->name, data, elements, precision));
    uint8_t *logical = xmalloc(array_bytes(elements, precision_bytes(precision)));
    uint8_t *raw = xcalloc(1, binding_raw_bytes(binding));
    convert_elements(data, (Precision){.kind = F32}, logical, precision, elements);
    Status status = binding_pack(binding, logical, raw);
    for (uint32_t s = 0; s < binding->slice_count && status_ok(status); s++) {
        const PackageSlice *slice = &binding->slices[s];
        status = device->backend.write(device->backend.state, slice->tile, slice->address,
                                       raw + slice->file_offset, (uint32_t)slice->bytes);
    }
    free(raw);
    free(logical);
    return status;
}

/* Every binding of the tensor: "name", "name#2", ... */
static Status write_tensor(Device *device, const PackageBinding *bindings, uint32_t binding_count,
                           const char *name, const float *data, size_t count)
{
    const PackageBinding *binding;
    for (uint32_t i = 0; (binding = device_binding(bindings, binding_count, name, i)) != NULL; i++)
        TRY(write_binding(device, binding, data, count));
    return STATUS_OK;
}

static Status read_binding(Device *device, const PackageBinding *binding, float *data, size_t count)
{
    TRY(check_transfer(binding, count));
    uint64_t elements = count;
    Precision precision = binding->format.precision;
    uint8_t *logical = xcalloc(elements, precision_bytes(precision));
    uint8_t *raw = xcalloc(1, binding_raw_bytes(binding));
    Status status = STATUS_OK;
    for (uint32_t s = 0; s < binding->slice_count && status_ok(status); s++) {
        const PackageSlice *slice = &binding->slices[s];
        status = device->backend.read(device->backend.state, slice->tile, slice->address,
                                      raw + slice->file_offset, (uint32_t)slice->bytes);
    }
    if (status_ok(status))
        status = binding_unpack(binding, raw, logical);
    if (status_ok(status))
        convert_elements(logical, precision, data, (Precision){.kind = F32}, elements);
    free(raw);
    free(logical);
    return status;
}

static const DeviceTensor *find_tensor(const DeviceTensor *tensors, size_t count, const char *name)
{
    size_t length = strcspn(name, "#");
    for (size_t i = 0; i < count; i++)
        if (strlen(tensors[i].name) == length && memcmp(tensors[i].name, name, length) == 0)
            return &tensors[i];
    return NULL;
}

static Status set_command(Device *device, uint32_t command)
{
    for (uint32_t t = 0; t < device->package->tile_count; t++)
        TRY(device->backend.write(device->backend.state, device->package->tiles[t].physical,
                                  device->package->tiles[t].command_address, &command,
                                  sizeof command));
    return STATUS_OK;
}

static Status resume_to_rendezvous(Device *device)
{
    BackendStop stop;
    Status status = device->backend.resume(device->backend.state, &stop);
    if (status_ok(status) && stop == BACKEND_COMPLETE)
        status = status_error("the program ended without being told to");
    device->broken = !status_ok(status);
    return status;
}

static Status check_names(const Device *device, const DeviceTensor *inputs, size_t input_count,
                          const DeviceTensor *outputs, size_t output_count)
{
    const Package *package = device->package;
    for (uint32_t i = 0; i < package->input_count; i++)
        if (!find_tensor(inputs, input_count, package->inputs[i].name))
            return status_error("input %s is not given", package->inputs[i].name);
    for (size_t i = 0; i < input_count; i++)
        if (!device_binding(package->inputs, package->input_count, inputs[i].name, 0))
            return status_error("the package has no input %s", inputs[i].name);
    for (size_t i = 0; i < output_count; i++)
        if (!device_binding(package->outputs, package->output_count, outputs[i].name, 0))
            return status_error("the package has no output %s", outputs[i].name);
    return STATUS_OK;
}

/* At the output rendezvous: afterwards the samples of the call are gone. */
static Status take_profile(Device *device)
{
    arena_free(&device->profile_arena);
    return profile_collect(&device->backend, device->package, device->profile,
                           &device->profile_arena, &device->last_profile);
}

/* Exchange phases of a call, loops unrolled, for progress displays; 0: the package does not say. */
static uint64_t phases_of_call(const Package *package)
{
    const ProfileTilePlan *plan = package->profile_tiles;
    uint64_t count = 0, times = 1;
    for (uint32_t i = 0; package->profile_tile_count && i < plan->step_count; i++) {
        const ProfileStep *step = &package->profile_steps[plan->steps[i]];
        const char *iterations = profile_metadata(step, "iterations");
        count += step->kind == PROFILE_EXCHANGE || step->kind == PROFILE_SYNC ? times : 0;
        if (strcmp(step->kernel, PROFILE_REPEAT) == 0 && iterations)
            times = strtoull(iterations, NULL, 10);
        else if (strcmp(step->kernel, PROFILE_REPEAT_END) == 0)
            times = 1;
    }
    return count;
}

static Status call(Device *device, const DeviceTensor *inputs, size_t input_count,
                   const DeviceTensor *outputs, size_t output_count)
{
    if (device->broken)
        return status_error("the device faulted in an earlier call");
    const Package *package = device->package;
    double start = seconds_now();
    TRY(check_names(device, inputs, input_count, outputs, output_count));
    for (size_t i = 0; i < input_count; i++)
        TRY(write_tensor(device, package->inputs, package->input_count, inputs[i].name,
                         inputs[i].data, inputs[i].count));
    TRY(resume_to_rendezvous(device)); /* the steps, to the output rendezvous */
    device->backend.measure(device->backend.state, &device->run);
    device->called = true;
    if (device->profile)
        TRY(take_profile(device));
    TRY(device->backend.verify(device->backend.state));
    for (size_t i = 0; i < output_count; i++)
        TRY(read_binding(
            device, device_binding(package->outputs, package->output_count, outputs[i].name, 0),
            outputs[i].data, outputs[i].count));
    TRY(resume_to_rendezvous(device)); /* round the loop, to the next input rendezvous */
    device->run.host_seconds = seconds_now() - start;
    return STATUS_OK;
}

Status device_call(Device *device, const DeviceTensor *inputs, size_t input_count,
                   const DeviceTensor *outputs, size_t output_count)
{
    LogSpan span = log_open("simulate", "%s", "");
    log_progress(0, phases_of_call(device->package));
    Status status = call(device, inputs, input_count, outputs, output_count);
    log_close(&span);
    return status;
}

Status device_read_memory(Device *device, uint32_t physical_tile, uint32_t address, void *data,
                          uint32_t bytes)
{
    return device->backend.read(device->backend.state, physical_tile, address, data, bytes);
}

Status device_write_weight(Device *device, const char *name, const float *data, size_t count)
{
    const Package *package = device->package;
    if (!device_binding(package->weights, package->weight_count, name, 0))
        return status_error("the package has no parameter %s", name);
    return write_tensor(device, package->weights, package->weight_count, name, data, count);
}

Status device_profile(const Device *device, const Profile **out)
{
    if (!device->profile || !device->called)
        return status_error("nothing was profiled");
    *out = &device->last_profile;
    return STATUS_OK;
}

Status device_check_weights(const Package *package)
{
    if (!package->weight_count || package_text(package, "weights"))
        return STATUS_OK;
    return status_error("the package holds no weights: build it with --weights FILE");
}

const DeviceRun *device_last_run(const Device *device)
{
    return &device->run;
}

Status device_close(Device *device)
{
    if (!device)
        return STATUS_OK;
    Status status = STATUS_OK;
    BackendStop stop = BACKEND_COMPLETE;
    if (!device->broken) {
        status = set_command(device, 1);
        if (status_ok(status))
            status = device->backend.resume(device->backend.state, &stop);
        if (status_ok(status) && stop != BACKEND_COMPLETE)
            status = status_error("the program did not complete");
        for (uint32_t t = 0; t < device->package->tile_count && status_ok(status); t++) {
            uint32_t word = 0;
            status = device->backend.read(device->backend.state, device->package->tiles[t].physical,
                                          device->package->tiles[t].diagnostic_address, &word,
                                          sizeof word);
            if (status_ok(status) && word != 1)
                status = status_error("physical tile %u did not complete",
                                      device->package->tiles[t].physical);
        }
    }
    device->backend.destroy(device->backend.state);
    arena_free(&device->profile_arena);
    free(device);
    return status;
}
