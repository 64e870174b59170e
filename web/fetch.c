/* fetch.c - brings ranges of a file on a web server, by libcurl: see cli/filter/fetch.h.
 *
 * Each range is one GET with Range.  Several run at once, each over a connection that is kept.
 * An answer is taken only if it says that it is this range (206, Content-Range), of a file of
 * the same size and with the same ETag or Last-Modified as the first one had: nothing of
 * another file is ever given to the library.  (If-Match would say no more, and not all servers
 * have it.) */
#include "../cli/filter/fetch.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    CONNECTIONS_MOST = 32,
    REDIRECTS_MOST = 5,
    TRIES_MOST = 3, /* of a range whose connection breaks */
    CONNECT_SECONDS = 30,
    SILENT_SECONDS = 60,
    POLL_MS = 100,
    TAG_NBYTES = 256,
    URL_NBYTES = 4096,
};

/* What the headers of an answer say. */
struct said {
    bool has_range;
    uint64_t first, last, total;
    char tag[TAG_NBYTES]; /* ETag, or else Last-Modified */
};

/* One request at a time. */
struct transfer {
    struct fetch *fetch;
    CURL *easy;
    struct perhaps_range range;
    size_t number;
    uint64_t got;
    unsigned tries;
    struct said said;
    bool looked_at, busy;
    int error; /* of enum perhaps_error */
    char text[CURL_ERROR_SIZE];
};

struct fetch {
    struct fetch_options options;
    char url[URL_NBYTES];
    CURLM *multi;
    struct transfer transfer[CONNECTIONS_MOST];
    unsigned count; /* of transfers that were made */
    perhaps_remote *remote;
    struct said first; /* of the first answer */
    bool knows_file;
    char problem[1024];
};

/* ---- What went wrong --------------------------------------------------------------------- */

#define PROBLEM(fetch, ...) snprintf((fetch)->problem, sizeof(fetch)->problem, __VA_ARGS__)

/* Notes why a transfer failed, unless something is noted.  Returns 0, which stops it. */
static size_t refuse(struct transfer *t, const char *why)
{
    if (!*t->fetch->problem)
        PROBLEM(t->fetch, "%s", why);
    t->error = PERHAPS_ERR_IO;
    return 0;
}

static void tell_status(struct fetch *f, long status)
{
    if (status == 404 || status == 410)
        PROBLEM(f, "the server does not have it (status %ld)", status);
    else if (status == 401 || status == 403)
        PROBLEM(f, "the server refuses it (status %ld)", status);
    else if (status == 416)
        PROBLEM(f, "the file is empty, or was made shorter meanwhile (status 416)");
    else if (status >= 300 && status < 400)
        PROBLEM(f, "the server redirects to nowhere (status %ld)", status);
    else
        PROBLEM(f, "the server answered with status %ld", status);
}

/* ---- Headers ----------------------------------------------------------------------------- */

/* Copies the value of a header, if it is this one.  Returns whether it is. */
static bool header_is(const char *line, size_t nbytes, const char *name, char *value)
{
    const size_t length = strlen(name);
    if (nbytes <= length || strncasecmp(line, name, length) != 0 || line[length] != ':')
        return false;
    const char *from = line + length + 1, *end = line + nbytes;
    while (from < end && (*from == ' ' || *from == '\t'))
        from++;
    while (end > from && (unsigned char)end[-1] <= ' ')
        end--;
    const size_t n = (size_t)(end - from) < TAG_NBYTES - 1 ? (size_t)(end - from) : 0;
    memcpy(value, from, n);
    value[n] = '\0';
    return true;
}

static void read_range(struct said *said, const char *value)
{
    unsigned long long first, last, total;
    int n = 0;
    said->has_range = sscanf(value, "bytes %llu-%llu/%llu%n", &first, &last, &total, &n) == 3 &&
                      !value[n] && strchr("0123456789", value[6]) && last >= first &&
                      total > last;
    said->first = first;
    said->last = last;
    said->total = total;
}

/* Each answer of a chain of redirections begins with its status line. */
static size_t take_header(char *line, size_t size, size_t n, void *context)
{
    struct transfer *t = context;
    const size_t nbytes = size * n;
    char value[TAG_NBYTES] = "";
    if (nbytes > 5 && !memcmp(line, "HTTP/", 5))
        t->said = (struct said){ 0 };
    else if (header_is(line, nbytes, "Content-Range", value))
        read_range(&t->said, value);
    else if (header_is(line, nbytes, "ETag", value)) {
        memcpy(t->said.tag, value, sizeof value);
    } else if (header_is(line, nbytes, "Last-Modified", value) && !*t->said.tag)
        memcpy(t->said.tag, value, sizeof value);
    return nbytes;
}

/* ---- Answers ----------------------------------------------------------------------------- */

