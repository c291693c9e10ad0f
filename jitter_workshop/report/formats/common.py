"""What the formats for other tools share: names for runs that a tool's legend, a tag or a file name can hold, and a
line that says what a run is.

Each format is a module with ``files(document, session, runs, name) -> {file name: content}``. ``name`` is that of the
file that is asked for, so that files beside it can be called after it; "" is standard output, where only one fits. The
first entry is the file to name to the user, and is called ``name`` unless the format says otherwise.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Sequence

from jitter_workshop.model.report import ReportDocument
from jitter_workshop.model.run import Run
from jitter_workshop.model.spec import PACED
from jitter_workshop.model.text import clean
from jitter_workshop.stats.scale import nice_ns

Files = dict[str, bytes]

_LABEL = 20
_LONGEST = 43
"""Of a run's name: a label, a dash and an id, and a tag of a histogram log still has room for more."""

_UNFIT = re.compile(r"[^A-Za-z0-9_.-]+")


def as_shown(document: ReportDocument, runs: Sequence[Run]) -> tuple[Run, ...]:
    """The runs under the labels that the report gives them: in one for others, names of hosts are taken out."""
    labels = {run.id: run.label for run in document.runs}
    return tuple(dataclasses.replace(run, label=labels.get(run.id, run.label)) for run in runs)


def run_names(runs: Sequence[Run]) -> dict[str, str]:
    """A name for each run, by id: its label where no other run has it, else label and id. At most 43 characters, only
    letters, digits, ``_``, ``.`` and ``-``, apart from each other even where upper and lower case are the same."""
    labels = {run.id: plain_name(run.label, _LABEL) for run in runs}
    often = Counter(label.lower() for label in labels.values())
    found: dict[str, str] = {}
    taken = {plain_name(run.id, _LONGEST).lower() for run in runs}
    for run in runs:
        label = labels[run.id]
        name = label if label and often[label.lower()] == 1 and label.lower() not in taken else ""
        name = name or f"{label}-{plain_name(run.id, _LONGEST)}".lstrip("-")[:_LONGEST]
        found[run.id] = name
    return found


def beside(name: str, more: str, ending: str) -> str:
    """The name of a file beside ``name``: ``report.md`` and ``chart-1`` give ``report-chart-1.svg``. An ``ending`` of
    two parts is taken off as a whole."""
    stem, dot, last = name.rpartition(".")
    found = name.removesuffix(ending) if name.endswith(ending) else stem if dot and last.isalnum() else name
    return f"{found or name}-{more}{ending}"


def described(run: Run) -> str:
    """A run in one line of ASCII, for a comment: other tools read files in whatever encoding their system has."""
    parts = [f"run {run.id}"]
    if run.label:
        parts.append(f"label {clean(run.label, 60)!a}")
    parts.append(run.workload)
    if run.workload in PACED:
        parts.append(f"every {run.interval_ns} ns, pacing {run.pacing}")
    parts += [f"placement {run.placement.mode}", f"{run.duration_s:g} s from {run.started_at}"]
    if run.applied:
        parts.append("with " + " ".join(f"{one.get('id')}={one.get('value')}" for one in run.applied))
    if not run.complete:
        parts.append("not complete")
    return plain_line(", ".join(parts))


def plain_line(text: str, limit: int = 400) -> str:
    """``text`` on one line of printable ASCII; other characters as Python writes them (``\\xb5``)."""
    return clean(text, limit).encode("ascii", "backslashreplace").decode("ascii")


def beyond_range(run: Run, name: str) -> str:
    """What to say of values beyond a histogram's range, "" where there are none."""
    summary = run.histograms.get(name)
    if summary is None or not summary.overflow:
        return ""
    return plain_line(
        f"{summary.overflow} values lie beyond the histogram's range and are counted at its end; "
        f"the longest was {nice_ns(summary.max)}".replace("µ", "u")
    )


def plain_name(text: str, limit: int = 40) -> str:
    """What letters, digits, ``_``, ``.`` and ``-`` can tell of a text, fit for a part of a file's name; "" of none."""
    return _UNFIT.sub("-", clean(text, 200))[:limit].strip(".-")
