/* One life for every workload: memory, threads, blocks, the end. A workload is one C file: a struct that begins with a
 * jw_workload, a jw_kind with a loop a thread, and a `new` that makes the one from the other. */
#ifndef JW_WORKLOAD_H
#define JW_WORKLOAD_H

#include "threads.h"

enum { JW_MOST_REGIONS = 16 };

typedef struct {
    const char *name; /* of the thread, in ps and perf */
    /* All that the thread does once it is placed, until it is stopped or gives up. */
    void (*run)(jw_workload *workload);
} jw_part;

typedef struct {
    size_t bytes; /* of the struct that begins with a jw_workload */
    jw_part parts[JW_MOST_THREADS];
    uint64_t least_interval_ns; /* the longest is JW_LONGEST_INTERVAL_NS; 0: any interval will do */
    /* Wake threads that sleep in the kernel, because they are to end. NULL: they look at `stop` often enough. */
    void (*wake)(jw_workload *workload);
    /* Make ready for a block, in the thread that asks for it, before the others see it. May be NULL. Returns 0 or -errno. */
    int (*prepare)(jw_workload *workload);
    /* Close what is no memory, once the threads have ended. May be NULL. */
    void (*close)(jw_workload *workload);
} jw_kind;

typedef struct {
    jw_workload *workload;
    const jw_part *part;
    int cpu;
    bool apart; /* in a process of its own; the thread itself only waits for this process */
    pthread_t handle;
    atomic_bool started; /* stopped from another thread while a block is asked for */
    int tid;
    int failed;
    jw_usage at_start; /* of the block */
} jw_thread;

typedef struct {
    uint64_t *stamps;
    uint16_t *cpus;
} jw_samples;

typedef struct {
    void *memory;
    size_t bytes;
} jw_region;

struct jw_workload {
    const jw_kind *kind;
    jw_workload_config config;
    int threads;
    jw_thread of[JW_MOST_THREADS];
    jw_samples samples[JW_MOST_SAMPLES];
    jw_region regions[JW_MOST_REGIONS]; /* freed and locked together */
    size_t used_regions;
    bool short_of_memory;
    jw_latch latch;
    jw_block_request request; /* written before `asked` is raised */
    jw_block_result result;

    /* Read by all in every turn of every loop, written a few times a run: it stays shared in every cache. */
    _Alignas(JW_APART) _Atomic int stop;
    _Atomic int broken; /* -errno of a thread that gave up */
    _Atomic uint32_t asked;
    char rest[JW_APART - 2 * sizeof(int) - sizeof(uint32_t)];
};

/* ---- for `new` --------------------------------------------------------------------------------------------------- */

/* Return a workload of `threads` threads, all zero behind its jw_workload; NULL with *error = -EINVAL or -ENOMEM. */
void *jw_workload_make(const jw_kind *kind, const jw_workload_config *config, int threads, int *error);
/* Return zeroed memory that is locked and freed with the workload. NULL: jw_workload_made will report it. */
void *jw_workload_map(jw_workload *workload, size_t bytes);
/* Give one series of samples `entries` entries. */
void jw_workload_sample(jw_workload *workload, int series, size_t entries);
/* Return the workload with *error = 0. Where memory is missing, or with a `failed` of < 0: free it and return NULL. */
jw_workload *jw_workload_made(jw_workload *workload, int failed, int *error);

/* ---- for the loops ------------------------------------------------------------------------------------------------- */

/* A thread can go on no more (`failed`: -errno): end the block that is waited for, and let the others end. */
void jw_give_up(jw_workload *workload, int failed);
/* The thread `who` begins its block, ends it. */
void jw_usage_begin(jw_workload *workload, int who);
void jw_usage_end(jw_workload *workload, int who);
/* The calling thread has done its part of the block; each of the threads says so once a block. */
void jw_block_done(jw_workload *workload);

/* Is a block wanted, after `answered` of them? */
JW_INLINE bool jw_block_asked(const jw_workload *workload, uint32_t answered) {
    return atomic_load_explicit(&workload->asked, memory_order_acquire) != answered;
}

JW_INLINE bool jw_given_up(const jw_workload *workload) {
    return jw_stopped(&workload->stop) || atomic_load_explicit(&workload->broken, memory_order_relaxed) != 0;
}

/* The most that a block may record: the arrays' size, or less if the request says so. */
JW_INLINE uint64_t jw_block_most(const jw_workload *workload) {
    const uint64_t asked = workload->request.count, most = workload->config.most;
    return asked < most ? asked : most;
}

#endif
