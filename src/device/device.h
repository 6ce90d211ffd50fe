/* device.h - load a package, call it, read results: the simulator and a card behind one interface.
 *
 * device_open loads all tiles, boots once and stops at the first rendezvous; calls may repeat;
 * parameters survive a call; device_close lets the program complete by its own code. Tensors are
 * row-major F32 on this side; conversion and layout are the device's work. Host data moves at the
 * rendezvous, through the package's bindings; on the simulator by plain writes into tile memory
 * (the packet protocol of a card's host exchange is not there yet, docs/simulator.md). */
#ifndef IPU_DEVICE_DEVICE_H
#define IPU_DEVICE_DEVICE_H

#include "compile/compile.h"

typedef struct Device Device;

typedef enum DeviceProfile { /* who takes the samples of a profile */
                             DEVICE_PROFILE_NONE,
                             DEVICE_PROFILE_SIMULATOR, /* the simulator, at the first instruction of
                                                          every step */
                             DEVICE_PROFILE_PACKAGE /* code in the package (build --profile full) */
} DeviceProfile;

typedef struct DeviceOptions {
    const char *device; /* "sim", or a card's node "/dev/ipu0" */
    unsigned threads;   /* host threads of the simulator; 0: all cores */
    uint8_t profile;    /* DeviceProfile */
    bool verify;        /* count the words of every phase against the package */
    uint64_t
        max_cycles; /* between two rendezvous, then it is a runaway; 0: about 0.7 s of device */
} DeviceOptions;

typedef struct DeviceTensor { /* an input or output of the model, by the graph's name */
    const char *name;
    float *data;
    size_t count; /* elements; must be the binding's */
} DeviceTensor;

typedef struct DeviceRun {    /* of the last call; on the simulator: simulated cycles */
    uint64_t cycles;          /* timing.md 2: first exchange release to the last step's issue */
    uint64_t boundary_cycles; /* sum over phases: event 0 minus the last tile's end of work */
    uint64_t exchange_cycles; /* sum over phases: event 0 to the last row's end */
    uint64_t exchange_words;
    uint32_t phases;
    double host_seconds;
} DeviceRun;

Status device_open(const Package *package, const DeviceOptions *options, Device **out);
/* Every input of the package must be given; outputs that are not asked for are not read. */
Status device_call(Device *device, const DeviceTensor *inputs, size_t input_count,
                   const DeviceTensor *outputs, size_t output_count);
Status device_read_memory(Device *device, uint32_t physical_tile, uint32_t address, void *data,
                          uint32_t bytes);
/* Writes a parameter into tile memory (packages built without --weights). */
Status device_write_weight(Device *device, const char *name, const float *data, size_t count);
/* The profile of the last call: parts are the package's, the rest lives until the next call. */
Status device_profile(const Device *device, const Profile **out);
/* Good when the package needs no parameters or has them baked in. */
Status device_check_weights(const Package *package);
const DeviceRun *device_last_run(const Device *device);
/* Completes and frees; the status tells whether completion went well. NULL is allowed. */
Status device_close(Device *device);

/* The binding that carries a model's tensor (a tensor may have several: "name", "name#2"). */
const PackageBinding *device_binding(const PackageBinding *bindings, uint32_t count,
                                     const char *name, uint32_t index);

#endif
