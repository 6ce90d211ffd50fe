/* cli.h - the ipu-stack command: one function per verb, and what verbs share.
 *
 * A verb gets argv[0] = its name. Exit status: 0 good, 1 the work failed, 2 bad usage. Results go
 * to standard output, messages to standard error. Options are a table; the parser, --help, the man
 * page and the completion read the same table. */
#ifndef IPU_CLI_CLI_H
#define IPU_CLI_CLI_H

#include "base/base.h"

typedef int Verb(int argc, char **argv);

Verb cmd_build, cmd_run, cmd_bench, cmd_inspect, cmd_explain, cmd_classify, cmd_profile;
Verb cmd_as, cmd_dis, cmd_link, cmd_obj, cmd_sim, cmd_kernel;
Verb bench_digits, bench_exchange, bench_siglip_mlp, bench_gemm, bench_mlp;

typedef enum OptionKind {
    OPTION_FLAG,   /* bool */
    OPTION_NUMBER, /* uint64_t: decimal, or 0x... */
    OPTION_TEXT,   /* const char * */
    OPTION_LIST    /* TextList: may be given more than once */
} OptionKind;

typedef ARRAY(const char *) TextList;

typedef struct Option {
    const char *name; /* "--tiles", or "-o" with no long form */
    uint8_t kind;     /* OptionKind */
    void *target;     /* bool *, uint64_t *, const char ** or TextList *: holds the default */
    const char *value, *help; /* "N", "logical tiles, 1..1472 (default 64)" */
    uint64_t low, high;       /* OPTION_NUMBER: the range; both 0: any */
} Option;

typedef struct Command {
    const char *usage; /* "ipu-stack build MODEL [options]" */
    const char *summary;
    const Option *options; /* ends with an empty name */
    uint32_t least, most;  /* positional arguments */
} Command;

/* Parses argv[1..]. Returns -1 to go on, else the exit status (0 after --help, 2 after an error
 * that was printed). A value follows its option or stands behind "="; "--" ends the options. */
int command_parse(const Command *command, int argc, char **argv, TextList *positional);

typedef struct VerbEntry { /* of the command, or of a verb that is a group of others */
    const char *name, *summary;
    Verb *run;
    bool like_before; /* takes the options of the entry before: described once */
} VerbEntry;
/* A verb that is a group: runs the entry that argv[1] names; --help lists them. */
int verb_group(const char *group, const char *what, const VerbEntry *entries, size_t count,
               int argc, char **argv);

/* The man page ("man") or the completion ("bash") of all verbs, on standard output. */
int manual_print(const char *form, const VerbEntry *verbs, size_t count);
/* For the parser and groups: the form that a verb is asked to describe itself in, NULL: it is not;
 * and what it prints then. */
const char *manual_form(int argc, char **argv);
int manual_command(const Command *command, const char *path, const char *form);
int manual_group(const char *group, const VerbEntry *entries, size_t count, const char *form);

/* Prints "ipu-stack VERB: message" and frees the status; returns 1. */
int command_fail(const char *verb, Status status);

/* Options every long-running verb has: -v, --log-format, --trace-events, --threads. */
typedef struct CommonOptions {
    bool verbose;
    const char *log_format, *trace_events;
    uint64_t threads; /* 0: all cores */
} CommonOptions;
#define COMMON_OPTIONS(common)                                                                       \
    {"-v", OPTION_FLAG, &(common).verbose, "", "log every stage to standard error", 0, 0},           \
        {"--log-format", OPTION_TEXT, &(common).log_format, "text|json", "format of the log", 0, 0}, \
        {"--trace-events",                                                                           \
         OPTION_TEXT,                                                                                \
         &(common).trace_events,                                                                     \
         "FILE",                                                                                     \
         "spans in the Chrome trace format",                                                         \
         0,                                                                                          \
         0},                                                                                         \
    {                                                                                                \
        "--threads", OPTION_NUMBER, &(common).threads, "N", "host threads (default: all cores)",     \
            1, 256                                                                                   \
    }
/* Follows the log's spans: progress on standard error when that is a terminal and `show` is set,
 * and trace events in a file (NULL: none). For the rest of the process. */
Status progress_start(bool show, const char *trace_path);
/* Sets the log up; false (after a message) when the options are wrong. */
bool common_apply(const char *verb, const CommonOptions *common);

#endif
