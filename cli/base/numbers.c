/* numbers.c - numbers and times, from text and to text.
 *
 * Whole numbers and times are read as digits and a power of ten, not as floating point, so that
 * 1.1M is exactly 1,100,000. */
#include "numbers.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Numbers that are read --------------------------------------------------------- */

#define DIGITS "0123456789"

/* Returns how many characters belong to the number up to the end of its commas, if it is
 * written as 1,000,000; 0 if a comma is not before every third digit. */
static size_t grouped_length(const char *text)
{
    size_t length = strspn(text, DIGITS);
    if (length == 0 || length > 3)
        return 0;
    while (text[length] == ',') {
        if (strspn(text + length + 1, DIGITS) != 3)
            return 0;
        length += 4;
    }
    return length;
}

/* Reads the digits before and behind a decimal point as one integer, and subtracts from *power
 * the number of digits behind it.  Returns what follows, or NULL. */
static const char *read_digits(const char *text, uint64_t *digits, long *power)
{
    bool point = false, some = false;
    const char *end = text + grouped_length(text);
    for (; isdigit((unsigned char)*text) || (*text == '.' && !point) || text < end; text++) {
        if (*text == ',')
            continue;
        if (*text == '.') {
            point = true;
            continue;
        }
        if (__builtin_mul_overflow(*digits, 10, digits) ||
            __builtin_add_overflow(*digits, (uint64_t)(*text - '0'), digits))
            return NULL;
        *power -= point;
        some = true;
    }
    return some ? text : NULL;
}

/* Adds the power of ten of "e9", of "M" or of "MB" to *power.  Returns what follows, or
 * NULL. */
static const char *read_scale(const char *text, long *power)
{
    static const char prefixes[] = "kmgt";
    if (tolower((unsigned char)*text) == 'e') {
        char *end;
        long exponent = strtol(text + 1, &end, 10);
        if (end == text + 1 || isspace((unsigned char)text[1]) || labs(exponent) > 1000)
            return NULL;
        *power += exponent;
        text = end;
    }
    const char *prefix = *text ? strchr(prefixes, tolower((unsigned char)*text)) : NULL;
    if (!prefix)
        return text;
    *power += 3 * (prefix - prefixes + 1);
    return text + 1 + (toupper((unsigned char)text[1]) == 'B');
}

/* Sets *n to digits times 10^power.  Returns false if that is not a whole number below 2^64. */
static bool scale(uint64_t digits, long power, uint64_t *n)
{
    for (; power < 0 && digits; power++) {
        if (digits % 10)
            return false;
        digits /= 10;
    }
    for (; power > 0 && digits; power--) {
        if (digits > UINT64_MAX / 10)
            return false;
        digits *= 10;
    }
    *n = digits;
    return true;
}

bool read_number(const char *text, uint64_t *n)
{
    uint64_t digits = 0;
    long power = 0;
    if (!(text = read_digits(text, &digits, &power)) || !(text = read_scale(text, &power)) ||
        *text)
        return false;
    return scale(digits, power, n);
}

/* Units of time, the smallest first. */
static const struct unit {
    const char *name;
    uint64_t ms, least; /* a period of fewer units than 'least' is written in a smaller one */
} units[] = { { "ms", 1, 1 },      { "s", 1000, 1 },     { "m", 60000, 1 },
              { "h", 3600000, 1 }, { "d", 86400000, 2 }, { "w", 604800000, UINT64_MAX } };

#define NUNITS (sizeof units / sizeof *units)

bool read_duration(const char *text, uint64_t *ms)
{
    uint64_t digits = 0;
    long power = 0;
    if (!(text = read_digits(text, &digits, &power)))
        return false;
    for (size_t i = 0; i < NUNITS; i++)
        if (strcmp(text, units[i].name) == 0)
            return digits <= UINT64_MAX / units[i].ms && scale(digits * units[i].ms, power, ms);
    return false;
}

