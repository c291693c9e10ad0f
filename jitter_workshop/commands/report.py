"""Write a report of the session that can be read without this tool.

The report shows what was measured, changed, proven and learnt.

  html    one page with charts, for any browser and for print, offline; it holds the raw data, so 'sessions import' can
          bring the session back
  md      Markdown, with its charts as SVG beside it
  json    every figure, for scripts (docs/report.md says what each field is)
  pyperf  for 'pyperf show' and 'pyperf compare_to'
  perfetto  the tracks of each run with --evidence, for ui.perfetto.dev
  hlog    every block's histograms, for HdrHistogram's readers
  hgrm    percentile distributions, for HdrHistogram's plotters

Without -o the file is made in the current folder; its name has the session and the day. '-o -' writes to stdout. An
existing file is overwritten only with --force. If the name belongs to a link, nothing is written. RUN is an id, its
unique beginning, a label (of the newest run with that label), or @1 for the newest run, @2, …; a report of chosen runs
has no chapters, no proofs and no raw data. The first report after a run with --evidence finds the causes of the run's
stalls and stores them. This report takes some seconds longer than later reports.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path

from jitter_workshop.commands.common.base import print_notice
from jitter_workshop.commands.common.shared import open_session, say_notices, write_stdout
from jitter_workshop.errors import SessionError, UsageError
from jitter_workshop.model.text import ID, MOST_LONG_NAMES, WORD, clean
from jitter_workshop.presenter.runs.progress import LateLine
from jitter_workshop.session.store import OpenSession

NAMES = ("html", "md", "json", "pyperf", "hlog", "hgrm", "perfetto")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format", choices=NAMES, help="the format of the report (default: the ending of the -o file, else html)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="the file to write; - means stdout")
    parser.add_argument("--run", metavar="RUN", nargs="+", action="extend", default=[], help="report only these runs")
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    parser.add_argument("--private", action="store_true", help="leave out names, labels, paths and raw data")
    parser.add_argument(
        "--course",
        metavar="DIR",
        type=Path,
        help="the folder of the session's course, if this is not the built-in course",
    )


def run(args: argparse.Namespace) -> int:
    """Write the report and return 0. Raise WorkshopError if there are no runs."""
    from jitter_workshop.flow.reporting.build import build_report
    from jitter_workshop.flow.reporting.draft import FORMATS, Draft
    from jitter_workshop.flow.reporting.files import check_target, default_name, name_of, write_files
    from jitter_workshop.flow.reporting.prepare import prepare_report
    from jitter_workshop.flow.reporting.subject import subject_of
    from jitter_workshop.session.ids import timestamp

    if args.force and args.output == "-":
        raise UsageError("--force is only for files", "leave out --force: standard output replaces no file")
    if args.output == "":
        raise UsageError("-o names no file", "give a file name, or '-' for standard output")
    chosen = FORMATS[args.format or _format_of(args.output)]
    with _session(args) as session, contextlib.closing(LateLine()) as late:
        if args.output != "-" and not args.private:
            # Check the file's name first: explaining the traces takes long.
            made_at = timestamp()
            known = session.session
            check_target(Path(args.output or name_of(known.name, known.id, made_at, chosen.ending)), args.force)
        ids = [session.find(wanted).id for wanted in args.run]
        subject = subject_of(session, args.root, course_dir=args.course, runs=ids, progress=late.told)
        draft = Draft(session, os.uname().nodename, build_report(prepare_report(subject)))
        target = Path(args.output or default_name(draft.shown(args.private), chosen.ending))
        files = draft.files(chosen, args.private, "" if args.output == "-" else target.name)
        notices = tuple(session.notices)
    say_notices(notices)
    if args.output == "-":
        # A format that makes more than one file has left out the others, or refused.
        write_stdout(next(iter(files.values())))
        return 0
    first, *beside = write_files(files, target.parent, force=args.force)
    sys.stdout.write(f"{first}\n")
    sys.stdout.flush()
    if beside:
        more = f" and {len(beside) - MOST_LONG_NAMES} more" if len(beside) > MOST_LONG_NAMES else ""
        print_notice(f"beside it: {', '.join(path.name for path in beside[:MOST_LONG_NAMES])}{more}")
    return 0


def _format_of(output: str | None) -> str:
    """Return the report's format from the ending of the file name ``output``. Return ``html`` without a name or an
    ending. Raise UsageError for an unknown ending."""
    if output in (None, "-"):
        return "html"
    ending = Path(str(output)).suffix.lower().removeprefix(".")
    found = {"htm": "html", "markdown": "md", "pftrace": "perfetto"}.get(ending, ending)
    if found in NAMES:
        return found
    if not ending:
        return "html"
    raise UsageError(f"unknown format '{clean(ending, WORD)}'", f"choose one with --format: {', '.join(NAMES)}")


def _session(args: argparse.Namespace) -> OpenSession:
    """Return the session that ``--session`` names, or else the current session. If only ``--root`` is given, return the
    session of that recorded host. Raise SessionError if there is no such session."""
    if args.root == Path("/") or args.session is not None:
        return open_session(args)
    from jitter_workshop.flow.chapters.session_context import look_at, recorded_session
    from jitter_workshop.host.root import HostRoot
    from jitter_workshop.session.store import SessionStore

    name = recorded_session(clean(look_at(HostRoot(args.root))[1].name, ID) or "host")
    try:
        return SessionStore().open(name)
    except SessionError as error:
        advice = "go through a chapter first ('jitter-workshop --root TREE'), or name a session with --session"
        raise SessionError("there is no session of this recorded host yet", advice) from error
