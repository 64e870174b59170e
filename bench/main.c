/* perhaps-bench - measures all kinds and their peers at all sizes and rates in one run; or the
 * filters that grow, while they grow (grow.h); or many small ones (small.c). */
#include <err.h>
#include <math.h>
#include <perhaps_build.h>
#include <perhaps_plan.h>
#include <signal.h>
#include <string.h>

#include "report.h"

/* The rate that --load asks for.  A filter that is filled beyond its capacity errs more often
 * than at it.  This rate is a little higher than theirs at that load, so that they take the
 * keys. */
static const double fpr_for_loads = 1.5e-4;

/* ---- Options ----------------------------------------------------------------------------- */

/* The only one of the program; complete() is the last to write it. */
static struct settings settings;

static const char usage[] =
    "usage: perhaps-bench [OPTION...]\n"
    "       perhaps-bench grow [OPTION...]\n"
    "       perhaps-bench small [OPTION...]\n"
    "       perhaps-bench cold [OPTION...]\n"
    "       perhaps-bench lines N             prints lines, for cli_bench.sh\n"
    "       perhaps-bench bits                prints bits a key by rate, for plot.sh\n"
    "Measures filters, each beside bare memory accesses over as many bytes.\n\n"
    "  --keys N[,N...]   keys in the filter [1M,10M,100M]\n"
    "  --fpr P[,P...]    false-positive rates to ask for [1%,0.1%,0.01%]\n"
    "  --load L[,L...]   fill filters with slots to this share, too [0.95]; 0: do not\n"
    "  --body BYTES      as many keys as make bodies of so many bytes, such as 1GiB\n"
    "  --threads T[,T...]  in so many threads; more than one add to a shared filter, or to\n"
    "                    a builder that takes as many\n"
    "                    [1 and as many as there are CPUs]\n"
    "  --peers           all peers, also those that take long or are no C\n"
    "  --repeat R        passes of which the best counts [5; grow: 3; small: 30]\n"
    "  --kind K[,K...]   only these kinds and peers\n"
    "  --key-bytes B     bytes of a key: 8 to 64 [8]\n"
    "  --hashed          keys of 16 bytes that are hashed already\n"
    "  --secret          hash the keys of the library's filters under a secret (sip)\n"
    "  --json FILE       write the results to FILE, too\n"
    "  --quick           a try, not a measurement: few keys and queries, one pass\n"
    "  --help\n\n"
    "grow: those that grow (and a window), from --start keys [1000] to --keys [10M]: memory\n"
    "and rate as the keys come, times beside a filter of fixed size, pauses, removals.  It\n"
    "takes --repeat and what stands behind that, too.\n\n"
    "small: filters of few --keys [10,1k,20k,100k] at 1 %, from the first call to the last: "
    "to\n"
    "make and fill one, its bytes, to open it and ask for a key; beside RocksDB's.  It takes\n"
    "--repeat, --key-bytes and --json, too.\n\n"
    "cold: questions to a file of --body [1e9] bytes in --folder [.] that is not in memory,\n"
    "beside its disk; --sparse: zeros take no room on the disk.  --repeat and --json, too.\n";

static const struct option_row bench_options[] = {
    { "keys", .list = &settings.keys, LIST_MAX, 1000, 1e12, "1M,10M,100M", "200k" },
    { "fpr", .list = &settings.fpr, LIST_MAX, PERHAPS_FPR_MIN, 0.999, "1%,0.1%,0.01%", "1%" },
    { "load", .list = &settings.load, LIST_MAX, 0, 1, "0.95" },
    { "body", .list = &settings.body_nbytes, 1, 1e5, 1e12 },
    { "threads", .list = &settings.threads, LIST_MAX, 1, THREADS_MAX },
    { "repeat", .list = &settings.repeat, 1, 1, 1000, "5", "1" },
    { "peers", .flag = &settings.peers },
    { 0 },
};

static const struct option_row grow_options[] = {
    { "keys", .list = &settings.keys, 1, 1000, 1e12, "10M", "200k" },
    { "start", .list = &settings.start, 1, 1, 1e12, "1000" },
    { "repeat", .list = &settings.repeat, 1, 1, 1000, "3", "1" },
    { 0 },
};

static const struct option_row small_options[] = {
    { "keys", .list = &settings.keys, LIST_MAX, 1, 1e9, "10,1k,20k,100k", "10,1k" },
    { "repeat", .list = &settings.repeat, 1, 1, 1000, "30", "1" },
    { 0 },
};

