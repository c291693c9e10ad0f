/* A plain hand-off between CPUs 0 and 1, the least that any ring can do, beside a plain ping-pong on the same CPUs:
 * the writer waits 10 µs, takes a stamp, stores it and a sequence number into the next of 8,192 slots; the reader polls
 * that slot and takes a stamp. Prints "ping-pong one way" and "hand-off" as medians in time-stamp ticks. x86 only. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

enum { SLOTS = 8192, MESSAGES = 20000, ROUNDS = 100000, WAIT_TICKS = 26000 };

typedef struct {
    _Alignas(128) _Atomic uint64_t sequence;
    uint64_t stamp;
} slot;

static slot slots[SLOTS];
static uint64_t took[MESSAGES];
static _Alignas(128) _Atomic uint64_t turn;
static _Atomic int ready;

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        perror("sched_setaffinity");
        exit(2);
    }
}

static void *pong(void *unused) {
    (void)unused;
    pin(1);
    for (uint64_t t = 1; t < 2 * ROUNDS; t += 2) {
        while (atomic_load_explicit(&turn, memory_order_acquire) != t) {
        }
        atomic_store_explicit(&turn, t + 1, memory_order_release);
    }
    return NULL;
}

static void *reader(void *unused) {
    (void)unused;
    pin(1);
    atomic_store(&ready, 1);
    for (uint64_t i = 0; i < MESSAGES; i++) {
        slot *from = &slots[i % SLOTS];
        while (atomic_load_explicit(&from->sequence, memory_order_acquire) != i + 1) {
        }
        unsigned aux;
        took[i] = __rdtscp(&aux) - from->stamp;
    }
    return NULL;
}

static int by_size(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double ping(void) {
    pthread_t other;
    pthread_create(&other, NULL, pong, NULL);
    uint64_t begun = 0;
    for (uint64_t t = 1; t < 2 * ROUNDS; t += 2) {
        if (t == ROUNDS / 5 + 1) {
            begun = __rdtsc();
        }
        atomic_store_explicit(&turn, t, memory_order_release);
        while (atomic_load_explicit(&turn, memory_order_acquire) != t + 1) {
        }
    }
    uint64_t ended = __rdtsc();
    pthread_join(other, NULL);
    return (double)(ended - begun) / (2 * ROUNDS - ROUNDS / 5);
}

static void hand_off(void) {
    pthread_t other;
    pthread_create(&other, NULL, reader, NULL);
    while (atomic_load(&ready) == 0) {
    }
    uint64_t last = __rdtsc();
    for (uint64_t i = 0; i < MESSAGES; i++) {
        slot *to = &slots[i % SLOTS];
        while (__rdtsc() - last < WAIT_TICKS) {
        }
        last = __rdtsc();
        to->stamp = last;
        atomic_store_explicit(&to->sequence, i + 1, memory_order_release);
    }
    pthread_join(other, NULL);
}

int main(void) {
    pin(0);
    double one_way = ping();
    hand_off();
    qsort(took, MESSAGES, sizeof took[0], by_size);
    printf("%.1f %llu\n", one_way, (unsigned long long)took[MESSAGES / 2]);
    return 0;
}
