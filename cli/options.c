/* options.c - the table of options, and how a command line is read by it.
 *
 * An option has a row in the table.  The row names the type of its value (values.h), which
 * reads and checks the text, and the member of struct settings where the value goes.
 * getopt_long() gets its tables from the rows of the verb.  Rules about several options are
 * checked at the end, in check_together() and check_place(). */
#include "options.h"

#include <getopt.h>
#include <perhaps_plan.h>
#include <string.h>
#include <unistd.h>

#include "base/messages.h"
#include "base/numbers.h"
#include "filter/target.h"
#include "values.h"

/* Sets of verbs: those that read keys, those that choose a size, those that only look, those
 * that change or make a filter, and all. */
#define INPUT   (BUILD | ADD | REMOVE | QUERY | COUNT | DEDUP)
#define SIZED   (BUILD | DEDUP | PLAN | CREATE)
#define LOOKING (INFO | PLAN | VERIFY | COMPARE)
#define MAKING  (MERGE | SHRINK | CREATE | DELETE | COPY | RECOUNT)
#define DOING   (BUILD | ADD | REMOVE | DEDUP | MAKING)
#define EVERY   (INPUT | LOOKING | DOING)

/* The verbs that also work on servers; and two bits in the 'verbs' of an option, which say that
 * it is not for filters on servers (FILES), or not for those in files (SERVERS). */
#define SERVED  (ADD | QUERY | DEDUP | INFO | VERIFY | CREATE | DELETE | COPY | RECOUNT)
#define FILES   (1U << 30)
#define SERVERS (1U << 31)

/* ---- The table ------------------------------------------------------------------------ */

#define SLOT(member) offsetof(struct settings, member)

/* In the order in which help shows them: those that are used most come first.  A verb that
 * gives an option another meaning has a row of its own. */
