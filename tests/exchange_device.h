/* exchange_device.h - runs the rows of one phase: a small row interpreter and the simulator's
 * fabric.
 *
 * Used by the tests of the exchange: gives buffers random legal addresses, fills what is sent with
 * words that tell where they come from, interprets the rows into the fabric's records, delivers,
 * and looks at every word. */
#ifndef IPU_TESTS_EXCHANGE_DEVICE_H
#define IPU_TESTS_EXCHANGE_DEVICE_H

#include "exchange/exchange.h"
#include "sim/fabric.h"

#include <string.h>
#include <sys/mman.h>

enum { EVENT0 = 5000 };

typedef struct Device {
    const TileProgram *program;
    FabricTile tiles[TILES]; /* physical */
    uint8_t *memory;
    uint32_t *address; /* [buffer * tiles + tile] */
    uint64_t random;
} Device;

static inline uint32_t device_random(Device *device)
{
    device->random = device->random * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(device->random >> 33);
}

static inline uint32_t device_address(const void *context, uint32_t tile, uint32_t buffer)
{
    const Device *device = context;
    return device->address[(size_t)buffer * device->program->tiles + tile];
}

/* Buffers one after the other in random distances, each in elements of its own. */
static inline void device_place(Device *device, bool same_everywhere)
{
    const TileProgram *program = device->program;
    for (uint32_t t = 0; t < program->tiles; t++) {
        uint32_t at = SRAM_BASE;
        for (uint32_t b = 0; b < program->buffers.count; b++) {
            uint32_t *address = &device->address[(size_t)b * program->tiles + t];
            if (same_everywhere && t) {
                *address = device->address[(size_t)b * program->tiles];
                continue;
            }
            uint32_t largest = 0;
            for (uint32_t i = 0; i < (same_everywhere ? program->tiles : 1); i++)
                largest = max_u32(largest, program->buffers.items[b].bytes[t + i]);
            *address = at + 8 * (device_random(device) % 64);
            if (!same_everywhere)
                *address += 4 * (device_random(device) % 2);
            at = round_up_u32(*address + largest + 1, ELEMENT_BYTES);
            if (at > INTERLEAVED_BASE)
                at = round_up_u32(at, INTERLEAVED_ELEMENT_BYTES);
            assert_true(*address + largest <= SRAM_END);
        }
    }
}

