/* cut_verbs.c - the verbs of cut_verbs.h. */
#include "cut_verbs.h"

#include <fcntl.h>
#include <hiredis.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perhaps.h"

enum { DIRECT = 1, ADDED_AT_ONCE = 4, PARTITIONS = 6, LINES_NEW = 30, LINES_REPEATED = 6 };

/* Filters are small, so that their replies are short.  Of the hash only the seed is fixed: the
 * same keys have the same answers in every run. */
static const struct perhaps_options small = { .capacity = 400,
                                              .fpr = 1e-3,
                                              .kind = "blocked",
                                              .blocked.together = true,
                                              .hashing = { .seed = 1 } };

static perhaps_filter *old, *whole; /* with the old keys, with all keys; are put on servers */
static struct path lines;           /* the input of dedup */
static const char *program;

/* ---- Clients and troubles ---------------------------------------------------------------- */

/* Notes what is wrong, unless something was wrong before. */
static void __attribute__((format(printf, 2, 3)))
complain(struct attempt *a, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!a->trouble[0])
        vsnprintf(a->trouble, sizeof a->trouble, format, arguments);
    va_end(arguments);
}

/* Returns whether a call without the proxy succeeded, as it must. */
static bool works(struct attempt *a, const perhaps_cluster *c, const char *call, int error)
{
    if (error)
        complain(a, "then %s fails: %.300s", call, perhaps_cluster_problem(c));
    return !error;
}

static void write_url(const struct attempt *a, unsigned host, char url[128])
{
    int n = snprintf(url, 128, "redis://127.0.0.%u:%u/%s", host, a->place->port[0], a->name);
    if (host != DIRECT)
        snprintf(url + n, 128 - (size_t)n, "?timeout=%ums&patience=%ums", a->timeout_ms,
                 a->patience_ms);
}

static perhaps_cluster *client_of(const struct attempt *a, unsigned host)
{
    char url[128];
    perhaps_cluster *c;
    write_url(a, host, url);
    perhaps_cluster_new(&(struct perhaps_cluster_options){ .url = url }, &c);
    return c;
}

/* Returns a client without the proxy, which has opened the filter if that is possible. */
static perhaps_cluster *open_directly(struct attempt *a)
{
    perhaps_cluster *c = client_of(a, DIRECT);
    works(a, c, "open", perhaps_cluster_open(c));
    return c;
}

/* Returns whether a client gave up at once: it does that if the first server that it asks says
 * nothing at all, since the address may be wrong.  A user would try again. */
static bool gave_up_at_once(const char *problem)
{
    return !strstr(problem, "of trying again") && strstr(problem, "did not answer for");
}

/* Opens the filter.  Returns 0, PERHAPS_ERR_MISSING if there is none, or another error. */
static int reach(const struct attempt *a, perhaps_cluster *c)
{
    int error = perhaps_cluster_open(c);
    while (a->must_succeed && error == PERHAPS_ERR_UNREACHABLE &&
           gave_up_at_once(perhaps_cluster_problem(c))) {
        usleep(10000);
        error = perhaps_cluster_open(c);
    }
    return error;
}

/* Counts the Redis keys of the filter on one server, and appends their names to 'names'. */
static unsigned count_on_server(struct attempt *a, unsigned port, char *names, size_t room)
{
    unsigned n = 0;
    redisContext *context = redisConnect("127.0.0.1", (int)port);
    redisReply *reply =
        context && !context->err ? redisCommand(context, "KEYS *{%s*", a->name) : NULL;
    if (!reply || reply->type != REDIS_REPLY_ARRAY)
        complain(a, "server %u does not tell its keys", port);
    for (; reply && n < reply->elements; n++) {
        size_t used = strlen(names);
        snprintf(names + used, room - used, " %s", reply->element[n]->str);
    }
    freeReplyObject(reply);
    redisFree(context);
    return n;
}

/* Checks how many Redis keys the filter has. */
static void expect_redis_keys(struct attempt *a, uint64_t wanted)
{
    char names[400] = "";
    unsigned n = 0;
    for (unsigned s = 0; s < a->place->nservers; s++)
        n += count_on_server(a, a->place->port[s], names, sizeof names);
    if (n != wanted)
        complain(a, "there are %u Redis keys, not %u:%s", n, (unsigned)wanted, names);
}

