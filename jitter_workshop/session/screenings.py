"""Keep the screenings of a session, each in a file ``screenings/ID.json``.

A file is written again after each pair, so that at most one pair is lost if the process is killed. A damaged file is
renamed, and a file of a newer version is left unchanged. The file has no results: they are computed from the pairs each
time.
"""

from __future__ import annotations

from pathlib import Path

from jitter_workshop.errors import SessionError
from jitter_workshop.model.codec import to_plain
from jitter_workshop.model.screening import FORMAT_VERSION, Screening
from jitter_workshop.model.text import clean
from jitter_workshop.session import files, ids

FOLDER = "screenings"


def store_screening(session: Path, screening: Screening) -> None:
    """Store a screening, in place of its stored state. Raise SessionError if that fails; then the stored state is
    unchanged."""
    if not ids.is_folder_id(screening.id):
        raise SessionError(f"a screening cannot be stored as {clean(screening.id)}", "make it again")
    folder = session / FOLDER
    files.make_folder(folder)
    files.write_whole(folder / f"{screening.id}.json", files.json_line(to_plain(screening)))


def read_screenings(session: Path, *, set_aside: bool = True) -> tuple[tuple[Screening, ...], tuple[str, ...]]:
    """Return a session's screenings, oldest first, and notices for the user about unreadable files."""
    found, notices = files.read_each(
        session / FOLDER, Screening, "screening", FORMAT_VERSION, _check, may_rename=set_aside
    )
    return tuple(sorted((one for _, one in found), key=lambda one: (one.started_at, one.id))), tuple(notices)


def _check(screening: Screening, ident: str) -> None:
    """Raise ValueError if a stored screening has impossible values, or an id other than ``ident``. ``ident``: the id in
    the file's name. A user may have edited the file."""
    if screening.id != ident:
        raise ValueError("the file belongs to another screening")
    settings = len(screening.settings)
    if settings < 2 or len(set(screening.settings)) < settings or not screening.sittings:
        raise ValueError("the screening has no settings to compare")
    if len(screening.pairs) > screening.planned_pairs or len(screening.proofs) > screening.planned_proofs:
        raise ValueError("the number of pairs is impossible")
    screened, chosen = set(screening.screened), set(screening.chosen)
    if not chosen <= screened or len(chosen) < len(screening.chosen) or (screening.proofs and not chosen):
        raise ValueError("a chosen setting is not one of the screened settings")
    for one in (*screening.pairs, *screening.proofs):
        first, second = set(one.first.on), set(one.second.on)
        if first & second or not first | second <= screened:
            raise ValueError("a pair does not fit its settings")
        if (one.first.side.figure is None) == bool(screening.command):
            raise ValueError("a run has no figure")
