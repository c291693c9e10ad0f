"""Define a class for each step of a chapter, with the step's content, its keys and their work."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, cast

from jitter_workshop.chart.gap import Gap
from jitter_workshop.chart.style import ChartPoint
from jitter_workshop.errors import HeldError, WorkshopError
from jitter_workshop.flow.chapters import cure
from jitter_workshop.flow.chapters.chapter_host import NOT_WRITTEN
from jitter_workshop.flow.chapters.commands import HandCommands
from jitter_workshop.flow.chapters.kept_settings import KeptSettings, hinders_lesson, kept_settings
from jitter_workshop.flow.measuring.curves import ORIGIN
from jitter_workshop.flow.measuring.placement_plan import placed_threads, same_writes
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.flow.measuring.run_length import chapter_length_sentences, expected_rate
from jitter_workshop.model.course import OPEN, SLOTS, TREATED, StepName
from jitter_workshop.model.effect import CauseTime, Effect, Effects, KnownReason, Relation
from jitter_workshop.model.judgement import PairJudgement
from jitter_workshop.model.proof import Proof
from jitter_workshop.model.session import Guess
from jitter_workshop.model.text import REASON, SENTENCE, clean, cleaned_sentence
from jitter_workshop.model.walk import BootWay, CompareView, CureView, RunCurve
from jitter_workshop.presenter.course import chapter as chapter_view
from jitter_workshop.presenter.course import hunt, keys_that_wait, masks
from jitter_workshop.presenter.course.chapter import Fold
from jitter_workshop.presenter.course.kept_settings import kept_in_brief, kept_in_short, kept_told
from jitter_workshop.presenter.course.loads import told_of_loads
from jitter_workshop.presenter.course.proof_of_isolation import NEXT, said_of_proof
from jitter_workshop.presenter.host import by_hand, changes
from jitter_workshop.presenter.host import plan as plan_view
from jitter_workshop.presenter.host.changes import RESTORED_ON_LEAVING, root_words
from jitter_workshop.presenter.host.plan import (
    NO_RIGHTS,
    PLAN_IS_ANOTHER,
    PLAN_OF_THESE_CPUS,
    TOO_EARLY,
    TOO_EARLY_TO_READ,
)
from jitter_workshop.presenter.host.status import fact_lines
from jitter_workshop.presenter.proofs import proof
from jitter_workshop.presenter.runs import (
    causes,
    curves,
    effect,
    effect_table,
    effect_words,
    large_figure,
    one_run,
    result_table,
)
from jitter_workshop.presenter.runs.control_run import is_disturbed
from jitter_workshop.presenter.runs.curves import percentile_table
from jitter_workshop.presenter.runs.effect import Result
from jitter_workshop.presenter.runs.omission import correction_told, titles_of, to_repeat
from jitter_workshop.presenter.runs.run import about_to_measure, judging_figure
from jitter_workshop.presenter.runs.unchanged import named_unchanged
from jitter_workshop.presenter.text.cpu_boxes import boxes, of_settings
from jitter_workshop.presenter.text.lines import Lines, wrap
from jitter_workshop.presenter.text.pages import in_pages, kept_together
from jitter_workshop.presenter.text.prose import styled
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.stats.curve import curve_value_at
from jitter_workshop.stats.effect import (
    MOVED,
    chapter_counts,
    count_effects,
    effect_on,
    judge_of,
    judged_effect,
    readings_apart,
    tail_of,
)
from jitter_workshop.stats.figures import KnownRun, figure_with_id, least_length_ns
from jitter_workshop.tui.background import aside
from jitter_workshop.tui.core import actions
from jitter_workshop.tui.screens.chapter.hunting import CURES, HuntRole, StepHunt
from jitter_workshop.tui.screens.chapter.masking import MaskPage
from jitter_workshop.tui.screens.chapter.page import ChapterPage
from jitter_workshop.tui.widgets.keybar import READ_ON, Shown
from jitter_workshop.tui.widgets.sheet import Pane

FIRST_MARK_NS = 10_000
LEAST_NS, MOST_NS = 10, 10_000_000_000
FINE, COARSE = 10 ** (1 / 10), 10.0
"""The factors by which a key moves the learner's mark on the time axis: a tenth of a decade, or a whole decade."""

_NO_CHOICE = -1
"""The index that means that no answer is chosen."""
UNTOUCHED_MARK = "You have not moved the mark. ↑ ↓ ← → move it. Enter again takes it as your guess."
UNTOUCHED_CHOICE = "No answer is chosen yet. {digits} or ↑ ↓ choose one. Enter again goes on without a guess."
"""``digits``: the keys of the answers, such as 1–4."""

_AROUND_COMMANDS = 7
"""Rows of a wide screen that belong to the title, the steps, the frame of the figures, the sentences and the keys."""
_ROOMY = 44
"""The number of terminal lines from which the step ``compare`` has room for all lines of its result."""

Work = Literal[
    "stay",
    "go on",
    "leave",
    "measure",
    "measure hunted",
    "measure missing",
    "measure first",
    "measure second",
    "observe",
    "observe again",
    "apply",
    "adopt",
    "by hand",
    "hide",
    "name",
    "cure",
    "enough",
    "causes",
]
"""The work that a step asks the screen to do after a key.

- stay: none.
- go on, leave: go to the next step, or to the home screen.
- measure: make the step's run.
- measure hunted: make the run beside the hidden noise once more.
- measure missing: go to the first step whose run is missing, and make that run.
- measure first, measure second: go to the step of the first or the second run, and make that run again.
- observe, observe again: observe the learner's program at this step, or go to the step that does so.
- apply: make the changes of the plan on the screen.
- by hand, adopt: begin or stop watching the writes that the learner makes by hand, or record these writes.
- hide, name, cure, enough: ask to hide a noise, name the hidden noise, try something against it, or end it.
- causes: show what took the time.
"""


WORK_OF_KEYS: dict[str, Work] = {
    "by_hand": "by hand",
    "hunt": "hide",
    "name": "name",
    "cure": "cure",
    "prove": "stay",
    "imported": "stay",
}
"""For keys whose work is the same at nearly every step: the work for the screen."""

NOT_HERE = {
    "fold": keys_that_wait.NO_FOLD,
    "mask": keys_that_wait.NO_MASK,
    "every": keys_that_wait.NO_GROUP,
}
"""For keys that few steps use: the reason why they do nothing at the other steps."""


@dataclasses.dataclass(frozen=True)
class StepLayout:
    """Say which parts of the screen a step uses now.

    ``opens_with_page``: the lesson's page is shown before the step's figures. ``alone``: a narrow screen shows the
    figures without the lesson's page above them. ``chart``: the chart is shown. ``both``: chart and figures are shown
    together, without the lesson's page above the figures. ``under``: if the figures or the page leave the lower part of
    a large screen empty, the learner's newest curves are drawn there.
    """

    opens_with_page: bool = False
    alone: bool = False
    chart: bool = False
    both: bool = False
    under: bool = False


@dataclasses.dataclass(frozen=True)
class EnterKey:
    """Say what Enter does now, when the step's figures are shown. ``label``: the key's label. ``acts``: True if Enter
    does more than leave a text. ``waits``: True if Enter does nothing, because the step's figures are not ready."""

    label: str
    acts: bool = False
    waits: bool = False


@dataclasses.dataclass(frozen=True)
class StepKeys:
    """Hold the keys of a step that the footer shows. ``before_enter``: the keys that come before Enter, because what
    they do is better than to go on. ``first``: the most important keys, which follow Enter. ``last``: the keys that
    follow the chart's keys. ``again``: True if the step's run exists, and can be made again."""

    first: Sequence[Shown] = ()
    last: Sequence[Shown] = ()
    again: bool = False
    before_enter: Sequence[Shown] = ()


@dataclasses.dataclass(frozen=True)
class Drawing:
    """Hold what the chart shows beside the curves. ``marks``: the guess, if it is a mark. ``between``: the indices of
    the curves before and after the change, if the space between them is shaded. ``gap``: the distance of two curves at
    the percentile of the guess."""

    marks: Sequence[ChartPoint] = ()
    between: tuple[int, int] | None = None
    gap: Gap | None = None


