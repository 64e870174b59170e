#include "hashing.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "report.h"

static int choose_hash(const struct settings *settings, enum perhaps_hash *hash)
{
    static const char *const names[] = {
        [PERHAPS_HASH_XXH3] = "xxh3", [PERHAPS_HASH_SIP] = "sip", [PERHAPS_HASH_NONE] = "none"
    };
    const char *name = settings->hash
                           ? settings->hash
                           : names[settings->key_file ? PERHAPS_HASH_SIP : PERHAPS_HASH_XXH3];
    size_t i = 0, n = sizeof names / sizeof *names;
    while (i < n && strcmp(names[i], name) != 0)
        i++;
    if (i == n)
        return complain("--hash %s: no such hash: there are xxh3, sip, none", name);
    *hash = (enum perhaps_hash)i;
    if (*hash == PERHAPS_HASH_SIP && !settings->key_file)
        return complain("--hash sip: needs a secret, to ask the filter later: give "
                        "--key-file K, which is made if it does not exist");
    if (*hash != PERHAPS_HASH_SIP && settings->key_file)
        return complain("--hash %s: takes no secret: leave out --key-file", name);
    if (*hash != PERHAPS_HASH_XXH3 && settings->seed)
        return complain("--hash %s: takes no seed: leave out --seed", name);
    return 0;
}

int hashing_choose(struct hashing *hashing, const struct settings *settings)
{
    *hashing = (struct hashing){ .chosen.seed = settings->seed };
    int status = choose_hash(settings, &hashing->chosen.hash);
    if (status || !settings->key_file)
        return status;
    status = secret_read(settings->key_file, hashing->secret, &hashing->made);
    hashing->chosen.secret = hashing->secret;
    if (hashing->made && getentropy(hashing->secret, sizeof hashing->secret) != 0)
        return complain("no random bytes: %s", strerror(errno));
    return status;
}

int hashing_read(struct hashing *hashing, const struct settings *settings)
{
    *hashing = (struct hashing){ 0 };
    if (!settings->key_file)
        return 0;
    hashing->chosen.secret = hashing->secret;
    return secret_read(settings->key_file, hashing->secret, NULL);
}

int hashing_keep(const struct hashing *hashing, const struct settings *settings)
{
    return hashing->made ? secret_write(settings->key_file, hashing->secret) : 0;
}

void hashing_tell(const struct hashing *hashing, const struct settings *settings)
{
    if (hashing->made && !settings->quiet && !settings->json)
        complain("%s: made with a new secret: keep it, the filter cannot be asked without",
                 settings->key_file);
}

void hashing_drop(const struct hashing *hashing, const struct settings *settings)
{
    if (hashing->made)
        unlink(settings->key_file);
}

int hashing_complain(const struct settings *settings, const char *name)
{
    if (settings->key_file)
        return complain("%s: %s is not the key file that it was built with", name,
                        settings->key_file);
    return complain("%s: was built with a secret: give it with --key-file", name);
}