static inline void device_open(Device *device, const TileProgram *program, uint64_t seed)
{
    *device = (Device){.program = program, .random = seed};
    device->memory = mmap(NULL, (size_t)TILES * SRAM_BYTES, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(device->memory != MAP_FAILED);
    device->address = calloc(program->buffers.count * program->tiles, sizeof(uint32_t));
    for (uint32_t t = 0; t < TILES; t++) {
        device->tiles[t].memory = device->memory + (size_t)t * SRAM_BYTES;
        device->tiles[t].mux = device->tiles[t].mux_pair = MUX_NEUTRAL;
    }
}

static inline void device_close(Device *device)
{
    for (uint32_t t = 0; t < TILES; t++) {
        array_free(&device->tiles[t].sends);
        array_free(&device->tiles[t].controls);
    }
    munmap(device->memory, (size_t)TILES * SRAM_BYTES);
    free(device->address);
}

static inline uint8_t *device_at(Device *device, const Endpoint *end)
{
    uint32_t address = device_address(device, end->tile, end->at.buffer) + end->at.offset;
    return device->tiles[target_physical(end->tile)].memory + (address - SRAM_BASE);
}

static inline uint32_t device_word(uint32_t tile, uint32_t offset)
{
    uint32_t x = tile * 0x9e3779b1u ^ (offset / 4) * 0x85ebca77u;
    return (x ^ x >> 15) * 0xc2b2ae3du | 1;
}

static inline void device_fill(Device *device, uint32_t phase)
{
    const ExchangePhase *p = &device->program->phases.items[phase];
    for (uint32_t m = 0; m < p->transfer_count; m++) {
        const Endpoint *from = &p->transfers[m].source;
        uint8_t *to = device_at(device, from);
        for (uint32_t i = 0; i < p->transfers[m].words; i++)
            store_u32(to + 4 * i, device_word(from->tile, from->at.offset + 4 * i));
    }
}

static inline void device_send(FabricTile *tile, uint64_t cycle, uint32_t item, int32_t items,
                               int32_t sctl)
{
    if (sctl)
        array_push(&tile->sends, (FabricSend){.cycle = cycle,
                                              .address = item * (sctl & 4 ? 8 : 4),
                                              .items = (uint32_t)items,
                                              .sctl = (uint8_t)sctl});
}

static inline void device_control(FabricTile *tile, uint64_t cycle, uint32_t stream,
                                  uint32_t selector, uint32_t value)
{
    array_push(&tile->controls, (FabricControl){.cycle = cycle,
                                                .value = value,
                                                .stream = (uint8_t)stream,
                                                .selector = (uint8_t)selector});
}

/* What the supervisor does with a row. False: it does not get to the return. */
static inline bool device_row(FabricTile *tile, const Row *row)
{
    uint64_t at = EVENT0;
    uint32_t item = 0;
    int32_t sctl = 0;
    tile->sends.count = tile->controls.count = 0;
    tile->row_start = EVENT0;
    tile->active = row->count > 0;
    for (uint32_t i = 0; i < row->count; i++) {
        Insn insn;
        if (!isa_decode(row->words[i], i + 1 < row->count ? row->words[i + 1] : 0, MODE_SUPERVISOR,
                        &insn))
            return false;
        const int32_t *o = insn.operand;
        switch (insn.form) {
        case FORM_delaypic:
            device_control(tile, at + o[0], 0, o[1], o[2]);
            break;
        case FORM_delayxpic:
            device_control(tile, at + o[0], 1, o[1], o[2]);
            break;
        case FORM_send:
            item = o[1];
            sctl = o[2];
            device_send(tile, at, item, o[0], sctl);
            item += o[0];
            break;
        case FORM_sendoff:
            device_send(tile, at, item, o[0], o[2]);
            item += o[0];
            break;
        case FORM_sendpic:
            device_control(tile, at + 1, o[1] < 2, o[1] & 1, o[2]);
            device_send(tile, at, item, o[0], sctl);
            item += o[0];
            break;
        case FORM_sendpicp:
            if (i % 2)
                return false;
            device_control(tile, at + 1, 0, o[3], insn.payload & 0x3ffff);
            device_control(tile, at + 1, 1, insn.payload >> 31, insn.payload >> 18 & 0x1fff);
            if (o[2]) {
                item = o[1];
                sctl = o[2];
                device_send(tile, at, item, o[0], sctl);
                item += o[0];
            }
            i++;
            break;
        case FORM_delay:
            break;
        default:
            tile->row_end = at;
            return insn.form == FORM_br_mmmn && o[0] == 10;
        }
        at += o[0];
    }
    tile->row_end = at;
    return row->count == 0;
}

static inline bool device_run(Device *device, const Row *rows, Pool *pool, SimFault *fault)
{
    for (uint32_t t = 0; t < TILES; t++) {
        FabricTile *tile = &device->tiles[target_physical(t)];
        if (!device_row(tile, t < device->program->tiles ? &rows[t] : &(Row){0}))
            return false;
    }
    return fabric_deliver(device->tiles, TILES, false, pool, fault);
}

/* Every word at every receiver, and no word more. *where is the first difference. */
static inline bool device_right(Device *device, uint32_t phase, char *where, size_t size)
{
    const ExchangePhase *p = &device->program->phases.items[phase];
    uint64_t wanted = 0, received = 0;
    for (uint32_t m = 0; m < p->transfer_count; m++) {
        const Transfer *transfer = &p->transfers[m];
        wanted += (uint64_t)transfer->words * transfer->receiver_count;
        for (uint32_t r = 0; r < transfer->receiver_count; r++) {
            const Endpoint *end = &p->receivers[transfer->first_receiver + r];
            const uint8_t *at = device_at(device, end);
            for (uint32_t i = 0; i < transfer->words; i++) {
                uint32_t word =
                    device_word(transfer->source.tile, transfer->source.at.offset + 4 * i);
                if (load_u32(at + 4 * i) != word) {
                    snprintf(where, size, "transfer %u, receiver tile %u, word %u", m, end->tile,
                             i);
                    return false;
                }
            }
        }
    }
    for (uint32_t t = 0; t < TILES; t++)
        received += device->tiles[t].words_received;
    snprintf(where, size, "%llu words received", (unsigned long long)received);
    return received == wanted;
}

static inline void device_check(Device *device, uint32_t phase)
{
    char where[100];
    if (!device_right(device, phase, where, sizeof where))
        fail_msg("%s", where);
}

static inline void program_release(TileProgram *program)
{
    array_free(&program->buffers);
    array_free(&program->steps);
    array_free(&program->classes);
    array_free(&program->copies);
    array_free(&program->phases);
}

#endif
