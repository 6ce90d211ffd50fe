/* session.h - what build, explain and bench share: a model or package on the command line made into
 * a graph and a compilation. */
#ifndef IPU_CLI_SESSION_H
#define IPU_CLI_SESSION_H

#include "cli/cli.h"
#include "device/device.h"

typedef struct BuildOptions {
    CommonOptions common;
    uint64_t tiles;
    const char *weights, *recipe, *precision, *sampling, *constraints, *state;
    bool no_cache, weights_once, no_pairs;
} BuildOptions;
enum { DEFAULT_TILES = 64 }; /* when neither --tiles nor a recipe says otherwise */
#define BUILD_OPTIONS_DEFAULT                                                                      \
    {                                                                                              \
        .precision = "f16"                                                                         \
    }
#define BUILD_OPTIONS(b)                                                                             \
    {"--tiles", OPTION_NUMBER, &(b).tiles, "N", "logical tiles, 1..1472 (default 64)", 1, TILES},    \
        {"--weights", OPTION_TEXT, &(b).weights, "FILE.safetensors", "bake these weights in", 0, 0}, \
        {"--precision", OPTION_TEXT, &(b).precision, "f16", "storage precision", 0, 0},              \
        {"--recipe", OPTION_TEXT, &(b).recipe, "FILE", "follow this recipe, do not search", 0, 0},   \
        {"--plan-constraint",                                                                        \
         OPTION_TEXT,                                                                                \
         &(b).constraints,                                                                           \
         "LIST",                                                                                     \
         "pins and excludes: OPERATION:KEY=VALUE,OPERATION:KEY!=VALUE... (docs/planner.md)",         \
         0,                                                                                          \
         0},                                                                                         \
        {"--plan-state",                                                                             \
         OPTION_TEXT,                                                                                \
         &(b).state,                                                                                 \
         "FILE",                                                                                     \
         "take the search's finalists from this file, or keep them in it",                           \
         0,                                                                                          \
         0},                                                                                         \
        {"--weights-once", OPTION_FLAG, &(b).weights_once, "", "store every parameter once", 0, 0},  \
        {"--no-pairs", OPTION_FLAG, &(b).no_pairs, "", "no 64-bit exchange", 0, 0},                  \
        {"--no-kernel-cache", OPTION_FLAG, &(b).no_cache, "", "assemble every kernel anew", 0, 0},   \
        COMMON_OPTIONS((b).common)

typedef struct Session { /* everything that a build needs and makes */
    Arena arena;
    Pool *pool;
    Model model;
    Graph graph;
    Tensors weights;
    bool has_weights;
    Bytes recipe;
    char *cache;
    CompileOptions options;
    Compilation compilation;
    double build_seconds;
} Session;

/* Reads model, weights and recipe; compiles as far as `until`. The session is to be closed in any
 * case. */
Status session_open(Session *session, const char *model_path, const BuildOptions *options,
                    Stage until);
/* The same from the texts that a package keeps (model and recipe). */
Status session_from_package(Session *session, const Package *package, Stage until);
void session_close(Session *session);

/* --profile FILE and --profile-source of the verbs that run packages. */
typedef struct ProfileOptions {
    const char *file, *source;
} ProfileOptions;
#define PROFILE_OPTIONS(p)                                                                         \
    {"--profile", OPTION_TEXT, &(p).file, "FILE", "write a profile of the last call", 0, 0},       \
    {                                                                                              \
        "--profile-source", OPTION_TEXT, &(p).source, "simulator|package",                         \
            "who takes the samples (default: the package, if its code does)", 0, 0                 \
    }
/* "off", "overall", "full" or NULL (off) -> ProfileMode. */
Status sampling_mode(const char *option, const char *text, uint8_t *out);
/* What a bench must build for these options: "full" when the package is to take the samples. */
const char *profile_sampling(const ProfileOptions *options);
Status profile_source(const ProfileOptions *options, const Package *package, uint8_t *out);
/* Writes the device's profile where the options want it; nothing without --profile. */
Status profile_save(const ProfileOptions *options, const Device *device);

bool path_is_package(const char *path);
double peak_memory_mib(void); /* of this process */

#endif
