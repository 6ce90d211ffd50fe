/* manual.c - the man page and the completion of bash, from the verbs' own tables of options.
 *
 * A verb that is called with --describe=FORM prints its part instead of doing its work: the parser
 * of options has the table in its hands there, and nowhere else. `ipu-stack describe FORM` (for
 * builds and tests, in no list) puts head and foot around all verbs' parts. */
#include "cli/cli.h"

#include <string.h>

static const char describe[] = "--describe=";

const char *manual_form(int argc, char **argv)
{
    size_t length = sizeof describe - 1;
    return argc == 2 && strncmp(argv[1], describe, length) == 0 ? argv[1] + length : NULL;
}

int manual_parts(const char *group, const VerbEntry *entries, size_t count, const char *form)
{
    char option[32];
    int status = 0;
    snprintf(option, sizeof option, "%s%s", describe, form);
    for (size_t i = 0; i < count; i++) {
        char path[64];
        char *argv[] = {path, option, NULL};
        snprintf(path, sizeof path, "%s%s%s", group, *group ? " " : "", entries[i].name);
        if (strcmp(form, "man") != 0 || !entries[i].like_before)
            status |= entries[i].run(2, argv);
    }
    return status;
}

/* ---- man ---- */

/* Text of a line: hyphens are minus signs, and nothing is taken for a request. */
static void put_text(const char *text)
{
    bool apart = false; /* in a line that is set out */
    for (const char *c = text; *c; c++) {
        if ((*c == '.' || *c == '\'') && (c == text || c[-1] == '\n'))
            fputs("\\&", stdout);
        if (*c == '-')
            fputs("\\-", stdout);
        else if (*c == '\\')
            fputs("\\e", stdout);
        else if (*c == '\n' && c[1] == '\n')
            fputs("\n.PP", stdout);
        else if (*c == '\n' && (apart || c[1] == ' '))
            fputs("\n.br\n", stdout);
        else
            fputc(*c, stdout);
        apart = *c == '\n' ? c[1] == ' ' : apart;
    }
}

static void put_man(const Command *command)
{
    fputs(".SS ", stdout);
    put_text(command->usage);
    fputc('\n', stdout);
    put_text(command->summary);
    fputc('\n', stdout);
    for (const Option *o = command->options; o && o->name; o++) {
        fputs(".TP\n.B ", stdout);
        put_text(o->name);
        if (o->value && *o->value) {
            fputs(o->value[0] == '[' ? "\\fI" : " \\fI", stdout);
            put_text(o->value);
            fputs("\\fR", stdout);
        }
        fputc('\n', stdout);
        put_text(o->help);
        fputc('\n', stdout);
    }
}

static void man_head(const VerbEntry *verbs, size_t count)
{
    printf(".TH IPU\\-STACK 1 \"\" \"ipu\\-stack %s\" \"User Commands\"\n", IPU_VERSION);
    fputs(".SH NAME\nipu\\-stack \\- compiler, assembler and simulator for the Graphcore IPU21\n"
          ".SH SYNOPSIS\n.B ipu\\-stack\n.I VERB\n[\\fIarguments\\fR] [\\fIoptions\\fR]\n.br\n"
          ".B ipu\\-stack\n\\fIVERB\\fR \\fB\\-\\-help\\fR\n.br\n.B ipu\\-stack \\-\\-version\n"
          ".SH DESCRIPTION\n"
          "Compiles a model into one package of machine code for all tiles of the chip, runs it on "
          "a\ncycle\\-exact simulator, and shows every decision, cycle and byte.\n"
          "A value follows its option or stands behind \"=\"; \"\\-\\-\" ends the options.\n",
          stdout);
    for (size_t i = 0; i < count; i++) {
        fputs(".TP\n.B ", stdout);
        put_text(verbs[i].name);
        fputc('\n', stdout);
        put_text(verbs[i].summary);
        fputc('\n', stdout);
    }
    fputs(".SH VERBS\n", stdout);
}

