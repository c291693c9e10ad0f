"""Define the effect of a change: by how much each figure differs between two runs, and which figure is the result."""

from __future__ import annotations

from typing import Literal

from jitter_workshop.model.record import dataclass

RUN_NAMES = ("first", "second")
"""The words for two compared runs in a sentence, in their order."""
RUN_HEADS = ("run 1", "run 2", "run 3")
"""The words for compared runs above the columns of a table. A bare "first" and "second" would be read as a time beside
"per second"."""

Direction = Literal["better", "worse", "same"]

Sort = Literal["latency", "stalls", "cause"]
"""The sorts of figures.

- ``latency``: a percentile, the maximum, or the time that stalls took.
- ``stalls``: a number or a rate of stalls.
- ``cause``: a setting, or a rate of events that may make a stall. A larger value is neither better nor worse.
"""

Relation = Literal["changed", "alike", "hunted", "unsteady", "strayed"]
"""The relations of two compared runs.

- ``changed``: a change was made between them.
- ``alike``: both were made in the same way, so they differ only by chance.
- ``hunted``: a hidden noise ran during one of them.
- ``unsteady``: settings changed during one of them, so they cannot be compared.
- ``strayed``: settings that the chapter does not change were changed between them, so neither is better or worse.
"""

Uncompared = Literal["", "readings", "waits"]
"""The reasons why percentiles of two runs are not compared.

- ``""``: they are compared.
- ``readings``: the runs of ``spin`` read the clock at different rates.
- ``waits``: a run sent few of its planned messages, and a run does not have the waits of the others. Then the maximum
  is not compared either.
"""


@dataclass(frozen=True, slots=True)
class Effect:
    """Hold one figure of two runs.

    - ``name``: the figure in words.
    - ``values``: the figure's values in the two runs, in words.
    - ``factor``: the larger value divided by the smaller one, at least 1.
    - ``how``: a word for the difference (shorter, more, lower); "" if the values are the same.
    - ``one_event``: True if a single event determines the figure's value.
    - ``at_least``: True if one of the two runs counted no event. This run's rate is then computed as if it had counted
      one event. So the true factor may be larger.
    - ``few``: True if fewer than ten distinct stalls lie beyond the percentile in one of the runs, or if a rate counts
      fewer than ten in each run. Then chance may explain the difference.
    - ``against_time``: True if the number of stalls rose or fell, but the time of all stalls did not do the same.
    - ``sort``: ``latency``, ``stalls`` or ``cause``. The ``direction`` of a ``cause`` is always "same". So is that of a
      percentile of two runs that read the clock at different rates.
    - ``within_runs``: True if the blocks inside each run already differ by ``factor`` or more.
    - ``by_chance``: True for a rate if chance alone may explain its difference.
    - ``of_equal_runs``: the largest factor by which equal runs of the session differ in this figure; 1 if it is not
      known.
    - ``events``: how many events of a chapter's cause the two runs counted, if both counted fewer than ten; else None.
    """

    name: str
    values: tuple[str, str]
    factor: float
    direction: Direction
    how: str
    one_event: bool = False
    at_least: bool = False
    few: bool = False
    against_time: bool = False
    sort: Sort = "latency"
    within_runs: bool = False
    by_chance: bool = False
    of_equal_runs: float = 1.0
    events: tuple[int, int] | None = None

    @property
    def larger(self) -> int:
        """Return the index of the run with the larger value; 1 if the values are the same."""
        return int(self.how not in ("shorter", "fewer", "less", "lower"))

    @property
    def within_equal_runs(self) -> bool:
        """Return True if equal runs of the session differ in this figure by as much as the two runs do."""
        return self.of_equal_runs >= self.factor > 1.0

    @property
    def doubtful(self) -> bool:
        """Return True if chance may explain the effect. This is so if one event determines the figure, or if it rests
        on few stalls. It is also so if the blocks inside each run, or equal runs, differ as much as the two runs, or if
        chance explains the difference of two rates."""
        return self.one_event or self.few or self.within_runs or self.by_chance or self.within_equal_runs


