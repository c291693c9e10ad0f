/* Shared by all C files: the public declarations, and the few things that the hot loops need inline. */
#ifndef JW_CORE_H
#define JW_CORE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api.h"

#if UINTPTR_MAX != UINT64_MAX
#error "the native core needs a 64-bit target"
#endif

/* The journal's big-endian figures are made by swapping, and Python reads the arrays as they are. */
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the native core needs a little-endian target"
#endif

/* x86 and most arm64 cores have 64-byte lines; pairs are fetched together, so what must not be shared keeps 128 apart. */
#define JW_LINE 64
#define JW_APART 128

#define JW_INLINE static inline __attribute__((always_inline))

/* A thread that sleeps or waits so long can still be stopped soon. */
#define JW_LONGEST_INTERVAL_NS UINT64_C(1000000000)

__extension__ typedef unsigned __int128 jw_u128;

/* Ask for a line as its next writer. Without an architecture flag the compiler's own builtin asks as a reader on x86,
 * and then the first store still has to take the line from the others. */
JW_INLINE void jw_prefetch_for_writing(const void *line) {
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
    __builtin_prefetch(line, 1);
#endif
}

/* In a loop that waits: leave the core's other thread, and its power, alone for a few cycles. */
JW_INLINE void jw_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* For qsort: int64_t, rising; also unsigned ones below INT64_MAX. */
static inline int jw_by_value(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

JW_INLINE bool jw_stopped(const _Atomic int *stop) {
    return atomic_load_explicit(stop, memory_order_relaxed) != 0;
}

#endif
