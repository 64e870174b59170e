/* target.h - the filter that a verb works on: where it is, its secret, its lock.  It is where
 * it is: in a file, or on servers. */
#ifndef TARGET_H
#define TARGET_H

#include <perhaps_cluster.h>

#include "input.h"
#include "request.h"

/* A build without the client (PERHAPS_CLUSTER=OFF): remote_new() refuses every address, so that
 * none of these is called. */
#ifdef WITHOUT_CLUSTER
#pragma weak perhaps_cluster_add_many
#pragma weak perhaps_cluster_contains_many
#pragma weak perhaps_cluster_create
#pragma weak perhaps_cluster_delete
#pragma weak perhaps_cluster_download
#pragma weak perhaps_cluster_free
#pragma weak perhaps_cluster_name
#pragma weak perhaps_cluster_new
#pragma weak perhaps_cluster_open
#pragma weak perhaps_cluster_problem
#pragma weak perhaps_cluster_stats_of
#pragma weak perhaps_cluster_upload
#pragma weak perhaps_cluster_verify
enum { WITH_CLUSTER = 0 };
#else
enum { WITH_CLUSTER = 1 };
#endif

struct remote;

struct target {
    const struct settings *settings;
    perhaps_filter *filter; /* NULL: it lies on servers */
    struct remote *remote;  /* NULL: it does not */
    const char *path;       /* or address, without a password, for messages */
    bool in_place;          /* what changes 'filter' changes the file */
    bool streams;           /* is saved to standard output */
    bool fresh;             /* nothing was at 'path': saving replaces nothing */
    int lock;               /* descriptor whose file is locked, always above 2; else none */
    char *lock_path;        /* of a file of its own, as long as there is none at 'path' */
    struct hashing hashing; /* of one that is made: its secret is written when it is saved */
    char *outcome;          /* "; F is unchanged": what an error leaves, to end its message */
    struct target *next;
};

/* All below end the program, having complained, where they cannot do it. */

/* One with nothing in it yet. */
struct target *target_new(const struct settings *settings, const char *path);

/* Releases its lock, too.  When the program ends this is done to all targets. */
void target_close(struct target *target);

/* Whether the verb must know the secret of a filter that has one. */
bool needs_secret(const struct settings *settings);

/* ---- In a file or on servers ------------------------------------------------------------- */

/* Opens the filter at 'path' read-only; one on servers, to be added to as well. */
struct target *target_open(const struct settings *settings, const char *path);

/* Whether the keys of a block are there: a stage's work, by any number of threads.  Writes the
 * answers.  Returns whether all went well. */
bool target_ask(const struct target *target, struct block *block, size_t *npresent);

/* As perhaps_stats_of(); and what else is known of one on servers, unless that is NULL.
 * 'outcome' ("; all is done") ends the message of an error. */
void target_stats(const struct target *target, struct perhaps_stats *stats,
                  struct perhaps_cluster_stats *servers, const char *outcome);

/* input_settle(), for blocks that have gone through stages that ask or add to it. */
void target_settle(const struct target *target, const struct input *input,
                   const struct block *last, const char *outcome);

/* ---- In a file --------------------------------------------------------------------------- */

/* Ends the program if --check has found damage. */
void target_settle_damage(const struct target *target);

/* Prepares to save at 'path' (NULL: nowhere): refuses what would fail in the end, as far as it
 * can be told, and keeps other processes from changing the filter there until the program
 * ends, so that none of two changes is lost.  Then create or load. */
struct target *target_reserve(const struct settings *settings, const char *path);

/* The same for -o; "-" is standard output. */
struct target *target_reserve_output(const struct settings *settings);

/* Refuses to replace a file that is no filter, unless --force is given. */
void target_check_replaced(const struct target *target);

/* Makes an empty filter, and a secret if one is wanted and there is none. */
void target_create(struct target *target, struct size size);

/* Loads the filter at 'from', to be changed. */
void target_load(struct target *target, const char *from);

/* Whether there is a filter at 'path' of a kind that can be changed where it is, by us. */
bool target_takes_in_place(const char *path);

/* Maps the filter at 'path' to be changed where it is, by others too that do so, but by none
 * that reserves it. */
struct target *target_open_in_place(const struct settings *settings, const char *path);

/* Saves it where it was reserved, and its secret if that is new. */
void target_save(const struct target *target);

/* ---- On servers: redis://host:port/name (remote.c) --------------------------------------- */

/* Whether it is the address of such a filter. */
bool is_remote(const char *path);

/* Makes ready, and reaches for no server yet.  'doing' ("making") stands in the progress line
 * of long work. */
struct target *remote_new(const struct settings *settings, const char *address,
                          const char *doing);

/* Opens one that is ready. */
void remote_open(const struct target *target);

/* NULL is allowed. */
void remote_close(struct remote *remote);

/* For what one thread does alone. */
perhaps_cluster *remote_handle(const struct target *target);

/* Ends the program if a call with this handle returned an error (0: none); the outcome
 * ("; F was not made") ends the message. */
void remote_settle(const struct target *target, int error, const char *outcome);

/* Stages' work, by any number of threads, each of which that works has a handle of its own:
 * asks an open filter about the keys of a block, or adds them.  Writes the answers, of which
 * those that are not known are false.  Returns whether all went well. */
bool remote_ask(struct remote *remote, struct block *block, size_t *npresent);
bool remote_add(struct remote *remote, struct block *block);

/* Whether the error of the block is that of a key, the one behind those that are done. */
bool remote_blames_key(const struct block *block);

#endif
