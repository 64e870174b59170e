/* room.h - room for keys: what a process has reserved in the layers of a filter, so that the
 * layers never get more keys than they were planned for.
 *
 * On the servers the counts have, for each layer I,
 *
 *     keys.I              0                                             key limit
 *                         | keys that were added | reserved, not used | room |
 *                         '------------- the number in keys.I --------'
 *     held.I.OWNER        how much of it a process has reserved, and until when that counts as
 *                         alive: "SEQUENCE HELD ENDS_MS", by the server's clock
 *     abandoned.I         how much of it had been reserved by processes that did not come back,
 *                         or was sent and never answered; nobody knows how much of that was
 *                         used, except by the bits
 *
 * One script (room.c) changes all of these at once.  It gives to a process what it needs, as
 * far as there is room, and takes back what the process has not used.
 *
 *     handle -- takes --> reservation of the process -- reserves --> keys.I
 *
 * The handles of a process that have a filter open share one reservation, so what one of them
 * does not need another finds at once.  Calls that come one after the other reserve ahead: so
 * they ask the servers once in many calls.
 *
 * Invariant: keys.I is never less than the keys that were added to the layer, unless a failover
 * loses what a server had acknowledged.  A process that dies leaves what it had reserved; when
 * room is short, the bits tell how much of it was used (recount.h).
 *
 * All functions may run beside each other with different handles. */
#ifndef ROOM_H
#define ROOM_H

#include "handle.h"

/* What the servers told of a layer when room was short. */
struct room_told {
    size_t taken; /* for how many keys the handle has room now: perhaps fewer than it needs */
    bool asked;   /* they were asked; else all below is 0 */
    bool newer;   /* there is a newer layer */
    long long total;     /* keys.I */
    long long held;      /* of it by processes that live, this one included: it may come back */
    long long others;    /* of that, by others */
    long long siblings;  /* taken by other handles of this process */
    long long abandoned; /* of the total, by processes that are gone */
};

/* Makes the handle share what its process has reserved of the filter that is open.  Returns 0
 * or PERHAPS_ERR_MEMORY.  Does nothing if it does already. */
int room_join(perhaps_cluster *c);

/* Ends that.  The last handle of the process gives back all that is not used, as far as the
 * servers can be reached.  If it is being freed it does not wait for the last answer. */
void room_leave(perhaps_cluster *c);

/* Takes room for up to n keys of a layer.  Each must be told by room_use() afterwards. */
int room_take(perhaps_cluster *c, unsigned layer, size_t n, struct room_told *told);

/* Of 'taken' keys that were taken, 'used' were added, of which nobody knows that of 'doubted';
 * the others are free for any handle of the process.  What is doubted counts as used until room
 * is short, and as abandoned then. */
void room_use(perhaps_cluster *c, unsigned layer, size_t taken, size_t used, size_t doubted);

/* To be called at the end of a call that has added keys.  Tells the servers what was used, and
 * gives back what is free and more than a share of the room; but where one batch comes after
 * the other, that goes with the reservation for the next ones.  'all': gives back all, at
 * once. */
int room_settle(perhaps_cluster *c, unsigned layer, bool all);

/* Does that, with all, in all layers.  An error is none: it stays reserved. */
void room_give_back(perhaps_cluster *c);

/* Does it if nothing was added for some seconds. */
void room_give_back_idle(perhaps_cluster *c);

/* Returns how many layers a handle of this process knows to be ready; notes that these are. */
unsigned room_layers(perhaps_cluster *c, unsigned nlayers);

/* Asks how things are, and takes nothing. */
int room_look(perhaps_cluster *c, unsigned layer, struct room_told *told);

#endif
