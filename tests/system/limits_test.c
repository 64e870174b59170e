/* limits_test.c - how much memory and how many CPUs a process may use, by files of /proc and
 * /sys/fs/cgroup that a test writes: as they are on a machine and in a container, with limits
 * of either version of control groups, and with text that nobody would expect. */
#include "support.h"
#include <perhaps_build.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "system/limits.h"

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)

/* Where version 1 ends its unlimited groups: the largest number of whole pages. */
#define UNLIMITED "9223372036854771712\n"

/* ---- A machine of 64 GiB and 16 CPUs ----------------------------------------------------- */

static struct path root;
static struct host host;

/* Writes a file under the root, with its folders. */
static void put(const char *path, const char *text)
{
    char name[8192];
    const size_t begin = strlen(root.text);
    int n = snprintf(name, sizeof name, "%s%s", root.text, path);
    expect(n > 0 && (size_t)n < sizeof name);
    for (char *at = name + begin + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        expect(!mkdir(name, 0700) || errno == EEXIST);
        *at = '/';
    }
    FILE *file = fopen(name, "w");
    expect(file && fputs(text, file) >= 0 && !fclose(file));
}

/* Begins a machine on which nothing is limited. */
static void begin(void)
{
    static unsigned nroots;
    char name[32];
    snprintf(name, sizeof name, "root%u", nroots++);
    root = temp_path(name);
    expect(!mkdir(root.text, 0700));
    host = (struct host){ .root = root.text,
                          .ram_nbytes = 64 * GIB,
                          .page_nbytes = 4096,
                          .addresses_nbytes = SIZE_MAX,
                          .data_nbytes = SIZE_MAX,
                          .cpus = 16 };
    put("/proc/meminfo", "MemTotal:       67108864 kB\nMemFree:         1048576 kB\n"
                         "MemAvailable:   50331648 kB\nBuffers:          123456 kB\n");
    put("/proc/self/statm", "25600 1000 500 10 0 12800 0\n"); /* 100 MiB, 50 of them data */
    put("/proc/self/cgroup", "0::/\n");
}

static void expect_nbytes(uint64_t nbytes)
{
    uint64_t found = host_memory_nbytes(&host);
    if (found != nbytes)
        fail_msg("%ju bytes, not %ju [%s]", (uintmax_t)found, (uintmax_t)nbytes, scene_text());
}

static void expect_threads(unsigned n)
{
    unsigned found = host_threads(&host);
    if (found != n)
        fail_msg("%u threads, not %u [%s]", found, n, scene_text());
}

/* Writes the files of a group's memory in version 2. */
static void put_second(const char *group, const char *max, const char *current,
                       const char *stat)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/memory.max", group);
    put(path, max);
    snprintf(path, sizeof path, "%s/memory.current", group);
    put(path, current);
    snprintf(path, sizeof path, "%s/memory.stat", group);
    put(path, stat);
}

static void put_first(const char *group, const char *limit, const char *usage, const char *stat)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/memory.limit_in_bytes", group);
    put(path, limit);
    snprintf(path, sizeof path, "%s/memory.usage_in_bytes", group);
    put(path, usage);
    snprintf(path, sizeof path, "%s/memory.stat", group);
    put(path, stat);
}

/* ---- The machine ------------------------------------------------------------------------- */

TEST(test_machine)
{
    begin();
    scene("nothing limited");
    expect_nbytes(48 * GIB);
    expect_threads(16);
    host.ram_nbytes = 32 * GIB;
    scene("more available than there is");
    expect_nbytes(32 * GIB);
    put("/proc/meminfo", "MemTotal:       67108864 kB\n");
    scene("an old kernel");
    expect_nbytes(32 * GIB);
    root = temp_path("nothing");
    scene("no /proc");
    expect_nbytes(32 * GIB);
    expect_threads(16);
}

TEST(test_resource_limits)
{
    begin();
    scene("ulimit -v");
    host.addresses_nbytes = 1124 * MIB;
    expect_nbytes(1024 * MIB);
    expect_threads(5);
    host.addresses_nbytes = 100 * MIB;
    expect_nbytes(0);
    expect_threads(1);
    host.addresses_nbytes = 10 * MIB; /* less than is mapped */
    expect_nbytes(0);
    expect_threads(1);
    scene("ulimit -d");
    host.addresses_nbytes = SIZE_MAX;
    host.data_nbytes = 1024 * MIB;
    expect_nbytes(974 * MIB);
    expect_threads(5);
    scene("pages of 64 KiB");
    host.page_nbytes = 65536;
    expect_nbytes(224 * MIB);
    scene("strange statm");
    host.page_nbytes = 4096;
    put("/proc/self/statm", "");
    expect_nbytes(1024 * MIB);
    put("/proc/self/statm", "1 2 3 x 5 6\n");
    expect_nbytes(1024 * MIB);
    put("/proc/self/statm", "99999999999999999999999999 1 1 1 1 99999999999999999999\n");
    expect_nbytes(0);
}

