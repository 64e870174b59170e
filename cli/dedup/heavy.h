/* heavy.h - dedup --count-each: how often the lines come that come most often. */
#ifndef HEAVY_H
#define HEAVY_H

#include "../options.h"

/* Does all of dedup --count-each.  Ends the program after an error. */
void heavy_run(const struct settings *settings);

#endif
