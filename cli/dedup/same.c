/* same.c - compares the key of a line with that of another one, byte by byte. */
#include "same.h"

#include <string.h>

#include "../input/mapped.h"

/* Does it for keys that are no whole lines. */
static bool same_part(struct same *same, uint64_t place, const struct perhaps_key *key)
{
    const bool written = line_key_is_written(same->form);
    struct perhaps_key line = texts_line(same->texts, place);
    char *room = written ? room_for(&same->room, line.nbytes, 1) : NULL;
    if (written && !room) {
        same->starved = true;
        return false;
    }
    return line_key(same->form, &line, room) && line.nbytes == key->nbytes &&
           memcmp(line.bytes, key->bytes, key->nbytes) == 0;
}

bool same_key(void *context, uint64_t place, const struct perhaps_key *key)
{
    struct same *same = context;
    return line_is_key(same->form) ? texts_same(same->texts, place, key)
                                   : same_part(same, place, key);
}

int same_error(const struct same *same)
{
    return mapped_torn() ? PERHAPS_ERR_IO : same->starved ? PERHAPS_ERR_MEMORY : 0;
}
