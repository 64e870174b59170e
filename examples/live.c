/* live.c - a crawler's list of fetched URLs that survives kill -9, in a live file.
 * Shows: PERHAPS_MODE_JOURNAL, with which the file has a journal beside it, and perhaps_sync(),
 * which acknowledges: what was added before it is on the disk, whatever happens next.
 * Run: build/examples/live   (a child crawls and is killed; returns 0 if all that was
 * acknowledged is there) */
#include <perhaps.h>
#include <perhaps_live.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { URLS = 1000000, BATCH = 100, ENOUGH = 5000 };
static const char path[] = "fetched.perhaps";

/* Writes URL number 'i' to the text.  Returns its length. */
static size_t url_of(unsigned i, char text[64])
{
    return (size_t)snprintf(text, 64, "https://example.org/page/%u.html", i);
}

/* Makes an empty filter in the file, which becomes live when it is opened to write. */
static int make_file(void)
{
    struct perhaps_options options = { .capacity = URLS, .fpr = 0.001 };
    perhaps_filter *empty;
    int error = perhaps_create(&options, &empty);
    if (!error)
        error = perhaps_save(empty, path);
    perhaps_free(empty);
    return error;
}

/* Fetches URL after URL, and tells through the pipe after each batch how many of them will not
 * be forgotten. */
static int crawl(int acknowledged)
{
    struct perhaps_open_options options = { .mode = PERHAPS_MODE_JOURNAL };
    perhaps_filter *fetched;
    char url[64];
    int error = perhaps_open(path, &options, &fetched);
    for (unsigned i = 0; i < URLS && !error;) {
        error = perhaps_add(fetched, url, url_of(i, url)); /* here a crawler would fetch it */
        if (!error && ++i % BATCH == 0) {
            error = perhaps_sync(fetched);
            if (!error && write(acknowledged, &i, sizeof i) != sizeof i)
                break;
        }
    }
    perhaps_free(fetched);
    return error;
}

/* Starts a crawler, and kills it in the middle.  Returns how many URLs it had acknowledged. */
static unsigned crawl_and_kill(void)
{
    int ends[2];
    unsigned told, acknowledged = 0;
    if (pipe(ends))
        return 0;
    pid_t child = fork();
    if (!child)
        _exit(crawl(ends[1]) != 0);
    close(ends[1]);
    while (child > 0 && read(ends[0], &told, sizeof told) == sizeof told) {
        acknowledged = told;
        if (told == ENOUGH)
            kill(child, SIGKILL);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
    close(ends[0]);
    return acknowledged;
}

int main(void)
{
    perhaps_filter *fetched;
    char url[64];
    unsigned lost = 0, acknowledged = make_file() ? 0 : crawl_and_kill();
    int error = perhaps_open(path, NULL, &fetched); /* to read: does what the journal tells */
    for (unsigned i = 0; i < acknowledged && !error; i++)
        lost += !perhaps_contains(fetched, url, url_of(i, url));
    printf("killed after %u URLs were acknowledged; %u of them are lost\n", acknowledged, lost);
    perhaps_free(fetched);
    remove(path);
    remove("fetched.perhaps.journal");
    return error || lost || acknowledged < ENOUGH;
}
