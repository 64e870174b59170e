/* decimal_test.c - proves that the keys of a bitmap, which are decimal text, are read as
 * strtoull() and snprintf() read and write them, and that no byte beside them is read. */
#include "support.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"

/* Returns whether the text is a key, and sets *n, as strtoull() and snprintf() see it. */
static bool read_slowly(const char *text, size_t nbytes, uint64_t *n)
{
    char copy[64], again[64];
    if (nbytes >= sizeof copy || memchr(text, 0, nbytes))
        return false;
    memcpy(copy, text, nbytes);
    copy[nbytes] = '\0';
    const char *digits = copy + (*copy == '+');
    *n = strtoull(digits, NULL, 10); /* of anything else another text comes back */
    snprintf(again, sizeof again, "%" PRIu64, *n);
    return !strcmp(again, digits);
}

static void check_text(const char *text, size_t nbytes)
{
    uint64_t n = 0, wanted = 0;
    char *copy = malloc(nbytes + 1); /* of its own, so that a sanitizer sees what is read */
    memcpy(copy, text, nbytes);
    char *exact = realloc(copy, nbytes ? nbytes : 1);
    scene("'%.*s'", (int)nbytes, text);
    bool is_key = decimal_read(exact, nbytes, &n);
    expect(is_key == read_slowly(text, nbytes, &wanted));
    expect(!is_key || n == wanted);
    free(exact);
}

TEST(test_text)
{
    static const char *const texts[] = {
        "",
        "0",
        "00",
        "007",
        "7",
        "+7",
        "++7",
        "+",
        "-1",
        "-",
        " 1",
        "1 ",
        "1\n",
        "0x10",
        "1.0",
        "1e3",
        "12345678",
        "123456789",
        "13000000000",
        "+13000000000",
        "013000000000",
        "1300000000a",
        "1234567/",
        "1234567:",
        "/2345678",
        ":2345678",
        "1234567890123456",
        "12345678901234567",
        "18446744073709551615",
        "18446744073709551616",
        "18446744073709551625",
        "+18446744073709551615",
        "99999999999999999999",
        "018446744073709551615",
        "184467440737095516150",
        "999999999999999999999",
        "\xb1\xb2\xb3\xb4\xb5\xb6\xb7\xb8",
    };
    struct rng rng = rng_for("text");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_text(texts[i], strlen(texts[i]));
    check_text("1\0002", 3);
    for (unsigned i = 0; i < many(200000); i++) {
        char text[32];
        uint64_t n = rng_next(&rng) >> rng_below(&rng, 64);
        int nbytes = snprintf(text, sizeof text, "%s%" PRIu64, i % 4 ? "" : "+", n);
        check_text(text, (size_t)nbytes);
        text[rng_below(&rng, (uint64_t)nbytes)] = (char)rng_next(&rng);
        check_text(text, (size_t)nbytes);
    }
}

/* Every byte at every place of a text of every length. */
TEST(test_every_byte)
{
    for (size_t nbytes = 1; nbytes <= 21; nbytes++)
        for (size_t at = 0; at < nbytes; at++)
            for (unsigned byte = 0; byte < 256; byte++) {
                char text[24];
                memset(text, '1', sizeof text);
                text[at] = (char)byte;
                check_text(text, nbytes);
            }
}
