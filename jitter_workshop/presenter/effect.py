"""Say the result of a run, or of two runs, in one line: the only loud line of a screen.

The line names its direction in a word, so that it can be read without colours.
"""

from __future__ import annotations

import re
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
from jitter_workshop.stats.effect import ALIKE, MOVED, tail_of
from jitter_workshop.stats.figures import FIGURES, Figure, KnownRun, figure
from jitter_workshop.stats.scale import nice_ns, nice_number

if TYPE_CHECKING:
    from jitter_workshop.flow.chapters.walk import ChapterSession

NOT_PROVEN = "2 runs, not yet proven"
_ROLES = {"better": "good", "worse": "bad", "same": "accent"}
_LEADS = {"better": "Looks better: ", "worse": "Looks worse: "}
_NO_CHANGE = "No clear change: "
_LUCK = "Luck: "
_ONE_RUN = "The same run twice, so nothing can differ."
_NAMED = 2
_PERCENTILE = re.compile(r"p\d")


def origin_of(seen: KnownRun) -> str:
    """Return what a run of another machine is called; "" for a run of one's own."""
    return "" if seen.recorded is None else "recorded, emulated" if seen.emulated else "recorded"


def measured(seen: KnownRun, width: int, shows: Shows | None = None, asked: str | None = None) -> Lines:
    """Return the result of one run: the percentile that stands for it, the chapter's figure, and which tasks disturbed
    the run. A recorded run is called recorded. ``asked``: the percentile of the guess."""
    tail = _tail(seen, asked)
    line = Text()
    if tail is not None:
        line.append(f"{tail.title} is {tail.with_unit(tail.of(seen))}", "bold accent")
    shown = figure(shows.figure) if shows is not None else None
    if shown is not None and shown is not tail and (value := shown.of(seen)) is not None:
        line.append(" · " if line else "", "dim").append(f"{shown.title}: {shown.with_unit(value)}", "bold text")
    if company := disturbed(seen.run):
        line.append(" · " if line else "", "dim").append(f"disturbed by {company}", "bold bad")
    return wrap(Text.assemble(_lead(origin_of(seen)), line), width) if line else []


def _lead(origin: str) -> tuple[str, str]:
    return f"{origin}: " if origin else "", "dim"


def headline(found: KnownRun | Effects | None, asked: str | None = None) -> tuple[str, str]:
    """Return the one figure of a run, or of two runs, to be shown large, and its role; ("", "") without one."""
    if isinstance(found, Effects):
        lead = found.lead
        return (f"{_times(lead.factor)}×", _ROLES[found.direction]) if lead is not None else ("", "")
    tail = _tail(found, asked) if found is not None else None
    return (tail.with_unit(tail.of(found)), "accent") if found is not None and tail is not None else ("", "")


def _tail(seen: KnownRun, asked: str | None) -> Figure | None:
    """Return the percentile that stands for a run; None if the run has no such value."""
    workload = seen.run.workload
    return next((FIGURES[p] for p in (tail_of(workload, asked), tail_of(workload)) if FIGURES[p].of(seen)), None)


def headline_so_far(curve: PercentileCurve, workload: str, asked: str | None) -> str:
    """Return the value so far of the percentile that stands for a run; "" if it is not known."""
    tail = tail_of(workload, asked)
    value = value_at(curve, float(tail)) if tail[0].isdigit() else None
    return nice_ns(value) if value is not None else ""


def so_far(curve: PercentileCurve, workload: str, asked: str | None, width: int) -> Lines:
    """Return the line on the percentile that stands for a run, with its value so far."""
    tail = tail_of(workload, asked)
    value = value_at(curve, float(tail)) if tail[0].isdigit() else None
    return wrap(Text.assemble((f"p{tail} so far: {nice_ns(value)}", "bold accent")), width)


