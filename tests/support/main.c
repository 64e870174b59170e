/* main.c - the main() of tests that have none of their own. */
#include "support.h"

int main(void)
{
    return run_all_tests();
}
