/* resp.h - writes commands in the form that servers read (RESP, the protocol of Redis), such
 * as "*2\r\n$3\r\nGET\r\n$1\r\nx\r\n". */
#ifndef RESP_H
#define RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Commands, one behind the other.  All zero means empty. */
struct resp {
    char *bytes;
    size_t nbytes;
    size_t room;
    size_t whole; /* how many bytes stand before the command that is being written */

    /* Memory ran out.  The command that was being written was dropped, and so is every later
     * one until resp_clear().  So callers check this once, not after each argument. */
    bool failed;
};

/* Begins a command with 'nargs' arguments; its name is the first.  Exactly as many calls of
 * resp_bytes(), resp_text(), resp_room() and resp_number() must follow.  'nbytes' is a guess
 * of how many bytes all arguments have together: one that is not too low saves time. */
void resp_command(struct resp *resp, unsigned nargs, size_t nbytes);

/* Write one argument. */
void resp_bytes(struct resp *resp, const void *bytes, size_t nbytes);
void resp_number(struct resp *resp, uint64_t number);

/* Writes an argument of 'nbytes' bytes, which the caller fills in before the next call.
 * Returns where they are; NULL: there is no memory, and nothing is to be filled in. */
char *resp_room(struct resp *resp, size_t nbytes);

static inline void resp_text(struct resp *resp, const char *text)
{
    resp_bytes(resp, text, strlen(text));
}

/* Writes a whole command; NULL stands behind its last argument. */
void resp_texts(struct resp *resp, const char *const *texts);

/* Drops all commands, but keeps the memory for the next ones. */
void resp_clear(struct resp *resp);

/* Releases the memory and leaves *resp empty. */
void resp_release(struct resp *resp);

#endif
