"""List, show, choose or remove sessions; import measurements of other tools.

  sessions               all sessions; * marks the one in use. Damaged files are set aside and named; exit code 1
  sessions show [ID]     the chapters and runs of a session (without ID: the one in use); with --profile, its
                         settings as a file for 'apply --profile'
  sessions use ID        work in this session from now on
  sessions import FILE…  add curves of other tools to this session's runs: HdrHistogram's .hlog and .hgrm,
                         histograms of cyclictest (-h, --histfile, --json) and oslat (also --json);
                         an HTML report brings its session back, bit for bit
  sessions remove ID     remove a session with all its runs (asks, unless --yes is given). With --import LABEL in
                         place of ID, remove only the imported curve with this label, from the session that
                         --session names or from the session in use

ID is an id, its unique beginning, a name (of the newest session with that name), or @1 for the newest.
Imported curves are drawn with 'chart --imported' or by their label, marked with the tool that made them. They are
never part of a comparison or a verdict. If a file does not name the unit of its values, name the unit with --unit.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jitter_workshop.commands.common.base import add_json, print_json, print_result
from jitter_workshop.commands.common.shared import agreed, open_session, say_notices
from jitter_workshop.errors import SessionError, UsageError
from jitter_workshop.model.curve import ImportedRun
from jitter_workshop.model.matrix import Matrix
from jitter_workshop.model.proof import Proof
from jitter_workshop.model.record import picked
from jitter_workshop.model.run import Run, apart_from_proofs
from jitter_workshop.model.screening import Screening
from jitter_workshop.model.session import Session
from jitter_workshop.model.text import (
    CELL,
    ID,
    LABEL,
    LINE,
    MOST_LONG_NAMES,
    PATH,
    SENTENCE,
    SHORT,
    WORD,
    clean,
    many,
    minute,
)
from jitter_workshop.session.store import Damaged, OpenSession, SessionStore

if TYPE_CHECKING:
    from jitter_workshop.session.archive import BroughtBack, Unpacked

ACTIONS = ("list", "show", "use", "import", "remove")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", default="list", choices=ACTIONS, help="the action (default: list)")
    parser.add_argument("id", nargs="*", metavar="ID", help="the session; with import the files to import")
    parser.add_argument(
        "--unit", choices=("ns", "us", "ms", "s"), help="with import: the unit of the values in the file"
    )
    parser.add_argument(
        "--label", default="", metavar="L", help="with import: a name for the curve (default: the name of the file)"
    )
    parser.add_argument(
        "--import", dest="imported", metavar="LABEL", help="with remove: remove only the imported curve LABEL"
    )
    parser.add_argument(
        "--profile", action="store_true", help="with show: print only the applied settings, one ID=VALUE on each line"
    )
    parser.add_argument(
        "--yes", action="store_true", help="with remove: do not ask before the session or curve is removed"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Run the action of ``sessions``. Return 1 if the list of sessions found a damaged file, else 0."""
    if args.imported is not None and args.action != "remove":
        raise UsageError(f"'sessions {args.action}' takes no --import", "--import is only for 'sessions remove'")
    if args.action == "import":
        return _import(args)
    if args.unit or args.label:
        raise UsageError(
            f"'sessions {args.action}' takes no --unit and no --label", "they are only for 'sessions import'"
        )
    if args.action == "list":
        if args.id:
            raise UsageError("'sessions list' takes no ID", f"try 'sessions show {clean(args.id[0], ID)}'")
        return _list(args)
    if args.imported is not None:
        return _remove_import(args)
    if args.action == "show" and not args.id:
        # Advice such as "see 'sessions show'" is about the session in use.
        with open_session(args) as opened:
            ident = opened.session.id
        return _show(args, ident)
    if len(args.id) != 1:
        raise UsageError(f"'sessions {args.action}' takes one ID", "see 'jitter-workshop sessions'")
    return {"show": _show, "use": _use, "remove": _remove}[args.action](args, args.id[0])