static const struct option_row rows[] = {
    { 'o', SHRINK, "output", "G", &type_file, SLOT(output),
      "the filter file to write; it may be F" },
    { 'o', BUILD | MERGE, "output", "F", &type_file, SLOT(output),
      "the filter file to write; - is standard output" },
    { 0, MERGE, "common", NULL, &type_flag, SLOT(common),
      "only the keys that all of them have" },
    { 'n', SIZED, "capacity", "N", &type_capacity, SLOT(capacity),
      "room for N different keys: 5,000,000, 5e9, 10M, 2G" },
    { 'p', BUILD | PLAN | CREATE, "fpr", "P", &type_rate, SLOT(fpr),
      "false-positive rate: 0.001, 1e-6, 0.1% [" TEXT(FPR) "]" },
    { 'p', SHRINK, "fpr", "P", &type_rate, SLOT(fpr),
      "false-positive rate: 0.001, 1e-6, 0.1% [that of F]" },
    { 'p', DEDUP, "fpr", "P", &type_rate, SLOT(fpr),
      "false-positive rate: 0.001, 1e-6, 0.1% [" TEXT(FPR_DEDUP) "]" },
    { 0, DEDUP, "state", "F", &type_file, SLOT(state),
      "remember the lines in F from run to run" },
    { 0, DEDUP | FILES, "durable", "N|T", &type_durability, SLOT(durable),
      "a crash loses no line: sync every N lines, or 500ms" },
    { 0, BUILD | CREATE | FILES, "live", NULL, &type_flag, SLOT(live),
      "with a journal: what was added survives a crash" },
    { 0, DEDUP | PLAN | FILES, "window", "W", &type_window, SLOT(window),
      "forget lines after 24h, or all but the last 10M-keys" },
    { 0, INPUT & ~DEDUP, "key", "K", &type_key, SLOT(keys),
      "the key K in place of the inputs; may come again" },
    { 'v', QUERY, "invert", NULL, &type_flag, SLOT(invert),
      "print the keys that are certainly not in F" },
    { 'c', QUERY, "count", NULL, &type_flag, SLOT(count), "print only the number of keys" },
    { 0, QUERY, "label", NULL, &type_flag, SLOT(label),
      "print every key after 'perhaps' or 'no', or who has it" },
    { 0, QUERY, "any", NULL, &type_flag, SLOT(any),
      "print nothing, stop at the first: exit status 0 or 1" },
    { 'c', DEDUP, "count", NULL, &type_flag, SLOT(count),
      "print only how many lines were read, new, repeated" },
    { 'd', DEDUP, "repeated", NULL, &type_flag, SLOT(repeated),
      "print the repeated ones instead" },
    { 0, DEDUP | FILES, "exact", NULL, &type_flag, SLOT(exact),
      "never drop a new line; reads the inputs several times" },
    { 0, DEDUP | FILES, "against", "FILE", &type_file, SLOT(against),
      "lines of FILE came before: print the others, exactly" },
    { 0, DEDUP | FILES, "count-each", NULL, &type_flag, SLOT(count_each),
      "print each line after its count, most frequent first" },
    { 0, DEDUP | FILES, "unique", NULL, &type_flag, SLOT(unique),
      "print the lines that come once only, exactly" },
    { 0, BUILD | PLAN | CREATE | FILES, "removable", NULL, &type_flag, SLOT(removable),
      "keys can be removed; one added twice is stored twice" },
    { 0, BUILD | PLAN | CREATE | FILES, "count", NULL, &type_flag, SLOT(counts),
      "tell how often a key was added, up to " TEXT(PERHAPS_COUNT_MAX) },
    { 0, SIZED, "grow", NULL, &type_flag, SLOT(grow),
      "take more keys than N later; N is the room at first" },
    { 0, ADD | FILES, "rewrite", NULL, &type_flag, SLOT(rewrite),
      "add to a copy, which replaces F when all keys are in" },
    { 0, CREATE | COPY | SERVERS, "partitions", "N", &type_partitions, SLOT(partitions),
      "divide it into N partitions [as many as it needs]" },
    { 0, INPUT | CREATE, "field", "N", &type_fields, SLOT(form.fields),
      "the key is the N-th field, or several: 1,3-5 [noted]" },
    { 'd', (INPUT & ~DEDUP) | CREATE, "delimiter", "C", &type_delimiter, SLOT(form.delimiter),
      "byte between fields [tab]" },
    { 0, DEDUP, "delimiter", "C", &type_delimiter, SLOT(form.delimiter),
      "byte between fields [tab] (no -d here)" },
    { 'q', EVERY, "quiet", NULL, &type_flag, SLOT(quiet),
      "no summary, no progress, no word of skipped lines" },
    { 0, BUILD | ADD, "once", NULL, &type_flag, SLOT(once),
      "do not add a key that is perhaps in F" },
    { 0, QUERY | COUNT | FILES, "check", NULL, &type_flag, SLOT(check),
      "compare pages with their checksums before use" },
    { 0, SIZED | FILES, "integers", "LOW-HIGH", &type_range, SLOT(integers),
      "keys are integers of this range: a bit each, no error" },
    { '0', INPUT, "null", NULL, &type_flag, SLOT(null), "keys end in NUL instead of newline" },
    { 0, INPUT | CREATE, "crlf", NULL, &type_flag, SLOT(form.crlf),
      "a carriage return at the end is not part of the key" },
    { 0, INPUT | CREATE, "ignore-case", NULL, &type_flag, SLOT(form.ignore_case),
      "treat A to Z in keys as a to z [noted with F]" },
    { 0, INPUT, "raw", NULL, &type_flag, SLOT(raw),
      "take the bytes of the inputs as they are, packed or not" },
    { 'j', INPUT, "threads", "T", &type_threads, SLOT(threads),
      "work with T threads [as many as there are CPUs]" },
    { 0, LOOKING, "json", NULL, &type_flag, SLOT(json), "as one JSON object" },
    { 0, DOING | QUERY | COUNT, "json", NULL, &type_flag, SLOT(json),
      "the summary as one JSON object, on standard error" },
    { 0, DOING & ~(DELETE | RECOUNT), "wait", "S", &type_patience, SLOT(wait_ms),
      "if another process is changing F, try for S seconds" },
    { 0, BUILD | PLAN, "static", NULL, &type_flag, SLOT(fixed),
      "no key comes later: fewest bits, and no -n needed" },
    { 0, BUILD, "against", "FILE", &type_file, SLOT(against),
      "no error on the keys of FILE, which are not in F" },
    { 0, BUILD, "value-field", "N", &type_field, SLOT(value_field),
      "store the number in field N; query --label prints it" },
    { 0, BUILD | DEDUP | FILES, "memory", "SIZE", &type_memory, SLOT(memory_nbytes),
      "use so much memory, such as 4G [a quarter of all]" },
    { 0, BUILD | DEDUP | FILES, "tmp", "DIR", &type_file, SLOT(tmp),
      "the folder for what goes to a file [$TMPDIR, or /tmp]" },
    { 0, DEDUP | FILES, "time-field", "N", &type_field, SLOT(time_field),
      "the time of a line is in field N, not the clock's" },
    { 0, DEDUP | FILES, "set-back", "TIME", &type_moment, SLOT(set_back_ms),
      "bring back a --state that is ahead: now, or a time" },
    { 0, SIZED | FILES, "kind", "K", &type_kind, SLOT(kind),
      "this kind of filter: see 'perhaps plan --help-all'" },
    { 0, SIZED, "prefer", "P", &type_preference, SLOT(preference),
      "fast: speed before size; compact: size before speed" },
    { 0, BUILD | DEDUP | CREATE, "hash", "H", &type_hash, SLOT(hash),
      "xxh3 [default], sip, none (keys are hashes), none-64" },
    { 0, SIZED & ~PLAN, "key-file", "K", &type_file, SLOT(key_file),
      "hash with the secret in K, which is made if missing" },
    { 0, ADD | REMOVE | QUERY | COUNT | COPY, "key-file", "K", &type_file, SLOT(key_file),
      "the secret that the filter was built with" },
    { 0, BUILD | CREATE, "seed", "S", &type_seed, SLOT(seed),
      "of the hash; filters to be merged need the same" },
    { 'h', EVERY, "help", NULL, &type_flag, SLOT(help), "the usual options" },
    { 0, EVERY, "help-all", NULL, &type_flag, SLOT(help_all), "all options" },
};

