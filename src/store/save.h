/* save.h - filters into files, for those whose bytes are elsewhere. */
#ifndef SAVE_H
#define SAVE_H

#include "write.h"

/* As perhaps_save(), and errors of the content's reader. */
int content_save(const struct content *content, const char *path);

#endif
