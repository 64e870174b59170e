/* heavy.c - dedup --count-each: the most frequent lines, with exact counts, in bounded memory.
 *
 *     find      counts all lines (heavy_table.c); if there is no room for all, those are left
 *               that may come often
 *     recount   only if there was no room: counts these anew, exactly
 *
 * The lines are shared out by hash among tables, each with a thread of its own. */
#include "heavy.h"

#include <perhaps_fast.h>
#include <stdlib.h>
#include <string.h>

#include "../base/messages.h"
#include "../base/numbers.h"
#include "../base/stop.h"
#include "../input/output.h"
#include "heavy_table.h"
#include "same.h"
#include "shards.h"

/* One of the shards.  A stage in order writes it. */
struct heavy_shard {
    size_t index;
    struct heavy_table table;
    struct same same;
    bool recounts;
};

struct heavy {
    const struct settings *settings;
    struct texts *texts;
    struct sharding sharding;
    struct heavy_shard shard[SHARDS_MAX];
    struct input *input; /* of the pass that runs */
    uint64_t cut;        /* lines that came more often are all there */
    struct heavy_slot *found;
    size_t nfound;
};

/* ---- Counting ------------------------------------------------------------------------ */

/* How many keys ahead a slot is fetched, and the line to which it leads. */
enum { SLOTS_AHEAD = 32, LINES_AHEAD = 16 };

/* Fetches what will be read for keys that follow key i. */
static void fetch_ahead(const struct heavy_shard *shard, const struct perhaps_hashed *hash,
                        size_t count, size_t i)
{
    uint64_t ahead, place = HEAVY_NONE;
    if (i + SLOTS_AHEAD < count) {
        memcpy(&ahead, &hash[i + SLOTS_AHEAD], sizeof ahead);
        heavy_table_fetch(&shard->table, ahead);
    }
    if (i + LINES_AHEAD < count) {
        memcpy(&ahead, &hash[i + LINES_AHEAD], sizeof ahead);
        place = heavy_table_guess(&shard->table, ahead);
    }
    if (place != HEAVY_NONE)
        __builtin_prefetch(texts_begin(shard->same.texts) + place);
}

/* Counts the keys of a shard.  Returns false without memory. */
static bool count_shard(struct heavy_shard *shard, const struct sharded *sharded,
                        const struct block *block)
{
    const struct perhaps_hashed *hash = sharded->hash + shard->index * sharded->room;
    const uint32_t *record = sharded->record + shard->index * sharded->room;
    const uint64_t shift = texts_shift(shard->same.texts, block);
    const size_t count = sharded->count[shard->index];
    struct heavy_line line = { .same = same_key, .context = &shard->same };
    for (size_t i = 0; i < count; i++) {
        fetch_ahead(shard, hash, count, i);
        memcpy(&line.hash, &hash[i], sizeof line.hash);
        line.place = (uintptr_t)block->record[record[i]].bytes + shift;
        line.key = &block->key[record[i]];
        if (shard->recounts)
            heavy_table_recount(&shard->table, &line);
        else if (!heavy_table_count(&shard->table, &line))
            return false;
    }
    return true;
}

/* A stage, with a struct heavy_shard. */
static bool count_lines_of(void *context, struct block *block)
{
    struct heavy_shard *shard = context;
    const struct sharded *sharded = shards_of(block);
    if (!sharded)
        return false;
    int error = count_shard(shard, sharded, block) ? 0 : PERHAPS_ERR_MEMORY;
    if (same_error(&shard->same))
        error = same_error(&shard->same);
    if (error)
        block->ndone = 0;
    return block_met(block, error);
}

