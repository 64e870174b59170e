/* files.c - what tests need of files: see support.h. */
#include "support.h"

#include "hostile.h"
#include "store/store.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct path path_below(struct path folder, const char *name)
{
    struct path path;
    int n = snprintf(path.text, sizeof path.text, "%s/%s", folder.text, name);
    expect(n > 0 && (size_t)n < sizeof path.text);
    return path;
}

struct path journal_of(struct path file)
{
    struct path journal;
    int n = snprintf(journal.text, sizeof journal.text, "%s.journal", file.text);
    expect(n > 0 && (size_t)n < sizeof journal.text);
    return journal;
}

struct bytes read_file(const char *path)
{
    struct file_info info;
    int fd = open_at_once(path, false);
    expect(fd >= 0 && !look_at_fd(fd, &info));
    struct bytes bytes = { .nbytes = (size_t)info.nbytes };
    bytes.at = malloc(bytes.nbytes + 1); /* never 0 bytes, which may give NULL */
    expect(bytes.at && !read_at(fd, bytes.at, bytes.nbytes, 0));
    close_file(fd);
    return bytes;
}

void free_bytes(struct bytes *bytes)
{
    free(bytes->at);
}

void write_file(const char *path, const void *bytes, size_t nbytes)
{
    FILE *file = fopen(path, "wb");
    expect(file);
    expect(fwrite(bytes, 1, nbytes, file) == nbytes);
    expect(!fclose(file));
}

bool replaces_open_files(void)
{
    struct path one = temp_path("renamed"), two = temp_path("open");
    write_file(one.text, "1", 1);
    write_file(two.text, "2", 1);
    int fd = open_at_once(two.text, true);
    expect(fd >= 0);
    const bool does = !rename_file(one.text, two.text);
    close_file(fd);
    remove_file(one.text);
    remove_file(two.text);
#ifdef SYSTEM_WINDOWS
    static bool told;
    if (!does && !told)
        print_message("not tried: live files, since no file that is open is replaced\n");
    told = true;
#else
    expect(does);
#endif
    return does;
}

/* The file is removed at once, since tests call this very often. */
struct bytes saved_bytes(const perhaps_filter *f)
{
    struct path path = temp_path("saved_bytes");
    expect_success(perhaps_save(f, path.text));
    struct bytes bytes = read_file(path.text);
    remove(path.text);
    return bytes;
}

static int gather(void *context, const void *bytes, size_t nbytes)
{
    struct bytes *all = context;
    memcpy(all->at + all->nbytes, bytes, nbytes);
    all->nbytes += nbytes;
    return 0;
}

/* Live files are never small: so this is the file of one that has a journal, without what it
 * says of that. */
struct bytes large_bytes(const perhaps_filter *f)
{
    const struct journal_point point = { .branch = 1 };
    const struct content content = { .f = f, .point = &point };
    struct header h;
    content_plan(&content, &h);
    struct bytes bytes = { .at = malloc(h.file_nbytes) };
    expect(bytes.at);
    expect_success(content_write(&content, &(struct perhaps_sink){ gather, &bytes }));
    put64(bytes.at + AT_FEATURES, get64(bytes.at + AT_FEATURES) & ~UINT64_C(2));
    put64(bytes.at + AT_RESERVED, 0); /* the branch */
    reseal_header(bytes.at, bytes.nbytes);
    return bytes;
}

struct bytes copy_bytes(const struct bytes *bytes)
{
    struct bytes copy = { .at = malloc(bytes->nbytes), .nbytes = bytes->nbytes };
    expect(copy.at);
    memcpy(copy.at, bytes->at, bytes->nbytes);
    return copy;
}

void expect_same_bytes(const struct bytes *a, const struct bytes *b)
{
    expect(a->nbytes == b->nbytes && !memcmp(a->at, b->at, a->nbytes));
}

void expect_saves_as(const perhaps_filter *f, const struct bytes *wanted)
{
    scoped_bytes saved = saved_bytes(f);
    expect_same_bytes(&saved, wanted);
}

bool is_refusal(int error)
{
    return error == PERHAPS_ERR_FORMAT || error == PERHAPS_ERR_VERSION ||
           error == PERHAPS_ERR_DAMAGED;
}

void use_decimal_comma(void)
{
#ifndef __GLIBC__
    print_message("not tried: a decimal comma, which only glibc's locales have\n");
    skip(); /* musl and Windows write a point in those that POSIX has */
#endif
    if (!setlocale(LC_ALL, "de_DE.UTF-8"))
        skip();
    expect(localeconv()->decimal_point[0] == ',');
}
