/* address.c - takes an address apart from left to right: scheme, login, server, name, settings.
 *
 * Spans point into the caller's text.  Texts of the address are decoded copies.  A problem
 * never repeats what was given, since there may be a password in it.  Functions that return a
 * text return NULL, or the problem. */
#include "address.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

const char no_memory[] = "out of memory";

/* Names of our own layout are shorter than those that Redisson may have (doc/CLUSTER.md). */
enum { OWN_NAME_NBYTES_MOST = 200, TIME_MS_MOST = 24 * 3600000 };

/* Some bytes of the address.  No zero byte stands behind them. */
struct span {
    const char *at;
    size_t nbytes;
};

static bool is_text(struct span span, const char *text)
{
    return span.nbytes == strlen(text) && memcmp(span.at, text, span.nbytes) == 0;
}

/* Returns the position of the first 'c', or of the end. */
static size_t find(struct span span, char c)
{
    const char *found = span.nbytes ? memchr(span.at, c, span.nbytes) : NULL;
    return found ? (size_t)(found - span.at) : span.nbytes;
}

/* Returns what is left behind the first bytes. */
static struct span behind(struct span span, size_t nbytes)
{
    return (struct span){ span.at + nbytes, span.nbytes - nbytes };
}

/* Returns what stands before the first 'c', or all of it if there is none, and removes that and
 * the 'c' from the span. */
static struct span cut(struct span *span, char c)
{
    size_t nbytes = find(*span, c);
    struct span before = { span->at, nbytes };
    *span = behind(*span, nbytes < span->nbytes ? nbytes + 1 : nbytes);
    return before;
}

/* ---- %-codes ---------------------------------------------------------------------------- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 32) >= 'a' && (c | 32) <= 'f')
        return (c | 32) - 'a' + 10;
    return -1;
}

/* Decodes %-codes, and sets *decoded to a copy, which the caller releases.  A zero byte is
 * refused, since it would end the text early. */
static const char *decode(struct span span, char **decoded)
{
    char *text = malloc(span.nbytes + 1), *to = text;
    const char *problem = text ? NULL : no_memory;
    for (size_t i = 0; !problem && i < span.nbytes; i++) {
        int c = (unsigned char)span.at[i];
        if (c == '%') {
            int high = i + 2 < span.nbytes ? hex_digit(span.at[i + 1]) : -1;
            int low = high >= 0 ? hex_digit(span.at[i + 2]) : -1;
            c = low >= 0 ? high * 16 + low : -1;
            i += 2;
        }
        if (c < 0)
            problem = "a % must be followed by two hexadecimal digits: write %25 for itself";
        else if (c == 0)
            problem = "%00 is not allowed";
        else
            *to++ = (char)c;
    }
    if (problem) {
        free(text);
        return problem;
    }
    *to = '\0';
    *decoded = text;
    return NULL;
}

/* ---- [[user]:password@]host[:port] ------------------------------------------------------ */

/* Reads user and password, if any, and removes them from the front.  The last @ ends them: a
 * password may contain one, a host cannot. */
static const char *read_login(struct span *authority, struct address *address)
{
    const char *problem = NULL;
    const char *at = memrchr(authority->at, '@', authority->nbytes);
    if (!at)
        return NULL;
    struct span login = { authority->at, (size_t)(at - authority->at) };
    *authority = behind(*authority, login.nbytes + 1);
    bool has_password = find(login, ':') < login.nbytes;
    if (login.nbytes <= has_password)
        return "before the @ stands neither user nor password: leave it away";
    struct span user = has_password ? cut(&login, ':') : login;
    if (user.nbytes)
        problem = decode(user, &address->user);
    return problem || !has_password ? problem : decode(login, &address->password);
}

/* Reads the port, which must be there if the colon before it is. */
static const char *read_port(struct span port, struct address *address)
{
    uint64_t number = 0;
    if (!read_digits(port.at, port.nbytes, UINT16_MAX, &number) || number == 0)
        return "behind the colon stands no port from 1 to 65535: write host:port, and an "
               "IPv6 address in brackets";
    address->port = (unsigned)number;
    return NULL;
}

