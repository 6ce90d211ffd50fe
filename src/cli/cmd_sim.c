/* cmd_sim.c - ipu-stack sim: one function of a source or object on one simulated tile.
 *
 * The file is linked at a base, its entry called as the runtime would (return address in $m10,
 * stack in $m11, worker bases set), and what came of it is printed: for the author of a kernel. */
#include "cli/tools.h"

#include "sim/sim.h"

#include <errno.h>
#include <string.h>

enum { DEFAULT_BASE = 0x4c100, DEFAULT_MAX_CYCLES = 100000000, CONTEXTS = 1 + TILE_WORKERS };
enum { AFTER_STATE = 0x58700 }; /* past the runtime state and stacks, rounded up */

typedef struct Request {
    const char *path, *entry, *mode, *trace, *stop_at;
    uint64_t base, max_cycles;
    TextList set, load, fill, dump, defines, folders;
    bool json, verify, cpp;
} Request;

typedef struct Session {
    Arena arena;
    Request request;
    LinkImage image;
    Sim *sim;
    uint32_t entry, context;
    SimContext before, after;
    SimContext traced[CONTEXTS];
    FILE *trace;
    uint64_t cycles;
    uint64_t bundles[CONTEXTS]; /* before the call */
    SimStop stop;
} Session;

static const char *context_name(uint32_t context)
{
    static const char *const names[] = {"supervisor", "worker0", "worker1", "worker2",
                                        "worker3",    "worker4", "worker5"};
    return names[context];
}

/* --- values and addresses on the command line */

static bool parse_number(const char *text, uint64_t *out)
{
    char *end;
    bool negative = *text == '-';
    errno = 0;
    unsigned long long value = strtoull(text + negative, &end, 0);
    if (errno || end == text + negative || *end || text[negative] == '-')
        return false;
    *out = negative ? 0 - value : value;
    return true;
}

/* A number or a symbol of the program. */
static Status parse_value(const Session *session, const char *option, const char *text,
                          uint64_t *out)
{
    uint32_t address;
    if (parse_number(text, out))
        return STATUS_OK;
    if (status_discard(link_symbol(&session->image, text, &address)))
        return status_error("%s: %s is neither a number nor a symbol of %s", option, text,
                            session->request.path);
    *out = address;
    return STATUS_OK;
}

static Status parse_address(const Session *session, const char *option, const char *text,
                            uint32_t *out)
{
    uint64_t value;
    TRY(parse_value(session, option, text, &value));
    if (value < SRAM_BASE || value >= SRAM_END)
        return status_error("%s: 0x%llx is not inside the memory 0x%x..0x%x", option,
                            (unsigned long long)value, SRAM_BASE, SRAM_END);
    *out = (uint32_t)value;
    return STATUS_OK;
}

/* "LEFT=RIGHT" or "LEFT": *right is NULL then. */
static const char *split(Arena *arena, const char *text, char separator, const char **right)
{
    const char *at = strchr(text, separator);
    *right = at ? at + 1 : NULL;
    return at ? arena_printf(arena, "%.*s", (int)(at - text), text) : text;
}

/* "ADDR:LEN" */
static Status parse_range(Session *session, const char *option, const char *text, uint32_t *address,
                          uint32_t *bytes)
{
    const char *length, *start = split(&session->arena, text, ':', &length);
    uint64_t count;
    if (!length || !parse_number(length, &count))
        return status_error("%s takes ADDR:LEN: %s", option, text);
    TRY(parse_address(session, option, start, address));
    if (count > SRAM_END - *address)
        return status_error("%s: 0x%x and %llu bytes run over the end of memory", option, *address,
                            (unsigned long long)count);
    *bytes = (uint32_t)count;
    return STATUS_OK;
}

/* --- setting up */

static Status link_program(Session *session, const AsObject *object)
{
    uint32_t base = (uint32_t)session->request.base;
    if (base % 4)
        return status_error("--base: memory is addressed in words of 4 bytes: 0x%x is no multiple",
                            base);
    LinkRange low[] = {{base, STATE_BASE}, {AFTER_STATE, SRAM_END}}, high[] = {{base, SRAM_END}};
    const AsObject *objects[] = {object};
    const char *names[] = {session->request.path};
    LinkInput input = {.objects = objects,
                       .object_names = names,
                       .object_count = 1,
                       .ranges = base < STATE_BASE ? low : high,
                       .range_count = base < STATE_BASE ? 2 : 1};
    TRY(obj_link(&session->arena, &input, &session->image));
    for (uint32_t i = 0; i < session->image.segment_count; i++) {
        const LinkSegment *segment = &session->image.segments[i];
        TRY(sim_write(session->sim, 0, segment->address, segment->data, segment->bytes));
    }
    return STATUS_OK;
}

