/* perhaps-demo - does the main job of the library on real input: the paths of all installed
 * files, and fifty million phone numbers (the interview question at one hundredth).  Prints a
 * table with a column for each.  Exits with 1 if a key that was added is not found, or if there
 * are more false positives than the rate allows. */
#include <err.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include <perhaps_plan.h>

static const double fpr = 0.001;

/* One column of the table. */
struct trial {
    const char *title;
    perhaps_filter *filter; /* main() releases it */
    struct perhaps_plan plan;
    uint64_t keys;
    uint64_t present, found;          /* keys in the set: asked for, answered "perhaps" */
    uint64_t absent, false_positives; /* keys not in the set: the same */
    uint64_t questions;               /* how many were timed */
    double build_seconds, question_seconds;
    double all_seconds;    /* including reading or making the keys, and checking */
    uint64_t exact_nbytes; /* what an exact set of the keys would take */
};

static void stop_on(int error)
{
    if (error)
        errx(2, "%s", perhaps_strerror(error));
}

static void *grow(void *memory, size_t nbytes)
{
    memory = realloc(memory, nbytes);
    if (!memory)
        err(2, "%zu bytes", nbytes);
    return memory;
}

/* ---- What both trials do ----------------------------------------------------------------- */

static void create(struct trial *trial, uint64_t keys)
{
    struct perhaps_options options = { .capacity = keys, .fpr = fpr };
    options.hashing.hash = PERHAPS_HASH_XXH3_64; /* what a random seed would bring */
    options.hashing.seed = 1;                    /* every run gives the same answers */
    trial->keys = keys;
    stop_on(perhaps_plan_for(&options, &trial->plan));
    stop_on(perhaps_create(&options, &trial->filter));
}

static void add(struct trial *trial, const struct perhaps_keys *keys)
{
    double start = seconds_now();
    stop_on(perhaps_add_many(trial->filter, keys, NULL));
    trial->build_seconds += seconds_now() - start;
}

/* Asks for keys and counts the answers.  With 'half' the keys at even places are in the set,
 * and this is timed; otherwise none is in the set. */
static void ask(struct trial *trial, const struct perhaps_keys *keys, bool half)
{
    bool *answer = grow(NULL, keys->count);
    double start = seconds_now();
    perhaps_contains_many(trial->filter, keys, answer);
    if (half) {
        trial->question_seconds += seconds_now() - start;
        trial->questions += keys->count;
    }
    for (size_t i = 0; i < keys->count; i++) {
        bool present = half && i % 2 == 0;
        trial->present += present;
        trial->absent += !present;
        trial->found += present && answer[i];
        trial->false_positives += !present && answer[i];
    }
    free(answer);
}

/* ---- Paths ------------------------------------------------------------------------------- */

/* Prints the paths that dpkg lists, or those in /usr if dpkg keeps no lists: in the order of
 * their bytes, as bsearch() needs them, and each once. */
static const char list_paths[] = "{ cat /var/lib/dpkg/info/*.list 2>/dev/null || "
                                 "find /usr; } | LC_ALL=C sort -u";

enum { TILDES_MAX = 8 };

static int compare(const void *left, const void *right)
{
    const struct perhaps_key *a = left, *b = right;
    size_t shared = a->nbytes < b->nbytes ? a->nbytes : b->nbytes;
    int order = memcmp(a->bytes, b->bytes, shared);
    return order ? order : (a->nbytes > b->nbytes) - (a->nbytes < b->nbytes);
}

/* Returns all paths, and sets *count.  Each key points to a line that getline() allocated; the
 * caller frees these. */
static struct perhaps_key *read_paths(size_t *count)
{
    struct perhaps_key *paths = NULL;
    char *line = NULL;
    size_t room = 0, line_room = 0;
    ssize_t length;
    FILE *list = popen(list_paths, "r"); // NOLINT(cert-env33-c): words of our own
    for (*count = 0; list && (length = getline(&line, &line_room, list)) > 1; line = NULL) {
        if (*count == room) {
            room = room ? 2 * room : 1024;
            paths = grow(paths, room * sizeof *paths);
        }
        paths[(*count)++] = (struct perhaps_key){ line, (size_t)length - 1 };
    }
    free(line);
    if (!list || pclose(list) || !*count)
        errx(2, "no paths of installed files: this demo needs some");
    return paths;
}