static bool is_same_file(const struct said *a, const struct said *b)
{
    return a->total == b->total && !strcmp(a->tag, b->tag);
}

/* Takes note of the file with the first answer; later ones must be of the same. */
static bool know_file(struct transfer *t)
{
    struct fetch *f = t->fetch;
    if (f->knows_file && !is_same_file(&f->first, &t->said)) {
        refuse(t, "the file was changed meanwhile: ask again");
        return false;
    }
    if (perhaps_remote_size(f->remote, t->said.total)) {
        refuse(t, "the file was changed meanwhile: ask again");
        return false;
    }
    if (f->knows_file)
        return true;
    f->first = t->said;
    f->knows_file = true;
    const char *url = NULL;
    curl_easy_getinfo(t->easy, CURLINFO_EFFECTIVE_URL, &url);
    if (url && strlen(url) < sizeof f->url)
        snprintf(f->url, sizeof f->url, "%s", url);
    return true;
}

/* Looks at an answer before its first byte is taken. */
static bool look_at(struct transfer *t)
{
    const struct said *s = &t->said;
    const uint64_t from = t->range.at + t->got, end = t->range.at + t->range.nbytes;
    long status = 0;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status == 200) {
        refuse(t, "the server sends whole files, not ranges of them (Range): download it, and "
                  "ask the copy");
        return false;
    }
    if (status != 206) {
        if (!*t->fetch->problem)
            tell_status(t->fetch, status);
        t->error = PERHAPS_ERR_IO;
        return false;
    }
    if (!s->has_range || s->first != from || s->last + 1 > end ||
        (s->last + 1 < end && s->last + 1 != s->total)) {
        refuse(t, "the server sent another range than it was asked for (Content-Range)");
        return false;
    }
    if (!know_file(t))
        return false;
    if (s->last + 1 < end) /* the file is shorter than the first range */
        t->range.nbytes = s->total - t->range.at;
    return t->looked_at = true;
}

static size_t take_bytes(char *bytes, size_t size, size_t n, void *context)
{
    struct transfer *t = context;
    const size_t nbytes = size * n;
    if (t->error || (!t->looked_at && !look_at(t)))
        return 0;
    if (nbytes > t->range.nbytes - t->got ||
        perhaps_remote_take(t->fetch->remote, t->number, bytes, nbytes))
        return refuse(t, "the server sent more than it was asked for");
    t->got += nbytes;
    return nbytes;
}

/* ---- Requests ---------------------------------------------------------------------------- */

static void set_protocols(CURL *easy, const char *url)
{
    const bool tls = strncasecmp(url, "https:", 6) == 0;
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, tls ? "https" : "http,https");
#else
    const long both = CURLPROTO_HTTP | CURLPROTO_HTTPS;
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS, both);
    curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS, tls ? (long)CURLPROTO_HTTPS : both);
#endif
}

static bool make_transfer(struct fetch *f, struct transfer *t)
{
    const char *authorities = getenv("CURL_CA_BUNDLE");
    if (!authorities)
        authorities = getenv("SSL_CERT_FILE");
    CURL *easy = curl_easy_init();
    if (!easy)
        return false;
    *t = (struct transfer){ .fetch = f, .easy = easy };
    set_protocols(easy, f->options.url);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(easy, CURLOPT_MAXREDIRS, (long)REDIRECTS_MOST);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)SILENT_SECONDS);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "perhaps");
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->text);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
    if (authorities && *authorities)
        curl_easy_setopt(easy, CURLOPT_CAINFO, authorities);
    return true;
}

/* Asks for what is left of the transfer's range. */
static void start(struct transfer *t)
{
    struct fetch *f = t->fetch;
    char range[64];
    snprintf(range, sizeof range, "%" PRIu64 "-%" PRIu64, t->range.at + t->got,
             t->range.at + t->range.nbytes - 1);
    t->looked_at = false;
    t->error = 0;
    t->said = (struct said){ 0 };
    t->text[0] = '\0';
    t->busy = true;
    t->tries++;
    curl_easy_setopt(t->easy, CURLOPT_URL, f->url);
    curl_easy_setopt(t->easy, CURLOPT_RANGE, range);
    curl_multi_add_handle(f->multi, t->easy);
}

static bool may_come_back(CURLcode code)
{
    return code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR ||
           code == CURLE_GOT_NOTHING || code == CURLE_HTTP2 || code == CURLE_HTTP2_STREAM;
}

