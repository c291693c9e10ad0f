"""Hold what the steps of a chapter share line by line: the terminal, the plan that was shown, and the sentences that
several steps print."""

from __future__ import annotations

from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.model.course import StepName
from jitter_workshop.model.walk import PlanView
from jitter_workshop.plain.by_hand import PlainByHand
from jitter_workshop.plain.talk import Talk
from jitter_workshop.presenter.course.path import guess_sign, mark
from jitter_workshop.presenter.host import plan as plan_view
from jitter_workshop.presenter.runs import curves
from jitter_workshop.presenter.text.cpu_boxes import boxes, of_settings
from jitter_workshop.presenter.text.lines import Lines
from jitter_workshop.presenter.text.styled import Text


class PlainPage:
    """Hold the state that all steps of a chapter share. ``shown``: the plan to which the learner agrees with Enter;
    None if the plan has to be shown first. ``by_hand``: the writes that the learner makes."""

    def __init__(self, workshop: Workshop, walk: ChapterWalk, talk: Talk) -> None:
        self.workshop = workshop
        self.walk = walk
        self.talk = talk
        self.shown: PlanView | None = None
        self.by_hand = PlainByHand(workshop, walk, talk)

    def plan(self) -> Lines:
        """Return the lines of the plan. If the learner presses Enter after this, the learner agrees to this plan."""
        self.shown = self.walk.plan()
        view, width, planned = self.walk.cpus.view(), self.talk.width, self.shown.changes
        if self.walk.chapter.changes == "tunables":
            drawn = of_settings(view, width, planned, ascii_only=True)
        else:
            drawn = boxes(view, width, ascii_only=True)
        return [*([*drawn, Text()] if drawn else []), *plan_view.plain_plan_lines(self.shown, self.talk.width)]

    def tell_counted(self, step: StepName) -> None:
        """Print the name of the emulated machine that recorded the counts of a step. Print nothing if the step shows no
        such counts."""
        if source := self.walk.runs.counted_elsewhere(step):
            self.talk.tell(curves.counted_elsewhere(source))

    def tell_outcome_of(self, step: StepName) -> None:
        """Print the outcome of the guess, if the run of ``step`` decides it."""
        task = self.walk.chapter.prediction
        if task is not None and task.slot == step:
            self.tell_outcome()

    def tell_outcome(self, *, explained: bool = True) -> None:
        """Print whether the guess was right; nothing if the outcome is not known. ``explained``: True to print the
        explanation of the answer, too."""
        outcome = self.walk.guess.outcome()
        if outcome is None:
            return
        self.talk.say("")
        sign = guess_sign(outcome.near, beside=outcome.beside) or f"{mark(None)} "
        self.talk.tell(f"{sign}{outcome.text}", "", "  ")
        for paragraph in outcome.explanation.split("\n\n") if explained else ():
            self.talk.tell(paragraph, "  ")
