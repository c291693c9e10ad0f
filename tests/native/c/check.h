/* A test's whole vocabulary: say what must hold, and leave with where it did not. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { TRIES_ON_A_BUSY_MACHINE = 40 };

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* Require that the call returns 0. Two threads that answer each other need a CPU each at the same time: where a busy
 * machine does not give them that, the call says so (-ETIMEDOUT, -EIO) and is made again. No other error is. */
#define CHECK_ANSWERED(call)                                                                                           \
    do {                                                                                                               \
        int status_ = -ETIMEDOUT;                                                                                      \
        for (int i_ = 0; (status_ == -ETIMEDOUT || status_ == -EIO) && i_ < TRIES_ON_A_BUSY_MACHINE; i_++) {           \
            status_ = (call);                                                                                          \
        }                                                                                                              \
        if (status_ != 0) {                                                                                            \
            fprintf(stderr, "%s:%d: returned %d: %s\n", __FILE__, __LINE__, status_, #call);                           \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#endif
