/* files.c - what tests need of files, processes and threads: see support.h.  All files lie in
 * one folder for each process.  It is removed by atexit(), also after a failed test. */
#include "support.h"

#include "hostile.h"
#include "store/store.h"

#include <dirent.h>
#include <ftw.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char temp_folder[64];
static pid_t temp_owner; /* a forked child, which runs atexit(), too, must not remove it */

/* Removes what nftw() visits: the contents of a folder before the folder (FTW_DEPTH). */
static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void remove_temp_folder(void)
{
    if (getpid() == temp_owner)
        nftw(temp_folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

struct path temp_path(const char *name)
{
    if (!*temp_folder) {
        const char *base = getenv("TMPDIR");
        snprintf(temp_folder, sizeof temp_folder, "%.40s/perhaps-XXXXXX", base ? base : "/tmp");
        /* mkdtemp() allows only the owner; the child of run_in_child() may be nobody. */
        expect(mkdtemp(temp_folder) && !chmod(temp_folder, 0755));
        temp_owner = getpid();
        atexit(remove_temp_folder);
    }
    struct path folder;
    snprintf(folder.text, sizeof folder.text, "%s", temp_folder);
    return path_below(folder, name);
}

struct path path_below(struct path folder, const char *name)
{
    struct path path;
    int n = snprintf(path.text, sizeof path.text, "%s/%s", folder.text, name);
    expect(n > 0 && (size_t)n < sizeof path.text);
    return path;
}

struct path journal_of(struct path file)
{
    struct path journal;
    int n = snprintf(journal.text, sizeof journal.text, "%s.journal", file.text);
    expect(n > 0 && (size_t)n < sizeof journal.text);
    return journal;
}

struct bytes read_file(const char *path)
{
    struct stat st;
    FILE *file = fopen(path, "rb");
    expect(file && !fstat(fileno(file), &st));
    struct bytes bytes = { .nbytes = (size_t)st.st_size };
    bytes.at = malloc(bytes.nbytes + 1); /* never 0 bytes, which may give NULL */
    expect(bytes.at && fread(bytes.at, 1, bytes.nbytes, file) == bytes.nbytes);
    fclose(file);
    return bytes;
}

void free_bytes(struct bytes *bytes)
{
    free(bytes->at);
}

void write_file(const char *path, const void *bytes, size_t nbytes)
{
    FILE *file = fopen(path, "wb");
    expect(file);
    expect(fwrite(bytes, 1, nbytes, file) == nbytes);
    expect(!fclose(file));
}

/* The file is removed at once, since tests call this very often. */
struct bytes saved_bytes(const perhaps_filter *f)
{
    struct path path = temp_path("saved_bytes");
    expect_success(perhaps_save(f, path.text));
    struct bytes bytes = read_file(path.text);
    unlink(path.text);
    return bytes;
}

static int gather(void *context, const void *bytes, size_t nbytes)
{
    struct bytes *all = context;
    memcpy(all->at + all->nbytes, bytes, nbytes);
    all->nbytes += nbytes;
    return 0;
}

/* Live files are never small: so this is the file of one that has a journal, without what it
 * says of that. */
struct bytes large_bytes(const perhaps_filter *f)
{
    const struct journal_point point = { .branch = 1 };
    const struct content content = { .f = f, .point = &point };
    struct header h;
    content_plan(&content, &h);
    struct bytes bytes = { .at = malloc(h.file_nbytes) };
    expect(bytes.at);
    expect_success(content_write(&content, &(struct perhaps_sink){ gather, &bytes }));
    put64(bytes.at + AT_FEATURES, get64(bytes.at + AT_FEATURES) & ~UINT64_C(2));
    put64(bytes.at + AT_RESERVED, 0); /* the branch */
    reseal_header(bytes.at, bytes.nbytes);
    return bytes;
}

struct bytes copy_bytes(const struct bytes *bytes)
{
    struct bytes copy = { .at = malloc(bytes->nbytes), .nbytes = bytes->nbytes };
    expect(copy.at);
    memcpy(copy.at, bytes->at, bytes->nbytes);
    return copy;
}

void expect_same_bytes(const struct bytes *a, const struct bytes *b)
{
    expect(a->nbytes == b->nbytes && !memcmp(a->at, b->at, a->nbytes));
}

void expect_saves_as(const perhaps_filter *f, const struct bytes *wanted)
{
    scoped_bytes saved = saved_bytes(f);
    expect_same_bytes(&saved, wanted);
}

bool is_refusal(int error)
{
    return error == PERHAPS_ERR_FORMAT || error == PERHAPS_ERR_VERSION ||
           error == PERHAPS_ERR_DAMAGED;
}

void use_decimal_comma(void)
{
#ifndef __GLIBC__
    skip(); /* musl writes a decimal point in all locales */
#endif
    if (!setlocale(LC_ALL, "de_DE.UTF-8"))
        skip();
    expect(localeconv()->decimal_point[0] == ',');
}

/* The child ends by _exit(), so it does not run the atexit() of the test. */
int run_in_child(int (*run)(void *context), void *context, bool as_nobody)
{
    enum { NOBODY = 65534 }; /* the user 'nobody' of Linux */
    int status = -1;
    pid_t child = fork();
    expect(child >= 0);
    if (!child) {
        if (as_nobody && !geteuid() && setuid(NOBODY))
            _exit(CANNOT_TRY);
        _exit(run(context));
    }
    expect(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

void run_threads(unsigned count, void *run(void *), void *elements, size_t element_nbytes)
{
    enum { THREADS_MOST = 64 };
    pthread_t thread[THREADS_MOST];
    expect(count <= THREADS_MOST);
    for (unsigned i = 0; i < count; i++)
        expect(!pthread_create(&thread[i], NULL, run, (char *)elements + i * element_nbytes));
    for (unsigned i = 0; i < count; i++)
        expect(!pthread_join(thread[i], NULL));
}

unsigned count_beside(const char *path)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    DIR *dir = opendir(folder);
    expect(dir);
    unsigned n = 0;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 2; /* without . and .. */
}