/* Ends a transfer, or begins it again where it broke.  Returns 0 or PERHAPS_ERR_IO. */
static int finish(struct transfer *t, CURLcode code)
{
    struct fetch *f = t->fetch;
    curl_multi_remove_handle(f->multi, t->easy);
    t->busy = false;
    if (t->error)
        return t->error;
    if (code == CURLE_OK && !t->looked_at && !look_at(t)) /* it has no bytes at all */
        return t->error;
    if (code == CURLE_OK && t->got == t->range.nbytes)
        return 0;
    if ((code == CURLE_OK || may_come_back(code)) && t->tries < TRIES_MOST) {
        start(t);
        return 0;
    }
    if (*f->problem)
        return PERHAPS_ERR_IO;
    if (code == CURLE_TOO_MANY_REDIRECTS)
        PROBLEM(f, "the server redirects more than %d times", REDIRECTS_MOST);
    else if (code == CURLE_OK || may_come_back(code))
        PROBLEM(f, "the answer was cut short: %s",
                *t->text ? t->text : "the server sent less than it said");
    else
        PROBLEM(f, "%s", *t->text ? t->text : curl_easy_strerror(code));
    return PERHAPS_ERR_IO;
}

/* Gives transfers that wait the next ranges.  Returns how many more are on their way. */
static size_t start_some(struct fetch *f, const struct perhaps_range *needs, size_t count,
                         size_t *next)
{
    const size_t before = *next;
    /* The first request tells which file it is, and may be redirected. */
    const unsigned most = f->knows_file ? f->options.connections : 1;
    for (unsigned i = 0; i < most && *next < count; i++) {
        struct transfer *t = &f->transfer[i];
        if (i == f->count && !make_transfer(f, t))
            break;
        f->count += i == f->count;
        if (t->busy)
            continue;
        t->range = needs[*next];
        t->number = (*next)++;
        t->got = 0;
        t->tries = 0;
        start(t);
    }
    return *next - before;
}

/* Takes what has ended.  Returns 0 or the first error. */
static int finish_some(struct fetch *f, size_t *running)
{
    CURLMsg *message;
    int left, error = 0;
    while (!error && (message = curl_multi_info_read(f->multi, &left))) {
        struct transfer *t = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        const CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &t);
        error = finish(t, code);
        *running -= !t->busy;
    }
    return error;
}

static void give_up(struct fetch *f)
{
    for (unsigned i = 0; i < f->count; i++)
        if (f->transfer[i].busy) {
            curl_multi_remove_handle(f->multi, f->transfer[i].easy);
            f->transfer[i].busy = false;
        }
}

/* Brings the ranges of a round. */
static int bring_round(struct fetch *f, const struct perhaps_range *needs, size_t count)
{
    size_t next = 0, running = 0;
    int error = 0, left;
    while (!error && (next < count || running)) {
        running += start_some(f, needs, count, &next);
        if (!running)
            error = PERHAPS_ERR_MEMORY;
        else if (f->options.stopped && f->options.stopped(f->options.context))
            error = PERHAPS_ERR_STOPPED;
        else if (curl_multi_perform(f->multi, &left) != CURLM_OK)
            error = PERHAPS_ERR_MEMORY;
        else if (!(error = finish_some(f, &running)) && left && running)
            curl_multi_poll(f->multi, NULL, 0, POLL_MS, NULL);
    }
    if (error)
        give_up(f);
    return error;
}

/* ---- Calls ------------------------------------------------------------------------------- */

int fetch_new(const struct fetch_options *options, struct fetch **fetch)
{
    *fetch = NULL;
    if (curl_global_init(CURL_GLOBAL_DEFAULT))
        return PERHAPS_ERR_IO;
    struct fetch *f = calloc(1, sizeof *f);
    if (!f)
        return PERHAPS_ERR_MEMORY;
    f->options = *options;
    f->options.url = strdup(options->url);
    if (f->options.connections < 1 || f->options.connections > CONNECTIONS_MOST)
        f->options.connections = CONNECTIONS_MOST;
    f->multi = curl_multi_init();
    if (!f->multi || !f->options.url || strlen(options->url) >= sizeof f->url) {
        fetch_free(f);
        return PERHAPS_ERR_MEMORY;
    }
    snprintf(f->url, sizeof f->url, "%s", options->url);
    curl_multi_setopt(f->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)f->options.connections);
    *fetch = f;
    return 0;
}

int fetch_bring(struct fetch *f, perhaps_remote *remote)
{
    size_t count;
    int error = 0;
    f->remote = remote;
    f->problem[0] = '\0';
    for (;;) {
        const struct perhaps_range *needs = perhaps_remote_needs(remote, &count);
        if (!count)
            return 0;
        error = bring_round(f, needs, count);
        if (!error)
            error = perhaps_remote_next(remote);
        if (error)
            return error;
    }
}

const char *fetch_problem(const struct fetch *f)
{
    return f->problem;
}

void fetch_free(struct fetch *f)
{
    if (!f)
        return;
    give_up(f);
    for (unsigned i = 0; i < f->count; i++)
        curl_easy_cleanup(f->transfer[i].easy);
    if (f->multi)
        curl_multi_cleanup(f->multi);
    free((char *)f->options.url);
    free(f);
}