bool read_share(const char *text, double *x)
{
    /* strtod() alone would take "nan", "inf" and hexadecimal too. */
    size_t nbytes = strspn(text, "0123456789.eE+-");
    char *end;
    double value = strtod(text, &end);
    if (nbytes == 0 || end != text + nbytes)
        return false;
    if (*end == '%') {
        value /= 100;
        end++;
    }
    if (*end)
        return false;
    *x = value;
    return true;
}

/* ---- Numbers that are written ------------------------------------------------------ */

struct text text_of(const char *format, ...)
{
    struct text out;
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(out.s, sizeof out.s, format, arguments) < 0)
        *out.s = '\0';
    va_end(arguments);
    return out;
}

struct text grouped(uint64_t n)
{
    if (n < 1000)
        return text_of("%u", (unsigned)n);
    return text_of("%s,%03u", grouped(n / 1000).s, (unsigned)(n % 1000));
}

struct text counted(uint64_t n, const char *noun)
{
    return text_of("%s %s%s", grouped(n).s, noun, n == 1 ? "" : "s");
}

/* Prints three digits.  From 999.5 on that would be 1000, so the next prefix is taken. */
struct text scaled(double x, const char *unit)
{
    static const char prefixes[] = "kMGTPE";
    char prefix[2] = "";
    for (size_t i = 0; x >= 999.5 && prefixes[i]; i++) {
        x /= 1000;
        prefix[0] = prefixes[i];
    }
    bool whole = *prefix == '\0' && x == floor(x);
    int decimals = whole || x >= 99.95 ? 0 : x >= 9.995 ? 1 : 2;
    const char *space = *prefix || *unit != ' ' ? " " : "";
    return text_of("%.*f%s%s%s", decimals, x, space, prefix, unit);
}

struct text duration(double seconds)
{
    unsigned long long whole = (unsigned long long)seconds;
    if (seconds < 60)
        return text_of("%.*f s", seconds == floor(seconds) ? 0 : 2, seconds);
    if (seconds < 3600)
        return text_of("%llu min %02llu s", whole / 60, whole % 60);
    return text_of("%llu h %02llu min", whole / 3600, whole / 60 % 60);
}

/* Takes the largest unit of which the period is a multiple.  People say 24h, not 1d, and 7d,
 * not 1w: see 'least'. */
struct text period(uint64_t ms)
{
    const struct unit *unit = &units[NUNITS - 1];
    while (unit->ms > 1 && (ms % unit->ms || ms / unit->ms < unit->least))
        unit--;
    return text_of("%ju%s", (uintmax_t)(ms / unit->ms), unit->name);
}

struct text moment(uint64_t ms)
{
    char text[32];
    struct tm utc;
    time_t seconds = (time_t)(ms / 1000);
    if (ms / 1000 > SECONDS_MOST || !gmtime_r(&seconds, &utc) ||
        !strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc))
        return text_of("%ju ms after 1970", (uintmax_t)ms);
    return text_of("%s", text);
}

struct text speed(uint64_t n, double seconds, const char *unit)
{
    return n >= 1000 ? text_of(", %s", scaled((double)n / seconds, unit).s)
                     : (struct text){ "" };
}

struct text expectation(double x)
{
    if (x >= 100)
        return text_of("about %s", grouped((uint64_t)llround(x)).s);
    return x < 0.01 ? text_of("fewer than 0.01") : text_of("about %.2g", x);
}

/* Small shares have no percent sign, since 0.00021 % is hard to read. */
struct text share(double x)
{
    return x >= 0.0001 ? text_of("%.2g %%", x * 100) : text_of("%.2g", x);
}

/* ---- Points in time ---------------------------------------------------------------- */

/* A place in the text, which the functions below move on past what they read.  They return
 * false if they do not find what they expect. */
struct cursor {
    const char *at, *end;
};

static bool is_digit(const struct cursor *c)
{
    return c->at < c->end && *c->at >= '0' && *c->at <= '9';
}

/* Reads this character, if it is the next one. */
static bool take_character(struct cursor *c, char wanted)
{
    bool found = c->at < c->end && *c->at == wanted;
    c->at += found;
    return found;
}

/* Reads exactly 'count' digits. */
static bool take_digits(struct cursor *c, unsigned count, int64_t *n)
{
    *n = 0;
    for (; count && is_digit(c); count--)
        *n = *n * 10 + (*c->at++ - '0');
    return count == 0;
}

