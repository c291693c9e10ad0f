"""Keep matrices of the times between CPUs in a session. Each matrix has a file ``matrices/ID.json``.

A damaged file is set aside under another name, and a file of a newer version is left alone.
"""

from __future__ import annotations

from pathlib import Path

from jitter_workshop.model.codec import from_plain, to_plain
from jitter_workshop.model.matrix import FORMAT_VERSION, Matrix, PairTimes
from jitter_workshop.session import files, ids

FOLDER = "matrices"


def store_matrix(session: Path, matrix: Matrix) -> None:
    """Store a matrix in a session's folder. Raise SessionError if that fails."""
    folder = session / FOLDER
    files.make_folder(folder)
    files.write_whole(folder / f"{matrix.id}.json", files.json_line(to_plain(matrix)))


def read_matrices(session: Path, *, set_aside: bool = True) -> tuple[tuple[Matrix, ...], tuple[str, ...]]:
    """Return a session's matrices, oldest first, and notices for the user about unreadable files. ``set_aside``: True
    if a damaged file may be renamed.
    """
    found, notices = files.read_each(session / FOLDER, Matrix, "matrix", FORMAT_VERSION, _check, may_rename=set_aside)
    return tuple(sorted((m for _, m in found), key=lambda m: (m.started_at, m.id))), tuple(notices)


def _check(matrix: Matrix, ident: str) -> None:
    """Raise ValueError if a stored matrix has impossible values, or an id other than ``ident``. ``ident``: the id in
    the file's name. A user may have edited the file."""
    if matrix.id != ident:
        raise ValueError("the file belongs to another matrix")
    size = len(matrix.cpus)
    if size < 2 or list(matrix.cpus) != sorted(set(matrix.cpus)) or matrix.cpus[0] < 0:
        raise ValueError("the CPUs are out of order")
    rows = matrix.one_way_ns
    if len(rows) != size or any(len(row) != size for row in rows):
        raise ValueError("the matrix is not square")
    if any(ns is not None and not 0 < ns < 1e12 for row in rows for ns in row):
        raise ValueError("a time is impossible")
    if any(rows[a][b] != rows[b][a] for a in range(size) for b in range(a)):
        raise ValueError("the two halves of the matrix differ")


def newest_lines(sessions: Path, topology: str) -> PairTimes | None:
    """Return the times in a host's newest complete matrix. All sessions in a folder are searched for it. ``topology``:
    the id of the host's CPU topology; each matrix stores the id of its host. A file that cannot be read is ignored.
    Return None if the host has no complete matrix.
    """
    named: list[tuple[str, Path]] = []
    try:
        for session in sessions.iterdir():
            if ids.is_folder_id(session.name):
                try:
                    named += [(e.name, e) for e in (session / FOLDER).iterdir() if e.suffix == ".json"]
                except OSError:
                    continue
    except OSError:
        return None
    for _, path in sorted(named, reverse=True):
        try:
            matrix = from_plain(Matrix, files.read_json(path))
            _check(matrix, path.stem)
        except (OSError, ValueError):
            continue
        if matrix.complete and matrix.topology == topology:
            return matrix.lines
    return None
