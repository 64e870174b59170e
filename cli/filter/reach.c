/* reach.c - how far a verb has come with a live file. */
#include "reach.h"

#include <errno.h>
#include <limits.h>
#include <perhaps_file.h>
#include <perhaps_live.h>
#include <stdio.h>

#include "../base/numbers.h"

void reach_begin(struct reach *reach, struct target *target)
{
    struct perhaps_journal journal;
    perhaps_journal_of(target->filter, &journal);
    *reach = (struct reach){ .target = target, .now = { .record = journal.last, .line = 1 } };
    reach->synced = reach->now;
}

/* Syncing may also have to save the file anew, and that may fail when all is on the disk. */
static void sync_all(struct reach *reach)
{
    const perhaps_filter *filter = reach->target->filter;
    struct perhaps_journal journal;
    reach->error = perhaps_sync(reach->target->filter);
    reach->reason = errno;
    perhaps_journal_of(filter, &journal);
    if (journal.synced == journal.last)
        reach->synced = reach->now;
}

bool reach_enter(struct reach *reach, const struct block *block)
{
    struct perhaps_journal journal;
    perhaps_journal_of(reach->target->filter, &journal);
    if (journal.room <= block->count)
        sync_all(reach);
    return !reach->error;
}

void position_pass(struct position *position, uint64_t *nlines, const struct block *block)
{
    const uint64_t before = block->source == position->source ? *nlines : 0;
    position->nkeys += block->ndone;
    position->source = block->source;
    position->line = before + 1 + block_lines(block, block->ndone);
    *nlines = before + block->count + block->nskipped;
}

void reach_leave(struct reach *reach, const struct block *block, uint64_t nchanged)
{
    struct perhaps_journal journal;
    perhaps_journal_of(reach->target->filter, &journal);
    position_pass(&reach->now, &reach->nlines, block);
    reach->now.nchanged = nchanged;
    reach->now.record = journal.last;
}

void reach_settle(struct reach *reach)
{
    if (!reach->error)
        sync_all(reach);
}

/* Finds the last record of the file as the next one to open it finds it.  Returns false if that
 * is not certain: who opens it to write syncs what he finds, and who cannot do that knows only
 * that nobody can lose what was synced before. */
static bool find_record(struct reach *reach, uint64_t *record)
{
    static const enum perhaps_mode modes[] = { PERHAPS_MODE_JOURNAL, PERHAPS_MODE_READ };
    struct target *target = reach->target;
    struct perhaps_journal journal = { 0 };
    perhaps_free(target->filter);
    for (size_t i = 0; i < 2; i++) {
        const struct perhaps_open_options options = { .mode = modes[i],
                                                      .without_secret = true };
        if (perhaps_open(target->path, &options, &target->filter))
            continue;
        perhaps_journal_of(target->filter, &journal);
        perhaps_free(target->filter);
        target->filter = NULL;
        *record = journal.last;
        return modes[i] == PERHAPS_MODE_JOURNAL || journal.last == reach->synced.record;
    }
    return false;
}

/* What is to be said of a position: "the first 5 keys are in F". */
static void say(const struct reach *reach, const struct position *position, bool removes,
                char *text, size_t nbytes)
{
    const char *path = reach->target->path;
    if (!position->nkeys)
        snprintf(text, nbytes, "none of the keys was %s %s",
                 removes ? "removed from" : "added to", path);
    else if (removes)
        snprintf(text, nbytes, "%s of the first %s were removed from %s",
                 grouped(position->nchanged).s, counted(position->nkeys, "key").s, path);
    else
        snprintf(text, nbytes, "the first %s %s in %s", counted(position->nkeys, "key").s,
                 position->nkeys == 1 ? "is" : "are", path);
}

void reach_tell(struct reach *reach, const struct settings *settings, bool removes, bool again,
                char *text, size_t nbytes)
{
    const struct position *synced = &reach->synced, *now = &reach->now, *position = now;
    uint64_t record = synced->record;
    bool certain = true;
    char done[PATH_MAX + 200];
    if (now->record != synced->record) {
        certain = find_record(reach, &record);
        certain &= record == synced->record || record == now->record;
        position = certain && record == now->record ? now : synced;
    }
    say(reach, position, removes, done, sizeof done);
    const char *name = input_name(settings->inputs[position->source]);
    if (again)
        snprintf(text, nbytes, "; %s%s: adding all again is safe", done,
                 certain ? "" : ", and perhaps more");
    else if (certain)
        snprintf(text, nbytes, "; %s: go on at %s:%ju", done, name, (uintmax_t)position->line);
    else
        snprintf(
            text, nbytes,
            "; %s: go on at %s:%ju, but if 'perhaps info %s' tells that the last record is "
            "number %s, at %s:%ju",
            done, name, (uintmax_t)position->line, reach->target->path, grouped(now->record).s,
            input_name(settings->inputs[now->source]), (uintmax_t)now->line);
}
