/* Drawn numbers: nothing keeps step with them, and no processor guesses them. */
#ifndef JW_RANDOM_H
#define JW_RANDOM_H

#include "core.h"

/* The next number: xorshift64* (S. Vigna, 2016). `state`: anything but 0; the same state gives the same numbers. */
JW_INLINE uint64_t jw_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545F4914F6CDD1D);
}

#endif
