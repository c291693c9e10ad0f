/* One thread in a process of its own: it does what the thread would do, in the same memory, and it ends when its owner
 * ends. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "clock.h"
#include "threads.h"

#if defined(__SANITIZE_THREAD__)
enum { THREAD_SANITIZER = 1 };
#else
enum { THREAD_SANITIZER = 0 };
#endif

enum { RECORDS = 64, MOST = 4000, INTERVAL_NS = 20000, PATIENCE_MS = 20000 };

static const jw_clock ns_clock = {
    .source = JW_CLOCK_MONOTONIC, .rate_hz = 1000000000, .mult = UINT64_C(1) << JW_CLOCK_SHIFT};

static uint64_t records[RECORDS * JW_RECORD_BYTES / sizeof(uint64_t)];

static jw_workload *made(jw_workload *(*make)(const jw_workload_config *, int *), int thread) {
    jw_workload_config config = {.clock = ns_clock, .cpu = {-1, -1, -1}, .most = MOST, .interval_ns = INTERVAL_NS};
    config.apart[thread] = 1;
    int error;
    jw_workload *workload = make(&config, &error);
    CHECK(workload != NULL && error == 0 && jw_workload_start(workload, &error) == 0);
    return workload;
}

static jw_workload *ring_keeping(const jw_workload_config *config, int keep, int *error) {
    const jw_ring_options options = {.slots = 64, .keep = keep, .records = records, .record_count = RECORDS};
    return jw_ring_new(config, &options, error);
}

static jw_workload *plain_ring(const jw_workload_config *config, int *error) {
    return ring_keeping(config, JW_KEEP_NONE, error);
}

static jw_workload *fresh_ring(const jw_workload_config *config, int *error) {
    return ring_keeping(config, JW_KEEP_FRESH, error);
}

static jw_workload *file_ring(const jw_workload_config *config, int *error) {
    return ring_keeping(config, JW_KEEP_FILE, error);
}

static jw_workload *huge_ring(const jw_workload_config *config, int *error) {
    return ring_keeping(config, JW_KEEP_HUGE, error);
}

static void nap_ms(long ms) {
    const struct timespec pause = {.tv_nsec = ms * 1000000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

typedef struct {
    char state; /* 'Z': it has ended, and its parent has not waited for it; 0: it is gone */
    int leader;
    int parent;
} about;

static about look(int pid) {
    char path[64], line[256];
    about found = {0};
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *status = fopen(path, "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
        (void)(sscanf(line, "State: %c", &found.state) || sscanf(line, "Tgid: %d", &found.leader) ||
               sscanf(line, "PPid: %d", &found.parent));
    }
    if (status != NULL) {
        fclose(status);
    }
    return found;
}

static bool is_child(int pid) {
    const about found = look(pid);
    return found.leader == pid && found.parent == getpid();
}

static void ends_soon(int pid) {
    int waited = 0;
    for (about found = look(pid); found.state != 0 && found.state != 'Z'; found = look(pid)) {
        CHECK(waited < PATIENCE_MS);
        waited += 5;
        nap_ms(5);
    }
}

static void blocks(jw_workload *(*make)(const jw_workload_config *, int *), int keep) {
    jw_workload *ring = made(make, JW_ACCUMULATOR);
    const int pid = jw_workload_tid(ring, JW_ACCUMULATOR);
    CHECK(is_child(pid) && !is_child(getpid()));
    for (int round = 0; round < 3; round++) {
        const jw_block_request request = {.count = 1000, .unrecorded = 50, .offset_rounds = round == 1 ? 50 : 0};
        jw_block_result result;
        CHECK(jw_workload_block(ring, &request, &result) == 0 && result.count == 1000);
        const uint64_t sum = jw_payload_sum(records, RECORDS, result.ring.first_sequence + 1, result.count);
        CHECK(result.ring.payload_sum[JW_ACCUMULATOR] == sum);
        const jw_usage *usage = &result.usage[JW_ACCUMULATOR];
        CHECK(usage->ran_ns > 0 && (usage->write_calls < 0 || (usage->write_calls >= 1000) == (keep == JW_KEEP_FILE)));
        CHECK(keep != JW_KEEP_FRESH || usage->minor_faults >= 1000 * JW_RECORD_BYTES / sysconf(_SC_PAGESIZE) - 1);
        const uint64_t *sent = jw_workload_stamps(ring, JW_PRODUCER), *read = jw_workload_stamps(ring, JW_ACCUMULATOR);
        for (uint64_t i = 1; i <= result.count; i++) {
            CHECK(read[i] >= sent[i] && read[i] >= read[i - 1]);
        }
    }
    jw_workload_free(ring);
    CHECK(kill(pid, 0) != 0 && errno == ESRCH);
}

static void answers(void) {
    jw_workload *ack = made(jw_ack_new, JW_ACK_RECEIVER);
    const int pid = jw_workload_tid(ack, JW_ACK_RECEIVER);
    CHECK(is_child(pid));
    const jw_block_request request = {.duration_ticks = 10000000};
    jw_block_result result;
    for (int round = 0; round < 3; round++) {
        CHECK(jw_workload_block(ack, &request, &result) == 0 && result.ack.answered > 0);
    }
    jw_workload_free(ack);
    CHECK(kill(pid, 0) != 0 && errno == ESRCH);
}