/* Reads ".123", if it is there, and adds it to *ms.  Passes over digits behind the third. */
static bool take_fraction(struct cursor *c, int64_t *ms)
{
    if (!take_character(c, '.'))
        return true;
    bool some = is_digit(c);
    for (int64_t weight = 100; is_digit(c); weight /= 10)
        *ms += weight * (*c->at++ - '0');
    return some;
}

/* Returns the days from 1970-01-01 to a date of the Gregorian calendar.  A year begins here in
 * March, so that the odd day of a leap year comes last; the months from March on have 153 days
 * in every five. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t since_march = (month + 9) % 12;
    return year * 365 + year / 4 - year / 100 + year / 400 + (since_march * 153 + 2) / 5 + day -
           1 - 719468;
}

/* Returns how many days the month has. */
static int64_t month_ndays(int64_t year, int64_t month)
{
    int64_t next = month == 12 ? days_of(year + 1, 1, 1) : days_of(year, month + 1, 1);
    return next - days_of(year, month, 1);
}

/* Reads "2026-11-21", a date that exists, and sets *days to the days from 1970-01-01. */
static bool take_date(struct cursor *c, int64_t *days)
{
    int64_t year, month, day;
    if (!take_digits(c, 4, &year) || !take_character(c, '-') || !take_digits(c, 2, &month) ||
        !take_character(c, '-') || !take_digits(c, 2, &day))
        return false;
    if (year < 1970 || month < 1 || month > 12 || day < 1 || day > month_ndays(year, month))
        return false;
    *days = days_of(year, month, day);
    return true;
}

/* Reads "19:38:06.123".  A leap second is taken for the first second of the next minute. */
static bool take_time(struct cursor *c, int64_t *ms)
{
    int64_t hours, minutes, seconds;
    if (!take_digits(c, 2, &hours) || !take_character(c, ':') || !take_digits(c, 2, &minutes) ||
        !take_character(c, ':') || !take_digits(c, 2, &seconds))
        return false;
    *ms = ((hours * 60 + minutes) * 60 + seconds) * 1000;
    return hours < 24 && minutes < 60 && seconds <= 60 && take_fraction(c, ms);
}

/* Reads "Z", "+01:00", "-0130", "+01" or nothing.  Sets *ms to how far the zone is ahead of
 * UTC. */
static bool take_zone(struct cursor *c, int64_t *ms)
{
    int64_t hours, minutes = 0;
    *ms = 0;
    if (c->at == c->end || take_character(c, 'Z'))
        return true;
    bool ahead = take_character(c, '+');
    if ((!ahead && !take_character(c, '-')) || !take_digits(c, 2, &hours))
        return false;
    bool more = take_character(c, ':') || c->at < c->end;
    if (hours > 23 || (more && !take_digits(c, 2, &minutes)) || minutes > 59)
        return false;
    *ms = (hours * 60 + minutes) * (ahead ? 60000 : -60000);
    return true;
}

/* Reads a date, a time and a zone.  Sets *ms to the milliseconds since 1970. */
static bool take_iso(struct cursor *c, int64_t *ms)
{
    int64_t days, time = 0, zone;
    if (!take_date(c, &days) || (!take_character(c, 'T') && !take_character(c, ' ')) ||
        !take_time(c, &time) || !take_zone(c, &zone))
        return false;
    *ms = days * 86400000 + time - zone;
    return true;
}

/* Reads seconds since 1970, up to the year 9999: a larger number is one of milliseconds, or no
 * time at all. */
static bool take_seconds(struct cursor *c, int64_t *ms)
{
    int64_t seconds = 0;
    bool some = is_digit(c);
    while (is_digit(c) && seconds <= SECONDS_MOST)
        seconds = seconds * 10 + (*c->at++ - '0');
    *ms = seconds * 1000;
    return some && seconds <= SECONDS_MOST && take_fraction(c, ms);
}

/* A date has a '-' behind its year. */
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
    if (now.tv_sec < 0)
        return 0;
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
