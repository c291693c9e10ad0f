"""Define a percentile curve, the comparison of two runs, and the curve of another tool (plain data; ``stats`` has the
arithmetic)."""

from __future__ import annotations

from typing import Literal, get_args

from jitter_workshop.model.host import EMULATED, GUEST
from jitter_workshop.model.record import dataclass

CurveRole = Literal["before", "after", "cure", "due", "corrected", "earlier"]
"""The part of a curve in its chapter. It decides the curve's mark and colour in each chart.

- ``before``, ``after``, ``cure``: the chapter's first run, its second run, and its third run, with a hunt's cure
  or without the noise.
- ``due``, ``corrected``: further curves of the first run, from the due time and after HdrHistogram's correction.
- ``earlier``: the learner's last run, from before this chapter.
"""
ROLES: tuple[CurveRole, ...] = get_args(CurveRole)


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Hold a value in ns at a percentile (0..100). ``solid``: True if at least 10 samples lie beyond this
    percentile."""

    percentile: float
    value_ns: int
    solid: bool


@dataclass(frozen=True, slots=True)
class PercentileCurve:
    """Hold a curve to draw, with its points in order.

    - ``origin``: a short note on the origin of the curve, such as ``recorded`` or ``by cyclictest 2.40``. It is "" for
      a curve that was measured here. If the curve's run has a mark (``model.host.mark_of``), the note begins with the
      mark.
    - ``known_to``: a percentile. Above it, only the last point of the curve is known. None if all points are known.
    - ``role``: None for a curve of no chapter.
    - ``sent``: the number of messages that were sent, if the curve also has those that a stopped sender did not send,
      so that ``count`` is larger; else None.
    """

    label: str
    points: tuple[CurvePoint, ...]
    count: int
    origin: str = ""
    known_to: float | None = None
    role: CurveRole | None = None
    sent: int | None = None

    @property
    def elsewhere(self) -> bool:
        """Return True if the curve comes from something other than a run of this session."""
        return bool(self.origin) and self.origin.partition(",")[0] not in (EMULATED, GUEST)


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """Hold one line of a comparison. ``ratio`` = b / a, None if a or b is unknown or zero."""

    measure: str
    a: float | None
    b: float | None
    ratio: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Hold the differences between two single runs. A comparison claims no cause. ``metric``: the name of the histogram
    of the latencies; "" for the workload's main one. ``clock``: the words for its clock, in a chapter that sets two
    clocks side by side; else ""."""

    run: str
    label: str
    comparable: bool
    differences: tuple[str, ...]
    rows: tuple[ComparisonRow, ...]
    text: str
    metric: str = ""
    clock: str = ""


IMPORT_FORMAT = 1


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """Hold the times that another tool measured, as stored in a session's ``imports/ID.json``. The workshop shows these
    times beside its own curves, and gives no verdict on them.

    - ``origin``: the note that tables and charts show with the curve, never empty.
    - ``measures``: the quantity that the tool measured, in a few words.
    - ``unit``: the unit of the values in the file (ns | us | ms | s).
    - ``unit_stated``: True if the file or the user states the unit, False if the unit was assumed.
    - ``count``: the number of all samples, including the samples above all bins.
    - ``max_ns``: the largest value that the file gives.
    - ``bins``: (lowest ns, highest ns, samples), ascending; () if the file has no histogram.
    - ``beyond``: the number of samples above all bins. Of these samples, only the largest value is known: ``max_ns``.
    - ``points``: (percentile 0..100, ns), ascending; () if the file has a histogram.
    - ``notes``: unknown or assumed facts, one sentence each.
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