/* Without --entry: the first global symbol in code, else the first code. */
static Status find_entry(Session *session)
{
    const LinkImage *image = &session->image;
    if (session->request.entry) {
        uint64_t value;
        TRY(parse_value(session, "--entry", session->request.entry, &value));
        session->entry = (uint32_t)value;
        return STATUS_OK;
    }
    for (uint32_t s = 0; s < image->segment_count; s++) {
        const LinkSegment *code = &image->segments[s];
        if (!code->executable)
            continue;
        session->entry = code->address;
        for (uint32_t i = 0; i < image->symbol_count; i++) {
            const LinkSymbol *symbol = &image->symbols[i];
            if (symbol->global && symbol->address - code->address < code->bytes) {
                session->entry = symbol->address;
                break;
            }
        }
        return STATUS_OK;
    }
    return status_error("%s holds no code", session->request.path);
}

/* Without --mode: the first instruction from the entry on that only one mode has tells. */
static bool is_worker_code(Session *session)
{
    for (uint32_t address = session->entry; address < EXECUTABLE_END; address += 4) {
        uint32_t word = 0;
        if (status_discard(sim_read(session->sim, 0, address, &word, 4)))
            return false;
        Insn insn;
        bool worker = isa_decode(word, 0, MODE_WORKER, &insn);
        bool supervisor = isa_decode(word, 0, MODE_SUPERVISOR, &insn) && !insn.bundled;
        if (worker != supervisor)
            return worker;
        if (!worker)
            return false;
    }
    return false;
}

static Status find_mode(Session *session)
{
    const char *mode = session->request.mode;
    if (mode)
        session->context = strcmp(mode, "worker") == 0;
    else
        session->context = is_worker_code(session);
    return STATUS_OK;
}

static bool parse_index(const char *text, unsigned limit, unsigned *out)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    *out = (unsigned)value;
    return end != text && !*end && *text != '-' && value < limit;
}

/* $m0, $a3, $AACC5, $sp, a CSR name or CWEI_m_n; the $ may be left out. */
static Status set_register(Session *session, const char *item)
{
    const char *text, *name = split(&session->arena, item, '=', &text);
    uint64_t value;
    if (!text)
        return status_error("--set takes REG=VALUE: %s", item);
    TRY(parse_value(session, "--set", text, &value));
    IsaMode mode = session->context ? MODE_WORKER : MODE_SUPERVISOR;
    SimContext *registers = &session->before;
    name += *name == '$';
    unsigned index;
    bool wide = strncmp(name, "CWEI_", 5) == 0;
    if (!wide && value > UINT32_MAX && value < (uint64_t)INT32_MIN)
        return status_error("--set %s: the value has more than 32 bits", item);
    if (name[0] == 'm' && parse_index(name + 1, 12, &index)) {
        registers->m[index] = (uint32_t)value;
    } else if (session->context && name[0] == 'a' && parse_index(name + 1, 8, &index)) {
        registers->a[index] = (uint32_t)value;
    } else if (session->context && strncmp(name, "AACC", 4) == 0 &&
               parse_index(name + 4, 32, &index)) {
        registers->acc[index] = (uint32_t)value;
    } else if (strcmp(name, "m12") == 0 || strcmp(name, "mworker_base") == 0) {
        registers->m[12] = registers->csr[3] = (uint32_t)value;
    } else if (strcmp(name, "m13") == 0 || strcmp(name, "mvertex_base") == 0) {
        registers->m[13] = registers->csr[2] = (uint32_t)value;
    } else if (wide && isa_csr_number(name, MODE_SUPERVISOR) >= 0) {
        sim_set_weight(session->sim, 0, (uint32_t)isa_csr_number(name, MODE_SUPERVISOR), value);
    } else {
        int number = isa_csr_number(name, mode);
        if (number < 0)
            return status_error("--set: the %s has no register %s",
                                session->context ? "worker" : "supervisor", name);
        sim_set_context(session->sim, 0, session->context, registers);
        if (!sim_set_csr(session->sim, 0, session->context, (uint32_t)number, (uint32_t)value))
            return status_error("--set: %s can not be set", name);
        sim_get_context(session->sim, 0, session->context, registers);
    }
    sim_set_context(session->sim, 0, session->context, registers);
    return STATUS_OK;
}

