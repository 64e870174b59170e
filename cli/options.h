/* options.h - the command line, and its help.
 *
 * Each verb is a function, and a row of the table in main.c.  Each option is a row of the table
 * in options.c, which has all there is to know about it: its names, the verbs that take it,
 * where its value goes, and its line of help.  Help and completions are made from these two
 * tables, so they cannot drift from what the program does. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <perhaps.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "input/lines.h"

/* ---- Verbs --------------------------------------------------------------------------- */

struct settings;

/* Sets of verbs: the row of an option has the bits of all verbs that take it. */
enum verb_bit {
    BUILD = 1 << 0,
    ADD = 1 << 1,
    REMOVE = 1 << 2,
    QUERY = 1 << 3,
    DEDUP = 1 << 4,
    INFO = 1 << 5,
    PLAN = 1 << 6,
    MERGE = 1 << 7,
    VERIFY = 1 << 8,
    COUNT = 1 << 9,
    CREATE = 1 << 10,
    DELETE = 1 << 11,
    COPY = 1 << 12,
    RECOUNT = 1 << 13,
    SHRINK = 1 << 14,
    COMPARE = 1 << 15,
};

/* Does all that the verb does.  Returns if all went well; an error ends the program. */
typedef void verb_function(const struct settings *settings);

/* A row of the table of verbs, which ends with a row without a name. */
struct verb {
    unsigned bit;
    bool takes_filter; /* the first operand is a filter */
    bool takes_inputs; /* further operands are allowed */
    const char *name;
    verb_function *run;
    const char *usage;   /* what follows the name in the line of usage */
    const char *summary; /* one line, for the list of all verbs */
    const char *notes;   /* more, for 'perhaps help VERB' */
};

verb_function verb_create, verb_build, verb_add, verb_remove, verb_query, verb_count,
    verb_dedup;
verb_function verb_info, verb_plan, verb_merge, verb_verify, verb_copy, verb_delete,
    verb_recount, verb_shrink, verb_compare;

/* ---- Options ------------------------------------------------------------------------- */

/* The number that a macro stands for, as a text. */
#define TEXT(macro) TEXT_OF(macro)
#define TEXT_OF(x)  #x

#define FPR       0.01 /* if -p is not given */
#define FPR_DEDUP 1e-6 /* the same for dedup, where each false positive loses a line */

/* The same for the filters of dedup --exact, where each false positive only takes time. */
#define FPR_EXACT 0.01

/* The same for --against: keys that are in neither list are not thought of. */
#define FPR_AGAINST 0.5

/* The same if keys have groups: only above 1/2 a group may be stored by those not listed. */
#define FPR_GROUPS 0.99

/* The most bits that a value can have. */
#define VALUE_BITS_MAX 16

/* What --tmp takes in place of a folder if nothing is to go to a file. */
#define NO_FOLDER "none"

/* The values of an option that may be given several times. */
#define WORDS_MOST 256
struct words {
    size_t count;
    const char *word[WORDS_MOST];
};

/* When dedup acknowledges lines: after so many, or after such a time; 0: not by that. */
struct durability {
    uint64_t lines, ms;
};

/* What --kind asks for: a kind, and what is behind its colon. */
struct kind_asked {
    const char *name; /* NULL: any that does what the other options ask for */
    const char *base; /* of its layers or generations */
    uint64_t factor, until, generations;
    uint64_t others;       /* about how many keys --against has */
    uint64_t group_nbytes; /* with which a key begins: they name its group */
    uint64_t value_bits;   /* 0: as many as the largest value has */
    bool together;
};

/* What the command line asks for.  0 or NULL means that an option was not given, and the verb
 * has its own default.  Filled in by options_read() and constant afterwards; lives as long as
 * the verb runs.  Texts point into the command line. */
struct settings {
    const struct verb *verb;
    double started;     /* in seconds_now() */
    const char *filter; /* the first operand, or NULL: the verb takes none */
    struct words keys;  /* given by --key, in place of inputs */
    char **inputs;      /* paths; a verb that reads keys has at least one */
    size_t ninputs;
    struct extent *extents; /* of the inputs, for verbs that read them twice; may be NULL */
    size_t nknown; /* dedup: so many of them hold lines that came before, and are not printed */

    const char *output;
    const char *state;
    uint64_t wait_ms;
    uint64_t capacity;
    double fpr;
    struct kind_asked kind;
    enum perhaps_preference preference;
    uint64_t partitions;                    /* of a filter on servers */
    struct perhaps_window_options window;   /* its times are in milliseconds */
    struct perhaps_bitmap_options integers; /* high 0: keys are not integers of a range */
    uint64_t time_field;                    /* the first field is 1 */
    uint64_t set_back_ms;                   /* since 1970; 0: not asked for */
    const char *hash;
    const char *key_file;
    uint64_t seed;

    struct key_form form;
    uint64_t threads;
    uint64_t memory_nbytes; /* for keys that wait, or lines that are exact */
    const char *tmp;        /* a folder, or NO_FOLDER */
    const char *against;    /* a file of keys that are not in the filter */
    uint64_t value_field;   /* the first field is 1 */

    struct durability durable; /* all 0: not asked for */
    bool live;                 /* the file shall have a journal */

    bool rewrite, once;
    bool common;                         /* merge: only keys that all filters have */
    bool removable, counts, fixed, grow; /* what the kind must be able to do */
    bool raw;                            /* the inputs are not unpacked */
    bool null;                           /* lines end in NUL */
    bool invert, label, any, check, count, repeated;
    bool exact, unique, count_each;
    bool served; /* a filter that the verb works on lies on servers */
    bool quiet, json, help, help_all;
};

/* Fills in *settings from the command line: argv[0] is the verb, and the order of argv[]
 * changes.  Ends the program if an option or operand is wrong, or if two of them exclude each
 * other. */
void options_read(const struct verb *verb, int argc, char **argv, struct settings *settings);

/* Releases what options_read() has allocated. */
void options_release(struct settings *settings);

/* The kind that --integers makes. */
#define KIND_OF_INTEGERS "bitmap"

struct value_type;

/* A row of the table of options.  An option that two verbs understand differently has two
 * rows. */
struct option_row {
    int letter;     /* 0: none */
    unsigned verbs; /* bits of the verbs that take it; options.c has two bits more */
    const char *name;
    const char *argument; /* how help names its value; NULL: it takes none */
    const struct value_type *type;
    size_t slot; /* where in struct settings the value goes, in bytes */
    const char *help;
};

/* Returns the row of an option of the verb, or NULL behind the last one.  Number 0 is the
 * first, and those that are used most come first. */
const struct option_row *option_at(const struct verb *verb, size_t number);

/* What shells can offer as the value of an option. */
enum option_values {
    VALUES_NONE,
    VALUES_FILES,
    VALUES_KINDS,
    VALUES_HASHES,
    VALUES_PREFERENCES
};
enum option_values option_values(const struct option_row *option);

/* Returns the next thing, from number *at on, that can be asked of a kind behind a colon,
 * such as "factor=N"; NULL if there is none. */
const char *kind_takes(const char *kind, size_t *at);

/* ---- Help (help.c) ------------------------------------------------------------------- */

/* Prints the verbs, one on each line. */
void help_usage(const struct verb *verbs, FILE *to);

/* Print what 'perhaps help' and 'perhaps help VERB' print, the latter with all options or only
 * with those that are used most. */
void help_print(const struct verb *verbs);
void help_verb(const struct verb *verb, bool all);

/* Prints the completion script for bash, zsh or fish.  Returns false for any other shell. */
bool help_completion(const struct verb *verbs, const char *shell);

#endif
