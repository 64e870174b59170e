/* host.c - what this process may use of the machine: memory and CPUs.
 *
 * A container, a service or a batch job may use less than the machine has.  Its limits are
 * those of its control group and of all groups above that one (cgroups(7)):
 *
 *     /proc/self/cgroup     0::/a/b                      version 2
 *                           9:memory:/a/b                version 1, a tree for each controller
 *     version 2             /sys/fs/cgroup/a/b/memory.max, .current, .stat, cpu.max
 *     version 1             /sys/fs/cgroup/memory/a/b/memory.limit_in_bytes, ...
 *
 * In a container the names in the first file may be those outside of it, and not exist here;
 * what exists is what counts, up to the root of the tree. */
#define _GNU_SOURCE 1 /* sched_getaffinity() */
#include "host.h"

#include <limits.h>
#include <perhaps_build.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define UNLIMITED UINT64_MAX

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- Files ------------------------------------------------------------------------------- */

/* Reads the beginning of a file as a text; an empty one if there is none. */
static void read_text(const char *path, char *text, size_t room)
{
    FILE *file = fopen(path, "re");
    size_t nbytes = file ? fread(text, 1, room - 1, file) : 0;
    if (file)
        fclose(file);
    text[nbytes] = '\0';
}

/* Reads a number, which may have up to 20 digits.  Returns what follows it; or NULL if there is
 * none, such as "max". */
static const char *read_number(const char *text, uint64_t *number)
{
    char *end;
    if (*text < '0' || *text > '9')
        return NULL;
    *number = strtoull(text, &end, 10); /* one that is too large is UINT64_MAX */
    return end;
}

/* A folder of a control group: 'root', the place of its tree, and its name. */
struct group {
    char path[PATH_MAX];
};

/* Returns the number in a file of a group; 'otherwise' if there is none. */
static uint64_t number_in(const struct group *group, const char *name, uint64_t otherwise)
{
    char path[PATH_MAX + 64], text[64];
    uint64_t number;
    snprintf(path, sizeof path, "%s/%s", group->path, name);
    read_text(path, text, sizeof text);
    return read_number(text, &number) ? number : otherwise;
}

/* Returns the sum of the lines of memory.stat that begin with these names. */
static uint64_t sum_in_stat(const struct group *group, const char *const names[2])
{
    char path[PATH_MAX + 64], line[128];
    uint64_t sum = 0, number;
    snprintf(path, sizeof path, "%s/memory.stat", group->path);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        for (size_t i = 0; i < 2; i++) {
            const size_t nbytes = strlen(names[i]);
            if (!strncmp(line, names[i], nbytes) && line[nbytes] == ' ' &&
                read_number(line + nbytes + 1, &number) && number < UNLIMITED / 4)
                sum += number;
        }
    if (file)
        fclose(file);
    return sum;
}

/* ---- A group ----------------------------------------------------------------------------- */

/* What is left below a limit.  Pages of files that can be read again count as free. */
static uint64_t left_of(uint64_t limit, uint64_t used, uint64_t reclaimable)
{
    used = used > reclaimable ? used - reclaimable : 0;
    return limit == UNLIMITED ? UNLIMITED : limit > used ? limit - used : 0;
}

static uint64_t memory_of_v2(const struct group *group)
{
    static const char *const files[2] = { "active_file", "inactive_file" };
    const uint64_t limit = least(number_in(group, "memory.max", UNLIMITED),
                                 number_in(group, "memory.high", UNLIMITED));
    return left_of(limit, number_in(group, "memory.current", 0), sum_in_stat(group, files));
}

static uint64_t memory_of_v1(const struct group *group)
{
    static const char *const files[2] = { "total_active_file", "total_inactive_file" };
    return left_of(number_in(group, "memory.limit_in_bytes", UNLIMITED),
                   number_in(group, "memory.usage_in_bytes", 0), sum_in_stat(group, files));
}

/* Returns how many CPUs a share of time is, rounded up: 150 ms in each 100 ms are two. */
static uint64_t cpus_of(uint64_t quota, uint64_t period)
{
    return quota && quota < UNLIMITED && period ? (quota - 1) / period + 1 : UNLIMITED;
}

static uint64_t cpus_of_v2(const struct group *group)
{
    char path[PATH_MAX + 64], text[64];
    uint64_t quota, period;
    snprintf(path, sizeof path, "%s/cpu.max", group->path);
    read_text(path, text, sizeof text);
    const char *rest = read_number(text, &quota);
    return rest && *rest == ' ' && read_number(rest + 1, &period) ? cpus_of(quota, period)
                                                                  : UNLIMITED;
}

