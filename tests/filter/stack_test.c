/* stack_test.c - proves that no call of the library needs more than 64 KiB of stack.  musl
 * gives a thread 128 KiB, of which the caller keeps half.
 *
 * Each step runs in a thread whose stack was painted with one byte; how much of the paint is
 * gone at the end is how deep the stack was.  The test fails when a function gets a large local
 * array, or when calls nest deeper than before. */
#include "support.h"
#include <perhaps_live.h>
#include <perhaps_sets.h>
#include <perhaps_window.h>

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

/* The stack is far larger than what is allowed, so that a step that needs too much fails the
 * test instead of crashing. */
enum { STACK_NBYTES = 1 << 20, STACK_MOST = 64 << 10, PAINT = 0xa5, KEYS = 5000 };

/* What the steps work on, one after the other. */
struct job {
    const struct perhaps_kind *kind;
    struct perhaps_options options;
    struct perhaps_keys keys;
    struct path path;
    perhaps_filter *f, *other;
};

static void make_two(struct job *job)
{
    struct perhaps_plan plan;
    expect_success(perhaps_plan_for(&job->options, &plan));
    if (is_built(job->kind)) {
        job->f = built_filter(&job->options, &job->keys);
        job->other = built_filter(&job->options, &job->keys);
        return;
    }
    expect_success(perhaps_create(&job->options, &job->f));
    expect_success(perhaps_create(&job->options, &job->other));
}

/* Adds the keys one batch after the other, up to and beyond the capacity, which is KEYS / 2:
 * there most keys find a slot only by moving other entries. */
static void add_keys(struct job *job)
{
    struct perhaps_keys half = some_keys(&job->keys, 0, KEYS / 2);
    bool was_present[KEYS];
    int error = perhaps_add_many(job->f, &half, NULL);
    expect(error == (is_built(job->kind) ? PERHAPS_ERR_UNSUPPORTED : 0));
    perhaps_add_unless_present_many(job->f, &job->keys, was_present, NULL);
    perhaps_add(job->f, "key", 3);
    perhaps_add_many(job->other, &half, NULL);
}

static void ask_keys(struct job *job)
{
    uint64_t count;
    expect(perhaps_contains_many(job->f, &job->keys, NULL) >= KEYS / 2);
    perhaps_contains(job->f, "key", 3);
    perhaps_count(job->f, "key", 3, &count);
}

static void inspect(struct job *job)
{
    struct perhaps_stats stats;
    perhaps_stats_of(job->f, &stats);
    perhaps_part(job->f, 0, &stats);
    perhaps_predict_fpr(job->f, KEYS);
}

static void save(struct job *job)
{
    expect_success(perhaps_save(job->f, job->path.text));
    expect_success(perhaps_save(job->f, job->path.text));
}

static void open_with(struct job *job, const struct perhaps_open_options *how)
{
    scoped_filter *opened;
    struct perhaps_verdict verdict;
    int error = perhaps_open(job->path.text, how, &opened);
    expect(!error || (error == PERHAPS_ERR_UNSUPPORTED && how->mode == PERHAPS_MODE_IN_PLACE));
    if (error)
        return;
    if (how->mode != PERHAPS_MODE_IN_PLACE)
        expect(perhaps_equal(opened, job->f));
    perhaps_verify(opened, &verdict);
    perhaps_sync(opened);
}

static void open_mapped(struct job *job)
{
    open_with(job, &(struct perhaps_open_options){ .mode = PERHAPS_MODE_READ });
}

static void open_loaded(struct job *job)
{
    open_with(job, &(struct perhaps_open_options){ .mode = PERHAPS_MODE_LOAD });
}

static void open_in_place(struct job *job)
{
    open_with(job, &(struct perhaps_open_options){ .mode = PERHAPS_MODE_IN_PLACE });
}

static int read_zeros(void *context, uint64_t offset, void *buffer, size_t nbytes)
{
    (void)context;
    (void)offset;
    memset(buffer, 0, nbytes);
    return 0;
}

/* Only some kinds have layouts. */
static void lay_out(struct job *job)
{
    struct perhaps_description description;
    scoped_layout *layout, *restored = NULL;
    if (perhaps_layout_create(&job->options, &layout))
        return;
    perhaps_layout_describe(layout, &description);
    expect_success(perhaps_layout_restore(&description, &job->options.hashing, &restored));
    expect_success(perhaps_layout_save(layout, 1, read_zeros, NULL, job->path.text));
}

static void unite(struct job *job)
{
    scoped_filter *copy = clone_of(job->f);
    perhaps_merge(copy, job->other);
}

static void take_away(struct job *job)
{
    bool removed[KEYS];
    perhaps_remove_many(job->f, &job->keys, removed, NULL, NULL);
    perhaps_remove(job->f, "key", 3);
    perhaps_rotate(job->f);
    expect_success(perhaps_clear(job->f));
}

static const struct step {
    const char *name;
    void (*run)(struct job *job);
} steps[] = {
    { "make", make_two },
    { "add", add_keys },
    { "ask", ask_keys },
    { "inspect", inspect },
    { "save", save },
    { "open mapped", open_mapped },
    { "open loaded", open_loaded },
    { "open in place", open_in_place },
    { "lay out", lay_out },
    { "unite", unite },
    { "remove", take_away },
};

struct run {
    const struct step *step;
    struct job *job;
};

static void *run_step(void *context)
{
    const struct run *run = context;
    run->step->run(run->job);
    return NULL;
}

/* Runs a step on a painted stack.  Returns how many bytes of it were touched; the stack grows
 * downwards. */
static size_t depth_of(const struct step *step, struct job *job)
{
    struct run run = { .step = step, .job = job };
    pthread_attr_t attributes;
    pthread_t thread;
    uint8_t *stack = mmap(NULL, STACK_NBYTES, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    expect(stack != MAP_FAILED);
    memset(stack, PAINT, STACK_NBYTES);
    expect(!pthread_attr_init(&attributes));
    expect(!pthread_attr_setstack(&attributes, stack, STACK_NBYTES));
    expect(!pthread_create(&thread, &attributes, run_step, &run));
    expect(!pthread_join(thread, NULL));
    pthread_attr_destroy(&attributes);
    size_t untouched = 0;
    while (untouched < STACK_NBYTES && stack[untouched] == PAINT)
        untouched++;
    munmap(stack, STACK_NBYTES);
    return STACK_NBYTES - untouched;
}

/* Runs all steps in order and checks how deep the stack was in each. */
static void expect_shallow(struct job *job)
{
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        size_t depth = depth_of(&steps[i], job);
        scene("%s at %g%s: %s takes %zu bytes of stack", job->kind->name, job->options.fpr,
              job->options.shared ? ", shared" : "", steps[i].name, depth);
        expect(depth <= STACK_MOST);
    }
    perhaps_free(job->f);
    perhaps_free(job->other);
}

/* Every step, for every kind, at a high and at a low rate, shared and not. */
TEST(test_every_kind)
{
    const double rates[] = { 1e-2, 1e-6 };
    struct job job = { .keys = make_keys(TEXT_KEYS, 1, 0, KEYS), .path = temp_path("deep") };
    EACH_KIND(kind, every_kind)
        for (unsigned way = 0; way < 4; way++) {
            job.kind = kind;
            job.options = options_for(job.kind, KEYS / 2, rates[way / 2], 7);
            job.options.shared = way % 2 && takes_threads(job.kind);
            expect_shallow(&job);
        }
    free_keys(&job.keys);
}

int main(void)
{
    return SANITIZED ? CANNOT_TRY : run_all_tests(); /* sanitizers make frames larger */
}
