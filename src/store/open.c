/* open.c - opens filter files, with their journals if they are live. */
#include <string.h>

#include "../base/bytes.h"
#include "journal.h"
#include <perhaps_live.h>

/* Opens the file as it was saved, and does what its journal records. */
static int try_to_open(const char *path, const struct perhaps_open_options *options,
                       perhaps_filter **filter)
{
    struct journal_point point;
    int error = open_as_saved(path, options, &point, filter);
    if (!error && point.branch)
        error = journal_follow(*filter, path, &point);
    if (!error && options->check && options->mode == PERHAPS_MODE_READ)
        error = check_begin(*filter);
    if (!error && options->mode == PERHAPS_MODE_READ)
        cold_be_patient(*filter);
    if (error) {
        perhaps_free(*filter);
        *filter = NULL;
    }
    return error;
}

/* A file looks damaged if another process sets or removes its flag 'in place' at this very
 * moment, or saves it and begins a new journal.  So a file that looks damaged is opened again.
 * If it looks damaged once more while its header did not change, it is damaged. */
int perhaps_open(const char *path, const struct perhaps_open_options *options,
                 perhaps_filter **filter)
{
    enum { TRIES_MOST = 100 };
    const struct perhaps_open_options read_only = { 0 };
    uint8_t before[HEADER_NBYTES], after[HEADER_NBYTES];
    *filter = NULL;
    if (options &&
        ((unsigned)options->mode > PERHAPS_MODE_JOURNAL || !is_unused(options->reserved)))
        return PERHAPS_ERR_ARGUMENT;
    if (options && options->mode == PERHAPS_MODE_JOURNAL)
        return journal_open(path, options, filter);
    int error = try_to_open(path, options ? options : &read_only, filter);
    bool moves = true;
    for (int i = 0; (error == PERHAPS_ERR_DAMAGED || error == PERHAPS_ERR_JOURNAL) && moves &&
                    i < TRIES_MOST;
         i++) {
        glance(path, before);
        error = try_to_open(path, options ? options : &read_only, filter);
        glance(path, after);
        moves = memcmp(before, after, sizeof before) != 0;
    }
    return error;
}

int perhaps_refresh(perhaps_filter **filter, const char *path,
                    const struct perhaps_open_options *options)
{
    perhaps_filter *again;
    if (!journal_is_followed(*filter))
        return PERHAPS_ERR_UNSUPPORTED;
    if (journal_is_current(*filter, path))
        return journal_catch_up(*filter);
    int error = perhaps_open(path, options, &again);
    if (error)
        return error;
    perhaps_free(*filter);
    *filter = again;
    return 0;
}
