/* disk_model.c - what a disk may hold after a crash: see disk_model.h.
 *
 * A node is a file, whatever names it has: it keeps its number although it is removed, since
 * the model holds it open.  Calls are made under one lock, so that the order of the trace is
 * that in which they were done; a sync alone begins and ends as two steps, and covers what was
 * done before it began. */
#include "disk_model.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    NODES_MOST = 64,
    NAME_NBYTES = sizeof((struct image_file *)0)->name,
    PIN_FLAGS = O_PATH
};

enum what { WRITE, RESIZE, SYNC, SYNC_FAILED, LINK, UNLINK, RENAME, SYNC_FOLDER, PROMISE };

struct step {
    enum what what;
    size_t node;     /* WRITE, RESIZE, SYNC*, LINK */
    uint64_t at;     /* WRITE; RESIZE: the new size */
    uint8_t *bytes;  /* WRITE */
    uint64_t nbytes; /* WRITE */
    size_t begun;    /* SYNC*: how many steps were there when it began */
    char name[NAME_NBYTES], to[NAME_NBYTES];
    struct promise promise;
};

struct node {
    dev_t device;
    ino_t number;
    int pin;                 /* keeps the number in use */
    char first[NAME_NBYTES]; /* its name at the begin; "": none */
    uint8_t *bytes;          /* what it held then */
    size_t nbytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static bool watching, slow, failing;
static char folder[PATH_MAX];
static struct stat folder_stat;
static struct step *steps;
static size_t nsteps, steps_room;
static struct node nodes[NODES_MOST];
static size_t nnodes;

/* ---- The trace --------------------------------------------------------------------------- */

static struct step *append(enum what what)
{
    if (nsteps == steps_room) {
        steps_room = steps_room ? 2 * steps_room : 256;
        steps = realloc(steps, steps_room * sizeof *steps);
        if (!steps)
            abort();
    }
    steps[nsteps] = (struct step){ .what = what };
    return &steps[nsteps++];
}

static void forget_all(void)
{
    for (size_t i = 0; i < nsteps; i++)
        free(steps[i].bytes);
    for (size_t i = 0; i < nnodes; i++) {
        free(nodes[i].bytes);
        close(nodes[i].pin);
    }
    nsteps = nnodes = 0;
}

/* Returns the node of an open file; NODES_MOST: it is not watched. */
static size_t node_of_stat(const struct stat *st)
{
    for (size_t i = 0; i < nnodes; i++)
        if (nodes[i].number == st->st_ino && nodes[i].device == st->st_dev)
            return i;
    return NODES_MOST;
}

static size_t node_of(int fd)
{
    struct stat st;
    return !watching || fstat(fd, &st) ? NODES_MOST : node_of_stat(&st);
}

int __real_open(const char *path, int flags, ...);

static size_t add_node(const struct stat *st, const char *path)
{
    if (nnodes == NODES_MOST)
        abort();
    nodes[nnodes] = (struct node){ .device = st->st_dev,
                                   .number = st->st_ino,
                                   .pin = __real_open(path, PIN_FLAGS | O_CLOEXEC) };
    return nnodes++;
}

void disk_watch(const char *path)
{
    char below[PATH_MAX + NAME_MAX + 2];
    struct stat st;
    forget_all();
    expect(realpath(path, folder) && !stat(folder, &folder_stat));
    DIR *dir = opendir(folder);
    expect(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        snprintf(below, sizeof below, "%s/%s", folder, entry->d_name);
        if (*entry->d_name == '.' && strlen(entry->d_name) <= 2)
            continue;
        expect(!stat(below, &st) && strlen(entry->d_name) < NAME_NBYTES);
        struct node *node = &nodes[add_node(&st, below)];
        struct bytes bytes = read_file(below);
        memcpy(node->first, entry->d_name, strlen(entry->d_name));
        node->bytes = bytes.at;
        node->nbytes = bytes.nbytes;
    }
    closedir(dir);
    watching = true;
}

void disk_rest(void)
{
    pthread_mutex_lock(&lock);
    watching = slow = failing = false;
    pthread_mutex_unlock(&lock);
}

void disk_be_slow(bool is_slow)
{
    slow = is_slow;
}

void disk_fail_sync(void)
{
    failing = true;
}

void disk_promise(struct promise promise)
{
    pthread_mutex_lock(&lock);
    append(PROMISE)->promise = promise;
    pthread_mutex_unlock(&lock);
}

struct promise disk_promised(size_t step, unsigned thread)
{
    while (step &&
           (steps[step - 1].what != PROMISE || steps[step - 1].promise.thread != thread))
        step--;
    return step ? steps[step - 1].promise : (struct promise){ 0 };
}

size_t disk_steps(void)
{
    return nsteps;
}

/* ---- The calls --------------------------------------------------------------------------- */

ssize_t __real_write(int fd, const void *bytes, size_t nbytes);
ssize_t __real_pwrite(int fd, const void *bytes, size_t nbytes, off_t at);
int __real_ftruncate(int fd, off_t nbytes);
int __real_rename(const char *from, const char *to);
int __real_unlink(const char *path);
int __real_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags);

