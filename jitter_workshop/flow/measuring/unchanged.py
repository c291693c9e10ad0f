"""Say how far two runs differ between which this tool changed nothing, and what is known of the reason.

Two such runs show how much a change must do. They do not show that chance made them differ: the host, or what runs
below it, may have changed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from jitter_workshop.flow.measuring.known_reason import cause_by_chance, most_apart
from jitter_workshop.model.effect import CauseTime, Effect
from jitter_workshop.model.run import Run
from jitter_workshop.stats.effect import ALIKE, MOST_BY_LUCK, MOVED, differences_by_figure, judge_of, unlike
from jitter_workshop.stats.figures import FIGURES, KnownRun
from jitter_workshop.stats.sample_size import FEW_STALLS
from jitter_workshop.stats.scale import difference_told, ratio_text

_LINES, _COLUMNS = 2, 76
"""The largest length of the sentences."""
_MOST = 3
"""The largest number of figures in them."""
UNCHANGED = "This tool changed nothing"
"""The words with which the sentences begin."""
_DO_MORE, _AT_LEAST = " A change must do more", f", at least {MOVED:g}×"
"""The end of the sentences; the limit of each change, if the runs differ by less in the figure that judges them."""
_MEDIAN_MOVED = 1.5
"""The least factor of the median that is told. It rests on half of the messages, so equal runs hardly differ in it."""
_MEDIAN = FIGURES["50"].title
_NO_EVENT = "stalls with no event"
"""The words for a cause of stalls during which the trace has no event."""
_WORDS = {FIGURES["max"].title: "the maximum"}


def unchanged(before: KnownRun, after: KnownRun, causes: Sequence[CauseTime] = (), asked: str | None = None) -> str:
    """Return :func:`said_of_unchanged` for all figures of two runs. ``asked``: the percentile by which the chapter
    judges; None for the usual one."""
    known = differences_by_figure(before, after, asked)
    judged = known.get(judge_of(asked, before, after))
    return said_of_unchanged(known.values(), judged, (before, after), causes, cut=False)


def said_of_unchanged(
    differences: Iterable[Effect],
    judged: Effect | None,
    runs: Sequence[KnownRun],
    causes: Sequence[CauseTime] = (),
    *,
    cut: bool = True,
) -> str:
    """Return sentences on two runs that were made in the same way: the largest differences, the known differences
    between the runs, and that a change must do more. At 76 columns they have at most two lines: where the known
    differences have no room, they are left out.

    ``differences``: as from ``stats.effect.differences_by_figure``. ``judged``: the one in the figure by which the runs
    are judged, which is always told if the figures differ by it; None if it is not known. ``causes``: the time of each
    cause in both runs; () if a run has no trace. ``cut``: False to leave nothing out, however long it is."""
    if any(seen.timeless for seen in runs):
        return f"{UNCHANGED}, and the times of these runs mean nothing, because the machine is emulated."
    told = figures_told(differences, judged)
    if not told:
        return f"{UNCHANGED}. The runs are too short to show how much they differ."
    why = known_told(runs, causes, judged)
    more = f"{_DO_MORE}{'' if judged is not None and judged.factor > MOVED else _AT_LEAST}."
    # The figure that judges, the one that differs most, and the median are never left out.
    largest = max(told, key=lambda one: one.factor)
    less = [one for one in told[1:] if one is not largest and not _is_median(one)]
    texts = [f"{UNCHANGED}, yet {_differ(told)}. {why}{more}"]
    for one in reversed(less):
        told.remove(one)
        texts.append(f"{UNCHANGED}, yet {_differ(told)}. {why}{more}")
    texts.append(f"{UNCHANGED}, yet {_differ(told)}.{more}")
    if not cut:
        return texts[0]
    return next((text for text in texts if len(textwrap.wrap(text, _COLUMNS)) <= _LINES), texts[-1])


def figures_told(differences: Iterable[Effect], judged: Effect | None) -> list[Effect]:
    """Return the differences of which :func:`said_of_unchanged` tells at most: ``judged``, which the chart and home
    tell, too, and then the largest ones, and the median's if it differs by _MEDIAN_MOVED or more."""
    known = list(differences)
    named = {one.name: one for one in known if _is_median(one) and one.factor >= _MEDIAN_MOVED}
    if judged is not None:
        named[judged.name] = judged
    largest = [one for one in (*known[:1], *(e for e in known[1:] if e.factor >= ALIKE)) if one.name not in named]
    told = {one.name for one in largest[: _MOST - len(named)]} | set(named)
    found = [one for one in known if one.name in told]
    found += [one for name, one in named.items() if all(name != e.name for e in found)]
    return sorted(found, key=lambda one: judged is None or one.name != judged.name)


