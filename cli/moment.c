/* A cursor goes over the text; what does not find what it expects leaves it there, and the text
 * is then not at its end. */
#include "moment.h"

#include <time.h>

struct cursor {
    const char *at, *end;
};

static bool is_digit(const struct cursor *c)
{
    return c->at < c->end && *c->at >= '0' && *c->at <= '9';
}

static bool take(struct cursor *c, char wanted)
{
    bool found = c->at < c->end && *c->at == wanted;
    c->at += found;
    return found;
}

/* Exactly so many digits. */
static bool take_digits(struct cursor *c, unsigned count, int64_t *n)
{
    *n = 0;
    for (; count && is_digit(c); count--)
        *n = *n * 10 + (*c->at++ - '0');
    return count == 0;
}

/* ".123", if it is there; finer digits are passed over. */
static bool take_fraction(struct cursor *c, int64_t *ms)
{
    if (!take(c, '.'))
        return true;
    bool some = is_digit(c);
    for (int64_t weight = 100; is_digit(c); weight /= 10)
        *ms += weight * (*c->at++ - '0');
    return some;
}

/* Days from 1970-01-01, by years that begin in March, so that the odd day comes last. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t since_march = (month + 9) % 12;
    return year * 365 + year / 4 - year / 100 + year / 400 + (since_march * 153 + 2) / 5 + day -
           1 - 719468;
}

static int64_t month_ndays(int64_t year, int64_t month)
{
    int64_t next = month == 12 ? days_of(year + 1, 1, 1) : days_of(year, month + 1, 1);
    return next - days_of(year, month, 1);
}

static bool take_date(struct cursor *c, int64_t *days)
{
    int64_t year, month, day;
    if (!take_digits(c, 4, &year) || !take(c, '-') || !take_digits(c, 2, &month) ||
        !take(c, '-') || !take_digits(c, 2, &day))
        return false;
    if (year < 1970 || month < 1 || month > 12 || day < 1 || day > month_ndays(year, month))
        return false;
    *days = days_of(year, month, day);
    return true;
}

/* A leap second is the first one of the next minute. */
static bool take_time(struct cursor *c, int64_t *ms)
{
    int64_t hours, minutes, seconds;
    if (!take_digits(c, 2, &hours) || !take(c, ':') || !take_digits(c, 2, &minutes) ||
        !take(c, ':') || !take_digits(c, 2, &seconds))
        return false;
    *ms = ((hours * 60 + minutes) * 60 + seconds) * 1000;
    return hours < 24 && minutes < 60 && seconds <= 60 && take_fraction(c, ms);
}

/* "Z", "+01:00", "-0130", "+01" or nothing. */
static bool take_zone(struct cursor *c, int64_t *ms)
{
    int64_t hours, minutes = 0;
    *ms = 0;
    if (c->at == c->end || take(c, 'Z'))
        return true;
    bool ahead = take(c, '+');
    if ((!ahead && !take(c, '-')) || !take_digits(c, 2, &hours))
        return false;
    bool more = take(c, ':') || c->at < c->end;
    if (hours > 23 || (more && !take_digits(c, 2, &minutes)) || minutes > 59)
        return false;
    *ms = (hours * 60 + minutes) * (ahead ? 60000 : -60000);
    return true;
}

static bool take_iso(struct cursor *c, int64_t *ms)
{
    int64_t days, time = 0, zone;
    if (!take_date(c, &days) || (!take(c, 'T') && !take(c, ' ')) || !take_time(c, &time) ||
        !take_zone(c, &zone))
        return false;
    *ms = days * 86400000 + time - zone;
    return true;
}

/* Up to the year 9999: a number that is larger is one of milliseconds, or no time at all. */
static bool take_seconds(struct cursor *c, int64_t *ms)
{
    const int64_t most_s = INT64_C(253402300799);
    int64_t seconds = 0;
    bool some = is_digit(c);
    while (is_digit(c) && seconds <= most_s)
        seconds = seconds * 10 + (*c->at++ - '0');
    *ms = seconds * 1000;
    return some && seconds <= most_s && take_fraction(c, ms);
}

bool read_moment(const char *text, size_t nbytes, uint64_t *ms)
{
    struct cursor c = { text, text + nbytes };
    int64_t moment;
    bool iso = nbytes > 4 && text[4] == '-';
    bool read = iso ? take_iso(&c, &moment) : take_seconds(&c, &moment);
    if (!read || c.at != c.end || moment < 0)
        return false;
    *ms = (uint64_t)moment;
    return true;
}

uint64_t moment_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
