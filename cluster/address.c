/* address.c - takes an address apart from left to right: scheme, login, server, name, settings.
 *
 *     redis://user:password@host:port,host:port/name?setting=value
 *     unix://user:password@/path/name?setting=value
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
enum { OWN_NAME_NBYTES_MOST = 200, TIME_MS_MOST = 24 * 3600000, DATABASE_MOST = 1000000 };

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
static size_t find_char(struct span span, char c)
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
    size_t nbytes = find_char(*span, c);
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
    bool has_password = find_char(login, ':') < login.nbytes;
    if (login.nbytes <= has_password)
        return "before the @ stands neither user nor password: leave it away";
    struct span user = has_password ? cut(&login, ':') : login;
    if (user.nbytes)
        problem = decode(user, &address->user);
    return problem || !has_password ? problem : decode(login, &address->password);
}

/* Reads the port, which must be there if the colon before it is. */
static const char *read_port(struct span port, struct endpoint *at)
{
    uint64_t number = 0;
    if (!read_digits(port.at, port.nbytes, UINT16_MAX, &number) || number == 0)
        return "behind the colon stands no port from 1 to 65535: write host:port";
    at->port = (unsigned)number;
    return NULL;
}

/* Checks that a host is one word of printable ASCII, because hosts are printed in messages. */
static const char *check_host(const char *host)
{
    if (!*host)
        return "there is no host: write redis://host:port/name";
    for (; *host; host++)
        if (*host <= ' ' || *host > '~' || strchr("/?@[],", *host))
            return "a host has letters, digits, dots and hyphens, or is an IPv6 address in "
                   "brackets";
    return NULL;
}

/* Returns whether there is a control character; bytes that are not ASCII are none. */
static bool has_control_character(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return true;
    return false;
}

/* Decodes a host, or the path of a unix socket, which has at most 'most' bytes. */
static const char *decode_host(struct span host, struct endpoint *at, size_t most,
                               const char *too_long)
{
    char *decoded;
    const char *problem = decode(host, &decoded);
    if (problem)
        return problem;
    if (strlen(decoded) > most)
        problem = too_long;
    else
        memcpy(at->host, decoded, strlen(decoded) + 1);
    free(decoded);
    return problem;
}

/* Reads host and port.  An IPv6 address stands in brackets, since its colons would be taken for
 * the one before the port. */
static const char *read_server(struct span host, struct endpoint *at)
{
    struct span port;
    if (host.nbytes && *host.at == '[') {
        size_t end = find_char(host, ']');
        if (end == host.nbytes)
            return "the ] behind the IPv6 address is missing";
        port = behind(host, end + 1);
        host = (struct span){ host.at + 1, end - 1 };
        if (port.nbytes && *port.at != ':')
            return "behind the ] of an IPv6 address comes :port or /name";
    } else {
        port = behind(host, find_char(host, ':'));
        host.nbytes -= port.nbytes;
        if (port.nbytes && find_char(behind(port, 1), ':') < port.nbytes - 1)
            return "an IPv6 address stands in brackets: write redis://[::1]:6379/name";
    }
    const char *problem = port.nbytes ? read_port(behind(port, 1), at) : NULL;
    if (!problem)
        problem =
            decode_host(host, at, HOST_NBYTES_MOST, "the host has more than 255 characters");
    return problem ? problem : check_host(at->host);
}

/* Makes room for the servers, all of them on the default port. */
static const char *make_servers(struct address *address, size_t n, unsigned port)
{
    if (n > SERVERS_MOST)
        return "there are more than 64 servers in the address: some of them will do";
    address->servers = malloc(n * sizeof *address->servers);
    if (!address->servers)
        return no_memory;
    address->nservers = (unsigned)n;
    for (size_t i = 0; i < n; i++)
        address->servers[i] = (struct endpoint){ .port = port };
    return NULL;
}

/* Reads the servers, with commas between them. */
static const char *read_servers(struct span servers, struct address *address)
{
    size_t n = 1;
    for (size_t i = 0; i < servers.nbytes; i++)
        n += servers.at[i] == ',';
    const char *problem =
        make_servers(address, n, address->sentinel ? SENTINEL_PORT : REDIS_PORT);
    for (size_t i = 0; i < n && !problem; i++)
        problem = read_server(cut(&servers, ','), &address->servers[i]);
    return problem;
}

/* Reads the path of a unix socket, which goes up to the last '/', and removes it from the name
 * behind it.  'nothing' stands where other addresses have servers. */