class Step:
    """Define the default behaviour of a step. By default, a step shows no figures. Each step of a chapter is a
    subclass. ``name``: the step's name."""

    work_label = "plan"
    """The label of the key that switches from the lesson's page to the figures."""
    after_change = False
    """True for the steps after a change."""
    before_guess = False
    """True for the steps at which the learner has not left the chapter's question behind."""
    shows_plan = False
    """True if the step shows the plan of a change, and can make the change."""
    shows_commands = False
    """True if the step shows the by-hand commands, and checks which of them the learner has run."""
    guessing = False
    """True if the learner guesses at this step."""
    tells_guess = False
    """True if the step tells the outcome of the guess, though its own run does not decide it."""
    draws_imports = False
    """True if the chart shows imported curves, if the learner wants them."""
    names_table = "table"
    """The words at the key t, which shows the numbers in place of the chart."""
    in_hunt = HuntRole()
    """The role of the step in a hunt for a noise."""

    def __init__(self, page: ChapterPage, name: StepName) -> None:
        self.page = page
        self.walk = page.walk
        self.screen = page.screen
        self.name = name
        self.hunt = StepHunt(page, self.in_hunt, after_change=self.after_change)

    # -- what it is about ------------------------------------------------------------------------------------------

    @property
    def strayed(self) -> bool:
        """Return True if the step compares two runs between which settings changed that are not the chapter's."""
        return False

    @property
    def on_screen(self) -> bool:
        """Return True if this step is the one on the screen."""
        return self.page.step == self.name

    def enter(self) -> None:
        """Begin a visit of the step."""
        self.page.table = False
        self.page.view = "lesson" if self.layout.opens_with_page and self.walk.page(self.name) else "work"

    def look_again(self) -> None:
        """Read the data that the step shows. The screen calls this before it draws the step."""

    def resumed(self) -> None:
        """Read the step's data again after another screen was closed. The other screen may have added a proof, for
        example."""

    @property
    def layout(self) -> StepLayout:
        """Return which parts of the screen the step uses now."""
        return StepLayout(chart=self._recorded_chart, under=True)

    @property
    def _recorded_chart(self) -> bool:
        """Return True if the chart shows curves that were recorded on another machine."""
        return not self.page.table and self.walk.host.rehearsed and bool(self.page.recorded()[0])

    @property
    def gives_back(self) -> tuple[str, ...]:
        """Return the ids of the settings of earlier chapters that the restore key restores at this step; () for
        none."""
        return ()

    @property
    def reading_first(self) -> bool:
        """Return True if the page is shown now on a narrow screen, and Enter switches to the figures."""
        return not self.screen.wide and self.page.view == "lesson" and self.layout.alone

    @property
    def to_read_first(self) -> Sequence[str]:
        """Return the panes that Enter first scrolls to their ends, as selectors. There is one rule for all steps and
        all sizes of a screen: Enter leaves no text, agrees to no write, and skips no question that was not seen to
        its end. It reads on first, the footer says ``read on``, and the line of the steps says ``page 1 of 2``. A
        single run without a write begins at once, and PgDn reads on.

        By default these are the lesson and the figures, if Enter would now only leave the shown text, else ()."""
        return ("#lesson", "#data") if self._only_reads else ()

    @property
    def reads_again(self) -> bool:
        """Return True if Enter scrolls these panes to their ends even if their text was seen already."""
        return False

    @property
    def _only_reads(self) -> bool:
        if (self.page.view != "lesson" or self.screen.wide) and self.layout.chart:
            return False
        enter = self.enter_key
        return not (enter.acts or enter.waits)

    # -- what it shows ---------------------------------------------------------------------------------------------

    def curves(self) -> list[RunCurve]:
        """Return the curves to draw in the chart, in the order of the legend. On a recorded host, these are only the
        recorded curves, except at the step at which the learner guesses."""
        if self.walk.host.rehearsed and not self.guessing:
            return list(self.page.recorded()[0])
        return self.page.curves(imports=self.draws_imports, last=self.draws_last)

    @property
    def draws_last(self) -> bool:
        """Return True if the chart shows the learner's last run of the same workload until this chapter has a run."""
        return False

    def drawing(self) -> Drawing:
        """Return what the chart shows beside the curves."""
        return Drawing(self._kept_mark)

    @property
    def _kept_mark(self) -> Sequence[ChartPoint]:
        """Return the learner's guess as a mark for the chart; () if the guess is not a mark."""
        task, kept = self.walk.chapter.prediction, self.walk.progress.prediction
        if task is None or task.kind != "mark" or kept is None or kept.value_ns is None:
            return ()
        return [(float(task.percentile or "99.9"), kept.value_ns)]

    def below_lesson(self, width: int) -> Lines:
        """Return the lines below the lesson's page, where the page is alone on the screen."""
        return []

    def below_figures(self, width: int) -> Lines:
        """Return the lines below the figures. They stay in sight while the figures are scrolled."""
        return []

    def question(self, width: int) -> Lines:
        """Return the question that stands above the chart; [] if there is none."""
        return []

    def below_chart(self, width: int) -> Lines | None:
        """Return the lines to show below the chart in place of the figures. Return None to show the figures."""
        return None

    def figures(self, width: int) -> Lines:
        """Return the step's figures, or the error that explains why there are none."""
        try:
            return self._lines(width)
        except WorkshopError as error:
            return wrap(Text(clean(error.sentence(), SENTENCE), "bold bad"), width, "! ")

    def _lines(self, width: int) -> Lines:
        """Return the step's figures. Raise WorkshopError if they cannot be read."""
        return []

    def result(self, width: int) -> Result:
        """Return the step's result, the only emphasised text of the screen. It has no lines if there is no result
        yet."""
        return Result([])

    def headline(self) -> tuple[str, str]:
        """Return the figure of the result, which is shown reversed, and a name for its style: ``dim`` before it is
        firm. Return ("", "") if there is no such figure."""
        return "", ""

    def table(self, width: int) -> Lines:
        """Return the numbers behind the chart, as a table."""
        return percentile_table(self.curves(), width)

    def said(self) -> list[str]:
        """Return the sentences above the keys."""
        return []

    def said_of_recording(self) -> list[str]:
        """Return sentences that say what this step does not do on a recording. Return [] for steps that only show
        something."""
        return []

    def judged_on_recording(self) -> list[str]:
        """Return sentences on the learner's answer. The answer was judged by a run that was made on another machine.
        Return [] if the learner gave no answer.
        """
        return []

    @property
    def names_told(self) -> set[str]:
        """Return the names of the figures that the step's result shows; an empty set at steps without a result."""
        return set()

    def verdict(self, width: int) -> Lines:
        """Return lines that say if the learner's guess was near the result, and why. Return [] at steps that do not
        judge the guess."""
        task, outcome = self.walk.chapter.prediction, self.walk.guess.outcome()
        decides = task is not None and self.name == task.slot
        if task is None or outcome is None or not (decides or self.tells_guess):
            return []
        rehearsed = self.walk.host.rehearsed
        if rehearsed and not self.walk.guess.decided_by_recording:
            return []
        # On a small screen of a recorded host the banner takes the room of the reason. The reason is told once.
        explained = decides and (self.screen.tall or not rehearsed)
        return chapter_view.judged_guess(outcome, width, explained=explained, told=self.names_told)

    # -- keys ------------------------------------------------------------------------------------------------------

    @property
    def enter_key(self) -> EnterKey:
        """Return what Enter does now."""
        return EnterKey(self._going_on)

    @property
    def _going_on(self) -> str:
        """Return the label for Enter if it leaves the step."""
        if self.hunt.to_name:
            return "name it"
        if self.hunt.to_cure:
            return CURES
        return "finish" if self.name == self.walk.chapter.steps[-1] else "go on"

    def pressed_enter(self) -> Work:
        """Do the step's work for Enter when the step's figures are shown, and return the work for the screen. Raise
        WorkshopError if the work fails."""
        return "name" if self.hunt.to_name else "cure" if self.hunt.to_cure else "go on"

    def figures_opened(self) -> None:
        """Do what is needed when the screen has changed to the step's figures. It showed the lesson's page or the
        chart before.
        """

    def keys(self) -> StepKeys:
        """Return the keys of the step that the footer shows."""
        return StepKeys()

    @property
    def noise_key(self) -> Shown:
        """Return the key that switches the noise of the chapter's runs off, or on."""
        return "chapter.noise", "without noise" if self.walk.noise.on else "with noise"

    def vertical(self, direction: int) -> bool:
        """Handle an arrow up (+1) or down (-1). Return False if the step does not use the arrow; the screen then
        scrolls.
        """
        return False

    def sideways(self, direction: int) -> bool:
        """Handle an arrow left (-1) or right (+1). Return False if the arrow is to highlight a curve."""
        return False

    def digit(self, index: int) -> bool:
        """Handle a key 1 to 9, given as an index from 0. Return False if the step does not use the key; the screen
        then highlights a curve.
        """
        return False

    # -- what the keys do ------------------------------------------------------------------------------------------

    def press(self, key: str) -> Work:
        """Do the step's work for a key, and return the work for the screen. ``key``: the key's name in the table of
        actions. If the step has a method ``key_…`` with this name, the method does the work. Raise WorkshopError if the
        work fails.
        """
        if (own := getattr(self, f"key_{key}", None)) is not None:
            return cast(Callable[[], Work], own)()
        return WORK_OF_KEYS[key] if key in WORK_OF_KEYS else self._only_tell(NOT_HERE[key])

    def _only_tell(self, why: str) -> Work:
        """Show the reason why a key does nothing at this step."""
        self.screen.tell(why)
        return "stay"

    def holds_before(self, step: StepName) -> bool:
        """Return True if the learner has to agree to something new before going from here to ``step``. If so, this is
        shown."""
        return False

    def key_enter(self) -> Work:
        """Switch from the lesson's page to the figures. If they are shown already, do the step's work."""
        if not self.reading_first:
            return self.pressed_enter()
        # A sentence about a key of the page is old here, and would hide what the step says.
        self.screen.said = ""
        self.page.view = "work"
        self.figures_opened()
        self.screen.redraw()
        return "stay"

    def key_boots(self) -> Work:
        """Go on without the name of a hidden noise, end a noise that was named, or do what Enter does if this only
        leaves the step."""
        if self.hunt.to_name:
            return "go on"
        if self.hunt.to_cure:
            return "enough"
        enter = self.enter_key
        if not (enter.acts or enter.waits):
            return self.key_enter()
        return self._only_tell(keys_that_wait.NO_BOOT if self.walk.chapter.reboot else keys_that_wait.NO_SKIP)

    def key_again(self) -> Work:
        """Make a run from a step that has none of its own."""
        hunts = self.page.workshop.hunts
        if self.walk.chapter.program:
            return "observe again"
        # Beside the noise that runs now, wherever the learner has read on to.
        hunted = self.walk.hunts and hunts.hiding and self.walk.runs.run_in("again") is not None
        return "measure hunted" if hunted else "measure missing"

    def key_causes(self) -> Work:
        """Show what took the time, after a change or in a hunt."""
        rehearsed = self.walk.host.rehearsed
        if rehearsed or not (self.after_change or self.walk.hunts):
            answered = self.walk.diagnosis.answered() is not None
            return self._only_tell(keys_that_wait.why_no_causes(rehearsed, self.name, answered=answered))
        return "causes"

    @property
    def _proven(self) -> str:
        """Return the verdict on whether other tasks ran on the measured CPU; "" if the lesson asks for none."""
        return said_of_proof(self.walk, self.page.workshop.course)

    @property
    def _told_keys(self) -> list[Shown]:
        """Return the keys that this verdict names."""
        return [("chapter.causes", "")] if NEXT in self._proven else []

    def key_cpus(self) -> Work:
        """Open the page for choosing CPUs."""
        if self.walk.chapter.changes != "placement":
            return self._only_tell(keys_that_wait.NO_CPUS)
        from jitter_workshop.tui.screens.host.cpus import CpuPicker

        before = self.walk.progress.chosen_cpus
        picker = CpuPicker(self.walk, self.page.workshop.context.topology)
        self.screen.app.push_screen(picker, partial(self._cpus_chosen, before))
        return "stay"

    def _cpus_chosen(self, before: dict[str, int], _: object = None) -> None:
        """Drop the old plan if the user has chosen other CPUs. ``before``: the CPUs of each thread before the choice.

        A new plan is then shown, and the user has to agree to the new plan with Enter.
        """
        if self.walk.progress.chosen_cpus != before:
            self.page.planned = None
            self.page.tell_work(PLAN_OF_THESE_CPUS if self.shows_plan else "", to="plan" if self.shows_plan else None)

    def _open_proof(self, newest: Proof | None) -> Work:
        """Open the newest proof of this chapter. If there is no proof, show the cost of a first one."""
        from jitter_workshop.flow.proving.chapter_proof import why_no_proof
        from jitter_workshop.tui.screens.proving import ProvingScreen

        reason = why_no_proof(self.page.workshop, self.walk)
        if reason and newest is None:
            return self._only_tell(f"There is nothing to prove: {reason}.")
        self.screen.app.push_screen(ProvingScreen(self.walk, newest))
        return "stay"

    def key_copy(self) -> Work:
        """Copy the commands that are on the screen: the command that mounts the kernel's trace, the lines that are
        left to type, or the step's own commands."""
        page = self.page
        if page.offers_mount and page.workshop.context.mount_command:
            self.screen.copy([page.workshop.context.mount_command], "The command is")
        elif page.by_hand is not None:
            left = [one.command for one in page.by_hand.lines if one.state not in ("done", "gone")]
            self.screen.copy(left, "The lines that are left to type are")
        elif commands := self.commands():
            self.screen.copy(commands, "The commands are")
        else:
            return self._only_tell(keys_that_wait.NO_COPY)
        return "stay"

    def commands(self) -> list[str]:
        """Return the step's own commands to copy; [] if it has none."""
        return []

    def key_without(self) -> Work:
        """Go to the next step without a name for the hidden noise."""
        return "go on" if self.hunt.to_name else "stay"

    def key_enough(self) -> Work:
        """End the noise that the learner has named."""
        return "enough" if self.hunt.to_cure else "stay"


