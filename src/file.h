/* file.h - filters in files. */
#ifndef FILE_H
#define FILE_H

#include "filter.h"

/* Unmaps the file of a mapped filter; the last who wrote it in place gives it its checksums. */
void mapping_release(perhaps_filter *f);

#endif