def compared(
    found: Effects, runs: Sequence[Run], same_state: bool, width: int, origin: str = "", proof: str = ""
) -> Lines:
    """Return the result of two runs as one statement: the largest effect, then the largest effect in the other
    direction, which is bold if it is a loss beside a gain. Below, in plain text: what is proven, and which run was
    disturbed. ``same_state``: nothing was changed between the runs, so the difference is luck. ``origin``: what runs of
    another machine are called. ``proof``: what is known of a proof of this change; "" where none can be made."""
    if found.nearest is None:
        return []
    if runs[0].id == runs[1].id and not origin:
        return wrap(Text(_ONE_RUN, "bold accent"), width)
    shown = found.lead or found.nearest
    loud, quiet = Text(), list[str]()
    if same_state:
        role, lead = "accent", f"{_LUCK}nothing was changed."
        told = f"The largest difference is {in_words(shown)}." if shown.factor > 1.0 else "No figure differs."
    elif found.lead is None:
        role, lead = "accent", f"{_NO_CHANGE}no figure moved"
        told = "by a factor of 2" + ("." if shown.factor < ALIKE else f", the nearest is {in_words(shown)}.")
    else:
        looks = f"Perhaps {found.direction}: " if shown.few or shown.one_event else _LEADS[found.direction]
        role, lead, told = _ROLES[found.direction], f"{looks}{in_words(shown)}.", ""
        if found.but is not None:
            but = f"But {in_words(found.but)}{_doubt(found.but)}."
            if found.but.direction == "worse" and not _doubt(found.but):
                loud.append(but, "bold bad")
            else:
                quiet.append(but)
    line = Text.assemble(_lead(origin), (lead, f"bold {role}"))
    line.append(f" {told}" if told else "", "text")
    if shown.one_event:
        quiet.append("The maximum is one event.")
    elif shown.few and shown.factor >= MOVED:
        quiet.append("Fewer than ten stalls lie beyond it, so chance may explain this.")
    told_quietly = filter(None, (proof, " ".join((*quiet, *_company(runs)))))
    second = wrap(loud, width) if loud else []
    return [*wrap(line, width), *second, *(one for said in told_quietly for one in wrap(Text(said, "text"), width))]


def of_recorded(walk: ChapterSession, width: int) -> Lines:
    """Return the result of a chapter's two recorded runs; [] where there are not two."""
    both, found = walk.before_and_after(), walk.recorded_effects()
    if both is None:
        return []
    return compared(found, [seen.run for seen in both], walk.repeats, width, origin_of(both[0]))


def counts(found: Sequence[Effect], width: int, origin: str = "", luck: bool = False) -> Lines:
    """Return the counts before and after a change in two columns. A row is tinted where the figure moved. ``origin``:
    what runs of another machine are called. ``luck``: nothing was changed between the runs, so they are the first
    and the second, and no row is better or worse."""
    if not found:
        return []
    which = ("first", "second") if luck else ("before", "after")
    rows = [[f"{f'{origin.upper()} ' if origin else ''}COUNTS, A SECOND", *which, ""]]
    for e in found:
        told = f"{_times(e.factor)}× {e.how}" if e.factor >= MOVED else ""
        rows.append([e.name, *(value.removesuffix(" a second") for value in e.values), told])
    lines = table(rows, width, right=(1, 2))
    for line, e in zip(lines[1:], found, strict=True):
        if e.factor >= MOVED and not luck:
            line.stylize(_ROLES[e.direction])
    return lines


def by_luck(said: str, width: int) -> Lines:
    """Return the result of two runs between which nothing was changed. ``said``: how far they differ, as a sentence."""
    head, _, rest = said.partition(": ")
    return wrap(Text.assemble((f"{head}: ", "bold accent"), (rest, "text")), width)


def beside(found: Effects, marked: Effect | None, width: int) -> Lines:
    """Return the line that explains why the chart marks another figure than the one shown large; [] if both are the
    same."""
    lead = found.lead
    if lead is None or marked is None or marked.name == lead.name:
        return []
    # The chapter's own figure may lead, however small its effect is.
    largest = lead == found.nearest and not lead.few and not lead.one_event
    why = f"{lead.name}: the largest difference that is not luck. " if largest and _PERCENTILE.match(lead.name) else ""
    return wrap(Text(f"{why}The chart marks {in_words(marked)}.", "text"), width)


def _doubt(effect: Effect) -> str:
    """Return why an effect may be chance, in brackets; "" if nothing speaks for that."""
    return " (one event)" if effect.one_event else " (few stalls)" if effect.few else ""


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


def in_words(effect: Effect) -> str:
    """Return ``p99.9: 210 µs → 12 µs, 17 times shorter``, and the values alone where they are called the same."""
    values = f"{effect.name}: {effect.values[0]} → {effect.values[1]}"
    if effect.factor < ALIKE:
        return values
    told = f"{values}, {'at least ' if effect.at_least else ''}{_times(effect.factor)} times {effect.how}"
    return f"{told}, with no more stolen time" if effect.in_no_more_time else told


def _times(factor: float) -> str:
    return nice_number(round(factor, 1) if factor < 10 else round(factor))