class BeforeRun(Step):
    """Be a step before the first run. Each of them names, and restores, settings of earlier chapters that hinder it."""

    before_guess = True

    @property
    def kept(self) -> KeptSettings | None:
        """Return the settings of earlier chapters that are best restored before the learner guesses."""
        return hinders_lesson(self.page.workshop, self.walk)

    @property
    def gives_back(self) -> tuple[str, ...]:
        kept = self.kept
        return kept.to_give_back if kept is not None else ()

    @property
    def restore_key(self) -> list[Shown]:
        """Return the key that restores these settings; [] without them."""
        return [("chapter.restore", "")] if self.gives_back else []


class Look(BeforeRun):
    """Show the facts about this host that matter for the chapter."""

    in_hunt = HuntRole(remembers=3, tells_standing=False)

    def _lines(self, width: int) -> Lines:
        title = "ON THE RECORDING" if self.walk.host.rehearsed else "ON THIS HOST"
        airy = self.screen.wide and self.screen.tall
        return fact_lines(self.walk.host.look(), width, title, airy=airy)

    def said(self) -> list[str]:
        return [*filter(None, (kept_told(self.kept, "u"),))]

    def keys(self) -> StepKeys:
        return StepKeys(self.restore_key)


_AROUND_PAGE, _BESIDE_PAGE = 5, 3
"""The rows of a narrow screen around the lesson's page: title, steps, rules and keys; and the columns beside it."""
_LEAST_PAGE = 8
"""The least number of rows of a page above a question that stays in sight. With fewer rows, the question is scrolled
with the page."""


