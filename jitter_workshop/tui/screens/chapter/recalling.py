"""Show recall questions on a page before a chapter's first step. Enter leads on only after an answer, because it leads
on everywhere else, too; 0 shows the answer, and Esc skips."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual import events

from jitter_workshop.flow.chapters import recalling
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.presenter.course import recall as words
from jitter_workshop.presenter.course.keys_that_wait import NO_NUMBER
from jitter_workshop.presenter.text.lines import wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.screens.common.base import Page

_NOT_KNOWN = -1
"""The index of the chosen answer if the learner does not know it."""


class RecallPage(Page, scope="recall"):
    """Ask the recall questions one by one. ``asked``: the questions of this visit, at least one."""

    def __init__(self, walk: ChapterWalk, asked: Sequence[recalling.Asked]) -> None:
        super().__init__()
        self._walk = walk
        self._asked = asked
        self._at = 0
        self._chosen: int | None = None
        self._judged: recalling.RecallResult | None = None
        self._told = ""
        """The sentence on the newest key, if it did nothing; else ""."""
        self._answered: set[str] = set()
        """The keys of the questions that have an answer."""

    @property
    def _now(self) -> recalling.Asked:
        return self._asked[self._at]

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one(".frame").border_title = words.before_chapter(self._walk.chapter.title)

    def lines(self, width: int) -> Iterable[Text]:
        yield from words.question(self._now, self._at + 1, len(self._asked), width, self._chosen)
        if self._judged is not None:
            yield Text()
            yield from words.recall_outcome_lines(self._now, self._judged, width)
        elif self._told:
            yield Text()
            yield from wrap(Text(self._told, "text"), width)

    def key_words(self) -> str:
        answered, last = self._judged is not None, self._at + 1 == len(self._asked)
        return words.recall_keys_line(self._now, answered, last)

    def digit(self, index: int) -> None:
        self._told = NO_NUMBER if self._judged is None and index >= len(self._now.question.answers) else ""
        if self._told:
            self.redraw()
        elif self._judged is None:
            self._judge(index)

    def action_not_known(self) -> None:
        """Show the answer to a learner who does not know it."""
        self._told = ""
        if self._judged is None:
            self._judge(None)

    def _judge(self, index: int | None) -> None:
        """Judge an answer. ``index``: the index of the answer; None if the learner does not know it."""
        self._chosen = _NOT_KNOWN if index is None else index
        self._judged = recalling.judge_recall(self.workshop, self._now, index)
        self._answered.add(self._now.key)
        self.redraw()
        self.pane().scroll_end(animate=False)

    def on_key(self, event: events.Key) -> None:
        """Say which keys answer, after a key that does nothing here."""
        if event.is_printable and event.key not in self.active_bindings and self._judged is None:
            self._told = words.other_key(self._now)
            self.redraw()

    def action_agree(self) -> None:
        """Go on to the next question, or to the chapter. Stay at a question without an answer, and say what to do."""
        if self._judged is None:
            self._told = words.other_key(self._now)
            self.redraw()
            self.pane().scroll_end(animate=False)
            return
        if self._at + 1 == len(self._asked):
            self.action_close()
            return
        self._at, self._chosen, self._judged = self._at + 1, None, None
        self._told = ""
        self.redraw()
        self.pane().scroll_home(animate=False)

    def action_close(self) -> None:
        skipped = [one for one in self._asked if one.key not in self._answered]
        recalling.record_asked(self.workshop, self._walk, skipped)
        self.dismiss(None)
