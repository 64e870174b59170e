/* cluster_options.c - what to measure. */
#include <err.h>
#include <getopt.h>
#include <stdlib.h>

#include "cluster.h"

static const char usage[] =
    "usage: perhaps-bench-cluster --servers redis://HOST:PORT [OPTION...]\n"
    "       ./dev bench cluster [OPTION...]      starts servers of its own\n"
    "Measures one filter over the servers of a Redis or Valkey Cluster, in turns with "
    "pipelined\n"
    "GETs of 64 bytes and with a layout that sends a command for each bit.  All keep all "
    "servers\n"
    "busy from one thread.  Targets: at 0.1 %, asking takes 60 % or more of the keys that "
    "GETs\n"
    "take, and 5 times or more what the naive layout takes; adding 20 %, and 1.8 times.\n\n"
    "  --servers URL     any node of a cluster, or a server that is none\n"
    "  --single URL      a server that is none, measured last\n"
    "  --keys N          capacity [10M]\n"
    "  --fpr P[,P...]    false-positive rates to ask for [0.1%,1%,1e-6]\n"
    "  --key-bytes B[,B...]  bytes of a key [8,20]: all of them at the first rate\n"
    "  --batch N         keys a call [8192]\n"
    "  --rounds N        turns [10]\n"
    "  --absent N        keys to ask to know the rate [5M]\n"
    "  --json FILE       write the results to FILE, too\n"
    "  --quick           a try, not a measurement: few keys, two turns\n"
    "  --help\n";

static void read_sizes(const char *text, struct plan *plan)
{
    double list[LIST_MAX];
    plan->nkey_nbytes = option_list("key-bytes", text, 8, 1024, list);
    for (size_t i = 0; i < plan->nkey_nbytes; i++)
        plan->key_nbytes[i] = (size_t)list[i];
}

static void read_option(int code, const char *value, struct plan *plan)
{
    switch (code) {
    case 's':
        plan->servers = value;
        break;
    case '1':
        plan->single = value;
        break;
    case 'n':
        plan->keys = (uint64_t)option_one("keys", value, 1e4, 1e11);
        break;
    case 'p':
        plan->nfpr = option_list("fpr", value, 1e-9, 0.5, plan->fpr);
        break;
    case 'B':
        read_sizes(value, plan);
        break;
    case 'b':
        plan->batch = (size_t)option_one("batch", value, 1, 1e6);
        break;
    case 'r':
        plan->rounds = (unsigned)option_one("rounds", value, 1, 1000);
        break;
    case 'a':
        plan->absent = (uint64_t)option_one("absent", value, 1, 1e11);
        break;
    case 'j':
        plan->json = value;
        break;
    case 'q':
        plan->quick = true;
        break;
    case 'h':
        fputs(usage, stdout);
        exit(0);
    default:
        fputs("perhaps-bench-cluster --help tells what there is\n", stderr);
        exit(2);
    }
}

/* What was not given. */
static void complete(struct plan *plan)
{
    enum { PIECE = 1 << 16, QUICK_PIECE = 1 << 13 };
    size_t piece = plan->quick ? QUICK_PIECE : PIECE;
    if (!plan->keys)
        plan->keys = plan->quick ? 200000 : 10000000;
    if (!plan->nfpr)
        plan->nfpr =
            option_list("fpr", plan->quick ? "0.1%" : "0.1%,1%,1e-6", 1e-9, 0.5, plan->fpr);
    if (!plan->nkey_nbytes)
        read_sizes(plan->quick ? "8" : "8,20", plan);
    if (!plan->batch)
        plan->batch = plan->quick ? 4096 : 8192;
    if (!plan->rounds)
        plan->rounds = plan->quick ? 2 : 10;
    if (!plan->absent)
        plan->absent = plan->quick ? 100000 : 5000000;
    plan->samples = plan->quick ? 10 : 200;
    plan->piece = (piece + plan->batch - 1) / plan->batch * plan->batch;
    if (plan->keys / plan->rounds < 2 * plan->piece)
        errx(2, "--keys: fewer than twice what is added in the rounds, %u times %zu",
             plan->rounds, plan->piece);
}

void plan_read(int argc, char **argv, struct plan *plan)
{
    static const struct option options[] = {
        { "servers", required_argument, NULL, 's' },
        { "single", required_argument, NULL, '1' },
        { "keys", required_argument, NULL, 'n' },
        { "fpr", required_argument, NULL, 'p' },
        { "key-bytes", required_argument, NULL, 'B' },
        { "batch", required_argument, NULL, 'b' },
        { "rounds", required_argument, NULL, 'r' },
        { "absent", required_argument, NULL, 'a' },
        { "json", required_argument, NULL, 'j' },
        { "quick", no_argument, NULL, 'q' },
        { "help", no_argument, NULL, 'h' },
        { 0 },
    };
    int code;
    *plan = (struct plan){ 0 };
    while ((code = getopt_long(argc, argv, "h", options, NULL)) != -1)
        read_option(code, optarg, plan);
    if (optind < argc)
        errx(2, "%s: takes options only, see --help", argv[optind]);
    if (!plan->servers)
        errx(2, "--servers is missing (./dev bench cluster starts some)");
    complete(plan);
}
