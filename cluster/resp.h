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
    /* Bytes before the command that is being written. */
    size_t whole;
    /* No memory: neither the command that was being written is in it, nor those that came
     * after; until resp_clear(). */
    bool failed;
};

/* Begins a command of 'nargs' arguments, its name among them.  Exactly so many of
 * resp_bytes(), resp_text() and resp_number() must follow.  Makes room for arguments of
 * 'nbytes' bytes together: a guess, which saves time if it is not too low. */
void resp_command(struct resp *resp, unsigned nargs, size_t nbytes);

void resp_bytes(struct resp *resp, const void *bytes, size_t nbytes);
void resp_number(struct resp *resp, uint64_t number);

static inline void resp_text(struct resp *resp, const char *text)
{
    resp_bytes(resp, text, strlen(text));
}

/* Writes a whole command; NULL stands behind its last argument. */
void resp_texts(struct resp *resp, const char *const *texts);

void resp_clear(struct resp *resp);   /* keeps its memory */
void resp_release(struct resp *resp); /* leaves it empty */

#endif
