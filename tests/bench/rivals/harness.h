/* The harness of the league's rivals in C and C++: two pinned threads, one message of 64 bytes every interval, stamped when
 * it is ready (before it is copied into the queue) and when all of it has been read. A rival defines before it includes
 * this: queue_make(), queue_push(const message *) and queue_pop(message *); push and pop return 0 where there is no room, or
 * nothing. Prints the percentiles as JSON. */
#ifndef RIVALS_HARNESS_H
#define RIVALS_HARNESS_H

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

enum { SLOTS = 65536, WARM = 20000, WORDS = 8 };

typedef struct {
    uint64_t words[WORDS]; /* the first one is the sequence number */
} message;

static void queue_make(void);
static int queue_push(const message *m);
static int queue_pop(message *m);

static uint64_t *ready_at, *received_at;
static uint64_t messages, interval_ticks, checked;
static volatile int consumer_there;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static double ticks_per_ns(void) {
    uint64_t ns = now_ns(), ticks = __rdtsc();
    while (now_ns() - ns < 200000000u) {
    }
    return (double)(__rdtsc() - ticks) / (double)(now_ns() - ns);
}

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0) {
        fprintf(stderr, "CPU %d cannot be used\n", cpu);
        exit(2);
    }
}

static void *consume(void *cpu) {
    pin(*(int *)cpu);
    consumer_there = 1;
    for (uint64_t i = 0; i < messages; i++) {
        message m;
        while (!queue_pop(&m)) {
        }
        __asm__ volatile("" ::"r"(&m) : "memory"); /* all of it is loaded before the clock is read */
        unsigned cpu_of_tsc;
        received_at[i] = __rdtscp(&cpu_of_tsc);
        if (m.words[0] != i) {
            fprintf(stderr, "message %llu came as %llu\n", (unsigned long long)m.words[0], (unsigned long long)i);
            exit(2);
        }
        for (int w = 1; w < WORDS; w++) {
            checked ^= m.words[w] + (uint64_t)w;
        }
    }
    return NULL;
}

static void *produce(void *cpu) {
    pin(*(int *)cpu);
    while (!consumer_there) {
    }
    message m;
    memset(&m, 7, sizeof m);
    uint64_t last = __rdtsc();
    for (uint64_t i = 0; i < messages; i++) {
        while (__rdtsc() - last < interval_ticks) {
        }
        m.words[0] = i;
        __asm__ volatile("" ::"r"(&m) : "memory");
        ready_at[i] = __rdtsc();
        while (!queue_push(&m)) {
        }
        last = __rdtsc();
    }
    return NULL;
}

static int by_value(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: %s PRODUCER_CPU CONSUMER_CPU MESSAGES INTERVAL_NS\n", argv[0]);
        return 2;
    }
    int cpus[2] = {atoi(argv[1]), atoi(argv[2])};
    const double rate = ticks_per_ns();
    messages = strtoull(argv[3], NULL, 10) + WARM;
    interval_ticks = (uint64_t)(strtod(argv[4], NULL) * rate);
    ready_at = (uint64_t *)malloc(messages * sizeof *ready_at);
    received_at = (uint64_t *)malloc(messages * sizeof *received_at);
    if (ready_at == NULL || received_at == NULL) {
        return 2;
    }
    memset(ready_at, 1, messages * sizeof *ready_at); /* touched before the run */
    memset(received_at, 1, messages * sizeof *received_at);
    queue_make();
    pthread_t consumer, producer;
    if (pthread_create(&consumer, NULL, consume, &cpus[1]) || pthread_create(&producer, NULL, produce, &cpus[0])) {
        return 2;
    }
    pthread_join(producer, NULL);
    pthread_join(consumer, NULL);
    const uint64_t count = messages - WARM;
    uint64_t *transit = received_at; /* in its place, from the first recorded one on */
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t from = ready_at[WARM + i], to = received_at[WARM + i];
        transit[i] = to > from ? to - from : 0;
    }
    qsort(transit, count, sizeof *transit, by_value);
    static const char *names[] = {"50", "90", "99", "99.9", "99.99"};
    printf("{\"clock\": \"tsc\", \"count\": %llu, \"min\": %.1f", (unsigned long long)count, (double)transit[0] / rate);
    for (size_t p = 0; p < sizeof names / sizeof names[0]; p++) {
        const uint64_t at = (uint64_t)((double)count * strtod(names[p], NULL) / 100.0);
        printf(", \"p%s\": %.1f", names[p], (double)transit[at < count ? at : count - 1] / rate);
    }
    printf(", \"max\": %.1f}\n", (double)transit[count - 1] / rate);
    return 0;
}

#endif
