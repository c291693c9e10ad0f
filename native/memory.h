/* Memory that is there before it is used. */
#ifndef JW_MEMORY_H
#define JW_MEMORY_H

#include "core.h"

/* A huge page of x86 and of arm64 with 4 KiB pages; where they have another size, base pages serve as well. */
#define JW_HUGE_PAGE ((size_t)2 << 20)

/* Return zeroed memory that is resident, NULL where there is none. From half a huge page on it begins on a huge page's
 * boundary and consists of huge pages, as far as the host has them. */
void *jw_map(size_t bytes);
/* Free what jw_map returned for as many bytes; NULL is allowed. */
void jw_unmap(void *memory, size_t bytes);
/* Give the pages of such memory back, also locked ones: the next write to each is a fault, and finds zeros. Return 0 or
 * -errno. */
int jw_give_back(void *memory, size_t bytes);

#endif
