/* cmd_build.c - ipu-stack build: a model description (and weights) into one package. */
#include "cli/session.h"

#include <string.h>

/* "models/digits-vit.json" -> "digits-vit.ipuexe" */
static char *default_output(Arena *arena, const char *model)
{
    const char *name = strrchr(model, '/');
    name = name ? name + 1 : model;
    const char *dot = strrchr(name, '.');
    int length = dot ? (int)(dot - name) : (int)strlen(name);
    return arena_printf(arena, "%.*s.ipuexe", length, name);
}

int cmd_build(int argc, char **argv)
{
    BuildOptions build = BUILD_OPTIONS_DEFAULT;
    const char *output = NULL;
    const Option options[] = {
        {"-o", OPTION_TEXT, &output, "FILE.ipuexe", "the package (default: NAME.ipuexe)", 0, 0},
        {"--profile", OPTION_TEXT, &build.sampling, "off|overall|full",
         "what the code records: nothing, begin and end, every step (default off)", 0, 0},
        BUILD_OPTIONS(build),
        {0}};
    const Command command = {"ipu-stack build MODEL.json [-o FILE.ipuexe] [options]",
                             "Compiles a model into one package of machine code for all tiles.",
                             options, 1, 1};
    TextList arguments = {0};
    int done = command_parse(&command, argc, argv, &arguments);
    if (done >= 0 || !common_apply("build", &build.common)) {
        array_free(&arguments);
        return done >= 0 ? done : 2;
    }
    Session session;
    double start = seconds_now();
    Status status = session_open(&session, arguments.items[0], &build, STAGE_PACKAGE);
    if (status_ok(status)) {
        if (!output)
            output = default_output(&session.arena, arguments.items[0]);
        LogSpan span = log_open("write_package", "%s", "");
        status = package_write(&session.compilation.package, output);
        log_close(&span);
    }
    if (status_ok(status)) {
        const Compilation *c = &session.compilation;
        printf("package=%s tiles=%u kernels=%u phases=%zu predictedCycles=%.0f buildSeconds=%.3f "
               "peakRssMiB=%.0f\n",
               output, c->program.tiles, c->objects.count, c->program.phases.count,
               c->recipe->predicted_cycles, seconds_now() - start, peak_memory_mib());
    }
    session_close(&session);
    array_free(&arguments);
    return status_ok(status) ? 0 : command_fail("build", status);
}
