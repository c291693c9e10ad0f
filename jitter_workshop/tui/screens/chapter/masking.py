"""Let the learner write a CPU mask in digits or in bits. Nothing is written to the host.

Hexadecimal digits and a comma are typed, as in the kernel's file. The arrows move the cursor over the bits, and Space
sets a bit. Digits and bits are always the same mask. Enter checks it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual import events

from jitter_workshop.course.masks import MaskJudgement, judge_mask
from jitter_workshop.errors import UsageError
from jitter_workshop.model.course import MaskTask
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.picture import Mask
from jitter_workshop.presenter.course import masks as words
from jitter_workshop.presenter.course.typed import mask_so_far
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
        self._typed = ""
        """The digits that the learner has typed since the last bit was set or the mask was checked; "" for none."""
        self._why = ""
        """The reason why the newest character was refused; "" if it was not."""
        self._judged: MaskJudgement | None = None

    @property
    def _last(self) -> bool:
        return self._number + 1 == len(self._asked)

    def lines(self, width: int) -> Iterable[Text]:
        task = self._asked[self._number]
        yield from words.task(task, self._number + 1, len(self._asked), width)
        yield Text()
        yield from words.editor(self._mask, self._at, width, self._typed)
        if self._why:
            yield Text()
            yield from words.not_typed(self._why, width)
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

    def to_end(self, by: int) -> None:
        """Move the cursor to the left end of the mask (-1), the highest CPU, or to the right end (+1)."""
        self._move((self._mask.cpus - 1 if by < 0 else 0) - self._at)

    def _move(self, by: int) -> None:
        """Move the cursor by this number of CPUs, and end the typing: the next digit begins a new mask."""
        if 0 <= self._at + by < self._mask.cpus:
            self._at += by
            self._typed = ""
            self.redraw()

    def action_flip(self) -> None:
        out, one = self._mask.out, CpuSet((self._at,))
        self._change(out - one if self._at in out else out | one, "")

    def on_key(self, event: events.Key) -> None:
        """Add a typed character to the mask. The first digit begins a new mask."""
        character = (event.character or "").lower()
        if event.is_printable and event.key not in self.active_bindings:
            self._type(f"{self._typed}{character}")

    def action_delete(self) -> None:
        """Take the last digit of the mask back."""
        self._type((self._typed or self._mask.text)[:-1])

    def _type(self, text: str) -> None:
        """Take a typed text as the mask. If it cannot be one, keep the mask and tell the reason."""
        try:
            named = mask_so_far(text, self._mask.cpus)
        except UsageError as error:
            self._why = error.sentence()
            self.redraw()
        else:
            self._change(CpuSet.of(range(self._mask.cpus)) - named, text)

    def _change(self, out: CpuSet, typed: str) -> None:
        """Take the CPUs ``out`` out of the mask. ``typed``: the digits that say so; "" after a change of a bit."""
        self._mask = Mask(self._mask.cpus, out)
        self._typed, self._why, self._judged = typed, "", None
        self.redraw()

    def action_agree(self) -> None:
        """Check the mask. On a second call, open the next mask, even if the checked mask was wrong. After the last
        mask, return to the chapter.
        """
        if self._judged is None:
            self._judged = judge_mask(self._asked[self._number].wanted, self._mask.left)
            self._typed = self._why = ""
        elif self._last:
            self.action_close()
            return
        else:
            self._next()
        self.redraw()
        self.pane().scroll_end(animate=False)
