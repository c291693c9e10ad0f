"""Define another tool's measurement: a labelled curve to lay beside our own. It is never part of a verdict."""

from __future__ import annotations

from jitter_workshop.model.record import dataclass

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """Hold a distribution of times from elsewhere, as stored in a session's ``imports/ID.json``.

    ``origin``: its mark in every table and chart, never empty. ``measures``: the quantity that the tool measured, in a
    few words. ``unit``: of the values in the file (ns | us | ms | s). ``unit_stated``: True if the file or the user
    states the unit, False if it was assumed. ``count``: all samples, those beyond the histogram included. ``max_ns`` is
    the true maximum as far as the file gives it.

    ``bins``: (lowest ns, highest ns, samples), ascending, where the file has a histogram. ``beyond``: samples above all
    bins, of which only the greatest (``max_ns``) is known. ``points``: (percentile 0..100, ns), ascending, where it has
    only percentiles. ``notes``: unknown or assumed facts, one sentence each.
    """

    format_version: int
    id: str
    label: str
    origin: str
    tool: str
    tool_version: str | None
    measures: str
    unit: str
    unit_stated: bool
    count: int
    min_ns: int | None
    max_ns: int
    bins: tuple[tuple[int, int, int], ...] = ()
    beyond: int = 0
    points: tuple[tuple[float, int], ...] = ()
    started_at: str | None = None
    duration_s: float | None = None
    host: str = ""
    source: str = ""
    imported_at: str = ""
    notes: tuple[str, ...] = ()