#define NROWS (sizeof rows / sizeof *rows)
/* getopt_long() returns the letter of a short option, and FIRST + the row of a long one. */
#define FIRST 256

/* ---- Reading a command line ----------------------------------------------------------- */

/* Returns the row that a code of getopt_long() stands for; NULL if it is none of the verb's. */
static const struct option_row *find_row(int code, const struct verb *verb)
{
    if (code >= FIRST && code < FIRST + (int)NROWS)
        return &rows[code - FIRST];
    for (size_t i = 0; i < NROWS; i++)
        if (rows[i].letter == code && code && (rows[i].verbs & verb->bit))
            return &rows[i];
    return NULL;
}

/* Writes the tables that getopt_long() takes: letters and long names of the verb's options. */
static void make_tables(const struct verb *verb, char *letters, struct option *names)
{
    *letters++ = ':'; /* tells a missing value (':') from an unknown option ('?') */
    for (size_t i = 0; i < NROWS; i++) {
        if (!(rows[i].verbs & verb->bit))
            continue;
        *names++ = (struct option){ .name = rows[i].name,
                                    .has_arg = rows[i].argument != NULL,
                                    .val = FIRST + (int)i };
        if (!rows[i].letter)
            continue;
        *letters++ = (char)rows[i].letter;
        if (rows[i].argument)
            *letters++ = ':';
    }
    *letters = '\0';
    *names = (struct option){ 0 };
}

/* Returns the name of the option of this verb that is most like what was typed, which may begin
 * with dashes and end in "=VALUE"; NULL if none is like it. */
static const char *nearest_option(const struct verb *verb, const char *typed)
{
    typed += strspn(typed, "-");
    struct guess guess = guess_begin(typed, strcspn(typed, "="));
    for (size_t i = 0; i < NROWS; i++)
        if (rows[i].verbs & verb->bit)
            guess_try(&guess, rows[i].name);
    return guess.nearest;
}

/* Ends the program after getopt_long() returned ':' or '?'.  'typed' is the argument that it
 * read last.  Names a similar option if there is one; for dedup tells that -d is not
 * --delimiter. */
