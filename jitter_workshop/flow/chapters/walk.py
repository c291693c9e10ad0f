"""Lead a learner through the steps of one chapter, for the screen and for the plain walk.

The steps are look → predict → measure → diagnose → apply → again → compare → explain. A chapter may leave steps out.
The learner may return to every earlier step, and progress is saved at each move.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Mapping

from jitter_workshop.course.checks import marks
from jitter_workshop.course.predictions import by_curve, judged_by, outcome
from jitter_workshop.errors import HostError, SessionError, UsageError, WorkshopError
from jitter_workshop.flow.attribution import Progress, explain_run, unheard, with_cpus
from jitter_workshop.flow.chapters.by_hand import ByHand
from jitter_workshop.flow.chapters.cause_times import times
from jitter_workshop.flow.chapters.chapter_host import REBOOT, ChapterHost
from jitter_workshop.flow.chapters.diagnosis import NOT_MOUNTED, STEP, ChapterDiagnosis
from jitter_workshop.flow.chapters.own_program import ChapterProgram
from jitter_workshop.flow.chapters.path import blocked, current_step, furthest_step, step_after, step_before, views
from jitter_workshop.flow.chapters.recorded import recorded_in
from jitter_workshop.flow.chapters.session_context import SessionContext
from jitter_workshop.flow.host_ops.hotcpus import choose_hot
from jitter_workshop.flow.measuring.comparing import compare_runs, stack_notes
from jitter_workshop.flow.measuring.curves import TRANSIT, named
from jitter_workshop.flow.measuring.placement_plan import bound, noise_refused, plan_on, request_of
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.model.change import RestoreResult
from jitter_workshop.model.course import SLOTS, TREATED, Chapter, PredictionTask, Shows, StepName
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.effect import Effects
from jitter_workshop.model.noise import NOISE_KINDS, noise
from jitter_workshop.model.picture import TOPOLOGY
from jitter_workshop.model.run import HUNTED, Run
from jitter_workshop.model.session import ALONE, ChapterProgress, Prediction
from jitter_workshop.model.text import WORD, clean
from jitter_workshop.model.walk import (
    ApplyView,
    CompareView,
    CpuView,
    Explanation,
    PlanView,
    PredictionOutcome,
    RunCurve,
    StepView,
)
from jitter_workshop.report.cause_words import still_there
from jitter_workshop.stats.comparison import differences
from jitter_workshop.stats.effect import effects
from jitter_workshop.stats.figures import KnownRun, figure, moved, shows_on
from jitter_workshop.stats.scale import nice_ns
from jitter_workshop.tuning.context import Host

TRACED = ", traced"
"""The end of a run's label if the run repeats a chapter's measurement with a trace."""

ONE_TRACED = "Only one of these runs was traced, and tracing makes a run slower."

HOUSEKEEPING = "{housekeeping}"

QUIET_NS = 10_000
"""If the first run's p99.99 is below this, the run shows hardly any jitter, and the workshop offers a noise."""

LEFT = "left"
"""The word of a lesson's ``evidence`` that asks whether anything except the measured thread ran on its CPU."""

BY_RECORDED = "The guess is judged by the recorded runs of another machine."
BY_EMULATED = "The guess is judged by the recorded counts of an emulated machine."

WITH_SETTINGS = (
    "This chapter's settings are applied now, so a first run measures the host with these settings. First restore the "
    "old values (undo)."
)

NOTHING_COUNTED = "This chapter names no count that could replace the times."

WITHOUT_SETTINGS = (
    "This chapter's settings are not applied now, so a run measures the host without them. The step 'apply' applies "
    "them."
)


