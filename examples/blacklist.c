/* blacklist.c - a list of addresses and senders that a mail server refuses.
 * Shows: keys of several sorts in one filter (their first byte tells them apart); a kind that
 * can remove; a hash with a secret, since the senders of spam choose the keys; a filter that
 * one process saves and others map.  The fpr is so low that removals can be trusted.
 * Run: build/examples/blacklist   (returns 0 if all answers are as they must be) */
#include <arpa/inet.h>
#include <ctype.h>
#include <perhaps.h>
#include <perhaps_embed.h>
#include <perhaps_file.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int failures;

static void expect(bool holds, const char *what)
{
    printf("%-6s %s\n", holds ? "ok" : "WRONG", what);
    failures += !holds;
}

/* Returns the key of an address or sender, whose bytes it writes to 'room': '4' and 4 bytes,
 * '6' and 16 bytes, or '@' and the sender in lower case. */
static struct perhaps_key key_of(const char *text, uint8_t room[256])
{
    if (inet_pton(AF_INET, text, room + 1) == 1)
        return room[0] = '4', (struct perhaps_key){ room, 5 };
    if (inet_pton(AF_INET6, text, room + 1) == 1)
        return room[0] = '6', (struct perhaps_key){ room, 17 };
    size_t nbytes = 1;
    for (room[0] = '@'; *text && nbytes < 256; text++)
        room[nbytes++] = (uint8_t)tolower((unsigned char)*text);
    return (struct perhaps_key){ room, nbytes };
}

static int add(perhaps_filter *list, const char *text)
{
    uint8_t room[256];
    struct perhaps_key key = key_of(text, room);
    return perhaps_add(list, key.bytes, key.nbytes);
}

static bool is_listed(const perhaps_filter *list, const char *text)
{
    uint8_t room[256];
    struct perhaps_key key = key_of(text, room);
    return perhaps_contains(list, key.bytes, key.nbytes);
}

int main(void)
{
    struct perhaps_options options = { .capacity = 100000, .fpr = 1e-8 };
    options.needs = PERHAPS_CAN_REMOVE;
    options.hashing.hash = PERHAPS_HASH_SIP;
    perhaps_filter *list, *mapped;
    uint8_t secret[16], room[256];
    char path[] = "/tmp/blacklist-XXXXXX";
    int file = mkstemp(path);
    if (file < 0 || perhaps_create(&options, &list) || perhaps_secret(list, secret))
        return puts("no temporary file, or no memory"), 1;
    close(file);
    expect(!add(list, "192.0.2.7") && !add(list, "2001:db8::bad") &&
               !add(list, "Offers@Example.com") && !add(list, "192.0.2.8"),
           "two IPv4 addresses, one IPv6 address and a sender are added");
    struct perhaps_key key = key_of("192.0.2.8", room);
    expect(!perhaps_remove(list, key.bytes, key.nbytes), "192.0.2.8 was there by mistake");
    expect(!perhaps_save(list, path), "saved without its secret");
    perhaps_free(list);

    expect(perhaps_open(path, NULL, &mapped) == PERHAPS_ERR_SECRET, "not opened without it");
    struct perhaps_open_options with = { .hashing = { .secret = secret } };
    if (perhaps_open(path, &with, &mapped))
        return puts("cannot be opened"), 1;
    expect(is_listed(mapped, "192.0.2.7"), "192.0.2.7 is refused");
    expect(is_listed(mapped, "2001:0DB8:0:0::BAD"), "so is 2001:db8::bad in another spelling");
    expect(is_listed(mapped, "offers@example.com"), "and the sender");
    expect(!is_listed(mapped, "192.0.2.8"), "192.0.2.8 is not");
    expect(add(mapped, "192.0.2.9") == PERHAPS_ERR_READ_ONLY, "a mapped filter is not changed");
    perhaps_free(mapped);
    return failures > 0 || unlink(path);
}
