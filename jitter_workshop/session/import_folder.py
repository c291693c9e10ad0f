"""One folder of a session with a JSON file for each thing of a kind (``imports/``, ``proofs/``): reading them all.

A damaged file is set aside under another name and told, and what a newer version wrote is left alone and told.
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
    """The things by file name, with their files, and what the user should be told. ``newest``: the latest version of
    their form that is known here. ``check``: given a thing and the id that its file has, raises ValueError for what
    cannot be; ``set_aside``: whether a damaged file may be renamed."""
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
    """Rename a damaged file where that is allowed; what became of it, in words."""
    target = files.set_aside(path) if may else None
    return f"set aside as {clean(target.name)}" if target else "left where it is"
