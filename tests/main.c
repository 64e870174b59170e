/* main.c - of the tests that have no main() of their own. */
#include "support.h"

int main(void)
{
    return run_all_tests();
}
