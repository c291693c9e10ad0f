"""``python -m tests.lab.fetch [--all]``: bring the lab machine's kernels into the cache (two downloads of 70 MB, once).

``--all``: also what only the machines of the matrix need, the newest kernel that Debian has, and kernel and
programs of an arm64 machine (250 MB).

The lab is a gift where it can be had: what is missing is told in one line, and the exit code is 0. With
``JITTER_WORKSHOP_LAB=required`` it is retried, and what is still missing then is exit code 2; ``off`` does nothing.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from jitter_workshop.practice import kernels
from tests.lab import guestroot

USUAL = ("stock", "rt")
"""The kernels that the tests of each day need."""


def cache_dir() -> Path:
    """Return where kernels are kept: ``$JITTER_WORKSHOP_LAB_CACHE``, else below ``$XDG_CACHE_HOME``."""
    own = os.environ.get("JITTER_WORKSHOP_LAB_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jitter-workshop" / "lab"


def main() -> int:
    switch = os.environ.get("JITTER_WORKSHOP_LAB", "")
    if switch == "off":
        return 0
    try:
        kernels.check_tools()
        everything = "--all" in sys.argv[1:]
        cache, attempts = cache_dir(), 4 if switch == "required" else 1
        for flavour in kernels.SOURCES if everything else USUAL:
            _ensure(
                f"{flavour} kernel",
                partial(kernels.find_kernel, flavour),
                partial(kernels.fetch, flavour),
                cache,
                attempts,
            )
        if everything:
            find, fetch = partial(guestroot.find, "arm64"), partial(guestroot.fetch, "arm64")
            _ensure("programs for arm64", find, fetch, cache, attempts)
    except (kernels.NotHere, OSError) as reason:
        print(
            f"lab machine: {'it is required, but' if switch == 'required' else 'left out, because'} {reason}",
            file=sys.stderr,
        )
        return 2 if switch == "required" else 0
    return 0


def _ensure(
    what: str, find: Callable[[Path], object], fetch: Callable[[Path], object], cache: Path, attempts: int
) -> None:
    """Leave alone what is cached, fetch what is not there; the last attempt's reason is the one that is raised."""
    try:
        find(cache)
        return
    except kernels.NotHere:
        pass
    for attempt in range(1, attempts + 1):
        print(f"lab machine: getting the {what} into {cache}", flush=True)
        try:
            fetch(cache)
            return
        except kernels.NotHere:
            if attempt == attempts:
                raise
            time.sleep(5 * attempt)


if __name__ == "__main__":
    sys.exit(main())
