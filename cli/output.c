#include "output.h"

#include <errno.h>
#include <perhaps.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report.h"

#define ROOM ((size_t)256 << 10)

int output_open(struct output *output)
{
    *output = (struct output){ .buffer = malloc(ROOM) };
    return output->buffer ? 0 : complain("%s", perhaps_strerror(PERHAPS_ERR_MEMORY));
}

static void write_all(struct output *output, const char *bytes, size_t nbytes)
{
    while (nbytes > 0 && !output->error) {
        ssize_t written = write(STDOUT_FILENO, bytes, nbytes);
        if (written < 0 && errno != EINTR) {
            output->error = errno;
        } else if (written > 0) {
            bytes += written;
            nbytes -= (size_t)written;
        }
    }
}

static void drain(struct output *output)
{
    write_all(output, output->buffer, output->used);
    output->used = 0;
}

void output_put(struct output *output, const void *bytes, size_t nbytes)
{
    if (nbytes > ROOM - output->used)
        drain(output);
    if (nbytes > ROOM) {
        write_all(output, bytes, nbytes);
        return;
    }
    memcpy(output->buffer + output->used, bytes, nbytes);
    output->used += nbytes;
}

int output_flush(struct output *output, const char *outcome)
{
    drain(output);
    if (!output->error)
        return 0;
    return complain("standard output: %s%s", strerror(output->error), outcome);
}

void output_close(struct output *output)
{
    free(output->buffer);
}
