/* Memory that is there before it is used. */
#ifndef JW_MEMORY_H
#define JW_MEMORY_H

#include "core.h"

/* A huge page of x86 and of arm64 with 4 KiB pages; where they have another size, base pages serve as well. */
#define JW_HUGE_PAGE ((size_t)2 << 20)

/* The bytes of the fewest whole huge pages that hold `bytes`. */
JW_INLINE size_t jw_whole_huge_pages(size_t bytes) {
    return (bytes + JW_HUGE_PAGE - 1) / JW_HUGE_PAGE * JW_HUGE_PAGE;
}

/* Return zeroed memory that is resident, NULL where there is none. From half a huge page on it begins on a huge page's
 * boundary and consists of huge pages, as far as the host has them. */
void *jw_map(size_t bytes);
/* Free what jw_map returned for as many bytes; NULL is allowed. */
void jw_unmap(void *memory, size_t bytes);
/* Give the pages of such memory back, also locked ones: the next write to each is a fault, and finds zeros. Return 0 or
 * -errno. */
int jw_give_back(void *memory, size_t bytes);
/* Have the next faults of such memory give huge pages, where the kernel has them; where it has none, nothing changes. */
void jw_ask_huge(void *memory, size_t bytes);
/* Return how many huge pages such memory has now; -1 where /proc/self/smaps does not say. */
int64_t jw_huge_pages(const void *memory, size_t bytes);

#endif
