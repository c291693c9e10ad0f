"""Summarise the whole course: the runs of its chapters, the applied settings, and what is left to do. Each curve is
only one run, so the summary describes the curves and claims no cause."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from jitter_workshop.errors import HostError
from jitter_workshop.flow.host_ops.host_status import Finding
from jitter_workshop.model.course import SLOTS, Chapter
from jitter_workshop.model.curve import Comparison
from jitter_workshop.model.effect import Effect
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.run import HUNTED, Run
from jitter_workshop.model.session import HuntOutcome
from jitter_workshop.model.walk import PathEntry, RunCurve
from jitter_workshop.stats.comparison import MAX, compare
from jitter_workshop.stats.effect import effect_on, judge_of
from jitter_workshop.stats.omission import clocks_differ

if TYPE_CHECKING:
    from jitter_workshop.flow.chapters.session_context import SessionContext
    from jitter_workshop.flow.chapters.walk import ChapterWalk
    from jitter_workshop.flow.chapters.workshop import Workshop

MEASURES = ("p50", "p99", "p99.9", MAX)

MOST_DRAWN = 6
"""Greatest number of curves in a chart: a reader cannot tell more curves apart."""

Ratios = tuple[float | None, ...]
"""One ratio for each of ``MEASURES``; None where the ratio is not known."""


@dataclass(frozen=True, slots=True)
class Bought:
    """Hold one curve of the summary.

    - ``values``: the curve's values in ns at ``MEASURES``.
    - ``to_before``: ``values`` divided by the values of the nearest earlier curve that was measured in the same way.
    - ``before``: the index of this earlier curve; None if there is none.
    - ``to_first``: ``values`` divided by the values of the first curve.
    - ``unlike``: the reasons why this curve cannot be compared with the first curve; () if it can.
    - ``applied``: the settings that this tool had applied during the run, as ``ID=VALUE``.
    - ``changed``: the effect of the chapter's change, or of a hunt's noise, on the figure by which the chapter is
      judged. None if this curve is not of the chapter's second run, or if one of its two runs lacks the figure.
    - ``twice``: True if the summary has two curves of this chapter.
    """

    chapter_id: str
    chapter: str
    shown: RunCurve
    run: Run
    values: tuple[int | None, ...]
    to_before: Ratios
    to_first: Ratios
    unlike: tuple[str, ...]
    applied: tuple[str, ...]
    before: int | None = None
    changed: Effect | None = None
    twice: bool = False

    @property
    def name(self) -> str:
        """Return the chapter's title. If the summary has two curves of the chapter, the label of the run follows."""
        return f"{self.chapter}: {self.shown.label}" if self.twice else self.chapter


@dataclass(frozen=True, slots=True)
class CourseSummary:
    """Hold the summary of a course.

    - ``steps``: the first curve, then the curve of each chapter's second run, in the order of the course.
    - ``half``: titles of chapters that have a run before their change and no run after it.
    - ``standing``: the settings that this tool has applied and not restored, as ``ID=VALUE``.
    - ``written``: for each write that is in effect, the id of the tunable that made it.
    - ``open_here``: the unfinished chapters that this host can do.
    - ``open_elsewhere``: the unfinished chapters that this host cannot do.
    - ``improvable``: the checks of settings that can be improved; () if the host could not be read.
    - ``unread``: the reason why the host could not be read, or "".
    - ``near``: titles of chapters whose guess was right or near.
    - ``beside``: titles of chapters whose guess was beside the right answer.
    - ``far``: titles of chapters whose guess was neither.
    - ``unjudged``: the number of chapters that ask for a guess and have no judged guess.
    - ``hunts``: the outcomes of all hunts that ended.
    """

    steps: tuple[Bought, ...]
    half: tuple[str, ...]
    standing: tuple[str, ...]
    written: tuple[str, ...]
    open_here: tuple[PathEntry, ...]
    open_elsewhere: tuple[PathEntry, ...]
    improvable: tuple[Finding, ...]
    unread: str
    near: tuple[str, ...]
    far: tuple[str, ...]
    unjudged: int
    done: int
    chapters: int
    recorded: bool
    hunts: tuple[HuntOutcome, ...] = ()
    beside: tuple[str, ...] = ()


