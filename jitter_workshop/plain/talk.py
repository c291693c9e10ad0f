"""Print lines that are no wider than the terminal, and read the learner's answers."""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from jitter_workshop.errors import WorkshopError
from jitter_workshop.model.walk import CpuView, RunCurve
from jitter_workshop.presenter.runs.curves import percentile_table
from jitter_workshop.presenter.text.glossary import term_lines
from jitter_workshop.presenter.text.lines import Lines, wrap
from jitter_workshop.presenter.text.prose import prose
from jitter_workshop.presenter.text.styled import Text

if TYPE_CHECKING:
    from jitter_workshop.stats.heat import Heat

_CHART_ROWS, _HEAT_ROWS = 14, 20
_WIDEST = 100
_PAGE = 78
"""The widest line of prose, in columns: longer ones are tiring to read."""


class Leave(Exception):
    """Signal that the learner wants to leave the workshop."""


LOOK_EVERY_S = 1.0
"""Interval between two looks at the host while the workshop waits for a line, in s."""


def _read_line(prompt: str, idle: Callable[[], bool] = lambda: False) -> str:
    """Print the prompt on stdout, and return the line that the user types.

    ``idle``: a function that is called each second until the terminal has a line. It returns True if it has printed
    something. The prompt is then printed again.
    """
    # ``input`` alone would write the prompt to stderr on a terminal.
    sys.stdout.write(prompt)
    sys.stdout.flush()
    if sys.stdin.isatty():
        _await_line(prompt, idle)
    return input()


def _await_line(prompt: str, idle: Callable[[], bool]) -> None:
    """Sleep until the terminal has a line, and call ``idle`` each second. If ``idle`` returns True, print the prompt
    again. An exception from the handler of a signal ends the sleep."""
    # ``input`` alone can miss a signal that comes just before it calls read(2): the signal's handler would run only
    # after the next line. The wakeup descriptor ends this sleep as soon as a signal comes.
    woken, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before = signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    try:
        while sys.stdin not in (ready := select.select([sys.stdin, woken], [], [], LOOK_EVERY_S)[0]):
            if woken in ready:
                os.read(woken, 64)
            elif idle():
                sys.stdout.write(prompt)
                sys.stdout.flush()
    finally:
        signal.set_wakeup_fd(before)
        os.close(woken)
        os.close(wakes)


class Talk:
    """Ask questions and print lines.

    - ``read``: a function that shows a prompt and returns the typed line. It raises EOFError at the end of the input.
    - ``width``: the number of columns. None: as many as the terminal has.
    """

    def __init__(
        self,
        read: Callable[[str], str] | None = None,
        write: Callable[[str], object] | None = None,
        width: int | None = None,
    ) -> None:
        self._read = read or self._read_terminal
        self.write = write or sys.stdout.write
        self._fixed_width = width
        self._told: set[str] = set()
        self._said: list[str] = []
        """The lines since the last answer: the page whose terms ``g`` explains."""
        self.idle: Callable[[], Lines] | None = None
        """A function that returns lines on changes; on a terminal it is called each second until the learner types a
        line."""
        self.class_told: tuple[object, ...] | None = None
        """The class host's state as it was shown last."""

    def _read_terminal(self, prompt: str) -> str:
        return _read_line(prompt, self._looked)

    def _looked(self) -> bool:
        """Print the lines that ``idle`` returns. They tell what has changed since the page was shown. Return True if
        there were any lines."""
        lines = self.idle() if self.idle is not None else []
        if lines:
            self.say("", *lines)
        return bool(lines)

    @property
    def width(self) -> int:
        columns = self._fixed_width or shutil.get_terminal_size().columns
        return max(20, min(columns - 1, _WIDEST))

    def ask(self, question: str) -> str:
        """Return the answer, without blanks around it. Raise Leave for ``q``, and EOFError at the end of the input."""
        answer = self.ask_anything(question)
        if answer == "q":
            raise Leave
        return answer

    def ask_anything(self, question: str) -> str:
        """Return the answer like :meth:`ask`, but treat ``q`` like any other answer."""
        page = "\n".join(self._said)
        while True:
            *above, last = wrap(question, max(self.width - len(" > "), 20))
            self.say(*above)
            answer = self._read(f"{last.plain} > ").strip()
            self._said.clear()
            if answer != "g":
                return answer
            self.say("", *term_lines(page, self.width), "")

    def tell(self, text: str, indent: str = "", hanging: str | None = None) -> None:
        self.say(*wrap(text, self.width, indent, hanging))

    def say(self, *lines: str | Text) -> None:
        """Print each ``str`` unchanged. Print each ``Text`` without its styles, cut at the terminal's width."""
        for line in lines:
            written = line if isinstance(line, str) else line.plain[: self.width].rstrip()
            self._said.append(written)
            self.write(f"{written}\n")

    def row(self, text: str) -> None:
        """Write one line, cut at the width."""
        self.say(Text(text))

    def page(self, markdown: str, cpus: CpuView | None = None) -> None:
        """Show a lesson's page. ``cpus``: the host whose CPUs the page may draw."""
        self.say(*prose(markdown, min(self.width, _PAGE), ascii_only=True, cpus=cpus), "")

    def refused(self, error: WorkshopError) -> None:
        """Show an error: what was not done, and what the user can do."""
        self.tell(f"! {error.sentence()}.", "", "  ")

    def notices(self, notices: Iterable[str]) -> None:
        """Tell each notice once."""
        for notice in notices:
            if notice and notice not in self._told:
                self._told.add(notice)
                self.tell(f"! {notice}", "", "  ")

    def chart(self, curves: Sequence[RunCurve]) -> None:
        if not curves:
            self.tell("There is no curve yet.")
            return
        from jitter_workshop.chart.canvas import plain_curve_lines

        self.say(*plain_curve_lines([shown.curve for shown in curves], self.width, _CHART_ROWS))

    def heat(self, shown: Heat) -> None:
        """Show a run's heat map."""
        from jitter_workshop.chart.heat import plain_heat_map_lines

        self.say(*plain_heat_map_lines(shown, self.width, _HEAT_ROWS))

    def table(self, curves: Sequence[RunCurve]) -> None:
        self.say(*percentile_table(curves, self.width))
