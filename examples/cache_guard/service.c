/* service.c - the verbs signup and check. */
#include "service.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "scratch.h"
#include "signup.h"

enum { CAPACITY_MIN = 100000 };

/* ---- The secret -------------------------------------------------------------------------- */

static void make_secret(const char *path)
{
    uint8_t secret[SECRET_NBYTES];
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return;
    if (fd < 0 || getrandom(secret, sizeof secret, 0) != sizeof secret ||
        write(fd, secret, sizeof secret) != sizeof secret || close(fd))
        fail("key file %s: %s", path, strerror(errno));
}

static void read_secret(const char *path, uint8_t secret[SECRET_NBYTES])
{
    uint8_t more[SECRET_NBYTES + 1];
    make_secret(path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t nbytes = fd < 0 ? -1 : read(fd, more, sizeof more);
    if (nbytes < 0)
        fail("key file %s: %s", path, strerror(errno));
    close(fd);
    if (nbytes != SECRET_NBYTES)
        fail("key file %s: wanted are %d bytes, and no more", path, SECRET_NBYTES);
    memcpy(secret, more, SECRET_NBYTES);
}

/* ---- Database and guard ------------------------------------------------------------------ */

struct both {
    struct database *database;
    struct guard *guard;
    uint8_t secret[SECRET_NBYTES];
};

static void count_user(void *context, const char *email)
{
    (void)email;
    ++*(uint64_t *)context;
}

static uint64_t capacity_for(struct database *database)
{
    uint64_t nusers = 0;
    database_each(database, count_user, &nusers);
    return nusers * 2 > CAPACITY_MIN ? nusers * 2 : CAPACITY_MIN;
}

static char *guard_of(const struct service *service)
{
    if (service->guard && strcmp(service->guard, "memory") == 0)
        fail("--guard memory: what others add would not be in it; give a file, or "
             "redis://host:port/name");
    if (service->guard)
        return text_of("%s", service->guard);
    if (strstr(service->database, "://"))
        fail("which guard? --guard FILE or --guard redis://host:port/name");
    return text_of("%s.guard", service->database);
}

/* All users are in the guard before the first question is asked: signup.c tells why. */
static struct both open_both(const struct service *service, bool create)
{
    struct both both = { 0 };
    if (!service->database)
        fail("which database? --database FILE or --database postgresql://user@host/name");
    char *where = guard_of(service);
    if (service->key_file)
        read_secret(service->key_file, both.secret);
    both.database = database_open(service->database, create);
    struct guard_options options = { .where = where,
                                     .grows = true,
                                     .fpr = service->fpr,
                                     .secret = service->key_file ? both.secret : NULL };
    if (create)
        options.capacity = service->capacity ? service->capacity : capacity_for(both.database);
    if (strcmp(where, "none") != 0)
        both.guard = guard_open(&options, create ? GUARD_OPEN_OR_MAKE : GUARD_OPEN);
    if (both.guard && create)
        guard_add_all(both.guard, both.database);
    free(where);
    return both;
}

static int check(const struct both *both)
{
    uint64_t nusers;
    uint64_t ndenied =
        both->guard ? guard_count_denied(both->guard, both->database, &nusers) : 0;
    if (both->guard)
        fprintf(stderr,
                "cache_guard: %s%" PRIu64 " users checked: the guard denies %" PRIu64 "\n",
                ndenied ? "WRONG: " : "", nusers, ndenied);
    return ndenied > 0;
}

static void close_both(const struct both *both)
{
    if (both->guard)
        guard_close(both->guard);
    database_close(both->database);
}

/* ---- Verbs ------------------------------------------------------------------------------- */

int serve_signups(const struct service *service)
{
    struct both both = open_both(service, true);
    setvbuf(stdout, NULL, _IOLBF, 0); /* who asks line by line is answered line by line */
    struct signups s = sign_up_lines(both.database, both.guard, stdin, stdout);
    fprintf(stderr,
            "cache_guard: %" PRIu64 " free, %" PRIu64
            " of them without asking the database; %" PRIu64 " taken; %" PRIu64 " refused\n",
            s.free_by[WORD_GUARD] + s.free_by[WORD_DATABASE], s.free_by[WORD_GUARD],
            s.taken_by[WORD_DATABASE] + s.taken_by[WORD_CONSTRAINT], s.refused);
    int status = check(&both);
    close_both(&both);
    return status;
}

int check_guard(const struct service *service)
{
    struct both both = open_both(service, false);
    int status = check(&both);
    close_both(&both);
    return status;
}
