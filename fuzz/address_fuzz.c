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

static void check_server(const struct endpoint *at)
{
    check(*at->host && strlen(at->host) <= (at->port ? 255 : 107) && at->port <= 65535);
    check(at->port || *at->host == '/');
    for (const char *c = at->host; *c; c++)
        check(at->port ? *c > 32 && *c < 127 : (unsigned char)*c >= 32 && *c != 127);
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
    check(a->nservers >= 1 && a->nservers <= SERVERS_MOST);
    for (unsigned i = 0; i < a->nservers; i++)
        check_server(&a->servers[i]);
    check(!a->user || *a->user);
    check(!a->sentinel == !a->master && !a->cert == !a->key);
    check(a->secure || !(a->cacert || a->cert || a->sni || a->insecure));
    check(a->redisson || !a->codec);
    check(a->codec <= CODEC_JSON && a->deadline_ms <= 24 * 3600000);
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
    static const char *const codecs[] = { "", "string", "kryo5", "json" };
    const struct {
        const char *name, *value;
    } texts[] = {
        { "cacert", a->cacert }, { "cert", a->cert },
        { "key", a->key },       { "sni", a->sni },
        { "client", a->client }, { "password-file", a->password_file },
        { "master", a->master }, { "sentinel-password-file", a->sentinel_password_file },
    };
    char *url = malloc(4 * nbytes + 2000), *to = url;
    check(url);
    to += sprintf(to, "%s", a->scheme);
    if (a->password || a->user) {
        to = encode(to, a->user ? a->user : "");
        to += sprintf(to, "%s", a->password ? ":" : "");
        to = encode(to, a->password ? a->password : "");
        to += sprintf(to, "@");
    }
    for (unsigned i = 0; i < a->nservers; i++) {
        const struct endpoint *at = &a->servers[i];
        to += sprintf(to, "%s%s", i ? "," : "", at->port ? "[" : "/");
        to = encode(to, at->host + !at->port);
        if (at->port)
            to += sprintf(to, "]:%u", at->port);
    }
    to += sprintf(to, "/");
    to = encode(to, a->name);
    to += sprintf(to, "?layout=%s", a->redisson ? "redisson" : "perhaps");
    if (a->timeout_ms)
        to += sprintf(to, "&timeout=%ums", a->timeout_ms);
    if (a->patience_ms)
        to += sprintf(to, "&patience=%ums", a->patience_ms);
    if (a->replicas_given)
        to += sprintf(to, "&replicas=%s", a->replicas ? "yes" : "no");
    if (a->deadline_ms)
        to += sprintf(to, "&deadline=%ums", a->deadline_ms);
    if (a->codec)
        to += sprintf(to, "&codec=%s", codecs[a->codec]);
    if (a->insecure)
        to += sprintf(to, "&insecure=yes");
    to += sprintf(to, "&db=%u", a->database);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].value) {
            to += sprintf(to, "&%s=", texts[i].name);
            to = encode(to, texts[i].value);
        }
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
    check(same_text(a->scheme, b->scheme) && a->nservers == b->nservers);
    for (unsigned i = 0; i < a->nservers; i++)
        check(same_text(a->servers[i].host, b->servers[i].host) &&
              a->servers[i].port == b->servers[i].port);
    check(same_text(a->name, b->name) && same_text(a->client, b->client));
    check(same_text(a->cacert, b->cacert) && same_text(a->cert, b->cert));
    check(same_text(a->key, b->key) && same_text(a->sni, b->sni));
    check(same_text(a->master, b->master) && same_text(a->password_file, b->password_file));
    check(same_text(a->sentinel_password_file, b->sentinel_password_file));
    check(a->insecure == b->insecure && a->database == b->database && a->codec == b->codec);
    check(a->deadline_ms == b->deadline_ms);
    check(same_text(a->user, b->user) && same_text(a->password, b->password));
    check(a->timeout_ms == b->timeout_ms && a->patience_ms == b->patience_ms);
    check(a->replicas_given == b->replicas_given && a->replicas == b->replicas);
    check(a->acknowledge_given == b->acknowledge_given && a->acknowledge == b->acknowledge);
    check(a->redisson == b->redisson);
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
        static const struct address empty;
        check(*problem);
        check_same(&a, &empty);
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
