/* moodycamel::ReaderWriterQueue, made so large that it never asks for memory. */
#include <readerwriterqueue/readerwriterqueue.h>

#include "harness.h"

static moodycamel::ReaderWriterQueue<message> *queue;

static void queue_make(void) {
    queue = new moodycamel::ReaderWriterQueue<message>(SLOTS);
}

static int queue_push(const message *m) {
    return queue->try_enqueue(*m);
}

static int queue_pop(message *m) {
    return queue->try_dequeue(*m);
}