static Status set_memory(Session *session)
{
    const Request *request = &session->request;
    for (size_t i = 0; i < request->fill.count; i++) {
        const char *byte, *range = split(&session->arena, request->fill.items[i], '=', &byte);
        uint32_t address, bytes;
        uint64_t value;
        TRY(parse_range(session, "--fill", range, &address, &bytes));
        if (!byte || !parse_number(byte, &value) || value > 255)
            return status_error("--fill takes ADDR:LEN=BYTE: %s", request->fill.items[i]);
        uint8_t *data = arena_alloc(&session->arena, bytes + 1u, 1);
        memset(data, (int)value, bytes);
        TRY(sim_write(session->sim, 0, address, data, bytes));
    }
    for (size_t i = 0; i < request->load.count; i++) {
        const char *path, *start = split(&session->arena, request->load.items[i], '=', &path);
        uint32_t address;
        Bytes data;
        if (!path)
            return status_error("--load takes ADDR=FILE: %s", request->load.items[i]);
        TRY(parse_address(session, "--load", start, &address));
        TRY(file_read(path, SRAM_BYTES, &data));
        Status status = sim_write(session->sim, 0, address, data.data, (uint32_t)data.count);
        bytes_free(&data);
        TRY(status_context(status, "--load %s", path));
    }
    return STATUS_OK;
}

/* --- trace */

/* The registers that an instruction names as results, whether they changed or not. */
static void trace_results(FILE *out, const Insn *insn, const SimContext *after)
{
    const FormInfo *form = isa_form((Form)insn->form);
    for (int i = 0; i < form->operand_count; i++) {
        const OperandInfo *operand = &form->operands[i];
        bool main = operand->kind == OPERAND_M || operand->kind == OPERAND_M2;
        bool pair = operand->kind == OPERAND_M2 || operand->kind == OPERAND_A2;
        bool aux = operand->kind == OPERAND_A || operand->kind == OPERAND_A2 ||
                   operand->kind == OPERAND_A4;
        int count = operand->kind == OPERAND_A4 ? 4 : pair ? 2 : 1;
        if (!operand->output || !(main || aux))
            continue;
        for (int k = insn->operand[i]; k < insn->operand[i] + count && k < 16; k++)
            fprintf(out, " $%c%d=0x%08x", main ? 'm' : 'a', k, main ? after->m[k] : after->a[k]);
    }
}

static bool moves_by_itself(uint32_t csr)
{
    return csr == 0x00 || csr == 0x60 || csr == 0x61 || csr == 0x72; /* PC, counters, CTXT_STS */
}

static void trace_state(FILE *out, IsaMode mode, const SimContext *before, const SimContext *after)
{
    for (uint32_t i = 0; i < countof(after->acc); i++)
        if (before->acc[i] != after->acc[i])
            fprintf(out, " $AACC%u=0x%08x", i, after->acc[i]);
    for (uint32_t i = 0; i < countof(after->csr); i++) {
        const char *name = isa_csr_name(i, mode);
        if (name && !moves_by_itself(i) && before->csr[i] != after->csr[i])
            fprintf(out, " %s=0x%08x", name, after->csr[i]);
    }
}

static void trace_line(void *context, uint32_t tile, uint32_t executing, uint64_t cycle,
                       uint32_t pc, const Insn *first, const Insn *second, const SimContext *after)
{
    Session *session = context;
    (void)tile;
    IsaMode mode = executing ? MODE_WORKER : MODE_SUPERVISOR;
    char one[96], two[96], text[200];
    isa_print(first, mode, one, sizeof one);
    if (second) {
        isa_print(second, mode, two, sizeof two);
        snprintf(text, sizeof text, "{ %s; %s }", one, two);
    }
    SimContext *before = &session->traced[executing];
    fprintf(session->trace, "%8llu %-10s 0x%05x  %-44s", (unsigned long long)cycle,
            context_name(executing), pc, second ? text : one);
    trace_results(session->trace, first, after);
    if (second)
        trace_results(session->trace, second, after);
    trace_state(session->trace, mode, before, after);
    fputc('\n', session->trace);
    *before = *after;
}

