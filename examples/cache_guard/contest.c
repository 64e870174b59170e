/* contest.c - two sign-up processes at once, who want the same addresses.
 * Each is what "cache_guard signup" is: lines in, lines out.  What they wrote is compared. */
#include "contest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scratch.h"
#include "signup.h"

enum { PROCESSES = 2 };

static FILE *open_scratch(const char *name, unsigned process, const char *mode)
{
    char *numbered = text_of("%s.%u", name, process);
    char *path = scratch_path(numbered);
    FILE *file = fopen(path, mode);
    if (!file)
        fail("%s: %s", path, strerror(errno));
    free(path);
    free(numbered);
    return file;
}

/* Fresh addresses are numbered: the first 'lines' are those that both want. */
static uint64_t fresh_number(uint64_t line, unsigned process, uint64_t lines)
{
    return line % 4 == 2 ? line : (process + 1) * lines + line;
}

static bool is_fresh(uint64_t line)
{
    return line % 4 >= 2;
}

static void write_lines(const struct emails *users, unsigned process, uint64_t lines,
                        uint64_t seed)
{
    FILE *out = open_scratch("in", process, "w");
    uint64_t chance = seed + process;
    for (uint64_t i = 0; i < lines; i++) {
        if (is_fresh(i))
            fprintf(out, "fresh.%" PRIu64 "@signup.example\n", fresh_number(i, process, lines));
        else
            fprintf(out, "%s\n", emails_at(users, chance_next(&chance) % users->count));
    }
    if (fclose(out))
        fail("the folder for temporary files: %s", strerror(errno));
}

static void be_process(const char *database, const struct guard_options *guard,
                       unsigned process)
{
    FILE *in = open_scratch("in", process, "r"), *out = open_scratch("out", process, "w");
    struct database *users = database_open(database, false);
    struct guard *taken = guard_open(guard, GUARD_OPEN);
    sign_up_lines(users, taken, in, out);
    guard_close(taken);
    database_close(users);
    fclose(in);
    fclose(out);
}

static void count_line(struct contest *contest, const char *line, uint8_t *given)
{
    char verdict[16], word[16];
    uint64_t number;
    int nfields = sscanf(line, "%15s %15s fresh.%" SCNu64, verdict, word, &number);
    bool is_free = strcmp(verdict, "free") == 0;
    contest->lines++;
    contest->taken += !is_free;
    contest->by_guard += is_free && strcmp(word, "guard") == 0;
    contest->by_database += is_free && strcmp(word, "database") == 0;
    contest->by_constraint += strcmp(word, "constraint") == 0;
    if (nfields == 3 && is_free)
        contest->given_twice += given[number]++ > 0;
    else if (is_free)
        contest->free_though_taken++;
}

static void compare(struct contest *contest, uint64_t lines)
{
    uint8_t *given = memory_zeroed((PROCESSES + 1) * lines);
    char *line = NULL;
    size_t room = 0;
    for (unsigned process = 0; process < PROCESSES; process++) {
        FILE *out = open_scratch("out", process, "r");
        while (getline(&line, &room, out) >= 0)
            count_line(contest, line, given);
        fclose(out);
    }
    for (unsigned process = 0; process < PROCESSES; process++)
        for (uint64_t i = 0; i < lines; i++) {
            bool is_first = is_fresh(i) && (process == 0 || i % 4 == 3);
            contest->fresh += is_first;
            contest->given_to_nobody += is_first && !given[fresh_number(i, process, lines)];
        }
    free(line);
    free(given);
}

struct contest hold_contest(const char *database, const struct guard_options *guard,
                            const struct emails *users, uint64_t lines, uint64_t seed)
{
    struct contest contest = { 0 };
    pid_t children[PROCESSES];
    for (unsigned i = 0; i < PROCESSES; i++)
        write_lines(users, i, lines, seed);
    for (unsigned i = 0; i < PROCESSES; i++) {
        children[i] = fork_child();
        if (children[i] == 0) {
            be_process(database, guard, i);
            _exit(0); /* what is to be done at the end the parent does */
        }
    }
    for (unsigned i = 0; i < PROCESSES; i++) {
        int status;
        if (waitpid(children[i], &status, 0) < 0 || status != 0)
            fail("a sign-up process did not come to its end");
    }
    compare(&contest, lines);
    return contest;
}
