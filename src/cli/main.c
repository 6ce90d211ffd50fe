/* main.c - ipu-stack VERB ...: the table of verbs and nothing else. */
#include "cli/cli.h"

#include <string.h>

static const VerbEntry verbs[] = {
    {"build", "compile a model into one package", cmd_build, false},
    {"run", "run a package on tensors", cmd_run, false},
    {"classify", "pictures in, labels and probabilities out", cmd_classify, false},
    {"bench", "build, run, check against the host reference, measure", cmd_bench, false},
    {"inspect", "what a package, object or profile holds", cmd_inspect, false},
    {"profile", "tables and reports of a profile", cmd_profile, false},
    {"explain", "any stage of the compiler, as text or JSON", cmd_explain, false},
    {"as", "assemble", cmd_as, false},
    {"dis", "disassemble", cmd_dis, false},
    {"link", "link objects", cmd_link, false},
    {"obj", "sections, symbols and relocations of an object", cmd_obj, false},
    {"sim", "run one function on one simulated tile", cmd_sim, false},
    {"kernel", "list and run the device kernels", cmd_kernel, false},
};

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("ipu-stack %s\n", IPU_VERSION);
        return 0;
    }
    int status = argc == 3 && strcmp(argv[1], "describe") == 0
                     ? manual_print(argv[2], verbs, countof(verbs))
                     : verb_group("", "VERB", verbs, countof(verbs), argc, argv);
    if (fflush(stdout) != 0 && status == 0) {
        perror("ipu-stack: standard output");
        status = 1;
    }
    return status;
}
