/* commands.h - what the commands of both families share: opening a key, adding items, replies. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "form.h"
#include "own.h"

/* ---- Replies -------------------------------------------------------------------------------- */

#define WRONGTYPE  "WRONGTYPE Operation against a key holding the wrong kind of value"
#define NOT_FOUND  "ERR not found"
#define EXISTS     "ERR item exists"
#define INCOMPLETE "ERR the filter is not complete: load the rest of its chunks"
#define NO_MEMORY  "ERR Insufficient memory to create filter"

/* true and false of RESP3, 1 and 0 of RESP2. */
void reply_bool(RedisModuleCtx *ctx, bool value);

/* Begins a map of 'count' pairs: in RESP2 an array of names and values. */
void reply_map(RedisModuleCtx *ctx, long count);

/* Begins the reply that consists of this one field: in RESP2 an array without its name. */
void reply_one(RedisModuleCtx *ctx, const char *name);

/* Appends the fields that come behind those that RedisBloom has: MORE_FIELDS pairs. */
enum { MORE_FIELDS = 4 };
void reply_more(RedisModuleCtx *ctx, const struct info *info);

void reply_text(RedisModuleCtx *ctx, const char *text);
void reply_number(RedisModuleCtx *ctx, uint64_t number);

/* ---- A key ----------------------------------------------------------------------------------- */

enum found { KEY_MISSING, KEY_OTHER, KEY_INCOMPLETE, KEY_FOUND }; /* OTHER: of another type */

struct opened {
    RedisModuleKey *key;     /* to be closed by key_close() */
    RedisModuleString *name; /* of the key */
    struct form *form;       /* NULL unless there is a filter */
    void *filter;
    enum found found;
};

/* Opens a key in MODE_READ or MODE_WRITE and looks for a filter of this family. */
struct opened key_open(RedisModuleCtx *ctx, RedisModuleString *name, int mode,
                       enum family family);
void key_close(const struct opened *o);

/* Replies with an error for a key that is not KEY_FOUND; 'missing' is that for a missing one.
 * Returns whether it replied. */
bool key_refused(RedisModuleCtx *ctx, const struct opened *o, const char *missing);

/* Makes a filter of the library in a key that is missing, and replicates it.  Returns whether it
 * succeeded; if not it has replied with an error. */
bool key_create(RedisModuleCtx *ctx, struct opened *o, const struct wish *wish);

/* Puts a filter that was made into a key, and counts it (types.c). */
void key_set(struct opened *o, struct form *form, void *filter);

/* Tells those who listen that a command has changed a key: "bf.add". */
void key_notify(RedisModuleCtx *ctx, const struct opened *o, const char *event);

/* ---- Items ------------------------------------------------------------------------------------ */

/* Items on their way into a filter, and what became of them. */
struct adding {
    RedisModuleString **words;
    size_t n;
    bool *was_present; /* for each item: see add() of struct form */
    bool *is_change;   /* for each item: it has changed the filter */
    size_t done;       /* so many were added, or were there */
    size_t changed;    /* so many changed something */
    int error;         /* that the next one met; 0: none */
    struct perhaps_key *items;
    RedisModuleString **changing; /* the words that changed something */
    void *memory;                 /* where these lie */
    char room[1024];              /* the same for few items */
};

/* Prepares to add these words; add_end() must follow.  Returns false, having replied with an error,
 * if there is too little memory. */
bool add_begin(RedisModuleCtx *ctx, struct adding *a, RedisModuleString **words, size_t n);

/* Adds the items to an open filter.  A window is moved on to the present first, and that is
 * replicated; a command that is replayed does not: its time has been replicated before it. */
void add_run(RedisModuleCtx *ctx, struct opened *o, struct adding *a, bool unless_present);

/* Replicates what changed something as "argv[0] key [word] items", and tells listeners.  'word'
 * may be NULL: "NOCREATE" makes INSERT take only items.  'created': the filter was made by this
 * command. */
void add_replicate(RedisModuleCtx *ctx, const struct opened *o, const struct adding *a,
                   RedisModuleString **argv, const char *insert, bool created,
                   const char *event);
void add_end(struct adding *a);

/* Answers for each word whether it is perhaps there; of a missing key, or one of another type, no.
 * 'many' replies with an array. */
int ask(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, enum family family, bool many);

/* ---- What happened, for INFO ------------------------------------------------------------------ */

struct tally {
    unsigned long long filters, adds, questions, positives, refusals;
};
extern struct tally tally;

/* ---- The commands: of bloom.c, cuckoo.c, chunks.c and internal.c ------------------------------- */

command_function bf_reserve, bf_add, bf_madd, bf_insert, bf_exists, bf_mexists, bf_info, bf_card,
    bf_debug, bf_shrink, bf_merge, bf_scandump, bf_loadchunk;
command_function cf_reserve, cf_add, cf_addnx, cf_insert, cf_insertnx, cf_exists, cf_mexists,
    cf_count, cf_del, cf_compact, cf_info, cf_debug, cf_scandump, cf_loadchunk;
command_function perhaps_create_command, perhaps_advance_command;

#endif
