#include "help.h"

#include <perhaps.h>
#include <string.h>

/* ---- Names that were mistyped --------------------------------------------------------- */

#define NAME_MOST 32

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many letters must be put in, left out, exchanged or swapped with the next one to make one
 * name of the other. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
    size_t d[NAME_MOST + 1][NAME_MOST + 1];
    for (size_t i = 0; i <= na; i++)
        for (size_t j = 0; j <= nb; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            bool same = a[i - 1] == b[j - 1];
            d[i][j] = least(d[i - 1][j - 1] + !same, least(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[na][nb];
}

/* How unlike what was typed, 'nbytes' long, is to the name; 0: its beginning. */
static size_t unlikeness(const char *typed, size_t nbytes, const char *name)
{
    size_t length = strlen(name);
    if (nbytes > 2 && nbytes <= length && memcmp(typed, name, nbytes) == 0)
        return 0;
    return nbytes > NAME_MOST || length > NAME_MOST ? NAME_MOST
                                                    : distance(typed, nbytes, name, length);
}

/* At most a third of it may be wrong. */
static size_t tolerance(size_t nbytes)
{
    return 1 + nbytes / 3;
}

const struct verb *help_nearest_verb(const char *typed)
{
    const struct verb *verb, *nearest = NULL;
    size_t nbytes = strlen(typed), most = tolerance(nbytes);
    for (size_t i = 0; (verb = verb_at(i)); i++) {
        size_t n = unlikeness(typed, nbytes, verb->name);
        if (n < most) {
            most = n;
            nearest = verb;
        }
    }
    return nearest;
}

const char *help_nearest_option(const struct verb *verb, const char *typed)
{
    struct option_text option;
    const char *nearest = NULL;
    typed += strspn(typed, "-");
    size_t nbytes = strcspn(typed, "="), most = tolerance(nbytes);
    for (size_t i = 0; options_text(verb, i, &option); i++) {
        size_t n = unlikeness(typed, nbytes, option.name);
        if (n < most) {
            most = n;
            nearest = option.name;
        }
    }
    return nearest;
}

/* ---- Help ----------------------------------------------------------------------------- */

enum { WIDTH = 79, LEFT = 24, USUAL = 10 };

/* Prints words in lines that are full at WIDTH, begin at 'indent', and end where the text has a
 * newline, too.  The first is begun up to 'column' already. */
static void print_words(const char *text, size_t column, size_t indent, FILE *to)
{
    for (bool first = true; *text; first = false) {
        size_t length = strcspn(text, " \n");
        if (!first && column + 1 + length > WIDTH) {
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
            column = WIDTH;
        text += *text != '\0';
    }
    putc('\n', to);
}

/* A name, and behind it in a column of its own what it means. */
static void print_entry(const char *left, const char *text, FILE *to)
{
    int length = fprintf(to, "  %-*s ", LEFT - 3, left);
    print_words(text, length > LEFT ? (size_t)length : LEFT, LEFT, to);
}

static void print_option(const struct option_text *option)
{
    char left[48];
    int length = option->letter ? snprintf(left, sizeof left, "-%c, ", option->letter)
                                : snprintf(left, sizeof left, "    ");
    snprintf(left + length, sizeof left - (size_t)length, "--%s %s", option->name,
             option->argument ? option->argument : "");
    print_entry(left, option->help, stdout);
}

/* The usual ones do where they are nearly all. */
static void print_options(const struct verb *verb, bool all)
{
    struct option_text option;
    size_t count = 0;
    while (options_text(verb, count, &option))
        count++;
    size_t shown = all || count <= USUAL + 3 ? count : USUAL;
    for (size_t i = 0; i < shown && options_text(verb, i, &option); i++)
        print_option(&option);
    if (shown < count)
        printf("  and %zu more: 'perhaps %s --help-all'\n", count - shown, verb->name);
}

void help_usage(FILE *to)
{
    const struct verb *verb;
    fputs("usage: perhaps VERB [OPTION...] [OPERAND...]\n\n", to);
    for (size_t i = 0; (verb = verb_at(i)); i++)
        fprintf(to, "  %-8s %s\n", verb->name, verb->summary);
    fputs("\n'perhaps help VERB' tells more, 'man perhaps' all.\n", to);
}

void help_print(void)
{
    fputs("perhaps: is this key in the set?  \"Certainly not\", or \"perhaps\".\n\n", stdout);
    help_usage(stdout);
    fputs("\n  printf '%s\\n' apple pear | perhaps build -o fruit -n 1000 -p 0.1%\n"
          "  printf '%s\\n' apple stone | perhaps query fruit     # prints apple\n",
          stdout);
}

static void print_kinds(void)
{
    const struct perhaps_kind *kind;
    puts("\nKinds:");
    for (size_t i = 0; (kind = perhaps_kind_at(i)); i++)
        print_entry(kind->name, kind->summary, stdout);
}

void help_verb(const struct verb *verb, bool all)
{
    printf("usage: perhaps %s %s\n%s: %s.\n\n", verb->name, verb->usage, verb->name,
           verb->summary);
    print_options(verb, all);
    if (all && verb->bit & (BUILD | CREATE | DEDUP | PLAN))
        print_kinds();
    putchar('\n');
    print_words(verb->notes, 0, 0, stdout);
    if (verb->takes_inputs && !(verb->bit & (MERGE | CONVERT)))
        puts("\nINPUT: files, or - for standard input, which is the default; what gzip, zstd,\n"
             "xz or bzip2 packed is unpacked.  A key is a line without its newline: any\n"
             "bytes, of any length.");
}
