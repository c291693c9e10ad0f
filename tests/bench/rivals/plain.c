/* A plain ring as textbooks have it (Lamport 1983), with each index on a line of its own and a copy of the other side's
 * index, so that it is read only where the ring seems full or empty. */
#include <stdatomic.h>

#include "harness.h"

static _Alignas(128) message slots[SLOTS];
static _Alignas(128) _Atomic uint64_t head; /* written by the producer */
static _Alignas(128) _Atomic uint64_t tail; /* written by the consumer */
static _Alignas(128) uint64_t known_tail;
static _Alignas(128) uint64_t known_head;

static void queue_make(void) {
    memset(slots, 0, sizeof slots);
}

static int queue_push(const message *m) {
    const uint64_t at = atomic_load_explicit(&head, memory_order_relaxed);
    if (at - known_tail == SLOTS) {
        known_tail = atomic_load_explicit(&tail, memory_order_acquire);
        if (at - known_tail == SLOTS) {
            return 0;
        }
    }
    slots[at % SLOTS] = *m;
    atomic_store_explicit(&head, at + 1, memory_order_release);
    return 1;
}

static int queue_pop(message *m) {
    const uint64_t at = atomic_load_explicit(&tail, memory_order_relaxed);
    if (at == known_head) {
        known_head = atomic_load_explicit(&head, memory_order_acquire);
        if (at == known_head) {
            return 0;
        }
    }
    *m = slots[at % SLOTS];
    atomic_store_explicit(&tail, at + 1, memory_order_release);
    return 1;
}
