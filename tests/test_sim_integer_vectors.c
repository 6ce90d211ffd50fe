/* libraries: sim */
/* test_sim_integer_vectors.c - every row of tests/data/sim/integer.tsv: one instruction or bundle,
 * its inputs, and all that it changes.
 *
 * A row is assembled, put at its PC, executed as one step, and everything there is to see of the
 * tile (registers, CSRs, weights, the whole memory) must be as before but for what the row lists.
 */
#include "as/as.h"
#include "sim_program.h"

#include <ctype.h>
#include <string.h>

enum { CONTEXTS = 7, ROW_PC = 0x4c100, LOOP = 0x4f000, EXIT = 0x4f010 };

typedef struct Snapshot { /* of the tile */
    SimContext contexts[CONTEXTS];
    uint64_t weights[64];
    uint8_t memory[SRAM_BYTES];
} Snapshot;

typedef struct Row {
    char text[160], inputs[400], outputs[800];
    uint32_t line, context, pc;
    uint32_t active;       /* mask of workers that run already */
    int exception, status; /* -1: none */
    bool pc_given;
} Row;

static Snapshot before, after, expected;

static void take_snapshot(Sim *sim, Snapshot *snapshot)
{
    for (uint32_t i = 0; i < CONTEXTS; i++)
        sim_get_context(sim, 0, i, &snapshot->contexts[i]);
    for (uint32_t i = 0; i < 64; i++)
        snapshot->weights[i] = sim_get_weight(sim, 0, i);
    memcpy(snapshot->memory, sim_memory(sim, 0), SRAM_BYTES);
}

/* --- items of a row: "NAME=VALUE" */

static uint32_t set_memory(Snapshot *snapshot, uint32_t address, const char *bytes)
{
    uint32_t count = 0;
    for (char *end;; bytes = end, count++) {
        unsigned long byte = strtoul(bytes, &end, 16);
        if (end == bytes)
            break;
        assert_true(address - SRAM_BASE + count < SRAM_BYTES);
        snapshot->memory[address - SRAM_BASE + count] = (uint8_t)byte;
    }
    return count;
}

static void set_csr(Row *row, Snapshot *snapshot, const char *name, uint32_t value)
{
    uint32_t context = row->context;
    if (strcmp(name, "SSR") == 0)
        context = 0;
    int number = isa_csr_number(name, context ? MODE_WORKER : MODE_SUPERVISOR);
    assert_in_range(number, 0, 511);
    snapshot->contexts[context].csr[number] = value;
    if (context && (number == 2 || number == 3)) /* also $m13 and $m12 */
        snapshot->contexts[context].m[number == 2 ? 13 : 12] = value;
    if (!context && number >= 0x21 && number <= 0x26) {
        snapshot->contexts[number - 0x20].csr[3] = value;
        snapshot->contexts[number - 0x20].m[12] = value;
    }
}

static void set_range(Row *row, Snapshot *snapshot, const char *name, const char *value)
{
    unsigned first, last;
    int count = sscanf(name + 5, "%u..%u", &first, &last);
    if (count == 1)
        last = first;
    uint64_t number = strtoull(value, NULL, 0);
    assert_true(count >= 1 && first <= last && last < 64);
    for (unsigned i = first; i <= last; i++) {
        if (name[0] == 'C')
            snapshot->weights[i] = number;
        else
            snapshot->contexts[row->context].acc[i] = (uint32_t)number;
    }
}

/* "worker2: pc=0x4c200 VERTEX_BASE=0x5c190" */
static void set_launched(Row *row, Snapshot *snapshot, const char *item)
{
    unsigned worker, pc, base;
    if (sscanf(item, "worker%u: pc=%x VERTEX_BASE=%x", &worker, &pc, &base) != 3)
        fail_msg("line %u: %s", row->line, item);
    SimContext *context = &snapshot->contexts[1 + worker];
    context->pc = pc;
    context->csr[0] = pc;
    context->csr[2] = context->m[13] = base;
}

static void apply_item(Row *row, Snapshot *snapshot, char *item)
{
    SimContext *context = &snapshot->contexts[row->context];
    if (strncmp(item, "worker", 6) == 0 && isdigit((unsigned char)item[6])) {
        set_launched(row, snapshot, item);
        return;
    }
    char *value = strchr(item, '=');
    if (!value)
        fail_msg("line %u: %s", row->line, item);
    *value++ = 0;
    uint32_t number = (uint32_t)strtoul(value, NULL, 0);
    if (item[0] == '$' && (item[1] == 'm' || item[1] == 'a')) {
        unsigned which = (unsigned)atoi(item + 2);
        assert_in_range(which, 0, 15);
        (item[1] == 'm' ? context->m : context->a)[which] = number;
    } else if (strncmp(item, "mem[", 4) == 0) {
        set_memory(snapshot, (uint32_t)strtoul(item + 4, NULL, 0), value);
    } else if (strncmp(item, "CWEI[", 5) == 0 || strncmp(item, "AACC[", 5) == 0) {
        set_range(row, snapshot, item, value);
    } else if (strcmp(item, "pc") == 0) {
        row->pc = number;
        row->pc_given = true;
    } else if (strcmp(item, "exception") == 0) {
        row->exception = atoi(strstr(value, "ETYPE") + 5);
    } else if (strcmp(item, "status") == 0) {
        row->status = (int)number;
    } else if (strcmp(item, "SSR.RAERR") == 0) {
        snapshot->contexts[0].csr[1] |= number << 3;
    } else if (strcmp(item, "active workers") == 0) {
        for (char *at = value, *end; (number = (uint32_t)strtoul(at, &end, 10)), end != at;
             at = end)
            row->active |= 1u << number;
    } else if (strcmp(item, "mode") != 0 && strcmp(item, "worker") != 0) {
        set_csr(row, snapshot, item, number);
    }
}

