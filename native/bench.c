/* The loops that the project's own benchmarks time. Each gives ns per turn. */
#include <string.h>

#include "clock.h"
#include "recorder.h"
#include "spin.h"

JW_INLINE double readings_ns(const jw_clock *clock, int source, bool ordered, uint64_t readings) {
    unsigned cpu;
    uint64_t start = jw_now_ordered(source, &cpu), last = start;
    for (uint64_t i = 0; i < readings; i++) {
        last = ordered ? jw_now_ordered(source, &cpu) : jw_now(source);
    }
    return (double)jw_ns(clock, last - start) / (double)readings;
}

/* A clock reading; `ordered`: the consumer's kind. */
double jw_bench_clock_ns(const jw_clock *clock, int ordered, uint64_t readings) {
    double ns = 0;
    JW_PER_CLOCK(clock->source, source,
                 ns = ordered ? readings_ns(clock, source, true, readings) : readings_ns(clock, source, false, readings))
    return ns;
}

/* Recording one value, over `n` given values, `rounds` times. */
double jw_bench_record_ns(const jw_clock *clock, jw_histogram *into, const int64_t *values, size_t n,
                          uint64_t rounds) {
    uint64_t start = jw_now(clock->source);
    for (uint64_t round = 0; round < rounds; round++) {
        jw_record_many(into, values, n);
    }
    return (double)jw_ns(clock, jw_now(clock->source) - start) / ((double)n * (double)rounds);
}

enum { SMALL_TICKS = 4096, GAPS = 64 };

JW_INLINE double samples_ns(const jw_clock *clock, int source, uint64_t readings) {
    static _Thread_local uint64_t table[SMALL_TICKS + 1];
    static _Thread_local jw_gap gaps[GAPS];
    jw_gap_sink sink = {.table = table, .small_ticks = SMALL_TICKS, .gaps = gaps, .room = GAPS};
    jw_begin_sampling(&sink);
    memset(table, 0, sizeof table);
    uint64_t start = jw_now(source), last = start;
    while (sink.readings < readings) {
        last = jw_sample(&sink, source, last, GAPS);
    }
    return (double)jw_ns(clock, last - start) / (double)sink.readings;
}

/* One turn of the sampler's loop. */
double jw_bench_spin_loop_ns(const jw_clock *clock, uint64_t readings) {
    double ns = 0;
    JW_PER_CLOCK(clock->source, source, ns = samples_ns(clock, source, readings))
    return ns;
}