/* Checks that a host is one word of printable ASCII, because hosts are printed in messages. */
static const char *check_host(const char *host)
{
    if (!*host)
        return "there is no host: write redis://host:port/name";
    if (strlen(host) > HOST_NBYTES_MOST)
        return "the host has more than 255 characters";
    for (; *host; host++)
        if (*host <= ' ' || *host > '~' || strchr("/?@[]", *host))
            return "a host has letters, digits, dots and hyphens, or is an IPv6 address in "
                   "brackets";
    return NULL;
}

/* Reads host and port.  An IPv6 address stands in brackets, since its colons would be taken for
 * the one before the port. */
static const char *read_server(struct span authority, struct address *address)
{
    struct span host = authority, port;
    if (host.nbytes && *host.at == '[') {
        size_t end = find(host, ']');
        if (end == host.nbytes)
            return "the ] behind the IPv6 address is missing";
        port = behind(host, end + 1);
        host = (struct span){ host.at + 1, end - 1 };
        if (port.nbytes && *port.at != ':')
            return "behind the ] of an IPv6 address comes :port or /name";
    } else {
        port = behind(host, find(host, ':'));
        host.nbytes -= port.nbytes;
    }
    address->port = REDIS_PORT;
    const char *problem = port.nbytes ? read_port(behind(port, 1), address) : NULL;
    if (!problem)
        problem = decode(host, &address->host);
    return problem ? problem : check_host(address->host);
}

/* ---- name ------------------------------------------------------------------------------- */

/* Returns whether there is a control character; bytes that are not ASCII are none. */
static bool has_control_character(const char *name)
{
    for (; *name; name++)
        if ((unsigned char)*name < ' ' || *name == 0x7f)
            return true;
    return false;
}

/* Checks the name.  In our own layout it stands in the Redis keys perhaps:{NAME/P}:ID, and so
 * has none of the characters that divide these.  Redisson's names are Redis keys themselves. */
static const char *check_name(const char *name, bool redisson)
{
    size_t nbytes = strlen(name);
    if (nbytes == 0)
        return "there is no name: write redis://host:port/name";
    if (has_control_character(name))
        return "a name has no control characters";
    if (redisson)
        return nbytes > NAME_NBYTES_MOST ? "the name has more than 1000 bytes" : NULL;
    if (strpbrk(name, "/{} "))
        return "a name has no blanks and none of / { }";
    return nbytes > OWN_NAME_NBYTES_MOST ? "the name has more than 200 bytes" : NULL;
}

/* ---- setting=value&... ------------------------------------------------------------------ */

/* Reads a time such as 2s.  0 is refused, since it means "not given" in struct address. */
static const char *read_time(struct span value, unsigned *ms)
{
    static const struct {
        const char *name;
        unsigned ms;
    } units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 } };
    size_t ndigits = 0;
    uint64_t n = 0;
    while (ndigits < value.nbytes && value.at[ndigits] >= '0' && value.at[ndigits] <= '9')
        ndigits++;
    struct span unit = behind(value, ndigits);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (is_text(unit, units[i].name) &&
            read_digits(value.at, ndigits, TIME_MS_MOST / units[i].ms, &n) && n > 0) {
            *ms = (unsigned)n * units[i].ms;
            return NULL;
        }
    return "timeout and patience are whole numbers with a unit, as 500ms, 2s, 1m or 1h, and "
           "at most 24h";
}

static const char *read_timeout(struct span value, struct address *address)
{
    return read_time(value, &address->timeout_ms);
}

static const char *read_patience(struct span value, struct address *address)
{
    return read_time(value, &address->patience_ms);
}

static const char *read_replicas(struct span value, struct address *address)
{
    address->replicas_given = true;
    address->replicas = is_text(value, "yes");
    return address->replicas || is_text(value, "no") ? NULL : "replicas is yes or no";
}

