/* told.h - structs of the library as JSON, with the names that they have in JavaScript.  The
 * texts end with a zero, and are cut where there is no more room. */
#ifndef TOLD_H
#define TOLD_H

#include <perhaps_plan.h>

void told_kind(const struct perhaps_kind *kind, char *text, size_t room);
void told_plan(const struct perhaps_plan *plan, char *text, size_t room);
void told_stats(const struct perhaps_stats *stats, unsigned abilities, char *text, size_t room);

#endif
