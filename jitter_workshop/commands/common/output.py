"""Write a picture to standard output (``-o -``). Files are written by :mod:`jitter_workshop.flow.reporting.files`."""

from __future__ import annotations

import sys
from pathlib import Path

from jitter_workshop.errors import UsageError

STDOUT = Path("-")


def write_stdout(content: bytes) -> None:
    """Write bytes to a file or a pipe; write text to a terminal, too. Raises UsageError for bytes on a terminal."""
    if sys.stdout.isatty():
        try:
            sys.stdout.write(content.decode())
        except UnicodeDecodeError:
            raise UsageError("bytes would disturb this terminal", "send them to a file or a pipe: -o FILE") from None
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
