/* Spinners: one thread a CPU, busy for a while, asleep for a while, as a busy desktop would be. */
#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "threads.h"

typedef struct {
    jw_spinners *all;
    pthread_t thread;
    int cpu;
    int failed;
} spinner;

struct jw_spinners {
    _Atomic int stop;
    uint64_t busy_ns;
    uint64_t idle_ns;
    jw_meeting meeting;
    size_t n;
    spinner each[];
};

static void sleep_ns(uint64_t ns) {
    struct timespec nap = {.tv_sec = (time_t)(ns / JW_NS_PER_S), .tv_nsec = (long)(ns % JW_NS_PER_S)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
}

static void *spinner_body(void *argument) {
    spinner *self = argument;
    jw_spinners *all = self->all;
    jw_name_thread("spinner");
    self->failed = jw_place_thread(self->cpu, 0);
    bool placed = self->failed == 0;
    jw_meeting_report(&all->meeting);
    while (placed && !jw_stopped(&all->stop)) {
        uint64_t start = jw_posix_ns(CLOCK_MONOTONIC);
        while (jw_posix_ns(CLOCK_MONOTONIC) - start < all->busy_ns && !jw_stopped(&all->stop)) {
        }
        sleep_ns(all->idle_ns);
    }
    return NULL;
}

static void join_first(jw_spinners *all, size_t n) {
    atomic_store(&all->stop, 1);
    for (size_t i = 0; i < n; i++) {
        pthread_join(all->each[i].thread, NULL);
    }
}

static void release(jw_spinners *all) {
    jw_meeting_destroy(&all->meeting);
    free(all);
}

/* One pinned thread for each of `cpus`; NULL with *error = -errno when one could not be started or pinned. */
jw_spinners *jw_spinners_start(const int32_t *cpus, size_t n, uint64_t busy_ns, uint64_t idle_ns, int *error) {
    const uint64_t longest_ns = JW_NS_PER_S;
    *error = -EINVAL;
    if (n == 0 || n > 65536 || busy_ns > longest_ns || idle_ns > longest_ns) {
        return NULL;
    }
    *error = -ENOMEM;
    jw_spinners *all = calloc(1, sizeof *all + n * sizeof all->each[0]);
    if (all == NULL) {
        return NULL;
    }
    all->busy_ns = busy_ns;
    all->idle_ns = idle_ns;
    all->n = n;
    jw_meeting_init(&all->meeting);
    jw_meeting_expect(&all->meeting, (int)n);
    *error = 0;
    size_t started = 0;
    for (; started < n && *error == 0; started++) {
        spinner *one = &all->each[started];
        one->all = all;
        one->cpu = cpus[started];
        *error = jw_thread_create(&one->thread, spinner_body, one);
    }
    if (*error != 0) {
        join_first(all, started - 1);
        release(all);
        return NULL;
    }
    jw_meeting_wait(&all->meeting);
    for (size_t i = 0; i < n; i++) {
        if (all->each[i].failed != 0) {
            *error = all->each[i].failed;
        }
    }
    if (*error != 0) {
        jw_spinners_stop(all);
        return NULL;
    }
    return all;
}

void jw_spinners_stop(jw_spinners *all) {
    if (all != NULL) {
        join_first(all, all->n);
        release(all);
    }
}
