"""Keep curves of other tools in a session, beside its runs: one file ``imports/ID.json`` for each curve.

These curves are not runs: they are not included when runs are counted or judged. A damaged file is set aside under
another name, and a file of a newer version is left alone.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from jitter_workshop.model.codec import to_plain
from jitter_workshop.model.curve import IMPORT_FORMAT, ImportedRun
from jitter_workshop.session import files, ids

FOLDER = "imports"


def store_import(session: Path, run: ImportedRun) -> ImportedRun:
    """Store a curve in a session's folder; return the stored curve with its id. Raise SessionError if that fails."""
    folder = session / FOLDER
    files.make_folder(folder)
    stored = dataclasses.replace(run, id=ids.free_id(folder, ".json"), imported_at=ids.timestamp())
    # No spaces: a fine histogram has a hundred thousand numbers.
    files.write_whole(folder / f"{stored.id}.json", files.json_line(to_plain(stored)))
    return stored


def read_imports(session: Path, *, set_aside: bool = True) -> tuple[tuple[ImportedRun, ...], tuple[str, ...]]:
    """Return a session's curves, oldest first, and notices for the user about unreadable files."""
    found, notices = files.read_each(
        session / FOLDER, ImportedRun, "import", IMPORT_FORMAT, _check, may_rename=set_aside
    )
    return tuple(sorted((r for _, r in found), key=lambda r: (r.imported_at, r.id))), tuple(notices)


def _check(run: ImportedRun, ident: str) -> None:
    """Raise ValueError if a stored curve has impossible values, or an id other than ``ident``. ``ident``: the id in the
    file's name. A user may have edited the file."""
    if run.id != ident or not run.origin:
        raise ValueError("the file belongs to another import")
    before = -1
    for low, high, samples in run.bins:
        if not before < high or not 0 <= low <= high or samples < 1:
            raise ValueError("the buckets are out of order")
        before = high
    if any(not 0 <= p < 100 or v < 0 for p, v in run.points) or run.beyond < 0 or run.max_ns < 0:
        raise ValueError("the percentiles are impossible")
    if not run.bins and not run.points:
        raise ValueError("the file holds no samples")
    if run.bins and run.count != run.beyond + sum(samples for _, _, samples in run.bins):
        raise ValueError("the number of samples does not fit the buckets")
