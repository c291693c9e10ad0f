"""Lead a learner through the steps of one chapter, for the screen and for the plain walk.

The steps are look → predict → measure → diagnose → apply → again → compare → explain. A chapter may leave steps out.
The learner may return to every earlier step, and progress is saved at each move.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Iterator

from jitter_workshop.course.checks import without_change
from jitter_workshop.errors import HostError, WorkshopError
from jitter_workshop.flow.chapters.by_hand import ByHand
from jitter_workshop.flow.chapters.chapter_host import REBOOT, ChapterHost
from jitter_workshop.flow.chapters.comparison import ChapterComparison
from jitter_workshop.flow.chapters.cpus import ChapterCpus
from jitter_workshop.flow.chapters.diagnosis import ChapterDiagnosis
from jitter_workshop.flow.chapters.guess import ChapterGuess
from jitter_workshop.flow.chapters.measuring import ChapterMeasuring
from jitter_workshop.flow.chapters.noise import ChapterNoise
from jitter_workshop.flow.chapters.own_program import ChapterProgram
from jitter_workshop.flow.chapters.path import blocked, current_step, furthest_step, step_after, step_before, views
from jitter_workshop.flow.chapters.runs import ChapterRuns
from jitter_workshop.flow.chapters.session_context import SessionContext
from jitter_workshop.model.change import RestoreResult
from jitter_workshop.model.course import CONTROL, SLOTS, STEPS, Chapter, StepName
from jitter_workshop.model.picture import TOPOLOGY
from jitter_workshop.model.run import Run
from jitter_workshop.model.session import ChapterProgress
from jitter_workshop.model.walk import ApplyView, CpuView, PlanView, StepView


class ChapterWalk:
    """Lead through one chapter, step by step. Make the object by ``flow.chapters.workshop.Workshop.walk(chapter_id)``.

    This object holds the steps and the marks. Each other subject is an attribute, with a class of its own:

    - ``host``: reads and changes the host for this chapter.
    - ``by_hand``: watches the writes that the learner makes.
    - ``runs``: the chapter's runs, with their figures, curves and evidence.
    - ``measuring``: the requests for these runs, and the warnings before a run.
    - ``cpus``: the CPUs on which the threads of the second run are placed.
    - ``noise``: the noise that the learner can switch on and off.
    - ``comparison``: the comparison of the two runs.
    - ``guess``, ``diagnosis``: the learner's answers.
    - ``program``: the program that a chapter observes.
    - ``commands_done``: the by-hand commands that were detected as run, by their numbers in ``chapter.by_hand`` from 0.
    """

    def __init__(self, chapter: Chapter, context: SessionContext) -> None:
        self.chapter = chapter
        self._context = context
        self.host = ChapterHost(chapter, context)
        self.diagnosis = ChapterDiagnosis(chapter, context, self.host)
        self.by_hand = ByHand(self.host)
        self.commands_done: set[int] = set()
        self.program = ChapterProgram(chapter, context, self.host)
        self.runs = ChapterRuns(chapter, context, self.host)
        self.noise = ChapterNoise(chapter, context, self.runs)
        self.comparison = ChapterComparison(chapter, context, self.host, self.runs, self.noise)
        self.measuring = ChapterMeasuring(chapter, context, self.host, self.runs, self.diagnosis)
        self.cpus = ChapterCpus(chapter, context, self.host, self.measuring)
        self.guess = ChapterGuess(chapter, context, self.host, self.runs, self.measuring, self.program)

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
        progress = self.progress
        skipped: set[StepName] = {"diagnose"} if self.diagnosis.skipped else set()
        if ("apply" in progress.seen or progress.done) and self.sets and not self._changed(progress):
            skipped.add("apply")
        return views(self.chapter, progress, self.host.rehearsed, skipped)

    def _changed(self, progress: ChapterProgress) -> bool:
        """Return True if the chapter's settings are in effect, or were in effect in the run ``again``. Boot parameters
        that wait for a reboot count, too."""
        run = self.runs.run_in("again")
        if run is not None and not without_change(self.chapter, run):
            return True
        made = progress.reboot_from is not None or self.by_hand.owed
        # The state is known by now; what is applied is read from all journals.
        return made or self.host.state == "good" or self.host.applied

    def page(self, step: StepName) -> str:
        """Return the Markdown page of a step, with the lesson's additions for this host's state; "" without a page."""
        page = self.chapter.pages.get(step, "")
        besides = [w.text for w in self.chapter.page_when if w.step == step and w.when == self.host.state]
        here = "" if self.host.rehearsed else " ".join(self._on_host(step))
        # On a small screen the question covers the page's end, and what is true of this host is to be read before it.
        first, _, rest = page.partition("\n\n")
        parts = [first, here, rest] if here else [page]
        return "\n\n".join(filter(None, [*parts, *besides]))

    def _on_host(self, step: StepName) -> Iterator[str]:
        """Yield the sentences on the load's interrupt: its name, and the write with which the first run will begin."""
        if said := self.noise.on_page(step):
            yield said
            if write := self.measuring.first_write():
                yield write

    def blocked(self, step: StepName) -> str:
        """Return the reason why a step cannot be entered yet, such as "measure first"; "" if it can be entered."""
        progress = self.progress
        # The user may have removed a run from the session meanwhile.
        live = {slot: ident for slot, ident in progress.runs.items() if self._context.runs.run(ident) is not None}
        return blocked(self.chapter, dataclasses.replace(progress, runs=live), step, self.host.rehearsed)

    def go(self, step: StepName) -> None:
        """Enter a step, and save the progress. Raise WorkshopError with the reason of :meth:`blocked`.

        If the learner goes from ``apply`` to ``again``, this counts as consent to the plan. Writes that the learner has
        made by hand then count as applied. If the learner goes past ``diagnose`` without naming a cause, this is noted.
        """
        reason = self.blocked(step)
        if reason:
            raise WorkshopError(f"the step '{step}' cannot begin yet", reason)
        if self.by_hand.opened and not self.by_hand.restoring and step != "apply":
            self.adopt()
        if STEPS.index(self.current) <= STEPS.index("diagnose") < STEPS.index(step):
            self.diagnosis.skip()
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

    def plan(self) -> PlanView:
        """Return the chapter's plan: the writes that :meth:`apply` makes, or a CPU for each thread. Raise HostError if
        no plan is possible on this host."""
        self.host.keep_up()
        return self.host.plan() if self.chapter.changes == "tunables" else self.cpus.plan()

    def apply(self, shown: PlanView | None = None) -> ApplyView:
        """Make the writes that :meth:`plan` shows, and return the host's state after them. With ``shown``, make only
        the writes of ``shown``, even if :meth:`plan` would now show other writes. The settings last while the workshop
        is open. Raise HostError without root's rights, or if the chapter is taught on a recording.
        """
        view = self.host.apply(shown)
        progress = self.progress
        if view.needs_reboot:
            progress = dataclasses.replace(progress, reboot_from=self.host.boot_id)
        self._save(dataclasses.replace(progress, marks={**progress.marks, **self.runs.marks(progress)}))
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

    def restore(self) -> RestoreResult:
        """Restore this chapter's settings, and update its marks. Raise HostError if this fails, or on a recorded
        host."""
        result = self.host.restore()
        self.by_hand.close()
        self._mark_again(entered=True)
        return result

    def note_restored(self, tunables: Collection[str]) -> None:
        """Update this chapter's marks after another part of the workshop has restored these tunables."""
        if not set(self.host.ids).isdisjoint(tunables) and self.progress != ChapterProgress():
            self._mark_again(entered=False)

    def _mark_again(self, *, entered: bool) -> None:
        """Set the marks again from the host's present state, after settings were restored."""
        waits_for = self.progress.reboot_from if self.host.applied else None
        progress = dataclasses.replace(self.progress, reboot_from=waits_for)
        progress = dataclasses.replace(progress, marks={**progress.marks, **self.runs.marks(progress)})
        self._context.save_progress(self.chapter.id, progress, entered=entered)

    def rebooted(self) -> str:
        """Return a sentence on the reboot that this chapter needs; "" if it needs none. Before the reboot, the sentence
        asks for the reboot. After the reboot, it tells if the boot parameters are in effect, and the marks are
        updated."""
        waiting = self.progress.reboot_from
        if waiting is None:
            return ""
        if self.host.awaits_reboot:
            return f"This chapter's boot parameters are written: {REBOOT}."
        settled, told = self.host.boots.told(self.host.settled())
        marked = {**self.progress.marks, "setting": settled}
        self._save(dataclasses.replace(self.progress, marks=marked, reboot_from=None))
        return told

    def record(self, slot: str, run: Run) -> None:
        """Store a run in a slot, set the marks and save the progress. An incomplete run fills no slot."""
        self._context.remember(run)
        if not run.complete:
            return
        progress = self.progress
        if slot == CONTROL:
            # The first of the runs without the noise, to which the learner can switch.
            self._save(dataclasses.replace(progress, other_runs={**progress.other_runs, SLOTS[0]: run.id}))
            return
        runs = {**progress.runs, slot: run.id}
        progress = dataclasses.replace(progress, runs=runs)
        earned = self.runs.marks(progress)
        if progress.marks.get("setting") and self.chapter.changes == "tunables":
            earned["setting"] = True  # the setting was verified; only a restore in this chapter takes the mark away
        self._save(dataclasses.replace(progress, marks={**progress.marks, **earned}))

    def drawn_cpus(self, step: StepName) -> CpuView | None:
        """Return the CPUs that a step's page draws. Return None if the page draws none, or if they cannot be read."""
        with contextlib.suppress(HostError):
            return self.cpus.view() if TOPOLOGY in self.page(step) else None
        return None

    @property
    def hints_are_over(self) -> bool:
        """Return True if the chapter's hints are not useful any more, because the guess is decided. Always return False
        in a chapter with a hunt: its hints are also about the hidden noise."""
        task = self.chapter.prediction
        if task is None or self.chapter.hunt:
            return False
        return not self.guess.awaits_change and (self.guess.measured or self.guess.outcome() is not None)

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
