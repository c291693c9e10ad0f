"""Show the step ``diagnose``, at which the learner names a cause of delay.

The trace of the first run decides if the learner's answer is right.
"""

from __future__ import annotations

from functools import partial

from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.attribution import Stopped
from jitter_workshop.model.course import StepName
from jitter_workshop.model.text import SENTENCE, clean
from jitter_workshop.presenter.course import diagnosis as words
from jitter_workshop.presenter.text.lines import Lines, waiting, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.background import aside
from jitter_workshop.tui.screens.chapter.page import ChapterPage
from jitter_workshop.tui.screens.chapter.steps import EnterKey, Step, StepLayout, Work
from jitter_workshop.tui.widgets.sheet import Pane


class Diagnose(Step):
    """Show the causes of the first run's stalls, for the learner to choose one.

    A thread reads the run's trace, because a long trace takes seconds.
    """

    work_label = "list"

    def __init__(self, page: ChapterPage, name: StepName) -> None:
        super().__init__(page, name)
        self.cursor = -1
        """The index of the cause under the cursor; -1 for none: Enter, pressed twice, then skips the question."""
        self._reminded = False
        """True if Enter was pressed without a chosen cause, so that the next Enter skips the question."""
        self._went = (0, 0)
        self._failed = ""

    def enter(self) -> None:
        super().enter()
        self.cursor, self._failed, self._went, self._reminded = -1, "", (0, 0), False
        if self.walk.diagnosis.open and self.walk.diagnosis.ready is None:
            self.screen.run_worker(self._read(), exclusive=True, group="diagnose")

    async def _read(self) -> None:
        try:
            await aside(partial(self.walk.diagnosis.read, self._told))
        except Stopped:
            return
        except WorkshopError as error:
            self._failed = error.sentence()
        if self.on_screen:
            self.screen.redraw()

    def _told(self, done: int, total: int) -> None:
        """Show how much of the trace has been read. The thread that reads the trace calls this method.

        Raise Stopped if the learner has left the step.
        """
        if not self.on_screen or not self.screen.is_attached:
            raise Stopped("reading was stopped")
        self._went = (done, total)
        self.screen.call_later(self._goes_on)

    def _goes_on(self) -> None:
        if self.on_screen and self.walk.diagnosis.ready is None:
            self.screen.redraw()

    # -- what it shows ---------------------------------------------------------------------------------------------

    @property
    def layout(self) -> StepLayout:
        diagnosis = self.walk.diagnosis
        # The question comes first; Tab shows the lesson's example.
        return StepLayout(alone=diagnosis.open, chart=self._recorded_chart, under=True)

    def _lines(self, width: int) -> Lines:
        if not self.walk.diagnosis.open:
            return wrap(words.NOT_RECORDED, width, style="dim")
        if self._failed:
            return wrap(Text(clean(self._failed, SENTENCE), "bold bad"), width, "! ")
        diagnosis = self.walk.diagnosis
        if (seen := diagnosis.ready) is None:
            done, total = self._went
            return waiting(words.READING, done, total, width)
        return words.diagnosis_page(seen, self.cursor, diagnosis.answered(), width)

    def said(self) -> list[str]:
        diagnosis = self.walk.diagnosis
        seen, answered = diagnosis.ready, diagnosis.answered()
        if seen is None or answered is None:
            return [words.CHOOSE] if self._open else []
        return [words.judged_diagnosis(answered, seen, self.walk.chapter, self.page.workshop.course)]

    def judged_on_recording(self) -> list[str]:
        return self.said()

    # -- keys ------------------------------------------------------------------------------------------------------

    @property
    def _waits(self) -> bool:
        """Return True while the trace is read."""
        return self.walk.diagnosis.open and self.walk.diagnosis.ready is None and not self._failed

    @property
    def _open(self) -> bool:
        """Return True if a cause can be chosen now."""
        return not self.reading_first and self.walk.diagnosis.asks

    @property
    def enter_key(self) -> EnterKey:
        named = "name it" if self.cursor >= 0 else words.SKIP
        opens = "choose a cause" if self.walk.diagnosis.answered() is None else "show the list"
        label = opens if self.reading_first else named if self._open else self._going_on
        return EnterKey(label, acts=self._open, waits=self._waits)

    def pressed_enter(self) -> Work:
        if self._waits:
            return "stay"
        seen = self.walk.diagnosis.ready
        if not self._open or seen is None:
            return "go on"
        if self.cursor < 0:
            if self._reminded:
                return "go on"
            # An Enter that was meant for the page before must not skip a question that has just appeared.
            self._reminded = True
            self.screen.tell(words.UNCHOSEN)
            return "stay"
        self.walk.diagnosis.answer(seen.suspects[self.cursor].id)
        self.screen.redraw()
        self.screen.query_one("#data", Pane).scroll_home(animate=False)
        self.screen.call_after_refresh(self._show_answer)
        return "stay"

    def _show_answer(self) -> None:
        """Scroll until the right rows and the learner's are on the screen, or as many of them as have room there."""
        pane = self.screen.query_one("#data", Pane)
        rows = words.rows_of_answer(self.screen.sheet("#data-sheet").plain().splitlines())
        if self.on_screen and rows is not None:
            first, last = rows
            top = last + 1 - pane.scrollable_content_region.height
            pane.scroll_to(y=max(0, min(first, top)), animate=False)

    def vertical(self, direction: int) -> bool:
        if not self._open:
            return False
        self._choose(self.cursor - direction if self.cursor >= 0 else 0)
        return True

    def digit(self, index: int) -> bool:
        seen = self.walk.diagnosis.ready
        if not self._open or seen is None or index >= len(seen.suspects):
            return False
        self._choose(index)
        return True

    def _choose(self, index: int) -> None:
        seen = self.walk.diagnosis.ready
        if seen is not None and 0 <= index < len(seen.suspects):
            self.cursor = index
            self.screen.said = ""
            self.screen.redraw()
