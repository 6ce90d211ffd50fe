/* cmd_bench.c - ipu-stack bench WORKLOAD: the table of workloads. */
#include "cli/cli.h"

int cmd_bench(int argc, char **argv)
{
    static const VerbEntry workloads[] = {
        {"digits", "the digits model on its 256 reference images", bench_digits, false},
        {"siglip-mlp", "SigLIP's MLP on the full device", bench_siglip_mlp, false},
        {"mlp", "an MLP of any size", bench_mlp, true},
        {"gemm", "one matrix product", bench_gemm, true},
        {"exchange", "one exchange phase of a pattern, delivered on the simulator", bench_exchange,
         false},
    };
    return verb_group("bench", "WORKLOAD", workloads, countof(workloads), argc, argv);
}
