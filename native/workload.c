/* The life of a workload: memory, threads, blocks, the end. Each of them keeps to the rules of jw_workload in api.h. */
#include "workload.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "clock.h"
#include "memory.h"

/* Arrays are indexed by 32 bits in places, with some spare entries behind `most`. */
enum { SPARE_ENTRIES = 4096 };

static bool sensible(const jw_kind *kind, const jw_workload_config *config) {
    return config->most > 0 && config->most < UINT32_MAX - SPARE_ENTRIES && jw_clock_usable(config->clock.source) &&
           config->clock.mult > 0 &&
           (kind->least_interval_ns == 0 || (config->interval_ns >= kind->least_interval_ns &&
                                             config->interval_ns <= JW_LONGEST_INTERVAL_NS));
}

void *jw_workload_make(const jw_kind *kind, const jw_workload_config *config, int threads, int *error) {
    *error = -EINVAL;
    if (!sensible(kind, config)) {
        return NULL;
    }
    jw_workload *workload = jw_map(kind->bytes);
    if (workload == NULL) {
        *error = -ENOMEM;
        return NULL;
    }
    workload->kind = kind;
    workload->config = *config;
    workload->threads = threads;
    for (int i = 0; i < threads; i++) {
        workload->of[i].workload = workload;
        workload->of[i].part = &kind->parts[i];
        workload->of[i].cpu = config->cpu[i];
        workload->of[i].apart = config->apart[i] != 0;
    }
    return workload;
}

void *jw_workload_map(jw_workload *workload, size_t bytes) {
    void *memory = workload->used_regions < JW_MOST_REGIONS ? jw_map(bytes) : NULL;
    if (memory == NULL) {
        workload->short_of_memory = true;
    } else {
        workload->regions[workload->used_regions++] = (jw_region){.memory = memory, .bytes = bytes};
    }
    return memory;
}

void jw_workload_sample(jw_workload *workload, int series, size_t entries) {
    workload->samples[series].stamps = jw_workload_map(workload, entries * sizeof(uint64_t));
    workload->samples[series].cpus = jw_workload_map(workload, entries * sizeof(uint16_t));
}

jw_workload *jw_workload_made(jw_workload *workload, int failed, int *error) {
    *error = workload->short_of_memory ? -ENOMEM : failed;
    if (*error != 0) {
        jw_workload_free(workload);
        return NULL;
    }
    return workload;
}

/* The thread's whole life, in its own process or in this one. */
static void live(void *argument) {
    jw_thread *self = argument;
    jw_workload *workload = self->workload;
    jw_name_thread(self->part->name);
    self->tid = jw_thread_id();
    self->failed = jw_place_thread(self->cpu, workload->config.fifo_priority);
    const bool placed = self->failed == 0;
    jw_latch_count_down(&workload->latch);
    if (placed) {
        self->part->run(workload);
    }
}

static void *thread_body(void *argument) {
    jw_thread *self = argument;
    int failed = 0;
    if (self->apart) {
        failed = jw_run_apart(live, self);
    } else {
        live(self);
    }
    if (failed != 0) {
        jw_give_up(self->workload, failed);
    }
    return NULL;
}

/* Return -errno of the first thread that was not placed, with its number in *thread; 0: all are. A process that could not be
 * made, or was killed, has not said that it was placed. */
static int refused(const jw_workload *workload, int *thread) {
    const int broken = atomic_load(&workload->broken);
    for (int i = 0; i < workload->threads; i++) {
        const jw_thread *one = &workload->of[i];
        const int failed = broken == 0 ? one->failed : one->apart ? broken : 0;
        if (failed != 0) {
            *thread = i;
            return failed;
        }
    }
    return 0;
}

int jw_workload_start(jw_workload *workload, int *failed_thread) {
    int failed = 0;
    *failed_thread = 0;
    jw_latch_arm(&workload->latch, workload->threads);
    for (int i = 0; i < workload->threads && failed == 0; i++) {
        jw_thread *one = &workload->of[i];
        failed = jw_thread_create(&one->handle, thread_body, one);
        one->started = failed == 0;
        *failed_thread = i;
    }
    if (failed == 0) {
        jw_latch_wait(&workload->latch);
        failed = refused(workload, failed_thread);
    }
    if (failed != 0) {
        jw_workload_stop(workload);
    }
    return failed;
}

