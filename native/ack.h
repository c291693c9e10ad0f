/* The receiver, its sender, and what is between them. ack.c owns the life of it, answer.c the loops. */
#ifndef JW_ACK_H
#define JW_ACK_H

#include "threads.h"

enum { JW_PORTION_BYTES = 64 * 1024, JW_ANSWERS_A_LOOK = 512 };

typedef struct {
    uint64_t *stamps; /* most_segments + 1 */
    uint16_t *cpus;
    uint64_t count;
} jw_ack_notes;

struct jw_ack {
    jw_ack_config config;
    int client;
    int server;
    jw_ack_notes of[JW_ACK_THREADS];
    jw_latch latch;
    pthread_t threads[JW_ACK_THREADS];
    atomic_bool started[JW_ACK_THREADS]; /* stopped from another thread while a block is asked for */
    int tid[JW_ACK_THREADS];
    int failed[JW_ACK_THREADS];
    uint64_t duration_ticks; /* written before `asked` is raised */
    jw_ack_result result;
    char portion[JW_PORTION_BYTES];                         /* the receiver's */
    _Alignas(JW_APART) uint64_t answers[JW_ANSWERS_A_LOOK]; /* the sender's */
    _Alignas(JW_APART) _Atomic int stop;
    _Atomic int broken; /* -errno of a connection that failed */
    _Atomic uint32_t asked;
};

JW_INLINE bool jw_ack_given_up(const jw_ack *ack) {
    return jw_stopped(&ack->stop) || atomic_load_explicit(&ack->broken, memory_order_relaxed) != 0;
}

void *jw_sender_body(void *ack);
void *jw_receiver_body(void *ack);

#endif