int __wrap_open(const char *path, int flags, ...);
int __wrap___open_2(const char *path, int flags);
ssize_t __wrap_write(int fd, const void *bytes, size_t nbytes);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t nbytes, off_t at);
int __wrap_ftruncate(int fd, off_t nbytes);
int __wrap_fsync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_rename(const char *from, const char *to);
int __wrap_unlink(const char *path);
int __wrap_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags);

/* Returns the name of a path in the folder; NULL: it is elsewhere. */
static const char *name_of(const char *path)
{
    size_t length = strlen(folder);
    if (!watching || strncmp(path, folder, length) != 0 || path[length] != '/')
        return NULL;
    const char *name = path + length + 1;
    if (strchr(name, '/') || strlen(name) >= NAME_NBYTES)
        abort();
    return name;
}

static void keep(char to[NAME_NBYTES], const char *name)
{
    snprintf(to, NAME_NBYTES, "%s", name);
}

/* Notes a file that was opened, and its name if it is new. */
static void note_open(const char *path, int flags, int fd, bool is_new)
{
    const bool nameless = (flags & O_TMPFILE) == O_TMPFILE;
    const char *name = nameless ? NULL : name_of(path);
    struct stat st;
    char self[64];
    if (!watching || (!name && !(nameless && !strcmp(path, folder))) || fstat(fd, &st))
        return;
    size_t node = node_of_stat(&st);
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    if (node == NODES_MOST)
        node = add_node(&st, self);
    if (!is_new || !name)
        return;
    struct step *step = append(LINK);
    step->node = node;
    keep(step->name, name);
}

int __wrap_open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    if (flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) {
        va_list arguments;
        va_start(arguments, flags);
        mode = (mode_t)va_arg(arguments, unsigned);
        va_end(arguments);
    }
    pthread_mutex_lock(&lock);
    bool is_new = flags & O_CREAT && access(path, F_OK);
    int fd = __real_open(path, flags, mode), reason = errno;
    if (fd >= 0)
        note_open(path, flags, fd, is_new);
    pthread_mutex_unlock(&lock);
    errno = reason;
    return fd;
}

int __wrap___open_2(const char *path, int flags)
{
    return __wrap_open(path, flags);
}

static void note_write(int fd, const void *bytes, ssize_t nbytes, off_t at)
{
    size_t node = node_of(fd);
    if (node == NODES_MOST || nbytes <= 0)
        return;
    struct step *step = append(WRITE);
    step->node = node;
    step->at = (uint64_t)at;
    step->nbytes = (uint64_t)nbytes;
    step->bytes = malloc((size_t)nbytes);
    if (!step->bytes)
        abort();
    memcpy(step->bytes, bytes, (size_t)nbytes);
}

ssize_t __wrap_write(int fd, const void *bytes, size_t nbytes)
{
    pthread_mutex_lock(&lock);
    off_t at = node_of(fd) == NODES_MOST ? 0 : lseek(fd, 0, SEEK_CUR);
    ssize_t n = __real_write(fd, bytes, nbytes);
    note_write(fd, bytes, n, at);
    pthread_mutex_unlock(&lock);
    return n;
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t nbytes, off_t at)
{
    pthread_mutex_lock(&lock);
    ssize_t n = __real_pwrite(fd, bytes, nbytes, at);
    note_write(fd, bytes, n, at);
    pthread_mutex_unlock(&lock);
    return n;
}

int __wrap_ftruncate(int fd, off_t nbytes)
{
    pthread_mutex_lock(&lock);
    int failed = __real_ftruncate(fd, nbytes);
    size_t node = node_of(fd);
    if (!failed && node != NODES_MOST) {
        struct step *step = append(RESIZE);
        step->node = node;
        step->at = (uint64_t)nbytes;
    }
    pthread_mutex_unlock(&lock);
    return failed;
}