static Status start_trace(Session *session)
{
    const char *path = session->request.trace;
    if (!path)
        return STATUS_OK;
    if (strcmp(path, "-") == 0) /* next to a JSON object there is no place for it */
        session->trace = session->request.json ? stderr : stdout;
    else
        session->trace = fopen(path, "w");
    if (!session->trace)
        return status_error("%s: %s", path, strerror(errno));
    for (uint32_t i = 0; i < CONTEXTS; i++)
        sim_get_context(session->sim, 0, i, &session->traced[i]);
    session->traced[session->context].m[10] = SIM_RETURN_ADDRESS;
    sim_trace(session->sim, trace_line, session);
    return STATUS_OK;
}

/* --- results */

static const char *stop_name(const Session *session)
{
    if (session->stop == SIM_FAULT)
        return sim_fault(session->sim)->type == EXCEPTION_IBRK ? "breakpoint" : "fault";
    return session->stop == SIM_COMPLETE ? "complete" : session->context ? "exited" : "returned";
}

static uint64_t bundles_of(const Session *session, uint32_t context)
{
    SimContext state;
    sim_get_context(session->sim, 0, context, &state);
    return state.bundles - session->bundles[context];
}

static void print_changes(const Session *session)
{
    const SimContext *before = &session->before, *after = &session->after;
    IsaMode mode = session->context ? MODE_WORKER : MODE_SUPERVISOR;
    for (int i = 0; i < 16; i++)
        if (before->m[i] != after->m[i])
            printf("$m%d=0x%08x\n", i, after->m[i]);
    for (int i = 0; i < 16; i++)
        if (before->a[i] != after->a[i])
            printf("$a%d=0x%08x\n", i, after->a[i]);
    for (int i = 0; i < 32; i++)
        if (before->acc[i] != after->acc[i])
            printf("$AACC%d=0x%08x\n", i, after->acc[i]);
    for (uint32_t i = 0; i < countof(after->csr); i++) {
        const char *name = isa_csr_name(i, mode);
        if (name && !moves_by_itself(i) && before->csr[i] != after->csr[i])
            printf("%s=0x%08x\n", name, after->csr[i]);
    }
}

static void print_text(const Session *session)
{
    const SimFault *fault = sim_fault(session->sim);
    printf("%s at 0x%x: %s\n", context_name(session->context), session->entry, stop_name(session));
    if (session->stop == SIM_FAULT) {
        printf("fault type=%s context=%s pc=0x%05x cycle=%llu\n",
               fault->type ? target_exception_name(fault->type) : "none",
               context_name(fault->context), fault->pc, (unsigned long long)fault->cycle);
        printf("  %s\n  %s\n", fault->instruction, fault->message);
    }
    printf("cycles=%llu\n", (unsigned long long)session->cycles);
    for (uint32_t i = 0; i < CONTEXTS; i++)
        if (bundles_of(session, i))
            printf("bundles %s=%llu\n", context_name(i),
                   (unsigned long long)bundles_of(session, i));
    print_changes(session);
}

static json_t *hex(uint32_t value)
{
    return json_sprintf("0x%08x", value);
}

static json_t *json_registers(const Session *session)
{
    json_t *registers = json_object();
    char name[16];
    for (int i = 0; i < 16; i++) {
        snprintf(name, sizeof name, "$m%d", i);
        json_object_set_new(registers, name, hex(session->after.m[i]));
    }
    for (int i = 0; session->context && i < 16; i++) {
        snprintf(name, sizeof name, "$a%d", i);
        json_object_set_new(registers, name, hex(session->after.a[i]));
    }
    for (int i = 0; session->context && i < 32; i++) {
        snprintf(name, sizeof name, "$AACC%d", i);
        json_object_set_new(registers, name, hex(session->after.acc[i]));
    }
    return registers;
}

