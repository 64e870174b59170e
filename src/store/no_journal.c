/* no_journal.c - what stands for journals where there are none (PERHAPS_WITHOUT_JOURNALS): a
 * live file is neither read, since its journal would be missed, nor written. */
#ifdef PERHAPS_WITHOUT_JOURNALS

#include "record.h"

int journal_open(const char *path, const struct perhaps_open_options *options,
                 perhaps_filter **filter)
{
    (void)path, (void)options, (void)filter;
    return PERHAPS_ERR_UNSUPPORTED;
}

int journal_follow(perhaps_filter *f, const char *path, const struct journal_point *point)
{
    (void)f, (void)path, (void)point;
    return PERHAPS_ERR_UNSUPPORTED;
}

bool journal_is_followed(const perhaps_filter *f)
{
    (void)f;
    return false;
}

bool journal_is_current(const perhaps_filter *f, const char *path)
{
    (void)f, (void)path;
    return false;
}

int journal_catch_up(perhaps_filter *f)
{
    (void)f;
    return PERHAPS_ERR_UNSUPPORTED;
}

int checkpoint_other(struct journal *j, const struct content *content)
{
    (void)j, (void)content;
    return PERHAPS_ERR_UNSUPPORTED;
}

bool perhaps_may_become_live(const char *path)
{
    (void)path;
    return false;
}

int perhaps_sync(perhaps_filter *f)
{
    return in_place_sync(f);
}

int perhaps_checkpoint(perhaps_filter *f)
{
    (void)f;
    return PERHAPS_ERR_UNSUPPORTED;
}

int perhaps_journal_of(const perhaps_filter *f, struct perhaps_journal *journal)
{
    (void)f;
    *journal = (struct perhaps_journal){ 0 };
    return PERHAPS_ERR_UNSUPPORTED;
}

#else
typedef int journals_are_there;
#endif
