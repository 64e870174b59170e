/* resp.h - commands as servers read them (RESP): "*2\r\n$3\r\nGET\r\n$1\r\nx\r\n". */
#ifndef RESP_H
#define RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* All zero is an empty one. */
struct resp {
    char *bytes;
    size_t nbytes;
    size_t room;
    size_t whole; /* bytes before the command that is being written */
    bool failed;  /* no memory: the command that was being written is not in it, nor are those
                     that came after; until resp_clear() */
};

/* Begins a command of 'nargs' arguments, its name among them.  Exactly so many of
 * resp_bytes(), resp_text() and resp_number() must follow.  Makes room for arguments of
 * 'nbytes' bytes together: a guess, which saves time if it is not too low. */
void resp_command(struct resp *resp, unsigned nargs, size_t nbytes);

void resp_bytes(struct resp *resp, const void *bytes, size_t nbytes);
void resp_number(struct resp *resp, uint64_t number);

/* Arguments that are written already, "$2\r\nu1\r\n": one or several. */
void resp_written(struct resp *resp, const char *bytes, size_t nbytes);

static inline void resp_text(struct resp *resp, const char *text)
{
    resp_bytes(resp, text, strlen(text));
}

/* Removes the first bytes, which have been sent. */
void resp_drop(struct resp *resp, size_t nbytes);

void resp_clear(struct resp *resp);   /* keeps its memory */
void resp_release(struct resp *resp); /* leaves it empty */

#endif
