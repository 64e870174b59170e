/* exact.c - dedup --exact and --unique, with few bits a line and 10 bytes a repeated line.
 *
 *     count     how many lines there are, and about how many differ
 *     suspect   each line goes to the filter 'all'; if that perhaps had it, it is a suspect,
 *               and goes to the filter 'suspects', too
 *     decide    a line that is not in 'suspects' came once.  The others go through a table of
 *               the places of lines, which compares their bytes (exact_table.c)
 *     print     only for --unique: the table now tells which lines came again
 *
 * Each of these reads all inputs.  A filter has no false negatives, so a line that came
 * twice is always a suspect when it comes for the second time; and a false positive only
 * makes a suspect of a line that came once.  So what is printed depends on no hash and no
 * rate.
 *
 * If so many lines are repeats that most different lines may be suspects, the filters would
 * save little: all lines then go through the table. */
#include "exact.h"
#include <perhaps_plan.h>

#include <math.h>
#include <stdlib.h>

#include "exact_table.h"
#include "messages.h"
#include "numbers.h"
#include "printer.h"
#include "same.h"
#include "shards.h"

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
    uint64_t nmet;       /* lines that went through the table */
    struct exact_table table;
    struct same same;
};

struct exact {
    const struct settings *settings;
    struct texts *texts;
    struct census census;
    double fpr; /* of the filters */
    uint64_t memory_nbytes, limit_nbytes;
    bool filters; /* there are suspects; else all lines go through the table */
    struct sharding sharding;
    struct exact_shard shard[SHARDS_MAX];
    struct input *input; /* of the pass that runs */
    struct printer printer;
};

#define NOTHING_PRINTED "; nothing is printed"

/* ---- Memory -------------------------------------------------------------------------- */

/* Ends the program if so much more memory than is used now is too much. */
static void take_memory(struct exact *exact, uint64_t nbytes, const char *what)
{
    exact->memory_nbytes += nbytes;
    if (exact->memory_nbytes > exact->limit_nbytes)
        fail("--memory: %s of %s different lines and more take %s, which is more than "
             "%s" NOTHING_PRINTED ": give more, or leave out --%s",
             what, grouped(exact->census.least).s, scaled((double)exact->memory_nbytes, "B").s,
             scaled((double)exact->limit_nbytes, "B").s,
             exact->settings->unique   ? "unique"
             : exact->settings->nknown ? "against"
                                       : "exact");
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
    exact->input = input_open_pieces(s, texts_pieces(exact->texts), doing, last && !s->count);
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
    int error =
        perhaps_add_unless_present_many(shard->all.filter, &keys, sharded->answer, NULL);
    if (error)
        return block_met(block, error);
    shard->nlines += keys.count;
    keep_suspects(sharded, shard->index, block);
    keys = shards_keys(sharded, shard->index);
    shard->nlines -= keys.count;
    shard->nsuspected += keys.count;
    error =
        perhaps_add_unless_present_many(shard->suspects.filter, &keys, sharded->answer, NULL);
    for (size_t i = 0; i < keys.count && !error; i++)
        shard->nsuspects += !sharded->answer[i];
    return block_met(block, error);
}

/* Returns a number that is not exceeded where 'mean' is expected: six standard deviations
 * more. */
static double at_most(double mean)
{
    return mean + 6 * sqrt(mean) + 64;
}

/* Decides whether filters are worth a pass.  At most so many different lines can be repeated as
 * there are more lines than different ones. */
static void choose_filters(struct exact *exact)
{
    const double worth = 0.75;
    const struct census *census = &exact->census;
    exact->filters = (double)(census->nlines - census->least) < worth * (double)census->most ||
                     exact_table_nbytes(census->most) > exact->limit_nbytes;
}

/* Finds the suspects: those that are repeated, and some that are not. */
static void find_suspects(struct exact *exact)
{
    const struct census *census = &exact->census;
    uint64_t nsuspects =
        census->nlines - census->least + (uint64_t)at_most(exact->fpr * (double)census->most);
    struct stage stages[SHARDS_MAX + 1] = { { shards_split, &exact->sharding, false } };
    if (nsuspects > census->most)
        nsuspects = census->most;
    for (size_t i = 0; i < exact->sharding.count; i++) {
        exact->shard[i].all = make_filter(exact, census->most);
        exact->shard[i].suspects = make_filter(exact, nsuspects);
    }
    size_t n = stages_of_shards(exact, stages, 1, suspect);
    run_pass(exact, "looking for repeats", stages, n, false);
    for (size_t i = 0; i < exact->sharding.count; i++)
        drop_filter(exact, &exact->shard[i].all);
}

/* ---- Who came before ------------------------------------------------------------------ */

/* Returns for how many lines a shard needs a table.  Without filters it is for all.  With them
 * it is for the suspects, and for the lines that the filter of the suspects takes for such; and
 * since filters take some keys for others, more keys came than they counted. */
