/* libraries: sim */
/* fuzz_sim.c - libFuzzer on the simulator (cmake -DIPU_FUZZ=ON with clang): any bytes as code.
 *
 * The first byte chooses the context and verify mode, the next 48 the registers, the rest is code
 * for that context; a launched worker finds the same words. */
#include "sim/sim.h"

#include <string.h>

enum { CODE = 0x4c100, DATA = 0x60000, REGISTERS = 12, MAX_CYCLES = 20000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static Sim *create(bool verify)
{
    Sim *sim;
    SimOptions options = {.tiles = 1, .threads = 1, .verify = verify, .max_cycles = MAX_CYCLES};
    return status_discard(sim_create(&options, &sim)) ? NULL : sim;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static Sim *sims[2];
    uint32_t values[REGISTERS] = {0};
    if (size < 1 + sizeof values)
        return 0;
    bool verify = data[0] & 8;
    if (!sims[verify])
        sims[verify] = create(verify);
    Sim *sim = sims[verify];
    uint32_t context = data[0] % 7;
    memcpy(values, data + 1, sizeof values);
    data += 1 + sizeof values;
    size -= 1 + sizeof values;
    if (size > 0x2000)
        size = 0x2000;
    SimContext registers;
    sim_get_context(sim, 0, context, &registers);
    for (int i = 0; i < REGISTERS; i++) /* half of them are made addresses of data or code */
        registers.m[i] = i % 2 ? values[i] : (i % 4 ? CODE : DATA) + (values[i] & 0xfff);
    sim_set_context(sim, 0, context, &registers);
    memset(sim_memory(sim, 0) + (CODE - SRAM_BASE), 0, 0x2000);
    (void)status_discard(sim_write(sim, 0, CODE, data, (uint32_t)size));
    uint64_t cycles;
    (void)sim_call(sim, 0, context, CODE, &cycles);
    return 0;
}
