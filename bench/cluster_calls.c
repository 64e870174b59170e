/* cluster_calls.c - measures calls with one key on a filter, beside GETs of one value: by one
 * process, and by several at once; and how long the first answer takes.
 *
 * A turn is some hundred calls, one after the other.  Before each come as many GETs.  Times are
 * those of the best turn, and commands those of all turns. */
#include <err.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cluster.h"

/* The capacity is 'share' of --keys, or 'capacity' if that is 0.  'filled': how many times its
 * capacity is added before the turns.  Each layer is twice as large as the one before it: two
 * take three times the capacity, and half of a third takes twice the capacity.  THOUSANDS has
 * two blocks in each partition at 0.1 %, which makes nearly as many as 'partitions'. */
static const struct {
    const char *name;
    double share, capacity, filled;
    unsigned layers;
    uint64_t partitions;
} shapes[SHAPES] = {
    [LARGE] = { "large", 1, 0, 0.5, 1, 0 },
    [SMALL] = { "small", 0, 1e5, 0.5, 1, 0 },
    [GROWING] = { "grows", 1. / 32, 0, 5, 3, 0 },
    [THOUSANDS] = { "many partitions", 0, 57.2e6, 0, 1, 900000 },
};

/* A client that asks and adds one key a call, and one that GETs one value a call. */
struct caller {
    const struct strings *values; /* belong to the caller of this file */
    const struct setup *setup;
    struct filter filter;
    uint64_t got; /* counted so that each GET gets another value */
};

/* What the turns of one client took: times of the best, in seconds, and the commands of all. */
struct taken {
    double seconds, cpu_seconds, commands[NODES_MAX];
};

/* ---- Calls ------------------------------------------------------------------------------- */

/* Returns the time that the CPU has spent for this process, in the kernel, too. */
static double cpu_seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool is_add(enum work work)
{
    return work == ADDING_NEW || work == ADDING_AGAIN;
}

/* Asks for each key, or adds it.  Returns for how many the answer was "perhaps". */
static size_t call_each(const struct filter *filter, enum work work, size_t count)
{
    size_t found = 0, nbytes = filter->buffer.key_nbytes;
    const uint8_t *key = filter->buffer.bytes;
    for (size_t i = 0; i < count; i++, key += nbytes) {
        int answer = is_add(work) ? perhaps_cluster_add(filter->cluster, key, nbytes)
                                  : perhaps_cluster_contains(filter->cluster, key, nbytes);
        stop_on(filter->cluster, answer);
        found += answer == PERHAPS_ANSWER_PERHAPS;
    }
    return found;
}

static size_t get_each(struct caller *caller, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values_get_one(caller->values, caller->got++);
    return count;
}

/* Takes one turn of a work; of GETs if it is WORKS.  Returns for how many keys the answer was
 * "perhaps". */
static size_t take_turn(struct caller *caller, enum work work, struct taken *taken)
{
    struct fleet *fleet = caller->values->fleet;
    size_t count = caller->setup->calls, found;
    fleet_count_commands(fleet, -1, taken->commands);
    double cpu_start = cpu_seconds_now(), start = seconds_now();
    if (work == WORKS)
        found = get_each(caller, count);
    else
        found = call_each(&caller->filter, work, count);
    note_best(&taken->seconds, seconds_now() - start);
    note_best(&taken->cpu_seconds, cpu_seconds_now() - cpu_start);
    fleet_count_commands(fleet, 1, taken->commands);
    return found;
}

/* Returns how many times as many commands a node had as all nodes had on average.  A node of
 * NODES_MAX stands for the busiest. */
static double share_of(const struct fleet *fleet, const double commands[NODES_MAX], size_t node)
{
    double sum = 0, most = 0;
    for (size_t i = 0; i < fleet->count; i++) {
        sum += commands[i];
        most = commands[i] > most ? commands[i] : most;
    }
    return (node == NODES_MAX ? most : commands[node]) * (double)fleet->count / sum;
}

/* Returns what one call took. */
static json_t *json_taken(const struct caller *caller, const struct taken *taken)
{
    const struct fleet *fleet = caller->values->fleet;
    double calls = (double)caller->setup->calls, commands = 0;
    for (size_t i = 0; i < fleet->count; i++)
        commands += taken->commands[i];
    return json_pack("{s:f, s:f, s:f, s:f, s:f}", "us", 1e6 * taken->seconds / calls, "cpu_us",
                     1e6 * taken->cpu_seconds / calls, "commands",
                     commands / (calls * (double)caller->setup->turns), "busiest",
                     share_of(fleet, taken->commands, NODES_MAX), "description",
                     share_of(fleet, taken->commands, fleet_find(fleet, FILTER_NAME)));
}