static const char *read_path(struct span nothing, struct span *path, struct address *address)
{
    const char *slash = path->nbytes ? memrchr(path->at, '/', path->nbytes) : NULL;
    if (nothing.nbytes || !slash)
        return "behind unix:// comes the path of a socket, from / on, and /name";
    /* the '/' before the path was cut off */
    struct span socket = { path->at - 1, (size_t)(slash - path->at) + 1 };
    const char *problem = make_servers(address, 1, 0);
    *path = behind(*path, socket.nbytes);
    if (!problem)
        problem = decode_host(socket, address->servers, PATH_NBYTES_MOST,
                              "the path of the socket has more than 107 bytes");
    if (!problem && has_control_character(address->servers->host))
        problem = "the path of a socket has no control characters";
    return problem;
}

/* ---- name ------------------------------------------------------------------------------- */

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

/* Each reads the value of a setting to the member 'to' of an address. */

/* Reads a time such as 2s.  0 is refused, since it means "not given" in struct address. */
static const char *read_timeout(struct span value, void *to)
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
            *(unsigned *)to = (unsigned)n * units[i].ms;
            return NULL;
        }
    return "timeout, patience and deadline are whole numbers with a unit, as 500ms, 2s, 1m or "
           "1h, and at most 24h";
}

static const char *read_yes(struct span value, void *to)
{
    *(bool *)to = is_text(value, "yes");
    return *(bool *)to || is_text(value, "no") ? NULL : "replicas and insecure are yes or no";
}

static const char *read_module(struct span value, void *to)
{
    const char *problem = read_yes(value, to);
    *(bool *)to = !*(bool *)to;
    return problem ? "module is yes or no" : NULL;
}

static const char *read_replicas(struct span value, void *to)
{
    struct address *address = to;
    address->replicas_given = true;
    return read_yes(value, &address->replicas);
}

static const char *read_acknowledge(struct span value, void *to)
{
    struct address *address = to;
    uint64_t n;
    if (!read_digits(value.at, value.nbytes, ACKNOWLEDGE_MOST, &n))
        return "acknowledge is a number of replicas from 0 to 16";
    address->acknowledge_given = true;
    address->acknowledge = (unsigned)n;
    return NULL;
}

static const char *read_layout(struct span value, void *to)
{
    *(bool *)to = is_text(value, "redisson");
    return *(bool *)to || is_text(value, "perhaps") ? NULL : "layout is perhaps or redisson";
}

static const char *read_codec(struct span value, void *to)
{
    static const char *const names[] = {
        [CODEC_STRING] = "string", [CODEC_KRYO5] = "kryo5", [CODEC_JSON] = "json"
    };
    for (size_t i = CODEC_STRING; i < sizeof names / sizeof *names; i++)
        if (is_text(value, names[i])) {
            *(enum codec *)to = (enum codec)i;
            return NULL;
        }
    return "codec is string, kryo5 or json";
}

static const char *read_database(struct span value, void *to)
{
    uint64_t n;
    if (!read_digits(value.at, value.nbytes, DATABASE_MOST, &n))
        return "db is the number of a database, from 0 on";
    *(unsigned *)to = (unsigned)n;
    return NULL;
}

static const char *read_text(struct span value, void *to)
{
    return value.nbytes ? decode(value, to) : "behind the = of a setting stands nothing";
}

/* Servers take a name only so. */
static const char *read_client(struct span value, void *to)
{
    const char *problem = read_text(value, to), *at = problem ? "" : *(char **)to;
    for (; *at; at++)
        if (*at <= ' ' || *at > '~')
            problem = "client is a name without blanks, of letters, digits and the like";
    return problem;
}

/* Reads OLD/NEW, each a host or host:port. */
static const char *read_map(struct span value, void *to)
{
    struct address *address = to;
    struct address_map *maps =
        realloc(address->maps, (address->nmaps + 1) * sizeof *address->maps);
    if (!maps)
        return no_memory;
    address->maps = maps;
    struct address_map *map = &maps[address->nmaps++];
    *map = (struct address_map){ .from.port = 0 };
    struct span from = cut(&value, '/');
    const char *problem = read_server(from, &map->from);
    if (!problem)
        problem = read_server(value, &map->to);
    if (problem)
        return "map is OLD:PORT/NEW:PORT, or OLD/NEW for all ports of a host";
    if (!map->from.port && map->to.port)
        return "map=OLD/NEW is for all ports of OLD: write OLD:PORT/NEW:PORT for one of them";
    return NULL;
}

