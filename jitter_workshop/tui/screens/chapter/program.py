"""Show the steps of a chapter about the learner's own program.

The learner chooses the program, observes it, proves a change that helps it, and makes this change permanent.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from functools import partial

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input

from jitter_workshop.bench.runner import Cancelled
from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.chapters.own_program import SAMPLES, parse_command, sample_of
from jitter_workshop.model.course import StepName
from jitter_workshop.model.program import OBSERVED_S
from jitter_workshop.model.proof import PLACEMENT, Proof
from jitter_workshop.model.text import MESSAGE, SENTENCE, clean, quoted_command
from jitter_workshop.presenter.course import chapter as chapter_view
from jitter_workshop.presenter.course import own_program as words
from jitter_workshop.presenter.runs import program as program_view
from jitter_workshop.presenter.text.lines import Lines, keyed, waiting, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.screens.chapter.page import ChapterPage, Observing
from jitter_workshop.tui.screens.chapter.steps import EnterKey, Explain, Look, Step, StepKeys, StepLayout, Work
from jitter_workshop.tui.screens.common.base import Page
from jitter_workshop.tui.widgets.keybar import Shown
from jitter_workshop.tui.widgets.sheet import Pane, Sheet

_OWN = "/"


class ChooseProgram(Look):
    """Show the programs to choose from, and the facts about this host. A narrow screen first shows the lesson's
    page."""

    work_label = "programs"

    @property
    def layout(self) -> StepLayout:
        return StepLayout(opens_with_page=not self.screen.wide, alone=True, chart=self._recorded_chart)

    @property
    def enter_key(self) -> EnterKey:
        return EnterKey("to the programs" if self.reading_first else self._going_on)

    def _lines(self, width: int) -> Lines:
        return [*words.program_choice_lines(self.walk.program.work, width, _OWN), Text(), *super()._lines(width)]

    def keys(self) -> StepKeys:
        return StepKeys() if self.reading_first else StepKeys([("chapter.programs", ""), ("chapter.program", "")])

    def digit(self, index: int) -> bool:
        self.page.view = "work"
        if index < len(SAMPLES):
            self.walk.program.choose(SAMPLES[index].words)
            self.screen.redraw()
        return True


class ObserveProgram(Step):
    """Observe the program, and show where its time went."""

    work_label = "figures"

    @property
    def layout(self) -> StepLayout:
        return StepLayout(alone=self.walk.program.work.observed is not None, chart=self._recorded_chart)

    def _lines(self, width: int) -> Lines:
        page, program = self.page, self.walk.program
        if page.observing is not None:
            left = page.observing.rest_s
            told = f"{words.OBSERVING} {left:.0f} s at most" if left else "Adding up…"
            return waiting(told, round(OBSERVED_S - left), OBSERVED_S if left else 0, width)
        if program.report is not None:
            return [
                *words.spoken(program.work, width),
                Text(),
                *program_view.program_report_lines(program.report, width),
            ]
        lines = words.seen(program.work, width)
        if program.work.observed is not None:
            return [*lines, Text(), *wrap(words.AGAIN_FOR_ALL, width, style="dim")]
        return [*words.program_line(program.work, width), *lines]

    def verdict(self, width: int) -> Lines:
        outcome = self.walk.guess.outcome() if self.page.observing is None else None
        # On a small screen the figures need the room of the reason.
        return [] if outcome is None else chapter_view.judged_guess(outcome, width, explained=self.screen.tall)

    @property
    def _due(self) -> bool:
        return self.walk.program.work.observed is None and not self.walk.program.why_not

    @property
    def enter_key(self) -> EnterKey:
        label = "observe" if self._due and not self.reading_first else self._going_on
        return EnterKey(label, acts=self._due, waits=self.page.observing is not None)

    def pressed_enter(self) -> Work:
        return "observe" if self._due else "go on"

    def keys(self) -> StepKeys:
        none = self._due or self.walk.program.why_not
        return StepKeys() if none else StepKeys([("chapter.again", "observe again")])


class ProveProgram(Step):
    """Let the learner choose a change and prove its effect on the program. Until there is a proof, a narrow screen
    first shows the lesson's page."""

    work_label = "changes"
    after_change = True

    def __init__(self, page: ChapterPage, name: StepName) -> None:
        super().__init__(page, name)
        self.proof: Proof | None = None
        self._offered: tuple[str, ...] = (PLACEMENT,)

    def enter(self) -> None:
        self._look()
        super().enter()

    def resumed(self) -> None:
        self._look()

    def _look(self) -> None:
        """Read the changes that can be proven on this host, and the chosen change's newest proof."""
        from jitter_workshop.flow.proving import chapter_proof

        if self.walk.program.why_not:
            return
        try:
            self._offered = chapter_proof.provable_changes(self.page.workshop)
        except WorkshopError:
            self._offered = (PLACEMENT,)
        self.proof = chapter_proof.newest(self.page.workshop, self.walk)

    def key_cpus(self) -> Work:
        return self.key_prove()

    def key_prove(self) -> Work:
        return self._open_proof(self.proof)

    def verdict(self, width: int) -> Lines:
        return []

    @property
    def layout(self) -> StepLayout:
        alone = not self.walk.program.why_not
        opens = alone and not self.screen.wide and self.proof is None
        return StepLayout(opens_with_page=opens, alone=alone, chart=self._recorded_chart)

    @property
    def enter_key(self) -> EnterKey:
        return EnterKey("to the changes" if self.reading_first else self._going_on)

    def _lines(self, width: int) -> Lines:
        if self.walk.program.why_not:
            return []
        chosen = words.change_choice_lines(self.walk.program.work, self._offered, width)
        return [*chosen, Text(), *words.proven(self.proof, width)]

    def keys(self) -> StepKeys:
        if self.walk.program.why_not or self.reading_first:
            return StepKeys()
        many: list[Shown] = [("chapter.number", "which change")] if len(self._offered) > 1 else []
        return StepKeys([("chapter.prove", "the proof" if self.proof is not None else ""), *many])

    def digit(self, index: int) -> bool:
        if index < len(self._offered) and not self.walk.program.why_not:
            self.walk.program.choose_change(self._offered[index])
            self._look()
            self.screen.redraw()
        return True