static uint64_t table_room(const struct exact *exact, const struct exact_shard *shard)
{
    const uint64_t all = sharding_room(&exact->sharding, exact->census.most) + 64;
    const double counted = 1 - exact->fpr;
    double nlines = at_most((double)shard->nlines / counted);
    double nsuspects =
        at_most((double)shard->nsuspects / counted) + at_most(exact->fpr * nlines);
    return exact->filters && nsuspects < (double)all ? (uint64_t)nsuspects : all;
}

static void make_tables(struct exact *exact)
{
    for (size_t i = 0; i < exact->sharding.count; i++) {
        struct exact_shard *shard = &exact->shard[i];
        uint64_t room = table_room(exact, shard);
        take_memory(exact, exact_table_nbytes(room), "the places");
        if (!exact_table_make(&shard->table, room, exact->settings->unique))
            fail("the places of lines take %s" NOTHING_PRINTED ": %s",
                 scaled((double)exact->memory_nbytes, "B").s, why(PERHAPS_ERR_MEMORY));
    }
}

/* A stage, with a struct exact: leaves only the suspects among the hashes of a block. */
static bool leave_suspects(void *context, struct block *block)
{
    const struct exact *exact = context;
    struct sharded *sharded = shards_of(block);
    for (size_t i = 0; sharded && i < exact->sharding.count && exact->filters; i++) {
        struct perhaps_keys keys = shards_keys(sharded, i);
        perhaps_contains_many(exact->shard[i].suspects.filter, &keys, sharded->answer);
        keep_suspects(sharded, i, block);
    }
    return sharded;
}

/* The keys of one shard in a block, on their way through the table. */
struct meeting {
    struct exact_shard *shard;
    struct block *block;
    size_t count;
    const struct perhaps_hashed *hash;
    const uint32_t *record;
};

/* Keys go through the table in batches.  Loops that only fetch are kept apart from those
 * that work: a fetch that misses the TLB blocks what follows, but not further fetches that a
 * CPU sees at the same time. */
enum { BATCH = 64 };

/* Fetches the slots of a batch of keys. */
static void fetch_slots(const struct meeting *m, size_t from)
{
    for (size_t i = from; i < from + BATCH && i < m->count; i++)
        exact_table_fetch(&m->shard->table, &m->hash[i]);
}

/* Finds the lines with which the keys of a batch may have to be compared, and fetches them.
 * Writes to seek[] where the searches have come. */
static void fetch_lines(const struct meeting *m, size_t from, size_t seek[BATCH])
{
    const struct exact_table *table = &m->shard->table;
    const char *begin = texts_begin(m->shard->exact->texts);
    const uintptr_t cache_line = 64;
    const char *line[2 * BATCH];
    size_t n = 0;
    for (size_t i = from; i < from + BATCH && i < m->count; i++) {
        seek[i - from] = exact_table_seek(table, &m->hash[i]);
        uint64_t place = exact_table_place(table, seek[i - from]);
        size_t nbytes = m->block->key[m->record[i]].nbytes;
        if (place == EXACT_NONE)
            continue;
        line[n++] = begin + place;
        if ((uintptr_t)(begin + place) % cache_line + nbytes >= cache_line)
            line[n++] = begin + place + nbytes;
    }
    for (size_t i = 0; i < n; i++)
        __builtin_prefetch(line[i]);
}

/* Looks up a batch of keys, and writes the answers.  Returns false if the table is full. */
static bool meet_batch(const struct meeting *m, size_t from, const size_t seek[BATCH])
{
    const uint64_t shift = texts_shift(m->shard->exact->texts, m->block);
    struct exact_line line = { .same = same_key, .context = &m->shard->same };
    for (size_t i = from; i < from + BATCH && i < m->count; i++) {
        const uint32_t record = m->record[i];
        line.hash = &m->hash[i];
        line.key = &m->block->key[record];
        line.seek = seek[i - from];
        line.place = (uintptr_t)m->block->record[record].bytes + shift;
        enum exact_met met = exact_table_meet(&m->shard->table, &line);
        if (met == EXACT_FULL)
            return false;
        m->block->answer[record] = met == EXACT_REPEATED;
    }
    return true;
}

/* Looks up all keys of a shard.  Slots are fetched two batches before they are needed, and
 * lines one batch before.  Returns false if the table is full. */
static bool meet_keys(const struct meeting *m)
{
    size_t seek[2][BATCH] = { { 0 } };
    bool ok = true;
    fetch_slots(m, 0);
    fetch_slots(m, BATCH);
    fetch_lines(m, 0, seek[0]);
    for (size_t from = 0, now = 0; ok && from < m->count; from += BATCH, now = !now) {
        fetch_slots(m, from + 2 * BATCH);
        fetch_lines(m, from + BATCH, seek[!now]);
        ok = meet_batch(m, from, seek[now]);
    }
    return ok;
}

/* A stage, with a struct exact_shard: finds out which of the suspects came before.  If a file
 * was cut off meanwhile, the answers are worth nothing. */