static void man_foot(void)
{
    fputs(".SH EXIT STATUS\n0: done. 1: the work failed, a message says why. 2: bad usage.\n"
          ".SH ENVIRONMENT\n.TP\n.B IPU_STACK_CACHE\n"
          "folder of assembled kernels (default: ipu\\-stack below $XDG_CACHE_HOME or ~/.cache)\n"
          ".SH EXAMPLES\n.nf\n"
          "ipu\\-stack build models/digits\\-vit.json \\-\\-weights digits\\-vit.safetensors \\-o "
          "digits.ipuexe\n"
          "ipu\\-stack classify digits.ipuexe picture.png\n"
          "ipu\\-stack explain digits.ipuexe \\-\\-stage plan\n"
          "ipu\\-stack bench digits \\-\\-images 1 \\-\\-profile digits.ipuprof\n"
          "ipu\\-stack profile render digits.ipuprof \\-o digits.html\n.fi\n",
          stdout);
}

/* ---- bash ---- */

/* One word in single quotes, blanks made safe: the list is split at them. */
static void put_word(const char *name, const char *value)
{
    printf(" %s", name);
    if (value && *value)
        fputc('=', stdout);
    for (const char *c = value; c && *c; c++)
        fputc(*c == ' ' || *c == '\'' || *c == '*' || *c == '?' ? '_' : *c, stdout);
}

static void put_bash(const Command *command, const char *path)
{
    printf("    '%s') specs='--help", path);
    for (const Option *o = command->options; o && o->name; o++)
        put_word(o->name, o->value);
    fputs("' ;;\n", stdout);
}

static void bash_head(const VerbEntry *verbs, size_t count)
{
    fputs("# ipu-stack: completion for bash, made from the command's own tables of options.\n"
          "_ipu_stack_specs() {\n    specs=''\n    case \"$1\" in\n    '') specs='--help --version",
          stdout);
    for (size_t i = 0; i < count; i++)
        printf(" %s", verbs[i].name);
    fputs("' ;;\n", stdout);
}

/* specs: NAME or NAME=VALUE by blanks. A VALUE with bars is a choice, one with FILE a file. */
static const char bash_foot[] =
    "    esac\n"
    "}\n"
    "_ipu_stack() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} specs spec "
    "path=''\n"
    "    local words='' value='' second=''\n"
    "    [ \"$cur\" = = ] && cur=''\n"
    "    if [ \"$before\" = = ]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
    "    [ $COMP_CWORD -gt 1 ] && path=${COMP_WORDS[1]}\n"
    "    [ $COMP_CWORD -gt 2 ] && second=${COMP_WORDS[2]}\n"
    "    _ipu_stack_specs \"$path${second:+ $second}\"\n"
    "    [ -n \"$specs\" ] || _ipu_stack_specs \"$path\"\n"
    "    for spec in $specs; do\n"
    "        case \"$spec\" in\n"
    "        \"$before\"=*) value=${spec#*=} ;;\n"
    "        *) words=\"$words ${spec%%=*}\" ;;\n"
    "        esac\n"
    "    done\n"
    "    case \"$value\" in\n"
    "    '') COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
    "        [ -z \"$path\" ] || [ \"${cur#-}\" != \"$cur\" ] || COMPREPLY+=($(compgen -f -- "
    "\"$cur\")) ;;\n"
    "    *FILE* | *DIR* | */*) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
    "    *'|'*) COMPREPLY=($(compgen -W \"${value//|/ }\" -- \"$cur\")) ;;\n"
    "    *) COMPREPLY=() ;;\n"
    "    esac\n"
    "}\n"
    "complete -o filenames -F _ipu_stack ipu-stack\n";

/* The second word of a verb that is a group of others. */
static void put_group(const char *group, const VerbEntry *entries, size_t count)
{
    printf("    '%s') specs='--help", group);
    for (size_t i = 0; i < count; i++)
        printf(" %s", entries[i].name);
    fputs("' ;;\n", stdout);
}

/* ---- both ---- */

int manual_command(const Command *command, const char *path, const char *form)
{
    if (strcmp(form, "man") == 0)
        put_man(command);
    else
        put_bash(command, path);
    return 0;
}

int manual_group(const char *group, const VerbEntry *entries, size_t count, const char *form)
{
    if (strcmp(form, "bash") == 0)
        put_group(group, entries, count);
    return manual_parts(group, entries, count, form);
}

int manual_print(const char *form, const VerbEntry *verbs, size_t count)
{
    bool man = strcmp(form, "man") == 0;
    if (!man && strcmp(form, "bash") != 0) {
        fprintf(stderr, "ipu-stack describe: man or bash\n");
        return 2;
    }
    (man ? man_head : bash_head)(verbs, count);
    int status = manual_parts("", verbs, count, form);
    if (man)
        man_foot();
    else
        fputs(bash_foot, stdout);
    return status;
}