/* No quota is -1 there, which is no number here. */
static uint64_t cpus_of_v1(const struct group *group)
{
    return cpus_of(number_in(group, "cpu.cfs_quota_us", UNLIMITED),
                   number_in(group, "cpu.cfs_period_us", 0));
}

/* ---- All groups -------------------------------------------------------------------------- */

/* Returns the least limit of the group with this name and of all above it, up to the root of
 * the tree at 'tree'. */
static uint64_t least_of_groups(const char *tree, const char *name,
                                uint64_t (*limit_of)(const struct group *))
{
    struct group group;
    uint64_t limit = UNLIMITED;
    snprintf(group.path, sizeof group.path, "%s%s", tree, name);
    for (const size_t root = strlen(tree);;) {
        limit = least(limit, limit_of(&group));
        char *last = strrchr(group.path + root, '/');
        if (!last)
            return limit;
        *last = '\0';
    }
}

/* Returns whether a list such as "cpu,cpuacct" has this word. */
static bool has_word(const char *list, size_t nbytes, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list, *end = list + nbytes; at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const size_t here = (size_t)((comma ? comma : end) - at);
        if (here == length && !memcmp(at, word, length))
            return true;
        at += here + 1;
    }
    return false;
}

/* What is asked of the groups, in each version. */
struct asked {
    const char *controller;
    uint64_t (*v1)(const struct group *);
    uint64_t (*v2)(const struct group *);
};

/* Returns the least limit of the groups that a line of /proc/self/cgroup names. */
static uint64_t limit_of_line(const char *root, const char *line, const struct asked *asked)
{
    char tree[PATH_MAX];
    const char *controllers = strchr(line, ':');
    const char *name = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!name)
        return UNLIMITED;
    const size_t nbytes = (size_t)(name++ - ++controllers);
    if (nbytes == 0) {
        snprintf(tree, sizeof tree, "%s/sys/fs/cgroup", root);
        const uint64_t limit = least_of_groups(tree, name, asked->v2);
        snprintf(tree, sizeof tree, "%s/sys/fs/cgroup/unified", root); /* beside version 1 */
        return least(limit, least_of_groups(tree, name, asked->v2));
    }
    if (!has_word(controllers, nbytes, asked->controller))
        return UNLIMITED;
    snprintf(tree, sizeof tree, "%s/sys/fs/cgroup/%s", root, asked->controller);
    return least_of_groups(tree, name, asked->v1);
}

static uint64_t limit_of_all(const char *root, const struct asked *asked)
{
    char line[PATH_MAX];
    uint64_t limit = UNLIMITED;
    snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    FILE *file = fopen(line, "re");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        limit = least(limit, limit_of_line(root, line, asked));
    }
    if (file)
        fclose(file);
    return limit;
}

/* ---- The process ------------------------------------------------------------------------- */

static uint64_t page_nbytes(void)
{
    const long nbytes = sysconf(_SC_PAGESIZE);
    return nbytes > 0 ? (uint64_t)nbytes : 4096;
}

/* Returns what ulimit -v leaves. */
static uint64_t address_space(const char *root)
{
    char path[PATH_MAX], text[64];
    struct rlimit limit;
    uint64_t pages = 0;
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return UNLIMITED;
    snprintf(path, sizeof path, "%s/proc/self/statm", root);
    read_text(path, text, sizeof text);
    read_number(text, &pages);
    return left_of(limit.rlim_cur, pages * page_nbytes(), 0);
}

uint64_t host_memory_nbytes(const char *root)
{
    static const struct asked memory = { "memory", memory_of_v1, memory_of_v2 };
    const long pages = sysconf(_SC_PHYS_PAGES);
    const uint64_t otherwise = (uint64_t)4 << 30;
    const uint64_t ram = pages > 0 ? (uint64_t)pages * page_nbytes() : otherwise;
    return least(ram, least(address_space(root), limit_of_all(root, &memory)));
}

unsigned host_threads(const char *root)
{
    static const struct asked time = { "cpu", cpus_of_v1, cpus_of_v2 };
    cpu_set_t cpus;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t count = online > 0 ? (uint64_t)online : 1;
    if (!sched_getaffinity(0, sizeof cpus, &cpus)) /* fails with more than 1024 CPUs */
        count = (uint64_t)CPU_COUNT(&cpus);
    return (unsigned)least(count, limit_of_all(root, &time));
}

uint64_t perhaps_host_memory_nbytes(void)
{
    return host_memory_nbytes("");
}

unsigned perhaps_host_threads(void)
{
    return host_threads("");
}
