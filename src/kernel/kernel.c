/* kernel.c - the table of families, and what is the same for all of them.
 *
 * Everything here goes through KernelFamilyInfo; a new family is a line in families.def. */
#include "kernel/family.h"

#include <string.h>

static const KernelFamilyInfo *const families[KERNEL_FAMILIES] = {
#define FAMILY(upper, lower) [KERNEL_##upper] = &kernel_family_##lower,
#include "kernel/families.def"
#undef FAMILY
};

const KernelFamilyInfo *kernel_family(KernelFamily family)
{
    return (unsigned)family < KERNEL_FAMILIES ? families[family] : NULL;
}

const char *kernel_family_name(KernelFamily family)
{
    const KernelFamilyInfo *info = kernel_family(family);
    return info ? info->name : "unknown";
}

bool kernel_family_find(const char *name, KernelFamily *out)
{
    for (uint32_t i = 0; i < KERNEL_FAMILIES; i++)
        if (families[i] && strcmp(families[i]->name, name) == 0) {
            *out = (KernelFamily)i;
            return true;
        }
    return false;
}

const char *kernel_parameter_name(KernelFamily family, uint32_t index)
{
    const KernelFamilyInfo *info = kernel_family(family);
    const char *name = info && index < KERNEL_PARAMETERS ? info->parameters[index] : NULL;
    return name && *name ? name : NULL;
}

/* Every variant has a symbol of its own, made of the values of its defines: objects.c gives the
 * entry of the assembled source this name. */
static void name_variant(KernelContract *contract)
{
    size_t used = strlen(contract->symbol), size = sizeof contract->symbol;
    char *end = contract->symbol + used;
    for (uint32_t i = 0; i < contract->define_count && used < size; i++) {
        int64_t value = contract->defines[i].value;
        used +=
            (size_t)snprintf(contract->symbol + used, size - used, value < 0 ? "_m%lld" : "_%lld",
                             (long long)(value < 0 ? -value : value));
    }
    if (used >= size) {
        ContentKey key = content_key(contract->defines, sizeof contract->defines);
        snprintf(end, size - (size_t)(end - contract->symbol), "_%s", key.hex);
    }
}

Status kernel_contract(const KernelSpec *spec, KernelContract *out)
{
    const KernelFamilyInfo *info = kernel_family(spec->family);
    if (!info)
        return status_error("no kernel family %u", spec->family);
    memset(out, 0, sizeof *out);
    snprintf(out->symbol, sizeof out->symbol, "ipu_%s", info->name);
    for (uint32_t i = 0; i < KERNEL_OPERANDS; i++)
        out->operands[i].in_place = -1;
    Status status = info->contract(spec, out);
    if (!status_ok(status))
        return status_context(status, "kernel %s", info->name);
    name_variant(out);
    return STATUS_OK;
}

uint64_t kernel_cycles(const KernelSpec *spec)
{
    const KernelFamilyInfo *info = kernel_family(spec->family);
    uint64_t worst = 0;
    for (uint32_t phase = 0; info && phase < TILE_WORKERS; phase++) {
        Clock clock = {.now = phase};
        info->cycles(spec, &clock);
        if (clock.now - phase > worst)
            worst = clock.now - phase;
        if (!clock.uneven) /* then the position does not matter */
            break;
    }
    return worst;
}

uint64_t kernel_useful_cycles(const KernelSpec *spec)
{
    const KernelFamilyInfo *info = kernel_family(spec->family);
    return info ? info->useful(spec) : 0;
}

Status kernel_reference(const KernelSpec *spec, void *const *operands)
{
    KernelContract contract;
    TRY(kernel_contract(spec, &contract));
    kernel_family(spec->family)->reference(spec, operands);
    return STATUS_OK;
}

void kernel_spec_print(Text *text, const KernelSpec *spec)
{
    const KernelFamilyInfo *info = kernel_family(spec->family);
    text_append(text, kernel_family_name(spec->family));
    for (uint32_t i = 0; info && i < KERNEL_PARAMETERS; i++)
        if (info->parameters[i] && *info->parameters[i])
            text_printf(text, " %s=%d", info->parameters[i], spec->p[i]);
}

