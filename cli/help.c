/* help.c - help, and completion scripts for shells.
 *
 * All of it is made from the tables of verbs and options when it is asked for, so it cannot
 * differ from what the program takes. */
#include "options.h"

#include <perhaps.h>
#include <perhaps_plan.h>
#include <stdio.h>
#include <string.h>

#include "base/messages.h"
#include "base/numbers.h"

/* ---- Help ------------------------------------------------------------------------- */

/* The width of the text, the column of explanations, and how many options help shows first. */
enum { WIDTH = 79, WIDTH_LEAST = 40, LEFT = 24, VERB_LEFT = 13, USUAL = 10 };

/* Returns the width of the text: that of the terminal, if it is narrower than usual. */
static size_t width_of(FILE *to)
{
    const unsigned columns = terminal_columns(fileno(to));
    return columns > WIDTH ? WIDTH : columns > WIDTH_LEAST ? columns - 1 : WIDTH_LEAST;
}

/* Prints words in lines as wide as the text, which begin at 'indent'.  A newline in the text
 * begins a new line, too.  'column' is where the first line already is. */
static void print_words(const char *text, size_t column, size_t indent, FILE *to)
{
    const size_t width = width_of(to);
    for (bool first = true; *text; first = false) {
        size_t length = strcspn(text, " \n");
        if (!first && column + 1 + length > width) {
            fprintf(to, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!first) {
            putc(' ', to);
            column++;
        }
        fwrite(text, 1, length, to);
        column += length;
        text += length;
        if (*text == '\n')
            column = width;
        text += *text != '\0';
    }
    putc('\n', to);
}

/* Prints a name, and what it means in a column beside it. */
static void print_entry(const char *left, const char *text, FILE *to)
{
    int length = fprintf(to, "  %s", left);
    if (length >= LEFT) /* the text begins in the next line */
        putc('\n', to), length = 0;
    fprintf(to, "%*s", LEFT - length, "");
    print_words(text, LEFT, LEFT, to);
}

static void print_option(const struct option_row *option)
{
    char left[48];
    int length = option->letter ? snprintf(left, sizeof left, "-%c, ", option->letter)
                                : snprintf(left, sizeof left, "    ");
    snprintf(left + length, sizeof left - (size_t)length, "--%s %s", option->name,
             option->argument ? option->argument : "");
    print_entry(left, option->help, stdout);
}

/* Prints the options of the verb: all, or those that are used most.  If only few more would be
 * left out, prints all. */
static void print_options(const struct verb *verb, bool all)
{
    const struct option_row *option;
    size_t count = 0;
    while (option_at(verb, count))
        count++;
    size_t shown = all || count <= USUAL + 3 ? count : USUAL;
    for (size_t i = 0; i < shown && (option = option_at(verb, i)); i++)
        print_option(option);
    if (shown < count)
        printf("  and %zu more: 'perhaps %s --help-all'\n", count - shown, verb->name);
}

void help_usage(const struct verb *verbs, FILE *to)
{
    fputs("usage: perhaps VERB [OPTION...] [OPERAND...]\n\n", to);
    for (const struct verb *verb = verbs; verb->name; verb++) {
        fprintf(to, "  %-*s ", VERB_LEFT - 3, verb->name);
        print_words(verb->summary, VERB_LEFT, VERB_LEFT, to);
    }
    fputs("\n'perhaps help VERB' tells more, 'man perhaps' all.\n", to);
}

void help_print(const struct verb *verbs)
{
    fputs("perhaps: is this key in the set?  \"Certainly not\", or \"perhaps\".\n\n", stdout);
    help_usage(verbs, stdout);
    fputs("\n  printf '%s\\n' apple pear | perhaps build -o fruit -n 1000 -p 0.1%\n"
          "  printf '%s\\n' apple stone | perhaps query fruit     # prints apple\n",
          stdout);
}

static void print_kinds(void)
{
    const struct perhaps_kind *kind;
    puts("\nKinds: (with what each takes, as in --kind chain:factor=4,base=bloom)");
    for (size_t i = 0; (kind = perhaps_kind_at(i)); i++) {
        struct text entry = text_of("%s", kind->name);
        const char *takes;
        for (size_t at = 0, n = 0; (takes = kind_takes(kind->name, &at)); n++)
            entry = text_of("%s%c%s", entry.s, n ? ',' : ':', takes);
        print_entry(entry.s, kind->summary, stdout);
    }
}

void help_verb(const struct verb *verb, bool all)
{
    printf("usage: perhaps %s %s\n%s: %s.\n\n", verb->name, verb->usage, verb->name,
           verb->summary);
    print_options(verb, all);
    if (all && verb->bit == PLAN)
        print_kinds();
    putchar('\n');
    print_words(verb->notes, 0, 0, stdout);
    if (verb->takes_inputs && !(verb->bit & (MERGE | COMPARE | COPY)))
        puts("\nINPUT: files, or - for standard input, the default; what gzip, zstd, xz or\n"
             "bzip2 packed is unpacked.  A key is a line without its newline, of any bytes.");
}

/* ---- Completions for shells ------------------------------------------------------- */

/* Each script is made when it is asked for.  Beside the verbs and options it knows only which
 * values are files, kinds or hashes. */
static void print_verbs(const struct verb *verbs, const char *separator)
{
    for (const struct verb *verb = verbs; verb->name; verb++)
        printf("%s%s", verb->name, separator);
}

/* Prints the values of an option that has only few, with blanks between them. */
static void print_values(const struct option_row *option)
{
    const enum option_values values = option_values(option);
    const struct perhaps_kind *kind;
    for (enum perhaps_hash h = 0; values == VALUES_HASHES && h < PERHAPS_HASH_COUNT; h++)
        if (h != PERHAPS_HASH_CUSTOM && h != PERHAPS_HASH_GROUPED)
            printf("%s%s", h ? " " : "", perhaps_hash_name(h));
    if (values == VALUES_PREFERENCES)
        fputs("fast compact", stdout);
    for (size_t i = 0; values == VALUES_KINDS && (kind = perhaps_kind_at(i)); i++)
        printf("%s%s", i ? " " : "", kind->name);
}

/* Returns whether the option can have only few values, which a shell can offer. */
static bool has_few_values(const struct option_row *option)
{
    return option_values(option) >= VALUES_KINDS;
}

/* Prints the text with a backslash before each of the special characters. */
static void print_escaped(const char *text, const char *special)
{
    for (; *text; text++) {
        if (strchr(special, *text))
            putchar('\\');
        putchar(*text);
    }
}

/* ---- Completions: bash ------------------------------------------------------------ */

/* Prints the words that can follow this verb: the values of an option, or options. */
static void print_bash_verb(const struct verb *verb)
{
    const struct option_row *option;
    printf("    %s)\n        case $before in\n", verb->name);
    for (size_t i = 0; (option = option_at(verb, i)); i++)
        if (has_few_values(option)) {
            printf("        --%s) words='", option->name);
            print_values(option);
            puts("' ;;");
        }
    fputs("        *) [[ $word != -* ]] || words='", stdout);
    for (size_t i = 0; (option = option_at(verb, i)); i++)
        printf("%s--%s", i ? " " : "", option->name);
    puts("' ;;\n        esac\n        ;;");
}

/* Where the script offers no words, bash offers files ('-o default'). */
static void print_bash(const struct verb *verbs)
{
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
    print_verbs(verbs, " ");
    puts("help --help --version' ;;");
    for (const struct verb *verb = verbs; verb->name; verb++)
        print_bash_verb(verb);
    puts("    esac\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "}\n"
         "complete -o default -F _perhaps perhaps");
}

