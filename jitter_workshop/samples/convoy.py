"""Let several threads take one lock again and again, and print how long they waited.

Each thread repeats two short steps. First it updates a shared checksum while it holds the lock. Then it computes a
checksum of its own data without the lock. When the thread needs the lock again, another thread usually holds it. The
threads then queue behind each other, like ships in a convoy. Each wait costs a sleep and a wake-up (M. Blasgen and
others, The Convoy Phenomenon, Operating Systems Review 13, 1979). Python's global lock plays no part, because zlib
releases it for data of more than 5 KiB.
"""

from __future__ import annotations

import threading
import time
import zlib

from jitter_workshop.samples.common import report, seconds_asked

THREADS = 4
SHARED, OWN = bytes(range(256)) * 1_024, bytes(range(256)) * 256
"""The data that is summed up under the lock (256 KiB), and the data that each thread sums up alone (64 KiB)."""


def main() -> None:
    """Run the threads for some seconds, and print how long each of their steps waited for the lock."""
    ends = time.monotonic() + seconds_asked()
    lock = threading.Lock()
    waited: list[list[int]] = [[] for _ in range(THREADS)]
    shared = 0

    def work(mine: list[int]) -> None:
        nonlocal shared
        own = 0
        while time.monotonic() < ends:
            asked = time.perf_counter_ns()
            with lock:
                mine.append(time.perf_counter_ns() - asked)
                shared = zlib.crc32(SHARED, shared)
            own = zlib.crc32(OWN, own)

    threads = [threading.Thread(target=work, args=(mine,), name=f"ship {n}") for n, mine in enumerate(waited)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    every = [one for mine in waited for one in mine]
    report("steps waited for the lock", every, f"{THREADS} threads, checksum {shared:08x}")


if __name__ == "__main__":
    main()
