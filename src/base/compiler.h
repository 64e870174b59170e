/* compiler.h - hints to the compiler, and what it tells about the build. */
#ifndef COMPILER_H
#define COMPILER_H

#define LIKELY(condition) __builtin_expect(condition, true)

/* Fetches a cache line that will be read, and keeps it in all cache levels. */
#define PREFETCH(address) __builtin_prefetch((address), 0, 3)

/* Functions that only prefetch must be inlined by force.  Otherwise gcc takes them for pure
 * functions whose result nobody uses, and removes the call. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* For what loops are made of.  A file may have loops that are small instead of fast. */
#ifndef LOOP_INLINE
#define LOOP_INLINE ALWAYS_INLINE
#endif

/* For a rare case that needs the stack.  If it were inlined, its caller would set up a stack
 * frame in the frequent case, too. */
#define NOINLINE __attribute__((noinline))

/* 1 if the build uses ThreadSanitizer.  It does not understand vector loads of words that
 * another thread changes, and reports them as errors: only the scalar loops run under it. */
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
