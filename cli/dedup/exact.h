/* exact.h - dedup --exact and --unique: which lines come first, or once only, without an
 * error. */
#ifndef EXACT_H
#define EXACT_H

#include "../options.h"

/* Does all of dedup --exact or dedup --unique.  Ends the program after an error. */
void exact_run(const struct settings *settings);

#endif
