/* size.c - for how many keys a new filter is made: as the options say, or as the inputs
 * tell. */
#include "size.h"

#include "../base/messages.h"
#include "../input/input.h"

/* Returns by what factor a window with many generations begins larger.  Each generation grows
 * by itself, in layers.  Without this factor many generations would begin smaller than the
 * usual 5, and would get more layers; and a query asks all layers of all generations. */
static uint64_t generations_to_usual(const struct settings *settings)
{
    const uint64_t usual = 5;
    return settings->kind.generations > usual ? (settings->kind.generations - 1) / (usual - 1)
                                              : 1;
}

/* A window of keys says itself how many there are; a window of time grows by itself. */
struct size size_asked(const struct settings *settings)
{
    /* A state is for the lines of many runs, and nobody has told how many they are. */
    bool lasting = settings->state && !settings->capacity && request_may_grow(settings);
    bool grows = settings->grow || settings->kind.until || settings->kind.factor || lasting;
    struct size size = { settings->capacity, grows };
    if (!size.capacity && settings->integers.high)
        size.capacity = settings->integers.high - settings->integers.low + 1;
    if (!size.capacity)
        size.capacity = settings->window.keys;
    if (!size.capacity && (size.grows || settings->window.time))
        size.capacity = CAPACITY_TO_BEGIN_WITH * generations_to_usual(settings);
    return size;
}

/* Returns the capacity for the keys of the inputs: verbs that store a key once need no room for
 * repeats, and build adds room for keys that come later. */
static uint64_t count_inputs(const struct settings *settings)
{
    const bool dedup = settings->verb->bit == DEDUP;
    uint64_t count = input_census(settings, NULL, dedup || settings->counts).most;
    if (count == 0)
        count = 1;
    return dedup ? count : count + count / 4 + 1000;
}

bool size_is_last(const struct settings *settings)
{
    if (settings->verb->bit != BUILD || size_asked(settings).capacity)
        return false;
    return input_find_pipe(settings)
               ? !request_changes_later(settings) ||
                     (request_stores_copies(settings) && !request_may_grow(settings))
               : request_stores_copies(settings);
}

struct size size_of_inputs(const struct settings *settings)
{
    struct size size = size_asked(settings);
    const char *pipe;
    if (size.capacity)
        return size;
    if (settings->state) /* a state would grow, but for --kind */
        fail("--state: is for lines that are still to come, too, and --kind %s does not grow: "
             "say how many there may be, such as -n 10M",
             settings->kind.name);
    if (!(pipe = input_find_pipe(settings)))
        return (struct size){ count_inputs(settings), size.grows };
    if (!request_may_grow(settings))
        fail("%s: cannot be read twice, to count its keys first, and --kind %s does not grow: "
             "say how many there are, such as -n 10M",
             input_name(pipe), settings->kind.name);
    return (struct size){ CAPACITY_TO_BEGIN_WITH, true };
}
