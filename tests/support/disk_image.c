/* disk_image.c - the files of a folder, in memory: see disk_model.h. */
#include "disk_model.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

void image_free(struct image *image)
{
    for (size_t i = 0; i < image->count; i++)
        free(image->files[i].bytes);
    image->count = 0;
}

struct image image_copy(const struct image *image)
{
    struct image copy = *image;
    for (size_t i = 0; i < image->count; i++) {
        struct bytes bytes = { image->files[i].bytes, image->files[i].nbytes };
        copy.files[i].bytes = copy_bytes(&bytes).at;
    }
    return copy;
}

/* The order of the files does not matter. */
uint64_t image_hash(const struct image *image)
{
    uint64_t hash = image->count;
    for (size_t i = 0; i < image->count; i++) {
        const struct image_file *file = &image->files[i];
        uint64_t seed = XXH3_64bits(file->name, strlen(file->name));
        hash += mix64(XXH3_64bits_withSeed(file->bytes, file->nbytes, seed) + file->nbytes);
    }
    return hash;
}

static void empty_folder(const char *path)
{
    char below[PATH_MAX + NAME_MAX + 2];
    DIR *dir = opendir(path);
    expect(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        if (*entry->d_name != '.' || strlen(entry->d_name) > 2)
            expect(!unlink(below));
    }
    closedir(dir);
}

void image_write(const struct image *image, const char *path)
{
    char below[PATH_MAX + NAME_MAX + 2];
    mkdir(path, 0755); /* or it is there */
    empty_folder(path);
    for (size_t i = 0; i < image->count; i++) {
        const struct image_file *file = &image->files[i];
        snprintf(below, sizeof below, "%s/%s", path, file->name);
        write_file(below, file->bytes, file->nbytes);
    }
}
