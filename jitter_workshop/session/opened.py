"""Give access to an open session: its progress, its runs and their histograms.

The session's folder has ``session.json``, ``lock``, and a folder ``runs/ID`` for each run. A run's folder has
``run.json`` (the output of ``measure --json``), ``histograms.hlog`` (all blocks) and ``merged.hlog`` (the whole run).
``merged.hlog`` has one line for each histogram, so that a chart need not add up thousands of blocks.

A run exists if its folder exists, even if ``session.json`` does not list the run. The reason is that ``session.json``
is written after the folder. The list in ``session.json`` gives only the order of the runs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from jitter_workshop.bench.protocol import BlockDone
from jitter_workshop.errors import SessionError
from jitter_workshop.model.codec import from_plain, to_plain
from jitter_workshop.model.curve import ImportedRun
from jitter_workshop.model.matrix import Matrix
from jitter_workshop.model.proof import Proof
from jitter_workshop.model.run import FORMAT_VERSION as RUN_VERSION
from jitter_workshop.model.run import HANDOFF, INTENDED, Run, apart_from_proofs
from jitter_workshop.model.screening import Screening
from jitter_workshop.model.session import Session
from jitter_workshop.model.text import PATH, REASON, clean
from jitter_workshop.session import files, hlog, ids, imports, matrices, proofs, screenings, traces
from jitter_workshop.session.traces import TRACE_FILE, RunTrace

if TYPE_CHECKING:
    from hdrh.histogram import HdrHistogram

    from jitter_workshop.model.curve import PercentileCurve
    from jitter_workshop.stats.heat import Heat
import fcntl
import json

SESSION_FILE = "session.json"
RUN_FILE = "run.json"
BLOCKS_FILE = "histograms.hlog"
MERGED_FILE = "merged.hlog"

_READ_ONLY_ADVICE = "close the other workshop, or work in another session"


class OpenSession:
    """Hold an open session. ``SessionStore`` makes the object; the caller closes the object, or uses it in a ``with``
    statement.

    ``read_only``: a sentence that says why the session cannot be written; "" if it can be written. ``notices``:
    sentences for the user, for example about damaged files, runs of a newer version, or another workshop that uses this
    session.
    """

    def __init__(self, folder: Path, session: Session, lock: SessionLock, read_only: str = "") -> None:
        self.folder = folder
        self.read_only = read_only
        self.notices: list[str] = [read_only] if read_only else []
        self._session = session
        self._lock = lock
        self._runs: dict[str, Run | None] = {}
        self._names: list[str] = []
        self._here: set[str] = set()
        self._imports: tuple[ImportedRun, ...] | None = None
        self._proving = ""
        self._judge = proofs.Judge(self._run, self._folders)
        if not read_only:
            for place in (
                *(
                    folder / name
                    for name in ("runs", imports.FOLDER, proofs.FOLDER, matrices.FOLDER, screenings.FOLDER)
                ),
                folder,
            ):
                files.remove_unfinished(place)

    def __enter__(self) -> OpenSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the session, so that other workshops may write. A second call does nothing."""
        self._lock.release()
        self.read_only = self.read_only or "this session was closed"

    @property
    def session(self) -> Session:
        """Return the session as stored, but with the runs whose folders are on disk."""
        return dataclasses.replace(self._session, runs=self._run_ids())

    def save(self, session: Session) -> None:
        """Store a session's progress. Raise SessionError if that fails; then the stored progress is unchanged."""
        self._writable()
        known = [r for r in session.runs if r not in self._session.runs]
        stored = dataclasses.replace(
            session,
            id=self._session.id,
            created_at=self._session.created_at,
            updated_at=ids.timestamp(),
            runs=(*self._session.runs, *known),
        )
        files.write_json(self.folder / SESSION_FILE, to_plain(stored))
        self._session = stored

    def add_run(
        self,
        run: Run,
        blocks: Iterable[BlockDone],
        merged: Mapping[str, HdrHistogram] | None = None,
        trace: RunTrace | None = None,
    ) -> None:
        """Store a run with the histograms of its blocks. The folder of the run is written completely or not at all.
        Raise SessionError if the folder or ``session.json`` cannot be written.

        ``merged``: the histograms of the whole run; None to add up the blocks' histograms. ``trace``: the kernel's
        trace of the run; None without a trace.
        """
        self._writable()
        if not ids.is_folder_id(run.id) or (self.folder / "runs" / run.id).exists():
            raise SessionError(f"a run cannot be stored as {clean(run.id)}", "measure again")
        kept = list(blocks)
        base_s = kept[0].wall_start_s if kept else ids.now().timestamp()
        comments = (f"jitter-workshop run {run.id}, values in ns, Interval_Max in ms",)
        whole = _merged_intervals(run, kept, merged, base_s)
        runs = self.folder / "runs"
        files.make_folder(runs)
        files.write_folder(
            runs / run.id,
            {
                RUN_FILE: files.json_bytes(to_plain(run)),
                BLOCKS_FILE: lambda f: hlog.write_log(f, _block_intervals(kept), base_s, comments),
                MERGED_FILE: lambda f: hlog.write_log(f, whole, base_s, comments),
                **({TRACE_FILE: lambda f: traces.write_run_trace(f, trace)} if trace is not None else {}),
            },
        )
        self._runs[run.id] = run
        self.save(dataclasses.replace(self._session, runs=(*self._session.runs, run.id)))

    def runs(self) -> tuple[Run, ...]:
        """Return all readable runs, oldest first. Damaged runs are set aside, and a notice says so."""
        return tuple(run for ident in self._run_ids() if (run := self._run(ident)) is not None)

    def find(self, wanted: str) -> Run:
        """Return the run that ``wanted`` names. ``wanted`` is an id, the beginning of a single id, a label, or a
        number such as ``@1``. If several runs have the label, return the newest of them. Raise SessionError if there
        is no such run.

        ``@1`` is the newest run, ``@2`` the one before. Runs of proofs have no number, because otherwise each new proof
        would change the numbers of all runs. Only if all runs of a session belong to proofs are these runs numbered.
        """
        runs = self.runs()
        if wanted.startswith("@"):
            runs = apart_from_proofs(runs) or runs
        return ids.lookup("run", wanted, runs, lambda run: run.label, "see 'jitter-workshop sessions show'")

    def add_import(self, run: ImportedRun) -> ImportedRun:
        """Store a curve of another tool beside the runs; return the stored curve. Raise SessionError if that fails."""
        self._writable()
        stored = imports.store_import(self.folder, run)
        self._imports = (*self.imports(), stored) if self._imports is not None else None
        return stored

    def imports(self) -> tuple[ImportedRun, ...]:
        """Return curves of other tools, oldest first. Damaged files are set aside, and a notice says so."""
        if self._imports is None:
            self._imports, notices = imports.read_imports(self.folder, set_aside=not self.read_only)
            for notice in notices:
                self._notice(notice)
        return self._imports

    def remove_import(self, run: ImportedRun) -> None:
        """Remove a curve of another tool from the session. Raise SessionError if that fails."""
        self._writable()
        path = self.folder / imports.FOLDER / f"{run.id}.json"
        with files.name_os_errors("remove", path):
            path.unlink(missing_ok=True)
            files.sync_folder(path.parent)
        self._imports = tuple(one for one in self.imports() if one.id != run.id)

    def find_import(self, wanted: str) -> ImportedRun:
        """Return the imported curve that ``wanted`` names. ``wanted`` is an id, the unique beginning of an id, or a
        label. If several curves have the label, return the newest of them. Raise SessionError if there is no such
        curve.
        """
        if wanted.startswith("@"):
            # @1 is the newest run that was measured here; imported curves have no such number.
            raise SessionError(f"there is no import {clean(wanted)}", "give its id or its label")
        known = self.imports()
        return ids.lookup("import", wanted, known, lambda run: run.label, "see 'jitter-workshop sessions show'")

    def find_any(self, wanted: str) -> Run | ImportedRun:
        """Return the run that ``wanted`` names (:meth:`find`). If there is no such run, return the imported curve that
        ``wanted`` names (:meth:`find_import`). Raise SessionError if there is no such curve either.
        """
        try:
            return self.find(wanted)
        except SessionError:
            with contextlib.suppress(SessionError):
                return self.find_import(wanted)
            raise

    def add_matrix(self, matrix: Matrix) -> None:
        """Store a matrix of this host beside the runs. Raise SessionError if that fails."""
        self._writable()
        matrices.store_matrix(self.folder, matrix)

    def matrices(self) -> tuple[Matrix, ...]:
        """Return all matrices, oldest first. Damaged files are set aside, and a notice says so."""
        found, notices = matrices.read_matrices(self.folder, set_aside=not self.read_only)
        for notice in notices:
            self._notice(notice)
        return found

    def find_matrix(self, wanted: str) -> Matrix:
        """Return the matrix for an id, the unique beginning of an id, a label (the newest matrix with it) or ``@1``
        (the newest one). Raise SessionError if there is no such matrix."""
        found = self.matrices()
        if not found:
            raise SessionError("this session has no matrix yet", "run 'jitter-workshop measure --matrix' first")
        return ids.lookup("matrix", wanted, found, lambda one: one.label, "see 'jitter-workshop sessions show'")

    def add_proof(self, proof: Proof) -> None:
        """Store a proof, which need not be finished. It replaces an earlier stored state of this proof. Raise
        SessionError if that fails.
        """
        self._writable()
        proofs.store_proof(self.folder, proof)
        self._proving = "" if proof.ended_at else proof.id

    def proofs(self) -> tuple[Proof, ...]:
        """Return all proofs, oldest first. A notice names each proof that is damaged or was interrupted. The file of a
        damaged proof is renamed, unless the session is read-only."""
        found, notices = proofs.read_proofs(self.folder, self._judge, ours=not self.read_only, own=self._proving)
        for notice in notices:
            self._notice(notice)
        return found

    def find_proof(self, wanted: str) -> Proof:
        """Return the proof that ``wanted`` names. ``wanted`` is an id, the unique beginning of an id, a subject, or
        ``@1`` (the newest proof). A subject names its newest proof. Raise SessionError if there is no such proof.
        """
        known = self.proofs()
        return ids.lookup("proof", wanted, known, lambda proof: proof.subject, "see 'jitter-workshop prove --list'")

    def add_screening(self, screening: Screening) -> None:
        """Store a screening, finished or not, in place of its stored state. Raise SessionError if that fails."""
        self._writable()
        screenings.store_screening(self.folder, screening)

    def screenings(self) -> tuple[Screening, ...]:
        """Return all screenings, oldest first. Damaged files are set aside, and a notice says so."""
        found, notices = screenings.read_screenings(self.folder, set_aside=not self.read_only)
        for notice in notices:
            self._notice(notice)
        return found

    def find_screening(self, wanted: str) -> Screening:
        """Return the screening for an id, the unique beginning of an id, or ``@1`` (the newest one). Raise SessionError
        if there is no such screening."""
        return ids.lookup(
            "screening", wanted, self.screenings(), lambda one: "", "make a screening with 'prove --screen'"
        )

    def has_trace(self, run_id: str) -> bool:
        """Return True if a run has a trace, readable or not."""
        return (self._run_folder(run_id) / TRACE_FILE).is_file()

    def trace(self, run_id: str) -> RunTrace | None:
        """Return the kernel's trace of a run; None if none was recorded. Raise SessionError if the trace is damaged."""
        path = self._run_folder(run_id) / TRACE_FILE
        try:
            with files.open_regular(path) as file:
                return traces.read_run_trace(file)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SessionError(f"the trace of run {clean(run_id)} cannot be read: {error.strerror}") from error

    def histogram(self, run_id: str, name: str) -> HdrHistogram:
        """Return a histogram of a whole run. Raise SessionError if the histogram is missing or damaged (a damaged file
        is set aside)."""
        for file in (MERGED_FILE, BLOCKS_FILE):
            found = self._first(self._run_folder(run_id) / file, name)
            if found is not None:
                return found
        raise SessionError(f"the histogram {clean(name)} of run {clean(run_id)} is missing or damaged")

    def curve(self, run: Run, name: str | None = None) -> PercentileCurve:
        """Return the curve of one histogram of a run. ``name``: the histogram's name; None for the workload's main
        histogram. If the histogram cannot be read, the curve has only the percentiles in ``run``. Raise SessionError if
        the run has no histogram of this name."""
        from jitter_workshop.stats.curve import curve_from_summary, percentile_curve

        wanted = name or run.main_histogram
        summary = run.histograms.get(wanted)
        if summary is None:
            known = ", ".join(run.histograms) or "none"
            raise SessionError(f"run {run.id} has no histogram {clean(wanted)}", f"it has: {known}")
        label = run.label or run.id
        try:
            histogram = self.histogram(run.id, wanted)
        except SessionError as error:
            self._notice(error.sentence())
            found = curve_from_summary(label, summary)
        else:
            found = percentile_curve(histogram, label, min_ns=summary.min, max_ns=summary.max)
        # With a schedule, a message is due at a time that its publication does not change.
        ready = wanted == INTENDED and run.pacing == "schedule"
        of_handoff = run.by_handoff and wanted in (run.main_histogram, INTENDED) and not ready
        return dataclasses.replace(found, origin=", ".join(filter(None, (run.mark, HANDOFF if of_handoff else ""))))

    def heat(self, run: Run, name: str | None = None) -> Heat:
        """Return the heat map of a run. It is made of the histogram ``name`` of each block. ``name``: None for the
        workload's main histogram. Raise SessionError if the blocks' histograms are missing or damaged.
        """
        from jitter_workshop.stats.heat import heat
        from jitter_workshop.stats.histogram import decode_histogram, non_zero

        path = self._run_folder(run.id) / BLOCKS_FILE
        label = f"{run.label or run.id}{f' ({run.mark})' if run.mark else ''}"
        try:
            read = hlog.read_intervals(path, name or run.main_histogram)
            return heat(label, [(one.start_s, one.length_s, non_zero(decode_histogram(one.encoded))) for one in read])
        except (OSError, ValueError) as error:
            what = clean(name or run.main_histogram)
            raise SessionError(
                f"run {run.id} keeps no {what} of single blocks, so the times of its values are not known",
                "measure again: each new run keeps the data of its single blocks",
            ) from error

    def blocks_file(self, run_id: str) -> Path:
        """Return the run's ``.hlog`` of all blocks, for HdrHistogram's own tools."""
        return self._run_folder(run_id) / BLOCKS_FILE

    def read_only_error(self) -> SessionError | None:
        """Return the error that writing would raise; None if writing is possible."""
        return SessionError(self.read_only, _READ_ONLY_ADVICE) if self.read_only else None

    def _writable(self) -> None:
        error = self.read_only_error()
        if error is not None:
            raise error

    def _notice(self, sentence: str) -> None:
        if sentence not in self.notices:
            self.notices.append(sentence)

    def _run_folder(self, run_id: str) -> Path:
        if not ids.is_folder_id(run_id):
            raise SessionError(f"there is no run {clean(run_id)}")
        return self.folder / "runs" / run_id

    def _run_ids(self) -> tuple[str, ...]:
        return order_ids(self._session.runs, self._folders())

    def _folders(self) -> set[str]:
        """Return the ids of the runs that have a folder. The result is cached until an entry of the folder ``runs`` is
        added or removed."""
        try:
            with os.scandir(self.folder / "runs") as entries:
                names = [entry.name for entry in entries]
        except OSError:
            return set()
        if names != self._names:
            self._names, self._here = names, run_folders(self.folder)
        return self._here

    def _run(self, ident: str) -> Run | None:
        """Return a run. Return None if the run cannot be read; the first time, a notice tells the user."""
        if ident not in self._runs:
            self._runs[ident] = self._read(ident)
        return self._runs[ident]

    def _read(self, ident: str) -> Run | None:
        path = self._run_folder(ident) / RUN_FILE
        try:
            return read_run(path, ident)
        except files.NewerVersion:
            self._notice(f"run {ident} was written by a newer version and is left out")
        except OSError as error:
            self._notice(f"run {ident} cannot be read: {(error.strerror or 'unreadable').lower()}")
        except ValueError as error:
            self._set_aside(path.parent, f"run {ident} is damaged ({clean(error, REASON)})")
        return None

    def _set_aside(self, path: Path, what: str) -> None:
        self._notice(f"{what} and is {files.put_aside(path, may=not self.read_only)}")

    def _first(self, path: Path, name: str) -> HdrHistogram | None:
        """Return the sum of all intervals with the tag ``name`` in the histogram log ``path``; None if the log has
        none, or cannot be read."""
        from jitter_workshop.stats.histogram import add_counts, decode_histogram

        total: HdrHistogram | None = None
        try:
            for interval in hlog.read_intervals(path, name):
                part = decode_histogram(interval.encoded)
                if total is None:
                    total = part
                else:
                    add_counts(total, part)
            return total
        except FileNotFoundError:
            pass
        except OSError as error:
            self._notice(f"{clean(path, PATH)} cannot be read: {(error.strerror or 'unreadable').lower()}")
        except ValueError as error:
            self._set_aside(path, f"{clean(path, PATH)} is damaged ({clean(error, REASON)})")
        return None


