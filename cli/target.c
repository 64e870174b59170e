#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "numbers.h"
#include "report.h"
#include "secret.h"
#include "stop.h"

static int init(struct target *target, const char *path, const char *format)
{
    *target = (struct target){ .path = path ? path : "the filter", .lock = -1 };
    if (asprintf(&target->outcome, format, path) >= 0)
        return 0;
    target->outcome = NULL;
    return complain("%s", perhaps_strerror(PERHAPS_ERR_MEMORY));
}

void target_close(struct target *target)
{
    perhaps_free(target->filter);
    free(target->outcome);
    if (target->lock >= 0)
        close(target->lock);
}

static const char *outcome_at(const char *path)
{
    if (!path)
        return "";
    return access(path, F_OK) == 0 ? "; %s is unchanged" : "; %s was not made";
}

/* ---- Reserving a place ------------------------------------------------------------- */

/* perhaps_save() makes a new file in the folder. */
static int check_folder(const char *path, bool exists)
{
    char *real = exists ? realpath(path, NULL) : strdup(path);
    bool writable = real && access(dirname(real), W_OK | X_OK) == 0;
    int status = writable ? 0 : complain("%s: cannot be written: %s", path, strerror(errno));
    free(real);
    return status;
}

static bool same_file(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* Others that change the file in place have it for themselves for a moment, to begin and to
 * end: whoever only wants to share it waits for that. */
static bool try_lock(int fd, int how)
{
    const struct timespec moment = { .tv_nsec = 10000000 };
    const int moments = how == LOCK_SH ? 500 : 0;
    for (int i = 0; flock(fd, how | LOCK_NB) != 0; i++) {
        if (errno != EWOULDBLOCK || i == moments || stop_signal())
            return false;
        nanosleep(&moment, NULL);
        errno = EWOULDBLOCK;
    }
    return true;
}

/* perhaps_save() puts a new file at the path, so whoever waited for the lock of the old one
 * must look again.  'how' is LOCK_EX, or LOCK_SH beside others that have it so. */
static int lock(struct target *target, int how)
{
    const char *path = target->path;
    do {
        if (target->lock >= 0)
            close(target->lock);
        target->lock = open(path, O_RDONLY | O_CLOEXEC);
        if (target->lock < 0)
            return errno == ENOENT ? 0 : complain("%s: %s", path, strerror(errno));
        if (try_lock(target->lock, how))
            continue;
        if (stop_signal())
            return complain_interrupted("");
        return errno == EWOULDBLOCK
                   ? complain("%s: another process is changing it: try again later", path)
                   : complain("%s: cannot be locked: %s", path, strerror(errno));
    } while (!same_file(target->lock, path));
    return 0;
}

int target_reserve(struct target *target, const char *path)
{
    struct stat st;
    int status = init(target, path, outcome_at(path));
    if (status || !path)
        return status;
    bool exists = stat(path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode))
        return complain("%s: %s", path, strerror(EISDIR));
    if (exists && !S_ISREG(st.st_mode))
        return 0; /* a device or pipe is written to */
    status = check_folder(path, exists);
    return status ? status : lock(target, LOCK_EX);
}

/* ---- Making one -------------------------------------------------------------------- */

/* Which hash --hash and --key-file ask for. */
static int choose_hash(const struct settings *settings, enum perhaps_hash *hash)
{
    static const char *const names[] = {
        [PERHAPS_XXH3] = "xxh3", [PERHAPS_SIP] = "sip", [PERHAPS_NONE] = "none"
    };
    const char *name = settings->hash ? settings->hash
                                      : names[settings->key_file ? PERHAPS_SIP : PERHAPS_XXH3];
    size_t i = 0, n = sizeof names / sizeof *names;
    while (i < n && strcmp(names[i], name) != 0)
        i++;
    if (i == n)
        return complain("--hash %s: no such hash: there are xxh3, sip, none", name);
    *hash = (enum perhaps_hash)i;
    if (*hash == PERHAPS_SIP && !settings->key_file)
        return complain("--hash sip: needs a secret, to ask the filter later: give "
                        "--key-file K, which is made if it does not exist");
    if (*hash != PERHAPS_SIP && settings->key_file)
        return complain("--hash %s: takes no secret: leave out --key-file", name);
    if (*hash != PERHAPS_XXH3 && settings->seed)
        return complain("--hash %s: takes no seed: leave out --seed", name);
    return 0;
}