@dataclass(frozen=True, slots=True)
class CauseTime:
    """Hold the time that one cause took in each of two runs, according to their traces.

    - ``label``: the cause in words, safe to print.
    - ``ns``: the cause's time in each run, in ns a second.
    - ``at_most``: for each run, True if the time is an upper limit.
    - ``treated``: True if the chapter's change is meant to reduce this cause.
    - ``counted``: True if the chapter's figure counts this cause's events.
    - ``task``: the name of the task, if the cause is a task that is not measured; "" for any other cause.
    - ``own_load``: True if the cause is the load that the chapter made in one of the runs, or includes it.
    - ``stalls``: the number of stalls a second with this cause in each run; (0, 0) if it is not known.
    - ``named``: False for time without an event, and for a short time around one: nothing shows what took it.
    """

    label: str
    ns: tuple[float, float]
    at_most: tuple[bool, bool] = (False, False)
    treated: bool = False
    counted: bool = False
    task: str = ""
    own_load: bool = False
    named: bool = True
    stalls: tuple[float, float] = (0.0, 0.0)

    @property
    def known(self) -> bool:
        """Return True if the times show which of the two runs lost more time to this cause."""
        return not self.at_most[self.ns.index(max(self.ns))]


@dataclass(frozen=True, slots=True)
class KnownReason:
    """Hold the known reason why two runs cannot be compared. If a change was made between them, it is the reason why
    their latency cannot be.

    - ``told``: the reason as a clause that begins with the run: "in the first run, ...".
    - ``run``: the number of the run that has to be made again, 0 or 1.
    - ``few``: True if the clause tells that this run sent few of its planned messages.
    - ``causes``: the labels of the causes in the clause.
    """

    told: str
    run: int
    few: bool = False
    causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Effects:
    """Hold the effects of a change that are shown.

    - ``lead``: the largest effect on latency or stalls, which is shown first. None if the change had no such effect.
    - ``but``: the largest effect in the opposite direction, None if there is none. If ``lead`` is a gain, this effect
      can be missing or doubtful. Then ``but`` is the rate of stalls that rose by the largest factor; None if no rate
      rose.
    - ``nearest``: the largest difference of all, even if it is too small to be an effect. None if nothing could be
      compared.
    - ``shown``: the chapter's own figure, if it changed as the chapter says and is not the figure of ``lead``.
    - ``tail``: the figure by which the runs are judged: a percentile, or a rate of stalls.
    - ``stalls``: the count of stalls that differs most.
    - ``causes``: the causes of both runs, the largest first; () if one of the runs has no trace.
    - ``strayed``: a sentence on settings that changed between the runs and are not the chapter's; "" if there are none.
    - ``stalled``: the difference in the time in stalls.
    - ``left_out``: the reason why percentiles are not compared; "" if they are.
    - ``differences``: the differences of ``stats.effect.differences_by_figure``, the largest first.
    - ``missed``: the chapter's own figure, if it did not change as the chapter says and is not the figure of ``lead``.
      None in a chapter that judges by the due time: there the figure is ``nearest``.
    - ``uncounted``: the name of the chapter's own figure, if a run does not have it; else "".
    """

    lead: Effect | None
    but: Effect | None
    nearest: Effect | None
    shown: Effect | None = None
    tail: Effect | None = None
    stalls: Effect | None = None
    causes: tuple[CauseTime, ...] = ()
    strayed: str = ""
    stalled: Effect | None = None
    left_out: Uncompared = ""
    differences: tuple[Effect, ...] = ()
    missed: Effect | None = None
    uncounted: str = ""

    @property
    def direction(self) -> Direction:
        """Return the direction of the effect that is shown first."""
        return "same" if self.lead is None else self.lead.direction
