/* messages.c - what the program says, on stderr and as facts on stdout, and how it ends.
 *
 * Facts are JSON objects: --json prints them as they are, and for people they become a table
 * with names as labels.  So each verb lists its facts once. */
#include "messages.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <perhaps_build.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "numbers.h"
#include "stop.h"

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double seconds_worked(const struct settings *settings)
{
    return seconds_now() - settings->started;
}

/* ---- Progress ---------------------------------------------------------------------- */

/* In seconds.  Work that takes less time needs no progress line; and how much time is left is
 * not known at its beginning. */
#define PATIENCE_S   1.0
#define REDRAW_S     0.2
#define EXPERIENCE_S 3.0

/* Whether the terminal shows the progress line.  Under the lock of stderr: a stage may print a
 * line while another thread draws. */
static bool on_screen;

void progress_start(struct progress *progress, const struct settings *settings,
                    const char *doing, uint64_t total_nbytes)
{
    bool wanted = isatty(STDERR_FILENO) && !settings->quiet && !settings->json;
    *progress = (struct progress){
        .doing = doing, .total_nbytes = total_nbytes, .wanted = wanted, .started = seconds_now()
    };
}

unsigned terminal_columns(int fd)
{
    struct winsize size;
    return !ioctl(fd, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : UINT_MAX;
}

/* Draws the line, and of a line for which the terminal is too narrow the beginning: the rest
 * would go to a line of its own, and stay there. */
static void draw_progress(const char *doing, const char *part, const char *left,
                          const char *done, const char *fast)
{
    char line[256];
    const unsigned columns = terminal_columns(STDERR_FILENO);
    snprintf(line, sizeof line, "perhaps: %s%s%s, %s%s", doing, part, left, done, fast);
    if (columns <= strlen(line))
        line[columns - 1] = '\0';
    flockfile(stderr);
    on_screen = true;
    fprintf(stderr, "\r\033[K%s", line);
    fflush(stderr);
    funlockfile(stderr);
}

void progress_show(struct progress *progress, bool of_keys, uint64_t nkeys, uint64_t nbytes)
{
    double now = seconds_now(), seconds = now - progress->started;
    if (!progress->wanted || seconds < PATIENCE_S || now - progress->drawn < REDRAW_S)
        return;
    progress->drawn = now;
    struct text part = { "" }, left = { "" };
    if (progress->total_nbytes > 0 && nbytes > 0) {
        double share = (double)nbytes / (double)progress->total_nbytes;
        share = share < 1 ? share : 1; /* a file may have grown */
        part = text_of(" %3.0f %%", share * 100);
        if (seconds >= EXPERIENCE_S)
            left = text_of(", %s left", duration(ceil(seconds * (1 - share) / share)).s);
    }
    draw_progress(progress->doing, part.s, left.s,
                  of_keys ? counted(nkeys, "key").s : scaled((double)nbytes, "B").s,
                  of_keys ? speed(nkeys, seconds, " keys/s").s
                          : text_of(", %s", scaled((double)nbytes / seconds, "B/s").s).s);
}

void progress_erase(void)
{
    flockfile(stderr);
    if (on_screen)
        fputs("\r\033[K", stderr);
    on_screen = false;
    funlockfile(stderr);
}

/* ---- One line ---------------------------------------------------------------------- */

/* Removes from every address in the line what stands before its last @: an address may be
 * printed as it was typed, with a password. */
static void hide_password(char *line)
{
    static const char scheme[] = "://";
    for (char *begin = line; (begin = strstr(begin, scheme));) {
        begin += strlen(scheme);
        size_t length = strcspn(begin, " \n");
        const char *at = memrchr(begin, '@', length);
        if (at)
            memmove(begin, at + 1, strlen(at + 1) + 1);
    }
}

/* Prints one line on stderr.  All messages come through here, so that no text in them can forge
 * a second line or control the terminal. */
static void print_line(const char *format, va_list arguments)
{
    char line[8192];
    int length = vsnprintf(line, sizeof line, format, arguments);
    if (length < 0)
        return;
    hide_password(line);
    for (char *c = line; *c; c++) /* a path may hold newlines and terminal controls */
        if (iscntrl((unsigned char)*c))
            *c = '?';
    flockfile(stderr);
    progress_erase();
    fprintf(stderr, "perhaps: %s\n", line);
    funlockfile(stderr);
}

void complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line(format, arguments);
    va_end(arguments);
}

