/* exact.c - dedup --exact and --unique, in memory that few bits a line and 10 bytes a repeated
 * line take.
 *
 *     count     how many lines there are, and about how many differ
 *     suspect   each line goes to the filter 'all'; if that perhaps had it, it is a suspect,
 *               and goes to the filter 'suspects', too
 *     decide    a line that is not in 'suspects' came once.  The others go through a table of
 *               the places of lines, which compares their bytes (exact_table.c)
 *     print     only for --unique: the table now tells which lines came again
 *
 * Each of these reads all inputs.  A filter has no false negatives, so a line that came twice is
 * always a suspect when it comes for the second time; and a false positive only makes a suspect
 * of a line that came once.  So what is printed depends on no hash and no rate.  If most lines
 * are suspects, all go through the table, and the second filter is not kept. */
#include "exact.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exact_table.h"
#include "mapped.h"
#include "messages.h"
#include "numbers.h"
#include "printer.h"
#include "shards.h"
#include "texts.h"

struct exact;

/* A filter, or NULL, and the memory that it takes. */
struct held {
    perhaps_filter *filter;
    uint64_t nbytes;
};

/* One of the shards.  A stage in order writes it. */
struct exact_shard {
    const struct exact *exact;
    size_t index;
    struct held all, suspects;
    uint64_t nlines;     /* that 'all' had not, for all that it knows */
    uint64_t nsuspected; /* lines that it perhaps had */
    uint64_t nsuspects;  /* those among them that 'suspects' had not */
    struct exact_table table;
    struct room room; /* for the key of a line that is compared */
    bool starved;     /* there was no memory for that */
};

struct exact {
    const struct settings *settings;
    struct texts *texts;
    struct census census;
    double fpr; /* of the filters */
    uint64_t memory_nbytes, limit_nbytes;
    bool all_suspected; /* all lines go through the table */
    struct sharding sharding;
    struct exact_shard shard[SHARDS_MAX];
    struct input *input; /* of the pass that runs */
    struct printer printer;
};

#define NOTHING_PRINTED "; nothing is printed"

/* ---- Memory -------------------------------------------------------------------------- */

/* Returns what --memory says, or else a quarter of the machine's. */
static uint64_t memory_limit(const struct settings *settings)
{
    const uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES);
    return settings->memory_nbytes ? settings->memory_nbytes
                                   : pages * (uint64_t)sysconf(_SC_PAGESIZE) / 4;
}

/* Ends the program if so much more memory than is used now is too much. */
static void take_memory(struct exact *exact, uint64_t nbytes, const char *what)
{
    exact->memory_nbytes += nbytes;
    if (exact->memory_nbytes > exact->limit_nbytes)
        fail("--memory: %s of %s different lines and more take %s, which is more than %s"
             NOTHING_PRINTED ": give more, or leave out --%s",
             what, grouped(exact->census.least).s, scaled((double)exact->memory_nbytes, "B").s,
             scaled((double)exact->limit_nbytes, "B").s,
             exact->settings->unique ? "unique" : "exact");
}

/* Makes a filter for hashes of so many keys, or ends the program. */
static struct held make_filter(struct exact *exact, uint64_t nkeys)
{
    struct perhaps_options options = { .capacity = sharding_room(&exact->sharding, nkeys) + 64,
                                       .fpr = exact->fpr,
                                       .hashing.hash = PERHAPS_HASH_NONE };
    struct perhaps_plan plan;
    struct held held = { NULL, 0 };
    int error = perhaps_plan_for(&options, &plan);
    if (!error) {
        take_memory(exact, plan.body_nbytes, "the filters");
        held.nbytes = plan.body_nbytes;
        error = perhaps_create(&options, &held.filter);
    }
    if (error)
        fail("--exact: %s", perhaps_strerror(error));
    return held;
}

static void drop_filter(struct exact *exact, struct held *held)
{
    perhaps_free(held->filter);
    exact->memory_nbytes -= held->nbytes;
    *held = (struct held){ NULL, 0 };
}

/* ---- Passes -------------------------------------------------------------------------- */

/* Runs the stages over all inputs, and ends the program if something was wrong.  Only the last
 * pass prints, and reports lines without a key. */
static void run_pass(struct exact *exact, const char *doing, const struct stage *stages,
                     size_t nstages, bool last)
{
    const struct settings *s = exact->settings;
    const char *outcome = last ? "; the lines so far are done" : NOTHING_PRINTED;
    exact->input =
        input_open_pieces(s, texts_pieces(exact->texts), doing, last && !s->count);
    if (!last)
        input_report_later(exact->input);
    const struct block *block = input_run(exact->input, stages, nstages);
    output_settle(&exact->printer.output, "");
    texts_check(exact->texts, last ? "; the lines that are printed may be wrong" : outcome);
    input_settle(exact->input, block, outcome);
    if (!last)
        input_close(exact->input);
}

