/* main.c - perhaps, approximate-membership filters on the command line: its verbs, its
 * beginning and its end.
 *
 * The way of a key, from the command line to the library:
 *
 *     main.c            finds the verb; options.c reads the rest of the command line: settings
 *       |
 *     verbs/ dedup/     a verb that reads keys: opens its filter, lists its stages
 *       |
 *     filter/           request.c size.c secret.c   settings -> plan and hash of a new filter
 *       |               target.c place.c            the filter in a file, its lock
 *       |               remote.c client.c           on servers, by a client that is loaded
 *       |
 *     input/            input.c      reading and splitting come before the stages of the verb
 *                       pipeline.c   threads move blocks through all stages
 *                       stream.c blocks.c    a file, unpacked -> blocks of whole lines
 *                       lines.c      block -> records -> keys -> hashes
 *     the library       perhaps_add_many(), perhaps_contains_many(), ...: answers
 *     input/            output.c     records with the wanted answers -> standard output
 *       |
 *     base/             messages.c   at the end: what went wrong, or the summary
 *
 * dedup --exact, --unique (exact.c) and --count-each (heavy.c) have no filter that is kept, and
 * take the inputs, which texts.c maps, through the stages several times.  Beside this way,
 * stop.c stops the work after a signal, window.c tells the filter of dedup the time, numbers.c
 * reads and writes numbers, and help.c prints help and completions. */
#include <fcntl.h>
#include <malloc.h>
#include <perhaps.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/messages.h"
#include "base/stop.h"
#include "options.h"

