"""Bring back the session in a report: ``sessions import REPORT.html``, called by ``commands.sessions``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jitter_workshop.errors import SessionError
from jitter_workshop.model.record import picked
from jitter_workshop.model.text import clean, many
from jitter_workshop.session import reportfile
from jitter_workshop.session.archive import BroughtBack, Unpacked, unpack

SHOWN = 3
"""Number of missing runs that are named."""


@dataclass(frozen=True, slots=True)
class Page:
    """Hold a report that was read; nothing of it is on disk yet. ``as_written``: its text was not changed since."""

    file: str
    unpacked: Unpacked
    as_written: bool


def read(path: Path, data: bytes) -> Page:
    """Return the session in a page. Raises SessionError that names the file."""
    shown = clean(path.name, 100) or "the file"
    try:
        found = reportfile.archive_in(data)
        return Page(shown, unpack(found.archive), found.page_as_written)
    except SessionError as error:
        raise SessionError(f"{shown} is not imported: {error.message}", error.advice) from error


def lines(page: Page, back: BroughtBack) -> list[str]:
    """Return what was imported, one sentence a line."""
    name = f"{clean(back.name, 60) or 'without a name'} ({back.session})"
    if back.already:
        said = [f"Session {name} exists here already, with the same content: nothing was written."]
    else:
        how = "bit for bit except its id and name" if back.old_id else "bit for bit"
        how = f"as far as the report holds it {how}" if back.left_out else how
        said = [f"Session {name} is back with {many(back.runs, 'run')}, {how}."]
    if back.old_id:
        said.append(f"Another session here has the id {back.old_id} already, so this one has a new id.")
    if back.missing:
        number = len(back.missing)
        said.append(
            f"{many(number, 'run')} that it lists {'was' if number == 1 else 'were'} not in the report: "
            f"{', '.join(clean(run, 40) for run in back.missing[:SHOWN])}{', …' if number > SHOWN else ''}."
        )
    if back.left_out:
        number = len(back.left_out)
        were = "was" if number == 1 else "were"
        said.append(
            f"{many(number, 'file')} of it {were} left out of the report to keep it small and did not come "
            "back; 'sessions import --json' lists them."
        )
    if not page.as_written:
        said.append(f"The text of {page.file} was changed since it was written; the data are unchanged.")
    return [*said, f"To work in it: jitter-workshop sessions use {back.session}"]


def as_json(page: Page, back: BroughtBack) -> dict[str, Any]:
    """Return the same for a script."""
    return {
        "file": page.file,
        **picked(back, "session", "name", "runs"),
        "already_here": back.already,
        "old_id": back.old_id or None,
        "compressed_anew": [],
        **picked(back, "missing", "left_out"),
        "page_as_written": page.as_written,
    }
