"""``python -m tests.lab.fetch [--try]``: bring the lab machine's kernels into the cache (about 140 MB, once).

Exit 0 when all are there; otherwise 2 with the reason, or 0 with ``--try``, which is for hosts where the lab is a gift.
"""

from __future__ import annotations

import sys
import time

from tests.lab import kernels


def main(arguments: list[str]) -> int:
    gift = "--try" in arguments
    attempts = 1 if gift else 3
    cache = kernels.cache_dir()
    for flavour in kernels.PACKAGES:
        try:
            kernels.check_tools()
            kernels.find(flavour, cache)
            continue
        except kernels.NotHere as reason:
            if "no " + flavour not in str(reason):
                return _sorry(reason, gift)
        for attempt in range(1, attempts + 1):
            print(f"lab: getting the {flavour} kernel into {cache}", flush=True)
            try:
                kernels.fetch(flavour, cache)
                break
            except kernels.NotHere as reason:
                if attempt == attempts:
                    return _sorry(reason, gift)
                time.sleep(5 * attempt)
    return 0


def _sorry(reason: Exception, gift: bool) -> int:
    print(f"lab: skipped, because {reason}" if gift else f"lab: {reason}", file=sys.stderr)
    return 0 if gift else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
