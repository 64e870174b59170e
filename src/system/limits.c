/* limits.c - how much memory and how many CPUs this process may use.
 *
 * A process may take less than the machine has: by its resource limits, or by those of its
 * control group or of one of the groups around that.  /proc/self/cgroup names the group in each
 * hierarchy, by a path such as "/system.slice/x.service".  Its folder lies where the hierarchy
 * is mounted, and the folders above are the groups around it:
 *
 *     0::/PATH          version 2: /sys/fs/cgroup/PATH, or, beside version 1, .../unified/PATH
 *     4:memory:/PATH    version 1: /sys/fs/cgroup/memory/PATH
 *
 * In a container the mounted folder may be one of the groups on the way ("/docker/ID"), while
 * the path still begins at the root of the machine: its first names are not there then, and are
 * left out.  Where the process is not below what is mounted ("/../x") only that folder counts.
 *
 * Each of these files may be missing, and its text is not trusted: what is no number limits
 * nothing. */
#define _GNU_SOURCE 1
#include "limits.h"

#ifdef SYSTEM_LINUX

#include <errno.h>
#include <perhaps_build.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    PATH_NBYTES = PATH_NBYTES_MOST,
    LINE_NBYTES = 4096,
    SHORT_NBYTES = 256,
    CPUS_MOST = 1 << 20
};

/* If the addresses are limited, there is a thread for each so many.  Its stack takes 8 MiB of
 * them, and the C library's heap for it 64 MiB, for a moment 128. */
#define ADDRESSES_EACH_NBYTES ((uint64_t)192 << 20)

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns a - b, or 0 if that is negative. */
static uint64_t minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* Returns a * b, or the largest number if that is larger. */
static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* ---- Text ------------------------------------------------------------------------------ */

/* Reads a whole number, with spaces before it, up to the largest.  Returns what follows it; or
 * NULL if there is none: "max", "-1". */
static const char *read_number(const char *text, uint64_t *number)
{
    text += strspn(text, " \t");
    const char *end = text + strspn(text, "0123456789");
    if (end == text || (*end && !strchr(" \t\n", *end)))
        return NULL;
    *number = 0;
    for (; text < end; text++) {
        uint64_t before = times(*number, 10), digit = (uint64_t)(*text - '0');
        *number = before > UINT64_MAX - digit ? UINT64_MAX : before + digit;
    }
    return end;
}

/* Reads the next line.  Leaves out those for which there is no room. */
static bool read_line(FILE *file, char *line, size_t room)
{
    bool whole = true;
    while (file && fgets(line, (int)room, file)) {
        bool ends = strchr(line, '\n') || strlen(line) < room - 1;
        if (whole && ends)
            return true;
        whole = ends;
    }
    return false;
}

static void close_if_open(FILE *file)
{
    if (file)
        fclose(file);
}

static FILE *open_at(const struct host *host, const char *name)
{
    char path[PATH_NBYTES];
    int n = snprintf(path, sizeof path, "%s%s", host->root, name);
    return n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
}

/* Returns the sum of the numbers behind these names, at the beginnings of lines; or 'none' if
 * there is none.  Closes the file. */
static uint64_t sum_of(FILE *file, const char *const *names, uint64_t none)
{
    char line[SHORT_NBYTES];
    uint64_t sum = 0, number;
    bool found = false;
    while (read_line(file, line, sizeof line))
        for (const char *const *name = names; *name; name++) {
            size_t length = strlen(*name);
            if (strncmp(line, *name, length) != 0 || !read_number(line + length, &number))
                continue;
            sum = sum > UINT64_MAX - number ? UINT64_MAX : sum + number;
            found = true;
        }
    close_if_open(file);
    return found ? sum : none;
}

/* ---- Control groups ---------------------------------------------------------------------- */

/* A group, by its folder. */
struct group {
    char path[PATH_NBYTES]; /* without a slash at the end */
    size_t nbytes;          /* of the path */
    bool second;            /* of version 2 */
};

/* Opens a file of a group. */
static FILE *open_in(struct group *group, const char *name)
{
    FILE *file = NULL;
    size_t room = sizeof group->path - group->nbytes;
    int n = snprintf(group->path + group->nbytes, room, "/%s", name);
    if (n > 0 && (size_t)n < room)
        file = fopen(group->path, "re");
    group->path[group->nbytes] = 0;
    return file;
}

/* Reads up to two numbers of a file.  Those that are not there stay as they were. */
static void read_numbers(struct group *group, const char *name, uint64_t number[2])
{
    char line[SHORT_NBYTES];
    FILE *file = open_in(group, name);
    const char *at = read_line(file, line, sizeof line) ? line : NULL;
    for (int i = 0; i < 2 && at; i++)
        at = read_number(at, &number[i]);
    close_if_open(file);
}

