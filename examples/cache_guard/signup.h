/* signup.h - "is this e-mail address taken?"; and if not, it is given away. */
#ifndef SIGNUP_H
#define SIGNUP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "guard.h"

/* Who told whether an address is free. */
enum word {
    WORD_GUARD,      /* free: certainly nobody has it */
    WORD_DATABASE,   /* asked, since the guard said perhaps */
    WORD_CONSTRAINT, /* taken: another process was quicker */
    WORD_NOBODY,     /* refused: no e-mail address */
    WORDS
};

struct signups {
    uint64_t free_by[WORDS], taken_by[WORDS], refused;
};

/* Gives the address away unless it is taken.  Returns whether it was free. */
bool sign_up(struct database *database, struct guard *guard, const char *email,
             enum word *word);

/* The same for each line of 'in'; writes "free" or "taken", a tab, who said so, a tab, and the
 * address. */
struct signups sign_up_lines(struct database *database, struct guard *guard, FILE *in,
                             FILE *out);

#endif
