/* options.c - the table of options, and how a command line is read by it.
 *
 * An option has a row in the table.  The row names the type of its value (values.h), which
 * reads and checks the text, and the member of struct settings where the value goes.
 * getopt_long() gets its tables from the rows of the verb.  Rules about several options are
 * checked at the end, in check_together() and check_place(). */
#include "options.h"
#include <perhaps_plan.h>

#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "messages.h"
#include "numbers.h"
#include "target.h"
#include "values.h"

/* Sets of verbs: those that read keys, those that choose a size, those that make one filter of
 * several, those that only look, those that change or make a filter, and all. */
#define INPUT   (BUILD | ADD | REMOVE | QUERY | COUNT | DEDUP)
#define SIZED   (BUILD | DEDUP | PLAN | CREATE)
#define JOINING (MERGE | INTERSECT)
#define LOOKING (INFO | PLAN | VERIFY | COMPARE)
#define DOING                                                                                  \
    (BUILD | ADD | REMOVE | DEDUP | JOINING | SHRINK | CREATE | DELETE | CONVERT | RECOUNT |   \
     CHECKPOINT | BACKUP)
#define EVERY (INPUT | LOOKING | DOING)

/* The verbs that also work on servers; and two bits in the 'verbs' of an option, which say that
 * it is not for filters on servers (FILES), or not for those in files (SERVERS). */
#define SERVED  (ADD | QUERY | DEDUP | INFO | VERIFY | CREATE | DELETE | CONVERT | RECOUNT)
#define FILES   (1U << 30)
#define SERVERS (1U << 31)

#define VALUE_BITS 8 /* if --value-bits is not given */

/* ---- The table ------------------------------------------------------------------------ */

#define SLOT(member) offsetof(struct settings, member)

/* In the order in which help shows them: those that are used most come first.  A verb that
 * gives an option another meaning has a row of its own. */