static void apply_items(Row *row, Snapshot *snapshot, const char *items)
{
    char copy[800];
    snprintf(copy, sizeof copy, "%s", items);
    char *rest = copy;
    for (char *item; (item = strsep(&rest, ";"));) {
        while (*item == ' ')
            item++;
        if (*item)
            apply_item(row, snapshot, item);
    }
}

/* --- running */

static void assemble_row(const Row *row, uint32_t words[2], uint32_t *count)
{
    Arena arena = {0};
    AsObject object;
    char text[240];
    int length =
        snprintf(text, sizeof text, "%s\n.allow_invalid_repeat\n%s\n",
                 row->context ? ".worker" : ".supervisor", row->text); /* rpt without body */
    AsOptions options = {.supervisor = row->context == 0};
    Status status = assemble(&arena, "row", text, (size_t)length, &options, &object);
    if (!status_ok(status))
        fail_msg("line %u: %s", row->line, status_message(status));
    *count = 0;
    for (uint32_t i = 0; i < object.section_count; i++)
        if (object.sections[i].bytes) {
            uint32_t bytes = object.sections[i].bytes;
            assert_true(bytes == 4 || bytes == 8);
            memcpy(words, object.sections[i].data, bytes);
            *count = bytes / 4;
        }
    assert_in_range(*count, 1, 2);
    arena_free(&arena);
}

static void install(Sim *sim, const Snapshot *snapshot)
{
    memcpy(sim_memory(sim, 0), snapshot->memory, SRAM_BYTES);
    for (uint32_t i = 0; i < 64; i++)
        sim_set_weight(sim, 0, i, snapshot->weights[i]);
    for (uint32_t i = 0; i < CONTEXTS; i++)
        sim_set_context(sim, 0, i, &snapshot->contexts[i]);
}

/* Supervisor code that starts the row's running workers (an endless loop) and lets the ones below
 * them exit, then comes to the row's PC. */
static uint32_t start_workers(Sim *sim, const Row *row)
{
    Program loop = {.address = LOOP}, exit = {.address = EXIT}, code = {.address = 0x4e000};
    EMIT(&loop, bri_mmmn_zi, LOOP);
    EMIT(&exit, exitz_mmmn, MZERO);
    EMIT(&code, setzi_mmmn_zi, 8, LOOP);
    EMIT(&code, setzi_mmmn_zi, 9, EXIT);
    for (uint32_t worker = 0; row->active >> worker; worker++)
        EMIT(&code, run_mmmn_zi, row->active >> worker & 1 ? 8 : 9, MZERO, ISA_REGION_BASE);
    EMIT(&code, delay, 60);
    EMIT(&code, bri_mmmn_zi, (int32_t)row->pc);
    load_program(sim, 0, &loop);
    load_program(sim, 0, &exit);
    load_program(sim, 0, &code);
    return code.address;
}

static SimStop execute(Sim *sim, const Row *row, uint32_t size)
{
    if (!row->active) {
        take_snapshot(sim, &before);
        return sim_step(sim, 0, row->context, row->pc);
    }
    uint64_t cycles;
    uint32_t entry = start_workers(sim, row);
    sim_break(sim, row->pc);
    assert_int_equal(sim_call(sim, 0, 0, entry, &cycles), SIM_FAULT);
    take_snapshot(sim, &before);
    before.contexts[0].csr[1] = 0; /* the breakpoint left its type there */
    sim_break(sim, row->pc + size);
    sim_call(sim, 0, 0, entry, &cycles);
    return sim_fault(sim)->type == EXCEPTION_IBRK ? SIM_RETURNED : SIM_FAULT;
}

static void same_words(const Row *row, const char *what, uint32_t context, const uint32_t *found,
                       const uint32_t *wanted, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (found[i] != wanted[i])
            fail_msg("line %u: %s: context %u %s[0x%x] is 0x%08x, not 0x%08x", row->line, row->text,
                     context, what, i, found[i], wanted[i]);
}

