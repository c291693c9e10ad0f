/* The sampling loop itself, shared with the benchmark that times it. */
#ifndef JW_SPIN_H
#define JW_SPIN_H

#include "clock.h"
#include "chase.h"

typedef struct {
    uint64_t *table; /* small_ticks + 1: readings by gap in ticks; the last entry is for what is not counted here */
    uint64_t small_ticks;
    uint64_t pending; /* the gap that the next reading will count */
    jw_gap *gaps;
    uint64_t room;
    uint64_t used;
    uint64_t readings;
    uint64_t negative;
    uint64_t counted; /* readings already put down to a CPU */
    uint64_t *readings_by_cpu; /* may be null */
    unsigned cpu;
} jw_gap_sink;

/* All readings since the last look were made on `sink->cpu`: a move takes longer than a small gap. */
static inline void jw_settle_cpu(jw_gap_sink *sink) {
    if (sink->readings_by_cpu != NULL) {
        sink->readings_by_cpu[sink->cpu & 0xffffU] += sink->readings - sink->counted;
    }
    sink->counted = sink->readings;
}

static __attribute__((noinline, cold)) void jw_long_gap(jw_gap_sink *sink, int source, uint64_t start, uint64_t end,
                                                        uint64_t readings) {
    unsigned cpu;
    (void)jw_now_ordered(source, &cpu);
    const uint64_t before = sink->readings;
    sink->readings = readings;
    jw_settle_cpu(sink);
    sink->readings = before;
    if (end < start) {
        sink->negative++;
    } else if (sink->used < sink->room) {
        sink->gaps[sink->used++] =
            (jw_gap){.start = start, .end = end, .cpu = sink->cpu, .moved = cpu != sink->cpu ? 1U : 0U};
    }
    sink->cpu = cpu;
}

/* `n` readings after the one at `last`; gives the last one. A gap is counted while the next reading is already under way:
 * reading, then counting what was just read, would put the counter's load and store into every period (half as much again
 * on the processors where it was measured). `at`: where a chase goes on, whose loads end before each reading; NULL: no
 * chase. */
JW_INLINE uint64_t jw_sample_at(jw_gap_sink *sink, int source, uint64_t last, int n, const jw_chase_line **at) {
    uint64_t *const table = sink->table;
    const uint64_t small = sink->small_ticks;
    uint64_t pending = sink->pending;
    for (int i = 0; i < n; i++) {
        uint64_t now;
        if (at == NULL) {
            now = jw_now(source);
        } else {
            unsigned cpu;
            *at = jw_chase(*at, JW_CHASE_STEPS);
            now = jw_now_ordered(source, &cpu);
        }
        table[pending]++;
        pending = now - last;
        if (__builtin_expect(pending >= small, 0)) {
            jw_long_gap(sink, source, last, now, sink->readings + (uint64_t)i);
            pending = small;
        }
        last = now;
    }
    sink->pending = pending;
    sink->readings += (uint64_t)n;
    return last;
}

JW_INLINE uint64_t jw_sample(jw_gap_sink *sink, int source, uint64_t last, int n) {
    return jw_sample_at(sink, source, last, n, NULL);
}

JW_INLINE void jw_begin_sampling(jw_gap_sink *sink) {
    sink->pending = sink->small_ticks;
}

JW_INLINE void jw_end_sampling(jw_gap_sink *sink) {
    sink->table[sink->pending]++;
    jw_begin_sampling(sink);
    jw_settle_cpu(sink);
}

#endif
