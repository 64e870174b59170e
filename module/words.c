/* words.c - reads the words of a command. */
#include "words.h"

#include <math.h>
#include <string.h>
#include <strings.h>

bool word_is(const RedisModuleString *word, const char *text)
{
    size_t nbytes;
    const char *bytes = server.StringPtrLen(word, &nbytes);
    return nbytes == strlen(text) && !strncasecmp(bytes, text, nbytes);
}

bool word_number(const RedisModuleString *word, long long least, long long most,
                 long long *value)
{
    return server.StringToLongLong(word, value) == SERVER_OK && *value >= least &&
           *value <= most;
}

bool word_real(const RedisModuleString *word, double *value)
{
    return server.StringToDouble(word, value) == SERVER_OK && !isnan(*value);
}

bool word_duration(const RedisModuleString *word, uint64_t *ms)
{
    static const struct {
        const char *name;
        uint64_t ms;
    } units[] = { { "", 1000 },   { "ms", 1 },      { "s", 1000 },
                  { "m", 60000 }, { "h", 3600000 }, { "d", 86400000 } };
    size_t nbytes, digits = 0;
    const char *bytes = server.StringPtrLen(word, &nbytes);
    uint64_t value = 0;
    for (; digits < nbytes && bytes[digits] >= '0' && bytes[digits] <= '9'; digits++)
        if ((value = 10 * value + (uint64_t)(bytes[digits] - '0')) > UINT32_MAX)
            return false;
    for (size_t i = 0; i < sizeof units / sizeof *units && digits > 0; i++)
        if (strlen(units[i].name) == nbytes - digits &&
            !strncasecmp(bytes + digits, units[i].name, nbytes - digits)) {
            *ms = value * units[i].ms;
            return *ms > 0;
        }
    return false;
}
