/* system_test.c - proves that a system gives what the library asks of it (src/system/system.h):
 * whatever that system is, the tests are the same. */
#include "support.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "perhaps_live.h"
#include "system/system.h"

static int made(const char *path, const char *text)
{
    int fd = create_file(path);
    expect(fd >= 0);
    expect_success(write_on(fd, text, strlen(text)));
    return fd;
}

static void expect_text(const char *path, const char *text)
{
    scoped_bytes bytes = read_file(path);
    expect(bytes.nbytes == strlen(text) && !memcmp(bytes.at, text, bytes.nbytes));
}

TEST(test_bytes)
{
    struct path path = temp_path("bytes");
    char back[20] = { 0 };
    uint64_t done;
    int fd = made(path.text, "0123456789");
    expect_success(write_at(fd, "abc", 3, 8));
    expect_success(read_at(fd, back, 11, 0));
    expect(!memcmp(back, "01234567abc", 11));
    expect_success(read_some(fd, back, sizeof back, 6, &done));
    expect(done == 5 && !memcmp(back, "67abc", 5));
    expect_error(read_at(fd, back, 6, 6), PERHAPS_ERR_IO);
    expect(errno == EIO);
    expect_success(rewind_file(fd));
    expect_success(read_on(fd, back, sizeof back, &done));
    expect(done == 11);
    expect(!cut_file(fd, 4) && !sync_file(fd) && !sync_data(fd));
    close_file(fd);
    expect_text(path.text, "0123");
}

TEST(test_names)
{
    struct path one = temp_path("one \xc3\xa4"), two = temp_path("two \xe2\x82\xac");
    struct file_info first, second;
    char real[PATH_NBYTES_MOST];
    expect(is_free(one.text));
    expect_error(look_at_path(one.text, &first), PERHAPS_ERR_IO);
    expect(errno == ENOENT);
    close_file(made(one.text, "1"));
    expect(create_file(one.text) < 0 && errno == EEXIST);
    int fd = made(two.text, "22");
    expect(!is_free(one.text) && may_write(one.text));
    expect_success(look_at_path(one.text, &first));
    expect_success(look_at_fd(fd, &second));
    expect(first.type == FILE_REGULAR && first.nbytes == 1 && second.nbytes == 2);
    expect(!is_same_file(&first, &second));
    expect_success(look_at_path(two.text, &first));
    expect(is_same_file(&first, &second));
    expect_error(rename_new(one.text, two.text), PERHAPS_ERR_IO);
    expect(errno == EEXIST);
    expect_text(two.text, "22");
    const bool stays_open = replaces_open_files();
    if (!stays_open)
        close_file(fd);
    expect_success(rename_file(one.text, two.text));
    expect_text(two.text, "1");
    expect(is_free(one.text));
    if (stays_open)
        close_file(fd);
    expect_success(rename_new(two.text, one.text));
    expect_success(real_path(one.text, real));
    expect(!strcmp(name_in(real), name_in(one.text)));
    expect_error(real_path(two.text, real), PERHAPS_ERR_IO);
    remove_file(one.text);
    expect(is_free(one.text));
    struct path folder = temp_path("");
    folder.text[strlen(folder.text) - 1] = '\0';
    expect_success(look_at_path(folder.text, &first));
    expect(first.type == FILE_FOLDER);
    expect_success(sync_folder(folder.text));
}

TEST(test_nameless)
{
    struct path path = temp_path("name"), folder = temp_path("");
    char byte = 1;
    folder.text[strlen(folder.text) - 1] = '\0';
    const unsigned before = count_beside(path.text);
    int fd = create_nameless(folder.text);
    if (fd < 0) {
        expect(has_no_nameless(errno));
    } else {
        expect(count_beside(path.text) == before);
        expect_success(write_on(fd, "x", 1));
        expect_success(name_nameless(fd, path.text));
        expect_error(name_nameless(fd, path.text), PERHAPS_ERR_IO);
        expect(errno == EEXIST);
        close_file(fd);
        expect_text(path.text, "x");
        remove_file(path.text);
    }
    fd = open_temporary(folder.text);
    expect(fd >= 0);
    expect_success(write_at(fd, "y", 1, 1 << 20));
    expect_success(read_at(fd, &byte, 1, 1 << 19));
    expect(!byte);
    close_file(fd);
    expect(count_beside(path.text) == before);
}

TEST(test_locks)
{
    struct path path = temp_path("locked");
    int one = made(path.text, "1"), other = open_at_once(path.text, true);
    char byte;
    expect(other >= 0);
    expect_success(lock_alone(one));
    expect_error(lock_alone(other), PERHAPS_ERR_IO);
    expect(errno == EWOULDBLOCK);
    expect_success(read_at(other, &byte, 1, 0)); /* it keeps nobody from reading */
    expect_success(write_at(other, &byte, 1, 0));
    expect_success(lock_shared(one));
    expect_success(lock_shared(other));
    expect_error(lock_alone(one), PERHAPS_ERR_IO);
    unlock_file(one);
    expect_success(lock_alone(other));
    close_file(other);
    expect_success(lock_alone(one));
    int more = duplicate(one);
    expect(more >= 0);
    close_file(one);
    other = open_at_once(path.text, true);
    expect_error(lock_alone(other), PERHAPS_ERR_IO); /* the second descriptor has it */
    close_file(more);
    expect_success(lock_alone(other));
    close_file(other);
}