static const struct option_row cold_options[] = {
    { "body", .list = &settings.body_nbytes, 1, 1e6, 1e13, "1e9", "2e7" },
    { "repeat", .list = &settings.repeat, 1, 1, 1000, "3", "1" },
    { "folder", .text = &settings.folder },
    { "sparse", .flag = &settings.sparse },
    { 0 },
};

static const struct option_row common_options[] = {
    { "key-bytes", .list = &settings.key_nbytes, 1, 8, 64, "8" },
    { "kind", .text = &settings.kind },
    { "json", .text = &settings.json },
    { "hashed", .flag = &settings.hashed },
    { "secret", .flag = &settings.secret },
    { "quick", .flag = &settings.quick },
    { 0 },
};

/* Fills in the settings that follow from the options.  A piece has fewer keys if they are long,
 * so that it fits in the cache.  A pass asks for about 4 million keys whatever the piece is. */
static void complete(void)
{
    enum { QUERIES = 1 << 22 };
    if (settings.hashed)
        settings.key_nbytes.at[0] = PERHAPS_HASH_NBYTES;
    if (!settings.threads.count) {
        settings.threads.at[settings.threads.count++] = 1;
        const unsigned all = perhaps_host_threads();
        if (all > 1 && all <= THREADS_MAX)
            settings.threads.at[settings.threads.count++] = all;
    }
    settings.piece = PIECE_KEYS;
    while ((double)settings.piece * settings.key_nbytes.at[0] > (double)PIECE_NBYTES)
        settings.piece /= 2;
    settings.rounds = settings.quick ? 4 : QUERIES / settings.piece;
}

/* ---- The table --------------------------------------------------------------------------- */

#define SPEED_COLUMNS(name)                                                                    \
    "|" name " " name ".ns 7.1; bare " name ".bare_ns 5.1; x " name ".ratio 5x; "

static const char what_columns[] =
    "filter filter -14s; keys keys 6n; asked fpr 6%; measured fpr_measured 8%; "
    "bits/key bits_per_key 8.2; load load 5%; huge huge 5%; thr threads 3.0; shared shared 6b;";

/* A table has a line for each way to call, with columns of the same names: hence two sets of
 * columns. */
static const char speed_columns[] =
    SPEED_COLUMNS("add") SPEED_COLUMNS("absent") SPEED_COLUMNS("present");

static void print_head(void)
{
    printf(
        "keys: %.0f random bytes, %s; a bitmap's: %d digits, every second number of a range\n",
        settings.key_nbytes.at[0],
        settings.hashed   ? "hashed already (hash none)"
        : settings.secret ? "hashed by the filter (sip in the library's)"
                          : "hashed by the filter (xxh3-64 in the library's)",
        INTEGER_NBYTES);
    printf(
        "ns a key: the average over pieces of %zu keys a thread, made just before in its "
        "cache; of each piece the best of %.0f passes\n"
        "  add: from empty to full, memory touched before (beyond 256 rounds of pieces: an "
        "even sample of them, of 8 neighbours the best);\n"
        "  absent, present: %zu queries a pass and thread, others in each\n"
        "  single: a call for each key; batched: a call for the piece; prepared: single, of\n"
        "  keys that were prepared %d keys before\n",
        settings.piece, settings.repeat.at[0], settings.rounds * settings.piece,
        PREPARED_AHEAD);
    printf("bare: random 64-byte lines of as many bytes on huge pages, in turn with the "
           "filter, piece by piece, timed alike,\n"
           "  in as many threads; read beside queries, read and written beside adds; in a "
           "rolling ring of %d prefetches\n"
           "  beside batched calls, else in a plain loop. x: ns / bare\n"
           "thr: threads at one filter, ns being those of all together; shared: made to be. "
           "huge: share of the filter on\n"
           "  huge pages; load: of slots, in kinds that have them\n\n",
           RING);
    table_head(what_columns);
    printf(" %-8s", "calls");
    table_head(speed_columns);
    putchar('\n');
}

/* Prints a line for each way to call; 'what_columns' stand only in the first. */
static void print_row(const json_t *row)
{
    const json_t *problem = json_object_get(row, "problem");
    if (problem)
        printf("%-14s %6.4g keys, %.4g%%: %s\n",
               json_string_value(json_object_get(row, "filter")),
               json_number_at(row, "capacity"), 100 * json_number_at(row, "fpr"),
               json_string_value(problem));
    for (int calls = SINGLE; calls < CALLS; calls++) {
        const json_t *speeds = json_object_get(row, call_names[calls]);
        if (!speeds)
            continue;
        table_row(what_columns, calls == SINGLE ? row : NULL);
        printf(" %-8s", call_names[calls]);
        table_row(speed_columns, speeds);
        putchar('\n');
    }
    fflush(stdout);
}

