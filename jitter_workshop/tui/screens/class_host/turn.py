"""Let a user of a class host wait for the turn, take or return it.

Only the user who has the turn may measure. A page shows the queue. While the user waits, the workshop stays open. A key
opens the chapter and step where the instructor is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from textual.timer import Timer

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.errors import UsageError, WaitStopped, WorkshopError
from jitter_workshop.flow.turns.classhost import DAY_S, take_turn
from jitter_workshop.model.text import many
from jitter_workshop.presenter.classes import class_host
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.core.frame import Frame
from jitter_workshop.tui.screens.common.base import Page, WorkshopScreen

EVERY_S = 2.0
"""Interval between two looks at the class, in s. A look reads two small files. No look is made during a measurement."""


class TurnPage(Page, scope="queue"):
    """Show the queue for the turn, and keep it up to date. If Esc closes the page, the user stays in the queue.
    ``came``: True if the user got the turn while the page was open."""

    def __init__(self) -> None:
        super().__init__()
        self.came = False

    def over(self, *, came: bool) -> None:
        """Close the page when the wait for the turn has ended. ``came``: True if the user got the turn, False if the
        user left the queue or the wait failed."""
        self.came = came
        self.dismiss(None)

    def action_leave_queue(self) -> None:
        """Leave the queue. The page closes when the wait has ended."""
        self.frame.class_turn.leave_queue()

    def lines(self, width: int) -> Iterable[Text]:
        view = self.workshop.context.class_view
        yield Text()
        if view is not None:
            yield from class_host.waiting_lines(view, width)

    def key_words(self) -> str:
        return "Esc read on, keep your place · x leave the queue"


class TurnController:
    """Wait for the turn on a thread, so that everything else continues meanwhile.

    On a host without a class every method does nothing, and :meth:`with_turn` calls its function at once.
    """

    def __init__(self, app: Frame) -> None:
        self._app = app
        self._workshop = app.workshop
        self._timer: Timer | None = None
        self._wait: CancelToken | None = None
        """The token that ends the wait for the turn; None while the app does not wait."""

    def pause(self, paused: bool) -> None:
        """Stop the timer that reads the state of the class, or start it again. ``paused``: True to stop the timer. A
        timer must not wake this process while a block is measured."""
        if self._timer is not None:
            (self._timer.pause if paused else self._timer.resume)()

    # -- looking -----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Read the state of the class now, and again every EVERY_S seconds. On a host without a class, do nothing."""
        view = self._workshop.context.class_view
        if view is not None:
            view.look()
            self._workshop.context.tell_board()
            self._timer = self._app.set_interval(EVERY_S, self.look)

    def look(self) -> None:
        """Read who has the turn on the class host, and where the instructor is. If the learner's turn has expired,
        wait on a thread until the changes made in this turn are restored. During a run or a change, do nothing.
        """
        view = self._workshop.context.class_view
        if view is None or self._app.stop_run is not None or self._app.at_work:
            return
        changed = view.look()
        if view.ended and not view.waits:
            self._let_go(view.find_end)
        elif changed:
            self._show_class()

    def look_between_blocks(self) -> None:
        """Read the remaining time of the turn and show it. This is called between two blocks. The screen is painted
        then anyway, so this does not disturb the measurement.
        """
        view = self._workshop.context.class_view
        if view is not None:
            view.look()
            self._show_class()

    def _let_go(self, work: Callable[[], object]) -> None:
        """Call ``work`` on a thread, and update the screen afterwards. ``work``: a function that gives back the
        learner's turn on the class host. If the turn has expired, ``work`` waits until the changes made in this turn
        are restored.
        """

        def on_thread() -> None:
            work()
            self._app.call_from_thread(self._turn_let_go)

        self._app.begin_work()
        self._app.run_worker(on_thread, thread=True, group="turn")

    def _turn_let_go(self) -> None:
        """Update all screens after a turn has ended. The end of a turn may have changed the host's settings."""
        self._app.end_work()
        if self._workshop.context.class_view is not None:
            self._workshop.context.class_view.look()
        self._show_class()
        self._app.going_on()

    def _show_class(self) -> None:
        for screen in self._app.screen_stack:
            if isinstance(screen, WorkshopScreen):
                screen.show_class()
            elif isinstance(screen, TurnPage):
                screen.redraw()

    # -- the turn ----------------------------------------------------------------------------------------------------

    def with_turn(self, then: Callable[[], None], otherwise: Callable[[], None] | None = None) -> None:
        """Call ``then`` once this user has the turn of a class host.

        Call ``then`` at once if the host has no class, or if the user already has the turn. Call ``otherwise`` if the
        learner closes the page with the queue before the turn comes.
        """
        view = self._workshop.context.class_view
        if view is not None:
            view.look()
        if view is None or view.has_turn:
            then()
        else:
            self._queue(then, otherwise)

    def toggle(self) -> None:
        """Take the turn of a class host, or give it back."""
        view = self._workshop.context.class_view
        if view is None or self._app.screen.is_modal or self._app.at_work:
            return
        view.look()
        if not view.has_turn:
            self._queue()
        elif self._workshop.context.agent_connection.holding:
            self._ask_to_give()
        else:
            self._let_go(self._workshop.context.agent_connection.give_turn)

    @property
    def queued(self) -> bool:
        """Return True while the app waits for the turn. During this time, root's agent can accept no other request."""
        return self._wait is not None

    def leave_queue(self) -> None:
        """Ask to leave the queue, and do not wait until that is done."""
        if self._wait is not None:
            self._wait.cancel("left the queue")

    def _queue(self, then: Callable[[], None] | None = None, otherwise: Callable[[], None] | None = None) -> None:
        if self._wait is None:
            self._wait = CancelToken()
            self._app.run_worker(self._wait_for_turn, thread=True, group="turn")
        page = TurnPage()

        def over(_: None) -> None:
            do = then if page.came else otherwise
            if do is not None and not self._app.leaving:
                do()

        self._app.push_screen(page, over)

    def _wait_for_turn(self) -> None:
        """Wait in the queue, on a thread, until the turn comes or the learner leaves the queue."""
        token, view = self._wait, self._workshop.context.class_view
        assert token is not None
        error: WorkshopError | None = None
        try:
            take_turn(
                self._workshop.context.agent_connection, DAY_S, token, people=view.people if view is not None else ()
            )
        except WorkshopError as refusal:
            error = refusal
        finally:
            token.close()
        self._app.call_later(self._turn_came, error)

    def _turn_came(self, error: WorkshopError | None) -> None:
        self._wait = None
        if self._app.leaving:
            return
        self.look()
        self._show_class()
        page = next((screen for screen in self._app.screen_stack if isinstance(screen, TurnPage)), None)
        if page is not None:
            page.over(came=error is None)
        elif error is None:
            self._app.bell()
        if error is not None and not isinstance(error, WaitStopped):
            self._app.call_next(self._app.show_error, error)

    def _ask_to_give(self) -> None:
        from jitter_workshop.tui.screens.common.dialogs import Question

        count = len(self._workshop.context.agent_connection.leased)
        words = f"The end of your turn restores your changes ({many(count, 'setting')})."
        give = partial(self._let_go, self._workshop.context.agent_connection.give_turn)
        keys = "Enter gives the turn back · Esc keeps it"
        self._app.push_screen(Question("Give the turn back?", lambda *_: [Text(words)], keys, give))

    # -- the instructor ----------------------------------------------------------------------------------------------

    def jump(self) -> None:
        """Go to the chapter and step where the instructor is."""
        view = self._workshop.context.class_view
        said = view.banner if view is not None else None
        if said is None or not said.chapter or self._app.screen.is_modal or self._app.at_work:
            return
        if self._workshop.course.chapter(said.chapter) is None:
            self._app.show_error(UsageError(class_host.unknown_chapter(said.chapter)))
            return
        self._app.go_to_chapter(said.chapter, said.step)
