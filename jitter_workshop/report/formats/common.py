"""Provide functions that all formats share, such as names for runs and files.

Each format is a module with a function ``files(document, session, runs, name) -> {file name: content}``. ``name`` is
the name of the requested file. For standard output, ``name`` is "", and there may be only one file. The first entry of
the dict is the main file, whose name the user is told. A format may give the main file a name other than ``name``. The
names of further files begin like the main file's name.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Sequence

from jitter_workshop.model.host import mark_notes
from jitter_workshop.model.report import ReportDocument
from jitter_workshop.model.run import Run
from jitter_workshop.model.spec import PACED
from jitter_workshop.model.text import LABEL, REASON, clean
from jitter_workshop.stats.scale import nice_ns

Files = dict[str, bytes]

ONE_RUN = "choose a run with --run, or write one file for each run with -o"
"""The advice if several runs would go to standard output."""
_LABEL = 20
_LONGEST = 43
"""The largest length of a run's name (label, dash, id). It fits into a tag of a histogram log."""

_UNFIT = re.compile(r"[^A-Za-z0-9_.-]+")


def as_shown(document: ReportDocument, runs: Sequence[Run]) -> tuple[Run, ...]:
    """Return the runs with the labels that the report shows. In a private report the labels contain no names of
    hosts."""
    labels = {run.id: run.label for run in document.runs}
    return tuple(dataclasses.replace(run, label=labels.get(run.id, run.label)) for run in runs)


def run_names(runs: Sequence[Run]) -> dict[str, str]:
    """Return run id → name of the run in files. The name is the run's label. If the label is empty or not unique, the
    name contains the id.

    A name has at most 43 characters: letters, digits, ``_``, ``.`` and ``-``. No two names are equal if upper and lower
    case are ignored.
    """
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


def name_beside(name: str, more: str, ending: str) -> str:
    """Return the name of a second file beside the file ``name``. Example: ``report.md``, ``chart-1`` and ``.svg`` give
    ``report-chart-1.svg``. If ``name`` ends with ``ending``, the whole ending is replaced."""
    stem, dot, last = name.rpartition(".")
    found = name.removesuffix(ending) if name.endswith(ending) else stem if dot and last.isalnum() else name
    return f"{found or name}-{more}{ending}"


def described(run: Run) -> str:
    """Return one line of ASCII that describes a run, for a comment in a file. It is ASCII because other tools read
    files in the encoding of their system."""
    parts = [f"run {run.id}"]
    if run.label:
        parts.append(f"label {clean(run.label, LABEL)!a}")
    parts += [*([run.mark.upper()] if run.mark else []), run.workload]
    if run.workload in PACED:
        parts.append(f"every {run.interval_ns} ns, pacing {run.pacing}")
    parts += [f"placement {run.placement.mode}", f"{run.duration_s:g} s from {run.started_at}"]
    if run.applied:
        parts.append("with " + " ".join(f"{one.get('id')}={one.get('value')}" for one in run.applied))
    if not run.complete:
        parts.append("not complete")
    parts += mark_notes(run.mark).values()
    return plain_line(", ".join(parts))


def plain_line(text: str, limit: int = 400) -> str:
    """Return ``text`` as one line of printable ASCII; other characters become Python escapes (``\\xb5``)."""
    return clean(text, limit).encode("ascii", "backslashreplace").decode("ascii")


def beyond_range(run: Run, name: str) -> str:
    """Return a sentence on the values above the range of the run's histogram ``name``; "" if there are none."""
    summary = run.histograms.get(name)
    if summary is None or not summary.overflow:
        return ""
    return plain_line(
        f"{summary.overflow} values lie beyond the histogram's range and are counted at its end; "
        f"the longest was {nice_ns(summary.max)}".replace("µ", "u")
    )


def plain_name(text: str, limit: int = 40) -> str:
    """Return a text with only letters, digits, ``_``, ``.`` and ``-``, as a part of a file's name. Return "" if nothing
    remains."""
    return _UNFIT.sub("-", clean(text, REASON))[:limit].strip(".-")
