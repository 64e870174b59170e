/* events.c - drops repeated events from a stream, as they come in, one on each line.
 * Shows: perhaps_add_unless_present_many(), which asks for many keys of any length and adds
 * them in one pass.  The fpr is one in a million, since each false positive loses an event.
 * Run: build/examples/events -    reads standard input, prints each event the first time
 *      build/examples/events      makes up events; returns 0 if each came through once */
#include <perhaps.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY = 1000000, BATCH = 1000, MADE_UP = 300000, LATER = 700 };

/* Writes an event to *text, which has room for *room bytes and is enlarged where needed.
 * Returns its length, or -1 at the end. */
typedef ssize_t source(char **text, size_t *room);

static ssize_t read_event(char **text, size_t *room)
{
    ssize_t length = getline(text, room, stdin);
    return length > 0 && (*text)[length - 1] == '\n' ? length - 1 : length;
}

/* Makes up events 0, 1, 2 ...  In every other turn it repeats the event of LATER events ago, or
 * event 0 if there is none. */
static ssize_t make_event(char **text, size_t *room)
{
    static int turn;
    int event = turn++ / 2;
    if (event == MADE_UP || (!*room && !(*text = malloc(*room = 64))))
        return -1;
    if (turn % 2)
        event = event < LATER ? 0 : event - LATER;
    return snprintf(*text, *room, "sensor %d: %d", event % 97, event);
}

/* Reads up to BATCH events.  Returns how many; their bytes are valid until the next call. */
static size_t fill(struct perhaps_key event[BATCH], source *next)
{
    static char *text[BATCH];
    static size_t room[BATCH];
    size_t count = 0;
    ssize_t length;
    while (count < BATCH && (length = next(&text[count], &room[count])) >= 0) {
        event[count] = (struct perhaps_key){ .bytes = text[count], .nbytes = (size_t)length };
        count++;
    }
    return count;
}

/* Adds all events to the filter, and prints each one that is new, if 'print'.  Adds to *kept
 * how many were new.  Returns 0 or an error. */
static int drop_repeats(perhaps_filter *seen, source *next, bool print, size_t *kept)
{
    struct perhaps_key event[BATCH];
    bool repeated[BATCH];
    struct perhaps_keys events = perhaps_keys_each(event, 0);
    int error = 0;
    while (!error && (events.count = fill(event, next))) {
        error = perhaps_add_unless_present_many(seen, &events, repeated, NULL);
        for (size_t i = 0; i < events.count && !error; i++) {
            *kept += !repeated[i];
            if (print && !repeated[i]) {
                fwrite(event[i].bytes, 1, event[i].nbytes, stdout);
                putchar('\n');
            }
        }
    }
    return error;
}

int main(int argc, char **argv)
{
    struct perhaps_options options = { .capacity = CAPACITY, .fpr = 1e-6 };
    perhaps_filter *seen;
    size_t kept = 0;
    bool reads = argc == 2 && !strcmp(argv[1], "-");
    int error = perhaps_create(&options, &seen);
    if (!error)
        error = drop_repeats(seen, reads ? read_event : make_event, reads, &kept);
    fprintf(stderr, "%zu events came through: %s\n", kept, perhaps_strerror(error));
    perhaps_free(seen);
    return error || (!reads && kept != MADE_UP);
}