/* ---- Version 2 --------------------------------------------------------------------------- */

TEST(test_second_version)
{
    const char *const slice = "/sys/fs/cgroup/system.slice";
    const char *const service = "/sys/fs/cgroup/system.slice/x.service";
    begin();
    put("/proc/self/cgroup", "0::/system.slice/x.service\n");
    put("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    put_second(slice, "max\n", "123456789\n", "inactive_file 0\n");
    put_second(service, "max\n", "123456789\n", "inactive_file 0\n");
    scene("no limit");
    expect_nbytes(48 * GIB);
    scene("of the group");
    put_second(service, "536870912\n", "104857600\n", "anon 104857600\n");
    expect_nbytes(412 * MIB);
    scene("pages of files are free, dirty or not; those of shared memory are not");
    put_second(service, "536870912\n", "524288000\n",
               "anon 104857600\nfile 419430400\nshmem 52428800\nfile_mapped 1\n"
               "inactive_anon 52428800\ninactive_file 209715200\nactive_file 157286400\n"
               "slab_reclaimable 1048576\nslab 9999999\nworkingset_refault_file 55\n");
    expect_nbytes(512 * MIB - 500 * MIB + 200 * MIB + 150 * MIB + 1 * MIB);
    scene("of the group around it");
    put_second(slice, "314572800\n", "209715200\n", "inactive_file 104857600\n");
    expect_nbytes(200 * MIB);
    scene("memory.high");
    put("/sys/fs/cgroup/system.slice/x.service/memory.high", "209715200\n");
    put_second(service, "536870912\n", "104857600\n", "");
    expect_nbytes(100 * MIB);
    scene("used up");
    put_second(service, "104857600\n", "104857700\n", "inactive_file 10\n");
    expect_nbytes(0);
    expect_threads(16);
}

TEST(test_second_version_cpu)
{
    begin();
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    scene("no limit");
    expect_threads(16);
    put("/sys/fs/cgroup/a/b/cpu.max", "250000 100000\n");
    scene("rounded up");
    expect_threads(3);
    put("/sys/fs/cgroup/a/b/cpu.max", "200000 100000\n");
    expect_threads(2);
    put("/sys/fs/cgroup/a/b/cpu.max", "1000 100000\n");
    scene("at least 1");
    expect_threads(1);
    put("/sys/fs/cgroup/a/b/cpu.max", "99900000 100000\n");
    scene("more than there are");
    expect_threads(16);
    put("/sys/fs/cgroup/a/cpu.max", "400000 50000\n");
    scene("of the group around it");
    expect_threads(8);
    host.cpus = 4;
    expect_threads(4);
    host.cpus = 0;
    expect_threads(1);
}

/* ---- Version 1 --------------------------------------------------------------------------- */

TEST(test_first_version)
{
    begin();
    put("/proc/self/cgroup",
        "12:name=systemd:/user.slice\n5:cpu,cpuacct:/u/s\n4:memory:/u/s\n3:cpuset:/\n");
    put_first("/sys/fs/cgroup/memory", UNLIMITED, "1\n", "");
    put_first("/sys/fs/cgroup/memory/u", UNLIMITED, "1\n", "");
    put_first("/sys/fs/cgroup/memory/u/s", UNLIMITED, "1\n", "");
    put("/sys/fs/cgroup/cpu,cpuacct/u/s/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu,cpuacct/u/s/cpu.cfs_period_us", "100000\n");
    scene("no limit");
    expect_nbytes(48 * GIB);
    expect_threads(16);
    scene("limits, of the group and all below it");
    put_first("/sys/fs/cgroup/memory/u/s", "536870912\n", "524288000\n",
              "inactive_file 1\nactive_file 1\nhierarchical_memory_limit 536870912\n"
              "total_inactive_file 209715200\ntotal_active_file 104857600\n");
    put("/sys/fs/cgroup/cpu,cpuacct/u/s/cpu.cfs_quota_us", "550000\n");
    expect_nbytes(312 * MIB);
    expect_threads(6);
    scene("of the group around it");
    put_first("/sys/fs/cgroup/memory/u", "209715200\n", "104857600\n", "");
    put("/sys/fs/cgroup/cpu,cpuacct/u/cpu.cfs_quota_us", "20000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/u/cpu.cfs_period_us", "20000\n");
    expect_nbytes(100 * MIB);
    expect_threads(1);
}

/* Version 1 for memory, where version 2 has no controller; and the other way round. */
TEST(test_both_versions)
{
    begin();
    put("/proc/self/cgroup", "4:memory:/m\n3:cpu:/c\n0::/unified.slice\n");
    put_first("/sys/fs/cgroup/memory/m", "1073741824\n", "0\n", "");
    put("/sys/fs/cgroup/unified/unified.slice/cpu.max", "300000 100000\n");
    put("/sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n");
    expect_nbytes(GIB);
    expect_threads(3);
    put_second("/sys/fs/cgroup/unified/unified.slice", "536870912\n", "0\n", "");
    expect_nbytes(512 * MIB);
}

/* ---- Containers -------------------------------------------------------------------------- */

/* What is mounted is the group of the container, or a group on the way to it. */
TEST(test_containers)
{
    begin();
    put_second("/sys/fs/cgroup", "536870912\n", "0\n", "");
    put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    const char *const paths[] = { "/",
                                  "",
                                  "/..",
                                  "/../..",
                                  "/../../other",
                                  "/docker/0123abcd",
                                  "/docker/0123abcd (deleted)",
                                  "///",
                                  "nonsense",
                                  "/.",
                                  "/a/../.." };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char line[128];
        snprintf(line, sizeof line, "0::%s\n", paths[i]);
        scene("%s", line);
        put("/proc/self/cgroup", line);
        expect_nbytes(512 * MIB);
        expect_threads(2);
    }
    scene("a group in the container, whose path begins at the root of the machine");
    put("/proc/self/cgroup", "0::/docker/0123abcd/inner/most\n");
    put_second("/sys/fs/cgroup/inner", "104857600\n", "0\n", "");
    put_second("/sys/fs/cgroup/inner/most", "max\n", "0\n", "");
    expect_nbytes(100 * MIB);
    scene("in version 1");
    begin();
    put("/proc/self/cgroup", "7:memory:/docker/0123abcd\n6:cpu,cpuacct:/docker/0123abcd\n");
    put_first("/sys/fs/cgroup/memory", "536870912\n", "0\n", "");
    put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "150000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    expect_nbytes(512 * MIB);
    expect_threads(2);
    scene("a group that was removed meanwhile");
    put("/proc/self/cgroup", "7:memory:/outer/inner (deleted)\n");
    put_first("/sys/fs/cgroup/memory/outer", "104857600\n", "0\n", "");
    expect_nbytes(100 * MIB);
    scene("names with colons");
    put("/proc/self/cgroup", "7:memory:/a:b\n");
    put_first("/sys/fs/cgroup/memory/a:b", "52428800\n", "0\n", "");
    expect_nbytes(50 * MIB);
}

