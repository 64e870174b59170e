/* readme.c - all that most programs need: makes a filter, saves it and opens it again.
 * Run: build/examples/readme   (returns 0 if there was no error) */
#include <perhaps.h>
#include <stdio.h>

int main(void)
{
    struct perhaps_options options = { .capacity = 1000000, .fpr = 0.001 };
    perhaps_filter *seen;
    int error = perhaps_create(&options, &seen);
    if (!error)
        error = perhaps_add(seen, "apple", 5);
    if (!error)
        error = perhaps_save(seen, "fruit.perhaps");
    perhaps_free(seen);
    if (!error)
        error = perhaps_open("fruit.perhaps", NULL, &seen); /* mapped, not copied */
    remove("fruit.perhaps");                                /* leaves nothing behind */
    if (error)
        return printf("%s\n", perhaps_strerror(error)), 1;
    printf("apple: %s\n", perhaps_contains(seen, "apple", 5) ? "perhaps" : "certainly not");
    printf("stone: %s\n", perhaps_contains(seen, "stone", 5) ? "perhaps" : "certainly not");
    perhaps_free(seen);
}