/* Writes the same stage for each shard behind the first 'n', and returns how many there are
 * then. */
static size_t stages_of_shards(struct exact *exact, struct stage *stages, size_t n,
                               bool (*run)(void *shard, struct block *block))
{
    for (size_t i = 0; i < exact->sharding.count; i++)
        stages[n++] =
            (struct stage){ .run = run, .context = &exact->shard[i], .in_order = true };
    return n;
}

/* ---- Who is suspect ------------------------------------------------------------------ */

/* Moves the hashes of those keys of a shard together whose answer is true, and their numbers.
 * Sets the answer of the others in the block to "no". */
static void keep_suspects(struct sharded *sharded, size_t shard, struct block *block)
{
    const size_t begin = shard * sharded->room, count = sharded->count[shard];
    struct perhaps_hashed *hash = sharded->hash + begin;
    uint32_t *record = sharded->record + begin;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        block->answer[record[i]] = PERHAPS_ANSWER_NO;
        hash[kept] = hash[i];
        record[kept] = record[i];
        kept += sharded->answer[i];
    }
    sharded->count[shard] = kept;
}

/* A stage, with a struct exact_shard: adds the keys to the filters. */
static bool suspect(void *context, struct block *block)
{
    struct exact_shard *shard = context;
    struct sharded *sharded = shards_of(block);
    if (!sharded)
        return false;
    struct perhaps_keys keys = shards_keys(sharded, shard->index);
    int error = perhaps_add_unless_present_many(shard->all.filter, &keys, sharded->answer, NULL);
    if (error)
        return block_met(block, error);
    shard->nlines += keys.count;
    keep_suspects(sharded, shard->index, block);
    keys = shards_keys(sharded, shard->index);
    shard->nlines -= keys.count;
    shard->nsuspected += keys.count;
    error = perhaps_add_unless_present_many(shard->suspects.filter, &keys, sharded->answer, NULL);
    for (size_t i = 0; i < keys.count && !error; i++)
        shard->nsuspects += !sharded->answer[i];
    return block_met(block, error);
}

/* Finds the suspects.  At most so many lines can be repeated as there are more lines than
 * different ones; and some that are not are suspected. */
static void find_suspects(struct exact *exact)
{
    const struct census *census = &exact->census;
    const uint64_t repeats = census->nlines - census->least;
    const double mistakes = exact->fpr * (double)census->most;
    uint64_t nsuspects = repeats + (uint64_t)(mistakes + 6 * sqrt(mistakes)) + 64;
    struct stage stages[SHARDS_MAX + 1] = { { shards_split, &exact->sharding, false } };
    if (nsuspects > census->most)
        nsuspects = census->most;
    for (size_t i = 0; i < exact->sharding.count; i++) {
        struct exact_shard *shard = &exact->shard[i];
        *shard = (struct exact_shard){ .exact = exact, .index = i };
        shard->all = make_filter(exact, census->most);
        shard->suspects = make_filter(exact, nsuspects);
    }
    size_t n = stages_of_shards(exact, stages, 1, suspect);
    run_pass(exact, "looking for repeats", stages, n, false);
    for (size_t i = 0; i < exact->sharding.count; i++)
        drop_filter(exact, &exact->shard[i].all);
}

/* ---- Who came before ------------------------------------------------------------------ */

/* Returns how many different keys there can be if a filter had 'n' of them not: some were taken
 * for others.  Six standard deviations more. */
static double different(const struct exact *exact, uint64_t n)
{
    double most = (double)n / (1 - exact->fpr);
    return most + 6 * sqrt(most) + 64;
}

/* Makes the table of a shard.  It is for all its lines; or for the suspects, and for the lines
 * that 'suspects' takes for such. */
static void make_table(struct exact_shard *shard, struct exact *exact)
{
    double nlines = different(exact, shard->nlines);
    double mistakes = exact->fpr * nlines;
    double nsuspects =
        different(exact, shard->nsuspects) + mistakes + 6 * sqrt(mistakes);
    if (!exact->all_suspected && nsuspects < nlines)
        nlines = nsuspects;
    take_memory(exact, exact_table_nbytes((uint64_t)nlines), "the places");
    if (!exact_table_make(&shard->table, (uint64_t)nlines))
        fail("%s: the places of lines take %s" NOTHING_PRINTED, why(PERHAPS_ERR_MEMORY),
             scaled((double)exact->memory_nbytes, "B").s);
}

