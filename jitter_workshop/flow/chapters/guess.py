"""Store the learner's guess in a chapter, and judge it by the run that decides it."""

from __future__ import annotations

import dataclasses

from jitter_workshop.course.checks import without_change
from jitter_workshop.course.guesses import MeasuredAnswers, by_curve, guess_can_be_judged, measured_answers, outcome
from jitter_workshop.errors import UsageError
from jitter_workshop.flow.chapters.cause_times import times_of_causes
from jitter_workshop.flow.chapters.chapter_host import ChapterHost
from jitter_workshop.flow.chapters.measuring import ChapterMeasuring
from jitter_workshop.flow.chapters.own_program import ChapterProgram
from jitter_workshop.flow.chapters.path import current_step
from jitter_workshop.flow.chapters.runs import LEFT, ChapterRuns
from jitter_workshop.flow.chapters.session_context import SessionContext
from jitter_workshop.flow.measuring.comparing import relation
from jitter_workshop.flow.measuring.curves import with_role
from jitter_workshop.flow.measuring.known_reason import reason_of
from jitter_workshop.flow.measuring.request import MeasureRequest, interval_ns, pacing
from jitter_workshop.model.course import Chapter, GuessTask
from jitter_workshop.model.run import HUNTED, Run
from jitter_workshop.model.session import Guess
from jitter_workshop.model.spec import KINDS
from jitter_workshop.model.walk import GuessOutcome, RunCurve
from jitter_workshop.report.cause_words import still_there
from jitter_workshop.stats.figures import KnownRun, figure_with_id, moved

BY_RECORDED = "The guess is judged by the recorded runs of another machine."
WITHOUT_CHANGE = (
    "Not judged: this run was made without the chapter's change. Apply the change in the step 'apply', and measure "
    "again."
)
NOT_COMPARABLE = (
    "Your guess is not judged: the two runs cannot be compared, and the step 'compare' says which one to measure again."
)
_BY_BOTH = ("falls", "factor", "ratio")
"""The ways to decide a guess by the difference between two runs."""
BY_EMULATED = "The guess is judged by the recorded counts of an emulated machine."


