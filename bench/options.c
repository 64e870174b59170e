/* options.c - reads options by a table, and the numbers in them: "10M", "0.1%,1%", "1GiB". */
#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { ROWS_MAX = 32 };

/* What may follow a number, and multiplies it. */
static const struct {
    const char *suffix;
    double factor;
} units[] = {
    { "", 1 },    { "%", 0.01 },     { "k", 1e3 },      { "M", 1e6 },
    { "G", 1e9 }, { "KiB", 0x1p10 }, { "MiB", 0x1p20 }, { "GiB", 0x1p30 },
};

/* Reads one number, which ends at a comma or at the end of the text, and moves *text behind it.
 * Ends the program if it is no number or out of range. */
static double read_number(const struct option_row *row, const char **text)
{
    char *suffix;
    double value = strtod(*text, &suffix);
    size_t length = strcspn(suffix, ",");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strlen(units[i].suffix) != length || strncmp(suffix, units[i].suffix, length) != 0)
            continue;
        value *= units[i].factor;
        if (suffix == *text || !(value >= row->least && value <= row->most))
            break;
        *text = suffix + length + (suffix[length] == ',');
        return value;
    }
    errx(2, "--%s %s: not a number from %g to %g", row->name, *text, row->least, row->most);
}

/* Stores the value where the row says.  A list that is given twice counts only once: the last
 * one replaces the first. */
static void read_value(const struct option_row *row, const char *text)
{
    if (row->flag)
        *row->flag = true;
    if (row->text)
        *row->text = text;
    if (!row->list)
        return;
    row->list->count = 0;
    do {
        if (row->list->count == row->numbers)
            errx(2, "--%s %s: not more than %zu", row->name, text, row->numbers);
        row->list->at[row->list->count++] = read_number(row, &text);
    } while (*text);
}

/* Writes both tables into 'rows', one behind the other.  Returns how many rows there are. */
static int unite(struct option_row *rows, const struct option_row *own,
                 const struct option_row *common)
{
    int count = 0;
    for (; own->name; own++)
        rows[count++] = *own;
    for (; common->name; common++)
        rows[count++] = *common;
    return count;
}

/* getopt_long() tells an option by a character: 'A' stands for the first row.  Values that were
 * not given are filled in last, since --quick may stand behind the others. */
void options_read(int argc, char **argv, const char *usage, const struct option_row *own,
                  const struct option_row *common, const bool *quick)
{
    struct option_row rows[ROWS_MAX] = { 0 };
    struct option options[ROWS_MAX + 1] = { 0 };
    int count = unite(rows, own, common), code;
    for (int i = 0; i < count; i++)
        options[i] = (struct option){ rows[i].name, !rows[i].flag, NULL, 'A' + i };
    options[count] = (struct option){ "help", no_argument, NULL, 'A' + count };
    while ((code = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (code == '?')
            errx(2, "--help tells what there is");
        if (code == 'A' + count) {
            fputs(usage, stdout);
            exit(0);
        }
        read_value(&rows[code - 'A'], optarg);
    }
    if (optind < argc)
        errx(2, "%s: takes options only, see --help", argv[optind]);
    for (int i = 0; i < count; i++)
        if (rows[i].list && !rows[i].list->count && rows[i].usual)
            read_value(&rows[i], *quick && rows[i].quick ? rows[i].quick : rows[i].usual);
}

bool has_name(const char *list, const char *name)
{
    size_t length = strlen(name);
    const char *at = list;
    while (at && (strncmp(at, name, length) != 0 || !strchr(",", at[length]))) {
        at = strchr(at, ',');
        at += at != NULL;
    }
    return !list || at;
}
