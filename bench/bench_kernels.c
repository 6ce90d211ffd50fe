/* libraries: cli */
/* Our kernels against published hardware cycles (bench/data/kernel-targets-*.tsv), sampled as the
 * card samples: one line a row, the geometric means at the end. Exit status 1 when a row is slower.
 */
#include "cli/kernel_tile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    EPSILON = 0x358637bd,      /* 1e-6 */
    SOFTMAX_SCALE = 0x3df15bee /* 1 / sqrt(72) */
};

typedef struct Known { /* a row of kernel-targets-other.tsv as a spec of ours */
    const char *kernel, *shape;
    KernelSpec spec;
    const char *missing; /* why there is none */
} Known;

#define SPEC(family_, ...)                                                                         \
    {                                                                                              \
        .family = KERNEL_##family_, .p = { __VA_ARGS__ }                                           \
    }

static const Known known[] = {
    {"add_f16", "576 elements", SPEC(ADD, 1, 1, 576), NULL},
    {"add_f16", "1152 elements", SPEC(ADD, 1, 1, 1152), NULL},
    {"add_f16", "1728 elements", SPEC(ADD, 1, 1, 1728), NULL},
    {"add_f16", "2152 elements", SPEC(ADD, 1, 1, 2152), NULL},
    {"add_f16", "3456 elements, second operand 1152 broadcast", SPEC(ADD, 1, 3, 1152), NULL},
    {"layer_norm_f16", "1x144", SPEC(LAYER_NORM, 1, 144, EPSILON), NULL},
    {"layer_norm_f16", "1x576", SPEC(LAYER_NORM, 1, 576, EPSILON), NULL},
    {"layer_norm_f16", "1x1152", SPEC(LAYER_NORM, 1, 1152, EPSILON), NULL},
    {"layer_norm_f16", "3x1152", SPEC(LAYER_NORM, 3, 1152, EPSILON), NULL},
    {"add_layer_norm_f16", "1x144", SPEC(LAYER_NORM, 1, 144, EPSILON, 1), NULL},
    {"add_layer_norm_f16", "1x576", SPEC(LAYER_NORM, 1, 576, EPSILON, 1), NULL},
    {"add_layer_norm_f16", "1x1152", SPEC(LAYER_NORM, 1, 1152, EPSILON, 1), NULL},
    {"add_layer_norm_f16", "3x1152", SPEC(LAYER_NORM, 3, 1152, EPSILON, 1), NULL},
    {"moments_f16", "1x144", SPEC(MOMENTS, 1, 144), NULL},
    {"moments_f16", "1x576", SPEC(MOMENTS, 1, 576), NULL},
    {"moments_f16", "1x1152", SPEC(MOMENTS, 1, 1152), NULL},
    {"moments_f16", "3x1152", SPEC(MOMENTS, 3, 1152), NULL},
    {"apply_norm_f16", "1x144, 1 part", SPEC(APPLY_NORM, 1, 144, 1, EPSILON), NULL},
    {"apply_norm_f16", "1x576, 1 part", SPEC(APPLY_NORM, 1, 576, 1, EPSILON), NULL},
    {"apply_norm_f16", "1x1152, 1 part", SPEC(APPLY_NORM, 1, 1152, 1, EPSILON), NULL},
    {"apply_norm_f16", "3x1152, 1 part", SPEC(APPLY_NORM, 3, 1152, 1, EPSILON), NULL},
    {"gelu_f16", "16 elements", SPEC(GELU, 16), NULL},
    {"gelu_f16", "96 elements", SPEC(GELU, 96), NULL},
    {"gelu_f16", "1408 elements", SPEC(GELU, 1408), NULL},
    {"gelu_f16", "2208 elements", SPEC(GELU, 2208), NULL},
    /* columns that are no multiple of 4 run padded */
    {"bias_gelu_f16", "1x16", SPEC(BIAS_GELU, 1, 1, 16), NULL},
    {"bias_gelu_f16", "1x94", SPEC(BIAS_GELU, 1, 1, 96), NULL},
    {"bias_gelu_f16", "1x98", SPEC(BIAS_GELU, 1, 1, 100), NULL},
    {"bias_gelu_f16", "1x1408", SPEC(BIAS_GELU, 1, 1, 1408), NULL},
    {"bias_gelu_f16", "1x2152", SPEC(BIAS_GELU, 1, 1, 2152), NULL},
    {"bias_gelu_f16", "1x2208", SPEC(BIAS_GELU, 1, 1, 2208), NULL},
    {"bias_gelu_f16", "3x2152", SPEC(BIAS_GELU, 1, 3, 2152), NULL},
    {"reduce_sum_f16", "8 elements, 2 partials", SPEC(REDUCE_SUM, 8, 2), NULL},
    {"reduce_sum_f16", "56 elements, 2 partials", SPEC(REDUCE_SUM, 56, 2), NULL},
    {"reduce_sum_f16", "1472 elements, 2 partials", SPEC(REDUCE_SUM, 1472, 2), NULL},
    {"reduce_sum_f16", "1472 elements, 4 partials", SPEC(REDUCE_SUM, 1472, 4), NULL},
    {"reduce_sum_f16", "576 elements, 15 partials", SPEC(REDUCE_SUM, 576, 15), NULL},
    {"reduce_sum_f16", "2208 elements, 4 partials", SPEC(REDUCE_SUM, 2208, 4), NULL},
    {"reduce_sum_f16", "2208 elements, 28 partials", SPEC(REDUCE_SUM, 2208, 28), NULL},
    {"softmax_f16", "8 rows, 729 of 768 keys, split over workers, with maximum",
     SPEC(SOFTMAX, 8, 729, 768, SOFTMAX_SCALE), NULL},
    {"softmax_f16", "1 row, 768 keys, whole", SPEC(SOFTMAX, 1, 768, 768, SOFTMAX_SCALE), NULL},
    {"softmax_f16", "1 row, 729 keys, split", SPEC(SOFTMAX, 1, 729, 768, SOFTMAX_SCALE), NULL},
    {"softmax_f16", "8 rows, 64 keys", SPEC(SOFTMAX, 8, 64, 64, SOFTMAX_SCALE), NULL},
    {"softmax_f16", "8 rows, 25 of 64 keys", SPEC(SOFTMAX, 8, 25, 64, SOFTMAX_SCALE), NULL},
    {"attention_merge_f16", "7 or 8 rows, 72 columns, initial",
     SPEC(ATTENTION_MERGE, 8, 72, 80, 1, 0), NULL},
    {"attention_merge_f16", "update", SPEC(ATTENTION_MERGE, 8, 72, 80, 0, 0), NULL},
    {"attention_merge_f16", "final update", SPEC(ATTENTION_MERGE, 8, 72, 80, 0, 1), NULL},
    {"cast_f16_to_f8", "8320 elements, linear", SPEC(CAST, F16, F8F143, 8320, -4), NULL},
    {"cast_f16_to_f8", "1024 elements, linear", SPEC(CAST, F16, F8F143, 1024, -4), NULL},
    {"cast_f16_to_f8", "184x96 panels, separate elements",
     SPEC(CAST, F16, F8F143, 184 * 96, -4, 184), NULL},
    {"copy", "8 KiB, standard to interleaved", SPEC(COPY, 1, 8192, 8192, 8192, 1), NULL},
};

