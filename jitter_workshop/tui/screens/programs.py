"""Explain where the time of a user's program went. The user chooses a process from a list."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.geometry import Region
from textual.widgets import Input

from jitter_workshop.evidence.scene import ProgramScene
from jitter_workshop.flow.programs import observing, targets
from jitter_workshop.host.root import HostRoot, is_count
from jitter_workshop.model.program import OBSERVED_S, HoldUp, ProcessSeen, ProgramReport
from jitter_workshop.model.text import ID, called, clean
from jitter_workshop.presenter.runs import program as words
from jitter_workshop.presenter.text.lines import small_title, waiting, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.background import aside
from jitter_workshop.tui.screens.common.base import WorkshopScreen
from jitter_workshop.tui.screens.runs.causes import CausesPage, CausesScreen
from jitter_workshop.tui.widgets.keybar import Shown
from jitter_workshop.tui.widgets.sheet import ListSheet, Pane, Sheet, panel

_PAGE_OF_ROWS = 10
_NEXT: dict[CausesPage, str] = {"causes": "hold-ups", "stalls": "waits", "others": "causes"}
_NEXT_COUNTED: dict[CausesPage, str] = {"causes": "by hand", "stalls": "by hand", "others": "counters"}


class ProcessesScreen(WorkshopScreen, scope="programs"):
    """List the processes of this host, the busiest first, for the user to choose one.

    A thread measures for half a second how much CPU time each process takes. After ``/`` the user types a process's
    number, or a part of a name as a filter.
    """

    def __init__(self) -> None:
        super().__init__()
        self._found: tuple[ProcessSeen, ...] | None = None
        self._looking = threading.Event()
        self._under = 0
        self._typed = ""

    def body(self) -> ComposeResult:
        yield Sheet(self._head, id="programs-head")
        with Vertical(id="programs-main"), panel(Pane(id="programs-list")):
            yield ListSheet(self._list, id="programs-sheet")
        # The cursor does not blink: blinking needs a timer.
        yield Input(placeholder="a number, or a part of a name", id="typed", compact=True)
        yield Sheet(self.say_lines, id="say")

    def heading(self) -> str:
        return "Explain a program"

    def keys(self) -> Sequence[Shown]:
        typing = self.query_one(Input).has_class("-on")
        if typing:
            return (("programs.close", "leave this line"),)
        return (
            *((("programs.go", ""),) if self._shown else ()),
            ("programs.type", ""),
            ("programs.again", ""),
            ("app.glossary", ""),
            ("app.help", ""),
            ("programs.close", "all processes" if self._typed else ""),
        )

    def on_mount(self) -> None:
        self.query_one(Input).cursor_blink = False
        self.action_again()

    def on_unmount(self) -> None:
        self._looking.set()

    def action_again(self) -> None:
        if self.workshop.context.recorded:
            return
        self.tell("")
        self.run_worker(self._look(), exclusive=True, group="look")

    async def _look(self) -> None:
        chosen = self._chosen
        self._found = await aside(partial(targets.list_processes, HostRoot(), self._looking))
        same = (n for n, one in enumerate(self._shown) if chosen is not None and one.pid == chosen.pid)
        self._under = next(same, 0)
        self.redraw()

    # -- layout ----------------------------------------------------------------------------------------------------

    @property
    def _shown(self) -> tuple[ProcessSeen, ...]:
        """Return the processes that are listed now."""
        return words.matching(self._found or (), self._typed)

    @property
    def _chosen(self) -> ProcessSeen | None:
        """Return the process under the cursor."""
        shown = self._shown
        return shown[min(self._under, len(shown) - 1)] if shown else None

    def _head(self, width: int) -> Iterable[Text]:
        if self.workshop.context.recorded:
            return wrap(words.NO_PROGRAM_HERE, width, style="text")
        return wrap(words.CHOOSE, width, style="dim")

    def _list(self, width: int) -> Iterable[Text]:
        if self._found is None:
            return [] if self.workshop.context.recorded else [Text("Looking at the processes…", "dim")]
        if not self._shown:
            none = f"No process has '{clean(self._typed, ID)}' in its name." if self._typed else words.NOTHING_TO_LIST
            return wrap(none, width, style="dim")
        head, *rows = words.process_rows(self._shown, width - 2)
        lines = [Text("  ").append(head)]
        for number, row in enumerate(rows):
            under = number == self._under
            line = Text("▸ " if under else "  ", "accent").append(row)
            if under:
                line.append(" " * max(width - line.cell_len, 0))
                line.stylize("under")
            lines.append(line)
        return lines

    # -- keys ------------------------------------------------------------------------------------------------------

    def _put(self, number: int) -> None:
        self._under = max(0, min(number, len(self._shown) - 1))
        self.tell("")
        self.pane().scroll_to_region(Region(0, self._under if self._under else 0, 1, 2), animate=False)

    def action_vertical(self, by: int) -> None:
        self._put(self._under + by)

    def action_page(self, by: int) -> None:
        self._put(self._under + by * _PAGE_OF_ROWS)

    def to_end(self, by: int) -> None:
        self._put(self._under + by * len(self._shown))

    def action_go(self) -> None:
        chosen = self._chosen
        if chosen is not None:
            self.app.push_screen(ProgramScreen(chosen.pid, chosen.name, chosen.start_ticks))

    @on(ListSheet.Clicked)
    def _clicked(self, message: ListSheet.Clicked) -> None:
        number = message.line - 1
        if not 0 <= number < len(self._shown):
            return
        if number == self._under:
            self.action_go()
        else:
            self._put(number)

    def action_type(self) -> None:
        typed = self.query_one(Input)
        typed.add_class("-on")
        typed.value = ""
        typed.focus()
        self.refresh_keys()

    @on(Input.Submitted)
    def _entered(self, message: Input.Submitted) -> None:
        message.stop()
        self._stop_typing()
        entered = message.value.strip()
        if is_count(entered) and len(entered) <= 10:
            known = next((one for one in self._found or () if one.pid == int(entered)), None)
            name = known.name if known is not None else ""
            self.app.push_screen(ProgramScreen(int(entered), name, known.start_ticks if known is not None else None))
            return
        self._typed = entered
        self._put(0)

    def _stop_typing(self) -> None:
        self.query_one(Input).remove_class("-on")
        self.set_focus(None)
        self.refresh_keys()

    def action_close(self) -> None:
        if self.query_one(Input).has_class("-on"):
            self._stop_typing()
        elif self._typed:
            self._typed = ""
            self._put(0)
        else:
            super().action_close()


class ProgramScreen(CausesScreen):
    """Observe a process, and show where its time went. The findings are shown on three pages, as in CausesScreen.

    Closing the screen stops the observation. ``start_ticks``: the start time of the process; None if the user typed a
    number that is not listed.
    """

    def __init__(self, pid: int, name: str, start_ticks: int | None) -> None:
        super().__init__()
        self._pid, self._process, self._start_ticks = pid, name, start_ticks
        self._report: ProgramReport | None = None
        self._scene = ProgramScene()
        self._rest_s: float = OBSERVED_S

    def heading(self) -> str:
        name = f" {called(self._process, ID)}" if self._process else ""
        return f"Where its time went ·{name} (pid {self._pid})"

    @property
    def turns(self) -> dict[CausesPage, str]:
        return _NEXT if self.traced or self._report is None else _NEXT_COUNTED

    @property
    def traced(self) -> bool:
        return self._report is not None and self._report.evidence == "trace"

    @property
    def worst(self) -> Sequence[HoldUp]:
        return (self._report.worst or ()) if self._report is not None else ()

    async def explain(self) -> None:
        self._report = await aside(
            partial(
                observing.explain_running,
                self._pid,
                None,
                None,
                float(OBSERVED_S),
                lambda rest_s: self.told(partial(self._goes_on, rest_s)),
                self._scene,
                start_ticks=self._start_ticks,
                agent=self.workshop.context.agent_connection.beside(),
                or_counters=True,
            )
        )
        self._process = self._report.target.name

    def _goes_on(self, rest_s: float) -> None:
        self._rest_s = rest_s
        if self._report is None:
            self.sheet("#causes-head").renew()

    def redraw(self) -> None:
        if self.is_mounted:
            self.show_title()
        super().redraw()

    # -- layout ----------------------------------------------------------------------------------------------------

    def head_lines(self, width: int) -> Iterable[Text]:
        if self._report is not None:
            return words.program_head(self._report, width)
        if self.said:
            return [Text("Nothing is known about this program's time.", "dim")]
        to_go = f"Observing: {self._rest_s:.0f} s to go. Esc stops the observation, not the program."
        left = to_go if self._rest_s else ""
        return waiting(left or "Adding up…", round(OBSERVED_S - self._rest_s), OBSERVED_S if left else 0, width)

    def causes_lines(self, width: int) -> Iterable[Text]:
        report = self._report
        if report is None:
            return
        yield from words.threads(report, width)
        if report.causes is not None:
            yield from (Text(), *words.waiting_cause_lines(report.causes, width))
        if told := list(words.program_sentences(report, width)):
            yield from (Text(), *told)

    def stalls_lines(self, width: int) -> Iterable[Text]:
        if self._report is None:
            return
        yield small_title(words.HELD_UP)
        if not self.worst:
            yield from wrap(words.no_holdups(self._report), width)
        for index, one in enumerate(self.worst):
            yield words.holdup_line(index + 1, one, index == self.cursor, width)
            yield from [Text()] * (self.row_height - 1)

    def stall_lines(self, width: int) -> Iterable[Text]:
        return words.holdup_page(self.worst[self.cursor], width) if self.worst else ()

    def others_lines(self, width: int) -> Iterable[Text]:
        if self._report is None:
            return
        if self.traced:
            told = list(words.waits(self._report, width))
            yield from (*(told or [Text("Its threads waited for nothing.")]), Text())
        yield from words.program_command_lines(self._report, width)

    # -- keys ------------------------------------------------------------------------------------------------------

    def action_turn(self) -> None:
        super().action_turn()
        # Counters tell of no single hold-up.
        if self.page == "stalls" and self._report is not None and not self.traced:
            super().action_turn()

    def write_tracks(self) -> Path:
        from jitter_workshop.flow.reporting.perfetto import write_program

        assert self._report is not None
        return write_program(self._scene, self._report)

    def commands(self) -> Iterable[str]:
        return words.program_commands(self._report) if self._report is not None else ()
