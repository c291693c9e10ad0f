/* The sampler: one thread reads the clock without pause, and every gap between two readings is time that it did not have.
 * With a duty below 100 % it pauses in between, asleep or busily; those gaps are its own doing and are not counted. */
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "spin.h"
#include "workload.h"

enum { READINGS_A_CHECK = 64, IDLE_GAPS = 256, MOST_SMALL_TICKS = 1 << 20, CPUS = 1 << 16 };
enum { LEAST_CHASE = 1 << 12, MOST_CHASE = 1 << 30, CHASE_SEED = 20151 };

typedef struct {
    jw_workload base;
    jw_spin_options options;
    jw_gap_sink block;
    jw_gap_sink idle; /* between blocks the loop goes on, so that neither frequency nor idle state changes */
    uint64_t *readings_by_cpu;
    const jw_chase_line *at; /* where the chase goes on; NULL: there is none */
} jw_spin;

/* When to pause next, in ticks; UINT64_MAX: never. */
typedef struct {
    const jw_spin *spin;
    uint64_t busy_until;
    uint64_t end; /* no sleep beyond */
    uint64_t asleep_ticks;
    uint64_t sleeps;
} jw_duty;

JW_INLINE jw_duty begin_duty(const jw_spin *spin, uint64_t start, uint64_t duration) {
    const uint64_t busy_ticks = spin->options.busy_ticks;
    return (jw_duty){.spin = spin,
                     .busy_until = busy_ticks > 0 ? start + busy_ticks : UINT64_MAX,
                     .end = duration < UINT64_MAX - start ? start + duration : UINT64_MAX};
}

/* Until the clock says `due`. The kernel's clock is asked each time how far that is, so the two cannot drift apart. */
static void sleep_until(const jw_clock *clock, uint64_t now, uint64_t due) {
    (void)jw_sleep_until_ns(jw_posix_ns(CLOCK_MONOTONIC) + jw_ns(clock, due - now));
}

/* The same without giving the CPU away, and without a record of what happens meanwhile. */
static void wait_until(const _Atomic int *stop, int source, uint64_t due) {
    while (jw_now(source) < due && !jw_stopped(stop)) {
        jw_relax();
    }
}

/* Pause for the rest of a period, or until the end. A thread that wakes late still samples for as long as was asked: the
 * time of the wake-up comes on top of the pause. Gives the first reading after it, and puts down where it was made. */
static __attribute__((noinline)) uint64_t rest(jw_duty *duty, jw_gap_sink *sink, int source, uint64_t last) {
    if (last >= duty->end) {
        return last;
    }
    jw_end_sampling(sink);
    const jw_spin *spin = duty->spin;
    const uint64_t pause = spin->options.period_ticks - spin->options.busy_ticks;
    const uint64_t due = duty->end - last > pause ? last + pause : duty->end;
    if (spin->options.pause_busily != 0) {
        wait_until(&spin->base.stop, source, due);
    } else {
        sleep_until(&spin->base.config.clock, last, due);
    }
    const uint64_t woken = jw_now_ordered(source, &sink->cpu);
    duty->busy_until = woken + spin->options.busy_ticks;
    duty->asleep_ticks += woken - last;
    duty->sleeps++;
    return woken;
}

/* The next readings of a check, with the chase where there is one. */
JW_INLINE uint64_t sample_some(jw_spin *spin, jw_gap_sink *sink, int source, uint64_t last) {
    return spin->at == NULL ? jw_sample(sink, source, last, READINGS_A_CHECK)
                            : jw_sample_at(sink, source, last, READINGS_A_CHECK, &spin->at);
}

JW_INLINE void keep_going(jw_spin *spin, int source, uint32_t answered) {
    jw_duty duty = begin_duty(spin, jw_now(source), UINT64_MAX);
    while (!jw_stopped(&spin->base.stop) && !jw_block_asked(&spin->base, answered)) {
        spin->idle.used = 0;
        uint64_t last = sample_some(spin, &spin->idle, source, jw_now(source));
        if (last >= duty.busy_until) {
            rest(&duty, &spin->idle, source, last);
        }
    }
}

static void clear_sink(jw_gap_sink *sink, uint64_t *readings_by_cpu) {
    memset(sink->table, 0, (sink->small_ticks + 1) * sizeof *sink->table);
    memset(readings_by_cpu, 0, CPUS * sizeof *readings_by_cpu);
    jw_begin_sampling(sink);
    sink->used = 0;
    sink->readings = 0;
    sink->negative = 0;
    sink->counted = 0;
    sink->readings_by_cpu = readings_by_cpu;
}

/* The length of a block after new gaps in its log: the first long one ends it soon. `seen`: the gaps that were looked at
 * before. */
