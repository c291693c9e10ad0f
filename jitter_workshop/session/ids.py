"""Make ids of sessions and runs: short, safe as names of folders, and sorted by time."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol, TypeVar

from jitter_workshop.errors import SessionError, UsageError
from jitter_workshop.model.text import LABEL, clean


class HasId(Protocol):
    """Describe an item that has an id."""

    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=HasId)

_SAFE = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,63}")


def now() -> datetime.datetime:
    """Return the current time in UTC."""
    return datetime.datetime.now(datetime.UTC)


def timestamp(moment: datetime.datetime | None = None) -> str:
    """Return a time (None = now) in ISO 8601, UTC, with microseconds, so that two sessions can be ordered by
    ``created_at``."""
    return (moment or now()).isoformat(timespec="microseconds").replace("+00:00", "Z")


def new_id(moment: datetime.datetime | None = None) -> str:
    """Return an id such as ``20261121-093012-ab3f``: second in UTC, then four random hex digits."""
    return f"{moment or now():%Y%m%d-%H%M%S}-{os.urandom(2).hex()}"


def free_id(folder: Path, ending: str = "", moment: datetime.datetime | None = None) -> str:
    """Return a new id that no entry of the folder uses. An entry uses an id if its name is the id followed by
    ``ending``. Raise SessionError if no free id was found."""
    for _ in range(64):
        ident = new_id(moment)
        if not (folder / f"{ident}{ending}").exists():
            return ident
    raise SessionError("no free id was found", "try again")


def is_folder_id(text: str) -> bool:
    """Return True if a text may be the name of a session's or a run's folder."""
    return _SAFE.fullmatch(text) is not None and ".damaged-" not in text


def checked_name(name: str) -> str:
    """Return a user's name for a session, cleaned and shortened. Raise UsageError if the name has no visible character,
    or begins with ``@`` or ``-``."""
    found = clean(name, LABEL)
    if not found:
        raise UsageError("a session's name needs a visible character")
    if found[0] in "@-":
        raise UsageError(f"a session's name cannot start with '{found[0]}'", "choose another first character")
    return found


def lookup(kind: str, wanted: str, known: Iterable[T], name: Callable[[T], str], advice: str) -> T:
    """Return the item that ``wanted`` names. ``wanted`` is an id, the beginning of an id, a name, or a number such as
    ``@1``. ``@1`` is the newest item, ``@2`` the one before. If several items have the name, return the newest of
    them. ``known``: items from oldest to newest. ``name``: returns an item's name. ``kind``, ``advice``: words for the
    error. Raise SessionError if ``wanted`` names no item, or if several ids begin with ``wanted``.
    """
    items = {item.id: item for item in known}
    ids = list(items)
    shown = clean(wanted)
    if wanted.startswith("@"):
        number = int(wanted[1:]) if wanted[1:].isdecimal() and len(wanted) < 10 else 0
        if 1 <= number <= len(ids):
            return items[ids[-number]]
        raise SessionError(f"there is no {kind} {shown}: the number of {kind}s is {len(ids)}", advice)
    if wanted in items:
        return items[wanted]
    begun = [ident for ident in ids if wanted and ident.startswith(wanted)]
    if len(begun) == 1:
        return items[begun[0]]
    named = [item for item in items.values() if name(item) == wanted and wanted]
    if named:
        return named[-1]
    if begun:
        raise SessionError(
            f"{shown} matches {len(begun)} {kind} ids, from {begun[0]} to {begun[-1]}", "type more of the id"
        )
    raise SessionError(f"there is no {kind} {shown or 'with an empty name'}", advice)