static _Noreturn void fail_option(const struct verb *verb, int code, const char *typed)
{
    const struct option_row *row = find_row(optopt, verb);
    char letter[3] = { '-', (char)optopt, '\0' };
    const char *name = optopt > 0 && optopt < FIRST ? letter : typed;
    if (code == ':' || row)
        fail("%s: %s: see 'perhaps help %s'", name,
             code == ':' ? "needs a value" : "takes no value", verb->name);
    if (verb->bit == DEDUP && strncmp(typed, "-d", 2) == 0)
        fail("%s: -d takes no value here, it prints the repeated lines: the byte between "
             "fields is --delimiter",
             typed);
    const char *nearest = name == typed ? nearest_option(verb, typed) : NULL;
    if (nearest)
        fail("%s: no such option: did you mean --%s?", name, nearest);
    fail("%s: no such option: see 'perhaps %s --help-all'", name, verb->name);
}

/* Reads the value of an option into the settings, or ends the program. */
static void take_value(const struct option_row *row, struct settings *settings)
{
    const char *problem = row->type->read(row->type, optarg, (char *)settings + row->slot);
    if (problem && row->letter)
        fail("-%c %s: %s", row->letter, optarg, problem);
    if (problem)
        fail("--%s %s: %s", row->name, optarg, problem);
}

/* Ends the program if two options exclude or need each other.  The member 'wrong' of a rule
 * tells whether the command line breaks it. */
static void check_together(const struct settings *s)
{
    const bool has_fields = s->form.fields.count, has_window = s->window.keys || s->window.time;
    const bool integers = s->integers.high, hashed = s->hash && strcmp(s->hash, "integer") != 0;
    const char *kind = s->kind.name;
    const bool bitmap = kind && strcmp(kind, KIND_OF_INTEGERS) == 0;
    const bool known = s->verb->bit == DEDUP && s->against;
    const bool exactly = s->exact || s->unique || s->count_each || known;
    const bool named = kind && kind_can(kind, PERHAPS_CAN_BUILD);
    const bool built = s->fixed || named || s->value_field || (!known && s->against);
    const bool summary_only = !(s->verb->bit & LOOKING);
    bool newline = false;
    for (size_t i = 0; i < s->keys.count; i++)
        newline |= !s->null && strchr(s->keys.word[i], '\n');
    const struct {
        bool wrong;
        const char *message;
    } rules[] = {
        { bitmap && !integers,
          "--kind " KIND_OF_INTEGERS ": of which integers? give --integers LOW-HIGH" },
        { kind && integers && !bitmap,
          "--integers: is only for --kind " KIND_OF_INTEGERS ": leave out --kind" },
        { s->hash && !hashed && !integers,
          "--hash integer: is only for integers of a range: give --integers LOW-HIGH" },
        { integers && (hashed || s->seed || s->key_file),
          "--integers: integers are not hashed: leave out --hash, --seed and --key-file" },
        { integers && has_window, "--integers: what is a bit cannot age: leave out --window" },
        { integers && s->capacity > s->integers.high - s->integers.low + 1,
          "-n: the range of --integers has fewer integers: leave out -n" },
        { s->once && s->counts, "--once: leaves nothing to count: leave out --count" },
        { s->form.delimiter && !has_fields && !s->time_field,
          "--delimiter: says where fields end: give --field too" },
        { s->time_field && s->window.keys,
          "--time-field: the window goes by keys: give a time, such as --window 24h, or leave "
          "out --time-field" },
        { s->time_field && !has_window && !s->state,
          "--time-field: is only for a window: give --window too, such as --window 24h" },
        { s->set_back_ms && !s->state, "--set-back: the time of which state? give --state F" },
        { exactly && (s->state || has_window || s->time_field),
          "--exact, --unique, --count-each, --against: keep no filter, and forget nothing: "
          "leave out --state, --window and what belongs to it" },
        { exactly && (s->capacity || kind || s->grow || s->preference || integers || s->hash ||
                      s->key_file),
          "--exact, --unique, --count-each, --against: count the lines and choose the filter "
          "themselves: leave out -n, --kind and other options for filters" },
        { s->unique && s->repeated,
          "--unique: prints lines that are never repeated: leave out -d" },
        { s->count_each && (s->exact || s->unique || s->repeated || s->count || known),
          "--count-each: prints each line and its exact count: leave out --exact, --unique, "
          "--against, -d and -c" },
        { s->verb->bit == DEDUP && (s->memory_nbytes || s->tmp) && !exactly,
          "--memory and --tmp: are only for --exact, --unique, --count-each and --against: "
          "leave them out" },
        { (s->durable.lines || s->durable.ms) && !s->state,
          "--durable: keeps which state? give --state F" },
        { s->live && built,
          "--live: is for filters that take keys later: leave out --static, --against, "
          "--value-field, or a --kind that is built once" },
        { built && (s->removable || s->counts || s->grow),
          "--static, --against, --value-field and a --kind that is built once: no key is added "
          "or "
          "removed later: leave them out, or --removable, --count, --grow" },
        { built && (has_window || integers),
          "--window, --integers: take keys as they come: leave out --static, --against, "
          "--value-field, or a --kind that is built once" },
        { s->fixed && kind && !named,
          "--static: is for kinds that are built once: leave out --kind, or --static" },
        { s->value_field && kind && strcmp(kind, "ribbon") != 0,
          "--value-field: only --kind ribbon stores values: leave out --kind" },
        { s->quiet && s->json && summary_only,
          "--quiet: leaves nothing to print as JSON: leave out one of --quiet and --json" },
        { s->verb->bit == DEDUP && s->count && s->repeated,
          "-c: tells how many are repeated, too: leave out -d" },
        { s->count_each && s->fpr > 0, "--count-each: is exact: leave out -p" },
        { s->live && s->output && strcmp(s->output, "-") == 0,
          "--live: standard output can have no journal: give -o F" },
        { s->label && s->invert, "--label: prints every key: leave out -v" },
        { s->label && s->count, "--label: prints every key: leave out -c" },
        { s->keys.count && has_fields, "--key: is all of a key: leave out --field" },
        { newline, "--key: holds a newline, where keys end: give -0 too" },
        { s->against && s->value_field,
          "--against: stores no values: leave out --value-field" },
        { s->against && kind && strcmp(kind, "against") != 0,
          "--against: is a kind of its own: leave out --kind" },
        { s->verb->bit == BUILD && s->kind.value_bits && !s->value_field,
          "--kind ribbon:value-bits: of which values? give --value-field too" },
        { s->any && s->label, "--any: prints nothing: leave out --label" },
        { s->any && s->count, "--any: prints nothing: leave out -c" },
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].wrong)
            fail("%s", rules[i].message);
}

