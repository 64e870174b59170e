/* perhaps-simulate - how evenly a filter lies on the nodes of a cluster, what moves when nodes
 * are added, what questions do that are not asked evenly: by the real names and the real slots.
 *
 * Nodes have equal, contiguous ranges of slots, as 'redis-cli --cluster create' gives them. */
#include <err.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "slots.h"

enum { PARTITIONS_MAX = 131072, NODES_MOST = 256, NAME_NBYTES = 40 };

static const char usage[] = "usage: perhaps-simulate [--seed N] [--names N] [--zipf-keys N]\n"
                            "Prints how evenly partitions, keys and questions lie on nodes.\n\n"
                            "  --seed N       of names and keys [1]\n"
                            "  --names N      filters of other names, of which the median and "
                            "the worst are told [100]\n"
                            "  --zipf-keys N  different keys that are asked for [10M]\n";

static uint64_t seed = 1, zipf_keys = 10000000;
static size_t names = 100;

static const size_t partition_numbers[] = { 1024, 4096, 16384, PARTITIONS_MAX };
static const size_t node_numbers[] = { 3, 6, 60, 200 };

#define COUNT(array) (sizeof(array) / sizeof *(array))

static double random_number(uint64_t stream, uint64_t i)
{
    return (double)(random64(random64(seed + (stream << 32)) ^ i) >> 11) * 0x1p-53;
}

/* ---- Where partitions lie ---------------------------------------------------------------- */

/* The first is 'urls', the others are as random as a number in them. */
static void filter_name(char name[NAME_NBYTES], size_t number)
{
    if (number == 0)
        snprintf(name, NAME_NBYTES, "urls");
    else
        snprintf(name, NAME_NBYTES, "set-%" PRIx64, random64(seed ^ random64(number)) >> 32);
}

/* The slots of the partitions perhaps:{NAME/0}, perhaps:{NAME/1}, ... */
static void find_slots(uint16_t *slots, size_t number, size_t partitions)
{
    char name[NAME_NBYTES], key[2 * NAME_NBYTES];
    filter_name(name, number);
    for (size_t p = 0; p < partitions; p++) {
        int nbytes = snprintf(key, sizeof key, "perhaps:{%s/%zu}", name, p);
        slots[p] = (uint16_t)name_slot(key, (size_t)nbytes);
    }
}

static size_t node_of(unsigned slot, size_t nodes)
{
    return slot * nodes / SLOTS;
}

/* The largest to the mean. */
static double unevenness(const double *loads, size_t count)
{
    double largest = 0, sum = 0;
    for (size_t i = 0; i < count; i++) {
        largest = loads[i] > largest ? loads[i] : largest;
        sum += loads[i];
    }
    return largest * (double)count / sum;
}

static double partitions_on_nodes(const uint16_t *slots, size_t partitions, size_t nodes)
{
    double loads[NODES_MOST] = { 0 };
    for (size_t p = 0; p < partitions; p++)
        loads[node_of(slots[p], nodes)]++;
    return unevenness(loads, nodes);
}

static double at_random(uint64_t stream, size_t partitions, size_t nodes)
{
    double loads[NODES_MOST] = { 0 };
    for (size_t p = 0; p < partitions; p++)
        loads[(size_t)(random_number(stream, p) * (double)nodes)]++;
    return unevenness(loads, nodes);
}

/* ---- Balance ----------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_balance(double *of_names, double *random)
{
    qsort(of_names, names, sizeof *of_names, compare_numbers);
    qsort(random, names, sizeof *random, compare_numbers);
    printf(" |%6.3f %6.3f %6.3f", of_names[names / 2], of_names[names - 1], random[names / 2]);
}

/* Of filters of so many partitions under all names, on all numbers of nodes. */
static void balance_row(size_t partitions, uint16_t *slots)
{
    double *balance = calloc(2 * COUNT(node_numbers) * names, sizeof *balance);
    double *random = balance + COUNT(node_numbers) * names;
    if (!balance)
        errx(2, "out of memory");
    for (size_t name = 0; name < names; name++) {
        find_slots(slots, name, partitions);
        for (size_t n = 0; n < COUNT(node_numbers); n++) {
            balance[n * names + name] = partitions_on_nodes(slots, partitions, node_numbers[n]);
            random[n * names + name] = at_random(name, partitions, node_numbers[n]);
        }
    }
    printf("%10zu", partitions);
    for (size_t n = 0; n < COUNT(node_numbers); n++)
        print_balance(balance + n * names, random + n * names);
    printf("\n");
    free(balance);
}

static void show_balance(uint16_t *slots)
{
    printf("Partitions on the fullest node to the mean: median and worst of %zu names, and the "
           "median of places at random\n%10s",
           names, "partitions");
    for (size_t n = 0; n < COUNT(node_numbers); n++)
        printf(" | %12zu nodes  ", node_numbers[n]);
    printf("\n");
    for (size_t i = 0; i < COUNT(partition_numbers); i++)
        balance_row(partition_numbers[i], slots);
}

/* ---- Keys of partitions ------------------------------------------------------------------ */

static void show_keys(void)
{
    enum { KEYS = 10000000 };
    double *loads = calloc(PARTITIONS_MAX, sizeof *loads);
    if (!loads)
        errx(2, "out of memory");
    printf("\nKeys of the fullest partition to the mean, of %d keys; by sqrt(2 ln P / mean)\n"
           "%10s %10s %10s %10s\n",
           KEYS, "partitions", "mean", "largest", "formula");
    for (size_t i = 0; i < COUNT(partition_numbers); i++) {
        size_t partitions = partition_numbers[i];
        double mean = (double)KEYS / (double)partitions;
        memset(loads, 0, PARTITIONS_MAX * sizeof *loads);
        for (uint64_t key = 0; key < KEYS; key++)
            loads[(size_t)(random_number(i, key) * (double)partitions)]++;
        printf("%10zu %10.1f %10.3f %10.3f\n", partitions, mean, unevenness(loads, partitions),
               1 + sqrt(2 * log((double)partitions) / mean));
    }
    free(loads);
}

