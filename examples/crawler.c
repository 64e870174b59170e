/* crawler.c - a web crawler that keeps a filter of the URLs that it has met, not the URLs.
 * The web is made up: each page links to eight others.
 * Shows: perhaps_prepare(), which sends for memory before it is needed;
 * perhaps_add_unless_present_prepared(), which asks and adds in one call; what false positives
 * cost here: pages that are skipped, although they were never fetched.
 * Run: build/examples/crawler   (returns 0 if none was fetched twice and few were skipped) */
#include <perhaps.h>
#include <perhaps_fast.h>
#include <stdio.h>
#include <stdlib.h>

enum { PAGES = 100000, LINKS = 8 };
static const double fpr = 0.001;

struct crawl {
    perhaps_filter *met;
    uint32_t *frontier; /* pages to fetch, in the order in which they were met */
    size_t nfrontier;
    uint8_t *fetches; /* how often each page was fetched: the truth */
    unsigned fetched_twice;
};

/* Returns the page to which a link of a page leads: a random one, always the same. */
static uint32_t link_of(uint32_t page, uint32_t link)
{
    uint64_t x = (page * (uint64_t)LINKS + link + 1) * UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 29) * UINT64_C(0xBF58476D1CE4E5B9);
    return (uint32_t)((x ^ x >> 32) % PAGES);
}

/* Hashes the URL of a page, and sends for the memory where the filter will look for it. */
static void prepare(const struct crawl *crawl, uint32_t page, struct perhaps_prepared *prepared)
{
    char url[64];
    int length = snprintf(url, sizeof url, "https://example.org/page/%u.html", page);
    perhaps_prepare(crawl->met, url, (size_t)length, prepared);
}

/* Puts a page into the frontier unless its URL was perhaps met before. */
static int meet(struct crawl *crawl, uint32_t page, const struct perhaps_prepared *prepared)
{
    bool met_before;
    int error = perhaps_add_unless_present_prepared(crawl->met, prepared, &met_before);
    if (!error && !met_before)
        crawl->frontier[crawl->nfrontier++] = page;
    return error;
}

/* "Fetches" a page and follows its links.  All of them are prepared first, so that the memory
 * for one comes while others are prepared. */
static int fetch(struct crawl *crawl, uint32_t page)
{
    struct perhaps_prepared prepared[LINKS];
    int error = 0;
    crawl->fetched_twice += crawl->fetches[page]++ > 0;
    for (uint32_t link = 0; link < LINKS; link++)
        prepare(crawl, link_of(page, link), &prepared[link]);
    for (uint32_t link = 0; link < LINKS && !error; link++)
        error = meet(crawl, link_of(page, link), &prepared[link]);
    return error;
}

/* Returns how many pages were never fetched although a fetched page links to them. */
static unsigned count_skipped(struct crawl *crawl)
{
    unsigned skipped = 0;
    for (size_t i = 0; i < crawl->nfrontier; i++)
        for (uint32_t link = 0; link < LINKS; link++)
            skipped += !crawl->fetches[link_of(crawl->frontier[i], link)]++;
    return skipped;
}

int main(void)
{
    struct perhaps_options options = { .capacity = PAGES, .fpr = fpr };
    struct crawl crawl = { .frontier = malloc(PAGES * sizeof *crawl.frontier),
                           .fetches = calloc(PAGES, 1) };
    int error = perhaps_create(&options, &crawl.met);
    if (error || !crawl.frontier || !crawl.fetches)
        return puts("out of memory"), 1;
    struct perhaps_prepared first;
    prepare(&crawl, 0, &first);
    error = meet(&crawl, 0, &first);
    for (size_t next = 0; next < crawl.nfrontier && !error; next++)
        error = fetch(&crawl, crawl.frontier[next]);
    unsigned skipped = count_skipped(&crawl);
    const double expected = fpr * (double)PAGES;
    printf("%zu pages fetched, %u of them twice; %u skipped wrongly (%.0f expected at most)\n",
           crawl.nfrontier, crawl.fetched_twice, skipped, expected);
    perhaps_free(crawl.met);
    free(crawl.frontier);
    free(crawl.fetches);
    return error || crawl.fetched_twice || skipped > 2 * expected;
}