static const struct option_row rows[] = {
    { 'o', BUILD | JOINING | SHRINK, "output", "F", &type_file, SLOT(output),
      "the filter file to write; - is standard output" },
    { 0, BUILD | JOINING | SHRINK | CONVERT | BACKUP, "force", NULL, &type_flag, SLOT(force),
      "replace a file F that is no filter" },
    { 'n', SIZED, "capacity", "N", &type_capacity, SLOT(capacity),
      "room for N different keys: 5,000,000, 5e9, 10M, 2G" },
    { 'p', BUILD | PLAN | CREATE, "fpr", "P", &type_rate, SLOT(fpr),
      "false-positive rate not to exceed: 0.001, 1e-6, 0.1% [" TEXT(FPR) "]" },
    { 'p', SHRINK, "fpr", "P", &type_rate, SLOT(fpr),
      "false-positive rate not to exceed: 0.001, 1e-6, 0.1% [that of F]" },
    { 'p', DEDUP, "fpr", "P", &type_rate, SLOT(fpr),
      "false-positive rate not to exceed: 0.001, 1e-6, 0.1% [" TEXT(FPR_DEDUP) "]" },
    { 0, DEDUP, "state", "F", &type_file, SLOT(state),
      "remember the lines in F from run to run; a file F is made if missing, and grows" },
    { 0, DEDUP | FILES, "durable", "N|T", &type_durability, SLOT(durable),
      "make the state a live file, and write what was printed to the disk, then to the state, "
      "every N lines or every T (500ms, 1s): a crash then lets no line be lost, and about so "
      "many come again" },
    { 0, BUILD | CREATE | FILES, "live", NULL, &type_flag, SLOT(live),
      "make F a live file, with a journal F.journal beside it: what 'add' has added is on the "
      "disk when it ends, and is added without rewriting F" },
    { 0, SIZED | FILES, "integers", "LOW-HIGH", &type_range, SLOT(integers),
      "the keys are integers from LOW to HIGH: a bit for each of them, and no error; -n and -p "
      "are not needed" },
    { 0, DEDUP | PLAN | FILES, "window", "W", &type_window, SLOT(window),
      "forget the oldest lines: those older than 24h (ms, s, m, h, d, w), or all but the last "
      "10M-keys" },
    { 'f', QUERY, "filter", "F", &type_filter, SLOT(filters),
      "ask F, in place of the first operand; may be given again, to ask several" },
    { 0, INPUT & ~DEDUP, "key", "K", &type_key, SLOT(keys),
      "the key K in place of the inputs; may be given again" },
    { 'v', QUERY, "invert", NULL, &type_flag, SLOT(invert),
      "print the keys that are certainly not in F" },
    { 'c', QUERY, "count", NULL, &type_flag, SLOT(count), "print only the number of keys" },
    { 0, QUERY, "label", NULL, &type_flag, SLOT(label),
      "print every key after 'perhaps' or 'no' and a tab ('unknown' if a server did not "
      "answer); with several filters, after the names of those that perhaps have it, or 'no'" },
    { 0, QUERY, "any", NULL, &type_flag, SLOT(any),
      "print nothing and stop at the first key that would be printed: exit status 0 if there "
      "is one, else 1" },
    { 'c', DEDUP, "count", NULL, &type_flag, SLOT(count),
      "print only how many lines were read, new and repeated" },
    { 'd', DEDUP, "repeated", NULL, &type_flag, SLOT(repeated),
      "print the repeated ones instead" },
    { 0, DEDUP | FILES, "exact", NULL, &type_flag, SLOT(exact),
      "never drop a new line: compare the bytes of lines that perhaps came before; reads the "
      "inputs two or three times, and pipes and packed files from a copy in --tmp" },
    { 0, DEDUP | FILES, "against", "FILE", &type_file, SLOT(against),
      "the lines of FILE came before: print those of the inputs that are not in it, each once, "
      "exactly" },
    { 0, DEDUP | FILES, "unique", NULL, &type_flag, SLOT(unique),
      "print the lines that come once only, exactly; reads the inputs as --exact does" },
    { 0, DEDUP | FILES, "count-each", NULL, &type_flag, SLOT(count_each),
      "print each line once, after how often it comes, the most frequent first; what does not "
      "fit in --memory are lines that come seldom" },
    { 0, DEDUP | FILES, "least", "N", &type_capacity, SLOT(least),
      "--count-each: only lines that come N times or more [1]" },
    { 0, BUILD | PLAN | CREATE | FILES, "removable", NULL, &type_flag, SLOT(removable),
      "make a filter from which keys can be removed; it stores a key each time that it is "
      "added, while others are sets" },
    { 0, BUILD | PLAN | CREATE | FILES, "count", NULL, &type_flag, SLOT(counts),
      "make a filter that tells how often a key was added, up to " TEXT(PERHAPS_COUNT_MAX) },
    { 0, SIZED, "grow", NULL, &type_flag, SLOT(grow),
      "make a filter that takes more keys later, more than N, too; N, if given, is its room at "
      "the beginning" },
    { 0, ADD | FILES, "rewrite", NULL, &type_flag, SLOT(rewrite),
      "add to a copy, which replaces F when all keys are in" },
    { 0, ADD | FILES, "in-place", NULL, &type_flag, SLOT(in_place),
      "add to the file itself, or fail: the default where the kind can" },
    { 0, CREATE | CONVERT | SERVERS, "partitions", "N", &type_partitions, SLOT(partitions),
      "divide the filter into N partitions, which are spread over the servers [as many as it "
      "needs]" },
    { 0, INPUT, "field", "N", &type_fields, SLOT(form.fields),
      "the key is the N-th field of the line; or several, such as 1,3-5 [as noted with F]" },
    { 0, CREATE, "field", "N", &type_fields, SLOT(form.fields),
      "note that the key will be the N-th field of a line" },
    { 'd', INPUT & ~DEDUP, "delimiter", "C", &type_delimiter, SLOT(form.delimiter),
      "byte between fields [tab]" },
    { 0, CREATE, "delimiter", "C", &type_delimiter, SLOT(form.delimiter),
      "note that this byte will be between fields [tab]" },
    { 0, DEDUP, "delimiter", "C", &type_delimiter, SLOT(form.delimiter),
      "byte between fields [tab] (no -d here)" },
    { 'q', EVERY, "quiet", NULL, &type_flag, SLOT(quiet), "no summary, no progress" },
    { 0, BUILD | CREATE, "key-file", "K", &type_file, SLOT(key_file),
      "hash with the secret in K (16 bytes or 32 hex digits), which is made if missing" },
    { 0, DEDUP, "key-file", "K", &type_file, SLOT(key_file),
      "hash with the secret in K, which is made if missing and --state is new" },
    { 0, ADD | REMOVE | QUERY | COUNT | CONVERT, "key-file", "K", &type_file, SLOT(key_file),
      "the secret that the filter was built with" },
    { 0, QUERY | COUNT | FILES, "check", NULL, &type_flag, SLOT(check),
      "compare each page of F with its checksum before it is first read" },
    { 0, BUILD | ADD, "once", NULL, &type_flag, SLOT(once),
      "do not add a key that is perhaps in F; never remove keys from such a filter" },
    { '0', INPUT, "null", NULL, &type_flag, SLOT(null), "keys end in NUL instead of newline" },
    { 0, INPUT, "crlf", NULL, &type_flag, SLOT(form.crlf),
      "a carriage return before the end is not part of the key" },
    { 0, CREATE, "crlf", NULL, &type_flag, SLOT(form.crlf),
      "note that a carriage return before the end will not be part of the key" },
    { 0, INPUT, "ignore-case", NULL, &type_flag, SLOT(form.ignore_case),
      "treat A to Z in keys as a to z; it is noted with F, and then done whenever F is used" },
    { 0, CREATE, "ignore-case", NULL, &type_flag, SLOT(form.ignore_case),
      "note that A to Z in keys will be treated as a to z" },
    { 0, INPUT, "skip-short", NULL, &type_flag, SLOT(skip_short),
      "do not report lines that lack the field or the time (they are skipped anyway)" },
    { 0, INPUT, "raw", NULL, &type_flag, SLOT(raw),
      "take the bytes of the inputs as they are, packed or not" },
    { 'j', INPUT, "threads", "T", &type_threads, SLOT(threads),
      "work with T threads [as many as this process gets CPUs]" },
    { 0, INFO, "all", NULL, &type_flag, SLOT(all), "all that there is to tell" },
    { 0, LOOKING, "json", NULL, &type_flag, SLOT(json), "as one JSON object" },
    { 0, DOING | QUERY | COUNT, "json", NULL, &type_flag, SLOT(json),
      "the summary as one JSON object, on standard error" },
    { 0, DOING & ~(DELETE | RECOUNT), "wait", "S", &type_patience, SLOT(wait_ms),
      "if another process is changing the filter file, try for S seconds" },
    { 0, SIZED | FILES, "kind", "K", &type_kind, SLOT(kind),
      "this kind of filter (see below)" },
    { 0, SIZED | FILES, "base", "K", &type_kind, SLOT(base),
      "the kind of the layers or generations of the filter" },
    { 0, BUILD | PLAN, "static", NULL, &type_flag, SLOT(fixed),
      "all keys are known at once: fewest bits, no key can be added later; reads pipes without "
      "-n" },
    { 0, BUILD, "against", "FILE", &type_file, SLOT(against),
      "built once: no error on the keys of FILE, which are not in F (those that are in both "
      "are)" },
    { 0, BUILD | PLAN, "against-count", "M", &type_capacity, SLOT(against_count),
      "about how many keys FILE has [counted first, if it can be read twice]" },
    { 0, BUILD, "value-field", "N", &type_field, SLOT(value_field),
      "built once: store the number in the N-th field with each key; query --label prints it" },
    { 0, BUILD | PLAN, "value-bits", "B", &type_value_bits, SLOT(value_bits),
      "bits of a value: 1 to 16 [8]" },
    { 0, BUILD, "memory", "SIZE", &type_memory, SLOT(memory_nbytes),
      "--static, or a pipe without -n: use so much memory, such as 4G, and the disk beyond [a "
      "quarter of what this process can take]" },
    { 0, DEDUP | FILES, "memory", "SIZE", &type_memory, SLOT(memory_nbytes),
      "--exact, --unique, --count-each: use at most so much memory, such as 4G [a quarter of "
      "what this process can take]" },
    { 0, DEDUP | FILES, "tmp", "DIR", &type_file, SLOT(tmp),
      "--exact, --unique, --count-each: the folder for copies of pipes and of what packed "
      "files hold [$TMPDIR, or /tmp]" },
    { 0, BUILD, "tmp", "DIR", &type_file, SLOT(tmp),
      "the same: the folder for what does not fit in memory, or " NO_FOLDER " [$TMPDIR, or "
      "/tmp]" },
    { 0, SIZED | FILES, "until", "N", &type_capacity, SLOT(until),
      "grow, and keep the rate up to N keys (for kinds that must know this number)" },
    { 0, SIZED, "factor", "N", &type_factor, SLOT(factor),
      "grow by layers, each N times the one before: 1 to " TEXT(FACTOR_MAX) " [2]" },
    { 0, DEDUP | PLAN | FILES, "generations", "G", &type_generations, SLOT(generations),
      "divide the window into G generations; lines are remembered for up to W/(G-1) longer "
      "[5]" },
    { 0, DEDUP | FILES, "time-field", "N", &type_field, SLOT(time_field),
      "the time is the N-th field of the line, not the clock's: 1795290000.5, or "
      "2026-11-21T19:38:06[.123][Z|+hh:mm]" },
    { 0, DEDUP | FILES, "set-back", "TIME", &type_moment, SLOT(set_back_ms),
      "bring back the time of a --state that is ahead, since a clock was wrong, to TIME: "
      "'now', "
      "or as in --time-field" },
    { 0, SIZED, "fast", NULL, &type_flag, SLOT(fast), "prefer speed to a small size" },
    { 0, SIZED, "compact", NULL, &type_flag, SLOT(compact), "prefer a small size to speed" },
    { 0, BUILD | PLAN | CREATE, "together", NULL, &type_flag, SLOT(together),
      "put all bits of a key side by side, so that one read fetches them; takes more memory" },
    { 0, BUILD | DEDUP | CREATE, "hash", "H", &type_hash, SLOT(hash),
      "xxh3 [default], sip (secret: strangers choose keys), none (16-byte hashes), none-64" },
    { 0, BUILD | CREATE, "seed", "S", &type_seed, SLOT(seed),
      "seed of the hash: filters to be merged or compared need the same [random]" },
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
    const bool bitmap = s->kind && strcmp(s->kind, KIND_OF_INTEGERS) == 0;
    const bool known = s->verb->bit == DEDUP && s->against;
    const bool exactly = s->exact || s->unique || s->count_each || known;
    const bool values = s->value_field || s->value_bits;
    const bool named = s->kind && kind_can(s->kind, PERHAPS_CAN_BUILD);
    const bool built =
        s->fixed || named || values || (!known && s->against) || s->against_count;
    const bool summary_only = !(s->verb->bit & LOOKING);
    bool newline = false;
    for (size_t i = 0; i < s->keys.count; i++)
        newline |= !s->null && strchr(s->keys.word[i], '\n');
    const struct {
        bool wrong;
        const char *message;
    } rules[] = {
        { s->fast && s->compact, "--fast: excludes --compact: leave out one" },
        { bitmap && !integers,
          "--kind " KIND_OF_INTEGERS ": of which integers? give --integers LOW-HIGH" },
        { s->kind && integers && !bitmap,
          "--integers: is only for --kind " KIND_OF_INTEGERS ": leave out --kind" },
        { s->hash && !hashed && !integers,
          "--hash integer: is only for integers of a range: give --integers LOW-HIGH" },
        { integers && (hashed || s->seed || s->key_file),
          "--integers: integers are not hashed: leave out --hash, --seed and --key-file" },
        { integers && has_window, "--integers: what is a bit cannot age: leave out --window" },
        { integers && s->capacity > s->integers.high - s->integers.low + 1,
          "-n: the range of --integers has fewer integers: leave out -n" },
        { s->in_place && s->rewrite, "--in-place: excludes --rewrite: leave out one" },
        { s->once && s->counts, "--once: leaves nothing to count: leave out --count" },
        { s->form.delimiter && !has_fields && !s->time_field,
          "--delimiter: says where fields end: give --field too" },
        { s->generations && !has_window,
          "--generations: is only for a window: give --window too" },
        { s->time_field && s->window.keys,
          "--time-field: the window goes by keys: give a time, such as --window 24h, or leave "
          "out --time-field" },
        { s->time_field && !has_window && !s->state,
          "--time-field: is only for a window: give --window too, such as --window 24h" },
        { s->set_back_ms && !s->state, "--set-back: the time of which state? give --state F" },
        { exactly && (s->state || has_window || s->generations || s->time_field),
          "--exact, --unique, --count-each, --against: keep no filter, and forget nothing: "
          "leave out --state, --window and what belongs to it" },
        { exactly && (s->capacity || s->kind || s->base || s->grow || s->until || s->factor ||
                      s->fast || s->compact || integers || s->hash || s->key_file),
          "--exact, --unique, --count-each, --against: count the lines and choose the filter "
          "themselves: leave out -n, --kind and other options for filters" },
        { s->unique && s->repeated,
          "--unique: prints lines that are never repeated: leave out -d" },
        { s->count_each && (s->exact || s->unique || s->repeated || s->count || known),
          "--count-each: prints each line and its exact count: leave out --exact, --unique, "
          "--against, -d and -c" },
        { s->least && !s->count_each, "--least: of which counts? give --count-each too" },
        { s->verb->bit == DEDUP && (s->memory_nbytes || s->tmp) && !exactly,
          "--memory and --tmp: are only for --exact, --unique, --count-each and --against: "
          "leave them out" },
        { (s->durable.lines || s->durable.ms) && !s->state,
          "--durable: keeps which state? give --state F" },
        { s->live && built,
          "--live: is for filters that take keys later: leave out --static, --against, "
          "--value-field, or a --kind that is built once" },
        { built && (s->removable || s->counts || s->grow || s->until || s->factor || s->base),
          "--static, --against, --value-field, --value-bits and a --kind that is built once: "
          "no "
          "key is added or removed later: leave them out, or --removable, --count, --grow, "
          "--until, --factor, --base" },
        { built && (has_window || integers),
          "--window, --integers: take keys as they come: leave out --static, --against, "
          "--against-count, --value-field, --value-bits, or a --kind that is built once" },
        { built && s->together,
          "--together: is for filters to which keys are added: leave it out, or --static, "
          "--against, --value-field, --value-bits, or the --kind" },
        { s->fixed && s->kind && !named,
          "--static: is for kinds that are built once: leave out --kind, or --static" },
        { values && s->kind && strcmp(s->kind, "ribbon") != 0,
          "--value-field, --value-bits: only --kind ribbon stores values: leave out --kind" },
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
        { (s->against || s->against_count) && (s->value_field || s->value_bits),
          "--against: stores no values: leave out --value-field and --value-bits" },
        { (s->against || s->against_count) && s->kind && strcmp(s->kind, "against") != 0,
          "--against: is a kind of its own: leave out --kind" },
        { s->verb->bit == BUILD && s->value_bits && !s->value_field,
          "--value-bits: of which values? give --value-field too" },
        { s->any && s->label, "--any: prints nothing: leave out --label" },
        { s->any && s->count, "--any: prints nothing: leave out -c" },
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].wrong)
            fail("%s", rules[i].message);
}

