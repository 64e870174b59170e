/* save.h - filters into files, for those whose bytes are elsewhere. */
#ifndef SAVE_H
#define SAVE_H

#include "container.h"

/* Saves a filter without parts that has no body; 'reader' gives the bytes of that.  Returns as
 * perhaps_layout_save(). */
int filter_save_read(const perhaps_filter *f, perhaps_reader *reader, void *context,
                     const char *path);

#endif