void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line(format, arguments);
    va_end(arguments);
    leave(STATUS_ERROR);
}

void fail_interrupted(const char *outcome)
{
    complain("interrupted%s", outcome);
    leave(128 + stop_signal());
}

/* Standard output is flushed here, because what it still holds may not fit on the disk.  A pipe
 * whose reader has gone ends us as SIGPIPE would, without a message. */
void leave(int status)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        status = errno == EPIPE ? 128 + SIGPIPE : STATUS_ERROR;
        if (status == STATUS_ERROR)
            complain("standard output: %m");
    }
    exit(status);
}

void *allocate_zeroed(size_t count, size_t nbytes)
{
    void *memory = calloc(count, nbytes);
    if (!memory)
        fail("%s", why(PERHAPS_ERR_MEMORY));
    return memory;
}

/* Returns that there is no memory, how much there is, and what can be done. */
static const char *why_no_memory(void)
{
    static char text[256];
    snprintf(text, sizeof text,
             "%s: this process can take only %s more: raise its limits (ulimit -v, ulimit -d, "
             "control group), or end other programs",
             perhaps_strerror(PERHAPS_ERR_MEMORY),
             scaled((double)perhaps_host_memory_nbytes(), "B").s);
    return text;
}

const char *why(int error)
{
    return error == PERHAPS_ERR_IO       ? strerror(errno)
           : error == PERHAPS_ERR_MEMORY ? why_no_memory()
                                         : perhaps_strerror(error);
}

const char *problem_or_memory(const char *problem)
{
    return problem ? problem : why_no_memory();
}

static void print_json(json_t *facts, FILE *to)
{
    json_dumpf(facts, to, JSON_REAL_PRECISION(10) | JSON_COMPACT);
    putc('\n', to);
}

void summarize(const struct settings *settings, json_t *facts, const char *format, ...)
{
    json_t *all = json_pack("{s:s}", "verb", settings->verb->name);
    json_object_update(all, facts);
    json_object_set_new(all, "seconds", json_real(seconds_worked(settings)));
    progress_erase();
    if (settings->json && !settings->quiet) {
        print_json(all, stderr);
    } else if (!settings->quiet) {
        va_list arguments;
        va_start(arguments, format);
        print_line(format, arguments);
        va_end(arguments);
    }
    json_decref(facts);
    json_decref(all);
}

/* ---- Facts ------------------------------------------------------------------------- */

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* Returns a name as people read it: "fpr_now" is "fpr now". */
static struct text label_of(const char *name)
{
    struct text label = text_of("%s", name);
    for (char *c = label.s; *c; c++)
        if (*c == '_')
            *c = ' ';
    return label;
}

/* Returns whether this is a number of bytes that is worth a prefix. */
static bool is_size(const char *name, const json_t *value)
{
    return json_is_integer(value) && ends_in(name, "bytes") &&
           json_integer_value(value) >= 1000;
}

/* Returns a value that is not a text, as people read it. */
static struct text text_of_value(const json_t *value, int digits)
{
    if (json_is_integer(value))
        return grouped((uint64_t)json_integer_value(value));
    if (json_is_real(value))
        return text_of("%.*g", digits, json_real_value(value));
    return text_of(json_is_true(value) ? "yes" : json_is_null(value) ? "-" : "no");
}

/* Makes of "body_bytes": 18650112 the line "body bytes    18,650,112  (18.7 MB)". */
static void print_fact(const char *name, const json_t *value)
{
    const char *text = json_string_value(value);
    printf("%-20s %s", label_of(name).s, text ? text : text_of_value(value, 6).s);
    if (is_size(name, value))
        printf("  (%s)", scaled((double)json_integer_value(value), "B").s);
    putchar('\n');
}

/* Returns the text of a cell, or of the head of its column (value NULL). */
static struct text cell_of(const char *name, const json_t *value)
{
    if (!value)
        return label_of(name);
    if (is_size(name, value))
        return scaled((double)json_integer_value(value), "B");
    return json_is_string(value) ? text_of("%s", json_string_value(value))
                                 : text_of_value(value, 3);
}

/* Prints a cell, or the head of its column, as wide as the widest cell.  Numbers and the last
 * column are aligned to the right, other columns to the left. */
