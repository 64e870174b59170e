/* connection.c - what a connection keeps: filters that were asked, and secrets.
 *
 * A constant argument is looked up once a statement: SQLite keeps the filter for us (auxiliary
 * data).  It does not do so for others, such as a subquery.  So the connection keeps the
 * filters of the last BLOBs, too, and each call must find out whether it has been given one of
 * these.  An address does not tell: SQLite may have put other bytes there.  It compares the
 * beginning of the header, with the header's checksum, and the last 8 bytes, which are the
 * checksum of the table of the checksums of all pages.  Different filters have the same ones
 * with a probability of 2^-64, which every checksum of a file has.  (Somebody who knows the
 * bytes of a filter can craft others that pass for them.)
 *
 * SQLite itself copies the result of a subquery for each row, all 20 MB of it.  So there are
 * handles, integers that stand for a filter of the connection:
 *
 *     perhaps_contains((SELECT perhaps_open(filter) FROM filters WHERE name = 'seen'), url)
 *
 * A handle is a random number: whatever SQL does with it, one that is not known is an error.
 * Nobody tells us when a statement ends, so a filter stays as long as it is among the last ones
 * that were used. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "extension.h"
#include <perhaps_file.h>
#include <perhaps_plan.h>

/* How many filters of BLOBs are kept, and how many files, beside those that the program has
 * allowed. */
enum { FILTERS_MOST = 16 };

/* ---- Filters that are shared --------------------------------------------------------- */

static void release_held(void *memory)
{
    struct held *held = memory;
    if (!held || --held->references)
        return;
    perhaps_free(held->filter);
    sqlite3_free(held);
}

/* Takes over the filter, which is there at least until this is called again.  Returns NULL, and
 * frees it, if there is no memory. */
static struct held *hold(struct connection *c, perhaps_filter *filter)
{
    struct held *held = sqlite3_malloc64(sizeof *held);
    if (!held) {
        perhaps_free(filter);
        return NULL;
    }
    *held = (struct held){ .references = 1,
                           .filter = filter,
                           .takes = perhaps_hash_takes(perhaps_hash_of(filter)),
                           .form = key_form_of(filter) };
    release_held(c->last);
    c->last = held;
    return held;
}

/* Lets SQLite keep the filter as long as the statement runs, if the argument is a constant. */
static void keep_for_statement(sqlite3_context *context, struct held *held)
{
    held->references++;
    sqlite3_set_auxdata(context, 0, held, release_held);
}

/* ---- Secrets ------------------------------------------------------------------------- */

void connection_add_secret(struct connection *c, const uint8_t *secret)
{
    memmove(c->secret[1], c->secret[0], sizeof c->secret - SECRET_NBYTES);
    memcpy(c->secret[0], secret, SECRET_NBYTES);
    if (c->nsecrets < SECRETS_MOST)
        c->nsecrets++;
}

int connection_load(const struct connection *c, const void *bytes, size_t nbytes,
                    perhaps_filter **filter)
{
    struct perhaps_open_options options = { .mode = PERHAPS_MODE_LOAD };
    int error = perhaps_from_bytes(bytes, nbytes, &options, filter);
    for (size_t i = 0; error == PERHAPS_ERR_SECRET && i < c->nsecrets; i++) {
        options.hashing.secret = c->secret[i];
        error = perhaps_from_bytes(bytes, nbytes, &options, filter);
    }
    return error;
}

static int map_file(const struct connection *c, const char *path, perhaps_filter **filter)
{
    struct perhaps_open_options options = { .mode = PERHAPS_MODE_READ };
    int error = perhaps_open(path, &options, filter);
    for (size_t i = 0; error == PERHAPS_ERR_SECRET && i < c->nsecrets; i++) {
        options.hashing.secret = c->secret[i];
        error = perhaps_open(path, &options, filter);
    }
    return error;
}

/* ---- BLOBs --------------------------------------------------------------------------- */

/* In the bytes of a filter: doc/FORMAT.md.  Those of a small one have their checksum in the
 * begin; others have that of the header there, and that of all else in the end. */
enum { AT_FEATURES = 16, FEATURE_IN_PLACE = 1, BEGIN_NBYTES = 120, END_NBYTES = 8 };

/* Beyond how many bytes only the last filter of a BLOB is kept. */
enum { BLOBS_MOST_NBYTES = 512 << 20 };

struct blob {
    struct blob *next;
    struct held *held;
    bool telling; /* begin and end tell which bytes these are */
    size_t nbytes;
    uint8_t begin[BEGIN_NBYTES], end[END_NBYTES];
};

static void release_blob(struct blob *blob)
{
    release_held(blob->held);
    sqlite3_free(blob);
}

/* Returns whether the checksums of a filter tell what is in it.  In a file that somebody was
 * writing in place they do not. */
static bool has_checksums(const uint8_t *bytes, size_t nbytes)
{
    return nbytes >= BEGIN_NBYTES + END_NBYTES && !(bytes[AT_FEATURES] & FEATURE_IN_PLACE);
}

