"""Ask on leaving while settings are held: give them back, keep them, or stay."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from rich.text import Text

from jitter_workshop.errors import WorkshopError
from jitter_workshop.presenter.lines import wrap
from jitter_workshop.presenter.settings_words import stands
from jitter_workshop.tui.screens.common.question import Question

if TYPE_CHECKING:
    from jitter_workshop.tui.core.frame import Frame

ABOUT = (
    "Leaving gives them back. Kept, they stay until 'jitter-workshop restore' or the next boot, "
    "and the next visit shows them."
)


def leave_question(app: Frame, leave: Callable[[], None]) -> Question:
    """Return the question. ``leave`` is called after each answer but Escape."""

    def about(width: int) -> Iterable[Text]:
        yield from wrap(Text(f"{stands(app.workshop.written())}.", "text"), width)
        yield Text()
        yield from wrap(Text(ABOUT, "dim"), width)

    def keep() -> None:
        try:
            app.workshop.agent_session.keep()
        except WorkshopError as error:
            app.show_error(error)
        else:
            leave()

    keys = "Enter gives back and leaves · k keeps and leaves · Esc stays"
    return Question("Leave the workshop?", about, keys, leave, keep)
