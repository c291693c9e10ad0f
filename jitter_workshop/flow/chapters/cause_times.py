"""Compare the time that each cause took in two runs, as their traces show it. Every function is pure."""

from __future__ import annotations

from collections.abc import Collection

from jitter_workshop.flow.chapters.levers import chapter_treats
from jitter_workshop.flow.chapters.suspects import figure_counts_cause, of_trace, suspect, woken_by
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.diagnosis import SeenCauses, Suspect
from jitter_workshop.model.effect import CauseTime
from jitter_workshop.model.evidence import IDLE, MEASURED
from jitter_workshop.model.spec import MEASURED_THREADS
from jitter_workshop.stats.figures import KnownRun

MOST_UNKNOWN = 0.5
"""The largest share of the stalled time whose cause may be unknown. If the share is larger, two runs are not compared,
because a cause that the trace does not show may have taken the time.
"""

_UNNAMED = ("no_event", "around")
"""The kinds of causes of which no event shows what took the time."""


def times_of_causes(before: KnownRun, after: KnownRun, chapter: Chapter) -> tuple[CauseTime, ...]:
    """Return the time of each cause in two runs, the largest cause first. Time that measured threads take from each
    other is one cause. Return () for an emulated machine, or if the causes of a run are not known well enough."""
    if before.timeless or after.timeless:
        return ()
    figure = chapter.shows.figure if chapter.shows is not None else ""
    first, second = (_read(one, chapter.interrupts_of_load(one.run.noise)) for one in (before, after))
    if first is None or second is None:
        return ()
    both = _by_cause(*first), _by_cause(*second)
    marked = _marked(before, first[0], figure), _marked(after, second[0], figure)
    found: list[CauseTime] = []
    for kind, name in dict.fromkeys((*both[0], *both[1])):
        one = suspect(kind, name, 0, 0)
        (before_ns, least), (after_ns, fewest) = (
            (ns[kind, name], False) if (kind, name) in ns else _absent(seen, seconds, figure)
            for ns, (seen, seconds) in zip(both, (first, second), strict=True)
        )
        task = name if kind == "task" and name not in (MEASURED, IDLE) else ""
        acts = any(chapter_treats(woken_by(one, seen), chapter) for seen in marked)
        own = any(same.own_load for seen, _ in (first, second) for same in seen.suspects if _key(same) == (kind, name))
        of_chapter = acts, figure_counts_cause(figure, one)
        named, stalls = kind not in _UNNAMED, (_stalls(first, (kind, name)), _stalls(second, (kind, name)))
        made = CauseTime(one.label, (before_ns, after_ns), (least, fewest), *of_chapter, task, own, named, stalls)
        if made.counted or made.known:
            found.append(made)
    return tuple(sorted(found, key=lambda one: (-max(one.ns), one.label)))


def _absent(seen: SeenCauses, seconds: float, figure: str) -> tuple[float, bool]:
    """Return the time, in ns a second, of a cause that a run does not list.

    The second value is True if the time is an upper limit. A recorded run lists only its largest causes. So any other
    cause took at most as long as the smallest of them. If a run lists all causes, return 0 and False.

    ``figure``: the chapter's figure. A run always lists the causes that this figure counts, even small ones. So this
    function ignores these causes when it looks for the smallest listed cause.
    """
    if not seen.others:
        return 0.0, False
    listed = [one.total_ns or 0 for one in seen.suspects if not figure_counts_cause(figure, one)]
    return min(listed, default=0) / seconds, True


def _marked(known: KnownRun, seen: SeenCauses, figure: str) -> SeenCauses:
    """Return a run's causes as the step ``diagnose`` has them: marked if a call from another CPU woke them. ``seen``:
    the causes without these marks. ``figure``: the chapter's figure, as in :func:`suspects.of_trace`."""
    return seen if known.report is None else of_trace(known.report, figure=figure, most=None)


def _read(known: KnownRun, irqs: Collection[str]) -> tuple[SeenCauses, float] | None:
    """Return the causes of a run and its measured seconds; None if the causes are not known well enough. ``irqs``: the
    names of the interrupts that the chapter's own load brought to this run."""
    if known.timeless:
        return None
    if known.report is not None:
        seen, seconds = of_trace(known.report, known.run.noise, most=None, irqs=irqs), known.report.measured_ns / 1e9
    elif known.seen is not None and known.seen.source == "trace":
        seen, seconds = known.seen, known.run.duration_s
    else:
        return None
    return None if seconds <= 0 or seen.unknown_ns > MOST_UNKNOWN * seen.stalled_ns else (seen, seconds)


def _by_cause(seen: SeenCauses, seconds: float) -> dict[tuple[str, str], float]:
    """Return the time of each cause in ns a second, by its kind and name."""
    found: dict[tuple[str, str], float] = {}
    for one in seen.suspects:
        found[_key(one)] = found.get(_key(one), 0.0) + (one.total_ns or 0) / seconds
    return found


def _stalls(read: tuple[SeenCauses, float], key: tuple[str, str]) -> float:
    """Return the number of stalls a second with a cause. Several parts of one cause are in the same stalls, so the
    largest number counts. ``read``: the causes of a run and its measured seconds."""
    seen, seconds = read
    return max((one.count or 0 for one in seen.suspects if _key(one) == key), default=0) / seconds


def _key(one: Suspect) -> tuple[str, str]:
    """Return the kind and the name by which a cause is found in both runs. All measured threads are one cause."""
    return one.kind, MEASURED if one.kind == "task" and one.name in MEASURED_THREADS else one.name