static json_t *json_csrs(const Session *session)
{
    json_t *csrs = json_object();
    IsaMode mode = session->context ? MODE_WORKER : MODE_SUPERVISOR;
    for (uint32_t i = 0; i < countof(session->after.csr); i++) {
        const char *name = isa_csr_name(i, mode);
        if (name)
            json_object_set_new(csrs, name, hex(session->after.csr[i]));
    }
    return csrs;
}

static json_t *json_fault(const Session *session)
{
    const SimFault *fault = sim_fault(session->sim);
    if (session->stop != SIM_FAULT || fault->type == EXCEPTION_IBRK)
        return json_null();
    return json_pack("{s:s, s:s, s:o, s:s, s:I, s:s}", "type",
                     fault->type ? target_exception_name(fault->type) : "NONE", "context",
                     context_name(fault->context), "pc", hex(fault->pc), "instruction",
                     fault->instruction, "cycle", (json_int_t)fault->cycle, "message",
                     fault->message);
}

static void print_json(const Session *session)
{
    json_t *bundles = json_object();
    for (uint32_t i = 0; i < CONTEXTS; i++)
        json_object_set_new(bundles, context_name(i),
                            json_integer((json_int_t)bundles_of(session, i)));
    json_t *object =
        json_pack("{s:I, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "cycles", (json_int_t)session->cycles,
                  "context", context_name(session->context), "stop", stop_name(session), "entry",
                  hex(session->entry), "bundles", bundles, "registers", json_registers(session),
                  "csrs", json_csrs(session), "fault", json_fault(session));
    json_dumpf(object, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(object);
}

static void print_memory(FILE *out, uint32_t address, const uint8_t *data, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i += 16) {
        fprintf(out, "0x%05x ", address + i);
        for (uint32_t k = i; k < bytes && k < i + 16; k++)
            fprintf(out, " %02x", data[k]);
        fputc('\n', out);
    }
}

/* To a file, or in hex to the terminal. */
static Status dump_memory(Session *session)
{
    const TextList *dumps = &session->request.dump;
    for (size_t i = 0; i < dumps->count; i++) {
        const char *path, *range = split(&session->arena, dumps->items[i], '=', &path);
        uint32_t address, bytes;
        TRY(parse_range(session, "--dump", range, &address, &bytes));
        const uint8_t *data = sim_memory(session->sim, 0) + (address - SRAM_BASE);
        if (path && strcmp(path, "-") != 0)
            TRY(file_write(path, data, bytes));
        else
            print_memory(session->request.json ? stderr : stdout, address, data, bytes);
    }
    return STATUS_OK;
}

/* --- the verb */

static Status prepare(Session *session)
{
    const Request *request = &session->request;
    AsObject object;
    SourceOptions options = {.cpp = request->cpp,
                             .defines = &request->defines,
                             .folders = &request->folders,
                             .supervisor =
                                 request->mode && strcmp(request->mode, "supervisor") == 0};
    TRY(tool_object(&session->arena, request->path, &options, &object));
    TRY(sim_create(
        &(SimOptions){
            .tiles = 1, .threads = 1, .verify = request->verify, .max_cycles = request->max_cycles},
        &session->sim));
    TRY(link_program(session, &object));
    TRY(find_entry(session));
    TRY(find_mode(session));
    TRY(set_memory(session));
    sim_get_context(session->sim, 0, session->context, &session->before);
    for (size_t i = 0; i < request->set.count; i++)
        TRY(set_register(session, request->set.items[i]));
    if (request->stop_at) {
        uint32_t address;
        TRY(parse_address(session, "--break", request->stop_at, &address));
        sim_break(session->sim, address);
    }
    return start_trace(session);
}

/* *status becomes 1 when the program faulted. */
static Status run(Session *session, int *status)
{
    TRY(prepare(session));
    for (uint32_t i = 0; i < CONTEXTS; i++) {
        SimContext state;
        sim_get_context(session->sim, 0, i, &state);
        session->bundles[i] = state.bundles;
    }
    session->before.m[10] = SIM_RETURN_ADDRESS;
    session->stop = sim_call(session->sim, 0, session->context, session->entry, &session->cycles);
    sim_get_context(session->sim, 0, session->context, &session->after);
    if (session->trace && session->trace != stdout && session->trace != stderr &&
        fclose(session->trace) != 0)
        return status_error("%s: %s", session->request.trace, strerror(errno));
    if (session->request.json)
        print_json(session);
    else
        print_text(session);
    const SimFault *fault = sim_fault(session->sim);
    *status = session->stop == SIM_FAULT && fault->type != EXCEPTION_IBRK;
    if (*status)
        fprintf(stderr, "ipu-stack sim: %s at 0x%05x in %s, cycle %llu: %s\n", fault->message,
                fault->pc, context_name(fault->context), (unsigned long long)fault->cycle,
                fault->instruction);
    return dump_memory(session);
}

