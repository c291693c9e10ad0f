/* What the hardware needs for one line between two CPUs, how far their clocks are apart, how fast the core really runs. */
#include "pingpong.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "threads.h"

#define OVER UINT64_MAX

enum { CHAIN_ADDS = 50000, CHAIN_TRIES = 12, CLOCK_LIMIT_MS = 200 };

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

typedef struct {
    jw_line *line;
    const jw_clock *clock;
    _Atomic int stop;
    int cpu;
    bool stamps;
    int failed;
} second_side;

static void *second_body(void *argument) {
    second_side *side = argument;
    side->failed = jw_place_thread(side->cpu, 0);
    if (side->failed != 0) {
        atomic_store(&side->stop, 1);
        return NULL;
    }
    if (side->stamps) {
        jw_stamp_side(side->line, side->clock->source, &side->stop);
    } else {
        jw_pong_side(side->line, &side->stop);
    }
    return NULL;
}

typedef struct {
    second_side *side;
    int cpu;
    int rounds;
    jw_offset *offset;
    double *one_way_ns;
    int failed;
} first_side;

static void *first_body(void *argument) {
    first_side *first = argument;
    first->failed = jw_place_thread(first->cpu, 0);
    if (first->failed != 0) {
        atomic_store(&first->side->stop, 1);
    } else if (first->offset != NULL) {
        second_side *other = first->side;
        first->failed = jw_ask_side(other->line, other->clock->source, first->rounds, &other->stop, first->offset);
    } else {
        uint64_t limit = jw_clock_ticks(first->side->clock, (uint64_t)CLOCK_LIMIT_MS * (JW_NS_PER_S / 1000));
        *first->one_way_ns = jw_ping_side(first->side->line, first->side->clock, limit, &first->side->stop);
        first->failed = *first->one_way_ns < 0 ? -EIO : 0;
    }
    return NULL;
}

static int run_sides(first_side *first, second_side *second) {
    pthread_t a, b;
    int failed = jw_thread_create(&b, second_body, second);
    if (failed != 0) {
        return failed;
    }
    failed = jw_thread_create(&a, first_body, first);
    if (failed != 0) {
        atomic_store(&second->stop, 1);
    } else {
        pthread_join(a, NULL);
    }
    pthread_join(b, NULL);
    if (failed != 0) {
        return failed;
    }
    return second->failed != 0 ? second->failed : first->failed;
}

/* The second CPU's clock minus the first's, by a two-way ping-pong between two pinned threads of its own. 0 or -errno. */
int jw_clock_offset(int source, int first_cpu, int second_cpu, int rounds, jw_offset *out) {
    jw_line line;
    memset(&line, 0, sizeof line);
    jw_clock clock = {.source = source};
    second_side second = {.line = &line, .clock = &clock, .cpu = second_cpu, .stamps = true};
    first_side first = {.side = &second, .cpu = first_cpu, .rounds = rounds, .offset = out};
    return run_sides(&first, &second);
}

/* Median one-way transfer of a line between two CPUs, with two threads of its own. 0 or -errno. */
int jw_ping_pong(const jw_clock *clock, int first_cpu, int second_cpu, double *one_way_ns) {
    jw_line line;
    memset(&line, 0, sizeof line);
    second_side second = {.line = &line, .clock = clock, .cpu = second_cpu};
    first_side first = {.side = &second, .cpu = first_cpu, .one_way_ns = one_way_ns};
    return run_sides(&first, &second);
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