class Predict(BeforeRun):
    """Let the learner guess, by a mark on the chart or by an answer."""

    work_label = "question"
    guessing = True

    def __init__(self, page: ChapterPage, name: StepName) -> None:
        super().__init__(page, name)
        self.mark_ns = FIRST_MARK_NS
        self.choice = _NO_CHOICE
        self._chosen = False
        """True if the guess is the learner's: kept before, chosen at this visit, or agreed to by a second Enter."""
        self._stays = False
        """True if question and answers stay in sight while the lesson's page above them is scrolled."""

    def enter(self) -> None:
        task, kept = self.walk.chapter.prediction, self.walk.progress.prediction
        if kept is not None and kept.value_ns is not None:
            self.mark_ns = kept.value_ns
        elif (last := self.walk.guess.last_curve() if self.page.marking else None) is not None:
            # The value that this host showed last time is the best first guess.
            own = curve_value_at(last.curve, float(task.percentile or "99.9")) if task is not None else None
            self.mark_ns = own or FIRST_MARK_NS
        if kept is not None and task is not None and kept.choice is not None:
            self.choice = next((i for i, a in enumerate(task.answers) if a.id == kept.choice), _NO_CHOICE)
        self._chosen = kept is not None
        super().enter()

    @property
    def layout(self) -> StepLayout:
        return StepLayout(
            opens_with_page=not self.page.lock_reason and self.page.marking,
            alone=self.walk.chapter.prediction is not None and not self._below_page,
            chart=not self.page.table and self.page.marking,
            under=not self.page.marking,
        )

    @property
    def _below_page(self) -> bool:
        """Return True if the question stands below the lesson's page: on a narrow screen, as long as an answer can be
        chosen."""
        return not (self.screen.wide or self.page.marking or self.page.lock_reason)

    def look_again(self) -> None:
        """Keep the question in sight, below a page that is scrolled, if page and question do not fit together."""
        self._stays = False
        if not self._below_page:
            return
        width, screen = self.screen.size.width - _BESIDE_PAGE, self.screen
        others = (screen.sheet("#recorded").lines(width), screen.sheet("#class-line").lines(width))
        said = list(screen.say_lines(screen.size.width - 2))
        rows = screen.size.height - _AROUND_PAGE - len(said) - sum(len(lines) for lines in others)
        page, asked = self.page.lesson(width), self._asked(width)
        whole, _ = in_pages([*page, Text(), *asked], rows)
        self._stays = bool(page) and len(whole) > rows and rows - len(asked) - 1 >= _LEAST_PAGE

    @property
    def _out_of_sight(self) -> bool:
        """Return True if the question stands on one sheet with the lesson's page, and its last answer is below the
        screen."""
        return self._below_page and not self._stays and self.screen.query_one("#data", Pane).more_below

    @property
    def to_read_first(self) -> Sequence[str]:
        return ("#data",) if self._below_page else super().to_read_first

    @property
    def reads_again(self) -> bool:
        # Enter skips no question of which an answer is out of sight.
        return self._below_page and not self._stays and self.choice == _NO_CHOICE

    def figures_opened(self) -> None:
        """Scroll to the question, if it stands on one sheet with the lesson's page."""
        if self._below_page and not self._stays:
            self.screen.query_one("#data", Pane).scroll_end(animate=False)

    @property
    def draws_last(self) -> bool:
        return self.page.marking

    @property
    def _open(self) -> bool:
        return self.walk.chapter.prediction is not None and not self.page.lock_reason and not self.reading_first

    def drawing(self) -> Drawing:
        task = self.walk.chapter.prediction
        marking = task is not None and task.kind == "mark" and not self._missed
        return Drawing([(float(task.percentile or "99.9"), self.mark_ns)] if task is not None and marking else ())

    @property
    def _missed(self) -> bool:
        """Return True if the learner made no guess and can no longer make one."""
        return bool(self.page.lock_reason) and self.walk.progress.prediction is None

    def question(self, width: int) -> Lines:
        task = self.walk.chapter.prediction
        if task is None or not self.page.marking:
            return []
        mark = None if self._missed else self.mark_ns
        published = any(shown.run is None and shown.curve.origin == ORIGIN for shown in self.curves())
        # A recorded run can have the laptop's clock.
        other_clock = published and not self.walk.host.rehearsed
        locked = bool(self.page.lock_reason)
        return chapter_view.mark_question(task, mark, locked, width, beside_laptop=other_clock)

    def below_figures(self, width: int) -> Lines:
        return self._asked(width) if self._stays else []

    def below_lesson(self, width: int) -> Lines:
        # The chart on which the guess is marked comes by the next key: its question is read with the page.
        task = self.walk.chapter.prediction
        asks = task is not None and self.page.marking and self.reading_first
        return wrap(styled(task.question, "bold text"), width) if task is not None and asks else []

    def _lines(self, width: int) -> Lines:
        return [] if self._stays else self._asked(width)

    def _asked(self, width: int) -> Lines:
        """Return the question with its answers; [] if the guess is a mark on the chart."""
        task = self.walk.chapter.prediction
        if task is None or self.page.marking:
            return []
        known = self.walk.guess.answers()
        lines = chapter_view.guess_choice_lines(task, self.choice, self.page.lock_reason, width, known)
        outcome = self.walk.guess.outcome() if self.walk.runs.run_in(task.slot) is None else None
        lines += [] if outcome is None else chapter_view.guess_outcome_lines(task, outcome, width)
        return kept_together(lines)

    def said_of_recording(self) -> list[str]:
        task = self.walk.chapter.prediction
        if task is None or task.slot is None:
            return []
        return [chapter_view.decided_on_recording(task, self.walk.guess.decided_by_recording, self.walk.host.recorded)]

    @property
    def enter_key(self) -> EnterKey:
        if self.reading_first:
            return EnterKey("to the chart" if self.page.marking else "to the question")
        if not self._open:
            return EnterKey(self._going_on)
        label = "keep guess" if self.page.marking or self.choice != _NO_CHOICE else "no guess"
        return EnterKey(label, acts=True)

    def pressed_enter(self) -> Work:
        task = self.walk.chapter.prediction
        if task is None or self.page.lock_reason:
            return "go on"
        if not self._chosen:
            self._chosen = True
            self.screen.tell(UNTOUCHED_MARK if self.page.marking else self._untouched)
            self.figures_opened()
            return "stay"
        if task.kind == "mark":
            self.walk.guess.predict(Guess(percentile=task.percentile, value_ns=self.mark_ns))
        elif self.choice == _NO_CHOICE:
            return "go on"
        else:
            self.walk.guess.predict(Guess(choice=task.answers[self.choice].id))
        if not self.page.lock_reason:
            return "go on"
        # No run decides it: say whether it was right, and why, before going on.
        self.screen.redraw()
        self.screen.query_one("#data", Pane).scroll_end(animate=False)
        return "stay"

    @property
    def _digits(self) -> str:
        """Return the digit keys of the answers, such as ``1–4``."""
        task = self.walk.chapter.prediction
        return hunt.digit_keys(len(task.answers) if task is not None else 0)

    @property
    def _untouched(self) -> str:
        return UNTOUCHED_CHOICE.format(digits=self._digits)

    def keys(self) -> StepKeys:
        asks = self.walk.chapter.prediction is not None and not self.page.marking and not self.page.lock_reason
        choosing = asks and not self._out_of_sight
        digits: list[Shown] = [("chapter.number", f"{self._digits} choose")] if choosing else []
        return StepKeys([*digits, *self.restore_key])

    def vertical(self, direction: int) -> bool:
        # As long as the page has more below, an arrow scrolls it.
        unread = self._below_page and self.screen.query_one("#data", Pane).more_below
        if not self._open or (self.choice == _NO_CHOICE and unread):
            return False
        if self.page.marking:
            self._move(FINE**direction)
        else:
            # Without a choice both arrows begin at the first answer.
            self._choose(0 if self.choice == _NO_CHOICE else self.choice - direction)
            self.figures_opened()
        return True

    def sideways(self, direction: int) -> bool:
        if not self._open or not self.page.marking:
            return False
        self._move(COARSE**direction)
        return True

    def digit(self, index: int) -> bool:
        task = self.walk.chapter.prediction
        if self.page.marking or task is None or (not self.page.lock_reason and index >= len(task.answers)):
            return False
        self.page.view = "work"
        self._choose(index)
        self.figures_opened()
        return True

    def _move(self, factor: float) -> None:
        self.mark_ns = round(min(max(self.mark_ns * factor, LEAST_NS), MOST_NS))
        self._guessed()

    def _choose(self, index: int) -> None:
        task = self.walk.chapter.prediction
        if task is not None and not self.page.lock_reason and 0 <= index < len(task.answers):
            self.choice = index
            self._guessed()

    def _guessed(self) -> None:
        self._chosen = True
        # A sentence on an earlier key is old now; a hint still helps.
        if self.screen.said not in self.walk.chapter.hints:
            self.screen.said = ""
        self.screen.redraw()


class Measure(Step):
    """Show the first run of the chapter. Enter makes the run."""

    in_hunt = HuntRole(explains="measure")
    _read: MeasureRequest | None = None
    """The request on the page that Enter has turned to its end."""
    _drawn: MeasureRequest | None = None
    """The request of this drawing; None before a part of the step has asked for it."""

    def look_again(self) -> None:
        self._drawn = None

    @property
    def _request(self) -> MeasureRequest:
        """Return the request for the step's run, the same for all parts of a drawing: to make it, the host is read."""
        if self._drawn is None:
            self._drawn = self.page.request(self.name)
        return self._drawn

    @property
    def _waits(self) -> bool:
        """Return True if this host can make the step's run, which has not begun."""
        return not self.walk.host.rehearsed and self.page.run is None and self.walk.runs.run_in(self.name) is None

    @property
    def draws_last(self) -> bool:
        return not self.after_change

    @property
    def layout(self) -> StepLayout:
        if self.walk.host.rehearsed:
            return StepLayout(chart=self._recorded_chart)
        # Before the run a high screen shows the curves and the guess, which the run is about to meet.
        both = self._waits and self.screen.tall and bool(self.curves() or self._kept_mark)
        counted = self.screen.tall and bool(self._gap_rates(self.screen.size.width))
        chart = not self.page.table and (both or not self._waits)
        return StepLayout(chart=chart, both=both or counted, under=self._waits and not both)

    def _gap_rates(self, width: int) -> Lines:
        """Return the table of the run's gaps, if the lesson asks for it; [] while a run is made."""
        return [] if self.page.run is not None else chapter_view.gap_rates(self.walk, self.name, width)

    def below_chart(self, width: int) -> Lines | None:
        return self._gap_rates(width) or None

    def table(self, width: int) -> Lines:
        rates = self._gap_rates(width)
        return [*rates, *([Text()] if rates else []), *super().table(width)]

    def _lines(self, width: int) -> Lines:
        if self.walk.host.rehearsed:
            counted = bool(self.walk.runs.counted_elsewhere(self.name))
            return chapter_view.nothing_measured(self.curves(), width, counted=counted)
        request, battery = self._request, bool(self.page.workshop.context.host.on_battery)
        runs = self.page.workshop.context.runs.every()
        self._read = request
        planned = self.walk.measuring.planned_cpus(request)
        return about_to_measure(
            request,
            battery,
            width,
            chapter_length_sentences(request, runs),
            self.walk.noise.company(request),
            self.hunt.to_hide,
            self.page.asked,
            expected_rate(request, runs),
            self.walk.runs.from_due_time,
            placed_threads(planned.placement, request.workload) if planned is not None else (),
            self._repeats(request),
            kept_in_short(kept_settings(self.page.workshop, self.walk, request)),
            planned.why_outside if planned is not None else "",
            self.page.as_set(control) if (control := self.walk.measuring.control_request(self.name)) else None,
        )

    def _repeats(self, request: MeasureRequest) -> bool:
        """Return True if the chapter's first run was traced, and is judged, as this request's run will be."""
        first = self.walk.runs.run_in(SLOTS[0]) if self.after_change else None
        if first is None or first.workload != request.workload:
            return False
        return self.page.workshop.context.runs.traced(first) == request.evidence

    def result(self, width: int) -> Result:
        running, seen = self.page.run, self.walk.runs.known(self.name)
        if running is not None:
            waits = bool(running.waiting)
            now, workload, due = running.progress, running.request.workload, self.walk.runs.from_due_time
            return Result(
                one_run.unfinished_line(
                    now,
                    workload,
                    self.page.asked,
                    width,
                    waits=waits,
                    from_due_time=due,
                )
            )
        if seen is None:
            return Result([])
        key = "m" if self._to_repeat else ""
        shows = self.walk.runs.shows
        asks = self.walk.diagnosis.still_asks(self.name)
        told = one_run.result_of_one_run(seen, width, shows, self.page.asked, key, asks_causes=asks)
        return Result(told or wrap(self.walk.runs.unshown, width))

    def headline(self) -> tuple[str, str]:
        running, due = self.page.run, self.walk.runs.from_due_time
        if running is None:
            seen = self.walk.runs.known(self.name)
            return large_figure.large_value(seen, self.page.asked, from_due_time=due)
        now, workload = running.progress, running.request.workload
        return one_run.headline_so_far(now, workload, self.page.asked, from_due_time=due)

    @property
    def kept(self) -> KeptSettings | None:
        """Return the settings of earlier chapters that are still applied, as the chapter's first run tells them. The
        page of a hunt tells those that keep noises away."""
        workshop = self.page.workshop
        if self.after_change or (self.walk.hunts and workshop.hunts.kept_away_by()):
            return None
        return kept_settings(workshop, self.walk)

    @property
    def gives_back(self) -> tuple[str, ...]:
        # After this chapter's own change, the key restores that one.
        if not self._waits or self.kept is None or self.walk.host.applied:
            return ()
        return self.kept.to_give_back

    def said(self) -> list[str]:
        kept = kept_in_brief(self.kept, "u" if self.gives_back else "")
        if self.walk.runs.run_in(self.name) is None:
            return [*filter(None, (kept,))]
        offer = self.walk.noise.offer()
        return [*filter(None, (kept,)), *([f"{offer} Press w."] if offer else [])]

    @property
    def to_read_first(self) -> Sequence[str]:
        """Return the pane of the figures, too, before Enter makes a run that begins with a write, or two runs. Enter
        makes a single run without a write at once."""
        if not self._waits:
            return super().to_read_first
        if self._refused:
            return ()
        more = self._request.arrival is not None or self.walk.measuring.control_request(self.name) is not None
        return ("#data",) if more else ()

    @property
    def enter_key(self) -> EnterKey:
        if not self.walk.measuring.unmeasured(self.name):
            return EnterKey(self._going_on, acts=self._waits)
        if self._refused:
            return EnterKey("look again", acts=self._waits)
        writes = self._request.arrival is not None
        return EnterKey("measure, 1 write" if writes else "measure", acts=self._waits)

    @property
    def _refused(self) -> bool:
        """Return True if this host cannot make the step's run now, because other programs have changed it."""
        return self.walk.measuring.unmeasured(self.name) and bool(self.walk.host.reason)

    def pressed_enter(self) -> Work:
        if self._refused:
            self.page.workshop.context.look_again()
            if not self._refused:
                self.screen.redraw()
                return "stay"
        if not self.walk.measuring.unmeasured(self.name):
            return "go on"
        if self._read is not None:
            self.walk.measuring.note_shown(self._read)
        return "measure"

    def keys(self) -> StepKeys:
        made = self.walk.runs.run_in(self.name) is not None
        switches = made and not self.after_change and bool(self.walk.noise.offer())
        first: list[Shown] = [("chapter.restore", "")] if self.gives_back else []
        first += [self.noise_key] if switches else []
        if self._to_repeat:
            return StepKeys(first, before_enter=[("chapter.again", "measure again")])
        return StepKeys(first, again=made and self.walk.measuring.measures(self.name))

    @property
    def _to_repeat(self) -> bool:
        """Return True if the step's run should be made again, and can be. It sent few of the messages that are counted,
        without a known load. Or it was disturbed although it has no noise, in a chapter that judges by the due time."""
        seen, runs = self.walk.runs.known(self.name), self.walk.runs
        if seen is None or not self.walk.measuring.can_repeat(self.name):
            return False
        return to_repeat((seen,), titles_of(runs.shows)) is not None or (runs.from_due_time and is_disturbed(seen))

    def key_again(self) -> Work:
        return "measure" if self.walk.measuring.measures(self.name) else super().key_again()


