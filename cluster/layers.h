/* layers.h - reads the description of a filter from the servers, and opens its layers.
 *
 *     on servers                      struct description           c->layer[I]
 *     layer.I  as it is planned       about.layer[I].planned
 *     ready.I  all partitions made    about.layer[I].ready  ----->  open: layout, size, names
 *     keys.I   in the counts          about.layer[I].count
 *
 * Layers become ready one after the other, and none goes away as long as the filter has the
 * same ID.  So a handle that is out of date only lacks the newest layers.
 *
 * Functions that return an int return 0, or an error with nodes.problem. */
#ifndef LAYERS_H
#define LAYERS_H

#include "handle.h"
#include <perhaps_layout.h>

/* Reads the description and opens the filter; closes what was open before.  On failure nothing
 * is open. */
int layers_open(perhaps_cluster *c);

/* Reads the description again, and opens the layers that other clients have made meanwhile.
 * 'counts_too': as for layers_describe(). */
int layers_renew(perhaps_cluster *c, bool counts_too);

/* Closes all layers, and the filter; gives back the room that was not used. */
void layers_close(perhaps_cluster *c);

/* Releases what a layer owns, and leaves it empty. */
void layers_release(struct layer *layer);

/* Reads the description into c->there, and the counts if they are wanted (else they are 0) or
 * there is a second layer; changes nothing else in the handle.  Returns PERHAPS_ERR_MISSING if
 * there is no filter. */
int layers_describe(perhaps_cluster *c, bool counts_too);

/* Takes over c->there, which was just read, and opens the layers that are ready and not open
 * yet.  Returns an error if the filter is not ready, or if it is another one than that which is
 * open. */
int layers_open_ready(perhaps_cluster *c);

/* Leases.  A client need not ask with every question whether there is a newer layer:
 *
 *     client A      asks: no  -- lease --|              until then it does not ask again
 *     servers           t1      ready at t2
 *     client B                     sees it --- pause ---| first add to the new layer
 *
 * A's lease begins when it sends its question, so it is over before t1 + LEASE_MS.  B waits for
 * LAYER_PAUSE_MS, which is longer, before it adds to a layer that nobody has added to.  So what
 * B adds there is acknowledged only after t2 + LAYER_PAUSE_MS, when the leases of all clients
 * are over that do not know the layer.  An answer under a lease is never out of date. */
enum { LEASE_MS = 20, LAYER_PAUSE_MS = 25 };

/* Returns whether there may be a newer layer, as far as is known without a question. */
static inline bool layers_lease_is_over(const perhaps_cluster *c)
{
    return c->about.factor && now_ms() >= c->leased_ms;
}

/* The question whether there is a newer layer.  If there is none, a lease begins at 'asked_ms',
 * the time before the question was sent. */
int layers_ask_newer(perhaps_cluster *c, bool *changed);
void layers_write_newer(const perhaps_cluster *c, struct resp *out);
int layers_take_newer(perhaps_cluster *c, const struct reply *reply, int64_t asked_ms);

/* Replaces PERHAPS_ERR_LOST by a better error if the reason is that the filter was deleted or
 * made anew; returns other errors as they are. */
int layers_explain_loss(perhaps_cluster *c, int error);

/* Sets the suffix of a layer, from its index and the ID of the filter. */
void layers_name(const perhaps_cluster *c, struct layer *layer, unsigned index);

/* Returns the size of a block: of all lines of a key, which lie together. */
size_t layers_block_nbytes(const perhaps_layout *layout);

/* Sets size and suffix of a layer that has its layout, and finds the slots of its partitions.
 * It may have a few partitions fewer than were asked for, since the number of blocks in each is
 * rounded up.  Returns PERHAPS_ERR_LIMIT if there cannot be so many or so few, or
 * PERHAPS_ERR_MEMORY; both without a problem. */
int layers_measure(perhaps_cluster *c, struct layer *layer, unsigned index,
                   uint64_t partitions);

#endif