/* Removes the filter, if there is any. */
static void delete_directly(struct attempt *a)
{
    perhaps_cluster *c = client_of(a, DIRECT);
    int error = perhaps_cluster_delete(c);
    if (error != PERHAPS_ERR_MISSING)
        works(a, c, "delete", error);
    perhaps_cluster_free(c);
    expect_redis_keys(a, 0);
}

/* ---- Keys -------------------------------------------------------------------------------- */

static unsigned nkeys(const struct attempt *a)
{
    return OLD_KEYS + a->verb->nnew;
}

/* Asks for all keys.  Of those that were added none may be denied, and the others must not be
 * found; also after an error, if they are answered then. */
static int ask(struct attempt *a, perhaps_cluster *c)
{
    struct perhaps_keys keys = perhaps_keys_packed(a->key, sizeof *a->key, nkeys(a));
    uint8_t answer[KEYS_MOST];
    memset(answer, 0xEE, sizeof answer);
    int error = perhaps_cluster_contains_many(c, &keys, answer, NULL);
    for (unsigned i = 0; i < nkeys(a); i++) {
        if (answer[i] > PERHAPS_ANSWER_UNKNOWN ||
            (!error && answer[i] == PERHAPS_ANSWER_UNKNOWN))
            complain(a, "question %u: answer %u, error %d", i, answer[i], error);
        if (a->is_in[i] && answer[i] == PERHAPS_ANSWER_NO)
            complain(a, "key %u was added and is denied (error %d)", i, error);
    }
    return error;
}

/* Adds some of the keys, which are new.  Notes those of which it is told that they are in. */
static int add_some(struct attempt *a, perhaps_cluster *c, unsigned first, unsigned count)
{
    struct perhaps_keys keys = perhaps_keys_packed(a->key + first, sizeof *a->key, count);
    uint8_t answer[KEYS_MOST];
    size_t done = SIZE_MAX;
    memset(answer, 0xEE, sizeof answer);
    int error = perhaps_cluster_add_many(c, &keys, answer, &done);
    if (done > count || (!error && done < count))
        complain(a, "%zu of %u keys are done, error %d", done, count, error);
    for (unsigned i = 0; i < count; i++) {
        if (answer[i] > PERHAPS_ANSWER_UNKNOWN ||
            (i < done && answer[i] == PERHAPS_ANSWER_UNKNOWN))
            complain(a, "add %u: answer %u, error %d", first + i, answer[i], error);
        if (answer[i] == PERHAPS_ANSWER_PERHAPS)
            complain(a, "key %u is new and is taken for an old one", first + i);
        a->is_in[first + i] |= answer[i] != PERHAPS_ANSWER_UNKNOWN;
    }
    return error;
}

/* Notes that the old keys are in. */
static void note_old(struct attempt *a)
{
    for (unsigned i = 0; i < OLD_KEYS; i++)
        a->is_in[i] = true;
}

/* Makes a small filter with the old keys.  It is copied from memory, since planning one takes
 * longer than all the rest. */
static void prepare_small(struct attempt *a)
{
    perhaps_cluster *c = client_of(a, DIRECT);
    works(a, c, "upload", perhaps_cluster_upload(c, old, PARTITIONS));
    perhaps_cluster_free(c);
    note_old(a);
}

/* Makes another filter with the old keys. */
static void make_directly(struct attempt *a, const struct perhaps_options *options,
                          uint64_t partitions)
{
    perhaps_cluster *c = client_of(a, DIRECT);
    if (works(a, c, "create", perhaps_cluster_create(c, options, partitions)))
        works(a, c, "add", add_some(a, c, 0, OLD_KEYS));
    perhaps_cluster_free(c);
}

/* Checks that the filter can be opened, and has all keys that were added. */
static void check_keys(struct attempt *a, int error)
{
    (void)error;
    perhaps_cluster *c = open_directly(a);
    works(a, c, "ask", ask(a, c));
    perhaps_cluster_free(c);
}

/* ---- add, grow --------------------------------------------------------------------------- */

/* A filter that takes three layers for all keys. */
static void prepare_growing(struct attempt *a)
{
    struct perhaps_options options = { .capacity = ADDED_AT_ONCE,
                                       .fpr = 1e-3,
                                       .needs = PERHAPS_CAN_GROW,
                                       .hashing = { .seed = 1 } };
    make_directly(a, &options, 0);
}

/* The old keys of a filter that is shared were added by verbs_begin(). */
static void prepare_shared(struct attempt *a)
{
    note_old(a);
}

