/* DPDK's rte_ring for one producer and one consumer, with elements of 64 bytes. Its library makes it in ordinary memory:
 * neither DPDK's environment nor its huge pages are needed for that. */
#include <rte_ring_elem.h>

#include "harness.h"

static struct rte_ring *ring;

static void queue_make(void) {
    const ssize_t bytes = rte_ring_get_memsize_elem(sizeof(message), SLOTS);
    if (bytes < 0 || posix_memalign((void **)&ring, RTE_CACHE_LINE_SIZE, (size_t)bytes) != 0) {
        exit(2);
    }
    memset(ring, 0, (size_t)bytes);
    if (rte_ring_init(ring, "league", SLOTS, RING_F_SP_ENQ | RING_F_SC_DEQ) != 0) {
        exit(2);
    }
}

static int queue_push(const message *m) {
    return rte_ring_sp_enqueue_elem(ring, (void *)(uintptr_t)m, sizeof *m) == 0;
}

static int queue_pop(message *m) {
    return rte_ring_sc_dequeue_elem(ring, m, sizeof *m) == 0;
}
