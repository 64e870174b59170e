/* slots.c - the slot of a key; what an error reply asks for. */
#include "slots.h"

#include <string.h>

#include "numbers.h"

/* ---- Slots ------------------------------------------------------------------------------ */

/* A byte at a time without a table: 0x1021 is x^12 + x^5 + 1, so the byte that leaves comes
 * back at three places; its upper half leaves twice. */
static uint16_t crc16(const unsigned char *bytes, size_t nbytes)
{
    uint16_t crc = 0;
    for (size_t i = 0; i < nbytes; i++) {
        unsigned leaves = (crc >> 8) ^ bytes[i];
        leaves ^= leaves >> 4;
        crc = (uint16_t)((unsigned)crc << 8 ^ leaves << 12 ^ leaves << 5 ^ leaves);
    }
    return crc;
}

unsigned slot_of(const void *key, size_t nbytes)
{
    const char *open = memchr(key, '{', nbytes);
    if (open) {
        const char *tag = open + 1;
        const char *close = memchr(tag, '}', nbytes - (size_t)(tag - (const char *)key));
        if (close && close > tag)
            return crc16((const unsigned char *)tag, (size_t)(close - tag)) % SLOTS;
    }
    return crc16(key, nbytes) % SLOTS;
}

/* ---- Endpoints -------------------------------------------------------------------------- */

bool endpoint_equal(const struct endpoint *a, const struct endpoint *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

bool endpoint_set_host(struct endpoint *at, const char *host, size_t nbytes)
{
    if (nbytes > HOST_NBYTES_MOST)
        return false;
    for (size_t i = 0; i < nbytes; i++)
        if (host[i] <= ' ' || host[i] > '~')
            return false;
    memcpy(at->host, host, nbytes);
    at->host[nbytes] = '\0';
    return true;
}

bool endpoint_is_unknown(const struct endpoint *at)
{
    return strcmp(at->host, "?") == 0;
}

/* ---- Error replies ---------------------------------------------------------------------- */

struct words {
    const char *at;
    size_t nbytes;
};

static bool begins_with(struct words text, const char *words)
{
    size_t nbytes = strlen(words);
    return text.nbytes >= nbytes && memcmp(text.at, words, nbytes) == 0 &&
           (text.nbytes == nbytes || text.at[nbytes] == ' ');
}

/* "3999 127.0.0.1:6381"; an IPv6 address has colons, too, and no brackets. */
static bool read_target(struct words text, struct redirection *redirection)
{
    const char *blank = memchr(text.at, ' ', text.nbytes);
    const char *colon = memrchr(text.at, ':', text.nbytes), *end = text.at + text.nbytes;
    uint64_t slot, port;
    if (!blank || !colon || colon < blank ||
        !read_digits(text.at, (size_t)(blank - text.at), SLOTS - 1, &slot) ||
        !read_digits(colon + 1, (size_t)(end - colon - 1), UINT16_MAX, &port) || port == 0 ||
        !endpoint_set_host(&redirection->to, blank + 1, (size_t)(colon - blank - 1)))
        return false;
    redirection->slot = (unsigned)slot;
    redirection->to.port = (unsigned)port;
    return true;
}

static void redirect(struct words target, enum verdict verdict, struct redirection *redirection)
{
    redirection->verdict = verdict;
    redirection->refresh = verdict == REPLY_MOVED;
    if (!read_target(target, redirection))
        *redirection = (struct redirection){ .verdict = REPLY_STRANGE };
    else if (endpoint_is_unknown(&redirection->to))
        *redirection = (struct redirection){ .verdict = REPLY_AGAIN, .refresh = true };
}

void redirection_read(const char *text, size_t nbytes, struct redirection *redirection)
{
    static const struct {
        const char *words;
        enum verdict verdict;
        bool refresh;
    } known[] = {
        { "TRYAGAIN", REPLY_AGAIN, false },
        { "CLUSTERDOWN", REPLY_AGAIN, true },
        { "LOADING", REPLY_AGAIN, false },
        { "MASTERDOWN", REPLY_AGAIN, true },
        { "BUSY", REPLY_AGAIN, false },
        { "READONLY", REPLY_AGAIN, true }, /* it was a master until a failover */
        { "ERR max number of clients", REPLY_AGAIN, false },
        { "OOM", REPLY_FULL, false },
        { "WRONGTYPE", REPLY_WRONGTYPE, false },
        { "NOAUTH", REPLY_REFUSED, false },
        { "WRONGPASS", REPLY_REFUSED, false },
        { "NOPERM", REPLY_REFUSED, false },
        { "DENIED", REPLY_REFUSED, false },     /* protected mode */
        { "MISCONF", REPLY_REFUSED, false },    /* it cannot write its disk */
        { "NOREPLICAS", REPLY_REFUSED, false }, /* fewer than min-replicas-to-write */
        { "ERR unknown command", REPLY_REFUSED, false },
        { "ERR unknown subcommand", REPLY_REFUSED, false },
        { "ERR Unknown subcommand", REPLY_REFUSED, false },
        { "ERR invalid password", REPLY_REFUSED, false },
        { "ERR AUTH", REPLY_REFUSED, false }, /* it has no password */
        { "ERR Client sent AUTH", REPLY_REFUSED, false },
        { "ERR This instance has cluster support disabled", REPLY_REFUSED, false },
    };
    struct words all = { text, nbytes };
    *redirection = (struct redirection){ .verdict = REPLY_STRANGE };
    if (begins_with(all, "MOVED") && nbytes > 6)
        redirect((struct words){ text + 6, nbytes - 6 }, REPLY_MOVED, redirection);
    else if (begins_with(all, "ASK") && nbytes > 4)
        redirect((struct words){ text + 4, nbytes - 4 }, REPLY_ASK, redirection);
    else
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (begins_with(all, known[i].words)) {
                redirection->verdict = known[i].verdict;
                redirection->refresh = known[i].refresh;
            }
}
