/* address_fuzz.c - fuzzes address_read() with any text.  The text is refused with a line that
 * tells the problem.  Or it is read; then all values are in the ranges that address.h gives,
 * and the address has the same values when it is written out and read again. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static bool is_one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

/* Checks that all values are in their ranges. */
static void check_address(const struct address *a)
{
    size_t nbytes = strlen(a->name);
    check(nbytes >= 1 && nbytes <= (a->redisson ? 1000 : 200));
    for (size_t i = 0; i < nbytes; i++) {
        check((unsigned char)a->name[i] >= 32 && a->name[i] != 127);
        check(a->redisson || !is_one_of(a->name[i], " /{}"));
    }
    check(*a->host && strlen(a->host) <= 255);
    for (const char *c = a->host; *c; c++)
        check(*c > 32 && *c < 127);
    check(a->port >= 1 && a->port <= 65535);
    check(!a->user || (*a->user && a->password));
    check(a->timeout_ms <= 24 * 3600000 && a->patience_ms <= 24 * 3600000);
    check(a->acknowledge <= 16 && (a->acknowledge_given || !a->acknowledge));
    check(a->replicas_given || !a->replicas);
}

/* Writes each byte of the text as a %-code.  Returns the end of what it wrote. */
static char *encode(char *to, const char *text)
{
    for (; *text; text++)
        to += sprintf(to, "%%%02x", (unsigned char)*text);
    return to;
}

/* Returns the address as text, to be freed; 'nbytes' is the length of the text that it was read
 * from. */
static char *write_out(const struct address *a, size_t nbytes)
{
    char *url = malloc(3 * nbytes + 500), *to = url;
    check(url);
    to += sprintf(to, "redis://");
    if (a->password) {
        to = encode(to, a->user ? a->user : "");
        to += sprintf(to, ":");
        to = encode(to, a->password);
        to += sprintf(to, "@");
    }
    to += sprintf(to, "[");
    to = encode(to, a->host);
    to += sprintf(to, "]:%u/", a->port);
    to = encode(to, a->name);
    to += sprintf(to, "?layout=%s", a->redisson ? "redisson" : "perhaps");
    if (a->codec)
        to += sprintf(to, "&codec=%s",
                      a->codec == CODEC_STRING  ? "string"
                      : a->codec == CODEC_KRYO5 ? "kryo5"
                                                : "json");
    if (a->timeout_ms)
        to += sprintf(to, "&timeout=%ums", a->timeout_ms);
    if (a->patience_ms)
        to += sprintf(to, "&patience=%ums", a->patience_ms);
    if (a->replicas_given)
        to += sprintf(to, "&replicas=%s", a->replicas ? "yes" : "no");
    if (a->acknowledge_given)
        sprintf(to, "&acknowledge=%u", a->acknowledge);
    return url;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void check_same(const struct address *a, const struct address *b)
{
    check(same_text(a->host, b->host) && same_text(a->name, b->name) && a->port == b->port);
    check(same_text(a->user, b->user) && same_text(a->password, b->password));
    check(a->timeout_ms == b->timeout_ms && a->patience_ms == b->patience_ms);
    check(a->replicas_given == b->replicas_given && a->replicas == b->replicas);
    check(a->acknowledge_given == b->acknowledge_given && a->acknowledge == b->acknowledge);
    check(a->redisson == b->redisson && a->codec == b->codec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    char *url = malloc(nbytes + 1);
    struct address a, again;
    check(url);
    memcpy(url, data, nbytes);
    url[nbytes] = '\0';
    const char *problem = address_read(url, &a);
    if (problem) {
        check(*problem && !a.host && !a.user && !a.password && !a.name && !a.port);
    } else {
        check_address(&a);
        char *written = write_out(&a, nbytes);
        check(!address_read(written, &again));
        check_same(&a, &again);
        address_release(&again);
        free(written);
    }
    address_release(&a);
    free(url);
    return 0;
}