/* ---- Strange text ------------------------------------------------------------------------ */

TEST(test_strange_numbers)
{
    static const struct {
        const char *max;
        uint64_t nbytes; /* 0: no limit */
    } cases[] = {
        { "", 0 },
        { "\n", 0 },
        { "max", 0 },
        { "-1\n", 0 },
        { "-5368709120\n", 0 },
        { "0x1000\n", 0 },
        { "512M\n", 0 },
        { "1e9\n", 0 },
        { "+1073741824\n", 0 },
        { "18446744073709551615\n", 0 },
        { "18446744073709551616\n", 0 },
        { "99999999999999999999999999999999999999999\n", 0 },
        { "68719476736\n", 0 }, /* as much as the machine has */
        { "1073741824", GIB },
        { "  1073741824 \n", GIB },
        { "0000000000000000000000000000001073741824\n", GIB },
        { "1073741824\n5\n", GIB },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin();
        scene("memory.max is %s", cases[i].max);
        put_second("/sys/fs/cgroup", cases[i].max, "0\n", "");
        expect_nbytes(cases[i].nbytes ? cases[i].nbytes : 48 * GIB);
    }
    begin();
    scene("a limit, and nothing else");
    put("/sys/fs/cgroup/memory.max", "1073741824\n");
    expect_nbytes(GIB);
    scene("strange use");
    put_second("/sys/fs/cgroup", "1073741824\n", "max\n", "inactive_file\nactive_file x\n\n");
    expect_nbytes(GIB);
    put_second("/sys/fs/cgroup", "1073741824\n", "99999999999999999999999\n",
               "inactive_file 99999999999999999999999\nactive_file 18446744073709551615\n");
    expect_nbytes(GIB);
    put_second("/sys/fs/cgroup", "1073741824\n", "99999999999999999999999\n",
               "xinactive_file 1073741824\ninactive_file_x 1073741824\n"); /* other names */
    expect_nbytes(0);
    static const char *const shares[] = { "",           "max",      "100000",
                                          "100000 x",   "x 100000", "0 0\n",
                                          "100000 0\n", "-1 100\n", "0 100000\n" };
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        scene("cpu.max is %s", shares[i]);
        put("/sys/fs/cgroup/cpu.max", shares[i]);
        expect_threads(16);
    }
    put("/sys/fs/cgroup/cpu.max", "99999999999999999999999 99999999999999999999999\n");
    expect_threads(1);
    put("/sys/fs/cgroup/cpu.max", "99999999999999999999999 1\n");
    expect_threads(16);
}