/* Takes all turns of one work, and of the GETs before them.  Returns its row.  Ends the program
 * if a key that was added is not found. */
static json_t *measure_work(struct caller *caller, enum work work)
{
    struct taken own = { 0 }, get = { 0 };
    struct filter *filter = &caller->filter;
    size_t calls = caller->setup->calls;
    for (size_t turn = 0; turn < caller->setup->turns; turn++) {
        bool sure;
        filter_keys(filter, work, calls, &filter->added, &sure);
        take_turn(caller, WORKS, &get);
        size_t found = take_turn(caller, work, &own);
        if (sure && found != calls)
            errx(1, "WRONG: %s, one by one: of %zu keys that are in %zu are found",
                 work_names[work], calls, found);
    }
    return json_pack("{s:s, s:f, s:o, s:o}", "work", work_names[work], "to_get",
                     own.seconds / get.seconds, "call", json_taken(caller, &own), "get",
                     json_taken(caller, &get));
}

/* ---- The first answer -------------------------------------------------------------------- */

/* Makes a handle, opens the filter, asks for one key and frees the handle. */
static void ask_afresh(const struct caller *caller, uint64_t key)
{
    char url[256];
    perhaps_cluster *cluster;
    struct perhaps_cluster_options at = { .url = url };
    filter_url(caller->values->fleet, url);
    int error = perhaps_cluster_new(&at, &cluster);
    if (!error)
        error = perhaps_cluster_open(cluster);
    if (!error)
        error = perhaps_cluster_contains(cluster, &key, sizeof key);
    stop_on(cluster, error);
    perhaps_cluster_free(cluster);
}

/* Each turn is one call. */
static json_t *measure_first(struct caller *caller)
{
    double best = 0, get_best = 0;
    for (size_t turn = 0; turn < caller->setup->turns; turn++) {
        double start = seconds_now();
        values_get_afresh(caller->values, caller->got++);
        note_best(&get_best, seconds_now() - start);
        start = seconds_now();
        ask_afresh(caller, turn);
        note_best(&best, seconds_now() - start);
    }
    return json_pack("{s:f, s:f}", "ms", 1e3 * best, "get_ms", 1e3 * get_best);
}

/* ---- Several processes ------------------------------------------------------------------- */

enum { PROCESSES = 8 };

/* What one process is told to do for a turn. */
enum order { ASK_KEYS, GET_VALUES, ORDERS };

/* Returns how many calls a second this process makes, for as long as a turn takes. */
static double call_for_a_turn(struct caller *caller, enum order order)
{
    double start = seconds_now(), seconds;
    size_t calls = 0;
    do {
        if (order == GET_VALUES) {
            get_each(caller, 1);
        } else {
            keys_absent(&caller->filter.buffer, caller->filter.turns++, 1);
            call_each(&caller->filter, ASKING_ABSENT, 1);
        }
        calls++;
    } while ((seconds = seconds_now() - start) < caller->setup->turn_s);
    return (double)calls / seconds;
}

/* Is one of the processes: has connections and a handle of its own, and obeys until the other
 * end of the socket is closed. */
_Noreturn static void obey(struct caller caller, int fd, uint64_t process)
{
    char url[256];
    uint8_t order;
    struct perhaps_cluster_options at = { .url = url };
    fleet_reconnect(caller.values->fleet);
    filter_url(caller.values->fleet, url);
    caller.got = caller.filter.turns = process << 32;
    int error = perhaps_cluster_new(&at, &caller.filter.cluster);
    if (!error)
        error = perhaps_cluster_open(caller.filter.cluster);
    stop_on(caller.filter.cluster, error);
    while (read(fd, &order, sizeof order) == sizeof order) {
        double rate = call_for_a_turn(&caller, order);
        if (send(fd, &rate, sizeof rate, MSG_NOSIGNAL) != sizeof rate)
            break;
    }
    _exit(0);
}

/* Starts the processes.  Each ends when its socket is closed here, or this process ends; so it
 * must not keep the sockets of those before it open. */
