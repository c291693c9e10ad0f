"""Say the result of a run, or of two runs, in one line: the only loud line of a screen.

The line names its direction in a word, so that it can be read without colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from jitter_workshop.model.course import Shows
from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.effect import Effect, Effects
from jitter_workshop.model.run import Run
from jitter_workshop.model.text import called
from jitter_workshop.presenter.lines import Lines, table, wrap
from jitter_workshop.stats.curve import value_at
from jitter_workshop.stats.effect import ALIKE, MOVED, effect_on, tail_of
from jitter_workshop.stats.figures import FIGURES, Figure, KnownRun, figure
from jitter_workshop.stats.scale import nice_ns, nice_number

if TYPE_CHECKING:
    from jitter_workshop.flow.chapters.walk import ChapterSession

NOT_PROVEN = "Two runs are no proof: they differ by luck, too."
_ROLES = {"better": "good", "worse": "bad", "same": "accent"}
_BADGES = {"better": " BETTER ", "worse": " WORSE ", "same": " NO CHANGE "}
_LUCK = " LUCK "
_RECORDED = "recorded: "
_NAMED = 2


def measured(seen: KnownRun, width: int, shows: Shows | None = None, asked: str | None = None) -> Lines:
    """Return the result of one run: its percentile that counts, the chapter's figure, and who disturbed the run; a
    recorded run is called so. ``asked``: the percentile of the guess."""
    tail = _tail(seen, asked)
    line = Text()
    if tail is not None:
        line.append(_RECORDED if seen.recorded is not None else "", "dim")
        line.append(f"{tail.title} is {tail.with_unit(tail.of(seen))}", "bold accent")
    shown = figure(shows.figure) if shows is not None else None
    if shown is not None and shown is not tail and (value := shown.of(seen)) is not None:
        line.append(" · " if line else "", "dim").append(f"{shown.title}: {shown.with_unit(value)}", "bold text")
    if company := disturbed(seen.run):
        line.append(" · " if line else "", "dim").append(f"disturbed by {company}", "bold bad")
    return wrap(line, width) if line else []


def headline(found: KnownRun | Effects | None, asked: str | None = None) -> tuple[str, str]:
    """Return the one figure of a run, or of two runs, to be shown large, and its role; ("", "") without one."""
    if isinstance(found, Effects):
        lead = found.lead
        return (f"{_times(lead.factor)}×", _ROLES[found.direction]) if lead is not None else ("", "")
    tail = _tail(found, asked) if found is not None else None
    return (tail.with_unit(tail.of(found)), "accent") if found is not None and tail is not None else ("", "")


def _tail(seen: KnownRun, asked: str | None) -> Figure | None:
    """Return the percentile that counts of a run; None if the run knows none."""
    workload = seen.run.workload
    return next((FIGURES[p] for p in (tail_of(workload, asked), tail_of(workload)) if FIGURES[p].of(seen)), None)


def headline_so_far(curve: PercentileCurve, workload: str, asked: str | None) -> str:
    """Return the percentile that counts, of a run that is being made; "" if it is not known."""
    tail = tail_of(workload, asked)
    value = value_at(curve, float(tail)) if tail[0].isdigit() else None
    return nice_ns(value) if value is not None else ""


def so_far(curve: PercentileCurve, workload: str, asked: str | None, width: int) -> Lines:
    """Return the percentile that counts, of a run that is being made."""
    tail = tail_of(workload, asked)
    value = value_at(curve, float(tail)) if tail[0].isdigit() else None
    return wrap(Text.assemble((f"p{tail} so far: {nice_ns(value)}", "bold accent")), width)


def compared(found: Effects, runs: Sequence[Run], same_state: bool, width: int, recorded: bool = False) -> Lines:
    """Return the result of two runs: the largest effect, loud; then, quiet, the largest one against it, and which run
    was disturbed. ``same_state``: nothing was changed between the runs, so the difference is luck. ``recorded``: the
    runs were recorded on another machine."""
    if found.nearest is None:
        return []
    shown = found.lead or found.nearest
    quiet: list[str] = []
    if same_state:
        badge, role = _LUCK, "accent"
        line = Text("Nothing was changed. ", "bold accent")
        line.append(f"The largest difference is {_said(shown)}", "text")
    elif found.lead is None:
        badge, role = _BADGES["same"], "accent"
        line = Text("No figure moved", "bold accent")
        nearest = "" if shown.factor < ALIKE else f", the nearest is {_said(shown)}"
        line.append(f" by a factor of 2{nearest}", "text")
    else:
        badge, role = _BADGES[found.direction], _ROLES[found.direction]
        line = Text(_said(shown), f"bold {role}")
        if found.but is not None:
            quiet.append(f"But {_said(found.but)}{' (one event)' if found.but.one_event else ''}.")
    if recorded:
        line = Text.assemble((_RECORDED, "dim"), line)
    if shown.one_event:
        quiet.append("The maximum is one event.")
    lines = wrap(line, width, f"{badge} ", " ")
    lines[0].stylize(f"reverse bold {role}", 0, len(badge))
    quiet += _company(runs)
    return [*lines, *wrap(Text(" ".join(quiet), "text"), width, " ")] if quiet else lines


def of_recorded(walk: ChapterSession, width: int) -> Lines:
    """Return the result of a chapter's two recorded runs; [] where there are not two."""
    both, found = walk.before_and_after(), walk.recorded_effects()
    if both is None:
        return []
    return compared(found, [seen.run for seen in both], walk.repeats, width, recorded=True)


