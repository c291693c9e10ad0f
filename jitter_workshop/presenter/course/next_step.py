"""Say what a learner can do about the longest stall that a chapter's change has left."""

from __future__ import annotations

from jitter_workshop.flow.chapters.longest_stall import (
    is_named,
    largest_cause,
    longest_stalls,
    times_its_usual,
    took_half,
)
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.model.course import Chapter, Course, StepName
from jitter_workshop.model.evidence import EvidenceReport
from jitter_workshop.model.run import INTENDED, Run
from jitter_workshop.model.text import ID, clean
from jitter_workshop.presenter.course.diagnosis import means
from jitter_workshop.presenter.runs.longest_stall import STOPPED_INSIDE
from jitter_workshop.stats.scale import nice_ns, times_told

LEAST_NS = 100_000
"""The shortest stall that asks for another step, in ns. Shorter ones are mostly ticks and interrupts."""
_CLEARLY = 1.1
"""The factor from which on a run's largest latency needs a reason beside its longest stall."""
QUEUED = "max is longer: a message can wait for several stalls"


def page(walk: ChapterWalk, step: StepName, course: Course) -> str:
    """Return the lesson's page of a step in Markdown, with the next step for this host at its end; "" without a
    page."""
    text = walk.page(step)
    return "\n\n".join(filter(None, (text, next_step(walk, step, course)))) if text else ""


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
    name: if the longest stall of all has none, no setting can be named for it. Return "" if no such stall took at least
    LEAST_NS. ``largest_ns``: the run's largest latency; 0 if a value is never longer than its stall."""
    stalls = longest_stalls(report)
    for stall in stalls:
        cause = largest_cause(stall, report)
        if cause is not None and is_named(cause) and took_half(cause, stall):
            break
    else:
        return ""
    if stall.duration_ns < LEAST_NS:
        return ""
    named = cause.label.replace("`", "'")
    which = "the longest stall of the second run"
    if stall is not stalls[0]:
        unknown = f"{which}, {nice_ns(stalls[0].duration_ns)}, has no known main cause"
        which = f"{unknown}. The longest one with a known cause"
    longer = stall is stalls[0] and largest_ns > _CLEARLY * stall.duration_ns
    queued = f" ({QUEUED})" if longer else ""
    took = f"{which} took {nice_ns(stall.duration_ns)}{queued}, most of it `{named}`"
    times = times_its_usual(cause, report)
    if times is None:
        return f"**What is left:** {took}. {means(cause, chapter, course, named=True)}"
    below = next((one for one in course.chapters if "steal" in one.treats), None)
    where = f" The chapter '{clean(below.title, ID)}' shows how to find that." if below is not None else ""
    return f"**What is left:** {took}, {times_told(times)} times as long as usual: {STOPPED_INSIDE}.{where}"