class LastingProgram(Explain):
    """Show how to make the change permanent, and what the lesson teaches."""

    def _lines(self, width: int) -> Lines:
        from jitter_workshop.flow.proving.chapter_proof import newest

        if self.walk.program.why_not:
            return super()._lines(width)
        proof = newest(self.page.workshop, self.walk)
        lasting = words.lasting(self.walk.program.work, proof, str(self.walk.host.hot()), width)
        return [*lasting, *super()._lines(width)]


PROGRAM_STEPS: dict[StepName, type[Step]] = {
    "look": ChooseProgram,
    "measure": ObserveProgram,
    "compare": ProveProgram,
    "explain": LastingProgram,
}


class ChapterObserver:
    """Observe the chapter's program on a thread. On a class host, the observation begins when it is this
    user's turn.
    """

    def __init__(self, page: ChapterPage) -> None:
        self._page = page

    def observe(self) -> None:
        self._page.frame.class_turn.with_turn(self._observe_now)

    def _observe_now(self) -> None:
        page, screen = self._page, self._page.screen
        running = page.observing = Observing(float(OBSERVED_S), self._left)
        # A stopped process would go on observing: Ctrl-Z waits for the end.
        page.frame.begin_run(running.stop, lambda: None, lambda: None)
        page.view = "work"
        screen.tell("")
        screen.query_one("#data", Pane).scroll_home(animate=False)
        screen.run_worker(partial(self._run, running), thread=True, exclusive=True, group="measure")

    def _run(self, running: Observing) -> None:
        def told(rest_s: float) -> None:
            if running.stopping:
                raise Cancelled("cancelled")
            running.rest_s = rest_s
            self._page.screen.call_later(self._page.screen.query_one("#data-sheet", Sheet).renew)

        then: Callable[[], None]
        try:
            with contextlib.closing(self._page.workshop.context.agent_connection.beside()) as agent:
                self._page.walk.program.observe(agent, told)
        except WorkshopError as error:
            then = partial(self._failed, error)
        else:
            then = self._done
        self._page.screen.call_later(self._ended, running, then)

    def _left(self) -> None:
        """End the observation on the screen without waiting for its thread. The result that the thread returns later
        is ignored.
        """
        self._over(partial(self._failed, Cancelled("cancelled")))

    def _ended(self, running: Observing, then: Callable[[], None]) -> None:
        if self._page.observing is running:
            self._over(then)

    def _over(self, then: Callable[[], None]) -> None:
        self._page.observing = None
        self._page.frame.end_run()
        then()
        self._page.frame.run_over()

    def _done(self) -> None:
        self._page.screen.tell("")

    def _failed(self, error: WorkshopError) -> None:
        if isinstance(error, Cancelled):
            self._page.screen.tell("Stopped. The program was ended, and no result is kept.")
        else:
            self._page.screen.tell(f"{clean(error.sentence(), SENTENCE)}.")


class CommandPage(Page, scope="command"):
    """Let the learner type the command of a program. ``chosen``: a function to call with the command's words."""

    def __init__(self, now: tuple[str, ...], chosen: Callable[[tuple[str, ...]], None]) -> None:
        super().__init__()
        self._now = "" if sample_of(now) is not None else quoted_command(now, MESSAGE)
        self._chosen = chosen
        self._said = ""

    def compose(self) -> ComposeResult:
        with Vertical(classes="around"), Vertical(classes="frame"):
            yield Sheet(self.lines, id="page-sheet")
            # The cursor does not blink: blinking needs a timer.
            yield Input(self._now, placeholder="./server-test 1000", id="typed", classes="-on", compact=True)
            yield Sheet(self._foot, id="command-foot")

    def on_mount(self) -> None:
        typed = self.query_one(Input)
        typed.cursor_blink = False
        typed.focus()

    def lines(self, width: int) -> Iterable[Text]:
        yield Text()
        yield Text("A COMMAND OF YOUR OWN", "bold text")
        yield Text()
        yield from wrap(words.TYPED, width, style="text")
        yield Text()

    def _foot(self, width: int) -> Iterable[Text]:
        yield Text()
        if self._said:
            yield from wrap(Text(clean(self._said, SENTENCE), "bold bad"), width, "! ")
        yield from wrap(keyed("Enter uses this command · Esc changes nothing"), width)

    @on(Input.Submitted)
    def action_agree(self) -> None:
        try:
            given = parse_command(self.query_one(Input).value)
        except WorkshopError as error:
            self._said = error.sentence()
            self.redraw()
            return
        self.dismiss(None)
        self._chosen(given)