static const char *read_acknowledge(struct span value, struct address *address)
{
    uint64_t n;
    if (!read_digits(value.at, value.nbytes, ACKNOWLEDGE_MOST, &n))
        return "acknowledge is a number of replicas from 0 to 16";
    address->acknowledge_given = true;
    address->acknowledge = (unsigned)n;
    return NULL;
}

static const char *read_layout(struct span value, struct address *address)
{
    address->redisson = is_text(value, "redisson");
    return address->redisson || is_text(value, "perhaps") ? NULL
                                                          : "layout is perhaps or redisson";
}

static const char *read_codec(struct span value, struct address *address)
{
    static const char *const names[] = {
        [CODEC_STRING] = "string", [CODEC_KRYO5] = "kryo5", [CODEC_JSON] = "json"
    };
    for (enum codec codec = CODEC_STRING; codec <= CODEC_JSON; codec++)
        if (is_text(value, names[codec])) {
            address->codec = codec;
            return NULL;
        }
    return "codec is string, kryo5 or json";
}

/* Reads one setting.  '*given' has a bit for each setting that was read before. */
static const char *read_setting(struct span setting, struct address *address, unsigned *given)
{
    static const struct {
        const char *name;
        const char *(*read)(struct span value, struct address *address);
    } settings[] = {
        { "timeout", read_timeout },   { "patience", read_patience },
        { "replicas", read_replicas }, { "acknowledge", read_acknowledge },
        { "layout", read_layout },     { "codec", read_codec },
    };
    struct span name = cut(&setting, '=');
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (is_text(name, settings[i].name)) {
            if (*given & 1U << i)
                return "a setting is given twice";
            *given |= 1U << i;
            return settings[i].read(setting, address);
        }
    return "behind the ? stand settings: timeout=2s, patience=1m, replicas=yes, acknowledge=1, "
           "layout=redisson, codec=kryo5, with & between them; a ? in the name is written %3F";
}

static const char *read_settings(struct span settings, struct address *address)
{
    const char *problem = NULL;
    unsigned given = 0;
    bool more = true;
    while (!problem && more) {
        more = find(settings, '&') < settings.nbytes;
        problem = read_setting(cut(&settings, '&'), address, &given);
    }
    return problem;
}

/* ---- All of it -------------------------------------------------------------------------- */

/* Removes the scheme from the front. */
static const char *read_scheme(struct span *url)
{
    static const char scheme[] = "redis://", secure[] = "rediss://";
    if (strncmp(url->at, secure, strlen(secure)) == 0)
        return "rediss:// (TLS) is not supported: use redis:// through a tunnel";
    if (strncmp(url->at, scheme, strlen(scheme)) != 0)
        return "an address begins with redis://, as redis://host:port/name";
    *url = behind(*url, strlen(scheme));
    return NULL;
}

/* The name is checked last, because a setting tells which layout it is for. */
static const char *read_all(struct span url, struct address *address)
{
    const char *problem = read_scheme(&url);
    if (problem)
        return problem;
    size_t question = find(url, '?');
    struct span settings = behind(url, question), path = { url.at, question };
    struct span authority = cut(&path, '/');
    if ((problem = read_login(&authority, address)) ||
        (problem = read_server(authority, address)) ||
        (problem = decode(path, &address->name)) ||
        (settings.nbytes && (problem = read_settings(behind(settings, 1), address))))
        return problem;
    if (address->codec && !address->redisson)
        return "codec is for filters of Redisson: write layout=redisson, too";
    return check_name(address->name, address->redisson);
}

const char *address_read(const char *url, struct address *address)
{
    *address = (struct address){ 0 };
    const char *problem = read_all((struct span){ url, strlen(url) }, address);
    if (problem)
        address_release(address);
    return problem;
}

void address_release(struct address *address)
{
    free(address->host);
    free(address->user);
    free(address->password);
    free(address->name);
    *address = (struct address){ 0 };
}
