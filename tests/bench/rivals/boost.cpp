/* boost::lockfree::spsc_queue with a capacity that is known when it is compiled. */
#include <boost/lockfree/spsc_queue.hpp>

#include "harness.h"

static boost::lockfree::spsc_queue<message, boost::lockfree::capacity<SLOTS>> *queue;

static void queue_make(void) {
    queue = new boost::lockfree::spsc_queue<message, boost::lockfree::capacity<SLOTS>>();
}

static int queue_push(const message *m) {
    return queue->push(*m);
}

static int queue_pop(message *m) {
    return queue->pop(*m);
}
