/* transfer.h - filters from files to servers and back. */
#ifndef TRANSFER_H
#define TRANSFER_H

#include "handle.h"

int transfer_up(perhaps_cluster *c, const perhaps_filter *filter, uint64_t partitions);
int transfer_down(perhaps_cluster *c, const char *path);

#endif
