/* The ring's memory and who may write what. ring.c owns the life of it, hot.c the loops. */
#ifndef JW_RING_H
#define JW_RING_H

#include "pingpong.h"
#include "threads.h"

enum { JW_WARM_ENTRIES = 1024 };

/* What a message asks of its readers besides being read. */
enum { JW_MARK_NONE = 0, JW_MARK_PING = 1, JW_MARK_START = 2, JW_MARK_END = 3 };

/* Two lines. A consumer polls `sequence` in line 0, so that one transfer brings sequence, stamp and most of the payload;
 * it reads line 1 after it has stamped. `entry` says where in their arrays the readers note this message: the producer
 * alone decides what is recorded, and readers do exactly the same work for recorded and unrecorded messages. */
typedef struct {
    _Alignas(JW_APART) _Atomic uint64_t sequence; /* of the message + 1; 0: never used */
    uint64_t stamp;
    uint64_t head[6];
    uint64_t tail[2];
    uint32_t entry;
    uint32_t mark;
    char rest[JW_LINE - 2 * sizeof(uint64_t) - 2 * sizeof(uint32_t)];
} jw_slot;

_Static_assert(sizeof(jw_slot) == JW_APART, "a slot is two lines");

typedef struct {
    uint64_t *stamps; /* most_messages + 1 recorded entries, then JW_WARM_ENTRIES for the others */
    uint16_t *cpus;
} jw_notes;

typedef struct {
    _Alignas(JW_APART) _Atomic uint64_t done; /* messages read */
    char rest[JW_APART - sizeof(uint64_t)];
} jw_progress;

struct jw_ring {
    jw_ring_config config;
    jw_slot *slots;
    jw_notes notes[JW_THREADS];
    jw_latch latch;
    pthread_t threads[JW_THREADS];
    atomic_bool started[JW_THREADS]; /* stopped from another thread while a block is asked for */
    int tid[JW_THREADS];
    int failed[JW_THREADS];
    jw_usage at_start[JW_THREADS];

    jw_block_request request; /* written before `asked` is raised */
    jw_block_result result;
    double ping_pong_ns;

    /* Read by all in every turn of every loop, written a few times a run: it stays shared in every cache. */
    _Alignas(JW_APART) _Atomic int stop;
    _Atomic uint32_t asked;
    char rest[JW_APART - sizeof(int) - sizeof(uint32_t)];

    jw_progress progress[JW_THREADS];
    jw_line line;
};

void *jw_producer_body(void *ring);
void *jw_accumulator_body(void *ring);
void *jw_journaller_body(void *ring);

#endif