def known_told(runs: Sequence[KnownRun], causes: Sequence[CauseTime] = (), judged: Effect | None = None) -> str:
    """Return a sentence with :func:`known_differences`, or the one that says that the reason is not known."""
    known = known_differences(runs, causes, judged)
    return f"Known difference{'s' * (len(known) > 1)}: {', '.join(known)}." if known else "The reason is not known."


def known_differences(
    runs: Sequence[KnownRun], causes: Sequence[CauseTime] = (), judged: Effect | None = None
) -> list[str]:
    """Return in words in what two runs differ, beside their figures: a cause of stalls, the CPUs that the scheduler
    chose, and other tasks that ran. If no cause explains half of the difference, the causes of ``most_apart`` in the
    worse run are named. Without such a cause, a count is named that is larger in the run with the larger ``judged``.
    ``causes``, ``judged``: as in :func:`said_of_unchanged`."""
    before, after = runs
    cause, count = cause_by_chance(causes), unlike(before, after)
    words = [cause.label] if cause is not None and cause.named else []
    words += [_NO_EVENT] if cause is not None and cause.label.startswith("no event") else []
    if cause is None:
        words += [one.label for one in most_apart(causes, _worse_run(causes, judged))]
    if not words and count is not None and judged is not None:
        words += [count.name] if (count.how == "more") == (judged.direction == "worse") else []
    words += ["the CPUs"] if threads_on_other_cpus(before.run, after.run) else []
    return words + (["other tasks"] if before.run.disturbed or after.run.disturbed else [])


def _worse_run(causes: Sequence[CauseTime], judged: Effect | None) -> int:
    """Return the number of the run that is worse by ``judged``. If this is not known, return the one with more stalled
    time."""
    if judged is not None and judged.direction != "same":
        return int(judged.direction == "worse")
    first, second = (sum(one.ns[run] for one in causes) for run in (0, 1))
    return int(second > first)


def threads_on_other_cpus(before: Run, after: Run) -> list[tuple[str, int, int]]:
    """Return (thread, CPU in the first run, CPU in the second run) for each thread that the scheduler had mostly on
    another CPU in the second run. Return [] if the user or the chapter chose the CPUs."""
    if not before.placement.mode == after.placement.mode == "none":
        return []
    first, second = _main_cpus(before), _main_cpus(after)
    return [(name, first[name], second[name]) for name in first if name in second and first[name] != second[name]]


def _main_cpus(run: Run) -> dict[str, int]:
    """Return thread → the CPU on which it handled most of its messages. Threads without a message are left out."""
    found: dict[str, int] = {}
    for thread in run.threads:
        counts = {int(cpu): count for cpu, count in thread.messages_by_cpu.items() if cpu.isdigit() and count}
        if counts:
            found[thread.name] = max(counts, key=lambda cpu: (counts[cpu], -cpu))
    return found


def _differ(told: Sequence[Effect]) -> str:
    """Return ``p99.9 differs by 27 %, p99 by 84× and stalls over 100 µs by 5.2×``."""
    first, *others = told
    verb = "differ" if first.sort == "stalls" else "differs"
    parts = [
        f"{_called(first)} {verb} by {times_apart(first)}",
        *(f"{_called(one)} by {times_apart(one)}" for one in others),
    ]
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _called(one: Effect) -> str:
    """Return the words for a figure in a sentence."""
    if one.sort == "stalls":
        return one.name.replace("stalls of ", "stalls over ").removesuffix(" and more")
    return "the median" if _is_median(one) else _WORDS.get(one.name, one.name)


def _is_median(one: Effect) -> bool:
    """Return True for the median, by whichever clock its runs are judged."""
    return one.name.partition(" ")[0] == _MEDIAN


def times_apart(one: Effect) -> str:
    """Return the factor of a difference in words, behind FEW_STALLS if few stalls lie beyond the figure."""
    least = one.at_least and ALIKE <= one.factor <= MOST_BY_LUCK
    few = FEW_STALLS if one.few and one.factor >= ALIKE else ""
    return f"{'at least ' if least else ''}{few}{factor_told(one.factor)}"


def factor_told(factor: float) -> str:
    """Return in words by how much two equal runs differ: ``41 %``, ``2.6×``, ``less than 5 %``."""
    if factor < ALIKE:
        return "less than 5 %"
    if factor > MOST_BY_LUCK:
        return f"more than {ratio_text(MOST_BY_LUCK)}"
    return difference_told(factor, "").rstrip()
