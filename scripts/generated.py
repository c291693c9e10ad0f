"""Keep a part of a document that is made from other files: the end that ``rooms.py`` and ``glossary.py`` share."""

from __future__ import annotations

import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]


def keep(document: Path, made: str, unlike: str) -> int:
    """Write ``made`` as the document where the command line has ``--write``, else compare both. Return the exit code:
    1 if they differ, which ``unlike`` tells."""
    if "--write" in sys.argv:
        document.write_text(made)
        return 0
    if made == document.read_text():
        return 0
    print(f"{document.relative_to(REPOSITORY)}: {unlike}; run python scripts/{Path(sys.argv[0]).name} --write")
    return 1
