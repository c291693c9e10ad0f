"""Close file descriptors. They are plain numbers, which Python does not close by itself."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def closed_after(descriptor: int) -> Iterator[int]:
    """Yield an open descriptor, and close the descriptor at the end of the ``with`` block, also after an error."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)
