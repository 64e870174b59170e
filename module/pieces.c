/* pieces.c - a dump in pieces, which are released as they are read. */
#include "pieces.h"

#include <string.h>

#include "memory.h"
#include <perhaps.h>

static void drop_first(struct pieces *pieces)
{
    struct piece *first = pieces->first;
    pieces->first = first->next;
    pieces->last = first->next ? pieces->last : NULL;
    pieces->nbytes -= first->nbytes;
    memory_give(first);
}

void pieces_release(struct pieces *pieces)
{
    while (pieces->first)
        drop_first(pieces);
}

int pieces_append(struct pieces *pieces, const char *bytes, size_t nbytes)
{
    struct piece *piece = memory_take_any(sizeof *piece + nbytes);
    if (!piece)
        return PERHAPS_ERR_MEMORY;
    piece->next = NULL;
    piece->nbytes = nbytes;
    memcpy(piece->bytes, bytes, nbytes);
    if (pieces->last)
        pieces->last->next = piece;
    else
        pieces->first = piece;
    pieces->last = piece;
    pieces->nbytes += nbytes;
    return 0;
}

int pieces_read(void *context, void *bytes, size_t nbytes)
{
    struct pieces_reader *r = context;
    char *to = bytes;
    while (nbytes) {
        struct piece *piece = r->pieces->first;
        if (!piece)
            return PERHAPS_ERR_DAMAGED;
        size_t left = piece->nbytes - r->at, n = left < nbytes ? left : nbytes;
        memcpy(to, piece->bytes + r->at, n);
        to += n;
        nbytes -= n;
        r->at += n;
        if (r->at == piece->nbytes) {
            drop_first(r->pieces);
            r->at = 0;
        }
    }
    return 0;
}
