/* What a measuring child asks of the kernel for itself as a whole. */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "core.h"

/* Killed as soon as the thread that started this process is gone (PR_SET_PDEATHSIG, prctl(2)). 0 or -errno. */
int jw_die_with_parent(void) {
    return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 ? -errno : 0;
}

/* Everything resident for good; `future`: also what is mapped later. 0 or -errno, and then nothing is locked. */
int jw_lock_memory(int future) {
    if (mlockall(future ? MCL_CURRENT | MCL_FUTURE : MCL_CURRENT) != 0) {
        int failed = -errno;
        munlockall();
        return failed;
    }
    return 0;
}
