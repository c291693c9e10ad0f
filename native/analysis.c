/* From a block's stamps to histograms, stalls and residence. Pure functions over arrays: nothing here is timed, and all of
 * it is tested on made-up stamps. Entry 0 of every array is the reference, entries 1..n are the block's messages. */
#include <stdlib.h>

#include "clock.h"
#include "recorder.h"

void jw_analyse_intervals(const jw_clock *clock, const uint64_t *stamps, size_t n, jw_histogram *into) {
    for (size_t i = 1; i <= n; i++) {
        jw_record_difference(into, jw_ns_between(clock, stamps[i - 1], stamps[i]));
    }
}

void jw_analyse_transit(const jw_clock *clock, const uint64_t *publish, const uint64_t *receive, size_t n,
                        jw_histogram *into) {
    for (size_t i = 1; i <= n; i++) {
        jw_record_difference(into, jw_ns_between(clock, publish[i], receive[i]));
    }
}

/* T: the lower median of the publish intervals, in ns; -1 for an empty block or without memory. */
int64_t jw_analyse_median_gap(const jw_clock *clock, const uint64_t *publish, size_t n) {
    int64_t *gaps = n > 0 ? malloc(n * sizeof *gaps) : NULL;
    if (gaps == NULL) {
        return -1;
    }
    for (size_t i = 0; i < n; i++) {
        gaps[i] = jw_ns_between(clock, publish[i], publish[i + 1]);
    }
    qsort(gaps, n, sizeof *gaps, jw_by_value);
    int64_t median = gaps[(n - 1) / 2];
    free(gaps);
    return median;
}

/* Transit from the intended send time when the producer waits an interval after each publish. Only the producer can hide
 * time there: a gap G longer than the usual T held this message back by L = G - T, and kept back the messages that would
 * have followed at L - T, L - 2T, … A consumer's stall needs no correction, because the producer kept sending. */
void jw_analyse_intended_spin(const jw_clock *clock, const uint64_t *publish, const uint64_t *receive, size_t n,
                              int64_t expected_ns, jw_histogram *into) {
    for (size_t i = 1; i <= n; i++) {
        int64_t transit = jw_ns_between(clock, publish[i], receive[i]);
        if (transit < 0) {
            into->negative++;
            continue;
        }
        int64_t late = jw_ns_between(clock, publish[i - 1], publish[i]) - expected_ns;
        jw_record(into, transit + (late > 0 ? late : 0));
        if (late > expected_ns && expected_ns > 0) {
            jw_record_progression(into, transit + late - expected_ns, expected_ns, (late - 1) / expected_ns);
        }
    }
}

/* The same when message i was due at start + i * interval. */
void jw_analyse_intended_schedule(const jw_clock *clock, uint64_t start, const uint64_t *receive, size_t n,
                                  int64_t interval_ns, jw_histogram *into) {
    for (size_t i = 1; i <= n; i++) {
        jw_record_difference(into, jw_ns_between(clock, start, receive[i]) - (int64_t)i * interval_ns);
    }
}

typedef struct {
    jw_stall *out;
    size_t room;
    size_t found;
    jw_stall open;
    bool any;
} joiner;

static void close_stall(joiner *j) {
    if (j->any) {
        if (j->found < j->room) {
            j->out[j->found] = j->open;
        }
        j->found++;
    }
    j->any = false;
}

/* Windows come in order of their ends; one that overlaps or touches the open stall is the same stall. */
static void add_window(joiner *j, int64_t start_ns, int64_t end_ns, int32_t cpu, uint32_t messages) {
    if (j->any && start_ns <= j->open.end_ns) {
        j->open.end_ns = end_ns > j->open.end_ns ? end_ns : j->open.end_ns;
        j->open.messages += messages;
        return;
    }
    close_stall(j);
    j->open = (jw_stall){.start_ns = start_ns, .end_ns = end_ns, .cpu = cpu, .messages = messages};
    j->any = true;
}

/* All stalls of a consumer; at most `room` are written, the number found is returned. `cpu` is where the consumer was
 * last seen before the stall: that is where its time was taken, wherever it woke up. */
size_t jw_analyse_consumer_stalls(const jw_clock *clock, uint64_t base, const uint64_t *publish,
                                  const uint64_t *receive, const uint16_t *cpus, size_t n, int64_t threshold_ns,
                                  jw_stall *out, size_t room) {
    joiner j = {.out = out, .room = room};
    for (size_t i = 1; i <= n; i++) {
        if (jw_ns_between(clock, publish[i], receive[i]) < threshold_ns) {
            continue;
        }
        uint64_t from = publish[i] > receive[i - 1] ? publish[i] : receive[i - 1];
        add_window(&j, jw_ns_between(clock, base, from), jw_ns_between(clock, base, receive[i]), cpus[i - 1], 1);
    }
    close_stall(&j);
    return j.found;
}

/* All gaps that were `threshold_ns` longer than expected: [previous publish + T, publish]. On a schedule the messages that
 * were due in between are late too; with an interval after each publish only this one is. */
