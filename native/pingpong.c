/* Measure the hardware: a line's time between two CPUs, the distance of their clocks, the core's true frequency. */
#include "pingpong.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "threads.h"

#define OVER UINT64_MAX

enum { CHAIN_ADDS = 50000, CHAIN_TRIES = 12, CLOCK_LIMIT_MS = 200, COMES_WITHIN_MS = 1500, STOPS_WITHIN_MS = 200 };

/* Wait until the turn is `wanted` or over. False: over or stopped. */
JW_INLINE bool await_turn(jw_line *line, uint64_t wanted, const _Atomic int *stop) {
    for (;;) {
        uint64_t turn = atomic_load_explicit(&line->turn, memory_order_acquire);
        if (turn == wanted) {
            return true;
        }
        if (turn == OVER || jw_stopped(stop)) {
            return false;
        }
    }
}

void jw_pong_side(jw_line *line, const _Atomic int *stop) {
    for (uint64_t turn = 1; await_turn(line, turn, stop); turn += 2) {
        atomic_store_explicit(&line->turn, turn + 1, memory_order_release);
    }
}

double jw_ping_side(jw_line *line, const jw_clock *clock, uint64_t limit_ticks, const _Atomic int *stop) {
    uint64_t took[JW_PING_BATCHES];
    size_t batches = 0;
    uint64_t turn = 1;
    uint64_t begun = 0;
    bool going = true;
    /* Batch 0 waits for the other side to arrive and is not counted. */
    for (int batch = 0; going && batch <= JW_PING_BATCHES; batch++) {
        uint64_t start = jw_now(clock->source);
        for (int i = 0; going && i < JW_PING_ROUNDS; i++) {
            atomic_store_explicit(&line->turn, turn, memory_order_release);
            going = await_turn(line, turn + 1, stop);
            turn += 2;
        }
        uint64_t end = jw_now(clock->source);
        if (batch == 0) {
            begun = end;
        } else if (going) {
            took[batches++] = end - start;
            going = end - begun < limit_ticks;
        }
    }
    atomic_store_explicit(&line->turn, OVER, memory_order_release);
    if (batches == 0) {
        return -1.0;
    }
    qsort(took, batches, sizeof took[0], jw_by_value);
    return (double)jw_ns(clock, took[batches / 2]) / (2.0 * JW_PING_ROUNDS);
}

void jw_stamp_side(jw_line *line, int source, const _Atomic int *stop) {
    unsigned cpu;
    for (uint64_t turn = 1; await_turn(line, turn, stop); turn += 2) {
        line->stamp = jw_now_ordered(source, &cpu);
        atomic_store_explicit(&line->turn, turn + 1, memory_order_release);
    }
}

/* The shortest round trip bounds the answer best. */
int jw_ask_side(jw_line *line, int source, int rounds, const _Atomic int *stop, jw_offset *out) {
    const uint64_t limit = (uint64_t)CLOCK_LIMIT_MS * (JW_NS_PER_S / 1000);
    uint64_t begun = jw_posix_ns(CLOCK_MONOTONIC), best = UINT64_MAX, turn = 1;
    for (int i = 0; i < rounds; i++, turn += 2) {
        unsigned cpu;
        uint64_t asked = jw_now_ordered(source, &cpu);
        atomic_store_explicit(&line->turn, turn, memory_order_release);
        if (!await_turn(line, turn + 1, stop)) {
            break;
        }
        uint64_t answered = jw_now_ordered(source, &cpu);
        if (answered >= asked && answered - asked < best) {
            best = answered - asked;
            out->offset_ticks = (int64_t)(line->stamp - (asked + best / 2));
            out->bound_ticks = (int64_t)((best + 1) / 2);
        }
        if (jw_posix_ns(CLOCK_MONOTONIC) - begun > limit) {
            break;
        }
    }
    atomic_store_explicit(&line->turn, OVER, memory_order_release);
    return best == UINT64_MAX ? -EIO : 0;
}

/* The data that both threads of a pair share. It is on the heap: a thread that comes too late still looks at it. */
typedef struct {
    jw_line line;
    jw_clock clock;
    jw_offset offset;
    double one_way_ns;
    _Atomic int stop;
    _Atomic int holders; /* both threads and their caller; the last frees */
    int first_cpu, second_cpu;
    int rounds; /* > 0: compare the clocks */
    int first_failed, second_failed;
} two_sides;

static void let_go(two_sides *sides) {
    if (atomic_fetch_sub(&sides->holders, 1) == 1) {
        free(sides);
    }
}

static int place_side(two_sides *sides, int cpu) {
    int failed = jw_place_thread(cpu, 0);
    if (failed != 0) {
        atomic_store(&sides->stop, 1);
    }
    return failed;
}

static void *second_body(void *argument) {
    two_sides *sides = argument;
    sides->second_failed = place_side(sides, sides->second_cpu);
    if (sides->second_failed == 0) {
        if (sides->rounds > 0) {
            jw_stamp_side(&sides->line, sides->clock.source, &sides->stop);
        } else {
            jw_pong_side(&sides->line, &sides->stop);
        }
    }
    let_go(sides);
    return NULL;
}

static void *first_body(void *argument) {
    two_sides *sides = argument;
    sides->first_failed = place_side(sides, sides->first_cpu);
    if (sides->first_failed == 0) {
        if (sides->rounds > 0) {
            sides->first_failed =
                jw_ask_side(&sides->line, sides->clock.source, sides->rounds, &sides->stop, &sides->offset);
        } else {
            uint64_t limit = jw_clock_ticks(&sides->clock, (uint64_t)CLOCK_LIMIT_MS * (JW_NS_PER_S / 1000));
            sides->one_way_ns = jw_ping_side(&sides->line, &sides->clock, limit, &sides->stop);
            sides->first_failed = sides->one_way_ns < 0 ? -EIO : 0;
        }
    }
    let_go(sides);
    return NULL;
}