class ChapterGuess:
    """Hold one chapter's guess. A run of the chapter decides it: the learner's own run, or a recorded one. In a chapter
    about a program, the observation of the program decides it.
    """

    def __init__(
        self,
        chapter: Chapter,
        context: SessionContext,
        host: ChapterHost,
        runs: ChapterRuns,
        measuring: ChapterMeasuring,
        program: ChapterProgram,
    ) -> None:
        self._chapter, self._context, self._host = chapter, context, host
        self._runs, self._measuring, self._program = runs, measuring, program

    def predict(self, guess: Guess) -> None:
        """Store the learner's guess.

        The learner cannot make or change a guess after the run that decides it was made. Raise UsageError if that
        run exists, or if the lesson has no answer with the given id.
        """
        task = self._chapter.prediction
        if task is None:
            raise UsageError("this chapter asks for no guess")
        if self.measured:
            raise UsageError("the run is already measured", "a guess counts only before the result is known")
        at_once = task.slot is None and task.by is None
        answered = at_once or (self.outcome() is not None and not self.awaits_change)
        if self._runs.progress.prediction is not None and answered:
            raise UsageError("this question is answered already", "a guess counts only before the result is known")
        if task.kind == "choice" and guess.choice not in [a.id for a in task.answers]:
            raise UsageError(
                "the guess is not one of the answers", f"the answers are {', '.join(a.id for a in task.answers)}"
            )
        if task.kind == "mark":
            if guess.value_ns is None or not 1 <= guess.value_ns <= 60_000_000_000:
                raise UsageError("a guess must be a time between 1 ns and 60 s")
            guess = dataclasses.replace(guess, percentile=task.percentile)
        self._context.save_progress(self._chapter.id, dataclasses.replace(self._runs.progress, prediction=guess))

    @property
    def measured(self) -> bool:
        """Return True if the run that decides the guess was made, so that the guess cannot change any more."""
        task = self._chapter.prediction
        return task is not None and self._runs.run_in(task.slot) is not None and not self.awaits_change

    def is_open_before(self, slot: str) -> bool:
        """Return True if the run of ``slot`` would decide the guess, and the learner has not made this guess."""
        task = self._chapter.prediction
        decided = self._runs.run_in(slot) is not None
        return task is not None and task.slot == slot and not decided and self._runs.progress.prediction is None

    @property
    def awaits_change(self) -> bool:
        """Return True if the guess is about the chapter's change, and the run ``again`` was made without the change."""
        task = self._chapter.prediction
        run = self._runs.run_in(task.slot) if task is not None and task.slot == "again" else None
        return run is not None and without_change(self._chapter, run)

    def outcome(self) -> GuessOutcome | None:
        """Return the result of the guess.

        Return None if there is no guess, or if the run that decides it was not made yet. A guess about the
        chapter's change is not judged by a run that was made without the change.
        """
        task, guess = self._chapter.prediction, self._runs.progress.prediction
        if task is None or guess is None:
            return None
        if self._chapter.program:
            return self._program.outcome(task, guess)
        if self.decided_by_recording:
            return self._outcome_on_recording(task, guess)
        run = self._runs.run_in(task.slot)
        if self.awaits_change:
            return GuessOutcome(WITHOUT_CHANGE, None, "", guess.value_ns, None)
        asked = self._chapter.measurement(task.slot) if task.slot is not None else None
        if run is not None and asked is not None and run.workload != asked.workload and task.kind == "mark":
            text = (
                f"Your guess was about the workload '{asked.workload}', but '{run.workload}' was measured, so the "
                "guess is not judged."
            )
            return GuessOutcome(text, None, "", guess.value_ns, None)
        first = self._runs.run_in("measure")
        before = None if first is None else self._runs.seen(first)
        seen = None if run is None else self._runs.seen(run)
        found = outcome(task, guess, seen, before, self._chapter.shows)
        if found is not None and task.by in _BY_BOTH and self._cannot_be_compared(task, before, seen):
            return GuessOutcome(NOT_COMPARABLE, None, "", guess.value_ns, None)
        if found is not None and found.near is None and before is not None and seen is not None and seen.timeless:
            found = dataclasses.replace(found, text=f"{found.text} {self._told_instead(before, seen)}".rstrip())
        if found is None or seen is None or LEFT not in self._chapter.evidence or not found.explanation:
            return found
        told = still_there(seen.report) if seen.report is not None else "The causes (v) show which tasks still ran."
        why, *rest = found.explanation.split("\n\n")
        return dataclasses.replace(found, explanation="\n\n".join([f"{why} {told}".rstrip(), *rest]))

    def answers(self) -> MeasuredAnswers | None:
        """Return which answers this host's runs show to be right, and the figures of the answers. Return None as long
        as the deciding run is not made, and if the runs decide nothing."""
        task = self._chapter.prediction
        run = self._runs.run_in(task.slot) if task is not None else None
        if task is None or run is None or not self.measured or self._chapter.program or self._host.rehearsed:
            return None
        first = self._runs.run_in("measure")
        before, seen = None if first is None else self._runs.seen(first), self._runs.seen(run)
        if task.by in _BY_BOTH and self._cannot_be_compared(task, before, seen):
            return None
        return measured_answers(task, seen, before, self._chapter.shows)

    def _cannot_be_compared(self, task: GuessTask, before: KnownRun | None, seen: KnownRun | None) -> bool:
        """Return True if two runs differ for a known reason other than the chapter's change, so that they cannot decide
        this guess. The comparison tells the reason. If a change was made between them, only a guess that a latency
        decides is concerned."""
        if before is None or seen is None or before.run.id == seen.run.id:
            return False
        found = relation(before.run, seen.run)
        if found == "changed" and not self._latency_decides(task, before, seen):
            return False
        return reason_of(found, before, seen, times_of_causes(before, seen, self._chapter)) is not None

    def _latency_decides(self, task: GuessTask, before: KnownRun, seen: KnownRun) -> bool:
        """Return True if a latency decides which answer is right, or if the right answer is that no figure fell."""
        shows = self._chapter.shows
        answers = measured_answers(task, seen, before, shows)
        named = {answer.id: answer.figure for answer in task.answers}
        if task.by != "falls":
            one = shows.figure if task.by == "factor" and shows is not None else task.figure
            named = dict.fromkeys(named, one)
        deciding = [named[answer] for answer in answers.right] if answers is not None else []
        return any(name is None or figure_with_id(name).unit.startswith("ns") for name in deciding)

    def _told_instead(self, before: KnownRun, seen: KnownRun) -> str:
        """Return a sentence that replaces the judgement on a guess about times. On an emulated machine, times mean
        nothing. So the sentence tells how the number of events changed from the run ``before`` to the run ``seen``.
        Return "" if a run lacks this number."""
        if before is seen or before.run.id == seen.run.id or self._runs.shows is None:
            return self._runs.unshown
        one = figure_with_id(self._runs.shows.figure)
        return "" if None in (one.of(before), one.of(seen)) else moved(one, before, seen)

    @property
    def decided_by_recording(self) -> bool:
        """Return True if a run that was recorded on another machine decides the guess. If the learner marked a point on
        a curve, the run's curve decides. If the learner chose an answer, a figure of the run decides.
        """
        task = self._chapter.prediction
        if task is None or not self._host.rehearsed:
            return False
        if task.kind == "mark":
            return self._judging_curve(task) is not None
        return task.by is not None and guess_can_be_judged(task, *self._decisive(task), self._chapter.shows)

    def _decisive(self, task: GuessTask) -> tuple[KnownRun | None, KnownRun | None]:
        """Return the run that decides a guess, and the run of ``measure``. Each is None if it does not exist."""
        return None if task.slot is None else self._runs.known(task.slot), self._runs.known("measure")

    def _outcome_on_recording(self, task: GuessTask, guess: Guess) -> GuessOutcome | None:
        """Return the judgement on a guess by a run that was recorded on another machine. Return None if the learner has
        not seen this run yet."""
        slot = task.slot
        if slot is None or not (
            slot in self._runs.progress.seen
            or current_step(self._chapter, self._runs.progress) in (slot, "compare", "explain")
        ):
            return None
        if task.kind == "choice":
            found = outcome(task, guess, *self._decisive(task), self._chapter.shows)
            by = BY_EMULATED if self._runs.counted_elsewhere(slot) else BY_RECORDED
            return None if found is None else dataclasses.replace(found, text=f"{found.text} {by}")
        shown = self._judging_curve(task)
        return None if shown is None else by_curve(task, guess, shown.curve)

    def _judging_curve(self, task: GuessTask) -> RunCurve | None:
        """Return the recorded curve that decides a guess marked on a curve; None if there is none."""
        if task.slot is None or not (shown := self._runs.recorded_curves(task.slot)[0]):
            return None
        both = self._chapter.measurement("measure") is not None and self._chapter.measurement("again") is not None
        return None if task.slot == "again" and both and len(shown) < 2 else shown[-1]

    def last_curve(self) -> RunCurve | None:
        """Return the learner's newest curve of the quantity that the guess is about; None if there is none. The run may
        be from any chapter, but never one with a hidden noise."""
        task = self._chapter.prediction
        asked = self._measuring.asked(task.slot) if task is not None else None
        every = self._context.runs.every() if asked is not None else ()
        alike = [r for r in every if asked is not None and _measures_same(r, asked)]
        shown = self._context.runs.curve(alike[-1]) if alike else None
        return None if shown is None else named_last(shown)


def named_last(shown: RunCurve) -> RunCurve:
    """Return a curve of an earlier run of the learner, with a name and a role that say so."""
    label = f"your last: {shown.label}"
    last = dataclasses.replace(shown, label=label, curve=dataclasses.replace(shown.curve, label=label))
    return with_role(last, "earlier")


def _measures_same(run: Run, asked: MeasureRequest) -> bool:
    """Return True if a complete run measured the quantity of a requested run: by the same workload and pacing, and with
    the same use of memory, lock and duty. A run with a hidden noise counts as another one."""
    if not run.complete or HUNTED in run.notes or run.workload != asked.workload:
        return False
    paced = not KINDS[asked.workload].paced or (run.pacing, run.interval_ns) == (pacing(asked), interval_ns(asked))
    use = (run.memory or "none", run.lock or "none", run.duty)
    return paced and use == (asked.memory, asked.lock, asked.duty)
