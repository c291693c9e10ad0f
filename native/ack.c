/* The receiver and its sender from birth to death: their memory, their connection, their threads, a block. */
#include "ack.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "loopback.h"

enum { LEAST_INTERVAL_NS = 1000 };

static size_t entries(const jw_ack *ack) {
    return ack->config.most_segments + 1;
}

/* NULL with *error = -EINVAL, -ENOMEM, or why there is no connection over the loopback device. */
jw_ack *jw_ack_new(const jw_ack_config *config, int *error) {
    *error = -EINVAL;
    if (config->most_segments == 0 || config->most_segments > UINT32_MAX || config->interval_ns < LEAST_INTERVAL_NS ||
        config->interval_ns > JW_LONGEST_INTERVAL_NS || !jw_clock_usable(config->clock.source) ||
        config->clock.mult == 0) {
        return NULL;
    }
    *error = -ENOMEM;
    jw_ack *ack = jw_map(sizeof *ack);
    if (ack == NULL) {
        return NULL;
    }
    ack->config = *config;
    ack->client = ack->server = -1;
    jw_latch_init(&ack->latch);
    bool complete = true;
    for (int i = 0; i < JW_ACK_THREADS; i++) {
        ack->of[i].stamps = jw_map(entries(ack) * sizeof(uint64_t));
        ack->of[i].cpus = jw_map(entries(ack) * sizeof(uint16_t));
        complete = complete && ack->of[i].stamps != NULL && ack->of[i].cpus != NULL;
    }
    if (complete) {
        *error = jw_loopback_pair(&ack->client, &ack->server);
    }
    if (*error != 0) {
        jw_ack_free(ack);
        return NULL;
    }
    return ack;
}

/* Start sending and answering, unrecorded. 0, or -errno with the thread that could not be placed. */
int jw_ack_start(jw_ack *ack, int *failed_thread) {
    void *(*const bodies[JW_ACK_THREADS])(void *) = {jw_sender_body, jw_receiver_body};
    int failed = 0;
    *failed_thread = 0;
    jw_latch_arm(&ack->latch, JW_ACK_THREADS);
    for (int i = 0; i < JW_ACK_THREADS && failed == 0; i++) {
        failed = jw_thread_create(&ack->threads[i], bodies[i], ack);
        ack->started[i] = failed == 0;
        *failed_thread = i;
    }
    if (failed == 0) {
        jw_latch_wait(&ack->latch);
        for (int i = JW_ACK_THREADS - 1; i >= 0; i--) {
            if (ack->failed[i] != 0) {
                failed = ack->failed[i];
                *failed_thread = i;
            }
        }
    }
    if (failed != 0) {
        jw_ack_stop(ack);
    }
    return failed;
}

int jw_ack_tid(const jw_ack *ack, int thread) {
    return ack->tid[thread];
}

/* One block: ends by time, or when the arrays are full. Sleeps meanwhile. -ECANCELED when stopped from another thread,
 * -errno of the connection when that failed. */
int jw_ack_block(jw_ack *ack, uint64_t duration_ticks, jw_ack_result *result) {
    if (!ack->started[JW_ACK_SENDER] || jw_stopped(&ack->stop)) {
        return -ECANCELED;
    }
    ack->duration_ticks = duration_ticks;
    memset(&ack->result, 0, sizeof ack->result);
    jw_latch_arm(&ack->latch, JW_ACK_THREADS);
    atomic_fetch_add_explicit(&ack->asked, 1, memory_order_release);
    jw_latch_wait(&ack->latch);
    if (jw_stopped(&ack->stop)) {
        return -ECANCELED;
    }
    int broken = atomic_load(&ack->broken);
    if (broken != 0) {
        return broken;
    }
    *result = ack->result;
    return 0;
}

const uint64_t *jw_ack_stamps(const jw_ack *ack, int thread) {
    return ack->of[thread].stamps;
}

const uint16_t *jw_ack_cpus(const jw_ack *ack, int thread) {
    return ack->of[thread].cpus;
}

int jw_ack_lock_arrays(const jw_ack *ack) {
    int failed = mlock(ack, sizeof *ack);
    for (int i = 0; i < JW_ACK_THREADS; i++) {
        failed |= mlock(ack->of[i].stamps, entries(ack) * sizeof(uint64_t));
        failed |= mlock(ack->of[i].cpus, entries(ack) * sizeof(uint16_t));
    }
    return failed != 0 ? -errno : 0;
}

/* Whoever sleeps in the connection finds it ended, whoever waits for a time looks at `stop`: this always returns. */
void jw_ack_stop(jw_ack *ack) {
    atomic_store(&ack->stop, 1);
    jw_loopback_end(ack->client, ack->server);
    for (int i = 0; i < JW_ACK_THREADS; i++) {
        if (ack->started[i]) {
            pthread_join(ack->threads[i], NULL);
            ack->started[i] = false;
        }
    }
    jw_latch_close(&ack->latch);
}

void jw_ack_free(jw_ack *ack) {
    if (ack == NULL) {
        return;
    }
    jw_ack_stop(ack);
    jw_loopback_close(ack->client, ack->server);
    jw_latch_destroy(&ack->latch);
    for (int i = 0; i < JW_ACK_THREADS; i++) {
        jw_unmap(ack->of[i].stamps, entries(ack) * sizeof(uint64_t));
        jw_unmap(ack->of[i].cpus, entries(ack) * sizeof(uint16_t));
    }
    jw_unmap(ack, sizeof *ack);
}