/* Runs over all inputs, and ends the program if something was wrong. */
static void run_counting_pass(struct heavy *heavy, const char *doing, bool first)
{
    static const char outcome[] = "; nothing is printed";
    struct stage stages[SHARDS_MAX + 1] = { { shards_split, &heavy->sharding, false } };
    size_t n = 1;
    for (size_t i = 0; i < heavy->sharding.count; i++)
        stages[n++] = (struct stage){ count_lines_of, &heavy->shard[i], true };
    heavy->input = input_open_pieces(heavy->settings, texts_pieces(heavy->texts), doing, false);
    if (!first)
        input_report_later(heavy->input);
    const struct block *last = input_run(heavy->input, stages, n);
    texts_check(heavy->texts, outcome);
    input_settle(heavy->input, last, outcome);
}

/* Counts anew the lines that are left, if there was no room for all. */
static void recount_frequent(struct heavy *heavy)
{
    struct input *first = heavy->input;
    for (size_t i = 0; i < heavy->sharding.count; i++) {
        struct heavy_shard *shard = &heavy->shard[i];
        if (shard->table.cut > heavy->cut)
            heavy->cut = shard->table.cut;
        shard->recounts = true;
    }
    if (!heavy->cut)
        return;
    for (size_t i = 0; i < heavy->sharding.count; i++)
        heavy_table_restart(&heavy->shard[i].table);
    run_counting_pass(heavy, "counting again", false);
    input_close(heavy->input);
    heavy->input = first;
}

/* ---- Printing ------------------------------------------------------------------------ */

/* Digits by which lines are sorted: of their places, or of their counts. */
enum { DIGIT_NBITS = 10, NDIGITS = 1 << DIGIT_NBITS };

struct digits {
    bool of_counts;
    uint64_t most; /* the largest count, which comes first, or the largest place */
    unsigned shift;
};

static size_t digit_of(const struct digits *d, const struct heavy_slot *slot)
{
    const uint64_t number = d->of_counts ? d->most - slot->count : slot->behind;
    return (size_t)(number >> d->shift) & (NDIGITS - 1);
}

/* Moves n lines to *other in the order of a digit, those that are equal as they stood, and
 * swaps the two. */
static void sort_by_digit(struct heavy_slot **found, struct heavy_slot **other, size_t n,
                          const struct digits *d)
{
    struct heavy_slot *from = *found, *to = *other;
    size_t at[NDIGITS + 1] = { 0 };
    for (size_t i = 0; i < n; i++)
        at[digit_of(d, &from[i]) + 1]++;
    for (size_t i = 0; i < NDIGITS; i++)
        at[i + 1] += at[i];
    for (size_t i = 0; i < n; i++)
        to[at[digit_of(d, &from[i])]++] = from[i];
    *found = to;
    *other = from;
}

/* Sorts lines: the most frequent first, and of those that are as frequent the one that came
 * first.  Returns false without memory. */
static bool sort_found(struct heavy *heavy)
{
    struct heavy_slot *other = malloc((heavy->nfound + 1) * sizeof *other);
    struct digits places = { 0 }, counts = { .of_counts = true };
    if (!other)
        return false;
    for (size_t i = 0; i < heavy->nfound; i++) {
        const struct heavy_slot *slot = &heavy->found[i];
        places.most = slot->behind > places.most ? slot->behind : places.most;
        counts.most = slot->count > counts.most ? slot->count : counts.most;
    }
    for (; places.shift < 64 && places.most >> places.shift; places.shift += DIGIT_NBITS)
        sort_by_digit(&heavy->found, &other, heavy->nfound, &places);
    for (; counts.shift < 64 && counts.most >> counts.shift; counts.shift += DIGIT_NBITS)
        sort_by_digit(&heavy->found, &other, heavy->nfound, &counts);
    free(other);
    return true;
}

/* Takes the lines out of the tables that are to be printed, and sorts them.  A table gives its
 * memory back before the next one is taken out. */
static void collect_frequent(struct heavy *heavy)
{
    for (size_t i = 0; i < heavy->sharding.count; i++) {
        struct heavy_table *table = &heavy->shard[i].table;
        size_t nbytes = (heavy->nfound + table->count + 1) * sizeof *heavy->found;
        struct heavy_slot *found = realloc(heavy->found, nbytes);
        if (!found)
            fail("nothing is printed: %s", why(PERHAPS_ERR_MEMORY));
        heavy->found = found;
        for (size_t k = 0; k < table->nslots; k++)
            if (table->slot[k].behind)
                found[heavy->nfound++] = table->slot[k];
        heavy_table_free(table);
    }
    if (!sort_found(heavy))
        fail("nothing is printed: %s", why(PERHAPS_ERR_MEMORY));
}

