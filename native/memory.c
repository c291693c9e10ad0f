/* Memory that is resident before it is used, and locking it. */
#include "memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* A line of /proc/self/smaps; the rest of a longer one, which ends with a file's path, matches nothing. */
enum { SMAPS_LINE = 256 };

/* Half a huge page of memory, or more, gets whole ones; the rest of the last one is left over. */
static size_t in_huge_pages(size_t bytes) {
    return bytes >= JW_HUGE_PAGE / 2 && bytes <= SIZE_MAX / 2 ? jw_whole_huge_pages(bytes) : 0;
}

static void *map(size_t bytes, int flags) {
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

/* Map `huge` bytes from a huge page's boundary on: map more, and give back what is before and behind. */
static void *map_huge(size_t huge) {
    char *mapped = map(huge + JW_HUGE_PAGE, 0);
    if (mapped == MAP_FAILED) {
        return MAP_FAILED;
    }
    const size_t before = (JW_HUGE_PAGE - (uintptr_t)mapped % JW_HUGE_PAGE) % JW_HUGE_PAGE;
    if (before > 0) {
        (void)munmap(mapped, before);
    }
    (void)munmap(mapped + before + huge, JW_HUGE_PAGE - before);
    /* Stamps are written one behind the other: on base pages each 4 KiB of them cost a TLB miss. A host without huge pages,
     * or with none left, gives base pages instead; a refusal is no error. */
    (void)madvise(mapped + before, huge, MADV_HUGEPAGE);
    return mapped + before;
}

void *jw_map(size_t bytes) {
    const size_t huge = in_huge_pages(bytes), whole = huge > 0 ? huge : bytes;
    void *memory = huge > 0 ? map_huge(huge) : map(bytes, MAP_POPULATE);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    /* Touched here in any case: MAP_POPULATE is allowed to give up quietly. */
    memset(memory, 0, whole);
    /* The pages stay as they are. Otherwise khugepaged may move base pages into huge ones in the middle of a block,
     * which stops the threads that use them (Documentation/admin-guide/mm/transhuge.rst). */
    (void)madvise(memory, whole, MADV_NOHUGEPAGE);
    return memory;
}

void jw_unmap(void *memory, size_t bytes) {
    if (memory != NULL) {
        const size_t huge = in_huge_pages(bytes);
        munmap(memory, huge > 0 ? huge : bytes);
    }
}

int jw_give_back(void *memory, size_t bytes) {
    /* Locked pages cannot be given back (madvise(2), EINVAL). */
    return munlock(memory, bytes) == 0 && madvise(memory, bytes, MADV_DONTNEED) == 0 ? 0 : -errno;
}

void jw_ask_huge(void *memory, size_t bytes) {
    /* A kernel without huge pages refuses (madvise(2), EINVAL). */
    (void)madvise(memory, bytes, MADV_HUGEPAGE);
}

int64_t jw_huge_pages(const void *memory, size_t bytes) {
    FILE *mappings = fopen("/proc/self/smaps", "re");
    if (mappings == NULL) {
        return -1;
    }
    const uintptr_t begin = (uintptr_t)memory, end = begin + bytes;
    int64_t found = 0;
    bool told = false, within = false;
    char line[SMAPS_LINE];
    while (fgets(line, sizeof line, mappings) != NULL) {
        uintptr_t from, to;
        int64_t kib;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) == 2) {
            within = from < end && to > begin;
        } else if (within && sscanf(line, "AnonHugePages: %" SCNd64, &kib) == 1) {
            told = true;
            found += kib * 1024;
        }
    }
    (void)fclose(mappings);
    return told ? found / (int64_t)JW_HUGE_PAGE : -1;
}

int jw_lock_memory(int future) {
    if (mlockall(future ? MCL_CURRENT | MCL_FUTURE : MCL_CURRENT) != 0) {
        int failed = -errno;
        munlockall();
        return failed;
    }
    return 0;
}