/* Asks, adds, and asks again.  After an error it goes on, and returns the first error. */
static int run_add(struct attempt *a, perhaps_cluster *c)
{
    int error = reach(a, c), another;
    if (error)
        return error;
    error = ask(a, c);
    for (unsigned i = OLD_KEYS; i < nkeys(a); i += ADDED_AT_ONCE)
        if ((another = add_some(a, c, i, ADDED_AT_ONCE)) && !error)
            error = another;
    another = ask(a, c);
    return error ? error : another;
}

/* ---- create, delete, upload, download ---------------------------------------------------- */

static void prepare_nothing(struct attempt *a)
{
    (void)a;
}

static int run_create(struct attempt *a, perhaps_cluster *c)
{
    int error = reach(a, c);
    return error == PERHAPS_ERR_MISSING ? perhaps_cluster_create(c, &small, PARTITIONS) : error;
}

/* Checks that there is a whole filter with so many keys, and nothing else.  The counts are a
 * Redis key as soon as there are keys. */
static void expect_filter(struct attempt *a, uint64_t keys)
{
    perhaps_cluster *c = open_directly(a);
    struct perhaps_cluster_stats stats;
    struct perhaps_cluster_verdict verdict;
    if (works(a, c, "info", perhaps_cluster_stats_of(c, &stats)) &&
        works(a, c, "verify", perhaps_cluster_verify(c, &verdict))) {
        if (stats.keys != keys || stats.plan.capacity != small.capacity ||
            stats.plan.fpr > small.fpr || stats.partitions < 2 || verdict.lost)
            complain(a, "it has %u keys, capacity %u, rate %g, %u partitions",
                     (unsigned)stats.keys, (unsigned)stats.plan.capacity, stats.plan.fpr,
                     (unsigned)stats.partitions);
        expect_redis_keys(a, stats.partitions + 2); /* description and counts */
    }
    works(a, c, "ask", ask(a, c));
    perhaps_cluster_free(c);
}

static void check_created(struct attempt *a, int error)
{
    if (!error)
        expect_filter(a, 0);
}

static int run_delete(struct attempt *a, perhaps_cluster *c)
{
    int error = reach(a, c);
    return error ? error : perhaps_cluster_delete(c);
}

static void check_deleted(struct attempt *a, int error)
{
    if (!error)
        expect_redis_keys(a, 0);
}

static int run_upload(struct attempt *a, perhaps_cluster *c)
{
    int error = reach(a, c);
    return error == PERHAPS_ERR_MISSING ? perhaps_cluster_upload(c, whole, PARTITIONS) : error;
}

static void check_uploaded(struct attempt *a, int error)
{
    if (error)
        return;
    for (unsigned i = 0; i < nkeys(a); i++)
        a->is_in[i] = true;
    expect_filter(a, nkeys(a));
}

static const char before[] = "what was there before";

/* A file is there already, which must stay as it is if the verb fails. */
static void prepare_download(struct attempt *a)
{
    FILE *file = fopen(a->file.text, "w");
    prepare_small(a);
    if (!file || fputs(before, file) == EOF || fclose(file))
        complain(a, "%s cannot be written", a->file.text);
}

static int run_download(struct attempt *a, perhaps_cluster *c)
{
    int error = reach(a, c);
    return error ? error : perhaps_cluster_download(c, a->file.text);
}

static void check_not_downloaded(struct attempt *a)
{
    char bytes[sizeof before] = "";
    FILE *file = fopen(a->file.text, "r");
    if (!file || fread(bytes, 1, sizeof bytes, file) != strlen(before) ||
        strcmp(bytes, before) != 0)
        complain(a, "the file was changed: '%.20s'", bytes);
    if (file)
        fclose(file);
}

static void check_downloaded(struct attempt *a, int error)
{
    perhaps_filter *f;
    struct perhaps_verdict verdict;
    check_keys(a, error);
    if (error) {
        check_not_downloaded(a);
        return;
    }
    if ((error = perhaps_open(a->file.text, NULL, &f))) {
        complain(a, "the file cannot be opened: %s", perhaps_strerror(error));
        return;
    }
    if ((error = perhaps_verify(f, &verdict)))
        complain(a, "the file is damaged: %s", perhaps_strerror(error));
    for (unsigned i = 0; i < OLD_KEYS; i++)
        if (!perhaps_contains(f, &a->key[i], sizeof a->key[i]))
            complain(a, "key %u is not in the file", i);
    perhaps_free(f);
}

/* ---- dedup, the program ------------------------------------------------------------------ */