/* Writes a /proc/self/cgroup that has a very long line before its last one. */
static void put_long(const char *begins, size_t nbytes, const char *last)
{
    char *text = malloc(nbytes + 1024);
    expect(text);
    size_t at = (size_t)sprintf(text, "%s", begins);
    for (size_t i = 0; at < nbytes; i++, at++)
        text[at] = i % 2 ? 'x' : '/';
    sprintf(text + at, "\n%s", last);
    put("/proc/self/cgroup", text);
    free(text);
}

/* Writes what follows the first bytes of a file. */
static void append(const char *path, long nbytes, const char *text)
{
    char name[PATH_MAX];
    int n = snprintf(name, sizeof name, "%s%s", root.text, path);
    expect(n > 0 && (size_t)n < sizeof name && !truncate(name, nbytes));
    FILE *file = fopen(name, "a");
    expect(file && fputs(text, file) >= 0 && !fclose(file));
}

TEST(test_strange_groups)
{
    begin();
    put_second("/sys/fs/cgroup", "1073741824\n", "0\n", "");
    const char *const texts[] = { "",
                                  "\n",
                                  "0\n",
                                  "0:\n",
                                  ":\n",
                                  "4:memory\n",
                                  "4:memoryx:/\n",
                                  "4:xmemory,cpux:/\n",
                                  "a line without colons\n" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        scene("%s", texts[i]);
        put("/proc/self/cgroup", texts[i]);
        expect_nbytes(48 * GIB);
        expect_threads(16);
    }
    put("/proc/self/cgroup", "::\n");
    expect_nbytes(GIB);
    put("/proc/self/cgroup", "\n\n0::/"); /* no newline at the end */
    expect_nbytes(GIB);
    put("/proc/self/cgroup", "4:../../sys/fs/cgroup,memory:/\n");
    expect_nbytes(48 * GIB);
    for (size_t nbytes = 4080; nbytes <= 4200; nbytes++) {
        scene("a line of %zu bytes", nbytes);
        put_long("0::/", nbytes, "");
        uint64_t found = host_memory_nbytes(&host);
        expect(found == GIB || found == 48 * GIB);
        put_long("4:memory:/", nbytes, "0::/\n");
        expect_nbytes(GIB);
    }
    put_long("5:pids:/", 1 << 20, "0::/\n");
    expect_nbytes(GIB);
    scene("the rest of a long line, which looks like a line");
    put_first("/sys/fs/cgroup/memory", "104857600\n", "0\n", "");
    put_long("5:pids:/", 4095, "");
    append("/proc/self/cgroup", 4095, "4:memory:/\n");
    expect_nbytes(48 * GIB);
    scene("lists of controllers");
    put("/proc/self/cgroup", "4:memoryx:/\n5:xmemory:/\n6:mem,ory:/\n");
    expect_nbytes(48 * GIB);
    put("/proc/self/cgroup", "4:a,memory,b:/\n");
    expect_nbytes(100 * MIB);
}

/* ---- This process ------------------------------------------------------------------------ */

TEST(test_this_process)
{
    scene("the real ones");
    errno = E2BIG;
    uint64_t nbytes = perhaps_host_memory_nbytes();
    unsigned n = perhaps_host_threads();
    expect(errno == E2BIG);
    host = host_now();
    expect(nbytes > 0 && nbytes <= host.ram_nbytes);
    expect(n >= 1 && n <= host.cpus);
    expect(host.cpus <= (unsigned)sysconf(_SC_NPROCESSORS_CONF));
}
