/* cluster_pure_test.c - proves what the cluster client computes without a server: how it reads
 * the address (URL) of a filter, which slot a Redis key has, and what each error reply asks the
 * client to do.  It fails when a wrong address is taken, when a key is sent to a node that does
 * not own it, or when an error is tried again that never ends (or given up though it would). */
#include "support.h"

#include <stdio.h>
#include <string.h>

#include "address.h"
#include "failing_memory.h"
#include "numbers.h"
#include "slots.h"

/* ---- Addresses -------------------------------------------------------------------------- */

/* Returns whether both are NULL or the same text. */
static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* The members that are texts of their own, in any order. */
enum { TEXTS = 10 };
static void texts_of(const struct address *a, const char *texts[TEXTS])
{
    const char *const all[TEXTS] = {
        a->user, a->password, a->name,   a->cacert,        a->cert,
        a->key,  a->sni,      a->client, a->password_file, a->sentinel_password_file,
    };
    memcpy(texts, all, sizeof all);
}

/* Compares all members but the servers. */
static void expect_same(const struct address *a, const struct address *wanted)
{
    const char *texts[TEXTS], *wanted_texts[TEXTS];
    texts_of(a, texts);
    texts_of(wanted, wanted_texts);
    for (size_t i = 0; i < TEXTS; i++)
        expect(same_text(texts[i], wanted_texts[i]));
    expect(same_text(a->master, wanted->master) && a->sentinel == !!wanted->master);
    expect(a->secure == wanted->secure && a->insecure == wanted->insecure);
    expect(a->redisson == wanted->redisson && a->codec == wanted->codec);
    expect(a->timeout_ms == wanted->timeout_ms && a->patience_ms == wanted->patience_ms);
    expect(a->deadline_ms == wanted->deadline_ms && a->database == wanted->database);
    expect(a->replicas_given == wanted->replicas_given && a->replicas == wanted->replicas);
    expect(a->acknowledge_given == wanted->acknowledge_given);
    expect(a->acknowledge == wanted->acknowledge);
}

/* Checks that an address has no values: after a refusal or a release nothing may be left. */
static void expect_empty(const struct address *a)
{
    expect(!a->scheme && !a->servers && a->nservers == 0);
    expect_same(a, &(struct address){ .scheme = NULL });
}

/* Returns whether there is one server, and it is at "host:port". */
static bool is_at(const struct address *a, const char *where)
{
    char text[ENDPOINT_NBYTES];
    endpoint_show(a->servers, text);
    return a->nservers == 1 && strcmp(text, where) == 0;
}

/* Checks that a URL of one server is taken, and read as 'wanted'. */
static void expect_address(const char *url, const char *where, const struct address *wanted)
{
    struct address a;
    const char *problem = address_read(url, &a);
    scene("%s: %s", url, problem ? problem : "taken");
    expect(!problem && is_at(&a, where));
    expect_same(&a, wanted);
    address_release(&a);
    expect_empty(&a);
}

/* Where the server is in most rows below. */
#define AT_H "h:6379"