def read_run(path: Path, ident: str) -> Run:
    """Read a run from its file. Raise OSError if the file cannot be read, ValueError if it is damaged. Raise
    files.NewerVersion if a newer version of the workshop wrote the file."""
    try:
        value = files.read_json(path)
    except FileNotFoundError as error:
        raise ValueError("run.json is missing") from error
    try:
        run = from_plain(Run, value)
    except ValueError as error:
        raise (files.NewerVersion() if files.is_newer(value, RUN_VERSION) else error) from error
    if run.id != ident:
        raise ValueError("run.json belongs to another run")
    return run


def run_folders(folder: Path) -> set[str]:
    """Return the ids of the runs that have a folder."""
    try:
        # The listing includes each entry's type: one call per entry would take ten times as long.
        with os.scandir(folder / "runs") as entries:
            return {e.name for e in entries if ids.is_folder_id(e.name) and e.is_dir()}
    except OSError:
        return set()


def order_ids(listed: Iterable[str], here: set[str]) -> tuple[str, ...]:
    """Return the ids in ``here`` in order. The ids that are also in ``listed`` come first, in the order of ``listed``.
    All other ids follow, in ascending order."""
    known = [run for run in dict.fromkeys(listed) if run in here]
    return (*known, *sorted(here.difference(known)))


