/* cmd_kernel.c - ipu-stack kernel list; ipu-stack kernel run NAME: one of our kernels on one tile.
 *
 * The very object that a build links for the specialisation runs with random data; cycles are those
 * that the card's sampling would read; the error is taken against an evaluation in F64 of the same
 * data for gemm, against the kernel's host reference for the others. */
#include "cli/cli.h"
#include "cli/kernel_parameters.h"
#include "cli/kernel_tile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Request {
    const char *precision, *weights, *output;
    uint64_t rows, inner, columns, seed;
    TextList set;
    bool accumulate, json;
} Request;

/* --- random operands: numbers that keep sums of products near 1 */

static double next_uniform(uint64_t *state) /* -1..1 */
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (double)(*state >> 11) * 0x1p-52 - 1;
}

static void fill_operand(const OperandContract *operand, uint64_t *state, uint8_t *data)
{
    uint32_t size = precision_bytes(operand->precision);
    for (uint32_t i = 0; i < operand->bytes / size; i++) {
        float value = (float)next_uniform(state);
        uint16_t half = half_from_float(value);
        uint8_t code = f143_from_float(16 * value);
        uint32_t word = (uint32_t)(*state >> 16);
        const void *from = operand->precision.kind == F16      ? (const void *)&half
                           : operand->precision.kind == F32    ? (const void *)&value
                           : operand->precision.kind == F8F143 ? (const void *)&code
                                                               : (const void *)&word;
        memcpy(data + (size_t)i * size, from, size);
    }
}

/* --- errors */

static double element(Precision precision, const uint8_t *data, size_t index)
{
    uint16_t half;
    float value;
    switch (precision.kind) {
    case F16:
        memcpy(&half, data + 2 * index, 2);
        return (double)half_to_float(half);
    case F32:
        memcpy(&value, data + 4 * index, 4);
        return (double)value;
    case F8F143:
        return (double)f143_to_float(data[index]);
    default:
        return load_u32(data + 4 * index);
    }
}

typedef struct RmsError {
    double difference, size; /* sums of squares */
} RmsError;

static void add_error(RmsError *error, double got, double wanted)
{
    error->difference += (got - wanted) * (got - wanted);
    error->size += wanted * wanted;
}

static double relative_error(const RmsError *error)
{
    return error->difference == 0 ? 0 : sqrt(error->difference / error->size);
}

/* Every element of the product in F64, from the operands as they lay in memory. */
static double gemm_error(const KernelSpec *spec, uint8_t *const *before, const uint8_t *product)
{
    size_t rows = (size_t)spec->p[GEMM_ROWS], columns = (size_t)spec->p[GEMM_COLUMNS];
    bool f8 = spec->p[GEMM_PRECISION] == F8F143;
    Precision precision = {.kind = f8 ? F8F143 : F16}, half = {.kind = F16};
    size_t width = f8 ? 32 : 16, groups = (size_t)spec->p[GEMM_INNER] / width;
    size_t pitch = (size_t)spec->p[GEMM_LEFT_PITCH];
    double scale = ldexp(1.0, spec->p[GEMM_SCALE]);
    RmsError error = {0};
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) {
            size_t at = spec->p[GEMM_PACKED]
                            ? 256 * (r / 16 * (columns / 16) + c / 16) + 16 * (r % 16) + c % 16
                            : 16 * (c / 16 * rows + r) + c % 16;
            double sum = 0;
            for (size_t k = 0; k < groups * width; k++) {
                size_t x = pitch ? r * pitch + k : width * (k / width * rows + r) + k % width;
                size_t w =
                    16 * width * (c / 16 * groups + k / width) + width * (c % 16) + k % width;
                sum += element(precision, before[1], x) * element(precision, before[2], w);
            }
            sum *= scale;
            if (spec->p[GEMM_ACCUMULATE])
                sum += element(half, before[0], at);
            add_error(&error, element(half, product, at), sum);
        }
    return relative_error(&error);
}

static Status reference_error(const KernelSpec *spec, const KernelContract *contract,
                              uint8_t *const *before, uint8_t *const *after, double *out)
{
    RmsError error = {0};
    TRY(kernel_reference(spec, (void *const *)before));
    for (uint32_t i = 0; i < contract->operand_count; i++) {
        const OperandContract *o = &contract->operands[i];
        for (size_t k = 0; o->output && k < o->bytes / precision_bytes(o->precision); k++)
            add_error(&error, element(o->precision, after[i], k),
                      element(o->precision, before[i], k));
    }
    *out = relative_error(&error);
    return STATUS_OK;
}

/* --- running */

