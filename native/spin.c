/* The sampler: one thread reads the clock without pause, and every gap between two readings is time that it did not have.
 * With a duty below 100 % it pauses in between, asleep or busily; those gaps are its own doing and are not counted. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "clock.h"
#include "spin.h"
#include "threads.h"

enum { READINGS_A_CHECK = 64, IDLE_GAPS = 256, MOST_SMALL_TICKS = 1 << 20, CPUS = 1 << 16 };

struct jw_spin {
    jw_spin_config config;
    jw_gap_sink block;
    jw_gap_sink idle; /* between blocks the loop goes on, so that neither frequency nor idle state changes */
    uint64_t *readings_by_cpu;
    jw_latch latch;
    pthread_t thread;
    atomic_bool started; /* stopped from another thread while a block is asked for */
    int tid;
    int failed;
    uint64_t most_readings;
    uint64_t duration_ticks;
    jw_spin_result result;
    _Alignas(JW_APART) _Atomic int stop;
    _Atomic uint32_t asked;
};

/* When to pause next, in ticks; UINT64_MAX: never. */
typedef struct {
    const jw_spin_config *config;
    const _Atomic int *stop;
    uint64_t busy_until;
    uint64_t end; /* no sleep beyond */
    uint64_t asleep_ticks;
    uint64_t sleeps;
} jw_duty;

JW_INLINE jw_duty begin_duty(const jw_spin *spin, uint64_t start, uint64_t duration) {
    const jw_spin_config *config = &spin->config;
    return (jw_duty){.config = config,
                     .stop = &spin->stop,
                     .busy_until = config->busy_ticks > 0 ? start + config->busy_ticks : UINT64_MAX,
                     .end = duration < UINT64_MAX - start ? start + duration : UINT64_MAX};
}

/* Until the clock says `due`. The kernel's clock is asked each time how far that is, so the two cannot drift apart; the
 * time is absolute, so a sleep that a stop interrupts does not become longer. */
static void sleep_until(const jw_clock *clock, uint64_t now, uint64_t due) {
    const uint64_t ns = jw_posix_ns(CLOCK_MONOTONIC) + jw_ns(clock, due - now);
    const struct timespec when = {.tv_sec = (time_t)(ns / JW_NS_PER_S), .tv_nsec = (long)(ns % JW_NS_PER_S)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR) {
    }
}

/* The same without giving the CPU away, and without a record of what happens meanwhile. */
static void wait_until(const _Atomic int *stop, int source, uint64_t due) {
    while (jw_now(source) < due && !jw_stopped(stop)) {
        jw_relax();
    }
}

/* Pause for the rest of a period, or until the end. Who wakes late still samples for as long as was asked: the wake-up
 * comes on top of the pause. Gives the first reading after it, and puts down where it was made. */
static __attribute__((noinline)) uint64_t rest(jw_duty *duty, jw_gap_sink *sink, int source, uint64_t last) {
    if (last >= duty->end) {
        return last;
    }
    jw_end_sampling(sink);
    const uint64_t pause = duty->config->period_ticks - duty->config->busy_ticks;
    const uint64_t due = duty->end - last > pause ? last + pause : duty->end;
    if (duty->config->pause_busily != 0) {
        wait_until(duty->stop, source, due);
    } else {
        sleep_until(&duty->config->clock, last, due);
    }
    const uint64_t woken = jw_now_ordered(source, &sink->cpu);
    duty->busy_until = woken + duty->config->busy_ticks;
    duty->asleep_ticks += woken - last;
    duty->sleeps++;
    return woken;
}

static bool make_sink(jw_gap_sink *sink, const jw_spin_config *config, uint64_t room) {
    sink->small_ticks = config->small_ticks;
    sink->room = room;
    sink->table = jw_map((config->small_ticks + 1) * sizeof *sink->table);
    jw_begin_sampling(sink);
    sink->gaps = jw_map(room * sizeof *sink->gaps);
    return sink->table != NULL && sink->gaps != NULL;
}

static void free_sink(jw_gap_sink *sink) {
    jw_unmap(sink->table, (sink->small_ticks + 1) * sizeof *sink->table);
    jw_unmap(sink->gaps, sink->room * sizeof *sink->gaps);
}

/* NULL with *error = -EINVAL or -ENOMEM. */
jw_spin *jw_spin_new(const jw_spin_config *config, int *error) {
    *error = -EINVAL;
    if (config->small_ticks == 0 || config->small_ticks > MOST_SMALL_TICKS || config->most_gaps <= READINGS_A_CHECK ||
        config->most_gaps > UINT32_MAX || !jw_clock_usable(config->clock.source) || config->clock.mult == 0) {
        return NULL;
    }
    if (config->busy_ticks > 0 && (config->busy_ticks >= config->period_ticks ||
                                   jw_ns(&config->clock, config->period_ticks) > JW_LONGEST_INTERVAL_NS)) {
        return NULL;
    }
    *error = -ENOMEM;
    jw_spin *spin = jw_map(sizeof *spin);
    if (spin == NULL) {
        return NULL;
    }
    spin->config = *config;
    jw_latch_init(&spin->latch);
    bool complete = make_sink(&spin->block, config, config->most_gaps);
    complete = make_sink(&spin->idle, config, IDLE_GAPS) && complete;
    spin->readings_by_cpu = jw_map(CPUS * sizeof *spin->readings_by_cpu);
    if (!complete || spin->readings_by_cpu == NULL) {
        jw_spin_free(spin);
        return NULL;
    }
    *error = 0;
    return spin;
}

