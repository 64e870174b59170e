/* fake_server.h - a server in memory, for tests and fuzzers of the forms of the module: memory
 * that can run out, and an RDB as typed fields. */
#ifndef FAKE_SERVER_H
#define FAKE_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each field is 'U', 'D' or 'S' and 8 bytes: the number, or the length of what follows. */
struct RedisModuleIO {
    uint8_t *bytes;
    size_t nbytes, room;
    size_t at;       /* where it is read */
    bool failed;     /* a field was missing, or of another type */
    unsigned logged; /* how often LogIOError() was called */
};

struct RedisModuleDigest {
    uint64_t hash;
};

/* Puts these functions into 'server'. */
void fake_server(void);

/* The call of this number from now on, and all later ones, get no memory; 0: all get some. */
extern uint64_t fake_memory_ends;

#endif
