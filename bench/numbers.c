/* numbers.c - numbers in options: "10M", "0.1%,1%", "1GiB". */
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* What follows a number multiplies it. */
static const struct {
    const char *suffix;
    double factor;
} units[] = {
    { "", 1 },    { "%", 0.01 },     { "k", 1e3 },      { "M", 1e6 },
    { "G", 1e9 }, { "KiB", 0x1p10 }, { "MiB", 0x1p20 }, { "GiB", 0x1p30 },
};

/* Reads "1M" or "0.1%", ended by 'end' or a comma; *text moves behind it. */
static double read_number(const char *option, const char **text, double least, double most)
{
    char *suffix;
    double value = strtod(*text, &suffix);
    size_t length = strcspn(suffix, ",");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strlen(units[i].suffix) != length || strncmp(suffix, units[i].suffix, length) != 0)
            continue;
        value *= units[i].factor;
        if (suffix == *text || !(value >= least && value <= most))
            break;
        *text = suffix + length + (suffix[length] == ',');
        return value;
    }
    errx(2, "--%s %s: not a number from %g to %g", option, *text, least, most);
}

size_t option_list(const char *option, const char *text, double least, double most,
                   double list[LIST_MAX])
{
    size_t count = 0;
    do {
        if (count == LIST_MAX)
            errx(2, "--%s: more than %d numbers", option, LIST_MAX);
        list[count++] = read_number(option, &text, least, most);
    } while (*text);
    return count;
}

double option_one(const char *option, const char *text, double least, double most)
{
    double list[LIST_MAX];
    if (option_list(option, text, least, most, list) > 1)
        errx(2, "--%s %s: one number, please", option, text);
    return list[0];
}
