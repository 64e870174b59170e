/* compiler.h - hints to the compiler, and what it tells about the build. */
#ifndef COMPILER_H
#define COMPILER_H

#define LIKELY(condition) __builtin_expect(condition, true)

/* Fetches a cache line that will be read, and keeps it in all cache levels.  WebAssembly has no
 * such instruction, and there nothing of the address is computed. */
#ifdef __wasm__
#define CAN_PREFETCH      0
#define PREFETCH(address) ((void)sizeof(address))
#else
#define CAN_PREFETCH      1
#define PREFETCH(address) __builtin_prefetch((address), 0, 3)
#endif

/* Functions that only prefetch must be inlined by force.  Otherwise gcc takes them for pure
 * functions whose result nobody uses, and removes the call. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* For what loops are made of.  A file may have loops that are small instead of fast. */
#ifndef LOOP_INLINE
#define LOOP_INLINE ALWAYS_INLINE
#endif

/* Returns the address in a register of its own.  gcc indexes two arrays of a loop by one
 * register.  In loops that also write to lines each key then took some 18 cycles more (Zen 4;
 * no difference on Zen 5), in batches of a ribbon a fifth of the time (Zen 5): so these take
 * the addresses of the keys ahead by this. */
static ALWAYS_INLINE const void *apart(const void *address)
{
    __asm__("" : "+r"(address));
    return address;
}

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
