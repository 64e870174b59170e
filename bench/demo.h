/* demo.h - the paths of the demo. */
#ifndef DEMO_H
#define DEMO_H

#include <perhaps.h>

/* All different, sorted. */
struct paths {
    struct perhaps_key *path;
    size_t count;
    size_t nbytes;     /* of all of them together */
    const char *where; /* they come from */
};

/* Reads the lines of /var/lib/dpkg/info/.list, or, where there are none, what lies in /usr.
 * Ends the program if it cannot. */
void paths_read(struct paths *paths);

/* As many paths that are not among them: each with the first of "~", "~~" ... behind it that
 * makes it a new one, which is looked up in the sorted array. */
void paths_alter(const struct paths *paths, struct paths *altered);

void paths_free(struct paths *paths);

#endif
