/* secret.c - the hash of a filter, and the file with its secret. */
#include "secret.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <perhaps_plan.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/messages.h"
#include "../input/note.h"

/* ---- The file of a secret ---------------------------------------------------------- */

#define HEX_NBYTES ((size_t)2 * SECRET_NBYTES)

/* Reads up to 'room' bytes.  Returns how many, or -1 (errno). */
static ssize_t read_file(const char *path, char *buffer, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t got = read(fd, buffer, room);
    int saved = errno;
    close(fd);
    errno = saved;
    return got;
}

/* Reads 32 hexadecimal digits.  Returns false if the text begins with fewer or more. */
static bool read_hex(const char *text, uint8_t secret[SECRET_NBYTES])
{
    if (strspn(text, "0123456789abcdefABCDEF") != HEX_NBYTES)
        return false;
    for (size_t i = 0; i < SECRET_NBYTES; i++) {
        unsigned byte;
        sscanf(text + 2 * i, "%2x", &byte);
        secret[i] = (uint8_t)byte;
    }
    return true;
}

/* Ends the program if a new key file could not be made at 'path'.  It is better to know that
 * before the filter is built than after. */
static void check_key_folder(const char *path)
{
    struct stat st;
    if (lstat(path, &st) == 0)
        fail("%s: is a link to nothing: name the file itself", path);
    char *copy = strdup(path);
    bool writable = copy && access(dirname(copy), W_OK | X_OK) == 0;
    free(copy);
    if (!writable)
        fail("%s: cannot be made: %s", path, strerror(errno));
}

/* Reads a file with 16 bytes, or with 32 hexadecimal digits that a newline may follow.  Returns
 * false if there is no such file; any other problem ends the program. */
static bool read_secret(const char *path, uint8_t secret[SECRET_NBYTES])
{
    char text[HEX_NBYTES + 4];
    ssize_t got = read_file(path, text, sizeof text - 1);
    if (got < 0 && errno == ENOENT)
        return false;
    if (got < 0)
        fail("%s: %s", path, strerror(errno));
    text[got] = '\0';
    if (got == SECRET_NBYTES) {
        memcpy(secret, text, SECRET_NBYTES);
        return true;
    }
    if (got > 0 && text[got - 1] == '\n')
        text[--got] = '\0';
    if (got != (ssize_t)HEX_NBYTES || !read_hex(text, secret))
        fail("%s: not a key file: it must hold 16 bytes or 32 hex digits", path);
    return true;
}

/* Makes sure that the name of a new file is still there after a crash of the system.  EINVAL:
 * this file system cannot sync folders. */
static bool sync_folder(const char *path)
{
    char *copy = strdup(path);
    int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    bool ok = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL);
    if (fd >= 0)
        close(fd);
    free(copy);
    return ok;
}

/* Makes a file that only its owner can read, and syncs it.  Returns false (errno) if it fails,
 * and then leaves no new file; an existing file is an error and stays as it is. */
static bool write_file(const char *path, const char *text, size_t nbytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool ok = write(fd, text, nbytes) == (ssize_t)nbytes && fsync(fd) == 0;
    ok = close(fd) == 0 && ok && sync_folder(path);
    if (!ok)
        unlink(path);
    return ok;
}

/* ---- The hash ---------------------------------------------------------------------- */

/* Returns the hash that the options ask for; sip if only --key-file is given.  Ends the program
 * if they contradict each other. */
static enum perhaps_hash choose_hash(const struct settings *settings)
{
    const enum perhaps_hash usual = settings->key_file ? PERHAPS_HASH_SIP : PERHAPS_HASH_XXH3;
    const char *name = settings->hash ? settings->hash : perhaps_hash_name(usual);
    enum perhaps_hash hash = PERHAPS_HASH_XXH3;
    while (hash < PERHAPS_HASH_COUNT && strcmp(perhaps_hash_name(hash), name) != 0)
        hash++;
    if (hash == PERHAPS_HASH_COUNT || hash == PERHAPS_HASH_CUSTOM ||
        hash == PERHAPS_HASH_GROUPED)
        fail("--hash %s: no such hash: there are xxh3, xxh3-64, sip, none and none-64", name);
    if (hash == PERHAPS_HASH_SIP && !settings->key_file)
        fail("--hash sip: needs a secret, to ask the filter later: give --key-file K, which is "
             "made if it does not exist");
    if (hash != PERHAPS_HASH_SIP && settings->key_file)
        fail("--hash %s: takes no secret: leave out --key-file", name);
    if (hash != PERHAPS_HASH_XXH3 && hash != PERHAPS_HASH_XXH3_64 && settings->seed)
        fail("--hash %s: takes no seed: leave out --seed", name);
    return hash;
}

/* Verbs that only look at a filter, join two or copy a file hash no key. */
bool needs_secret(const struct settings *settings)
{
    const unsigned bit = settings->verb->bit;
    return !(bit & (INFO | VERIFY | MERGE | COMPARE | RECOUNT | SHRINK)) &&
           (bit != COPY || settings->served);
}

void hashing_choose(struct hashing *hashing, const struct settings *settings)
{
    *hashing = (struct hashing){ .settings = settings,
                                 .chosen.hash = choose_hash(settings),
                                 .chosen.seed = settings->seed };
    if (!note_write(&settings->form, hashing->note))
        fail("--field: too many to be noted with the filter: write ranges, such as 3-9");
    hashing->chosen.note = hashing->note;
    if (!settings->key_file)
        return;
    hashing->chosen.secret = hashing->secret;
    hashing->made = !read_secret(settings->key_file, hashing->secret);
    if (!hashing->made)
        return;
    check_key_folder(settings->key_file);
    if (getentropy(hashing->secret, sizeof hashing->secret) != 0)
        fail("no random bytes: %s", strerror(errno));
}

void hashing_read(struct hashing *hashing, const struct settings *settings)
{
    *hashing = (struct hashing){ .settings = settings };
    if (!settings->key_file)
        return;
    hashing->chosen.secret = hashing->secret;
    if (!read_secret(settings->key_file, hashing->secret))
        fail("%s: %s", settings->key_file, strerror(errno));
}

void hashing_keep(const struct hashing *hashing)
{
    char text[HEX_NBYTES + 2];
    for (size_t i = 0; i < SECRET_NBYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", hashing->secret[i]);
    text[HEX_NBYTES] = '\n';
    if (hashing->made && !write_file(hashing->settings->key_file, text, HEX_NBYTES + 1))
        fail("%s: %s", hashing->settings->key_file, strerror(errno));
}

void hashing_tell(const struct hashing *hashing)
{
    const struct settings *settings = hashing->settings;
    if (hashing->made && !settings->quiet && !settings->json)
        complain("%s: made with a new secret: keep this file: without it nobody can ask the "
                 "filter",
                 settings->key_file);
}

void hashing_drop(const struct hashing *hashing)
{
    if (hashing->made)
        unlink(hashing->settings->key_file);
}

void hashing_check(const struct settings *settings, const char *name, const char *hash)
{
    if (settings->key_file && strcmp(hash, "sip") != 0)
        fail("--key-file: %s was made without a secret: leave it out", name);
}

void hashing_fail(const struct settings *settings, const char *name)
{
    if (settings->key_file)
        fail("%s: %s is not the key file that it was built with", name, settings->key_file);
    fail("%s: was built with a secret: give it with --key-file", name);
}