/* "--trace" alone is "--trace=-": the option's value can be left out. */
static char **with_trace_value(Arena *arena, int argc, char **argv)
{
    char **copy = arena_array(arena, char *, (size_t)argc + 1);
    for (int i = 0; i < argc; i++)
        copy[i] = strcmp(argv[i], "--trace") == 0 ? arena_strdup(arena, "--trace=-") : argv[i];
    return copy;
}

int cmd_sim(int argc, char **argv)
{
    Session *session = xcalloc(1, sizeof *session);
    Request *request = &session->request;
    request->base = DEFAULT_BASE;
    request->max_cycles = DEFAULT_MAX_CYCLES;
    TextList files = {0};
    const Option options[] = {
        {"--entry", OPTION_TEXT, &request->entry, "SYMBOL",
         "what is called (default: the first global symbol in code)", 0, 0},
        {"--mode", OPTION_TEXT, &request->mode, "MODE",
         "supervisor or worker (default: what the code at the entry needs)", 0, 0},
        {"--set", OPTION_LIST, &request->set, "REG=VALUE", "a register or CSR of that context", 0,
         0},
        {"--load", OPTION_LIST, &request->load, "ADDR=FILE", "bytes of a file into memory", 0, 0},
        {"--fill", OPTION_LIST, &request->fill, "ADDR:LEN=BYTE", "one byte value into memory", 0,
         0},
        {"--dump", OPTION_LIST, &request->dump, "ADDR:LEN[=FILE]",
         "memory afterwards, to a file or in hex", 0, 0},
        {"--base", OPTION_NUMBER, &request->base, "ADDR", "link address (default 0x4c100)",
         SRAM_BASE, EXECUTABLE_END - 8},
        {"-D", OPTION_LIST, &request->defines, "NAME[=VALUE]", "symbol for the assembler", 0, 0},
        {"-I", OPTION_LIST, &request->folders, "DIR", "where .include looks", 0, 0},
        CPP_OPTION(request->cpp),
        {"--max-cycles", OPTION_NUMBER, &request->max_cycles, "N",
         "a longer run is a fault (default 100000000)", 1, (uint64_t)1 << 60},
        {"--trace", OPTION_TEXT, &request->trace, "[=FILE]", "a line for every bundle", 0, 0},
        {"--break", OPTION_TEXT, &request->stop_at, "ADDR|SYMBOL", "stop before it executes", 0, 0},
        {"--verify", OPTION_FLAG, &request->verify, "", "reads of memory never written are faults",
         0, 0},
        {"--json", OPTION_FLAG, &request->json, "", "one object instead of lines", 0, 0},
        {0},
    };
    const Command command = {"ipu-stack sim FILE.S|FILE.o [options]",
                             "Runs one function on one simulated tile until it returns or faults.",
                             options, 1, 1};
    int status =
        command_parse(&command, argc, with_trace_value(&session->arena, argc, argv), &files);
    if (status < 0 && request->mode && strcmp(request->mode, "worker") != 0 &&
        strcmp(request->mode, "supervisor") != 0) {
        fprintf(stderr, "ipu-stack sim: --mode is supervisor or worker, not %s\n", request->mode);
        status = 2;
    }
    if (status < 0) {
        request->path = files.items[0];
        Status result = run(session, &status);
        if (!status_ok(result))
            status = command_fail("sim", result);
    }
    sim_destroy(session->sim);
    TextList *lists[] = {&request->set,  &request->load,    &request->fill,
                         &request->dump, &request->defines, &request->folders};
    for (size_t i = 0; i < countof(lists); i++)
        array_free(lists[i]);
    array_free(&files);
    arena_free(&session->arena);
    array_release(session);
    return status;
}
