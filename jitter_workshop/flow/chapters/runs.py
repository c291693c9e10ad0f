"""Read the runs of a chapter, with their figures, curves and evidence.

The runs are the learner's own ones. If the chapter is taught on a recording, they are the runs of another machine.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping

from jitter_workshop.course.checks import chapter_marks
from jitter_workshop.errors import SessionError
from jitter_workshop.flow.attribution import ExplainProgress, explain_run, unheard, used_cpus, with_cpus
from jitter_workshop.flow.chapters.chapter_host import ChapterHost
from jitter_workshop.flow.chapters.diagnosis import STEP
from jitter_workshop.flow.chapters.path import current_step
from jitter_workshop.flow.chapters.recorded import recorded_in
from jitter_workshop.flow.chapters.session_context import SessionContext
from jitter_workshop.flow.measuring.curves import ROLES_OF_SLOTS, label_with_quantity, told_apart_by_clock, with_role
from jitter_workshop.model.course import CONTROL, SLOTS, TREATED, Chapter, Shows, StepName
from jitter_workshop.model.run import Run
from jitter_workshop.model.session import ChapterProgress
from jitter_workshop.model.walk import Explanation, RunCurve
from jitter_workshop.stats.comparison import differences
from jitter_workshop.stats.figures import TRANSIT, KnownRun, by_due_time, counts_alone, figure_with_id, shows_on
from jitter_workshop.stats.omission import clocks_differ

TRACED = ", traced"
"""The end of a run's label if the run repeats a chapter's measurement with a trace."""

LEFT = "left"
"""The word of a lesson's ``evidence`` that asks whether anything except the measured thread ran on its CPU."""

NOTHING_COUNTED = "This chapter names no count that could replace the times."


