"""A class host on the screen: one line for the turn, one for the instructor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.text import Text

from jitter_workshop.model.text import clean
from jitter_workshop.tui.theme import Palette

if TYPE_CHECKING:
    from jitter_workshop.flow.classview import ClassView
    from jitter_workshop.model.course import Course


def lines(view: ClassView, course: Course, width: int, palette: Palette) -> Iterable[Text]:
    """Whose turn it is, with the key that takes or gives it; then where the instructor is, with the key that goes there."""
    key = "T gives it back" if view.has_turn else "" if view.waits else "T takes the turn"
    said = view.lost or view.turn
    yield _ends(Text(clean(said, 300), style=palette.text if view.has_turn else palette.dim), key, width, palette)
    where = view.banner_words(title_of(view, course))
    if where:
        key = "G goes there" if view.banner is not None and view.banner.chapter else ""
        yield _ends(Text(f"▸ {where}", style=f"bold {palette.text}"), key, width, palette)


def title_of(view: ClassView, course: Course) -> str:
    """The title of the chapter that the instructor is at, "" for none of this course."""
    wanted = view.banner.chapter if view.banner is not None else ""
    return next((clean(chapter.title, 60) for chapter in course.chapters if chapter.id == wanted), "")


def _ends(left: Text, key: str, width: int, palette: Palette) -> Text:
    """The key at the right end; the words give way."""
    room = max(width - len(key) - 2, 8) if key else width
    left.truncate(room, overflow="ellipsis")
    return Text.assemble(left, " " * max(width - left.cell_len - len(key), 1), (key, palette.dim)) if key else left