def sum_up(workshop: Workshop) -> CourseSummary:
    """Read the host, the session's runs and their curves, and return the summary."""
    path = workshop.path()
    unread = ""
    improvable: tuple[Finding, ...] = ()
    try:
        improvable = workshop.findings().improvable
    except HostError as error:
        unread = error.sentence()
    judged = {entry.chapter_id: entry.guess for entry in path if entry.guess is not None}
    hunting = {chapter.id for chapter in workshop.course.chapters if chapter.hunt}
    asking = [chapter.id for chapter in workshop.course.chapters if chapter.prediction is not None]
    walks = [workshop.walk(chapter.id) for chapter in workshop.course.chapters]
    chosen, half = _chosen(walks)
    of_chapters = {walk.chapter.id: walk for walk in walks}
    steps = (
        dataclasses.replace(step, changed=changed_by_chapter(of_chapters[step.chapter_id], step.run))
        for step in _steps(chosen, workshop.context)
    )
    return CourseSummary(
        steps=tuple(steps),
        half=half,
        standing=tuple(words_of(workshop.context.standing())),
        written=workshop.written(),
        open_here=tuple(e for e in path if e.here and e.in_class and not e.done),
        open_elsewhere=tuple(e for e in path if not e.here and e.in_class and not e.done),
        improvable=improvable,
        unread=unread,
        near=tuple(e.title for e in path if e.guess is True and e.chapter_id not in hunting),
        beside=tuple(e.title for e in path if e.beside),
        far=tuple(e.title for e in path if e.guess is False and not e.beside and e.chapter_id not in hunting),
        unjudged=sum(1 for ident in asking if ident not in judged),
        done=sum(1 for e in path if e.done),
        chapters=len(path),
        recorded=workshop.context.recorded,
        hunts=tuple(outcome for walk in walks if walk.chapter.hunt for outcome in walk.progress.hunts),
    )


def bought_steps(walks: Sequence[ChapterWalk], context: SessionContext) -> tuple[Bought, ...]:
    """Return the curves of the summary without ``changed``, and without reading the host. ``walks``: the sessions of
    all chapters of the course."""
    return _steps(_chosen(walks)[0], context)


def comparable_curves(steps: Sequence[Bought], under: int) -> tuple[int, ...]:
    """Return the indices of at most six curves that a chart draws. All of them can be compared with the first curve.
    They are spread evenly from the first curve to the last one. ``under``: the index of the curve under the cursor;
    this curve is drawn if it can be compared."""
    alike = [number for number, step in enumerate(steps) if not step.unlike]
    if len(alike) <= MOST_DRAWN:
        return tuple(alike)
    picked = [alike[round(i * (len(alike) - 1) / (MOST_DRAWN - 1))] for i in range(MOST_DRAWN)]
    if under in alike and under not in picked:
        nearest = min(range(1, MOST_DRAWN - 1), key=lambda i: abs(picked[i] - under))
        picked[nearest] = under
    return tuple(sorted(picked))


def _steps(chosen: list[tuple[Chapter, Run]], context: SessionContext) -> tuple[Bought, ...]:
    # The runs of the ring are divided by one another, so all of them are told by one clock.
    transit = clocks_differ(run for _, run in chosen)
    found: list[Bought] = []
    for chapter, run in chosen:
        if (shown := context.runs.curve(run, transit=transit)) is not None:
            found.append(_bought(chapter, run, shown, [one.shown.run or one.run for one in found]))
    count = Counter(one.chapter_id for one in found)
    return tuple(dataclasses.replace(one, twice=count[one.chapter_id] > 1) for one in found)


