/* host_test.c - proves that the limits of control groups are found, whichever version they have
 * and however deep the group lies, and that no text in those files does harm. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/host.h"
#include "perhaps_build.h"

static struct path root;

/* Writes a file below the root, and the folders that it lies in. */
static void put(const char *name, const char *text)
{
    struct path path;
    snprintf(path.text, sizeof path.text, "%.2000s%.1000s", root.text, name);
    for (char *at = path.text + strlen(root.text) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(path.text, 0700);
        *at = '/';
    }
    write_file(path.text, text, strlen(text));
}

static void begin(const char *groups)
{
    static unsigned number;
    char name[32];
    snprintf(name, sizeof name, "root%u", number++);
    root = temp_path(name);
    expect(!mkdir(root.text, 0700));
    put("/proc/self/cgroup", groups);
}

static uint64_t all_memory(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static unsigned all_cpus(void)
{
    return host_threads("/nowhere");
}

static void memory_is(uint64_t wanted)
{
    expect(host_memory_nbytes(root.text) == wanted);
}

static void threads_are(unsigned wanted)
{
    expect(host_threads(root.text) == (wanted < all_cpus() ? wanted : all_cpus()));
}

#define V2 "/sys/fs/cgroup"

TEST(test_version_2)
{
    begin("0::/a/b\n");
    memory_is(all_memory());
    threads_are(UINT32_MAX);
    put(V2 "/a/b/memory.max", "max\n");
    memory_is(all_memory());
    put(V2 "/a/memory.max", "50000000\n"); /* of a group above */
    memory_is(50000000);
    put(V2 "/a/memory.current", "20000000\n");
    memory_is(30000000);
    put(V2 "/a/memory.stat",
        "anon 1\nfile 9\nkernel 3\nactive_file 4000000\ninactive_file 6000000\nx 1\n");
    memory_is(40000000);
    put(V2 "/a/b/memory.max", "512000\n");
    put(V2 "/a/b/memory.current", "600000\n"); /* above its limit, for a moment */
    memory_is(0);
    put(V2 "/a/b/memory.current", "500000\n");
    put(V2 "/a/b/memory.stat", "inactive_file 900000\n");
    memory_is(512000);
    put(V2 "/a/b/memory.high", "100000\n");
    memory_is(100000);
    put(V2 "/a/b/cpu.max", "max 100000\n");
    threads_are(UINT32_MAX);
    put(V2 "/a/cpu.max", "100000 100000\n");
    threads_are(1);
    put(V2 "/a/cpu.max", "100001 100000\n");
    threads_are(2);
    put(V2 "/a/b/cpu.max", "1000 100000\n");
    threads_are(1);
}

/* In a container its own group is the root, or the file names one that is not there. */
TEST(test_root)
{
    const char *const groups[] = { "0::/\n", "0::/../../docker/0123\n", "0::/docker/0123\n" };
    for (unsigned i = 0; i < 3; i++) {
        begin(groups[i]);
        put(V2 "/memory.max", "123456789\n");
        put(V2 "/cpu.max", "50000 100000\n");
        memory_is(123456789);
        threads_are(1);
    }
}

TEST(test_version_1)
{
    begin("12:cpu,cpuacct:/a/b\n3:memory:/a/b\n1:name=systemd:/x\n0::/y\n");
    memory_is(all_memory());
    put(V2 "/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n"); /* none */
    memory_is(all_memory());
    put(V2 "/memory/memory.limit_in_bytes", "70000000\n");
    put(V2 "/memory/memory.usage_in_bytes", "20000000\n");
    put(V2 "/memory/memory.stat", "cache 9\ninactive_file 5\ntotal_inactive_file 1000000\n"
                                  "total_active_file 2000000\n");
    memory_is(53000000);
    put(V2 "/cpu/a/b/cpu.cfs_quota_us", "-1\n");
    put(V2 "/cpu/a/b/cpu.cfs_period_us", "100000\n");
    threads_are(UINT32_MAX);
    put(V2 "/cpu/a/cpu.cfs_quota_us", "100000\n");
    put(V2 "/cpu/a/cpu.cfs_period_us", "100000\n");
    threads_are(1);
    put(V2 "/unified/y/memory.max", "4000000\n"); /* both versions at once */
    memory_is(4000000);
}

/* Neither odd texts nor long ones do harm; a limit that cannot be read is none. */
TEST(test_odd)
{
    static const char *const texts[] = { "",
                                         "\n",
                                         "max",
                                         "-1",
                                         "x",
                                         "99999999999999999999999",
                                         "18446744073709551615",
                                         " 5",
                                         "max max max",
                                         "0 0" };
    char *longest = malloc(100000);
    expect(longest != NULL);
    memset(longest, '/', 99999);
    longest[99999] = '\0';
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        begin("0::/a\n::\n:\n\n0:\nx:y:z\n1:cpu:/a\n2:memory:/a\n");
        put(V2 "/a/memory.max", texts[i]);
        put(V2 "/a/cpu.max", texts[i]);
        put(V2 "/a/memory.stat", texts[i]);
        put(V2 "/memory/a/memory.limit_in_bytes", texts[i]);
        put(V2 "/cpu/a/cpu.cfs_quota_us", texts[i]);
        put(V2 "/cpu/a/cpu.cfs_period_us", "0");
        const uint64_t memory = host_memory_nbytes(root.text);
        expect(memory == all_memory() || !strcmp(texts[i], "0 0"));
        expect(host_threads(root.text) >= 1);
    }
    begin(longest);
    memory_is(all_memory());
    longest[0] = '0';
    longest[1] = longest[2] = ':';
    put("/proc/self/cgroup", longest);
    memory_is(all_memory());
    expect(host_threads(root.text) >= 1);
    free(longest);
}

/* What ulimit -v leaves, of this process. */
static int limited(void *context)
{
    const uint64_t before = UINT64_C(64) << 40;
    const struct rlimit limit = { .rlim_cur = before, .rlim_max = before };
    (void)context;
    if (setrlimit(RLIMIT_AS, &limit))
        return 1;
    const uint64_t memory = perhaps_host_memory_nbytes();
    const struct rlimit less = { .rlim_cur = (rlim_t)3 << 30, .rlim_max = before };
    if (setrlimit(RLIMIT_AS, &less))
        return 2;
    return memory <= all_memory() && perhaps_host_memory_nbytes() < less.rlim_cur ? 0 : 3;
}

TEST(test_address_space)
{
    if (SANITIZED)
        skip(); /* which reserves more addresses than any limit */
    expect(run_in_child(limited, NULL, false) == 0);
    expect(perhaps_host_threads() >= 1 && perhaps_host_memory_nbytes() <= all_memory());
}