typedef struct Figures {
    uint64_t cycles, formula;
    double error;
} Figures;

static Status run_kernel(const KernelSpec *spec, uint64_t seed, Figures *out)
{
    Arena arena = {0};
    KernelContract contract;
    TRY(kernel_contract(spec, &contract));
    uint8_t *before[KERNEL_OPERANDS], *after[KERNEL_OPERANDS]; /* unused ones are empty */
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    for (uint32_t i = 0; i < KERNEL_OPERANDS; i++) {
        const OperandContract *o = &contract.operands[i];
        before[i] = arena_alloc(&arena, o->bytes, 16);
        if (i < contract.operand_count && (!o->output || o->reads_old))
            fill_operand(o, &state, before[i]);
        after[i] = arena_copy(&arena, before[i], o->bytes, 16);
    }
    Status status = kernel_tile_run(spec, after, &out->cycles);
    if (status_ok(status) && spec->family == KERNEL_GEMM)
        out->error = gemm_error(spec, before, after[0]);
    else if (status_ok(status))
        status = reference_error(spec, &contract, before, after, &out->error);
    out->formula = kernel_cycles(spec);
    arena_free(&arena);
    return status;
}

/* --- the command line */

static Status gemm_spec(const Request *request, KernelSpec *spec)
{
    bool f8 = strcmp(request->precision, "f8") == 0;
    if (!f8 && strcmp(request->precision, "f16") != 0)
        return status_error("--precision is f16 or f8");
    bool interleaved = strcmp(request->weights, "interleaved") == 0;
    if (!interleaved && strcmp(request->weights, "standard") != 0)
        return status_error("--weights is standard or interleaved");
    bool packed = strcmp(request->output, "packed") == 0;
    if (!packed && strcmp(request->output, "plain") != 0)
        return status_error("--output is plain or packed");
    spec->p[GEMM_PRECISION] = f8 ? F8F143 : F16;
    spec->p[GEMM_ROWS] = (int32_t)request->rows;
    spec->p[GEMM_INNER] = (int32_t)request->inner;
    spec->p[GEMM_COLUMNS] = (int32_t)request->columns;
    spec->p[GEMM_ACCUMULATE] = request->accumulate;
    spec->p[GEMM_INTERLEAVED] = interleaved;
    spec->p[GEMM_PACKED] = packed;
    spec->p[GEMM_SCALE] = f8 ? -8 : 0; /* random codes are 16 times larger than halves */
    return STATUS_OK;
}

static void print_text(const Request *request, const KernelSpec *spec, const Figures *figures)
{
    printf("kernel=%s", kernel_family_name(spec->family));
    if (spec->family == KERNEL_GEMM)
        printf(" precision=%s rows=%d inner=%d columns=%d weights=%s output=%s", request->precision,
               spec->p[GEMM_ROWS], spec->p[GEMM_INNER], spec->p[GEMM_COLUMNS], request->weights,
               request->output);
    for (uint32_t i = 0; spec->family != KERNEL_GEMM && i < KERNEL_PARAMETERS; i++) {
        char name[64], value[64];
        kernel_parameter_label(spec->family, i, name, sizeof name);
        kernel_parameter_value(spec, i, value, sizeof value);
        if (*name)
            printf(" %s=%s", name, value);
    }
    printf(" cycles=%llu formulaCycles=%llu relativeRmsError=%.3g\n",
           (unsigned long long)figures->cycles, (unsigned long long)figures->formula,
           figures->error);
}

static void print_json(const Request *request, const KernelSpec *spec, const Figures *figures)
{
    json_t *object = json_pack("{s:s}", "kernel", kernel_family_name(spec->family));
    if (spec->family == KERNEL_GEMM) {
        json_object_set_new(object, "precision", json_string(request->precision));
        json_object_set_new(object, "rows", json_integer(spec->p[GEMM_ROWS]));
        json_object_set_new(object, "inner", json_integer(spec->p[GEMM_INNER]));
        json_object_set_new(object, "columns", json_integer(spec->p[GEMM_COLUMNS]));
        json_object_set_new(object, "weights", json_string(request->weights));
        json_object_set_new(object, "output", json_string(request->output));
    }
    for (uint32_t i = 0; spec->family != KERNEL_GEMM && i < KERNEL_PARAMETERS; i++) {
        char name[64], value[64], *end;
        kernel_parameter_label(spec->family, i, name, sizeof name);
        kernel_parameter_value(spec, i, value, sizeof value);
        json_int_t whole = strtoll(value, &end, 10);
        if (*name && !*end) {
            json_object_set_new(object, name, json_integer(whole));
        } else if (*name) {
            double real = strtod(value, &end);
            json_object_set_new(object, name, *end ? json_string(value) : json_real(real));
        }
    }
    json_object_set_new(object, "cycles", json_integer((json_int_t)figures->cycles));
    json_object_set_new(object, "formulaCycles", json_integer((json_int_t)figures->formula));
    json_object_set_new(object, "relativeRmsError", json_real(figures->error));
    json_dumpf(object, stdout, JSON_REAL_PRECISION(6));
    printf("\n");
    json_decref(object);
}