/* What was printed of each line, and the summary of the run. */
struct printed {
    unsigned times[OLD_KEYS + LINES_NEW];
    unsigned total, doubtful;
};

static void write_line(char line[16], unsigned i)
{
    snprintf(line, 16, "line %03u", i);
}

/* Adds the first lines, which are old then; and keys, which are not asked for. */
static void prepare_dedup(struct attempt *a)
{
    perhaps_cluster *c = client_of(a, DIRECT);
    char line[16];
    works(a, c, "upload", perhaps_cluster_upload(c, old, PARTITIONS));
    for (unsigned i = 0; i < OLD_KEYS; i++) {
        write_line(line, i);
        int error = perhaps_cluster_add(c, line, strlen(line));
        works(a, c, "add", error > 0 ? 0 : error);
    }
    perhaps_cluster_free(c);
}

/* Runs dedup with the lines.  Returns its exit status, or -1. */
static int spawn_dedup(const struct attempt *a, unsigned host, const char *out, const char *err)
{
    char url[128];
    const char *const words[] = { program, "dedup", "--json", "--state", url, NULL };
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status = -1;
    write_url(a, host, url);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, lines.text, O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, err, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (!posix_spawn(&pid, program, &actions, NULL, (char *const *)words, environ))
        waitpid(pid, &status, 0);
    posix_spawn_file_actions_destroy(&actions);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Reads what was printed, and adds it to *printed. */
static void read_printed(struct attempt *a, const char *out, struct printed *printed)
{
    char line[64];
    unsigned i;
    FILE *file = fopen(out, "r");
    while (file && fgets(line, sizeof line, file)) {
        bool known = sscanf(line, "line %u", &i) == 1 && i < OLD_KEYS + LINES_NEW;
        if (known)
            printed->times[i]++;
        else
            complain(a, "it printed '%s'", line);
        printed->total++;
    }
    if (file)
        fclose(file);
}

/* Runs dedup, and reads its output and what it says.  If it gives up at once, it is run again,
 * as a user would do.  Sets a->problem to what it says. */
static int dedup(struct attempt *a, unsigned host, struct printed *printed)
{
    struct path out, err;
    int status;
    snprintf(out.text, sizeof out.text, "%.200s.%u", a->file.text, host);
    snprintf(err.text, sizeof err.text, "%.200s.err", a->file.text);
    do {
        status = spawn_dedup(a, host, out.text, err.text);
        FILE *file = fopen(err.text, "r");
        size_t n = file ? fread(a->problem, 1, sizeof a->problem - 1, file) : 0;
        a->problem[n] = '\0';
        a->problem[strcspn(a->problem, "\n")] = '\0';
        if (file)
            fclose(file);
    } while (a->must_succeed && status == 2 && gave_up_at_once(a->problem));
    const char *doubtful = strstr(a->problem, "\"doubtful\":");
    printed->doubtful += doubtful ? (unsigned)strtoul(doubtful + 11, NULL, 10) : 0;
    read_printed(a, out.text, printed);
    return status ? -1 : 0;
}

static int run_dedup(struct attempt *a, perhaps_cluster *c)
{
    struct printed unused = { .total = 0 };
    (void)c;
    return dedup(a, a->host, &unused);
}

/* Runs it once more, without faults.  Over both runs each new line must be printed.  If the
 * first has succeeded, it has printed all, and none twice but those that it calls doubtful. */
static void check_dedup(struct attempt *a, int error)
{
    struct printed first = { .total = 0 }, both;
    struct path out;
    unsigned nmore = 0;
    snprintf(out.text, sizeof out.text, "%.200s.%u", a->file.text, a->host);
    const char *doubtful = error ? NULL : strstr(a->problem, "\"doubtful\":");
    first.doubtful = doubtful ? (unsigned)strtoul(doubtful + 11, NULL, 10) : 0;
    read_printed(a, out.text, &first);
    both = first;
    if (dedup(a, DIRECT, &both))
        complain(a, "the second run fails: %.300s", a->problem);
    for (unsigned i = 0; i < OLD_KEYS + LINES_NEW; i++) {
        unsigned wanted = i >= OLD_KEYS;
        if (both.times[i] < wanted)
            complain(a, "line %u was never printed", i);
        else
            nmore += both.times[i] - wanted;
    }
    if (!error && both.total > first.total)
        complain(a, "the second run printed %u lines", both.total - first.total);
    if (!error && nmore > first.doubtful)
        complain(a, "%u lines were printed again, %u doubtful", nmore, first.doubtful);
}

/* ---- All of them ------------------------------------------------------------------------- */

const struct verb verbs[] = {
    { "add", ADDED_AT_ONCE, false, false, prepare_small, run_add, check_keys },
    { "add to a large one", ADDED_AT_ONCE, true, false, prepare_shared, run_add, check_keys },
    { "grow", NEW_KEYS_MOST, false, false, prepare_growing, run_add, check_keys },
    { "create", 0, false, false, prepare_nothing, run_create, check_created },
    { "delete", 0, false, false, prepare_small, run_delete, check_deleted },
    { "upload", ADDED_AT_ONCE, false, false, prepare_nothing, run_upload, check_uploaded },
    { "download", 0, false, false, prepare_download, run_download, check_downloaded },
    { "dedup", 0, false, true, prepare_dedup, run_dedup, check_dedup },
};
const size_t nverbs = sizeof verbs / sizeof *verbs;

/* Sets the keys.  In filters of their own the new keys are always the same ones, so that no
 * false positive comes by chance. */
static void set_keys(struct attempt *a)
{
    for (unsigned i = 0; i < nkeys(a); i++)
        a->key[i] = i < OLD_KEYS ? i : a->first_key + i;
}

static void make_shared(const struct place *place)
{
    struct perhaps_options options = { .capacity = 5000000,
                                       .fpr = 1e-3,
                                       .hashing = { .seed = 1 } };
    struct attempt a = { .verb = verbs, .place = place, .name = "shared" };
    set_keys(&a);
    delete_directly(&a);
    make_directly(&a, &options, 8);
    if (a.trouble[0])
        fail_msg("%s", a.trouble);
}

void verbs_begin(const struct place *place, const char *program_)
{
    struct attempt a = { .verb = verbs, .place = place };
    char line[16];
    program = program_;
    make_shared(place);
    set_keys(&a);
    struct perhaps_keys keys = perhaps_keys_packed(a.key, sizeof *a.key, nkeys(&a));
    struct perhaps_keys old_keys = perhaps_keys_packed(a.key, sizeof *a.key, OLD_KEYS);
    old = make_with(&small);
    fill(old, &old_keys);
    whole = make_with(&small);
    fill(whole, &keys);
    lines = temp_path("lines");
    FILE *file = fopen(lines.text, "w");
    expect(file);
    for (unsigned i = 0; i < OLD_KEYS + LINES_NEW + LINES_REPEATED; i++) {
        write_line(line, i % (OLD_KEYS + LINES_NEW));
        fprintf(file, "%s\n", line);
    }
    expect(!fclose(file));
}

void verbs_end(const struct place *place)
{
    struct attempt a = { .verb = verbs, .place = place, .name = "shared" };
    delete_directly(&a);
    perhaps_free(old);
    perhaps_free(whole);
    if (a.trouble[0])
        fail_msg("%s", a.trouble);
}

/* Checks that a verb which failed says why, in one line that can be printed. */
static void check_problem(struct attempt *a)
{
    bool printable = true;
    for (const char *at = a->problem; *at; at++)
        printable &= (unsigned char)*at >= ' ' && *at != 127;
    if (a->must_succeed || !printable || strlen(a->problem) < 10)
        complain(a, "it fails: %.500s", a->problem);
}

/* Removes what is there, and makes a filter of the same name once more. */
static void make_anew(struct attempt *a)
{
    delete_directly(a);
    prepare_small(a);
}

void attempt_run(struct attempt *a, struct proxy *proxy)
{
    set_keys(a);
    a->verb->prepare(a);
    if (a->trouble[0])
        return;
    if (!proxy_start(proxy, a->host, a->place->port, a->place->nservers)) {
        complain(a, "the proxy cannot listen at 127.0.0.%u", a->host);
        return;
    }
    perhaps_cluster *c = client_of(a, a->host);
    int error = a->verb->run(a, c);
    if (error && !a->problem[0])
        snprintf(a->problem, sizeof a->problem, "%s", perhaps_cluster_problem(c));
    perhaps_cluster_free(c);
    proxy_stop(proxy);
    if (a->lied_to)
        a->trouble[0] = '\0';
    if (error)
        check_problem(a);
    if (!a->lied_to)
        a->verb->check(a, error);
    if (error && !a->verb->shares)
        make_anew(a);
    if (!a->verb->shares)
        delete_directly(a);
}
