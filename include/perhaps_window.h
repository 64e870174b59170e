/* perhaps_window.h - windows: filters that forget their oldest keys. */
#ifndef PERHAPS_WINDOW_H
#define PERHAPS_WINDOW_H

#include <perhaps.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Tells a window the time, in any unit and from any beginning: the window forgets what is older
 * than its 'time'.  The first call sets when its first generation began; a time before the
 * beginning of the newest generation changes nothing.  Returns 0; PERHAPS_ERR_UNSUPPORTED for
 * other kinds and for windows that do not go by time; or PERHAPS_ERR_READ_ONLY.
 *
 * It trusts the time.  After one that is ten years ahead, a window has forgotten all, and then
 * forgets nothing for ten years.  So take the next function for times that nobody vouches for:
 * those of records, of clients, of other computers. */
PERHAPS_API int perhaps_advance(perhaps_filter *filter, uint64_t now);

/* Does that unless 'now' is further ahead of 'clock' than the window is long (.window.time of
 * perhaps_stats_of()): then it changes nothing and returns PERHAPS_ERR_AHEAD.  'clock' is what
 * the caller's own clock shows, in the unit of 'now': the library asks none.  Times before it,
 * however old, are taken.
 *
 * Ask it where a time comes from outside, and replicate or replay what it took by
 * perhaps_advance(), which does the same everywhere and at any time.  Journals do so. */
PERHAPS_API int perhaps_advance_unless_ahead(perhaps_filter *filter, uint64_t now,
                                             uint64_t clock);

/* Brings back the time of a window that is ahead, after a clock or a record was wrong: its
 * newest generation then began at 'now'.  It changes nothing if that began earlier, or if the
 * window does not know the time yet.  No key is lost: those of the newest generation, to which
 * all were added while the time was ahead, are remembered for the whole window from now on.  A
 * key that was forgotten is not brought back.  Returns 0; PERHAPS_ERR_UNSUPPORTED as
 * perhaps_advance(); or PERHAPS_ERR_READ_ONLY.
 *
 * .window.newest of perhaps_stats_of() tells whether a window is ahead.  Ask a person before
 * you bring it back: if the clock is the one that is wrong, the window forgets all as soon as
 * that is set right. */
PERHAPS_API int perhaps_set_back(perhaps_filter *filter, uint64_t now);

/* Answers as perhaps_contains_many() would after perhaps_advance(filter, now), and changes
 * nothing: generations that would be forgotten are not asked.  For other kinds, and for windows
 * that do not go by time, it is perhaps_contains_many(). */
PERHAPS_API size_t perhaps_contains_many_at(const perhaps_filter *filter,
                                            const struct perhaps_keys *keys, uint64_t now,
                                            bool *present);

/* Begins a new generation of a window and forgets the oldest, whatever the window goes by.
 * Returns 0, PERHAPS_ERR_UNSUPPORTED for other kinds, or PERHAPS_ERR_READ_ONLY. */
PERHAPS_API int perhaps_rotate(perhaps_filter *filter);

#ifdef __cplusplus
}
#endif
#endif