typedef struct Tally {
    double logarithm;
    uint32_t rows, slower;
} Tally;

static uint64_t random_state = 88172645463325252u;

/* Small finite numbers in every precision: halves of magnitude below 1. */
static void fill(uint8_t *data, uint32_t bytes)
{
    for (uint32_t i = 0; i + 1 < bytes; i += 2) {
        random_state ^= random_state << 13;
        random_state ^= random_state >> 7;
        random_state ^= random_state << 17;
        uint16_t half = (uint16_t)((random_state & 0x8000) | 0x3000 | (random_state >> 20 & 0x7ff));
        memcpy(data + i, &half, 2);
    }
}

static Status run_row(const char *kernel, const char *shape, const KernelSpec *spec,
                      uint32_t published, Tally *tally)
{
    KernelContract contract;
    TRY(kernel_contract(spec, &contract));
    Arena arena = {0};
    uint8_t *operands[KERNEL_OPERANDS];
    for (uint32_t i = 0; i < contract.operand_count; i++) {
        operands[i] = arena_alloc(&arena, contract.operands[i].bytes, 16);
        fill(operands[i], contract.operands[i].bytes);
    }
    uint64_t cycles;
    Status status = kernel_tile_run(spec, operands, &cycles);
    arena_free(&arena);
    TRY(status);
    double ratio = (double)cycles / published;
    printf("%-20s %-58s %9u %7llu %8llu %6.3f%s\n", kernel, shape, published,
           (unsigned long long)cycles, (unsigned long long)kernel_cycles(spec), ratio,
           ratio > 1 ? "  slower" : "");
    tally->logarithm += log(ratio);
    tally->rows++;
    tally->slower += ratio > 1;
    return STATUS_OK;
}