def _list(args: argparse.Namespace) -> int:
    store = SessionStore()
    sessions, damaged = store.list(check_runs=True)
    current = store.current_id()
    text = _table(sessions, current) if sessions else "No sessions yet. Start one: jitter-workshop\n"
    for problem in damaged:
        where = (
            f"set aside as {clean(problem.set_aside_as, SENTENCE)}"
            if problem.set_aside_as
            else "the file was not moved"
        )
        text += f"damaged: {clean(problem.file, PATH)} ({problem.reason}); {where}\n"
    print_result(args, _as_json(sessions, damaged, current), text)
    return 1 if damaged else 0


def _show(args: argparse.Namespace, wanted: str) -> int:
    store = SessionStore()
    with store.open(wanted) as opened:
        session, runs, imported, proofs = opened.session, opened.runs(), opened.imports(), opened.proofs()
        screenings = opened.screenings()
        matrices = opened.matrices()
        notices = tuple(opened.notices)
    if args.profile:
        from jitter_workshop.tuning.journal import profile

        sys.stdout.write(profile(session.stack) or "# nothing is applied\n")
        return 0
    if args.json:
        payload = _as_json((session,), (), store.current_id())
        print_json(
            {
                **payload,
                "chapters": session.chapters,
                "run_list": [_run_json(r) for r in runs],
                "imports": [_import_json(r) for r in imported],
                "proofs": [_proof_json(p) for p in proofs],
                "screenings": [_screening_json(one) for one in screenings],
                "matrices": [_matrix_json(m) for m in matrices],
                "notices": notices,
            }
        )
        return 0
    from jitter_workshop.report.proof_words import proof_headline
    from jitter_workshop.report.screening_words import screening_sentence
    from jitter_workshop.stats.comparison import import_line
    from jitter_workshop.stats.screening import screening_result

    lines = [
        f"{clean(session.name)} · {session.id}",
        f"on {clean(session.host) or 'an unknown host'}, since {minute(session.created_at)}",
    ]
    lines += [
        f"  {clean(ident, SHORT):<16} {'done' if progress.done else 'at ' + clean(progress.step, WORD)}"
        for ident, progress in session.chapters.items()
    ]
    # Runs of proofs are shown as proofs: in this list they would hide the others.
    lines += ["", *_run_lines(apart_from_proofs(runs))]
    lines += ["", "Proofs ('jitter-workshop prove --show ID' prints one):"] if proofs else []
    lines += [f"  {proof.id:<21} {clean(proof.subject, ID)} · {proof_headline(proof)}" for proof in proofs]
    lines += ["", "Screenings ('jitter-workshop prove --screen --show ID' prints one):"] if screenings else []
    lines += [
        f"  {one.id:<21} {many(len(one.settings), 'setting')} · {screening_sentence(one, screening_result(one))}"
        for one in screenings
    ]
    lines += ["", "Matrices ('jitter-workshop chart --kind matrix ID' draws one):"] if matrices else []
    lines += [f"  {one.id:<21} {_matrix_line(one)}" for one in matrices]
    lines += ["", "Imported:", *(f"  {import_line(r)}" for r in imported)] if imported else []
    lines += [f"note: {clean(notice, SENTENCE)}" for notice in notices]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _use(args: argparse.Namespace, wanted: str) -> int:
    session = SessionStore().use(wanted)
    print_result(
        args, _as_json((session,), (), session.id), f"Working in {clean(session.name)} ({session.id}) from now on.\n"
    )
    return 0


