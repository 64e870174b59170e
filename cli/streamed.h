/* streamed.h - filters that cannot be mapped: they come from a pipe, or are packed. */
#ifndef STREAMED_H
#define STREAMED_H

#include <perhaps.h>
#include <perhaps_file.h>

#include "options.h"

/* Returns whether what is at the path can be read once only: a pipe, a socket, a device. */
bool streamed_once(const char *path);

/* Returns whether the file at the path is packed. */
bool streamed_is_packed(const char *path);

/* Reads the filter at the path into memory, unpacked, and checks every byte.  Returns what
 * perhaps_read() returns; errno tells of PERHAPS_ERR_IO.  Ends the program if the bytes cannot
 * be read or unpacked, or if they were read before or are an input, too. */
int streamed_read(const struct settings *settings, const char *path,
                  const struct perhaps_open_options *options, perhaps_filter **filter);

/* Ends the program if the filter at the path cannot be changed there. */
void streamed_refuse_change(const char *path);

#endif
