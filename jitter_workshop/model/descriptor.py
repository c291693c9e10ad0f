"""Close descriptors of the operating system: plain numbers, which nothing closes by itself."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def closed_after(descriptor: int) -> Iterator[int]:
    """Yield an open descriptor, and close it at the end of the block, also after an error."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)
