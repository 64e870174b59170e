/* target.h - the filter that a verb works on: in a file or on servers.
 *
 * A target has the filter, its place, its secret and its lock.  The verbs call the functions of
 * the first section without knowing where the filter lies, and those of the other two when they
 * must.  All functions here, except the stages of remote.c, end the program with a message if
 * they cannot do what they are asked. */
#ifndef TARGET_H
#define TARGET_H

#include <perhaps_build.h>
#include <stdatomic.h>

#include "../base/messages.h"
#include "../input/input.h"
#include "remote.h"
#include "secret.h"
#include "size.h"
#include "web.h"

/* The filter of a verb, and its place.  Invariant: at most one of 'filter' and 'remote' is set.
 * target.c has a list of all targets, and atexit() closes those that are open, so that every
 * end of the program gives back the locks. */
struct target {
    const struct settings *settings;
    perhaps_filter *filter;   /* NULL: it lies on servers, or is not opened yet */
    perhaps_builder *builder; /* makes the filter when it is saved; else NULL */
    uint64_t ngiven;          /* keys that a stage gave to the builder */
    bool told;                /* that they go to the disk */
    bool sized; /* the builder makes a filter of another kind that has no room for more keys */
    struct perhaps_options options; /* of the builder */
    atomic_int reason;     /* the errno of its temporary file, if a stage met PERHAPS_ERR_IO */
    struct remote *remote; /* its connections; NULL: it lies in a file */
    struct web *web;       /* a file on a web server: then 'filter' is NULL; else NULL */
    const char *path;      /* or the address, without a password; for messages */
    bool in_place;         /* what changes 'filter' changes the file at once */
    bool live;             /* by a journal */
    bool streams;          /* it is saved to standard output */
    bool fresh;            /* there was nothing at 'path', so saving must replace nothing */
    int lock;        /* the descriptor of the file that is locked, above 2; else no lock */
    char *lock_path; /* of a lock file, while there is none at 'path'; else NULL */
    struct hashing hashing;   /* of a new filter: its secret is written when it is saved */
    struct progress progress; /* of the builder */
    char *outcome;            /* "; F is unchanged": what an error leaves, for its message */
    struct target *next;      /* in the list of open targets */
};

/* Returns a target without a filter yet.  'path' must stay where it is. */
struct target *target_new(const struct settings *settings, const char *path);

/* Closes the filter, gives back the lock and releases the target.  At the end of the program
 * this is done for all targets that are still open. */
void target_close(struct target *target);

/* ---- In a file or on servers ------------------------------------------------------------- */

/* Makes a target for a filter on servers, and connects to none yet.  'doing' is a word for the
 * progress line of long work ("making"). */
struct target *target_on_servers(const struct settings *settings, const char *address,
                                 const char *doing);

/* Opens the filter at 'path' to be read; one on servers also to be added to.  One on a web
 * server can only be asked, and told about. */
struct target *target_open(const struct settings *settings, const char *path);

/* Opens the file at 'path' to be verified.  If it is so damaged that it cannot be opened, the
 * target has no filter. */
struct target *target_open_damaged(const struct settings *settings, const char *path);

/* Asks the filter whether the keys of a block are present, and writes the answers.  Any number
 * of threads may do so at once, in a stage.  Returns false, and notes the error in the block,
 * if it fails. */
bool target_ask(const struct target *target, struct block *block, size_t *npresent);

/* Fills in *stats as perhaps_stats_of() does, and *servers (may be NULL) with what else is
 * known of a filter on servers; all zero for a file.  'outcome' ("; all is done") ends the
 * message of an error. */
void target_stats(const struct target *target, struct perhaps_stats *stats,
                  struct perhaps_cluster_stats *servers, const char *outcome);

/* Tells the input if the keys are hashes, which may have any bytes. */
void target_expect_keys(const struct target *target, struct input *input);

/* Tells the input which keys the filter takes, if these are integers or hashes. */
void target_limit_keys(const struct target *target, struct input *input);

/* Ends the program if a stage failed that asks the target or adds to it: input_settle()
 * (input.h), but an error may be due to the servers instead of the input. */
void target_settle(const struct target *target, const struct input *input,
                   const struct block *last, const char *outcome);

/* ---- In a file --------------------------------------------------------------------------- */

/* Ends the program if --check found damage while the filter was read. */
void target_settle_damage(const struct target *target);

/* Prepares to save a filter at 'path' (NULL: it will not be saved).  Finds, as far as possible,
 * what would make saving fail, and locks the place until the program ends, so that of two
 * processes that change the filter none loses its changes.  Call target_create() or
 * target_load() next. */
struct target *target_reserve(const struct settings *settings, const char *path);

/* target_reserve() of the path of -o, where "-" is standard output. */
struct target *target_reserve_output(const struct settings *settings);

/* Ends the program if there is a file that is no filter. */
void target_check_replaced(const struct target *target);

/* Ends the program if the file shall be live and something lies where its journal would be. */
void target_check_journal(const struct target *target);

/* Ends the program because a live file stays one, and the filter cannot be live. */
_Noreturn void target_fail_live(const struct target *target);

/* Ends the program because somebody has removed, renamed or replaced the live file or its
 * journal meanwhile (PERHAPS_ERR_JOURNAL).  'outcome' ends the message. */
_Noreturn void target_fail_lost(const struct target *target, const char *outcome);

/* Makes an empty filter of this size in memory.  Makes a secret, too, if one is asked for and
 * its file does not exist. */
void target_create(struct target *target, struct size size);

/* Loads the filter at 'from', which may be another path, to be changed in memory; maps it if
 * the target is 'in_place'. */
void target_load(struct target *target, const char *from);

/* Returns whether the file at 'path' has a filter of a kind that can be changed in place, in a
 * place where this process may do that. */
bool target_takes_in_place(const char *path);

/* Maps the filter at 'path' to be changed in place.  Other processes may do the same meanwhile,
 * but none can have reserved the file. */
struct target *target_open_in_place(const struct settings *settings, const char *path);

/* Opens the live file at 'path' to be changed, alone.  'records': as 'journal_records' of the
 * library. */
struct target *target_open_live(const struct settings *settings, const char *path,
                                uint64_t records);

/* Opens the file at the place of a target, which has no filter, so; it may not be live yet. */
void target_load_live(struct target *target, uint64_t records);

/* Saves the filter at the place that was reserved, and its secret if that is new.  Before that,
 * input_settle() or target_look_last() has looked for a signal. */
void target_save(struct target *target);

/* Ends the program if a signal came: the last look before anything is published. */
void target_look_last(const struct target *target);

/* Opens the filter that was saved, to tell about it, or ends the program. */
void target_open_saved(struct target *target);

/* Ends the program if saving, which a verb has done itself, met an error (errno). */
void target_settle_save(struct target *target, int error);

#endif
