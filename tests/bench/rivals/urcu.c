/* liburcu's wait-free concurrent queue (wfcqueue), by one producer and one consumer. Its nodes come from a pool, because
 * the queue links the caller's memory and has no slots of its own. */
#define _LGPL_SOURCE
#include <urcu/wfcqueue.h>

#include "harness.h"

typedef struct {
    struct cds_wfcq_node node;
    message body;
    char apart[128 - sizeof(struct cds_wfcq_node) - sizeof(message)];
} cell;

static struct cds_wfcq_head head;
static struct cds_wfcq_tail tail;
static cell *pool;
static uint64_t next;

static void queue_make(void) {
    pool = (cell *)aligned_alloc(128, SLOTS * sizeof(cell));
    memset(pool, 0, SLOTS * sizeof(cell));
    cds_wfcq_init(&head, &tail);
}

/* A cell is used again after SLOTS messages: the consumer has long left it, at one message every some µs. */
static int queue_push(const message *m) {
    cell *one = &pool[next++ % SLOTS];
    cds_wfcq_node_init(&one->node);
    one->body = *m;
    cds_wfcq_enqueue(&head, &tail, &one->node);
    return 1;
}

static int queue_pop(message *m) {
    struct cds_wfcq_node *node = __cds_wfcq_dequeue_nonblocking(&head, &tail);
    if (node == NULL || node == CDS_WFCQ_WOULDBLOCK) {
        return 0;
    }
    *m = caa_container_of(node, cell, node)->body;
    return 1;
}