int target_create(struct target *target, const struct settings *settings, struct size size)
{
    uint8_t secret[SECRET_NBYTES];
    bool new_secret = false;
    struct perhaps_options options;
    struct perhaps_plan plan;
    enum perhaps_hash hash = PERHAPS_XXH3;
    int status = choose_hash(settings, &hash);
    if (!status)
        status = request_plan(settings, size, target->path, &options, &plan);
    if (!status && settings->key_file)
        status = secret_read(settings->key_file, secret, &new_secret);
    if (status)
        return status;
    options.hashing = (struct perhaps_hashing){
        .hash = hash,
        .seed = settings->seed,
        .secret = settings->key_file && !new_secret ? secret : NULL,
    };
    int error = perhaps_create(&options, &target->filter);
    if (error == PERHAPS_ERR_MEMORY)
        return complain("%s: %s: it takes %s", target->path, why(error),
                        scaled((double)plan.body_nbytes, "B").s);
    if (error)
        return complain("%s: %s", target->path, why(error));
    if (!new_secret)
        return 0;
    return secret_write(settings->key_file, target->filter, settings->quiet || settings->json);
}

/* ---- Opening one ------------------------------------------------------------------- */

static int complain_open(const char *path, const struct settings *settings, int error)
{
    if (error == PERHAPS_ERR_UNSUPPORTED && settings->in_place)
        return complain("%s: its kind cannot be changed in place: leave out --in-place", path);
    if (error != PERHAPS_ERR_KEY)
        return complain("%s: %s", path, why(error));
    if (settings->key_file)
        return complain("%s: %s is not the key file that it was built with", path,
                        settings->key_file);
    return complain("%s: was built with a secret: give it with --key-file", path);
}

static int open_file(struct target *target, const char *path, const struct settings *settings,
                     struct perhaps_open_options options)
{
    uint8_t secret[SECRET_NBYTES];
    if (settings->key_file) {
        int status = secret_read(settings->key_file, secret, NULL);
        if (status)
            return status;
        options.hashing.secret = secret;
    }
    target->error = perhaps_open(path, &options, &target->filter);
    return target->error ? complain_open(path, settings, target->error) : 0;
}

int target_open(struct target *target, const char *path, const struct settings *settings,
                enum secrecy secrecy)
{
    struct perhaps_open_options options = { .without_secret = secrecy == WITHOUT_SECRET };
    int status = init(target, path, outcome_at(path));
    return status ? status : open_file(target, path, settings, options);
}

int target_load(struct target *target, const char *from, const struct settings *settings,
                enum secrecy secrecy)
{
    return open_file(
        target, from, settings,
        (struct perhaps_open_options){ .writable = true,
                                       .shared = settings->in_place,
                                       .without_secret = secrecy == WITHOUT_SECRET });
}

/* The library keeps its own lock, which ours would be in the way of; between the two another
 * process may have put a new file in the place. */
int target_open_in_place(struct target *target, const char *path,
                         const struct settings *settings)
{
    struct stat st;
    int status = init(target, path, "; some of the keys are in %s");
    while (!status) {
        if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
            status = lock(target, LOCK_SH);
        if (target->lock >= 0)
            flock(target->lock, LOCK_UN);
        if (!status)
            status = target_load(target, path, settings, WITH_SECRET);
        if (status || same_file(target->lock, path))
            break;
        perhaps_free(target->filter);
        target->filter = NULL;
    }
    return status;
}

int target_save(const struct target *target)
{
    int error = perhaps_save(target->filter, target->path);
    return error ? complain("%s: %s%s", target->path, why(error), target->outcome) : 0;
}

int target_sync(const struct target *target, int status)
{
    int error = perhaps_sync(target->filter);
    if (!error || status)
        return status;
    return complain("%s: %s%s", target->path, why(error), target->outcome);
}