def _import(args: argparse.Namespace) -> int:
    """Import files into a session and return 0. All files are read before the first file is stored. So if one file has
    a mistake, no file is imported.
    """
    from jitter_workshop.session import archive, foreign, reportfile
    from jitter_workshop.stats.comparison import import_line

    if not args.id:
        raise UsageError("'sessions import' takes files", "see 'jitter-workshop sessions --help'")
    if args.root != Path("/"):
        raise UsageError("'sessions import' cannot read a recorded host", "leave out --root")
    read = [(Path(file), foreign.content(Path(file))) for file in args.id]
    pages = [_read_page(path, data) for path, data in read if reportfile.is_page(data)]
    if pages and (args.unit or args.label or args.session):
        raise UsageError("a report restores its whole session unchanged", "leave out --unit, --label and --session")
    others = [(path, data) for path, data in read if not reportfile.is_page(data)]
    found = [
        run
        for path, data in others
        for run in foreign.parse_foreign_file(data, path.name, unit=args.unit, label=args.label)
    ]
    store = SessionStore()
    back = [(page, archive.bring_back(store.folder, page.unpacked)) for page in pages]
    told = [_page_json(*one) for one in back]
    said = "".join(f"{line}\n" for one in back for line in page_lines(*one))
    if back and not others:
        sessions = tuple(store.find(one.session) for _, one in back)
        print_result(args, {**_as_json(sessions, (), store.current_id()), "imported": [], "brought_back": told}, said)
        return 0
    with _session_for(store, args) as opened:
        kept = [opened.add_import(run) for run in found]
        notices, session = tuple(opened.notices), opened.session
    say_notices(notices)
    payload = _as_json((session,), (), store.current_id())
    for run in kept:
        said += "".join(
            f"{line}\n" for line in (import_line(run), *(f"  {clean(note, SENTENCE)}" for note in run.notes))
        )
    said += (
        f"Kept in session {clean(session.name)}. To see imported curves next to your own: jitter-workshop chart "
        "--imported\n"
    )
    print_result(args, {**payload, "imported": [_import_json(run) for run in kept], "brought_back": told}, said)
    return 0


def _session_for(store: SessionStore, args: argparse.Namespace) -> OpenSession:
    """Return the session that ``--session`` names, else the current session. If there is no session, make one."""
    import platform

    if args.session is not None:
        return store.open_or_create(args.session, platform.node())
    return store.current_or_create("first session", platform.node())


def _remove(args: argparse.Namespace, wanted: str) -> int:
    store = SessionStore()
    session = store.find(wanted)
    what = f"{clean(session.name)} with {len(session.runs)} runs"
    _ask(args, f"there is no terminal to ask before session {session.id} is removed", what)
    removed = store.remove(session.id)
    text = f"Removed {clean(removed.name)} ({removed.id}) with {len(removed.runs)} runs.\n"
    print_result(args, _as_json(*store.list(), store.current_id()), text)
    return 0


def _remove_import(args: argparse.Namespace) -> int:
    """Remove one imported curve by its label. If several curves have this label, remove the newest of them."""
    if args.id:
        raise UsageError(
            "--import removes a curve, and an ID removes a session", "leave out the ID; name the session with --session"
        )
    with open_session(args) as opened:
        run = opened.find_import(args.imported)
        what = f"{clean(run.label, LABEL)} ({clean(run.origin, ID)}) from {clean(opened.session.name)}"
        _ask(args, f"there is no terminal to ask before import {run.id} is removed", what)
        opened.remove_import(run)
        left, session = opened.imports(), opened.session
    payload = _as_json((session,), (), SessionStore().current_id())
    imports = {"removed": _import_json(run), "imports": [_import_json(one) for one in left]}
    print_result(args, {**payload, **imports}, f"Removed {what}.\n")
    return 0


def _ask(args: argparse.Namespace, refusal: str, what: str) -> None:
    """Ask the user if ``what`` may be removed, unless ``--yes`` is given. Raise UsageError if the answer is no. Without
    a terminal, raise UsageError with the message ``refusal``."""
    if args.yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(refusal, "use --yes")
    if not agreed(f"Remove {what}?"):
        raise UsageError("nothing was removed")


