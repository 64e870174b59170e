/* resp.c - writes commands into one growing buffer.
 *
 * Invariant: the first 'whole' bytes are whole commands.  Behind them stands the command that
 * was begun last, as far as it is written; or nothing, if there was no memory for it.  So
 * a server never gets half a command. */
#include "resp.h"

#include <stdlib.h>

#include "numbers.h"

/* An argument needs AROUND_NBYTES beside its own: $, a length of at most 20 digits, twice
 * \r\n. */
enum { AROUND_NBYTES = 1 + 20 + 4, NUMBER_NBYTES = 20, FIRST_ROOM = 4096 };

/* Makes room for 'nbytes' more.  Returns false if there is no memory, and then the command that
 * is being written is dropped. */
static bool grow_buffer(struct resp *resp, size_t nbytes)
{
    size_t room = resp->room ? resp->room : FIRST_ROOM;
    while (room - resp->nbytes < nbytes && room <= SIZE_MAX / 2)
        room *= 2;
    char *bytes = room - resp->nbytes < nbytes ? NULL : realloc(resp->bytes, room);
    if (!bytes) {
        resp->failed = true;
        resp->nbytes = resp->whole;
        return false;
    }
    resp->bytes = bytes;
    resp->room = room;
    return true;
}

/* Returns whether 'nbytes' more may be written. */
static inline bool reserve_nbytes(struct resp *resp, size_t nbytes)
{
    return !resp->failed && (resp->room - resp->nbytes >= nbytes || grow_buffer(resp, nbytes));
}

static inline char *put_end(char *to)
{
    *to++ = '\r';
    *to++ = '\n';
    return to;
}

/* Writes a length such as "*2\r\n" or "$3\r\n".  Returns its end. */
static inline char *put_length(char *to, char type, uint64_t length)
{
    *to++ = type;
    return put_end(put_digits(to, length));
}

void resp_command(struct resp *resp, unsigned nargs, size_t nbytes)
{
    if (!resp->failed)
        resp->whole = resp->nbytes;
    if (reserve_nbytes(resp, AROUND_NBYTES * (1 + (size_t)nargs) + nbytes))
        resp->nbytes =
            (size_t)(put_length(resp->bytes + resp->nbytes, '*', nargs) - resp->bytes);
}

char *resp_room(struct resp *resp, size_t nbytes)
{
    if (!reserve_nbytes(resp, AROUND_NBYTES + nbytes))
        return NULL;
    char *to = put_length(resp->bytes + resp->nbytes, '$', nbytes);
    resp->nbytes = (size_t)(put_end(to + nbytes) - resp->bytes);
    return to;
}

void resp_bytes(struct resp *resp, const void *bytes, size_t nbytes)
{
    char *to = resp_room(resp, nbytes);
    if (to && nbytes)
        memcpy(to, bytes, nbytes);
}

void resp_number(struct resp *resp, uint64_t number)
{
    if (!reserve_nbytes(resp, AROUND_NBYTES + NUMBER_NBYTES))
        return;
    char *to = put_length(resp->bytes + resp->nbytes, '$', count_digits(number));
    resp->nbytes = (size_t)(put_end(put_digits(to, number)) - resp->bytes);
}

void resp_texts(struct resp *resp, const char *const *texts)
{
    unsigned nargs = 0;
    while (texts[nargs])
        nargs++;
    resp_command(resp, nargs, 0);
    for (unsigned i = 0; i < nargs; i++)
        resp_text(resp, texts[i]);
}

void resp_clear(struct resp *resp)
{
    resp->nbytes = resp->whole = 0;
    resp->failed = false;
}

void resp_release(struct resp *resp)
{
    free(resp->bytes);
    *resp = (struct resp){ 0 };
}
