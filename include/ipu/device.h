/* device.h - load a package, call it, read results: the simulator and a card behind one interface.
 *
 * device_open loads and boots once; calls may repeat; parameters survive a call. Tensors are
 * row-major F32 on this side; conversion and layout are the device's work. */
#ifndef IPU_DEVICE_H
#define IPU_DEVICE_H

#include <stddef.h>
#include <stdint.h>

typedef struct Device Device;
struct Status;
struct Package;

typedef struct DeviceTensor {
    const char *name;
    float *data; /* as many elements as the binding's shape has */
    size_t count;
} DeviceTensor;

typedef struct DeviceRun { /* of the last call; cycles are the device's (simulated: simulated) */
    uint64_t cycles;            /* timing.md 2: first exchange release to the last step's last issue */
    uint64_t boundary_cycles;   /* sum of boundary overheads */
    uint64_t exchange_cycles, sync_cycles;
    uint32_t phases;
    double host_seconds;
} DeviceRun;

typedef struct DeviceOptions {
    const char *device; /* "sim" or a path */
    unsigned threads;
    int verify;
} DeviceOptions;

#endif