def _block_intervals(blocks: list[BlockDone]) -> Iterable[hlog.IntervalHistogram]:
    for block in blocks:
        length_s = (block.end_ns - block.start_ns) / 1e9
        for name, part in block.histograms.items():
            yield hlog.IntervalHistogram(name, block.wall_start_s, length_s, part.max or 0, part.encoded)


def _merged_intervals(
    run: Run, blocks: list[BlockDone], merged: Mapping[str, HdrHistogram] | None, base_s: float
) -> list[hlog.IntervalHistogram]:
    from jitter_workshop.stats.histogram import add_counts, decode_histogram, encode_histogram

    totals: dict[str, HdrHistogram] = dict(merged or {})
    if merged is None:
        for block in blocks:
            for name, part in block.histograms.items():
                if name in totals:
                    add_counts(totals[name], decode_histogram(part.encoded))
                else:
                    totals[name] = decode_histogram(part.encoded)
    length_s = blocks[-1].wall_start_s - base_s + (blocks[-1].end_ns - blocks[-1].start_ns) / 1e9 if blocks else 0.0
    maxima = {name: s.max or 0 for name, s in run.histograms.items()}
    return [
        hlog.IntervalHistogram(name, base_s, max(length_s, 0.0), maxima.get(name, 0), encode_histogram(total))
        for name, total in totals.items()
    ]


LOCK_NAME = "lock"


class SessionLock:
    """Hold an exclusive lock on a session's file ``lock`` (flock(2)). ``holder``: words that name the process with the
    lock, if this is another process; otherwise "".
    """

    def __init__(self, folder: Path) -> None:
        self._handle: int | None = None
        self.holder = ""
        self._path = folder / LOCK_NAME

    def take(self) -> bool:
        """Take the lock without waiting and return True. Return False and set ``holder`` if another process has the
        lock. Raise OSError for other failures."""
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.holder = _holder(handle)
            os.close(handle)
            return False
        except BaseException:
            os.close(handle)
            raise
        # The lock is held even if a full disk leaves no room to write our pid.
        with contextlib.suppress(OSError):
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps({"pid": os.getpid()}).encode(), 0)
        self._handle = handle
        return True

    def release(self) -> None:
        """Release the lock. Do nothing if the lock is not held."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _holder(handle: int) -> str:
    try:
        return f"another workshop (pid {int(json.loads(os.pread(handle, 200, 0))['pid'])})"
    except (ValueError, KeyError, TypeError, OSError):
        return "another workshop"
