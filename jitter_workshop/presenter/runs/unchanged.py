"""Word two runs between which this tool changed nothing: their differences, and what is known of the reason."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.flow.measuring.unchanged import figures_told, known_told, said_of_unchanged, threads_on_other_cpus
from jitter_workshop.model.effect import Effect, Effects
from jitter_workshop.model.text import ID, capital, clean
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.stats.effect import judge_of, unlike
from jitter_workshop.stats.figures import FIGURES, KnownRun


def result_unchanged(found: Effects, runs: Sequence[KnownRun]) -> Text:
    """Return the result of two such runs: ``flow.measuring.unchanged.said_of_unchanged``, its first sentence
    emphasised."""
    first, dot, rest = said_of_unchanged(found.differences, _judged(found, runs), runs, found.causes).partition(". ")
    return Text.assemble((f"{first}{dot.rstrip()}", "bold accent"), (f" {rest}" if rest else "", "text"))


def named_unchanged(found: Effects, runs: Sequence[KnownRun]) -> set[str]:
    """Return the names of the figures and counts that :func:`result_unchanged` and :func:`notes_unchanged` name."""
    count = unlike(*runs)
    named = {one.name for one in figures_told(found.differences, _judged(found, runs))}
    return named | ({count.name} if count is not None else set())


def notes_unchanged(found: Effects, runs: Sequence[KnownRun]) -> list[str]:
    """Return sentences that explain the result: the known differences if :func:`result_unchanged` has no room for them,
    the count that differs by more than chance, and the CPUs that the scheduler chose."""
    before, after = runs
    if before.timeless or after.timeless:
        return []
    why = known_told(runs, found.causes, _judged(found, runs))
    notes = [] if why in result_unchanged(found, runs).plain else [why]
    if (count := unlike(before, after)) is not None:
        notes.append(f"A count differs by more than chance: {count.name}, {' → '.join(count.values)}.")
    if moved := threads_on_other_cpus(before.run, after.run):
        notes.append(f"The scheduler chose the CPUs: {_where(moved)}.")
    return [capital(note) for note in notes]


def _where(moved: Sequence[tuple[str, int, int]]) -> str:
    """Return ``producer mostly on CPU 1 in the first run and on CPU 0 in the second``. The CPUs are those of most
    messages, so a thread may have used both in both runs. ``moved``: as from ``threads_on_other_cpus``."""
    told = [
        f"{clean(name, ID)} mostly on CPU {first} in the first run and on CPU {second} in the second"
        for name, first, second in moved
    ]
    if len(moved) == 2 and moved[0][1:] == moved[1][:0:-1]:
        told[1] = f"{clean(moved[1][0], ID)} the other way round"
    return "; ".join(told)


def _judged(found: Effects, runs: Sequence[KnownRun]) -> Effect | None:
    """Return the difference in the figure by which the runs are judged; None if it is not known."""
    name = found.tail.name if found.tail is not None else FIGURES[judge_of(None, *runs)].title
    return next((one for one in found.differences if one.name == name), None)