/* The process notes its own CPU, and not that of the thread that waits for it. */
static void on_its_own_cpu(void) {
    cpu_set_t allowed, one;
    CHECK(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    jw_workload *ring = made(plain_ring, JW_ACCUMULATOR);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed)) {
            continue;
        }
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        CHECK(sched_setaffinity(jw_workload_tid(ring, JW_ACCUMULATOR), sizeof one, &one) == 0);
        const jw_block_request request = {.count = 100};
        jw_block_result result;
        CHECK(jw_workload_block(ring, &request, &result) == 0);
        for (uint64_t i = 1; i <= result.count; i++) {
            CHECK(jw_workload_cpus(ring, JW_ACCUMULATOR)[i] == cpu);
        }
    }
    jw_workload_free(ring);
}

static void *stop_it(void *workload) {
    nap_ms(20);
    jw_workload_stop(workload);
    return NULL;
}

static void stopped_in_a_block(jw_workload *(*make)(const jw_workload_config *, int *), int thread) {
    jw_workload *workload = made(make, thread);
    pthread_t stopper;
    const jw_block_request request = {.duration_ticks = UINT64_C(3600000000000)};
    jw_block_result result;
    CHECK(pthread_create(&stopper, NULL, stop_it, workload) == 0);
    CHECK(jw_workload_block(workload, &request, &result) == -ECANCELED);
    CHECK(pthread_join(stopper, NULL) == 0);
    jw_workload_free(workload);
}

static void *kill_it(void *pid) {
    nap_ms(20);
    CHECK(kill(*(const int *)pid, SIGKILL) == 0);
    return NULL;
}

/* A block of hours ends when the process is killed, and so does each later one. */
static void killed(jw_workload *(*make)(const jw_workload_config *, int *), int thread, bool in_a_block) {
    jw_workload *workload = made(make, thread);
    int pid = jw_workload_tid(workload, thread);
    pthread_t killer;
    const jw_block_request request = {.duration_ticks = UINT64_C(3600000000000)};
    jw_block_result result;
    CHECK(pthread_create(&killer, NULL, kill_it, &pid) == 0);
    if (!in_a_block) {
        CHECK(pthread_join(killer, NULL) == 0);
    }
    CHECK(jw_workload_block(workload, &request, &result) == -ECHILD);
    CHECK(jw_workload_block(workload, &request, &result) == -ECHILD);
    ends_soon(pid);
    if (in_a_block) {
        CHECK(pthread_join(killer, NULL) == 0);
    }
    jw_workload_free(workload);
}

/* Killed while it starts or between blocks, too: nothing waits for ever. */
static void killed_at_any_moment(void) {
    for (long us = 0; us < 2000; us += 50) {
        jw_workload *ring = made(plain_ring, JW_ACCUMULATOR);
        const struct timespec pause = {.tv_nsec = us * 1000};
        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
        CHECK(kill(jw_workload_tid(ring, JW_ACCUMULATOR), SIGKILL) == 0);
        const jw_block_request request = {.count = 10};
        jw_block_result result;
        int status;
        while ((status = jw_workload_block(ring, &request, &result)) == 0) {
        }
        CHECK(status == -ECHILD);
        jw_workload_free(ring);
    }
}

/* The process does not outlive the one that it belongs to, however that one ends. */
static void ends_with_its_owner(bool by_kill) {
    int tell[2], pid;
    CHECK(pipe(tell) == 0);
    const pid_t owner = fork();
    CHECK(owner >= 0);
    if (owner == 0) {
        jw_workload *ring = made(plain_ring, JW_ACCUMULATOR);
        pid = jw_workload_tid(ring, JW_ACCUMULATOR);
        CHECK(write(tell[1], &pid, sizeof pid) == (ssize_t)sizeof pid);
        while (by_kill) {
            nap_ms(100);
        }
        _exit(0);
    }
    CHECK(read(tell[0], &pid, sizeof pid) == (ssize_t)sizeof pid);
    CHECK(!by_kill || kill(owner, SIGKILL) == 0);
    CHECK(waitpid(owner, NULL, 0) == owner);
    ends_soon(pid);
    close(tell[0]);
    close(tell[1]);
}

static void nowhere(void) {
    jw_workload_config config = {.clock = ns_clock, .cpu = {-1, 60000, -1}, .most = 10, .interval_ns = INTERVAL_NS};
    config.apart[JW_ACCUMULATOR] = 1;
    int error;
    jw_workload *ring = plain_ring(&config, &error);
    CHECK(ring != NULL && jw_workload_start(ring, &error) == -EINVAL && error == JW_ACCUMULATOR);
    jw_workload_free(ring);
}

int main(void) {
    /* First, because a process that has had threads cannot fork one with threads under a sanitizer. */
    ends_with_its_owner(true);
    ends_with_its_owner(false);
    blocks(plain_ring, JW_KEEP_NONE);
    blocks(fresh_ring, JW_KEEP_FRESH);
    blocks(file_ring, JW_KEEP_FILE);
    blocks(huge_ring, JW_KEEP_HUGE);
    answers();
    on_its_own_cpu();
    stopped_in_a_block(plain_ring, JW_ACCUMULATOR);
    stopped_in_a_block(jw_ack_new, JW_ACK_RECEIVER);
    nowhere();
    /* The thread sanitizer takes a lock of its own at each atomic store, and a killed process would keep it. */
    if (!THREAD_SANITIZER) {
        killed(plain_ring, JW_ACCUMULATOR, true);
        killed(plain_ring, JW_ACCUMULATOR, false);
        killed(jw_ack_new, JW_ACK_RECEIVER, true);
        killed_at_any_moment();
    }
    return 0;
}
