/* options.c - command lines by table, see cli.h. */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int usage_error(const Command *command, const char *format, const char *detail)
{
    fprintf(stderr, "ipu-stack: ");
    fprintf(stderr, format, detail); /* formats are literals of this file */
    fprintf(stderr, "\nusage: %s\n", command->usage);
    return 2;
}

static void print_help(const Command *command)
{
    printf("usage: %s\n\n%s\n", command->usage, command->summary);
    if (command->options && command->options->name)
        printf("\noptions:\n");
    for (const Option *o = command->options; o && o->name; o++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", o->name, o->value ? o->value : "");
        printf("  %-28s %s\n", left, o->help);
    }
    printf("  %-28s %s\n", "--help", "this text");
}

static const Option *find_option(const Command *command, const char *name, size_t length)
{
    for (const Option *o = command->options; o && o->name; o++)
        if (strlen(o->name) == length && memcmp(o->name, name, length) == 0)
            return o;
    return NULL;
}

static bool parse_number(const Option *option, const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 0);
    if (errno || end == text || *end || *text == '-')
        return false;
    *out = value;
    return !(option->low || option->high) || (value >= option->low && value <= option->high);
}

static bool take_value(const Option *option, const char *value)
{
    if (option->kind == OPTION_NUMBER)
        return parse_number(option, value, option->target);
    if (option->kind == OPTION_TEXT)
        *(const char **)option->target = value;
    else
        array_push((TextList *)option->target, value);
    return true;
}

int command_parse(const Command *command, int argc, char **argv, TextList *positional)
{
    const char *form = manual_form(argc, argv);
    if (form)
        return manual_command(command, argv[0], form);
    bool options_end = false;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (options_end || word[0] != '-' || !word[1]) {
            array_push(positional, word);
            continue;
        }
        if (strcmp(word, "--") == 0) {
            options_end = true;
            continue;
        }
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            print_help(command);
            return 0;
        }
        const char *equals = word[1] == '-' ? strchr(word, '=') : NULL;
        size_t length = equals ? (size_t)(equals - word) : strlen(word);
        const Option *option = find_option(command, word, length);
        const char *value = equals ? equals + 1 : NULL;
        if (!option && word[1] != '-' && word[2]) { /* -DNAME, -Ifolder */
            option = find_option(command, word, 2);
            value = word + 2;
        }
        if (!option || (option->kind == OPTION_FLAG && value))
            return usage_error(command, "unknown option %s", word);
        if (option->kind == OPTION_FLAG) {
            *(bool *)option->target = true;
            continue;
        }
        if (!value) {
            if (++i == argc)
                return usage_error(command, "%s needs a value", option->name);
            value = argv[i];
        }
        if (!take_value(option, value)) {
            char detail[160];
            snprintf(detail, sizeof detail, "%s: %s", option->name, value);
            return usage_error(command, "bad value for %s", detail);
        }
    }
    if (positional->count < command->least)
        return usage_error(command, "%s", "an argument is missing");
    if (positional->count > command->most)
        return usage_error(command, "unexpected argument %s", positional->items[command->most]);
    return -1;
}

static void print_group(FILE *stream, const char *group, const char *what, const VerbEntry *entries,
                        size_t count)
{
    fprintf(stream, "usage: ipu-stack %s%s%s ... (%s --help tells more)\n\n", group,
            *group ? " " : "", what, what);
    for (size_t i = 0; i < count; i++)
        fprintf(stream, "  %-10s %s\n", entries[i].name, entries[i].summary);
}

static const char *lower_case(const char *what, char *out, size_t size)
{
    snprintf(out, size, "%s", what);
    for (char *c = out; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 'a' - 'A' : *c);
    return out;
}

int verb_group(const char *group, const char *what, const VerbEntry *entries, size_t count,
               int argc, char **argv)
{
    const char *form = manual_form(argc, argv);
    if (form)
        return manual_group(group, entries, count, form);
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        print_group(stdout, group, what, entries, count);
        return 0;
    }
    for (size_t i = 0; argc > 1 && i < count; i++)
        if (strcmp(argv[1], entries[i].name) == 0)
            return entries[i].run(argc - 1, argv + 1);
    char word[32];
    if (argc > 1)
        fprintf(stderr, "ipu-stack%s%s: unknown %s %s\n", *group ? " " : "", group,
                lower_case(what, word, sizeof word), argv[1]);
    print_group(stderr, group, what, entries, count);
    return 2;
}

int command_fail(const char *verb, Status status)
{
    fprintf(stderr, "ipu-stack %s: %s\n", verb, status_message(status));
    status_free(status);
    return 1;
}

bool common_apply(const char *verb, const CommonOptions *common)
{
    LogFormat format = LOG_TEXT;
    if (common->log_format && strcmp(common->log_format, "json") == 0)
        format = LOG_JSON;
    else if (common->log_format && strcmp(common->log_format, "text") != 0) {
        fprintf(stderr, "ipu-stack %s: --log-format is text or json, not %s\n", verb,
                common->log_format);
        return false;
    }
    bool log = common->verbose || common->log_format;
    log_configure(stderr, log ? LOG_DEBUG : LOG_OFF, format);
    Status status = progress_start(!log, common->trace_events);
    return status_ok(status) || command_fail(verb, status) == 0;
}