def _chosen(walks: Sequence[ChapterWalk]) -> tuple[list[tuple[Chapter, Run]], tuple[str, ...]]:
    """Return the runs of the summary, and the titles of chapters without a run after their change.

    - The summary begins with the first run, in course order, that was measured with no setting applied. Two kinds of
      run can be this run: a chapter's run before the change, and any run of a chapter that changes nothing.
    - If every run had a setting applied, the summary begins with the first run of the first measured chapter.
    - Each other chapter gives only its second run, because the first run does not have the effect of the change.
    """
    first: list[tuple[Chapter, Run]] = []
    again: list[tuple[Chapter, Run]] = []
    for walk in walks:
        if (run := walk.runs.run_in("measure")) is not None:
            first.append((walk.chapter, run))
        if (run := walk.runs.run_in("again")) is not None:
            again.append((walk.chapter, run))
    bare = [
        (walk.chapter, run)
        for walk in walks
        for slot in SLOTS
        if (slot == "measure" or walk.chapter.changes == "nothing")
        and (run := walk.runs.run_in(slot)) is not None
        and not run.applied
    ]
    base = next(iter(bare or first), None)
    finished = {chapter.id for chapter, _ in again}
    half = tuple(c.title for c, _ in first if c.id not in finished and (base is None or c.id != base[0].id))
    if base is None:
        return again, half
    later = [one for one in again if one[0].id != base[0].id]
    if base in again:
        return [base, *later], half
    # A chapter that changes nothing measures the same thing twice: its second run gets a curve only if no other has.
    if base[0].changes != "nothing" or not later:
        later = again
    return [base, *later], half


def _bought(chapter: Chapter, run: Run, shown: RunCurve, earlier: list[Run]) -> Bought:
    told = shown.run or run
    summary = told.latency
    first = _compared(earlier[0], told) if earlier else None
    compared = ((number, _compared(earlier[number], told)) for number in reversed(range(len(earlier))))
    before, nearest = next(((n, c) for n, c in compared if c is not None and c.comparable), (None, None))
    return Bought(
        chapter_id=chapter.id,
        chapter=chapter.title,
        shown=shown,
        run=run,
        values=(*(told.percentile(p) for p in ("50", "99", "99.9")), summary.max if summary else None),
        to_before=_ratios(nearest),
        to_first=_ratios(first),
        unlike=first.differences if first else (),
        applied=tuple(words_of(run.applied)),
        before=before,
    )


def changed_by_chapter(walk: ChapterWalk, run: Run) -> Effect | None:
    """Return the effect between a chapter's two runs on the chapter's own figure, else on the figure by which the
    runs are judged. ``run``: the run whose curve is shown. Return None if this is not the chapter's second run, if
    the second run repeats the first one, or if the judgement of the two runs does not call them better or worse."""
    both, view = walk.runs.before_and_after(), walk.comparison.view()
    if both is None or both[1].run.id != run.id or walk.runs.repeats:
        return None
    shows, judged = walk.runs.shows, view.judgement if view is not None else None
    if shows is None and judged is not None and judged.relation == "changed" and not (judged.sure or judged.by_plan):
        return None
    if judged is not None and judged.reason is not None and judged.of_chapter is None:
        return None
    name = shows.figure if shows is not None else judge_of(walk.chapter.judged_percentile, *both)
    return effect_on(name, *both)


def _compared(a: Run, b: Run) -> Comparison | None:
    """Return the comparison of run ``b`` with run ``a``.

    Return None if a run has no histogram. If the runs had different noises, or if a run had a hidden noise, the
    comparison has no rows and is marked as not comparable. In rows, the effect of the noise would look like an effect
    of the course.
    """
    name = a.latency_histogram
    if name not in a.histograms or b.latency_histogram not in b.histograms:
        return None
    found = compare(a, b, name)
    if a.noise == b.noise and not any(HUNTED in run.notes for run in (a, b)):
        return found
    loads = " against ".join(_load(run) for run in (a, b))
    return dataclasses.replace(found, comparable=False, differences=(*found.differences, f"load: {loads}"), rows=())


def _load(run: Run) -> str:
    return "a hidden noise" if HUNTED in run.notes else f"the noise {run.noise}" if run.noise else "no noise"


def _ratios(comparison: Comparison | None) -> Ratios:
    known = {row.measure: row.ratio for row in comparison.rows} if comparison is not None else {}
    return tuple(known.get(measure) for measure in MEASURES)


def words_of(applied: Iterable[dict[str, str]]) -> Iterator[str]:
    """Yield each setting as ``ID=VALUE``, or as ``ID`` if it has no value. A setting without a value has the value that
    the tunable's check calls good."""
    for one in applied:
        ident = one.get("id", "")
        yield f"{ident}={one['value']}" if one.get("value") else ident
