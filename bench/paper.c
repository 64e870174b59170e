/* perhaps-paper - what a filter takes on servers, by arithmetic: memory, nodes, commands and
 * their bytes; beside a classic Bloom filter with a command for each bit.
 *
 * The plan is the library's; commands are written here as doc/CLUSTER.md says, for random
 * keys. */
#include <err.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <perhaps_layout.h>

#include "bench.h"

/* The largest partitions that the client makes by itself, and how many it makes at least where
 * they do not become smaller than that. */
enum { PARTITION_NBYTES = (16 << 20) - 128, PARTITIONS_LEAST = 1024, SMALL_NBYTES = 4096 };
enum { SAMPLES = 2000 };

static const double rates[] = { 0.01, 0.001, 1e-4, 1e-6 };
static const char name[] = "urls";
static const double node_nbytes = 48 * 0x1p30; /* of a filter, on a node of 64 GiB */

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- Bytes ------------------------------------------------------------------------------- */

static size_t digits(uint64_t number)
{
    return (size_t)snprintf(NULL, 0, "%" PRIu64, number);
}

/* "$5\r\nhello\r\n" */
static size_t argument(size_t nbytes)
{
    return 1 + digits(nbytes) + 2 + nbytes + 2;
}

/* "*3\r\n" and the arguments. */
static size_t command(size_t count, size_t arguments_nbytes)
{
    return 1 + digits(count) + 2 + arguments_nbytes;
}

/* perhaps:{NAME/P}:ID, the ID of 12 digits. */
static size_t partition_argument(uint64_t partition)
{
    return argument(strlen("perhaps:{") + strlen(name) + 1 + digits(partition) + 2 + 12);
}

struct sizes {
    double add, added, ask, asked; /* bytes of command and reply, a key */
    unsigned nbits;
    size_t block_nbytes;
    uint64_t partitions;
};

static void count_key(const struct perhaps_bits *bits, uint64_t partition_blocks,
                      struct sizes *sizes)
{
    const double samples = SAMPLES;
    uint64_t partition = bits->block / partition_blocks;
    uint64_t offset = bits->block % partition_blocks * sizes->block_nbytes;
    size_t key = partition_argument(partition), sets = 0;
    for (unsigned i = 0; i < bits->nbits; i++)
        sets += argument(3) + argument(2) + argument(digits(8 * offset + bits->bit[i])) +
                argument(1);
    sizes->add += (double)command(2 + 4 * bits->nbits, argument(8) + key + sets) / samples;
    sizes->added += (double)(1 + digits(bits->nbits) + 2 + 4 * bits->nbits) / samples;
    sizes->ask += (double)command(4, argument(8) + key + argument(digits(offset)) +
                                         argument(digits(offset + sizes->block_nbytes - 1))) /
                  samples;
    sizes->asked += (double)argument(sizes->block_nbytes) / samples;
}

static uint64_t partitions_of(uint64_t body_nbytes)
{
    uint64_t least = (body_nbytes - 1) / PARTITION_NBYTES + 1,
             usual = body_nbytes / SMALL_NBYTES;
    usual = usual < PARTITIONS_LEAST ? usual : PARTITIONS_LEAST;
    return least > usual ? least : usual;
}

static struct sizes size_up(const perhaps_layout *layout, const struct perhaps_plan *plan)
{
    struct sizes sizes = { .partitions = partitions_of(plan->body_nbytes) };
    struct perhaps_bits bits;
    for (uint64_t i = 0; i < SAMPLES; i++) {
        uint64_t half[2] = { random64(2 * i), random64(2 * i + 1) };
        struct perhaps_hashed hashed;
        memcpy(hashed.bytes, half, sizeof half);
        perhaps_layout_locate(layout, &hashed, &bits);
        sizes.nbits = bits.nbits;
        sizes.block_nbytes = (size_t)bits.nlines * PERHAPS_LINE_NBYTES;
        uint64_t blocks = plan->body_nbytes / sizes.block_nbytes;
        uint64_t partition_blocks = (blocks + sizes.partitions - 1) / sizes.partitions;
        count_key(&bits, partition_blocks, &sizes);
    }
    return sizes;
}

