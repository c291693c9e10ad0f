"""Say the result of one run, while it is measured and after its end."""

from __future__ import annotations

import dataclasses

from jitter_workshop.flow.measuring.known_reason import MUCH_WORK
from jitter_workshop.model.course import Shows
from jitter_workshop.model.host import EMULATED
from jitter_workshop.model.run import Progress
from jitter_workshop.model.text import WORD, clean
from jitter_workshop.presenter.runs.control_run import disturbed_told
from jitter_workshop.presenter.runs.disturbances import disturbance_clause, own_threads_clause
from jitter_workshop.presenter.runs.omission import correction_told, few_sent, titles_of
from jitter_workshop.presenter.text.lines import Lines, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.stats.curve import curve_value_at
from jitter_workshop.stats.effect import LEAST_EVENTS, judge_of, judged_by, tail_of
from jitter_workshop.stats.figures import (
    DUE_TAIL,
    FIGURES,
    P99_FROM_DUE_TIME,
    Figure,
    KnownRun,
    by_due_time,
    figure_with_id,
    least_length_ns,
    titled,
)
from jitter_workshop.stats.omission import leaves_out_waits
from jitter_workshop.stats.sample_size import FEW_BESIDE, FEW_STALLS, marks_of_run, of_count
from jitter_workshop.stats.scale import nice_ns

FEWER_THAN_TEN = "fewer than ten stalls"
"""The doubt about a rate of stalls that counts so few."""
A_SECOND, SHORT_A_SECOND = " a second", "/s"
"""The unit of a rate in a sentence, and in large figures."""


def origin_of(seen: KnownRun) -> str:
    """Return the words for a run that was not measured on this real machine, such as "recorded" or "emulated"; "" for
    other runs."""
    mark = EMULATED if seen.emulated else seen.run.mark
    return ", ".join(filter(None, ("recorded" if seen.recorded is not None else "", mark)))


def result_of_one_run(
    seen: KnownRun,
    width: int,
    shows: Shows | None = None,
    asked: str | None = None,
    key: str = "",
    *,
    asks_causes: bool = False,
) -> Lines:
    """Return the result of one run. The result has the value of the figure by which the run is judged, which alone is
    emphasised, and the chapter's figure. If that figure is a rate of stalls, the longest stall follows. It also has the
    time that the run's own threads took from each other, if this is its largest cause, and the other tasks that
    disturbed the run. For a recorded run, it says that the run is recorded. The warning of
    ``presenter.runs.omission`` comes first if the latency leaves out the waits for a stopped thread.
    ``asked``: the percentile by which the chapter judges; it replaces the usual one. In a chapter that sets two clocks
    side by side (``stats.figures.by_due_time``), the run without a noise has the warning of
    ``presenter.runs.control_run``. ``key``: the key that makes the run again, for
    the warning; "" for none. ``asks_causes``: True if the learner is still to name the largest cause: it is then left
    out.
    """
    due, origin = by_due_time(shows), origin_of(seen)
    judged = judged_value(seen, asked, from_due_time=due)
    warning = few_sent((seen,), titles_of(shows), key=key)
    tail, known = (judged.figure, judged.known) if judged is not None else (None, due)
    line = Text()
    if judged is not None:
        few = f" ({FEWER_THAN_TEN})" if judged.few and judged.of_stalls else ""
        style = "bold accent" if known or not warning else "text"
        link = ":" if judged.of_stalls else " is"
        name = judged.figure.title if origin else judged.figure.headline
        line.append(f"{name}{link} {judged.told}{few}", style)
        worst = seen.run.main_summary.max if judged.of_stalls and seen.run.main_summary is not None else None
        line.append(f", the longest {nice_ns(worst)}" if worst is not None and judged.seen else "", "text")
    shown = titled(figure_with_id(shows.figure), seen.run) if shows is not None else None
    if shown is not None and (tail is None or shown.id != tail.id) and (value := shown.of(seen)) is not None:
        line.append(" · " if line else "", "dim").append(f"{shown.title}: {shown.with_unit(value)}", "text")
    if not asks_causes and (own := own_threads_clause(seen)):
        line.append(" · " if line else "", "dim").append(own, "bad")
    if others := disturbance_clause(seen):
        much = disturbance_clause(seen, MUCH_WORK)
        line.append(" · " if line else "", "dim").append(others, "bad" if much else "text")
    if judged is not None and judged.few and not judged.of_stalls:
        line.append(f" · {FEW_BESIDE}", "dim")
    for told in filter(None, (correction_told(seen), disturbed_told(seen, key=key)) if due else ()):
        line.append(f". {told}" if line else told, "text")
    if warning:
        parts = [part for part in ((line, warning) if known else (warning, line)) if part]
        line = Text(". " if known else " ").join(parts)
    return wrap(Text.assemble(lead_of_origin(origin), line), width) if line else []


