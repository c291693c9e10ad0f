"""Say in a lesson's page what the learner's own runs show: what can be done about the longest stall that a chapter's
change has left, and what took the time."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.flow.chapters.cause_times import times_of_causes
from jitter_workshop.flow.chapters.longest_stall import (
    is_named,
    largest_cause,
    longest_stalls,
    times_its_usual,
    took_half,
)
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.model.course import Chapter, Course, StepName
from jitter_workshop.model.effect import CauseTime
from jitter_workshop.model.evidence import NOTHING, EvidenceReport, ExplainedStall
from jitter_workshop.model.run import INTENDED, Run
from jitter_workshop.model.text import ID, LABEL, capital, clean
from jitter_workshop.presenter.course.diagnosis import means
from jitter_workshop.presenter.runs.effect_table import OWN_NOISE, of_a_second
from jitter_workshop.presenter.runs.longest_stall import STOPPED_INSIDE
from jitter_workshop.presenter.runs.result_table import added_up
from jitter_workshop.presenter.text.pages import SOURCE
from jitter_workshop.stats.scale import nice_ns, times_told

LEAST_NS = 100_000
"""The shortest stall that asks for another step, in ns. Shorter ones are mostly ticks and interrupts."""
_CLEARLY = 1.1
"""The factor from which on a run's largest latency needs a reason beside its longest stall."""
QUEUED = "max is longer: a message can wait for several stalls"


def page(walk: ChapterWalk, step: StepName, course: Course) -> str:
    """Return the lesson's page of a step in Markdown, with the sentence on the learner's own runs at its beginning and
    the next step for this host at its end; "" without a page."""
    text = walk.page(step)
    return in_order(own_runs(walk, step), text, next_step(walk, step, course)) if text else ""


def in_order(runs: str, text: str, left: str) -> str:
    """Return a page in Markdown: the sentence on the learner's ``runs``, the lesson's ``text``, and what is ``left`` to
    do. The sources of the text stay last. Each part but ``text`` may be ""."""
    lesson, found, sources = text.rpartition(f"\n\n{SOURCE}")
    lesson, sources = (lesson, f"{SOURCE}{sources}") if found else (text, "")
    return "\n\n".join(filter(None, (runs, lesson, left, sources)))


def own_runs(walk: ChapterWalk, step: StepName) -> str:
    """Return a sentence in Markdown on the cause that took the most time in each of the learner's two runs. Return ""
    at other steps than ``explain``, and if the runs have no traces that are read already."""
    both = walk.runs.before_and_after()
    if step != "explain" or walk.host.rehearsed or walk.hunts or both is None:
        return ""
    return most_time(times_of_causes(*both, walk.chapter), added_up(both))


def most_time(causes: Sequence[CauseTime], threads: int = 1) -> str:
    """Return the sentence of :func:`own_runs`; "" if a run lost no time, or if its largest cause is not known.

    As in the step ``diagnose``, only a cause with an event can be the largest one. If more time has no event, a second
    sentence tells it. ``threads``: the number of measured threads whose times are added up."""
    seen = [one for one in causes if one.named]
    if not seen:
        return ""
    most = [max(seen, key=lambda one: one.ns[run]) for run in (0, 1)]
    empty = next((one for one in causes if not one.named and any(one.ns[n] > most[n].ns[n] for n in (0, 1))), None)
    of = " of the causes with an event" if empty is not None else ""
    more = ""
    if empty is not None and not any(empty.at_most):
        took_more = " and ".join(map(of_a_second, empty.ns))
        more = f" {capital(clean(empty.label, LABEL))}: {took_more} a second."
    if any(one.ns[run] < 1 or one.at_most[run] for run, one in enumerate(most)):
        return ""
    labels = [one.label.replace("`", "'") for one in most]
    names = [
        f"`{label}` ({OWN_NOISE})" if one.own_load else f"`{label}`" for label, one in zip(labels, most, strict=True)
    ]
    took = [of_a_second(one.ns[run]) for run, one in enumerate(most)]
    added = f" ({threads} threads added up)" if threads > 1 else ""
    if most[0] is most[1]:
        return (
            f"**Your runs:** in both, {names[0]} took the most time{of}, {took[0]} and {took[1]} a second{added}.{more}"
        )
    return (
        f"**Your runs:** {names[0]} took the most time{of} in the first, {took[0]} a second; {names[1]} in the second, "
        f"{took[1]}{added}.{more}"
    )


