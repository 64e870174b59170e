/* recount.h - sets the count of a layer by its bits. */
#ifndef RECOUNT_H
#define RECOUNT_H

#include "handle.h"

/* To be called where a layer has no room, and clients that are gone have left some behind:
 * counts its bits, and gives back what was not used.  Returns 0 or an error. */
int recount_abandoned(perhaps_cluster *c, unsigned layer);

#endif