def lead_of_origin(origin: str) -> tuple[str, str]:
    """Return the words of :func:`origin_of` as the quiet beginning of a line, and their style."""
    return f"{origin}: " if origin else "", "dim"


def _marked(tail: Figure, seen: KnownRun) -> str:
    """Return a percentile's value with its unit. The value begins with the mark for few stalls, if few stalls lie
    beyond the percentile. A run of another machine has no mark, because its stalls are not known."""
    few = seen.recorded is None and marks_of_run(seen.run).get(tail.id) == FEW_STALLS
    return f"{FEW_STALLS if few else ''}{tail.with_unit(tail.of(seen))}"


@dataclasses.dataclass(frozen=True)
class JudgedValue:
    """Hold the value by which one run is judged. ``figure``: its figure. ``told``: the value with its unit; it begins
    with a mark if few stalls lie beyond it. ``known``: False if the value is too small, because it leaves out the waits
    for a stopped thread. ``few``: True if the value rests on fewer than ten stalls. ``seen``: False for a rate of
    stalls if the run has none."""

    figure: Figure
    told: str
    known: bool = True
    few: bool = False
    seen: bool = True

    @property
    def of_stalls(self) -> bool:
        """Return True if the figure is a rate of stalls, not a latency."""
        return self.figure.unit == "a second"


def judged_value(seen: KnownRun, asked: str | None, *, from_due_time: bool) -> JudgedValue | None:
    """Return the value by which a run is judged; None if the run has no such value. ``asked``, ``from_due_time``: as in
    :func:`_tail`."""
    tail = _tail(seen, asked, from_due_time=from_due_time)
    if tail is None:
        return None
    if tail.unit == "a second":
        rate = tail.of(seen) or 0.0
        return JudgedValue(tail, tail.with_unit(rate), few=rate * seen.run.rated_s < LEAST_EVENTS, seen=rate > 0)
    told = _marked(tail, seen)
    return JudgedValue(tail, told, known=not leaves_out_waits(seen), few=told.startswith(FEW_STALLS))


def _tail(seen: KnownRun, asked: str | None, *, from_due_time: bool) -> Figure | None:
    """Return the figure by which a run is judged; None if the run has no such value. ``from_due_time``: True for the
    percentile from the due time; a run without it then has no other."""
    workload, judge = seen.run.workload, judge_of(asked, seen)
    if from_due_time:
        return one if (one := FIGURES[P99_FROM_DUE_TIME]).of(seen) else None
    if FIGURES[judge].unit == "a second":
        return FIGURES[judge]
    return next((FIGURES[p] for p in (judge, tail_of(workload)) if FIGURES[p].of(seen)), None)


def headline_so_far(
    now: Progress | None, workload: str, asked: str | None, *, from_due_time: bool = False
) -> tuple[str, str]:
    """Return the value so far of the figure that judges the run, and its colour role. The role is ``dim`` until
    the value is firm. Return ("", "") if there is no value. Also return ("", "") on an emulated machine, because its
    times mean nothing. ``now``: None before the first block has ended. ``from_due_time``: as in :func:`_judging`.
    """
    emulated = now is not None and now.curve.origin == EMULATED
    if (rate := rate_so_far(now, workload, asked)) is not None:
        return ("", "") if emulated else (rate.short, "accent" if rate.firm else "dim")
    tail, _ = _judging(workload, asked, from_due_time=from_due_time)
    value = None if emulated else value_so_far(now, tail)
    return (nice_ns(value), "accent" if _firm(now, tail) else "dim") if value is not None else ("", "")