def next_step(walk: ChapterWalk, step: StepName, course: Course) -> str:
    """Return a paragraph in Markdown on the longest stall of the run after the change: what took most of it, and where
    the course treats this cause. Return "" at other steps than ``compare``, and if the run has no trace that is read
    already."""
    if step != "compare" or walk.host.rehearsed or walk.hunts or walk.chapter.changes == "nothing":
        return ""
    known = walk.runs.known("again")
    if known is None or known.timeless or known.report is None:
        return ""
    return what_is_left(known.report, walk.chapter, course, _largest_ns(known.run))


def _largest_ns(run: Run) -> int:
    """Return the largest latency that a run of the ring told by one of its clocks, in ns; 0 for other workloads."""
    found = (run.histograms.get(name) for name in (run.main_histogram, INTENDED))
    return max((one.max or 0 for one in found if one is not None), default=0) if run.workload == "ring" else 0


def what_is_left(report: EvidenceReport, chapter: Chapter, course: Course, largest_ns: int = 0) -> str:
    """Return the paragraph of :func:`next_step` for a run's trace. It is about the longest stall whose cause has a
    name: if the longest stall of all has none, no setting can be named for it. If that one has no event at all, the
    paragraph names the chapter of :func:`_signs_below`. Return "" if neither stall took at least LEAST_NS.
    ``largest_ns``: the run's largest latency; 0 if a value is never longer than its stall."""
    stalls = longest_stalls(report)
    signs = _signs_below(stalls, chapter, course)
    for stall in stalls:
        cause = largest_cause(stall, report)
        if cause is not None and is_named(cause) and took_half(cause, stall):
            break
    else:
        cause = None
    if cause is None or stall.duration_ns < LEAST_NS:
        took = f"the longest stall of the second run took {nice_ns(stalls[0].duration_ns)}" if signs else ""
        return f"**What is left:** {took}, most of it without an event of this kernel: {signs}." if signs else ""
    named = cause.label.replace("`", "'")
    which = "the longest stall of the second run"
    if stall is not stalls[0]:
        unknown = f"{which}, {nice_ns(stalls[0].duration_ns)}, has no known main cause{f': {signs}' if signs else ''}"
        which = f"{unknown}. The longest one with a known cause"
    longer = stall is stalls[0] and largest_ns > _CLEARLY * stall.duration_ns
    queued = f" ({QUEUED})" if longer else ""
    took = f"{which} took {nice_ns(stall.duration_ns)}{queued}, most of it `{named}`"
    times = times_its_usual(cause, report)
    if times is None:
        return f"**What is left:** {took}. {means(cause, chapter, course, named=True)}"
    below = _below(course)
    where = f" The chapter '{clean(below.title, ID)}' shows how to find that." if below is not None else ""
    return f"**What is left:** {took}, {times_told(times)} times as long as usual: {STOPPED_INSIDE}.{where}"


def _below(course: Course) -> Chapter | None:
    """Return the chapter about what stops a CPU from below the kernel; None if the course has none."""
    return next((one for one in course.chapters if "steal" in one.treats), None)


def _signs_below(stalls: Sequence[ExplainedStall], chapter: Chapter, course: Course) -> str:
    """Return the clause that names the chapter of :func:`_below`, if the longest stall took at least LEAST_NS, at
    least half of it without an event of this kernel; else "". ``stalls``: the longest stalls, the longest first."""
    below, longest = _below(course), next(iter(stalls), None)
    if below is None or below is chapter or longest is None or longest.duration_ns < LEAST_NS:
        return ""
    empty = sum(part.ns for part in longest.parts if (part.kind, part.name) == ("no_event", NOTHING))
    if 2 * empty < longest.duration_ns:
        return ""
    return f"the chapter '{clean(below.title, ID)}' shows the signs of a hypervisor and of firmware"