/* Does not wait for the disk, but where the test wants other threads to be quicker. */
static int sync_fd(int fd)
{
    struct stat st;
    if (fstat(fd, &st))
        return -1;
    pthread_mutex_lock(&lock);
    size_t begun = nsteps;
    bool waits = watching && slow, is_folder = watching && st.st_ino == folder_stat.st_ino &&
                                               st.st_dev == folder_stat.st_dev;
    pthread_mutex_unlock(&lock);
    if (waits)
        usleep(500);
    pthread_mutex_lock(&lock);
    size_t node = node_of(fd);
    bool fails = failing && node != NODES_MOST;
    if (is_folder || node != NODES_MOST) {
        struct step *step = append(is_folder ? SYNC_FOLDER : fails ? SYNC_FAILED : SYNC);
        step->node = node;
        step->begun = begun;
    }
    failing &= !fails;
    pthread_mutex_unlock(&lock);
    errno = EIO;
    return fails ? -1 : 0;
}

int __wrap_fsync(int fd)
{
    return sync_fd(fd);
}

int __wrap_fdatasync(int fd)
{
    return sync_fd(fd);
}

int __wrap_rename(const char *from, const char *to)
{
    pthread_mutex_lock(&lock);
    int failed = __real_rename(from, to);
    const char *before = name_of(from), *after = name_of(to);
    if (!failed && before && after) {
        struct step *step = append(RENAME);
        keep(step->name, before);
        keep(step->to, after);
    }
    pthread_mutex_unlock(&lock);
    return failed;
}

int __wrap_unlink(const char *path)
{
    pthread_mutex_lock(&lock);
    int failed = __real_unlink(path);
    const char *name = name_of(path);
    if (!failed && name)
        keep(append(UNLINK)->name, name);
    pthread_mutex_unlock(&lock);
    return failed;
}

int __wrap_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    struct stat st;
    pthread_mutex_lock(&lock);
    int failed = __real_linkat(from_fd, from, to_fd, to, flags), reason = errno;
    const char *name = name_of(to);
    if (!failed && name && !stat(to, &st) && node_of_stat(&st) != NODES_MOST) {
        struct step *step = append(LINK);
        step->node = node_of_stat(&st);
        keep(step->name, name);
    }
    pthread_mutex_unlock(&lock);
    errno = reason;
    return failed;
}

/* ---- Choices ----------------------------------------------------------------------------- */

/* Returns a number below 'limit'; limit - 1 is "all of it", 0 "nothing of it". */
static unsigned choose(struct chooser *c, unsigned limit)
{
    if (c->how == CHOOSE_ALL || limit <= 1)
        return limit - 1;
    if (c->how == CHOOSE_SYNCED)
        return 0;
    if (c->how == CHOOSE_RANDOM)
        return (unsigned)rng_below(&c->rng, limit);
    if (c->depth == sizeof c->taken)
        abort();
    if (c->depth == c->room) {
        c->taken[c->room] = 0;
        c->limit[c->room++] = (unsigned char)limit;
    }
    return c->taken[c->depth++];
}

static bool choose_sector(struct chooser *c)
{
    return c->how == CHOOSE_RANDOM ? rng_below(&c->rng, 16) < c->density : choose(c, 2);
}

bool chooser_next(struct chooser *c)
{
    c->depth = 0;
    while (c->room && c->taken[c->room - 1] + 1 == c->limit[c->room - 1])
        c->room--;
    if (!c->room)
        return false;
    c->taken[c->room - 1]++;
    return true;
}

/* ---- What a file holds ------------------------------------------------------------------- */

static bool changes(const struct step *step, size_t node)
{
    return (step->what == WRITE || step->what == RESIZE) && step->node == node;
}

/* Returns whether the change at 'index' is on the disk for certain: a sync began behind it, and
 * the first one did not fail. */
static bool is_durable(size_t index, size_t end)
{
    for (size_t i = index + 1; i < end; i++)
        if ((steps[i].what == SYNC || steps[i].what == SYNC_FAILED) && steps[i].begun > index &&
            steps[i].node == steps[index].node)
            return steps[i].what == SYNC;
    return false;
}

struct content {
    uint8_t *bytes;
    size_t nbytes;
};

static void resize(struct content *content, size_t nbytes, bool garbage)
{
    if (nbytes > content->nbytes) {
        content->bytes = realloc(content->bytes, nbytes);
        if (!content->bytes)
            abort();
        memset(content->bytes + content->nbytes, garbage ? 0xa5 : 0, nbytes - content->nbytes);
    }
    content->nbytes = nbytes;
}

/* Writes the sectors of a step that are chosen, as far as the file reaches. */
static void write_sectors(struct content *content, const struct step *step, bool durable,
                          struct chooser *c)
{
    const uint64_t end = step->at + step->nbytes, unit = c->sector_nbytes;
    for (uint64_t at = step->at, next; at < end; at = next) {
        next = (at / unit + 1) * unit < end ? (at / unit + 1) * unit : end;
        if (!durable && !choose_sector(c))
            continue;
        uint64_t to = next < content->nbytes ? next : content->nbytes;
        if (at < to)
            memcpy(content->bytes + at, step->bytes + (at - step->at), (size_t)(to - at));
    }
}