/* ---- One contender ----------------------------------------------------------------------- */

/* One run of the program. */
struct bench {
    struct contender contenders[CONTENDERS_MAX];
    size_t ncontenders;
    json_t *rows; /* belongs to the facts of the run */
    bool wrong;   /* whether any contender gave a wrong answer */
};

/* Measures one row, prints it and keeps it.  Returns whether it was measured; else it tells the
 * problem. */
static bool measure_and_report(struct bench *bench, const struct contender *contender,
                               const struct task *task)
{
    json_t *row = measure(contender, task, &bench->wrong);
    print_row(row);
    json_array_append_new(bench->rows, row);
    return !json_object_get(row, "problem");
}

/* Measures one contender: in one thread, as usual; in one thread but made to be shared, to see
 * what that costs (nothing, for a filter that is built once); and in each number of threads.
 * Where the first fails, the others would fail for the same reason, and are left out. */
static void measure_threads(struct bench *bench, const struct contender *contender,
                            struct task task)
{
    const struct list *threads = &settings.threads;
    if (settings.body_nbytes.count)
        task.capacity = contender_capacity(contender, task.fpr, settings.body_nbytes.at[0]);
    task.nthreads = 1;
    bool well = measure_and_report(bench, contender, &task);
    bool more = threads->count > 1 || threads->at[0] > 1;
    task.shared = contender->can_share && !contender->finish;
    if (more && well && task.shared)
        measure_and_report(bench, contender, &task);
    for (size_t i = 0; i < threads->count && well; i++) {
        task.nthreads = (size_t)threads->at[i];
        if (task.nthreads > 1 && contender->can_threads)
            measure_and_report(bench, contender, &task);
    }
}

/* ---- All contenders ---------------------------------------------------------------------- */

static bool is_named(const struct contender *contender)
{
    return has_name(settings.kind, contender->name);
}

/* Returns whether the contender is to be measured and can be. */
static bool is_wanted(const struct contender *contender)
{
    bool in_time = !contender->is_heavy || settings.peers || settings.kind;
    return !contender->missing && is_named(contender) && in_time;
}

/* Measures all contenders at one number of keys: at each rate, then at each load. */
static void measure_at(struct bench *bench, uint64_t keys)
{
    struct task task = { .capacity = keys, .settings = &settings };
    for (size_t i = 0; i < settings.fpr.count; i++) {
        task.fpr = settings.fpr.at[i];
        for (size_t c = 0; c < bench->ncontenders; c++)
            if (is_wanted(&bench->contenders[c]))
                measure_threads(bench, &bench->contenders[c], task);
    }
    for (size_t i = 0; i < settings.load.count; i++) {
        task.fpr = fpr_for_loads;
        task.load = settings.load.at[i];
        for (size_t c = 0; task.load > 0 && c < bench->ncontenders; c++)
            if (is_wanted(&bench->contenders[c]) && bench->contenders[c].has_buckets)
                measure_threads(bench, &bench->contenders[c], task);
    }
}

/* Lists the contenders.  Ends the program if --kind has a name that none of them has, or that
 * of one that is not installed. */
static void list_contenders(struct bench *bench)
{
    size_t unknown = settings.kind != NULL;
    for (const char *at = settings.kind; at && (at = strchr(at, ',')); at++)
        unknown++;
    bench->ncontenders = contenders_list(bench->contenders);
    for (size_t c = 0; settings.kind && c < bench->ncontenders; c++) {
        const struct contender *contender = &bench->contenders[c];
        unknown -= is_named(contender);
        if (is_named(contender) && contender->missing)
            errx(2, "--kind %s: %s", contender->name, contender->missing);
    }
    if (!unknown)
        return;
    for (size_t c = 0; c < bench->ncontenders; c++)
        fprintf(stderr, "%s%s", c ? ", " : "there are ", bench->contenders[c].name);
    fputc('\n', stderr);
    errx(2, "--kind %s: not all of them are", settings.kind);
}

/* Measures all rows of the table, then says which contenders were left out.  Returns whether
 * any gave a wrong answer. */
