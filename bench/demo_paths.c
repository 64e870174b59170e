/* demo_paths.c - the paths of the installed files, and others that look like them. */
#include <dirent.h>
#include <err.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo.h"

#define LISTS "/var/lib/dpkg/info"

enum { PATHS_MAX = 2000000, TILDES_MAX = 8 };

static int compare(const void *left, const void *right)
{
    const struct perhaps_key *a = left, *b = right;
    size_t shared = a->nbytes < b->nbytes ? a->nbytes : b->nbytes;
    int order = memcmp(a->bytes, b->bytes, shared);
    return order ? order : (a->nbytes > b->nbytes) - (a->nbytes < b->nbytes);
}

static void add_path(struct paths *paths, const char *path)
{
    char *copy = paths->count < PATHS_MAX ? strdup(path) : NULL;
    if (!copy)
        errx(2, "too many paths, more than %d or than the memory holds", PATHS_MAX);
    paths->path[paths->count++] = (struct perhaps_key){ .bytes = copy, .nbytes = strlen(copy) };
}

static void read_list(struct paths *paths, const char *name)
{
    char path[512], *line = NULL;
    size_t room = 0;
    snprintf(path, sizeof path, LISTS "/%s", name);
    FILE *file = fopen(path, "r");
    if (!file)
        err(2, "%s", path);
    while (getline(&line, &room, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        add_path(paths, line);
    }
    free(line);
    fclose(file);
}

static void read_lists(struct paths *paths)
{
    DIR *folder = opendir(LISTS);
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        const char *ending = strrchr(entry->d_name, '.');
        if (ending && !strcmp(ending, ".list"))
            read_list(paths, entry->d_name);
    }
    if (folder)
        closedir(folder);
    paths->where = LISTS "/*.list";
}

static void walk_folder(struct paths *paths)
{
    char usr[] = "/usr";
    char *const roots[] = { usr, NULL };
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOSTAT, NULL);
    FTSENT *entry;
    if (!walk)
        err(2, "/usr");
    while ((entry = fts_read(walk)) && paths->count < PATHS_MAX)
        if (entry->fts_info != FTS_DP)
            add_path(paths, entry->fts_path);
    fts_close(walk);
    paths->where = "/usr (no " LISTS "/*.list here)";
}

/* Folders stand in the lists of many packages. */
static void sort_and_unite(struct paths *paths)
{
    size_t kept = 0;
    qsort(paths->path, paths->count, sizeof *paths->path, compare);
    for (size_t i = 0; i < paths->count; i++) {
        struct perhaps_key *path = &paths->path[i];
        if (kept && compare(path, &paths->path[kept - 1]) == 0) {
            free((void *)path->bytes);
            continue;
        }
        paths->path[kept++] = *path;
        paths->nbytes += path->nbytes;
    }
    paths->count = kept;
}

void paths_read(struct paths *paths)
{
    *paths = (struct paths){ 0 };
    paths->path = malloc(PATHS_MAX * sizeof *paths->path);
    if (!paths->path)
        err(2, "paths");
    read_lists(paths);
    if (!paths->count)
        walk_folder(paths);
    if (!paths->count)
        errx(2, "no paths in " LISTS " nor in /usr: this demo needs some files");
    sort_and_unite(paths);
}

static struct perhaps_key alter(const struct paths *paths, const struct perhaps_key *path)
{
    char *text = malloc(path->nbytes + TILDES_MAX);
    if (!text)
        err(2, "paths");
    struct perhaps_key other = { .bytes = text, .nbytes = path->nbytes };
    memcpy(text, path->bytes, path->nbytes);
    do {
        if (other.nbytes == path->nbytes + TILDES_MAX)
            errx(2, "%.*s: exists with any number of ~ behind it", (int)other.nbytes, text);
        text[other.nbytes++] = '~';
    } while (bsearch(&other, paths->path, paths->count, sizeof other, compare));
    return other;
}

void paths_alter(const struct paths *paths, struct paths *altered)
{
    *altered = (struct paths){ .count = paths->count };
    altered->path = malloc(paths->count * sizeof *altered->path);
    if (!altered->path)
        err(2, "paths");
    for (size_t i = 0; i < paths->count; i++)
        altered->path[i] = alter(paths, &paths->path[i]);
}

void paths_free(struct paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        free((void *)paths->path[i].bytes);
    free(paths->path);
}