/* Returns the size behind a step that changes it. */
static uint64_t size_behind(const struct step *step, uint64_t before)
{
    uint64_t end = step->at + step->nbytes;
    return step->what == RESIZE ? step->at : end > before ? end : before;
}

/* Makes what a node holds after a crash behind 'end' steps: the file has the size that it had
 * behind some of its changes that were not synced. */
static struct content content_of(size_t node, size_t end, struct chooser *c)
{
    struct content content = { 0 };
    unsigned loose = 0, sized;
    resize(&content, nodes[node].nbytes, false);
    if (content.nbytes)
        memcpy(content.bytes, nodes[node].bytes, content.nbytes);
    for (size_t i = 0; i < end; i++)
        loose += changes(&steps[i], node) && !is_durable(i, end);
    sized = choose(c, loose + 1);
    for (size_t i = 0, n = 0; i < end; i++) {
        if (!changes(&steps[i], node))
            continue;
        const bool durable = is_durable(i, end);
        if (durable || n++ < sized)
            resize(&content, (size_t)size_behind(&steps[i], content.nbytes),
                   c->garbage && !durable && steps[i].what == WRITE);
        if (steps[i].what == WRITE)
            write_sectors(&content, &steps[i], durable, c);
    }
    return content;
}

/* ---- What a folder holds ----------------------------------------------------------------- */

struct names {
    size_t count;
    struct {
        char name[NAME_NBYTES];
        size_t node;
    } at[NODES_MOST];
};

static size_t find_name(const struct names *names, const char *name)
{
    size_t i = 0;
    while (i < names->count && strcmp(names->at[i].name, name) != 0)
        i++;
    return i;
}

static void remove_name(struct names *names, const char *name)
{
    size_t i = find_name(names, name);
    if (i < names->count)
        names->at[i] = names->at[--names->count];
}

static void add_name(struct names *names, const char *name, size_t node)
{
    remove_name(names, name);
    keep(names->at[names->count].name, name);
    names->at[names->count++].node = node;
}

static bool is_of_folder(const struct step *step)
{
    return step->what == LINK || step->what == UNLINK || step->what == RENAME;
}

static void change_names(struct names *names, const struct step *step)
{
    if (step->what == LINK) {
        add_name(names, step->name, step->node);
    } else if (step->what == UNLINK) {
        remove_name(names, step->name);
    } else {
        size_t node = names->at[find_name(names, step->name)].node;
        remove_name(names, step->name);
        add_name(names, step->to, node);
    }
}

static struct names names_of(size_t end, struct chooser *c)
{
    struct names names = { 0 };
    size_t synced = 0;
    unsigned loose = 0;
    for (size_t i = 0; i < nnodes; i++)
        if (*nodes[i].first)
            add_name(&names, nodes[i].first, i);
    for (size_t i = 0; i < end; i++)
        if (steps[i].what == SYNC_FOLDER && steps[i].begun > synced)
            synced = steps[i].begun;
    for (size_t i = synced; i < end; i++)
        loose += is_of_folder(&steps[i]);
    unsigned more = choose(c, loose + 1);
    for (size_t i = 0; i < end; i++)
        if (is_of_folder(&steps[i]) && (i < synced || more-- > 0))
            change_names(&names, &steps[i]);
        else if (is_of_folder(&steps[i]))
            break;
    return names;
}

struct image disk_image(size_t step, struct chooser *c)
{
    struct image image = { 0 };
    c->depth = 0;
    struct names names = names_of(step, c);
    for (size_t i = 0; i < names.count; i++) {
        if (image.count == sizeof image.files / sizeof *image.files)
            abort();
        struct image_file *file = &image.files[image.count++];
        struct content content = content_of(names.at[i].node, step, c);
        keep(file->name, names.at[i].name);
        file->bytes = content.bytes;
        file->nbytes = content.nbytes;
    }
    return image;
}

size_t disk_open_sectors(size_t step, unsigned sector_nbytes)
{
    struct chooser all = { .how = CHOOSE_ALL, .sector_nbytes = sector_nbytes };
    struct names names = names_of(step, &all);
    size_t n = 0;
    for (size_t i = 0; i < step; i++) {
        if (steps[i].what != WRITE || is_durable(i, step))
            continue;
        for (size_t k = 0; k < names.count; k++)
            if (names.at[k].node == steps[i].node)
                n += (size_t)((steps[i].at + steps[i].nbytes - 1) / sector_nbytes -
                              steps[i].at / sector_nbytes + 1);
    }
    return n;
}
