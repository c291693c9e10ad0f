"""Define the judgement of two runs: can they be compared, what did the change do, and for which reason not more."""

from __future__ import annotations

from typing import Literal

from jitter_workshop.model.effect import CauseTime, Direction, Effect, Effects, KnownReason, Relation
from jitter_workshop.model.record import dataclass

LatencyVerdict = Literal[
    "", "better", "worse", "perhaps better", "perhaps worse", "differs", "unclear", "undecided", "not comparable"
]
"""The judgements of two runs on the latency after a change.

- ``""``: nothing, because no latency is compared, or because the chapter's figure is the only one.
- ``better``, ``worse``: an effect that has no other known reason than the change.
- ``perhaps better``, ``perhaps worse``: such an effect may have another reason.
- ``differs``: the runs differ by plan, so neither is better.
- ``unclear``: no clear change.
- ``undecided``: the count moved as its lesson says, and the curve became worse by no larger factor.
- ``not comparable``: another task took much more in one of the runs.
"""

WorkVerdict = Literal["", "done", "not done", "not known"]
"""The judgements on the work of a change: did the chapter's figure move as the lesson says? ``""``: the chapter has no
such figure, the latency tells it, or another task may explain it. ``not known``: a run does not have the figure."""

Doubt = Literal["", "chance", "few stalls", "another cause", "other work", "short cause", "other figure"]
"""The reasons for which an effect on latency may not come from the change, in the order in which the first one that
holds is told. ``short cause``: what the change can end took much less time a stall than the stalls last that became
fewer. ``other figure``: the figure that was chosen before the runs to judge them did not become better."""


_TOLD = 1.1
"""The least factor by which the announced figure moved, to be told beside the one that differs most."""


@dataclass(frozen=True, slots=True)
class OtherTask:
    """Hold the task of others that took much more time in one of two runs.

    - ``label``: the task in words, safe to print.
    - ``ns``: its time in each run, in ns a second.
    - ``share``: the part of the difference in stalled time that it explains. It is negative if the stalled time of all
      causes moved the other way, and None if this time did not move.
    - ``of_all``: its part of the stalled time of the run in which it took more.
    - ``enough``: True if it explains so much that the latency of the two runs cannot be compared.
    """

    label: str
    ns: tuple[float, float]
    share: float | None
    of_all: float
    enough: bool

    @property
    def run(self) -> int:
        """Return the number of the run in which it took more time, 0 or 1."""
        return int(self.ns[1] > self.ns[0])


@dataclass(frozen=True, slots=True)
class PairJudgement:
    """Hold all that is decided about two runs. Each surface words this record, and decides nothing itself.

    - ``found``: the effects on which the judgement rests.
    - ``relation``: the relation of the two runs.
    - ``reason``: why they cannot be compared; None if they can, as far as is known.
    - ``other``: the task of others that took much more time in one of the runs; None if none did, or without a trace.
    - ``latency``: the verdict on latency. It is "" if no change was made between the runs.
    - ``doubt``: the one reason why the verdict is only ``perhaps``; "" for any other verdict.
    - ``cause``: the cause on which the change does not act, and which explains the difference; None if there is none.
    - ``short_ns``: the mean time of what the change can end, in ns a stall, if it is too short for the stalls that
      became fewer; else None.
    - ``few``: the number of stalls of the run that had few, and the number of this run; None if none had few.
    - ``work``: the verdict on the work of the change.
    - ``first``: the effect that is told first; None if no figure of latency or stalls moved.
    - ``against``: a sure effect in the other direction: a loss beside a gain, or the median.
    - ``opposed``: the figure that was announced to judge the runs, if it moved against ``first``, so that there is no
      clear change; else None.
    - ``by_plan``: True if the runs are two kinds of run, so that neither is better.
    - ``whole_curve``: True if the whole curve moved by more than the change can end.
    - ``rests_on_few``: True if one stall, or few, decide the value of ``first``.
    - ``clocks``: p99 of the first run by transit and from the due time, in ns, if the due time judges the runs and
      transit leaves out most of it; else None.
    - ``large``: the factor that may be shown large; None if there is none. ``large_is``: the direction of this factor
      if it is a plain gain or loss, else "same".
    """

    found: Effects
    relation: Relation = "changed"
    reason: KnownReason | None = None
    other: OtherTask | None = None
    latency: LatencyVerdict = ""
    doubt: Doubt = ""
    cause: CauseTime | None = None
    short_ns: float | None = None
    few: tuple[int, int] | None = None
    work: WorkVerdict = ""
    first: Effect | None = None
    against: Effect | None = None
    opposed: Effect | None = None
    by_plan: bool = False
    whole_curve: bool = False
    rests_on_few: bool = False
    clocks: tuple[float, float] | None = None
    large: float | None = None
    large_is: Direction = "same"

    @property
    def sure(self) -> bool:
        """Return True if the second run is called better or worse, and not only perhaps so. Only then does a chart, a
        row or a colour say so."""
        return self.latency in ("better", "worse")

    @property
    def unknown_run(self) -> int | None:
        """Return the number of the run, 0 or 1, with more time of an unknown cause, if this time is the reason why the
        verdict is only ``perhaps``. Made again, the run may be without it. Else return None."""
        cause = self.cause
        if self.doubt != "another cause" or cause is None or cause.named:
            return None
        return int(cause.ns[1] > cause.ns[0])

    @property
    def announced(self) -> Effect | None:
        """Return the effect on the figure that was announced to judge two runs that differ by plan, if another figure
        differs most; else None. One that hardly moved is not told, nor one beside two clocks of one run."""
        judge, first = self.found.tail, self.first
        if self.latency != "differs" or self.clocks is not None or judge is None or first is None:
            return None
        names = (first.name, "" if self.of_chapter is None else self.of_chapter.name)
        return judge if judge.name not in names and judge.factor >= _TOLD else None

    @property
    def of_chapter(self) -> Effect | None:
        """Return the effect on the chapter's own figure, whether it moved as the lesson says or not. Return None if the
        chapter has none, or if another task may explain it."""
        return (self.found.shown or self.found.missed) if self.work in ("done", "not done") else None
