/* compiler.h - what is told to the compiler. */
#ifndef COMPILER_H
#define COMPILER_H

#define LIKELY(condition) __builtin_expect(condition, true)
#define PREFETCH(address) __builtin_prefetch((address), 0, 3)

/* Functions that only prefetch must be inlined by force: gcc takes them for pure functions
 * whose result nobody uses, and drops the call. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Keeps what is rare, and needs the stack, out of the callers' way. */
#define NOINLINE __attribute__((noinline))

/* ThreadSanitizer takes some accesses beside writers for errors that are none. */
#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZED 1
#endif
#endif
#ifndef THREAD_SANITIZED
#define THREAD_SANITIZED 0
#endif

#endif
