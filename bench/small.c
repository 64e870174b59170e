/* small.c - measures many small filters: 'perhaps-bench small'.
 *
 * A filter that is made, filled and thrown away has costs that no large filter shows: to plan,
 * to allocate, to begin and to end.  So here a time is that of the whole life of a filter, and
 * a question is one to a filter that nobody has opened yet.
 *
 * All filters of one size take turns, RUN_SECONDS each; the best turn of each counts. */
#include <err.h>
#include <perhaps_build.h>
#include <perhaps_fast.h>
#include <perhaps_file.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

#define RUN_SECONDS 2e-3

enum { ENTRANTS_MAX = 4 };

static const double rate = 0.01;

/* One filter in the race, of one size. */
struct entrant {
    const char *name;
    const struct contender *peer; /* NULL: a filter of the library */
    void *peers_filter;
    struct perhaps_options options; /* of a filter of the library */
    uint8_t *bytes;                 /* of its file */
    uint64_t nbytes;
    double life, question; /* best times, in seconds */
    bool wrong;            /* a key was missing */
};

/* ---- Filters of the library -------------------------------------------------------------- */

static perhaps_filter *made(const struct entrant *e, const struct perhaps_keys *keys)
{
    perhaps_filter *filter;
    perhaps_builder *builder = NULL;
    int error;
    if (e->options.needs & PERHAPS_CAN_BUILD) {
        error = perhaps_builder_create(&e->options, NULL, &builder);
        if (!error)
            error = perhaps_builder_add_many(builder, keys);
        if (!error)
            error = perhaps_builder_finish(builder, &filter);
        perhaps_builder_free(builder);
    } else {
        error = perhaps_create(&e->options, &filter);
        if (!error)
            error = perhaps_add_many(filter, keys, NULL);
    }
    if (error)
        errx(2, "%s: %s", e->name, perhaps_strerror(error));
    return filter;
}

/* Opens the bytes where they lie, and asks for one key. */
static bool opened_has(const struct entrant *e, const void *key, size_t key_nbytes)
{
    const struct perhaps_open_options how = { .mode = PERHAPS_MODE_READ };
    perhaps_filter *filter;
    int error = perhaps_from_bytes(e->bytes, e->nbytes, &how, &filter);
    if (error)
        errx(2, "%s: %s", e->name, perhaps_strerror(error));
    bool has = perhaps_contains(filter, key, key_nbytes);
    perhaps_free(filter);
    return has;
}

/* ---- All of them ------------------------------------------------------------------------- */

/* Makes the filter of all keys.  Keeps its bytes if there are none yet. */
static void live(struct entrant *e, const struct perhaps_keys *keys)
{
    if (e->peer) {
        e->peer->clear(e->peers_filter);
        e->peer->add[SINGLE](e->peers_filter, keys);
        if (!e->peer->finish(e->peers_filter))
            errx(2, "%s: could not be built", e->name);
        return;
    }
    perhaps_filter *filter = made(e, keys);
    if (!e->bytes) {
        e->nbytes = perhaps_write_nbytes(filter);
        const size_t room = (e->nbytes + PERHAPS_ALIGNMENT - 1) & -(size_t)PERHAPS_ALIGNMENT;
        e->bytes = aligned_alloc(PERHAPS_ALIGNMENT, room);
        if (!e->bytes || perhaps_to_bytes(filter, e->bytes, e->nbytes))
            errx(2, "out of memory");
    }
    perhaps_free(filter);
}

static bool question(struct entrant *e, const struct perhaps_keys *keys, uint64_t number)
{
    struct perhaps_keys one = perhaps_keys_slice(keys, number % keys->count, 1);
    return e->peer ? e->peer->reopened(e->peers_filter, &one)
                   : opened_has(e, one.packed, one.key_nbytes);
}

/* Takes a turn: as many rounds as take RUN_SECONDS. */
static void take_turn(struct entrant *e, const struct perhaps_keys *keys)
{
    double begin = seconds_now(), took;
    uint64_t rounds = 0;
    do {
        live(e, keys);
        rounds++;
    } while ((took = seconds_now() - begin) < RUN_SECONDS);
    took /= (double)rounds;
    e->life = e->life && e->life < took ? e->life : took;
    begin = seconds_now();
    rounds = 0;
    do {
        for (int i = 0; i < 16; i++)
            e->wrong |= !question(e, keys, rounds++);
    } while ((took = seconds_now() - begin) < RUN_SECONDS);
    took /= (double)rounds;
    e->question = e->question && e->question < took ? e->question : took;
}

