/* help.h - what the program tells about itself. */
#ifndef HELP_H
#define HELP_H

#include <stdio.h>

#include "options.h"

/* The verbs in a line each. */
void help_usage(FILE *to);

/* What 'perhaps help' prints, and 'perhaps help VERB', with all options or the usual ones. */
void help_print(void);
void help_verb(const struct verb *verb, bool all);

/* What somebody meant who mistyped a name, with or without its "--".  NULL: nobody can tell. */
const struct verb *help_nearest_verb(const char *typed);
const char *help_nearest_option(const struct verb *verb, const char *typed);

#endif
