/* spelling.c - keys that are there with other letters: somebody wrote hashes with a to f, and
 * asks for them with A to F. */
#include "spelling.h"

#include <ctype.h>

#include "../base/messages.h"
#include "../base/numbers.h"

/* So many keys are tried; if so few have letters, it says nothing. */
enum { TRIED_MOST = 200, TRIED_LEAST = 20, KEY_NBYTES_MOST = 1024 };

/* Asks for keys whose letters change(), and returns how many there are, and how many of these
 * are present. */
static size_t count_changed(const struct target *target, const struct block *block,
                            int (*change)(int), size_t *npresent)
{
    char changed[KEY_NBYTES_MOST];
    size_t ntried = 0;
    *npresent = 0;
    for (size_t i = 0; i < block->count && ntried < TRIED_MOST; i++) {
        const struct perhaps_key *key = &block->key[i];
        const unsigned char *bytes = key->bytes;
        bool differs = false;
        for (size_t at = 0; at < key->nbytes && key->nbytes <= sizeof changed; at++) {
            changed[at] = (char)change(bytes[at]);
            differs |= changed[at] != (char)bytes[at];
        }
        if (!differs)
            continue;
        ntried++;
        *npresent += perhaps_contains(target->filter, changed, key->nbytes);
    }
    return ntried;
}

void spelling_check(const struct target *target, const struct block *block)
{
    const struct {
        int (*change)(int);
        const char *letters;
    } ways[] = { { toupper, "capital" }, { tolower, "small" } };
    const struct settings *settings = target->settings;
    if (!target->filter || settings->quiet || settings->json)
        return;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        size_t npresent, ntried = count_changed(target, block, ways[i].change, &npresent);
        if (ntried >= TRIED_LEAST && npresent > ntried / 2)
            complain(
                "%s: has none of the first %s, but has them with %s letters: write them so, "
                "or make a filter with --ignore-case",
                target->path, counted(block->count, "key").s, ways[i].letters);
    }
}