class Again(Measure):
    """Show the run after the change, or beside a hidden noise. Enter makes the run; in a hunt, Enter first hides the
    noise."""

    after_change = True
    in_hunt = HuntRole(hides=True)

    def said(self) -> list[str]:
        return [self._proven] if self._proven else []

    def keys(self) -> StepKeys:
        keys = super().keys()
        return dataclasses.replace(keys, first=[*self._told_keys, *keys.first])

    @property
    def enter_key(self) -> EnterKey:
        enter = super().enter_key
        return dataclasses.replace(enter, label="hide a noise") if self.hunt.to_hide else enter

    @property
    def to_read_first(self) -> Sequence[str]:
        # A noise is hidden after a question of its own, so nothing has to be read before.
        return () if self.hunt.to_hide else super().to_read_first

    def pressed_enter(self) -> Work:
        return "hide" if self.hunt.to_hide else super().pressed_enter()

    def key_again(self) -> Work:
        hunts = self.page.workshop.hunts
        if self.walk.hunts and not hunts.hiding:
            return self._only_tell(hunt.not_beside(hunts.hunt))
        return super().key_again()


class Apply(Step):
    """Show every change of the plan before it is made. Enter makes the changes. Another key lets the learner make them
    by hand, while the workshop watches."""

    shows_plan = True
    _opened = math.inf
    """The time at which the plan was painted, by the monotonic clock; infinity before."""
    _unfolded = False
    """True if each write of a group of equal writes has its line."""

    def enter(self) -> None:
        super().enter()
        self._unfolded = False
        self.figures_opened()

    def figures_opened(self) -> None:
        # A plan can take a second to make, and what is typed meanwhile comes behind it.
        self._opened = math.inf
        self.screen.call_after_refresh(self._painted)

    def _painted(self) -> None:
        self._opened = time.monotonic()

    @property
    def layout(self) -> StepLayout:
        walk, alone = self.walk, self.walk.chapter.changes == "tunables"
        # If a change stands already, or is being typed, that is told first.
        stands = walk.host.awaits_reboot or walk.host.applied or bool(walk.by_hand.owed) or walk.by_hand.opened
        opens = alone and not self.screen.wide and not stands
        return StepLayout(opens_with_page=opens, alone=alone, chart=self._recorded_chart, under=True)

    @property
    def to_mask(self) -> bool:
        """Return True if Enter opens the page on which the learner writes the lesson's mask. The page opens only once,
        and only if no change has been made yet.
        """
        page, walk = self.page, self.walk
        begun = page.tried is not None or page.by_hand is not None or walk.host.applied or walk.host.awaits_reboot
        return walk.chapter.mask is not None and not page.mask_opened and not begun

    @property
    def _other_boots(self) -> bool:
        """Return True if the plan can be switched between one boot and every boot."""
        planned = self.walk.sets and self.page.tried is None and self.page.by_hand is None
        if not planned or self.walk.host.awaits_reboot:
            return False
        way = self.walk.host.boots.way()
        return way is not None and (way.root_first or not way.why_not)

    def _lines(self, width: int) -> Lines:
        view = self.page.by_hand
        return self._planned(width) if view is None else by_hand.by_hand_step_lines(view, width, "(y copies)")

    def _planned(self, width: int) -> Lines:
        """Return the lines of the plan. After an attempt to apply the plan, return the lines of the outcome."""
        page, walk, tried = self.page, self.walk, self.page.tried
        words = (page.planned.words if page.planned is not None else ()) or walk.chapter.tunables
        if isinstance(tried, WorkshopError):
            held = page.workshop.of_others() if isinstance(tried, HeldError) else ()
            return changes.not_applied(tried, words, width, held)
        if tried is not None:
            made, waits = walk.host.standing(), walk.host.awaits_reboot
            drawn = of_settings(walk.cpus.view(), width, made, made=not waits, waits=waits)
            return [*changes.applied_step_lines(*tried, width), *([Text(), *drawn] if drawn else [])]
        planned = page.planned = page.planned or walk.plan()
        words = (planned.words or walk.chapter.tunables) if walk.chapter.changes == "tunables" else ()
        if walk.chapter.changes == "tunables":
            made = () if planned.changes else walk.host.standing()
            waits = not made or walk.host.awaits_reboot
            drawn = of_settings(page.cpus_of(planned), width, made or planned.changes, made=not waits, waits=waits)
        else:
            drawn = boxes(page.cpus_of(planned), width)
        no_script = walk.host.rehearsed or page.workshop.context.agent_connection.rights == "root"
        return [
            *([*drawn, Text()] if drawn else []),
            *plan_view.plan_step_lines(planned, words, no_script, width, "" if self._unfolded else "+"),
        ]

    def said_of_recording(self) -> list[str]:
        return [cleaned_sentence(NOT_WRITTEN)]

    def said(self) -> list[str]:
        view = self.page.by_hand
        if view is not None:
            return [f"{by_hand.by_hand_sentence(view)} {by_hand.guarded(view)}".strip()]
        if self.reading_first:
            return []
        return [masks.OFFER if self.to_mask else self._said_of_plan()]

    def _said_of_plan(self) -> str:
        page = self.page
        if not self.walk.sets:
            return "At the plan's end, Enter agrees to it. p lets you choose other CPUs."
        if page.tried is not None:
            return ""
        if self.walk.by_hand.owed:
            return by_hand.OWED
        if self.walk.host.awaits_reboot:
            return "The plan is written, and needs a reboot. Enter goes home, u restores the old values."
        if self._no_rights:
            return f"{NO_RIGHTS} Enter shows how a user with root's rights can do it; d lets you do it in a root shell."
        way = self.walk.host.boots.way()
        if way is not None:
            offer = f" {by_hand.OFFER}" if self._hand_keys() else ""
            return f"{_said_of_boots(way, root_words(page.workshop))}{offer}"
        if self.walk.host.applied:
            return "This chapter's settings are applied. Enter reads them again, u restores the old values."
        offer = f" {by_hand.OFFER}" if self._hand_keys() else ""
        ends = f"{RESTORED_ON_LEAVING}, unless you keep the changes, or with u"
        return f"At the plan's end, Enter writes this, {root_words(page.workshop)}.{offer} {ends}."

    @property
    def _no_rights(self) -> bool:
        """Return True if the plan has writes that this user may not make."""
        writes = self.page.planned is None or bool(self.page.planned.changes)
        return writes and self.page.workshop.context.agent_connection.rights == "none" and not self.walk.host.applied

    @property
    def _asks_consent(self) -> bool:
        """Return True if Enter agrees to the plan. There is nothing to agree to if the plan is a recorded host's, if
        this user may write nothing, or if no setting would be written."""
        planned = self.page.planned
        writes_nothing = self._no_rights or (planned is not None and not planned.changes)
        return not (self.walk.host.rehearsed or (self.walk.sets and writes_nothing))

    @property
    def enter_key(self) -> EnterKey:
        return EnterKey(self._enter_label, acts=not (self.reading_first or self.walk.host.rehearsed))

    @property
    def to_read_first(self) -> Sequence[str]:
        """Return the pane of the plan, too, before Enter agrees to the plan: the learner sees the whole list first."""
        page, walk = self.page, self.walk
        begun = page.tried is not None or page.by_hand is not None or walk.host.awaits_reboot
        agrees = not (begun or self.to_mask or (walk.sets and self._no_rights))
        return ("#data",) if agrees and self.enter_key.acts else super().to_read_first

    @property
    def _enter_label(self) -> str:
        if self.to_mask:
            return "write a mask"
        if self.reading_first:
            return "show plan"
        if self.page.by_hand is not None:
            return "take over" if not self.page.by_hand.back else "stop watching"
        if self.walk.sets:
            if self.walk.host.awaits_reboot or self.page.tried is not None:
                return "home" if self.walk.host.awaits_reboot else "go on"
            return "who can" if self._no_rights else plan_view.enter_on_plan(self.page.planned)
        return "agree" if not self.walk.host.rehearsed else self._going_on

    def pressed_enter(self) -> Work:
        if self.to_mask:
            return self.key_mask()
        if self.page.by_hand is not None:
            return "adopt"
        if self.walk.sets and self.walk.host.awaits_reboot:
            return "leave"
        if self.page.tried is None and time.monotonic() - self._opened < actions.TYPED_AHEAD_S:
            self.screen.tell(TOO_EARLY if self._asks_consent else TOO_EARLY_TO_READ)
            return "stay"
        if self.walk.sets and self.page.tried is None:
            return "apply"
        return "stay" if self._agree_anew() else "go on"

    def key_enter(self) -> Work:
        opened = self.reading_first
        work = super().key_enter()
        return self.key_mask() if opened and self.to_mask else work

    def holds_before(self, step: StepName) -> bool:
        return step == "again" and self._agree_anew()

    def _agree_anew(self) -> bool:
        """Show a new plan if the present choice of CPUs leads to other changes.

        Return True if a new plan is shown; with the next Enter, the learner agrees to the new plan. Return False if the
        plan is the same, or if no plan can be made.
        """
        if not self.walk.places:
            return False
        try:
            if same_writes(self.walk.plan(), self.page.planned):
                return False
        except WorkshopError:
            return False
        self.page.planned = None
        self.page.tell_work(PLAN_IS_ANOTHER, to="plan")
        return True

    def key_boots(self) -> Work:
        """Switch a plan of boot parameters between every boot and only the next boot."""
        boots = self.walk.host.boots
        way = boots.way() if self._other_boots else None
        if way is None:
            return super().key_boots()
        if way.root_first and not way.once:
            self.screen.tell("Reading with root's rights…")
            self.screen.on_thread(partial(boots.choose, once=True), self._plan_anew, self.screen.refused("Not planned"))
        else:
            boots.choose(once=not way.once)
            self._plan_anew()
        return "stay"

    def _plan_anew(self, _: None = None) -> None:
        self.page.planned = None
        self.page.tell_work("")

    def key_every(self) -> Work:
        """Show each write of a group of equal writes, or one line for the group."""
        if not self._has_equal_writes:
            return self._only_tell(keys_that_wait.NO_GROUP)
        self._unfolded, self.page.view = not self._unfolded, "work"
        self.screen.tell("")
        return "stay"

    @property
    def _has_equal_writes(self) -> bool:
        """Return True if the plan on the screen has a group of equal writes."""
        page = self.page
        planned = page.planned if page.tried is None and page.by_hand is None else None
        return planned is not None and plan_view.has_equal_writes(planned.changes)

    def key_mask(self) -> Work:
        """Open the page for writing CPU masks. The learner first writes the lesson's mask, and after that a mask of
        this host."""
        asked = masks.tasks(self.walk.chapter, self.walk.cpus.view())
        if not asked:
            return self._only_tell(keys_that_wait.NO_MASK)
        self.page.mask_opened = True
        self.screen.app.push_screen(MaskPage(asked), self._mask_written)
        return "stay"

    def _mask_written(self, _: None) -> None:
        self.figures_opened()
        self.screen.redraw()

    def keys(self) -> StepKeys:
        if self.reading_first:
            return StepKeys()
        cpus: list[Shown] = [("chapter.cpus", "")] if self.walk.places else []
        if self.walk.chapter.mask is not None and not self.to_mask:
            cpus.append(("chapter.mask", ""))
        fold: list[Shown] = [("chapter.every", "one line" if self._unfolded else "")] if self._has_equal_writes else []
        return StepKeys([*fold, *cpus, *self._hand_keys(), *self._boot_keys()])

    def _boot_keys(self) -> list[Shown]:
        """Return the key that switches the plan between one boot and every boot."""
        if not self._other_boots:
            return []
        way = self.walk.host.boots.way()
        return [("chapter.boots", "every boot" if way is not None and way.once else "one boot")]

    def _hand_keys(self) -> list[Shown]:
        """Return the keys for writes that the learner makes by hand."""
        page = self.page
        if page.by_hand is not None:
            return [("chapter.by_hand", "stop watching"), ("chapter.copy", "")]
        if not self.walk.sets or page.tried is not None or self.walk.host.awaits_reboot:
            return []
        with contextlib.suppress(WorkshopError):
            page.planned = page.planned or self.walk.plan()
            return [] if self.walk.by_hand.why_not(page.planned) else [("chapter.by_hand", "")]
        return []


