"""Say whether the run after a chapter's change proves that no other task ran on the measured CPU.

Another task can run there only after the kernel has preempted the measured thread, and the kernel counts this.
"""

from __future__ import annotations

from jitter_workshop.flow.chapters.levers import reach_of_course
from jitter_workshop.flow.chapters.runs import LEFT
from jitter_workshop.flow.chapters.suspects import suspect
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.model.course import Chapter, Course
from jitter_workshop.model.evidence import EvidenceReport, InterferingTask
from jitter_workshop.model.text import ID, clean, many
from jitter_workshop.report.diagnosis_words import label
from jitter_workshop.stats.figures import KnownRun, preempted_in
from jitter_workshop.stats.scale import nice_ns

_KINDS = ("task", "workqueue")
_NEXT = "Next: v (causes)"


def said_of_proof(walk: ChapterWalk, course: Course) -> str:
    """Return the sentences on a chapter's second run: whether it is the proof that the lesson asks for by the word
    LEFT. Return "" if the lesson does not ask, if there is no such run of this host, or if it has no count of
    preemptions."""
    run = walk.runs.run_in("again")
    if LEFT not in walk.chapter.evidence or walk.host.rehearsed or run is None:
        return ""
    return proof_told(walk.runs.seen(run), walk.chapter, course)


def proof_told(seen: KnownRun, chapter: Chapter, course: Course) -> str:
    """Return the sentences of :func:`said_of_proof` for one run. If the proof fails, they name the task or work item
    with the longest time on these CPUs, and what to look at next."""
    counted = [one.of(seen) for one in preempted_in(seen.run)]
    rates = [rate for rate in counted if rate is not None]
    if not rates:
        return ""
    times, took = round(sum(rates) * seen.run.rated_s), nice_ns(round(seen.run.rated_s * 1e9))
    if not times:
        return f"These {took} prove that no other task ran on this CPU: the thread was never preempted."
    failed = f"These {took} do not prove isolation: {many(times, 'preemption')}"
    longest = _longest(seen.report) if seen.report is not None else None
    if longest is None:
        return f"{failed}. {_NEXT}."
    _, title = reach_of_course(suspect(longest.kind, longest.name, longest.count, longest.total_ns), chapter, course)
    after = f", then chapter '{clean(title, ID)}'" if title else ""
    return (
        f"{failed}, the longest by {label(longest.kind, longest.name)} ({nice_ns(longest.worst_ns)}). {_NEXT}{after}."
    )


def _longest(report: EvidenceReport) -> InterferingTask | None:
    """Return the other task or work item that had a measured CPU longest at one time; None if the trace shows none."""
    found = [one for one in report.residence.visitors if one.kind in _KINDS] if report.residence is not None else []
    return max(found, key=lambda one: one.worst_ns, default=None)
