/* atomic_queue with its switch for one producer and one consumer. Its elements of any type (AtomicQueue2) carry a state
 * beside each message. */
#include <atomic_queue/atomic_queue.h>

#include "harness.h"

typedef atomic_queue::AtomicQueue2<message, SLOTS, true, true, false, true> spsc;

static spsc *queue;

static void queue_make(void) {
    queue = new spsc();
}

static int queue_push(const message *m) {
    return queue->try_push(*m);
}

static int queue_pop(message *m) {
    return queue->try_pop(*m);
}
