/* file.h - filters in files. */
#ifndef FILE_H
#define FILE_H

#include "filter.h"

/* Unmaps the file of a mapped filter. */
void mapping_release(struct mapping *mapping);

#endif