/* Returns path i with "~" behind it, or "~~" and so on, if there is such a path already.  So
 * absent keys look like present ones.  The caller frees the text. */
static struct perhaps_key alter(const struct perhaps_key *paths, size_t count, size_t i)
{
    char *text = grow(NULL, paths[i].nbytes + TILDES_MAX);
    struct perhaps_key other = { .bytes = text, .nbytes = paths[i].nbytes };
    memcpy(text, paths[i].bytes, paths[i].nbytes);
    do {
        if (other.nbytes == paths[i].nbytes + TILDES_MAX)
            errx(2, "%.*s: exists with any number of ~ behind it", (int)other.nbytes, text);
        text[other.nbytes++] = '~';
    } while (bsearch(&other, paths, count, sizeof other, compare));
    return other;
}

/* Builds a filter of all paths, and asks for each path and its altered form in turn. */
static void try_paths(struct trial *trial)
{
    size_t count;
    double start = seconds_now();
    struct perhaps_key *paths = read_paths(&count);
    printf("Paths: %s, each once.  Asked for all of them, and for as many more that end in ~\n"
           "and are not in the set (looked up in a sorted array).\n",
           access("/var/lib/dpkg/info", R_OK) ? "/usr" : "/var/lib/dpkg/info/*.list");
    create(trial, count);
    struct perhaps_keys listed = perhaps_keys_each(paths, count);
    add(trial, &listed);
    struct perhaps_key *each = grow(NULL, 2 * count * sizeof *each);
    for (size_t i = 0; i < count; i++) {
        each[2 * i] = paths[i];
        each[2 * i + 1] = alter(paths, count, i);
        trial->exact_nbytes += paths[i].nbytes + sizeof(uint64_t);
    }
    struct perhaps_keys questions = perhaps_keys_each(each, 2 * count);
    ask(trial, &questions, true);
    for (size_t i = 0; i < 2 * count; i++)
        free((void *)each[i].bytes);
    free(each);
    free(paths);
    trial->all_seconds = seconds_now() - start;
}

/* ---- Phone numbers ----------------------------------------------------------------------- */

static const char phone_prefix[] = { '+', '4', '9', '1', '5' };
enum { PHONE_DIGITS = 9, PHONE_NBYTES = sizeof phone_prefix + PHONE_DIGITS };
enum { CHUNK = 100000, ABSENT = 10000000 };

/* Writes phone number i: "+4915" and nine digits.  The numbers below a thousand million are all
 * different, since the factor is prime to ten. */
static void put_phone(char *text, uint64_t i)
{
    uint64_t number = (i * UINT64_C(618033989) + 152005417) % 1000000000;
    memcpy(text, phone_prefix, sizeof phone_prefix);
    for (int digit = PHONE_DIGITS; digit-- > 0; number /= 10)
        text[sizeof phone_prefix + (size_t)digit] = (char)('0' + number % 10);
}

/* Writes the phone numbers first, first + 1 ... to the places at, at + step ... of the text. */
static void put_phones(char *text, size_t at, size_t step, uint64_t first)
{
    for (size_t i = at; i < CHUNK; i += step)
        put_phone(text + i * PHONE_NBYTES, first++);
}

static void show_progress(uint64_t done, uint64_t all)
{
    if (isatty(STDERR_FILENO) && done % (all / 50) == 0)
        fputs(done == all ? ".\n" : ".", stderr);
}

/* Builds a filter of 'count' phone numbers, a chunk at a time, so that memory for one chunk is
 * enough.  Then asks for numbers of which half are in the set, and for many that are not, to
 * measure the rate. */
static void try_phones(struct trial *trial, uint64_t count)
{
    double start = seconds_now();
    char *text = grow(NULL, CHUNK * PHONE_NBYTES);
    put_phones(text, 0, 1, 0);
    printf("Phone numbers: %.*s, %.*s ... generated, no two alike.  Asked for %d, half of\n"
           "them in the set, in turn; then for %d that are not.\n",
           PHONE_NBYTES, text, PHONE_NBYTES, text + PHONE_NBYTES, CHUNK, ABSENT);
    fflush(stdout);
    struct perhaps_keys keys = perhaps_keys_packed(text, PHONE_NBYTES, CHUNK);
    create(trial, count);
    for (uint64_t at = 0; at < count; at += CHUNK) {
        put_phones(text, 0, 1, at);
        add(trial, &keys);
        show_progress(at + CHUNK, count);
    }
    put_phones(text, 0, 2, count / 2);
    put_phones(text, 1, 2, count);
    ask(trial, &keys, true);
    for (uint64_t at = 0; at < ABSENT; at += CHUNK) {
        put_phones(text, 0, 1, count + CHUNK + at);
        ask(trial, &keys, false);
    }
    trial->exact_nbytes = count * sizeof(uint64_t);
    free(text);
    trial->all_seconds = seconds_now() - start;
}