size_t jw_analyse_producer_stalls(const jw_clock *clock, uint64_t base, const uint64_t *publish, const uint16_t *cpus,
                                  size_t n, int64_t expected_ns, int scheduled, int64_t threshold_ns, jw_stall *out,
                                  size_t room) {
    joiner j = {.out = out, .room = room};
    for (size_t i = 1; i <= n; i++) {
        int64_t late = jw_ns_between(clock, publish[i - 1], publish[i]) - expected_ns;
        if (late < threshold_ns || late <= 0) {
            continue;
        }
        int64_t end_ns = jw_ns_between(clock, base, publish[i]);
        int64_t behind = scheduled && expected_ns > 0 ? late / expected_ns : 0;
        uint32_t messages = behind < (int64_t)(UINT32_MAX - 1) ? (uint32_t)behind + 1 : UINT32_MAX;
        add_window(&j, end_ns - late, end_ns, cpus[i - 1], messages);
    }
    close_stall(&j);
    return j.found;
}

static void count_stall(int64_t start_ns, int64_t end_ns, const int64_t *thresholds_ns, size_t thresholds,
                        int64_t *counts, int64_t *stolen_ns) {
    for (size_t t = 0; t < thresholds; t++) {
        if (end_ns - start_ns >= thresholds_ns[t]) {
            counts[t]++;
            stolen_ns[t] += end_ns - start_ns;
        }
    }
}

/* Distinct stalls of two threads, each list in order: one stop that both saw is one stall. */
void jw_analyse_totals(const jw_stall *a, size_t a_len, const jw_stall *b, size_t b_len, const int64_t *thresholds_ns,
                       size_t thresholds, int64_t *counts, int64_t *stolen_ns) {
    for (size_t t = 0; t < thresholds; t++) {
        counts[t] = 0;
        stolen_ns[t] = 0;
    }
    size_t i = 0, k = 0;
    bool open = false;
    int64_t start_ns = 0, end_ns = 0;
    while (i < a_len || k < b_len) {
        bool from_a = k == b_len || (i < a_len && a[i].start_ns <= b[k].start_ns);
        const jw_stall *next = from_a ? &a[i++] : &b[k++];
        if (open && next->start_ns <= end_ns) {
            end_ns = next->end_ns > end_ns ? next->end_ns : end_ns;
            continue;
        }
        if (open) {
            count_stall(start_ns, end_ns, thresholds_ns, thresholds, counts, stolen_ns);
        }
        open = true;
        start_ns = next->start_ns;
        end_ns = next->end_ns;
    }
    if (open) {
        count_stall(start_ns, end_ns, thresholds_ns, thresholds, counts, stolen_ns);
    }
}

/* Messages by CPU; `messages_by_cpu` has 65,536 entries and is added to. */
void jw_analyse_residence(const uint16_t *cpus, size_t n, uint64_t *messages_by_cpu) {
    for (size_t i = 1; i <= n; i++) {
        messages_by_cpu[cpus[i]]++;
    }
}

/* The sampler's gaps: the table of small ones (index = ticks) and the logged ones. */
void jw_analyse_gaps(const jw_clock *clock, const uint64_t *table, uint64_t table_len, const jw_gap *gaps, size_t n,
                     jw_histogram *into) {
    for (uint64_t ticks = 0; ticks < table_len; ticks++) {
        if (table[ticks] > 0) {
            jw_record_times(into, (int64_t)jw_ns(clock, ticks), (int64_t)table[ticks]);
        }
    }
    for (size_t i = 0; i < n; i++) {
        jw_record_difference(into, jw_ns_between(clock, gaps[i].start, gaps[i].end));
    }
}

size_t jw_analyse_gap_stalls(const jw_clock *clock, uint64_t base, const jw_gap *gaps, size_t n, int64_t threshold_ns,
                             jw_stall *out, size_t room) {
    joiner j = {.out = out, .room = room};
    for (size_t i = 0; i < n; i++) {
        if (jw_ns_between(clock, gaps[i].start, gaps[i].end) >= threshold_ns) {
            add_window(&j, jw_ns_between(clock, base, gaps[i].start), jw_ns_between(clock, base, gaps[i].end),
                       (int32_t)gaps[i].cpu, 1);
        }
    }
    close_stall(&j);
    return j.found;
}

/* Gaps by length: counts[i] is added to for each of at least bounds_ns[i] that is below bounds_ns[i + 1]; the last bucket
 * has no end. `bounds_ns` rise. */
void jw_analyse_buckets(const jw_clock *clock, const jw_gap *gaps, size_t n, const int64_t *bounds_ns, size_t buckets,
                        uint64_t *counts) {
    for (size_t i = 0; i < n; i++) {
        const int64_t ns = jw_ns_between(clock, gaps[i].start, gaps[i].end);
        size_t bucket = buckets;
        while (bucket > 0 && ns < bounds_ns[bucket - 1]) {
            bucket--;
        }
        if (bucket > 0) {
            counts[bucket - 1]++;
        }
    }
}
