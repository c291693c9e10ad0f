/* The order of a chase: one cycle through all lines, each cycle as likely as any other. */
#include "chase.h"

#include <errno.h>
#include <stdlib.h>

#include "random.h"

int jw_chase_make(jw_chase_line *first, size_t lines, uint64_t seed) {
    size_t *order = malloc(lines * sizeof *order);
    if (order == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < lines; i++) {
        order[i] = i;
    }
    uint64_t state = seed | 1;
    for (size_t i = lines; i > 1; i--) {
        const size_t other = jw_random(&state) % i, held = order[i - 1];
        order[i - 1] = order[other];
        order[other] = held;
    }
    /* A random order, closed to a ring: that is one cycle, whatever the order. */
    for (size_t i = 0; i < lines; i++) {
        first[order[i]].next = &first[order[i + 1 < lines ? i + 1 : 0]];
    }
    free(order);
    return 0;
}
