/* recent.c - lets each alarm through once an hour: a window over a stream of events.
 * Shows: .window.time, with which a filter forgets; perhaps_advance(), which tells it the time,
 * in any unit; that it remembers for at least that time, and at most for a quarter longer.
 * Run: build/examples/recent -   reads lines "SECONDS ALARM" and prints those that came through
 *      build/examples/recent     makes up alarms; returns 0 if each came through when it should */
#include <inttypes.h>
#include <perhaps.h>
#include <perhaps_window.h>
#include <stdio.h>
#include <string.h>

enum { HOUR = 3600, ALARMS = 500, EVERY = 600, TURNS = 60 };

/* Returns 0 or an error, and sets *is_new if the alarm did not come through for an hour. */
static int take(perhaps_filter *recent, uint64_t seconds, const char *alarm, bool *is_new)
{
    bool was_present;
    int error = perhaps_advance(recent, seconds);
    if (!error)
        error = perhaps_add_unless_present(recent, alarm, strlen(alarm), &was_present);
    *is_new = !error && !was_present;
    return error;
}

static int read_alarms(perhaps_filter *recent)
{
    uint64_t seconds;
    char alarm[256];
    bool is_new;
    int error = 0;
    while (!error && scanf("%" SCNu64 " %255[^\n]", &seconds, alarm) == 2) {
        error = take(recent, seconds, alarm, &is_new);
        if (is_new)
            printf("%" PRIu64 " %s\n", seconds, alarm);
    }
    return error;
}

/* Each alarm goes off every ten minutes, for ten hours.  Counts as wrong what came through
 * within an hour of the last time, and what was held back for longer than an hour and a half. */
static int make_up_alarms(perhaps_filter *recent, unsigned *passed, unsigned *wrong)
{
    static uint64_t last[ALARMS];
    char alarm[64];
    bool is_new;
    int error = 0;
    for (uint64_t turn = 1; turn <= TURNS && !error; turn++) {
        for (unsigned i = 0; i < ALARMS && !error; i++) {
            const uint64_t now = turn * EVERY;
            snprintf(alarm, sizeof alarm, "sensor %u: too hot", i);
            error = take(recent, now, alarm, &is_new);
            *wrong += is_new ? last[i] && now - last[i] < HOUR : now - last[i] > HOUR * 3 / 2;
            *passed += is_new;
            last[i] = is_new ? now : last[i];
        }
    }
    return error;
}

int main(int argc, char **argv)
{
    struct perhaps_options options = { .capacity = 10000, .fpr = 1e-6, .window.time = HOUR };
    options.needs = PERHAPS_CAN_FORGET;
    perhaps_filter *recent;
    unsigned passed = 0, wrong = 0;
    int error = perhaps_create(&options, &recent);
    if (!error && argc == 2 && !strcmp(argv[1], "-"))
        error = read_alarms(recent);
    else if (!error)
        error = make_up_alarms(recent, &passed, &wrong);
    if (argc < 2)
        printf("%u of %u alarms came through, %u of them wrongly or too late: %s\n", passed,
               ALARMS * TURNS, wrong, perhaps_strerror(error));
    perhaps_free(recent);
    return error || wrong || (argc < 2 && !passed);
}
