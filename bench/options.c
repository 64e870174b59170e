/* options.c - what to measure. */
#include <err.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "bench.h"

static const char usage[] =
    "usage: perhaps-bench [OPTION...]\n"
    "       perhaps-bench grow [OPTION...]\n"
    "Measures filters, each beside bare memory accesses over as many bytes.\n\n"
    "grow: those that grow (and a window), from --start keys to --keys: memory and rate as "
    "the\n"
    "keys come, times beside a filter of fixed size, pauses, removals.  It takes --keys (one\n"
    "number [10M]), --start, --kind, --key-bytes, --hashed, --repeat [3], --json and "
    "--quick\n\n"
    "  --keys N[,N...]   keys in the filter [1M,10M,100M]\n"
    "  --fpr P[,P...]    false-positive rates to ask for [1%,0.1%,0.01%]\n"
    "  --load L[,L...]   fill filters with slots to this share, too [0.95]; 0: do not\n"
    "  --body BYTES      as many keys as make bodies of so many bytes, such as 1GiB\n"
    "  --threads T[,T...]  in so many threads; more than one add to a shared filter\n"
    "                    [1 and as many as there are CPUs]\n"
    "  --kind K          only this one: a kind, or a peer\n"
    "  --peers           all peers, also those that take long or are no C\n"
    "  --key-bytes B     bytes of a key: 8, 16, 20 or 32 [8]\n"
    "  --start N         grow: keys that the filters are made for [1000]\n"
    "  --hashed          keys of 16 bytes that are hashed already\n"
    "  --repeat R        passes of which the best counts [5]\n"
    "  --json FILE       write the results to FILE, too\n"
    "  --quick           a try, not a measurement: few keys and queries, one pass\n"
    "  --help\n";

static void read_keys(const char *text, struct settings *settings)
{
    double list[LIST_MAX];
    settings->nkeys = option_list("keys", text, 1000, 1e12, list);
    for (size_t i = 0; i < settings->nkeys; i++)
        settings->keys[i] = (uint64_t)list[i];
}

static void read_key_nbytes(const char *text, struct settings *settings)
{
    uint64_t nbytes = (uint64_t)option_one("key-bytes", text, 1, 1024);
    if (nbytes != 8 && nbytes != 16 && nbytes != 20 && nbytes != 32)
        errx(2, "--key-bytes %s: give 8, 16, 20 or 32", text);
    settings->key_nbytes = nbytes;
}

static void read_threads(const char *text, struct settings *settings)
{
    double list[LIST_MAX];
    settings->nthreads = option_list("threads", text, 1, THREADS_MAX, list);
    for (size_t i = 0; i < settings->nthreads; i++)
        settings->threads[i] = (size_t)list[i];
}

static void use_all_cpus(struct settings *settings)
{
    int cpus = get_nprocs();
    settings->threads[settings->nthreads++] = 1;
    if (cpus > 1 && cpus <= THREADS_MAX)
        settings->threads[settings->nthreads++] = (size_t)cpus;
}

/* The largest power of two that neither limit forbids. */
static size_t keys_a_piece(uint64_t key_nbytes)
{
    size_t keys = PIECE_KEYS;
    while (keys * key_nbytes > PIECE_NBYTES)
        keys /= 2;
    return keys;
}

/* What was not given, and what 'grow' does not take. */
static void complete_grow(struct settings *settings)
{
    const uint64_t usual_start = 1000;
    if (!settings->grow && settings->start)
        errx(2, "--start: of filters that grow: perhaps-bench grow");
    if (!settings->grow)
        return;
    if (settings->nkeys > 1 || settings->nfpr || settings->nload || settings->nthreads ||
        settings->body_nbytes || settings->peers)
        errx(2, "grow: takes one number of keys, and not --fpr, --load, --body, --threads, "
                "--peers");
    if (!settings->nkeys)
        read_keys(settings->quick ? "200k" : "10M", settings);
    if (!settings->start)
        settings->start = usual_start;
    if (settings->start > settings->keys[0] / 2)
        errx(2, "--start: more than half of --keys");
    if (!settings->repeat && !settings->quick)
        settings->repeat = 3;
}

