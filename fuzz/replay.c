/* replay.c - runs every fuzzer over its corpus: 'fuzz_replay CORPUS', where the folder CORPUS
 * has a folder for each fuzzer.  The ordinary tests run this, so that a compiler without a
 * fuzzer finds old bugs that come back. */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef int fuzzer(const uint8_t *data, size_t nbytes);
fuzzer api_fuzz, container_fuzz, blob_fuzz, journal_fuzz, numbers_fuzz, blocks_fuzz,
    address_fuzz, replies_fuzz, foreign_fuzz, remote_fuzz, sqlite_fuzz;

static const struct {
    const char *name;
    fuzzer *run;
} fuzzers[] = {
    { "api_fuzz", api_fuzz },         { "container_fuzz", container_fuzz },
    { "blob_fuzz", blob_fuzz },       { "numbers_fuzz", numbers_fuzz },
    { "blocks_fuzz", blocks_fuzz },   { "address_fuzz", address_fuzz },
    { "replies_fuzz", replies_fuzz }, { "foreign_fuzz", foreign_fuzz },
    { "journal_fuzz", journal_fuzz }, { "remote_fuzz", remote_fuzz },
#ifdef WITH_SQLITE
    { "sqlite_fuzz", sqlite_fuzz },
#endif
};

/* Returns 0, or -1 if the file cannot be read.  A fuzzer that finds a bug aborts. */
static int run_file(fuzzer *run, const char *path)
{
    struct stat st;
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &st))
        return -1;
    size_t nbytes = (size_t)st.st_size;
    uint8_t *data = malloc(nbytes + 1);
    int error = data && fread(data, 1, nbytes, file) == nbytes ? 0 : -1;
    fclose(file);
    if (!error)
        run(data, nbytes);
    free(data);
    return error;
}

/* Returns how many files it ran, or -1 if a file or the folder cannot be read. */
static int run_folder(fuzzer *run, const char *folder)
{
    int n = 0;
    struct dirent *entry;
    DIR *dir = opendir(folder);
    while (dir && n >= 0 && (entry = readdir(dir))) {
        char path[4096 + NAME_MAX + 2];
        if (*entry->d_name == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        n = run_file(run, path) ? -1 : n + 1;
    }
    if (dir)
        closedir(dir);
    return dir ? n : -1;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: fuzz_replay CORPUS\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof fuzzers / sizeof *fuzzers; i++) {
        char folder[4096];
        snprintf(folder, sizeof folder, "%s/%s", argv[1], fuzzers[i].name);
        int n = run_folder(fuzzers[i].run, folder);
        printf("%s: %d files\n", fuzzers[i].name, n);
        if (n <= 0)
            return 1;
    }
    return 0;
}