/* ---- The table --------------------------------------------------------------------------- */

static void print_texts(const char *label, const char *a, const char *b)
{
    printf("  %-36s %14s %16s\n", label, a, b);
}

/* Writes a number with commas: "50,000,000".  Returns its length. */
static int group(uint64_t n, char text[32])
{
    int before = n < 1000 ? 0 : group(n / 1000, text);
    return before + sprintf(text + before, before ? ",%03u" : "%u", (unsigned)(n % 1000));
}

static void print_counts(const char *label, uint64_t a, uint64_t b)
{
    char left[32], right[32];
    group(a, left);
    group(b, right);
    print_texts(label, left, right);
}

static void print_numbers(const char *label, const char *format, double a, double b)
{
    char left[32], right[32];
    snprintf(left, sizeof left, format, a);
    snprintf(right, sizeof right, format, b);
    print_texts(label, left, right);
}

static double percent_found(const struct trial *t)
{
    return 100 * (double)t->false_positives / (double)t->absent;
}

static void print_table(const struct trial *a, const struct trial *b)
{
    putchar('\n');
    print_texts("", a->title, b->title);
    print_counts("keys", a->keys, b->keys);
    print_texts("kind, taken by the library", a->plan.kind, b->plan.kind);
    print_counts("filter, bytes", a->plan.body_nbytes, b->plan.body_nbytes);
    print_numbers("  bits a key", "%.2f", a->plan.bits_per_key, b->plan.bits_per_key);
    print_counts("an exact set, bytes (1)", a->exact_nbytes, b->exact_nbytes);
    print_numbers("build, million keys/s (2)", "%.1f",
                  1e-6 * (double)a->keys / a->build_seconds,
                  1e-6 * (double)b->keys / b->build_seconds);
    print_numbers("queries, million/s (2)", "%.1f",
                  1e-6 * (double)a->questions / a->question_seconds,
                  1e-6 * (double)b->questions / b->question_seconds);
    print_counts("asked, in the set", a->present, b->present);
    print_counts("  \"certainly not\": false negatives", a->present - a->found,
                 b->present - b->found);
    print_counts("asked, not in the set", a->absent, b->absent);
    print_counts("  \"perhaps\": false positives", a->false_positives, b->false_positives);
    print_numbers("false-positive rate asked", "%.3f %%", 100 * fpr, 100 * fpr);
    print_numbers("  measured", "%.3f %%", percent_found(a), percent_found(b));
    print_numbers("all of it, seconds (3)", "%.1f", a->all_seconds, b->all_seconds);
    puts("\n  (1) paths: their bytes and 8 more each to find them, in a sorted array;\n"
         "      phone numbers: integers of 8 bytes in a sorted array\n"
         "  (2) one thread, batched calls of the library, its memory new; reading and making\n"
         "      the keys is not counted\n"
         "  (3) reading and making the keys, and checking, is counted");
}

/* Returns 1, and says why, if a trial went wrong.  A filter that keeps its rate has more false
 * positives than seven standard deviations above it only once in 10^12 runs. */
static int judge(const struct trial *trial)
{
    double expected = fpr * (double)trial->absent;
    bool lost = trial->found < trial->present;
    if (!lost && (double)trial->false_positives <= expected + 7 * sqrt(expected))
        return 0;
    printf("WRONG: %s: %s\n", trial->title,
           lost ? "keys that were added are not found" : "more false positives than asked for");
    return 1;
}

int main(int argc, char **argv)
{
    struct trial paths = { .title = "paths" }, phones = { .title = "phone numbers" };
    bool quick = argc == 2 && !strcmp(argv[1], "--quick");
    if (argc > 1 && !quick)
        errx(2, "usage: perhaps-demo [--quick]");
    try_paths(&paths);
    try_phones(&phones, quick ? 500000 : 50000000);
    print_table(&paths, &phones);
    perhaps_free(paths.filter);
    perhaps_free(phones.filter);
    return judge(&paths) | judge(&phones);
}
