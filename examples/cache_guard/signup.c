/* signup.c - "is this e-mail address taken?"; and if not, it is given away.
 *
 * Two places must agree, the guard and the database, and no power on earth changes both at
 * once.  The order decides which lie can be told in between:
 *
 *     database first   Between the two the address is taken, and the guard says: certainly
 *                      free.  Others are told so; and if the process dies there, for ever.
 *     guard first      Between the two the address is free, and the guard says: perhaps
 *                      taken.  Then the database is asked, which knows better.  If the process
 *                      dies there, one address more asks the database needlessly.
 *
 * So: guard first, and no insert unless the guard has taken the address.  Asking and adding are
 * one call, guard_add(): every address that is asked about is then taken, by somebody.
 *
 * Two processes may both be told by the guard that an address is new, or both find that the
 * database does not have it.  Both then insert it, and UNIQUE in the database has the last
 * word.  The guard never gives anything away: it only spares questions.
 *
 * Who opens a guard adds all users of the database to it before it asks (guard_add_all()).
 * Then it need not be known how the guard came to be, whether the machine went down before the
 * file was written, or what a server has forgotten: a user who is in the database by then is
 * added, and one who comes later is added by who signs him up.  That costs a second a million
 * users.  Who cannot pay it at each start has to see to it that the guard forgets no sooner
 * than the database: perhaps_sync() before the insert for a file; "appendfsync always", and
 * 'acknowledge', for servers. */
#include "signup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scratch.h"

static const char *const word_names[WORDS] = {
    [WORD_GUARD] = "guard",
    [WORD_DATABASE] = "database",
    [WORD_CONSTRAINT] = "constraint",
    [WORD_NOBODY] = "-",
};

bool sign_up(struct database *database, struct guard *guard, const char *email, enum word *word)
{
    char name[NAME_NBYTES_MAX + 1];
    bool perhaps_taken = !guard || guard_add(guard, email);
    *word = perhaps_taken ? WORD_DATABASE : WORD_GUARD;
    if (perhaps_taken && database_find(database, email, name))
        return false;
    if (database_insert(database, email, ""))
        return true;
    *word = WORD_CONSTRAINT;
    return false;
}

/* ---- Lines ------------------------------------------------------------------------------- */

/* Guard and database are to see the same bytes: what is to be the same address (capitals,
 * say) has to be made the same here. */
static const char *trim(char *line, size_t nbytes)
{
    while (nbytes > 0 && strchr(" \t\r\n", line[nbytes - 1]))
        line[--nbytes] = '\0';
    for (size_t i = 0; i < nbytes; i++) /* no byte may end it, or command a terminal */
        if ((unsigned char)line[i] < ' ' || line[i] == 127)
            line[i] = ' ';
    return line + strspn(line, " ");
}

static bool is_email(const char *text)
{
    const char *at = strchr(text, '@');
    if (!at || at == text || at[1] == '\0' || strlen(text) > EMAIL_NBYTES_MAX)
        return false;
    return !strchr(text, ' ');
}

static void sign_up_line(struct database *database, struct guard *guard, const char *email,
                         FILE *out, struct signups *signups)
{
    enum word word = WORD_NOBODY;
    const char *verdict = "refused";
    if (!is_email(email)) {
        signups->refused++;
    } else if (sign_up(database, guard, email, &word)) {
        signups->free_by[word]++;
        verdict = "free";
    } else {
        signups->taken_by[word]++;
        verdict = "taken";
    }
    if (fprintf(out, "%s\t%s\t%s\n", verdict, word_names[word], email) < 0)
        fail("standard output: %s", strerror(errno));
}

struct signups sign_up_lines(struct database *database, struct guard *guard, FILE *in,
                             FILE *out)
{
    struct signups signups = { 0 };
    char *line = NULL;
    size_t room = 0;
    ssize_t nbytes;
    while ((nbytes = getline(&line, &room, in)) >= 0) {
        const char *email = trim(line, (size_t)nbytes);
        if (*email)
            sign_up_line(database, guard, email, out, &signups);
    }
    free(line);
    if (ferror(in))
        fail("standard input: %s", strerror(errno));
    if (fflush(out))
        fail("standard output: %s", strerror(errno));
    return signups;
}
