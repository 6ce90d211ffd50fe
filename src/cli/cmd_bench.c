/* cmd_bench.c - ipu-stack bench WORKLOAD: the table of workloads. */
#include "cli/cli.h"

#include <string.h>

static const struct {
    const char *name, *summary;
    Verb *run;
} workloads[] = {
    {"digits", "the digits model on its 256 reference images", bench_digits},
    {"siglip-mlp", "SigLIP's MLP on the full device", bench_siglip_mlp},
    {"mlp", "an MLP of any size", bench_mlp},
    {"gemm", "one matrix product", bench_gemm},
    {"exchange", "one exchange phase of a pattern, delivered on the simulator", bench_exchange},
};

static void print_workloads(FILE *stream)
{
    fprintf(stream, "usage: ipu-stack bench WORKLOAD [options] (WORKLOAD --help tells more)\n\n");
    for (size_t i = 0; i < countof(workloads); i++)
        fprintf(stream, "  %-10s %s\n", workloads[i].name, workloads[i].summary);
}

int cmd_bench(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        print_workloads(stdout);
        return 0;
    }
    for (size_t i = 0; argc > 1 && i < countof(workloads); i++)
        if (strcmp(argv[1], workloads[i].name) == 0)
            return workloads[i].run(argc - 1, argv + 1);
    if (argc > 1)
        fprintf(stderr, "ipu-stack bench: unknown workload %s\n", argv[1]);
    print_workloads(stderr);
    return 2;
}
