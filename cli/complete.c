/* Each script is written anew from the tables of verbs and options. */
#include "complete.h"

#include <perhaps.h>
#include <stdio.h>
#include <string.h>

#include "options.h"

/* ---- Words that all shells are told ------------------------------------------------------ */

static void print_verbs(const char *separator)
{
    const struct verb *verb;
    for (size_t i = 0; (verb = verb_at(i)); i++)
        printf("%s%s", verb->name, separator);
}

/* The values of such an option, with blanks between them. */
static void print_values(enum option_value value)
{
    const struct perhaps_kind *kind;
    if (value == VALUE_HASH)
        fputs("xxh3 sip none", stdout);
    for (size_t i = 0; value == VALUE_KIND && (kind = perhaps_kind_at(i)); i++)
        printf("%s%s", i ? " " : "", kind->name);
}

static bool has_values(enum option_value value)
{
    return value == VALUE_KIND || value == VALUE_HASH;
}

/* With a backslash before each of the special characters. */
static void print_escaped(const char *text, const char *special)
{
    for (; *text; text++) {
        if (strchr(special, *text))
            putchar('\\');
        putchar(*text);
    }
}

/* ---- bash -------------------------------------------------------------------------------- */

static void print_bash_verb(const struct verb *verb)
{
    struct option_text option;
    printf("    %s)\n        case $before in\n", verb->name);
    for (size_t i = 0; options_text(verb, i, &option); i++)
        if (has_values(option.value)) {
            printf("        --%s) words='", option.name);
            print_values(option.value);
            puts("' ;;");
        }
    fputs("        *) [[ $word != -* ]] || words='", stdout);
    for (size_t i = 0; options_text(verb, i, &option); i++)
        printf("%s--%s", i ? " " : "", option.name);
    puts("' ;;\n        esac\n        ;;");
}

/* Where there is nothing to say, files are offered. */
static void print_bash(void)
{
    const struct verb *verb;
    puts("# bash completion for perhaps, made by: perhaps help --completion bash\n"
         "_perhaps()\n"
         "{\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
         "    local verb=${COMP_WORDS[1]} words=\n"
         "    [[ $word != = ]] || word=\n"
         "    [[ $before != = ]] || before=${COMP_WORDS[COMP_CWORD - 2]}\n"
         "    [[ $COMP_CWORD -gt 1 ]] || verb=\n"
         "    case $verb in");
    fputs("    '' | help) words='", stdout);
    print_verbs(" ");
    puts("help --help --version' ;;");
    for (size_t i = 0; (verb = verb_at(i)); i++)
        print_bash_verb(verb);
    puts("    esac\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "}\n"
         "complete -o default -F _perhaps perhaps");
}

/* ---- zsh --------------------------------------------------------------------------------- */

/* "--kind=[what it is]:K:(a b c)", between single quotes. */
static void print_zsh_spec(const char *name, const char *glue, const struct option_text *option)
{
    printf(" \\\n            '*%s%s[", name, option->argument ? glue : "");
    for (const char *c = option->help; *c; c++)
        if (*c == '\'')
            fputs("'\\''", stdout);
        else
            printf("%s%c", strchr("[]:\\", *c) ? "\\" : "", *c);
    putchar(']');
    if (has_values(option->value)) {
        printf(":%s:(", option->argument);
        print_values(option->value);
        putchar(')');
    } else if (option->argument) {
        printf(":%s:%s", option->argument, option->value == VALUE_FILE ? "_files" : "");
    }
    putchar('\'');
}

static void print_zsh_verb(const struct verb *verb)
{
    struct option_text option;
    printf("    %s)\n        _arguments -s -S", verb->name);
    for (size_t i = 0; options_text(verb, i, &option); i++) {
        char letter[3] = { '-', (char)option.letter, '\0' }, name[64];
        snprintf(name, sizeof name, "--%s", option.name);
        if (option.letter)
            print_zsh_spec(letter, "+", &option);
        print_zsh_spec(name, "=", &option);
    }
    puts(" \\\n            '*:file:_files'\n        ;;");
}

static void print_zsh(void)
{
    const struct verb *verb;
    puts("#compdef perhaps\n"
         "# zsh completion for perhaps, made by: perhaps help --completion zsh\n"
         "_perhaps()\n"
         "{\n"
         "    local -a verbs\n"
         "    verbs=(");
    for (size_t i = 0; (verb = verb_at(i)); i++) {
        printf("        \"%s:", verb->name);
        print_escaped(verb->summary, "\"\\$`");
        puts("\"");
    }
    puts("        \"help:tell more about a verb\"\n"
         "    )\n"
         "    if (( CURRENT == 2 )) || [[ $words[2] == help ]]; then\n"
         "        _describe verb verbs\n"
         "        return\n"
         "    fi\n"
         "    local verb=$words[2]\n"
         "    shift words\n"
         "    (( CURRENT-- ))\n"
         "    case $verb in");
    for (size_t i = 0; (verb = verb_at(i)); i++)
        print_zsh_verb(verb);
    puts("    esac\n"
         "}\n"
         "if [ \"$funcstack[1]\" = _perhaps ]; then _perhaps \"$@\"; else compdef _perhaps "
         "perhaps; fi");
}

/* ---- fish -------------------------------------------------------------------------------- */

static void print_fish_option(const struct verb *verb, const struct option_text *option)
{
    printf("complete -c perhaps -n '__fish_seen_subcommand_from %s'", verb->name);
    if (option->letter)
        printf(" -s %c", option->letter);
    printf(" -l %s", option->name);
    if (has_values(option->value)) {
        fputs(" -x -a '", stdout);
        print_values(option->value);
        putchar('\'');
    } else if (option->argument) {
        fputs(option->value == VALUE_FILE ? " -r -F" : " -x", stdout);
    }
    fputs(" -d '", stdout);
    print_escaped(option->help, "'\\");
    puts("'");
}

static void print_fish(void)
{
    const struct verb *verb;
    struct option_text option;
    puts("# fish completion for perhaps, made by: perhaps help --completion fish");
    for (size_t i = 0; (verb = verb_at(i)); i++) {
        printf("complete -c perhaps -f -n __fish_use_subcommand -a %s -d '", verb->name);
        print_escaped(verb->summary, "'\\");
        puts("'");
        for (size_t k = 0; options_text(verb, k, &option); k++)
            print_fish_option(verb, &option);
    }
    fputs("complete -c perhaps -f -n '__fish_seen_subcommand_from help' -a '", stdout);
    print_verbs(" ");
    puts("'");
}

bool complete_print(const char *shell)
{
    static const struct {
        const char *shell;
        void (*print)(void);
    } scripts[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish } };
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        if (strcmp(shell, scripts[i].shell) == 0) {
            scripts[i].print();
            return true;
        }
    return false;
}