static void start_processes(const struct caller *caller, int sockets[PROCESSES])
{
    fflush(stdout);
    for (int i = 0; i < PROCESSES; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
            err(2, "socketpair");
        pid_t pid = fork();
        if (pid < 0)
            err(2, "fork");
        if (pid == 0) {
            close(pair[0]);
            for (int before = 0; before < i; before++)
                close(sockets[before]);
            obey(*caller, pair[1], (uint64_t)i + 1);
        }
        close(pair[1]);
        sockets[i] = pair[0];
    }
}

/* Lets all processes take one turn at once.  Returns how many calls a second they made
 * together. */
static double turn_of_all(const int sockets[PROCESSES], enum order order)
{
    double sum = 0;
    uint8_t byte = (uint8_t)order;
    for (int i = 0; i < PROCESSES; i++)
        if (send(sockets[i], &byte, sizeof byte, MSG_NOSIGNAL) != sizeof byte)
            errx(2, "one of the processes has ended");
    for (int i = 0; i < PROCESSES; i++) {
        double rate;
        if (read(sockets[i], &rate, sizeof rate) != sizeof rate)
            errx(2, "one of the processes has ended");
        sum += rate;
    }
    return sum;
}

/* The first turn of each is not counted: a process may still be opening the filter. */
static json_t *measure_processes(const struct caller *caller)
{
    int sockets[PROCESSES];
    double best[ORDERS] = { 0 };
    start_processes(caller, sockets);
    for (size_t round = 0; round <= caller->setup->rounds; round++)
        for (int order = 0; order < ORDERS; order++) {
            double rate = turn_of_all(sockets, (enum order)order);
            if (round > 0 && rate > best[order])
                best[order] = rate;
        }
    for (int i = 0; i < PROCESSES; i++)
        close(sockets[i]);
    while (wait(NULL) > 0)
        ;
    return json_pack("{s:i, s:f, s:f, s:f}", "count", PROCESSES, "asks_per_second",
                     best[ASK_KEYS], "gets_per_second", best[GET_VALUES], "to_get",
                     best[ASK_KEYS] / best[GET_VALUES]);
}

/* ---- One filter -------------------------------------------------------------------------- */

/* Makes a filter of this shape on the servers and adds its keys.  Returns what it is. */
static json_t *make_shape(struct caller *caller, enum shape shape)
{
    const struct setup *setup = caller->setup;
    double capacity = shapes[shape].capacity + setup->keys.at[0] * shapes[shape].share;
    struct perhaps_options options = { .capacity = (uint64_t)capacity,
                                       .fpr = setup->fpr.at[0],
                                       .needs =
                                           shapes[shape].layers > 1 ? PERHAPS_CAN_GROW : 0 };
    struct perhaps_cluster_stats stats;
    double start = seconds_now();
    caller->filter =
        filter_make(caller->values->fleet, setup, &options, shapes[shape].partitions);
    filter_fill(&caller->filter, (uint64_t)(capacity * shapes[shape].filled), setup->batch);
    double seconds = seconds_now() - start;
    stop_on(caller->filter.cluster, perhaps_cluster_stats_of(caller->filter.cluster, &stats));
    if (stats.layers != shapes[shape].layers)
        errx(2, "the filter has %ju layers, not %u", (uintmax_t)stats.layers,
             shapes[shape].layers);
    return json_pack("{s:s, s:f, s:I, s:I, s:I, s:I, s:f}", "shape", shapes[shape].name, "fpr",
                     options.fpr, "capacity", (json_int_t)options.capacity, "keys",
                     (json_int_t)caller->filter.added, "layers", (json_int_t)stats.layers,
                     "partitions", (json_int_t)stats.partitions, "made_seconds", seconds);
}

json_t *measure_calls(const struct strings *values, const struct setup *setup, enum shape shape)
{
    struct caller caller = { .values = values, .setup = setup };
    json_t *row = make_shape(&caller, shape);
    if (shape != THOUSANDS) {
        json_t *list = json_array();
        for (int work = 0; work < OWN_WORKS; work++)
            json_array_append_new(list, measure_work(&caller, (enum work)work));
        json_object_set_new(row, "works", list);
    }
    json_object_set_new(row, "first", measure_first(&caller));
    if (shape == LARGE)
        json_object_set_new(row, "processes", measure_processes(&caller));
    filter_delete(&caller.filter);
    return row;
}