/* The fields of one line, cut in place; false at the end of the text. */
static bool next_row(char **text, char **fields, uint32_t count)
{
    if (!**text)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        size_t length = strcspn(*text, "\t\n");
        bool more = (*text)[length] == '\t';
        fields[i] = *text;
        *text += length + ((*text)[length] != 0);
        fields[i][length] = 0;
        if (!more && i + 1 < count)
            return false;
    }
    return true;
}

static Status gemm_rows(char *text, Tally *tally)
{
    char *f[8], shape[64];
    while (next_row(&text, f, 8)) {
        if (strcmp(f[0], "gemm") != 0)
            continue;
        KernelSpec spec = {.family = KERNEL_GEMM,
                           .p = {[GEMM_PRECISION] = strcmp(f[1], "f8") == 0 ? F8F143 : F16,
                                 [GEMM_ROWS] = atoi(f[2]),
                                 [GEMM_INNER] = atoi(f[3]),
                                 [GEMM_COLUMNS] = atoi(f[4]),
                                 [GEMM_INTERLEAVED] = strcmp(f[5], "interleaved") == 0,
                                 [GEMM_PACKED] = strcmp(f[6], "packed") == 0}};
        snprintf(shape, sizeof shape, "%s %s/%s/%s %s %s", f[1], f[2], f[3], f[4], f[5], f[6]);
        TRY(run_row("gemm", shape, &spec, (uint32_t)atoi(f[7]), tally));
    }
    return STATUS_OK;
}

static const Known *find_known(const char *kernel, const char *shape)
{
    for (size_t i = 0; i < countof(known); i++)
        if (strcmp(known[i].kernel, kernel) == 0 &&
            (!known[i].shape || strcmp(known[i].shape, shape) == 0))
            return &known[i];
    return NULL;
}

static Status other_rows(char *text, Tally *tally)
{
    char *f[3];
    while (next_row(&text, f, 3)) {
        if (strcmp(f[0], "kernel") == 0)
            continue;
        const Known *row = find_known(f[0], f[1]);
        if (!row)
            return status_error("no spec for %s, %s", f[0], f[1]);
        if (row->missing)
            printf("%-20s %-58s %9s       -  (%s)\n", f[0], f[1], f[2], row->missing);
        else
            TRY(run_row(f[0], f[1], &row->spec, (uint32_t)atoi(f[2]), tally));
    }
    return STATUS_OK;
}

static Status table(const char *name, Status (*rows)(char *, Tally *), Tally *tally)
{
    Bytes bytes;
    TRY(file_read(name, FILE_LIMIT_TEXT, &bytes));
    Status status = rows((char *)bytes.data, tally);
    bytes_free(&bytes);
    TRY(status);
    printf("geometricMeanRatio=%.4f rows=%u slower=%u\n\n", exp(tally->logarithm / tally->rows),
           tally->rows, tally->slower);
    return STATUS_OK;
}

int main(void)
{
    Tally gemm = {0}, other = {0};
    printf("%-20s %-58s %9s %7s %8s %6s\n", "kernel", "case", "published", "ours", "formula",
           "ratio");
    Status status = table(SOURCE_DIR "/bench/data/kernel-targets-gemm.tsv", gemm_rows, &gemm);
    if (status_ok(status))
        status = table(SOURCE_DIR "/bench/data/kernel-targets-other.tsv", other_rows, &other);
    if (!status_ok(status)) {
        fprintf(stderr, "bench_kernels: %s\n", status_message(status));
        status_free(status);
        return 1;
    }
    return gemm.slower || other.slower;
}