class ChapterSession:
    """Hold a chapter in progress. Make the object by ``flow.chapters.workshop.Workshop.walk(chapter_id)``. ``host``:
    reads and changes the host for this chapter."""

    def __init__(self, chapter: Chapter, context: SessionContext) -> None:
        self.chapter = chapter
        self._context = context
        self.host = ChapterHost(chapter, context)
        self.diagnosis = ChapterDiagnosis(chapter, context, self.host)
        self.by_hand = ByHand(self.host)
        self.program = ChapterProgram(chapter, context, self.host)

    @property
    def hunts(self) -> bool:
        """Return True if this chapter hides a noise that the learner has to name."""
        return self.chapter.hunt and not self.host.rehearsed

    @property
    def sets(self) -> bool:
        """Return True if the chapter changes settings of this host."""
        return self.chapter.changes == "tunables" and not self.host.rehearsed

    @property
    def places(self) -> bool:
        """Return True if the chapter binds threads to CPUs of this host."""
        return self.chapter.changes == "placement" and not self.host.rehearsed

    @property
    def emulated(self) -> bool:
        """Return True if the chapter's runs are made on an emulated machine, or were recorded on one."""
        if self.host.rehearsed:
            return (entry := self.host.recorded) is not None and entry.emulated
        return bool(self._context.host.emulated)

    @property
    def shows(self) -> Shows | None:
        """Return the figure by which this chapter's runs are compared here (``stats.figures.shows_on``)."""
        return shows_on(self.chapter.shows, self.emulated)

    @property
    def unshown(self) -> str:
        """Return the reason why an emulated machine cannot show this chapter's change, as a sentence, or ""."""
        shows = self.chapter.shows
        if not self.emulated or shows is None or self.shows is not None:
            return ""
        return f"This machine is emulated, so its times mean nothing. {shows.uncounted or NOTHING_COUNTED}"

    @property
    def progress(self) -> ChapterProgress:
        """Return the saved progress of this chapter."""
        return self._context.progress(self.chapter.id)

    @property
    def current(self) -> StepName:
        """Return the learner's current step."""
        return current_step(self.chapter, self.progress)

    def resume(self) -> None:
        """Go to the step at which the learner continues, even after paging back in an earlier visit."""
        step = furthest_step(self.chapter, self.progress, self.host.rehearsed)
        if step != self.current and not self.blocked(step):
            self._save(dataclasses.replace(self.progress, step=step))

    def steps(self) -> tuple[StepView, ...]:
        """Return all steps of the loop with their states, for the header."""
        return views(self.chapter, self.progress, self.host.rehearsed)

    def page(self, step: StepName) -> str:
        """Return the Markdown page of a step, with the lesson's additions for this host's state; "" without a page."""
        page = self.chapter.pages.get(step, "")
        besides = [w.text for w in self.chapter.page_when if w.step == step and w.when == self.host.state]
        return "\n\n".join(filter(None, [page, *besides]))

    def blocked(self, step: StepName) -> str:
        """Return the reason why a step cannot be entered yet, such as "measure first"; "" if it can be entered."""
        progress = self.progress
        # The user may have removed a run from the session meanwhile.
        live = {slot: ident for slot, ident in progress.runs.items() if self._context.run(ident) is not None}
        return blocked(self.chapter, dataclasses.replace(progress, runs=live), step, self.host.rehearsed)

    def go(self, step: StepName) -> None:
        """Enter a step, and save the progress. Raise WorkshopError with the reason of :meth:`blocked`.

        If the learner goes from ``apply`` to ``again``, this counts as consent to the plan. Writes that the learner has
        made by hand then count as applied.
        """
        reason = self.blocked(step)
        if reason:
            raise WorkshopError(f"the step '{step}' cannot begin yet", reason)
        if self.by_hand.opened and not self.by_hand.restoring and step != "apply":
            self.adopt()
        progress = self.progress
        here = self.current
        if here not in progress.seen and step_before(self.chapter, step) == here:
            progress = dataclasses.replace(progress, seen=(*progress.seen, here))
        self._save(dataclasses.replace(progress, step=step))

    def next(self) -> StepName | None:
        """Go to the next step of this chapter, and return it. After the last step, mark the chapter as done and return
        None. Raise WorkshopError if the next step is blocked."""
        step = step_after(self.chapter, self.current)
        if step is not None:
            self.go(step)
            return step
        progress = self.progress
        seen = progress.seen if self.current in progress.seen else (*progress.seen, self.current)
        self._save(dataclasses.replace(progress, seen=seen, done=True))
        return None

    def back(self) -> StepName | None:
        """Go to the previous step, and return it. Return None at the first step."""
        step = step_before(self.chapter, self.current)
        if step is not None:
            self._save(dataclasses.replace(self.progress, step=step))
        return step

    def predict(self, prediction: Prediction) -> None:
        """Store the learner's prediction.

        The learner cannot make or change a prediction after the run that decides it was made. Raise UsageError if that
        run exists, or if the lesson has no answer with the given id.
        """
        task = self.chapter.prediction
        if task is None:
            raise UsageError("this chapter asks for no guess")
        if self.run_in(task.slot) is not None:
            raise UsageError("the run is already measured", "a guess counts only before the result is known")
        at_once = task.slot is None and task.by is None
        if self.progress.prediction is not None and (at_once or self.outcome() is not None):
            raise UsageError("this question is answered already", "a guess counts only before the result is known")
        if task.kind == "choice" and prediction.choice not in [a.id for a in task.answers]:
            raise UsageError(
                "the guess is not one of the answers", f"the answers are {', '.join(a.id for a in task.answers)}"
            )
        if task.kind == "mark":
            if prediction.value_ns is None or not 1 <= prediction.value_ns <= 60_000_000_000:
                raise UsageError("a guess must be a time between 1 ns and 60 s")
            prediction = dataclasses.replace(prediction, percentile=task.percentile)
        self._save(dataclasses.replace(self.progress, prediction=prediction))

    def outcome(self) -> PredictionOutcome | None:
        """Return the result of the prediction.

        Return None if there is no prediction, or if the run that decides it was not made yet.
        """
        task, prediction = self.chapter.prediction, self.progress.prediction
        if task is None or prediction is None:
            return None
        if self.chapter.program:
            return self.program.outcome(task, prediction)
        if self.decided_by_recording:
            return self._outcome_on_recording(task, prediction)
        run = self.run_in(task.slot)
        asked = self.chapter.measurement(task.slot) if task.slot is not None else None
        if run is not None and asked is not None and run.workload != asked.workload and task.kind == "mark":
            text = (
                f"Your guess was about the workload '{asked.workload}', but '{run.workload}' was measured, so the "
                "guess is not judged."
            )
            return PredictionOutcome(text, None, "", prediction.value_ns, None)
        first = self.run_in("measure")
        before = None if first is None else self.seen(first)
        seen = None if run is None else self.seen(run)
        found = outcome(task, prediction, seen, before, self.chapter.shows)
        if found is not None and found.near is None and before is not None and seen is not None and seen.timeless:
            found = dataclasses.replace(found, text=f"{found.text} {self._told_instead(before, seen)}".rstrip())
        if found is None or seen is None or LEFT not in self.chapter.evidence or not found.explanation:
            return found
        told = still_there(seen.report) if seen.report is not None else "The causes (v) show which tasks still ran."
        why, *rest = found.explanation.split("\n\n")
        return dataclasses.replace(found, explanation="\n\n".join([f"{why} {told}".rstrip(), *rest]))

    def _told_instead(self, before: KnownRun, seen: KnownRun) -> str:
        """Return a sentence that replaces the judgement on a guess about times. On an emulated machine, times mean
        nothing. So the sentence tells how the number of events changed from the run ``before`` to the run ``seen``.
        Return "" if a run lacks this number."""
        if before is seen or before.run.id == seen.run.id or self.shows is None:
            return self.unshown
        one = figure(self.shows.figure)
        return "" if None in (one.of(before), one.of(seen)) else moved(one, before, seen)

    @property
    def decided_by_recording(self) -> bool:
        """Return True if a run that was recorded on another machine decides the guess. If the learner marked a point on
        a curve, the run's curve decides. If the learner chose an answer, a figure of the run decides.
        """
        task = self.chapter.prediction
        if task is None or not self.host.rehearsed:
            return False
        if task.kind == "mark":
            return self._judging_curve(task) is not None
        return task.by is not None and judged_by(task, *self._decisive(task), self.chapter.shows)

    def _decisive(self, task: PredictionTask) -> tuple[KnownRun | None, KnownRun | None]:
        """Return the run that decides a guess, and the run of ``measure``. Each is None if it does not exist."""
        return None if task.slot is None else self.known(task.slot), self.known("measure")

    def _outcome_on_recording(self, task: PredictionTask, prediction: Prediction) -> PredictionOutcome | None:
        """Return the judgement on a guess by a run that was recorded on another machine. Return None if the learner has
        not seen this run yet."""
        slot = task.slot
        if slot is None or not (slot in self.progress.seen or self.current in (slot, "compare", "explain")):
            return None
        if task.kind == "choice":
            found = outcome(task, prediction, *self._decisive(task), self.chapter.shows)
            by = BY_EMULATED if self.counted_elsewhere(slot) else BY_RECORDED
            return None if found is None else dataclasses.replace(found, text=f"{found.text} {by}")
        shown = self._judging_curve(task)
        return None if shown is None else by_curve(task, prediction, shown.curve)

    def _judging_curve(self, task: PredictionTask) -> RunCurve | None:
        """Return the recorded curve that decides a guess marked on a curve; None if there is none."""
        if task.slot is None or not (shown := self.recorded_curves(task.slot)[0]):
            return None
        both = self.chapter.measurement("measure") is not None and self.chapter.measurement("again") is not None
        return None if task.slot == "again" and both and len(shown) < 2 else shown[-1]

    def read_figures(self, *runs: Run, progress: Progress = unheard) -> None:
        """Read the traces that :meth:`to_read` returns. A long trace takes some seconds. A damaged trace counts as
        missing. Raise the errors of ``progress``."""
        for run in self.to_read(*runs):
            with contextlib.suppress(SessionError):
                self._context.causes(run, progress)

    def to_read(self, *runs: Run) -> tuple[Run, ...]:
        """Return the runs whose traces the chapter needs and has not read yet. The chapter's own runs and ``runs`` are
        considered. Return () if the chapter needs no traces."""
        task, shows = self.chapter.prediction, self.shows
        names = [a.figure for a in task.answers] if task is not None else []
        names += [task.figure] if task is not None else []
        names += [shows.figure] if shows is not None else []
        wanted = any(name is not None and figure(name).traced for name in names)
        if not (wanted or STEP in self.chapter.steps or LEFT in self.chapter.evidence):
            return ()
        every = (*filter(None, map(self.run_in, SLOTS)), *(self._pair(self.progress.other_runs) or ()), *runs)
        return tuple(run for run in every if self._context.traced(run) and self._context.known_causes(run) is None)

    @property
    def unread(self) -> bool:
        """Return True if a trace that the chapter needs was not read yet. This is the case after a new start of the
        workshop.
        """
        return bool(self.to_read())

    def seen(self, run: Run) -> KnownRun:
        """Return a run together with the stored report on its trace, if there is one."""
        return KnownRun(run, self._context.known_causes(run))

    def known(self, slot: str) -> KnownRun | None:
        """Return the run in a slot with its figures; None if there is none. In a rehearsal, this is the recorded run,
        otherwise the learner's run."""
        if self.host.rehearsed:
            return None if (entry := self.host.recorded) is None else entry.known(slot)
        run = self.run_in(slot)
        return None if run is None else self.seen(run)

    def before_and_after(self) -> tuple[KnownRun, KnownRun] | None:
        """Return the run before the change and the run after it, with their figures. Return None if a run is missing,
        or if the runs cannot be compared."""
        first, second = self.known("measure"), self.known("again")
        if first is None or second is None or (first.recorded is None and differences(first.run, second.run)):
            return None
        return first, second

    @property
    def repeats(self) -> bool:
        """Return True if the second run repeats the first one without a change. The two runs then differ only by
        chance.
        """
        alike = {dataclasses.replace(one, slot="measure", label="") for one in self.chapter.measurements}
        return self.chapter.changes == "nothing" and len(alike) == 1

    def recorded_effects(self) -> Effects:
        """Return the effect of the change between the two recorded runs. Return an empty effect if a run is missing, or
        if the chapter is not taught on a recording."""
        both = self.before_and_after() if self.host.rehearsed else None
        return Effects(None, None, None) if both is None else self._effects(*both)

    def _effects(self, before: KnownRun, after: KnownRun) -> Effects:
        task = self.chapter.prediction
        found = effects(before, after, self.shows, task.percentile if task is not None else None)
        return dataclasses.replace(found, causes=times(before, after, self.chapter))

    def plan(self) -> PlanView:
        """Return the chapter's plan: the writes that :meth:`apply` makes, or a CPU for each thread. Raise HostError if
        no plan is possible on this host."""
        self._keep_up()
        if self.chapter.changes == "tunables":
            return self.host.plan()
        if self.chapter.changes != "placement" or self.chapter.measurement("again") is None:
            return PlanView((), 0, "This chapter changes nothing.")
        plan = self._plan_of(self._request("again", self.progress.chosen_cpus, rehearsed=self.host.rehearsed))
        if self.host.rehearsed:
            plan = dataclasses.replace(plan, text=f"This is a recorded host, so no thread is bound. {plan.text}")
        return plan

    def apply(self, shown: PlanView | None = None) -> ApplyView:
        """Make the writes that :meth:`plan` shows, and return the host's state after them. With ``shown``, make only
        the writes of ``shown``, even if :meth:`plan` would now show other writes. The settings last while the workshop
        is open. Raise HostError without root's rights, or if the chapter is taught on a recording.
        """
        view = self.host.apply(shown)
        progress = self.progress
        if view.needs_reboot:
            progress = dataclasses.replace(progress, reboot_from=self.host.boot_id)
        self._save(dataclasses.replace(progress, marks={**progress.marks, **self._marks(progress)}))
        return view

    def adopt(self, wrong: bool = False) -> ApplyView:
        """Record the writes that the learner made by hand as applied, and return the host's state. ``wrong``: also
        record values that differ from the plan; the learner has confirmed them. Raise HostError if the agent has
        ended."""
        view = self.by_hand.adopt(wrong)
        self._mark_again(entered=True)
        if view.needs_reboot:
            self._save(dataclasses.replace(self.progress, reboot_from=self.host.boot_id))
        return view

    def undo(self) -> RestoreResult:
        """Restore this chapter's settings, and update its marks. Raise HostError if this fails, or on a recorded
        host."""
        result = self.host.undo()
        self.by_hand.close()
        self._mark_again(entered=True)
        return result

    def given_back(self, tunables: Collection[str]) -> None:
        """Update this chapter's marks after another part of the workshop has restored these tunables."""
        if not set(self.host.ids).isdisjoint(tunables) and self.progress != ChapterProgress():
            self._mark_again(entered=False)

    def _mark_again(self, *, entered: bool) -> None:
        """Set the marks again from the host's present state, after settings were restored."""
        waits_for = self.progress.reboot_from if self.host.applied else None
        progress = dataclasses.replace(self.progress, reboot_from=waits_for)
        progress = dataclasses.replace(progress, marks={**progress.marks, **self._marks(progress)})
        self._context.save_progress(self.chapter.id, progress, entered=entered)

    @property
    def awaits_reboot(self) -> bool:
        """Return True if this chapter's boot parameters were written and this host has not been rebooted since."""
        return self.progress.reboot_from is not None and self.progress.reboot_from == self.host.boot_id

    def rebooted(self) -> str:
        """Return a sentence on the reboot that this chapter needs; "" if it needs none. Before the reboot, the sentence
        asks for the reboot. After the reboot, it tells if the boot parameters are in effect, and the marks are
        updated."""
        waiting = self.progress.reboot_from
        if waiting is None:
            return ""
        if self.awaits_reboot:
            return f"This chapter's boot parameters are written: {REBOOT}."
        settled, told = self.host.boots.told(self.host.settled())
        marked = {**self.progress.marks, "setting": settled}
        self._save(dataclasses.replace(self.progress, marks=marked, reboot_from=None))
        return told

    def choose_cpus(self, producer: int | None, accumulator: int | None, journaller: int | None) -> None:
        """Set the learner's own placement for the run ``again``. If all three arguments are None, the placement is
        automatic. Raise HostError if the placement is impossible, UsageError if this chapter does not change the
        placement."""
        given = {"producer": producer, "accumulator": accumulator, "journaller": journaller}
        chosen = {name: cpu for name, cpu in given.items() if cpu is not None}
        if chosen and self.chapter.changes != "placement":
            raise UsageError("this chapter does not change the placement")
        if len(set(chosen.values())) < len(chosen):
            raise HostError(
                "two threads cannot have the same CPU", "the threads wait for each other: give each its own CPU"
            )
        try:
            self._plan_of(self._request("again", chosen, rehearsed=self.host.rehearsed))
        except UsageError as error:
            raise HostError(error.message, error.advice) from error
        self._save(dataclasses.replace(self.progress, chosen_cpus=chosen))

    def request(self, slot: StepName) -> MeasureRequest:
        """Return the request for the run of a slot (``measure`` or ``again``) on this host.

        The ring needs two CPUs; with one CPU, the clock loop ``spin`` is measured instead. A restored setting may need
        some seconds until it takes effect (``Shows.settle_s``). If the run of ``measure`` begins earlier, it does not
        record until these seconds have passed.

        Raise UsageError if the chapter does not measure this slot, HostError if this host cannot do the chapter.
        """
        asked = self._request(slot, self.progress.chosen_cpus)
        if slot == "measure" and self.chapter.shows is not None and self.chapter.shows.settle_s:
            since = self._context.agent_session.change_log.since_restored(self.host.ids)
            asked = dataclasses.replace(asked, settle_s=max(self.chapter.shows.settle_s - since, 0.0))
        return self._context.of_class(asked)

    def record(self, slot: str, run: Run) -> None:
        """Store a run in a slot, set the marks and save the progress. An incomplete run fills no slot."""
        self._context.remember(run)
        if not run.complete:
            return
        progress = self.progress
        runs = {**progress.runs, slot: run.id}
        progress = dataclasses.replace(progress, runs=runs)
        earned = self._marks(progress)
        if progress.marks.get("setting") and self.chapter.changes == "tunables":
            earned["setting"] = True  # the setting was verified; only a restore in this chapter takes the mark away
        self._save(dataclasses.replace(progress, marks={**progress.marks, **earned}))

    def _marks(self, progress: ChapterProgress) -> dict[str, bool]:
        known = {s: r for s, ident in progress.runs.items() if (r := self._context.run(ident)) is not None}
        return marks(self.chapter, known, self.host.settled() if self.chapter.tunables else None)

    def measures(self, step: StepName) -> bool:
        """Return True if a step has a measurement that can be made here."""
        return step in SLOTS and self.chapter.measurement(step) is not None and not self.host.rehearsed

    def unmeasured(self, step: StepName) -> bool:
        """Return True if a step has a measurement that can be made here, but no run yet."""
        return self.measures(step) and self.run_in(step) is None

    def run_in(self, slot: str | None) -> Run | None:
        """Return the run of a slot; None if the slot is empty or None."""
        if slot is None:
            return None
        ident = self.progress.runs.get(slot)
        return self._context.run(ident) if ident else None

    def curves(self) -> tuple[RunCurve, ...]:
        """Return the curves of this chapter's runs, newest last. Further curves that the lesson asks for come after
        them."""
        runs = tuple(run for slot in (*SLOTS, TREATED) if (run := self.run_in(slot)) is not None)
        own = self._context.curves(tuple(sorted(runs, key=lambda run: run.started_at)))
        first = self.run_in("measure") if "omission" in self.chapter.evidence else None
        if first is None:
            return own
        return (*(named(curve, TRANSIT) for curve in own), *self._context.further_curves(first))

    def last_curve(self) -> RunCurve | None:
        """Return the learner's newest curve for the workload of the guess; None if there is none. The run may be
        from any chapter, but never one with a hidden noise."""
        task = self.chapter.prediction
        workload = self.workload(task.slot) if task is not None else ""
        alike = [r for r in self._context.runs() if r.workload == workload and r.complete and HUNTED not in r.notes]
        shown = self._context.curve(alike[-1]) if alike else None
        if shown is None:
            return None
        label = f"your last: {shown.label}"
        return dataclasses.replace(shown, label=label, curve=dataclasses.replace(shown.curve, label=label))

    def workload(self, slot: str | None) -> str:
        """Return the workload of a slot's run. If the slot has no run, return the workload of the run that would be
        made. Return "" if the slot has no measurement.
        """
        asked = self.chapter.measurement(slot) if slot is not None else None
        if asked is None:
            return ""
        if (run := self.run_in(slot)) is not None:
            return run.workload
        try:
            return self._request(asked.slot, {}).workload
        except WorkshopError:
            return asked.workload

    def warning(self, step: StepName) -> str:
        """Return a warning for the learner before a step is measured, or ""."""
        settled = self.host.rehearsed or self.run_in("again") is not None or self._stands(step)
        besides = "" if settled else WITHOUT_SETTINGS
        besides = WITH_SETTINGS if self.too_early(step) else besides
        untraced = self._without_trace(step)
        return " ".join(filter(None, (self._other_workload(step), self._without_load(step), untraced, besides)))

    def too_early(self, step: StepName) -> bool:
        """Return True if this chapter's settings are applied before its first run is made. The first run must be made
        without these settings.
        """
        return step == "measure" and self.unmeasured(step) and self.sets and self.host.applied

    def _without_trace(self, step: StepName) -> str:
        """Return a warning if a step's run will have no trace, else "". The warning names the command that mounts the
        kernel's trace."""
        if not self.unmeasured(step) or not (self.hunts or self.diagnosis.traces(step)):
            return ""
        command = self._context.mount_command
        return f"{NOT_MOUNTED} As root, '{command}' mounts it." if command else ""

    @property
    def mount_command(self) -> str:
        """Return the command that mounts the kernel's trace. Return "" if the trace is mounted, or if this host has
        none."""
        return self._context.mount_command

    def _without_load(self, step: StepName) -> str:
        """Return the reason why the chapter's noise cannot run during a step's measurement, and what to do. Return ""
        if the noise can run, or if the step has no measurement to make."""
        context = self._context
        if not self.unmeasured(step) or self.host.reason:
            return ""
        request = self._request(step, self.progress.chosen_cpus)
        reason = noise_refused(context.root, context.topology, request, CpuSet(context.host.isolated))
        if not reason:
            return ""
        undone = "Restore the isolation first (undo, on the home page)" if context.room.isolated else ""
        alone = "measure this host as it is, without the load (w)" if self.chapter.accompanied else ""
        told = " or ".join(filter(None, (undone, alone)))
        return f"{reason}.{f' {told[:1].upper()}{told[1:]}.' if told else ''}"

    def _other_workload(self, step: StepName) -> str:
        """Return the reason why another workload than the lesson's is measured, or ""."""
        asked = self.chapter.measurement(step)
        if asked is None or not self.unmeasured(step) or self.host.reason:
            return ""
        taken, room = self._request(step, {}).workload, self._context.room
        if taken == asked.workload:
            return ""
        if room.cpus_for(asked.placement) >= 2:
            return (
                f"The first run measured '{taken}', so this run also measures '{taken}' instead of '{asked.workload}'."
            )
        said = f"The workload '{asked.workload}' needs two CPUs, so the loop '{taken}' is measured instead."
        alone = f"While CPU {room.isolated} is isolated, this run has only one CPU. To measure the {asked.workload},"
        return f"{said} {alone} undo the isolation first." if room.walled else said

    def _stands(self, step: StepName) -> bool:
        """Return True if the settings that a step's measurement needs are in effect."""
        if step != "again" or self.chapter.changes != "tunables":
            return True
        return (self.host.applied and not self.awaits_reboot) or self.host.state == "good"

    def recorded_curves(self, step: StepName) -> tuple[tuple[RunCurve, ...], str]:
        """Return the curves that a step shows from runs on another machine, and their source. Return ((), "") if there
        are none, or if the chapter is not taught on a recording."""
        if not self.host.rehearsed:
            return (), ""
        return recorded_in(step, self.chapter, self._context.course_dir, self._context.course_id)

    def counted_elsewhere(self, step: StepName) -> str:
        """Return the date and the emulated machine of the recorded counts that a step shows. Return "" if it shows
        none."""
        slot = "measure" if step == "compare" else step
        entry = self.host.recorded if self.host.rehearsed else None
        return entry.source if entry is not None and entry.emulated and slot in entry.runs else ""

    def company(self, request: MeasureRequest) -> str:
        """Return the lesson's words on the noise during a run. Return "" if the run has no such noise, or the lesson
        has no words."""
        company = self.chapter.company
        return company.shown if company is not None and request.noise == company.noise else ""

    def offer_noise(self) -> str:
        """Return a question that offers to switch a noise on or off, or "". If the chapter has its own noise, the
        question offers to measure without this noise. Otherwise it offers a noise if the first run of the ring is quiet
        (p99.99 < 10 µs).
        """
        if (company := self.chapter.company) is not None and self.chapter.accompanied:
            kept = bool(self.progress.other_runs)
            if self.progress.noise == ALONE:
                asked = "Go back to the runs with the noise?" if kept else "Measure this host while the noise runs?"
                return f"The lesson's noise ({company.noise}) is off. {asked}"
            asked = "Go back to the runs without the noise?" if kept else "Measure this host without the noise?"
            return f"{noise(company.noise).what} That is this lesson's noise. {asked}"
        if self.progress.noise or any(m.noise for m in self.chapter.measurements):
            return ""
        run = self.run_in("measure")
        if run is None or run.workload != "ring":
            return ""  # the p99.99 of a clock loop's hundreds of millions of readings is always short
        value = run.percentile("99.99")
        if value is None or value >= QUIET_NS:
            return ""
        return (
            f"This host is quiet already: p99.99 is {nice_ns(value)}. Start some noise for this chapter? A "
            "thread on each CPU is busy for 3 ms, then sleeps for 30 ms. All these threads stop with the run."
        )

    def accept_noise(self) -> None:
        """Switch the noise of :meth:`offer_noise` on if it is off, and off if it is on. The runs with this noise and
        those without it are stored separately, and so are their marks. The next step is ``compare`` if both runs of the
        chosen kind exist, else ``measure``."""
        other, progress = ALONE if self.chapter.accompanied else NOISE_KINDS[0], self.progress
        kind = other if progress.noise is None else None
        runs = {slot: ident for slot, ident in progress.other_runs.items() if self._context.run(ident) is not None}
        progress = dataclasses.replace(progress, noise=kind, runs=runs, other_runs=progress.runs)
        whole = "compare" in self.chapter.steps and all(one.slot in runs for one in self.chapter.measurements)
        step: StepName = "compare" if whole else "measure"
        self._save(dataclasses.replace(progress, marks=self._marks(progress) if runs else {}, step=step))

    @property
    def turns(self) -> bool:
        """Return True if the learner can switch a noise on or off in this chapter."""
        return bool(self.offer_noise() or self.progress.other_runs or self.progress.noise)

    @property
    def noisy(self) -> bool:
        """Return True if the runs that the chapter shows now were made with the noise.

        This is the noise that the learner can switch on and off (:meth:`accept_noise`).
        """
        return self.progress.noise != (ALONE if self.chapter.accompanied else None)

    def both_ways(self) -> str:
        """Return a sentence that compares the change's effect with a noise and without it. It gives the chapter's
        figure before and after the change for both cases. Return "" if one of the four runs is missing, or does not
        have the figure."""
        pairs = [self._pair(self.progress.other_runs), self._pair(self.progress.runs)]
        if self.shows is None or None in pairs:
            return ""
        one = figure(self.shows.figure)
        values = [[one.of(self.seen(run)) for run in pair] for pair in pairs if pair is not None]
        if None in (*values[0], *values[1]):
            return ""
        bare, beside = (one.change(*pair) for pair in (values if self.noisy else reversed(values)))
        kind = clean(self._other_noise, WORD)
        return f"{one.headline}: {beside} with the noise ({kind}), {bare} without the noise."

    @property
    def _other_noise(self) -> str:
        """Return the kind of noise that the learner can switch on or off."""
        company = self.chapter.company
        return company.noise if company is not None and self.chapter.accompanied else NOISE_KINDS[0]

    def _pair(self, runs: Mapping[str, str]) -> tuple[Run, Run] | None:
        """Return the runs of ``measure`` and ``again``; None if one is missing."""
        first, second = (self._context.run(runs.get(slot, "")) for slot in SLOTS)
        return None if first is None or second is None else (first, second)

    def compare(self) -> CompareView | None:
        """Return the comparison of the runs in ``measure`` and ``again``; None until both runs exist."""
        first, second = self.run_in("measure"), self.run_in("again")
        if first is None or second is None:
            return None
        view = compare_runs(first, second)
        # If all settings were good already, nothing had to be applied.
        good = bool(self.chapter.tunables) and self.host.state == "good" and not self.host.applied
        strayed = () if good else stack_notes(self.chapter, first, second)
        if self._context.handle.has_trace(first.id) != self._context.handle.has_trace(second.id):
            strayed = (*strayed, ONE_TRACED)
        effect, both_ways = self._effect(first, second), tuple(filter(None, (self.both_ways(),)))
        headline = " ".join([*strayed, *effect, view.headline, *both_ways])
        if not view.comparison.comparable:
            return dataclasses.replace(view, headline=headline, notes=(*strayed, *both_ways))
        shows, found = self.shows, self._effects(self.seen(first), self.seen(second))
        told = {one.name for one in (found.shown, found.lead, found.but) if one is not None}
        if shows is None or figure(shows.figure).title not in told:
            strayed = (*strayed, *effect)
        return dataclasses.replace(view, headline=headline, effects=found, notes=strayed)

    def _effect(self, first: Run, second: Run) -> tuple[str, ...]:
        """Return a sentence on how the chapter's figure changed between two runs.

        The chapter's lesson names this figure. Return () if a run does not have the figure. If an emulated machine
        cannot show the change, return a sentence with the reason.
        """
        if self.shows is None:
            return (self.unshown,) if self.unshown else ()
        one, before, after = figure(self.shows.figure), self.seen(first), self.seen(second)
        return () if None in (one.of(before), one.of(after)) else (moved(one, before, after),)

    def explain(self, slot: str | None = None) -> Explanation | None:
        """Return the evidence of a run with its explanation; None if there is no such run. ``slot``: the slot of the
        run; None for the chapter's newest run."""
        runs = [r for s in ((slot,) if slot else (*SLOTS, TREATED)) if (r := self.run_in(s)) is not None]
        run = max(runs, key=lambda r: r.started_at, default=None)
        if run is None:
            return None
        drawn = self._context.curve(run)
        return explain_run(self.chapter, run, drawn.curve if drawn else None, self.housekeeping())

    def traced_run(self) -> Run | None:
        """Return the run whose causes the chapter shows; None if there is no such run.

        Without a hunt, this is the chapter's newest traced run. In a hunt, it is the run of the current step, even if
        this run has no trace. If the current step has no run, return the first of these runs that exists:

        - the run with the cure;
        - the run with the noise;
        - the quiet run.
        """
        if self.hunts:
            slots = (self.current,) if self.current in SLOTS else ()
            return next((r for s in (*slots, TREATED, "again", "measure") if (r := self.run_in(s)) is not None), None)
        labels = {f"{m.label}{TRACED}" for m in self.chapter.measurements}
        ours = set(self.progress.runs.values())
        context = self._context
        found = [r for r in context.runs() if (r.id in ours or r.label in labels) and context.traced(r)]
        return found[-1] if found else None

    def traced_request(self) -> MeasureRequest | None:
        """Return the request that repeats the chapter's last measurement with a trace. Return None if nothing was
        measured yet. Raise the errors of :meth:`request`."""
        measured = [slot for slot in SLOTS if self.run_in(slot) is not None]
        if not measured:
            return None
        request = self.request(measured[-1])
        return dataclasses.replace(request, label=f"{request.label}{TRACED}", evidence=True)

    def commands_by_hand(self) -> tuple[tuple[str, str], ...]:
        """Return (command, reason) for each command that shows the chapter's evidence by hand. Before the first run,
        the commands have the hot CPUs of the host that the chapter shows. In place of each thread id, they have a name
        in capital letters.
        """
        explanation = self.explain()
        if explanation is not None:
            return explanation.by_hand
        return with_cpus(self.chapter, self.hot(), self.housekeeping())

    def housekeeping(self) -> CpuSet:
        """Return the housekeeping CPUs of the shown host for the by-hand commands. Return no CPUs if the host has none,
        or if no command names them."""
        if not any(HOUSEKEEPING in text for b in self.chapter.by_hand for text in (b.command, b.why, b.check)):
            return CpuSet()
        root, topology, _ = self.host.machine()
        return Host(root, self.hot(), topology).housekeeping

    def hot(self) -> CpuSet:
        """Return the hot CPUs of the shown host, live or recorded. Return no CPUs if the host shows none."""
        root, topology, _ = self.host.machine()
        try:
            return choose_hot(root, None, topology).cpus
        except HostError:
            return CpuSet()

    def cpus(self) -> CpuView:
        """Return the CPUs of the shown host, and the CPU that each thread would get now. The threads are those of the
        run after the change. The shown host can be live or recorded."""
        self._keep_up()
        _, topology, _ = self.host.machine()
        placed: tuple[tuple[str, int], ...] = ()
        with contextlib.suppress(HostError, UsageError):
            plan = self._plan_of(self._request("again", self.progress.chosen_cpus, rehearsed=self.host.rehearsed))
            placed = bound(plan)
        return CpuView(topology, self.hot(), placed)

    def drawn_cpus(self, step: StepName) -> CpuView | None:
        """Return the CPUs that a step's page draws. Return None if the page draws none, or if they cannot be read."""
        with contextlib.suppress(HostError):
            return self.cpus() if TOPOLOGY in self.page(step) else None
        return None

    @property
    def hints_are_over(self) -> bool:
        """Return True if the chapter's hints are not useful any more, because the guess is decided. Always return False
        in a chapter with a hunt: its hints are also about the hidden noise."""
        task = self.chapter.prediction
        if task is None or self.chapter.hunt:
            return False
        return self.run_in(task.slot) is not None or self.outcome() is not None

    def hint(self) -> str | None:
        """Return the next hint, and remember that it was shown. Return None after the last hint."""
        shown = self.progress.hints
        if shown >= len(self.chapter.hints):
            return None
        self._save(dataclasses.replace(self.progress, hints=shown + 1))
        return self.chapter.hints[shown]

    def restart(self) -> None:
        """Begin the chapter again: delete its saved step, guess, slots and marks. The runs stay in the session."""
        self._save(ChapterProgress(step=self.chapter.steps[0], by_hand=self.progress.by_hand))

    def _save(self, progress: ChapterProgress) -> None:
        self._context.save_progress(self.chapter.id, progress)

    def _keep_up(self) -> None:
        """Read this host again if its isolated CPUs have changed since it was read. Another workshop may have changed
        them."""
        if self._context.look_if_moved():
            self.host.forget()

    def _plan_of(self, request: MeasureRequest) -> PlanView:
        root, topology, host = self.host.machine()
        return plan_on(root, topology, request, CpuSet(host.isolated))

    def _request(self, slot: StepName, chosen: dict[str, int], *, rehearsed: bool = False) -> MeasureRequest:
        """Return the request for the run of a slot. ``chosen``: thread → CPU, as the learner chose. ``rehearsed``: the
        run is only planned, on a recording."""
        measurement = self.chapter.measurement(slot)
        if measurement is None:
            raise UsageError(f"this chapter measures nothing in the step '{slot}'")
        reason = self.host.reason
        if reason and not rehearsed:
            raise HostError(f"{self.chapter.title} cannot be measured here", reason)
        cpus = len(self.host.machine()[1].allowed) if rehearsed else self._context.room.cpus_for(measurement.placement)
        wanted = chosen if slot == "again" and measurement.placement != "none" else {}
        traced = self.chapter.hunt or (not rehearsed and self.diagnosis.traces(slot))
        request = request_of(measurement, self.progress.noise, wanted, cpus, self.run_in("measure"), traced)
        return request if self._stands(slot) else dataclasses.replace(request, label=f"{request.label} (not set)")
