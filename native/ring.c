/* A ring's life: memory, threads, blocks. */
#include "ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "clock.h"

enum { LEAST_SLOTS = 16, MOST_SLOTS = 1 << 20, LEAST_UNRECORDED = 2 };

static bool power_of_two(uint64_t n) {
    return n > 0 && (n & (n - 1)) == 0;
}

static bool sensible(const jw_ring_config *c) {
    return power_of_two(c->slots) && c->slots >= LEAST_SLOTS && c->slots <= MOST_SLOTS && c->most_messages > 0 &&
           c->most_messages < UINT32_MAX - JW_WARM_ENTRIES - 1 && c->records != NULL && power_of_two(c->record_count) &&
           (!c->journaller || (c->journal != NULL && power_of_two(c->journal_count))) &&
           (c->pacing == JW_PACING_SPIN || c->pacing == JW_PACING_SCHEDULE) && jw_clock_usable(c->clock.source) &&
           c->clock.mult > 0;
}

static size_t entries(const jw_ring *ring) {
    return (size_t)ring->config.most_messages + 1 + JW_WARM_ENTRIES;
}

static int threads_of(const jw_ring *ring) {
    return ring->config.journaller ? JW_THREADS : JW_JOURNALLER;
}

/* NULL with *error = -EINVAL or -ENOMEM. What `config` points to must outlive the ring. */
jw_ring *jw_ring_new(const jw_ring_config *config, int *error) {
    *error = -EINVAL;
    if (!sensible(config)) {
        return NULL;
    }
    *error = -ENOMEM;
    jw_ring *ring = jw_map(sizeof *ring);
    if (ring == NULL) {
        return NULL;
    }
    ring->config = *config;
    jw_latch_init(&ring->latch);
    ring->slots = jw_map(config->slots * sizeof(jw_slot));
    bool complete = ring->slots != NULL;
    for (int i = 0; i < threads_of(ring); i++) {
        ring->notes[i].stamps = jw_map(entries(ring) * sizeof(uint64_t));
        ring->notes[i].cpus = jw_map(entries(ring) * sizeof(uint16_t));
        complete = complete && ring->notes[i].stamps != NULL && ring->notes[i].cpus != NULL;
    }
    if (!complete) {
        jw_ring_free(ring);
        return NULL;
    }
    *error = 0;
    return ring;
}

/* Start the threads and the exchange of unrecorded messages. 0, or -errno with the thread that could not be placed. */
int jw_ring_start(jw_ring *ring, int *failed_thread) {
    void *(*const bodies[JW_THREADS])(void *) = {jw_producer_body, jw_accumulator_body, jw_journaller_body};
    int count = threads_of(ring), failed = 0;
    *failed_thread = 0;
    jw_latch_arm(&ring->latch, count);
    for (int i = 0; i < count; i++) {
        int refused = jw_thread_create(&ring->threads[i], bodies[i], ring);
        if (refused != 0) {
            failed = refused;
            *failed_thread = i;
            break;
        }
        ring->started[i] = true;
    }
    if (failed == 0) {
        jw_latch_wait(&ring->latch);
        for (int i = count - 1; i >= 0; i--) {
            if (ring->failed[i] != 0) {
                failed = ring->failed[i];
                *failed_thread = i;
            }
        }
    }
    if (failed != 0) {
        jw_ring_stop(ring);
    }
    return failed;
}

int jw_ring_tid(const jw_ring *ring, int thread) {
    return ring->tid[thread];
}

/* One block; sleeps until all threads have done their part. -ECANCELED when stopped from another thread. */
int jw_ring_block(jw_ring *ring, const jw_block_request *request, jw_block_result *result) {
    if (jw_stopped(&ring->stop) || !ring->started[JW_PRODUCER]) {
        return -ECANCELED;
    }
    ring->request = *request;
    if (ring->request.unrecorded < LEAST_UNRECORDED) {
        ring->request.unrecorded = LEAST_UNRECORDED;
    }
    if (ring->request.messages == 0 || ring->request.messages > ring->config.most_messages) {
        ring->request.messages = ring->config.most_messages;
    }
    memset(&ring->result, 0, sizeof ring->result);
    ring->ping_pong_ns = -1.0;
    memset(&ring->line, 0, sizeof ring->line);
    jw_latch_arm(&ring->latch, threads_of(ring));
    atomic_fetch_add_explicit(&ring->asked, 1, memory_order_release);
    jw_latch_wait(&ring->latch);
    if (jw_stopped(&ring->stop)) {
        return -ECANCELED;
    }
    ring->result.ping_pong_ns = ring->ping_pong_ns;
    *result = ring->result;
    return 0;
}

const uint64_t *jw_ring_stamps(const jw_ring *ring, int thread) {
    return ring->notes[thread].stamps;
}

const uint16_t *jw_ring_cpus(const jw_ring *ring, int thread) {
    return ring->notes[thread].cpus;
}

/* Lock what the hot threads touch, where locking all of the process is not allowed. 0 or -errno. */
int jw_ring_lock_arrays(const jw_ring *ring) {
    int failed = mlock(ring, sizeof *ring);
    failed |= mlock(ring->slots, ring->config.slots * sizeof(jw_slot));
    for (int i = 0; i < threads_of(ring); i++) {
        failed |= mlock(ring->notes[i].stamps, entries(ring) * sizeof(uint64_t));
        failed |= mlock(ring->notes[i].cpus, entries(ring) * sizeof(uint16_t));
    }
    return failed != 0 ? -errno : 0;
}

/* Every loop looks at `stop`, so this always returns. */
void jw_ring_stop(jw_ring *ring) {
    atomic_store(&ring->stop, 1);
    for (int i = 0; i < JW_THREADS; i++) {
        if (ring->started[i]) {
            pthread_join(ring->threads[i], NULL);
            ring->started[i] = false;
        }
    }
    jw_latch_close(&ring->latch);
}

void jw_ring_free(jw_ring *ring) {
    if (ring == NULL) {
        return;
    }
    jw_ring_stop(ring);
    jw_latch_destroy(&ring->latch);
    jw_unmap(ring->slots, ring->config.slots * sizeof(jw_slot));
    for (int i = 0; i < JW_THREADS; i++) {
        jw_unmap(ring->notes[i].stamps, entries(ring) * sizeof(uint64_t));
        jw_unmap(ring->notes[i].cpus, entries(ring) * sizeof(uint16_t));
    }
    jw_unmap(ring, sizeof *ring);
}

/* What reading the records of `n` messages from `first_sequence` on must give. */
uint64_t jw_payload_sum(const void *records, uint64_t record_count, uint64_t first_sequence, uint64_t n) {
    const uint64_t *words = records;
    const size_t words_each = JW_RECORD_BYTES / sizeof(uint64_t);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t *record = words + ((first_sequence + i) & (record_count - 1)) * words_each;
        for (size_t w = 0; w < words_each; w++) {
            sum ^= record[w] + w;
        }
    }
    return sum;
}
