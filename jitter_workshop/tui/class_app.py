"""What a class host adds to the app: a look at the class now and then, the turn, and the way to the instructor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text
from textual import on
from textual.app import App
from textual.message import Message
from textual.timer import Timer

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.errors import UsageError, WaitStopped, WorkshopError
from jitter_workshop.flow.turns.classhost import DAY_S, take_turn
from jitter_workshop.model.text import clean, many

if TYPE_CHECKING:
    from jitter_workshop.flow.chapters.workshop import Workshop
    from jitter_workshop.tui.screens.class_host.turn import TurnPage

EVERY_S = 2.0
"""So often the class is looked at: two small files, never while something is measured."""


@dataclass
class TurnCame(Message):
    """The wait for the turn is over; ``error``: why the turn did not come, None where it did."""

    error: WorkshopError | None = None


class ClassApp(App[None]):
    """The app's part that knows of classes. The turn is waited for on a thread; meanwhile everything else goes on."""

    workshop: Workshop
    at_work: bool
    leaving: bool
    _class_timer: Timer | None = None
    _stop_run: Callable[[], None] | None = None
    _wait: CancelToken | None = None
    """Set while the turn is waited for."""

    def begin_work(self) -> None:
        raise NotImplementedError

    def end_work(self) -> None:
        raise NotImplementedError

    def going_on(self) -> None:
        raise NotImplementedError

    def go_to_chapter(self, chapter_id: str, step: str = "") -> None:
        raise NotImplementedError

    def show_error(self, error: WorkshopError) -> None:
        raise NotImplementedError

    @property
    def stop_run(self) -> Callable[[], None] | None:
        """Set while something is measured: stops it without waiting for it."""
        return self._stop_run

    @stop_run.setter
    def stop_run(self, stop: Callable[[], None] | None) -> None:
        self._stop_run = stop
        # No timer of ours wakes while a block is measured.
        if self._class_timer is not None and stop is not None:
            self._class_timer.pause()
        elif self._class_timer is not None:
            self._class_timer.resume()

    def on_unmount(self) -> None:
        self.leave_queue()

    # -- looking ---------------------------------------------------------------------------------------------------

    def begin_class(self) -> None:
        """Look at the class from now on, where this is a class host."""
        if self.workshop.class_view is not None:
            self.workshop.class_view.look()
            self.workshop.tell_board()
            self._class_timer = self.set_interval(EVERY_S, self.look_at_class)

    def look_at_class(self) -> None:
        """Whose turn is it, where is the instructor? A turn that is over without our doing is settled."""
        view = self.workshop.class_view
        if view is None or self.stop_run is not None or self.at_work:
            return
        changed = view.look()
        if view.ended and not view.waits:
            self.begin_work()
            self.run_worker(self._settle_turn, thread=True, group="turn")
        elif changed:
            self._show_class()

    def look_between_blocks(self) -> None:
        """How much of the turn is left, for a frame that is painted between two blocks anyway."""
        view = self.workshop.class_view
        if view is not None:
            view.look()
            self._show_class()

    def _settle_turn(self) -> None:
        view = self.workshop.class_view
        if view is not None:
            view.settle()
        self.call_from_thread(self._turn_let_go)

    def _turn_let_go(self) -> None:
        """The turn is given back, or known to be over: the host may be another one than before."""
        self.end_work()
        if self.workshop.class_view is not None:
            self.workshop.class_view.look()
        self._show_class()
        self.going_on()

    def _show_class(self) -> None:
        from jitter_workshop.tui.screens.class_host.turn import TurnPage
        from jitter_workshop.tui.screens.common.base import WorkshopScreen

        for screen in self.screen_stack:
            if isinstance(screen, WorkshopScreen | TurnPage):
                screen.show_class()

    # -- the turn --------------------------------------------------------------------------------------------------

    def with_turn(self, then: Callable[[], None], otherwise: Callable[[], None] | None = None) -> None:
        """Do what needs the turn of a class host: at once where this is none, or the turn is here; else once it has
        come. Whoever waits may prefer to read on: then it is not done, but ``otherwise``."""
        view = self.workshop.class_view
        if view is not None:
            view.look()
        if view is None or view.has_turn:
            then()
        else:
            self._queue(then, otherwise)

    def action_turn(self) -> None:
        """Take the turn of a class host, or give it back."""
        view = self.workshop.class_view
        if view is None or self.screen.is_modal or self.at_work:
            return
        view.look()
        if not view.has_turn:
            self._queue()
        elif self.workshop.hands.holding:
            self._ask_to_give()
        else:
            self._give()

    @property
    def queued(self) -> bool:
        """Is the turn waited for? Then nothing else can be asked of root."""
        return self._wait is not None

    def leave_queue(self) -> None:
        """Give the place in the queue up; never waits."""
        if self._wait is not None:
            self._wait.cancel("left the queue")

    def _queue(self, then: Callable[[], None] | None = None, otherwise: Callable[[], None] | None = None) -> None:
        from jitter_workshop.tui.screens.class_host.turn import TurnPage

        if self._wait is None:
            self._wait = CancelToken()
            self.run_worker(self._wait_for_turn, thread=True, group="turn")
        page = TurnPage()

        def over(_: None) -> None:
            do = then if page.came else otherwise
            if do is not None and not self.leaving:
                do()

        self.push_screen(page, over)

    def _wait_for_turn(self) -> None:
        """On a thread: the place in the queue, until the turn comes or the place is given up."""
        token, view = self._wait, self.workshop.class_view
        assert token is not None
        error: WorkshopError | None = None
        try:
            take_turn(self.workshop.hands, DAY_S, token, people=view.people if view is not None else ())
        except WorkshopError as refusal:
            error = refusal
        finally:
            token.close()
        self.post_message(TurnCame(error))

    @on(TurnCame)
    def _turn_came(self, message: TurnCame) -> None:
        self._wait = None
        if self.leaving:
            return
        self.look_at_class()
        self._show_class()
        page = self._turn_page()
        if page is not None:
            page.over(came=message.error is None)
        elif message.error is None:
            self.bell()
        if message.error is not None and not isinstance(message.error, WaitStopped):
            self.call_next(self.show_error, message.error)

    def _turn_page(self) -> TurnPage | None:
        from jitter_workshop.tui.screens.class_host.turn import TurnPage

        return next((screen for screen in self.screen_stack if isinstance(screen, TurnPage)), None)

    def _ask_to_give(self) -> None:
        from jitter_workshop.tui.screens.common.question import Question

        count = len(self.workshop.hands.leased)
        words = f"What you applied in it ({many(count, 'tunable')}) is given back with it."
        keys = "Enter gives the turn back · Esc keeps it"
        self.push_screen(Question("Give the turn back?", lambda *_: [Text(words)], keys, self._give))

    def _give(self) -> None:
        self.begin_work()
        self.run_worker(self._give_turn, thread=True, group="turn")

    def _give_turn(self) -> None:
        self.workshop.hands.give_turn()
        self.call_from_thread(self._turn_let_go)

    # -- the instructor --------------------------------------------------------------------------------------------

    def action_jump(self) -> None:
        """Go to the chapter and step where the instructor is."""
        view = self.workshop.class_view
        said = view.banner if view is not None else None
        if said is None or not said.chapter or self.screen.is_modal or self.at_work:
            return
        if self.workshop.course.chapter(said.chapter) is None:
            self.show_error(UsageError(f"the instructor is at '{clean(said.chapter, 40)}', which this course has not"))
            return
        self.go_to_chapter(said.chapter, said.step)