/* Returns whether the filter that the verb works on lies on servers */
static bool is_on_servers(const struct settings *s)
{
    if (s->filter && is_remote(s->filter))
        return true;
    return (s->state && is_remote(s->state)) ||
           (s->verb->bit == COPY && s->ninputs && is_remote(s->inputs[0]));
}

/* Ends the program if something lies on a web server that is not only asked. */
static void refuse_web(const struct settings *s)
{
    static const char only[] = "lies on a web server, where a filter can be asked (query) and "
                               "told about (info): download it for all else";
    if (s->filter && is_web(s->filter) && !(s->verb->bit & (QUERY | INFO)))
        fail("%s: %s", s->filter, only);
    for (size_t i = 0; i < s->ninputs; i++)
        if (is_web(s->inputs[i]))
            fail("%s: %s", s->inputs[i], only);
    if ((s->output && is_web(s->output)) || (s->state && is_web(s->state)))
        fail("%s: %s", s->output ? s->output : s->state, only);
}

/* Ends the program if the verb or an option is not for filters in files, or not for filters on
 * servers.  'given' tells which rows the command line has used. */
static void check_place(const struct settings *s, const bool given[NROWS])
{
    const char *verb = s->verb->name;
    const bool served = s->served;
    if (s->filter)
        remote_refuse_typo(s->filter);
    for (size_t i = 0; i < s->ninputs; i++)
        remote_refuse_typo(s->inputs[i]);
    if (s->output)
        remote_refuse_typo(s->output);
    if (s->state)
        remote_refuse_typo(s->state);
    refuse_web(s);
    if (s->output && is_remote(s->output))
        fail("%s: writes files only: make a filter on servers with 'perhaps create', and fill "
             "it with 'perhaps add'",
             verb);
    for (size_t i = 0; i < s->ninputs && s->verb->bit != COPY; i++)
        if (is_remote(s->inputs[i]))
            fail("%s: takes files, not what lies on servers, as inputs", verb);
    if (served && !(s->verb->bit & SERVED))
        fail("%s: works on filters in files only, not on servers", verb);
    for (size_t i = 0; i < NROWS; i++)
        if (given[i] && rows[i].verbs & (served ? FILES : SERVERS))
            fail("--%s: is not for filters %s: leave it out", rows[i].name,
                 served ? "on servers" : "in files");
}