class Compare(Step):
    """Show both runs, and sentences on how they differ."""

    after_change = True
    tells_guess = True
    draws_imports = True
    names_table = "all figures"
    in_hunt = HuntRole(asks=True, cures=True, remembers=1)

    def __init__(self, page: ChapterPage, name: StepName) -> None:
        super().__init__(page, name)
        self.proof: Proof | None = None
        """The chapter's newest proof."""
        self._read = False
        """True if the lesson's page was shown at this visit. A narrow screen shows the chart first."""
        self._both: tuple[KnownRun, KnownRun] | None = None
        """The runs before and after the change; None if a run is missing, or if the runs cannot be compared."""
        self._cured: CureView | None = None
        """The outcome of the cure in a hunt; None in other chapters, and before the run with a cure."""
        self._compared: CompareView | None = None
        """The comparison of both runs; None if a run is missing, on a recording, and after a cure."""
        self._judgement: PairJudgement | None = None
        """The judgement of both runs, also on a recording; None if they cannot be compared."""
        self._reading: object | None = None
        """The reading of the traces of both runs, which can change the judgement; None if it has ended."""

    def enter(self) -> None:
        self.resumed()
        super().enter()
        self._read = False
        self._reading = None
        if not self.walk.host.rehearsed and self.walk.runs.unread:
            self._reading = object()
            self.screen.run_worker(self._read_traces(self._reading), exclusive=True, group="compare")
        # Of two recordings the settings are what was compared; where there is room their curves stand above.
        recorded = self.walk.host.rehearsed and not self.screen.tall and bool(self.page.recorded()[0])
        self.page.table = recorded

    async def _read_traces(self, reading: object) -> None:
        """Read the traces of both runs on a thread, and then draw the step again. The judgement then goes without a
        trace that cannot be read. ``reading``: this reading; a later one has another object."""
        self.screen.tell(causes.READING)
        try:
            await aside(self.walk.runs.read_figures)
        finally:
            if self._reading is reading:
                self._reading = None
        if self.screen.said == causes.READING:
            self.screen.said = ""
        if self.on_screen:
            self.screen.redraw()

    def look_again(self) -> None:
        self._read = self._read or self.page.view == "lesson"
        rehearsed, compared = self.walk.host.rehearsed, self.walk.comparison
        self._both = self.walk.runs.before_and_after()
        self._cured = cure.view(self.walk) if self.walk.hunts else None
        self._compared = None if rehearsed or self._cured is not None else compared.view()
        own = self._compared.judgement if self._compared is not None else None
        self._judgement = compared.of_recordings() if rehearsed else own

    def resumed(self) -> None:
        """Read the chapter's newest proof."""
        from jitter_workshop.flow.proving.chapter_proof import newest

        self.proof = None if self.walk.host.rehearsed else newest(self.page.workshop, self.walk)

    @property
    def layout(self) -> StepLayout:
        return StepLayout(chart=self._recorded_chart if self.walk.host.rehearsed else not self.page.table, both=True)

    @property
    def offers_proof(self) -> bool:
        """Return True if this chapter's change can be proven here, and there is no proof yet."""
        from jitter_workshop.flow.proving.chapter_proof import why_no_proof

        return self.proof is None and not why_no_proof(self.page.workshop, self.walk)

    @property
    def _page_is_next(self) -> bool:
        return not self._read and not self.screen.wide and bool(self.walk.page(self.name))

    @property
    def enter_key(self) -> EnterKey:
        return EnterKey(READ_ON if self._page_is_next else self._going_on)

    def pressed_enter(self) -> Work:
        if not self._page_is_next:
            return super().pressed_enter()
        # The whole result would leave the lesson three rows.
        self.page.view, self.page.table = "lesson", False
        self.screen.redraw()
        return "stay"

    def key_cpus(self) -> Work:
        return self.key_prove()

    def key_prove(self) -> Work:
        return self._open_proof(self.proof)

    @property
    def _made_anew(self) -> StepName | None:
        """Return the step whose run has to be made again; None if there is none."""
        return None if self._both is None else chapter_view.step_to_repeat(self.walk, self._compared, self._both)

    def key_again(self) -> Work:
        if (slot := self._made_anew) is None:
            return super().key_again()
        return "measure first" if slot == SLOTS[0] else "measure second"

    def key_name(self) -> Work:
        """Open the page for naming the hidden noise. In a chapter without hunts, show or hide imported curves."""
        return "name" if self.walk.hunts else self.key_imported()

    def key_imported(self) -> Work:
        page = self.page
        page.with_imports = bool(page.imported) and not page.with_imports
        page.highlight = None
        self.screen.tell(curves.imported_said(page.imported, page.with_imports))
        return "stay"

    def drawing(self) -> Drawing:
        both, marks = self._pair, self._kept_mark
        # Of two recorded curves neither is the learner's newest.
        recorded = self.walk.host.rehearsed
        # A recorded curve has no run: of a rehearsal, the two curves are those of the two recorded runs.
        shown = {"" if c.run is None else c.run.id: n for n, c in enumerate(self.curves())}
        if both is None or not all(seen.run.id in shown for seen in both):
            return Drawing(marks)
        before, after = (0, 1) if recorded else (shown[seen.run.id] for seen in both)
        judge = judge_of(self.page.asked, *both)
        level_ns = least_length_ns(judge)
        found, relation = self._distance, self._relation
        # A factor in the chart would compare what the result does not.
        unlike_runs = relation == "unsteady" or self._reason is not None
        if found is None or unlike_runs or readings_apart(*both):
            return Drawing(marks)
        changed = relation == "changed" and self._cured is None
        told = effect_words.beside_its_line((effect_words.describe_effect if changed else effect_words.apart)(found))
        # The space between two curves is shaded as better or worse only where the result says so. After a proof its
        # verdict says that, and not two of many runs.
        judged = not proof.leads(self.proof) and self._sure
        between = (before, after) if judged else None
        by_plan = self._judgement is not None and self._judgement.by_plan
        # Of few stalls, or beside a result that calls no run better or worse, a factor would be a second verdict.
        few = level_ns is not None and found.doubtful
        if few or (changed and not judged and not by_plan):
            return Drawing(marks, between)
        loud = found.factor >= MOVED and not found.doubtful
        gap = Gap(None if level_ns is not None else float(judge), before, after, told, loud=loud, level_ns=level_ns)
        return Drawing(marks, between, gap)

    @property
    def _pair(self) -> tuple[KnownRun, KnownRun] | None:
        """Return the two runs whose difference the chart marks: after a cure the run beside the noise and the run with
        the cure, else the runs before and after the change. None if a run is missing."""
        if self._cured is None:
            return self._both
        beside, treated = self.walk.runs.known("again"), self.walk.runs.known(TREATED)
        return None if beside is None or treated is None else (beside, treated)

    @property
    def _judged(self) -> str:
        """Return a sentence on the figure by which the runs are judged; "" if they have no latencies, because an
        emulated machine made them."""
        both = self._both
        if both is None or both[0].emulated:
            return ""
        run = both[0].run
        made, tail = run.latency, tail_of(run.workload, self.page.asked)
        rate = made.count / run.duration_s if made is not None and run.duration_s > 0 else None
        due = self.walk.runs.from_due_time
        return f"Runs are judged by {judging_figure(run.workload, tail, run.interval_ns, rate, from_due_time=due)}."

    @property
    def _distance(self) -> Effect | None:
        """Return the difference between the two runs in the figure by which they are judged, which the chart marks.
        Return None if a run is missing. Also return None in a chapter that judges by the due time, which draws
        several clocks.
        """
        both = self._pair
        if both is None or self.walk.runs.from_due_time:
            return None
        judge = judge_of(self.page.asked, *both)
        stalls = least_length_ns(judge) is not None
        return judged_effect(*both, self.page.asked) if stalls else effect_on(judge, *both)

    def below_chart(self, width: int) -> Lines | None:
        rehearsed = self.walk.host.rehearsed
        if self.walk.hunts or not (self.layout.chart or rehearsed):
            return None
        counted = self.counts(width)
        if not rehearsed:
            return counted
        # An emulated machine has counts without a curve.
        return [*counted, *([Text()] if counted else []), *self.figures(width)]

    def counts(self, width: int) -> Lines:
        """Return lines with counts before and after the change, and lines on the measured core."""
        both = self._both
        if self._cured is not None:
            return []
        if both is None:
            return chapter_view.gap_rates(self.walk, self.name, width)
        found = count_effects(*both, self.walk.runs.shows, self.walk.runs.guessed_figures)
        caused = chapter_counts(both[0].run, self.walk.runs.shows, self.walk.runs.guessed_figures)
        if self._few:
            # Below the lesson stands what moved; the key t shows every cause and count.
            above, named = self.names_told, caused | self._named
            # Of the count that was asked for, and of equal runs' counts, "about the same" is a result, too.
            kept = (
                caused
                if self._relation == "alike"
                else {figure_with_id(one).title for one in self.walk.runs.guessed_figures}
            )
            found = tuple(e for e in found if e.name in named - above and (e.factor >= MOVED or e.name in kept))
            rests = {self._judgement.cause.label} if self._judgement and self._judgement.cause else set[str]()
            above_causes = result_table.causes_above(self._judgement, both)
            causes = effect_table.few_causes(self._causes, above_causes, rests | self._told)
            ends = result_table.all_that_ends(self._causes) if self._relation == "changed" else None
            if ends is not None and result_table.CAN_END not in above:
                causes = [ends, *causes]
        else:
            causes = effect_table.causes_with_row(self._causes, named=self._told)
        undecided = proof.proof_is_undecided(self.proof)
        origin, relation = one_run.origin_of(both[0]), self._relation
        told = effect_table.two_run_table(
            found, width, origin, relation, causes, undecided=undecided, runs=both, judged=self._sure, caused=caused
        )
        # A lesson on the core's frequency has it read first.
        parts = [chapter_view.core(self.walk, width), told, self._notes_on_result(width)]
        return [line for part in parts if part for line in (*part, Text())][:-1]

    @property
    def names_told(self) -> set[str]:
        both = self._both
        # One run in both places has no table.
        if both is None or both[0].run.id == both[1].run.id:
            return set()
        return result_table.names_told(self._judgement, both, few=self._few)

    @property
    def _few(self) -> bool:
        """Return True if the page shows only the figures that matter most. The key t then shows all of them."""
        return self.layout.chart and not self.walk.host.rehearsed

    @property
    def _named(self) -> set[str]:
        """Return the names of the counts that explain the result of two equal runs."""
        if self._relation != "alike" or self._both is None or self._effects is None:
            return set()
        return named_unchanged(self._effects, self._both)

    @property
    def _told(self) -> set[str]:
        """Return the labels of the causes that a sentence of this chapter names. The table shows each of them."""
        return (
            effect.named_causes(self._judgement, self.walk.diagnosis.named()) if self._judgement is not None else set()
        )

    @property
    def _effects(self) -> Effects | None:
        """Return the effects on which the judgement rests."""
        return self._judgement.found if self._judgement is not None else None

    @property
    def _sure(self) -> bool:
        """Return True if the result calls the second run better or worse."""
        return self._judgement is not None and self._judgement.sure and self._reading is None

    @property
    def _reason(self) -> KnownReason | None:
        """Return why the two runs cannot be compared; None if no such reason is known."""
        return self._compared.reason if self._compared is not None else None

    @property
    def _causes(self) -> tuple[CauseTime, ...]:
        """Return the time of each cause in the two runs. Return () if a run has no trace."""
        return self._effects.causes if self._effects is not None else ()

    @property
    def strayed(self) -> bool:
        return self._relation == "strayed"

    @property
    def _relation(self) -> Relation:
        """Return the relation between the two runs, such as ``alike`` or ``changed``.

        The comparison of the two runs gives the relation. Without a comparison, it is ``alike`` if the chapter repeats
        one run, else ``changed``.
        """
        if self._compared is not None:
            return self._compared.relation
        return "alike" if self.walk.runs.repeats else "changed"

    def _lines(self, width: int) -> Lines:
        walk = self.walk
        if walk.host.rehearsed:
            changes = walk.host.compared()
            # If the recorded counts are compared, no words are needed for settings that do not differ.
            counted = not changes and self._both is not None
            lines = [] if counted else chapter_view.settings_compared(changes, width)
            task = walk.chapter.prediction
            told = walk.guess.outcome() is not None and self.screen.tall
            if task is None or task.slot is None or told:
                return lines
            return lines + chapter_view.answers_explained(task, walk.progress.prediction, width)
        if self._cured is not None:
            return chapter_view.cured(self._cured, width)
        return chapter_view.comparison(self._compared, width) if self._compared else []

    def result(self, width: int) -> Result:
        found, both, runs = self._judgement, self._both, self.walk.runs
        if self._cured is not None:
            told = wrap(hunt.cure_told(self._cured), width)
            return Result(told, uncut=len(told))
        if found is None and self._compared is not None:
            # The warning stands above the curves that it is about.
            return Result(wrap(Text(self._compared.headline, "text"), width), uncut=1)
        if both is None or found is None:
            return Result([])
        if self._reading is not None:
            return Result(wrap(effect.WAITS, width, style="text"), uncut=1)
        if self.walk.host.rehearsed:
            return effect.result_of_two_runs(found, both, width, short=self._short)
        key = "m" if self._made_anew is not None else ""
        first = found.unknown_run == 0 if self._reason is None else self._reason.run == 0
        if not key and first and self.walk.host.applied:
            key = "restore first: u"
        result = effect.result_of_two_runs(
            found, both, width, proof=self._known, short=self._short, few=self._few, key=key
        )
        notes = [] if self._notes_below else result.notes
        both_ways = "" if self._short else self.walk.noise.both_ways()
        told = list(result.told if result.lines else wrap(runs.unshown, width))
        told += wrap(both_ways, width) if both_ways else []
        return Result(told, [*result.caveats, *notes], result.uncut)

    @property
    def _notes_below(self) -> bool:
        """Return True if the notes on the result stand below the counts, and not above the chart."""
        return self.layout.chart and not self.walk.hunts and not self.walk.host.rehearsed

    def _notes_on_result(self, width: int) -> Lines:
        """Return the lines that explain the result, to stand below the counts; [] if they stand above the chart."""
        found, both = self._judgement, self._both
        if not self._notes_below or both is None or found is None:
            return []
        return effect.result_of_two_runs(found, both, width, proof=self._known, short=self._short).notes

    @property
    def _short(self) -> bool:
        """Return True if the result must be short to leave room for the chart."""
        return self.layout.chart and self.screen.size.height < _ROOMY

    @property
    def _known(self) -> str | Text:
        """Return a sentence on the newest proof of this change. Without a proof, the sentence says how to make one.

        A proof with enough rounds gets a styled sentence. Return "" for runs on an emulated machine, which prove
        nothing. Also return "" without a proof in a chapter that changes nothing.
        """
        if self.walk.runs.emulated:
            return ""
        if self.proof is not None and proof.leads(self.proof):
            return proof.earlier_proof_line(self.proof)
        if self.proof is not None:
            return proof.earlier_proof_text(self.proof)
        # A chapter that changes nothing has nothing to prove.
        if self.walk.chapter.changes == "nothing":
            return ""
        return f"{effect.PROOF_BY_KEY if self.offers_proof else effect.NOT_PROVEN}."

    def headline(self) -> tuple[str, str]:
        if self._relation != "changed" or self._reading is not None or proof.leads(self.proof):
            return "", ""
        return large_figure.large_factor(self._judgement)

    def table(self, width: int) -> Lines:
        parts = [part for part in (self.counts(width), super().table(width), self.figures(width)) if part]
        if self.walk.host.rehearsed and self.walk.chapter.changes != "nothing":
            # Of two recordings the settings are what was compared.
            parts.reverse()
        if self._relation == "changed" and self._both is not None and self._cured is None:
            parts.append(wrap(Text(f"{effect.RULE} {self._judged}".rstrip(), "dim"), width))
        return [line for part in parts for line in (*part, Text())][:-1]

    def said(self) -> list[str]:
        compared = self._compared
        if compared is None or compared.effects is None:
            return []
        both_ways = self.walk.noise.both_ways() if self._short else ""
        first = self._both[0] if self._both is not None and self.walk.runs.by_several_clocks else None
        corrected = correction_told(first) if first is not None else ""
        measured = (self._proven, *told_of_loads(self.walk), corrected)
        return [*filter(None, (*measured, " ".join(filter(None, (*compared.notes, both_ways)))))]

    def keys(self) -> StepKeys:
        keys: list[Shown] = self._told_keys
        # Between runs that were made alike there is no change to prove.
        if self.proof is not None or (self.offers_proof and self._relation != "alike"):
            keys.append(("chapter.prove", "the proof" if self.proof is not None else ""))
        if self.screen.wide and not self.walk.host.rehearsed and self.walk.progress.other_runs:
            keys.append(self.noise_key)
        if not self.walk.hunts and self.page.imported:
            keys.append(("chapter.imported", "hide imported" if self.page.with_imports else ""))
        again: list[Shown] = [("chapter.again", "measure again")] if self._made_anew is not None else []
        return StepKeys(keys, before_enter=again)