/* In the order in which help shows them.  Help fills the texts to the width of the screen. */
static const struct verb verbs[] = {
    { BUILD, false, true, "build", verb_build, "-o F [-n N] [-p P] [OPTION...] [INPUT...]",
      "make the filter file F from keys",
      "Without -n the keys of files are counted first, and get room for a quarter more.  A "
      "pipe "
      "gives a filter that is full, unless --grow, --removable or --count speaks of later "
      "keys." },
    { CREATE, true, false, "create", verb_create, "F -n N [-p P] [OPTION...]",
      "make an empty filter F, a file or on servers",
      "F is a file, or redis://host:port/name: on a Redis or Valkey server, or on all nodes of "
      "a cluster, where the host is any one of them.  Nothing may be there yet." },
    { ADD, true, true, "add", verb_add, "F [OPTION...] [INPUT...]", "add keys to F",
      "Each key is in F at once, and stays there after an error.  Where the kind cannot be "
      "changed "
      "in place, and under --rewrite, F is replaced when all are in.  Keys of a live file are "
      "on "
      "the disk at the end.  F may lie on servers: redis://host:port/name." },
    { REMOVE, true, true, "remove", verb_remove, "F [OPTION...] [INPUT...]",
      "remove keys from F, which was built with --removable",
      "Remove only keys that were added: removing another one may remove the entry of a key "
      "that "
      "is in F." },
    { QUERY, true, true, "query", verb_query, "F [OPTION...] [INPUT...]",
      "print the keys that are perhaps in F",
      "Exit status: 0 if a key was selected, 1 if none, 2 after an error.\n"
      "F may lie on servers: redis://host:port/name, or https://host/file." },
    { COUNT, true, true, "count", verb_count, "F [OPTION...] [INPUT...]",
      "print each key and how often it was added to F",
      "15+ means 15 or more.  A count is never too low, and is too high with the probability "
      "of a "
      "false positive.  F must be of a kind that counts: build it with --count." },
    { DEDUP, false, true, "dedup", verb_dedup,
      "[-n N] [-p P] [--state F] [OPTION...] [INPUT...]",
      "print each line the first time it comes",
      "Without -n the lines of files are counted first; for a pipe the filter grows, as a "
      "--state "
      "does.  A state that exists stays as it was made.  One on servers "
      "(redis://host:port/name) "
      "must exist, and of the jobs that share it only one prints each line.  --exact, "
      "--against, "
      "--unique and --count-each make no error." },
    { INFO, true, false, "info", verb_info, "F [--json]", "tell all about F",
      "F may lie on servers: redis://host:port/name, or https://host/file." },
    { PLAN, false, false, "plan", verb_plan, "[-n N] [-p P] [OPTION...]",
      "tell what 'build' would make, its size, and the alternatives",
      "-n may be left out with --grow and --window." },
    { MERGE, false, true, "merge", verb_merge, "-o F [--common] A [B...]",
      "write a filter F that has all keys of the filter files A, B...",
      "With --common, only the keys that all of them have: none of these is lost, and the rate "
      "of F is at most the smallest of theirs.  They must be built with the same -n, -p, "
      "--kind "
      "and --seed (or --key-file).  Filters that grew, and the layers of one filter, cannot be "
      "put together without the keys: build a new filter from the keys." },
    { SHRINK, true, false, "shrink", verb_shrink, "F -o G [-p P] [OPTION...]",
      "write a smaller filter G with the keys of F, which has room to spare",
      "G is 1/2, 1/3, ... of F: the filter that would have been built with so much less room.  "
      "Its "
      "rate, computed from all its bits, is at most P.  Kinds: blocked, bloom, counting, and "
      "chains of them.  G may be F.  Neither is ever in memory as a whole." },
    { COMPARE, true, true, "compare", verb_compare, "A B [--json]",
      "tell how many keys the filter files A and B have in common",
      "From the bits alone, so each number has a standard error: the truth is within two of "
      "them in 19 of 20 cases.  A and B must be built with the same -p, --kind and --seed (or "
      "--key-file).  Filters that grow, age, or are built once cannot be compared." },
    { VERIFY, true, false, "verify", verb_verify, "F [-q] [--json]", "check every page of F",
      "On servers (F is redis://host:port/name) it checks that every partition is there and "
      "complete, and that the count of the keys fits the bits.\n"
      "Exit status: 0 if all is well, 1 if F is damaged, 2 if it could not be checked." },
    { COPY, true, true, "copy", verb_copy, "FROM TO [OPTION...]",
      "copy a filter from a file to servers, or back, or a live file",
      "FROM and TO are files, or one is redis://host:port/name.  A file that exists is "
      "replaced "
      "when all is copied; on servers nothing of that name may exist yet.  The copy of a live "
      "file has no journal; while others add, it has what was on the disk when it began." },
    { DELETE, true, false, "delete", verb_delete, "F", "remove the filter F from its servers",
      "F is redis://host:port/name.  This also removes a filter that is only half made or half "
      "deleted." },
    { RECOUNT, true, false, "recount", verb_recount, "F [--json]",
      "count the keys of F, on servers, anew",
      "F is redis://host:port/name.  Sets the count of its keys by its bits, after the count "
      "was removed or replaced, or when it has what clients had reserved that died ('perhaps "
      "info' tells the count and an estimate).  Do it when nobody adds." },
    { .name = NULL },
};

/* Ends the program if other tools have such a verb, and names ours. */
static void refuse_synonym(const char *name)
{
    static const char *const synonyms[][2] = {
        { "append", "add" },      { "insert", "add" },     { "put", "add" },
        { "make", "build" },      { "backup", "copy" },    { "diff", "compare" },
        { "new", "create" },      { "distinct", "dedup" }, { "uniq", "dedup" },
        { "unique", "dedup" },    { "show", "info" },      { "stat", "info" },
        { "stats", "info" },      { "union", "merge" },    { "estimate", "plan" },
        { "intersect", "merge" }, { "convert", "copy" },   { "size", "plan" },
        { "check", "query" },     { "contains", "query" }, { "exists", "query" },
        { "get", "query" },       { "grep", "query" },     { "has", "query" },
        { "lookup", "query" },    { "search", "query" },   { "test", "query" },
        { "delete", "remove" },   { "rm", "remove" },      { "fold", "shrink" },
        { "fsck", "verify" },
    };
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
        if (strcmp(synonyms[i][0], name) == 0)
            fail("%s: no such verb: here it is '%s': see 'perhaps help %s'", name,
                 synonyms[i][1], synonyms[i][1]);
}

