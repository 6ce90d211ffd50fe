/* backend.h - what a kind of device must be able to do. */
#ifndef IPU_DEVICE_BACKEND_H
#define IPU_DEVICE_BACKEND_H

#include "device/device.h"
#include "sim/sim.h"

typedef enum BackendStop { BACKEND_RENDEZVOUS, BACKEND_COMPLETE } BackendStop;

typedef struct Backend {
    void *state;
    Status (*write)(void *state, uint32_t tile, uint32_t address, const void *data, uint32_t bytes);
    Status (*read)(void *state, uint32_t tile, uint32_t address, void *data, uint32_t bytes);
    /* Goes on from load or rendezvous to the next stop; a fault is an error. */
    Status (*resume)(void *state, BackendStop *stop);
    void (*measure)(void *state, DeviceRun *run); /* of the stretch since the rendezvous before */
    Status (*verify)(void *state); /* the same stretch against the package's numbers */
    /* Start of every step that a tile ran, and the end of the last: addresses and cycles. */
    const SimSample *(*samples)(void *state, uint32_t tile, uint32_t *count);
    void (*destroy)(void *state);
} Backend;

Status sim_backend_create(const Package *package, const DeviceOptions *options, Backend *out);

#endif