/* What stands for the inputs if no file is named: standard input, or the keys of --key.  The
 * latter is never opened; messages name it. */
static char dash[] = "-", *standard_input = dash;
static char as_keys[] = "--key", *keys_as_input = as_keys;

/* Puts the file of --against before the inputs of dedup. */
static void take_known(struct settings *s)
{
    char **inputs = allocate_zeroed(s->ninputs + 1, sizeof *inputs);
    inputs[0] = (char *)s->against;
    memcpy(inputs + 1, s->inputs, s->ninputs * sizeof *inputs);
    s->inputs = inputs;
    s->ninputs++;
    s->nknown = 1;
    s->exact |= !s->unique;
}

/* Takes the filter, if the verb takes one, and then the inputs from what getopt_long() left. */
static void take_operands(int argc, char **argv, struct settings *s)
{
    const char *verb = s->verb->name;
    if (s->verb->takes_filter) {
        if (argc-- == 0)
            fail("%s: which filter? see 'perhaps help %s'", verb, verb);
        s->filter = *argv++;
    }
    if (argc > 0 && !s->verb->takes_inputs)
        fail("%s: one operand too many: see 'perhaps help %s'", argv[0], verb);
    if (argc > 0 && s->keys.count)
        fail("%s: --key gives the keys: leave out the inputs", argv[0]);
    s->inputs = argv;
    s->ninputs = (size_t)argc;
    if (argc == 0 && s->verb->bit & INPUT) {
        s->inputs = s->keys.count ? &keys_as_input : &standard_input;
        s->ninputs = 1;
    }
    s->extents = allocate_zeroed(s->ninputs + 1, sizeof *s->extents);
    /* Somebody took -d for --delimiter, and its value became the name of a file. */
    if (s->repeated && argc > 0 && strlen(*argv) == 1 && **argv != '-' &&
        access(*argv, F_OK) != 0)
        fail("%s: no such file, and -d takes no value here, it prints the repeated lines: the "
             "byte between fields is --delimiter",
             *argv);
}

void options_read(const struct verb *verb, int argc, char **argv, struct settings *settings)
{
    char letters[2 * NROWS + 2];
    struct option names[NROWS + 1];
    bool given[NROWS] = { false };
    int code;
    *settings = (struct settings){ .verb = verb, .started = seconds_now() };
    make_tables(verb, letters, names);
    opterr = 0;
    while ((code = getopt_long(argc, argv, letters, names, NULL)) != -1) {
        const struct option_row *row = find_row(code, verb);
        if (!row)
            fail_option(verb, code, argv[optind - 1]);
        take_value(row, settings);
        given[row - rows] = true;
    }
    if (settings->help || settings->help_all)
        return;
    check_together(settings);
    if (!settings->kind.name && verb->bit != DEDUP)
        settings->kind.name = settings->against       ? "against"
                              : settings->value_field ? "ribbon"
                                                      : NULL;
    if (!settings->form.delimiter)
        settings->form.delimiter = '\t';
    settings->form.end = settings->null ? '\0' : '\n';
    settings->window.generations = (unsigned)settings->kind.generations;
    take_operands(argc - optind, argv + optind, settings);
    if (verb->bit == DEDUP && settings->against)
        take_known(settings);
    settings->served = is_on_servers(settings);
    check_place(settings, given);
}

enum option_values option_values(const struct option_row *option)
{
    return option->type->values;
}

const struct option_row *option_at(const struct verb *verb, size_t number)
{
    for (size_t i = 0; i < NROWS; i++)
        if (rows[i].verbs & verb->bit && number-- == 0)
            return &rows[i];
    return NULL;
}

void options_release(struct settings *settings)
{
    free(settings->extents);
}