/* ---- Adding nodes ------------------------------------------------------------------------ */

/* The share of partitions that move when nodes come, each old one giving of its slots the first
 * ones, in equal parts. */
static double moved(const uint16_t *slots, size_t partitions, size_t nodes, size_t more)
{
    const double all = SLOTS;
    size_t count = 0;
    for (size_t p = 0; p < partitions; p++) {
        size_t node = node_of(slots[p], nodes);
        double first = ceil((double)node * all / (double)nodes);
        double place = (slots[p] - first) * (double)nodes / all; /* in the node's range */
        count += place < (double)more / (double)(nodes + more);
    }
    return (double)count / (double)partitions;
}

static void show_moves(uint16_t *slots)
{
    static const size_t steps[][2] = { { 3, 1 }, { 6, 1 }, { 6, 6 }, { 60, 1 }, { 60, 60 } };
    enum { PARTITIONS = 131072 };
    printf("\nShare of the partitions that move when nodes come (%d partitions, 'urls'); the "
           "least possible\n",
           PARTITIONS);
    find_slots(slots, 0, PARTITIONS);
    for (size_t i = 0; i < COUNT(steps); i++)
        printf("%10zu to %3zu nodes: %6.2f %% (%.2f %%)\n", steps[i][0],
               steps[i][0] + steps[i][1],
               100 * moved(slots, PARTITIONS, steps[i][0], steps[i][1]),
               100 * (double)steps[i][1] / (double)(steps[i][0] + steps[i][1]));
}

/* ---- Hot keys ---------------------------------------------------------------------------- */

/* Questions for keys by Zipf's law, the i-th of which is asked for i^-exponent as often as the
 * first. */
struct questions {
    double exponent;
    size_t nodes;
    size_t cached; /* of the most asked, that clients answer themselves */
};

struct answer {
    double first; /* share of the key that is asked most */
    double reach; /* share of the questions that reach the servers */
    double node;  /* on the busiest node to the mean */
};

static struct answer ask(const struct questions *q, const uint16_t *slots, size_t partitions)
{
    double loads[NODES_MOST] = { 0 }, sum = 0, reached = 0;
    for (uint64_t key = 0; key < zipf_keys; key++) {
        double weight = pow((double)(key + 1), -q->exponent);
        size_t partition = (size_t)(random_number(1000, key) * (double)partitions);
        sum += weight;
        if (key < q->cached)
            continue;
        reached += weight;
        loads[node_of(slots[partition], q->nodes)] += weight;
    }
    return (struct answer){ .first = 1 / sum,
                            .reach = reached / sum,
                            .node = unevenness(loads, q->nodes) };
}

static void show_hot_keys(uint16_t *slots)
{
    static const double exponents[] = { 0, 0.8, 0.99, 1.2 };
    static const size_t nodes[] = { 6, 60 }, caches[] = { 0, 1000, 100000 };
    enum { PARTITIONS = 16384 };
    printf("\nQuestions for %" PRIu64
           " keys by Zipf's law, %d partitions, 'urls': the share of "
           "the first key;\nfor caches in the clients of the most asked keys: the share of the "
           "questions that still reaches the servers,\nand what the busiest node gets, to the "
           "mean\n%8s %5s %8s",
           zipf_keys, PARTITIONS, "exponent", "nodes", "first");
    for (size_t c = 0; c < COUNT(caches); c++)
        printf(" | %6zu cached ", caches[c]);
    printf("\n");
    find_slots(slots, 0, PARTITIONS);
    for (size_t e = 0; e < COUNT(exponents); e++)
        for (size_t n = 0; n < COUNT(nodes); n++)
            for (size_t c = 0; c < COUNT(caches); c++) {
                struct questions q = { exponents[e], nodes[n], caches[c] };
                struct answer a = ask(&q, slots, PARTITIONS);
                if (c == 0)
                    printf("%8.2f %5zu %7.3f%%", q.exponent, q.nodes, 100 * a.first);
                printf(" |%6.1f%% %6.2f", 100 * a.reach, a.node);
                if (c + 1 == COUNT(caches))
                    printf("\n");
            }
}

/* ---- All of it --------------------------------------------------------------------------- */

static void read_options(int argc, char **argv)
{
    static const struct option options[] = { { "seed", required_argument, NULL, 's' },
                                             { "names", required_argument, NULL, 'n' },
                                             { "zipf-keys", required_argument, NULL, 'z' },
                                             { "help", no_argument, NULL, 'h' },
                                             { 0 } };
    int code;
    while ((code = getopt_long(argc, argv, "h", options, NULL)) != -1)
        switch (code) {
        case 's':
            seed = (uint64_t)option_one("seed", optarg, 0, 0x1p53);
            break;
        case 'n':
            names = (size_t)option_one("names", optarg, 1, 1e5);
            break;
        case 'z':
            zipf_keys = (uint64_t)option_one("zipf-keys", optarg, 2e5, 1e12);
            break;
        default:
            fputs(usage, code == 'h' ? stdout : stderr);
            exit(code == 'h' ? 0 : 2);
        }
    if (optind < argc)
        errx(2, "%s: takes options only, see --help", argv[optind]);
}

int main(int argc, char **argv)
{
    static uint16_t slots[PARTITIONS_MAX];
    read_options(argc, argv);
    printf("seed %" PRIu64 "\n\n", seed);
    show_balance(slots);
    show_keys();
    show_moves(slots);
    show_hot_keys(slots);
    return 0;
}
