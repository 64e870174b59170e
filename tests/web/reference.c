/* reference.c - what the library says of files, for the tests of the package for JavaScript.
 *
 *     reference 0 FILE...    a record for each file as it is, and for each of up to 256 KiB
 *                            once more with its checksums corrected
 *     reference N FILE...    records for N copies of each file of which some bytes were
 *                            changed, with the right checksums
 *
 * A record: the size of the file, 4 bytes; the error of perhaps_from_bytes(), 4 bytes; how many
 * bytes perhaps_to_bytes() writes of it, 4 bytes; the file; and these bytes. */
#include <stdio.h>
#include <stdlib.h>

#include "hostile.h"
#include "perhaps_file.h"

enum { SEALED_MOST = 1 << 18 };

static uint8_t *read_all(const char *path, size_t *nbytes)
{
    FILE *file = fopen(path, "rb");
    must(file && !fseek(file, 0, SEEK_END));
    *nbytes = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*nbytes + 1);
    must(bytes && fread(bytes, 1, *nbytes, file) == *nbytes);
    fclose(file);
    return bytes;
}

static void put(const void *bytes, size_t nbytes)
{
    must(fwrite(bytes, 1, nbytes, stdout) == nbytes);
}

static void put_record(const uint8_t *file, size_t nbytes)
{
    perhaps_filter *filter;
    const int32_t error = perhaps_from_bytes(file, nbytes, NULL, &filter);
    const size_t nwritten = error ? 0 : (size_t)perhaps_write_nbytes(filter);
    uint8_t *written = malloc(nwritten + 1);
    must(written && (error || !perhaps_to_bytes(filter, written, nwritten)));
    const uint32_t sizes[] = { (uint32_t)nbytes, (uint32_t)error, (uint32_t)nwritten };
    put(sizes, sizeof sizes);
    put(file, nbytes);
    put(written, nwritten);
    free(written);
    perhaps_free(filter);
}

static void put_sealed(uint8_t *file, size_t nbytes)
{
    if (nbytes > SEALED_MOST || (nbytes < BODY_OFFSET && !is_small_file(file, nbytes)))
        return;
    reseal(file, nbytes);
    put_record(file, nbytes);
}

/* The same numbers in every run. */
static uint64_t next_random(void)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 33;
}

/* Changes up to three bytes, mostly of the header. */
static void put_changed(const uint8_t *file, size_t nbytes)
{
    const size_t header =
        header_size(file, nbytes) < nbytes ? header_size(file, nbytes) : nbytes;
    uint8_t *copy = malloc(nbytes + 1);
    must(copy && nbytes > 0);
    memcpy(copy, file, nbytes);
    for (uint64_t n = 1 + next_random() % 3; n > 0; n--)
        copy[next_random() % (next_random() % 4 ? header : nbytes)] = (uint8_t)next_random();
    put_sealed(copy, nbytes);
    free(copy);
}

int main(int argc, char **argv)
{
    must(argc > 1);
    const long changes = atol(argv[1]);
    for (int i = 2; i < argc; i++) {
        size_t nbytes;
        uint8_t *file = read_all(argv[i], &nbytes);
        for (long n = 0; n < changes; n++)
            put_changed(file, nbytes);
        if (!changes) {
            put_record(file, nbytes);
            put_sealed(file, nbytes);
        }
        free(file);
    }
    return 0;
}