TEST(test_maps)
{
    enum { NBYTES = 100000, BEHIND = 2 << 20 };
    struct path path = temp_path("mapped");
    int fd = made(path.text, "begin");
    expect_success(write_at(fd, "end", 3, NBYTES - 3));
    uint8_t *reads = map_file(fd, NBYTES, false), *writes = map_file(fd, NBYTES, true);
    expect(reads && writes && !memcmp(reads, "begin", 5));
    writes[50000] = 'x';
    expect_success(sync_map(fd, writes, NBYTES));
    expect(reads[50000] == 'x');
    uint8_t *twice = map_twice(fd, NBYTES, BEHIND);
    expect(twice);
    twice[50000] = 'y';
    expect(twice[BEHIND + 50000] == 'x' && reads[50000] == 'x');
    map_advise(reads, NBYTES, MAP_IN_ORDER);
    map_fetch(reads, 5000, 10000);
    expect_success(map_read(reads, 5000, 10000));
    map_to_pages(twice, NBYTES);
    expect(twice[50000] == 'y' && !memcmp(twice + NBYTES - 3, "end", 3));
    unmap(twice, NBYTES, BEHIND);
    unmap(writes, NBYTES, 0);
    unmap(reads, NBYTES, 0);
    close_file(fd);
    uint8_t *pages = map_pages(5 << 20);
    expect(pages && !((uintptr_t)pages % 65536));
    for (size_t i = 0; i < 5 << 20; i += 4096)
        expect(!pages[i]++);
    unmap_pages(pages, 5 << 20);
}

struct counter {
    struct mutex mutex;
    struct condition turned;
    unsigned count;
};

static void *count_up(void *context)
{
    struct counter *counter = context;
    for (unsigned i = 0; i < 1000; i++) {
        mutex_take(&counter->mutex);
        counter->count++;
        condition_wake(&counter->turned);
        mutex_release(&counter->mutex);
    }
    return NULL;
}

TEST(test_threads)
{
    struct counter counter = { .count = 0 };
    struct thread thread[4];
    struct rwlock lock;
    mutex_begin(&counter.mutex);
    condition_begin(&counter.turned);
    for (unsigned i = 0; i < 4; i++)
        expect(thread_start(&thread[i], count_up, &counter));
    mutex_take(&counter.mutex);
    while (counter.count < 4000)
        condition_wait(&counter.turned, &counter.mutex);
    mutex_release(&counter.mutex);
    for (unsigned i = 0; i < 4; i++)
        thread_join(&thread[i]);
    condition_end(&counter.turned);
    mutex_end(&counter.mutex);
    rwlock_begin(&lock);
    rwlock_share(&lock);
    rwlock_share(&lock);
    rwlock_unshare(&lock);
    rwlock_unshare(&lock);
    rwlock_take(&lock);
    rwlock_release(&lock);
    rwlock_end(&lock);
    thread_yield();
    thread_pause();
    expect(thread_self() && process_self());
    expect(ram_nbytes() > 1 << 20 && perhaps_host_threads() > 0);
    expect(perhaps_host_memory_nbytes() > 1 << 20);
}

/* ---- What is made of it ------------------------------------------------------------------ */

/* A file is replaced, opened in each mode, and written in place by two handles at once. */
TEST(test_files)
{
    struct path path = temp_path("filter.perhaps");
    struct perhaps_options options = { .capacity = 100000, .fpr = 0.01, .kind = "blocked" };
    scoped_filter *f = make_with(&options);
    add_number(f, 1);
    expect_success(perhaps_save(f, path.text));
    expect_error(perhaps_save_new(f, path.text), PERHAPS_ERR_IO);
    expect(errno == EEXIST);
    add_number(f, 2);
    expect_success(perhaps_save(f, path.text));
    for (unsigned way = 0; way < 2; way++) {
        scoped_filter *again = open_file(path.text, ways_to_open[way]);
        expect(has_number(again, 1) && has_number(again, 2) && !has_number(again, 3));
    }
    perhaps_filter *one = open_file(path.text, &in_place);
    perhaps_filter *two = open_file(path.text, &in_place);
    add_number(one, 3);
    expect(has_number(two, 3));
    add_number(two, 4);
    expect_success(perhaps_sync(one));
    perhaps_free(one);
    perhaps_free(two);
    scoped_filter *last = open_file(path.text, &checking);
    expect(has_number(last, 3) && has_number(last, 4) && stats_of(last).keys == 4);
}

/* A live file keeps what was synced, and has one writer. */
TEST(test_live)
{
    const struct perhaps_open_options live = { .mode = PERHAPS_MODE_JOURNAL };
    struct path path = temp_path("live.perhaps");
    if (!replaces_open_files())
        skip();
    struct perhaps_options options = { .capacity = 1000, .fpr = 0.01 };
    perhaps_filter *f = make_with(&options);
    expect_success(perhaps_save(f, path.text));
    perhaps_free(f);
    f = open_file(path.text, &live);
    expect_error(try_open(path.text, &live), PERHAPS_ERR_IO);
    expect(errno == EBUSY);
    for (uint64_t i = 0; i < 500; i++)
        add_number(f, i);
    expect_success(perhaps_sync(f));
    scoped_filter *reader = open_file(path.text, &map_it);
    for (uint64_t i = 0; i < 500; i++)
        expect(has_number(reader, i));
    perhaps_free(reader);
    reader = NULL; /* some systems do not replace a file that is mapped */
    expect_success(perhaps_checkpoint(f));
    add_number(f, 500);
    perhaps_free(f);
    f = open_file(path.text, &live);
    expect(stats_of(f).keys == 501 && has_number(f, 500));
    perhaps_free(f);
}