@dataclasses.dataclass(frozen=True)
class RateSoFar:
    """Hold the rate of stalls that judges an unfinished run. ``told``: the rate with its unit, such as ``16 a second``.
    ``short``: the same in few characters, such as ``16/s``. ``firm``: True if ten stalls were seen, and at least half
    of the run's blocks are done."""

    told: str
    short: str
    firm: bool


def rate_so_far(now: Progress | None, workload: str, asked: str | None) -> RateSoFar | None:
    """Return the rate of stalls that judges an unfinished run. Return None before the first block has ended, and if
    another figure judges the run, or its stalls are not known."""
    threshold_ns = least_length_ns(judged_by(workload, asked))
    rates = now.rates if now is not None and threshold_ns is not None else ()
    rate = next((one for one in rates if one.threshold_ns == threshold_ns), None)
    if now is None or rate is None:
        return None
    figure = FIGURES[judged_by(workload, asked)]
    told, firm = figure.with_unit(rate.per_second), rate.count >= LEAST_EVENTS and 2 * now.done >= now.total
    return RateSoFar(told, told.replace(A_SECOND, SHORT_A_SECOND), firm)


def _judging(workload: str, asked: str | None, *, from_due_time: bool) -> tuple[str, str]:
    """Return the percentile by which a run is judged, such as ``99``, and its name on the screen. ``asked``: the
    chapter's percentile; None for the workload's usual one. ``from_due_time``: True if the chapter judges by latency
    from the due time; the name then says so."""
    tail = tail_of(workload, asked)
    return (DUE_TAIL, FIGURES[P99_FROM_DUE_TIME].title) if from_due_time else (tail, f"p{tail}")


def value_so_far(now: Progress | None, tail: str) -> float | None:
    """Return the value so far, in ns, of a percentile of an unfinished run's latencies; None if it is not known yet.
    ``now``: None before the first block has ended."""
    curve = None if now is None else now.latency
    return curve_value_at(curve, float(tail)) if curve is not None and tail[0].isdigit() else None


def _firm(now: Progress | None, tail: str) -> bool:
    """Return True if a percentile so far is firm: enough samples lie beyond it, and at least half of the run's blocks
    are done."""
    if now is None or not tail[0].isdigit():
        return False
    return bool(now.curve.count) and not of_count(now.curve.count)[tail] and 2 * now.done >= now.total


def unfinished_line(
    now: Progress | None,
    workload: str,
    asked: str | None,
    width: int,
    *,
    waits: bool = False,
    from_due_time: bool = False,
) -> Lines:
    """Return a line on an unfinished run: the value so far of the figure that judges the run. The line also tells
    if this value is firm, and how many blocks have ended. ``now``: None before the first block has ended. ``waits``:
    True if the run has not begun because it waits for other users of the host. ``from_due_time``: as in
    :func:`_judging`.
    """
    tail, name = _judging(workload, asked, from_due_time=from_due_time)
    if least_length_ns(judge := judged_by(workload, asked)) is not None:
        name = FIGURES[judge].headline
    if now is None:
        told = f"{name}: the run has not begun" if waits else f"{name} so far: no block is done yet"
        return wrap(Text(told, "dim"), width)
    if (rate := rate_so_far(now, workload, asked)) is not None:
        told, firm = rate.told, rate.firm
    else:
        _, name = _judging(workload, asked, from_due_time=from_due_time)
        value = value_so_far(now, tail)
        told, firm = nice_ns(value), _firm(now, tail)
    lead = lead_of_origin(clean(now.curve.origin, WORD))
    line = Text.assemble(lead, (f"{name} so far: {told}", "bold accent" if firm else "text"))
    return wrap(line.append(f"{'' if firm else ', not firm yet'}, from {now.done} of {now.total} blocks", "dim"), width)
