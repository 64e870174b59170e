/* note.c - what is noted of the keys of a filter, and what follows from it for texts. */
#include <string.h>

#include "filter.h"
#include <perhaps_file.h>

const char *perhaps_note(const perhaps_filter *f)
{
    return f->hasher.note;
}

bool perhaps_note_says(const char *note, const char *word)
{
    static const char prefix[] = "keys:";
    const size_t nbytes = strlen(word);
    if (strncmp(note, prefix, sizeof prefix - 1) != 0)
        return false;
    for (const char *at = note + sizeof prefix - 1; *at; at += strcspn(at, " ")) {
        at += strspn(at, " ");
        if (strcspn(at, " ") == nbytes && !memcmp(at, word, nbytes))
            return true;
    }
    return false;
}

void perhaps_fold_case(void *to, const void *from, size_t nbytes)
{
    const uint8_t *in = from;
    uint8_t *out = to;
    for (size_t i = 0; i < nbytes; i++)
        out[i] = (uint8_t)(in[i] | ((uint8_t)(in[i] - 'A') < 26) << 5);
}