JW_INLINE void keep_going(jw_spin *spin, int source, uint32_t answered) {
    jw_duty duty = begin_duty(spin, jw_now(source), UINT64_MAX);
    while (!jw_stopped(&spin->stop) && atomic_load_explicit(&spin->asked, memory_order_acquire) == answered) {
        spin->idle.used = 0;
        uint64_t last = jw_sample(&spin->idle, source, jw_now(source), READINGS_A_CHECK);
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

JW_INLINE void run_block(jw_spin *spin, int source) {
    jw_gap_sink *sink = &spin->block;
    const uint64_t duration = spin->duration_ticks > 0 ? spin->duration_ticks : UINT64_MAX;
    const uint64_t readings = spin->most_readings > 0 ? spin->most_readings : UINT64_MAX;
    jw_usage at_start;
    clear_sink(sink, spin->readings_by_cpu);
    jw_thread_usage(&at_start);
    const uint64_t start = jw_now_ordered(source, &sink->cpu);
    uint64_t last = start;
    jw_duty duty = begin_duty(spin, start, duration);
    while (last - start < duration && sink->readings < readings && sink->used + READINGS_A_CHECK <= sink->room &&
           !jw_stopped(&spin->stop)) {
        last = jw_sample(sink, source, last, READINGS_A_CHECK);
        if (__builtin_expect(last >= duty.busy_until, 0)) {
            last = rest(&duty, sink, source, last);
        }
    }
    jw_usage_since(&at_start, &spin->result.usage);
    jw_end_sampling(sink);
    spin->result.start = start;
    spin->result.end = last;
    spin->result.readings = sink->readings;
    spin->result.gaps = sink->used;
    spin->result.negative = sink->negative;
    spin->result.asleep_ticks = duty.asleep_ticks;
    spin->result.sleeps = duty.sleeps;
    spin->result.core_hz = jw_core_hz(&spin->config.clock);
}

JW_INLINE void sampler(jw_spin *spin, int source) {
    for (uint32_t answered = 0;; answered++) {
        keep_going(spin, source, answered);
        if (jw_stopped(&spin->stop)) {
            return;
        }
        run_block(spin, source);
        jw_nap();
        jw_latch_count_down(&spin->latch);
    }
}

static void *sampler_body(void *argument) {
    jw_spin *spin = argument;
    jw_name_thread("sampler");
    spin->tid = jw_thread_id();
    spin->failed = jw_place_thread(spin->config.cpu, spin->config.fifo_priority);
    bool placed = spin->failed == 0;
    jw_latch_count_down(&spin->latch);
    if (!placed) {
        return NULL;
    }
    switch (spin->config.clock.source) {
    case JW_CLOCK_TSC:
        sampler(spin, JW_CLOCK_TSC);
        break;
    case JW_CLOCK_CNTVCT:
        sampler(spin, JW_CLOCK_CNTVCT);
        break;
    default:
        sampler(spin, JW_CLOCK_MONOTONIC);
    }
    return NULL;
}

/* Start sampling, unrecorded. 0, or -errno when the thread could not be placed. */
int jw_spin_start(jw_spin *spin) {
    jw_latch_arm(&spin->latch, 1);
    int failed = jw_thread_create(&spin->thread, sampler_body, spin);
    if (failed != 0) {
        return failed;
    }
    spin->started = true;
    jw_latch_wait(&spin->latch);
    if (spin->failed != 0) {
        jw_spin_stop(spin);
    }
    return spin->failed;
}

int jw_spin_tid(const jw_spin *spin) {
    return spin->tid;
}

/* One block: ends by time, by readings, or when the log of gaps is full. Sleeps meanwhile. */
int jw_spin_block(jw_spin *spin, uint64_t readings, uint64_t duration_ticks, jw_spin_result *result) {
    if (jw_stopped(&spin->stop) || !spin->started) {
        return -ECANCELED;
    }
    spin->most_readings = readings;
    spin->duration_ticks = duration_ticks;
    memset(&spin->result, 0, sizeof spin->result);
    jw_latch_arm(&spin->latch, 1);
    atomic_fetch_add_explicit(&spin->asked, 1, memory_order_release);
    jw_latch_wait(&spin->latch);
    if (jw_stopped(&spin->stop)) {
        return -ECANCELED;
    }
    *result = spin->result;
    return 0;
}

const uint64_t *jw_spin_table(const jw_spin *spin) {
    return spin->block.table;
}

const jw_gap *jw_spin_gaps(const jw_spin *spin) {
    return spin->block.gaps;
}

const uint64_t *jw_spin_readings_by_cpu(const jw_spin *spin) {
    return spin->readings_by_cpu;
}

int jw_spin_lock_arrays(const jw_spin *spin) {
    int failed = mlock(spin, sizeof *spin);
    failed |= mlock(spin->block.table, (spin->block.small_ticks + 1) * sizeof *spin->block.table);
    failed |= mlock(spin->block.gaps, spin->block.room * sizeof *spin->block.gaps);
    failed |= mlock(spin->idle.table, (spin->idle.small_ticks + 1) * sizeof *spin->idle.table);
    return failed != 0 ? -errno : 0;
}

void jw_spin_stop(jw_spin *spin) {
    atomic_store(&spin->stop, 1);
    if (spin->started) {
        pthread_join(spin->thread, NULL);
        spin->started = false;
    }
    jw_latch_close(&spin->latch);
}

void jw_spin_free(jw_spin *spin) {
    if (spin == NULL) {
        return;
    }
    jw_spin_stop(spin);
    jw_latch_destroy(&spin->latch);
    free_sink(&spin->block);
    free_sink(&spin->idle);
    jw_unmap(spin->readings_by_cpu, CPUS * sizeof *spin->readings_by_cpu);
    jw_unmap(spin, sizeof *spin);
}