bool kernel_spec_equal(const KernelSpec *a, const KernelSpec *b)
{
    return a->family == b->family && memcmp(a->p, b->p, sizeof a->p) == 0;
}

/* Contract helpers. */

void contract_operand(KernelContract *contract, const char *name, bool output, Precision precision,
                      Order order, uint32_t bytes, uint32_t align)
{
    OperandContract *operand = &contract->operands[contract->operand_count++];
    operand->name = name;
    operand->output = output;
    operand->precision = precision;
    operand->order = order;
    operand->bytes = bytes;
    operand->align = align;
}

void contract_scalar(KernelContract *contract, int32_t value)
{
    contract->scalars[contract->scalar_count++] = value;
}

void contract_define(KernelContract *contract, const char *name, int32_t value)
{
    snprintf(contract->defines[contract->define_count].name, sizeof contract->defines[0].name, "%s",
             name);
    contract->defines[contract->define_count++].value = value;
}

void contract_separate(KernelContract *contract, uint32_t a, uint32_t b)
{
    contract->separate[a] |= (uint16_t)(1u << b);
    contract->separate[b] |= (uint16_t)(1u << a);
}

Status spec_range(const KernelSpec *spec, uint32_t index, int64_t low, int64_t high, int64_t step)
{
    const char *name = kernel_family(spec->family)->parameters[index];
    int64_t value = spec->p[index];
    if (value < low || value > high)
        return status_error("%s = %lld is not in %lld..%lld", name, (long long)value,
                            (long long)low, (long long)high);
    if (value % step != 0)
        return status_error("%s = %lld is not a multiple of %lld", name, (long long)value,
                            (long long)step);
    return STATUS_OK;
}

/* The clock. free_at[s] is 0 for slots without a worker, else the cycle after the worker's last
 * bundle: a supervisor instruction issues in the first cycle whose slot is free (timing.md 1). */

static uint64_t next_free_cycle(const Clock *clock, uint64_t cycle)
{
    if (cycle > clock->last_exit)
        return cycle;
    uint64_t earliest = UINT64_MAX;
    for (uint32_t slot = 0; slot < TILE_WORKERS; slot++) {
        uint64_t from = cycle > clock->free_at[slot] ? cycle : clock->free_at[slot];
        from += (slot + TILE_WORKERS - from % TILE_WORKERS) % TILE_WORKERS;
        earliest = from < earliest ? from : earliest;
    }
    return earliest;
}

void clock_issue(Clock *clock, uint32_t count)
{
    if (clock->now > clock->last_exit) {
        clock->now += count;
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        clock->now = next_free_cycle(clock, clock->now) + 1;
}

void clock_depend(Clock *clock, uint32_t back)
{
    if (back < TIMING_RESULT)
        clock->now += TIMING_RESULT - back;
}

void clock_at_least(Clock *clock, uint64_t cycle)
{
    if (clock->now < cycle)
        clock->now = cycle;
}

void clock_branch(Clock *clock)
{
    clock->now = next_free_cycle(clock, clock->now) + TIMING_BRANCH;
}

void clock_launch(Clock *clock, const uint64_t bundles[TILE_WORKERS])
{
    uint64_t launch = next_free_cycle(clock, clock->now), first = launch + TIMING_LAUNCH;
    for (uint32_t w = 0; w < TILE_WORKERS; w++) {
        uint64_t start = first + (w + TILE_WORKERS - first % TILE_WORKERS) % TILE_WORKERS;
        uint64_t exit = start + TILE_WORKERS * (bundles[w] - 1);
        clock->free_at[w] = exit + 1;
        clock->uneven |= bundles[w] != bundles[0];
        if (exit > clock->last_exit)
            clock->last_exit = exit;
    }
    clock->now = launch + 1;
}

void clock_sync(Clock *clock)
{
    uint64_t issued = next_free_cycle(clock, clock->now) + 1;
    uint64_t joined = clock->last_exit ? clock->last_exit + TIMING_LOCAL_SYNC : 0;
    clock->now = issued > joined ? issued : joined;
}

void clock_run_all(Clock *clock, uint64_t bundles)
{
    uint64_t each[TILE_WORKERS];
    for (uint32_t w = 0; w < TILE_WORKERS; w++)
        each[w] = bundles;
    clock_launch(clock, each);
    clock_sync(clock);
}