/* Hosts of all sorts, percent codes, and each setting at the ends of its range. */
TEST(test_addresses)
{
    static const struct {
        const char *url, *where;
        struct address wanted;
    } good[] = {
        { "redis://h/n", AT_H, { .name = "n" } },
        { "valkey://h/n", AT_H, { .name = "n" } },
        { "redis://127.0.0.1:7000/urls", "127.0.0.1:7000", { .name = "urls" } },
        { "redis://[::1]/n", "[::1]:6379", { .name = "n" } },
        { "redis://[fe80::1%25eth0]:1/n", "[fe80::1%eth0]:1", { .name = "n" } },
        { "redis://:p@h:65535/n", "h:65535", { .password = "p", .name = "n" } },
        { "redis://u@h/n", AT_H, { .user = "u", .name = "n" } },
        { "redis://u:@h/n", AT_H, { .user = "u", .password = "", .name = "n" } },
        { "redis://u%3a%40:a%2Fb%3a:c@d@h/n",
          AT_H,
          { .user = "u:@", .password = "a/b::c@d", .name = "n" } },
        { "redis://:a,b@h/n", AT_H, { .password = "a,b", .name = "n" } },
        { "redis://h/a%3Fb%25c", AT_H, { .name = "a?b%c" } },
        { "redis://h/%c3%a4", AT_H, { .name = "\xc3\xa4" } },
        { "redis://h/n?timeout=2s&patience=1m&deadline=3h",
          AT_H,
          { .name = "n",
            .timeout_ms = 2000,
            .patience_ms = 60000,
            .deadline_ms = 3 * 3600 * 1000 } },
        { "redis://h/n?patience=24h&timeout=1ms",
          AT_H,
          { .name = "n", .timeout_ms = 1, .patience_ms = 24 * 3600 * 1000 } },
        { "redis://h/n?replicas=yes&acknowledge=16",
          AT_H,
          { .name = "n",
            .replicas_given = true,
            .replicas = true,
            .acknowledge_given = true,
            .acknowledge = 16 } },
        { "redis://h/n?acknowledge=0&replicas=no&layout=perhaps",
          AT_H,
          { .name = "n", .replicas_given = true, .acknowledge_given = true } },
        { "redis://h/a/{b} c%20?layout=redisson",
          AT_H,
          { .name = "a/{b} c ", .redisson = true } },
        { "redis://h/n?layout=redisson&codec=string",
          AT_H,
          { .name = "n", .redisson = true, .codec = CODEC_STRING } },
        { "redis://h/n?codec=kryo5&layout=redisson",
          AT_H,
          { .name = "n", .redisson = true, .codec = CODEC_KRYO5 } },
        { "redis://h/n?layout=redisson&codec=json",
          AT_H,
          { .name = "n", .redisson = true, .codec = CODEC_JSON } },
        { "redis://h/n?db=0", AT_H, { .name = "n" } },
        { "redis://h/n?db=1000000&client=me-1",
          AT_H,
          { .name = "n", .database = 1000000, .client = "me-1" } },
        { "redis://u@h/n?password-file=/run/a%26b",
          AT_H,
          { .user = "u", .name = "n", .password_file = "/run/a&b" } },
        { "rediss://h/n", AT_H, { .secure = true, .name = "n" } },
        { "valkeys://h/n?insecure=no", AT_H, { .secure = true, .name = "n" } },
        { "rediss://h/n?insecure=yes",
          AT_H,
          { .secure = true, .insecure = true, .name = "n" } },
        { "rediss://h/n?cacert=/a&cert=/b&key=/c&sni=d.e",
          AT_H,
          { .secure = true,
            .name = "n",
            .cacert = "/a",
            .cert = "/b",
            .key = "/c",
            .sni = "d.e" } },
        { "unix:///run/redis.sock/n", "/run/redis.sock", { .name = "n" } },
        { "redis+unix://u:p@/a%20b%2f/n?db=1",
          "/a b/",
          { .user = "u", .password = "p", .name = "n", .database = 1 } },
        { "unix:///s/a%2Fb?layout=redisson", "/s", { .name = "a/b", .redisson = true } },
        { "redis+sentinel://h/n?master=m", "h:26379", { .name = "n", .master = "m" } },
        { "rediss+sentinel://:p@h:1/n?master=m&sentinel-password-file=/f",
          "h:1",
          { .secure = true,
            .password = "p",
            .name = "n",
            .master = "m",
            .sentinel_password_file = "/f" } },
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        expect_address(good[i].url, good[i].where, &good[i].wanted);
}

/* Several servers, each with its own port, in their order. */
TEST(test_servers)
{
    static const char *const wanted[] = { "a:7000", "b:6379", "[::1]:1", "127.0.0.1:6379" };
    struct address a;
    char text[ENDPOINT_NBYTES];
    expect(!address_read("redis://u:p@a:7000,b,[::1]:1,127.0.0.1/n", &a));
    expect(a.nservers == 4 && same_text(a.user, "u") && same_text(a.name, "n"));
    for (unsigned i = 0; i < 4; i++) {
        endpoint_show(&a.servers[i], text);
        expect(strcmp(text, wanted[i]) == 0);
    }
    address_release(&a);
}

/* Where announced servers are reached, in the order of the address. */
TEST(test_maps)
{
    static const char *const hosts[][2] = { { "a", "b" }, { "c", "d" }, { "::1", "e" } };
    static const unsigned ports_wanted[][2] = { { 1, 2 }, { 0, 0 }, { 3, 0 } };
    struct address a;
    expect(!address_read("redis://h/n?map=a:1/b:2&db=3&map=c/d&map=[::1]:3/e", &a));
    expect(a.nmaps == 3 && a.database == 3);
    for (unsigned i = 0; i < 3; i++) {
        expect(same_text(a.maps[i].from.host, hosts[i][0]));
        expect(same_text(a.maps[i].to.host, hosts[i][1]));
        expect(a.maps[i].from.port == ports_wanted[i][0]);
        expect(a.maps[i].to.port == ports_wanted[i][1]);
    }
    address_release(&a);
}

/* Checks that a URL is refused by one line that contains 'about'.  The struct is filled with
 * noise before, so that a member that is not set is noticed. */
static void expect_refusal(const char *url, const char *about)
{
    struct address a;
    memset(&a, 0xa5, sizeof a);
    const char *problem = address_read(url, &a);
    scene("%s: %s; about: %s", url, problem ? problem : "taken", about);
    expect(problem && strstr(problem, about) && !strchr(problem, '\n'));
    expect_empty(&a);
}

/* Each address is refused by one line that contains the text beside it, and leaves nothing. */
TEST(test_bad_addresses)
{
    static const char *const bad[][2] = {
        { "", "begins with redis://" },
        { "http://h/n", "begins with redis://" },
        { "redis:/h/n", "begins with redis://" },
        { "redis+unix:/s/n", "begins with redis://" },
        { "redis://h?x", "settings" },
        { "redis://", "no host" },
        { "redis:///n", "no host" },
        { "redis://:6379/n", "no host" },
        { "redis://:p@/n", "no host" },
        { "redis://[]/n", "no host" },
        { "redis://h%20h/n", "a host has letters" },
        { "redis://h]/n", "a host has letters" },
        { "redis://h%c3%a4/n", "a host has letters" },
        { "redis://h%2f/n", "a host has letters" },
        { "redis://[::1/n", "the ]" },
        { "redis://[::1]7000/n", "behind the ]" },
        { "redis://h:/n", "no port" },
        { "redis://h:0/n", "no port" },
        { "redis://h:65536/n", "no port" },
        { "redis://h:18446744073709557999/n", "no port" },
        { "redis://h:+1/n", "no port" },
        { "redis://h:1 /n", "no port" },
        { "redis://::1/n", "in brackets" },
        { "redis://2001:db8::1:7000/n", "in brackets" },
        { "redis://a,/n", "no host" },
        { "redis://,a/n", "no host" },
        { "redis://a,,b/n", "no host" },
        { "redis://a:1,b:x/n", "no port" },
        { "redis://a%2cb/n", "a host has letters" },
        { "unix://h/s/n", "the path of a socket" },
        { "unix:///n", "the path of a socket" },
        { "unix://", "the path of a socket" },
        { "unix:///s%0a/n", "control" },
        { "unix:///s%00/n", "%00" },
        { "unix:///s/", "no name" },
        { "redis+sentinel://h/n", "master=NAME" },
        { "redis://h/n?master=m", "redis+sentinel://" },
        { "redis://h/n?sentinel-password-file=f", "redis+sentinel://" },
        { "redis://h/n?cacert=a", "rediss://" },
        { "redis://h/n?insecure=yes", "rediss://" },
        { "unix:///s/n?sni=a", "rediss://" },
        { "rediss://h/n?cert=a", "belong together" },
        { "rediss://h/n?key=a", "belong together" },
        { "rediss://h/n?insecure=yes&sni=a", "insecure=yes" },
        { "rediss://h/n?insecure=yes&cacert=a", "insecure=yes" },
        { "rediss://h/n?insecure=1", "yes or no" },
        { "rediss://h/n?cacert=", "stands nothing" },
        { "rediss://h/n?cacert", "stands nothing" },
        { "redis://:p@h/n?password-file=f", "leave one of them out" },
        { "redis://h/n?map=", "map is OLD:PORT/NEW:PORT" },
        { "redis://h/n?map=a", "map is OLD:PORT/NEW:PORT" },
        { "redis://h/n?map=a/b:0", "map is OLD:PORT/NEW:PORT" },
        { "redis://h/n?map=a/b:1", "for all ports" },
        { "redis://h/n?db=-1", "db is" },
        { "redis://h/n?db=1000001", "db is" },
        { "redis://h/n?db=", "db is" },
        { "redis://h/n?client=a%20b", "without blanks" },
        { "redis://h/n?client=a%0ab", "without blanks" },
        { "redis://h/n?deadline=1", "unit" },
        { "redis://@h/n", "neither user nor password" },
        { "redis://:@h/n", "neither user nor password" },
        { "redis://h", "no name" },
        { "redis://h/", "no name" },
        { "redis://h/?layout=redisson", "no name" },
        { "redis://h/a%", "two hexadecimal digits" },
        { "redis://h/a%4", "two hexadecimal digits" },
        { "redis://h/a%4g", "two hexadecimal digits" },
        { "redis://h/a%g4", "two hexadecimal digits" },
        { "redis://:a%zz@h/n", "two hexadecimal digits" },
        { "redis://a%:b@h/n", "two hexadecimal digits" },
        { "redis://h%/n", "two hexadecimal digits" },
        { "redis://h/a%00b", "%00" },
        { "redis://:%00@h/n", "%00" },
        { "redis://h/a/b", "none of / { }" },
        { "redis://h/a%2fb", "none of / { }" },
        { "redis://h/{a", "none of / { }" },
        { "redis://h/a}", "none of / { }" },
        { "redis://h/a b", "none of / { }" },
        { "redis://h/a%0ab", "control" },
        { "redis://h/a%7f", "control" },
        { "redis://h/a%1f?layout=redisson", "control" },
        { "redis://h/n?", "settings" },
        { "redis://h/n?Timeout=2s", "settings" },
        { "redis://h/n?timeout=2s&", "settings" },
        { "redis://h/n?&timeout=2s", "settings" },
        { "redis://h/n?time=2s", "settings" },
        { "redis://h/n?timeout=2s&timeout=2s", "twice" },
        { "redis://h/n?timeout", "unit" },
        { "redis://h/n?timeout=", "unit" },
        { "redis://h/n?timeout=2", "unit" },
        { "redis://h/n?timeout=s", "unit" },
        { "redis://h/n?timeout=0s", "unit" },
        { "redis://h/n?timeout=2 s", "unit" },
        { "redis://h/n?timeout=1.5s", "unit" },
        { "redis://h/n?timeout=-1s", "unit" },
        { "redis://h/n?timeout=1d", "unit" },
        { "redis://h/n?patience=25h", "unit" },
        { "redis://h/n?patience=18446744073709551617ms", "unit" },
        { "redis://h/n?replicas", "yes or no" },
        { "redis://h/n?replicas=maybe", "yes or no" },
        { "redis://h/n?acknowledge=17", "0 to 16" },
        { "redis://h/n?acknowledge=", "0 to 16" },
        { "redis://h/n?acknowledge=-1", "0 to 16" },
        { "redis://h/n?layout=Redisson", "perhaps or redisson" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_refusal(bad[i][0], bad[i][1]);
}

/* Returns 'nbytes' times '0' between two texts; the next call overwrites it. */
static const char *padded(const char *before, size_t nbytes, const char *behind)
{
    static char text[2000];
    snprintf(text, sizeof text, "%s%0*d%s", before, (int)nbytes, 0, behind);
    return text;
}

/* The limits are those of cluster/address.c, each tried at the limit and one beyond. */
TEST(test_longest)
{
    struct address a;
    expect(!address_read(padded("redis://h/", 200, ""), &a) && strlen(a.name) == 200);
    address_release(&a);
    expect_refusal(padded("redis://h/", 201, ""), "200 bytes");
    expect(!address_read(padded("redis://h/", 1000, "?layout=redisson"), &a));
    expect(strlen(a.name) == 1000);
    address_release(&a);
    expect_refusal(padded("redis://h/", 1001, "?layout=redisson"), "1000 bytes");
    expect(!address_read(padded("redis://", 255, "/n"), &a));
    expect(strlen(a.servers->host) == 255);
    address_release(&a);
    expect(!address_read(padded("unix:///", 106, "/n"), &a));
    expect(strlen(a.servers->host) == 107);
    address_release(&a);
    expect_refusal(padded("unix:///", 107, "/n"), "107 bytes");
    char many_servers[2 * 65 + 20] = "redis://a";
    for (unsigned i = 1; i < 64; i++)
        strcat(many_servers, ",a");
    strcat(many_servers, "/n");
    expect(!address_read(many_servers, &a) && a.nservers == 64);
    address_release(&a);
    memcpy(many_servers + strlen(many_servers) - 2, ",a/n", 5);
    expect_refusal(many_servers, "64 servers");
    expect_refusal(padded("redis://", 256, "/n"), "255 characters");
}

/* A password of any bytes but 0 comes back as it was, with every byte percent-encoded. */
TEST(test_encoded)
{
    struct rng rng = rng_for(__func__);
    for (unsigned trial = 0; trial < many(2000); trial++) {
        char plain[21] = "", url[100] = "redis://:", *to = url + strlen(url);
        size_t nbytes = 1 + (size_t)rng_below(&rng, 20);
        for (size_t i = 0; i < nbytes; i++) {
            plain[i] = (char)(1 + rng_below(&rng, 255));
            to +=
                sprintf(to, rng_below(&rng, 2) ? "%%%02x" : "%%%02X", (unsigned char)plain[i]);
        }
        sprintf(to, "@h/n");
        expect_address(url, AT_H, &(struct address){ .password = plain, .name = "n" });
    }
}

/* Fails each allocation of address_read() in turn: each must be reported and leave nothing. */
TEST(test_address_memory)
{
    struct address a;
    const char *problem = no_memory;
    unsigned number = 0;
    for (; problem == no_memory && number < 20; number++) {
        scene("call %u", number + 1);
        fail_memory(number + 1);
        problem = address_read("redis://u:p@h/n?client=c", &a);
        fail_memory(0);
        if (problem)
            expect_empty(&a);
    }
    /* five texts, the servers and a host are allocated: the seventh try succeeds */
    expect(!problem && number == 7);
    expect(same_text(a.user, "u") && same_text(a.password, "p") && same_text(a.name, "n"));
    address_release(&a);
}

/* A number that is refused leaves *n as it was.  18446744073709551616 is 2^64. */
TEST(test_digits)
{
    uint64_t n = 4711;
    expect(!read_digits("", 0, 9, &n) && !read_digits("6", 1, 5, &n));
    expect(!read_digits("10", 2, 9, &n) && !read_digits("1x", 2, 99, &n));
    expect(!read_digits("18446744073709551616", 20, UINT64_MAX, &n) && n == 4711);
    expect(read_digits("5x", 1, 5, &n) && n == 5);
    expect(read_digits("0099", 4, 99, &n) && n == 99);
    expect(read_digits("18446744073709551615", 20, UINT64_MAX, &n) && n == UINT64_MAX);
}

/* ---- Slots ------------------------------------------------------------------------------ */

/* The slots are those that Redis 7.0 tells (CLUSTER KEYSLOT). */
TEST(test_known_slots)
{
    static const struct {
        const char *key;
        unsigned slot;
    } known[] = {
        { "", 0 },
        { "123456789", 12739 },
        { "perhaps:{urls}", 2283 },
        { "perhaps:{urls/0}", 10411 },
        { "perhaps:{urls/1023}:1", 7874 },
        { "{}a", 10875 },
        { "{}{a}", 13650 },
        { "a{b", 13340 },
        { "a{b}{c}", 3300 },
        { "a}b{c}", 7365 },
        { "{{a}}", 10276 },
        { "foo{}{bar}", 8363 },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        scene("%s", known[i].key);
        expect(slot_of(known[i].key, strlen(known[i].key)) == known[i].slot);
    }
}

/* Returns the CRC of Redis by long division, one bit at a time: x^16 times the message, modulo
 * x^16 + x^12 + x^5 + 1.  The client takes a byte at a time, and shares no code with this. */
static unsigned remainder_of(const char *bytes, size_t nbytes)
{
    unsigned rest = 0;
    for (size_t bit = 0; bit < 8 * (nbytes + 2); bit++) {
        unsigned in = bit / 8 < nbytes ? (unsigned)bytes[bit / 8] >> (7 - bit % 8) & 1 : 0;
        rest = rest << 1 | in;
        if (rest & 0x10000)
            rest ^= 0x11021;
    }
    return rest;
}

/* The slot is that of the hash tag in braces, whatever bytes stand around it. */
TEST(test_any_slots)
{
    struct rng rng = rng_for(__func__);
    for (unsigned trial = 0; trial < many(20000); trial++) {
        char tag[16], key[64];
        size_t ntag = 1 + (size_t)rng_below(&rng, sizeof tag);
        for (size_t i = 0; i < ntag; i++)
            do
                tag[i] = (char)rng_next(&rng);
            while (tag[i] == '{' || tag[i] == '}');
        unsigned wanted = remainder_of(tag, ntag) % 16384;
        expect(slot_of(tag, ntag) == wanted);
        size_t n = (size_t)sprintf(key, "perhaps:{");
        memcpy(key + n, tag, ntag);
        n += ntag;
        expect(slot_of(key, n) == remainder_of(key, n) % 16384);
        n += (size_t)sprintf(key + n, "}:{%u}", trial % 100);
        expect(slot_of(key, n) == wanted);
    }
}

/* ---- What errors ask for ---------------------------------------------------------------- */

/* The texts are those of Redis and Valkey, or strange ones that begin like them. */
TEST(test_errors)
{
    static const struct {
        const char *text;
        struct redirection wanted;
    } known[] = {
        { "MOVED 3999 127.0.0.1:6381", { REPLY_MOVED, true, 3999, { "127.0.0.1", 6381 } } },
        { "MOVED 0 ::1:1", { REPLY_MOVED, true, 0, { "::1", 1 } } },
        { "MOVED 16383 a.example:65535", { REPLY_MOVED, true, 16383, { "a.example", 65535 } } },
        { "MOVED 1 :7000", { REPLY_MOVED, true, 1, { "", 7000 } } },
        { "MOVED 1 ?:7000", { .verdict = REPLY_AGAIN, .refresh = true } },
        { "ASK 3999 127.0.0.1:6381", { REPLY_ASK, false, 3999, { "127.0.0.1", 6381 } } },
        { "ASK 1 :7000", { REPLY_ASK, false, 1, { "", 7000 } } },
        { "ASK 1 ?:7000", { .verdict = REPLY_AGAIN, .refresh = true } },
        { "MOVED", { .verdict = REPLY_STRANGE } },
        { "MOVED ", { .verdict = REPLY_STRANGE } },
        { "MOVED 1", { .verdict = REPLY_STRANGE } },
        { "MOVED 1 a", { .verdict = REPLY_STRANGE } },
        { "MOVED 1 a:", { .verdict = REPLY_STRANGE } },
        { "MOVED 1 a:0", { .verdict = REPLY_STRANGE } },
        { "MOVED 1 a:65536", { .verdict = REPLY_STRANGE } },
        { "MOVED 1 a:70 0", { .verdict = REPLY_STRANGE } },
        { "MOVED 1 a b:700", { .verdict = REPLY_STRANGE } },
        { "MOVED 1 a\x1b:700", { .verdict = REPLY_STRANGE } },
        { "MOVED 1:700", { .verdict = REPLY_STRANGE } },
        { "MOVED 16384 a:1", { .verdict = REPLY_STRANGE } },
        { "MOVED -1 a:1", { .verdict = REPLY_STRANGE } },
        { "MOVED x a:1", { .verdict = REPLY_STRANGE } },
        { "MOVEDX 1 a:1", { .verdict = REPLY_STRANGE } },
        { "ASK 99999999999999999999 a:1", { .verdict = REPLY_STRANGE } },
        { "ASKING 1 a:1", { .verdict = REPLY_STRANGE } },
        { "TRYAGAIN Multiple keys request during rehashing of slot",
          { .verdict = REPLY_AGAIN } },
        { "CLUSTERDOWN Hash slot not served", { .verdict = REPLY_AGAIN, .refresh = true } },
        { "LOADING Redis is loading the dataset in memory", { .verdict = REPLY_AGAIN } },
        { "MASTERDOWN Link with MASTER is down", { .verdict = REPLY_AGAIN, .refresh = true } },
        { "BUSY Redis is busy running a script.", { .verdict = REPLY_AGAIN } },
        { "BUSYKEY Target key name already exists.", { .verdict = REPLY_STRANGE } },
        { "READONLY You can't write against a read only replica.",
          { .verdict = REPLY_AGAIN, .refresh = true } },
        { "ERR max number of clients reached", { .verdict = REPLY_AGAIN } },
        { "ERR max number of clients + cluster connections reached",
          { .verdict = REPLY_AGAIN } },
        { "OOM command not allowed when used memory > 'maxmemory'.",
          { .verdict = REPLY_FULL } },
        { "WRONGTYPE Operation against a key holding the wrong kind",
          { .verdict = REPLY_WRONGTYPE } },
        { "NOAUTH Authentication required.", { .verdict = REPLY_REFUSED } },
        { "WRONGPASS invalid username-password pair", { .verdict = REPLY_REFUSED } },
        { "NOPERM this user has no permissions", { .verdict = REPLY_REFUSED } },
        { "DENIED Redis is running in protected mode", { .verdict = REPLY_REFUSED } },
        { "MISCONF Redis is configured to save RDB snapshots", { .verdict = REPLY_REFUSED } },
        { "NOREPLICAS Not enough good replicas to write.", { .verdict = REPLY_REFUSED } },
        { "ERR unknown command 'foo', with args beginning with: ",
          { .verdict = REPLY_REFUSED } },
        { "ERR unknown subcommand 'foo'. Try CLUSTER HELP.", { .verdict = REPLY_REFUSED } },
        { "ERR This instance has cluster support disabled", { .verdict = REPLY_REFUSED } },
        { "ERR invalid password", { .verdict = REPLY_REFUSED } },
        { "ERR syntax error", { .verdict = REPLY_STRANGE } },
        { "ERR", { .verdict = REPLY_STRANGE } },
        { "OO", { .verdict = REPLY_STRANGE } },
        { "", { .verdict = REPLY_STRANGE } },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct redirection r, wanted = known[i].wanted;
        char *text = strdup(known[i].text); /* a sanitizer sees a read behind its end */
        expect(text);
        scene("%s", text);
        redirection_read(text, &r);
        free(text);
        expect(r.verdict == wanted.verdict && r.refresh == wanted.refresh);
        expect(r.slot == wanted.slot && endpoint_equal(&r.to, &wanted.to));
    }
}

/* A host of 255 characters is taken; a longer one is refused, and is not cut. */
TEST(test_long_hosts)
{
    struct redirection r;
    const char *text = padded("MOVED 1 ", 255, ":7000");
    redirection_read(text, &r);
    expect(r.verdict == REPLY_MOVED && strlen(r.to.host) == 255);
    text = padded("MOVED 1 ", 256, ":7000");
    redirection_read(text, &r);
    expect(r.verdict == REPLY_STRANGE && r.to.port == 0);
}