static bool measure_all(json_t *facts)
{
    static struct bench bench;
    list_contenders(&bench);
    print_head();
    bench.rows = json_array();
    json_object_set_new(facts, "rows", bench.rows);
    if (settings.body_nbytes.count)
        measure_at(&bench, 0);
    for (size_t i = 0; !settings.body_nbytes.count && i < settings.keys.count; i++)
        measure_at(&bench, (uint64_t)settings.keys.at[i]);
    for (size_t c = 0; c < bench.ncontenders && !settings.kind; c++) {
        const struct contender *contender = &bench.contenders[c];
        if (!is_wanted(contender))
            printf("%-14s %s\n", contender->name,
                   contender->missing ? contender->missing : "left out (--peers)");
    }
    return bench.wrong;
}

/* ---- Modes that measure nothing ---------------------------------------------------------- */

/* A double has all integers up to 2^53. */
static void print_lines(const char *number)
{
    double count = 0;
    if (!number || sscanf(number, "%lf", &count) != 1 || !(count >= 1 && count < 0x1p53))
        errx(2, "usage: perhaps-bench lines N");
    lines_print((uint64_t)count);
}

/* Prints bits a key by rate as plot.gp reads them: a block for each kind of fixed size that
 * goes by a rate, then one for the information limit of log2(1/fpr) bits.  The last round of
 * the loop, without a kind, is that one. */
static void print_bits(void)
{
    enum { STEPS_A_DECADE = 12, DECADES = 9 };
    const struct perhaps_kind *kind = perhaps_kind_at(0);
    struct perhaps_plan plan;
    for (size_t k = 0; kind; k++) {
        kind = perhaps_kind_at(k);
        bool begun = false;
        if (kind && (kind->abilities & (PERHAPS_CAN_GROW | PERHAPS_CAN_FORGET) ||
                     !strcmp(kind->name, "against"))) /* goes by the second list */
            continue;
        for (int i = STEPS_A_DECADE / 3; i <= DECADES * STEPS_A_DECADE; i++) {
            double fpr = pow(10, -i / (double)STEPS_A_DECADE);
            struct perhaps_options options = { .capacity = 1000000, .fpr = fpr };
            options.kind = kind ? kind->name : NULL;
            options.needs = kind ? kind->abilities & PERHAPS_CAN_BUILD : 0;
            if (perhaps_plan_for(&options, &plan))
                continue;
            if (!begun)
                printf("\"%s\"\n", kind ? kind->name : "information limit");
            begun = true;
            printf("%g %g\n", fpr, kind ? plan.bits_per_key : -log2(fpr));
        }
        if (begun)
            printf("\n\n");
    }
}

/* The usual table, and what follows it.  Returns whether an answer was wrong. */
static bool table_all(const struct settings *all, json_t *facts)
{
    bool wrong = measure_all(facts);
    if (!all->hashed && !all->body_nbytes.count)
        wrong |= pairs_all(all, facts);
    return wrong;
}

/* What is measured: the first word of the command line, or the usual if that is none. */
static const struct mode {
    const char *name;
    const struct option_row *options;
    bool (*measure)(const struct settings *settings, json_t *facts);
} modes[] = {
    { "", bench_options, table_all },
    { "grow", grow_options, grow_all },
    { "small", small_options, small_all },
    { "cold", cold_options, cold_all },
};

static const struct mode *mode_named(const char *name)
{
    for (size_t i = 1; i < sizeof modes / sizeof *modes; i++)
        if (name && !strcmp(name, modes[i].name))
            return &modes[i];
    return modes;
}

int main(int argc, char **argv)
{
    const struct mode *mode = mode_named(argv[1]);
    const int named = mode != modes;
    if (argc > 1 && !strcmp(argv[1], "lines")) {
        print_lines(argv[2]);
        return 0;
    }
    if (argc > 1 && !strcmp(argv[1], "bits")) {
        print_bits();
        return 0;
    }
    signal(SIGPIPE, SIG_IGN); /* a peer that has ended is a row with a problem */
    options_read(argc - named, argv + named, usage, mode->options, common_options,
                 &settings.quick);
    complete();
    json_t *facts = report_machine();
    json_object_update_new(
        facts, json_pack("{s:I, s:b, s:b, s:I, s:I, s:I, s:i}", "key_bytes",
                         (json_int_t)settings.key_nbytes.at[0], "hashed", settings.hashed,
                         "secret", settings.secret, "repeat", (json_int_t)settings.repeat.at[0],
                         "queries_a_pass_and_thread",
                         (json_int_t)settings.rounds * (json_int_t)settings.piece,
                         "keys_a_piece", (json_int_t)settings.piece, "ring", RING));
    bool wrong = mode->measure(&settings, facts);
    report_close(facts, settings.json);
    return wrong;
}
