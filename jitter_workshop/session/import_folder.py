"""Read a folder of a session that has a JSON file for each item of a kind (``imports/``, ``proofs/``).

A damaged file is set aside under another name, and a file of a newer version is left alone; the user is told of both.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from jitter_workshop.model.codec import from_plain
from jitter_workshop.model.text import clean
from jitter_workshop.session import files, ids

T = TypeVar("T")


def read_all(
    folder: Path, kind: type[T], what: str, newest: int, check: Callable[[T, str], object], *, set_aside: bool
) -> tuple[list[tuple[Path, T]], list[str]]:
    """Return the items by file name, with their files, and notices for the user. ``newest``: the latest version of
    their form that is known here. ``check``: takes an item and its file's id, and raises ValueError for an impossible
    item. ``set_aside``: a damaged file may be renamed."""
    found, notices = list[tuple[Path, T]](), list[str]()
    try:
        paths = sorted(e for e in folder.iterdir() if e.suffix == ".json" and ids.is_id(e.stem))
    except OSError:
        return found, notices
    for path in paths:
        shown = clean(path.stem, 80)
        try:
            value = files.read_json(path)
            version = value.get("format_version")
            if isinstance(version, int) and version > newest:
                notices.append(f"{what} {shown} was written by a newer version and is left out")
                continue
            one = from_plain(kind, value)
            check(one, path.stem)
            found.append((path, one))
        except OSError as error:
            notices.append(f"{what} {shown} cannot be read: {(error.strerror or 'unreadable').lower()}")
        except ValueError as error:
            notices.append(f"{what} {shown} is damaged ({clean(error, 120)}); {put_aside(path, set_aside)}")
    return found, notices


def put_aside(path: Path, may: bool) -> str:
    """Rename a damaged file where that is allowed; return the outcome in words."""
    target = files.set_aside(path) if may else None
    return f"set aside as {clean(target.name)}" if target else "left where it is"
