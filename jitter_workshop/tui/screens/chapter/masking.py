"""Let the learner write a CPU mask bit by bit. Nothing is written to the host.

The arrows move the cursor, Space sets a bit, and Enter checks the mask.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jitter_workshop.course.masks import MaskJudgement, judge_mask
from jitter_workshop.model.course import MaskTask
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.picture import Mask
from jitter_workshop.presenter.course import masks as words
from jitter_workshop.presenter.text.pictures import digits_a_row
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.screens.common.base import Page


class MaskPage(Page, scope="mask"):
    """Ask for the masks one by one. ``asked``: the masks to write, at least one."""

    def __init__(self, asked: Sequence[MaskTask]) -> None:
        super().__init__()
        self._asked = asked
        self._number = -1
        self._next()

    def _next(self) -> None:
        self._number += 1
        self._mask = Mask(self._asked[self._number].wanted.cpus, CpuSet())
        self._at = 0
        self._judged: MaskJudgement | None = None

    @property
    def _last(self) -> bool:
        return self._number + 1 == len(self._asked)

    def lines(self, width: int) -> Iterable[Text]:
        task = self._asked[self._number]
        yield from words.task(task, self._number + 1, len(self._asked), width)
        yield Text()
        yield from words.editor(self._mask, self._at, width)
        if self._judged is not None:
            yield Text()
            yield from words.judged_mask_lines(task, self._judged, width)

    def key_words(self) -> str:
        return words.mask_keys_line(None if self._judged is None else self._judged.right, self._last)

    def action_sideways(self, by: int) -> None:
        """Move the cursor by one bit; the higher CPU is at the left."""
        self._move(-by)

    def action_vertical(self, by: int) -> None:
        """Move the cursor by a row of bits; the higher CPUs are above."""
        self._move(-by * 4 * digits_a_row(self.sheet("#page-sheet").content_size.width))

    def _move(self, by: int) -> None:
        if 0 <= self._at + by < self._mask.cpus:
            self._at += by
            self.redraw()

    def action_flip(self) -> None:
        out, one = self._mask.out, CpuSet((self._at,))
        self._mask = Mask(self._mask.cpus, out - one if self._at in out else out | one)
        self._judged = None
        self.redraw()

    def action_agree(self) -> None:
        """Check the mask. On a second call, open the next mask, even if the checked mask was wrong. After the last
        mask, return to the chapter.
        """
        if self._judged is None:
            self._judged = judge_mask(self._asked[self._number].wanted, self._mask.left)
        elif self._last:
            self.action_close()
            return
        else:
            self._next()
        self.redraw()
        self.pane().scroll_end(animate=False)
