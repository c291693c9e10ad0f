/* The clock: which counter, what one reading costs, how fine its steps are, what a tick is worth. */
#include "clock.h"

#include <errno.h>
#include <stdlib.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { BATCHES = 201, READINGS = 128, STEPS = 20000, BRACKET_TRIES = 200 };

/* This looks at the build and the processor alone. The caller finds out if the kernel trusts the counter. */
int jw_clock_usable(int source) {
    if (source == JW_CLOCK_MONOTONIC) {
        return 1;
    }
#if defined(__x86_64__)
    if (source == JW_CLOCK_TSC) {
        unsigned a, b, c, d;
        const unsigned rdtscp = 1U << 27;
        return __get_cpuid(0x80000001U, &a, &b, &c, &d) && (d & rdtscp) != 0;
    }
#elif defined(__aarch64__)
    if (source == JW_CLOCK_CNTVCT) {
        return 1;
    }
#endif
    return 0;
}

int jw_clock_init(jw_clock *clock, int source, uint64_t rate_hz) {
    const uint64_t slowest = 1000000, fastest = 100 * JW_NS_PER_S;
    if (!jw_clock_usable(source) || rate_hz < slowest || rate_hz > fastest) {
        return -EINVAL;
    }
    clock->source = source;
    clock->rate_hz = rate_hz;
    clock->mult = (uint64_t)((((jw_u128)JW_NS_PER_S << JW_CLOCK_SHIFT) + rate_hz / 2) / rate_hz);
    return 0;
}

uint64_t jw_clock_read(int source) {
    return jw_now(source);
}

uint64_t jw_clock_read_ordered(int source, unsigned *cpu) {
    return jw_now_ordered(source, cpu);
}

uint64_t jw_clock_ns(const jw_clock *clock, uint64_t ticks) {
    return jw_ns(clock, ticks);
}

uint64_t jw_clock_ticks(const jw_clock *clock, uint64_t ns) {
    return (uint64_t)(((jw_u128)ns * clock->rate_hz + JW_NS_PER_S / 2) / JW_NS_PER_S);
}

/* The tightest of many pairs of readings around one of a POSIX clock: ticks and ns of the same moment, +- width/2. */
int jw_clock_bracket(int source, int posix_clock, jw_bracket *out) {
    struct timespec probe;
    if (clock_gettime((clockid_t)posix_clock, &probe) != 0) {
        return -errno;
    }
    out->width_ticks = UINT64_MAX;
    for (int i = 0; i < BRACKET_TRIES; i++) {
        unsigned cpu;
        uint64_t before = jw_now_ordered(source, &cpu);
        uint64_t ns = jw_posix_ns((clockid_t)posix_clock);
        uint64_t after = jw_now_ordered(source, &cpu);
        if (after >= before && after - before < out->width_ticks) {
            out->width_ticks = after - before;
            out->ticks = before + (after - before) / 2;
            out->ns = ns;
        }
    }
    return out->width_ticks == UINT64_MAX ? -EIO : 0;
}

JW_INLINE uint64_t batch(int source, bool ordered) {
    unsigned cpu;
    uint64_t start = jw_now(source), last = start;
    for (int i = 0; i < READINGS; i++) {
        last = ordered ? jw_now_ordered(source, &cpu) : jw_now(source);
    }
    return last > start ? last - start : 0;
}

/* Ticks that one reading takes: the median of batches of back-to-back readings, since one step may be coarser. */
double jw_clock_cost_ticks(int source, int ordered) {
    uint64_t took[BATCHES];
    for (int i = 0; i < BATCHES; i++) {
        JW_PER_CLOCK(source, clock, took[i] = ordered ? batch(clock, true) : batch(clock, false))
    }
    qsort(took, BATCHES, sizeof took[0], jw_by_value);
    return (double)took[BATCHES / 2] / READINGS;
}

/* The commonest non-zero step between readings; differences below it are "the same". 0 only without memory. */
uint64_t jw_clock_step_ticks(int source) {
    uint64_t *steps = malloc(STEPS * sizeof *steps);
    if (steps == NULL) {
        return 0;
    }
    uint64_t last = jw_now(source);
    for (size_t i = 0; i < STEPS;) {
        uint64_t next = jw_now(source);
        if (next > last) {
            steps[i++] = next - last;
        }
        last = next;
    }
    qsort(steps, STEPS, sizeof *steps, jw_by_value);
    uint64_t best = steps[0];
    size_t best_run = 0, run = 0;
    for (size_t i = 0; i < STEPS; i++) {
        run = i > 0 && steps[i] == steps[i - 1] ? run + 1 : 1;
        if (run > best_run) {
            best_run = run;
            best = steps[i];
        }
    }
    free(steps);
    return best;
}
