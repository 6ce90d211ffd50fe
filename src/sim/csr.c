/* csr.c - control and status registers by number, as get and put see them.
 *
 * Semantics: semantics-integer.md G.3. Choices: an unknown number, or a put to a read-only one, is
 * INVALID_OP; bits that a register does not have read 0. */
#include "sim/core.h"

#include <string.h>

enum {
    ADDRESS_BITS = 0x1fffff,
    CONTROL_BITS = 0x1f0007, /* INV, DIV0, OFLO, RND, ESR, NANOO */
    FORMAT_BITS = 3,
    SCALE_BITS = 0x3f,
    MUX_BITS = 0x1fff,
    COUNT_BITS = 0x1ffff
};

enum { FP_CLR = 0x101, PRNG_SEED = 0x107 };

static uint32_t unknown(Context *c, uint32_t number, const char *why)
{
    c->tile->detail = why;
    c->tile->detail_address = number;
    return EXCEPTION_INVALID_OP;
}

static uint32_t context_states(const Tile *tile)
{
    uint32_t value = tile->receive_error << 27;
    for (uint32_t i = 0; i < TILE_CONTEXTS; i++)
        value |= (uint32_t)tile->contexts[i].status << (2 * i);
    return value;
}

static bool read_worker(const Context *c, uint32_t number, uint32_t *value)
{
    switch (number) {
    case 0x01:
        *value = (c->number - 1) | (uint32_t)c->exception << 4 | (uint32_t)c->loop_fault << 9;
        return true;
    case 0x02:
        *value = c->m[13];
        return true;
    case 0x03:
        *value = c->m[12];
        return true;
    case 0x04:
        *value = c->repeat_count;
        return true;
    case 0x05:
        *value = c->repeat_first;
        return true;
    case 0x06:
        *value = c->repeat_end;
        return true;
    default:
        if (number < 0x100 || number > 0x10a)
            return false;
        *value = float_get_csr(&c->f, number - 0x100);
        return true;
    }
}

static bool read_supervisor(const Context *c, uint32_t number, uint32_t *value)
{
    const Tile *tile = c->tile;
    switch (number) {
    case 0x01:
        *value = (uint32_t)tile->consensus | (uint32_t)tile->launch_error << 3 |
                 (uint32_t)c->exception << 4;
        return true;
    case 0x03:
        *value = tile->number;
        return true;
    case 0x20:
        *value = tile->fp_ictl;
        return true;
    case 0x21 ... 0x26:
        *value = tile->contexts[number - 0x20].m[12];
        return true;
    case 0x31:
        *value = tile->fp_infmt;
        return true;
    case 0x33:
        *value = tile->fp_iscl;
        return true;
    case 0x50:
        *value = tile->weight_pointer;
        return true;
    case 0x72:
        *value = context_states(tile);
        return true;
    case 0x02:
    case 0x73 ... 0x75:
        *value = 0; /* store only */
        return true;
    case 0xa0:
        *value = tile->fabric->mux;
        return true;
    case 0xa1:
        *value = tile->fabric->mux_pair;
        return true;
    case 0xa3:
        *value = tile->fabric->format;
        return true;
    case 0xa4:
        *value = tile->fabric->incoming_base;
        return true;
    case 0xa6: /* words still expected */
        *value = tile->dcount > tile->received ? tile->dcount - tile->received : 0;
        return true;
    case 0xa7:
        *value = tile->outgoing_base;
        return true;
    case 0xa9:
        *value = tile->exchange_ctl;
        return true;
    default:
        return false;
    }
}

uint32_t csr_read(Context *c, uint32_t number, uint32_t *value)
{
    switch (number) {
    case 0x00: /* choice: the address of the instruction that reads */
        *value = c->pc;
        return OUTCOME_DONE;
    case 0x60:
        *value = (uint32_t)c->tile->cycle;
        return OUTCOME_DONE;
    case 0x61:
        *value = (uint32_t)(c->tile->cycle >> 32);
        return OUTCOME_DONE;
    case 0x70:
        *value = c->tile->debug_data;
        return OUTCOME_DONE;
    case 0x71:
        *value = c->break_id;
        return OUTCOME_DONE;
    default:
        break;
    }
    bool known = c->number ? read_worker(c, number, value) : read_supervisor(c, number, value);
    return known ? OUTCOME_DONE : unknown(c, number, "no such CSR");
}

/* What put can not write, but a debugger or a test can. */
static bool force_worker(Context *c, uint32_t number, uint32_t value)
{
    switch (number) {
    case 0x01:
        c->exception = value >> 4 & 15;
        c->loop_fault = value >> 9 & 1;
        return true;
    case 0x02:
        c->m[13] = value & ADDRESS_BITS;
        return true;
    case 0x03:
        c->m[12] = value & ADDRESS_BITS;
        return true;
    case 0x04:
        c->repeat_count = value & 0xffff;
        return true;
    case 0x05:
        c->repeat_first = value;
        return true;
    case 0x06:
        c->repeat_end = value;
        return true;
    case 0x71:
        c->break_id = value;
        return true;
    case 0x100:
        c->f.status = value & 7;
        return true;
    default:
        if (number < 0x100 || number > 0x10a)
            return false;
        float_put_csr(&c->f, number - 0x100, value);
        return true;
    }
}

