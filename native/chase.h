/* A chase through memory: every load has its address from the load before it, so that each waits for the one before. */
#ifndef JW_CHASE_H
#define JW_CHASE_H

#include "core.h"

/* A cache line that names the next one. */
typedef struct jw_chase_line {
    _Alignas(JW_LINE) const struct jw_chase_line *next;
    char rest[JW_LINE - sizeof(void *)];
} jw_chase_line;

/* Make one round trip through `lines` lines, in a random order that `seed` decides: a processor cannot guess the next one.
 * Return 0 or -ENOMEM. */
int jw_chase_make(jw_chase_line *first, size_t lines, uint64_t seed);

/* Return the line after `steps` loads. `volatile`: the compiler leaves none of them out. */
JW_INLINE const jw_chase_line *jw_chase(const jw_chase_line *at, int steps) {
    for (int i = 0; i < steps; i++) {
        at = *(const jw_chase_line *const volatile *)&at->next;
    }
    return at;
}

#endif
