/* save.h - saves to files, also filters whose bytes somebody else keeps. */
#ifndef SAVE_H
#define SAVE_H

#include "write.h"

/* Saves to 'path' as perhaps_save() does.  Returns 0, or an error of perhaps_save() or of the
 * content's reader. */
int content_save(const struct content *content, const char *path);

#endif