static bool force_supervisor(Context *c, uint32_t number, uint32_t value)
{
    switch (number) {
    case 0x01:
        c->tile->consensus = value & 1;
        c->tile->launch_error = value >> 3 & 1;
        c->exception = value >> 4 & 15;
        return true;
    case 0x71:
        c->break_id = value;
        return true;
    default:
        return false;
    }
}

static void write_control_register(Tile *tile, uint32_t value)
{
    if (value & 1)
        tile->consensus = false;
    if (value & 2)
        tile->consensus = true;
    if (value & 4)
        weights_clear(&tile->weights);
}

static uint32_t write_worker_base(Context *c, uint32_t number, uint32_t value)
{
    Context *worker = &c->tile->contexts[number - 0x20];
    if (worker->next != NEVER)
        return unknown(c, number, "base of a running worker");
    worker->m[12] = value & ADDRESS_BITS;
    return OUTCOME_DONE;
}

static uint32_t write_supervisor(Context *c, uint32_t number, uint32_t value)
{
    Tile *tile = c->tile;
    FabricTile *fabric = tile->fabric;
    switch (number) {
    case 0x02:
        write_control_register(tile, value);
        return OUTCOME_DONE;
    case 0x20:
        tile->fp_ictl = value & CONTROL_BITS;
        return OUTCOME_DONE;
    case 0x21 ... 0x26:
        return write_worker_base(c, number, value);
    case 0x31:
        tile->fp_infmt = value & FORMAT_BITS;
        return OUTCOME_DONE;
    case 0x33:
        tile->fp_iscl = value & SCALE_BITS;
        return OUTCOME_DONE;
    case 0x50:
        tile->weight_pointer = value & ADDRESS_BITS;
        return OUTCOME_DONE;
    case 0x73 ... 0x75:
        return OUTCOME_DONE; /* the debug bus is not modelled */
    case 0xa0:
        fabric->mux = value & MUX_BITS;
        return OUTCOME_DONE;
    case 0xa1:
        fabric->mux_pair = value & MUX_BITS;
        return OUTCOME_DONE;
    case 0xa3:
        fabric->format = value & FORMAT_BITS;
        return OUTCOME_DONE;
    case 0xa4:
        fabric->incoming_base = value & ADDRESS_BITS;
        return OUTCOME_DONE;
    case 0xa6:
        tile->dcount = value & COUNT_BITS;
        tile->received = 0;
        return OUTCOME_DONE;
    case 0xa7:
        tile->outgoing_base = value & ADDRESS_BITS;
        return OUTCOME_DONE;
    case 0xa9:
        tile->exchange_ctl = value;
        return OUTCOME_DONE;
    default:
        return unknown(c, number, "no such CSR, or read-only");
    }
}

uint32_t csr_write(Context *c, uint32_t number, uint32_t value, bool force)
{
    if (number == 0x70) {
        c->tile->debug_data = value;
        return OUTCOME_DONE;
    }
    if (force && (c->number ? force_worker(c, number, value) : force_supervisor(c, number, value)))
        return OUTCOME_DONE;
    if (c->number)
        return unknown(c, number, "no such CSR, or read-only");
    return write_supervisor(c, number, value);
}

void context_export(Context *c, SimContext *out)
{
    *out = (SimContext){.pc = c->pc, .bundles = c->bundles};
    memcpy(out->m, c->m, sizeof out->m);
    memcpy(out->a, c->f.a, sizeof out->a);
    for (uint32_t i = 0; i < 32; i++)
        out->acc[i] = *float_acc(&c->f, i);
    const char *detail = c->tile->detail;
    for (uint32_t number = 0; number < countof(out->csr); number++)
        if (csr_read(c, number, &out->csr[number]))
            out->csr[number] = 0;
    c->tile->detail = detail;
}

/* $m12 and $m13 are CSRs 3 and 2 of a worker: whichever of the two was changed is taken. */
static uint32_t changed(uint32_t now, uint32_t as_register, uint32_t as_csr)
{
    return as_register && as_register != now ? as_register : as_csr;
}

void context_import(Context *c, const SimContext *in)
{
    c->pc = in->pc;
    c->loop_end = 0;
    memcpy(c->m, in->m, 12 * sizeof in->m[0]);
    memcpy(c->f.a, in->a, 8 * sizeof in->a[0]);
    for (uint32_t i = 0; i < 32; i++)
        *float_acc(&c->f, i) = in->acc[i];
    SimContext values = *in;
    if (c->number) {
        values.csr[2] = changed(c->m[13], in->m[13], in->csr[2]);
        values.csr[3] = changed(c->m[12], in->m[12], in->csr[3]);
    }
    const char *detail = c->tile->detail;
    for (uint32_t number = 0; number < countof(values.csr); number++)
        if (number != FP_CLR && number != PRNG_SEED) /* they act; their effects are in the others */
            (void)csr_write(c, number, values.csr[number], true);
    c->tile->detail = detail;
}
