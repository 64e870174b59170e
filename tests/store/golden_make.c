/* golden_make.c - writes the golden files: golden_make FOLDER.  It is for new kinds.  It keeps
 * a file that exists: a later plan may be a better one, and golden_test.c has to prove that old
 * files still open. */
#include <unistd.h>

#include "golden.h"

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
        snprintf(path, sizeof path, "%s/%s.perhaps", argv[1], name);
        if (!access(path, F_OK))
            continue;
        int error = golden_filter(&options, &f);
        if (!error)
            error = perhaps_save(f, path);
        if (error) {
            fprintf(stderr, "%s: %s\n", path, perhaps_strerror(error));
            return 2;
        }
        perhaps_free(f);
    }
    return 0;
}
