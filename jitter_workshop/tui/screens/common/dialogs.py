"""Provide the dialogs over a screen: a message to read, a question, and a choice among numbered lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from jitter_workshop.errors import WorkshopError
from jitter_workshop.model.text import LINE, MESSAGE, clean
from jitter_workshop.presenter.host.changes import applied_now_text
from jitter_workshop.presenter.text.lines import wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.screens.common.base import IN_CLIPBOARD, Page
from jitter_workshop.tui.widgets.sheet import LinesOfWidth

ON_LEAVING = (
    "If you leave, the old values are restored. If you keep the changes, they stay until 'jitter-workshop restore' or "
    "the next "
    "boot, and the next visit shows them."
)


class ErrorDialog(Page, scope="dialog"):
    """Show a WorkshopError: what was not done, and what the user can do. ``y`` copies the text."""

    def __init__(self, error: WorkshopError) -> None:
        super().__init__()
        self.error = error
        self._copied = False

    def lines(self, width: int) -> Iterable[Text]:
        yield Text()
        yield from wrap(Text(clean(self.error.title), "bold bad"), width, "✗ ")
        yield Text()
        yield from wrap(Text(clean(self.error.message, MESSAGE), "text"), width)
        if self.error.advice:
            yield Text()
            yield from wrap(Text(clean(self.error.advice, MESSAGE), "text"), width, "→ ")

    def key_words(self) -> str:
        copied = IN_CLIPBOARD if self._copied else "y copies this text"
        return f"Esc closes · {copied}"

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(f"{self.error.title}: {self.error.sentence()}")
        self._copied = True
        self.redraw()


class Question(Page, scope="question"):
    """Ask the user before something is done. Enter calls ``agree``, the key k calls ``keep``, and Escape only closes
    the question.

    ``about``: a function that returns the lines of the question. ``keys``: a line that names each key and its effect.
    If ``keep`` is None, the key k does nothing.
    """

    def __init__(
        self,
        title: str,
        about: LinesOfWidth,
        keys: str,
        agree: Callable[[], None],
        keep: Callable[[], None] | None = None,
    ) -> None:
        super().__init__()
        self._title_text = title
        self._about = about
        self._keys = keys
        self._agree = agree
        self._keep = keep

    def lines(self, width: int) -> Iterable[Text]:
        yield Text()
        yield from wrap(Text(clean(self._title_text, LINE), "bold text"), width)
        yield Text()
        yield from self._about(width)

    def key_words(self) -> str:
        return self._keys

    def _answer(self, call: Callable[[], None]) -> None:
        self.dismiss(None)
        self.app.call_next(call)

    def action_agree(self) -> None:
        self._answer(self._agree)

    def action_keep(self) -> None:
        if self._keep is not None:
            self._answer(self._keep)


class LeaveQuestion(Question):
    """Ask what to do with temporary changes before the workshop ends. Temporary changes are restored when the
    workshop ends.

    Enter restores the old values and calls ``leave``. The key k keeps the changes on the host and calls ``leave``.
    Escape returns to the workshop.
    """

    def __init__(self, leave: Callable[[], None]) -> None:
        keys = "Enter restores and leaves · k keeps and leaves · Esc stays"
        super().__init__("Leave the workshop?", self._stands, keys, leave, self._keep_and_leave)

    def _stands(self, width: int) -> Iterable[Text]:
        yield from wrap(Text(f"{applied_now_text(self.workshop.written())}.", "text"), width)
        yield Text()
        yield from wrap(Text(ON_LEAVING, "dim"), width)

    def _keep_and_leave(self) -> None:
        try:
            self.workshop.context.agent_connection.keep()
        except WorkshopError as error:
            self.frame.show_error(error)
        else:
            self._agree()


class ChoosingPage(Page):
    """Let the user choose one of several lines with up, down or a digit. A subclass sets ``cursor`` in
    :meth:`digit`."""

    cursor = 0

    def action_vertical(self, by: int) -> None:
        self.digit(self.cursor + by)