class Explain(Step):
    """Show what took the time, and what the lesson teaches."""

    after_change = True
    shows_commands = True
    in_hunt = HuntRole(asks=True, remembers=1)

    def __init__(self, page: ChapterPage, name: StepName) -> None:
        super().__init__(page, name)
        self.fold = Fold(more="f", copied="(y copies)")
        self._open = range(0)
        """The indices of the commands that the newest redraw shows."""

    def enter(self) -> None:
        self.page.commands = HandCommands(self.walk)
        self.fold = dataclasses.replace(self.fold, first=0)
        super().enter()

    def key_fold(self) -> Work:
        """Scroll to the commands. If they are on the screen already, show the next commands that fit. After the last
        commands, show the first ones again. If all commands are always shown, only show a sentence.
        """
        count = len(self.walk.chapter.by_hand)
        if not self._folds:
            return self._only_tell(keys_that_wait.NO_FOLD)
        pane, heading = self.screen.query_one("#data", Pane), self._heading_of_commands
        if heading is not None and pane.scroll_offset.y <= heading < pane.seen_to - 1:
            self.fold = dataclasses.replace(self.fold, first=self._open.stop if self._open.stop < count else 0)
        self.page.view = "work"
        # The lines tell how many commands fit.
        self.figures(self.screen.sheet("#data-sheet").content_size.width)
        self.screen.tell(chapter_view.commands_open(self._open, count, self.fold.more))
        self.screen.call_after_refresh(self._scroll_to_commands)
        return "stay"

    @property
    def _heading_of_commands(self) -> int | None:
        """Return the line of the figures on which the commands begin; None if no command is shown."""
        lines = self.screen.sheet("#data-sheet").plain().splitlines()
        return next((n for n, line in enumerate(lines) if line.startswith(chapter_view.BY_HAND)), None)

    def _scroll_to_commands(self) -> None:
        if self.on_screen and (heading := self._heading_of_commands) is not None:
            self.screen.query_one("#data", Pane).scroll_to(y=heading, animate=False)

    def commands(self) -> list[str]:
        return [command for command, _ in self.walk.runs.commands_by_hand()]

    def _lines(self, width: int) -> Lines:
        above = chapter_view.learnt_and_evidence(self.walk, self.walk.chapter.learnt, width)
        commands = self.page.commands.listed()
        fold = chapter_view.below(above, dataclasses.replace(self.fold, rows=self._rows))
        self._open = chapter_view.open_commands(commands, width, fold)
        return chapter_view.with_commands(above, commands, width, fold)

    @property
    def _rows(self) -> int:
        """Return the rows that a wide screen has for the figures. Return 0 on a narrow screen, whose page needs all of
        them, and where curves are drawn below the figures."""
        screen = self.screen
        if not screen.wide or (screen.huge and screen.tall and self.page.own_curves()):
            return 0
        width = screen.size.width - 2
        told = len(screen.sheet("#class-line").lines(width)) + len(screen.sheet("#recorded").lines(width))
        return screen.size.height - _AROUND_COMMANDS - told

    @property
    def _folds(self) -> bool:
        """Return True if not all commands are shown."""
        count = len(self.walk.chapter.by_hand)
        return count > OPEN and len(self._open) < count

    def said(self) -> list[str]:
        told: list[str] = []
        if self.walk.runs.explain() is not None and not self.walk.hunts:
            found = self.walk.runs.traced_run() is not None
            told.append(causes.causes_offer(self.walk.chapter.evidence, found))
        return told

    def keys(self) -> StepKeys:
        walk = self.walk
        causes = not walk.host.rehearsed and not walk.hunts and bool(walk.chapter.measurements)
        folded: list[Shown] = [("chapter.fold", "")] if self._folds else []
        return StepKeys(last=[*([("chapter.causes", "")] if causes else []), *folded, ("chapter.copy", "")])