static const char columns[] = "keys keys 7n; filter filter -14s; bytes bytes 8.0; "
                              "bits/key bits_per_key 9.2; make_us make_us 9.2; "
                              "ns/key make_ns_a_key 8.1; ask_us ask_us 8.3;";

static void report(const struct entrant *e, uint64_t keys, json_t *rows)
{
    double nbytes = (double)e->nbytes, n = (double)keys;
    if (e->peer) {
        struct facts facts = { 0 };
        e->peer->tell(e->peers_filter, &facts);
        nbytes = (double)facts.nbytes;
    }
    json_t *row = json_pack("{s:I, s:s, s:f, s:f, s:f, s:f, s:f}", "keys", (json_int_t)keys,
                            "filter", e->name, "bytes", nbytes, "bits_per_key", 8 * nbytes / n,
                            "make_us", 1e6 * e->life, "make_ns_a_key", 1e9 * e->life / n,
                            "ask_us", 1e6 * e->question);
    table_row(columns, row);
    putchar('\n');
    json_array_append_new(rows, row);
}

/* Adds a filter of the library. */
static void enter(struct entrant *entrants, size_t *n, const struct perhaps_options *options,
                  const char *name)
{
    entrants[*n] = (struct entrant){ .name = name, .options = *options };
    entrants[*n].options.hashing =
        (struct perhaps_hashing){ .hash = PERHAPS_HASH_XXH3_64, .seed = 1 };
    ++*n;
}

/* Lists who runs at this size.  A ribbon of a few keys takes a line of slots more than they
 * need, and nobody would make one. */
static size_t list_entrants(struct entrant *entrants, const struct contender *peers,
                            size_t npeers, const struct task *task)
{
    enum { RIBBON_KEYS_LEAST = 1000 };
    const bool ribbons = task->capacity >= RIBBON_KEYS_LEAST;
    const struct perhaps_options usual = { .capacity = task->capacity, .fpr = rate };
    struct perhaps_options built = { .fpr = rate, .needs = PERHAPS_CAN_BUILD };
    size_t n = 0;
    built.kind = "ribbon";
    enter(entrants, &n, &usual, "perhaps");
    if (ribbons)
        enter(entrants, &n, &built, "perhaps ribbon");
    for (size_t i = 0; i < npeers; i++) {
        if (peers[i].missing || (strstr(peers[i].name, "ribbon") && !ribbons))
            continue;
        entrants[n] = (struct entrant){ .name = peers[i].name, .peer = &peers[i] };
        if (peers[i].create(&peers[i], task, &entrants[n].peers_filter))
            errx(2, "%s: could not be made", peers[i].name);
        n++;
    }
    return n;
}

static bool measure_at(const struct settings *settings, uint64_t keys, json_t *rows)
{
    struct contender peers[CONTENDERS_MAX];
    struct entrant entrants[ENTRANTS_MAX];
    const struct task task = { .capacity = keys, .fpr = rate, .settings = settings };
    size_t n = list_entrants(entrants, peers, peer_rocksdb(peers), &task);
    struct key_buffer buffer =
        key_buffer_open((size_t)settings->key_nbytes.at[0], (size_t)keys);
    const struct perhaps_keys all = keys_added(&buffer, 0, (size_t)keys);
    for (int turn = 0; turn < (int)settings->repeat.at[0]; turn++)
        for (size_t i = 0; i < n; i++)
            take_turn(&entrants[i], &all);
    bool wrong = false;
    for (size_t i = 0; i < n; i++) {
        report(&entrants[i], keys, rows);
        wrong |= entrants[i].wrong;
        if (entrants[i].peer)
            entrants[i].peer->destroy(entrants[i].peers_filter);
        free(entrants[i].bytes);
    }
    key_buffer_close(&buffer);
    return wrong;
}

bool small_all(const struct settings *settings, json_t *facts)
{
    json_t *rows = json_array();
    bool wrong = false;
    printf(
        "filters of %.3g %%, keys of %.0f random bytes; the best of %.0f turns of 2 ms, in "
        "which all filters of a size take turns\n"
        "  make: made, filled with all keys at once, and freed (RocksDB: a builder got, each "
        "key added, finished)\n"
        "  ask: bytes that lie in memory are opened there, asked for one key, and closed\n"
        "  bytes: of the file (RocksDB: what it puts into its file)\n\n",
        100 * rate, settings->key_nbytes.at[0], settings->repeat.at[0]);
    table_head(columns);
    putchar('\n');
    for (size_t i = 0; i < settings->keys.count; i++)
        wrong |= measure_at(settings, (uint64_t)settings->keys.at[i], rows);
    json_object_set_new(facts, "rows", rows);
    return wrong;
}