static bool meet(void *context, struct block *block)
{
    struct exact_shard *shard = context;
    const struct sharded *sharded = shards_of(block);
    if (!sharded)
        return false;
    const size_t begin = shard->index * sharded->room;
    const struct meeting meeting = { shard, block, sharded->count[shard->index],
                                     sharded->hash + begin, sharded->record + begin };
    int error = meet_keys(&meeting) ? 0 : PERHAPS_ERR_FULL;
    shard->nmet += meeting.count;
    if (same_error(&shard->same))
        error = same_error(&shard->same);
    if (error)
        block->ndone = 0;
    return block_met(block, error);
}

/* A stage, with a struct exact: finds out which of the suspects came once. */
static bool find_once(void *context, struct block *block)
{
    const struct exact *exact = context;
    const struct sharded *sharded = shards_of(block);
    const uint64_t shift = texts_shift(exact->texts, block);
    for (size_t i = 0; sharded && i < exact->sharding.count; i++) {
        const struct perhaps_hashed *hash = sharded->hash + i * sharded->room;
        const uint32_t *record = sharded->record + i * sharded->room;
        const size_t count = sharded->count[i], ahead = 16;
        for (size_t k = 0; k < count; k++) {
            if (k + ahead < count)
                exact_table_fetch(&exact->shard[i].table, &hash[k + ahead]);
            uint64_t place = (uintptr_t)block->record[record[k]].bytes + shift;
            block->answer[record[k]] =
                !exact_table_came_once(&exact->shard[i].table, &hash[k], place);
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
    uint64_t nsuspected = 0, nmet = 0, nfirst = 0, nbytes = 0;
    for (size_t i = 0; i < exact->sharding.count; i++) {
        nsuspected += exact->shard[i].nsuspected;
        nmet += exact->shard[i].nmet;
        nfirst += exact->shard[i].table.count;
        nbytes += exact->shard[i].table.nslots * sizeof(uint64_t);
    }
    /* Each of the other lines that were met is a repeat, and every repeat was suspected. */
    const uint64_t nwrong = nsuspected - (nmet - nfirst);
    printer_report(printer);
    texts_tell_changes(exact->texts, s);
    json_t *facts = json_pack(
        "{s:I, s:I, s:I, s:I, s:o*, s:o*, s:I, s:I, s:I}", "lines", (json_int_t)nlines,
        s->unique ? "unique" : "new", (json_int_t)nnew, "repeated", (json_int_t)nrepeated,
        "skipped", (json_int_t)input_nskipped(exact->input), "suspected",
        exact->filters ? json_integer((json_int_t)nsuspected) : NULL, "suspected_new",
        exact->filters ? json_integer((json_int_t)nwrong) : NULL, "compared", (json_int_t)nmet,
        "table_bytes", (json_int_t)nbytes, "copied_bytes",
        (json_int_t)texts_ncopied(exact->texts));
    summarize(s, facts, "%s, %s %s, %s repeated, without error%s%s%s%s; %s, %s%s",
              counted(nlines, "line").s, grouped(nnew).s, s->unique ? "unique" : "new",
              grouped(nrepeated).s, exact->filters ? "; " : "",
              exact->filters ? grouped(nsuspected).s : "",
              exact->filters ? " suspected, of which new " : "",
              exact->filters ? grouped(nwrong).s : "", scaled((double)nbytes, "B").s,
              duration(seconds).s, speed(nlines, seconds, " lines/s").s);
}

/* Frees what the shards hold. */
static void release_shards(struct exact *exact)
{
    for (size_t i = 0; i < exact->sharding.count; i++) {
        drop_filter(exact, &exact->shard[i].suspects);
        exact_table_free(&exact->shard[i].table);
        free(exact->shard[i].same.room.memory);
    }
}

void exact_run(const struct settings *settings)
{
    struct exact exact = { .settings = settings,
                           .fpr = settings->fpr > 0 ? settings->fpr : FPR_EXACT,
                           .limit_nbytes = input_memory(settings),
                           .printer = { .settings = settings } };
    exact.texts = texts_open(settings);
    if (texts_nplaces(exact.texts) > EXACT_PLACES)
        fail("--exact: takes inputs of less than 16 TiB together" NOTHING_PRINTED);
    exact.census = input_census(settings, texts_pieces(exact.texts));
    exact.sharding = sharding_new(input_nshards(settings, exact.census.most));
    for (size_t i = 0; i < exact.sharding.count; i++)
        exact.shard[i] =
            (struct exact_shard){ .exact = &exact,
                                  .index = i,
                                  .same = { .texts = exact.texts, .form = &settings->form } };
    choose_filters(&exact);
    if (exact.filters)
        find_suspects(&exact);
    make_tables(&exact);
    decide(&exact);
    report(&exact);
    release_shards(&exact);
    input_close(exact.input);
    texts_close(exact.texts);
}