_STEPS: dict[StepName, type[Step]] = {
    "look": Look,
    "predict": Predict,
    "measure": Measure,
    "apply": Apply,
    "again": Again,
    "compare": Compare,
    "explain": Explain,
}


def screen_steps(page: ChapterPage) -> dict[StepName, Step]:
    """Return the object of each step, by the step's name. The objects keep their state until the screen is closed."""
    return {name: kind(page, name) for name, kind in _STEPS.items()}


def _said_of_boots(way: BootWay, how: str) -> str:
    """Return a sentence that says for which boots Enter sets the boot parameters.

    If the learner made no choice, Enter sets them only for the next boot. If that boot hangs, the boot after it has the
    usual parameters again.
    """
    other = "" if way.why_not else f" n plans it for {'every boot' if way.once else 'the next boot alone'}."
    if way.this_boot and way.once:
        return f"The parameters are in effect for this boot only; u removes the boot entry.{other}"
    if way.this_boot:
        first = "The parameters are in effect already."
        return f"{first} At the plan's end, Enter writes this, {how}: every boot will have them."
    if way.root_first:
        why = clean(way.why_not, REASON)
        first = f"The key n plans it for the next boot only, {how}. This needs root's rights: {why}."
        return f"{first} At the plan's end, Enter writes this, for every boot. To remove it, press u or run 'restore'."
    which = "the next boot alone" if way.once else "every boot"
    return f"At the plan's end, Enter writes this, {how}, for {which}.{other} To remove it, press u or run 'restore'."
