"""Show whether a learner's cure helped against a hidden noise.

Three runs are compared: a quiet one, one with the noise, and one with noise and cure. If these runs have traces, the
result comes from the traces, which distinguish the noise from other tasks. Without traces, the result comes from the
time in stalls of the runs. The run with the noise has more time in stalls than the quiet run. The result is the share
of this difference that the cure removed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from jitter_workshop.flow.chapters.suspects import of_trace
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.measuring.known_reason import much_more
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.model.course import TREATED
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.effect import CauseTime
from jitter_workshop.model.evidence import EvidenceReport
from jitter_workshop.model.run import Run
from jitter_workshop.model.session import Weighed
from jitter_workshop.model.text import ID, REASON, clean
from jitter_workshop.model.walk import CureView
from jitter_workshop.stats.comparison import compare
from jitter_workshop.stats.scale import nice_ns

WITH_CURE = "with the cure"

_PLAIN_TO_SEE = 1.25
"""The least factor from the quiet run's time in stalls to the time in stalls with the noise. Below this factor the
noise cannot be recognised, because two quiet runs may differ by as much."""
_SOME = 0.25
_GONE, _LESS = 0.1, 0.6
_BY_ONE_RUN = "There is only one run of each kind here: other runs may differ."


def request(walk: ChapterWalk, cpu: int | None = None) -> MeasureRequest:
    """Return the request for one more run with the noise and the cure. ``cpu``: the CPU for the measured thread if the
    cure is to move it, else None. Raise the errors of ``ChapterMeasuring.request``."""
    return dataclasses.replace(walk.measuring.request("again"), label=WITH_CURE, cpu=cpu)


def other_cpus(allowed: CpuSet, beside: Run | None) -> tuple[int, ...]:
    """Return the CPUs to which the measured thread can move. The thread's CPU in the run ``beside`` is left out.
    ``beside``: the run with the noise, or None."""
    used = beside.placement.sampler if beside is not None else None
    return tuple(cpu for cpu in allowed if cpu != used)


def gone(seen: Weighed) -> bool:
    """Return True if the cure reduced the time of the noise to a tenth or less."""
    return seen.beside_ns > 0 and seen.now_ns <= _GONE * seen.beside_ns


def weighed(took: Sequence[float | None]) -> Weighed | None:
    """Return the times of the noise without and with the cure, in ns per second. Return None if one of the times is not
    known."""
    known = [ns for ns in took if ns is not None]
    return Weighed(*known) if len(known) == 2 else None


def view(walk: ChapterWalk) -> CureView | None:
    """Return the measures of the three runs, and sentences on the cure. Return None without three runs that can be
    compared."""
    quiet, beside, treated = (walk.runs.run_in(slot) for slot in ("measure", "again", TREATED))
    if quiet is None or beside is None or treated is None:
        return None
    first, second = compare(quiet, beside), compare(quiet, treated)
    if not first.comparable or not second.comparable:
        return None
    after = {row.measure: row.b for row in second.rows}
    rows = tuple((row.measure, row.a, row.b, after[row.measure]) for row in first.rows if row.measure in after)
    reports = [walk.runs.seen(run).report for run in (beside, treated)]
    known = [report for report in reports if report is not None]
    other = came_in(*known) if len(known) == len(reports) else None
    seen = walk.progress.weighed.get(treated.id)
    told = _in_words(quiet, beside, treated, seen, other)
    if seen is None or seen.beside_ns <= 0:
        return CureView(rows, told)
    return CureView(rows, told, _verdict(seen), gone(seen))


def came_in(beside: EvidenceReport, treated: EvidenceReport) -> CauseTime | None:
    """Return the cause that took much more (``known_reason.much_more``) in the run with the cure than in the run beside
    the noise, with its times in both. It hides how much of the time the cure took away. If there are several, return
    the one that grew most; None if there is none."""
    both = [{(one.kind, one.name): one for one in of_trace(report, most=None).suspects} for report in (beside, treated)]
    seconds = [max(report.measured_ns, 1) / 1e9 for report in (beside, treated)]
    found = []
    for key, one in both[1].items():
        before = both[0].get(key)
        ns = ((before.total_ns or 0) if before is not None else 0) / seconds[0], (one.total_ns or 0) / seconds[1]
        found.append(CauseTime(one.label, ns))
    whole = 0.0, sum(one.ns[1] for one in found)
    more = (one for one in found if much_more(one, 1, whole))
    return max(more, key=lambda one: one.ns[1] - one.ns[0], default=None)


def _in_words(quiet: Run, beside: Run, treated: Run, seen: Weighed | None, other: CauseTime | None) -> str:
    before, during, after = (run.stalls.stolen_ns_per_second for run in (quiet, beside, treated))
    elsewhere = treated.placement.sampler != beside.placement.sampler
    where = (
        f" The sampler's CPU {treated.placement.sampler} may be quieter or busier for reasons other than the cure."
        if elsewhere
        else ""
    )
    said = (
        f"The time in stalls per second is {nice_ns(after)} now. It was {nice_ns(before)} without the noise and "
        f"{nice_ns(during)} with the noise."
    )
    if other is not None:
        then, now = map(nice_ns, other.ns)
        said += f" Another cause came in: {other.label}, {then} → {now} a second."
    if seen is not None and seen.beside_ns > 0:
        return f"{_verdict(seen)} {said}{where}"
    if lacking := _untraced(quiet, beside, treated):
        return f"{said} {lacking} These runs do not show whether the cure helped.{where}"
    if during < before * _PLAIN_TO_SEE or during <= before:
        return f"{said} The noise took hardly any time, so these runs do not show whether the cure helped.{where}"
    share = (during - after) / (during - before)
    if share >= _SOME:
        return f"{said} {100 * min(share, 1.0):.0f} % of the noise's time is gone. {_BY_ONE_RUN}{where}"
    return (
        f"{said} The time in stalls is hardly lower than with the noise: the cure did not help, or other tasks began. "
        f"{_BY_ONE_RUN}{where}"
    )


def _untraced(*runs: Run) -> str:
    """Return a sentence that names the runs without a trace.

    Return "" if all runs have a trace, or if none has. Tracing makes a run slower. So a run with a trace cannot be
    compared with a run without one.
    """
    without = [run for run in runs if run.counters is not None]
    if not without or len(without) == len(runs):
        return ""
    names = " and ".join(f"'{clean(run.label, ID)}'" for run in without)
    why = clean(without[-1].counters.why_no_trace, REASON) if without[-1].counters is not None else ""
    return f"No trace was made of {names} ({why}). Tracing itself takes time."


def _verdict(seen: Weighed) -> str:
    """Return a sentence that says whether the cure helped, with the times that the noise took in the traces."""
    in_part = "The cure helped in part" if seen.now_ns <= _LESS * seen.beside_ns else "The cure did not help"
    took = f"the noise took {nice_ns(seen.beside_ns)} a second before the cure and {nice_ns(seen.now_ns)} now"
    return f"{'The cure helped' if gone(seen) else in_part}: in the traces {took}."
