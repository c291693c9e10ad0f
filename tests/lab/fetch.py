"""``python -m tests.lab.fetch [--all]``: bring the lab machine's kernels into the cache (two downloads of 70 MB, once).

``--all``: also what only the machines of the matrix need, the newest kernel that Debian has (100 MB).

The lab is a gift where it can be had: what is missing is told in one line, and the exit code is 0. With
``JITTER_WORKSHOP_LAB=required`` it is retried, and what is still missing then is exit code 2; ``off`` does nothing.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from tests.lab import kernels


def main() -> int:
    switch = os.environ.get("JITTER_WORKSHOP_LAB", "")
    if switch == "off":
        return 0
    try:
        kernels.check_tools()
        for flavour in kernels.SOURCES if "--all" in sys.argv[1:] else kernels.USUAL:
            _ensure(flavour, kernels.cache_dir(), attempts=4 if switch == "required" else 1)
    except (kernels.NotHere, OSError) as reason:
        print(
            f"lab machine: {'it is required, but' if switch == 'required' else 'left out, because'} {reason}",
            file=sys.stderr,
        )
        return 2 if switch == "required" else 0
    return 0


def _ensure(flavour: str, cache: Path, attempts: int) -> None:
    """Leave a cached kernel alone, fetch one that is not there; the last attempt's reason is the one that is raised."""
    try:
        kernels.find(flavour, cache)
        return
    except kernels.NotHere:
        pass
    for attempt in range(1, attempts + 1):
        print(f"lab machine: getting the {flavour} kernel into {cache}", flush=True)
        try:
            kernels.fetch(flavour, cache)
            return
        except kernels.NotHere:
            if attempt == attempts:
                raise
            time.sleep(5 * attempt)


if __name__ == "__main__":
    sys.exit(main())