/* If most lines are suspects, asking who is one takes more time than it saves, and the filter
 * more memory. */
static void make_tables(struct exact *exact)
{
    const double most = 0.6;
    uint64_t nlines = 0, nsuspects = 0;
    for (size_t i = 0; i < exact->sharding.count; i++) {
        nlines += exact->shard[i].nlines;
        nsuspects += exact->shard[i].nsuspects;
    }
    exact->all_suspected = (double)nsuspects > most * (double)nlines;
    for (size_t i = 0; i < exact->sharding.count && exact->all_suspected; i++)
        drop_filter(exact, &exact->shard[i].suspects);
    for (size_t i = 0; i < exact->sharding.count; i++)
        make_table(&exact->shard[i], exact);
}

/* A stage, with a struct exact: leaves only the suspects among the hashes of a block. */
static bool leave_suspects(void *context, struct block *block)
{
    const struct exact *exact = context;
    struct sharded *sharded = shards_of(block);
    for (size_t i = 0; sharded && i < exact->sharding.count && !exact->all_suspected; i++) {
        struct perhaps_keys keys = shards_keys(sharded, i);
        perhaps_contains_many(exact->shard[i].suspects.filter, &keys, sharded->answer);
        keep_suspects(sharded, i, block);
    }
    return sharded;
}

/* Compares the key of the line at a place, if that is the whole line. */
static bool same_line(void *context, uint64_t place, const struct perhaps_key *key)
{
    const struct exact_shard *shard = context;
    return texts_same(shard->exact->texts, place, key);
}

/* Does the same for any form of keys. */
static bool same_key(void *context, uint64_t place, const struct perhaps_key *key)
{
    struct exact_shard *shard = context;
    const struct key_form *form = &shard->exact->settings->form;
    struct perhaps_key line = texts_line(shard->exact->texts, place);
    char *room = line_key_is_written(form) ? room_for(&shard->room, line.nbytes, 1) : NULL;
    if (line_key_is_written(form) && !room) {
        shard->starved = true;
        return false;
    }
    return line_key(form, &line, room) && line.nbytes == key->nbytes &&
           memcmp(line.bytes, key->bytes, key->nbytes) == 0;
}

/* Returns the place of a record. */
static uint64_t place_of(const struct exact *exact, const struct block *block, size_t record)
{
    return texts_place(exact->texts, block) +
           (uint64_t)((const char *)block->record[record].bytes - block->text);
}

/* Fetches the lines with which a key will be compared: its first and its last byte. */
static void fetch_line(const struct exact_table *table, const struct perhaps_hashed *hash,
                       const struct perhaps_key *key)
{
    uint64_t place = exact_table_guess(table, hash);
    if (place == EXACT_NONE)
        return;
    __builtin_prefetch(texts_at(place));
    __builtin_prefetch(texts_at(place) + key->nbytes);
}

/* Looks up the keys of a shard one by one.  The slot of a key is fetched two steps of AHEAD keys
 * before it is needed, and the line in it one step before.  Returns how many are done, which is
 * all of them unless the table is full. */
static size_t meet_keys(struct exact_shard *shard, const struct sharded *sharded,
                        struct block *block)
{
    enum { AHEAD = 16 };
    const struct exact *exact = shard->exact;
    const size_t begin = shard->index * sharded->room, count = sharded->count[shard->index];
    const struct perhaps_hashed *hash = sharded->hash + begin;
    const uint32_t *record = sharded->record + begin;
    const bool whole = line_is_key(&exact->settings->form);
    struct exact_table *table = &shard->table;
    for (size_t step = 0; step < count + 2 * AHEAD; step++) {
        if (step < count)
            exact_table_fetch(table, &hash[step]);
        if (step >= AHEAD && step - AHEAD < count)
            fetch_line(table, &hash[step - AHEAD], &block->key[record[step - AHEAD]]);
        if (step < 2 * AHEAD)
            continue;
        size_t i = step - 2 * AHEAD, at = record[i];
        struct exact_line line = { &hash[i], place_of(exact, block, at),
                                   whole ? same_line : same_key, shard, &block->key[at] };
        enum exact_met met = exact_table_meet(table, &line);
        if (met == EXACT_FULL)
            return i;
        block->answer[at] =
            met == EXACT_REPEATED ? PERHAPS_ANSWER_PERHAPS : PERHAPS_ANSWER_NO;
    }
    return count;
}

/* A stage, with a struct exact_shard: finds out which of the suspects came before.  If a file
 * was cut off meanwhile, the answers are worth nothing. */