int jw_workload_tid(const jw_workload *workload, int thread) {
    return thread >= 0 && thread < workload->threads ? workload->of[thread].tid : -EINVAL;
}

int jw_workload_block(jw_workload *workload, const jw_block_request *request, jw_block_result *result) {
    if (jw_stopped(&workload->stop) || !workload->of[0].started) {
        return -ECANCELED;
    }
    int broken = atomic_load(&workload->broken);
    if (broken != 0) {
        return broken;
    }
    const int unready = workload->kind->prepare != NULL ? workload->kind->prepare(workload) : 0;
    if (unready != 0) {
        return unready;
    }
    workload->request = *request;
    if (request->count == 0) {
        workload->request.count = UINT64_MAX;
    }
    if (request->duration_ticks == 0) {
        workload->request.duration_ticks = UINT64_MAX;
    }
    memset(&workload->result, 0, sizeof workload->result);
    jw_latch_arm(&workload->latch, workload->threads);
    atomic_fetch_add_explicit(&workload->asked, 1, memory_order_release);
    jw_latch_wait(&workload->latch);
    if (jw_stopped(&workload->stop)) {
        return -ECANCELED;
    }
    broken = atomic_load(&workload->broken);
    if (broken == 0) {
        *result = workload->result;
    }
    return broken;
}

/* A series that this kind of workload does not use is all NULL, as one outside the array is here. */
static jw_samples samples_of(const jw_workload *workload, int series) {
    return series >= 0 && series < JW_MOST_SAMPLES ? workload->samples[series] : (jw_samples){0};
}

const uint64_t *jw_workload_stamps(const jw_workload *workload, int series) {
    return samples_of(workload, series).stamps;
}

const uint16_t *jw_workload_cpus(const jw_workload *workload, int series) {
    return samples_of(workload, series).cpus;
}

int jw_workload_lock(const jw_workload *workload) {
    int failed = mlock(workload, workload->kind->bytes) != 0 ? -errno : 0;
    for (size_t i = 0; i < workload->used_regions; i++) {
        if (mlock(workload->regions[i].memory, workload->regions[i].bytes) != 0) {
            failed = -errno;
        }
    }
    return failed;
}

void jw_workload_stop(jw_workload *workload) {
    atomic_store(&workload->stop, 1);
    if (workload->kind->wake != NULL) {
        workload->kind->wake(workload);
    }
    for (int i = 0; i < workload->threads; i++) {
        if (atomic_exchange(&workload->of[i].started, false)) {
            pthread_join(workload->of[i].handle, NULL);
        }
    }
    jw_latch_close(&workload->latch);
}

void jw_workload_free(jw_workload *workload) {
    if (workload == NULL) {
        return;
    }
    jw_workload_stop(workload);
    if (workload->kind->close != NULL) {
        workload->kind->close(workload);
    }
    for (size_t i = 0; i < workload->used_regions; i++) {
        jw_unmap(workload->regions[i].memory, workload->regions[i].bytes);
    }
    jw_unmap(workload, workload->kind->bytes);
}

void jw_give_up(jw_workload *workload, int failed) {
    if (!jw_stopped(&workload->stop)) {
        int none = 0;
        atomic_compare_exchange_strong(&workload->broken, &none, failed);
    }
    if (workload->kind->wake != NULL) {
        workload->kind->wake(workload);
    }
    jw_latch_close(&workload->latch);
}

void jw_usage_begin(jw_workload *workload, int who) {
    jw_thread_usage(&workload->of[who].at_start);
}

void jw_usage_end(jw_workload *workload, int who) {
    jw_usage_since(&workload->of[who].at_start, &workload->result.usage[who]);
}

void jw_block_done(jw_workload *workload) {
    jw_latch_count_down(&workload->latch);
}