static bool is_blob(const struct blob *blob, const uint8_t *bytes, size_t nbytes)
{
    return blob->telling && blob->nbytes == nbytes &&
           !memcmp(blob->begin, bytes, BEGIN_NBYTES) &&
           !memcmp(blob->end, bytes + nbytes - END_NBYTES, END_NBYTES);
}

/* Makes the entry at *at the first one. */
static struct blob *to_front(struct connection *c, struct blob **at)
{
    struct blob *blob = *at;
    *at = blob->next;
    blob->next = c->blobs;
    c->blobs = blob;
    return blob;
}

/* Returns the entry of these bytes, which becomes the first one; or NULL. */
static struct blob *find_blob(struct connection *c, const uint8_t *bytes, size_t nbytes)
{
    for (struct blob **at = &c->blobs; *at; at = &(*at)->next)
        if (is_blob(*at, bytes, nbytes))
            return to_front(c, at);
    return NULL;
}

/* Drops entries that are too many. */
static void drop_blobs(struct connection *c)
{
    size_t n = 0, nbytes = 0;
    for (struct blob **at = &c->blobs; *at;) {
        struct blob *blob = *at;
        nbytes += blob->nbytes;
        n++;
        if (n > 1 && (n > FILTERS_MOST || nbytes > BLOBS_MOST_NBYTES)) {
            *at = blob->next;
            release_blob(blob);
        } else {
            at = &blob->next;
        }
    }
}

/* Puts a filter before the others.  Returns whether there was memory. */
static bool keep_blob(struct connection *c, const uint8_t *bytes, size_t nbytes,
                      struct held *held)
{
    struct blob *blob = sqlite3_malloc64(sizeof *blob);
    if (!blob)
        return false;
    *blob = (struct blob){ .next = c->blobs, .held = held, .nbytes = nbytes };
    blob->telling = has_checksums(bytes, nbytes);
    memcpy(blob->begin, bytes, BEGIN_NBYTES);
    memcpy(blob->end, bytes + nbytes - END_NBYTES, END_NBYTES);
    held->references++;
    c->blobs = blob;
    drop_blobs(c);
    return true;
}

/* Returns the filter of these bytes; or NULL after it has failed the call. */
static struct held *filter_of_blob(sqlite3_context *context, const char *function,
                                   sqlite3_value *value)
{
    struct connection *c = connection_of(context);
    const uint8_t *bytes = sqlite3_value_blob(value);
    const size_t nbytes = (size_t)sqlite3_value_bytes(value);
    perhaps_filter *filter;
    const struct blob *known =
        has_checksums(bytes, nbytes) ? find_blob(c, bytes, nbytes) : NULL;
    if (known)
        return known->held;
    int error = connection_load(c, bytes, nbytes, &filter);
    struct held *held = error ? NULL : hold(c, filter);
    if (held && keep_blob(c, bytes, nbytes, held)) {
        keep_for_statement(context, held);
        return held;
    }
    fail_with(context, function, "the BLOB", error ? error : PERHAPS_ERR_MEMORY);
    return NULL;
}

/* ---- Files --------------------------------------------------------------------------- */

/* What is at a path.  While a file is mapped, no other one has its number. */
struct identity {
    dev_t device;
    ino_t number;
    off_t nbytes;
    struct timespec changed;
};

struct file {
    struct file *next;
    struct held *held;
    struct identity identity;
    bool allowed; /* by the program */
    char path[];
};

static void release_file(struct file *file)
{
    release_held(file->held);
    sqlite3_free(file);
}

/* Returns 0, or PERHAPS_ERR_IO (errno). */
static int identify(const char *path, struct identity *identity)
{
    struct stat st;
    if (stat(path, &st))
        return PERHAPS_ERR_IO;
    *identity = (struct identity){ st.st_dev, st.st_ino, st.st_size, st.st_mtim };
    return 0;
}