/* Prints a count and its line, as uniq -c does.  Returns false if that fails. */
static bool print_line(const struct heavy *heavy, const struct heavy_slot *slot)
{
    enum { WIDTH = 7, MOST_DIGITS = 20 };
    const struct perhaps_key line = texts_line(heavy->texts, slot->behind - 1);
    char text[MOST_DIGITS + 1], *const end = text + sizeof text, *at = end;
    uint64_t count = slot->count;
    *--at = ' ';
    do
        *--at = (char)('0' + count % 10);
    while (count /= 10);
    while (end - at <= WIDTH)
        *--at = ' ';
    fwrite_unlocked(at, 1, (size_t)(end - at), stdout);
    fwrite_unlocked(line.bytes, 1, line.nbytes, stdout);
    return putc_unlocked(heavy->settings->form.end, stdout) != EOF;
}

/* Prints as long as the files are there, and somebody reads. */
static void print_lines(const struct heavy *heavy)
{
    const size_t ahead = 16;
    for (size_t i = 0; i < heavy->nfound && !stop_signal(); i++) {
        if (i + ahead < heavy->nfound)
            __builtin_prefetch(texts_begin(heavy->texts) + heavy->found[i + ahead].behind);
        if (!print_line(heavy, &heavy->found[i]))
            leave(STATUS_ERROR);
    }
    texts_check(heavy->texts, "; the lines that are printed may be wrong");
    if (stop_signal())
        fail_interrupted("; not all lines are printed");
    if (fflush(stdout) != 0)
        leave(STATUS_ERROR);
}

static void report_counts(const struct heavy *heavy)
{
    const struct settings *s = heavy->settings;
    const uint64_t nlines = input_nkeys(heavy->input);
    const double seconds = seconds_worked(s);
    const bool complete = !heavy->cut;
    const struct text absent = complete ? text_of("these are all")
                                        : text_of("lines that came at most %s may be absent",
                                                  counted(heavy->cut, "time").s);
    texts_tell_changes(heavy->texts, s);
    json_t *facts = json_pack("{s:I, s:I, s:I, s:I, s:b, s:I}", "lines", (json_int_t)nlines,
                              "printed", (json_int_t)heavy->nfound, "skipped",
                              (json_int_t)input_nskipped(heavy->input), "absent_at_most",
                              (json_int_t)heavy->cut, "complete", complete, "copied_bytes",
                              (json_int_t)texts_ncopied(heavy->texts));
    summarize(s, facts, "%s, %s printed; %s; %s%s", counted(nlines, "line").s,
              counted(heavy->nfound, "different one").s, absent.s, duration(seconds).s,
              speed(nlines, seconds, " lines/s").s);
}

void heavy_run(const struct settings *settings)
{
    struct heavy heavy = { .settings = settings, .texts = texts_open(settings) };
    const uint64_t limit = input_memory(settings);
    heavy.sharding = sharding_new(sharding_count(settings, texts_nplaces(heavy.texts) / 8));
    for (size_t i = 0; i < heavy.sharding.count; i++)
        heavy.shard[i] = (struct heavy_shard){
            .index = i,
            .table = heavy_table_new(limit / heavy.sharding.count),
            .same = { .texts = heavy.texts, .form = &settings->form },
        };
    run_counting_pass(&heavy, "counting", true);
    recount_frequent(&heavy);
    collect_frequent(&heavy);
    print_lines(&heavy);
    report_counts(&heavy);
    for (size_t i = 0; i < heavy.sharding.count; i++)
        free(heavy.shard[i].same.room.memory);
    free(heavy.found);
    input_close(heavy.input);
    texts_close(heavy.texts);
}