static struct timespec wall_time_in(int ms) {
    const uint64_t at = jw_posix_ns(CLOCK_REALTIME) + (uint64_t)ms * (JW_NS_PER_S / 1000);
    return (struct timespec){.tv_sec = (time_t)(at / JW_NS_PER_S), .tv_nsec = (long)(at % JW_NS_PER_S)};
}

/* A thread that does not end in time is left to itself: when it comes, it finds that it was stopped. */
static bool joined(pthread_t thread, const struct timespec *until) {
    if (pthread_timedjoin_np(thread, NULL, until) == 0) {
        return true;
    }
    pthread_detach(thread);
    return false;
}

static int run_sides(two_sides *sides) {
    pthread_t first, second;
    int failed = jw_thread_create(&second, second_body, sides);
    if (failed != 0) {
        atomic_fetch_sub(&sides->holders, 2);
        return failed;
    }
    failed = jw_thread_create(&first, first_body, sides);
    if (failed != 0) {
        atomic_store(&sides->stop, 1);
        let_go(sides);
    }
    struct timespec until = wall_time_in(COMES_WITHIN_MS);
    if (failed == 0 && pthread_timedjoin_np(first, NULL, &until) != 0) {
        /* Either it did not come, or it waits for the other one and ends now. */
        failed = -ETIMEDOUT;
        atomic_store(&sides->stop, 1);
        until = wall_time_in(STOPS_WITHIN_MS);
        (void)joined(first, &until);
    }
    if (!joined(second, &until)) {
        return -ETIMEDOUT;
    }
    if (failed != 0) {
        return failed;
    }
    return sides->second_failed != 0 ? sides->second_failed : sides->first_failed;
}

static two_sides *two_sides_new(const jw_clock *clock, int first_cpu, int second_cpu, int rounds) {
    two_sides *sides = aligned_alloc(JW_APART, sizeof *sides);
    if (sides != NULL) {
        memset(sides, 0, sizeof *sides);
        sides->clock = *clock;
        sides->holders = 3;
        sides->first_cpu = first_cpu;
        sides->second_cpu = second_cpu;
        sides->rounds = rounds;
    }
    return sides;
}

/* `offset` for rounds > 0, else `one_way_ns`; the other one is NULL. */
static int measure_pair(const jw_clock *clock, int first_cpu, int second_cpu, int rounds, jw_offset *offset,
                        double *one_way_ns) {
    two_sides *sides = two_sides_new(clock, first_cpu, second_cpu, rounds);
    if (sides == NULL) {
        return -ENOMEM;
    }
    const int failed = run_sides(sides);
    if (failed == 0 && offset != NULL) {
        *offset = sides->offset;
    }
    if (failed == 0 && one_way_ns != NULL) {
        *one_way_ns = sides->one_way_ns;
    }
    let_go(sides);
    return failed;
}

int jw_clock_offset(int source, int first_cpu, int second_cpu, int rounds, jw_offset *out) {
    const jw_clock clock = {.source = source};
    return measure_pair(&clock, first_cpu, second_cpu, rounds, out, NULL);
}

int jw_ping_pong(const jw_clock *clock, int first_cpu, int second_cpu, double *one_way_ns) {
    return measure_pair(clock, first_cpu, second_cpu, 0, NULL, one_way_ns);
}

/* Each addition needs the one before, and a core does one a cycle: so many additions took so many cycles. Registers are
 * added, because some cores fold additions of constants while renaming. The fastest of several tries is the one that
 * was not interrupted. */
uint64_t jw_core_hz(const jw_clock *clock) {
    uint64_t best = UINT64_MAX;
    for (int attempt = 0; attempt < CHAIN_TRIES; attempt++) {
        uint64_t sum = 0, one = 1, left = CHAIN_ADDS / 10;
        unsigned cpu;
        uint64_t start = jw_now_ordered(clock->source, &cpu);
#if defined(__x86_64__)
        /* The loop's own counter runs beside the chain of ten and does not lengthen it. */
        __asm__ volatile("1:\n\t"
                         "add %2, %0\n\tadd %2, %0\n\tadd %2, %0\n\tadd %2, %0\n\tadd %2, %0\n\t"
                         "add %2, %0\n\tadd %2, %0\n\tadd %2, %0\n\tadd %2, %0\n\tadd %2, %0\n\t"
                         "sub $1, %1\n\tjnz 1b"
                         : "+r"(sum), "+r"(left)
                         : "r"(one)
                         : "cc");
#elif defined(__aarch64__)
        __asm__ volatile("1:\n\t"
                         "add %0, %0, %2\n\tadd %0, %0, %2\n\tadd %0, %0, %2\n\tadd %0, %0, %2\n\tadd %0, %0, %2\n\t"
                         "add %0, %0, %2\n\tadd %0, %0, %2\n\tadd %0, %0, %2\n\tadd %0, %0, %2\n\tadd %0, %0, %2\n\t"
                         "subs %1, %1, #1\n\tb.ne 1b"
                         : "+r"(sum), "+r"(left)
                         : "r"(one)
                         : "cc");
#else
        return 0;
#endif
        uint64_t took = jw_now_ordered(clock->source, &cpu) - start;
        best = took < best ? took : best;
    }
    return best == 0 || best == UINT64_MAX ? 0 : (uint64_t)((jw_u128)CHAIN_ADDS * clock->rate_hz / best);
}
