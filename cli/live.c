/* live.c - the verbs that are for live files: checkpoint, backup. */
#include "messages.h"
#include "numbers.h"
#include "streamed.h"
#include "target.h"
#include <perhaps_live.h>

/* Ends the program if the filter is not live. */
static void expect_live(const char *path)
{
    perhaps_filter *filter;
    const struct perhaps_open_options options = { .without_secret = true };
    if (perhaps_is_live(path))
        return;
    int error = perhaps_open(path, &options, &filter);
    perhaps_free(filter);
    if (error)
        fail("%s: %s", path, why(error));
    fail("%s: is no live file, and has no journal: make one with 'perhaps create --live'",
         path);
}

void verb_checkpoint(const struct settings *settings)
{
    struct perhaps_journal before;
    streamed_refuse_change(settings->filter);
    expect_live(settings->filter);
    struct target *target = target_open_live(settings, settings->filter, 0);
    perhaps_journal_of(target->filter, &before);
    int error = before.records ? perhaps_checkpoint(target->filter) : 0;
    if (error == PERHAPS_ERR_JOURNAL)
        target_fail_lost(target, "");
    if (error)
        fail("%s: %s; it and its journal are as they were", target->path, why(error));
    summarize(settings,
              json_pack("{s:o, s:I, s:I}", "filter", json_path(target->path), "records",
                        (json_int_t)before.records, "last", (json_int_t)before.last),
              "%s saved with %s of its journal: %s", target->path,
              counted(before.records, "record").s, duration(seconds_worked(settings)).s);
}

/* A backup of a file that is not live is as good as a copy. */
void verb_backup(const struct settings *settings)
{
    struct perhaps_stats stats;
    if (settings->ninputs != 1 || settings->inputs == NULL)
        fail("backup: from where to where? give two files, F and G");
    const char *to = settings->inputs[0];
    struct target *from = target_open(settings, settings->filter);
    struct stat a, b;
    if (stat(settings->filter, &a) == 0 && stat(to, &b) == 0 && a.st_dev == b.st_dev &&
        a.st_ino == b.st_ino)
        fail("%s: is the live file itself: give the backup another name", to);
    struct target *target = target_reserve(settings, to);
    target_check_replaced(target);
    target_look_last(target);
    int error =
        target->fresh ? perhaps_save_new(from->filter, to) : perhaps_save(from->filter, to);
    if (error == PERHAPS_ERR_DAMAGED)
        fail("%s: %s%s", from->path, why(error), target->outcome);
    target_settle_save(target, error);
    perhaps_stats_of(from->filter, &stats);
    summarize(settings,
              json_pack("{s:o, s:o, s:I}", "filter", json_path(from->path), "backup",
                        json_path(to), "keys_in_filter", (json_int_t)stats.keys),
              "%s copied to %s, with %s: %s", from->path, to,
              counted(stats.keys_different, "key").s, duration(seconds_worked(settings)).s);
}
