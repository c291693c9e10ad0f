"""Show the gaps of a clock loop as rates, so that runs of any duty can be compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jitter_workshop.model.effect import RUN_HEADS
from jitter_workshop.model.run import Run
from jitter_workshop.presenter.text.lines import Lines, table_lines
from jitter_workshop.stats.figures import FIGURES, KnownRun, interrupts_a_second
from jitter_workshop.stats.scale import nice_number

TOPIC = "gaps"
"""The word of a lesson's ``evidence`` that asks for these lines."""

_OF_INTERRUPTS = (10_000, 30_000)
"""The lengths in ns, from and to, of gaps that interrupts and their softirqs make."""
_UNKNOWN = "not known"
_FEWER = "not known (fewer than preemptions)"

_Cell = Callable[[KnownRun], str]


def gaps(runs: Sequence[KnownRun], width: int) -> Lines:
    """Return a table of one or two runs of ``spin``: the gaps in a second of sampled time, and the interrupts in a
    second of the run. Each run has a column. Two runs of different duties have the rows that both can be compared by,
    so their longest gaps are left out. Return [] without runs, or if a run has another workload.
    """
    if not runs or any(seen.run.workload != "spin" for seen in runs):
        return []
    duties = [seen.run.duty for seen in runs]
    apart = len(set(duties)) > 1
    heads = [f"{duty} % busy" for duty in duties] if apart else RUN_HEADS[: len(runs) if len(runs) > 1 else 0]
    rows = [["GAPS, PER SECOND OF SAMPLED TIME", *(heads or [""])]]
    rows += [[name, *map(cell, runs)] for name, cell in (_APART if apart else _ALIKE)]
    return table_lines(rows, width, right=range(1, len(runs) + 1))


def _shown(name: str) -> _Cell:
    """Return a function that tells the figure with this id. Its text is "not known" if the run does not have it."""

    def cell(seen: KnownRun) -> str:
        value = FIGURES[name].of(seen)
        return _UNKNOWN if value is None else FIGURES[name].shown(value)

    return cell


def _unswitched(seen: KnownRun) -> str:
    """Return the long gaps that preemptions do not explain. If there are fewer gaps than preemptions, say so."""
    parts = (FIGURES["stalls-100us"].of(seen), FIGURES["preempted"].of(seen))
    unknown = FIGURES["stalls-unswitched"].of(seen) is None and None not in parts
    return _FEWER if unknown else _shown("stalls-unswitched")(seen)


def _of_interrupts(seen: KnownRun) -> str:
    return _rate(_between(seen.run, *_OF_INTERRUPTS), seen.run.sampled_s)


def _between(run: Run, from_ns: int, to_ns: int) -> int | None:
    """Return the number of gaps of at least ``from_ns`` and less than ``to_ns``; None if the run has no buckets."""
    if run.buckets is None:
        return None
    return sum(one.count for one in run.buckets if from_ns <= one.from_ns < to_ns)


def _interrupts(seen: KnownRun) -> str:
    rate = interrupts_a_second(seen)
    return _UNKNOWN if rate is None else nice_number(rate)


def _rate(count: int | None, seconds: float | None) -> str:
    return nice_number(count / seconds) if count is not None and seconds else _UNKNOWN


_LONG: tuple[str, _Cell] = ("100 µs and more", _shown("stalls-100us"))
_SHORT: tuple[str, _Cell] = ("10 µs and more", _shown("stalls-10us"))
_PREEMPTED: tuple[str, _Cell] = ("preemptions", _shown("preempted"))
_ALIKE: tuple[tuple[str, _Cell], ...] = (
    _SHORT,
    _LONG,
    _PREEMPTED,
    ("100 µs and more, minus preemptions", _unswitched),
    ("the longest gap", _shown("max")),
    ("interrupts on this CPU, a second of the run", _interrupts),
)
_APART: tuple[tuple[str, _Cell], ...] = (
    _LONG,
    ("10 to 30 µs", _of_interrupts),
    _SHORT,
    _PREEMPTED,
    ("timer interrupts, a second of the run", _shown("ticks")),
)
