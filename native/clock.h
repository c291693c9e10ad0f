/* Clock readings that can be inlined into a hot loop; `source` is a constant there, so the switch disappears. */
#ifndef JW_CLOCK_H
#define JW_CLOCK_H

#include <errno.h>
#include <sched.h>
#include <time.h>

#include "core.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define JW_NS_PER_S UINT64_C(1000000000)
#define JW_CLOCK_SHIFT 48

JW_INLINE uint64_t jw_posix_ns(clockid_t which) {
    struct timespec now;
    clock_gettime(which, &now);
    return (uint64_t)now.tv_sec * JW_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Sleep until CLOCK_MONOTONIC says `due_ns`. Return 0, or -errno of a sleep that the kernel refuses. The time is absolute, so
 * one that a stop interrupts does not become longer. */
JW_INLINE int jw_sleep_until_ns(uint64_t due_ns) {
    const struct timespec due = {.tv_sec = (time_t)(due_ns / JW_NS_PER_S), .tv_nsec = (long)(due_ns % JW_NS_PER_S)};
    int failed;
    while ((failed = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL)) == EINTR) {
    }
    return -failed;
}

/* Run `statement` with `name` as a constant of the clock's source: whatever is inlined into it is compiled once per clock,
 * so no branch of a loop asks which clock it is. */
#define JW_PER_CLOCK(source, name, statement)                                                                          \
    switch (source) {                                                                                                  \
    case JW_CLOCK_TSC: {                                                                                               \
        enum { name = JW_CLOCK_TSC };                                                                                  \
        statement;                                                                                                     \
        break;                                                                                                         \
    }                                                                                                                  \
    case JW_CLOCK_CNTVCT: {                                                                                            \
        enum { name = JW_CLOCK_CNTVCT };                                                                               \
        statement;                                                                                                     \
        break;                                                                                                         \
    }                                                                                                                  \
    default: {                                                                                                         \
        enum { name = JW_CLOCK_MONOTONIC };                                                                            \
        statement;                                                                                                     \
    }                                                                                                                  \
    }

/* A bare reading: what the producer stamps and the sampler loops over. It may run ahead of earlier loads. */
JW_INLINE uint64_t jw_now(int source) {
#if defined(__x86_64__)
    if (source == JW_CLOCK_TSC) {
        return __rdtsc();
    }
#elif defined(__aarch64__)
    if (source == JW_CLOCK_CNTVCT) {
        uint64_t ticks;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks)::"memory");
        return ticks;
    }
#endif
    (void)source;
    return jw_posix_ns(CLOCK_MONOTONIC);
}

/* Keep the compiler from moving loads and stores across a reading. The processor may still do so, by some ns. */
JW_INLINE void jw_in_this_order(void) {
    __asm__ volatile("" ::: "memory");
}

/* Have the compiler load all that was copied to `where` before what follows: a reading of the clock. */
JW_INLINE void jw_have(const void *where) {
    __asm__ volatile("" ::"r"(where) : "memory");
}

JW_INLINE unsigned jw_this_cpu(void) {
    int cpu = sched_getcpu();
    return cpu < 0 ? 0U : (unsigned)cpu;
}

/* A reading that waits for all earlier loads, with the CPU it was made on: what a consumer stamps once it has seen a
 * message. RDTSCP does both; Linux keeps the CPU number in the low 12 bits of TSC_AUX (arch/x86/include/asm/segment.h).
 * The vDSO's clock_gettime orders itself. */
JW_INLINE uint64_t jw_now_ordered(int source, unsigned *cpu) {
#if defined(__x86_64__)
    if (source == JW_CLOCK_TSC) {
        unsigned aux;
        uint64_t ticks = __rdtscp(&aux);
        *cpu = aux & 0xfffU;
        return ticks;
    }
#elif defined(__aarch64__)
    if (source == JW_CLOCK_CNTVCT) {
        uint64_t ticks;
        __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks)::"memory");
        *cpu = jw_this_cpu();
        return ticks;
    }
#endif
    (void)source;
    uint64_t ns = jw_posix_ns(CLOCK_MONOTONIC);
    *cpu = jw_this_cpu();
    return ns;
}

JW_INLINE uint64_t jw_ns(const jw_clock *clock, uint64_t ticks) {
    return (uint64_t)(((jw_u128)ticks * clock->mult) >> JW_CLOCK_SHIFT);
}

/* Differences keep their sign: a stamp from another CPU may lie ahead. */
JW_INLINE int64_t jw_ns_between(const jw_clock *clock, uint64_t from, uint64_t to) {
    return to >= from ? (int64_t)jw_ns(clock, to - from) : -(int64_t)jw_ns(clock, from - to);
}

#endif
