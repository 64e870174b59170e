/* disk.c - the disk space of a filter that is built once.
 *
 * The library knows how many bytes the keys take of it, and the plan how many the filter does.
 * How many keys there are is known from -n, or estimated from the beginning of files.  Only a
 * number of the user is a reason to refuse: an estimate may be wrong. */
#include "disk.h"
#include <perhaps_plan.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "messages.h"
#include "numbers.h"

/* Returns how many bytes the filter takes of the file system with the temporary file. */
static uint64_t filter_nbytes(const struct disk *disk, uint64_t keys)
{
    struct perhaps_options options = disk->target->options;
    struct perhaps_plan plan;
    options.capacity = keys;
    return disk->shared && keys && !perhaps_plan_for(&options, &plan) ? plan.body_nbytes : 0;
}

/* Returns whether so many keys and their filter fit on the disk. */
static bool is_enough(const struct disk *disk, uint64_t keys)
{
    uint64_t nbytes = perhaps_builder_disk_nbytes(disk->target->builder, keys);
    return nbytes + filter_nbytes(disk, keys) <= disk->free_nbytes;
}

/* Returns the largest number of keys that fit, to 16 bits. */
static uint64_t most_keys(const struct disk *disk)
{
    uint64_t keys = 0, last = 0;
    for (uint64_t bit = PERHAPS_CAPACITY_MAX; bit > last >> 16; bit /= 2)
        if (is_enough(disk, keys + bit)) {
            last = last ? last : bit;
            keys += bit;
        }
    return keys;
}

/* Finds the file systems.  The locked file lies where the filter will. */
static void look(struct disk *disk)
{
    const struct target *target = disk->target;
    const char *folder = perhaps_builder_folder(target->builder);
    struct statvfs space;
    struct stat at, filter;
    if (!folder || statvfs(folder, &space) || stat(folder, &at))
        return;
    disk->folder = folder;
    disk->free_nbytes = (uint64_t)space.f_bavail * space.f_frsize;
    disk->shared =
        target->lock > 0 && !fstat(target->lock, &filter) && filter.st_dev == at.st_dev;
}

void disk_begin(struct disk *disk, const struct target *target)
{
    const struct settings *settings = target->settings;
    *disk = (struct disk){ .target = target };
    look(disk);
    if (!disk->folder)
        return;
    uint64_t keys = settings->capacity, estimate = input_estimate(settings);
    bool sure = keys && (!estimate || keys <= estimate);
    if (!sure)
        keys = estimate;
    uint64_t nbytes = perhaps_builder_disk_nbytes(target->builder, keys);
    if (!nbytes)
        return;
    bool enough = is_enough(disk, keys);
    const char *folder = disk->folder;
    uint64_t result = filter_nbytes(disk, keys);
    struct text size = scaled((double)nbytes, "B"),
                left = scaled((double)disk->free_nbytes, "B");
    struct text beside = { "" };
    if (result)
        beside = text_of(", and the filter %s", scaled((double)result, "B").s);
    if (!enough && sure)
        fail("%s: %s take %s of %s for a while%s, but only %s are free there: give another "
             "folder with --tmp, or more --memory%s",
             target->path, counted(keys, "key").s, size.s, folder, beside.s, left.s,
             target->outcome);
    disk->told = true;
    if (settings->quiet || settings->json)
        return;
    complain("the keys take %s%s of %s for a while%s; %s%s are free%s", sure ? "" : "about ",
             size.s, folder, beside.s, enough ? "" : "only ", left.s,
             enough ? "" : ": it may not be enough: see --tmp and --memory");
}

bool disk_watch(void *context, struct block *block)
{
    struct disk *disk = context;
    const struct settings *settings = disk->target->settings;
    disk->nkeys += block->count;
    if (disk->told || !perhaps_builder_disk_nbytes(disk->target->builder, disk->nkeys))
        return true;
    disk->told = true;
    if (disk->folder && !settings->quiet && !settings->json)
        complain("the keys do not fit in --memory and go to %s for a while; %s are free, "
                 "enough for %s",
                 disk->folder, scaled((double)disk->free_nbytes, "B").s,
                 scaled((double)most_keys(disk), " keys").s);
    return true;
}

void disk_fail(const struct target *target)
{
    fail("%s: the temporary file in %s: %s: give another folder with --tmp, or more --memory%s",
         target->path, perhaps_builder_folder(target->builder), strerror(errno),
         target->outcome);
}

void disk_fail_without(const struct target *target)
{
    fail("%s: %s came, more than the memory has room for: give more --memory, or a folder with "
         "--tmp for what does not fit%s",
         target->path, counted(perhaps_builder_keys(target->builder), "key").s,
         target->outcome);
}
