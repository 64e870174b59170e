/* extension.h - what the files of the SQLite extension share.
 *
 * A filter is a BLOB with the bytes of a filter file, a text with the path of one, or an
 * integer that perhaps_open() gave for one of these.  All that is kept from one call to the
 * next belongs to the connection (struct connection), which one thread uses at a time: SQLite
 * sees to that. */
#ifndef EXTENSION_H
#define EXTENSION_H

#include <perhaps.h>
#include <sqlite3ext.h>

SQLITE_EXTENSION_INIT3

/* ---- values.c: what comes from SQL, and errors that go there ------------------------- */

/* End the call with an error of one line, which begins with the name of the function. */
void fail(sqlite3_context *context, const char *function, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for an error of the library.  'subject' is what it met: a path, or "the BLOB"; may
 * be NULL. */
void fail_with(sqlite3_context *context, const char *function, const char *subject, int error);

/* The bytes of a key.  They are those of the SQL value, or in 'own'. */
struct key {
    const void *bytes;
    size_t nbytes;
    char own[24];
};

/* What the keys of a filter are: PLAIN; of a filter of integers, which are decimal text, and
 * not 8 bytes; or of one whose note says that case was ignored: the letters of texts and BLOBs
 * are made small. */
enum key_form { KEYS_PLAIN, KEYS_DECIMAL, KEYS_FOLDED };

/* Returns the form of the keys of a filter. */
enum key_form key_form_of(const perhaps_filter *filter);

/* Takes the key of a value that is not NULL.  It is there until the next one is taken in this
 * connection.  Returns false after it has failed the call. */
bool take_key(sqlite3_context *context, const char *function, sqlite3_value *value,
              enum key_form form, struct key *key);

/* Returns the text of a value, in UTF-8, if that is not NULL and has no NUL in it; else NULL,
 * after it has failed the call with what is wrong with 'subject'. */
const char *take_text(sqlite3_context *context, const char *function, const char *subject,
                      sqlite3_value *value);

/* Returns the filter from the function, as a BLOB. */
void result_filter(sqlite3_context *context, const char *function,
                   const perhaps_filter *filter);

/* Fails the call if a BLOB cannot have so many bytes, and then returns false. */
bool fits_blob(sqlite3_context *context, const char *function, uint64_t nbytes);

/* ---- connection.c: filters that are kept, and secrets -------------------------------- */

/* A filter that calls share, and which keys it takes. */
struct held {
    unsigned references;
    perhaps_filter *filter;
    sqlite3_int64 handle; /* a random number that stands for it in SQL; 0: none was drawn */
    size_t takes;         /* the only length of its keys; 0: any */
    enum key_form form;
};

enum { SECRET_NBYTES = 16, SECRETS_MOST = 8 };

struct connection {
    unsigned references; /* of the registered functions */
    struct blob *blobs;  /* the last ones first */
    struct file *files;
    struct held *last;                           /* that a call was given */
    uint8_t secret[SECRETS_MOST][SECRET_NBYTES]; /* the last one first */
    size_t nsecrets;
    char *folded;            /* the last key whose letters were made small, or NULL */
    uint64_t builder_nbytes; /* how much memory a builder may use; 0: not asked yet */
};

struct connection *connection_create(void); /* NULL: no memory */
void connection_release(void *connection);

static inline struct connection *connection_of(sqlite3_context *context)
{
    return sqlite3_user_data(context);
}

void connection_add_secret(struct connection *connection, const uint8_t *secret);

/* Makes a filter of the bytes of a BLOB: a copy, all of whose bytes are checked, and which can
 * be changed.  Returns 0 or an error of perhaps_from_bytes(). */
int connection_load(const struct connection *connection, const void *bytes, size_t nbytes,
                    perhaps_filter **filter);

/* Returns the filter that the first argument of a function is, to be asked.  It is there until
 * the next call of this function.  Returns NULL after it has failed the call. */
struct held *connection_filter(sqlite3_context *context, const char *function,
                               sqlite3_value *value);

/* Allows SQL of the schema, too, to name this file, which is mapped if that was not done yet.
 * Returns false after it has failed the call. */
bool connection_allow(sqlite3_context *context, const char *function, const char *path);

/* Returns whether the call may use this file: the schema is trusted, or the program has allowed
 * it.  If not, it fails the call. */
bool may_use_file(sqlite3_context *context, const char *function, const char *path);

/* ---- The SQL functions --------------------------------------------------------------- */

typedef void sql_function(sqlite3_context *context, int nargs, sqlite3_value **args);
typedef void sql_final(sqlite3_context *context);

sql_function contains_function, count_function, add_function, remove_function; /* ask.c */
sql_function open_function, save_function, allow_function, secret_function;
sql_function version_function;
sql_function info_function;          /* info.c */
sql_function build_step, merge_step; /* build.c, merge.c */
sql_final build_final, merge_final;

/* ---- options.c: the third argument of perhaps_build() -------------------------------- */

/* How a filter is to be built. */
struct choices {
    struct perhaps_options options;
    bool secret; /* hash under the secret of the connection */
};

/* Reads options such as "capacity=1000000 seed=7".  Returns false after it has failed the
 * call. */
bool read_choices(sqlite3_context *context, const char *function, const char *text,
                  struct choices *choices);

#endif