/* What was not given. */
static void complete(struct settings *settings)
{
    enum { QUERIES = 1 << 22 };
    complete_grow(settings);
    if (settings->nkeys && settings->body_nbytes)
        errx(2, "--body: tells the number of keys: leave out --keys");
    if (!settings->nkeys)
        read_keys(settings->quick ? "200k" : "1M,10M,100M", settings);
    if (!settings->nfpr)
        settings->nfpr = option_list("fpr", settings->quick ? "1%" : "1%,0.1%,0.01%",
                                     PERHAPS_FPR_MIN, 1, settings->fpr);
    if (!settings->nload)
        settings->nload = option_list("load", "0.95", 0, 1, settings->load);
    if (!settings->repeat)
        settings->repeat = settings->quick ? 1 : 5;
    if (!settings->nthreads)
        use_all_cpus(settings);
    if (!settings->key_nbytes)
        settings->key_nbytes = settings->hashed ? PERHAPS_HASH_NBYTES : 8;
    if (settings->hashed && settings->key_nbytes != PERHAPS_HASH_NBYTES)
        errx(2, "--hashed: keys have %d bytes: leave out --key-bytes", PERHAPS_HASH_NBYTES);
    settings->piece = keys_a_piece(settings->key_nbytes);
    settings->rounds = settings->quick ? 4 : QUERIES / settings->piece;
}

static void read_option(int code, const char *value, struct settings *settings)
{
    switch (code) {
    case 'n':
        read_keys(value, settings);
        break;
    case 'p':
        settings->nfpr = option_list("fpr", value, PERHAPS_FPR_MIN, 0.999, settings->fpr);
        break;
    case 'l':
        settings->nload = option_list("load", value, 0, 1, settings->load);
        break;
    case 'b':
        settings->body_nbytes = (uint64_t)option_one("body", value, 1e5, 1e12);
        break;
    case 's':
        settings->start = (uint64_t)option_one("start", value, 1, 1e12);
        break;
    case 't':
        read_threads(value, settings);
        break;
    case 'P':
        settings->peers = true;
        break;
    case 'k':
        settings->contender = value;
        break;
    case 'B':
        read_key_nbytes(value, settings);
        break;
    case 'H':
        settings->hashed = true;
        break;
    case 'r':
        settings->repeat = (uint64_t)option_one("repeat", value, 1, 1000);
        break;
    case 'j':
        settings->json = value;
        break;
    case 'q':
        settings->quick = true;
        break;
    case 'h':
        fputs(usage, stdout);
        exit(0);
    default:
        fputs("perhaps-bench --help tells what there is\n", stderr);
        exit(2);
    }
}

void settings_read(int argc, char **argv, struct settings *settings)
{
    static const struct option options[] = {
        { "keys", required_argument, NULL, 'n' },
        { "fpr", required_argument, NULL, 'p' },
        { "load", required_argument, NULL, 'l' },
        { "body", required_argument, NULL, 'b' },
        { "kind", required_argument, NULL, 'k' },
        { "key-bytes", required_argument, NULL, 'B' },
        { "hashed", no_argument, NULL, 'H' },
        { "repeat", required_argument, NULL, 'r' },
        { "json", required_argument, NULL, 'j' },
        { "quick", no_argument, NULL, 'q' },
        { "peers", no_argument, NULL, 'P' },
        { "threads", required_argument, NULL, 't' },
        { "start", required_argument, NULL, 's' },
        { "help", no_argument, NULL, 'h' },
        { 0 },
    };
    int code;
    *settings = (struct settings){ 0 };
    while ((code = getopt_long(argc, argv, "h", options, NULL)) != -1)
        read_option(code, optarg, settings);
    settings->grow = optind < argc && !strcmp(argv[optind], "grow");
    if (optind + settings->grow < argc)
        errx(2, "%s: takes options only, see --help", argv[optind + settings->grow]);
    complete(settings);
}
