/* kernel_tile.c - links a kernel with the runtime and a caller as emitted code would be, puts the
 * operands where the contract wants them (each in elements of its own), runs it, reads them back.
 */
#include "cli/kernel_tile.h"

#include "sim/sim.h"

enum {
    SAMPLES = 0x58700,  /* two words above the runtime state */
    CODE_END = 0x64000, /* of code; standard operands from there on */
    MAX_CYCLES = 1000000000
};

static Status place(const KernelContract *contract, uint32_t *address)
{
    uint32_t standard = CODE_END, interleaved = INTERLEAVED_BASE;
    for (uint32_t i = 0; i < contract->operand_count; i++) {
        const OperandContract *o = &contract->operands[i];
        uint32_t bytes = o->bytes + o->tail, room = round_up_u32(bytes, ELEMENT_BYTES);
        if (o->memory_class == MEMORY_STANDARD && standard + room <= EXECUTABLE_END) {
            address[i] = standard;
            standard += room;
            continue;
        }
        address[i] = interleaved;
        interleaved += round_up_u32(bytes, INTERLEAVED_ELEMENT_BYTES);
        if (interleaved > SRAM_END)
            return status_error("operand %s does not fit into the tile", o->name);
    }
    return STATUS_OK;
}

static void print_caller(Text *text, const KernelContract *contract, const uint32_t *address)
{
    uint32_t m = 2;
    text_printf(text,
                ".supervisor\n.section .text.caller,\"ax\"\n.globl caller\ncaller:\n"
                "add $m11, $m11, -8\nst32 $m10, $m11, $mzero, 0\n"
                "setzi $m2, %u\ncall $m10, ipu_sample_cycle\n",
                SAMPLES);
    for (uint32_t i = 0; i < contract->operand_count; i++)
        text_printf(text, "setzi $m%u, %u\n", m++, address[i]);
    for (uint32_t i = 0; i < contract->scalar_count; i++)
        text_printf(text, "ldconst $m%u, 0x%x\n", m++, (uint32_t)contract->scalars[i]);
    text_printf(text,
                "call $m10, %s\nsetzi $m2, %u\ncall $m10, ipu_sample_cycle\n"
                "ld32 $m10, $m11, $mzero, 0\nadd $m11, $m11, 8\nbr $m10\n",
                contract->symbol, SAMPLES + 4);
}

static Status link_caller(Arena *arena, const KernelSpec *spec, const KernelContract *contract,
                          const uint32_t *address, LinkImage *image)
{
    KernelObjects objects;
    TRY(kernels_build(arena, spec, 1, NULL, NULL, &objects));
    Text text = {0};
    AsObject caller;
    AsOptions options = {.supervisor = true, .find_source = kernel_source};
    print_caller(&text, contract, address);
    Status status = assemble(arena, "caller", text_string(&text), text.count, &options, &caller);
    text_free(&text);
    TRY(status);
    const AsObject **all = arena_array(arena, const AsObject *, objects.count + 1);
    for (uint32_t i = 0; i < objects.count; i++)
        all[i] = objects.objects[i];
    all[objects.count] = &caller;
    const char *root = "caller";
    LinkRange range = {LINK_SECOND, CODE_END};
    LinkInput input = {.objects = all,
                       .object_count = objects.count + 1,
                       .roots = &root,
                       .root_count = 1,
                       .ranges = &range,
                       .range_count = 1};
    return obj_link(arena, &input, image);
}

static Status load(Sim *sim, const LinkImage *image, const KernelContract *contract,
                   const uint32_t *address, uint8_t *const *operands)
{
    for (uint32_t i = 0; i < image->segment_count; i++)
        TRY(sim_write(sim, 0, image->segments[i].address, image->segments[i].data,
                      image->segments[i].bytes));
    for (uint32_t i = 0; i < contract->operand_count; i++)
        TRY(sim_write(sim, 0, address[i], operands[i], contract->operands[i].bytes));
    return STATUS_OK;
}

static Status call(Sim *sim, const LinkImage *image, const KernelContract *contract,
                   const uint32_t *address, uint8_t *const *operands, uint64_t *cycles)
{
    uint32_t entry, samples[2];
    uint64_t total;
    TRY(load(sim, image, contract, address, operands));
    TRY(link_symbol(image, "caller", &entry));
    if (sim_call(sim, 0, 0, entry, &total) != SIM_RETURNED) {
        const SimFault *fault = sim_fault(sim);
        return status_error("context %u at 0x%x, cycle %llu: %s: %s", fault->context, fault->pc,
                            (unsigned long long)fault->cycle, fault->instruction, fault->message);
    }
    TRY(sim_read(sim, 0, SAMPLES, samples, sizeof samples));
    *cycles = samples[1] - samples[0];
    for (uint32_t i = 0; i < contract->operand_count; i++)
        TRY(sim_read(sim, 0, address[i], operands[i], contract->operands[i].bytes));
    return STATUS_OK;
}

Status kernel_tile_run(const KernelSpec *spec, uint8_t *const *operands, uint64_t *cycles)
{
    KernelContract contract;
    TRY(kernel_contract(spec, &contract));
    uint32_t address[KERNEL_OPERANDS];
    TRY(place(&contract, address));
    Arena arena = {0};
    LinkImage image;
    Sim *sim = NULL;
    SimOptions options = {.tiles = 1, .threads = 1, .max_cycles = MAX_CYCLES};
    Status status = link_caller(&arena, spec, &contract, address, &image);
    if (status_ok(status))
        status = sim_create(&options, &sim);
    if (status_ok(status))
        status = call(sim, &image, &contract, address, operands, cycles);
    if (sim)
        sim_destroy(sim);
    arena_free(&arena);
    return status;
}