static __attribute__((noinline, cold)) uint64_t after_gaps(const jw_spin *spin, uint64_t *seen, uint64_t start,
                                                           uint64_t duration) {
    const jw_spin_options *options = &spin->options;
    for (; *seen < spin->block.used; (*seen)++) {
        const jw_gap *gap = &spin->block.gaps[*seen];
        const uint64_t until = gap->end - start + options->tail_ticks;
        if (options->stop_ticks > 0 && gap->end - gap->start >= options->stop_ticks && until < duration) {
            duration = until;
        }
    }
    return duration;
}

JW_INLINE void run_block(jw_spin *spin, int source) {
    jw_gap_sink *sink = &spin->block;
    const uint64_t readings = spin->base.request.count;
    uint64_t duration = spin->base.request.duration_ticks, seen = 0;
    clear_sink(sink, spin->readings_by_cpu);
    jw_usage_begin(&spin->base, 0);
    const uint64_t start = jw_now_ordered(source, &sink->cpu);
    uint64_t last = start;
    jw_duty duty = begin_duty(spin, start, duration);
    while (last - start < duration && sink->readings < readings && sink->used + READINGS_A_CHECK <= sink->room &&
           !jw_stopped(&spin->base.stop)) {
        last = sample_some(spin, sink, source, last);
        if (__builtin_expect(last >= duty.busy_until, 0)) {
            last = rest(&duty, sink, source, last);
        }
        if (__builtin_expect(sink->used > seen, 0)) {
            duration = after_gaps(spin, &seen, start, duration);
        }
    }
    jw_usage_end(&spin->base, 0);
    jw_end_sampling(sink);
    spin->base.result.count = sink->readings;
    spin->base.result.core_hz = jw_core_hz(&spin->base.config.clock);
    spin->base.result.spin = (jw_spin_result){.start = start,
                                              .end = last,
                                              .gaps = sink->used,
                                              .negative = sink->negative,
                                              .asleep_ticks = duty.asleep_ticks,
                                              .sleeps = duty.sleeps};
}

JW_INLINE void sampler(jw_spin *spin, int source) {
    for (uint32_t answered = 0;; answered++) {
        keep_going(spin, source, answered);
        if (jw_stopped(&spin->base.stop)) {
            return;
        }
        run_block(spin, source);
        jw_nap();
        jw_block_done(&spin->base);
    }
}

static void run_sampler(jw_workload *workload) {
    JW_PER_CLOCK(workload->config.clock.source, source, sampler((jw_spin *)workload, source))
}

static const jw_kind spin_kind = {.bytes = sizeof(jw_spin), .parts = {{"sampler", run_sampler}}};

static bool sensible(const jw_workload_config *config, const jw_spin_options *options) {
    return options->small_ticks > 0 && options->small_ticks <= MOST_SMALL_TICKS && config->most > READINGS_A_CHECK &&
           (options->chase_bytes == 0 || (options->chase_bytes >= LEAST_CHASE && options->chase_bytes <= MOST_CHASE)) &&
           (options->busy_ticks == 0 || (options->busy_ticks < options->period_ticks &&
                                         jw_ns(&config->clock, options->period_ticks) <= JW_LONGEST_INTERVAL_NS));
}

static void make_sink(jw_spin *spin, jw_gap_sink *sink, uint64_t room) {
    sink->small_ticks = spin->options.small_ticks;
    sink->room = room;
    sink->table = jw_workload_map(&spin->base, (sink->small_ticks + 1) * sizeof *sink->table);
    sink->gaps = jw_workload_map(&spin->base, room * sizeof *sink->gaps);
    jw_begin_sampling(sink);
}

static int make_chase(jw_spin *spin, size_t lines) {
    jw_chase_line *first = jw_workload_map(&spin->base, lines * sizeof *first);
    spin->at = first;
    return first == NULL ? -ENOMEM : jw_chase_make(first, lines, CHASE_SEED);
}

jw_workload *jw_spin_new(const jw_workload_config *config, const jw_spin_options *options, int *error) {
    *error = -EINVAL;
    jw_spin *spin = sensible(config, options) ? jw_workload_make(&spin_kind, config, 1, error) : NULL;
    if (spin == NULL) {
        return NULL;
    }
    spin->options = *options;
    make_sink(spin, &spin->block, config->most);
    make_sink(spin, &spin->idle, IDLE_GAPS);
    spin->readings_by_cpu = jw_workload_map(&spin->base, CPUS * sizeof *spin->readings_by_cpu);
    const int failed = options->chase_bytes > 0 ? make_chase(spin, options->chase_bytes / sizeof(jw_chase_line)) : 0;
    return jw_workload_made(&spin->base, failed, error);
}

const uint64_t *jw_spin_table(const jw_workload *spin) {
    return ((const jw_spin *)spin)->block.table;
}

const jw_gap *jw_spin_gaps(const jw_workload *spin) {
    return ((const jw_spin *)spin)->block.gaps;
}

const uint64_t *jw_spin_readings_by_cpu(const jw_workload *spin) {
    return ((const jw_spin *)spin)->readings_by_cpu;
}