/* Returns the verb with this name, or ends the program. */
static const struct verb *find_verb(const char *name)
{
    struct guess guess = guess_begin(name, strlen(name));
    for (const struct verb *verb = verbs; verb->name; verb++) {
        if (strcmp(verb->name, name) == 0)
            return verb;
        guess_try(&guess, verb->name);
    }
    refuse_synonym(name);
    if (guess.nearest)
        fail("%s: no such verb: did you mean '%s'?", name, guess.nearest);
    fail("%s: no such verb: see 'perhaps help'", name);
}

/* Does 'perhaps help [VERB] [--help-all]'. */
static void help(const char *name, bool all)
{
    if (name)
        help_verb(find_verb(name), all);
    else
        help_print(verbs);
}

/* Does 'perhaps help --completion SHELL'; 'shell' is NULL if none was named. */
static void completion(const char *shell)
{
    if (!shell || !help_completion(verbs, shell))
        fail("%s: no shell that completions are made for: give bash, zsh or fish",
             shell ? shell : "--completion");
}

/* Reads the options of the verb and calls its function.  Verbs that only look keep the usual
 * effect of signals: they leave nothing half done. */
static void run_verb(const char *name, int argc, char **argv)
{
    const struct verb *verb = find_verb(name);
    struct settings settings;
    options_read(verb, argc, argv, &settings);
    if (settings.help || settings.help_all) {
        help_verb(verb, settings.help_all);
        options_release(&settings);
        return;
    }
    stop_on_lost_bytes();
    if (!(verb->bit & (INFO | PLAN | VERIFY | COMPARE)))
        stop_on_signals();
    verb->run(&settings);
    options_release(&settings);
}

static bool is_any_of(const char *word, const char *a, const char *b)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

/* Runs the verb that the first argument names.  'help', --help and --version are no verbs. */
static void run_command(int argc, char **argv)
{
    if (argc < 2) {
        help_usage(verbs, stderr);
        leave(STATUS_ERROR);
    }
    if (is_any_of(argv[1], "--version", "-V"))
        printf("perhaps %s\n", perhaps_version());
    else if (is_any_of(argv[1], "--help", "-h"))
        help(NULL, false);
    else if (strcmp(argv[1], "help") != 0)
        run_verb(argv[1], argc - 1, argv + 1);
    else if (argc > 2 && strcmp(argv[2], "--completion") == 0)
        completion(argv[3]);
    else
        help(argv[2], argc > 3 && strcmp(argv[3], "--help-all") == 0);
}

/* Opens /dev/null for each standard descriptor that is closed.  Otherwise the next file that is
 * opened would take its number, and what is meant for stderr would be written into a filter.
 * /dev/null is opened in the wrong mode, so that reading from stdin or writing to stdout is an
 * error. */
static void reserve_standard_descriptors(void)
{
    static const int mode[] = { O_WRONLY, O_RDONLY, O_WRONLY };
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", mode[fd]) != fd)
            _exit(STATUS_ERROR);
}

/* Has all threads share one heap.  Otherwise the C library reserves 64 MiB of addresses for
 * each of them, which a limit (ulimit -v) counts; and they hardly ever need any. */
static void share_heap(void)
{
#ifdef M_ARENA_MAX
    (void)mallopt(M_ARENA_MAX, 1);
#endif
}

int main(int argc, char **argv)
{
    share_heap();
    reserve_standard_descriptors();
    signal(SIGXFSZ, SIG_IGN); /* writing past the file-size limit is an error, not an end */
    signal(SIGPIPE, SIG_IGN); /* so is writing to a closed pipe: locks must be released */
    run_command(argc, argv);
    leave(STATUS_YES);
}
