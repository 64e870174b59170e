/* resp.h - commands as servers read them (RESP): "*2\r\n$3\r\nGET\r\n$1\r\nx\r\n". */
#ifndef RESP_H
#define RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Commands, one behind the other.  All zero is an empty one. */
struct resp {
    char *bytes;
    size_t nbytes;
    size_t room;
    size_t whole; /* bytes of commands before the one that is being written */

    /* There was no memory: the command that was being written is not in it, nor is any that
     * came after, until resp_clear().  So nobody has to look after each argument. */
    bool failed;
};

/* Begins a command of 'nargs' arguments, its name among them.  Exactly so many calls of
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