static void print_cell(json_t *rows, const char *name, const json_t *value)
{
    size_t width = strlen(cell_of(name, NULL).s);
    json_t *first = json_array_get(rows, 0);
    bool left = json_object_iter_next(first, json_object_iter_at(first, name));
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *other = json_object_get(json_array_get(rows, i), name);
        size_t length = strlen(cell_of(name, other).s);
        width = length > width ? length : width;
        left &= !json_is_number(other);
    }
    printf(left ? "  %-*s" : "  %*s", (int)width, cell_of(name, value).s);
}

/* Prints objects with the same members as a table with a title. */
static void print_rows(const char *title, json_t *rows)
{
    const char *name;
    json_t *row, *value;
    size_t i;
    printf("\n%s:\n", label_of(title).s);
    json_object_foreach(json_array_get(rows, 0), name, value) print_cell(rows, name, NULL);
    json_array_foreach(rows, i, row)
    {
        putchar('\n');
        json_object_foreach(row, name, value) print_cell(rows, name, value);
    }
    putchar('\n');
}

/* Prints facts: a fact that is an object as its members, an array of objects as a table, and
 * any other array as one line for each member. */
static void print_table(json_t *facts)
{
    const char *name;
    json_t *value;
    json_object_foreach(facts, name, value)
    {
        if (json_is_object(value))
            print_table(value);
        else if (!json_is_array(value))
            print_fact(name, value);
        else if (json_is_object(json_array_get(value, 0)))
            print_rows(name, value);
        else
            for (size_t i = 0; i < json_array_size(value); i++)
                print_fact(name, json_array_get(value, i));
    }
}

void print_facts(const struct settings *settings, json_t *facts)
{
    if (settings->json)
        print_json(facts, stdout);
    else
        print_table(facts);
    json_decref(facts);
}

/* Returns how many bytes the character at 'text' has; 0 if it is not UTF-8.  jansson decides,
 * since it is the one that would refuse the text. */
static size_t character_nbytes(const char *text, size_t left)
{
    for (size_t nbytes = 1; nbytes <= 4 && nbytes <= left; nbytes++) {
        json_t *character = json_stringn(text, nbytes);
        if (character) {
            json_decref(character);
            return nbytes;
        }
    }
    return 0;
}

json_t *json_path(const char *path)
{
    json_t *text = json_string(path);
    char *copy = text ? NULL : strdup(path);
    if (!copy)
        return text;
    for (size_t at = 0, end = strlen(copy); at < end;) {
        size_t nbytes = character_nbytes(copy + at, end - at);
        if (nbytes == 0)
            copy[at] = '?';
        at += nbytes ? nbytes : 1;
    }
    text = json_string(copy);
    free(copy);
    return text;
}

/* ---- Names that were mistyped ------------------------------------------------------- */

/* No verb and no option has a longer name; a longer text is like none of them. */
#define NAME_MOST 32

static size_t smaller_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Returns how many letters must be put in, left out, exchanged, or swapped with the next one,
 * to make one name of the other.  d[i][j] is that number for the first i letters of a and the
 * first j of b.  Neither has more than NAME_MOST letters. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
    size_t d[NAME_MOST + 1][NAME_MOST + 1];
    for (size_t i = 0; i <= na; i++)
        for (size_t j = 0; j <= nb; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            bool same = a[i - 1] == b[j - 1];
            d[i][j] =
                smaller_of(d[i - 1][j - 1] + !same, smaller_of(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = smaller_of(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[na][nb];
}

/* Returns how different the first 'nbytes' bytes of what was typed are from the name; 0 if they
 * are its beginning. */
static size_t unlikeness(const char *typed, size_t nbytes, const char *name)
{
    size_t length = strlen(name);
    if (nbytes > 2 && nbytes <= length && memcmp(typed, name, nbytes) == 0)
        return 0;
    return nbytes > NAME_MOST || length > NAME_MOST ? NAME_MOST
                                                    : distance(typed, nbytes, name, length);
}

struct guess guess_begin(const char *typed, size_t nbytes)
{
    return (struct guess){ typed, nbytes, 1 + nbytes / 3, NULL };
}

/* Takes this name for the nearest one if it is nearer than those before. */
void guess_try(struct guess *guess, const char *name)
{
    size_t n = unlikeness(guess->typed, guess->nbytes, name);
    if (n < guess->unlikeness) {
        guess->unlikeness = n;
        guess->nearest = name;
    }
}
