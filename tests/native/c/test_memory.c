/* Memory that is there before it is used: whole, zero, from a huge page's boundary on, of huge pages where there are some. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"
#include "memory.h"

/* Bytes of huge pages in the mapping that holds `memory`, by /proc/self/smaps. */
static size_t huge_bytes(const void *memory) {
    FILE *file = fopen("/proc/self/smaps", "re");
    CHECK(file != NULL);
    char line[512];
    bool inside = false;
    size_t found = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned long from, until, kib;
        if (sscanf(line, "%lx-%lx ", &from, &until) == 2) {
            inside = (uintptr_t)memory >= from && (uintptr_t)memory < until;
        } else if (inside && sscanf(line, "AnonHugePages: %lu kB", &kib) == 1) {
            found += kib * 1024;
        }
    }
    CHECK(fclose(file) == 0);
    return found;
}

/* Bytes of huge pages that this host gives to memory that is aligned and asks for them: 0 if it has none. */
static size_t huge_bytes_here(size_t bytes) {
    char *mapped = mmap(NULL, bytes + JW_HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mapped != MAP_FAILED);
    char *aligned = mapped + (JW_HUGE_PAGE - (uintptr_t)mapped % JW_HUGE_PAGE) % JW_HUGE_PAGE;
    (void)madvise(aligned, bytes, MADV_HUGEPAGE);
    memset(aligned, 1, bytes);
    const size_t found = huge_bytes(aligned);
    CHECK(munmap(mapped, bytes + JW_HUGE_PAGE) == 0);
    return found;
}

static void whole_and_zero(size_t bytes) {
    unsigned char *memory = jw_map(bytes);
    CHECK(memory != NULL);
    for (size_t i = 0; i < bytes; i++) {
        CHECK(memory[i] == 0);
    }
    memset(memory, 0xff, bytes);
    CHECK(bytes < JW_HUGE_PAGE / 2 || (uintptr_t)memory % JW_HUGE_PAGE == 0);
    jw_unmap(memory, bytes);
}

static void of_huge_pages_where_there_are_some(void) {
    const size_t bytes = 4 * JW_HUGE_PAGE - 1000;
    const bool some = huge_bytes_here(4 * JW_HUGE_PAGE) == 4 * JW_HUGE_PAGE;
    void *memory = jw_map(bytes);
    CHECK(memory != NULL);
    CHECK(!some || huge_bytes(memory) >= 4 * JW_HUGE_PAGE);
    jw_unmap(memory, bytes);
}

/* Given back, also where it was locked: zero again. */
static void given_back(void) {
    const size_t bytes = 3 * 4096 + 100;
    unsigned char *memory = jw_map(bytes);
    CHECK(memory != NULL);
    memset(memory, 0xff, bytes);
    (void)mlock(memory, bytes); /* a limit may forbid it */
    CHECK(jw_give_back(memory, bytes) == 0);
    for (size_t i = 0; i < bytes; i++) {
        CHECK(memory[i] == 0);
    }
    jw_unmap(memory, bytes);
    CHECK(jw_give_back((void *)16, 4096) < 0);
}

int main(void) {
    given_back();
    whole_and_zero(1);
    whole_and_zero(100000);
    whole_and_zero(JW_HUGE_PAGE / 2);
    whole_and_zero(JW_HUGE_PAGE);
    whole_and_zero(3 * JW_HUGE_PAGE + 5000);
    CHECK(jw_map(SIZE_MAX / 2) == NULL);
    jw_unmap(NULL, 1);
    of_huge_pages_where_there_are_some();
    return 0;
}
