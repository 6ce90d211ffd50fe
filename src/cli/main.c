/* main.c - ipu-stack VERB ...: the table of verbs and nothing else. */
#include "cli/cli.h"

#include <string.h>

static const struct {
    const char *name, *summary;
    Verb *run;
} verbs[] = {
    {"build", "compile a model into one package", cmd_build},
    {"run", "run a package on tensors", cmd_run},
    {"classify", "pictures in, labels and probabilities out", cmd_classify},
    {"bench", "build, run, check against the host reference, measure", cmd_bench},
    {"inspect", "what a package, object or profile holds", cmd_inspect},
    {"profile", "tables and reports of a profile", cmd_profile},
    {"explain", "any stage of the compiler, as text or JSON", cmd_explain},
    {"as", "assemble", cmd_as},
    {"dis", "disassemble", cmd_dis},
    {"link", "link objects", cmd_link},
    {"obj", "sections, symbols and relocations of an object", cmd_obj},
    {"sim", "run one function on one simulated tile", cmd_sim},
    {"kernel", "list and run the device kernels", cmd_kernel},
};

static void print_verbs(FILE *stream)
{
    fprintf(stream, "usage: ipu-stack VERB ... (VERB --help tells more)\n\n");
    for (size_t i = 0; i < countof(verbs); i++)
        fprintf(stream, "  %-9s %s\n", verbs[i].name, verbs[i].summary);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_verbs(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_verbs(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("ipu-stack %s\n", IPU_VERSION);
        return 0;
    }
    for (size_t i = 0; i < countof(verbs); i++) {
        if (strcmp(argv[1], verbs[i].name) == 0) {
            int status = verbs[i].run(argc - 1, argv + 1);
            if (fflush(stdout) != 0 && status == 0) {
                perror("ipu-stack: standard output");
                status = 1;
            }
            return status;
        }
    }
    fprintf(stderr, "ipu-stack: unknown verb %s\n", argv[1]);
    print_verbs(stderr);
    return 2;
}