static bool is_identical(const struct identity *a, const struct identity *b)
{
    return a->device == b->device && a->number == b->number && a->nbytes == b->nbytes &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

/* Returns the entry of this path, which becomes the first one; or NULL. */
static struct file *find_file(struct connection *c, const char *path)
{
    for (struct file **at = &c->files; *at; at = &(*at)->next) {
        struct file *file = *at;
        if (strcmp(file->path, path) != 0)
            continue;
        *at = file->next;
        file->next = c->files;
        c->files = file;
        return file;
    }
    return NULL;
}

/* Drops entries that are too many, but not the first one. */
static void drop_files(struct connection *c)
{
    size_t n = 0;
    for (struct file **at = &c->files; *at;) {
        struct file *file = *at;
        n += !file->allowed;
        if (n > FILTERS_MOST && !file->allowed) {
            *at = file->next;
            release_file(file);
        } else {
            at = &file->next;
        }
    }
}

/* Returns a new first entry, without a file; or NULL. */
static struct file *new_file(struct connection *c, const char *path)
{
    size_t nbytes = strlen(path) + 1;
    struct file *file = sqlite3_malloc64(sizeof *file + nbytes);
    if (!file)
        return NULL;
    *file = (struct file){ .next = c->files };
    memcpy(file->path, path, nbytes);
    c->files = file;
    drop_files(c);
    return file;
}

/* Maps the file of an entry, if that was not done yet or another one has its path by now.
 * Returns 0; or an error, and then the entry has none. */
static int look_after(struct connection *c, struct file *file)
{
    struct identity now;
    perhaps_filter *filter;
    int error = identify(file->path, &now);
    if (!error && file->held && is_identical(&now, &file->identity))
        return 0;
    release_held(file->held);
    file->held = NULL;
    if (!error)
        error = map_file(c, file->path, &filter);
    if (error)
        return error;
    file->held = hold(c, filter);
    if (!file->held)
        return PERHAPS_ERR_MEMORY;
    file->held->references++;
    file->identity = now;
    return 0;
}

/* Returns the entry of a path with its file mapped; or NULL after it has failed the call. */
static struct file *file_of_path(sqlite3_context *context, const char *function,
                                 const char *path)
{
    struct connection *c = connection_of(context);
    struct file *file = find_file(c, path);
    if (!file)
        file = new_file(c, path);
    int error = file ? look_after(c, file) : PERHAPS_ERR_MEMORY;
    if (!error)
        return file;
    fail_with(context, function, path, error);
    return NULL;
}

bool connection_allow(sqlite3_context *context, const char *function, const char *path)
{
    struct file *file = file_of_path(context, function, path);
    if (file)
        file->allowed = true;
    return file;
}

/* A schema that is not trusted may have come with a file from a stranger.  No function can tell
 * whether its call stands in the schema. */
bool may_use_file(sqlite3_context *context, const char *function, const char *path)
{
    const struct file *file = find_file(connection_of(context), path);
    int trusted = 0;
    sqlite3_db_config(sqlite3_context_db_handle(context), SQLITE_DBCONFIG_TRUSTED_SCHEMA, -1,
                      &trusted);
    if (trusted || (file && file->allowed))
        return true;
    fail(
        context, function,
        "%s: under trusted_schema=OFF a file must be allowed first: SELECT perhaps_allow(path)",
        path);
    return false;
}

static struct held *filter_of_file(sqlite3_context *context, const char *function,
                                   sqlite3_value *value)
{
    const char *path = take_text(context, function, "the path of a filter", value);
    if (!path || !may_use_file(context, function, path))
        return NULL;
    struct file *file = file_of_path(context, function, path);
    if (!file)
        return NULL;
    keep_for_statement(context, file->held);
    return file->held;
}

/* ---- Handles ------------------------------------------------------------------------- */

/* The first entry is nearly always the right one. */
static struct held *filter_of_handle(sqlite3_context *context, const char *function,
                                     sqlite3_int64 handle)
{
    const struct connection *c = connection_of(context);
    for (const struct blob *blob = c->blobs; handle && blob; blob = blob->next)
        if (blob->held->handle == handle)
            return blob->held;
    for (const struct file *file = c->files; handle && file; file = file->next)
        if (file->held && file->held->handle == handle)
            return file->held;
    fail(context, function,
         "no filter has this handle: perhaps_open() gives one, for a statement that uses at "
         "most %d filters",
         FILTERS_MOST);
    return NULL;
}

/* ---- All of it ----------------------------------------------------------------------- */

struct held *connection_filter(sqlite3_context *context, const char *function,
                               sqlite3_value *value)
{
    struct held *held;
    int type = sqlite3_value_type(value);
    if (type == SQLITE_INTEGER)
        return filter_of_handle(context, function, sqlite3_value_int64(value));
    held = sqlite3_get_auxdata(context, 0);
    if (held)
        return held;
    switch (type) {
    case SQLITE_BLOB:
        return filter_of_blob(context, function, value);
    case SQLITE_TEXT:
        return filter_of_file(context, function, value);
    case SQLITE_NULL:
        fail(context, function, "the filter is NULL: is there no such row?");
        return NULL;
    default:
        fail(context, function, "a filter is a BLOB, or as text the path of a file");
        return NULL;
    }
}

struct connection *connection_create(void)
{
    struct connection *c = sqlite3_malloc64(sizeof *c);
    if (c)
        *c = (struct connection){ .references = 1 };
    return c;
}

void connection_release(void *connection)
{
    struct connection *c = connection;
    if (--c->references)
        return;
    while (c->blobs) {
        struct blob *blob = c->blobs;
        c->blobs = blob->next;
        release_blob(blob);
    }
    while (c->files) {
        struct file *file = c->files;
        c->files = file->next;
        release_file(file);
    }
    release_held(c->last);
    explicit_bzero(c->secret, sizeof c->secret);
    sqlite3_free(c->folded);
    sqlite3_free(c);
}