class ChapterRuns:
    """Hold the runs of one chapter. Nothing is saved here: ``ChapterWalk.record`` stores a run in a slot."""

    def __init__(self, chapter: Chapter, context: SessionContext, host: ChapterHost) -> None:
        self._chapter, self._context, self._host = chapter, context, host

    @property
    def progress(self) -> ChapterProgress:
        """Return the saved progress of the chapter."""
        return self._context.progress(self._chapter.id)

    @property
    def emulated(self) -> bool:
        """Return True if the chapter's runs are made on an emulated machine, or were recorded on one."""
        if self._host.rehearsed:
            return (entry := self._host.recorded) is not None and entry.emulated
        return bool(self._context.host.emulated)

    @property
    def shows(self) -> Shows | None:
        """Return the figure by which this chapter's runs are compared here (``stats.figures.shows_on``)."""
        return shows_on(self._chapter.shows, self.emulated)

    @property
    def guessed_figures(self) -> tuple[str, ...]:
        """Return the ids of the figures by which the learner reads both runs if the chapter names none to compare them
        by: the figure of the guess and, if this is the spread of the core's frequency, the frequency. Return () for
        a latency, in all other chapters, and on an emulated machine if the figures are times."""
        task = self._chapter.prediction
        figure = task.figure if task is not None and self._chapter.shows is None else None
        if figure is None or figure[0].isdigit() or figure == "max":
            return ()
        every = (figure, "core-hz") if figure == "core-hz-spread" else (figure,)
        return tuple(name for name in every if not self.emulated or counts_alone(figure_with_id(name)))

    @property
    def from_due_time(self) -> bool:
        """Return True if the chapter sets latency from the due time beside transit, and judges its runs by it."""
        return by_due_time(self.shows)

    @property
    def unshown(self) -> str:
        """Return the reason why an emulated machine cannot show this chapter's change, as a sentence, or ""."""
        shows = self._chapter.shows
        if not self.emulated or shows is None or self.shows is not None:
            return ""
        return f"This machine is emulated, so its times mean nothing. {shows.uncounted or NOTHING_COUNTED}"

    def run_in(self, slot: str | None) -> Run | None:
        """Return the run of a slot; None if the slot is empty or None."""
        if slot is None:
            return None
        ident = self.progress.runs.get(slot)
        return self._context.runs.run(ident) if ident else None

    def seen(self, run: Run) -> KnownRun:
        """Return a run together with the stored report on its trace, if there is one."""
        return KnownRun(run, self._context.runs.known_causes(run))

    def known(self, slot: str) -> KnownRun | None:
        """Return the run in a slot with its figures; None if there is none. In a rehearsal, this is the recorded run,
        otherwise the learner's run."""
        if self._host.rehearsed:
            return None if (entry := self._host.recorded) is None else entry.known(slot)
        run = self.run_in(slot)
        return None if run is None else self.seen(run)

    def pair(self, runs: Mapping[str, str]) -> tuple[Run, Run] | None:
        """Return the runs of ``measure`` and ``again``; None if one is missing."""
        first, second = (self._context.runs.run(runs.get(slot, "")) for slot in SLOTS)
        return None if first is None or second is None else (first, second)

    def before_and_after(self) -> tuple[KnownRun, KnownRun] | None:
        """Return the run before the change and the run after it, with their figures. Return None if a run is missing,
        or if the runs cannot be compared."""
        first, second = self.known("measure"), self.known("again")
        if first is None or second is None or (first.recorded is None and differences(first.run, second.run)):
            return None
        return first, second

    @property
    def control(self) -> Run | None:
        """Return the control run (``Company.control``); None in a chapter without one, and while the chapter shows its
        runs without the noise."""
        company, progress = self._chapter.company, self.progress
        if company is None or not company.control or progress.noise is not None:
            return None
        return self.other_run(SLOTS[0])

    def other_run(self, slot: str) -> Run | None:
        """Return the run of a slot that was made with the other choice of noise; None if there is none."""
        return self._context.runs.run(self.progress.other_runs.get(slot, ""))

    @property
    def repeats(self) -> bool:
        """Return True if the second run repeats the first one without a change. The two runs then differ only by
        chance.
        """
        alike = {dataclasses.replace(one, slot="measure", label="") for one in self._chapter.measurements}
        return self._chapter.changes == "nothing" and len(alike) == 1

    def curves(self) -> tuple[RunCurve, ...]:
        """Return the curves of this chapter's runs, newest last. Further curves that the lesson asks for come after
        them."""
        runs = {slot: run for slot in (*SLOTS, TREATED) if (run := self.run_in(slot)) is not None}
        own = dict(sorted(runs.items(), key=lambda one: one[1].started_at))
        control = self.control
        # The chapter's own runs are the newest, whenever the control run was made.
        company = self._chapter.company
        if control is None or not own or company is None:
            return self.curves_of(own)
        # A run made without the noise by the learner has the first run's label.
        return self.curves_of({CONTROL: dataclasses.replace(control, label=company.control), **own})

    def curves_of(self, runs: Mapping[str, Run]) -> tuple[RunCurve, ...]:
        """Return the curves of ``runs`` of this chapter, by slot and in this order. Further curves that the lesson asks
        for come after them. Each curve has its role, whatever its place."""
        first = runs.get("measure") if self.by_several_clocks else None
        transit_alone = first is not None or clocks_differ(runs.values())
        read = {slot: self._context.runs.curve(run, transit=transit_alone) for slot, run in runs.items()}
        found = {slot: shown for slot, shown in read.items() if shown is not None}
        own = {slot: with_role(shown, ROLES_OF_SLOTS.get(slot)) for slot, shown in found.items()}
        if first is None:
            return told_apart_by_clock(tuple(own.values()))
        transit = {slot: label_with_quantity(shown, TRANSIT) for slot, shown in own.items()}
        # Of a later run only the latency from the due time is compared.
        later = {s: self._context.runs.further_curves(run)[:1] or (transit[s],) for s, run in runs.items()}
        due = [with_role(curve, ROLES_OF_SLOTS.get(s)) for s in later if s != "measure" for curve in later[s]]
        return (*(c for s, c in transit.items() if s == "measure"), *self._context.runs.further_curves(first), *due)

    @property
    def by_several_clocks(self) -> bool:
        """Return True if the first run has several curves. Latencies of one curve count from when a message was sent,
        those of another curve from when it was due.
        """
        return "omission" in self._chapter.evidence

    def recorded_curves(self, step: StepName) -> tuple[tuple[RunCurve, ...], str]:
        """Return the curves that a step shows from runs on another machine, and their source. Return ((), "") if there
        are none, or if the chapter is not taught on a recording."""
        if not self._host.rehearsed:
            return (), ""
        return recorded_in(step, self._chapter, self._context.course_dir, self._context.course_id)

    def counted_elsewhere(self, step: StepName) -> str:
        """Return the date and the emulated machine of the recorded counts that a step shows. Return "" if it shows
        none."""
        slot = "measure" if step == "compare" else step
        entry = self._host.recorded if self._host.rehearsed else None
        return entry.source if entry is not None and entry.emulated and slot in entry.runs else ""

    def to_read(self, *runs: Run) -> tuple[Run, ...]:
        """Return the runs whose traces the chapter needs and has not read yet. The chapter's own runs and ``runs`` are
        considered. Return () if the chapter needs no traces."""
        task, shows = self._chapter.prediction, self.shows
        names = [a.figure for a in task.answers] if task is not None else []
        names += [task.figure] if task is not None else []
        names += [shows.figure] if shows is not None else []
        wanted = any(name is not None and figure_with_id(name).traced for name in names)
        if not (wanted or STEP in self._chapter.steps or LEFT in self._chapter.evidence):
            return ()
        every = (*filter(None, map(self.run_in, SLOTS)), *(self.pair(self.progress.other_runs) or ()), *runs)
        return tuple(
            run for run in every if self._context.runs.traced(run) and self._context.runs.known_causes(run) is None
        )

    def read_figures(self, *runs: Run, progress: ExplainProgress = unheard) -> None:
        """Read the traces that :meth:`to_read` returns. A long trace takes some seconds. A damaged trace counts as
        missing. Raise the errors of ``progress``."""
        for run in self.to_read(*runs):
            with contextlib.suppress(SessionError):
                self._context.runs.causes(run, progress)

    @property
    def unread(self) -> bool:
        """Return True if a trace that the chapter needs was not read yet. This is the case after a new start of the
        workshop.
        """
        return bool(self.to_read())

    def traced_run(self) -> Run | None:
        """Return the run whose causes the chapter shows; None if there is no such run.

        Without a hunt, this is the chapter's newest traced run. In a hunt, it is the run of the current step, even if
        this run has no trace. If the current step has no run, return the first of these runs that exists:

        - the run with the cure;
        - the run with the noise;
        - the quiet run.
        """
        if self._chapter.hunt and not self._host.rehearsed:
            step = current_step(self._chapter, self.progress)
            slots = (step,) if step in SLOTS else ()
            return next((r for s in (*slots, TREATED, "again", "measure") if (r := self.run_in(s)) is not None), None)
        labels = {f"{m.label}{TRACED}" for m in self._chapter.measurements}
        ours = set(self.progress.runs.values())
        context = self._context
        found = [r for r in context.runs.every() if (r.id in ours or r.label in labels) and context.runs.traced(r)]
        return found[-1] if found else None

    def explain(self, slot: str | None = None) -> Explanation | None:
        """Return the evidence of a run with its explanation; None if there is no such run. ``slot``: the slot of the
        run; None for the chapter's newest run."""
        runs = [r for s in ((slot,) if slot else (*SLOTS, TREATED)) if (r := self.run_in(s)) is not None]
        run = max(runs, key=lambda r: r.started_at, default=None)
        if run is None:
            return None
        drawn = self._context.runs.curve(run)
        known = self._host.values_by_hand(used_cpus(run))
        return explain_run(self._chapter, run, drawn.curve if drawn else None, known)

    def commands_by_hand(self) -> tuple[tuple[str, str], ...]:
        """Return (command, reason) for each command that shows the chapter's evidence by hand. Before the first run,
        the commands have the hot CPUs of the host that the chapter shows. In place of each thread id, they have a name
        in capital letters.
        """
        explanation = self.explain()
        if explanation is not None:
            return explanation.by_hand
        return with_cpus(self._chapter, self._host.hot(), self._host.values_by_hand())

    def marks(self, progress: ChapterProgress) -> dict[str, bool]:
        """Return the marks that the runs of ``progress`` and this host's settings earn now."""
        known = {s: r for s, ident in progress.runs.items() if (r := self._context.runs.run(ident)) is not None}
        return chapter_marks(self._chapter, known, self._host.settled() if self._chapter.tunables else None)
