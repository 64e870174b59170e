/* remote_fuzz.c - fuzzes what a server may send of a file that is far away: it is refused, or
 * asked safely.
 *
 * The first byte tells how to ask, and what the server does wrong: it may send other bytes in
 * each round, or say that the file is longer than it is, and send zeros for what is missing.
 * The others are the file: as they are, and with their checksums corrected. */
#include <stdlib.h>
#include <string.h>

#include "support/hostile.h"
#include <perhaps_remote.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

enum { KEYS = 300, PIECE_MOST = 4096, RANGES_NBYTES_MOST = 1 << 24 };
enum { WITH_CHECK = 1, CHANGES = 2, LONGER = 4, GROUPED = 8 };

struct server {
    const uint8_t *file;
    size_t nbytes;
    uint64_t claimed;
    uint8_t how, round;
};

/* Sends a range, and zeros for what is not there. */
static int send_range(const struct server *s, perhaps_remote *r, size_t number,
                      struct perhaps_range range)
{
    uint8_t piece[PIECE_MOST];
    int error = 0;
    for (uint64_t done = 0, n; done < range.nbytes && !error; done += n) {
        const uint64_t at = range.at + done, left = range.nbytes - done;
        n = left < sizeof piece ? left : sizeof piece;
        for (size_t i = 0; i < n; i++) {
            const uint8_t byte = at + i < s->nbytes ? s->file[at + i] : 0;
            piece[i] = s->how & CHANGES ? (uint8_t)(byte + s->round) : byte;
        }
        error = perhaps_remote_take(r, number, piece, (size_t)n);
    }
    return error;
}

static int bring(struct server *s, perhaps_remote *r)
{
    size_t count;
    int error = perhaps_remote_size(r, s->claimed);
    while (!error) {
        const struct perhaps_range *needs = perhaps_remote_needs(r, &count);
        uint64_t nbytes = 0;
        if (!count)
            return 0;
        for (size_t i = 0; i < count; i++)
            nbytes += needs[i].nbytes;
        if (nbytes > RANGES_NBYTES_MOST)
            return PERHAPS_ERR_MEMORY;
        for (size_t i = 0; i < count && !error; i++) {
            must(needs[i].at + needs[i].nbytes <= s->claimed);
            error = send_range(s, r, i, needs[i]);
        }
        must(!error);
        s->round++;
        error = perhaps_remote_next(r);
    }
    return error;
}

static void ask(struct server *s, perhaps_remote *r)
{
    uint8_t text[KEYS * 16];
    bool present[KEYS];
    size_t asked;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)(i * 37 + i / 256);
    const size_t key_nbytes = s->how & GROUPED ? 16 : 8;
    const struct perhaps_keys keys = perhaps_keys_packed(text, key_nbytes, KEYS);
    for (size_t at = 0; at < KEYS; at += asked) {
        if (perhaps_remote_ask(r, &keys, at, KEYS - at, &asked) || bring(s, r))
            return;
        must(asked && !perhaps_remote_answers(r, present));
    }
}

static void use(const uint8_t *file, size_t nbytes, uint8_t how)
{
    const struct perhaps_remote_options options = { .check = how & WITH_CHECK };
    struct server s = { .file = file, .nbytes = nbytes, .claimed = nbytes, .how = how };
    struct perhaps_stats stats;
    perhaps_remote *r;
    if (how & LONGER)
        s.claimed = nbytes < 40 ? nbytes : get_number(file + 24, 8);
    if (perhaps_remote_new(&options, &r))
        return;
    if (!bring(&s, r) && !perhaps_remote_stats_of(r, &stats))
        ask(&s, r);
    perhaps_remote_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    if (nbytes < 2)
        return 0;
    uint8_t *file = malloc(nbytes - 1);
    if (!file)
        return 0;
    memcpy(file, data + 1, nbytes - 1);
    use(file, nbytes - 1, *data);
    if (nbytes - 1 >= BODY_OFFSET || is_small_file(file, nbytes - 1)) {
        reseal(file, nbytes - 1);
        use(file, nbytes - 1, *data);
    }
    free(file);
    return 0;
}
