/* failing_calls.h - system calls that fail when told to, do less than they were asked, or are
 * interrupted; the linker sends the calls of the library here (--wrap, see CMakeLists.txt). */
#ifndef FAILING_CALLS_H
#define FAILING_CALLS_H

#include <stdbool.h>
#include <stddef.h>

#include "system/system.h"

/* What the library uses of the system.  Elsewhere than on Linux a draft has a name from the
 * begin, and is not linked; and the room for a journal is not reserved. */
#ifdef SYSTEM_LINUX
enum { IS_LINUX = true };
#define CALL_OF_DRAFTS "open nameless"
#else
enum { IS_LINUX = false };
#define CALL_OF_DRAFTS "create"
#endif

/* Makes a call fail with this errno, every time, after 'after' of them have worked.  The name
 * is that of the function, or of the one that stands for it on Linux ("fallocate" is
 * posix_fallocate(), too); but open() is three calls to the tests: "open nameless" (O_TMPFILE),
 * "create" and "open"; and "links" stands for a file system that can neither make nameless
 * files nor link them.  Threads may make the calls. */
void let_fail(const char *call, int error, unsigned after);

/* Does the same for one call: those behind it work again. */
void let_fail_once(const char *call, int error, unsigned after);

/* Makes the system have no nameless files, whatever else fails. */
void let_no_nameless(void);

/* Makes all calls work again, in full. */
void let_all_work(void);

/* Returns whether a call has failed since it was told to. */
bool has_failed(void);

/* Makes reads and writes transfer so many bytes at most. */
void transfer_at_once(size_t nbytes);

/* Returns how many files this process has open. */
unsigned open_files(void);

#endif