/* ---- Completions: zsh ------------------------------------------------------------- */

/* Prints an option as _arguments takes it, such as '*--kind=[what it is]:K:(a b c)'. */
static void print_zsh_spec(const char *name, const char *glue, const struct option_row *option)
{
    printf(" \\\n            '*%s%s[", name, option->argument ? glue : "");
    for (const char *c = option->help; *c; c++)
        if (*c == '\'')
            fputs("'\\''", stdout);
        else
            printf("%s%c", strchr("[]:\\", *c) ? "\\" : "", *c);
    putchar(']');
    if (has_few_values(option)) {
        printf(":%s:(", option->argument);
        print_values(option);
        putchar(')');
    } else if (option->argument) {
        printf(":%s:%s", option->argument,
               option_values(option) == VALUES_FILES ? "_files" : "");
    }
    putchar('\'');
}

static void print_zsh_verb(const struct verb *verb)
{
    const struct option_row *option;
    printf("    %s)\n        _arguments -s -S", verb->name);
    for (size_t i = 0; (option = option_at(verb, i)); i++) {
        char letter[3] = { '-', (char)option->letter, '\0' }, name[64];
        snprintf(name, sizeof name, "--%s", option->name);
        if (option->letter)
            print_zsh_spec(letter, "+", option);
        print_zsh_spec(name, "=", option);
    }
    puts(" \\\n            '*:file:_files'\n        ;;");
}

static void print_zsh(const struct verb *verbs)
{
    puts("#compdef perhaps\n"
         "# zsh completion for perhaps, made by: perhaps help --completion zsh\n"
         "_perhaps()\n"
         "{\n"
         "    local -a verbs\n"
         "    verbs=(");
    for (const struct verb *verb = verbs; verb->name; verb++) {
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
    for (const struct verb *verb = verbs; verb->name; verb++)
        print_zsh_verb(verb);
    puts("    esac\n"
         "}\n"
         "if [ \"$funcstack[1]\" = _perhaps ]; then _perhaps \"$@\"; else compdef _perhaps "
         "perhaps; fi");
}

/* ---- Completions: fish ------------------------------------------------------------ */

/* Prints a line of the script: -x means that the value is no file, -F that it is one. */
static void print_fish_option(const struct verb *verb, const struct option_row *option)
{
    printf("complete -c perhaps -n '__fish_seen_subcommand_from %s'", verb->name);
    if (option->letter)
        printf(" -s %c", option->letter);
    printf(" -l %s", option->name);
    if (has_few_values(option)) {
        fputs(" -x -a '", stdout);
        print_values(option);
        putchar('\'');
    } else if (option->argument) {
        fputs(option_values(option) == VALUES_FILES ? " -r -F" : " -x", stdout);
    }
    fputs(" -d '", stdout);
    print_escaped(option->help, "'\\");
    puts("'");
}

static void print_fish(const struct verb *verbs)
{
    const struct option_row *option;
    puts("# fish completion for perhaps, made by: perhaps help --completion fish");
    for (const struct verb *verb = verbs; verb->name; verb++) {
        printf("complete -c perhaps -f -n __fish_use_subcommand -a %s -d '", verb->name);
        print_escaped(verb->summary, "'\\");
        puts("'");
        for (size_t k = 0; (option = option_at(verb, k)); k++)
            print_fish_option(verb, option);
    }
    fputs("complete -c perhaps -f -n '__fish_seen_subcommand_from help' -a '", stdout);
    print_verbs(verbs, " ");
    puts("'");
}

bool help_completion(const struct verb *verbs, const char *shell)
{
    static const struct {
        const char *shell;
        void (*print)(const struct verb *verbs);
    } scripts[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish } };
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        if (strcmp(shell, scripts[i].shell) == 0) {
            scripts[i].print(verbs);
            return true;
        }
    return false;
}