static bool meet(void *context, struct block *block)
{
    struct exact_shard *shard = context;
    const struct sharded *sharded = shards_of(block);
    if (!sharded)
        return false;
    size_t ndone = meet_keys(shard, sharded, block);
    int error = ndone < sharded->count[shard->index] ? PERHAPS_ERR_FULL : 0;
    if (shard->starved)
        error = PERHAPS_ERR_MEMORY;
    if (mapped_torn())
        error = PERHAPS_ERR_IO;
    if (error)
        block->ndone = 0;
    return block_met(block, error);
}

/* A stage, with a struct exact: finds out which of the suspects came once. */
static bool find_once(void *context, struct block *block)
{
    const struct exact *exact = context;
    const struct sharded *sharded = shards_of(block);
    for (size_t i = 0; sharded && i < exact->sharding.count; i++) {
        const struct perhaps_hashed *hash = sharded->hash + i * sharded->room;
        const uint32_t *record = sharded->record + i * sharded->room;
        const size_t count = sharded->count[i], ahead = 16;
        for (size_t k = 0; k < count; k++) {
            if (k + ahead < count)
                exact_table_fetch(&exact->shard[i].table, &hash[k + ahead]);
            bool once = exact_table_came_once(&exact->shard[i].table, &hash[k],
                                              place_of(exact, block, record[k]));
            block->answer[record[k]] = once ? PERHAPS_ANSWER_NO : PERHAPS_ANSWER_PERHAPS;
        }
    }
    return sharded;
}

/* Finds out which lines came before, or once, and prints. */
static void decide(struct exact *exact)
{
    const bool unique = exact->settings->unique;
    struct stage stages[SHARDS_MAX + 5] = { { shards_split, &exact->sharding, false },
                                            { leave_suspects, exact, false } };
    size_t n = stages_of_shards(exact, stages, 2, meet);
    if (unique) {
        run_pass(exact, "comparing", stages, n, false);
        stages[2] = (struct stage){ find_once, exact, false };
        n = 3;
    }
    n = printer_stages(&exact->printer, stages, n);
    run_pass(exact, "reading", stages, n, true);
}

/* ---- The report ---------------------------------------------------------------------- */

static void report(const struct exact *exact)
{
    const struct settings *s = exact->settings;
    const struct printer *printer = &exact->printer;
    const uint64_t nlines = printer->nlines, nnew = printer->nnew, nrepeated = nlines - nnew;
    const double seconds = seconds_worked(s);
    uint64_t nsuspected = 0, ndifferent = 0, nbytes = 0;
    for (size_t i = 0; i < exact->sharding.count; i++) {
        nsuspected += exact->shard[i].nsuspected;
        ndifferent += exact->shard[i].table.count;
        nbytes += exact->shard[i].table.nslots * sizeof(uint64_t);
    }
    printer_report(printer);
    if (s->quiet)
        return;
    json_t *facts = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "lines", (json_int_t)nlines,
        s->unique ? "unique" : "new", (json_int_t)nnew, "repeated", (json_int_t)nrepeated,
        "skipped", (json_int_t)input_nskipped(exact->input), "suspected",
        (json_int_t)nsuspected, "compared", (json_int_t)ndifferent, "table_bytes",
        (json_int_t)nbytes, "copied_bytes", (json_int_t)texts_ncopied(exact->texts));
    summarize(s, facts, "%s, %s %s, %s repeated, without error; %s, %s%s",
              counted(nlines, "line").s, grouped(nnew).s, s->unique ? "unique" : "new",
              grouped(nrepeated).s, scaled((double)nbytes, "B").s, duration(seconds).s,
              speed(nlines, seconds, " lines/s").s);
}

void exact_run(const struct settings *settings)
{
    struct exact exact = { .settings = settings,
                           .fpr = settings->fpr > 0 ? settings->fpr : FPR_EXACT,
                           .limit_nbytes = memory_limit(settings),
                           .printer = { .settings = settings } };
    exact.texts = texts_open(settings);
    if (texts_nplaces(exact.texts) > EXACT_PLACES)
        fail("--exact: takes inputs of less than 16 TiB together" NOTHING_PRINTED);
    exact.census = input_census(settings, texts_pieces(exact.texts));
    exact.sharding = sharding_new(input_nshards(settings, exact.census.most));
    find_suspects(&exact);
    make_tables(&exact);
    decide(&exact);
    report(&exact);
    for (size_t i = 0; i < exact.sharding.count; i++) {
        drop_filter(&exact, &exact.shard[i].suspects);
        exact_table_free(&exact.shard[i].table);
        free(exact.shard[i].room.memory);
    }
    input_close(exact.input);
    texts_close(exact.texts);
}