static uint64_t number_in(struct group *group, const char *name, uint64_t otherwise)
{
    uint64_t number[2] = { otherwise };
    read_numbers(group, name, number);
    return number[0];
}

/* What is looked for in all groups. */
struct search {
    const struct host *host;
    const char *controller; /* its name in version 1 */
    void (*look)(struct search *search, struct group *group);
    uint64_t found; /* the least */
};

/* Looks at a folder and at those above it, up to the one whose path has 'top_nbytes'. */
static void look_upwards(struct search *search, struct group *group, size_t top_nbytes)
{
    for (;;) {
        search->look(search, group);
        if (group->nbytes <= top_nbytes)
            return;
        while (group->nbytes > top_nbytes && group->path[group->nbytes - 1] != '/')
            group->nbytes--;
        while (group->nbytes > top_nbytes && group->path[group->nbytes - 1] == '/')
            group->nbytes--;
        group->path[group->nbytes] = 0;
    }
}

/* Returns whether a name of the path is "..". */
static bool leads_out(const char *path)
{
    for (const char *at = path; (at = strstr(at, "/.."));)
        if (!*(at += 3) || *at == '/')
            return true;
    return false;
}

/* Returns the path without those first names that are no folder under the top, as the group has
 * it.  Leaves the group as it was. */
static const char *skip_hidden(struct group *top, const char *path)
{
    const size_t nbytes = top->nbytes;
    bool there = false;
    while (!there && *path) {
        size_t length = strspn(path, "/");
        length += strcspn(path + length, "/");
        if (nbytes + length < sizeof top->path) {
            memcpy(top->path + nbytes, path, length);
            top->path[nbytes + length] = 0;
            there = !access(top->path, F_OK);
        }
        if (!there)
            path += length;
    }
    top->path[nbytes] = 0;
    return path;
}

/* Looks at a group whose hierarchy is mounted at /sys/fs/cgroup/PLACE, and at those around. */
static void look_in(struct search *search, const char *place, const char *path, bool second)
{
    struct group group = { .second = second };
    int top = snprintf(group.path, sizeof group.path, "%s/sys/fs/cgroup%s%s",
                       search->host->root, *place ? "/" : "", place);
    if (top < 0 || (size_t)top >= sizeof group.path || access(group.path, F_OK))
        return;
    group.nbytes = (size_t)top;
    path = *path != '/' || leads_out(path) ? "" : skip_hidden(&group, path);
    size_t length = strlen(path);
    while (length && path[length - 1] == '/')
        length--;
    if (group.nbytes + length < sizeof group.path) {
        memcpy(group.path + group.nbytes, path, length);
        group.nbytes += length;
        group.path[group.nbytes] = 0;
    }
    look_upwards(search, &group, (size_t)top);
}

/* Returns whether a list with commas has the name. */
static bool has_name(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (; list; list = strchr(list, ',')) {
        list += *list == ',';
        if (!strncmp(list, name, length) && (!list[length] || list[length] == ','))
            return true;
    }
    return false;
}

/* Looks at the groups that a line of /proc/self/cgroup names: NUMBER:CONTROLLERS:PATH. */
static void look_by_line(struct search *search, char *line)
{
    char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
    if (!path)
        return;
    *list++ = *path++ = 0;
    path[strcspn(path, "\n")] = 0;
    if (!*list) {
        look_in(search, "", path, true);
        look_in(search, "unified", path, true);
    } else if (has_name(list, search->controller) && !strchr(list, '/')) {
        look_in(search, search->controller, path, false);
        if (strcmp(list, search->controller) != 0)
            look_in(search, list, path, false);
    }
}

/* Returns the least that is found. */
static uint64_t search_groups(struct search *search)
{
    char line[LINE_NBYTES];
    FILE *file = open_at(search->host, "/proc/self/cgroup");
    search->found = UINT64_MAX;
    while (read_line(file, line, sizeof line))
        look_by_line(search, line);
    close_if_open(file);
    return search->found;
}

/* ---- Memory ------------------------------------------------------------------------------ */

/* Finds how much memory a group leaves: its limit, without what is used, but for the pages of
 * files, which the system takes back when it needs them. */
static void look_at_memory(struct search *search, struct group *group)
{
    static const char *const first_names[] = { "total_inactive_file ", "total_active_file ",
                                               NULL };
    static const char *const second_names[] = { "inactive_file ", "active_file ",
                                                "slab_reclaimable ", NULL };
    uint64_t limit, used, files;
    if (group->second)
        limit = least(number_in(group, "memory.max", UINT64_MAX),
                      number_in(group, "memory.high", UINT64_MAX));
    else
        limit = number_in(group, "memory.limit_in_bytes", UINT64_MAX);
    if (limit >= search->host->ram_nbytes)
        return; /* it has less than the machine anyway */
    used = number_in(group, group->second ? "memory.current" : "memory.usage_in_bytes", 0);
    files =
        sum_of(open_in(group, "memory.stat"), group->second ? second_names : first_names, 0);
    search->found = least(search->found, minus(limit, minus(used, files)));
}