def counts(found: Sequence[Effect], width: int, recorded: bool = False) -> Lines:
    """Return the counts before and after a change in two columns. A row is tinted where the figure moved. ``recorded``:
    they are those of recorded runs."""
    if not found:
        return []
    rows = [[f"{'RECORDED ' if recorded else ''}COUNTS, A SECOND", "before", "after", ""]]
    for e in found:
        told = f"{_times(e.factor)}× {e.how}" if e.factor >= MOVED else ""
        rows.append([e.name, *(value.removesuffix(" a second") for value in e.values), told])
    lines = table(rows, width, right=(1, 2))
    for line, e in zip(lines[1:], found, strict=True):
        if e.factor >= MOVED:
            line.stylize(_ROLES[e.direction])
    return lines


def gap(first: KnownRun, second: KnownRun, percentile: str) -> str:
    """Return ``p99.9: 210 µs → 12 µs, 17 times shorter`` for a chart; "" where a run does not know the percentile."""
    found = effect_on(percentile, first, second)
    return "" if found is None else _said(found)


def disturbed(run: Run) -> str:
    """Return ``qemu (87 %) and 2 more``: other tasks on a run's CPUs, the busiest first; "" if there was none.
    Tasks of one name are one."""
    together: dict[str, float] = {}
    for load in run.disturbed:
        together[load.name] = together.get(load.name, 0.0) + load.cpu_percent
    loads = sorted(together.items(), key=lambda load: -load[1])
    named = ", ".join(f"{called(name, 24)} ({percent:.3g} %)" for name, percent in loads[:_NAMED])
    return f"{named} and {len(loads) - _NAMED} more" if len(loads) > _NAMED else named


def _company(runs: Sequence[Run]) -> list[str]:
    both = zip(("first", "second"), map(disturbed, runs), strict=True)
    told = [(which, company) for which, company in both if company]
    if len(told) == 2 and told[0][1] == told[1][1]:
        return [f"Both runs were disturbed by {told[0][1]}."]
    return [f"The {which} run was disturbed by {company}." for which, company in told]


def _said(effect: Effect) -> str:
    """Return ``p99.9: 210 µs → 12 µs, 17 times shorter``, and the values alone where they are called the same."""
    values = f"{effect.name}: {effect.values[0]} → {effect.values[1]}"
    if effect.factor < ALIKE:
        return values
    return f"{values}, {'at least ' if effect.at_least else ''}{_times(effect.factor)} times {effect.how}"


def _times(factor: float) -> str:
    return nice_number(round(factor, 1) if factor < 10 else round(factor))