static int list_kernels(void)
{
    for (uint32_t family = 0; family < KERNEL_FAMILIES; family++) {
        if (strcmp(kernel_family_name((KernelFamily)family), "unknown") == 0)
            continue;
        printf("%-16s", kernel_family_name((KernelFamily)family));
        for (uint32_t i = 0; i < KERNEL_PARAMETERS; i++) {
            char syntax[128];
            kernel_parameter_syntax((KernelFamily)family, i, syntax, sizeof syntax);
            if (*syntax)
                printf(" %s", syntax);
        }
        printf("\n");
    }
    return 0;
}

static int run_named(const Request *request, const char *name)
{
    KernelFamily family;
    if (!kernel_family_find(name, &family))
        return command_fail("kernel",
                            status_error("no kernel %s (ipu-stack kernel list shows them)", name));
    KernelSpec spec = {.family = (uint16_t)family};
    Figures figures = {0};
    Status status = family == KERNEL_GEMM ? gemm_spec(request, &spec) : STATUS_OK;
    for (size_t i = 0; i < request->set.count && status_ok(status); i++)
        status = kernel_parameter_set(&spec, request->set.items[i]);
    if (status_ok(status))
        status = run_kernel(&spec, request->seed, &figures);
    if (!status_ok(status))
        return command_fail("kernel", status);
    if (request->json)
        print_json(request, &spec, &figures);
    else
        print_text(request, &spec, &figures);
    return 0;
}

int cmd_kernel(int argc, char **argv)
{
    Request request = {.precision = "f16",
                       .weights = "interleaved",
                       .output = "plain",
                       .rows = 64,
                       .inner = 64,
                       .columns = 64,
                       .seed = 1};
    const Option options[] = {
        {"--precision", OPTION_TEXT, &request.precision, "f16|f8", "gemm: of both operands", 0, 0},
        {"--rows", OPTION_NUMBER, &request.rows, "N", "gemm: rows of the product", 1, 65536},
        {"--inner", OPTION_NUMBER, &request.inner, "N", "gemm: inner dimension", 1, 65536},
        {"--columns", OPTION_NUMBER, &request.columns, "N", "gemm: columns of the product", 1,
         65536},
        {"--weights", OPTION_TEXT, &request.weights, "standard|interleaved",
         "gemm: memory of the weights", 0, 0},
        {"--output", OPTION_TEXT, &request.output, "plain|packed", "gemm: order of the product", 0,
         0},
        {"--accumulate", OPTION_FLAG, &request.accumulate, "", "gemm: add to the product", 0, 0},
        {"--set", OPTION_LIST, &request.set, "NAME=VALUE", "a parameter of any kernel", 0, 0},
        {"--seed", OPTION_NUMBER, &request.seed, "N", "of the random data", 0, 0},
        {"--json", OPTION_FLAG, &request.json, "", "print one JSON object", 0, 0},
        {0}};
    const Command command = {
        "ipu-stack kernel list | kernel run NAME [options]",
        "Runs one of the device kernels on one simulated tile, with random data.\n\n"
        "gemm has options of its own; parameters of the others are all given by --set:\n"
        "  kernel run softmax --set rows=40 --set keys=49 --set padded_keys=64 --set scale=0.125\n"
        "'kernel list' shows them, docs/kernels.md what they mean. They are whole numbers, but\n"
        "for epsilon and scale of softmax (decimals, 1e-5), precisions (f16, f32, f8) and\n"
        "orders (left, block-major ...). What is not given is 0.",
        options, 1, 2};
    TextList positional = {0};
    int status = command_parse(&command, argc, argv, &positional);
    if (status < 0) {
        if (positional.count == 1 && strcmp(positional.items[0], "list") == 0) {
            status = list_kernels();
        } else if (positional.count == 2 && strcmp(positional.items[0], "run") == 0) {
            status = run_named(&request, positional.items[1]);
        } else {
            fprintf(stderr, "ipu-stack kernel: list, or run NAME (--help tells more)\n");
            status = 2;
        }
    }
    array_free(&positional);
    array_free(&request.set);
    return status;
}