def _as_json(sessions: tuple[Session, ...], damaged: tuple[Damaged, ...], current: str | None) -> dict[str, Any]:
    return {
        "sessions": [
            {**picked(s, "id", "name", "host", "created_at", "updated_at", "runs"), "current": s.id == current}
            for s in sessions
        ],
        "damaged": damaged,
    }


def _run_json(run: Run) -> dict[str, Any]:
    """Return a run's fields. ``with_waits`` has the latencies of a ring from when a message was due."""
    from jitter_workshop.model.run import INTENDED

    main, due = run.main_summary, run.histograms.get(INTENDED)
    figures = ("percentiles", "max", "min", "mean", "count")
    return {
        **picked(run, "id", "label", "workload"),
        "placement": run.placement.mode,
        **picked(run, "started_at", "duration_s", "complete", "main_histogram"),
        **(picked(main, *figures) if main else dict.fromkeys(figures)),
        **picked(run, "applied", "proof"),
        "with_waits": picked(due, *figures) if due else None,
    }


def _screening_json(one: Screening) -> dict[str, Any]:
    from jitter_workshop.report.screening_words import screening_sentence
    from jitter_workshop.stats.screening import screening_result

    return {
        **picked(one, "id", "started_at", "runs", "budget_runs", "complete", "restored"),
        "settings": list(one.settings),
        "text": screening_sentence(one, screening_result(one)),
    }


def _proof_json(proof: Proof) -> dict[str, Any]:
    from jitter_workshop.model.codec import to_plain

    return {
        "id": proof.id,
        "tunable": proof.subject,
        "started_at": proof.started_at,
        "rounds": len(proof.rounds),
        "planned": proof.planned,
        "headline": to_plain(proof.judgement.headline) if proof.judgement is not None else None,
        "restored": proof.restored,
    }


def _matrix_json(matrix: Matrix) -> dict[str, Any]:
    return picked(matrix, "id", "label", "started_at", "duration_s", "cpus", "clusters", "sampled", "complete")


def _matrix_line(matrix: Matrix) -> str:
    from jitter_workshop.stats.scale import nice_ns

    told = ", ".join(f"{clean(one.name, WORD)} {nice_ns(one.median_ns)}" for one in matrix.clusters)
    label = f"{clean(matrix.label, ID)} · " if matrix.label else ""
    return f"{label}{many(len(matrix.cpus), 'CPU')} · {told}{'' if matrix.complete else ' · stopped early'}"


def _import_json(run: ImportedRun) -> dict[str, Any]:
    from jitter_workshop.model.run import PERCENTILES
    from jitter_workshop.stats.curve import curve_value_at, imported_curve

    curve = imported_curve(run)
    return {
        **picked(run, "id", "label", "origin", "tool", "tool_version", "measures", "unit", "unit_stated", "source"),
        **picked(run, "started_at", "duration_s", "host", "imported_at", "count", "beyond"),
        "min": run.min_ns,
        "max": run.max_ns,
        "percentiles": {p: curve_value_at(curve, float(p)) for p in PERCENTILES},
        "notes": {str(number): note for number, note in enumerate(run.notes)},
    }


def _table(sessions: tuple[Session, ...], current: str | None) -> str:
    wide = max(len("NAME"), *(len(clean(s.name, SHORT)) for s in sessions))
    lines = [f"  {'ID':<21} {'NAME':<{wide}} {'RUNS':>4}  LAST CHANGE       HOST"]
    for s in sessions:
        mark = "*" if s.id == current else " "
        name, host = clean(s.name, SHORT), clean(s.host, SHORT)
        lines.append(f"{mark} {s.id:<21} {name:<{wide}} {len(s.runs):>4}  {minute(s.updated_at)}  {host}".rstrip())
    return "\n".join(lines) + "\n"


