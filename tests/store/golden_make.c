/* golden_make.c - writes the golden files: golden_make FOLDER.  It is for new kinds.  It keeps
 * a file that exists: a later plan may be a better one, and golden_test.c has to prove that old
 * files still open. */
#include <unistd.h>

#include "golden.h"
#include "perhaps_embed.h"
#include "perhaps_file.h"

int main(int argc, char **argv)
{
    struct perhaps_options options;
    const char *name;
    if (argc != 2) {
        fprintf(stderr, "usage: golden_make FOLDER\n");
        return 2;
    }
    for (size_t i = 0; golden_options(i, &options, &name); i++) {
        char path[4096];
        perhaps_filter *f;
        int error = golden_filter(&options, &f);
        const bool is_small = !error && perhaps_write_nbytes(f) < PERHAPS_PAGE_NBYTES &&
                              !options.against.group_nbytes; /* these are never small */
        snprintf(path, sizeof path, "%s/%s%s.perhaps", argv[1], golden_forms[is_small], name);
        if (!error && access(path, F_OK))
            error = perhaps_save(f, path);
        if (error) {
            fprintf(stderr, "%s: %s\n", path, perhaps_strerror(error));
            return 2;
        }
        perhaps_free(f);
    }
    return 0;
}
