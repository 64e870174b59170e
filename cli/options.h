/* options.h - the command line, read.  Each verb is a function, and a row of the table in
 * main.c.  The table in options.c is all there is to know about an option: its names, the verbs
 * that take it, where its value goes, and its line of help. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <perhaps.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lines.h"

/* ---- Verbs --------------------------------------------------------------------------- */

struct settings;

/* Sets of verbs, by which the options say where they belong. */
enum verb_bit {
    BUILD = 1,
    ADD = 2,
    REMOVE = 4,
    QUERY = 8,
    DEDUP = 16,
    INFO = 32,
    PLAN = 64,
    MERGE = 128,
    VERIFY = 256,
    COUNT = 512,
    CREATE = 1024,
    DELETE = 2048,
    CONVERT = 4096,
};

/* Does what is asked, or ends the program. */
typedef void verb_function(const struct settings *settings);

struct verb {
    unsigned bit;
    bool takes_filter; /* the first operand is a filter */
    bool takes_inputs; /* further operands are allowed */
    const char *name;
    verb_function *run;
    const char *usage; /* what follows the name */
    const char *summary;
    const char *notes; /* more for 'perhaps help VERB', or NULL */
};

/* From 0 on; NULL: there are fewer. */
const struct verb *verb_at(size_t number);

verb_function verb_create, verb_build, verb_add, verb_remove, verb_query, verb_count,
    verb_dedup;
verb_function verb_info, verb_plan, verb_merge, verb_verify, verb_convert, verb_delete;

/* ---- Options ------------------------------------------------------------------------- */

/* A number that a macro has, for texts. */
#define TEXT(macro) TEXT_OF(macro)
#define TEXT_OF(x)  #x

#define FPR       0.01 /* where -p is not given */
#define FPR_DEDUP 1e-6 /* each false positive is a line lost */

/* The values of an option that may be given several times. */
#define WORDS_MOST 256
struct words {
    size_t count;
    const char *word[WORDS_MOST];
};

/* What was asked.  Zero or NULL: not given, the verb has its default. */
struct settings {
    const struct verb *verb;
    double started;       /* in seconds_now() */
    const char *filter;   /* what the verb is about, if it takes one */
    struct words filters; /* this and others */
    struct words keys;    /* in place of inputs */
    char **inputs;        /* of verbs that read keys: never none */
    size_t ninputs;

    const char *output;
    const char *state;
    uint64_t wait_ms;
    uint64_t capacity;
    double fpr;
    const char *kind;
    const char *base;
    uint64_t factor, until;               /* how it grows */
    uint64_t partitions;                  /* on servers */
    struct perhaps_window_options window; /* times in milliseconds */
    uint64_t generations;
    uint64_t time_field; /* from 1 on */
    const char *hash;
    const char *key_file;
    uint64_t seed;

    struct key_form form;
    uint64_t threads;

    bool force, in_place, rewrite, once;
    bool removable, counts, fixed, grow; /* what is needed of the kind */
    bool fast, compact, together;
    bool raw;  /* inputs are not unpacked */
    bool null; /* records end in NUL */
    bool skip_short;
    bool invert, label, any, check, count, repeated;
    bool quiet, json, help, help_all;
};

/* Fills in *settings from what follows the verb on the command line, of which it changes the
 * order.  Ends the program where that makes no sense. */
void options_read(const struct verb *verb, int argc, char **argv, struct settings *settings);

struct value_type;

struct option_row {
    int letter; /* 0: none */
    unsigned verbs;
    const char *name;
    const char *argument; /* NULL: it takes none */
    const struct value_type *type;
    size_t slot; /* of the value in the settings */
    const char *help;
};

/* Of the verb's options, from number 0 on, the usual ones first.  NULL: there are fewer. */
const struct option_row *option_at(const struct verb *verb, size_t number);

/* What shells can offer for the value. */
enum option_values { VALUES_NONE, VALUES_FILES, VALUES_KINDS, VALUES_HASHES };
enum option_values option_values(const struct option_row *option);

/* ---- Help (help.c) ------------------------------------------------------------------- */

/* The verbs in a line each. */
void help_usage(FILE *to);

/* What 'perhaps help' prints, and 'perhaps help VERB', with all options or the usual ones. */
void help_print(void);
void help_verb(const struct verb *verb, bool all);

/* What somebody meant who mistyped a name, with or without its "--".  NULL: nobody can tell. */
const char *help_nearest_verb(const char *typed);
const char *help_nearest_option(const struct verb *verb, const char *typed);

/* Prints the completions for bash, zsh or fish.  false: there are none for such a shell. */
bool help_completion(const char *shell);

#endif