static void compare(const Row *row)
{
    for (uint32_t i = 0; i < CONTEXTS; i++) {
        SimContext *found = &after.contexts[i], *wanted = &expected.contexts[i];
        /* The PC is checked by itself; counters and context states change with time. */
        static const uint16_t PASSING[] = {0x00, 0x60, 0x61, 0x72};
        for (size_t k = 0; k < countof(PASSING); k++)
            wanted->csr[PASSING[k]] = found->csr[PASSING[k]];
        if (row->active) /* breakpoints leave a type; the loop turns */
            found->csr[1] &= ~0xf0u | (row->exception > 0 ? 0xf0u : 0);
        same_words(row, "$m", i, found->m, wanted->m, 16);
        same_words(row, "$a", i, found->a, wanted->a, 16);
        same_words(row, "AACC", i, found->acc, wanted->acc, 32);
        same_words(row, "CSR", i, found->csr, wanted->csr, 512);
        if (i != row->context && found->pc != wanted->pc)
            fail_msg("line %u: worker %u is at 0x%x", row->line, i - 1, found->pc);
    }
    assert_memory_equal(after.weights, expected.weights, sizeof after.weights);
    if (memcmp(after.memory, expected.memory, SRAM_BYTES) != 0) {
        uint32_t at = 0;
        while (after.memory[at] == expected.memory[at])
            at++;
        fail_msg("line %u: %s: memory 0x%x is 0x%02x, not 0x%02x", row->line, row->text,
                 SRAM_BASE + at, after.memory[at], expected.memory[at]);
    }
}

static void check_fault(Row *row, Sim *sim, SimStop stop)
{
    const SimFault *fault = sim_fault(sim);
    if (row->exception < 0) {
        if (stop == SIM_FAULT)
            fail_msg("line %u: %s: %s", row->line, row->text, fault->message);
        return;
    }
    if (stop != SIM_FAULT || fault->type != (uint32_t)row->exception)
        fail_msg("line %u: %s: no exception %d but %s", row->line, row->text, row->exception,
                 fault->message);
    assert_int_equal(fault->context, row->context);
    expected.contexts[row->context].csr[1] |= (uint32_t)row->exception << 4;
    if (row->active) /* a bad runall: the workers fault too */
        for (uint32_t worker = 0; worker < 6; worker++)
            if (row->active >> worker & 1)
                expected.contexts[1 + worker].csr[1] |= (uint32_t)row->exception << 4;
}

static void prepare(Row *row, Snapshot *snapshot, Sim *sim)
{
    take_snapshot(sim, snapshot);
    if (strstr(row->outputs, "AACC"))
        for (int i = 0; i < 32; i++)
            snapshot->contexts[row->context].acc[i] = 0x3f800000;
    if (strstr(row->outputs, "CWEI[0.."))
        for (int i = 0; i < 64; i++)
            snapshot->weights[i] = 0x1111111111111111;
    if (strncmp(row->text, "exit", 4) == 0) /* the status is visible through the consensus bit */
        snapshot->contexts[0].csr[1] = 1;
    if (!row->context)
        for (int i = 0; i < 6; i++)
            snapshot->contexts[1 + i].pc = 0;
    apply_items(row, snapshot, row->inputs);
}

static void run_row(Row *row)
{
    static Snapshot initial;
    Sim *sim = one_tile();
    row->pc = ROW_PC;
    row->exception = row->status = -1;
    const char *worker = strstr(row->inputs, "worker=");
    row->context = strstr(row->inputs, "mode=supervisor") ? 0 : worker ? 1 + atoi(worker + 7) : 1;
    prepare(row, &initial, sim);
    uint32_t words[2], count;
    assemble_row(row, words, &count);
    memcpy(initial.memory + (row->pc - SRAM_BASE), words, 4 * count);
    install(sim, &initial);
    SimStop stop = execute(sim, row, 4 * count);
    take_snapshot(sim, &after);
    expected = before;
    row->pc_given = false;
    apply_items(row, &expected, row->outputs);
    check_fault(row, sim, stop);
    if (row->status >= 0)
        expected.contexts[0].csr[1] = (uint32_t)row->status;
    compare(row);
    if (row->pc_given)
        assert_int_equal(after.contexts[row->context].pc, row->pc);
    sim_destroy(sim);
}

static void every_row_holds(void **state)
{
    (void)state;
    FILE *file = fopen(SOURCE_DIR "/tests/data/sim/integer.tsv", "r");
    assert_non_null(file);
    char line[2048];
    uint32_t number = 0, rows = 0;
    while (fgets(line, sizeof line, file)) {
        if (++number == 1)
            continue;
        line[strcspn(line, "\n")] = 0;
        char *rest = line, *fields[4] = {0};
        for (int i = 0; i < 4; i++)
            fields[i] = strsep(&rest, "\t");
        assert_non_null(fields[3]);
        Row row = {.line = number};
        snprintf(row.text, sizeof row.text, "%s", fields[0]);
        snprintf(row.inputs, sizeof row.inputs, "%s", fields[1]);
        snprintf(row.outputs, sizeof row.outputs, "%s", fields[2]);
        run_row(&row);
        rows++;
    }
    fclose(file);
    assert_int_equal(rows, 388);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_holds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
