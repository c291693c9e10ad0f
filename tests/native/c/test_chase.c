/* A chase comes to every line once before it comes back, and in no order that a processor could guess. */
#include <stdlib.h>

#include "check.h"
#include "chase.h"

static void a_round_trip(size_t lines) {
    jw_chase_line *first = aligned_alloc(_Alignof(jw_chase_line), lines * sizeof *first);
    bool *seen = calloc(lines, sizeof *seen);
    CHECK(first != NULL && seen != NULL);
    CHECK(jw_chase_make(first, lines, 7) == 0);
    const jw_chase_line *at = first;
    size_t forwards = 0;
    for (size_t i = 0; i < lines; i++) {
        const jw_chase_line *next = jw_chase(at, 1);
        CHECK(next >= first && next < first + lines && !seen[next - first]);
        seen[next - first] = true;
        forwards += next == at + 1;
        at = next;
    }
    CHECK(at == first && jw_chase(first, (int)(2 * lines)) == first);
    CHECK(lines < 1000 || forwards < lines / 100);
    free(seen);
    free(first);
}

int main(void) {
    static const size_t sizes[] = {1, 2, 3, 64, 1000, 4096};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        a_round_trip(sizes[i]);
    }
    return 0;
}