def _run_lines(runs: tuple[Run, ...]) -> list[str]:
    """Return a table of runs with their latencies. A run of the ring that has only transit says so."""
    from jitter_workshop.model.run import HANDOFF, INTENDED
    from jitter_workshop.stats.figures import LATENCY_EXPLAINED, TRANSIT
    from jitter_workshop.stats.scale import nice_ns

    if not runs:
        return ["No runs yet."]
    lines = [f"  {'RUN':<21} {'LABEL':<18} {'WORKLOAD':<9} {'P50':>9} {'P99.9':>9} {'MAX':>9}"]
    for run in runs:
        found, due = run.latency, INTENDED in run.histograms
        figures = (run.percentile("50"), run.percentile("99.9"), found.max if found else None)
        shown = " ".join(f"{nice_ns(v):>9}" for v in figures)
        part = "" if due or run.workload != "ring" else f"  {HANDOFF if run.by_handoff else TRANSIT}"
        part += ("" if run.complete else "  stopped early") + (f"  {run.mark}" if run.mark else "")
        lines.append(f"  {run.id:<21} {clean(run.label, WORD):<18} {clean(run.workload, CELL):<9} {shown}{part}")
    return [*lines, f"  {LATENCY_EXPLAINED}"] if any(INTENDED in run.histograms for run in runs) else lines


@dataclass(frozen=True, slots=True)
class UnpackedReport:
    """Hold a session that was read from an HTML report and is not stored yet. ``as_written``: False if somebody has
    changed the page's text."""

    file: str
    unpacked: Unpacked
    as_written: bool


def _read_page(path: Path, data: bytes) -> UnpackedReport:
    """Return the session that the HTML report ``data`` contains. ``path`` names the file in errors. Raise SessionError
    if the page contains no session that can be read."""
    from jitter_workshop.session import archive, reportfile

    shown = clean(path.name, LINE) or "the file"
    try:
        found = reportfile.archive_in(data)
        return UnpackedReport(shown, archive.unpack(found.archive), found.page_as_written)
    except SessionError as error:
        raise SessionError(f"{shown} is not imported: {error.message}", error.advice) from error


def page_lines(page: UnpackedReport, back: BroughtBack) -> list[str]:
    """Return sentences on what was brought back from an HTML report, one a line."""
    name = f"{clean(back.name, LABEL) or 'without a name'} ({back.session})"
    if back.already:
        said = [f"Session {name} exists here already, with the same content: nothing was written."]
    else:
        how = "bit for bit except its id and name" if back.old_id else "bit for bit"
        how = f"{how} as far as the report contains it" if back.left_out else how
        said = [f"Session {name} is back with {many(back.runs, 'run')}, {how}."]
    if back.old_id:
        said.append(f"Another session here has the id {back.old_id} already, so the imported session has a new id.")
    if back.missing:
        number = len(back.missing)
        named = ", ".join(clean(run, ID) for run in back.missing[:MOST_LONG_NAMES])
        said.append(
            f"{many(number, 'run')} that the session lists {'was' if number == 1 else 'were'} not in the report: "
            f"{named}{', …' if number > MOST_LONG_NAMES else ''}."
        )
    if back.left_out:
        number = len(back.left_out)
        were = "it was" if number == 1 else "they were"
        said.append(
            f"The small report lacks {many(number, 'file')} of the session, so {were} not imported; 'sessions "
            "import --json' lists what is missing."
        )
    if not page.as_written:
        said.append(f"The text of {page.file} was changed after it was written; the data are unchanged.")
    return [*said, f"To work in this session: jitter-workshop sessions use {back.session}"]


def _page_json(page: UnpackedReport, back: BroughtBack) -> dict[str, Any]:
    """Return what was brought back from an HTML report, as JSON fields."""
    return {
        "file": page.file,
        **picked(back, "session", "name", "runs"),
        "already_here": back.already,
        "old_id": back.old_id or None,
        "compressed_anew": [],
        **picked(back, "missing", "left_out"),
        "page_as_written": page.as_written,
    }
