"""Write histogram logs (``.hlog``, format 1.3 with V2 histograms) for HdrHistogram's own tools: one line for each
block, in ns.

The log of one run has all histograms of the run; the tag of a line is the histogram's name. The log of several runs has
the main histogram of each run; the tag is the run's name, and comments at the top describe the runs. The lines are not
computed here: they were stored while the run was made. Every line has a tag, so ``HistogramLogProcessor`` needs
``-tag`` (it lists the tags with ``-listtags``).
"""

from __future__ import annotations

import io
from collections.abc import Sequence

from jitter_workshop.errors import SessionError
from jitter_workshop.model.report import ReportDocument
from jitter_workshop.model.run import Run
from jitter_workshop.model.text import LABEL, LINE
from jitter_workshop.report.formats.common import Files, as_shown, beyond_range, described, plain_line, run_names
from jitter_workshop.session import hlog
from jitter_workshop.session.opened import OpenSession
from jitter_workshop.stats.encoded import unwrap

_TAG = 64
"""The largest length of the name of a line with more facts about a run."""


def files(document: ReportDocument, session: OpenSession, runs: Sequence[Run], name: str) -> Files:
    """Return one file, whatever the number of runs. Raise SessionError if no run has a log that can be read."""
    runs = as_shown(document, runs)
    alone, names = len(runs) == 1, run_names(runs)
    logs: list[tuple[Run, list[hlog.IntervalHistogram]]] = []
    for run in runs:
        try:
            logs.append((run, _intervals(session, run, "" if alone else names[run.id])))
        except SessionError as error:
            session.notices.append(f"run {run.id} is left out: {error.sentence()}")
    if not logs:
        raise SessionError("none of these runs has a log of histograms that can be read", "measure again")
    # The library's reader stops at the first line beyond the requested range, so time must not step back.
    logs.sort(key=lambda log: log[1][0].start_s)
    file = io.BytesIO()
    everything = [interval for _, intervals in logs for interval in intervals]
    hlog.write_log(file, everything, logs[0][1][0].start_s, _comments(document, [run for run, _ in logs], names))
    return {name: file.getvalue()}


def _intervals(session: OpenSession, run: Run, tag: str) -> list[hlog.IntervalHistogram]:
    """Return the lines of a run's histogram log.

    ``tag``: return only the lines of the main histogram, with this new tag. If ``tag`` is "", return the lines of all
    histograms with their own tags. Raise SessionError if the lines cannot be read.
    """
    try:
        # Unpacking checks each histogram against its own checksum.
        found = [
            interval
            for interval in hlog.read_intervals(session.blocks_file(run.id), run.main_histogram if tag else None)
            if unwrap(interval.encoded)
        ]
    except FileNotFoundError as error:
        raise SessionError("the run's histograms are missing") from error
    except OSError as error:
        raise SessionError(
            f"the run's histograms cannot be read: {(error.strerror or 'unreadable').lower()}"
        ) from error
    except ValueError as error:
        raise SessionError(f"the run's histograms are damaged ({plain_line(str(error), LINE)})") from error
    if not found:
        raise SessionError("no block of the run has histograms")
    if not tag:
        return found
    return [hlog.IntervalHistogram(tag, one.start_s, one.length_s, one.max_ns, one.encoded) for one in found]


def _comments(document: ReportDocument, runs: Sequence[Run], names: dict[str, str]) -> list[str]:
    """Return comments that describe the file and its runs, for the beginning of the file. In a file of one run, a
    comment begins with ``jitter-workshop run``. When the file is imported, these words tell that the tags are names of
    histograms.
    """
    # The unit comes first: the first unit in a file counts, and labels may contain any text.
    units = "values in ns, Interval_Max in ms; HistogramLogProcessor wants -tag"
    if len(runs) == 1:
        said = [units, f"jitter-workshop {described(runs[0])}"]
        more = [(name, beyond_range(runs[0], name)) for name in runs[0].histograms]
    else:
        session = plain_line(document.session_name or document.session_id, LABEL)
        said = [units, f"jitter-workshop session {session}: {len(runs)} runs"]
        said += [f"Tag={names[run.id]}: {described(run)}: {run.main_histogram}" for run in runs]
        more = [(names[run.id], beyond_range(run, run.main_histogram)) for run in runs]
    return said + [f"{plain_line(tag, _TAG)}: {text}" for tag, text in more if text]