bool is_on_servers(const struct settings *s)
{
    for (size_t i = 0; i < s->filters.count; i++)
        if (is_remote(s->filters.word[i]))
            return true;
    return (s->state && is_remote(s->state)) ||
           (s->verb->bit == CONVERT && s->ninputs && is_remote(s->inputs[0]));
}

/* Ends the program if the verb or an option is not for filters in files, or not for filters on
 * servers.  'given' tells which rows the command line has used. */
static void check_place(const struct settings *s, const bool given[NROWS])
{
    const char *verb = s->verb->name;
    bool served = is_on_servers(s);
    for (size_t i = 0; i < s->filters.count; i++)
        remote_refuse_typo(s->filters.word[i]);
    for (size_t i = 0; i < s->ninputs; i++)
        remote_refuse_typo(s->inputs[i]);
    if (s->output)
        remote_refuse_typo(s->output);
    if (s->state)
        remote_refuse_typo(s->state);
    if (s->output && is_remote(s->output))
        fail("%s: writes files only: make a filter on servers with 'perhaps create', and fill "
             "it with 'perhaps add'",
             verb);
    for (size_t i = 0; i < s->ninputs && s->verb->bit != CONVERT; i++)
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
    if (s->verb->takes_filter && !s->filters.count) {
        if (argc-- == 0)
            fail("%s: which filter? see 'perhaps help %s'", verb, verb);
        s->filters.word[s->filters.count++] = *argv++;
    }
    s->filter = s->filters.word[0];
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
    if (!settings->kind && verb->bit != DEDUP)
        settings->kind = settings->against || settings->against_count    ? "against"
                         : settings->value_field || settings->value_bits ? "ribbon"
                                                                         : NULL;
    if (settings->value_field && !settings->value_bits)
        settings->value_bits = VALUE_BITS;
    if (!settings->form.delimiter)
        settings->form.delimiter = '\t';
    settings->form.end = settings->null ? '\0' : '\n';
    settings->window.generations = (unsigned)settings->generations;
    take_operands(argc - optind, argv + optind, settings);
    if (verb->bit == DEDUP && settings->against)
        take_known(settings);
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
