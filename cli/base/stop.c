/* stop.c - a signal stops the work, even while a thread waits for input.
 *
 * A flag alone is not enough.  A signal that comes between looking at the flag and calling
 * read() would be noticed only when the next byte comes; and the system may give the signal to
 * a thread that is not reading.  So the handler writes to a pipe, and every thread that waits
 * for input watches this pipe, too. */
#include "stop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "messages.h"

static atomic_int caught;        /* the signal, or 0 */
static atomic_llong first_s;     /* when it came, in seconds; 0: never */
static int wake[2] = { -1, -1 }; /* nobody reads from it: once readable, it stays so */

/* Some senders, such as timeout(1), send a signal twice in a row and mean one, and two threads
 * may handle the two at the same time.  So only a signal that comes more than a second after
 * the first one ends the program. */
static void note_signal(int number)
{
    int saved = errno;
    long long now_s = time(NULL), seen_s = 0;
    if (atomic_compare_exchange_strong(&first_s, &seen_s, now_s)) {
        atomic_store(&caught, number);
        (void)!write(wake[1], "", 1);
    } else if (now_s - seen_s > 1) {
        signal(number, SIG_DFL);
        raise(number);
    }
    errno = saved;
}

/* What is said after SIGBUS, when only write() can be called; "": no filter is mapped. */
static char lost[512];

static void end_on_lost_bytes(int number)
{
    if (!*lost) {
        signal(number, SIG_DFL); /* the access is tried again */
        return;
    }
    (void)!write(STDERR_FILENO, lost, strlen(lost));
    _exit(STATUS_ERROR);
}

void stop_on_lost_bytes(void)
{
    struct sigaction action = { .sa_handler = end_on_lost_bytes };
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

void stop_says_lost(const char *path)
{
    static const char rest[] = "cannot be read any more: its disk failed, or another program "
                               "made it shorter: restore it from a copy";
    snprintf(lost, sizeof lost, "perhaps: %.300s: %s\n", *lost ? "a filter" : path, rest);
}

void stop_on_signals(void)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
    if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0)
        wake[0] = wake[1] = -1; /* poll() ignores it; a second signal still ends us */
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction action = { .sa_handler = note_signal }, old;
        sigemptyset(&action.sa_mask);
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

int stop_signal(void)
{
    return atomic_load(&caught);
}

bool stop_overdue(void)
{
    return stop_signal() && time(NULL) - atomic_load(&first_s) > 1;
}

void stop_waiting(void)
{
    (void)!write(wake[1], "", 1);
}

bool stop_wait(int fd)
{
    struct pollfd either[2] = { { .fd = fd, .events = POLLIN },
                                { .fd = wake[0], .events = POLLIN } };
    while (poll(either, 2, -1) < 0)
        if (errno != EINTR && errno != EAGAIN)
            return true; /* read() will tell what is wrong */
    return either[1].revents == 0;
}

bool stop_asked(void *unused)
{
    (void)unused;
    return stop_signal() != 0;
}