/* Returns how much the machine has without swapping: more than what nobody uses, since files
 * are held in memory as long as nobody wants it. */
static uint64_t available_nbytes(const struct host *host)
{
    static const char *const names[] = { "MemAvailable:", NULL };
    uint64_t kib = sum_of(open_at(host, "/proc/meminfo"), names, UINT64_MAX);
    return least(times(kib, 1024), host->ram_nbytes);
}

/* Returns what the process may still map.  The fields of statm are pages: all, and the sixth
 * those of data and stacks. */
static uint64_t mappable_nbytes(const struct host *host)
{
    enum { ALL, DATA = 5, FIELDS };
    uint64_t field[FIELDS] = { 0 };
    char line[SHORT_NBYTES];
    FILE *file = open_at(host, "/proc/self/statm");
    const char *at = read_line(file, line, sizeof line) ? line : NULL;
    for (int i = 0; i < FIELDS && at; i++)
        at = read_number(at, &field[i]);
    close_if_open(file);
    uint64_t all = times(field[ALL], host->page_nbytes);
    uint64_t data = times(field[DATA], host->page_nbytes);
    return least(minus(host->addresses_nbytes, all), minus(host->data_nbytes, data));
}

uint64_t host_memory_nbytes(const struct host *host)
{
    struct search search = { .host = host, .controller = "memory", .look = look_at_memory };
    return least(least(available_nbytes(host), mappable_nbytes(host)), search_groups(&search));
}

/* ---- Threads ----------------------------------------------------------------------------- */

/* Finds how many CPUs a group gets: its share of time, in microseconds of each period. */
static void look_at_cpu(struct search *search, struct group *group)
{
    uint64_t number[2] = { 0 };
    if (group->second) {
        read_numbers(group, "cpu.max", number);
    } else {
        number[0] = number_in(group, "cpu.cfs_quota_us", 0);
        number[1] = number_in(group, "cpu.cfs_period_us", 0);
    }
    if (number[0] && number[1])
        search->found = least(search->found, (number[0] - 1) / number[1] + 1);
}

unsigned host_threads(const struct host *host)
{
    struct search search = { .host = host, .controller = "cpu", .look = look_at_cpu };
    uint64_t n = host->cpus;
    if (n > 1)
        n = least(n, search_groups(&search));
    if (n > 1)
        n = least(n, mappable_nbytes(host) / ADDRESSES_EACH_NBYTES);
    return n ? (unsigned)n : 1;
}

/* ---- This host --------------------------------------------------------------------------- */

/* Returns on how many CPUs this process may run.  The kernel refuses a set that is smaller than
 * its own, which is larger than usual on a large machine. */
static unsigned usable_cpus(void)
{
    for (unsigned most = CPU_SETSIZE; most <= CPUS_MOST; most *= 2) {
        cpu_set_t *set = CPU_ALLOC(most);
        if (!set)
            break;
        int error = sched_getaffinity(0, CPU_ALLOC_SIZE(most), set) ? errno : 0;
        int count = error ? 0 : CPU_COUNT_S(CPU_ALLOC_SIZE(most), set);
        CPU_FREE(set);
        if (count > 0)
            return (unsigned)count;
        if (error != EINVAL)
            break;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

/* Returns a limit of memory.  No process has more than all addresses. */
static uint64_t limited(int error, const struct rlimit *limit)
{
    return error || limit->rlim_cur == RLIM_INFINITY ? SIZE_MAX
                                                     : least(limit->rlim_cur, SIZE_MAX);
}

struct host host_now(void)
{
    const uint64_t unknown_nbytes = UINT64_C(4) << 30;
    const long pages = sysconf(_SC_PHYS_PAGES), page_nbytes = sysconf(_SC_PAGESIZE);
    const uint64_t each = page_nbytes > 0 ? (uint64_t)page_nbytes : 4096;
    struct rlimit addresses, data;
    struct host host = { .root = "", .page_nbytes = each, .cpus = usable_cpus() };
    host.ram_nbytes = pages > 0 ? times((uint64_t)pages, each) : unknown_nbytes;
    host.addresses_nbytes = limited(getrlimit(RLIMIT_AS, &addresses), &addresses);
    host.data_nbytes = limited(getrlimit(RLIMIT_DATA, &data), &data);
    return host;
}

uint64_t ram_nbytes(void)
{
    return host_now().ram_nbytes;
}

uint64_t perhaps_host_memory_nbytes(void)
{
    const int saved = errno;
    const struct host host = host_now();
    uint64_t nbytes = host_memory_nbytes(&host);
    errno = saved;
    return nbytes;
}

unsigned perhaps_host_threads(void)
{
    const int saved = errno;
    const struct host host = host_now();
    unsigned n = host_threads(&host);
    errno = saved;
    return n;
}

#endif
