"""Say whether other tasks ran on the measured CPU in the run after a chapter's change, and which.

Another task can run there only after the kernel has preempted the measured thread, and the kernel counts this. A trace
has the names. Kernel threads that are bound to the CPU are told apart: no cpuset moves them
(Documentation/admin-guide/cgroup-v1/cpusets.rst, …/kernel-per-CPU-kthreads.rst).
"""

from __future__ import annotations

from collections import Counter

from jitter_workshop.flow.chapters.levers import is_bound, is_unbound_worker, reach_of_course
from jitter_workshop.flow.chapters.runs import LEFT
from jitter_workshop.flow.chapters.suspects import suspect
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.model.course import Chapter, Course
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.evidence import EvidenceReport, InterferingTask
from jitter_workshop.model.text import ID, MOST_ENTRIES, WORD, clean, many
from jitter_workshop.report.diagnosis_words import label
from jitter_workshop.stats.figures import KnownRun, preempted_in
from jitter_workshop.stats.scale import nice_ns

NEXT = "Next: v (causes)"
"""The words by which a verdict names the key that shows the causes."""


def said_of_proof(walk: ChapterWalk, course: Course) -> str:
    """Return the sentences on a chapter's second run: whether it is the proof that the lesson asks for by the word
    LEFT. Return "" if the lesson does not ask, if there is no such run of this host, or if it has no count of
    preemptions."""
    run = walk.runs.run_in("again")
    if LEFT not in walk.chapter.evidence or walk.host.rehearsed or run is None:
        return ""
    return proof_told(walk.runs.seen(run), walk.chapter, course)


def proof_told(seen: KnownRun, chapter: Chapter, course: Course) -> str:
    """Return the one verdict of :func:`said_of_proof` on a run: no other task ran, only bound kernel threads ran, only
    kernel threads ran, or which other task ran longest. A verdict that leaves a question open says what to look at
    next."""
    counted = [one.of(seen) for one in preempted_in(seen.run)]
    rates = [rate for rate in counted if rate is not None]
    if not rates:
        return ""
    times, took = round(sum(rates) * seen.run.rated_s), nice_ns(round(seen.run.rated_s * 1e9))
    if not times and None in counted:
        return ""
    if not times:
        return f"No other task ran on this CPU in these {took}: the thread was never preempted."
    report = seen.report
    ran = _tasks(report) if report is not None else []
    if report is None or not ran:
        return f"Other tasks ran on this CPU in these {took}: {many(times, 'preemption')}. {NEXT}."
    movable = [one for one in ran if not is_bound(one.name)]
    others = [one for one in movable if not is_unbound_worker(one.name)]
    cpu = f"CPU {CpuSet.of(one.cpu for one in ran)}"
    if others:
        longest, besides = _longest(others, movable, "other task", cpu)
        return (
            f"Not isolated: {label(longest.kind, longest.name)} {besides}.{_bound(ran)} "
            f"{NEXT}{_chapter_after(longest, chapter, course)}."
        )
    shown = sum(one.count for one in ran)
    whole = not (report.lost_events or report.unbalanced) and shown >= times
    part = "" if whole else f"The trace shows {shown:,} of {many(times, 'preemption')}: "
    if not whole and shown >= times:
        part = "The trace lost events. It shows "
    if movable:
        return _only_workers(movable, cpu, part, _bound(ran), (chapter, course))
    lead = f"{part}no other task on {cpu}" if part else f"No other task ran on {cpu} in these {took}"
    told = f"{lead} except bound kernel threads, which isolation cannot move: {_names(ran)}."
    work = max(_of_kind(report, "workqueue"), key=lambda one: one.worst_ns, default=None)
    after = _chapter_after(work, chapter, course) if work is not None else ""
    return f"{told} {NEXT}{after}." if after else told


def _bound(ran: list[InterferingTask]) -> str:
    """Return a sentence on how often bound kernel threads ran, which isolation cannot move; "" if none did."""
    times = sum(one.count for one in ran if is_bound(one.name))
    return f" Kernel threads bound to this CPU ran {_often(times)}." if times else ""


def _only_workers(workers: list[InterferingTask], cpu: str, part: str, bound: str, of: tuple[Chapter, Course]) -> str:
    """Return the verdict if beside bound kernel threads only kernel workers ran that are not bound. ``part``: the words
    on a trace that does not show each preemption; "" if it does. ``bound``: the sentence on bound kernel threads.
    ``of``: the chapter and its course."""
    longest, besides = _longest(workers, workers, "other worker", cpu)
    lead = f"{part}only kernel work on {cpu}" if part else "Isolated, except from kernel work"
    title = _treating(longest, *of)
    after = f"The chapter '{title}' treats it" if title else NEXT
    return f"{lead}: {clean(longest.name, WORD)} {besides}.{bound} {after}."


def _chapter_after(one: InterferingTask, chapter: Chapter, course: Course) -> str:
    """Return ``, then chapter 'TITLE'`` for the other chapter that treats a task or work item; "" for none."""
    title = _treating(one, chapter, course)
    return f", then chapter '{title}'" if title else ""


def _treating(one: InterferingTask, chapter: Chapter, course: Course) -> str:
    """Return the title of the other chapter that treats a task or work item; "" for none."""
    _, title = reach_of_course(suspect(one.kind, one.name, one.count, one.total_ns), chapter, course)
    return clean(title, ID) if title else ""


def _longest(
    among: list[InterferingTask], ran: list[InterferingTask], called: str, cpu: str
) -> tuple[InterferingTask, str]:
    """Return the task that ran longest at once, and words on how often, where and how long, and on how many other names
    ran beside it. ``called``: the word for one of these."""
    longest = max(among, key=lambda one: one.worst_ns)
    others = len({one.name for one in ran} - {longest.name})
    besides = f", and {many(others, called)} did, too" if others else ""
    return longest, f"ran {_often(longest.count)} on {cpu}, at most {nice_ns(longest.worst_ns)}{besides}"


def _often(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def _names(ran: list[InterferingTask]) -> str:
    """Return the names of tasks, the most frequent first, each with the number of times that it ran."""
    times = Counter[str]()
    for one in ran:
        times[clean(one.name, WORD)] += one.count
    ranked = times.most_common()
    told = [f"{name} {_often(count)}" for name, count in ranked[:MOST_ENTRIES]]
    more = sum(count for _, count in ranked[MOST_ENTRIES:])
    return ", ".join([*told, *([f"others {_often(more)}"] if more else [])])


def _tasks(report: EvidenceReport) -> list[InterferingTask]:
    """Return the other tasks that the trace shows on the measured CPUs."""
    return _of_kind(report, "task")


def _of_kind(report: EvidenceReport, kind: str) -> list[InterferingTask]:
    return [one for one in report.residence.visitors if one.kind == kind] if report.residence is not None else []