/* Reads one setting.  '*given' has a bit for each setting that was read before. */
static const char *read_setting(struct span setting, struct address *a, unsigned *given)
{
    const struct {
        const char *name;
        const char *(*read)(struct span value, void *to);
        void *to;
    } settings[] = {
        { "timeout", read_timeout, &a->timeout_ms },
        { "patience", read_timeout, &a->patience_ms },
        { "deadline", read_timeout, &a->deadline_ms },
        { "replicas", read_replicas, a },
        { "acknowledge", read_acknowledge, a },
        { "layout", read_layout, &a->redisson },
        { "codec", read_codec, &a->codec },
        { "module", read_module, &a->plain },
        { "db", read_database, &a->database },
        { "client", read_client, &a->client },
        { "password-file", read_text, &a->password_file },
        { "cacert", read_text, &a->cacert },
        { "cert", read_text, &a->cert },
        { "key", read_text, &a->key },
        { "sni", read_text, &a->sni },
        { "insecure", read_yes, &a->insecure },
        { "map", read_map, a },
        { "master", read_text, &a->master },
        { "sentinel-password-file", read_text, &a->sentinel_password_file },
    };
    struct span name = cut(&setting, '=');
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (is_text(name, settings[i].name)) {
            if (*given & 1U << i && settings[i].read != read_map)
                return "a setting is given twice";
            *given |= 1U << i;
            return settings[i].read(setting, settings[i].to);
        }
    return "behind the ? stand settings: timeout=2s, patience=1m, replicas=yes, acknowledge=1, "
           "layout=redisson and others, with & between them; a ? in the name is written %3F";
}

static const char *read_settings(struct span settings, struct address *address)
{
    const char *problem = NULL;
    unsigned given = 0;
    bool more = true;
    while (!problem && more) {
        more = find_char(settings, '&') < settings.nbytes;
        problem = read_setting(cut(&settings, '&'), address, &given);
    }
    return problem;
}

/* Checks that the settings fit each other and the scheme. */
static const char *check_settings(const struct address *a)
{
    if (!a->secure && (a->cacert || a->cert || a->key || a->sni || a->insecure))
        return "cacert, cert, key, sni and insecure are for TLS: write rediss:// instead of "
               "redis://";
    if (!a->cert != !a->key)
        return "cert and key belong together: give both";
    if (a->insecure && (a->cacert || a->sni))
        return "insecure=yes looks at no certificate: leave it out, or cacert and sni";
    if (a->password && a->password_file)
        return "the password stands in the address and in a file: leave one of them out";
    if (a->sentinel && !a->master)
        return "sentinels are asked for a master by its name: add ?master=NAME";
    if (!a->sentinel && (a->master || a->sentinel_password_file))
        return "master and sentinel-password-file are for redis+sentinel://";
    if (!a->redisson && a->codec)
        return "codec is for filters of Redisson: write layout=redisson, too";
    return NULL;
}

/* ---- All of it -------------------------------------------------------------------------- */

/* Removes the scheme from the front. */
static const char *read_scheme(struct span *url, struct address *address)
{
    static const struct {
        const char *scheme;
        bool secure, sentinel;
    } known[] = {
        { "redis://", false, false },          { "rediss://", true, false },
        { "valkey://", false, false },         { "valkeys://", true, false },
        { "redis+sentinel://", false, true },  { "rediss+sentinel://", true, true },
        { "valkey+sentinel://", false, true }, { "valkeys+sentinel://", true, true },
        { "unix://", false, false },           { "redis+unix://", false, false },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(url->at, known[i].scheme, strlen(known[i].scheme)) == 0) {
            address->scheme = known[i].scheme;
            address->secure = known[i].secure;
            address->sentinel = known[i].sentinel;
            *url = behind(*url, strlen(known[i].scheme));
            return NULL;
        }
    return "an address begins with redis://, as redis://host:port/name; or with rediss://, "
           "unix:// or redis+sentinel://";
}

/* The name is checked last, because a setting tells which layout it is for. */
static const char *read_url(struct span url, struct address *address)
{
    const char *problem = read_scheme(&url, address);
    if (problem)
        return problem;
    bool is_unix = strstr(address->scheme, "unix");
    size_t question = find_char(url, '?');
    struct span settings = behind(url, question), path = { url.at, question };
    struct span authority = cut(&path, '/');
    if ((problem = read_login(&authority, address)) ||
        (problem = is_unix ? read_path(authority, &path, address)
                           : read_servers(authority, address)) ||
        (problem = decode(path, &address->name)) ||
        (settings.nbytes && (problem = read_settings(behind(settings, 1), address))) ||
        (problem = check_name(address->name, address->redisson)))
        return problem;
    return check_settings(address);
}

const char *address_read(const char *url, struct address *address)
{
    *address = (struct address){ 0 };
    const char *problem = read_url((struct span){ url, strlen(url) }, address);
    if (problem)
        address_release(address);
    return problem;
}

/* The password is wiped, so that it does not stay in memory that is given to others. */
void address_release(struct address *a)
{
    char *texts[] = {
        a->user, a->name,   a->cacert,        a->cert,   a->key,
        a->sni,  a->client, a->password_file, a->master, a->sentinel_password_file
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    if (a->password)
        explicit_bzero(a->password, strlen(a->password));
    free(a->password);
    free(a->servers);
    free(a->maps);
    *a = (struct address){ 0 };
}