/* ---- One filter -------------------------------------------------------------------------- */

static void print_row(uint64_t capacity, double fpr)
{
    perhaps_layout *layout;
    struct perhaps_plan plan;
    struct perhaps_options options = { .capacity = capacity, .fpr = fpr, .hashing.seed = 1 };
    int error = perhaps_layout_create(&options, &layout);
    if (error) {
        printf("%6.0e %7g %s\n", (double)capacity, fpr, perhaps_strerror(error));
        return;
    }
    perhaps_layout_plan(layout, &plan);
    struct sizes sizes = size_up(layout, &plan);
    printf("%6.0e %7g %8.2f %5u %6zu %9.1f %10" PRIu64 " %6.0f | %6.0f %6.0f | %6.0f %6.0f\n",
           (double)capacity, fpr, plan.bits_per_key, sizes.nbits, sizes.block_nbytes,
           1e-9 * (double)plan.body_nbytes, sizes.partitions,
           ceil((double)plan.body_nbytes / node_nbytes), sizes.add, sizes.added, sizes.ask,
           sizes.asked);
    perhaps_layout_free(layout);
}

/* ---- A command for each bit -------------------------------------------------------------- */

static void print_classic_row(uint64_t capacity, double fpr)
{
    double k = ceil(-log2(fpr)), bits = k / log(2);
    double nbytes = bits * (double)capacity / 8;
    double nodes = ceil(nbytes / node_nbytes);
    uint64_t partitions = partitions_of((uint64_t)nbytes);
    size_t key = partition_argument(partitions / 2);
    size_t offset = argument(digits(8 * (uint64_t)PARTITION_NBYTES / 2));
    double set = (double)command(4, argument(6) + key + offset + argument(1));
    double get = (double)command(3, argument(6) + key + offset);
    printf("%6.0e %7g %8.2f %5.0f %8.1f %6.0f | %6.0f %6.0f | %6.0f %6.0f\n", (double)capacity,
           fpr, bits, k, nodes * (1 - pow(1 - 1 / nodes, k)), nodes, k * set, k * 4, k * get,
           k * 4);
}

/* ---- A key that holds all of it ---------------------------------------------------------- */

static void print_single_keys(void)
{
    const double string_nbits = 0x1p32; /* 512 MiB, the longest string */
    printf("\nkeys in one string of 512 MiB, by a classic Bloom filter of ln(1/p) / (ln 2)^2 "
           "bits a key,\nand strings for 1e12 keys\n");
    for (size_t i = 0; i < COUNT(rates); i++) {
        double keys = string_nbits * log(2) * log(2) / -log(rates[i]);
        printf("%7g %8.0fM %8.0f\n", rates[i], 1e-6 * keys, ceil(1e12 / keys));
    }
}

int main(void)
{
    static const uint64_t capacities[] = { 1000000000, 1000000000000 };
    printf(
        "nodes: masters with %.0f GiB of it each; add, ask: bytes of a command to and of its "
        "answer from a server, a key\n\n%6s %7s %8s %5s %6s %9s %10s %6s | %13s | %13s\n",
        node_nbytes / 0x1p30, "keys", "rate", "bits", "set", "block", "GB", "partitions",
        "nodes", "add", "ask");
    for (size_t c = 0; c < COUNT(capacities); c++)
        for (size_t i = 0; i < COUNT(rates); i++)
            print_row(capacities[c], rates[i]);
    printf("\na command for each bit of a classic Bloom filter; touched: nodes a key\n"
           "%6s %7s %8s %5s %8s %6s | %13s | %13s\n",
           "keys", "rate", "bits", "set", "touched", "nodes", "add", "ask");
    for (size_t c = 0; c < COUNT(capacities); c++)
        for (size_t i = 0; i < COUNT(rates); i++)
            print_classic_row(capacities[c], rates[i]);
    print_single_keys();
    return 0;
}
