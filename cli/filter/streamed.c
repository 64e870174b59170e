/* streamed.c - filters from pipes and packed files, read into memory.
 *
 * The header of a filter tells how much memory it takes, and may lie.  The library gets it from
 * the system at once, but touches only what it has read bytes for: so no more is taken of the
 * machine than comes. */
#include "streamed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/messages.h"
#include "../base/stop.h"
#include "../input/input.h"
#include "../input/stream.h"

/* The pipes that filters were read from.  Only the main thread reads filters. */
static struct stat *pipes;
static size_t npipes;

bool streamed_once(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

bool streamed_is_packed(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool is_packed = fd >= 0 && stream_is_packed(fd);
    if (fd >= 0)
        close(fd);
    return is_packed;
}

/* Ends the program if it would wait for ever, since a pipe that is named twice gives nothing
 * when it is read again. */
static void expect_new(const struct settings *settings, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        fail("%s: %s", path, strerror(errno));
    if (settings->verb->bit & (QUERY | COUNT))
        input_refuse_pipe(settings, &st, path);
    for (size_t i = 0; i < npipes; i++)
        if (is_same_file(&st, &pipes[i]))
            fail("%s: can be read once only, and was read already: name it once", path);
    pipes = realloc(pipes, (npipes + 1) * sizeof *pipes);
    if (!pipes)
        fail("%s", why(PERHAPS_ERR_MEMORY));
    pipes[npipes++] = st;
}

/* Where the bytes of a filter come from. */
struct passing {
    struct stream stream;
    bool begun; /* the magic number of filters came */
};

/* Gives the library its bytes.  What ends before the magic number is no filter. */
static int take_bytes(void *context, void *bytes, size_t nbytes)
{
    struct passing *passing = context;
    for (char *at = bytes; nbytes > 0;) {
        ssize_t got = stream_read(&passing->stream, at, nbytes);
        if (got < 0)
            return PERHAPS_ERR_STOPPED;
        if (got == 0)
            return passing->begun ? PERHAPS_ERR_DAMAGED : PERHAPS_ERR_FORMAT;
        at += got;
        nbytes -= (size_t)got;
    }
    passing->begun = true;
    return 0;
}

int streamed_read(const struct settings *settings, const char *path,
                  const struct perhaps_open_options *options, perhaps_filter **filter)
{
    struct passing passing = { .stream.fd = -1 };
    struct stream *stream = &passing.stream;
    struct perhaps_open_options load = *options;
    const struct perhaps_source source = { .read = take_bytes, .context = &passing };
    if (streamed_once(path))
        expect_new(settings, path);
    load.mode = PERHAPS_MODE_LOAD;
    load.check = options->check || settings->verb->bit == VERIFY;
    int error = stream_open(stream, path, STREAM_FILTER, NULL)
                    ? perhaps_read(&source, &load, filter)
                    : PERHAPS_ERR_STOPPED;
    if (error == PERHAPS_ERR_STOPPED && stop_signal())
        fail_interrupted("");
    if (error == PERHAPS_ERR_STOPPED)
        fail("%s: %s", path, problem_or_memory(stream->problem));
    if (error == PERHAPS_ERR_UNSUPPORTED && load.check)
        fail(
            "%s: was being written in place, and has no checksums: take it again when that has "
            "ended",
            path);
    stream_close(stream);
    return error;
}

void streamed_refuse_change(const char *path)
{
    if (streamed_once(path))
        fail(
            "%s: is no file, and a filter can be changed in a file only: write it to one first",
            path);
    if (streamed_is_packed(path))
        fail("%s: is packed, and cannot be changed so: unpack it first, and pack it again "
             "afterwards",
             path);
}
