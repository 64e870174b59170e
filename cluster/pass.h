/* pass.h - the requests that go out together for the pending keys: to ask some layers, or to
 * add to one; or both, and then the keys are added to the last layer while the others are
 * asked.
 *
 *     0                      nkeys            + nwatches       + nturns        + nasks
 *     | one for each pending | STRLEN of their | STRLEN of some | is there a    |
 *     | key and each layer   | partitions      | in turn        | newer layer?  |
 *
 * What the replies tell is written to the batch; what they prove is found out behind them
 * (batch.c). */
#ifndef PASS_H
#define PASS_H

#include "batch.h"

struct pass {
    perhaps_cluster *c;
    unsigned from, to; /* the layers */
    bool adds;         /* to the last one */
    bool replicas;     /* may be asked */
    size_t nkeys, nwatches, nturns, nasks;
    uint64_t watched; /* a bit for each layer: all partitions that are asked are watched */
    int64_t asked_ms;
    bool lost; /* a partition is not what it should be: this one */
    unsigned lost_layer;
    uint32_t lost_partition;
};

/* Finds block and partition of each request for a key. */
void pass_locate(struct pass *pass);

/* Choose the requests behind those for keys, and the adds that ask for the footer, too. */
void pass_choose(struct pass *pass);

/* For the exchange: where a request goes, what it sends, what its reply tells, and what is
 * noted if there is none. */
unsigned pass_slot(const struct request *request);
void pass_write(const struct request *request, struct resp *out);
int pass_take(const struct request *request, const struct reply *reply);
void pass_doubt(const struct request *request);

/* Return of a request for a key: its index in the batch; its layer; whether it adds. */
size_t pass_key(const struct pass *pass, size_t i);
unsigned pass_layer(const struct pass *pass, size_t i);
bool pass_is_add(const struct pass *pass, size_t i);

/* Returns whether any layer is asked. */
static inline bool pass_asks(const struct pass *pass)
{
    return pass->to - pass->from > (unsigned)pass->adds;
}

/* Returns the number of the connection to the master of a partition; 0: there is none now. */
uint32_t pass_connection(const struct pass *pass, uint32_t partition);

/* Returns whether the partition of a request was seen to be whole over this connection. */
bool pass_was_seen(const struct pass *pass, size_t i, uint32_t connection);

#endif
