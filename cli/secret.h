/* secret.h - the file that holds the secret of a sip filter. */
#ifndef SECRET_H
#define SECRET_H

#include <stdbool.h>
#include <stdint.h>

#define SECRET_NBYTES 16

/* Reads 16 bytes, or 32 hex digits and perhaps a newline.  If 'missing' is not NULL, sets it
 * instead of complaining that there is no such file.
 * Returns 0, or the exit status, having complained. */
int secret_read(const char *path, uint8_t secret[SECRET_NBYTES], bool *missing);

/* Writes the secret to a new file, which only its owner can read.  Returns 0, or the exit
 * status, having complained. */
int secret_write(const char *path, const uint8_t secret[SECRET_NBYTES]);

#endif
